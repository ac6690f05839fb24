"""Names: every spelling of a statement means the same, and gets the same verdict."""

import random
import re

import pytest
from guard_data import Ask
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._guard.catalog import Catalog
from kgather._guard.names import Scope, base_column, resolve
from kgather._guard.plan import Local, Plan
from kgather._guard.refused import AMBIGUOUS, UNKNOWN_COLUMN, UNKNOWN_TABLE, Refused
from kgather._guard.statement import read

NAME = re.compile(r"\{(\w+)\}")

# {name}: a name of the policy; {_name}: an alias, which may be anything.
PASSING = (
    "SELECT AVG({salary}) FROM {ratings_wide} WHERE {warcross} = 5",
    "SELECT AVG({_w}.{salary}) AS {_a} FROM {ratings_wide} AS {_w} WHERE {_w}.{warcross} >= 2 ORDER BY {_a}",
    "SELECT {city} AS {_c}, COUNT(*) AS {_n} FROM {ratings_wide} GROUP BY {_c} HAVING {_n} > 20"
    " ORDER BY {_n} DESC, {_c}",
    "SELECT {_i}.{title}, AVG({_r}.{rating}) FROM {ratings} {_r} JOIN {items} {_i} USING ({item_id})"
    " GROUP BY {_i}.{title}",
    "SELECT COUNT(DISTINCT {_a}.{user_id}) FROM {ratings} {_a} JOIN {ratings} {_b} ON {_a}.{user_id} = {_b}.{user_id}"
    " WHERE {_a}.{item_id} = 1 AND {_b}.{item_id} = 2",
    "WITH {_t} AS (SELECT {user_id} AS {_u}, COUNT(*) AS {_n} FROM {ratings} GROUP BY {user_id})"
    " SELECT AVG({_n}) FROM {_t}",
    "WITH {_t} AS (SELECT {user_id}, {salary} AS {_s} FROM {ratings_wide} WHERE {warcross} >= 4)"
    " SELECT SUM({_s}) FROM {_t}",
    "SELECT COUNT(1) AS {_n} FROM (SELECT * FROM {ratings_wide} WHERE {warcross} >= 3) AS {_v}",
    "SELECT {_g}.{_x} FROM (SELECT {education} AS {_e}, COUNT(*) AS {_x} FROM {ratings_wide} GROUP BY ALL) AS {_g}",
)
REFUSED = (
    "SELECT AVG({salary}) FROM {ratings_wide} WHERE {user_id} = 42",
    "SELECT {_w}.{salary} FROM {ratings_wide} AS {_w}",
    "SELECT COUNT(*) FROM {users} WHERE {zip} IS NULL",
    "SELECT {_s}, COUNT(*) FROM (SELECT {salary} AS {_s} FROM {ratings_wide}) AS {_t} GROUP BY {_s}",
    "SELECT COUNT(*) FROM (SELECT {user_id} AS {_u}, {warcross} FROM {ratings_wide}) AS {_t} WHERE {_t}.{_u} = 42",
    "SELECT {_w} FROM {ratings_wide} AS {_w}",
    "SELECT COUNT(*) FROM {ratings_wide} AS {_a}, {users} AS {_b}",
    "SELECT MAX({_n}) FROM (SELECT {user_id}, COUNT(*) AS {_n} FROM {ratings} GROUP BY {user_id}) AS {_t}",
    "SELECT {_c} AS {_d}, COUNT(*) FROM (SELECT {city} AS {_c} FROM {ratings_wide}) AS {_t}"
    " WHERE {_d} = {_c} GROUP BY 1",
)
ALIASES = ("x", "a b", 'q"q', "Ünï", "select", "n1", "main", "items", "t", "ratings", "kg_block_1", "b1", "count")
COLUMNS = ("salary", "rating", "user_id", "warcross")


def spelled(template: str, seed: int, aliases: tuple[str, ...] = ALIASES) -> str:
    """A statement with its names in random case and quotes, and with random aliases."""
    chance = random.Random(seed)
    aliases = tuple(chance.sample(aliases, len(aliases)))
    given_: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        word = match[1]
        if word.startswith("_"):
            word = given_.setdefault(word, aliases[len(given_)])
            quoted = True
        else:
            quoted = chance.random() < 0.5
        word = "".join(c.upper() if chance.random() < 0.5 and c.isascii() else c for c in word)
        return '"' + word.replace('"', '""') + '"' if quoted else word

    return NAME.sub(name, template)


def plain(template: str) -> str:
    return NAME.sub(lambda match: match[1], template)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PASSING), st.integers(0, 2**32))
