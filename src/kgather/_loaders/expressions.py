"""Small pieces of SQL that the loaders share, and running it."""

from pathlib import Path
from typing import Any

import duckdb

from kgather._sql_text import literal

# What str.strip() takes away, so that Python and SQL agree on what "surrounding white space" is.
WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def trimmed(expression: str) -> str:
    """SQL: a text without surrounding white space; quick where there is none to take away."""
    spaces = literal(WHITE_SPACE)
    first, last = f"left({expression}, 1)", f"right({expression}, 1)"
    return (
        f"(case when contains({spaces}, {first}) or contains({spaces}, {last}) "
        f"then trim({expression}, {spaces}) else {expression} end)"
    )


def is_blank(expression: str) -> str:
    """SQL: whether a text (not null) is empty or white space; quick for texts that begin with ASCII."""
    quick = f"({expression} >= '!' and {expression} < chr(127))"
    return f"not ({quick} or {trimmed(expression)} <> '')"


def as_no_pattern(path: Path) -> str:
    """A path as DuckDB's readers take it: what they would take for a pattern of names stands for itself."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path.resolve()))


def first_row(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...] | None:
    """Run a statement whose result is small, leave nothing of it open, and give its first row."""
    rows = con.execute(sql).fetchall()
    return rows[0] if rows else None
