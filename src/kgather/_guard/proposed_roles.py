"""What each column of a table of people seems to be: what people are chosen by, what is summed up, what is hidden."""

from typing import NamedTuple

import duckdb

from kgather._guard.guessed import DATES, NUMBERS, Column, Table, rank_of_people, words
from kgather._guard.proposed_people import ROW, contact_of, is_name_of_people
from kgather._guard.proposed_schema import Database
from kgather._guard.proposed_values import FEW
from kgather._guard.render import identifier

_OPINIONS = words("rating score stars star vote grade opinion answer preference likes rank points")
_AMOUNTS = words(
    "salary age income amount price spend spent spending balance revenue cost wage pay payment total quantity qty "
    "weight height duration minutes hours seconds bonus debt budget freight fee fees discount tax charge gain "
    "loss count number value subtotal units size days months years length distance volume rate percent percentage "
    "points level visits orders sum paid usage"
)
_ENDINGS = ("price", "amount", "total", "balance", "bal", "cost", "value", "count", "rate", "tax", "fee", "quantity")
_PEOPLES_OWN = words("name firstname lastname surname username login nickname")
_SECRETS = words(
    "ssn iban passport ip mac password passwd pwd token url uri website homepage mrn imei vin plate signature"
)
_BIRTH = words("birth birthday dob birthdate born")
_FREE = words(
    "note notes comment comments text description desc remark remarks bio message body feedback narrative instructions"
)
_OF_PEOPLE = words(
    "first last full given family middle maiden display contact nick legal preferred ship shipping billing bill holder "
    "owner company sender recipient parent mother father guardian spouse emergency sur fore user login host"
)
"""Words before `name` that make it that of somebody: that of an event, or of a test, is none."""
_PLACES = words("latitude longitude lat lon lng coordinates geom geometry location")
_HOUSES = words("address street postal postcode zip zipcode suite apartment house")
_COUNTED = words("amount total count number sum price rate fee cost")  # gift_card_amount is no card
_UNKNOWN = (
    "what its numbers are could not be guessed. List it under measures to have it summed up, or under artifacts to "
    "have people chosen by it"
)
"""Why numbers are hidden whose name says nothing."""
_OPINION_VALUES = 101  # of an artifact, as 0 to 100
_WIDE = 3  # columns of small whole numbers that make a wide table
_SMALL_RANGE = 20
_TOLD_APART = 256  # whole numbers between the ends of a column
_LONG = 40  # letters of a text, on average, from which on it is free
_MOSTLY = 0.5  # of its rows a column has so many different values: they are names, or as good as one person's each
_SECONDS = (3.0e8, 4.2e9)  # since 1970: from 1979 to 2103
_PARTS = (1, 10**3, 10**6, 10**9)  # of a second, in which times are counted
_YEARS = (1850, 2150)


class Guess(NamedTuple):
    """What a column seems to be, and why it is hidden where that can be told."""

    role: str
    why: str = ""


def guess_roles(con: duckdb.DuckDBPyConnection, table: Table, database: Database, k: int) -> None:
    """Give each column of a table of people its role. `table.people` and the grain are known."""
    for column in table.columns:
        if column.role == "other person":
            column.role, column.why = "hidden", "it names people, too: rows are those of the first column that does"
        elif column.role != "unit":
            column.role, column.why = _role(con, table, column, database, k)
    if table.unit is None:
        return
    wide = [c for c in table.columns if c.role == "hidden" and c.why == _UNKNOWN and _is_small(c)]
    if table.grain == "unit" and len(wide) >= _WIDE:
        for column in wide:
            column.role = "artifact"
    for column in table.of_role("artifact"):
        if column.is_id and _is_one_persons(con, table, column):
            column.role, column.why = "hidden", "each of its values is of one person"
    if table.grain == "rows":
        for column in table.of_role("artifact"):
            if column.is_id and _names_rows(con, table, column):
                table.unique = column.name
                break


def look_up(table: Table, database: Database) -> None:
    """Say of each column of a table where its values are keys."""
    for one in database.of(table):
        if len(one.columns) == 1:
            column = table.column(one.own[0])
            column.looks_up = column.looks_up or one


