"""The rows that a FROM over rows of people gives, once its joins are known, and the questions about them.

`Rows` is what is left of a FROM: mentions of tables, what joins them, and conditions. From it follows which mention
owns a value, which of a person's rows there can be more than one of, and which `Question` an aggregate asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from kgather._guard.canonical import normal
from kgather._guard.catalog import PERSON, Catalog, Column, TableInfo, beside
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
    bounds,
    conjunction,
    conjuncts,
)
from kgather._guard.refused import Refused, Rule, refused

_TWICE = (
    "it would count a person's value once for every row. Pin the long table's key to one value, or use "
    "EXISTS or IN for the condition"
)

_NOTHING = Literal(None, "null")


@dataclass(eq=False)
class Ref:
    """One mention of a table."""

    id: int
    table: TableInfo
    optional: bool = False
    per_unit: bool = False
    """The mention stands for the units of a subquery that groups by them."""
    child: "Ref | None" = None
    """The mention whose rows belong to this one's: its columns are read there."""
    name: str | None = None
    """Of a public table: what it is named where it is looked up, if not as the table."""
    on: list[Expr] = field(default_factory=list)
    """Of a long table joined by LEFT JOIN: what its rows have to meet beside the key."""
    when: Expr | None = None
    """Of what is joined by LEFT JOIN with one row at most for each: what makes it one, of a subquery that groups by
    people who is in it, of a table what ON says beside the key. Of others its columns are NULL."""

    def bound(self, column: Column) -> Bound:
        """A column of this mention."""
        if self.child is None:
            name = PERSON if column.role == "unit" and self.table.parent is not None else column.name
            return Bound(self.name or self.table.name, name, column.kind, self.id)
        youngest = self.youngest
        name = PERSON if column.role == "unit" else beside(self.table, column.name)
        return Bound(youngest.table.name, name, column.kind, youngest.id)

    @property
    def youngest(self) -> "Ref":
        """The mention whose rows are counted where this one is joined with rows that belong to it."""
        return self if self.child is None else self.child.youngest

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
    found: Ref
    pairs: tuple[tuple[Bound, Bound], ...]
    """The columns that look up, each with the one it equals."""
    required: bool
    """False: of a LEFT JOIN."""
    by_columns: tuple[Column, ...] = ()
    """The columns that look up, as their table has them."""

    @property
    def left(self) -> Bound:
        """The first column that looks up."""
        return self.pairs[0][0]

    @property
    def plain(self) -> Lookup:
        """As it stands in a plan, with its mentions."""
        (left, right), *more = self.pairs
        of = self.found.table.name if self.found.name is not None else ""
        return Lookup(left, right, self.required, tuple(more), of)


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
    by: tuple[tuple[Bound, Bound], ...] = ()
    """What joins rows with the row of the query around that they belong to: a column of that, and the one here."""

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
        return ref.youngest

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
        return conjunction([*ref.on, *(c for c in self.conditions if self.longs(c) == {ref})])

    def lookups_of(self, ref: Ref) -> tuple[Lookup, ...]:
        """What is looked up beside a protected mention."""
        return tuple(
            entry.plain for entry in self.lookups if self.root(entry.by) is ref or self.root(entry.found) is ref
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

    @property
    def free(self) -> list[Ref]:
        """The mentions of long tables that make several rows of a person: not of LEFT JOIN, which leaves people in."""
        return [ref for ref in self.long if not ref.optional and not self.pinned(ref)]

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
            parts.append(Exists(ref.table.name, conjunction(own), self.lookups_of(ref), self.by))
        if self.by and len(parts) > 1:
            reason = "EXISTS of rows that belong to a row, with another table of people"
            raise refused(Rule.SUBQUERIES, reason, node)
        for condition in self.conditions:
            people = self._people(condition)
            if len(people) > 1:
                raise refused(Rule.SUBQUERIES, "A subquery compares columns of two tables", node)
            if not people:
                parts.append(Op("is true", (condition,)))
        return conjunction(parts)

    def question(self, owner: Ref | None, more: list[Expr], keys: list[Expr], node: exp.Expr | None = None) -> Question:
        """A question about the rows of one long table (owner), or about units; more: further conditions."""
        direct: list[Expr] = [] if owner is None else [*owner.on]
        own: dict[int, list[Expr]] = {ref.id: [] for ref in self.long if ref is not owner}
        for condition in [*self.conditions, *(part for one in more for part in conjuncts(one))]:
            others = self.longs(condition) - ({owner} if owner is not None else set())
            if any(ref.optional for ref in others):
                allow = "Use JOIN, or count a column of it: COUNT(column), with the condition in ON"
                raise refused(Rule.JOINS, "A condition on a table joined by LEFT JOIN", node, allow=allow)
            if not others:
                direct.append(condition)
            elif len(self.longs(condition)) == 1:
                own[others.pop().id].append(condition)
            else:
                direct.append(self._lifted(condition, owner, node))
        for ref in self.long:
            if ref is not owner and not ref.optional:
                direct.append(Exists(ref.table.name, conjunction(own[ref.id]), self.lookups_of(ref)))
        condition = stripped(conjunction(direct))
        lifted = tuple(stripped(self._lifted(key, owner, node)) for key in keys)
        return Question(self._universe(owner), condition, lifted)

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
                bound: Bound | Exists,
                table: str = ref.table.name,
                where: Expr = where,
                lookups: tuple[Lookup, ...] = lookups,
                beside: set[int] = beside,
            ) -> Expr:
                if isinstance(bound, Exists):  # of the row that the key names
                    return Exists(table, conjunction([where, bound])) if bound.by[0][0].ref in beside else bound
                return PerUnit("VALUE", table, bound, where, bound.kind, lookups) if bound.ref in beside else bound

            expr = _mapped(expr, lift)
        return expr

    def _universe(self, owner: Ref | None) -> Universe:
        required: dict[str, bool] = {}
        for ref in self.refs:
            if ref.table.protected and ref.table.grain == "unit" and not ref.per_unit:
                required[ref.table.name] = required.get(ref.table.name, False) or not ref.optional
        lookups: dict[str, Lookup] = {}
        for join in self.lookups:
            root = self.root(join.by)
            if root.long and root is not owner:
                continue
            entry = _stripped_lookup(join.plain)
            known = lookups.setdefault(entry.right.table, entry)
            assert known.pairs == entry.pairs, "what is looked up in several ways is named by the way"
            lookups[entry.right.table] = replace(known, required=known.required or entry.required)
        references = tuple(Reference(name, needed) for name, needed in sorted(required.items()))
        kept = tuple(lookups.values())
        if owner is None:
            return Universe("unit", None, references, kept)
        return Universe("rows", owner.table.name, references, kept)

    def of_parents(self, child: Ref, more: list[Expr], keys: list[Expr], node: exp.Expr) -> Question | None:
        """A question about the rows that those of a long table belong to, of which some row there is asked about.
        None of keys that are not theirs: a row would be in several groups."""
        of = child.table.parent
        assert of is not None
        ((here, there),) = of.keys
        asked, parent = self.question(child, more, keys, node), of.table
        name = child.table.name

        def moved(bound: Bound | Exists) -> Expr:
            if isinstance(bound, Exists) or bound.table != name:
                mapped.append(isinstance(bound, Exists) or bound.table in others)
                return bound
            own = next((c.name for c in parent.columns.values() if beside(parent, c.name) == bound.column), None)
            column = parent.column(own if own is not None else bound.column)
            if column is None or (own is None and bound.column not in {c.name for c in parent.beside.values()}):
                mapped.append(False)
                return bound
            return Bound(parent.name, column.name, bound.kind)

        mapped: list[bool] = []
        inside = [entry for entry in asked.universe.lookups if self._is_of(entry, name, asked.universe.lookups)]
        read = {name, *(entry.right.table for entry in inside)}
        lookups = tuple(entry for entry in asked.universe.lookups if entry not in inside)
        others = {reference.table for reference in asked.universe.references}
        others |= {entry.right.table for entry in lookups}
        conditions = [*conjuncts(asked.condition)]
        own = [one for one in conditions if any(bound.table in read for bound in bounds(one))]
        direct = [one for one in conditions if one not in own]
        left, right = parent.column(there), child.table.column(here)
        assert left is not None
        assert right is not None
        by = (Bound(parent.name, left.name, left.kind), Bound(name, right.name, right.kind))
        exists = Exists(name, conjunction(own), tuple(inside), (by,))
        universe = Universe("rows", parent.name, asked.universe.references, lookups)
        of_parents = tuple(_mapped(key, moved) for key in asked.keys)
        return Question(universe, conjunction([*direct, exists]), of_parents) if all(mapped) else None

    @staticmethod
    def _is_of(entry: Lookup, name: str, lookups: tuple[Lookup, ...]) -> bool:
        """Whether a table is looked up by rows of a table, at whatever remove."""
        table = entry.left.table
        for _ in lookups:
            if table == name:
                return True
            table = next((one.left.table for one in lookups if one.right.table == table), table)
        return table == name

    def counted(self, node: exp.Expr) -> Ref | None:
        """The long table whose rows COUNT(*) counts, None for units. Raises Refused where rows would be pairs."""
        free = self.free
        if len(free) > 1:
            reason = "It would count pairs of a person's rows"
            raise refused(Rule.ARGUMENTS, reason, node, allow="COUNT(DISTINCT unit) counts people")
        if free:
            return free[0]
        return self.long[0] if len(self.long) == 1 and not self.long[0].optional else None

    def without(self, ref: Ref) -> Expr:
        """That a person has no row in a long table."""
        return Op("not", (stripped(Exists(ref.table.name, self.own(ref), self.lookups_of(ref))),))

    def beyond(self, expr: Expr, ref: Ref) -> Expr:
        """What an expression is where a LEFT JOIN finds no row of a table: a constant, NULL of most; another expression
        where that is not known."""
        if isinstance(expr, Bound):
            by_id = {one.id: one for one in self.refs}
            return _NOTHING if expr.ref in by_id and self.root(by_id[expr.ref]) is ref else expr
        if not isinstance(expr, Op):
            return expr
        args = tuple(self.beyond(one, ref) for one in expr.args)
        match expr.name:
            case "coalesce":
                return next((one for one in args if one != _NOTHING), _NOTHING)
            case "greatest" | "least":
                there = tuple(one for one in args if one != _NOTHING)
                return Op(expr.name, there, expr.kind) if len(there) > 1 else (*there, _NOTHING)[0]
            case "case":
                for at in range(0, len(args) - 1, 2):
                    if not isinstance(args[at], Literal):
                        return Op("case", args, expr.kind)
                    if args[at] == Literal(value=True, kind="boolean"):
                        return args[at + 1]
                return args[-1]
            case "and" | "or":
                return _NOTHING if all(one == _NOTHING for one in args) else Op(expr.name, args, expr.kind)
            case "is null" | "is true" | "is false" | "is not distinct":
                return normal(Op(expr.name, args, expr.kind))
        return _NOTHING if _NOTHING in args else Op(expr.name, args, expr.kind)

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
        if isinstance(expr, Exists):
            yield from (own for own, _ in expr.by)


