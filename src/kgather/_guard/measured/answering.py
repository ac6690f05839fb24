"""Answers a plan's blocks from measurements: every number, and whether it is shown, is computed from them.

A group is shown where its estimate is at least k people and as many standard errors more as say that it is no accident;
a number that is wider than itself is withheld. Numbers are rounded to what their noise leaves of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kgather._guard.apart import Apart
from kgather._guard.constants import values_of, with_constants
from kgather._guard.deadline import Deadline
from kgather._guard.describe import stand_in
from kgather._guard.measured.accounting import tail
from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.counts import Counts
from kgather._guard.measured.domain import declared, limits_of
from kgather._guard.measured.estimates import ESTIMATED, MEASURED, Estimates, Keys, worse
from kgather._guard.measured.features import Asked, Feature, asked, only_used, symbols
from kgather._guard.measured.grid import Scratch, TooWide
from kgather._guard.measured.kinds import kind_of
from kgather._guard.measured.means import Means
from kgather._guard.measured.measuring import Session, Spent, TooFew
from kgather._guard.measured.model import Floats
from kgather._guard.measured.quantiles import Quantiles, of_values
from kgather._guard.measured.shares import LEVELS
from kgather._guard.measured.source import Source, source_of
from kgather._guard.measured.spending import answerable, told_share
from kgather._guard.plan import SET, Aggregate, Block, Bound, Expr, Inner, Literal, Op, Plan, Question, Scale, Value
from kgather._guard.ranked import BINNED, COUNTED, QUANTILES
from kgather._guard.refused import BUDGET, TOO_COMPLEX, Refused, Rule
from kgather._guard.told_types import is_whole, type_of, typed

SURE = 2.0
"""Standard errors by which a group has to be above k people to be shown, at least."""
_BY_CHANCE = 0.25  # groups of nobody that are shown by chance, among all groups of an answer

_APART = Apart()

_SPENT = (
    "The budget of the ledger is spent, or does not pay for this question any more. Ask what was asked before, or "
    "conditions on at most three columns that were; the owner sees what is left with kgather ledger show."
)
_WIDE = "The columns of this question have too many combinations of values. Group by fewer of them, or by coarser ones."


@dataclass(frozen=True)
class Answered:
    """The relation of a block. errors: the keys of its groups, of each aggregate the standard error in
    `<name>_error` and in `<name>_kind` how it came about."""

    table: pa.Table
    errors: pa.Table


@dataclass(frozen=True)
class _Numbers:
    """An aggregate of each group: value, standard error, and how it came about. None: nothing is told."""

    of: Mapping[Keys, tuple[float, float]]
    kind: str
    things: Mapping[Keys, Any] | None = None
    """What is told instead of numbers: values and histograms, which have no standard error."""
    type: pa.DataType | None = None
    """Of things."""

    @classmethod
    def from_estimates(cls, found: Estimates) -> "_Numbers":
        kind = f"{found.kind}, bounded" if found.bounded else found.kind
        return cls({keys: number for keys in found.keys if (number := found.at(keys)) is not None}, kind)


class _Mean(NamedTuple):
    """A mean of each group. middles: from where the distances are taken whose product it is of."""

    found: Estimates
    middles: tuple[float, ...]
    there: Estimates | None = None
    """How many values it is of, where that was measured with it."""


@dataclass
class Answering:
    """Answers one plan from one state of the ledger: each block by what was measured of the people that it is about."""

    session: Session
    scratch: Scratch
    counts: Counts = field(init=False)
    means: Means = field(init=False)
    quantiles: Quantiles = field(init=False)
    _questions: dict[Question, Asked] = field(default_factory=dict)
    _counted: dict[tuple[Asked, bool], Estimates] = field(default_factory=dict)
    _known: dict[tuple[Aggregate, tuple[int, ...]], _Numbers] = field(default_factory=dict)
    _others: "dict[str, Answering]" = field(default_factory=dict)
    """Of other kinds of people."""

    def __post_init__(self) -> None:
        self._others[self.session.kind] = self
        self.counts = Counts(self.session, self.scratch)
        self.means = Means(self.counts)
        self.quantiles = Quantiles(self.counts)

    def blocks(self, plan: Plan) -> dict[str, Answered]:
        """The relation of each block. Raises Refused: static where the budget does not pay for a measurement, or where
        there are too many cells, by declared or measured sizes; otherwise where too few people are asked about."""
        return {block.name: self._of(block)._block(block) for block in self.resolved(plan).blocks}

    def _of(self, block: Block) -> "Answering":
        """What answers about the people that a block is about."""
        kind = kind_of(block, [people.catalog for people in self.session.kinds.values()])
        if kind not in self._others:
            self._others[kind] = Answering(self.session.of(kind), self.scratch)
        return self._others[kind]

    def costs(self, plan: Plan) -> None:
        """Find out what would be measured for a plan, in that order, without measuring: `Session.missing` has it
        then."""
        try:
            plan = self.resolved(plan)
        except (Spent, TooFew, TooWide, Refused):
            return
        for block in plan.blocks:
            self._of(block)._costs(block)

    def _costs(self, block: Block) -> None:
        for chosen in block.grouping_sets:
            try:
                of = self._asked(block.question, chosen)
            except Refused:
                continue
            for aggregate in (*self._first(block, of), None, *block.aggregates):
                with suppress(Spent, TooFew, TooWide, Refused):
                    if aggregate is None:
                        self._groups(self._gate(block, chosen, of))
                    else:
                        self._numbers(aggregate, chosen)

    def resolved(self, plan: Plan) -> Plan:
        """A plan with the answers that are constants of it in their places. They are found once, and then stay as they
        are: else each better answer would make another question. Raises as `blocks`."""
        return with_constants(plan, {one.name: self._constant(one) for one in plan.inner}) if plan.inner else plan

    def _constant(self, inner: Inner) -> tuple[Value, ...]:
        session = self.session
        kept = session.constant(inner.name)
        if kept is not None:
            return values_of(inner, kept)
        if session.dry:
            self.costs(inner.plan)
            session.doubt()
            return (stand_in(inner.kind),)
        self.blocks(inner.plan)  # measures what it needs
        return values_of(inner, session.keep_constant(inner.name, lambda known: self.rows(inner, known)))

    def rows(self, inner: Inner, known: Session) -> list[Value]:
        """The answer that is a constant, from what is known."""
        found = {name: of.table for name, of in Answering(known, self.scratch).blocks(inner.plan).items()}
        limits = self.session.catalog.policy.limits
        with Deadline(limits.time_ms) as deadline:
            table = _APART.run(inner.plan.sql, found, limits.memory, deadline)
        rows = table.column(0).to_pylist()
        values_of(inner, rows)
        return rows

    def _block(self, block: Block) -> Answered:
        try:
            parts = [self._grouping_set(block, at) for at in range(len(block.grouping_sets))]
        except Spent:
            raise Refused(self._spent(), code=BUDGET, rule=Rule.BUDGET) from None
        except TooFew:
            raise Refused.too_few() from None
        except TooWide:
            raise Refused(_WIDE, code=TOO_COMPLEX, rule=Rule.LIMITS) from None
        return Answered(
            pa.concat_tables([part.table for part in parts], promote_options="permissive"),
            pa.concat_tables([part.errors for part in parts], promote_options="permissive"),
        )

    def _spent(self) -> str:
        """Why a measurement was not paid for, and what is answered nevertheless."""
        session = self.session
        if not session.of_share:
            return _SPENT
        share = told_share(session.catalog.policy, session.principal)
        known = answerable(session.model.measurements)
        return f"Of the budget of the ledger, {share} does not pay for this question. {known}"

    def _asked(self, question: Question, chosen: Sequence[int] | None = None) -> Asked:
        if chosen is not None:
            question = replace(question, keys=tuple(question.keys[at] for at in chosen))
        if question not in self._questions:
            self._questions[question] = asked(question, self.session.catalog)
        return self._questions[question]

    def _counts(self, of: Asked, *, people: bool = False) -> Estimates:
        known = (of, people)
        if known not in self._counted:
            self._counted[known] = self.counts.of(of, people=people)
        return self._counted[known]

    def _grouping_set(self, block: Block, number: int) -> Answered:
        chosen = block.grouping_sets[number]
        of = self._asked(block.question, chosen)
        for aggregate in self._first(block, of):
            self._numbers(aggregate, chosen)
        shown, types = self._shown(self._gate(block, chosen, of))
        columns: dict[str, pa.Array] = {}
        errors: dict[str, pa.Array] = {}
        for at, key in enumerate(block.keys):
            if at in chosen:
                place = chosen.index(at)
                columns[key.name] = pa.array([keys[place] for keys in shown], types[place])
            else:
                columns[key.name] = pa.nulls(len(shown), self._type(block, at))
            errors[key.name] = columns[key.name]
        missing = 0
        for aggregate in block.aggregates:
            numbers = self._numbers(aggregate, chosen)
            if numbers.things is not None:
                listed = [numbers.things.get(keys) for keys in shown]
                missing += listed == [None]
                columns[aggregate.name] = pa.array(listed, numbers.type)
                errors[f"{aggregate.name}_error"] = pa.nulls(len(shown), pa.float64())
                errors[f"{aggregate.name}_kind"] = pa.array([numbers.kind] * len(shown), pa.string())
                continue
            told = [_told(numbers.of.get(keys), aggregate.function) for keys in shown]
            missing += told == [None]
            kind = type_of(aggregate, self.session.catalog)
            columns[aggregate.name] = typed([None if one is None else one[0] for one in told], kind)
            errors[f"{aggregate.name}_error"] = pa.array(
                [None if one is None else one[1] for one in told], pa.float64()
            )
            errors[f"{aggregate.name}_kind"] = pa.array([numbers.kind] * len(shown), pa.string())
        if not block.keys and missing == len(block.aggregates) > 0:
            raise Refused.too_few()
        if block.has_sets:
            columns[SET] = pa.array([number] * len(shown), pa.int64())
        return Answered(pa.table(columns), pa.table(errors))

    def _first(self, block: Block, of: Asked) -> list[Aggregate]:
        """The aggregates that are computed before the groups are known: what means of rows are made of tells the
        groups, too."""
        return [aggregate for aggregate in block.aggregates if aggregate.function == "AVG" and of.rows]

    def _groups(self, of: Asked) -> Estimates:
        """The groups of a question: those whose key was found, or with the counts of all."""
        return self.counts.found_keys(of) or self._counts(of)

    def _gate(self, block: Block, chosen: tuple[int, ...], of: Asked) -> Asked:
        """The question whose counts decide what is shown: of people, where people are counted; their noise is less than
        that of rows."""
        if of.rows is None or of.keys:
            return of
        for aggregate in block.aggregates:
            people = self._asked(aggregate.question, chosen)
            if aggregate.function == "COUNT" and not aggregate.arguments and people.rows is None:
                return people
        return of

    def _shown(self, of: Asked) -> tuple[list[Keys], tuple[pa.DataType, ...]]:
        """The keys of the groups that are shown, in an order that tells nothing, and their types. Raises Refused where
        too few people are asked about."""
        found = self.counts.found_keys(of)
        if found is not None:
            return sorted(found.keys, key=_order), found.types
        counts = self._counts(of)
        least = float(self.session.catalog.policy.k)
        sure = max(SURE, tail(min(_BY_CHANCE / max(len(counts.keys), 1), 0.5)))
        enough = [
            keys
            for keys, value, variance in zip(counts.keys, counts.values, counts.variance, strict=True)
            if value >= least + sure * math.sqrt(max(float(variance), 0.0))
        ]
        whole, noise = float(np.sum(counts.values)), math.sqrt(max(float(np.sum(counts.variance)), 0.0))
        if not enough and not (of.keys and whole >= least + SURE * noise):
            raise Refused.too_few()
        return sorted(enough, key=_order), counts.types

    def _type(self, block: Block, at: int) -> pa.DataType:
        """The type of a key that is not in a grouping set."""
        return self._counts(self._asked(block.question, (at,))).types[0]

    # Aggregates

    def _numbers(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> _Numbers:
        known = (aggregate, chosen)
        if known not in self._known:
            self._known[known] = self._computed(aggregate, chosen)
        return self._known[known]

    def _computed(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> _Numbers:
        question = replace(aggregate.question, keys=tuple(aggregate.question.keys[at] for at in chosen))
        function = aggregate.function
        if function == "COUNT_DISTINCT":
            inner = self._asked(replace(question, keys=(*question.keys, aggregate.arguments[0])))
            outer = replace(inner, keys=inner.keys[:-1])
            k = float(self.session.catalog.policy.k)
            return _Numbers.from_estimates(self.counts.distinct(outer, inner.keys[-1], k, SURE))
        if aggregate.parts:
            return self._combined(aggregate, chosen)
        if function in QUANTILES:
            return self._quantile(aggregate, question)
        if function in (*COUNTED, BINNED):
            return self._counted_values(aggregate, question)
        if function == "COUNT_UNITS":
            return _Numbers.from_estimates(self._counts(self._asked(question), people=True))
        if function == "COUNT":
            return _Numbers.from_estimates(self._counts(self._asked(_of_cells(question, aggregate.arguments))))
        if len(aggregate.arguments) == 2:
            return self._pair(aggregate, question)
        return self._single(aggregate, question)

    def _single(self, aggregate: Aggregate, question: Question) -> _Numbers:
        (argument,), (scale,) = aggregate.arguments, aggregate.scale
        function = aggregate.function
        mean = self._mean(question, argument)
        if function == "AVG":
            return _scaled(mean.found, scale)
        counts = mean.there or self._counts(self._asked(_of_cells(question, aggregate.arguments)))
        if function == "SUM":
            return _summed(mean.found, counts, scale)
        return _spread(function, mean.found, self._mean(question, argument, argument), counts, scale)

    def _combined(self, aggregate: Aggregate, chosen: tuple[int, ...]) -> _Numbers:
        """A sum of counts and sums. A part that cannot be told of a group is left out, and the sum is marked."""
        found = [(factor, part.function, self._numbers(part, chosen)) for factor, part in aggregate.parts]
        kinds = [numbers.kind.removesuffix(", bounded") for _, _, numbers in found]
        kind, of = worse(*kinds), {}
        for keys in dict.fromkeys(keys for _, _, numbers in found for keys in numbers.of):
            value, variance = 0.0, 0.0
            for factor, function, numbers in found:
                number = numbers.of.get(keys)
                if number is None:
                    kind = kind if function == "COUNT" else ESTIMATED
                    continue
                value, variance = value + factor * number[0], variance + (factor * number[1]) ** 2
            of[keys] = (value, math.sqrt(variance))
        bounded = any(numbers.kind.endswith(", bounded") for _, _, numbers in found)
        return _Numbers(of, f"{kind}, bounded" if bounded else kind)

    def _quantile(self, aggregate: Aggregate, question: Question) -> _Numbers:
        """A quantile: of values that are told apart from their counts, of others from counts in bins."""
        (argument,), (scale,) = aggregate.arguments, aggregate.scale
        assert aggregate.fraction is not None
        fraction = aggregate.fraction if scale.factor >= 0 else 1 - aggregate.fraction
        discrete = aggregate.function == "QUANTILE_DISC"
        outer, expr, feature = self._of_argument(question, argument)
        if self._are_told_apart(outer, [expr]):
            told = of_values(fraction, self.session.catalog.policy.k, discrete=discrete)
            return _scaled(self.means.numbers(outer, [expr], told), scale)
        outer = self.quantiles.prepared(only_used(outer))
        limits = self._limits(feature, outer.rows or "")
        return _scaled(self.quantiles.of(outer, feature, limits, fraction, discrete=discrete), scale)

    def _of_argument(self, question: Question, argument: Expr) -> tuple[Asked, Expr, Feature]:
        """A question without its argument, the argument as an expression over features, and its feature."""
        inner = self._asked(replace(question, keys=(*question.keys, argument)))
        outer, expr = replace(inner, keys=inner.keys[:-1]), inner.keys[-1]
        own = symbols(expr) - {place for one in (inner.condition, *outer.keys) for place in symbols(one)}
        # Who has no row has no value in it: that the row is there need not be asked for.
        outer = replace(outer, present=tuple(place for place in outer.present if place not in own))
        return outer, expr, self._feature(inner, expr)

    def _counted_values(self, aggregate: Aggregate, question: Question) -> _Numbers:
        """The value that most have, or how many have each, of those that are shown."""
        (argument,) = aggregate.arguments
        if aggregate.function == BINNED:
            outer, _, feature = self._of_argument(question, argument)
            outer = self.quantiles.prepared(only_used(outer))
            limits = self._limits(feature, outer.rows or "")
            of_bins = self.quantiles.histogram(outer, feature, limits)
            scaled = {keys: sorted(_scaled_bins(found, aggregate.scale[0])) for keys, found in of_bins.items()}
            return _Numbers({}, MEASURED, scaled, pa.map_(pa.float64(), pa.int64()))
        inner = self._asked(replace(question, keys=(*question.keys, argument)))
        counts = self._counts(inner)
        least = float(self.session.catalog.policy.k)
        found: dict[Keys, list[tuple[Any, int]]] = {}
        for keys in sorted(counts.keys, key=_order):
            own = found.setdefault(keys[:-1], [])
            number = counts.at(keys)
            told = _told(number, "COUNT")
            if (
                keys[-1] is not None
                and number is not None
                and told is not None
                and number[0] >= least + SURE * number[1]
            ):
                own.append((keys[-1], int(told[0])))
        of = counts.types[-1]
        kind = f"{counts.kind}, bounded" if counts.bounded else counts.kind
        if aggregate.function == "HISTOGRAM":
            return _Numbers({}, kind, {keys: own or None for keys, own in found.items()}, pa.map_(of, pa.int64()))
        modes = {keys: max(own, key=lambda one: one[1])[0] if own else None for keys, own in found.items()}
        return _Numbers({}, kind, modes, of)

    def _pair(self, aggregate: Aggregate, question: Question) -> _Numbers:
        x, y = aggregate.arguments
        both = _of_cells(question, aggregate.arguments)
        means = [self._mean(both, one).found for one in (x, y)]
        product = self._mean(both, x, y)
        squares = [self._mean(both, one, one) for one in (x, y)] if aggregate.function == "CORR" else []
        counts = self._counts(self._asked(both))
        return _together(aggregate, means, product, squares, counts)

    def _mean(self, question: Question, argument: Expr, times: Expr | None = None) -> _Mean:
        """The mean of a column, or of the product of two distances from the middles of their bounds, in each group."""
        arguments = (argument,) if times is None else (argument, times)
        count = len(arguments)
        inner = self._asked(replace(question, keys=(*question.keys, *arguments)))
        outer, exprs = replace(inner, keys=inner.keys[:-count]), inner.keys[-count:]
        used = {place for expr in (inner.condition, *outer.keys) for place in symbols(expr)}
        own = {place for expr in exprs for place in symbols(expr)} - used
        # Who has no row has no value in it, and is in no sum: that the row is there need not be asked for.
        outer = replace(outer, present=tuple(place for place in outer.present if place not in own))
        features = [self._feature(inner, expr) for expr in exprs]
        if self._are_told_apart(outer, exprs):
            middles = [0.0] * count if times is None else [self._middle(feature) for feature in features]
            return _Mean(self.means.numbers(outer, exprs, _mean_of(middles)), tuple(middles))
        limits = [self._limits(feature, outer.rows or "") for feature in features]
        of_groups = only_used(outer)
        if times is None:
            found = self.means.of(of_groups, features[0], limits[0])
            return _Mean(found, (0.0,), self.means.there.get((of_groups, features[0])))
        half = limits[0].half * limits[1].half
        of_product = Bounds(0.0 if argument == times else -half, half)
        found = self.means.of(of_groups, _product(features, limits), of_product)
        return _Mean(found, tuple(limit.middle for limit in limits))

    def _middle(self, feature: Feature) -> float:
        source = source_of(feature.expr, self.session.catalog)
        bounds = source.bounds if source is not None else None
        return Bounds(*bounds).middle if bounds is not None else 0.0

    def _feature(self, inner: Asked, expr: Expr) -> Feature:
        if not isinstance(expr, Bound):
            told = "A sum over rows of people is of a column."
            raise Refused(told, rule=Rule.ARGUMENTS)
        return inner.features[int(expr.column)]

    def _are_told_apart(self, outer: Asked, exprs: Sequence[Expr]) -> bool:
        """Whether the arguments' values are classes of a margin: those of conditions and keys are, and opinions."""
        if outer.rows is not None:
            return False
        used = {place for expr in (outer.condition, *outer.keys) for place in symbols(expr)} | set(outer.present)
        for expr in exprs:
            (place,) = symbols(expr)
            feature = outer.features[place]
            source = source_of(feature.expr, self.session.catalog)
            opinion = source is not None and self._role(source) == "artifact" and self._has_few(feature)
            if not (opinion or place in used) or not self.counts.is_told_apart(feature, ""):
                return False
        # With two conditions beside it, a value's classes are many small cells: there sums are better.
        own = {place for expr in exprs for place in symbols(expr)}
        return len(used | own) <= (3 if own <= used else 2)

    def _has_few(self, feature: Feature) -> bool:
        """Whether a whole number has so few values that their counts tell as much as a sum, and tell more besides."""
        known = declared(feature, self.session.catalog)
        return feature.kind == "integer" and known is not None and len(known.values) <= LEVELS

    def _role(self, source: Source) -> str:
        column = source.table.column(source.column)
        return column.role if column is not None else ""

    def _limits(self, feature: Feature, rows: str) -> Bounds:
        source = source_of(feature.expr, self.session.catalog)
        expr = feature.expr if source is None else Bound(source.table.name, source.column)
        known = limits_of(expr, self.session.catalog, self.session.of_public)
        if known is None and feature.kind == "integer" and not rows and self.counts.is_told_apart(feature, rows):
            values = [int(value) for value in self.session.domain(feature, rows).values]
            known = (float(min(values)), float(max(values))) if len(values) > 1 else None
        return self.session.bounds(feature, rows, known)


