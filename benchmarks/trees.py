"""Hand-written searches for near users against scipy.spatial.cKDTree: what each is worth.

    make bench-trees

- MDAV takes the users of each group out of its tree. A cKDTree cannot lose points: it is built anew whenever half of
  them are gone, and asked for more until enough are left. The rival is timed for the nearest users of each group alone,
  MDAV for all that it does.
- Groups that are not diverse look for the eight nearest centroids. Where many are equal each looks near its own place,
  which a cKDTree does not know: it puts equal points in one leaf and reads them all for each of them.
- Refining looks for some near users only, in cells.

One thread each. Needs no data. Writes benchmarks/results/trees.{md,json}.
"""

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from harness import Claim, Result, paired
from numba import njit
from scipy.spatial import cKDTree

from kgather.udfs.diversity.sensitive_diversity import _nearest, _tree
from kgather.udfs.gathering import mdav
from kgather.udfs.refining._near import near_users

K = 10
NEAR = 8
SLOWER = 1 / 1.2


def taste(n: int, d: int) -> np.ndarray:
    """Users around 20 tastes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, d))[rng.integers(0, 20, n)] * 2 + rng.normal(size=(n, d))


def nearest_left(rows: np.ndarray, groups: np.ndarray) -> None:
    """The K nearest users left around one of each group, group after group as MDAV forms them."""
    members = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[members], np.arange(groups.max() + 2))
    gone = np.zeros(len(rows), dtype=bool)
    ids = np.arange(len(rows))
    tree, left = cKDTree(rows), len(rows)
    for lo, hi in pairwise(starts):
        own = members[lo:hi]
        asked = 2 * K
        while True:
            found = tree.query(rows[own[0]], k=min(asked, len(ids)))[1]
            if (~gone[ids[found]]).sum() >= min(K, left) or asked >= len(ids):
                break
            asked *= 2
        gone[own] = True
        left -= len(own)
        if 0 < left < len(ids) // 2:
            ids = np.flatnonzero(~gone)
            tree = cKDTree(rows[ids])


@njit(nogil=True, cache=True)
def _all_nearest(
    centres: np.ndarray, order: np.ndarray, place: np.ndarray, nodes: np.ndarray, boxes: np.ndarray, found: np.ndarray
) -> None:
    far = np.empty(found.shape[1])
    for group in range(len(centres)):
        _nearest(group, centres, order, place, nodes, boxes, found[group], far)


def nearest_centroids(centres: np.ndarray) -> np.ndarray:
    by_coordinate = np.argsort(centres, axis=0, kind="stable")
    rank = np.argsort(by_coordinate, axis=0)
    found = np.full((len(centres), NEAR), -1)
    _all_nearest(centres, *_tree(centres, by_coordinate, rank, np.arange(len(centres))), found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side (default 3)")
    runs = parser.parse_args().runs
    result = Result("trees")

    def add(what: str, ours: Callable[[], object], rival: Callable[[], object], notes: str = "") -> None:
        ours()  # compiled
        mine, theirs = paired(ours, rival, runs)
        ratio = theirs.median / mine.median
        said = "at most 1.2 times as long"
        result.add(Claim(what, f"{mine}", f"cKDTree: {theirs}", ratio, said, ratio >= SLOWER, notes))

    for n, d in ((20_000, 3), (20_000, 12), (100_000, 3)):
        rows = taste(n, d)
        groups = mdav.gather(rows, K)
        add(
            f"MDAV, {n:,} users, {d} columns",
            lambda rows=rows: mdav.gather(rows, K),
            lambda rows=rows, groups=groups: nearest_left(rows, groups),
        )
    for n, d in ((10_000, 3), (10_000, 12), (200_000, 3)):
        centres = taste(n, d)
        add(
            f"nearest centroids, {n:,} groups, {d} columns",
            lambda centres=centres: nearest_centroids(centres),
            lambda centres=centres: cKDTree(centres).query(centres, k=NEAR + 1),
        )
    for n in (5_000, 20_000):
        equal = np.zeros((n, 3))
        add(
            f"nearest centroids, {n:,} equal groups",
            lambda equal=equal: nearest_centroids(equal),
            lambda equal=equal: cKDTree(equal).query(equal, k=NEAR + 1),
            "quadratic in a cKDTree",
        )
    for d in (3, 11):
        rows = taste(12_800, d)
        exact = cKDTree(rows).query(rows, k=5)[1][:, 1:]
        found = near_users(rows, 4)
        share = np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, exact, strict=True)]) / 4
        add(
            f"near users of a block of 12,800, {d} columns",
            lambda rows=rows: near_users(rows, 4),
            lambda rows=rows: cKDTree(rows).query(rows, k=5),
            f"{share:.0%} of the nearest four are found",
        )


if __name__ == "__main__":
    main()
