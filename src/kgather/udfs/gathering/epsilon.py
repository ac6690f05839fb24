"""Groups of users whose ratings lie within epsilon of each other: (k, epsilon)-anonymity (Sun and Sun, sections 4.1
and 6).

Two users are neighbours if on every item they differ by at most epsilon; where one has rated and the other has not,
they differ by the whole range of ratings. The graph is to be cut into cliques of at least k. Below that range only
users with the same item set can be neighbours, so each item set is decomposed by itself
(kgather.udfs.gathering._epsilon_cliques); from there on everybody is everybody's neighbour.

What is no clique is gathered by the users' preferences and meant for common windows (the SQL macro kg_intervals):
first what is left over of the same item set, then the rest.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import real, seed_number, whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.gathering import bkg
from kgather.udfs.gathering._epsilon_cliques import are_cliques, find_cliques
from kgather.udfs.ratings._equal_rows import equal_rows
from kgather.udfs.ratings.matrix import RatingMatrix

_ROUNDING = 2.0**-23  # two ratings as float32 are wrong by at most this share of the larger one


def gather(
    matrix: RatingMatrix,
    k: int,
    *,
    epsilon: float,
    rating_range: float,
    vectors: NDArray[np.floating | np.integer],
    seed: int = 0,
    threads: int = 1,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1; every group has at least k members.

    The groups of `decompose`, with its arguments (vectors: float[n, d]), cost and errors.
    """
    return decompose(
        matrix, k, epsilon=epsilon, rating_range=rating_range, vectors=vectors, seed=seed, threads=threads
    )[0]


