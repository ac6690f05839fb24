"""A table as it stands in its file, for checks of what a reader of the file sees.

Nothing is guessed about the columns but whether the first line names them, and where that is not plain it is asked.
Values of text files stay the texts they are, quotes included; only columns that are asked to be read become numbers,
dates and the like.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from kgather._errors import InputError
from kgather._loaders import attribute_types, columns, layout, records, shapes, sources, tables, values
from kgather._loaders.expressions import first_row
from kgather._loaders.lines import LineReader, sample_lines
from kgather._loaders.options import MISSING, LoadOptions
from kgather._loaders.user_rows import Field, UserRows
from kgather._sql_text import identifier

_ROWS = "__kgather_written_rows"
_SAMPLE_LINES = 500
# How columns of numbers are named: what a lone person without the number would hardly have in its place.
_USUAL_NUMBER = re.compile(
    "[a-z]|(age|zip|zipcode|postcode|year|month|day|date|time|timestamp|count|number|rating|score|stars|price|cost|amount|"
    "salary|income|wage|weight|height|size|length|width|quantity|value|rank|level|grade|hours|minutes|seconds|duration|"
    "distance|latitude|longitude|lat|lon|lng|total|sum|mean|share|percent|rate|visits|orders|points|votes|plays|[a-z]+id|"
    "id|n|birthyear|yearofbirth|dob|fnlwgt|capitalgain|capitalloss|hoursperweek|educationnum)[0-9]?"
)
_NO_VALUE = frozenset(
    {*MISSING, "", "-", "?", ".", "unknown", "missing", "none", "other", "nil", "tbd", "not available"}
)


@dataclass(frozen=True)
class Read:
    """How much of a file was read, and as what: to be said beside any verdict on it.

    `rows` were read and `set_aside` could not be; `first` says where the first of those is, and what is wrong with it.
    """

    format: str
    rows: int
    set_aside: int = 0
    first: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: str | None = None
    names: tuple[str, ...] = ()

    @property
    def share_set_aside(self) -> float:
        """The share of rows that could not be read."""
        return self.set_aside / max(self.rows + self.set_aside, 1)


@dataclass(frozen=True)
class Written:
    """A table that was opened. `relation` may stand after FROM; its columns are as they stand in the file."""

    relation: str
    read: Read
    rows: UserRows | None = None

    def view(
        self, con: duckdb.DuckDBPyConnection, name: str, typed: Collection[str] = (), ids: Collection[str] = ()
    ) -> str:
        """Make a view in which some columns of a text file are read, the others as they stand, and give its name.

        Args:
            con: The connection.
            name: The view's name.
            typed: Columns to be read as numbers, dates, times or truth values, where all their texts are such, or else
                as texts in one form each. "*": all others, too, of which what is none of these stays as it is written.
            ids: Columns of ids, written in one form each; those that mean "no id" become null.

        Names match whatever their case; those that do not exist are passed over.
        """
        con.execute(f"create or replace temp view {name} as {self._selection(con, typed, ids)}")
        return name

    def _selection(self, con: duckdb.DuckDBPyConnection, typed: Collection[str], ids: Collection[str]) -> str:
        if self.rows is None:
            return self._of_table(con, ids)
        names = [name.lower() for name in self.rows.names]
        as_ids = {names.index(each.lower()) for each in ids if each.lower() in names}
        wanted = {name.lower() for name in typed}
        to_read = [at for at, name in enumerate(names) if ("*" in wanted or name in wanted) and at not in as_ids]
        known = attribute_types.attributes(con, self.rows, to_read)
        chosen = []
        for at, field in enumerate(self.rows.fields):
            attribute = known.get(at)
            sql = f"w[{at + 1}]"
            if attribute is not None and "*" in wanted and names[at] not in wanted:
                # What is none of the numbers, dates and so on stays as it is written.
                sql = sql if attribute.type == "VARCHAR" else f"coalesce(cast({attribute.sql} as varchar), {sql})"
            elif attribute is not None:
                sql = attribute.sql if attribute.type != "VARCHAR" else f"nullif({values.folded(field.sql)}, '')"
            if at in as_ids:
                sql = f"case when not {values.is_missing(field.sql, MISSING)} then {values.folded(field.sql)} end"
            chosen.append(f"{sql} as {identifier(field.name)}")
        return f"select {', '.join(chosen)} from {self.relation}"

    def _of_table(self, con: duckdb.DuckDBPyConnection, ids: Collection[str]) -> str:
        wanted = {each.lower() for each in ids}
        described = con.execute(f"describe select * from {self.relation}").fetchall()
        texts = [str(name) for name, kind, *_ in described if str(name).lower() in wanted and kind == "VARCHAR"]
        folded = ", ".join(f"{values.folded(identifier(name))} as {identifier(name)}" for name in texts)
        return f"select *{f' replace ({folded})' if folded else ''} from {self.relation}"

    def unread(self, con: duckdb.DuckDBPyConnection, name: str) -> int:
        """In how many rows of a text file a column holds a word, not a number; 0 where it holds no number at all."""
        places = (
            [at for at, field in enumerate(self.rows.fields) if field.name.lower() == name.lower()] if self.rows else []
        )
        if self.rows is None or not places:
            return 0
        text = self.rows.fields[places[0]].sql
        number = values.rating_sql(text)
        row = first_row(
            con,
            f"select count(*) filter ({number} is null and trim({text}) <> ''), count({number}) from {self.relation}",
        )
        return int(row[0]) if row and row[1] else 0


@contextmanager
def opened(
    con: duckdb.DuckDBPyConnection, given: str, options: LoadOptions, named: Collection[str] = ()
) -> Iterator[Written]:
    """Open a file, or `file.duckdb:table`, until the context is left.

    Args:
        con: The connection.
        given: What was typed.
        options: How to read it, where it is text.
        named: Names of columns that were said, by which a first line that names the columns is known.

    Raises:
        InputError: It cannot be read, two columns have one name, there are no rows, or (of a text file) whether the
            first line names the columns is not clear.
    """
    source = sources.find(given, holds="rows")
    if source.kind not in sources.TEXTS:
        with tables.related(con, source, "hive_partitioning = false") as (relation, _):
            names = [str(each[0]) for each in con.execute(f"describe select * from {relation}").fetchall()]
            columns.distinct_names(given, names)
            row = first_row(con, f"select count(*) from {relation}")
            yield Written(relation, Read(source.kind, int(row[0]) if row else 0, names=tuple(names)))
        return
    try:
        yield _text(con, source, options, frozenset(name.strip().lower() for name in named))
    finally:
        con.execute(f"drop table if exists {_ROWS} cascade")


def _text(
    con: duckdb.DuckDBPyConnection, source: sources.Source, options: LoadOptions, named: frozenset[str]
) -> Written:
    sample = sample_lines(LineReader(source, options), _SAMPLE_LINES)
    if not sample:
        message = f"{source.given} has only blank lines, there are no rows in it."
        raise InputError(message)
    delimiter, split = _split(source.given, sample, options, named)
    line, first = split[0]
    if first is None:
        message = f"{source.given}: the quotes of line {line} are not well placed. Mend it, or use --skip-lines."
        raise InputError(message)
    known_by = _header(source.given, split, options, named, comma=delimiter != ",")
    count = len(first)
    names = columns.distinct_names(source.given, first) if known_by else [f"column_{at}" for at in range(1, count + 1)]
    frame = records.Frame(delimiter, count, line if known_by else line - 1)
    records.keep(con, source, options, frame, _ROWS, as_written=True)
    good, bad, bad_line, fault = first_row(
        con, f"select count(*) - count(fault), count(fault), min(line) filter (fault is not null), "
        f"arg_min(fault, line) from {_ROWS}"
    ) or (0, 0, None, None)  # fmt: skip
    if not good:
        message = f"{source.given} holds no rows that can be read" + (" below its header." if known_by else ".")
        raise InputError(message)
    con.execute(f"delete from {_ROWS} where fault is not null")
    read = Read(
        format="tsv" if delimiter == "\t" else "csv",
        rows=int(good),
        set_aside=int(bad),
        first=f"line {bad_line}: {fault}" if bad else None,
        encoding=options.encoding,
        delimiter=options.delimiter if options.separator_pattern else delimiter,
        header=f"line {line} names the columns ({known_by})" if known_by else "no line names the columns",
        names=tuple(names),
    )
    fields = tuple(Field(name, None, f"f[{at}]") for at, name in enumerate(names, 1))
    return Written(_ROWS, read, UserRows(source.given, _ROWS, "line", fields, int(good), read.format))


def _split(
    where: str, sample: Sequence[layout.Line], options: LoadOptions, named: frozenset[str]
) -> tuple[str, list[layout.Record]]:
    """The separator, and the records of the sample by it: a table of one column has none, and then "," is taken.

    A wrong separator could not hide anybody: rows are then compared by more or fewer columns, all of them together.
    """
    sample, said = layout.without_separator_line(sample)
    delimiter = options.separator or said
    best: tuple[tuple[bool, float, bool, int], str, list[layout.Record]] | None = None
    for candidate in (delimiter,) if delimiter else layout.DELIMITERS:
        split = layout.records_of(sample, candidate)
        first = split[0][1] or ()
        share = sum(each is not None and len(each) == len(first) for _, each in split) / len(split)
        hit = bool(named & {text.strip().lower() for text in first})
        # Texts have spaces and commas: the first line has the right number of fields if most others have it, too.
        key = (hit, share if len(first) > 1 else 0.0, candidate != " ", len(first))
        if best is None or key > best[0]:
            best = key, candidate, split
    assert best is not None
    (hit, share, _, width), candidate, split = best
    if not delimiter and not hit and width > 1 and share < 0.5:
        message = (
            f"{where}: no separator gives most lines as many fields as the first line. Say what separates the fields "
            "with --delimiter, or leave out lines before the table with --skip-lines or --comment."
        )
        raise InputError(message)
    if not delimiter and share == 0:
        return ",", layout.records_of(sample, ",")
    return candidate, split


def _header(
    where: str, split: Sequence[layout.Record], options: LoadOptions, named: frozenset[str], *, comma: bool
) -> str | None:
    """How it is known that the first line names the columns; None where it does not.

    Raises:
        InputError: It is not clear. The first line may then be a person who is alone.
    """
    (_, first), below = split[0], split[1:]
    if options.header is not None:
        return "as was said" if options.header else None
    texts = [text.strip() for text in first or ()]
    by_column = [[text.strip() for text in layout.column_of(below, at, len(texts))] for at in range(len(texts))]
    numeric = [bool(each) and all(_is_number(text, comma) for text in each if text) and any(each) for each in by_column]
    said = bool(named & {text.lower() for text in texts})
    number_above = any(_is_number(text, comma) and is_numeric for text, is_numeric in zip(texts, numeric, strict=True))
    if number_above and not said:
        return None
    words = all(text.lower() not in _NO_VALUE and not _is_number(text, comma) for text in texts)
    if words and len(set(texts)) == len(texts) and not layout.recurs(texts, below):
        if said:
            return "it has the names that were said"
        surest = frozenset[str]().union(*(columns.SYNONYMS[role][0] for role in columns.ROLES[:2])) | {"groupid"}
        if any(columns.plain(text) in surest and columns.plain(text).endswith("id") for text in texts):
            return "it has a usual name"
        # A row with a word in place of its one number ("withheld") is not rare; one with words for all of several is.
        above = [text for text, is_numeric in zip(texts, numeric, strict=True) if is_numeric]
        if len(above) > 1 or any(_USUAL_NUMBER.fullmatch(columns.plain(text)) for text in above):
            return "words above numbers"
    message = (
        f"{where}: it is not clear whether the first line names the columns or is a row. The first lines, with letters "
        f"as A or a and digits as #:\n{shapes.table_of([each for _, each in split[:5] if each is not None])}\n"
        "Say which with --header or --no-header."
    )
    raise InputError(message)


def _is_number(text: str, comma: bool) -> bool:
    return values.is_number(text, decimal_comma=comma)
