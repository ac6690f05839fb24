"""How far off an answer made of atoms may be, on request."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from duck import insert

from kgather.guard import Guard

POLICY = """
version: 1
database: people.duckdb
k: 5
mode: {mode}
tables:
  people: {{privacy_unit: person, artifacts: [film, book], measures: [age], dimensions: [town]}}
principals: {{analyst: {{}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("create table people (person integer, film integer, book integer, age integer, town varchar)")
        rows = [
            (person, int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(18, 80)), f"t{person % 3}")
            for person in range(400)
        ]
        insert(con, "people", rows)
    return tmp_path


def _open(folder: Path, mode: str) -> Guard:
    (folder / "guard.yml").write_text(POLICY.format(mode=mode), encoding="utf-8")
    return Guard.from_policy(folder / "guard.yml")


def test_nothing_belongs_elsewhere_in_mode_exact(folder: Path) -> None:
    answer = _open(folder, "exact").answer("select town, count(*) from people group by town", errors=True)
    [shares] = answer.errors.values()
    assert shares.to_pylist() == [{"key_1": f"t{at}", "uncertain": 0.0} for at in range(3)]


def test_errors_are_given_on_request_only_and_change_no_answer(folder: Path) -> None:
    guard, sql = _open(folder, "exact"), "select count(*) as n, avg(age) as a from people where film >= 3"
    first = guard.answer(sql)
    assert first.errors == {}
    again = guard.answer(sql, errors=True)
    assert again.table.equals(first.table)
    assert again.errors
    # Remembered, too.
    assert guard.answer(sql, errors=True).errors == again.errors


@pytest.mark.parametrize("film", range(1, 6))
def test_classes_are_off_by_no_more_than_those_that_meet_a_condition_in_part(folder: Path, film: int) -> None:
    guard, sql = _open(folder, "generalized"), f"select count(*) as n from people where film >= {film}"
    with duckdb.connect(folder / "people.duckdb", read_only=True) as con:
        [[true]] = con.sql(sql).fetchall()
    answer = guard.answer(sql, errors=True)
    [[share]] = [table["uncertain"].to_pylist() for table in answer.errors.values()]
    [told] = answer.table["n"].to_pylist()
    assert abs(told - true) <= share * told
