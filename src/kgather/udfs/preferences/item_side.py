"""The items' half of a model, made fit to be seen: nobody is alone in an item's vector.

Whoever is the only rater of an item is its vector. So items with fewer than `min_raters` ratings take no part in
learning and share one vector. Between that number and twice as many, an item moves linearly from the shared vector to
its own, so that no single rating brings a vector of its own into being. And all vectors have noise, measured in
reaches: a reach is what one rating can move the level of an item by. Without the noise, somebody who knows all other
raters of an item reads the sign of the last one's rating from its vector.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import real, whole
from kgather.udfs.preferences.item_noise import ItemNoise
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

LARGEST_REACH = 0.064
"""No rating reaches farther than so many standard deviations of all ratings; the solver's `influence` sees to that."""

RARE_NOISE = 2.0
"""The scale of the Laplace noise, in raters, in the counts by which rare items are left out."""

_SPACINGS = 5.0  # standard deviations: two of the gaps between n sorted ratings near their median, times n


@dataclass(frozen=True)
class ItemSide:
    """Levels and factors of items before noise, and how far one rating reaches in them.

    level float64[m], factors float64[m, r], in the units of `Preferences`. own float64[m], 0..1: how much of an item's
    vector is its own; the rest is the shared one. reach float64[m]: what one rating can move an item's level by, in the
    unit of the ratings. shared_reach: the same of the shared level. unit: the standard deviation of all ratings, which
    turns a reach in levels into one in factors. raters int64[m].
    """

    level: NDArray[np.float64]
    factors: NDArray[np.float64]
    own: NDArray[np.float64]
    reach: NDArray[np.float64]
    shared_reach: float
    unit: float
    raters: NDArray[np.int64]

    @classmethod
    def proven(cls, learnt: Preferences, matrix: RatingMatrix) -> Self:
        """The items' half of a model that has all its noise already: every vector is an item's own, and no rating
        reaches farther than the proof says.
        """
        m = matrix.n_items
        return cls(
            level=learnt.item_level.astype(np.float64),
            factors=learnt.item_factors.astype(np.float64),
            own=np.ones(m),
            reach=np.zeros(m),
            shared_reach=0.0,
            unit=float(np.std(matrix.values, dtype=np.float64)) if matrix.nnz else 0.0,
            raters=np.bincount(matrix.items, minlength=m).astype(np.int64),
        )

    def with_noise(self, noise: ItemNoise, reaches: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Level float64[m] and factors float64[m, r] with noise of so many reaches.

        The noise of an item's factors together moves a prediction as much as that of its level, for a user whose
        factors are as long as the root of `unit`. Raises InputError for a number below 0, and where the noise is not of
        these items.
        """
        size = real("item_noise", reaches, 0)
        m, rank = self.factors.shape
        if noise.level.shape != (m,) or noise.factors.shape[0] != m or noise.factors.shape[1] < rank:
            msg = f"the noise is of {len(noise.level)} items and rank {noise.factors.shape[1]}, not of {m} and {rank}."
            raise InputError(msg)
        shared = size * self.shared_reach * noise.shared
        level = self.level + (1.0 - self.own) * shared + size * self.reach * noise.level
        in_factors = size * self.reach / np.sqrt(max(self.unit, 1e-12) * rank)
        return level, self.factors + in_factors[:, None] * noise.factors[:, :rank]

    def kept(self, noise: ItemNoise, least: int) -> NDArray[np.bool_]:
        """Which items, bool[m], are shown where rare ones are left out: by counts of raters with noise, so that whether
        an item is there does not hang on one person.
        """
        return self.raters + RARE_NOISE * noise.raters >= least


def learn_apart(matrix: RatingMatrix, *, min_raters: int, **options: Any) -> tuple[Preferences, ItemSide]:
    """Learn from the items that at least `min_raters` users rated; the others share one vector.

    options: those of `learning.learn`. The shared vector has no factors. Its level is the median of what all ratings of
    such items lie above their users' levels. With few people behind these ratings it is drawn to the level of an item
    of which nothing is known: as an item is, between `min_raters` and twice as many people.

    Returns the model, whose items have the vectors before noise, and its items' half in full precision. O(nnz) beside
    the learning. Raises InputError as `learn` does.
    """
    least = whole("min_raters", min_raters, 1)
    raters = np.bincount(matrix.items, minlength=matrix.n_items).astype(np.int64)
    unit = float(np.std(matrix.values, dtype=np.float64))
    many = raters >= least
    if many[matrix.items].all():
        learnt, rare = learn(matrix, **options), None
    else:
        rare = matrix.with_items(~many)
        learnt = _learn_some(matrix.with_items(many), int(options.get("rank", 3)), options)
    usual = _usual_level(matrix, learnt)
    level, people = usual, 0
    if rare is not None:
        people = int(np.count_nonzero(np.diff(rare.indptr)))
        level += _share(people, least) * (_median_above(rare, learnt.user_level) - usual)
    own = _share(raters, least)
    side = ItemSide(
        level=level + own * (learnt.item_level - level),
        factors=own[:, None] * learnt.item_factors.astype(np.float64),
        own=own,
        reach=unit * np.minimum(LARGEST_REACH, 1.0 / (np.maximum(raters, least) + 1.0)),
        shared_reach=unit * _SPACINGS / (people + 1.0) if people else 0.0,
        unit=unit,
        raters=raters,
    )
    shown = Preferences(
        learnt.user_level,
        learnt.user_factors,
        side.level.astype(np.float32),
        side.factors.astype(np.float32),
        learnt.held_out_rmse,
    )
    return shown, side


def _share(raters: Any, least: int) -> Any:
    """How much is an item's own, 0..1: nothing up to `least` raters, all from twice as many."""
    return np.clip((raters - least) / least, 0.0, 1.0)


def _learn_some(matrix: RatingMatrix, rank: int, options: dict[str, Any]) -> Preferences:
    """What `learn` gives; where no rating is left to learn from, nothing is known of anybody."""
    if matrix.nnz:
        return learn(matrix, **options)
    n, m = matrix.n_users, matrix.n_items
    flat = np.zeros(n, dtype=np.float32), np.zeros((n, rank), dtype=np.float32)
    return Preferences(*flat, np.zeros(m, dtype=np.float32), np.zeros((m, rank), dtype=np.float32))


def _usual_level(matrix: RatingMatrix, learnt: Preferences) -> float:
    """The mean of what all ratings lie above their users' levels."""
    return _mean_above(matrix.indptr, matrix.values, learnt.user_level)


@njit(nogil=True, cache=True)
def _mean_above(indptr: NDArray[np.int64], values: NDArray[np.float32], level: NDArray[np.float32]) -> float:
    total = 0.0
    for u in range(len(indptr) - 1):
        for j in range(indptr[u], indptr[u + 1]):
            total += values[j] - np.float64(level[u])
    return total / len(values)


def _median_above(matrix: RatingMatrix, level: NDArray[np.float32]) -> float:
    """The median of what the ratings lie above their users' levels."""
    return float(np.median(matrix.values - np.repeat(level, np.diff(matrix.indptr)).astype(np.float64)))
