"""Which users have rated the same items, and which have rated them the same."""

import numpy as np
from numba import njit

from kgather.udfs._shared.hashing import keyed
from kgather.udfs.ratings.matrix import RatingMatrix


def equal_rows(matrix: RatingMatrix) -> tuple[np.ndarray, np.ndarray]:
    """The item set and the row of every user, int32[n] each, numbered in the order of their first users.

    Users with the same number have rated the same items, or the same items the same: the rows are compared, the
    hashes only say which. Users without ratings have the empty set. Expected O(nnz + n); 24 bytes a user.
    """
    # -0.0 is the same rating as 0.0
    bits = (matrix.values + np.float32(0)).view(np.uint32)
    sets = np.empty(matrix.n_users, dtype=np.int32)
    rows = np.empty(matrix.n_users, dtype=np.int32)
    _number(matrix.indptr, matrix.items, bits, False, sets)
    _number(matrix.indptr, matrix.items, bits, True, rows)
    return sets, rows


@njit(nogil=True, cache=True)
def _number(indptr: np.ndarray, items: np.ndarray, bits: np.ndarray, with_ratings: bool, out: np.ndarray) -> None:
    """A hash table with open addressing, at most half full; it holds the first user of each number."""
    n = len(indptr) - 1
    size = 2
    while size < 2 * n:
        size *= 2
    last = np.uint64(size - 1)
    table = np.full(size, np.int32(-1))
    unused = np.int32(0)
    for u in range(n):
        lo, hi = indptr[u], indptr[u + 1]
        code = np.uint64(0)
        for j in range(lo, hi):
            code = keyed(code, items[j], bits[j]) if with_ratings else keyed(code, items[j], 0)
        slot = np.int64(code & last)
        while True:
            first = table[slot]
            if first < 0:
                table[slot] = u
                out[u] = unused
                unused += np.int32(1)
                break
            start = indptr[first]
            same = indptr[first + 1] - start == hi - lo
            j = 0
            while same and j < hi - lo:
                same = items[start + j] == items[lo + j] and (not with_ratings or bits[start + j] == bits[lo + j])
                j += 1
            if same:
                out[u] = out[first]
                break
            slot = (slot + 1) & np.int64(last)
