"""What a database is made of, as a proposal sees it: tables, views, counts of their values, keys and references.

Keys and references are those that constraints declare, and such as names suggest and values bear out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import sqlglot
from sqlglot import exp

from kgather._errors import InputError
from kgather._guard.catalog import kind_of
from kgather._guard.guessed import NUMBERS, SAME_PEOPLE, Column, Reference, Table, rank_of_people, singular
from kgather._guard.policy import fold
from kgather._guard.render import identifier

_EXACT = 1_000_000
"""Of how many rows at most different values are counted one by one."""
_FEW = 2_000  # different values, roughly, that are counted one by one in tables of any size
_NEARLY = 0.9  # of the rows: so many values, roughly, may be all different
_LOOKED_AT = 2_000  # values of a column that are looked for among the keys of another table
_FOUND = 0.95  # the part of them that has to be there
_SMALL_KEY = 3  # keys of a table with fewer rows are found among any numbers
_AT_ONCE = 40  # columns in one query


class _Listed(NamedTuple):
    """A column as the database lists it."""

    name: str
    type: str
    nulls: bool


class _Keys(NamedTuple):
    """What constraints say. primary: table -> columns; unique: table -> lists of columns."""

    primary: Mapping[str, tuple[str, ...]]
    unique: Mapping[str, list[tuple[str, ...]]]
    references: Sequence[Reference]


@dataclass
class Database:
    """Tables by their order in the database, with what refers to what. unreadable: views that raise an error."""

    tables: list[Table]
    references: list[Reference]
    unreadable: list[str]

    def table(self, name: str) -> Table:
        """A table by name."""
        return next(table for table in self.tables if table.name == name)

    def of(self, table: Table) -> Iterator[Reference]:
        """What a table refers to; what is declared first."""
        yield from (one for one in self.references if one.table == table.name)


def read_database(con: duckdb.DuckDBPyConnection, *, views: bool = True) -> Database:
    """Read what a database is made of, in all its schemas. views: whether its views are such, and not files."""
    found: dict[str, list[_Listed]] = {}
    schemas: dict[str, str] = {}
    current = con.execute("select current_schema()").fetchall()[0][0]
    texts = dict(
        con.execute(
            "select case when schema_name = current_schema() then view_name else schema_name || '.' || view_name end,"
            " sql from duckdb_views() where database_name = current_database() and not internal"
        ).fetchall()
    )
    for schema, table, column, type_, nulls in con.execute(
        "select table_schema, table_name, column_name, data_type, is_nullable = 'YES' from information_schema.columns"
        " where table_catalog = current_database() and table_schema not in ('information_schema', 'pg_catalog')"
        " order by table_schema <> current_schema(), table_schema, table_name, ordinal_position"
    ).fetchall():
        if fold(table).startswith("kg_"):
            continue
        name = table if schema == current else f"{schema}.{table}"
        if schema != current and name not in found:
            con.execute(
                f"create or replace temp view {identifier(name)} as from {identifier(schema)}.{identifier(table)}"
            )
        if schema != current:
            schemas[name] = schema
        found.setdefault(name, []).append(_Listed(column, type_, nulls))
    tables, unreadable = [], []
    for name, columns in found.items():
        try:
            tables.append(_measured(con, name, columns, texts.get(name) if views else None))
        except duckdb.Error:
            if name not in texts:
                msg = f"Table {name} cannot be read."
                raise InputError(msg) from None
            unreadable.append(name)
    for one in tables:
        one.schema = schemas.get(one.name, "")
    keys = _declared(con, current)
    for table in tables:
        table.key = _key(con, table, keys)
    references = [one for one in keys.references if {one.table, one.to} <= {*found}]
    references += _inferred(con, tables, references)
    return Database(tables, references, unreadable)


def _measured(con: duckdb.DuckDBPyConnection, name: str, columns: list[_Listed], view: str | None) -> Table:
    kinds = [kind_of(column.type) for column in columns]
    numbers: list[int | float | None] = []
    rows = 0
    for start in range(0, len(columns), _AT_ONCE):
        parts = ["count(*)"]
        for column, kind in zip(columns[start : start + _AT_ONCE], kinds[start : start + _AT_ONCE], strict=True):
            cell = identifier(column.name)
            number = f"cast({cell} as double)" if kind in NUMBERS else "null"
            told = kind != "other" or column.type == "UUID"
            length = f"avg(length({cell}))" if kind == "text" and column.type == "VARCHAR" else "null"
            parts += [
                f"approx_count_distinct({cell})" if told else "0",
                f"min({number})",
                f"max({number})",
                length,
            ]
        rows, *some = _asked(con, name, parts)
        numbers += some
    measured = []
    for at, (listed, kind) in enumerate(zip(columns, kinds, strict=True)):
        distinct, low, high, mean_length = numbers[4 * at : 4 * at + 4]
        measured.append(
            Column(
                listed.name,
                kind,
                int(distinct or 0),
                low,
                high,
                type=listed.type.upper(),
                nulls=listed.nulls,
                length=float(mean_length or 0.0),
            )
        )
    exact = [one for one in measured if one.distinct and (rows <= _EXACT or one.distinct <= _FEW)]
    for start in range(0, len(exact), _AT_ONCE):
        some_columns = exact[start : start + _AT_ONCE]
        counted = _asked(con, name, [f"count(distinct {identifier(one.name)})" for one in some_columns])
        for one, distinct in zip(some_columns, counted, strict=True):
            one.distinct = int(distinct)
    return Table(name, int(rows), measured, view=view or "")


def _asked(con: duckdb.DuckDBPyConnection, name: str, parts: Sequence[str]) -> tuple[int, ...]:
    return tuple(con.execute(f"select {', '.join(parts)} from {identifier(name)}").fetchall()[0])


def _declared(con: duckdb.DuckDBPyConnection, current: str) -> _Keys:
    primary: dict[str, tuple[str, ...]] = {}
    unique: dict[str, list[tuple[str, ...]]] = {}
    references: list[Reference] = []
    for schema, table, kind, columns, to, to_columns in con.execute(
        "select schema_name, table_name, constraint_type, constraint_column_names, referenced_table,"
        " referenced_column_names from duckdb_constraints() where database_name = current_database()"
        " and constraint_type in ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY') order by table_oid, constraint_index"
    ).fetchall():
        before = "" if schema == current else f"{schema}."
        name = before + table
        if kind == "PRIMARY KEY":
            primary[name] = tuple(columns)
        elif kind == "UNIQUE":
            unique.setdefault(name, []).append(tuple(columns))
        elif to:
            references.append(Reference(name, dict(zip(columns, to_columns, strict=True)), before + to, declared=True))
    return _Keys(primary, unique, references)


def _key(con: duckdb.DuckDBPyConnection, table: Table, keys: _Keys) -> tuple[str, ...]:
    """The columns that name a row: as declared, or the first column that names something and has no value twice."""
    if table.name in keys.primary:
        return keys.primary[table.name]
    for columns in keys.unique.get(table.name, ()):
        if all(not table.column(name).nulls or table.column(name).is_id for name in columns):
            return columns
    for at, column in enumerate(table.columns):
        if not column.is_name or column.distinct < _NEARLY * table.rows or not table.rows:
            continue
        named = column.is_id or column.stem == table.stem or (at == 0 and column.name.lower() in _KEYS)
        if named and _is_unique(con, table, column):
            column.distinct = table.rows
            return (column.name,)
    return ()


_KEYS = ("no", "nr", "number", "code", "sku")


def _is_unique(con: duckdb.DuckDBPyConnection, table: Table, column: Column) -> bool:
    if table.rows <= _EXACT:
        return column.distinct == table.rows
    return bool(_asked(con, table.name, [f"count(distinct {identifier(column.name)})"])[0] == table.rows)


def _inferred(
    con: duckdb.DuckDBPyConnection, tables: Sequence[Table], declared: Sequence[Reference]
) -> Iterator[Reference]:
    """References that names suggest and values bear out. Of a column the best one: the key that has its name, else that
    of the table that it is named for, else that of people of another word."""
    taken = {(one.table, name) for one in declared for name in one.columns}
    keyed = [table for table in tables if table.key and not table.view]
    by_name: dict[str, list[Table]] = {}
    by_stem: dict[tuple[str, ...], list[Table]] = {}
    single = [table for table in keyed if len(table.key) == 1]
    people = [table for table in single if rank_of_people(table.stem[-1])]
    for table in single:
        key = table.column(table.key[0])
        by_name.setdefault("_".join(key.parts), []).append(table)
        for stem in {key.stem, table.stem, table.stem[-1:]}:
            by_stem.setdefault(stem, []).append(table)
    for table in tables:
        for column in table.columns:
            own = table.key == (column.name,)
            if (table.name, column.name) in taken or not column.is_name or not column.distinct:
                continue
            for to in _candidates(table, column, by_name, by_stem, people, own=own):
                key = to.column(to.key[0])
                if _agree(column, key) and _is_among(con, table, column, to, key):
                    yield Reference(table.name, {column.name: key.name}, to.name, declared=False)
                    break
    for to in keyed:  # keys of several columns, by their names
        for table in tables if len(to.key) > 1 else ():
            if table is to or any(one.table == table.name and one.to == to.name for one in declared):
                continue
            names = {_bare(column): column.name for column in table.columns}
            wanted = {_bare(to.column(name)): name for name in to.key}
            if len(wanted) == len(to.key) and {*wanted} <= {*names} and table.key != to.key:
                columns = {names[bare]: name for bare, name in wanted.items()}
                yield Reference(table.name, columns, to.name, declared=False)


def _candidates(
    table: Table,
    column: Column,
    by_name: Mapping[str, Sequence[Table]],
    by_stem: Mapping[tuple[str, ...], Sequence[Table]],
    people: Sequence[Table],
    *,
    own: bool,
) -> Iterator[Table]:
    """Tables whose keys a column may hold, the likeliest first. own: whether it is the key of its own table."""
    seen = {table.name}
    generic = column.name.lower() in ("id", "key", "uuid", "guid", "no", "nr", "number", "code", "name")
    if generic or (column.kind == "integer" and _is_plural(column.parts[-1])):
        return  # UpVotes, orders: how many there are
    prefixed = tuple(column.parts[1:]) if len(column.parts[0]) <= 2 else ()  # l_orderkey, as o_orderkey
    sources = [by_name.get("_".join(column.parts), ()), by_stem.get(column.stem, ())]
    if prefixed:
        sources.append([one for name, of in by_name.items() for one in of if _without_prefix(name) == prefixed])
        sources.append(by_stem.get(column.stem[1:], ()))
    if column.words & {"id", "key", "uuid", "guid"} or len(column.parts) == 1:
        sources.append(by_stem.get(column.stem[-1:], ()))  # billing_customer_id
        if column.stem[-1] in SAME_PEOPLE:
            sources.append([one for one in people if one.stem[-1] in SAME_PEOPLE])
    for source in sources:
        for one in source:
            # Of two tables with the same key one may tell more of the other's rows: the larger one is referred to.
            if one.name in seen or (own and (one.rows, table.name) < (table.rows, one.name)):
                continue
            if own and one.stem != column.stem and table.stem == column.stem:
                continue
            seen.add(one.name)
            yield one


def _is_plural(word: str) -> bool:
    return singular(word) != word and word.endswith("s")


def _bare(column: Column) -> tuple[str, ...]:
    """The words of a column's name without the letters of its table before them: of l_orderkey order and key."""
    parts = column.parts
    return tuple(parts[1:]) if len(parts) > 1 and len(parts[0]) <= 2 else tuple(parts)