def _mean_of(middles: Sequence[float]) -> Callable[..., tuple[float, float]]:
    def of(counts: Floats, spread: Floats, *numbers: Floats) -> tuple[float, float]:
        values = np.ones(len(counts))
        for number, middle in zip(numbers, middles, strict=True):
            values = values * (number - middle)
        # Noise makes some counts negative; cut off, the others would pull the mean to the middle of its range.
        whole = max(float(counts.sum()), 1.0)
        mean = float(np.clip(float(counts @ values) / whole, values.min(), values.max()))
        return mean, float(((values - mean) ** 2) @ spread) / whole**2

    return of


def _product(features: Sequence[Feature], limits: Sequence[Bounds]) -> Feature:
    """The product of the distances of two values from the middles of their bounds, each cut off there."""
    parts = []
    for feature, limit in zip(features, limits, strict=True):
        low, high, middle = (Literal(value, "number") for value in (limit.low, limit.high, limit.middle))
        cut = Op("least", (Op("greatest", (feature.expr, low), "number"), high), "number")
        # Both ends cut off a NULL, too; a value that is missing stays so.
        there = Op("case", (Op("is null", (feature.expr,)), Literal(None, "null"), cut), "number")
        parts.append(Op("-", (there, middle), "number"))
    lookups = {entry.right.table: entry for feature in features for entry in feature.lookups}
    first = next((feature.table for feature in features if feature.table is not None), None)
    return Feature(Op("*", tuple(parts), "number"), tuple(lookups.values()), first)


