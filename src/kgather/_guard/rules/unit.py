"""The privacy unit names people: it joins, it is counted, and it groups inside a subquery."""

from sqlglot import exp

from kgather._guard.names import Resolved, Scope, base_column, is_unit
from kgather._guard.refused import NOT_PERMITTED, Rule, refused


def unit(query: Resolved) -> None:
    """Refuse the privacy unit everywhere but in joins, COUNT(DISTINCT), subqueries' columns and their GROUP BY."""
    for scope in query.scopes:
        for node in scope.node.find_all(exp.Column):
            if id(node) not in scope.names or not is_unit(scope, node):
                continue
            if not _permitted(scope, node, scope is query.top or any(scope in u.branches for u in query.unions)):
                reason = f"{node.name} names people: it is no condition, no value and no key of an answer"
                allow = f"It may join tables, and be counted: COUNT(DISTINCT {node.name})"
                raise refused(Rule.UNIT, reason, node, allow=allow, code=NOT_PERMITTED)


def _permitted(scope: Scope, node: exp.Expr, shown: bool) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.EQ):
        other = parent.expression if parent.this is node else parent.this
        found = base_column(scope, other)
        return found is not None and found.column.role in ("unit", "key") and _joins(scope, parent)
    if isinstance(parent, exp.If) and parent.args.get("true") is node and isinstance(parent.parent, exp.Case):
        case = parent.parent  # whom a condition chooses are counted, as by FILTER
        if len(case.args["ifs"]) == 1 and case.this is None and case.args.get("default") is None:
            parent = case.parent if isinstance(case.parent, exp.Distinct) else parent
    if isinstance(parent, exp.Distinct):
        return isinstance(parent.parent, exp.Count) and len(parent.expressions) == 1
    # everybody has one: it counts rows, or people
    if isinstance(parent, exp.Count | exp.ApproxDistinct):
        return True
    if isinstance(parent, exp.Is):  # in LEFT JOIN: who has no row
        return isinstance(parent.expression, exp.Null)
    if isinstance(parent, exp.In):
        return parent.this is node and parent.args.get("query") is not None
    if isinstance(parent, exp.Group):
        return not shown
    if isinstance(parent, exp.Alias):
        parent = parent.parent
    return parent is scope.node and not shown


def _joins(scope: Scope, node: exp.Expr) -> bool:
    """Whether an equality is a part of ON or WHERE that has to hold."""
    above = node.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    if isinstance(above, exp.Join):
        return True
    return isinstance(above, exp.Where) and above.parent is scope.node
