"""Preferences whose item side is differentially private: levels and factors of items from noisy sums over users.

The guarantee: all numbers of the item side together, and what is said of them in `PrivateModel`, are (epsilon, delta)
differentially private, where neighbouring data differ by one user with all ratings, added or removed. Public, so not
covered: the list of items (also those without ratings), the scale and the options. The number of users is not public.
The user side is each user's own ridge regression on the item side, before all levels are moved to the median. It is not
covered: it belongs to its user.

How it is kept: the ratings are read by sums over users alone, to which no user adds a vector longer than 1
(`_bounded_sums`, where the bound is made and proved), and Gaussian noise is added to each (`_accounting`). Everything
else here, also how many sums are taken and how much of the budget each gets, is computed from these noisy sums and from
public numbers. The measurements:

1. users by number of ratings, their means and variances: what the rules below need;
2. raters of each item, and how far above or below their users' means they rate it;
3. with many users, how ratings of two items go together, for the items with the most raters: their strongest directions
   are the first factors (Dwork, Talwar, Thakurta and Zhang 2014);
4. rounds of alternating least squares with statistics of each item (Private ALS: Chien, Jain, Krichene, Rendle, Song,
   Thakurta and Zhang 2021): users are folded in, then each item's sums of x x' and e x correct its vector;
5. how ratings lie about what is predicted: all items' levels are moved to the median, as `als` does.

What is done with noise: statistics of an item are drawn towards those of all items the more noise is in them; an item's
correction is weighed against what earlier rounds have said, by their variances (a Kalman filter over rounds); levels
start from a line in the logarithm of the number of raters; factors that the pairs do not show are filled with what is
known without asking: the items' levels and popularity. A user's length is spent on the items in proportion to
raters^-0.3, and no user counts more than the cap where more noise is won by cutting than is lost (`_cap`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import real, whole
from kgather.udfs.preferences._accounting import LEAST_DELTA, MOST_EPSILON, Charge, Noise, rho_of
from kgather.udfs.preferences._bounded_sums import (
    SENSITIVITY,
    USER_BINS,
    add_gaps,
    add_moments,
    add_pairs,
    add_up,
    add_users,
    clip_to_scale,
)
from kgather.udfs.preferences._gram import new_design, tag_of
from kgather.udfs.preferences.model import Preferences, Progress
from kgather.udfs.ratings.matrix import RatingMatrix

# How the budget is split. Users and median take their shares of all, the rest goes by _plan.
_USERS, _MEDIAN = 0.02, 0.02
_ENOUGH_FOR_FACTORS = 8.0  # signal over noise of a typical item, from which its factors are measured
_ENOUGH_FOR_PAIRS = 28.0  # the same, from which pairs of items are measured
_MANY_FOR_PAIRS = 1000.0  # users sqrt(rho / items of pairs), from which they are for mostly rare items, too
_PAIR_ITEMS = 500

# The model, in units of `deviation`, that of ratings about their user's and item's levels.
_DEVIATION_OF_USERS = 0.93  # of ratings about their user's mean, it is that much
_LEVEL, _FACTOR = 0.45, 0.18  # standard deviations of items' levels and factors, where users' factors have 1
_KNOWN_FACTOR = 0.2  # the same for factors made of levels and popularity
_REACH = 1.8  # a rating counts as at most that far from what is predicted
_LONGEST = 1.6  # users' factors are shortened to that, times sqrt(rank)
_USER_LEVEL = 8.5  # ratings at level zero added to each user, as `als` has it
_FIRST_FACTOR, _LAST_FACTOR = 0.7, 4.0  # the same for factors, while learning and in the end
# x x' against e x: what is off in either is about as bad. Corrections of later rounds are smaller.
_BALANCE_OF_LEVELS, _BALANCE = 0.6, 0.185
_GAIN_POWER = -0.3
_AUDIENCE = 0.3  # by how much items' x x' / raters differ from that of all, relative
_DRIFT = 0.1  # share of an item's variance that a round takes from what was known before

_GAP_BINS = 512
_LEAST_LENGTH = 5.0  # users with few ratings count less in the median
_CHUNK = 1024  # items whose systems are solved at once

Kernel = Callable[[RatingMatrix, int, int, NDArray[np.int64]], object]
"""Adds to the flat int64 array what users lo..hi of the ratings add. It can be pickled, and holds no ratings."""


@dataclass(frozen=True)
class PrivateModel:
    """Preferences with a private item side, and what it cost.

    preferences: the model; its user side is not covered. raters float64[m]: noisy numbers of raters, private, too, and
    not scaled back to what a user was cut by. charges: the measurements; (epsilon, delta) holds for all of them.
    """

    preferences: Preferences
    raters: NDArray[np.float64]
    charges: tuple[Charge, ...]
    epsilon: float
    delta: float

    @property
    def rho(self) -> float:
        """Zero-concentrated differential privacy that was spent, the sum over the charges."""
        return math.fsum(charge.rho for charge in self.charges)


def learn_private(
    matrix: RatingMatrix,
    *,
    scale: tuple[float, float],
    epsilon: float,
    delta: float,
    noise_seed: bytes | int,
    rank: int = 3,
    threads: int = 1,
    progress: Progress | None = None,
) -> PrivateModel:
    """Learns preferences whose item side is (epsilon, delta) differentially private, see the module.

    scale: lowest and highest possible rating; others count as the nearest of these. epsilon: above 0, at most 500.
    delta: from 1e-15 to 0.5; well below 1 / users. noise_seed: secret, bytes (16 random ones or more) or a whole
    number of at most 256 bits. The noise is a function of it and of the options. Whoever knows it knows the noise; and
    two results from the same seed and other ratings differ by their ratings, without noise. So it must be drawn anew,
    or be a keyed hash of the ratings, for each result. rank: number of factors, >= 1; those that the data cannot
    afford are zero. progress: called with steps done and steps at most.

    The result is the same for any number of threads. O(rounds (nnz r^2 + (n + m) r^3)) time, and where pairs are
    measured the sum over users of the squared number of their ratings of at most 500 items; beside the matrix, 8 r^2
    bytes an item and thread, and 2 MB a thread. Raises InputError for an option out of its range.
    """
    low, high = real("the lowest rating", scale[0], -np.inf), real("the highest rating", scale[1], -np.inf)
    if low >= high:
        msg = f"the lowest rating of the scale, {low:g}, must be below the highest, {high:g}."
        raise InputError(msg)
    epsilon = real("epsilon", epsilon, 0, MOST_EPSILON, above=True)
    delta = real("delta", delta, LEAST_DELTA, 0.5)
    rank = whole("rank", rank, 1)
    threads = whole("threads", threads, 1)
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        sums = Sums(
            replace(matrix, values=clip_to_scale(matrix.values, low, high)),
            noise_of(noise_seed, (low, high), epsilon, delta, rank, matrix.n_items),
            threads,
            pool,
        )
        user_level = np.zeros(matrix.n_users, dtype=np.float32)
        user_factors = np.zeros((matrix.n_users, rank), dtype=np.float32)
        users = user_level, user_factors
        found = learn_private_items(sums, matrix.n_items, (low, high), epsilon, delta, rank, users, progress)
        preferences = Preferences(user_level, user_factors, found.level, found.factors)
        return PrivateModel(preferences, found.raters, found.charges, epsilon, delta)
    finally:
        if pool is not None:
            pool.shutdown()


@dataclass(frozen=True)
class PrivateItems:
    """A private item side, and what folds users in.

    level float32[m], factors float32[m, r]: of the items. raters, charges: as in `PrivateModel`. fold: gives each user.
    """

    level: NDArray[np.float32]
    factors: NDArray[np.float32]
    raters: NDArray[np.float64]
    charges: tuple[Charge, ...]
    fold: "Fold"


def noise_of(
    seed: bytes | int, scale: tuple[float, float], epsilon: float, delta: float, rank: int, items: int
) -> Noise:
    """The noise of a model with these options."""
    low, high = scale
    return Noise(seed, f"{low!r} {high!r} {epsilon!r} {delta!r} {rank} {items}")


def learn_private_items(
    sums: "NoisySums",
    items: int,
    scale: tuple[float, float],
    epsilon: float,
    delta: float,
    rank: int,
    users: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    progress: Progress | None = None,
) -> PrivateItems:
    """The item side of `learn_private`, from sums over users alone, wherever their ratings are.

    sums: of ratings within the scale (`clip_to_scale`), with the noise that `noise_of` gives. items: how many. users:
    arrays that take the users' level float32[n] and factors float32[n, rank]; None: they are not kept. The rest as
    there.
    """
    learning = _Learning(sums, items, scale, rank)
    fold = learning.learn(rho_of(epsilon, delta), users, progress)
    factors = np.zeros((items, rank), dtype=np.float32)
    factors[:, : learning.factors.shape[1]] = learning.factors
    return PrivateItems(learning.level.astype(np.float32), factors, learning.raters, tuple(sums.charges), fold)


class NoisySums(ABC):
    """Noisy sums over users, charged for: the one way from the ratings to the item side."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        self.charges: list[Charge] = []

    @abstractmethod
    def add(self, kernel: Kernel, shape: tuple[int, ...], what: str, deviation: float) -> NDArray[np.float64]:
        """The sum over all users of what the kernel adds, float64[shape], which is exact (`_bounded_sums`), and what
        `noise` draws for it by its name.
        """

    def measure(self, what: str, rho: float, kernel: Kernel, shape: tuple[int, ...]) -> tuple[NDArray[Any], float]:
        """What the kernel adds up, float64[shape], with noise that costs rho, and the noise's standard deviation.

        The kernel adds for each user a vector no longer than 1, see `_bounded_sums`. No two measurements have the same
        name.
        """
        if any(what == charge.what for charge in self.charges):
            msg = f"{what} is measured twice; its noise would be the same."
            raise ValueError(msg)
        deviation = SENSITIVITY / math.sqrt(2.0 * rho)
        self.charges.append(Charge(what, SENSITIVITY, deviation, math.prod(shape)))
        return self.add(kernel, shape, what, deviation), deviation


