"""Generalization: sets, ranges of a hierarchy, and the table with one column per artifact."""

from collections import defaultdict
from typing import Any

import duckdb
import pytest
from dbt_macros import CompilerError, create_macros, load_macros
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._settings.hierarchy import Hierarchy

Rows = list[tuple[Any, ...]]

# Riyana & Natwichai, table 1: the ratings of ten users for five books, None where there is none.
BOOKS = ["Warcross", "Joy Ride", "Egomaniac", "Pachinko", "Geekerella"]
TABLE_1 = {
    1: [4, None, 4, 1, 3],
    2: [5, None, 4, None, 3],
    3: [4, None, 3, None, 4],
    4: [None, 5, 5, 1, 2],
    5: [None, 5, 5, 1, 2],
    6: [None, 5, 4, 2, 1],
    7: [1, 5, 4, None, 2],
    8: [2, 4, 3, None, None],
    9: [2, 4, 3, None, None],
    10: [2, 4, 3, None, None],
}
CLASSES = {1: [1, 2, 3], 2: [4, 5, 6, 7], 3: [8, 9, 10]}
LOW, HIGH = {"low": 0.0, "high": 2.0}, {"low": 3.0, "high": 5.0}


def one(value: float) -> dict[str, float]:
    return {"low": float(value), "high": float(value)}


# What the paper prints for each class: table 2 (ranges, its hierarchy of halves) and table 3 (sets).
TABLE_2 = {
    1: [HIGH, None, HIGH, LOW, HIGH],
    2: [LOW, one(5), HIGH, LOW, LOW],
    3: [one(2), one(4), one(3), None, None],
}
TABLE_3 = {
    1: [[4, 5], None, [3, 4], [0, 1], [3, 4]],
    2: [[0, 1], [5], [4, 5], [0, 1, 2], [1, 2]],
    3: [[2], [4], [3], None, None],
}


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    create_macros(con, "kg_generalize_sets", "kg_generalize_ranges")
    return con


