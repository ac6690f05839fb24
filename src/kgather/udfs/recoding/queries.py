"""Counting queries, drawn at random: how many rows there are in a box of values, and how many a reader would say.

The reader spreads the rows of a class evenly over what its cells cover, as in LeFevre, DeWitt and Ramakrishnan,
Mondrian multidimensional k-anonymity (2006), and Xu et al., Utility-based anonymization using local recoding (2006).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs._shared.workers import run
from kgather.udfs.recoding.loss import ColumnLoss

_LEAST = 0.001
"""Share of all rows below which answers are not told apart: an error is relative to this at least."""
_AT_ONCE = 8

Boxes = tuple[NDArray[np.int32], NDArray[np.int32]]


def draw(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    columns: Sequence[ColumnLoss],
    asked: int,
    queries: int,
    seed: int = 0,
) -> Boxes:
    """Boxes of codes to ask for, (low, high) int32[queries, d]; a column that is not asked for has all its codes.

    codes: int32[m, d], one row for each different combination; counts: int64[m], the rows of each. columns: the d
    columns. asked: how many columns each query asks for, drawn anew for each.

    Every box has a row of the table in it, drawn by counts. A column on a line is asked for between the values of this
    row and of another; a category for one of the labels that the row's value lies in, the value itself among them, and
    not for the label of all. Raises InputError where a number is out of its range.
    """
    d = codes.shape[1]
    asked = min(whole("asked", asked, 1), d)
    start = seed64(seed_number(seed))
    draws = np.array(
        [[keyed(start, query, place) for place in range(2 + 2 * d)] for query in range(whole("queries", queries, 1))],
        dtype=np.uint64,
    )
    share = (draws >> np.uint64(11)) / 2.0**53
    upto = np.cumsum(counts)
    own = np.searchsorted(upto, (share[:, 0] * upto[-1]).astype(np.int64), side="right")
    other = np.searchsorted(upto, (share[:, 1] * upto[-1]).astype(np.int64), side="right")
    chosen = np.argsort(share[:, 2 : 2 + d], axis=1, kind="stable")[:, :asked]
    low = np.zeros((queries, d), dtype=np.int32)
    high = np.tile(np.array([column.codes - 1 for column in columns], dtype=np.int32), (queries, 1))
    for j, column in enumerate(columns):
        at = np.flatnonzero((chosen == j).any(axis=1))
        mine, theirs = codes[own[at], j], codes[other[at], j]
        if column.nodes is None:
            # Null lies on no line: it is asked for alone.
            alone = column.nullable & ((mine == 0) | (theirs == 0))
            low[at, j] = np.where(alone, mine, np.minimum(mine, theirs))
            high[at, j] = np.where(alone, mine, np.maximum(mine, theirs))
            continue
        levels = column.levels()
        level = (share[at, 2 + d + j] * max(len(levels) - 1, 1)).astype(np.int64)
        for number, (first, last) in enumerate(levels):
            here = at[level == number]
            low[here, j], high[here, j] = first[codes[own[here], j]], last[codes[own[here], j]]
    return low, high


def counted(codes: NDArray[np.int32], counts: NDArray[np.int64], asked: Boxes, threads: int = 1) -> NDArray[np.int64]:
    """The rows in each box, int64[queries]. codes, counts: as in `draw`. O(queries m d)."""
    low, high = asked
    found = np.zeros(len(low), dtype=np.int64)
    _in_parts(lambda lo, hi: _count(codes, counts, low, high, lo, hi, found), len(low), threads)
    return found


def estimated(
    first: NDArray[np.int32],
    last: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: Sequence[ColumnLoss],
    asked: Boxes,
    threads: int = 1,
) -> NDArray[np.float64]:
    """What a reader of classes would say, float64[queries]. first, last: int32[g, d], the codes that the cells of each
    class cover. rows: int64[g]. O(queries g d)."""
    low, high = asked
    upto = [np.append(0.0, np.cumsum(column.widths())) for column in columns]
    at = np.append(0, np.cumsum([len(each) for each in upto])[:-1]).astype(np.int64)
    found = np.zeros(len(low))
    flat = np.concatenate(upto)
    _in_parts(lambda lo, hi: _estimate(first, last, rows, at, flat, low, high, lo, hi, found), len(low), threads)
    return found


def relative_errors(true: NDArray[np.integer], said: NDArray[np.floating], total: int) -> NDArray[np.float64]:
    """How far each answer is off, as a share of the true one or of a thousandth of all rows, if that is more."""
    return np.asarray(np.abs(said - true) / np.maximum(true, _LEAST * total))


def _in_parts(kernel, queries: int, threads: int) -> None:  # type: ignore[no-untyped-def]
    edges = [(lo, min(lo + _AT_ONCE, queries)) for lo in range(0, queries, _AT_ONCE)]
    if threads <= 1:
        run(kernel, edges, None)
        return
    with ThreadPoolExecutor(threads) as pool:
        run(kernel, edges, pool)


@njit(nogil=True, cache=True)
def _count(codes, counts, low, high, lo, hi, found):  # type: ignore[no-untyped-def]
    m, d = codes.shape
    for query in range(lo, hi):
        total = np.int64(0)
        for i in range(m):
            inside = True
            for j in range(d):
                if codes[i, j] < low[query, j] or codes[i, j] > high[query, j]:
                    inside = False
                    break
            if inside:
                total += counts[i]
        found[query] = total


@njit(nogil=True, cache=True)
def _estimate(first, last, rows, at, flat, low, high, lo, hi, found):  # type: ignore[no-untyped-def]
    g, d = first.shape
    for query in range(lo, hi):
        total = 0.0
        for c in range(g):
            share = 1.0
            for j in range(d):
                a, b = max(first[c, j], low[query, j]), min(last[c, j], high[query, j])
                if a > b:
                    share = 0.0
                    break
                if a > first[c, j] or b < last[c, j]:
                    inside = flat[at[j] + b + 1] - flat[at[j] + a]
                    share *= inside / (flat[at[j] + last[c, j] + 1] - flat[at[j] + first[c, j]])
            total += share * rows[c]
        found[query] = total
