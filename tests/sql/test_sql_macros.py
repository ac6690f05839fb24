"""Each SQL macro against values worked out by hand, then against the same thing said in plain Python."""

from collections import defaultdict
from itertools import product
from random import Random
from statistics import mean
from typing import Any

import duckdb
import pytest
from duck import insert

import kgather

# Ada and Ben are group 1, Cy, Di and Ed group 2. Ed rated nothing; of item 30 Di is the only rater.
GROUPS = [("ada", 1), ("ben", 1), ("cy", 2), ("di", 2), ("ed", 2)]
RATINGS = [
    ("ada", 10, 5.0), ("ada", 20, 1.0),
    ("ben", 10, 3.0), ("ben", 20, 2.0),
    ("cy", 10, 1.0), ("cy", 20, 4.0),
    ("di", 10, 2.0), ("di", 30, 5.0),
]  # fmt: skip
PREFERENCES = [
    ("ada", 0.5, [1.0, 0.0]),
    ("ben", -0.5, [0.0, 1.0]),
    ("cy", 0.0, [-1.0, 0.5]),
    ("di", 0.25, [0.0, 0.5]),
    ("ed", -0.25, [1.0, -1.0]),
]
ITEM_FACTORS = [(10, 3.0, [1.0, 1.0]), (20, 2.5, [-1.0, 0.5]), (30, 4.0, [0.5, 0.0])]

Rows = list[tuple[Any, ...]]


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    kgather.load(con)
    fill(con, GROUPS, RATINGS, PREFERENCES, ITEM_FACTORS)
    return con


def fill(con: duckdb.DuckDBPyConnection, groups: Rows, ratings: Rows, preferences: Rows, items: Rows) -> None:
    tables = {
        "groups (user_id varchar, group_id bigint)": groups,
        "ratings (user_id varchar, item_id bigint, rating double)": ratings,
        "preferences (user_id varchar, level float, preference float[])": preferences,
        "item_factors (item_id bigint, level float, factor float[])": items,
    }
    for table, rows in tables.items():
        con.execute(f"create or replace table {table}")
        insert(con, table.split()[0], rows)
    con.execute("create or replace table cells as select distinct group_id, item_id from groups, item_factors")
    con.execute("create or replace table vectors as from kg_group_vectors('preferences', 'groups')")


def rows(con: duckdb.DuckDBPyConnection, query: str) -> Rows:
    return con.execute(query).fetchall()


def cells(con: duckdb.DuckDBPyConnection, call: str) -> dict[tuple[int, int], float]:
    return {(group, item): rating for group, item, rating in rows(con, f"select group_id, item_id, rating from {call}")}


PREDICTED = "kg_predicted('cells', 'vectors', 'item_factors', {}, {})"
PADDED = "kg_padded('cells', 'ratings', 'groups', 'preferences', 'vectors', 'item_factors', {}, {})"


def test_pure_is_the_mean_of_those_who_rated(con: duckdb.DuckDBPyConnection) -> None:
    assert rows(con, "from kg_pure('ratings', 'groups') order by all") == [
        (1, 10, 4.0, 2),
        (1, 20, 1.5, 2),
        (2, 10, 1.5, 2),
        (2, 20, 4.0, 1),
        (2, 30, 5.0, 1),
    ]


def test_a_null_rating_rates_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into ratings values ('cy', 30, null), ('ed', 20, null)")
    assert rows(con, "from kg_pure('ratings', 'groups') where group_id = 2 and item_id >= 20 order by all") == [
        (2, 20, 4.0, 1),
        (2, 30, 5.0, 1),
    ]


