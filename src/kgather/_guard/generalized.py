"""Mode generalized: the atoms are classes of users who look alike, fixed for ever, and conditions ask about their sets.

A class shows of each artifact the set of values that its members gave, not rated being one of them (Riyana and
Natwichai, definitions 8 and 9). A condition holds for a class where some value of the set meets it (any), where every
value does (all), or to the share of values that do (expected); conditions on several artifacts are put together as if
each were answered by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgather._guard.base import UNITS, Base
from kgather._guard.partition import Partition
from kgather._guard.plan import NUMERIC, Bound, Exists, Expr, Op, PerUnit, Question, Universe, bounds, children
from kgather._guard.plan import Literal as Constant
from kgather._guard.policy import NOTHING_TO_GATHER
from kgather._guard.refused import NOT_SUPPORTED, Refused, Rule
from kgather.udfs.gathering import k_likeness

Match = Literal["any", "all", "expected"]

_ROWS, _GROUPS, _COLUMNS = "rows of a long table", "groups", "a condition on several columns at once"
_PUBLIC = "columns of public tables"


def classes_of(base: Base, k: int) -> Partition:
    """The classes of k-Likeness over all artifacts of tables with one row a user; those with none are a class, too.

    Raises InputError where there are no artifacts to gather on, or fewer than k people.
    """
    unit = base.rows[UNITS].unit
    artifacts = [
        (info.name, column)
        for info in base.catalog.tables.values()
        if info.protected and info.grain == "unit"
        for column in info.columns.values()
        if column.role == "artifact" and column.kind != "other"
    ]
    if not artifacts:
        raise base.catalog.policy.error(("mode",), NOTHING_TO_GATHER)
    if len(unit) < k:
        told = "mode generalized makes classes of at least k people, and the database has fewer; it needs more data"
        raise base.catalog.policy.error(("k",), told)
    columns = [_numbers(base, table, column.name) for table, column in artifacts]
    # Texts are alike or not; how far their codes are apart says nothing.
    codes = np.array([column.kind in ("text", "boolean") for _, column in artifacts])
    groups = k_likeness.gather(np.column_stack(columns), k, categorical=codes)
    names = np.arange(int(groups.max()) + 1, dtype=np.int64)
    return Partition(unit, groups.astype(np.int32), names, len(names))


@dataclass(frozen=True)
class Classes:
    """Answers what share of each class meets a condition, float64[classes]."""

    base: Base
    partition: Partition
    match: Match

    def shares(self, question: Question) -> NDArray[np.float64]:
        """Raises Refused where the condition is none that sets can answer, or there are keys."""
        if question.universe.kind != "unit":
            raise _unanswerable(_ROWS)
        if question.keys:
            raise _unanswerable(_GROUPS)
        inside = self._leaf(question.universe, Constant(True, "boolean"))
        return self._true(question.universe, question.condition) * (inside > 0)

    def _true(self, universe: Universe, expr: Expr) -> NDArray[np.float64]:
        """To what share the condition is true; NOT asks to what share it is false."""
        if isinstance(expr, Op) and expr.name in ("and", "or"):
            parts = [self._true(universe, arg) for arg in expr.args]
            return _both(parts) if expr.name == "and" else _either(parts)
        if isinstance(expr, Op) and expr.name == "not":
            return self._false(universe, expr.args[0])
        return self._leaf(universe, expr)

    def _false(self, universe: Universe, expr: Expr) -> NDArray[np.float64]:
        if isinstance(expr, Op) and expr.name in ("and", "or"):
            parts = [self._false(universe, arg) for arg in expr.args]
            return _either(parts) if expr.name == "and" else _both(parts)
        if isinstance(expr, Op) and expr.name == "not":
            return self._true(universe, expr.args[0])
        return self._leaf(universe, Op("not", (expr,)))

    def _leaf(self, universe: Universe, expr: Expr) -> NDArray[np.float64]:
        """A condition on one artifact: how many different values of each class's set meet it."""
        if _reads_rows(expr):
            raise _unanswerable(_ROWS)
        names = sorted({(bound.table, bound.column) for bound in bounds(expr)})
        if len(names) > 1 or not isinstance(expr, Op | Constant):
            raise _unanswerable(_COLUMNS)
        met = self.base.outcome(Question(universe, expr)).outcome == 2
        if not names:
            counts = np.bincount(self.partition.atom, weights=met, minlength=self.partition.n_atoms)
            return (counts > 0).astype(np.float64)
        table = self.base.catalog.table(names[0][0])
        if table is None or not table.protected:
            raise _unanswerable(_PUBLIC)
        values = _numbers(self.base, *names[0])
        code = np.unique(np.nan_to_num(values, nan=-np.inf), return_inverse=True)[1].reshape(-1)
        pairs, first = np.unique(self.partition.atom.astype(np.int64) * (int(code.max()) + 1) + code, return_index=True)
        of_class = pairs // (int(code.max()) + 1)
        different = np.bincount(of_class, minlength=self.partition.n_atoms)
        share = np.bincount(of_class, weights=met[first], minlength=self.partition.n_atoms) / different
        return _MATCHES[self.match](share)


def _numbers(base: Base, table: str, column: str) -> NDArray[np.float64]:
    """A column of a table with one row a unit as numbers, float64[u], NaN where missing: what is no number by its place
    among all values."""
    info = base.catalog.table(table)
    found = info.column(column) if info is not None else None
    if found is not None and found.kind in NUMERIC:
        return base.column(Universe("unit"), [Bound(table, column)]).column.values
    return base.ranks(table, column)


def _reads_rows(expr: Expr) -> bool:
    """Whether an expression asks for rows of another table: facts of single people, which classes do not show."""
    return isinstance(expr, Exists | PerUnit) or any(_reads_rows(child) for child in children(expr))


def _both(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.prod(parts, axis=0)


def _either(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return 1 - np.prod([1 - part for part in parts], axis=0)


_MATCHES: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "any": lambda share: (share > 0).astype(np.float64),
    "all": lambda share: (share == 1).astype(np.float64),
    "expected": lambda share: share,
}


def _unanswerable(what: str) -> Refused:
    return Refused(
        f"Mode generalized answers about classes of users by their sets of values, not about {what}.",
        code=NOT_SUPPORTED,
        rule=Rule.CONDITIONS,
    )