def _role(con: duckdb.DuckDBPyConnection, table: Table, column: Column, database: Database, k: int) -> Guess:
    if table.parent is not None and column.name in table.parent.columns:
        return Guess("parent")
    if table.key == (column.name,):
        return Guess("key")
    if (named := _named(table, column, database)) is not None:
        return named
    why = secret(table, column)
    if why:
        return Guess("hidden", why)
    if not column.distinct:
        told = column.kind != "other" and table.rows
        return Guess(
            "hidden",
            "it has no values"
            if told or not table.rows
            else f"values of its type ({_type(column)}) are not told apart",
        )
    if column.type == "UUID":
        return Guess("hidden", "an id of its own kind (UUID): nothing is asked about it")
    if column.kind in DATES:
        return _of_dates(table, column)
    if is_time(column):
        return Guess(
            "hidden", "it looks like a time in seconds since 1970: make a TIMESTAMP of it to have it coarsened"
        )
    counts = column.kind in NUMBERS and _is_amount(column)
    if column.distinct == 1 and table.rows > k and column.kind != "boolean" and not counts:
        return Guess("hidden", "it has one value in all rows, as far as it has any: there is nothing to choose by")
    if column.is_id and ("id" in column.words or column.looks_up is not None or table.grain == "rows"):
        return _of_names(table, column)
    if column.kind == "boolean":
        return Guess("artifact")
    if column.kind in NUMBERS:
        return _of_numbers(table, column)
    return _of_texts(con, table, column, k)


def _type(column: Column) -> str:
    return column.type if len(column.type) < _LONG else column.type.partition("(")[0]


def _named(table: Table, column: Column, database: Database) -> Guess | None:
    """The role of a column whose values are keys of another table; None of others."""
    if column.looks_up is not None:
        to = database.table(column.looks_up.to)
        if to is table:
            return Guess("hidden", "it names other rows of this table, which are of other people")
        if to.unit is not None or to.parent is not None:
            return Guess("hidden", f"it names rows of {to.name}, which are people's own")
        if to.of_people.startswith("of another kind") and is_name_of_people(column):
            return Guess("hidden", f"it names people of another kind: rows of {to.name}")
        if to.of_people and column.distinct > _MOSTLY * table.people:
            return Guess("hidden", f"it names rows of {to.name}, which tell of people {to.of_people}")
        if to.of_people.startswith("of another kind ("):
            return Guess("hidden", f"it names people of another kind: rows of {to.name}")
        if to.of_people and is_name_of_people(column):
            return Guess("hidden", f"it names rows of {to.name}, which tell of people {to.of_people}")
        return None
    worker = column.stem[-1]
    if column.parts[-1] == "by" or tuple(column.parts[-2:]) == ("assigned", "to"):
        return Guess("hidden", "it seems to name people of another kind: who did something")
    if is_name_of_people(column) and column.is_name and (column.is_id or column.distinct > FEW):
        return Guess("hidden", f"it seems to name people of another kind ({worker})")
    return None


def secret(table: Table, column: Column) -> str:
    """Why a column is hidden whose name says that it tells who somebody is; empty where it does not."""
    named = column.words | {"".join(column.parts[at : at + 2]) for at in range(len(column.parts))}
    if named & _BIRTH and not _is_birth(column):
        return "when somebody was born tells who it is, with little else. A column of ages could be asked for"
    if named & _FREE and column.kind in ("text", "integer", "other"):
        return "free text may hold anything, names of people, too"
    counts = column.kind in NUMBERS and named & _COUNTED
    found = named & (_SECRETS | _PEOPLES_OWN | _PLACES | {"card", "device", "phone"}) | contact_of(column)
    told = sorted(found & column.words) or sorted(found)
    flag = column.kind == "integer" and column.distinct <= 2 and column.low in (0, None) and column.high in (1, None)
    if not told or counts or flag or column.kind in (*DATES, "boolean"):
        return ""
    if told == ["name"] and _is_of_a_thing(table, column):
        return ""
    if told == ["card"] and column.kind == "text" and 0 < column.distinct <= FEW:
        return ""  # a kind of card
    if told == ["device"] and not column.is_id and 0 < column.distinct <= FEW:
        return ""
    return f"its name has the word {told[0]} in it: such columns often tell who somebody is"


def _is_of_a_thing(table: Table, column: Column) -> bool:
    """Whether a column has a few names of things that many rows have in common, as event_name."""
    before = column.stem[:-1]
    if not before or column.parts[-1] != "name" or len(before[-1]) < 3 or not 0 < column.distinct <= FEW:
        return False
    return column.distinct * FEW <= table.rows and not any(rank_of_people(w) or w in _OF_PEOPLE for w in before)


