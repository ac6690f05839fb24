"""Sums over people, read from the database, over the shown columns only: margins of people together in one pass, one
GROUP BY for each other.

What is read is whole numbers: of people, one each; of rows and of values, what a person adds is scaled so that its
length (root of the sum of squares over all cells) is at most the reach, and cut to multiples of a granule towards zero.
So the noise that is added is that of whole numbers, and no rounding of the engine gets past the bound.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.measured.coding import Bounds, Value, code_of, fine, there
from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import Feature
from kgather._guard.measured.scanning import BATCH, Margin, Pass, passes, summed
from kgather._guard.measured.streaming import streamed
from kgather._guard.plan import Bound, Exists, Expr, Op, PerUnit
from kgather._guard.render import expression, identifier, lookup

GRANULES = 1 << 10
"""Into how many granules one row is cut, where rows are counted."""
CELLS_A_PERSON = 1_024
"""How many different values of a key one person may speak for, where keys are found among rows."""
POWERS = 192
"""How many powers of two the sizes of values are told apart by, from 2^-64 on."""
_SUMS = 16
"""What is summed up over rows in one pass, at most."""
_PARTS = 16
"""In so many parts values are counted that do not fit into memory together."""
_WRITTEN = {"-0.0": "0.0", "-nan": "nan"}


class Found(NamedTuple):
    """Values that occur. counts: of people, in granules for rows; int64."""

    values: tuple[str, ...]
    type: str
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class OfRows:
    """What is summed up in the cells of some features over rows: how many there are, in granules, or with an argument
    and its bounds the distances of its values from their middle, and `counted` granules for each value that is there.
    only: of the rows for which it is true. reach: of one person."""

    rows: str
    features: tuple[Feature, ...]
    domains: tuple[Domain, ...]
    only: Feature | None
    reach: float
    argument: Feature | None = None
    bounds: Bounds | None = None
    counted: int = 0

    @property
    def cells(self) -> tuple[object, ...]:
        """What those have in common that are summed up in one pass."""
        return self.rows, self.features, self.domains, self.only


@dataclass
class Reading:
    """Reads from the views of one connection."""

    con: duckdb.DuckDBPyConnection
    catalog: Catalog
    _units: bool = False
    _together: dict[Margin, NDArray[np.int64]] = field(default_factory=dict)
    """Margins of people that were summed up and not asked for yet."""
    _of_rows: dict[OfRows, NDArray[np.int64]] = field(default_factory=dict)
    """The same of rows."""

    def rows_together(self, several: Iterable[OfRows]) -> None:
        """Sum up rows: in one pass what is by the same features of the same rows. `count` and `sums` take it from
        there."""
        passes_of: dict[tuple[object, ...], list[OfRows]] = {}
        for one in dict.fromkeys(several):
            if one not in self._of_rows:
                passes_of.setdefault(one.cells, []).append(one)
        for some in passes_of.values():
            for at in range(0, len(some), _SUMS):
                part = some[at : at + _SUMS]
                self._of_rows.update(zip(part, self._summed_rows(part), strict=True))

    def _rows(self, of: OfRows) -> NDArray[np.int64]:
        self.rows_together([of])
        return self._of_rows.pop(of)

    def _summed_rows(self, several: Sequence[OfRows]) -> list[NDArray[np.int64]]:
        """Sums over the same rows by the same features; of each int64[*sizes], with an argument int64[*sizes, 2]. A
        person's rows weigh less if they are many: their length over all cells is at most the reach."""
        first = several[0]
        arguments = [one.argument for one in several if one.argument is not None]
        inner, parts = self._values(first.rows, [*first.features, *arguments], first.only)
        values = iter(parts[len(first.features) :])
        totals, told, sizes = ["count(*) as kg_all"], [], []
        for at, one in enumerate(several):
            weight = f"least(1, {one.reach!r} / kg_length)"
            if one.argument is None:
                told.append(f"sum(cast(trunc(kg_all * {weight} * {GRANULES}) as bigint))")
                sizes.append(1)
                continue
            assert one.bounds is not None
            value = next(values)
            totals.append(f"sum(case when {there(value)} then {fine(value, one.bounds)} else 0 end) as kg_s{at}")
            totals.append(f"sum(case when {there(value)} then 1 else 0 end) as kg_n{at}")
            told.append(f"sum(cast(trunc(kg_s{at} * {weight}) as bigint))")
            told.append(f"sum(cast(trunc(kg_n{at} * {weight} * {one.counted}) as bigint))")
            sizes.append(2)
        cells = self._coded(inner, parts[: len(first.features)], first.domains, totals)
        measured = f"select *, sqrt(sum(kg_all * kg_all) over (partition by kg_id)) as kg_length from ({cells})"
        codes = [f"kg_c{at}" for at in range(len(first.features))]
        sql = f"select {_listed(codes)}{', '.join(told)} from ({measured}) group by all"
        table = self._table(sql, first.domains, len(told))
        ends = np.cumsum(sizes)
        return [
            table[..., end - size] if size == 1 else table[..., end - size : end]
            for end, size in zip(ends, sizes, strict=True)
        ]

    def together(self, margins: Iterable[Margin]) -> None:
        """Sum up margins of people in as few passes as there is room for, of which `count` and `sums` take them."""
        missing = [margin for margin in dict.fromkeys(margins) if margin not in self._together]
        for one in passes(missing):
            for margin, numbers in zip(one.margins, summed(one, self._batches(one)), strict=True):
                self._together[margin] = numbers

    def _people(self, margin: Margin) -> NDArray[np.int64]:
        self.together([margin])
        return self._together.pop(margin)

    def _batches(self, of: Pass) -> Iterator[pa.RecordBatch]:
        """Everybody's classes and values, as `summed` takes them."""
        features = [*(feature for feature, _ in of.columns), *(argument for argument, _ in of.arguments)]
        inner, values = self._values(None, features)
        codes = [
            code_of(value, domain, at) for at, (value, (_, domain)) in enumerate(zip(values, of.columns, strict=False))
        ]
        columns = [code.sql for code in codes]
        for value, (_, bounds) in zip(values[len(codes) :], of.arguments, strict=True):
            columns.append(f"case when {there(value)} then {fine(value, bounds)} else 0 end")
            columns.append(f"cast(case when {there(value)} then 1 else 0 end as utinyint)")
        named = ", ".join(f"{column} as kg_{at}" for at, column in enumerate(columns)) or "1 as kg_0"
        joins = "".join(code.join for code in codes)
        return streamed(self.con, f"select {named} from ({inner}){joins}", BATCH)

    def count(
        self,
        rows: str | None,
        features: Sequence[Feature],
        domains: Sequence[Domain],
        reach: float,
        *,
        people: bool = False,
        only: Feature | None = None,
    ) -> NDArray[np.int64]:
        """People, or rows (in granules), in each cell of the features' classes; int64[*sizes]. reach: of one person.
        people: of rows, a person counts once in each cell. only: of the rows for which it is true."""
        if rows is None:
            assert only is None, "people are not left out"
            return self._people(Margin(tuple(features), tuple(domains)))
        if not people:
            return self._rows(OfRows(rows, tuple(features), tuple(domains), only, reach))
        inner, parts = self._values(rows, features, only)
        codes = [f"kg_c{at}" for at in range(len(features))]
        cells = self._coded(inner, parts, domains, ["1 as kg_n"])
        weight = f"least(1, {reach!r} / sqrt(sum(kg_n * kg_n) over (partition by kg_id)))"
        weighted = f"select {_listed(codes)}kg_n * {weight} as kg_w from ({cells})"
        sql = f"select {_listed(codes)}sum(cast(trunc(kg_w * {GRANULES}) as bigint)) from ({weighted}) group by all"
        return self._table(sql, domains, 1)[..., 0]

    def weighed(
        self, rows: str, features: Sequence[Feature], domains: Sequence[Domain], reach: float, granules: int
    ) -> NDArray[np.int64]:
        """Rows, in granules, in each cell of the features' classes; int64[*sizes]. A person's rows that differ by the
        last feature only are scaled together: cells that are added up over it hold no more of a person than `reach`."""
        inner, parts = self._values(rows, features)
        codes = [f"kg_c{at}" for at in range(len(features))]
        cells = self._coded(inner, parts, domains, ["count(*) as kg_n"])
        beside = ", ".join(["kg_id", *codes[:-1]])
        together = f"select *, sum(kg_n) over (partition by {beside}) as kg_all from ({cells})"
        weight = f"least(1, {reach!r} / sqrt(sum(kg_n * kg_all) over (partition by kg_id)))"
        weighted = f"select {_listed(codes)}kg_n * {weight} as kg_w from ({together})"
        sql = f"select {_listed(codes)}sum(cast(trunc(kg_w * {granules}) as bigint)) from ({weighted}) group by all"
        return self._table(sql, domains, 1)[..., 0]

    def sums(
        self,
        rows: str | None,
        features: Sequence[Feature],
        domains: Sequence[Domain],
        argument: Feature,
        bounds: Bounds,
        reach: float,
        counted: int,
        *,
        only: Feature | None = None,
    ) -> NDArray[np.int64]:
        """In each cell: the sum of the argument's distances from the middle of its bounds, in granules, and `counted`
        granules for each value that is there; int64[*sizes, 2]. only: of the rows for which it is true."""
        if rows is None:
            assert only is None, "people are not left out"
            found = self._people(Margin(tuple(features), tuple(domains), argument, bounds))
            return found * np.array([1, counted])
        return self._rows(OfRows(rows, tuple(features), tuple(domains), only, reach, argument, bounds, counted))

    def values(self, rows: str | None, feature: Feature, reach: float) -> Found:
        """The values that a feature has of two people or more, in their order, with the number of people who have them;
        of rows in granules, each person being scaled to `reach`."""
        inner, (part,) = self._values(rows, [feature])
        known = f"from ({inner}) where not {part.absent} and {part.sql} is not null"
        if rows is None:
            return self._of_people(f"select {part.sql} as kg_v, count(*) as kg_n {known}", part.sql)
        place = "row_number() over (partition by kg_id order by hash(kg_v, kg_id), kg_v)"
        each = f"select distinct kg_id, {part.sql} as kg_v {known}"
        pairs = f"select kg_id, kg_v from ({each}) qualify {place} <= {CELLS_A_PERSON}"
        weight = f"least(1, {reach!r} / sqrt(count(*) over (partition by kg_id)))"
        weighted = f"select kg_v, {weight} as kg_w from ({pairs})"
        counts = (
            f"select kg_v, sum(cast(trunc(kg_w * {GRANULES}) as bigint)) as kg_n, count(*) as kg_people "
            f"from ({weighted}) group by 1"
        )
        found = self.con.sql(
            f"select cast(kg_v as varchar) as kg_text, cast(kg_n as bigint) as kg_n from ({counts}) "
            "where kg_people >= 2 order by kg_v, kg_text"
        ).to_arrow_table()
        numbers = found["kg_n"].to_numpy().astype(np.int64)
        return self._found(found["kg_text"].to_pylist(), counts, numbers)

    def _of_people(self, counts: str, value: str) -> Found:
        """Values of two people or more. Where all values do not fit into memory, in parts of them: most of many values
        are one person's. counts: SQL of each value as kg_v and its number kg_n, but for GROUP BY."""
        told = f"select kg_v, kg_n from ({counts} {{}} group by 1) where kg_n >= 2"
        try:
            found = self._in_order(told.format(""))
        except duckdb.OutOfMemoryException:
            self.con.execute(f"create or replace temp table kg_several as from ({told.format('')}) limit 0")
            for at in range(_PARTS):
                part = told.format(f"and hash({value}) % {_PARTS} = {at}")
                self.con.execute(f"insert into kg_several {part}")
            found = self._in_order("from kg_several")
        return self._found(found["kg_text"].to_pylist(), f"{counts} group by 1", found["kg_n"].to_numpy())

    def _in_order(self, values: str) -> pa.Table:
        return self.con.sql(
            f"select cast(kg_v as varchar) as kg_text, cast(kg_n as bigint) as kg_n from ({values}) "
            "order by kg_v, kg_text"
        ).to_arrow_table()

    def keyed(
        self, rows: str, feature: Feature, argument: Feature, bounds: Bounds, reach: float, counted: int
    ) -> Found:
        """As `values`, with sums of an argument beside: counts int64[n, 2] of sums of distances from the middle of the
        bounds, in granules, and `counted` granules for each person who has the argument. Each person has a value once
        at most."""
        inner, (part, value) = self._values(rows, [feature, argument])
        known = f"not {part.absent} and {part.sql} is not null and {there(value)}"
        place = "row_number() over (partition by kg_id order by hash(kg_v, kg_id), kg_v)"
        pairs = (
            f"select * from (select kg_id, {part.sql} as kg_v, min({fine(value, bounds)}) as kg_x "
            f"from ({inner}) where {known} group by 1, 2) qualify {place} <= {CELLS_A_PERSON}"
        )
        weight = f"least(1, {reach!r} / sqrt(count(*) over (partition by kg_id)))"
        sums = (
            f"select kg_v, cast(sum(cast(trunc(kg_x * kg_w) as bigint)) as bigint) as kg_s, "
            f"cast(sum(cast(trunc(kg_w * {counted}) as bigint)) as bigint) as kg_n, count(*) as kg_people "
            f"from (select kg_v, kg_x, {weight} as kg_w from ({pairs})) group by 1"
        )
        found = self.con.sql(
            f"select cast(kg_v as varchar) as kg_text, kg_s, kg_n from ({sums}) "
            "where kg_people >= 2 order by kg_v, kg_text"
        ).to_arrow_table()
        numbers = np.stack([found[name].to_numpy().astype(np.int64) for name in ("kg_s", "kg_n")], axis=1)
        return self._found(found["kg_text"].to_pylist(), sums, numbers)

    def _found(self, texts: Sequence[str], counts: str, numbers: NDArray[np.int64]) -> Found:
        """Values as they are written. Their type is the expression's, whether there is any value or none; of numbers
        that are equal but written otherwise (0.0 and -0.0), the text is always the same one."""
        kind = str(self.con.sql(f"select kg_v from ({counts})").types[0])
        written = _WRITTEN if kind in ("DOUBLE", "FLOAT") else {}
        return Found(tuple(written.get(text, text) for text in texts), kind, numbers)

    def rows_a_person(self, rows: str, edges: Sequence[int], only: Feature | None = None) -> NDArray[np.int64]:
        """How many people have so many rows of a long table, up to each edge and above the one before, and above all;
        int64[edges + 1]. only: of the rows for which it is true."""
        inner, _ = self._values(rows, [], only)
        found = self.con.sql(
            f"select kg_n, count(*) from (select count(*) as kg_n from ({inner}) group by kg_id) group by 1"
        ).fetchall()
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        for many, people in found:
            counts[int(np.searchsorted(edges, many))] += people
        return counts

    def magnitudes(self, rows: str | None, argument: Feature, reach: float) -> NDArray[np.int64]:
        """How many people (or rows, in granules) have values of each power of two, below zero and above;
        int64[2, POWERS]. Powers are counted from 2^-64; zero and what is smaller is in the first."""
        inner, (part,) = self._values(rows, [argument])
        number = f"cast({part.sql} as double)"
        known = f"from ({inner}) where {there(part)}"
        power = f"cast(floor(log2(abs({number}))) as integer) + 64"
        size = f"case when abs({number}) <= pow(2.0, -64) then 0 else least(greatest({power}, 0), {POWERS - 1}) end"
        by = "" if rows is None else "kg_id, "
        cells = f"select {by}{number} < 0 as kg_minus, {size} as kg_size, count(*) as kg_n {known} group by all"
        if rows is not None:
            weight = f"least(1, {reach!r} / sqrt(sum(kg_n * kg_n) over (partition by kg_id)))"
            weighted = (
                f"select kg_minus, kg_size, cast(trunc(kg_n * {weight} * {GRANULES}) as bigint) as kg_n from ({cells})"
            )
            cells = f"select kg_minus, kg_size, sum(kg_n) from ({weighted}) group by all"
        counts = np.zeros((2, POWERS), dtype=np.int64)
        for minus, step, people in self.con.sql(cells).fetchall():
            counts[int(minus), step] += int(people)
        return counts

    # SQL

    def _values(
        self, rows: str | None, features: Sequence[Feature], only: Feature | None = None
    ) -> tuple[str, list[Value]]:
        """SQL of one row for each person, or row, with its features; of rows with the person's id as kg_id. only: of
        those for which it is true."""
        from_ = self._from(rows, features if only is None else [*features, only])
        columns = [] if rows is None else [f"{identifier(rows)}.{identifier(self._info(rows).unit)} as kg_id"]
        parts = []
        for at, feature in enumerate(features):
            value = self._value(feature)
            absent = self._absent(feature)
            columns.append(f"{value} as kg_v{at}")
            if absent is None:
                parts.append(Value(f"kg_v{at}", "false", feature.kind))
            else:
                columns.append(f"{absent} as kg_a{at}")
                parts.append(Value(f"kg_v{at}", f"kg_a{at}", feature.kind))
        where = "" if only is None else f" where {self._value(only)}"
        return f"select {', '.join(columns) or '1'} {from_}{where}", parts

    def _value(self, feature: Feature) -> str:
        written = expression(feature.expr, self.catalog.unit)
        for table in feature.needs:
            if table:
                written = f"({written} and {self._key(table, feature)} is not null)"
        return written

    def _absent(self, feature: Feature) -> str | None:
        if feature.needs:
            return None
        row = feature.row
        if row is not None:
            return f"not {expression(Exists(row.table, row.condition), self.catalog.unit)}"
        return None if feature.table is None else f"{self._key(feature.table, feature)} is null"

    def _key(self, table: str, feature: Feature) -> str:
        info = self._info(table)
        if info.protected:
            return f"{identifier(table)}.{identifier(info.unit)}"
        entry = next(entry for entry in feature.lookups if entry.right.table == table)
        return f"{identifier(table)}.{identifier(entry.right.column)}"

    def _from(self, rows: str | None, features: Sequence[Feature]) -> str:
        lookups = {entry.right.table: entry for feature in features for entry in feature.lookups}
        tables: dict[str, None] = {}
        of_others = False
        for feature in features:
            read = [table for table in (feature.table, *feature.needs) if table]
            for bound in _read(feature.expr):
                if isinstance(bound, Bound):
                    read.append(bound.table)
                elif isinstance(bound, Exists) and bound.by:
                    read.append(bound.by[0][0].table)
                else:
                    of_others = True
            of_others = of_others or feature.row is not None
            read += [entry.left.table for entry in feature.lookups]
            tables |= dict.fromkeys(read)
        people = [name for name in tables if name != rows and self._info(name).protected]
        if rows is not None:
            own = self._info(rows)
            start = f"from {identifier(rows)}"
            unit = f"{identifier(rows)}.{identifier(own.unit)}"
            if of_others:
                self._make_units()
                start += f" join kg_units as kg_unit on kg_unit.id = {unit}"
        elif self._whole is not None and not of_others:
            start, unit = f"from {identifier(self._whole)}", ""
            people = []
        else:
            self._make_units()
            start, unit = "from kg_units as kg_unit", "kg_unit.id"
        for name in people:
            # A person has one row in each, or would count once for each of them.
            assert self._info(name).grain == "unit", f"{name} has many rows of a person"
            start += f" left join {identifier(name)} on {identifier(name)}.{identifier(self._info(name).unit)} = {unit}"
        return start + "".join(lookup(entry) for entry in lookups.values())

    @property
    def _whole(self) -> str | None:
        """The table that has one row of every person."""
        protected = [info for info in self.catalog.tables.values() if info.protected]
        return protected[0].name if len(protected) == 1 and protected[0].grain == "unit" else None

    def _make_units(self) -> None:
        if not self._units:
            ids = " union all ".join(
                f"select {identifier(info.unit)} as id from {identifier(info.name)}"
                for info in self.catalog.tables.values()
                if info.protected
            )
            self.con.execute(f"create temp table kg_units as select distinct id from ({ids})")
            self._units = True

    def _coded(self, inner: str, parts: Sequence[Value], domains: Sequence[Domain], totals: list[str]) -> str:
        """SQL of totals by the person and the classes of features."""
        codes = [code_of(part, domain, at) for at, (part, domain) in enumerate(zip(parts, domains, strict=True))]
        named = [f"{code.sql} as kg_c{at}" for at, code in enumerate(codes)]
        joins = "".join(code.join for code in codes)
        return f"select {', '.join(['kg_id', *named, *totals])} from ({inner}){joins} group by all"

    def _table(self, sql: str, domains: Sequence[Domain], channels: int) -> NDArray[np.int64]:
        sizes = tuple(domain.size for domain in domains)
        found = np.zeros((*sizes, channels), dtype=np.int64)
        columns = self.con.sql(sql).to_arrow_table().columns
        places = tuple(column.to_numpy().astype(np.int64) for column in columns[: len(domains)])
        for channel in range(channels):
            numbers = columns[len(domains) + channel]
            read = np.array([int(value or 0) for value in numbers.to_pylist()], dtype=np.int64)
            if places:
                found[(*places, channel)] = read
            else:
                found[channel] = read.sum()
        return found

    def _info(self, table: str) -> TableInfo:
        info = self.catalog.table(table)
        assert info is not None, "a plan names tables of the policy only"
        return info


def _read(expr: Expr) -> Iterator[Expr]:
    """Every column that an expression reads, those of other rows being given as the whole."""
    if isinstance(expr, Bound | Exists | PerUnit):
        yield expr
    elif isinstance(expr, Op):
        for arg in expr.args:
            yield from _read(arg)


def _listed(columns: Sequence[object]) -> str:
    return "".join(f"{column}, " for column in columns)


def reach_of(rows_a_person: int, *, distinct: bool) -> float:
    """What one person moves at most where rows are counted. distinct: each row of a person is in a cell of its own."""
    return math.sqrt(rows_a_person) if distinct else float(rows_a_person)
