"""kg_popular: which items a group shows, by hand without noise, and what the noise promises."""

import math
from collections import Counter

import duckdb
import numpy as np
import pytest
from dbt_macros import create_macros
from duck import insert
from hypothesis import given, settings
from hypothesis import strategies as st

N = 40_000  # groups of one item each


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("set threads = 1")
    create_macros(con, "kg_popular")
    # Group 10: three raters of a, two of b, one of c. Group 20: two raters of d; a null is no rating.
    con.execute("""
        create table ratings as
        select * from (values
          (1, 'a', 1.0), (2, 'a', 2.0), (3, 'a', 1.0), (1, 'b', 1.0), (2, 'b', 3.0), (3, 'c', 1.0),
          (4, 'd', 2.0), (5, 'd', 2.0), (4, 'e', null)
        ) as r (user_id, item_id, rating);
        create table groups as
        select * from (values (1, 10), (2, 10), (3, 10), (4, 20), (5, 20)) as g (user_id, group_id);
        create table items as select distinct item_id from ratings
    """)
    return con


@pytest.fixture(autouse=True)
def _seeded(con: duckdb.DuckDBPyConnection) -> None:
    """One thread and one seed for each test: the same draws each time, whatever ran before."""
    con.execute("select setseed(0.17)")


def shown(con: duckdb.DuckDBPyConnection, arguments: str, tables: str = "ratings groups items") -> set[tuple]:
    names = ", ".join(f"'{name}'" for name in tables.split())
    rows = con.execute(f"select group_id, item_id from kg_popular({names}, {arguments})").fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.mark.parametrize(
    ("popular", "of_10", "of_20"),
    [(1, "a", "d"), (2, "ab", None), (3, "abc", None), (5, "abcde", "abcde"), (99, "abcde", "abcde")],
)
def test_without_noise_the_most_rated_items_of_each_group(con, popular: int, of_10: str, of_20: str | None) -> None:
    found = shown(con, f"{popular}, 0")
    assert {item for group, item in found if group == 10} == set(of_10)
    second = {item for group, item in found if group == 20}
    assert len(second) == min(popular, 5)
    assert "d" in second
    assert of_20 is None or second == set(of_20)


def test_equal_counts_are_in_random_order(con) -> None:
    """No item comes first because of its id or of the order of rows: a, b, c and e have no rater in group 20."""
    seconds = [next(iter(shown(con, "2, 0") - {(10, "a"), (10, "b"), (20, "d")}))[1] for _ in range(300)]
    counts = [seconds.count(item) for item in "abce"]
    assert sum(counts) == 300
    assert min(counts) > 45  # of 75 expected


def test_one_person_counts_once(con) -> None:
    con.execute("create or replace table repeated as from ratings union all select 3, 'c', 5.0 from range(9)")
    assert {item for group, item in shown(con, "2, 0", "repeated groups items") if group == 10} == {"a", "b"}


@pytest.fixture(scope="module")
def alike(con) -> duckdb.DuckDBPyConnection:
    """N groups of three users: item a has `group % 3` raters, b has one, c none."""
    con.execute(f"""
        create table many_groups as select i as user_id, i // 3 as group_id from range(3 * {N}) as t (i);
        create table many_ratings as
        select user_id, 'a' as item_id, 3.0 as rating from many_groups where user_id % 3 < group_id % 3
        union all
        select user_id, 'b', 3.0 from many_groups where user_id % 3 = 0;
        create table many_items as select unnest(['a', 'b', 'c']) as item_id
    """)
    return con


def rates(con, noise: float) -> np.ndarray:
    """How often a, b and c are shown alone, float64[raters of a, item], and in how many groups."""
    found = con.execute(f"""
        select group_id % 3 as raters, item_id, count(*)
        from kg_popular('many_ratings', 'many_groups', 'many_items', 1, {noise})
        group by all
    """).fetchall()
    table = np.zeros((3, 3))
    for raters, item, count in found:
        table[raters, "abc".index(item)] = count
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("noise", [0.5, 1, 4])
def test_noise_is_that_of_laplace(alike, noise: float) -> None:
    rng = np.random.default_rng(0)
    for raters, found in enumerate(rates(alike, noise)):
        counts = np.array([raters, 1, 0])
        keys = counts + rng.laplace(scale=noise, size=(1_000_000, 3)) + rng.random((1_000_000, 3))
        expected = np.bincount(keys.argmax(axis=1), minlength=3) / 1_000_000
        assert found == pytest.approx(expected, abs=0.02)  # five standard errors of 13,333 groups


@pytest.mark.parametrize("noise", [0.5, 1, 4])
def test_one_rating_changes_the_odds_by_no_more_than_was_said(alike, noise: float) -> None:
    found = rates(alike, noise)
    bound = math.exp(1 / noise)
    errors = 5 * np.sqrt(found * (1 - found) / (N / 3))
    for fewer, more in ((0, 1), (1, 2)):
        assert (found[more] - errors[more] <= bound * (found[fewer] + errors[fewer])).all()
        assert (found[fewer] - errors[fewer] <= bound * (found[more] + errors[more])).all()
    # and an item with more raters is shown more
    assert found[0, 0] < found[1, 0] < found[2, 0]


def test_draws_are_of_their_own(con) -> None:
    """Each group draws anew, and so does each reading."""
    con.execute("""
        create table twin_groups as select i as user_id, i as group_id from range(400) as t (i);
        create table twin_ratings as select user_id, 'a' as item_id, 3.0 as rating from twin_groups;
        create table twin_items as select i::varchar as item_id from range(50) as t (i)
    """)
    first, second = (shown(con, "5, 1", "twin_ratings twin_groups twin_items") for _ in range(2))
    by_group: dict[int, set] = {}
    for group, item in first:
        by_group.setdefault(group, set()).add(item)
    assert {len(items) for items in by_group.values()} == {5}
    assert len({frozenset(items) for items in by_group.values()}) > 390
    assert len(first & second) < 0.2 * len(first)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_on_any_ratings(con, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, 11), st.integers(0, 7))
    pairs = sorted(data.draw(st.sets(pair, min_size=1, max_size=60)))
    popular, noise = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([0, 0.3, 5]))
    con.execute("create or replace table r (user_id integer, item_id integer, rating double)")
    insert(con, "r", [(*pair, 3) for pair in pairs])
    con.execute("create or replace table g as select i as user_id, i // 4 as group_id from range(12) as t (i)")
    con.execute("create or replace table i as select distinct item_id from r")
    found = shown(con, f"{popular}, {noise}", "r g i")
    items = {item for _, item in pairs}
    raters = Counter((user // 4, item) for user, item in pairs)
    for group in range(3):
        own = {item for of, item in found if of == group}
        assert own <= items
        assert len(own) == min(popular, len(items))
        if noise == 0 and own < items:
            assert min(raters[group, item] for item in own) >= max(raters[group, item] for item in items - own)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("0, 1", "p_popular is a whole number from 1 to 999999"),
        ("1000000, 1", "p_popular is a whole number from 1 to 999999"),
        ("null, 1", "p_popular is a whole number"),
        ("1, -1", "p_noise is a number of at least 0"),
        ("1, 'nan'::double", "p_noise is a number of at least 0"),
        ("1, 'infinity'::double", "p_noise is a number of at least 0"),
        ("1, null", "p_noise is a number of at least 0"),
    ],
)
def test_refuses(con, arguments: str, told: str) -> None:
    with pytest.raises(duckdb.Error, match=told):
        shown(con, arguments)
