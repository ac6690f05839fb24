"""A connection that knows the macros under sql/privacy/, created from their files."""

from collections.abc import Iterator

import duckdb
import pytest
from dbt_macros import create_macros
from privacy_data import MACROS


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        create_macros(con, *MACROS)
        yield con
