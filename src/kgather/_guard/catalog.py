"""The tables of a policy with the columns and types that they have in the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import duckdb

from kgather._errors import InputError
from kgather._guard.plan import Kind
from kgather._guard.policy import Grain, JoinSide, Policy, Table, fold
from kgather._guard.render import identifier

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
}


@dataclass(frozen=True)
class Column:
    """A column of a table of the policy. role: unit, artifact, measure, dimension, coarsened, hidden or public."""

    name: str
    role: str
    kind: Kind


@dataclass(frozen=True)
class TableInfo:
    """A table of the policy as it is in the database. columns: by folded name, in the order of the table."""

    name: str
    policy: Table
    grain: Grain
    columns: Mapping[str, Column] = field(hash=False)

    @property
    def protected(self) -> bool:
        """Whether its rows are of people."""
        return not self.policy.public

    @property
    def unit(self) -> str:
        """The name of the privacy unit's column."""
        return self.columns[fold(self.policy.privacy_unit or "")].name

    def column(self, name: str) -> Column | None:
        """A column by name, in whatever case."""
        return self.columns.get(fold(name))


class TableColumn(NamedTuple):
    """A column and its table."""

    table: TableInfo
    column: Column


class _Declared(NamedTuple):
    """A declared join with its names folded, N:1 from left to right."""

    left: JoinSide
    right: JoinSide


@dataclass(frozen=True)
class Catalog:
    """What names mean. Build it with `of` or, from a database, with `catalog_of`."""

    policy: Policy
    tables: Mapping[str, TableInfo]
    uniques: Mapping[str, str] = field(default_factory=dict)
    """Table of grain rows -> the column that names one row together with the unit."""

    @classmethod
    def of(
        cls, policy: Policy, schema: Mapping[str, Mapping[str, str]], grains: Mapping[str, Grain] | None = None
    ) -> "Catalog":
        """Build a catalog. schema: table -> column -> type, as DuckDB names types. grains: of the tables for which the
        policy says none.

        Raises InputError if the database lacks a table or a column of the policy, or a grain is not known.
        """
        tables: dict[str, TableInfo] = {}
        found = {fold(name): columns for name, columns in schema.items()}
        known_grains = {fold(name): grain for name, grain in (grains or {}).items()}
        for name, table in policy.tables.items():
            columns = found.get(fold(name))
            if columns is None:
                msg = f"The database has no table {name!r}, which the policy names. Correct tables in the policy."
                raise InputError(msg)
            roles = {fold(column): role for column, role in table.roles()}
            infos = {
                fold(column): Column(
                    column, "public" if table.public else roles.get(fold(column), "hidden"), kind_of(type_)
                )
                for column, type_ in columns.items()
            }
            missing = [column for column, _ in table.roles() if fold(column) not in infos]
            if missing:
                msg = f"Table {name!r} has no column {missing[0]!r}, which the policy names. Correct tables.{name}."
                raise InputError(msg)
            tables[fold(name)] = TableInfo(name, table, _grain(policy, name, known_grains), infos)
        return cls(policy, tables, _uniques(policy, tables))._checked()

    def _checked(self) -> "Catalog":
        for join in self.policy.joins:
            for table, column in (join.left, join.right):
                if self.tables[fold(table)].column(column) is None:
                    msg = f"Table {table!r} has no column {column!r}, which joins in the policy name."
                    raise InputError(msg)
            kinds = {self._kind(table, column) for table, column in (join.left, join.right)}
            if len(kinds) > 1 or "other" in kinds:
                sides = " = ".join(".".join(side) for side in (join.left, join.right))
                msg = f"The columns of the join {sides} are of different types, or of types that are not compared."
                raise InputError(msg)
        for info in self.tables.values():
            self._check_pivot(info)
            for name, truncation in info.policy.coarsened.items():
                if (found := info.column(name)) is not None and found.kind not in ("date", "timestamp"):
                    msg = f"{info.name}.{name} is no date or timestamp: it cannot be coarsened to {truncation}."
                    raise InputError(msg)
        return self

    def _kind(self, table: str, column: str) -> Kind:
        found = self.tables[fold(table)].column(column)
        return found.kind if found is not None else "other"

    def _check_pivot(self, info: TableInfo) -> None:
        pivot = info.policy.pivot_of
        for key in pivot.names if pivot is not None else ():
            assert pivot is not None
            kind = self._kind(pivot.table, pivot.key)
            if kind != ("integer" if isinstance(key, int) else "text"):
                msg = (
                    f"tables.{info.name}.pivot_of.names: {key!r} is no value of {pivot.table}.{pivot.key}, which holds"
                    f" {'whole numbers' if kind == 'integer' else 'texts' if kind == 'text' else 'something else'}."
                )
                raise InputError(msg)

    def table(self, name: str) -> TableInfo | None:
        """A table by name, in whatever case."""
        return self.tables.get(fold(name))

    def unit(self, table: str) -> str:
        """The privacy unit's column of a protected table."""
        return self.tables[fold(table)].unit

    def unique(self, table: TableInfo) -> str | None:
        """The column that names one row of a table together with the unit."""
        return self.uniques.get(fold(table.name))

    def units_join(self, left: TableInfo, right: TableInfo) -> bool:
        """Whether two protected tables may be joined on the privacy unit: one table with itself, or tables that
        declared equalities lead between."""
        return left.name == right.name or self._unit_class[fold(left.name)] == self._unit_class[fold(right.name)]

    def looks_up(self, left: TableColumn, right: TableColumn) -> bool:
        """Whether an equality of two columns is declared, N:1 from left to right."""
        wanted = _Declared(*(JoinSide(fold(side.table.name), fold(side.column.name)) for side in (left, right)))
        return wanted in self._lookups

    @cached_property
    def _lookups(self) -> frozenset[_Declared]:
        declared = (
            _Declared(*(JoinSide(fold(side.table), fold(side.column)) for side in (join.left, join.right)))
            for join in self.policy.joins
        )
        return frozenset(join for join in declared if not self.tables[join.right.table].protected)

    @cached_property
    def _unit_class(self) -> dict[str, str]:
        of = {name: name for name in self.tables}
        for join in self.policy.joins:
            left, right = fold(join.left.table), fold(join.right.table)
            if self.tables[left].protected and self.tables[right].protected:
                old, new = of[right], of[left]
                of = {name: new if first == old else first for name, first in of.items()}
        return of


