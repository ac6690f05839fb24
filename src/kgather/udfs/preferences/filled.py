"""The dense matrix of ratings that microaggregation of whole rating rows works on (F. Casino et al., on
privacy-preserving collaborative filtering by microaggregation, section III, steps 1 and 2).

Cells without a rating are filled, with one number or with what a model of the ratings predicts; then every item is
standardised, so that items on which ratings hardly differ count as much as the others.
"""

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import real
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

_LARGEST = float(np.finfo(np.float32).max)  # of a rating, so also of what is put beside ratings


def filled_ratings(matrix: RatingMatrix, *, fill: float | Preferences) -> np.ndarray:
    """Every user's rating of every item, float64[n, m], in the unit of the ratings.

    fill: what stands where there is no rating: a number (the paper takes the middle of the scale), or the
    preferences, whose prediction is then taken, not clipped to the scale. Memory: 8 n m bytes. O(n m), with
    preferences O(n m r).

    Raises InputError if `fill` is no finite number within the range of float32, or preferences of other numbers of
    users and items or with values that are not finite.
    """
    shape = (matrix.n_users, matrix.n_items)
    if isinstance(fill, Preferences):
        of = (len(fill.user_level), len(fill.item_level))
        if of != shape:
            msg = (
                f"the preferences are of {of[0]} users and {of[1]} items, the ratings of {shape[0]} and {shape[1]}: "
                "both must come from the same ratings."
            )
            raise InputError(msg)
        values = np.empty(shape)
        users, user_factors, items, item_factors = (
            np.ascontiguousarray(part, dtype=np.float64)
            for part in (fill.user_level, fill.user_factors, fill.item_level, fill.item_factors)
        )
        if not all(np.isfinite(part).all() for part in (users, user_factors, items, item_factors)):
            msg = "the preferences hold values that are not finite numbers."
            raise InputError(msg)
        _predict(users, user_factors, items, item_factors, values)
    else:
        values = np.full(shape, real("fill", fill, -_LARGEST, _LARGEST))
    _put(matrix.indptr, matrix.items, matrix.values, values)
    return values


def filled_scores(matrix: RatingMatrix, *, fill: float | Preferences) -> np.ndarray:
    """The filled ratings as z-scores, float64[n, m]: every item has mean 0 and population standard deviation 1.

    An item for which all users have the same value gets exactly 0 throughout. Arguments, errors and time as in
    `filled_ratings`; memory: 8 n m bytes, the result.
    """
    values = filled_ratings(matrix, fill=fill)
    constant = values.min(axis=0) == values.max(axis=0)
    values -= values.mean(axis=0)
    values -= values.mean(axis=0)  # what rounding the mean left, which counts where values hardly differ
    values[:, constant] = 0.0
    # the largest gap comes out first, so that no square is too small or too large for a double
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    largest[constant] = 1.0
    values /= largest
    deviation = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    deviation[constant] = 1.0
    values /= deviation
    return values


@njit(nogil=True, cache=True)
def _predict(
    user_level: np.ndarray,
    user_factors: np.ndarray,
    item_level: np.ndarray,
    item_factors: np.ndarray,
    values: np.ndarray,
) -> None:
    """values float64[n, m] = the predictions; all float64."""
    for u in range(values.shape[0]):
        for i in range(values.shape[1]):
            product = 0.0
            for f in range(user_factors.shape[1]):
                product += user_factors[u, f] * item_factors[i, f]
            values[u, i] = user_level[u] + item_level[i] + product


@njit(nogil=True, cache=True)
def _put(indptr: np.ndarray, items: np.ndarray, ratings: np.ndarray, values: np.ndarray) -> None:
    """Writes the ratings over what fills the cells."""
    for u in range(len(indptr) - 1):
        for j in range(indptr[u], indptr[u + 1]):
            values[u, items[j]] = ratings[j]
