"""Subqueries that group rows by the row that they belong to, such as SELECT AVG(total) FROM (SELECT order_id,
SUM(amount) AS total FROM lines GROUP BY order_id): sums over all rows, and how many rows they belong to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from kgather._guard.names import Name, Resolved, Scope, base_column, group_keys
from kgather._guard.policy import fold
from kgather._guard.ranked import is_histogram
from kgather._guard.scopes import counts_all

_INNER = frozenset(("kind", "expressions", "from_", "joins", "where", "group"))
"""What the subquery may be made of."""
_CHOICES = ("where", "group", "having", "qualify", "order")
"""The parts of the SELECT above that read the subquery, beside what it shows."""
_SETS = (exp.Grouping, exp.GroupingId)


@dataclass(frozen=True)
class _Grouped:
    """A subquery that groups by a row. key: what names the row. values: by folded name, what its columns are made of.
    sums: those of them that are sums and counts. All without aliases of the subquery."""

    scope: Scope
    key: exp.Expr
    values: Mapping[str, exp.Expr]
    sums: frozenset[str]


def by_rows(query: Resolved) -> bool:
    """Write one such subquery and the SELECT above it as one, in the tree of a statement; whether there was any, so
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
    if any(value for part, value in inner.node.args.items() if part not in _INNER) or _has_margins(inner.node):
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
        made = _without_aliases(inner, output.node)
        values[output.key] = made
        if isinstance(made, exp.Count | exp.Sum) and not isinstance(made.this, exp.Distinct):
            sums.add(output.key)
        elif base_column(inner, output.node) not in [of for _, of in keys]:
            return None
    if len(values) < len(inner.outputs):
        return None
    return _Grouped(inner, _without_aliases(inner, key), values, frozenset(sums))


def _has_margins(node: exp.Select) -> bool:
    group = node.args.get("group")
    return group is not None and any(isinstance(n, exp.Rollup | exp.Cube | exp.GroupingSets) for n in group.expressions)


def _without_aliases(scope: Scope, node: exp.Expr) -> exp.Expr:
    """A copy of an expression in which no name is an alias of its SELECT, and each column names its table: so it means
    the same in another SELECT over the same tables."""
    made = exp.Paren(this=node.unalias().unnest().copy())
    pairs = zip([*node.unalias().unnest().find_all(exp.Column)], [*made.this.find_all(exp.Column)], strict=True)
    for own, copied in pairs:
        name = scope.names.get(id(own))
        if name is not None and name.output is not None and name.output.node is not None:
            copied.replace(exp.Paren(this=_without_aliases(scope, name.output.node)))
        elif name is not None and name.source is not None and name.source.alias and not copied.args.get("table"):
            copied.set("table", exp.to_identifier(name.source.alias, quoted=True))
    return made.this.unnest()


def _fits(scope: Scope, found: _Grouped) -> bool:
    """Whether a SELECT reads nothing of the sums in a subquery but their sums, means and number, and nothing of it
    that another number of rows would change."""
    if not scope.aggregated or scope.subqueries or any(output.node is None for output in scope.outputs):
        return False
    if any(name.scope is not scope for name in scope.names.values()) or not _same_tables(scope, found.scope):
        return False
    names = _names(scope)
    if not all(_is_known(node, names, found) for node in _own(scope) if isinstance(node, exp.AggFunc | exp.Anonymous)):
        return False
    return all(
        fold(name.column) not in found.sums or isinstance(_above(scope, at), exp.Avg | exp.Sum | exp.Count)
        for at, name in names.items()
    )


def _own(scope: Scope) -> Iterator[exp.Expr]:
    """The nodes of a SELECT but those of its FROM."""
    chosen = [of for part in _CHOICES if (of := scope.node.args.get(part)) is not None]
    for of in [*scope.node.expressions, *chosen]:
        yield from of.walk()


def _is_known(call: exp.Expr, names: Mapping[int, Name], found: _Grouped) -> bool:
    """Whether an aggregate can be written over the rows of the subquery itself."""
    if isinstance(call, exp.Anonymous):
        return not is_histogram(call)
    if isinstance(call, _SETS):
        return True
    if isinstance(call.parent, exp.Filter | exp.Window | exp.WithinGroup) or isinstance(call.this, exp.Distinct):
        return False
    if isinstance(call, exp.Count) and counts_all(call):
        return True
    name = names.get(id(call.this.unnest())) if call.this is not None else None
    if name is None or call.expressions:
        return False
    if isinstance(call, exp.Sum | exp.Avg):
        return fold(name.column) in found.sums
    return isinstance(call, exp.Count) or (isinstance(call, exp.Min | exp.Max) and fold(name.column) not in found.sums)


