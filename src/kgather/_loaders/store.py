"""The relation that the loaders fill: created aside, filled input by input, published when all is well."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import duckdb

from kgather._loaders import values
from kgather._loaders.expressions import first_row
from kgather._loaders.report import IdType
from kgather._sql_text import identifier, literal

IdRole = Literal["user", "item"]
ID_ROLES: tuple[IdRole, ...] = ("user", "item")


@dataclass(frozen=True)
class Parsed:
    """An input turned into SQL.

    Attributes:
        sql: A SELECT of `line`, `raw`, `user_id`, `item_id` (texts, or BIGINT where `integers` has the role),
            `rating` (DOUBLE), `rated_at` (TIMESTAMP) and `problem` (null = fine).
        integers: The roles whose ids are BIGINT already.
        likely_text: The roles whose ids were seen to be texts.
    """

    sql: str
    integers: frozenset[IdRole] = frozenset()
    likely_text: frozenset[IdRole] = frozenset()


class RatingsTable:
    """The table `<schema>.ratings` while it is made.

    Ids are integers until an input says otherwise; then the whole column becomes text.

    Args:
        con: Where the table is made.
        schema: The schema, created if need be.

    Attributes:
        loading: The table until it is published, for SQL.
        id_types: The types of the ids so far.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, schema: str) -> None:
        self._con = con
        self._schema_name = schema
        self._schema = identifier(schema)
        self.loading = f"{self._schema}.{identifier('__kgather_loading')}"
        self._kind = "table"
        self.id_types: dict[IdRole, IdType] = {"user": "BIGINT", "item": "BIGINT"}
        self._rows_added = 0
        con.execute(f"create schema if not exists {self._schema}")
        con.execute(
            f"create or replace table {self.loading} (user_id bigint, item_id bigint, rating double, "
            "rated_at timestamp, source varchar, line bigint, raw varchar, problem varchar, "
            "user_written varchar, item_written varchar)"
        )

    def add(self, source: str, parse: Callable[[Callable[[Parsed], int]], int]) -> tuple[int, int]:
        """Add one input.

        Args:
            source: Its name in the column `source`.
            parse: Makes the input readable, calls what it is given with the SQL and returns its result. It is
                called again when an id turns out to be a text.

        Returns:
            The rows added, and how many of them have a problem.
        """
        before = self._rows_added
        while True:
            try:
                rows = parse(lambda parsed: self._insert(source, parsed))
            except duckdb.Error as error:
                text_role = next((role for role in ID_ROLES if values.TEXT_ID_MARK[role] in str(error)), None)
                if text_role is None:
                    raise
                self._use_text(text_role)
            else:
                self._rows_added += rows
                return rows, self._problems_from(before)

    def show(self, source: str, parsed: Parsed) -> tuple[int, int]:
        """Take an input that can be read as often as one likes as the only one: it is not copied, but shown by a view.

        Args:
            source: Its name in the column `source`.
            parsed: Its SQL, with ids that are integers.

        Returns:
            Its rows, and how many of them have a problem.
        """
        self.discard()
        self._kind = "view"
        self._con.execute(f"create view {self.loading} as {self._rows(source, parsed)}")
        row = first_row(self._con, f"select count(*), count(problem) from {self.loading}")
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def mixed_ids(self) -> list[IdRole]:
        """The roles whose ids are texts though some are integers."""
        mixed: list[IdRole] = []
        for role in ID_ROLES:
            if self.id_types[role] == "VARCHAR":
                integer = values.is_integer_sql(f"{role}_id")
                query = f"select 1 from {self.loading} where {integer} limit 1"
                if first_row(self._con, query) is not None:
                    mixed.append(role)
        return mixed

    def merged_ids(self) -> dict[IdRole, int]:
        """How many ids were written in several ways, as 7 and 7.0, and are taken as one each."""
        if self._kind == "view":
            return dict.fromkeys(ID_ROLES, 0)
        return {role: self._merged(role) for role in ID_ROLES}

    def _merged(self, role: IdRole) -> int:
        """O(n) where all ids are written in their one form, which most inputs do."""
        written = f"{role}_written"
        if first_row(self._con, f"select 1 from {self.loading} where {written} is not null limit 1") is None:
            return 0
        row = first_row(
            self._con,
            f"select count(*) from (select {role}_id from {self.loading} where problem is null group by {role}_id "
            f"having count(distinct coalesce({written}, '')) > 1)",
        )
        return int(row[0]) if row else 0

    def publish(self) -> None:
        """Put the table in its place, instead of an older one."""
        if self._kind == "table":
            for role in ID_ROLES:
                self._con.execute(f"alter table {self.loading} drop column {role}_written")
        put_in_place(self._con, self._schema_name, "__kgather_loading", "ratings")

    def discard(self) -> None:
        """Throw the unfinished table away."""
        self._con.execute(f"drop {self._kind} if exists {self.loading}")

    def _insert(self, source: str, parsed: Parsed) -> int:
        for role in ID_ROLES:
            if role in parsed.likely_text:
                self._use_text(role)
        result = first_row(self._con, f"insert into {self.loading} {self._rows(source, parsed)}")
        return int(result[0]) if result else 0

    def _rows(self, source: str, parsed: Parsed) -> str:
        return rows_sql(source, parsed, self.id_types, written=self._kind == "table")

    def _use_text(self, role: IdRole) -> None:
        if self.id_types[role] == "BIGINT":
            self._con.execute(f"alter table {self.loading} alter column {role}_id type varchar")
            self.id_types[role] = "VARCHAR"

    def _problems_from(self, row_number: int) -> int:
        """Rows with a problem, from this one on: only what was added last is looked at."""
        row = first_row(self._con, f"select count(problem) from {self.loading} where rowid >= {row_number}")
        return int(row[0]) if row else 0


