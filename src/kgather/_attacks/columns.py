"""Items that look alike because the same few people rated them: what columns, or item vectors, tell without anything
else being known.

The vector that an item gets from its only rater points where that rater does. So items whose columns are equal, or
parallel once the usual is taken out, have their raters in common, and together they are a list of what somebody rated.
"""

import hashlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.profiles import directions_of, rank_of
from kgather._attacks.results import AttackResult, Rate
from kgather._evaluation.candidates import Candidates, ShownCells, ShownVectors
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users

FEW = 3
"""Raters of an item whose column may be its raters' own."""

_MOST = 4000  # items compared with each other
_PAIRS = 20_000
_CHUNK = 512


def columns(attacked: Attacked, *, seed: int = 0) -> AttackResult:
    """Look for items with the same few raters by their columns alone.

    targets: items with one to three raters that were compared, all or 4,000 drawn by the seed. matched: how often the
    item whose column is most nearly parallel to an item's has a rater in common with it. details: `linked` is that
    share, `linked_by_chance` that of items taken blindly and `linked_beyond_chance` the difference; `equal`, pairs of
    neighbouring items in sets of equal columns; `telling`, how many of these pairs have exactly the same raters, and
    `telling_by_chance`, how many would where items are put into such sets blindly. O(what is shown x rank + items^2).
    """
    evidence = attacked.evidence
    by_item, users, _ = evidence.original.transpose()
    few = np.flatnonzero((attacked.raters > 0) & (attacked.raters <= FEW) & evidence.shown_items)
    few = np.sort(order_users(few.astype(np.int64), seed64(seed))[:_MOST])
    raters = np.full((len(few), FEW), -1, dtype=np.int64)
    for row, item in enumerate(few):
        own = users[by_item[item] : by_item[item + 1]]
        raters[row, : len(own)] = own
    linked, by_chance = _linked(attacked, few, raters)
    equal, telling, telling_by_chance = _telling(attacked, by_item, users, seed)
    return AttackResult(
        attack="columns",
        knowledge="the release alone",
        targets=len(few),
        matched=Rate.of(linked, len(few)),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        details={
            "linked": float(linked.mean()) if len(linked) else 0.0,
            "linked_by_chance": by_chance,
            "linked_beyond_chance": max(float(linked.mean()) - by_chance, 0.0) if len(linked) else 0.0,
            "equal": float(equal),
            "telling": float(telling),
            "telling_by_chance": telling_by_chance,
        },
    )


def _linked(attacked: Attacked, few: NDArray[np.int64], raters: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Of each item, how likely the most nearly parallel one shares a rater, float64[i]; and any one's chance."""
    if len(few) < 2:
        return np.zeros(len(few)), 0.0
    aways, _ = directions_of(attacked.evidence.shown, rank_of(attacked.evidence.parameters))
    tried = [_parallel(away[few], raters) for away in aways]
    return max(tried, key=lambda found: float(found[0].mean()))


def _parallel(away: NDArray[np.float64], raters: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    away = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
    few = np.arange(len(away))
    found, chances = np.empty(len(few)), np.empty(len(few))
    for start in range(0, len(few), _CHUNK):
        here = slice(start, min(start + _CHUNK, len(few)))
        alike = np.abs(away[here] @ away.T)
        shares = np.zeros(alike.shape, dtype=bool)
        for mine in range(FEW):
            for theirs in range(FEW):
                shares |= (raters[here, mine][:, None] == raters[:, theirs][None]) & (raters[here, mine][:, None] >= 0)
        itself = np.arange(len(few))[None] == np.arange(here.start, here.stop)[:, None]
        alike[itself], shares[itself] = -1.0, False
        best = alike >= alike.max(axis=1, keepdims=True) - 1e-12
        found[here] = (best & shares).sum(axis=1) / best.sum(axis=1)
        chances[here] = shares.sum(axis=1) / (len(few) - 1)
    return found, float(chances.mean())


def _telling(
    attacked: Attacked, by_item: NDArray[np.int64], users: NDArray[np.int32], seed: int
) -> tuple[int, int, float]:
    """Pairs of neighbours in sets of items with equal columns, those of them with the same raters, and by chance."""
    looks: dict[bytes, list[int]] = {}
    for item, look in _looks(attacked.evidence.shown, attacked.evidence.shown_items):
        if attacked.raters[item]:
            looks.setdefault(look, []).append(item)
    sets = [items for items in looks.values() if len(items) > 1]
    pairs = [(one, other) for items in sets for one, other in pairwise(items)]
    if not pairs:
        return 0, 0, 0.0
    of_item: dict[int, bytes] = {}

    def who(item: int) -> bytes:
        if item not in of_item:
            of_item[item] = users[by_item[item] : by_item[item + 1]].tobytes()
        return of_item[item]

    telling = sum(who(one) == who(other) for one, other in pairs)
    # The same items in pairs at random.
    pool = np.array([item for items in sets for item in items])
    rng = np.random.default_rng(seed)
    drawn = rng.choice(pool, size=(_PAIRS, 2))
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    same = np.mean([who(int(one)) == who(int(other)) for one, other in drawn]) if len(drawn) else 0.0
    return len(pairs), int(telling), float(same * len(pairs))


def _looks(shown: Candidates, kept: NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
    """What the release shows of each of its items, as a text to compare."""
    if isinstance(shown, ShownVectors):
        vectors = np.column_stack([shown.item_levels, shown.item_factors])
        for item in np.flatnonzero(kept):
            yield int(item), vectors[item].tobytes()
        return
    assert isinstance(shown, ShownCells)
    for item in np.flatnonzero(kept & (np.diff(shown.indptr) > 0)):
        cells = slice(shown.indptr[item], shown.indptr[item + 1])
        look = hashlib.blake2b(shown.rows[cells].tobytes(), digest_size=16)
        look.update(shown.low[cells].tobytes())
        look.update(shown.high[cells].tobytes())
        yield int(item), look.digest()
