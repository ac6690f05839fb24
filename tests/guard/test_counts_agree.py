"""Counts of people and counts of rows of which each has one are the same counts, whatever the question's form."""

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
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  wide:
    privacy_unit: person
    pivot_of: {table: long, key: item, value: rating, names: {1: film, 2: book}}
    artifacts: [film, book]
    measures: [age]
  long: {privacy_unit: person, artifacts: [item, rating]}
joins: [long.person = wide.person]
principals: {analyst: {}}
"""


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    rng = np.random.default_rng(1)
    film, book = rng.integers(1, 6, 200), rng.integers(1, 6, 200)
    # One person alone gave 5 and 4.
    film[film == 5], film[:12] = 4, 5
    book[:11], book[11] = 2, 4
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute("create table wide (person integer, film integer, book integer, age integer)")
        insert(
            con,
            "wide",
            [(person, int(film[person]), int(book[person]), 20 + person % 60) for person in range(200)],
        )
        con.execute(
            "create table long as select person, 1 as item, film as rating from wide "
            "union all select person, 2, book from wide"
        )
    (tmp_path / "guard.yml").write_text(POLICY, encoding="utf-8")
    return Guard.from_policy(tmp_path / "guard.yml")


def _one(guard: Guard, sql: str) -> list[float]:
    return list(guard.query(sql).to_pylist()[0].values())


def test_values_that_are_there_are_as_many_whether_people_or_rows_are_asked_for(guard: Guard) -> None:
    [first] = _one(guard, "select count(film) from wide where film = 5")
    [second] = _one(guard, "select count(*) from long where item = 1 and rating = 5")
    assert first == second == 12


def test_rows_of_one_item_are_as_many_as_the_people_who_have_one(guard: Guard) -> None:
    rows, people = _one(guard, "select count(*), count(distinct l.person) from long l where item = 1 and rating >= 2")
    assert rows == people


def test_a_sum_says_the_same_number_of_rows_as_a_count(guard: Guard) -> None:
    count, total, mean = _one(guard, "select count(film), sum(film), avg(film) from wide where book <= 3")
    assert total / mean == pytest.approx(count, rel=0.05)


def test_values_of_people_joined_to_one_row_each_are_as_many_as_the_rows(guard: Guard) -> None:
    rows, total, mean = _one(
        guard,
        "select count(*), sum(w.age), avg(w.age) from long l join wide w using (person) "
        "where l.item = 2 and l.rating = 3",
    )
    assert total / mean == pytest.approx(rows, rel=0.05)
