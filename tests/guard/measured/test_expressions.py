"""What is computed of columns before it is counted or added up, compared with DuckDB on rows in which values are
missing: without noise, the answers are the database's."""

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from guard_data import Unguarded, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds_of_people import GENEROUS, guarded, silent

from kgather._guard.catalog import Catalog, catalog_of
from kgather._guard.guard import Guard
from kgather._guard.measured.domain import limits_of
from kgather._guard.plan import MEASURE, Bound, Expr, Literal, Op, Plan
from kgather._guard.planner import plan
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Refused
from kgather._guard.render import expression

POLICY = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [a, b, color, joined]
    measures: [income, debt]
    dimensions: [city]
    values: {{color: [red, Blue, "dark red", green], city: [Graz, Wien, Linz]}}
    bounds: {{a: [-2, 6], b: [0, 5], income: [0, 4096], debt: [-1024, 1024]}}
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [place, score, cost]
    coarsened: {{on_day: month, moment: month}}
    bounds: {{place: [0, 4], score: [1, 5], cost: [0, 64]}}
    rows_per_person: 32
joins: [visits.user_id = people.user_id]
principals: {{x: {{}}}}
"""


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(11)
    count = 400

    def gaps(values: Any, share: float = 0.2) -> Any:
        kept = pd.array(values)
        kept[rng.random(len(values)) < share] = pd.NA
        return kept

    people = pd.DataFrame(
        {
            "user_id": np.arange(count),
            "a": gaps(rng.integers(-2, 7, count)),
            "b": gaps(rng.integers(0, 6, count)),
            "color": gaps(rng.choice(["red", "Blue", "dark red", "green"], count)),
            "joined": rng.choice([True, False], count),
            "income": gaps(rng.integers(0, 4097, count)),
            "debt": gaps(rng.integers(-1024, 1025, count)),
            "city": rng.choice(["Graz", "Wien", "Linz"], count),
        }
    )
    visits = pd.DataFrame({"user_id": rng.integers(0, 380, 5_000)})
    visits = visits[visits.groupby("user_id").cumcount() < 32].reset_index(drop=True)
    size = len(visits)
    days = pd.to_datetime("2023-10-01") + pd.to_timedelta(rng.integers(0, 400, size), unit="D")
    visits = visits.assign(
        place=rng.integers(0, 5, size),
        score=gaps(rng.integers(1, 6, size)),
        cost=gaps(rng.integers(0, 65, size)),
        on_day=days.date,
        moment=days + pd.to_timedelta(rng.integers(0, 86_400, size), unit="s"),
    )
    return {"people": people, "visits": visits}


@dataclass
class Asked:
    """The same statement asked of the database, of the plan, and of a guard without noise."""

    database: duckdb.DuckDBPyConnection
    guard: Guard
    unguarded: Unguarded

    def compare(self, sql: str) -> None:
        """What the plan means is what DuckDB means. What is measured is that, too, in a question about all people or
        rows: in groups, more than two conditions at once are estimated."""
        wanted = self.database.execute(sql).fetchall()
        made = plan(sql, self.guard.catalog)
        assert isinstance(made, Plan)
        assert rows_of(self.unguarded.answer(made)) == rows_of(wanted)
        if "GROUP BY" in sql.rpartition(")")[2] or "DISTINCT " in sql:
            return
        told = [tuple(row.values()) for row in self.guard.query(sql).to_pylist()]
        for one, other in zip(told, wanted, strict=True):
            for value, true in zip(one, other, strict=True):
                assert float(value) == pytest.approx(float(true), rel=0.03, abs=0.03)

    def groups(self, sql: str) -> None:
        """Groups by one feature are as DuckDB's, measured, too."""
        self.compare(sql)
        assert rows_of([tuple(row.values()) for row in self.guard.query(sql).to_pylist()]) == rows_of(
            self.database.execute(sql).fetchall()
        )


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("expressions")
    guard = guarded(folder, tables(), POLICY, silent)
    database = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    database.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    for table in ("people", "visits"):
        database.execute(f"create table {table} as from source.{table}")
    return Asked(database, guard, Unguarded(database, guard.catalog, ("people", "visits")))


