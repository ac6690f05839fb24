"""Shorter ways of writing a statement, written out before names are looked up: WINDOW clauses, and VALUES in
FROM. What a statement means does not change."""

from collections.abc import Mapping

from sqlglot import exp

from kgather._guard.policy import fold
from kgather._guard.refused import Rule, refused


def write_out(tree: exp.Query | exp.Values) -> exp.Query:
    """A statement without what is only another way of writing. Changes the tree. Raises Refused."""
    for node in list(tree.find_all(exp.Select)):
        _write_windows(node)
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
