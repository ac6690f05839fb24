"""Executes the blocks of a plan without protection: what the database says, for the owner of the data only."""

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from kgather._guard.catalog import Catalog
from kgather._guard.measured.kinds import kind_of
from kgather._guard.plan import SET, Block, Question
from kgather._guard.render import aggregate_sql, combined_sql, identifier, parts_of, question_sql


class Truth:
    """True answers. con: in which the tables of the catalog are; it gets a temporary table of all people of the kind
    that a block is about."""

    def __init__(self, con: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
        self.con = con
        self.catalog = catalog
        self._kind: str | None = None

    def _meet(self, kind: str) -> None:
        """Make the table of all people of a kind."""
        if kind == self._kind:
            return
        protected = [info for info in self.catalog.of_kind(kind).tables.values() if info.protected]
        ids = " union ".join(f"select {identifier(info.unit)} as id from {identifier(info.name)}" for info in protected)
        self.con.execute(f"create or replace temp table kg_units as select id from ({ids}) where id is not null")
        self._kind = kind

    def relation(self, block: Block) -> pa.Table:
        """The relation of a block: its keys, then its aggregates."""
        self._meet(kind_of(block, [self.catalog]))
        parts = [self._groups(block, at) for at in range(len(block.grouping_sets))]
        return self.con.sql(" union all ".join(f"({part})" for part in parts)).to_arrow_table()

    def _groups(self, block: Block, number: int) -> str:
        chosen = block.grouping_sets[number]
        keys = [
            f"g.k{at} as {identifier(key.name)}" if at in chosen else f"null as {identifier(key.name)}"
            for at, key in enumerate(block.keys)
        ]
        groups = self._asked(block.question, chosen, None) if chosen else "select 1 as one"
        joins, values = "", []
        for at, aggregate in enumerate(block.aggregates):
            on = " and ".join(f"g.k{key} is not distinct from kg_a.k{key}" for key in chosen) or "true"
            for place, (_, part) in enumerate(parts_of(aggregate)):
                asked = self._asked(part.question, chosen, aggregate_sql(part, self.catalog.unit))
                joins += f" left join ({asked}) as a{at}_{place} on {on.replace('kg_a', f'a{at}_{place}')}"
            value = combined_sql(aggregate, [f"a{at}_{place}.v" for place in range(len(parts_of(aggregate)))])
            values.append(f"{value} as {identifier(aggregate.name)}")
        told = [f"{number} as {SET}"] if block.has_sets else []
        return f"select {', '.join([*keys, *values, *told])} from ({groups}) as g{joins}"

    def _asked(self, question: Question, chosen: Sequence[int], value: str | None) -> str:
        kept = replace(question, keys=tuple(question.keys[at] for at in chosen))
        names = ", ".join([*(f"k{at}" for at in chosen), *(["v"] if value else [])])
        return f"select * from ({question_sql(kept, [value] if value else [], self.catalog.unit)}) as q({names})"
