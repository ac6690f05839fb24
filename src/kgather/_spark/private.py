"""A private item side, learnt from blocks: the measurements of `private_items`, summed over the blocks.

The sums are of whole numbers, so they are those that one machine has of the same ratings, and so are noise and items.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgather._settings.publication import PublishSettings
from kgather._spark.blocks import matrix_of, numbers
from kgather._spark.row_sums import RowSums
from kgather._spark.sums import summed
from kgather._steps.learning import check_cost
from kgather.udfs.preferences._accounting import Charge, Noise
from kgather.udfs.preferences._bounded_sums import UNIT, clip_to_scale
from kgather.udfs.preferences.model import Progress
from kgather.udfs.preferences.private_items import Fold, Kernel, NoisySums, learn_private_items, noise_of
from kgather.udfs.ratings.matrix import RatingMatrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    """Sums over users whose ratings are blocks of `CODED`, of which there are `n_blocks`."""

    def __init__(
        self,
        spark: "SparkSession",
        blocks: "DataFrame",
        n_blocks: int,
        items: int,
        scale: tuple[float, float],
        noise: Noise,
    ) -> None:
        super().__init__(noise)
        self.spark, self.blocks, self.n_blocks, self.items, self.scale = spark, blocks, n_blocks, items, scale

    def add(self, kernel: Kernel, shape: tuple[int, ...], what: str, deviation: float) -> NDArray[np.float64]:
        """See `NoisySums.add`. The noise is added where the sums are: the driver sees none without."""
        known, items, scale = self.spark.sparkContext.broadcast((kernel, self.noise)), self.items, self.scale
        rows, width = shape[0], math.prod(shape[1:])

        def table(block: dict[str, Any]) -> NDArray[np.int64]:
            matrix = matrix_of(block, items)
            matrix = replace(matrix, values=clip_to_scale(matrix.values, *scale))
            out = np.zeros(rows * width, dtype=np.int64)
            known.value[0](matrix, 0, matrix.n_users, out)
            return out.reshape(rows, width)

        def finish(sums: NDArray[Any]) -> NDArray[np.float64]:
            total = sums / UNIT
            total += known.value[1].draw(what, deviation, shape).reshape(rows, width)
            return total

        found = RowSums(rows, width, np.int64, self.n_blocks).of(self.blocks, table, finish)
        known.unpersist()
        return found.reshape(shape)


def learn(
    spark: "SparkSession",
    blocks: "DataFrame",
    n_blocks: int,
    users: int,
    items: int,
    settings: PublishSettings,
    scale: tuple[float, float],
    seed: bytes,
    progress: Progress,
) -> PrivateLearnt:
    """Learn with the bound that is asked for.

    blocks: of `CODED`, about n_blocks. seed: of the noise, see `private_seed_of`.
    Raises PromiseError where the measurements together cost more.
    """
    epsilon, delta, rank = settings.item_epsilon, settings.item_delta, settings.rank
    assert epsilon is not None
    sums = BlockSums(spark, blocks, n_blocks, items, scale, noise_of(seed, scale, epsilon, delta, rank, items))
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
