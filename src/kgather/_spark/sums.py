"""Sums over all blocks, of which no single machine has all: the same to the last digit however the blocks lie.

Each block gives arrays of numbers under keys (a stretch of the items, or what is summed). Those of one key are added in
the order of the blocks, on an executor, and only what is made of the sum goes to the driver.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._spark.blocks import batch_of, numbers, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Terms = Callable[[dict[str, Any]], Iterable[tuple[int, NDArray[np.float64]]]]
Finish = Callable[[int, NDArray[np.float64]], NDArray[Any]]

_TERMS = "key int, block int, numbers binary"
_SUMS = "key int, numbers binary"


def summed(blocks: "DataFrame", terms: Terms, finish: Finish | None = None) -> dict[int, bytes]:
    """The sum of each key, as bytes: float64, or what `finish` makes of it.

    terms: of one block, given as a row, its keys and what it adds to each, float64 flat.
    """

    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in rows_of(batches):
            for key, added in terms(block):
                yield batch_of([{"key": key, "block": block["block"], "numbers": added.tobytes()}], _TERMS)

    def add(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("block")
        total = numbers(rows["numbers"][0].as_py(), np.float64)
        for row in range(1, len(rows)):
            total += np.frombuffer(rows["numbers"][row].as_py(), dtype=np.float64)
        key = rows["key"][0].as_py()
        made = total if finish is None else finish(key, total)
        return pa.Table.from_batches([batch_of([{"key": key, "numbers": made.tobytes()}], _SUMS)])

    found = blocks.mapInArrow(give, _TERMS).groupBy("key").applyInArrow(add, _SUMS).collect()
    return {row["key"]: bytes(row["numbers"]) for row in found}
