"""Ratings that are left out while learning, to see when learning more does not help."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed
from kgather.udfs.ratings.matrix import RatingMatrix


@njit(nogil=True, cache=True)
def choose_held_out(
    indptr: NDArray[np.int64], items: NDArray[np.int32], share: float, seed: np.uint64
) -> NDArray[np.int64]:
    """The entries to hold out, int64 ascending: each with probability `share`, never all ratings of a user.

    Whether an entry is chosen depends on (seed, user, item) only, not on what else is in the matrix (but
    for users who would lose everything and keep all instead). indptr int64[n_users + 1], items int32[nnz]: the
    ratings by user. share: 0 to 1. O(nnz).
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


def rows_of(indptr: NDArray[np.int64], entries: NDArray[np.int64]) -> NDArray[np.int32]:
    """The users, int32[e], that own the entries int64[e]; indptr int64[n_users + 1]. O(e log n_users)."""
    return (np.searchsorted(indptr, entries, side="right") - 1).astype(np.int32)


def part_of(matrix: RatingMatrix, entries: NDArray[np.int64]) -> RatingMatrix:
    """The matrix that holds only the given entries, int64[e] ascending, under the same codes. O(n_users log e + e)."""
    indptr = np.searchsorted(entries, matrix.indptr).astype(np.int64)
    return RatingMatrix(matrix.n_users, matrix.n_items, indptr, matrix.items[entries], matrix.values[entries])
