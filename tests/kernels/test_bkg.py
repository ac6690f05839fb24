"""Bisecting K-Gather: leaves known by hand, the promises on any data, and no quadratic time on bad data."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernel_data import cpu_seconds, matrix_of, movielens_100k, split

from kgather._errors import InputError
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.measuring.quality import armse, sse
from kgather.udfs.preferences.learning import learn


def leaves(points: object, k: int, **options: int) -> set[frozenset]:
    """The groups as sets of points (numbers, or pairs of them)."""
    rows = np.asarray(points, dtype=np.float32)
    groups = gather(rows.reshape(len(rows), -1), k, **options)
    return {frozenset(map(_plain, rows[groups == group])) for group in range(groups.max() + 1)}


def _plain(point: np.ndarray) -> object:
    return float(point) if point.ndim == 0 else tuple(float(value) for value in point)


@pytest.mark.parametrize("seed", range(5))
def test_twelve_points_in_four_corners(seed: int) -> None:
    # any first cut separates x = 0 from x = 100; each half of 6 = 2k is then cut by its farthest point
    corners = [(0, 0), (0, 40), (100, 0), (100, 50)]
    points = [(x + dx, y + dy) for x, y in corners for dx, dy in ((0, 0), (1, 0), (0, 2))]
    expected = {frozenset((float(x + dx), float(y + dy)) for dx, dy in ((0, 0), (1, 0), (0, 2))) for x, y in corners}
    assert leaves(points, 3, seed=seed) == expected


def test_split_rule_for_2k_to_3k() -> None:
    # centroid 9.4: 30 is the farthest and takes the 2 nearest to itself
    assert leaves([0, 1, 2, 10, 11, 12, 30], 3) == {frozenset([30, 12, 11]), frozenset([0, 1, 2, 10])}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sign", [1, -1])
def test_borrow_rule(seed: int, sign: int) -> None:
    # whatever record is drawn, 100 stands alone and borrows 7 and 6; of the other 6, centroid 2.3, -1 is the farthest
    points = np.array([100, -1, 7, 1, 2, 6, 3, 4, 5]) * sign
    expected = {frozenset(sign * x for x in group) for group in ([100, 7, 6], [-1, 1, 2], [3, 4, 5])}
    assert leaves(points, 3, seed=seed) == expected


def _by_the_book(points: np.ndarray, k: int) -> set[frozenset]:
    """Algorithm 1 for 3k <= n < 4k with every record tried, written down with no regard to speed."""
    centroid = points.mean(axis=0)
    best = None
    for c_left in points:
        c_right = centroid - (c_left - centroid)
        left = ((points - c_left) ** 2).sum(axis=1) <= ((points - c_right) ** 2).sum(axis=1)
        error = sum(((side - side.mean(axis=0)) ** 2).sum() for side in (points[left], points[~left]))
        if best is None or error < best[0]:
            best = (error, left)
    sides = sorted((np.flatnonzero(best[1]), np.flatnonzero(~best[1])), key=len)
    small, large = sides
    if len(small) < k:
        distance = ((points[large] - points[small].mean(axis=0)) ** 2).sum(axis=1)
        taken = large[np.argsort(distance)[: k - len(small)]]
        small, large = np.concatenate([small, taken]), np.setdiff1d(large, taken)
    groups = []
    for side in (small, large):
        if len(side) < 2 * k:
            groups.append(side)
            continue
        farthest = side[((points[side] - points[side].mean(axis=0)) ** 2).sum(axis=1).argmax()]
        near = side[np.argsort(((points[side] - points[farthest]) ** 2).sum(axis=1))[:k]]
        groups += [near, np.setdiff1d(side, near)]
    return {frozenset(group.tolist()) for group in groups}


@pytest.mark.parametrize("seed", range(40))
def test_same_as_the_algorithm_as_written(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n = int(rng.integers(3 * k, 4 * k))
    points = (rng.standard_normal((n, 2)) * [3, 1] + rng.exponential(2, (n, 1))).astype(np.float32)
    groups = gather(points, k, tries=40 * n, seed=seed)
    found = {frozenset(np.flatnonzero(groups == group).tolist()) for group in range(groups.max() + 1)}
    assert found == _by_the_book(points.astype(np.float64), k)


def _check_promises(groups: np.ndarray, n: int, k: int) -> None:
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    assert groups.min() == 0
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_promises_on_any_data(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 7))
    n = data.draw(st.integers(k, 90))
    width = data.draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, -3e38]) | st.floats(-5, 5, width=32)
    points = data.draw(arrays(np.float32, (n, width), elements=values))
    groups = gather(points, k, tries=data.draw(st.integers(1, 5)), seed=data.draw(st.integers(-5, 5)))
    _check_promises(groups, n, k)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 10_000])
def test_k_of_one_and_sizes_at_the_borders(n: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 2))
    assert sorted(gather(points, 1)) == list(range(n))
    for k in {n, (n + 1) // 2, (n + 2) // 3, max(n // 3, 1)}:
        _check_promises(gather(points, k), n, k)


def test_seed_decides_and_input_is_left_alone() -> None:
    points = np.random.default_rng(0).standard_normal((20_000, 4)).astype(np.float32)
    before = points.copy()
    first = gather(points, 5, seed=7)
    assert np.array_equal(first, gather(points, 5, seed=7))
    assert not np.array_equal(first, gather(points, 5, seed=8))
    assert np.array_equal(points, before)
    # views, other orders and types of the same numbers are the same data
    assert np.array_equal(first, gather(np.asfortranarray(points), 5, seed=7))
    assert np.array_equal(first, gather(points.astype(np.float64), 5, seed=7))


def test_more_tries_and_smaller_groups_lose_less() -> None:
    points = np.random.default_rng(1).standard_normal((9_000, 5)).astype(np.float32)
    by_tries = [sse(points, gather(points, 5, tries=tries)) for tries in (1, 4, 20)]
    by_k = [sse(points, gather(points, k)) for k in (40, 10, 3)]
    for losses in (by_tries, by_k):
        assert all(later < earlier for earlier, later in pairwise(losses))


BAD = {
    "equal": lambda n, _: np.full((n, 4), 0.1),
    "nine tenths equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4))),
    "seven points": lambda n, rng: rng.standard_normal((7, 4))[rng.integers(0, 7, n)],
    "zipf over 1000 points": lambda n, rng: rng.standard_normal((1000, 4))[np.minimum(rng.zipf(1.3, n), 1000) - 1],
    "chain of outliers": lambda n, _: np.where(np.arange(n) < 400, 1.2 ** np.arange(n).clip(0, 400), 0)[:, None],
    "cauchy": lambda n, rng: rng.standard_cauchy((n, 4)),
    "zeros and two far ones": lambda n, _: np.where(np.arange(n) < 2, 1e38 * (-1.0) ** np.arange(n), 0)[:, None],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_takes_no_quadratic_time(name: str) -> None:
    # No claim of speed: at this size a quadratic kernel takes hundreds of times as long as on good data.
    n, k = 240_000, 5
    rng = np.random.default_rng(0)
    usual = _seconds(rng.standard_normal((n, 4)), k)
    points = BAD[name](n, rng).astype(np.float32)
    _check_promises(gather(points, k, tries=5), n, k)
    assert _seconds(points, k) <= 20 * usual


def _seconds(points: np.ndarray, k: int) -> float:
    return cpu_seconds(lambda: gather(points, k, tries=5))


@pytest.mark.parametrize(
    ("vectors", "k", "says"),
    [
        (np.zeros((4, 2)), 5, "4 users .* at least 5"),
        (np.zeros((0, 2)), 1, "0 users .* at least 1"),
        (np.zeros((4, 2)), 0, "k must be at least 1, not 0"),
        (np.zeros((4, 2)), -3, "k must be at least 1"),
        (np.zeros((4, 2)), 2.5, "k must be a whole number"),
        (np.zeros((4, 2)), True, "k must be a whole number"),
        (np.zeros((4, 2)), "3", "k must be a whole number"),
        (np.array([[1.0], [np.nan], [np.inf], [2.0]]), 2, "2 of 4 preference vectors"),
        (np.array([[1e300], [0.0]]), 1, "1 of 2 preference vectors"),
        (np.zeros((4, 0)), 2, "at least one column"),
        (np.zeros(4), 2, "at least one column"),
        (np.array([["a"], ["b"]]), 1, "must be numbers"),
    ],
)
def test_refuses(vectors: np.ndarray, k: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        gather(vectors, k)


@pytest.mark.parametrize("tries", [0, 1.5, None])
def test_refuses_tries(tries: object) -> None:
    with pytest.raises(InputError, match="tries must be"):
        gather(np.zeros((4, 2)), 2, tries=tries)


@pytest.mark.parametrize("seed", [1 << 64, 0.5, None])
def test_refuses_seeds(seed: object) -> None:
    with pytest.raises(InputError, match="seed must be"):
        gather(np.zeros((4, 2)), 2, seed=seed)


def test_numpy_whole_numbers_are_welcome() -> None:
    _check_promises(gather(np.zeros((9, 2)), np.int64(3), tries=np.uint8(2), seed=np.int32(-1)), 9, 3)


@pytest.mark.parametrize(("k", "published"), [(3, 0.0216), (5, 0.0301), (10, 0.0425)])
def test_armse_on_movielens(data_dir, k: int, published: float) -> None:
    """Plain Funk factors of 80% of the ratings, three splits, twenty runs on each."""
    ratings, n, m = movielens_100k(data_dir)
    errors = []
    for seed in range(3):
        vectors = learn(matrix_of(split(ratings, seed)[0], n, m), solver="funk", rank=10).user_factors
        errors.append([armse(vectors, gather(vectors, k, seed=run)) for run in range(20)])
    assert np.mean(errors) == pytest.approx(published, rel=0.1)
    assert np.std(errors, axis=1).max() < 0.05 * np.mean(errors)
