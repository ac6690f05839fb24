"""A database of nothing, to have DuckDB say how it reads a text."""

import threading

import duckdb

_local_state = threading.local()


def parser() -> duckdb.DuckDBPyConnection:
    """A database of nothing, one a thread, to parse with."""
    if not hasattr(_local_state, "connection"):
        config: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "python_enable_replacements": False}
        _local_state.connection = duckdb.connect(":memory:", config=config)
        _local_state.connection.execute("set enable_external_access = false")
    connection: duckdb.DuckDBPyConnection = _local_state.connection
    return connection
