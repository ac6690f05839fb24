"""DISTINCT lists values, so it is for answers and public tables."""

from kgather._guard.names import Resolved
from kgather._guard.refused import NOT_PERMITTED, Rule, refused


def distinct(query: Resolved) -> None:
    """Refuse DISTINCT over rows of people, unless it is of the privacy unit alone; and DISTINCT ON everywhere."""
    for scope in query.scopes:
        node = scope.node.args.get("distinct")
        if node is None:
            continue
        if node.args.get("on") is not None:
            raise refused(Rule.DISTINCT, "DISTINCT ON", scope.node)
        if scope.raw and not (scope.per_unit and not scope.aggregated):
            allow = "Use GROUP BY with COUNT(*)"
            raise refused(Rule.DISTINCT, "DISTINCT over rows of people", scope.node, allow=allow, code=NOT_PERMITTED)
