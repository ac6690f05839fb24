"""Subqueries that ask about people for each row of an answer or a public table, such as SELECT name, (SELECT COUNT(*)
FROM people WHERE people.city = cities.city) FROM cities: one question by the key, of which each row takes its group."""

from collections.abc import Iterator

from sqlglot import exp

from kgather._guard.names import Resolved, Scope
from kgather._guard.sql_names import sql_name

_PARTS = ("group", "having", "qualify", "limit", "offset", "order", "distinct", "with_")


def by_keys(query: Resolved) -> bool:
    """Rewrite such subqueries in the tree of a statement; whether there were any, so that its names are to be resolved
    again."""
    found = False
    for scope in query.scopes:
        for node in [*scope.node.find_all(exp.Select)]:
            inner = scope.subqueries.get(id(node)) or scope.subqueries.get(id(node.parent))
            if isinstance(inner, Scope) and inner.node is node and not scope.raw and _is_by_keys(scope, inner):
                found |= _rewrite(scope, inner)
    return found


def _is_by_keys(scope: Scope, inner: Scope) -> bool:
    node = inner.node
    plain = not any(node.args.get(part) is not None for part in _PARTS) and len(node.expressions) == 1
    above = node.parent.parent if isinstance(node.parent, exp.Subquery) else node.parent
    value = isinstance(node.parent, exp.Subquery) and not isinstance(above, exp.From | exp.Join | exp.In | exp.Exists)
    return plain and value and inner.raw and inner.aggregated and bool(_outer(scope, inner))


def _outer(scope: Scope, inner: Scope) -> set[int]:
    """The names of a subquery that are columns of the query around it."""
    return {at for at, name in inner.names.items() if name.scope is scope}


def _equalities(node: exp.Expr) -> Iterator[exp.Expr]:
    stack = [node]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.And):
            stack += [one.expression, one.this]
        else:
            yield one


def _rewrite(scope: Scope, inner: Scope) -> bool:
    """Make a subquery one that groups by what equals columns of the query around, and choose the group above it."""
    node, outer = inner.node, _outer(scope, inner)
    where = node.args.get("where")
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    others: list[exp.Expr] = []
    for part in _equalities(where.this) if where is not None else ():
        sides = (part.this.unnest(), part.expression.unnest()) if isinstance(part, exp.EQ) else ()
        around = [one for one in sides if id(one) in outer]
        own = [one for one in sides if isinstance(one, exp.Column) and id(one) in inner.names and one not in around]
        if len(around) == 1 and len(own) == 1 and id(own[0]) not in outer:
            pairs.append((own[0], around[0]))
        else:
            others.append(part)
    taken = {id(one) for _, one in pairs}
    if not pairs or outer - taken:
        return False
    (value,) = node.expressions
    value = value.unalias()
    selected = [exp.Alias(this=value.copy(), alias=exp.to_identifier("kg_value"))]
    selected += [
        exp.Alias(this=own.copy(), alias=exp.to_identifier(f"kg_key_{at}")) for at, (own, _) in enumerate(pairs)
    ]
    grouped = node.copy()
    grouped.set("expressions", selected)
    grouped.set("where", exp.Where(this=exp.and_(*(one.copy() for one in others), copy=False)) if others else None)
    grouped.set("group", exp.Group(expressions=[own.copy() for own, _ in pairs]))
    chosen = [
        exp.EQ(this=exp.column(f"kg_key_{at}", table="kg_by_key"), expression=around.copy())
        for at, (_, around) in enumerate(pairs)
    ]
    alias = exp.TableAlias(this=exp.to_identifier("kg_by_key"))
    one = exp.Select(
        expressions=[exp.column("kg_value", table="kg_by_key")],
        from_=exp.From(this=exp.Subquery(this=grouped, alias=alias)),
        where=exp.Where(this=exp.and_(*chosen, copy=False)),
    )
    made: exp.Expr = exp.Subquery(this=one)
    if isinstance(value.unnest(), exp.Count | exp.CountIf):  # of no row
        made = exp.Coalesce(this=made, expressions=[exp.Literal.number(0)])
    label = sql_name(value) if isinstance(value, exp.Func) else ""
    parent = node.parent
    assert isinstance(parent, exp.Subquery)
    if isinstance(parent.parent, exp.Select) and label:
        made = exp.Alias(this=made, alias=exp.to_identifier(parent.sql("duckdb", comments=False).lower(), quoted=True))
    parent.replace(made)
    return True
