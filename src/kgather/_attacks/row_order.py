"""Row order: does the order of the rows or of the random ids follow that of the original?"""

import math
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.results import AttackResult, Rate
from kgather._sql_text import literal

_BY_FILE = "row order of members"
_BY_PSEUDONYM = "pseudonyms in order"
_BY_GROUP = "group ids in order"
_BY_GROUPS_FILE = "row order of groups"
_ALARM = 4  # standard deviations


@dataclass(frozen=True)
class Members:
    """Rows of a release in the order of its files.

    groups int64[n]: group of each member. pseudonyms: of each member, text[n]. listed int64[g]: the groups as their own
    file lists them.
    """

    groups: NDArray[np.int64]
    pseudonyms: NDArray[np.str_]
    listed: NDArray[np.int64]

    @classmethod
    def of(cls, release: Path) -> "Members":
        """Read members.parquet and groups.parquet."""
        with duckdb.connect() as con:
            members = con.sql(
                "select group_id, cast(pseudonym as varchar) as pseudonym "
                f"from read_parquet({literal(release / 'members.parquet')}, file_row_number = true) "
                "order by file_row_number"
            ).fetchnumpy()
            listed = con.sql(
                f"select group_id from read_parquet({literal(release / 'groups.parquet')}, file_row_number = true) "
                "order by file_row_number"
            ).fetchnumpy()
        return cls(
            np.asarray(members["group_id"]), np.asarray(members["pseudonym"], dtype=str), np.asarray(listed["group_id"])
        )


def row_order(
    attacked: Attacked, members: Members, *, pseudonyms: NDArray[np.str_] | None = None, seed: int = 0
) -> tuple[AttackResult, ...]:
    """Pair the i-th user by original id with the i-th member, in the order of the file, of pseudonyms and of groups.

    pseudonyms: of every user by code, text[n_users] ("" for those set aside), where they are known: then the user rate
    is the share of users who are given their own pseudonym. Otherwise it is what the group gives: one of its members.
    chance: that of an order at random. details: `order_is_shown`, 1 where the group rate is more than 4 standard
    deviations of an order at random above that; `correlation` of the user's place with the mean place of the group,
    which an order that is turned round or shifted does not escape. O(n log n).
    """
    own = attacked.evidence.gathered
    truth = attacked.evidence.group_ids[attacked.evidence.groups[own]]
    names = None if pseudonyms is None else pseudonyms[own]
    _, sizes = np.unique(members.groups, return_counts=True)
    size_of = dict(zip(np.unique(members.groups).tolist(), sizes.tolist(), strict=True))
    n = len(own)
    rank = {group: place for place, group in enumerate(members.listed.tolist())}
    listed = np.array([rank.get(group, len(rank)) for group in members.groups.tolist()])
    orders = {
        _BY_FILE: np.arange(len(members.groups)),
        _BY_PSEUDONYM: np.argsort(members.pseudonyms, kind="stable"),
        _BY_GROUP: np.argsort(members.groups, kind="stable"),
        _BY_GROUPS_FILE: np.argsort(listed, kind="stable"),
    }
    chance_group = float((sizes.astype(np.float64) ** 2).sum() / max(n, 1) ** 2)
    results = []
    for knowledge, order in orders.items():
        paired = order[:n]
        same = (members.groups[paired] == truth[: len(paired)]).astype(np.float64)
        if names is None:
            user = same / np.array([size_of[group] for group in members.groups[paired].tolist()], dtype=np.float64)
        else:
            user = (members.pseudonyms[paired] == names[: len(paired)]).astype(np.float64)
        alarm = same.sum() > n * chance_group + _ALARM * _spread(sizes, n)
        details = {"order_is_shown": float(alarm), "correlation": _correlation(members.groups[order], truth)}
        results.append(
            AttackResult(
                attack="row_order",
                knowledge=knowledge,
                targets=n,
                user=Rate.of(user, n),
                group=Rate.of(same, n),
                chance_user=attacked.chance_user,
                chance_group=chance_group,
                seed=seed,
                details=details,
            )
        )
    return tuple(results)


def _spread(sizes: NDArray[np.int64], n: int) -> float:
    """The standard deviation of the hits of n users with n rows at random (Hoeffding 1951, theorem 2)."""
    if n < 2:
        return 0.0
    size = sizes.astype(np.float64)
    squares = (size**2).sum()
    variance = (squares - 2 * (size**3).sum() / n + squares**2 / n**2) / (n - 1)
    return math.sqrt(max(variance, 0.0))


def _correlation(rows: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """That of users' places with the mean places of their groups among the rows; 0 where either is constant."""
    ids, code = np.unique(rows, return_inverse=True)
    places = np.bincount(code.reshape(-1), weights=np.arange(len(rows))) / np.bincount(code.reshape(-1))
    own = places[np.minimum(np.searchsorted(ids, truth), len(ids) - 1)] if len(ids) else np.zeros(len(truth))
    if len(truth) < 2 or np.ptp(own) == 0:
        return 0.0
    return float(np.corrcoef(np.arange(len(truth)), own)[0, 1])


def pseudonyms_in(work: Path) -> NDArray[np.str_]:
    """The pseudonyms of all users by code, as the working database of `publish --keep-work` has them."""
    with duckdb.connect(work, read_only=True) as con:
        rows = con.sql(
            "select user_code, cast(pseudonym as varchar) as pseudonym from int_kgather__gathered order by user_code"
        ).fetchnumpy()
        [(n_users,)] = con.sql("select count(*) from int_kgather__users").fetchall()
    names = np.full(n_users, "", dtype="U36")
    names[np.asarray(rows["user_code"])] = np.asarray(rows["pseudonym"], dtype=str)
    return names
