"""kgather for SQL users without dbt: its macros and functions on any DuckDB connection."""

import re

import duckdb

from kgather.dbt_package import dbt_path
from kgather.udfs import arrow_functions

# The order in which sql/hooks/on_run_start.sql creates them too.
_DDL_CALL = re.compile(r"kgather\.ddl__(\w+)\(\)")


def load(con: duckdb.DuckDBPyConnection) -> None:
    """Register kgather's SQL macros and functions on a connection, for all its cursors.

    Afterwards SQL knows `kg_preferences`, `kg_gather`, `kg_homogenize` and the other macros under sql/. Calling it
    again is harmless. The functions live as long as the connection's database is open in this process.
    """
    arrow_functions.register(con)
    for statement in _macros():
        con.execute(statement)


def _macros() -> list[str]:
    sql = dbt_path() / "sql"
    order = _DDL_CALL.findall((sql / "hooks" / "on_run_start.sql").read_text(encoding="utf-8"))
    files = {file.stem: file for file in sorted(sql.rglob("kg_*.sql"))}
    # Those that call registered functions are not the dbt package's: it must work without the plugin.
    names = order + [name for name in files if name not in order]
    return [files[name].read_text(encoding="utf-8") for name in names]
