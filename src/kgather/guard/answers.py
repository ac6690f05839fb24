"""Answers a plan's blocks from atoms: first all is cut that can be cut, then every number is made of whole atoms.

Of the atoms that count for a group, a sum is their numbers of rows times the means of the clusters that their cells lie
in. Where all atoms are pure that is the exact sum.
"""

import hashlib
import hmac
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kgather.guard import atoms
from kgather.guard.base import Base
from kgather.guard.generalized import Classes, Match
from kgather.guard.history import Present
from kgather.guard.outcomes import Outcome
from kgather.guard.partition import Column, Partition
from kgather.guard.plan import (
    Aggregate,
    Block,
    Bound,
    Exists,
    Expr,
    Literal,
    Op,
    Plan,
    Question,
    Universe,
    conjuncts,
)
from kgather.guard.policy import fold
from kgather.guard.refused import Refused

_ENDS: tuple[Match, Match] = ("any", "all")


@dataclass(frozen=True)
class Terms:
    """What answers are bound to. sd: standard deviation of the noise, in people. exact: refuse what cannot be cut.
    digits: that numbers are rounded to. diverse, l: every atom keeps l values of each of these columns.
    match: atoms are classes that are asked about by their sets of values; None: atoms are cut and counted as a whole.
    """

    k: int
    secret: bytes
    sd: float = 1.0
    exact: bool = False
    match: Match | None = None
    digits: int | None = None
    diverse: tuple[str, ...] = ()
    l: int = 1  # noqa: E741 - as the papers call it


@dataclass(frozen=True)
class Asked:
    """A question with what it means for the rows that are answered about."""

    question: Question
    universe: str
    outcome: np.ndarray
    found: Outcome
    seed: np.uint64

    @property
    def group(self) -> np.ndarray:
        """0 where not asked for, otherwise 1 + the number of the group, int32[v]."""
        return np.maximum(self.outcome - 1, 0)


