"""The tables of a policy with the columns and types that they have in the database."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import duckdb

from kgather._errors import InputError
from kgather._guard.paths import path_of
from kgather._guard.plan import Bound, Kind
from kgather._guard.policy import Budget, Grain, Join, JoinSide, Policy, Table, fold
from kgather._guard.policy_errors import Where, near
from kgather._guard.render import identifier
from kgather._guard.warehouse import relations

_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)
_KINDS: dict[str, Kind] = {
    "FLOAT": "number",
    "DOUBLE": "number",
    "DECIMAL": "number",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "UUID": "text",
}
_CONVERTED: dict[str, str] = {
    "TIMESTAMP_S": "try_cast({} as timestamp)",
    "TIMESTAMP_MS": "try_cast({} as timestamp)",
    "TIMESTAMP_NS": "try_cast({} as timestamp)",
    "TIMESTAMP WITH TIME ZONE": "make_timestamp(epoch_us({}))",
    "UUID": "cast({} as varchar)",
}
"""SQL by which columns of some types are shown in others: moments to the microsecond, of UTC; and texts."""


PERSON = "kg_person"
"""The privacy unit's column of a table that belongs to another, as the guard shows the table."""


@dataclass(frozen=True)
class Column:
    """A column of a table of the policy. role: unit, key, artifact, measure, dimension, coarsened, hidden or public.
    type: as DuckDB names it."""

    name: str
    role: str
    kind: Kind
    type: str = "VARCHAR"
    source: str = ""
    """SQL of it in the stored table, where it is no column there, or one of another type."""


@dataclass(frozen=True)
class Parent:
    """The table that says whose a row is. keys: a column of the row's own, and the one of the table that it equals."""

    table: "TableInfo"
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableInfo:
    """A table of the policy as it is in the database. columns: by folded name, in the order of the table. relation: how
    it is written in SQL. parent: where the person is found, if not in a column of its own."""

    name: str
    policy: Table
    grain: Grain
    columns: Mapping[str, Column] = field(hash=False)
    relation: str = field(default="", compare=False)
    parent: Parent | None = field(default=None, hash=False)

    @property
    def protected(self) -> bool:
        """Whether its rows are of people."""
        return not self.policy.public

    @property
    def unit(self) -> str:
        """The name of the privacy unit's column."""
        return self.unit_column.name

    @property
    def people(self) -> str:
        """The kind of people that it is about."""
        return fold(self.policy.unit or "") if self.parent is None else self.parent.table.people

    @cached_property
    def unit_column(self) -> Column:
        """The privacy unit's column: its own, or that of its parent."""
        if self.parent is None:
            return self.columns[fold(self.policy.privacy_unit or "")]
        return replace(self.parent.table.unit_column, name=PERSON)

    @property
    def says_person(self) -> Column | None:
        """Of a table with a parent: its own column that names the person once more."""
        named = self.policy.privacy_unit
        return self.columns[fold(named)] if self.parent is not None and named is not None else None

    @property
    def has_paths(self) -> bool:
        """Whether some of its columns are parts of others."""
        return any(column.source and "." in column.name for column in self.columns.values())

    def column(self, name: str) -> Column | None:
        """A column by name, in whatever case: its own, or one beside it."""
        return self.columns.get(fold(name)) or self.beside.get(fold(name))

    @cached_property
    def beside(self) -> Mapping[str, Column]:
        """What a row has from the rows that it belongs to: their columns, named table.column, and the person."""
        if self.parent is None:
            return {}
        found = {PERSON: self.unit_column}
        for column in self.parent.table.columns.values():
            found[fold(beside(self.parent.table, column.name))] = replace(
                column, name=beside(self.parent.table, column.name)
            )
        further = (column for column in self.parent.table.beside.values() if column.role != "unit")
        return {**found, **{fold(column.name): column for column in further}}

    def names_rows_by(self, column: Column) -> bool:
        """Whether a column alone names one row."""
        return [fold(name) for name in self.policy.key] == [fold(column.name)]

    def origin(self, column: Column) -> "TableColumn":
        """The table that a column is of, which has an entry in the policy for it, and the column there."""
        table, name = self, fold(column.name)
        while table.parent is not None and name not in table.columns:
            table = table.parent.table
            own = next((one for one in table.columns.values() if fold(beside(table, one.name)) == name), None)
            if own is not None:
                return TableColumn(table, own)
        return TableColumn(table, table.columns.get(name, column))


