"""connectorx, as polars.read_database_uri calls it: COPY in binary."""

import polars
from common import AVERAGE, COUNT, GROUPS, REFUSED, URI, refusal, step


def rows(sql: str) -> list[list[object]]:
    return [list(row) for row in polars.read_database_uri(sql, URI, engine="connectorx").rows()]


step("connects", lambda: rows("SELECT 1 AS one")[0][0])
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"
_COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = 'people' ORDER BY ordinal_position"
step("tables", lambda: [row[0] for row in rows(_TABLES)])
step("columns", lambda: [row[0] for row in rows(_COLUMNS)])
step("count", lambda: rows(COUNT)[0][0])
step("average", lambda: rows(AVERAGE)[0][0])
step("groups", lambda: rows(GROUPS.format(2, 3)))
step("refusal", lambda: refusal(lambda: rows(REFUSED)))
