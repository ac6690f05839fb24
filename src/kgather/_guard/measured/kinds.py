"""The kinds of people that a database is about: each has its tables, its views of them, and a budget of its own.

A measurement is of people of one kind, and is charged to them. So the people of a kind have the guarantee of their own
budget, and somebody who is of two kinds has the sum of both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgather._guard.catalog import Catalog
from kgather._guard.measured.database import Database
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.shares import Prices, prices
from kgather._guard.plan import Block, Bound, Exists, Expr, Op, PerUnit
from kgather._guard.warehouse import Warehouse


@dataclass(frozen=True)
class People:
    """People of one kind. catalog: their tables and the public ones; database: views of these. alone: whether there is
    no other kind."""

    kind: str
    catalog: Catalog
    database: Database
    prices: Prices
    alone: bool

    def charged(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """What is charged to them: what was measured of them, and what was measured of everybody, before there were
        budgets by kind."""
        return [one for one in measurements if one.whom is None or one.whom == self.kind]

    def told(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """What tells of them."""
        return [one for one in measurements if one.whom == self.kind or (one.whom is None and self.alone)]


def kinds_of(catalog: Catalog, warehouse: Warehouse) -> dict[str, People]:
    """The kinds of people of a catalog, by name, in the order of their tables."""
    found = {}
    for kind in catalog.kinds:
        own = catalog.of_kind(kind)
        found[kind] = People(kind, own, Database(warehouse, own), prices(own), len(catalog.kinds) == 1)
    return found


def kind_of(block: Block, catalogs: Sequence[Catalog]) -> str:
    """The kind of people that a block is about, by the catalogs that its tables are in. All tables of a block are of
    one kind: kinds are not joined."""
    universe = block.question.universe
    named = [universe.table, *(one.table for one in universe.references), *_tables(block.question.condition)]
    named += [table for key in block.question.keys for table in _tables(key)]
    for name in named:
        for catalog in catalogs:
            info = None if name is None else catalog.table(name)
            if info is not None and info.protected:
                return info.people
    return catalogs[0].kinds[0]


def _tables(expr: Expr) -> Iterable[str]:
    """The tables that an expression reads."""
    if isinstance(expr, Bound):
        yield expr.table
    elif isinstance(expr, Op):
        for arg in expr.args:
            yield from _tables(arg)
    elif isinstance(expr, Exists | PerUnit):
        yield expr.table
        yield from _tables(expr.condition)


def named(kind: str) -> str:
    """What people of a kind are called in a sentence."""
    return f"people of kind {kind}" if kind else "people whose kind has no name"
