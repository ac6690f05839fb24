"""Simon Funk's SVD: regularized stochastic gradient descent, one factor at a time (Funk 2006; X. Chen's
thesis, 3.1).

With the default options this is the plain form: no means, no biases; the ratings are visited user by user
in the order of the items; while factor f is learnt the error is what the factors before it have left
(unclipped), and factors not yet learnt count as nothing. So read, 20 factors have a mean absolute error of
0.750 on a fifth of ML-100k (0.748 in the thesis); another order of the ratings changes it by less than 0.001.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from kgather.errors import InputError
from kgather.udfs.fma import fma
from kgather.udfs.hashing import seed64
from kgather.udfs.holdout import choose_held_out, part_of, without
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.options import flag, real, whole
from kgather.udfs.preferences import Preferences, Progress

_LEVEL_ROUNDS = 5


@dataclass(frozen=True)
class FunkOptions:
    """Options of Funk's SVD.

    learning_rate, regularization: of every gradient step. epochs: passes over the ratings for each factor.
    init: start value of all users and items in every factor. biases: take out levels of users and items
    first, least squares with `level_regularization` added to each count. early_stopping: hold out the share
    `holdout` of the ratings and leave a factor once `patience` epochs in a row have not lowered the
    held-out RMSE by `tolerance` (in the unit of the ratings).
    """

    learning_rate: float = 0.001
    regularization: float = 0.015
    epochs: int = 60
    init: float = 0.1
    biases: bool = False
    level_regularization: float = 5.0
    early_stopping: bool = False
    holdout: float = 0.02
    patience: int = 2
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        real("learning_rate", self.learning_rate, 0, 1, above=True)
        real("regularization", self.regularization, 0)
        whole("epochs", self.epochs, 1)
        real("init", self.init, -np.inf)
        flag("biases", self.biases)
        real("level_regularization", self.level_regularization, 0)
        flag("early_stopping", self.early_stopping)
        real("holdout", self.holdout, 0, 0.9, above=True)
        whole("patience", self.patience, 1)
        real("tolerance", self.tolerance, 0)


def learn_funk(
    matrix: RatingMatrix,
    rank: int,
    options: FunkOptions,
    seed: int,
    scale: tuple[float, float] | None,
    progress: Progress | None,
) -> Preferences:
    """Learns the factors; see the module for the form. O(rank epochs nnz) time, 4 bytes a rating beside the
    matrix.

    Only the choice of held-out ratings depends on the seed. Raises InputError if the steps are too large,
    so that the factors grow beyond all bounds.
    """
    held = None
    if options.early_stopping:
        entries = choose_held_out(matrix.indptr, matrix.items, options.holdout, seed64(seed))
        if len(entries):
            held = part_of(matrix, entries)
            matrix = without(matrix, entries)
    n, m = matrix.n_users, matrix.n_items
    user_level, item_level = np.zeros(n, dtype=np.float32), np.zeros(m, dtype=np.float32)
    if options.biases:
        _levels(matrix.indptr, matrix.items, matrix.values, options.level_regularization, user_level, item_level)
    left = np.empty(matrix.nnz, dtype=np.float32)
    _subtract_levels(matrix.indptr, matrix.items, matrix.values, user_level, item_level, left)
    held_left = np.empty(0, dtype=np.float32)
    if held is not None:
        held_left = np.empty(held.nnz, dtype=np.float32)
        _subtract_levels(held.indptr, held.items, held.values, user_level, item_level, held_left)
    user_factors = np.empty((n, rank), dtype=np.float32)
    item_factors = np.empty((m, rank), dtype=np.float32)
    rmse = []
    rate, regularization = np.float32(options.learning_rate), np.float32(options.regularization)
    for factor in range(rank):
        if progress is not None:
            progress(factor, rank)
        p = np.full(n, options.init, dtype=np.float32)
        q = np.full(m, options.init, dtype=np.float32)
        if held is None:
            _learn_factor(matrix.indptr, matrix.items, left, p, q, rate, regularization, options.epochs)
        else:
            lowest, since = np.inf, 0
            for _ in range(options.epochs):
                _learn_factor(matrix.indptr, matrix.items, left, p, q, rate, regularization, 1)
                error = _rmse(held.indptr, held.items, held.values, held_left, p, q, scale)
                since = 0 if error < lowest - options.tolerance else since + 1
                lowest = min(lowest, error)
                if since >= options.patience:
                    break
            rmse.append(error)
            _subtract_factor(held.indptr, held.items, p, q, held_left)
        if not (np.isfinite(p).all() and np.isfinite(q).all()):
            msg = (
                f"Funk's SVD does not converge with a learning rate of {options.learning_rate:g} on these"
                " ratings: take a smaller one"
            )
            raise InputError(msg)
        _subtract_factor(matrix.indptr, matrix.items, p, q, left)
        user_factors[:, factor] = p
        item_factors[:, factor] = q
    if progress is not None:
        progress(rank, rank)
    return Preferences(user_level, user_factors, item_level, item_factors, tuple(rmse))


def _rmse(
    indptr: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    left: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    scale: tuple[float, float] | None,
) -> float:
    """Root mean square error of what the levels, the factors before (values - left) and this one predict."""
    error = left.copy()
    _subtract_factor(indptr, items, p, q, error)
    if scale is not None:
        error = values - np.clip(values - error, scale[0], scale[1])
    return float(np.sqrt(np.mean(error.astype(np.float64) ** 2)))


@njit(nogil=True, cache=True)
def _learn_factor(
    indptr: np.ndarray,
    items: np.ndarray,
    left: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    rate: np.float32,
    regularization: np.float32,
    epochs: int,
) -> None:
    """Gradient steps for one factor: p float32[n] and q float32[m] are changed in place.

    With the error e = left - p q, the steps p + rate (e q - reg p) and q + rate (e p - reg q) are written
    as p (1 - rate reg - rate q q) + rate q left and the same with p and q exchanged: from rating to rating
    a user's value waits for one multiply-add only. The item's step uses the user's value from before.
    """
    shrink = np.float32(1.0) - rate * regularization
    for _ in range(epochs):
        for u in range(len(indptr) - 1):
            of_user = p[u]
            # unsigned indices spare the test for negative ones
            for j in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                i = np.uint32(items[j])
                of_item = q[i]
                user_step = -rate * of_item
                item_step = -rate * of_user
                q[i] = fma(of_item, fma(item_step, of_user, shrink), -item_step * left[j])  # type: ignore[call-arg]
                of_user = fma(of_user, fma(user_step, of_item, shrink), -user_step * left[j])
            p[u] = of_user


@njit(nogil=True, cache=True)
def _subtract_factor(indptr: np.ndarray, items: np.ndarray, p: np.ndarray, q: np.ndarray, left: np.ndarray) -> None:
    for u in range(len(indptr) - 1):
        for j in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            left[j] -= p[u] * q[np.uint32(items[j])]


@njit(nogil=True, cache=True)
def _subtract_levels(
    indptr: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    user_level: np.ndarray,
    item_level: np.ndarray,
    out: np.ndarray,
) -> None:
    for u in range(len(indptr) - 1):
        for j in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            out[j] = values[j] - user_level[u] - item_level[np.uint32(items[j])]


@njit(nogil=True, cache=True)
def _levels(
    indptr: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    damping: float,
    user_level: np.ndarray,
    item_level: np.ndarray,
) -> None:
    """Damped means of users and items by turns, both in place; the mean of all ratings goes to the items."""
    n, m = len(user_level), len(item_level)
    mean = 0.0
    for value in values:
        mean += value
    mean /= max(len(values), 1)
    of_user, of_item = np.zeros(n), np.zeros(m)
    sums, counts = np.zeros(m), np.zeros(m)
    for i in items:
        counts[i] += 1.0
    for _ in range(_LEVEL_ROUNDS):
        for i in range(m):
            sums[i] = 0.0
        for u in range(n):
            for j in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                sums[np.uint32(items[j])] += values[j] - mean - of_user[u]
        for i in range(m):
            of_item[i] = sums[i] / max(counts[i] + damping, 1.0)
        for u in range(n):
            total = 0.0
            for j in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                total += values[j] - mean - of_item[np.uint32(items[j])]
            of_user[u] = total / max(indptr[u + 1] - indptr[u] + damping, 1.0)
    for u in range(n):
        user_level[u] = of_user[u]
    for i in range(m):
        item_level[i] = mean + of_item[i]
