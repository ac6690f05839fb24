"""What refusals advise: SQL that is answered, in the words of SQL."""

import pytest
from guard_data import Ask

from kgather._guard.plan import Plan
from kgather._guard.refused import Refused

SHARE = "COUNT(*) FILTER (WHERE condition) / COUNT(*)"


@pytest.mark.parametrize(
    ("argument", "what", "advice"),
    [
        ("SUM(CASE WHEN warcross > 3 THEN 1 ELSE 0 END)", "CASE", "Use COUNT(*) FILTER (WHERE condition)."),
        ("SUM(CASE WHEN warcross > 3 THEN 1 END)", "CASE", "Use COUNT(*) FILTER (WHERE condition)."),
        ("SUM(IF(warcross > 3, 1, 0))", "IF", "Use COUNT(*) FILTER (WHERE condition)."),
        ("COUNT(CASE WHEN warcross > 3 THEN 1 END)", "CASE", "Use COUNT(*) FILTER (WHERE condition)."),
        ("COUNT(CASE WHEN warcross > 3 THEN age END)", "CASE", "Use COUNT(column) FILTER (WHERE condition)."),
        (
            "AVG(CASE WHEN warcross > 3 THEN 1 ELSE 0 END)",
            "CASE",
            f"The share of those who meet a condition is {SHARE}.",
        ),
        ("SUM(CASE WHEN warcross > 3 THEN age ELSE 0 END)", "CASE", "Use SUM(column) FILTER (WHERE condition)."),
        ("AVG(CASE WHEN warcross > 3 THEN age END)", "CASE", "Use AVG(column) FILTER (WHERE condition)."),
        (
            "AVG(CASE WHEN warcross > 3 THEN age ELSE 0 END)",
            "CASE",
            "Use SUM(column) FILTER (WHERE condition) / COUNT(*).",
        ),
        ("SUM(CASE warcross WHEN 3 THEN 1 ELSE 0 END)", "CASE", "Ask for each case by itself, with FILTER"),
        ("SUM(CASE WHEN warcross > 3 THEN 1 ELSE 5 END)", "CASE", "Ask for each case by itself, with FILTER"),
        ("SUM(warcross > 3)", "A condition", "Use COUNT(*) FILTER (WHERE condition)."),
        ("AVG((warcross > 3)::DOUBLE)", "A condition", f"The share of those who meet a condition is {SHARE}."),
        ("SUM(1)", "A constant", "Use COUNT(*), and arithmetic with it."),
        ("SUM(3 % 2)", "A constant", "Use COUNT(*), and arithmetic with it."),
        ("AVG(age * age)", "A product of columns", "Use VAR_POP(age) + AVG(age) * AVG(age)."),
        ("SUM(age * age)", "A product of columns", "Use COUNT(age) * (VAR_POP(age) + AVG(age) * AVG(age))."),
        ("AVG(age * salary)", "A product of columns", "Use COVAR_POP(age, salary) + AVG(age) * AVG(salary), if"),
        ("AVG(age + salary)", "A sum of columns", "Use AVG(age) + AVG(salary), if everybody has both."),
        ("AVG(age - salary)", "A difference of columns", "Use AVG(age) - AVG(salary), if everybody has both."),
        ("AVG(age / salary)", "A division by a column", "An argument is a column, or a * column + b"),
        ("AVG(ABS(age))", "ABS", "An argument is a column, or a * column + b"),
    ],
)
def test_instead_of_an_argument_in_modes_that_add_up_columns(ask: Ask, argument: str, what: str, advice: str) -> None:
    with pytest.raises(Refused) as told:
        ask(f"SELECT {argument} FROM ratings_wide", mode="generalized")
    assert told.value.reason.startswith(f"{what} as the argument of {argument[: argument.index('(')]} (line 1")
    assert advice in told.value.reason


@pytest.mark.parametrize(
    ("argument", "what", "advice"),
    [
        ("SUM(CBRT(salary))", "CBRT", "An argument is a column, or computed from columns of one row by + - * /"),
        ("AVG(NULLIF(city, 'Graz'))", "NULLIF", "An argument is a column, or computed from columns of one row by"),
        ("STDDEV(CASE WHEN salary > 3 THEN age END)", "CASE", "Use STDDEV_SAMP(column) FILTER (WHERE condition)."),
        ("SUM(3 % 2)", "A constant", "Use COUNT(*), and arithmetic with it."),
    ],
)
def test_instead_of_an_argument(ask: Ask, argument: str, what: str, advice: str) -> None:
    with pytest.raises(Refused) as told:
        ask(f"SELECT {argument} FROM ratings_wide")
    assert told.value.reason.startswith(f"{what} as the argument of ")
    assert advice in told.value.reason


@pytest.mark.parametrize(
    "sql",
    [
        "COUNT(*) FILTER (WHERE warcross > 3)",
        "SUM(age) FILTER (WHERE warcross > 3)",
        "SUM(age) FILTER (WHERE warcross > 3) / COUNT(*)",
        "COUNT(*) FILTER (WHERE warcross > 3) / COUNT(*)",
        "COUNT(age) FILTER (WHERE warcross > 3)",
        "VAR_POP(age) + AVG(age) * AVG(age)",
        "COUNT(age) * (COVAR_POP(age, salary) + AVG(age) * AVG(salary))",
        "AVG(age) - AVG(salary)",
        "2 * COUNT(*)",
    ],
)
def test_what_is_advised_is_answered(ask: Ask, sql: str) -> None:
    assert isinstance(ask(f"SELECT {sql} FROM ratings_wide"), Plan)


def test_no_advice_that_the_policy_does_not_allow(ask: Ask) -> None:
    with pytest.raises(Refused) as told:
        ask("SELECT AVG(age * age) FROM ratings_wide", mode="generalized", aggregates=["COUNT", "AVG"])
    assert "VAR_POP" not in told.value.reason


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT AVG(date_trunc('month', rated_at)) FROM ratings", "DATE_TRUNC"),
        ("SELECT COUNT(*) FROM ratings_wide WHERE warcross << 2 = 4", "<<"),
        ("SELECT COUNT(*) FROM ratings_wide WHERE warcross & 2 = 2", "&"),
        ("SELECT COUNT(*) FROM ratings_wide WHERE city GLOB 'x*'", "GLOB"),
        ("SELECT COUNT(*) FROM ratings WHERE rated_at AT TIME ZONE 'UTC' > 3", "AT TIME ZONE"),
        ("SELECT COUNT(*) FROM ratings_wide WHERE RANK() OVER () > 3", "OVER"),
        ("SELECT SUM(salary ORDER BY age) FROM ratings_wide", "ORDER BY as the argument"),
        ("SELECT row_number() FROM items", "ROW_NUMBER without OVER"),
        ("SELECT string_agg(city, ',') FROM ratings_wide", "STRING_AGG over rows of people"),
        ("SELECT any_value(city) FROM ratings_wide", "ANY_VALUE over rows of people"),
        ("SELECT range(quality) FROM items", "RANGE of any length"),
        ("SELECT current_timestamp FROM items", "CURRENT_TIMESTAMP,"),
    ],
)
def test_parts_are_called_as_sql_calls_them(ask: Ask, sql: str, word: str) -> None:
    with pytest.raises(Refused) as told:
        ask(sql)
    assert told.value.reason.startswith(f"{word} ")
