"""Plans: worked out by hand for one statement of each kind, and against the engine for conditions made at random."""

import random
from typing import Any

import duckdb
import pytest
from guard_data import Ask, Unguarded
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._guard.canonical import canonical, normal
from kgather._guard.catalog import Catalog
from kgather._guard.plan import (
    TRUE,
    Aggregate,
    Block,
    Bound,
    Exists,
    Key,
    Literal,
    Lookup,
    Op,
    PerUnit,
    Plan,
    Question,
    Reference,
    Universe,
)
from kgather._guard.refused import Refused
from kgather._guard.render import explain, question_sql


def wide(name: str) -> Bound:
    kind = "text" if name in ("city", "education") else "integer"
    return Bound("ratings_wide", name, kind)  # type: ignore[arg-type]


def number(value: int) -> Literal:
    return Literal(value, "integer")


def equal(column: Bound, value: int) -> Op:
    return Op("=", (column, number(value)))


UNITS = Universe("unit", None, (Reference("ratings_wide"),))
LONG = Universe("rows", "ratings")
ITEM = Bound("ratings", "item_id", "integer")
RATING = Bound("ratings", "rating", "integer")
PLAIN = ((1.0, 0.0),)


def only(made: object) -> Block:
    assert isinstance(made, Plan)
    assert len(made.blocks) == 1
    return made.blocks[0]


def test_average_under_a_condition(ask: Ask) -> None:
    made = ask("SELECT AVG(salary) AS a FROM ratings_wide WHERE warcross = 5")
    question = Question(UNITS, equal(wide("warcross"), 5))
    aggregate = Aggregate("value_1", "AVG", (wide("salary"),), PLAIN, question)
    assert made == Plan(
        (Block("kg_block_1", question, (), ((),), (aggregate,)),),
        'SELECT b1."value_1" AS "a" FROM "kg_block_1" AS b1',
        ("a",),
    )


def test_a_filter_is_a_part_of_the_condition(ask: Ask) -> None:
    block = only(ask("SELECT COUNT(*) FILTER (WHERE joy_ride = 1) FROM ratings_wide WHERE warcross = 5"))
    assert block.question.condition == equal(wide("warcross"), 5)
    both = Op("and", (equal(wide("warcross"), 5), equal(wide("joy_ride"), 1)))
    assert block.aggregates[0].question.condition == both


def test_groups(ask: Ask) -> None:
    block = only(
        ask("SELECT city, warcross > 3 AS fan, COUNT(*), SUM(2 * salary - 1) FROM ratings_wide GROUP BY 1, fan")
    )
    assert block.keys == (Key("key_1", "text", "dimension"), Key("key_2", "boolean", "artifact"))
    assert block.grouping_sets == ((0, 1),)
    assert block.question.keys == (wide("city"), Op(">", (wide("warcross"), number(3))))
    assert [a.question for a in block.aggregates] == [block.question] * 2
    assert block.aggregates[1].scale == ((2.0, -1.0),)
    assert block.columns == ("key_1", "key_2", "value_1", "value_2")


def test_margins(ask: Ask) -> None:
    sql = "SELECT city, education, COUNT(*) FROM ratings_wide GROUP BY "
    assert only(ask(sql + "ROLLUP (city, education)", margins=True)).grouping_sets == ((0, 1), (0,), ())
    assert only(ask(sql + "CUBE (1, 2)", margins=True)).grouping_sets == ((0, 1), (0,), (1,), ())
    assert only(ask(sql + "GROUPING SETS ((city, education), ())", margins=True)).grouping_sets == ((0, 1), ())
    assert only(ask(sql + "city, ROLLUP (education)", margins=True)).grouping_sets == ((0, 1), (0,))


