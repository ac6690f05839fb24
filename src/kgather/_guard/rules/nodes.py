"""Only what stands in the allow-lists."""

from sqlglot import exp

from kgather._guard import functions, series
from kgather._guard.advice import instead_of
from kgather._guard.allowed import NODES, RANKS, TYPES
from kgather._guard.refused import Refused, Rule, refused
from kgather._guard.sql_names import part_name, sql_name

_NUMBER_LENGTH = 60
_CLOCKS = {"now", "current_timestamp", "localtimestamp", "current_localtimestamp", "get_current_timestamp"}


def nodes(tree: exp.Expr) -> None:
    """Refuse constructs, parts of constructs and functions that no allow-list names."""
    for node in tree.walk():
        parts = NODES.get(type(node))
        if parts is None and not is_free(node):
            raise _unknown(node)
        for part, value in node.args.items():
            if parts is not None and value and part not in parts:
                raise _part(node, part)
        if isinstance(node, exp.Count) and node.this is None:
            raise refused(Rule.NODES, "COUNT without an argument", node, allow="Write COUNT(*)")
        if isinstance(node, exp.Var) and not isinstance(node.parent, exp.Func | exp.Interval) and not is_all(node):
            raise refused(Rule.NODES, f"{node.name.upper()[:30]} in this place", node.parent)
        if parts is None and isinstance(node, exp.Func) and functions.may_be_long(node, sql_name(node).lower()):
            allow = "Its length is a constant of at most 1000, and its format a constant, too"
            raise refused(Rule.NODES, f"{sql_name(node)} that could make a text of any length", node, allow=allow)
        if isinstance(node, exp.GenerateSeries) and not series.is_short(node):
            allow = f"Write its ends and its step as constants, of at most {series.LONGEST} elements"
            raise refused(Rule.NODES, f"{sql_name(node)} of any length", node, allow=allow)
        if isinstance(node, RANKS) and not isinstance(_above(node), exp.Window):
            raise refused(Rule.NODES, f"{sql_name(node)} without OVER", node)
        if isinstance(node, exp.Cast) and node.to.this not in TYPES and not isinstance(node.parent, exp.JSONPath):
            allow = "Casts lead to numbers, VARCHAR, BOOLEAN, DATE and TIMESTAMP"
            raise refused(Rule.NODES, "A cast to this type", node, allow=allow)
        if isinstance(node, exp.Literal) and not node.is_string and len(node.this) > _NUMBER_LENGTH:
            raise refused(Rule.NODES, "A number of too many digits", node)


def is_all(node: exp.Expr) -> bool:
    """Whether a node is ALL of ORDER BY ALL."""
    order = node.parent.parent if isinstance(node.parent, exp.Ordered) else None
    return order is not None and isinstance(order.parent, exp.Query) and node.name.upper() == "ALL"


def is_free(node: exp.Expr) -> bool:
    """Whether a node may stand over answers and public tables, and not over rows of people."""
    if isinstance(node, functions.OPERATORS):
        return True
    return isinstance(node, exp.Func) and sql_name(node).lower() in functions.FUNCTIONS


def _above(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    return above.parent if isinstance(above, exp.IgnoreNulls | exp.RespectNulls) else above


def _unknown(node: exp.Expr) -> Refused:
    if sql_name(node).lower() in _CLOCKS:
        allow = "Use CURRENT_DATE, the day on which the question is asked"
        return refused(Rule.NODES, f"{sql_name(node)[:60]}, which depends on the second", node, allow=allow)
    if isinstance(node, exp.Anonymous):
        allow = instead_of(str(node.this))
        return refused(Rule.NODES, f"The function {str(node.this)[:60]} is not in the guard's lists", node, allow=allow)
    allow = instead_of(sql_name(node))
    if isinstance(node, exp.Func | exp.IgnoreNulls | exp.RespectNulls):
        return refused(Rule.NODES, f"The function {sql_name(node)[:60]} is not in the guard's lists", node, allow=allow)
    return refused(Rule.NODES, f"{sql_name(node)} is not in the guard's lists", node, allow=allow)


def _part(node: exp.Expr, part: str) -> Refused:
    if isinstance(node, exp.With) and part == "recursive":
        return refused(Rule.NODES, "WITH RECURSIVE", node, allow="Write its steps one after the other in WITH")
    if isinstance(node, exp.Join) and part == "method":
        reason = f"{str(node.args[part]).upper()} JOIN"
        return refused(Rule.JOINS, reason, node, allow="Name the key: JOIN ... USING (...) or ON ... = ...")
    if isinstance(node, exp.SetOperation):
        reason = f"{node.key.upper()} {part.upper().replace('_', ' ')}"
        return refused(Rule.SET_OPERATIONS, reason, node, allow="Name the columns in one order")
    if isinstance(node, exp.Func):  # sqlglot's names for further arguments change
        return refused(Rule.NODES, f"An argument of {sql_name(node)} is not in the guard's lists", node)
    allow = "Answers are about all people, at no other price: leave it out" if part == "sample" else ""
    return refused(
        Rule.NODES, f"{sql_name(node)} with {part_name(part)} is not in the guard's lists", node, allow=allow
    )
