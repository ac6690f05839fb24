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
from kgather._guard.json_calls import is_json
from kgather._guard.labels import label as postgres_label
from kgather._guard.paths import written_path
from kgather._guard.pivots import pivot_of, selected
from kgather._guard.plan import Bound
from kgather._guard.policy import fold
from kgather._guard.ranked import is_histogram
from kgather._guard.refused import AMBIGUOUS, UNKNOWN_COLUMN, UNKNOWN_TABLE, Rule, refused

_LISTED = 20  # columns that a refusal names
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

    @property
    def postgres(self) -> str:
        """The name that PostgreSQL gives to it."""
        if self.alias:
            return self.label
        if self.node is not None:
            return postgres_label(self.node)
        assert self.source is not None
        query = self.source.query
        return self.column if query is None else query.outputs[self.source.at(self.key)].postgres

    @property
    def is_json(self) -> bool:
        """Whether it is JSON, as PostgreSQL types it."""
        if self.node is not None or self.source is None or self.source.query is None:
            return is_json(self.node)
        # By its name where it comes from: RENAME gives it another one here.
        return self.source.query.outputs[self.source.at(fold(self.column))].is_json


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
        return len(self._named(key))

    def at(self, key: str) -> int:
        """The position of the first of its columns that has a folded name."""
        return self._named(key)[0] if self.query else [fold(column) for column in self.columns()].index(key)

    def _named(self, key: str) -> list[int]:
        """The positions of a query's columns of a name; of those without an alias PostgreSQL's name will do, too."""
        outputs = self.query.outputs if self.query else ()
        found = [at for at, output in enumerate(outputs) if output.key == key]
        return found or [at for at, output in enumerate(outputs) if fold(output.postgres) == key]

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
    constants: dict[int, Bound] = field(default_factory=dict)
    """What stands for subqueries that are answers, in conditions over rows of people, by their nodes."""

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
    """UNION ALL of queries, or another set operation of two; its columns are named by the first."""

    node: exp.SetOperation
    branches: list["Scope | Union"]
    ctes: list["Scope | Union"] = field(default_factory=list)

    @property
    def word(self) -> str:
        """What stands between the branches."""
        return f"{self.node.key.upper()}{'' if self.node.args.get('distinct') else ' ALL'}"

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
        call = windowed(node)
        for child in [*call.iter_expressions(), *(c for c in node.iter_expressions() if c is not node.this)]:
            yield from aggregates(child)
        return
    if isinstance(node, exp.AggFunc) or is_histogram(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from aggregates(child)


def windowed(node: exp.Window) -> exp.Expr:
    """The function before OVER, without FILTER and IGNORE NULLS."""
    call: exp.Expr = node.this
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return call


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
        if not isinstance(node, exp.Select | exp.SetOperation):
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
            _rename(cte.this, cte.args["alias"])
            query = self.query(cte.this, ctes, None)
            own.append(query)
            ctes[fold(name)] = query
        if isinstance(node, exp.SetOperation):
            return self._union(node, ctes, own, parent)
        return self._select(node, ctes, own, parent)

    def _union(
        self,
        node: exp.SetOperation,
        ctes: Mapping[str, "Scope | Union"],
        own: list["Scope | Union"],
        parent: Scope | None,
    ) -> Union:
        nodes: list[exp.Expr] = []
        left: exp.Expr = node
        while isinstance(left, exp.SetOperation) and (left is node or (_is_all(left) and not _has_tail(left))):
            nodes.append(left.expression)
            left = left.this
            if not _is_all(node):
                break
        nodes.append(left)
        union = Union(node, [self.query(branch, ctes, parent) for branch in reversed(nodes)], own)
        if len({len(branch.outputs) for branch in union.branches}) > 1:
            raise refused(Rule.SET_OPERATIONS, "The queries of a set operation have different numbers of columns", node)
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
        _name_paths(scope)
        for expression in node.expressions:
            self._output(scope, expression, ctes)
        if self.catalog.policy.mode == "measured":
            _group_distinct(scope)
        if len(scope.outputs) > _OUTPUTS:
            raise refused(Rule.LIMITS, f"A SELECT has more than {_OUTPUTS} columns", allow="Name those you need")
        for source in scope.sources:
            if source.join is not None and source.join.args.get("on") is not None:
                self._names(scope, source.join.args["on"], ctes, "column")
        for part in ("where", "group", "having", "qualify"):
            if node.args.get(part) is not None:
                self._names(scope, node.args[part], ctes, "column")
        if node.args.get("order") is not None:
            _place_unnamed(scope, node.args["order"])
            self._names(scope, node.args["order"], ctes, "alias")
        return scope

    def _source(self, scope: Scope, node: exp.Expr, join: exp.Join | None, ctes: Mapping[str, "Scope | Union"]) -> None:
        pivot = pivot_of(node)
        if pivot is not None:
            kept = len(self.scopes), len(self.unions)
            bare = node.copy()
            bare.set("pivots", None)
            member = self._member(bare, ctes)
            columns = member.columns()
            del self.scopes[kept[0] :], self.unions[kept[1] :]
            alias_of = pivot.args.get("alias") or node.args.get("alias")
            made = selected(bare, pivot, columns, lambda field: _listed(member, field))
            inner = exp.Subquery(this=made, alias=alias_of.copy() if alias_of else None)
            node.replace(inner)
            node = inner
        alias = node.alias_or_name if isinstance(node, exp.Table | exp.Subquery) else ""
        source = self._member(node, ctes)
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

    def _member(self, node: exp.Expr, ctes: Mapping[str, "Scope | Union"]) -> Source:
        if isinstance(node, exp.Table):
            if node.args.get("alias") is not None and node.args["alias"].args.get("columns"):
                allow = "Rename them in a subquery: SELECT column AS name"
                raise refused(Rule.NAMES, "A table's columns are renamed in FROM", node, allow=allow)
            return self._table(node, ctes)
        if node.args.get("alias") is not None:
            _rename(node, node.args["alias"])
        alias = node.alias_or_name if isinstance(node, exp.Subquery) else ""
        return Source(alias, node, query=self.query(node, ctes, None))

    def _table(self, node: exp.Table, ctes: Mapping[str, "Scope | Union"]) -> Source:
        if not isinstance(node.this, exp.Identifier):
            raise refused(Rule.TABLES, f"{node.this.key.upper()} in FROM is no table", node, allow=self._tables())
        name, schema = node.name, node.args.get("db")
        if schema is None and fold(name) in ctes:
            return Source(node.alias_or_name, node, query=ctes[fold(name)])
        table = self.catalog.named(
            name, *(part.name for part in (schema, node.args.get("catalog")) if part is not None)
        )
        if table is None:
            raise refused(
                Rule.TABLES, f"There is no table {name[:60]!r} here", node, allow=self._tables(), code=UNKNOWN_TABLE
            )
        return Source(node.alias_or_name, node, table=table)

    def _tables(self) -> str:
        return f"The tables are {', '.join(table.name for table in self.catalog.tables.values())}"

    def _output(self, scope: Scope, node: exp.Expr, ctes: Mapping[str, "Scope | Union"]) -> None:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            self._star(scope, node, ctes)
            return
        self._names(scope, node, ctes, "column")
        if isinstance(node, exp.Alias):
            scope.outputs.append(Output(node.alias, True, node.this))
        else:
            scope.outputs.append(Output(_label(node), False, node))

    def _star(self, scope: Scope, node: exp.Expr, ctes: Mapping[str, "Scope | Union"]) -> None:
        table = node.args.get("table") if isinstance(node, exp.Column) else None
        sources = [s for s in scope.sources if table is None or fold(s.alias) == fold(table.name)]
        told = f"{table.name[:60]}.*" if table else "*"
        if not sources:
            raise refused(Rule.NAMES, f"{told} stands for no table", node, code=UNKNOWN_TABLE)
        changes = _StarChanges.of(node if isinstance(node, exp.Star) else node.this)
        for source in sources:
            for column in source.columns():
                if table is None and fold(column) in source.merged:
                    continue
                if source.has(fold(column)) > 1:
                    reason = f"Two columns of a subquery are named {column[:60]!r}"
                    raise refused(Rule.NAMES, reason, node, code=AMBIGUOUS, allow="Give them aliases")
                changes.left.discard(fold(column))
                if fold(column) in changes.without:
                    continue
                instead = changes.instead.get(fold(column))
                if instead is not None:
                    self._names(scope, instead, ctes, "column")
                    scope.outputs.append(Output(column, True, instead))
                    continue
                label = changes.renamed.get(fold(column), column)
                scope.outputs.append(Output(label, label != column, None, source, column))
        if changes.left:
            reason = f"{told} has no column {min(changes.left)[:60]!r}"
            raise refused(Rule.NAMES, reason, node, code=UNKNOWN_COLUMN)

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
        raise refused(
            Rule.NAMES, f"There is no column {node.name[:60]!r} here", node, code=UNKNOWN_COLUMN, allow=_columns(scope)
        )

    def _is_of(self, source: Source, schema: exp.Identifier, node: exp.Expr) -> bool:
        """Whether a source is a table that stands before a column with its schema, and its database."""
        if source.table is None or not isinstance(source.node, exp.Table):
            return False
        parts = (
            source.node.name,
            schema.name,
            *([node.catalog] if isinstance(node, exp.Column) and node.catalog else []),
        )
        return self.catalog.named(*parts) is source.table

    def _find(
        self, scope: Scope, key: str, table: exp.Identifier | None, node: exp.Expr, schema: exp.Identifier | None = None
    ) -> _Found | None:
        found: list[Source] = []
        for source in scope.sources:
            if table is not None and fold(source.alias) != fold(table.name):
                continue
            if schema is not None and not self._is_of(source, schema, node):
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
        return _Found(source, source.columns()[source.at(key)])


class _StarChanges(NamedTuple):
    """What stands behind a star, by folded names of columns: EXCLUDE, REPLACE and RENAME. left: those that no column of
    the star has had yet."""

    without: frozenset[str]
    instead: Mapping[str, exp.Expr]
    renamed: Mapping[str, str]
    left: set[str]

    @classmethod
    def of(cls, star: exp.Expr) -> "_StarChanges":
        without = frozenset(fold(one.name) for one in star.args.get("except_") or ())
        instead = {fold(one.alias): one.this for one in star.args.get("replace") or ()}
        renamed = {fold(one.this.name): one.alias for one in star.args.get("rename") or ()}
        return cls(without, instead, renamed, {*without, *instead, *renamed})


def _listed(source: Source, field: exp.Expr) -> list[exp.Expr] | None:
    """The values that the policy lists of a source's column, as constants in their order. None of others."""
    if not isinstance(field, exp.Column):
        return None
    key, found = fold(field.name), None
    if source.table is not None:
        column = source.table.column(field.name)
        found = TableColumn(source.table, column) if column is not None else None
    elif isinstance(source.query, Scope) and source.has(key) == 1:
        output = source.query.outputs[source.at(key)]
        inner = output.source if output.node is None else None
        if inner is not None:
            return _listed(inner, exp.column(output.column))
        found = base_column(source.query, output.node)
    if found is None or not found.table.protected:
        return None
    listed = next((of for name, of in found.table.policy.values.items() if fold(name) == fold(found.column.name)), None)
    if not listed or len({type(one) for one in listed}) > 1 or not all(isinstance(one, int | str) for one in listed):
        return None
    return [exp.Literal.string(one) if isinstance(one, str) else exp.Literal.number(one) for one in sorted(listed)]


def _name_paths(scope: Scope) -> None:
    """Make expressions that take a declared path into a column the names that they are, as info['city'] info.city."""
    tables = [source for source in scope.sources if source.table is not None and source.table.has_paths]
    if not tables:
        return
    kinds = (exp.Column, exp.Bracket, exp.JSONExtractScalar, exp.StructExtract, exp.Anonymous)
    for node in [*scope.node.find_all(*kinds)]:
        if node.find_ancestor(exp.Select) is not scope.node or any(source.node is node for source in scope.sources):
            continue
        parts = written_path(node) or []
        for source in tables if len(parts) > 1 else ():
            named = fold(parts[0]) == fold(source.alias)
            for taken in (parts, parts[1:]) if named else (parts,):
                if len(taken) > 1 and source.has(fold(".".join(taken))):
                    table = exp.to_identifier(source.alias, quoted=True)
                    name = exp.Column(this=exp.to_identifier(".".join(taken), quoted=True), table=table)
                    name.meta.update(node.meta)
                    node.replace(name)


def _rename(query: exp.Expr, alias: exp.TableAlias) -> None:
    """Give the columns of a subquery the names that stand behind its alias."""
    names = alias.args.get("columns") or []
    if not names:
        return
    while isinstance(query, exp.Subquery | exp.Paren | exp.SetOperation):
        query = query.this
    columns = query.expressions
    if any(
        isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)) for one in columns
    ):
        told = "A subquery with * has its columns renamed"
        raise refused(Rule.NAMES, told, alias, allow="Name the columns inside")
    if len(names) > len(columns):
        told = f"{len(names)} names are given to the {len(columns)} columns of a subquery"
        raise refused(Rule.NAMES, told, alias, code=UNKNOWN_COLUMN)
    for at, name in enumerate(names):
        node = columns[at]
        old = node.alias if isinstance(node, exp.Alias) else ""
        parts = [query.args.get(part) for part in ("where", "group", "having", "qualify", "order")]
        parts += [other for place, other in enumerate(columns) if place != at]
        used = [one for part in parts if part is not None for one in part.find_all(exp.Column)]
        if old and fold(old) != fold(name.name) and any(fold(one.name) == fold(old) for one in used):
            told = f"The subquery names its column {old[:60]!r}, and {name.name[:60]!r} outside"
            raise refused(Rule.NAMES, told, alias, allow="Give it one name")
        inner = node.this if isinstance(node, exp.Alias) else node
        own = isinstance(inner, exp.Column) and fold(inner.name) == fold(name.name)
        if not own and any(fold(one.name) == fold(name.name) for one in used):
            told = f"{name.name[:60]!r} is another column inside the subquery"
            raise refused(Rule.NAMES, told, alias, allow="Give it a name that the subquery does not read")
        columns[at] = exp.alias_(inner, name.copy(), copy=False)
    query.set("expressions", columns)
    alias.set("columns", None)


