"""The models on long tables of ratings: the generic tests as dbt renders them, and the SQL functions behind them."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import jinja2
import pytest
from dbt_macros import SQL, CompilerError
from hypothesis import given, settings
from hypothesis import strategies as st

import kgather

Row = tuple[Any, ...]
Failures = list[Row]

# The paper's tables, (user, column, rating): columns 1 and 2 are not sensitive.
TABLE_1 = [
    ("t1", 1, 6), ("t1", 2, 1), ("t1", 4, 6), ("t2", 1, 1), ("t2", 2, 6), ("t2", 4, 1), ("t3", 1, 2), ("t3", 2, 5),
    ("t3", 4, 1), ("t4", 1, 1), ("t4", 3, 5), ("t4", 4, 1), ("t5", 1, 2), ("t5", 3, 6), ("t5", 4, 5),
]  # fmt: skip
TABLE_2 = [
    ("t1", 1, 3), ("t1", 2, 6), ("t1", 4, 6), ("t2", 1, 2), ("t2", 2, 5), ("t2", 4, 1), ("t3", 1, 4), ("t3", 2, 7),
    ("t3", 4, 4), ("t4", 1, 5), ("t4", 2, 6), ("t4", 4, 1), ("t5", 1, 1), ("t5", 3, 5), ("t5", 4, 1), ("t6", 1, 2),
    ("t6", 3, 6), ("t6", 4, 5),
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        kgather.load(con)
        yield con


def fill(con: duckdb.DuckDBPyConnection, rows: Sequence[Row], table: str = "ratings", names: str = "") -> None:
    """A table of (user_id, item_id, rating), or of other names."""
    first, second, third = (names or "user_id item_id rating").split()
    con.execute(f"create or replace table {table} ({first} varchar, {second} integer, {third} double)")
    insert(con, table, rows)


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        places = ", ".join(["(" + ", ".join("?" * len(rows[0])) + ")"] * len(rows))
        con.execute(f"insert into {table} values {places}", [value for row in rows for value in row])


def cells(con: duckdb.DuckDBPyConnection, *groups: str) -> None:
    """A table of the cells of groups given by the digits of their items, as "013"."""
    rows = [(f"g{number}", int(item)) for number, items in enumerate(groups) for item in items]
    con.execute("create or replace table cells (group_id varchar, item_id integer)")
    insert(con, "cells", rows)


@cache
def template(file: str) -> jinja2.Template:
    environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
    text = (SQL / f"{file}.sql").read_text(encoding="utf-8")
    return environment.from_string(re.sub(r"{%(-?) (end)?test\b", r"{%\1 \2macro", text))


def rendered(con: duckdb.DuckDBPyConnection, test: str, model: str, *, execute: bool = True, **given: object) -> str:
    """The SQL of a generic test. Raises CompilerError where it refuses its arguments."""

    def refuse(message: str) -> None:
        raise CompilerError(message)

    def run_query(query: str) -> SimpleNamespace:
        return SimpleNamespace(rows=con.execute(query).fetchall())

    namespace: dict[str, Any] = {}
    names = {
        "kgather": namespace,
        "execute": execute,
        "run_query": run_query,
        "exceptions": SimpleNamespace(raise_compiler_error=refuse),
        "config": lambda **_: "",
    }
    helpers = (
        "privacy/names_as_literals",
        "privacy/count_failures",
        "privacy/find_sql_macros",
        "generalize/generalized_columns",
        "functions/rating_list",
    )
    for file in (*helpers, f"tests/{test}"):
        namespace.update(vars(template(file).make_module(names)))
    return str(namespace[test](model, **given))


def failures(con: duckdb.DuckDBPyConnection, test: str, model: str = "ratings", **arguments: object) -> Failures:
    """What a generic test returns, wrapped as dbt does, but for the counts that every row repeats."""
    query = rendered(con, test, model, **arguments)
    kept = "columns(lambda kg_name: not kg_name like '%_at_risk')"
    return con.execute(f"select {kept} from ({query}) as dbt_internal_test order by all").fetchall()


def people_at_risk(con: duckdb.DuckDBPyConnection, test: str, **arguments: object) -> int:
    """What dbt compares with warn_if and error_if."""
    query = rendered(con, test, "ratings", **arguments)
    [(found,)] = con.execute(f"select coalesce(max(people_at_risk), 0) from ({query})").fetchall()
    return int(found)


def non_sensitive(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row[1] <= 2]


# The paper's examples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "epsilon", "expected"),
    [(2, 5, []), (3, 5, [(2, 2)]), (2, 1, [(1, 1)]), (3, 1, [(1, 1), (2, 4)]), (5, 6, []), (6, 6, [(5, 5)])],
)
def test_table_1(con: duckdb.DuckDBPyConnection, k: int, epsilon: int, expected: Failures) -> None:
    fill(con, non_sensitive(TABLE_1))
    assert failures(con, "k_epsilon_anonymous", k=k, epsilon=epsilon, width=6) == expected
    at_risk = people_at_risk(con, "k_epsilon_anonymous", k=k, epsilon=epsilon, width=6)
    assert at_risk == sum(users for _, users in expected)


def test_table_2(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, non_sensitive(TABLE_2))
    for epsilon in (1, 2):
        assert failures(con, "k_epsilon_anonymous", k=2, epsilon=epsilon, width=7) == []
    assert failures(con, "k_epsilon_anonymous", k=3, epsilon=1, width=7) == [(2, 4)]
    assert failures(con, "k_epsilon_anonymous", k=3, epsilon=2, width=7) == [(2, 2)]


def test_deviations_of_table_1(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, TABLE_1)
    column_4 = {"width": 6, "sensitive_items": [3, 4]}
    # column 3 has two ratings, 5 and 6
    assert failures(con, "k_epsilon_l_anonymous", k=5, epsilon=6, l=0.5, **column_4) == []
    found = failures(con, "k_epsilon_l_anonymous", k=5, epsilon=6, l=0.51, **column_4)
    assert found == [(None, None, 0.5)]
    fill(con, [row for row in TABLE_1 if row[1] != 3])
    column_4 = {"width": 6, "sensitive_items": [4]}
    assert failures(con, "k_epsilon_l_anonymous", k=5, epsilon=6, l=2.227, **column_4) == []
    ((_, _, least),) = failures(con, "k_epsilon_l_anonymous", k=5, epsilon=6, l=2.228, **column_4)
    assert least == pytest.approx(2.227, abs=5e-4)
    # t1 has no neighbour at 1, and t2 and t3 have the same value
    assert failures(con, "k_epsilon_l_anonymous", k=2, epsilon=1, l=2, **column_4) == [(1, 1, None), (None, None, 0)]
    fill(con, [row for row in TABLE_1 if row[0] in ("t4", "t5") and row[1] != 3])
    assert failures(con, "k_epsilon_l_anonymous", k=2, epsilon=1, l=2, **column_4) == []
    assert failures(con, "k_epsilon_l_anonymous", k=2, epsilon=1, l=2.01, **column_4) == [(None, None, 2)]


# Sets of items ---------------------------------------------------------------------------------------------------


def item_sets(*rows: str) -> list[Row]:
    """One user for each set of items given by its digits; rated 3."""
    return [(f"u{user}", int(item), 3) for user, items in enumerate(rows) for item in items]


def test_items_are_told_apart_as_a_reader_sees_them(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table ratings (user_id varchar, item_id varchar collate nocase, rating double)")
    con.execute("insert into ratings values ('u1', 'A', 3), ('u2', 'a', 3)")
    assert failures(con, "km_anonymous", k=2, m=1) == [(1, 1, 2)]
    assert failures(con, "k_epsilon_anonymous", k=2, epsilon=1) == [(1, 2)]


def test_km_anonymous_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, item_sets("012", "01", "02", "0", "12"))
    assert failures(con, "km_anonymous", k=3, m=1) == []
    assert failures(con, "km_anonymous", k=2, m=2) == []
    assert failures(con, "km_anonymous", k=3, m=2) == [(2, 2, 3)]
    # Three sets with two users each: at most six, and no more than there are.
    [(users,)] = con.execute("select count(distinct user_id) from ratings").fetchall()
    assert people_at_risk(con, "km_anonymous", k=3, m=2) == min(users, 6)
    assert people_at_risk(con, "km_anonymous", k=3, m=1) == 0
    assert failures(con, "km_anonymous", k=2, m=3) == [(3, 1, 1)]
    # larger sets are not looked at once some fail
    assert failures(con, "km_anonymous", k=4, m=3) == [(1, 3, 2)]
    assert con.execute("select [kg_item_set_support(list(r), m) for m in [1, 2, 3]] from ratings as r").fetchone() == (
        [3, 2, 1],
    )


def test_b_l_diverse_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    cells(con, "012", "01", "02", "0")
    assert failures(con, "b_l_diverse", "cells", b=1, l=2) == []
    assert failures(con, "b_l_diverse", "cells", b=1, l=3) == [(2,)]
    assert failures(con, "b_l_diverse", "cells", b=2, l=2) == [(1,)]  # the pair 12
    # of the sets that users rated: nobody rated 1 and 2, and the pair 03 is shown by no group
    fill(con, item_sets("01", "02"))
    assert failures(con, "b_l_diverse", "cells", b=2, l=2, ratings="ratings") == []
    assert failures(con, "b_l_diverse", "cells", b=2, l=3, ratings="ratings") == [(2,)]
    fill(con, item_sets("03", "02"))
    assert failures(con, "b_l_diverse", "cells", b=1, l=1, ratings="ratings") == [(0,)]
    # a cell given twice is one
    con.execute("insert into cells from cells")
    assert failures(con, "b_l_diverse", "cells", b=1, l=3) == [(2,)]


# By their definitions --------------------------------------------------------------------------------------------

RATING = st.none() | st.integers(-1, 3)
TABLE = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(RATING, min_size=width, max_size=width), min_size=1, max_size=14)
)


def long(table: Sequence[Sequence[int | None]]) -> list[Row]:
    """A null rating is a row, or none where it is the second or later item."""
    return [
        (f"u{user}", item, rating)
        for user, row in enumerate(table)
        for item, rating in enumerate(row)
        if rating is not None or item == 0
    ]


def are_near(a: Sequence[int | None], b: Sequence[int | None], epsilon: float, width: float) -> bool:
    def distance(x: int | None, y: int | None) -> float:
        if x is None or y is None:
            return 0 if x is y else width
        return abs(x - y)

    return all(distance(x, y) <= epsilon for x, y in zip(a, b, strict=True))


@settings(max_examples=60, deadline=None)
@given(table=TABLE, k=st.integers(1, 4), epsilon=st.integers(0, 4), width=st.integers(1, 4))
def test_neighbours_by_the_definition(
    con: duckdb.DuckDBPyConnection, table: list[list[int | None]], k: int, epsilon: int, width: int
) -> None:
    fill(con, long(table))
    counts = [min(k, sum(are_near(a, b, epsilon, width) for b in table)) for a in table]
    expected = [(size, counts.count(size)) for size in range(1, k) if size in counts]
    assert failures(con, "k_epsilon_anonymous", k=k, epsilon=epsilon, width=width) == expected


@settings(max_examples=60, deadline=None)
@given(table=TABLE, epsilon=st.integers(0, 4), width=st.integers(1, 4))
def test_deviations_by_the_definition(
    con: duckdb.DuckDBPyConnection, table: list[list[int | None]], epsilon: int, width: int
) -> None:
    fill(con, long(table))
    least = math.inf
    for a in table:
        held = [b[0] for b in table if are_near(a[1:], b[1:], epsilon, width) and b[0] is not None]
        if held:
            mean = sum(held) / len(held)
            least = min(least, math.sqrt(sum((x - mean) ** 2 for x in held) / len(held)))
    query = f"select kg_epsilon_deviation(list(r), [0], {epsilon}, {width}) from ratings as r"
    ((found,),) = con.execute(query).fetchall()
    assert found == (pytest.approx(least, abs=1e-9) if least < math.inf else None)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.sets(st.integers(0, 4), max_size=4).map(lambda row: "".join(map(str, sorted(row)))), max_size=9),
    groups=st.lists(st.sets(st.integers(0, 5)).map(lambda row: "".join(map(str, sorted(row)))), max_size=5),
    size=st.integers(1, 3),
)
def test_sets_by_the_definition(con: duckdb.DuckDBPyConnection, rows: list[str], groups: list[str], size: int) -> None:
    rows, groups = [row for row in rows if row], [group for group in groups if group]
    fill(con, item_sets(*rows))
    cells(con, *groups)

    def shown_by(holders: list[str], rated: list[str], most: int) -> list[int]:
        sets = {one for row in rated for n in range(1, most + 1) for one in combinations(row, n)}
        return [sum(set(one) <= set(row) for row in holders) for one in sets]

    supports = shown_by(rows, rows, size)
    (found,) = con.execute(f"select kg_item_set_support(list(r), {size}) from ratings as r").fetchone()
    assert found == min(supports, default=None)
    assert bool(failures(con, "km_anonymous", k=3, m=size)) == (min(supports, default=3) < 3)
    by_users = min(shown_by(groups, rows, size), default=None)
    expected = [(by_users,)] if by_users is not None and by_users < 2 else []
    assert failures(con, "b_l_diverse", "cells", b=size, l=2, ratings="ratings") == expected
    by_groups = min(shown_by(groups, groups, size), default=2)
    assert failures(con, "b_l_diverse", "cells", b=size, l=2) == ([(by_groups,)] if by_groups < 2 else [])


# Real data -------------------------------------------------------------------------------------------------------


def test_movielens(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    con.execute(f"""
        create or replace view movielens as
        select column0 as customer, column1 as film, column2 as stars
        from read_csv('{data_dir / "ml-100k" / "u.data"}', delim = '\t', header = false)
    """)
    names = {"user_column": "customer", "item_column": "film", "rating_column": "stars"}
    # all item sets differ: below the width nobody has a neighbour, from it on only common items count
    assert failures(con, "k_epsilon_anonymous", "movielens", k=20, epsilon=3, width=4, **names) == [(1, 943)]
    assert failures(con, "k_epsilon_anonymous", "movielens", k=20, epsilon=4, width=4, **names) == []
    assert failures(con, "km_anonymous", "movielens", k=2, m=3, **names) == [(1, 1, 141)]
    assert failures(con, "km_anonymous", "movielens", k=1, m=1, **names) == []
    found = failures(
        con, "k_epsilon_l_anonymous", "movielens", k=20, epsilon=4, l=0.9, width=4, sensitive_items=[50, 258], **names
    )
    deviations = con.execute("select stddev_pop(stars) from movielens where film in (50, 258) group by film").fetchall()
    assert found == [(None, None, pytest.approx(min(deviations)[0]))]
    con.execute("create or replace table cells as select customer // 50 as group_id, film as item_id from movielens")
    assert failures(con, "b_l_diverse", "cells", b=1, l=2) == [(1,)]


# Nulls, empty relations, other names -----------------------------------------------------------------------------

ALL_TESTS = {
    "k_epsilon_anonymous": {"k": 2, "epsilon": 1, "width": 4},
    "k_epsilon_l_anonymous": {"k": 2, "epsilon": 1, "l": 1, "width": 4, "sensitive_items": [0]},
    "km_anonymous": {"k": 2, "m": 2},
    "b_l_diverse": {"b": 1, "l": 2, "group_column": "user_id"},
}


@pytest.mark.parametrize("test", ALL_TESTS)
def test_an_empty_relation_passes(con: duckdb.DuckDBPyConnection, test: str) -> None:
    fill(con, [])
    assert failures(con, test, **ALL_TESTS[test]) == []


def test_cells_or_ratings_may_be_missing(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [])
    cells(con, "01")
    assert failures(con, "b_l_diverse", "cells", b=2, l=9, ratings="ratings") == []
    fill(con, [("u0", 1, None)])
    assert failures(con, "b_l_diverse", "cells", b=2, l=9, ratings="ratings") == []
    fill(con, item_sets("01"))
    cells(con)
    assert failures(con, "b_l_diverse", "cells", b=2, l=1, ratings="ratings") == [(0,)]


def test_a_null_rating_is_an_item_not_rated(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [("u0", 0, 3), ("u0", 1, None), ("u1", 0, 3), ("u2", 1, None), ("u3", 0, None)])
    assert failures(con, "k_epsilon_anonymous", k=3, epsilon=1, width=4) == [(2, 4)]
    assert failures(con, "km_anonymous", k=3, m=1) == [(1, 2, 1)]
    # every row is a rating
    assert failures(con, "km_anonymous", k=3, m=1, rating_column=None) == [(1, 2, 1)]
    assert failures(con, "km_anonymous", k=2, m=2, rating_column=None) == [(2, 1, 1)]
    fill(con, [("u0", 0, None)])
    assert failures(con, "k_epsilon_anonymous", k=1, epsilon=1, width=4) == []
    assert failures(con, "km_anonymous", k=1, m=3) == []


@pytest.mark.parametrize("test", ALL_TESTS)
@pytest.mark.parametrize("column", ["user_id", "item_id"])
def test_null_ids_are_refused(con: duckdb.DuckDBPyConnection, test: str, column: str) -> None:
    fill(con, [*item_sets("01", "01"), ("u9", 0, 3)])
    con.execute(f"update ratings set {column} = null where user_id = 'u9'")
    said = "group_id" if test == "b_l_diverse" and column == "user_id" else column
    with pytest.raises(duckdb.Error, match=f"1 of 5 (rating|cell)s with a null {said}"):
        failures(con, test, **ALL_TESTS[test])


@pytest.mark.parametrize("test", ["k_epsilon_anonymous", "k_epsilon_l_anonymous", "km_anonymous"])
def test_repeated_pairs_are_refused(con: duckdb.DuckDBPyConnection, test: str) -> None:
    fill(con, [*item_sets("01", "01"), ("u1", 0, 4)])
    with pytest.raises(duckdb.Error, match="1 of 5 ratings for a user and an item that it has another one") as caught:
        failures(con, test, **ALL_TESTS[test])
    assert "u1" not in str(caught.value)


def test_columns_of_other_names_and_types(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        create or replace table "my ratings" as
        select * from (values (uuid(), date '2026-01-01', 1), (uuid(), date '2026-01-01', 2::utinyint))
          as t ("who is", "group", stars)
    """)
    names = {"user_column": "who is", "item_column": "group", "rating_column": "stars"}
    assert failures(con, "k_epsilon_anonymous", '"my ratings"', k=2, epsilon=1, width=4, **names) == []
    assert failures(con, "k_epsilon_anonymous", '"my ratings"', k=2, epsilon=0.5, width=4, **names) == [(1, 2)]
    assert failures(con, "km_anonymous", '"my ratings"', k=3, m=2, **names) == [(1, 2, 1)]
    sensitive = {"sensitive_items": ["2026-01-01"], **names}
    assert failures(con, "k_epsilon_l_anonymous", '"my ratings"', k=2, epsilon=0, l=0.5, width=4, **sensitive) == []


