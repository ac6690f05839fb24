"""Which sets of items lead to few users: k^m-anonymity of the items that users have rated, whatever the ratings.

Data are k^m-anonymous if every set of up to m items that some user has is had by at least k users (Terrovitis,
Mamoulis and Kalnis, Privacy-preserving anonymization of set-valued data, 2008). Who knows up to m items
of a person then finds k users. (b, l)-diversity (`diversity.item_diversity`) is the same of a release's groups.

A set's support falls as it grows, so the sizes are looked at in turn, and no further than needed. Users with the same
item set are one row with a weight: where k of them are alike none of their sets can fail, so sets are only looked at
that a row of fewer users has. Supports are counted item by item: of item i the later items of all who have it, for
sets of three of each pair.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.diversity.item_diversity import number_of_sets
from kgather.udfs.ratings._equal_rows import equal_rows
from kgather.udfs.ratings.matrix import RatingMatrix

_MAX_M = 3
_MAX_SETS = 2_000_000_000


def least_support(matrix: RatingMatrix, m: int, *, max_sets: int = _MAX_SETS, threads: int = 1) -> int:
    """The smallest number of users who have a set of 1 to m items that some user has; n_users if nobody has any.

    The data are k^m-anonymous if it is k or more. Threads do not change the result.

    Time: O(nnz), and a step for each of the sets of 2 to m items of every row, the sum of C(items, size), as long as
    a row of fewer users than the smallest support so far may have a smaller one: none once that is 1. Memory: 24 bytes
    a user, 12 a rating, 24 an item and thread.

    Raises InputError if m is not 1, 2 or 3, max_sets or threads is no whole number >= 1, or there are more sets of a
    size to look at than max_sets.
    """
    m = whole("m", m, 1, _MAX_M)
    sets = _Sets(matrix, max_sets, threads)
    least = matrix.n_users
    for size in range(1, m + 1):
        if least > 1:
            least = min(least, sets.look(size, least)[0])
    return least


def violations(
    matrix: RatingMatrix, m: int, k: int, *, max_sets: int = _MAX_SETS, threads: int = 1
) -> tuple[int, np.ndarray]:
    """The smallest support, counted up to k, and how many sets of 1, 2 ... items that some user has fewer than k have.

    The numbers, int64[1..m], end with the first size at which some sets fail: larger sets that contain them fail too.
    The data are k^m-anonymous if the smallest support is k.

    Arguments, time, memory and errors as in `least_support`, also if k is no whole number >= 1; no set is looked at
    if at least k users have each item set.
    """
    m, k = whole("m", m, 1, _MAX_M), whole("k", k, 1)
    sets = _Sets(matrix, max_sets, threads)
    failing: list[int] = []
    least = k
    while len(failing) < m and not any(failing):
        found, count = sets.look(len(failing) + 1, k)
        least = min(least, found)
        failing.append(count)
    return least, np.array(failing, dtype=np.int64)


class _Sets:
    """The different item sets, and how many users have each."""

    def __init__(self, matrix: RatingMatrix, max_sets: int, threads: int) -> None:
        self.max_sets = whole("max_sets", max_sets, 1)
        self.threads = whole("threads", threads, 1)
        numbers, _ = equal_rows(matrix)
        self.weights = np.bincount(numbers)
        first = np.empty(len(self.weights), dtype=np.int64)
        first[numbers[::-1]] = np.arange(matrix.n_users - 1, -1, -1)
        sizes = np.diff(matrix.indptr)[first]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(indptr[-1]) + np.repeat(matrix.indptr[first] - indptr[:-1], sizes)
        self.rows = RatingMatrix(len(first), matrix.n_items, indptr, matrix.items[places], matrix.values[places])
        self.by_item, self.raters, _ = self.rows.transpose()

    def look(self, size: int, enough: int) -> tuple[int, int]:
        """The smallest support of sets of a size, and how many have less than `enough`: `enough`, 0 if none has."""
        if size == 1:
            support = np.bincount(self.rows.items, weights=np.repeat(self.weights, np.diff(self.rows.indptr)))
            failing = support[(support > 0) & (support < enough)]
            return (int(failing.min()), len(failing)) if len(failing) else (enough, 0)
        if self.weights.min() >= enough:
            return enough, 0
        count = number_of_sets(self.rows, np.ones(self.rows.n_items, dtype=np.bool_), size)
        if count > self.max_sets:
            msg = (
                f"there are {count} sets of {size} items to look at, more than {self.max_sets}: choose a smaller m, "
                f"fewer items or users, or a higher limit."
            )
            raise InputError(msg)
        found: list[tuple[int, int]] = []

        def visit(lo: int, hi: int) -> None:
            found.append(
                _supports(
                    *(self.rows.indptr, self.rows.items, self.by_item, self.raters, self.weights),
                    *(size, enough, lo, hi),
                )
            )

        with ThreadPoolExecutor(self.threads) if self.threads > 1 else nullcontext() as pool:
            run(visit, row_ranges(self.by_item, self.threads), pool)
        return min(least for least, _ in found), sum(failing for _, failing in found)


@njit(nogil=True, cache=True)
def _supports(
    indptr: np.ndarray,
    items: np.ndarray,
    by_item: np.ndarray,
    raters: np.ndarray,
    weights: np.ndarray,
    size: int,
    enough: int,
    lo: int,
    hi: int,
) -> tuple[int, int]:
    """The smallest support of sets of 2 or 3 whose first item is in lo..hi-1, and how many have less than `enough`."""
    n_items = len(by_item) - 1
    support, third_support = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
    second, third = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    last_with = np.full(len(weights), -1, dtype=np.int64)  # the last item that the row was seen to have
    least, failing = enough, 0
    for i in range(lo, hi):
        rows = raters[by_item[i] : by_item[i + 1]]
        n_second = _count(indptr, items, rows, weights, i, enough, support, second)
        if size == 2:
            for s in range(n_second):
                least = min(least, support[second[s]])
                failing += support[second[s]] < enough
        else:
            for row in rows:
                last_with[row] = i
            for s in range(n_second):
                others = raters[by_item[second[s]] : by_item[second[s] + 1]]
                both = others[last_with[others] == i]
                n_third = _count(indptr, items, both, weights, second[s], enough, third_support, third)
                for t in range(n_third):
                    least = min(least, third_support[third[t]])
                    failing += third_support[third[t]] < enough
                _clear(indptr, items, both, second[s], third_support)
        _clear(indptr, items, rows, i, support)
    return least, failing


@njit(nogil=True, cache=True)
def _count(
    indptr: np.ndarray,
    items: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    item: int,
    enough: int,
    support: np.ndarray,
    out: np.ndarray,
) -> int:
    """Adds up how many users of the rows have each item after `item`; support int64[n_items] is 0 before.

    Returns n: out[:n] are those items, each once, that a row of fewer than `enough` users has.
    """
    n = 0
    for row in rows:  # those first whose items are listed: they are new while their support is 0
        if weights[row] >= enough:
            continue
        for e in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            other = items[e]
            if other <= item:
                break
            if support[other] == 0:
                out[n] = other
                n += 1
            support[other] += weights[row]
    if n == 0:
        return 0
    for row in rows:
        if weights[row] < enough:
            continue
        for e in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            if items[e] <= item:
                break
            support[items[e]] += weights[row]
    return n


@njit(nogil=True, cache=True)
def _clear(indptr: np.ndarray, items: np.ndarray, rows: np.ndarray, item: int, support: np.ndarray) -> None:
    for row in rows:
        for e in range(indptr[row + 1] - 1, indptr[row] - 1, -1):
            if items[e] <= item:
                break
            support[items[e]] = 0
