"""Writes a question about the catalog, whose relations are placed already, as a SELECT for DuckDB.

What PostgreSQL has and DuckDB has not is rewritten node by node: casts to regclass and its kin, arrays in texts,
columns that every table has. Functions that are in no list are refused. `catalog_rows` rewrites what stands in FROM.
"""

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from kgather._guard.functions import may_be_long
from kgather._guard.sql_names import sql_name
from kgather._server.postgres.catalog_lists import (
    FROM_NAME,
    FUNCTIONS,
    HARMLESS,
    JSON_CALLS,
    MACROS,
    SAME_IN_DUCKDB,
    SYSTEM_COLUMNS,
    TO_NAME,
    VALUES,
    VALUES_OF_CALLS,
)
from kgather._server.postgres.catalog_rows import name_groups, order, rows, short_series
from kgather._server.postgres.errors import NOT_SUPPORTED, TOLD, PgError
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.types import TRUTH


def written(tree: exp.Expr, settings: Settings) -> str:
    """The SELECT for the shadow catalog. Raises PgError for a function that is in no list."""
    for source in list(tree.find_all(exp.Table, exp.Unnest)):
        found = rows(source)
        if found is not None:
            source.replace(found)
    for select in list(tree.find_all(exp.Select)):
        name_groups(select)
    for compared in list(tree.find_all(exp.EQ, exp.NEQ)):
        _compare_numbers(compared)
    for cast in list(tree.find_all(exp.Cast)):
        _show_name(cast)
    for shown in _outputs(tree):
        node = shown.unalias().unnest()
        kind = node.to if isinstance(node, exp.Cast) else None
        if not isinstance(kind, exp.ObjectIdentifier) or not _is_name(node.this.unnest()):
            continue
        if str(kind.this).upper() in TO_NAME:
            # What is shown of a name is the name, not the number.
            node.replace(exp.Cast(this=node.copy(), to=kind.copy()))
    order(tree)
    for node in list(tree.walk(bfs=True))[::-1]:  # what is inside comes first
        new = _rewritten(node, settings)
        if new is None:
            continue
        if node is tree:
            tree = new
        else:
            node.replace(new)
    return tree.sql("duckdb", comments=False)


def _outputs(tree: exp.Expr) -> list[exp.Expr]:
    """The columns of the answer."""
    if isinstance(tree, exp.SetOperation):
        return [*_outputs(tree.this), *_outputs(tree.expression)]
    return _outputs(tree.this) if isinstance(tree, exp.Subquery) else list(tree.expressions)


