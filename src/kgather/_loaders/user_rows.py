"""Reading tables that have one row a user: text files, Parquet files and tables of DuckDB files.

Their columns are not known beforehand, and a row that cannot be read is a user that would be lost. So a table is
read whole and as it is, or refused.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from kgather._errors import InputError
from kgather._loaders import columns, layout, records, tables, values
from kgather._loaders.expressions import first_row
from kgather._loaders.lines import LineReader, sample_lines
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._loaders.sources import Source
from kgather._sql_text import identifier

ROWS = "__kgather_user_rows"
SAMPLE_LINES = 500

# The surest names first. Fewer than for ratings: these tables have other columns, and a word such as "student" may
# be an occupation in a first line that is no header.
_USUAL_NAMES = (
    columns.SYNONYMS["user"][0],
    frozenset({"user", "usr", "id"}),
    frozenset({"tupleid", "rowid", "recordid", "indexlevel0"}),
)


@dataclass(frozen=True)
class Options:
    """What was said about a table, and how the options are called that say it.

    `also_users` are further names for the column of users.
    """

    load: LoadOptions
    user_flag: str = "--user-column"
    delimiter_flag: str = "--delimiter"
    header_flag: str = "--header"
    also_users: frozenset[str] = frozenset()

    def names_said(self, line: Sequence[str]) -> bool:
        """Whether a line holds the names of columns that were said: any, or where these are numbers all artifacts."""
        found = {text.strip().casefold() for text in line}
        artifacts = {each.strip().casefold() for each in self.load.artifact_columns or () if each.strip() != "*"}
        said = artifacts | {(self.load.user_column or "").strip().casefold()} - {""}
        words = {each for each in said if not each.isdecimal()}
        return bool(words & found) or bool(artifacts and artifacts <= found)

    def usual_names(self) -> tuple[frozenset[str], ...]:
        """The names that the column of users usually has, the surest first."""
        return (frozenset(map(columns.plain, self.also_users)), *_USUAL_NAMES)


@dataclass(frozen=True)
class Field:
    """A column: its name, its type (None: texts of a text file) and its SQL in the relation of the rows."""

    name: str
    type: str | None
    sql: str


@dataclass(frozen=True)
class UserRows:
    """A table that was read.

    `relation` is a table with `number` (of the row, from 1), `line` (of the file; of a table the number of the row)
    and what the fields' SQL needs. `unit` is what `line` counts, for messages.
    """

    where: str
    relation: str
    unit: str
    fields: tuple[Field, ...]
    count: int
    format: str
    compression: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [field.name for field in self.fields]


@dataclass(frozen=True)
class UserIds:
    """The ids of the users as SQL: BIGINT or VARCHAR, never null and no two the same."""

    sql: str
    is_bigint: bool
    all_integers: bool

    def as_type(self, target: IdType) -> str:
        """SQL: the ids in the type that the ratings' users have; null where an id has no such form."""
        if target == "VARCHAR":
            return f"cast({self.sql} as varchar)"
        if self.is_bigint:
            return self.sql
        return f"case when {values.is_integer_sql(self.sql)} then try_cast({self.sql} as bigint) end"


ROW_NUMBERS = UserIds("number", is_bigint=True, all_integers=True)


@contextmanager
def opened(con: duckdb.DuckDBPyConnection, source: Source, options: Options) -> Iterator[UserRows]:
    """Read a table; it can be queried until the context is left.

    Args:
        con: The connection.
        source: The input.
        options: What was said about it.

    Raises:
        InputError: It cannot be read, a line is malformed, two columns have one name, or there are no rows.
    """
    try:
        is_table = source.kind in ("parquet", "duckdb")
        rows = _read_table(con, source) if is_table else _read_text(con, source, options)
        if not rows.count:
            message = f"{source.given} has no rows, there are no {source.holds} in it."
            raise InputError(message)
        yield rows
    finally:
        con.execute(f"drop table if exists {ROWS}")


