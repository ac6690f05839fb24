"""What analysts and their tools write: shorter ways of writing, functions over rows, subqueries by keys, orders with
lines, DECIMAL. What a guard without noise answers is what DuckDB says."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from guard_data import rows_of as rows
from sensitivity import moves, recorded, without
from worlds_of_people import GENEROUS, guarded, silent

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

POLICY = f"""version: 1
database: db.duckdb
k: 3
{GENEROUS}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [plan, stars, name, nothing]
    values: {{plan: [free, gold, paid]}}
    bounds: {{stars: [1, 5]}}
  orders:
    privacy_unit: user_id
    grain: rows
    key: order_id
    artifacts: [shop, fee]
    coarsened: {{day: day, moment: day}}
    bounds: {{fee: [0, 1]}}
    rows_per_person: 40
  lines:
    belongs_to: {{order_id: orders.order_id}}
    artifacts: [item, amount]
    measures: [price]
    bounds: {{amount: [0, 3], price: [0, 4]}}
    rows_per_person: 80
  plans: {{public: true}}
  items: {{public: true}}
  kinds: {{public: true}}
joins:
  - orders.user_id = people.user_id
  - people.plan = plans.plan
  - lines.item = items.item
  - items.kind = kinds.kind
principals: {{a: {{}}}}
"""
PEOPLE = 400
TABLES = {
    "people": "select i as user_id, ['free', 'gold', 'paid', 'free'][1 + i % 4] as plan, 1 + i % 5 as stars,"
    " ['Ann-x', 'Bob-y', 'Cid-x'][1 + i % 3] as name, nullif(i % 2, 0) as nothing"
    f" from range({PEOPLE}) t(i)",
    "orders": "select i as order_id, i % 300 as user_id, ['a', 'b'][1 + i % 2] as shop,"
    " ((i % 7) / 100)::decimal(6, 2) as fee, date '2024-01-30' + (i % 7)::integer as day,"
    " timestamp '2024-01-30 10:00:00' + to_days((i % 7)::integer) as moment from range(2000) t(i)",
    "lines": "select i % 1500 as order_id, i % 6 as item, i % 4 as amount, ((i % 5) * 0.75)::decimal(8, 2) as price"
    " from range(4000) t(i)",
    "plans": "from (values ('free', 0), ('gold', 20), ('paid', 5)) t(plan, price)",
    "items": "select i as item, 'item ' || i as label, i % 3 as kind from range(6) t(i)",
    "kinds": "select i as kind, 'kind ' || i as what from range(3) t(i)",
}


@dataclass
class Asked:
    """A guard without noise, and the database."""

    guard: Guard
    database: duckdb.DuckDBPyConnection

    def same(self, sql: str) -> pa.Table:
        true = self.database.execute(sql).fetchall()
        answer = self.guard.query(sql)
        told = [tuple(row) for row in zip(*(column.to_pylist() for column in answer.columns), strict=True)]
        assert rows(told) == rows(true)
        assert true
        assert self.guard.describe(sql).types == answer.schema.types
        return answer


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("analysts")
    guard = guarded(folder, TABLES, POLICY, silent)
    database = duckdb.connect(config={"threads": 1})  # groups come in the same order each time
    database.execute(f"attach '{folder / 'db.duckdb'}' as source (read_only)")
    database.execute("use source")
    return Asked(guard, database)


COUNTS = "SELECT plan, stars, COUNT(*) AS n FROM people GROUP BY ALL"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM ({COUNTS}) ORDER BY ALL DESC",
        "SELECT plan, COUNT(*) AS n FROM people GROUP BY plan UNION ALL SELECT 'x', 3 ORDER BY ALL",
        f"SELECT * EXCLUDE (n) FROM ({COUNTS})",
        f"SELECT t.* REPLACE (n * 2 AS n) FROM ({COUNTS}) AS t",
        f"SELECT * RENAME (n AS people) FROM ({COUNTS})",
        f"SELECT plan, LAG(n, 1, 0) OVER w AS b, SUM(n) OVER (w ROWS 1 PRECEDING)::BIGINT AS s FROM ({COUNTS}) "
        "WINDOW w AS (PARTITION BY plan ORDER BY stars)",
        f"SELECT b.star, t.n FROM (VALUES (1, 'free'), (9, 'paid')) AS b(star, p) LEFT JOIN ({COUNTS}) AS t "
        "ON b.star = t.stars AND b.p = t.plan",
        "VALUES (1, 'a'), (2, NULL)",
        f"SELECT * FROM ({COUNTS}) UNPIVOT (value FOR name IN (stars, n))",
        f"UNPIVOT ({COUNTS}) ON stars, n INTO NAME what VALUE v ORDER BY ALL",
        "UNPIVOT (SELECT plan, nullif(COUNT(*), 100) AS a, COUNT(*) AS b FROM people GROUP BY plan) ON a, b",
        f"PIVOT ({COUNTS}) ON plan USING SUM(n) GROUP BY stars ORDER BY stars",
        "PIVOT people ON plan USING COUNT(*) GROUP BY stars",
        f"SELECT list(n ORDER BY n), MAX(n) FROM ({COUNTS})",
    ],
)
def test_shorter_ways_of_writing(asked: Asked, sql: str) -> None:
    asked.same(sql)


@pytest.mark.parametrize(
    "condition",
    [
        "regexp_matches(name, '^B')",
        "name ~ 'o'",
        "name SIMILAR TO 'A.*'",
        "name NOT SIMILAR TO 'A.*'",
        "regexp_extract(name, '([a-z]+)-', 1) = 'ob'",
        "replace(name, '-', '') = 'Annx'",
        "split_part(name, '-', 2) = 'x'",
        "concat(name, nothing, stars) = 'Bob-y1'",
        "nullif(stars, 3) IS NULL",
        "stars::VARCHAR LIKE '3%'",
        "strpos(name, '-') = 4",
        "reverse(name) = 'x-nnA'",
        "sqrt(stars) > 2",
        "power(stars, 2) = 9",
        "stars ** 2 < 5",
        "ln(stars) < 0.5",
        "log10(stars) = 0",
        "exp(stars) > 50",
        "trunc(stars / 2) = 1",
        "plan IN (SELECT plan FROM plans WHERE price > 1)",
        "plan NOT IN (SELECT p.plan FROM plans AS p WHERE p.price > 1)",
        "EXISTS (SELECT 1 FROM plans AS p WHERE p.plan = people.plan AND p.price < 10)",
        "NOT EXISTS (SELECT 1 FROM plans AS p WHERE p.plan = people.plan AND p.price < 10)",
        "(SELECT COUNT(*) FROM orders AS o WHERE o.user_id = people.user_id) > 6",
        "(SELECT AVG(fee) FROM orders AS o WHERE o.user_id = people.user_id AND shop = 'a') > 0.01",
    ],
)
def test_conditions_on_people(asked: Asked, condition: str) -> None:
    asked.same(f"SELECT COUNT(*) AS n FROM people WHERE {condition}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT concat(plan, '/', stars) AS k, COUNT(*) AS n FROM people GROUP BY 1",
        "SELECT nullif(plan, 'free') AS k, COUNT(*) AS n FROM people GROUP BY k",
        "SELECT split_part(name, '-', 2) AS k, replace(plan, 'e', 'a') AS l, COUNT(*) AS n FROM people GROUP BY ALL",
        "SELECT CAST(stars AS VARCHAR) AS k, COUNT(*) AS n FROM people GROUP BY 1",
        "SELECT day, COUNT(*) AS n FROM orders GROUP BY day HAVING COUNT(*) > 3 ORDER BY day DESC",
        "SELECT day::VARCHAR AS d, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT CAST(moment AS DATE) AS d, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT moment::DATE AS d, COUNT(*) AS n FROM orders GROUP BY moment::DATE",
        "SELECT day + INTERVAL 1 MONTH AS d, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT last_day(day) AS d, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT COUNT(*) AS n FROM orders WHERE day + 2 > DATE '2024-02-03'",
        "SELECT COUNT(*) AS n FROM orders AS o WHERE o.day > (SELECT MIN(x.day) FROM orders AS x "
        "WHERE x.user_id = o.user_id)",
        "SELECT COUNT(*) AS n FROM orders AS o WHERE fee > (SELECT AVG(x.fee) FROM orders AS x "
        "WHERE x.user_id = o.user_id)",
        "SELECT plan, COUNT(*) AS n FROM (SELECT p.user_id, p.plan, COUNT(*) AS orders FROM people AS p "
        "JOIN orders AS o ON p.user_id = o.user_id GROUP BY p.user_id, p.plan) WHERE orders > 6 GROUP BY plan",
        "SELECT COUNT(*) AS n FROM (SELECT user_id FROM orders GROUP BY user_id HAVING AVG(fee) > 0.015)",
        "SELECT plan, (SELECT COUNT(*) FROM people AS p WHERE p.plan = plans.plan) AS n FROM plans",
        "SELECT plan, (SELECT COUNT(*) FROM people AS p WHERE p.plan = q.plan AND p.stars > 3) AS n FROM plans AS q "
        "WHERE (SELECT COUNT(*) FROM people AS p WHERE p.plan = q.plan) > 100",
        "SELECT plan, (SELECT price FROM plans AS q WHERE q.plan = people.plan) AS price, COUNT(*) AS n FROM people "
        "GROUP BY plan",
        "SELECT SUM(CASE WHEN plan IN (SELECT plan FROM plans WHERE price > 1) THEN 1 ELSE 0 END)::BIGINT AS n "
        "FROM people",
    ],
)
def test_keys_and_values_of_people(asked: Asked, sql: str) -> None:
    asked.same(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT order_id) AS n FROM lines",
        "SELECT COUNT(DISTINCT order_id) AS n, COUNT(*) AS m FROM lines WHERE item = 2",
        "SELECT COUNT(DISTINCT o.order_id) AS n FROM orders AS o JOIN lines AS l ON o.order_id = l.order_id "
        "WHERE l.amount > 1 AND o.shop = 'a'",
        "SELECT o.shop, COUNT(DISTINCT o.order_id) AS n FROM orders AS o JOIN lines AS l USING (order_id) "
        "JOIN items AS i ON l.item = i.item WHERE i.label LIKE '%3' GROUP BY o.shop",
        "SELECT plan, COUNT(DISTINCT l.order_id) AS n FROM people AS p JOIN orders AS o ON p.user_id = o.user_id "
        "JOIN lines AS l ON l.order_id = o.order_id WHERE amount = 3 GROUP BY plan",
        "SELECT COUNT(DISTINCT order_id) FILTER (WHERE item = 5) AS n FROM lines",
        "SELECT COUNT(*) AS n FROM orders WHERE order_id IN (SELECT order_id FROM lines WHERE amount = 3)",
        "SELECT COUNT(*) AS n FROM orders WHERE order_id NOT IN (SELECT l.order_id FROM lines AS l WHERE amount = 3)",
        "SELECT COUNT(*) AS n FROM lines WHERE order_id IN (SELECT order_id FROM orders WHERE shop = 'a')",
        "SELECT COUNT(*) AS n FROM lines WHERE order_id NOT IN (SELECT order_id FROM orders WHERE day < '2024-02-01')",
        "SELECT COUNT(*) AS n FROM lines WHERE item IN (SELECT item FROM items WHERE kind IN "
        "(SELECT kind FROM kinds WHERE what <> 'kind 1'))",
        "SELECT COUNT(*) AS n FROM lines AS l WHERE EXISTS (SELECT 1 FROM items AS i "
        "JOIN kinds AS k ON i.kind = k.kind WHERE i.item = l.item AND k.what = 'kind 2')",
    ],
)
def test_orders_and_their_lines(asked: Asked, sql: str) -> None:
    asked.same(sql)


def test_a_row_may_not_be_in_several_groups(asked: Asked) -> None:
    with pytest.raises(Refused, match="names single rows") as refusal:
        asked.guard.query("SELECT item, COUNT(DISTINCT order_id) AS n FROM lines GROUP BY item")
    assert refusal.value.static


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM orders WHERE fee + 0.01 = 0.03",
        "SELECT COUNT(*) AS n FROM orders WHERE fee * 3 = 0.09",
        "SELECT COUNT(*) AS n FROM orders WHERE 1 - fee IN (0.99, 0.97)",
        "SELECT COUNT(*) AS n FROM lines WHERE amount * 1.1 = 3.3",
        "SELECT fee + 0.01 AS f, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT fee * 3 - 0.02 AS f, COUNT(*) AS n FROM orders GROUP BY fee * 3 - 0.02",
    ],
)
def test_decimals_are_computed_as_such(asked: Asked, sql: str) -> None:
    asked.same(sql)


def types_of(asked: Asked, sql: str) -> tuple[list[pa.DataType], list[str]]:
    described = asked.database.execute(f"describe {sql}").fetchall()
    answer = asked.guard.query(sql)
    assert asked.guard.describe(sql).types == answer.schema.types
    return answer.schema.types, [row[1] for row in described]


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("SUM(price * amount)", pa.decimal128(38, 2)),
        ("SUM(price * (1 - price))", pa.decimal128(38, 4)),
        ("SUM(price * 0.125)", pa.decimal128(38, 5)),
        ("SUM(price + 0.5)", pa.decimal128(38, 2)),
        ("SUM(CASE WHEN amount > 1 THEN price ELSE 0 END)", pa.decimal128(38, 2)),
        ("SUM(price / 2)", pa.float64()),
        ("SUM(price * amount / 2)", pa.float64()),
        ("SUM(price::DOUBLE)", pa.float64()),
        ("AVG(price)", pa.float64()),
        ("MEDIAN(price)", pa.decimal128(8, 2)),
    ],
)
def test_types_of_sums(asked: Asked, expression: str, type_: pa.DataType) -> None:
    """A decimal is told with as many digits as DuckDB's, a number of floating point as such."""
    sql = f"SELECT {expression} AS x FROM lines"
    (told,), (true,) = types_of(asked, sql)
    assert told == type_
    assert true == {"double": "DOUBLE"}.get(str(type_), f"DECIMAL({getattr(type_, 'precision', 0)},{_scale(type_)})")
    (value,) = asked.guard.query(sql).column(0).to_pylist()
    (wanted,) = asked.database.execute(sql).fetchone() or ()
    assert abs(float(value) - float(wanted)) <= 0.01 * abs(float(wanted)) + 0.05


