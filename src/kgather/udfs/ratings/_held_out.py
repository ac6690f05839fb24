"""Ratings that are left out while learning, to see when learning more does not help."""

import numpy as np
from numba import njit

from kgather.udfs._shared.hashing import keyed
from kgather.udfs.ratings.matrix import RatingMatrix


@njit(nogil=True, cache=True)
def choose_held_out(indptr: np.ndarray, items: np.ndarray, share: float, seed: np.uint64) -> np.ndarray:
    """The entries to hold out, int64 ascending: each with probability `share`, never all ratings of a user.

    Whether an entry is chosen depends on (seed, user, item) only, not on what else is in the matrix (but
    for users who would lose everything and keep all instead). O(nnz).
    """
    limit = np.uint64(share * 18446744073709549568.0)
    chosen = np.empty(1024, dtype=np.int64)
    count = 0
    for u in range(len(indptr) - 1):
        before = count
        for j in range(indptr[u], indptr[u + 1]):
            if keyed(seed, u, items[j]) < limit:
                if count == len(chosen):
                    wider = np.empty(2 * count, dtype=np.int64)
                    for c in range(count):
                        wider[c] = chosen[c]
                    chosen = wider
                chosen[count] = j
                count += 1
        if count - before == indptr[u + 1] - indptr[u]:
            count = before
    return chosen[:count].copy()


def rows_of(indptr: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The users, int32, that own the entries."""
    return (np.searchsorted(indptr, entries, side="right") - 1).astype(np.int32)


def part_of(matrix: RatingMatrix, entries: np.ndarray) -> RatingMatrix:
    """The matrix that holds only the given entries (ascending)."""
    indptr = np.searchsorted(entries, matrix.indptr).astype(np.int64)
    return RatingMatrix(matrix.n_users, matrix.n_items, indptr, matrix.items[entries], matrix.values[entries])
