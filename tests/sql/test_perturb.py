"""Gaussian noise and microaggregation of filled ratings."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from dbt_macros import create_macros
from hypothesis import given, settings
from hypothesis import strategies as st

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("set threads = 1")
    create_macros(con, "kg_gaussian_noise", "kg_microaggregate")
    return con


@pytest.fixture(autouse=True)
def _seeded(con: duckdb.DuckDBPyConnection) -> None:
    """One thread and one seed for each test: the same draws each time, whatever ran before."""
    con.execute("select setseed(0.42)")


def table(con: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Rows) -> None:
    con.execute(f"create or replace table {name} ({columns})")
    if rows:
        places = ", ".join(["(" + ", ".join("?" * len(rows[0])) + ")"] * len(rows))
        con.execute(f"insert into {name} values {places}", [value for row in rows for value in row])


def ratings(con: duckdb.DuckDBPyConnection, rows: Rows) -> None:
    table(con, "ratings", "user_id bigint, item_id varchar, rating double", rows)


def rows(con: duckdb.DuckDBPyConnection, query: str) -> Rows:
    return con.execute(query).fetchall()


def numbers(con: duckdb.DuckDBPyConnection, query: str) -> np.ndarray:
    return np.array([row[0] for row in rows(con, query)], dtype=float)


NOISE = "kg_gaussian_noise('{}', {}, {}, {})"
SOME = [(0, "a", 1.0), (1, "a", 4.5), (2, "a", 5.0), (0, "b", 0.1), (1, "b", 0.3)]


@pytest.fixture
def many(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """100,000 ratings of one item, of mean 3 and standard deviation 2."""
    con.execute("""
        create or replace table many as
        select i as user_id, 'a' as item_id, 1 + 4 * (i % 2) as rating
        from range(100000) as t (i)
    """)
    return con


# Gaussian noise -------------------------------------------------------------------------------------------------


def test_no_noise_gives_the_input_exactly(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, SOME)
    for low, high in (("null", "null"), (0, 5)):
        assert sorted(rows(con, f"from {NOISE.format('ratings', 0, low, high)}")) == sorted(SOME)


def test_noise_is_normal_and_scaled_by_the_item(many: duckdb.DuckDBPyConnection) -> None:
    drawn = numbers(
        many,
        f"""
        select (noisy.rating - many.rating) / (0.5 * 2)
        from {NOISE.format("many", 0.5, "null", "null")} as noisy
        join many using (user_id)
        order by user_id
        """,
    )
    n = len(drawn)
    assert n == 100_000
    # Five standard errors and more.
    assert abs(drawn.mean()) < 0.02
    assert drawn.std() == pytest.approx(1, abs=0.015)
    assert abs((drawn**3).mean()) < 0.05
    assert (drawn**4).mean() == pytest.approx(3, abs=0.2)
    for limit, share in ((0.5, 0.3829), (1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert (abs(drawn) < limit).mean() == pytest.approx(share, abs=0.01)
    # Each row has a draw of its own.
    assert len(set(drawn)) > 0.99 * n
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02


def test_each_item_has_noise_of_its_own_spread(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        create or replace table two as
        select i as user_id, j as item_id, 3 + (i % 2 - 0.5) * 2 * spread as rating
        from range(20000) as t (i), (values (1, 1.0), (2, 0.1)) as s (j, spread)
    """)
    for item, spread in ((1, 1.0), (2, 0.1)):
        drawn = numbers(
            con,
            f"""
            select noisy.rating - two.rating
            from {NOISE.format("two", 3, "null", "null")} as noisy join two using (user_id, item_id)
            where item_id = {item}
            """,
        )
        assert drawn.std() == pytest.approx(3 * spread, rel=0.04)


def test_an_item_that_all_rated_the_same_stays(con: duckdb.DuckDBPyConnection) -> None:
    constant = [(user, "a", 3.7) for user in range(9)] + [(0, "b", 1.1)]
    ratings(con, constant)
    assert sorted(rows(con, f"from {NOISE.format('ratings', 9, 'null', 'null')}")) == sorted(constant)


@pytest.mark.parametrize(("low", "high"), [(1, 5), (1, "null"), ("null", 5)])
def test_clipped_where_there_are_bounds(many: duckdb.DuckDBPyConnection, low: object, high: object) -> None:
    drawn = numbers(many, f"select rating from {NOISE.format('many', 4, low, high)}")
    assert (drawn.min() == 1) == (low == 1)
    assert (drawn.max() == 5) == (high == 5)
    assert len(drawn) == 100_000


