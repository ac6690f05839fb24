"""Why a column is not proposed to be shown as it is, whatever its name promises: its values may name people.

What the values are is decided first: whose alone they are, what they refer to, whether they are ids, dates or texts
that somebody wrote. The words of a name only speak against a column here, never for it.
"""

from dataclasses import dataclass

import duckdb

from kgather._guard.guessed import DATES, NAMES_ROWS, NUMBERS, Column, Table, rank_of_people, words
from kgather._guard.proposed_roles import is_time
from kgather._guard.proposed_schema import Database
from kgather._guard.proposed_values import FEW
from kgather._sql_text import identifier

_CODES = words("code")
"""Words of ids that many people may have in common, as the code of a disease."""
_WHO = words(
    "by to from who whom whose owner holder payer payee debtor creditor sender recipient beneficiary signatory "
    "contact name names person relative kin family household"
)
_WHEN = words(
    "date dates datum time timestamp ts day month year quarter week weekday hour minute when at on since until start "
    "started end ended begin began"
)
_LONG = 40  # letters of a text, on average, from which on it may say anything
_WRITTEN = 4  # words of a text, on average, from which on it may say anything
_RARE = 0.1  # of the rows may have a value of fewer than k people, where a column is shown as it is
_LOOKED_AT = 2_000  # values whose form is looked at
_LIKE = 0.5  # of them make the form that of the column
_REACHED = "contains(v, '@') or contains(v, '://')"
_DRAWN = "length(regexp_replace(v, '[^0-9]', '', 'g')) > 5 or regexp_matches(v, '^[0-9a-fA-F-]{16,}$')"
_DAYS = """
  try_cast(v as timestamp) is not null or try_cast(v as time) is not null or try_strptime(v, [
    '%d.%m.%Y', '%d.%m.%y', '%m/%d/%Y', '%d/%m/%Y', '%d-%m-%Y', '%d %b %Y', '%b %d, %Y', '%Y%m%d', '%d.%m.%Y %H:%M',
    '%m/%d/%Y %H:%M', '%d/%m/%Y %H:%M'
  ]) is not null
"""


@dataclass(frozen=True)
class Shares:
    """Of the rows with a value in a column: the share whose value one person has, and fewer than k people have."""

    own: float
    rare: float


def shares(con: duckdb.DuckDBPyConnection, table: Table, column: Column, k: int) -> Shares:
    """Count who has the values of a column. Where nothing names people, each row is one."""
    name, relation = identifier(column.name), identifier(table.name)
    person = f"count(distinct {identifier(table.unit.name)})" if table.unit is not None else "count(*)"
    [(own, rare)] = con.execute(
        f"select coalesce(sum(n) filter (people <= 1) / sum(n), 0), coalesce(sum(n) filter (people < {k}) / sum(n), 0) "
        f"from (select count(*) as n, {person} as people from {relation} where {name} is not null group by {name})"
    ).fetchall()
    return Shares(float(own), float(rare))


def free_text(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> str:
    """Why a column seems to hold what somebody wrote; empty where it does not."""
    if column.kind != "text" or column.distinct <= FEW:
        return ""
    return _written(con, table, column)


def names_something(column: Column) -> bool:
    """Whether a column's name says that its values are ids: names or numbers of something."""
    return column.is_id or bool(column.is_name and column.words & set(NAMES_ROWS))


def may_name(con: duckdb.DuckDBPyConnection, table: Table, column: Column, database: Database, found: Shares) -> str:
    """Why a column is not shown as it is; empty where only its name is left to say what it is.

    found: who has its values.
    """
    of = next((one.to for one in database.of(table) if column.name in one.columns), None)
    if of is not None:
        return f"its values refer to rows of {of}"
    if column.type == "UUID" or (names_something(column) and not column.words & _CODES):
        return "its values seem to be ids"
    if column.words & _WHO or rank_of_people(column.parts[-1]):
        return "it seems to say who"
    if column.kind in DATES or column.words & _WHEN or is_time(column):
        return "others may know when something was"
    if found.rare > _RARE:
        return "many people have a value that few others have"
    if column.kind == "text":
        return _written(con, table, column) or _of_form(con, table, column)
    return "others may know when something was" if _are_dates(con, table, column) else ""


def _written(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> str:
    length, parts = _values(
        con, table, column, "coalesce(avg(length(v)), 0), coalesce(avg(len(string_split_regex(trim(v), '\\s+'))), 0)"
    )
    if length > _LONG or parts > _WRITTEN:
        return "its texts are long: they may hold anything, names of people, too"
    return ""


def _of_form(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> str:
    """Why texts are none of a few common words: they are addresses, numbers of something, or dates."""
    reached, drawn, dates = _values(con, table, column, f"{_share(_REACHED)}, {_share(_DRAWN)}, {_share(_DAYS)}")
    if reached > 0:
        return "some of its values are addresses"
    if dates > _LIKE:
        return "others may know when something was"
    return "its values seem to be ids" if drawn > _LIKE else ""


def _are_dates(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> bool:
    """Whether whole numbers are days, as 20240131."""
    if column.kind not in NUMBERS or column.low is None or column.low < 10_000_000:
        return False
    [dates] = _values(con, table, column, _share("try_strptime(v, '%Y%m%d') is not null"))
    return dates > _LIKE


def _share(condition: str) -> str:
    """The aggregate for the share of values of which a condition is true."""
    return f"coalesce(avg(cast({condition} as integer)), 0)"


def _values(con: duckdb.DuckDBPyConnection, table: Table, column: Column, told: str) -> tuple[float, ...]:
    """What aggregates say of the values v of a column, as texts."""
    name = identifier(column.name)
    return tuple(
        map(
            float,
            con.execute(
                f"select {told} from (select distinct cast({name} as varchar) as v from {identifier(table.name)} "
                f"where {name} is not null limit {_LOOKED_AT})"
            ).fetchall()[0],
        )
    )
