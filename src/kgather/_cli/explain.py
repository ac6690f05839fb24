"""`kgather explain`."""

from typing import Annotated

import typer

from kgather._cli.query import (
    ParameterOption,
    PolicyOption,
    PrincipalOption,
    SqlArgument,
    parameters,
    say_begun,
    statement,
)


def command(
    sql: SqlArgument = None,
    *,
    policy: PolicyOption,
    principal: PrincipalOption = None,
    parameter: ParameterOption = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="Say what would be measured, what that costs, and what is left.")
    ] = False,
) -> None:
    """Say what would be asked of the data, as SQL to read, or why the statement is refused; ask nothing."""
    text = statement(sql)
    from kgather.guard import Guard  # the kernels take seconds to load

    guard = Guard.from_policy(policy, prepare=False)
    say_begun(guard)
    print(guard.explain(text, principal=principal, parameters=parameters(parameter, text), cost=cost))
