"""Bisecting K-Gather: users into groups of k to 2k - 1 near ones (X. Chen's thesis, section 3.2, algorithm
1).

The set is bisected by the plane half way between a random record and its mirror image in the centroid; of
several tries the one with the smallest sum of squares is kept. A side of fewer than k records takes the
nearest records of the other one, a part of 2k to 3k - 1 records is cut by its farthest record, smaller
parts are groups.

Two things are added, and neither shows on small or well-behaved data:

- a part of more than 4,096 records scores its tries on a sample of 1,024 of them;
- data with far outliers or many equal records would cut off a few records at a time, which is quadratic. On
  the way from the root to a group at most 8 bisections may be lopsided (smaller side below 1/64); from
  there on only tries with two larger sides count, and where there is none the part is cut in halves at the
  median of the best direction.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs.gathering._bisection import (
    LOPSIDED,
    LOPSIDED_MAX,
    STACK,
    bisect,
    fill_up,
    put_down,
    split_by_farthest,
)


def gather(vectors: NDArray[np.floating | np.integer], k: int, *, tries: int = 10, seed: int = 0) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1; every group has k to 2k - 1 members.

    vectors: float32[n, d] (other real types are converted), one row a user, any unit (the distance is
    Euclidean). tries: bisections tried at every node. seed: the same seed gives the same groups. Expected
    time O(tries n d log n); memory: one copy of the vectors and 24 bytes a user.

    Raises InputError if k or tries is no whole number >= 1, seed is none of 64 bits, there are fewer than k users,
    the vectors are no two-dimensional table with at least one column, or some are not finite.
    """
    tries = whole("tries", tries, 1)
    seed = seed_number(seed)
    rows, k = checked_vectors(vectors, k)
    n = len(rows)
    order = np.arange(n, dtype=np.int32)
    groups = np.empty(n, dtype=np.int32)
    _gather(rows, order, k, tries, seed64(seed), groups)
    return groups


@njit(nogil=True, cache=True)
def _gather(
    rows: NDArray[np.float32], order: NDArray[np.int32], k: int, tries: int, seed: np.uint64, groups: NDArray[np.int32]
) -> None:
    n, d = rows.shape
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((tries, d)), np.empty((tries, d)), np.empty(tries, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((STACK, 3), dtype=np.int64)  # lo, hi, lopsided bisections above
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
    depth = 1
    group = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        size = hi - lo
        if size < 2 * k:
            for i in range(lo, hi):
                groups[order[i]] = group
            group += np.int32(1)
            continue
        if size < 3 * k:
            border = split_by_farthest(rows, order, lo, hi, k, centroid, key, spare)
        else:
            guarded = lopsided >= LOPSIDED_MAX
            border = bisect(
                rows, order, lo, hi, tries, seed, guarded, centroid, planes, sums, counts, total, key, spare
            )
            border = fill_up(rows, order, lo, border, hi, k, centroid, key, spare)
            if min(border - lo, hi - border) * LOPSIDED < size:
                lopsided += 1
        depth = put_down(stack, depth, lo, border, hi, lopsided)
