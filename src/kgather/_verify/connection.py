"""The connection that checks run on: bounded in memory, with the macros that measure."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from kgather._dbt_package import dbt_path
from kgather._sql_text import literal

MEMORY_LIMIT = "3GB"

# Those first that others call.
_MACROS = (
    "kg_quoted", "kg_as_seen", "kg_class_sizes", "kg_classed", "kg_class_frequencies", "kg_class_l", "kg_class_alpha",
    "kg_class_t", "kg_class_hierarchical_t", "kg_frequencies", "kg_l_diversity", "kg_alpha", "kg_t_closeness",
    "kg_hierarchical_t_closeness", "kg_column_sets", "kg_risk", "kg_risk_conditions",
)  # fmt: skip


@contextmanager
def bounded() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that spills into a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="kgather-verify-") as spill, duckdb.connect() as con:
        con.execute(f"set memory_limit = {literal(MEMORY_LIMIT)}")
        con.execute(f"set temp_directory = {literal(spill)}")
        yield con


def create_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Create the macros of sql/privacy/ in the current database."""
    for name in _MACROS:
        con.execute((dbt_path() / "sql" / "privacy" / f"{name}.sql").read_text(encoding="utf-8"))