@pytest.mark.parametrize(
    "call",
    [
        "SUM(CASE WHEN a > 2 THEN 1 ELSE 0 END)",
        "SUM(CASE WHEN a > 2 THEN 1 END)",
        "SUM(CASE WHEN a > 2 THEN 3 WHEN b < 3 THEN 2 ELSE 1 END)",
        "SUM(CASE WHEN a > 2 THEN -1 WHEN b < 3 THEN NULL ELSE 1.5 END)",
        "SUM(CASE a WHEN 1 THEN 10 WHEN 2 THEN 20 WHEN NULL THEN 30 ELSE 1 END)",
        "SUM(CASE WHEN a > 2 THEN income END)",
        "SUM(CASE WHEN a > 2 THEN income ELSE 0 END)",
        "SUM(CASE WHEN a > 2 THEN income ELSE debt + 2000 END)",
        "SUM(CASE WHEN a > 2 AND b IS NULL THEN 2 * income END)",
        "SUM(IF(a > b, 1, 0))",
        "AVG(CASE WHEN a > 2 THEN 1 ELSE 0 END)",
        "AVG(CASE WHEN a > 2 THEN 1.0 ELSE 0 END) * 100",
        "AVG(CASE WHEN a > 2 THEN 1 END)",
        "AVG(CASE WHEN a > 2 THEN 3 WHEN b < 3 THEN NULL ELSE 1 END)",
        "AVG(CASE WHEN a > 2 THEN income END)",
        "AVG(CASE WHEN a > 2 THEN income ELSE 0 END)",
        "AVG(CASE WHEN a IS NULL THEN 100 WHEN b > 2 THEN income ELSE debt + 2000 END)",
        "AVG(IF(joined, income, NULL))",
        "COUNT(CASE WHEN a > 2 THEN 1 END)",
        "COUNT(CASE WHEN a > 2 THEN income END)",
        "COUNT(CASE WHEN a > 2 THEN NULL ELSE income END)",
        "COUNT(CASE WHEN a > 2 THEN 'x' WHEN b = 1 THEN NULL ELSE color END)",
        "COUNT(CASE WHEN a > 2 THEN income ELSE debt END)",
        "COUNT(CASE a WHEN 3 THEN b END)",
        "COUNT(IF(a > 2, b, NULL))",
        "SUM(CASE WHEN color LIKE '%red' THEN 1 ELSE 0 END)",
        "SUM(CASE WHEN NOT color LIKE '%red' THEN 1 ELSE 0 END)",
        "SUM(CASE WHEN a > 2 THEN CASE WHEN b > 2 THEN 2 ELSE 1 END ELSE 0 END)",
        "STDDEV_POP(CASE WHEN a > 2 THEN income ELSE debt + 2000 END)",
    ],
)
def test_aggregates_of_cases(asked: Asked, call: str) -> None:
    asked.compare(f"SELECT {call} AS v FROM people")
    asked.compare(f"SELECT city, {call} AS v FROM people GROUP BY city")


@pytest.mark.parametrize(
    "call",
    [
        "SUM(a > 2)",
        "SUM((a > 2)::INT)",
        "AVG((a > 2)::DOUBLE)",
        "COUNT(a > 2)",
        "AVG((NOT a > 2)::INT)",
        "AVG((a > 2 AND b > 2)::INT)",
        "AVG((a > 2 OR b > 2)::INT)",
        "COUNT(a > 2 AND b > 2)",
        "SUM((a IS NULL)::INT)",
        "SUM((a IN (1, 2, 3))::INT)",
        "AVG((a BETWEEN 1 AND 3)::INT)",
        "SUM((a IS DISTINCT FROM b)::INT)",
        "AVG((color LIKE 'd%')::INT)",
        "COUNT(color LIKE 'd%')",
        "COUNT_IF(a > b)",
        "COUNT_IF(a > b) FILTER (WHERE joined)",
        "SUM(3)",
        "AVG(3)",
        "SUM(-2.5)",
        "SUM(1) FILTER (WHERE a > 2)",
        "COUNT(user_id)",
        "COUNT(user_id) FILTER (WHERE a > 2)",
    ],
)
def test_conditions_and_constants_as_numbers(asked: Asked, call: str) -> None:
    asked.compare(f"SELECT {call} AS v FROM people")
    asked.compare(f"SELECT city, {call} AS v FROM people WHERE b > 0 GROUP BY city")


