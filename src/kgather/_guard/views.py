"""Which views of a database may be read as tables of people.

The guarantee counts what one person's rows can do. A view whose rows come from several rows may change for others when
one person leaves; one that casts may fail on one person's row. So a view is read if it plainly does neither: it takes
columns and rows of one table. For any other the owner has to say that it is safe.
"""

from collections.abc import Collection

import duckdb
import sqlglot
from sqlglot import exp

from kgather._guard.catalog import Catalog
from kgather._guard.policy import fold
from kgather._guard.render import identifier
from kgather._guard.sql_names import sql_name

_ROW_BY_ROW = (
    *(exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Where, exp.Column, exp.Identifier, exp.Alias, exp.Star),
    *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE),
    *(exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Case, exp.If, exp.Coalesce, exp.Lower),
    *(exp.Upper, exp.Trim, exp.Concat, exp.DPipe, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Create, exp.ReadParquet),
)
"""What takes each row by itself, and cannot fail on one."""
_READ = ("iceberg_scan",)
"""Functions that give the rows of a table, where a table is named."""
_TOGETHER = ("group", "having", "qualify", "distinct", "limit", "offset", "order", "sample", "laterals", "windows")
"""The parts of a SELECT that make rows of several rows."""


def check_views(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Raise InputError for a view of people that is not plainly row by row, unless the policy says trust_view."""
    listed = "select database_name, schema_name, view_name, sql from duckdb_views() where not internal"
    found = con.execute(listed).fetchall()
    views = {".".join(map(identifier, parts)): sql for *parts, sql in found}
    names = {fold(name) for _, _, name, _ in found}
    for info in catalog.tables.values():
        sql = views.get(info.relation)
        if sql is None or not info.protected or info.policy.trust_view:
            continue
        reason = why_not(sql, names)
        if reason is not None:
            told = (
                f"{info.name} is a view that {reason}. The guarantee needs views whose rows depend on one person's "
                "records only, and that fail on no row. Make a table of it; or, if you have checked that, say "
                "trust_view: true"
            )
            raise catalog.policy.error(("tables", info.name), told)


def why_not(sql: str, views: Collection[str] = ()) -> str | None:
    """Why a view is not plainly row by row, None where it is. sql: its CREATE VIEW. views: names of views, which a view
    may not read."""
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except sqlglot.errors.ParseError:
        return "is not understood"
    query = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("from_") is None:
        return "reads more than one table"
    if any(query.args.get(part) for part in _TOGETHER):
        return "takes rows together"
    for node in query.walk():
        if isinstance(node, exp.Anonymous) and fold(node.name) in _READ and isinstance(node.parent, exp.Table):
            continue
        if not isinstance(node, _ROW_BY_ROW) or (node is not query and isinstance(node, exp.Query)):
            return f"uses {sql_name(node)}"
        if isinstance(node, exp.Table) and fold(node.name) in views:
            return "reads another view"
    return None
