"""What an analyst may write instead of an argument that no aggregate over rows of people takes."""

from collections.abc import Mapping

from sqlglot import exp

from kgather._guard.conditions import constant
from kgather._guard.policy import ANSWERED, Policy
from kgather._guard.sql_names import sql_name

_CONDITIONS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)
_OPERATIONS: Mapping[type[exp.Expr], str] = {
    exp.Add: "A sum of columns",
    exp.Sub: "A difference of columns",
    exp.Mul: "A product of columns",
    exp.Div: "A division by a column",
}


def called(node: exp.Expr) -> str:
    """What an argument is called that is neither a column nor made of one."""
    if isinstance(node, _CONDITIONS):
        return "A condition"
    if _is_constant(node):
        return "A constant"
    return _OPERATIONS.get(type(node)) or sql_name(node)


def argument_instead(node: exp.Expr, function: str, policy: Policy) -> str:
    """What to write instead of an aggregate with this argument."""
    if _is_condition(node):
        return _SHARE if function == "AVG" else f"Use {_COUNTED}"
    if _is_constant(node):
        return "Use COUNT(*), and arithmetic with it"
    if isinstance(node, exp.Case | exp.If):
        return _of_cases(node, function)
    if isinstance(node, exp.Mul | exp.Add | exp.Sub) and function in ("AVG", "SUM"):
        parts = [node.this.unnest(), node.expression.unnest()]
        if all(isinstance(part, exp.Column) for part in parts) and (told := _of_two(node, parts, function, policy)):
            return told
    if policy.mode == "exact":
        return "An argument is a column as it is"
    if policy.mode == "measured":
        return (
            "An argument is a column, or computed from columns of one row by + - * / %, ABS, ROUND, FLOOR, CEIL, "
            "GREATEST, LEAST, COALESCE and CASE"
        )
    return "An argument is a column, or a * column + b with constants a and b"


_COUNTED = "COUNT(*) FILTER (WHERE condition)"
_SHARE = f"The share of those who meet a condition is {_COUNTED} / COUNT(*)"


def _is_condition(node: exp.Expr) -> bool:
    """Whether a node is true or false, or 1 or 0 for it."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return _is_condition(node.this)
    return isinstance(node, _CONDITIONS)


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Null | exp.Binary | exp.Neg | exp.Paren) and node.find(exp.Column) is None


def _of_cases(node: exp.Case | exp.If, function: str) -> str:
    """CASE and IF choose among people: FILTER does, too."""
    whens = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default" if isinstance(node, exp.Case) else "false")
    several = "Ask for each case by itself, with FILTER (WHERE condition), and put the results together"
    if len(whens) > 1 or (isinstance(node, exp.Case) and node.this is not None):
        return several
    value, last = constant(whens[0].args["true"]), constant(default) if default is not None else None
    counted = value is not None and (value.value == 1 or function == "COUNT") and value.value is not None
    if default is None or (last is not None and last.value is None):
        return f"Use {_COUNTED if counted else f'{function}(column) FILTER (WHERE condition)'}"
    if last is None or last.value != 0 or function not in ("SUM", "AVG"):
        return several
    if function == "AVG":
        return _SHARE if counted else "Use SUM(column) FILTER (WHERE condition) / COUNT(*)"
    return f"Use {_COUNTED if counted else 'SUM(column) FILTER (WHERE condition)'}"


def _of_two(node: exp.Expr, parts: list[exp.Expr], function: str, policy: Policy) -> str:
    """A mean or a sum of two columns, made of what each of them has; nothing where the policy does not allow that."""
    one, other = (part.sql("duckdb")[:60] for part in parts)
    allowed = [word for word in policy.aggregates if word in ANSWERED[policy.mode]]
    if not isinstance(node, exp.Mul):
        sign = "+" if isinstance(node, exp.Add) else "-"
        return f"Use {function}({one}) {sign} {function}({other}), if everybody has both"
    same = one.lower() == other.lower()
    if "AVG" not in allowed or ("VAR" if same else "COVAR") not in allowed:
        return ""
    spread = f"VAR_POP({one})" if same else f"COVAR_POP({one}, {other})"
    mean = f"{spread} + AVG({one}) * AVG({other})"
    if function == "SUM":
        mean = f"COUNT({one}) * ({mean})"
    return f"Use {mean}" if same else f"Use {mean}, if everybody has both"
