"""How close the members of the groups are (X. Chen's thesis, section 4.2.1)."""

import numpy as np

from kgather._errors import InputError


def _within(vectors: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of squared distances to the centroid, float64[g], and the size, int64[g], of every group."""
    vectors = np.asarray(vectors)
    groups = np.asarray(groups)
    if vectors.ndim != 2 or groups.shape != vectors.shape[:1] or not np.issubdtype(groups.dtype, np.integer):
        msg = "vectors must be a table with one row a user, groups one whole number for each of its rows."
        raise InputError(msg)
    if len(groups) == 0:
        msg = "there are no users to measure."
        raise InputError(msg)
    _, code = np.unique(groups, return_inverse=True)
    size = np.bincount(code)
    squares = np.zeros(len(size))
    for column in range(vectors.shape[1]):
        value = vectors[:, column].astype(np.float64)
        mean = np.bincount(code, weights=value) / size
        squares += np.bincount(code, weights=(value - mean[code]) ** 2)
    return squares, size


def sse(vectors: np.ndarray, groups: np.ndarray) -> float:
    """The sum over users of the squared distance to their group's centroid.

    vectors float[n, d], groups int[n] (any numbers). O(n (d + log n)).
    Raises InputError if the shapes do not fit or there are no users.
    """
    return float(_within(vectors, groups)[0].sum())


def armse(vectors: np.ndarray, groups: np.ndarray) -> float:
    """The mean over groups of the root mean square distance of a member to the centroid (ARMSE).

    Every group counts once, whatever its size. Arguments, cost and errors as in `sse`.
    """
    squares, size = _within(vectors, groups)
    return float(np.sqrt(squares / size).mean())
