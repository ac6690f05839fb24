"""Row ranges over a pool of threads.

The kernels release the GIL and each writes only the rows of its own range, so the results are the same bit
for bit for any number of threads and any way of cutting the rows.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_PARTS_A_THREAD = 8  # more parts than threads, so that a slow part does not leave a thread idle


def row_ranges(indptr: NDArray[np.int64], threads: int, longest: int | None = None) -> list[tuple[int, int]]:
    """Cuts the rows of a CSR matrix into ranges that hold about equally many entries.

    indptr int64[n + 1]; `longest` limits the rows of a range. The ranges (lo, hi) cover 0..n in order.
    """
    n = len(indptr) - 1
    parts = 1 if threads <= 1 else threads * _PARTS_A_THREAD
    # an empty row costs something too: it counts as one entry
    work = indptr + np.arange(n + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], parts + 1)[1:-1])
    edges = sorted({0, n, *(int(cut) for cut in cuts)})
    ranges = []
    for lo, hi in pairwise(edges):
        step = hi - lo if longest is None else longest
        ranges += [(start, min(start + step, hi)) for start in range(lo, hi, step)]
    return ranges


def run(
    kernel: Callable[[int, int], object], ranges: Sequence[tuple[int, int]], pool: ThreadPoolExecutor | None
) -> None:
    """Calls kernel(lo, hi) for every range, in the pool if there is one. An error of any call is raised."""
    if pool is None:
        for lo, hi in ranges:
            kernel(lo, hi)
        return
    for _ in pool.map(lambda edge: kernel(*edge), ranges):
        pass
