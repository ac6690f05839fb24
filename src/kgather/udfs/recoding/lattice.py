"""Full-domain recoding: one level for each column, the levels of least loss.

Sources: El Emam et al., A globally optimal k-anonymity method for the de-identification of health data (OLA, 2009);
Kohlmayer, Prasser, Eckert, Kemper and Kuhn, Flash (2012). The search here is by bound: without suppression the loss of
levels is a sum over the columns, so they are looked at in its order until what was found loses no more.
"""

import heapq
from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import whole
from kgather.udfs.recoding._codes import checked_codes, checked_counts
from kgather.udfs.recoding.loss import FORBIDDEN, ColumnLoss, losses

MOST = 2_000_000
"""Combinations of levels of which more are refused."""

Levels = tuple[int, ...]


def search(
    codes: NDArray[np.integer],
    counts: NDArray[np.integer],
    columns: Sequence[ColumnLoss],
    k: int,
    *,
    suppressed: int = 0,
) -> tuple[Levels, NDArray[np.int64], NDArray[np.bool_]]:
    """The levels of least loss: (level of each column, class int64[m], suppressed bool[m]).

    codes: whole numbers[m, d], one row for each different combination. counts: int[m], the rows of each. columns: the
    losses of the d columns, whose `levels` are chosen from. suppressed: the rows in classes of fewer than k that may
    be left out, each at a loss of 1 in every column; they are none, or k or more. Of equal losses the lowest levels.

    Time: O(m d) for each combination of levels that is looked at, from the least loss on. Raises InputError where no
    levels will do, there are more than `MOST` combinations of levels, or the shapes do not fit.
    """
    rows = checked_codes(codes, losses(columns))
    weight = checked_counts(counts, len(rows), whole("k", k, 1))
    firsts, prices = _by_level(rows, weight, columns)
    combinations = 1
    for of_levels in prices:
        combinations *= len(of_levels)
    if combinations > MOST:
        msg = f"there are {combinations:,} combinations of levels, more than {MOST:,}: give columns fewer levels."
        raise InputError(msg)
    total = float(sum(column.weight for column in columns))
    n = int(weight.sum())
    start = tuple(0 for _ in columns)
    waiting: list[tuple[float, Levels]] = [(_sum(prices, start), start)]
    seen = {start}
    best, chosen = np.inf, None
    while waiting:
        price, levels = heapq.heappop(waiting)
        if price >= best:
            break
        if price < FORBIDDEN:
            size = _sizes(rows, weight, levels, firsts)
            small = size < k
            left = int(weight[small].sum())
            if left == 0 or (k <= left <= suppressed):
                kept = sum(
                    column.weight * float((weight * np.where(small, 0.0, loss[level][rows[:, j]])).sum())
                    for j, (column, loss, level) in enumerate(zip(columns, _losses(columns), levels, strict=True))
                )
                found = (kept + left * total) / n
                if found < best:
                    best, chosen = found, levels
        for j in range(len(columns)):
            if levels[j] + 1 < len(prices[j]):
                wider = (*levels[:j], levels[j] + 1, *levels[j + 1 :])
                if wider not in seen:
                    seen.add(wider)
                    heapq.heappush(waiting, (_sum(prices, wider), wider))
    if chosen is None:
        msg = "no levels of the columns give classes that are large enough. Suppress more rows, or allow wider ranges."
        raise InputError(msg)
    size = _sizes(rows, weight, chosen, firsts)
    return chosen, _classes(rows, chosen, firsts), size < k


def _losses(columns: Sequence[ColumnLoss]) -> list[list[NDArray[np.float64]]]:
    """Of each column and level the loss of every code's interval, without weight."""
    return [[column.of(first, last) for first, last in column.levels()] for column in columns]


def _by_level(
    rows: NDArray[np.int32], weight: NDArray[np.int64], columns: Sequence[ColumnLoss]
) -> tuple[list[NDArray[np.int32]], list[list[float]]]:
    """For each column the first code of every interval, int32[levels, codes], and the mean loss of each level."""
    firsts, prices = [], []
    for j, (column, loss) in enumerate(zip(columns, _losses(columns), strict=True)):
        firsts.append(np.stack([first for first, _ in column.levels()]))
        # Ever wider levels cost ever more, or rounding errors would change their order.
        means = [column.weight * float((weight * each[rows[:, j]]).sum()) / float(weight.sum()) for each in loss]
        prices.append(np.maximum.accumulate(means).tolist())
    return firsts, prices


def _sum(prices: Sequence[Sequence[float]], levels: Levels) -> float:
    return float(sum(price[level] for price, level in zip(prices, levels, strict=True)))


def _keys(rows: NDArray[np.int32], levels: Levels, firsts: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """A number for each row, equal where all intervals are."""
    key = np.zeros(len(rows), dtype=np.int64)
    room = 1
    for j, level in enumerate(levels):
        size = firsts[j].shape[1]
        if room > (1 << 62) // size:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            room = int(key.max()) + 1
        key = key * size + firsts[j][level][rows[:, j]]
        room *= size
    return key


def _classes(rows: NDArray[np.int32], levels: Levels, firsts: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    return np.asarray(np.unique(_keys(rows, levels, firsts), return_inverse=True)[1], dtype=np.int64)


def _sizes(
    rows: NDArray[np.int32], weight: NDArray[np.int64], levels: Levels, firsts: Sequence[NDArray[np.int32]]
) -> NDArray[np.int64]:
    """The rows of each combination's class, int64[m]."""
    return np.asarray(_counted(_keys(rows, levels, firsts), weight), dtype=np.int64)


@njit(nogil=True, cache=True)
def _counted(key, weight):  # type: ignore[no-untyped-def]
    """For each key the weight of all that have it, by hashing. O(m)."""
    m = len(key)
    room = 16
    while room < 2 * m:
        room *= 2
    slots = np.full(room, -1, np.int64)
    summed = np.zeros(room, np.int64)
    at = np.empty(m, np.int64)
    for i in range(m):
        mixed = np.uint64(key[i]) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(room - 1))
        while slots[slot] >= 0 and slots[slot] != key[i]:
            slot = (slot + 1) & (room - 1)
        slots[slot] = key[i]
        summed[slot] += weight[i]
        at[i] = slot
    return summed[at]
