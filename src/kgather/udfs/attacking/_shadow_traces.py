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


@njit(nogil=True, cache=True)
def fit_people(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    ratings: NDArray[np.float32],
    usual: NDArray[np.float64],
    axes: NDArray[np.float64],
    ridge: NDArray[np.float64],
    places: NDArray[np.float64],
    gaps: NDArray[np.float64],
    start: int,
    end: int,
) -> None:
    """Fold people start..end into item vectors: write places float64[t, d] and what is left of each rating.

    indptr int64[t + 1], items int32, ratings float32: by row. usual float64[m], axes float64[m, d]: of items. ridge
    float64[d + 1]: added to the diagonal, for the person's level first. gaps float64[ratings]. Ridge regression of the
    ratings less what is usual; O(n d^2 + d^3) for n ratings.
    """
    d = axes.shape[1]
    for t in range(start, end):
        system, onto = np.zeros((d + 1, d + 1)), np.zeros(d + 1)
        row = np.ones(d + 1)
        for j in range(indptr[t], indptr[t + 1]):
            item = items[j]
            gap = np.float64(ratings[j]) - usual[item]
            for a in range(d):
                row[a + 1] = axes[item, a]
            for a in range(d + 1):
                onto[a] += row[a] * gap
                for b in range(d + 1):
                    system[a, b] += row[a] * row[b]
        for a in range(d + 1):
            system[a, a] += ridge[a]
        found = np.linalg.solve(system, onto)
        for a in range(d):
            places[t, a] = found[a + 1]
        for j in range(indptr[t], indptr[t + 1]):
            item = items[j]
            gaps[j] = np.float64(ratings[j]) - usual[item] - found[0]
            for a in range(d):
                gaps[j] -= axes[item, a] * found[a + 1]
