"""Membership: was this person in the data? Who was, fits the release better than who was not.

The threshold attack, whose advantage is that of Yeom, Giacomelli, Fredrikson and Jha 2018, on each of the numbers of
`kgather._attacks.telling`, and on all of them put together by whoever has tried it on other people before.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import Knowledge, Known, draw, draw_of
from kgather._attacks.intersection import places_of
from kgather._attacks.profiles import Profiles, profiles_of, rank_of
from kgather._attacks.public import only
from kgather._attacks.results import AttackResult
from kgather._attacks.telling import ALONE, WITH_OTHERS, People, tell_alone, tell_with_others, variance_of
from kgather._errors import InputError
from kgather._evaluation.candidates import Candidates
from kgather._loaders import LoadOptions, load
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users
from kgather.udfs.ratings.matrix import RatingMatrix

PRACTISED = "practised"
"""The numbers put together: the attacker has tried it on people of whom he knew whether they are in the data."""

_WORK = 4e9  # ratings compared with candidates
_LEAST, _MOST = 1000, 10_000  # people looked at on each side
_FEWEST = 8
_STEADY = 1e-3  # added to the variances of numbers, so that those that do not vary tell nothing
_Z = 1.959963984540054


@dataclass(frozen=True)
class Others:
    """People who are not in the release: their ratings by its item codes, and how many ratings more each has, of items
    that the release's original does not have at all.
    """

    ratings: RatingMatrix
    beyond: NDArray[np.int64]

    @classmethod
    def of(cls, ratings: RatingMatrix) -> "Others":
        """People who rated nothing else."""
        return cls(ratings, np.zeros(ratings.n_users, dtype=np.int64))


@dataclass(frozen=True)
class Advantage:
    """The largest difference of the true and the false positive rate over all thresholds, with a 95% interval at that
    threshold. by_chance: what it stays below in 95% of the cases where there is nothing to tell (the bound of
    Kolmogorov and Smirnov). settled: the advantage of an attacker who chose the threshold on one half of the people, on
    the other half: 0 on average where there is nothing to tell.
    """

    value: float
    low: float
    high: float
    by_chance: float
    settled: float


def compare(
    shown: Candidates,
    members: RatingMatrix,
    others: RatingMatrix,
    *,
    width: float,
    beyond: NDArray[np.int64] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Advantage]:
    """What every attacker of `telling` gains who knows all ratings of a person, by name, and PRACTISED over all.

    members, others: ratings by the item codes of what is shown, of people who are in the data and who are not. width:
    of the scale. beyond int64[others]: ratings of items that the data of the members do not have. Raises InputError
    where there are fewer than 8 people with ratings on a side.
    """
    everything = np.ones(shown.n_items, dtype=np.bool_)
    inside, outside = np.flatnonzero(np.diff(members.indptr) > 0), np.flatnonzero(np.diff(others.indptr) > 0)
    nothing = np.zeros(members.n_users, dtype=np.int64)
    more = np.zeros(others.n_users, dtype=np.int64) if beyond is None else beyond
    told = _Told.of(
        shown,
        People.rows(members, inside, everything, nothing),
        People.rows(others, outside, everything, more),
        _References(others, outside),
        width=width,
        seed=seed,
        threads=threads,
    )
    return {**told.advantages(ALONE), **told.advantages(WITH_OTHERS), PRACTISED: told.practised()}


def membership(
    attacked: Attacked,
    others: Others,
    knowledge: Knowledge | None,
    *,
    targets: int = _LEAST,
    seed: int = 0,
    threads: int | None = None,
) -> Iterator[AttackResult]:
    """Compare users of the release with people who are not in it.

    knowledge: what is known of each; None: all their ratings. Up to 10,000 people a side are looked at, fewer where
    the candidates are many, but `targets`. The first result is that of attackers who see nothing but the release and
    what they know of the person. Where all ratings are known, a second one is that of attackers who have the ratings of
    other people, too, and who have practised. details: `advantage` is that of the best attacker, who is named in `by`;
    `advantage_low` and `advantage_high` its interval; `advantage_by_chance` what the best of so many exceeds in 5% of
    cases where there is nothing to tell; `advantage_settled` as in `Advantage`; `by_NAME` the advantages of all;
    `others`, how many people there were. Raises InputError where too few people have enough ratings.
    """
    chosen = knowledge or Knowledge(1)
    shown = attacked.evidence.shown_items
    most = max(targets, _people(attacked, others.ratings))
    members = draw(attacked, chosen, targets=most, seed=seed, draws=1)
    anybody = np.ones(others.ratings.n_users, dtype=np.bool_)
    strangers = draw_of(attacked, others.ratings, anybody, chosen, targets=most, seed=seed, draws=1)
    if min(len(members.users), len(strangers.users)) < _FEWEST:
        msg = (
            f"membership needs at least {_FEWEST} people with {chosen.known} or more ratings of released items on both "
            "sides."
        )
        raise InputError(msg)
    original = attacked.evidence.original
    if knowledge is None:
        inside = People.rows(original, members.users, shown, np.zeros(original.n_users, dtype=np.int64))
        outside = People.rows(others.ratings, strangers.users, shown, others.beyond)
    else:
        inside, outside = (People.table(known.items, known.ratings) for known in (members, strangers))
    told = _Told.of(
        attacked.evidence.shown,
        inside,
        outside,
        _References(others.ratings, strangers.users) if knowledge is None else None,
        width=attacked.width,
        seed=seed,
        threads=threads,
        profiles=profiles_of(attacked.evidence.shown, rank_of(attacked.evidence.parameters)),
    )
    said = "all ratings" if knowledge is None else knowledge.ratings
    # What is known are ratings of items that the release has: whether it lacks some is for who knows all.
    alone = ALONE if knowledge is None else tuple(name for name in ALONE if name != "frame")
    m = None if knowledge is None else knowledge.known
    yield _result(attacked, said, told.advantages(alone), members, len(outside), seed, m)
    if knowledge is None:
        more = {**told.advantages(WITH_OTHERS), PRACTISED: told.practised()}
        yield _result(attacked, f"{said}, and ratings of other people", more, members, len(outside), seed, m)


def _people(attacked: Attacked, others: RatingMatrix) -> int:
    """How many people a side can be looked at within the work allowed."""
    original = attacked.evidence.original
    each = (original.nnz + others.nnz) / (original.n_users + others.n_users) * len(attacked.classes)
    return int(np.clip(_WORK / max(each, 1.0), _LEAST, _MOST))


def _result(
    attacked: Attacked,
    said: str,
    found: Mapping[str, Advantage],
    members: Known,
    others: int,
    seed: int,
    known: int | None,
) -> AttackResult:
    best = max(found, key=lambda name: found[name].value)
    top = found[best]
    return AttackResult(
        attack="membership",
        knowledge=said,
        targets=members.people,
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        left_out=members.left_out,
        details={
            "advantage": top.value,
            "advantage_low": top.low,
            "advantage_high": top.high,
            "advantage_by_chance": top.by_chance,
            "advantage_settled": top.settled,
            "others": float(others),
            **{f"by_{name}": one.value for name, one in found.items()},
        },
        by=best,
        known=known,
    )


def advantage(members: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The largest share of members above a number less the share of others above it; at least 0. O(n log n)."""
    return _largest(members, others)[0]


