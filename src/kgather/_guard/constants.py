"""Answers that are constants of the questions around them, as in WHERE salary > (SELECT AVG(salary) FROM people).

In a plan such an answer is a column of CONSTANTS. Before the plan is answered, the answer takes its place.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from kgather._guard.plan import (
    Aggregate,
    Block,
    Bound,
    Exists,
    Expr,
    Inner,
    Kind,
    Literal,
    Op,
    PerUnit,
    Plan,
    Question,
    Value,
)
from kgather._guard.refused import TOO_COMPLEX, Refused, Rule

CONSTANTS = "kg_constants"
MANY = 200
"""How many values IN may take from an answer."""


def name_of(made: Plan, kind: Kind, *, several: bool) -> str:
    """What the answer to a plan is known by: equal names ask the same, and use it alike."""
    asked = repr((made.sql, made.blocks, kind, several))
    return f"constant {hashlib.sha256(asked.encode()).hexdigest()[:24]}"


def bound_of(name: str, kind: Kind) -> Bound:
    """The column that stands for an answer."""
    return Bound(CONSTANTS, name, kind)


def values_of(inner: Inner, rows: Sequence[Value]) -> tuple[Value, ...]:
    """The values of an answer that is used as a constant. Raises Refused where there are too many."""
    if not inner.several and len(rows) > 1:
        told = "A subquery that is compared with a value gives several rows. Write IN, or aggregate in it."
        raise Refused(told, rule=Rule.SUBQUERIES)
    if len(rows) > MANY:
        told = f"A subquery of IN gives more than {MANY} values. Choose among them, such as by HAVING or LIMIT."
        raise Refused(told, code=TOO_COMPLEX, rule=Rule.LIMITS)
    return tuple(rows) if inner.several else (rows[0] if rows else None,)


def with_constants(made: Plan, values: Mapping[str, tuple[Value, ...]]) -> Plan:
    """A plan with answers in their places. values: by the name of each. Raises Refused where one is of another type
    than what it stands beside."""
    kinds = {inner.name: inner.kind for inner in made.inner}
    literals = {name: [_literal(value, kinds[name]) for value in of] for name, of in values.items()}

    def over(expr: Expr) -> Expr:
        if isinstance(expr, Bound):
            return literals[expr.column][0] if expr.table == CONSTANTS else expr
        if isinstance(expr, Op):
            last = expr.args[-1] if expr.args else None
            if expr.name == "=" and isinstance(last, Bound) and last.table == CONSTANTS:
                one = over(expr.args[0])
                parts = [Op("=", (one, literal)) for literal in literals[last.column]]
                if not parts:
                    return Literal(False, "boolean")
                return parts[0] if len(parts) == 1 else Op("or", tuple(parts))
            return Op(expr.name, tuple(over(arg) for arg in expr.args), expr.kind)
        if isinstance(expr, Exists):
            return replace(expr, condition=over(expr.condition))
        if isinstance(expr, PerUnit):
            argument = None if expr.argument is None else over(expr.argument)
            assert argument is None or isinstance(argument, Bound | Op)
            return replace(expr, condition=over(expr.condition), argument=argument)
        return expr

    def question(one: Question) -> Question:
        return Question(one.universe, over(one.condition), tuple(over(key) for key in one.keys))

    def aggregate(one: Aggregate) -> Aggregate:
        parts = tuple((factor, aggregate(part)) for factor, part in one.parts)
        arguments = tuple(over(of) for of in one.arguments)
        return replace(one, question=question(one.question), arguments=arguments, parts=parts)

    def block(one: Block) -> Block:
        return replace(one, question=question(one.question), aggregates=tuple(map(aggregate, one.aggregates)))

    return replace(made, blocks=tuple(block(one) for one in made.blocks), inner=())


def _literal(value: Value, kind: Kind) -> Literal:
    if value is None:
        return Literal(None, "null")
    found: Kind | None = None
    if isinstance(value, bool):
        found = "boolean"
    elif isinstance(value, int):
        found = "integer"
    elif isinstance(value, float | Decimal):
        value, found = float(value), "number"
    elif isinstance(value, str):
        found = "text"
    elif isinstance(value, datetime):
        found = "timestamp"
    elif isinstance(value, date):
        found = "date"
    numbers = ("integer", "number")
    if found is None or not (found == kind or (found in numbers and kind in numbers)):
        told = "A subquery in a condition gives a value of another type than what it is compared with."
        raise Refused(told, rule=Rule.SUBQUERIES)
    return Literal(value, found)


def all_inner(made: Plan) -> Iterator[Inner]:
    """The answers that a plan needs, and those that they need, deepest first."""
    for inner in made.inner:
        yield from all_inner(inner.plan)
        yield inner
