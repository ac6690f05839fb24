"""Finds subqueries that are answers, and stand in conditions over rows of people: they are planned by themselves."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from kgather._guard.constants import bound_of, name_of
from kgather._guard.names import Resolved, Scope, Union, base_column, is_unit
from kgather._guard.plan import Inner, Kind, Plan
from kgather._guard.refused import Rule, refused
from kgather._guard.rules.subqueries import answers_in_conditions

PlanOf = Callable[["Scope | Union"], Plan]


def plan_inner(query: Resolved, plan_of: PlanOf) -> tuple[Inner, ...]:
    """Plan the answers that conditions of a statement need, and note them with the scopes that they stand in. Raises
    Refused."""
    found: dict[str, Inner] = {}
    for scope in query.scopes:
        for node, inner in answers_in_conditions(scope):
            if id(node) in scope.constants or is_of_person(scope, inner):
                continue
            if len(inner.outputs) != 1:
                raise refused(Rule.SUBQUERIES, "A subquery of several columns as a value", node)
            _check_alone(inner, node)
            made = plan_of(inner)
            if made.public:
                allow = "Ask for it first, and write its value"
                raise refused(Rule.SUBQUERIES, "A subquery in a condition that reads a public table", node, allow=allow)
            kind, several = _kind(inner), isinstance(node, exp.In)
            one = Inner(name_of(made, kind, several=several), made, kind, several)
            found[one.name] = one
            bound = bound_of(one.name, one.kind)
            scope.constants[id(node)] = scope.constants[id(node.unnest())] = bound
    return tuple(found.values())


def _kind(inner: Scope | Union) -> Kind:
    """The type of a subquery's column: that of the column that it is, or a number."""
    if isinstance(inner, Union):
        return _kind(inner.branches[0])
    output = inner.outputs[0]
    found = base_column(inner, output.node) if output.node is not None else None
    if found is not None:
        return found.column.kind
    if output.node is None and output.source is not None and isinstance(output.source.query, Scope):
        within = output.source.query
        one = next(one for one in within.outputs if one.label == output.column)
        found = base_column(within, one.node) if one.node is not None else None
        return found.column.kind if found is not None else "number"
    return "number"


def _check_alone(inner: Scope | Union, node: exp.Expr) -> None:
    """Refuse a subquery that reads columns of a query around it."""
    own = {id(one) for one in scopes_of(inner)}
    for scope in scopes_of(inner):
        if any(id(name.scope) not in own for name in scope.names.values()):
            allow = "Ask for it first as a list, and join it with the answer"
            reason = "A subquery in a condition reads columns of the query around it"
            raise refused(Rule.SUBQUERIES, reason, node, allow=allow)


def is_of_person(scope: Scope, inner: Scope | Union) -> bool:
    """Whether a subquery is a value that a person has by their own rows: it names the person of the query around."""
    if not isinstance(inner, Scope) or inner.node.args.get("group") is not None:
        return False
    where = inner.node.args.get("where")
    for part in where.find_all(exp.EQ) if where is not None else ():
        names = [inner.names.get(id(side.unnest())) for side in (part.this, part.expression)]
        around = any(name is not None and name.scope is scope for name in names)
        if around and all(is_unit(inner, side) for side in (part.this, part.expression)):
            return True
    return False


def scopes_of(query: Scope | Union) -> Iterator[Scope]:
    """The SELECTs that a query is made of, itself first."""
    if isinstance(query, Union):
        for branch in query.branches:
            yield from scopes_of(branch)
    else:
        yield query
        for inner in [*query.subqueries.values(), *(source.query for source in query.sources if source.query)]:
            yield from scopes_of(inner)