class Answering:
    """Answers one plan. presents: of each universe; they are replaced as atoms are cut."""

    def __init__(self, base: Base, presents: dict[str, Present], terms: Terms) -> None:
        self.base = base
        self.presents = presents
        self.terms = terms
        self.asked: dict[Question, Asked] = {}
        self.columns: dict[str, dict[str, Column]] = {}
        self.cut: set[str] = set()

    def cut_for(self, plan: Plan, known: Mapping[str, Mapping[str, Column]]) -> None:
        """Cut atoms for everything that a plan asks. known: of each universe, the columns that clusters are kept of.

        Raises Refused (not static) where a part would be too small, or, in mode exact, could not be cut.
        """
        self.columns = {universe: dict(columns) for universe, columns in known.items()}
        for block in plan.blocks:
            for question in _questions(block):
                self._ask(question)
            for question in (*self._sides(block), *self._people(block)):
                self._ask(question)
        before = dict(self.presents)
        for block in plan.blocks:
            for aggregate in block.aggregates:
                self._cluster(aggregate)
        if self.terms.match is None:
            for asked in self.asked.values():
                self._refine(asked)
        if self.terms.exact and any(self._is_mixed(asked) for asked in self.asked.values()):
            self.presents.clear()
            self.presents.update(before)
            raise Refused.too_few()
        self.cut = {name for name, present in self.presents.items() if present is not before[name]}

    def tables(self, plan: Plan) -> dict[str, pa.Table]:
        """The relation of each block. Raises Refused where one would cover too few people."""
        return {block.name: self._table(block) for block in plan.blocks}

    def _sides(self, block: Block) -> Iterator[Question]:
        """Of pairs, the questions by the values of the artifacts among them, so that atoms are cut by these."""
        for aggregate in block.aggregates:
            for argument in aggregate.arguments if len(aggregate.arguments) == 2 else ():
                table = self.base.catalog.table(argument.table)
                column = table.column(argument.column) if table is not None else None
                if column is not None and column.role == "artifact":
                    for chosen in block.grouping_sets:
                        yield _by_value(aggregate, argument, chosen)

    def uncertain(self, plan: Plan) -> dict[str, pa.Table]:
        """How far off each block may be: the keys of its groups, and in `uncertain` the share of the rows that a group
        covers which may belong elsewhere, or are missing from it. The share has noise and is rounded up, to hundredths.
        """
        return {block.name: self._uncertain(block) for block in plan.blocks}

    def _uncertain(self, block: Block) -> pa.Table:
        groups = self._groups(block.question)
        columns = {key.name: [keys[at] for keys in groups.keys] for at, key in enumerate(block.keys)}
        share = groups.uncertain()
        return pa.table({**columns, "uncertain": [share[keys] for keys in groups.keys]})

    def _people(self, block: Block) -> Iterator[Question]:
        """Of groups that a person may be in several of, the questions who is in each: people are counted from their
        own partition, or groups and their unions would tell how many are in both."""
        for aggregate in block.aggregates:
            for chosen in block.grouping_sets:
                question = _with_keys(_of_cells(aggregate), chosen)
                if aggregate.function == "COUNT_UNITS" or self._one_row_a_unit(question):
                    for keys in self.asked[question].found.keys:
                        yield _in_group(question, keys)

    def _one_row_a_unit(self, question: Question) -> bool:
        """Whether a question is about rows of which each person has one at most, as the ratings of one item: then they
        are as many as these people, or the two counts would tell apart what no atom does."""
        universe = question.universe
        if universe.kind != "rows":
            return False
        table = self.base.catalog.table(universe.table or "")
        unique = self.base.catalog.unique(table) if table is not None else None
        if table is None or unique is None:
            return False
        return any(
            isinstance(part, Op)
            and part.name == "="
            and any(isinstance(side, Literal) and side.value is not None for side in part.args)
            and any(
                isinstance(side, Bound) and fold(side.table) == fold(table.name) and fold(side.column) == fold(unique)
                for side in part.args
            )
            for part in conjuncts(question.condition)
        )

    def _ask(self, question: Question) -> None:
        if question in self.asked:
            return
        universe = self.base.universe(question.universe)
        found = self.base.outcome(question)
        outcome = np.ascontiguousarray(found.outcome[self.presents[universe].rows])
        meaning = universe.encode() + _groups_alone(outcome).tobytes()
        digest = hmac.new(self.terms.secret, meaning, hashlib.sha256).digest()
        self.asked[question] = Asked(
            question, universe, outcome, found, np.uint64(int.from_bytes(digest[:8], "little"))
        )

    def _cluster(self, aggregate: Aggregate) -> None:
        for bounds in _products(aggregate):
            universe = self.base.universe(aggregate.question.universe)
            name, column = self.base.column(aggregate.question.universe, bounds)
            present = self.presents[universe]
            own = present.columns({name: column})[name]
            self.columns.setdefault(universe, {})[name] = column
            if name not in present.partition.clusters and len(present.rows):
                self._replace(universe, present.partition.with_column(name, own, self.terms.k))

    def _refine(self, asked: Asked) -> None:
        present = self.presents[asked.universe]
        if not len(present.rows):
            raise Refused.too_few()
        columns = present.columns(self.columns.get(asked.universe, {}))
        self._replace(
            asked.universe,
            present.partition.refined(
                asked.outcome,
                self.terms.k,
                columns,
                seed=asked.seed,
                sd=0.0 if self.terms.exact else self.terms.sd,
                diverse=[self.base.codes(asked.universe, column)[present.rows] for column in self.terms.diverse],
                l=self.terms.l,
            ),
        )

    def _replace(self, universe: str, partition: Partition) -> None:
        present = self.presents[universe]
        if partition is not present.partition:
            self.presents[universe] = replace(present, partition=partition, values=self.columns.get(universe, {}))

    def _is_mixed(self, asked: Asked) -> bool:
        partition = self.presents[asked.universe].partition
        pieces = atoms.cut_into_pieces(partition.atom, asked.group, partition.unit)
        return len(pieces.atom) > partition.n_atoms

    def _table(self, block: Block) -> pa.Table:
        parts = [self._grouping_set(block, chosen) for chosen in block.grouping_sets]
        return pa.concat_tables(parts)

    def _grouping_set(self, block: Block, chosen: tuple[int, ...]) -> pa.Table:
        groups = self._groups(_with_keys(block.question, chosen))
        # Where all groups together are of enough people, but each by itself of too few, none is shown.
        if not groups.keys and not (block.keys and groups.enough):
            raise Refused.too_few()
        columns: dict[str, pa.Array] = {}
        types = self.asked[_with_keys(block.question, chosen)].found.key_types
        for at, key in enumerate(block.keys):
            if at in chosen:
                place = chosen.index(at)
                columns[key.name] = pa.array([values[place] for values in groups.keys], types[place])
            else:
                whole = self.asked[block.question].found.key_types
                columns[key.name] = pa.nulls(len(groups.keys), whole[at])
        for aggregate in block.aggregates:
            numbers = self._numbers(aggregate, chosen)
            found = [numbers.get(values) for values in groups.keys]
            # Without groups there is nothing to leave out one number of.
            if not block.keys and found == [None]:
                raise Refused.too_few()
            whole_number = aggregate.function.startswith("COUNT")
            if self.terms.digits is not None and not whole_number:
                found = [None if number is None else round(number, self.terms.digits) for number in found]
            columns[aggregate.name] = pa.array(found, pa.int64() if whole_number else pa.float64())
        return pa.table(columns)

    def _numbers(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> dict[tuple[Any, ...], float | int]:
        """The aggregate of each group that is shown, by its keys."""
        if aggregate.function == "COUNT_DISTINCT":
            keys = (*_with_keys(aggregate.question, chosen).keys, aggregate.arguments[0])
            inner = self._groups(Question(aggregate.question.universe, aggregate.question.condition, keys))
            counted: dict[tuple[Any, ...], float | int] = {}
            for *outer, value in inner.keys:
                counted[tuple(outer)] = counted.get(tuple(outer), 0) + (value is not None)
            return counted
        if aggregate.function == "COUNT_UNITS":
            question = _with_keys(aggregate.question, chosen)
            return {keys: round(total) for keys, total in self._people_of(self._groups(question)).items()}
        if len(aggregate.arguments) == 2:
            return dict(self._pairs(aggregate, chosen))
        question = _with_keys(_of_cells(aggregate), chosen)
        groups = self._groups(question)
        totals = self._people_of(groups) if self._one_row_a_unit(question) else None
        return {keys: value for keys, value in groups.values(aggregate, totals) if value is not None}

    def _people_of(self, groups: "_Groups") -> dict[tuple[Any, ...], float]:
        """How many people are in each group that is shown, from their own partition; those of too few are left out."""
        people = {keys: self._groups(_in_group(groups.asked.question, keys)) for keys in groups.keys}
        return {keys: float(of.weights(0).sum()) for keys, of in people.items() if of.shown}

    def _pairs(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> Iterator[tuple[tuple[Any, ...], float]]:
        """A covariance or correlation of each group, from what atoms have of both arguments: the mean of the cluster.

        Never from products of two cells: with the one known, their sums would be as many equations for the other. And
        cells that a pivot shows are of another partition: of them the value is used that an atom counts for.
        """
        groups = self._groups(_with_keys(_of_cells(aggregate), chosen))
        shown = [column for column, _ in aggregate.pivoted]
        by_value = {column: self._groups(_by_value(aggregate, column, chosen)) for column in shown}
        means = {each: groups.means((each,)) for each in aggregate.arguments if each not in shown}
        for place in groups.shown:
            keys = groups.asked.found.keys[place]
            sides = [
                means[each] if each in means else _Means.known(by_value[each].known(keys))
                for each in aggregate.arguments
            ]
            value = groups.pair(aggregate, groups.weights(place), sides)
            if value is not None:
                yield keys, value

    def _groups(self, question: Question) -> "_Groups":
        return _Groups(self, question) if self.terms.match is None else _Classes(self, question, self.terms.match)


class _Groups:
    """The groups of a question that cover enough people, with the atoms that count for each."""

    def __init__(self, answering: Answering, question: Question) -> None:
        self.answering = answering
        self.asked = answering.asked[question]
        terms = answering.terms
        self.partition = answering.presents[self.asked.universe].partition
        partition, group = self.partition, self.asked.group
        pieces = atoms.cut_into_pieces(partition.atom, group, partition.unit)
        sd = 0.0 if terms.exact else terms.sd
        self.of_atom = atoms.assign(pieces, partition.names, seed=self.asked.seed, sd=sd)
        self.rows = np.bincount(partition.atom, minlength=partition.n_atoms)
        n_groups = len(self.asked.found.keys)
        people = atoms.count_units(group.astype(np.int64) - 1, partition.unit, n_groups)
        self.units = atoms.count_units(self.of_atom[partition.atom].astype(np.int64) - 1, partition.unit, n_groups)
        noisy = [
            atoms.noisy_total(int(count), seed=_next(self.asked.seed, place), sd=sd)
            for place, count in enumerate(people.tolist())
        ]
        self.shown = [place for place in range(n_groups) if self.units[place] >= terms.k and noisy[place] >= terms.k]
        total = int(atoms.count_units(np.minimum(group, 1).astype(np.int64) - 1, partition.unit, 1)[0])
        self.enough = atoms.noisy_total(total, seed=_next(self.asked.seed, -1), sd=sd) >= terms.k

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Of the groups that are shown, in an order that tells nothing of the rows'."""
        found = [self.asked.found.keys[place] for place in self.shown]
        return sorted(found, key=lambda keys: [(value is None, str(type(value)), _sortable(value)) for value in keys])

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The share of each group that is shown which may belong elsewhere or is missing: what mixed atoms hold."""
        pieces = atoms.cut_into_pieces(self.partition.atom, self.asked.group, self.partition.unit)
        mixed = np.bincount(pieces.atom, minlength=self.partition.n_atoms)[pieces.atom] > 1
        found = {}
        for place in self.shown:
            missing = pieces.rows[mixed & (pieces.outcome == place + 1) & (self.of_atom[pieces.atom] != place + 1)]
            foreign = pieces.rows[mixed & (pieces.outcome != place + 1) & (self.of_atom[pieces.atom] == place + 1)]
            off = int(missing.sum() + foreign.sum())
            noisy = atoms.noisy_total(off, seed=_next(self.asked.seed, -place - 2), sd=self.answering.terms.sd)
            share = abs(noisy) / max(float(self.weights(place).sum()), 1.0)
            found[self.asked.found.keys[place]] = min(1.0, math.ceil(share * 100) / 100)
        return found

    def values(
        self, aggregate: Aggregate, totals: Mapping[tuple[Any, ...], float] | None
    ) -> Iterator[tuple[tuple[Any, ...], float | int | None]]:
        """The aggregate of each group that is shown. totals: what the groups count, if not their rows."""
        moments = [self.means(bounds) for bounds in _products(aggregate)]
        for place in self.shown:
            keys = self.asked.found.keys[place]
            rows = float(self.weights(place).sum())
            total = rows if totals is None else totals.get(keys)
            if total is not None:
                yield keys, self._value(aggregate, place, moments, total / rows)

    def weights(self, place: int) -> np.ndarray:
        """How many rows of each atom count for a group, float64[a]."""
        return np.where(self.of_atom == place + 1, self.rows, 0).astype(np.float64)

    def _value(
        self, aggregate: Aggregate, place: int, moments: "list[_Means]", each_counts: float
    ) -> float | int | None:
        if aggregate.function == "COUNT":
            return round(float(self.weights(place).sum()) * each_counts)
        weight = self.weights(place)
        for each in moments:
            weight = np.where(each.told, weight, 0.0)
        mine = np.flatnonzero(weight)
        weight = weight[mine]
        total = float(weight.sum())
        if not total or not self._covers(mine):
            return None
        if self.answering.terms.exact and not all(each.whole(mine) for each in moments):
            return None
        return _statistic(aggregate, total * each_counts, [_Moments.of(each, mine, weight) for each in moments])

    def pair(self, aggregate: Aggregate, weight: np.ndarray, sides: "list[_Means]") -> float | None:
        """A covariance or correlation. weight: rows of each atom. None where there is nothing to tell."""
        weight = np.where(sides[0].told & sides[1].told, weight, 0.0)
        mine = np.flatnonzero(weight)
        weight = weight[mine]
        total = float(weight.sum())
        if not total or not self._covers(mine):
            return None
        if self.answering.terms.exact and not (
            all(each.whole(mine) for each in sides) and any(each.constant(mine) for each in sides)
        ):
            return None
        x, y = (each.first[mine] for each in sides)
        covariance = float((weight * (x - weight @ x / total) * (y - weight @ y / total)).sum() / total)
        return _statistic(aggregate, total, [_Moments.of(each, mine, weight) for each in sides], covariance)

    def _covers(self, mine: np.ndarray) -> bool:
        partition, k = self.partition, self.answering.terms.k
        chosen = np.zeros(partition.n_atoms, dtype=bool)
        chosen[mine] = True
        return int(atoms.count_units(np.where(chosen[partition.atom], 0, -1), partition.unit, 1)[0]) >= k

    def known(self, keys: tuple[Any, ...]) -> np.ndarray:
        """The last key of the group that each atom counts for, the others being `keys`; NaN where there is none."""
        values = np.full(self.partition.n_atoms, np.nan)
        for place in self.shown:
            *others, value = self.asked.found.keys[place]
            if tuple(others) == keys:
                values[self.weights(place) > 0] = value
        return values

    def means(self, bounds: tuple[Bound, ...]) -> "_Means":
        """What is said of a column, of each atom."""
        question = self.asked.question
        name, column = self.answering.base.column(question.universe, bounds)
        own = self.answering.presents[self.asked.universe].columns({name: column})[name]
        return _Means.of(own, self.partition, self.partition.clusters[name], self.answering.terms.k)


class _Classes(_Groups):
    """The one group of a question without keys, asked of classes by their sets of values."""

    def __init__(self, answering: Answering, question: Question, match: Match) -> None:
        self.answering = answering
        self.asked = answering.asked[question]
        self.partition = answering.presents[self.asked.universe].partition
        share = Classes(answering.base, self.partition, match).shares(question)
        self.share = share
        self.rows = np.bincount(self.partition.atom, minlength=self.partition.n_atoms)
        chosen = np.where(share[self.partition.atom] > 0, 0, -1).astype(np.int64)
        self.units = atoms.count_units(chosen, self.partition.unit, 1)
        self.shown = [0] if self.units[0] >= answering.terms.k else []
        self.enough = bool(self.shown)

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The rows of classes some values of which meet the condition but not all, as a share."""
        some, every = (Classes(self.answering.base, self.partition, match) for match in _ENDS)
        wider = some.shares(self.asked.question) - every.shares(self.asked.question)
        share = float((self.rows * wider).sum()) / max(float(self.weights(0).sum()), 1.0)
        return {(): min(1.0, math.ceil(share * 100) / 100)} if self.shown else {}

    def weights(self, place: int) -> np.ndarray:
        """As `_Groups.weights`."""
        del place
        return self.rows * self.share


@dataclass(frozen=True)
class _Means:
    """Of each atom, the means of its cluster's cells around `origin` and their least and greatest; told: whether there
    are cells to tell of; cluster: a number."""

    origin: float
    first: np.ndarray
    second: np.ndarray
    low: np.ndarray
    high: np.ndarray
    told: np.ndarray
    cluster: np.ndarray

    def whole(self, mine: np.ndarray) -> bool:
        """Whether no cluster lies both inside and outside of the chosen atoms."""
        outside = np.ones(len(self.cluster), dtype=bool)
        outside[mine] = False
        return not np.isin(self.cluster[mine], self.cluster[outside]).any()

    def constant(self, mine: np.ndarray) -> bool:
        """Whether all cells of each of the chosen atoms' clusters are equal."""
        return bool((self.low[mine] == self.high[mine]).all())

    @classmethod
    def known(cls, values: np.ndarray) -> "_Means":
        """Of atoms that have a value each, or NaN."""
        return cls(0.0, values, values**2, values, values, ~np.isnan(values), np.arange(len(values)))

    @classmethod
    def of(cls, column: Column, partition: Partition, label: np.ndarray, k: int) -> "_Means":
        places, cluster = np.unique(label, return_inverse=True)
        cluster = cluster.reshape(-1)
        present = column.present
        values = column.values[present]
        origin = float(np.round(values.mean())) if len(values) else 0.0
        of_row = cluster[partition.atom[present]]
        count = np.bincount(of_row, minlength=len(places))
        units = atoms.count_units(of_row.astype(np.int64), partition.unit[present], len(places))
        safe = np.maximum(count, 1)
        first = np.bincount(of_row, values - origin, minlength=len(places)) / safe
        second = np.bincount(of_row, (values - origin) ** 2, minlength=len(places)) / safe
        low, high = np.full(len(places), np.inf), np.full(len(places), -np.inf)
        np.minimum.at(low, of_row, values)
        np.maximum.at(high, of_row, values)
        told = (units >= k) & (places >= 0)
        return cls(origin, first[cluster], second[cluster], low[cluster], high[cluster], told[cluster], cluster)


@dataclass(frozen=True)
class _Moments:
    """Means over the chosen atoms, in the unit of the column; variance of the population."""

    mean: float
    variance: float
    low: float
    high: float

    @classmethod
    def of(cls, means: _Means, mine: np.ndarray, weight: np.ndarray) -> "_Moments":
        total = weight.sum()
        first = float((weight * means.first[mine]).sum() / total)
        second = float((weight * means.second[mine]).sum() / total)
        return cls(
            means.origin + first,
            max(second - first**2, 0.0),
            float(means.low[mine].min()),
            float(means.high[mine].max()),
        )


def _statistic(aggregate: Aggregate, total: float, moments: list[_Moments], covariance: float = 0.0) -> float | None:
    """An aggregate from moments: of one column, or of two and their covariance."""
    function = aggregate.function
    a, b = aggregate.scale[0] if aggregate.scale else (1.0, 0.0)
    first = moments[0]
    if function == "SUM":
        return (a * first.mean + b) * total
    if function == "AVG":
        return a * first.mean + b
    if function in ("MIN", "MAX"):
        ends = (a * first.low + b, a * first.high + b)
        return min(ends) if function == "MIN" else max(ends)
    sample = total / (total - 1) if total > 1 else math.nan
    if function.startswith(("VAR", "STDDEV")):
        variance = a * a * first.variance * (sample if function.endswith("SAMP") else 1.0)
        value = math.sqrt(variance) if function.startswith("STDDEV") else variance
        return None if math.isnan(value) else value
    second = moments[1]
    c, _ = aggregate.scale[1] if len(aggregate.scale) > 1 else (1.0, 0.0)
    if function == "CORR":
        spread = math.sqrt(first.variance * second.variance)
        return None if not spread else math.copysign(1.0, a * c) * max(-1.0, min(1.0, covariance / spread))
    value = a * c * covariance * (sample if function.endswith("SAMP") else 1.0)
    return None if math.isnan(value) else value


def _products(aggregate: Aggregate) -> list[tuple[Bound, ...]]:
    """The columns whose means an aggregate needs: its arguments, but for those of a pivot."""
    if aggregate.function in ("COUNT", "COUNT_DISTINCT", "COUNT_UNITS"):
        return []
    shown = {column for column, _ in aggregate.pivoted}
    return [(argument,) for argument in aggregate.arguments if argument not in shown]


def _of_cells(aggregate: Aggregate) -> Question:
    """The question about the rows whose arguments are there: a missing value is a condition, too."""
    there = tuple(Op("not", (Op("is null", (argument,)),)) for argument in aggregate.arguments)
    question = aggregate.question
    if not there:
        return question
    condition: Expr = Op("and", (question.condition, *there))
    return Question(question.universe, condition, question.keys)


def _by_value(aggregate: Aggregate, argument: Bound, chosen: tuple[int, ...]) -> Question:
    """The question about the pairs, by the value of one argument."""
    question = _with_keys(_of_cells(aggregate), chosen)
    return Question(question.universe, question.condition, (*question.keys, argument))


def _in_group(question: Question, keys: tuple[Any, ...]) -> Question:
    """The question about the people with a row in a group of a question about rows."""
    universe = question.universe
    same = (
        Op("is null", (key,)) if value is None else Op("is not distinct", (key, Literal(value, key.kind)))
        for key, value in zip(question.keys, keys, strict=True)
    )
    row: Expr = Op("is true", (Op("and", (question.condition, *same)),))
    exists = Exists(universe.table or "", row, universe.lookups)
    return Question(Universe("unit", None, universe.references), exists)


def _with_keys(question: Question, chosen: tuple[int, ...]) -> Question:
    return Question(question.universe, question.condition, tuple(question.keys[at] for at in chosen))


def _questions(block: Block) -> Iterator[Question]:
    """Every question that the answer of a block needs."""
    yield block.question
    for chosen in block.grouping_sets:
        yield _with_keys(block.question, chosen)
        for aggregate in block.aggregates:
            if aggregate.function == "COUNT_DISTINCT":
                keys = (*_with_keys(aggregate.question, chosen).keys, aggregate.arguments[0])
                yield Question(aggregate.question.universe, aggregate.question.condition, keys)
            else:
                yield _with_keys(_of_cells(aggregate), chosen)


def _groups_alone(outcome: np.ndarray) -> np.ndarray:
    """Which rows go together: 0 where not asked for, false or unknown alike, so that one set asked for in many ways has
    one noise; groups in the order of their first rows. int64[v], or the bits of one group."""
    group = np.maximum(outcome - 1, 0)
    if group.max(initial=0) <= 1:
        return np.packbits(group == 1)
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(1, len(first) + 1)
    return np.where(group == 0, 0, rank[place.reshape(-1)])


def _next(seed: np.uint64, place: int) -> np.uint64:
    return np.uint64((int(seed) + 0x9E3779B97F4A7C15 * (place + 1)) & 0xFFFFFFFFFFFFFFFF)


def _sortable(value: Any) -> Any:
    return "" if value is None else value
