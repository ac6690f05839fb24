"""Reads the joins of a FROM over rows of people: its tables, what joins them, and the conditions that are left.

The tables of inlined subqueries and CTEs become tables of the query around them, and their conditions are added. Only
declared joins are taken; tables that no join connects are refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from kgather._guard.allowed import JOINS, JoinKind
from kgather._guard.catalog import Catalog, TableInfo
from kgather._guard.names import Scope, Source, group_keys
from kgather._guard.plan import Exists, conjuncts
from kgather._guard.policy import fold
from kgather._guard.questions import LookupJoin, Ref, Rows, UnitJoin
from kgather._guard.refused import NOT_PERMITTED, Rule, refused
from kgather._guard.scopes import Around, Compiler, Frame, Located, Subquery, Units, Written

_REFS = 12
"""How many tables one block may join, after everything is inlined."""


@dataclass(frozen=True)
class Joined:
    """The rows that a SELECT reads, what compiles its expressions over them, and its frame."""

    rows: Rows
    compiler: Compiler
    frame: Frame


@dataclass(frozen=True)
class _OptionalJoin:
    """A LEFT JOIN of a frame."""

    frame: Frame
    source: Source
    join: exp.Join


@dataclass(frozen=True)
class _Pair:
    """The two sides of an equality of columns."""

    left: Located
    right: Located

    @property
    def of_units(self) -> bool:
        """Whether both are privacy units."""
        return self.left.column.role == "unit" and self.right.column.role == "unit"

    @property
    def of_a_public_table(self) -> bool:
        """Whether neither is a privacy unit, and one is of a public table."""
        return not any(side.column.role == "unit" for side in (self.left, self.right)) and not all(
            side.ref.table.protected for side in (self.left, self.right)
        )


def read_joins(catalog: Catalog, scope: Scope, ids: "count[int] | None" = None, around: Around | None = None) -> Joined:
    """Read the FROM and WHERE of a SELECT. ids: number the mentions; a new count if not given.

    Raises Refused for joins and conditions that are not permitted.
    """
    reader = _Reader(catalog, count(1) if ids is None else ids, around)
    frame = reader.select(scope)
    return Joined(reader.rows, reader.compiler, frame)


class _Reader:
    """Fills the rows of one block."""

    def __init__(self, catalog: Catalog, ids: "count[int]", around: Around | None = None) -> None:
        self.catalog = catalog
        self.ids = ids
        self.around = around
        self.rows = Rows(catalog)
        self.compiler = Compiler(self.rows, self._subquery, around)
        self._pending: list[Written] = []
        """Conditions not yet compiled: some may be joins."""
        self._optional_joins: list[_OptionalJoin] = []

    def select(self, scope: Scope) -> Frame:
        """Read a SELECT whose rows are those of its FROM."""
        frame = self._frame(scope)
        self._join()
        for where, node in self._pending:
            self.rows.conditions += conjuncts(self.compiler.terms(where).condition(node))
        self._pending = []
        self._check_connected()
        return frame

    def _subquery(self, query: Scope, around: Around | None) -> Subquery:
        """Read the subquery of an IN or EXISTS."""
        if query.per_unit:
            reader = _Reader(self.catalog, self.ids, around)
            made = reader._units(query)
            reader._check_connected()
            rows, compiler, frame = reader.rows, made.inner, made.frame
        else:
            joined = read_joins(self.catalog, query, self.ids, around)
            rows, compiler, frame = joined.rows, joined.compiler, joined.frame
        named = compiler.located_output(frame, query.outputs[0]) if len(query.outputs) == 1 else None
        return Subquery(rows, named)

    def _frame(self, scope: Scope) -> Frame:
        frame = Frame(scope)
        for source in scope.sources:
            join = source.join
            kind = JoinKind.of(join)
            if kind not in JOINS:
                allow = "Over people there are JOIN and LEFT JOIN along declared keys"
                raise refused(Rule.JOINS, f"{kind} JOIN over rows of people", join, allow=allow)
            frame.members[id(source)] = self._member(source, left=kind.side == "LEFT")
        for source in scope.sources:
            join = source.join
            if join is None:
                continue
            if join.args.get("side") == "LEFT":
                self._optional_joins.append(_OptionalJoin(frame, source, join))
            elif join.args.get("on") is not None:
                self._pending += (Written(frame, part) for part in _parts(join.args["on"]))
            for key in join.args.get("using") or ():
                self._using(frame, source, fold(key.name), key)
        where = scope.node.args.get("where")
        if where is not None:
            self._pending += (Written(frame, part) for part in _parts(where.this))
        return frame

    def _member(self, source: Source, left: bool) -> "Ref | Frame | Units":
        if source.table is not None:
            if left and source.table.protected and source.table.grain == "rows":
                allow = "LEFT JOIN takes a table with one row a person, or a public one, on its right"
                raise refused(Rule.JOINS, "LEFT JOIN that could repeat rows", source.node, allow=allow)
            return self._add(source.table, left)
        query = source.query
        if left:
            raise refused(Rule.JOINS, "LEFT JOIN of a subquery with people", source.node, allow="Join the table itself")
        if not isinstance(query, Scope):
            raise refused(Rule.JOINS, "People are joined with a set operation", source.node)
        if query.per_unit:
            return self._units(query)
        more = ("limit", "offset", "distinct", "qualify")
        if query.aggregated or any(query.node.args.get(part) is not None for part in more):
            raise refused(
                Rule.JOINS, "People are joined with more than a table", source.node, allow="Join the table itself"
            )
        if not query.sources:
            raise refused(Rule.JOINS, "People are joined with constants", source.node)
        return self._frame(query)

    def _add(self, table: TableInfo, optional: bool = False, per_unit: bool = False) -> Ref:
        ref = Ref(next(self.ids), table, optional, per_unit)
        self.rows.refs.append(ref)
        if len(self.rows.refs) > _REFS:
            raise refused(Rule.LIMITS, f"More than {_REFS} tables are joined", allow="Ask for less at once")
        return ref

    def _units(self, scope: Scope) -> Units:
        joined = read_joins(self.catalog, scope, self.ids)
        inner, frame = joined.rows, joined.frame
        for key in group_keys(scope):
            if joined.compiler.unit_of(frame, key) is None:
                reason = "A subquery that groups by the privacy unit groups by something else, too"
                raise refused(Rule.PER_UNIT, reason, key)
        if len(inner.long) != 1 or any(ref.per_unit for ref in inner.refs):
            reason = "GROUP BY the privacy unit takes one table with many rows a person"
            raise refused(Rule.PER_UNIT, reason, scope.node)
        owner = inner.long[0]
        ref = self._add(owner.table, per_unit=True)
        units = Units(frame, ref, joined.compiler, owner)
        rows = self.rows
        rows.refs += [other for other in inner.refs if inner.root(other) is not owner]
        rows.lookups += [entry for entry in inner.lookups if inner.root(entry.found) is not owner]
        rows.links += [UnitJoin(ref, other) for other in inner.refs if other.table.protected and other is not owner]
        rows.conditions += [c for c in inner.conditions if owner not in inner.longs(c)]
        rows.conditions.append(Exists(owner.table.name, inner.own(owner), inner.lookups_of(owner)))
        having = scope.node.args.get("having")
        if having is not None:
            rows.conditions += conjuncts(self.compiler.unit_terms(units, "condition").condition(having.this))
        return units

    def _using(self, frame: Frame, source: Source, key: str, node: exp.Expr) -> None:
        """An equality of USING: between a source and the first one before it that has the column."""
        before = next(other for other in frame.scope.sources if other.has(key))
        pair = _Pair(self._located(frame, before, key), self._located(frame, source, key))
        left = source.join is not None and source.join.args.get("side") == "LEFT"
        if not self._equality(pair, node, left):
            raise refused(
                Rule.JOINS, f"{key!r} is no declared key of this join", node, allow="joins in the policy list the keys"
            )

    def _located(self, frame: Frame, source: Source, key: str) -> Located:
        found = self.compiler.located(frame, source, key)
        if found is None:
            raise refused(Rule.JOINS, f"{key!r} is no column of a table", source.node)
        return found

    def _join(self) -> None:
        """Take the equalities that join out of the conditions."""
        for optional in self._optional_joins:
            self._join_optional(optional)
        for units in (True, False):  # joins of people first, then of public tables
            left = []
            for written in self._pending:
                pair = self._pair(written)
                wanted = pair is not None and (pair.of_units if units else pair.of_a_public_table)
                if pair is None or not wanted or not self._equality(pair, written.node, optional=False):
                    left.append(written)
            self._pending = left

    def _join_optional(self, optional: _OptionalJoin) -> None:
        on = optional.join.args.get("on")
        if on is None:
            if optional.join.args.get("using"):
                return
            raise refused(Rule.JOINS, "LEFT JOIN without a key", optional.join)
        parts = list(_parts(on))
        pair = self._pair(Written(optional.frame, parts[0])) if len(parts) == 1 else None
        member = optional.frame.members[id(optional.source)]
        if pair is None or member not in (pair.left.ref, pair.right.ref) or not self._equality(pair, on, optional=True):
            allow = "Write ON left.key = right.key along a declared join; put conditions into WHERE"
            raise refused(Rule.JOINS, "LEFT JOIN on more than a declared key", optional.join, allow=allow)

    def _pair(self, written: Written) -> _Pair | None:
        node = written.node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        left = self.compiler.locate(written.frame, node.this)
        right = self.compiler.locate(written.frame, node.expression)
        return _Pair(left, right) if left is not None and right is not None else None

    def _equality(self, pair: _Pair, node: exp.Expr, optional: bool) -> bool:
        """Take an equality as a join, if it is a declared one."""
        if pair.of_units:
            one, other = pair.left.ref, pair.right.ref
            if one is other:
                return True
            if not self.catalog.units_join(one.table, other.table):
                raise refused(
                    Rule.JOINS,
                    f"{one.table.name} and {other.table.name} are not declared to be joined",
                    node,
                    allow="joins in the policy list the keys",
                    code=NOT_PERMITTED,
                )
            self._link(one, other, node, optional)
            return True
        for by, found in ((pair.left, pair.right), (pair.right, pair.left)):
            a, b = by.ref, found.ref
            if b.table.protected or not self.catalog.looks_up(by.table_column, found.table_column):
                continue
            if self.rows.lookup_of(b) is not None:
                return False
            if a is b or a not in self.rows.refs or (optional and not b.optional):
                return False
            self.rows.lookups.append(LookupJoin(a, a.bound(by.column), b, b.bound(found.column), not optional))
            return True
        return False

    def _link(self, one: Ref, other: Ref, node: exp.Expr, optional: bool) -> None:
        one_inside, other_inside = one in self.rows.refs, other in self.rows.refs
        if not (one_inside and other_inside):
            outer = other if one_inside else one
            if not (one_inside or other_inside) or optional or self.around is None or outer.optional:
                raise refused(Rule.JOINS, "A join with a query around", node)
            self.rows.correlated = True
            return
        if optional:
            if one.optional == other.optional:
                allow = "Join to the table that comes first"
                raise refused(Rule.JOINS, "LEFT JOIN to a table that is itself joined by LEFT JOIN", node, allow=allow)
        else:
            one.optional = other.optional = False
        self.rows.links.append(UnitJoin(one, other))

    def _check_connected(self) -> None:
        """Refuse tables that no key connects: every pair of their rows would count."""
        rows = self.rows
        people = [ref for ref in rows.refs if ref.table.protected]
        reached, changed = set(people[:1]), True
        while changed:
            changed = False
            for link in rows.links:
                if link.refs & reached and not link.refs <= reached:
                    reached |= link.refs
                    changed = True
            for lookup in rows.lookups:
                if lookup.by in reached and lookup.found not in reached:
                    reached.add(lookup.found)
                    changed = True
        for ref in rows.refs:
            if ref not in reached:
                raise refused(
                    Rule.JOINS,
                    f"{ref.table.name} is joined by no declared key",
                    allow="joins in the policy list the keys; unit = unit joins protected tables",
                )


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a conjunction in a tree."""
    stack = [node]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.And):
            stack += [one.expression, one.this]
        else:
            yield one
