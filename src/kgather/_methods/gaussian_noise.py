"""Gaussian noise on every rating, to compare with: it gives no k-anonymity."""

import numpy as np

from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Leave every user alone."""
    del options
    return Groups(np.arange(users.n, dtype=np.int32))


METHOD = Method(
    name="gaussian_noise",
    text="adds noise and gathers nobody: for comparison, it gives NO k-anonymity",
    gather=gather,
    form="noise",
    forms=("noise",),
    anonymous=False,
    looks_at="nothing",
    groups="one user: **no anonymity**",
    cost="O(n m)",
    choose="to compare with",
)
