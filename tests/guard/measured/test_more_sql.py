"""What analysts write beside single questions: cohorts, the day of today, PIVOT, lists, sums of CASE."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd
import pytest
from guard_data import rows_of as rows
from worlds_of_people import GENEROUS, engine_of, guarded, seeded, silent

from kgather._guard import audit_log
from kgather._guard.conditions import constant
from kgather._guard.guard import Guard
from kgather._guard.measured.ledger import Ledger
from kgather._guard.measured.replay import Replay
from kgather._guard.plan import Literal
from kgather._guard.refused import Refused
from kgather._guard.statement import _DUCKDB

POLICY = f"""version: 1
database: db.duckdb
k: 3
{GENEROUS}
audit_log: audit.jsonl
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [plan, stars]
    measures: [income]
    coarsened: {{born: year}}
    values: {{plan: [free, paid, gold]}}
    bounds: {{stars: [1, 5], income: [0, 1000]}}
  orders:
    privacy_unit: user_id
    grain: rows
    artifacts: [amount]
    coarsened: {{day: month}}
    bounds: {{amount: [0, 100]}}
    rows_per_person: 30
  plans: {{public: true}}
joins: [orders.user_id = people.user_id, people.plan = plans.plan]
aggregates: [COUNT, COUNT_DISTINCT, SUM, AVG, STDDEV, VAR, COVAR, CORR, QUANTILE, HISTOGRAM, MIN, MAX]
margins: true
principals: {{a: {{}}}}
"""


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(3)
    count = 900
    people = pd.DataFrame(
        {
            "user_id": np.arange(count),
            "plan": rng.choice(["free", "paid", "gold"], count, p=[0.6, 0.3, 0.1]),
            "stars": rng.integers(1, 6, count),
            "income": rng.integers(0, 1001, count),
            "born": pd.to_datetime("1960-05-05") + pd.to_timedelta(rng.integers(0, 40, count) * 366, unit="D"),
        }
    )
    orders = pd.DataFrame({"user_id": rng.integers(0, count, 7_000), "amount": rng.integers(0, 101, 7_000)})
    orders = orders[orders.groupby("user_id").cumcount() < 30].reset_index(drop=True)
    orders["day"] = pd.to_datetime("2024-11-05") + pd.to_timedelta(rng.integers(0, 400, len(orders)), unit="D")
    plans = pd.DataFrame({"plan": ["free", "paid", "gold"], "price": [0, 5, 20]})
    return {"people": people, "orders": orders, "plans": plans}


@dataclass
class Asked:
    """A guard without noise, and the database."""

    guard: Guard
    database: duckdb.DuckDBPyConnection

    def same(self, sql: str) -> None:
        true = self.database.execute(sql).fetchall()
        told = [tuple(row) for row in zip(*(c.to_pylist() for c in self.guard.query(sql).columns), strict=True)]
        assert rows(told) == rows(true)
        assert self.guard.describe(sql).types == self.guard.query(sql).schema.types


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("more")
    guard = guarded(folder, tables(), POLICY, silent)
    database = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    database.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    database.execute("use source")
    return Asked(guard, database)


FIRSTS = "SELECT user_id, MIN(day) AS first, MAX(day) AS last, MIN(amount) AS least FROM orders GROUP BY user_id"
MONTHS = "SELECT user_id, MIN(DATE_TRUNC('month', day)) AS cohort FROM orders GROUP BY user_id"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT cohort, COUNT(*) AS n FROM ({MONTHS}) GROUP BY cohort HAVING COUNT(*) > 20",
        f"SELECT year(first) AS y, COUNT(*) AS n FROM ({FIRSTS}) GROUP BY ALL",
        f"SELECT COUNT(*) AS n FROM ({FIRSTS}) WHERE first < DATE '2025-01-01' AND last >= DATE '2025-06-01'",
        f"SELECT COUNT(*) AS n FROM ({FIRSTS}) WHERE DATE_DIFF('month', first, last) >= 6",
        f"SELECT least, COUNT(*) AS n FROM ({FIRSTS}) WHERE least < 3 GROUP BY least",
        "WITH f AS (SELECT user_id, MIN(day) AS first FROM orders GROUP BY user_id) "
        "SELECT DATE_DIFF('year', f.first, o.day) AS age, COUNT(DISTINCT o.user_id) AS n "
        "FROM orders o JOIN f ON o.user_id = f.user_id GROUP BY 1",
        "SELECT year(day) AS y, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY year(day)) AS b FROM orders GROUP BY 1",
        "WITH y AS (SELECT year(day) AS y, COUNT(*) AS n FROM orders GROUP BY 1) "
        "SELECT a.y AS this, a.n AS n, b.n AS m FROM y AS a LEFT JOIN y AS b ON a.y = b.y + 1",
        "SELECT monthname(day) AS m, COUNT(*) AS n FROM orders GROUP BY ALL",
        "SELECT COUNT(*) AS n FROM orders WHERE day >= DATE_TRUNC('year', DATE '2025-06-07')",
        "SELECT COUNT(*) AS n FROM orders WHERE year(day) = year(DATE '2026-06-07') - 1",
        "SELECT COUNT(*) AS n FROM orders WHERE day >= DATE '2025-03-02' - 1",
        "SELECT SUM(CASE WHEN stars = 1 THEN -1 WHEN stars = 5 THEN 1 ELSE 0 END) AS s FROM people",
        "SELECT plan, SUM(CASE stars WHEN 1 THEN 10 WHEN 2 THEN 3 END) AS s FROM people GROUP BY plan",
        "SELECT SUM(3 * 2) AS s FROM people",
        "SELECT COUNT(DISTINCT CASE WHEN amount > 90 THEN user_id END) AS n FROM orders",
        "SELECT COUNT(DISTINCT plan || 'x') AS n FROM people",
        "SELECT LIST(plan ORDER BY plan) AS l, LIST(n ORDER BY n)[2] AS o, {'a': SUM(n)::BIGINT} AS s, [1] || [3] AS m "
        "FROM (SELECT plan, COUNT(*) AS n FROM people GROUP BY plan)",
        "SELECT UNNEST(['a', 'b']) AS k, COUNT(*) AS n FROM people",
        "PIVOT (SELECT plan, stars, COUNT(*) AS n FROM people GROUP BY ALL) ON plan IN ('free', 'paid') USING SUM(n) "
        "GROUP BY stars ORDER BY stars",
        "SELECT * FROM (SELECT plan, stars, COUNT(*) AS n FROM people GROUP BY ALL) "
        "PIVOT (SUM(n) AS s, COUNT(*) AS k FOR plan IN ('free' AS f, 'gold'))",
        "WITH t AS (SELECT plan, stars, COUNT(*) AS n FROM people GROUP BY ALL) "
        "PIVOT t ON stars IN (1, 2) USING SUM(n)",
        "PIVOT plans ON plan IN ('free', 'gold') USING MAX(price)",
        "PIVOT people ON plan IN ('free', 'gold') USING COUNT(*) GROUP BY stars",
        "SELECT plan, stars, COUNT(*) AS n FROM people GROUP BY CUBE (plan, stars)",
        "SELECT plan, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((plan), ())",
        "SELECT plan, MIN(stars) AS a, MAX(stars) AS b FROM people GROUP BY plan",
        "SELECT price, COUNT(*) AS n FROM people LEFT JOIN plans ON people.plan = plans.plan AND price > 3 GROUP BY 1",
        "SELECT COUNT(price) AS n FROM people LEFT JOIN plans ON people.plan = plans.plan AND stars > 3",
        "SELECT MIN(DATE_TRUNC('month', day)) AS a, MAX(DATE_TRUNC('month', day)) AS b FROM orders",
        "SELECT COUNT(born) AS n, COUNT(DISTINCT year(born)) AS d FROM people",
        "SELECT m.m AS m, n FROM generate_series(1, 12) AS m(m) "
        "LEFT JOIN (SELECT month(day) AS o, COUNT(*) AS n FROM orders GROUP BY 1) ON o = m.m",
        "SELECT amount::DECIMAL(9, 0) AS a, COUNT(*) AS n FROM orders WHERE amount < 5 GROUP BY 1",
        "SELECT EXTRACT(epoch FROM DATE_TRUNC('year', day)) AS e, COUNT(*) AS n FROM orders GROUP BY 1",
    ],
)
def test_means_what_it_means_to_duckdb(asked: Asked, sql: str) -> None:
    asked.same(sql)


def test_ends_are_those_that_k_people_reach(tmp_path: Path) -> None:
    """One person far away moves no end, and where k do not reach any there is none."""
    of = tables()
    of["people"]["income"] = np.arange(900) % 500 + 300
    ends = "SELECT MIN(income) AS a, MAX(income) AS b FROM people"
    found = []
    for name, extreme in (("with", (0, 1000)), ("without", (300, 799))):
        (tmp_path / name).mkdir()
        of["people"].loc[[0, 1], "income"] = extreme
        guard = guarded(tmp_path / name, of, POLICY, silent)
        found += guard.query(ends).to_pylist()
    assert all(295 <= one["a"] <= 310 and 789 <= one["b"] <= 805 for one in found)
    few = "SELECT year(born) AS y, stars, COUNT(*) AS n, MIN(income) AS a FROM people GROUP BY ALL"
    told = guard.query(few).to_pylist()
    assert {row["a"] for row in told if row["n"] < 6} == {None}


def test_a_part_that_noise_hides_does_not_hide_the_sum(tmp_path: Path) -> None:
    """Nobody has six stars; what that branch adds is noise, and the sum is told with its error."""
    guard = guarded(tmp_path, tables(), POLICY.replace(GENEROUS, ""), seeded(2))
    sql = "SELECT SUM(CASE WHEN stars >= 2 THEN 2 WHEN stars = 6 THEN 3 ELSE 1 END) AS s FROM people"
    (row,) = guard.answer(sql, errors="columns").table.to_pylist()
    true = int((tables()["people"]["stars"] >= 2).sum()) + len(tables()["people"])
    assert 0 < row["s_error"] < true / 2
    assert abs(row["s"] - true) < 4 * row["s_error"]


# The day of today


class Clock(datetime):
    """A clock that stands still."""

    stands = datetime(2025, 7, 9, 23, 59, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        del tz
        return cls.stands


def test_today_is_fixed_when_a_question_is_read_and_repeated(tmp_path: Path) -> None:
    guard = guarded(tmp_path, tables(), POLICY, silent)
    sql = "SELECT COUNT(*) AS n, CURRENT_DATE AS d FROM orders WHERE day >= DATE_TRUNC('month', CURRENT_DATE)"
    told = []
    for month in (7, 9):
        stands = datetime(2025, month, 9, 23, 59, tzinfo=UTC)
        with patch.object(Clock, "stands", stands), patch.object(audit_log, "datetime", Clock):
            told.append(guard.query(sql).to_pylist()[0])
    true = tables()["orders"]["day"]
    for row, month in zip(told, (7, 9), strict=True):
        assert row["n"] == pytest.approx(int((true >= f"2025-0{month}-01").sum()), rel=0.05)
    assert [row["d"] for row in told] == [date(2025, 7, 9), date(2025, 9, 9)]
    entries = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    replay = Replay(Ledger(tmp_path / "ledger.sqlite"), tmp_path / "db.duckdb")
    assert [replay.repeated(entry).result for entry in entries] == ["agrees", "agrees"]
    entries[1]["at"] = entries[0]["at"]
    assert replay.repeated(entries[1]).result == "disagrees"


@pytest.mark.parametrize("clock", ["now()", "current_timestamp", "localtimestamp", "get_current_timestamp()"])
def test_clocks_that_tell_seconds_are_refused(asked: Asked, clock: str) -> None:
    with pytest.raises(Refused, match="Use CURRENT_DATE"):
        asked.guard.query(f"SELECT {clock}, COUNT(*) FROM people")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.06 + 0.01", 0.07), ("0.1 + 0.2", 0.3), ("2 * 3 - 1", 5), ("-(1.5 - 0.5)", -1.0), ("1e2 + 1", None),
        ("170141183460469231731687303715884105727 + 1", 2.0**127), ("9223372036854775807 + 1", 2**63),
        ("DATE '2024-03-01' - 1", date(2024, 2, 29)), ("DATE_TRUNC('week', DATE '2024-03-01')", date(2024, 2, 26)),
        ("EXTRACT(quarter FROM DATE '2024-12-31')", 4), ("year(DATE '0001-01-01')", 1), ("DATE '0001-01-01' - 1", None),
    ],
)  # fmt: skip
def test_constants_are_computed_as_decimals(text: str, value: object) -> None:
    (node,) = _DUCKDB.parse(f"SELECT {text}")[0].expressions  # type: ignore[union-attr]
    found = constant(node)
    assert (found.value if isinstance(found, Literal) else None) == value


# Texts that would double


@pytest.mark.parametrize(
    "step",
    ["x || x AS x", "concat(x, x) AS x", "replace(x, 'a', x) AS x", "repeat(x, 100) AS x", "format('{}{}', x, x) AS x",
     "CASE WHEN true THEN x || x ELSE x END AS x", "(SELECT MAX(x || x) FROM t{at}) AS x"],
)  # fmt: skip
def test_texts_do_not_grow_without_bound(asked: Asked, step: str) -> None:
    parts = ["t0 AS (SELECT plan AS x FROM people GROUP BY plan)"]
    parts += [f"t{at + 1} AS (SELECT {step.format(at=at) if '{at}' in step else step} FROM t{at})" for at in range(14)]
    with pytest.raises(Refused) as told:
        asked.guard.query(f"WITH {', '.join(parts)} SELECT x FROM t14")
    assert told.value.static
    assert told.value.code == "54001"


def test_a_few_texts_together_are_answered(asked: Asked) -> None:
    text = "upper(plan) || '-' || stars || ': ' || repeat('*', 3) || replace(replace(plan, 'a', ''), 'e', 'i')"
    asked.same(f"SELECT {text} AS t, COUNT(*) AS n FROM people GROUP BY plan, stars")


def test_the_ledger_is_looked_at_while_somebody_measures(asked: Asked) -> None:
    with engine_of(asked.guard).ledger.measuring(), ThreadPoolExecutor() as pool:
        pool.submit(asked.guard.look).result(10)
