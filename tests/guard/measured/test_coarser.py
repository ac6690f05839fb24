"""Dates of a question are cut no finer than it needs, and it means the same."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._guard.catalog import Catalog
from kgather._guard.guard import Guard
from kgather._guard.measured.coarser import coarser
from kgather._guard.measured.features import asked
from kgather._guard.plan import Question
from kgather._guard.planner import plan
from kgather._guard.policy import load_policy, parse_policy
from kgather._guard.render import expression

POLICY = """
version: 1
database: data.duckdb
k: 10
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [city, salary]
    values: {{city: [a, b, c]}}
    bounds: {{salary: [0, 100000]}}
    coarsened: {{joined: {grain}}}
principals: {{analyst: {{}}}}
"""
SCHEMA = {"people": {"user_id": "BIGINT", "city": "VARCHAR", "salary": "DOUBLE", "joined": "DATE"}}


def catalog(grain: str) -> Catalog:
    return Catalog.of(parse_policy(POLICY.format(grain=grain)), SCHEMA)


def question(sql: str, grain: str) -> Question:
    (block,) = plan(sql, catalog(grain)).blocks  # type: ignore[union-attr]
    return block.question


def features(sql: str, grain: str) -> list[str]:
    return sorted(feature.name for feature in asked(question(sql, grain), catalog(grain)).features)


@pytest.mark.parametrize("grain", ["day", "month"])
@pytest.mark.parametrize(
    ("sql", "cut"),
    [
        ("SELECT YEAR(joined), COUNT(*) FROM people GROUP BY 1", "year"),
        ("SELECT STRFTIME(joined, '%Y'), COUNT(*) FROM people GROUP BY 1", "year"),
        ("SELECT COUNT(*) FROM people WHERE joined >= DATE '2021-01-01' AND joined < DATE '2023-01-01'", "year"),
        ("SELECT COUNT(*) FROM people WHERE joined BETWEEN DATE '2021-01-01' AND DATE '2021-12-31'", "year"),
        ("SELECT YEAR(joined), COUNT(*) FROM people WHERE joined >= DATE '2021-03-01' GROUP BY 1", "month"),
        ("SELECT MONTH(joined), COUNT(*) FROM people WHERE YEAR(joined) = 2021 GROUP BY 1", "month"),
        ("SELECT COUNT(*) FROM people WHERE joined < DATE '2021-06-01'", "month"),
    ],
)
def test_a_date_is_cut_no_finer_than_it_has_to_be(sql: str, cut: str, grain: str) -> None:
    (name,) = features(sql, grain)
    assert f"'{cut}'" in name


def test_days_stay_days() -> None:
    for sql in (
        "SELECT COUNT(*) FROM people WHERE joined < DATE '2021-06-02'",
        "SELECT DAYOFWEEK(joined), COUNT(*) FROM people GROUP BY 1",
        "SELECT DATE_TRUNC('day', joined), COUNT(*) FROM people WHERE YEAR(joined) = 2021 GROUP BY 1",
        "SELECT COUNT(*) FROM people WHERE joined = DATE '2021-01-01'",
    ):
        (name,) = features(sql, "day")
        assert "'day'" in name, sql


DAYS = st.dates(date(2019, 12, 28), date(2022, 1, 4))
ENDS = st.one_of(st.sampled_from([date(y, m, 1) for y in (2020, 2021) for m in (1, 2, 12)]), DAYS)
TERMS = st.one_of(
    st.builds("joined >= DATE '{}'".format, ENDS),
    st.builds("joined < DATE '{}'".format, ENDS),
    st.builds("joined <= DATE '{}'".format, ENDS),
    st.builds("joined > DATE '{}'".format, ENDS),
    st.builds("DATE '{}' <= joined".format, ENDS),
    st.builds("DATE '{}' > joined".format, ENDS),
    st.builds("joined BETWEEN DATE '{}' AND DATE '{}'".format, ENDS, ENDS),
    st.builds("YEAR(joined) = {}".format, st.integers(2019, 2022)),
    st.builds("MONTH(joined) <> {}".format, st.integers(1, 12)),
    st.builds("joined = DATE '{}'".format, ENDS),
    st.just("joined IS NOT NULL"),
    st.just("NOT joined IS NULL"),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(TERMS, min_size=1, max_size=3), st.sampled_from([" AND ", " OR "]), st.lists(DAYS, max_size=30))
def test_what_is_asked_stays_the_same(terms: Sequence[str], joined_by: str, days: Sequence[date]) -> None:
    """For any dates, as DuckDB computes it; all the days about each end are among them."""
    sql = f"SELECT YEAR(joined), COUNT(*) FROM people WHERE {joined_by.join(f'({term})' for term in terms)} GROUP BY 1"
    of = question(sql, "day")
    condition, keys = coarser(of.condition, of.keys)
    about = [date(y, m, 1) + timedelta(days=step) for y in (2020, 2021, 2022) for m in (1, 12) for step in (-1, 0, 1)]
    with duckdb.connect() as con:
        con.execute("create table people (user_id bigint, joined date)")
        con.executemany("insert into people values (1, ?)", [[day] for day in [*days, *about, None]])
        before, after = (
            con.execute(
                f"select {expression(one, _unit)}, {', '.join(expression(key, _unit) for key in more)} from people"
            ).fetchall()
            for one, more in ((of.condition, of.keys), (condition, keys))
        )
    assert before == after


def _unit(table: str) -> str:
    del table
    return "user_id"


def opened(folder: Path, grain: str, people: int) -> Guard:
    with duckdb.connect(folder / "data.duckdb") as con:
        con.execute(
            "create table people as select i as user_id, ['a', 'b', 'c'][1 + i % 3] as city,"
            " (hash(i, 's') % 90000)::double as salary, date '2019-01-01' + (hash(i) % 1800)::integer as joined"
            f" from range({people}) t(i)"
        )
    (folder / "guard.yml").write_text(POLICY.format(grain=grain))
    rng = np.random.default_rng(3)
    noise: Any = lambda count, sd: np.rint(rng.normal(size=count) * sd).astype(np.int64)  # noqa: E731
    return Guard(load_policy(folder / "guard.yml"), folder, noise=noise)


@pytest.mark.parametrize("grain", ["day", "month"])
def test_years_are_whole_where_months_are_too_small_to_be_shown(tmp_path: Path, grain: str) -> None:
    """A thousand people over sixty months: few months are shown, all years are."""
    guard = opened(tmp_path, grain, 1000)
    found = guard.query("SELECT YEAR(joined) AS y, COUNT(*) AS n FROM people GROUP BY y ORDER BY y")
    with duckdb.connect(tmp_path / "data.duckdb", read_only=True) as con:
        true = con.execute("select year(joined), count(*) from people group by 1 order by 1").fetchall()
    assert found["y"].to_pylist() == [year for year, _ in true]
    for number, (_, count) in zip(found["n"].to_pylist(), true, strict=True):
        assert number == pytest.approx(count, abs=40)


def test_fine_numbers_are_cut_into_steps(tmp_path: Path) -> None:
    """No salary is shown; how many are below a bound is."""
    guard = opened(tmp_path, "month", 3000)
    steps = "CASE WHEN salary < 30000 THEN 'low' ELSE 'high' END"
    found = guard.query(f"SELECT {steps} AS s, COUNT(*) AS n FROM people GROUP BY s ORDER BY n")
    assert found["s"].to_pylist() == ["low", "high"]
    assert found["n"].to_pylist() == pytest.approx([1000, 2000], abs=80)
    by_city = guard.query("SELECT salary < 30000 AS low, city, COUNT(*) AS n FROM people GROUP BY 1, 2")
    assert by_city.num_rows == 6
