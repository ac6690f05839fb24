"""Ratings of other people that an attacker may have, because they are public."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.ratings.matrix import RatingMatrix

# Who wants to predict well, and has nobody to protect, learns a model that fits.
OWN_MODEL: dict[str, Any] = {"rank": 10, **FOR_FIT}

_PUBLIC = 5_000_000  # ratings at most


def public_half(original: RatingMatrix, seed: int) -> NDArray[np.bool_]:
    """Half of the users, or as many as have 5 million ratings, drawn by hashes: bool[n_users]. O(n log n)."""
    drawn = order_users(np.arange(original.n_users, dtype=np.int64), seed64(seed + 1))
    so_far = np.cumsum(np.diff(original.indptr)[drawn])
    most = max(1, min(original.n_users // 2, int(np.searchsorted(so_far, _PUBLIC))))
    public = np.zeros(original.n_users, dtype=np.bool_)
    public[drawn[:most]] = True
    return public


def only(ratings: RatingMatrix, users: NDArray[np.bool_]) -> RatingMatrix:
    """The ratings of some users, bool[n_users], under the same codes; all others have none. O(nnz)."""
    lengths = np.diff(ratings.indptr)
    entries = np.repeat(users, lengths)
    indptr = np.concatenate([[0], np.cumsum(np.where(users, lengths, 0))]).astype(np.int64)
    return RatingMatrix(ratings.n_users, ratings.n_items, indptr, ratings.items[entries], ratings.values[entries])
