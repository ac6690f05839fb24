"""Groups for any levels, by bisection: where customized k-anonymity starts (see kgather.udfs.gathering.customized)."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.reordering import bring_smallest
from kgather.udfs.gathering._bisection import (
    LOPSIDED,
    LOPSIDED_MAX,
    STACK,
    bisect,
    fill_up,
    mean_of,
    put_down,
    split_by_farthest,
    squared_distances,
)

_BATCH = 256  # of a large part, at most one user in 256 is let go at a time
_ZERO: Any = np.int64(0)  # where a plain 0 would make numba compile once more


@njit(nogil=True, cache=True)
def _highest(levels: NDArray[np.int64], order: NDArray[np.int32], lo: int, hi: int) -> int:
    found = 1
    for i in range(lo, hi):
        found = max(found, levels[order[i]])
    return found


@njit(nogil=True, cache=True)
def _fill_side(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    levels: NDArray[np.int64],
    lo: int,
    border: int,
    hi: int,
    highest: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """A side that is too small for its levels takes the nearest of the other side; returns the new border.

    There are at least 3 times `highest` records, the highest level of all. Taken are users of no higher level than
    the side has; if there are too few of them, anyone, up to `highest`.
    """
    left, right = border - lo, hi - border
    if left >= highest and right >= highest:
        return border
    first = left < right
    side = _highest(levels, order, lo, border) if first else _highest(levels, order, border, hi)
    smaller = min(left, right)
    if smaller >= side:
        return border
    fitting = 0
    for i in range(border if first else lo, hi if first else border):
        fitting += levels[order[i]] <= side
    if fitting < side - smaller:
        return fill_up(rows, order, lo, border, hi, highest, centroid, key, spare)
    if first:
        mean_of(rows, lo, border, centroid)
        squared_distances(rows, border, hi, centroid, key)
        for i in range(border, hi):
            if levels[order[i]] > side:
                key[i] = np.inf
        bring_smallest(rows, order, border, hi, side - smaller, key, spare)
        return lo + side
    mean_of(rows, border, hi, centroid)
    squared_distances(rows, lo, border, centroid, key)
    for i in range(lo, border):
        key[i] = -key[i] if levels[order[i]] <= side else -np.inf
    # the nearest fitting ones have the largest keys, those that do not fit the smallest
    bring_smallest(rows, order, lo, border, left - (side - smaller), key, spare)
    return hi - side


@njit(nogil=True, cache=True)
def _let_go_alone(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    levels: NDArray[np.int64],
    lo: int,
    hi: int,
    highest: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """Brings the users of level 1 that can be spared to the front, the farthest first.

    Returns where the rest begins.
    """
    while hi - lo > highest:
        mean_of(rows, lo, hi, centroid)
        squared_distances(rows, lo, hi, centroid, key)
        ones = 0
        for i in range(lo, hi):
            if levels[order[i]] == 1:
                key[i] = -key[i]
                ones += 1
            else:
                key[i] = 1.0
        if ones == 0:
            break
        count = min(ones, hi - lo - highest, max(1, (hi - lo) // _BATCH))
        bring_smallest(rows, order, lo, hi, count, key, spare)
        lo += count
    return lo


@njit(nogil=True, cache=True)
def _let_go_together(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    levels: NDArray[np.int64],
    lo: int,
    hi: int,
    highest: int,
    centroid: NDArray[np.float64],
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> int:
    """Brings as many users as can be spared and satisfy their levels among themselves to the front: those nearest to
    the farthest of them. Returns where the rest begins.
    """
    slack = hi - lo - highest
    if slack < 2:
        return lo
    of_level = np.zeros(slack + 1, dtype=np.int64)
    for i in range(lo, hi):
        if levels[order[i]] <= slack:
            of_level[levels[order[i]]] += 1
    together, most = _ZERO, _ZERO
    for level in range(1, slack + 1):
        together += of_level[level]
        if together >= level:
            most = level
    if most == 0:
        return lo
    mean_of(rows, lo, hi, centroid)
    squared_distances(rows, lo, hi, centroid, key)
    seed = -1
    for i in range(lo, hi):
        if levels[order[i]] <= most and (seed < 0 or key[i] > key[seed]):
            seed = i
    for a in range(rows.shape[1]):
        centroid[a] = rows[seed, a]
    squared_distances(rows, lo, hi, centroid, key)
    for i in range(lo, hi):
        if levels[order[i]] > most:
            key[i] = np.inf
    bring_smallest(rows, order, lo, hi, most, key, spare)
    return lo + most


@njit(nogil=True, cache=True)
def start(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    levels: NDArray[np.int64],
    tries: int,
    seed: np.uint64,
    groups: NDArray[np.int32],
) -> int:
    """Gathers the users order[:] (the rows, which are reordered) by their levels; returns the number of groups.

    rows float32[n, d], order int32[n], levels int64 and groups int32 by the numbers in `order`; n is at least the
    highest level.
    """
    n, d = rows.shape
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((tries, d)), np.empty((tries, d)), np.empty(tries, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((STACK, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
    depth = 1
    group = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        size = hi - lo
        highest = _highest(levels, order, lo, hi)
        if size < 2 * highest or highest == 1:
            rest = hi if highest == 1 else _let_go_alone(rows, order, levels, lo, hi, highest, centroid, key, spare)
            for i in range(lo, rest):
                groups[order[i]] = group
                group += np.int32(1)
            border = _let_go_together(rows, order, levels, rest, hi, highest, centroid, key, spare)
            if border == rest:
                for i in range(rest, hi):
                    groups[order[i]] = group
                if rest < hi:
                    group += np.int32(1)
                continue
            lo = rest
        elif size < 3 * highest:
            border = split_by_farthest(rows, order, lo, hi, highest, centroid, key, spare)
        else:
            guarded = lopsided >= LOPSIDED_MAX
            border = bisect(
                rows, order, lo, hi, tries, seed, guarded, centroid, planes, sums, counts, total, key, spare
            )
            border = _fill_side(rows, order, levels, lo, border, hi, highest, centroid, key, spare)
            if min(border - lo, hi - border) * LOPSIDED < size:
                lopsided += 1
        depth = put_down(stack, depth, lo, border, hi, lopsided)
    return int(group)
