"""The satisfaction problem, (k, epsilon) and (k, epsilon, l), against the ways of the paper (Sun and Sun, section 5).

    make bench-satisfaction

Rivals, compiled as kgather is, all from the same sparse ratings: the full matrix of dissimilarities, every pair
compared up to the item that separates it and up to k neighbours ("pairs"), and slicing along the items as they are in
the file. Needs ml-100k and ml-1m in $KGATHER_DATA or ../shared/data. All find the same numbers, or the benchmark stops.
Writes benchmarks/results/satisfaction.{md,json}.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import Claim, Result, Timing, paired, timed
from numba import njit

from kgather.udfs.checking.satisfaction import least_deviation, neighbours
from kgather.udfs.ratings.matrix import RatingMatrix

K = 20
R = 5.0  # the paper's: null against rating is as far as the highest rating
EPSILONS = (1.0, 2.0, 4.0, 5.0)
SLICED_EPSILONS = (1.0, 2.0)
DATA = Path(os.environ.get("KGATHER_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
Way = Callable[[RatingMatrix, float, float], np.ndarray]


@njit(nogil=True, cache=True)
def dense(n_users: int, n_items: int, indptr: np.ndarray, items: np.ndarray, values: np.ndarray) -> np.ndarray:
    table = np.full((n_users, n_items), np.float32(np.nan))
    for u in range(n_users):
        for j in range(indptr[u], indptr[u + 1]):
            table[u, items[j]] = values[j]
    return table


@njit(nogil=True, cache=True, inline="always")
def dissimilarity(a: float, b: float, r: float) -> float:
    """Equation 1."""
    if a == a and b == b:
        return abs(np.float64(a) - np.float64(b))
    return 0.0 if a != a and b != b else r


@njit(nogil=True, cache=True)
def full_matrix(table: np.ndarray, r: float) -> np.ndarray:
    n, m = table.shape
    out = np.zeros((n, n))
    for u in range(n):
        for v in range(u):
            largest = 0.0
            for i in range(m):
                largest = max(largest, dissimilarity(table[u, i], table[v, i], r))
            out[u, v] = out[v, u] = largest
    return out


@njit(nogil=True, cache=True)
def pairs_counted(table: np.ndarray, epsilon: float, r: float, k: int) -> np.ndarray:
    n, m = table.shape
    counts = np.zeros(n, dtype=np.int64)
    for u in range(n):
        for v in range(n):
            near = True
            for i in range(m):
                if dissimilarity(table[u, i], table[v, i], r) > epsilon:
                    near = False
                    break
            counts[u] += near
            if counts[u] == k:
                break
    return counts


@njit(nogil=True, cache=True)
def slices_counted(table: np.ndarray, epsilon: float, r: float, k: int) -> np.ndarray:
    n, m = table.shape
    counts = np.zeros(n, dtype=np.int64)
    candidates = np.empty(n, dtype=np.int64)
    for u in range(n):
        left = n
        for v in range(n):
            candidates[v] = v
        for i in range(m):
            kept = 0
            for c in range(left):
                v = candidates[c]
                if dissimilarity(table[u, i], table[v, i], r) <= epsilon:
                    candidates[kept] = v
                    kept += 1
            left = kept
            if left == 1:
                break
        counts[u] = min(left, k)
    return counts


@njit(nogil=True, cache=True)
def pairs_deviation(table: np.ndarray, sensitive: np.ndarray, epsilon: float, r: float) -> float:
    n, m = table.shape
    least = np.inf
    near = np.empty(n, dtype=np.int64)
    for u in range(n):
        found = 0
        for v in range(n):
            apart = False
            for i in range(m):
                if dissimilarity(table[u, i], table[v, i], r) > epsilon:
                    apart = True
                    break
            if not apart:
                near[found] = v
                found += 1
        for a in range(sensitive.shape[1]):
            held = sensitive[near[:found], a]
            held = held[~np.isnan(held)]
            if len(held) > 0:
                least = min(least, held.std())
    return least


def full(matrix: RatingMatrix, epsilon: float, r: float) -> np.ndarray:
    return np.minimum((full_matrix(table_of(matrix), r) <= epsilon).sum(axis=1), K)


def pairs(matrix: RatingMatrix, epsilon: float, r: float) -> np.ndarray:
    return pairs_counted(table_of(matrix), epsilon, r, K)


def slices(matrix: RatingMatrix, epsilon: float, r: float) -> np.ndarray:
    return slices_counted(table_of(matrix), epsilon, r, K)


def ours(matrix: RatingMatrix, epsilon: float, r: float) -> np.ndarray:
    return neighbours(matrix, epsilon, r=r, at_most=K)


def table_of(matrix: RatingMatrix) -> np.ndarray:
    return dense(matrix.n_users, matrix.n_items, matrix.indptr, matrix.items, matrix.values)


def matrix_of(table: np.ndarray) -> RatingMatrix:
    rated = ~np.isnan(table)
    indptr = np.concatenate([[0], np.cumsum(rated.sum(axis=1))]).astype(np.int64)
    return RatingMatrix(*table.shape, indptr, np.nonzero(rated)[1].astype(np.int32), table[rated].astype(np.float32))


def read(path: Path, delimiter: str | None, header: int) -> np.ndarray:
    """The ratings as a table of users and items, NaN where there is none."""
    columns = np.loadtxt(path, delimiter=delimiter, skiprows=header, usecols=(0, 1, 2))
    users, items = (np.unique(column, return_inverse=True)[1] for column in columns.T[:2])
    table = np.full((users.max() + 1, items.max() + 1), np.nan, dtype=np.float32)
    table[users, items] = columns[:, 2]
    return table


def clones(table: np.ndarray) -> np.ndarray:
    """47 users, each about 20 times, with one rating in ten moved by one."""
    rng = np.random.default_rng(0)
    table = table[rng.choice(len(table), 47, replace=False)[rng.integers(0, 47, len(table))]]
    moved = table + rng.choice([-1, 1], table.shape)
    return np.where(rng.random(table.shape) < 0.1, np.clip(moved, 1, 5), table).astype(np.float32)


def add(result: Result, what: str, rival: str, took: tuple[Timing, Timing], goal: float, notes: str) -> None:
    ratio = took[1].median / took[0].median
    said = f"at least {goal:g} times as fast" if goal > 1 else "at most 1.2 times as long"
    result.add(Claim(what, f"{took[0]}", rival, ratio, said, ratio >= goal, notes))


def compare(result: Result, name: str, matrix: RatingMatrix, r: float, epsilons: tuple[float, ...], runs: int) -> None:
    for epsilon in epsilons:
        # the slow ones once
        rivals: list[tuple[str, Way, float, int]] = [("pairs", pairs, 1 / 1.2, runs), ("full matrix", full, 3.0, 1)]
        if epsilon in SLICED_EPSILONS:
            rivals.append(("slicing", slices, 1 / 1.2, 1))
        expected = ours(matrix, epsilon, r)
        for called, way, goal, times in rivals:
            assert (way(matrix, epsilon, r) == expected).all(), f"{name}, {called}: other numbers"
            took = paired(lambda e=epsilon: ours(matrix, e, r), lambda e=epsilon, w=way: w(matrix, e, r), times)
            what = f"{name}, (k, eps) = ({K}, {epsilon:g}), r = {r:g}"
            add(result, what, f"{called}: {took[1]}", took, goal, f"at least {expected.min()} near")


def compare_deviation(
    result: Result, name: str, table: np.ndarray, r: float, epsilons: tuple[float, ...], runs: int
) -> None:
    """The three items with most ratings are sensitive."""
    most = np.argsort(-(~np.isnan(table)).sum(axis=0), kind="stable")[:3]
    sensitive, matrix = table[:, most].astype(np.float64), matrix_of(np.delete(table, most, axis=1))
    for epsilon in epsilons:

        def mine(e: float = epsilon) -> float:
            return least_deviation(matrix, sensitive, e, r=r)

        def theirs(e: float = epsilon) -> float:
            return pairs_deviation(table_of(matrix), sensitive, e, r)

        found, expected = mine(), theirs()
        assert found == expected or abs(found - expected) <= 1e-8, f"{name}: {found} is not {expected}"
        took = paired(mine, theirs, runs)
        what = f"{name}, (k, eps, l), eps = {epsilon:g}, r = {r:g}"
        add(result, what, f"pairs: {took[1]}", took, 1 / 1.2, f"least deviation {found:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side (default 3)")
    runs = parser.parse_args().runs
    result = Result("satisfaction")
    start = time.perf_counter()
    raw = read(DATA / "ml-100k" / "u.data", None, 0)
    filled = np.where(np.isnan(raw), np.float32(3), raw)
    tables = {"ml-100k": raw, "ml-100k, 47 groups of clones": clones(raw), "ml-100k filled with 3": filled}
    for name, table in tables.items():
        compare(result, name, matrix_of(table), R, EPSILONS, runs)
        compare_deviation(result, name, table, R, (2.0,), runs)
    # nulls that tell nothing: only the items that both have rated count
    compare(result, "ml-100k, common items", matrix_of(raw), 1.0, (1.0, 2.0), runs)
    compare_deviation(result, "ml-100k, common items", raw, 1.0, (2.0,), runs)
    large = matrix_of(read(DATA / "ml-1m" / "ratings.csv", ",", 1))
    for epsilon, r in ((1.0, R), (1.0, 1.0), (2.0, 1.0)):
        expected = ours(large, epsilon, r)
        rival = timed(lambda e=epsilon, s=r, x=expected: np.testing.assert_array_equal(pairs(large, e, s), x), 1)
        mine = timed(lambda e=epsilon, s=r: ours(large, e, s), runs)
        what = f"ml-1m, (k, eps) = ({K}, {epsilon:g}), r = {r:g}"
        add(result, what, f"pairs: {rival}", (mine, rival), 1 / 1.2, f"at least {expected.min()} near")
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
