"""Two releases, of which one has people that the other has not: which items these rated, and how.

An item's values move with its raters. Who has both releases subtracts them, item by item: items that moved most for
their number of raters have a rating more, upwards where it is high.
"""

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.intersection import Second
from kgather._attacks.profiles import means_of
from kgather._attacks.results import AttackResult
from kgather._attacks.roc import auc, auc_among_alike
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users
from kgather.udfs.ratings.matrix import RatingMatrix

_NEWCOMERS = 1000  # people whose items are looked for


def changes(first: Attacked, second: Second, *, seed: int = 0) -> AttackResult:
    """Tell the items whose ratings differ between two releases from the others, by how far their values moved.

    The attacker knows about how many people rate an item. targets: items that both releases show. details: `changed`,
    the share of these with a rating in one original only, or another one there; `changed_auc`, how often such an item
    moved more than one that is the same in both (the best of moves as they are and times the raters);
    `changed_by_raters`, how often it has more raters, which people without any release guess by; `sign_auc`, how often
    an item whose ratings rose moved further up than one whose ratings fell; `newcomer_auc`: which items a person rated
    who is in the second release only, among items of about as many raters, on average over at most 1,000 such people,
    nothing known of the others who came. Where no item, or every one, is changed, all ratings rose, or nobody came,
    there is no such number. O(ratings).
    """
    shared = np.flatnonzero((second.items >= 0) & first.evidence.shown_items)
    theirs = second.items[shared]
    kept = np.append(second.attacked.evidence.shown_items, False)[theirs]
    shared, theirs = shared[kept], theirs[kept]
    moved = means_of(second.attacked.evidence.shown)[theirs] - means_of(first.evidence.shown)[shared]
    moved = moved - np.median(moved) if len(moved) else moved
    differs, net = _differences(first.evidence.original, second, shared, theirs)
    raters = first.raters[shared].astype(np.float64)
    details = {"changed": float(differs.mean()) if len(differs) else 0.0}
    if differs.any() and not differs.all():
        found = (np.abs(moved), np.abs(moved) * (raters + 1.0))
        details["changed_auc"] = max(auc(scores[differs], scores[~differs]) for scores in found)
        details["changed_by_raters"] = auc(raters[differs], raters[~differs])
    rose, fell = differs & (net > 0), differs & (net < 0)
    if rose.any() and fell.any():
        details["sign_auc"] = auc(moved[rose], moved[fell])
    newcomers = _newcomers(second, theirs, np.abs(moved), seed)
    if len(newcomers):
        details["newcomer_auc"] = float(newcomers.mean())
    return AttackResult(
        attack="changes",
        knowledge="two releases",
        targets=len(shared),
        chance_user=first.chance_user,
        chance_group=first.chance_group,
        seed=seed,
        details=details,
    )


def _newcomers(second: Second, theirs: NDArray[np.int32], gap: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """For people who are in the second release only, how well the items that they rated are told, float64[p]."""
    other = second.attacked.evidence
    came = order_users(np.setdiff1d(other.gathered, second.users), seed64(seed))[:_NEWCOMERS]
    raters = other.original.raters()[theirs]
    found = []
    for person in came:
        own = other.original.items[other.original.indptr[person] : other.original.indptr[person + 1]]
        found.append(auc_among_alike(gap, np.isin(theirs, own), raters))
    told = np.array(found)
    return told[~np.isnan(told)]


def _differences(
    original: RatingMatrix, second: Second, shared: NDArray[np.int64], theirs: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Of each shared item: whether a rating is in one original only or another one there, and by how much all ratings
    above their users' means rose from the first to the second.
    """
    other = second.attacked.evidence.original
    place = np.full(original.n_items, -1, dtype=np.int64)
    place[shared] = np.arange(len(shared))
    place_there = np.full(other.n_items, -1, dtype=np.int64)
    place_there[theirs] = np.arange(len(shared))
    code = np.full(other.n_users, -1, dtype=np.int64)
    both = np.flatnonzero(second.users >= 0)
    code[second.users[both]] = both
    new = np.flatnonzero(code < 0)
    code[new] = original.n_users + np.arange(len(new))
    sums = []
    for matrix, names, at in ((original, np.arange(original.n_users), place), (other, code, place_there)):
        counts = np.diff(matrix.indptr)
        owner = np.repeat(np.arange(matrix.n_users), counts)
        mean = np.bincount(owner, matrix.values, matrix.n_users) / np.maximum(counts, 1)
        kept = at[matrix.items] >= 0
        items = at[matrix.items[kept]]
        above = np.bincount(items, (matrix.values - mean[owner])[kept], len(shared))
        key = names[owner[kept]] * np.int64(len(shared)) + items
        sums.append((key, matrix.values[kept], above))
    (one, values, above_one), (two, others, above_two) = sums
    pairs = np.concatenate([np.stack([one, _bits(values)], axis=1), np.stack([two, _bits(others)], axis=1)])
    unique, times = np.unique(pairs, axis=0, return_counts=True)
    differs: NDArray[np.bool_] = np.zeros(len(shared), dtype=np.bool_)
    if len(shared):
        differs[np.unique(unique[times == 1][:, 0] % len(shared))] = True
    return differs, np.asarray(above_two - above_one, dtype=np.float64)


def _bits(values: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.ascontiguousarray(values).view(np.int32).astype(np.int64)
