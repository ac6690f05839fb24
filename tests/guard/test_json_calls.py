"""PostgreSQL's functions that make JSON, over answers and public tables only."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from guard_files import AMPLE, write_files

from kgather._guard.guard import Answer, Guard
from kgather._guard.json_calls import is_marked
from kgather._guard.refused import Refused

Ask = Callable[[str], Answer]
ANSWER = "(SELECT city, COUNT(*) AS n FROM ratings_wide GROUP BY city) AS a"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    folder: Path = tmp_path_factory.mktemp("json")
    return Guard.from_policy(write_files(folder, budget=AMPLE))


@pytest.fixture(scope="module")
def ask(guard: Guard) -> Ask:
    return guard.answer


@pytest.fixture(scope="module")
def rows(ask: Ask) -> list[dict[str, object]]:
    """The answer that JSON is made of."""
    found: list[dict[str, object]] = ask(f"SELECT * FROM {ANSWER} ORDER BY city").table.to_pylist()
    assert len(found) >= 3
    return found


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("json_agg(a ORDER BY city)", "json_agg"),
        ("jsonb_agg(a ORDER BY a.city)", "jsonb_agg"),
        ("json_agg(json_build_object('city', city, 'n', n) ORDER BY city)", "json_agg"),
        ("array_to_json(array_agg({'city': city, 'n': n} ORDER BY city))", "array_to_json"),
        ("to_json(list(to_jsonb(a) ORDER BY city))", "to_json"),
        ("coalesce(json_agg(a ORDER BY city) FILTER (n > 0), '[]')", "coalesce"),
    ],
)
def test_rows_as_one_value(ask: Ask, rows: list[dict[str, object]], call: str, name: str) -> None:
    answer = ask(f"SELECT {call} FROM {ANSWER}")
    assert answer.labels == (name,)
    assert is_marked(answer.table.schema.field(0))
    (found,) = answer.table.column(0).to_pylist()
    assert json.loads(found) == rows


@pytest.mark.parametrize(
    "call",
    ["row_to_json(a)", "to_json(a)", "json_build_object('city', city, 'n', n)", "json_object('city', city, 'n', n)"],
)
def test_a_row_as_a_value(ask: Ask, rows: list[dict[str, object]], call: str) -> None:
    found = ask(f"SELECT {call} AS j FROM {ANSWER} ORDER BY city").table
    assert found.column_names == ["j"]
    assert [json.loads(one) for one in found["j"].to_pylist()] == rows


def test_over_aggregates_of_people(ask: Ask, rows: list[dict[str, object]]) -> None:
    sql = "SELECT json_build_array(city, count(*)) AS j FROM ratings_wide GROUP BY city ORDER BY city"
    found = ask(sql).table["j"].to_pylist()
    assert [json.loads(one) for one in found] == [list(row.values()) for row in rows]


def test_what_is_json_says_so(ask: Ask, guard: Guard) -> None:
    """A sub-select passes it on by a star; text of it is text. It is described as it is answered."""
    sql = f"SELECT * FROM (SELECT json_agg(n) AS j, json_agg(n)::VARCHAR AS t, count(*) AS c FROM {ANSWER}) AS b"
    answer = ask(sql)
    assert [is_marked(field) for field in answer.table.schema] == [True, False, False]
    assert answer.table.schema.types == [pa.string(), pa.string(), pa.int64()]
    described = guard.describe(sql)
    assert [is_marked(field) for field in described] == [True, False, False]


def test_rows_of_public_tables_and_of_with(ask: Ask, rows: list[dict[str, object]]) -> None:
    titles = ask("SELECT * FROM items ORDER BY item_id").table.to_pylist()
    (found,) = ask("SELECT json_agg(i ORDER BY item_id) FROM items AS i").table.column(0).to_pylist()
    assert json.loads(found) == titles
    (found,) = ask(f"WITH q AS (SELECT city, n FROM {ANSWER}) SELECT json_agg(q ORDER BY city) FROM q").table.column(0)
    assert json.loads(found.as_py()) == rows


def test_a_column_comes_before_a_row(ask: Ask) -> None:
    (found,) = ask("SELECT json_agg(a ORDER BY a) FROM (SELECT item_id AS a, title FROM items) AS a").table.column(0)
    assert json.loads(found.as_py())[:2] == [1, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT json_agg(age) FROM ratings_wide",
        "SELECT json_agg(r) FROM ratings_wide AS r",
        "SELECT row_to_json(r) FROM ratings_wide AS r",
        "SELECT to_json(age) FROM ratings_wide",
        "SELECT json_build_object('a', age) FROM ratings_wide",
        "SELECT json_build_object('a', age, 'n', count(*)) FROM ratings_wide",
        "SELECT count(*) FROM ratings_wide WHERE to_json(age) = '30'",
        "SELECT count(*) FROM ratings_wide GROUP BY to_json(city)",
        "SELECT max(to_json(age)) FROM ratings_wide",
        "SELECT json_agg(r) FROM (SELECT * FROM ratings_wide) AS r",
        "SELECT json_agg(r) FROM (SELECT age FROM ratings_wide) AS r",
        "SELECT (SELECT json_agg(r) FROM (SELECT salary FROM ratings_wide) AS r) AS j",
        "SELECT json_agg(u) FROM users AS u JOIN items AS i ON u.user_id = i.item_id",
        "SELECT json_agg(a) FROM (SELECT city, COUNT(*) FROM ratings_wide GROUP BY city) AS a",
        "SELECT json_agg(a) FROM (SELECT * FROM items) AS a",
        "SELECT json_agg(a) FROM (SELECT item_id, title FROM items) AS a(b, c)",
        "SELECT row_to_json(i, true) FROM items AS i",
        "SELECT json_agg(i.item_id, i.title) FROM items AS i",
        "SELECT json_object_agg(title, item_id) FROM items",
        "SELECT json_object('a': 1 ABSENT ON NULL)",
        "SELECT json_build_object('a')",
        "SELECT read_json('x')",
    ],
)
def test_rows_of_people_and_what_is_not_known_are_refused(ask: Ask, sql: str) -> None:
    with pytest.raises(Refused):
        ask(sql)
