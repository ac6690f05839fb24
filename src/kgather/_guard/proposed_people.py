"""Whom a database is about: the column that names them, the tables that have it, and those that hang on such a table.

Of several kinds of people (customers and staff) the one is proposed that its name, its key and its number speak for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb

from kgather._errors import InputError
from kgather._guard.catalog import kind_of
from kgather._guard.guessed import SAME_PEOPLE, Column, Reference, Table, rank_of_people, singular, words
from kgather._guard.policy import fold
from kgather._guard.proposed_schema import Database, read_by
from kgather._guard.render import identifier

ROW = "rowid"
"""The column that names people where each row is one: DuckDB's number of the row."""
_TRAITS = words(
    "firstname lastname surname email birth birthday birthdate dob sex gender age race ethnicity marital occupation "
    "nationality education salary income ssn phone"
)
"""Words of columns that people have."""
_NOBODY = (
    "No column seems to name people: an id such as user_id, or the key of a table such as customers. If there are "
    "people in this database, name that column with --unit COLUMN, or --unit TABLE.COLUMN. A table without one can be "
    "given one: CREATE TABLE t2 AS SELECT row_number() OVER () AS person_id, * FROM t."
)
_SEVERAL_TRAITS = 2
_BELONG = 0.99  # of the rows that name a person: so many belong to rows of that person, too
_NEARLY = 2  # the rank of words that stand for people, or for what is nearly one
CONTACT = words("email mail phone mobile fax telephone address street postal postcode zip zipcode surname lastname")
"""Words of columns that say how somebody is reached."""


@dataclass
class Kind:
    """A kind of people. table: that has a row of each, None where none has. columns: by table, those that name them."""

    word: str
    rank: int
    table: Table | None
    columns: dict[str, list[Column]] = field(default_factory=dict)


class _Score(NamedTuple):
    """What speaks for a kind; what stands first counts most."""

    rank: int
    traits: int
    tables: int
    people: int


def find_people(con: duckdb.DuckDBPyConnection, database: Database, wanted: str | None) -> list[Kind]:
    """The kinds of people, the one that is proposed first; every table gets its unit, or its parent, or why it is left
    out.

    Raises InputError where there are none; wanted: the column that names them, as COLUMN or TABLE.COLUMN.
    """
    kinds = list(_kinds(database))
    if wanted is not None:
        kinds.insert(0, _wanted(database, wanted))
    else:
        kinds.sort(key=lambda kind: _score(database, kind), reverse=True)
    if not kinds:
        whole = [table for table in database.tables if not table.view and _traits(table) >= _SEVERAL_TRAITS]
        if len(whole) != 1:
            raise InputError(_NOBODY)
        kinds = [_each_row(whole[0])]
    first = kinds[0]
    for table in database.tables:
        named = first.columns.get(table.name, [])
        if named:
            table.unit = named[0]
            table.unit.role = "unit"
            for column in named[1:]:
                column.role = "other person"
    _leave_out_views(database)
    _hang(database)
    _leave_out_others(database, kinds)
    for table in database.tables:
        if table.unit is not None:
            unit = identifier(table.unit.name)
            exact = f"count(distinct {unit}), count({unit})" if table.unit.name != ROW else "count(*), count(*)"
            people, rows = con.execute(f"select {exact} from {identifier(table.name)}").fetchall()[0]
            table.people, table.grain = people, "unit" if people == rows == table.rows else "rows"
    return kinds


def _kinds(database: Database) -> Iterator[Kind]:
    """People that tables are of, and people whom columns name without such a table."""
    seen: set[tuple[str, str]] = set()
    tables = [table for table in database.tables if not table.view and len(table.key) == 1]
    by_name = [(table, rank_of_people(table.stem[-1])) for table in tables]
    found = [(table, rank) for table, rank in by_name if rank]
    found += [
        (table, 0)
        for table, rank in by_name
        if not rank and _traits(table) > _SEVERAL_TRAITS and not names_people(table.column(table.key[0]))
    ]
    names: dict[str, Kind] = {}
    for table, rank in found:
        if (table.name, table.key[0]) in seen or fold(table.key[0]) in names:
            continue
        kind = Kind(table.stem[-1], rank, table)
        _gather(database, table, kind)
        for name, columns in kind.columns.items():
            for column in columns:
                seen.add((name, column.name))
                if len(column.parts) > 1:
                    names.setdefault(fold(column.name), kind)
        yield kind
    by_word: dict[str, Kind] = {}
    for table in database.tables:
        for column in table.columns:
            if (table.name, column.name) in seen or not names_people(column):
                continue
            known = names.get(fold(column.name))
            if known is not None:  # also of people who are not in their table any more
                _add(known, table, column)
                if table.key == (column.name,):
                    _gather(database, table, known)
                continue
            named = [part for part in column.parts if rank_of_people(part)]
            word = "_".join(column.parts) if len(named) > 1 else singular(named[-1])
            kind = by_word.setdefault(word, Kind(word, rank_of_people(named[-1]), None))
            _add(kind, table, column)
    yield from by_word.values()


