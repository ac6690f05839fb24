"""LIMIT picks rows: of answers, never of people."""

from sqlglot import exp

from kgather._guard.names import Resolved, Scope, Union
from kgather._guard.refused import NOT_PERMITTED, Rule, refused

_DIGITS = 9


def limit(query: Resolved) -> None:
    """Refuse LIMIT and OFFSET that are no whole number, or that cut rows of people."""
    every: list[Scope | Union] = [*query.scopes, *query.unions]
    for query_ in every:
        for part in ("limit", "offset"):
            node = query_.node.args.get(part)
            if node is None:
                continue
            number = node.expression
            if not isinstance(number, exp.Literal) or not number.this.isdigit() or len(number.this) > _DIGITS:
                raise refused(Rule.LIMIT, f"{part.upper()} that is no whole number", node)
            if query_.raw_rows:
                raise refused(Rule.LIMIT, f"{part.upper()} over rows of people", query_.node, code=NOT_PERMITTED)
