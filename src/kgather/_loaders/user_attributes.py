"""Reading what is known of users beside their ratings into a table of one row a user."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._loaders import sources, user_rows
from kgather._loaders.attribute_types import attributes
from kgather._loaders.expressions import first_row
from kgather._loaders.options import Encoding, LoadOptions
from kgather._loaders.report import IdType, LoadReport, UserAttributesReport
from kgather._loaders.store import put_in_place
from kgather._loaders.user_rows import UserIds, UserRows
from kgather._settings.validation import validated
from kgather._sql_text import identifier

USER_FLAG = "--attributes-user-column"
DELIMITER_FLAG = "--attributes-delimiter"
HEADER_FLAG = "--attributes-header"
_LOADING = "__kgather_loading_attributes"


def load_user_attributes(
    con: duckdb.DuckDBPyConnection,
    source: str | Path,
    *,
    ratings_loaded: LoadReport,
    user_column: str | None = None,
    delimiter: str | None = None,
    encoding: Encoding = "utf-8",
    header: bool | None = None,
    schema: str = "loaded",
) -> UserAttributesReport:
    """Read a table of users into the table `<schema>.user_attributes`.

    The table has the column `user_id`, of the type it has in `<schema>.ratings`, and the other columns under their
    names (without a header: column_2, column_3, ... by their places) as BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP or
    VARCHAR. The types of text files are told from all values: a column has a type only if every value is written as
    that type is, so that 02139 stays a text. Texts are trimmed, and blank ones are null.

    Args:
        con: Where `<schema>.ratings` is. No result of it may be open.
        source: A text file, plain or compressed, a Parquet file, or `file.duckdb:table`.
        ratings_loaded: What the load of the ratings reported.
        user_column: The column of users: its name (upper and lower case are the same) or its place, from 1. None:
            a usual name, or the name it has among the ratings; without a header the first column.
        delimiter: As in LoadOptions; None looks at the content.
        encoding: How a text file is encoded.
        header: Whether the first line names the columns; None looks at the content.
        schema: The schema of both tables. An older table is replaced.

    Raises:
        InputError: The table cannot be read, has no column of users, a row without an id or a user with two rows,
            or nobody in it has ratings. Then an older table stays as it was.
    """
    said = {"user_column": user_column, "delimiter": delimiter, "encoding": encoding, "header": header}
    if ratings_loaded.user_attributes is not None and ratings_loaded.user_attributes.columns:
        message = (
            f"{source}: the artifact table has attributes of its users already. Leave one out, or join the two "
            "tables first."
        )
        raise InputError(message)
    options = user_rows.Options(
        validated(LoadOptions, said), USER_FLAG, DELIMITER_FLAG, HEADER_FLAG, _names_of_users(ratings_loaded)
    )
    try:
        with user_rows.opened(con, sources.find(source, "users"), options) as rows:
            position = _position_of_users(rows, options)
            ids = user_rows.user_ids(con, rows, position, USER_FLAG)
            others = [at for at in range(len(rows.fields)) if at != position]
            if not others:
                message = f"{source} has no column but the user ids, there are no attributes in it."
                raise InputError(message)
            report = make_table(con, rows, ids, position, others, ratings_loaded.user_id_type, schema)
        report = _compared(con, report, schema)
        put_table_in_place(con, schema)
    finally:
        discard_table(con, schema)
    return report


def make_table(
    con: duckdb.DuckDBPyConnection,
    rows: UserRows,
    ids: UserIds,
    position: int | None,
    others: Sequence[int],
    id_type: IdType,
    schema: str,
) -> UserAttributesReport:
    """Make the table of attributes aside; `put_table_in_place` gives it its name.

    Args:
        con: The connection.
        rows: The table that was read.
        ids: The ids of its users.
        position: The column of the ids, from 0; None where they are the numbers of the rows.
        others: The columns that become attributes.
        id_type: The type of the ids of the ratings' users.
        schema: The schema, which exists.

    Returns:
        What was read, not yet compared with the ratings.

    Raises:
        InputError: An attribute is named user_id.
    """
    warnings: list[str] = []
    found = attributes(con, rows, others)
    for at, attribute in found.items():
        field = rows.fields[at]
        if field.name.casefold() == "user_id":
            message = f"{rows.where}: column '{field.name}' is not the column of users but is named so. Rename it."
            raise InputError(message)
        if attribute is None:
            kind = (field.type or "")[:60]
            warnings.append(
                f"{rows.where}: column '{field.name}' is left out, as its type {kind} is not that of an attribute."
            )
        elif attribute.no_values:
            warnings.append(
                f"{rows.where}: {attribute.no_values:,} texts such as NA in column '{field.name}' are read as no value."
            )
    if rows.header is False:
        first = "are numbered by their rows" if position is None else f"are taken from column {position + 1}"
        warnings.append(
            f"{rows.where}: no line was taken for a header, so the columns are called column_1 to "
            f"column_{len(rows.fields)}; the users {first}."
        )
    made = [attribute for attribute in found.values() if attribute is not None]
    chosen = "".join(f", {each.sql} as {identifier(each.name)}" for each in made)
    con.execute(
        f"create or replace table {identifier(schema)}.{_LOADING} as select * from ("
        f"select {ids.as_type(id_type)} as user_id{chosen} from {rows.relation} order by number) "
        "where user_id is not null"
    )
    kept = _number(con, f"select count(*) from {identifier(schema)}.{_LOADING}")
    if kept < rows.count:
        warnings.append(
            f"{rows.where}: {rows.count - kept:,} user ids are not integers as those of the ratings are, "
            "so these users have no ratings."
        )
    return UserAttributesReport(
        path=rows.where,
        format=rows.format,
        compression=rows.compression,
        encoding=rows.encoding,
        delimiter=rows.delimiter,
        header=rows.header,
        user_column=None if position is None else rows.fields[position].name,
        columns={each.name: each.type for each in made},
        users=rows.count,
        warnings=warnings,
    )


def put_table_in_place(con: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Give the table that was made its name, instead of an older one."""
    put_in_place(con, schema, _LOADING, "user_attributes")


