"""The database that a policy names: opened for a measurement, checked, and shown through views.

The views hold the shown columns only, in a form that no operation fails on.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from kgather._errors import InputError
from kgather._guard.catalog import PERSON, Catalog, Column, Parent, TableInfo, beside, is_nested
from kgather._guard.measured.reading import Reading
from kgather._guard.measured.repeated import is_repeated
from kgather._guard.policy import fold
from kgather._guard.render import identifier
from kgather._guard.warehouse import Warehouse
from kgather._sql_text import literal

_SHOWN = ("artifact", "measure", "dimension", "coarsened")


@dataclass(frozen=True)
class Database:
    """The file that a policy names. It is open only while something is read: others may write it in between."""

    warehouse: Warehouse
    catalog: Catalog
    _repeated: dict[str, frozenset[str]] = field(default_factory=dict)
    """By stamp, the tables of grain unit in which some person has several rows."""

    @property
    def path(self) -> Path:
        """The file, or folder, that the policy names."""
        return self.warehouse.path

    def stamp(self) -> str:
        """What is another after the file was written to."""
        return self.warehouse.stamp()

    @contextmanager
    def reading(self) -> Iterator["Reading"]:
        """Read, on a connection that is closed at the end. Raises InputError, as `told`."""
        with self.told():
            reading = self.open()
            try:
                yield reading
            finally:
                reading.con.close()

    def open(self, memory: str | None = None) -> "Reading":
        """A connection that knows the shown columns only and reaches no other file; whoever calls closes it. memory:
        what it takes at most. Raises what `told` tells."""
        stamp = self.stamp()
        con = self.warehouse.connected(memory)
        try:
            if stamp in self._repeated:
                show(con, self.catalog, self._repeated[stamp])
            else:
                self._repeated[stamp] = show_once(con, self.catalog)
            con.execute("use memory")
            self.warehouse.lock(con)
        except BaseException:
            con.close()
            raise
        return Reading(con, self.catalog)

    @contextmanager
    def told(self) -> Iterator[None]:
        """What the engine raises while something is read, as an InputError that tells nothing of rows."""
        try:
            yield
        except duckdb.OutOfMemoryException:
            msg = "A measurement does not fit into the memory of this machine. Run the guard on a larger one."
            raise InputError(msg) from None
        except duckdb.Error:
            raise InputError(unreadable(self.warehouse)) from None


def unreadable(warehouse: Warehouse) -> str:
    """That some table cannot be read."""
    return (
        f"{warehouse} cannot be read. Its tables have to be tables of DuckDB, or views that read files which the "
        "policy names under files."
    )


def show(con: duckdb.DuckDBPyConnection, catalog: Catalog, repeated: frozenset[str]) -> None:
    """Make a view of each table; no row is read. repeated: as of `_repeated_in`; of these tables the views have one row
    of each person, or one that others belong to."""
    for info in _parents_first(catalog):
        con.execute(f"create or replace view memory.main.{identifier(info.name)} as {_view(info, repeated, catalog)}")


def show_once(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> frozenset[str]:
    """Make a view of each table in which everybody is once who has one row by the policy; what is in it several times
    is found out, and returned. Raises as `check_lookups`."""
    show(con, catalog, frozenset())
    check_lookups(con, catalog)
    repeated = _repeated_in(con, catalog)
    show(con, catalog, repeated)
    return repeated


def _repeated_in(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> frozenset[str]:
    """The tables of grain unit in which some person has several rows, and those whose rows belong to several."""
    several = {info.name for info in catalog.tables.values() if _has_several(con, info)}
    return frozenset(several | {_key_of(info) for info in _with_parents(con, catalog)})


def _parents_first(catalog: Catalog) -> list[TableInfo]:
    """The tables, those that others belong to before those."""
    return sorted(catalog.tables.values(), key=lambda info: len([*_ancestors(info)]))


def _ancestors(info: TableInfo) -> Iterator[TableInfo]:
    while info.parent is not None:
        info = info.parent.table
        yield info


def _has_several(con: duckdb.DuckDBPyConnection, info: TableInfo) -> bool:
    """Whether somebody has several rows in a table that has one of each person, by the policy or by what was found."""
    return (
        info.protected
        and info.grain == "unit"
        and not _has_key(con, info)
        and not _is_unique(con, info.name, [info.unit])
    )


def _has_key(con: duckdb.DuckDBPyConnection, info: TableInfo) -> bool:
    """Whether the database itself has each unit once in a table: where its values are shown as they are."""
    if info.parent is not None or info.unit_column.kind not in ("integer", "text"):
        return False
    keys = con.execute(
        "select database_name, schema_name, table_name, constraint_column_names from duckdb_constraints() "
        "where constraint_type in ('PRIMARY KEY', 'UNIQUE')"
    ).fetchall()
    return any(
        ".".join(identifier(part) for part in parts) == info.relation
        and [fold(name) for name in names] == [fold(info.unit_column.name)]
        for *parts, names in keys
    )


def _with_parents(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> list[TableInfo]:
    """The tables whose rows may belong to several rows, by keys that those share."""
    return [
        info
        for info in catalog.tables.values()
        if info.parent is not None and not _is_unique(con, info.parent.table.name, [key for _, key in info.parent.keys])
    ]


def _key_of(info: TableInfo) -> str:
    """What stands in the repeated tables for the key that the rows of a table belong by."""
    return f"key of {info.name}"


def check_lookups(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Raise InputError where a public table that is looked up has a key twice: joined, it would count a person more
    than once."""
    for at, join in catalog.joins:
        right = catalog.tables[fold(join.right.table)]
        if right.protected:
            continue
        columns = [right.columns[fold(side.column)].name for _, side in join.pairs]
        if not _is_unique(con, right.name, columns):
            told = (
                f"{right.name}.{', '.join(columns)} is looked up, and has some value more than once. A public table "
                "that is joined has each key once: correct joins in the policy, or the table"
            )
            raise catalog.policy.error(("joins", at), told)


