"""The classes of a written table, as a reader tells them apart."""

from collections.abc import Sequence

import duckdb

from kgather._sql_text import identifier


def class_sizes(con: duckdb.DuckDBPyConnection, relation: str, quasi: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """How many classes there are of each size: (rows, classes), the smallest first. quasi: columns by their names."""
    listed = ", ".join(seen(quasi))
    counted = f"select count(*) as n from {relation} group by {listed}"
    return tuple(con.execute(f"select n, count(*) from ({counted}) group by n order by n").fetchall())


def seen(quasi: Sequence[str]) -> list[str]:
    """Columns as a reader tells their values apart, whatever the collation."""
    return [f"encode(cast({identifier(name)} as varchar))" for name in quasi]
