"""What is too large, too deep or odd ends quickly and cleanly."""

import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from guard_data import Ask
from work import count_calls

from kgather._guard.plan import Local, Plan
from kgather._guard.refused import PARAMETERS, TOO_COMPLEX, Refused, Rule


def chain(n: int) -> str:
    """CTEs of which each reads the one before twice."""
    parts = ["c0 AS (SELECT item_id FROM items)"]
    parts += [
        f"c{i} AS (SELECT a.item_id FROM c{i - 1} a JOIN c{i - 1} b ON a.item_id = b.item_id)" for i in range(1, n)
    ]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM c{n - 1}"


def people(n: int) -> str:
    parts = ["c0 AS (SELECT user_id, warcross FROM ratings_wide)"]
    parts += [
        f"c{i} AS (SELECT a.user_id, a.warcross FROM c{i - 1} a JOIN c{i - 1} b USING (user_id))" for i in range(1, n)
    ]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM c{n - 1}"


def per_unit(n: int) -> str:
    parts = ["c0 AS (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id)"]
    parts += [f"c{i} AS (SELECT user_id, COUNT(*) AS n FROM c{i - 1} GROUP BY user_id)" for i in range(1, n)]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) FROM c{n - 1}"


def aliases(n: int, table: str, column: str) -> str:
    parts = [f"{column} + {column} AS a0"] + [f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, n)]
    return f"SELECT {', '.join(parts)}, COUNT(*) FROM {table} GROUP BY ALL"


def result_aliases(n: int) -> str:
    parts = ["COUNT(*) AS a0"] + [f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, n)]
    return f"SELECT {', '.join(parts)} FROM ratings_wide"


LARGE = {
    "ten megabytes": "SELECT COUNT(*) FROM ratings_wide WHERE " + "warcross = 1 OR " * 650_000 + "TRUE",
    "ten thousand or": "SELECT COUNT(*) FROM ratings_wide WHERE " + " OR ".join(["warcross = 1"] * 10_000),
    "many words": "SELECT " + ",".join("1" * 20_000),
    "brackets": "SELECT " + "(" * 30_000 + "1" + ")" * 30_000,
    "open brackets": "(" * 60_000,
    "brackets within": "SELECT COUNT(*) FROM ratings_wide WHERE " + "(" * 40 + "TRUE" + ")" * 40,
    "lists": "SELECT " + "[" * 5_000 + "]" * 5_000,
    "subscripts": "SELECT a" + "[1]" * 2_000,
    "case": "SELECT " + "CASE WHEN TRUE THEN " * 1_000 + "1" + " END" * 1_000,
    "not": "SELECT COUNT(*) FROM ratings_wide WHERE " + "NOT " * 5_000 + "TRUE",
    "minus": "SELECT " + "- " * 7_000 + "1",
    "plus": "SELECT COUNT(*) FROM ratings_wide WHERE " + "warcross + " * 3_000 + "1 > 0",
    "casts": "SELECT 1" + "::INTEGER" * 3_000,
    "dots": "SELECT a" + ".a" * 3_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 20 + "(SELECT * FROM " * 20 + "items" + ")" * 40,
    "unions": " UNION ALL ".join(["SELECT COUNT(*) FROM items"] * 300),
    "joins": "SELECT COUNT(*) FROM items" + ", items" * 500,
    "columns": "SELECT " + ", ".join(f"title AS t{i}" for i in range(400)) + " FROM items",
    "blocks": " UNION ALL ".join(["SELECT COUNT(*) FROM users"] * 40),
    "aggregates": "SELECT " + ", ".join(f"SUM(salary + {i})" for i in range(100)) + " FROM ratings_wide",
    "people twice and twice": people(30),
    "units of units": per_unit(30),
    "aliases of a key": aliases(40, "ratings_wide", "warcross"),
    "aliases of a result": result_aliases(40),
    "and of a key": "SELECT warcross, COUNT(*) FROM ratings_wide GROUP BY 1 HAVING "
    + "warcross > 1 AND " * 1_500
    + "COUNT(*) > 9",
    "functions": "SELECT " + "ABS(" * 28 + "1" + ")" * 28,
    "quotes": "SELECT '" + "''" * 40_000,
    "semicolons": ";" * 5_000 + "SELECT 1",
    "zero byte": "SELECT 1\0",
    "lone surrogate": "SELECT '\ud800'",
    "number": "SELECT COUNT(*) FROM ratings_wide WHERE warcross = " + "9" * 5_000,
    "exponent": "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 1e999",
}


@pytest.mark.parametrize("name", list(LARGE))
def test_ends_quickly(ask: Ask, name: str) -> None:
    caught: list[Refused] = []

    def refused() -> None:
        with pytest.raises(Refused) as told:
            ask(LARGE[name])
        caught.append(told.value)

    # A few seconds: nothing here is quadratic in the text.
    assert count_calls(refused) < 10_000_000
    assert caught[0].static
    assert len(str(caught[0])) < 300


