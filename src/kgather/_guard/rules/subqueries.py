"""Subqueries stand in FROM and in WITH; inside an expression only two do."""

from sqlglot import exp

from kgather._guard.names import Resolved
from kgather._guard.refused import Rule, refused


def subqueries(query: Resolved) -> None:
    """Refuse subqueries inside expressions: all but IN and EXISTS over the privacy unit, and those of public tables in
    queries of public tables."""
    for scope in query.scopes:
        for node in scope.node.walk():
            inner = scope.subqueries.get(id(node))
            if inner is None:
                continue
            if not scope.raw and not inner.protected:
                continue
            if scope.raw and isinstance(node, exp.In | exp.Exists) and inner.protected:
                continue
            allow = "Put it into FROM or WITH; over people there are user IN (SELECT user ...) and EXISTS"
            raise refused(Rule.SUBQUERIES, "A subquery inside an expression", node, allow=allow)
