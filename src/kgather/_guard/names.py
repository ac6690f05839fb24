"""Resolves every name of a statement, by DuckDB's rules and without DuckDB.

Names compare without regard to case, quoted or not. A real column wins over an alias of the same SELECT, but in ORDER
BY the alias wins. An alias is seen by what comes after it in SELECT, and in WHERE, GROUP BY, HAVING and QUALIFY.
A CTE hides a table of its name. What is ambiguous, or stands for a whole row, is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from kgather._guard.catalog import Catalog, TableColumn, TableInfo
from kgather._guard.policy import fold
from kgather._guard.refused import AMBIGUOUS, UNKNOWN_COLUMN, UNKNOWN_TABLE, Rule, refused

_SOURCES = 16
"""How many tables and subqueries one FROM may join."""
_QUERIES = 64
"""How many SELECTs one statement may hold."""
_OUTPUTS = 256
"""How many columns one SELECT may have."""


@dataclass(eq=False)
class Output:
    """A column of a SELECT: an expression, or (of a star) the column of a source."""

    label: str
    alias: bool
    node: exp.Expr | None
    source: "Source | None" = None
    column: str = ""

    @property
    def key(self) -> str:
        """The folded name."""
        return fold(self.label)


@dataclass(eq=False)
class Source:
    """A member of a FROM: a table of the policy, or a subquery or CTE."""

    alias: str
    node: exp.Expr
    table: TableInfo | None = None
    query: "Scope | Union | None" = None
    join: exp.Join | None = None
    merged: frozenset[str] = frozenset()
    """Columns named in USING, which are those of the sources before."""

    def columns(self) -> tuple[str, ...]:
        """The names of its columns, as they are written where they come from."""
        if self.table is not None:
            return tuple(column.name for column in self.table.columns.values())
        return tuple(output.label for output in self.query.outputs) if self.query else ()

    def has(self, key: str) -> int:
        """How many of its columns have a folded name."""
        if self.table is not None:
            return int(key in self.table.columns)
        return sum(output.key == key for output in self.query.outputs) if self.query else 0

    @property
    def raw(self) -> bool:
        """Whether its rows are of people."""
        return self.table.protected if self.table is not None else self.query is not None and self.query.raw_rows


@dataclass(frozen=True, eq=False)
class Name:
    """What a column node stands for: the column of a source (of this scope or one around it), or an output."""

    scope: "Scope"
    source: Source | None = None
    column: str = ""
    output: Output | None = None


@dataclass(eq=False)
class Scope:
    """A SELECT with its names resolved."""

    node: exp.Select
    parent: "Scope | None" = None
    sources: list[Source] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    names: dict[int, Name] = field(default_factory=dict)
    subqueries: dict[int, "Scope | Union"] = field(default_factory=dict)
    """The subqueries in expressions, by the node that holds them."""
    ctes: list["Scope | Union"] = field(default_factory=list)

    @cached_property
    def raw(self) -> bool:
        """Whether it reads rows of people."""
        return any(source.raw for source in self.sources)

    @cached_property
    def aggregated(self) -> bool:
        """Whether it makes groups of rows."""
        if self.node.args.get("group") is not None or self.node.args.get("having") is not None:
            return True
        parts = [self.node.args.get(part) for part in ("having", "qualify", "order")]
        nodes = [*self.node.expressions, *(part for part in parts if part is not None)]
        return any(True for node in nodes for _ in aggregates(node))

    @cached_property
    def per_unit(self) -> bool:
        """Whether its groups are the rows of one person each: by GROUP BY, or by SELECT DISTINCT of the unit alone."""
        if not self.raw:
            return False
        if self.node.args.get("distinct") is not None and not self.aggregated:
            return bool(self.outputs) and all(is_unit(self, output.node) for output in self.outputs)
        return any(is_unit(self, node) for node in group_keys(self))

    @cached_property
    def raw_rows(self) -> bool:
        """Whether its own rows are of one person each, so that they may not be shown."""
        return self.raw and (not self.aggregated or self.per_unit)

    @cached_property
    def protected(self) -> bool:
        """Whether it reads a protected table, at any depth."""
        queries = [source.query for source in self.sources if source.query is not None]
        return any(source.table is not None and source.table.protected for source in self.sources) or any(
            query.protected for query in (*queries, *self.subqueries.values())
        )


@dataclass(eq=False)
class Union:
    """UNION ALL of queries; its columns are named by the first."""

    node: exp.Union
    branches: list["Scope | Union"]
    ctes: list["Scope | Union"] = field(default_factory=list)

    @property
    def outputs(self) -> list[Output]:
        """The columns of the first branch."""
        return self.branches[0].outputs

    @cached_property
    def raw_rows(self) -> bool:
        """Whether some rows are of one person each."""
        return any(branch.raw_rows for branch in self.branches)

    @cached_property
    def protected(self) -> bool:
        """Whether it reads a protected table, at any depth."""
        return any(branch.protected for branch in self.branches)


@dataclass(eq=False)
class Resolved:
    """A statement with its names resolved: the query on top, and every SELECT in it."""

    tree: exp.Query
    top: "Scope | Union"
    scopes: list[Scope]
    unions: list[Union]
    catalog: Catalog

    @property
    def guarded(self) -> bool:
        """Whether it reads a protected table anywhere."""
        return any(source.table is not None and source.table.protected for s in self.scopes for source in s.sources)


def aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of an expression that make groups: not those with OVER, not those of subqueries."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        for child in [*call.iter_expressions(), *(c for c in node.iter_expressions() if c is not node.this)]:
            yield from aggregates(child)
        return
    if isinstance(node, exp.AggFunc):
        yield node
        return
    for child in node.iter_expressions():
        yield from aggregates(child)


def group_keys(scope: Scope) -> list[exp.Expr]:
    """The expressions that a SELECT groups by, with ordinals, ALL and margins taken apart."""
    group = scope.node.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [
            output.node
            for output in scope.outputs
            if output.node is not None and not any(True for _ in aggregates(output.node))
        ]
    keys: list[exp.Expr] = []
    for node in group.expressions:
        parts = node.expressions if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) else [node]
        for part in parts:
            keys += part.expressions if isinstance(part, exp.Tuple) else [part]
    return [ordinal(scope, key) for key in keys]


def ordinal(scope: Scope, node: exp.Expr) -> exp.Expr:
    """What a position of the SELECT list stands for; any other node as it is."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        at = int(node.this) if node.this.isdigit() and len(node.this) < 4 else 0
        if not 1 <= at <= len(scope.outputs):
            raise refused(Rule.NAMES, f"There is no column {node.this[:10]} in SELECT", node, code=UNKNOWN_COLUMN)
        return scope.outputs[at - 1].node or node
    return node