@pytest.fixture
def books(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Table 1 in the long shape, `halves`, and the books as artifacts."""
    fill(
        con,
        [(user, book, rating) for user, row in TABLE_1.items() for book, rating in zip(BOOKS, row, strict=True)],
        [(user, number) for number, members in CLASSES.items() for user in members],
        Hierarchy.parse("halves").rows(),
    )
    artifacts(con, BOOKS)
    return con


def fill(con: duckdb.DuckDBPyConnection, ratings: Rows, groups: Rows, hierarchy: Rows) -> None:
    tables = {
        "ratings (user_id bigint, item_id varchar, rating double)": ratings,
        "groups (user_id bigint, group_id bigint)": groups,
        "hierarchy (level integer, low double, high double)": hierarchy,
    }
    for table, rows in tables.items():
        con.execute(f"create or replace table {table}")
        if rows:
            places = ", ".join(["(" + ", ".join("?" * len(rows[0])) + ")"] * len(rows))
            con.execute(f"insert into {table.split()[0]} values {places}", [value for row in rows for value in row])


def artifacts(con: duckdb.DuckDBPyConnection, ids: list[str]) -> None:
    con.execute("create or replace table artifacts (item_id varchar, position integer)")
    # Written in another order than that of their positions.
    con.executemany("insert into artifacts values (?, ?)", [(each, place) for place, each in enumerate(ids)][::-1])


def rows(con: duckdb.DuckDBPyConnection, query: str) -> Rows:
    return con.execute(query).fetchall()


def cells(con: duckdb.DuckDBPyConnection, call: str) -> dict[tuple[int, str], Any]:
    found = rows(con, f"from {call}")
    assert len({row[:2] for row in found}) == len(found)
    return {(group, item): cell for group, item, cell in found}


SETS = "kg_generalize_sets('ratings', 'groups')"
RANGES = "kg_generalize_ranges('ratings', 'groups', 'hierarchy')"


def long(table: dict[int, list[Any]]) -> dict[tuple[int, str], Any]:
    return {
        (group, book): cell
        for group, row in table.items()
        for book, cell in zip(BOOKS, row, strict=True)
        if cell is not None
    }


# The published example ------------------------------------------------------------------------------------------


def test_ranges_are_table_2_of_the_paper(books: duckdb.DuckDBPyConnection) -> None:
    assert cells(books, RANGES) == long(TABLE_2)


def test_sets_are_table_3_of_the_paper(books: duckdb.DuckDBPyConnection) -> None:
    assert cells(books, SETS) == long(TABLE_3)


@pytest.mark.parametrize(("kind", "call", "table"), [("ranges", RANGES, TABLE_2), ("sets", SETS, TABLE_3)])
def test_wide_tables_are_those_of_the_paper(
    books: duckdb.DuckDBPyConnection, kind: str, call: str, table: dict[int, list[Any]]
) -> None:
    assert wide(books, kind, call) == (["group_id", *BOOKS], [(group, *row) for group, row in table.items()])


def wide(
    con: duckdb.DuckDBPyConnection, kind: str, call: str, *, execute: bool = True, reserved: tuple[str, ...] = ()
) -> tuple[list[str], Rows]:
    """The names of the columns and the rows of the query that the dbt macro writes."""
    con.execute(f"create or replace table long as from {call}")
    macros = load_macros("generalize/generalized_columns.sql", con=con, execute=execute)
    query = macros.generalized_select(kind, "artifacts", "long", "groups", reserved=list(reserved))
    # As a table, which is what dbt makes of it: DuckDB renames columns that clash.
    con.execute(f"create or replace table wide as {query}")
    found = con.execute("from wide order by group_id")
    return [column[0] for column in found.description], found.fetchall()


# Sets and ranges ------------------------------------------------------------------------------------------------


def test_types_are_those_promised(books: duckdb.DuckDBPyConnection) -> None:
    for call, name, kind in ((SETS, "values", "DOUBLE[]"), (RANGES, "range", "STRUCT(low DOUBLE, high DOUBLE)")):
        described = [row[:2] for row in rows(books, f"describe from {call}")]
        assert described == [("group_id", "BIGINT"), ("item_id", "VARCHAR"), (name, kind)]


def test_the_lowest_level_that_covers_is_taken(con: duckdb.DuckDBPyConnection) -> None:
    hierarchy = Hierarchy.parse([[[0, 1], [2, 3], [4, 5]], [[0, 3], [4, 5]], [[0, 5]]], 0, 5, 1).rows()
    pairs = {"same": (3, 3), "pair": (2, 3), "next": (1, 2), "rest": (4, 5), "all": (3, 4), "blank": (1, None)}
    ratings = [(user, item, rating) for item, both in pairs.items() for user, rating in enumerate(both)]
    # The order of the levels in the relation tells nothing.
    fill(con, ratings, [(0, 7), (1, 7)], hierarchy[::-1])
    expected = {"same": (3, 3), "pair": (2, 3), "next": (0, 3), "rest": (4, 5), "all": (0, 5), "blank": (0, 1)}
    assert cells(con, RANGES) == {(7, item): {"low": low, "high": high} for item, (low, high) in expected.items()}


def test_what_falls_into_a_gap_takes_a_wider_range(con: duckdb.DuckDBPyConnection) -> None:
    # 2.5, the mean of a repeated pair, lies between the halves.
    fill(con, [(0, "a", 2.5), (1, "a", 2.0)], [(0, 1), (1, 1)], Hierarchy.parse("halves").rows())
    assert cells(con, RANGES) == {(1, "a"): {"low": 0, "high": 5}}


def test_steps_read_as_short_floats_keep_their_level(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [], [(0, 1), (1, 1)], Hierarchy.parse("binary", 0.1, 0.6, 0.1).rows())
    con.execute("""
        insert into ratings
        select user_id, item_id, cast(rating as float)
        from (values (0, 'a', 0.2), (1, 'a', 0.3), (0, 'b', 0.1), (1, 'b', 0.6)) as r (user_id, item_id, rating)
    """)
    assert rows(con, "select max(rating) > 0.6 from ratings") == [(True,)]
    assert cells(con, RANGES) == {(1, "a"): {"low": 0.2, "high": 0.3}, (1, "b"): {"low": 0, "high": 0.6}}


def test_a_value_outside_of_the_hierarchy_is_refused_and_not_told(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(0, "a", 7.25), (1, "a", 4)], [(0, 1), (1, 1)], Hierarchy.parse("halves").rows())
    with pytest.raises(duckdb.InvalidInputException) as caught:
        rows(con, f"from {RANGES}")
    assert "its widest range is [0, 5] at level 2" in str(caught.value)
    assert "7.25" not in str(caught.value)


def test_not_rated_must_be_in_the_hierarchy_too(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(0, "a", 4), (1, "b", 4)], [(0, 1), (1, 1)], [(1, 1, 5)])
    with pytest.raises(duckdb.InvalidInputException, match=r"the 0 of an item not rated.*\[1, 5\] at level 1"):
        rows(con, f"from {RANGES}")


def test_an_outside_value_is_refused_where_all_members_have_it(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(0, "a", 9), (1, "a", 9)], [(0, 1), (1, 1)], Hierarchy.parse("halves").rows())
    with pytest.raises(duckdb.InvalidInputException, match="outside of the hierarchy"):
        rows(con, f"from {RANGES}")


def test_a_hierarchy_without_ranges_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(0, "a", 4), (1, "a", 3)], [(0, 1), (1, 1)], [])
    with pytest.raises(duckdb.InvalidInputException, match="the hierarchy has no ranges"):
        rows(con, f"from {RANGES}")


def test_nulls_strangers_and_repetitions(con: duckdb.DuckDBPyConnection) -> None:
    ratings = [(0, "a", 4), (0, "a", 4), (1, "a", None), (2, "b", 3), (0, "c", None), (9, "c", 5), (2, None, 1)]
    # User 9 is in no group; the group of 2 and 3 is written twice.
    fill(con, ratings, [(0, 1), (1, 1), (2, 2), (3, 2), (2, 2), (3, 2)], Hierarchy.parse("halves").rows())
    # The rating that stands twice is not that of a second member.
    assert cells(con, SETS) == {(1, "a"): [0, 4], (2, "b"): [0, 3], (2, None): [0, 1]}
    assert cells(con, RANGES)[1, "a"] == {"low": 0, "high": 5}


@pytest.mark.parametrize("empty", ["ratings", "groups", "ratings, groups"])
def test_nothing_comes_of_nothing(books: duckdb.DuckDBPyConnection, empty: str) -> None:
    for table in empty.split(", "):
        books.execute(f"delete from {table}")
    assert cells(books, SETS) == cells(books, RANGES) == {}


def test_negative_ratings_sort_below_not_rated(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(0, "a", -3), (1, "a", 2), (0, "b", -3)], [(0, 1), (1, 1)], Hierarchy.parse("binary", -4, 4, 1).rows())
    assert cells(con, SETS) == {(1, "a"): [-3, 2], (1, "b"): [-3, 0]}
    assert cells(con, RANGES) == {(1, "a"): {"low": -4, "high": 4}, (1, "b"): {"low": -4, "high": 0}}


@pytest.mark.parametrize("name", ["cells", "sizes", "members", "ratings", "rated", "pairs", "hierarchy", "lowest"])
def test_relations_may_have_any_name(books: duckdb.DuckDBPyConnection, name: str) -> None:
    books.execute("create or replace table halves as from hierarchy")
    relations = f"with {name} as (from main.ratings)"
    assert len(rows(books, f"{relations} from kg_generalize_sets('{name}', 'groups')")) == 12
    assert len(rows(books, f"{relations} from kg_generalize_ranges('{name}', 'groups', 'halves')")) == 12


# Against plain Python -------------------------------------------------------------------------------------------

STEPS = [value / 2 for value in range(1, 11)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Ratings in half stars and groups; some users rate nothing, some ratings are null."""
    users = draw(st.integers(1, 9))
    groups = [(user, draw(st.integers(1, 3))) for user in range(users)]
    rating = st.one_of(st.none(), st.sampled_from(STEPS))
    pairs = draw(st.sets(st.tuples(st.integers(0, users - 1), st.sampled_from("abc")), max_size=20))
    return [(user, item, draw(rating)) for user, item in sorted(pairs)], groups


def members_values(ratings: Rows, groups: Rows) -> dict[tuple[int, str], list[float]]:
    """What each member has in each cell that one of them rated: the rating, or 0."""
    rated = {(user, item): rating for user, item, rating in ratings if rating is not None}
    members = defaultdict(list)
    for user, group in groups:
        members[group].append(user)
    return {
        (group, item): [rated.get((user, item), 0.0) for user in those]
        for group, those in members.items()
        for item in {item for user, item in rated if user in those}
    }


@settings(max_examples=40, deadline=None)
@given(table=tables())
def test_cells_are_those_of_plain_python(con: duckdb.DuckDBPyConnection, table: tuple[Rows, Rows]) -> None:
    ratings, groups = table
    hierarchy = Hierarchy.parse("binary", 0.5, 5, 0.5)
    fill(con, ratings, groups, hierarchy.rows())
    sets, ranges = cells(con, SETS), cells(con, RANGES)
    expected = members_values(ratings, groups)
    assert sets == {cell: sorted(set(values)) for cell, values in expected.items()}
    assert ranges.keys() == expected.keys()
    for cell, values in expected.items():
        low, high = ranges[cell]["low"], ranges[cell]["high"]
        # Every member's true value is covered, by no wider a range than need be.
        assert all(low <= value <= high for value in values)
        levels = [((value, value) for value in values), *hierarchy.levels]
        covering = [[each for each in level if each[0] <= min(values) and max(values) <= each[1]] for level in levels]
        assert (low, high) == next(each[0] for each in covering if each)


@settings(max_examples=20, deadline=None)
@given(table=tables())
def test_a_table_that_is_anonymous_stays_as_it_is(con: duckdb.DuckDBPyConnection, table: tuple[Rows, Rows]) -> None:
    ratings, groups = table
    group_of = dict(groups)
    shown = {(group_of[user], item): rating for user, item, rating in ratings if rating is not None}
    identical = [(user, item, rating) for user, group in groups for (of, item), rating in shown.items() if of == group]
    fill(con, identical, groups, Hierarchy.parse("binary", 0.5, 5, 0.5).rows())
    assert cells(con, SETS) == {cell: [rating] for cell, rating in shown.items()}
    assert cells(con, RANGES) == {cell: one(rating) for cell, rating in shown.items()}


# One column per artifact ----------------------------------------------------------------------------------------

HOSTILE = [
    "it's",
    'say "hi"',
    " two  spaces ",
    "50",
    "select",
    "a,b",
    "日本",
    "x; drop table groups; --",
    "{{ 1 }}",
    "\\",
]


@pytest.mark.parametrize(("kind", "call"), [("sets", SETS), ("ranges", RANGES)])
def test_columns_have_the_names_of_the_items_whatever_they_are(
    con: duckdb.DuckDBPyConnection, kind: str, call: str
) -> None:
    ratings = [(0, item, place % 5 + 1) for place, item in enumerate(HOSTILE)]
    fill(con, ratings, [(0, 1)], Hierarchy.parse("halves").rows())
    artifacts(con, HOSTILE)
    names, found = wide(con, kind, call)
    assert names == ["group_id", *HOSTILE]
    values = [place % 5 + 1 for place in range(len(HOSTILE))]
    assert found == [(1, *([[value] for value in values] if kind == "sets" else map(one, values)))]


def test_groups_without_cells_and_artifacts_without_ratings_are_there(books: duckdb.DuckDBPyConnection) -> None:
    books.execute("insert into groups values (11, 4), (12, 4)")
    artifacts(books, ["Pachinko", "Unread"])
    assert wide(books, "sets", SETS) == (
        ["group_id", "Pachinko", "Unread"],
        [(1, [0, 1], None), (2, [0, 1, 2], None), (3, None, None), (4, None, None)],
    )


def test_wide_of_nothing_has_columns_and_no_rows(books: duckdb.DuckDBPyConnection) -> None:
    books.execute("delete from groups")
    assert wide(books, "ranges", RANGES) == (["group_id", *BOOKS], [])


def test_ids_that_are_numbers_name_columns_too(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create or replace table ratings as from (values (0, 50, 4), (1, 7, 3)) as r (user_id, item_id, rating)"
    )
    con.execute("create or replace table groups as from (values (0, 1), (1, 1)) as g (user_id, group_id)")
    con.execute("create or replace table artifacts as from (values (50, 1), (7, 2)) as a (item_id, position)")
    assert wide(con, "sets", SETS) == (["group_id", "50", "7"], [(1, [0, 4], [0, 3])])


def test_nothing_is_asked_before_anything_runs(books: duckdb.DuckDBPyConnection) -> None:
    assert wide(books, "sets", SETS, execute=False) == (["group_id"], [(1,), (2,), (3,)])


@pytest.mark.parametrize(
    ("ids", "reserved", "message"),
    [
        (["Warcross", "WARCROSS"], (), "'WARCROSS' cannot be a column beside the artifact 'Warcross'"),
        (["Group_ID"], (), "'Group_ID' cannot be a column beside the column group_id"),
        (["age"], ("Age",), "'age' cannot be a column beside the column Age"),
        ([""], (), "an artifact without an id cannot be a column"),
        ([None], (), "an artifact without an id cannot be a column"),
    ],
)
def test_names_that_clash_are_refused(
    books: duckdb.DuckDBPyConnection, ids: list[str], reserved: tuple[str, ...], message: str
) -> None:
    artifacts(books, ids)
    with pytest.raises(CompilerError, match=message):
        wide(books, "sets", SETS, reserved=reserved)


def test_other_kinds_are_refused(books: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(CompilerError, match="sets or ranges, not lists"):
        wide(books, "lists", SETS)


def test_many_columns_are_no_burden(con: duckdb.DuckDBPyConnection) -> None:
    # A filter per column took minutes here.
    count = 600
    con.execute(f"""
        create or replace table ratings as
        select user_id, item_id, 1 + (user_id * item_id) % 5 as rating
        from range(600) as u (user_id), range({count}) as i (item_id)
        where (user_id + item_id) % 3 = 0
    """)
    con.execute(
        "create or replace table groups as select user_id, user_id // 6 as group_id from range(600) u (user_id)"
    )
    con.execute(
        f"create or replace table artifacts as select item_id, item_id as position from range({count}) i (item_id)"
    )
    names, found = wide(con, "sets", SETS)
    assert (len(names), len(found)) == (count + 1, 100)
    expected = cells(con, SETS)
    assert found[17] == (17, *(expected.get((17, item)) for item in range(count)))
