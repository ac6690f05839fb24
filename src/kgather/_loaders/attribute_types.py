"""The types of attributes: told from the texts of text files, simplified for typed tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb

from kgather._loaders import tables, values
from kgather._loaders.expressions import first_row, trimmed
from kgather._loaders.user_rows import Field, UserRows

AttributeType = Literal["BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR"]

_NO_VALUE = "('null', 'none', 'nan', 'nat', '\\n', 'na', 'n/a')"

# Numbers as programs write them. Codes are none: 02139, +49, 12E5.
_NUMBER = r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-][0-9]+)?"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = rf"{_DATE}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?"

# For each type SQL that tells whether a text `v`, trimmed, is of that type and loses nothing in it.
_TESTS: dict[AttributeType, str] = {
    "BIGINT": values.is_integer_sql("v"),
    # Beyond so many digits a number is a code, or more exact than a DOUBLE.
    "DOUBLE": f"regexp_full_match(v, '{_NUMBER}') and coalesce(isfinite(try_cast(v as double)), false) "
    "and length(ltrim(regexp_replace(regexp_replace(v, '[eE].*', ''), '[^0-9]', '', 'g'), '0')) <= 17 "
    f"and (not regexp_full_match(v, '-?[0-9]+') or coalesce(abs(try_cast(v as hugeint)) <= {2**53}, false))",
    "BOOLEAN": "lower(v) in ('true', 'false')",
    "DATE": f"regexp_full_match(v, '{_DATE}') and try_cast(v as date) is not null",
    "TIMESTAMP": f"regexp_full_match(v, '{_DATE}|{_TIMESTAMP}') and try_cast(v as timestamp) is not null",
}


@dataclass(frozen=True)
class Attribute:
    """A column of user_attributes: its name, its type, its SQL, and how many texts were taken for no value."""

    name: str
    type: AttributeType
    sql: str
    no_values: int = 0


def attributes(con: duckdb.DuckDBPyConnection, rows: UserRows, positions: Sequence[int]) -> dict[int, Attribute | None]:
    """Tell the types of some columns.

    Args:
        con: The connection.
        rows: The table.
        positions: Which columns, counted from 0.

    Returns:
        For each position its attribute; None for a type that attributes cannot have, as a list.
    """
    if not positions:
        return {}
    if rows.fields[positions[0]].type is None:
        return dict(_of_texts(con, rows, positions))
    return {at: _of_typed(con, rows.relation, rows.fields[at]) for at in positions}


def _of_texts(con: duckdb.DuckDBPyConnection, rows: UserRows, positions: Sequence[int]) -> dict[int, Attribute]:
    tests = ", ".join(f"count_if({test})" for test in _TESTS.values())
    wanted = ", ".join(str(at + 1) for at in positions)
    counts = con.execute(
        f"select place, count(*), count_if(lower(v) in {_NO_VALUE}), {tests} from ("
        f"select place, {trimmed('text')} as v from ("
        f"select unnest(f) as text, generate_subscripts(f, 1) as place from {rows.relation}"
        f") where text <> '' and place in ({wanted})) where v <> '' group by place"
    ).fetchall()
    found: dict[int, Attribute] = {}
    counted = {int(place) - 1: numbers for place, *numbers in counts}
    for at in positions:
        present, no_values, *good = counted.get(at, [0, 0] + [0] * len(_TESTS))
        name, text = rows.fields[at].name, f"nullif({trimmed(rows.fields[at].sql)}, '')"
        for type_name, number in zip(_TESTS, good, strict=True):
            # A word such as NA stands for no value among numbers and dates; among texts it is a text.
            if number and number + no_values == present:
                value = f"case when lower({text}) not in {_NO_VALUE} then cast({text} as {type_name}) end"
                found[at] = Attribute(name, type_name, value, no_values)
                break
        else:
            found[at] = Attribute(name, "VARCHAR", text)
    return found


def _of_typed(con: duckdb.DuckDBPyConnection, relation: str, field: Field) -> Attribute | None:
    column, name = field.sql, field.name
    family = tables.type_family(field.type or "")
    if family in tables.INTEGERS:
        return Attribute(name, "BIGINT", f"{column}::bigint")
    if family in tables.FLOATS:
        return Attribute(name, "DOUBLE", f"case when not isnan({column}) then {column}::double end")
    if family in (*tables.WIDE_INTEGERS, "DECIMAL"):
        if _all(con, relation, column, f"try_cast({column} as bigint) = {column}"):
            return Attribute(name, "BIGINT", f"{column}::bigint")
        if _all(con, relation, column, f"try_cast({column}::double as {field.type}) = {column}"):
            return Attribute(name, "DOUBLE", f"{column}::double")
        return Attribute(name, "VARCHAR", f"{column}::varchar")
    if family in tables.TEXTS:
        text = f"{column}::varchar"
        return Attribute(name, "VARCHAR", f"nullif({trimmed(text)}, '')")
    if family == "BOOLEAN":
        return Attribute(name, "BOOLEAN", column)
    if family == "DATE":
        return Attribute(name, "DATE", column)
    if family in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"):
        zoned = f"{column}::timestamptz"
        return Attribute(name, "TIMESTAMP", f"case when isfinite({zoned}) then make_timestamp(epoch_us({zoned})) end")
    if family in tables.TIMES:
        return Attribute(name, "TIMESTAMP", f"{column}::timestamp")
    return None


def _all(con: duckdb.DuckDBPyConnection, relation: str, column: str, test: str) -> bool:
    row = first_row(con, f"select coalesce(bool_and(coalesce({test}, {column} is null)), true) from {relation}")
    return row is not None and bool(row[0])
