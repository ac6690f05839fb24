"""kgather for SQL users without dbt: its macros and functions on any DuckDB connection."""

import re

import duckdb

from kgather._dbt_package import dbt_path
from kgather._errors import InputError
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
    for statement in _macros():
        con.execute(statement)


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
    sql = dbt_path() / "sql"
    order = _DDL_CALL.findall((sql / "hooks" / "on_run_start.sql").read_text(encoding="utf-8"))
    files = {file.stem: file for file in sorted(sql.rglob("kg_*.sql"))}
    # Those that call registered functions are not the dbt package's: it must work without the plugin.
    names = order + [name for name in files if name not in order]
    return [files[name].read_text(encoding="utf-8") for name in names]
