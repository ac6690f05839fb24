"""Medians, quantiles and histograms of bounded values in the groups of a question, from counts in bins.

How far a quantile may be off follows from the noise of how many are below it: it is half the distance between the
quantiles that lie so much lower and higher.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kgather._guard.measured.bins import Bins
from kgather._guard.measured.bounding import lost
from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.counts import Counts, number_of_cells, on_axes
from kgather._guard.measured.estimates import MEASURED, Estimates, Keys
from kgather._guard.measured.features import Asked, Feature, symbols, with_one_condition
from kgather._guard.measured.grid import Grid, TooWide, grid
from kgather._guard.measured.measuring import CELLS, Wanted
from kgather._guard.measured.model import Floats
from kgather._guard.measured.reading import GRANULES
from kgather._guard.plan import TRUE, Op

_WITHIN = 0.15  # of a bin, the standard error of where in it a quantile is
_ZOOMS = 2  # how often bins are looked into more closely
_CLOSE = 0.01  # of a value, from which on the width of a bin matters
_NEARER = 8.0  # times as narrow bins have to become, to be worth a measurement
_SURE = 3.0  # standard errors around quantiles within which it is looked more closely
_PARTS = 16  # bins of a histogram
_HALF = 0.5


@dataclass(frozen=True)
class _Found:
    """Counts in the narrowest bins of each group, float64[groups, leaves], and the variance of each count of a bin of
    any level in a group, float64[groups]."""

    on: Grid
    bins: Bins
    counts: Floats
    variance: Floats
    bounded: bool


@dataclass
class Quantiles:
    """Quantiles for the questions of one answer."""

    counts: Counts

    def of(self, asked: Asked, argument: Feature, limits: Bounds, fraction: float, *, discrete: bool) -> Estimates:
        """A quantile of a bounded value in each group; at 0 and 1 the values that at least k reach."""
        found = self._found(asked, argument, limits)
        told = [self._quantiles(found, fraction, discrete=discrete)]
        for _ in range(_ZOOMS):
            nearer = self._nearer(found, told[-1], argument)
            if nearer is None or not self.counts.session.ensure(self._wanted(asked, argument, nearer), required=False):
                break
            found = self._found(asked, argument, nearer)
            told.append(self._quantiles(found, fraction, discrete=discrete))
        values, errors, spans = told[-1]
        # A quantile near zero is not wider than itself as long as it says where among the values it is.
        hidden = ~(errors <= np.maximum(np.abs(values), spans))
        values, errors = np.where(hidden, np.nan, values), np.where(hidden, np.inf, errors)
        return Estimates(found.on.keys, found.on.types, values, errors**2, MEASURED, found.bounded)

    def histogram(self, asked: Asked, argument: Feature, limits: Bounds) -> dict[Keys, dict[float, int]]:
        """How many of each group have values up to the end of each of some bins, and above the one before: those that
        are not hidden by noise. As DuckDB's own histogram of bins, it is by where they end."""
        found = self._found(asked, argument, limits)
        step = max(-(-found.bins.leaves // _PARTS), 1)
        starts = np.arange(0, found.bins.leaves, step)
        parts = np.add.reduceat(found.counts, starts, axis=1)
        last = [min(int(start) + step, found.bins.leaves) for start in starts]
        ends = [found.bins.edge(at) - found.bins.whole for at in last]
        listed: dict[Keys, dict[float, int]] = {}
        for keys, row, variance in zip(found.on.keys, parts, found.variance, strict=True):
            noise = math.sqrt(variance * min(step, 4))
            digits = max(round(noise) // 10, 1)
            listed[keys] = {
                end: max(round(float(count) / digits) * digits, 0)
                for end, count in zip(ends, row, strict=True)
                if count > 2 * noise
            }
        return listed

    def _wanted(self, asked: Asked, argument: Feature, limits: Bounds) -> Wanted:
        session, rows = self.counts.session, asked.rows or ""
        domains = self.counts.domains(asked)
        order = sorted(range(len(domains)), key=lambda at: asked.features[at].name)
        return Wanted(
            "bins",
            rows,
            tuple(asked.features[at] for at in order),
            tuple(domains[at] for at in order),
            f"{rows} sums" if rows else "sums",
            argument=argument,
            bounds=limits,
            reach=session.reach(rows, asked.features) if rows else 1.0,
        )

    def prepared(self, asked: Asked) -> Asked:
        """The question by features whose classes are known: its whole condition is one of them, if it has several."""
        asked = self.counts.covered(asked, ())
        kept = sorted({place for key in asked.keys for place in symbols(key)})
        more = asked.condition != TRUE or asked.present
        return with_one_condition(asked, kept) if len(asked.features) > 2 and more else asked

    def _found(self, asked: Asked, argument: Feature, limits: Bounds) -> _Found:
        session, rows = self.counts.session, asked.rows or ""
        wanted = self._wanted(asked, argument, limits)
        of_value = Bins.of(argument, limits)
        if number_of_cells(wanted.domains) * of_value.size > CELLS:
            raise TooWide
        domains = self.counts.domains(asked)
        on = grid(asked, domains, self.counts.scratch)
        session.ensure(wanted)
        measured = session.model.mean(wanted.name, wanted.domains, GRANULES if rows else 1.0)
        assert measured is not None
        levels = on_axes(measured, wanted, on.axes)
        fitted = of_value.fitted(on.summed_each(levels.values))
        variance = on.summed(levels.variance[..., 0])
        bounded = bool(rows) and lost(session, rows, wanted.reach, 1.0).some
        return _Found(on, of_value, fitted, variance, bounded)

    def _quantiles(self, found: _Found, fraction: float, *, discrete: bool) -> tuple[Floats, Floats, Floats]:
        """The quantile of each group, its standard error, and between what the middle half lies; NaN of groups that
        noise hides."""
        bins, noise = found.bins, np.sqrt(found.bins.below(fraction))
        values, errors, spans = (np.full(len(found.counts), start) for start in (np.nan, np.inf, 0.0))
        for at, (row, variance) in enumerate(zip(found.counts, found.variance, strict=True)):
            sums = _rising(np.cumsum(row))
            whole = float(sums[-1])
            if whole <= 0:
                continue
            inner = self._inner(fraction, sums, noise * math.sqrt(variance))
            if math.isnan(inner):
                continue
            place = int(np.searchsorted(sums, inner * whole))
            # Between two people there is nobody: a quantile may be anywhere between them.
            off = math.hypot(float(noise[min(place, bins.leaves - 1)]) * math.sqrt(variance), 1.0) / whole
            ends = [min(max(inner + by, 0.0), 1.0) for by in (-off, 0.0, off)]
            low, value, high = (_at(sums / whole, end, bins, discrete=discrete) for end in ends)
            exact = bins.whole and bins.width == 1
            middle = [_at(sums / whole, end, bins, discrete=discrete) for end in (0.25, 0.75)]
            values[at], spans[at] = value, middle[1] - middle[0]
            errors[at] = math.hypot((high - low) / 2, 0.0 if exact else _rough(sums / whole, value, bins))
        return values, errors, spans

    def _inner(self, fraction: float, sums: Floats, noise: Floats) -> float:
        """The share below a quantile: at the ends that of k, and as many as noise may make of none."""
        if 0 < fraction < 1:
            return fraction
        return inner_share(fraction, float(self.counts.session.catalog.policy.k), sums, noise)

    def _nearer(self, found: _Found, told: tuple[Floats, Floats, Floats], argument: Feature) -> Bounds | None:
        """Narrower bounds within which the quantiles of all groups lie, where their bins are too wide to say where.
        What is beyond stays in the first and the last bin. None where that gains little."""
        bins = found.bins
        values, errors = (of[np.isfinite(told[0])] for of in told[:2])
        if not len(values) or (bins.whole and bins.width == 1):
            return None
        close = np.ones(len(values)) if _is_day(argument) else _CLOSE * np.abs(values)
        if (_WITHIN * bins.width <= close).all():
            return None
        first = math.floor((float(np.min(values - _SURE * errors)) - bins.low) / bins.width)
        last = math.ceil((float(np.max(values + _SURE * errors)) - bins.low) / bins.width)
        first, last = max(first, 0), min(max(last, first + 1), bins.leaves)
        if (last - first) * _NEARER > bins.leaves:
            return None
        high = bins.edge(last) - (1 if bins.whole else 0)
        return Bounds(bins.edge(first), high)


def _is_day(argument: Feature) -> bool:
    """Whether values are days since one day: how large they are says nothing of how close is close enough."""
    expr = argument.expr
    return isinstance(expr, Op) and any(isinstance(one, Op) and one.name == "date_diff" for one in (expr, *expr.args))


def _rising(sums: Floats) -> Floats:
    """The sums that never fall which are nearest, by pooling those that do, and are none below 0."""
    blocks: list[list[float]] = []  # of each the sum, and how many there are
    for value in sums:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, many = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += many
    levels = np.concatenate([np.full(int(many), total / many) for total, many in blocks])
    return np.maximum(levels, 0.0)


def _at(shares: Floats, fraction: float, bins: Bins, *, discrete: bool) -> float:
    """The value below which a fraction lies. shares: of all, up to the end of each bin."""
    place = min(int(np.searchsorted(shares, max(fraction, 1e-12))), bins.leaves - 1)
    if bins.whole and bins.width == 1:
        return bins.edge(place)
    before = float(shares[place - 1]) if place else 0.0
    inside = (fraction - before) / max(float(shares[place]) - before, 1e-12)
    value = bins.edge(place + min(max(inside, 0.0), 1.0))
    if bins.whole:
        value = min(value, bins.edge(bins.leaves) - 1)
    return float(math.floor(value)) if bins.whole and discrete else value


def _rough(shares: Floats, value: float, bins: Bins) -> float:
    """The standard error of a value within its bin: more where many are in it, as they may all be in one place."""
    place = min(max(int((value - bins.low) / bins.width), 0), bins.leaves - 1)
    inside = float(shares[place]) - (float(shares[place - 1]) if place else 0.0)
    return bins.width * min(_WITHIN + inside, 0.5)


def inner_share(fraction: float, k: float, sums: Floats, noise: Floats) -> float:
    """The share below the least value that at least k reach, at fraction 0, or the greatest, at 1; NaN where noise
    hides it. sums: how many have each value or less, float64[values]; noise: the standard error of each."""
    whole = float(sums[-1])
    from_end = sums if fraction == 0 else whole - np.concatenate([[0.0], sums[:-1]])
    enough = np.flatnonzero(from_end >= k + _SURE * noise)
    if not len(enough):
        return math.nan
    at = int(enough[0] if fraction == 0 else enough[-1])
    share = (k + _SURE * float(noise[at])) / whole
    if share > _HALF:  # an end is beyond the median
        return math.nan
    return share if fraction == 0 else 1 - share


Told = Callable[[Floats, Floats, Floats], tuple[float, float]]


def of_values(fraction: float, k: int, *, discrete: bool) -> Told:
    """A quantile of values that are told apart, from how many have each: counts, their variance, and the values, to
    value and variance. At 0 and 1 the values that at least k reach."""

    def of(counts: Floats, spread: Floats, numbers: Floats) -> tuple[float, float]:
        order = np.argsort(numbers, kind="stable")
        values, many = numbers[order], np.maximum(counts[order], 0.0)
        sums = np.cumsum(many)
        whole = float(sums[-1])
        if whole <= 0:
            return math.nan, math.inf
        below = np.cumsum(spread[order])
        share = fraction
        if not 0 < fraction < 1:
            noise = np.sqrt(below if fraction == 0 else below[-1] - np.concatenate([[0.0], below[:-1]]))
            share = inner_share(fraction, float(k), sums, noise)
            if math.isnan(share):
                return math.nan, math.inf
        place = min(int(np.searchsorted(sums, share * whole)), len(values) - 1)
        inner, outer = float(below[place]), float(below[-1] - below[place])
        off = math.sqrt((1 - share) ** 2 * inner + share**2 * outer) / whole
        low, value, high = (
            _among(sums / whole, values, share + by, whole, discrete=discrete) for by in (-off, 0.0, off)
        )
        return value, ((high - low) / 2) ** 2

    return of


def _among(shares: Floats, values: Floats, fraction: float, whole: float, *, discrete: bool) -> float:
    """The value at a fraction of all; of an even number the middle of two, where they differ."""
    at = min(max(fraction, 1e-12), 1.0)
    place = min(int(np.searchsorted(shares, at - 1e-12)), len(values) - 1)
    half = abs(float(shares[place]) - at) * whole < 0.5
    if not discrete and half and place + 1 < len(values) and fraction == 0.5:
        return float(values[place] + values[place + 1]) / 2
    return float(values[place])
