"""Preferences, learnt from blocks by the kernels of ALS; see `kgather.udfs.preferences.als.Part`.

The driver has the items' vectors, the executors have the ratings and solve the users anew whenever they need them. It
is the way of `als.learn_als`, but for this: how far a rating may move an item hangs on the mean square of the users'
factors, and that of the sweep before is taken, as the present one is known only when all blocks are done.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import KgatherError
from kgather._settings.publication import PublishSettings
from kgather._spark.blocks import matrix_of, numbers
from kgather._spark.checkpoint import Checkpoint
from kgather._spark.sums import Rows, Term, summed, summed_with_table
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.preferences import als
from kgather.udfs.preferences._gram import factors_of, new_design
from kgather.udfs.preferences.als import Frame, Part
from kgather.udfs.preferences.item_side import ItemSide, own_share, shared_level, side_of
from kgather.udfs.preferences.options import AlsOptions, options_of
from kgather.udfs.ratings.matrix import RatingMatrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STRETCH_BYTES = 32 << 20  # of the equations of one stretch of items, from all blocks
_ITEMS_AT_ONCE = 1 << 16  # of a block, whose equations are made together
_RARE_BINS = 1 << 16
_STATISTICS, _GAPS, _RARE = -1, -2, -3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Model:
    """The items as they are learnt, and what all blocks need to solve their users.

    level float32[m], factors float32[m, r]: of the items that many rated; of the others 0. many bool[m]: which these
    are. frame: of their ratings; None where there are none.
    """

    level: NDArray[np.float32]
    factors: NDArray[np.float32]
    many: NDArray[np.bool_]
    frame: Frame | None

    @property
    def rank(self) -> int:
        """The number of factors."""
        return self.factors.shape[1]

    def of(self, items: NDArray[np.int64]) -> "Model":
        """The model of some items alone, int64[i], which are known by their places among these."""
        return replace(self, level=self.level[items], factors=self.factors[items], many=self.many[items])

    def design(self) -> NDArray[np.float32]:
        """The items as the kernels take them."""
        design = new_design(len(self.level), self.rank)
        design.reshape(len(self.level) + 1, -1)[:-1, 1 : self.rank + 1] = self.factors
        return design

    def users(self, matrix: RatingMatrix) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Levels float32[n] and factors float32[n, r] of a block's users, from all their ratings."""
        n = matrix.n_users
        if self.frame is None:
            return np.zeros(n, dtype=np.float32), np.zeros((n, self.rank), dtype=np.float32)
        own, matrix = own_items(matrix.with_items(self.many))
        items, part = self.of(own), Part(matrix, self.frame)
        part.solve_users(items.design(), items.level, all_ratings=True)
        return part.user_level, factors_of(part.user_design, n, self.rank)


@dataclass(frozen=True)
class Ratings:
    """What is known of all staged ratings together.

    raters int64[m]. deviation, lowest, highest: of all of them. many_*: of those of the items that many rated; reach
    is the highest less the lowest.
    """

    users: int
    blocks: int
    raters: NDArray[np.int64]
    deviation: float
    lowest: float
    highest: float
    many_mean: float
    many_deviation: float
    many_reach: float


@dataclass(frozen=True)
class Learnt:
    """The model, the items' half that may be seen, and the sums over users that a release needs.

    middle: the users' mean level and factors, float64[1 + r].
    """

    model: Model
    side: ItemSide
    middle: NDArray[np.float64]


