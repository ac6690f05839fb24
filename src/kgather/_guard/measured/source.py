"""The column that an expression shows, with what the policy says of its values."""

from dataclasses import dataclass
from typing import Any

from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.plan import Bound, Expr, PerUnit
from kgather._guard.policy import fold


@dataclass(frozen=True)
class Source:
    """The column that a feature shows, with the table it is in."""

    table: TableInfo
    column: str
    type: str

    @property
    def values(self) -> tuple[Any, ...] | None:
        """What the policy lists."""
        return _of(self.table.policy.values, self.column)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between what the policy says that it lies."""
        return _of(self.table.policy.bounds, self.column)


def source_of(expr: Expr, catalog: Catalog) -> Source | None:
    """The column whose values an expression shows, None if it is more than a column."""
    if isinstance(expr, PerUnit) and expr.function == "VALUE" and expr.argument is not None:
        expr = expr.argument
    if not isinstance(expr, Bound):
        return None
    table = catalog.table(expr.table)
    column = table.column(expr.column) if table is not None else None
    if table is None or column is None:
        return None
    of, found = table.origin(column)
    return Source(of, found.name, found.type)


def _of(entries: Any, column: str) -> Any:
    return next((value for name, value in entries.items() if fold(name) == fold(column)), None)
