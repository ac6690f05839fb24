"""Medians, quantiles, modes and histograms: near what DuckDB says, within what they say of themselves, and no person
moves them by more than the noise is for."""

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensitivity import moves, recorded, without
from worlds_of_people import GENEROUS, engine_of, guarded, seeded, silent

from kgather._guard.guard import Guard
from kgather._guard.measured.bins import LEAVES, Bins
from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.features import Feature
from kgather._guard.measured.quantiles import _rising
from kgather._guard.plan import Bound, Kind
from kgather._guard.refused import Refused

PEOPLE = 6_000


def policy(budget: str = GENEROUS, rows: int = 40) -> str:
    return f"""version: 1
database: db.duckdb
k: 5
{budget}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [stars, color, city]
    measures: [salary, spent, debt, tall]
    values: {{color: [red, blue, green], city: [Graz, Wien, Linz]}}
    bounds: {{salary: [0, 200000], spent: [0, 1000000], debt: [-5000, 5000], stars: [1, 5], tall: [0, 300]}}
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [place, cost]
    bounds: {{place: [0, 3], cost: [0, 600]}}
    rows_per_person: {rows}
joins: [visits.user_id = people.user_id]
principals: {{a: {{}}}}
"""


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(5)
    people = pd.DataFrame(
        {
            "user_id": np.arange(PEOPLE),
            "stars": pd.array(np.where(rng.random(PEOPLE) < 0.1, -1, rng.integers(1, 6, PEOPLE))).astype("Int64"),
            "color": rng.choice(["red", "blue", "green"], PEOPLE, p=[0.5, 0.3, 0.2]),
            "salary": np.rint(rng.lognormal(10.7, 0.4, PEOPLE)).astype(int),
            "spent": np.round(rng.lognormal(3.5, 1.5, PEOPLE), 2),
            "debt": rng.normal(0, 900, PEOPLE),
            "tall": np.rint(rng.normal(172, 9, PEOPLE)).astype(int),
            "city": rng.choice(["Graz", "Wien", "Linz"], PEOPLE, p=[0.2, 0.5, 0.3]),
        }
    )
    people.loc[people["stars"] == -1, "stars"] = pd.NA
    visits = pd.DataFrame({"user_id": rng.integers(0, PEOPLE, 60_000)})
    visits = visits[visits.groupby("user_id").cumcount() < 40].reset_index(drop=True)
    visits["place"] = rng.integers(0, 4, len(visits))
    visits["cost"] = np.rint(rng.gamma(2.0, 40.0, len(visits))).astype(int)
    return {"people": people, "visits": visits}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("ranked")
    guarded(found, tables(), policy(), silent)
    return found


@pytest.fixture(scope="module")
def database(folder: Path) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    con.execute("use source")
    return con


def opened(folder: Path, tmp_path: Path, noise: Any, budget: str = GENEROUS) -> Guard:
    (tmp_path / "db.duckdb").write_bytes((folder / "db.duckdb").read_bytes())
    return guarded(tmp_path, None, policy(budget), noise)


EXACT = (
    "SELECT MEDIAN(stars), QUANTILE_CONT(stars, 0.9), QUANTILE_DISC(stars, 0.2), MODE(color), HISTOGRAM(stars) "
    "FROM people",
    "SELECT MODE(stars), HISTOGRAM(color) FROM people WHERE city = 'Wien' OR color = 'red'",
    "SELECT APPROX_COUNT_DISTINCT(color), COUNT(DISTINCT UPPER(color)), COUNT(DISTINCT stars // 2) FROM people",
    "SELECT COUNT(DISTINCT CASE WHEN stars > 2 THEN user_id END) FROM people",
    "SELECT MEDIAN(n) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)",
    "SELECT MODE() WITHIN GROUP (ORDER BY color) FROM people",
)


@pytest.mark.parametrize("sql", EXACT)
def test_values_that_are_told_apart_are_duckdbs(
    folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection, sql: str
) -> None:
    told = [*opened(folder, tmp_path, silent).query(sql).to_pylist()[0].values()]
    (true,) = database.execute(sql).fetchall()
    assert [dict(one) if isinstance(one, list) else one for one in told] == [*true]


NEAR = (
    "MEDIAN(salary)", "QUANTILE_CONT(salary, 0.05)", "QUANTILE(salary, 0.95)", "MEDIAN(spent)",
    "QUANTILE_CONT(spent, 0.99)",
    "MEDIAN(debt)", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY debt DESC)", "MEDIAN(salary - spent)",
    "MEDIAN(2 * salary + 100)", "QUANTILE_CONT(0 - salary, 0.1)",
    "QUANTILE_CONT(salary, 0.75) - QUANTILE_CONT(salary, 0.25)",
    "APPROX_QUANTILE(salary, 0.5)", "MEDIAN(tall)", "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY tall)",
)  # fmt: skip


