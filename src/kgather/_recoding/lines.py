"""Columns whose values lie on a line: the bins between cuts, their losses, and the ranges that are shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._recoding.hierarchies import EVERYTHING
from kgather._settings.table import QuasiIdentifier
from kgather.udfs.recoding.loss import ColumnLoss

_FAR = 100  # a range this many times as wide as that of nearly all rows is no scale


@dataclass(frozen=True)
class Line:
    """What lies behind the codes of a number, date or time.

    numbers float64[v]: the values, as they may be shown themselves; NaN for null. start, end float64[codes]: between
    which cuts a code lies (start <= value < end), NaN for the code of null. text: a number as it is shown. scaled
    float64[v]: the numbers on the scale of the loss.
    """

    numbers: NDArray[np.float64]
    scaled: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    text: Callable[[float], str]


@dataclass(frozen=True)
class Coded:
    """A column as codes.

    codes int32[v]: the code of each value of the dictionary. loss: that of the intervals. show: the texts for least and
    greatest codes, int32[c] each; None is null. said: how the column was read, for the report. display: what a cell
    shows where it is not that: tight, set, mean or median. holders: rows without which no single value is shown then.
    texts: the dictionary, where sets are shown. line: of a number, date or time.
    """

    codes: NDArray[np.int32]
    loss: ColumnLoss
    show: Callable[[NDArray[np.integer], NDArray[np.integer]], list[str | None]]
    said: str
    display: str = ""
    holders: int = 0
    texts: Sequence[str | None] = ()
    line: Line | None = None


def on_line(
    codes: NDArray[np.int32],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    text: Callable[[int, int], str],
    asked: QuasiIdentifier,
    said: str,
    *,
    most: float = 1.0,
    line: Line | None = None,
) -> Coded:
    """A column whose codes lie on a line; -1 is null, which gets a code before all others.

    low, high float64[codes]: the ends of each code's bin on a scale from 0 to 1. text: what the codes a to b show.
    most: the widest range that may be shown, on that scale.
    """
    nullable = bool((codes < 0).any())
    if nullable:
        codes = (codes + 1).astype(np.int32)
        low, high = np.append(0.0, low), np.append(0.0, high)
        if line is not None:
            line = replace(line, start=np.append(np.nan, line.start), end=np.append(np.nan, line.end))
    shift = int(nullable)

    def show(least: NDArray[np.integer], greatest: NDArray[np.integer]) -> list[str | None]:
        pairs, which = np.unique(np.stack([least, greatest]), axis=1, return_inverse=True)
        texts = [
            None if nullable and b == 0 else EVERYTHING if nullable and a == 0 else text(int(a) - shift, int(b) - shift)
            for a, b in pairs.T
        ]
        return [texts[each] for each in which.ravel()]

    # A star is wider than any range.
    apart = asked.widest is not None
    loss = ColumnLoss(len(low), low=low, high=high, nullable=nullable, most=most, weight=asked.weight, null_apart=apart)
    return Coded(codes, loss, show, said, line=line)


def binned(
    name: str,
    numbers: NDArray[np.float64],
    weight: NDArray[np.int64],
    cuts: NDArray[np.float64],
    asked: QuasiIdentifier,
    said: str,
    text: Callable[[float], str],
    *,
    unit: float | None,
    shown_as: NDArray[np.float64] | None = None,
) -> Coded:
    """Codes of the bins between cuts; what lies beyond the outer ones is shown as such.

    name: that of the column, for messages. numbers float64[v], NaN for null; weight int64[]: the rows of those that are
    none. unit: numbers are whole multiples of it. shown_as float64[v]: the numbers as they may be shown, where that is
    coarser than they are. Raises InputError where a range without an end would be wider than `widest`.
    """
    is_null = np.isnan(numbers)
    bins = np.searchsorted(cuts, numbers, side="right") - 1  # -1 below the first cut, len - 1 from the last on
    used = np.unique(bins[~is_null]) if (~is_null).any() else np.array([0])
    codes = np.where(is_null, -1, np.searchsorted(used, bins)).astype(np.int32)
    present = numbers[~is_null]
    least, greatest = (present.min(), present.max()) if len(present) else (0.0, 1.0)
    start = np.append(-np.inf, cuts)[used + 1]
    end = np.append(cuts, np.inf)[used + 1]
    # A bin of one whole number loses nothing.
    low = np.clip(start, least, greatest)
    high = np.clip(end - unit if unit else end, low, greatest)
    if asked.widest is not None and np.isinf([start.min(), end.max()]).any():
        msg = (
            f"column '{name}' has values beyond its outer cuts, which are shown as ranges without an end, and none may "
            "be wider than widest. Give cuts around all values, or a step."
        )
        raise InputError(msg)
    if asked.widest is not None:  # what is shown is as wide as from cut to cut, whatever the values in it
        low, high = start, np.maximum(end - unit, start) if unit else end
        present, weight = np.array([low.min(), high.max()]), np.ones(2, dtype=np.int64)
    own = numbers if shown_as is None else shown_as
    low, high, scaled, width = _scaled(low, high, own, present, weight)

    def shown(a: int, b: int) -> str:
        return as_range(start[a], end[b], text, unit)

    most = 1.0
    if asked.widest is not None and width > 0:
        most = min(max(asked.widest - (unit or 0.0), 0.0) / width, 1.0)
    line = Line(own, scaled, start, end, text)
    return on_line(codes, low, high, shown, asked, said, most=most, line=line)


def as_range(first: float, last: float, text: Callable[[float], str], unit: float | None = None) -> str:
    """The range from a cut to below another; infinite ones are open. unit: a range as wide is one value."""
    if np.isneginf(first):
        return EVERYTHING if np.isposinf(last) else f"< {text(last)}"
    if np.isposinf(last):
        return f">= {text(first)}"
    if unit is not None and (unit != 1 or first == np.floor(first)) and text(first + unit) == text(last):
        return text(first)
    return f"[{text(first)}, {text(last)})"


def _scaled(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    numbers: NDArray[np.float64],
    present: NDArray[np.float64],
    weight: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """The ends and the numbers on a scale from 0 to 1, and how wide the scale is."""
    if len(present) == 0 or present.min() == present.max():
        return np.zeros_like(low), np.zeros_like(high), np.zeros_like(numbers), 0.0
    order = np.argsort(present, kind="stable")
    upto = np.cumsum(weight[order])
    near, far = (
        present[order][min(int(np.searchsorted(upto, share * upto[-1])), len(present) - 1)] for share in (0.01, 0.99)
    )
    start, end = present.min(), present.max()
    with np.errstate(over="ignore", divide="ignore"):
        # Of halves, as a difference may be beyond the largest number. One number that lies far beyond all others would
        # make all others look alike.
        if far > near and (end / 2 - start / 2) / (far / 2 - near / 2) > _FAR:
            start, end = near, far
        half = end / 2 - start / 2
        width = min(2 * half, 1e308)
    found = [(np.clip(each, start, end) / 2 - start / 2) / half for each in (low, high, numbers)]
    return found[0], found[1], found[2], width