def test_margins_mean_what_the_engine_means(
    ask: Ask, database: duckdb.DuckDBPyConnection, unguarded: Unguarded
) -> None:
    sql = "SELECT city, education, COUNT(*) AS n FROM ratings_wide GROUP BY CUBE (city, education) ORDER BY ALL"
    made = ask(sql.removesuffix(" ORDER BY ALL"), margins=True)
    assert isinstance(made, Plan)
    assert sorted(map(str, unguarded.answer(made))) == sorted(map(str, database.cursor().execute(sql).fetchall()))


def test_values_of_rows_are_asked_of_rows(ask: Ask) -> None:
    block = only(ask("SELECT COUNT(*), AVG(rating) FROM ratings WHERE item_id = 3"))
    assert block.question == Question(LONG, equal(ITEM, 3))
    assert [a.question for a in block.aggregates] == [block.question] * 2


def test_a_column_of_a_pivot_is_asked_of_its_source(ask: Ask) -> None:
    block = only(ask("SELECT AVG(joy_ride), COUNT(joy_ride), COUNT(*) FROM ratings_wide WHERE egomaniac = 5"))
    condition = Op("and", (equal(wide("egomaniac"), 5), equal(ITEM, 2)))
    question = Question(Universe("rows", "ratings", (Reference("ratings_wide"),)), condition)
    assert block.aggregates[0] == Aggregate("value_1", "AVG", (RATING,), PLAIN, question)
    assert block.aggregates[1] == Aggregate("value_2", "COUNT", (RATING,), PLAIN, question)
    assert block.aggregates[2].question == Question(UNITS, equal(wide("egomaniac"), 5)) == block.question


def test_two_values_of_a_person(ask: Ask) -> None:
    short = only(ask("SELECT CORR(warcross, joy_ride) FROM ratings_wide"))
    long = only(
        ask(
            "SELECT CORR(a.rating, b.rating) FROM ratings a JOIN ratings b USING (user_id)"
            " WHERE a.item_id = 1 AND b.item_id = 2"
        )
    )
    for block in (short, long):
        assert block.aggregates[0].arguments == (wide("warcross"), wide("joy_ride"))
        assert block.aggregates[0].pivoted == ((wide("warcross"), number(1)), (wide("joy_ride"), number(2)))
        assert block.aggregates[0].question.universe.kind == "unit"


def test_people_of_a_long_table_are_units_with_a_row(ask: Ask) -> None:
    block = only(ask("SELECT COUNT(DISTINCT user_id) FROM ratings WHERE item_id = 1 AND rating > 3"))
    where = Op("and", (equal(ITEM, 1), Op(">", (RATING, number(3)))))
    question = Question(Universe("unit"), Exists("ratings", where))
    assert block.aggregates == (Aggregate("value_1", "COUNT", (), (), question),)


def test_a_self_join_is_two_existences(ask: Ask) -> None:
    block = only(
        ask(
            "SELECT COUNT(DISTINCT a.user_id) FROM ratings a JOIN ratings b USING (user_id)"
            " WHERE a.item_id = 1 AND b.item_id = 2 AND a.rating = 5"
        )
    )
    one = Exists("ratings", Op("and", (equal(ITEM, 1), equal(RATING, 5))))
    assert block.aggregates[0].question.condition == Op("and", (one, Exists("ratings", equal(ITEM, 2))))


def test_a_pinned_join_counts_nobody_twice(ask: Ask) -> None:
    block = only(
        ask(
            "SELECT r.rating, AVG(w.salary) FROM ratings_wide w JOIN ratings r USING (user_id)"
            " WHERE r.item_id = 1 GROUP BY 1"
        )
    )
    pinned = equal(ITEM, 1)
    value = PerUnit("VALUE", "ratings", RATING, pinned, "integer")
    assert block.aggregates[0].question == Question(UNITS, Exists("ratings", pinned), (value,))
    assert block.question.universe == Universe("rows", "ratings", (Reference("ratings_wide"),))


def test_public_tables_are_looked_up(ask: Ask) -> None:
    block = only(ask("SELECT i.title, COUNT(*) FROM ratings r LEFT JOIN items i USING (item_id) GROUP BY i.title"))
    lookup = Lookup(ITEM, Bound("items", "item_id", "integer"), required=False)
    assert block.question.universe == Universe("rows", "ratings", (), (lookup,))
    assert block.keys[0].role == "public"


