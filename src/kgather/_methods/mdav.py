"""MDAV microaggregation (Casino et al.)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kgather._methods._blocks import in_blocks
from kgather._methods.record import Method, NoOptions
from kgather._methods.users import Groups, Users


class Options(NoOptions):
    """leftovers: what becomes of the last k to 2k - 1 users: 'nearest' (the paper's rule) or 'own' group."""

    leftovers: Literal["nearest", "own"] = "nearest"


def gather(users: Users, options: Options) -> Groups:
    """Gather all users, or those of each block."""
    from kgather.udfs.gathering import mdav

    # Blocks have the threads already.
    threads = 1 if users.asked.block_size else users.threads

    def cut(rows: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        return mdav.gather(rows, k, leftovers=options.leftovers, threads=threads)

    return in_blocks(users, cut)


METHOD = Method(
    name="mdav",
    text="takes the farthest users and those nearest to them, again and again",
    gather=gather,
    options=Options,
    refines=True,
    blocks=True,
    groups="k, few up to 3k - 1",
    cost="O(n²/k), less in blocks",
    choose="for the least loss",
)
