"""Reading files with one rating a line and a separator between the fields."""

from collections.abc import Callable, Sequence

import duckdb

from kgather._loaders import fields, values
from kgather._loaders.expressions import is_blank
from kgather._loaders.layout import LONGEST_RECORD, Layout
from kgather._loaders.lines import LineReader, registered
from kgather._loaders.store import IdRole, Parsed
from kgather._sql_text import literal

_LINES = "__kgather_lines"
_KEPT = "__kgather_kept_lines"
_RECORDS = "__kgather_records"
_SPANS_MARK = "kgather: a quote spans lines"
OPEN_QUOTE = "quote is never closed"
ODD_QUOTE = "quote is not at the ends of a field"


def parse(
    con: duckdb.DuckDBPyConnection,
    open_reader: Callable[[], LineReader],
    layout: Layout,
    likely_text: frozenset[IdRole],
    insert: Callable[[Parsed], int],
) -> int:
    """Give the SQL of a delimited file to `insert`.

    The lines are streamed. Only where a quoted field seems to span lines, they are kept for a while and put
    together first.

    Args:
        con: The connection.
        open_reader: Starts to read the file.
        layout: How its lines are read.
        likely_text: The roles whose ids are texts in the sample.
        insert: Runs the SQL.

    Returns:
        What `insert` returns.

    Raises:
        InputError: The file is damaged.
    """
    try:
        with registered(con, _LINES, open_reader()):
            return insert(Parsed(rows_sql(_LINES, layout, whole=False), likely_text=likely_text))
    except duckdb.Error as error:
        if _SPANS_MARK not in str(error):
            raise
    try:
        with registered(con, _LINES, open_reader()):
            con.execute(f"create or replace temp table {_KEPT} as select line, text from {_LINES}")
        con.execute(f"create or replace temp table {_RECORDS} as {records_sql(_KEPT, layout)}")
        con.execute(f"drop table {_KEPT}")
        return insert(Parsed(rows_sql(_RECORDS, layout, whole=True), likely_text=likely_text))
    finally:
        con.execute(f"drop table if exists {_KEPT}")
        con.execute(f"drop table if exists {_RECORDS}")


def rows_sql(lines: str, layout: Layout, *, whole: bool) -> str:
    """SQL: what `Parsed.sql` asks for, from a relation of `line` and `text`.

    Args:
        lines: The relation.
        layout: How its lines are read.
        whole: Its rows are whole records; otherwise a quote that is not closed stops the query.
    """

    def field(position: int) -> str:
        past = position - layout.count
        if past < 0:
            return f"f[{position + 1}]"
        return literal(layout.appended[past]) if past < len(layout.appended) else "'1'"

    chosen = layout.columns
    unclosed = f"'{OPEN_QUOTE}'" if whole else f"error('{_SPANS_MARK}')"
    fault = f"case when {fields.is_open_sql('text', layout.delimiter)} then {unclosed} else '{ODD_QUOTE}' end"
    split = (
        f"select line, text, {fields.fields_sql('text', layout.delimiter)} as f from {lines} "
        f"where line > {layout.header_line} and not ({is_blank('text')})"
    )
    texts = (
        f"select line, text, {field(chosen.user)} as u, {field(chosen.item)} as i, {field(chosen.rating)} as r, "
        + (field(chosen.time) if chosen.time is not None else "null::varchar")
        + f" as t, case when f is null then {fault} when len(f) <> {layout.count} "
        f"then 'malformed line: expected {layout.count} fields, found ' || len(f) end as fault from ({split})"
    )
    has_time = chosen.time is not None
    rating = layout.written.sql("r", decimal_comma=layout.decimal_comma)
    return checked_sql(texts, rating, has_time=has_time, missing=layout.missing)


