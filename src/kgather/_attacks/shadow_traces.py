"""How far the items of a release lean to where a person pulls them, by what shadow releases taught of items.

An item's place varies from release to release, with whoever is in. How a rating moves it is known from how items are
learnt: by what the rating leaves unexplained, over the number of raters. The two together give the best linear test of
whether a person is in.
"""

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import in_threads
from kgather._attacks.shadows import Shadowed
from kgather._attacks.telling import People, variance_of
from kgather._evaluation.candidates import ShownVectors
from kgather.udfs.attacking._shadow_traces import fit_people, trace_over_releases
from kgather.udfs.preferences.item_side import RARE_REACH
from kgather.udfs.preferences.options import AlsOptions, options_of

TRACES = ("traced", "traced_factors")
"""By what the average user is shown of items, and by their factors."""

_COMMON = 10  # directions in which many items move together from release to release, which say nothing of a person
_FLOOR = 1e-6  # of an item's variance over releases, in units of the ratings
_TURNS = 3
_LEVELS = 0.2  # of the variance of ratings lies between people's levels
_STIFF = 10.0  # ratings that hold an item's factors where they are, where the solver does not say


@dataclass(frozen=True)
class ItemsOf:
    """The items of one release. means float64[m]: what the average user is shown, NaN where the item is not. factors
    float64[m, r]: for users whose places have variance 1. spread: the variance of groups' places, on average.
    """

    means: NDArray[np.float64]
    factors: NDArray[np.float64]
    spread: float

    @classmethod
    def of(cls, shown: ShownVectors, means: NDArray[np.float64]) -> Self:
        """O(m r^2)."""
        shares = shown.sizes / shown.sizes.sum()
        places = shown.group_factors.astype(np.float64)
        gaps = places - shares @ places
        variances, turned = np.linalg.eigh((gaps * shares[:, None]).T @ gaps)
        root = (turned * np.sqrt(np.maximum(variances, 0.0))) @ turned.T
        factors = np.where(np.isnan(means)[:, None], 0.0, shown.item_factors)
        return cls(means, factors @ root, float(np.maximum(variances, 0.0).mean()))


