"""What a proposal reads from the data of people: bounds, listed values, and how many rows a person has.

What is written stands in a file that analysts may learn of. So nothing in it is one person's: bounds are those that k
people reach, rounded outwards; a value is listed if k people have it.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb
import numpy as np

from kgather._guard.guessed import NUMBERS, Column, Limits, Table
from kgather._guard.plan import Kind
from kgather._guard.policy import Truncation
from kgather._guard.render import identifier

FEW = 50
"""How many values a column may have, so that they are listed."""
USUAL = 0.75
"""The part of people whose rows are counted in full. Of more, noise would hide more than what is missing does: counts
are corrected for that."""
_MOST_ROWS = 1_000_000
_STEPS = (1, 2, 5, 10)
_GAPS = 2  # whole numbers between bounds for each that occurs, from which on those that occur are listed


class _Shown(NamedTuple):
    """A column that shows what a column of another table holds."""

    table: Table
    name: str
    other: Table
    source: str


def read_values(con: duckdb.DuckDBPyConnection, tables: Sequence[Table], k: int) -> None:
    """Find bounds, values and rows a person for tables of people whose columns have their roles. `table.source` and
    `table.unit_name` say where rows are read with whom they are of."""
    for table in tables:
        _read_bounds(con, table, k)
        for column in table.columns:
            if _is_listed(table, column):
                _read_list(con, table, column, k)
        if table.grain == "rows":
            table.rows_per_person = usual_rows(con, table.source, table.unit_name, k)
    of = {f"{table.name}.{column.name}": table for table in tables for column in table.columns}
    shown = [
        _Shown(table, name, of[source], source.removeprefix(f"{of[source].name}."))
        for table in tables
        for name, source in (table.shown | table.same_as).items()
    ]
    for one in shown:
        _widen(one)
    for one in shown:
        _take_over(one)


def outward(low: float, high: float) -> Limits:
    """Round numbers beyond both: 0, or 1, 2 or 5 times a power of ten, of either sign. Those far nearer to 0 than the
    other one are 0."""
    below, above = Decimal(repr(low)), Decimal(repr(high))
    if 0 <= below < above / 10:
        below = Decimal(0)
    if below / 10 < above <= 0:
        above = Decimal(0)
    limits = Limits(_rounded(below, up=False), _rounded(above, up=True))
    if limits.low < limits.high:
        return limits
    one = limits.low
    return Limits(min(one, Decimal(0)), max(one, Decimal(0))) if one else Limits(Decimal(0), Decimal(1))


def next_step(number: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 and so on. number: above 0."""
    return int(_rounded(Decimal(number), up=True))


def _rounded(number: Decimal, *, up: bool) -> Decimal:
    if number < 0:
        return -_rounded(-number, up=not up)
    if number == 0:
        return number
    steps = [Decimal(step).scaleb(number.adjusted()) for step in _STEPS]
    return min(step for step in steps if step >= number) if up else max(step for step in steps if step <= number)


def reached(
    con: duckdb.DuckDBPyConnection, table: str, unit: str, columns: Sequence[str], k: int, *, once: bool = False
) -> dict[str, Limits]:
    """Of columns of numbers the bounds that k people reach, rounded outwards; none of those that fewer people have.
    once: each person has one row, so that rows need not be put together."""
    if not columns:
        return {}
    each, ends = [], []
    for at, column in enumerate(columns):
        number = f"cast({identifier(column)} as double)"
        there = f"filter (isfinite({number}))"
        each += [f"min({number}) {there} as low{at}", f"max({number}) {there} as high{at}"]
        ends += [f"min({number}, {k}) {there}", f"max({number}, {k}) {there}"] if once else []
        ends += [] if once else [f"min(low{at}, {k})", f"max(high{at}, {k})"]
    rows = f"from {identifier(table)} where {identifier(unit)} is not null"
    people = rows if once else f"from (select {', '.join(each)} {rows} group by {identifier(unit)})"
    found = con.execute(f"select {', '.join(ends)} {people}").fetchall()[0]
    bounds = {}
    for at, column in enumerate(columns):
        lows, highs = found[2 * at], found[2 * at + 1]
        if lows is None or len(lows) < k:
            continue
        limits = outward(min(lows[-1], highs[-1]), max(lows[-1], highs[-1]))
        if float(limits.high) - float(limits.low) < float("inf"):
            bounds[column] = limits
    return bounds


def having(
    con: duckdb.DuckDBPyConnection, table: str, unit: str, column: str, kind: Kind, *, once: bool = False
) -> dict[Any, int]:
    """How many people have each value of a column, in the order of the values; of numbers the finite ones. once: each
    person has one row."""
    name = identifier(column)
    value = f"cast({name} as double)" if kind == "number" else name
    finite = f"isfinite({value})" if kind == "number" else "true"
    return dict(
        con.execute(
            f"select {value}, count({'' if once else 'distinct '}{identifier(unit)}) from {identifier(table)}"
            f" where {name} is not null and {finite} group by 1 order by 1"
        ).fetchall()
    )


def usual_rows(con: duckdb.DuckDBPyConnection, table: str, unit: str, k: int) -> int | None:
    """How many rows of a person are counted in full, so that they are all rows of most people: a round number. None
    where there are fewer than k people."""
    people, usual = con.execute(
        f"select count(*), quantile_disc(n, {USUAL}) from (select count(*) as n from {identifier(table)}"
        f" where {identifier(unit)} is not null group by {identifier(unit)})"
    ).fetchall()[0]
    return min(next_step(usual), _MOST_ROWS) if people >= k else None


