"""Margins that are summed up in one pass are those that are summed up one by one, and those of plain SQL."""

from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds_of_people import engine_of, guarded, rows_of, seeded, silent

from kgather._guard.measured import reading as reading_module
from kgather._guard.measured import scanning
from kgather._guard.measured.coding import FINE, Bounds, Value, code_of, fine
from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import Feature
from kgather._guard.measured.repeated import is_repeated
from kgather._guard.measured.scanning import Margin, passes
from kgather._guard.plan import Bound

_TEXTS = Domain(("a", "b", "O'Hara", "Ä", ""), "VARCHAR", null=True, other=True, absent=False)
_NUMBERS = Domain(("-1", "0", "1", "2"), "INTEGER", null=True, other=True, absent=False)
_SOME = Domain(("5", "1", "100"), "INTEGER", null=True, other=True, absent=False)
_DAYS = Domain(("2024-01-01", "2024-02-01"), "DATE", null=True, other=True, absent=False)
_DOMAINS = {"t": _TEXTS, "n": _NUMBERS, "m": _SOME, "d": _DAYS}
_PEOPLE = """
select range as who,
  case range % 7 when 0 then null when 1 then 'A' when 2 then '' when 3 then 'O''Hara' when 4 then 'Ä' when 5 then 'a'
  else 'b' end as t,
  case when range % 11 = 0 then null else (range % 9 - 3)::integer end as n,
  case range % 5 when 0 then 5 when 1 then 1 when 2 then 100 when 3 then 2147483647 end::integer as m,
  case when range % 3 = 0 then date '2024-01-01' when range % 3 = 1 then date '2024-02-15' end as d,
  case range % 6 when 0 then 'nan'::double when 1 then 'inf'::double when 2 then null else range - 500.5 end as x
from range({})
"""
_POLICY = """version: 1
database: db.duckdb
k: 2
margins: true
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  people:
    privacy_unit: who
    grain: unit
    artifacts: [t, n, m, d]
    measures: [x]
    values: {t: [a, b, "O'Hara", Ä, ""], m: [5, 1, 100]}
    bounds: {n: [-1, 2], x: [-100, 100]}
principals:
  a: {}
"""


_NOT_ENOUGH = duckdb.OutOfMemoryException("not enough")


def _feature(name: str) -> Feature:
    kinds = {"t": "text", "n": "integer", "m": "integer", "d": "date", "x": "number"}
    return Feature(Bound("people", name, kinds[name]))  # type: ignore[arg-type]


def _margins() -> list[Margin]:
    argument, bounds = _feature("x"), Bounds(-100.0, 100.0)
    some = [(), *combinations(_DOMAINS, 1), *combinations(_DOMAINS, 2), tuple(_DOMAINS)]
    of = [(tuple(_feature(name) for name in names), tuple(_DOMAINS[name] for name in names)) for names in some]
    return [Margin(*one) for one in of] + [Margin(*one, argument, bounds) for one in of[:8]]


@pytest.mark.parametrize("batch", [7, 60_000])
def test_margins_together_are_those_one_by_one(tmp_path: Path, batch: int) -> None:
    guard = guarded(tmp_path, {"people": _PEOPLE.format(1_000)}, _POLICY, silent)
    margins = _margins()
    with engine_of(guard).database.reading() as reading, patch.object(reading_module, "BATCH", batch):
        reading.together(margins)
        together = [reading._together.pop(margin) for margin in margins]
        alone = [reading._people(margin) for margin in margins]
    for margin, one, other in zip(margins, together, alone, strict=True):
        assert one.shape == margin.shape
        assert np.array_equal(one, other)
        counts = one if margin.argument is None else one[..., 1]
        assert counts.sum() == (1_000 if margin.argument is None else 499)


def test_classes_are_those_that_equality_tells() -> None:
    with duckdb.connect() as con:
        con.execute(f"create table people as {_PEOPLE.format(500)}")
        for name, domain in _DOMAINS.items():
            value = Value("v", "false", _feature(name).kind)
            code = code_of(value, domain, 0)
            found = con.sql(f"select v, {code.sql} from (select {name} as v from people){code.join}").fetchall()
            assert len(found) == 500
            for of, place in found:
                listed = None if of is None else str(of)
                expected = (
                    domain.null_code
                    if listed is None
                    else domain.values.index(listed)
                    if listed in domain.values
                    else domain.other_code
                )
                assert place == expected, (name, of)


@pytest.mark.parametrize("type_", ["TINYINT", "UTINYINT", "BIGINT", "UBIGINT", "HUGEINT"])
def test_no_number_leaves_its_type(type_: str) -> None:
    """The ends of a type are among others, however near the ends of the domain are to the other end."""
    ends = {
        "TINYINT": (-128, 127),
        "UTINYINT": (0, 255),
        "BIGINT": (-(2**63), 2**63 - 1),
        "UBIGINT": (0, 2**64 - 1),
        "HUGEINT": (-(2**127), 2**127 - 1),
    }[type_]
    low = max(ends[0], -5)
    domain = Domain(tuple(str(low + at) for at in range(200)), "BIGINT", null=True, other=True, absent=False)
    code = code_of(Value("v", "false", "integer"), domain, 0)
    values = [*ends, low, min(low + 199, ends[1])]
    with duckdb.connect() as con:
        listed = ", ".join(f"('{value}'::{type_})" for value in values)
        found = con.sql(f"select v, {code.sql} from (values {listed}, (null::{type_})) as t(v)").fetchall()
    for value, place in found:
        inside = value is not None and low <= value < low + 200
        assert place == (domain.null_code if value is None else value - low if inside else domain.other_code)


