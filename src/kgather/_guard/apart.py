"""Connections to nothing, for what stands above the blocks: it sees their results and nothing else."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from kgather._guard.deadline import Deadline

_SPARE = 8  # databases kept for the next statement


@dataclass(frozen=True)
class Apart:
    """Empty databases in memory, locked, each used by one statement at a time."""

    _spare: dict[str, list[duckdb.DuckDBPyConnection]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, sql: str, relations: Mapping[str, pa.Table], memory: str, deadline: Deadline) -> pa.Table:
        """Run SQL over relations. Raises Refused, as a deadline does, where the engine refuses."""
        with self._one(memory) as con, deadline.watching(con):
            for name, table in relations.items():
                con.register(name, table)
            return con.sql(sql).to_arrow_table()

    @contextmanager
    def _one(self, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of a database that nobody else uses; its relations end with it. One where something failed is not
        used again."""
        with self._lock:
            spare = self._spare.setdefault(memory, [])
            database = spare.pop() if spare else None
        database = database or _locked(memory)
        try:
            with database.cursor() as con:
                yield con
        except BaseException:
            database.close()
            raise
        with self._lock:
            if len(spare) < _SPARE:
                spare.append(database)
                return
        database.close()


def _locked(memory: str) -> duckdb.DuckDBPyConnection:
    """A database that keeps the limit, writes no temporary files and reaches none. It works in one thread: relations
    are small, and sums come out the same to the last digit."""
    database = duckdb.connect(
        config={"python_enable_replacements": False, "memory_limit": memory, "temp_directory": "", "threads": 1}
    )
    for setting in ("enable_external_access = false", "lock_configuration = true"):
        database.execute(f"set global {setting}")
    return database
