"""Proposes what each column of a table of people is, from names, types, counts and joins, and writes it as settings.

What is not known is a quasi-identifier: a column that is wrongly generalized costs a little, one that is wrongly shown
may name somebody. So nothing is ever proposed to be shown as it is but sensitive columns, and of these only such as
have values that many people share and that name nobody (`kgather._tables.naming`). The words of a name come last.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import duckdb
import yaml

from kgather._errors import InputError, quoted
from kgather._guard.guessed import DATES, NUMBERS, Column, Table, words
from kgather._guard.proposed_people import ROW, find_people
from kgather._guard.proposed_roles import look_up, secret
from kgather._guard.proposed_schema import Database, read_database
from kgather._loaders import LoadOptions, as_written
from kgather._settings.table import TableSettings, table_settings
from kgather._sql_text import identifier
from kgather._tables import naming

_PLACES = words("zip zipcode postal postcode plz city town municipality county region province state country district")
_PREFIXED = words("zip zipcode postal postcode plz")
_TRAITS = words(
    "age birth birthday birthdate born dob yob sex gender race ethnicity ethnic marital married education degree "
    "occupation job profession employer nationality citizenship language children kids household height weight"
)
_SENSITIVE = words(
    "illness disease diagnosis condition symptom treatment medication drug prescription therapy procedure icd allergy "
    "disability hiv result outcome salary income wage pay debt credit score balance religion faith party vote politics "
    "political orientation union conviction offence offense crime verdict grade genome"
)
_MOSTLY = 0.5  # of those with a value have one of their own: it is as good as a name
_LEAST_DIVERSE = 2.5  # values, as entropy counts them: where there are as many, classes can have two
_ROWS = 0.95  # of the people have no more rows than are proposed
_SETS, _ALL_OF = 3, 8  # columns in the largest sets that are counted, out of the most telling ones
_TOLD = 12  # sets that are named
_LONGEST_KEY = 1000  # characters that YAML takes for a key without a mark


class Proposed(NamedTuple):
    """The role of a column: unit, identifier, quasi-identifier or sensitive; why; and what is said of it."""

    role: str
    why: str
    said: dict[str, object]


@dataclass(frozen=True)
class SingledOut:
    """What a set of columns tells: alone, how many people have a combination of values that nobody else has; few, how
    many share theirs with fewer than k in all."""

    columns: tuple[str, ...]
    alone: int
    few: int


@dataclass(frozen=True)
class Proposal:
    """Settings as text, and what the quasi-identifiers tell as they are. people: how many there are."""

    text: str
    roles: dict[str, Proposed]
    singled_out: tuple[SingledOut, ...]
    people: int


def write_settings(
    given: str, out: Path, *, k: int = 10, unit: str | None = None, header: bool | None = None
) -> Proposal:
    """Write settings for `kgather anonymize` to a file.

    Raises InputError where the file exists or the table cannot be read.
    """
    if out.exists():
        msg = f"{out} exists. Give another name with --out, or remove it: it may hold decisions."
        raise InputError(msg)
    made = propose(given, k=k, unit=unit, header=header)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made.text, encoding="utf-8")
    return made


def propose(given: str, *, k: int = 10, unit: str | None = None, header: bool | None = None) -> Proposal:
    """Settings for a table: a text or Parquet file, or FILE.duckdb:TABLE, whose other tables say what its ids are of.

    Raises InputError where it cannot be read, is empty, or has no column `unit`.
    """
    with _opened(given, LoadOptions(header=header)) as (con, name):
        database = read_database(con)
        table = _table(database, name)
        _find_unit(con, database, table, unit)
        look_up(table, database)
        people, most = _people(con, table)
        roles = {column.name: _role(con, table, column, database, people, k) for column in table.columns}
        if not any(found.role == "quasi-identifier" for found in roles.values()):
            msg = f"{given} has no column by which people seem to be known: nothing has to be generalized."
            raise InputError(msg)
        text = _text(k, roles, most)
        quasi = [column for column, found in roles.items() if found.role == "quasi-identifier"]
        told = tuple(_singled_out(con, table, quasi, k))
    _refuse_other_names(table_settings(yaml.safe_load(text)), roles)
    return Proposal(text, roles, told, people)


def _refuse_other_names(settings: TableSettings, roles: dict[str, Proposed]) -> None:
    """Refuse names that are read otherwise than they were written."""
    read = {*settings.shown, *settings.identifiers, *([settings.unit] if settings.unit is not None else [])}
    lost = [name for name in roles if name not in read]
    if lost:
        msg = f"{quoted(lost)} cannot be written to a file of settings. Give these columns other names."
        raise InputError(msg)


@contextmanager
def _opened(given: str, options: LoadOptions) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection, and the table's name in it."""
    file, colon, name = given.rpartition(":")
    if colon and Path(file).is_file():
        try:
            with duckdb.connect(file, read_only=True) as con:
                yield con, name
        except duckdb.Error as error:
            msg = f"{given} cannot be read ({type(error).__name__})."
            raise InputError(msg) from None
        return
    name = re.sub(r"\W+", "_", Path(given).name.partition(".")[0]) or "people"
    with duckdb.connect() as con, as_written.opened(con, given, options) as found:
        view = found.view(con, "kg_read", found.read.names)
        con.execute(f"create table {identifier(name)} as from {view}")
        yield con, name


