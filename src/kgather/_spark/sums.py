"""Sums over all blocks, of which no single machine has all: the same to the last digit however the blocks lie.

Each block gives arrays of numbers under keys (a stretch of the items, or what is summed). Whole numbers are added in
any order, so those of all blocks of a task are added before anything is sent. Other numbers are added in the order of
the blocks, on an executor. Only what is made of a sum goes to the driver.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._spark.blocks import batch_of, numbers, rows_of, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Terms = Callable[[dict[str, Any]], Iterable[tuple[int, NDArray[Any]]]]
Finish = Callable[[int, NDArray[Any]], NDArray[Any]]

_TERMS = "key int, block int, whole boolean, numbers binary"
_SUMS = "key int, numbers binary"
_HELD_BYTES = 64 << 20  # of sums that a task holds before it sends them


def summed(blocks: "DataFrame", terms: Terms, finish: Finish | None = None) -> dict[int, bytes]:
    """The sum of each key, as bytes: of the type of its terms, or what `finish` makes of it.

    terms: of one block, given as a row, its keys and what it adds to each, flat: float64, or int64 for whole numbers.
    """

    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[int, NDArray[np.int64]] = {}
        for block in rows_of(batches):
            for key, added in terms(block):
                if added.dtype != np.int64:
                    yield _term(key, block["block"], added)
                elif key in held:
                    held[key] += added
                else:
                    held[key] = added
            if sum(each.nbytes for each in held.values()) > _HELD_BYTES:
                yield from (_term(key, -1, each) for key, each in held.items())
                held = {}
        yield from (_term(key, -1, each) for key, each in held.items())

    def add(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("block")
        kind = np.int64 if rows["whole"][0].as_py() else np.float64
        total = numbers(rows["numbers"][0].as_py(), kind)
        for row in range(1, len(rows)):
            total += np.frombuffer(rows["numbers"][row].as_py(), dtype=kind)
        key = rows["key"][0].as_py()
        made = total if finish is None else finish(key, total)
        settle()
        return pa.Table.from_batches([batch_of([{"key": key, "numbers": made.tobytes()}], _SUMS)])

    found = blocks.mapInArrow(give, _TERMS).groupBy("key").applyInArrow(add, _SUMS).collect()
    return {row["key"]: bytes(row["numbers"]) for row in found}


def _term(key: int, block: int, added: NDArray[Any]) -> pa.RecordBatch:
    row = {"key": key, "block": block, "whole": added.dtype == np.int64, "numbers": added.tobytes()}
    return batch_of([row], _TERMS)