def _without_prefix(name: str) -> tuple[str, ...]:
    first, *rest = name.split("_")
    return tuple(rest) if len(first) <= 2 else ()


def _agree(column: Column, key: Column) -> bool:
    """Whether values of two columns may be compared."""
    return column.kind == key.kind and (column.kind != "other" or column.type == key.type)


def _is_among(con: duckdb.DuckDBPyConnection, table: Table, column: Column, to: Table, key: Column) -> bool:
    """Whether nearly all values of a column are keys of another table."""
    if not to.rows:
        return False
    if column.distinct > 1.1 * to.rows and column.distinct - to.rows > _SMALL_KEY:
        return False
    cell = identifier(column.name)
    some = (
        f"select distinct {cell} as v from (select {cell} from {identifier(table.name)} where {cell} is not null"
        f" limit {50 * _LOOKED_AT}) limit {_LOOKED_AT}"
    )
    looked, found = con.execute(
        f"select count(*), count(*) filter (v in (select {identifier(key.name)} from {identifier(to.name)}))"
        f" from ({some})"
    ).fetchall()[0]
    return bool(looked and found >= _FOUND * looked)


def read_by(text: str) -> set[str]:
    """The names, folded, of the tables that a view reads; as far as its text can be read."""
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return set()
    created = tree.this if isinstance(tree, exp.Create) else None
    return {
        fold(f"{found.db}.{found.name}" if found.db and found.db != "main" else found.name)
        for found in tree.find_all(exp.Table)
        if found is not created
    }