def test_failures_tell_of_no_user(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create or replace table ratings as "
        "select 1000 + i as user_id, i as item_id, i as rating from range(500, 520) as t (i)"
    )
    arguments = {**ALL_TESTS, "k_epsilon_l_anonymous": {**ALL_TESTS["k_epsilon_l_anonymous"], "sensitive_items": [501]}}
    told = [failures(con, test, **given) for test, given in arguments.items()]
    assert all(told)
    assert max(number or 0 for rows in told for row in rows for number in row) <= 20


# Wrong arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "arguments", "message"),
    [
        ("k_epsilon_anonymous", {"k": 0}, "k_epsilon_anonymous needs a whole number k of at least 1"),
        ("k_epsilon_anonymous", {"epsilon": -1}, "needs a number epsilon of at least 0"),
        ("k_epsilon_anonymous", {"width": 0}, "needs a number width above 0"),
        ("k_epsilon_anonymous", {"user_column": ["a"]}, "needs the name of one column as user_column"),
        ("k_epsilon_anonymous", {"rating_column": ""}, "needs the name of one column as rating_column"),
        ("k_epsilon_l_anonymous", {"l": "2"}, "needs a number l of at least 0"),
        ("k_epsilon_l_anonymous", {"sensitive_items": "0"}, "needs a list of sensitive_items"),
        ("k_epsilon_l_anonymous", {"sensitive_items": []}, "needs a list of sensitive_items"),
        ("km_anonymous", {"m": 4}, "needs a whole number m of at least 1 and at most 3"),
        ("km_anonymous", {"k": True}, "needs a whole number k of at least 1"),
        ("b_l_diverse", {"b": 0}, "needs a whole number b of at least 1 and at most 3"),
        ("b_l_diverse", {"l": 1.5}, "needs a whole number l of at least 1"),
        ("b_l_diverse", {"group_column": None}, "needs the name of one column as group_column"),
    ],
)
def test_wrong_arguments_are_refused(
    con: duckdb.DuckDBPyConnection, test: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(CompilerError, match=message):
        rendered(con, test, "ratings", **{**ALL_TESTS[test], **arguments})


@pytest.mark.parametrize("test", ALL_TESTS)
def test_without_the_plugin_a_test_says_so(test: str) -> None:
    with duckdb.connect() as bare:
        with pytest.raises(CompilerError, match=rf"{test} calls functions .*module: kgather.plugin"):
            rendered(bare, test, "ratings", **ALL_TESTS[test])
        # not while dbt parses
        assert "select" in rendered(bare, test, "ratings", execute=False, **ALL_TESTS[test])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("kg_epsilon_neighbours(list(r), null, 2, 4)", "kg_epsilon_neighbours: p_epsilon is null"),
        ("kg_epsilon_neighbours(list(r), 1, 0, 4)", "p_k must be at least 1, not 0"),
        ("kg_epsilon_neighbours(list(r), 1, 2, 0)", "p_width must be more than 0"),
        ("kg_epsilon_neighbours(list(r), 1, 2, 4, p_sensitive := [0, 7])", "1 of the 2 sensitive items occur in no"),
        ("kg_epsilon_deviation(list(r), [8, 9], 1, 4)", "2 of the 2 sensitive items occur in no rating"),
        (
            "kg_epsilon_neighbours(list({'user_id': user_id, 'item_id': item_id, 'rating': 'nan'::double}), 1, 2, 4)",
            "the rating nan is out of range",
        ),
        ("kg_item_set_support(list(r), 4)", "m must be between 1 and 3, not 4"),
        (
            "kg_item_set_violations(list(r), 2, 2, p_max_sets := 1)",
            "there are 3 sets of 2 items to look at, more than 1: choose a smaller m",
        ),
        ("kg_item_set_violations(list(r), 2, null)", "p_k is null"),
        ("kg_item_coverage(list({'group_id': user_id, 'item_id': item_id}), 4)", "p_b must be between 1 and 3, not 4"),
        (
            "kg_item_coverage(list({'group_id': user_id, 'item_id': item_id}), 2, p_max_sets := 1)",
            "would have to look at 4 sets of items, more than 1",
        ),
    ],
)
def test_functions_say_what_is_wrong(con: duckdb.DuckDBPyConnection, query: str, message: str) -> None:
    fill(con, item_sets("01", "12", "01", "02"))
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"select {query} from ratings as r").fetchall()


def test_functions_work_within_parts_and_on_many_rows(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        create or replace table parts as
        select user_id % 3 as part, user_id, item_id, 1 + (user_id // 3 % 5) as rating
        from range(3000) as users (user_id), range(10) as items (item_id)
    """)
    found = con.execute("""
        select part, unnest(kg_epsilon_neighbours(list(r), 0, 1000, 4), recursive := true)
        from parts as r group by part order by part
    """).fetchall()
    assert found == [(part, 200, 1000) for part in range(3)]
    query = "select part, kg_item_set_support(list(r), 3) from parts as r group by part order by part"
    assert con.execute(query).fetchall() == [(part, 1000) for part in range(3)]