@pytest.mark.parametrize("call", NEAR)
@pytest.mark.parametrize("where", ["", "WHERE stars >= 3", "WHERE stars >= 3 AND color = 'red'"])
def test_quantiles_are_near(
    folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection, call: str, where: str
) -> None:
    sql = f"SELECT {call} FROM people {where}"
    (told,) = opened(folder, tmp_path, silent).query(sql).to_pylist()[0].values()
    ((true,),) = database.execute(sql.replace("APPROX_QUANTILE", "QUANTILE_CONT")).fetchall()
    assert told == pytest.approx(true, rel=0.03, abs=10)


@pytest.mark.parametrize("budget", ["", "budget: {epsilon: 2, delta: 1.0e-6}"])
def test_errors_are_as_large_as_they_say(
    folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection, budget: str
) -> None:
    """Over many quantiles, of all and of groups, the distance from the truth in standard errors is about one."""
    off: list[float] = []
    for seed in range(4):
        (tmp_path / str(seed)).mkdir()
        guard = opened(folder, tmp_path / str(seed), seeded(seed), budget)
        for column in ("salary", "debt", "tall"):
            for by in (0.1, 0.5, 0.8):
                for sql in (
                    f"SELECT 1 AS k, QUANTILE_CONT({column}, {by}) AS v FROM people",
                    f"SELECT city AS k, QUANTILE_CONT({column}, {by}) AS v FROM people GROUP BY city",
                ):
                    true = dict(database.execute(sql.replace("SELECT 1 AS k", "SELECT 1")).fetchall())
                    told = guard.answer(sql, errors="columns").table.to_pylist()
                    off += [
                        (row["v"] - true[row["k"]]) / max(row["v_error"], 0.5) for row in told if row["v"] is not None
                    ]
    assert len(off) > 100
    assert math.sqrt(float(np.mean(np.square(off)))) < 1.6
    assert float(np.mean(np.abs(off) < 2)) > 0.9


