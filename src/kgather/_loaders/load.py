"""Loading one or more inputs, each by the loader of its format."""

from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._loaders import columns, delimited, fields, layout, netflix, sources, tables, values, wide
from kgather._loaders.lines import LineReader, sample_lines
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import InputReport, LoadReport
from kgather._loaders.sources import Source
from kgather._loaders.store import ID_ROLES, IdRole, Parsed, RatingsTable

SAMPLE_LINES = 500

_FORMAT_KINDS = {"parquet": ("parquet",), "duckdb": ("duckdb",)}
_TEXT_KINDS = ("text", "gzip", "zstd")


def load(
    con: duckdb.DuckDBPyConnection,
    inputs: Sequence[str | Path],
    options: LoadOptions,
    schema: str = "loaded",
) -> LoadReport:
    """Read ratings into the table `<schema>.ratings`; one Parquet file with ids that are integers becomes a view.

    The table has the columns `user_id` and `item_id` (BIGINT, or VARCHAR if any id is not an integer),
    `rating` (DOUBLE), `rated_at` (TIMESTAMP or null), `source` (the file's name), `line` (of the file, from
    1; of a table the number of the row), `raw` and `problem`. Every line that is not blank, header lines
    aside, becomes one row. A row that cannot be used has a `problem` and its text in `raw`, and no values;
    other rows have null in both.

    With `artifact_columns` the one input has a row for each user instead; see `wide.load`.

    Args:
        con: Where the table is made. No result of it may be open.
        inputs: Files, or `file.duckdb:table`. They are appended.
        options: How to read them; they hold for every input.
        schema: The schema of the table; it is created if need be. An older table is replaced.

    Returns:
        What was read.

    Raises:
        InputError: An input cannot be read. Then nothing is kept, and an older table stays as it was.
    """
    if not inputs:
        message = "no input was named. Give at least one file."
        raise InputError(message)
    if options.artifact_columns is not None:
        return wide.load(con, inputs, options, schema)
    found = [sources.find(each) for each in inputs]
    for source in found:
        _check_format(source, options)
    table = RatingsTable(con, schema)
    try:
        reports: list[InputReport] = []
        warnings: list[str] = []
        for source, source_name in zip(found, sources.source_names(found), strict=True):
            report, said = _load_one(con, table, source, source_name, options, alone=len(found) == 1)
            reports.append(report)
            warnings.extend(said)
        warnings.extend(f"{role} ids: some are not integers, all are kept as text." for role in table.mixed_ids())
        table.publish()
    except BaseException:
        table.discard()
        raise
    return LoadReport(
        inputs=reports,
        user_id_type=table.id_types["user"],
        item_id_type=table.id_types["item"],
        warnings=warnings,
    )


def _check_format(source: Source, options: LoadOptions) -> None:
    if options.format == "auto":
        return
    kinds = _FORMAT_KINDS.get(options.format, _TEXT_KINDS)
    if source.kind not in kinds:
        message = f"{source.given} is a {source.kind} file, not {options.format}. Leave the format to be detected."
        raise InputError(message)


def _load_one(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    options: LoadOptions,
    *,
    alone: bool,
) -> tuple[InputReport, list[str]]:
    if source.kind in ("parquet", "duckdb"):
        return _load_table(con, table, source, source_name, options, alone=alone), []
    sample = sample_lines(LineReader(source, options.encoding), SAMPLE_LINES)
    if not sample:
        message = f"{source.given} has only blank lines, there are no ratings in it."
        raise InputError(message)
    blocks = options.format == "netflix" or (
        options.format == "auto" and options.delimiter is None and netflix.looks_like_netflix(sample)
    )
    if blocks:
        return _load_netflix(con, table, source, source_name, sample, options), []
    return _load_delimited(con, table, source, source_name, sample, options)


def _load_delimited(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    sample: list[tuple[int, str]],
    options: LoadOptions,
) -> tuple[InputReport, list[str]]:
    found = layout.detect(source.given, sample, options)
    likely_text = _likely_text(sample, found)

    def parse(insert: Callable[[Parsed], int]) -> int:
        return delimited.parse(con, lambda: LineReader(source, options.encoding), found, likely_text, insert)

    rows, problems = table.add(source_name, parse)
    if not rows:
        message = f"{source.given} holds only a header, there are no ratings in it."
        raise InputError(message)
    report = InputReport(
        path=source.given,
        source=source_name,
        format=found.format,
        compression=None if source.kind == "text" else source.kind,
        encoding=options.encoding,
        delimiter=found.delimiter,
        header=found.header_line > 0,
        columns=found.column_names(),
        rows=rows,
        problem_rows=problems,
    )
    return report, list(found.warnings)


def _load_netflix(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    sample: list[tuple[int, str]],
    options: LoadOptions,
) -> InputReport:
    count = netflix.field_count(sample)
    has_time = count > 2 and not columns.times_ignored(options)

    def parse(insert: Callable[[Parsed], int]) -> int:
        reader = LineReader(source, options.encoding)
        return netflix.parse(con, reader, count, frozenset(), insert, has_time=has_time)

    rows, problems = table.add(source_name, parse)
    if not rows:
        message = f"{source.given} holds only movie headers, there are no ratings in it."
        raise InputError(message)
    return InputReport(
        path=source.given,
        source=source_name,
        format="netflix",
        compression=None if source.kind == "text" else source.kind,
        encoding=options.encoding,
        delimiter=",",
        header=False,
        columns={"user": "1", "item": "block header", "rating": "2", "time": "3" if has_time else None},
        rows=rows,
        problem_rows=problems,
    )


def _load_table(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    options: LoadOptions,
    *,
    alone: bool,
) -> InputReport:
    with tables.opened(con, source, options) as opened:
        sql = tables.parsed(con, opened)
        if alone and source.kind == "parquet" and sql.integers.issuperset(ID_ROLES):
            rows, problems = table.show(source_name, sql)
        else:
            rows, problems = table.add(source_name, lambda insert: insert(sql))
        return InputReport(
            path=source.given,
            source=source_name,
            format=source.kind,
            columns=opened.column_names(),
            rows=rows,
            problem_rows=problems,
        )


def _likely_text(sample: list[tuple[int, str]], found: layout.Layout) -> frozenset[IdRole]:
    """The roles with an id in the sample that is not an integer, in a line that is likely fine."""
    seen: set[IdRole] = set()
    positions: dict[IdRole, int] = {"user": found.columns.user, "item": found.columns.item}
    for number, text in sample:
        split = fields.split(text, found.delimiter) if number > found.header_line else None
        if split is None or len(split) != found.count:
            continue
        if not values.is_number(split[found.columns.rating], decimal_comma=found.decimal_comma):
            continue
        if not all(split[position].strip() for position in positions.values()):
            continue
        for role in ID_ROLES:
            if not values.is_integer_text(split[positions[role]]):
                seen.add(role)
    return frozenset(seen)
