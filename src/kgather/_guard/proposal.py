"""Proposes a policy for a database: guesses what each column is, hides what it cannot guess, and marks what to decide.

Guesses are made from names, types, constraints and counts. First it is found whom the database is about and which
tables hang on them, then what each column is, then what repeats, then what has to be read from the values.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from kgather._errors import InputError
from kgather._guard.catalog import Catalog, catalog_of
from kgather._guard.guessed import Table
from kgather._guard.measured.purchase import least_of_values, least_people, purchase
from kgather._guard.measured.shares import Prices, prices
from kgather._guard.planner import plan
from kgather._guard.policy import load_policy, parse_policy
from kgather._guard.proposed_copies import find_repeated
from kgather._guard.proposed_costs import Costs
from kgather._guard.proposed_examples import Examples
from kgather._guard.proposed_people import find_people, find_rows_that_belong
from kgather._guard.proposed_roles import guess_roles, look_up
from kgather._guard.proposed_schema import Database, read_database
from kgather._guard.proposed_text import policy_lines
from kgather._guard.proposed_values import read_grains, read_values
from kgather._guard.refused import Refused
from kgather._guard.render import identifier
from kgather._guard.warehouse import tables_of_folder

_ENOUGH = 2  # times the people of the smallest group that is shown, who have to be in a table to have it asked
_SOME_THINGS = 3  # films, or whatever rows are about, that have to be shown
EXAMPLES = "# Some questions to begin with."
"""How the comment begins that is followed by questions, each in a line of its own."""


class Written(NamedTuple):
    """A policy that was written. left: how many places are left to decide. buys: sentences that say what its budget
    buys for about as many people as there are."""

    left: int
    buys: tuple[str, ...]


class _Proposal(NamedTuple):
    """A policy as text. buys: as of `Written`."""

    text: str
    buys: tuple[str, ...]


def write_policy(database: Path, out: Path, *, k: int = 10, unit: str | None = None) -> Written:
    """Write a policy for a database.

    Raises InputError where the file exists, the database cannot be read, or nothing in it names people.
    """
    if out.exists():
        msg = f"{out} exists. Give another name with --out, or remove it: it may hold decisions."
        raise InputError(msg)
    made = _proposal(database, k, unit, out.resolve().parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made.text, encoding="utf-8")
    load_policy(out)
    return Written(made.text.count("# DECIDE:"), made.buys)


def propose(database: Path, *, k: int = 10, unit: str | None = None, folder: Path | None = None) -> str:
    """The text of a policy for a database, as seen from `folder`. Reads each table a few times.

    Raises InputError where the database cannot be read or nothing in it names people; unit: the column that does, as
    COLUMN or TABLE.COLUMN.
    """
    return _proposal(database, k, unit, folder).text


def _proposal(database: Path, k: int, unit: str | None, folder: Path | None) -> _Proposal:
    path = os.path.relpath(database.resolve(), folder) if folder else str(database)
    with _opened(database) as con:
        found, protected = look_at(con, k, unit, views=not database.is_dir())

        def written(costs: Costs | None) -> str:
            return "\n".join(policy_lines(path, k, found, protected, costs)) + "\n"

        catalog = catalog_of(con, parse_policy(written(None)))
        of = prices(catalog)
        costs = Costs(catalog, of)
        for table in protected:
            read_grains(con, table, _of_values(catalog, of, table), costs.least_rows(table))
        text = written(costs)
        catalog = catalog_of(con, parse_policy(text))
        text += "".join(f"{line}\n" for line in _example_lines(con, costs, protected, catalog, of))
    people = max(table.people for table in protected)
    return _Proposal(text, purchase(catalog, of, people))


def look_at(
    con: duckdb.DuckDBPyConnection, k: int, unit: str | None = None, *, views: bool = True
) -> tuple[Database, list[Table]]:
    """What a database is made of, and those of its tables that are proposed, with roles and what was read for them.
    views: whether its views are such, and not files that are read by a view."""
    found = read_database(con, views=views)
    find_people(con, found, unit)
    find_rows_that_belong(con, found)
    protected = [table for table in found.tables if table.unit is not None or table.parent is not None]
    for table in protected:
        _find_source(con, table, found)
    for table in found.tables:
        look_up(table, found)
    for table in protected:
        guess_roles(con, table, found, k)
    find_repeated(con, [table for table in protected if table.unit], k)
    read_values(con, protected, k)
    return found, protected


def _find_source(con: duckdb.DuckDBPyConnection, table: Table, database: Database) -> None:
    """Where a table's rows are read with the people whom they are of, and how many there are."""
    if table.source:
        return
    if table.unit is not None:
        table.source, table.unit_name = table.name, table.unit.name
        return
    assert table.parent is not None
    parent = database.table(table.parent.to)
    _find_source(con, parent, database)
    table.source, table.unit_name = f"kg_with_people {table.name}", "kg_person"
    on = " and ".join(f"c.{identifier(own)} = p.{identifier(to)}" for own, to in table.parent.columns.items())
    con.execute(
        f"create or replace temp view {identifier(table.source)} as select c.*, p.{identifier(parent.unit_name)} as"
        f" kg_person from {identifier(table.name)} c join {identifier(parent.source)} p on {on}"
    )
    counted = f"select count(distinct kg_person) from {identifier(table.source)}"
    table.people = con.execute(counted).fetchall()[0][0]
    table.grain = "rows"