def test_values_per_person(ask: Ask) -> None:
    made = ask(
        "SELECT AVG(n) AS a FROM (SELECT user_id, COUNT(*) AS n FROM ratings WHERE rating > 2 GROUP BY user_id) AS t"
        " WHERE n >= 3"
    )
    block = only(made)
    where = Op(">", (RATING, number(2)))
    many = Op(">=", (PerUnit("COUNT", "ratings", None, where, "integer"), number(3)))
    units = Op("and", (Exists("ratings", where), many))
    rows = Question(LONG, Op("and", (*units.args, where)))
    assert block.aggregates[0] == Aggregate("value_1", "COUNT", (), (), rows)
    assert block.aggregates[1] == Aggregate("value_2", "COUNT", (), (), Question(Universe("unit"), units))
    assert isinstance(made, Plan)
    assert 'CAST(b1."value_1" AS DOUBLE) / NULLIF(b1."value_2", 0)' in made.sql


def test_what_was_asked_already_is_asked_once(ask: Ask) -> None:
    made = ask("SELECT COUNT(*), COUNT(1), COUNT(*) + 1 FROM ratings_wide HAVING COUNT(*) > 9 ORDER BY COUNT(*)")
    assert len(only(made).aggregates) == 1


def test_minimum_and_maximum_where_the_policy_lists_them(ask: Ask) -> None:
    sql = "SELECT MIN(salary), MAX(age) FROM ratings_wide"
    block = only(ask(sql, aggregates=["COUNT", "MIN", "MAX"], mode="generalized"))
    assert [a.function for a in block.aggregates] == ["MIN", "MAX"]
    with pytest.raises(Refused, match="aggregates in the policy would allow it"):
        ask("SELECT AVG(salary) FROM ratings_wide", aggregates=["COUNT", "MIN"], mode="generalized")
    with pytest.raises(Refused, match="aggregates in the policy would allow it"):
        ask("SELECT MIN(salary) FROM ratings_wide", mode="generalized")
    with pytest.raises(Refused, match="per person"):
        ask(
            "SELECT MAX(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) AS t",
            aggregates=["COUNT", "MAX"],
            mode="generalized",
        )


def test_explain_shows_the_questions_and_the_answer(ask: Ask, catalog: Catalog) -> None:
    made = ask(
        "SELECT city, AVG(salary), AVG(warcross) FROM ratings_wide WHERE joy_ride = 5 GROUP BY city HAVING COUNT(*) > 9"
    )
    assert isinstance(made, Plan)
    text = explain(made, catalog.unit)
    assert text.count("/* of people */") == 1
    assert text.count("/* of rows of ratings */") == 1
    assert 'WHERE ("ratings_wide"."joy_ride" = 5)' in text
    assert text.rstrip().endswith('WHERE b1."value_3" > 9;')
    assert "-- kg_block_1: key_1, value_1, value_2, value_3" in text


# Conditions at random: a tree, which is written in one style or another.

