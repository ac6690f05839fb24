"""Answers a plan's blocks from atoms: first all is cut that can be cut, then every number is made of whole atoms.

In mode exact a question is answered where every atom is all of one group. In mode generalized atoms are classes, never
cut, which count for a question as their sets of values meet its condition.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._guard import atoms
from kgather._guard.base import Base
from kgather._guard.exact import ColumnName, Range
from kgather._guard.generalized import Classes, Match
from kgather._guard.history import Present
from kgather._guard.outcomes import Outcome
from kgather._guard.partition import Column, Means, Partition
from kgather._guard.plan import SET, Aggregate, Block, Bound, Expr, Op, Plan, Question
from kgather._guard.refused import Refused

_ENDS: tuple[Match, Match] = ("any", "all")


@dataclass(frozen=True)
class Terms:
    """What answers are bound to. ranges: of columns whose sums are told in multiples of what one person can add.
    digits: that numbers are rounded to. diverse, l: every atom keeps l values of each of these columns. match: atoms
    are classes that are asked about by their sets of values; None: atoms are cut, and refused where they cannot be."""

    k: int
    ranges: Mapping[ColumnName, Range] = field(default_factory=dict)
    match: Match | None = None
    digits: int | None = None
    diverse: tuple[str, ...] = ()
    l: int = 1  # noqa: E741 - as the papers call it


@dataclass(frozen=True)
class Asked:
    """A question with what it means for the rows that are answered about, int8[n] or int32[n]."""

    question: Question
    universe: str
    outcome: NDArray[np.int8 | np.int32]
    found: Outcome


class _SpreadOf(NamedTuple):
    """A spread, and the partition that it is over."""

    partition: Partition
    spread: atoms.Spread


class Answering:
    """Answers one plan. presents: of each universe; they are replaced as atoms are cut."""

    def __init__(self, base: Base, presents: dict[str, Present], terms: Terms) -> None:
        self.base = base
        self.presents = presents
        self.terms = terms
        self.asked: dict[Question, Asked] = {}
        self.columns: dict[str, dict[str, Column]] = {}
        self.cut: set[str] = set()
        self._spreads: dict[Question, _SpreadOf] = {}

    def cut_for(self, plan: Plan, known: Mapping[str, Mapping[str, Column]]) -> None:
        """Cut atoms for everything that a plan asks. known: of each universe, the columns that clusters are kept of.

        Raises Refused (not static) where a part would be too small, or, in mode exact, could not be cut.
        """
        self.columns = {universe: dict(columns) for universe, columns in known.items()}
        for block in plan.blocks:
            for question in _questions(block):
                self._ask(question)
        before = dict(self.presents)
        for block in plan.blocks:
            for aggregate in block.aggregates:
                self._cluster(aggregate)
        # Where one question cuts, another may cut further: asked again, all of it is as it was.
        while self.terms.match is None and self._refine_all():
            pass
        if self.terms.match is None and any(self.spread(asked).undecided for asked in self.asked.values()):
            self.presents.clear()
            self.presents.update(before)
            raise Refused.too_few()
        self.cut = {name for name, present in self.presents.items() if present is not before[name]}

    def tables(self, plan: Plan) -> dict[str, pa.Table]:
        """The relation of each block. Raises Refused where one would cover too few people."""
        return {block.name: self._table(block) for block in plan.blocks}

    def uncertain(self, plan: Plan) -> dict[str, pa.Table]:
        """How far off each block may be: the keys of its groups, and in `uncertain` the share of the rows that a group
        covers which may belong elsewhere, or are missing from it, rounded up to hundredths."""
        return {block.name: self._uncertain(block) for block in plan.blocks}

    def _uncertain(self, block: Block) -> pa.Table:
        groups = self._groups(block.question)
        columns = {key.name: [keys[at] for keys in groups.keys] for at, key in enumerate(block.keys)}
        share = groups.uncertain()
        return pa.table({**columns, "uncertain": [share[keys] for keys in groups.keys]})

    def _ask(self, question: Question) -> None:
        if question in self.asked:
            return
        universe = self.base.universe(question.universe)
        found = self.base.outcome(question)
        self.asked[question] = Asked(question, universe, self.presents[universe].own(found.outcome), found)

    def spread(self, asked: Asked) -> atoms.Spread:
        """How what is asked for spreads over the atoms that there are now."""
        partition = self.presents[asked.universe].partition
        known = self._spreads.get(asked.question)
        if known is None or known.partition is not partition:
            known = self._spreads[asked.question] = _SpreadOf(partition, partition.spread(asked.outcome))
        return known.spread

    def _cluster(self, aggregate: Aggregate) -> None:
        for argument in () if aggregate.function.startswith("COUNT") else aggregate.columns:
            universe = self.base.universe(aggregate.question.universe)
            name, column = self.base.column(aggregate.question.universe, [argument])
            present = self.presents[universe]
            own = present.columns({name: column})[name]
            self.columns.setdefault(universe, {})[name] = column
            if name not in present.partition.clusters and len(present.rows):
                self._replace(universe, present.partition.with_column(name, own, self.terms.k))

    def _refine_all(self) -> bool:
        """Cut atoms by every question once; whether any was cut."""
        before = {name: here.partition for name, here in self.presents.items()}
        for asked in self.asked.values():
            self._refine(asked)
        return any(here.partition is not before[name] for name, here in self.presents.items())

    def _refine(self, asked: Asked) -> None:
        present = self.presents[asked.universe]
        columns = present.columns(self.columns.get(asked.universe, {}))
        self._replace(
            asked.universe,
            present.partition.refined(
                self.spread(asked),
                self.terms.k,
                columns,
                diverse=[present.own(self.base.codes(asked.universe, column)) for column in self.terms.diverse],
                l=self.terms.l,
            ),
        )

    def _replace(self, universe: str, partition: Partition) -> None:
        present = self.presents[universe]
        if partition is not present.partition:
            self.presents[universe] = replace(present, partition=partition, values=self.columns.get(universe, {}))

    def _table(self, block: Block) -> pa.Table:
        parts = [self._grouping_set(block, at) for at in range(len(block.grouping_sets))]
        return pa.concat_tables(parts)

    def _grouping_set(self, block: Block, number: int) -> pa.Table:
        chosen = block.grouping_sets[number]
        groups = self._groups(_with_keys(block.question, chosen))
        if not groups.keys:
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
        if block.has_sets:
            columns[SET] = pa.array([number] * len(groups.keys), pa.int64())
        return pa.table(columns)

    def _numbers(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> dict[tuple[Any, ...], float | int]:
        """The aggregate of each group that is shown, by its keys."""
        if aggregate.function == "COUNT_DISTINCT":
            keys = (*_with_keys(aggregate.question, chosen).keys, aggregate.columns[0])
            inner = self._groups(Question(aggregate.question.universe, aggregate.question.condition, keys))
            counted: dict[tuple[Any, ...], float | int] = {}
            for *outer, value in inner.keys:
                counted[tuple(outer)] = counted.get(tuple(outer), 0) + (value is not None)
            return counted
        groups = self._groups(_with_keys(_of_cells(aggregate), chosen))
        return {keys: value for keys, value in groups.values(aggregate) if value is not None}

    def _groups(self, question: Question) -> "_Groups":
        return _Groups(self, question) if self.terms.match is None else _Classes(self, question, self.terms.match)


class _Groups:
    """The groups of a question, each of whole atoms."""

    def __init__(self, answering: Answering, question: Question) -> None:
        self.answering = answering
        self.asked = answering.asked[question]
        self.partition = answering.presents[self.asked.universe].partition
        group = answering.spread(self.asked).group
        order = np.argsort(group, kind="stable")
        ends = np.searchsorted(group[order], np.arange(1, len(self.asked.found.keys) + 2))
        self.atoms = [order[first:end] for first, end in pairwise(ends)]
        # An atom is of k people: one is enough.
        self.shown = [place for place, atoms_of in enumerate(self.atoms) if len(atoms_of)]

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Of the groups that are shown, in an order that tells nothing of the rows'."""
        found = [self.asked.found.keys[place] for place in self.shown]
        return sorted(found, key=lambda keys: [(value is None, str(type(value)), _sortable(value)) for value in keys])

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The share of each group that is shown which may belong elsewhere or is missing."""
        missing = self.missing()
        return {
            self.asked.found.keys[place]: _hundredths(missing / max(self.total(place) + missing, 1.0))
            for place in self.shown
        }

    def missing(self) -> int:
        """How many rows are in no part any more, or not yet: since rows of theirs were changed, added or deleted."""
        present = self.answering.presents[self.asked.universe]
        return len(present.keys) - len(present.rows)

    def values(self, aggregate: Aggregate) -> Iterator[tuple[tuple[Any, ...], float | int | None]]:
        """The aggregate of each group that is shown."""
        columns = [] if aggregate.function == "COUNT" else [self.means(argument) for argument in aggregate.columns]
        for place in self.shown:
            yield self.asked.found.keys[place], self._value(aggregate, place, columns)

    def weights(self, place: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The atoms that count for a group, int64[m], and their rows, float64[m]."""
        mine = self.atoms[place]
        return mine, self.partition.rows[mine].astype(np.float64)

    def total(self, place: int) -> float:
        """How many rows count for a group."""
        return float(self.weights(place)[1].sum())

    def _value(self, aggregate: Aggregate, place: int, columns: Sequence[Means]) -> float | int | None:
        if aggregate.function == "COUNT":
            return round(self.total(place))
        mine, weight = _told(*self.weights(place), columns)
        # An atom is of k people: one is enough.
        if not len(mine) or not self._separate(columns, mine):
            return None
        value = _statistic(aggregate, mine, weight, columns)
        known = self.answering.terms.ranges.get(ColumnName.of(aggregate.columns[0]))
        return value if known is None or value is None else _in_steps(aggregate, value, float(weight.sum()), known.step)

    def _separate(self, columns: Sequence[Means], mine: NDArray[np.int64]) -> bool:
        """Whether what is said of the columns is about the chosen atoms alone."""
        return all(each.whole(mine) for each in columns)

    def means(self, argument: Bound) -> Means:
        """What is said of a column, of each atom."""
        universe = self.asked.question.universe
        name, column = self.answering.base.column(universe, [argument])
        own = self.answering.presents[self.asked.universe].columns({name: column})[name]
        return self.partition.means(name, own, self.answering.terms.k)