def test_too_large_has_its_own_code(ask: Ask) -> None:
    for name in ("ten megabytes", "brackets", "aliases of a key", "not"):
        with pytest.raises(Refused) as caught:
            ask(LARGE[name])
        assert caught.value.code == TOO_COMPLEX


def test_long_but_reasonable(ask: Ask) -> None:
    values = ", ".join(str(i) for i in range(1_500))
    assert isinstance(ask(f"SELECT COUNT(*) FROM ratings_wide WHERE warcross IN ({values})"), Plan)
    either = " OR ".join(f"warcross = {i}" for i in range(900))
    assert isinstance(ask(f"SELECT COUNT(*) FROM ratings_wide WHERE {either}"), Plan)
    assert isinstance(ask("SELECT " + "(" * 12 + "1" + ")" * 12), Local)


def test_a_chain_of_ctes_is_written_once(ask: Ask) -> None:
    made = ask(chain(25))
    assert isinstance(made, Plan)
    assert len(made.sql) < 10_000


def test_limits_of_the_policy_hold(ask: Ask) -> None:
    with pytest.raises(Refused, match=r"limits\.statement_bytes"):
        ask("SELECT COUNT(*) FROM ratings_wide", limits={"statement_bytes": 20})
    with pytest.raises(Refused, match=r"limits\.depth"):
        ask("SELECT ((((((1))))))", limits={"depth": 5})


def test_in_a_thread_of_its_own(ask: Ask) -> None:
    """Threads of a server have smaller stacks, and meet a parser of their own."""
    seen: list[object] = []

    def work() -> None:
        for sql in ("SELECT AVG(salary) FROM ratings_wide WHERE warcross = 5", LARGE["not"]):
            try:
                seen.append(type(ask(sql)))
            except Refused:
                seen.append(Refused)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, seen)) == sorted(map(str, [Plan, Refused] * 4))


WHERE = "SELECT COUNT(*) FROM ratings_wide WHERE warcross = "


@pytest.mark.parametrize("value", [5, 5.0, Decimal("5"), "5", True, None, -5, 10**37, -0.0, 1e300])
def test_parameters_of_every_type(ask: Ask, value: object) -> None:
    if value is True:
        with pytest.raises(Refused):
            ask(WHERE + "?", value)
        return
    assert isinstance(ask(WHERE + "?", value), Plan)
    assert isinstance(ask(WHERE + "$1", value), Plan)


def test_parameters_are_literals(ask: Ask) -> None:
    assert ask(WHERE + "? AND joy_ride > ?", 5, 2) == ask(WHERE + "5 AND joy_ride > 2")
    assert ask(WHERE + "$2 AND joy_ride > $1", 2, 5) == ask(WHERE + "5 AND joy_ride > 2")
    assert ask("FROM ratings_wide SELECT SUM(salary * ?) WHERE warcross = ?", 2, 5) == ask(
        "SELECT SUM(salary * 2) FROM ratings_wide WHERE warcross = 5"
    )
    made = ask("SELECT ? AS a, ? AS b, ? AS c", "x' OR '1'='1", date(2024, 1, 2), datetime(2024, 1, 2, 3, 4))
    assert isinstance(made, Local)
    assert made.sql is not None
    assert "'x'' OR ''1''=''1'" in made.sql


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (WHERE + "?", ()),
        (WHERE + "?", (1, 2)),
        (WHERE + "5", (1,)),
        (WHERE + "$2", (1,)),
        (WHERE + "$1 AND joy_ride = ?", (1, 2)),
        (WHERE + "?", (float("nan"),)),
        (WHERE + "?", (float("inf"),)),
        (WHERE + "?", (Decimal("NaN"),)),
        (WHERE + "?", (10**80,)),
        (WHERE + "?", (b"5",)),
        (WHERE + "?", ([5],)),
        (WHERE + "?", ("\0",)),
        (WHERE + "?", (datetime(2024, 1, 1, tzinfo=UTC),)),
        ("SHOW TABLES", (1,)),
    ],
    ids=range(14),
)
def test_parameters_that_do_not_fit(ask: Ask, sql: str, values: tuple[object, ...]) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql, *values)
    assert caught.value.rule == Rule.PARAMETERS
    assert caught.value.code == PARAMETERS


@pytest.mark.parametrize("sql", ["SELECT * FROM ?", "SELECT title FROM items LIMIT ?"])
def test_parameters_name_nothing(ask: Ask, sql: str) -> None:
    """A text is a text: it never becomes a name. A number may be a position or a limit."""
    with pytest.raises(Refused):
        ask(sql, "users")