def discard_table(con: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Throw the table away, if it is still aside."""
    con.execute(f"drop table if exists {identifier(schema)}.{_LOADING}")


def _position_of_users(rows: UserRows, options: user_rows.Options) -> int:
    position = user_rows.find_users(rows, options)
    if position is None and rows.header is False:
        return 0
    if position is None:
        message = f"{rows.where}: no column of users found. {user_rows.known_columns(rows)} Say which with {USER_FLAG}."
        raise InputError(message)
    return position


def _names_of_users(loaded: LoadReport) -> frozenset[str]:
    """What the column of users is called among the ratings."""
    names = [each.columns.get("user") for each in loaded.inputs]
    return frozenset(name for name in names if name and not name.isdecimal())


def _compared(con: duckdb.DuckDBPyConnection, report: UserAttributesReport, schema: str) -> UserAttributesReport:
    """Count the users that only one of the two tables has."""
    made = f"{identifier(schema)}.{_LOADING}"
    raters = f"(select distinct user_id from {identifier(schema)}.ratings where problem is null)"
    rated = _number(con, f"select count(*) from {raters}")
    both = _number(con, f"select count(*) from {made} semi join {raters} using (user_id)")
    if rated and not both:
        message = (
            f"{report.path}: none of its {report.users:,} users has ratings. Are the user ids written as they are "
            f"there, and in the column '{report.user_column}'? Say which column with {USER_FLAG}."
        )
        raise InputError(message)
    return report.model_copy(
        update={"users_without_ratings": report.users - both, "raters_without_attributes": rated - both}
    )


def _number(con: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = first_row(con, sql)
    return int(row[0]) if row else 0
