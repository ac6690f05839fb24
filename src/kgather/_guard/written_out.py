"""Shorter ways of writing a statement, written out before names are looked up: WINDOW clauses, VALUES, UNNEST and
GENERATE_SERIES in FROM, ANY and ALL of lists, FETCH FIRST, DATE(...), STRFTIME with the format first, and TO_CHAR of
dates as PostgreSQL has it. What a statement means does not change."""

from collections.abc import Mapping

from sqlglot import exp

from kgather._guard.policy import fold
from kgather._guard.refused import Rule, refused


def write_out(tree: exp.Query | exp.Values) -> exp.Query:
    """A statement without what is only another way of writing. Changes the tree. Raises Refused."""
    for node in list(tree.find_all(exp.Select)):
        _write_windows(node)
    for compared in list(tree.find_all(exp.EQ, exp.NEQ)):
        _write_list(compared)
    for fetched in list(tree.find_all(exp.Fetch)):
        _write_fetch(fetched)
    for formatted in list(tree.find_all(exp.TimeToStr, exp.ToChar)):
        _write_format(formatted)
    for dated in list(tree.find_all(exp.Date)):
        if not any(value for part, value in dated.args.items() if part != "this"):
            dated.replace(exp.Cast(this=dated.this.copy(), to=exp.DataType.build("date")))
    for member in list(tree.find_all(exp.Unnest, exp.GenerateSeries)):
        _write_member(member)
    for values in list(tree.find_all(exp.Values)):
        if isinstance(values.parent, exp.From | exp.Join):
            _replace_member(values, _rows(values))
        elif isinstance(values.parent, exp.Subquery | exp.CTE | exp.In):
            values.replace(_rows(values))
    return tree if not isinstance(tree, exp.Values) else _rows(tree)


def _write_windows(select: exp.Select) -> None:
    """Put what the WINDOW clause says into each OVER that names it."""
    windows = select.args.get("windows")
    if not windows:
        return
    named: dict[str, exp.Window] = {}
    for window in windows:
        base = window.args.get("alias")
        if base is not None:
            _extend(window, named, base)
        named[fold(window.this.name)] = window
    select.set("windows", None)
    for node in list(select.find_all(exp.Window)):
        if node.args.get("alias") is not None and node.find_ancestor(exp.Select) is select:
            _extend(node, named, node.args["alias"])


def _extend(window: exp.Window, named: Mapping[str, exp.Window], base: exp.Expr) -> None:
    found = named.get(fold(base.name))
    if found is None:
        raise refused(Rule.NAMES, f"There is no window {base.name[:60]!r} here", window)
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        if window.args.get(part) or not found.args.get(part):
            continue
        given = found.args[part]
        window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())


def _write_list(node: exp.Expr) -> None:
    """x = ANY([...]) as IN, and x <> ALL([...]) as NOT IN."""
    given = node.expression
    if isinstance(node, exp.EQ):
        listed = given.this if isinstance(given, exp.Any) else None
    else:
        is_all = isinstance(given, exp.Anonymous) and str(given.this).lower() == "all" and len(given.expressions) == 1
        listed = given.expressions[0] if is_all else given.this if isinstance(given, exp.All) else None
    listed = listed.unnest() if isinstance(listed, exp.Expr) else None
    if not isinstance(listed, exp.Array) or not listed.expressions:
        return
    within = exp.In(this=node.this.copy(), expressions=[one.copy() for one in listed.expressions])
    node.replace(within if isinstance(node, exp.EQ) else exp.Not(this=within))


def _write_fetch(node: exp.Expr) -> None:
    """FETCH FIRST n ROWS ONLY as LIMIT n."""
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        return
    count = node.args.get("count")
    node.replace(exp.Limit(expression=count.copy() if count is not None else exp.Literal.number(1)))


_DIRECTIVES = (
    *(("YYYY", "%Y"), ("YY", "%y"), ("Month", "%B"), ("Mon", "%b"), ("MM", "%m"), ("DDD", "%j"), ("DD", "%d")),
    *(("Day", "%A"), ("Dy", "%a"), ("HH24", "%H"), ("HH12", "%I"), ("MI", "%M"), ("SS", "%S"), ("AM", "%p")),
)
"""What PostgreSQL's TO_CHAR and DuckDB's STRFTIME write alike. Month and Day are not padded here."""


def _write_format(node: exp.Expr) -> None:
    """STRFTIME with its format behind the date, and TO_CHAR by a format that is made of known parts as STRFTIME."""
    fmt, of = node.args.get("format"), node.this
    if isinstance(node, exp.ToChar):
        parts = _strftime(str(fmt.this)) if isinstance(fmt, exp.Literal) and fmt.is_string else None
        if parts is not None:
            node.replace(exp.TimeToStr(this=of.copy(), format=exp.Literal.string(parts)))
    elif of.is_string and fmt is not None and not fmt.is_string:
        node.set("this", fmt)
        node.set("format", of)


def _strftime(fmt: str) -> str | None:
    """A format of TO_CHAR as one of STRFTIME; None where a letter of it is in no known part."""
    made, at = "", 0
    while at < len(fmt):
        known = next((one for one in _DIRECTIVES if fmt.startswith(one[0], at)), None)
        if known is None and fmt[at].isalnum():
            return None
        made += known[1] if known is not None else fmt[at].replace("%", "%%")
        at += len(known[0]) if known is not None else 1
    return made if "%" in made else None


def _write_member(node: exp.Expr) -> None:
    """UNNEST of one list, and a series, where a table stands in FROM, as a subquery of one column."""
    if isinstance(node, exp.Unnest):
        if not isinstance(node.parent, exp.From | exp.Join) or len(node.expressions) != 1 or node.args.get("offset"):
            return
        _replace_member(node, _rows_of(node.expressions[0], "unnest"))
        return
    table = node.parent
    if isinstance(table, exp.Table) and isinstance(table.parent, exp.From | exp.Join):
        name = "range" if node.args.get("is_end_exclusive") else "generate_series"
        _replace_member(table, _rows_of(node, name))


def _rows_of(listed: exp.Expr, name: str) -> exp.Query:
    return exp.Select(expressions=[_named(exp.Explode(this=listed.copy()), name)])


def _replace_member(node: exp.Expr, query: exp.Query) -> None:
    """Put a subquery where a member of a FROM stands, with its alias."""
    alias = node.args.get("alias")
    node.replace(exp.Subquery(this=query, alias=alias.copy() if alias is not None else None))


def _named(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _rows(values: exp.Values) -> exp.Query:
    """VALUES as the UNION ALL of SELECTs that it is."""
    rows = values.expressions
    cells = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in rows]
    if len({len(row) for row in cells}) != 1:
        raise refused(Rule.SET_OPERATIONS, "The rows of VALUES have different numbers of columns", values)
    lists = [exp.Array(expressions=[row[at].copy() for row in cells]) for at in range(len(cells[0]))]
    # One list for each column: they have as many elements, and are read side by side.
    return exp.Select(expressions=[_named(exp.Explode(this=one), f"col{at}") for at, one in enumerate(lists)])
