"""kgather for SQL users without dbt: its macros and functions on any DuckDB connection."""

import re
from pathlib import Path

import duckdb

from kgather._dbt_package import dbt_path
from kgather._errors import InputError
from kgather._recoding import functions as table_functions
from kgather._version import __version__
from kgather.udfs import _arrow_functions

# The order in which sql/hooks/on_run_start.sql creates them too.
_DDL_CALL = re.compile(r"kgather\.ddl__(\w+)\(\)")


def load(con: duckdb.DuckDBPyConnection) -> None:
    """Register kgather's SQL macros and functions on a connection, for all its cursors.

    Afterwards SQL knows `kg_preferences`, `kg_gather`, `kg_homogenize` and the other macros under sql/. Calling it
    again is harmless. The macros are written into the connection's current database and schema; the functions that
    `kg_preferences` and `kg_gather` call live as long as the database is open in this process.

    Raises InputError if the database is open for reading only.
    """
    _check_writable(con)
    _arrow_functions.register(con)
    table_functions.register(con)
    for statement in _macros():
        con.execute(statement)


def create_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Create the macros that the dbt package creates when a run starts, from the same files."""
    for name in _macros_of_dbt():
        con.execute(_files()[name].read_text(encoding="utf-8"))


def bundle() -> str:
    """The text that creates the macros of `create_macros`, for any client of DuckDB: they need neither Python nor dbt.

    Comments say what each does; the last macro, kg_macros(), gives the version of kgather that they are of.
    """
    statements = [_without_jinja(_files()[name].read_text(encoding="utf-8")) for name in _macros_of_dbt()]
    head = (
        f"-- SQL macros of kgather {__version__}, which need nothing but DuckDB. They go into the current database.\n"
        "-- Written by `kgather sql`; docs/sql.md says what each does.\n"
    )
    return "\n".join([head, *statements, f"create or replace macro kg_macros() as 'kgather {__version__}';\n"])


def _without_jinja(text: str) -> str:
    """A file that is plain SQL and a macro of dbt's at once, without the lines for dbt."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("-- {%")) + "\n"


def _check_writable(con: duckdb.DuckDBPyConnection) -> None:
    current = "select database_name, readonly from duckdb_databases() where database_name = current_database()"
    for name, readonly in con.execute(current).fetchall():
        if readonly:
            msg = (
                f"kgather.load writes its macros into the current database, and '{name}' is open for reading only. "
                "Connect to a database in memory, call load there, and attach the file to it."
            )
            raise InputError(msg)


def _macros() -> list[str]:
    order, files = _macros_of_dbt(), _files()
    # Those that call registered functions are not the dbt package's: it must work without the plugin.
    names = order + [name for name in files if name not in order]
    return [files[name].read_text(encoding="utf-8") for name in names]


def _macros_of_dbt() -> list[str]:
    hook = dbt_path() / "sql" / "hooks" / "on_run_start.sql"
    return _DDL_CALL.findall(hook.read_text(encoding="utf-8"))


def _files() -> dict[str, Path]:
    return {file.stem: file for file in sorted((dbt_path() / "sql").rglob("kg_*.sql"))}
