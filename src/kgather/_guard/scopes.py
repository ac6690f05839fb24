"""What the names and expressions of a FROM over rows of people stand for.

Subqueries and CTEs that filter, project and rename are inlined: a column of theirs stands for what it is made of.
Subqueries that group by the privacy unit become values that a unit has. Where a column may stand, its role says.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.catalog import Column, TableColumn
from kgather._guard.conditions import Terms, constant
from kgather._guard.names import Output, Scope, Source
from kgather._guard.plan import (
    NUMERIC,
    Bound,
    Expr,
    Literal,
    Op,
    PerUnit,
    conjunction,
    conjuncts,
)
from kgather._guard.policy import TRUNCATIONS, fold
from kgather._guard.questions import Ref, Rows
from kgather._guard.refused import NOT_PERMITTED, Rule, refused

Place = Choice["condition", "key", "argument", "count"]
"""Where a column stands."""


_PERMITTED: Mapping[Place, tuple[str, ...]] = {
    "condition": ("artifact", "public"),
    "key": ("artifact", "public", "dimension"),
    "argument": ("artifact", "measure"),
    "count": ("artifact", "public", "measure", "dimension"),
}
"""The roles that may stand in a place."""
_RULES: Mapping[Place, Rule] = {
    "condition": Rule.CONDITIONS,
    "key": Rule.KEYS,
    "argument": Rule.ARGUMENTS,
    "count": Rule.ARGUMENTS,
}
_ENTRIES: Mapping[Place, str] = {
    "condition": "artifacts",
    "key": "dimensions",
    "argument": "measures",
    "count": "measures",
}
"""The entry of a table in the policy that would let a column stand there."""


class Located(NamedTuple):
    """The column of a mention."""

    ref: Ref
    column: Column

    @property
    def table_column(self) -> TableColumn:
        """The column of the table, whichever mention of it."""
        return TableColumn(self.ref.table, self.column)


class GroupKey(NamedTuple):
    """A key of groups. role: of the column it is, artifact where it is more than a column."""

    expr: Expr
    role: str


@dataclass(eq=False)
class Frame:
    """A SELECT whose rows are inlined, with what each source became."""

    scope: Scope
    members: dict[int, "Ref | Frame | Units"] = field(default_factory=dict)


@dataclass(eq=False)
class Units:
    """A subquery that groups by the privacy unit: its frame, the mention that stands for its units, and the long table
    (`owner`) among its own mentions whose rows it counts."""

    frame: Frame
    ref: Ref
    inner: "Compiler"
    owner: Ref


class Written(NamedTuple):
    """An expression of the statement, and the frame whose names are in it."""

    frame: Frame
    node: exp.Expr


class Around(NamedTuple):
    """The query around a subquery."""

    compiler: "Compiler"
    frame: Frame


@dataclass(frozen=True)
class Subquery:
    """What the subquery of an IN or EXISTS reads. named: its only column, None where that is more than a column, or
    where there are several."""

    rows: Rows
    named: Located | None


ReadSubquery = Callable[[Scope, Around | None], Subquery]


class Compiler:
    """Compiles the names and expressions of frames, over the rows that they share. subquery: reads the subquery of an
    IN or EXISTS; joins.py hands it in, which is built on this module. around: the query around this one."""

    def __init__(self, rows: Rows, subquery: ReadSubquery, around: Around | None = None) -> None:
        self.rows = rows
        self.subquery = subquery
        self.around = around

    # Names

    def locate(self, frame: Frame, node: exp.Expr) -> Located | None:
        """The mention and the column that an expression is, None if it is more than a column."""
        node = node.unalias().unnest()
        name = frame.scope.names.get(id(node))
        if name is None:
            return None
        if name.scope is not frame.scope:
            if self.around is None or name.source is None or name.scope is not self.around.frame.scope:
                return None
            found = self.around.compiler.located(self.around.frame, name.source, fold(name.column))
            return found if found is not None and found.column.role == "unit" else None
        if name.output is not None:
            return self.located_output(frame, name.output)
        assert name.source is not None
        return self.located(frame, name.source, fold(name.column))

    def unit_of(self, frame: Frame, node: exp.Expr) -> Ref | None:
        """The mention whose privacy unit an expression is."""
        found = self.locate(frame, node)
        if found is None or found.column.role != "unit" or found.ref not in self.rows.refs:
            return None
        return found.ref

    def located_output(self, frame: Frame, output: Output) -> Located | None:
        """The mention and the column that a column of a frame is, None if it is more."""
        if output.node is not None:
            return self.locate(frame, output.node)
        assert output.source is not None
        return self.located(frame, output.source, fold(output.column))

    def located(self, frame: Frame, source: Source, key: str) -> Located | None:
        """The mention and the column that a source's column is, None if it is more."""
        member = frame.members[id(source)]
        if isinstance(member, Ref):
            column = member.table.columns.get(key)
            return Located(member, column) if column is not None else None
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if isinstance(member, Units):
            found = member.inner.located_output(inner, output)
            if found is None or found.column.role != "unit":
                return None
            return Located(member.ref, _unit(member.ref))
        return self.located_output(inner, output)

    def terms(self, frame: Frame, place: Place = "condition") -> Terms:
        """What compiles the expressions of a frame."""

        def leaf(node: exp.Expr) -> Expr | None:
            if isinstance(node, exp.Column):
                return self._column(frame, node, place)
            if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
                return self._exists(frame, node, place)
            return None

        return Terms(leaf, _RULES[place])

    def _column(self, frame: Frame, node: exp.Column, place: Place) -> Expr:
        name = frame.scope.names[id(node)]
        if name.scope is not frame.scope:
            allow = "It may name the person of the query around: inner.unit = outer.unit"
            raise refused(Rule.SUBQUERIES, "A subquery reads columns of the query around it", node, allow=allow)
        if name.output is not None:
            return self._output(frame, name.output, place, node)
        assert name.source is not None
        return self._member_column(frame, name.source, fold(name.column), place, node)

    def _output(self, frame: Frame, output: Output, place: Place, node: exp.Expr) -> Expr:
        if output.node is not None:
            return self.terms(frame, place).value(output.node)
        assert output.source is not None
        return self._member_column(frame, output.source, fold(output.column), place, node)

    def _member_column(self, frame: Frame, source: Source, key: str, place: Place, node: exp.Expr) -> Expr:
        member = frame.members[id(source)]
        if isinstance(member, Ref):
            return self.bound(member, member.table.columns[key], place, node)
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if not isinstance(member, Units):
            return self._output(inner, output, place, node)
        if self.located(frame, source, key) is not None:
            return self.bound(member.ref, _unit(member.ref), place, node)
        if output.node is None:
            raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
        return self.unit_terms(member, place).value(output.node)

    def unit_terms(self, units: Units, place: Place) -> Terms:
        """What compiles expressions over the aggregates of a subquery that groups by the unit."""

        def leaf(node: exp.Expr) -> Expr | None:
            if isinstance(node, exp.AggFunc | exp.Filter):
                return self._per_unit(units, node, place)
            if isinstance(node, exp.Column):
                name = units.frame.scope.names[id(node)]
                if name.output is not None and name.output.node is not None:
                    return self.unit_terms(units, place).value(name.output.node)
                raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
            return None

        return Terms(leaf, Rule.PER_UNIT)

    def _per_unit(self, units: Units, node: exp.Expr, place: Place) -> PerUnit:
        inner, frame, owner = units.inner, units.frame, units.owner
        rows = inner.rows
        conditions = [c for c in rows.conditions if owner in rows.longs(c)]
        call = node
        if isinstance(node, exp.Filter):
            call = node.this
            conditions += conjuncts(inner.terms(frame).condition(node.expression.this))
        assert not any(rows.longs(c) - {owner} for c in conditions), "a subquery of units reads one long table"
        if not isinstance(call, exp.Count | exp.Sum) or isinstance(call.this, exp.Distinct):
            allow = "There are COUNT(*), COUNT(column) and SUM(column)"
            raise refused(Rule.PER_UNIT, f"{call.key.upper()} per person", node, allow=allow)
        argument: Bound | None = None
        if not (isinstance(call, exp.Count) and counts_all(call)):
            found = inner.locate(frame, call.this)
            if found is None or rows.root(found.ref) is not owner:
                raise refused(Rule.PER_UNIT, "An argument that is no column of the long table", node)
            bound = inner.bound(*found, "argument" if place == "argument" else "condition", node)
            assert isinstance(bound, Bound)
            argument = bound
            if isinstance(call, exp.Sum) and argument.kind not in NUMERIC:
                raise refused(Rule.PER_UNIT, "SUM of what is no number", node)
        function, kind = ("COUNT", "integer") if isinstance(call, exp.Count) else ("SUM", "number")
        where = conjunction(conditions)
        return PerUnit(function, owner.table.name, argument, where, kind, rows.lookups_of(owner))  # type: ignore[arg-type]

    # Columns by their roles

    def role(self, ref: Ref, column: Column) -> str:
        """The role of a column: that of a public table is the role of what it was looked up by."""
        seen = 0
        while not ref.table.protected and seen <= len(self.rows.refs):
            entry = self.rows.lookup_of(ref)
            if entry is None:
                return "public"
            ref, column = entry.by, next(c for c in entry.by.table.columns.values() if c.name == entry.left.column)
            seen += 1
        return column.role

    def bound(self, ref: Ref, column: Column, place: Place, node: exp.Expr) -> Expr:
        """A column in a place, if its role permits it there."""
        role = self.role(ref, column)
        table = ref.table.name
        if role == "unit":
            allow = f"It may join tables, and be counted: COUNT(DISTINCT {column.name})"
            raise refused(Rule.UNIT, f"{column.name} names people", node, allow=allow, code=NOT_PERMITTED)
        assert role != "hidden", "rules/hidden.py refuses every mention of such a column"
        if role in _PERMITTED[place]:
            return ref.bound(column)
        uses = {
            "measure": "a measure stands inside aggregates only",
            "dimension": "a dimension is a key of groups only",
            "coarsened": f"DATE_TRUNC('{self._coarsened(ref, column)}', {column.name}) is a key of groups",
        }
        told = f"{table}.{column.name} in this place: {uses[role]}"
        allow = f"tables.{table}.{_ENTRIES[place]} in the policy would allow it"
        raise refused(_RULES[place], told, node, allow=allow, code=NOT_PERMITTED)

    def _coarsened(self, ref: Ref, column: Column) -> str:
        coarsened = {fold(name): grain for name, grain in ref.table.policy.coarsened.items()}
        return coarsened.get(fold(column.name), "")

    def key(self, frame: Frame, node: exp.Expr) -> GroupKey:
        """Compile a key of groups: the expression and its role. Raises Refused."""
        node = node.unalias().unnest()
        found = self.locate(frame, node)
        if found is not None:
            role = self.role(*found)
            expr = self.bound(*found, "key", node)
            return GroupKey(expr, role if found.ref.table.protected else "public")
        name = frame.scope.names.get(id(node))
        if name is not None:  # an alias, or a subquery's column, that is more than a column
            inner = self.made_of(frame, node)
            if inner is not None:
                return self.key(*inner)
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return self._truncated(frame, node)
        if is_truncated_date(node):  # the same groups; the cast is made over the answer
            return self.key(frame, node.this)
        return GroupKey(self._computed_key(frame, node), "artifact")

    def _computed_key(self, frame: Frame, node: exp.Expr) -> Expr:
        expr = self.terms(frame).value(node)
        if _has_per_unit(expr) and not (isinstance(expr, Op) and expr.name == "case"):
            raise refused(
                Rule.PER_UNIT, "A value per person as a key of groups", node, allow="Use CASE with conditions on it"
            )
        return expr

    def made_of(self, frame: Frame, node: exp.Expr) -> Written | None:
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
        return Written(where, output.node) if output is not None and output.node is not None else None

    def _truncated(self, frame: Frame, node: exp.Expr) -> GroupKey:
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
        return GroupKey(Op("date_trunc", (Literal(unit, "text"), bound), "timestamp"), role)

    def _exists(self, frame: Frame, node: exp.Expr, place: Place) -> Expr:
        """IN or EXISTS over the privacy unit, as a condition on the unit."""
        query = frame.scope.subqueries.get(id(node))
        if place != "condition" or not isinstance(query, Scope) or not query.raw:
            raise refused(Rule.SUBQUERIES, "A subquery in this place", node)
        if any(query.node.args.get(part) is not None for part in ("limit", "offset")) or (
            query.aggregated and not query.per_unit
        ):
            raise refused(Rule.SUBQUERIES, "A subquery that is more than conditions", node)
        inner = self.subquery(query, Around(self, frame) if isinstance(node, exp.Exists) else None)
        if isinstance(node, exp.In):
            left = self.unit_of(frame, node.this)
            if left is None or inner.named is None or inner.named.column.role != "unit":
                raise refused(Rule.SUBQUERIES, "IN with a subquery that does not name the privacy unit", node)
            if left.optional:
                raise refused(Rule.SUBQUERIES, "IN over a table that is joined by LEFT JOIN", node)
            first = next(ref for ref in inner.rows.refs if ref.table.protected)
            if not self.rows.catalog.units_join(left.table, first.table):
                allow = "joins in the policy list the keys"
                raise refused(Rule.JOINS, "The tables are not declared to be joined", node, allow=allow)
        elif not inner.rows.correlated:
            allow = "Name the person: WHERE inner.unit = outer.unit"
            raise refused(Rule.SUBQUERIES, "EXISTS that does not name the person", node, allow=allow)
        return inner.rows.existence(node)


def _unit(ref: Ref) -> Column:
    return ref.table.columns[fold(ref.table.unit)]


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


def _has_per_unit(expr: Expr) -> bool:
    if isinstance(expr, Op):
        return any(_has_per_unit(arg) for arg in expr.args)
    return isinstance(expr, PerUnit)
