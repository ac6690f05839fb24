"""Rows of people leave through aggregates only."""

from sqlglot import exp

from kgather._guard.advice import instead_of_aggregate, is_aggregate
from kgather._guard.names import Resolved, Scope, Union, aggregates
from kgather._guard.refused import NOT_PERMITTED, Rule, refused
from kgather._guard.sql_names import sql_name

_ALLOW = "Aggregate them: COUNT, SUM, AVG and so on, with or without GROUP BY"


def raw_rows(query: Resolved) -> None:
    """Refuse rows of one person each on top, in set operations and beside answers; and groups without aggregates."""
    if query.top.raw_rows:
        for node in query.top.node.expressions if isinstance(query.top, Scope) else ():
            call = node.unalias()
            if is_aggregate(call):
                allow = instead_of_aggregate(call, query.catalog.policy)
                raise refused(Rule.AGGREGATES, f"{sql_name(call)} over rows of people", call, allow=allow)
        raise refused(Rule.RAW_ROWS, "The result would be rows of people", allow=_ALLOW, code=NOT_PERMITTED)
    for union in query.unions:
        if union.raw_rows:
            reason = f"{union.word} over rows of people"
            raise refused(Rule.RAW_ROWS, reason, union.node, allow=_ALLOW, code=NOT_PERMITTED)
    for scope in query.scopes:
        if not scope.raw:
            continue
        for source in scope.sources:
            if source.query is not None and not source.raw and _answers(source.query):
                reason = "An answer is joined with rows of people"
                raise refused(Rule.RAW_ROWS, reason, source.node, allow="Aggregate first, then join")
        if scope.aggregated and not scope.raw_rows and query.catalog.policy.mode != "measured":
            parts = [scope.node.args.get(part) for part in ("having", "order")]
            nodes: list[exp.Expr] = [*scope.node.expressions, *(part for part in parts if part is not None)]
            if not any(True for node in nodes for _ in aggregates(node)):
                reason = "GROUP BY without an aggregate lists values"
                raise refused(Rule.RAW_ROWS, reason, scope.node, allow="Add COUNT(*)", code=NOT_PERMITTED)


def _answers(inner: "Scope | Union") -> bool:
    """Whether a query that shows no rows of people makes them into answers."""
    seen: set[int] = set()
    stack = [inner]
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Union):
            stack += one.branches
            continue
        if one.raw:
            return True
        stack += [source.query for source in one.sources if source.query is not None]
    return False
