"""What PostgreSQL and DuckDB do differently about the rows of a SELECT: functions in FROM, names in GROUP BY, and the
order of rows that nobody asked for."""

from sqlglot import exp

from kgather._guard import series
from kgather._guard.labels import label
from kgather._server.postgres.errors import NOT_SUPPORTED, TOLD, PgError

_TABLE_MACROS = frozenset(
    {"pg_get_keywords", "pg_show_all_settings", "pg_available_extensions", "pg_available_extension_versions"}
)
"""Functions that are tables in the shadow catalog, too."""


def rows(node: exp.Expr) -> exp.Expr | None:
    """A function in FROM, as a SELECT of it: DuckDB has few functions there, and names their columns in its own way.
    None for what is none."""
    call = node.this if isinstance(node, exp.Table) else node
    if not isinstance(call, exp.Func | exp.Unnest) or not isinstance(node.parent, exp.From | exp.Join):
        return None
    if isinstance(call, exp.Anonymous) and call.name.lower() in _TABLE_MACROS:
        return None
    alias = node.args.get("alias")
    named = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    table = alias.name if isinstance(alias, exp.TableAlias) and alias.this is not None else _name(call)
    columns = [_unnested(each) for each in call.expressions] if isinstance(call, exp.Unnest) else [_set_of(call)]
    offset = node.args.get("offset")
    ordinal = bool(offset or node.args.get("ordinality"))
    if ordinal:
        first = call.expressions[0] if isinstance(call, exp.Unnest) else call
        columns.append(_positions(first))
        if isinstance(offset, exp.Identifier) and len(named) < len(columns):
            named.append(offset.name)
    names = named or [table] * (len(columns) - ordinal)
    names += ["ordinality"] if ordinal and len(names) < len(columns) else []
    listed = [exp.alias_(column, name, quoted=True) for column, name in zip(columns, names, strict=False)]
    return exp.Subquery(this=exp.Select(expressions=listed), alias=exp.TableAlias(this=exp.to_identifier(table)))


def name_groups(select: exp.Select) -> None:
    """Where a column of GROUP BY or ORDER BY is named as a table, DuckDB takes it for the table's rows. PostgreSQL
    takes it for the column of the result, which is written here by its number."""
    tables = {str(table.alias_or_name).lower() for table in select.find_all(exp.Table, exp.Subquery)}
    places = {each.alias.lower(): at for at, each in enumerate(select.expressions, 1) if each.alias}
    for part in ("group", "order"):
        for key in select.args[part].expressions if select.args.get(part) is not None else ():
            node = key.this if isinstance(key, exp.Ordered) else key
            if isinstance(node, exp.Column) and not node.table and node.name.lower() in tables & set(places):
                node.replace(exp.Literal.number(places[node.name.lower()]))


def order(tree: exp.Expr) -> None:
    """Columns come in their order, as they do in PostgreSQL, also to clients that do not ask for it."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(one) for one in ("order", "group", "distinct", "having")):
        return
    if any(node.parent_select is tree for node in tree.find_all(exp.AggFunc)):
        return
    from_ = tree.args.get("from_")
    sources = [from_.this] if from_ is not None else []
    sources += [join.this for join in tree.args.get("joins") or ()]
    for source in sources:
        if isinstance(source, exp.Table) and source.name == "pg_attribute":
            keys = [exp.column(one, table=source.alias_or_name) for one in ("attrelid", "attnum")]
            tree.order_by(*keys, copy=False)
            return


def _name(call: exp.Expr) -> str:
    return "unnest" if isinstance(call, exp.Unnest) else label(call)


def _unnested(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="unnest", expressions=[node.copy()])


def _positions(values: exp.Expr) -> exp.Expr:
    """1, 2, ... as many as an array has values."""
    length = exp.Anonymous(this="len", expressions=[values.copy()])
    end = exp.Add(this=length, expression=exp.Literal.number(1))
    return _unnested(exp.Anonymous(this="range", expressions=[exp.Literal.number(1), end]))


def short_series(call: exp.GenerateSeries) -> exp.Expr:
    """A series that is made only if it is short: DuckDB makes all of it at once, whatever its limit of memory is.
    Raises PgError where it is long, or where nothing says how long one of dates is."""
    start, end, step = (call.args.get(name) for name in ("start", "end", "step"))
    many = series.length(call)
    if start is None or end is None or (many is not None and many > series.LONGEST):
        raise PgError(NOT_SUPPORTED, TOLD)
    stop = end.copy()
    if many is None:
        if step is not None and not (isinstance(step.unnest(), exp.Literal | exp.Neg) and not step.unnest().is_string):
            raise PgError(NOT_SUPPORTED, TOLD)
        far = exp.GT(
            this=exp.Abs(this=exp.Sub(this=exp.Paren(this=end.copy()), expression=exp.Paren(this=start.copy()))),
            expression=exp.Literal.number(series.LONGEST),
        )
        stop = exp.Case(
            ifs=[exp.If(this=far, true=exp.Anonymous(this="error", expressions=[exp.Literal.string("long")]))],
            default=end.copy(),
        )
    given = [start.copy(), stop, *([step.copy()] if step is not None else [])]
    return exp.Anonymous(this="generate_series", expressions=given)


_DIGITS = 10
"""Numbers with fewer fit into an integer."""


def _set_of(call: exp.Expr) -> exp.Expr:
    """A function that gives rows, as one that gives an array, unnested; any other as it is."""
    if isinstance(call, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        parts = [call.args[name] for name in ("start", "end", "step") if call.args.get(name) is not None]
        made = _unnested(short_series(call))
        whole = all(isinstance(part.unnest(), exp.Literal) and part.unnest().is_int for part in parts)
        return exp.cast(made, "int") if whole and all(len(part.name) < _DIGITS for part in parts) else made
    if isinstance(call, exp.Anonymous) and call.name.lower() == "generate_subscripts":
        return _positions(call.expressions[0])
    return call.copy()
