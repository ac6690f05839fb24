"""Random numbers that depend on what they are for and on nothing else.

A draw is a function of a seed and of the numbers that name its place (a node of a tree, a user and an item),
so results do not depend on the order of the work or on the number of threads.
Source: SplitMix64 (Steele, Lea and Flood 2014).
"""

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


def seed64(seed: int) -> np.uint64:
    """Any whole number as the 64 bits that the kernels take (negative ones wrap around)."""
    return np.uint64(int(seed) & 0xFFFFFFFFFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def mix(state: np.uint64) -> np.uint64:
    """The output of SplitMix64 for one state: 64 well mixed bits."""
    z = np.uint64(state) + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@njit(nogil=True, cache=True, inline="always")
def keyed(seed: np.uint64, a: int, b: int) -> np.uint64:
    """64 bits that belong to the pair (a, b) under the seed."""
    return mix(mix(mix(seed) ^ np.uint64(a)) ^ np.uint64(b))