def find_users(rows: UserRows, options: Options, taken: frozenset[int] = frozenset()) -> int | None:
    """The position, from 0, of the column of users, or None.

    Args:
        rows: The table.
        options: What was said about it.
        taken: The positions of columns that hold something else.

    Raises:
        InputError: The column that was named is not there or is taken, or two columns fit equally well.
    """
    names = rows.names
    said = (options.load.user_column or "").strip()
    if said:
        found = columns.position_of(rows.where, names, said)
        if found is None and said.isdecimal() and 1 <= int(said) <= len(names):
            found = int(said) - 1
        if found is None:
            message = f"{rows.where}: no column '{said}' for the users ({options.user_flag}). {known_columns(rows)}"
            raise InputError(message)
        if found in taken:
            message = (
                f"{rows.where}: the users and an artifact are both taken from column {found + 1}. "
                f"Say which column holds the users with {options.user_flag}."
            )
            raise InputError(message)
        return found
    if rows.header is False:
        return None
    plain = [columns.plain(name) for name in names]
    for tier in options.usual_names():
        fits = [at for at, name in enumerate(plain) if name in tier and at not in taken]
        if len(fits) > 1:
            rivals = " and ".join(f"'{names[at]}'" for at in fits)
            message = f"{rows.where}: {rivals} fit the users equally well. Say which with {options.user_flag}."
            raise InputError(message)
        if fits:
            return fits[0]
    # A first column without a name is what data frames are written with: the labels of the rows.
    return 0 if rows.header and names[0] == "column_1" and 0 not in taken else None


def known_columns(rows: UserRows) -> str:
    """A sentence for messages: which columns there are."""
    if rows.header is False:
        return (
            f"No line was taken for a header, so the columns are called column_1 to column_{len(rows.fields)}. "
            "If the first line names them, say so."
        )
    return f"The columns are: {columns.listed(rows.names)}."


def user_ids(con: duckdb.DuckDBPyConnection, rows: UserRows, position: int, user_flag: str) -> UserIds:
    """The ids of the users, looked at: every row has one and no two are the same.

    Args:
        con: The connection.
        rows: The table.
        position: The column of users.
        user_flag: The option that names it, for messages.

    Raises:
        InputError: An id is missing or occurs twice, or the column cannot hold ids.
    """
    field = rows.fields[position]
    if field.type is None:
        sql, is_bigint = field.sql, False
    elif tables.can_be_id(field.type):
        sql, is_bigint = tables.id_sql(con, rows.relation, field.sql, field.type)
    else:
        message = (
            f"{rows.where}: column '{field.name}' has the type {field.type[:60]}, which cannot be read as a user. "
            f"Say which column to use with {user_flag}."
        )
        raise InputError(message)
    if not is_bigint:
        sql = f"nullif({values.folded(f'({sql})')}, '')"
    missing, line = _counted(con, f"select count(*), min(line) from {rows.relation} where {sql} is null")
    if missing:
        message = (
            f"{rows.where}: {rows.unit} {line} has no user id{_of_all(missing, 'rows')}. "
            f"Every row needs one; if another column holds them, name it with {user_flag}."
        )
        raise InputError(message)
    repeated, line = _counted(
        con,
        "select count(*), min(line) from (select line, row_number() over (partition by id order by line) as nth "
        f"from (select line, {sql} as id from {rows.relation})) where nth = 2",
    )
    if repeated:
        message = (
            f"{rows.where}: {rows.unit} {line} has a user id for the second time{_of_all(repeated, 'user ids')}. "
            f"A user has one row; if another column holds the users, name it with {user_flag}."
        )
        raise InputError(message)
    all_integers = is_bigint or bool(
        _counted(
            con, f"select bool_and({values.is_integer_sql('id')}), 0 from (select {sql} as id from {rows.relation})"
        )[0]
    )
    return UserIds(sql, is_bigint, all_integers)


def _of_all(count: int, what: str) -> str:
    return f" ({count:,} {what} in all are such)" if count > 1 else ""


def _counted(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, int]:
    row = first_row(con, sql)
    return (int(row[0]), int(row[1] or 0)) if row else (0, 0)


def _read_table(con: duckdb.DuckDBPyConnection, source: Source) -> UserRows:
    # Without the columns that DuckDB makes of folders named like "year=2020".
    reading = "file_row_number = true, hive_partitioning = false"
    with tables.related(con, source, reading) as (relation, row):
        described = con.execute(f"describe select * from {relation}").fetchall()
        if source.kind == "parquet":
            described = [each for each in described if each[0] != "file_row_number"]
        names = columns.distinct_names(source.given, [str(each[0]) for each in described])
        found = tuple(Field(name, str(described[at][1]), f"c{at}") for at, name in enumerate(names))
        chosen = "".join(f", {identifier(each[0])} as c{at}" for at, each in enumerate(described))
        con.execute(
            f"create or replace temp table {ROWS} as select line as number, * "
            f"from (select {row} as line{chosen} from {relation})"
        )
    return UserRows(source.given, ROWS, "row", found, _row_count(con), source.kind)


