"""How close the members of the groups are (X. Chen's thesis, section 4.2.1)."""

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError


def _within(
    vectors: NDArray[np.floating | np.integer], groups: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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


def sse(vectors: NDArray[np.floating | np.integer], groups: NDArray[np.integer]) -> float:
    """The sum over users of the squared distance to their group's centroid.

    vectors float[n, d], groups int[n] (any numbers). O(n (d + log n)).
    Raises InputError if the shapes do not fit or there are no users.
    """
    return float(_within(vectors, groups)[0].sum())


def armse(vectors: NDArray[np.floating | np.integer], groups: NDArray[np.integer]) -> float:
    """The mean over groups of the root mean square distance of a member to the centroid (ARMSE), in the unit of the
    vectors.

    vectors float[n, d], groups int[n]. Every group counts once, whatever its size. Arguments, cost and errors as in
    `sse`.
    """
    squares, size = _within(vectors, groups)
    return float(np.sqrt(squares / size).mean())


def maximal_radius(vectors: NDArray[np.floating | np.integer], groups: NDArray[np.integer]) -> float:
    """The largest distance of a user to the centroid of their group, in the unit of the vectors: what the k-gather
    problem makes small (X. Chen's thesis, section 5.1, definition 1, with the centroid for the cluster's centre).

    vectors float[n, d], groups int[n]. Arguments, cost and errors as in `sse`.
    """
    _within(vectors, groups)
    _, code = np.unique(groups, return_inverse=True)
    size = np.bincount(code)
    squares = np.zeros(len(code))
    for column in np.asarray(vectors).T.astype(np.float64):
        squares += (column - (np.bincount(code, weights=column) / size)[code]) ** 2
    return float(np.sqrt(squares.max()))
