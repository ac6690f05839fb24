"""The items' half of a model, made fit to be seen: nobody is alone in an item's vector.

Whoever is the only rater of an item is its vector. So items with fewer than `min_raters` ratings take no part in
learning and share one vector. Between that number and twice as many (ten more at least), an item moves linearly from
the shared vector to its own, so that no single rating brings a vector of its own into being; as it moves, its ratings
count less and less for the shared level. And all vectors have noise, measured in reaches: a reach is what one rating
can move. Without the noise, somebody who knows all other raters of an item reads the sign of the last one's rating
from its vector.

How far a rating reaches in a level falls with the raters. In factors it does so only from where the ratings outweigh
the solver's penalty: the factors of an item that hundreds rated still move by one rating as much as those of a rare
one.
"""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.options import real, whole
from kgather.udfs.preferences.item_noise import ItemNoise
from kgather.udfs.preferences.learning import RANK, learn
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import AlsOptions, options_of
from kgather.udfs.ratings.matrix import RatingMatrix

RARE_REACH = 0.064
"""The reach in the level of an item that is not its own, in standard deviations of all ratings: that of the solver's
`influence`, which no rating moves an item by more than.
"""

LEAST_RAMP = 10
"""An item becomes its own over so many raters at least: fewer steps would each tell that there is one rater more."""

FAR = 1.8
"""How far from its mean a rating is taken to be, in standard deviations, when it is said how far it reaches."""

RARE_NOISE = 2.0
"""The scale of the Laplace noise, in raters, in the counts by which rare items are left out."""

_MANY = 9.0  # times min_raters: so many people more than that set the shared level alone

_SPACINGS = 5.0  # standard deviations: two of the gaps between n sorted ratings near their median, times n


