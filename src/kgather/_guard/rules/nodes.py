"""Only what stands in the allow-lists."""

from sqlglot import exp

from kgather._guard.allowed import NODES, RANKS, TYPES
from kgather._guard.refused import Refused, Rule, refused

_NUMBER_LENGTH = 60


def nodes(tree: exp.Expr) -> None:
    """Refuse constructs, parts of constructs and functions that no allow-list names."""
    for node in tree.walk():
        parts = NODES.get(type(node))
        if parts is None:
            raise _unknown(node, str(tree.meta.get("text", "")))
        for part, value in node.args.items():
            if value and part not in parts:
                raise _part(node, part)
        if isinstance(node, exp.Count) and node.this is None:
            raise refused(Rule.NODES, "COUNT without an argument", node, allow="Write COUNT(*)")
        if isinstance(node, exp.Var) and not isinstance(node.parent, exp.TimestampTrunc | exp.DateTrunc):
            raise refused(Rule.NODES, f"{node.name.upper()[:30]} in this place", node.parent)
        if isinstance(node, RANKS) and not isinstance(node.parent, exp.Window):
            raise refused(Rule.NODES, f"{node.key.upper()} without OVER", node)
        if isinstance(node, exp.Cast) and node.to.this not in TYPES:
            allow = "Casts lead to numbers, VARCHAR, BOOLEAN, DATE and TIMESTAMP"
            raise refused(Rule.NODES, "A cast to this type", node, allow=allow)
        if isinstance(node, exp.Literal) and not node.is_string and len(node.this) > _NUMBER_LENGTH:
            raise refused(Rule.NODES, "A number of too many digits", node)


def _unknown(node: exp.Expr, text: str) -> Refused:
    if isinstance(node, exp.Anonymous):
        return refused(Rule.NODES, f"The function {str(node.this)[:60]} is not in the guard's lists", node)
    if isinstance(node, exp.SetOperation):
        return refused(Rule.SET_OPERATIONS, f"{node.key.upper()}", node, allow="Of set operations there is UNION ALL")
    if isinstance(node, exp.Func):
        start, end = node.meta.get("start"), node.meta.get("end", -1)
        name = text[start : end + 1].upper() if start is not None else node.key.upper()
        return refused(Rule.NODES, f"The function {name[:60]} is not in the guard's lists", node)
    return refused(Rule.NODES, f"{node.key.upper()} is not in the guard's lists", node)


def _part(node: exp.Expr, part: str) -> Refused:
    if isinstance(node, exp.With) and part == "recursive":
        return refused(Rule.NODES, "WITH RECURSIVE", node)
    if isinstance(node, exp.Join) and part == "method":
        reason = f"{str(node.args[part]).upper()} JOIN"
        return refused(Rule.JOINS, reason, node, allow="Name the key: JOIN ... USING (...) or ON ... = ...")
    if isinstance(node, exp.Union):
        return refused(Rule.SET_OPERATIONS, f"UNION with {part.upper()}", node, allow="Use UNION ALL")
    if isinstance(node, exp.Func):  # sqlglot's names for further arguments change
        return refused(Rule.NODES, f"An argument of {node.key.upper()} is not in the guard's lists", node)
    return refused(Rule.NODES, f"{part.strip('_').upper()} of {node.key.upper()} is not in the guard's lists", node)