@dataclass(frozen=True)
class Seen:
    """Items over all shadow releases. shifts float64[m, s]: means less what is usual; turned float64[r, m, s]: factors
    less theirs, turned so that releases are alike. usual float64[m], axes float64[m, r]: what is usual. variance
    float64[m], spreads float64[r, m]: of shifts and turned, over the releases learnt from. common float64[m, c]:
    directions in which items move together, in standard deviations. times int64[m]: how often an item was shown.
    spread: as in `ItemsOf`, on average.
    """

    shifts: NDArray[np.float64]
    turned: NDArray[np.float64]
    usual: NDArray[np.float64]
    axes: NDArray[np.float64]
    variance: NDArray[np.float64]
    spreads: NDArray[np.float64]
    common: NDArray[np.float64]
    times: NDArray[np.int64]
    spread: float

    @classmethod
    def of(cls, releases: list[ItemsOf], learnt: int) -> Self:
        """learnt: from how many releases, the first, the attacker knows what is usual. O(m s^2)."""
        means = np.stack([one.means for one in releases], axis=1)
        shown = ~np.isnan(means)
        times = shown[:, :learnt].sum(axis=1)
        usual = np.where(shown, means, 0.0)[:, :learnt].sum(axis=1) / np.maximum(times, 1)
        shifts = np.where(shown & (times > 0)[:, None], means - usual[:, None], 0.0)
        variance = (shifts[:, :learnt] ** 2).sum(axis=1) / np.maximum(times - 1, 1) + _FLOOR
        left, _, _ = np.linalg.svd(shifts[:, :learnt] / np.sqrt(variance)[:, None], full_matrices=False)
        turned = _turned([one.factors for one in releases], learnt)
        axes = turned[:, :, :learnt].mean(axis=2)
        turned -= axes[:, :, None]
        return cls(
            shifts,
            turned,
            usual,
            axes.T.copy(),
            variance,
            (turned[:, :, :learnt] ** 2).mean(axis=2) + _FLOOR,
            left[:, : min(_COMMON, learnt // 4)],
            times,
            float(np.mean([one.spread for one in releases[:learnt]])),
        )


def _turned(factors: list[NDArray[np.float64]], learnt: int) -> NDArray[np.float64]:
    """Factors float64[m, r] each, turned to lie on each other as well as can be (Procrustes), float64[r, m, s]."""
    middle = factors[0]
    turned = factors
    for _ in range(_TURNS):
        turned = []
        for one in factors:
            left, _, right = np.linalg.svd(one.T @ middle)
            turned.append(one @ (left @ right))
        middle = np.mean(turned[:learnt], axis=0)
    return np.stack([one.T for one in turned], axis=2)


def trace(shadowed: Shadowed, people: NDArray[np.int64], seen: Seen, threads: int | None) -> NDArray[np.float64]:
    """The `TRACES` of people int64[p] in each release, float64[s, p, 2]. O(ratings x releases x r)."""
    everything = seen.times > 1
    own = People.rows(shadowed.ratings, people, everything, np.zeros(shadowed.ratings.n_users, dtype=np.int64))
    places, gaps = _fit(own, seen, threads)
    raters = np.bincount(shadowed.ratings.items, minlength=len(seen.usual))[own.items] / 2.0
    share = _own_share(shadowed, raters)
    in_level = share * _held(shadowed, gaps / (raters + 1.0))
    deviations = np.sqrt(seen.variance)
    shifts = seen.shifts / deviations[:, None]
    shifts -= seen.common @ (seen.common.T @ shifts)
    found = [_trace(own, in_level / deviations[own.items], shifts, threads)]
    owner = np.repeat(np.arange(len(own)), np.diff(own.indptr))
    # Items' factors are held harder than their levels.
    in_factors = in_level * (raters + 1.0) / (raters + _stiffness(shadowed, raters, seen.spread))
    total = np.zeros_like(found[0])
    for factor, (turned, variance) in enumerate(zip(seen.turned, seen.spreads, strict=True)):
        total += _trace(own, in_factors * places[owner, factor] / variance[own.items], turned, threads)
    return np.stack([found[0].T, total.T], axis=2)


def _trace(
    own: People, pulls: NDArray[np.float64], shifts: NDArray[np.float64], threads: int | None
) -> NDArray[np.float64]:
    """float64[p, s]."""
    out = np.zeros((len(own), shifts.shape[1]))
    shifts = np.ascontiguousarray(shifts)
    in_threads(partial(trace_over_releases, own.indptr, own.items, pulls, shifts, out), len(own), threads)
    return out


def _fit(own: People, seen: Seen, threads: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """People's places among the items' factors, float64[p, r], and what is left of their ratings, float64[ratings]."""
    variance = variance_of(own, seen.usual)
    places, gaps = np.zeros((len(own), seen.axes.shape[1])), np.zeros(len(own.items))
    ridge = np.full(seen.axes.shape[1] + 1, (1.0 - _LEVELS) * variance)
    ridge[0] = (1.0 - _LEVELS) / _LEVELS
    look = partial(fit_people, own.indptr, own.items, own.ratings, seen.usual, seen.axes, ridge, places, gaps)
    in_threads(look, len(own), threads)
    return places, gaps


def _own_share(shadowed: Shadowed, raters: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of an item's vector is its own, with so many raters in a release."""
    least = shadowed.settings.least_raters
    return np.clip((raters - least) / least, 0.0, 1.0)


def _als(shadowed: Shadowed) -> AlsOptions | None:
    settings = shadowed.settings
    found = options_of(settings.solver, settings.solver_options)
    return found if isinstance(found, AlsOptions) else None


def _held(shadowed: Shadowed, moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far ratings move the level of their items, where the solver does not let them move it farther."""
    options = _als(shadowed)
    if options is None or options.influence == 0:
        return moved
    most = min(options.influence, RARE_REACH) * float(np.std(shadowed.ratings.values, dtype=np.float64))
    return np.clip(moved, -most, most)


def _stiffness(shadowed: Shadowed, raters: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """How many ratings weigh as much as what holds an item's factors, with so many raters; spread: of users' places."""
    options = _als(shadowed)
    if options is None or spread <= 0:
        return np.full(len(raters), _STIFF)
    deviation = float(np.std(shadowed.ratings.values, dtype=np.float64))
    counts = np.maximum(raters, 1.0)
    penalty = options.regularization * deviation * counts**options.count_power
    return penalty * (1.0 + options.rare_regularization / counts) / spread