def rows_sql(source: str, parsed: Parsed, id_types: Mapping[IdRole, IdType], *, written: bool) -> str:
    """SQL: the rows of an input as the table has them: ids in their one form, and no values of rows with a problem.

    written: whether the columns follow that say how ids were written, where that is not their one form.
    """
    ids = {
        role: f"case when problem is null then {_id_sql(role, parsed, id_types)} end as {role}_id" for role in ID_ROLES
    }
    spelled = {
        role: "null"
        if role in parsed.integers
        else f"case when problem is null then {values.other_spelling(f'{role}_id')} end"
        for role in ID_ROLES
    }
    also = "".join(f", {spelled[role]} as {role}_written" for role in ID_ROLES) if written else ""
    return (
        f"select {', '.join(ids.values())}, case when problem is null then rating end as rating, "
        f"case when problem is null then rated_at end as rated_at, {literal(source)} as source, "
        f"line, case when problem is not null then raw end as raw, problem{also} from ({parsed.sql})"
    )


def _id_sql(role: IdRole, parsed: Parsed, id_types: Mapping[IdRole, IdType]) -> str:
    return values.id_sql(f"{role}_id", id_types[role], role, is_integer=role in parsed.integers)


def mixed_warnings(mixed: Iterable[IdRole]) -> Iterator[str]:
    """What the user should know of roles whose ids are texts though some are integers."""
    for role in mixed:
        yield f"{role} ids: some are not integers, all are kept as text."


def merged_warnings(merged: Mapping[IdRole, int]) -> Iterator[str]:
    """What the user should know of ids that were written in several ways. merged: how many, by role."""
    for role in ID_ROLES:
        if merged[role]:
            yield f"{merged[role]:,} {role} ids were written in several ways (as 7 and 7.0); each is one {role}."


def put_in_place(con: duckdb.DuckDBPyConnection, schema: str, made: str, name: str) -> None:
    """Give a table its final name, instead of an older table or view of that name.

    Args:
        con: The connection.
        schema: The schema of both.
        made: The name under which the table, or a view instead of it, was made.
        name: Its final name.
    """
    kind = _kind(con, schema, name)
    if kind is not None:
        con.execute(f"drop {kind} {identifier(schema)}.{identifier(name)}")
    con.execute(
        f"alter {_kind(con, schema, made)} {identifier(schema)}.{identifier(made)} rename to {identifier(name)}"
    )


def _kind(con: duckdb.DuckDBPyConnection, schema: str, name: str) -> str | None:
    """Whether a relation is a table or a view; None where there is none."""
    found = first_row(
        con,
        "select table_type from information_schema.tables where table_catalog = current_database() "
        f"and table_schema = {literal(schema)} and table_name = {literal(name)}",
    )
    return None if found is None else "view" if found[0] == "VIEW" else "table"
