"""The records of a text file as they are, kept in a table: fields not yet read as anything."""

from dataclasses import dataclass

import duckdb

from kgather._loaders import delimited, fields
from kgather._loaders.expressions import first_row, is_blank
from kgather._loaders.lines import LineReader, registered
from kgather._loaders.options import LoadOptions
from kgather._loaders.sources import Source

_LINES, _KEPT = "__kgather_record_lines", "__kgather_kept_record_lines"


@dataclass(frozen=True)
class Frame:
    """What separates the fields, how many a record has, and the line that names them (0: none does)."""

    delimiter: str
    count: int
    header_line: int


def keep(
    con: duckdb.DuckDBPyConnection,
    source: Source,
    options: LoadOptions,
    frame: Frame,
    table: str,
    *,
    as_written: bool = False,
) -> None:
    """Make a table of `number` (of the record, from 1), `line`, `f` (its fields, a list of texts) and `fault`.

    `fault` says what is wrong with a record that cannot be used, and is null of the others. With `as_written` there is
    `w`, the fields with their quotes. Blank lines are no records.

    Raises:
        InputError: The file is damaged.
    """
    delimiter, count = frame.delimiter, frame.count
    try:
        with registered(con, _LINES, LineReader(source, options)):
            con.execute(f"create or replace temp table {_KEPT} as select line, text from {_LINES}")
        lines = f"(select line, text from {_KEPT} where line > {frame.header_line})"
        opens = f"contains(text, '\"') and {fields.is_open_sql('text', delimiter)}"
        if first_row(con, f"select 1 from {lines} where {opens} limit 1"):
            lines = f"({delimited.joined_sql(_KEPT, delimiter, count, frame.header_line, 'true')})"
        # A line of tabs only is a row of which nothing is known. As it is written, only an empty line is none.
        blank = "text <> ''" if as_written else f"not ({is_blank('text')}) or (len(f) = {count} and {count} > 1)"
        written = f", {fields.written_sql('text', delimiter)} as w" if as_written else ""
        con.execute(
            f"create or replace temp table {table} as select row_number() over (order by line) as number, line, f, "
            f"case when f is null then case when {opens} then '{delimited.OPEN_QUOTE}' "
            f"else '{delimited.ODD_QUOTE}' end "
            f"when len(f) <> {count} then 'it has ' || len(f) || ' fields, not {count}' end as fault"
            f"{', w' if as_written else ''} "
            f"from (select line, text, {fields.fields_sql('text', delimiter)} as f{written} from {lines} "
            f"where line > {frame.header_line}) "
            f"where {blank}"
        )
    finally:
        con.execute(f"drop table if exists {_KEPT}")
