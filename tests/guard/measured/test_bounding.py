"""What is told of rows that are not counted in full: an error that covers what is missing, and a sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from worlds_of_people import GENEROUS, guarded, rows_of, seeded, silent

from kgather._guard.guard import Guard
from kgather._guard.measured.bounding import spread_of

POLICY = """version: 1
database: db.duckdb
k: 5
{budget}
tables:
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [kind, grade]
    values: {{kind: [a, b, c, d]}}
    bounds: {{grade: [1, 5]}}
    rows_per_person: {most}
principals:
  a: {{}}
"""
WHOLE = "SELECT COUNT(*) AS n FROM visits"
KINDS = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"


def visits(people: int, seed: int) -> pd.DataFrame:
    """Rows of people of whom few have many (a distribution with a heavy tail), who give better grades."""
    rng = np.random.default_rng(seed)
    many = np.minimum(np.ceil(rng.pareto(1.2, people) * 8 + 1), 600).astype(int)
    ids = np.repeat(np.arange(people), many)
    grade = np.clip(rng.normal(3.0 + 0.5 * (np.repeat(many, many) > 40), 1.0), 1, 5).round()
    return pd.DataFrame({"user_id": ids, "kind": rng.choice([*"abcd"], len(ids)), "grade": grade.astype(int)})


def opened(folder: Path, rows: pd.DataFrame, most: int, budget: str = GENEROUS) -> Guard:
    return guarded(folder, {"visits": rows}, POLICY.format(most=most, budget=budget), seeded(3))


@pytest.mark.parametrize("most", [4, 20, 50])
def test_counts_hold_what_is_missing_on_average(tmp_path: Path, most: int) -> None:
    """With next to no noise, all of the error is rows that are not counted."""
    rows = visits(4_000, 1)
    assert rows.groupby("user_id").head(most).shape[0] < 0.85 * len(rows)
    guard = opened(tmp_path, rows, most)
    for sql, true in ((WHOLE, {None: len(rows)}), (KINDS, rows.groupby("kind").size().to_dict())):
        answer = guard.answer(sql, errors="columns")
        told = {row.get("kind"): row for row in answer.table.to_pylist()}
        assert set(told) == set(true)
        for key, row in told.items():
            off = abs(true[key] - row["n"])
            assert off < min(2.5 * row["n_error"], 0.2 * true[key])
            assert row["n_error"] < 0.5 * true[key]
            assert row["n_kind"] == "measured, bounded"
        assert answer.notes[0].endswith(
            "Rows of people who have many are not counted in full: counts and sums of rows are corrected for what is "
            "missing on average, and means lean towards people with few rows."
        )


def test_sums_hold_what_is_missing_on_average(tmp_path: Path) -> None:
    rows = visits(4_000, 1)
    answer = opened(tmp_path, rows, 10).answer("SELECT SUM(grade) AS n FROM visits", errors="columns")
    (row,) = answer.table.to_pylist()
    assert abs(row["n"] - rows["grade"].sum()) < min(2.5 * row["n_error"], 0.2 * rows["grade"].sum())


def test_the_error_of_a_mean_tells_that_those_with_many_rows_may_differ(tmp_path: Path) -> None:
    rows = visits(4_000, 2)
    (row,) = opened(tmp_path, rows, 10).answer("SELECT AVG(grade) AS m FROM visits", errors="columns").table.to_pylist()
    assert 0.02 < abs(row["m"] - rows["grade"].mean()) < 2.5 * row["m_error"] < 1.0
    assert row["m_kind"] == "measured, bounded"


@pytest.mark.parametrize(("usual", "most"), [(60, 64), (13, 16), (6, 8), (30, 16), (44, 50)])
def test_people_with_a_few_rows_more_are_not_taken_for_twice_as_many(tmp_path: Path, usual: int, most: int) -> None:
    """Where most have about as many rows as are counted, what is added for those who have more is little."""
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(1_500), rng.poisson(usual, 1_500))
    rows = pd.DataFrame({"user_id": ids, "kind": rng.choice([*"abcd"], len(ids)), "grade": 3})
    guard = guarded(tmp_path, {"visits": rows}, POLICY.format(most=most, budget=GENEROUS), silent)
    for sql, true in (
        (WHOLE, len(rows)),
        ("SELECT COUNT(*) AS n FROM visits WHERE kind IN ('a', 'b')", int(rows["kind"].isin(["a", "b"]).sum())),
        ("SELECT COUNT(*) AS n FROM visits WHERE upper(kind) = 'A' OR grade > 4", int((rows["kind"] == "a").sum())),
    ):
        (row,) = guard.query(sql).to_pylist()
        assert abs(row["n"] - true) < 0.03 * true


PEOPLE = """version: 1
database: db.duckdb
k: 5
{budget}
tables:
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [kind]
    values: {{kind: [a, b, c, d]}}
    rows_per_person: {most}
  people: {{privacy_unit: user_id, grain: unit, artifacts: [town], values: {{town: [Graz, Linz, Wien]}}}}
