"""Questions that only want to know which columns there are: LIMIT 0, WHERE FALSE, and how tools write these.

Their answer has no rows whatever the data are, so nothing is asked and nothing is charged.
"""

from collections.abc import Sequence

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError

from kgather._guard.catalog import Catalog
from kgather._guard.labels import label
from kgather._guard.policy import fold
from kgather._server.postgres import types
from kgather._server.postgres.catalog import OF_KIND
from kgather._server.postgres.parameters import begins_a_query
from kgather._server.postgres.result import Column

_DUCKDB = Dialect.get_or_raise("duckdb")
_LONGEST = 10_000
_PARTS = ("with_", "joins", "group", "having", "qualify", "distinct", "order", "offset")

SAMPLE = "Rows of people are not shown: this answer has the columns only."
"""What is told where the first row of a table was asked for, by which some tools find out its columns."""


def read(text: str) -> exp.Select | None:
    """The outermost SELECT, if it gives no rows, whatever the data are, or is SELECT * FROM table LIMIT 1."""
    lower = text.lower()
    if len(text) > _LONGEST or not ("limit" in lower or "where" in lower):
        return None
    try:
        tokens = _DUCKDB.tokenize(text)
        trees = _DUCKDB.parser().parse(tokens, text) if begins_a_query(tokens) else []
    except (SqlglotError, ValueError, RecursionError):
        return None
    tree = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Select) and (_is_empty(tree) or is_sample(tree)) else None


def is_sample(tree: exp.Select) -> bool:
    """Whether it is SELECT * FROM table LIMIT 1, and nothing else; the table may stand in sub-selects of the kind."""
    return _is_whole(tree, "limit") and _limit(tree) == "1"


def _is_whole(tree: exp.Select, *more: str) -> bool:
    """Whether it is SELECT * FROM a table or such a sub-select. more: the other parts that it has."""
    parts = {part for part, value in tree.args.items() if value}
    source = _source(tree)
    return (
        parts == {"expressions", "from_", *more}
        and len(tree.expressions) == 1
        and isinstance(tree.expressions[0], exp.Star)
        and (isinstance(source, exp.Table) or (isinstance(source, exp.Select) and _is_whole(source)))
    )


def _source(tree: exp.Select) -> exp.Table | exp.Select | None:
    """What it selects from: a table or the SELECT of a sub-select; None for anything else."""
    from_ = tree.args.get("from_")
    source = from_.this if from_ is not None else None
    if isinstance(source, exp.Subquery):
        alias = source.args.get("alias")
        parts = {part for part, value in source.args.items() if value}
        renamed = isinstance(alias, exp.TableAlias) and bool(alias.columns)
        source = None if renamed or not parts <= {"this", "alias"} else source.this
    return source if isinstance(source, exp.Table | exp.Select) else None


def columns(tree: exp.Select, catalog: Catalog) -> Sequence[Column] | None:
    """The columns that it selects of one table that the policy protects, as they are, also by way of sub-selects; None
    where that is not all."""
    if any(tree.args.get(part) for part in _PARTS):
        return None
    source = _source(tree)
    given = columns(source, catalog) if isinstance(source, exp.Select) else _shown(source, catalog)
    if given is None:
        return None
    known = {fold(one.name): one for one in given}
    found: list[Column] = []
    for each in tree.expressions:
        node = each.unalias()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            found += given
        elif isinstance(node, exp.Column) and fold(node.name) in known:
            found.append(Column(label(each), known[fold(node.name)].type))
        elif isinstance(node, exp.Boolean):
            found.append(Column(label(each), types.BOOL))
        elif isinstance(node, exp.Literal):
            found.append(Column(label(each), types.STRING if node.is_string else types.INT4))
        else:
            return None
    return found


def _shown(source: exp.Table | None, catalog: Catalog) -> Sequence[Column] | None:
    """The columns that the policy shows of a table that it protects."""
    info = catalog.table(source.name) if source is not None else None
    if source is None or info is None or not info.protected or (source.db and source.db.lower() != "main"):
        return None
    shown = (one for one in info.columns.values() if one.role != "hidden")
    return [Column(one.name, OF_KIND.get(one.kind, types.STRING)) for one in shown]


def _is_empty(tree: exp.Select) -> bool:
    if _limit(tree) == "0":
        return True
    if any(tree.args.get(part) for part in ("joins", "group", "having")):
        return False
    where = tree.args.get("where")
    source = _source(tree)
    if not (where is not None and _is_false(where.this)) and not (isinstance(source, exp.Select) and _is_empty(source)):
        return False
    return not any(node.parent_select is tree for node in tree.find_all(exp.AggFunc))


def _limit(tree: exp.Select) -> str | None:
    limit = tree.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    return number.name if isinstance(number, exp.Literal) and not number.is_string else None


def _is_false(node: exp.Expr) -> bool:
    """Whether a condition is false in itself: FALSE, 1 = 0, 1 <> 1."""
    node = node.unnest()
    if isinstance(node, exp.And):
        return _is_false(node.this) or _is_false(node.expression)
    if isinstance(node, exp.Boolean):
        return not node.this
    if not isinstance(node, exp.EQ | exp.NEQ):
        return False
    sides = (node.this.unnest(), node.expression.unnest())
    if not all(isinstance(side, exp.Literal) and not side.is_string and side.name.isdecimal() for side in sides):
        return False
    same = int(sides[0].name) == int(sides[1].name)
    return same if isinstance(node, exp.NEQ) else not same
