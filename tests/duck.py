"""Shortcuts for DuckDB in tests."""

from collections.abc import Sequence
from typing import Any

import duckdb

_AT_ONCE = 200


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, many with one statement: executemany takes most of a millisecond for each."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        marks = ", ".join(["(" + ", ".join("?" * len(some[0])) + ")"] * len(some))
        con.execute(f"insert into {table} values {marks}", [value for row in some for value in row])
