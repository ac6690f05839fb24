"""The attack `existence`: what an item's released vector gives away about one of its raters, all other ratings known.

The attacker knows every rating but one, the seed and the settings, so that only the noise is left: the item's vector is
computed with and without the rating, and the best test between the two is a likelihood ratio. The same goes for the
rating's sign, above or below what its rater gives on average. The level that rare items share is seen in all of them.

Source: that of one more person in aggregates when everybody else is known is the attacker of differential privacy
(Dwork, McSherry, Nissim and Smith 2006); link existence is section 3.1 of Chang et al. 2010.
"""

import math
import os
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.results import AttackResult
from kgather._attacks.roc import auc, normal_auc
from kgather._attacks.shadows import Shadowed
from kgather._errors import InputError
from kgather._release.digits import shown_digits
from kgather._steps.learning import learn_apart_as
from kgather.udfs.preferences.item_side import RARE_NOISE, ItemSide
from kgather.udfs.ratings._held_out import part_of, rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

PAIRS = 60
"""Of an item and a rater, in each class of items."""

_FEWEST = 8
_RATINGS = 400_000_000  # that are learnt from, all together
_DRAWS = 2000  # of the noise, for each pair


@dataclass(frozen=True)
class Class:
    """Items with `first` to `last` raters; None: or more."""

    name: str
    first: int
    last: int | None


def classes_of(threshold: int) -> tuple[Class, ...]:
    """Items below a number of raters, with that number, a little above, up to twice as many, and with more."""
    t = threshold
    return (
        Class("below", 1, t - 1),
        Class("at", t, t),
        Class("one_more", t + 1, t + 1),
        Class("few_more", t + 2, t + 5),
        Class("to_twice", t + 6, 2 * t),
        Class("above", 2 * t + 1, None),
    )


@dataclass(frozen=True)
class Sign:
    """Of the best test of whether a rating is above its rater's mean: middle float64[p], what the logarithm of its
    likelihood ratio is on average over the noise, variance float64[p], of this, and above bool[p], what is right.
    """

    middle: NDArray[np.float64]
    variance: NDArray[np.float64]
    above: NDArray[np.bool_]

    @property
    def auc(self) -> float:
        """How often a rating that is above has the larger ratio than one that is below; NaN where a kind lacks."""
        up, down = self.above, ~self.above
        if not up.any() or not down.any():
            return math.nan
        apart = self.middle[up][:, None] - self.middle[down]
        spread = np.sqrt(self.variance[up][:, None] + self.variance[down])
        return float(np.mean([normal_auc(math.sqrt(2) * one) for one in (apart / np.maximum(spread, 1e-300)).ravel()]))


@dataclass(frozen=True)
class Existing:
    """Of the best test of whether somebody rated an item: the logarithm of its likelihood ratio where so and where not,
    float64[p, draws] each.
    """

    rated: NDArray[np.float64]
    unrated: NDArray[np.float64]

    @property
    def aucs(self) -> NDArray[np.float64]:
        """Of each pair of an item and a rater, float64[p]."""
        return np.array([auc(one, other) for one, other in zip(self.rated, self.unrated, strict=True)])


@dataclass(frozen=True)
class Tested:
    """What was found in each class of items, by name; classes without items are not there."""

    threshold: int
    existing: dict[str, Existing]
    signs: dict[str, Sign]


def existence(attacked: Attacked, *, pairs: int = PAIRS, seed: int = 0, threads: int | None = None) -> AttackResult:
    """Tell from the vectors of items whether one of their raters rated them, and how, all other ratings known.

    Up to `pairs` pairs of an item and a rater are drawn in each class of items, fewer where the data are large, but 8.
    details: `existence_CLASS`, the mean AUC over pairs of telling n raters from n - 1, and `sign_CLASS`, the AUC of
    telling ratings above their rater's mean from those below, for items with fewer raters than the threshold (`below`),
    that many (`at`), `one_more`, two to five more (`few_more`), up to twice as many (`to_twice`) and more (`above`).
    `existence_auc`: the largest from the threshold to twice as many; `sign_auc`: the largest up to twice as many; where
    no item has so few raters, both are those of the others. `pairs_CLASS`, and `threshold`: min_raters, or k where
    every item has a vector of its own.

    Raises InputError where the release cannot be made in memory, or no ratings can be told apart.
    """
    shadowed = Shadowed.of(attacked.evidence, seed)
    tested = tell(shadowed, threads, pairs)
    links = {name: float(found.aucs.mean()) for name, found in tested.existing.items()}
    signs = {name: found.auc for name, found in tested.signs.items() if not math.isnan(found.auc)}
    near = [value for name, value in links.items() if name not in ("below", "above")] or [*links.values()]
    close = [value for name, value in signs.items() if name != "above"] or [*signs.values()]
    if not near or not close:
        msg = "the attack existence needs items that some like and some do not, from people who rate differently."
        raise InputError(msg)
    return AttackResult(
        attack="existence",
        knowledge="all other ratings",
        targets=sum(len(found.aucs) for found in tested.existing.values()),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        details={
            "existence_auc": max(near),
            "sign_auc": max(close),
            **{f"existence_{name}": value for name, value in links.items()},
            **{f"sign_{name}": value for name, value in signs.items()},
            **{f"pairs_{name}": float(len(found.above)) for name, found in tested.signs.items()},
            "threshold": float(tested.threshold),
        },
    )


