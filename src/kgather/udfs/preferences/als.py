"""Alternating least squares with levels: the default solver.

Users and items take turns: with the items fixed, the level and the factors of a user are one ridge
regression of its ratings, and the other way round (Zhou et al. 2008, with levels solved jointly). Threads
own users or items, so there is nothing to reduce and the result is the same for any number of threads.

Three things are added, as the items' vectors are released and the users' means: the factors of items with few
ratings are shrunk more; users are shrunk more where most items have few ratings, which say little of who gave
them; and ratings far from the mean are taken as nearer (winsorized) the fewer an item has, so that none moves
the item's level by more than a set amount. The defaults are chosen for what a release gives away, not for
the best fit: docs/why-predicted.md.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.one_type import int64
from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.preferences._gram import LANES, add_rows, factors_of, new_design, solve_ridge, tag_of, width_of
from kgather.udfs.preferences.model import Preferences, Progress, Start
from kgather.udfs.preferences.options import AlsOptions
from kgather.udfs.ratings._held_out import choose_held_out, part_of
from kgather.udfs.ratings.matrix import RatingMatrix

HELD_OUT_MOST = 500_000  # more do not make the error any clearer
_BLOCK_BYTES = 384 << 10  # user vectors of a block: they stay in the cache while the items pass over them
_SEGMENT_LEAST = 4  # ratings of an item in a block, on average over items; fewer are not worth a block
_ITEMS_AT_ONCE = 2048
_SAMPLE_ABOVE = 20_000_000  # ratings from which items first learn from a part of the users
_SAMPLE_SHARE = 0.1
_BINS = 1 << 14  # of gaps between ratings and predictions


def learn_als(
    matrix: RatingMatrix,
    rank: int,
    options: AlsOptions,
    seed: int,
    threads: int,
    scale: tuple[float, float] | None,
    progress: Progress | None,
    start: Start | None = None,
) -> Preferences:
    """Learns levels and factors. O(sweeps (nnz r^2 + (n + m) r^3)) time; 8 bytes a rating beside the
    matrix. start: where items begin, see `learning.learn`.
    """
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        if start is None and matrix.nnz > _SAMPLE_ABOVE:
            sample = _some_users(matrix, seed)
            # an item has so many fewer ratings here, against which it would be held too hard
            milder = replace(
                options,
                regularization=options.regularization * _SAMPLE_SHARE,
                few_raters=options.few_raters * _SAMPLE_SHARE,
                median=False,
            )
            first = _learn(sample, rank, milder, seed, threads, pool, scale, None, None)
            start = first.item_level, first.item_factors
        return _learn(matrix, rank, options, seed, threads, pool, scale, progress, start)
    finally:
        if pool is not None:
            pool.shutdown()


def _learn(
    matrix: RatingMatrix,
    rank: int,
    options: AlsOptions,
    seed: int,
    threads: int,
    pool: ThreadPoolExecutor | None,
    scale: tuple[float, float] | None,
    progress: Progress | None,
    start: Start | None,
) -> Preferences:
    share = min(options.holdout, HELD_OUT_MOST / matrix.nnz)
    entries = choose_held_out(matrix.indptr, matrix.items, share, seed64(seed))
    nothing = np.empty(0, dtype=np.int64)
    held, none_held = part_of(matrix, entries), part_of(matrix, nothing)
    mean, deviation = matrix.mean_and_deviation()
    work = _Work(matrix, rank, options, mean, deviation or 1.0, threads, pool)
    work.start_items(seed, deviation or 1.0, start)

    rmse: list[float] = []
    low, high = scale if scale is not None else (-np.inf, np.inf)
    learning = max(options.sweeps - options.refit, 0) if len(entries) else 0
    lowest, since, done = np.inf, 0, 0
    work.solve_users(held if learning else none_held)
    if learning and start is not None:
        # where items begin is as good as what a sweep leaves: from there on a sweep has to lower the error
        lowest = work.rmse(held, low, high)
    while done < learning and since < options.patience:
        _tell(progress, done, options.sweeps)
        work.sweep(held)
        done += 1
        error = work.rmse(held, low, high)
        rmse.append(error)
        since = 0 if error < lowest * (1.0 - options.tolerance) else since + 1
        lowest = min(lowest, error)
    last = options.refit if len(entries) else options.sweeps
    for _ in range(min(last, options.sweeps - done)):
        _tell(progress, done, options.sweeps)
        work.sweep(none_held)
        done += 1
    _tell(progress, options.sweeps, options.sweeps)
    if options.median:
        work.move_to_median(low, high)
    return work.preferences(tuple(rmse))


def _tell(progress: Progress | None, done: int, most: int) -> None:
    if progress is not None:
        progress(done, most)


def _some_users(matrix: RatingMatrix, seed: int) -> RatingMatrix:
    """The ratings of about a tenth of the users, chosen by a hash; the others keep empty rows."""
    indptr = _sample_indptr(matrix.indptr, _SAMPLE_SHARE, seed64(seed))
    items = np.empty(indptr[-1], dtype=np.int32)
    values = np.empty(indptr[-1], dtype=np.float32)
    _copy_rows(matrix.indptr, matrix.items, matrix.values, indptr, items, values)
    used = np.flatnonzero(np.diff(indptr))
    indptr = np.concatenate([indptr[:1], indptr[used + 1]])
    return RatingMatrix(len(used), matrix.n_items, indptr, items, values)


@dataclass(frozen=True)
class Frame:
    """What holds for all ratings while they are learnt from, whichever part of them is at hand.

    rank: the number of factors. mean: of all ratings. influence, spread: how far a rating may move an item, and twice
    the range of the ratings, in their unit. unit: the root of the ratings' standard deviation, in which factors are
    measured. user_penalty, item_penalty: of levels, of factors, its power of the counts, and that of rare items.
    item_counts int64[m]: the ratings of each item.
    """

    rank: int
    mean: float
    influence: float
    spread: float
    unit: np.floating
    user_penalty: tuple[float, float, float, float]
    item_penalty: tuple[float, float, float, float]
    item_counts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        options: AlsOptions,
        rank: int,
        *,
        mean: float,
        deviation: float,
        reach: float,
        item_counts: NDArray[np.int64],
    ) -> "Frame":
        """The frame of ratings with this mean, standard deviation, and reach (the highest less the lowest)."""
        factor_penalty = options.regularization * deviation
        harder = 1.0 + options.few_raters * np.count_nonzero(item_counts) / int(item_counts.sum())
        power = options.count_power
        return cls(
            rank=rank,
            mean=mean,
            influence=options.influence * deviation,
            # no rating is farther from the mean and its user's level
            spread=2.0 * reach,
            # factors are in roots of the ratings' unit: for this long a user, the bound is the same in any unit
            unit=np.float32(np.sqrt(deviation)),
            user_penalty=(options.level_regularization * harder, factor_penalty * harder, power, 0.0),
            item_penalty=(options.item_level_regularization, factor_penalty, power, options.rare_regularization),
            item_counts=item_counts,
        )


class _Work:
    """Both sides of the model, and the ratings in the order in which each side reads them."""

    def __init__(
        self,
        matrix: RatingMatrix,
        rank: int,
        options: AlsOptions,
        mean: float,
        deviation: float,
        threads: int,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        n, m = matrix.n_users, matrix.n_items
        self.matrix, self.rank, self.pool = matrix, rank, pool
        self.tag = tag_of(rank)
        self.user_design, self.item_design = new_design(n, rank), new_design(m, rank)
        self.user_level, self.item_level = np.zeros(n, dtype=np.float32), np.zeros(m, dtype=np.float32)
        self.user_ranges = row_ranges(matrix.indptr, threads)
        self._build_tiles()
        self.frame = Frame.of(
            options,
            rank,
            mean=mean,
            deviation=deviation,
            reach=float(np.ptp(matrix.values)),
            item_counts=(self.tile_indptr[:, 1:] - self.tile_indptr[:, :-1]).sum(axis=0),
        )
        by_item = np.concatenate([[0], np.cumsum(self.frame.item_counts)])
        self.item_ranges = row_ranges(by_item, threads, _ITEMS_AT_ONCE)

    def _build_tiles(self) -> None:
        """Ratings by blocks of users, within a block by item: the item side reads one block's users at a
        time.
        """
        matrix = self.matrix
        n, m = matrix.n_users, matrix.n_items
        blocks = min(-(-n * width_of(self.rank) * 4 // _BLOCK_BYTES), max(matrix.nnz // (_SEGMENT_LEAST * m), 1))
        size = -(-n // blocks)
        blocks = -(-n // size)
        self.tile_indptr = np.zeros((blocks, m + 1), dtype=np.int64)
        self.tile_users = np.empty(matrix.nnz, dtype=np.int32)
        self.tile_values = np.empty(matrix.nnz, dtype=np.float32)
        run(
            lambda lo, hi: _fill_tiles(
                matrix.indptr, matrix.items, matrix.values, lo, hi, size,
                self.tile_indptr, self.tile_users, self.tile_values,
            ),
            [(block, block + 1) for block in range(blocks)],
            self.pool,
        )  # fmt: skip

    def start_items(self, seed: int, deviation: float, start: Start | None) -> None:
        """First item vectors: drawn at random, or those that were learnt before, of the items that have any."""
        m = self.matrix.n_items
        design = self.item_design.reshape(m + 1, -1)
        design[:m, 1 : self.rank + 1] = drawn_factors(m, self.rank, seed, deviation)
        self.item_level[:] = self.frame.mean
        if start is not None:
            level, factors = start
            known = np.isfinite(level)
            design[:m, 1 : self.rank + 1][known] = factors[known]
            self.item_level[known] = level[known]

    def sweep(self, held: RatingMatrix) -> None:
        """Solves all items, then all users, from all ratings but the held-out ones."""
        self._solve_items(held)
        self.solve_users(held)

    def solve_users(self, held: RatingMatrix) -> None:
        """The users' half of a sweep."""
        matrix = self.matrix
        run(
            lambda lo, hi: _solve_users(
                lo, hi, matrix.indptr, matrix.items, matrix.values, held.indptr, held.items, held.values,
                self.item_design, self.item_level, self.frame.user_penalty, self.user_design, self.user_level, self.tag,
            ),
            self.user_ranges,
            self.pool,
        )  # fmt: skip

    def _solve_items(self, held: RatingMatrix) -> None:
        held_indptr, held_users, held_values = held.transpose()
        lengths = lengths_of(self.user_design, self.matrix.n_users)
        square = float(np.mean(np.square(lengths, dtype=np.float64))) / self.rank
        frame = self.frame
        run(
            lambda lo, hi: _solve_items(
                lo, hi, self.tile_indptr, self.tile_users, self.tile_values,
                held_indptr, held_users, held_values, self.user_design, self.user_level, frame.mean,
                lengths * frame.unit, square, frame.item_counts, frame.item_penalty, frame.influence, frame.spread,
                self.item_design, self.item_level, self.tag,
            ),
            self.item_ranges,
            self.pool,
        )  # fmt: skip

    def rmse(self, held: RatingMatrix, low: float, high: float) -> float:
        """Root mean square error on the held-out ratings, predictions clipped to low..high."""
        total = _squared_error(
            held.indptr, held.items, held.values, self.user_design, self.user_level, self.item_design,
            self.item_level, low, high, len(self.tag),
        )  # fmt: skip
        return float(np.sqrt(total / held.nnz))

    def move_to_median(self, low: float, high: float) -> None:
        """Move all items' levels, so that half of the ratings lie above what is predicted, clipped to low..high."""
        spread = self.frame.spread
        if spread == 0.0:
            return
        matrix = self.matrix
        counts = np.zeros((len(self.user_ranges), _BINS), dtype=np.int64)
        places = dict(zip(self.user_ranges, counts, strict=True))
        run(
            lambda lo, hi: _count_gaps(
                lo, hi, matrix.indptr, matrix.items, matrix.values, self.user_design, self.user_level,
                self.item_design, self.item_level, low, high, spread, places[lo, hi], len(self.tag),
            ),
            self.user_ranges,
            self.pool,
        )  # fmt: skip
        self.item_level += median_gap(counts.sum(axis=0), spread)

    def preferences(self, rmse: tuple[float, ...]) -> Preferences:
        """The model as it stands."""
        return Preferences(
            self.user_level,
            factors_of(self.user_design, self.matrix.n_users, self.rank),
            self.item_level,
            factors_of(self.item_design, self.matrix.n_items, self.rank),
            rmse,
        )


