"""PostgreSQL's functions that make JSON, as DuckDB's: over answers and public tables, like any function of one row.

json_agg is to_json of a list. A whole row (row_to_json(t), json_agg(t)) becomes a struct of the columns, where the
statement names them: t is a sub-select, a WITH, or a public table.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from kgather._guard.catalog import Catalog
from kgather._guard.labels import UNNAMED, label
from kgather._guard.policy import fold
from kgather._guard.sql_names import sql_name

_ROWS = {
    **dict.fromkeys(("json_build_object", "jsonb_build_object", "json_object"), "json_object"),
    **dict.fromkeys(("json_build_array", "jsonb_build_array", "json_array"), "json_array"),
}
_ONE = frozenset({"to_json", "to_jsonb", "row_to_json", "array_to_json"})
_MANY = frozenset({"json_agg", "jsonb_agg"})
FUNCTIONS = frozenset({"to_json", *_ROWS.values()})
"""What they become."""
_NAME = b"ARROW:extension:name"
EXTENSION = {_NAME: b"arrow.json", b"ARROW:extension:metadata": b""}
"""The metadata of a column of JSON."""


def in_duckdb(tree: exp.Expr, catalog: Catalog) -> None:
    """Rewrite the calls in a statement's tree. What is not known stays, and is refused like any unknown function."""
    calls = [node for node in tree.find_all(exp.Anonymous, exp.JSONObject, exp.JSONArray) if _is_call(node)]
    for call in calls:
        _name_column(call)
    for call in calls:
        _rewrite(call, catalog)


def is_json(node: exp.Expr | None) -> bool:
    """Whether an expression that was rewritten is JSON, as PostgreSQL types it."""
    if isinstance(node, exp.Coalesce | exp.Paren | exp.Alias):
        return is_json(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS


def is_marked(field: pa.Field) -> bool:
    """Whether a column says that it is JSON."""
    return (field.metadata or {}).get(_NAME) == EXTENSION[_NAME]


def typed(schema: pa.Schema, columns: Sequence[int]) -> pa.Schema:
    """A schema in which columns say that they are JSON, as Arrow does: texts with the name of an extension. columns:
    their positions."""
    for at in columns:
        schema = schema.set(at, schema.field(at).with_metadata(EXTENSION))
    return schema


def _is_call(node: exp.Expr) -> bool:
    name, given = _called(node), _arguments(node)
    if _ROWS.get(name) == "json_object" and len(given) % 2:
        return False
    if name in _ROWS:
        return name not in ("json_object", "json_array") or all(
            part in ("expressions", "this") for part, value in node.args.items() if value
        )
    return len(given) == 1 and (name in _ONE or name in _MANY)


def _called(node: exp.Expr) -> str:
    return sql_name(node).lower()


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    given: list[exp.Expr] = []
    for one in node.expressions:
        given += [one.this, one.expression] if isinstance(one, exp.JSONKeyValue) else [one]
    return given


def _name_column(call: exp.Expr) -> None:
    """Give the column that a call stands in its name of PostgreSQL, before it is another call."""
    node = call
    while node.parent is not None and not isinstance(node.parent, exp.Select | exp.Alias):
        node = node.parent
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions" and label(node) != UNNAMED:
        _wrap(node, exp.Alias(alias=exp.to_identifier(label(node), quoted=True)), "this")


def _rewrite(call: exp.Expr, catalog: Catalog) -> None:
    name, given = _called(call), _arguments(call)
    whole = call.parent_select
    given = [_row(one, whole, catalog) for one in given]
    if name in _MANY:
        made: exp.Expr = exp.ArrayAgg(this=given[0])
        call.replace(made)
        while isinstance(made.parent, exp.Filter | exp.Window) and made.arg_key == "this":
            made = made.parent
        _wrap(made, exp.Anonymous(this="to_json"), "expressions")
        return
    call.replace(exp.Anonymous(this=_ROWS.get(name, "to_json"), expressions=given))


def _wrap(node: exp.Expr, around: exp.Expr, part: str) -> None:
    """Put a node into another that takes its place; the node stays the same, so that others may hold it."""
    node.replace(around)
    around.set(part, [node] if part == "expressions" else node)


def _row(node: exp.Expr, whole: exp.Select | None, catalog: Catalog) -> exp.Expr:
    """An argument, with a struct in the place of the name of a row."""
    if isinstance(node, exp.Order | exp.Distinct):
        inner = node.this if isinstance(node, exp.Order) else node.expressions[0]
        row = _row(inner, whole, catalog)
        if row is not inner:
            inner.replace(row)
        return node
    if not isinstance(node, exp.Column) or node.table or not isinstance(node.this, exp.Identifier) or whole is None:
        return node
    sources = dict(_sources(whole, catalog))
    name = fold(node.name)
    columns = sources.get(name)
    if not columns or any(fold(each) == name for listed in sources.values() for each in listed or ()):
        return node
    pairs = [
        exp.PropertyEQ(
            this=exp.to_identifier(each, quoted=True),
            expression=exp.column(exp.to_identifier(each, quoted=True), table=node.this.copy()),
        )
        for each in columns
    ]
    return exp.Struct(expressions=pairs)


def _sources(select: exp.Select, catalog: Catalog) -> Iterator[tuple[str, list[str] | None]]:
    """What a SELECT reads, by its folded name, with its columns; None where the statement does not name them."""
    from_ = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    for source in ([from_.this] if from_ is not None else []) + joined:
        alias = source.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and bool(alias.columns)
        if isinstance(source, exp.Subquery):
            yield fold(source.alias), None if renamed else _columns(source.this)
        elif isinstance(source, exp.Table):
            yield fold(source.alias_or_name), None if renamed else _of_table(source, catalog)


def _of_table(table: exp.Table, catalog: Catalog) -> list[str] | None:
    above = table.parent_select
    while above is not None:
        with_ = above.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            if fold(cte.alias) == fold(table.name) and not cte.args["alias"].columns:
                return _columns(cte.this)
        above = above.parent_select
    info = catalog.table(table.name)
    if info is None or info.protected:
        return None
    return [one.name for one in info.columns.values() if one.role != "hidden"]


def _columns(query: exp.Expr) -> list[str] | None:
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    names = [each.alias_or_name for each in query.expressions]
    if not all(names) or "*" in names or len({fold(name) for name in names}) < len(names):
        return None
    return names
