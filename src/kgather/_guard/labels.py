"""The names that PostgreSQL gives to columns without an alias, by the rules of its parser (FigureColname).

Clients find columns by these names. They never hold a value, so they are the same for all values of a parameter.
"""

import re
from collections.abc import Mapping

from sqlglot import exp

from kgather._guard.sql_names import sql_name

UNNAMED = "?column?"
_CASE = "case"

_LABELS: Mapping[type[exp.Expr], str] = {
    exp.CurrentSchemas: "current_schemas",
    exp.CurrentSchema: "current_schema",
    exp.CurrentVersion: "version",
    exp.CurrentDatabase: "current_database",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentRole: "current_role",
    exp.Case: _CASE,
    exp.If: _CASE,
    exp.Array: "array",
    exp.Exists: "exists",
    exp.Interval: "interval",
    exp.GroupConcat: "string_agg",
    exp.VariancePop: "var_pop",
    exp.Tuple: "row",
    exp.Initcap: "initcap",
    exp.JSONArrayAgg: "json_agg",
    exp.StrPosition: "position",
}
"""What PostgreSQL calls a column that is such a node; the first that fits."""

_NO_CALLS = (exp.And, exp.Or, exp.Xor, exp.Any, exp.All, exp.Not, exp.Binary, exp.Case, exp.If)
"""What the parser keeps as functions, and SQL writes as operators."""

_TYPES: Mapping[str, str] = {
    "boolean": "bool",
    "bigint": "int8",
    "int": "int4",
    "integer": "int4",
    "smallint": "int2",
    "double": "float8",
    "double precision": "float8",
    "real": "float4",
    "float": "float4",
    "decimal": "numeric",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    '"char"': "char",
}


def label(node: exp.Expr) -> str:
    """The name of a column of a SELECT, as PostgreSQL has it."""
    if isinstance(node, exp.Alias):
        return _name(node.args["alias"])
    return _found(node) or UNNAMED


def _found(node: exp.Expr) -> str:
    """A name, empty where there is none."""
    if isinstance(node, exp.Paren | exp.Filter | exp.Window | exp.WithinGroup | exp.Collate):
        return _found(node.this)
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return _found(node.this)
    if isinstance(node, exp.Bracket):
        return _found(node.this)
    if isinstance(node, exp.Column | exp.Dot):
        return _name(node.this if isinstance(node, exp.Column) else node.expression)
    if isinstance(node, exp.Cast):
        inner = _found(node.this)
        return inner if inner and not _weak(node.this) else _type(node.to)
    if isinstance(node, exp.Subquery):
        return _of_subquery(node)
    if isinstance(node, exp.Case | exp.If):
        last = node.args.get("default" if isinstance(node, exp.Case) else "false")
        inner = _found(last) if last is not None and not _weak(last) else ""
        return inner or _CASE
    if isinstance(node, exp.Func | exp.Mod) and (called := _called(node)):
        return called
    for kind, name in _LABELS.items():
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Func) and not isinstance(node, _NO_CALLS):
        return sql_name(node).lower()
    return ""


def _called(node: exp.Func | exp.Mod) -> str:
    """The function of a call that the parser has a node of its own for, as it was written; empty where the name of the
    node says it."""
    if isinstance(node, exp.Trim) and node.meta.get("start") is None:
        return _TRIMS.get(str(node.args.get("position") or "").upper(), "btrim")
    if isinstance(node, exp.Extract) and _DATE_PART.search(_before(node)):
        return "date_part"
    if isinstance(node, exp.TimeToStr) and node.meta.get("start") is None:
        return "to_char"  # which it was before it was written out
    if isinstance(node, exp.Mod):
        return "" if node.meta.get("start") is None else "mod"
    if isinstance(node, exp.Trim | exp.StrPosition | exp.Pow) and node.meta.get("start") is not None:
        return sql_name(node).lower()
    return ""


_TRIMS: Mapping[str, str] = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_DATE_PART = re.compile(r"date_part\s*\(\s*'[^']*'\s*,\s*[(\s]*$", re.IGNORECASE)


def _before(node: exp.Expr) -> str:
    """The text before the first part of a node."""
    starts = [part.meta["start"] for part in node.walk() if part.meta.get("start") is not None]
    return str(node.root().meta.get("text", ""))[: min(starts)] if starts else ""


def _weak(node: exp.Expr) -> bool:
    """Whether a node's name is that of its kind only, which gives way to one around it."""
    if isinstance(node, exp.Paren):
        return _weak(node.this)
    if isinstance(node, exp.Cast):
        return _weak(node.this) or not _found(node.this)
    if isinstance(node, exp.Case | exp.If):
        return _found(node) == _CASE
    return False


def _of_subquery(node: exp.Subquery) -> str:
    inner = node.this
    while isinstance(inner, exp.SetOperation | exp.Subquery):
        inner = inner.this
    first = inner.expressions[0] if isinstance(inner, exp.Select) and inner.expressions else None
    return "" if first is None or isinstance(first, exp.Star) else label(first).replace(UNNAMED, "")


def _type(to: exp.DataType) -> str:
    name = to.sql("postgres").lower().partition("(")[0].strip()
    name = name.removesuffix("[]")  # arrays are named as their elements
    return _TYPES.get(name, name)


def _name(node: exp.Expr) -> str:
    return node.name if node.args.get("quoted") else node.name.lower()
