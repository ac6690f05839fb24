"""The checks of the audit and the metrics, each where what it looks at is.

They are the project's own SQL: one statement whose checks are parts of a union. Those that look at aggregates and marts
run in DuckDB on the driver. Those that look at people run in Spark, in its dialect. Both are the same text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from kgather._dbt_package import macro_sql
from kgather._spark.blocks import opened_table, packed_table, rows_of
from kgather._sql_text import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = frozenset(
    {
        "int_kgather__users",
        "int_kgather__user_levels",
        "int_kgather__groups",
        "int_kgather__gathered",
        "stg_kgather__ratings",
    }
)
"""Relations with a row for each person or rating: the driver has none of them."""
_MACROS = {"kg_signs_of_people": ("p_users", "p_items")}
"""Table macros that a check of people calls, with their parameters."""
_PREFIX = "kgather_spark_"
_PIECE_ROWS = 1 << 17


@dataclass(frozen=True)
class Parts:
    """A statement with a common table expression that is a union, of which some parts can be run without the others."""

    tree: exp.Select
    name: str
    columns: tuple[str, ...]
    parts: tuple[exp.Select, ...]

    @classmethod
    def of(cls, sql: str, name: str) -> "Parts":
        """The parts of the union of that name in a statement of DuckDB's."""
        tree = sqlglot.parse_one(sql, read="duckdb")
        assert isinstance(tree, exp.Select)
        union = next(each for each in tree.ctes if each.alias == name).this
        parts = tuple(_flat(union))
        return cls(tree, name, tuple(each.alias_or_name for each in parts[0].selects), parts)

    def only(self, parts: Sequence[exp.Expression]) -> exp.Select:
        """The statement with these parts alone, and without what none of them needs."""
        tree = self.tree.copy()
        cte = next(each for each in tree.ctes if each.alias == self.name)
        union: exp.Expression = parts[0].copy()
        for each in parts[1:]:
            union = exp.Union(this=union, expression=each.copy(), distinct=False)
        cte.set("this", union)
        cte.set(
            "alias",
            exp.TableAlias(
                this=exp.to_identifier(self.name),
                columns=[exp.to_identifier(each, quoted=True) for each in self.columns],
            ),
        )
        _prune(tree)
        return tree

    def of_people_alone(self, part: exp.Expression) -> list[exp.Subquery]:
        """The subqueries of a part that give one value and look at relations of people only: the widest of them."""
        found: list[exp.Subquery] = []
        for each in part.find_all(exp.Subquery, bfs=True):
            one_value = not isinstance(each.parent, exp.From | exp.Join | exp.In | exp.Exists)
            if one_value and not any(_within(each, wider) for wider in found):
                tree = self.values([each])
                named = relations(tree) - {cte.alias for cte in tree.find_all(exp.CTE)}
                if named and named <= PEOPLE:
                    found.append(each)
        return found

    def values(self, subqueries: Sequence[exp.Subquery]) -> exp.Select:
        """A statement of one row, with the value of each subquery."""
        tree = self.tree.copy()
        tree.set("expressions", [exp.alias_(each.copy(), f"value_{at}") for at, each in enumerate(subqueries)])
        for name in ("from_", "order", "where"):
            tree.set(name, None)
        _prune(tree)
        return tree

    def looks_at_people(self, part: exp.Expression) -> bool:
        """Whether a part looks at a relation of people, by whatever way."""
        return bool(relations(self.only([part])) & PEOPLE)


def name_of(part: exp.Select) -> str:
    """The name of a check."""
    return str(part.selects[1].unalias().name)


def measuring(part: exp.Select) -> str:
    """The statement that measures a check, alone."""
    return exp.select(part.selects[-1].unalias().copy()).sql("duckdb")


def measured(part: exp.Select, number: int) -> exp.Select:
    """A check with what was measured elsewhere."""
    told = part.copy()
    told.selects[-1].unalias().replace(exp.Literal.number(number))
    return told


def _within(node: Any, other: exp.Expression) -> bool:
    """Whether a node is in another, or is it."""
    while node is not None and node is not other:
        node = node.parent
    return node is other


def _flat(union: exp.Expression) -> Iterator[exp.Select]:
    if isinstance(union, exp.Union):
        yield from _flat(union.this)
        yield from _flat(union.expression)
    elif isinstance(union, exp.Subquery):
        yield from _flat(union.this)
    else:
        assert isinstance(union, exp.Select)
        yield union


def _prune(tree: exp.Select) -> None:
    """Take away the common table expressions that nothing names any more."""
    while True:
        named = {table.name for table in tree.find_all(exp.Table)} | _in_texts(tree)
        unused = [each for each in tree.ctes if each.alias not in named]
        if not unused:
            return
        for each in unused:
            each.pop()


def relations(tree: exp.Expression) -> set[str]:
    """The relations that a statement names: after FROM, or in a text that is given to a macro."""
    return {table.name for table in tree.find_all(exp.Table)} | _in_texts(tree)


def _in_texts(tree: exp.Expression) -> set[str]:
    """What texts name, as '"work"."main"."int_kgather__users"'."""
    return {text.name.split(".")[-1].strip('"') for text in tree.find_all(exp.Literal) if text.is_string}


def in_duckdb(con: duckdb.DuckDBPyConnection, tree: exp.Select) -> list[tuple[Any, ...]]:
    """The rows of a statement, run by DuckDB."""
    return con.sql(tree.sql("duckdb")).fetchall()


