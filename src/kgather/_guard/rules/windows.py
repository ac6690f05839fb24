"""Windows run over answers."""

from sqlglot import exp

from kgather._guard import functions
from kgather._guard.allowed import AGGREGATES, WINDOWS, WINDOWS_OF_PUBLIC
from kgather._guard.names import Resolved, windowed
from kgather._guard.refused import NOT_PERMITTED, Rule, refused
from kgather._guard.sql_names import sql_name


def windows(query: Resolved) -> None:
    """Refuse windows and QUALIFY over rows of people."""
    for scope in query.scopes:
        if scope.raw_rows and scope.node.args.get("qualify") is not None:
            raise refused(
                Rule.WINDOWS, "QUALIFY over rows of people", scope.node, allow="Aggregate in a subquery first"
            )
    for node in query.tree.find_all(exp.Window):
        call = windowed(node)
        kind = type(call)
        if not (kind in AGGREGATES or kind in WINDOWS or kind in WINDOWS_OF_PUBLIC or _is_free(call)):
            raise refused(Rule.WINDOWS, f"{sql_name(call)} OVER", node)
        if isinstance(call.this, exp.Distinct):
            raise refused(Rule.WINDOWS, "DISTINCT with OVER", node)
        spec = node.args.get("spec")
        for bound in (spec.args.get("start"), spec.args.get("end")) if spec is not None else ():
            if isinstance(bound, exp.Expr) and not isinstance(bound, exp.Literal):
                raise refused(Rule.WINDOWS, "A frame that is no number of rows", node)
    for scope in query.scopes:
        if scope.raw_rows and _own(scope.node):
            reason = "A window over rows of people"
            raise refused(Rule.WINDOWS, reason, scope.node, allow="Aggregate in a subquery first", code=NOT_PERMITTED)


def _own(select: exp.Select) -> list[exp.Expr]:
    """The windows of a SELECT that are not those of a subquery."""
    parts = [*select.expressions, select.args.get("order"), select.args.get("where"), select.args.get("having")]
    stack = [part for part in parts if part is not None]
    found: list[exp.Expr] = []
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            found.append(node)
        stack.extend(node.iter_expressions())
    return found


def _is_free(call: exp.Expr) -> bool:
    """Whether a function over answers and public tables may stand before OVER."""
    return sql_name(call).lower() in functions.AGGREGATES | functions.WINDOWS
