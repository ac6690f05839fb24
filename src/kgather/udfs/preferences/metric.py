"""Vectors of users whose Euclidean distance says how unlike the users are."""

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs.preferences.model import Preferences

_PIVOT = 1e-12  # a pivot below this share of the largest variance is rounding, not a direction


def comparison_vectors(preferences: Preferences, metric: str = "prediction") -> np.ndarray:
    """One vector a user, float32[n, d].

    "preference": the user factors as they are (X. Chen's thesis), d = r. "prediction": d = r + 1, and the
    distance of two users is the root mean square, over all items, of the difference of their predicted
    ratings, in the unit of the ratings. With V the item factors, the mean over items of (dl + dU.V)^2 is
    (dl + dU.mean(V))^2 + dU cov(V) dU'; so the vector is (l + U.mean(V), U L) with cov(V) = L L'.

    O((n + m) r^2). Raises InputError for another metric.
    """
    if metric == "preference":
        return preferences.user_factors
    if metric != "prediction":
        msg = f"there is no metric '{metric}'; the metrics are: prediction, preference."
        raise InputError(msg)
    return _prediction_vectors(preferences.user_level, preferences.user_factors, preferences.item_factors)


@njit(nogil=True, cache=True)
def _prediction_vectors(level: np.ndarray, user_factors: np.ndarray, item_factors: np.ndarray) -> np.ndarray:
    n, r = user_factors.shape
    m = item_factors.shape[0]
    mean = np.zeros(r)
    root = np.zeros((r, r))
    for i in range(m):
        for a in range(r):
            mean[a] += item_factors[i, a]
    for a in range(r):
        mean[a] /= m
    for i in range(m):
        for a in range(r):
            gap = item_factors[i, a] - mean[a]
            for b in range(a + 1):
                root[a, b] += gap * (item_factors[i, b] - mean[b])
    for a in range(r):
        for b in range(a + 1):
            root[a, b] /= m
    _semidefinite_root(root)
    out = np.empty((n, r + 1), dtype=np.float32)
    for u in range(n):
        first = np.float64(level[u])
        for a in range(r):
            first += user_factors[u, a] * mean[a]
        out[u, 0] = first
        for b in range(r):
            total = 0.0
            for a in range(b, r):
                total += user_factors[u, a] * root[a, b]
            out[u, b + 1] = total
    return out


@njit(nogil=True, cache=True)
def _semidefinite_root(c: np.ndarray) -> None:
    """Replaces the lower triangle of a positive semidefinite float64[r, r] by L with L L' = c, in place.

    Cholesky by columns; a pivot that is only rounding leaves its column zero.
    """
    r = c.shape[0]
    largest = 0.0
    for a in range(r):
        largest = max(largest, c[a, a])
    for b in range(r):
        pivot = c[b, b]
        for s in range(b):
            pivot -= c[b, s] * c[b, s]
        if pivot <= _PIVOT * largest:
            for a in range(b, r):
                c[a, b] = 0.0
            continue
        pivot = np.sqrt(pivot)
        c[b, b] = pivot
        for a in range(b + 1, r):
            value = c[a, b]
            for s in range(b):
                value -= c[a, s] * c[b, s]
            c[a, b] = value / pivot