@dataclass(frozen=True)
class People:
    """The relations of people as Spark has them: views of the names in `PEOPLE`, with a prefix."""

    spark: "SparkSession"

    def put(self, name: str, relation: Any) -> None:
        """Make a DataFrame known as the relation of that name."""
        relation.createOrReplaceTempView(_PREFIX + name)

    def take_away(self, names: Sequence[str]) -> None:
        """Forget relations."""
        for name in names:
            self.spark.catalog.dropTempView(_PREFIX + name)

    def rows(self, con: duckdb.DuckDBPyConnection, tree: exp.Select) -> list[tuple[Any, ...]]:
        """The rows of a statement, run by Spark; relations that only the driver has are handed to it."""
        tree = _with_macros(tree)
        own = {each.alias for each in tree.find_all(exp.CTE)}
        handed = []
        for table in tree.find_all(exp.Table):
            if table.name in own:
                continue
            if table.name not in PEOPLE and table.name not in handed:
                self.put(table.name, self._handed(con, table, tree))
                handed.append(table.name)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(
                exp.Table(this=exp.to_identifier(_PREFIX + table.name), alias=alias, joins=table.args.get("joins"))
            )
        try:
            return [tuple(row) for row in self.spark.sql(for_spark(tree)).collect()]
        finally:
            self.take_away(handed)

    def told(self, con: duckdb.DuckDBPyConnection, parts: Parts) -> Parts:
        """The parts, with the values of what looks at people alone, as Spark has measured them.

        What remains is mostly for DuckDB, and nothing of the driver's is handed to Spark for it.
        """
        copies = [part.copy() for part in parts.parts]
        asked = [each for part in copies for each in parts.of_people_alone(part)]
        if asked:
            [values] = self.rows(con, parts.values(asked))
            for each, value in zip(asked, values, strict=True):
                each.replace(exp.convert(value))
        return replace(parts, parts=tuple(copies))

    def _handed(self, con: duckdb.DuckDBPyConnection, table: exp.Table, tree: exp.Select) -> Any:
        """A relation of the driver's, as far as a statement asks for its columns.

        Piece by piece, each a broadcast: they lie on disks, where rows that are given to Spark lie in Java's memory.
        """
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        given = con.sql(f"select {_columns(con, table, tree)} from {_written(table)}").to_arrow_reader(_PIECE_ROWS)
        columns = from_arrow_schema(given.schema)
        schema, context = to_arrow_schema(columns), self.spark.sparkContext
        pieces = [context.broadcast(packed_table(pa.Table.from_batches([each]).cast(schema))) for each in given]
        pieces = pieces or [context.broadcast(packed_table(schema.empty_table()))]

        def opened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for row in rows_of(batches):
                yield from opened_table(pieces[row["id"]].value).to_batches()

        return self.spark.range(0, len(pieces), numPartitions=len(pieces)).mapInArrow(opened, columns)


def _columns(con: duckdb.DuckDBPyConnection, table: exp.Table, tree: exp.Select) -> str:
    """The columns of a relation whose names are in a statement, or all where it takes all of some relation."""
    all_of_some = any(isinstance(each.parent, exp.Select) for each in tree.find_all(exp.Star))
    named = {each.name for each in tree.find_all(exp.Identifier)}
    existing = con.sql(f"from {_written(table)} limit 0").columns
    wanted = [each for each in existing if all_of_some or each in named]
    return ", ".join(identifier(each) for each in wanted or existing[:1])


def _written(table: exp.Table) -> str:
    """A relation's name with its database."""
    return ".".join(identifier(part.name) for part in table.parts)


def _with_macros(tree: exp.Select) -> exp.Select:
    """The statement with the text of table macros in the place of their calls."""
    tree = tree.copy()
    for table in list(tree.find_all(exp.Table)):
        call = table.this
        if not isinstance(call, exp.Anonymous) or call.name not in _MACROS:
            continue
        named = dict(zip(_MACROS[call.name], (each.name for each in call.expressions), strict=True))
        table.replace(
            exp.Subquery(this=macro_select(call.name, named), alias=exp.TableAlias(this=exp.to_identifier("macro")))
        )
    return tree


def macro_select(name: str, named: dict[str, str]) -> exp.Select:
    """The statement that a table macro stands for, with the names of relations that it is given."""
    text = macro_sql(name)
    body = text[text.index(" as table") + len(" as table") : text.rindex(";")]
    for parameter, relation in named.items():
        body = body.replace(f"query_table({parameter})", relation)
    tree = sqlglot.parse_one(body, read="duckdb")
    assert isinstance(tree, exp.Select)
    return tree


def for_spark(tree: exp.Expression) -> str:
    """A statement of DuckDB's in the dialect of Spark."""

    def other(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.RegexpFullMatch):
            pattern = node.expression
            assert isinstance(pattern, exp.Literal)
            return exp.RegexpLike(this=node.this, expression=exp.Literal.string(f"^(?:{pattern.name})$"))
        if isinstance(node, exp.PercentileCont):
            return exp.Anonymous(this="percentile", expressions=[node.this, node.expression])
        return node

    tree = tree.copy().transform(other)
    for select in tree.find_all(exp.Select):
        # Spark loses its way where a column that two relations are joined by is named by one of them.
        shared = {name.name for join in select.args.get("joins") or [] for name in join.args.get("using") or []}
        for column in select.find_all(exp.Column):
            if column.name in shared and column.parent_select is select:
                column.set("table", None)
    return tree.sql("spark")
