"""What an attacker knows of somebody: a few of the user's ratings, drawn by keyed hashes.

Source: the auxiliary information of Narayanan and Shmatikov 2008 (section 4), and the adversary knowledge of Chang,
Thompson, Wang and Yao 2010 (section 6, definition 5).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed
from kgather.udfs._shared.ordering import ascending

ALL, POPULAR, RARE = 0, 1, 2


@njit(nogil=True, cache=True)
def count_kept(indptr: NDArray[np.int64], items: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many of every user's ratings are of kept items, int64[n_users]. indptr int64[n_users + 1], items int32[nnz],
    kept bool[n_items]. O(nnz)."""
    counts = np.zeros(len(indptr) - 1, dtype=np.int64)
    for user in range(len(counts)):
        for j in range(indptr[user], indptr[user + 1]):
            if kept[items[j]]:
                counts[user] += 1
    return counts


@njit(nogil=True, cache=True)
def order_users(users: NDArray[np.int64], seed: np.uint64) -> NDArray[np.int64]:
    """The users, int64[t], in an order that the seed draws: that of their hashes. O(t log t)."""
    hashes = np.empty(len(users), dtype=np.uint64)
    for i in range(len(users)):
        hashes[i] = keyed(seed, users[i], 0)
    return users[ascending(hashes)]


@njit(nogil=True, cache=True)
def draw_known(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    kept: NDArray[np.bool_],
    raters: NDArray[np.int64],
    pool: int,
    seed: np.uint64,
    users: NDArray[np.int64],
    draws: NDArray[np.int64],
    known_items: NDArray[np.int32],
    known_ratings: NDArray[np.float32],
    noise: NDArray[np.int8],
) -> None:
    """Draw m ratings of each of t users into known_items int32[t, m], known_ratings float32[t, m]; noise int8[t, m]
    becomes -1, 0 or 1.

    indptr int64[n_users + 1], items int32[nnz], values float32[nnz]: the ratings by user. kept bool[n_items]: items
    that may be known. raters int64[n_items]. users, draws int64[t]: whose ratings, and which draw of that user, from 0.
    pool: from ALL items, or from the POPULAR or the RARE half of the user's (by `raters`; the middle one of an odd
    number is in both). Every pool holds at least m. The draw of m + 1 ratings is that of m with one more. O(r log r)
    for each user's r ratings.
    """
    n_known = known_items.shape[1]
    n_items = np.int64(len(raters))
    for t in range(len(users)):
        user = users[t]
        own = np.empty(indptr[user + 1] - indptr[user], dtype=np.int64)
        size = 0
        for j in range(indptr[user], indptr[user + 1]):
            if kept[items[j]]:
                own[size] = j
                size += 1
        own = own[:size]
        if pool != ALL:
            keys = np.empty(size, dtype=np.uint64)  # as the hashes: sorting is compiled once
            for i in range(size):
                keys[i] = np.uint64(raters[items[own[i]]] * n_items + items[own[i]])
            half = (size + 1) // 2
            by_raters = own[ascending(keys)]
            own = by_raters[size - half :] if pool == POPULAR else by_raters[:half]
        key = keyed(seed, user, draws[t] + 1)
        hashes = np.empty(len(own), dtype=np.uint64)
        for i in range(len(own)):
            hashes[i] = keyed(key, items[own[i]], 0)
        first = ascending(hashes)
        for place in range(n_known):
            j = own[first[place]]
            known_items[t, place] = items[j]
            known_ratings[t, place] = values[j]
            noise[t, place] = np.int64(keyed(key, items[j], 1) % np.uint64(3)) - 1
