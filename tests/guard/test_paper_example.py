"""Table 1 of Riyana and Natwichai: the queries that reveal a salary, asked of the guard."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

ROOT = Path(__file__).parent.parent.parent
POLICY = """
version: 1
database: people.duckdb
k: 3
mode: {mode}
tables:
  recommendations:
    privacy_unit: user_id
    artifacts: [warcross, joy_ride, egomaniac, pachinko, geekerella]
    measures: [salary, age]
    dimensions: [marital_status, city, education]
aggregates: [COUNT, COUNT_DISTINCT, SUM, AVG{more}]
principals:
  analyst: {{}}
"""
ONE = "warcross is not null and egomaniac is not null and pachinko is not null and geekerella is not null"
SEVEN = "warcross is not null and joy_ride is not null and egomaniac is not null and geekerella is not null"
# Of three users, 31, 35 and 32 years old.
FIRST = "select avg(age) from recommendations where geekerella = 2"
OTHERS = [
    f"select count(*) from recommendations where {ONE}",
    f"select count(*) from recommendations where {SEVEN}",
    f"select avg(age) from recommendations where {ONE}",
    f"select avg(age) from recommendations where {SEVEN}",
    f"select max(marital_status) from recommendations where {ONE}",
    f"select max(city) from recommendations where {ONE}",
    f"select avg(salary) from recommendations where {ONE}",
    # As printed, query 1 is about two users.
    "select avg(age) from recommendations where egomaniac = 5",
]


@pytest.fixture
def guard(tmp_path: Path) -> Callable[[str], Guard]:
    with duckdb.connect(tmp_path / "people.duckdb") as con:
        con.execute(f"create table recommendations as from '{ROOT / 'fixtures' / 'recommendation_table.csv'}'")

    def opened(mode: str) -> Guard:
        (tmp_path / "guard.yml").write_text(
            POLICY.format(mode=mode, more=", MIN, MAX" if mode == "generalized" else ""), encoding="utf-8"
        )
        return Guard.from_policy(tmp_path / "guard.yml")

    return opened


def test_exact_answers_the_query_about_many_and_refuses_those_about_one(guard: Callable[[str], Guard]) -> None:
    asked = guard("exact")
    [row] = asked.query(FIRST).to_pylist()
    assert next(iter(row.values())) == pytest.approx(98 / 3)
    for query in OTHERS:
        with pytest.raises(Refused):
            asked.query(query)
    # A refusal changes nothing.
    assert asked.query(FIRST).to_pylist() == [row]


def test_the_salary_comes_out_of_no_answer_about_classes(guard: Callable[[str], Guard]) -> None:
    asked = guard("generalized")
    answered = 0
    for query in ["select count(*), avg(salary) from recommendations", FIRST, *OTHERS]:
        try:
            answer = asked.query(query).to_pylist()
        except Refused:
            continue
        answered += 1
        assert 42000 not in [value for row in answer for value in row.values()]
    assert answered


def test_generalized_answers_are_about_whole_classes(guard: Callable[[str], Guard]) -> None:
    # The classes of tables 2 and 3: users 1 to 3, 4 to 7 and 8 to 10. Some value of egomaniac is 5 in the second only.
    asked = guard("generalized")
    [row] = asked.query("select count(*) as n, avg(age) as a from recommendations where egomaniac = 5").to_pylist()
    assert row == {"n": 4, "a": pytest.approx((31 + 35 + 25 + 32) / 4)}
    # Every value of joy_ride is 4 in the third, and some is not rated in the first and the second.
    [row] = asked.query("select count(*) as n from recommendations where joy_ride = 4").to_pylist()
    assert row == {"n": 3}