def drawn_factors(m: int, rank: int, seed: int, deviation: float) -> NDArray[np.float32]:
    """First factors of items, float32[m, rank], of ratings with this standard deviation."""
    drawn = np.random.Generator(np.random.Philox(int(seed64(seed)))).standard_normal((m, rank), np.float32)
    return drawn * np.float32(0.3 * np.sqrt(deviation))


def lengths_of(design: NDArray[np.float32], rows: int) -> NDArray[np.float32]:
    """The lengths of the factors in a flat design, float32[rows]."""
    factors = design.reshape(rows + 1, -1)[:-1, 1:]
    return np.sqrt(np.einsum("ij,ij->i", factors, factors))


def median_gap(counts: NDArray[np.int64], spread: float) -> np.float32:
    """The median of what ratings lie above what is predicted, from their counts in bins, int64[bins]."""
    below = np.cumsum(counts)
    middle = int(np.searchsorted(below, below[-1] / 2))
    return np.float32((2.0 * (middle + 0.5) / len(counts) - 1.0) * spread)


class Part:
    """Some of the users with all their ratings, for items that are learnt from many such parts: see `_spark`.

    The items' equations are sums over the ratings, so each part gives its own, and the sums of all are solved. What is
    here is what `_Work` does with all users at once, by the same kernels.
    """

    def __init__(self, matrix: RatingMatrix, frame: Frame) -> None:
        self.matrix, self.frame = matrix, frame
        self.tag = tag_of(frame.rank)
        self.held = self.nothing = part_of(matrix, np.empty(0, dtype=np.int64))
        self.user_design = new_design(matrix.n_users, frame.rank)
        self.user_level = np.zeros(matrix.n_users, dtype=np.float32)

    def hold_out(self, share: float, seed: np.uint64) -> None:
        """Choose the ratings that are left out while it is learnt when to stop."""
        matrix = self.matrix
        self.held = part_of(matrix, choose_held_out(matrix.indptr, matrix.items, share, seed))

    def solve_users(self, design: NDArray[np.float32], level: NDArray[np.float32], *, all_ratings: bool) -> None:
        """Solve the users, from a flat design and levels of the items."""
        matrix, held = self.matrix, self.nothing if all_ratings else self.held
        _solve_users(
            0, matrix.n_users, matrix.indptr, matrix.items, matrix.values, held.indptr, held.items, held.values,
            design, level, self.frame.user_penalty, self.user_design, self.user_level, self.tag,
        )  # fmt: skip

    def squared_lengths(self) -> float:
        """The sum of the squares of all users' factors."""
        return float(np.square(lengths_of(self.user_design, self.matrix.n_users), dtype=np.float64).sum())

    def squared_error(
        self, design: NDArray[np.float32], level: NDArray[np.float32], low: float, high: float
    ) -> tuple[float, int]:
        """The sum of squared errors on the held-out ratings, predictions clipped to low..high, and their number."""
        held = self.held
        total = _squared_error(
            held.indptr, held.items, held.values, self.user_design, self.user_level, design, level, low, high,
            len(self.tag),
        )  # fmt: skip
        return total, held.nnz

    def equations(
        self, lo: int, hi: int, counts: NDArray[np.int64], square: float, *, all_ratings: bool
    ) -> NDArray[np.float64]:
        """What the users' ratings add to the equations of the items lo..hi, float64[hi - lo, rank + 2, rank + 1].

        counts int64[hi - lo]: the ratings of each item in all parts, without those that are held out. square: the mean
        square of a factor of a user, over the users of all parts.
        """
        frame, held = self.frame, self.nothing if all_ratings else self.held
        systems = np.zeros((hi - lo, frame.rank + 2, frame.rank + 1))
        # How long the users of other parts are is not known here: no item is spared the look at each rating.
        weights = _weights(counts, frame.item_penalty, frame.influence, frame.spread, square, np.inf)
        lengths = lengths_of(self.user_design, self.matrix.n_users) * frame.unit
        for ratings, sign in ((self._by_item, 1.0), (held.transpose(), -1.0)):
            indptr, users, values = ratings
            _add_items(
                lo, hi, indptr, users, values, self.user_design, self.user_level, frame.mean, lengths, weights,
                frame.influence, sign, systems, self.tag,
            )  # fmt: skip
        return systems

    @cached_property
    def _by_item(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        return self.matrix.transpose()

    def gaps(
        self, design: NDArray[np.float32], level: NDArray[np.float32], low: float, high: float
    ) -> NDArray[np.int64]:
        """How many ratings lie how far above what is predicted, clipped to low..high: for `median_gap`."""
        matrix, counts = self.matrix, np.zeros(_BINS, dtype=np.int64)
        _count_gaps(
            0, matrix.n_users, matrix.indptr, matrix.items, matrix.values, self.user_design, self.user_level,
            design, level, low, high, self.frame.spread, counts, len(self.tag),
        )  # fmt: skip
        return counts


def solve_items(
    systems: NDArray[np.float64], counts: NDArray[np.int64], frame: Frame
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Levels float32[i] and factors float32[i, rank] of items, from the sums of `Part.equations`, which are used up.

    counts int64[i]: how many ratings are in each.
    """
    n = len(systems)
    design, level = new_design(n, frame.rank), np.zeros(n, dtype=np.float32)
    _finish_items(systems, counts, 0, frame.mean, frame.item_penalty, design, level)
    return level, factors_of(design, n, frame.rank)


@njit(nogil=True, cache=True)
def _sample_indptr(indptr: NDArray[np.int64], share: float, seed: np.uint64) -> NDArray[np.int64]:
    limit = np.uint64(share * 18446744073709549568.0)
    out = np.zeros_like(indptr)
    for u in range(len(indptr) - 1):
        out[u + 1] = out[u]
        if keyed(seed, u, -1) < limit:
            out[u + 1] += indptr[u + 1] - indptr[u]
    return out


@njit(nogil=True, cache=True)
def _copy_rows(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    out_indptr: NDArray[np.int64],
    out_items: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> None:
    for u in range(len(indptr) - 1):
        for j in range(out_indptr[u + 1] - out_indptr[u]):
            out_items[out_indptr[u] + j] = items[indptr[u] + j]
            out_values[out_indptr[u] + j] = values[indptr[u] + j]


@njit(nogil=True, cache=True)
def _fill_tiles(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    first: int,
    last: int,
    size: int,
    tile_indptr: NDArray[np.int64],
    tile_users: NDArray[np.int32],
    tile_values: NDArray[np.float32],
) -> None:
    """Counting sort of the ratings of each block of `size` users by item; a block fills its own stretch."""
    m = tile_indptr.shape[1] - 1
    place = np.empty(m, dtype=np.int64)
    for block in range(first, last):
        lo = block * size
        hi = min(lo + size, len(indptr) - 1)
        begin, end = indptr[lo], indptr[hi]
        for j in range(begin, end):
            tile_indptr[block, items[j] + 1] += 1
        tile_indptr[block, 0] = begin
        for i in range(m):
            tile_indptr[block, i + 1] += tile_indptr[block, i]
            place[i] = tile_indptr[block, i]
        for u in range(lo, hi):
            for j in range(indptr[u], indptr[u + 1]):
                at = place[items[j]]
                tile_users[at] = u
                tile_values[at] = values[j]
                place[items[j]] = at + 1


@njit(nogil=True, cache=True)
def _finish(
    system: NDArray[np.float64],
    count: int,
    penalty: tuple[float, float, float, float],
    row: int,
    middle: float,
    design: NDArray[np.float32],
    level: NDArray[np.float32],
) -> None:
    """Solves the row's regression, writes its level (relative to `middle`) and factors, and clears the
    system.
    """
    columns = system.shape[1]
    width = (columns + LANES - 1) // LANES * LANES
    if count > 0:
        solve_ridge(system, penalty[0], _factor_penalty(penalty, count))
    else:
        # what is left of held-out ratings that were added and taken out again is rounding
        for a in range(columns):
            system[columns, a] = 0.0
    level[row] = middle + system[columns, 0]
    for a in range(1, columns):
        design[row * width + a] = system[columns, a]
    for a in range(columns + 1):
        for b in range(columns):
            system[a, b] = 0.0


@njit(nogil=True, cache=True)
def _solve_users(
    lo: int,
    hi: int,
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    held_indptr: NDArray[np.int64],
    held_items: NDArray[np.int32],
    held_values: NDArray[np.float32],
    item_design: NDArray[np.float32],
    item_level: NDArray[np.float32],
    penalty: tuple[float, float, float, float],
    user_design: NDArray[np.float32],
    user_level: NDArray[np.float32],
    tag: tuple[np.int8, ...],
) -> None:
    columns = len(tag)
    gram = np.zeros((columns + 1) * ((columns + LANES - 1) // LANES * LANES), dtype=np.float32)
    system = np.zeros((columns + 1, columns))
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        held_start, held_stop = held_indptr[u], held_indptr[u + 1]
        add_rows(gram, item_design, item_level, items, values, start, stop, 1.0, system, tag)
        # held-out ratings are taken out again, which needs no second copy of the matrix
        add_rows(gram, item_design, item_level, held_items, held_values, held_start, held_stop, -1.0, system, tag)
        count = stop - start - (held_stop - held_start)
        _finish(system, count, penalty, u, 0.0, user_design, user_level)


@njit(nogil=True, cache=True)
def _solve_items(
    lo: int,
    hi: int,
    tile_indptr: NDArray[np.int64],
    users: NDArray[np.int32],
    values: NDArray[np.float32],
    held_indptr: NDArray[np.int64],
    held_users: NDArray[np.int32],
    held_values: NDArray[np.float32],
    user_design: NDArray[np.float32],
    user_level: NDArray[np.float32],
    mean: float,
    lengths: NDArray[np.float32],
    square: float,
    item_counts: NDArray[np.int64],
    penalty: tuple[float, float, float, float],
    influence: float,
    spread: float,
    item_design: NDArray[np.float32],
    item_level: NDArray[np.float32],
    tag: tuple[np.int8, ...],
) -> None:
    columns = len(tag)
    systems = np.zeros((hi - lo, columns + 1, columns))
    longest = np.float32(0.0)
    for length in lengths:
        longest = max(longest, length)
    counts = np.empty(hi - lo, dtype=np.int64)
    for i in range(lo, hi):
        counts[i - lo] = item_counts[i] - (held_indptr[i + 1] - held_indptr[i])
    weights = _weights(counts, penalty, influence, spread, square, longest)
    for block in range(tile_indptr.shape[0]):
        _add_items(
            lo, hi, tile_indptr[block], users, values, user_design, user_level, mean, lengths, weights, influence, 1.0,
            systems, tag,
        )  # fmt: skip
    _add_items(
        lo, hi, held_indptr, held_users, held_values, user_design, user_level, mean, lengths, weights, influence, -1.0,
        systems, tag,
    )  # fmt: skip
    _finish_items(systems, counts, lo, mean, penalty, item_design, item_level)


@njit(nogil=True, cache=True)
def _weights(
    counts: NDArray[np.int64],
    penalty: tuple[float, float, float, float],
    influence: float,
    spread: float,
    square: float,
    longest: float | np.floating,
) -> NDArray[np.float64]:
    """The weights of a rating of items with so many ratings, float64[i, 2]: in the level, and in the factors by the
    length of its user's, of which none is longer than `longest`; 0 where all are small.
    """
    weights = np.zeros((len(counts), 2))
    for i in range(len(counts)):
        if counts[i] == 0 or influence == 0.0:
            continue
        in_level = 1.0 / (counts[i] + penalty[0])
        in_factors = 1.0 / (_factor_penalty(penalty, counts[i]) + counts[i] * square)
        if (in_level + in_factors * longest) * spread > influence:
            weights[i, 0], weights[i, 1] = in_level, in_factors
    return weights


@njit(nogil=True, cache=True)
def _add_items(
    lo: int,
    hi: int,
    indptr: NDArray[np.int64],
    users: NDArray[np.int32],
    values: NDArray[np.float32],
    user_design: NDArray[np.float32],
    user_level: NDArray[np.float32],
    mean: float,
    lengths: NDArray[np.float32],
    weights: NDArray[np.float64],
    influence: float,
    sign: float,
    systems: NDArray[np.float64],
    tag: tuple[np.int8, ...],
) -> None:
    """systems += sign * what the ratings by item, of the items lo..hi, add to the items' equations."""
    columns = len(tag)
    gram = np.zeros((columns + 1) * ((columns + LANES - 1) // LANES * LANES), dtype=np.float32)
    most = np.int64(0)
    for i in range(lo, hi):
        if weights[i - lo, 0] > 0.0:
            most = max(most, indptr[i + 1] - indptr[i])
    moved = np.empty(most, dtype=np.float32)
    for i in range(lo, hi):
        start, stop = indptr[i], indptr[i + 1]
        if start == stop:
            continue
        if weights[i - lo, 0] == 0.0:
            add_rows(gram, user_design, user_level, users, values, start, stop, sign, systems[i - lo], tag)
            continue
        own = users[start:stop]
        _move(own, values[start:stop], influence, weights[i - lo], user_level, lengths, mean, moved)
        add_rows(gram, user_design, user_level, own, moved, int64(0), stop - start, sign, systems[i - lo], tag)


@njit(nogil=True, cache=True)
def _finish_items(
    systems: NDArray[np.float64],
    counts: NDArray[np.int64],
    first: int,
    mean: float,
    penalty: tuple[float, float, float, float],
    design: NDArray[np.float32],
    level: NDArray[np.float32],
) -> None:
    """Solves the equations of the items from `first` on, and writes their levels and factors."""
    columns = systems.shape[2]
    for i in range(len(systems)):
        system = systems[i]
        # the item's level is penalized as a distance from the mean of all ratings
        for a in range(columns):
            system[columns, a] -= mean * system[a, 0]
        _finish(system, counts[i], penalty, first + i, mean, design, level)


@njit(nogil=True, cache=True)
def _move(
    users: NDArray[np.int32],
    values: NDArray[np.float32],
    influence: float,
    weights: NDArray[np.float64],
    user_level: NDArray[np.float32],
    lengths: NDArray[np.float32],
    mean: float,
    moved: NDArray[np.float32],
) -> None:
    """The ratings of an item, each moved near enough to its user's mean; moved float32[>= len(values)]."""
    for j in range(len(values)):
        user = users[j]
        middle = mean + user_level[user]
        reach = influence / (weights[0] + weights[1] * lengths[user])
        moved[j] = min(max(np.float64(values[j]), middle - reach), middle + reach)


@njit(nogil=True, cache=True, inline="always")
def _factor_penalty(penalty: tuple[float, float, float, float], count: int) -> float:
    return penalty[1] * np.float64(count) ** penalty[2] * (1.0 + penalty[3] / count)


@njit(nogil=True, cache=True)
def _squared_error(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    user_design: NDArray[np.float32],
    user_level: NDArray[np.float32],
    item_design: NDArray[np.float32],
    item_level: NDArray[np.float32],
    low: float,
    high: float,
    columns: int,
) -> float:
    width = (columns + LANES - 1) // LANES * LANES
    total = 0.0
    for u in range(len(indptr) - 1):
        for j in range(indptr[u], indptr[u + 1]):
            i = np.int64(items[j])
            guess = np.float64(user_level[u]) + item_level[i]
            for a in range(1, columns):
                guess += user_design[u * width + a] * item_design[i * width + a]
            gap = min(max(guess, low), high) - values[j]
            total += gap * gap
    return total


@njit(nogil=True, cache=True)
def _count_gaps(
    first: int,
    last: int,
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    user_design: NDArray[np.float32],
    user_level: NDArray[np.float32],
    item_design: NDArray[np.float32],
    item_level: NDArray[np.float32],
    low: float,
    high: float,
    spread: float,
    counts: NDArray[np.int64],
    columns: int,
) -> None:
    """Counts ratings by how far they lie above what is predicted, from -spread to spread, int64[_BINS]."""
    width = (columns + LANES - 1) // LANES * LANES
    bins = len(counts)
    for u in range(first, last):
        for j in range(indptr[u], indptr[u + 1]):
            i = np.int64(items[j])
            guess = np.float64(user_level[u]) + item_level[i]
            for a in range(1, columns):
                guess += user_design[u * width + a] * item_design[i * width + a]
            gap = values[j] - min(max(guess, low), high)
            place: int = min(max(int((gap / spread + 1.0) * 0.5 * bins), 0), bins - 1)
            counts[place] += 1
