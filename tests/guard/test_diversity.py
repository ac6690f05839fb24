"""Atoms keep l different values of what is sensitive, and numbers are rounded where the policy says so."""

from pathlib import Path

import duckdb
import pytest
from duck import insert

from kgather.guard import Guard, Refused

POLICY = """
version: 1
database: people.duckdb
k: 4
mode: exact
{more}
tables:
  people: {{privacy_unit: person, artifacts: [film], measures: [pay], dimensions: [illness]}}
principals: {{analyst: {{}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("create table people (person integer, film integer, pay double, illness varchar)")
        # Who gave film 1 has one illness; who gave film 2 has two, film 3 three.
        rows = [(film * 10 + at, film, 100 / 3 + at, f"i{at % film}") for film in (1, 2, 3) for at in range(6)]
        insert(con, "people", rows)
    return tmp_path


def _open(folder: Path, more: str = "") -> Guard:
    (folder / "guard.yml").write_text(POLICY.format(more=more), encoding="utf-8")
    return Guard.from_policy(folder / "guard.yml")


def test_who_all_have_one_illness_are_not_set_apart(folder: Path) -> None:
    guard = _open(folder, "diversity: {l: 2, columns: [people.illness]}")
    with pytest.raises(Refused) as refusal:
        guard.query("select avg(pay) from people where film = 1")
    assert not refusal.value.static
    assert guard.query("select count(*) from people where film = 3").to_pylist() == [{"count_star()": 6}]


def test_without_diversity_they_are(folder: Path) -> None:
    assert _open(folder).query("select count(*) as n from people where film = 1").to_pylist() == [{"n": 6}]


def test_numbers_are_rounded(folder: Path) -> None:
    [row] = (
        _open(folder, "round: 1").query("select avg(pay) as a, sum(pay) as s, count(*) as n from people").to_pylist()
    )
    assert row == {"a": 35.8, "s": 645.0, "n": 18}