def test_rows_of_a_long_table(folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    guard = opened(folder, tmp_path, silent)
    sql = "SELECT place, MEDIAN(cost) AS m, QUANTILE_CONT(cost, 0.9) AS q FROM visits GROUP BY place"
    told = {row["place"]: (row["m"], row["q"]) for row in guard.query(sql).to_pylist()}
    for place, median, high in database.execute(sql).fetchall():
        assert told[place] == pytest.approx((median, high), rel=0.02, abs=1.5)


def test_one_measurement_serves_all_quantiles(folder: Path, tmp_path: Path) -> None:
    guard = opened(folder, tmp_path, seeded(1), "")
    guard.query("SELECT city, MEDIAN(salary) FROM people GROUP BY city")
    before = len(engine_of(guard).ledger.measurements())
    guard.query("SELECT city, QUANTILE_CONT(salary, 0.25), QUANTILE_DISC(salary, 0.75) FROM people GROUP BY city")
    guard.query("SELECT city, HISTOGRAM(salary), MEDIAN(salary / 12) FROM people GROUP BY city")
    assert len(engine_of(guard).ledger.measurements()) == before


def test_a_histogram_of_a_measure_is_of_bins(folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    (row,) = opened(folder, tmp_path, silent).query("SELECT HISTOGRAM(salary) AS h FROM people").to_pylist()
    ends = [end for end, _ in row["h"]]
    assert ends == sorted(ends)
    assert sum(count for _, count in row["h"]) == PEOPLE
    below = 0.0
    for end, count in row["h"]:
        asked = "select count(*) from people where salary > ? and salary <= ?"
        assert count == database.execute(asked, [below - (below == 0), end]).fetchall()[0][0]
        below = end


def test_types_are_told_before(folder: Path, tmp_path: Path) -> None:
    guard = opened(folder, tmp_path, silent)
    for sql in (*EXACT, "SELECT city, HISTOGRAM(salary), MEDIAN(salary) FROM people GROUP BY city"):
        assert guard.describe(sql).types == guard.query(sql).schema.types
        assert guard.explain(sql, cost=True)


REFUSED = (
    "MEDIAN(city)", "QUANTILE_CONT(salary, 1.5)", "QUANTILE_DISC(salary, 0)", "QUANTILE(salary, [0.5, 1])",
    "QUANTILE_CONT(salary, stars)", "MODE(salary)",
    "HISTOGRAM(salary, [1, 2])", "MEDIAN(user_id)", "MEDIAN(MEDIAN(salary))",
)  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_by_its_text(folder: Path, tmp_path: Path, call: str) -> None:
    with pytest.raises(Refused) as told:
        opened(folder, tmp_path, silent).query(f"SELECT {call} FROM people")
    assert told.value.static


def test_a_policy_may_leave_them_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "db.duckdb").write_bytes((folder / "db.duckdb").read_bytes())
    guard = guarded(tmp_path, None, policy() + "aggregates: [COUNT]\n", silent)
    for call, word in (("MEDIAN(salary)", "QUANTILE"), ("MODE(color)", "HISTOGRAM")):
        with pytest.raises(Refused, match=rf"aggregates in the policy would allow it: \[\.\.\., {word}\]"):
            guard.query(f"SELECT {call} FROM people")


# What one person moves


STRANGE = ["nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "-0.0"]


def test_nobody_moves_bins_by_more_than_their_reach(tmp_path: Path) -> None:
    """One person has 100,000 rows, all alike or all different, and values that are no numbers."""
    values = ", ".join(f"cast('{value}' as double)" for value in STRANGE)
    sql = {
        "people": f"select i as user_id, [{values}][1 + i % {len(STRANGE)}] as debt, i % 7 as tall "
        "from range(300) t(i)",
        "visits": "select i % 300 as user_id, i % 4 as place, (i * 37) % 700 as cost from range(4000) t(i) union all "
        "select 1, i % 4, i % 600 from range(100000) t(i) union all select 2, 1, 5 from range(100000) t(i)",
    }
    long = """tables:
  people: {privacy_unit: user_id, grain: unit, artifacts: [tall], measures: [debt], bounds: {debt: [-10, 10]}}
  visits: {privacy_unit: user_id, grain: rows, artifacts: [place, cost], bounds: {place: [0, 3], cost: [0, 600]},
    rows_per_person: 5}
joins: [visits.user_id = people.user_id]
"""
    guard = guarded(
        tmp_path, sql, f"version: 1\ndatabase: db.duckdb\nk: 3\n{GENEROUS}\n{long}principals: {{a: {{}}}}\n", silent
    )
    with recorded() as wanted:
        for question in (
            "SELECT MEDIAN(debt), MEDIAN(debt * tall) FROM people",
            "SELECT tall, MEDIAN(debt) FROM people GROUP BY tall",
            "SELECT MEDIAN(cost) FROM visits",
            "SELECT place, MEDIAN(cost) FROM visits WHERE cost > 10 GROUP BY place",
            "SELECT place, QUANTILE_CONT(cost, 0.9) FROM visits "
            "WHERE user_id IN (SELECT user_id FROM people WHERE tall > 2) GROUP BY place",
            "SELECT MEDIAN(n) FROM (SELECT user_id, MAX(cost) AS n FROM visits GROUP BY user_id)",
            "SELECT MEDIAN(n) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)",
        ):
            guard.query(question)
    bins = [one for one in wanted if one.kind == "bins"]
    assert len(bins) >= 6
    for person in (1, 2, 3, 7):
        other = without(
            tmp_path / "db.duckdb", tmp_path / f"{person}.duckdb", person, {"people": "user_id", "visits": "user_id"}
        )
        for one, moved, reach in moves(guard, wanted, other):
            assert moved <= reach, (one.name, person, moved, reach)
    # The reach is not idle: somebody comes near it.
    other = without(tmp_path / "db.duckdb", tmp_path / "1.again.duckdb", 2, {"people": "user_id", "visits": "user_id"})
    assert max(moved / reach for one, moved, reach in moves(guard, bins, other)) > 0.7


@settings(max_examples=200)
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.booleans(), st.lists(st.integers(0, 40), min_size=1, max_size=30))
def test_levels_are_sums_and_fit_themselves(low: float, span: float, whole: bool, counts: list[int]) -> None:
    kind: Kind = "integer" if whole else "number"
    bins = Bins.of(Feature(Bound("t", "c", kind)), Bounds(low, low + span))
    assert 1 <= bins.leaves <= LEAVES
    assert bins.edge(bins.leaves) >= (low + span) * (1 - 1e-9) - 1 or whole
    of = np.zeros(bins.leaves, dtype=np.int64)
    for at, count in enumerate(counts):
        of[at % bins.leaves] += count
    levels = bins.levels(of)
    assert len(levels) == bins.size
    assert np.allclose(bins.fitted(levels.astype(float)), of, atol=1e-6)
    # One person is once in each level.
    one = np.zeros(bins.leaves, dtype=np.int64)
    one[len(counts) % bins.leaves] = 1
    assert math.sqrt(float((bins.levels(one) ** 2).sum())) == pytest.approx(bins.length)
    assert (bins.below(0.5) >= 0).all()


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60))
def test_rising_sums_rise(values: list[float]) -> None:
    found = _rising(np.array(values))
    assert len(found) == len(values)
    assert (np.diff(found) >= 0).all()
    assert (found >= 0).all()