class _Classes(_Groups):
    """The one group of a question without keys, asked of classes by their sets of values."""

    def __init__(self, answering: Answering, question: Question, match: Match) -> None:
        self.answering = answering
        self.asked = answering.asked[question]
        self.partition = answering.presents[self.asked.universe].partition
        share = Classes(answering.base, self.partition, match).shares(question)
        self.share = share
        self.atoms = [np.flatnonzero(share)]
        self.shown = [0] if len(self.atoms[0]) else []

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The rows of classes some values of which meet the condition but not all, as a share."""
        some, every = (Classes(self.answering.base, self.partition, match) for match in _ENDS)
        wider = some.shares(self.asked.question) - every.shares(self.asked.question)
        off, missing = float((self.partition.rows * wider).sum()), self.missing()
        return {(): _hundredths((off + missing) / max(self.total(0) + missing, 1.0))} if self.shown else {}

    def weights(self, place: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """As `_Groups.weights`, of which classes count by their shares."""
        mine = self.atoms[place]
        return mine, self.partition.rows[mine] * self.share[mine]

    def _separate(self, columns: Sequence[Means], mine: NDArray[np.int64]) -> bool:
        """Classes stand for the clusters that they are in."""
        del columns, mine
        return True


def _hundredths(share: float) -> float:
    """A share, rounded up."""
    return min(1.0, math.ceil(share * 100) / 100)


def _in_steps(aggregate: Aggregate, value: float, count: float, step: float) -> float:
    """A sum in multiples of a step, or the mean of such a sum. count: how many cells it is of."""
    total = value if aggregate.function == "SUM" else value * count
    rounded = round(total / step) * step
    return rounded if aggregate.function == "SUM" else rounded / count


@dataclass(frozen=True)
class _Moments:
    """Means over the chosen atoms, in the unit of the column; variance of the population."""

    mean: float
    variance: float
    low: float
    high: float

    @classmethod
    def of(cls, means: Means, mine: NDArray[np.int64], weight: NDArray[np.float64]) -> "_Moments":
        total = weight.sum()
        first = float((weight * means.first[mine]).sum() / total)
        second = float((weight * means.second[mine]).sum() / total)
        return cls(
            means.origin + first,
            max(second - first**2, 0.0),
            float(means.low[mine].min()),
            float(means.high[mine].max()),
        )


def _statistic(
    aggregate: Aggregate, mine: NDArray[np.int64], weight: NDArray[np.float64], columns: Sequence[Means]
) -> float | None:
    """An aggregate of one column, or of two, over the chosen atoms. None where there is nothing to tell."""
    function, total = aggregate.function, float(weight.sum())
    a, b = aggregate.scale[0] if aggregate.scale else (1.0, 0.0)
    first, *rest = (_Moments.of(each, mine, weight) for each in columns)
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
    # Never from products of two cells: with the one known, their sums would be as many equations for the other.
    x, y = (each.first[mine] for each in columns)
    covariance = float((weight * (x - weight @ x / total) * (y - weight @ y / total)).sum() / total)
    c, _ = aggregate.scale[1]
    if function == "CORR":
        spread = math.sqrt(first.variance * rest[0].variance)
        return None if not spread else math.copysign(1.0, a * c) * max(-1.0, min(1.0, covariance / spread))
    value = a * c * covariance * (sample if function.endswith("SAMP") else 1.0)
    return None if math.isnan(value) else value


def _of_cells(aggregate: Aggregate) -> Question:
    """The question about the rows whose arguments are there: a missing value is a condition, too."""
    there = tuple(Op("not", (Op("is null", (argument,)),)) for argument in aggregate.columns)
    question = aggregate.question
    if not there:
        return question
    condition: Expr = Op("and", (question.condition, *there))
    return Question(question.universe, condition, question.keys)


def _with_keys(question: Question, chosen: tuple[int, ...]) -> Question:
    return Question(question.universe, question.condition, tuple(question.keys[at] for at in chosen))


def _questions(block: Block) -> Iterator[Question]:
    """Every question that the answer of a block needs."""
    yield block.question
    for chosen in block.grouping_sets:
        yield _with_keys(block.question, chosen)
        for aggregate in block.aggregates:
            if aggregate.function == "COUNT_DISTINCT":
                keys = (*_with_keys(aggregate.question, chosen).keys, aggregate.columns[0])
                yield Question(aggregate.question.universe, aggregate.question.condition, keys)
            else:
                yield _with_keys(_of_cells(aggregate), chosen)


def _told(
    mine: NDArray[np.int64], weight: NDArray[np.float64], moments: Sequence[Means]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The atoms, and their weights, of which there are cells of all columns to tell of."""
    there = np.ones(len(mine), dtype=bool)
    for each in moments:
        there &= each.told[mine]
    return mine[there], weight[there]


def _sortable(value: Any) -> Any:
    return "" if value is None else value