def _rewritten(node: exp.Expr, settings: Settings) -> exp.Expr | None:
    """What a node becomes, None where it stays. Raises PgError for a function that is in no list."""
    if isinstance(node, exp.Func) and may_be_long(node, sql_name(node).lower()):
        raise PgError(NOT_SUPPORTED, TOLD)
    if isinstance(node, exp.Cast) and isinstance(node.to, exp.ObjectIdentifier):
        return _regged(node)
    if isinstance(node, exp.CurrentSchemas) and isinstance(node.this, exp.Boolean) and not node.this.this:
        return _parsed("['main']")  # without those that are searched unasked
    for kind, text in VALUES.items():
        if isinstance(node, kind):
            return _parsed(text)
    if isinstance(node, exp.Any | exp.All):
        listed = _listed(node.this.unnest())
        return type(node)(this=exp.Paren(this=listed)) if listed is not None else None
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY) and (listed := _listed(node.this)) is not None:
        return exp.cast(listed, node.to)
    if isinstance(node, exp.Format):
        form = node.this.copy()
        if isinstance(form, exp.Literal):
            form = exp.Literal.string(re.sub("%[IL]", "%s", form.name))
        return exp.Anonymous(this="printf", expressions=[form, *(each.copy() for each in node.expressions)])
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT) and (zero := _no_function(node)) is not None:
        return zero
    if isinstance(node, exp.EQ) and (same := _same_function(node)) is not None:
        return same
    if isinstance(node, exp.Column) and (told := _of_every_table(node)) is not None:
        return told
    if isinstance(node, exp.Div):
        return _divided(node)
    if isinstance(node, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        return exp.Anonymous(this="unnest", expressions=[short_series(node)])
    if isinstance(node, exp.Anonymous):
        return _called(node, settings)
    if isinstance(node, exp.JSONArrayAgg):
        return _json_list(node.this, node.args.get("order"))
    if isinstance(node, exp.JSONObjectAgg):
        return exp.Anonymous(this="json_group_object", expressions=[each.copy() for each in _pairs(node.expressions)])
    if isinstance(node, exp.JSONObject):
        return exp.Anonymous(this="json_object", expressions=[each.copy() for each in _pairs(node.expressions)])
    if isinstance(node, exp.Func) and type(node).__name__ not in HARMLESS:
        raise PgError(NOT_SUPPORTED, TOLD)
    return None


USERS = frozenset({"user", "current_role"})
"""Words for who is logged in that are parsed as columns."""


def _of_every_table(node: exp.Column) -> exp.Expr | None:
    """The columns that PostgreSQL has in every table: clients look at them for changes, and there are none."""
    name = node.name.lower()
    if name in USERS and not node.table and not node.this.args.get("quoted"):
        return _parsed("kg_user()")
    return _parsed(SYSTEM_COLUMNS[name]) if name in SYSTEM_COLUMNS else None


def _show_name(node: exp.Cast) -> None:
    """A name that is cast to regtype or its kin, and then to text, is shown as the name that PostgreSQL has for it."""
    inner = node.this.unnest()
    if not node.to.is_type(*exp.DataType.TEXT_TYPES) or not isinstance(inner, exp.Cast):
        return
    if isinstance(inner.to, exp.ObjectIdentifier) and _is_name(inner.this.unnest()):
        inner.replace(exp.Cast(this=inner.copy(), to=inner.to.copy()))


def _compare_numbers(node: exp.Binary) -> None:
    """Where both sides are cast to regtype or its kin, numbers are compared: a cast of a number goes."""
    sides = [node.this, node.expression]
    if all(isinstance(side, exp.Cast) and isinstance(side.to, exp.ObjectIdentifier) for side in sides):
        for side in sides:
            if not _is_name(side.this.unnest()):
                side.replace(side.this.copy())


def _same_function(node: exp.EQ) -> exp.Expr | None:
    """A join of pg_proc.oid with a column that holds a function: functions are kept by their names."""
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        both = isinstance(one, exp.Column) and isinstance(other, exp.Column)
        if both and one.name.lower() == "oid" and other.name.lower() in FUNCTIONS:
            return exp.EQ(this=exp.column("proname", table=one.table or None), expression=other.copy())
    return None


def _no_function(node: exp.Binary) -> exp.Expr | None:
    """A function's number compared with 0, which means none: functions are kept by their names, none as -."""
    column, zero = node.this, node.expression
    if not isinstance(column, exp.Column) or column.name.lower() not in FUNCTIONS:
        return None
    if not isinstance(zero, exp.Literal) or zero.name != "0":
        return None
    kind = exp.EQ if isinstance(node, exp.EQ) else exp.NEQ
    return kind(this=column.copy(), expression=exp.Literal.string("-"))


def _called(node: exp.Anonymous, settings: Settings) -> exp.Expr | None:
    name = node.name.lower()
    for each in node.expressions:
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            each.replace(exp.column(each.args["table"].copy()))  # a row, as in f(t.*)
    if name in ("current_setting", "set_config"):
        first = plain(node.expressions[0]) if node.expressions else None
        if first is None and node.expressions and is_null(node.expressions[0]):
            return exp.cast(exp.Null(), "text")
        if first is None:
            raise PgError(NOT_SUPPORTED, TOLD)
        if name == "set_config":
            return node.expressions[1].copy()
        try:
            return exp.Literal.string(settings.get(first))
        except PgError:
            if len(node.expressions) > 1:
                return exp.Null()
            raise
    if name == "all" and len(node.expressions) == 1:
        listed = _listed(node.expressions[0])
        return exp.Anonymous(this="ALL", expressions=[listed]) if listed is not None else None
    if name in JSON_CALLS:
        return exp.Anonymous(this=JSON_CALLS[name], expressions=[each.copy() for each in node.expressions])
    if name == "every":
        return exp.Anonymous(this="bool_and", expressions=[each.copy() for each in node.expressions])
    if name in ("json_agg", "jsonb_agg") and len(node.expressions) == 1:
        return _json_list(node.expressions[0], None)
    if name in VALUES_OF_CALLS:
        return _parsed(VALUES_OF_CALLS[name])
    if name not in MACROS and name not in SAME_IN_DUCKDB:
        raise PgError(NOT_SUPPORTED, TOLD)
    return None


def _divided(node: exp.Div) -> exp.Expr | None:
    """A division as PostgreSQL has it: of whole numbers without a rest."""
    if any(isinstance(one.unnest(), exp.Interval) for one in (node.this, node.expression)):
        return None
    return exp.Anonymous(this="divide", expressions=[node.this.copy(), node.expression.copy()])


def _json_list(values: exp.Expr, order: exp.Expr | None) -> exp.Expr:
    """json_agg: the list of what an aggregate over rows gives, as JSON."""
    if order is not None and not isinstance(values, exp.Order):
        values = exp.Order(this=values.copy(), expressions=[each.copy() for each in order.expressions])
    return exp.Anonymous(this="to_json", expressions=[exp.ArrayAgg(this=values.copy())])


def _pairs(given: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for one in given:
        yield from (one.this, one.expression) if isinstance(one, exp.JSONKeyValue) else (one,)


def _is_name(node: exp.Expr) -> bool:
    """Whether what is cast to regclass is a name, and no number."""
    if isinstance(node, exp.Literal):
        return not node.name.isdigit()
    made = isinstance(node, exp.Anonymous) and node.name.lower() in ("printf", "quote_ident")
    return made or isinstance(node, exp.Concat | exp.DPipe | exp.Null)


def is_null(node: exp.Expr) -> bool:
    """Whether it is NULL, under whatever casts: also a parameter whose value is not known yet."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return isinstance(node, exp.Null)


def plain(node: exp.Expr) -> str | None:
    """The text that a constant is, under whatever casts; None for any other expression."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Literal) else None


def truth(node: exp.Expr) -> bool | None:
    """Whether a constant is true, under whatever casts; None for any other expression."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return TRUTH.get(node.name.lower()) if isinstance(node, exp.Literal) and node.is_string else None


def _listed(node: exp.Expr) -> exp.Array | None:
    """The array that a text as '{a,b}' is, None for any other expression."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Null):
        return exp.Array(expressions=[])
    if not isinstance(node, exp.Literal) or not _ARRAY.fullmatch(node.name):
        return None
    items = [found[0].strip() for found in _ITEM.finditer(node.name[1:-1])]
    return exp.Array(
        expressions=[
            exp.Literal.string(re.sub(r"\\(.)", r"\1", item[1:-1]) if item.startswith('"') else item) for item in items
        ]
    )


_ITEM = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s",{}\\][^",{}\\]*')
_ARRAY = re.compile(rf"\{{\s*(?:(?:{_ITEM.pattern})\s*(?:,\s*(?:{_ITEM.pattern})\s*)*)?\}}")


def _regged(node: exp.Cast) -> exp.Expr:
    """A cast to regclass or its kin: of a name to its number, of a number to its name."""
    kind = str(node.to.this).upper()
    inner = node.this.unnest()
    if kind == "OID":
        of_name = isinstance(inner, exp.Cast) and isinstance(inner.to, exp.ObjectIdentifier)
        number = inner.this if of_name and not _is_name(inner.this.unnest()) else node.this
        return exp.cast(number.copy(), "bigint")
    while isinstance(inner, exp.Cast) and not isinstance(inner.to, exp.ObjectIdentifier):
        inner = inner.this.unnest()
    if _is_name(inner):
        function = FROM_NAME.get(kind)
        return exp.func(function, inner.copy()) if function else inner.copy()
    function = TO_NAME.get(kind)
    if function is None:
        return exp.cast(node.this.copy(), "text")
    number = exp.cast(node.this.copy(), "bigint")
    return exp.func(function, number, *([exp.Null()] if function == "format_type" else []))


NAMES = "kg_names_"
"""What the types of arrays of regclass and its kin begin with, as they are parsed."""


def spell_names(node: exp.Cast) -> None:
    """An array of regclass or its kin, as one of its values; one that is no constant, as texts."""
    of = node.to.expressions[0] if node.to.is_type(exp.DType.ARRAY) and node.to.expressions else None
    kind = of.args.get("kind") if isinstance(of, exp.DataType) else None
    if not isinstance(kind, exp.Identifier) or not kind.name.startswith(NAMES):
        return
    given = node.this.unnest()
    listed = given if isinstance(given, exp.Array) else _listed(given)
    if listed is None:
        node.set("to", exp.DataType.build("text[]"))
        return
    reg = exp.ObjectIdentifier(this=kind.name.removeprefix(NAMES).upper())
    items = [exp.Cast(this=item.copy(), to=reg.copy()) for item in listed.expressions]
    node.replace(exp.Array(expressions=items) if items else exp.cast(exp.Array(expressions=[]), "bigint[]"))


def _parsed(text: str) -> exp.Expr:
    parsed: object = exp.maybe_parse(text, dialect="duckdb")
    assert isinstance(parsed, exp.Expr)
    return parsed
