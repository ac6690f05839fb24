"""Methods that can gather block by block."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kgather._methods.users import Groups, Users


def in_blocks(users: Users, gather: Callable[[NDArray[np.floating], int], NDArray[np.int32]]) -> Groups:
    """Gather all users at once, or in blocks of the size that is asked for."""
    if not users.asked.block_size:
        return Groups(gather(users.vectors, users.k))
    from kgather.udfs.gathering.blocks import gather_in_blocks

    return Groups(
        gather_in_blocks(users.vectors, users.k, gather, block_size=users.asked.block_size, threads=users.threads)
    )
