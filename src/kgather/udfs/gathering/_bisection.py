"""How Bisecting K-Gather cuts a set of records (X. Chen's thesis, section 3.2, algorithm 1), for the methods built on
it.

The records of a part are the rows lo:hi of one array, which the kernels reorder (see `reordering`). Scratch arrays
are handed in, so that no node of the tree allocates any.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, mix
from kgather.udfs._shared.one_type import int64
from kgather.udfs._shared.reordering import bring_smallest, swap

LOPSIDED = 64
"""A side of fewer than 1/64 of the records is lopsided."""
LOPSIDED_MAX = 8
"""Lopsided bisections on the way from the root to a group; from there on they are guarded against."""
STACK = 128
"""Parts that may wait where the larger part of a cut is put down first: never more than log2(n) + 1."""
_SAMPLE_ABOVE = 4096
_SAMPLE = 1024


@njit(nogil=True, cache=True, inline="always")
def put_down(stack: NDArray[np.int64], depth: int, lo: int, border: int, hi: int, lopsided: int) -> int:
    """Puts both parts of a cut on the stack, int64[STACK, 3], the larger one first; returns the new depth."""
    first_larger = border - lo > hi - border
    for part in range(2):
        if (part == 0) == first_larger:
            stack[depth, 0], stack[depth, 1] = lo, border
        else:
            stack[depth, 0], stack[depth, 1] = border, hi
        stack[depth, 2] = lopsided
        depth += 1
    return depth


@njit(nogil=True, cache=True)
def mean_of(rows: NDArray[np.float32], lo: int, hi: int, out: NDArray[np.float64]) -> None:
    for a in range(rows.shape[1]):
        out[a] = 0.0
    for i in range(lo, hi):
        for a in range(rows.shape[1]):
            out[a] += rows[i, a]
    for a in range(rows.shape[1]):
        out[a] /= hi - lo


@njit(nogil=True, cache=True)
def squared_distances(
    rows: NDArray[np.float32], lo: int, hi: int, point: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """out[lo:hi] = squared distances to the point."""
    for i in range(lo, hi):
        total = 0.0
        for a in range(rows.shape[1]):
            gap = rows[i, a] - point[a]
            total += gap * gap
        out[i] = total


@njit(nogil=True, cache=True, inline="always")
def _score_tries(
    rows: NDArray[np.float32],
    lo: int,
    hi: int,
    centroid: NDArray[np.float64],
    tries: int,
    random: np.uint64,
    planes: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    total: NDArray[np.float64],
) -> int:
    """Draws the records of all tries and sums up the left side of each; returns how many records were
    looked at.

    planes float64[tries, d]: c_L - centroid. sums float64[tries, d] and counts int64[tries]: sum of the
    records (relative to the centroid) and their number on the side of c_L. total float64[d]: the sum over
    both sides.
    """
    n, d = hi - lo, rows.shape[1]
    state = random
    for t in range(tries):
        state = mix(state)
        picked = lo + np.int64(state % np.uint64(n))
        counts[t] = 0
        for a in range(d):
            planes[t, a] = rows[picked, a] - centroid[a]
            sums[t, a] = 0.0
    for a in range(d):
        total[a] = 0.0
    sampled = n > _SAMPLE_ABOVE
    looked = _SAMPLE if sampled else n
    y = np.empty(d)
    for s in range(looked):
        i = np.int64(lo + s)
        if sampled:  # one record of each of 1,024 stretches
            state = mix(state)
            start = lo + s * n // _SAMPLE
            stop = lo + (s + 1) * n // _SAMPLE
            i = start + np.int64(state % np.uint64(stop - start))
        for a in range(d):
            y[a] = rows[i, a] - centroid[a]
            total[a] += y[a]
        for t in range(tries):
            side = 0.0
            for a in range(d):
                side += y[a] * planes[t, a]
            if side >= 0.0:  # as near to c_L as to c_R, or nearer
                counts[t] += 1
                for a in range(d):
                    sums[t, a] += y[a]
    return looked


@njit(nogil=True, cache=True)
def _choose_try(
    sums: NDArray[np.float64], counts: NDArray[np.int64], total: NDArray[np.float64], looked: int, least: int
) -> tuple[int, float]:
    """The try of the lowest sum of squares (the highest between the sides) with `least` records on both
    sides.

    Returns (-1, 0.0) if there is none.
    """
    best, best_score = -1, 0.0
    for t in range(len(counts)):
        left = counts[t]
        right = looked - left
        if left < least or right < least:
            continue
        of_left, of_right = 0.0, 0.0
        for a in range(sums.shape[1]):
            of_left += sums[t, a] * sums[t, a]
            rest = total[a] - sums[t, a]
            of_right += rest * rest
        score = of_left / left + of_right / right
        if best < 0 or score > best_score:
            best, best_score = t, score
    return best, best_score


@njit(nogil=True, cache=True, inline="always")
def _part(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    centroid: NDArray[np.float64],
    plane: NDArray[np.float64],
) -> int:
    """Moves the side of c_L to the front of lo:hi; returns where the other side begins."""
    i, j = lo, hi
    while i < j:
        side = 0.0
        for a in range(rows.shape[1]):
            side += (rows[i, a] - centroid[a]) * plane[a]
        if side >= 0.0:
            i += 1
        else:
            j -= 1
            if i != j:
                swap(rows, order, i, j)
    return i


@njit(nogil=True, cache=True, inline="always")
def _widest_axis(
    rows: NDArray[np.float32], lo: int, hi: int, centroid: NDArray[np.float64], plane: NDArray[np.float64]
) -> bool:
    """Sets the plane to the axis of the largest variance; False if the records are all equal."""
    axis, widest = 0, 0.0
    for a in range(rows.shape[1]):
        plane[a] = 0.0
        spread = 0.0
        for i in range(lo, hi):
            gap = rows[i, a] - centroid[a]
            spread += gap * gap
        if spread > widest:
            axis, widest = a, spread
    plane[axis] = 1.0
    return widest > 0.0


@njit(nogil=True, cache=True, inline="always")
def _halve(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    centroid: NDArray[np.float64],
    plane: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """Moves the half that lies farthest towards the plane's direction to the back of lo:hi; returns the
    middle.
    """
    for i in range(lo, hi):
        side = 0.0
        for a in range(rows.shape[1]):
            side += (rows[i, a] - centroid[a]) * plane[a]
        key[i] = side
    middle = lo + (hi - lo) // 2
    bring_smallest(rows, order, lo, hi, middle - lo, key, spare)
    return middle


@njit(nogil=True, cache=True, inline="always")
def split_by_farthest(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    k: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """Cuts 2k to 3k - 1 records (step 7.B): the one farthest from the centroid and the k - 1 nearest to it come
    first; returns lo + k.
    """
    mean_of(rows, lo, hi, centroid)
    squared_distances(rows, lo, hi, centroid, key)
    farthest = lo
    for i in range(lo + 1, hi):
        if key[i] > key[farthest]:
            farthest = i
    for a in range(rows.shape[1]):
        centroid[a] = rows[farthest, a]
    swap(rows, order, lo, farthest)
    squared_distances(rows, lo + 1, hi, centroid, key)
    bring_smallest(rows, order, lo + 1, hi, k - 1, key, spare)
    return lo + k


@njit(nogil=True, cache=True, inline="always")
def bisect(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    tries: int,
    seed: np.uint64,
    guarded: bool,
    centroid: NDArray[np.float64],
    planes: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    total: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """Cuts the records lo:hi (at least 2) in two sides (steps 1 to 4); returns the border. Neither side is empty.

    guarded: no side may be lopsided. Where no try will do, the records are cut in halves. Scratch: centroid and
    total float64[d], planes and sums float64[tries, d], counts int64[tries], key and spare float64[n].
    O(tries n d) up to 4,096 records, O(n d) above.
    """
    n = hi - lo
    mean_of(rows, lo, hi, centroid)
    looked = _score_tries(rows, lo, hi, centroid, tries, keyed(seed, lo, hi), planes, sums, counts, total)
    least = max(1, looked // LOPSIDED) if guarded else 1
    best, _ = _choose_try(sums, counts, total, looked, least)
    if best >= 0:
        border = _part(rows, order, lo, hi, centroid, planes[best])
        smaller = min(border - lo, hi - border)
        # a sample may promise more than the whole keeps
        if smaller > 0 and not (guarded and smaller < n // (2 * LOPSIDED)):
            return border
    if best < 0:
        best, _ = _choose_try(sums, counts, total, looked, int64(1))
    if best < 0 and not _widest_axis(rows, lo, hi, centroid, planes[0]):
        return lo + n // 2  # all records are equal
    return _halve(rows, order, lo, hi, centroid, planes[max(best, 0)], key, spare)


@njit(nogil=True, cache=True, inline="always")
def fill_up(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    lo: int,
    border: int,
    hi: int,
    k: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """A side of fewer than k records takes the nearest of the other side (step 6); returns the new border.

    There are at least 2k - 1 records, so at most one side is short of any. O((hi - lo) d).
    """
    left, right = border - lo, hi - border
    if left < k:
        mean_of(rows, lo, border, centroid)
        squared_distances(rows, border, hi, centroid, key)
        bring_smallest(rows, order, border, hi, k - left, key, spare)
        return lo + k
    if right < k:
        # the nearest have to end at the border, so the smallest of the negative go first
        mean_of(rows, border, hi, centroid)
        squared_distances(rows, lo, border, centroid, key)
        for i in range(lo, border):
            key[i] = -key[i]
        bring_smallest(rows, order, lo, border, left - (k - right), key, spare)
        return hi - k
    return border
