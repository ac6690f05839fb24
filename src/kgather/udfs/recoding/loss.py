"""What it costs to show a class: columns as codes, and the loss of every interval of codes.

Every column is coded by whole numbers from 0 in an order in which what a cell may show is an interval of codes: numbers
by the bins between their cuts, categories by a walk through their hierarchy, depth first. The loss of a class is then
known from the least and the greatest code of each column.

The loss is the normalized certainty penalty (NCP; Xu, Wang, Pei, Wang, Shi and Fu, Utility-based anonymization using
local recoding, 2006): 0 for a cell that is shown as it is, 1 for one that tells nothing; of a number the width of its
range over the width of all, of a category the leaves below the node that is shown, less one, over all leaves, less one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError

FORBIDDEN = 1e6
"""The loss of an interval that may not be shown: more than all others together."""
_TABLE = 512  # codes of a column up to which its losses are a table
_LINE, _PAIRS, _TREE = 0, 1, 2
_CHECKED = 8  # columns after which sums that are too large already are not finished


@dataclass(frozen=True)
class ColumnLoss:
    """The losses of the intervals of one column.

    codes: how many there are. Of a line: low and high float64[codes], the ends of each code's bin on a scale from 0 to
    1; with `nullable` code 0 stands for null, and an interval of it and others costs 1. Of a tree: nodes int32[levels,
    codes], the node of each code, the finest level first and one node on the last, and costs float64[nodes].
    most: intervals that cost more may not be shown. weight: what the column counts for. null_apart: an interval of null
    and others may not be shown, either.
    """

    codes: int
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    nullable: bool = False
    nodes: NDArray[np.int32] | None = None
    costs: NDArray[np.float64] | None = None
    most: float = 1.0
    weight: float = 1.0
    null_apart: bool = False

    def of(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> NDArray[np.float64]:
        """The loss, without weight, of intervals of codes; float64 of the shape of `low`."""
        low, high = np.asarray(low), np.asarray(high)
        if self.nodes is not None and self.costs is not None:
            found = np.full(low.shape, -1, dtype=np.int64)
            for level in self.nodes:
                same = (level[low] == level[high]) & (found < 0)
                found[same] = level[low][same]
            loss = self.costs[found]
        else:
            assert self.low is not None
            assert self.high is not None
            loss = np.clip(self.high[high] - self.low[low], 0.0, 1.0)
            if self.nullable:
                loss = np.where((low == 0) & (high > 0), self.mixed, loss)
        return np.where(loss > self.most + 1e-12, FORBIDDEN, loss)

    @property
    def mixed(self) -> float:
        """The loss of an interval of null and others: more than may be shown where null is to be apart."""
        return 2.0 if self.null_apart else 1.0

    def covered(
        self, low: NDArray[np.integer], high: NDArray[np.integer]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The codes that a cell which shows the codes low..high covers: (first, last), int32 of the shape of `low`.

        Of a tree the leaves below the node that is shown; of a line the codes themselves, and all of them where null
        is shown together with others.
        """
        first, last = np.array(low, dtype=np.int32), np.array(high, dtype=np.int32)
        if self.nodes is None:
            mixed = (first == 0) & (last > 0) & self.nullable
            return first, np.where(mixed, self.codes - 1, last).astype(np.int32)
        waiting = np.ones(first.shape, dtype=np.bool_)
        for (starts, ends), level in zip(self.levels(), self.nodes, strict=True):
            same = waiting & (level[low] == level[high])
            first[same], last[same] = starts[low][same], ends[low][same]
            waiting &= ~same
        return first, last

    def widths(self) -> NDArray[np.float64]:
        """How much of a cell a reader gives each of its codes, float64[codes], above 0: leaves count alike, bins of a
        line by how far it is to the next."""
        if self.nodes is not None or self.codes - int(self.nullable) < 2:
            return np.ones(self.codes)
        assert self.low is not None
        assert self.high is not None
        shift = int(self.nullable)
        gaps = np.diff(self.low[shift:])
        middle = float(gaps.mean())
        if middle <= 0:
            return np.ones(self.codes)
        own = max(float(self.high[-1] - self.low[-1]), middle)
        return np.maximum(np.concatenate([np.full(shift, middle), gaps, [own]]), 1e-6 * middle)

    def levels(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Ever wider ways to show the whole column: (first, last), int32[codes], the interval that each code is in.

        Of a tree its levels; of a line 1, 2, 4, ... neighbouring codes, and all.
        """
        code = np.arange(self.codes, dtype=np.int32)
        found = []
        if self.nodes is not None:
            for level in self.nodes:
                starts = np.flatnonzero(np.diff(level, prepend=level[0] - 1))
                lengths = np.diff(np.append(starts, self.codes))
                first = np.repeat(starts, lengths).astype(np.int32)
                found.append((first, (first + np.repeat(lengths, lengths) - 1).astype(np.int32)))
            return found
        shift, width = int(self.nullable), 1
        while width < self.codes - shift:
            first = np.where(code < shift, code, (code - shift) // width * width + shift)
            last = np.where(code < shift, code, np.minimum(first + width, self.codes) - 1)
            found.append((first.astype(np.int32), last.astype(np.int32)))
            width *= 2
        return [*found, (np.zeros_like(code), np.full_like(code, self.codes - 1))]


@dataclass(frozen=True)
class Losses:
    """The losses of all columns, as the kernels look them up.

    kind int8[d]: how a column's numbers lie in `flat` float32, from at int64[d] on; size int64[d]: its codes. A table
    has a loss for each pair of codes, a line the low and the high ends of its codes, and a tree, for each power of two,
    the loss of that many codes from each code on. cap and bound float32[d]: the largest loss of a line, and the largest
    that may be shown. All losses are weighted.
    """

    kind: NDArray[np.int8]
    at: NDArray[np.int64]
    size: NDArray[np.int64]
    flat: NDArray[np.float32]
    cap: NDArray[np.float32]
    bound: NDArray[np.float32]

    @property
    def parts(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays, as kernels take them."""
        return self.kind, self.at, self.size, self.flat, self.cap, self.bound


def losses(columns: Sequence[ColumnLoss]) -> Losses:
    """The losses of columns, laid out for the kernels. O(codes^2) for columns of up to 512 codes, else O(c log c).

    Raises InputError where there are no columns.
    """
    if not columns:
        msg = "there is no column to generalize."
        raise InputError(msg)
    kind = np.array([_kind(column) for column in columns], dtype=np.int8)
    flat = [_LAID_OUT[each](column) for each, column in zip(kind, columns, strict=True)]
    lengths = [len(numbers) for numbers in flat]
    weight = np.array([column.weight for column in columns])
    return Losses(
        kind=kind,
        at=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        size=np.array([column.codes for column in columns], dtype=np.int64),
        flat=np.concatenate(flat).astype(np.float32),
        cap=(weight * np.array([column.mixed for column in columns])).astype(np.float32),
        bound=(weight * np.array([column.most for column in columns]) + 1e-6).astype(np.float32),
    )


def _kind(column: ColumnLoss) -> int:
    if column.codes <= _TABLE:
        return _PAIRS
    return _LINE if column.nodes is None else _TREE


def _pairs(column: ColumnLoss) -> NDArray[np.float64]:
    low, high = np.meshgrid(np.arange(column.codes), np.arange(column.codes), indexing="ij")
    return np.asarray(column.weight * column.of(np.minimum(low, high), np.maximum(low, high)).ravel())


def _line(column: ColumnLoss) -> NDArray[np.float64]:
    assert column.low is not None
    assert column.high is not None
    ends = column.weight * np.stack([column.low, column.high])
    if column.nullable:  # farther from all others than the largest loss
        ends[:, 0] = -column.weight * column.mixed
    return ends.ravel()


def _tree(column: ColumnLoss) -> NDArray[np.float64]:
    """The codes a..b meet where the highest of the nodes is in which neighbours among them meet: a running maximum."""
    codes = np.arange(column.codes)
    single = column.weight * column.of(codes, codes)
    joined = column.weight * column.of(codes[:-1], codes[1:])
    levels = [np.append(np.maximum(joined, np.maximum(single[:-1], single[1:])), 0.0)]
    width = 1
    while 2 * width < column.codes:
        last = levels[-1]
        levels.append(np.append(np.maximum(last[:-width], last[width:]), np.zeros(width)))
        width *= 2
    return np.concatenate([single, *levels])


_LAID_OUT = {_LINE: _line, _PAIRS: _pairs, _TREE: _tree}


@njit(nogil=True, cache=True)
def interval_loss(kind, at, size, flat, cap, bound, j, low, high):  # type: ignore[no-untyped-def]
    """The weighted loss of the codes low..high of column j. O(1)."""
    if kind[j] == 1:
        return flat[at[j] + low * size[j] + high]
    if kind[j] == 0:
        loss = min(flat[at[j] + size[j] + high] - flat[at[j] + low], cap[j])
        return loss if loss <= bound[j] else np.float32(1e6)
    if low == high:
        return flat[at[j] + low]
    steps, level, width = high - low, 0, 1
    while 2 * width <= steps:
        width *= 2
        level += 1
    row = at[j] + (level + 1) * size[j]
    return max(flat[row + low], flat[row + high - width])


@njit(nogil=True, cache=True)
def joined_losses(parts, low, high, first, last, begin, end, most, found):  # type: ignore[no-untyped-def]
    """The losses of a row of the box low..high int32[d] joined with each of the boxes begin..end of first, last
    int32[d, n], into found float64. Where all are above `most` they may be too small. O(d) for each.

    A column of all boxes at a time: processors then look up many losses at once.
    """
    kind, at, size, flat, cap, bound = parts
    n = end - begin
    found[:n] = 0.0
    for j in range(len(low)):
        a, b = low[j], high[j]
        starts, ends = first[j, begin:end], last[j, begin:end]
        if kind[j] == 1:
            codes = size[j]
            table = flat[at[j] : at[j] + codes * codes]
            for q in range(n):
                found[q] += table[min(a, starts[q]) * codes + max(b, ends[q])]
        else:
            for q in range(n):
                found[q] += interval_loss(
                    kind, at, size, flat, cap, bound, j, min(a, starts[q]), max(b, ends[q])
                )  # fmt: skip
        if j % _CHECKED == _CHECKED - 1 and found[:n].min() > most:
            break


@njit(nogil=True, cache=True)
def least_increases(parts, low, high, weight, mass, first, last, begin, end, most, found):  # type: ignore[no-untyped-def]
    """What the summed loss rises by at least where `weight` rows of the box low..high int32[d] join anything of `mass`
    rows or more that lies within each of the boxes begin..end of first, last int32[d, n]; into found float64. Where all
    are above `most` they may be too small. O(d) for each.

    Each of the rows that join loses what the gap costs. Those that are joined lose no less than the whole box around
    them would lose: the wider an interval is, the less it costs to widen it by a code.
    """
    kind, at, size, flat, cap, bound = parts
    n = end - begin
    found[:n] = 0.0
    for j in range(len(low)):
        a, b = low[j], high[j]
        starts, ends = first[j, begin:end], last[j, begin:end]
        if kind[j] == 1:
            codes = size[j]
            table = flat[at[j] : at[j] + codes * codes]
            for q in range(n):
                whole = table[min(a, starts[q]) * codes + max(b, ends[q])]
                more = whole - table[starts[q] * codes + ends[q]]
                reached = table[min(a, ends[q]) * codes + max(b, starts[q])]
                found[q] += weight * reached + mass * (more if whole <= bound[j] else np.float32(0.0))
        else:
            for q in range(n):
                whole = interval_loss(
                    kind, at, size, flat, cap, bound, j, min(a, starts[q]), max(b, ends[q])
                )  # fmt: skip
                more = whole - interval_loss(kind, at, size, flat, cap, bound, j, starts[q], ends[q])
                reached = interval_loss(
                    kind, at, size, flat, cap, bound, j, min(a, ends[q]), max(b, starts[q])
                )  # fmt: skip
                found[q] += weight * reached + mass * (more if whole <= bound[j] else np.float32(0.0))
        if j % _CHECKED == _CHECKED - 1 and found[:n].min() > most:
            break


@njit(nogil=True, cache=True)
def box_loss(kind, at, size, flat, cap, bound, low, high, i):  # type: ignore[no-untyped-def]
    """The loss of a row of class i, whose least and greatest codes are low and high int32[classes, d]. O(d)."""
    total = 0.0
    for j in range(low.shape[1]):
        total += interval_loss(kind, at, size, flat, cap, bound, j, low[i, j], high[i, j])
    return total
