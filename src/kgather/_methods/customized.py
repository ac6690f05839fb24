"""Customized k-anonymity (X. Chen's thesis, chapter 5): every user says how large its group must be."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather users so that each group is as large as each of its members asks for."""
    del options
    from kgather.udfs.gathering import customized

    return Groups(
        customized.gather(
            users.vectors, users.levels, tries=users.asked.bisection_tries, seed=users.seed, threads=users.threads
        )
    )


METHOD = Method(
    name="customized",
    text="makes each group as large as each of its members asks for",
    gather=gather,
    levels=True,
    refines=True,
    looks_at="vectors, any levels",
    groups="as large as their members ask for",
    cost="O(n log n)",
    choose="if users choose",
)
