"""The public tables of a database: read once, told as they are, and named by checksums in the audit log."""

import hashlib
import json
import threading
from collections.abc import Iterable

import duckdb
import pyarrow as pa

from kgather._errors import InputError
from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.deadline import Deadline
from kgather._guard.measured.database import as_total, stored, unreadable
from kgather._guard.measured.domain import PUBLIC, Domain, is_public
from kgather._guard.measured.features import Feature
from kgather._guard.measured.source import Source, source_of
from kgather._guard.plan import NUMERIC
from kgather._guard.policy import fold
from kgather._guard.render import identifier
from kgather._guard.warehouse import SOURCE, Warehouse, written


class PublicTables:
    """The public tables of a catalog, as they are when the first one is read. Safe to share among threads."""

    def __init__(self, warehouse: Warehouse, catalog: Catalog, memory: str) -> None:
        self.warehouse = warehouse
        self.catalog = catalog
        self.memory = memory
        self._lock = threading.Lock()
        self._loaded: duckdb.DuckDBPyConnection | None = None
        self._checksums: dict[str, str] = {}

    def read(self, names: Iterable[str], deadline: Deadline) -> dict[str, pa.Table]:
        """The tables of these names. Raises InputError where the database cannot be read, Refused where the time is
        over."""
        with self._tables().cursor() as con, deadline.watching(con):
            return {name: con.sql(f"from {identifier(name)}").to_arrow_table() for name in names}

    def checksum(self, name: str) -> str:
        """What names the contents of a table: its columns and its rows, in whatever order. Raises InputError."""
        if name not in self._checksums:
            with self._tables().cursor() as con:
                table = con.sql(f"from {identifier(name)}").to_arrow_table()
            self._checksums[name] = _checksum(table)
        return self._checksums[name]

    def domain(self, feature: Feature) -> Domain | None:
        """The classes of a column of a public table: all of its values. None of other features, and where there are too
        many. Raises InputError."""
        if not is_public(feature, self.catalog):
            return None
        source = source_of(feature.expr, self.catalog)
        assert source is not None
        known = source.table.columns[fold(source.column)]
        column, table = identifier(source.column), identifier(source.table.name)
        with self._tables().cursor() as con:
            found = con.execute(
                f"select cast({column} as varchar) from (select distinct {as_total(known)} from {table}) "
                f"where {column} is not null order by {column} limit {PUBLIC + 1}"
            ).fetchall()
        if len(found) > PUBLIC:
            return None
        values = tuple(text for (text,) in found)
        return Domain(values, source.type, null=True, other=False, absent=feature.may_be_absent)

    def ends(self, source: Source) -> tuple[float, float] | None:
        """The smallest and the largest number in a column of a public table; None where there is none. Raises
        InputError."""
        if source.table.columns[fold(source.column)].kind not in NUMERIC:
            return None
        number = f"cast({identifier(source.column)} as double)"
        with self._tables().cursor() as con:
            found = con.execute(
                f"select min({number}), max({number}) from {identifier(source.table.name)} where isfinite({number})"
            ).fetchall()
        ((low, high),) = found
        return None if low is None else (low, high)

    def _tables(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> duckdb.DuckDBPyConnection:
        con = self.warehouse.connected(self.memory)
        try:
            for info in self.catalog.tables.values():
                if not info.protected:
                    name = identifier(info.name)
                    con.execute(
                        f"create table memory.main.{name} as select {_columns(info)} from {written(con, info.name)}"
                    )
            con.execute("use memory")
            for name in (SOURCE, *self.warehouse.attached):
                con.execute(f"detach {identifier(name)}")
        except duckdb.Error:
            con.close()
            raise InputError(unreadable(self.warehouse)) from None
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            con.execute(f"set global {setting}")
        return con


def _columns(info: TableInfo) -> str:
    """The columns of a table as they are, in the types in which they are shown."""
    return ", ".join(
        f"try_cast({name} as hugeint) as {name}" if column.type == "HUGEINT" else f"{stored(column)} as {name}"
        for column in info.columns.values()
        for name in [identifier(column.name)]
    )


def _checksum(table: pa.Table) -> str:
    found = hashlib.sha256(json.dumps(table.column_names).encode("utf-8", "surrogatepass"))
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    for row in sorted(json.dumps(row, default=str) for row in rows):
        found.update(row.encode("utf-8", "surrogatepass") + b"\n")
    return found.hexdigest()[:16]
