"""A question over the classes of its features, against DuckDB on a row for each class."""

from itertools import product

import duckdb
import numpy as np
import pytest

from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import PRESENT, SYMBOLS, Asked, Feature
from kgather._guard.measured.grid import Scratch, TooWide, grid, is_guessed, leaves, names_another
from kgather._guard.plan import TRUE, Bound, Expr, Literal, Op

A, B = (Bound(SYMBOLS, place, "integer") for place in "01")
FEATURES = tuple(Feature(Bound("people", name, "integer")) for name in "ab")
NUMBERS = Domain(("1", "2", "3"), "BIGINT", null=True, other=False, absent=False)
OPEN = Domain(("1", "2", "3"), "BIGINT", null=True, other=True, absent=True)


def _one(value: int) -> Literal:
    return Literal(value, "integer")


def _wanted(
    condition: Expr, domains: tuple[Domain, Domain] = (NUMBERS, NUMBERS), present: tuple[int, ...] = ()
) -> np.ndarray:
    """Which combinations of classes a question asks for, bool[sizes]."""
    on = grid(Asked(None, FEATURES, condition, (), present), domains, Scratch())
    return on.wanted[np.ix_(*(axis.classes for axis in on.axes))]


LESS = Op("<", (A, B))
EQUAL = Op("=", (A, _one(2)))
CASES: dict[str, tuple[Expr, str]] = {
    "and": (Op("and", (EQUAL, Op(">", (B, _one(1))))), "a = 2 and b > 1"),
    "or": (Op("or", (EQUAL, Op(">", (B, _one(1))))), "a = 2 or b > 1"),
    "not": (Op("not", (Op("or", (EQUAL, LESS)),)), "not (a = 2 or a < b)"),
    "not null": (Op("not", (Op("is null", (A,)),)), "a is not null"),
    "is true": (Op("not", (Op("is true", (EQUAL,)),)), "(a = 2) is not true"),
    "null": (Op("or", (Literal(None, "null"), EQUAL)), "null or a = 2"),
    "columns": (Op("and", (LESS, Op("<>", (A, B)))), "a < b and a <> b"),
    "sum": (Op("=", (Op("+", (A, B), "number"), _one(4))), "a + b = 4"),
    "distinct": (Op("not", (Op("is not distinct", (A, B)),)), "a is distinct from b"),
    "coalesce": (Op(">", (Op("coalesce", (A, B), "integer"), _one(1))), "coalesce(a, b) > 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions_are_those_of_three_values(name: str) -> None:
    condition, written = CASES[name]
    values = [1, 2, 3, None]
    with duckdb.connect() as con:
        con.execute("create table cells (a bigint, b bigint)")
        con.executemany("insert into cells values (?, ?)", list(product(values, values)))
        expected = con.execute(f"select coalesce({written}, false) from cells").fetchall()
    assert _wanted(condition).ravel().tolist() == [value for (value,) in expected]


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        (EQUAL, False),
        (Op("<>", (A, _one(2))), True),
        (Op("<>", (A, Literal(None, "null"))), False),
        (Op("=", (A, Literal(None, "null"))), False),
        (Op("is null", (A,)), False),
        (Op("not", (Op("is null", (A,)),)), True),
        (Op("not", (EQUAL,)), True),
    ],
)
def test_values_that_are_none_of_the_domain(condition: Expr, other: bool) -> None:
    wanted = _wanted(condition, (OPEN, NUMBERS))
    assert OPEN.other_code is not None
    assert wanted[OPEN.other_code].tolist() == [other] * 4


def test_who_has_no_row_has_no_value_and_may_be_left_out() -> None:
    absent = OPEN.absent_code
    assert absent is not None
    there = Op(PRESENT, (A,))
    assert _wanted(Op("is null", (A,)), (OPEN, NUMBERS))[absent].all()
    assert not _wanted(there, (OPEN, NUMBERS))[absent].any()
    assert not _wanted(TRUE, (OPEN, NUMBERS), (0,))[absent].any()
    assert _wanted(TRUE, (OPEN, NUMBERS), (0,)).sum() == (OPEN.size - 1) * NUMBERS.size


def test_groups_and_their_sums() -> None:
    asked = Asked(None, FEATURES, Op("<>", (A, _one(1))), (B,))
    on = grid(asked, (OPEN, NUMBERS), Scratch())
    assert on.keys == ((1,), (2,), (3,), (None,))
    counts = np.arange(OPEN.size * NUMBERS.size, dtype=float).reshape(OPEN.size, NUMBERS.size)
    axes = on.axes
    together = axes[1].together(axes[0].together(counts, 0), 1)
    expected = counts[[1, 2, OPEN.other_code or 0]].sum(axis=0)
    assert on.summed(together).tolist() == expected.tolist()


def test_classes_that_a_question_does_not_tell_apart_are_one() -> None:
    asked = Asked(None, FEATURES, Op("<=", (A, _one(2))), ())
    on = grid(asked, (NUMBERS, NUMBERS), Scratch())
    assert on.shape == (3, 1)
    assert on.axes[0].sizes.tolist() == [1.0, 2.0, 1.0] or sorted(on.axes[0].sizes) == [1.0, 1.0, 2.0]
    assert on.axes[1].sizes.tolist() == [4.0]


def test_arguments_have_their_numbers_in_the_cells() -> None:
    asked = Asked(None, FEATURES, TRUE, (A,))
    on = grid(asked, (NUMBERS, NUMBERS), Scratch(), (B,))
    (numbers,) = on.numbers
    assert numbers[0].tolist()[:3] == [1.0, 2.0, 3.0]
    assert np.isnan(numbers[0, 3])


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    wide = Domain(tuple(str(at) for at in range(600)), "BIGINT", null=True, other=True, absent=False)
    with pytest.raises(TooWide):
        _wanted(LESS, (wide, wide))


@pytest.mark.parametrize(
    ("condition", "guessed"),
    [(EQUAL, False), (LESS, True), (Op("is null", (A,)), False), (Op("<", (A, _one(3))), True), (TRUE, True)],
)
def test_what_cannot_be_known_of_other_values(condition: Expr, guessed: bool) -> None:
    assert is_guessed(condition) is guessed


@pytest.mark.parametrize(
    ("condition", "another"),
    [
        (EQUAL, False),
        (Op("=", (A, Literal(2.0, "number"))), False),
        (Op("<>", (A, _one(7))), True),
        (Op("is not distinct", (A, _one(7))), True),
        (Op("=", (A, Literal(None, "null"))), False),
        (Op("<", (A, _one(7))), False),
    ],
)
def test_a_constant_that_is_none_of_the_values(condition: Expr, another: bool) -> None:
    assert names_another(condition, NUMBERS) is another


def test_leaves_of_a_condition() -> None:
    assert list(leaves(Op("and", (EQUAL, Op("not", (Op("or", (LESS, TRUE)),)))))) == [EQUAL, LESS, TRUE]


def test_a_text_is_never_taken_for_sql() -> None:
    strange = Domain(("it's", "a'); drop table x; --", ""), "VARCHAR", null=False, other=False, absent=False)
    text = Bound(SYMBOLS, "0", "text")
    on = grid(Asked(None, (FEATURES[0],), TRUE, (text,)), (strange,), Scratch())
    assert {keys[0] for keys in on.keys} == set(strange.values)