@pytest.mark.parametrize(
    "argument",
    [
        "income + debt",
        "income - debt",
        "income * b",
        "a * b",
        "a - 2 * b",
        "b / 4 + a",
        "ABS(debt)",
        "ABS(a - b)",
        "GREATEST(a, b)",
        "LEAST(income, 1000)",
        "COALESCE(a, 0)",
        "COALESCE(income, debt, 0)",
        "FLOOR(income / 100)",
        "CEIL(debt / 100)",
        "-(income + debt)",
        "CASE WHEN a > 2 THEN income ELSE debt END + b",
        "(income + debt) / 2",
        "a % 3",
        "a // 2",
    ],
)
@pytest.mark.parametrize("function", ["SUM", "AVG", "COUNT"])
def test_expressions_of_several_columns(asked: Asked, function: str, argument: str) -> None:
    asked.compare(f"SELECT {function}({argument}) AS v FROM people")
    asked.compare(f"SELECT joined, {function}({argument}) AS v FROM people WHERE a > 0 GROUP BY joined")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(score * cost) AS v FROM visits",
        "SELECT place, AVG(score * cost) AS v FROM visits GROUP BY place",
        "SELECT AVG(s) AS v FROM (SELECT user_id, SUM(score * cost) AS s FROM visits GROUP BY user_id) AS t",
        "SELECT AVG(s) AS v FROM (SELECT user_id, SUM(score + 1) AS s FROM visits GROUP BY user_id) AS t",
        "SELECT SUM(s) AS v FROM (SELECT user_id, SUM(CASE WHEN score > 3 THEN cost ELSE 0 END) AS s FROM visits"
        " GROUP BY user_id) AS t",
        "SELECT AVG(s) AS v FROM (SELECT user_id, SUM(CASE WHEN score > 3 THEN 1 ELSE 0 END) AS s FROM visits"
        " GROUP BY user_id) AS t",
        "SELECT AVG(s) AS v FROM (SELECT user_id, SUM(score > 3) AS s FROM visits GROUP BY user_id) AS t",
        "SELECT COUNT(*) AS v FROM (SELECT user_id, SUM(score * cost) AS s FROM visits GROUP BY user_id) AS t"
        " WHERE s > 900",
        "SELECT SUM(x) AS v FROM (SELECT CASE WHEN a > 2 THEN income ELSE 1 END AS x FROM people) AS t",
        "SELECT AVG(x) AS v FROM (SELECT (a > 2)::INT AS x FROM people) AS t",
        "SELECT SUM(y) AS v FROM (SELECT x + b AS y FROM (SELECT a * 2 AS x, b FROM people) AS t) AS u",
    ],
)
def test_sums_of_rows_and_of_names(asked: Asked, sql: str) -> None:
    asked.compare(sql)


