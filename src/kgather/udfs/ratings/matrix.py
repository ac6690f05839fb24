"""Ratings as a sparse matrix by user, read from Arrow batches."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError

_COLUMNS = (("user_code", pa.int32()), ("item_code", pa.int32()), ("rating", pa.float64()))
_TOO_MANY = 4  # a user has more ratings than were counted
_FEW_BEHIND = 16  # ratings out of order at the end of a row: moving them costs no more than a heap sort of the row
# 64 MB of int32: larger than what malloc keeps, so a piece goes back to the system once it is copied
_PIECE = 1 << 24

_Number = TypeVar("_Number", bound=np.number)


@dataclass(frozen=True)
class RatingMatrix:
    """Who rated what how: compressed rows, one row a user.

    indptr int64[n_users + 1]: the ratings of user u are entries indptr[u]..indptr[u + 1].
    items int32[nnz]: item codes, ascending within a user, none twice. values float32[nnz]: ratings.
    """

    n_users: int
    n_items: int
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def from_batches(
        cls, batches: Iterable[pa.RecordBatch], n_users: int, n_items: int, counts: NDArray[np.int64] | None = None
    ) -> "RatingMatrix":
        """Reads batches with the columns user_code, item_code (0-based, dense) and rating, in any row order.

        counts int64[n_users]: how many ratings each user has, where that is known. Ratings are then put in their
        places as they come: 8 bytes a rating. Without, rows ordered by (user, item) are appended as they come: about
        8 bytes a rating, 12 for a moment at the end; any other order is put right by counting (20 bytes a rating).
        A user's ratings are sorted where they are in another order.

        Raises InputError for a missing column, a type that cannot be cast without loss, nulls, codes out of
        range, ratings that are not finite (in float32), a pair of user and item that occurs twice, other counts than
        were given, or no rating at all.
        """
        if n_users < 1 or n_items < 1:
            msg = f"a rating matrix needs users and items, not {n_users} users and {n_items} items."
            raise InputError(msg)
        read = _Collected(n_users, n_items) if counts is None else _Placed(n_users, n_items, counts)
        for batch in batches:
            users, items, ratings = _columns_of(batch)
            if len(users):
                read.append(users, items, ratings)
        return read.matrix()

    @property
    def nnz(self) -> int:
        """The number of ratings."""
        return len(self.items)

    def with_items(self, kept: NDArray[np.bool_]) -> "RatingMatrix":
        """The ratings of some items, under the same codes; users who rated none of them have none.

        kept bool[n_items]. O(nnz) time and memory.
        """
        if kept.all():
            return self
        indptr = _count_kept(self.indptr, self.items, kept)
        items = np.empty(indptr[-1], dtype=np.int32)
        values = np.empty(indptr[-1], dtype=np.float32)
        _keep(self.items, self.values, kept, items, values)
        return RatingMatrix(self.n_users, self.n_items, indptr, items, values)

    def with_users(self, rows: NDArray[np.int64]) -> "RatingMatrix":
        """The ratings of some users, int64[u], in that order. O(u + their ratings) time and memory."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], counts)
        return RatingMatrix(len(rows), self.n_items, indptr, self.items[entries], self.values[entries])

    def raters(self) -> NDArray[np.int64]:
        """How many users rated each item, int64[n_items]. O(nnz)."""
        counts = np.zeros(self.n_items, dtype=np.int64)
        _count_items(self.items, counts)
        return counts

    def mean_and_deviation(self) -> tuple[float, float]:
        """The mean and the standard deviation of all ratings; 0 where there are none. O(nnz)."""
        return _mean_and_deviation(self.values) if self.nnz else (0.0, 0.0)

    def transpose(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """The same ratings by item: indptr int64[n_items + 1], users int32[nnz] ascending, values
        float32[nnz].

        O(nnz + n_items) time, 8 bytes a rating.
        """
        indptr = np.zeros(self.n_items + 1, dtype=np.int64)
        users = np.empty(self.nnz, dtype=np.int32)
        values = np.empty(self.nnz, dtype=np.float32)
        _transpose(self.indptr, self.items, self.values, indptr, users, values)
        return indptr, users, values


def _columns_of(batch: pa.RecordBatch) -> list[NDArray[Any]]:
    """The three columns as arrays (read-only, so that kernels are compiled for one type only)."""
    arrays = []
    for name, kind in _COLUMNS:
        position = batch.schema.get_field_index(name)
        if position < 0:
            found = ", ".join(batch.schema.names)
            msg = f"the ratings need one column '{name}'; they have: {found}."
            raise InputError(msg)
        column = batch.column(position)
        if column.null_count:
            msg = f"{column.null_count} values of the column '{name}' are null."
            raise InputError(msg)
        if column.type != kind:
            # a decimal or a wide integer may become the nearest double; a code must stay what it is
            try:
                if name == "rating" and not _is_number(column.type):
                    raise pa.ArrowInvalid(column.type)
                column = pc.cast(column, kind, safe=name != "rating")
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                msg = f"the column '{name}' must be {kind}; it is {column.type} with values that do not fit."
                raise InputError(msg) from None
        array = column.to_numpy(zero_copy_only=True)
        array.flags.writeable = False
        arrays.append(array)
    return arrays


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


class _Pieces(Generic[_Number]):
    """An array that grows without being copied, and is put together in the end piece by piece."""

    def __init__(self, dtype: type[_Number]) -> None:
        self.dtype = dtype
        self.full: list[NDArray[_Number]] = []
        self.piece: NDArray[_Number] = np.empty(_PIECE, dtype=dtype)  # pages never written to cost no memory
        self.used = 0

    def append(self, values: NDArray[np.floating | np.integer]) -> None:
        start = 0
        while start < len(values):
            if self.used == _PIECE:
                self.full.append(self.piece)
                self.piece = np.empty(_PIECE, dtype=self.dtype)
                self.used = 0
            step = min(_PIECE - self.used, len(values) - start)
            self.piece[self.used : self.used + step] = values[start : start + step]
            self.used += step
            start += step

    def take(self) -> NDArray[_Number]:
        """Everything as one array; the pieces are given up one by one."""
        if not self.full:
            return self.piece[: self.used].copy()
        out: NDArray[_Number] = np.empty(len(self.full) * _PIECE + self.used, dtype=self.dtype)
        self.full.append(self.piece[: self.used])
        del self.piece
        at = 0
        self.full.reverse()
        while self.full:
            piece = self.full.pop()
            out[at : at + len(piece)] = piece
            at += len(piece)
            del piece
        return out


class _Collected:
    """The ratings read so far."""

    def __init__(self, n_users: int, n_items: int) -> None:
        self.n_users, self.n_items = n_users, n_items
        self.counts = np.zeros(n_users, dtype=np.int64)
        self.items, self.values = _Pieces(np.int32), _Pieces(np.float32)
        self.users: _Pieces[np.int32] | None = None  # only needed once a user comes before an earlier one
        self.items_ascend = True
        self.last = np.array([-1, -1], dtype=np.int64)  # user and item of the row before

    def append(self, users: NDArray[np.int32], items: NDArray[np.int32], ratings: NDArray[np.float64]) -> None:
        wrong, at, users_ascend, items_ascend = _check(users, items, ratings, self.n_users, self.n_items, self.last)
        _refuse(wrong, at, users, items, ratings, self.n_users, self.n_items)
        if not users_ascend and self.users is None:
            self.users = _Pieces(np.int32)
            # everything so far was ordered by user
            self.users.append(np.repeat(np.arange(self.n_users, dtype=np.int32), self.counts))
        self.items_ascend &= items_ascend
        _count(users, self.counts)
        self.items.append(items)
        self.values.append(ratings)
        if self.users is not None:
            self.users.append(users)

    def matrix(self) -> RatingMatrix:
        indptr = np.zeros(self.n_users + 1, dtype=np.int64)
        np.cumsum(self.counts, out=indptr[1:])
        if indptr[-1] == 0:
            msg = "there are no ratings."
            raise InputError(msg)
        items, values = self.items.take(), self.values.take()
        if self.users is not None:
            users = self.users.take()
            items, values = _scatter(users, items, values, indptr)
            del users
        if self.users is not None or not self.items_ascend:
            _put_in_order(indptr, items, values)
        return RatingMatrix(self.n_users, self.n_items, indptr, items, values)


class _Placed:
    """The ratings read so far, each in its user's part of the matrix."""

    def __init__(self, n_users: int, n_items: int, counts: NDArray[np.int64]) -> None:
        self.n_users, self.n_items = n_users, n_items
        self.indptr = np.zeros(n_users + 1, dtype=np.int64)
        np.cumsum(counts, out=self.indptr[1:])
        self.place = self.indptr[:-1].copy()
        self.items = np.empty(self.indptr[-1], dtype=np.int32)
        self.values = np.empty(self.indptr[-1], dtype=np.float32)

    def append(self, users: NDArray[np.int32], items: NDArray[np.int32], ratings: NDArray[np.float64]) -> None:
        wrong, at = _put(
            users, items, ratings, self.n_users, self.n_items, self.indptr, self.place, self.items, self.values
        )
        _refuse(wrong, at, users, items, ratings, self.n_users, self.n_items)

    def matrix(self) -> RatingMatrix:
        if len(self.items) == 0:
            msg = "there are no ratings."
            raise InputError(msg)
        short = np.flatnonzero(self.place < self.indptr[1:])
        if len(short):
            msg = f"user code {short[0]} has fewer ratings than were counted."
            raise InputError(msg)
        _put_in_order(self.indptr, self.items, self.values)
        return RatingMatrix(self.n_users, self.n_items, self.indptr, self.items, self.values)


def _refuse(
    wrong: int,
    at: int,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    ratings: NDArray[np.float64],
    n_users: int,
    n_items: int,
) -> None:
    """Say what a kernel found wrong (0: nothing) in row `at`."""
    if wrong == _TOO_MANY:
        msg = f"user code {users[at]} has more ratings than were counted."
        raise InputError(msg)
    if wrong:
        kind, value = (("user code", users), ("item code", items), ("rating", ratings))[wrong - 1]
        limit = ("", f"0..{n_users - 1}", f"0..{n_items - 1}", "the finite numbers")[wrong]
        msg = f"the {kind} {value[at]} is out of range: expected within {limit}."
        raise InputError(msg)


def _put_in_order(indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32]) -> None:
    """Sort each user's ratings by item; refuse a pair that occurs twice."""
    twice = _sort_rows(indptr, items, values)
    if twice >= 0:
        user = int(np.searchsorted(indptr, twice, side="right")) - 1
        msg = f"user code {user} has rated item code {items[twice]} more than once."
        raise InputError(msg)


