"""Random names for groups and members, from the operating system's generator."""

import os

import numpy as np
from numpy.typing import NDArray

# Whole numbers up to here are exact in every reader, JSON and spreadsheets too.
_EXACT_INTEGERS = 53
# Pseudonyms have neither digits nor vowels, so that no number and hardly a name stands in one by chance: whoever
# searches a release for original ids finds none.
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")


def random_group_ids(count: int, taken: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return `count` distinct random positive ids, int64[count], each below 2**53 and none of those that are taken."""
    ids = _random_bits(count)
    while np.unique(ids).size < count or (taken is not None and np.isin(ids, taken).any()):
        ids = _random_bits(count)
    return ids


def random_pseudonyms(count: int) -> list[str]:
    """Return `count` distinct random pseudonyms of 32 letters, 128 bits each."""
    letters = os.urandom(16 * count).hex().translate(_LETTERS)
    pseudonyms = [letters[start : start + 32] for start in range(0, len(letters), 32)]
    return pseudonyms if len(set(pseudonyms)) == count else random_pseudonyms(count)


def _random_bits(count: int) -> NDArray[np.int64]:
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return (words >> np.uint64(64 - _EXACT_INTEGERS)).astype(np.int64)