def beside(table: TableInfo, column: str) -> str:
    """What a column is named in the rows that belong to those of a table."""
    return f"{table.name}.{column}"


class TableColumn(NamedTuple):
    """A column and its table."""

    table: TableInfo
    column: Column


_BY = " by "


@dataclass(frozen=True)
class Catalog:
    """What names mean. Build it with `of` or, from a database, with `catalog_of`."""

    policy: Policy
    tables: Mapping[str, TableInfo]
    uniques: Mapping[str, str] = field(default_factory=dict)
    """Table of grain rows -> the column that names one row together with the unit."""

    @classmethod
    def of(
        cls,
        policy: Policy,
        schema: Mapping[str, Mapping[str, str]],
        grains: Mapping[str, Grain] | None = None,
        written: Mapping[str, str] | None = None,
    ) -> "Catalog":
        """Build a catalog. schema: table -> column -> type, as DuckDB names types. grains: of the tables for which the
        policy says none. written: how tables are written in SQL, by folded name.

        Raises InputError if the database lacks a table or a column of the policy, or a grain is not known.
        """
        tables: dict[str, TableInfo] = {}
        found = {fold(name): columns for name, columns in schema.items()}
        known_grains = {fold(name): grain for name, grain in (grains or {}).items()}
        for name, table in policy.tables.items():
            columns = found.get(fold(name))
            if columns is None:
                listed = [known for known in schema if not fold(known).startswith("main.")]
                told = f"the database has no table {name!r}. {near(name, listed, 'Its tables')}"
                raise policy.error(("tables", name), told)
            roles = {fold(column): role for column, role in table.roles()}
            measured = policy.mode == "measured"
            infos = {
                fold(column): _column(
                    column, "public" if table.public else roles.get(fold(column), "hidden"), type_, measured
                )
                for column, type_ in columns.items()
            }
            for column, role in table.roles() if measured else ():
                path = path_of(column, columns, table.types) if fold(column) not in infos else None
                if path is not None:
                    infos[fold(column)] = _column(column, role, path.type, measured, path.source)
            missing = [column for column, _ in table.roles() if fold(column) not in infos]
            if missing:
                raise _no_column(policy, ("tables", name, *table.where(missing[0])), name, missing[0], columns)
            read = (written or {}).get(fold(name), identifier(name))
            tables[fold(name)] = TableInfo(name, table, _grain(policy, name, known_grains), infos, read)
        _add_parents(policy, tables)
        return cls(policy, tables, _uniques(policy, tables))._checked()

    def _checked(self) -> "Catalog":
        for at, join in enumerate(self.policy.joins):
            left, right = (self.tables[fold(side.table)] for side in (join.left, join.right))
            if left.protected and right.protected and left.people != right.people:
                told = f"{left.name} and {right.name} are about people of two kinds, as unit says, which are not joined"
                raise self.policy.error(("joins", at), told)
            for sides in join.pairs:
                self._check_equality(at, sides)
        self._check_units()
        for info in self.tables.values():
            self._check_names(info)
            self._check_pivot(info)
            for name, truncation in info.policy.coarsened.items():
                if (found := info.column(name)) is not None and found.kind not in ("date", "timestamp"):
                    told = f"{name} is {found.type}, no date or timestamp: it cannot be coarsened to {truncation}"
                    raise self.policy.error(("tables", info.name, "coarsened", name), told)
        return self

    def _check_equality(self, at: int, sides: tuple[JoinSide, JoinSide]) -> None:
        for table, column in sides:
            info = self.tables[fold(table)]
            if info.column(column) is None:
                names = [known.name for known in info.columns.values()]
                raise _no_column(self.policy, ("joins", at), table, column, names)
        kinds = {self._kind(table, column) for table, column in sides}
        types = {self._type(table, column) for table, column in sides}
        # Numbers of two precisions are compared in one that may not hold all of them.
        if len(kinds) > 1 or ("other" in kinds and types != {"UUID"}) or (kinds == {"number"} and len(types) > 1):
            told = " and ".join(
                f"{table}.{column} is {self._type(table, column) or 'unknown'}" for table, column in sides
            )
            what = f"the two columns are of different types, or of types that are not compared: {told}"
            raise self.policy.error(("joins", at), what)

    def _kind(self, table: str, column: str) -> Kind:
        found = self.tables[fold(table)].column(column)
        return found.kind if found is not None else "other"

    def _type(self, table: str, column: str) -> str:
        found = self.tables[fold(table)].column(column)
        return found.type if found is not None else ""

    def _check_units(self) -> None:
        """People of one kind are compared in all tables: units of two types would fail, or be taken for each other, on
        some."""
        types: dict[str, dict[str, TableInfo]] = {}
        for info in self.tables.values():
            if info.protected:
                types.setdefault(info.people, {}).setdefault(_compared_as(info.unit_column.type), info)
        for of_kind in types.values():
            if len(of_kind) < 2:
                continue
            one, other = list(of_kind.values())[:2]
            told = (
                f"the privacy units {one.name}.{one.unit} and {other.name}.{other.unit} are of different types. Give "
                "them one type in the database; if they are people of two kinds, name the kind of each under unit"
            )
            raise self.policy.error(("tables", other.name, "privacy_unit"), told)

    def _check_names(self, info: TableInfo) -> None:
        """Columns that are shown have no name that the guard gives: one would be taken for the other."""
        for key, column in info.columns.items():
            shown = column.role != "hidden" or not info.protected
            where: Where = ("tables", info.name)
            if shown and key.startswith("kg_"):
                told = f"column {column.name!r} begins with kg_, as the guard's own: give it another name in a view"
                raise self.policy.error(where, told)
            if shown and key in info.beside:
                told = (
                    f"column {column.name!r} is named as one of what its rows belong to: give it another name in a view"
                )
                raise self.policy.error(where, told)
            if column.role == "unit" and is_nested(column.type):
                raise self.policy.error(
                    (*where, "privacy_unit"), f"{column.name} is {column.type}: it does not name people"
                )

    def _check_pivot(self, info: TableInfo) -> None:
        pivot = info.policy.pivot_of
        for key in pivot.names if pivot is not None else ():
            assert pivot is not None
            kind = self._kind(pivot.table, pivot.key)
            if kind != ("integer" if isinstance(key, int) else "text"):
                told = (
                    f"{key!r} is no value of {pivot.table}.{pivot.key}, which holds "
                    f"{'whole numbers' if kind == 'integer' else 'texts' if kind == 'text' else 'something else'}"
                )
                raise self.policy.error(("tables", info.name, "pivot_of", "names"), told)

    def table(self, name: str) -> TableInfo | None:
        """A table by name, in whatever case; also by what it is named where it is looked up."""
        found = self.tables.get(fold(name))
        if found is None:
            beside_ = [info for info in self.tables.values() if fold(name).startswith(f"{fold(info.name)}{_BY}")]
            found = max(beside_, key=lambda info: len(info.name), default=None)
        return found

    def named(self, name: str, schema: str | None = None, database: str | None = None) -> TableInfo | None:
        """The table that a statement names: of schema main, if it says none, or else the only one of that name. The
        database that the policy names is known by its file's name, too."""
        own = {"source", fold(self.policy.database.stem)}
        if schema is None:
            found = self.tables.get(fold(name))
            same = [info for key, info in self.tables.items() if key.rpartition(".")[2] == fold(name)]
            return found if found is not None or len(same) != 1 else same[0]
        if database is None or fold(database) in own:
            prefixes = [f"{schema}.", f"{schema}.main."]
            prefixes += [""] if fold(schema) == "main" or (database is None and fold(schema) in own) else []
        else:
            prefixes = [f"{database}.{schema}."] + ([f"{database}."] if fold(schema) == "main" else [])
        return next((self.tables[key] for prefix in prefixes if (key := fold(f"{prefix}{name}")) in self.tables), None)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of people that there are, in the order of their tables; one without a name where no table says."""
        return tuple(dict.fromkeys(info.people for info in self.tables.values() if info.protected)) or ("",)

    def of_kind(self, kind: str) -> "Catalog":
        """The tables about people of one kind, and the public ones."""
        tables = {name: info for name, info in self.tables.items() if not info.protected or info.people == kind}
        return replace(self, tables=tables)

    @property
    def budget(self) -> Budget:
        """The budget of the people of a catalog of one kind."""
        (kind,) = self.kinds
        return self.policy.budget.of(kind)

    @cached_property
    def joins(self) -> tuple[tuple[int, Join], ...]:
        """The declared equalities of tables that are here, with their places in the policy."""
        return tuple(
            (at, join)
            for at, join in enumerate(self.policy.joins)
            if fold(join.left.table) in self.tables and fold(join.right.table) in self.tables
        )

    def unit(self, table: str) -> str:
        """The privacy unit's column of a protected table."""
        return self.tables[fold(table)].unit

    def unique(self, table: TableInfo) -> str | None:
        """The column that names one row of a table together with the unit."""
        return self.uniques.get(fold(table.name))

    def units_join(self, left: TableInfo, right: TableInfo) -> bool:
        """Whether two protected tables may be joined on the privacy unit: one table with itself, or tables that
        declared equalities lead between."""
        if left.people != right.people:
            return False
        return left.name == right.name or self._unit_class[fold(left.name)] == self._unit_class[fold(right.name)]

    def lookups_by(self, left: TableInfo, right: TableInfo) -> Iterator[tuple[tuple[str, str], ...]]:
        """The columns of a table by which a public table is looked up, with those of that table."""
        for _, join in self.joins:
            if (fold(join.left.table), fold(join.right.table)) == (fold(left.name), fold(right.name)):
                yield tuple((fold(one.column), fold(other.column)) for one, other in join.pairs)

    def key_looked_up(self, table: TableInfo, column: str) -> Bound | None:
        """The key of the public table that a column alone looks up."""
        for _, join in self.joins:
            right = self.tables[fold(join.right.table)]
            left = (fold(join.left.table), fold(join.left.column))
            if join.more or right.protected or left != (fold(table.name), fold(column)):
                continue
            found = right.columns[fold(join.right.column)]
            return Bound(right.name, found.name, found.kind)
        return None

    def name_beside(self, table: TableInfo, by: Sequence[Bound], keys: Sequence[str]) -> str:
        """What a public table is named where it is looked up by columns: one that is looked up in several ways, by the
        way. keys: its columns that they equal."""
        joins = [join for join in self.policy.joins if fold(join.right.table) == fold(table.name)]
        if len(joins) < 2:
            return table.name
        way = f"{by[0].table}.{', '.join(one.column for one in by)}"
        several = len({tuple(fold(right.column) for _, right in join.pairs) for join in joins}) > 1
        return f"{table.name}{_BY}{way}" + (f" as {', '.join(keys)}" if several else "")

    @cached_property
    def _unit_class(self) -> dict[str, str]:
        of = {name: name for name in self.tables}
        joined = [(fold(join.left.table), fold(join.right.table)) for _, join in self.joins]
        joined += [
            (fold(info.parent.table.name), name) for name, info in self.tables.items() if info.parent is not None
        ]
        for left, right in joined:
            if self.tables[left].protected and self.tables[right].protected:
                old, new = of[right], of[left]
                of = {name: new if first == old else first for name, first in of.items()}
        return of