COLUMNS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
values = st.recursive(
    st.sampled_from([(name,) for name in COLUMNS]) | st.sampled_from([("1",), ("2.5",), ("4",), ("-1",), ("NULL",)]),
    lambda inner: (
        st.tuples(st.sampled_from(["+", "-", "*", "/", "COALESCE", "GREATEST", "LEAST"]), inner, inner)
        | st.tuples(st.sampled_from(["ABS", "FLOOR", "CEIL", "ROUND", "neg"]), inner)
    ),
    max_leaves=4,
)
atoms = (
    st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), values, values)
    | st.tuples(st.just("between"), values, values, values)
    | st.tuples(st.just("in"), values, st.lists(st.sampled_from(["1", "2", "3.5", "NULL"]), min_size=1, max_size=3))
    | st.tuples(st.just("null"), values)
    | st.tuples(st.just("distinct"), values, values)
    | st.sampled_from([("TRUE",), ("FALSE",), ("NULL",)])
)
conditions = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(st.sampled_from(["AND", "OR"]), inner, inner)
        | st.tuples(st.sampled_from(["not", "IS TRUE", "IS NOT FALSE", "IS NULL"]), inner)
        | st.tuples(st.just("case"), inner, inner, inner)
        | st.tuples(st.just("same"), inner, inner)
    ),
    max_leaves=6,
)
TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def value_sql(tree: Any) -> str:
    if len(tree) == 1:
        return f"({tree[0]})" if tree[0].startswith("-") else tree[0]
    name, *args = tree
    written = [value_sql(arg) for arg in args]
    if name in "+-*/":
        return f"({written[0]} {name} {written[1]})"
    return f"(- {written[0]})" if name == "neg" else f"{name}({', '.join(written)})"


def condition_sql(tree: Any, chance: random.Random | None = None) -> str:
    """Write a condition; with chance, in one of many ways that mean the same."""
    odd = chance is not None and chance.random() < 0.5
    name, *args = tree
    if not args:
        return str(name)
    if name in ("AND", "OR", "same", "not", "case") or name.startswith("IS "):
        parts = [condition_sql(arg, chance) for arg in args]
        if name in ("AND", "OR"):
            if odd:
                other = "OR" if name == "AND" else "AND"
                return f"(NOT ((NOT {parts[1]}) {other} (NOT {parts[0]})))"
            return f"({parts[0]} {name} {parts[1]})"
        if name == "not":
            return f"(NOT NOT (NOT {parts[0]}))" if odd else f"(NOT {parts[0]})"
        if name == "same":
            return f"(({parts[1]}) = ({parts[0]}))" if odd else f"(({parts[0]}) = ({parts[1]}))"
        if name == "case":
            return f"(CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END)"
        return f"({parts[0]} {name})"
    first = value_sql(args[0])
    if name == "in":
        if odd:
            return "(" + " OR ".join(f"{value} = {first}" for value in reversed(args[1])) + ")"
        return f"({first} IN ({', '.join(args[1])}))"
    if name == "null":
        return f"({first} IS NULL)"
    if name == "distinct":
        second = value_sql(args[1])
        if odd:
            return f"(NOT ({second} IS NOT DISTINCT FROM {first}))"
        return f"({first} IS DISTINCT FROM {second})"
    if name == "between":
        low, high = value_sql(args[1]), value_sql(args[2])
        return f"({high} >= {first} AND {low} <= {first})" if odd else f"({first} BETWEEN {low} AND {high})"
    second = value_sql(args[1])
    if odd:
        return (
            f"({second} {TURNED[name]} {first})"
            if chance and chance.random() < 0.5
            else f"(NOT ({first} {NEGATED[name]} {second}))"
        )
    return f"({first} {name} {second})"


@settings(max_examples=150, deadline=None)
@given(conditions)
def test_conditions_mean_what_the_engine_means(
    ask: Ask, database: duckdb.DuckDBPyConnection, unguarded: Unguarded, tree: Any
) -> None:
    sql = f"SELECT COUNT(*), SUM(salary) FROM ratings_wide WHERE {condition_sql(tree)}"
    made = ask(sql)
    assert isinstance(made, Plan)
    assert unguarded.answer(made) == database.cursor().execute(sql).fetchall()


@settings(max_examples=150, deadline=None)
@given(conditions, st.integers(0, 2**32))
def test_other_words_same_normal_form(ask: Ask, tree: Any, seed: int) -> None:
    sql = "SELECT COUNT(*) FROM ratings_wide WHERE "
    plain = only(ask(sql + condition_sql(tree))).question.condition
    other = only(ask(sql + condition_sql(tree, random.Random(seed)))).question.condition
    assert canonical(plain) == canonical(other)


