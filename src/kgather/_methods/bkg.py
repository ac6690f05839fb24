"""Bisecting K-Gather (X. Chen's thesis, section 3.2): the default."""

import numpy as np
from numpy.typing import NDArray

from kgather._methods._blocks import in_blocks
from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


def gather(users: Users, options: NoOptions) -> Groups:
    """Gather all users, or those of each block."""
    del options
    from kgather.udfs.gathering import bkg

    def cut(rows: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        return bkg.gather(rows, k, tries=users.asked.bisection_tries, seed=users.seed)

    return in_blocks(users, cut)


METHOD = Method(
    name="bkg",
    text="bisects the users until no part can be cut into two of at least k",
    gather=gather,
    refines=True,
    blocks=True,
    groups="k to 2k - 1",
    cost="O(n log n)",
    choose="by default",
)