@njit(nogil=True, cache=True)
def _wrong(user: np.int64, item: np.int64, rating: np.float32, n_users: int, n_items: int) -> int:
    """What is wrong with a row: 0 nothing, 1 user, 2 item, 3 rating."""
    if user < 0 or user >= n_users:
        return 1
    if item < 0 or item >= n_items:
        return 2
    return 0 if np.isfinite(rating) else 3


@njit(nogil=True, cache=True)
def _put(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    ratings: NDArray[np.float64],
    n_users: int,
    n_items: int,
    indptr: NDArray[np.int64],
    place: NDArray[np.int64],
    out_items: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> tuple[int, int]:
    """Writes rows to the next places of their users; what is wrong, as `_wrong` says it, or _TOO_MANY, and where."""
    for j in range(len(users)):
        user, rating = np.int64(users[j]), np.float32(ratings[j])
        wrong = _wrong(user, np.int64(items[j]), rating, n_users, n_items)
        if wrong:
            return wrong, j
        at = place[user]
        if at == indptr[user + 1]:
            return _TOO_MANY, j
        out_items[at] = items[j]
        out_values[at] = rating
        place[user] = at + 1
    return 0, 0


@njit(nogil=True, cache=True)
def _check(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    ratings: NDArray[np.float64],
    n_users: int,
    n_items: int,
    last: NDArray[np.int64],
) -> tuple[int, int, bool, bool]:
    """What is wrong, as `_wrong` says it, where, and whether users and items ascend."""
    last_user, last_item = last[0], last[1]
    users_ascend, items_ascend = True, True
    for j in range(len(users)):
        user, item = np.int64(users[j]), np.int64(items[j])
        wrong = _wrong(user, item, np.float32(ratings[j]), n_users, n_items)
        if wrong:
            return wrong, j, False, False
        users_ascend &= user >= last_user
        items_ascend &= (user > last_user) | (item > last_item)
        last_user, last_item = user, item
    last[0], last[1] = last_user, last_item
    return 0, 0, users_ascend, items_ascend


@njit(nogil=True, cache=True)
def _count(users: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    # runs of one user are counted in a register
    current, run = users[0], 0
    for user in users:
        if user != current:
            counts[current] += run
            current, run = user, 0
        run += 1
    counts[current] += run


@njit(nogil=True, cache=True)
def _scatter(
    users: NDArray[np.int32], items: NDArray[np.int32], values: NDArray[np.float32], indptr: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    place = indptr.copy()
    by_user = np.empty_like(items)
    by_user_values = np.empty_like(values)
    for j in range(len(users)):
        at = place[users[j]]
        by_user[at] = items[j]
        by_user_values[at] = values[j]
        place[users[j]] = at + 1
    return by_user, by_user_values


@njit(nogil=True, cache=True, inline="always")
def _sift(items: NDArray[np.int32], values: NDArray[np.float32], lo: int, root: int, stop: int) -> None:
    """Restores the heap items[lo:lo + stop] from `root` down."""
    while True:
        child = 2 * root + 1
        if child >= stop:
            return
        if child + 1 < stop and items[lo + child] < items[lo + child + 1]:
            child += 1
        if items[lo + root] >= items[lo + child]:
            return
        _exchange(items, values, lo + root, lo + child)
        root = child


@njit(nogil=True, cache=True, inline="always")
def _exchange(items: NDArray[np.int32], values: NDArray[np.float32], i: int, j: int) -> None:
    item, value = items[i], values[i]
    items[i], values[i] = items[j], values[j]
    items[j], values[j] = item, value


@njit(nogil=True, cache=True)
def _insert(items: NDArray[np.int32], values: NDArray[np.float32], lo: int, start: int, hi: int) -> None:
    """Sorts the row lo..hi by item, whose entries before `start` ascend: each of the others is put in its place."""
    for j in range(start, hi):
        item, value = items[j], values[j]
        at = j
        while at > lo and items[at - 1] > item:
            items[at], values[at] = items[at - 1], values[at - 1]
            at -= 1
        items[at], values[at] = item, value


@njit(nogil=True, cache=True)
def _sort_rows(indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32]) -> int:
    """Sorts every user's ratings by item in place; an entry that repeats the one before, or -1.

    Few ratings behind others that ascend, as they come from release to release, are put in their places; all else is a
    heap sort.
    """
    for u in range(len(indptr) - 1):
        lo, size = indptr[u], indptr[u + 1] - indptr[u]
        hi = lo + size
        start = lo + 1
        while start < hi and items[start] >= items[start - 1]:
            start += 1
        if start < hi and hi - start <= _FEW_BEHIND:
            _insert(items, values, lo, start, hi)
        elif start < hi:
            root, stop = size // 2, size
            while stop > 1:
                if root > 0:  # build the heap
                    root -= 1
                else:  # take the largest out
                    stop -= 1
                    _exchange(items, values, lo, lo + stop)
                _sift(items, values, lo, root, stop)
        for j in range(lo + 1, hi):
            if items[j] == items[j - 1]:
                return j
    return -1


@njit(nogil=True, cache=True)
def _count_kept(indptr: NDArray[np.int64], items: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    out = np.zeros_like(indptr)
    for u in range(len(indptr) - 1):
        out[u + 1] = out[u]
        for j in range(indptr[u], indptr[u + 1]):
            out[u + 1] += kept[items[j]]
    return out


@njit(nogil=True, cache=True)
def _keep(
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    kept: NDArray[np.bool_],
    out_items: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> None:
    place = 0
    for j in range(len(items)):
        if kept[items[j]]:
            out_items[place] = items[j]
            out_values[place] = values[j]
            place += 1


@njit(nogil=True, cache=True)
def _count_items(items: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    for item in items:
        counts[item] += 1


@njit(nogil=True, cache=True)
def _mean_and_deviation(values: NDArray[np.float32]) -> tuple[float, float]:
    mean = 0.0
    for value in values:
        mean += value
    mean /= len(values)
    square = 0.0
    for value in values:
        square += (value - mean) * (value - mean)
    return mean, np.sqrt(square / len(values))


@njit(nogil=True, cache=True)
def _transpose(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    out_indptr: NDArray[np.int64],
    out_users: NDArray[np.int32],
    out_values: NDArray[np.float32],
) -> None:
    n_items = len(out_indptr) - 1
    for item in items:
        out_indptr[item + 1] += 1
    for i in range(n_items):
        out_indptr[i + 1] += out_indptr[i]
    place = out_indptr.copy()
    for u in range(len(indptr) - 1):
        for j in range(indptr[u], indptr[u + 1]):
            at = place[items[j]]
            out_users[at] = u
            out_values[at] = values[j]
            place[items[j]] = at + 1
