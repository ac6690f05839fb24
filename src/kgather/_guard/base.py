"""The protected rows as the guard holds them: copied once from the database, only the columns that a policy shows.

Rows of a universe are numbered: units by their ids, rows of a long table by unit and content. Conditions run in DuckDB,
on a connection that reaches no file; what comes back is one number for each row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.catalog import Catalog, TableInfo, catalog_of
from kgather._guard.exact import ColumnName, Range, ranges
from kgather._guard.outcomes import Outcome, Outcomes
from kgather._guard.partition import Column
from kgather._guard.plan import Bound, Question, Universe
from kgather._guard.policy import Policy, fold
from kgather._guard.render import identifier
from kgather._sql_text import literal

UNITS = "unit"
"""The name of the universe of privacy units; others are named as their tables."""

_ROW, _CODE = "kg_row", "code"
_SHOWN = ("artifact", "measure", "dimension", "coarsened")


class UniverseRows(NamedTuple):
    """The rows of a universe: the unit of each, int32[n], and the key that names it from day to day, uint64[n]."""

    unit: NDArray[np.int32]
    keys: NDArray[np.uint64]


class NamedColumn(NamedTuple):
    """A column, or a product of two, by the name that its clusters have."""

    name: str
    column: Column


class _Cell(NamedTuple):
    """A column of a table, both named as the policy names them."""

    table: str
    column: str


@dataclass
class Base:
    """con: holds the tables of the policy, and kg_units(id, code). rows: of each universe."""

    con: duckdb.DuckDBPyConnection
    catalog: Catalog
    rows: dict[str, UniverseRows]
    columns: dict[tuple[str, ...], Column] = field(default_factory=dict)

    @classmethod
    def load(cls, policy: Policy, database: str, *, memory: str) -> "Base":
        """Copy what the policy shows. Raises InputError where the database is not as the policy says."""
        con = duckdb.connect(
            config={
                "memory_limit": memory,
                "temp_directory": "",  # rows of people are not spilled to a disk
                "python_enable_replacements": False,
                "autoload_known_extensions": False,
            }
        )
        try:
            con.execute(f"attach {literal(database)} as source (read_only)")
        except duckdb.Error:
            msg = f"{database} cannot be opened as a DuckDB database, which the policy names under database."
            raise InputError(msg) from None
        con.execute("use source")
        catalog = catalog_of(con, policy)
        con.execute("use memory")
        _check_copies(catalog)
        protected = [info for info in catalog.tables.values() if info.protected]
        ids = " union ".join(
            f"select {identifier(info.unit)} as id from {info.relation} where {identifier(info.unit)} is not null"
            for info in protected
        )
        con.execute(
            f"create table kg_units as select id, row_number() over (order by id) - 1 as {_CODE} "
            f"from (select distinct id from ({ids}))"
        )
        rows = {UNITS: _numbers(con, f"select {_CODE}, md5_number_lower(cast(id as varchar)) from kg_units order by 1")}
        for info in catalog.tables.values():
            if not info.protected:
                con.execute(f"create table {identifier(info.name)} as from {info.relation}")
                continue
            con.execute(_copy(info))
            if info.grain == "rows":
                rows[info.name] = _numbers(
                    con,
                    f"select kg_units.{_CODE}, t.kg_key from {identifier(info.name)} as t "
                    f"join kg_units on kg_units.id = t.{identifier(info.unit)} order by t.{_ROW}",
                )
        con.execute("detach source")
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            con.execute(f"set global {setting}")
        return cls(con, catalog, rows)

    def universe(self, universe: Universe) -> str:
        """The name of the partition that a universe is answered from."""
        return UNITS if universe.kind == "unit" else self._table(universe.table or "").name

    def outcome(self, question: Question) -> Outcome:
        """Ask what a question means for each row. Raises InputError where a table looked up has a key twice."""
        return self._outcomes.of(question)

    @cached_property
    def _outcomes(self) -> Outcomes:
        return Outcomes(
            self.con, self.catalog.unit, self._row, lambda universe: len(self.rows[self.universe(universe)].unit)
        )

    def column(self, universe: Universe, bounds: Sequence[Bound]) -> NamedColumn:
        """A column of a universe, or the product of two."""
        same = [self._same(bound) for bound in bounds]
        name = " * ".join(sorted(f"{table}.{column}" for (table, column), *_ in same))
        of = self.universe(universe)
        cached = (of, name)
        if cached not in self.columns:
            n = len(self.rows[of].unit)
            values = np.ones(n)
            for of_one in same:
                values *= self._values(universe, of_one, n)
            self.columns[cached] = Column(values)
        return NamedColumn(name, self.columns[cached])

    def ranks(self, table: str, column: str) -> NDArray[np.float64]:
        """The places of units' values among all values of a column in order, float64[u], NaN where there is none."""
        info = self._table(table)
        cell = f"{identifier(info.name)}.{identifier(column)}"
        found = self.con.sql(
            f"select kg_unit.{_CODE} as kg_at, dense_rank() over (order by {cell}) as kg_value "
            f"from kg_units as kg_unit join {identifier(info.name)} "
            f"on {identifier(info.name)}.{identifier(info.unit)} = kg_unit.id "
            f"where {cell} is not null"
        ).to_arrow_table()
        ranks = np.full(len(self.rows[UNITS].unit), np.nan)
        ranks[found["kg_at"].to_numpy()] = found["kg_value"].to_numpy()
        return ranks

    def codes(self, name: str, column: str) -> NDArray[np.int32]:
        """The values that units have of table.column, as codes int32[n] of a universe's rows, below 0 where none."""
        table, _, cell = column.rpartition(".")
        info = self._table(table)
        own = info.column(cell)
        assert own is not None, "the policy was checked"
        found = self.con.sql(
            f"select kg_units.{_CODE} as kg_at, {identifier(own.name)} as kg_value from {identifier(info.name)} as t "
            f"join kg_units on kg_units.id = t.{identifier(info.unit)} where {identifier(own.name)} is not null"
        ).to_arrow_table()
        codes = np.full(len(self.rows[UNITS].unit), -1, dtype=np.int32)
        encoded = found["kg_value"].combine_chunks().dictionary_encode()
        codes[found["kg_at"].to_numpy()] = encoded.indices.to_numpy()
        return codes[self.rows[name].unit]

    def _values(self, universe: Universe, same: Sequence[_Cell], n: int) -> NDArray[np.float64]:
        values = np.full(n, np.nan)
        for table, column in same:
            info = self._table(table)
            cell = f"cast({identifier(info.name)}.{identifier(column)} as double)"
            if universe.kind == "rows":
                source, row = identifier(info.name), f"{identifier(info.name)}.{_ROW}"
            else:
                source = (
                    f"kg_units as kg_unit join {identifier(info.name)} "
                    f"on {identifier(info.name)}.{identifier(info.unit)} = kg_unit.id"
                )
                row = f"kg_unit.{_CODE}"
            found = self.con.sql(f"select {row} as kg_at, {cell} as kg_value from {source}").to_arrow_table()
            at, cells = found["kg_at"].to_numpy(), found["kg_value"].fill_null(np.nan).to_numpy()
            missing = np.isnan(values[at])
            values[at[missing]] = cells[missing]
        values[~np.isfinite(values)] = np.nan
        known = self._ranges.get(ColumnName(fold(same[0].table), fold(same[0].column)))
        return values if known is None else np.clip(values, known.low, known.high)

    @cached_property
    def _ranges(self) -> Mapping[ColumnName, Range]:
        return ranges(self.catalog.policy)

    def _same(self, bound: Bound) -> list[_Cell]:
        """A column and those that the policy declares to be the same, the one they are named by first."""

        def source(table: str, column: str) -> _Cell:
            declared = self._table(table).policy.same_as
            target = next((to for name, to in declared.items() if fold(name) == fold(column)), None)
            if target is None:
                info = self._table(table)
                found = info.column(column)
                return _Cell(info.name, found.name if found else column)
            other, _, name = target.rpartition(".")
            return source(other, name)

        first = source(bound.table, bound.column)
        others = [
            _Cell(info.name, column.name)
            for info in self.catalog.tables.values()
            if info.protected
            for column in info.columns.values()
            if column.role in _SHOWN and source(info.name, column.name) == first
        ]
        return [first, *(pair for pair in others if pair != first)]

    def _row(self, universe: Universe) -> str:
        if universe.kind == "unit":
            return f"kg_unit.{_CODE}"
        return f"{identifier(universe.table or '')}.{_ROW}"

    def _table(self, name: str) -> TableInfo:
        info = self.catalog.table(name)
        assert info is not None, "a plan names tables of the policy only"
        return info