def test_one_draw_of_a_cell_is_one_however_often_it_is_named(many: duckdb.DuckDBPyConnection) -> None:
    noise = NOISE.format("many", 1, "null", "null")
    drawn = numbers(many, f"select rating from {noise} where rating > 4")
    assert len(drawn) > 10_000
    assert drawn.min() > 4
    assert rows(many, f"select count(*) from (select rating as a, rating as b from {noise}) where a <> b") == [(0,)]


def test_each_reading_draws_anew(many: duckdb.DuckDBPyConnection) -> None:
    query = f"select rating from {NOISE.format('many', 1, 'null', 'null')} where user_id < 100 order by user_id"
    assert not np.array_equal(numbers(many, query), numbers(many, query))


def test_noise_leaves_out_cells_without_a_rating(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, [*SOME, (3, "a", None), (3, "c", None)])
    assert sorted(rows(con, f"from {NOISE.format('ratings', 0, 1, 5)}"))[0] == (0, "a", 1.0)
    assert len(rows(con, f"from {NOISE.format('ratings', 1, 1, 5)}")) == len(SOME)


def test_noise_on_nothing_is_nothing(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, [])
    assert rows(con, f"from {NOISE.format('ratings', 1, 1, 5)}") == []


@pytest.mark.parametrize("sigma", ["-1", "-1e-9", "null", "'nan'::double", "'infinity'::double"])
def test_sigma_is_a_number_of_at_least_0(con: duckdb.DuckDBPyConnection, sigma: str) -> None:
    ratings(con, SOME)
    with pytest.raises(duckdb.InvalidInputException, match="p_sigma is a number of at least 0"):
        rows(con, f"from {NOISE.format('ratings', sigma, 1, 5)}")


def test_bounds_are_in_order(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, SOME)
    with pytest.raises(duckdb.InvalidInputException, match="p_min is above p_max"):
        rows(con, f"from {NOISE.format('ratings', 1, 5, 1)}")


@pytest.mark.parametrize("name", ["cells", "noise", "spreads", "ratings"])
def test_the_relation_may_have_any_name(con: duckdb.DuckDBPyConnection, name: str) -> None:
    ratings(con, SOME)
    query = f"with {name} as (from main.ratings) from {NOISE.format(name, 0, 1, 5)}"
    assert len(rows(con, query)) == len(SOME)


# Microaggregation -----------------------------------------------------------------------------------------------

MEANS = "kg_microaggregate('cells', 'ratings', 'groups', {})"
EVERY_CELL = """
    create or replace table cells as
    select group_id, item_id
    from (select distinct group_id from groups), (select distinct item_id from ratings)
"""


def microaggregated(con: duckdb.DuckDBPyConnection, fill: float = 3) -> dict[tuple[int, str], float]:
    found = rows(con, f"select group_id, item_id, rating from {MEANS.format(fill)}")
    assert len({row[:2] for row in found}) == len(found)
    return {(group, item): rating for group, item, rating in found}


def test_means_over_ratings_and_fills_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, [(0, "a", 5), (1, "a", 2), (3, "a", 1), (0, "b", None), (2, "c", 5), (9, "c", 1)])
    table(con, "groups", "user_id bigint, group_id bigint", [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)])
    table(
        con,
        "cells",
        "group_id bigint, item_id varchar",
        [(1, "a"), (1, "b"), (2, "a"), (2, "c"), (1, "unknown"), (7, "a")],
    )
    # Group 1 has three members. User 9 and group 7 are nobody.
    assert microaggregated(con) == pytest.approx(
        {(1, "a"): (5 + 2 + 3) / 3, (1, "b"): 3, (2, "a"): (1 + 3) / 2, (2, "c"): 3, (1, "unknown"): 3}
    )
    assert microaggregated(con, 0)[2, "a"] == 0.5
    assert [row[:2] for row in rows(con, f"describe from {MEANS.format(3)}")] == [
        ("group_id", "BIGINT"),
        ("item_id", "VARCHAR"),
        ("rating", "DOUBLE"),
    ]


