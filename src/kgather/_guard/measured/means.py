"""Means of bounded values in the groups of a question.

Of people: from sums by each feature, by regression whose normal equations are the counts of pairs. Of rows: from sums
in the cells themselves. Of values that are told apart: from the counts of the cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kgather._guard.measured.bounding import Lost, lost
from kgather._guard.measured.coding import FINE, Bounds
from kgather._guard.measured.counts import Counts, number_of_cells, on_axes, with_lost
from kgather._guard.measured.estimates import ESTIMATED, MEASURED, MODELLED, Estimates, worse
from kgather._guard.measured.features import Asked, Feature
from kgather._guard.measured.grid import Grid, TooWide, grid
from kgather._guard.measured.measuring import CELLS, Spent, Wanted
from kgather._guard.measured.model import Axis, Effects, Floats, Table, effects
from kgather._guard.plan import TRUE, Expr

_EFFECT = 8.0  # half the span of a value is so many prior deviations of an effect
_INTERACTION = 0.35  # of the prior deviation of an effect


@dataclass
class Means:
    """Means for the questions of one answer."""

    counts: Counts
    there: dict[tuple[Asked, Feature], Estimates] = field(default_factory=dict)
    """Of rows that a condition chooses: how many have a value, where sums of it were asked for."""

    def of(self, asked: Asked, argument: Feature, limits: Bounds) -> Estimates:
        """The mean of a bounded value in each group."""
        return self._of_rows(asked, argument, limits) if asked.rows else self._of_people(asked, argument, limits)

    def _of_people(self, asked: Asked, argument: Feature, limits: Bounds) -> Estimates:
        """By sums over each feature, and regression on them all."""
        cells = self.counts.cells(asked)
        asked, on = cells.asked, cells.grid
        features = asked.features or ()
        wanted = [
            Wanted("sums", "", (feature,), (domain,), "sums", argument=argument, bounds=limits)
            for feature, domain in zip(features, cells.domains, strict=True)
        ] or [Wanted("sums", "", (), (), "sums", argument=argument, bounds=limits)]
        complete = self.counts.session.ensure(*wanted, required=False)
        known = [at for at, one in enumerate(wanted) if self.counts.session.has(one)]
        if not known:
            raise Spent
        sums, there = zip(*(self._sums(wanted[at], limits) for at in known), strict=True)
        total = float(np.mean([np.sum(of.values) for of in sums]))
        present = float(np.mean([np.sum(of.values) for of in there]))
        spread = float(np.mean([np.sum(of.variance) for of in sums])) / len(known)
        everybody = max(float(self.counts.session.model.people.values), 1.0)
        rate = _rate(present, everybody, math.sqrt(sum(float(np.sum(of.variance)) for of in there)) / len(known))
        count = max(everybody * rate, 1.0)
        mean = float(np.clip(total / count, -limits.half, limits.half))
        keys, kind = on.keys, cells.kind
        if not features:
            return Estimates(keys, on.types, np.array([limits.middle + mean]), np.array([spread / count**2]), kind)
        axes = [on.axes[at] for at in known]
        ones = [self._there(axis, of, rate) for axis, of in zip(axes, there, strict=True)]
        of_axes = [_together(of, axis) for of, axis in zip(sums, axes, strict=True)]
        places = {place: at for at, place in enumerate(known)}
        pairs = {
            (places[a], places[b]): Table(table.values * rate, table.variance)
            for (a, b), table in cells.pairs.items()
            if a in places and b in places
        }
        if len(known) == 2 and not pairs and len(on.shape) == 2:
            pairs = {(0, 1): cells.counts}
        found = effects(of_axes, ones, pairs, mean, max(limits.half, 1e-300) / _EFFECT)
        values, variance = _predicted(on, cells.counts.values, found, known, mean, spread / count**2)
        # Effects are taken to add up; by how much they do not is a guess, of a part of what they are held to.
        variance = variance + ((len(features) - 1) * _INTERACTION * limits.half / _EFFECT) ** 2
        return Estimates(
            keys,
            on.types,
            limits.middle + np.clip(values, -limits.half, limits.half),
            variance,
            worse(kind, MODELLED if len(features) > 1 else MEASURED, MEASURED if complete else ESTIMATED),
        )

    def _sums(self, wanted: Wanted, limits: Bounds) -> tuple[Table, Table]:
        """Sums of distances from the middle, and counts of the values that are there."""
        parts = self.counts.session.model.found(wanted.name, wanted.domains)
        numbers = self.counts.session.model.mean(wanted.name, wanted.domains)
        assert numbers is not None
        of_sum, of_count = limits.half / FINE, 1 / int(parts[0].about["counted"])
        return (
            Table(numbers.values[..., 0] * of_sum, numbers.variance[..., 0] * of_sum**2),
            Table(numbers.values[..., 1] * of_count, numbers.variance[..., 1] * of_count**2),
        )

    def _there(self, axis: Axis, there: Table, rate: float) -> Table:
        """People of each class who have a value."""
        people = self.counts.one(axis)
        counted = _together(there, axis)
        least = people.values - 2 * np.sqrt(counted.variance + people.variance)
        values = np.where(
            (rate >= 1) & (counted.values >= least), people.values, np.minimum(counted.values, people.values)
        )
        return Table(values, people.variance)

    def _of_rows(self, asked: Asked, argument: Feature, limits: Bounds) -> Estimates:
        """By sums in the cells themselves, drawn to the mean of all by their noise."""
        rows = asked.rows or ""
        if self.counts.only_groups(asked) and self.counts.session.is_distinct(asked.rows or "", asked.features):
            keyed = self._keyed(asked, argument, limits)
            if keyed is not None:
                return keyed
        whole, asked = asked, self.counts.covered(asked, ())
        only: Feature | None = None
        if self.counts.is_apart(asked) or (len(asked.features) > 2 and asked.condition != TRUE):
            asked, only = self.counts.chosen(asked)
        domains = self.counts.domains(asked)
        order = sorted(range(len(domains)), key=lambda at: asked.features[at].name)
        wanted = Wanted(
            "sums",
            rows,
            tuple(asked.features[at] for at in order),
            tuple(domains[at] for at in order),
            f"{rows} sums" if only is None else f"{rows} chosen",
            argument=argument,
            bounds=limits,
            reach=self.counts.session.reach(rows, asked.features, only),
            only=only,
        )
        if number_of_cells(wanted.domains) > CELLS:
            raise TooWide
        on = grid(asked, domains, self.counts.scratch)
        self.counts.session.ensure(wanted)
        measured = self._sums(wanted, limits)
        sums, there = (on_axes(of, wanted, on.axes) for of in measured)
        spread = self.counts.spread_of(wanted, measured[1].values)
        of = lost(self.counts.session, rows, wanted.reach, spread, only)
        if only is not None:
            self.there[whole, argument] = with_lost(
                Estimates(
                    on.keys, on.types, np.maximum(on.summed(there.values), 0), on.summed(there.variance), MEASURED
                ),
                of,
            )
        return self._drawn(on, sums, there, limits, of)

    def _keyed(self, asked: Asked, argument: Feature, limits: Bounds) -> Estimates | None:
        """Means by the values of one feature, from the measurement that found them; None where another one did."""
        rows, (feature,) = asked.rows or "", asked.features
        wanted = Wanted(
            "keyed",
            rows,
            (feature,),
            pool=f"{rows} keys",
            price=sum(
                self.counts.session.prices.of.get(f"{rows} {kind}", self.counts.session.prices.fresh)
                for kind in ("keys", "sums")
            ),
            argument=argument,
            bounds=limits,
            reach=self.counts.session.keys(feature, rows).reach,
        )
        measured = self.counts.session.has(wanted)
        if not measured and self.counts.session.found(feature, rows) is None:
            measured = self.counts.session.ensure(wanted, required=False)
        if not measured:
            return None
        taken = self.counts.session.model.found(wanted.name)[0]
        (domain,) = taken.domains
        on = grid(asked, (domain,), self.counts.scratch)
        more = domain.size - len(taken.numbers)
        numbers = np.pad(taken.numbers.astype(float), ((0, more), (0, 0)))
        of_sum, of_count = limits.half / FINE, 1 / int(taken.about["counted"])
        sums, there = (
            _together(Table(numbers[:, at] * unit, np.full(domain.size, (taken.sd * unit) ** 2)), on.axes[0])
            for at, unit in enumerate((of_sum, of_count))
        )
        found = self._drawn(on, sums, there, limits, lost(self.counts.session, rows, wanted.reach, 0.0))
        known = [at for at, keys in enumerate(found.keys) if keys != (None,)]
        keys = tuple(found.keys[at] for at in known)
        return replace(found, keys=keys, values=found.values[known], variance=found.variance[known])

    def _drawn(self, on: Grid, sums: Table, there: Table, limits: Bounds, of: Lost) -> Estimates:
        """Means of groups from sums and counts in cells, drawn to the mean of all as far as noise blurs them. of: what
        is lost of rows; those of people with many rows may have other values."""
        whole_sum, whole_count = float(np.sum(sums.values)), max(float(np.sum(there.values)), 1.0)
        mean = float(np.clip(whole_sum / whole_count, -limits.half, limits.half))
        total, count = on.summed(sums.values), np.maximum(on.summed(there.values), 1.0)
        values = np.clip(total / count, -limits.half, limits.half)
        variance = (on.summed(sums.variance) + values**2 * on.summed(there.variance)) / count**2
        prior = (limits.half / _EFFECT * 2) ** 2
        held = prior / (prior + variance)
        values = mean + (values - mean) * held
        variance = variance * held + (of.share * limits.half / _EFFECT) ** 2
        return Estimates(on.keys, on.types, limits.middle + values, variance, MEASURED, of.some)

    def numbers(self, asked: Asked, arguments: Sequence[Expr], of: Any) -> Estimates:
        """A statistic of arguments whose values are told apart, from counts of cells. of: counts, their variance and
        the arguments' numbers in the cells of a group, all flat, to value and variance."""
        cells = self.counts.cells(asked, arguments)
        on = cells.grid
        places = on.places
        missing = [np.isnan(numbers).ravel() for numbers in on.numbers]
        there = ~np.any(missing, axis=0)
        flat = np.broadcast_to(cells.counts.values, on.shape).ravel()
        spread = np.broadcast_to(cells.counts.variance, on.shape).ravel()
        values, variance = np.full(len(on.keys), np.nan), np.full(len(on.keys), np.inf)
        unseen = min(sum(missing / max(mass, missing) for missing, mass in self.counts.unseen(cells)), 1.0)
        for at in range(len(on.keys)):
            own = (places == at) & there
            if own.any():
                numbers = [number.ravel()[own] for number in on.numbers]
                values[at], variance[at] = of(flat[own], spread[own], *numbers)
                variance[at] += (unseen * max(float(np.ptp(number)) for number in numbers) / 2) ** 2
        return Estimates(on.keys, on.types, values, variance, cells.kind)


