"""Loading one or more inputs, each by the loader of its format."""

from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._loaders import (
    columns,
    delimited,
    fields,
    json_objects,
    layout,
    matrix_market,
    netflix,
    sources,
    tables,
    values,
    wide,
)
from kgather._loaders.catalogue import load_catalogue
from kgather._loaders.columns import RolesUnknownError
from kgather._loaders.lines import LineReader, sample_lines
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import InputReport, LoadReport
from kgather._loaders.sources import Source
from kgather._loaders.store import ID_ROLES, IdRole, Parsed, RatingsTable, merged_warnings, mixed_warnings

SAMPLE_LINES = 500

_FORMAT_KINDS = {"parquet": ("parquet",), "duckdb": ("duckdb",)}


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
        return _with_catalogue(con, wide.load(con, inputs, options, schema), options, schema)
    found = sources.find_all(inputs)
    for source in found:
        _check_format(source, options)
    table = RatingsTable(con, schema)
    try:
        reports: list[InputReport] = []
        warnings: list[str] = []
        for source, source_name in zip(found, sources.source_names(found), strict=True):
            try:
                report, said = _load_one(con, table, source, source_name, options, alone=len(found) == 1)
            except RolesUnknownError as error:
                raise _compared(error, source, found, options) from None
            reports.append(report)
            warnings.extend(said)
        warnings.extend(mixed_warnings(table.mixed_ids()))
        merged = table.merged_ids()
        warnings.extend(merged_warnings(merged))
        table.publish()
    except BaseException:
        table.discard()
        raise
    loaded = LoadReport(
        inputs=reports,
        user_id_type=table.id_types["user"],
        item_id_type=table.id_types["item"],
        warnings=warnings,
        merged_users=merged["user"],
        merged_items=merged["item"],
    )
    return _with_catalogue(con, loaded, options, schema)


def _with_catalogue(
    con: duckdb.DuckDBPyConnection, report: LoadReport, options: LoadOptions, schema: str
) -> LoadReport:
    """Read the list of all items beside the ratings, where there is one."""
    if options.items is None:
        return report
    found = load_catalogue(con, options.items, report.item_id_type, options, schema)
    warnings = list(report.warnings)
    if found.item_id_type != report.item_id_type:
        warnings.append(f"{found.path}: some items are no integers, so all are kept as text.")
    return report.model_copy(update={"catalogue": found, "item_id_type": found.item_id_type, "warnings": warnings})


def _compared(
    error: RolesUnknownError, source: Source, all_sources: Sequence[Source], options: LoadOptions
) -> RolesUnknownError:
    """What to say of an input that does not name its columns beside one that does: it may have the same order."""
    for other in all_sources:
        if other is source or other.kind not in sources.TEXTS:
            continue
        try:
            found = layout.detect(other.given, sample_lines(LineReader(other, options), SAMPLE_LINES), options)
        except InputError:
            continue
        if found.header_line and found.count == error.count:
            return error.beside(other.given, found.as_fields())
    return error


def _check_format(source: Source, options: LoadOptions) -> None:
    if options.format == "auto":
        return
    kinds = _FORMAT_KINDS.get(options.format, sources.TEXTS)
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
    sample = sample_lines(LineReader(source, options), SAMPLE_LINES)
    if not sample:
        message = f"{source.given} has only blank lines, there are no ratings in it."
        raise InputError(message)
    if options.format in ("auto", matrix_market.FORMAT) and matrix_market.is_matrix(sample):
        matrix = matrix_market.detect(source.given, sample, options)
        read = _load_lines(con, table, source, source_name, matrix.layout, matrix_market.lines_read(options))
        if read.rows != matrix.entries:
            message = (
                f"{source.given} says that it has {matrix.entries:,} entries and has {read.rows:,}: it is cut off or "
                "damaged. Get the file again."
            )
            raise InputError(message)
        return read, []
    blocks = options.format == "netflix" or (
        options.format == "auto" and options.delimiter is None and netflix.looks_like_netflix(sample)
    )
    if blocks:
        return _load_netflix(con, table, source, source_name, sample, options), []
    if options.format == json_objects.FORMAT or (options.format == "auto" and json_objects.looks_like_json(sample)):
        return _load_json(con, table, source, source_name, sample, options)
    found = layout.detect(source.given, sample, options, source.partitions)
    likely_text = _likely_text(sample, found)
    return _load_lines(con, table, source, source_name, found, options, likely_text), list(found.warnings)


def _load_lines(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    found: layout.Layout,
    options: LoadOptions,
    likely_text: frozenset[IdRole] = frozenset(),
) -> InputReport:
    def parse(insert: Callable[[Parsed], int]) -> int:
        return delimited.parse(con, lambda: LineReader(source, options), found, likely_text, insert)

    rows, problems = table.add(source_name, parse)
    if not rows:
        message = f"{source.given} holds only a header, there are no ratings in it."
        raise InputError(message)
    return InputReport(
        path=source.given,
        source=source_name,
        format=found.format,
        compression=None if source.kind == "text" else source.kind,
        encoding=options.encoding,
        delimiter=options.delimiter if options.separator_pattern else found.delimiter,
        header=found.header_line > 0 and found.format != matrix_market.FORMAT,
        columns=found.column_names(),
        rows=rows,
        problem_rows=problems,
    )


def _load_json(
    con: duckdb.DuckDBPyConnection,
    table: RatingsTable,
    source: Source,
    source_name: str,
    sample: list[tuple[int, str]],
    options: LoadOptions,
) -> tuple[InputReport, list[str]]:
    found = json_objects.detect(con, source, sample, options)
    rows, problems = table.add(source_name, lambda insert: json_objects.parse(con, source, found, options, insert))
    report = InputReport(
        path=source.given,
        source=source_name,
        format=json_objects.FORMAT,
        compression=None if source.kind == "text" else source.kind,
        encoding=options.encoding if found.in_lines else "utf-8",
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
        reader = LineReader(source, options)
        return netflix.parse(con, reader, count, frozenset(), insert, has_time=has_time, missing=options.missing)

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
        sql = tables.parsed(con, opened, options.missing)
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
        split = [*split, *found.appended, "1"]
        if not found.written.reads(split[found.columns.rating], decimal_comma=found.decimal_comma):
            continue
        if any(split[position].strip().lower() in ("", *found.missing) for position in positions.values()):
            continue
        for role in ID_ROLES:
            if not values.is_integer_text(split[positions[role]]):
                seen.add(role)
    return frozenset(seen)
