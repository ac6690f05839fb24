"""What attackers compute of people over many releases of their own."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def trace_over_releases(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    pulls: NDArray[np.float64],
    shifts: NDArray[np.float64],
    out: NDArray[np.float64],
    start: int,
    end: int,
) -> None:
    """Write how far the items of people start..end lean to where the person pulls them, float64[t, s].

    indptr int64[t + 1], items int32, pulls float64: by row, how a person pulls an item, in units of 1 / (what it
    varies by, squared). shifts float64[m, s]: how far each item lies from its usual place in each of s releases. The
    sum over a person's ratings of pull x shift, which is the best linear test where items vary independently of each
    other. Source: the trace of a person in published means is that of Homer et al. 2008. O(n s) for n ratings.
    """
    releases = shifts.shape[1]
    for t in range(start, end):
        for s in range(releases):
            out[t, s] = 0.0
        for j in range(indptr[t], indptr[t + 1]):
            pull = pulls[j]
            if pull != 0.0:
                row = shifts[items[j]]
                for s in range(releases):
                    out[t, s] += pull * row[s]
