"""k-Likeness (Riyana and Natwichai 2018) on the artifact table."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather the users of the artifact table."""
    del options
    from kgather.udfs.gathering import k_likeness

    return Groups(k_likeness.gather(users.artifacts, users.k, categorical=users.categorical, threads=users.threads))


METHOD = Method(
    name="k_likeness",
    text="takes a user and the k - 1 most alike on the artifacts, again and again",
    gather=gather,
    gathers_on="artifacts",
    categories=True,
    form="none",
    generalization="ndgh",
    looks_at="the artifact table",
    groups="k, few larger",
    cost="O(n²/k)",
    choose="for generalized tables, fast",
)
