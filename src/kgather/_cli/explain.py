"""`kgather explain`."""

from kgather._cli.query import ParameterOption, PolicyOption, PrincipalOption, SqlArgument, parameters, statement


def command(
    sql: SqlArgument = None,
    *,
    policy: PolicyOption,
    principal: PrincipalOption = None,
    parameter: ParameterOption = None,
) -> None:
    """Say what would be asked of the data, as SQL to read, or why the statement is refused; ask nothing."""
    text = statement(sql)
    from kgather.guard import Guard  # the kernels take seconds to load

    print(Guard.from_policy(policy).explain(text, principal=principal, parameters=parameters(parameter, text)))