@given(
    value=st.floats(allow_nan=True, allow_infinity=True),
    ends=st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(lambda of: of[0] < of[1]),
)
@settings(max_examples=60, deadline=None)
def test_a_distance_is_never_more_than_half_the_span(value: float, ends: tuple[float, float]) -> None:
    sql = fine(Value("v", "false", "number"), Bounds(*ends))
    with duckdb.connect() as con:
        (found,) = con.execute(f"select {sql} from (select ?::double as v)", [value]).fetchone()  # type: ignore[misc]
    assert abs(found) <= FINE


def test_passes_hold_so_many_columns_and_cells() -> None:
    domain = Domain(tuple(str(at) for at in range(98)), "INTEGER", null=True, other=True, absent=False)
    features = [Feature(Bound("people", f"c{at}", "integer")) for at in range(40)]
    margins = [Margin((one, other), (domain, domain)) for one, other in combinations(features, 2)]
    found = list(passes(margins))
    assert [margin for one in found for margin in one.margins] == margins
    assert len(found) < len(margins)
    for one in found:
        assert len(one.columns) <= scanning._COLUMNS
        assert sum(margin.cells for margin in one.margins) <= scanning._CELLS


def test_grouping_sets_are_measured_in_one_pass(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": _PEOPLE.format(2_000)}, _POLICY, seeded(1))
    rows_of(guard, "SELECT n, COUNT(*) AS c FROM people GROUP BY n")
    scans = []
    summed = reading_module.summed

    def counted(of: scanning.Pass, batches: object) -> list[np.ndarray]:
        scans.append(len(of.margins))
        return summed(of, batches)  # type: ignore[arg-type]

    with patch.object(reading_module, "summed", counted):
        rows_of(
            guard, "SELECT t, n, m, AVG(x) AS a, COUNT(*) AS c FROM people GROUP BY GROUPING SETS ((t), (t, n), (m))"
        )
    assert scans == [6]  # counts of t, of t and n, of m; sums by t, by n, by m
    before = len(engine_of(guard).ledger.measurements())
    rows_of(guard, "SELECT t, n, m, AVG(x) AS a, COUNT(*) AS c FROM people GROUP BY GROUPING SETS ((t), (t, n), (m))")
    assert len(engine_of(guard).ledger.measurements()) == before


# Who has several rows


@pytest.mark.parametrize("rows", [0, 1, 2, 1_000])
@pytest.mark.parametrize(
    "form", ["{}", "{} * 1000003", "'p' || {}", "({} / 4.0)", "md5({}::varchar)::uuid", "-{}::hugeint"]
)
def test_somebody_with_two_rows_is_found(rows: int, form: str) -> None:
    with duckdb.connect() as con:
        con.execute(f"create table people as select {form.format('range')} as who from range({rows})")
        assert not is_repeated(con, "people", "who")
        if rows:
            con.execute(f"insert into people select who from people limit 1 offset {rows // 2}")
            assert is_repeated(con, "people", "who")


def test_many_ids_are_looked_at_in_parts() -> None:
    with duckdb.connect() as con, patch("kgather._guard.measured.repeated._SORTED", 100):
        con.execute("create table people as select 'p' || range as who from range(5000)")
        assert not is_repeated(con, "people", "who")
        con.execute("insert into people values ('p4321')")
        assert is_repeated(con, "people", "who")


def test_equal_hashes_of_other_ids_are_no_repetition() -> None:
    with duckdb.connect() as con:
        con.execute("create macro hash(of) as cast(0 as ubigint)")
        con.execute("create table people as select 'p' || range as who from range(50)")
        assert not is_repeated(con, "people", "who")
        con.execute("insert into people values ('p7')")
        assert is_repeated(con, "people", "who")


def test_values_that_do_not_fit_into_memory_are_counted_in_parts(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": _PEOPLE.format(1_000)}, _POLICY, silent)
    with engine_of(guard).database.reading() as reading:
        whole = reading.values(None, _feature("t"), 1.0)
        in_order, calls = reading._in_order, []

        def first_fails(values: str) -> object:
            calls.append(values)
            if len(calls) == 1:
                raise _NOT_ENOUGH
            return in_order(values)

        with patch.object(reading, "_in_order", first_fails):
            parts = reading.values(None, _feature("t"), 1.0)
    assert len(calls) == 2
    assert parts.values == whole.values
    assert parts.type == whole.type
    assert np.array_equal(parts.counts, whole.counts)


def test_a_measurement_that_takes_more_than_the_policys_memory_is_finished(tmp_path: Path) -> None:
    policy = _POLICY + "limits: {memory: 30MB}\n"
    tables = {
        "people": "select range as who, 'a' as t, 1 as n, 5 as m, date '2024-01-01' as d, 1.0 as x from range(30000)"
    }
    guard = guarded(tmp_path, tables, policy, silent)
    told = []
    open_ = type(engine_of(guard).database).open

    def noted(self: object, memory: str | None = None) -> object:
        told.append(memory)
        return open_(self, memory)  # type: ignore[arg-type]

    with (
        patch.object(type(engine_of(guard).database), "open", noted),
        patch.object(reading_module.Reading, "together", _fails_once()),
    ):
        (row,) = rows_of(guard, "SELECT n, COUNT(*) AS c FROM people GROUP BY n")
    assert row["c"] == 30_000
    assert told == ["18000000B", None]


def _fails_once() -> object:
    together, failed = reading_module.Reading.together, []

    def failing(self: reading_module.Reading, margins: object) -> None:
        if not failed:
            failed.append(True)
            raise _NOT_ENOUGH
        together(self, margins)  # type: ignore[arg-type]

    return failing
