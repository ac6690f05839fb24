"""The satisfaction problem: are ratings (k, epsilon)- or (k, epsilon, l)-anonymous as they are? (Sun and Sun, sections
4 and 5: definitions 1 to 3, equations 1 to 3, slicing.)

Two users are near if on every item they differ by at most epsilon: both rated |a - b|, both not rated 0, one of them
r, the highest value of the scale. The ratings are (k, epsilon)-anonymous if k users, oneself included, are near
everybody, and (k, epsilon, l)-anonymous if the standard deviation of each sensitive column is l or more among those
near each user.

Users with equal rows are one row with a weight. If epsilon < r only users with the same item set can be near: hashes
find the sets, rows are compared. If epsilon >= r only the items that both have rated count.

The paper slices along the axes in their order. Here the items are ordered by how many pairs of users they separate.
The rows are sorted by the first of them, so that a slice along it is a range. Along the next items a slice is a row of
bits (who is within epsilon of a value, or has not rated the item), and 1,024 candidates are cut at once until none is
left. Where the bits of all items do not fit in memory, who is left is compared rating by rating; counting stops at k.
Ratings of more than 64 values fall into 64 ranges, and whoever is left is always compared.

Complexity: O(nnz) for the hashes, the order and the codes. Then for each different row the rows in its slice, by 64,
times the items that it takes to separate them: quadratic in the number of different rows at worst (of one item set, if
epsilon < r), but linear where one item separates them, where they are equal, or where all are near. Memory: 80 bytes a
user, 10 bytes a rating of the rows compared, and blocks of at most 64 MB for the bits.

A null in a sensitive column tells nothing about a person: it is skipped, and where nobody near has a value the column
passes. The paper lets a null stand for the mean times itself when squares are summed up; a standard deviation may then
exceed half the range, which its theorem 1 rules out.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.hashing import keyed, mix
from kgather.udfs._shared.options import real, whole
from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.diversity.item_diversity import ones
from kgather.udfs.diversity.sensitive_diversity import least_diversity
from kgather.udfs.ratings.matrix import RatingMatrix

_ROUNDING = 2.0**-23  # two ratings as float32 are wrong by at most this share of the larger one
_FEW = 48  # rows of one item set that are compared pair by pair
_VALUES = 64  # values, or ranges of values, that have bits of their own
_CHUNK = 16  # words of candidates that are cut at once
_BITS_MEMORY = 1 << 26
_SAMPLE = 1 << 13  # ratings that tell the ranges of values
_SLOTS = 1024
_SORTED_BY = 4  # items that the rows are sorted by

_ONE, _ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_S54 = np.uint64(54)


def neighbours(matrix: RatingMatrix, epsilon: float, *, r: float, at_most: int, threads: int = 1) -> NDArray[np.int32]:
    """How many users are near each user, oneself included, counted up to at_most: int32[n_users].

    matrix: the ratings that are not sensitive. epsilon: how far near users may differ, in the unit of the ratings. r:
    the distance of rated from not rated. at_most: usually k; the number of users counts them all. Threads do not
    change the result.

    A rating is compared with a tolerance of its own rounding to float32, so that tenths are tenths. Cost: see the top.

    Raises InputError if epsilon is no number >= 0, r no number > 0, at_most or threads no whole number >= 1, or a
    rating is not finite.
    """
    at_most = min(whole("at_most", at_most, 1), matrix.n_users)
    found = _Near(matrix, epsilon, r, threads)
    counts, _ = found.look(at_most, np.empty((matrix.n_users, 0)))
    return np.minimum(counts, at_most).astype(np.int32)


def fewest_neighbours(matrix: RatingMatrix, epsilon: float, *, r: float, at_most: int, threads: int = 1) -> int:
    """The smallest of `neighbours`, whose arguments and errors it has: k or more if (k, epsilon)-anonymous."""
    return int(neighbours(matrix, epsilon, r=r, at_most=at_most, threads=threads).min())


def least_deviation(
    matrix: RatingMatrix, sensitive: NDArray[np.float64], epsilon: float, *, r: float, threads: int = 1
) -> float:
    """The smallest population standard deviation of a sensitive column among the users near a user, of all users.

    matrix, epsilon, r, threads: as in `neighbours`. sensitive: float64[n_users, s], NaN = null. Infinity if no column
    has a value. Rounded to 10 significant digits, as kgather.udfs.diversity.sensitive_diversity does.

    Cost: as `neighbours`, and s steps for each pair of different rows that are near. Memory: 48 s bytes a user.

    Raises InputError as `neighbours` does, or if the sensitive values are not one row for each user, are infinite, or
    larger than 1e100.
    """
    sensitive = np.asarray(sensitive)
    if sensitive.ndim != 2 or len(sensitive) != matrix.n_users:
        shape = "x".join(str(side) for side in sensitive.shape)
        msg = f"the sensitive values must be one row for each of {matrix.n_users} users, not {shape}."
        raise InputError(msg)
    least_diversity(np.zeros(matrix.n_users, dtype=np.int32), sensitive, kind="deviation")  # refuses what it cannot use
    found = _Near(matrix, epsilon, r, threads)
    if sensitive.shape[1] == 0:
        return float("inf")
    _, moments = found.look(matrix.n_users, sensitive.astype(np.float64))
    some = moments[:, :, 0] > 0
    if not some.any():
        return float("inf")
    return float(f"{np.sqrt((moments[:, :, 2][some] / moments[:, :, 0][some]).min()):.10g}")


class _Near:
    """The checked arguments, and what counting and deviations have in common."""

    def __init__(self, matrix: RatingMatrix, epsilon: float, r: float, threads: int) -> None:
        self.matrix = matrix
        self.epsilon = real("epsilon", epsilon, 0)
        self.r = real("r", r, 0, above=True)
        self.threads = whole("threads", threads, 1)
        low, high, finite = _reach(matrix.values)
        if not finite:
            msg = "some ratings are not finite numbers."
            raise InputError(msg)
        self.limit = self.epsilon + _ROUNDING * max(abs(low), abs(high))
        self.all_values_near = high - low <= self.limit

    def look(self, at_most: int, sensitive: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """For each user how many are near, int64[n] (may be cut off from at_most on), and for each different row the
        moments float64[rows, s, 3] of the sensitive values float64[n, s] near it: number, mean, squared distances.
        """
        matrix = self.matrix
        if self.all_values_near and self.epsilon >= self.r:
            return _all_together(np.zeros(matrix.n_users, dtype=np.int32), sensitive)
        sets, rows = _numbered(matrix)
        if self.all_values_near:
            return _all_together(sets, sensitive)
        weights = np.bincount(rows)
        first = np.empty(len(weights), dtype=np.int64)
        first[rows[::-1]] = np.arange(matrix.n_users - 1, -1, -1)
        own = _Weighted(weights, _moments(rows, len(weights), sensitive))
        near = _Weighted(weights.copy(), own.moments.copy())
        with ThreadPoolExecutor(self.threads) if self.threads > 1 else nullcontext() as pool:
            if self.epsilon >= self.r:
                self._compare(np.arange(len(first)), first, False, own, near, at_most, pool)
            else:
                self._compare_sets(sets, first, own, near, at_most, pool)
        return near.counts[rows], near.moments

    def _compare_sets(
        self,
        sets: NDArray[np.int32],
        first: NDArray[np.int64],
        own: "_Weighted",
        near: "_Weighted",
        at_most: int,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Compares the different rows (first: a user of each) of every item set."""
        matrix = self.matrix
        by_set = np.argsort(sets[first], kind="stable")
        starts = np.flatnonzero(np.diff(sets[first][by_set], prepend=-1, append=-1))
        sizes = np.diff(starts)
        if sizes.max() == 1:
            return

        def few(lo: int, hi: int) -> None:
            _few_rows(
                *(matrix.indptr, matrix.values, first, by_set, starts, lo, hi),
                *(own.counts, own.moments, self.limit, at_most, near.counts, near.moments),
            )

        run(few, row_ranges(starts, self.threads), pool)
        for s in np.flatnonzero(sizes > _FEW):
            self._compare(by_set[starts[s] : starts[s + 1]], first, True, own, near, at_most, pool)

    def _compare(
        self,
        chosen: NDArray[np.int64],
        first: NDArray[np.int64],
        complete: bool,
        own: "_Weighted",
        near: "_Weighted",
        at_most: int,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Fills in what is near each of the chosen rows among them. complete: they have one item set."""
        if (own.counts[chosen] >= at_most).all():
            return  # as each is near itself
        points, order = _points(self.matrix, first[chosen], complete, self.limit)
        chosen = chosen[order]
        counts, moments = own.counts[chosen], own.moments[chosen]
        if points.n_axes == 0:  # no item separates anybody
            near.counts[chosen], near.moments[chosen] = counts.sum(), _merged(moments)
            return
        near_counts, near_moments = np.where(counts >= at_most, counts, 0), np.zeros_like(moments)
        for block in _blocks(points):

            def visit(lo: int, hi: int, block: _Block = block) -> None:
                _visit(
                    *(lo, hi, block.first, block.last, block.bits, block.n_bits, block.verified, block.tails),
                    *(points.indptr, points.ranks, points.codes, points.values, points.unrated, points.slices),
                    *(counts, moments, self.limit, at_most, near_counts, near_moments),
                )

            run(visit, row_ranges(points.indptr, self.threads), pool)
        near.counts[chosen], near.moments[chosen] = near_counts, near_moments


@dataclass(frozen=True)
class _Weighted:
    """For each different row how many users, int64[rows], and their sensitive values, float64[rows, s, 3]."""

    counts: NDArray[np.int64]
    moments: NDArray[np.float64]


@dataclass(frozen=True)
class _Points:
    """Different rows, ordered by the items that separate most pairs; items that separate none are left out.

    The entries of row p are indptr[p]..indptr[p + 1]: ranks int32 (of their items, ascending), codes uint8 (of their
    values), values float32. Rows without the first item come first, there are `unrated`; the others ascend by it:
    slices int64[p, 2] are the rows within the limit there. lows, highs float64[v]: the ranges of the codes.
    """

    n_axes: int
    indptr: NDArray[np.int64]
    ranks: NDArray[np.int32]
    codes: NDArray[np.uint8]
    values: NDArray[np.float32]
    unrated: int
    slices: NDArray[np.int64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    near_codes: NDArray[np.bool_]  # bool[v, v]: which may be within the limit

    @property
    def exact(self) -> bool:
        """Each code is one value."""
        return bool((self.lows == self.highs).all())


@dataclass(frozen=True)
class _Block:
    """Candidates first..last - 1 with the bits uint64[n_bits, v, words] of the first items.

    verified: who is left has to be compared, from the entries tails int64[p] on.
    """

    first: int
    last: int
    bits: NDArray[np.uint64]
    n_bits: int
    verified: bool
    tails: NDArray[np.int64]


def _all_together(
    groups: NDArray[np.int32], sensitive: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What `look` returns where all of a group, int[n], are near each other and nobody else is."""
    sizes = np.bincount(groups)
    return sizes[groups], _moments(groups, len(sizes), sensitive)


def _moments(rows: NDArray[np.int32], n_rows: int, sensitive: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[n_rows, s, 3]: number, mean and sum of squared distances of the users' values."""
    out = np.zeros((n_rows, sensitive.shape[1], 3))
    for a, column in enumerate(sensitive.T):
        has = ~np.isnan(column)
        owner, value = rows[has], column[has]
        start = np.zeros(n_rows)
        start[owner] = value  # any value of the row: equal ones shall differ by nothing
        value = value - start[owner]
        some = np.bincount(owner, minlength=n_rows)
        mean = np.bincount(owner, weights=value, minlength=n_rows) / np.maximum(some, 1)
        out[:, a, 0], out[:, a, 1] = some, start + mean
        out[:, a, 2] = np.bincount(owner, weights=(value - mean[owner]) ** 2, minlength=n_rows)
    return out


def _numbered(matrix: RatingMatrix) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The item set and the row of every user, int32[n] each, numbered in the order of their first users.

    As `ratings.equal_rows`, whose hash costs more than all else here where rows are long: this one is
    a sum of products, which a processor computes several at a time. O(nnz + n).
    """
    bits = matrix.values.view(np.uint32)
    hashes = np.empty((2, matrix.n_users), dtype=np.uint64)
    _hash(matrix.indptr, matrix.items, bits, _keys(matrix.n_items), hashes)
    sets, rows = (np.empty(matrix.n_users, dtype=np.int32) for _ in range(2))
    _number(matrix.indptr, matrix.items, bits, hashes[0], False, sets)
    _number(matrix.indptr, matrix.items, bits, hashes[1], True, rows)
    return sets, rows


def _points(
    matrix: RatingMatrix, users: NDArray[np.int64], complete: bool, limit: float
) -> tuple[_Points, NDArray[np.int64]]:
    """The rows of some users as points, and the order in which they are there."""
    indptr, items, values = matrix.indptr, matrix.items, matrix.values
    starts = np.concatenate([[0], np.cumsum(indptr[users + 1] - indptr[users])])
    n_axes = int(starts[1]) if complete else matrix.n_items
    codes = np.empty(starts[-1], dtype=np.uint8)
    times = np.zeros((n_axes, _VALUES), dtype=np.int64)
    table = np.empty(_VALUES, dtype=np.float32)
    n_values = _code_values(indptr, items, values, values.view(np.uint32), users, starts, complete, codes, times, table)
    if n_values > 0:
        order = np.argsort(table[:n_values], kind="stable")
        lows = highs = table[:n_values][order].astype(np.float64)
        recoded = np.argsort(order).astype(np.uint8)
        times = times[:, :n_values][:, order]
    else:
        lows, highs = _value_ranges(indptr, values, users)
        times = np.zeros((n_axes, len(lows)), dtype=np.int64)
        _code_ranges(indptr, items, values, users, starts, complete, lows, codes, times)
        recoded = np.arange(len(lows), dtype=np.uint8)
    near_codes = (lows[:, None] - highs <= limit) & (lows - highs[:, None] <= limit)
    used = times > 0
    lowest, highest = used.argmax(axis=1), used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    # an item that nobody of them rated has the lowest code at both ends
    separates = used.any(axis=1) & (highs[highest] - lows[lowest] > limit)
    apart = times.sum(axis=1, dtype=np.float64) ** 2 - ((times @ near_codes.astype(np.float64)) * times).sum(axis=1)
    ranked = np.flatnonzero(separates)
    ranked = ranked[np.argsort(-apart[ranked], kind="stable")]
    columns = np.empty((min(_SORTED_BY, len(ranked)), len(users)), dtype=np.float32)
    for column, axis in zip(columns, ranked, strict=False):
        _column(indptr, items, values, users, complete, int(axis), column)
    by_value = np.lexsort(columns[::-1]) if len(columns) else np.arange(len(users))
    unrated, slices = 0, np.empty((len(users), 2), dtype=np.int64)
    if len(columns):
        unrated = int(np.isneginf(columns[0]).sum())
        _slices(columns[0][by_value], unrated, limit, slices)
    rank_of = np.full(n_axes, -1, dtype=np.int32)
    rank_of[ranked] = np.arange(len(ranked))
    new_indptr, ranks, new_codes, new_values = _ranked(
        *(indptr, items, values, users, starts, codes, recoded, by_value, complete, rank_of, ranked)
    )
    points = _Points(*(len(ranked), new_indptr, ranks, new_codes, new_values, unrated, slices, lows, highs, near_codes))
    return points, by_value


def _value_ranges(
    indptr: NDArray[np.int64], values: NDArray[np.float32], users: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most 64 ranges with about equally many ratings: where they start and end, float64 each."""
    sample = _some_values(indptr, values, users, _SAMPLE)
    low, high = _reach_of(indptr, values, users)
    # a frequent value has a range of its own; at most 15 are frequent
    different, times = np.unique(sample, return_counts=True)
    frequent = different[times > len(sample) // 16]
    rest = sample[~np.isin(sample, frequent)]
    rest.sort()
    cuts = rest[np.linspace(0, len(rest), _VALUES // 2 + 1).astype(np.int64)[:-1]] if len(rest) else rest
    after = np.nextafter(frequent, np.float32(np.inf))
    lows = np.unique(np.concatenate([[low], cuts, frequent, after]).astype(np.float64))
    lows = lows[lows <= high]
    return lows, np.concatenate([lows[1:], [high]])


def _blocks(points: _Points) -> Iterator[_Block]:
    """The candidates block by block, with bits for all items, or for as many of the first as fit in memory.

    To choose how many items are worth bits by a model of the cost was no faster: those not needed cost next to nothing.
    """
    n, n_values = len(points.slices), len(points.lows)
    n_bits = _bits_that_fit(points)
    exact = points.exact
    tails = points.indptr[:-1].copy()
    if exact:
        _tails(points.indptr, points.ranks, n_bits, tails)
    words = min((n + 63) // 64, max(_BITS_MEMORY // (8 * n_bits * n_values) - _CHUNK, _CHUNK))
    low_code = points.near_codes.argmax(axis=1)
    high_code = n_values - 1 - points.near_codes[:, ::-1].argmax(axis=1)
    bits = np.empty((n_bits, n_values, words + _CHUNK), dtype=np.uint64)
    for first in range(0, n, 64 * words):
        last = min(first + 64 * words, n)
        _fill(points.indptr, points.ranks, points.codes, first, last, low_code, high_code, bits)
        yield _Block(first, last, bits, n_bits, not exact or n_bits < points.n_axes, tails)


def _bits_that_fit(points: _Points) -> int:
    """How many items have bits: a block of the least number of candidates has to fit in memory."""
    return min(points.n_axes, max(_BITS_MEMORY // (16 * _CHUNK * len(points.lows)), 1))


@njit(nogil=True, cache=True)
def _reach(values: NDArray[np.float32]) -> tuple[float, float, bool]:
    """The smallest and the largest rating (0 if there is none), and whether all are finite."""
    if len(values) == 0:
        return 0.0, 0.0, True
    low, high = values[0], values[0]
    strange = 0
    for value in values:
        low = min(low, value)
        high = max(high, value)
        strange += not np.isfinite(value)
    return float(low), float(high), strange == 0


@njit(nogil=True, cache=True)
def _keys(n: int) -> NDArray[np.uint64]:
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        keys[i] = mix(mix(np.uint64(i)))
    return keys


@njit(nogil=True, cache=True)
def _hash(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    bits: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> None:
    """out uint64[2, n]: of the item set, and of the row."""
    for u in range(len(indptr) - 1):
        of_set, of_row = np.uint64(0), np.uint64(0)
        for j in range(indptr[u], indptr[u + 1]):
            key = keys[items[j]]
            of_set += key
            of_row += key * (np.uint64(bits[j]) * np.uint64(2) + _ONE)
        out[0, u], out[1, u] = of_set, of_row


@njit(nogil=True, cache=True)
def _number(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    bits: NDArray[np.uint32],
    hashes: NDArray[np.uint64],
    with_ratings: bool,
    out: NDArray[np.int32],
) -> None:
    """Numbers equal rows. A hash table with open addressing, at most half full; it holds the first user of each."""
    n = len(indptr) - 1
    size = 2
    while size < 2 * n:
        size *= 2
    last = np.uint64(size - 1)
    table = np.full(size, np.int32(-1))
    unused = np.int32(0)
    for u in range(n):
        slot = np.int64(mix(hashes[u]) & last)
        while True:
            first = table[slot]
            if first < 0:
                table[slot] = u
                out[u] = unused
                unused += np.int32(1)
                break
            if hashes[first] == hashes[u] and _same(indptr, items, bits, with_ratings, first, u):
                out[u] = out[first]
                break
            slot = (slot + 1) & np.int64(last)


@njit(nogil=True, cache=True)
def _same(
    indptr: NDArray[np.int64], items: NDArray[np.int32], bits: NDArray[np.uint32], with_ratings: bool, u: int, v: int
) -> bool:
    a, b, size = indptr[u], indptr[v], indptr[u + 1] - indptr[u]
    if indptr[v + 1] - b != size:
        return False
    same = True
    j = 0
    while same and j < size:
        same = items[a + j] == items[b + j] and (not with_ratings or bits[a + j] == bits[b + j])
        j += 1
    return same


@njit(nogil=True, cache=True)
def _merge(target: NDArray[np.float64], more: NDArray[np.float64]) -> None:
    """Adds the moments float64[s, 3] of other values."""
    for a in range(len(more)):
        if more[a, 0] == 0:
            continue
        some = target[a, 0] + more[a, 0]
        gap = more[a, 1] - target[a, 1] if target[a, 0] > 0 else 0.0
        if target[a, 0] == 0:
            target[a, 1] = more[a, 1]
        target[a, 2] += more[a, 2] + gap * gap * target[a, 0] * more[a, 0] / some
        target[a, 1] += gap * more[a, 0] / some
        target[a, 0] = some


@njit(nogil=True, cache=True)
def _merged(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.zeros(moments.shape[1:])
    for p in range(len(moments)):
        _merge(out, moments[p])
    return out


@njit(nogil=True, cache=True)
def _few_rows(
    indptr: NDArray[np.int64],
    values: NDArray[np.float32],
    first: NDArray[np.int64],
    by_set: NDArray[np.int64],
    starts: NDArray[np.int64],
    lo: int,
    hi: int,
    weights: NDArray[np.int64],
    moments: NDArray[np.float64],
    limit: float,
    at_most: int,
    counts: NDArray[np.int64],
    near_moments: NDArray[np.float64],
) -> None:
    """Compares the rows of each small one of the item sets lo..hi-1 pair by pair.

    The counts and moments hold what is at the row itself. What separated two rows is tried first on the next.
    """
    for s in range(lo, hi):
        size = starts[s + 1] - starts[s]
        if size == 1 or size > _FEW:
            continue
        axis = 0
        for i in range(starts[s], starts[s + 1]):
            row = by_set[i]
            a, m = indptr[first[row]], indptr[first[row] + 1] - indptr[first[row]]
            for j in range(starts[s], starts[s + 1]):
                other = by_set[j]
                if counts[row] >= at_most:
                    break
                b = indptr[first[other]]
                if i == j or abs(np.float64(values[a + axis]) - values[b + axis]) > limit:
                    continue
                near = True
                for t in range(m):
                    if abs(np.float64(values[a + t]) - values[b + t]) > limit:
                        axis, near = t, False
                        break
                if near:
                    counts[row] += weights[other]
                    _merge(near_moments[row], moments[other])


@njit(nogil=True, cache=True)
def _code_values(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    bits: NDArray[np.uint32],
    users: NDArray[np.int64],
    starts: NDArray[np.int64],
    complete: bool,
    codes: NDArray[np.uint8],
    times: NDArray[np.int64],
    table: NDArray[np.float32],
) -> int:
    """Numbers the different values (float32 table[v]) and counts them by item; returns v, or 0 if it is above 64.

    complete: an item is its place in the row.
    """
    slots = np.full(_SLOTS, np.int64(-1))
    slot_bits = np.zeros(_SLOTS, dtype=np.uint32)
    n = 0
    for p in range(len(users)):
        begin = indptr[users[p]]
        for j in range(starts[p + 1] - starts[p]):
            word = bits[begin + j]
            slot = np.int64((np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)) >> _S54)
            while slots[slot] >= 0 and slot_bits[slot] != word:
                slot = (slot + 1) & (_SLOTS - 1)
            if slots[slot] < 0:
                if n == _VALUES:
                    return 0
                slots[slot], slot_bits[slot], table[n] = n, word, values[begin + j]
                n += 1
            codes[starts[p] + j] = slots[slot]
            times[j if complete else np.int64(items[begin + j]), slots[slot]] += 1
    return n


@njit(nogil=True, cache=True)
def _some_values(
    indptr: NDArray[np.int64], values: NDArray[np.float32], users: NDArray[np.int64], most: int
) -> NDArray[np.float32]:
    """At most so many values, drawn; float32."""
    ends = np.cumsum(indptr[users + 1] - indptr[users])
    total = ends[-1]
    out = np.empty(min(most, total), dtype=np.float32)
    for i in range(len(out)):
        place = i if total <= most else np.int64(keyed(np.uint64(0), i, 0) % np.uint64(total))
        p = np.searchsorted(ends, place, side="right")
        out[i] = values[indptr[users[p] + 1] - ends[p] + place]
    return out


@njit(nogil=True, cache=True)
def _reach_of(indptr: NDArray[np.int64], values: NDArray[np.float32], users: NDArray[np.int64]) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for u in users:
        for j in range(indptr[u], indptr[u + 1]):
            low = min(low, np.float64(values[j]))
            high = max(high, np.float64(values[j]))
    return low, high


@njit(nogil=True, cache=True)
def _code_ranges(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    users: NDArray[np.int64],
    starts: NDArray[np.int64],
    complete: bool,
    lows: NDArray[np.float64],
    codes: NDArray[np.uint8],
    times: NDArray[np.int64],
) -> None:
    """The range that each value lies in, and how many of each item do."""
    for p in range(len(users)):
        begin = indptr[users[p]]
        for j in range(starts[p + 1] - starts[p]):
            code = np.searchsorted(lows, np.float64(values[begin + j]), side="right") - 1
            codes[starts[p] + j] = code
            times[j if complete else np.int64(items[begin + j]), code] += 1


@njit(nogil=True, cache=True)
def _column(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    users: NDArray[np.int64],
    complete: bool,
    axis: int,
    out: NDArray[np.float32],
) -> None:
    """The ratings of an item, -inf for those who have not rated it."""
    for p in range(len(users)):
        lo, hi = indptr[users[p]], indptr[users[p] + 1]
        if complete:
            out[p] = values[lo + axis]
            continue
        place = lo + np.searchsorted(items[lo:hi], axis)
        out[p] = values[place] if place < hi and items[place] == axis else -np.inf


@njit(nogil=True, cache=True)
def _slices(values: NDArray[np.float32], unrated: int, limit: float, out: NDArray[np.int64]) -> None:
    """out int64[p, 2]: the rows from `unrated` on, whose values ascend, that are within the limit; all for others."""
    n = len(values)
    out[:unrated, 0], out[:unrated, 1] = unrated, n
    first, last = unrated, unrated
    for p in range(unrated, n):
        while np.float64(values[p]) - values[first] > limit:
            first += 1
        while last < n and np.float64(values[last]) - values[p] <= limit:
            last += 1
        out[p, 0], out[p, 1] = first, last


@njit(nogil=True, cache=True)
def _ranked(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    users: NDArray[np.int64],
    starts: NDArray[np.int64],
    codes: NDArray[np.uint8],
    recoded: NDArray[np.uint8],
    order: NDArray[np.int64],
    complete: bool,
    rank_of: NDArray[np.int32],
    ranked: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]:
    """The entries of the rows in their order, by rank within a row."""
    n = len(users)
    new_indptr = np.zeros(n + 1, dtype=np.int64)
    for p in range(n):
        u = users[order[p]]
        kept = len(ranked)
        if not complete:
            kept = 0
            for j in range(indptr[u], indptr[u + 1]):
                kept += rank_of[items[j]] >= 0
        new_indptr[p + 1] = new_indptr[p] + kept
    ranks = np.empty(new_indptr[n], dtype=np.int32)
    new_codes = np.empty(new_indptr[n], dtype=np.uint8)
    new_values = np.empty(new_indptr[n], dtype=np.float32)
    places = np.empty(len(rank_of), dtype=np.int64)
    for p in range(n):
        begin, coded, at = indptr[users[order[p]]], starts[order[p]], new_indptr[p]
        kept = new_indptr[p + 1] - at
        if complete:
            for t in range(kept):
                ranks[at + t] = t
                new_codes[at + t] = recoded[codes[coded + ranked[t]]]
                new_values[at + t] = values[begin + ranked[t]]
            continue
        kept = 0
        for j in range(starts[order[p] + 1] - coded):
            rank = rank_of[items[begin + j]]
            if rank >= 0:
                places[kept] = np.int64(rank) << 32 | j
                kept += 1
        places[:kept].sort()
        for t in range(kept):
            j = places[t] & 0xFFFFFFFF
            ranks[at + t] = places[t] >> 32
            new_codes[at + t] = recoded[codes[coded + j]]
            new_values[at + t] = values[begin + j]
    return new_indptr, ranks, new_codes, new_values


@njit(nogil=True, cache=True)
def _tails(indptr: NDArray[np.int64], ranks: NDArray[np.int32], rank: int, out: NDArray[np.int64]) -> None:
    """Where the entries of each row start whose rank is at least `rank`."""
    for p in range(len(out)):
        out[p] = indptr[p] + np.searchsorted(ranks[indptr[p] : indptr[p + 1]], rank)


@njit(nogil=True, cache=True)
def _separating(
    ranks: NDArray[np.int32],
    values: NDArray[np.float32],
    i: int,
    i_end: int,
    j: int,
    j_end: int,
    limit: float,
    none: int,
) -> int:
    """The rank of the first item rated in both ranges of entries with ratings apart; `none` if there is none."""
    while i < i_end and j < j_end:
        if ranks[i] == ranks[j]:
            if abs(np.float64(values[i]) - values[j]) > limit:
                return int(ranks[i])
            i += 1
            j += 1
        elif ranks[i] < ranks[j]:
            i += 1
        else:
            j += 1
    return none


@njit(nogil=True, cache=True)
def _fill(
    indptr: NDArray[np.int64],
    ranks: NDArray[np.int32],
    codes: NDArray[np.uint8],
    first: int,
    last: int,
    low_code: NDArray[np.int64],
    high_code: NDArray[np.int64],
    bits: NDArray[np.uint64],
) -> None:
    """The bits of the candidates first..last-1: for each item and code those who are near, or have not rated it."""
    n_bits, n_values, words = bits.shape
    bits[:] = np.uint64(0)
    for p in range(first, last):
        word, bit = (p - first) >> 6, _ONE << np.uint64((p - first) & 63)
        for j in range(indptr[p], indptr[p + 1]):
            if ranks[j] >= n_bits:
                break
            bits[ranks[j], codes[j], word] |= bit
    upto = np.zeros((n_values + 1, words), dtype=np.uint64)  # who has a code below this one
    for t in range(n_bits):
        for code in range(n_values):
            for w in range(words):
                upto[code + 1, w] = upto[code, w] | bits[t, code, w]
        for code in range(n_values):
            below, above = low_code[code], high_code[code] + 1
            for w in range(words):
                bits[t, code, w] = (upto[above, w] & ~upto[below, w]) | ~upto[n_values, w]


@njit(nogil=True, cache=True)
def _visit(
    lo: int,
    hi: int,
    first: int,
    last: int,
    bits: NDArray[np.uint64],
    n_bits: int,
    verified: bool,
    tails: NDArray[np.int64],
    indptr: NDArray[np.int64],
    ranks: NDArray[np.int32],
    codes: NDArray[np.uint8],
    values: NDArray[np.float32],
    unrated: int,
    slices: NDArray[np.int64],
    weights: NDArray[np.int64],
    moments: NDArray[np.float64],
    limit: float,
    at_most: int,
    counts: NDArray[np.int64],
    near_moments: NDArray[np.float64],
) -> None:
    """Adds up what is near the rows lo..hi-1 among the candidates first..last-1."""
    left = np.empty(_CHUNK, dtype=np.uint64)
    for p in range(lo, hi):
        for part in range(2):
            begin, end = (0, unrated) if part == 0 else (slices[p, 0], slices[p, 1])
            begin, end = max(begin, first) - first, min(end, last) - first
            start = begin >> 6
            while 64 * start < end and counts[p] < at_most:
                for w in range(_CHUNK):
                    left[w] = _ALL
                begin_word = begin - 64 * start
                if begin_word > 0:
                    left[0] = _ALL << np.uint64(begin_word)
                if end < 64 * (start + _CHUNK):
                    for w in range(_CHUNK):
                        ahead = end - 64 * (start + w)
                        if ahead <= 0:
                            left[w] = np.uint64(0)
                        elif ahead < 64:
                            left[w] &= (_ONE << np.uint64(ahead)) - _ONE
                some = _ALL
                for j in range(indptr[p], indptr[p + 1]):
                    if ranks[j] >= n_bits:
                        break
                    some = _cut(left, bits, ranks[j], codes[j], start)
                    if some == 0:
                        break
                if some != 0:
                    _add_left(
                        p, first + 64 * start, left, verified, tails, indptr, ranks, values, weights, moments, limit,
                        at_most, counts, near_moments,
                    )  # fmt: skip
                start += _CHUNK


@njit(nogil=True, cache=True, inline="always")
def _cut(left: NDArray[np.uint64], bits: NDArray[np.uint64], rank: int, code: int, start: int) -> np.uint64:
    """Leaves of the candidates those who are near on an item; returns 0 if nobody is."""
    some = np.uint64(0)
    for w in range(_CHUNK):
        left[w] &= bits[rank, code, start + w]
        some |= left[w]
    return some


@njit(nogil=True, cache=True)
def _add_left(
    p: int,
    base: int,
    left: NDArray[np.uint64],
    verified: bool,
    tails: NDArray[np.int64],
    indptr: NDArray[np.int64],
    ranks: NDArray[np.int32],
    values: NDArray[np.float32],
    weights: NDArray[np.int64],
    moments: NDArray[np.float64],
    limit: float,
    at_most: int,
    counts: NDArray[np.int64],
    near_moments: NDArray[np.float64],
) -> None:
    """Adds those of the candidates left, from the row `base` on, that are near the row p."""
    for w in range(len(left)):
        word = left[w]
        while word != 0:
            if counts[p] >= at_most:
                return
            lowest = word & (~word + _ONE)
            word ^= lowest
            q = base + 64 * w + ones(lowest - _ONE)
            if (
                not verified
                or _separating(ranks, values, tails[p], indptr[p + 1], tails[q], indptr[q + 1], limit, -1) < 0
            ):
                counts[p] += weights[q]
                _merge(near_moments[p], moments[q])