def _largest(members: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[float, float]:
    """The advantage and the number from which on people are taken for members."""
    levels = np.unique(np.concatenate([members, others]))
    true = 1 - np.searchsorted(np.sort(members), levels, side="left") / len(members)
    false = 1 - np.searchsorted(np.sort(others), levels, side="left") / len(others)
    best = int(np.argmax(true - false))
    return max(0.0, float(true[best] - false[best])), float(levels[best])


def _advantage(
    members: NDArray[np.float64],
    others: NDArray[np.float64],
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    tried: int,
) -> Advantage:
    """tried: of how many attackers the best will be taken."""
    value, level = _largest(members, others)
    n, m = len(members), len(others)
    true, false = float((members >= level).mean()), float((others >= level).mean())
    half = _Z * math.sqrt(true * (1 - true) / n + false * (1 - false) / m)
    gains = []
    for one in (False, True):
        chosen = _largest(members[halves[0] == one], others[halves[1] == one])[1]
        gains.append(float((members[halves[0] != one] >= chosen).mean() - (others[halves[1] != one] >= chosen).mean()))
    bound = math.sqrt(-math.log(0.025 / tried) / 2) * math.sqrt((n + m) / (n * m))
    return Advantage(value, max(value - half, 0.0), min(value + half, 1.0), min(bound, 1.0), sum(gains) / 2)


@dataclass(frozen=True)
class _References:
    """Others by halves: who is tested is compared with the other half. users: who is tested, by place."""

    ratings: RatingMatrix
    users: NDArray[np.int64]

    def half(self, chosen: NDArray[np.bool_]) -> RatingMatrix:
        """The ratings of the tested who are not chosen, bool[t]; everybody else has none."""
        kept = np.zeros(self.ratings.n_users, dtype=np.bool_)
        kept[self.users[~chosen]] = True
        return only(self.ratings, kept)


@dataclass(frozen=True)
class _Told:
    """The numbers of members and others by name, and the halves that they are in."""

    members: Mapping[str, NDArray[np.float64]]
    others: Mapping[str, NDArray[np.float64]]
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]]

    @classmethod
    def of(
        cls,
        shown: Candidates,
        members: People,
        others: People,
        references: _References | None,
        *,
        width: float,
        seed: int,
        threads: int | None,
        profiles: Profiles | None = None,
    ) -> "_Told":
        if min(len(members), len(others)) < _FEWEST:
            msg = f"membership needs at least {_FEWEST} people with ratings of released items on both sides."
            raise InputError(msg)
        taken = profiles or profiles_of(shown)
        variance = (variance_of(members, taken.means) + variance_of(others, taken.means)) / 2
        inside, outside = (
            tell_alone(shown, people, taken, width=width, variance=variance, threads=threads)
            for people in (members, others)
        )
        halves = _half(len(members), seed), _half(len(others), seed + 1)
        if references is not None:
            for one in (False, True):
                known = references.half(halves[1] == one)
                for people, found, half in ((members, inside, halves[0]), (others, outside, halves[1])):
                    told = tell_with_others(people, taken, known, variance, seed=seed, threads=threads)
                    for name, numbers in told.items():
                        found.setdefault(name, np.zeros(len(people)))[half == one] = numbers[half == one]
        return cls(inside, outside, halves)

    def advantages(self, names: Sequence[str]) -> dict[str, Advantage]:
        """Those of the attackers named."""
        return {name: _advantage(self.members[name], self.others[name], self.halves, len(names)) for name in names}

    def practised(self) -> Advantage:
        """That of all numbers put together: a linear discriminant learnt from the other half."""
        chosen = list(self.members)
        inside = np.stack([self.members[name] for name in chosen], axis=1)
        outside = np.stack([self.others[name] for name in chosen], axis=1)
        everybody = np.concatenate([inside, outside])
        middle, scale = everybody.mean(axis=0), np.maximum(everybody.std(axis=0), 1e-12)
        inside, outside = (inside - middle) / scale, (outside - middle) / scale
        scores = np.empty(len(inside)), np.empty(len(outside))
        for one in (False, True):
            known = inside[self.halves[0] == one], outside[self.halves[1] == one]
            within = (np.cov(known[0].T) + np.cov(known[1].T)) / 2
            weights = np.linalg.solve(
                np.atleast_2d(within) + _STEADY * np.eye(len(chosen)), known[0].mean(axis=0) - known[1].mean(axis=0)
            )
            scores[0][self.halves[0] != one] = inside[self.halves[0] != one] @ weights
            scores[1][self.halves[1] != one] = outside[self.halves[1] != one] @ weights
        return _advantage(*scores, self.halves, 1)