class Sums(NoisySums):
    """Sums over users whose ratings are all on this machine."""

    def __init__(self, matrix: RatingMatrix, noise: Noise, threads: int, pool: ThreadPoolExecutor | None) -> None:
        super().__init__(noise)
        self.matrix, self.threads, self.pool = matrix, threads, pool

    def add(self, kernel: Kernel, shape: tuple[int, ...], what: str, deviation: float) -> NDArray[np.float64]:
        """See `NoisySums.add`."""
        total = add_up(partial(kernel, self.matrix), self.matrix.indptr, shape, self.threads, self.pool)
        total += self.noise.draw(what, deviation, shape)
        return total


@dataclass(frozen=True)
class _OfUsers:
    """Users by number of ratings, see `add_users`."""

    low: float
    high: float

    def __call__(self, matrix: RatingMatrix, lo: int, hi: int, out: NDArray[np.int64]) -> None:
        add_users(lo, hi, matrix.indptr, matrix.values, self.low, self.high, out)


@dataclass(frozen=True)
class Sides:
    """The items' design and levels as the kernels read them, and the number of factors in them."""

    design: NDArray[np.float32]
    level: NDArray[np.float32]
    rank: int


@dataclass(frozen=True)
class _OfMoments:
    """Sums of each item, see `add_moments`. used: columns of x, of which the first is 1."""

    sides: Sides
    penalty: tuple[float, float]
    gains: NDArray[np.float64]
    balance: float
    reach: float
    longest: float
    cap: float
    used: int

    def __call__(self, matrix: RatingMatrix, lo: int, hi: int, out: NDArray[np.int64]) -> None:
        sides = self.sides
        add_moments(
            lo, hi, matrix.indptr, matrix.items, matrix.values, sides.design, sides.level, self.penalty, self.gains,
            self.balance, self.reach, self.longest, self.cap, out, tag_of(sides.rank), tag_of(self.used - 1),
        )  # fmt: skip


