"""k-Member (Byun, Kamra, Bertino and Li 2007) on the artifact table."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather the users of the artifact table."""
    del options
    from kgather.udfs.gathering import k_member

    return Groups(k_member.gather(users.artifacts, users.k, categorical=users.categorical, threads=users.threads))


METHOD = Method(
    name="k_member",
    text="grows groups by the user that adds the least loss on the artifacts",
    gather=gather,
    gathers_on="artifacts",
    categories=True,
    form="none",
    generalization="ndgh",
    looks_at="the artifact table",
    groups="k, few larger",
    cost="O(n²)",
    choose="for generalized tables of low loss",
)
