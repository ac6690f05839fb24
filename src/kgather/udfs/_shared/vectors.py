"""What every method of gathering checks before it looks at its users."""

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole


def checked_vectors(vectors: np.ndarray, k: object, dtype: type[np.floating] = np.float32) -> tuple[np.ndarray, int]:
    """A copy of the vectors, `dtype`[n, d] in rows (C order), all finite, and k as int; at least k users.

    vectors: real numbers[n, d] of any type, one row a user. O(n d).
    Raises InputError if k is no whole number >= 1, there are fewer than k users, the vectors are no
    two-dimensional table with at least one column, or some are not finite.
    """
    least = whole("k", k, 1)
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.shape[1] == 0 or vectors.dtype.kind not in "fiu":
        shape = "x".join(str(side) for side in vectors.shape)
        msg = f"the vectors must be numbers in rows of at least one column, not {vectors.dtype} {shape}."
        raise InputError(msg)
    n = len(vectors)
    if n < least:
        msg = f"{n} users are too few for groups of at least {least}."
        raise InputError(msg)
    with np.errstate(over="ignore"):  # too large for the type becomes infinite and is counted below
        rows = np.array(vectors, dtype=dtype, order="C")
    bad = _count_bad_rows(rows)
    if bad:
        msg = f"{bad} of {n} preference vectors hold a value that is not a finite number."
        raise InputError(msg)
    return rows, least


@njit(nogil=True, cache=True)
def _count_bad_rows(rows: np.ndarray) -> int:
    bad = 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if not np.isfinite(rows[i, j]):
                bad += 1
                break
    return bad
