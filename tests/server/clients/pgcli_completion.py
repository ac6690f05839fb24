"""pgcli: its queries for completion and for \\dt, and an answer."""

from common import AVERAGE, COUNT, DATABASE, GROUPS, HOST, PASSWORD, PORT, REFUSED, USER, refusal, step
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

executor = PGExecute(DATABASE, USER, PASSWORD, HOST, str(PORT), None)


def rows(sql: str) -> list[list[object]]:
    return [list(row) for _, found, *_ in executor.run(sql, pgspecial=PGSpecial()) for row in found or ()]


def completed() -> list[str]:
    for ask in (executor.schemata, executor.views, executor.functions, executor.datatypes, executor.foreignkeys):
        list(ask())
    list(executor.view_columns())
    list(executor.databases())
    executor.search_path()
    return sorted(table for schema, table in executor.tables() if schema == "main")


step("connects", lambda: rows("SELECT 1")[0][0])
step("tables", completed)
step("columns", lambda: [column for schema, table, column, *_ in executor.table_columns() if table == "people"])
step("count", lambda: rows(COUNT)[0][0])
step("average", lambda: rows(AVERAGE)[0][0])
step("groups", lambda: rows(GROUPS.format(2, 3)))
step("refusal", lambda: refusal(lambda: rows(REFUSED)))
step("command", lambda: [row[1] for row in rows("\\dt")])
