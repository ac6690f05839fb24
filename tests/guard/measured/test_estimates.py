"""Numbers of groups against the truth: right where noise is nothing, and as far off as they say where it is not."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from worlds_of_people import GENEROUS, engine_of, guarded, long_of, policy_of_raters, raters, rows_of, seeded

from kgather._guard.guard import Guard

FILMS = 4
PEOPLE = 2_000

POLICY = (
    policy_of_raters(FILMS, k=5, budget=GENEROUS)
    .replace("values: {", "values: {city: [Graz, Wien, Linz], ")
    .replace("artifacts: [", "artifacts: [city, ", 1)
    .replace("    dimensions: [city]\n", "", 1)
    + """joins:
  - ratings.user_id = people.user_id
"""
).replace(
    "principals:",
    """  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating]
    rows_per_person: 4
    values: {item_id: [1, 2, 3, 4], rating: [1, 2, 3, 4, 5]}
    bounds: {rating: [1, 5]}
principals:""",
)


@pytest.fixture(scope="module")
def precise(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    people = raters(PEOPLE, FILMS, 1)
    people["age"] = np.where(people["f0"].fillna(0) >= 4, 30, 50) + np.arange(PEOPLE) % 10
    tables = {"people": people, "ratings": long_of(people, FILMS)}
    return guarded(tmp_path_factory.mktemp("precise"), tables, POLICY, seeded(1))


def _true(guard: Guard, sql: str) -> list[dict[str, Any]]:
    with duckdb.connect(engine_of(guard).database.path, read_only=True) as con:
        found: list[dict[str, Any]] = con.sql(sql).to_arrow_table().to_pylist()
        return found


EXACT = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT f0, COUNT(*) AS n FROM people GROUP BY f0 ORDER BY f0",
    "SELECT f0, city, COUNT(*) AS n FROM people WHERE f0 >= 3 GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT COUNT(*) AS n FROM people WHERE f0 > 2 OR f1 IS NULL",
    "SELECT COUNT(*) AS n FROM people WHERE f0 = 1 OR (f1 = 2 AND f2 = 3) OR (f3 = 4 AND city = 'Graz')",
    "SELECT rating, COUNT(*) AS n FROM ratings GROUP BY rating ORDER BY rating",
    "SELECT item_id, rating, COUNT(*) AS n FROM ratings GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT COUNT(*) AS n FROM ratings WHERE item_id = 2 AND rating > 3",
    "SELECT item_id, COUNT(DISTINCT user_id) AS n FROM ratings GROUP BY item_id ORDER BY item_id",
    "SELECT n, COUNT(*) AS c FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) AS t GROUP BY n",
    "SELECT COUNT(*) AS n FROM people WHERE user_id IN (SELECT user_id FROM ratings WHERE rating = 1)",
    "SELECT COUNT(f1) AS n FROM people WHERE f0 = 2",
    "SELECT COUNT(*) AS n FROM ratings r JOIN people p USING (user_id) WHERE p.city = 'Graz'",
]


@pytest.mark.parametrize("sql", EXACT)
def test_counts_are_right_where_noise_is_nothing(precise: Guard, sql: str) -> None:
    found, true = rows_of(precise, sql), _true(precise, sql)
    assert found is not None
    counts, others = ({tuple(row.values())[:-1]: [*row.values()][-1] for row in rows} for rows in (found, true))
    assert counts.keys() == others.keys()
    for keys, count in counts.items():
        assert count == pytest.approx(others[keys], rel=0.02, abs=1.0), keys


MEANS = [
    ("SELECT AVG(age) AS m FROM people", 0.005),
    ("SELECT city, AVG(age) AS m FROM people GROUP BY city ORDER BY city", 0.005),
    ("SELECT SUM(salary) AS m FROM people WHERE f0 = 5", 0.02),
    ("SELECT AVG(age) AS m FROM people WHERE f0 >= 4 AND f1 >= 3", 0.05),
    ("SELECT AVG(f0) AS m FROM people WHERE f1 = 4", 0.02),
    ("SELECT STDDEV_POP(age) AS m FROM people", 0.05),
    ("SELECT item_id, AVG(rating) AS m FROM ratings GROUP BY item_id ORDER BY item_id", 0.01),
    ("SELECT AVG(rating) AS m FROM ratings WHERE item_id <> 3", 0.01),
]


@pytest.mark.parametrize(("sql", "near"), MEANS)
def test_means_are_near_where_noise_is_nothing(precise: Guard, sql: str, near: float) -> None:
    found, true = rows_of(precise, sql), _true(precise, sql)
    assert found is not None
    assert [row["m"] for row in found] == pytest.approx([float(row["m"]) for row in true], rel=near)


def test_a_mean_under_a_condition_on_itself_is_right_or_not_told(tmp_path: Path) -> None:
    """After many GROUP BYs, too."""
    people = raters(3_000, 4, 2)
    people["age"] = np.random.default_rng(2).integers(18, 90, 3_000)
    policy = policy_of_raters(4).replace("measures: [salary, age]", "measures: [salary]")
    policy = policy.replace("artifacts: [", "artifacts: [age, ")
    guard = guarded(tmp_path, {"people": people}, policy, seeded(3))
    for column in ("f0", "f1", "f2", "f3", "city"):
        rows_of(guard, f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}")
    rows = rows_of(guard, "SELECT AVG(age) AS m FROM people WHERE age >= 65")
    if rows is not None and rows[0]["m"] is not None:
        assert rows[0]["m"] == pytest.approx(people.loc[people["age"] >= 65, "age"].mean(), rel=0.03)


def test_standard_errors_say_how_far_numbers_are_off(tmp_path: Path) -> None:
    """Over many questions under the default budget: 95 of 100 are within three of their errors, and the errors are not
    much wider than what is off."""
    people = raters(3_000, FILMS, 7)
    guard = guarded(tmp_path, {"people": people}, policy_of_raters(FILMS), seeded(4))
    off = []
    questions = [f"SELECT f{a}, f{b}, COUNT(*) AS n FROM people GROUP BY 1, 2" for a in range(FILMS) for b in range(a)]
    questions += [f"SELECT f{a}, COUNT(*) AS n FROM people GROUP BY 1" for a in range(FILMS)]
    for sql in questions:
        answer = guard.answer(sql, errors=True)
        (errors,) = answer.errors.values()
        true = {tuple(row.values())[:-1]: row["n"] for row in _true(guard, sql)}
        keys = [name for name in errors.column_names if name.startswith("key_")]
        told = {tuple(row.values())[:-1]: row["n"] for row in answer.table.to_pylist()}
        for row in errors.to_pylist():
            of = tuple(row[name] for name in keys)
            assert row["value_1_error"] > 0
            assert row["value_1_kind"] == "measured"
            off.append((told[of] - true[of]) / row["value_1_error"])
    assert len(off) > 100
    assert np.mean(np.abs(off) < 3) >= 0.95
    assert 0.5 < np.sqrt(np.mean(np.square(off))) < 1.6


def test_values_that_are_not_told_apart_are_not_taken_for_others(tmp_path: Path) -> None:
    """NULL in a list is no value: nobody is told to be outside of it."""
    people = raters(400, 2, 1)
    policy = policy_of_raters(2, budget=GENEROUS).replace("f0: [1, 2, 3, 4, 5]", "f0: [5]")
    guard = guarded(tmp_path, {"people": people}, policy, seeded(1))
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people WHERE f0 NOT IN (5, NULL)") is None


def test_others_are_not_told_as_people_without_a_value(tmp_path: Path) -> None:
    """Where the value that is asked for is not told apart from others, the number is withheld or says how far off it
    may be: here most people have one of the four values, and none of them is listed."""
    people = raters(400, 2, 1)
    policy = policy_of_raters(2, budget=GENEROUS).replace("f0: [1, 2, 3, 4, 5]", "f0: [9]")
    guard = guarded(tmp_path, {"people": people}, policy, seeded(1))
    rows = rows_of(guard, "SELECT COUNT(*) AS n FROM people WHERE f0 NOT IN (1, 2, 3, 4)")
    true = int((people["f0"] == 5).sum())
    if rows is not None:
        answer = guard.answer("SELECT COUNT(*) AS n FROM people WHERE f0 NOT IN (1, 2, 3, 4)", errors=True)
        (errors,) = answer.errors.values()
        assert rows[0]["n"] is None or abs(rows[0]["n"] - true) < 3 * errors["value_1_error"].to_pylist()[0]
