"""What is read of people when a guard opens, and when something is measured first."""

from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest
from worlds_of_people import engine_of, guarded, rows_of, silent

from kgather._guard.measured import database

POLICY = """version: 1
database: db.duckdb
k: 2
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  people:
    privacy_unit: who
    grain: unit
    artifacts: [stars]
    bounds: {stars: [1, 5]}
principals:
  a: {}
"""
STARS = "SELECT stars, COUNT(*) AS n FROM people GROUP BY stars"


def _told(rows: list[dict]) -> dict[int, int]:
    return {row["stars"]: row["n"] for row in rows}


def test_ids_are_looked_at_once_and_not_at_opening(tmp_path: Path) -> None:
    tables = {"people": "select range as who, 1 + range % 5 as stars from range(1000)"}
    looked = []
    is_repeated = database.is_repeated

    def noted(con: duckdb.DuckDBPyConnection, relation: str, name: str) -> bool:
        looked.append(relation)
        return is_repeated(con, relation, name)

    with patch.object(database, "is_repeated", noted):
        guard = guarded(tmp_path, tables, POLICY, silent)
        assert looked == []
        assert _told(rows_of(guard, STARS)) == dict.fromkeys(range(1, 6), 200)
        assert len(looked) == 1
        rows_of(guard, "SELECT COUNT(*) AS n FROM people")
        assert len(looked) == 1


@pytest.mark.parametrize("key", ["primary key", "unique"])
@pytest.mark.parametrize("type_", ["integer", "varchar"])
def test_a_key_of_the_database_is_taken_at_its_word(tmp_path: Path, key: str, type_: str) -> None:
    with duckdb.connect(tmp_path / "db.duckdb") as con:
        con.execute(f"create table people (who {type_} {key}, stars integer)")
        con.execute("insert into people select range, 1 + range % 5 from range(1000)")
    with patch.object(database, "is_repeated", side_effect=AssertionError("read")):
        guard = guarded(tmp_path, None, POLICY, silent)
        assert _told(rows_of(guard, STARS)) == dict.fromkeys(range(1, 6), 200)


def test_a_key_of_several_columns_is_no_key_of_people(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "db.duckdb") as con:
        con.execute("create table people (who integer, stars integer, primary key (who, stars))")
        con.execute("insert into people select range, 1 + range % 5 from range(1000)")
        con.execute("insert into people values (0, 5), (1, 5), (2, 5), (3, 5)")
    guard = guarded(tmp_path, None, POLICY, silent)
    assert sum(_told(rows_of(guard, STARS)).values()) == 1_000
    [people] = engine_of(guard).kinds.values()
    assert [*people.database._repeated.values()] == [frozenset({"people"})]


def test_a_measurement_shows_no_progress(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": "select range as who, 1 as stars from range(10)"}, POLICY, silent)
    with engine_of(guard).database.reading() as reading:
        ((shown,),) = reading.con.execute("select current_setting('enable_progress_bar')").fetchall()
    assert shown is False
