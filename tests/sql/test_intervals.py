"""Common windows: the paper's examples, then every window tried in plain Python, then what clipping promises."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil, floor
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._dbt_package import dbt_path

SQL = dbt_path() / "sql" / "generalize"
Rows = list[tuple[Any, ...]]
Ratings = dict[tuple[int, int], float]  # by user and item


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 2})
    for macro in ("kg_intervals", "kg_clip_to_intervals"):
        con.execute((SQL / f"{macro}.sql").read_text(encoding="utf-8"))
    return con


def fill(con: duckdb.DuckDBPyConnection, ratings: Iterable[tuple[int, int, float | None]], groups: Rows) -> None:
    con.execute("create or replace table ratings (user_id bigint, item_id bigint, rating double)")
    con.execute("create or replace table groups (user_id bigint, group_id bigint)")
    for table, values in (("ratings", list(ratings)), ("groups", groups)):
        if values:
            con.execute(f"insert into {table} values {', '.join(_sql(value) for value in values)}")


def _sql(row: tuple[Any, ...]) -> str:
    return f"({', '.join('null' if value is None else repr(value) for value in row)})"


def column(con: duckdb.DuckDBPyConnection, ratings: list[float | None]) -> None:
    """One group, one item: users 1, 2 ... with these ratings, None for those who did not rate."""
    fill(
        con,
        [(user, 7, rating) for user, rating in enumerate(ratings, 1) if rating is not None],
        [(user, 1) for user in range(1, len(ratings) + 1)],
    )


def intervals(con: duckdb.DuckDBPyConnection, epsilon: float) -> Rows:
    return con.execute(f"from kg_intervals('ratings', 'groups', {epsilon!r})").fetchall()


def clipped(con: duckdb.DuckDBPyConnection, windows: Rows) -> Ratings:
    con.execute("create or replace table windows (group_id bigint, item_id bigint, low double, high double)")
    if windows:
        con.execute(f"insert into windows values {', '.join(_sql(row) for row in windows)}")
    rows = con.execute("from kg_clip_to_intervals('ratings', 'groups', 'windows')").fetchall()
    assert len({row[:2] for row in rows}) == len(rows)
    return {(user, item): rating for user, item, rating in rows}


def distortion(con: duckdb.DuckDBPyConnection, window: tuple[float, float]) -> float:
    """What moving the ratings of the one item into the window changes."""
    shown = clipped(con, [(1, 7, *window)])
    before = dict(
        con.execute("select user_id, coalesce(rating, 0) from groups left join ratings using (user_id)").fetchall()
    )
    return sum(abs(rating - before[user]) for (user, _), rating in shown.items())


@pytest.mark.parametrize(
    ("ratings", "epsilon", "lows", "distortions", "best"),
    [
        ((3, 4, 5, 6, 7, 7, 8, 8), 2, (3, 4, 5, 6), (11, 7, 5, 6), 5),  # table 4
        ((6, 3, 4, 2), 1, (2, 3, 4, 5), (4, 3, 4, 6), 3),  # table 5, first item
        ((1, 6, 5, 5), 1, (1, 2, 3, 4, 5), (10, 8, 6, 4, 4), 4),  # table 5, second item: the lower one of two
        ((3, 2, 4, 5), 1, (2, 3, 4), (3, 2, 3), 3),  # the group as tables 2 and 3 print it, first item
        ((6, 5, 7, 6), 1, (5, 6), (1, 1), 5),  # second item
        ((1, 1, 1, 9, 9, 9, 9, 9), 2, (1, 2, 3, 4, 5, 6, 7), (30, 28, 26, 24, 22, 20, 18), 7),
    ],
    ids=["table 4", "table 5 first", "table 5 second", "printed first", "printed second", "far apart"],
)
def test_published_windows(
    con: duckdb.DuckDBPyConnection,
    ratings: tuple[int, ...],
    epsilon: float,
    lows: tuple[int, ...],
    distortions: tuple[int, ...],
    best: int,
) -> None:
    column(con, list(ratings))
    assert intervals(con, epsilon) == [(1, 7, best, best + epsilon)]
    assert tuple(distortion(con, (low, low + epsilon)) for low in lows) == distortions


def test_the_published_clipping(con: duckdb.DuckDBPyConnection) -> None:
    column(con, [3, 4, 5, 6, 7, 7, 8, 8])
    assert [clipped(con, intervals(con, 2))[user, 7] for user in range(1, 9)] == [5, 5, 5, 6, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("ratings", "epsilon", "window"),
    [
        ([4, 4, None], 1, (4, 5)),  # 4 for the third against 8 for nobody
        ([4, None, None], 1, None),  # 8 against 4
        ([4, None], 1, None),  # 4 against 4: nobody
        ([1, 5, None], 2, (1, 3)),  # 2 and 1; to the raters alone [2, 4] and [3, 5] would be as good
        ([None, None], 1, None),
        ([-3, None, None], 1, None),  # 2 + 2 for the others against 3
        ([-3, None, None], 3, (-3, 0)),  # 0 lies in the window
        ([0, None], 1, None),  # shown or not, nothing changes
        ([2.5], 0, (2.5, 2.5)),
        ([2.5, 3.5], 1, (2.5, 3.5)),
        ([1.5, 2.0, 2.5], 1, (1.5, 2.5)),  # within 1 of each other as they are
        ([2.25, 3.75], 0.5, (3, 3.5)),  # from 2.25 to 3.25 all windows are as good, and one begins at a whole number
        ([0.5, 0.5], 1, (0, 1)),
        ([2.5, 2.5, None], 1, (2, 3)),  # from 1.5 on would change less, but begins below the lowest rating
    ],
    ids=lambda value: str(value).replace("None", "-"),
)
def test_windows_by_hand(
    con: duckdb.DuckDBPyConnection,
    ratings: list[float | None],
    epsilon: float,
    window: tuple[float, float] | None,
) -> None:
    column(con, ratings)
    assert intervals(con, epsilon) == ([(1, 7, *window)] if window else [])


def test_who_has_not_rated_is_shown_at_the_nearest_end(con: duckdb.DuckDBPyConnection) -> None:
    column(con, [4, 4, None])
    assert clipped(con, [(1, 7, 4, 5)]) == {(1, 7): 4, (2, 7): 4, (3, 7): 4}
    assert clipped(con, [(1, 7, -2, -1)]) == {(1, 7): -1, (2, 7): -1, (3, 7): -1}
    assert clipped(con, [(1, 7, -1, 1)]) == {(1, 7): 1, (2, 7): 1, (3, 7): 0}


def test_groups_and_items_have_windows_of_their_own(con: duckdb.DuckDBPyConnection) -> None:
    ratings = [(1, 7, 1.0), (2, 7, 2.0), (3, 7, 5.0), (4, 7, 5.0), (1, 8, 3.0), (2, 8, 3.0), (9, 7, 5.0)]
    fill(con, ratings, [(1, 20), (2, 20), (3, 10), (4, 10)])
    windows = [(10, 7, 5, 6), (20, 7, 1, 2), (20, 8, 3, 4)]
    assert intervals(con, 1) == windows
    # user 9 is in no group
    assert clipped(con, windows) == {user_item[:2]: user_item[2] for user_item in ratings if user_item[0] != 9}


def test_a_null_rating_is_none_and_a_repeated_pair_counts_once(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(1, 7, 4.0), (1, 7, 4.0), (1, 7, None), (2, 7, None)], [(1, 1), (2, 1)])
    assert intervals(con, 1) == []
    fill(con, [(1, 7, 2.0), (1, 7, 4.0), (2, 7, 3.0)], [(1, 1), (2, 1)])
    assert intervals(con, 0) == [(1, 7, 3, 3)]
    assert clipped(con, [(1, 7, 1, 9)]) == {(1, 7): 3, (2, 7): 3}


def test_a_whole_number_that_rounding_missed_is_one(con: duckdb.DuckDBPyConnection) -> None:
    # 3.3 - 0.3 is 2.9999999999999996, 1.2 - 0.2 is 0.9999999999999999
    column(con, [3.0, 3.3])
    assert intervals(con, 0.3) == [(1, 7, 3, 3.3)]
    column(con, [0.2, 0.4, 0.6, 0.8])
    assert intervals(con, 0) == [(1, 7, 0.4, 0.4)]


def test_any_type_of_number_and_of_id(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table ratings (user_id varchar, item_id varchar, rating decimal(3, 1))")
    con.execute("insert into ratings values ('a', 'x', 3.5), ('b', 'x', 4.0)")
    con.execute("create or replace table groups as select user_id, 1::tinyint as group_id from ratings")
    assert con.execute("from kg_intervals('ratings', 'groups', 1.0)").fetchall() == [(1, "x", 3.0, 4.0)]
    con.execute("create or replace table windows as from kg_intervals('ratings', 'groups', 1.0)")
    rows = con.execute("from kg_clip_to_intervals('ratings', 'groups', 'windows') order by all").fetchall()
    assert rows == [("a", "x", 3.5), ("b", "x", 4.0)]


@pytest.mark.parametrize("name", ["sizes", "cells", "windows", "rated", "members", "intervals"])
def test_relations_may_have_any_name(con: duckdb.DuckDBPyConnection, name: str) -> None:
    column(con, [1, 2, 2])
    con.execute(f"create schema if not exists other; create or replace table other.{name} as from ratings")
    windows = con.execute(f"from kg_intervals('other.{name}', 'groups', 0)").fetchall()
    con.execute(f"create temp table {name} as from ratings")
    assert con.execute(f"from kg_intervals('{name}', 'groups', 0)").fetchall() == windows == [(1, 7, 2, 2)]
    con.execute("create or replace table known as from kg_intervals('ratings', 'groups', 0)")
    shown = con.execute(f"from kg_clip_to_intervals('{name}', 'groups', 'known') order by all").fetchall()
    con.execute(f"drop table {name}")
    assert shown == [(1, 7, 2), (2, 7, 2), (3, 7, 2)]


@pytest.mark.parametrize("epsilon", ["-1", "null", "'nan'::double", "'inf'::double"])
def test_refuses_widths(con: duckdb.DuckDBPyConnection, epsilon: str) -> None:
    column(con, [1, 2])
    with pytest.raises(duckdb.InvalidInputException, match="p_epsilon is a number of at least 0, not"):
        con.execute(f"from kg_intervals('ratings', 'groups', {epsilon})").fetchall()


@pytest.mark.parametrize("rating", ["nan", "inf", "-inf"])
def test_refuses_ratings_that_are_not_finite(con: duckdb.DuckDBPyConnection, rating: str) -> None:
    column(con, [1, 2])
    con.execute(f"insert into ratings select 1, 8, '{rating}'::double")
    with pytest.raises(duckdb.Error, match=r"(?i)out of range|can't be cast"):
        con.execute("from kg_intervals('ratings', 'groups', 1)").fetchall()


def by_brute_force(ratings: Ratings, groups: dict[int, int], epsilon: float) -> Rows:
    """Every window of every group and item, and showing nobody, whichever changes least."""
    members = defaultdict(list)
    for user, group in groups.items():
        members[group].append(user)
    found: Rows = []
    for group, users in sorted(members.items()):
        for item in sorted({item for _, item in ratings}):
            rated = [ratings[user, item] for user in users if (user, item) in ratings]
            if not rated:
                continue
            values = rated + [0] * (len(users) - len(rated))
            first, last = floor(min(rated)), max(floor(min(rated)), ceil(max(rated) - epsilon))
            lows = {*range(first, last + 1), *rated, *(rating - epsilon for rating in rated), 0, -epsilon}
            costs = {
                low: sum(abs(value - min(max(value, low), low + epsilon)) for value in values)
                for low in lows
                if first <= low <= last
            }
            low = min(costs, key=lambda low: (costs[low], low % 1 > 0, low))
            if len(rated) == len(users) or costs[low] < sum(map(abs, rated)):
                found.append((group, item, low, low + epsilon))
    return found


# Quarters add up without rounding.
RATING = st.integers(1, 6).map(float) | st.integers(-12, 24).map(lambda quarters: quarters / 4)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_same_as_brute_force_and_what_clipping_promises(con: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    users, items = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    groups = {user: data.draw(st.integers(1, 3)) for user in range(users)}
    cells = st.tuples(st.integers(0, users - 1), st.integers(0, items - 1))
    ratings = data.draw(st.dictionaries(cells, RATING, max_size=30))
    epsilon = data.draw(st.sampled_from([0, 1, 2, 5, 0.5, 2.75]))
    fill(con, [(*cell, rating) for cell, rating in ratings.items()], list(groups.items()))

    windows = intervals(con, epsilon)
    assert windows == by_brute_force(ratings, groups, epsilon)

    shown = clipped(con, windows)
    bounds = {(group, item): (low, high) for group, item, low, high in windows}
    assert set(shown) == {(user, item) for user, group in groups.items() for of, item in bounds if of == group}
    for (user, item), rating in shown.items():
        low, high = bounds[groups[user], item]
        assert rating == min(max(ratings.get((user, item), 0), low), high)

    # what is within windows already stays as it is, though a window may begin elsewhere
    fill(con, [(*cell, rating) for cell, rating in shown.items()], list(groups.items()))
    assert clipped(con, intervals(con, epsilon)) == shown


def test_movielens_in_windows(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    con.execute(
        f"""
        create or replace table ratings as
        select user_id, item_id, rating
        from read_csv('{data_dir / "ml-100k" / "u.data"}', delim = '\t', header = false,
          columns = {{'user_id': 'bigint', 'item_id': 'bigint', 'rating': 'double', 'at': 'bigint'}})
        """
    )
    con.execute("create or replace table groups as select distinct user_id, user_id // 10 as group_id from ratings")
    ratings = {(user, item): rating for user, item, rating in con.execute("from ratings").fetchall()}
    groups = dict(con.execute("from groups").fetchall())
    changes = []
    for epsilon in (0, 1, 2, 4):
        con.execute(f"create or replace table windows as from kg_intervals('ratings', 'groups', {epsilon})")
        if epsilon == 1:
            assert con.execute("from windows").fetchall() == by_brute_force(ratings, groups, epsilon)
        con.execute("create or replace table shown as from kg_clip_to_intervals('ratings', 'groups', 'windows')")
        wrong = """
            select group_id, item_id
            from shown join groups using (user_id) join (select group_id, count(*) as size from groups group by all)
            using (group_id)
            group by group_id, item_id, size
            having max(rating) - min(rating) > ? or count(*) <> size
        """
        assert con.execute(wrong, [epsilon]).fetchall() == []
        changed = (
            "select sum(abs(coalesce(ratings.rating, 0) - coalesce(shown.rating, 0))) from ratings full join shown"
        )
        changes += con.execute(f"{changed} using (user_id, item_id)").fetchone()
    assert changes == sorted(changes, reverse=True)
    assert changes[0] < sum(ratings.values())
