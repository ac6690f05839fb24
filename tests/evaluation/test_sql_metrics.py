"""The macros of metrics in SQL: the papers' examples, worked by hand, and against loops."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from dbt_macros import SQL, create_macros
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._evaluation.metrics import spearman
from kgather._settings.hierarchy import Hierarchy
from kgather.udfs.measuring import generalization_loss

Rows = list[tuple[Any, ...]]
MACROS = sorted(file.stem for file in (SQL / "metrics").glob("kg_*.sql"))
BOOKS = ["warcross", "joy_ride", "egomaniac", "pachinko", "geekerella"]
# Classes of Riyana and Natwichai's table 2, by user.
CLASSES = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 3, 9: 3, 10: 3}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        create_macros(con, *MACROS, "kg_generalize_sets", "kg_generalize_ranges")
        yield con


def fill(con: duckdb.DuckDBPyConnection, ratings: Rows = (), groups: Rows = (), cells: Rows = ()) -> None:  # type: ignore[assignment]
    tables = {
        "ratings (user_id bigint, item_id varchar, rating double)": ratings,
        "groups (user_id bigint, group_id bigint)": groups,
        "cells (group_id bigint, item_id varchar, rating double)": cells,
    }
    for table, rows in tables.items():
        con.execute(f"create or replace table {table}")
        if rows:
            places = ", ".join(["(" + ", ".join("?" * len(rows[0])) + ")"] * len(rows))
            con.execute(f"insert into {table.split()[0]} values {places}", [value for row in rows for value in row])


def row(con: duckdb.DuckDBPyConnection, call: str) -> dict[str, Any]:
    found = con.sql(f"from {call}")
    [values] = found.fetchall()
    return dict(zip(found.columns, values, strict=True))


def value(con: duckdb.DuckDBPyConnection, call: str) -> Any:
    [only] = row(con, call).values()
    return only


# The published example: ten users, five books --------------------------------------------------------------------


@pytest.fixture
def books(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    with (Path(__file__).parents[2] / "fixtures" / "recommendation_table.csv").open() as stream:
        table = list(csv.DictReader(stream))
    fill(
        con,
        [(int(user["user_id"]), book, float(user[book])) for user in table for book in BOOKS if user[book]],
        list(CLASSES.items()),
    )
    con.execute("create or replace table artifacts (item_id varchar)")
    con.executemany("insert into artifacts values (?)", [(book,) for book in BOOKS])
    con.execute("create or replace table hierarchy (level integer, low double, high double)")
    con.executemany("insert into hierarchy values (?, ?, ?)", Hierarchy.parse("halves").rows())
    return con


def test_discernibility_of_the_papers_classes_is_34(books: duckdb.DuckDBPyConnection) -> None:
    assert value(books, "kg_discernibility('groups')") == 34


def test_average_class_size_of_the_papers_classes_is_1_11(books: duckdb.DuckDBPyConnection) -> None:
    assert value(books, "kg_average_class_size('groups', 3)") == pytest.approx(10 / 9)


@pytest.mark.parametrize(
    ("table", "bounds", "loss"),
    [
        ("kg_generalize_ranges('ratings', 'groups', 'hierarchy')", '"range".low as low, "range".high as high', 0.224),
        ("kg_generalize_sets('ratings', 'groups')", 'list_min("values") as low, list_max("values") as high', 0.128),
    ],
    ids=["table 2, ranges", "table 3, sets"],
)
def test_information_loss_of_the_papers_tables(
    books: duckdb.DuckDBPyConnection, table: str, bounds: str, loss: float
) -> None:
    books.execute(f"create or replace table spans as select group_id, item_id, {bounds} from {table}")
    found = value(books, "kg_generalized_information_loss('spans', 'groups', 'artifacts', 5)")
    assert found == pytest.approx(loss, abs=1e-9)


def test_information_loss_is_the_kernels(books: duckdb.DuckDBPyConnection) -> None:
    books.execute(
        'create or replace table spans as select group_id, item_id, list_min("values") as low, '
        "list_max(\"values\") as high from kg_generalize_sets('ratings', 'groups')"
    )
    table = np.full((10, 5), np.nan)
    for user, book, rating in books.sql("from ratings").fetchall():
        table[user - 1, BOOKS.index(book)] = rating
    classes = np.array(list(CLASSES.values())) - 1
    low, high = generalization_loss.class_ranges(table, classes)
    assert value(books, "kg_generalized_information_loss('spans', 'groups', 'artifacts', 5)") == pytest.approx(
        generalization_loss.information_loss(low, high, classes, 5)
    )


# Worked by hand --------------------------------------------------------------------------------------------------


@pytest.fixture
def two_groups(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Group 1 (users 1, 2) shows a = 4 and b = 2; group 2 (user 3) shows b = 5. User 4 is in no group."""
    fill(
        con,
        [(1, "a", 5), (1, "b", 1), (2, "a", 4), (3, "b", 4), (3, "c", 3), (4, "a", 1)],
        [(1, 1), (2, 1), (3, 2)],
        [(1, "a", 4), (1, "b", 2), (2, "b", 5), (2, "a", 3)],
    )
    return con