def _same_tables(scope: Scope, inner: Scope) -> bool:
    """Whether the tables of a subquery have the same names in the SELECT above it: a query of WITH may hide one."""
    here, there = _seen(scope.node), _seen(inner.node)
    names = {fold(table.name) for table in inner.node.find_all(exp.Table) if table.args.get("db") is None}
    return all(here.get(name) is there.get(name) for name in names)


def _seen(node: exp.Expr) -> dict[str, exp.Expr]:
    """The queries of WITH that a SELECT sees, by their folded names."""
    seen: dict[str, exp.Expr] = {}
    passed: set[int] = set()
    above: exp.Expr | None = node
    while above is not None:
        with_ = above.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if id(cte) in passed:  # it sees those before it
                break
            seen.setdefault(fold(cte.alias), cte)
        passed.add(id(above))
        above = above.parent
    return seen


def _names(scope: Scope) -> dict[int, Name]:
    """The columns of the subquery that a SELECT reads, by their nodes."""
    source = scope.sources[0]
    return {at: name for at, name in scope.names.items() if name.source is source}


def _above(scope: Scope, at: int) -> exp.Expr | None:
    node = next((one for one in _own(scope) if id(one) == at), None)
    above = node.parent if node is not None else None
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


def _rewrite(scope: Scope, found: _Grouped) -> None:
    node, inner = scope.node, found.scope.node
    names = _names(scope)
    parts = {part: _written(scope, of, names, found) for part in _CHOICES if (of := node.args.get(part)) is not None}
    outputs = [
        (_written(scope, output.node, names, found), output) for output in scope.outputs if output.node is not None
    ]
    node.set("from_", inner.args["from_"].copy())
    node.set("joins", [join.copy() for join in inner.args.get("joins") or []])
    node.set(
        "expressions",
        [exp.Alias(this=made, alias=exp.to_identifier(output.label, quoted=True)) for made, output in outputs],
    )
    for part, made in parts.items():
        node.set(part, made)
    chosen = inner.args.get("where")
    if chosen is not None:
        conditions = [_without_aliases(found.scope, chosen.this)]
        conditions += [node.args["where"].this] if node.args.get("where") is not None else []
        node.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))


def _written(scope: Scope, node: exp.Expr, names: Mapping[int, Name], found: _Grouped) -> exp.Expr:
    """A copy of an expression over the subquery, as one over the subquery's own tables. Without aliases, which could
    be columns of those; in ORDER BY an alias is what is meant."""
    root = exp.Paren(this=node.unalias().copy())
    for own, made in zip([*node.unalias().walk()], [*root.this.walk()], strict=True):
        name = scope.names.get(id(own))
        if isinstance(own, exp.AggFunc) and not isinstance(own, _SETS):
            _rewrite_call(own, made, names, found)
        elif name is not None and id(own) in names:
            made.replace(found.values[fold(name.column)].copy())
        elif (
            name is not None
            and name.output is not None
            and name.output.node is not None
            and own.find_ancestor(exp.Order, exp.Select) is scope.node
        ):
            made.replace(exp.Paren(this=_written(scope, name.output.node, names, found)))
    return root.this


def _rewrite_call(call: exp.Expr, made: exp.Expr, names: Mapping[int, Name], found: _Grouped) -> None:
    """Replace an aggregate over the subquery by one over its rows. made: the copy that is replaced."""
    if isinstance(call, exp.Count) and counts_all(call):
        made.replace(_rows(found))
        return
    name = names[id(call.this.unnest())]
    value = found.values[fold(name.column)]
    if fold(name.column) not in found.sums:
        if isinstance(call, exp.Count):
            made.replace(_rows(found, None if value == found.key else value))
        else:  # the least and the greatest value are the same over more rows
            made.set("this", value.copy())
        return
    there = value.this if isinstance(value, exp.Sum) else None
    if isinstance(call, exp.Sum):
        made.replace(value.copy())
    elif isinstance(call, exp.Count):
        made.replace(_rows(found, there))
    else:
        whole = exp.Nullif(this=_rows(found, there), expression=exp.Literal.number(0))
        mean = exp.Cast(this=value.copy(), to=exp.DataType.build("double"))
        made.replace(exp.Paren(this=exp.Div(this=mean, expression=whole, typed=False, safe=False)))


def _rows(found: _Grouped, there: exp.Expr | None = None) -> exp.Expr:
    """How many rows there are; there: only those of which a value is one."""
    counted = exp.Count(this=exp.Distinct(expressions=[found.key.copy()]))
    if there is None:
        return counted
    known = exp.Not(this=exp.Is(this=there.copy(), expression=exp.Null()))
    return exp.Filter(this=counted, expression=exp.Where(this=known))