@pytest.mark.parametrize(
    "condition",
    [
        "on_day >= '2024-01-01'",
        "on_day < DATE '2024-01-01'",
        "on_day <= '2023-12-31'",
        "on_day > DATE '2024-02-29'",
        "on_day BETWEEN '2024-01-01' AND '2024-03-31'",
        "NOT on_day >= '2024-01-01'",
        "on_day >= DATE '2024-01-01' + INTERVAL 2 MONTH",
        "DATE '2024-02-01' <= on_day",
        "moment >= '2024-01-01' AND moment < '2024-04-01'",
        "moment < TIMESTAMP '2024-04-01 00:00:00'",
        "YEAR(moment) = 2024",
        "EXTRACT(month FROM on_day) IN (1, 2, 12)",
        "DATE_PART('quarter', on_day) = 1",
        "DATE_TRUNC('month', on_day) = '2024-01-01'",
        "DATE_TRUNC('year', moment) > '2023-06-01'",
        "STRFTIME(moment, '%Y-%m') >= '2024-02'",
        "on_day IS NOT NULL",
        "YEAR(moment) * 100 + MONTH(moment) = 202402",
    ],
)
def test_dates_in_conditions(asked: Asked, condition: str) -> None:
    asked.compare(f"SELECT COUNT(*) AS v FROM visits WHERE {condition}")
    asked.compare(f"SELECT COUNT(DISTINCT user_id) AS v FROM visits WHERE {condition}")


@pytest.mark.parametrize(
    "key",
    [
        "DATE_TRUNC('month', on_day)",
        "DATE_TRUNC('quarter', moment)",
        "YEAR(on_day)",
        "EXTRACT(month FROM moment)",
        "QUARTER(on_day)",
        "STRFTIME(moment, '%Y-%m')",
        "STRFTIME(on_day, '%b %y')",
        "DATE_TRUNC('month', moment)::DATE",
        "score // 2",
        "score % 2",
        "CASE WHEN score > 3 THEN 'good' WHEN score IS NULL THEN 'none' ELSE 'bad' END",
        "score > 3",
        "score BETWEEN 2 AND 3",
    ],
)
@pytest.mark.parametrize("counted", ["COUNT(*)", "COUNT(DISTINCT user_id)"])
def test_keys(asked: Asked, key: str, counted: str) -> None:
    asked.groups(f"SELECT {key} AS k, {counted} AS v FROM visits GROUP BY k")


@pytest.mark.parametrize(
    "condition",
    [
        "color LIKE '%red%'",
        "color NOT LIKE '%red%'",
        "color ILIKE 'b%'",
        "NOT (color LIKE 'r_d')",
        "LOWER(color) = 'blue'",
        "UPPER(color) IN ('RED', 'GREEN')",
        "LENGTH(color) > 4",
        "SUBSTR(color, 2, 2) = 're'",
        "SUBSTRING(color, 1, 1) = 'd'",
        "LEFT(color, 1) = 'g'",
        "RIGHT(color, 3) = 'red'",
        "RIGHT(color, -1) = 'ed'",
        "STARTS_WITH(color, 'd')",
        "ENDS_WITH(color, 'd')",
        "CONTAINS(color, 'ar')",
        "color || '!' = 'red!'",
        "TRIM(color) <> 'red'",
        "COALESCE(LOWER(color), 'none') = 'none'",
        "a % 2 = 0",
        "a % 2 = -1",
        "b // 2 = 1",
        "a // 2 = -1",
        "a % 3 IS NULL",
        "(a > 2) = joined",
    ],
)
def test_texts_and_numbers_in_conditions(asked: Asked, condition: str) -> None:
    asked.compare(f"SELECT COUNT(*) AS v FROM people WHERE {condition}")
    asked.compare(f"SELECT COUNT(*) FILTER (WHERE NOT ({condition})) AS v FROM people")


