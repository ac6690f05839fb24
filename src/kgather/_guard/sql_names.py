"""What the parts of a statement are called in SQL. The parser's own names of them mean nothing to an analyst."""

import re
from collections.abc import Mapping

from sqlglot import ErrorLevel, exp

_CALL = re.compile(r"([A-Z_][A-Z0-9_]*)(?:\(|$)")
_WORDS: Mapping[str, str] = {
    "attimezone": "AT TIME ZONE",
    "groupconcat": "STRING_AGG",
    "literal": "A constant",
    "order": "ORDER BY",
    "rawstring": "A constant",
    "star": "*",
    "tablealias": "An alias",
    "tuple": "A tuple",
    "window": "OVER",
}
"""Of parts whose word neither the text nor the generator tells."""


def sql_name(node: exp.Expr) -> str:
    """The word of SQL for a part of a statement, in upper case: as the analyst wrote it, where that is known."""
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and isinstance(node.this, exp.Func):
        node = node.this  # the parser puts it around functions that are written without
    if isinstance(node, exp.Func) and node.key not in _WORDS:
        start, end = node.meta.get("start"), node.meta.get("end", -1)
        text = str(node.root().meta.get("text", ""))[start : end + 1] if start is not None else ""
        call = _CALL.match(text.upper()) or _CALL.match(_generated(node))
        if call is not None:
            return call[1]
    if isinstance(node, exp.Binary):
        one, other = exp.to_identifier("kg_one"), exp.to_identifier("kg_other")
        between = re.fullmatch(r"kg_one (.+) kg_other", _generated(type(node)(this=one, expression=other)))
        if between is not None:
            return between[1].upper()
    return _WORDS.get(node.key, node.key.upper())


def part_name(part: str) -> str:
    """The word of SQL for a part that the parser keeps under a name of its own."""
    return _PARTS.get(part, part.strip("_").upper())


_PARTS: Mapping[str, str] = {
    "columns": "names of columns",
    "except_": "EXCLUDE",
    "locks": "FOR UPDATE",
    "pivots": "PIVOT",
    "when": "AT",
    "windows": "WINDOW",
}


def said_in_sql(reason: str, node: exp.Expr | None) -> str:
    """A reason with SQL's word at its beginning, where the parser's name of a part of the node stands there."""
    first, space, rest = reason.partition(" ")
    for part in node.walk() if node is not None and first.isupper() else ():
        if part.key.upper() == first:
            word = sql_name(part)
            return reason if reason.startswith(f"{word} ") else f"{word}{space}{rest}"
    return reason


def _generated(node: exp.Expr) -> str:
    return node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE, comments=False)
