"""Subqueries that group rows by the row that they belong to, such as SELECT AVG(total) FROM (SELECT order_id,
SUM(amount) AS total FROM lines GROUP BY order_id): sums over all rows, and how many rows they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from kgather._guard.names import Name, Resolved, Scope, base_column, group_keys
from kgather._guard.policy import fold
from kgather._guard.scopes import counts_all

_INNER = ("having", "qualify", "limit", "offset", "distinct", "order", "with_")


@dataclass(frozen=True)
class _Grouped:
    """A subquery that groups by a row. key: what names the row. values: by folded name, what its columns are made of.
    sums: those of them that are sums and counts."""

    scope: Scope
    key: exp.Expr
    values: Mapping[str, exp.Expr]
    sums: frozenset[str]


def by_rows(query: Resolved) -> bool:
    """Write such subqueries and the SELECT above them as one, in the tree of a statement; whether there were any, so
    that its names are to be resolved again."""
    for scope in query.scopes:
        found = _grouped(scope)
        if found is not None and _fits(scope, found):
            _rewrite(scope, found)
            return True
    return False


def _grouped(scope: Scope) -> _Grouped | None:
    """The subquery that a SELECT is about, if it groups by a row of people."""
    inner = scope.sources[0].query if len(scope.sources) == 1 else None
    if not isinstance(inner, Scope) or not inner.raw or inner.per_unit or not inner.aggregated:
        return None
    if any(inner.node.args.get(part) is not None for part in _INNER):
        return None
    keys = [(key, base_column(inner, key)) for key in group_keys(inner)]
    named = [(key, of) for key, of in keys if of is not None and of.column.role == "key"]
    if len(named) != 1:
        return None
    ((key, row),) = named
    parent = row.table.parent
    is_parents = parent is not None and fold(row.column.name) in {fold(own) for own, _ in parent.keys}
    owner = parent.table if parent is not None and is_parents else row.table
    for other, of in keys:  # each has one value in a row: a column of it, or of the person
        if other is not key and (of is None or not (of.table is owner or of.table.grain == "unit")):
            return None
    values, sums = {}, set()
    for output in inner.outputs:
        if output.node is None:
            return None
        made = output.node.unalias().unnest()
        values[output.key] = made
        if isinstance(made, exp.Count | exp.Sum) and not isinstance(made.this, exp.Distinct):
            sums.add(output.key)
        elif base_column(inner, made) not in [of for _, of in keys]:
            return None
    return _Grouped(inner, key, values, frozenset(sums))


def _fits(scope: Scope, found: _Grouped) -> bool:
    """Whether a SELECT reads nothing of the sums in a subquery but their sums, means and number."""
    if not scope.aggregated or scope.subqueries:
        return False
    for node in scope.node.find_all(exp.AggFunc):
        if isinstance(node.parent, exp.Filter | exp.Window | exp.WithinGroup) or isinstance(node.this, exp.Distinct):
            return False
    names = _names(scope)
    for at, name in names.items():
        if fold(name.column) in found.sums and not isinstance(_above(scope, at), exp.Avg | exp.Sum | exp.Count):
            return False
    return bool(names)


def _names(scope: Scope) -> dict[int, Name]:
    """The columns of the subquery that a SELECT reads, by their nodes."""
    source = scope.sources[0]
    return {at: name for at, name in scope.names.items() if name.source is source}


def _above(scope: Scope, at: int) -> exp.Expr | None:
    node = next((one for one in scope.node.find_all(exp.Column) if id(one) == at), None)
    above = node.parent if node is not None else None
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


def _rewrite(scope: Scope, found: _Grouped) -> None:
    node, inner = scope.node, found.scope.node
    names = _names(scope)
    for output, written in zip(scope.outputs, list(node.expressions), strict=False):
        if not isinstance(written, exp.Alias) and not isinstance(written, exp.Star):
            named = exp.Alias(this=exp.Null(), alias=exp.to_identifier(output.label, quoted=True))
            written.replace(named)
            named.set("this", written)
    for call in [*node.find_all(exp.AggFunc)]:
        _rewrite_call(call, names, found)
    for column in [*node.find_all(exp.Column)]:
        name = names.get(id(column))
        if name is not None:
            column.replace(found.values[fold(name.column)].copy())
    node.set("from_", inner.args["from_"].copy())
    node.set("joins", [join.copy() for join in inner.args.get("joins") or []])
    conditions = [one.args["where"].this.copy() for one in (inner, node) if one.args.get("where") is not None]
    if conditions:
        node.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))


def _rewrite_call(call: exp.Expr, names: Mapping[int, Name], found: _Grouped) -> None:
    of = call.this.unnest() if call.this is not None else None
    name = names.get(id(of))
    everything = isinstance(call, exp.Count) and counts_all(call)
    value = found.values.get(fold(name.column)) if name is not None and fold(name.column) in found.sums else None
    if everything or (isinstance(call, exp.Count) and name is not None and value is None):
        call.replace(_rows(found))
    elif value is not None:
        there = value.this if isinstance(value, exp.Sum) else None
        if isinstance(call, exp.Sum):
            call.replace(value.copy())
        elif isinstance(call, exp.Count):
            call.replace(_rows(found, there))
        else:
            whole = exp.Nullif(this=_rows(found, there), expression=exp.Literal.number(0))
            mean = exp.Cast(this=value.copy(), to=exp.DataType.build("double"))
            call.replace(exp.Paren(this=exp.Div(this=mean, expression=whole, typed=False, safe=False)))


def _rows(found: _Grouped, there: exp.Expr | None = None) -> exp.Expr:
    """How many rows there are; there: only those of which a value is one."""
    counted = exp.Count(this=exp.Distinct(expressions=[found.key.copy()]))
    if there is None:
        return counted
    known = exp.Not(this=exp.Is(this=there.copy(), expression=exp.Null()))
    return exp.Filter(this=counted, expression=exp.Where(this=known))
