"""What the cells of a class show where it is more than an interval of codes: tight ends, sets, means and medians.

All of it is about single values that people of the class have, so each must be held by enough of them; where it is
not, the cell shows the range or the label.
"""

import math

import numpy as np
from numpy.typing import NDArray

from kgather._recoding.hierarchies import as_set
from kgather._recoding.lines import Coded
from kgather._recoding.numbers import nice, written
from kgather.udfs.recoding.averages import MEAN, NEITHER, averages


def cells(
    column: Coded,
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    ids: NDArray[np.int64],
    group: NDArray[np.int64],
    rows: NDArray[np.int64],
    k: int,
) -> tuple[list[str | None], NDArray[np.float64]]:
    """The text of each class, [g], and its loss without weight, float64[g], at most 1.

    low, high: int32[g], the least and greatest codes of the classes. ids, group and rows: int64[p], of pieces of the
    table the value in the dictionary, the class and the number of rows. k: rows that hold a median that is shown.
    """
    texts = column.show(low, high)
    loss = np.minimum(column.loss.of(low, high), 1.0)
    if not column.display or len(group) == 0:
        return texts, loss
    mixed = column.loss.nullable & (low == 0) & (high > 0)  # with nulls: what is shown of the others is not of all
    if column.display == "set":
        return _sets(column, texts, loss, ids, group, rows)
    if column.line is None:  # nothing but nulls
        return texts, loss
    shown, first = np.unique(column.line.numbers, return_index=True)
    scaled, ids = column.line.scaled[first], _places(column.line.numbers)[ids]
    starts, values, times = _held(ids, group, rows, len(texts))
    plain = np.array([text is not None for text in texts]) & ~mixed
    if column.display == "tight":
        return _tight(column, texts, loss, low, high, plain, starts, shown[values], scaled[values], times)
    kinds, found, grains = averages(starts, shown[values], times, k, medians=column.display == "median")
    averaged = plain & (kinds != NEITHER)
    for c in np.flatnonzero(averaged):
        texts[c] = _average(int(kinds[c]), float(found[c]), float(grains[c]))
        loss[c] = scaled[values[starts[c + 1] - 1]] - scaled[values[starts[c]]]
    return texts, loss


def _places(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Of each number its place among the different ones."""
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64)


def _held(
    ids: NDArray[np.int64], group: NDArray[np.int64], rows: NDArray[np.int64], g: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The values of each class, ascending, and their rows: (where classes start int64[g + 1], values, rows)."""
    top = int(ids.max()) + 1
    found, place = np.unique(group * top + ids, return_inverse=True)
    times = np.bincount(place, weights=rows).astype(np.int64)
    return np.searchsorted(found // top, np.arange(g + 1)).astype(np.int64), found % top, times


def _tight(
    column: Coded,
    texts: list[str | None],
    loss: NDArray[np.float64],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    plain: NDArray[np.bool_],
    starts: NDArray[np.int64],
    numbers: NDArray[np.float64],
    scaled: NDArray[np.float64],
    times: NDArray[np.int64],
) -> tuple[list[str | None], NDArray[np.float64]]:
    """Ranges whose ends are the least and the greatest number, if enough rows hold them, and else the cuts."""
    assert column.line is not None
    assert column.loss.low is not None
    assert column.loss.high is not None
    line = column.line
    found, cost = list(texts), loss.copy()
    for c in np.flatnonzero(plain):
        first, last = starts[c], starts[c + 1] - 1
        lowest_is_held = times[first] >= column.holders
        highest_is_held = times[last] >= column.holders
        if lowest_is_held and highest_is_held:
            a, b = line.text(numbers[first]), line.text(numbers[last])
            found[c] = a if a == b else f"[{a}, {b}]"
            cost[c] = scaled[last] - scaled[first]
        elif lowest_is_held:
            end = line.end[high[c]]
            a = line.text(numbers[first])
            found[c] = f">= {a}" if np.isposinf(end) else f"[{a}, {line.text(end)})"
            cost[c] = max(column.loss.high[high[c]] - scaled[first], 0.0)
        elif highest_is_held:
            start = line.start[low[c]]
            b = line.text(numbers[last])
            found[c] = f"<= {b}" if np.isneginf(start) else f"[{line.text(start)}, {b}]"
            cost[c] = max(scaled[last] - column.loss.low[low[c]], 0.0)
    return found, cost


def _sets(
    column: Coded,
    texts: list[str | None],
    loss: NDArray[np.float64],
    ids: NDArray[np.int64],
    group: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> tuple[list[str | None], NDArray[np.float64]]:
    """The values of a class as a set, where each is held by enough rows and none is null."""
    starts, values, times = _held(ids, group, rows, len(texts))
    fits = np.minimum.reduceat(times, starts[:-1]) >= column.holders
    found, cost = list(texts), loss.copy()
    for c in np.flatnonzero(fits & (np.diff(starts) > 1)):
        named = [column.texts[value] for value in values[starts[c] : starts[c + 1]]]
        if None not in named:
            found[c] = as_set([str(each) for each in named])
            cost[c] = (len(named) - 1) / max(column.loss.codes - 1, 1)
    return found, cost


def _average(kind: int, average: float, grain: float) -> str:
    if kind != MEAN:
        return written(average)
    step = nice(grain)
    rounded = round(average / step) * step if math.isfinite(average / step) else average
    # The digits of the step and no others: they would tell how many rows the mean is of.
    digits = -math.floor(math.log10(step) + 1e-9)
    return written(float(f"{rounded:.{max(digits, 0)}f}")) if digits < 300 else written(rounded)
