"""Hierarchies of ranges: as they are checked, by themselves and as a setting, and as SQL reads them."""

from typing import Any

import duckdb
import pytest
from dbt_macros import load_macros
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather._settings.hierarchy import Hierarchy, binary, domain_of
from kgather._settings.project import ProjectSettings
from kgather._settings.validation import validated

FILES = ("generalize/hierarchy.sql",)
HALVES = [[[0, 2], [3, 5]], [[0, 5]]]
PAIRS = [[[0, 1], [2, 3], [4, 5]], [[0, 5]]]


def problem(hierarchy: object, scale: list[float] | None = None) -> str:
    """What is said of the setting, with the scale that is declared; nothing where all is well."""
    asked = {"k": 5, "ratings": "my_ratings", "generalize": "dgh", "hierarchy": hierarchy, "scale": scale}
    try:
        validated(ProjectSettings, asked)
    except InputError as error:
        return str(error)
    return ""


# What is right --------------------------------------------------------------------------------------------------


def test_halves_are_those_of_the_paper() -> None:
    # Riyana & Natwichai, figure 4b.
    halves = Hierarchy.parse("halves", 0, 5, 1)
    assert halves.rows() == [(1, 0, 2), (1, 3, 5), (2, 0, 5)]
    assert halves == Hierarchy.parse(HALVES, 0, 5, 1)


def test_binary_halves_the_values_of_the_scale() -> None:
    levels = Hierarchy.parse("binary", 0, 5, 1).levels
    assert levels == (((0, 1), (2, 2), (3, 4), (5, 5)), ((0, 2), (3, 5)), ((0, 5),))
    # Its upper levels are those of the paper.
    assert levels[1:] == Hierarchy.parse("halves").levels


def test_binary_on_half_stars() -> None:
    assert Hierarchy.parse("binary", 0.5, 5, 0.5).levels == (
        ((0, 0.5), (1, 1), (1.5, 2), (2.5, 2.5), (3, 3), (3.5, 4), (4.5, 4.5), (5, 5)),
        ((0, 1), (1.5, 2.5), (3, 4), (4.5, 5)),
        ((0, 2.5), (3, 5)),
        ((0, 5),),
    )


@pytest.mark.parametrize(
    ("scale", "domain"),
    [
        ((1, 5, 1), [0, 1, 2, 3, 4, 5]),
        ((0.1, 0.4, 0.1), [0, 0.1, 0.2, 0.3, 0.4]),
        ((-3, 3, 2), [-3, -1, 0, 1, 3]),
        ((1, 4, 2), [0, 1, 3, 4]),
        ((1, 3.5, 1), [0, 1, 2, 3, 3.5]),
        ((-10, 10, None), [-10, 0, 10]),
    ],
)
def test_the_domain_is_the_steps_and_0(scale: tuple[float, float, float | None], domain: list[float]) -> None:
    assert domain_of(*scale) == domain


@pytest.mark.parametrize(
    ("levels", "scale"),
    [
        (HALVES, (0, 5, 1)),
        (HALVES, (1, 5, 1)),
        # What falls between 2 and 3 takes the wider range.
        (HALVES, (0.5, 5, None)),
        (PAIRS, (1, 5, 1)),
        ([[[0, 5]]], (1, 5, 0.5)),
        ([[[4.0, 5.0], [0, 3.5]], [[0, 5]]], (0.5, 5, 0.5)),
        ([[[-10, -0.5], [0, 10]], [[-10, 10]]], (-10, 10, 0.5)),
        ((((0, 2), (3, 5)), ((0, 5),)), (1, 5, 1)),
    ],
)
def test_good_hierarchies(levels: Any, scale: tuple[float, float, float | None]) -> None:
    assert Hierarchy.parse(levels, *scale).levels[-1][0][1] == max(high for level in levels for _, high in level)
    listed = [[list(ends) for ends in level] for level in levels]
    assert problem(listed, [end for end in scale if end is not None]) == ""


@pytest.mark.parametrize("hierarchy", [None, "halves", "binary", HALVES])
def test_before_the_scale_is_known_nothing_is_wrong_with_it(hierarchy: object) -> None:
    assert problem(hierarchy) == ""
    if hierarchy is not None:
        assert Hierarchy.parse(hierarchy).levels == ((), Hierarchy.parse(HALVES).levels)[hierarchy != "binary"]


