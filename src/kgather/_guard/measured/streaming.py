"""The rows of a query in batches, with the engine's own errors."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa


def streamed(con: duckdb.DuckDBPyConnection, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of so many rows at most; the engine keeps no more than it has read ahead. Raises duckdb.Error, also for
    what goes wrong in the midst."""
    batches = con.sql(sql).to_arrow_reader(rows)
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:  # as Arrow tells an error of the engine
        kind = duckdb.OutOfMemoryException if "out of memory" in str(error).lower() else duckdb.Error
        raise kind(str(error)) from None
