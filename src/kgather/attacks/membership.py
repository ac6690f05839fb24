"""Membership: was this person in the data? Who was, may be nearer to the release than who was not.

The threshold attack on distances; its advantage is that of Yeom, Giacomelli, Fredrikson and Jha 2018.
"""

import math
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from kgather.attacks.attacked import PIECE_BYTES, Attacked, in_threads
from kgather.attacks.auxiliary import Knowledge, draw, draw_of
from kgather.attacks.intersection import places_of
from kgather.attacks.results import AttackResult
from kgather.errors import InputError
from kgather.loaders import LoadOptions, load
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.row_distances import add_gaps

_KOLMOGOROV = 1.358  # 95% of the largest differences of two empirical distributions of one law are below, scaled


@dataclass(frozen=True)
class _People:
    """Ratings of t people: indptr int64[t + 1], items int32, ratings float32."""

    indptr: np.ndarray
    items: np.ndarray
    ratings: np.ndarray

    @classmethod
    def table(cls, items: np.ndarray, ratings: np.ndarray) -> "_People":
        indptr = np.arange(len(items) + 1, dtype=np.int64) * items.shape[1]
        return cls(indptr, np.ascontiguousarray(items.reshape(-1)), np.ascontiguousarray(ratings.reshape(-1)))

    @classmethod
    def rows(cls, matrix: RatingMatrix, users: np.ndarray, shown: np.ndarray) -> "_People":
        """All ratings of some users of items that the release shows."""
        places = [
            matrix.indptr[user] + np.flatnonzero(shown[matrix.items[matrix.indptr[user] : matrix.indptr[user + 1]]])
            for user in users
        ]
        indptr = np.concatenate([[0], np.cumsum([len(own) for own in places])]).astype(np.int64)
        everything = np.concatenate(places)
        return cls(indptr, matrix.items[everything], matrix.values[everything])


def membership(
    attacked: Attacked,
    others: RatingMatrix,
    knowledge: Knowledge | None,
    *,
    targets: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> AttackResult:
    """Compare users of the release with people who are not in it (`others`, by the item codes of the release).

    Each is as far off as the nearest candidate, by the mean gap over the ratings known (None: all); an item not shown
    counts as the full width. details: `advantage`, the largest difference of the true and the false positive rate over
    all thresholds; `advantage_by_chance`, which it exceeds in 5% of cases where there is no difference at all (the
    bound of Kolmogorov and Smirnov); `others`, how many there were. Raises InputError where nobody has enough ratings.
    """
    chosen = knowledge or Knowledge(1)
    members = draw(attacked, chosen, targets=targets, seed=seed, draws=1)
    shown = attacked.evidence.shown_items
    anybody = np.ones(others.n_users, dtype=np.bool_)
    strangers = draw_of(attacked, others, anybody, chosen, targets=targets, seed=seed, draws=1)
    if not len(members.users) or not len(strangers.users):
        msg = f"membership needs people with {chosen.known} or more ratings of released items on both sides."
        raise InputError(msg)
    if knowledge is None:
        inside = _People.rows(attacked.evidence.original, members.users, shown)
        outside = _People.rows(others, strangers.users, shown)
    else:
        inside = _People.table(members.items, members.ratings)
        outside = _People.table(strangers.items, strangers.ratings)
    near, far = _nearest(attacked, inside, threads), _nearest(attacked, outside, threads)
    n, m = len(near), len(far)
    return AttackResult(
        attack="membership",
        knowledge="all ratings" if knowledge is None else knowledge.ratings,
        targets=n,
        user=None,
        group=None,
        matched=None,
        wrong_among_matched=None,
        chance_user=attacked.chance_user,
        chance_group=attacked.chance_group,
        seed=seed,
        left_out=members.left_out,
        details={
            "advantage": advantage(near, far),
            "advantage_by_chance": min(1.0, _KOLMOGOROV * math.sqrt((n + m) / (n * m))),
            "others": float(m),
        },
    )


def advantage(members: np.ndarray, others: np.ndarray) -> float:
    """The largest share of members below a distance less the share of others below it; at least 0. O(n log n)."""
    distances = np.unique(np.concatenate([members, others]))
    true = np.searchsorted(np.sort(members), distances, side="right") / len(members)
    false = np.searchsorted(np.sort(others), distances, side="right") / len(others)
    return max(0.0, float((true - false).max()))


def read_others(attacked: Attacked, file: str, options: LoadOptions, user_ids: pa.Array | None = None) -> RatingMatrix:
    """Read ratings of people who are not in the release, by the release's item codes.

    Items that the original does not have are dropped. user_ids: ids of the users of the original, by code. Raises
    InputError where the file cannot be read, nobody rated such an item, or somebody is in the release.
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
    owner = owner.reshape(-1)[kept]
    _, owner = np.unique(owner, return_inverse=True)
    ratings = pa.record_batch(
        {
            "user_code": pa.array(owner.astype(np.int32)),
            "item_code": pa.array(codes[kept]),
            "rating": table["rating"].combine_chunks().filter(pa.array(kept)),
        }
    )
    return RatingMatrix.from_batches([ratings], int(owner.max()) + 1, evidence.original.n_items)


def _nearest(attacked: Attacked, people: _People, threads: int | None) -> np.ndarray:
    """The mean gap of each of t people to the nearest candidate, float64[t]."""
    n = len(people.indptr) - 1
    near = np.empty(n)
    at_once = max(1, PIECE_BYTES // (8 * attacked.n_classes))
    for start in range(0, n, at_once):
        end = min(start + at_once, n)
        indptr = people.indptr[start : end + 1]
        gaps = np.zeros((end - start, attacked.n_classes))
        wanted = np.unique(people.items[indptr[0] : indptr[-1]])
        for first in range(0, len(wanted), attacked.items_at_once):
            piece = wanted[first : first + attacked.items_at_once]
            places = np.full(attacked.evidence.original.n_items, -1, dtype=np.int32)
            places[piece] = np.arange(len(piece))
            low, high = attacked.columns(piece)
            look = partial(add_gaps, indptr, people.items, people.ratings, places, low, high, attacked.width, gaps)
            in_threads(look, end - start, threads)
        near[start:end] = gaps.min(axis=1) / np.maximum(np.diff(indptr), 1)
    return near
