"""HAVING chooses among groups that are shown: each covers k people at least."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.conditions import constant
from kgather._guard.names import Resolved, Scope, base_column
from kgather._guard.refused import NOT_PERMITTED, Rule, refused

_WORDS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "<>",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}


class _CountCompared(NamedTuple):
    """A comparison of a count with a number."""

    node: exp.Expr
    word: str
    number: float


class _Sides(NamedTuple):
    """A comparison of two expressions."""

    word: str
    left: exp.Expr
    right: exp.Expr


def having(query: Resolved) -> None:
    """Refuse HAVING that asks for groups of fewer than k, or for a threshold below k; and conditions on dimensions."""
    if query.catalog.policy.mode == "measured":  # what is told is told: conditions on it tell no more
        return
    k = query.catalog.policy.k
    for scope in query.scopes:
        node = scope.node.args.get("having")
        if node is None or not scope.raw or scope.raw_rows:
            continue
        for column in node.find_all(exp.Column):
            found = base_column(scope, column) if not _inside_aggregate(column) else None
            if found is not None and found.column.role == "dimension":
                reason = f"{found.column.name} is a dimension: it is a key of groups and no condition"
                raise refused(Rule.HAVING, reason, column, code=NOT_PERMITTED)
        for compared in _counts(scope, node.this, True):
            if _below(compared.word, compared.number, k):
                told = f"Every group shown covers at least {k} people: HAVING may ask for more, not for fewer"
                raise refused(Rule.HAVING, told, compared.node, code=NOT_PERMITTED)


def _below(word: str, number: float, k: int) -> bool:
    """Whether a comparison says nothing, or nothing but no, of a count that is at least k; `>= k` itself may stand."""
    return number < {">=": k, ">": k - 1, "<": k + 1e-9, "<=": k, "=": k, "<>": k}[word]


def _counts(scope: Scope, node: exp.Expr, holds: bool) -> Iterator[_CountCompared]:
    """Every comparison of a count with a number; holds: whether it is meant so or negated."""
    if isinstance(node, exp.Not):
        yield from _counts(scope, node.this, not holds)
        return
    compared: list[_Sides] = []
    if type(node) in _WORDS:
        word = _WORDS[type(node)]
        compared = [_Sides(word, node.this, node.expression), _Sides(_TURNED[word], node.expression, node.this)]
    elif isinstance(node, exp.Between):
        compared = [_Sides(">=", node.this, node.args["low"]), _Sides("<=", node.this, node.args["high"])]
    elif isinstance(node, exp.In):
        compared = [_Sides("=", node.this, value) for value in node.expressions]
    for word, left, right in compared:
        found = constant(right)
        if _is_count(scope, left) and found is not None and isinstance(found.value, int | float):
            yield _CountCompared(node, word if holds else _NEGATED[word], float(found.value))
    for child in node.iter_expressions():
        yield from _counts(scope, child, holds)


def _is_count(scope: Scope, node: exp.Expr) -> bool:
    node = node.unnest()
    name = scope.names.get(id(node))
    if name is not None and name.output is not None and name.output.node is not None:
        return _is_count(scope, name.output.node)
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Count)


def _inside_aggregate(node: exp.Expr) -> bool:
    above = node.parent
    while above is not None and not isinstance(above, exp.Having):
        if isinstance(above, exp.AggFunc):
            return True
        above = above.parent
    return False
