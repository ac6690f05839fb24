"""Mondrian (LeFevre, DeWitt and Ramakrishnan 2006) on the artifact table."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather the users of the artifact table."""
    del options
    from kgather.udfs.gathering import mondrian

    return Groups(mondrian.gather(users.artifacts, users.k, categorical=users.categorical, threads=users.threads))


METHOD = Method(
    name="mondrian",
    text="cuts the artifact table in two at medians until no part can be cut",
    gather=gather,
    gathers_on="artifacts",
    categories=True,
    form="none",
    generalization="ndgh",
    looks_at="the artifact table",
    groups="k and more",
    cost="O(n log n)",
    choose="for generalized tables of any size",
)