def _predicted(
    on: Grid, counts: Floats, found: Effects, known: Sequence[int], mean: float, of_mean: float
) -> tuple[Floats, Floats]:
    """Means of groups from effects, weighted by the counts of cells; and the variance of each.

    O(cells) for each axis, and O(groups) for each two of them of which a group has one class; else by their classes.
    """
    weights = np.maximum(counts, 1e-9)
    whole = np.maximum(on.summed(weights), 1e-9)
    parts = [_shares(on, weights, at) / whole[:, None] for at in known]
    starts = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])]).astype(int)
    of = [slice(first, last) for first, last in pairwise(starts)]
    single = [part.argmax(1) if np.all((part > 0).sum(1) == 1) else None for part in parts]
    values, variance = np.full(len(whole), mean), np.full(len(whole), of_mean)
    for at, part in enumerate(parts):
        values += part @ found.values[of[at]]
        for other in range(at + 1):
            covariance = found.covariance[of[at], of[other]]
            one, two = single[at], single[other]
            if one is None:
                both = np.sum((part @ covariance) * parts[other], axis=1)
            elif two is None:
                both = np.sum(covariance[one] * parts[other], axis=1)
            else:
                both = covariance[one, two]
            variance += both * (1 if at == other else 2)
    return values, variance


def _shares(on: Grid, weights: Floats, at: int) -> Floats:
    """How much of each group is in each class of an axis, float64[groups, classes]."""
    size = on.shape[at]
    classes = np.arange(size).reshape([-1 if axis == at else 1 for axis in range(len(on.shape))])
    places, flat = on.places, np.broadcast_to(weights, on.shape).ravel()
    cells = places * size + np.broadcast_to(classes, on.shape).ravel()
    inside = places >= 0
    found = np.bincount(cells[inside], weights=flat[inside], minlength=len(on.keys) * size)
    return found.astype(float).reshape(len(on.keys), size)


def _rate(present: float, everybody: float, noise: float) -> float:
    """The part of people who have a value; all, where noise could hide that some have none."""
    return 1.0 if present + 2 * noise >= everybody else max(present / everybody, 0.0)


def _together(table: Table, axis: Axis) -> Table:
    return Table(axis.together(table.values, 0), axis.together(table.variance, 0))