def _read_bounds(con: duckdb.DuckDBPyConnection, table: Table, k: int) -> None:
    """Bounds that k people reach. What lies beyond is cut off."""
    columns = [
        column.name
        for column in table.of_role("artifact") + table.of_role("measure")
        if column.kind in NUMBERS and not column.is_id
    ]
    table.bounds |= reached(con, table.source, table.unit_name, columns, k, once=table.grain == "unit")


def _is_listed(table: Table, column: Column) -> bool:
    """Whether the values of a column are worth listing: not where bounds say them."""
    if column.role not in ("artifact", "dimension") or column.kind not in (*NUMBERS, "text"):
        return False
    if not 0 < column.distinct <= FEW or (column.is_id and column.name == table.unique):
        return False
    limits = table.bounds.get(column.name)
    return limits is None or column.kind != "integer" or limits.high - limits.low >= _GAPS * column.distinct


def _read_list(con: duckdb.DuckDBPyConnection, table: Table, column: Column, k: int) -> None:
    """Values that k people have."""
    once = table.grain == "unit"
    found = having(con, table.source, table.unit_name, column.name, column.kind, once=once)
    enough = tuple(_short(of, column) for of, people in found.items() if people >= k)
    if enough:
        table.values[column.name] = enough
    if len(enough) < len(found):
        table.left_out.append(column.name)


def _short(value: Any, column: Column) -> Any:
    """A value as a policy has it: numbers of single precision without the digits that they get in double."""
    return float(str(np.float32(value))) if column.type == "FLOAT" else value


def _widen(one: _Shown) -> None:
    """The column that is shown has bounds and values for both."""
    own, source = one.table.bounds.get(one.name), one.other.bounds.get(one.source)
    if own is not None and source is not None:
        one.other.bounds[one.source] = Limits(min(own.low, source.low), max(own.high, source.high))
    listed = one.other.values.get(one.source)
    if listed is not None:
        both = {*listed, *one.table.values.get(one.name, ())}
        one.other.values[one.source] = tuple(sorted(both))


def _take_over(one: _Shown) -> None:
    """The column that shows another one has its bounds and values."""
    one.table.bounds.pop(one.name, None)
    one.table.values.pop(one.name, None)
    if one.source in one.other.bounds:
        one.table.bounds[one.name] = one.other.bounds[one.source]
    if one.source in one.other.values:
        one.table.values[one.name] = one.other.values[one.source]


_FINE: Sequence[Truncation] = ("day", "month", "year")
_IN_LARGE = 0.8  # of the rows, which have to be in parts of the calendar with enough people
_ROOM = 2.0  # times as many as have to be in a part so that it is shown


def read_grains(con: duckdb.DuckDBPyConnection, table: Table, people: float, rows: float) -> None:
    """Find what dates are cut to: days where most months have so many people, and rows, that they are shown; else
    months; but nothing finer than what the dates tell. What is asked by the month, or the year, is found by it, so that
    a finer cut costs nothing but that it may be asked for.
    """
    for column in table.of_role("coarsened"):
        if _of_birth(column):
            column.grain = "year"
            continue
        name, unit = identifier(column.name), identifier(table.unit_name)
        counted = "count(*)" if table.grain == "unit" else f"approx_count_distinct({unit})"
        told: dict[Truncation, int] = {}
        large: dict[Truncation, float] = {}
        for grain in _FINE:
            each = (
                f"select count(*) as n, {counted} as people from {identifier(table.source)} where isfinite({name})"
                f" group by date_trunc('{grain}', {name})"
            )
            enough = f"people >= {_ROOM * people!r} and n >= {_ROOM * rows!r}"
            told[grain], in_large, whole = con.execute(
                f"select count(*), coalesce(sum(n) filter ({enough}), 0), coalesce(sum(n), 0) from ({each})"
            ).fetchall()[0]
            large[grain] = float(in_large) / max(float(whole), 1.0)
            if large[grain] >= _IN_LARGE and not column.shown_by:
                column.shown_by = grain
        if told["day"] > told["month"] and large["month"] >= _IN_LARGE:
            column.grain = "day"
        else:
            column.grain = "month" if told["month"] > told["year"] or told["day"] > told["month"] else "year"
            column.shown_by = "month" if column.shown_by == "day" else column.shown_by


def halves(con: duckdb.DuckDBPyConnection, table: Table, column: Column, people: float, rows: float) -> Decimal | None:
    """A round number that many people have less than, and many have as much as: half, a quarter or three quarters of
    the way between the bounds. None where there is none."""
    low, high = table.bounds[column.name]
    name = f"cast({identifier(column.name)} as double)"
    many = "count(*)" if table.grain == "unit" else f"approx_count_distinct({identifier(table.unit_name)})"
    for part in (Decimal("0.5"), Decimal("0.25"), Decimal("0.75"), Decimal("0.1")):
        at = low + (high - low) * part
        sides = ", ".join(
            f"{of} filter ({name} {side} {float(at)!r})" for side in ("<", ">=") for of in ("count(*)", many)
        )
        below, below_people, above, above_people = con.execute(
            f"select {sides} from {identifier(table.source)}"
        ).fetchall()[0]
        if min(below_people, above_people) >= _ROOM * people and min(below, above) >= _ROOM * rows:
            return at
    return None


def _of_birth(column: Column) -> bool:
    return bool(column.words & {"birth", "birthday", "dob", "birthdate", "born"})
