"""(k, epsilon)-anonymity (Sun and Sun): groups whose members' ratings are within epsilon of each other."""

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather users into cliques of near ones, and say which groups are cliques as they are."""
    del options
    from kgather.udfs.gathering import epsilon

    groups, is_clique = epsilon.decompose(
        users.ratings.with_items(users.identifying),
        users.k,
        epsilon=users.asked.epsilon,
        rating_range=users.scale[1],
        vectors=users.vectors,
        seed=users.seed,
        threads=users.threads,
    )
    return Groups(groups, unchanged=is_clique[groups])


METHOD = Method(
    name="epsilon",
    text="gathers users whose ratings lie within epsilon of each other",
    gather=gather,
    form="interval",
    looks_at="sets of rated items, ratings",
    groups="k and more",
    cost="near O(n)",
    choose="for (k, epsilon)-anonymity",
)
