"""psqlODBC, the way of Excel, Power BI, Tableau and Qlik, through pyodbc."""

from decimal import Decimal

import pyodbc
from common import AVERAGE, COUNT, DATABASE, GROUPS, HOST, PASSWORD, PORT, REFUSED, USER, refusal, step


def connected(**more: object) -> pyodbc.Connection:
    parts = {
        "Driver": "PostgreSQL Unicode",
        "Server": HOST,
        "Port": PORT,
        "Database": DATABASE,
        "UID": USER,
        "PWD": f"{{{PASSWORD}}}",
        **more,
    }
    return pyodbc.connect(";".join(f"{name}={value}" for name, value in parts.items()), autocommit=True)


connection = connected()
cursor = connection.cursor()
step("connects", lambda: cursor.execute("SELECT 1").fetchval())
step("tables", lambda: sorted(row.table_name for row in cursor.tables(schema="main", tableType="TABLE")))
step("columns", lambda: [row.column_name for row in cursor.columns(table="people", schema="main")])
step("count", lambda: cursor.execute(COUNT).fetchval())
step("average", lambda: cursor.execute(AVERAGE).fetchval())
step("groups", lambda: [list(row) for row in cursor.execute(GROUPS.format("?", "?"), 2, 3)])
step("refusal", lambda: refusal(lambda: cursor.execute(REFUSED)))


def by_cursor() -> list[object]:
    with connected(UseDeclareFetch=1, Fetch=2).cursor() as declared:
        return [list(row) for row in declared.execute(GROUPS.format(2, 3))]


step("cursor", by_cursor)
step("decimal", lambda: cursor.execute("SELECT COUNT(*) FROM people WHERE film_a >= ?", Decimal("2.5")).fetchval())
