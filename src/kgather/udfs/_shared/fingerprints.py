"""Hashes of sparse rows: rows with the same cells have the same, whatever the order of the work."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import mix


@njit(nogil=True, cache=True)
def add_cell_hashes(
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    salts: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> None:
    """Add up a 64-bit hash of each cell in its row, once for each salt, wrapping around.

    indptr int64[n_items + 1]: the cells of an item. rows int32[c]: the row of each cell. low, high uint32[c]: the bits
    of what it shows. salts uint64[s]. out uint64[n_rows, s]. O(c s).
    """
    for item in range(len(indptr) - 1):
        for cell in range(indptr[item], indptr[item + 1]):
            shown = (np.uint64(low[cell]) << np.uint64(32)) | np.uint64(high[cell])
            for s in range(len(salts)):
                out[rows[cell], s] += mix(mix(np.uint64(item) + salts[s]) ^ shown)