def _half(n: int, seed: int) -> NDArray[np.bool_]:
    """Half of n people, bool[n], by hashes of the seed."""
    half = np.zeros(n, dtype=np.bool_)
    half[order_users(np.arange(n, dtype=np.int64), seed64(seed))[: n // 2]] = True
    return half


def read_others(attacked: Attacked, file: str, options: LoadOptions, user_ids: pa.Array | None = None) -> Others:
    """Read ratings of people who are not in the release, by the release's item codes.

    user_ids: ids of the users of the original, by code. Raises InputError where the file cannot be read, nobody rated
    an item that the original has, or somebody is in the release.
    """
    evidence = attacked.evidence
    with duckdb.connect() as con:
        load(con, [file], options)
        table = con.sql(
            "select user_id, item_id, avg(rating) as rating from loaded.ratings where problem is null "
            "group by user_id, item_id order by user_id, item_id"
        ).to_arrow_table()
    users, items = table["user_id"].combine_chunks(), table["item_id"].combine_chunks()
    if user_ids is not None and len(users):
        same = np.unique(places_of(users, user_ids))
        inside = int((evidence.truth[same[same >= 0]] >= 0).sum())
        if inside:
            msg = f"{inside} of the people in {file} are in the release. Membership needs people who are not."
            raise InputError(msg)
    codes = places_of(items, evidence.items)
    kept = codes >= 0
    if not kept.any():
        msg = f"nobody in {file} rated an item of the release."
        raise InputError(msg)
    _, owner = np.unique(users.to_numpy(zero_copy_only=False), return_inverse=True)
    owner = owner.reshape(-1)
    beyond = np.bincount(owner[~kept], minlength=int(owner.max()) + 1)
    # Who rated nothing else cannot be compared.
    some, owner = np.unique(owner[kept], return_inverse=True)
    ratings = pa.record_batch(
        {
            "user_code": pa.array(owner.astype(np.int32)),
            "item_code": pa.array(codes[kept]),
            "rating": table["rating"].combine_chunks().filter(pa.array(kept)),
        }
    )
    matrix = RatingMatrix.from_batches([ratings], len(some), evidence.original.n_items)
    return Others(matrix, beyond[some].astype(np.int64))
