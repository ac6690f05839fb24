"""The attack `attribute`: how much better a rating of a person is predicted from a release that it is part of.

Somebody who knows all other ratings of a person predicts the missing one from any release, which is what releases are
for. What the person gives away by letting the rating be published is only what is predicted better with it than without
it: shadow releases leave chosen ratings out, each of half of them.

Source: attribute inference as a difference between members and others is that of Yeom, Giacomelli, Fredrikson and Jha
2018, with ratings in the place of people.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.results import AttackResult
from kgather._attacks.roc import auc
from kgather._attacks.shadows import LEAST, SHADOWS, Shadowed, affordable, halves, in_turn
from kgather._attacks.telling import People, variance_of
from kgather._errors import InputError
from kgather._evaluation.candidates import ShownVectors
from kgather.udfs._shared.options import whole
from kgather.udfs.attacking._left_out_rating import predict_without
from kgather.udfs.ratings._held_out import part_of, rows_of

WAYS = ("groups", "folded")
"""By what groups show, each as likely as the person's other ratings make it, or by folding the person in."""

CLASSES = {"1_to_5": (1, 5), "6_to_10": (6, 10), "11_to_30": (11, 30), "31_to_100": (31, 100), "over_100": (101, None)}
"""Items by their raters: the first and the last number of each class."""

_EACH = 3000  # ratings of each class
_PEOPLE = 2000
_PART = 5  # at most one in so many ratings of an item or of a person is chosen, but one
_FEWEST = 20  # ratings of a class of which anything is said
_WITHIN = 0.75  # of the variance of ratings around their items' means is left within groups
_SCATTER = 1.25  # people scatter more than their groups
_Z = 1.959963984540054


@dataclass(frozen=True)
class _Chosen:
    """The ratings that are left out in half of the releases. entries int64[c] ascending, users, items int64[c], ratings
    float64[c], above bool[c]: at or above the mean of the rater's other ratings, which is others float64[c]. by_class:
    which of them, bool[c], are of items of each class. shares: what share of all ratings is of such items.
    """

    entries: NDArray[np.int64]
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    ratings: NDArray[np.float64]
    others: NDArray[np.float64]
    by_class: dict[str, NDArray[np.bool_]]
    shares: dict[str, float]

    @property
    def above(self) -> NDArray[np.bool_]:
        return self.ratings >= self.others


def attribute(attacked: Attacked, *, asked: int = SHADOWS, seed: int = 0, threads: int | None = None) -> AttackResult:
    """Predict ratings of people of whom all others are known, from shadow releases with and without them.

    asked: how many shadow releases; fewer are made where the data are large. Chosen are up to 3,000 ratings of each
    class of items, of 2,000 people. Of the two `WAYS` the one that errs less on published ratings counts: `by`.

    details: `gain`: by how much smaller the mean absolute error of a rating is that was published, as ratings are
    spread over classes of items, with a 95% interval, and `gain_CLASS`; `mae_in`, `mae_out`; `sign_in`,
    `sign_out`: the AUC of telling ratings that are at or above the mean of their rater's other ratings, `sign_gain`
    their difference, and all three by class; `ratings_CLASS`: how many ratings were looked at; `gain_by_WAY`;
    `shadows`.

    Raises InputError where the release cannot be made in memory, or has too few ratings.
    """
    shadowed = Shadowed.of(attacked.evidence, seed)
    asked = whole("shadows", asked, LEAST)
    if shadowed.ratings.n_users < 2 * shadowed.settings.k:
        msg = f"the attack attribute needs at least {2 * shadowed.settings.k} people, two groups."
        raise InputError(msg)
    count = affordable(asked, shadowed.ratings.nnz)
    chosen = _choose(shadowed)
    published = halves(shadowed.generator("published"), count, len(chosen.entries))
    predicted = _predict(shadowed, chosen, published, threads)
    errors = np.abs(predicted - chosen.ratings[:, None])
    gains = [_gains(errors[..., way], published) for way in range(len(WAYS))]
    inside = [float(errors[..., way][published].mean()) for way in range(len(WAYS))]
    best = int(np.argmin(inside))
    gain, half = _weighted(gains[best], chosen)
    return AttackResult(
        attack="attribute",
        knowledge="all other ratings of the person",
        targets=len(np.unique(chosen.users)),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        details={
            "gain": gain,
            "gain_low": gain - half,
            "gain_high": gain + half,
            "mae_in": inside[best],
            "mae_out": float(errors[..., best][~published].mean()),
            **_signs(predicted[..., best], published, chosen),
            **{f"gain_{name}": float(gains[best][kept].mean()) for name, kept in chosen.by_class.items()},
            **{f"ratings_{name}": float(kept.sum()) for name, kept in chosen.by_class.items()},
            **{f"gain_by_{name}": _weighted(gains[way], chosen)[0] for way, name in enumerate(WAYS)},
            "shadows": float(count),
        },
        by=WAYS[best],
    )


