"""All of DuckDB's types: what is asked of a column of each, and what is answered, is what DuckDB says; and nobody moves
a measurement of any of them by more than its reach."""

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pytest
from sensitivity import moves, recorded, without
from worlds_of_people import GENEROUS, guarded, rows_of, silent

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

COLUMNS = {
    "tinyint": "cast(i % 3 as tinyint)",
    "smallint": "cast(i % 3 as smallint)",
    "integer": "cast(i % 3 as integer)",
    "bigint": "cast(i % 3 as bigint)",
    "utinyint": "cast(i % 3 as utinyint)",
    "usmallint": "cast(i % 3 as usmallint)",
    "uinteger": "cast(i % 3 as uinteger)",
    "ubigint": "cast(i % 3 as ubigint)",
    "hugeint": "cast(i % 3 as hugeint) * 100000000000000000000",
    "uhugeint": "cast(i % 3 as uhugeint)",
    "decimal": "cast((5 + i % 4) / 100.0 as decimal(15, 2))",
    "wide": "cast(i % 3 as decimal(38, 6))",
    "float": "cast(i % 3 as float)",
    "double": "cast(i % 3 as double)",
    "boolean": "i % 2 = 0",
    "varchar": "'t' || i % 3",
    "enum": "['a', 'b'][1 + i % 2]::enum('a', 'b')",
    "uuid": "('00000000-0000-0000-0000-00000000000' || i % 3)::uuid",
    "date": "date '2024-01-01' + cast(i % 3 as integer)",
    "timestamp": "timestamp '2024-01-01 10:00:00' + to_days(cast(i % 60 as integer))",
    "timestamp_s": "(timestamp '2024-01-01 10:00:00' + to_days(cast(i % 60 as integer)))::timestamp_s",
    "timestamp_ms": "(timestamp '2024-01-01 10:00:00' + to_days(cast(i % 60 as integer)))::timestamp_ms",
    "timestamp_ns": "(timestamp '2024-01-01 10:00:00' + to_days(cast(i % 60 as integer)))::timestamp_ns",
    "timestamptz": "timestamptz '2024-01-01 00:30:00+02' + to_days(cast(i % 60 as integer))",
}
OTHER = {
    "time": "time '10:00:00'",
    "interval": "interval 1 day",
    "blob": "'ab'::blob",
    "bit": "'101'::bit",
    "li": "[i % 3]",
    "st": "{'city': ['Graz', 'Wien'][1 + i % 2], 'n': {'x': i % 7}}",
    "mp": "map {'k': i % 3}",
    "json": """('{"age": ' || i % 50 || ', "name": "n' || i % 3 || '", "deep": {"a b": true}}')::json""",
}
STRANGE = {
    "float": "'nan'::float", "double": "'-inf'::double", "hugeint": "170141183460469231731687303715884105727::hugeint",
    "wide": "99999999999999999999999999999999.999999::decimal(38, 6)", "date": "'infinity'::date",
    "uhugeint": "'340282366920938463463374607431768211455'::uhugeint", "timestamp": "'-infinity'::timestamp",
    "timestamp_s": "'290000-01-01'::timestamp_s", "timestamptz": "'infinity'::timestamptz",
    "timestamp_ns": "'2262-04-11'::timestamp_ns", "json": "'[1, {}]'::json", "mp": "map {'x': 9}",
    "st": "{'city': null, 'n': null}", "varchar": "chr(0) || 'x'", "ubigint": "18446744073709551615::ubigint",
}  # fmt: skip
"""What one person has."""
PEOPLE = 900
DATES = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz")
PATHS = ("st.city", "st.n.x", "mp.k", "json.age", "json.name", "json.deep.a b")
POLICY = f"""version: 1
database: db.duckdb
k: 5
{GENEROUS}
tables:
  t:
    privacy_unit: id
    grain: unit
    artifacts: [{", ".join(f'"{name}"' for name in (*COLUMNS, *PATHS) if name not in DATES)}]
    coarsened: {{{", ".join(f"{name}: month" for name in DATES)}}}
    bounds: {{decimal: [0, 1], wide: [0, 3]}}
    types: {{json.age: BIGINT, json.deep.a b: BOOLEAN}}
principals: {{a: {{}}}}
"""


def rows(strange: bool = False) -> str:
    listed = [f"{sql} as {name}" for name, sql in {**COLUMNS, **OTHER}.items()]
    usual = f"select i as id, {', '.join(listed)} from range({PEOPLE}) r(i)"
    if not strange:
        return usual
    own = [f"{STRANGE.get(name, 'null')} as {name}" for name in {**COLUMNS, **OTHER}]
    return f"{usual} union all by name select {PEOPLE} as id, {', '.join(own)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module")