def base_column(scope: Scope, node: exp.Expr | None) -> TableColumn | None:
    """The column of a table that an expression is, through aliases, subqueries and brackets; None if it is more."""
    while node is not None:
        node = node.unalias().unnest()
        name = scope.names.get(id(node))
        if name is None:
            return None
        if name.output is not None:
            scope, source, column, node = name.scope, name.output.source, name.output.column, name.output.node
            if node is not None:
                continue
        else:
            scope, source, column = name.scope, name.source, name.column
        while source is not None:
            if source.table is not None:
                found = source.table.column(column)
                return TableColumn(source.table, found) if found else None
            if not isinstance(source.query, Scope):
                return None
            scope = source.query
            output = next((output for output in scope.outputs if output.key == fold(column)), None)
            if output is None:
                return None
            node, source, column = output.node, output.source, output.column
            if node is not None:
                break
        else:
            return None
    return None


def is_unit(scope: Scope, node: exp.Expr | None) -> bool:
    """Whether an expression is a privacy unit."""
    found = base_column(scope, node)
    return found is not None and found.column.role == "unit"


def resolve(tree: exp.Query, catalog: Catalog) -> Resolved:
    """Resolve every name of a statement.

    O(names x sources). Raises Refused for names that are unknown or ambiguous, and for FROMs that hold anything but
    tables of the policy, subqueries and CTEs.
    """
    resolver = _Resolver(catalog)
    top = resolver.query(tree, {}, None)
    return Resolved(tree, top, resolver.scopes, resolver.unions, catalog)


class _Found(NamedTuple):
    """A source, and the column of it that a name stands for, as it is written there."""

    source: Source
    column: str