@settings(max_examples=150, deadline=None)
@given(conditions)
def test_the_normal_form_means_the_same(ask: Ask, unguarded: Unguarded, catalog: Catalog, tree: Any) -> None:
    question = only(ask(f"SELECT COUNT(*) FROM ratings_wide WHERE {condition_sql(tree)}")).question
    counts = [
        unguarded.connection.execute(question_sql(Question(UNITS, condition), ["count(*)"], catalog.unit)).fetchall()
        for condition in (question.condition, normal(question.condition))
    ]
    assert counts[0] == counts[1]


@settings(max_examples=100, deadline=None)
@given(conditions, conditions)
def test_different_answers_different_normal_forms(
    ask: Ask, database: duckdb.DuckDBPyConnection, one: Any, other: Any
) -> None:
    """Equal normal forms are equal conditions: on no row do they differ."""
    forms = [
        canonical(only(ask(f"SELECT COUNT(*) FROM ratings_wide WHERE {condition_sql(tree)}")).question.condition)
        for tree in (one, other)
    ]
    if forms[0] == forms[1]:
        sql = (
            f"SELECT COUNT(*) FROM ratings_wide WHERE ({condition_sql(one)}) IS DISTINCT FROM ({condition_sql(other)})"
        )
        assert database.cursor().execute(sql).fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("warcross = 5 AND joy_ride = 1", "joy_ride = 1.0 AND (5 = warcross) AND TRUE"),
        ("warcross IN (1, 2)", "warcross = 2 OR warcross = 1 OR FALSE"),
        ("NOT (warcross < 3 OR joy_ride IS NULL)", "joy_ride IS NOT NULL AND warcross >= 3"),
        ("warcross BETWEEN 2 AND 3", "3 >= warcross AND 2 <= warcross"),
        ("warcross > 1", "(warcross > 1 AND joy_ride > 1) OR warcross > 1"),
        ("warcross > 1", "warcross > 1 AND 1 = 1"),
        ("warcross > 1", "CASE WHEN 1 > 2 THEN joy_ride > 1 ELSE warcross > 1 END"),
        ("warcross > 1", "t.w > 1"),
        ("warcross + joy_ride > 2 * 2", "4 < joy_ride + warcross"),
        ("(warcross IS NULL) IS TRUE", "warcross IS NULL"),
        ("warcross = '5'", "warcross = 5"),
    ],
    ids=range(11),
)
def test_normal_forms_by_hand(ask: Ask, one: str, other: str) -> None:
    source = "(SELECT *, warcross AS w FROM ratings_wide) AS t"
    forms = [canonical(only(ask(f"SELECT COUNT(*) FROM {source} WHERE {c}")).question.condition) for c in (one, other)]
    assert forms[0] == forms[1]


def test_arithmetic_cannot_leave_its_range(ask: Ask, unguarded: Unguarded) -> None:
    """What would overflow as whole numbers, and raise with the data in its message, is computed as DOUBLE."""
    for condition in (
        "warcross * 2147483647 * 2147483647 * 2147483647 > 1",
        "ABS(warcross - 9223372036854775807) * 1e308 > 1",
        "warcross = 170141183460469231731687303715884105727",
        "COALESCE(warcross, 9223372036854775807) + 9223372036854775807 > 0",
        "1 / (warcross - warcross) > 0 OR ROUND(warcross / 0, 2) > 1",
        "warcross * 0.00000000000000000000000000000000000001 > 0",
        "- warcross * 123456789012345678901234567890.123456789 < 1",
    ):
        made = ask(f"SELECT COUNT(*), SUM(salary * 1000000000000000) FROM ratings_wide WHERE {condition} OR TRUE")
        assert isinstance(made, Plan)
        assert unguarded.answer(made)[0][0] == 198


def test_a_whole_block_is_about_rows_or_units(ask: Ask) -> None:
    block = only(ask("SELECT COUNT(*) FROM ratings_wide WHERE TRUE"))
    assert block.question.condition == TRUE
