"""Homogeneity: whoever finds the group reads what it says (Chang, Thompson, Wang and Yao 2010, section 6,
definition 5).
"""

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.guesses import Guesses
from kgather._attacks.results import AttackResult, Rate
from kgather.udfs.attacking._scoring import LABEL, SCORING

_HAIR = 1e-5  # shown values are float32


def homogeneity(guesses: Guesses, *, seed: int = 0) -> AttackResult:
    """What is learnt of the targets' other ratings.

    matched: the profile is uniquely identified, as all candidates that agree with what is known look the same, and
    wrong_among_matched where that is not the target's. details, as shares of the targets' other ratings of items in the
    release: `learnt`, those that the values of the target's own candidate give to within half a step; `read`, those
    that the candidate with the best score gives; `learnt_by_chance`, those that are the item's most frequent rating.
    """
    known = guesses.known
    learnt = _learnt(guesses)
    return AttackResult(
        attack="homogeneity",
        knowledge=known.knowledge.ratings,
        targets=known.people,
        matched=Rate.of((guesses.stands_out(LABEL) > 0).astype(np.float64), known.people),
        wrong_among_matched=_wrong(guesses),
        chance_user=guesses.attacked.chance_user,
        chance_group=guesses.attacked.chance_group,
        seed=seed,
        left_out=known.left_out,
        details=learnt,
    )


def _wrong(guesses: Guesses) -> Rate | None:
    alone = guesses.stands_out(LABEL) > 0
    return Rate.of(1 - guesses.right(LABEL)[alone], len(np.unique(guesses.known.users[alone])))


def _learnt(guesses: Guesses) -> dict[str, float]:
    attacked, known = guesses.attacked, guesses.known
    targets, items, ratings = _others(guesses)
    total = max(len(items), 1)
    own, taken = attacked.right(known.users)[targets], guesses.best(SCORING)[targets]
    half = attacked.step / 2 - _HAIR
    learnt = read = 0
    wanted, starts = np.unique(items, return_index=True)
    ends = np.append(starts[1:], len(items))
    for first in range(0, len(wanted), attacked.items_at_once):
        piece = slice(first, first + attacked.items_at_once)
        low, high = attacked.columns(wanted[piece])
        pairs = slice(int(starts[piece][0]), int(ends[piece][-1]))
        rows = np.searchsorted(wanted[piece], items[pairs])
        middle = (low.astype(np.float64) + high) / 2
        # NaN is never near.
        learnt += int((np.abs(middle[rows, own[pairs]] - ratings[pairs]) < half).sum())
        near = np.abs(middle[rows, taken[pairs]] - ratings[pairs]) < half
        read += int(near[taken[pairs] >= 0].sum())
    guessed = int((np.abs(attacked.usual[items] - ratings) < half).sum())
    return {
        "other_ratings": float(len(items)),
        "learnt": learnt / total,
        "read": read / total,
        "learnt_by_chance": guessed / total,
    }


def _others(guesses: Guesses) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """The ratings that the attacker does not know, by item: places of the targets, items, ratings."""
    known, evidence = guesses.known, guesses.attacked.evidence
    original = evidence.original
    targets = np.repeat(np.arange(len(known.users)), np.diff(original.indptr)[known.users])
    if not len(targets):
        return targets, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    places = np.concatenate([np.arange(original.indptr[u], original.indptr[u + 1]) for u in known.users])
    items, ratings = original.items[places], original.values[places]
    shown = evidence.shown_items[items]
    targets, items, ratings = targets[shown], items[shown], ratings[shown]
    pairs = targets * original.n_items + items
    told = np.repeat(np.arange(len(known.users)), known.items.shape[1]) * original.n_items + known.items.reshape(-1)
    left = np.flatnonzero(~np.isin(pairs, told))
    order = left[np.argsort(items[left], kind="stable")]
    return targets[order], items[order], ratings[order]