@dataclass(frozen=True)
class ItemSide:
    """Levels and factors of items before noise, and how far one rating reaches in them.

    level float64[m], factors float64[m, r], in the units of `Preferences`. own float64[m], 0..1: how much of an item's
    vector is its own; the rest is the shared one. reach float64[m]: what one rating can move an item's level by, in the
    unit of the ratings. factor_reach float64[m]: the same of each of its factors, in theirs. shared_reach: that of the
    shared level. unit: the standard deviation of all ratings. raters int64[m].
    """

    level: NDArray[np.float64]
    factors: NDArray[np.float64]
    own: NDArray[np.float64]
    reach: NDArray[np.float64]
    factor_reach: NDArray[np.float64]
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
            factor_reach=np.zeros(m),
            shared_reach=0.0,
            unit=matrix.mean_and_deviation()[1],
            raters=matrix.raters(),
        )

    def with_noise(self, noise: ItemNoise, reaches: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Level float64[m] and factors float64[m, r] with noise of so many reaches.

        Raises InputError for a number below 0, and where the noise is of other items.
        """
        size = real("item_noise", reaches, 0)
        # An item's own vector is hidden by a walk; as it is shown by a share, so is its noise.
        share = np.maximum(self.own, 1e-300)
        unit = max(self.unit, 1e-300)
        shared = (1.0 - self.own) * size * self.shared_reach * noise.one(f"shared {size!r} {self.shared_reach!r}")
        level = self.level + shared + self._hidden("level", size * self.reach, share, unit, noise)
        factors = self.factors.copy()
        for factor in range(factors.shape[1]):
            factors[:, factor] += self._hidden(f"factor {factor}", size * self.factor_reach, share, unit, noise)
        return level, factors

    def _hidden(
        self, purpose: str, sizes: NDArray[np.float64], share: NDArray[np.float64], unit: float, noise: ItemNoise
    ) -> NDArray[np.float64]:
        """Noise of these sizes, float64[m]."""
        own = self.own > 0
        walk = share * unit * noise.walk(purpose, np.where(own, sizes / share / unit, 0.0))
        return np.where(own, walk, sizes * noise.plain(f"{purpose}, shared"))

    def kept(self, noise: ItemNoise, least: int) -> NDArray[np.bool_]:
        """Which items, bool[m], are shown where rare ones are left out: by counts of raters with noise, so that whether
        an item is there does not hang on one person.
        """
        return self.raters + RARE_NOISE * noise.raters >= least


def learn_apart(matrix: RatingMatrix, *, min_raters: int, **options: Any) -> tuple[Preferences, ItemSide]:
    """Learn from the items that at least `min_raters` users rated; the others share one vector.

    options: those of `learning.learn`. The shared vector has no factors. Its level is the median of what all ratings of
    such items lie above their users' levels, those of items on their way to a vector of their own for the rest. With
    few people behind these ratings it is drawn to the level of an item of which nothing is known: wholly up to
    `min_raters` people, not at all from ten times as many.

    Returns the model, whose items have the vectors before noise, and its items' half in full precision. O(nnz) beside
    the learning. Raises InputError as `learn` does.
    """
    least = whole("min_raters", min_raters, 1)
    raters, (_, unit) = matrix.raters(), matrix.mean_and_deviation()
    many, own = raters >= least, own_share(raters, least)
    learnt = _learn_some(matrix.with_items(many), int(options.get("rank", RANK)), options)
    level, people = _usual_level(matrix, learnt), 0
    if (raters[own < 1.0] > 0).any():
        rare = matrix.with_items(own < 1.0)
        people = int(np.count_nonzero(np.diff(rare.indptr)))
        level = shared_level(level, _median_above(rare, learnt.user_level, 1.0 - own), people, least)
    side = side_of(
        learnt.item_level,
        learnt.item_factors,
        raters,
        least=least,
        shared=level,
        people=people,
        unit=unit,
        square=float(np.mean(np.square(learnt.user_factors, dtype=np.float64))),
        options=options,
    )
    shown = Preferences(
        learnt.user_level,
        learnt.user_factors,
        side.level.astype(np.float32),
        side.factors.astype(np.float32),
        learnt.held_out_rmse,
    )
    return shown, side


def shared_level(usual: float, middle: float, people: int, least: int) -> float:
    """The level that rare items share: the median of them, drawn to the usual one where few people are behind it."""
    return usual + float(np.clip((people - least) / (_MANY * least), 0.0, 1.0)) * (middle - usual)


def side_of(
    item_level: NDArray[np.float32],
    item_factors: NDArray[np.float32],
    raters: NDArray[np.int64],
    *,
    least: int,
    shared: float,
    people: int,
    unit: float,
    square: float,
    options: Mapping[str, Any],
) -> ItemSide:
    """The items' half of a model, from what was learnt of the items that many rated.

    item_level float32[m], item_factors float32[m, r]. shared: the shared level, and people: how many are behind it.
    unit: the standard deviation of all ratings. square: the mean square of a factor of a user. options: those of
    `learning.learn`.
    """
    own = own_share(raters, least)
    reach = unit * _reach(raters, own, least)
    return ItemSide(
        level=shared + own * (item_level - shared),
        factors=own[:, None] * item_factors.astype(np.float64),
        own=own,
        reach=reach,
        factor_reach=_factor_reach(reach, unit, raters, own, square, item_factors.shape[1], options),
        shared_reach=unit * min(_SPACINGS / (people + 1.0), 2.0 * RARE_REACH) if people else 0.0,
        unit=unit,
        raters=raters,
    )


def _reach(raters: NDArray[np.int64], own: NDArray[np.float64], least: int) -> NDArray[np.float64]:
    """What one rating can move levels by, in standard deviations of all ratings, float64[m].

    Where the level is an item's own, that is FAR / (raters + 1), but at most twice RARE_REACH; where it is the shared
    one, at most RARE_REACH, whatever the number of raters. In between it grows by the same factor with each rater, as
    the size of the noise, too, tells k raters from k + 1.
    """
    alone = np.minimum(FAR / (np.maximum(raters, least + max(least, LEAST_RAMP)) + 1.0), 2.0 * RARE_REACH)
    return np.asarray(np.minimum(RARE_REACH, alone) ** (1.0 - own) * alone**own)


def _factor_reach(
    reach: NDArray[np.float64],
    unit: float,
    raters: NDArray[np.int64],
    own: NDArray[np.float64],
    square: float,
    rank: int,
    options: Mapping[str, Any],
) -> NDArray[np.float64]:
    """What one rating can move each factor by, float64[m].

    At least so much that all factors together move a prediction as the level does, for a user whose factors are as long
    as the root of the ratings' standard deviation. And as much as a rating that is FAR off moves the solver's solution:
    its user's factor over penalty and squares of all raters' factors.
    """
    chosen = options_of(str(options.get("solver", "als")), _options_of_solver(options))
    counted = np.maximum(raters, 1)
    penalty = np.zeros(len(raters))
    if isinstance(chosen, AlsOptions):
        penalty = (
            chosen.regularization * unit * counted**chosen.count_power * (1.0 + chosen.rare_regularization / counted)
        )
    pull = own * FAR * unit * math.sqrt(square) / np.maximum(penalty + counted * square, 1e-12)
    return np.maximum(reach / math.sqrt(max(unit, 1e-12) * rank), pull)


def _options_of_solver(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not of `learn` itself."""
    of_learn = inspect.signature(learn).parameters
    return {name: value for name, value in options.items() if name not in of_learn}


def own_share(raters: NDArray[np.int64], least: int) -> NDArray[np.float64]:
    """How much is an item's own, 0..1: nothing up to `least` raters, all from twice as many or LEAST_RAMP more."""
    return np.clip((raters - least) / max(least, LEAST_RAMP), 0.0, 1.0)


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


def _median_above(matrix: RatingMatrix, level: NDArray[np.float32], weights: NDArray[np.float64]) -> float:
    """The median of what the ratings lie above their users' levels, each with the weight of its item, float64[m]."""
    above = matrix.values - np.repeat(level, np.diff(matrix.indptr)).astype(np.float64)
    order = np.argsort(above, kind="stable")
    so_far = np.cumsum(weights[matrix.items[order]])
    middle = so_far[-1] / 2.0
    first = int(np.searchsorted(so_far, middle, "left"))
    last = min(int(np.searchsorted(so_far, middle, "right")), len(order) - 1)
    return float((above[order[first]] + above[order[last]]) / 2.0)