# What is wrong --------------------------------------------------------------------------------------------------

OVERLAP = "the ranges [0, 2] and [2, 5] overlap"
BAD: list[tuple[str, object, tuple[float, ...], str]] = [
    ("overlap", [[[2, 5], [0, 2]], [[0, 5]]], (), "level 1 of the hierarchy: the ranges [0, 2] and [2, 5] overlap"),
    (
        "not nested",
        [[[0, 2], [3, 5]], [[0, 3], [4, 5]], [[0, 5]]],
        (),
        "level 1 of the hierarchy: the range [3, 5] lies in no range of level 2, which has [0, 3], [4, 5]",
    ),
    (
        "widest first",
        [[[0, 5]], [[0, 2], [3, 5]]],
        (),
        "level 1 of the hierarchy: the range [0, 5] lies in no range of level 2, which has [0, 2], [3, 5]; "
        "list the finest level first",
    ),
    ("no single top", [[[0, 2], [3, 5]]], (), "level 1 of the hierarchy, the last, is one range, not [0, 2], [3, 5]"),
    (
        "a step not covered",
        [[[0, 2], [4, 5]], [[0, 5]]],
        (1, 5, 1),
        "level 1 of the hierarchy: no range covers 3; its ranges are [0, 2], [4, 5]",
    ),
    (
        "half stars in halves",
        "halves",
        (0.5, 5, 0.5),
        "level 1 of the hierarchy: no range covers 2.5; its ranges are [0, 2], [3, 5]",
    ),
    (
        "halves of a longer scale",
        "halves",
        (1, 10),
        "level 2 of the hierarchy: no range covers 10; its ranges are [0, 5]. Extend them, or use the hierarchy binary",
    ),
    (
        "0 not covered",
        [[[1, 2], [3, 5]], [[1, 5]]],
        (1, 5, 1),
        "level 1 of the hierarchy: no range covers 0 (0 stands for not rated); its ranges are [1, 2], [3, 5]",
    ),
    ("binary without a step", "binary", (1, 5), "the hierarchy binary needs a scale with a step"),
    ("an unknown name", "thirds", (), "a hierarchy is halves, binary or"),
    ("a number", 5, (), "a hierarchy is halves, binary or"),
    ("nothing", [], (), "a hierarchy is halves, binary or"),
    ("a mapping", {"1": [[0, 5]]}, (), "a hierarchy is halves, binary or"),
    ("a level of nothing", [[], [[0, 5]]], (), "level 1 of the hierarchy is a list"),
    ("a level too few", [[0, 2], [3, 5]], (), "level 1 of the hierarchy is a list"),
    ("three ends", [[[0, 2, 5]]], (), "level 1 of the hierarchy is a list"),
    ("words", [[["a", "b"]]], (), "level 1 of the hierarchy is a list"),
    ("truths", [[[False, True]]], (), "level 1 of the hierarchy is a list"),
    ("backwards", [[[5, 0]]], (), "with low not above high, not [5"),
    ("no number", [[[0, float("nan")]]], (), "not above high, not [0, nan]"),
    ("no end", [[[0, float("inf")]]], (), "not above high, not [0, inf]"),
]
# These are no hierarchies by their type, which is told before all else.
OF_ANOTHER_TYPE = {
    "an unknown name",
    "a number",
    "a mapping",
    "a level too few",
    "words",
    "truths",
    "no number",
    "no end",
}


@pytest.mark.parametrize(("name", "levels", "scale", "told"), BAD, ids=[each[0] for each in BAD])
def test_bad_hierarchies(name: str, levels: Any, scale: tuple[float, ...], told: str) -> None:
    with pytest.raises(InputError) as caught:
        Hierarchy.parse(levels, *scale)
    assert told in str(caught.value), name
    of_type = "hierarchy is halves, binary or levels of [low, high]"
    assert (of_type if name in OF_ANOTHER_TYPE else told) in problem(levels, list(scale) or None), name


