"""Two releases of overlapping people: what the groups that look alike in both differ by may be a single person.

Where a group of n and one of n - 1 are the same people but for one, n times the values of the first less n - 1 times
those of the second is what the first says of that person. The attacker takes, for each group, the group of the other
release that looks most like it and has one user more or fewer, and believes in the difference where it could be a
person's: where nearly all of it lies on the scale. The source is the composition of Ganta, Kasiviswanathan and Smith
2008; that sums which differ by one person give that person away is Denning's tracker, 1979.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import PIECE_BYTES, Attacked
from kgather._attacks.intersection import Second
from kgather._attacks.results import AttackResult, Rate
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users

ON_SCALE = 0.99
"""So much of a difference has to lie on the scale, half a step aside, for it to be believed in."""

_WORK = 2e11  # products of shown values


def differences(first: Attacked, second: Second, *, seed: int = 0) -> AttackResult:
    """Compare the looks of both releases.

    targets: groups (looks) of the first release that were tried, all or a sample drawn by the seed. matched: how often
    the attacker believes to hold the difference of one person; wrong_among_matched: how often it is not that. details:
    `alone`, the share of the first's groups from which one person can be worked out by who knows all members, as some
    group of the second has the same people but for one; `off` and `off_group`, the mean gap of that person's ratings to
    the difference and to what the group shows, over the differences that are right; `overlap`, the share of a group's
    people who are in the group of the second release that looks most like it, and `overlap_by_chance` where it is any
    group. O(groups x groups x items), sampled above 2e11.
    """
    one, two = first.evidence, second.attacked.evidence
    shared = np.flatnonzero((second.items >= 0) & one.shown_items & np.append(two.shown_items, False)[second.items])
    c1, c2 = first.n_classes, second.attacked.n_classes
    tried = np.arange(c1, dtype=np.int64)
    most = int(max(1, _WORK / max(c2 * len(shared), 1)))
    if c1 > most:
        tried = np.sort(order_users(tried, seed64(seed))[:most])
    distances = _distances(first, second, shared, tried)
    sizes = first.users[tried][:, None] - second.attacked.users[None, :]
    alike = distances.argmin(axis=1) if len(shared) else np.zeros(len(tried), dtype=np.int64)
    overlap, by_chance, apart = _members(first, second)
    near = np.where(np.abs(sizes) == 1, distances, np.inf)
    partners = near.argmin(axis=1)
    possible = np.isfinite(near[np.arange(len(tried)), partners])
    believed, right = np.zeros(len(tried), dtype=np.bool_), np.zeros(len(tried), dtype=np.bool_)
    off: list[tuple[float, float]] = []
    for place in np.flatnonzero(possible):
        group, partner = int(tried[place]), int(partners[place])
        difference, shown = _difference(first, second, shared, group, partner)
        slack = first.step / 2
        on_scale = (difference >= one.scale.low - slack) & (difference <= one.scale.high + slack)
        believed[place] = bool(on_scale.mean() >= ON_SCALE) if len(on_scale) else False
        person = apart.get((group, partner), -1)
        right[place] = person >= 0
        if believed[place] and right[place]:
            off += _off(first, second, shared, person, difference, shown)
    gaps = np.array(off) if off else np.full((1, 2), np.nan)
    alone = {group for group, _ in apart}
    return AttackResult(
        attack="differences",
        knowledge="two releases",
        targets=len(tried),
        matched=Rate.of(believed.astype(np.float64), len(tried)),
        wrong_among_matched=Rate.of(1.0 - right[believed], int(believed.sum())),
        chance_user=first.chance_user,
        chance_group=second.attacked.chance_group,
        seed=seed,
        details={
            "alone": len(alone) / max(c1, 1),
            "found_alone": float((believed & right).mean()) if len(tried) else 0.0,
            "overlap": float(np.mean([overlap.get((int(g), int(p)), 0.0) for g, p in zip(tried, alike, strict=True)])),
            "overlap_by_chance": by_chance,
            **({"off": float(gaps[:, 0].mean()), "off_group": float(gaps[:, 1].mean())} if off else {}),
        },
    )


def _distances(
    first: Attacked, second: Second, shared: NDArray[np.int64], tried: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Mean squared gaps of what is shown of the shared items, float64[t, c2]; nothing shown is the usual value."""
    products = np.zeros((len(tried), second.attacked.n_classes))
    left, right = np.zeros(len(tried)), np.zeros(second.attacked.n_classes)
    for mine, theirs in _columns(first, second, shared):
        mine = mine[:, tried]
        products += mine.T @ theirs
        left += np.einsum("ij,ij->j", mine, mine)
        right += np.einsum("ij,ij->j", theirs, theirs)
    return np.maximum(left[:, None] + right - 2 * products, 0) / max(len(shared), 1)