@dataclass(frozen=True)
class _OfPairs:
    """Products of two items, see `add_pairs`."""

    level: NDArray[np.float32]
    places: NDArray[np.int32]
    q: int
    gains: NDArray[np.float64]
    reach: float

    def __call__(self, matrix: RatingMatrix, lo: int, hi: int, out: NDArray[np.int64]) -> None:
        add_pairs(
            lo, hi, matrix.indptr, matrix.items, matrix.values, self.level, _USER_LEVEL, self.places, self.q,
            self.gains, self.reach, out,
        )  # fmt: skip


@dataclass(frozen=True)
class Fold:
    """Folds users in: each user's own ridge regression on the items, which is the user side of the model.

    rank: factors of the model, of which the items have the first ones. kept: arrays of users that are filled on the
    way; None: they are not.
    """

    sides: Sides
    penalty: tuple[float, float]
    scale: tuple[float, float]
    spread: float
    rank: int
    kept: tuple[NDArray[np.float32], NDArray[np.float32]] | None

    def __call__(self, matrix: RatingMatrix, lo: int, hi: int, out: NDArray[np.int64]) -> None:
        """Adds the users' gaps between ratings and predictions, see `add_gaps`."""
        level, factors = self.kept or self._nobody(matrix.n_users)
        add_gaps(
            lo, hi, matrix.indptr, matrix.items, matrix.values, self.sides.design, self.sides.level, self.penalty,
            *self.scale, self.spread, _LEAST_LENGTH, out, level, factors, tag_of(self.sides.rank),
        )  # fmt: skip

    def users(self, matrix: RatingMatrix) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Levels float32[n] and factors float32[n, rank] of the users of some ratings, which may be off the scale."""
        matrix = replace(matrix, values=clip_to_scale(matrix.values, *self.scale))
        kept = self._nobody(matrix.n_users)
        replace(self, kept=kept)(matrix, 0, matrix.n_users, np.zeros(_GAP_BINS, dtype=np.int64))
        return kept

    def _nobody(self, users: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros(users, dtype=np.float32), np.zeros((users, self.rank), dtype=np.float32)


@dataclass(frozen=True)
class Plan:
    """Shares of the budget. factors: rounds measure factors, too, not only levels."""

    users: float
    levels: float
    pairs: float
    rounds: tuple[float, ...]
    factors: bool
    median: float


def plan(users: float, ratings: float, items: int, rho: float) -> Plan:
    """Which measurements are made, by (noisy) numbers of users and ratings, the number of items and rho.

    A typical item has ratings / items raters. Each counts 1 / sqrt(ratings / users) where a user's length is 1, and the
    noise is 1 / sqrt(2 rho): the signal is sqrt(users ratings rho) / items of the noise, up to a constant.
    """
    left = 1.0 - _USERS - _MEDIAN
    signal = math.sqrt(users * ratings * rho) / items
    factors = signal >= _ENOUGH_FOR_FACTORS
    pairs = 0.0
    if not factors:
        levels, rounds = 1.0 / 3.0, 2
    elif items > 1 and (
        signal >= _ENOUGH_FOR_PAIRS or users * math.sqrt(rho / min(items, _PAIR_ITEMS)) >= _MANY_FOR_PAIRS
    ):
        levels, pairs, rounds = 0.11, 0.27, 3
    else:
        levels, rounds = 0.25, 3
    each = (1.0 - levels - pairs) / rounds * left
    return Plan(_USERS, levels * left, pairs * left, (each,) * rounds, factors, _MEDIAN)


class _Learning:
    """The item side as it is learnt. Reads the ratings by `sums` alone, but for the folding of users in the end."""

    def __init__(self, sums: NoisySums, items: int, scale: tuple[float, float], rank: int) -> None:
        self.sums, self.items, self.rank = sums, items, rank
        self.low, self.high = scale
        self.half, self.middle = (scale[1] - scale[0]) / 2.0, (scale[1] + scale[0]) / 2.0

    def learn(
        self,
        rho: float,
        users: tuple[NDArray[np.float32], NDArray[np.float32]] | None,
        progress: Progress | None,
    ) -> Fold:
        """All measurements, and what folds users in."""
        self.measure_users(_USERS * rho)
        steps = plan(self.n, self.nnz, self.items, rho)
        most = len(steps.rounds) + 4
        done = 0

        def tell() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(min(done, most), most)

        tell()
        self.measure_levels(steps.levels * rho)
        tell()
        if steps.pairs:
            self.measure_pairs(steps.pairs * rho)
        tell()
        self.fill_factors()
        self.start_variances()
        for number, share in enumerate(steps.rounds, 1):
            self.measure_items(number, share * rho, steps.factors)
            tell()
        fold = self.fold_users(steps.median * rho, users)
        tell()
        return fold

    # What is known of users -----------------------------------------------------------------------------------------

    def measure_users(self, rho: float) -> None:
        """Numbers of users and ratings, the mean and the deviation of ratings, each at least something."""
        total, noise = self.sums.measure(
            "users by number of ratings, means and variances", rho, _OfUsers(self.low, self.high), (USER_BINS + 2,)
        )
        users, noise = total[:USER_BINS] / math.sqrt(0.5), noise / math.sqrt(0.5)
        size = np.minimum(2.0 ** ((np.arange(USER_BINS) + 0.5) / 2.0), self.items)
        possible = np.arange(USER_BINS) <= 2.0 * math.log2(self.items)
        self.users_of_size = np.where(possible & (users > 2.0 * noise), users, 0.0)
        if not self.users_of_size.any():
            self.users_of_size[0] = 1.0
        self.size = size
        self.n = float(self.users_of_size.sum())
        self.nnz = float(self.users_of_size @ size)
        # drawn to the middle of the scale, and to half its half, where the noise is more than the users
        spread = 2.0 * noise**2 / self.n
        mean = 2.0 * total[USER_BINS] / (self.n + spread / 0.3**2)
        square = (2.0 * total[USER_BINS + 1] + 0.25 * spread / 0.1**2) / (self.n + spread / 0.1**2)
        self.mean = self.middle + self.half * min(max(mean, -0.9), 0.9)
        self.deviation = self.half * math.sqrt(min(max(square, 0.02), 0.5)) * _DEVIATION_OF_USERS

    def _cap(self, rho: float, length: float, item: float, raters: float) -> tuple[float, float, float]:
        """The cap of users' weights with the least variance, and the means of weights and of their squares over that.

        length: mean squared length that a rating adds. A user with c ratings has the weight
        h = min(cap, 1 / sqrt(c length)); an item's estimate has the variance
        (item / (2 rho) + raters deviation^2 E h^2) / (E h)^2, means over ratings.
        """
        ratings = self.users_of_size * self.size
        ratings = ratings / ratings.sum()
        weight = 1.0 / np.sqrt(self.size * length)
        caps = weight[self.users_of_size > 0.0]
        capped = np.minimum(caps[:, None], weight)
        mean, square = capped @ ratings, np.square(capped) @ ratings
        variance = (item / (2.0 * rho) + raters * self.deviation**2 * square) / mean**2
        best = int(np.argmin(variance))
        return float(caps[best]), float(mean[best]), float(square[best] / mean[best])

    def _gains(self) -> NDArray[np.float64]:
        """Weights of items within a user, one on average over ratings."""
        gains = self.raters_at_least**_GAIN_POWER
        return gains / math.sqrt(float((self.raters_at_least * gains**2).sum() / self.raters_at_least.sum()))

    # Items ----------------------------------------------------------------------------------------------------------

    def measure_levels(self, rho: float) -> None:
        """Raters and levels of items."""
        m, deviation = self.items, self.deviation
        self.level, self.factors = np.full(m, self.mean), np.zeros((m, 0))
        balance = _BALANCE_OF_LEVELS * deviation
        # ratings are mostly of items that have more raters than others
        typical = 4.0 * self.nnz / m
        cap, mean, weight = self._cap(rho, balance**2 + deviation**2, 1.0 / typical**2, 1.0 / typical)
        total, noise = self.sums.measure(
            "raters and levels of items", rho,
            _OfMoments(self._sides(), (_USER_LEVEL, 0.0), np.ones(m), balance, _REACH * deviation, 1.0, cap, 1),
            (m, 2),
        )  # fmt: skip
        raters, self.raters_noise = total[:, 0] / balance / mean, noise / balance / mean
        self.raters = raters
        self.raters_at_least = np.maximum(raters, self.raters_noise + 1.0)
        # in ratings that count one each
        count = np.maximum(total[:, 0] / balance, 0.5 * noise / balance) / weight
        above, noise = total[:, 1] / weight, noise / weight
        prior = (_LEVEL * deviation) ** 2
        line = self._line(above / count, prior + (noise / count) ** 2 + deviation**2 / count, prior)
        system = count + deviation**2 / prior
        gain = prior / (prior + (noise / system) ** 2)
        self.level_before = self.level + line
        self.level = self.level_before + gain * (above - count * line) / system
        self.level_variance = (1.0 - gain) * prior

    def _line(self, level: NDArray[np.float64], variance: NDArray[np.float64], prior: float) -> NDArray[np.float64]:
        """Levels that are expected by the number of raters: a weighted line in its logarithm."""
        popularity = np.log(self.raters_at_least)
        popularity = popularity - np.average(popularity, weights=1.0 / variance)
        slope = float((popularity * level / variance).sum() / ((popularity**2 / variance).sum() + 1.0 / prior))
        return np.average(level, weights=1.0 / variance) + slope * popularity

    def measure_pairs(self, rho: float) -> None:
        """First factors: strong directions of the products of ratings of two items, as far as noise lets them be seen.

        Of q items, noise alone has eigenvalues up to 2 sigma sqrt(q). An eigenvalue t shows as t + sigma^2 q / t, and
        of its direction the share 1 - sigma^2 q / t^2 (Benaych-Georges and Nadakuditi 2011).
        """
        m, q = self.items, min(self.items, _PAIR_ITEMS)
        chosen = np.sort(np.argsort(-self.raters, kind="stable")[:q])
        places = np.full(m, -1, dtype=np.int32)
        places[chosen] = np.arange(q)
        gains = self._gains()
        level = self.level.astype(np.float32)
        total, noise = self.sums.measure(
            "pairs of items", rho,
            _OfPairs(level, places, q, gains, _REACH * self.deviation),
            (q, q),
        )  # fmt: skip
        total = np.tril(total, -1)
        values, vectors = np.linalg.eigh(total + total.T)
        values, vectors = values[::-1][: self.rank], vectors[:, ::-1][:, : self.rank]
        edge = 2.0 * noise * math.sqrt(q)
        seen = values > 1.05 * edge
        values, vectors = values[seen], vectors[:, seen]
        values = (values + np.sqrt(values**2 - edge**2)) / 2.0
        share = 1.0 - (edge / 2.0 / values) ** 2
        # a user of c ratings has about the weight sqrt(2) / (c deviation^2); two items of a and b raters have about
        # a b / ratings pairs times c
        lengths = np.sqrt(values * share * self.deviation**2 * self.nnz / math.sqrt(2.0))
        self.factors = np.zeros((m, len(values)))
        self.factors[chosen] = vectors * lengths / (gains * self.raters_at_least)[chosen, None]
        limit = 2.0 * self.deviation
        self.factors = np.clip(self.factors, -limit, limit)

    def fill_factors(self) -> None:
        """Fills factors that are not learnt with the items' levels and popularity, which are known already.

        A user then has a slope in them: who likes what is popular, and who uses more of the scale than others.
        """
        learnt = self.factors.shape[1]
        weights = self.raters_at_least / self.raters_at_least.sum()
        popularity = np.log(self.raters_at_least)
        known: list[NDArray[np.float64]] = []
        unit = _KNOWN_FACTOR * self.deviation
        for column, most in ((popularity, 2.0 * unit), (self.level, 1.0)):
            column = column - weights @ column
            for other in known:
                column = column - other * (weights @ (other * column)) / max(weights @ other**2, 1e-300)
            spread = math.sqrt(float(weights @ column**2))
            known.append(column * (min(unit / spread, most) if spread > 0.0 else 0.0))
        self.learnt = learnt
        self.factors = np.column_stack([self.factors, *known[: self.rank - learnt]])
        self.factors_before = self.factors.copy()
        self.factors_before[:, :learnt] = 0.0

    def start_variances(self) -> None:
        """What noise may have done to the items' vectors so far, float64[m, c, c]; all of it in the factors."""
        variances = np.full(self.factors.shape[1] + 1, (_FACTOR * self.deviation) ** 2)
        self.variance = np.tile(np.diag(variances), (self.items, 1, 1))
        self.variance[:, 0, 0] = self.level_variance + _DRIFT * (_LEVEL * self.deviation) ** 2

    def measure_items(self, number: int, rho: float, with_factors: bool) -> None:
        """A round: users are folded in, items corrected by their own sums."""
        m, deviation = self.items, self.deviation
        used = self.factors.shape[1] + 1 if with_factors else 1
        pairs = used * (used + 1) // 2
        balance = (_BALANCE if used > 1 else _BALANCE_OF_LEVELS / 2.0) * deviation
        gains = self._gains()
        share = self.raters_at_least / self.raters_at_least.sum()
        length = (0.6 * balance**2 * used + deviation**2) * used
        cap, mean, weight = self._cap(
            rho, length, float((share / (gains * self.raters_at_least) ** 2).sum()) / used,
            float((share / self.raters_at_least).sum()),
        )  # fmt: skip
        sides = self._sides()
        total, noise = self.sums.measure(
            f"{'vectors' if used > 1 else 'levels'} of items, round {number}", rho,
            _OfMoments(
                sides, (_USER_LEVEL, _FIRST_FACTOR * deviation**2), gains, balance, _REACH * deviation,
                _LONGEST * math.sqrt(max(sides.rank, 1)), cap, used,
            ),
            (m, pairs + used),
        )  # fmt: skip
        rows, columns = np.tril_indices(used)
        square_noise = noise / balance
        audience = np.zeros((used, used))
        audience[rows, columns] = audience[columns, rows] = total[:, :pairs].sum(axis=0) / balance
        audience = _semidefinite(audience[None] / max(audience[0, 0], square_noise), 0.02)[0]
        # raters in this round's weights: known from before, and measured again
        before = np.maximum(self.raters, 0.0) * gains * mean
        before_variance = (self.raters_noise * gains * mean) ** 2 + (0.1 * before) ** 2
        again = before_variance / (before_variance + square_noise**2)
        raters = before + again * (total[:, 0] / balance - before)
        raters = np.maximum(raters, 0.3 * np.sqrt(again) * square_noise)
        for lo in range(0, m, _CHUNK):
            here = slice(lo, min(lo + _CHUNK, m))
            squares = np.zeros((len(raters[here]), used, used))
            squares[:, rows, columns] = squares[:, columns, rows] = total[here, :pairs] / balance
            unit = gains[here] * weight
            squares = _squares(squares, raters[here], audience, square_noise)
            self._correct(here, squares / unit[:, None, None], total[here, pairs:] / unit[:, None], noise / unit)
        limit = 2.0 * self.half
        self.level = np.clip(self.level, self.low, self.high)
        if used > 1:
            self.factors = np.clip(self.factors, -limit, limit)
        else:
            self.factors = self.factors[:, : self.learnt]
            self.fill_factors()

    def _correct(
        self, here: slice, squares: NDArray[np.float64], gaps: NDArray[np.float64], noise: NDArray[np.float64]
    ) -> None:
        """Newton's step of the items' ridge regressions, weighed against what was known by the noise's variances.

        squares float64[k, c, c], gaps float64[k, c]: sums of x x' and e x over ratings that count one each; noise
        float64[k]: standard deviation of the latter.
        """
        used = squares.shape[1]
        prior = np.full(used, (_FACTOR * self.deviation) ** 2)
        prior[0] = (_LEVEL * self.deviation) ** 2
        penalty = self.deviation**2 / prior
        vectors = np.column_stack([self.level[here], self.factors[here, : used - 1]])
        before = np.column_stack([self.level_before[here], self.factors_before[here, : used - 1]])
        inverse = np.linalg.inv(squares + np.diag(penalty))
        step = np.einsum("kij,kj->ki", inverse, gaps - (vectors - before) * penalty)
        known = self.variance[here, :used, :used]
        told = np.einsum("kij,kjl->kil", inverse, inverse) * (noise**2)[:, None, None]
        gain = np.einsum("kij,kjl->kil", known, np.linalg.inv(known + told))
        vectors += np.einsum("kij,kj->ki", gain, step)
        left = known - np.einsum("kij,kjl->kil", gain, known)
        self.variance[here, :used, :used] = (left + left.transpose(0, 2, 1)) / 2.0 + _DRIFT * np.diag(prior)
        self.level[here] = vectors[:, 0]
        self.factors[here, : used - 1] = vectors[:, 1:]

    def fold_users(self, rho: float, users: tuple[NDArray[np.float32], NDArray[np.float32]] | None) -> Fold:
        """What folds users in; all items' levels are moved then, so that half of the ratings lie above what is
        predicted. Factors that were not learnt are zero.
        """
        penalty = (_USER_LEVEL, _LAST_FACTOR * self.deviation**2)
        fold = Fold(self._sides(), penalty, (self.low, self.high), self.half, self.rank, users)
        total, _ = self.sums.measure("gaps between ratings and predictions", rho, fold, (_GAP_BINS,))
        below = np.cumsum(total)
        if below[-1] > 0.0:
            middle = int(np.searchsorted(np.maximum.accumulate(below), below[-1] / 2.0))
            move = (2.0 * (middle + 0.5) / _GAP_BINS - 1.0) * self.half
            limit = 0.3 * self.half
            self.level = np.clip(self.level + min(max(move, -limit), limit), self.low, self.high)
        return replace(fold, kept=None)

    def _sides(self) -> Sides:
        """The items as they are now."""
        rank = self.factors.shape[1]
        design = new_design(self.items, rank)
        design.reshape(self.items + 1, -1)[:-1, 1 : rank + 1] = self.factors
        return Sides(design, self.level.astype(np.float32), rank)


def _squares(
    squares: NDArray[np.float64], raters: NDArray[np.float64], audience: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """Items' sums of x x', drawn to those of all items by the noise in them, and positive definite.

    squares float64[k, c, c] noisy, raters float64[k], audience float64[c, c]: x x' of a rater on average.
    """
    own = (_AUDIENCE * raters) ** 2
    own = own / (own + noise**2)
    drawn = raters[:, None, None] * audience + own[:, None, None] * (squares - squares[:, :1, :1] * audience)
    if len(audience) == 1:
        return drawn
    return _semidefinite(drawn, 0.1 * raters * float(np.linalg.eigvalsh(audience)[0]))


def _semidefinite(matrices: NDArray[np.float64], least: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Symmetric float64[k, c, c] with their eigenvalues raised to `least` (of all, or float64[k] of each)."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, np.reshape(least, (-1, 1)))
    return np.einsum("kij,kj,klj->kil", vectors, values, vectors)
