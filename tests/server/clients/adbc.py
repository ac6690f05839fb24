"""ADBC's driver of PostgreSQL, which reads every answer by COPY in binary."""

import adbc_driver_postgresql.dbapi
from common import AVERAGE, COUNT, GROUPS, REFUSED, URI, refusal, step

connection = adbc_driver_postgresql.dbapi.connect(URI, autocommit=True)
cursor = connection.cursor()


def rows(sql: str, values: object = None) -> list[list[object]]:
    cursor.execute(sql, values)
    return [list(row) for row in cursor.fetchall()]


def names(*wanted: str) -> list[object]:
    found = connection.adbc_get_objects(db_schema_filter="main", table_name_filter=wanted[0] if wanted else None)
    schemas = [schema for catalog in found.read_all().to_pylist() for schema in catalog["catalog_db_schemas"] or ()]
    tables = [table for schema in schemas for table in schema["db_schema_tables"] or ()]
    if not wanted:
        return sorted(table["table_name"] for table in tables)
    return [column["column_name"] for table in tables for column in table["table_columns"]]


step("connects", lambda: rows("SELECT 1")[0][0])
step("tables", lambda: names())
step("columns", lambda: names("people"))
step("count", lambda: rows(COUNT)[0][0])
step("average", lambda: rows(AVERAGE)[0][0])
step("groups", lambda: rows(GROUPS.format("$1", "$2"), (2, 3)))
step("refusal", lambda: refusal(lambda: rows(REFUSED)))
