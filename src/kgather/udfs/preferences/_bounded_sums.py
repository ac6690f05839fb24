"""Sums over users to which no user adds a vector longer than 1, whatever the ratings are.

The bound is made here, not assumed: the vector v of a user is computed from the user's own ratings and from numbers
that are public or released, its length is computed, and min(cap, 1 / |v|) v is added. It depends on no other user, so
with or without one user the sum differs by that user's vector alone.

Sums are exact, in whole numbers. A term is multiplied by 2^30 and cut off towards zero, which makes no component larger,
and int64 adds without rounding: the difference that a user makes is that user's vector, not that and the rounding of
all others, and the result is the same for any number of threads. Only the length of the one vector is rounded: it is
a sum of at most 2^32 squares in double precision, relative error below 2^32 * 2^-53 < 1e-6, and `SENSITIVITY`
covers that. No sum overflows below 2^31 users.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.preferences._gram import solve_ridge

SENSITIVITY = 1.0 + 1e-6
"""L2 distance of two sums that differ by one user, at most."""

UNIT = float(1 << 30)
_NOTHING = 1e-100  # squared length; below, squares of components would be rounded to nothing
USER_BINS = 64
"""Bins of users by their number of ratings: half powers of two."""


def add_up(
    kernel: Callable[[int, int, NDArray[np.int64]], object],
    indptr: NDArray[np.int64],
    shape: tuple[int, ...],
    threads: int,
    pool: ThreadPoolExecutor | None,
) -> NDArray[np.float64]:
    """The sum over all users, float64[shape], of what kernel(lo, hi, out) adds to `out` for the users lo..hi.

    indptr int64[n + 1]: a user's work. One int64 array of that shape for each thread.
    """
    ranges = row_ranges(indptr, threads)
    workers = max(min(threads, len(ranges)), 1)
    sums = [np.zeros(shape, dtype=np.int64) for _ in range(workers)]

    def work(first: int, last: int) -> None:
        for worker in range(first, last):
            for lo, hi in ranges[worker::workers]:
                kernel(lo, hi, sums[worker])

    run(work, [(worker, worker + 1) for worker in range(workers)], pool)
    for other in sums[1:]:
        sums[0] += other
    return sums[0] / UNIT


@njit(nogil=True, cache=True, inline="always")
def _clipped(value: np.float32, low: float, high: float) -> float:
    """The rating within the scale; what is not a number counts as the lowest."""
    if not value > low:
        return low
    return np.float64(value) if value < high else high


@njit(nogil=True, cache=True)
def add_users(
    lo: int, hi: int, indptr: NDArray[np.int64], values: NDArray[np.float32], low: float, high: float,
    out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Users by number of ratings, with their means and variances; users without ratings add nothing.

    A user adds sqrt(1/2) to the bin floor(2 log2(ratings)) of out int64[USER_BINS + 2], and to the last two sqrt(1/4)
    times the mean rating and the root mean square about it, as shares of the scale: the mean from -1 at the lowest to 1
    at the highest rating, the square from 0 to 1, largest for half of the ratings at each end.
    """
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    for u in range(lo, hi):
        count = indptr[u + 1] - indptr[u]
        if count == 0:
            continue
        total, square = 0.0, 0.0
        for j in range(indptr[u], indptr[u + 1]):
            share = (_clipped(values[j], low, high) - middle) / half
            total += share
            square += share * share
        mean = total / count
        variance = max(square / count - mean * mean, 0.0)
        bin_: int = min(int(2.0 * np.log2(np.float64(count))), USER_BINS - 1)
        out[bin_] += np.int64(np.sqrt(0.5) * UNIT)
        out[USER_BINS] += np.int64(0.5 * mean * UNIT)
        out[USER_BINS + 1] += np.int64(0.5 * min(variance, 1.0) * UNIT)


