"""Keys that are computed from values which are not all told apart: nobody is missing in their groups."""

from dataclasses import dataclass

import duckdb
import pytest
from guard_data import rows_of
from worlds_of_people import GENEROUS, guarded, silent

from kgather._guard.guard import Guard

POLICY = f"""version: 1
database: db.duckdb
k: 10
{GENEROUS}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [city, town, n, member]
    coarsened: {{day: day}}
    values: {{town: [c1, c2]}}
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [city, town]
    values: {{town: [c1, c2]}}
    rows_per_person: 2
joins: [people.user_id = visits.user_id]
principals: {{a: {{}}}}
"""
# A third of the people live in towns that nobody else lives in.
CITY = "case when i % 3 = 0 then 'c1' when i % 3 = 1 then 'c2' else 't' || i end"
TABLES = {
    "people": f"select i as user_id, {CITY} as city, {CITY} as town, (i * 7) % 400 as n, i % 4 = 0 as member, "
    "date '2024-01-01' + (i % 365)::int as day from range(2000) t(i)",
    "visits": f"select i % 1000 as user_id, {CITY} as city, {CITY} as town from range(2000) t(i)",
}


@dataclass
class Asked:
    """A guard without noise, and the database."""

    guard: Guard
    database: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("computed")
    guard = guarded(folder, TABLES, POLICY, silent)
    database = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    database.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    database.execute("use source")
    return Asked(guard, database)


@pytest.mark.parametrize("column", ["city", "town"])
@pytest.mark.parametrize("table", ["people", "visits"])
@pytest.mark.parametrize(
    "key",
    [
        "CASE WHEN {0} = 'c1' THEN 'one' ELSE 'rest' END",
        "CASE {0} WHEN 'c1' THEN 'one' WHEN 'c2' THEN 'two' ELSE 'rest' END",
        "{0} = 'c1'",
        "{0} IN ('c1', 'c2')",
        "{0} IS NOT NULL AND {0} <> 'c2'",
    ],
)
def test_the_rest_is_everybody_else(asked: Asked, key: str, table: str, column: str) -> None:
    sql = f"SELECT {key.format(column)} AS x, COUNT(*) AS n FROM {table} GROUP BY 1"
    wanted = asked.database.execute(sql).fetchall()
    assert rows_of([tuple(row.values()) for row in asked.guard.query(sql).to_pylist()]) == rows_of(wanted)


@pytest.mark.parametrize(
    "key",
    [
        *("LEFT(city, 1)", "UPPER(LEFT(city, 1))", "LENGTH(city)", "n > 100", "n % 2", "n > 100 AND city = 'c1'"),
        "CASE WHEN n > 100 THEN 'big' WHEN n > 50 THEN 'middle' ELSE 'small' END",
        *("day > DATE '2024-06-01'", "DATE_DIFF('day', day, DATE '2025-01-01') > 100"),
        "CASE WHEN day > DATE '2024-06-01' THEN 'late' ELSE 'early' END",
        "CASE WHEN member THEN 'yes' ELSE 'no' END",
    ],
)
def test_keys_of_values_that_are_not_told_apart(asked: Asked, key: str) -> None:
    sql = f"SELECT {key} AS x, COUNT(*) AS n FROM people GROUP BY 1"
    wanted = asked.database.execute(sql).fetchall()
    assert rows_of([tuple(row.values()) for row in asked.guard.query(sql).to_pylist()]) == rows_of(wanted)


def test_who_is_beside_a_list_is_in_the_error_where_no_one_knows_the_group(asked: Asked) -> None:
    """Who is in a town that is not listed may be in any of these groups."""
    answer = asked.guard.answer("SELECT UPPER(LEFT(town, 1)) AS x, COUNT(*) AS n FROM people GROUP BY 1")
    (errors,) = answer.errors.values()
    (error,) = (value for name in errors.column_names if name.endswith("_error") for value in errors[name].to_pylist())
    assert error >= 400


def test_a_constant_beside_a_list_may_be_what_others_have(asked: Asked) -> None:
    """Who lives in t2 is not listed: nobody knows who of the others does, so none of them is in the rest."""
    answer = asked.guard.answer(
        "SELECT CASE WHEN town = 't2' THEN 1 ELSE 0 END AS x, COUNT(*) AS n FROM people GROUP BY 1"
    )
    (errors,) = answer.errors.values()
    (error,) = (value for name in errors.column_names if name.endswith("_error") for value in errors[name].to_pylist())
    assert error >= 400


def test_a_key_that_keeps_values_apart_costs_nothing_once_they_are_known(asked: Asked) -> None:
    asked.guard.query("SELECT city, COUNT(*) AS n FROM people GROUP BY 1")
    for key in ("COALESCE(city, 'none')", "city || '!'"):
        answer = asked.guard.answer(f"SELECT {key} AS x, COUNT(*) AS n FROM people GROUP BY 1")
        assert sorted(answer.table["n"].to_pylist()) == [667, 667]
        assert answer.cost == 0
