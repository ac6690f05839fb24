"""DuckDB's postgres extension: ATTACH, and questions that the server answers by postgres_query."""

from pathlib import Path

import duckdb
import duckdb_extension_postgres_scanner
from common import AVERAGE, COUNT, DATABASE, GROUPS, HOST, PASSWORD, PORT, USER, refusal, step

connection = duckdb.connect()
# The extension is a package of PyPI beside duckdb's own.
(_EXTENSION,) = Path(duckdb_extension_postgres_scanner.__file__).parent.rglob("*.duckdb_extension")
connection.execute(f"LOAD '{_EXTENSION}'")
_SECRET = f"host={HOST} port={PORT} dbname={DATABASE} user={USER} password='{PASSWORD}'".replace("'", "''")


def rows(sql: str) -> list[list[object]]:
    quoted = sql.replace("'", "''")
    return [list(row) for row in connection.execute(f"FROM postgres_query('guard', '{quoted}')").fetchall()]


step("connects", lambda: connection.execute(f"ATTACH '{_SECRET}' AS guard (TYPE postgres, READ_ONLY)") and 1)
_TABLES = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'guard' AND schema_name = 'main' ORDER BY 1"
_COLUMNS = "SELECT column_name FROM (DESCRIBE guard.main.people)"
step("tables", lambda: [row[0] for row in connection.execute(_TABLES).fetchall()])
step("columns", lambda: [row[0] for row in connection.execute(_COLUMNS).fetchall()])
step("count", lambda: rows(COUNT)[0][0])
step("average", lambda: rows(AVERAGE)[0][0])
step("groups", lambda: rows(GROUPS.format(2, 3)))
step("refusal", lambda: refusal(lambda: connection.execute("SELECT count(*) FROM guard.main.people").fetchall()))
