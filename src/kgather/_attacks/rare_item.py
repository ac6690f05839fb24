"""The group of somebody of whom one item of few raters is known, and perhaps some ratings.

What a model learns of an item with few raters, it learns from them: the item is shown as liked, or disliked, most by
groups that are where its raters are. The attacker takes the group towards which the item's vector points. What that
gains is told by an item of as many raters that the person did not rate: popular places gain from any item.
"""

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Knowledge, draw
from kgather._attacks.posterior import Posterior
from kgather._attacks.results import AttackResult, Rate
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users

_WEIGHTS = (1.0, 3.0, 9.0)  # of the item's direction beside the likelihood of the ratings known
_WAYS = ("direction", "extreme", "liked")
_CELLS = 2e7  # targets x candidates at most
_CELLS_AT_ONCE = 2e6


def rare_item(
    attacked: Attacked, posterior: Posterior, *, known: int = 0, targets: int = 1000, seed: int = 0
) -> list[AttackResult]:
    """Look for the groups of people by one item of few raters each, and `known` exact ratings of other items.

    One result for items with 1 rater, with fewer than the k of the release, and with k to 2k. user, group: as for other
    attacks. details: `stranger`, the share of right groups where the item is one of about as many raters that the
    target did not rate; `beyond_stranger`, by how much the first is more, at least 0; `times_stranger`, the first over
    the second (over what one more hit would be, where there is none). by: of several ways of reading a direction, the
    one that finds most with the target's own items.
    """
    k = int(attacked.evidence.parameters.get("k", 2))
    results = []
    for low, high in ((1, 1), (2, max(k - 1, 2)), (max(k, 3), max(2 * k, 3))):
        found = _of_count(attacked, posterior, low, high, known, targets, seed)
        if found is not None:
            results.append(found)
    return results


def _of_count(
    attacked: Attacked, posterior: Posterior, low: int, high: int, known: int, targets: int, seed: int
) -> AttackResult | None:
    evidence = attacked.evidence
    original = evidence.original
    some = (attacked.raters >= low) & (attacked.raters <= high) & evidence.shown_items
    entries = np.flatnonzero(some[original.items])
    owner = np.searchsorted(original.indptr, entries, side="right") - 1
    kept = (evidence.truth[owner] >= 0) & (np.diff(original.indptr)[owner] > known)
    entries, owner = entries[kept].astype(np.int64), owner[kept].astype(np.int64)
    most = int(np.clip(_CELLS / max(attacked.n_classes, 1), 50, targets))
    drawn = order_users(entries, seed64(seed))[:most]
    if len(drawn) < 20 or some.sum() < 2:
        return None
    users, items = owner[np.searchsorted(entries, drawn)], original.items[drawn].astype(np.int64)
    strangers = _strangers(attacked, np.flatnonzero(some), users, items, seed)
    likely = _by_ratings(attacked, posterior, users, items, known, seed)
    aways, places = posterior.directions
    right = attacked.right(users)
    groups_behind = np.diff(attacked.behind.pair_indptr)[right]
    found: dict[tuple[str, int, float], tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    weights = (0.0, *_WEIGHTS) if known else (1.0,)
    step = max(int(_CELLS_AT_ONCE / max(attacked.n_classes, 1)), 1)
    some_of_all = [slice(start, start + step) for start in range(0, len(users), step)]
    for (number, away), rows in product(enumerate(aways), some_of_all):
        sides = [_Pointing.of(away[which[rows]], places) for which in (items, strangers)]
        for way in _WAYS:
            scores = [side.scores(way) for side in sides]
            for weight in weights:
                both = found.setdefault((way, number, weight), (np.empty(len(users)), np.empty(len(users))))
                for out, each in zip(both, scores, strict=True):
                    told = likely[rows] + weight * each if known else each
                    out[rows] = _hits(told, right[rows]) / groups_behind[rows]
    best: tuple[NDArray[np.float64], NDArray[np.float64], str] | None = None
    # Of ways that find as many the first is told, by way, then by what is taken for nowhere.
    for way, number, weight in product(_WAYS, range(len(aways)), weights):
        hits, misses = found[way, number, weight]
        if best is None or hits.mean() > best[0].mean():
            best = hits, misses, way if weight else "ratings alone"
    assert best is not None
    hits, misses, way = best
    people = len(np.unique(users))
    sizes = np.maximum(attacked.evidence.group_sizes[attacked.groups(users)], 1)
    count = f"{low}" if low == high else f"{low} to {high}"
    ratings = f", {known} exact rating{'' if known == 1 else 's'}" if known else ""
    return AttackResult(
        attack="rare_item",
        knowledge=f"one item of {count} rater{'' if high == 1 else 's'}{ratings}",
        targets=people,
        user=Rate.of(hits / sizes, people),
        group=Rate.of(hits, people),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        by=way,
        details={
            "stranger": float(misses.mean()),
            "beyond_stranger": max(float(hits.mean() - misses.mean()), 0.0),
            "times_stranger": float(hits.mean() / max(misses.mean(), 1 / len(misses))),
            "pairs": float(len(hits)),
        },
    )


@dataclass(frozen=True)
class _Pointing:
    """How far each class lies where each item points, float64[t, c], and how long the two are, float64[t, 1], [c]."""

    products: NDArray[np.float64]
    lengths: NDArray[np.float64]
    far: NDArray[np.float64]

    @classmethod
    def of(cls, away: NDArray[np.float64], places: NDArray[np.float64]) -> Self:
        return cls(away @ places.T, np.linalg.norm(away, axis=1, keepdims=True), np.linalg.norm(places, axis=1))

    def scores(self, way: str) -> NDArray[np.float64]:
        """How well each class lies where each item points, float64[t, c]."""
        if way == "direction":
            scores = np.abs(self.products)
            scores /= np.maximum(self.lengths * self.far, 1e-300)
            return scores
        scores = np.abs(self.products) if way == "extreme" else self.products
        return scores / np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1e-300)


