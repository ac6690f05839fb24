"""What every way of recoding checks about its codes and counts."""

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs.recoding.loss import Losses


def checked_codes(codes: NDArray[np.integer], losses: Losses) -> NDArray[np.int32]:
    """The codes as int32[m, d], contiguous by rows; raises InputError where they are not those of the columns."""
    found = np.asarray(codes)
    d = len(losses.size)
    if found.ndim != 2 or found.shape[1] != d or found.dtype.kind not in "iu" or len(found) == 0:
        shape = "x".join(str(side) for side in found.shape)
        msg = f"the codes must be whole numbers, one row a combination and {d} columns, not {found.dtype} {shape}."
        raise InputError(msg)
    if (found.min(axis=0) < 0).any() or (found.max(axis=0) >= losses.size).any():
        msg = "some codes are none of their column's."
        raise InputError(msg)
    return np.ascontiguousarray(found, dtype=np.int32)


def checked_counts(counts: NDArray[np.integer], m: int, k: int) -> NDArray[np.int64]:
    """The rows of m combinations as int64[m]; raises InputError where they are fewer than k or not all above 0."""
    found = np.asarray(counts)
    if found.shape != (m,) or found.dtype.kind not in "iu" or (found < 1).any():
        msg = f"the counts must be whole numbers above 0, one for each of {m} combinations."
        raise InputError(msg)
    if found.sum() < k:
        msg = f"there are {found.sum()} rows, too few for classes of at least {k}."
        raise InputError(msg)
    return found.astype(np.int64)