def names_people(column: Column) -> bool:
    """Whether a column seems to hold names of people, such as ids: its own name says so."""
    named = any(rank_of_people(part) for part in column.parts)
    says = column.is_id or (len(column.parts) == 1 and column.kind in ("integer", "text"))
    return named and says and column.is_name


def _gather(database: Database, table: Table, kind: Kind) -> None:
    """The columns that name the people of a table: its key, that of tables with a row for each of the same people, and
    those that refer to one of these."""
    same = [table]
    for one in same:  # it grows
        _add(kind, one, one.column(one.key[0]))
        for reference in database.references:
            ends = {reference.table, reference.to}
            if one.name not in ends or len(ends) < 2 or len(reference.columns) > 1:
                continue
            (other,) = ends - {one.name}
            of, to = database.table(reference.table), database.table(reference.to)
            by_key = of.key == tuple(reference.own) and to.key == tuple(reference.columns.values())
            if by_key and all(other != known.name for known in same):
                same.append(database.table(other))
    for one in same:
        for reference in database.references:
            if reference.to == one.name and tuple(reference.columns.values()) == one.key:
                of = database.table(reference.table)
                _add(kind, of, of.column(reference.own[0]))


def _add(kind: Kind, table: Table, column: Column) -> None:
    """Add a column that names people: its key first, then the one named for them."""
    have = kind.columns.setdefault(table.name, [])
    if column in have:
        return
    have.append(column)
    have.sort(key=lambda one: (table.key != (one.name,), one.stem[-1] != kind.word, len(one.parts)))


def _score(database: Database, kind: Kind) -> _Score:
    traits = _traits(kind.table) if kind.table is not None else 0
    people = max(column.distinct for columns in kind.columns.values() for column in columns[:1])
    tables = sum(not database.table(name).view for name in kind.columns)
    return _Score(kind.rank, min(traits, 1), tables, people)


def _traits(table: Table) -> int:
    """How many columns it has that people have."""
    return sum(bool(_traits_of(column)) for column in table.columns)


def _traits_of(column: Column) -> set[str]:
    joined = {"".join(column.parts[at : at + 2]) for at in range(len(column.parts))}
    return (column.words | joined) & _TRAITS


def _wanted(database: Database, wanted: str) -> Kind:
    """The kind that somebody names, by a column or by table.column."""
    table_name, _, column_name = wanted.rpartition(".")
    kind = Kind(wanted, 3, None)
    for table in database.tables:
        for column in table.columns:
            if fold(column.name) == fold(column_name or wanted) and fold(table_name) in ("", fold(table.name)):
                _add(kind, table, column)
    if not kind.columns:
        for table in database.tables:  # a name may have a point in it
            for column in table.columns:
                if fold(column.name) == fold(wanted):
                    _add(kind, table, column)
    if not kind.columns:
        if table_name:
            msg = f"There is no column {wanted!r}: name it as COLUMN, or as TABLE.COLUMN."
            raise InputError(msg)
        msg = f"No table has a column {wanted!r}."
        raise InputError(msg)
    for name, columns in list(kind.columns.items()):
        if database.table(name).key == (columns[0].name,):
            _gather(database, database.table(name), kind)
    return kind


def _each_row(table: Table) -> Kind:
    """People whom no column names, each of whom has one row."""
    unit = Column(ROW, "integer", table.rows, type="BIGINT", nulls=False)
    table.columns.insert(0, unit)
    table.key = (ROW,)
    return Kind(table.name, 0, table, {table.name: [unit]})


def _leave_out_views(database: Database) -> None:
    """A view of tables of people shows what these have: asked twice it costs twice, and it is never public."""
    about = {fold(table.name) for table in database.tables if table.unit is not None and not table.view}
    views = [table for table in database.tables if table.view]
    reads = {table.name: read_by(table.view) for table in views}
    tables = {fold(table.name) for table in database.tables if not table.view}
    for _ in views:
        for table in views:
            if not table.of_people and reads[table.name] & about:
                about.add(fold(table.name))
                table.of_people = "as a view of tables of people, which can be asked themselves"
    for table in views:
        unread = {name for name in reads[table.name] if name not in tables and name not in reads}
        if table.of_people and table.unit is not None:
            table.unit.role = "hidden"
            table.unit = None
        elif not table.of_people and table.unit is None and unread:
            table.of_people = "or may do so: it is a view of what is not among these tables"