def _compared_as(type_: str) -> str:
    """What units of a type are compared as: whole numbers of all sizes but one are compared exactly."""
    return "integer" if kind_of(type_) == "integer" and type_ != "UHUGEINT" else type_


def _column(name: str, role: str, type_: str, measured: bool, source: str = "") -> Column:
    """A column as it is shown. source: SQL of it in the stored table, if it is a part of a column."""
    converted = _CONVERTED.get(type_.upper())
    if converted is None:
        return Column(name, role, kind_of(type_), shown_type(type_), source)
    if not measured:
        return Column(name, role, "other", type_)
    return Column(name, role, kind_of(type_), shown_type(type_), converted.format(source or identifier(name)))


def is_nested(type_: str) -> bool:
    """Whether values of a type of DuckDB have parts: fields, entries or elements."""
    return type_.endswith("]") or type_.upper().startswith(("STRUCT", "MAP", "UNION", "JSON", "VARIANT"))


def kind_of(type_: str) -> Kind:
    """What the guard knows of a type of DuckDB."""
    base = type_.upper().split("(")[0].strip()
    if type_.endswith("]"):
        return "other"
    if base in _INTEGERS:
        return "integer"
    if base == "ENUM":
        return "text"
    return _KINDS.get(base, "other")


def shown_type(type_: str) -> str:
    """The type in which a column is shown: the values of an ENUM are texts, and all whole numbers are of types that
    compare exactly with each other, as UHUGEINT with the others does not."""
    if type_.upper() == "UHUGEINT":
        return "HUGEINT"
    if type_.upper() in _CONVERTED:
        return "VARCHAR" if type_.upper() == "UUID" else "TIMESTAMP"
    return "VARCHAR" if type_.upper().startswith("ENUM") and not type_.endswith("]") else type_


