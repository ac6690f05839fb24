"""What a FROM over rows of people means: its tables, how they are joined, its conditions; and questions about them.

Subqueries and CTEs that filter, project and rename are inlined: their tables become tables of the query around them,
their conditions are added, and their columns stand for what they are made of. Subqueries that group by the privacy
unit become values that a unit has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from kgather._guard.allowed import JOINS
from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.conditions import Terms, constant
from kgather._guard.names import Output, Scope, Source, group_keys
from kgather._guard.plan import (
    NUMERIC,
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
from kgather._guard.policy import TRUNCATIONS, fold
from kgather._guard.refused import NOT_PERMITTED, Refused, Rule, refused

_REFS = 12
"""How many tables one block may join, after everything is inlined."""

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


@dataclass(eq=False)
class Frame:
    """A SELECT whose rows are inlined, with what each source became."""

    scope: Scope
    members: dict[int, "Ref | Frame | Units"] = field(default_factory=dict)


@dataclass(eq=False)
class Units:
    """A subquery that groups by the privacy unit."""

    frame: Frame
    ref: Ref
    inner: "Rows"
    owner: Ref


Located = tuple[Ref, Column]


class Rows:
    """The tables of one block, their joins and conditions. Build it with `of`."""

    def __init__(self, catalog: Catalog, ids: "count[int]", around: "tuple[Rows, Frame] | None" = None) -> None:
        self.catalog = catalog
        self.ids = ids
        self.around = around
        self.correlated = False
        self.refs: list[Ref] = []
        self.links: list[tuple[Ref, Ref]] = []
        self.lookups: list[tuple[Ref, Bound, Ref, Bound, bool]] = []
        self.conditions: list[Expr] = []
        self._pending: list[tuple[Frame, exp.Expr]] = []
        self._optional_joins: list[tuple[Frame, Source]] = []

    @classmethod
    def of(
        cls, catalog: Catalog, scope: Scope, ids: "count[int]", around: "tuple[Rows, Frame] | None" = None
    ) -> "tuple[Rows, Frame]":
        """The rows that a SELECT reads, and its frame. Raises Refused for joins and conditions not permitted."""
        rows = cls(catalog, ids, around)
        frame = rows._frame(scope)
        rows._join()
        for where, node in rows._pending:
            rows.conditions += conjuncts(rows.terms(where).condition(node))
        rows._pending = []
        rows._check_connected()
        return rows, frame

    # Building

    def _frame(self, scope: Scope) -> Frame:
        frame = Frame(scope)
        for source in scope.sources:
            join = source.join
            side, kind = (str(join.args.get("side") or ""), str(join.args.get("kind") or "")) if join else ("", "")
            if (side, kind) not in JOINS:
                allow = "Over people there are JOIN and LEFT JOIN along declared keys"
                raise refused(Rule.JOINS, f"{side or kind} JOIN over rows of people", join, allow=allow)
            frame.members[id(source)] = self._member(source, left=side == "LEFT")
        for source in scope.sources:
            join = source.join
            if join is None:
                continue
            if join.args.get("side") == "LEFT":
                self._optional_joins.append((frame, source))
            elif join.args.get("on") is not None:
                self._pending += ((frame, part) for part in _parts(join.args["on"]))
            for key in join.args.get("using") or ():
                self._using(frame, source, fold(key.name), key)
        where = scope.node.args.get("where")
        if where is not None:
            self._pending += ((frame, part) for part in _parts(where.this))
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
        self.refs.append(ref)
        if len(self.refs) > _REFS:
            raise refused(Rule.LIMITS, f"More than {_REFS} tables are joined", allow="Ask for less at once")
        return ref

    def _units(self, scope: Scope) -> Units:
        inner, frame = Rows.of(self.catalog, scope, self.ids)
        for key in group_keys(scope):
            if inner.unit_of(frame, key) is None:
                reason = "A subquery that groups by the privacy unit groups by something else, too"
                raise refused(Rule.PER_UNIT, reason, key)
        long = [ref for ref in inner.refs if ref.long]
        if len(long) != 1 or any(ref.per_unit for ref in inner.refs):
            reason = "GROUP BY the privacy unit takes one table with many rows a person"
            raise refused(Rule.PER_UNIT, reason, scope.node)
        owner = long[0]
        ref = self._add(owner.table, per_unit=True)
        units = Units(frame, ref, inner, owner)
        for other in inner.refs:
            if inner.root(other) is not owner:
                self.refs.append(other)
        self.lookups += [entry for entry in inner.lookups if inner.root(entry[2]) is not owner]
        self.links += [(ref, other) for other in inner.refs if other.table.protected and other is not owner]
        self.conditions += [c for c in inner.conditions if owner not in inner.longs(c)]
        self.conditions.append(Exists(owner.table.name, inner.own(owner), inner.lookups_of(owner)))
        having = scope.node.args.get("having")
        if having is not None:
            self.conditions += conjuncts(self._unit_terms(units, "condition").condition(having.this))
        return units

    def _using(self, frame: Frame, source: Source, key: str, node: exp.Expr) -> None:
        """An equality of USING: between a source and the first one before it that has the column."""
        before = next(other for other in frame.scope.sources if other.has(key))
        pair = [self._located(frame, one, key) for one in (before, source)]
        left = source.join is not None and source.join.args.get("side") == "LEFT"
        if not self._equality(pair[0], pair[1], node, left):
            raise refused(
                Rule.JOINS, f"{key!r} is no declared key of this join", node, allow="joins in the policy list the keys"
            )

    def _join(self) -> None:
        """Take the equalities that join out of the conditions."""
        for frame, source in self._optional_joins:
            self._join_optional(frame, source)
        for wanted in ("unit", "lookup"):
            left = []
            for frame, node in self._pending:
                pair = self._pair(frame, node)
                joins = pair is not None and self._is(wanted, pair) and self._equality(pair[0], pair[1], node, False)
                if not joins:
                    left.append((frame, node))
            self._pending = left

    def _is(self, wanted: str, pair: tuple[Located, Located]) -> bool:
        units = [column.role == "unit" for _, column in pair]
        return all(units) if wanted == "unit" else not any(units) and any(not ref.table.protected for ref, _ in pair)

    def _join_optional(self, frame: Frame, source: Source) -> None:
        assert source.join is not None
        on = source.join.args.get("on")
        if on is None:
            if source.join.args.get("using"):
                return
            raise refused(Rule.JOINS, "LEFT JOIN without a key", source.join)
        parts = list(_parts(on))
        pair = self._pair(frame, parts[0]) if len(parts) == 1 else None
        member = frame.members[id(source)]
        if pair is None or member not in (pair[0][0], pair[1][0]) or not self._equality(pair[0], pair[1], on, True):
            allow = "Write ON left.key = right.key along a declared join; put conditions into WHERE"
            raise refused(Rule.JOINS, "LEFT JOIN on more than a declared key", source.join, allow=allow)

    def _pair(self, frame: Frame, node: exp.Expr) -> tuple[Located, Located] | None:
        node = node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        left, right = self.locate(frame, node.this), self.locate(frame, node.expression)
        return (left, right) if left is not None and right is not None else None

    def _equality(self, left: Located, right: Located, node: exp.Expr, optional: bool) -> bool:
        """Take an equality as a join, if it is a declared one."""
        (one, one_column), (other, other_column) = left, right
        if one_column.role == "unit" and other_column.role == "unit":
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
        for (a, a_column), (b, b_column) in ((left, right), (right, left)):
            if b.table.protected or not self.catalog.looks_up((a.table, a_column), (b.table, b_column)):
                continue
            if any(entry[2] is b for entry in self.lookups):
                return False
            if a is b or a not in self.refs or (optional and not b.optional):
                return False
            self.lookups.append((a, a.bound(a_column), b, b.bound(b_column), not optional))
            return True
        return False

    def _link(self, one: Ref, other: Ref, node: exp.Expr, optional: bool) -> None:
        inside = [ref in self.refs for ref in (one, other)]
        if not all(inside):
            outer = other if inside[0] else one
            if not any(inside) or optional or self.around is None or outer.optional:
                raise refused(Rule.JOINS, "A join with a query around", node)
            self.correlated = True
            return
        if optional:
            if one.optional == other.optional:
                allow = "Join to the table that comes first"
                raise refused(Rule.JOINS, "LEFT JOIN to a table that is itself joined by LEFT JOIN", node, allow=allow)
        else:
            one.optional = other.optional = False
        self.links.append((one, other))

    def _check_connected(self) -> None:
        """Refuse tables that no key connects: every pair of their rows would count."""
        people = [ref for ref in self.refs if ref.table.protected]
        reached, changed = set(people[:1]), True
        while changed:
            changed = False
            for pair in self.links:
                if any(ref in reached for ref in pair) and not all(ref in reached for ref in pair):
                    reached.update(pair)
                    changed = True
            for left, _, right, _, _ in self.lookups:
                if left in reached and right not in reached:
                    reached.add(right)
                    changed = True
        for ref in self.refs:
            if ref not in reached:
                raise refused(
                    Rule.JOINS,
                    f"{ref.table.name} is joined by no declared key",
                    allow="joins in the policy list the keys; unit = unit joins protected tables",
                )

    # Names

    def locate(self, frame: Frame, node: exp.Expr) -> Located | None:
        """The mention and the column that an expression is, None if it is more than a column."""
        node = node.unalias().unnest()
        name = frame.scope.names.get(id(node))
        if name is None:
            return None
        if name.scope is not frame.scope:
            if self.around is None or name.source is None or name.scope is not self.around[1].scope:
                return None
            rows, around = self.around
            found = rows._located_or_none(around, name.source, fold(name.column))
            return found if found is not None and found[1].role == "unit" else None
        if name.output is not None:
            return self._located_output(frame, name.output)
        assert name.source is not None
        return self._located_or_none(frame, name.source, fold(name.column))

    def unit_of(self, frame: Frame, node: exp.Expr) -> Ref | None:
        """The mention whose privacy unit an expression is."""
        found = self.locate(frame, node)
        return found[0] if found is not None and found[1].role == "unit" and found[0] in self.refs else None

    def _located_output(self, frame: Frame, output: Output) -> Located | None:
        if output.node is not None:
            return self.locate(frame, output.node)
        assert output.source is not None
        return self._located_or_none(frame, output.source, fold(output.column))

    def _located(self, frame: Frame, source: Source, key: str) -> Located:
        found = self._located_or_none(frame, source, key)
        if found is None:
            raise refused(Rule.JOINS, f"{key!r} is no column of a table", source.node)
        return found

    def _located_or_none(self, frame: Frame, source: Source, key: str) -> Located | None:
        member = frame.members[id(source)]
        if isinstance(member, Ref):
            column = member.table.columns.get(key)
            return (member, column) if column is not None else None
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if isinstance(member, Units):
            found = member.inner._located_output(inner, output)
            if found is None or found[1].role != "unit":
                return None
            return (member.ref, member.ref.table.columns[fold(member.ref.table.unit)])
        return self._located_output(inner, output)

    # Expressions

    def terms(self, frame: Frame, place: str = "condition") -> Terms:
        """What compiles the expressions of a frame. place: condition, key or argument."""
        rule = {"condition": Rule.CONDITIONS, "key": Rule.KEYS, "argument": Rule.ARGUMENTS}[place]

        def leaf(node: exp.Expr) -> Expr | None:
            if isinstance(node, exp.Column):
                return self._column(frame, node, place)
            if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
                return self._exists(frame, node, place)
            return None

        return Terms(leaf, rule)

    def _column(self, frame: Frame, node: exp.Column, place: str) -> Expr:
        name = frame.scope.names[id(node)]
        if name.scope is not frame.scope:
            allow = "It may name the person of the query around: inner.unit = outer.unit"
            raise refused(Rule.SUBQUERIES, "A subquery reads columns of the query around it", node, allow=allow)
        if name.output is not None:
            return self._output(frame, name.output, place, node)
        assert name.source is not None
        return self._member_column(frame, name.source, fold(name.column), place, node)

    def _output(self, frame: Frame, output: Output, place: str, node: exp.Expr) -> Expr:
        if output.node is not None:
            return self.terms(frame, place).value(output.node)
        assert output.source is not None
        return self._member_column(frame, output.source, fold(output.column), place, node)

    def _member_column(self, frame: Frame, source: Source, key: str, place: str, node: exp.Expr) -> Expr:
        member = frame.members[id(source)]
        if isinstance(member, Ref):
            return self.bound(member, member.table.columns[key], place, node)
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if not isinstance(member, Units):
            return self._output(inner, output, place, node)
        if self._located_or_none(frame, source, key) is not None:
            return self.bound(member.ref, member.ref.table.columns[fold(member.ref.table.unit)], place, node)
        if place == "key":
            raise refused(Rule.PER_UNIT, "A value per person as a key of groups", node)
        if output.node is None:
            raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
        return self._unit_terms(member, place).value(output.node)

    def _unit_terms(self, units: Units, place: str) -> Terms:
        """What compiles expressions over the aggregates of a subquery that groups by the unit."""

        def leaf(node: exp.Expr) -> Expr | None:
            if isinstance(node, exp.AggFunc | exp.Filter):
                return self._per_unit(units, node, place)
            if isinstance(node, exp.Column):
                name = units.frame.scope.names[id(node)]
                if name.output is not None and name.output.node is not None:
                    return self._unit_terms(units, place).value(name.output.node)
                raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
            return None

        return Terms(leaf, Rule.PER_UNIT)

    def _per_unit(self, units: Units, node: exp.Expr, place: str) -> PerUnit:
        inner, frame, owner = units.inner, units.frame, units.owner
        conditions = [c for c in inner.conditions if owner in inner.longs(c)]
        call = node
        if isinstance(node, exp.Filter):
            call = node.this
            conditions += conjuncts(inner.terms(frame).condition(node.expression.this))
        if any(inner.longs(c) - {owner} for c in conditions):
            raise refused(Rule.PER_UNIT, "A value per person over several tables", node)
        if not isinstance(call, exp.Count | exp.Sum) or isinstance(call.this, exp.Distinct):
            allow = "There are COUNT(*), COUNT(column) and SUM(column)"
            raise refused(Rule.PER_UNIT, f"{call.key.upper()} per person", node, allow=allow)
        argument: Bound | None = None
        if not (isinstance(call, exp.Count) and counts_all(call)):
            found = inner.locate(frame, call.this)
            if found is None or inner.root(found[0]) is not owner:
                raise refused(Rule.PER_UNIT, "An argument that is no column of the long table", node)
            bound = inner.bound(found[0], found[1], "argument" if place == "argument" else "condition", node)
            assert isinstance(bound, Bound)
            argument = bound
            if isinstance(call, exp.Sum) and argument.kind not in NUMERIC:
                raise refused(Rule.PER_UNIT, "SUM of what is no number", node)
        function, kind = ("COUNT", "integer") if isinstance(call, exp.Count) else ("SUM", "number")
        where = conjunction(conditions)
        return PerUnit(function, owner.table.name, argument, where, kind, inner.lookups_of(owner))  # type: ignore[arg-type]

    def role(self, ref: Ref, column: Column) -> str:
        """The role of a column: that of a public table is the role of what it was looked up by."""
        seen = 0
        while not ref.table.protected and seen <= len(self.refs):
            entry = next((entry for entry in self.lookups if entry[2] is ref), None)
            if entry is None:
                return "public"
            ref, column = entry[0], next(c for c in entry[0].table.columns.values() if c.name == entry[1].column)
            seen += 1
        return column.role

    def bound(self, ref: Ref, column: Column, place: str, node: exp.Expr) -> Expr:
        """A column in a place, if its role permits it there."""
        role = self.role(ref, column)
        table = ref.table.name
        if role == "unit":
            allow = f"It may join tables, and be counted: COUNT(DISTINCT {column.name})"
            raise refused(Rule.UNIT, f"{column.name} names people", node, allow=allow, code=NOT_PERMITTED)
        if role == "hidden":
            allow = f"A role in tables.{table} of the policy would show it"
            raise refused(Rule.HIDDEN, f"{table}.{column.name} is hidden", node, allow=allow, code=NOT_PERMITTED)
        permitted = {
            "condition": ("artifact", "public"),
            "key": ("artifact", "public", "dimension"),
            "argument": ("artifact", "measure"),
            "count": ("artifact", "public", "measure", "dimension"),
        }[place]
        if role in permitted:
            return ref.bound(column)
        uses = {
            "measure": "a measure stands inside aggregates only",
            "dimension": "a dimension is a key of groups only",
            "coarsened": f"DATE_TRUNC('{self._coarsened(ref, column)}', {column.name}) is a key of groups",
        }
        told = f"{table}.{column.name} in this place: {uses[role]}"
        rule = {"condition": Rule.CONDITIONS, "key": Rule.KEYS}.get(place, Rule.ARGUMENTS)
        entry = {"condition": "artifacts", "key": "dimensions"}.get(place, "measures")
        allow = f"tables.{table}.{entry} in the policy would allow it"
        raise refused(rule, told, node, allow=allow, code=NOT_PERMITTED)

    def _coarsened(self, ref: Ref, column: Column) -> str:
        coarsened = {fold(name): grain for name, grain in ref.table.policy.coarsened.items()}
        return coarsened.get(fold(column.name), "")

    def key(self, frame: Frame, node: exp.Expr) -> tuple[Expr, str]:
        """Compile a key of groups: the expression and its role. Raises Refused."""
        node = node.unalias().unnest()
        found = self.locate(frame, node)
        if found is not None:
            role = self.role(*found)
            expr = self.bound(*found, "key", node)
            return expr, "public" if not found[0].table.protected else role
        name = frame.scope.names.get(id(node))
        if name is not None:  # an alias, or a subquery's column, that is more than a column
            inner = self.made_of(frame, node)
            if inner is not None:
                return self.key(*inner)
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return self._truncated(frame, node)
        if is_truncated_date(node):  # the same groups; the cast is made over the answer
            return self.key(frame, node.this)
        return self._computed_key(frame, node), "artifact"

    def _computed_key(self, frame: Frame, node: exp.Expr) -> Expr:
        expr = self.terms(frame).value(node)
        if _has_per_unit(expr) and not (isinstance(expr, Op) and expr.name == "case"):
            raise refused(
                Rule.PER_UNIT, "A value per person as a key of groups", node, allow="Use CASE with conditions on it"
            )
        return expr

    def made_of(self, frame: Frame, node: exp.Expr) -> tuple[Frame, exp.Expr] | None:
        """Where a name's expression stands."""
        name = frame.scope.names[id(node)]
        if name.scope is not frame.scope:
            return None
        output, where = name.output, frame
        if output is None and name.source is not None:
            member = frame.members[id(name.source)]
            if not isinstance(member, Frame):
                return None
            where = member
            output = next(o for o in member.scope.outputs if o.key == fold(name.column))
        while output is not None and output.node is None and output.source is not None:
            member = where.members[id(output.source)]
            if not isinstance(member, Frame):
                return None
            key, where = fold(output.column), member
            output = next(o for o in member.scope.outputs if o.key == key)
        return (where, output.node) if output is not None and output.node is not None else None

    def _truncated(self, frame: Frame, node: exp.Expr) -> tuple[Expr, str]:
        found = self.locate(frame, node.this)
        unit = node.args["unit"].name.lower()
        if found is None or unit not in TRUNCATIONS:
            allow = f"DATE_TRUNC takes {', '.join(TRUNCATIONS)} and a column"
            raise refused(Rule.KEYS, "DATE_TRUNC of something else", node, allow=allow)
        ref, column = found
        role = self.role(ref, column)
        if role == "coarsened":
            least = self._coarsened(ref, column)
            coarse = TRUNCATIONS.index(unit) >= TRUNCATIONS.index(least) and (unit == least or least != "week")
            if not coarse:
                raise refused(
                    Rule.KEYS,
                    f"{column.name} is shown by {least} or coarser, not by {unit}",
                    node,
                    allow=f"tables.{ref.table.name}.coarsened in the policy says so",
                    code=NOT_PERMITTED,
                )
            bound: Expr = ref.bound(column)
            role = "dimension"
        else:
            bound = self.bound(ref, column, "key", node)
        if bound.kind not in ("date", "timestamp"):
            raise refused(Rule.KEYS, "DATE_TRUNC of what is no date", node)
        return Op("date_trunc", (Literal(unit, "text"), bound), "timestamp"), role

    def _exists(self, frame: Frame, node: exp.Expr, place: str) -> Expr:
        """IN or EXISTS over the privacy unit, as a condition on the unit."""
        query = frame.scope.subqueries.get(id(node))
        if place != "condition" or not isinstance(query, Scope) or not query.raw:
            raise refused(Rule.SUBQUERIES, "A subquery in this place", node)
        if any(query.node.args.get(part) is not None for part in ("limit", "offset")) or (
            query.aggregated and not query.per_unit
        ):
            raise refused(Rule.SUBQUERIES, "A subquery that is more than conditions", node)
        inner = Rows(self.catalog, self.ids, (self, frame) if isinstance(node, exp.Exists) else None)
        if query.per_unit:
            made = inner._units(query)
            inner._check_connected()
            named = made.inner._located_output(made.frame, query.outputs[0]) if len(query.outputs) == 1 else None
        else:
            inner, inside = Rows.of(
                self.catalog, query, self.ids, (self, frame) if isinstance(node, exp.Exists) else None
            )
            named = inner._located_output(inside, query.outputs[0]) if len(query.outputs) == 1 else None
        if isinstance(node, exp.In):
            left = self.unit_of(frame, node.this)
            if left is None or named is None or named[1].role != "unit":
                raise refused(Rule.SUBQUERIES, "IN with a subquery that does not name the privacy unit", node)
            if left.optional:
                raise refused(Rule.SUBQUERIES, "IN over a table that is joined by LEFT JOIN", node)
            first = next(ref for ref in inner.refs if ref.table.protected)
            if not self.catalog.units_join(left.table, first.table):
                allow = "joins in the policy list the keys"
                raise refused(Rule.JOINS, "The tables are not declared to be joined", node, allow=allow)
        elif not inner.correlated:
            allow = "Name the person: WHERE inner.unit = outer.unit"
            raise refused(Rule.SUBQUERIES, "EXISTS that does not name the person", node, allow=allow)
        return inner.existence(node)

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

    # Questions

    def root(self, ref: Ref) -> Ref:
        """The protected mention that a mention is read beside: itself, or what looks it up."""
        for _ in self.refs:
            entry = next((entry for entry in self.lookups if entry[2] is ref), None)
            if entry is None:
                break
            ref = entry[0]
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
            Lookup(left, right, required)
            for at, left, other, right, required in self.lookups
            if self.root(at) is ref or self.root(other) is ref
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
        for at, left, _, right, needed in self.lookups:
            root = self.root(at)
            if root.long and root is not owner:
                continue
            entry = Lookup(stripped_bound(left), stripped_bound(right), needed)
            known = lookups.setdefault(right.table, entry)
            if (known.left, known.right) != (entry.left, entry.right):
                raise refused(Rule.JOINS, f"{right.table} is looked up by two columns", node)
            lookups[right.table] = Lookup(known.left, known.right, known.required or needed)
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


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a conjunction in a tree."""
    stack = [node]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.And):
            stack += [one.expression, one.this]
        else:
            yield one


def is_truncated_date(node: exp.Expr) -> bool:
    """Whether a node is DATE_TRUNC(...) cast to DATE, which no value can fail."""
    if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast) or node.to.this != exp.DType.DATE:
        return False
    return isinstance(node.this.unnest(), exp.TimestampTrunc | exp.DateTrunc)


def counts_all(call: exp.Count) -> bool:
    """Whether COUNT counts every row: COUNT(*) or COUNT of a constant."""
    if isinstance(call.this, exp.Star):
        return True
    value = constant(call.this)
    return value is not None and value.value is not None


def _own_bounds(expr: Expr) -> Iterator[Bound]:
    """Every column of an expression, those inside Exists and PerUnit, too: mentions tell them apart."""
    if isinstance(expr, Bound):
        yield expr
    elif isinstance(expr, Op):
        for arg in expr.args:
            yield from _own_bounds(arg)
    elif isinstance(expr, Exists | PerUnit):
        yield from _own_bounds(expr.condition)


def _has_per_unit(expr: Expr) -> bool:
    if isinstance(expr, Op):
        return any(_has_per_unit(arg) for arg in expr.args)
    return isinstance(expr, PerUnit)


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
