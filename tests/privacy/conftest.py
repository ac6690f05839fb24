"""A connection that knows the macros under sql/privacy/, created from their files."""

from collections.abc import Iterator

import duckdb
import pytest
from dbt_macros import create_macros
from privacy_data import MACROS, quoted


@pytest.fixture(scope="session")
def shared() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        create_macros(con, *MACROS)
        yield con


@pytest.fixture
def con(shared: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Without any table: opening a database takes longer than most tests."""
    yield shared
    for (name,) in shared.sql(
        "select schema_name from duckdb_schemas() where not internal and schema_name <> 'main'"
    ).fetchall():
        shared.execute(f"drop schema {quoted(name)} cascade")
    for (name,) in shared.sql("select table_name from duckdb_tables()").fetchall():
        shared.execute(f"drop table {quoted(name)}")