def checked_sql(texts: str, rating: str, *, has_time: bool, missing: Sequence[str]) -> str:
    """SQL: what `Parsed.sql` asks for, from SQL of `line`, `text` and the texts `u`, `i`, `r`, `t`, with `fault`.

    Args:
        texts: A SELECT. `fault` says what is wrong with a line whose fields cannot be told; null where they can.
        rating: SQL of `r` as a number.
        has_time: Whether `t` holds times.
        missing: Texts that stand for "no id".
    """
    numbers = (
        f"select *, {rating} as rating, "
        f"{'try_cast(t as bigint)' if has_time else 'null::bigint'} as epoch from ({texts})"
    )
    time = values.time_sql("t", "epoch") if has_time else "null::timestamp"
    times = f"select *, {time} as rated_at from ({numbers})"
    time_problem = (
        f"when rated_at is null and not {values.no_time_sql('t')} then '{values.TIME_NOT_READABLE}'" if has_time else ""
    )
    return (
        "select line, text as raw, u as user_id, i as item_id, rating, rated_at, "
        "case when fault is not null then fault "
        f"when {values.is_missing('u', missing)} then '{values.USER_EMPTY}' "
        f"when {values.is_missing('i', missing)} then '{values.ITEM_EMPTY}' "
        f"when {values.is_too_long('u', 'i')} then '{values.ID_TOO_LONG}' "
        f"{values.rating_problem_sql('rating')} {time_problem} end as problem from ({times})"
    )


def records_sql(lines: str, layout: Layout) -> str:
    """SQL: lines put together to records where a quoted field spans lines.

    A line that ends inside a quoted field is joined with the lines up to the next one with an odd number of
    quotes, if the whole has the right number of fields and no line in between is a rating by itself; so a
    stray quote costs its own line only.

    Args:
        lines: A table of `line` and `text`.
        layout: How its lines are read.
    """
    whole = "true"
    if layout.columns.rating < layout.count:
        text = f"fields[{layout.columns.rating + 1}]"
        whole = f"{layout.written.sql(text, decimal_comma=layout.decimal_comma)} is not null"
    return joined_sql(lines, layout.delimiter, layout.count, layout.header_line, whole)


def joined_sql(lines: str, delimiter: str, count: int, header_line: int, whole: str) -> str:
    """SQL: lines put together to records where a quoted field spans lines, for any kind of record.

    Args:
        lines: A table of `line` and `text`.
        delimiter: What separates the fields.
        count: The number of fields of a record.
        header_line: The number of the line that names the columns, or 0; it is joined with none.
        whole: SQL of `fields`, a list of `count` texts: whether they are a record by themselves, which a line
            inside a quoted field is not.
    """
    return f"""
        with odd as (
            select line, lead(line) over (order by line) as last,
            {fields.is_open_sql("text", delimiter)} as opens
            from {lines}
            where line <> {header_line}
            and contains(text, '"') and (length(text) - length(replace(text, '"', ''))) % 2 = 1
        ), spans as (
            select line as first, last, unnest(range(line, last + 1)) as line
            from odd where opens and last - line < {LONGEST_RECORD}
        ), inner_lines as (
            select first, last, line, text, line > first and line < last as inside,
            case when line > first and line < last then {fields.fields_sql("text", delimiter)} end as fields
            from spans join {lines} using (line)
        ), joined as (
            select first, last, string_agg(text, chr(10) order by line) as text,
            bool_or(inside and len(fields) = {count} and {whole}) as holds_records
            from inner_lines group by first, last
        ), whole as (
            select first, last, text from joined
            where not coalesce(holds_records, false)
            and len({fields.fields_sql("text", delimiter)}) = {count}
        ), numbered as (
            select line, row_number() over (order by line) as number from odd
        ), chained as (
            select whole.*, number - row_number() over (order by number) as chain,
            from whole join numbered on line = first
        ), chosen as (
            select first, last, text from chained
            qualify row_number() over (partition by chain order by first) % 2 = 1
        ), taken as (
            select unnest(range(first, last + 1)) as line from chosen
        )
        select line, text from {lines} where line not in (select line from taken)
        union all select first as line, text from chosen
    """
