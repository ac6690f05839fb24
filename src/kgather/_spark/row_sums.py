"""Sums of tables over all blocks, where a block has something in some rows only: they stay on the executors.

The rows are cut into stretches, so that one executor adds few bytes of each block, in the order of the blocks. Then all
rows come together on one executor, where something is made of them, and the driver gets that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._spark.blocks import batch_of, numbers, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STRETCH_BYTES = 32 << 20  # of one stretch, from all blocks
_ANSWER_BYTES = 8 << 20
_TERMS = "key int, block int, rows binary, terms binary"
_SUMS = "key int, total binary"
_MADE = "place int, made binary"


@dataclass(frozen=True)
class RowSums:
    """Adds up tables. rows, width: their shape. kind: int64 or float64. blocks: how many there are."""

    rows: int
    width: int
    kind: type[np.int64] | type[np.float64]
    blocks: int

    def of(
        self,
        blocks: "DataFrame",
        table: Callable[[dict[str, Any]], NDArray[Any]],
        finish: Callable[[NDArray[Any]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """What `finish` makes of the sum of what `table` makes of each block, given as a row."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

        stretch = max(_STRETCH_BYTES // (self.blocks * self.width * 8), 1)
        n, width, kind = self.rows, self.width, self.kind

        def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for block in rows_of(batches):
                found = table(block)
                rows = np.flatnonzero(found.any(axis=1))
                edges = np.append(np.searchsorted(rows, np.arange(0, n, stretch)), len(rows))
                for key in np.flatnonzero(np.diff(edges)):
                    here = rows[edges[key] : edges[key + 1]]
                    row = {
                        "key": int(key),
                        "block": block["block"],
                        "rows": (here - key * stretch).astype(np.int64).tobytes(),
                        "terms": found[here].tobytes(),
                    }
                    yield batch_of([row], _TERMS)

        def add(terms: pa.Table) -> pa.Table:
            key = terms["key"][0].as_py()
            total = np.zeros((min(stretch, n - key * stretch), width), dtype=kind)
            for each in terms.sort_by("block").to_pylist():
                total[numbers(each["rows"], np.int64)] += numbers(each["terms"], kind).reshape(-1, width)
            return pa.Table.from_batches([batch_of([{"key": key, "total": total.tobytes()}], _SUMS)])

        def make(sums: pa.Table) -> pa.Table:
            total = np.zeros((n, width), dtype=kind)
            for each in sums.to_pylist():
                part = numbers(each["total"], kind).reshape(-1, width)
                total[each["key"] * stretch :][: len(part)] = part
            found = finish(total).tobytes()
            pieces = [found[at : at + _ANSWER_BYTES] for at in range(0, len(found), _ANSWER_BYTES)]
            rows = [{"place": place, "made": piece} for place, piece in enumerate(pieces)]
            return pa.Table.from_batches([batch_of([row], _MADE) for row in rows])

        # Where nobody adds anything there is a sum, too.
        nothing = blocks.sparkSession.range(1).select(
            F.lit(0).alias("key"), F.lit(np.zeros((min(stretch, n), width), dtype=kind).tobytes()).alias("total")
        )
        sums = blocks.mapInArrow(give, _TERMS).groupBy("key").applyInArrow(add, _SUMS)

        def together(parts: "DataFrame") -> list[Any]:
            return parts.withColumn("all", F.lit(0)).groupBy("all").applyInArrow(make, _MADE).collect()

        made = together(sums) or together(nothing)
        made.sort(key=lambda row: int(row["place"]))
        return np.frombuffer(b"".join(bytes(row["made"]) for row in made), dtype=np.float64).copy()
