"""Linkage by distance: with a few known ratings, and by an oracle who has everybody's whole rows.

The oracle is that of the disclosure risk of F. Casino et al. (microaggregation of ratings, section IV): Euclidean
distance over all cells, in units of the rating, the fill where there is no rating. The text there links protected
records to originals; the published numbers are those of the other direction, from originals to protected records, with
one guess among the k records that are the same. Both are here.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import PIECE_BYTES, Attacked, in_threads
from kgather._attacks.guesses import Guesses
from kgather._attacks.results import AttackResult, Rate
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import count_kept, order_users
from kgather.udfs.attacking._row_distances import add_products, nearest_rows, nearest_users
from kgather.udfs.attacking._scoring import DISTANCE, GROUP, RIGHT, TIES

_WORK = 4e10  # products and shown cells at most; with more, users and candidates are sampled


def distance(guesses: Guesses, *, seed: int = 0) -> AttackResult:
    """Take the candidate with the least mean gap to the known ratings; an item not shown counts as the full width."""
    return guesses.result("distance", guesses.known.knowledge.ratings, DISTANCE, seed, None)


def linkage(
    attacked: Attacked, *, targets: int = 1000, seed: int = 0, fill: float | None = None, threads: int | None = None
) -> tuple[AttackResult, AttackResult]:
    """Link whole rows in both directions: originals to the release, and the release to originals.

    fill: for cells without a rating or not shown, of both sides; where not given what the release was filled with, or
    the middle of the scale where that was predictions, which the attacker does not know. All users and
    candidates are linked where that takes at most 4e10 products, otherwise at most `targets` sampled users, and a
    sample of candidates. Ratings of all users x candidates, O(r c), with some 400 MB.
    """
    evidence = attacked.evidence
    middle = evidence.fill if fill is None else fill
    if np.isnan(middle):
        middle = (evidence.scale.low + evidence.scale.high) / 2
    own = evidence.gathered.astype(np.int64)
    everything = np.ones(evidence.original.n_items, dtype=np.bool_)
    ratings = int(count_kept(evidence.original.indptr, evidence.original.items, everything)[own].sum())
    rows = np.arange(attacked.n_classes, dtype=np.int64)
    key = seed64(seed)
    at_once = _at_once(attacked.n_classes)
    # What the candidates show is looked at once for each block of users.
    blocks = -(-len(own) // at_once)
    if (ratings + blocks * evidence.original.n_items) * attacked.n_classes <= _WORK:
        there, back = _link(attacked, own, rows, middle, threads, seed)
        assert there is not None
        assert back is not None
        return there, back
    some = np.sort(order_users(own, key)[: min(targets, at_once)])
    there, _ = _link(attacked, some, rows, middle, threads, seed, back=False)
    most = min(_at_once(len(own)), int(_WORK / 4 / max(ratings, 1)))
    few = np.sort(order_users(rows, key)[: max(1, most)])
    _, back = _link(attacked, own, few, middle, threads, seed, there=False)
    assert there is not None
    assert back is not None
    return there, back


def _link(
    attacked: Attacked,
    users: NDArray[np.int64],
    rows: NDArray[np.int64],
    fill: float,
    threads: int | None,
    seed: int,
    *,
    there: bool = True,
    back: bool = True,
) -> tuple[AttackResult | None, AttackResult | None]:
    original = attacked.evidence.original
    values = (original.values - np.float32(fill)).astype(np.float32)
    squares = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) ** 2)])
    found = np.zeros((len(users), 5))
    nearest, tied = np.full(len(rows), np.inf), np.zeros((len(rows), 5))
    at_once = _at_once(len(rows))
    for start in range(0, len(users), at_once):
        block = users[start : start + at_once]
        norms = squares[original.indptr[block + 1]] - squares[original.indptr[block]]
        right, groups = attacked.right(block), attacked.groups(block)
        products, row_norms = np.zeros((len(block), len(rows))), np.zeros(len(rows))
        for first, columns in _deviations(attacked, rows, fill):
            row_norms += np.einsum("ij,ij->j", columns, columns, dtype=np.float64)
            add = partial(add_products, original.indptr, original.items, values, block, first, columns, products)
            in_threads(add, len(block), threads)
        if there:
            into = found[start : start + at_once]
            compare = partial(nearest_rows, products, norms, row_norms, right, groups, attacked.behind, into)
            in_threads(compare, len(block), threads)
        if back:
            nearest_users(
                products, norms, row_norms, right, groups, attacked.behind, rows.astype(np.int32), nearest, tied
            )
    return (
        _there(attacked, users, found, seed) if there else None,
        _back(attacked, rows, tied, seed) if back else None,
    )


def _at_once(rows: int) -> int:
    """With how many others these can be compared in one piece of memory."""
    return max(1, 2 * PIECE_BYTES // (8 * max(rows, 1)))


def _deviations(attacked: Attacked, rows: NDArray[np.int64], fill: float) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """What the rows show less the fill, 0 where nothing, float32[i, s], piece by piece, with its first item."""
    n_items = attacked.evidence.original.n_items
    for first in range(0, n_items, attacked.items_at_once):
        low, high = attacked.columns(np.arange(first, min(first + attacked.items_at_once, n_items)))
        middle = (low + high) / 2
        if len(rows) < attacked.n_classes:
            middle = middle[:, rows]
        yield first, np.ascontiguousarray(np.nan_to_num(middle - np.float32(fill), nan=0.0), dtype=np.float32)


def _there(attacked: Attacked, users: NDArray[np.int64], found: NDArray[np.float64], seed: int) -> AttackResult:
    guessed = found[:, RIGHT] / np.maximum(found[:, TIES], 1)
    behind = np.maximum(attacked.users[attacked.right(users)], 1)
    return _result(attacked, "whole rows, original to release", guessed / behind, found[:, GROUP], len(users), seed)


def _back(attacked: Attacked, rows: NDArray[np.int64], tied: NDArray[np.float64], seed: int) -> AttackResult:
    """A candidate counts for each of its users; only one of them can be the record that is linked to itself."""
    ties = np.maximum(tied[:, TIES], 1)
    behind = np.maximum(attacked.users[rows], 1)
    weights = behind / behind.mean()
    user = tied[:, RIGHT] / ties / behind * weights
    group = tied[:, GROUP] / ties / behind * weights
    return _result(attacked, "whole rows, release to original", user, group, int(behind.sum()), seed)


def _result(
    attacked: Attacked, knowledge: str, user: NDArray[np.float64], group: NDArray[np.float64], targets: int, seed: int
) -> AttackResult:
    return AttackResult(
        attack="linkage",
        knowledge=knowledge,
        targets=targets,
        user=Rate.of(user, targets),
        group=Rate.of(group, targets),
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
    )