def test_a_repeated_pair_does_not_pass_for_two_raters(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into ratings values ('di', 30, 3.0)")
    assert rows(con, "from kg_pure('ratings', 'groups') where item_id = 30") == [(2, 30, 4.0, 1)]


def test_homogenize_keeps_or_drops_cells_of_one_rater(con: duckdb.DuckDBPyConnection) -> None:
    of_several = [(1, 10, 4.0), (1, 20, 1.5), (2, 10, 1.5)]
    assert rows(con, "from kg_homogenize('ratings', 'groups')") == [*of_several, (2, 20, 4.0), (2, 30, 5.0)]
    assert rows(con, "from kg_homogenize('ratings', 'groups', p_single_rater := 'drop')") == of_several


@pytest.mark.parametrize("value", ["'pad'", "null"])
def test_homogenize_knows_two_ways_only(con: duckdb.DuckDBPyConnection, value: str) -> None:
    with pytest.raises(duckdb.InvalidInputException, match=f"'keep' or 'drop', not '{value.strip(chr(39))}'"):
        rows(con, f"from kg_homogenize('ratings', 'groups', p_single_rater := {value})")


def test_group_vectors_are_the_means_of_the_members(con: duckdb.DuckDBPyConnection) -> None:
    assert rows(con, "from kg_group_vectors('preferences', 'groups') order by group_id") == [
        (1, 0.0, [0.5, 0.5]),
        (2, 0.0, [0.0, 0.0]),
    ]


def test_cell_adds_levels_and_product_within_the_scale(con: duckdb.DuckDBPyConnection) -> None:
    assert rows(
        con,
        """
        select
          kg_cell(0.5, [1.0, 2.0], 3.0, [0.5, -0.25], 1, 5),
          kg_cell(0.5, [1.0, 2.0], 3.0, [5.0, 5.0], 1, 5),
          kg_cell(-9.5, [1.0, 2.0], 3.0, [0.5, -0.25], 1, 5)
        """,
    ) == [(3.5, 5.0, 1.0)]


def test_predicted_is_the_mean_of_the_predictions(con: duckdb.DuckDBPyConnection) -> None:
    # Group 1 by hand for item 10: ada 0.5 + 3 + 1 = 4.5, ben -0.5 + 3 + 1 = 3.5; mean 4.
    assert cells(con, PREDICTED.format(-99, 99)) == {
        (1, 10): 4.0, (1, 20): 2.25, (1, 30): 4.25,
        (2, 10): 3.0, (2, 20): 2.5, (2, 30): 4.0,
    }  # fmt: skip


def test_predicted_and_padded_stay_on_the_scale(con: duckdb.DuckDBPyConnection) -> None:
    assert cells(con, PREDICTED.format(2.5, 4)) == {
        (1, 10): 4.0, (1, 20): 2.5, (1, 30): 4.0,
        (2, 10): 3.0, (2, 20): 2.5, (2, 30): 4.0,
    }  # fmt: skip
    assert set(cells(con, PADDED.format(2.5, 2.5)).values()) == {2.5}


def test_padded_is_the_mean_of_rating_or_prediction(con: duckdb.DuckDBPyConnection) -> None:
    padded = cells(con, PADDED.format(-99, 99))
    # Both members of group 1 rated 10 and 20: their mean. For 30 both are predicted: 0.5 + 4 + 0.5, -0.5 + 4 + 0.
    assert padded[1, 10] == pytest.approx(4.0)
    assert padded[1, 20] == pytest.approx(1.5)
    assert padded[1, 30] == pytest.approx(4.25)
    # Item 10: cy 1, di 2, ed predicted -0.25 + 3 + 0 = 2.75. Item 30: cy 0 + 4 - 0.5, di 5, ed -0.25 + 4 + 0.5.
    assert padded[2, 10] == pytest.approx((1 + 2 + 2.75) / 3)
    assert padded[2, 20] == pytest.approx((4 + (0.25 + 2.5 + 0.25) + (-0.25 + 2.5 - 1.5)) / 3)
    assert padded[2, 30] == pytest.approx((3.5 + 5 + 4.25) / 3)
    assert len(padded) == 6


def test_expand_gives_each_pseudonym_its_groups_ratings(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table members as from (values ('x', 1), ('y', 2), ('z', 2)) as members (pseudonym, group_id)")
    con.execute("create table released (group_id bigint, item_id bigint, rating double)")
    con.execute("insert into released values (1, 10, 4.0), (2, 10, 1.5), (2, 30, 5.0)")
    assert rows(con, "from kg_expand('members', 'released') order by all") == [
        ("x", 10, 4.0),
        ("y", 10, 1.5),
        ("y", 30, 5.0),
        ("z", 10, 1.5),
        ("z", 30, 5.0),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_all_agree_with_plain_python(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = Random(seed)
    users, items, rank = [f"u{n}" for n in range(23)], list(range(9)), 4
    group = {user: number // 4 for number, user in enumerate(rng.sample(users, len(users)))}
    rated = {pair: float(rng.randint(1, 5)) for pair in product(users, items) if rng.random() < 0.3}
    level = {key: rng.uniform(-1, 1) for key in [*users, *items]}
    factor = {key: [rng.uniform(-1, 1) for _ in range(rank)] for key in [*users, *items]}
    fill(
        con,
        list(group.items()),
        [(user, item, rating) for (user, item), rating in rated.items()],
        [(user, level[user], factor[user]) for user in users],
        [(item, 3 + level[item], factor[item]) for item in items],
    )

    def prediction(user: str, item: int) -> float:
        return 3 + level[user] + level[item] + sum(a * b for a, b in zip(factor[user], factor[item], strict=True))

    members = defaultdict(list)
    for user, number in group.items():
        members[number].append(user)
    of_raters = {
        (number, item): [rated[user, item] for user in those if (user, item) in rated]
        for (number, those), item in product(members.items(), items)
    }
    pure = {cell: mean(ratings) for cell, ratings in of_raters.items() if ratings}
    predicted = {
        (number, item): mean(prediction(user, item) for user in those)
        for (number, those), item in product(members.items(), items)
    }
    padded = {
        (number, item): mean(rated.get((user, item), prediction(user, item)) for user in those)
        for (number, those), item in product(members.items(), items)
    }
    within = {cell: min(max(rating, 2.5), 3.5) for cell, rating in padded.items()}

    assert cells(con, "kg_homogenize('ratings', 'groups')") == pytest.approx(pure)
    assert {(g, i): n for g, i, _, n in rows(con, "from kg_pure('ratings', 'groups')")} == {
        cell: len(ratings) for cell, ratings in of_raters.items() if ratings
    }
    assert cells(con, PREDICTED.format(-99, 99)) == pytest.approx(predicted, abs=1e-5)
    assert cells(con, PADDED.format(-99, 99)) == pytest.approx(padded, abs=1e-5)
    assert cells(con, PADDED.format(2.5, 3.5)) == pytest.approx(within, abs=1e-5)
