"""Margins: totals beside the groups that they are the totals of."""

from sqlglot import exp

from kgather._guard.names import Resolved
from kgather._guard.refused import NOT_PERMITTED, Rule, refused


def margins(query: Resolved) -> None:
    """Refuse ROLLUP, CUBE and GROUPING SETS over rows of people, unless the policy says margins: true."""
    for scope in query.scopes:
        group = scope.node.args.get("group")
        if group is None or not scope.raw or query.catalog.policy.margins:
            continue
        for node in group.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                name = {"rollup": "ROLLUP", "cube": "CUBE"}.get(node.key, "GROUPING SETS")
                raise refused(
                    Rule.MARGINS,
                    f"{name} over rows of people",
                    node,
                    allow="margins: true in the policy would allow it",
                    code=NOT_PERMITTED,
                )
