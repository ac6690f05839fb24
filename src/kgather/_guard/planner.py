"""Makes the plan of a statement: blocks over rows of people, and SQL over their results."""

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.allowed import AGGREGATES
from kgather._guard.catalog import Catalog
from kgather._guard.conditions import constant
from kgather._guard.joins import read_joins
from kgather._guard.names import Resolved, Scope, group_keys, ordinal, resolve
from kgather._guard.plan import (
    NUMERIC,
    Aggregate,
    Block,
    Bound,
    Exists,
    Expr,
    Key,
    Literal,
    Local,
    Op,
    PerUnit,
    PivotedArgument,
    Plan,
    Question,
    Reference,
    Scale,
    Universe,
    children,
    conjunction,
    conjuncts,
)
from kgather._guard.policy import Limits, fold
from kgather._guard.questions import Ref, stripped, stripped_bound
from kgather._guard.refused import NOT_PERMITTED, TOO_COMPLEX, Refused, Rule, refused
from kgather._guard.render import identifier, question_sql
from kgather._guard.results import BlockSource, Results
from kgather._guard.rules import RULES, SYNTAX
from kgather._guard.scopes import Frame, counts_all
from kgather._guard.statement import Parameters, read, witness

_BLOCKS = 24
_AGGREGATES = 64
_KEYS = 32
_SETS = 64
_PAIRS = ("CORR", "COVAR_SAMP", "COVAR_POP")
_AS_IT_IS = Scale()


class _Value(NamedTuple):
    """An argument of an aggregate: a column, or a value that a unit has, and what is made of it."""

    column: Bound | PerUnit
    scale: Scale = _AS_IT_IS


class _Argument(NamedTuple):
    """An argument that is a column."""

    column: Bound
    scale: Scale = _AS_IT_IS


class _PivotSource(NamedTuple):
    """Where a column of a pivot comes from: the long table's value, its key, and the key's constant."""

    value: Bound
    key: Bound
    constant: Literal


def plan(text: str, catalog: Catalog, parameters: Parameters = (), limits: Limits | None = None) -> Plan | Local:
    """Make the plan of one statement, touching no data. parameters: by position or by name. limits: the policy's, if
    not given.

    Raises Refused (static) for everything that is not understood or not permitted.
    """
    policy = catalog.policy
    try:
        tree = read(text, policy, limits or policy.limits, parameters)
        if isinstance(tree, Local):
            return tree
        for check in SYNTAX:
            check(tree)
        resolved = resolve(tree, catalog)
        for rule in RULES:
            rule(resolved)
        made = _Planner(resolved).plan()
    except RecursionError:
        raise refused(Rule.LIMITS, "The statement nests too deeply", code=TOO_COMPLEX) from None
    if isinstance(made, Plan):
        _witness(made, catalog)
    return made


def _witness(made: Plan, catalog: Catalog) -> None:
    witness(made.sql, {*(block.name for block in made.blocks), *made.public})
    asked = {
        question for block in made.blocks for question in (block.question, *(a.question for a in block.aggregates))
    }
    for question in asked:
        witness(question_sql(question, ["1"], catalog.unit), {"kg_units", *question_tables(question)})


def question_tables(question: Question) -> set[str]:
    """The tables that a question reads."""
    universe = question.universe
    names = {entry.table for entry in universe.references} | {entry.right.table for entry in universe.lookups}
    if universe.table is not None:
        names.add(universe.table)
    stack: list[Expr] = [question.condition, *question.keys]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Exists | PerUnit):
            names |= {expr.table, *(entry.right.table for entry in expr.lookups)}
        stack += children(expr)
    return names


