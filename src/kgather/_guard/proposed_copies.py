"""Columns that repeat others: the same column twice (same_as), and a wide table that shows a long one (pivot_of).

The guard has to know of them. What differs in a few rows that are looked at first is no copy; of the rest all rows are
compared.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import duckdb

from kgather._guard.guessed import NUMBERS, Column, Table
from kgather._guard.policy import fold
from kgather._guard.proposed_people import ROW
from kgather._guard.proposed_text import scalar
from kgather._guard.render import identifier

_NOT_COPIES = ("unit", "hidden", "key", "parent")
"""Roles of columns that are never shown."""
_AT_ONCE = 200  # comparisons in one query
_ALMOST = 0.95
_SOME = 500  # people, the same ones in each table, whose values are looked at first


class _Pair(NamedTuple):
    """Columns of two tables that may be copies."""

    one: Column
    other: Column


class _Compared(NamedTuple):
    """Units that two tables have in common, and those of them for which two columns are the same."""

    common: int
    same: int


def find_repeated(con: duckdb.DuckDBPyConnection, tables: Sequence[Table], k: int) -> None:
    """Declare, or hide, what repeats something else in tables that have a unit and roles."""
    for table in tables:
        _find_pivot(con, table, tables)
    _find_copies(con, tables, k)


def _find_pivot(con: duckdb.DuckDBPyConnection, wide: Table, tables: Sequence[Table]) -> None:
    """Whether each column of a wide table has the values that a long one has under one key."""
    numbers = [c for c in wide.columns if c.role in ("artifact", "hidden", "measure") and c.kind in NUMBERS]
    longs = [table for table in tables if table.grain == "rows" and table.unique]
    if wide.grain != "unit" or len(numbers) < 2 or not longs or _is_row(wide):
        return
    prints: dict[tuple[int, int], Column] = {}
    for column in numbers:
        found = con.execute(f"select {_print(wide, column)} from {identifier(wide.name)}").fetchall()[0]
        if found[0]:
            prints[found] = column
    for long in longs:
        key = next(column for column in long.columns if column.name == long.unique)
        for value in [c for c in long.columns if c.kind in NUMBERS and c.role in ("artifact", "hidden", "measure")]:
            if value is key:
                continue
            rows = con.execute(
                f"select {identifier(key.name)}, {_print(long, value)} from {identifier(long.name)}"
                f" where {identifier(key.name)} is not null group by 1 order by 1"
            ).fetchall()
            names = {of_key: prints[(n, total)].name for of_key, n, total in rows if (n, total) in prints}
            if len(names) < 2 or len(set(names.values())) < len(names):
                continue
            key.role = value.role = "artifact"
            for column in numbers:
                if column.name in names.values():
                    column.role = "artifact"
                    wide.shown[column.name] = f"{long.name}.{value.name}"
            listed = ", ".join(f"{scalar(of_key)}: {scalar(name)}" for of_key, name in names.items())
            wide.pivot = (
                f"{{table: {scalar(long.name)}, key: {scalar(key.name)}, value: {scalar(value.name)}, "
                f"names: {{{listed}}}}}"
            )
            rest = [c.name for c in wide.of_role("artifact") if c.name not in names.values()]
            if rest:
                wide.warnings.append(
                    f"{', '.join(rest)}: no key of {long.name} has these values. If they are ratings of it, too, "
                    "bring both tables up to date and add them to names"
                )
            return


def _print(table: Table, column: Column) -> str:
    """SQL of a fingerprint of a column's values with their units: how many, and a sum of hashes."""
    assert table.unit is not None
    cell = f"cast({identifier(column.name)} as double)"
    hashed = f"hash(cast({identifier(table.unit.name)} as varchar), {cell})"
    return f"count({cell}), sum(case when {cell} is not null then cast({hashed} as hugeint) end)"


def _find_copies(con: duckdb.DuckDBPyConnection, tables: Sequence[Table], k: int) -> None:
    """Columns that have the same values under the same units, in one table or in two."""
    needed = {source for table in tables for source in table.shown.values()}
    needed |= {f"{table.name}.{name}" for table in tables for name in (*table.shown, table.unique)}
    for table in tables:
        _hide_copies(con, table, k, needed)
    looked = {table.name: _some(con, table) for table in tables if not _is_row(table)}
    for first, second in combinations([table for table in tables if table.name in looked], 2):
        if first.grain == "rows" and second.grain == "rows":
            continue
        one, other = (first, second) if first.grain == "unit" else (second, first)
        pairs = [
            _Pair(a, b)
            for a in one.columns
            for b in other.columns
            if a.role not in _NOT_COPIES and b.role not in _NOT_COPIES
            if (a.kind == b.kind or {a.kind, b.kind} <= set(NUMBERS)) and min(a.distinct, b.distinct) > 1
            if _may_repeat(looked[one.name], a, looked[other.name], b)
        ]
        for start in range(0, len(pairs), _AT_ONCE):
            some = pairs[start : start + _AT_ONCE]
            for (a, b), (common, same) in zip(some, _compared(con, one, other, some), strict=True):
                if common >= k and same == common:
                    _declare(one, a, other, b)
                elif common >= k and same >= _ALMOST * common and fold(a.name) == fold(b.name):
                    other.warnings.append(
                        f"{b.name} is almost, not wholly, {one.name}.{a.name}. If it is a copy that went out of date, "
                        "hide it: two versions of one value tell more than one"
                    )