def decompose(
    matrix: RatingMatrix,
    k: int,
    *,
    epsilon: float,
    rating_range: float,
    vectors: NDArray[np.floating | np.integer],
    seed: int = 0,
    threads: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The group of every user, int32[n], and which groups are cliques as they are, bool[g].

    matrix: the ratings. epsilon: how far members may differ on an item, in the unit of the ratings. rating_range:
    the distance of rated from not rated, which the paper sets to the highest rating of a scale from 1; where the
    ratings reach further apart, they are that far apart too. vectors: float[n, d], the users' preferences; only those
    who are in no clique are gathered by them. seed: for Bisecting K-Gather, which does that. Threads do not change the
    result.

    Cliques have k to 2k - 1 members. Users left over of one item set, if at least k, are gathered among themselves;
    the rest together, or if they are fewer than k, each in the group with the nearest centroid, which then may be
    larger and no clique any more.

    O(nnz) for the item sets, O(512 p m log p) at most for each set of p different rows over m items, and the cost of
    Bisecting K-Gather for what is in no clique. Memory: 4 bytes a rating, about 60 a user.

    Raises InputError if k or threads is no whole number >= 1, epsilon no number >= 0, rating_range no number > 0, a
    rating is not finite, or the vectors or the seed are not as `bkg.gather` wants them, or not one for
    each user.
    """
    given = _Checked(matrix, k, epsilon, rating_range, vectors, seed, threads)
    if given.all_near:
        groups = bkg.gather(given.rows, given.k, seed=given.seed)
        return groups, np.ones(int(groups.max()) + 1, dtype=np.bool_)
    found, sets, left = _in_cliques(given)
    rest = _add_left_over(found, sets, left, given.rows, given.k, given.seed)
    if len(rest) >= given.k:
        found.add(rest, bkg.gather(given.rows[rest], given.k, seed=given.seed))
    elif len(rest) > 0:
        found.of_user[rest] = _nearest_groups(given.rows, found.of_user, rest)
    members = np.argsort(found.of_user, kind="stable")
    is_clique = np.empty(found.count, dtype=np.bool_)
    starts = _starts(found.of_user[members])
    are_cliques(matrix.indptr, matrix.values, sets, members, starts, given.limit, is_clique)
    return found.of_user, is_clique


def keep_cliques(
    matrix: RatingMatrix,
    k: int,
    *,
    epsilon: float,
    rating_range: float,
    vectors: NDArray[np.floating | np.integer],
    seed: int = 0,
    threads: int = 1,
) -> NDArray[np.int32]:
    """The group of every user who is in a clique, int32[n], numbered 0..g-1, and -1 for the others (section 8).

    Who is left is (k, epsilon)-anonymous as it is: every group is a clique of k to 2k - 1. Arguments, cost and errors
    as in `decompose`, whose cliques these are. Users who could be in a clique may be left out, as it is greedy.
    """
    given = _Checked(matrix, k, epsilon, rating_range, vectors, seed, threads)
    if given.all_near:
        return bkg.gather(given.rows, given.k, seed=given.seed)
    return _in_cliques(given)[0].of_user


class _Checked:
    """The arguments of `decompose`, checked."""

    def __init__(
        self,
        matrix: RatingMatrix,
        k: int,
        epsilon: float,
        rating_range: float,
        vectors: NDArray[np.floating | np.integer],
        seed: int,
        threads: int,
    ) -> None:
        self.matrix = matrix
        self.rows, self.k = checked_vectors(vectors, k)
        epsilon = real("epsilon", epsilon, 0)
        rating_range = real("rating_range", rating_range, 0, above=True)
        self.seed = seed_number(seed)
        self.threads = whole("threads", threads, 1)
        if len(self.rows) != matrix.n_users:
            msg = f"there are {len(self.rows)} preference vectors for the ratings of {matrix.n_users} users."
            raise InputError(msg)
        if not np.isfinite(matrix.values).all():
            msg = "some ratings are not finite numbers."
            raise InputError(msg)
        self.all_near = epsilon >= max(rating_range, _reach(matrix))
        self.limit = epsilon + _ROUNDING * float(np.abs(matrix.values).max(initial=0))


def _in_cliques(given: _Checked) -> tuple["_Groups", NDArray[np.int32], NDArray[np.int64]]:
    """Groups of those who are in a clique, the item set of every user, int32[n], and who is left, by item set."""
    sets, row_of = equal_rows(given.matrix)
    by_row = np.lexsort((row_of, sets))
    clique = _cliques(given.matrix, given.k, given.limit, sets, row_of, by_row, given.threads)
    found = _Groups(len(given.rows))
    _add_cliques(found, clique[by_row], by_row, given.k)
    return found, sets, by_row[clique[by_row] < 0]


def _reach(matrix: RatingMatrix) -> float:
    """How far the ratings are apart."""
    return float(matrix.values.max()) - float(matrix.values.min()) if matrix.nnz else 0.0


class _Groups:
    """Groups as they are found."""

    def __init__(self, n: int) -> None:
        self.of_user = np.full(n, -1, dtype=np.int32)
        self.count = 0

    def add(self, users: NDArray[np.int64], part: NDArray[np.integer]) -> None:
        """Takes up users by the number of their part, 0, 1, 2 ..."""
        self.of_user[users] = self.count + part
        self.count += int(part.max()) + 1


def _cliques(
    matrix: RatingMatrix,
    k: int,
    limit: float,
    sets: NDArray[np.int32],
    row_of: NDArray[np.int32],
    by_row: NDArray[np.int64],
    threads: int,
) -> NDArray[np.int64]:
    """The clique of every user, int64[n], -1 for those in none. by_row: the users by item set and row."""
    set_starts, row_starts = _starts(sets[by_row]), _starts(row_of[by_row])
    sets_by_row = np.searchsorted(row_starts, set_starts)
    clique = np.full(matrix.n_users, -1, dtype=np.int64)

    def find(lo: int, hi: int) -> None:
        find_cliques(matrix.indptr, matrix.values, by_row, row_starts, sets_by_row, lo, hi, k, limit, clique)

    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        run(find, row_ranges(set_starts, threads), pool)
    return clique


def _starts(sorted_numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each run of equal numbers starts, and the end: int64[runs + 1]."""
    changes = np.flatnonzero(np.diff(sorted_numbers)) + 1
    return np.concatenate([[0], changes, [len(sorted_numbers)]]).astype(np.int64)


def _add_cliques(found: _Groups, clique: NDArray[np.int64], users: NDArray[np.int64], k: int) -> None:
    """Cuts cliques (the numbers int64[n] of the users, or -1) into groups of k to 2k - 1: parts of a clique are
    cliques. Equal rows, which are next to each other, stay together as far as they can.
    """
    place = np.argsort(clique, kind="stable")
    place = place[clique[place] >= 0]
    if len(place) == 0:
        return
    starts = _starts(clique[place])
    sizes = np.diff(starts)
    pieces = sizes // k
    first_piece = np.cumsum(pieces) - pieces
    rank = np.arange(len(place)) - np.repeat(starts[:-1], sizes)
    found.add(users[place], np.repeat(first_piece, sizes) + rank * np.repeat(pieces, sizes) // np.repeat(sizes, sizes))


def _add_left_over(
    found: _Groups, sets: NDArray[np.int32], users: NDArray[np.int64], rows: NDArray[np.float32], k: int, seed: int
) -> NDArray[np.int64]:
    """Gathers the users (ordered by item set) of each item set with at least k of them; returns the others."""
    if len(users) == 0:
        return users
    starts = _starts(sets[users])
    sizes = np.diff(starts)
    for s in np.flatnonzero(sizes >= k):
        of_set = np.sort(users[starts[s] : starts[s + 1]])
        found.add(of_set, bkg.gather(rows[of_set], k, seed=seed))
    return np.sort(users[np.repeat(sizes < k, sizes)])


def _nearest_groups(
    rows: NDArray[np.float32], groups: NDArray[np.int32], users: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The group with the nearest centroid, of those that there are, for each of a few users: int32."""
    others = np.flatnonzero(groups >= 0)
    size = np.bincount(groups[others])
    sums = [np.bincount(groups[others], weights=column) for column in rows[others].T]
    centroids = np.stack(sums, axis=1) / size[:, None]
    return np.array([((centroids - rows[user]) ** 2).sum(axis=1).argmin() for user in users], dtype=np.int32)
