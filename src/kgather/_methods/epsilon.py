"""(k, epsilon)-anonymity (Sun and Sun): groups whose members' ratings are within epsilon of each other."""

from typing import Any, Literal

import numpy as np

from kgather._errors import InputError
from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


class Options(NoOptions):
    """by: what becomes of users who are in no clique: windows move their ratings, deletion leaves them out."""

    by: Literal["windows", "deletion"] = "windows"


def gather(users: Users, options: Options) -> Groups:
    """Gather users into cliques of near ones, and say which groups are cliques as they are."""
    from kgather.udfs.gathering import epsilon

    asked: dict[str, Any] = {
        "epsilon": users.asked.epsilon,
        "rating_range": users.scale[1],
        "vectors": users.vectors,
        "seed": users.seed,
        "threads": users.threads,
    }
    ratings = users.ratings.with_items(users.identifying)
    if options.by == "windows":
        groups, is_clique = epsilon.decompose(ratings, users.k, **asked)
        return Groups(groups, unchanged=is_clique[groups])
    groups = epsilon.keep_cliques(ratings, users.k, **asked)
    if (groups < 0).all():
        msg = (
            f"nobody has {users.k - 1} others within {users.asked.epsilon:g} of all ratings, so that deletion would "
            "leave nobody. Raise epsilon, lower k, or leave method_options by: deletion out."
        )
        raise InputError(msg)
    return Groups(groups, unchanged=np.ones(len(groups), dtype=bool))


METHOD = Method(
    name="epsilon",
    text="gathers users whose ratings lie within epsilon of each other",
    gather=gather,
    options=Options,
    form="interval",
    tells=("unchanged", "left_out"),
    looks_at="sets of rated items, ratings",
    groups="k and more",
    cost="near O(n)",
    choose="for (k, epsilon)-anonymity",
)
