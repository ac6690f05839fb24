"""Writes what stands above the blocks: SQL over their relations and over public tables.

Every query becomes a CTE with columns c1, c2, ...; names are those of this module, so that nothing the analyst named
can mean another thing. Expressions are rebuilt node by node from the allow-lists.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.allowed import JOINS_OF_RESULTS, JoinKind
from kgather._guard.engine import BESIDE, KINDS
from kgather._guard.names import Name, Output, Scope, Source, Union
from kgather._guard.policy import fold
from kgather._guard.refused import TOO_COMPLEX, Rule, refused
from kgather._guard.render import identifier

Leaf = Callable[[exp.Expr], exp.Expr | None]


class BlockSource(NamedTuple):
    """What a SELECT over rows of people reads from: its block's relation, what its nodes mean over it, and what a name
    of a subquery inside means that is one of its keys."""

    relation: str
    leaf: Leaf
    key: Callable[[Name, exp.Expr], exp.Expr]


class _Cte(NamedTuple):
    name: str
    text: str


BlockSelect = Callable[[Scope], BlockSource]

_NODES = 20_000
"""How many nodes the rebuilt statement may have, after aliases are spelt out."""


class Results:
    """Writes queries. block: for a SELECT over rows of people, its relation and what its nodes mean over it. errors:
    write error and kind of each column, where a column is an aggregate of a block as it is, behind all columns."""

    def __init__(self, block: BlockSelect, *, errors: bool = False) -> None:
        self.block = block
        self.errors = errors
        self.public: set[str] = set()
        self.ctes: list[_Cte] = []
        self.written: dict[int, str] = {}
        self.aliases: dict[int, str] = {}
        self._with_errors: dict[int, tuple[int, ...]] = {}
        self.keys: dict[int, Callable[[Name, exp.Expr], exp.Expr]] = {}
        self.nodes = 0
        self.count = 0

    def statement(self, query: Scope | Union) -> str:
        """The whole statement, its columns named as the analyst named them."""
        sql = self.query(query, tuple(output.label for output in query.outputs), errors=self.errors)
        with_ = ", ".join(f"{identifier(name)} AS ({text})" for name, text in self.ctes)
        return f"WITH {with_} {sql}" if with_ else sql

    def errors_of(self, query: Scope | Union) -> tuple[int, ...]:
        """The positions of columns of a written query behind which their errors and kinds stand, in this order."""
        return self._with_errors.get(id(query), ())

    def query(self, query: Scope | Union, names: tuple[str, ...] | None = None, *, errors: bool = False) -> str:
        """One query; names: of its columns, c1, c2, ... if not given."""
        columns = names or tuple(f"c{at}" for at in range(1, len(query.outputs) + 1))
        if isinstance(query, Union):
            return self._union(query, columns)
        return self._block(query, columns, errors) if query.raw else self._select(query, columns, errors)

    def _cte(self, query: Scope | Union) -> str:
        """The name of a query's CTE, which is written once."""
        if id(query) not in self.written:
            text = self.query(query, errors=self.errors)
            name = f"kg_query_{len(self.ctes) + 1}"
            self.ctes.append(_Cte(name, text))
            self.written[id(query)] = name
        return self.written[id(query)]

    def _union(self, query: Union, columns: tuple[str, ...]) -> str:
        inner = []
        for branch in query.branches:
            name = identifier(self._cte(branch))
            own = ", ".join(f"c{at}" for at in range(1, len(branch.outputs) + 1)) if self.errors_of(branch) else "*"
            inner.append(f"SELECT {own} FROM {name}")
        self.count += 1
        alias = f"t{self.count}"
        listed = ", ".join(f"{alias}.c{at} AS {identifier(name)}" for at, name in enumerate(columns, 1))
        tail = self._union_tail(query, alias)
        return f"SELECT {listed} FROM ({f' {query.word} '.join(inner)}) AS {alias}{tail}"

    def _union_tail(self, query: Union, alias: str) -> str:
        parts = []
        order = query.node.args.get("order")
        for ordered in order.expressions if order is not None else ():
            node = ordered.this.unnest()
            every = _all_of(ordered, len(query.outputs))
            if every:
                parts += [_direction(ordered, f"{alias}.c{at}") for at in every]
                continue
            if isinstance(node, exp.Column) and node.args.get("table") is None:
                key = fold(node.name)
                found = [at for at, output in enumerate(query.outputs, 1) if output.key == key]
                found = found or [at for at, output in enumerate(query.outputs, 1) if fold(output.postgres) == key]
            elif isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
                found = [at for at in range(1, len(query.outputs) + 1) if str(at) == node.this]
            else:
                found = []
            if len(found) != 1:
                raise refused(Rule.RESULTS, "ORDER BY of a set operation names a column or its position", node)
            parts.append(_direction(ordered, f"{alias}.c{found[0]}"))
        sql = f" ORDER BY {', '.join(parts)}" if parts else ""
        return sql + _limits(query.node)

    def _select(self, scope: Scope, columns: tuple[str, ...], errors: bool) -> str:
        def leaf(node: exp.Expr) -> exp.Expr | None:
            inner = scope.subqueries.get(id(node))
            if inner is not None:
                return self.subquery(scope, node, inner, leaf)
            return self._column(scope, node, leaf) if isinstance(node, exp.Column) else None

        return self._written(scope, columns, self._from(scope, leaf), leaf, group=True, errors=errors)

    def _block(self, scope: Scope, columns: tuple[str, ...], errors: bool) -> str:
        relation, leaf, self.keys[id(scope)] = self.block(scope)
        return self._written(scope, columns, f" FROM {relation}", leaf, group=False, errors=errors)

    def _written(
        self, scope: Scope, columns: tuple[str, ...], from_: str, leaf: Leaf, *, group: bool, errors: bool
    ) -> str:
        node = scope.node
        outputs = [self._output(scope, output, leaf) for output in scope.outputs]
        listed = [f"{self.sql(one)} AS {identifier(name)}" for one, name in zip(outputs, columns, strict=True)]
        if not listed:
            raise refused(Rule.RESULTS, "A SELECT of nothing", node)
        if errors:
            listed += self._errors(scope, outputs, columns)
        sql = f"SELECT {'DISTINCT ' if node.args.get('distinct') is not None else ''}{', '.join(listed)}{from_}"
        where = node.args.get("where")
        if where is not None and group:
            sql += f" WHERE {self.sql(self.rebuilt(where.this, leaf))}"
        if group:
            sql += self._group(scope, leaf)
        having = node.args.get("having")
        if having is not None:  # over the relation of a block its groups are rows
            sql += f" {'HAVING' if group else 'WHERE'} {self.sql(self.rebuilt(having.this, leaf))}"
        qualify = node.args.get("qualify")
        if qualify is not None:
            sql += f" QUALIFY {self.sql(self.rebuilt(qualify.this, leaf))}"
        order = node.args.get("order")
        if order is not None:
            keys = [
                _direction(ordered, key)
                for ordered in order.expressions
                for key in _all_of(ordered, len(outputs)) or [self._ordered(scope, ordered.this, leaf)]
            ]
            sql += f" ORDER BY {', '.join(keys)}"
        return sql + _limits(node)

    def _errors(self, scope: Scope, outputs: Sequence[exp.Expr], columns: Sequence[str]) -> list[str]:
        """Error and kind of the columns that have them. A SELECT that makes one row of several has none."""
        if scope.node.args.get("distinct") is not None or (scope.aggregated and not scope.raw):
            return []
        found = {at: told for at, one in enumerate(outputs) if (told := self._error(scope, one)) is not None}
        self._with_errors[id(scope)] = tuple(found)
        return [
            f"{sql} AS {identifier(columns[at] + beside)}"
            for at, told in found.items()
            for sql, beside in zip(told, BESIDE, strict=True)
        ]

    def _error(self, scope: Scope, node: exp.Expr) -> tuple[str, str] | None:
        """SQL of a column's standard error and kind: of an aggregate of a block as it is, or of the ratio of two."""
        node = node.unnest()
        if not isinstance(node, exp.Div):
            node = _without_double(node)
            return self._own_error(node) if self._has_error(scope, node) else None
        parts = [_without_casts(part) for part in (node.this, node.expression)]
        if not all(self._has_error(scope, part) for part in parts):
            return None
        (above, of_above), (below, of_below) = (self._own_error(part) for part in parts)
        over, under = (f"CAST({self.sql(part)} AS DOUBLE)" for part in parts)
        under = f"NULLIF({under}, 0)"
        error = f"sqrt({above} * {above} + pow({over} / {under} * {below}, 2)) / abs({under})"
        return error, _worse(of_above, of_below)

    def _own_error(self, node: exp.Expr) -> tuple[str, str]:
        error, kind = (self.sql(exp.column(node.name + beside, node.args["table"], quoted=True)) for beside in BESIDE)
        return error, kind

    def _has_error(self, scope: Scope, node: exp.Expr) -> bool:
        """Whether a column's value is an aggregate of a block, as it is."""
        if not isinstance(node, exp.Column):
            return False
        if scope.raw:
            return node.name.startswith("value_")
        queries = (one.query for one in scope.sources if self.aliases.get(id(one)) == node.table)
        return any(query is not None and int(node.name[1:]) - 1 in self.errors_of(query) for query in queries)

    def _ordered(self, scope: Scope, node: exp.Expr, leaf: Leaf) -> str:
        bare = node.unnest()
        if isinstance(bare, exp.Literal):
            if bare.is_string or not bare.this.isdigit() or not 1 <= int(bare.this[:6]) <= len(scope.outputs):
                raise refused(Rule.RESULTS, "ORDER BY a constant that is no position", node)
            return str(bare.this)
        return self.sql(self.rebuilt(node, leaf))

    def _output(self, scope: Scope, output: Output, leaf: Leaf) -> exp.Expr:
        if output.node is not None:
            return self.rebuilt(output.node, leaf)
        if scope.raw or output.source is None:
            raise refused(Rule.KEYS, f"{output.label[:60]} is no key of the groups", scope.node)
        return self._member(output.source, output.column)

    def _from(self, scope: Scope, leaf: Leaf) -> str:
        sql = ""
        for source in scope.sources:
            name = self._cte(source.query) if source.query is not None else self._public(source)
            member = f"{identifier(name)} AS {self._alias(source)}"
            join = source.join
            if join is None:
                sql += f" FROM {member}"
                continue
            kind = JoinKind.of(join)
            on, using = join.args.get("on"), join.args.get("using")
            if kind not in JOINS_OF_RESULTS or (kind.side in ("RIGHT", "FULL") and using):
                allow = "There are JOIN, LEFT JOIN and CROSS JOIN; RIGHT and FULL JOIN take ON"
                raise refused(Rule.JOINS, f"{kind} JOIN here", join, allow=allow)
            if on is None and not using:
                if kind.side:
                    raise refused(Rule.JOINS, f"{kind.side} JOIN without a key", join)
                sql += f" CROSS JOIN {member}"
                continue
            conditions = [self.sql(self.rebuilt(on, leaf))] if on is not None else []
            for key in using or ():
                before = next(one for one in scope.sources if one.has(fold(key.name)))
                left, right = (self._member(one, self._named(one, fold(key.name))) for one in (before, source))
                conditions.append(self.sql(exp.EQ(this=left, expression=right)))
            side = f" {kind.side}" if kind.side else ""
            sql += f"{side} JOIN {member} ON {' AND '.join(f'({one})' for one in conditions)}"
        return sql

    def _named(self, source: Source, key: str) -> str:
        return next(column for column in source.columns() if fold(column) == key)

    def _public(self, source: Source) -> str:
        assert source.table is not None
        assert not source.table.protected, "a SELECT from rows of people is a block"
        self.public.add(source.table.name)
        return source.table.name

    def _group(self, scope: Scope, leaf: Leaf) -> str:
        group = scope.node.args.get("group")
        if group is None:
            return ""
        if group.args.get("all"):
            return " GROUP BY ALL"
        return f" GROUP BY {', '.join(self._grouped(scope, node, leaf) for node in group.expressions)}"

    def _grouped(self, scope: Scope, node: exp.Expr, leaf: Leaf) -> str:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            word = {"rollup": "ROLLUP", "cube": "CUBE"}.get(node.key, "GROUPING SETS")
            return f"{word} ({', '.join(self._grouped(scope, one, leaf) for one in node.expressions)})"
        if isinstance(node, exp.Tuple):
            return f"({', '.join(self._grouped(scope, one, leaf) for one in node.expressions)})"
        return self._ordered(scope, node, leaf)

    def _alias(self, source: Source) -> str:
        if id(source) not in self.aliases:
            self.count += 1
            self.aliases[id(source)] = f"t{self.count}"
        return self.aliases[id(source)]

    def _member(self, source: Source, column: str) -> exp.Expr:
        if source.table is not None:
            known = source.table.column(column)
            name = known.name if known is not None else column
        else:
            assert source.query is not None
            at = next(at for at, output in enumerate(source.query.outputs, 1) if output.key == fold(column))
            name = f"c{at}"
        return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(self._alias(source)))

    def _column(self, scope: Scope, node: exp.Expr, leaf: Leaf) -> exp.Expr:
        name: Name = scope.names[id(node)]
        if name.output is not None:
            assert name.scope is scope, "an alias is seen in its own SELECT only"
            return exp.Paren(this=self._output(name.scope, name.output, leaf))
        assert name.source is not None
        if name.scope is not scope and id(name.scope) in self.keys:
            return self.keys[id(name.scope)](name, node)
        return self._member(name.source, name.column)

    def subquery(self, scope: Scope, node: exp.Expr, inner: Scope | Union, leaf: Leaf) -> exp.Expr:
        text = self.query(inner)
        if isinstance(node, exp.Exists):
            return exp.Var(this=f"EXISTS ({text})")
        if isinstance(node, exp.In):
            return exp.Var(this=f"({self.sql(self.rebuilt(node.this, leaf))} IN ({text}))")
        if len(inner.outputs) != 1:
            raise refused(Rule.SUBQUERIES, "A subquery of several columns as a value", scope.node)
        return exp.Var(this=f"({text})")

    def rebuilt(self, node: exp.Expr, leaf: Leaf) -> exp.Expr:
        """A new expression: leaf says what a node becomes, None if its parts are rebuilt."""
        self.nodes += 1
        if self.nodes > _NODES:
            allow = "Ask for less at once"
            raise refused(
                Rule.LIMITS, f"The statement spells out to more than {_NODES} parts", allow=allow, code=TOO_COMPLEX
            )
        known = leaf(node)
        if known is not None:
            return known
        if isinstance(node, exp.Query | exp.Column | exp.Tuple):
            raise refused(Rule.RESULTS, f"{node.key.upper()} in this place", node)
        if isinstance(node, exp.RawString):
            return exp.Literal.string(str(node.this))
        args: dict[str, object] = {}
        for part, value in node.args.items():
            if isinstance(value, exp.Expr):
                args[part] = self.rebuilt(value, leaf)
            elif isinstance(value, list):
                args[part] = [self.rebuilt(one, leaf) if isinstance(one, exp.Expr) else one for one in value]
            else:
                args[part] = value
        return type(node)(**args)

    def sql(self, node: exp.Expr) -> str:
        """The text of a rebuilt expression."""
        return node.sql("duckdb", comments=False)