@njit(nogil=True, cache=True)
def fold(
    start: int, stop: int, items: NDArray[np.int32], values: NDArray[np.float32], low: float, high: float,
    item_level: NDArray[np.float64], item_factors: NDArray[np.float64], penalty: tuple[float, float],
    system: NDArray[np.float64],
) -> None:  # fmt: skip
    """One user's ridge regression on the items' vectors, from the entries start..stop of the ratings.

    The level and the factors are left in the last row of system float64[c + 1, c], c = r + 1. penalty: of the squared
    level and of the squared factors. item_level float64[m], item_factors float64[m, r]. O(ratings r^2 + r^3).
    """
    columns = system.shape[1]
    for a in range(columns + 1):
        for b in range(columns):
            system[a, b] = 0.0
    for j in range(start, stop):
        i = np.int64(items[j])
        target = _clipped(values[j], low, high) - item_level[i]
        system[0, 0] += 1.0
        system[columns, 0] += target
        for a in range(1, columns):
            factor = item_factors[i, a - 1]
            system[a, 0] += factor
            system[columns, a] += factor * target
            for b in range(1, a + 1):
                system[a, b] += factor * item_factors[i, b - 1]
    solve_ridge(system, penalty[0], penalty[1])


@njit(nogil=True, cache=True)
def fold_all(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    low: float, high: float, item_level: NDArray[np.float64], item_factors: NDArray[np.float64],
    penalty: tuple[float, float], user_level: NDArray[np.float32], user_factors: NDArray[np.float32],
) -> None:  # fmt: skip
    """Levels float32[n] and factors float32[n, r] of the users lo..hi; zero for users without ratings."""
    columns = item_factors.shape[1] + 1
    system = np.zeros((columns + 1, columns))
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            continue
        fold(start, stop, items, values, low, high, item_level, item_factors, penalty, system)
        user_level[u] = system[columns, 0]
        for a in range(1, columns):
            user_factors[u, a - 1] = system[columns, a]


