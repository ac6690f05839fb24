"""Sums over users to which no user adds a vector longer than 1, whatever the ratings are.

The bound is made here, not assumed: the vector v of a user is computed from the user's own ratings and from numbers
that are public or released, its length is computed, and min(cap, 1 / |v|) v is added. It depends on no other user, so
with or without one user the sum differs by that user's vector alone.

Sums are exact, in whole numbers. A term is multiplied by 2^30 and cut off towards zero, which makes no component
larger, and int64 adds without rounding: the difference that a user makes is that user's vector, not that and the
rounding of all others, and the result is the same for any number of threads. Only the length of the one vector is
rounded: it is a sum of at most 2^32 squares in double precision, relative error below 2^32 * 2^-53 < 1e-6, and
`SENSITIVITY` covers that. No sum overflows below 2^31 users.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.preferences._gram import LANES, add_rows, solve_ridge

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
    """The sum over all users, float64[shape], of what kernel(lo, hi, out) adds to the flat `out` for the users lo..hi.

    indptr int64[n + 1]: a user's work. One int64 array of that shape for each thread.
    """
    ranges = row_ranges(indptr, threads)
    workers = max(min(threads, len(ranges)), 1)
    sums = [np.zeros(math.prod(shape), dtype=np.int64) for _ in range(workers)]

    def work(first: int, last: int) -> None:
        for worker in range(first, last):
            for lo, hi in ranges[worker::workers]:
                kernel(lo, hi, sums[worker])

    run(work, [(worker, worker + 1) for worker in range(workers)], pool)
    for other in sums[1:]:
        sums[0] += other
    return sums[0].reshape(shape) / UNIT


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
def clip_to_scale(values: NDArray[np.float32], low: float, high: float) -> NDArray[np.float32]:
    """The ratings within the scale: the same array where all are, else a copy."""
    for value in values:
        if not (value >= low and value <= high):
            out = np.empty_like(values)
            for j in range(len(values)):
                out[j] = _clipped(values[j], low, high)
            return out
    return values


@njit(nogil=True, cache=True)
def _fold(
    start: int, stop: int, items: NDArray[np.int32], values: NDArray[np.float32], design: NDArray[np.float32],
    level: NDArray[np.float32], penalty: tuple[float, float], gram: NDArray[np.float32],
    system: NDArray[np.float64], tag: tuple[np.int8, ...],
) -> None:  # fmt: skip
    """One user's ridge regression on the items' vectors, from the entries start..stop of the ratings.

    The level and the factors are left in the last row of system float64[c + 1, c]. penalty: of the squared level and of
    the squared factors. design, gram, tag: see `_gram`. O(ratings c^2 + c^3).
    """
    for a in range(system.shape[0]):
        for b in range(system.shape[1]):
            system[a, b] = 0.0
    add_rows(gram, design, level, items, values, start, stop, 1.0, system, tag)
    solve_ridge(system, penalty[0], penalty[1])


@njit(nogil=True, cache=True)
def add_moments(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    design: NDArray[np.float32], level: NDArray[np.float32], penalty: tuple[float, float], gains: NDArray[np.float64],
    balance: float, reach: float, longest: float, cap: float, out: NDArray[np.int64],
    tag: tuple[np.int8, ...], used_tag: tuple[np.int8, ...],
) -> None:  # fmt: skip
    """For each item, sums of x x' and of e x over its raters, x = (1, factors) cut to len(used_tag) columns.

    The user is folded in on all columns, factors are shortened to `longest`; e is the rating less what the model
    predicts of it, at most `reach` off zero. A user's vector v has, for each item i that was rated,
    gains[i] (balance x x', e x), of x x' the lower triangle. |v|^2 = sum over these items of
    gains[i]^2 (balance^2 |x x'|^2 + e^2 |x|^2), and min(cap, 1 / |v|) v is added to
    out int64[m * (c (c + 1) / 2 + c)], c = len(used_tag). gains float64[m] >= 0.
    A vector that is not finite adds nothing. O(ratings r^2 + users r^3).
    """
    columns, used = len(tag), len(used_tag)
    width = (columns + LANES - 1) // LANES * LANES
    pairs = used * (used + 1) // 2
    gram = np.zeros((columns + 1) * width, dtype=np.float32)
    system = np.zeros((columns + 1, columns))
    x = np.ones(columns)
    outer = np.empty(pairs)
    scaled = np.empty(used)
    most = 0
    for u in range(lo, hi):
        most = max(most, indptr[u + 1] - indptr[u])
    gaps = np.empty(most)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            continue
        _fold(start, stop, items, values, design, level, penalty, gram, system, tag)
        own_level = system[columns, 0]
        length = 0.0
        for a in range(1, columns):
            length += system[columns, a] * system[columns, a]
        shorter = 1.0 if length <= longest * longest else longest / np.sqrt(length)
        for a in range(1, columns):
            x[a] = shorter * system[columns, a]
        square_x, square_outer, at = 0.0, 0.0, 0
        for a in range(used):
            square_x += x[a] * x[a]
            for b in range(a + 1):
                outer[at] = x[a] * x[b] * balance
                square_outer += outer[at] * outer[at]
                at += 1
        square = 0.0
        for j in range(start, stop):
            i = np.uint64(items[j])
            row = i * np.uint64(width)
            gap = np.float64(values[j]) - level[i] - own_level
            for a in range(1, columns):
                gap -= x[a] * design[row + np.uint64(a)]
            gap = min(max(gap, -reach), reach)
            gaps[j - start] = gap
            square += gains[i] * gains[i] * (square_outer + gap * gap * square_x)
        if not square > _NOTHING:
            continue
        weight = min(cap, 1.0 / np.sqrt(square)) * UNIT
        for p in range(pairs):
            outer[p] *= weight
        for a in range(used):
            scaled[a] = weight * x[a]
        for j in range(start, stop):
            i = np.uint64(items[j])
            gain = gains[i]
            place = i * np.uint64(pairs + used)
            # no component is above 2^30, so 32 bits hold it, which processors convert several at a time
            for p in range(pairs):
                out[place + np.uint64(p)] += np.int32(gain * outer[p])
            gain *= gaps[j - start]
            for a in range(used):
                out[place + np.uint64(pairs + a)] += np.int32(gain * scaled[a])


@njit(nogil=True, cache=True)
def add_pairs(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    level: NDArray[np.float32], penalty: float, places: NDArray[np.int32], q: int, gains: NDArray[np.float64],
    reach: float, out: NDArray[np.int64],
) -> None:  # fmt: skip
    """Products z_i z_j of what users give two items above or below the items' and their own levels.

    z_i = gains[i] e_i, e_i at most `reach` off zero, for the items with a place (places int32[m], ascending with the
    item, or -1), i above j. |v|^2 = sum of z_i^2 z_j^2, and v / |v| is added to the lower triangle of
    out int64[q * q]. O(sum of squares of numbers of ratings of items with a place).
    """
    most = 0
    for u in range(lo, hi):
        most = max(most, indptr[u + 1] - indptr[u])
    z = np.empty(most)
    place = np.empty(most, dtype=np.uint64)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if stop - start < 2:
            continue
        total = 0.0
        for j in range(start, stop):
            total += values[j] - level[np.uint32(items[j])]
        own_level = total / (stop - start + penalty)
        count = 0
        before, square = 0.0, 0.0
        for j in range(start, stop):
            i = np.uint32(items[j])
            if places[i] < 0:
                continue
            gap = np.float64(values[j]) - level[i] - own_level
            gap = gains[i] * min(max(gap, -reach), reach)
            z[count] = gap
            place[count] = np.uint64(places[i])
            count += 1
            square += gap * gap * before
            before += gap * gap
        if not square > _NOTHING:
            continue
        weight = UNIT / np.sqrt(square)
        for a in range(count):
            own = weight * z[a]
            row = place[a] * np.uint64(q)
            for b in range(a):
                out[row + place[b]] += np.int32(own * z[b])


@njit(nogil=True, cache=True)
def add_gaps(
    lo: int, hi: int, indptr: NDArray[np.int64], items: NDArray[np.int32], values: NDArray[np.float32],
    design: NDArray[np.float32], level: NDArray[np.float32], penalty: tuple[float, float], low: float, high: float,
    spread: float, least: float, out: NDArray[np.int64], user_level: NDArray[np.float32],
    user_factors: NDArray[np.float32], tag: tuple[np.int8, ...],
) -> None:  # fmt: skip
    """Ratings by how far they lie above what is predicted, within low..high, from -spread to spread in len(out) bins.

    A user's vector is the histogram of the user's ratings; it is divided by its length or by `least`, if that is more.
    The users' levels float32[n] and factors float32[n, r] are kept, too; those of users without ratings stay as they
    are.
    """
    columns = len(tag)
    width = (columns + LANES - 1) // LANES * LANES
    bins = len(out)
    gram = np.zeros((columns + 1) * width, dtype=np.float32)
    system = np.zeros((columns + 1, columns))
    counts = np.zeros(bins, dtype=np.int64)
    for u in range(lo, hi):
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            continue
        _fold(start, stop, items, values, design, level, penalty, gram, system, tag)
        user_level[u] = system[columns, 0]
        for a in range(1, columns):
            user_factors[u, a - 1] = system[columns, a]
        counts[:] = 0
        for j in range(start, stop):
            i = np.uint64(items[j])
            row = i * np.uint64(width)
            guess = system[columns, 0] + level[i]
            for a in range(1, columns):
                guess += system[columns, a] * design[row + np.uint64(a)]
            share = (values[j] - min(max(guess, low), high)) / spread
            # comparisons are false for what is not a number, which then goes to the first bin
            place = 0
            if share >= 1.0:
                place = bins - 1
            elif share > -1.0:
                place = min(int((share + 1.0) * 0.5 * bins), bins - 1)
            counts[place] += 1
        square = 0.0
        for place in range(bins):
            square += np.float64(counts[place]) * np.float64(counts[place])
        weight = UNIT / max(np.sqrt(square), least)
        for place in range(bins):
            if counts[place] > 0:
                out[place] += np.int64(weight * counts[place])