def kind_of(type_: str) -> Kind:
    """What the guard knows of a type of DuckDB."""
    base = type_.upper().split("(")[0].strip()
    if type_.endswith("]"):
        return "other"
    if base in _INTEGERS:
        return "integer"
    return _KINDS.get(base, "other")


def catalog_of(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Catalog:
    """Build the catalog of a database; a grain that the policy leaves open is found by counting.

    Raises InputError if the database lacks a table or a column of the policy.
    """
    schema: dict[str, dict[str, str]] = {}
    rows = connection.execute(
        "select table_name, column_name, data_type from information_schema.columns"
        " where table_schema = current_schema() and table_catalog = current_database() order by ordinal_position"
    ).fetchall()
    for table, column, type_ in rows:
        schema.setdefault(table, {})[column] = type_
    grains: dict[str, Grain] = {}
    for name, entry in policy.tables.items():
        columns = {fold(column) for found, of in schema.items() if fold(found) == fold(name) for column in of}
        if entry.public or entry.grain or fold(entry.privacy_unit or "") not in columns:
            continue
        unit = identifier(entry.privacy_unit or "")
        row = connection.execute(f"select count(*) = count(distinct {unit}) from {identifier(name)}").fetchone()
        grains[name] = "unit" if row and row[0] else "rows"
    return Catalog.of(policy, schema, grains)


def _grain(policy: Policy, name: str, grains: Mapping[str, Grain]) -> Grain:
    table = policy.tables[name]
    if table.public:
        return "rows"
    if any(t.pivot_of and fold(t.pivot_of.table) == fold(name) for t in policy.tables.values()):
        return "rows"
    if table.pivot_of:
        return "unit"
    grain = table.grain or grains.get(fold(name))
    if grain is None:
        msg = f"Whether {name!r} has one row a unit or many is not known. Say so: tables.{name}.grain: unit (or rows)."
        raise InputError(msg)
    return grain


def _uniques(policy: Policy, tables: Mapping[str, TableInfo]) -> dict[str, str]:
    uniques = {name: table.policy.unique for name, table in tables.items() if table.policy.unique}
    for table in policy.tables.values():
        if table.pivot_of:
            uniques[fold(table.pivot_of.table)] = table.pivot_of.key
    return {name: column.name for name, key in uniques.items() if (column := tables[name].column(key))}