def standardised_means(filled: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The longer way: standardise each column, take the means of the groups, undo it. One row per group."""
    centre, spread = filled.mean(axis=0), filled.std(axis=0)
    scores = np.divide(filled - centre, spread, out=np.zeros_like(filled), where=spread > 0)
    means = np.stack([scores[groups == group].mean(axis=0) for group in range(groups.max() + 1)])
    return means * spread + centre


@settings(max_examples=25, deadline=None)
@given(
    rated=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 3)), min_size=1),
    groups=st.lists(st.integers(0, 2), min_size=8, max_size=8).map(sorted),
    fill=st.sampled_from([0.0, 3.0, 5.5]),
    seed=st.integers(0, 99),
)
def test_means_are_those_of_standardised_ratings(
    con: duckdb.DuckDBPyConnection, rated: set[tuple[int, int]], groups: list[int], fill: float, seed: int
) -> None:
    names, numbered = np.unique(groups, return_inverse=True)
    filled = np.full((8, 4), fill)
    given_ratings = np.random.default_rng(seed).integers(1, 11, (8, 4)) / 2
    for cell in rated:
        filled[cell] = given_ratings[cell]
    ratings(con, [(user, str(item), given_ratings[user, item]) for user, item in sorted(rated)])
    table(con, "groups", "user_id bigint, group_id bigint", list(enumerate(groups)))
    con.execute(EVERY_CELL)
    expected = standardised_means(filled, numbered)
    items = {item for _, item in rated}
    assert microaggregated(con, fill) == pytest.approx(
        {(int(name), str(item)): expected[row, item] for row, name in enumerate(names) for item in items}
    )


@pytest.mark.parametrize("fill", ["null", "'nan'::double", "'infinity'::double"])
def test_the_fill_is_a_number(con: duckdb.DuckDBPyConnection, fill: str) -> None:
    ratings(con, SOME)
    table(con, "groups", "user_id bigint, group_id bigint", [(0, 1), (1, 1), (2, 1)])
    con.execute(EVERY_CELL)
    with pytest.raises(duckdb.InvalidInputException, match="p_fill is a number"):
        rows(con, f"from {MEANS.format(fill)}")


def test_means_of_nothing(con: duckdb.DuckDBPyConnection) -> None:
    ratings(con, [])
    table(con, "groups", "user_id bigint, group_id bigint", [(0, 1), (1, 1)])
    con.execute(EVERY_CELL)
    assert microaggregated(con) == {}
    table(con, "cells", "group_id bigint, item_id varchar", [(1, "a")])
    assert microaggregated(con, 2.5) == {(1, "a"): 2.5}


@pytest.mark.parametrize("name", ["sizes", "rated", "filling", "members"])
def test_relations_of_means_may_have_any_name(con: duckdb.DuckDBPyConnection, name: str) -> None:
    ratings(con, SOME)
    table(con, "groups", "user_id bigint, group_id bigint", [(0, 1), (1, 1), (2, 1)])
    con.execute(EVERY_CELL)
    query = f"with {name} as (from ratings) from kg_microaggregate('cells', '{name}', 'groups', 3)"
    assert sorted(rows(con, query)) == [(1, "a", 3.5), (1, "b", pytest.approx((0.1 + 0.3 + 3) / 3))]


# MovieLens 100K -------------------------------------------------------------------------------------------------


@pytest.fixture
def movielens(con: duckdb.DuckDBPyConnection, data_dir: Path) -> np.ndarray:
    """The ratings as a table, all cells filled with 3 as another, and the latter as a matrix."""
    con.execute(f"""
        create or replace table ratings as
        select column0 as user_id, column1 as item_id, cast(column2 as double) as rating
        from read_csv('{data_dir / "ml-100k" / "u.data"}', delim = '\t', header = false)
    """)
    con.execute("""
        create or replace table filled as
        select users.user_id, items.item_id, coalesce(ratings.rating, 3) as rating
        from (select distinct user_id from ratings) as users
        cross join (select distinct item_id from ratings) as items
        left join ratings on ratings.user_id = users.user_id and ratings.item_id = items.item_id
    """)
    return matrix(con, "filled")


def matrix(con: duckdb.DuckDBPyConnection, relation: str) -> np.ndarray:
    return (
        con.execute(f"select rating from {relation} order by user_id, item_id").fetchnumpy()["rating"].reshape(943, -1)
    )


def test_noise_costs_its_variance_on_movielens(con: duckdb.DuckDBPyConnection, movielens: np.ndarray) -> None:
    squares = ((movielens - movielens.mean(axis=0)) ** 2).sum()
    assert squares == pytest.approx(142_695.6, abs=0.1)
    noisy = matrix(con, NOISE.format("filled", 2.5, "null", "null"))
    # 891 thousand: what groups of two cost, 64.9 thousand, times 14.
    assert ((noisy - movielens) ** 2).sum() == pytest.approx(2.5**2 * squares, rel=0.01)


def test_means_are_those_of_standardised_movielens(con: duckdb.DuckDBPyConnection, movielens: np.ndarray) -> None:
    con.execute("""
        create or replace table groups as
        select user_id, row_number() over (order by user_id) // 6 as group_id
        from (select distinct user_id from ratings)
    """)
    con.execute(EVERY_CELL)
    found = con.execute(f"select rating from {MEANS.format(3)} order by group_id, item_id").fetchnumpy()["rating"]
    expected = standardised_means(movielens, np.arange(1, 944) // 6)
    assert np.abs(found.reshape(expected.shape) - expected).max() < 1e-9
