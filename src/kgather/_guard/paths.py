"""Columns that are a part of another: of a STRUCT, a MAP or JSON, by a path that the policy declares.

A path is written with points, as in artifacts: ["info.city"]. What is read from JSON is a text, unless the policy's
types say another type; what is no value of that is missing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.policy import fold
from kgather._sql_text import literal


class Path(NamedTuple):
    """A part of a column: its type, and SQL of its value."""

    type: str
    source: str


def path_of(name: str, columns: Mapping[str, str], types: Mapping[str, str]) -> Path | None:
    """What a dotted name stands for, None where it is no path. columns: the types of a table's columns. types: those
    that the policy declares, by path."""
    first, *rest = name.split(".")
    base = next((column for column in columns if fold(column) == fold(first)), None)
    if base is None or not rest or not all(rest):
        return None
    declared = next((type_ for path, type_ in types.items() if fold(path) == fold(name)), "VARCHAR")
    type_, source = columns[base], '"' + base.replace('"', '""') + '"'
    for at, key in enumerate(rest):
        upper = type_.upper()
        if upper == "JSON":
            inside = "".join('."' + part.replace('"', "") + '"' for part in rest[at:])
            text = f"try(json_extract_string({source}, {literal('$' + inside)}))"
            return Path(declared, text if declared == "VARCHAR" else f"try_cast({text} as {declared})")
        parts = [*_parts(type_)] if not upper.endswith("]") else []
        if upper.startswith("STRUCT("):
            found = [(field, of) for field, of in map(_field, parts) if fold(field) == fold(key)]
            if len(found) != 1:
                return None
            ((field, type_),) = found
            source = f"struct_extract({source}, {literal(field)})"
        elif upper.startswith("MAP(") and len(parts) == 2 and parts[0].upper() == "VARCHAR":
            type_, source = parts[1], f"{source}[{literal(key)}]"
        else:
            return None
    return Path(type_, source)


def _parts(type_: str) -> Iterator[str]:
    """The parts of a type in brackets, as of STRUCT(a INTEGER, b VARCHAR)."""
    inside, depth, quoted, start = type_[type_.index("(") + 1 : type_.rindex(")")], 0, False, 0
    for at, letter in enumerate(inside):
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if letter == "," and not quoted and depth == 0:
            yield inside[start:at].strip()
            start = at + 1
    yield inside[start:].strip()


def _field(part: str) -> tuple[str, str]:
    """Name and type of a part of a STRUCT."""
    quoted = re.match(r'"((?:[^"]|"")*)" ', part)
    if quoted is not None:
        return quoted[1].replace('""', '"'), part[quoted.end() :].strip()
    name, _, type_ = part.partition(" ")
    return name, type_.strip()


def written_path(node: exp.Expr) -> list[str] | None:
    """The path that an expression of a statement takes into a column, the column's own names first: by subscripts,
    ->>, STRUCT_EXTRACT or JSON_EXTRACT_STRING. None of another expression."""
    if isinstance(node, exp.Column):
        if isinstance(node.this, exp.Star):
            return None
        return [part.name for part in node.parts]
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        return _within(node.this, [node.expressions[0]])
    if isinstance(node, exp.JSONExtractScalar):
        keys = node.expression.expressions if isinstance(node.expression, exp.JSONPath) else []
        found = written_path(node.this.unnest())
        names = [str(key.this) for key in keys if isinstance(key, exp.JSONPathKey)]
        return found + names if found is not None and names and len(names) == len(keys) - 1 else None
    if isinstance(node, exp.StructExtract):
        return _within(node.this, [node.expression])
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "struct_extract" and len(node.expressions) == 2:
        return _within(node.expressions[0], node.expressions[1:])
    return None


def _within(node: exp.Expr, keys: Sequence[exp.Expr]) -> list[str] | None:
    found = written_path(node.unnest())
    names = [str(key.this) for key in keys if isinstance(key, exp.Literal) and key.is_string]
    return found + names if found is not None and len(names) == len(keys) else None
