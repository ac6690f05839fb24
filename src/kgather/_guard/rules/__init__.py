"""The rules that refuse a statement by its form: small functions, each about one thing.

SYNTAX is over the tree as it was read, RULES over the tree with its names resolved. What a rule lets pass may still be
refused by the planner, which only writes what it understands.
"""

from collections.abc import Callable

from sqlglot import exp

from kgather._guard.names import Resolved
from kgather._guard.rules.distinct import distinct
from kgather._guard.rules.growth import growth
from kgather._guard.rules.having import having
from kgather._guard.rules.hidden import hidden
from kgather._guard.rules.limit import limit
from kgather._guard.rules.margins import margins
from kgather._guard.rules.nodes import nodes
from kgather._guard.rules.raw_rows import raw_rows
from kgather._guard.rules.subqueries import subqueries
from kgather._guard.rules.unit import unit
from kgather._guard.rules.windows import windows

SYNTAX: tuple[Callable[[exp.Expr], None], ...] = (nodes,)
RULES: tuple[Callable[[Resolved], None], ...] = (
    hidden,
    unit,
    subqueries,
    raw_rows,
    distinct,
    limit,
    windows,
    margins,
    having,
    growth,
)
