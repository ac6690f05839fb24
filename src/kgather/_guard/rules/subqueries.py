"""Subqueries inside expressions are answers, or say who is asked about."""

from collections.abc import Iterator

from sqlglot import exp

from kgather._guard.names import Resolved, Scope, Union, group_keys, is_unit
from kgather._guard.refused import Rule, refused


def answers_in_conditions(scope: Scope) -> Iterator[tuple[exp.Expr, Scope | Union]]:
    """The subqueries of answers that are compared with values in conditions over rows of people: they are constants of
    the question."""
    if not scope.raw:
        return
    for node in scope.node.walk():
        inner = scope.subqueries.get(id(node))
        if inner is None or isinstance(node, exp.Exists) or inner.raw_rows or not inner.protected:
            continue
        if isinstance(node, exp.In) and is_unit(scope, node.this):
            continue
        if _chooses_people(scope, node):
            yield node, inner


def subqueries(query: Resolved) -> None:
    """Refuse subqueries inside expressions that are rows of people, but for IN and EXISTS over the privacy unit; and
    those of public tables, and in modes without a budget those of answers, in conditions over rows of people."""
    measured = query.catalog.policy.mode == "measured"
    for scope in query.scopes:
        constants = {id(node) for node, _ in answers_in_conditions(scope)} if measured else set()
        for node in scope.node.walk():
            inner = scope.subqueries.get(id(node))
            if inner is None or id(node) in constants:
                continue
            if scope.raw and _chooses_people(scope, node):
                if isinstance(node, exp.In | exp.Exists) and (inner.protected or measured):
                    continue
                allow = "Ask for it first, and write its number; or there are user IN (SELECT user ...) and EXISTS"
                raise refused(Rule.SUBQUERIES, "A subquery in a condition over rows of people", node, allow=allow)
            if inner.raw_rows:
                allow = "Aggregate in it; over people there are user IN (SELECT user ...) and EXISTS"
                raise refused(Rule.SUBQUERIES, "A subquery of rows of people inside an expression", node, allow=allow)


def _chooses_people(scope: Scope, node: exp.Expr) -> bool:
    """Whether a part of a SELECT over rows of people stands where they are chosen, put into groups or added up."""
    above: exp.Expr | None = node
    keys = {id(key) for key in group_keys(scope) if key.unnest() is not node}
    while above is not None and above is not scope.node:
        if id(above) in keys:
            return True
        if isinstance(above, exp.Where | exp.Group | exp.Join | exp.AggFunc | exp.Filter):
            return not isinstance(above.parent, exp.Window)
        above = above.parent
    return scope.raw_rows