def test_a_scale_that_is_wrong_itself_is_told_of_elsewhere() -> None:
    assert problem(HALVES, [5, 1]) == (
        "scale is [min, max] or [min, max, step] with min less than m"
        "ax and a step that is more than 0 and fits between them, not [5, 1]."
    )
    for scale in ((5, 1, None), (1, 1, None), (1, 5, 0), (1, 5, 9), (float("nan"), 5, None)):
        with pytest.raises(InputError, match="a scale is min, max and perhaps a step"):
            Hierarchy.parse(HALVES, *scale)


# Properties of binary, and the relation -------------------------------------------------------------------------

scales = st.builds(
    lambda low, steps, step: (low, low + steps * step, step),
    st.sampled_from([-10.0, -1.5, 0.0, 0.1, 0.5, 1.0]),
    st.integers(1, 60),
    st.sampled_from([0.1, 0.25, 0.5, 1.0, 3.0]),
)


@settings(max_examples=60, deadline=None)
@given(scale=scales)
def test_binary_keeps_all_rules(scale: tuple[float, float, float]) -> None:
    levels = [[list(each) for each in level] for level in Hierarchy.parse("binary", *scale).levels]
    assert Hierarchy.parse(levels, *scale) == Hierarchy.parse("binary", *scale)
    assert problem(levels, list(scale)) == ""
    domain = domain_of(*scale)
    assert len(levels) == (len(domain) - 1).bit_length()
    for wider, level in zip(levels[:0:-1], levels[-2::-1], strict=True):
        # Every range of two values or more is cut in two parts that differ by one value at most.
        for low, high in wider:
            inside = [sum(a <= value <= b for value in domain) for a, b in level if low <= a and b <= high]
            whole = sum(low <= value <= high for value in domain)
            assert sum(inside) == whole
            assert len(inside) == min(2, whole)
            assert max(inside) - min(inside) <= 1


def test_binary_needs_two_values() -> None:
    assert binary([0, 1]) == (((0, 1),),)
    with pytest.raises(InputError, match="needs a scale with a step"):
        binary([0])


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def relation(con: duckdb.DuckDBPyConnection, levels: object, scale: tuple[float | None, ...] = ()) -> list[tuple[Any]]:
    con.execute("create or replace table scale (scale_min double, scale_max double, scale_step double)")
    if scale:
        con.execute("insert into scale values (?, ?, ?)", scale)
    text = load_macros(*FILES).hierarchy_relation(levels, "steps_up", "scale")
    assert [row[1] for row in con.execute(f"describe select steps_up.* from {text}").fetchall()] == [
        "INTEGER",
        "DOUBLE",
        "DOUBLE",
    ]
    return con.execute(f"select steps_up.* from {text} order by level, low").fetchall()


@pytest.mark.parametrize(
    "levels", ["halves", HALVES, PAIRS, [[[-1, 0.5], [1e-05, 1e21]]]], ids=["halves", "a", "b", "c"]
)
def test_the_relation_has_the_ranges_that_are_listed(con: duckdb.DuckDBPyConnection, levels: Any) -> None:
    listed = HALVES if levels == "halves" else levels
    assert relation(con, levels) == [(number, *each) for number, level in enumerate(listed, 1) for each in level]


@settings(max_examples=25, deadline=None)
@given(scale=scales)
def test_the_relation_of_binary_is_pythons(con: duckdb.DuckDBPyConnection, scale: tuple[float, float, float]) -> None:
    assert relation(con, "binary", scale) == Hierarchy.parse("binary", *scale).rows()


def test_the_relation_of_binary_ends_where_short_floats_do(con: duckdb.DuckDBPyConnection) -> None:
    # 0.7 read as a float of 32 bits: neither it nor its neighbour of nine digits counts twice.
    low, high = 0.10000000149011612, 0.699999988079071
    assert relation(con, "binary", (low, high, 0.1)) == Hierarchy.parse("binary", low, high, 0.1).rows()
    assert relation(con, "binary", (low, high, 0.1))[-1] == (3, 0, high)


def test_binary_without_a_step_is_refused_when_it_runs(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="hierarchy: binary needs a scale with a step"):
        relation(con, "binary", (1, 5, None))