def about(
    spark: "SparkSession", blocks: "DataFrame", raters: NDArray[np.int64], users: int, ends: tuple[float, float],
    settings: PublishSettings,
) -> Ratings:  # fmt: skip
    """What is known of all ratings. blocks: of `CODED`."""
    many = spark.sparkContext.broadcast(raters >= settings.least_raters)
    m = len(raters)

    def terms(block: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        matrix = matrix_of(block, m)
        for key, part in enumerate((matrix, matrix.with_items(many.value))):
            values = part.values.astype(np.float64)
            yield key, np.array([len(values), values.sum(), np.square(values - middle).sum()])
        # Of each block under a key of its own: the least of all is looked for by the driver.
        ends_here = [part.values.min(), part.values.max()] if len(part.values) else [np.inf, -np.inf]
        yield 2 + block["block"], np.array(ends_here, dtype=np.float64)

    # Squares of distances from a number near the mean: those from 0 would lose digits.
    middle = (ends[0] + ends[1]) / 2
    found = {key: numbers(each, np.float64) for key, each in summed(blocks, terms).items()}
    (_, deviation), (mean, many_deviation) = (_moments(found.pop(key), middle) for key in (0, 1))
    of_blocks = np.array([each[:2] for each in found.values()])
    of_many = of_blocks[np.isfinite(of_blocks).all(axis=1)]
    reach = float(of_many[:, 1].max() - of_many[:, 0].min()) if len(of_many) else 0.0
    return Ratings(users, len(of_blocks), raters, deviation, *ends, mean, many_deviation, reach)


def _moments(sums: NDArray[np.float64], middle: float) -> tuple[float, float]:
    count, total, squares = sums
    if count == 0:
        return 0.0, 0.0
    mean = total / count
    return mean, math.sqrt(max(squares / count - (mean - middle) ** 2, 0.0))


def learn(
    spark: "SparkSession",
    blocks: "DataFrame",
    ratings: Ratings,
    settings: PublishSettings,
    scale: tuple[float, float],
    progress: Progress,
    checkpoint: Checkpoint,
) -> Learnt:
    """Learn from the items that at least `min_raters` users rated; see `item_side.learn_apart`.

    blocks: of `CODED`. scale: the lowest and the highest rating that can be. checkpoint: where the items are kept once
    they are learnt.
    """
    # Ratings that are all the same span no scale.
    low, high = scale if scale[0] < scale[1] else (-np.inf, np.inf)
    frame = _frame(ratings, settings)

    def learnt() -> dict[str, NDArray[Any]]:
        model = _learn_many(spark, blocks, ratings, settings, frame, (low, high), progress)
        return {"level": model.level, "factors": model.factors}

    kept = checkpoint.arrays("items", learnt)
    model = Model(kept["level"], kept["factors"], ratings.raters >= settings.least_raters, frame)
    return _apart(spark, blocks, model, ratings, settings, (low, high))


def _frame(ratings: Ratings, settings: PublishSettings) -> Frame | None:
    """The frame of the ratings of the items that many rated; None where there are none."""
    counts = np.where(ratings.raters >= settings.least_raters, ratings.raters, 0)
    if not counts.any():
        return None
    return Frame.of(
        _options(settings),
        settings.rank,
        mean=ratings.many_mean,
        deviation=ratings.many_deviation or 1.0,
        reach=ratings.many_reach,
        item_counts=counts,
    )


def _options(settings: PublishSettings) -> AlsOptions:
    options = options_of("als", settings.solver_options)
    assert isinstance(options, AlsOptions)
    return options


def _learn_many(
    spark: "SparkSession",
    blocks: "DataFrame",
    ratings: Ratings,
    settings: PublishSettings,
    frame: Frame | None,
    ends: tuple[float, float],
    progress: Progress,
) -> Model:
    m, rank = len(ratings.raters), settings.rank
    many = ratings.raters >= settings.least_raters
    counts = np.where(many, ratings.raters, 0)
    if frame is None:
        return Model(np.zeros(m, dtype=np.float32), np.zeros((m, rank), dtype=np.float32), many, None)
    options = _options(settings)
    model = Model(
        level=np.full(m, frame.mean, dtype=np.float32),
        factors=als.drawn_factors(m, rank, settings.seed, ratings.many_deviation or 1.0),
        many=many,
        frame=frame,
    )
    share = min(options.holdout, als.HELD_OUT_MOST / int(counts.sum()))
    sweeps = _Sweeps(spark, blocks, ratings.blocks, ratings.users, share, settings.seed, ends)
    first = sweeps.look(model)
    held = int(first.held.sum())
    learning = max(options.sweeps - options.refit, 0) if held else 0
    left = counts - first.held
    square, lowest, since, done = first.square, np.inf, 0, 0
    # With items as they are drawn there is no error to look at: items are solved first, as `als` does.
    if learning:
        model, square, _ = sweeps.sweep(model, left, square, users_from_all=False, items_from_all=False)
        done = 1
    while learning:
        progress(done, options.sweeps)
        # The error is that of the users who fit these items, which is known when the next items are solved.
        following, square_here, error = sweeps.sweep(model, left, square, users_from_all=False, items_from_all=False)
        square = square_here
        since = 0 if error < lowest * (1.0 - options.tolerance) else since + 1
        lowest = min(lowest, error)
        if done >= learning or since >= options.patience:
            break
        model, done = following, done + 1
    last = options.refit if held else options.sweeps
    for turn in range(min(last, options.sweeps - done)):
        progress(done, options.sweeps)
        users_from_all = turn > 0 or not learning
        model, square, _ = sweeps.sweep(model, counts, square, users_from_all=users_from_all, items_from_all=True)
        done += 1
    progress(options.sweeps, options.sweeps)
    return model


@dataclass(frozen=True)
class _First:
    """What is seen before the first sweep: held int64[m], how many ratings of each item are held out, and the mean
    square of a factor of a user.
    """

    held: NDArray[np.int64]
    square: float


@dataclass(frozen=True)
class _Sweeps:
    """Runs sweeps over all blocks."""

    spark: "SparkSession"
    blocks: "DataFrame"
    n_blocks: int
    users: int
    share: float
    seed: int
    ends: tuple[float, float]

    def look(self, model: Model) -> _First:
        """Solve the users from the items as they are."""
        m, share, seed = len(model.level), self.share, self.seed
        known = self.spark.sparkContext.broadcast(model)

        def terms(block: dict[str, Any]) -> Iterator[Term]:
            own, items, part = _part(block, known.value, share, seed)
            part.solve_users(items.design(), items.level, all_ratings=False)
            yield _STATISTICS, np.array([part.squared_lengths()])
            held = part.held.raters()
            some = np.flatnonzero(held)
            yield Rows(own[some], held[some, None])

        sums, counts = summed_with_table(self.blocks, terms, self._stretch(1), lambda rows: rows.numbers)
        known.unpersist()
        held = np.zeros(m, dtype=np.int64)
        for places, each in counts:
            held[places] = numbers(each, np.int64)
        return _First(held, self._square(float(numbers(sums[_STATISTICS], np.float64)[0]), model.rank))

    def sweep(
        self, model: Model, counts: NDArray[np.int64], square: float, *, users_from_all: bool, items_from_all: bool
    ) -> tuple[Model, float, float]:
        """Solve the users from the items, and from them the items.

        counts int64[m]: the ratings that items are solved from. square: of the users of the sweep before. Returns the
        next items, and of the users in between the mean square of a factor and the RMSE on what is held out.
        """
        m, rank, share, seed, ends = len(model.level), model.rank, self.share, self.seed, self.ends
        frame = model.frame
        assert frame is not None
        known = self.spark.sparkContext.broadcast((model, counts))
        n_blocks = self.n_blocks

        def terms(block: dict[str, Any]) -> Iterator[Term]:
            everything, left = known.value
            assert everything.frame is not None
            own, items, part = _part(block, everything, share, seed)
            design, left = items.design(), left[own]
            part.solve_users(design, items.level, all_ratings=users_from_all)
            error, looked = part.squared_error(design, items.level, *ends)
            yield _STATISTICS, np.array([part.squared_lengths(), error, looked])
            for lo in range(0, len(own), _ITEMS_AT_ONCE):
                hi = min(lo + _ITEMS_AT_ONCE, len(own))
                systems = part.equations(lo, hi, left[lo:hi], square, all_ratings=items_from_all)
                yield Rows(own[lo:hi], whole(systems, steps_of(everything.frame, left[lo:hi]), n_blocks))

        def finish(rows: Rows) -> NDArray[np.float32]:
            items, left = known.value
            assert items.frame is not None
            of_these = left[rows.places]
            systems = rows.numbers.reshape(-1, rank + 2, rank + 1) * steps_of(items.frame, of_these)
            level, factors = als.solve_items(systems, of_these, items.frame)
            return np.concatenate([level[:, None], factors], axis=1)

        sums, solved = summed_with_table(self.blocks, terms, self._stretch((rank + 2) * (rank + 1)), finish)
        known.unpersist()
        squares, error, looked = numbers(sums[_STATISTICS], np.float64)
        # Of items without ratings nothing is known.
        level, factors = np.full(m, frame.mean, dtype=np.float32), np.zeros((m, rank), dtype=np.float32)
        for places, each in solved:
            made = numbers(each, np.float32).reshape(-1, rank + 1)
            level[places], factors[places] = made[:, 0], made[:, 1:]
        rmse = math.sqrt(error / looked) if looked else math.nan
        return replace(model, level=level, factors=factors), self._square(float(squares), rank), rmse

    def _square(self, total: float, rank: int) -> float:
        return total / self.users / rank

    def _stretch(self, width: int) -> int:
        """How many rows of so many numbers are summed together, so that those of all blocks fit in memory."""
        return max(_STRETCH_BYTES // (self.n_blocks * width * 8), 256)


def steps_of(frame: Frame, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The numbers of which whole multiples are summed, for each number of the equations of items with these counts.

    float64[i, rank + 2, rank + 1], powers of two. 2^50 of them are as much as an equation can have if no rating is
    farther from 0 than the mean and twice the range, and no factor longer than 16 of its units; there is room for 4,000
    times as much.
    """
    factor = _power(16.0 * float(frame.unit))
    size = np.full(frame.rank + 1, factor)
    size[0] = 1.0
    rating = _power(abs(frame.mean) + frame.spread)
    each = np.concatenate([np.outer(size, size), rating * size[None, :]])
    times = np.exp2(np.ceil(np.log2(np.maximum(counts, 1).astype(np.float64))))
    steps: NDArray[np.float64] = times[:, None, None] * each * 2.0**-50
    return steps


def _power(number: float) -> float:
    """The next power of two."""
    return 2.0 ** math.ceil(math.log2(number)) if number > 0.0 else 1.0


def whole(systems: NDArray[np.float64], steps: NDArray[np.float64], blocks: int) -> NDArray[np.int64]:
    """Equations in whole multiples of the steps, int64[i, numbers of one item]: their sum over all blocks is the same
    in any order.
    """
    found = np.rint(systems / steps)
    # Beyond this a sum of so many blocks could run over; no rating that fits the frame comes near.
    if not np.abs(found).max(initial=0.0) < 2.0**62 / blocks:
        msg = "the equations of an item have numbers too large to be summed."
        raise KgatherError(msg)
    return found.astype(np.int64).reshape(len(found), -1)


def own_items(matrix: RatingMatrix) -> tuple[NDArray[np.int64], RatingMatrix]:
    """The items that a block's users rated, int64[i] ascending, and the ratings by their places among these.

    Of a million items a block knows some: what it makes is then for these alone.
    """
    own = np.flatnonzero(matrix.raters())
    place = np.zeros(matrix.n_items, dtype=np.int32)
    place[own] = np.arange(len(own), dtype=np.int32)
    return own, replace(matrix, n_items=len(own), items=place[matrix.items])


def _part(block: Mapping[str, Any], model: Model, share: float, seed: int) -> tuple[NDArray[np.int64], Model, Part]:
    """A block's ratings of the items that many rated, some of them held out; which items, and the model of these."""
    assert model.frame is not None
    own, matrix = own_items(matrix_of(block, len(model.level)).with_items(model.many))
    part = Part(matrix, model.frame)
    # Which are held out hangs on the users' places in their block, so each block has a seed of its own.
    part.hold_out(share, seed64(seed * 1_000_003 + block["block"] + 1))
    return own, model.of(own), part


def _apart(
    spark: "SparkSession",
    blocks: "DataFrame",
    model: Model,
    ratings: Ratings,
    settings: PublishSettings,
    ends: tuple[float, float],
) -> Learnt:
    """The items' half that may be seen: rare items share one vector."""
    m, rank, least = len(ratings.raters), model.rank, settings.least_raters
    own = own_share(ratings.raters, least)
    # No user's level is farther from 0 than ratings are from each other.
    reach = 2.0 * (ratings.highest - ratings.lowest)
    span = ratings.lowest - reach, ratings.highest + reach
    known = spark.sparkContext.broadcast((model, own))
    median = _options(settings).median and model.frame is not None and model.frame.spread > 0.0

    def terms(block: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        items, shares = known.value
        matrix = matrix_of(block, m)
        level, factors = items.users(matrix)
        above = matrix.values - np.repeat(level, np.diff(matrix.indptr)).astype(np.float64)
        rare = matrix.with_items(shares < 1.0)
        people = int(np.count_nonzero(np.diff(rare.indptr)))
        yield (
            _STATISTICS,
            np.concatenate(
                [
                    [len(above), above.sum(), np.square(factors, dtype=np.float64).sum(), people],
                    [level.sum(dtype=np.float64)],
                    factors.sum(axis=0, dtype=np.float64),
                ]
            ).astype(np.float64),
        )
        of_rare = shares[matrix.items] < 1.0
        if of_rare.any():
            place = (above[of_rare] - span[0]) / max(span[1] - span[0], 1e-300) * _RARE_BINS
            bins = np.clip(place.astype(np.int64), 0, _RARE_BINS - 1)
            weights = 1.0 - shares[matrix.items[of_rare]]
            yield _RARE, np.bincount(bins, weights=weights, minlength=_RARE_BINS).astype(np.float64)
        if median and items.frame is not None:
            own, known_ones = own_items(matrix.with_items(items.many))
            part, some = Part(known_ones, items.frame), items.of(own)
            design = some.design()
            part.solve_users(design, some.level, all_ratings=True)
            yield _GAPS, part.gaps(design, some.level, *ends)

    sums = summed(blocks, terms)
    gaps = numbers(sums.pop(_GAPS), np.int64) if median else np.zeros(0, dtype=np.int64)
    found = {key: numbers(each, np.float64) for key, each in sums.items()}
    known.unpersist()
    count, above, squares, people, *middle = found[_STATISTICS]
    level = model.level
    if median:
        assert model.frame is not None
        level = level + als.median_gap(gaps, model.frame.spread)
    shared = above / count
    if _RARE in found:
        so_far = np.cumsum(found[_RARE])
        at = int(np.searchsorted(so_far, so_far[-1] / 2.0))
        middle_of_rare = span[0] + (at + 0.5) / _RARE_BINS * (span[1] - span[0])
        shared = shared_level(float(shared), middle_of_rare, int(people), least)
    side = side_of(
        level,
        model.factors,
        ratings.raters,
        least=least,
        shared=float(shared),
        people=int(people),
        unit=ratings.deviation,
        square=squares / ratings.users / rank,
        options={"solver": "als", **settings.solver_options},
    )
    return Learnt(model, side, np.array(middle) / ratings.users)
