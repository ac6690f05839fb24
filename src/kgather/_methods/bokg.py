"""Bisecting One-K-Gather (X. Chen's thesis, section 3.3): users who may stand alone where they stick out."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather users of level k, and leave users of level 1 alone where that pays."""
    del options
    from kgather.udfs.gathering import bokg

    return Groups(bokg.gather(users.vectors, users.k, users.levels, tries=users.asked.bisection_tries, seed=users.seed))


METHOD = Method(
    name="bokg",
    text="gives each user the level that was asked for: k, or 1 to stand alone where that pays",
    gather=gather,
    levels=True,
    looks_at="vectors, levels 1 and k",
    groups="k to 2k - 1, or one user",
    cost="O(n log n)",
    choose="to compare with the thesis",
)