@njit(nogil=True, cache=True)
def add_moments(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    low: float, high: float, item_level: NDArray[np.float64], item_factors: NDArray[np.float64],
    penalty: tuple[float, float], gains: NDArray[np.float64], balance: float, reach: float, longest: float,
    cap: float, used: int, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """For each item, sums of x x' and of e x over its raters, x = (1, factors), the user folded in.

    e is the rating less what the model predicts of it, at most `reach` off zero; the factors are shortened to `longest`.
    A user's vector v has, for each item i that was rated, gains[i] (balance x x', e x), of x x' the lower triangle.
    |v|^2 = sum of gains[i]^2 (balance^2 |x x'|^2 + e^2 |x|^2) over these items, and min(cap, 1 / |v|) v is added.
    out int64[m, c (c + 1) / 2 + c]. gains float64[m] >= 0. O(ratings r^2 + users r^3).
    """
    columns = item_factors.shape[1] + 1
    pairs = used * (used + 1) // 2
    system = np.zeros((columns + 1, columns))
    x = np.ones(columns)
    outer = np.empty(pairs)
    most = 0
    for u in range(lo, hi):
        most = max(most, indptr[u + 1] - indptr[u])
    gaps = np.empty(most)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            continue
        fold(start, stop, items, values, low, high, item_level, item_factors, penalty, system)
        length = 0.0
        for a in range(1, columns):
            length += system[columns, a] * system[columns, a]
        shorter = 1.0 if length <= longest * longest else longest / np.sqrt(length)
        square_x, square_outer, at = 0.0, 0.0, 0
        for a in range(columns):
            if a > 0:
                x[a] = shorter * system[columns, a]
            if a >= used:
                continue
            square_x += x[a] * x[a]
            for b in range(a + 1):
                outer[at] = x[a] * x[b] * balance
                square_outer += outer[at] * outer[at]
                at += 1
        square = 0.0
        for j in range(start, stop):
            i = np.int64(items[j])
            gap = _clipped(values[j], low, high) - item_level[i] - system[columns, 0]
            for a in range(1, columns):
                gap -= x[a] * item_factors[i, a - 1]
            gap = min(max(gap, -reach), reach)
            gaps[j - start] = gap
            square += gains[i] * gains[i] * (square_outer + gap * gap * square_x)
        if not square > _NOTHING:
            continue
        weight = min(cap, 1.0 / np.sqrt(square)) * UNIT
        for j in range(start, stop):
            i = np.int64(items[j])
            own = weight * gains[i]
            for p in range(pairs):
                out[i, p] += np.int64(own * outer[p])
            own *= gaps[j - start]
            for a in range(used):
                out[i, pairs + a] += np.int64(own * x[a])


@njit(nogil=True, cache=True)
def add_pairs(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    low: float, high: float, item_level: NDArray[np.float64], penalty: float, places: NDArray[np.int32],
    gains: NDArray[np.float64], reach: float, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Products z_i z_j of what users give two items above or below the items' and their own levels.

    z_i = gains[i] e_i, e_i at most `reach` off zero, for the items with a place (places int32[m], ascending with the
    item, or -1), i above j. |v|^2 = ((sum of z_i^2)^2 - sum of z_i^4) / 2, and v / |v| is added to the lower triangle
    of out int64[q, q]. O(sum of squares of ratings of items with a place).
    """
    most = 0
    for u in range(lo, hi):
        most = max(most, indptr[u + 1] - indptr[u])
    z = np.empty(most)
    place = np.empty(most, dtype=np.int64)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if stop - start < 2:
            continue
        total = 0.0
        for j in range(start, stop):
            total += _clipped(values[j], low, high) - item_level[items[j]]
        level = total / (stop - start + penalty)
        count = 0
        squares = 0.0
        for j in range(start, stop):
            i = np.int64(items[j])
            if places[i] < 0:
                continue
            gap = _clipped(values[j], low, high) - item_level[i] - level
            z[count] = gains[i] * min(max(gap, -reach), reach)
            place[count] = places[i]
            count += 1
        # as sum of products: a difference of large numbers would be rounded
        before, square = 0.0, 0.0
        for a in range(count):
            squares = z[a] * z[a]
            square += squares * before
            before += squares
        if not square > _NOTHING:
            continue
        weight = UNIT / np.sqrt(square)
        for a in range(count):
            own = weight * z[a]
            for b in range(a):
                out[place[a], place[b]] += np.int64(own * z[b])


@njit(nogil=True, cache=True)
def add_gaps(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    low: float, high: float, item_level: NDArray[np.float64], item_factors: NDArray[np.float64],
    penalty: tuple[float, float], spread: float, least: float, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Ratings by how far they lie above what is predicted of them, from -spread to spread, in len(out) bins.

    A user's vector is the histogram of the user's ratings; it is divided by its length or by `least`, if that is more.
    """
    columns = item_factors.shape[1] + 1
    bins = len(out)
    system = np.zeros((columns + 1, columns))
    counts = np.zeros(bins, dtype=np.int64)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            continue
        fold(start, stop, items, values, low, high, item_level, item_factors, penalty, system)
        counts[:] = 0
        for j in range(start, stop):
            i = np.int64(items[j])
            guess = item_level[i] + system[columns, 0]
            for a in range(1, columns):
                guess += system[columns, a] * item_factors[i, a - 1]
            gap = _clipped(values[j], low, high) - min(max(guess, low), high)
            place: int = min(max(int((gap / spread + 1.0) * 0.5 * bins), 0), bins - 1)
            counts[place] += 1
        square = 0.0
        for place in range(bins):
            square += np.float64(counts[place]) * np.float64(counts[place])
        weight = UNIT / max(np.sqrt(square), least)
        for place in range(bins):
            if counts[place] > 0:
                out[place] += np.int64(weight * counts[place])
