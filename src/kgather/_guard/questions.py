"""The rows that a FROM over rows of people gives, once its joins are known, and the questions about them.

`Rows` is what is left of a FROM: mentions of tables, what joins them, and conditions. From it follows which mention
owns a value, which of a person's rows there can be more than one of, and which `Question` an aggregate asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.plan import (
    Bound,
    Exists,
    Expr,
    Literal,
    Lookup,
    Op,
    PerUnit,
    Question,
    Reference,
    Universe,
    conjunction,
    conjuncts,
)
from kgather._guard.refused import Refused, Rule, refused

_TWICE = (
    "it would count a person's value once for every row. Pin the long table's key to one value, or use "
    "EXISTS or IN for the condition"
)


@dataclass(eq=False)
class Ref:
    """One mention of a table."""

    id: int
    table: TableInfo
    optional: bool = False
    per_unit: bool = False
    """The mention stands for the units of a subquery that groups by them."""

    def bound(self, column: Column) -> Bound:
        """A column of this mention."""
        return Bound(self.table.name, column.name, column.kind, self.id)

    @property
    def long(self) -> bool:
        """Whether a unit has many rows in it."""
        return self.table.protected and self.table.grain == "rows" and not self.per_unit


@dataclass(frozen=True, eq=False)
class UnitJoin:
    """Two mentions of protected tables, joined on the privacy unit."""

    one: Ref
    other: Ref

    @property
    def refs(self) -> frozenset[Ref]:
        """Both mentions."""
        return frozenset((self.one, self.other))


@dataclass(frozen=True, eq=False)
class LookupJoin:
    """A mention of a public table (`found`) that is looked up, N:1, by a column of another mention (`by`)."""

    by: Ref
    left: Bound
    found: Ref
    right: Bound
    required: bool
    """False: of a LEFT JOIN."""


@dataclass(eq=False)
class Rows:
    """The tables of one block, their joins and conditions. `joins.py` fills it."""

    catalog: Catalog
    refs: list[Ref] = field(default_factory=list)
    links: list[UnitJoin] = field(default_factory=list)
    lookups: list[LookupJoin] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    correlated: bool = False
    """Whether a join names the person of the query around."""

    def lookup_of(self, ref: Ref) -> LookupJoin | None:
        """How a mention of a public table is looked up, None if it is not."""
        return next((entry for entry in self.lookups if entry.found is ref), None)

    def root(self, ref: Ref) -> Ref:
        """The protected mention that a mention is read beside: itself, or what looks it up."""
        for _ in self.refs:
            entry = self.lookup_of(ref)
            if entry is None:
                break
            ref = entry.by
        return ref

    def _people(self, expr: Expr) -> set[Ref]:
        """The protected mentions whose columns an expression reads."""
        by_id = {ref.id: ref for ref in self.refs}
        return {self.root(by_id[bound.ref]) for bound in _own_bounds(expr) if bound.ref in by_id}

    def longs(self, expr: Expr) -> set[Ref]:
        """The mentions of long tables whose columns an expression reads."""
        return {ref for ref in self._people(expr) if ref.long}

    @property
    def long(self) -> list[Ref]:
        """The mentions of long tables."""
        return [ref for ref in self.refs if ref.long]

    def own(self, ref: Ref) -> Expr:
        """The conditions on a long table's row alone."""
        return conjunction([c for c in self.conditions if self.longs(c) == {ref}])

    def lookups_of(self, ref: Ref) -> tuple[Lookup, ...]:
        """What is looked up beside a protected mention."""
        return tuple(
            Lookup(entry.left, entry.right, entry.required)
            for entry in self.lookups
            if self.root(entry.by) is ref or self.root(entry.found) is ref
        )

    def pin(self, ref: Ref) -> Literal | None:
        """The constant that a long table's unique key equals: then a unit has one row of it at most."""
        unique = self.catalog.unique(ref.table)
        for condition in self.conditions:
            if not isinstance(condition, Op) or condition.name != "=":
                continue
            for one, other in (condition.args, condition.args[::-1]):
                if isinstance(one, Bound) and one.ref == ref.id and one.column == unique and isinstance(other, Literal):
                    return other
        return None

    def pinned(self, ref: Ref) -> bool:
        """Whether a unit has one row at most in a mention of a long table."""
        return self.pin(ref) is not None

    def single(self, owner: Ref | None) -> bool:
        """Whether every long table but one has one row a unit at most."""
        return all(self.pinned(ref) for ref in self.long if ref is not owner)

    def existence(self, node: exp.Expr) -> Expr:
        """Whether a unit is among these rows, as one condition that is never NULL."""
        parts: list[Expr] = []
        for ref in self.refs:
            if not ref.table.protected or ref.per_unit:
                continue
            if ref.optional:
                raise refused(Rule.SUBQUERIES, "LEFT JOIN in a subquery of a condition", node)
            own = [c for c in self.conditions if self._people(c) == {ref}]
            parts.append(Exists(ref.table.name, conjunction(own), self.lookups_of(ref)))
        for condition in self.conditions:
            people = self._people(condition)
            if len(people) > 1:
                raise refused(Rule.SUBQUERIES, "A subquery compares columns of two tables", node)
            if not people:
                parts.append(Op("is true", (condition,)))
        return conjunction(parts)

    def question(self, owner: Ref | None, more: list[Expr], keys: list[Expr], node: exp.Expr | None = None) -> Question:
        """A question about the rows of one long table (owner), or about units; more: further conditions."""
        direct: list[Expr] = []
        own: dict[int, list[Expr]] = {ref.id: [] for ref in self.long if ref is not owner}
        for condition in [*self.conditions, *(part for one in more for part in conjuncts(one))]:
            others = self.longs(condition) - ({owner} if owner is not None else set())
            if not others:
                direct.append(condition)
            elif len(self.longs(condition)) == 1:
                own[others.pop().id].append(condition)
            else:
                direct.append(self._lifted(condition, owner, node))
        for ref in self.long:
            if ref is not owner:
                direct.append(Exists(ref.table.name, conjunction(own[ref.id]), self.lookups_of(ref)))
        condition = stripped(conjunction(direct))
        lifted = tuple(stripped(self._lifted(key, owner, node)) for key in keys)
        return Question(self._universe(owner, node), condition, lifted)

    def _lifted(self, expr: Expr, owner: Ref | None, node: exp.Expr | None) -> Expr:
        """An expression with the columns of other long tables, each of one row a unit, as values of the unit."""
        for ref in self.longs(expr) - ({owner} if owner is not None else set()):
            if not self.pinned(ref):
                reason = "A condition or key that reads several rows of a person at once"
                raise refused(Rule.JOINS, reason, node, allow="Pin the long table's key to one value")
            where = self.own(ref)
            lookups = self.lookups_of(ref)
            beside = {other.id for other in self.refs if self.root(other) is ref}

            def lift(
                bound: Bound,
                table: str = ref.table.name,
                where: Expr = where,
                lookups: tuple[Lookup, ...] = lookups,
                beside: set[int] = beside,
            ) -> Expr:
                return PerUnit("VALUE", table, bound, where, bound.kind, lookups) if bound.ref in beside else bound

            expr = _mapped(expr, lift)
        return expr

    def _universe(self, owner: Ref | None, node: exp.Expr | None) -> Universe:
        required: dict[str, bool] = {}
        for ref in self.refs:
            if ref.table.protected and ref.table.grain == "unit" and not ref.per_unit:
                required[ref.table.name] = required.get(ref.table.name, False) or not ref.optional
        lookups: dict[str, Lookup] = {}
        for join in self.lookups:
            root = self.root(join.by)
            if root.long and root is not owner:
                continue
            entry = Lookup(stripped_bound(join.left), stripped_bound(join.right), join.required)
            table = entry.right.table
            known = lookups.setdefault(table, entry)
            if (known.left, known.right) != (entry.left, entry.right):
                raise refused(Rule.JOINS, f"{table} is looked up by two columns", node)
            lookups[table] = Lookup(known.left, known.right, known.required or entry.required)
        references = tuple(Reference(name, needed) for name, needed in sorted(required.items()))
        kept = tuple(lookups.values())
        if owner is None:
            return Universe("unit", None, references, kept)
        return Universe("rows", owner.table.name, references, kept)

    def counted(self, node: exp.Expr) -> Ref | None:
        """The long table whose rows COUNT(*) counts, None for units. Raises Refused where rows would be pairs."""
        free = [ref for ref in self.long if not self.pinned(ref)]
        if len(free) > 1:
            reason = "It would count pairs of a person's rows"
            raise refused(Rule.ARGUMENTS, reason, node, allow="COUNT(DISTINCT unit) counts people")
        if free:
            return free[0]
        return self.long[0] if len(self.long) == 1 else None

    def repeats(self, node: exp.Expr) -> Refused:
        """The refusal of a value that a join would repeat."""
        return refused(Rule.ARGUMENTS, f"A value of a person is joined with a long table: {_TWICE}", node)


