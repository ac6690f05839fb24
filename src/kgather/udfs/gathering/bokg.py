"""Bisecting One-K-Gather: users of level k into groups of at least k, users of level 1 alone where they stick out
(X. Chen's thesis, section 5.3, algorithm 2 with the functions CHECK_ALL_ONE and LEAVE_ONE_OUT).

The set is bisected as in Bisecting K-Gather. A side of fewer than k records whose users all have level 1 is
taken apart, every user alone; another one takes the nearest records of the other side. A part of 2k to 3k - 1
records is cut by its farthest record: the group of k around that record is taken apart if all have level 1, the
rest goes on as a part of k to 2k - 1. Such a part sends away its farthest user of level 1, as long as there are
more than k left and that user's distance to the centroid is at least the standard deviation.

Where the thesis leaves something open:

- The standard deviation is the root of the mean squared distance to the centroid (over n, not n - 1). The user
  that left counts no more in the next centroid and deviation. Of equally distant users the first one leaves.
- A set of fewer than 3k users is not bisected: it is a part of 2k to 3k - 1, or of k to 2k - 1, at once.
- Parts of 512 records or more send away up to 1/256 of their records at a time, each at least one standard deviation
  away, because one at a time would be quadratic in k. Smaller parts do as written.
- Large parts and lopsided bisections are treated as in Bisecting K-Gather (see `bkg`).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.hashing import seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs._shared.reordering import bring_smallest
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs.gathering._bisection import (
    LOPSIDED,
    LOPSIDED_MAX,
    STACK,
    bisect,
    fill_up,
    mean_of,
    split_by_farthest,
    squared_distances,
)
from kgather.udfs.gathering._levels import checked_levels

_BATCH = 256  # at most one record in 256 leaves at a time
_EQUAL = 1 - 1e-12  # a distance that differs from the deviation by rounding only counts as equal to it


def gather(
    vectors: NDArray[np.floating | np.integer],
    k: int,
    levels: NDArray[np.integer],
    *,
    tries: int = 10,
    seed: int = 0,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1: k to 2k - 1 members, or one user of level 1.

    vectors: float32[n, d] (other real types are converted), one row a user, any unit (the distance is
    Euclidean). levels: int[n], 1 or k. tries: bisections tried at every node. seed: the same seed gives the same
    groups. Expected time O(tries n d log n + n d min(k, 256 log k)); memory: one copy of the vectors and 32 bytes
    a user.

    Raises InputError if a level is neither 1 nor k (saying how many are not), and as `bkg.gather` does.
    """
    tries = whole("tries", tries, 1)
    seed = seed_number(seed)
    rows, k = checked_vectors(vectors, k)
    n = len(rows)
    wanted = checked_levels(levels, n)
    refuse_other_levels(other_levels(wanted, k), n, k)
    order = np.arange(n, dtype=np.int32)
    groups = np.empty(n, dtype=np.int32)
    _gather(rows, order, wanted == 1, k, tries, seed64(seed), groups)
    return groups


def other_levels(levels: NDArray[np.integer], k: int) -> int:
    """How many levels, int[n], are neither 1 nor k."""
    return int(((levels != 1) & (levels != k)).sum())


def refuse_other_levels(others: int, n: int, k: int) -> None:
    """Raise InputError where some of n users have a level that is neither 1 nor k."""
    if others:
        msg = f"{others} of {n} users have a level other than 1 and {k}; the method customized takes any levels."
        raise InputError(msg)


@njit(nogil=True, cache=True)
def _all_one(alone: NDArray[np.bool_], order: NDArray[np.int32], lo: int, hi: int) -> bool:
    """CHECK_ALL_ONE, the question only: has every record of lo:hi level 1?"""
    ones = 0
    for i in range(lo, hi):
        ones += alone[order[i]]
    return ones == hi - lo


@njit(nogil=True, cache=True)
def _leave(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    alone: NDArray[np.bool_],
    lo: int,
    hi: int,
    k: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """LEAVE_ONE_OUT for k records or more, not all of level 1: brings those that leave to the front of lo:hi.

    Returns where those that stay begin. alone bool[users]: level 1, by user. O(n d) for every batch that leaves.
    """
    while hi - lo > k:
        mean_of(rows, lo, hi, centroid)
        squared_distances(rows, lo, hi, centroid, key)
        total = 0.0
        for i in range(lo, hi):
            total += key[i]
        variance = total / (hi - lo) * _EQUAL
        out = 0
        for i in range(lo, hi):
            if alone[order[i]] and key[i] >= variance:
                key[i] = -key[i]
                out += 1
            else:
                key[i] = 1.0  # stays
        if out == 0:
            break
        batch = min(out, hi - lo - k, max(1, (hi - lo) // _BATCH))
        bring_smallest(rows, order, lo, hi, batch, key, spare)
        lo += batch
    return lo


@njit(nogil=True, cache=True)
def _gather(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    alone: NDArray[np.bool_],
    k: int,
    tries: int,
    seed: np.uint64,
    groups: NDArray[np.int32],
) -> None:
    n, d = rows.shape
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((tries, d)), np.empty((tries, d)), np.empty(tries, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((STACK, 4), dtype=np.int64)  # lo, hi, lopsided bisections above, 1: no user may leave it
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, 0, 0
    depth = 1
    group = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided, closed = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        size = hi - lo
        if size < 2 * k:
            # a side short of k gets here only if all its users have level 1
            stay = hi
            if not _all_one(alone, order, lo, hi):
                stay = lo if closed else _leave(rows, order, alone, lo, hi, k, centroid, key, spare)
            for i in range(lo, stay):
                groups[order[i]] = group
                group += np.int32(1)
            for i in range(stay, hi):
                groups[order[i]] = group
            if stay < hi:
                group += np.int32(1)
            continue
        farthest = size < 3 * k
        if farthest:
            border = split_by_farthest(rows, order, lo, hi, k, centroid, key, spare)
        else:
            guarded = lopsided >= LOPSIDED_MAX
            border = bisect(
                rows, order, lo, hi, tries, seed, guarded, centroid, planes, sums, counts, total, key, spare
            )
            first_short = border - lo < k and _all_one(alone, order, lo, border)
            second_short = hi - border < k and _all_one(alone, order, border, hi)
            if not first_short and not second_short:
                border = fill_up(rows, order, lo, border, hi, k, centroid, key, spare)
            if min(border - lo, hi - border) * LOPSIDED < size:
                lopsided += 1
        first_larger = border - lo > hi - border
        for part in range(2):
            if (part == 0) == first_larger:
                stack[depth, 0], stack[depth, 1] = lo, border
                stack[depth, 3] = 1 if farthest else 0
            else:
                stack[depth, 0], stack[depth, 1] = border, hi
                stack[depth, 3] = 0
            stack[depth, 2] = lopsided
            depth += 1