def _is_unique(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> bool:
    """Whether columns of a view have each value once; as they are joined, not as the table has them."""
    named = [identifier(column) for column in columns]
    there = " and ".join(f"{name} is not null" for name in named)
    if len(named) == 1:
        return not is_repeated(con, f"(from memory.main.{identifier(table)} where {there})", named[0])
    whole = f"({', '.join(named)})"
    counted = f"select count(*) = count(distinct {whole}) from memory.main.{identifier(table)} where {there}"
    return bool(con.execute(counted).fetchall()[0][0])


_DATES = ("0010-01-01", "9999-12-31")
"""The first and the last day that all operations on dates can take."""


def _view(info: TableInfo, repeated: frozenset[str], catalog: Catalog) -> str:
    columns = [as_total(column) for column in info.columns.values() if column.role in (*_SHOWN, "key", "public")]
    if not info.protected:
        return f"select {', '.join(columns)} from {info.relation}"
    if info.parent is not None:
        several_kinds = len(catalog.kinds) > 1
        distinct = _key_of(info) in repeated
        return _of_parent(info, info.parent, columns, distinct=distinct, several_kinds=several_kinds)
    unit = info.unit_column
    there = " and ".join(f"{identifier(name)} is not null" for name in (unit.name, *_keys(info)))
    view = f"from (select {', '.join([as_total(unit), *columns])} from {info.relation}) where {there}"
    if len(catalog.kinds) > 1:
        person = _person(identifier(unit.name), info.people, several_kinds=True)
        view = f"select * replace ({person} as {identifier(unit.name)}) from ({view})"
    if info.name not in repeated:
        return view
    shown = [column.name for column in info.columns.values() if column.role in _SHOWN]
    order = ", ".join(identifier(column) for column in (info.unit, *shown))
    # Nobody is told of it: that a person has a second row is that person's. Which one stays follows from what the
    # person's rows show, and from nothing else: rows that come out equal in this order are the same.
    return f"from ({view}) qualify row_number() over (partition by {identifier(info.unit)} order by {order}) = 1"


def _keys(info: TableInfo) -> list[str]:
    return [column.name for column in info.columns.values() if column.role == "key"]


def _person(unit: str, people: str, several_kinds: bool) -> str:
    """SQL of who a unit names: people of two kinds are others, even if they have one number."""
    return f"{literal(f'{people} ')} || cast({unit} as varchar)" if several_kinds else unit


def _of_parent(info: TableInfo, parent: Parent, columns: list[str], *, distinct: bool, several_kinds: bool) -> str:
    """SQL of rows with what they belong to. distinct: its key is not one row's alone."""
    of = parent.table
    beside_it = [
        f"kg_parent.{identifier(column.name)} as {identifier(beside(of, column.name))}"
        for column in of.columns.values()
        if column.role in (*_SHOWN, "key")
    ]
    beside_it += [f"kg_parent.{identifier(c.name)}" for c in of.beside.values() if c.role in (*_SHOWN, "key")]
    person = f"kg_parent.{identifier(of.unit)} as {identifier(PERSON)}"
    named = [identifier(key) for _, key in parent.keys]
    if info.says_person is not None:  # of those who share a key only one is the person whom a row names
        named.append(identifier(of.unit))
    whole = f"memory.main.{identifier(of.name)}"
    if distinct:
        # A row is of one person: of those who share the key, the first one. Without that person, it is not there.
        order = ", ".join(identifier(name) for name in (of.unit, *_shown(of)))
        whole = f"(from {whole} qualify row_number() over (partition by {', '.join(named)} order by {order}) = 1)"
    on = " and ".join(f"kg_child.{identifier(own)} = kg_parent.{identifier(key)}" for own, key in parent.keys)
    if info.says_person is not None:
        columns = [*columns, as_total(info.says_person)]
        own_person = f"kg_child.{identifier(info.says_person.name)}"
        on += f" and {_person(own_person, info.people, several_kinds)} = kg_parent.{identifier(of.unit)}"
    own = f"select {', '.join(columns)} from {info.relation}"
    read = f"from ({own}) as kg_child join {whole} as kg_parent on {on}"
    return f"select kg_child.*, {', '.join([person, *beside_it])} {read}"


def _shown(info: TableInfo) -> Iterator[str]:
    """The shown columns of a view: of the table, and of the rows beside it."""
    return (c.name for c in (*info.columns.values(), *info.beside.values()) if c.role in (*_SHOWN, "key"))


def as_total(column: Column) -> str:
    """SQL of a column with values that no operation fails on, and of which equal ones are the same: one person's value
    makes no error, never stands for what others wrote otherwise, and is told from others in one way by all of SQL."""
    name, of = identifier(column.name), stored(column)
    if column.kind == "text":  # a collation would take different texts for one
        return f'cast({of} as varchar) collate "binary" as {name}'
    if column.kind in ("date", "timestamp"):  # cutting off the months of others leaves the calendar
        first, last = (f"cast('{day}' as {column.type})" for day in _DATES)
        return f"case when {of} between {first} and {last} then {of} end as {name}"
    if column.type == "HUGEINT":  # also what was larger, and is compared with others as a DOUBLE
        return f"try_cast({of} as hugeint) as {name}"
    if is_nested(column.type):  # its fields would be read where a column of a table of its name is meant
        return f"case when {of} is not null then true end as {name}"
    if column.type in ("FLOAT", "DOUBLE"):  # 0.0 and -0.0 are equal, and so is all that is no number
        return f"case when isnan({of}) then cast('nan' as {column.type}) else {of} + 0 end as {name}"
    return name if of == name else f"{of} as {name}"


def stored(column: Column) -> str:
    """SQL of a column in the table as it is stored, in the type in which it is shown."""
    return column.source or identifier(column.name)