def _hang(database: Database) -> None:
    """Find the tables whose rows belong to rows of people: lineitem to orders, by its key."""
    reached = [table for table in database.tables if table.unit is not None]
    while reached:
        nearer, reached = reached, []
        for table in database.tables:
            if table.unit is not None or table.parent is not None or table.view:
                continue
            for one in database.of(table):
                to = next((near for near in nearer if near.name == one.to), None)
                if to is not None and set(one.columns.values()) == {*to.key} and to is not table:
                    table.parent = one
                    reached.append(table)
                    break


def find_rows_that_belong(con: duckdb.DuckDBPyConnection, database: Database) -> None:
    """Find the tables that name people, and rows of theirs besides: payments that are of a customer, and for a rental.
    Nearly each row has to belong to one of its own person."""
    for table in database.tables:
        if table.unit is None or table.view or table.grain != "rows" or table.unit.name == ROW:
            continue
        for one in database.of(table):
            to = database.table(one.to)
            if to is table or to.unit is None or to.view or to.grain != "rows" or to.unit.name == ROW:
                continue
            if {*one.columns.values()} != {*to.key} or table.unit.name in one.columns or to.parent is not None:
                continue
            if _of_same_person(con, table, one, to):
                table.parent = one
                break


def _of_same_person(con: duckdb.DuckDBPyConnection, table: Table, one: Reference, to: Table) -> bool:
    assert table.unit is not None
    assert to.unit is not None
    on = " and ".join(f"c.{identifier(own)} = p.{identifier(key)}" for own, key in one.columns.items())
    same = f"c.{identifier(table.unit.name)} = p.{identifier(to.unit.name)}"
    counted = (
        f"select count(*), count(*) filter ({same}), count(*) filter (not {same}) from {identifier(table.name)} c"
        f" left join {identifier(to.name)} p on {on}"
    )
    rows, own, others = con.execute(counted).fetchall()[0]
    return bool(rows and own >= _BELONG * rows and not others)


def _leave_out_others(database: Database, kinds: Sequence[Kind]) -> None:
    """Tables that tell of people all the same: of another kind, or how somebody is reached."""
    others = {kind.table.name: kind for kind in kinds[1:] if kind.table is not None}
    for table in database.tables:
        if table.unit is not None or table.parent is not None or table.of_people:
            continue
        known = others.get(table.name)
        if known is not None and _is_of_other(known):
            table.of_people = f"of another kind ({known.word})"
            continue
        to = next((one.to for one in database.of(table) if one.to in others and _is_of_other(others[one.to])), None)
        if to is not None:
            table.of_people = f"of another kind, as it names rows of {to}"
            continue
        named = [column.name for column in table.columns if names_people(column) and column.looks_up is None]
        if named and not _is_other_key(table, named[0]):
            table.of_people = f"of another kind, as it names them ({named[0]})"
            continue
        contact = [column.name for column in table.columns if column.kind == "text" and contact_of(column)]
        if contact:
            table.of_people = f"by how they are reached ({', '.join(contact)})"


def _is_other_key(table: Table, name: str) -> bool:
    """Whether a column is the key of a table of things that may be named like people, as subjects of a school."""
    return table.key == (name,) and rank_of_people(table.stem[-1]) == _NEARLY


def _is_of_other(kind: Kind) -> bool:
    """Whether a table that is named for people is of people: accounts, devices and subjects may be none."""
    return kind.rank in (1, 3) or (kind.table is not None and _traits(kind.table) > 0)


def contact_of(column: Column) -> set[str]:
    """The words of a column's name that say that somebody is reached by it."""
    joined = {"".join(column.parts[at : at + 2]) for at in range(len(column.parts))}
    return (column.words | joined) & CONTACT


def same_people(one: str, other: str) -> bool:
    """Whether two words may stand for the same people."""
    return singular(one) == singular(other) or {singular(one), singular(other)} <= SAME_PEOPLE


def is_name_of_people(column: Column) -> bool:
    """Whether a column seems to name people, of whatever kind."""
    return (
        column.is_name
        and any(rank_of_people(part) in (1, 3) for part in column.stem)
        and kind_of(column.type) != "other"
    )