def _columns(
    first: Attacked, second: Second, shared: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """What both show of the shared items less what the first usually does, float64[i, c], piece by piece."""
    widest = max(len(first.classes), len(second.attacked.classes), 1)
    step = max(1, PIECE_BYTES // (64 * widest))
    for start in range(0, len(shared), step):
        items = shared[start : start + step]
        mine, theirs = _middle(first, items), _middle(second.attacked, second.items[items])
        usual = np.nanmean(np.where(np.isnan(mine).all(axis=1, keepdims=True), 0.0, mine), axis=1)[:, None]
        yield np.nan_to_num(mine - usual), np.nan_to_num(theirs - usual)


def _middle(attacked: Attacked, items: NDArray[np.integer]) -> NDArray[np.float64]:
    low, high = attacked.columns(items)
    return (low.astype(np.float64) + high) / 2


def _difference(
    first: Attacked, second: Second, shared: NDArray[np.int64], group: int, partner: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the larger of two looks says of its one user more, and what it shows, float64[s], NaN where not both do."""
    mine, theirs = _row(first, shared, group), _row(second.attacked, second.items[shared], partner)
    n, m = int(first.users[group]), int(second.attacked.users[partner])
    return (n * mine - m * theirs) * (1 if n > m else -1), mine if n > m else theirs


def _row(attacked: Attacked, items: NDArray[np.integer], row: int) -> NDArray[np.float64]:
    """What one look shows, float64[i], piece by piece of the items."""
    out = np.empty(len(items))
    for start in range(0, len(items), attacked.items_at_once):
        piece = items[start : start + attacked.items_at_once]
        out[start : start + len(piece)] = _middle(attacked, piece)[:, row]
    return out


def _members(first: Attacked, second: Second) -> tuple[dict[tuple[int, int], float], float, dict[tuple[int, int], int]]:
    """For pairs of looks that have people in common: the share of the first's people who are in both; the same for any
    pair; and of the pairs that are the same but for one, the person (by the first's code, -2: not in the first).
    """
    both = np.flatnonzero(second.users >= 0)
    one, two = first.evidence, second.attacked.evidence
    mine = first.classes[one.truth[both]]
    theirs = second.attacked.classes[two.truth[second.users[both]]]
    pairs, counts = np.unique(np.stack([mine, theirs], axis=1), axis=0, return_counts=True)
    overlap, apart = {}, {}
    for (g, p), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        n, m = int(first.users[g]), int(second.attacked.users[p])
        overlap[g, p] = count / n
        if abs(n - m) == 1 and count == min(n, m):
            apart[g, p] = _odd(first, second, g, p, larger_first=n > m)
    shares = second.attacked.users / max(second.attacked.users.sum(), 1)
    return overlap, float((shares**2).sum() / max(shares.sum(), 1e-12)), apart


def _odd(first: Attacked, second: Second, group: int, partner: int, *, larger_first: bool) -> int:
    """The code, in the first, of who is in one look only; the second's own people are past the first's codes."""
    one, two = first.evidence, second.attacked.evidence
    mine = np.flatnonzero((one.truth >= 0) & (first.classes[one.truth] == group))
    theirs = np.flatnonzero((two.truth >= 0) & (second.attacked.classes[two.truth] == partner))
    if larger_first:
        return int(mine[~np.isin(second.users[mine], theirs)][0])
    odd = theirs[~np.isin(theirs, second.users[mine])][0]
    known = np.flatnonzero(second.users == odd)
    return int(known[0]) if len(known) else one.original.n_users + int(odd)


def _off(
    first: Attacked,
    second: Second,
    shared: NDArray[np.int64],
    person: int,
    difference: NDArray[np.float64],
    shown: NDArray[np.float64],
) -> list[tuple[float, float]]:
    """The mean gaps of a person's ratings to the difference and to what the group shows; nothing where unknown."""
    original = first.evidence.original
    items: NDArray[np.integer]
    if person < original.n_users:
        own = slice(original.indptr[person], original.indptr[person + 1])
        items, ratings = original.items[own], original.values[own]
    else:
        other = second.attacked.evidence.original
        own = slice(other.indptr[person - original.n_users], other.indptr[person - original.n_users + 1])
        items, ratings = other.items[own], other.values[own]
        back = np.full(other.n_items, -1, dtype=np.int64)
        back[second.items[shared]] = shared
        items, ratings = back[items][back[items] >= 0], ratings[back[items] >= 0]
    places = np.searchsorted(shared, items)
    kept = (places < len(shared)) & (shared[np.minimum(places, len(shared) - 1)] == items)
    gaps = np.abs(np.stack([difference, shown])[:, places[kept]] - ratings[kept])
    gaps = gaps[:, ~np.isnan(gaps).any(axis=0)]
    return [(float(gaps[0].mean()), float(gaps[1].mean()))] if gaps.size else []