def _opened(database: Path) -> duckdb.DuckDBPyConnection:
    if database.is_dir():
        con = duckdb.connect()
        for name, read in tables_of_folder(database).items():
            con.execute(f"create view {identifier(name)} as from {read}")
        return con
    if not database.is_file():
        msg = f"{database} is no file. Name a DuckDB database, or a folder of Parquet files."
        raise InputError(msg)
    try:
        return duckdb.connect(database, read_only=True)
    except duckdb.Error:
        msg = f"{database} cannot be opened as a DuckDB database."
        raise InputError(msg) from None


def _of_values(catalog: Catalog, found: Prices, table: Table) -> float:
    """From how many people on a part of the calendar is shown."""
    info = catalog.table(table.name)
    assert info is not None
    least = least_of_values(catalog, found, info)
    return max(least if least is not None else 0.0, least_people(catalog, found))


def _example_lines(
    con: duckdb.DuckDBPyConnection, costs: Costs, tables: Sequence[Table], catalog: Catalog, found: Prices
) -> Iterator[str]:
    """Questions that the policy answers, as comments; about tables in which there are enough people."""
    enough = _ENOUGH * least_people(catalog, found)
    many = [table for table in tables if table.people >= enough]
    shown = [table.name for table in many if _shows_things(con, table, catalog, found)]
    questions = [question for question in Examples(con, costs).of(many, shown) if _is_answered(question, catalog)]
    if questions:
        yield f"{EXAMPLES} `people` are people; `in_rows` are rows, or say how many rows people have."
    yield from (f"#   {question}" for question in dict.fromkeys(questions))


def _shows_things(con: duckdb.DuckDBPyConnection, table: Table, catalog: Catalog, found: Prices) -> bool:
    """Whether so many people have rows of one thing, of some at least, that these are shown."""
    info = catalog.table(table.name)
    assert info is not None
    least = least_of_values(catalog, found, info, means=True)
    things = [column for column in table.of_role("artifact") if column.is_id]
    if least is None or not things or table.people < _ENOUGH * least:
        return False
    name = identifier(table.unique or things[0].name)
    most = (
        f"select approx_count_distinct({identifier(table.unit_name)}) from {identifier(table.source)}"
        f" where {name} is not null group by {name} order by 1 desc limit {_SOME_THINGS}"
    )
    people = [int(number) for (number,) in con.execute(most).fetchall()]
    return len(people) == _SOME_THINGS and people[-1] >= _ENOUGH * least


def _is_answered(question: str, catalog: Catalog) -> bool:
    """Whether a question is one line that the policy does not refuse."""
    try:
        plan(question, catalog)
    except Refused:
        return False
    return question.isprintable()