def _of_cells(question: Question, arguments: Sequence[Expr]) -> Question:
    """The question about those whose arguments are there."""
    there = tuple(Op("not", (Op("is null", (argument,)),)) for argument in dict.fromkeys(arguments))
    return replace(question, condition=Op("and", (question.condition, *there))) if there else question


def _scaled(found: Estimates, scale: Scale) -> _Numbers:
    of = {}
    for keys in found.keys:
        number = found.at(keys)
        if number is not None and not math.isnan(number[0]):
            of[keys] = (scale.factor * number[0] + scale.offset, abs(scale.factor) * number[1])
    return _Numbers(of, f"{found.kind}, bounded" if found.bounded else found.kind)


def _scaled_bins(found: Mapping[float, float], scale: Scale) -> list[tuple[float, int]]:
    return [(scale.factor * end + scale.offset, int(count)) for end, count in found.items()]


def _summed(mean: Estimates, counts: Estimates, scale: Scale) -> _Numbers:
    of = {}
    for keys, (value, error) in _scaled(mean, scale).of.items():
        count = counts.at(keys)
        if count is not None:
            of[keys] = (value * count[0], math.hypot(error * count[0], value * count[1]))
    kind = worse(mean.kind, counts.kind)
    return _Numbers(of, f"{kind}, bounded" if mean.bounded or counts.bounded else kind)


