"""What to write instead of a function or a construct that is not answered, in the analyst's words."""

from difflib import get_close_matches

from sqlglot import exp

from kgather._guard import functions
from kgather._guard.policy import Policy
from kgather._guard.sql_names import sql_name

_OF_ONE = frozenset(
    [
        "array_agg",
        "list",
        "string_agg",
        "group_concat",
        "listagg",
        "first",
        "last",
        "any_value",
        "arbitrary",
        "arg_max",
        "arg_min",
        "max_by",
        "min_by",
        "argmax",
        "argmin",
        "arg_max_null",
        "arg_min_null",
    ]
)
"""Aggregates that tell values of single people."""
_BY_ONE = frozenset(["bool_or", "bool_and", "bit_or", "bit_and", "bit_xor"])
"""Aggregates that one person's value may decide."""
_INSTEAD = {
    "lateral": "Write a subquery in FROM or WITH, and join it",
    "glob": "Use LIKE",
    "collate": "Compare LOWER(...) of the text",
    "random": "An answer is the same when it is asked again: leave it out",
}


def instead_of_aggregate(call: exp.Expr, policy: Policy) -> str:
    """Why an aggregate is not answered over rows of people, and what is."""
    name = sql_name(call).lower()
    there = f"Over rows of people there are {', '.join(policy.aggregates)}, and over answers {sql_name(call)}, too"
    if name in _OF_ONE:
        return "It tells values of single people: group by the column, and count"
    if name in _BY_ONE:
        return "One person may decide it: count those for whom it is true, COUNT(*) FILTER (WHERE ...)"
    return there


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function of this name is an aggregate, of those that the parser does not know as one, too."""
    return isinstance(node, exp.Func) and sql_name(node).lower() in functions.AGGREGATES


def instead_of(name: str) -> str:
    """What there is instead of something that no list allows: names like it, or what is allowed in general."""
    known = name.lower()
    if known in _INSTEAD:
        return _INSTEAD[known]
    near = get_close_matches(known, functions.FUNCTIONS, 2, 0.8)
    if near:
        return f"Allowed are {' and '.join(one.upper() for one in near)}"
    return (
        "Allowed are functions of texts, numbers, dates, lists and JSON that give the same for the same arguments and "
        "read nothing else"
    )