def _group_distinct(scope: Scope) -> None:
    """Make SELECT DISTINCT of rows of people the GROUP BY that it is: its groups are shown as others are."""
    node = scope.node
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or not any(source.raw for source in scope.sources):
        return
    if any(node.args.get(part) is not None for part in ("group", "having", "qualify")):
        return
    outputs = [output.node for output in scope.outputs]
    if any(one is None or is_unit(scope, one) or any(True for _ in aggregates(one)) for one in outputs):
        return
    node.set("distinct", None)
    node.set("group", exp.Group(all=True))


def _is_all(node: exp.SetOperation) -> bool:
    """Whether it is UNION ALL, which may be taken together with others."""
    return isinstance(node, exp.Union) and node.args.get("distinct") is False


def _place_unnamed(scope: Scope, order: exp.Expr) -> None:
    """Write the number of a column without alias where ORDER BY calls it by the name that PostgreSQL gives to it, and
    nothing else has that name."""
    for key in order.expressions:
        node = key.this if isinstance(key, exp.Ordered) else key
        if not isinstance(node, exp.Column) or node.args.get("table") is not None or isinstance(node.this, exp.Star):
            continue
        name = fold(node.name)
        if any(source.has(name) for source in scope.sources) or any(one.key == name for one in scope.outputs):
            continue
        places = [
            at
            for at, one in enumerate(scope.outputs, 1)
            if one.node is not None and not one.alias and fold(one.postgres) == name
        ]
        if len(places) == 1:
            node.replace(exp.Literal.number(places[0]))


def _columns(scope: Scope) -> str:
    """What columns there are in a FROM: those that may be named."""
    known: dict[str, None] = {}
    for source in scope.sources:
        shown = None if source.table is None else {c.name for c in source.table.columns.values() if c.role != "hidden"}
        known |= dict.fromkeys(name for name in source.columns() if shown is None or name in shown)
    listed = [*known][:_LISTED]
    return f"The columns are {', '.join(listed)}{' and more' if len(known) > _LISTED else ''}" if listed else ""


def _has_tail(node: exp.SetOperation) -> bool:
    return any(node.args.get(part) is not None for part in ("with_", "order", "limit", "offset"))


def _label(node: exp.Expr) -> str:
    """The name that a column without alias has."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name.rpartition(".")[2] or node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count_star()"
    return node.sql("duckdb", comments=False).lower()