def test_spelling_does_not_change_the_plan(ask: Ask, template: str, seed: int) -> None:
    expected, made = ask(plain(template)), ask(spelled(template, seed))
    assert isinstance(expected, Plan)
    assert isinstance(made, Plan)
    assert made.blocks == expected.blocks
    assert made.public == expected.public


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(REFUSED), st.integers(0, 2**32))
def test_spelling_does_not_change_a_refusal(ask: Ask, template: str, seed: int) -> None:
    with pytest.raises(Refused):
        ask(plain(template))
    with pytest.raises(Refused):
        ask(spelled(template, seed, (*ALIASES, *COLUMNS)))


def found(catalog: Catalog, sql: str) -> list[str]:
    """What the columns of the first SELECT's list come from."""
    tree = read(sql, catalog.policy, catalog.policy.limits)
    assert not isinstance(tree, Local)
    top = resolve(tree, catalog).top
    assert isinstance(top, Scope)
    columns = [base_column(top, output.node) for output in top.outputs]
    return [f"{column[0].name}.{column[1].name}" if column else "" for column in columns]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT SALARY, w.City FROM ratings_wide w", ["ratings_wide.salary", "ratings_wide.city"]),
        ("SELECT x FROM (SELECT salary AS x FROM ratings_wide) AS t", ["ratings_wide.salary"]),
        ("WITH users AS (SELECT title FROM items) SELECT title FROM users", ["items.title"]),
        ("WITH a AS (SELECT title AS b FROM items), c AS (SELECT b AS d FROM a) SELECT d FROM c", ["items.title"]),
        ("SELECT t.salary FROM (SELECT * FROM ratings_wide) AS t", ["ratings_wide.salary"]),
        ("SELECT s FROM (SELECT salary AS warcross, warcross AS s FROM ratings_wide) AS t", ["ratings_wide.warcross"]),
        ("SELECT user_id FROM ratings JOIN users USING (user_id)", ["ratings.user_id"]),
        ("SELECT title AS a, a AS b, b AS c FROM items", ["items.title"] * 3),
        ("SELECT rating + 1 AS r FROM ratings", [""]),
        ("SELECT main.items.title FROM main.items", ["items.title"]),
    ],
    ids=range(10),
)
def test_where_columns_come_from(catalog: Catalog, sql: str, columns: list[str]) -> None:
    assert found(catalog, sql) == columns


def test_a_real_column_wins_over_an_alias(ask: Ask) -> None:
    """WHERE reads the table's column; ORDER BY reads the alias."""
    assert ask(
        "SELECT joy_ride AS warcross, COUNT(*) FROM ratings_wide WHERE warcross = 1 GROUP BY joy_ride"
    ).blocks == (
        ask("SELECT joy_ride AS w, COUNT(*) FROM ratings_wide WHERE ratings_wide.warcross = 1 GROUP BY joy_ride").blocks
    )
    with pytest.raises(Refused):
        ask("SELECT warcross AS salary, COUNT(*) FROM ratings_wide WHERE salary = 5 GROUP BY 1")
    made = ask("SELECT COUNT(*) AS city, city AS n FROM ratings_wide GROUP BY ratings_wide.city ORDER BY city")
    assert made.sql.endswith('ORDER BY (b1."value_1") ASC NULLS LAST')


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM nobody", UNKNOWN_TABLE),
        ("SELECT nothing.title FROM items", UNKNOWN_COLUMN),
        ("SELECT nothing.* FROM items", UNKNOWN_TABLE),
        ("SELECT nothing FROM items", UNKNOWN_COLUMN),
        ("SELECT title FROM items a JOIN items b ON a.item_id = b.item_id", AMBIGUOUS),
        ("SELECT * FROM (SELECT title, title FROM items) AS t", AMBIGUOUS),
        ("SELECT items FROM items", UNKNOWN_COLUMN),
        ("SELECT title FROM items WHERE b > 1 AND b < 2", UNKNOWN_COLUMN),
        ("SELECT title FROM items a, items A", AMBIGUOUS),
    ],
    ids=range(9),
)
def test_codes(ask: Ask, sql: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.code == code


def test_refusals_say_where(ask: Ask) -> None:
    with pytest.raises(Refused, match=r"\(line 3, column 9\)"):
        ask("SELECT COUNT(*)\nFROM users\n  WHERE zip = '1'")
    with pytest.raises(Refused, match=r"my_udf.*\(line 1, column 8\)"):
        ask("SELECT my_udf(title) FROM items")
