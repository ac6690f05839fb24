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
from kgather._guard.conditions import GRAIN, Terms, constant, cut
from kgather._guard.dates import is_coarse
from kgather._guard.names import Output, Scope, Source, group_keys
from kgather._guard.plan import (
    MEASURE,
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
from kgather._guard.told_types import Known, digits_of

_FIXED = 9  # digits after the point of a person's mean
Place = Choice["condition", "key", "argument", "count"]
"""Where a column stands."""


_PERMITTED: Mapping[Place, tuple[str, ...]] = {
    "condition": ("artifact", "public"),
    "key": ("artifact", "public", "dimension"),
    "argument": ("artifact", "measure"),
    "count": ("artifact", "public", "measure", "dimension", "coarsened"),
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
    """The query around a subquery. equal: what the subquery's only column equals, of an IN."""

    compiler: "Compiler"
    frame: Frame
    equal: "Located | None" = None


@dataclass(frozen=True)
class Subquery:
    """What the subquery of an IN or EXISTS reads. named: its only column, None where that is more than a column, or
    where there are several."""

    rows: Rows
    named: Located | None


ReadSubquery = Callable[[Scope, Around | None], Subquery]
ReadPublic = Callable[[Frame, exp.Expr, Scope], Expr | None]
ReadPerson = Callable[[Scope, Around], Units | None]


class Compiler:
    """Compiles the names and expressions of frames, over the rows that they share. subquery: reads the subquery of an
    IN or EXISTS, public: that of public
    tables, or of those that rows belong to, and person: one of
    a person's rows; joins.py hands them in, which is built on this module. around: the query around this one."""

    def __init__(
        self,
        rows: Rows,
        subquery: ReadSubquery,
        public: ReadPublic,
        person: ReadPerson,
        around: Around | None = None,
    ) -> None:
        self.rows = rows
        self.subquery = subquery
        self.public = public
        self.person = person
        self.around = around
        self._digits: Known = {}

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
            return found if found is not None and found.column.role in ("unit", "key") else None
        if name.output is not None:
            return self.located_output(frame, name.output)
        assert name.source is not None
        return self.located(frame, name.source, fold(name.column))

    def unit_of(self, frame: Frame, node: exp.Expr) -> Ref | None:
        """The mention whose privacy unit an expression is."""
        found = self.locate(frame, node)
        if found is None or found.column.role != "unit" or found.ref.youngest not in self.rows.refs:
            return None
        return found.ref.youngest

    def is_of_unit(self, frame: Frame, node: exp.Expr) -> bool:
        """Whether an expression is a column of which a person has one value: of a table with one row of each, or of
        what is looked up by such a column."""
        found = self.locate(frame, node)
        if found is None or found.column.role in ("unit", "key") or found.ref.per_unit:
            return False
        root = self.rows.root(found.ref)
        return root.table.protected and not root.long

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
            if column is None or (member.when is not None and column.role not in ("unit", "key")):
                return None
            return Located(member, column)
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if isinstance(member, Units):
            found = member.inner.located_output(inner, output)
            if found is not None and output.node is not None and member.inner.is_of_unit(inner, output.node):
                return found if _is_key_of(inner, member.inner, found) else None
            if found is None or found.column.role != "unit":
                return None
            return Located(member.ref, _unit(member.ref))
        return self.located_output(inner, output)

    def terms(self, frame: Frame, place: Place = "condition") -> Terms:
        """What compiles the expressions of a frame."""

        def leaf(node: exp.Expr) -> Expr | None:
            constant_ = frame.scope.constants.get(id(node))
            if constant_ is not None:
                if not isinstance(node, exp.In):
                    return constant_
                return Op("=", (self.terms(frame, place).value(node.this), constant_))
            if isinstance(node, exp.Column):
                return self._column(frame, node, place)
            if self._measured and (truncation(node) is not None or is_truncated_date(node)):
                return self._truncated_term(frame, node, place)
            if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
                of = self.locate(frame, node.this)
                if of is not None and of.column.role == "unit" and of.ref.when is not None:
                    return Op("not", (of.ref.when,))
                if of is not None and of.column.role == "unit" and self._is_there(of.ref):
                    return Literal(value=False, kind="boolean")  # rows without it are of nobody
            if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
                return self._exists(frame, node, place)
            query = frame.scope.subqueries.get(id(node)) or frame.scope.subqueries.get(id(node.parent))
            if self._measured and isinstance(query, Scope) and query.node is node and query.raw and query.aggregated:
                return self._of_person(frame, query, place)
            return None

        conditions = self.terms(frame) if place == "argument" else None
        digits = self.digits if self._measured and place != "argument" else None
        return Terms(leaf, _RULES[place], more=self._measured, conditions=conditions, digits=digits)

    def _is_there(self, ref: Ref) -> bool:
        """Whether each row has a row of a mention."""
        return self._measured and ref.youngest in self.rows.refs and not ref.youngest.optional and not ref.optional

    def digits(self, expr: Expr) -> int | None:
        """How many digits after the point a value has, None where it is no DECIMAL and no whole number."""
        return digits_of(expr, self.rows.catalog, self._digits)

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
            return self.terms(frame, place).operand(output.node)
        assert output.source is not None
        return self._member_column(frame, output.source, fold(output.column), place, node)

    def _member_column(self, frame: Frame, source: Source, key: str, place: Place, node: exp.Expr) -> Expr:
        member = frame.members[id(source)]
        if isinstance(member, Ref):
            column = member.table.columns[key]
            if (
                self._measured
                and place in ("condition", "key", "argument")
                and self.role(member, column) == "coarsened"
            ):
                cut_to = Literal(self._coarsened(member, column), "text")
                return _of_those(member.when, Op(GRAIN, (cut_to, member.bound(column)), column.kind))
            return _of_those(member.when, self.bound(member, column, place, node))
        inner = member.frame if isinstance(member, Units) else member
        output = next(output for output in inner.scope.outputs if output.key == key)
        if not isinstance(member, Units):
            return self._output(inner, output, place, node)
        found = self.located(frame, source, key)
        if found is not None and found.column.role != "unit":
            assert output.node is not None
            return _of_those(member.ref.when, member.inner.terms(inner, place).operand(output.node))
        if found is not None:
            return self.bound(member.ref, _unit(member.ref), place, node)
        if output.node is None:
            raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
        return _of_those(member.ref.when, self.unit_terms(member, place).operand(output.node))

    def _of_person(self, frame: Frame, query: Scope, place: Place) -> Expr | None:
        """A subquery that names the person of the query around: what that person has by their rows."""
        more = ("group", "having", "qualify", "limit", "offset", "distinct")
        if any(query.node.args.get(part) is not None for part in more) or len(query.outputs) != 1:
            return None
        units = self.person(query, Around(self, frame))
        if units is None:
            return None
        (output,) = query.outputs
        assert output.node is not None, "it is aggregated"
        return self.unit_terms(units, place).operand(output.node)

    def unit_terms(self, units: Units, place: Place) -> Terms:
        """What compiles expressions over the aggregates of a subquery that groups by the unit."""

        def leaf(node: exp.Expr) -> Expr | None:
            constant_ = units.frame.scope.constants.get(id(node))
            if constant_ is not None and not isinstance(node, exp.In):
                return constant_
            if isinstance(node, exp.AggFunc | exp.Filter):
                return self._per_unit(units, node, place)
            if self._measured and (truncation(node) is not None or is_truncated_date(node)):
                cut_ = node.this.unnest() if isinstance(node, exp.Cast) else node
                return self._cut(self.unit_terms(units, place), cut_)
            if isinstance(node, exp.Column):
                name = units.frame.scope.names[id(node)]
                known = units.inner.locate(units.frame, node)
                beside = known is not None and units.inner.is_of_unit(units.frame, node)
                if known is not None and beside and _is_key_of(units.frame, units.inner, known):
                    return units.inner.terms(units.frame, place).operand(node)
                if name.output is not None and name.output.node is not None:
                    return self.unit_terms(units, place).operand(name.output.node)
                raise refused(Rule.PER_UNIT, "A column beside the aggregates of a person", node)
            return None

        return Terms(leaf, Rule.PER_UNIT, more=self._measured)

    def _end(self, units: Units, call: exp.Expr, where: Expr, place: Place) -> Expr:
        """The least or greatest value among a person's rows: as the first month with one. Of a date that is shown by a
        grain it is shown so, too."""
        inner, owner = units.inner, units.owner
        stands: Place = "argument" if place == "argument" else "condition"
        of = inner.terms(units.frame, stands).operand(call.this)
        grain = of.args[0] if isinstance(of, Op) and of.name == GRAIN else None
        value = cut(of) if isinstance(of, Op) and grain is not None else of
        if (
            inner.rows.longs(value) != {owner}
            or not isinstance(value, Bound | Op)
            or value.kind in ("other", "boolean")
        ):
            raise refused(Rule.PER_UNIT, f"{call.key.upper()} of what is no column of the long table", call)
        self._check_beyond(units, value, call)
        function: Choice["MIN", "MAX"] = "MIN" if isinstance(call, exp.Min) else "MAX"
        made = PerUnit(function, owner.table.name, value, where, value.kind, inner.rows.lookups_of(owner))
        return made if grain is None else Op(GRAIN, (grain, made), made.kind)

    def _cut(self, terms: Terms, node: exp.Expr) -> Expr:
        """DATE_TRUNC of a date that is more than a column."""
        found = truncation(node)
        assert found is not None
        of, unit = terms.operand(found.of), found.unit
        if unit not in TRUNCATIONS or of.kind not in ("date", "timestamp"):
            allow = f"DATE_TRUNC takes {', '.join(TRUNCATIONS)} and a date"
            raise refused(Rule.KEYS, "DATE_TRUNC of something else", node, allow=allow)
        if isinstance(of, Op) and of.name == GRAIN:
            if not is_coarse(unit, str(of.args[0].value)):  # type: ignore[union-attr]
                raise terms.by_grain(of, found.of)
            of = of.args[1]
        return Op("date_trunc", (Literal(unit, "text"), of), "timestamp")

    def _per_unit(self, units: Units, node: exp.Expr, place: Place) -> Expr:
        inner, frame, owner = units.inner, units.frame, units.owner
        rows = inner.rows
        conditions = [*owner.on, *(c for c in rows.conditions if owner in rows.longs(c))]
        call = node
        if isinstance(node, exp.Filter):
            call = node.this
            conditions += conjuncts(inner.terms(frame).condition(node.expression.this))
            if isinstance(call, exp.Count) and counts_all(call) and owner.optional:
                allow = "Count a column of it"
                raise refused(Rule.PER_UNIT, "COUNT(*) over LEFT JOIN with FILTER", node, allow=allow)
        assert not any(rows.longs(c) - {owner} for c in conditions), "a subquery of units reads one long table"
        if isinstance(call, exp.Min | exp.Max) and self._measured and not call.expressions:
            return self._end(units, call, conjunction(conditions), place)
        if isinstance(call, exp.Avg) and self._measured and not isinstance(call.this, exp.Distinct):
            of = self._of_rows(units, call.this, place, node)
            where, looked_up = conjunction(conditions), rows.lookups_of(owner)
            parts = [
                PerUnit(function, owner.table.name, of, where, kind, looked_up)  # type: ignore[arg-type]
                for function, kind in (("SUM", "number"), ("COUNT", "integer"))
            ]
            # A person's sum is in fixed point: the mean of equal values is that value.
            return Op("round", (Op("/", tuple(parts), "number"), Literal(_FIXED, "integer")), "number")
        distinct = isinstance(call.this, exp.Distinct)
        if isinstance(call, exp.Count) and distinct and self._measured and len(call.this.expressions) == 1:
            value = self._told_apart(units, call.this.expressions[0], node)
            where, looked_up = conjunction(conditions), rows.lookups_of(owner)
            return PerUnit("COUNT_DISTINCT", owner.table.name, value, where, "integer", looked_up)
        if not isinstance(call, exp.Count | exp.Sum) or distinct:
            allow = (
                "There are COUNT(*), COUNT(column), COUNT(DISTINCT column), SUM(column), AVG(column), MIN(column) and "
                "MAX(column)"
            )
            if not self._measured:
                allow = "There are COUNT(*), COUNT(column) and SUM(column)"
            raise refused(Rule.PER_UNIT, f"{call.key.upper()} per person", node, allow=allow)
        argument: Bound | Op | None = None
        everything = isinstance(call, exp.Count) and counts_all(call)
        if not everything and not (isinstance(call, exp.Count) and self._names_rows(units, call.this)):
            argument = self._of_rows(units, call.this, place, node)
            if isinstance(call, exp.Sum) and argument.kind not in NUMERIC:
                raise refused(Rule.PER_UNIT, "SUM of what is no number", node)
        function, kind = ("COUNT", "integer") if isinstance(call, exp.Count) else ("SUM", "number")
        where = conjunction(conditions)
        made = PerUnit(function, owner.table.name, argument, where, kind, rows.lookups_of(owner))  # type: ignore[arg-type]
        if everything and owner.optional:  # LEFT JOIN has one row of a person who has none
            return Op("greatest", (made, Literal(1, "integer")), "integer")
        return made

    def _told_apart(self, units: Units, given: exp.Expr, node: exp.Expr) -> Bound | Op:
        """What a person's rows are told apart by, to count how many different values they have: what may be a
        condition."""
        inner, owner = units.inner, units.owner
        terms = inner.terms(units.frame)
        value = terms.operand(given)
        if isinstance(value, Op) and value.name == GRAIN:
            if value.kind != "date" or value.args[0] != Literal("day", "text"):
                raise terms.by_grain(value, given)
            value = cut(value)
        if inner.rows.longs(value) != {owner} or not isinstance(value, Bound | Op) or value.kind == "other":
            raise refused(Rule.PER_UNIT, "COUNT(DISTINCT) of what is no value of the long table's rows", node)
        self._check_beyond(units, value, node)
        return value

    @staticmethod
    def _check_beyond(units: Units, value: Expr, node: exp.Expr) -> None:
        """Refuse a value of a person's rows that is one, too, where LEFT JOIN finds none."""
        if units.owner.optional and units.inner.rows.beyond(value, units.owner) != Literal(None, "null"):
            allow = "Take the column itself, or use JOIN"
            raise refused(Rule.PER_UNIT, "A value that is not NULL where LEFT JOIN finds no row", node, allow=allow)

    def _names_rows(self, units: Units, node: exp.Expr) -> bool:
        """Whether a column names the rows that are counted, so that each of them has it."""
        found = units.inner.locate(units.frame, node)
        if found is None or found.ref.youngest is not units.owner:
            return False
        return found.column.role in ("key", "unit")

    def _of_rows(self, units: Units, given: exp.Expr, place: Place, node: exp.Expr) -> Bound | Op:
        """What is added up of a person's rows: a column, or what is computed from several."""
        inner, frame, owner = units.inner, units.frame, units.owner
        stands: Place = "argument" if place == "argument" else "condition"
        found = inner.locate(frame, given)
        if found is not None and inner.rows.root(found.ref) is owner:
            bound = inner.bound(*found, stands, node)
            assert isinstance(bound, Bound)
            return bound
        if found is None and self._measured:
            expr = inner.terms(frame, stands).value(given)
            if expr.kind == "boolean":  # 1 where it is true, 0 where it is false
                one, zero, nothing = Literal(1, "integer"), Literal(0, "integer"), Literal(None, "null")
                expr = Op("case", (expr, one, Op("not", (expr,)), zero, nothing), "integer")
            if isinstance(expr, Op) and expr.kind in NUMERIC and inner.rows.longs(expr) == {owner}:
                self._check_beyond(units, expr, node)
                return Op(MEASURE, (expr,), "number")
        reason = "An argument that is no column of the long table"
        if self._measured:
            reason = "An argument that is no number of the long table's rows"
        raise refused(Rule.PER_UNIT, reason, node)

    # Columns by their roles

    def role(self, ref: Ref, column: Column) -> str:
        """The role of a column: that of a public table is the role of what it was looked up by, of several columns the
        one that permits least."""
        entry = None if ref.table.protected else self.rows.lookup_of(ref)
        if entry is None:
            return column.role if ref.table.protected else "public"
        roles = {self.role(entry.by, by) for by in entry.by_columns}
        return next((role for role in ("dimension", "public", "artifact") if role in roles), "dimension")

    def bound(self, ref: Ref, column: Column, place: Place, node: exp.Expr) -> Expr:
        """A column in a place, if its role permits it there."""
        role = self.role(ref, column)
        table = ref.table.name
        if role == "unit":
            allow = f"It may join tables, and be counted: COUNT(DISTINCT {column.name})"
            raise refused(Rule.UNIT, f"{column.name} names people", node, allow=allow, code=NOT_PERMITTED)
        assert role != "hidden", "rules/hidden.py refuses every mention of such a column"
        if role == "key":
            told = f"{table}.{column.name} names single rows of people"
            allow = f"It may join {table} with what belongs to it, and be counted: COUNT({column.name})"
            raise refused(_RULES[place], told, node, allow=allow, code=NOT_PERMITTED)
        if role in _PERMITTED[place]:
            return ref.bound(column)
        uses = {
            "measure": "a measure is only added up, and is no condition and no key",
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
            if role == "coarsened" and found.column.kind == "date":
                return self._as_shown(found)  # of a moment one may have meant the time of day
            expr = self.bound(*found, "key", node)
            return GroupKey(expr, role if found.ref.table.protected else "public")
        name = frame.scope.names.get(id(node))
        if name is not None:  # an alias, or a subquery's column, that is more than a column
            inner = self.made_of(frame, node)
            if inner is not None:
                return self.key(*inner)
        if truncation(node) is not None:
            return self._truncated(frame, node)
        day = self._day_of_cast(frame, node)
        if day is not None:
            return day
        if is_truncated_date(node):  # the same groups; the cast is made over the answer
            return self.key(frame, node.this)
        return GroupKey(self._computed_key(frame, node), "artifact")

    def _as_shown(self, found: Located) -> GroupKey:
        """A date that is shown by a grain, cut to it."""
        grain = Literal(self._coarsened(*found), "text")
        return GroupKey(Op("date_trunc", (grain, found.ref.bound(found.column)), "timestamp"), "dimension")

    def _day_of_cast(self, frame: Frame, node: exp.Expr) -> GroupKey | None:
        """A moment that is shown by the day, cast to DATE; None of another expression. The cast is made over the
        answer."""
        if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast) or node.to.this != exp.DType.DATE:
            return None
        found = self.locate(frame, node.this)
        if found is None or self.role(*found) != "coarsened" or self._coarsened(*found) != "day":
            return None
        return self._as_shown(found)

    def is_shown_date(self, frame: Frame, node: exp.Expr) -> bool:
        """Whether a column is a DATE that is shown by a grain."""
        found = self.locate(frame, node)
        return found is not None and found.column.kind == "date" and self.role(*found) == "coarsened"

    @property
    def _measured(self) -> bool:
        return self.rows.catalog.policy.mode == "measured"

    def _truncated_term(self, frame: Frame, node: exp.Expr, place: Place) -> Expr | None:
        """DATE_TRUNC of a column inside an expression; as a date where it is cast to one."""
        inner = node.this.unnest() if isinstance(node, exp.Cast) else node
        cut_ = truncation(inner)
        assert cut_ is not None
        found = self.locate(frame, cut_.of)
        if found is None and constant(inner) is None:
            return self._cut(self.terms(frame, place), inner)
        if found is None or place not in ("condition", "key"):
            return None
        if self.role(*found) != "coarsened":
            self.bound(*found, place, node)
        return self._truncated(frame, inner).expr

    def _computed_key(self, frame: Frame, node: exp.Expr) -> Expr:
        expr = self.terms(frame, "key" if self._measured else "condition").value(node)
        if not self._measured and has_per_unit(expr) and not (isinstance(expr, Op) and expr.name == "case"):
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
        cut_ = truncation(node)
        assert cut_ is not None
        found, unit = self.locate(frame, cut_.of), cut_.unit
        if found is None and self._measured:
            return GroupKey(self._cut(self.terms(frame, "key"), node), "artifact")
        if found is None or unit not in TRUNCATIONS:
            allow = f"DATE_TRUNC takes {', '.join(TRUNCATIONS)} and a column"
            raise refused(Rule.KEYS, "DATE_TRUNC of something else", node, allow=allow)
        ref, column = found
        role = self.role(ref, column)
        if role == "coarsened":
            least = self._coarsened(ref, column)
            if not is_coarse(unit, least):
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

    def _has_child_of(self, frame: Frame, query: Scope) -> bool:
        """Whether a query reads a table whose rows belong to those of a subquery's only table."""
        parents = [one.table.parent for one in frame.members.values() if isinstance(one, Ref)]
        tables = [source.table for source in query.sources]
        return len(tables) == 1 and any(of is not None and of.table is tables[0] for of in parents)

    def _exists(self, frame: Frame, node: exp.Expr, place: Place) -> Expr:
        """IN or EXISTS over the privacy unit, as a condition on the unit."""
        query = frame.scope.subqueries.get(id(node))
        if self._measured and isinstance(query, Scope) and not query.protected and place in ("condition", "key"):
            found = self.public(frame, node, query)
            if found is not None:
                return found
        if place != "condition" or not isinstance(query, Scope) or not query.raw:
            raise refused(Rule.SUBQUERIES, "A subquery in this place", node)
        if any(query.node.args.get(part) is not None for part in ("limit", "offset")) or (
            query.aggregated and not query.per_unit
        ):
            raise refused(Rule.SUBQUERIES, "A subquery that is more than conditions", node)
        left_ = self.locate(frame, node.this) if isinstance(node, exp.In) else None
        if self._measured and isinstance(node, exp.Exists) and self._has_child_of(frame, query):
            found = self.public(frame, node, query)
            if found is not None:
                return found
        if self._measured and left_ is not None and left_.column.role == "key":
            of = left_.ref.table.parent
            if of is not None and [source.table for source in query.sources] == [of.table]:
                found = self.public(frame, node, query)
                if found is not None:
                    return found
            inner = self.subquery(query, Around(self, frame, left_))
            if inner.rows.by:
                return inner.rows.existence(node)
        inner = self.subquery(query, Around(self, frame) if isinstance(node, exp.Exists) else None)
        if isinstance(node, exp.In):
            left = self.unit_of(frame, node.this)
            if left is None or inner.named is None or inner.named.column.role != "unit":
                raise refused(Rule.SUBQUERIES, "IN with a subquery that does not name the privacy unit", node)
            if left.optional or inner.named.ref.optional or inner.named.ref.youngest.optional:
                raise refused(Rule.SUBQUERIES, "IN over a table that is joined by LEFT JOIN", node)
            first = next(ref for ref in inner.rows.refs if ref.table.protected)
            if not self.rows.catalog.units_join(left.table, first.table):
                allow = "joins in the policy list the keys"
                raise refused(Rule.JOINS, "The tables are not declared to be joined", node, allow=allow)
        elif not inner.rows.correlated:
            allow = "Name the person: WHERE inner.unit = outer.unit"
            raise refused(Rule.SUBQUERIES, "EXISTS that does not name the person", node, allow=allow)
        return inner.rows.existence(node)


def _is_key_of(frame: Frame, compiler: Compiler, column: Located) -> bool:
    """Whether a subquery that groups by people groups by a column, too."""
    keys = [compiler.locate(frame, key) for key in group_keys(frame.scope)]
    return any(key is not None and key.ref is column.ref and key.column == column.column for key in keys)


def _of_those(when: Expr | None, value: Expr) -> Expr:
    """A value that others than those whom a condition chooses do not have."""
    if when is None:
        return value
    if isinstance(value, Op) and value.name == GRAIN:
        return Op(GRAIN, (value.args[0], _of_those(when, value.args[1])), value.kind)
    return Op("case", (when, value, Literal(None, "null")), value.kind)


def _unit(ref: Ref) -> Column:
    return ref.table.unit_column


def is_truncated_date(node: exp.Expr) -> bool:
    """Whether a node is DATE_TRUNC(...) cast to DATE, which no value can fail."""
    if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast) or node.to.this != exp.DType.DATE:
        return False
    return truncation(node.this.unnest()) is not None


class Truncation(NamedTuple):
    """A date that is cut to a unit."""

    of: exp.Expr
    unit: str


_BUCKETS: Mapping[tuple[int, str], str] = {
    (1, "day"): "day",
    (7, "day"): "week",
    (1, "week"): "week",
    (1, "month"): "month",
    (3, "month"): "quarter",
    (1, "quarter"): "quarter",
    (12, "month"): "year",
    (1, "year"): "year",
    (10, "year"): "decade",
}
"""Widths of TIME_BUCKET that are units of DATE_TRUNC: its weeks begin on Mondays, too."""


def truncation(node: exp.Expr) -> Truncation | None:
    """What DATE_TRUNC cuts, and to what; also TIME_BUCKET by a unit of the calendar. None of another expression."""
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        return Truncation(node.this, node.args["unit"].name.lower())
    if not isinstance(node, exp.DateBin) or any(node.args.get(part) for part in node.args.keys() - node.required_args):
        return None
    width = node.this.unnest()
    many, unit = (width.this, width.args.get("unit")) if isinstance(width, exp.Interval) else (None, None)
    if not isinstance(many, exp.Literal) or not str(many.this).isdecimal() or unit is None:
        return None
    part = _BUCKETS.get((int(str(many.this)[:9]), unit.name.lower().removesuffix("s")))
    return Truncation(node.expression, part) if part is not None else None


def counts_all(call: exp.Count) -> bool:
    """Whether COUNT counts every row: COUNT(*) or COUNT of a constant."""
    if isinstance(call.this, exp.Star):
        return True
    value = constant(call.this)
    return value is not None and value.value is not None


def has_per_unit(expr: Expr) -> bool:
    """Whether an expression reads a value that a person has by their rows."""
    if isinstance(expr, Op):
        return any(has_per_unit(arg) for arg in expr.args)
    return isinstance(expr, PerUnit)