def _check_copies(catalog: Catalog) -> None:
    """Raise InputError for copies that are not of units: rows of one table are not found in another."""
    for info in catalog.tables.values():
        for column, target in info.policy.same_as.items():
            other = catalog.table(target.rpartition(".")[0])
            if "rows" in (info.grain, other.grain if other is not None else "unit"):
                told = (
                    f"{column} and {target} can only be told to be the same where both tables have one row a person. "
                    "List the column in one of the tables only"
                )
                raise catalog.policy.error(("tables", info.name, "same_as", column), told)


def _shown(info: TableInfo) -> Iterator[str]:
    return (column.name for column in info.columns.values() if column.role in _SHOWN)


def _copy(info: TableInfo) -> str:
    """SQL that copies what is shown of a protected table; a row's key is made of its content, so that it is the same
    tomorrow, and the second of two equal rows has another."""
    unit = identifier(info.unit)
    columns = [identifier(name) for name in _shown(info)]
    content = ", ".join(f"coalesce('+' || cast({name} as varchar), '-')" for name in (unit, *columns))
    listed = ", ".join([unit, *columns])
    return f"""
        create table {identifier(info.name)} as
        select {listed}, row_number() over (order by {unit}, kg_content, kg_nth) - 1 as {_ROW},
          md5_number_lower(kg_content || chr(31) || kg_nth) as kg_key
        from (
          select *, row_number() over (partition by kg_content) as kg_nth
          from (
            select {listed}, concat_ws(chr(31), {content}) as kg_content
            from {info.relation}
            where {unit} is not null
          )
        )
        order by {_ROW}
    """


def _numbers(con: duckdb.DuckDBPyConnection, query: str) -> UniverseRows:
    unit, keys = con.sql(query).to_arrow_table().columns
    return UniverseRows(unit.to_numpy().astype(np.int32), keys.to_numpy().astype(np.uint64))
