"""Compiles the guard's kernels, or loads them, before the clock of a query starts."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from kgather._guard.history import Present
from kgather._guard.ledger import delta
from kgather._guard.outcomes import look_up
from kgather._guard.partition import Column, Partition

_ROWS = 8


@cache
def compile_kernels() -> None:
    """Run each kernel once on a few made-up rows, with the types that it has in a query."""
    unit, outcome = np.arange(_ROWS, dtype=np.int32), (np.arange(_ROWS) % 3).astype(np.int32)
    columns = {"x": Column(np.ones(_ROWS))}
    whole = Partition.whole(unit).with_column("x", columns["x"], 2)
    keys, rows = np.arange(_ROWS, dtype=np.uint64), np.arange(_ROWS)
    before = Present(keys, unit, rows, whole, columns).kept(None)
    kind: type[np.int8 | np.int32]
    codes: type[np.uint8 | np.uint16 | np.int32]
    for kind in (np.int8, np.int32):
        own: NDArray[np.int8 | np.int32] = outcome.astype(kind)
        spread = whole.spread(own)
        for codes in (np.uint8, np.uint16, np.int32):
            look_up(np.zeros(3, dtype=kind), outcome.astype(codes))
    whole.means("x", columns["x"], 2)
    cut = whole.refined(spread, 2, columns)
    delta(before, Present(keys, unit, rows, cut, columns).kept(before))
