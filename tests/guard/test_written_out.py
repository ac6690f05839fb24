"""Other ways of writing what is answered: each means what the plain one means."""

import pytest
from guard_data import Ask

from kgather._guard.plan import Plan
from kgather._guard.refused import Refused

SAME = [
    ("warcross = ANY([4, 5])", "warcross IN (4, 5)"),
    ("warcross <> ALL([4, 5])", "NOT warcross IN (4, 5)"),
]
KEYS = [
    ("TIME_BUCKET(INTERVAL 1 MONTH, rated_at)", "DATE_TRUNC('month', rated_at)"),
    ("TIME_BUCKET(INTERVAL '3 months', rated_at)", "DATE_TRUNC('quarter', rated_at)"),
    ("TIME_BUCKET(INTERVAL 1 YEAR, rated_at)", "DATE_TRUNC('year', rated_at)"),
    ("STRFTIME('%Y', rated_at)", "STRFTIME(rated_at, '%Y')"),
    ("TO_CHAR(rated_at, 'YYYY-MM')", "STRFTIME(rated_at, '%Y-%m')"),
    ("TO_CHAR(rated_at, 'Mon YYYY')", "STRFTIME(rated_at, '%b %Y')"),
]


@pytest.mark.parametrize(("written", "plain"), SAME)
def test_conditions(ask: Ask, written: str, plain: str) -> None:
    of = [ask(f"SELECT COUNT(*) FROM ratings_wide WHERE {one}") for one in (written, plain)]
    assert of[0].blocks == of[1].blocks


@pytest.mark.parametrize(("written", "plain"), KEYS)
def test_keys(ask: Ask, written: str, plain: str) -> None:
    of = [ask(f"SELECT {one} AS k, COUNT(*) FROM ratings GROUP BY 1") for one in (written, plain)]
    assert of[0].blocks == of[1].blocks


@pytest.mark.parametrize(
    "written", ["TIME_BUCKET(INTERVAL 1 DAY, rated_at)", "TIME_BUCKET(INTERVAL 5 WEEKS, rated_at)", "DATE(rated_at)"]
)
def test_within_the_grain_there_is_nothing(ask: Ask, written: str) -> None:
    with pytest.raises(Refused):
        ask(f"SELECT {written} AS k, COUNT(*) FROM ratings GROUP BY 1")


def test_a_format_of_unknown_parts_is_refused(ask: Ask) -> None:
    with pytest.raises(Refused, match="TO_CHAR"):
        ask("SELECT TO_CHAR(rated_at, 'YYYY-IW-Q') AS k, COUNT(*) FROM ratings GROUP BY 1")


def test_fetch_is_limit(ask: Ask) -> None:
    sql = "SELECT title FROM items ORDER BY title "
    assert ask(sql + "FETCH FIRST 3 ROWS ONLY").sql == ask(sql + "LIMIT 3").sql
    for more in ("FETCH FIRST 3 ROWS WITH TIES", "FETCH FIRST 3 PERCENT ROWS ONLY"):
        with pytest.raises(Refused):
            ask(sql + more)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT m FROM generate_series(1, 12) AS t(m)",
        "SELECT * FROM range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 MONTH)",
        "SELECT x FROM unnest(['a', 'b']) AS t(x)",
        "SELECT * FROM range(10000)",
        "SELECT * FROM generate_series(1, 10000)",
        "SELECT * FROM range(3, 1)",
    ],
)
def test_lists_stand_in_from(ask: Ask, sql: str) -> None:
    made = ask(sql)
    assert isinstance(made, Plan)
    assert made.blocks == ()


@pytest.mark.parametrize(
    "call", ["generate_series(1, 10001)", "range(0, 9, 0)", "range(1e9)", "range(DATE '2024-01-01')"]
)
def test_series_are_short(ask: Ask, call: str) -> None:
    with pytest.raises(Refused):
        ask(f"SELECT unnest({call})")


def test_the_moment_is_the_day_where_it_is_cut_to_it(ask: Ask) -> None:
    sql = "SELECT COUNT(*) FROM ratings WHERE rated_at >= DATE_TRUNC('month', {})"
    days = [ask(sql.format(one)).blocks for one in ("NOW()", "CURRENT_TIMESTAMP", "CURRENT_DATE")]
    assert days[0] == days[1]
    with pytest.raises(Refused, match="which depends on the second"):
        ask("SELECT COUNT(*) FROM ratings WHERE rated_at >= NOW()")
