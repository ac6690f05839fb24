"""A private item side, learnt from blocks: the measurements of `private_items`, summed over the blocks.

The sums are of whole numbers, so they are those that one machine has of the same ratings, and so are noise and items.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._settings.publication import PublishSettings
from kgather._spark.blocks import batch_of, matrix_of, numbers, rows_of
from kgather._spark.sums import summed
from kgather._steps.learning import check_cost
from kgather.udfs.preferences._accounting import Charge, Noise
from kgather.udfs.preferences._bounded_sums import UNIT, clip_to_scale
from kgather.udfs.preferences.model import Progress
from kgather.udfs.preferences.private_items import Fold, Kernel, NoisySums, learn_private_items, noise_of
from kgather.udfs.ratings.matrix import RatingMatrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRETCH = 1 << 16  # rows of a sum that one executor adds up
_TERMS = "key int, rows binary, terms binary"
_SUMS = "key int, total binary"


@dataclass(frozen=True)
class Side:
    """The items' half, which is shown as it is: level float32[m], factors float32[m, r]."""

    level: NDArray[np.float32]
    factors: NDArray[np.float32]


@dataclass(frozen=True)
class FoldedIn:
    """What solves users, as `learning.Model` does. level: float32[m], one number an item."""

    level: NDArray[np.float32]
    fold: Fold

    def users(self, matrix: RatingMatrix) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Levels float32[n] and factors float32[n, r] of a block's users."""
        return self.fold.users(matrix)


@dataclass(frozen=True)
class PrivateLearnt:
    """As `learning.Learnt`, with what the items cost."""

    model: FoldedIn
    side: Side
    middle: NDArray[np.float64]
    charges: tuple[Charge, ...]


class BlockSums(NoisySums):
    """Sums over users whose ratings are blocks of `CODED`."""

    def __init__(
        self, spark: "SparkSession", blocks: "DataFrame", items: int, scale: tuple[float, float], noise: Noise
    ) -> None:
        super().__init__(noise)
        self.spark, self.blocks, self.items, self.scale = spark, blocks, items, scale

    def add(self, kernel: Kernel, shape: tuple[int, ...], what: str, deviation: float) -> NDArray[np.float64]:
        """See `NoisySums.add`. The noise is added where the sums are: the driver sees none without."""
        known, items, scale = self.spark.sparkContext.broadcast((kernel, self.noise)), self.items, self.scale
        rows_there, width = shape[0], math.prod(shape[1:])

        def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for block in rows_of(batches):
                matrix = matrix_of(block, items)
                matrix = replace(matrix, values=clip_to_scale(matrix.values, *scale))
                out = np.zeros(rows_there * width, dtype=np.int64)
                known.value[0](matrix, 0, matrix.n_users, out)
                table = out.reshape(-1, width)
                # Most items are rated by nobody of a block.
                rows = np.flatnonzero(table.any(axis=1))
                for key in np.unique(rows // _STRETCH):
                    here = rows[rows // _STRETCH == key]
                    row = {
                        "key": int(key),
                        "rows": (here - key * _STRETCH).astype(np.int64).tobytes(),
                        "terms": table[here].tobytes(),
                    }
                    yield batch_of([row], _TERMS)

        def add_up(rows: pa.Table) -> pa.Table:
            key = rows["key"][0].as_py()
            found = np.zeros((min(_STRETCH, rows_there - key * _STRETCH), width), dtype=np.int64)
            # Whole numbers: the order is none.
            for each in rows.to_pylist():
                found[numbers(each["rows"], np.int64)] += numbers(each["terms"], np.int64).reshape(-1, width)
            noise = known.value[1].draw(what, deviation, shape).reshape(rows_there, width)
            total = found / UNIT
            total += noise[key * _STRETCH :][: len(total)]
            return pa.Table.from_batches([batch_of([{"key": key, "total": total.tobytes()}], _SUMS)])

        # Stretches that nobody adds to are noise alone.
        sums = self.noise.draw(what, deviation, shape).reshape(rows_there, width)
        for row in self.blocks.mapInArrow(give, _TERMS).groupBy("key").applyInArrow(add_up, _SUMS).collect():
            part = numbers(bytes(row["total"]), np.float64).reshape(-1, width)
            sums[row["key"] * _STRETCH :][: len(part)] = part
        known.unpersist()
        return sums.reshape(shape)


def learn(
    spark: "SparkSession",
    blocks: "DataFrame",
    users: int,
    items: int,
    settings: PublishSettings,
    scale: tuple[float, float],
    seed: bytes,
    progress: Progress,
) -> PrivateLearnt:
    """Learn with the bound that is asked for. blocks: of `CODED`. seed: of the noise, see `private_seed_of`.

    Raises PromiseError where the measurements together cost more.
    """
    epsilon, delta, rank = settings.item_epsilon, settings.item_delta, settings.rank
    assert epsilon is not None
    sums = BlockSums(spark, blocks, items, scale, noise_of(seed, scale, epsilon, delta, rank, items))
    found = learn_private_items(sums, items, scale, epsilon, delta, rank, None, progress)
    check_cost(found.charges, settings)
    model = FoldedIn(found.level, found.fold)
    known = spark.sparkContext.broadcast(model)

    def terms(block: dict[str, Any]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        level, factors = known.value.users(matrix_of(block, items))
        yield (
            0,
            np.concatenate(
                [
                    [level.sum(dtype=np.float64)],
                    factors.sum(axis=0, dtype=np.float64),
                ]
            ),
        )

    middle = numbers(summed(blocks, terms)[0], np.float64) / users
    known.unpersist()
    return PrivateLearnt(model, Side(found.level, found.factors), middle, found.charges)
