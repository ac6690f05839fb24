"""kg_nearest_groups: by hand, and against the definition."""

import duckdb
import numpy as np
import pytest
from dbt_macros import create_macros
from hypothesis import given
from hypothesis import strategies as st

Cells = dict[tuple[int, int], float]


def nearest(ratings: Cells, shown: Cells) -> list[tuple[int, int, int, float]]:
    with duckdb.connect() as con:
        create_macros(con, "kg_nearest_groups")
        for name, first, cells in (("ratings", "user_id", ratings), ("shown", "group_id", shown)):
            con.execute(f"create table {name} ({first} bigint, item_id bigint, rating double)")
            if cells:
                con.executemany(f"insert into {name} values (?, ?, ?)", [[*key, value] for key, value in cells.items()])
        return con.sql("from kg_nearest_groups('ratings', 'shown') order by user_id").fetchall()


SHOWN: Cells = {(10, 1): 4.0, (10, 2): 2.0, (20, 1): 1.0, (20, 2): 5.0, (30, 1): 3.0}


def test_by_hand() -> None:
    """User 1 rated as group 10 does but for one point; user 2 as group 20; user 3 nothing that is shown."""
    ratings = {(1, 1): 4.0, (1, 2): 3.0, (2, 1): 1.0, (3, 9): 5.0}
    assert nearest(ratings, SHOWN) == [(1, 10, 2, pytest.approx(np.sqrt(0.5), abs=1e-6)), (2, 20, 1, 0.0)]


def test_what_a_group_does_not_show_counts_as_the_mean_of_the_others() -> None:
    """Item 2: squares 1 and 4, so that group 30 has 2.5 there and 1 for item 1: more than group 10's 0 and 1."""
    assert nearest({(1, 1): 4.0, (1, 2): 3.0}, SHOWN)[0][1] == 10
    # Its own item fits group 30 so well that the other one does not count.
    assert nearest({(1, 1): 3.0, (1, 2): 3.5}, SHOWN) == [(1, 30, 2, pytest.approx(np.sqrt(2.25 / 2), abs=1e-6))]


def test_of_equally_near_groups_the_smallest_id() -> None:
    assert nearest({(1, 1): 2.0}, {(7, 1): 3.0, (5, 1): 1.0, (6, 1): 3.0}) == [(1, 5, 1, 1.0)]


def test_nothing_shown_and_nobody_asked() -> None:
    assert nearest({}, SHOWN) == []
    assert nearest({(1, 1): 3.0}, {}) == []


_KEYS = st.tuples(st.integers(1, 4), st.integers(1, 5))
_CELLS = st.dictionaries(_KEYS, st.integers(0, 10).map(lambda n: n / 2), max_size=15)


@given(_CELLS, _CELLS)
def test_it_is_the_definition(ratings: Cells, shown: Cells) -> None:
    groups = sorted({group for group, _ in shown})
    expected = []
    for user in sorted({user for user, _ in ratings}):
        rated = {item: rating for (one, item), rating in ratings.items() if one == user}
        squares = {
            item: {group: (rating - shown[group, item]) ** 2 for group in groups if (group, item) in shown}
            for item, rating in rated.items()
        }
        squares = {item: found for item, found in squares.items() if found}
        fit = {
            group: sum(found.get(group, np.mean(list(found.values()))) for found in squares.values())
            for group in groups
            if any(group in found for found in squares.values())
        }
        if fit:
            best = min(fit, key=lambda group: (round(fit[group], 6), group))
            expected.append((user, best, len(squares), pytest.approx(np.sqrt(fit[best] / len(squares)), abs=2e-6)))
    assert nearest(ratings, shown) == expected