def _hits(scores: NDArray[np.float64], right: NDArray[np.int32]) -> NDArray[np.float64]:
    """How likely the class with the largest score is the right one, float64[t]: any one of equal ones is taken."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return best[np.arange(len(right)), right] / best.sum(axis=1)


def _strangers(
    attacked: Attacked, pool: NDArray[np.int64], users: NDArray[np.int64], items: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """For each target an item with about as many raters that the target did not rate, drawn by the seed."""
    original = attacked.evidence.original
    rng = np.random.default_rng(seed)
    order = pool[np.argsort(attacked.raters[pool], kind="stable")]
    counts = attacked.raters[order]
    chosen = np.empty(len(items), dtype=np.int64)
    for place, (user, item) in enumerate(zip(users, items, strict=True)):
        own = original.items[original.indptr[user] : original.indptr[user + 1]]
        first, last = (
            np.searchsorted(counts, attacked.raters[item], "left"),
            np.searchsorted(counts, attacked.raters[item], "right"),
        )
        among = order[max(first - 2, 0) : last + 2]
        among = among[~np.isin(among, own)]
        chosen[place] = rng.choice(among) if len(among) else rng.choice(pool)
    return chosen


def _by_ratings(
    attacked: Attacked,
    posterior: Posterior,
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    known: int,
    seed: int,
) -> NDArray[np.float64]:
    """The logarithm of how likely each class is by the ratings known, float64[t, c]; 0 where none are."""
    likely = np.zeros((len(users), attacked.n_classes))
    if not known:
        return likely
    drawn = draw(attacked, Knowledge(known), targets=len(attacked.evidence.gathered), seed=seed, draws=1)
    places = {int(user): place for place, user in enumerate(drawn.users)}
    prior = np.log(np.maximum(attacked.users, 1e-9))
    for row, (user, item) in enumerate(zip(users, items, strict=True)):
        place = places.get(int(user))
        if place is None:
            continue
        kept = drawn.items[place] != item
        shown, _ = attacked.columns(drawn.items[place][kept])
        gaps = (shown - drawn.ratings[place][kept][:, None]) ** 2 / posterior.variances_of(drawn.items[place][kept])
        likely[row] = prior - np.nan_to_num(gaps).sum(axis=0) / 2
    return likely
