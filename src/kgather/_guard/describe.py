"""Says which columns the answer to a statement has, without asking anything: those it has over empty tables.

The tables have the columns of the guard's copies and no rows, on a connection that knows nothing else. What is planned
is run over them as it would be over the real ones, so that the types are those that the answer will have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa

from kgather._guard.catalog import Catalog
from kgather._guard.constants import with_constants
from kgather._guard.plan import SET, Block, Kind, Local, Plan, Value
from kgather._guard.ranked import BINNED, COUNTED
from kgather._guard.refused import SYNTAX, Refused, Rule
from kgather._guard.render import Units, expression, identifier, relation
from kgather._guard.told_types import type_of

NEUTRAL: Mapping[Kind, Value] = {
    "integer": 1,
    "number": Decimal("1.5"),
    "text": "a",
    "boolean": True,
    "date": date(2000, 1, 1),
    "timestamp": datetime(2000, 1, 1),
    "null": None,
    "other": "a",
}
"""What stands for a parameter of each kind whose value is not known yet."""


@dataclass(frozen=True)
class Shapes:
    """Empty tables with the columns of those that a guard answers about. con: knows nothing else."""

    con: duckdb.DuckDBPyConnection
    catalog: Catalog

    @classmethod
    def of(cls, catalog: Catalog) -> "Shapes":
        """The shapes of the tables of a catalog; none of their rows are read."""
        con = duckdb.connect(config={"python_enable_replacements": False, "threads": 1})
        for info in catalog.tables.values():
            columns = [
                f"{identifier(column.name)} {column.type}"
                for column in (*info.columns.values(), *info.beside.values())
                if column.role != "hidden" or not info.protected
            ]
            con.execute(f"create table {identifier(info.name)} ({', '.join(columns)})")
        unit = next((info for info in catalog.tables.values() if info.protected), None)
        if unit is not None:
            con.execute(f"create table kg_units (id {unit.unit_column.type})")
        con.execute("set global enable_external_access = false")
        con.execute("set global lock_configuration = true")
        return cls(con, catalog)

    def schema(self, made: Plan | Local, unit: Units) -> pa.Schema:
        """The columns of the answer. unit: the privacy unit's column of each protected table. Raises Refused."""
        if isinstance(made, Local) and made.sql is None:
            return pa.table({name: [row[at] for row in made.rows] for at, name in enumerate(made.names)}).schema
        if isinstance(made, Plan) and made.inner:
            made = with_constants(made, {one.name: (stand_in(one.kind),) for one in made.inner})
        with self.con.cursor() as con:
            try:
                for block in made.blocks if isinstance(made, Plan) else ():
                    con.register("kg_shape", self._relation(con, block, unit).empty_table())
                    con.execute(f"create temp table {identifier(block.name)} as from kg_shape")
                    con.unregister("kg_shape")
                return _schema(con, made.sql or "")
            except duckdb.Error:
                # As of an answer: what it is called inside is not for the analyst.
                told = "The types of the statement's columns cannot be told."
                raise Refused(told, code=SYNTAX, rule=Rule.RESULTS) from None

    def _relation(self, con: duckdb.DuckDBPyConnection, block: Block, unit: Units) -> pa.Schema:
        """What answers have of a block: keys as they are, whole numbers for counts, doubles for all else."""
        question = block.question
        fields: list[pa.Field] = []
        if block.keys:
            keys = ", ".join(
                f"{expression(expr, unit)} as {identifier(key.name)}"
                for expr, key in zip(question.keys, block.keys, strict=True)
            )
            fields += _schema(con, f"select {keys} {relation(question.universe, unit)}")
        for aggregate in block.aggregates:
            type_ = type_of(aggregate, self.catalog)
            if aggregate.function in COUNTED:
                (argument,) = aggregate.arguments
                of = f"select {expression(argument, unit)} {relation(aggregate.question.universe, unit)}"
                type_ = _schema(con, of).field(0).type
                type_ = pa.map_(type_, pa.int64()) if aggregate.function == "HISTOGRAM" else type_
            elif aggregate.function == BINNED:
                type_ = pa.map_(pa.float64(), pa.int64())
            fields.append(pa.field(aggregate.name, type_))
        if block.has_sets:
            fields.append(pa.field(SET, pa.int64()))
        return pa.schema(fields)


def stand_in(kind: Kind) -> Value:
    """A value that stands for an answer which is not known yet."""
    value = NEUTRAL[kind]
    return float(value) if isinstance(value, Decimal) else value


def neutral(kinds: Sequence[Kind]) -> tuple[Value, ...]:
    """Values of these kinds that stand for what is not known yet."""
    return tuple(NEUTRAL[kind] for kind in kinds)


def _schema(con: duckdb.DuckDBPyConnection, sql: str) -> pa.Schema:
    return con.sql(sql).limit(0).to_arrow_table().schema