def _table(database: Database, name: str) -> Table:
    found = [table for table in database.tables if table.name.lower() == name.lower()]
    if not found:
        msg = f"there is no table {name}. There are: {', '.join(table.name for table in database.tables) or 'none'}."
        raise InputError(msg)
    if not found[0].rows:
        msg = f"{name} has no rows: there is nothing to propose from."
        raise InputError(msg)
    return found[0]


def _find_unit(con: duckdb.DuckDBPyConnection, database: Database, table: Table, wanted: str | None) -> None:
    """Give the table the column that names people, if it has one."""
    if wanted is not None:
        named = [column for column in table.columns if column.name.lower() == wanted.lower()]
        if not named:
            msg = f"{table.name} has no column {wanted}. There are: {', '.join(each.name for each in table.columns)}."
            raise InputError(msg)
        table.unit = named[0]
        return
    try:
        find_people(con, database, None)
    except InputError:
        table.unit = None  # nothing names people: each row is one
    if table.unit is not None and table.unit.name == ROW:
        table.columns = [column for column in table.columns if column is not table.unit]
        table.unit = None
    if table.unit is None and len(table.key) == 1 and table.parent is None and table.key[0] != ROW:
        key = table.column(table.key[0])
        table.unit = key if key.is_id else None


def _people(con: duckdb.DuckDBPyConnection, table: Table) -> tuple[int, int]:
    """How many people there are, and how many rows nearly all of them have at most."""
    if table.unit is None:
        return table.rows, 1
    name = identifier(table.unit.name)
    [(people, most)] = con.execute(
        f"select count(*), quantile_disc(n, {_ROWS}) from (select count(*) as n from {identifier(table.name)} "
        f"where {name} is not null group by {name})"
    ).fetchall()
    return people, most or 1


def _role(
    con: duckdb.DuckDBPyConnection, table: Table, column: Column, database: Database, people: int, k: int
) -> Proposed:
    named = column.words | {"".join(column.parts[at : at + 2]) for at in range(len(column.parts))}
    if table.unit is not None and column is table.unit:
        return Proposed("unit", "it names people", {})
    if column.kind == "other" and column.type != "UUID":
        return Proposed("identifier", f"values of its type ({column.type.partition('(')[0]}) cannot be generalized", {})
    if (named & _PLACES) and not named & words("email mail ip mac"):
        said: dict[str, object] = {"kind": "prefix"} if named & _PREFIXED and column.kind == "text" else {}
        return Proposed("quasi-identifier", "a place", said)
    why = naming.free_text(con, table, column)
    if why:
        return Proposed("identifier", why, {})
    if named & _TRAITS:
        return Proposed("quasi-identifier", "people are known by it", {})
    why = secret(table, column)
    if why:
        return Proposed("identifier", why, {})
    to = database.table(column.looks_up.to) if column.looks_up is not None else None
    if to is not None and (to.unit is not None or to.parent is not None):
        return Proposed("identifier", f"it names rows of {to.name}, which are people's own", {})
    shares = naming.shares(con, table, column, max(k, 2))
    alone = column.is_name and shares.own > _MOSTLY
    many = column.distinct > _MOSTLY * people
    second_name = shares.own == 1 and column.distinct == people < table.rows
    if column.type == "UUID" or (
        alone and (column.kind == "text" or (many and (naming.names_something(column) or second_name)))
    ):
        return Proposed("identifier", "most people who have a value in it have one of their own", {})
    if to is not None:
        return Proposed("quasi-identifier", f"what others may know: its values are rows of {to.name}", _ids(column))
    if column.kind in DATES:
        return Proposed("quasi-identifier", "others may know when something was", {})
    found = sorted(named & _SENSITIVE)
    why = naming.may_name(con, table, column, database, shares) if found else ""
    if found and not why:
        return Proposed("sensitive", f"its name has the word {found[0]} in it", _diversity(con, table, column))
    if found:
        return Proposed(
            "quasi-identifier", f"it is not shown as it is though {found[0]} may be sensitive: {why}", _ids(column)
        )
    return Proposed("quasi-identifier", "what it tells could not be guessed, so it is generalized", _ids(column))