class _Planner:
    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self.builders: list[_BlockBuilder] = []
        self.results = Results(self._block)

    def plan(self) -> Plan | Local:
        top = self.resolved.top
        sql = self.results.statement(top)
        names = tuple(output.label for output in top.outputs)
        if not any(scope.sources for scope in self.resolved.scopes):
            return Local("SELECT", names, sql=sql)
        blocks = tuple(builder.block() for builder in self.builders)
        return Plan(blocks, sql, names, tuple(sorted(self.results.public)))

    def _block(self, scope: Scope) -> BlockSource:
        if len(self.builders) >= _BLOCKS:
            raise refused(Rule.LIMITS, f"More than {_BLOCKS} blocks", allow="Ask for less at once", code=TOO_COMPLEX)
        builder = _BlockBuilder(self.resolved.catalog, scope, f"kg_block_{len(self.builders) + 1}")
        self.builders.append(builder)

        def leaf(node: exp.Expr) -> exp.Expr | None:
            name = scope.names.get(id(node))
            if name is not None and name.output is not None and name.output.node is not None:
                return exp.Paren(this=self.results.rebuilt(name.output.node, leaf))
            return builder.leaf(node)

        return BlockSource(f"{identifier(builder.name)} AS {builder.alias}", leaf)


class _BlockBuilder:
    """Builds one block while the SELECT above it is written."""

    def __init__(self, catalog: Catalog, scope: Scope, name: str) -> None:
        self.catalog = catalog
        self.scope = scope
        self.name = name
        self.alias = name.replace("kg_block_", "b")
        joined = read_joins(catalog, scope)
        self.rows, self.compiler, self.frame = joined.rows, joined.compiler, joined.frame
        self.keys: list[Expr] = []
        self.roles: list[str] = []
        self.aggregates: dict[Aggregate, str] = {}
        self.sets = self._grouping()
        self.question = self._main()

    # Keys

    def _grouping(self) -> tuple[tuple[int, ...], ...]:
        group = self.scope.node.args.get("group")
        if group is None:
            return ((),)
        margins = [n for n in group.expressions if isinstance(n, exp.Rollup | exp.Cube | exp.GroupingSets)]
        if not margins:
            for node in group_keys(self.scope):
                self._key(node)
            if group.args.get("all"):
                for output in self.scope.outputs:
                    if output.node is None:
                        raise refused(Rule.KEYS, "A star beside aggregates", self.scope.node, allow="Name the columns")
            return (tuple(range(len(self.keys))),)
        sets: list[tuple[int, ...]] = [()]
        for node in group.expressions:
            choices = self._choices(node)
            sets = [tuple(dict.fromkeys((*one, *other))) for one in sets for other in choices]
            if len(sets) > _SETS:
                raise refused(Rule.LIMITS, f"More than {_SETS} grouping sets", node, code=TOO_COMPLEX)
        return tuple(dict.fromkeys(sets))

    def _choices(self, node: exp.Expr) -> list[tuple[int, ...]]:
        if not isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            return [self._set(node)]
        parts = [self._set(one) for one in node.expressions]
        if isinstance(node, exp.GroupingSets):
            return parts
        if len(parts) > 6 and isinstance(node, exp.Cube):
            raise refused(Rule.LIMITS, "CUBE of more than 6 keys", node, code=TOO_COMPLEX)
        if isinstance(node, exp.Rollup):
            chosen = [parts[:n] for n in range(len(parts), -1, -1)]
        else:
            chosen = [list(c) for n in range(len(parts), -1, -1) for c in combinations(parts, n)]
        return [tuple(at for part in one for at in part) for one in chosen]

    def _set(self, node: exp.Expr) -> tuple[int, ...]:
        nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
        found = [self._key(ordinal(self.scope, one)) for one in nodes]
        return tuple(at for at in found if at is not None)

    def _key(self, node: exp.Expr) -> int | None:
        """The position of a key; None of a constant, which makes no groups."""
        expr, role = self.compiler.key(self.frame, node)
        if isinstance(expr, Literal):
            return None
        if expr not in self.keys:
            if len(self.keys) >= _KEYS:
                raise refused(Rule.LIMITS, f"More than {_KEYS} keys", node, code=TOO_COMPLEX)
            self.keys.append(expr)
            self.roles.append(role)
        return self.keys.index(expr)

    # The block

    def block(self) -> Block:
        keys = tuple(
            Key(f"key_{at}", expr.kind, role)
            for at, (expr, role) in enumerate(zip(self.keys, self.roles, strict=True), 1)
        )
        found = tuple(replace(aggregate, name=name) for aggregate, name in self.aggregates.items())
        return Block(self.name, self.question, keys, self.sets, found)

    def _main(self) -> Question:
        """What the block is about: the rows of its long table, or units."""
        free = [ref for ref in self.rows.long if not self.rows.pinned(ref)]
        owner = free[0] if len(free) == 1 else None
        if not free and len(self.rows.long) == 1:
            owner = self.rows.long[0]
        return self.rows.question(owner, [], self.keys)

    # What nodes mean over the block's relation

    def leaf(self, node: exp.Expr) -> exp.Expr | None:
        """The column of the block's relation that a node is, None if its parts are looked at."""
        if isinstance(node, exp.Window):
            return None
        if isinstance(node, exp.AggFunc | exp.Filter):
            if _of_window(node):
                return None
            return self._aggregate(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if self.keys and not isinstance(
            node, exp.Literal | exp.Paren | exp.Identifier | exp.DataType | exp.Var | exp.Cast
        ):
            try:
                at = self.keys.index(self.compiler.key(self.frame, node).expr)
            except (Refused, ValueError):
                return None
            return self._named(f"key_{at + 1}")
        return None

    def _column(self, node: exp.Column) -> exp.Expr | None:
        expr = self.compiler.key(self.frame, node).expr
        if expr not in self.keys:
            allow = "Put it into GROUP BY, or into an aggregate"
            raise refused(Rule.KEYS, f"{node.name[:60]} is no key of the groups", node, allow=allow)
        return self._named(f"key_{self.keys.index(expr) + 1}")

    def _named(self, column: str) -> exp.Column:
        return exp.Column(this=exp.to_identifier(column, quoted=True), table=exp.to_identifier(self.alias))

    # Aggregates

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        call, more = node, []
        if isinstance(node, exp.Filter):
            call = node.this
            more = list(conjuncts(self.compiler.terms(self.frame).condition(node.expression.this)))
        if type(call) not in AGGREGATES:
            raise refused(Rule.AGGREGATES, f"{call.key.upper()} over rows of people", call)
        word, function = AGGREGATES[type(call)]
        distinct = isinstance(call.this, exp.Distinct)
        if distinct and not isinstance(call, exp.Count):
            raise refused(Rule.AGGREGATES, f"{function} of DISTINCT values", call, allow="There is COUNT(DISTINCT ...)")
        word = "COUNT_DISTINCT" if distinct else word
        if word not in self.catalog.policy.aggregates:
            raise refused(
                Rule.AGGREGATES,
                f"{word} over rows of people",
                call,
                allow=f"aggregates in the policy would allow it: [..., {word}]",
                code=NOT_PERMITTED,
            )
        if distinct:
            return self._count_distinct(call, more)
        if isinstance(call, exp.Count) and counts_all(call):
            owner = self.rows.counted(call)
            return self._add("COUNT", (), self.rows.question(owner, more, self.keys, call))
        nodes = [call.this, call.expression] if function in _PAIRS else [call.this]
        values = [self._linear(self.frame, one, function) for one in nodes]
        if any(isinstance(value.column, PerUnit) for value in values):
            return self._over_units(call, function, values, more)
        if len(values) == 2:
            return self._pair(call, function, values, more)
        return self._single(call, function, values[0], more)

    def _add(
        self,
        function: str,
        arguments: tuple[_Argument, ...],
        question: Question,
        *,
        distinct: bool = False,
        pivoted: tuple[PivotedArgument, ...] = (),
    ) -> exp.Column:
        columns = tuple(stripped_bound(argument.column) for argument in arguments)
        scales = tuple(argument.scale for argument in arguments)
        made = Aggregate("", function, columns, scales, question, distinct, pivoted)
        if made not in self.aggregates:
            if len(self.aggregates) >= _AGGREGATES:
                raise refused(Rule.LIMITS, f"More than {_AGGREGATES} aggregates", code=TOO_COMPLEX)
            self.aggregates[made] = f"value_{len(self.aggregates) + 1}"
        return self._named(self.aggregates[made])

    def _count_distinct(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        if len(call.this.expressions) != 1:
            raise refused(Rule.AGGREGATES, "COUNT(DISTINCT) of several columns", call)
        node = call.this.expressions[0]
        found = self.compiler.locate(self.frame, node)
        if found is None:
            raise refused(Rule.ARGUMENTS, "COUNT(DISTINCT) takes a column", call)
        ref, column = found
        if column.role == "unit":
            assert ref in self.rows.refs, "there is no query around a block"
            if ref.optional:
                raise refused(Rule.ARGUMENTS, "COUNT(DISTINCT) of a table joined by LEFT JOIN", call, allow="Use JOIN")
            return self._count_units(call, more)
        role = self.compiler.role(ref, column)
        bound = self.compiler.bound(ref, column, "condition" if role == "measure" else "key", node)
        assert isinstance(bound, Bound)
        source = self._source(ref, bound)
        if source is not None:
            return self._pivoted(call, "COUNT_DISTINCT", source, _AS_IT_IS, more, distinct=True)
        owner = self._owner(ref, call)
        question = self.rows.question(owner, more, self.keys, call)
        return self._add("COUNT_DISTINCT", (_Argument(bound),), question, distinct=True)

    def _count_units(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        keyed = {ref for key in self.keys for ref in self.rows.longs(key)}
        if not keyed:
            return self._add("COUNT", (), self.rows.question(None, more, self.keys, call))
        owner = keyed.pop()
        if keyed or not self.rows.single(owner):
            raise refused(Rule.ARGUMENTS, "People in overlapping groups of several tables", call)
        question = self.rows.question(owner, more, self.keys, call)
        unique = self.catalog.unique(owner.table)
        if self.rows.pinned(owner) or any(
            isinstance(k, Bound) and k.ref == owner.id and k.column == unique for k in self.keys
        ):
            return self._add("COUNT", (), question)
        named = {entry.found.id for entry in self.rows.lookups if entry.by is owner and entry.left.column == unique}
        if any(isinstance(key, Bound) and key.ref in named for key in self.keys):
            return self._add("COUNT_UNITS", (), question)
        allow = f"Group by {unique}, too" if unique else "Count rows: COUNT(*)"
        raise refused(Rule.ARGUMENTS, "A person may be in several of these groups", call, allow=allow)

    def _owner(self, ref: Ref, call: exp.Expr) -> Ref | None:
        """Whose value a column is: a long table's row, or (None) a unit. Refused where a join would repeat it."""
        root = self.rows.root(ref)
        owner = root if root.long else None
        if not self.rows.single(owner):
            raise self.rows.repeats(call)
        return owner

    def _single(self, call: exp.Expr, function: str, value: _Value, more: list[Expr]) -> exp.Expr:
        column, scale = value
        assert isinstance(column, Bound)
        ref = next(ref for ref in self.rows.refs if ref.id == column.ref)
        if function == "COUNT":
            scale = _AS_IT_IS
        source = self._source(ref, column)
        if source is not None:
            return self._pivoted(call, function, source, scale, more)
        question = self.rows.question(self._owner(ref, call), more, self.keys, call)
        return self._add(function, (_Argument(column, scale),), question)

    def _source(self, ref: Ref, column: Bound) -> _PivotSource | None:
        """Where a column comes from, None if it is no column of a pivot."""
        pivot = ref.table.policy.pivot_of
        if pivot is None:
            return None
        key = next((key for key, name in pivot.names.items() if fold(name) == fold(column.column)), None)
        if key is None:
            return None
        table = self.catalog.table(pivot.table)
        assert table is not None
        of, at = table.column(pivot.value), table.column(pivot.key)
        assert of is not None
        assert at is not None
        literal = Literal(key, "integer" if isinstance(key, int) else "text")
        return _PivotSource(Bound(table.name, of.name, of.kind), Bound(table.name, at.name, at.kind), literal)

    def _pivoted(
        self,
        call: exp.Expr,
        function: str,
        source: _PivotSource,
        scale: Scale,
        more: list[Expr],
        *,
        distinct: bool = False,
    ) -> exp.Expr:
        """A pivot's column is asked for where it comes from: among the rows of the long table with its key."""
        if not self.rows.single(None):
            raise self.rows.repeats(call)
        units = self.rows.question(None, more, self.keys, call)
        condition = conjunction([*conjuncts(units.condition), Op("=", (source.key, source.constant))])
        universe = replace(units.universe, kind="rows", table=source.value.table)
        question = Question(universe, condition, units.keys)
        return self._add(function, (_Argument(source.value, scale),), question, distinct=distinct)

    def _pair(self, call: exp.Expr, function: str, values: list[_Value], more: list[Expr]) -> exp.Expr:
        """Two values at once: of one row, or of one unit, which may have them in a pivot."""
        pair = [_Argument(value.column, value.scale) for value in values if isinstance(value.column, Bound)]
        refs = [next(ref for ref in self.rows.refs if ref.id == argument.column.ref) for argument in pair]
        roots = {self.rows.root(ref) for ref in refs}
        if len(roots) == 1 and (only := roots.pop()).long:
            question = self.rows.question(self._owner(only, call), more, self.keys, call)
            return self._add(function, tuple(pair), question)
        if not self.rows.single(None):
            raise self.rows.repeats(call)
        question = self.rows.question(None, more, self.keys, call)
        references = {entry.table: entry for entry in question.universe.references}
        arguments: list[_Argument] = []
        pivoted: list[PivotedArgument] = []
        for (column, scale), ref in zip(pair, refs, strict=True):
            shown = self._shown(ref, column, call) if self.rows.root(ref).long else column
            source = next((self._source(r, shown) for r in self._wide(shown)), None)
            if source is not None:
                pivoted.append(PivotedArgument(stripped_bound(shown), source.constant))
            references.setdefault(shown.table, Reference(shown.table, required=False))
            arguments.append(_Argument(shown, scale))
        universe = replace(question.universe, references=tuple(references[name] for name in sorted(references)))
        question = replace(question, universe=universe)
        return self._add(function, tuple(arguments), question, pivoted=tuple(pivoted))

    def _wide(self, column: Bound) -> list[Ref]:
        table = self.catalog.table(column.table)
        return [Ref(0, table)] if table is not None and table.policy.pivot_of is not None else []

    def _shown(self, ref: Ref, column: Bound, call: exp.Expr) -> Bound:
        """The pivot's column that shows a long table's value, where the key is pinned; a pivot has every unit of its
        source."""
        pin = self.rows.pin(ref)
        for table in self.catalog.tables.values():
            pivot = table.policy.pivot_of
            if pivot is None or fold(pivot.table) != fold(ref.table.name) or fold(pivot.value) != fold(column.column):
                continue
            for key, name in pivot.names.items():
                info = table.column(name)
                if info is not None and pin is not None and pin.value == key:
                    return Bound(table.name, info.name, info.kind)
        allow = "Name the columns of a pivot that the policy declares"
        raise refused(Rule.ARGUMENTS, "Two values of a person from two rows", call, allow=allow)

    def _over_units(self, call: exp.Expr, function: str, values: list[_Value], more: list[Expr]) -> exp.Expr:
        """SUM and AVG over a value that units have by their rows: the sum over rows, divided by units."""
        value, scale = values[0]
        if function not in ("SUM", "AVG") or len(values) != 1 or scale != _AS_IT_IS:
            allow = "There are SUM and AVG of it, and conditions on it"
            raise refused(Rule.PER_UNIT, f"{function} over a value per person", call, allow=allow)
        assert isinstance(value, PerUnit)
        if value.function == "VALUE" or not self.rows.single(None):
            raise self.rows.repeats(call)
        units = self.rows.question(None, more, self.keys, call)
        inner = stripped(value)
        assert isinstance(inner, PerUnit)
        condition = conjunction([*conjuncts(units.condition), *conjuncts(inner.condition)])
        lookups = {entry.right.table: entry for entry in (*units.universe.lookups, *inner.lookups)}
        if any(lookups[entry.right.table] != entry for entry in units.universe.lookups):
            raise refused(Rule.JOINS, "A public table is looked up by two columns", call)
        universe = Universe("rows", inner.table, units.universe.references, tuple(lookups.values()))
        question = Question(universe, condition, units.keys)
        arguments = (_Argument(inner.argument),) if inner.argument is not None else ()
        total = self._add(inner.function, arguments, question)
        if function == "SUM":
            return total
        having = units
        if inner.function == "SUM" and inner.argument is not None:  # units without any value have no sum
            there = Op("not", (Op("is null", (inner.argument,)),))
            exists = Exists(inner.table, conjunction([*conjuncts(inner.condition), there]), inner.lookups)
            having = replace(units, condition=conjunction([*conjuncts(units.condition), exists]))
        people = self._add("COUNT", (), having)
        whole = exp.Nullif(this=people, expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=_double(total), expression=whole, typed=False, safe=False))

    def _linear(self, frame: Frame, node: exp.Expr, function: str) -> _Value:
        """An argument as factor * column + offset."""
        node = node.unalias().unnest()
        if isinstance(node, exp.Neg):
            column, (a, b) = self._linear(frame, node.this, function)
            return _Value(column, self._finite(-a, -b, node))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._scaled(frame, node, function)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and node.to.this == exp.DType.DOUBLE:
            value = self._linear(frame, node.this, function)
            if value.column.kind in NUMERIC:  # no number fails to become a DOUBLE
                return value
        if not isinstance(node, exp.Column):
            if isinstance(node, exp.AggFunc):
                raise refused(Rule.AGGREGATES, "An aggregate of an aggregate", node)
            allow = "An argument is a column, or a * column + b with constants a and b"
            if isinstance(node, exp.Case | exp.If):
                allow = f"Use FILTER: {function}(column) FILTER (WHERE condition)"
            raise refused(Rule.ARGUMENTS, f"{node.key.upper()} as the argument of {function}", node, allow=allow)
        found = self.compiler.locate(frame, node)
        if found is not None:
            if function != "COUNT" and not found.ref.table.protected:
                allow = "Put the column into GROUP BY, and count"
                raise refused(Rule.ARGUMENTS, f"{function} of a public table's column", node, allow=allow)
            expr = self.compiler.bound(*found, "count" if function == "COUNT" else "argument", node)
        else:
            made = self.compiler.made_of(frame, node)
            if made is not None:
                return self._linear(*made, function)
            expr = self.compiler.terms(frame, "argument").value(node)
        if not isinstance(expr, Bound | PerUnit):
            raise refused(Rule.ARGUMENTS, "An argument that is more than a column", node)
        if function not in ("COUNT", "MIN", "MAX") and expr.kind not in NUMERIC:
            raise refused(Rule.ARGUMENTS, f"{function} of what is no number", node)
        return _Value(expr)

    def _scaled(self, frame: Frame, node: exp.Expr, function: str) -> _Value:
        left, right = constant(node.this), constant(node.expression)
        allow = "An argument is a column, or a * column + b with constants a and b"
        if (left is None) == (right is None) or (isinstance(node, exp.Div) and right is None):
            raise refused(Rule.ARGUMENTS, "An argument of more than one column", node, allow=allow)
        literal, inner = (left, node.expression) if left is not None else (right, node.this)
        if literal is None or literal.kind not in NUMERIC or isinstance(literal.value, bool):
            raise refused(Rule.ARGUMENTS, "An argument with a constant that is no number", node, allow=allow)
        c = float(literal.value)  # type: ignore[arg-type]
        column, (a, b) = self._linear(frame, inner, function)
        if column.kind not in NUMERIC:
            raise refused(Rule.ARGUMENTS, "Arithmetic with what is no number", node)
        if isinstance(node, exp.Add):
            return _Value(column, self._finite(a, b + c, node))
        if isinstance(node, exp.Sub):
            return _Value(column, self._finite(a, b - c, node) if left is None else self._finite(-a, c - b, node))
        if isinstance(node, exp.Mul):
            return _Value(column, self._finite(a * c, b * c, node))
        if c == 0:
            raise refused(Rule.ARGUMENTS, "A division by zero", node)
        return _Value(column, self._finite(a / c, b / c, node))

    def _finite(self, a: float, b: float, node: exp.Expr) -> Scale:
        if not all(abs(value) <= 1e15 for value in (a, b)) or abs(a) < 1e-15:
            raise refused(Rule.ARGUMENTS, "An argument with constants out of range", node)
        return Scale(a, b)


def _of_window(node: exp.Expr) -> bool:
    """Whether an aggregate is the one that OVER belongs to."""
    parent = node.parent
    if isinstance(parent, exp.Filter):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build("double"))
