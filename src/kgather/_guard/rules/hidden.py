"""Hidden columns are nowhere."""

from sqlglot import exp

from kgather._guard.names import Resolved, base_column
from kgather._guard.refused import NOT_PERMITTED, Rule, refused


def hidden(query: Resolved) -> None:
    """Refuse every mention of a column that is hidden or in no role."""
    for scope in query.scopes:
        for node in scope.node.find_all(exp.Column):
            if id(node) not in scope.names:
                continue
            found = base_column(scope, node)
            if found is not None and found.column.role == "hidden":
                table, column = found
                raise refused(
                    Rule.HIDDEN,
                    f"{table.name}.{column.name} is hidden",
                    node,
                    allow=f"A role in tables.{table.name} of the policy would show it",
                    code=NOT_PERMITTED,
                )