def test_errors_of_what_is_shown(two_groups: duckdb.DuckDBPyConnection) -> None:
    # Gaps: |5 - 4|, |1 - 2|, |4 - 4|, |4 - 5|; c is not shown.
    assert row(two_groups, "kg_shown_errors('ratings', 'groups', 'cells')") == {
        "ratings": 5,
        "shown": 4,
        "mean_absolute_error": 0.75,
        "root_mean_square_error": pytest.approx(0.75**0.5),
        "sum_of_squares": 3,
    }


def test_coverage(two_groups: duckdb.DuckDBPyConnection) -> None:
    assert row(two_groups, "kg_coverage('ratings', 'groups', 'cells')") == {
        "items_shown": pytest.approx(2 / 3),
        "ratings_shown": pytest.approx(4 / 6),
        "cells_shown": pytest.approx(4 / 6),
    }


def test_entries(two_groups: duckdb.DuckDBPyConnection) -> None:
    assert row(two_groups, "kg_entries_added('ratings', 'groups', 'cells')") == {
        "entries_original": 5,
        "entries_of_groups": 4,
        "entries_repeated": 6,
        "entries_added": 1,
        "cells_added": 1,
    }


def test_popularity_has_ties_and_weights(con: duckdb.DuckDBPyConnection) -> None:
    fill(
        con,
        [(1, "a", 5), (2, "a", 5), (3, "a", 5), (1, "b", 3), (2, "c", 3), (3, "d", 1), (1, "d", 1)],
        [(1, 1), (2, 1), (3, 2)],
        [(1, "a", 5), (2, "a", 5), (1, "b", 4), (1, "c", 2), (2, "d", 1)],
    )
    # Means 5, 3, 3, 1 against 5, 4, 2, 1: ranks 4, 2.5, 2.5, 1 against 4, 3, 2, 1.
    # Counts 3, 1, 1, 2 against 3, 2, 2, 1: ranks 4, 1.5, 1.5, 3 against 4, 2.5, 2.5, 1.
    found = row(con, "kg_popularity_kept('ratings', 'groups', 'cells')")
    assert found["means"] == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert found["counts"] == pytest.approx(1.5 / 4.5)


def test_constant_counts_carry_nothing(con: duckdb.DuckDBPyConnection) -> None:
    fill(con, [(1, "a", 5), (2, "a", 5), (1, "b", 3)], [(1, 1), (2, 1)], [(1, "a", 5), (1, "b", 3)])
    found = row(con, "kg_popularity_kept('ratings', 'groups', 'cells')")
    assert found == {"means": pytest.approx(1), "counts": None}


# Against loops ---------------------------------------------------------------------------------------------------

number = st.integers(1, 5).map(float)


