"""The order of numbers, by a heap.

A few lines, where numpy's sort is compiled once more into every kernel above the one that calls it.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def ascending(values: NDArray[np.floating | np.integer]) -> NDArray[np.int64]:
    """The places of the values in ascending order, int64[n]; equal values in the order of their places.

    values: numbers[n], none of them NaN. O(n log n).
    """
    n = len(values)
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        order[i] = i
    root, stop = n // 2, n
    while stop > 1:
        if root > 0:  # build the heap
            root -= 1
        else:  # take the largest out
            stop -= 1
            order[0], order[stop] = order[stop], order[0]
        at = root
        while 2 * at + 1 < stop:
            child = 2 * at + 1
            if child + 1 < stop and _before(values, order[child], order[child + 1]):
                child += 1
            if not _before(values, order[at], order[child]):
                break
            order[at], order[child] = order[child], order[at]
            at = child
    return order


@njit(nogil=True, cache=True, inline="always")
def _before(values: NDArray[np.floating | np.integer], i: int, j: int) -> bool:
    return bool(values[i] < values[j] or (values[i] == values[j] and i < j))
