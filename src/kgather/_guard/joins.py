"""Reads the joins of a FROM over rows of people: its tables, what joins them, and the conditions that are left.

The tables of inlined subqueries and CTEs become tables of the query around them, and their conditions are added. Only
declared joins are taken; tables that no join connects are refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from kgather._guard.allowed import JOINS, JoinKind
from kgather._guard.catalog import Catalog, Column, TableInfo
from kgather._guard.names import Scope, Source, group_keys
from kgather._guard.plan import Bound, Exists, Expr, Literal, Op, conjunction, conjuncts
from kgather._guard.policy import fold
from kgather._guard.questions import LookupJoin, Ref, Rows, UnitJoin, stripped
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
    """The two sides of an equality of columns. node: where it is written."""

    left: Located
    right: Located
    node: exp.Expr

    @property
    def of_units(self) -> bool:
        """Whether both are privacy units."""
        return self.left.column.role == "unit" and self.right.column.role == "unit"


@dataclass
class _Equalities:
    """The equalities of one join that are left to be taken."""

    pairs: list[_Pair]
    join: exp.Join
    optional: bool


def _all_of(
    keys: Sequence[tuple[str, str]], between: Mapping[int, tuple[Column, Column]], pairs: Sequence[_Pair]
) -> list[_Pair]:
    """The equalities that say all keys are equal; none where one is missing."""
    found = []
    for one, other in keys:
        wanted = (fold(one), fold(other))
        of = next((p for p in pairs if id(p) in between and _names(between[id(p)]) == wanted), None)
        if of is None:
            return []
        found.append(of)
    return found


def _names(columns: tuple[Column, Column]) -> tuple[str, str]:
    return fold(columns[0].name), fold(columns[1].name)


def _between(pairs: Sequence[_Pair], a: Ref, b: Ref) -> dict[int, tuple[Column, Column]]:
    """The columns of two mentions that are equal, by the equality that says so."""
    found = {}
    for pair in pairs:
        for one, other in ((pair.left, pair.right), (pair.right, pair.left)):
            if one.ref is a and other.ref is b:
                found[id(pair)] = (one.column, other.column)
    return found


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
        self.compiler = Compiler(self.rows, self._subquery, self._public, self._person, around)
        self._known_public: dict[int, Expr] = {}
        self._pending: list[Written] = []
        """Conditions not yet compiled: some may be joins."""
        self._optional_joins: list[_OptionalJoin] = []
        self._equalities: list[_Equalities] = []
        """Those that have to join: of USING and LEFT JOIN."""
        self._on: list[tuple[Ref, Written]] = []
        """What rows of LEFT JOIN have to meet beside the key."""
        self._optional_units: list[Ref] = []
        """Of subqueries that group by people and are joined by LEFT JOIN."""

    def select(self, scope: Scope) -> Frame:
        """Read a SELECT whose rows are those of its FROM."""
        frame = self._frame(scope)
        if self.around is not None and self.around.equal is not None and len(scope.outputs) == 1:
            own = self.compiler.located_output(frame, scope.outputs[0])
            if own is not None:
                self._take_around([_Pair(self.around.equal, own, scope.node)], optional=False)
        self._join()
        for ref in self._optional_units:
            if not ref.optional and ref.when is not None:  # another join takes only who is in it
                self.rows.conditions.append(ref.when)
        self._compile_on()
        for where, node in self._pending:
            anti = self._of_nobody(where, node)
            if anti is not None:
                self.rows.conditions.append(anti)
                continue
            conditions = [*conjuncts(self.compiler.terms(where).condition(node))]
            if any(ref.optional for condition in conditions for ref in self.rows.longs(condition)):
                allow = "Put it into ON, or use JOIN: who has no such row is not in the answer then"
                raise refused(Rule.JOINS, "A condition on a table joined by LEFT JOIN", node, allow=allow)
            self.rows.conditions += conditions
        self._pending = []
        self._check_connected()
        return frame

    def _compile_on(self) -> None:
        """Compile what rows of LEFT JOIN have to meet beside the key."""
        single: dict[Ref, list[Expr]] = {}
        for ref, written in self._on:
            for condition in conjuncts(self.compiler.terms(written.frame).condition(written.node)):
                if not ref.long:
                    single.setdefault(ref, []).append(condition)
                    continue
                if self.rows.longs(condition) != {ref}:
                    allow = "Write ON left.key = right.key along a declared join, and conditions on the right side"
                    raise refused(Rule.JOINS, "LEFT JOIN on more than a declared key", written.node, allow=allow)
                (ref.on if ref.optional else self.rows.conditions).append(condition)  # another join takes only these
        for ref, conditions in single.items():
            self._choose(ref, Op("is true", (conjunction(conditions),)))

    def _choose(self, ref: Ref, when: Expr) -> None:
        """Say which rows have a row of a mention, and of what is looked up by it. Where a join leaves out the others it
        is a condition."""
        if not ref.optional:
            self.rows.conditions.append(when)
            return
        ref.when = when if ref.when is None else Op("and", (ref.when, when))
        for entry in self.rows.lookups:
            if entry.by is ref:
                self._choose(entry.found, when)

    def _of_nobody(self, frame: Frame, node: exp.Expr) -> Expr | None:
        """That a person has no row in a table joined by LEFT JOIN: the key of one is NULL."""
        node = node.unnest()
        if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null):
            return None
        found = self.compiler.locate(frame, node.this)
        if found is None or found.column.role not in ("unit", "key") or not (found.ref.long and found.ref.optional):
            return None
        return self.rows.without(found.ref)

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

    def _public(self, frame: Frame, node: exp.Expr, query: Scope) -> Expr | None:
        """IN or EXISTS over public tables, as a condition on the row that is looked up in them along declared keys; or
        IN over the rows that others belong to, as a condition on the one that a row belongs to. None of others."""
        if id(node) not in self._known_public:
            kept = len(self.rows.refs), len(self.rows.lookups)
            made = (self._of_parent if query.protected else self._looked_up)(frame, node, query)
            if made is None:
                del self.rows.refs[kept[0] :], self.rows.lookups[kept[1] :]
                return None
            self._known_public[id(node)] = made
        return self._known_public[id(node)]

    def _person(self, query: Scope, around: Around) -> Units | None:
        """Read a subquery of the rows of the person of the query around."""
        joined = read_joins(self.catalog, query, self.ids, around)
        rows = joined.rows
        people = [ref for ref in rows.refs if ref.table.protected]
        if len(people) != 1 or not people[0].long or not rows.correlated or rows.by:
            return None
        return Units(joined.frame, people[0], joined.compiler, people[0])

    def _of_parent(self, frame: Frame, node: exp.Expr, query: Scope) -> Expr | None:
        parts = ("group", "having", "qualify", "limit", "offset")
        if len(query.sources) != 1 or any(query.node.args.get(part) is not None for part in parts):
            return None
        where = query.node.args.get("where")
        written = [*_parts(where.this)] if where is not None else []
        for child in self._children(frame, node, query):
            of = child.table.parent
            assert of is not None
            inner, ref = Frame(query), Ref(next(self.ids), of.table)
            ref.child = child
            inner.members[id(query.sources[0])] = ref
            pairs = self._pairs_with(frame, node, inner, written)
            found = _all_of(of.keys, _between(pairs, child, ref), pairs)
            if found:
                left = [part for part in written if all(part is not pair.node for pair in found)]
                terms = self.compiler.terms(inner)
                return Op("is true", (conjunction([terms.condition(part) for part in left]),))
        return None

    def _children(self, frame: Frame, node: exp.Expr, query: Scope) -> list[Ref]:
        """The mentions of a query whose rows belong to those of the table of a subquery."""
        left = self.compiler.locate(frame, node.this) if isinstance(node, exp.In) else None
        mentions: list[Ref | Frame | Units] = [*frame.members.values()] if left is None else [left.ref]
        table = query.sources[0].table
        return [
            one
            for one in mentions
            if isinstance(one, Ref) and one.table.parent is not None and one.table.parent.table is table
        ]

    def _pairs_with(self, frame: Frame, node: exp.Expr, inner: Frame, written: Sequence[exp.Expr]) -> list[_Pair]:
        """The equalities between columns of a query and of a subquery in its conditions."""

        def located(one: exp.Expr) -> Located | None:
            name = inner.scope.names.get(id(one.unnest()))
            if name is None or name.source is None or name.scope is inner.scope:
                return self.compiler.locate(inner, one)
            return self.compiler.located(frame, name.source, fold(name.column)) if name.scope is frame.scope else None

        pairs = [
            _Pair(left, right, part)
            for part in written
            if isinstance(part, exp.EQ)
            and (left := located(part.this)) is not None
            and (right := located(part.expression)) is not None
        ]
        of = self.compiler.locate(frame, node.this) if isinstance(node, exp.In) else None
        if of is not None:
            outputs = inner.scope.outputs
            named = self.compiler.located_output(inner, outputs[0]) if len(outputs) == 1 else None
            pairs += [_Pair(of, named, node)] if named is not None else []
        return pairs

    def _looked_up(self, frame: Frame, node: exp.Expr, query: Scope) -> Expr | None:
        parts = ("limit", "offset", "qualify")
        joined = all(JoinKind.of(source.join) in (JoinKind(), JoinKind(kind="INNER")) for source in query.sources)
        plain = all(source.table is not None and not source.merged for source in query.sources)
        if query.aggregated or not (joined and plain) or any(query.node.args.get(part) is not None for part in parts):
            return None
        inner = Frame(query)
        refs = []
        for source in query.sources:
            assert source.table is not None
            refs.append(self._add(source.table, optional=True))
            inner.members[id(source)] = refs[-1]

        ons = [source.join.args.get("on") for source in query.sources if source.join is not None]
        where = query.node.args.get("where")
        written = [part for on in ons if on is not None for part in _parts(on)]
        written += [*_parts(where.this)] if where is not None else []
        pairs = self._pairs_with(frame, node, inner, written)
        of = self.compiler.locate(frame, node.this) if isinstance(node, exp.In) else None
        taken: set[int] = set()
        for _ in refs:
            left_over = [pair for pair in pairs if id(pair.node) not in taken]
            taken |= {id(pair.node) for pair in self._take_lookups(left_over, optional=True)}
        ways = [way for ref in refs if (way := self.rows.lookup_of(ref)) is not None]
        if len(ways) < len(refs) or (isinstance(node, exp.In) and id(node) not in taken):
            return None
        for way in ways:  # what looks up is a condition on people
            for column in way.by_columns if way.by not in refs else ():
                self.compiler.bound(way.by, column, "condition", node)
        conditions = [self.compiler.terms(inner).condition(part) for part in written if id(part) not in taken]
        there = [
            Op("not", (Op("is null", (way.pairs[0][1],)),))
            for way in ways
            if not any(_rejects(one, way.found) for one in conditions)
        ]
        found = Op("is true", (conjunction([*there, *conditions]),))
        if of is None or _has_to_hold(node):
            return found
        missing = Op("is null", (of.ref.bound(of.column),))  # of a missing value it is not known
        return Op("case", (missing, Literal(None, "null"), found), "boolean")

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
            self._using(frame, source)
        where = scope.node.args.get("where")
        if where is not None:
            self._pending += (Written(frame, part) for part in _parts(where.this))
        return frame

    def _member(self, source: Source, left: bool) -> "Ref | Frame | Units":
        if source.table is not None:
            long = source.table.protected and source.table.grain == "rows"
            if left and long and self.catalog.policy.mode != "measured":
                allow = "LEFT JOIN takes a table with one row a person, or a public one, on its right"
                raise refused(Rule.JOINS, "LEFT JOIN that could repeat rows", source.node, allow=allow)
            return self._add(source.table, left)
        query = source.query
        if not isinstance(query, Scope):
            raise refused(Rule.JOINS, "People are joined with a set operation", source.node)
        if left and self.catalog.policy.mode != "measured":
            raise refused(Rule.JOINS, "LEFT JOIN of a subquery with people", source.node, allow="Join the table itself")
        if query.per_unit:
            return self._units(query, source.node if left else None)
        more = ("limit", "offset", "distinct", "qualify")
        if query.aggregated or any(query.node.args.get(part) is not None for part in more):
            raise refused(
                Rule.JOINS, "People are joined with more than a table", source.node, allow="Join the table itself"
            )
        if not query.sources:
            raise refused(Rule.JOINS, "People are joined with constants", source.node)
        return self._optional_frame(query, source.node) if left else self._frame(query)

    def _optional_frame(self, query: Scope, node: exp.Expr) -> Frame:
        """A subquery that chooses rows of one long table, joined by LEFT JOIN: its conditions are those of ON."""
        table = query.sources[0].table
        if len(query.sources) > 1 or table is None or not table.protected or table.grain != "rows":
            allow = "Join the table itself, with its conditions in ON"
            raise refused(Rule.JOINS, "LEFT JOIN of a subquery of more than one table's rows", node, allow=allow)
        for output in query.outputs:
            if output.node is not None and not any(True for _ in output.node.find_all(exp.Column)):
                allow = "Count the rows of the table itself: COUNT(column)"
                raise refused(Rule.JOINS, "LEFT JOIN of a subquery with constants", output.node, allow=allow)
        frame, ref = Frame(query), self._add(table, optional=True)
        frame.members[id(query.sources[0])] = ref
        where = query.node.args.get("where")
        self._on += [(ref, Written(frame, part)) for part in (_parts(where.this) if where is not None else ())]
        return frame

    def _add(self, table: TableInfo, optional: bool = False, per_unit: bool = False) -> Ref:
        ref = Ref(next(self.ids), table, optional, per_unit)
        self.rows.refs.append(ref)
        if len(self.rows.refs) > _REFS:
            raise refused(Rule.LIMITS, f"More than {_REFS} tables are joined", allow="Ask for less at once")
        return ref

    def _units(self, scope: Scope, optional: exp.Expr | None = None) -> Units:
        """A subquery that groups by people. optional: where it is joined by LEFT JOIN."""
        joined = read_joins(self.catalog, scope, self.ids)
        inner, frame = joined.rows, joined.frame
        for key in group_keys(scope):
            if joined.compiler.unit_of(frame, key) is None and not joined.compiler.is_of_unit(frame, key):
                reason = "A subquery that groups by the privacy unit groups by something else, too"
                raise refused(Rule.PER_UNIT, reason, key)
        units_of = [joined.compiler.unit_of(frame, key) for key in group_keys(scope)]
        if scope.node.args.get("distinct") is not None:
            units_of += [of.ref for one in scope.outputs if (of := joined.compiler.located_output(frame, one))]
        if any(of is not None and (of.optional or of.youngest.optional) for of in units_of):
            allow = "Group by that of the first table, or use JOIN"
            raise refused(Rule.PER_UNIT, "Groups by the person of a table joined by LEFT JOIN", scope.node, allow=allow)
        if len(inner.long) != 1 or any(ref.per_unit for ref in inner.refs):
            reason = "GROUP BY the privacy unit takes one table with many rows a person"
            raise refused(Rule.PER_UNIT, reason, scope.node)
        owner = inner.long[0]
        ref = self._add(owner.table, optional=optional is not None, per_unit=True)
        units = Units(frame, ref, joined.compiler, owner)
        if optional is not None:
            ref.when = self._who(units, optional)
            self._optional_units.append(ref)
            return units
        rows = self.rows
        rows.refs += [other for other in inner.refs if inner.root(other) is not owner]
        rows.lookups += [entry for entry in inner.lookups if inner.root(entry.found) is not owner]
        rows.links += [UnitJoin(ref, other) for other in inner.refs if other.table.protected and other is not owner]
        rows.conditions += [c for c in inner.conditions if owner not in inner.longs(c)]
        if not owner.optional:
            rows.conditions.append(Exists(owner.table.name, inner.own(owner), inner.lookups_of(owner)))
        having = scope.node.args.get("having")
        if having is not None:
            rows.conditions += conjuncts(self.compiler.unit_terms(units, "condition").condition(having.this))
        return units

    def _who(self, units: Units, node: exp.Expr) -> Expr:
        """Who is in a subquery that groups by people."""
        inner, owner = units.inner.rows, units.owner
        if owner.optional or any(inner.root(other) is not owner for other in inner.refs):
            allow = "Join the tables in it by JOIN outside"
            raise refused(Rule.JOINS, "LEFT JOIN of a subquery of several tables of people", node, allow=allow)
        there: list[Expr] = [Exists(owner.table.name, inner.own(owner), inner.lookups_of(owner))]
        there += [Op("is true", (one,)) for one in inner.conditions if owner not in inner.longs(one)]
        having = units.frame.scope.node.args.get("having")
        if having is not None:
            there.append(Op("is true", (self.compiler.unit_terms(units, "condition").condition(having.this),)))
        return stripped(conjunction(there))

    def _using(self, frame: Frame, source: Source) -> None:
        """The equalities of USING: between a source and the first ones before it that have the columns."""
        join = source.join
        keys = join.args.get("using") or () if join is not None else ()
        pairs = []
        for node in keys:
            key = fold(node.name)
            before = next(other for other in frame.scope.sources if other.has(key))
            pairs.append(_Pair(self._located(frame, before, key), self._located(frame, source, key), node))
        if pairs:
            assert join is not None
            self._equalities.append(_Equalities(pairs, join, join.args.get("side") == "LEFT"))

    def _located(self, frame: Frame, source: Source, key: str) -> Located:
        found = self.compiler.located(frame, source, key)
        if found is None:
            raise refused(Rule.JOINS, f"{key!r} is no column of a table", source.node)
        return found

    def _join(self) -> None:
        """Take the equalities that join out of the conditions: those of rows that belong to others first, then those of
        people, then of public tables, which may be looked up by any of them."""
        for optional in self._optional_joins:
            self._equalities.append(_Equalities(self._pairs_of(optional), optional.join, optional=True))
        for take in (self._take_parents, self._take_around, self._take_units, self._take_lookups):
            for one in self._equalities:
                taken = {id(pair.node) for pair in take(one.pairs, optional=one.optional)}
                one.pairs = [pair for pair in one.pairs if id(pair.node) not in taken]
            pairs = [pair for written in self._pending if (pair := self._pair(written)) is not None]
            taken = {id(pair.node) for pair in take(pairs, optional=False)}
            self._pending = [written for written in self._pending if id(written.node) not in taken]
        self._order_lookups()
        for one in self._equalities:
            if one.pairs and not one.join.args.get("using"):
                allow = "Write ON left.key = right.key along a declared join; put conditions into WHERE"
                raise refused(Rule.JOINS, "LEFT JOIN on more than a declared key", one.join, allow=allow)
            for pair in one.pairs:
                told = f"{pair.node.name!r} is no declared key of this join"
                raise refused(Rule.JOINS, told, pair.node, allow="joins in the policy list the keys")

    def _order_lookups(self) -> None:
        """Put what looks up before what it finds looks up. Who has no row looks up nothing: a lookup that is required
        takes only rows of LEFT JOIN that there are."""
        left, ordered = self.rows.lookups, list[LookupJoin]()
        while left:
            found = {entry.found for entry in left}
            ready = [entry for entry in left if entry.by not in found]
            ordered += ready or left  # in a ring nothing is first, and nobody is looked up from
            left = [entry for entry in left if entry.by in found] if ready else []
        self.rows.lookups = ordered
        for entry in ordered:
            root = self.rows.root(entry.by)
            if entry.required and root.long:
                root.optional = False

    def _pairs_of(self, optional: _OptionalJoin) -> list[_Pair]:
        """The equalities of a LEFT JOIN. Raises Refused where there is anything else."""
        on = optional.join.args.get("on")
        if on is None:
            if optional.join.args.get("using"):
                return []
            raise refused(Rule.JOINS, "LEFT JOIN without a key", optional.join)
        member = _ref_of(optional.frame.members[id(optional.source)])
        pairs = {id(part): self._pair(Written(optional.frame, part)) for part in _parts(on)}
        found = [pair for pair in pairs.values() if pair is not None and member in (pair.left.ref, pair.right.ref)]
        others = [part for part in _parts(on) if (pair := pairs[id(part)]) is None or pair not in found]
        if member.long or (self.catalog.policy.mode == "measured" and not member.per_unit and not self.around):
            self._on += [(member, Written(optional.frame, part)) for part in others]
        elif others:
            allow = "Write ON left.key = right.key along a declared join; put conditions into WHERE"
            raise refused(Rule.JOINS, "LEFT JOIN on more than a declared key", optional.join, allow=allow)
        return found

    def _pair(self, written: Written) -> _Pair | None:
        node = written.node.unnest()
        if not isinstance(node, exp.EQ):
            return None
        left = self.compiler.locate(written.frame, node.this)
        right = self.compiler.locate(written.frame, node.expression)
        return _Pair(left, right, written.node) if left is not None and right is not None else None

    def _take_parents(self, pairs: Sequence[_Pair], *, optional: bool) -> list[_Pair]:
        """Join rows with those that they belong to: from there on they are rows of one table, with the columns of both.
        A row that belongs to none is of nobody, so that LEFT JOIN leaves out as many."""
        del optional
        taken: list[_Pair] = []
        for pair in pairs:
            for child, parent in ((pair.left.ref, pair.right.ref), (pair.right.ref, pair.left.ref)):
                of = child.table.parent
                if of is None or of.table.name != parent.table.name or child is parent or parent.child is not None:
                    continue
                if parent not in self.rows.refs or child.youngest not in self.rows.refs:
                    continue
                found = _all_of(of.keys, _between(pairs, child, parent), pairs)
                if found and child.optional:
                    allow = f"Start from {child.table.name}, or use JOIN"
                    raise refused(Rule.JOINS, "LEFT JOIN of rows that belong to others", found[0].node, allow=allow)
                if found:
                    parent.child = child
                    self.rows.refs.remove(parent)
                    taken += found
        return taken

    def _take_around(self, pairs: Sequence[_Pair], *, optional: bool) -> list[_Pair]:
        """Join rows of a subquery with the row of the query around that they belong to."""
        if self.around is None or optional:
            return []
        for pair in pairs:
            for child, parent in ((pair.left.ref, pair.right.ref), (pair.right.ref, pair.left.ref)):
                of = child.table.parent
                if of is None or of.table.name != parent.table.name or child.youngest not in self.rows.refs:
                    continue
                if parent.youngest not in self.around.compiler.rows.refs or self.rows.by or not parent.youngest.long:
                    continue
                between = _between(pairs, child, parent)
                found = _all_of(of.keys, between, pairs)
                if found:
                    columns = [between[id(one)] for one in found]
                    self.rows.by = tuple((parent.bound(there), child.bound(here)) for here, there in columns)
                    self.rows.correlated = True
                    return found
        return []

    def _take_units(self, pairs: Sequence[_Pair], *, optional: bool) -> list[_Pair]:
        """Join tables of people on the privacy unit."""
        taken = [pair for pair in pairs if pair.of_units]
        for pair in taken:
            one, other = pair.left.ref, pair.right.ref
            if one.youngest is other.youngest:
                continue
            if not self.catalog.units_join(one.table, other.table):
                raise refused(
                    Rule.JOINS,
                    f"{one.table.name} and {other.table.name} are not declared to be joined",
                    pair.node,
                    allow="joins in the policy list the keys",
                    code=NOT_PERMITTED,
                )
            self._link(one.youngest, other.youngest, pair.node, optional)
        return taken

    def _take_lookups(self, pairs: Sequence[_Pair], *, optional: bool) -> list[_Pair]:
        """Look up public tables, N:1, along declared joins: each in one way."""
        taken: list[_Pair] = []
        for pair in pairs:
            for a, b in ((pair.left.ref, pair.right.ref), (pair.right.ref, pair.left.ref)):
                if b.table.protected or a is b or a.youngest not in self.rows.refs or pair.of_units:
                    continue
                if self.rows.lookup_of(b) is not None or (optional and not b.optional):
                    continue
                between = _between(pairs, a, b)
                found = next(
                    (
                        all_
                        for keys in self.catalog.lookups_by(a.table, b.table)
                        if (all_ := _all_of(keys, between, pairs))
                    ),
                    [],
                )
                if found:
                    self._look_up(a, b, [between[id(one)] for one in found], required=not optional)
                    taken += found
        return taken

    def _look_up(self, a: Ref, b: Ref, columns: Sequence[tuple[Column, Column]], *, required: bool) -> None:
        name = self.catalog.name_beside(
            b.table, [a.bound(by) for by, _ in columns], [found.name for _, found in columns]
        )
        b.name = None if name == b.table.name else name
        pairs = tuple((a.bound(by), b.bound(found)) for by, found in columns)
        self.rows.lookups.append(LookupJoin(a, b, pairs, required, tuple(by for by, _ in columns)))

    def _link(self, one: Ref, other: Ref, node: exp.Expr, optional: bool) -> None:
        one_inside, other_inside = one in self.rows.refs, other in self.rows.refs
        if not (one_inside and other_inside):
            outer, inner = (other, one) if one_inside else (one, other)
            if not (one_inside or other_inside) or optional or self.around is None or outer.optional or inner.optional:
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
                if lookup.by.youngest in reached and lookup.found not in reached:
                    reached.add(lookup.found)
                    changed = True
        for ref in rows.refs:
            if ref not in reached:
                raise refused(
                    Rule.JOINS,
                    f"{ref.table.name} is joined by no declared key",
                    allow="joins in the policy list the keys; unit = unit joins protected tables",
                )


def _ref_of(member: "Ref | Frame | Units") -> Ref:
    """The mention that a member of a FROM is, which is joined by LEFT JOIN."""
    if isinstance(member, Units):
        return member.ref
    if isinstance(member, Ref):
        return member
    (inner,) = member.members.values()
    return _ref_of(inner)


_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "like", "ilike", "starts_with", "ends_with", "contains")


def _rejects(condition: Expr, ref: Ref) -> bool:
    """Whether a condition is not true where no row of a table is looked up: it compares a column of it."""
    if not isinstance(condition, Op):
        return False
    if condition.name == "and":
        return any(_rejects(one, ref) for one in condition.args)
    if condition.name == "or":
        return all(_rejects(one, ref) for one in condition.args)
    (of, *_) = condition.args
    if condition.name == "not":
        return isinstance(of, Op) and of.name in _COMPARISONS and _rejects(of, ref)
    return condition.name in _COMPARISONS and any(
        isinstance(one, Bound) and one.ref == ref.id for one in condition.args
    )


def _has_to_hold(node: exp.Expr) -> bool:
    """Whether a condition stands where not known is as good as false: in WHERE, ON or FILTER, with AND and OR only."""
    above = node.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Join)


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a conjunction in a tree. What every part of a disjunction says is a part, too."""
    stack = [node]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.And):
            stack += [one.expression, one.this]
            continue
        yield one
        if isinstance(one, exp.Or):
            first, *others = [[*_parts(way)] for way in _ways(one)]
            yield from (part for part in first if isinstance(part, exp.EQ) and all(part in way for way in others))


def _ways(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a disjunction."""
    stack = [node]
    while stack:
        one = stack.pop().unnest()
        if isinstance(one, exp.Or):
            stack += [one.expression, one.this]
        else:
            yield one
