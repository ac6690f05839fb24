"""Makes the plan of a statement: blocks over rows of people, and SQL over their results."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from itertools import combinations
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.advice import instead_of_aggregate
from kgather._guard.allowed import AGGREGATES, NODES
from kgather._guard.arguments import argument_instead, called
from kgather._guard.by_keys import by_keys
from kgather._guard.by_rows import by_rows
from kgather._guard.canonical import normal
from kgather._guard.cases import Branch, Choice, branches
from kgather._guard.catalog import Catalog, Column
from kgather._guard.conditions import GRAIN, constant, cut
from kgather._guard.functions import witness_functions
from kgather._guard.inner import plan_inner, scopes_of
from kgather._guard.joins import read_joins
from kgather._guard.json_calls import in_duckdb
from kgather._guard.names import Name, Resolved, Scope, Union, group_keys, ordinal, resolve
from kgather._guard.plan import (
    MEASURE,
    NUMERIC,
    SET,
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
    bounds,
    children,
    conjunction,
    conjuncts,
)
from kgather._guard.policy import ANSWERED, Limits, fold
from kgather._guard.questions import Ref, stripped, stripped_bound
from kgather._guard.ranked import BINNED, COUNTED, QUANTILES, is_ranked, ranked
from kgather._guard.refused import NOT_PERMITTED, TOO_COMPLEX, Refused, Rule, refused
from kgather._guard.regression import is_regression, regression
from kgather._guard.render import identifier, parts_of, question_sql
from kgather._guard.results import BlockSource, Results
from kgather._guard.rules import RULES, SYNTAX
from kgather._guard.scopes import Frame, Written, counts_all, has_per_unit, truncation
from kgather._guard.sql_names import sql_name
from kgather._guard.statement import Parameters, read, witness

_BLOCKS = 24
_AGGREGATES = 64
_KEYS = 32
_SETS = 64
_CHAINS: Mapping[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "concat",
}
"""What may be written as a long chain, and the operation that it is."""
_BY_CASES = ("COUNT", "SUM", "AVG")
_FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE)
_PAIRS = ("CORR", "COVAR_SAMP", "COVAR_POP")
_OF_UNITS = (*QUANTILES, BINNED, "STDDEV_SAMP", "STDDEV_POP", "VAR_SAMP", "VAR_POP")
"""Aggregates that are made of the values that people have by their rows, one each."""
_INSTEAD = "It answers COUNT, and SUM and AVG of measures"
"""What to ask for where mode exact does not answer an aggregate."""
_AS_IT_IS = Scale()
_FIRST_DAY = date(2000, 1, 1)
"""From when days are counted, of which quantiles are."""
_DAYS = (-700_000, 2_900_000)
"""Within what those lie: the years 84 to 9939."""
_LARGEST = 1e15
"""The largest constant that values are computed with before they are added up."""
_ZEROS = (Literal(0, "integer"), Literal(0.0, "number"))
_NOTHING = Literal(None, "null")


class _Value(NamedTuple):
    """An argument of an aggregate: a column, or a value that a unit has, and what is made of it."""

    column: Bound | PerUnit
    scale: Scale = _AS_IT_IS


class _Argument(NamedTuple):
    """An argument that is a column, or computed from columns."""

    column: Expr
    scale: Scale = _AS_IT_IS


class _PivotSource(NamedTuple):
    """Where a column of a pivot comes from: the long table's value, its key, and the key's constant."""

    value: Bound
    key: Bound
    constant: Literal


def plan(
    text: str,
    catalog: Catalog,
    parameters: Parameters = (),
    limits: Limits | None = None,
    *,
    errors: bool = False,
    today: date | None = None,
) -> Plan | Local:
    """Make the plan of one statement, touching no data. parameters: by position or by name. limits: the policy's, if
    not given. errors: with columns of standard errors and kinds behind those of the statement. today: the day that
    CURRENT_DATE is, of UTC; now's, if it is not given.

    Raises Refused (static) for everything that is not understood or not permitted.
    """
    policy = catalog.policy
    try:
        tree = read(text, policy, limits or policy.limits, parameters, today)
        if isinstance(tree, Local):
            return tree
        in_duckdb(tree, catalog)
        for check in SYNTAX:
            check(tree)
        resolved = resolve(tree, catalog)
        if policy.mode == "measured" and by_keys(resolved):
            resolved = resolve(tree, catalog)
        while policy.mode == "measured" and by_rows(resolved):  # each time there is a subquery less
            resolved = resolve(tree, catalog)
        for rule in RULES:
            rule(resolved)
        inner = plan_inner(resolved, lambda query: _inner(resolved, query)) if policy.mode == "measured" else ()
        made = _Planner(resolved, errors=errors).plan()
    except RecursionError:
        raise refused(Rule.LIMITS, "The statement nests too deeply", code=TOO_COMPLEX) from None
    if isinstance(made, Plan):
        _witness(made, catalog)
        made = replace(made, inner=inner)
    if made.sql is not None and any(type(node) not in NODES for node in tree.walk()):
        witness_functions(made.sql)
    return made


def _inner(resolved: Resolved, query: Scope | Union) -> Plan:
    """The plan of a subquery that is an answer."""
    inner = plan_inner(replace(resolved, scopes=[*scopes_of(query)]), lambda one: _inner(resolved, one))
    made = _Planner(replace(resolved, top=query), errors=False).plan()
    assert isinstance(made, Plan), "it reads rows of people"
    _witness(made, resolved.catalog)
    witness_functions(made.sql)
    return replace(made, inner=inner)


def _witness(made: Plan, catalog: Catalog) -> None:
    witness(made.sql, {*(block.name for block in made.blocks), *made.public})
    asked = {
        question
        for block in made.blocks
        for question in (block.question, *(part.question for one in block.aggregates for _, part in parts_of(one)))
    }
    for question in asked:
        witness(question_sql(question, ["1"], catalog.unit), {"kg_units", *question_tables(question)})


def question_tables(question: Question) -> set[str]:
    """The tables that a question reads."""
    universe = question.universe
    names = {entry.table for entry in universe.references} | {entry.table for entry in universe.lookups}
    if universe.table is not None:
        names.add(universe.table)
    stack: list[Expr] = [question.condition, *question.keys]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Exists | PerUnit):
            names |= {expr.table, *(entry.table for entry in expr.lookups)}
        stack += children(expr)
    return names


class _Planner:
    def __init__(self, resolved: Resolved, *, errors: bool) -> None:
        self.resolved = resolved
        self.builders: list[_BlockBuilder] = []
        self.results = Results(self._block, errors=errors)

    def plan(self) -> Plan | Local:
        top = self.resolved.top
        sql = self.results.statement(top)
        names = tuple(output.label for output in top.outputs)
        labels = tuple(output.postgres for output in top.outputs)
        json = tuple(at for at, output in enumerate(top.outputs) if output.is_json)
        if not any(scope.sources for scope in self.resolved.scopes):
            return Local("SELECT", names, sql=sql, labels=labels, json=json)
        for builder in self.builders:
            if not builder.keys and not builder.aggregates:
                reason = "Constants are selected from rows of people"
                raise refused(Rule.RAW_ROWS, reason, builder.scope.node, allow="Add COUNT(*), or leave FROM out")
        blocks = tuple(builder.block() for builder in self.builders)
        public, errors = tuple(sorted(self.results.public)), self.results.errors_of(top)
        return Plan(blocks, sql, names, public, errors, labels=labels, json=json)

    def _block(self, scope: Scope) -> BlockSource:
        if len(self.builders) >= _BLOCKS:
            raise refused(Rule.LIMITS, f"More than {_BLOCKS} blocks", allow="Ask for less at once", code=TOO_COMPLEX)
        builder = _BlockBuilder(self.resolved.catalog, scope, f"kg_block_{len(self.builders) + 1}")
        self.builders.append(builder)

        def leaf(node: exp.Expr) -> exp.Expr | None:
            inner = scope.subqueries.get(id(node))
            if inner is not None:
                return self.results.subquery(scope, node, inner, leaf)
            name = scope.names.get(id(node))
            if name is not None and name.output is not None and name.output.node is not None:
                return exp.Paren(this=self.results.rebuilt(name.output.node, leaf))
            return builder.leaf(node)

        return BlockSource(f"{identifier(builder.name)} AS {builder.alias}", leaf, builder.key_named)


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
        if len(set(sets)) < len(sets):
            allow = "Name each of them once"
            raise refused(Rule.KEYS, "Two grouping sets are the same", margins[0], allow=allow)
        return tuple(sets)

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
        self._check_told_apart(expr, node)
        if any(ref.optional for ref in self.rows.longs(expr)):
            raise refused(Rule.KEYS, "A key of a table joined by LEFT JOIN", node, allow="Use JOIN")
        if expr not in self.keys:
            if len(self.keys) >= _KEYS:
                raise refused(Rule.LIMITS, f"More than {_KEYS} keys", node, code=TOO_COMPLEX)
            self.keys.append(expr)
            self.roles.append(role)
        return self.keys.index(expr)

    def _check_told_apart(self, expr: Expr, node: exp.Expr) -> None:
        """Refuse groups by values that may be equal and written otherwise, as intervals: how is one person's."""
        if expr.kind == "other" and self.catalog.policy.mode == "measured":
            name = node.unalias().sql("duckdb")[:60]
            allow = "Group by numbers, texts, dates or truth values"
            raise refused(Rule.KEYS, f"{name} is of a type whose values are not told apart", node, allow=allow)

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
        free = self.rows.free
        owner = free[0] if len(free) == 1 else None
        if not free and len(self.rows.long) == 1 and not self.rows.long[0].optional:
            owner = self.rows.long[0]
        return self.rows.question(owner, [], self.keys)

    # What nodes mean over the block's relation

    def leaf(self, node: exp.Expr) -> exp.Expr | None:
        """The column of the block's relation that a node is, None if its parts are looked at."""
        if isinstance(node, exp.Window):
            return None
        if isinstance(node, exp.AggFunc | exp.Filter) or is_ranked(node):
            if _of_window(node):
                return None
            return self._aggregate(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if self._may_be_key(node):
            try:
                at = self.keys.index(self.compiler.key(self.frame, node).expr)
            except (Refused, ValueError):
                return None
            if isinstance(node, exp.Cast) and node.to.this == exp.DType.DECIMAL:
                return exp.TryCast(this=self._named(f"key_{at + 1}"), to=node.to.copy())
            return self._as_decimal(self._named(f"key_{at + 1}"), self.keys[at])
        return None

    def _as_decimal(self, column: exp.Expr, key: Expr) -> exp.Expr:
        """A key that DuckDB computes as DECIMAL, as such; it is kept as DOUBLE."""
        digits = self.compiler.digits(key) if isinstance(key, Op) and key.kind == "number" else None
        if digits is None:
            return column
        return exp.TryCast(this=column, to=exp.DataType.build(f"DECIMAL(38, {digits})", dialect="duckdb"))

    def _may_be_key(self, node: exp.Expr) -> bool:
        """Whether it is worth while to look whether a node is a key. Chains are long, and each part of one would be
        compiled as a whole."""
        if not self.keys or isinstance(node, exp.Literal | exp.Paren | exp.Identifier | exp.DataType | exp.Var):
            return False
        if isinstance(node, exp.Cast) and node.to.this not in (exp.DType.VARCHAR, exp.DType.TEXT, exp.DType.DECIMAL):
            return False
        chain = _CHAINS.get(type(node))
        return chain is None or any(isinstance(key, Op) and key.name in (chain, "moved", "round") for key in self.keys)

    def _column(self, node: exp.Column) -> exp.Expr | None:
        above = node.parent
        cast = isinstance(above, exp.Cast) and above.to.this == exp.DType.DATE
        expr = self.compiler.key(self.frame, above if cast and above is not None else node).expr
        if expr not in self.keys:
            allow = "Put it into GROUP BY, or into an aggregate"
            raise refused(Rule.KEYS, f"{node.name[:60]} is no key of the groups", node, allow=allow)
        key = self._named(f"key_{self.keys.index(expr) + 1}")
        if not self.compiler.is_shown_date(self.frame, node):
            return key
        return exp.Cast(this=key, to=exp.DataType.build("date"))

    def key_named(self, name: Name, node: exp.Expr) -> exp.Expr:
        """The key that a name in a subquery above the block stands for."""
        assert name.source is not None
        found = self.compiler.located(self.frame, name.source, fold(name.column))
        expr = self.compiler.bound(*found, "key", node) if found is not None else None
        if expr is None or expr not in self.keys:
            allow = "Put it into GROUP BY"
            raise refused(Rule.KEYS, f"{node.name[:60]} is no key of the groups", node, allow=allow)
        return self._named(f"key_{self.keys.index(expr) + 1}")

    def _named(self, column: str) -> exp.Column:
        return exp.Column(this=exp.to_identifier(column, quoted=True), table=exp.to_identifier(self.alias))

    # Aggregates

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        call, more = node, []
        if isinstance(node, exp.Filter):
            call = node.this
            if isinstance(call, exp.Grouping | exp.GroupingId):
                raise refused(Rule.AGGREGATES, f"{sql_name(call)} with FILTER", node)
            more = list(conjuncts(self.compiler.terms(self.frame).condition(node.expression.this)))
        return self._called(call, more)

    def _called(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        """An aggregate of those whom more conditions choose."""
        if isinstance(call, exp.Grouping | exp.GroupingId):
            return self._told_set(call)
        if isinstance(call, exp.CountIf) and self.catalog.policy.mode == "measured":
            return self._count_rows(call, [*more, *conjuncts(self.compiler.terms(self.frame).condition(call.this))])
        if is_ranked(call) and self.catalog.policy.mode == "measured":
            return self._ranked(call, more)
        if isinstance(call, exp.ApproxDistinct) and self.catalog.policy.mode == "measured":
            self._check_allowed("COUNT_DISTINCT", call)
            return self._count_distinct(call, call.this, more)
        if is_regression(call):
            return self._regression(call, more)
        if type(call) not in AGGREGATES:
            allow = instead_of_aggregate(call, self.catalog.policy)
            raise refused(Rule.AGGREGATES, f"{sql_name(call)} over rows of people", call, allow=allow)
        word, function = AGGREGATES[type(call)]
        distinct = isinstance(call.this, exp.Distinct)
        if distinct and not isinstance(call, exp.Count):
            raise refused(Rule.AGGREGATES, f"{function} of DISTINCT values", call, allow="There is COUNT(DISTINCT ...)")
        word = "COUNT_DISTINCT" if distinct else word
        policy = self.catalog.policy
        self._check_allowed(word, call)
        if distinct:
            if len(call.this.expressions) != 1:
                raise refused(Rule.AGGREGATES, "COUNT(DISTINCT) of several columns", call)
            return self._count_distinct(call, call.this.expressions[0], more)
        if isinstance(call, exp.Count) and counts_all(call):
            return self._count_rows(call, more)
        if function in _BY_CASES and policy.mode == "measured":
            of_cases = self._by_cases(call, function, more)
            if of_cases is not None:
                return self._as_computed(call, of_cases)
        nodes = [call.this, call.expression] if function in _PAIRS else [call.this]
        try:
            values = [self._linear(self.frame, one, function) for one in nodes]
        except Refused:
            computed = self._computed(call, self.frame, nodes, function, more) if policy.mode == "measured" else None
            if computed is None and function == "COUNT" and policy.mode == "measured":
                return self._count_of(call, more)
            if computed is None:
                raise
            return self._as_computed(call, computed)
        if any(isinstance(value.column, PerUnit) for value in values):
            return self._over_units(call, function, values, more)
        if len(values) == 2:
            return self._pair(call, function, values, more)
        return self._as_computed(call, self._single(call, function, values[0], more))

    def _as_computed(self, call: exp.Expr, made: exp.Expr) -> exp.Expr:
        """A sum as DOUBLE, where DuckDB computes what is added up so."""
        if not isinstance(call, exp.Sum) or not self._is_double(Written(self.frame, call.this)):
            return made
        return _double(made)

    def _count_of(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        """How many rows, or people, have a value in what is computed."""
        expr = self.compiler.terms(self.frame).value(call.this)
        owners = self.rows.longs(expr)
        owner = next(iter(owners), None)
        if len(owners) > 1 or not self.rows.single(owner):
            raise self.rows.repeats(call)
        there = Op("not", (Op("is null", (expr,)),))
        return self._add("COUNT", (), self.rows.question(owner, [*more, there], self.keys, call))

    def _told_set(self, call: exp.Expr) -> exp.Expr:
        """GROUPING: a bit for each key, the last one's the lowest; 1 where a group is not by it."""
        places = [self.compiler.key(self.frame, one).expr for one in call.expressions]
        if not places or any(one not in self.keys for one in places):
            raise refused(Rule.KEYS, f"{sql_name(call)} takes keys of GROUP BY", call)
        at = [self.keys.index(one) for one in places]
        bits = [sum((key not in chosen) << place for place, key in enumerate(reversed(at))) for chosen in self.sets]
        if len(self.sets) == 1:
            return exp.Literal.number(bits[0])
        whens = [
            exp.If(this=exp.EQ(this=self._named(SET), expression=exp.Literal.number(one)), true=exp.Literal.number(bit))
            for one, bit in enumerate(bits)
        ]
        return exp.Case(ifs=whens)

    def _regression(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        """A line through the values of two columns, of whom has both."""
        nodes = [call.this, call.expression]
        if None in nodes:
            raise refused(Rule.ARGUMENTS, f"{sql_name(call)} of one value", call, allow="It takes two: y, x")
        values = [self._linear(self.frame, one, "SUM") for one in nodes]
        there: list[Expr] = [Op("not", (Op("is null", (value.column,)),)) for value in values]
        if any(isinstance(value.column, PerUnit) for value in values):
            allow = "Over values of people there are SUM, AVG, VAR and quantiles"
            raise refused(Rule.PER_UNIT, f"{sql_name(call)} over a value per person", call, allow=allow)
        return regression(call, lambda aggregate: self._called(aggregate, [*more, *there]))

    def _is_double(self, written: Written) -> bool:
        """Whether an expression divides, or casts to a type of floating point."""
        for node in written.node.walk():
            if isinstance(node, exp.Div) or (isinstance(node, exp.Cast) and node.to.this in _FLOATING):
                return True
            if isinstance(node, exp.Literal) and not node.is_string and "e" in str(node.this).lower():
                return True
            if isinstance(node, exp.Column) and self.compiler.locate(written.frame, node) is None:
                inner = self.compiler.made_of(written.frame, node) if id(node) in written.frame.scope.names else None
                if inner is not None and self._is_double(inner):
                    return True
        return False

    def _check_allowed(self, word: str, call: exp.Expr) -> None:
        """Refuse an aggregate that the mode does not answer, or the policy does not list."""
        policy = self.catalog.policy
        if word not in ANSWERED[policy.mode]:
            reason = f"Mode {policy.mode} does not answer {word}"
            raise refused(Rule.AGGREGATES, reason, call, allow=_INSTEAD, code=NOT_PERMITTED)
        if word not in policy.aggregates:
            raise refused(
                Rule.AGGREGATES,
                f"{word} over rows of people",
                call,
                allow=f"aggregates in the policy would allow it: [..., {word}]",
                code=NOT_PERMITTED,
            )

    def _ranked(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        """A median, quantile, mode or histogram."""
        found = ranked(call)
        self._check_allowed(found.word, call)
        function, node = found.function, found.argument
        if found.function in QUANTILES:
            of_dates = [self._of_dates(call, function, node, fraction, more) for fraction in found.fractions]
            dates = [one for one in of_dates if one is not None]
            if dates:
                return exp.Array(expressions=dates) if found.several else dates[0]
        if found.bins:
            return self._in_bins(call, node, found.bins, more)
        located = self.compiler.locate(self.frame, node)
        measure = located is not None and self.compiler.role(*located) == "measure"
        if function == "MODE" or (function in COUNTED and not measure):
            expr, owner = self._told_apart(node, call)
            return self._add(function, (_Argument(expr),), self.rows.question(owner, more, self.keys, call))
        function = BINNED if function in COUNTED else function
        if isinstance(call, exp.Min | exp.Max):
            return self._end(call, node, found.fractions[0], more)
        parts = [self._of_rank(call, function, node, fraction, more) for fraction in found.fractions or (None,)]
        return exp.Array(expressions=parts) if found.several else parts[0]

    def _end(self, call: exp.Expr, node: exp.Expr, fraction: float, more: list[Expr]) -> exp.Expr:
        """The least or the greatest value that enough people reach; as a whole number, of whole numbers."""
        located = self.compiler.locate(self.frame, node)
        kind = located.column.kind if located is not None else self._kind_of_value(node)
        if kind not in NUMERIC:
            allow = "Group by the column, and count: the keys that are shown have an order"
            raise refused(Rule.ARGUMENTS, f"{sql_name(call)} of what is no number and no date", call, allow=allow)
        made = self._of_rank(call, "QUANTILE_DISC", node, fraction, more)
        return made if kind == "number" else exp.TryCast(this=made, to=exp.DataType.build("bigint"))

    def _kind_of_value(self, node: exp.Expr) -> str:
        """Whether what a person has by their rows is a whole number; of another expression that it is a number."""
        try:
            column = self._linear(self.frame, node, "MAX").column
        except Refused:
            return "number"
        return "integer" if isinstance(column, PerUnit) and column.kind == "integer" else "number"

    def _of_dates(
        self, call: exp.Expr, function: str, node: exp.Expr, fraction: float, more: list[Expr]
    ) -> exp.Expr | None:
        """A quantile of dates, as they are shown, from that of the days since one day; None of what is no date."""
        cut_off = truncation(node.unnest())
        if cut_off is not None:
            value, grain, kind = self.compiler.key(self.frame, node).expr, cut_off.unit, "timestamp"
        else:
            try:
                of = self.compiler.terms(self.frame, "argument").operand(node)
            except Refused:
                return None
            grain = str(of.args[0].value) if isinstance(of, Op) and of.name == GRAIN else ""  # type: ignore[union-attr]
            if not grain and of.kind != "date":
                return None
            value, kind = cut(of) if isinstance(of, Op) and grain else of, of.kind
        owners = self.rows.longs(value)
        owner = next(iter(owners), None)
        if len(owners) > 1 or not self.rows.single(owner):
            return None
        days = Op("date_diff", (Literal("day", "text"), Literal(_FIRST_DAY, "date"), value), "integer")
        question = self.rows.question(owner, more, self.keys, call)
        made = self._add(function, (_Argument(Op(MEASURE, (days,), "number")),), question, fraction=fraction)
        return day_of(made, grain or "day", kind, discrete=function == "QUANTILE_DISC")

    def _in_bins(self, call: exp.Expr, node: exp.Expr, bins: tuple[Literal, ...], more: list[Expr]) -> exp.Expr:
        """A histogram of the bins that end at some numbers: how many have each, and how many are beyond."""
        value = self.compiler.terms(self.frame).number(node)  # a condition on it may stand there
        self._check_beyond(value, "HISTOGRAM")
        _, owner = self._told_apart(node, call)
        counts: list[exp.Expr] = []
        for at, end in enumerate(bins):
            within: list[Expr] = [Op("<=", (value, end))]
            within += [Op(">", (value, bins[at - 1]))] if at else []
            counts.append(self._add("COUNT", (), self.rows.question(owner, [*more, *within], self.keys, call)))
        beyond = Op(">", (value, bins[-1]))
        counts.append(self._add("COUNT", (), self.rows.question(owner, [*more, beyond], self.keys, call)))
        whole = value.kind == "integer"
        ends: list[exp.Expr] = [exp.Literal.number(str(end.value)) for end in bins]
        ends.append(exp.Literal.number(2**63 - 1) if whole else exp.Literal.string("inf"))
        type_ = exp.DataType.build("bigint" if whole else "double")
        ends = [exp.Cast(this=end, to=type_.copy()) for end in ends]
        return exp.Anonymous(this="map", expressions=[exp.Array(expressions=ends), exp.Array(expressions=counts)])

    def _of_rank(
        self, call: exp.Expr, function: str, node: exp.Expr, fraction: float | None, more: list[Expr]
    ) -> exp.Expr:
        try:
            value = self._linear(self.frame, node, function)
        except Refused:
            computed = self._computed(call, self.frame, [node], function, more, fraction=fraction)
            if computed is None:
                raise
            return computed
        if isinstance(value.column, PerUnit):
            return self._over_units(call, function, [value], more, fraction=fraction)
        return self._single(call, function, value, more, fraction=fraction)

    def _told_apart(self, node: exp.Expr, call: exp.Expr) -> tuple[Expr, Ref | None]:
        """An expression whose values are counted one by one, and whose it is: a long table's row's, or (None) a
        unit's."""
        expr = self.compiler.key(self.frame, node).expr
        self._check_told_apart(expr, node)
        owners = self.rows.longs(expr)
        owner = next(iter(owners), None)
        if len(owners) > 1 or not self.rows.single(owner):
            raise self.rows.repeats(call)
        return expr, owner

    def _count_rows(self, call: exp.Expr, more: list[Expr]) -> exp.Expr:
        """How many rows the FROM has that more conditions choose."""
        owner = self.rows.counted(call)
        left_out = [ref for ref in self.rows.long if ref.optional]
        if left_out:
            return self._with_nobody(left_out, owner, more, call)
        return self._add("COUNT", (), self.rows.question(owner, more, self.keys, call))

    def _with_nobody(self, left: list[Ref], owner: Ref | None, more: list[Expr], call: exp.Expr) -> exp.Expr:
        """COUNT(*) over LEFT JOIN of a long table: its rows, and one of each person who has none."""
        if owner is not None or len(left) > 1:
            raise refused(Rule.ARGUMENTS, "COUNT(*) over LEFT JOIN", call, allow="Count a column, or people")
        (ref,) = left
        if isinstance(call, exp.Count) and counts_all(call) and any(self.rows.longs(part) for part in more):
            raise refused(Rule.ARGUMENTS, "COUNT(*) over LEFT JOIN with FILTER", call, allow="Count a column")
        of_nobody = self.rows.question(None, [*more, self.rows.without(ref)], self.keys, call)
        of_rows = self.rows.question(ref, more, self.keys, call)
        return self._together([(1, Aggregate("", "COUNT", (), (), question)) for question in (of_rows, of_nobody)])

    def _by_cases(self, call: exp.Expr, function: str, more: list[Expr]) -> exp.Expr | None:
        """An aggregate of CASE, of a condition, of a constant or of the unit, from counts and sums of those whom each
        branch chooses; None of another one."""
        found = self.compiler.locate(self.frame, call.this)
        if function == "COUNT" and found is not None and found.column.role == "unit" and found.ref.when is not None:
            return self._count_rows(call, [*more, found.ref.when])
        if (
            function == "COUNT"
            and found is not None
            and found.column.role in ("unit", "key")
            and (found.ref.youngest.long or not found.ref.youngest.optional)
        ):
            return self._add("COUNT", (), self.rows.question(self._owner(found.ref, call), more, self.keys, call))
        frame, argument = self._spelt_out(call.this)
        parts = branches(argument) or self._of_truth(frame, argument)
        if parts is None:
            value = constant(argument)
            if value is None or value.kind not in NUMERIC or function == "COUNT":
                return None
            parts = [Branch(None, argument)]
        if self._are_of_chosen_rows(parts, more):
            computed = self._computed(call, frame, [argument], function, more)
            if computed is not None:
                return computed
        terms = self.compiler.terms(frame)
        before: list[Expr] = []
        sums: list[tuple[float, Aggregate]] = []
        counts: list[tuple[float, Aggregate]] = []
        for choice, taken in parts:
            chosen = [*more, *before]
            if choice is not None:
                operand = choice.operand
                own = terms.condition(choice.node) if operand is None else terms.equal(operand, choice.node)
                own = own if choice.wanted else Op("is false", (own,))
                if normal(Op("is true", (own,))) == Literal(False, "boolean"):
                    continue
                chosen.append(own)
                before.append(Op("not", (Op("is true", (own,)),)))
            if taken is None:
                continue
            number = constant(taken)
            if function != "COUNT" and number is not None and number.kind not in (*NUMERIC, "boolean"):
                raise refused(Rule.ARGUMENTS, f"{function} of what is no number", call)
            if number is None and function == "SUM":
                sums += [(1, one) for one in self._case(call, "SUM", frame, taken, chosen)]
                continue
            of_whom = self._case(call, "COUNT", frame, taken, chosen)
            counts += [(1, one) for one in of_whom]
            if function == "COUNT" or (number is not None and number.value == 0):
                continue
            if number is None:
                sums += [(1, one) for one in self._case(call, "SUM", frame, taken, chosen)]
            else:
                factor = number.value
                assert isinstance(factor, int | float)
                if abs(factor) > _LARGEST:
                    raise refused(Rule.ARGUMENTS, "An argument with constants out of range", call)
                sums += [(int(factor) if isinstance(factor, bool) else factor, one) for one in of_whom]
        if function == "COUNT":
            return self._together(counts)
        if function == "SUM":
            return self._together(sums)
        everybody = all(taken is not None and constant(taken) is not None for _, taken in parts)
        if everybody and parts[-1].choice is None:
            counts = [(1, one) for one in self._case(call, "COUNT", frame, None, more)]
        whole = self._together(counts)
        return exp.Paren(
            this=exp.Div(
                this=_double(self._together(sums)),
                expression=exp.Nullif(this=whole, expression=exp.Literal.number(0)),
                typed=False,
                safe=False,
            )
        )

    def _of_truth(self, frame: Frame, node: exp.Expr) -> list[Branch] | None:
        """The branches of a column of truth values that is cast to a number; None of another argument."""
        if not isinstance(node, exp.Cast) or isinstance(node, exp.TryCast):
            return None
        found = self.compiler.locate(frame, node.this)
        if found is None or found.column.kind != "boolean" or node.to.this not in exp.DataType.NUMERIC_TYPES:
            return None
        one, zero = (exp.Literal.number(number) for number in (1, 0))
        return [Branch(Choice(node.this), one), Branch(Choice(node.this, wanted=False), zero)]

    def _are_of_chosen_rows(self, parts: list[Branch], more: list[Expr]) -> bool:
        """Whether branches take values of rows that conditions choose: then one sum of what each row gives is measured,
        and not one for each branch."""
        values = [part.value for part in parts if part.value is not None]
        return bool(self.rows.long and (self.rows.conditions or more)) and any(constant(one) is None for one in values)

    def _spelt_out(self, node: exp.Expr) -> Written:
        """An argument where it is written: a name of a subquery's column may stand for more than a column."""
        found = Written(self.frame, node.unalias().unnest())
        while isinstance(found.node, exp.Column) and self.compiler.locate(*found) is None:
            made = self.compiler.made_of(*found)
            if made is None:
                break
            found = Written(made.frame, made.node.unalias().unnest())
        return found

    def _case(
        self, call: exp.Expr, function: str, frame: Frame, value: exp.Expr | None, chosen: list[Expr]
    ) -> list[Aggregate]:
        """A count or a sum of those whom a branch chooses; over LEFT JOIN a count is two. value: None, or a constant,
        of all of them."""
        kept, self.aggregates = self.aggregates, {}
        try:
            self._add_case(call, function, frame, value, chosen)
            return [part for one in self.aggregates for _, part in parts_of(one)]
        finally:
            self.aggregates = kept

    def _add_case(
        self, call: exp.Expr, function: str, frame: Frame, value: exp.Expr | None, chosen: list[Expr]
    ) -> exp.Expr:
        if value is None or constant(value) is not None:
            return self._count_rows(call, chosen)
        try:
            found = self._linear(frame, value, function)
        except Refused:
            computed = self._computed(call, frame, [value], function, chosen)
            if computed is None:
                raise
            return computed
        if isinstance(found.column, PerUnit):
            return self._over_units(call, function, [found], chosen)
        return self._single(call, function, found, chosen)

    def _together(self, parts: list[tuple[float, Aggregate]]) -> exp.Expr:
        """The sum of some aggregates, each times a number, as one: so its standard error is known, and what noise hides
        of one part does not hide the others. 0 of none."""
        if not parts:
            return exp.Literal.number(0)
        if len(parts) == 1 and parts[0][0] == 1:
            return self._named_of(parts[0][1])
        if len(parts) > _AGGREGATES:
            raise refused(Rule.LIMITS, f"CASE of more than {_AGGREGATES} branches", code=TOO_COMPLEX)
        whole = all(isinstance(factor, int) and part.function == "COUNT" for factor, part in parts)
        function = "COMBINED_WHOLE" if whole else "COMBINED"
        return self._named_of(Aggregate("", function, (), (), parts[0][1].question, parts=tuple(parts)))

    def _computed(
        self,
        call: exp.Expr,
        frame: Frame,
        nodes: list[exp.Expr],
        function: str,
        more: list[Expr],
        *,
        fraction: float | None = None,
    ) -> exp.Expr | None:
        """An aggregate of what is computed from several columns of one row, or of one person; None where it is another
        thing."""
        arguments: list[_Argument] = []
        owners: set[Ref] = set()
        for node in nodes:
            try:
                expr = self.compiler.terms(frame, "argument").value(node)
            except Refused:
                return None
            of_units = has_per_unit(expr) and not self.rows.longs(expr)
            if expr.kind not in NUMERIC or (has_per_unit(expr) and not of_units):
                return None
            if not of_units and not any(True for _ in bounds(expr)):
                return None
            if not _in_range(normal(expr)):
                return None
            owners |= self.rows.longs(expr)
            arguments.append(_Argument(Op(MEASURE, (expr,), "number")))
        owner = next(iter(owners), None)
        if len(owners) > 1 or not self.rows.single(owner):
            raise self.rows.repeats(call)
        question = self.rows.question(owner, more, self.keys, call)
        return self._add(function, tuple(arguments), question, fraction=fraction)

    def _add(
        self,
        function: str,
        arguments: tuple[_Argument, ...],
        question: Question,
        *,
        distinct: bool = False,
        pivoted: tuple[PivotedArgument, ...] = (),
        fraction: float | None = None,
    ) -> exp.Column:
        for one in arguments:
            self._check_beyond(one.column, function)
        columns = tuple(stripped(one.column) for one in arguments)
        scales = tuple(argument.scale for argument in arguments)
        return self._named_of(Aggregate("", function, columns, scales, question, distinct, pivoted, fraction))

    def _check_beyond(self, value: Expr, function: str) -> None:
        """Refuse a value that is one, too, where LEFT JOIN finds no row: only rows are read."""
        for ref in self.rows.longs(value):
            if ref.optional and self.rows.beyond(value, ref) not in (_NOTHING, *(_ZEROS if function == "SUM" else ())):
                allow = "Take the column itself, or use JOIN"
                raise refused(Rule.JOINS, "A value that is not NULL where LEFT JOIN finds no row", allow=allow)

    def _named_of(self, made: Aggregate) -> exp.Column:
        if made not in self.aggregates:
            if len(self.aggregates) >= _AGGREGATES:
                raise refused(Rule.LIMITS, f"More than {_AGGREGATES} aggregates", code=TOO_COMPLEX)
            self.aggregates[made] = f"value_{len(self.aggregates) + 1}"
        return self._named(self.aggregates[made])

    def _count_distinct(self, call: exp.Expr, node: exp.Expr, more: list[Expr]) -> exp.Expr:
        measured = self.catalog.policy.mode == "measured"
        parts = branches(node) if measured else None
        if parts is not None and len(parts) == 2 and parts[0].value is not None and parts[1].value is None:
            choice = parts[0].choice
            assert choice is not None
            chosen = self.compiler.locate(self.frame, parts[0].value)
            if chosen is not None and chosen.column.role == "unit" and choice.operand is None:
                more = [*more, *conjuncts(self.compiler.terms(self.frame).condition(choice.node))]
                node = parts[0].value
        found = self.compiler.locate(self.frame, node)
        if found is None:
            if not measured:
                raise refused(Rule.ARGUMENTS, "COUNT(DISTINCT) takes a column", call)
            expr, owner = self._told_apart(node, call)
            question = self.rows.question(owner, more, self.keys, call)
            return self._add("COUNT_DISTINCT", (_Argument(expr),), question, distinct=True)
        ref, column = found
        if column.role == "unit":
            assert ref.youngest in self.rows.refs, "there is no query around a block"
            if ref.when is not None:
                return self._count_units(call, [*more, ref.when])
            if ref.youngest.optional and ref.youngest.long:
                there = Op("not", (self.rows.without(ref.youngest),))
                return self._count_units(call, [*more, there])
            if ref.youngest.optional:
                raise refused(Rule.ARGUMENTS, "COUNT(DISTINCT) of a table joined by LEFT JOIN", call, allow="Use JOIN")
            return self._count_units(call, more)
        if column.role == "key" and ref.child is None and ref.table.names_rows_by(column):
            return self._add("COUNT", (), self.rows.question(self._owner(ref, call), more, self.keys, call))
        child = self._names_parents(ref, column) if measured else None
        if child is not None and self.rows.single(child):
            question_ = self.rows.of_parents(child, more, self.keys, call)
            if question_ is not None:
                return self._add("COUNT", (), question_)
        role = self.compiler.role(ref, column)
        if role == "coarsened" and measured and column.kind == "date":
            expr, owner = self._told_apart(node, call)
            question = self.rows.question(owner, more, self.keys, call)
            return self._add("COUNT_DISTINCT", (_Argument(expr),), question, distinct=True)
        bound = self.compiler.bound(ref, column, "condition" if role == "measure" else "key", node)
        assert isinstance(bound, Bound)
        self._check_told_apart(bound, node)
        source = self._source(ref, bound)
        if source is not None:
            return self._pivoted(call, "COUNT_DISTINCT", source, _AS_IT_IS, more, distinct=True)
        owner = self._owner(ref, call)
        question = self.rows.question(owner, more, self.keys, call)
        return self._add("COUNT_DISTINCT", (_Argument(bound),), question, distinct=True)

    def _names_parents(self, ref: Ref, column: Column) -> Ref | None:
        """The mention whose rows belong to those that a column names; None where it names no others."""
        child = ref.youngest
        of = child.table.parent
        if of is None or len(of.keys) != 1 or child.optional or child not in self.rows.refs:
            return None
        ((here, there),) = of.keys
        if ref is child:
            return child if fold(column.name) == fold(here) else None
        return child if ref.child is child and fold(column.name) == fold(there) else None

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
        named = {
            entry.found.id
            for entry in self.rows.lookups
            if entry.by is owner and any(left.column == unique for left, _ in entry.pairs)
        }
        if any(isinstance(key, Bound) and key.ref in named for key in self.keys):
            return self._add("COUNT_UNITS", (), question)
        if self.catalog.policy.mode == "measured":
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

    def _single(
        self, call: exp.Expr, function: str, value: _Value, more: list[Expr], *, fraction: float | None = None
    ) -> exp.Expr:
        column, scale = value
        assert isinstance(column, Bound)
        ref = next(ref for ref in self.rows.refs if ref.id == column.ref)
        if function == "COUNT":
            scale = _AS_IT_IS
        source = self._source(ref, column)
        if source is not None:
            return self._pivoted(call, function, source, scale, more, fraction=fraction)
        question = self.rows.question(self._owner(ref, call), more, self.keys, call)
        return self._add(function, (_Argument(column, scale),), question, fraction=fraction)

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
        fraction: float | None = None,
    ) -> exp.Expr:
        """A pivot's column is asked for where it comes from: among the rows of the long table with its key."""
        if not self.rows.single(None):
            raise self.rows.repeats(call)
        units = self.rows.question(None, more, self.keys, call)
        condition = conjunction([*conjuncts(units.condition), Op("=", (source.key, source.constant))])
        universe = replace(units.universe, kind="rows", table=source.value.table)
        question = Question(universe, condition, units.keys)
        arguments = (_Argument(source.value, scale),)
        return self._add(function, arguments, question, distinct=distinct, fraction=fraction)

    def _pair(self, call: exp.Expr, function: str, values: list[_Value], more: list[Expr]) -> exp.Expr:
        """Two values at once: of one row, or of one unit, which may have them in a pivot."""
        pair = [(value.column, value.scale) for value in values if isinstance(value.column, Bound)]
        refs = [next(ref for ref in self.rows.refs if ref.id == column.ref) for column, _ in pair]
        roots = {self.rows.root(ref) for ref in refs}
        if len(roots) == 1 and (only := roots.pop()).long:
            question = self.rows.question(self._owner(only, call), more, self.keys, call)
            return self._add(function, tuple(_Argument(*one) for one in pair), question)
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

    def _over_units(
        self,
        call: exp.Expr,
        function: str,
        values: list[_Value],
        more: list[Expr],
        *,
        fraction: float | None = None,
    ) -> exp.Expr:
        """SUM and AVG over a value that units have by their rows: the sum over rows, divided by units. Others over the
        values themselves."""
        value, scale = values[0]
        single = isinstance(value, PerUnit) and value.function in ("MIN", "MAX", "COUNT_DISTINCT")
        if (function in _OF_UNITS or single) and len(values) == 1 and self.catalog.policy.mode == "measured":
            if not self.rows.single(None):
                raise self.rows.repeats(call)
            argument = _Argument(Op(MEASURE, (value,), "number"), scale)
            return self._add(function, (argument,), self.rows.question(None, more, self.keys, call), fraction=fraction)
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
        lookups = {entry.right.table: entry for entry in units.universe.lookups}
        for entry in inner.lookups:  # what is looked up in several ways is named by the way
            known = lookups.setdefault(entry.right.table, entry)
            lookups[entry.right.table] = replace(known, required=known.required or entry.required)
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
            if isinstance(node, exp.DateDiff):
                self.compiler.terms(frame, "argument").value(node)  # says which date does not tell it
            allow = argument_instead(node, function, self.catalog.policy)
            raise refused(Rule.ARGUMENTS, f"{called(node)} as the argument of {function}", node, allow=allow)
        found = self.compiler.locate(frame, node)
        if found is not None:
            if function != "COUNT" and not found.ref.table.protected and self.catalog.policy.mode != "measured":
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
        allow = argument_instead(node, function, self.catalog.policy)
        if (left is None) == (right is None) or (isinstance(node, exp.Div) and right is None):
            raise refused(Rule.ARGUMENTS, f"{called(node)} as the argument of {function}", node, allow=allow)
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
        if not all(abs(value) <= _LARGEST for value in (a, b)) or abs(a) < 1e-15:
            raise refused(Rule.ARGUMENTS, "An argument with constants out of range", node)
        return Scale(a, b)


def _in_range(expr: Expr) -> bool:
    """Whether arithmetic is with constants that leave something to be added up: none that is NULL or too large, no
    division by zero and no product with it."""
    if isinstance(expr, Literal):
        return not isinstance(expr.value, int | float) or abs(expr.value) <= _LARGEST
    if not isinstance(expr, Op):
        return True
    constants = [arg.value for arg in expr.args if isinstance(arg, Literal)]
    if expr.name in ("+", "-", "*", "/", "%", "neg") and None in constants:
        return False
    if (expr.name == "*" and 0 in constants) or (expr.name in ("/", "%") and expr.args[1] in _ZEROS):
        return False
    return all(_in_range(arg) for arg in expr.args)


def _of_window(node: exp.Expr) -> bool:
    """Whether an aggregate is the one that OVER belongs to."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def day_of(days: exp.Expr, grain: str, kind: str, *, discrete: bool) -> exp.Expr:
    """The day, or the moment, that so many days after the first one are; of a discrete quantile the beginning of a part
    of the calendar."""
    first, last = (exp.Literal.number(str(end)) for end in _DAYS)
    within = exp.Least(this=exp.Greatest(this=days, expressions=[first]), expressions=[last])
    if discrete:
        within = exp.Round(this=within)  # type: ignore[assignment]
    seconds = exp.Mul(this=within, expression=exp.Literal.number(86_400))
    start = exp.Cast(this=exp.Literal.string(_FIRST_DAY.isoformat()), to=exp.DataType.build("timestamp"))
    moment: exp.Expr = exp.Add(this=start, expression=exp.Anonymous(this="to_seconds", expressions=[seconds]))
    if not discrete:
        return exp.Paren(this=moment)
    moment = exp.TimestampTrunc(this=exp.Paren(this=moment), unit=exp.Var(this=grain.upper()))
    return exp.Cast(this=moment, to=exp.DataType.build("date")) if kind == "date" else moment


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build("double"))