def _spread(function: str, mean: Estimates, square: _Mean, counts: Estimates, scale: Scale) -> _Numbers:
    """A variance or deviation, from the means of values and of squared distances from a point."""
    of = {}
    for keys, (value, error, count) in _three(mean, square.found, counts).items():
        variance = max(value[1] - (value[0] - square.middles[0]) ** 2, 0.0) * scale.factor**2
        noise = math.hypot(error[1], 2 * (value[0] - square.middles[0]) * error[0]) * scale.factor**2
        if function.endswith("SAMP"):
            variance, noise = (part * _sample(count) for part in (variance, noise))
        if function.startswith("STDDEV"):
            deviation = math.sqrt(variance)
            of[keys] = (deviation, noise / (2 * deviation) if deviation > 0 else noise)
        else:
            of[keys] = (variance, noise)
    return _Numbers(of, worse(mean.kind, square.found.kind, counts.kind))


def _together(
    aggregate: Aggregate, means: Sequence[Estimates], product: _Mean, squares: Sequence[_Mean], counts: Estimates
) -> _Numbers:
    """A covariance or correlation, from the means of values, of products of distances, and of their squares."""
    (a, _), (c, _) = aggregate.scale
    of = {}
    for keys, (value, error, count) in _three(means[0], product.found, counts).items():
        other = means[1].at(keys)
        if other is None:
            continue
        x, y = value[0] - product.middles[0], other[0] - product.middles[1]
        covariance, noise = value[1] - x * y, math.hypot(error[1], error[0] * y, other[1] * x)
        if aggregate.function == "CORR":
            spreads = [square.found.at(keys) for square in squares]
            if any(spread is None for spread in spreads):
                continue
            parts = [spread[0] - own**2 for spread, own in zip(spreads, (x, y), strict=True) if spread is not None]
            if min(parts) <= 0:
                continue
            size = math.sqrt(parts[0] * parts[1])
            of[keys] = (math.copysign(1.0, a * c) * max(-1.0, min(1.0, covariance / size)), noise / size)
            continue
        factor = a * c * (_sample(count) if aggregate.function.endswith("SAMP") else 1.0)
        of[keys] = (factor * covariance, abs(factor) * noise)
    return _Numbers(of, worse(product.found.kind, counts.kind, *(mean.kind for mean in means)))