class _Resolver:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.scopes: list[Scope] = []
        self.unions: list[Union] = []

    def query(self, node: exp.Expr, ctes: Mapping[str, "Scope | Union"], parent: Scope | None) -> "Scope | Union":
        while isinstance(node, exp.Subquery) or (isinstance(node, exp.Paren) and isinstance(node.this, exp.Query)):
            node = node.this
        if not isinstance(node, exp.Select | exp.Union):
            raise refused(Rule.TABLES, f"{node.key.upper()} is no SELECT", node)
        if len(self.scopes) + len(self.unions) >= _QUERIES:
            raise refused(
                Rule.LIMITS, f"The statement holds more than {_QUERIES} SELECTs", allow="Ask for less at once"
            )
        ctes = dict(ctes)
        own = []
        with_ = node.args.get("with_")
        named = with_.expressions if with_ is not None else []
        for cte in named:
            name = cte.alias
            if any(fold(name) == fold(other.alias) for other in named if other is not cte):
                raise refused(Rule.NAMES, f"Two queries of WITH are named {name!r}", cte, code=AMBIGUOUS)
            query = self.query(cte.this, ctes, None)
            own.append(query)
            ctes[fold(name)] = query
        if isinstance(node, exp.Union):
            return self._union(node, ctes, own, parent)
        return self._select(node, ctes, own, parent)

    def _union(
        self,
        node: exp.Union,
        ctes: Mapping[str, "Scope | Union"],
        own: list["Scope | Union"],
        parent: Scope | None,
    ) -> Union:
        nodes: list[exp.Expr] = []
        left: exp.Expr = node
        while isinstance(left, exp.Union) and not (left is not node and _has_tail(left)):
            if left.args.get("distinct") is not False or left.args.get("by_name"):
                raise refused(Rule.SET_OPERATIONS, "UNION without ALL", left, allow="Use UNION ALL")
            nodes.append(left.expression)
            left = left.this
        nodes.append(left)
        union = Union(node, [self.query(branch, ctes, parent) for branch in reversed(nodes)], own)
        if len({len(branch.outputs) for branch in union.branches}) > 1:
            raise refused(Rule.SET_OPERATIONS, "The queries of UNION ALL have different numbers of columns", node)
        self.unions.append(union)
        return union

    def _select(
        self,
        node: exp.Select,
        ctes: Mapping[str, "Scope | Union"],
        own: list["Scope | Union"],
        parent: Scope | None,
    ) -> Scope:
        scope = Scope(node, parent, ctes=own)
        self.scopes.append(scope)
        from_ = node.args.get("from_")
        if from_ is not None:
            self._source(scope, from_.this, None, ctes)
        for join in node.args.get("joins") or ():
            self._source(scope, join.this, join, ctes)
        for expression in node.expressions:
            self._output(scope, expression, ctes)
        if len(scope.outputs) > _OUTPUTS:
            raise refused(Rule.LIMITS, f"A SELECT has more than {_OUTPUTS} columns", allow="Name those you need")
        for source in scope.sources:
            if source.join is not None and source.join.args.get("on") is not None:
                self._names(scope, source.join.args["on"], ctes, "column")
        for part in ("where", "group", "having", "qualify"):
            if node.args.get(part) is not None:
                self._names(scope, node.args[part], ctes, "column")
        if node.args.get("order") is not None:
            self._names(scope, node.args["order"], ctes, "alias")
        return scope

    def _source(self, scope: Scope, node: exp.Expr, join: exp.Join | None, ctes: Mapping[str, "Scope | Union"]) -> None:
        alias = node.alias_or_name if isinstance(node, exp.Table | exp.Subquery) else ""
        if isinstance(node, exp.Table):
            source = self._table(node, ctes)
        else:
            source = Source(alias, node, query=self.query(node, ctes, None))
        source.join = join
        if len(scope.sources) >= _SOURCES:
            raise refused(Rule.LIMITS, f"A FROM joins more than {_SOURCES} tables", allow="Ask for less at once")
        if alias and any(fold(other.alias) == fold(alias) for other in scope.sources):
            raise refused(
                Rule.NAMES,
                f"Two tables of one FROM are named {alias!r}",
                node,
                code=AMBIGUOUS,
                allow="Give them aliases",
            )
        using = join.args.get("using") if join is not None else None
        for identifier in using or ():
            key = fold(identifier.name)
            if source.has(key) != 1 or not any(other.has(key) for other in scope.sources):
                reason = f"USING ({identifier.name[:60]}) names no column of both sides"
                raise refused(Rule.NAMES, reason, identifier, code=UNKNOWN_COLUMN)
            self._find(scope, key, None, identifier)
        source.merged = frozenset(fold(identifier.name) for identifier in using or ())
        scope.sources.append(source)

    def _table(self, node: exp.Table, ctes: Mapping[str, "Scope | Union"]) -> Source:
        if not isinstance(node.this, exp.Identifier):
            raise refused(Rule.TABLES, f"{node.this.key.upper()} in FROM is no table", node, allow=self._tables())
        name, schema = node.name, node.args.get("db")
        if schema is None and fold(name) in ctes:
            return Source(node.alias_or_name, node, query=ctes[fold(name)])
        table = self.catalog.table(name)
        if table is None or (schema is not None and fold(schema.name) != "main"):
            raise refused(
                Rule.TABLES, f"There is no table {name[:60]!r} here", node, allow=self._tables(), code=UNKNOWN_TABLE
            )
        return Source(node.alias_or_name, node, table=table)

    def _tables(self) -> str:
        return f"The tables are {', '.join(table.name for table in self.catalog.tables.values())}"

    def _output(self, scope: Scope, node: exp.Expr, ctes: Mapping[str, "Scope | Union"]) -> None:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            self._star(scope, node)
            return
        self._names(scope, node, ctes, "column")
        if isinstance(node, exp.Alias):
            scope.outputs.append(Output(node.alias, True, node.this))
        else:
            scope.outputs.append(Output(_label(node), False, node))

    def _star(self, scope: Scope, node: exp.Expr) -> None:
        table = node.args.get("table") if isinstance(node, exp.Column) else None
        sources = [s for s in scope.sources if table is None or fold(s.alias) == fold(table.name)]
        if not sources:
            told = f"{table.name[:60]}.*" if table else "*"
            raise refused(Rule.NAMES, f"{told} stands for no table", node, code=UNKNOWN_TABLE)
        for source in sources:
            for column in source.columns():
                if table is None and fold(column) in source.merged:
                    continue
                if source.has(fold(column)) > 1:
                    reason = f"Two columns of a subquery are named {column[:60]!r}"
                    raise refused(Rule.NAMES, reason, node, code=AMBIGUOUS, allow="Give them aliases")
                scope.outputs.append(Output(column, False, None, source, column))

    def _names(self, scope: Scope, root: exp.Expr, ctes: Mapping[str, "Scope | Union"], first: str) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Query | exp.Exists) or (
                isinstance(node, exp.In) and node.args.get("query") is not None
            ):
                inner = (
                    node.args["query"]
                    if isinstance(node, exp.In)
                    else node.this
                    if isinstance(node, exp.Exists)
                    else node
                )
                scope.subqueries[id(node)] = self.query(inner, ctes, scope)
                if isinstance(node, exp.In):
                    stack.append(node.this)
            elif isinstance(node, exp.Column):
                scope.names[id(node)] = self._column(scope, node, first)
            elif isinstance(node, exp.Alias):
                stack.append(node.this)
            else:
                stack.extend(child for child in node.iter_expressions() if not isinstance(child, exp.Identifier))

    def _column(self, scope: Scope, node: exp.Column, first: str) -> Name:
        if isinstance(node.this, exp.Star):
            raise refused(Rule.NAMES, "A star inside an expression", node)
        key = fold(node.name)
        table = node.args.get("table")
        schema = node.args.get("db")
        alias = None
        if table is None:
            alias = next((output for output in scope.outputs if output.alias and output.key == key), None)
            if alias is not None and first == "alias":
                return Name(scope, output=alias)
        around: Scope | None = scope
        while around is not None:
            found = self._find(around, key, table, node, schema)
            if found is not None:
                return Name(around, found.source, found.column)
            if around is scope and alias is not None:
                return Name(scope, output=alias)
            around = around.parent
        if table is None and any(fold(source.alias) == key for source in scope.sources):
            reason = f"{node.name[:60]!r} stands for a whole row"
            raise refused(Rule.NAMES, reason, node, allow="Name a column", code=UNKNOWN_COLUMN)
        raise refused(Rule.NAMES, f"There is no column {node.name[:60]!r} here", node, code=UNKNOWN_COLUMN)

    def _find(
        self, scope: Scope, key: str, table: exp.Identifier | None, node: exp.Expr, schema: exp.Identifier | None = None
    ) -> _Found | None:
        found: list[Source] = []
        for source in scope.sources:
            if table is not None and fold(source.alias) != fold(table.name):
                continue
            if schema is not None and (source.table is None or fold(schema.name) != "main"):
                continue
            count = source.has(key)
            if count > 1 or (count and found and not (table is None and key in source.merged)):
                reason = f"{node.name[:60]!r} is ambiguous"
                raise refused(Rule.NAMES, reason, node, code=AMBIGUOUS, allow="Write table.column")
            if count and not found:
                found.append(source)
        if not found:
            return None
        source = found[0]
        return _Found(source, next(column for column in source.columns() if fold(column) == key))


def _has_tail(node: exp.Union) -> bool:
    return any(node.args.get(part) is not None for part in ("with_", "order", "limit", "offset"))


def _label(node: exp.Expr) -> str:
    """The name that a column without alias has."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count_star()"
    return node.sql("duckdb", comments=False).lower()
