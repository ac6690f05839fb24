"""Rows that kernels reorder in place: `order` follows, so that it says whose row is where."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.selection import kth_smallest


@njit(nogil=True, cache=True, inline="always")
def swap(rows: NDArray[np.float32 | np.float64], order: NDArray[np.integer], i: int, j: int) -> None:
    """Exchanges two rows, and whose they are. O(d)."""
    for a in range(rows.shape[1]):
        keep = rows[i, a]
        rows[i, a] = rows[j, a]
        rows[j, a] = keep
    keep_order = order[i]
    order[i] = order[j]
    order[j] = keep_order


@njit(nogil=True, cache=True)
def bring_smallest(
    rows: NDArray[np.float32 | np.float64],
    order: NDArray[np.integer],
    lo: int,
    hi: int,
    count: int,
    key: NDArray[np.float64],
    spare: NDArray[np.float64],
) -> None:
    """Reorders lo:hi so that the `count` records of the smallest key come first; ties fall to the earlier
    ones.

    key float64[n] holds a number for every record of lo:hi (and is reordered with them), spare float64[n] is
    scratch. O(hi - lo).
    """
    if count <= 0 or count >= hi - lo:
        return
    for i in range(lo, hi):
        spare[i] = key[i]
    limit = kth_smallest(spare, lo, hi, count - 1)
    smaller = 0
    for i in range(lo, hi):
        if key[i] < limit:
            smaller += 1
    equal_left = count - smaller
    target = lo
    for i in range(lo, hi):
        take = key[i] < limit
        if not take and key[i] == limit and equal_left > 0:
            equal_left -= 1
            take = True
        if take:
            if i != target:
                swap(rows, order, i, target)
                held = key[i]
                key[i] = key[target]
                key[target] = held
            target += 1