def guard(folder: Path) -> Guard:
    return guarded(folder, {"t": rows()}, POLICY, silent)


@pytest.fixture(scope="module")
def database(guard: Guard, folder: Path) -> duckdb.DuckDBPyConnection:
    assert guard.policy.k == 5
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    con.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    con.execute("use source")
    return con


def plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    zoned = getattr(value, "tzinfo", None)
    if zoned is not None:
        return value.replace(tzinfo=None)
    return float(value) if isinstance(value, float) else value


def same(guard: Guard, database: duckdb.DuckDBPyConnection, sql: str, asked: str | None = None) -> None:
    """Both answer the same, in the same types, in the order of the rows."""
    true = [tuple(plain(value) for value in row) for row in database.execute(sql).fetchall()]
    told = [tuple(plain(value) for value in row.values()) for row in guard.query(asked or sql).to_pylist()]
    assert len(told) == len(true)
    for row, other in zip(told, true, strict=True):
        for one, two in zip(row, other, strict=True):
            if isinstance(two, float | Decimal) and one is not None:
                assert float(one) == pytest.approx(float(two), rel=1e-3, abs=1e-3)
            else:
                assert one == two


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in DATES])
def test_groups_and_conditions(guard: Guard, database: duckdb.DuckDBPyConnection, name: str) -> None:
    column = f'"{name}"'
    same(guard, database, f"SELECT {column} AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k")
    value = database.execute(f"select cast(max({column}) as varchar) from t").fetchall()[0][0]
    written = value if COLUMNS[name].startswith("cast") or name in ("decimal", "hugeint") else f"'{value}'"
    same(guard, database, f"SELECT COUNT(*) AS n FROM t WHERE {column} = {written}")
    if name not in ("boolean", "enum"):
        same(guard, database, f"SELECT COUNT(*) AS n FROM t WHERE {column} < {written}")
    assert guard.describe(f"SELECT {column}, COUNT(*) FROM t GROUP BY ALL").types[0] == guard.query(
        f"SELECT {column}, COUNT(*) FROM t GROUP BY ALL"
    ).schema.types[0]  # fmt: skip


@pytest.mark.parametrize("name", DATES)
def test_moments(guard: Guard, database: duckdb.DuckDBPyConnection, name: str) -> None:
    same(guard, database, f"SELECT DATE_TRUNC('month', {name}) AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k")
    parts = f"month({name}) AS k, monthname({name}) AS m"
    same(guard, database, f"SELECT {parts}, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k")
    same(guard, database, f"SELECT COUNT(*) AS n FROM t WHERE {name} >= TIMESTAMP '2024-02-01'")
    zoned = f"SELECT COUNT(*) AS n FROM t WHERE {name} >= TIMESTAMPTZ '2024-02-01 02:00:00+02'"
    same(guard, database, zoned.replace(name, f"{name}::TIMESTAMP"), zoned)


