"""What a question means for each row, by codes of values, is what the engine says of the row itself."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._guard import outcomes
from kgather._guard.outcomes import Outcome, Outcomes, look_up
from kgather._guard.plan import TRUE, Bound, Exists, Expr, Literal, Op, PerUnit, Question, Reference, Universe
from kgather._guard.render import expression, relation

UNITS = Universe("unit", None, (Reference("people"),))
ROWS = Universe("rows", "bought", (Reference("people"),))
N, M = 60, 150


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """People, five of whom have no row in `people`, and what they bought."""
    random = np.random.default_rng(4)
    with duckdb.connect() as made:
        made.execute(f"create table kg_units as select range + 100 as id, range as code from range({N})")
        made.execute("create table people (person bigint, n integer, x double, word varchar, day date, yes boolean)")
        for person in range(N - 5):
            n, x, word = (int(random.integers(9)) for _ in range(3))
            made.execute(
                "insert into people values (?, ?, ?, ?, ?, ?)",
                [
                    person + 100,
                    None if n == 8 else n - 3,
                    [None, float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, 1e308, -2.0][x],
                    None if word > 6 else "abcdefg"[word],
                    None if n == 0 else f"2024-0{1 + n}-11",
                    [True, False, None][word % 3],
                ],
            )
        made.execute("create table bought (person bigint, kg_row bigint, what integer, price double)")
        for row, person in enumerate(np.sort(random.integers(0, N, M)).tolist()):
            price = None if row % 7 == 0 else float(random.integers(1, 4))
            made.execute("insert into bought values (?, ?, ?, ?)", [person + 100, row, int(random.integers(5)), price])
        yield made


def outcomes_of(con: duckdb.DuckDBPyConnection) -> Outcomes:
    return Outcomes(
        con,
        lambda _: "person",
        lambda universe: "kg_unit.code" if universe.kind == "unit" else "bought.kg_row",
        lambda universe: N if universe.kind == "unit" else M,
    )


def by_row(con: duckdb.DuckDBPyConnection, question: Question) -> list[tuple[object, ...] | int]:
    """The engine's own word: 0 or 1 where a condition is false or unknown, otherwise the keys."""
    row = "kg_unit.code" if question.universe.kind == "unit" else "bought.kg_row"
    condition = expression(question.condition, lambda _: "person")
    keys = "".join(f", {expression(key, lambda _: 'person')}" for key in question.keys)
    found: list[tuple[object, ...] | int] = [0] * (N if question.universe.kind == "unit" else M)
    for at, truth, *values in con.execute(
        f"select {row}, {condition}{keys} {relation(question.universe, lambda _: 'person')}"
    ).fetchall():
        found[at] = 1 if truth is None else named(values) if truth else 0
    return found


def named(values: Iterable[object]) -> tuple[str, ...]:
    """Keys as they are compared: not a number is one value, and zero has no sign."""
    return tuple(repr(value + 0.0 if isinstance(value, float) else value) for value in values)


def told(found: Outcome) -> list[tuple[object, ...] | int]:
    keys = [named(own) for own in found.keys]
    return [int(one) if one < 2 else keys[one - 2] for one in found.outcome.tolist()]


COLUMNS = {
    "n": Bound("people", "n", "integer"),
    "x": Bound("people", "x", "number"),
    "word": Bound("people", "word", "text"),
    "day": Bound("people", "day", "date"),
    "yes": Bound("people", "yes", "boolean"),
}
WHAT, PRICE = Bound("bought", "what", "integer"), Bound("bought", "price", "number")


def number(value: float | int | None) -> Literal:
    return Literal(value, "null" if value is None else "integer" if isinstance(value, int) else "number")


numbers = st.sampled_from([number(one) for one in (-3, 0, 2, 5, 1.5, -2.0, None)])
columns = st.sampled_from([COLUMNS["n"], COLUMNS["x"]])
terms = st.one_of(
    columns,
    numbers,
    st.builds(lambda a, b, name: Op(name, (a, b), "number"), columns, numbers, st.sampled_from("+-*/")),
    st.builds(lambda a, b: Op("greatest", (a, b), "number"), columns, columns),
)
bought = st.one_of(
    st.builds(lambda a: Op("=", (WHAT, a)), numbers), st.builds(lambda a: Op("is null", (a,)), st.just(PRICE))
)


def conditions(more: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    simple = st.one_of(
        st.builds(
            lambda a, b, name: Op(name, (a, b)),
            terms,
            terms,
            st.sampled_from(["=", "<>", "<", ">=", "is not distinct"]),
        ),
        st.builds(lambda a: Op("is null", (a,)), st.sampled_from(list(COLUMNS.values()))),
        st.builds(lambda a: Op("=", (COLUMNS["word"], Literal(a, "text"))), st.sampled_from("abz")),
        st.just(COLUMNS["yes"]),
        st.just(Literal(None, "null")),
        st.just(TRUE),
        more,
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(lambda a, b: Op("and", (a, b)), inner, inner),
            st.builds(lambda a, b: Op("or", (a, b)), inner, inner),
            st.builds(lambda a: Op("not", (a,)), inner),
        ),
        max_leaves=5,
    )