def tell(shadowed: Shadowed, threads: int | None = None, pairs: int = PAIRS) -> Tested:
    """Draw pairs, and learn with them as they are, without them, and with what their raters give to what they like and
    to what they do not like. One pair of each class is changed at a time, those below the threshold alone.
    """
    settings = shadowed.settings
    threshold = settings.least_raters if settings.least_raters > 1 else settings.k
    rounds = int(np.clip(_RATINGS // (6 * max(shadowed.ratings.nnz, 1)), _FEWEST, pairs))
    drawn = _draw(shadowed, classes_of(threshold), rounds)
    workers = threads or os.cpu_count() or 1

    def learnt(ratings: RatingMatrix) -> ItemSide:
        return learn_apart_as(ratings, settings, scale=shadowed.scale, threads=workers)[1]

    noise = _Noise.of(shadowed)
    generator = shadowed.generator("noise")
    as_it_is = learnt(shadowed.ratings)
    links: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    signs: dict[str, list[tuple[float, float, bool]]] = {}
    for pairs_of_round in drawn:
        without, low, high = (learnt(ratings) for ratings in _changed(shadowed.ratings, pairs_of_round))
        for name, pair in pairs_of_round.items():
            if as_it_is.raters[pair.item] > 1:
                ratios = noise.link(without, as_it_is, pair.item, generator)
                links.setdefault(name, []).append(ratios)
            signs.setdefault(name, []).append((*noise.sign(low, high, as_it_is, pair.item), pair.above))
    return Tested(
        threshold,
        {
            name: Existing(np.stack([one for one, _ in found]), np.stack([other for _, other in found]))
            for name, found in links.items()
        },
        {name: Sign(*(np.array(column) for column in zip(*found, strict=True))) for name, found in signs.items()},
    )


@dataclass(frozen=True)
class _Pair:
    """An entry of the ratings, its item, what its rater gives on average to what is below and above the mean of the
    rater's other ratings, and whether the rating is above it.
    """

    entry: int
    user: int
    item: int
    low: float
    high: float
    above: bool


def _draw(shadowed: Shadowed, classes: tuple[Class, ...], rounds: int) -> list[dict[str, _Pair]]:
    """Which pairs to change at a time, by name: for each round those below the threshold, and one of each other class;
    items and raters of a round are all different.
    """
    ratings, generator = shadowed.ratings, shadowed.generator("pairs")
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    candidates = {}
    for one in classes:
        own = counts[ratings.items]
        entries = np.flatnonzero((own >= one.first) & (own <= (own if one.last is None else one.last)))
        if len(entries):
            candidates[one.name] = _spread_out(generator.permutation(entries), ratings.items)
    at = dict.fromkeys(candidates, 0)
    found = []
    for _ in range(rounds):
        one_round: dict[str, _Pair] = {}
        for name, entries in candidates.items():
            taken = {pair.user for pair in one_round.values()}
            while at[name] < len(entries):
                pair = _pair(ratings, int(entries[at[name]]))
                at[name] += 1
                if pair is not None and pair.user not in taken:
                    one_round[name] = pair
                    break
        # What is below shows in the shared level alone, which an item at the threshold moves, too, when it falls below.
        below = {name: one_round.pop(name) for name in ("below",) if name in one_round}
        found += [changed for changed in (below, one_round) if changed]
    return found


def _spread_out(entries: NDArray[np.int64], items: NDArray[np.int32]) -> NDArray[np.int64]:
    """The entries in an order in which each item comes once before any comes twice."""
    order = np.argsort(items[entries], kind="stable")
    of_item = items[entries][order]
    firsts = np.searchsorted(of_item, of_item)
    turn = np.empty(len(entries), dtype=np.int64)
    turn[order] = np.arange(len(entries)) - firsts
    return entries[np.argsort(turn, kind="stable")]


def _pair(ratings: RatingMatrix, entry: int) -> _Pair | None:
    """None where the rater's other ratings are all the same, or the rating is their mean."""
    user = int(rows_of(ratings.indptr, np.array([entry]))[0])
    own = np.arange(ratings.indptr[user], ratings.indptr[user + 1])
    others = ratings.values[own[own != entry]].astype(np.float64)
    if len(others) < 2 or np.ptp(others) == 0:
        return None
    middle, value = others.mean(), float(ratings.values[entry])
    if value == middle:
        return None
    low, high = others[others <= middle].mean(), others[others >= middle].mean()
    return _Pair(entry, user, int(ratings.items[entry]), float(low), float(high), value > middle)


def _changed(ratings: RatingMatrix, pairs: dict[str, _Pair]) -> list[RatingMatrix]:
    """The ratings without the pairs, and with what their raters give to what they do not like and to what they do."""
    entries = np.array([pair.entry for pair in pairs.values()], dtype=np.int64)
    found = [part_of(ratings, np.delete(np.arange(ratings.nnz), entries))]
    for values in ([pair.low for pair in pairs.values()], [pair.high for pair in pairs.values()]):
        other = ratings.values.copy()
        other[entries] = values
        found.append(replace(ratings, values=other))
    return found


@dataclass(frozen=True)
class _Noise:
    """The noise of a release: reaches, the standard deviation of rounding, whether rare items are left out, by which
    number of raters, and whether items that nobody rated are shown.
    """

    reaches: float
    rounding: float
    drops: bool
    least: int

    @classmethod
    def of(cls, shadowed: Shadowed) -> Self:
        settings = shadowed.settings
        digits = shown_digits(shadowed.scale[1] - shadowed.scale[0]) + 1
        return cls(
            settings.noise_of_items, 10.0**-digits / math.sqrt(12), settings.rare_items == "drop", settings.least_raters
        )

    def _spread(self, side: ItemSide, item: int) -> NDArray[np.float64]:
        """Standard deviations of an item's level and factors, float64[r + 1], without what rare items share."""
        in_factors = np.full(side.factors.shape[1], side.factor_reach[item])
        spread = self.reaches * np.concatenate([[side.reach[item]], in_factors])
        return np.asarray(np.sqrt(spread**2 + self.rounding**2))

    def _of_shared(self, side: ItemSide, seen: ItemSide) -> float:
        """The standard deviation of the shared level as an attacker sees it, who takes the mean over the rare items of
        `seen`.
        """
        rare = _rare(seen)
        own = math.sqrt(float(((self.reaches * seen.reach[rare]) ** 2).mean()) + self.rounding**2)
        return math.hypot(self.reaches * side.shared_reach, own / math.sqrt(int(rare.sum())))

    def sign(self, low: ItemSide, high: ItemSide, truth: ItemSide, item: int) -> tuple[float, float]:
        """Mean and variance, over the noise, of the logarithm of the likelihood ratio of a high to a low rating."""
        if truth.own[item] == 0.0 and _rare(truth)[item]:
            spread = np.array([self._of_shared(truth, truth)])
            bottom, top, middle = (np.array([side.level[item]]) for side in (low, high, truth))
        else:
            spread = self._spread(truth, item)
            bottom, top, middle = (_vector(side, item) for side in (low, high, truth))
        weights = (top - bottom) / spread**2
        return float(weights @ (middle - (top + bottom) / 2)), float(((weights * spread) ** 2).sum())

    def link(
        self, without: ItemSide, with_it: ItemSide, item: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draws of the logarithm of the likelihood ratio of n to n - 1 raters, where it is n and where not."""
        sides = (with_it, without)
        means, spreads = [_vector(side, item) for side in sides], [self._spread(side, item) for side in sides]
        shown = [self._shown(int(side.raters[item])) for side in sides]
        rare = all(bool(_rare(side).any()) for side in sides)
        level = [float(side.level[_rare(side)][0]) if rare else 0.0 for side in sides]
        around = [self._of_shared(side, with_it) if rare else 1.0 for side in sides]
        found = []
        for truth in (0, 1):
            shared = level[truth] + around[truth] * generator.standard_normal(_DRAWS)
            fits = [-(((shared - one) / two) ** 2) / 2 - math.log(two) for one, two in zip(level, around, strict=True)]
            # What is shown of all rare items is part of what is shown of this one.
            centres = [
                mean + (1.0 - side.own[item]) * (shared - one)[:, None] * np.eye(1, len(mean)) * float(rare)
                for mean, side, one in zip(means, sides, level, strict=True)
            ]
            values = centres[truth] + spreads[truth] * generator.standard_normal(centres[truth].shape)
            seen = generator.random(_DRAWS) < shown[truth]
            for side, (centre, spread) in enumerate(zip(centres, spreads, strict=True)):
                of_vector = -(((values - centre) / spread) ** 2).sum(axis=1) / 2 - np.log(spread).sum()
                fits[side] = fits[side] + np.where(
                    seen, of_vector + math.log(max(shown[side], 1e-300)), math.log(max(1 - shown[side], 1e-300))
                )
            found.append(fits[0] - fits[1])
        return found[0], found[1]

    def _shown(self, raters: int) -> float:
        """How likely an item of so many raters is shown."""
        if not self.drops:
            return 1.0
        beyond = (self.least - raters) / RARE_NOISE
        return 0.5 * math.exp(-beyond) if beyond > 0 else 1.0 - 0.5 * math.exp(beyond)


def _rare(side: ItemSide) -> NDArray[np.bool_]:
    """The items that show the shared level and nothing of their own, bool[m]."""
    return (side.own == 0.0) & (side.raters > 0)


def _vector(side: ItemSide, item: int) -> NDArray[np.float64]:
    """Level and factors of an item, float64[r + 1]."""
    return np.concatenate([side.level[item : item + 1], side.factors[item]])
