"""Answers a plan's blocks from atoms: first all is cut that can be cut, then every number is made of whole atoms.

Of the atoms that count for a group, a sum is their numbers of rows times the means of the clusters that their cells lie
in. Where all atoms are pure that is the exact sum.
"""

import hashlib
import hmac
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kgather._guard import atoms
from kgather._guard.base import Base
from kgather._guard.generalized import Classes, Match
from kgather._guard.history import Present
from kgather._guard.outcomes import Outcome
from kgather._guard.partition import Column, Means, Partition
from kgather._guard.plan import (
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
from kgather._guard.policy import fold
from kgather._guard.refused import Refused

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
    """A question with what it means for the rows that are answered about. people int64[g + 1]: who is in each group,
    and in all of them together. seed: noise hangs on the sets of rows asked for, in however many ways."""

    question: Question
    universe: str
    outcome: np.ndarray
    found: Outcome
    people: np.ndarray
    seed: np.uint64


class _SpreadOf(NamedTuple):
    """A spread, and the partition that it is over."""

    partition: Partition
    spread: atoms.Spread


class _Described(NamedTuple):
    """What an outcome says of the rows that are answered about: a sum of each set's keys, and the people in each."""

    rows: np.ndarray
    sums: np.ndarray
    people: np.ndarray


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
            for question in (*self._sides(block), *self._people(block)):
                self._ask(question)
        before = dict(self.presents)
        for block in plan.blocks:
            for aggregate in block.aggregates:
                self._cluster(aggregate)
        # Where one question cuts, another may cut further: asked again, all of it is as it was.
        while self.terms.match is None and self._refine_all():
            pass
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
        present = self.presents[universe]
        outcome = present.own(found.outcome)
        known: _Described | None = found.described.get(universe)
        if known is None or known.rows is not present.rows:
            salt = _number(self._keyed(universe.encode()))
            unit, keys = present.partition.unit, present.own(present.keys)
            known = _Described(present.rows, *atoms.describe(outcome, unit, keys, salt, len(found.keys)))
            found.described[universe] = known
        # False and unknown are alike, and so are the names of groups: one set asked for in many ways has one noise.
        seed = _number(self._keyed(universe.encode() + np.sort(known.sums).tobytes()))
        self.asked[question] = Asked(question, universe, outcome, found, known.people, seed)

    def _keyed(self, meaning: bytes) -> bytes:
        return hmac.new(self.terms.secret, meaning, hashlib.sha256).digest()

    def spread(self, asked: Asked) -> atoms.Spread:
        """How what is asked for spreads over the atoms that there are now."""
        partition = self.presents[asked.universe].partition
        known = self._spreads.get(asked.question)
        if known is None or known.partition is not partition:
            known = self._spreads[asked.question] = _SpreadOf(partition, partition.spread(asked.outcome))
        return known.spread

    def _cluster(self, aggregate: Aggregate) -> None:
        for bounds in _products(aggregate):
            universe = self.base.universe(aggregate.question.universe)
            name, column = self.base.column(aggregate.question.universe, bounds)
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
        if not len(present.rows):
            raise Refused.too_few()
        columns = present.columns(self.columns.get(asked.universe, {}))
        self._replace(
            asked.universe,
            present.partition.refined(
                self.spread(asked),
                self.terms.k,
                columns,
                seed=asked.seed,
                sd=0.0 if self.terms.exact else self.terms.sd,
                diverse=[present.own(self.base.codes(asked.universe, column)) for column in self.terms.diverse],
                l=self.terms.l,
            ),
        )

    def _replace(self, universe: str, partition: Partition) -> None:
        present = self.presents[universe]
        if partition is not present.partition:
            self.presents[universe] = replace(present, partition=partition, values=self.columns.get(universe, {}))

    def _is_mixed(self, asked: Asked) -> bool:
        return len(self.spread(asked).groups().mixed) > 0

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
        return {keys: of.total(0) for keys, of in people.items() if of.shown}

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
                means[each] if each in means else Means.known(by_value[each].known(keys))
                for each in aggregate.arguments
            ]
            value = groups.pair(aggregate, place, sides)
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
        self.spread = answering.spread(self.asked).groups()
        self.sd = 0.0 if terms.exact else terms.sd
        self.of_atom = self.spread.low.copy()
        mixed = self.spread.mixed
        self.of_atom[mixed] = atoms.assign(
            self.spread.pieces, self.partition.names[mixed], seed=self.asked.seed, sd=self.sd
        )
        n_groups = len(self.asked.found.keys)
        order = np.argsort(self.of_atom, kind="stable")
        ends = np.searchsorted(self.of_atom[order], np.arange(1, n_groups + 2))
        self.atoms = [order[ends[place] : ends[place + 1]] for place in range(n_groups)]
        *people, everybody = self.asked.people.tolist()
        # An atom is of k people: one is enough.
        self.shown = [
            place for place, count in enumerate(people) if len(self.atoms[place]) and self._is_enough(count, place)
        ]
        self.enough = self._is_enough(everybody, -1)

    def _is_enough(self, people: int, place: int) -> bool:
        noisy = atoms.noisy_total(people, seed=_next(self.asked.seed, place), sd=self.sd)
        return noisy >= self.answering.terms.k

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """Of the groups that are shown, in an order that tells nothing of the rows'."""
        found = [self.asked.found.keys[place] for place in self.shown]
        return sorted(found, key=lambda keys: [(value is None, str(type(value)), _sortable(value)) for value in keys])

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The share of each group that is shown which may belong elsewhere or is missing: what mixed atoms hold."""
        pieces = self.spread.pieces
        counts_for = self.of_atom[self.spread.mixed][pieces.atom]
        found = {}
        for place in self.shown:
            missing = pieces.rows[(pieces.outcome == place + 1) & (counts_for != place + 1)]
            foreign = pieces.rows[(pieces.outcome != place + 1) & (counts_for == place + 1)]
            off = int(missing.sum() + foreign.sum())
            noisy = atoms.noisy_total(off, seed=_next(self.asked.seed, -place - 2), sd=self.answering.terms.sd)
            share = abs(noisy) / max(self.total(place), 1.0)
            found[self.asked.found.keys[place]] = min(1.0, math.ceil(share * 100) / 100)
        return found

    def values(
        self, aggregate: Aggregate, totals: Mapping[tuple[Any, ...], float] | None
    ) -> Iterator[tuple[tuple[Any, ...], float | int | None]]:
        """The aggregate of each group that is shown. totals: what the groups count, if not their rows."""
        moments = [self.means(bounds) for bounds in _products(aggregate)]
        for place in self.shown:
            keys = self.asked.found.keys[place]
            rows = self.total(place)
            total = rows if totals is None else totals.get(keys)
            if total is not None:
                yield keys, self._value(aggregate, place, moments, total / rows)

    def weights(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """The atoms that count for a group, int64[m], and their rows, float64[m]."""
        mine = self.atoms[place]
        return mine, self.partition.rows[mine].astype(np.float64)

    def total(self, place: int) -> float:
        """How many rows count for a group."""
        return float(self.weights(place)[1].sum())

    def _value(self, aggregate: Aggregate, place: int, moments: list[Means], each_counts: float) -> float | int | None:
        if aggregate.function == "COUNT":
            return round(self.total(place) * each_counts)
        mine, weight = _told(*self.weights(place), moments)
        # An atom is of k people: one is enough.
        if not len(mine):
            return None
        if self.answering.terms.exact and not all(each.whole(mine) for each in moments):
            return None
        total = float(weight.sum())
        return _statistic(aggregate, total * each_counts, [_Moments.of(each, mine, weight) for each in moments])

    def pair(self, aggregate: Aggregate, place: int, sides: list[Means]) -> float | None:
        """A covariance or correlation of a group. None where there is nothing to tell."""
        mine, weight = _told(*self.weights(place), sides)
        if not len(mine):
            return None
        if self.answering.terms.exact and not (
            all(each.whole(mine) for each in sides) and any(each.constant(mine) for each in sides)
        ):
            return None
        total = float(weight.sum())
        x, y = (each.first[mine] for each in sides)
        covariance = float((weight * (x - weight @ x / total) * (y - weight @ y / total)).sum() / total)
        return _statistic(aggregate, total, [_Moments.of(each, mine, weight) for each in sides], covariance)

    def known(self, keys: tuple[Any, ...]) -> np.ndarray:
        """The last key of the group that each atom counts for, the others being `keys`; NaN where there is none."""
        values = np.full(self.partition.n_atoms, np.nan)
        for place in self.shown:
            *others, value = self.asked.found.keys[place]
            if tuple(others) == keys:
                values[self.atoms[place]] = value
        return values

    def means(self, bounds: tuple[Bound, ...]) -> Means:
        """What is said of a column, of each atom."""
        question = self.asked.question
        name, column = self.answering.base.column(question.universe, bounds)
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
        self.enough = bool(self.shown)

    def uncertain(self) -> dict[tuple[Any, ...], float]:
        """The rows of classes some values of which meet the condition but not all, as a share."""
        some, every = (Classes(self.answering.base, self.partition, match) for match in _ENDS)
        wider = some.shares(self.asked.question) - every.shares(self.asked.question)
        share = float((self.partition.rows * wider).sum()) / max(self.total(0), 1.0)
        return {(): min(1.0, math.ceil(share * 100) / 100)} if self.shown else {}

    def weights(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """As `_Groups.weights`, of which classes count by their shares."""
        mine = self.atoms[place]
        return mine, self.partition.rows[mine] * self.share[mine]


@dataclass(frozen=True)
class _Moments:
    """Means over the chosen atoms, in the unit of the column; variance of the population."""

    mean: float
    variance: float
    low: float
    high: float

    @classmethod
    def of(cls, means: Means, mine: np.ndarray, weight: np.ndarray) -> "_Moments":
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


def _told(mine: np.ndarray, weight: np.ndarray, moments: Sequence[Means]) -> tuple[np.ndarray, np.ndarray]:
    """The atoms, and their weights, of which there are cells of all columns to tell of."""
    there = np.ones(len(mine), dtype=bool)
    for each in moments:
        there &= each.told[mine]
    return mine[there], weight[there]


def _number(digest: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(digest[:8], "little"))


def _next(seed: np.uint64, place: int) -> np.uint64:
    return np.uint64((int(seed) + 0x9E3779B97F4A7C15 * (place + 1)) & 0xFFFFFFFFFFFFFFFF)


def _sortable(value: Any) -> Any:
    return "" if value is None else value