of_units = conditions(
    st.one_of(
        st.builds(lambda a: Exists("bought", a), bought),
        st.builds(lambda a: Op(">=", (PerUnit("COUNT", "bought", None, a, "integer"), number(1))), bought),
    )
)
keys = st.lists(
    st.one_of(
        st.sampled_from(list(COLUMNS.values())),
        st.builds(
            lambda a, b: Op("case", (Op(">", (COLUMNS["n"], a)), Literal("high", "text"), b), "text"),
            numbers,
            st.sampled_from([Literal("low", "text"), Literal(None, "null")]),
        ),
        st.just(Op("date_trunc", (Literal("month", "text"), COLUMNS["day"]), "timestamp")),
        st.just(Op("+", (COLUMNS["n"], COLUMNS["x"]), "number")),
    ),
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(of_units, keys)
def test_units(con: duckdb.DuckDBPyConnection, condition: Expr, by: list[Expr]) -> None:
    question = Question(UNITS, condition, tuple(by))
    assert told(outcomes_of(con).of(question)) == by_row(con, question)


@settings(max_examples=100, deadline=None)
@given(conditions(bought), st.lists(st.sampled_from([WHAT, PRICE, COLUMNS["word"]]), max_size=2))
def test_rows(con: duckdb.DuckDBPyConnection, condition: Expr, by: list[Expr]) -> None:
    question = Question(ROWS, condition, tuple(by))
    assert told(outcomes_of(con).of(question)) == by_row(con, question)


def test_what_is_kept_makes_room(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "_KEPT_BYTES", 4 * N)
    made = outcomes_of(con)
    questions = [Question(UNITS, Op(">", (column, number(0)))) for column in (COLUMNS["n"], COLUMNS["x"])]
    questions.append(Question(UNITS, Op("is null", (COLUMNS["day"],)), (COLUMNS["word"], COLUMNS["yes"])))
    for question in questions * 3:
        assert told(made.of(question)) == by_row(con, question)
        assert made.used == sum(each.nbytes for each in made.kept.values()) <= 4 * N
    # Relations of values go with the codes.
    tables = {name for (name,) in con.execute("show tables").fetchall() if name.startswith("kg_values")}
    kept = {each.values for each in made.kept.values() if not isinstance(each, Outcome)} - {None}
    assert kept <= tables
    assert len(tables - kept) < len(questions) * 3


def test_more_groups_than_a_byte_counts_and_more_rows_than_a_block() -> None:
    rows = 3 * outcomes._BLOCK + 17
    with duckdb.connect() as made:
        made.execute(f"create table kg_units as select range as id, range as code from range({rows})")
        made.execute("create table people as select id as person, id % 1000 as n, (id * 7) % 100000 as x from kg_units")
        own = Outcomes(made, lambda _: "person", lambda _: "kg_unit.code", lambda _: rows)
        n, x = Bound("people", "n", "integer"), Bound("people", "x", "integer")
        found = own.of(Question(UNITS, Op("and", (Op(">=", (n, number(400))), Op("<", (x, number(50_000))))), (n,)))
        at = np.arange(rows)
        asked = (at % 1000 >= 400) & ((at * 7) % 100000 < 50_000)
        assert found.outcome.dtype == np.int32
        assert ((found.outcome >= 2) == asked).all()
        groups = np.array([key for (key,) in found.keys])
        assert (groups[found.outcome[asked] - 2] == at[asked] % 1000).all()
        one, other = (own.of(Question(UNITS, Op("<", (x, number(limit))))) for limit in (10, 99_999))
        assert (one.outcome >= 2).sum() < (other.outcome >= 2).sum() == ((at * 7) % 100000 < 99_999).sum()


def test_codes_of_all_widths_are_looked_up() -> None:
    table = np.array([5, 7, 9], dtype=np.int8)
    for kind in (np.uint8, np.uint16, np.int32):
        assert look_up(table, np.array([2, 0, 0, 1], dtype=kind)).tolist() == [9, 5, 5, 7]


def test_groups_are_numbered_by_their_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    keys = [random.integers(0, 30, 400).astype(np.int32) for _ in range(3)]
    group, first = outcomes._grouped(keys)
    monkeypatch.setattr(outcomes, "_TABLE", 64)
    again, same = outcomes._grouped(keys)
    assert (group == again).all()
    assert (first == same).all()
    assert all(a < b for a, b in pairwise(first.tolist()))
    rows = list(zip(*(key.tolist() for key in keys), strict=True))
    assert [rows[at] for at in first[group].tolist()] == rows
    assert len(set(rows)) == len(first)
    assert pa.array(group).type == pa.int32()
