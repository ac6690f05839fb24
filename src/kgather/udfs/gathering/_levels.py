"""What the methods of customized k-anonymity check about the levels of their users (X. Chen's thesis, section 5.1).

The level of a user is the number of members that its group must have; 1 means that no protection is wanted.
"""

import numpy as np

from kgather._errors import InputError


def checked_levels(levels: np.ndarray, n: int) -> np.ndarray:
    """The levels of n users as int64[n], every one in 1..n.

    levels: whole numbers[n] of any type (floats only where they are whole). O(n).
    Raises InputError if there is not one whole number for every user, some are below 1, or some are above n.
    """
    found = np.asarray(levels)
    if found.shape != (n,) or found.dtype.kind not in "iuf":
        shape = "x".join(str(side) for side in found.shape)
        msg = f"the levels must be one whole number for each of the {n} users, not {found.dtype} {shape}."
        raise InputError(msg)
    with np.errstate(invalid="ignore"):
        uneven = 0 if found.dtype.kind in "iu" else int((found != np.floor(found)).sum()) + int(np.isinf(found).sum())
    if uneven:
        msg = f"{uneven} of {n} users have a level that is no whole number."
        raise InputError(msg)
    low = int((found < 1).sum())
    if low:
        msg = f"{low} of {n} users have a level below 1; a user who wants no protection has level 1."
        raise InputError(msg)
    high = int((found > n).sum())
    if high:
        msg = f"{high} users ask for groups larger than the {n} users there are: lower their level or add users."
        raise InputError(msg)
    return found.astype(np.int64)
