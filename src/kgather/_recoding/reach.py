"""How far what a class shows reaches: a label covers all values below it, and not only those that the class has."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgather._recoding.lines import Coded


def reach(
    columns: Sequence[Coded], low: NDArray[np.int32], high: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The boxes of what classes show, int32[g, d] each; low and high are the boxes of the classes."""
    first, last = np.empty_like(low), np.empty_like(high)
    for j, column in enumerate(columns):
        a, b = low[:, j], high[:, j]
        first[:, j], last[:, j] = column.loss.covered(a, b)
        if column.line is not None:  # a range that is open at both ends is shown as a star
            everything = np.isneginf(column.line.start[a]) & np.isposinf(column.line.end[b])
            first[everything, j], last[everything, j] = 0, column.loss.codes - 1
    return first, last