def _is_birth(column: Column) -> bool:
    """Whether a column named for births holds dates, or years."""
    return column.kind in DATES or _is_year(column)


def _is_year(column: Column) -> bool:
    if column.kind != "integer" or column.low is None or column.high is None:
        return False
    return _YEARS[0] <= column.low <= column.high <= _YEARS[1] and "year" in column.words


def _of_dates(table: Table, column: Column) -> Guess:
    if column.distinct == 1 and table.rows > 1:
        return Guess("hidden", "it has one value in all rows, as far as it has any: there is nothing to choose by")
    return Guess("coarsened")


def _of_names(table: Table, column: Column) -> Guess:
    if column.looks_up is not None:
        return Guess("artifact")
    if table.grain == "rows":
        if column.distinct < table.rows:
            return Guess("artifact")
        return Guess("hidden", "an id that each row has of its own: no two people have one in common")
    return Guess(
        "hidden",
        "an id, of whom or what could not be guessed. If it names what many people have in common, such as a school, "
        "list it under artifacts",
    )


def _of_numbers(table: Table, column: Column) -> Guess:
    """Numbers are chosen by and summed up, but for those that may be names of something."""
    known = column.words & _OPINIONS or _is_amount(column)
    low, high = column.low, column.high
    if low is None or high is None:
        return Guess("hidden", "it has no values")
    if column.type.startswith("DECIMAL") or _is_year(column) or known:
        return Guess("artifact")
    several = 1 < column.distinct < _MOSTLY * table.rows
    if column.kind == "integer":
        if several and high - low < _TOLD_APART:
            return Guess("artifact")
        return Guess("measure") if several and not column.is_id else Guess("hidden", _UNKNOWN)
    return Guess("artifact" if several and column.distinct <= FEW else "measure")


def _of_texts(con: duckdb.DuckDBPyConnection, table: Table, column: Column, k: int) -> Guess:
    if column.length > _LONG:
        return Guess("hidden", "its texts are long: they may hold anything, names of people, too")
    if column.distinct <= FEW:
        return Guess("artifact")
    if column.distinct > _MOSTLY * table.rows or not _has_common(con, table, column, k):
        return Guess("hidden", f"it has too many different values to show groups by: hardly any is of {k} people")
    return Guess("artifact")


def _has_common(con: duckdb.DuckDBPyConnection, table: Table, column: Column, k: int) -> bool:
    """Whether half of the rows have a value that some rows have in common."""
    name = identifier(column.name)
    query = (
        f"select sum(n) filter (n >= {2 * k}) >= {_MOSTLY} * sum(n) from (select count(*) as n"
        f" from {identifier(table.name)} where {name} is not null group by {name})"
    )
    return bool(con.execute(query).fetchall()[0][0])


def _is_amount(column: Column) -> bool:
    """Whether its name says that its numbers are amounts of something."""
    return bool(column.words & _AMOUNTS) or any(part.endswith(_ENDINGS) for part in column.parts)


def _is_small(column: Column) -> bool:
    if column.low is None or column.high is None:
        return False
    return column.high - column.low <= _SMALL_RANGE and 1 < column.distinct <= _SMALL_RANGE + 1


def is_time(column: Column) -> bool:
    """Whether numbers look like seconds since 1970, or parts of seconds."""
    if column.kind not in NUMBERS or column.low is None or column.high is None:
        return False
    first, last = _SECONDS
    return any(first * part <= column.low and column.high <= last * part for part in _PARTS)


def _is_one_persons(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> bool:
    """Whether no value of a column is of two people."""
    assert table.unit is not None
    name, unit = identifier(column.name), identifier(table.unit.name)
    query = (
        f"select 1 from {identifier(table.name)} where {name} is not null group by {name}"
        f" having min({unit}) <> max({unit}) limit 1"
    )
    return not con.execute(query).fetchall()


def _names_rows(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> bool:
    assert table.unit is not None
    if table.unit.name == ROW:
        return False
    pair = f"{identifier(table.unit.name)}, {identifier(column.name)}"
    query = f"select count(*) = (select count(*) from (select distinct {pair} from t)) from t"
    return bool(con.execute(f"with t as (from {identifier(table.name)}) {query}").fetchall()[0][0])