def _three(
    one: Estimates, two: Estimates, counts: Estimates
) -> dict[Keys, tuple[tuple[float, float], tuple[float, float], float]]:
    """Of each group that all three have: two values, their errors, and how many there are."""
    found = {}
    for keys in one.keys:
        first, second, count = one.at(keys), two.at(keys), counts.at(keys)
        if first is None or second is None or count is None or math.isnan(first[0]) or math.isnan(second[0]):
            continue
        found[keys] = ((first[0], second[0]), (first[1], second[1]), count[0])
    return found


def _sample(count: float) -> float:
    return count / (count - 1) if count > 1 else 1.0


def _told(number: tuple[float, float] | None, function: str) -> tuple[float | int, float | None] | None:
    """A number as it is told: None where it is wider than itself (a correlation: than half of what it may be); rounded
    to a tenth of its standard error. The error is None where there is none to tell."""
    whole, bounded = is_whole(function), function == "CORR"
    if number is not None and function == "COUNT_DISTINCT":
        return round(number[0]), None
    if number is None or not all(math.isfinite(part) for part in number):
        return None
    value, error = number
    if function not in QUANTILES and error > (0.5 if bounded else abs(value)):
        return None
    digits = 12 if error <= 0 else 1 - math.floor(math.log10(error))
    error = float(f"{error:.2g}")
    if whole:
        rounded = round(value, min(digits, 0))
        return int(rounded if function == "COMBINED_WHOLE" else max(rounded, 0)), error
    return round(value, min(digits, 15)), error


def _order(keys: Keys) -> list[Any]:
    return [(value is None, str(type(value)), "" if value is None else value) for value in keys]
