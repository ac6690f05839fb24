"""Looks for columns that have the same values of the same people, in several tables or in one, and that no policy
declares.

It reads rows of people and tells true figures: for the owner of the data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import duckdb

from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.plan import NUMERIC
from kgather._guard.policy import fold
from kgather._guard.render import identifier

_ASKED = ("artifact", "measure", "dimension", "coarsened")
_AT_ONCE = 200  # comparisons in one query


@dataclass(frozen=True)
class Copy:
    """Two columns with the same values. rows: of how many rows, or people. declare: what the policy should say."""

    first: str
    second: str
    rows: int
    declare: str


def undeclared(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> list[Copy]:
    """The copies that no same_as and no pivot_of declares, among columns that may be asked for. con: in which the
    tables are."""
    tables = [info for info in catalog.tables.values() if info.protected]
    known = _Declared(catalog)
    found = [copy for info in tables for copy in _within(con, info, catalog)]
    for first, second in combinations(tables, 2):
        if first.grain == "rows" and second.grain == "rows":
            continue
        one, other = (first, second) if first.grain == "unit" else (second, first)
        found += [copy for copy in _same(con, one, other, catalog.policy.k) if not known.together(copy)]
        if other.grain == "rows":
            found += _pivoted(con, one, other, catalog)
    return found


class _Declared:
    """Which columns a policy declares to be the same."""

    def __init__(self, catalog: Catalog) -> None:
        self._of: dict[str, str] = {}
        for info in catalog.tables.values():
            for column, target in info.policy.same_as.items():
                self._join(fold(f"{info.name}.{column}"), fold(target))

    def together(self, copy: Copy) -> bool:
        return self._root(fold(copy.first)) == self._root(fold(copy.second))

    def _join(self, one: str, other: str) -> None:
        self._of[self._root(one)] = self._root(other)

    def _root(self, name: str) -> str:
        while name in self._of and self._of[name] != name:
            name = self._of[name]
        return name


def _columns(info: TableInfo) -> list[Column]:
    return [column for column in info.columns.values() if column.role in _ASKED and column.kind != "other"]


class _Equal(NamedTuple):
    """Two columns with the same value in each of so many rows."""

    one: Column
    other: Column
    rows: int


def _equal(
    con: duckdb.DuckDBPyConnection, pairs: Iterable[tuple[Column, Column]], from_: str, unit: str, k: int, other: str
) -> Iterator[_Equal]:
    """The pairs of columns that have the same values, more than one, in all rows of a FROM, which are of k people or
    more. The first column of a pair is of `a`, the second one of `other`; unit: of `a`."""
    comparable = [(a, b) for a, b in pairs if _are_alike(a, b)]
    for start in range(0, len(comparable), _AT_ONCE):
        some = comparable[start : start + _AT_ONCE]
        numbers = ", ".join(
            f"count(*) filter ({_cell('a', a)} is not distinct from {_cell(other, b)}), "
            f"count(distinct {_cell(other, b)})"
            for a, b in some
        )
        people, rows, *counts = con.execute(f"select count(distinct a.{unit}), count(*), {numbers} {from_}").fetchall()[
            0
        ]
        for (a, b), same, values in zip(some, counts[::2], counts[1::2], strict=True):
            if people >= k and same == rows and values > 1:
                yield _Equal(a, b, rows)


def _are_alike(a: Column, b: Column) -> bool:
    """Whether two columns can be compared."""
    return a.kind == b.kind or {a.kind, b.kind} <= set(NUMERIC)


def _cell(of: str, column: Column) -> str:
    """SQL of a column. What is shown as text may be of a type of its own in the database, as a UUID is."""
    cell = f"{of}.{identifier(column.name)}"
    return f"cast({cell} as varchar)" if column.kind == "text" else cell


def _same(con: duckdb.DuckDBPyConnection, one: TableInfo, other: TableInfo, k: int) -> Iterator[Copy]:
    pairs = product(_columns(one), _columns(other))
    for a, b, rows in _equal(con, pairs, _joined(one, other), identifier(one.unit), k, "b"):
        first, second = f"{one.name}.{a.name}", f"{other.name}.{b.name}"
        if other.grain == "rows":
            declare = f"tables.{other.name}.hidden: [{b.name}], and ask for {first} by a join"
        else:
            role = "" if a.role == b.role else ", and give both one role"
            declare = f"tables.{other.name}.same_as: {{{b.name}: {first}}}{role}"
        yield Copy(first, second, rows, declare)


def _within(con: duckdb.DuckDBPyConnection, info: TableInfo, catalog: Catalog) -> Iterator[Copy]:
    """Columns of one table that have the same value in each row. A policy cannot declare them: same_as is of another
    table. So one of them is to be hidden: one that no other entry needs."""
    needed, unit = _needed(info, catalog), identifier(info.unit)
    from_ = f"from {identifier(info.name)} a where a.{unit} is not null"
    for a, b, rows in _equal(con, combinations(_columns(info), 2), from_, unit, catalog.policy.k, "a"):
        kept, hidden = (b, a) if fold(b.name) in needed and fold(a.name) not in needed else (a, b)
        yield Copy(
            f"{info.name}.{kept.name}",
            f"{info.name}.{hidden.name}",
            rows,
            f"tables.{info.name}.hidden: [{hidden.name}], and ask for {info.name}.{kept.name} (same_as is for "
            "columns of other tables)",
        )


def _needed(info: TableInfo, catalog: Catalog) -> set[str]:
    """The columns of a table that other entries of the policy name."""
    needed = {catalog.unique(info) or "", *info.policy.same_as}
    if info.policy.pivot_of is not None:
        needed |= {*info.policy.pivot_of.names.values()}
    for other in catalog.tables.values():
        pivot = other.policy.pivot_of
        if pivot is not None and fold(pivot.table) == fold(info.name):
            needed |= {pivot.key, pivot.value}
        for target in other.policy.same_as.values():
            table, _, column = target.rpartition(".")
            needed |= {column} if fold(table) == fold(info.name) else set()
    for join in catalog.policy.joins:
        needed |= {side.column for side in (join.left, join.right) if fold(side.table) == fold(info.name)}
    return {fold(name) for name in needed}


def _pivoted(con: duckdb.DuckDBPyConnection, wide: TableInfo, long: TableInfo, catalog: Catalog) -> Iterator[Copy]:
    """Columns of a wide table that have the values of a long one where its key has one value."""
    unique = catalog.unique(long)
    numbers = [column for column in _columns(wide) if column.kind in NUMERIC]
    if unique is None or not numbers:
        return
    pivot = wide.policy.pivot_of
    names = pivot.names if pivot is not None and fold(pivot.table) == fold(long.name) else {}
    declared = {(str(key), fold(name)) for key, name in names.items()}
    there = con.execute(
        f"select {', '.join(f'count({identifier(column.name)})' for column in numbers)} from {identifier(wide.name)}"
    ).fetchall()[0]
    for value in _columns(long):
        if value.kind not in NUMERIC or value.name == unique:
            continue
        cell, key = f"b.{identifier(value.name)}", f"b.{identifier(unique)}"
        same = ", ".join(f"count(*) filter (a.{identifier(column.name)} = {cell})" for column in numbers)
        rows = con.execute(
            f"select {key}, count({cell}), {same} {_joined(wide, long)} group by 1 order by 1"
        ).fetchall()
        for of_key, count, *equal in rows:
            for column, number, all_of in zip(numbers, equal, there, strict=True):
                if number == count == all_of >= catalog.policy.k and (str(of_key), fold(column.name)) not in declared:
                    yield Copy(
                        f"{wide.name}.{column.name}",
                        f"{long.name}.{value.name} where {unique} is {of_key}",
                        number,
                        f"tables.{wide.name}.pivot_of: {{table: {long.name}, key: {unique}, value: {value.name}, "
                        f"names: {{{of_key}: {column.name}}}}}",
                    )


def _joined(one: TableInfo, other: TableInfo) -> str:
    units = [f"cast({of}.{identifier(info.unit)} as varchar)" for of, info in (("a", one), ("b", other))]
    return f"from {identifier(one.name)} a join {identifier(other.name)} b on {units[0]} = {units[1]}"
