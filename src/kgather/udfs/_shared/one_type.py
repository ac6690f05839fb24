"""Whole numbers of one type: a kernel is compiled anew for each type, and each constant, that it is called with."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, inline="always")
def int64(number: int) -> int:
    """The number as 64 bits, whatever it was."""
    return np.int64(number)  # type: ignore[return-value]