@pytest.mark.parametrize(
    "key",
    [
        *("LOWER(color)", "LENGTH(color)", "LEFT(color, 1)", "color LIKE '%red'", "UPPER(city)", "color || '!'"),
        *("CONTAINS(color, 'r')", "a % 3", "b // 2", "SUBSTR(city, 1, 2)", "city = 'Graz'", "COALESCE(color, 'none')"),
    ],
)
def test_texts_and_numbers_as_keys(asked: Asked, key: str) -> None:
    asked.groups(f"SELECT {key} AS k, COUNT(*) AS v FROM people GROUP BY k")
    asked.groups(f"SELECT DISTINCT {key} AS k FROM people")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DATE_TRUNC('month', on_day) AS m, COUNT(DISTINCT user_id) AS v FROM visits GROUP BY m",
        "SELECT DATE_TRUNC('month', on_day) AS m, COUNT(DISTINCT user_id) AS v FROM visits WHERE score > 3 GROUP BY m",
        "SELECT place, DATE_TRUNC('year', on_day) AS y, COUNT(DISTINCT user_id) AS v FROM visits GROUP BY ALL",
        "SELECT score, COUNT(DISTINCT user_id) AS v FROM visits GROUP BY score",
    ],
)
def test_people_in_groups_that_overlap(asked: Asked, sql: str) -> None:
    asked.groups(sql)


@pytest.mark.parametrize(
    "argument",
    ["income * 0", "income * NULL", "income / 0", "income / (1 - 1)", "income * 1e16", "income % 0", "CBRT(income)"],
)
def test_what_leaves_nothing_to_be_added_up_is_refused_by_the_text(asked: Asked, argument: str) -> None:
    with pytest.raises(Refused) as refusal:
        asked.guard.query(f"SELECT SUM({argument}) FROM people")
    assert refusal.value.static


# Bounds of what is computed

BOUNDS = {"a": (-2, 6), "b": (0, 5), "income": (0, 4096), "debt": (-1024, 1024)}
columns = st.sampled_from([Bound("people", name, "integer") for name in BOUNDS])
constants = st.one_of(
    st.integers(-9, 9).map(lambda number: Literal(number, "integer")),
    st.floats(-9, 9).map(lambda number: Literal(number, "number")),
)
leaves = st.one_of(columns, columns, constants)


def deeper(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def op(name: str, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.tuples(*args).map(lambda given: Op(name, given, "number"))

    condition = st.tuples(parts, parts).map(lambda given: Op("<", given))
    default = st.one_of(parts, st.just(Literal(None, "null")))
    return st.one_of(
        *(op(name, parts, parts) for name in ("+", "-", "*", "greatest", "least", "coalesce", "%")),
        *(op(name, parts) for name in ("neg", "abs", "floor", "ceil")),
        op("/", parts, constants),
        op("/", parts, parts),
        op("round", parts, st.integers(-2, 2).map(lambda number: Literal(number, "integer"))),
        op("case", condition, parts, condition, parts, default),
    )


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    with duckdb.connect() as con:
        for name, frame in tables().items():
            con.register("frame", frame)
            con.execute(f"create table {name} as from frame")
            con.unregister("frame")
        return catalog_of(con, parse_policy(POLICY))


values = st.fixed_dictionaries({name: st.one_of(st.none(), st.integers(*ends)) for name, ends in BOUNDS.items()})
CON = duckdb.connect()


@settings(max_examples=400)
@given(st.recursive(leaves, deeper, max_leaves=6), st.lists(values, min_size=1, max_size=6))
def test_no_value_is_beyond_its_limits(catalog: Catalog, expr: Expr, rows: list[dict[str, int | None]]) -> None:
    limits = limits_of(Op(MEASURE, (expr,), "number"), catalog)
    if limits is None:
        return
    low, high = limits
    assert low <= high
    ends = [dict.fromkeys(BOUNDS, None), *({name: ends[at] for name, ends in BOUNDS.items()} for at in (0, 1))]
    listed = ", ".join(
        f"({', '.join('NULL::INTEGER' if row[name] is None else str(row[name]) for name in BOUNDS)})"
        for row in [*rows, *ends]
    )
    written = expression(Op(MEASURE, (expr,), "number"), lambda _: "")
    sql = f"select {written} from (values {listed}) as people({', '.join(BOUNDS)})"
    wide = 1e-9 * max(abs(low), abs(high), 1.0)
    for (value,) in CON.execute(sql).fetchall():
        assert value is None or low - wide <= value <= high + wide