def _choose(shadowed: Shadowed) -> _Chosen:
    """Draw ratings of each class, few of each item and of each person. Raises InputError where there are too few."""
    ratings, generator = shadowed.ratings, shadowed.generator("chosen")
    raters = np.bincount(ratings.items, minlength=ratings.n_items)
    lengths = np.diff(ratings.indptr)
    people = np.zeros(ratings.n_users, dtype=np.bool_)
    people[generator.permutation(np.flatnonzero(lengths > 1))[:_PEOPLE]] = True
    owners = np.repeat(np.arange(ratings.n_users), lengths)
    order = generator.permutation(np.flatnonzero(people[owners]))
    few = (_turn(ratings.items[order]) < np.maximum(raters[ratings.items[order]] // _PART, 1)) & (
        _turn(owners[order]) < np.maximum(lengths[owners[order]] // _PART, 1)
    )
    order = order[few]
    entries = []
    for first, last in CLASSES.values():
        own = order[_within(raters[ratings.items[order]], first, last)]
        entries.append(own[:_EACH])
    found = np.sort(np.concatenate(entries))
    if len(found) < _FEWEST:
        msg = f"the attack attribute needs at least {_FEWEST} ratings that can be left out, not {len(found)}."
        raise InputError(msg)
    users = rows_of(ratings.indptr, found).astype(np.int64)
    sums = np.bincount(owners, ratings.values, minlength=ratings.n_users)
    values = ratings.values[found].astype(np.float64)
    of_item = raters[ratings.items[found]]
    by_class = {name: _within(of_item, *bounds) for name, bounds in CLASSES.items()}
    return _Chosen(
        found,
        users,
        ratings.items[found].astype(np.int64),
        values,
        (sums[users] - values) / (lengths[users] - 1),
        {name: kept for name, kept in by_class.items() if kept.sum() >= _FEWEST},
        {name: float(_within(raters[ratings.items], *bounds).mean()) for name, bounds in CLASSES.items()},
    )


def _within(raters: NDArray[np.int64], first: int, last: int | None) -> NDArray[np.bool_]:
    return (raters >= first) & (raters <= (raters.max(initial=0) if last is None else last))


def _turn(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """The how manieth of its code each entry is, from 0, int64."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    turn = np.empty(len(codes), dtype=np.int64)
    turn[order] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    return turn


def _predict(
    shadowed: Shadowed, chosen: _Chosen, published: NDArray[np.bool_], threads: int | None
) -> NDArray[np.float64]:
    """What each release predicts of the chosen ratings in each of the `WAYS`, float64[s, c, 2].

    published bool[s, c].
    """
    ratings = shadowed.ratings
    users = np.unique(chosen.users)
    everything = np.ones(ratings.n_items, dtype=np.bool_)
    people = People.rows(ratings, users, everything, np.zeros(ratings.n_users, dtype=np.int64))
    wanted = np.full(ratings.nnz, -1, dtype=np.int64)
    wanted[chosen.entries] = np.arange(len(chosen.entries))
    wanted = wanted[np.repeat(np.isin(np.arange(ratings.n_users), users), np.diff(ratings.indptr))]

    def read(number: int) -> NDArray[np.float64]:
        kept = np.ones(ratings.nnz, dtype=np.bool_)
        kept[chosen.entries[~published[number]]] = False
        made = shadowed.release(number, part_of(ratings, np.flatnonzero(kept)))
        return _predicted(made.shown, people, wanted, len(chosen.entries))

    return np.stack(in_turn(read, range(len(published)), threads))


def _predicted(shown: ShownVectors, people: People, wanted: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """float64[c, 2]; see `predict_without`. Of an item that is not shown the attacker takes the usual level."""
    shares = shown.sizes / shown.sizes.sum()
    places = np.column_stack([shown.group_levels, shown.group_factors]).astype(np.float64)
    middle = shares @ places
    gaps = places - middle
    spread = _SCATTER * (gaps * shares[:, None]).T @ gaps
    there = ~np.isnan(shown.item_levels)
    levels = np.where(there, shown.item_levels, np.nanmean(shown.item_levels)).astype(np.float64)
    factors = np.where(there[:, None], shown.item_factors, 0.0).astype(np.float64)
    variance = _WITHIN * variance_of(people, levels + factors @ middle[1:] + middle[0])
    steady = 1e-6 * max(float(np.trace(spread)), 1e-6)
    stiffness = variance * np.linalg.inv(spread + steady * np.eye(len(middle)))
    out = np.zeros((count, len(WAYS)))
    predict_without(
        people.indptr, people.items, people.ratings, wanted, levels, factors, places, np.log(shares), middle, stiffness,
        variance, shown.scale[0], shown.scale[1], out, 0, len(people),
    )  # fmt: skip
    return out


def _gains(errors: NDArray[np.float64], published: NDArray[np.bool_]) -> NDArray[np.float64]:
    """By how much smaller the mean error of each rating is where it was published, float64[c]; float64[s, c], bool."""
    inside = np.where(published, errors, 0.0).sum(axis=0) / published.sum(axis=0)
    outside = np.where(published, 0.0, errors).sum(axis=0) / (~published).sum(axis=0)
    return outside - inside


def _weighted(gains: NDArray[np.float64], chosen: _Chosen) -> tuple[float, float]:
    """The mean gain of a rating, where classes of items have the shares that they have in the data, and half of its 95%
    interval, over people or over items, whichever is wider.
    """
    weights = np.zeros(len(gains))
    for name, kept in chosen.by_class.items():
        weights[kept] = chosen.shares[name] / kept.sum()
    weights /= max(weights.sum(), 1e-300)
    mean = float(weights @ gains)
    apart = weights * (gains - mean)
    squares = [float((np.bincount(codes, apart) ** 2).sum()) for codes in (chosen.users, chosen.items)]
    return mean, _Z * math.sqrt(max(squares))


def _signs(predicted: NDArray[np.float64], published: NDArray[np.bool_], chosen: _Chosen) -> dict[str, float]:
    """AUCs of telling ratings at or above the mean of their rater's others, over all releases; float64[s, c], bool."""
    score = predicted - chosen.others
    found: dict[str, float] = {}
    everything = np.ones(len(chosen.entries), dtype=np.bool_)
    for name, kept in (("", everything), *((f"_{name}", kept) for name, kept in chosen.by_class.items())):
        above = np.broadcast_to(chosen.above, score.shape)
        inside, outside = published & kept, ~published & kept
        sides = [auc(score[side & above], score[side & ~above]) for side in (inside, outside)]
        if not any(math.isnan(side) for side in sides):
            found |= {
                f"sign_in{name}": sides[0], f"sign_out{name}": sides[1], f"sign_gain{name}": sides[0] - sides[1]
            }  # fmt: skip
    return found
