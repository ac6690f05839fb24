"""Reading tables that have columns with types already: Parquet files and tables of DuckDB files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from kgather._errors import InputError
from kgather._loaders import columns, ratings_written, values
from kgather._loaders.columns import Columns, Role
from kgather._loaders.expressions import as_no_pattern, first_row
from kgather._loaders.options import MISSING, LoadOptions
from kgather._loaders.ratings_written import NUMBERS, Written
from kgather._loaders.sources import Source
from kgather._loaders.store import IdRole, Parsed
from kgather._sql_text import identifier, literal

_ALIAS = "__kgather_input"
_SAMPLE_ROWS = 500
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
WIDE_INTEGERS = ("UBIGINT", "HUGEINT", "UHUGEINT")
FLOATS = ("FLOAT", "DOUBLE")
TEXTS = ("VARCHAR", "UUID", "ENUM")
_VALUES = (*INTEGERS, *WIDE_INTEGERS, *FLOATS, "DECIMAL", *TEXTS)
TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE", "TIMESTAMP WITH TIME ZONE")


@dataclass(frozen=True)
class Table:
    """A relation that can be read: `relation` is SQL for FROM, `row` is SQL for the number of a row."""

    where: str
    relation: str
    row: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    columns: Columns
    written: Written = NUMBERS

    def column_names(self) -> dict[str, str | None]:
        """For each role its column."""
        chosen = {role: self.columns.position(role) for role in columns.ROLES}
        return {role: None if at is None or at >= len(self.names) else self.names[at] for role, at in chosen.items()}


@contextmanager
def opened(con: duckdb.DuckDBPyConnection, source: Source, options: LoadOptions) -> Iterator[Table]:
    """Open a Parquet file or a table of a DuckDB file, the latter read-only.

    Args:
        con: The connection.
        source: The input, of kind parquet or duckdb.
        options: What was said about the columns.

    Raises:
        InputError: The file is damaged or in use, the table is missing or not named though there are several,
            the columns are not found or of types that cannot be read, or there are no rows.
    """
    with related(con, source, "file_row_number = true, hive_partitioning = false") as (relation, row):
        if source.partitions:
            names = {str(each[0]).lower() for each in con.execute(f"describe select * from {relation}").fetchall()}
            further = [pair for pair in source.partitions.items() if pair[0].lower() not in names]
            given = "".join(f"{literal(value)} as {identifier(key)}, " for key, value in further)
            relation = f"(select {given}* from {relation})"
        yield described(con, source.given, relation, row, options)


@contextmanager
def related(con: duckdb.DuckDBPyConnection, source: Source, reading: str) -> Iterator[tuple[str, str]]:
    """Give SQL for FROM and for the number of a row.

    Args:
        con: The connection.
        source: The input, of kind parquet or duckdb.
        reading: How DuckDB's reader of Parquet files is called; `file_row_number = true` is needed.

    Raises:
        InputError: The file is damaged or in use, or the table is missing or not named though there are several.
    """
    if source.kind == "parquet":
        _refuse_alike(source)
        relation = f"read_parquet({literal(as_no_pattern(source.path))}, {reading})"
        with _readable(source, "Parquet file: it is damaged or cut off"):
            yield relation, "file_row_number + 1"
    else:
        with _attached(con, source) as database:
            relation = f"{identifier(database)}.{_table(con, source, database)}"
            with _readable(source, "table: its database is damaged, or it is a view that leads elsewhere"):
                yield relation, "row_number() over ()"


def _refuse_alike(source: Source) -> None:
    """DuckDB reads the second of two columns of one name under another, which nobody gave it."""
    try:
        names = pq.read_schema(source.path).names
    except (OSError, pa.ArrowException):  # DuckDB says what it is
        return
    columns.distinct_names(source.given, names)


def parsed(con: duckdb.DuckDBPyConnection, table: Table, missing: Sequence[str] = MISSING) -> Parsed:
    """The SQL of a table.

    Args:
        con: The connection.
        table: An open table.
        missing: Texts that stand for "no id".
    """
    chosen = table.columns
    integers: set[IdRole] = set()
    ids: dict[str, str] = {}
    positions: dict[IdRole, int] = {"user": chosen.user, "item": chosen.item}
    for role, position in positions.items():
        expression, is_integer = id_sql(con, table.relation, identifier(table.names[position]), table.types[position])
        ids[role] = expression
        if is_integer:
            integers.add(role)
    quoted = [identifier(each) for each in table.names]
    places = (chosen.user, chosen.item, chosen.rating, chosen.time)
    raw_columns = [at for at in places if at is not None and at < len(quoted)]
    # Texts are only made of rows that have a problem.
    given = ", ".join(f"{quoted[at]} as raw_{at}" for at in raw_columns)
    raw = "concat_ws(',', " + ", ".join(f"coalesce(raw_{at}::varchar, '')" for at in raw_columns) + ")"
    time, time_problem = _time(table)
    inner = (
        f"select {table.row} as line, {given}, {ids['user']} as user_id, {ids['item']} as item_id, "
        f"{_rating(table)} as rating, {time} as rated_at, {time_problem} as unread_time from {table.relation}"
    )
    empty = {
        role: f"{role}_id is null" + ("" if role in integers else f" or {values.is_missing(f'{role}_id', missing)}")
        for role in positions
    }
    # Most rows are fine: one condition says so, and the reasons are only asked of the others.
    fine = f"not ({empty['user']}) and not ({empty['item']}) and isfinite(rating) and not unread_time"
    checked = (
        f"select *, case when {fine} then null when {empty['user']} then '{values.USER_EMPTY}' "
        f"when {empty['item']} then '{values.ITEM_EMPTY}' "
        f"{values.rating_problem_sql('rating')} "
        f"when unread_time then '{values.TIME_NOT_READABLE}' end as problem from ({inner})"
    )
    sql = (
        f"select line, case when problem is not null then {raw} end as raw, user_id, item_id, rating, rated_at, "
        f"problem from ({checked})"
    )
    return Parsed(sql, frozenset(integers))


def id_sql(con: duckdb.DuckDBPyConnection, relation: str, column: str, type_name: str) -> tuple[str, bool]:
    """SQL: an id, and whether it is a BIGINT (otherwise a VARCHAR).

    Args:
        con: The connection.
        relation: SQL for FROM.
        column: SQL of the column, of any type that `can_be_id` allows.
        type_name: Its type.
    """
    family = type_family(type_name)
    if family in INTEGERS:
        return f"{column}::bigint", True
    if family in (*FLOATS, *WIDE_INTEGERS, "DECIMAL"):
        # NaN is no id, as null is none; floats are exact up to 2**53 only.
        number = f"try_cast({column} as bigint)"
        limit = f" and abs({number}) <= {2**53}" if family in FLOATS else ""
        fits = f"case when {number} is null then {_is_nan(column)} else {number} = {column}{limit} end"
        row = first_row(con, f"select coalesce(bool_and({fits}), true) from {relation}")
        if row is not None and row[0]:
            return number, True
        return f"case when not {_is_nan(column)} then cast({column} as varchar) end", False
    return f"cast({column} as varchar)", False


def _is_nan(column: str) -> str:
    """SQL: whether a number is NaN. The statistics in Parquet files leave NaN out, and isnan() believes them."""
    return f"(cast({column} as varchar) = 'nan')"


def can_be_id(type_name: str) -> bool:
    """Whether a column of this type can hold ids; the same types can hold ratings."""
    return type_family(type_name) in _VALUES


def _rating(table: Table) -> str:
    """A rating as SQL, DOUBLE."""
    if table.columns.rating >= len(table.names):
        return "1::double"
    column, family = identifier(table.names[table.columns.rating]), type_family(table.types[table.columns.rating])
    if family in TEXTS:
        return table.written.sql(f"cast({column} as varchar)")
    if family in FLOATS:
        # By way of a text where it is not an ordinary number, so that isfinite() sees it: see _is_nan.
        unusual = f"try_cast(cast({column} as varchar) as double)"
        return f"case when try_cast({column} as bigint) is null then {unusual} else {column}::double end"
    return f"try_cast({column} as double)"


def _time(table: Table) -> tuple[str, str]:
    """A time as SQL, and SQL for whether it is there but cannot be read."""
    position = table.columns.time
    if position is None:
        return "null::timestamp", "false"
    column, family = identifier(table.names[position]), type_family(table.types[position])
    if family == "TIMESTAMP WITH TIME ZONE":
        read = f"make_timestamp(epoch_us({column}))"
        return (
            f"case when isfinite({column}) then {read} end",
            f"{column} is not null and not isfinite({column})",
        )
    if family in TIMES:
        read = f"try_cast({column} as timestamp)"
        return (
            f"case when isfinite({column}) then {read} end",
            f"{column} is not null and not isfinite({column})",
        )
    if family in TEXTS:
        text = f"cast({column} as varchar)"
        read = values.time_sql(text, f"try_cast({text} as bigint)")
        return read, f"{text} is not null and not {values.no_time_sql(text)} and ({read}) is null"
    number = f"try_cast({column} as bigint)"
    read = values.epoch_sql(number)
    absent = f"{column} is null" + (f" or {_is_nan(column)}" if family in FLOATS else "")
    return read, f"not ({absent}) and ({read}) is null"


def described(con: duckdb.DuckDBPyConnection, where: str, relation: str, row: str, options: LoadOptions) -> Table:
    """Choose the columns of a relation by their names.

    Args:
        con: The connection.
        where: What it is called in messages.
        relation: SQL for FROM.
        row: SQL for the number of a row.
        options: What was said about the columns.

    Raises:
        InputError: The columns are not found or of types that cannot be read, or there are no rows.
    """
    found = con.execute(f"describe select * from {relation}").fetchall()
    if row.startswith("file_row_number"):
        found = found[:-1]
    names = tuple(str(each[0]) for each in found)
    types = tuple(str(each[1]) for each in found)
    chosen = columns.choose_by_name(where, names, options)
    allowed: dict[Role, tuple[str, ...]] = {
        "user": _VALUES,
        "item": _VALUES,
        "rating": _VALUES,
        "time": (*_VALUES, *TIMES),
    }
    for role in columns.ROLES:
        at = chosen.position(role)
        if at is not None and at < len(names) and type_family(types[at]) not in allowed[role]:
            message = (
                f"{where}: column '{names[at]}' has the type {types[at][:60]}, which cannot be read as "
                f"a {role}. Say which column to use with {columns.option_name(role)}."
            )
            raise InputError(message)
    if first_row(con, f"select 1 from {relation} limit 1") is None:
        message = f"{where} has no rows, there are no ratings in it."
        raise InputError(message)
    written = Written(words=options.words)
    if chosen.rating < len(names) and type_family(types[chosen.rating]) in TEXTS:
        column = identifier(names[chosen.rating])
        sample = con.execute(f"select cast({column} as varchar) from {relation} limit {_SAMPLE_ROWS}").fetchall()
        written = ratings_written.written([text for (text,) in sample if text is not None], options.words)
    return Table(where, relation, row, names, types, chosen, written)


def type_family(type_name: str) -> str:
    """A type without what stands in parentheses, and LIST for lists."""
    upper = type_name.upper()
    if upper.endswith("]"):
        return "LIST"
    return upper.split("(", 1)[0]


@contextmanager
def _readable(source: Source, what: str) -> Iterator[None]:
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as error:
        marks = (*values.TEXT_ID_MARK.values(), "No space left")
        if any(mark in str(error) for mark in marks):
            raise
        message = f"{source.given} is not a readable {what}."
        raise InputError(message) from None


@contextmanager
def _attached(con: duckdb.DuckDBPyConnection, source: Source) -> Iterator[str]:
    path = source.path.resolve()
    for database, other in con.execute("select database_name, path from duckdb_databases()").fetchall():
        if other and path.exists() and _same_file(other, source):
            yield str(database)
            return
    try:
        con.execute(f"attach {literal(str(path))} as {identifier(_ALIAS)} (type duckdb, read_only)")
    except duckdb.Error as error:
        if "lock on file" in str(error):
            message = f"{source.given} is in use by another program. Close it there and try again."
        else:
            message = (
                f"{source.given} cannot be opened as a DuckDB database: it is damaged, encrypted or of a newer version."
            )
        raise InputError(message) from None
    try:
        yield _ALIAS
    finally:
        con.execute(f"detach {identifier(_ALIAS)}")


def _same_file(other: str, source: Source) -> bool:
    try:
        return source.path.samefile(other)
    except OSError:
        return False


def _table(con: duckdb.DuckDBPyConnection, source: Source, database: str) -> str:
    found = con.execute(
        "select schema_name, table_name from duckdb_tables() where database_name = $1 and not internal "
        "union all "
        "select schema_name, view_name from duckdb_views() where database_name = $1 and not internal "
        "order by 1, 2",
        [database],
    ).fetchall()
    listed = ", ".join(each if schema == "main" else f"{schema}.{each}" for schema, each in found[:40])
    if not found:
        message = f"{source.given} is a DuckDB database without tables, there are no {source.holds} in it."
        raise InputError(message)
    if source.table is None:
        if len(found) > 1:
            message = (
                f"{source.given} holds {len(found)} tables: {listed}. Say which, as {source.path.name}:{found[0][1]}."
            )
            raise InputError(message)
        return f"{identifier(found[0][0])}.{identifier(found[0][1])}"
    asked = source.table.lower()
    for schema, each in found:
        if asked == f"{schema}.{each}".lower() or (schema == "main" and asked == each.lower()):
            return f"{identifier(schema)}.{identifier(each)}"
    anywhere = [(schema, each) for schema, each in found if each.lower() == asked]
    if len(anywhere) == 1:
        return f"{identifier(anywhere[0][0])}.{identifier(anywhere[0][1])}"
    message = f"{source.given}: there is no table '{source.table}'. The tables are: {listed}."
    raise InputError(message)