@given(
    ratings=st.dictionaries(st.tuples(st.integers(1, 6), st.sampled_from("abcd")), number, min_size=1),
    groups=st.dictionaries(st.integers(1, 6), st.integers(1, 3), min_size=1),
    cells=st.dictionaries(st.tuples(st.integers(1, 3), st.sampled_from("abcd")), number),
)
@settings(max_examples=60, deadline=None)
def test_macros_say_what_loops_say(
    con: duckdb.DuckDBPyConnection,
    ratings: dict[tuple[int, str], float],
    groups: dict[int, int],
    cells: dict[tuple[int, str], float],
) -> None:
    used = set(groups.values())
    cells = {place: rating for place, rating in cells.items() if place[0] in used}
    fill(
        con,
        [(*pair, rating) for pair, rating in ratings.items()],
        list(groups.items()),
        [(*pair, rating) for pair, rating in cells.items()],
    )
    sizes = {group: list(groups.values()).count(group) for group in used}
    items = {item for _, item in ratings}
    own = {pair: rating for pair, rating in ratings.items() if pair[0] in groups}
    gaps = [
        abs(rating - cells[groups[user], item]) for (user, item), rating in own.items() if (groups[user], item) in cells
    ]
    assert value(con, "kg_discernibility('groups')") == sum(size**2 for size in sizes.values())
    assert value(con, "kg_average_class_size('groups', 2)") == pytest.approx(len(groups) / len(used) / 2)
    found = row(con, "kg_shown_errors('ratings', 'groups', 'cells')")
    assert (found["ratings"], found["shown"]) == (len(own), len(gaps))
    assert found["sum_of_squares"] == (sum(gap**2 for gap in gaps) if gaps else None)
    assert found["mean_absolute_error"] == (pytest.approx(np.mean(gaps)) if gaps else None)
    assert row(con, "kg_coverage('ratings', 'groups', 'cells')") == {
        "items_shown": pytest.approx(len(items & {item for _, item in cells}) / len(items)),
        "ratings_shown": pytest.approx(len(gaps) / len(ratings)),
        "cells_shown": pytest.approx(len([item for _, item in cells if item in items]) / (len(used) * len(items))),
    }
    rated = {(groups[user], item) for user, item in own}
    repeated = sum(sizes[group] for group, _ in cells)
    assert row(con, "kg_entries_added('ratings', 'groups', 'cells')") == {
        "entries_original": len(own),
        "entries_of_groups": len(cells),
        "entries_repeated": repeated,
        "entries_added": repeated - len(own),
        "cells_added": len(set(cells) - rated),
    }
    both = sorted(items & {item for _, item in cells})
    before = [[rating for (_, item), rating in ratings.items() if item == each] for each in both]
    after = [[(sizes[group], rating) for (group, item), rating in cells.items() if item == each] for each in both]
    means = spearman(
        np.round([np.mean(each) for each in before], 6),
        np.round([sum(size * rating for size, rating in each) / sum(size for size, _ in each) for each in after], 6),
    )
    counts = spearman(
        np.array([len(each) for each in before]), np.array([sum(size for size, _ in each) for each in after])
    )
    found = row(con, "kg_popularity_kept('ratings', 'groups', 'cells')")
    assert found["means"] == (None if np.isnan(means) else pytest.approx(means))
    assert found["counts"] == (None if np.isnan(counts) else pytest.approx(counts))


# Degenerate input ------------------------------------------------------------------------------------------------


def test_nothing_gives_nothing(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    assert value(con, "kg_discernibility('groups')") == 0
    assert value(con, "kg_average_class_size('groups', 2)") is None
    assert row(con, "kg_shown_errors('ratings', 'groups', 'cells')")["mean_absolute_error"] is None
    assert set(row(con, "kg_coverage('ratings', 'groups', 'cells')").values()) == {None}
    assert row(con, "kg_entries_added('ratings', 'groups', 'cells')")["entries_repeated"] == 0
    assert set(row(con, "kg_popularity_kept('ratings', 'groups', 'cells')").values()) == {None}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("kg_average_class_size('groups', 0)", "p_k is a number of at least 1, not 0"),
        ("kg_average_class_size('groups', null)", "p_k is a number of at least 1, not null"),
        ("kg_generalized_information_loss('cells', 'groups', 'cells', 0)", "p_width is a number above 0, not 0"),
        ("kg_generalized_information_loss('cells', 'groups', 'cells', 'nan')", "p_width is a number above 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(two_groups: duckdb.DuckDBPyConnection, call: str, told: str) -> None:
    two_groups.execute("create or replace table cells (group_id bigint, item_id varchar, low double, high double)")
    with pytest.raises(duckdb.Error, match=told):
        two_groups.sql(f"from {call}").fetchall()


def test_class_sizes_do_not_overflow(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create or replace table many as select 1 as group_id from range(100_000)")
    assert value(con, "kg_discernibility('many')") == 1e10