def _mapped(expr: Expr, change: Callable[[Bound | Exists], Expr]) -> Expr:
    if isinstance(expr, Bound) or (isinstance(expr, Exists) and expr.by):
        return change(expr)
    if isinstance(expr, Op):
        return Op(expr.name, tuple(_mapped(arg, change) for arg in expr.args), expr.kind)
    if isinstance(expr, Exists):
        return replace(expr, condition=_mapped(expr.condition, change))
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
        by = tuple((stripped_bound(own), stripped_bound(there)) for own, there in expr.by)
        return Exists(expr.table, stripped(expr.condition), _stripped(expr.lookups), by)
    if isinstance(expr, PerUnit):
        argument = stripped(expr.argument) if expr.argument is not None else None
        assert argument is None or isinstance(argument, Bound | Op)
        where = stripped(expr.condition)
        return PerUnit(expr.function, expr.table, argument, where, expr.kind, _stripped(expr.lookups))
    return expr


def _stripped(lookups: tuple[Lookup, ...]) -> tuple[Lookup, ...]:
    return tuple(_stripped_lookup(one) for one in lookups)


def _stripped_lookup(entry: Lookup) -> Lookup:
    (left, right), *more = ((stripped_bound(one), stripped_bound(other)) for one, other in entry.pairs)
    return replace(entry, left=left, right=right, more=tuple(more))
