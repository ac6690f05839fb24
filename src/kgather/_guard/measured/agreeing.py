"""Looks for entries of a policy that agree with the data so well that they may have been read from them.

What a policy says is public, and no budget covers it. Whether an entry was read from the data cannot be seen: the ends
of a scale are those of the data, too. So what agrees is told, with what speaks for it, and its owner decides.

It reads rows of people and tells true figures: for the owner of the data.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.guessed import Limits
from kgather._guard.plan import NUMERIC
from kgather._guard.proposed_values import having, reached, usual_rows
from kgather._guard.render import identifier
from kgather._sql_text import literal


@dataclass(frozen=True)
class Agreeing:
    """An entry of the policy that agrees with the data. why: how, as a clause. instead: what may stand there without
    the data being looked at, as a clause."""

    entry: str
    why: str
    instead: str


def agreeing(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> list[Agreeing]:
    """The bounds, lists of values and numbers of rows a person that agree with the data. con: in which the tables
    are."""
    return [
        found
        for info in catalog.tables.values()
        if info.protected
        for part in (_bounds, _values, _rows)
        for found in part(con, info, catalog.policy.k)
    ]


def _bounds(con: duckdb.DuckDBPyConnection, info: TableInfo, k: int) -> Iterator[Agreeing]:
    columns = {name: column for name in info.policy.bounds if (column := info.column(name)) is not None}
    numbers = {name: column for name, column in columns.items() if column.kind in NUMERIC}
    proposed = reached(con, info.name, info.unit, [column.name for column in numbers.values()], k)
    for name, column in numbers.items():
        low, high = info.policy.bounds[name]
        why = [*_ends(con, info, column, low, high)]
        if _is(proposed.get(column.name), low, high):
            why.append("kgather init guard proposes both from these data")
        if why:
            yield Agreeing(
                f"tables.{info.name}.bounds: {{{name}: [{low:g}, {high:g}]}}",
                "; ".join(why),
                "two numbers that anybody's value may lie between",
            )


def _ends(con: duckdb.DuckDBPyConnection, info: TableInfo, column: Column, low: float, high: float) -> Iterator[str]:
    """Which bounds are numbers of the data."""
    number, unit = f"cast({identifier(column.name)} as double)", identifier(info.unit)
    of = f"(select {number} as n, {unit} as id from {identifier(info.name)} where {unit} is not null and isfinite(n))"
    least, most, lowest, highest = con.execute(
        f"select min(n), max(n), count(distinct id) filter (n = {low!r}), count(distinct id) filter (n = {high!r}) "
        f"from {of}"
    ).fetchall()[0]
    for bound, true, people, size in ((low, least, lowest, "smallest"), (high, most, highest, "largest")):
        if true is not None and bound == true:
            yield f"{bound:g} is the {size} number that there is, of {_people(people)}"


def _is(proposed: Limits | None, low: float, high: float) -> bool:
    return proposed is not None and (float(proposed.low), float(proposed.high)) == (low, high)


def _values(con: duckdb.DuckDBPyConnection, info: TableInfo, k: int) -> Iterator[Agreeing]:
    for name, listed in info.policy.values.items():
        column = info.column(name)
        if column is None or column.kind == "boolean":
            continue
        found = having(con, info.name, info.unit, column.name, column.kind)
        people = {str(of): number for of, number in found.items()}
        of_k = {of for of, number in people.items() if number >= k}
        policy = {str(value) for value in _as_column(con, column, listed)}
        if not policy or policy not in (of_k, {*people}):
            continue
        why = f"they are all {len(people)} values that there are"
        if policy == of_k and len(of_k) < len(people):
            why = f"they are those {len(of_k)} of {len(people)} values that {k} people or more have"
        rare = len(policy - of_k)
        if rare:
            why += f"; {rare} of them {'is' if rare == 1 else 'are'} of fewer than {k} people"
        entry = f"tables.{info.name}.values: {{{name}: [...]}}"
        yield Agreeing(entry, why, "all values that there may be, such as those of a form")


def _as_column(con: duckdb.DuckDBPyConnection, column: Column, listed: tuple[object, ...]) -> list[object]:
    """Values of a policy as those of the column."""
    type_ = "DOUBLE" if column.kind == "number" else column.type
    texts = (str(value).lower() if isinstance(value, bool) else str(value) for value in listed)
    cast = ", ".join(f"try_cast({literal(text)} as {type_})" for text in texts)
    return list(con.execute(f"select {cast}").fetchall()[0])


def _rows(con: duckdb.DuckDBPyConnection, info: TableInfo, k: int) -> Iterator[Agreeing]:
    most = info.policy.rows_per_person
    if most is None:
        return
    unit = identifier(info.unit)
    counted = f"select count(*) as n from {identifier(info.name)} where {unit} is not null group by {unit}"
    (true,) = con.execute(f"select max(n) from ({counted})").fetchall()[0]
    why = []
    if most == true:
        why.append("the person with the most rows has as many")
    if most == usual_rows(con, info.name, info.unit, k):
        why.append("kgather init guard proposes it from these data")
    if why:
        yield Agreeing(
            f"tables.{info.name}.rows_per_person: {most}", "; ".join(why), "a number that you would choose for any data"
        )


def _people(number: int) -> str:
    return "one person" if number == 1 else f"{number:,} people"
