"""The order of numbers, by a heap.

A few lines, where numpy's sort is compiled once more into every kernel above the one that calls it.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.one_type import int64


@njit(nogil=True, cache=True)
def ascending(values: NDArray[np.floating | np.integer]) -> NDArray[np.int64]:
    """The places of the values in ascending order, int64[n]; equal values in the order of their places.

    values: numbers[n], none of them NaN. O(n log n).
    """
    n = len(values)
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        order[i] = i
    for root in range(n // 2 - 1, -1, -1):
        _sift(values, order, root, n)
    for stop in range(n - 1, 0, -1):
        order[0], order[stop] = order[stop], order[0]
        _sift(values, order, int64(0), stop)
    return order


@njit(nogil=True, cache=True)
def _sift(values: NDArray[np.floating | np.integer], order: NDArray[np.int64], root: int, stop: int) -> None:
    """Restores the heap order[:stop] from `root` down."""
    while True:
        child = 2 * root + 1
        if child >= stop:
            return
        if child + 1 < stop and _before(values, order[child], order[child + 1]):
            child += 1
        if not _before(values, order[root], order[child]):
            return
        order[root], order[child] = order[child], order[root]
        root = child


@njit(nogil=True, cache=True)
def _before(values: NDArray[np.floating | np.integer], i: int, j: int) -> bool:
    return bool(values[i] < values[j] or (values[i] == values[j] and i < j))