def _without_double(node: exp.Expr) -> exp.Expr:
    """A number that is only told as DOUBLE."""
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and node.to.this == exp.DType.DOUBLE:
        return node.this.unnest()
    return node


def _without_casts(node: exp.Expr) -> exp.Expr:
    """What is divided, without what keeps a division from whole numbers and from zero."""
    node = node.unnest()
    while isinstance(node, exp.Nullif) or (isinstance(node, exp.Cast) and node.to.this == exp.DType.DOUBLE):
        node = node.this.unnest()
    return node


def _worse(one: str, other: str) -> str:
    """SQL of the less sure of two kinds; bounded, where one of them is."""
    both = f"concat({one}, {other})"
    ways = " ".join(f"WHEN contains({both}, '{kind}') THEN '{kind}'" for kind in reversed(KINDS))
    return f"CASE {ways} END || CASE WHEN contains({both}, 'bounded') THEN ', bounded' ELSE '' END"


def _all_of(ordered: exp.Expr, columns: int) -> list[str]:
    """The positions that ORDER BY ALL stands for; none of another ORDER BY."""
    whole = isinstance(ordered.this, exp.Var) and ordered.this.name.upper() == "ALL"
    return [str(at) for at in range(1, columns + 1)] if whole else []


def _direction(ordered: exp.Expr, key: str) -> str:
    nulls = ordered.args.get("nulls_first")
    tail = "" if nulls is None else f" NULLS {'FIRST' if nulls else 'LAST'}"
    return f"{key}{' DESC' if ordered.args.get('desc') else ' ASC'}{tail}"


def _limits(node: exp.Query) -> str:
    sql = ""
    for part, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        clause = node.args.get(part)
        if clause is not None:
            sql += f" {word} {int(clause.expression.this)}"
    return sql