def _read_text(con: duckdb.DuckDBPyConnection, source: Source, options: Options) -> UserRows:
    encoding = options.load.encoding
    sample = sample_lines(LineReader(source, options.load), SAMPLE_LINES)
    if not sample:
        message = f"{source.given} has only blank lines, there are no {source.holds} in it."
        raise InputError(message)
    delimiter, count, header_line, names = _layout(source.given, sample, options)
    records.keep(con, source, options.load, records.Frame(delimiter, count, header_line), ROWS)
    faulty = first_row(con, f"select count(*), min(line), arg_min(fault, line) from {ROWS} where fault is not null")
    if faulty and faulty[0]:
        message = (
            f"{source.given}: line {faulty[1]} is malformed{_of_all(faulty[0], 'lines')}: {faulty[2]}. "
            f"Mend it, or say what separates the fields with {options.delimiter_flag}."
        )
        raise InputError(message)
    count_rows = _row_count(con)
    if not count_rows:
        message = f"{source.given} holds only a header, there are no {source.holds} in it."
        raise InputError(message)
    return UserRows(
        where=source.given,
        relation=ROWS,
        unit="line",
        fields=tuple(Field(name, None, f"f[{at}]") for at, name in enumerate(names, 1)),
        count=count_rows,
        format="tsv" if delimiter == "\t" else "csv",
        compression=None if source.kind == "text" else source.kind,
        encoding=encoding,
        delimiter=delimiter,
        header=header_line > 0,
    )


def _row_count(con: duckdb.DuckDBPyConnection) -> int:
    return _counted(con, f"select count(*), 0 from {ROWS}")[0]


def _layout(where: str, sample: Sequence[layout.Line], options: Options) -> tuple[str, int, int, list[str]]:
    """The delimiter, the number of fields, the line of the header (0: none) and the names of a text file."""
    delimiter = options.load.separator or layout.FIXED_DELIMITER.get(options.load.format)
    known = frozenset[str]().union(*options.usual_names())
    best: tuple[tuple[bool, bool, float, bool, int], str, int, list[layout.Record]] | None = None
    for candidate in (delimiter,) if delimiter else layout.DELIMITERS:
        split_so = layout.records_of(sample, candidate)
        counts = Counter(len(split) for _, split in split_so if split is not None)
        count = max(counts, key=lambda each: (each > 1, counts[each]), default=0)
        share = counts[count] / len(split_so)
        first = split_so[0][1] or ()
        named = options.names_said(first) or any(columns.plain(text) in known for text in first)
        # Texts have spaces, and lists in a field have separators of their own.
        key = (count > 1 and share > 0.9, named, share, candidate != " ", count)
        if count > 1 and (best is None or key > best[0]):
            best = key, candidate, count, split_so
    if best is None:
        message = (
            f"{where}: the lines have 1 field, and a table of users needs 2 or more. "
            f"Say what separates the fields with {options.delimiter_flag}."
        )
        raise InputError(message)
    _, delimiter, count, split_so = best
    header_line = _header_line(where, split_so, count, options, decimal_comma=delimiter != ",")
    if not header_line:
        return delimiter, count, 0, [f"column_{at}" for at in range(1, count + 1)]
    names = columns.distinct_names(where, split_so[0][1] or ())
    return delimiter, len(names), header_line, names


def _header_line(
    where: str, split_so: Sequence[layout.Record], count: int, options: Options, *, decimal_comma: bool
) -> int:
    """The number of the line that names the columns, or 0."""
    (line, first), below = split_so[0], split_so[1:]
    if options.load.header is False or (first is None and not options.load.header):
        return 0
    if first is None:
        message = f"{where}: line {line} should name the columns, but its quotes are not well placed. Mend it."
        raise InputError(message)
    names = [text.strip() for text in first]
    if options.load.header or options.names_said(names):
        return line
    usual = frozenset[str]().union(*options.usual_names())
    numbers = any(values.is_number(name, decimal_comma=decimal_comma) for name in names)
    for at, name in enumerate(names):
        # The name of the users stands above texts that are all different; a word of a data line rarely does.
        texts = [text.strip() for text in layout.column_of(below, at, len(names))]
        if columns.plain(name) in usual and (at == 0 or not numbers) and len({*texts, name}) == len(texts) + 1:
            return line
    absent = any(values.stands_for_no_time(name) for name in names[1:])
    if numbers or absent or len(names) != count or len({*names}) < count or layout.recurs(first, below):
        return 0
    # Words above numbers; most cells of an artifact are blank.
    for at in range(count):
        texts = [text for text in layout.column_of(below, at, count) if text.strip()]
        if 2 * sum(values.is_number(text, decimal_comma=decimal_comma) for text in texts) > len(texts) > 0:
            return line
    return 0