def _own_bounds(expr: Expr) -> Iterator[Bound]:
    """Every column of an expression, those inside Exists and PerUnit, too: mentions tell them apart."""
    if isinstance(expr, Bound):
        yield expr
    elif isinstance(expr, Op):
        for arg in expr.args:
            yield from _own_bounds(arg)
    elif isinstance(expr, Exists | PerUnit):
        yield from _own_bounds(expr.condition)


def _mapped(expr: Expr, change: Callable[[Bound], Expr]) -> Expr:
    if isinstance(expr, Bound):
        return change(expr)
    if isinstance(expr, Op):
        return Op(expr.name, tuple(_mapped(arg, change) for arg in expr.args), expr.kind)
    if isinstance(expr, Exists):
        return Exists(expr.table, _mapped(expr.condition, change), expr.lookups)
    return expr


def stripped_bound(bound: Bound) -> Bound:
    """A column without its mention."""
    return Bound(bound.table, bound.column, bound.kind)


def stripped(expr: Expr) -> Expr:
    """An expression without mentions, as it stands in a finished plan."""
    if isinstance(expr, Bound):
        return stripped_bound(expr)
    if isinstance(expr, Op):
        return Op(expr.name, tuple(stripped(arg) for arg in expr.args), expr.kind)
    if isinstance(expr, Exists):
        return Exists(expr.table, stripped(expr.condition), _stripped(expr.lookups))
    if isinstance(expr, PerUnit):
        argument = stripped_bound(expr.argument) if expr.argument is not None else None
        where = stripped(expr.condition)
        return PerUnit(expr.function, expr.table, argument, where, expr.kind, _stripped(expr.lookups))
    return expr


def _stripped(lookups: tuple[Lookup, ...]) -> tuple[Lookup, ...]:
    return tuple(Lookup(stripped_bound(one.left), stripped_bound(one.right), one.required) for one in lookups)
