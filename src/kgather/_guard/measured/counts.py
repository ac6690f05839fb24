"""Counts of people, or of rows, in the cells of a question, from what is measured; what is missing is measured first.

Counts come from margins of one and two features, three are put together. What these do not cover is measured by itself,
or estimated and marked as such.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from kgather._guard.measured.bounding import Lost, lost, spread_of
from kgather._guard.measured.domain import Domain, declared, is_computed, is_measure_of_numbers
from kgather._guard.measured.estimates import ESTIMATED, MEASURED, MODELLED, Estimates, Keys
from kgather._guard.measured.features import (
    SYMBOLS,
    Asked,
    Feature,
    as_feature,
    is_fine_date,
    is_of_rows,
    keeps_apart,
    of_people_once,
    only_used,
    renamed,
    symbols,
    with_one_condition,
)
from kgather._guard.measured.grid import Grid, Scratch, TooWide, for_others, grid, is_guessed, leaves, names_another
from kgather._guard.measured.measuring import CELLS, Session, Spent, Wanted
from kgather._guard.measured.model import Axis, Floats, Table, joint, one_of, pair_of
from kgather._guard.measured.reading import GRANULES
from kgather._guard.measured.shares import RESERVE
from kgather._guard.plan import NUMERIC, TRUE, Bound, Expr, Op, PerUnit, conjunction, conjuncts
from kgather._guard.refused import Refused, Rule

_COVERED = 3  # features that margins are put together for
_MOST = 6  # features of an estimate
_OTHERS = 0.05  # the part of people whose values are not told apart, from which on conditions are measured themselves


@dataclass(frozen=True)
class Cells:
    """A question over features whose classes are known, with the counts of its cells."""

    asked: Asked
    domains: tuple[Domain, ...]
    grid: Grid
    counts: Table
    kind: str
    pairs: Mapping[tuple[int, int], Table]
    spread: float = 0.0
    """Of rows: how one person's are spread over what was measured, as of `spread_of`."""
    reach: float = 1.0
    """Of rows: what one person moves at most."""
    only: Feature | None = None
    """The condition of the rows that were read."""
    once: float = math.inf
    """Where a person counts once in each cell: how many cells there are."""