def _hide_copies(con: duckdb.DuckDBPyConnection, table: Table, k: int, needed: set[str]) -> None:
    """Hide columns that have the value of another one in each row: a policy cannot declare them. needed: table.column
    of those that have to be shown."""
    assert table.unit is not None
    if table.unit.distinct < k:
        return
    shown = [column for column in table.columns if column.role not in _NOT_COPIES and column.distinct > 1]
    shown.sort(key=lambda column: f"{table.name}.{column.name}" not in needed)
    pairs = [_Pair(a, b) for a, b in combinations(shown, 2) if a.kind == b.kind or {a.kind, b.kind} <= set(NUMBERS)]
    pairs = _alike(con, table, pairs)
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        sums = ", ".join(f"bool_and({_cell(a)} is not distinct from {_cell(b)})" for a, b in some)
        query = f"select {sums} from {identifier(table.name)} where {identifier(table.unit.name)} is not null"
        for (a, b), same in zip(some, con.execute(query).fetchall()[0], strict=True):
            if same and a.role != "hidden" and f"{table.name}.{b.name}" not in needed:
                b.role, b.why = "hidden", f"it repeats {a.name}: each row has the same value in both"


def _compared(con: duckdb.DuckDBPyConnection, one: Table, other: Table, pairs: list[_Pair]) -> list[_Compared]:
    """How many units are in both tables, and of how many of them each pair of columns has the same value."""
    assert one.unit is not None
    assert other.unit is not None
    sums = ", ".join(f"count(*) filter ({_cell(a, 'a.')} is not distinct from {_cell(b, 'b.')})" for a, b in pairs)
    both = f"cast(a.{identifier(one.unit.name)} as varchar) = cast(b.{identifier(other.unit.name)} as varchar)"
    common, *same = con.execute(
        f"select count(*), {sums} from {identifier(one.name)} a join {identifier(other.name)} b on {both}"
    ).fetchall()[0]
    return [_Compared(common, number) for number in same]


def _cell(column: Column, of: str = "") -> str:
    """SQL of a column. What is taken for a text may be of a type of its own in the database, as a UUID is."""
    cell = f"{of}{identifier(column.name)}"
    return f"cast({cell} as varchar)" if column.kind == "text" else cell


def _declare(one: Table, a: Column, other: Table, b: Column) -> None:
    if other.grain == "rows":
        # A value of a person that stands in each of their rows may be asked for in both places; a policy cannot say so.
        other.notes.append(
            f"{b.name} repeats {one.name}.{a.name}. Asked by a join with {one.name}, that costs nothing twice; hide "
            f"{b.name} to have smaller errors"
        )
        return
    # The one that is referred to is no copy itself.
    root = one.same_as.get(a.name, f"{one.name}.{a.name}")
    if b.name in other.same_as or root.partition(".")[0] == other.name:
        return
    if b.name in _pivoted(other) and a.name in _pivoted(one):
        return
    if a.role != b.role:
        b.role = a.role
        other.warnings.append(f"{b.name} has the values of {one.name}.{a.name}, and so its role")
    other.same_as[b.name] = root


def _pivoted(table: Table) -> set[str]:
    return {column.name for column in table.of_role("artifact")} if table.pivot else set()


def _is_row(table: Table) -> bool:
    """Whether people of a table are its rows, and so in no other table."""
    return table.unit is None or table.unit.name == ROW


def _some(con: duckdb.DuckDBPyConnection, table: Table) -> dict[str, dict[str, Any]]:
    """Of some people, the same ones in each table that has them, the values of one row: column -> person -> value."""
    assert table.unit is not None
    columns = [column for column in table.columns if column.role not in ("unit", "hidden", "key", "parent")]
    unit = f"cast({identifier(table.unit.name)} as varchar)"
    cells = "".join(f", {identifier(column.name)}" for column in columns)
    rows = con.execute(
        f"select {unit}{cells} from {identifier(table.name)} where {unit} is not null order by hash({unit})"
        f" limit {_SOME}"
    ).fetchall()
    return {column.name: {row[0]: row[at] for row in rows} for at, column in enumerate(columns, start=1)}


def _may_repeat(one: dict[str, dict[str, Any]], a: Column, other: dict[str, dict[str, Any]], b: Column) -> bool:
    """Whether two columns have the same values of most people who were looked at in both tables."""
    if a.name not in one or b.name not in other:
        return True
    values, others = one[a.name], other[b.name]
    both = values.keys() & others.keys()
    left = (1 - _ALMOST) * len(both)
    for unit in both:
        left -= not _equal(values[unit], others[unit])
        if left < 0:
            return False
    return True


def _equal(one: object, other: object) -> bool:
    return bool(one == other or (one != one and other != other))


def _alike(con: duckdb.DuckDBPyConnection, table: Table, pairs: list[_Pair]) -> list[_Pair]:
    """The pairs of columns that have the same values in the first rows."""
    names = list(dict.fromkeys(column.name for pair in pairs for column in pair))
    if not names:
        return []
    listed = ", ".join(identifier(name) for name in names)
    rows = con.execute(f"select {listed} from {identifier(table.name)} limit {_SOME}").fetchall()
    values = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return [
        pair
        for pair in pairs
        if all(_equal(a, b) for a, b in zip(values[pair.one.name], values[pair.other.name], strict=True))
    ]