def _ids(column: Column) -> dict[str, object]:
    """Ids are names, though they may be numbers: there is no range of them."""
    return {"kind": "category"} if column.is_id and column.kind in NUMBERS else {}


def _diversity(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> dict[str, object]:
    """l-diversity where the whole table is diverse enough for it."""
    name = identifier(column.name)
    [(entropy,)] = con.execute(f"select entropy({name}) from {identifier(table.name)}").fetchall()
    return {"l": 2} if entropy is not None and 2 ** float(entropy) >= _LEAST_DIVERSE else {}


def _singled_out(con: duckdb.DuckDBPyConnection, table: Table, quasi: Sequence[str], k: int) -> Iterator[SingledOut]:
    """The sets of columns that tell most, of each size. Of people with several rows any of them may tell."""

    relation = identifier(table.name)

    def of(columns: tuple[str, ...]) -> SingledOut:
        listed = ", ".join(map(identifier, columns))
        if table.unit is None:
            query = (
                f"select count(*) filter (n = 1), coalesce(sum(n) filter (n < {k}), 0)::bigint "
                f"from (select count(*) as n from {relation} group by {listed})"
            )
        else:
            unit = identifier(table.unit.name)
            query = (
                f"select count(distinct kg_person) filter (n = 1), count(distinct kg_person) filter (n < {k}) from ("
                f"select kg_person, count(*) over (partition by {listed}) as n from (select distinct {listed}, {unit} "
                f"as kg_person from {relation} where {unit} is not null))"
            )
        [(alone, few)] = con.execute(query).fetchall()
        return SingledOut(columns, alone, few)

    ones = sorted((of((name,)) for name in quasi), key=_telling)
    most = [each.columns[0] for each in ones[:_ALL_OF]]
    place = {name: at for at, name in enumerate(quasi)}
    found = ones[:_SETS]
    for size in range(2, min(_SETS, len(most)) + 1):
        sets = (tuple(sorted(each, key=place.__getitem__)) for each in combinations(most, size))
        found += sorted(map(of, sets), key=_telling)[:_SETS]
    if len(quasi) > _SETS:
        found.append(of(tuple(quasi)))
    yield from found[:_TOLD]


def _telling(each: SingledOut) -> tuple[int, int]:
    return -each.alone, -each.few


def _text(k: int, roles: dict[str, Proposed], most: int) -> str:
    """The settings as YAML, with a comment for each guess."""
    unit = [name for name, found in roles.items() if found.role == "unit"]
    several = most > 1
    lines = [
        "# Settings for kgather anonymize, made of guesses. Look at each column. Whatever others may know of a person",
        "# is a quasi-identifier; sensitive is what nobody should learn; identifiers are left out.",
        f"k: {k}",
    ]
    if unit:
        lines.append(f"unit: {_scalar(unit[0])}")
    if several:
        lines += [
            "# People have several rows. k counts people, and rows beyond this number are left out. In its place",
            "# `aggregate` makes one row of all of a person, as aggregate: {amount: sum}; l, t and alpha need that.",
            f"rows_per_person: {_nice(most)}",
        ]
    for role, key in (("quasi-identifier", "quasi_identifiers"), ("sensitive", "sensitive")):
        named = {name: found for name, found in roles.items() if found.role == role}
        if named:
            lines.append(f"{key}:")
        for name, found in named.items():
            said = {} if several and role == "sensitive" else found.said
            lines.append(f"  {_key(name)}: {json.dumps(said)}  # {_comment(found.why)}")
    left_out = {name: found for name, found in roles.items() if found.role == "identifier"}
    if left_out:
        lines.append("identifiers:")
        lines += [f"  - {_scalar(name)}  # {_comment(found.why)}" for name, found in left_out.items()]
    return "\n".join(lines) + "\n"


def _nice(number: int) -> int:
    """A number of rows that hangs on no single person's: the next one of 2, 5, 10, 20, 50 and so on."""
    scale = 10 ** int(math.log10(number))
    return next(nice * scale for nice in (1, 2, 5, 10) if nice * scale >= number)


def _key(name: str) -> str:
    """A name as YAML takes it for a text that is a key; long ones are marked as such."""
    written = _scalar(name)
    return written if len(written) < _LONGEST_KEY else f"? {written}\n  "


def _scalar(name: str) -> str:
    """A name as YAML takes it for a text."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and yaml.safe_load(name) == name:
        return name
    # YAML's own escapes: JSON writes what lies beyond its first plane as two characters.
    return yaml.dump(name, default_style='"', allow_unicode=True, width=math.inf).strip()


def _comment(text: str) -> str:
    """A text that ends with its line, whatever names stand in it."""
    return "".join(each if each.isprintable() else " " for each in text)
