"""Aggregates of CASE as the counts and sums that they are: each branch chooses people, as FILTER does."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp


class Choice(NamedTuple):
    """Whom a branch chooses: those for whom a condition is true, or false; or, with an operand, equal to it."""

    node: exp.Expr
    operand: exp.Expr | None = None
    wanted: bool = True


class Branch(NamedTuple):
    """What is taken from those whom no branch before has chosen, and this one does. choice: None of the default. value:
    None is NULL."""

    choice: Choice | None
    value: exp.Expr | None


def branches(node: exp.Expr) -> list[Branch] | None:
    """The branches of an argument; None where it has none. A condition, or one as a number, is 1 or 0."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        node = node.this.unnest() if _is_condition(node.this) else node
    if _is_condition(node):
        one, zero = (exp.Literal.number(number) for number in (1, 0))
        return [Branch(Choice(node), one), Branch(Choice(node, wanted=False), zero)]
    if isinstance(node, exp.Case | exp.If):
        return [*_of_cases(node)]
    return None


def _of_cases(node: exp.Case | exp.If) -> Iterator[Branch]:
    if isinstance(node, exp.If):
        yield Branch(Choice(node.this), _value(node.args["true"]))
        yield Branch(None, _value(node.args.get("false")))
        return
    for when in node.args["ifs"]:
        if node.this is not None and isinstance(when.this.unnest(), exp.Null):
            continue  # nothing equals NULL
        yield Branch(Choice(when.this, node.this), _value(when.args["true"]))
    yield Branch(None, _value(node.args.get("default")))


def _is_condition(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Predicate | exp.Connector | exp.Not)


def _value(node: exp.Expr | None) -> exp.Expr | None:
    return None if node is None or isinstance(node.unnest(), exp.Null) else node
