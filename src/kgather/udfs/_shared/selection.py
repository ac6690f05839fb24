"""The k-th smallest number of an array, in linear time."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import mix


@njit(nogil=True, cache=True)
def kth_smallest(values: NDArray[np.float64], lo: int, hi: int, k: int) -> float:
    """The k-th smallest (k from 0) of values[lo:hi], which is reordered; float64[...], 0 <= k < hi - lo.

    Quickselect with three-way partition, so many equal values cost nothing, and a pivot whose place is
    drawn from a hash, so no order of the input is a bad one. Expected O(hi - lo).
    """
    target = lo + k
    draw = np.uint64(hi - lo)
    while True:
        if hi - lo == 1:
            return float(values[lo])
        draw = mix(draw)
        pivot = values[lo + np.int64(draw % np.uint64(hi - lo))]
        smaller, i, larger = lo, lo, hi
        while i < larger:
            value = values[i]
            if value < pivot:
                values[i] = values[smaller]
                values[smaller] = value
                smaller += 1
                i += 1
            elif value > pivot:
                larger -= 1
                values[i] = values[larger]
                values[larger] = value
            else:
                i += 1
        if target < smaller:
            hi = smaller
        elif target >= larger:
            lo = larger
        else:
            return float(pivot)
