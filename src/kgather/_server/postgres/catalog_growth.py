"""How long a text may become that a question about the catalog makes: DuckDB's limit of memory does not hold within a
call, and each subquery may make a text of several of those below it."""

from collections.abc import Mapping

from sqlglot import exp

from kgather._guard.rules.growth import ADDED, LENGTHS, MOST, REPLACED, SHORT
from kgather._guard.sql_names import sql_name

_OF_ROWS = 16
"""An aggregate over rows counts for so many texts."""


def is_bounded(tree: exp.Expr) -> bool:
    """Whether no text is made of more others than allowed. A statement that calls itself (WITH RECURSIVE) may make a
    text of one of its own, with what is put beside it."""
    return _of_query(tree, {}) <= MOST


def _of_query(query: exp.Expr, known: Mapping[str, int]) -> int:
    """Of how many texts the longest column may be made. known: the same of what WITH names."""
    with_ = query.args.get("with_")
    if isinstance(with_, exp.With):
        known = {**known}
        for cte in with_.expressions:
            name, own = cte.alias.lower(), dict(known)
            if with_.recursive:
                own[name] = 1
            size = _of_query(cte.this, own)
            if with_.recursive and size > 1 and _doubles(cte.this, name):
                return MOST + 1
            known[name] = size
    if isinstance(query, exp.SetOperation):
        return max(_of_query(query.this, known), _of_query(query.expression, known))
    if isinstance(query, exp.Subquery | exp.Table | exp.Unnest):
        return _of_source(query, known)
    if not isinstance(query, exp.Select):
        return 1
    from_ = query.args.get("from_")
    sources = ([from_.this] if from_ is not None else []) + [join.this for join in query.args.get("joins") or ()]
    below = max([_of_source(source, known) for source in sources], default=1)
    parts = [value for key, value in query.args.items() if key not in ("with_", "from_", "joins")]
    parts += [join.args.get("on") for join in query.args.get("joins") or ()]
    nodes = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return max([_of(one, below, known) for one in nodes if isinstance(one, exp.Expr)], default=1)


def _of_source(source: exp.Expr, known: Mapping[str, int]) -> int:
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        return known.get(source.name.lower(), 1) if not source.db else 1
    if isinstance(source, exp.Subquery):
        return _of_query(source.this, known)
    return max([_of(one, 1, known) for one in source.iter_expressions()], default=1)


def _of(node: exp.Expr, below: int, known: Mapping[str, int]) -> int:
    """Of an expression. below: of the columns that it is made of."""
    if isinstance(node, exp.Query):
        return max(_of_query(node, known), below)
    if isinstance(node, exp.Literal):
        return 1 + len(str(node.this)) // SHORT
    if isinstance(node, exp.Column):
        return below
    parts = [_of(one, below, known) for one in node.iter_expressions()]
    if not parts:
        return below
    name = sql_name(node).lower() if isinstance(node, exp.Func) else ""
    if isinstance(node, exp.DPipe | exp.Concat | exp.ConcatWs | exp.Array) or name in ADDED:
        size = sum(parts)
    elif name in REPLACED and len(parts) > 2:
        size = parts[0] * parts[2] * SHORT
    elif name in LENGTHS and len(parts) > LENGTHS[name]:
        number = [*node.iter_expressions()][LENGTHS[name]].unnest()
        many = int(number.name) if isinstance(number, exp.Literal) and number.is_int else MOST
        size = max(parts) * max(many, 1) if name == "repeat" else max(parts) + many // SHORT
    elif isinstance(node, exp.AggFunc) or name in ("json_agg", "jsonb_agg", "string_agg", "array_agg"):
        size = max(parts) * _OF_ROWS
    else:
        size = max(parts)
    return min(size, MOST + 1)


def _doubles(query: exp.Expr, name: str) -> bool:
    """Whether a query that calls itself may put two of its own texts together, or many."""
    if not any(table.name.lower() == name for table in query.find_all(exp.Table)):
        return False
    own = {name} | {
        table.alias.lower() for table in query.find_all(exp.Table) if table.name.lower() == name and table.alias
    }
    for node in query.find_all(exp.DPipe, exp.Concat, exp.ConcatWs, exp.Func):
        word = sql_name(node).lower() if isinstance(node, exp.Func) else ""
        columns = [one for one in node.find_all(exp.Column) if not one.table or one.table.lower() in own]
        if word in REPLACED | set(LENGTHS) and columns:
            return True
        if (isinstance(node, exp.DPipe) or word in ADDED) and len(columns) > 1:
            return True
    return False