joins: [visits.user_id = people.user_id]
principals:
  a: {{}}
"""
JOINED = "FROM visits JOIN people ON visits.user_id = people.user_id"


@pytest.mark.parametrize("most", [4, 20])
@pytest.mark.parametrize("by", ["town", "kind", "town and kind"])
def test_all_rows_of_a_person_are_with_what_is_the_persons_own(tmp_path: Path, most: int, by: str) -> None:
    """By town, nobody's rows are spread over several groups, as by kind they are: more of them is missing."""
    rows = visits(4_000, 1)
    people = pd.DataFrame(
        {"user_id": range(4_000), "town": np.random.default_rng(1).choice(["Graz", "Linz", "Wien"], 4_000)}
    )
    tables = {"visits": rows, "people": people}
    guard = guarded(tmp_path, tables, PEOPLE.format(most=most, budget=GENEROUS), seeded(3))
    keys = by.split(" and ")
    listed = ", ".join(keys)
    answer = guard.answer(f"SELECT {listed}, COUNT(*) AS n {JOINED} GROUP BY {listed}", errors="columns")
    true = rows.merge(people, on="user_id").groupby(keys).size()
    told = answer.table.to_pylist()
    assert len(told) == len(true)
    for row in told:
        number = true[tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]]
        assert abs(row["n"] - number) < min(2.5 * row["n_error"], 0.25 * number)
        assert row["n_kind"] == "measured, bounded"


def test_where_all_rows_are_counted_nothing_is_said(tmp_path: Path) -> None:
    rows = visits(4_000, 1)
    answer = opened(tmp_path, rows, 600).answer(WHOLE, errors="columns")
    (row,) = answer.table.to_pylist()
    assert abs(row["n"] - len(rows)) <= 5 * row["n_error"] < 0.01 * len(rows)
    assert row["n_kind"] == "measured"
    assert "not counted in full" not in answer.notes[0]


def test_what_is_missing_hides_no_group(tmp_path: Path) -> None:
    """Most rows are missing, and there are people enough."""
    rows = visits(4_000, 1)
    told = rows_of(opened(tmp_path, rows, 1), KINDS) or []
    assert {row["kind"] for row in told} == {*"abcd"}


def test_people_are_counted_in_full(tmp_path: Path) -> None:
    rows = visits(4_000, 1)
    answer = opened(tmp_path, rows, 4).answer("SELECT COUNT(DISTINCT user_id) AS n FROM visits", errors="columns")
    (row,) = answer.table.to_pylist()
    assert (row["n"], row["n_kind"]) == (4_000, "measured")


def test_noise_hides_who_has_many_rows_and_may_not_hide_that_it_does(tmp_path: Path) -> None:
    """At the default budget the few who have many rows are hidden; some may be there, and the error has room."""
    rows = visits(200, 4).groupby("user_id").head(100)
    guard = opened(tmp_path, rows, 50, "")
    (row,) = guard.answer(WHOLE, errors="columns").table.to_pylist()
    assert abs(len(rows) - row["n"]) < 2.5 * row["n_error"]


def test_no_noise_and_no_long_rows(tmp_path: Path) -> None:
    rows = visits(300, 5).groupby("user_id").head(10)
    guard = guarded(tmp_path, {"visits": rows}, POLICY.format(most=10, budget=GENEROUS), silent)
    (row,) = guard.answer(WHOLE, errors="columns").table.to_pylist()
    assert (row["n"], row["n_kind"]) == (len(rows), "measured")


@pytest.mark.parametrize(
    ("cells", "spread"), [([8.0], 1.0), ([4.0, 4.0, 4.0, 4.0], 0.5), ([3.0, -1.0, 4.0], 5 / 7), ([], 1.0)]
)
def test_spread(cells: list[float], spread: float) -> None:
    assert spread_of(np.array(cells)) == pytest.approx(spread)