def test_decimals_are_exact(guard: Guard, database: duckdb.DuckDBPyConnection) -> None:
    for condition in (
        '"decimal" BETWEEN 0.06 - 0.01 AND 0.06 + 0.01', '"decimal" = 0.07', '"decimal" IN (0.05, 0.08)',
        '"decimal" > 0.03 * 2', '"decimal" >= .05 + .02',
    ):  # fmt: skip
        same(guard, database, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")


def test_sums_are_of_duckdbs_types(guard: Guard, database: duckdb.DuckDBPyConnection) -> None:
    columns = ("decimal", "wide", "integer", "hugeint", "double")
    sums = ", ".join(f'SUM("{name}") AS s{at}' for at, name in enumerate(columns))
    sql = f"SELECT {sums} FROM t"
    same(guard, database, sql)
    told = guard.query(sql).schema
    types = ["decimal128(38, 2)", "decimal128(38, 6)", "int64", "decimal128(38, 0)", "double"]
    assert [str(one) for one in told.types] == types
    assert guard.describe(sql).types == told.types
    same(guard, database, 'SELECT SUM("boolean"::INT) AS a, AVG("boolean"::INT) AS b, COUNT_IF("boolean") AS c FROM t')
    same(guard, database, 'SELECT SUM(-2 * "integer") AS a, SUM("tinyint" + 1) AS b FROM t')


@pytest.mark.parametrize("name", ["decimal", "wide", "hugeint", "double", "float", "utinyint"])
def test_means_and_medians(guard: Guard, database: duckdb.DuckDBPyConnection, name: str) -> None:
    (row,) = guard.query(f'SELECT AVG("{name}") AS a, MEDIAN("{name}") AS m FROM t').to_pylist()
    (true,) = database.execute(f'select avg("{name}"), median("{name}"::double) from t').fetchall()
    assert row["a"] == pytest.approx(float(true[0]), rel=0.02)
    assert float(row["m"]) == pytest.approx(float(true[1]), rel=0.05, abs=0.02)


BY_PATH = (
    ("SELECT st.city AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT st['city'] AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT struct_extract(st, 'city') AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT t.st.city AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT AVG(st.n.x) AS a FROM t WHERE st['n']['x'] > 2", None),
    ("SELECT mp['k'] AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT json->>'name' AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT json->>'$.name' AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT json_extract_string(json, '$.name') AS k, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY k", None),
    ("SELECT COUNT(*) AS n FROM t WHERE (json->>'age')::INT > 20", None),
    ("SELECT AVG((json->>'age')::BIGINT) AS a FROM t", "SELECT AVG(json.age) AS a FROM t"),
    (
        "SELECT COUNT(*) AS n FROM t WHERE (json->>'$.deep.\"a b\"')::BOOLEAN",
        'SELECT COUNT(*) AS n FROM t WHERE "json.deep.a b"',
    ),
)


@pytest.mark.parametrize(("sql", "asked"), BY_PATH)
def test_parts_by_path(guard: Guard, database: duckdb.DuckDBPyConnection, sql: str, asked: str | None) -> None:
    same(guard, database, sql, asked)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT st, COUNT(*) FROM t GROUP BY st",
        "SELECT COUNT(*) FROM t WHERE st.n = 1",
        "SELECT COUNT(*) FROM t WHERE json->>'secret' = 'x'",
        "SELECT COUNT(*) FROM t WHERE json->'name' = '\"n1\"'",
        "SELECT COUNT(*) FROM t WHERE li[1] = 1",
        "SELECT COUNT(*) FROM t WHERE \"time\" > '09:00'",
        'SELECT "interval", COUNT(*) FROM t GROUP BY ALL',
        "SELECT COUNT(*) FROM t WHERE TRY_CAST(json->>'name' AS INT) = 1",
        'SELECT COUNT(*) FROM t WHERE "varchar"::INT = 1',
        'SELECT SUM("bigint"::TINYINT) FROM t',
    ],
)
def test_what_is_not_declared_is_refused_by_the_text(guard: Guard, sql: str) -> None:
    with pytest.raises(Refused) as told:
        guard.query(sql)
    assert told.value.static


@pytest.mark.parametrize(
    "wrong", ["types: {json.age: 7}", "types: {age: BIGINT}", "types: {json.age: 'BIGINT); drop'}"]
)
def test_types_of_a_policy_are_checked(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError):
        guarded(tmp_path, {"t": rows()}, POLICY.replace("types: {json.age: BIGINT", wrong[:-1]), silent)


def test_a_path_that_leads_nowhere_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'st\.town'"):
        guarded(tmp_path, {"t": rows()}, POLICY.replace("st.city", "st.town"), silent)


def test_nobody_moves_a_measurement_of_any_type_beyond_its_reach(tmp_path: Path) -> None:
    """One person has the strangest value of each type: nothing fails, and nothing moves beyond its reach."""
    guard = guarded(tmp_path, {"t": rows(strange=True)}, POLICY, silent)
    with recorded() as wanted:
        for name in COLUMNS:
            column = f'"{name}"'
            if name in DATES:
                rows_of(guard, f"SELECT DATE_TRUNC('month', {column}), COUNT(*) FROM t GROUP BY 1")
                rows_of(guard, f"SELECT COUNT(*) FROM t WHERE {column} >= '2024-02-01'")
                continue
            rows_of(guard, f"SELECT {column}, COUNT(*) FROM t GROUP BY ALL")
            if name not in ("boolean", "varchar", "enum", "uuid", "date"):
                rows_of(guard, f"SELECT SUM({column}), MEDIAN({column}), STDDEV_POP({column}) FROM t")
                rows_of(guard, f"SELECT COUNT(*) FROM t WHERE {column} * {column} > 1.5")
        for path in PATHS:
            rows_of(guard, f'SELECT "{path}", COUNT(*) FROM t GROUP BY ALL')
        rows_of(guard, 'SELECT AVG("json.age"), MEDIAN("st.n.x") FROM t')
        rows_of(guard, "SELECT AVG(DATE_DIFF('day', \"date\", DATE '2024-06-01')) FROM t")
    assert len(wanted) > 40
    for person in (PEOPLE, 3):
        other = without(tmp_path / "db.duckdb", tmp_path / f"{person}.duckdb", person, {"t": "id"})
        for one, moved, reach in moves(guard, wanted, other):
            assert moved <= reach, (one.name, person, moved, reach)