@dataclass
class Counts:
    """Counts for the questions of one answer."""

    session: Session
    scratch: Scratch
    _known: dict[tuple[Asked, tuple[Expr, ...], bool], Cells] = field(default_factory=dict)

    def of(self, asked: Asked, *, people: bool = False) -> Estimates:
        """How many people, or rows, are in each group. people: of rows, how many people. Raises Spent, TooWide."""
        if asked.rows:
            found = self.found_keys(asked)
            if found is not None and self.session.is_distinct(asked.rows or "", asked.features):
                of = lost(self.session, asked.rows, self.session.keys(asked.features[0], asked.rows).reach, 0.0)
                return with_lost(found, of)
        cells = self.cells(asked, people=people)
        values = cells.grid.summed(cells.counts.values)
        variance = cells.grid.summed(cells.counts.variance)
        for missing, mass in self.unseen(cells):
            part = np.clip(values / mass, 0.0, 1.0) if mass > missing else 1.0
            variance = variance + (missing * part) ** 2
        found = Estimates(cells.grid.keys, cells.grid.types, values, variance, cells.kind)
        if not asked.rows:
            return found
        return with_lost(found, lost(self.session, asked.rows, cells.reach, cells.spread, cells.only, cells.once))

    def found_keys(self, asked: Asked) -> Estimates | None:
        """The groups of a question that only groups by one feature whose values were found, with the people in each:
        they are enough, or it would not have been found. None of other questions."""
        rows = asked.rows or ""
        if not self.only_groups(asked):
            return None
        (feature,) = asked.features
        domain = self.session.domain(feature, rows)
        measured = self.session.found(feature, rows)
        assert measured is not None
        on = grid(asked, (domain,), self.scratch)
        known = {keys: at for at, keys in enumerate(on.keys)}
        keyed = measured.kind == "keyed"
        unit = float(measured.about["counted"]) if keyed else GRANULES if rows else 1.0
        counts = measured.numbers[:, 1] if keyed else measured.numbers
        places = [int(np.flatnonzero(on.places == place)[0]) for keys, place in known.items() if keys != (None,)]
        classes = [int(np.flatnonzero(on.axes[0].classes == place)[0]) for place in places]
        keys = tuple(keys for keys in on.keys if keys != (None,))
        if not keys:
            return None
        values = counts[classes].astype(float) / unit
        return Estimates(keys, on.types, values, np.full(len(keys), (measured.sd / unit) ** 2), MEASURED)

    def only_groups(self, asked: Asked) -> bool:
        """Whether a question does nothing but group by one feature whose values have to be found."""
        if len(asked.features) != 1 or asked.condition != TRUE or asked.present:
            return False
        (feature,) = asked.features
        if feature.kind == "other" or [*asked.keys] != [Bound(SYMBOLS, "0", feature.kind)]:
            return False
        session = self.session
        if declared(feature, session.catalog) is not None or session.public(feature) is not None:
            return False
        return session.range(feature, asked.rows or "") is None

    def distinct(self, asked: Asked, argument: Expr, least: float, sure: float) -> Estimates:
        """How many values of an argument are shown in each group: those of `least` people and `sure` errors. How many
        there are that are not shown nobody knows: there is no standard error, NaN."""
        inner = replace(asked, keys=(*asked.keys, argument))
        found = self.of(inner)
        numbers: dict[Keys, int] = {}
        for at, keys in enumerate(found.keys):
            enough = found.values[at] >= least + sure * math.sqrt(found.variance[at])
            numbers[keys[:-1]] = numbers.get(keys[:-1], 0) + int(enough and keys[-1] is not None)
        listed = tuple(numbers)
        values = np.array([numbers[keys] for keys in listed], dtype=float)
        return Estimates(listed, found.types[:-1], values, np.full(len(listed), np.nan), found.kind, found.bounded)

    def unseen(self, cells: Cells) -> list[tuple[float, float]]:
        """Of each feature with values that are not told apart and about which a condition cannot be known: how many
        people may have such, and how many have values that the question asks for."""
        if cells.asked.rows:
            return []
        found = []
        for at, axis in enumerate(cells.grid.axes):
            other = axis.domain.other_code
            own = [leaf for leaf in leaves(cells.asked.condition) if symbols(leaf) == {at}]
            guessed = other is not None and (
                any(is_guessed(leaf) or names_another(leaf, axis.domain) for leaf in own)
                or any(
                    at in symbols(for_others(key, at, axis.domain)) and not keeps_apart(key) for key in cells.asked.keys
                )
            )
            one = self.session.model.one("", axis.name, axis.domain) if guessed else None
            if one is None or other is None:
                continue
            missing = max(float(one.values[other]), 0.0) + math.sqrt(float(one.variance[other]))
            used = cells.grid.wanted.any(axis=tuple(place for place in range(len(cells.grid.axes)) if place != at))
            found.append((missing, float(axis.together(one.values, 0)[used].sum())))
        return found

    # Cells

    def cells(self, asked: Asked, arguments: Sequence[Expr] = (), *, people: bool = False) -> Cells:
        """The cells of a question with their counts. They are found once: an answer is computed again when more was
        measured for it."""
        known = (asked, tuple(arguments), people)
        if known not in self._known:
            self._known[known] = self._cells(asked, arguments, people=people)
        return self._known[known]

    def _cells(self, asked: Asked, arguments: Sequence[Expr], *, people: bool) -> Cells:
        if people and asked.rows:
            return self._of_people_once(asked)
        asked = self.covered(asked, arguments)
        if self.is_apart(asked):
            return self._among(asked)
        if len(asked.features) > _COVERED:
            try:
                return self._by_itself(asked, arguments)
            except (Spent, TooWide):
                if asked.rows or len(asked.features) > _MOST:
                    raise
                return self._of_people(asked, arguments, estimated=True)
        if asked.rows:
            return self._of_rows(asked, arguments)
        return self._of_people(asked, arguments, estimated=False)

    def covered(self, asked: Asked, arguments: Sequence[Expr]) -> Asked:
        """The question with conditions as features of their own where single values are not told apart."""
        fixed = {place for expr in (*asked.keys, *arguments) for place in symbols(expr)}
        read = [*leaves(asked.condition)]
        rough = set()
        for place, feature in enumerate(asked.features):
            if place in fixed or not any(place in symbols(leaf) for leaf in read):
                continue
            if not self.is_told_apart(feature, asked.rows or "", read, place):
                rough.add(place)
        if not rough:
            return asked
        made: list[Feature] = []

        def changed(expr: Expr) -> Expr:
            read = symbols(expr)
            if read and read <= rough and expr.kind == "boolean":
                made.append(as_feature(expr, asked.features))
                return Bound(SYMBOLS, str(len(asked.features) + len(made) - 1), "boolean")
            if isinstance(expr, Op) and expr.name in ("and", "or", "not"):
                together = [
                    arg for arg in expr.args if symbols(arg) and symbols(arg) <= rough and arg.kind == "boolean"
                ]
                if expr.name in ("and", "or") and len(together) > 1:
                    rest = [arg for arg in expr.args if arg not in together]
                    return Op(expr.name, (changed(Op(expr.name, tuple(together))), *(changed(arg) for arg in rest)))
                return Op(expr.name, tuple(changed(arg) for arg in expr.args), expr.kind)
            return expr

        lost = tuple(place for place in asked.present if place in rough)
        present = [place for place in asked.present if place not in rough]
        if lost and symbols(asked.condition) <= rough:  # the condition says that there is a row, too
            made.append(as_feature(asked.condition, asked.features, lost))
            condition: Expr = Bound(SYMBOLS, str(len(asked.features)), "boolean")
        else:
            condition = changed(asked.condition)
            for place in lost:
                made.append(Feature(TRUE, asked.features[place].lookups, asked.features[place].table))
                present.append(len(asked.features) + len(made) - 1)
        features = (*asked.features, *made)
        return only_used(Asked(asked.rows, features, condition, asked.keys, tuple(present)), arguments)

    def is_told_apart(self, feature: Feature, rows: str, conditions: Sequence[Expr] = (), place: int = 0) -> bool:
        """Whether the values of a feature are classes by which conditions can be answered. Those of fine numbers are
        not; texts of which the values were found are for conditions that tell others from them, as equality does."""
        session = self.session
        if is_measure_of_numbers(feature, session.catalog) or _is_counted(feature) or is_computed(feature):
            return False
        if declared(feature, session.catalog) is not None or session.public(feature) is not None:
            return True
        if feature.kind in NUMERIC:
            return session.range(feature, rows) is not None
        if is_fine_date(feature.expr) and session.found(feature, rows) is None:
            return False
        if not any(place in symbols(leaf) and is_guessed(leaf) for leaf in conditions):
            return True
        domain = session.domain(feature, rows)
        wanted = self.wanted(rows, (feature,), (domain,))
        session.ensure(wanted, required=False)
        session.relies_on(wanted.name)
        one = session.model.one(rows, feature.name, domain, GRANULES if rows else 1.0)
        if one is None or domain.other_code is None:
            return False
        whole, other = float(one.values.sum()), float(one.values[domain.other_code])
        return other <= max(_OTHERS * whole, 3 * math.sqrt(float(one.variance[domain.other_code])))

    def is_apart(self, asked: Asked) -> bool:
        """Whether only the rows that a condition chooses are read: people have fewer of them, so that there is less
        noise, and what is measured of the others would not be of use for another question."""
        if not asked.rows or asked.condition == TRUE:
            return False
        of_keys = {place for key in asked.keys for place in symbols(key)}
        own = [feature for at, feature in enumerate(asked.features) if at not in of_keys]
        return len(asked.features) > _COVERED or any(feature.needs for feature in own)

    def chosen(self, asked: Asked) -> tuple[Asked, Feature]:
        """A question about the rows that a condition chooses, and that condition. What it says of the keys stays in the
        question, too: no noise is in groups that there cannot be."""
        kept = sorted({place for key in asked.keys for place in symbols(key)})
        whole = with_one_condition(asked, kept)
        places = {str(place): str(at) for at, place in enumerate(kept)}
        of_keys = [part for part in conjuncts(asked.condition) if (read := symbols(part)) and read <= {*kept}]
        condition = renamed(conjunction(of_keys), places)
        return Asked(asked.rows, whole.features[:-1], condition, whole.keys), whole.features[-1]

    def _among(self, asked: Asked, *, people: bool = False) -> Cells:
        """The rows that a condition chooses, by the keys."""
        smaller, only = self.chosen(asked)
        domains = self.domains(smaller)
        if number_of_cells(domains) > CELLS:
            raise TooWide
        wanted = replace(self.wanted(asked.rows or "", smaller.features, domains, only, people=people), pool=RESERVE)
        on = grid(smaller, domains, self.scratch)
        self.session.ensure(wanted)
        table = self._table(wanted, on.axes)
        once = float(number_of_cells(domains)) if people else math.inf
        return Cells(smaller, domains, on, table, MEASURED, {}, self._spread(wanted), wanted.reach, only, once)

    def wanted(
        self,
        rows: str,
        features: Sequence[Feature],
        domains: Sequence[Domain],
        only: Feature | None = None,
        *,
        people: bool = False,
    ) -> Wanted:
        """The measurement of a margin, its axes in the order of their names."""
        order = sorted(range(len(features)), key=lambda at: features[at].name)
        kind = "ones" if len(features) < 2 else "pairs"
        reach = self.session.reach(rows, features, only, people=people) if rows else 1.0
        return Wanted(
            "counts",
            rows,
            tuple(features[at] for at in order),
            tuple(domains[at] for at in order),
            f"{rows} {kind}" if rows else kind,
            reach=reach,
            people=people,
            only=only,
        )

    def domains(self, asked: Asked) -> tuple[Domain, ...]:
        for feature in asked.features:
            if feature.kind == "other":
                told = f"{feature.name} is of a type whose values are not told apart. Leave the column out."
                raise Refused(told, rule=Rule.KEYS)
        return tuple(self.session.domain(feature, asked.rows or "") for feature in asked.features)

    def _of_people(self, asked: Asked, arguments: Sequence[Expr], *, estimated: bool) -> Cells:
        domains = self.domains(asked)
        on = grid(asked, domains, self.scratch, arguments)
        session, n = self.session, len(asked.features)
        if n == 0:
            session.ensure(Wanted("people", "", (), pool="ones"))
            return Cells(asked, domains, on, session.model.people, MEASURED, {})
        if n == 1:
            session.ensure(self.wanted("", asked.features, domains))
            table = session.model.one("", asked.features[0].name, domains[0])
            assert table is not None
            return Cells(asked, domains, on, one_of(table, on.axes[0]), MEASURED, {})
        places = list(combinations(range(n), 2))
        wanted = [
            self.wanted("", [asked.features[at] for at in place], [domains[at] for at in place]) for place in places
        ]
        for one in wanted:
            if number_of_cells(one.domains) > CELLS:
                raise TooWide
        complete = session.ensure(*wanted, required=False)
        pairs = {place: self._pair(on.axes, place) for place in places}
        kind = MEASURED if n == 2 else ESTIMATED if estimated else MODELLED
        if not complete and any(pair is None for pair in pairs.values()):
            # Without a margin of the two, as if they had nothing to do with each other: marked.
            kind = ESTIMATED
        known = {place: pair if pair is not None else self._apart(on.axes, place) for place, pair in pairs.items()}
        counts = known[0, 1] if n == 2 else joint(known, on.shape)
        return Cells(asked, domains, on, counts, kind, known)

    def one(self, axis: Axis) -> Table:
        """A one-way margin of people, measured if there is none."""
        table = self.session.model.one("", axis.name, axis.domain)
        if table is None:
            raise Spent
        return one_of(table, axis)

    def _pair(self, axes: Sequence[Axis], place: tuple[int, int]) -> Table | None:
        first, second = (axes[at] for at in place)
        turned = first.name > second.name
        a, b = (second, first) if turned else (first, second)
        table = self.session.model.pair("", (a.name, b.name), (a.domain, b.domain))
        if table is None:
            return None
        found = pair_of(table, (self.one(a), self.one(b)), (a, b))
        return Table(found.values.T, found.variance.T) if turned else found

    def _apart(self, axes: Sequence[Axis], place: tuple[int, int]) -> Table:
        a, b = (self.one(axes[at]) for at in place)
        total = max(float(self.session.model.people.values), 1.0)
        values = np.outer(np.maximum(a.values, 0), np.maximum(b.values, 0)) / total
        return Table(values, (0.3 * values) ** 2 + 1.0)

    def _of_rows(self, asked: Asked, arguments: Sequence[Expr]) -> Cells:
        assert asked.rows is not None
        domains = self.domains(asked)
        on = grid(asked, domains, self.scratch, arguments)
        n = len(asked.features)
        if n <= 2:
            wanted = self.wanted(asked.rows, asked.features, domains)
            if number_of_cells(wanted.domains) > CELLS:
                raise TooWide
            self.session.ensure(wanted)
            table = self._table(wanted, on.axes)
            return Cells(asked, domains, on, table, MEASURED, {}, self._spread(wanted), wanted.reach)
        places = list(combinations(range(n), 2))
        several = [
            self.wanted(asked.rows, [asked.features[at] for at in place], [domains[at] for at in place])
            for place in places
        ]
        self.session.ensure(*several)
        pairs = {
            place: self._table(one, [on.axes[at] for at in place]) for place, one in zip(places, several, strict=True)
        }
        spread = max(self._spread(one) for one in several)
        reach = min(one.reach for one in several)
        return Cells(asked, domains, on, joint(pairs, on.shape), MODELLED, pairs, spread, reach)

    def _of_people_once(self, asked: Asked) -> Cells:
        """Of rows, the people in groups that may overlap: counts of single cells do not add up to them, so that they
        are measured in the groups themselves."""
        if asked.condition != TRUE or asked.present:
            return self._among(of_people_once(asked), people=True)
        smaller = of_people_once(asked)
        domains = self.domains(smaller)
        if number_of_cells(domains) > CELLS:
            raise TooWide
        wanted = self.wanted(asked.rows or "", smaller.features, domains, people=True)
        if len(smaller.features) > 2:
            wanted = replace(wanted, pool=RESERVE)
        self.session.ensure(wanted)
        on = grid(smaller, domains, self.scratch)
        table, once = self._table(wanted, on.axes), float(number_of_cells(domains))
        return Cells(smaller, domains, on, table, MEASURED, {}, self._spread(wanted), wanted.reach, once=once)

    def _table(self, wanted: Wanted, axes: Sequence[Axis]) -> Table:
        """A measured margin over the classes that a question tells apart, its axes in their order."""
        table = self.session.model.mean(wanted.name, wanted.domains, GRANULES if wanted.rows else 1.0)
        assert table is not None
        return on_axes(table, wanted, axes)

    def _spread(self, wanted: Wanted) -> float:
        """As `spread_of`, of one person's rows in the cells of a measurement."""
        table = self.session.model.mean(wanted.name, wanted.domains, GRANULES)
        return self.spread_of(wanted, table.values if table is not None else np.ones(()))

    def spread_of(self, wanted: Wanted, values: Floats) -> float:
        """How one person's rows are spread over the cells of a measurement, whose counts are given; 0 where no two of
        them are together. All of them have what is the person's own."""
        if wanted.people or self.session.is_distinct(wanted.rows, wanted.features):
            return 0.0
        own = tuple(at for at, of in enumerate(wanted.features) if not is_of_rows(of, wanted.rows))
        return spread_of(np.maximum(values, 0.0).sum(axis=own))

    def _by_itself(self, asked: Asked, arguments: Sequence[Expr]) -> Cells:
        """A condition of many columns as one measurement, with the keys."""
        kept = sorted({place for expr in (*asked.keys, *arguments) for place in symbols(expr)})
        places = {str(place): str(at) for at, place in enumerate(kept)}
        smaller = with_one_condition(asked, kept)
        domains = self.domains(smaller)
        if number_of_cells(domains) > CELLS:
            raise TooWide
        on = grid(smaller, domains, self.scratch, [renamed(argument, places) for argument in arguments])
        wanted = replace(
            self.wanted(asked.rows or "", smaller.features, domains),
            pool=RESERVE,
        )
        self.session.ensure(wanted)
        return Cells(smaller, domains, on, self._table(wanted, on.axes), MEASURED, {})


def with_lost(found: Estimates, of: Lost) -> Estimates:
    """Counts of rows with what is not counted: on average, and in the errors."""
    return replace(
        found,
        values=found.values * of.factor,
        variance=found.variance * of.factor**2,
        bounded=of.some,
        beyond=of.error,
    )


def _is_counted(feature: Feature) -> bool:
    """Whether a feature is what a person's rows make together: it has many values, a condition on it is one count."""
    return isinstance(feature.expr, PerUnit) and feature.expr.function != "VALUE"


def on_axes(table: Table, wanted: Wanted, axes: Sequence[Axis]) -> Table:
    """A table by the features of a measurement, by axes in their own order. What it has behind them, as bins, stays."""
    names = [feature.name for feature in wanted.features]
    order = [names.index(axis.name) for axis in axes]
    order += range(len(order), table.values.ndim)
    values, variance = (np.transpose(part, order) for part in table)
    for at, axis in enumerate(axes):
        values, variance = axis.together(values, at), axis.together(variance, at)
    return Table(values, variance)


def number_of_cells(domains: Sequence[Domain]) -> int:
    """How many cells a table over these classes has."""
    return int(np.prod([domain.size for domain in domains], initial=1))
