"""Where the tables of a policy lie: a DuckDB database or a folder of Parquet files, and others that are attached.

All of it is read in place, and only read. It is known to DuckDB as `source`, and what is attached by its own name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import duckdb

from kgather._errors import InputError
from kgather._guard.addresses import ICEBERG, beside, extension_of, path_of
from kgather._guard.policy import Policy, fold
from kgather._guard.render import identifier
from kgather._sql_text import literal

SOURCE = "source"
"""What DuckDB knows the database of a policy by."""
_LOCKED = ("enable_external_access = false", "lock_configuration = true")


@dataclass(frozen=True)
class Warehouse:
    """path: a file of DuckDB, or a folder of Parquet files. attached: others, by name; a path, or an address such as
    ducklake:lake.ducklake. files: what views may read beside them."""

    path: Path
    attached: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @classmethod
    def of(cls, policy: Policy, folder: Path = Path()) -> "Warehouse":
        """What a policy names; paths in it are beside `folder`."""
        attached = {name: beside(address, folder) for name, address in policy.attach.items()}
        return cls(folder / policy.database, attached, tuple(folder / path for path in policy.files))

    def connected(self, memory: str | None = None) -> duckdb.DuckDBPyConnection:
        """A connection to memory with everything attached, read only, and `source` in use. memory: what it takes at
        most. Raises InputError."""
        con = duckdb.connect(
            config={
                **({"memory_limit": memory} if memory is not None else {}),
                "temp_directory": "",  # rows of people are not spilled to a disk
                "python_enable_replacements": False,
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
            }
        )
        try:
            con.execute("set enable_progress_bar = false")  # it would stand among answers, and tell of rows
            _attach(con, SOURCE, str(self.path), "database")
            for name, address in self.attached.items():
                _attach(con, name, address, f"attach.{name}")
            con.execute(f"use {SOURCE}")
        except BaseException:
            con.close()
            raise
        return con

    def lock(self, con: duckdb.DuckDBPyConnection) -> None:
        """Take from a connection what it does not need: files that the policy does not name, and settings."""
        folders = [path for path in self._of_files() if path.is_dir()]
        files = [path for path in self._of_files() if not path.is_dir()]
        if folders:
            con.execute(f"set global allowed_directories = [{', '.join(literal(f'{path}/') for path in folders)}]")
        if files:
            con.execute(f"set global allowed_paths = [{', '.join(literal(str(path)) for path in files)}]")
        for setting in _LOCKED:
            con.execute(f"set global {setting}")

    def stamp(self) -> str:
        """What is another after something was written to. Raises InputError where it cannot be read."""
        found = []
        for path in self._watched():
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                msg = f"{path}, which the policy names, cannot be read: {error.strerror}."
                raise InputError(msg) from None
            found.append(f"{stat.st_size}.{stat.st_mtime_ns}")
        if not found or not self.path.exists():
            raise InputError(self.absent)
        return " ".join(found)

    @property
    def absent(self) -> str:
        """That there is no database."""
        return f"{self.path}, which the policy names under database, cannot be read: there is no such file."

    def __str__(self) -> str:
        return str(self.path)

    def _of_files(self) -> Iterator[Path]:
        """Folders and files that DuckDB reads beside those that it has open."""
        for path in (self.path, *(path_of(address) for address in self.attached.values())):
            if path.is_dir():
                yield path.resolve()
        for address in self.attached.values():
            if extension_of(address) and not path_of(address).is_dir():
                yield path_of(address).resolve().parent
        yield from (path.resolve() for path in self.files)

    def _watched(self) -> Iterator[Path]:
        for path in (self.path, *(path_of(address) for address in self.attached.values()), *self.files):
            if path.is_dir():
                yield from sorted(file for file in path.rglob("*") if file.is_file())
            else:
                yield path
                yield path.with_name(path.name + ".wal")


def tables_of_folder(folder: Path) -> Mapping[str, str]:
    """The tables of a folder: each Parquet file, and each folder that holds some, by its name, with what DuckDB reads
    them by. Folders within, as year=2024, are columns of theirs. They are texts: what type they have would else depend
    on who is in the data."""
    found = {file.stem: f"read_parquet({literal(str(file))})" for file in sorted(folder.glob("*.parquet"))}
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if next(inner.rglob("*.parquet"), None) is not None:
            files = literal(f"{inner}/**/*.parquet")
            found[inner.name] = f"read_parquet({files}, hive_partitioning = true, hive_types_autocast = false)"
    return found


def _attach(con: duckdb.DuckDBPyConnection, name: str, address: str, entry: str) -> None:
    path, named = path_of(address), identifier(name)
    try:
        if path.is_dir() and not extension_of(address):
            con.execute(f"attach ':memory:' as {named}")
            for table, read in tables_of_folder(path.resolve()).items():
                con.execute(f"create view {named}.main.{identifier(table)} as from {read}")
            return
        if extension_of(address):
            con.execute(f"load {extension_of(address)}")
        if extension_of(address) == ICEBERG:
            con.execute(f"attach ':memory:' as {named}")
            for table, folder in _iceberg_tables(path.resolve(), entry).items():
                read = f"iceberg_scan({literal(folder)})"
                con.execute(f"create view {named}.main.{identifier(table)} as from {read}")
            return
        con.execute(f"attach {literal(address)} as {named} (read_only)")
    except duckdb.Error as error:
        told = str(error).lower()
        if isinstance(error, duckdb.IOException) and "lock" in told:
            msg = f"{path}, which the policy names under {entry}, is open for writing elsewhere. Try again after that."
        elif extension_of(address) and "extension" in told:
            msg = (
                f"{entry}: DuckDB has no extension {extension_of(address)} here. Install it once, where there is a "
                f"network: python -c \"import duckdb; duckdb.execute('install {extension_of(address)}')\""
            )
        else:
            msg = f"{path} cannot be opened as a DuckDB database, which the policy names under {entry}."
        raise InputError(msg) from None


def _iceberg_tables(folder: Path, entry: str) -> Mapping[str, str]:
    """The Iceberg tables in a folder, by name: each folder in it with metadata, with its newest. Raises InputError."""
    found = {}
    for inner in sorted(folder.iterdir()) if folder.is_dir() else ():
        # The number before the name counts the states of a table, in each of the ways in which they are named.
        metadata = sorted((inner / "metadata").glob("*.metadata.json"), key=_state_of)
        if metadata:
            found[inner.name] = str(metadata[-1])
    if not found:
        msg = f"{entry}: {folder} holds no Iceberg table: a folder with a folder metadata in it for each table."
        raise InputError(msg)
    return found


def _state_of(metadata: Path) -> int:
    number = re.match(r"v?(\d+)", metadata.name)
    return int(number[1]) if number is not None else -1


class Relation(NamedTuple):
    """A table or a view. sql: how it is written. columns: their types by name."""

    sql: str
    columns: dict[str, str]


def relations(con: duckdb.DuckDBPyConnection) -> dict[str, Relation]:
    """The tables and views that a connection of a warehouse reaches, by each name that a policy may give them: table in
    schema main, schema.table, and name.schema.table or name.table of what is attached. Of names that differ in case
    only, the first one is meant: of the database itself, and of schema main."""
    rows = con.execute(
        "select table_catalog = current_database(), table_catalog, table_schema, table_name, column_name, data_type "
        "from information_schema.columns where table_catalog not in ('system', 'temp') "
        "order by table_catalog <> current_database(), table_schema <> 'main', 2, 3, 4, ordinal_position"
    ).fetchall()
    found: dict[str, Relation] = {}
    first: dict[str, tuple[str, ...]] = {}
    for own, *parts, column, type_ in rows:
        for name in _names(own, *parts):
            if first.setdefault(fold(name), tuple(parts)) == tuple(parts):
                relation = found.setdefault(name, Relation(".".join(identifier(part) for part in parts), {}))
                relation.columns[column] = type_
    return found


def written(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """How a table of a policy is written in SQL; by its name, where it is not found."""
    return next((one.sql for known, one in relations(con).items() if fold(known) == fold(name)), identifier(name))


def _names(own: bool, catalog: str, schema: str, table: str) -> Iterator[str]:
    if own:
        if schema == "main":
            yield table
        yield f"{schema}.{table}"
        return
    if schema == "main":
        yield f"{catalog}.{table}"
    yield f"{catalog}.{schema}.{table}"
