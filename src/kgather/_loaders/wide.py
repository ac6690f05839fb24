"""Reading an artifact table: one row a user, one column an item, and what else is known of the users beside."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._loaders import columns, sources, tables, user_attributes, user_rows, values
from kgather._loaders.attribute_types import attributes
from kgather._loaders.expressions import first_row, is_blank, trimmed
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import InputReport, LoadReport
from kgather._loaders.store import IdRole, Parsed, RatingsTable, mixed_warnings
from kgather._loaders.user_rows import ROW_NUMBERS, Field, UserIds, UserRows
from kgather._sql_text import literal

ALL_NUMERIC = ("*",)
_COMMA_NUMBER = "-?(0|[1-9][0-9]*)(,([0-9]{1,2}|[0-9]{4,}))?"
_KINDS = {"csv": "text", "tsv": "text", "parquet": "parquet", "duckdb": "duckdb"}


def load(con: duckdb.DuckDBPyConnection, inputs: Sequence[str | Path], options: LoadOptions, schema: str) -> LoadReport:
    """Read an artifact table into the tables `<schema>.ratings` and `<schema>.user_attributes`.

    Every cell of an artifact column that is not blank becomes one row of ratings: the column's name is the item,
    `line` the line of the user (of a table the number of the row). The columns that are neither artifacts nor the
    users become attributes. Without a column of users the number of the row is the user.

    Args:
        con: Where the tables are made.
        inputs: One file, or `file.duckdb:table`.
        options: How to read it; `artifact_columns` is set.
        schema: The schema of the tables; older ones are replaced.

    Raises:
        InputError: The table cannot be read or has no such artifacts, a row has no user id or that of another, or
            nothing is rated. Then nothing is kept.
    """
    source = _source(inputs, options)
    asked = user_rows.Options(options)
    with user_rows.opened(con, source, asked) as rows:
        users, artifacts = _columns(con, rows, asked)
        ids = ROW_NUMBERS if users is None else user_rows.user_ids(con, rows, users, asked.user_flag)
        others = [at for at in range(len(rows.fields)) if at != users and at not in artifacts]
        table = RatingsTable(con, schema)
        try:
            read, problems = table.add(source.basename, lambda insert: insert(_parsed(rows, ids, artifacts)))
            if not read:
                message = f"{source.given}: all artifacts are blank in every row, there are no ratings in it."
                raise InputError(message)
            counts = first_row(
                con,
                f"select count(distinct line), count(distinct line) filter (problem is null) from {table.loading}",
            ) or (0, 0)
            report = user_attributes.make_table(con, rows, ids, users, others, table.id_types["user"], schema)
            mixed = table.mixed_ids()
            table.publish()
            user_attributes.put_table_in_place(con, schema)
        finally:
            table.discard()
            user_attributes.discard_table(con, schema)
    without = rows.count - int(counts[0])
    warnings = list(mixed_warnings(mixed))
    if users is None and rows.header is not False:
        warnings.append(f"{source.given}: no column of users was found; they are numbered by their rows.")
    if options.artifact_columns == ALL_NUMERIC:
        names = columns.listed([rows.fields[at].name for at in artifacts])
        warnings.append(f"{source.given}: the artifacts are all columns of numbers: {names}.")
    if without:
        warnings.append(f"{source.given}: {without:,} of {rows.count:,} users rated none of the artifacts.")
    return LoadReport(
        inputs=[
            InputReport(
                path=source.given,
                source=source.basename,
                format=rows.format,
                compression=rows.compression,
                encoding=rows.encoding,
                delimiter=rows.delimiter,
                header=rows.header,
                columns={"user": report.user_column, "item": "column name", "rating": "artifact columns", "time": None},
                rows=read,
                problem_rows=problems,
            )
        ],
        user_id_type=table.id_types["user"],
        item_id_type=table.id_types["item"],
        warnings=[*warnings, *report.warnings],
        artifact_columns=tuple(rows.fields[at].name for at in artifacts),
        users_without_artifacts=without,
        user_attributes=report.model_copy(
            update={"users_without_ratings": rows.count - int(counts[1]), "raters_without_attributes": 0}
        ),
    )


def _source(inputs: Sequence[str | Path], options: LoadOptions) -> sources.Source:
    if len(inputs) != 1:
        message = "--artifact-columns reads one table, whose rows are all users. Give one input."
        raise InputError(message)
    for role in columns.ROLES[1:]:
        if columns.wanted(options, role) is not None:
            message = (
                f"{columns.option_name(role)} and --artifact-columns do not go together: the artifact columns hold "
                "the ratings. Leave one out."
            )
            raise InputError(message)
    source = sources.find(inputs[0])
    kind = "text" if source.kind in sources.TEXTS else source.kind
    if options.format != "auto" and _KINDS.get(options.format) != kind:
        message = (
            f"{source.given}: an artifact table of the format {options.format} is not read. "
            "Leave the format to be detected."
        )
        raise InputError(message)
    return source


def _columns(
    con: duckdb.DuckDBPyConnection, rows: UserRows, options: user_rows.Options
) -> tuple[int | None, tuple[int, ...]]:
    """The positions of the users (None: there is no such column) and of the artifacts."""
    asked = options.load.artifact_columns or ()
    if asked != ALL_NUMERIC:
        artifacts = _named(rows, asked)
        return user_rows.find_users(rows, options, frozenset(artifacts)), artifacts
    users = user_rows.find_users(rows, options)
    others = [at for at in range(len(rows.fields)) if at != users]
    numeric = _with_decimal_comma(con, rows)
    for at, found in attributes(con, rows, others).items():
        if found is not None and (found.type in ("BIGINT", "DOUBLE") or _is_decimal(rows.fields[at].type)):
            numeric.add(at)
    artifacts = tuple(at for at in others if at in numeric)
    if not artifacts:
        message = f"{rows.where}: no column holds numbers only, so none is an artifact. {user_rows.known_columns(rows)}"
        raise InputError(message)
    return users, artifacts


def _with_decimal_comma(con: duckdb.DuckDBPyConnection, rows: UserRows) -> set[int]:
    """The positions of the columns of numbers such as 2,5. An attribute of that look stays a text, a rating not."""
    if rows.delimiter in (",", None):
        return set()
    found = con.execute(
        f"select place from (select unnest(f) as text, generate_subscripts(f, 1) as place from {rows.relation}) "
        f"where text <> '' and not ({is_blank('text')}) group by place "
        f"having bool_and(regexp_full_match({trimmed('text')}, '{_COMMA_NUMBER}'))"
    ).fetchall()
    return {int(place) - 1 for (place,) in found}


def _is_decimal(type_name: str | None) -> bool:
    return type_name is not None and tables.type_family(type_name) in (*tables.WIDE_INTEGERS, "DECIMAL")


def _named(rows: UserRows, asked: Sequence[str]) -> tuple[int, ...]:
    """The positions of the artifacts that were named."""
    places = {field.name.casefold(): at for at, field in enumerate(rows.fields)}
    found: dict[int, None] = {}
    for said in asked:
        name = said.strip()
        at = places.get(name.casefold())
        if at is None:
            message = f"{rows.where}: no artifact column '{said}'. {user_rows.known_columns(rows)}"
            raise InputError(message)
        if at in found:
            message = f"{rows.where}: the artifact column '{said}' is named twice. Name it once."
            raise InputError(message)
        found[at] = None
    for at in found:
        kind = rows.fields[at].type
        if kind is not None and not tables.can_be_id(kind):
            message = (
                f"{rows.where}: column '{rows.fields[at].name}' has the type {kind[:60]}, which cannot be read as "
                "ratings. Take it from the artifact columns."
            )
            raise InputError(message)
    return tuple(sorted(found))


def _parsed(rows: UserRows, ids: UserIds, artifacts: Sequence[int]) -> Parsed:
    """The cells that are not blank, as the SQL of an input."""
    chosen = [rows.fields[at] for at in artifacts]
    names = _list(literal(field.name) for field in chosen)
    # Side by side: cells that are texts, and cells that are numbers.
    if rows.delimiter is not None:
        texts, numbers = f"list_select(f, {[at + 1 for at in artifacts]})", "null::double[]"
    else:
        texts = _list(f"{field.sql}::varchar" if _is_text(field) else "null::varchar" for field in chosen)
        numbers = _list("null::double" if _is_text(field) else f"{field.sql}::double" for field in chosen)
    rating = values.rating_sql("text", decimal_comma=rows.delimiter not in (",", None))
    sql = (
        "select line, concat_ws(',', user_id, item_id, coalesce(text, number::varchar)) as raw, user_id, item_id, "
        "rating, null::timestamp as rated_at, "
        f"case {values.rating_problem_sql('rating')} end as problem "
        f"from (select *, case when number is null then {rating} else number end as rating from ("
        f"select line, {ids.sql} as user_id, unnest({names}) as item_id, unnest({texts}) as text, "
        f"unnest({numbers}) as number from {rows.relation}"
        # Most cells are blank in many tables: the quick test comes first.
        f") where number is not null or (text <> '' and not ({is_blank('text')})))"
    )
    integers: set[IdRole] = {"user"} if ids.is_bigint else set()
    # Of all users, those without ratings too, so that their attributes have the same ids.
    not_integers: set[IdRole] = set() if ids.all_integers else {"user"}
    if not all(values.is_integer_text(field.name) for field in chosen):
        not_integers.add("item")
    return Parsed(sql, frozenset(integers), frozenset(not_integers))


def _list(elements: Iterable[str]) -> str:
    return "[" + ", ".join(elements) + "]"


def _is_text(field: Field) -> bool:
    return tables.type_family(field.type or "") in tables.TEXTS