FindGrain = Callable[[duckdb.DuckDBPyConnection, str, str, str], Grain]
"""Finds out whether a table, by its name, how it is written and the name of its privacy unit, has one row a unit."""


def count_rows(connection: duckdb.DuckDBPyConnection, table: str, relation: str, unit: str) -> Grain:
    """Whether a table has one row a unit, by counting."""
    del table
    counted = f"select count(*) = count(distinct {identifier(unit)}) from {relation}"
    return "unit" if connection.execute(counted).fetchall()[0][0] else "rows"


def catalog_of(connection: duckdb.DuckDBPyConnection, policy: Policy, find_grain: FindGrain = count_rows) -> Catalog:
    """Build the catalog of a database. find_grain: of tables for which the policy says none.

    Raises InputError if the database lacks a table or a column of the policy.
    """
    reached = relations(connection)
    schema = {name: relation.columns for name, relation in reached.items()}
    found = {fold(name): relation.sql for name, relation in reached.items()}
    _add_row_numbers(connection, policy, schema)
    by_name = {fold(name): columns for name, columns in schema.items()}
    grains: dict[str, Grain] = {}
    for name, entry in policy.tables.items():
        columns = {fold(column) for column in by_name.get(fold(name), ())}
        if entry.public or entry.grain or entry.belongs_to or fold(entry.privacy_unit or "") not in columns:
            continue
        if any(t.pivot_of and fold(name) in (fold(t.pivot_of.table), fold(n)) for n, t in policy.tables.items()):
            continue  # a pivot says so itself
        grains[name] = find_grain(connection, name, found[fold(name)], entry.privacy_unit or "")
    return Catalog.of(policy, schema, grains, found)


