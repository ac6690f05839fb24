"""Small relations of the pipeline as numpy arrays."""

from typing import Any

import duckdb
from numpy.typing import NDArray

BATCH_ROWS = 1 << 20
"""Rows of a batch that is read from a relation at once."""


def count(relation: duckdb.DuckDBPyRelation) -> int:
    """The number of rows."""
    return int(relation.count("*").fetchall()[0][0])


def columns(relation: duckdb.DuckDBPyRelation, *names: str) -> list[NDArray[Any]]:
    """The named columns."""
    table = relation.to_arrow_table()
    return [table[name].to_numpy() for name in names]