def _scale(type_: pa.DataType) -> int:
    return int(getattr(type_, "scale", 0))


def test_a_sum_of_decimals_is_exact(asked: Asked) -> None:
    (row,) = asked.guard.query("SELECT SUM(price * amount) * 0.1 AS x FROM lines").to_pylist()
    assert isinstance(row["x"], Decimal)


def test_quantiles_of_dates(asked: Asked) -> None:
    sql = "SELECT MEDIAN(day) AS m, QUANTILE_DISC(day, 0.3) AS q, QUANTILE_CONT(moment, [0.5]) AS l FROM orders"
    types, true = types_of(asked, sql)
    assert types[:2] == [pa.timestamp("us"), pa.date32()]
    assert true == ["TIMESTAMP", "DATE", "TIMESTAMP[]"]
    (told,) = asked.guard.query(sql).to_pylist()
    (wanted,) = asked.database.execute(sql).fetchall()
    assert abs((told["m"] - wanted[0]).total_seconds()) <= 86_400
    assert abs((told["q"] - wanted[1]).days) <= 1


def test_a_histogram_with_bins(asked: Asked) -> None:
    sql = "SELECT plan, HISTOGRAM(stars, [2, 4]) AS h FROM people GROUP BY plan"
    told = {row["plan"]: dict(row["h"]) for row in asked.guard.query(sql).to_pylist()}
    assert told == dict(asked.database.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM people WHERE regexp_matches(name, plan)", "REGEXP_MATCHES over rows"),
        ("SELECT COUNT(*) FROM people WHERE regexp_matches(name, '(x')", "REGEXP_MATCHES over rows"),
        ("SELECT COUNT(*) FROM people WHERE regexp_matches(name, '(a{1000}){1000}')", "REGEXP_MATCHES over rows"),
        ("SELECT COUNT(*) FROM people WHERE replace(name, 'a', plan) = ''", "REPLACE over rows"),
        (f"SELECT COUNT(*) FROM people WHERE replace(name, 'a', '{'b' * 99}') = ''", "REPLACE over rows"),
        ("SELECT COUNT(*) FROM people WHERE concat_ws('-', name, plan) = ''", "CONCATWS|CONCAT_WS"),
        ("SELECT SUM(sign(stars - 3)) FROM people", "SIGN as the argument"),
        ("SELECT COUNT(*) FROM people WHERE power(stars, stars) > 2", "over rows"),
        ("SELECT * EXCLUDE (nobody) FROM people", "no column"),
        ("PIVOT people ON name USING COUNT(*)", "without a list of values"),
        ("SELECT COUNT(*) FROM people WHERE stars IN (SELECT price FROM plans)", "A subquery in this place"),
        ("SELECT COUNT(*) FROM people WHERE plan IN (SELECT plan FROM plans LIMIT 1)", "A subquery in this place"),
        ("SELECT COUNT(*) FROM people WHERE user_id::VARCHAR = '3'", "names people"),
        ("SELECT user_id || '' AS k, COUNT(*) FROM people GROUP BY 1", "names people"),
        ("SELECT * FROM people UNPIVOT (v FOR k IN (stars, nothing))", "rows of people"),
        ("SELECT order_id::VARCHAR AS k, COUNT(*) FROM orders GROUP BY 1", "names single rows"),
        ("SELECT plan, (SELECT MAX(user_id) FROM people AS p WHERE p.plan = q.plan) FROM plans AS q", "names people"),
        ("SELECT EXTRACT(hour FROM moment) AS h, COUNT(*) FROM orders GROUP BY 1", "shown by DAY"),
        ("SELECT moment::VARCHAR AS k, COUNT(*) FROM orders GROUP BY 1", "DAY|cast"),
        ("SELECT COUNT(*) FROM orders WHERE moment + INTERVAL 1 HOUR > TIMESTAMP '2024-01-30 11:00:00'", "DAY|number"),
    ],
)
def test_what_stays_refused(asked: Asked, sql: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refusal:
        asked.guard.query(sql)
    assert refusal.value.static


NEW = [
    "SELECT COUNT(DISTINCT order_id) FROM lines WHERE amount > 1",
    "SELECT o.shop, COUNT(DISTINCT o.order_id) AS n FROM orders AS o JOIN lines AS l USING (order_id) GROUP BY o.shop",
    "SELECT COUNT(*) FROM orders AS o WHERE fee > (SELECT AVG(x.fee) FROM orders AS x WHERE x.user_id = o.user_id)",
    "SELECT AVG(a) FROM (SELECT user_id, AVG(fee) AS a FROM orders GROUP BY user_id)",
    "SELECT MEDIAN(day) FROM orders",
    "SELECT COUNT(*) FROM lines WHERE item IN (SELECT item FROM items WHERE label LIKE '%1')",
    "SELECT COUNT(*) FROM lines WHERE order_id IN (SELECT order_id FROM orders WHERE shop = 'a')",
    "SELECT SUM(sqrt(amount)), SUM(power(amount, 2)), SUM(ln(amount)) FROM lines",
    "SELECT fee + 0.01 AS f, COUNT(*) FROM orders GROUP BY 1",
    "SELECT HISTOGRAM(fee, [0.01, 0.02]) FROM orders",
    "SELECT AVG(n) FROM (SELECT user_id, COUNT(DISTINCT shop) AS n FROM orders GROUP BY user_id)",
    "SELECT COUNT(*) FROM (SELECT user_id, COUNT(DISTINCT item) AS n FROM lines JOIN orders USING (order_id) GROUP BY "
    "user_id) WHERE n >= 1",
    "SELECT COUNT(*) FROM lines l WHERE EXISTS (SELECT 1 FROM orders o WHERE o.order_id = l.order_id AND shop = 'a')",
    "WITH a AS (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id), b AS (SELECT user_id, SUM(fee) AS f FROM "
    "orders WHERE shop = 'a' GROUP BY user_id) SELECT COUNT(b.user_id), AVG(b.f) FROM a LEFT JOIN b USING (user_id)",
]


@pytest.mark.parametrize("who", [1, 299, 7])
def test_nobody_moves_a_measurement_by_more_than_its_reach(tmp_path: Path, who: int) -> None:
    """Of every measurement that these questions take, with one person who has many rows left out."""
    many = {
        **TABLES,
        "orders": f"{TABLES['orders']} union all select 2000 + i, 7, 'a', 0.03, date '2024-02-01', "
        "timestamp '2024-02-01 10:00:00' from range(300) t(i)",
        "lines": f"{TABLES['lines']} union all select 2000 + i % 300, i % 6, 3, 3.75 from range(900) t(i)",
    }
    guard = guarded(tmp_path, many, POLICY, silent)
    with recorded() as wanted:
        for sql in NEW:
            guard.query(sql)
    assert len(wanted) >= len(NEW)
    units = {"people": "user_id", "orders": "user_id"}  # lines of no order are nobody's
    other = without(tmp_path / "db.duckdb", tmp_path / "other.duckdb", who, units)
    for one, moved, reach in moves(guard, wanted, other):
        assert moved <= reach * (1 + 1e-6), one.name


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT COUNT(*) FROM people WHERE {'sqrt(' * 20}stars{')' * 20} > 1", "within one another"),
        (f"SELECT COUNT(*) FROM people WHERE {'log2(ln(' * 9}stars{'))' * 9} > 1", "within one another"),
        (f"SELECT COUNT(*) FROM people WHERE {'nullif(' * 20}stars{', 3)' * 20} > 1", "within one another"),
    ],
)
def test_what_would_double_with_each_function_is_refused(asked: Asked, sql: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refusal:
        asked.guard.query(sql)
    assert refusal.value.static


def test_functions_within_functions_stay_small_across_subqueries(asked: Asked) -> None:
    for step in ("sqrt({})", "nullif({}, 3)", "{} + INTERVAL 1 DAY"):
        inner = f"SELECT user_id, {'day' if 'DAY' in step else 'fee'} AS x0 FROM orders"
        for at in range(20):
            inner = f"SELECT user_id, {step.format(f'x{at}')} AS x{at + 1} FROM ({inner})"
        with pytest.raises(Refused) as refusal:
            asked.guard.query(f"SELECT COUNT(*) FROM ({inner}) WHERE x20 IS NULL")
        assert refusal.value.static


@pytest.mark.parametrize("step", ["+ INTERVAL 9999 YEAR", "- INTERVAL 9999 YEAR", "- INTERVAL 99999 YEAR"])
def test_dates_that_are_moved_beyond_the_calendar_are_missing(asked: Asked, step: str) -> None:
    """As columns beyond it are: no date of anybody makes an error."""
    (row,) = asked.guard.query(f"SELECT day {step} AS d, COUNT(*) AS n FROM orders GROUP BY 1").to_pylist()
    assert row == {"d": None, "n": 2000}
