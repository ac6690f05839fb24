"""Mondrian: the table is cut in two, again and again, at the median of its widest column (LeFevre, DeWitt
and Ramakrishnan 2006, strict multidimensional partitioning; the rival of Riyana and Natwichai 2018, section 5).

A cut must leave k or more users on both sides, and users with equal values in its column stay together. The
column is the one with the widest range of values in the part, each range divided by the column's range in the
whole table; the cut puts the values up to the median on one side. Where that leaves too few on a side the next
widest column is tried. Where it does in all columns, the cut just below the median is tried, again from the
widest column on: then the median of some column is its largest value. A part for which neither is allowed
could not be cut anywhere, so it is a class.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.counting import count
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.reordering import swap
from kgather.udfs._shared.selection import kth_smallest
from kgather.udfs._shared.workers import run
from kgather.udfs.ratings.artifacts import checked_artifacts

_STACK = 128  # the larger part waits, so the stack is never deeper than log2(n) + 1
_PARTS_A_THREAD = 8
_SMALLEST_PART = 4096  # smaller ones are not worth a call of their own
_PASSES = 5  # over a column that is tried: not quite 4 to find the median, drawn at random, and one to count


def gather(
    table: NDArray[np.floating | np.integer], k: int, *, categorical: NDArray[np.bool_] | None = None, threads: int = 1
) -> NDArray[np.int32]:
    """The class of every user, int32[n], numbered 0..g-1; every class has at least k members.

    table: real numbers[n, a], one row a user, one column an artifact, NaN where not rated (counts as 0).
    categorical: bool[a], columns whose numbers are codes; they are cut as if the codes were in order, not rated
    last. Neither the order of the rows nor the number of threads matters. Classes can be much larger than k
    where many users have equal values. Expected time O(a n log n); memory: two copies of the table.

    Raises InputError if k or threads is no whole number >= 1, there are fewer than k users, or the table is
    not one of finite numbers (see `checked_artifacts`).
    """
    workers = whole("threads", threads, 1)
    artifacts = checked_artifacts(table, k, categorical)
    rows = artifacts.values
    n, least = len(rows), artifacts.k
    width = rows.max(axis=0) - rows.min(axis=0)
    order = np.arange(n, dtype=np.int32)
    starts = np.zeros(n, dtype=np.bool_)
    if workers == 1:
        count(_split(rows, order, 0, n, least, width, 0, starts))
    else:
        count(_split(rows, order, 0, n, least, width, max(n // (workers * _PARTS_A_THREAD), _SMALLEST_PART), starts))
        edges = np.append(np.flatnonzero(starts), n)
        looked: list[int] = []
        with ThreadPoolExecutor(workers) as pool:
            run(
                lambda lo, hi: looked.append(_split(rows, order, lo, hi, least, width, 0, starts)),
                list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)),
                pool,
            )
        count(sum(looked))
    groups = np.empty(n, dtype=np.int32)
    groups[order] = np.cumsum(starts, dtype=np.int32) - np.int32(1)
    return groups


@njit(nogil=True, cache=True)
def _spans(
    rows: NDArray[np.float64],
    lo: int,
    hi: int,
    width: NDArray[np.float64],
    closed: NDArray[np.bool_],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """low = minus the part's range in each column, divided by the whole table's; 1 for closed columns.

    Columns with a single value are closed. high float64[a] is scratch.
    """
    for a in range(rows.shape[1]):
        low[a] = high[a] = rows[lo, a]
    for i in range(lo + 1, hi):
        for a in range(rows.shape[1]):
            value = rows[i, a]
            low[a] = min(low[a], value)
            high[a] = max(high[a], value)
    for a in range(rows.shape[1]):
        if low[a] == high[a]:
            closed[a] = True
        low[a] = 1.0 if closed[a] else (low[a] - high[a]) / width[a]


@njit(nogil=True, cache=True)
def _choose_cut(
    rows: NDArray[np.float64],
    lo: int,
    hi: int,
    k: int,
    span: NDArray[np.float64],
    closed: NDArray[np.bool_],
    spare: NDArray[np.float64],
) -> tuple[int, float, bool, int]:
    """The column, the value, whether the value itself stays on the lower side, and how many columns were tried;
    column -1: no cut.

    Columns that no cut divides with k users on both sides are closed: no part of this one can be cut there
    either. spare float64[hi - lo] is scratch.
    """
    n = hi - lo
    below, below_value = -1, 0.0
    tried = 0
    for column in np.argsort(span, kind="mergesort"):
        if closed[column]:
            break  # and so are all that follow
        tried += 1
        for i in range(n):
            spare[i] = rows[lo + i, column]
        median = kth_smallest(spare, 0, n, (n - 1) // 2)
        smaller, up_to = 0, 0
        for i in range(lo, hi):
            smaller += rows[i, column] < median
            up_to += rows[i, column] <= median
        if min(up_to, n - up_to) >= k:
            return column, median, True, tried
        if min(smaller, n - smaller) < k:
            closed[column] = True
        elif below < 0:
            below, below_value = column, median
    return below, below_value, False, tried


@njit(nogil=True, cache=True)
def _split(
    rows: NDArray[np.float64],
    order: NDArray[np.int32],
    lo: int,
    hi: int,
    k: int,
    width: NDArray[np.float64],
    enough: int,
    starts: NDArray[np.bool_],
) -> int:
    """Cuts the rows lo:hi down to classes, or to parts of at most `enough` users, and marks where each starts. Returns
    how many numbers were looked at.

    rows float64[n, a] and order int32[n] are reordered within lo:hi. width float64[a]: the columns' ranges in
    the whole table. starts bool[n].
    """
    a = rows.shape[1]
    low, high = np.empty(a), np.empty(a)
    spare = np.empty(hi - lo)
    part = np.empty((_STACK, 2), dtype=np.int64)
    closed = np.zeros((_STACK, a), dtype=np.bool_)
    part[0, 0], part[0, 1] = lo, hi
    depth = 1
    looked = 0
    while depth > 0:
        depth -= 1
        lo, hi = part[depth, 0], part[depth, 1]
        column, value, included = -1, 0.0, False
        if hi - lo >= 2 * k and hi - lo > enough:
            _spans(rows, lo, hi, width, closed[depth], low, high)
            column, value, included, tried = _choose_cut(rows, lo, hi, k, low, closed[depth], spare)
            looked += (hi - lo) * (a + tried * _PASSES)
        if column < 0:
            starts[lo] = True
            continue
        looked += hi - lo
        i, j = lo, hi
        while i < j:
            if rows[i, column] < value or (included and rows[i, column] == value):
                i += 1
            else:
                j -= 1
                if i != j:
                    swap(rows, order, i, j)
        closed[depth + 1] = closed[depth]
        first_larger = i - lo > hi - i
        for side in range(2):
            if (side == 0) == first_larger:
                part[depth, 0], part[depth, 1] = lo, i
            else:
                part[depth, 0], part[depth, 1] = i, hi
            depth += 1
    return looked
