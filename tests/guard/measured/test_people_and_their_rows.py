"""Subqueries of people joined by LEFT JOIN, how many different values a person has, rows that name their person and
belong to a row besides, GROUPING, and lines through two columns."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from guard_data import Unguarded, rows_of
from worlds_of_people import GENEROUS, guarded, silent

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.plan import Plan
from kgather._guard.planner import plan
from kgather._guard.refused import Refused

POLICY = f"""version: 1
database: db.duckdb
k: 3
{GENEROUS}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [color, income, debt]
    values: {{color: [red, blue]}}
    bounds: {{income: [0, 64], debt: [0, 64]}}
  orders:
    privacy_unit: user_id
    key: order_id
    grain: rows
    artifacts: [shop]
    coarsened: {{day: month}}
    values: {{shop: [a, b, c, d]}}
    rows_per_person: 16
  payments:
    privacy_unit: user_id
    belongs_to: {{order_id: orders.order_id}}
    artifacts: [amount, way]
    coarsened: {{paid: day}}
    values: {{way: [card, cash]}}
    bounds: {{amount: [0, 64]}}
    rows_per_person: 32
joins: [people.user_id = orders.user_id, people.user_id = payments.user_id]
aggregates: [COUNT, COUNT_DISTINCT, SUM, AVG, STDDEV, VAR, COVAR, CORR, QUANTILE, HISTOGRAM, MIN, MAX]
margins: true
principals: {{a: {{}}}}
"""


def tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(8)
    count = 400
    people = pd.DataFrame(
        {
            "user_id": np.arange(count),
            "color": rng.choice(["red", "blue"], count),
            "income": pd.array(rng.integers(0, 65, count), "Int64"),
            "debt": pd.array(rng.integers(0, 65, count), "Int64"),
        }
    )
    people.loc[rng.random(count) < 0.2, "debt"] = pd.NA
    orders = pd.DataFrame({"user_id": rng.integers(0, 350, 1_500)})
    orders = orders[orders.groupby("user_id").cumcount() < 16].reset_index(drop=True)
    size = len(orders)
    orders = orders.assign(
        order_id=np.arange(size),
        shop=rng.choice(["a", "b", "c", "d"], size),
        day=(pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, size), unit="D")).date,
    )
    payments = orders[["user_id", "order_id"]].sample(2_000, replace=True, random_state=1).reset_index(drop=True)
    payments = payments[payments.groupby("user_id").cumcount() < 32].reset_index(drop=True)
    size = len(payments)
    payments = payments.assign(
        amount=rng.integers(0, 65, size),
        way=rng.choice(["card", "cash"], size),
        paid=(pd.to_datetime("2024-02-01") + pd.to_timedelta(rng.integers(0, 30, size), unit="D")).date,
    )
    return {"people": people, "orders": orders, "payments": payments}


@dataclass
class Asked:
    """A guard without noise, its plans without any guard, and the database."""

    guard: Guard
    database: duckdb.DuckDBPyConnection
    unguarded: Unguarded

    def same(self, sql: str) -> None:
        wanted = rows_of(self.database.execute(sql).fetchall())
        made = plan(sql, self.guard.catalog)
        assert isinstance(made, Plan)
        assert rows_of(self.unguarded.answer(made)) == wanted
        told = [tuple(row.values()) for row in self.guard.query(sql).to_pylist()]
        assert rows_of(told) == wanted
        assert self.guard.describe(sql).types == self.guard.query(sql).schema.types


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("rows")
    guard = guarded(folder, tables(), POLICY, silent)
    database = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    database.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    for table in ("people", "orders"):
        database.execute(f"create table {table} as from source.{table}")
    # As the guard sees them: with what they belong to.
    database.execute(
        'create table payments as select p.*, o.user_id as kg_person, o.shop as "orders.shop" from source.payments p'
        " join orders o using (order_id)"
    )
    return Asked(guard, database, Unguarded(database, guard.catalog, ("people", "orders")))


MANY = "SELECT user_id, COUNT(*) AS n, COUNT(DISTINCT shop) AS shops FROM orders WHERE shop <> 'd' GROUP BY user_id"
FEW = f"{MANY} HAVING COUNT(*) > 2"


def of_left_join(what: str, more: str = "") -> str:
    """A SELECT over people and their orders in one shop, if they have any."""
    return f"SELECT {what} FROM people p LEFT JOIN orders b ON b.user_id = p.user_id AND b.shop = 'a' {more}"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n, COUNT(m.user_id) AS k FROM people p LEFT JOIN ({MANY}) m ON m.user_id = p.user_id",
        f"SELECT COUNT(m.user_id) AS k, COUNT(DISTINCT m.user_id) AS j FROM people LEFT JOIN ({FEW}) m USING (user_id)",
        f"SELECT COUNT(*) AS n FROM people LEFT JOIN ({FEW}) m USING (user_id) WHERE m.user_id IS NULL",
        f"SELECT COUNT(*) AS n FROM people LEFT JOIN ({FEW}) m USING (user_id) WHERE m.user_id IS NOT NULL",
        f"SELECT COUNT(*) FILTER (WHERE m.user_id IS NULL) AS n FROM people LEFT JOIN ({FEW}) m USING (user_id)",
        f"SELECT SUM(CASE WHEN m.user_id IS NOT NULL THEN 1 ELSE 0 END) AS n FROM people LEFT JOIN ({FEW}) m "
        "USING (user_id)",
        f"SELECT COALESCE(m.n, 0) >= 2 AS often, COUNT(*) AS n FROM people LEFT JOIN ({MANY}) m USING (user_id) "
        "GROUP BY ALL",
        f"SELECT m.n IS NULL AS never, COUNT(*) AS n FROM people LEFT JOIN ({FEW}) m USING (user_id) GROUP BY 1",
        f"SELECT COUNT(*) AS n FROM people LEFT JOIN ({FEW}) m USING (user_id) WHERE m.n > 4",
        f"SELECT COUNT(*) AS n FROM people p LEFT JOIN ({FEW}) m USING (user_id) JOIN ({MANY}) o "
        "ON o.user_id = m.user_id",
        f"WITH a AS ({MANY}), b AS ({FEW}) SELECT COUNT(a.user_id) AS x, COUNT(b.user_id) AS y FROM a LEFT JOIN b "
        "USING (user_id)",
        "SELECT p.color, COUNT(o.shop) AS n FROM people p LEFT JOIN (SELECT * FROM orders WHERE shop = 'a') o "
        "ON o.user_id = p.user_id GROUP BY 1",
        "SELECT p.color, COUNT(DISTINCT o.user_id) AS n FROM people p LEFT JOIN (SELECT * FROM orders WHERE "
        "shop = 'a') o ON o.user_id = p.user_id GROUP BY 1",
        "SELECT COUNT(DISTINCT o.user_id) AS n FROM people p LEFT JOIN orders o ON o.user_id = p.user_id "
        "AND o.shop = 'b'",
        "SELECT p.color, COUNT(*) AS n FROM orders o LEFT JOIN people p ON p.user_id = o.user_id AND p.color = 'red' "
        "GROUP BY 1",
        "SELECT o.shop, p.color IS NULL AS x, COUNT(*) AS n FROM orders o LEFT JOIN people p ON p.user_id = o.user_id "
        "AND o.shop = 'a' GROUP BY ALL",
        "SELECT COUNT(*) AS n, COUNT(p.user_id) AS k, COUNT(p.color) AS c FROM orders o LEFT JOIN people p "
        "ON p.user_id = o.user_id AND o.shop IN ('a', 'b')",
        "SELECT COUNT(*) AS n FROM orders o LEFT JOIN people p ON p.user_id = o.user_id AND p.color = 'red' "
        "WHERE p.user_id IS NULL",
        "SELECT COUNT(*) AS n FROM orders o LEFT JOIN people p ON p.user_id = o.user_id AND p.color = 'red' "
        "WHERE p.color = 'blue' OR o.shop = 'c'",
        f"SELECT shops, COUNT(*) AS n FROM ({MANY}) GROUP BY shops",
        f"SELECT COUNT(*) AS n FROM ({MANY}) WHERE shops = n",
        "SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(DISTINCT shop) FROM orders o WHERE o.user_id = "
        "p.user_id) >= 3",
        "SELECT n, COUNT(*) AS k FROM (SELECT user_id, COUNT(DISTINCT DATE_TRUNC('month', day)) AS n FROM orders "
        "GROUP BY user_id) GROUP BY n",
        "SELECT COUNT(*) AS n FROM (SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(DISTINCT shop) = 4)",
        "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(DISTINCT paid) AS d FROM payments GROUP BY user_id) "
        "WHERE d > 4",
        f"SELECT MAX(shops) AS n FROM ({MANY})",
        "SELECT COUNT(*) AS n FROM people p WHERE p.user_id IS NOT NULL AND color = 'red'",
        of_left_join("SUM(1) AS n, SUM(2) AS m, COUNT(1) AS k"),
        of_left_join("COUNT_IF(color = 'red') AS n, COUNT(CASE WHEN color = 'red' THEN 1 END) AS m"),
        of_left_join(
            "SUM(CASE WHEN color = 'red' THEN 3 ELSE 1 END) AS n, AVG(CASE WHEN color = 'red' THEN 1 ELSE 0 END) AS m"
        ),
        of_left_join("COUNT(DISTINCT p.user_id) AS n", "JOIN payments q ON q.user_id = b.user_id"),
        of_left_join("COUNT(DISTINCT p.user_id) AS n", "JOIN people q ON q.user_id = b.user_id"),
        "SELECT 'Q' || quarter(day) AS q, year(day) || '' AS y, COUNT(*) AS n FROM orders GROUP BY ALL",
    ],
)
def test_people_beside_their_rows(asked: Asked, sql: str) -> None:
    asked.same(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n, COUNT(DISTINCT user_id) AS k FROM payments",
        "SELECT o.shop, COUNT(*) AS n FROM payments p JOIN orders o ON p.order_id = o.order_id GROUP BY o.shop",
        "SELECT o.shop, COUNT(*) AS n FROM payments p JOIN orders o ON p.order_id = o.order_id AND p.user_id = "
        "o.user_id GROUP BY o.shop",
        "SELECT o.shop, COUNT(*) AS n FROM payments p LEFT JOIN orders o USING (order_id) GROUP BY o.shop",
        "SELECT u.color, COUNT(*) AS n FROM payments p JOIN people u ON u.user_id = p.user_id GROUP BY 1",
        "SELECT u.color, o.shop, COUNT(*) AS n FROM payments p JOIN orders o USING (order_id) JOIN people u "
        "ON u.user_id = o.user_id GROUP BY ALL",
        "SELECT COUNT(*) AS n FROM people u WHERE EXISTS (SELECT 1 FROM payments p WHERE p.user_id = u.user_id "
        "AND p.amount > 60)",
        "SELECT COUNT(*) AS n FROM people WHERE user_id IN (SELECT user_id FROM payments WHERE amount > 60)",
        "SELECT COUNT(*) AS n FROM payments p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.order_id = p.order_id AND "
        "o.shop = 'a')",
        "SELECT way, COUNT(*) AS n FROM payments p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE p.order_id = "
        "o.order_id AND o.shop = 'a') GROUP BY way",
        "SELECT COUNT(*) AS n FROM payments WHERE order_id IN (SELECT order_id FROM orders WHERE shop = 'a')",
        "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.order_id AND "
        "p.way = 'cash')",
        "SELECT t, COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS t FROM payments WHERE way = 'card' GROUP BY user_id)"
        " GROUP BY t HAVING COUNT(*) > 20",
    ],
)
def test_rows_that_name_their_person_and_belong_to_a_row(asked: Asked, sql: str) -> None:
    asked.same(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT GROUPING(color) AS g, color, COUNT(*) AS n FROM people GROUP BY ROLLUP (color) ORDER BY g, color",
        "SELECT GROUPING(shop, quarter(day)) AS g, shop, COUNT(*) AS n FROM orders GROUP BY CUBE (shop, quarter(day)) "
        "HAVING GROUPING(shop) = 0",
        "SELECT GROUPING_ID(shop) + 1 AS g, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((shop), ())",
        "SELECT CASE GROUPING(shop) WHEN 1 THEN 'all' ELSE shop END AS s, COUNT(*) AS n FROM orders GROUP BY "
        "ROLLUP (shop)",
        "SELECT GROUPING(color) AS g, COUNT(*) AS n FROM people GROUP BY color",
    ],
)
def test_grouping(asked: Asked, sql: str) -> None:
    wanted = rows_of(asked.database.execute(sql).fetchall())
    assert rows_of([tuple(row.values()) for row in asked.guard.query(sql).to_pylist()]) == wanted
    assert asked.guard.describe(sql).types == asked.guard.query(sql).schema.types
    made = plan(sql, asked.guard.catalog)
    assert isinstance(made, Plan)
    assert rows_of(asked.unguarded.answer(made)) == wanted


@pytest.mark.parametrize(
    "call",
    [
        *("REGR_COUNT(debt, income)", "REGR_AVGX(debt, income)", "REGR_AVGY(debt, income)"),
        *("REGR_SXX(debt, income)", "REGR_SYY(debt, income)", "REGR_SXY(debt, income)"),
        *("REGR_SLOPE(income, debt)", "REGR_INTERCEPT(debt, income)", "REGR_R2(debt, income)"),
        "REGR_SLOPE(debt, income) FILTER (WHERE color = 'red')",
        "REGR_SLOPE(2 * debt + 1, income)",
    ],
)
def test_lines_through_two_columns(asked: Asked, call: str) -> None:
    sql = f"SELECT {call} AS v FROM people"
    made = plan(sql, asked.guard.catalog)
    assert isinstance(made, Plan)
    ((true,),) = asked.database.execute(sql).fetchall()
    ((meant,),) = asked.unguarded.answer(made)
    assert float(meant) == pytest.approx(float(true))
    told = asked.guard.query(sql).to_pylist()[0]["v"]
    assert float(told) == pytest.approx(float(true), rel=0.1, abs=0.05)


ORDERS = "SELECT order_id, SUM(amount) AS t, COUNT(*) AS n FROM payments GROUP BY order_id"
BY_SHOP = "SELECT o.order_id, o.shop, SUM(p.amount) AS t FROM orders o JOIN payments p USING (order_id) GROUP BY ALL"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT AVG(t) AS a, SUM(t) AS s, COUNT(*) AS n, AVG(n) AS m FROM ({ORDERS})",
        f"WITH o AS ({ORDERS}) SELECT COUNT(order_id) AS n, COUNT(o.t) AS k, ROUND(AVG(o.n), 1) AS m FROM o",
        "SELECT shop, AVG(t) AS a, COUNT(*) AS n FROM (SELECT o.order_id, o.shop, SUM(p.amount) AS t FROM orders o "
        "JOIN payments p ON p.order_id = o.order_id WHERE p.way = 'card' GROUP BY 1, 2) x GROUP BY shop",
        "SELECT AVG(t) AS a FROM (SELECT o.order_id, o.shop, SUM(p.amount) AS t FROM orders o JOIN payments p USING "
        "(order_id) GROUP BY ALL) WHERE shop = 'a' HAVING COUNT(*) > 5",
        "SELECT COUNT(*) AS n, COUNT(m.user_id) AS k, COUNT(DISTINCT m.user_id) AS j FROM people p LEFT JOIN "
        f"({FEW}) m USING (user_id) LEFT JOIN orders q ON q.user_id = p.user_id",
        f"SELECT COUNT(*) AS n FROM ({ORDERS})",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT order_id FROM payments WHERE way = 'card')",
        f"SELECT (SELECT COUNT(*) FROM ({ORDERS})) AS n, (SELECT AVG(t) FROM ({ORDERS})) AS a",
        # Names of the SELECT above that are columns of the tables, too.
        f"SELECT shop AS way, AVG(t) AS amount FROM ({BY_SHOP}) GROUP BY way ORDER BY SUM(t) DESC",
        f"SELECT shop AS way, COUNT(*) AS n FROM ({BY_SHOP}) WHERE way = 'a' GROUP BY ALL HAVING n > 5",
        f"SELECT shop AS way, AVG(amount.t) AS t FROM ({BY_SHOP}) AS amount GROUP BY shop HAVING AVG(t) > 5",
        "SELECT AVG(t) AS a, COUNT(k) AS n FROM (SELECT order_id AS k, SUM(amount) AS t FROM payments GROUP BY k)",
        f"WITH x AS ({BY_SHOP}) SELECT shop, AVG(t) AS a FROM x GROUP BY shop UNION ALL SELECT 'all', AVG(t) FROM x",
        "SELECT COUNT(debt) AS n, COUNT(*) AS k FROM (SELECT o.order_id, u.debt, SUM(p.amount) AS t FROM orders o JOIN "
        "payments p USING (order_id) JOIN people u ON u.user_id = o.user_id GROUP BY ALL)",
    ],
)
def test_means_by_the_row_that_rows_belong_to(asked: Asked, sql: str) -> None:
    made = plan(sql, asked.guard.catalog)
    assert isinstance(made, Plan)
    wanted = asked.database.execute(sql).fetchall()
    assert rows_of(asked.unguarded.answer(made)) == rows_of(wanted)
    told = sorted(tuple(row.values()) for row in asked.guard.query(sql).to_pylist())
    for row, true in zip(told, sorted(wanted), strict=True):
        for one, other in zip(row, true, strict=True):
            assert one == other if isinstance(one, str) else float(one) == pytest.approx(float(other), rel=0.08)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT user_id, COUNT(DISTINCT shop) AS n FROM orders GROUP BY 1", "names people"),
        ("SELECT n FROM (SELECT user_id, COUNT(DISTINCT shop) AS n FROM orders GROUP BY 1)", "rows of people"),
        ("SELECT AVG(n) FROM (SELECT user_id, COUNT(DISTINCT day) AS n FROM orders GROUP BY 1)", "shown by MONTH"),
        ("SELECT AVG(n) FROM (SELECT user_id, COUNT(DISTINCT order_id) AS n FROM orders GROUP BY 1)", "single rows"),
        (f"SELECT m.user_id IS NULL FROM people LEFT JOIN ({FEW}) m USING (user_id)", "rows of people"),
        (f"SELECT m.user_id, COUNT(*) FROM people LEFT JOIN ({FEW}) m USING (user_id) GROUP BY 1", "names people"),
        (f"SELECT MAX(m.user_id) FROM people LEFT JOIN ({FEW}) m USING (user_id)", "names people"),
        ("SELECT payments.user_id, COUNT(*) FROM payments GROUP BY 1", "names people"),
        ("SELECT order_id, SUM(amount) FROM payments GROUP BY 1", "names single rows"),
        (f"SELECT MAX(t) FROM ({ORDERS})", "names single rows"),
        (f"SELECT COUNT(*) FROM ({ORDERS}) WHERE t > 50", "names single rows"),
        (f"SELECT AVG(t), order_id FROM ({ORDERS}) GROUP BY order_id", "names single rows"),
        ("SELECT AVG(t) FROM (SELECT order_id, way, SUM(amount) AS t FROM payments GROUP BY ALL)", "names single rows"),
        *(
            (f"SELECT {call}, AVG(t) FROM ({BY_SHOP})", "names single rows")
            for call in (
                *("COUNT_IF(shop = 'a')", "SUM(CASE WHEN shop = 'a' THEN 1 ELSE 0 END)", "MODE(shop)", "SUM(1)"),
                *("COUNT(upper(shop))", "HISTOGRAM(shop)", "REGR_COUNT(t, t)", "AVG(t) OVER ()"),
            )
        ),
        (
            "SELECT AVG(t) FROM (SELECT order_id, SUM(amount) AS t FROM payments GROUP BY ROLLUP (order_id))",
            "single rows",
        ),
        (
            "WITH a AS (SELECT * FROM payments WHERE way = 'card'), o AS (SELECT order_id, SUM(amount) AS t FROM a "
            "GROUP BY 1) SELECT * FROM (WITH a AS (SELECT * FROM payments WHERE way = 'cash') SELECT AVG(t) FROM o)",
            "names single rows",
        ),
        (
            f"SELECT COUNT(*) FROM people q WHERE user_id IN (SELECT m.user_id FROM people p LEFT JOIN ({FEW}) m USING "
            "(user_id))",
            "IN over a table that is joined by LEFT JOIN",
        ),
        (f"SELECT COUNT(*) FROM people q WHERE user_id NOT IN ({of_left_join('b.user_id')})", "IN over a table"),
        (
            f"SELECT COUNT(*) FROM people q WHERE EXISTS ({of_left_join('1')} WHERE b.user_id = q.user_id)",
            "A join with a query around",
        ),
        (of_left_join("COUNT(DISTINCT COALESCE(b.shop, 'none'))"), "not NULL where LEFT JOIN finds no row"),
        (of_left_join("AVG(CASE WHEN b.shop IS NULL THEN 1 ELSE 0 END)"), "LEFT JOIN"),
        (
            "SELECT AVG(n) FROM ("
            + of_left_join("p.user_id, COUNT(DISTINCT COALESCE(b.shop, 'none')) AS n", "GROUP BY 1)"),
            "not NULL where LEFT JOIN finds no row",
        ),
        (
            "SELECT AVG(n) FROM ("
            + of_left_join("p.user_id, COUNT(*) FILTER (WHERE b.shop = 'b') AS n", "GROUP BY 1)"),
            "LEFT JOIN with FILTER",
        ),
        (f"SELECT COUNT(*) FROM ({of_left_join('b.user_id, COUNT(*) AS n')} GROUP BY 1)", "Groups by the person"),
        (f"SELECT COUNT(*) FROM ({of_left_join('DISTINCT b.user_id')})", "Groups by the person"),
        (
            "SELECT COUNT(*) FILTER (WHERE b.z IS NULL) FROM people p LEFT JOIN (SELECT user_id, 1 AS z FROM orders) b "
            "USING (user_id)",
            "LEFT JOIN of a subquery with constants",
        ),
        (
            "SELECT GROUPING(color) FILTER (WHERE income > 3) FROM people GROUP BY ROLLUP (color)",
            "GROUPING with FILTER",
        ),
        (
            "SELECT color, COUNT(*) FROM people GROUP BY GROUPING SETS ((color), (color), ())",
            "grouping sets are the same",
        ),
        ("SELECT GROUPING(income), COUNT(*) FROM people GROUP BY color", "GROUPING takes keys"),
        ("SELECT GROUPING(user_id), COUNT(*) FROM people GROUP BY color", "names people"),
        ("SELECT REGR_SLOPE(income, user_id) FROM people", "names people"),
        ("SELECT COUNT(*) FROM payments p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.shop = 'a')", "EXISTS"),
    ],
)
def test_what_stays_refused(asked: Asked, sql: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        asked.guard.query(sql)


def counted(folder: Path, given: dict[str, pd.DataFrame]) -> int:
    folder.mkdir()
    guard = guarded(folder, given, POLICY, silent)
    return int(guard.query("SELECT COUNT(*) AS n FROM payments").to_pylist()[0]["n"])


def test_a_row_whose_person_is_another_one_is_of_nobody(tmp_path: Path) -> None:
    given = tables()
    whole = counted(tmp_path / "whole", given)
    payments = given["payments"].copy()
    payments.loc[payments.index < 7, "user_id"] += 1
    assert counted(tmp_path / "other", {**given, "payments": payments}) == whole - 7


def test_a_row_is_not_moved_by_others_who_share_the_key_of_its_order(tmp_path: Path) -> None:
    given = tables()
    whole = counted(tmp_path / "whole", given)
    again = given["orders"].copy()
    again["user_id"] = (again["user_id"] - 1).clip(lower=0)  # somebody before in the order, with the same keys
    orders = pd.concat([again[again["user_id"] < 100], given["orders"]], ignore_index=True)
    assert counted(tmp_path / "shared", {**given, "orders": orders}) == whole


def test_types_of_the_person_have_to_agree(tmp_path: Path) -> None:
    given = tables()
    given["payments"]["user_id"] = given["payments"]["user_id"].astype(str)
    with pytest.raises(InputError, match="user_id is VARCHAR, and people of orders are BIGINT"):
        guarded(tmp_path, given, POLICY, silent)