ROW = "rowid"
"""As a privacy unit: each row of a table is a person. It is DuckDB's number of the row."""


def _add_row_numbers(connection: duckdb.DuckDBPyConnection, policy: Policy, schema: dict[str, dict[str, str]]) -> None:
    """Add the number of the row to the columns of tables whose rows are people. Views have none."""
    tables = {fold(name): name for name in schema}
    for name, entry in policy.tables.items():
        found = tables.get(fold(name))
        if fold(entry.privacy_unit or "") != ROW or found is None or ROW in {fold(one) for one in schema[found]}:
            continue
        is_table = connection.execute(
            "select count(*) > 0 from information_schema.tables where table_name = ? and table_type = 'BASE TABLE'"
            " and table_schema = current_schema() and table_catalog = current_database()",
            [found],
        ).fetchall()[0][0]
        if is_table:
            schema[found] = {ROW: "BIGINT", **schema[found]}


def _grain(policy: Policy, name: str, grains: Mapping[str, Grain]) -> Grain:
    table = policy.tables[name]
    if table.public or table.belongs_to:
        return "rows"
    if any(t.pivot_of and fold(t.pivot_of.table) == fold(name) for t in policy.tables.values()):
        return "rows"
    if table.pivot_of:
        return "unit"
    grain = table.grain or grains.get(fold(name))
    if grain is None:
        told = "is missing, and whether the table has one row a person or many is not known. Say grain: unit, or rows"
        raise policy.error(("tables", name, "grain"), told)
    return grain


