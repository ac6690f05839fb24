"""How far off an answer may be, on request."""

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


def _open(folder: Path, mode: str = "adaptive") -> Guard:
    (folder / "guard.yml").write_text(POLICY.format(mode=mode), encoding="utf-8")
    return Guard.from_policy(folder / "guard.yml")


def test_what_is_cut_cleanly_is_off_by_the_noise_only(folder: Path) -> None:
    answer = _open(folder).answer("select town, count(*) from people group by town", bounds=True)
    [shares] = answer.uncertain.values()
    assert sorted(shares.column(0).to_pylist()) == ["t0", "t1", "t2"]
    assert all(0 < share <= 0.05 for share in shares["uncertain"].to_pylist())


def test_the_error_lies_within_the_bound(folder: Path) -> None:
    guard = _open(folder)
    with duckdb.connect(folder / "people.duckdb", read_only=True) as con:
        for film, book in ((film, book) for film in range(1, 6) for book in range(1, 6)):
            sql = f"select count(*) as n from people where film = {film} and book >= {book} or book = {6 - film}"
            answer = guard.answer(sql, bounds=True)
            [share] = [table["uncertain"].to_pylist() for table in answer.uncertain.values()]
            told, true = answer.table["n"].to_pylist()[0], con.sql(sql).fetchall()[0][0]
            # The bound itself has noise of one person.
            assert abs(told - true) <= share[0] * told + 4


def test_bounds_are_given_on_request_only_and_change_no_answer(folder: Path) -> None:
    guard, sql = _open(folder), "select count(*) as n, avg(age) as a from people where film >= 3"
    first = guard.answer(sql)
    assert first.uncertain == {}
    again = guard.answer(sql, bounds=True)
    assert again.table.equals(first.table)
    assert again.uncertain
    # Remembered, too.
    assert guard.answer(sql, bounds=True).uncertain == again.uncertain


def test_classes_are_off_by_those_that_meet_a_condition_in_part(folder: Path) -> None:
    guard = _open(folder, "generalized")
    answer = guard.answer("select count(*) from people where film >= 3", bounds=True)
    [share] = [table["uncertain"].to_pylist() for table in answer.uncertain.values()]
    assert 0 <= share[0] <= 1
