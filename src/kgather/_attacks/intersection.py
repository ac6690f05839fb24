"""Two releases of overlapping people: who is found in both is in both groups, and in what these have in common.

The composition attack of Ganta, Kasiviswanathan and Smith 2008, with the targets found by the rule of Bayes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Knowledge, Known, draw
from kgather._attacks.posterior import Posterior
from kgather._attacks.results import AttackResult, Rate
from kgather._errors import InputError


@dataclass(frozen=True)
class Second:
    """Another release, and where its users and items are found in the first.

    attacked: the second release. users int32[n_users of the first]: the user's code in the second, -1 for those who are
    not in both releases. items int32[n_items of the first]: likewise.
    """

    attacked: Attacked
    users: NDArray[np.int32]
    items: NDArray[np.int32]

    @classmethod
    def of(cls, first: Attacked, second: Attacked, first_users: pa.Array, second_users: pa.Array) -> "Second":
        """Match users by their ids, by code, and items by theirs. Raises InputError where no user is in both."""
        users = places_of(first_users, second_users)
        users[users >= 0] = np.where(second.evidence.truth[users[users >= 0]] >= 0, users[users >= 0], -1)
        users[first.evidence.truth < 0] = -1
        if not (users >= 0).any():
            msg = "no user is in both releases: an intersection needs releases of overlapping people."
            raise InputError(msg)
        return cls(second, users, places_of(first.evidence.items, second.evidence.items))


def intersection(
    first: Attacked,
    second: Second,
    knowledge: Knowledge,
    *,
    targets: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> AttackResult:
    """Find each target's likeliest group in both releases by the same ratings; take anybody who is in both groups.

    Targets are users of both releases who have enough ratings of items that the first shows. user: both groups are
    right, and so is the guess among the users they have in common. group: both are right. matched: how many users'
    two groups have only them in common. details: `in_common`, the mean number of users that a user's two groups share,
    and `least_in_common`, the smallest; `people`, users in both releases.
    """
    both = second.users >= 0
    common = in_common(first, second)
    known = draw(first, knowledge, targets=targets, seed=seed, among=both)
    one = Posterior(first, threads=threads).guess(known)
    other_release = Posterior(second.attacked, threads=threads)
    shown = np.append(second.attacked.evidence.shown_items, False)
    # What the second release does not know is an item that nobody there has: it tells nothing apart.
    usable = shown[second.items[known.items]]
    other = _by_count(usable)
    found = np.zeros(len(known.users))
    for m, rows in other.items():
        if m:
            found[rows] = other_release.guess(_rows(second, known, usable, rows, m)).group(0)
        else:
            found[rows] = second.attacked.chance_group
    right = one.group(0) * found
    alone = common[np.flatnonzero(both)] == 1
    people = int(both.sum())
    matched = Rate.of(alone.astype(np.float64), people)
    return AttackResult(
        attack="intersection",
        knowledge=f"{knowledge.ratings}, two releases",
        targets=known.people,
        user=Rate.of(right / np.maximum(common[known.users], 1), known.people),
        group=Rate.of(right, known.people),
        matched=matched,
        chance_user=1 / people,
        chance_group=first.chance_group * second.attacked.chance_group,
        seed=seed,
        left_out=known.left_out,
        known=knowledge.known,
        details={
            "people": float(people),
            "in_common": float(common[np.flatnonzero(both)].mean()),
            "least_in_common": float(common[np.flatnonzero(both)].min()),
        },
    )


def in_common(first: Attacked, second: Second) -> NDArray[np.int64]:
    """How many users of both releases share both groups of each user, int64[n_users of the first]; 0: not in both."""
    both = np.flatnonzero(second.users >= 0)
    groups = np.stack([first.evidence.groups[both], second.attacked.evidence.groups[second.users[both]]], axis=1)
    _, code, counts = np.unique(groups, axis=0, return_inverse=True, return_counts=True)
    common = np.zeros(len(second.users), dtype=np.int64)
    common[both] = counts[code.reshape(-1)]
    return common


def _by_count(usable: NDArray[np.bool_]) -> dict[int, NDArray[np.int64]]:
    """Places of the draws by how many of their ratings are of items of the second release."""
    counts = usable.sum(axis=1)
    return {int(m): np.flatnonzero(counts == m) for m in np.unique(counts)}


def _rows(second: Second, known: Known, usable: NDArray[np.bool_], rows: NDArray[np.int64], m: int) -> Known:
    kept = usable[rows]
    return Known(
        known.knowledge,
        second.users[known.users[rows]].astype(np.int64),
        second.items[known.items[rows]][kept].reshape(-1, m).astype(np.int32),
        known.ratings[rows][kept].reshape(-1, m),
        len(np.unique(known.users[rows])),
        0,
    )


def places_of(wanted: pa.Array, names: pa.Array) -> NDArray[np.int32]:
    """The places of the wanted among the names, int32; -1 where they are not. Ids of two types are texts."""
    if wanted.type != names.type:
        wanted, names = pc.cast(wanted, pa.string()), pc.cast(names, pa.string())
    return pc.fill_null(pc.index_in(wanted, value_set=names), -1).to_numpy(zero_copy_only=False).astype(np.int32)