def _add_parents(policy: Policy, tables: dict[str, TableInfo]) -> None:
    """Say of each table that belongs to another which one that is, and by which columns."""

    def with_parent(name: str) -> TableInfo:
        info = tables[name]
        if info.policy.parent is None or info.parent is not None:
            return info
        of = with_parent(fold(info.policy.parent))
        keys = []
        for own, target in info.policy.belongs_to.items():
            there = of.columns.get(fold(target.rpartition(".")[2]))
            where: Where = ("tables", info.name, "belongs_to", own)
            if there is None:
                known = [column.name for column in of.columns.values()]
                raise _no_column(policy, where, of.name, target.rpartition(".")[2], known)
            here = info.columns[fold(own)]
            if _compared_as(here.type) != _compared_as(there.type):
                told = f"the two columns are of different types: {own} is {here.type}, and {target} is {there.type}"
                raise policy.error(where, told)
            keys.append((here.name, there.name))
        says = info.policy.privacy_unit
        if says is not None and _compared_as(info.columns[fold(says)].type) != _compared_as(of.unit_column.type):
            told = f"{says} is {info.columns[fold(says)].type}, and people of {of.name} are {of.unit_column.type}"
            raise policy.error(("tables", info.name, "privacy_unit"), told)
        if info.policy.unit is not None and fold(info.policy.unit) != of.people:
            told = f"its rows belong to rows of {of.name}, which is not about people of the kind {info.policy.unit!r}"
            raise policy.error(("tables", info.name, "unit"), told)
        tables[name] = replace(info, parent=Parent(of, tuple(keys)))
        return tables[name]

    # What is a key of others is one in its own table, too, and what names it is joined on.
    for info in list(tables.values()):
        for own, target in info.policy.belongs_to.items():
            table, _, column = target.rpartition(".")
            for name, side in ((fold(info.name), fold(own)), (fold(table), fold(column))):
                of = tables[name]
                found = of.columns.get(side)
                if found is not None and found.role == "hidden":
                    tables[name] = replace(of, columns={**of.columns, side: replace(found, role="key")})
    for name in list(tables):
        with_parent(name)


def _no_column(policy: Policy, where: Where, table: str, column: str, known: Iterable[str]) -> InputError:
    """That the policy names a column which the table does not have."""
    told = f"table {table!r} of the database has no column {column!r}. {near(column, known, 'Its columns')}"
    return policy.error(where, told)


def _uniques(policy: Policy, tables: Mapping[str, TableInfo]) -> dict[str, str]:
    uniques = {name: table.policy.unique for name, table in tables.items() if table.policy.unique}
    for table in policy.tables.values():
        if table.pivot_of:
            uniques[fold(table.pivot_of.table)] = table.pivot_of.key
    return {name: column.name for name, key in uniques.items() if (column := tables[name].column(key))}
