"""How far queries on a generalized table are off (Riyana and Natwichai 2018, section 5.2.2, equation 7).

A query counts the users who fulfil conditions on `a` artifacts, or averages a number over them. A condition asks for
ratings of v to v + width; several are joined by OR or by AND. In the original a user fulfils it by the rating given, in
the release by what is shown of the user: a set or range fulfils a condition if some value in it does. The error is
|x - x0| / x with x the answer of the release and x0 that of the original: equation 7 divides by the inferred value x.

The paper looks at all conditions with an answer; here `queries` of them are drawn by keyed hashes, each from its own
number, so that the result depends on the seed alone. For OR, the values are drawn among those that occur in the column
and leave room for the range; for AND, they are the ratings of a user drawn among those who rated all of the artifacts,
as most other combinations have no answer at all. How the paper picks its conditions is not said.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import real, seed_number, whole
from kgather.udfs._shared.workers import run

_MOST_VALUES = 64  # bits of a mask
_QUERIES_A_TASK = 64
_ONE = np.uint64(1)


def domain_of(table: np.ndarray) -> np.ndarray:
    """The values that conditions can ask for, float64[v] ascending: those of the table, at most 64 of them.

    table: real numbers[n, a], NaN where not rated. Of more than 64 different values, as a scale without steps has, 64
    evenly spaced ones stand for them. O(n a log(n a)). Raises InputError if the table holds no value.
    """
    table = np.asarray(table, dtype=np.float64)
    values = np.unique(table[~np.isnan(table)])
    if len(values) == 0:
        msg = "there are no ratings to ask for."
        raise InputError(msg)
    if not np.isfinite(values).all():
        msg = "the artifact table holds values that are not finite numbers."
        raise InputError(msg)
    return values if len(values) <= _MOST_VALUES else np.linspace(values[0], values[-1], _MOST_VALUES)


def masks_of_ranges(low: np.ndarray, high: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Which values of the domain lie in each range, one bit each, uint64 of the shape of `low`.

    low, high: real numbers, NaN where nothing is shown (no bit). A range that lies between two values of the domain, as
    a mean does, stands for the nearest. O(n a log v).
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    between = (domain[1:] + domain[:-1]) / 2
    shown = ~(np.isnan(low) | np.isnan(high))
    first = np.searchsorted(domain, np.where(shown, low, 0.0) - 1e-6)
    last = np.searchsorted(domain, np.where(shown, high, 0.0) + 1e-6, side="right")
    nearest = np.searchsorted(between, np.where(shown, (low + high) / 2, 0.0))
    empty = first >= last
    first, last = np.where(empty, nearest, first), np.where(empty, nearest + 1, last)
    # bits first..last - 1; a shift by 64 would be no shift
    ones = np.where(
        last >= _MOST_VALUES,
        np.uint64(0xFFFFFFFFFFFFFFFF),
        (_ONE << np.minimum(last, _MOST_VALUES - 1).astype(np.uint64)) - _ONE,
    )
    masks = ones & ~((_ONE << np.minimum(first, _MOST_VALUES - 1).astype(np.uint64)) - _ONE)
    return np.where(shown, masks, np.uint64(0)).astype(np.uint64)


def masks_of_sets(table: np.ndarray, groups: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """What generalization to sets shows: for each user the values of all members of the group, uint64[n, a].

    table: real numbers[n, a], NaN where not rated. groups: int[n], numbered from 0. O(n a log v).
    """
    own = masks_of_ranges(table, table, domain)
    shown = np.zeros((int(groups.max(initial=-1)) + 1, own.shape[1]), dtype=np.uint64)
    np.bitwise_or.at(shown, groups, own)
    return shown[groups]


def query_errors(
    truth: np.ndarray,
    shown: np.ndarray,
    target: np.ndarray,
    domain: np.ndarray,
    *,
    attributes: int = 1,
    width: float = 0,
    conjunction: bool = False,
    queries: int = 1000,
    seed: int = 0,
    shown_target: np.ndarray | None = None,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The relative errors of counts and of averages, float64[queries] each, NaN where a query has no answer.

    truth, shown: uint64[n, a] as from `masks_of_ranges` or `masks_of_sets`; truth has at most one bit a cell. target:
    real numbers[n], what is averaged (a personal attribute, a rating), NaN where it is not known; shown_target: what
    the release shows of it, where that is something else. attributes: how many artifacts a query asks for. width: of
    the range of ratings asked for, in the unit of the ratings (0: one value). conjunction: AND instead of OR.

    O(queries n attributes) in `threads` threads, the result being the same for any number.
    Raises InputError where the shapes do not fit or a number is out of its range.
    """
    truth, shown = np.ascontiguousarray(truth, np.uint64), np.ascontiguousarray(shown, np.uint64)
    inferred = target if shown_target is None else shown_target
    if truth.ndim != 2 or shown.shape != truth.shape or len(target) != len(truth) or len(inferred) != len(truth):
        msg = "truth and shown must be tables of the same shape, the target one number for each of their rows."
        raise InputError(msg)
    if truth.size == 0:
        msg = "there are no users or no artifacts to ask about."
        raise InputError(msg)
    attributes = whole("attributes", attributes, 1, truth.shape[1])
    queries = whole("queries", queries, 1)
    threads = whole("threads", threads, 1)
    width = real("width", width, 0)
    conditions, room = _conditions(np.asarray(domain, dtype=np.float64), width)
    present = np.bitwise_or.reduce(truth, axis=0)
    present = np.where(present & room, present & room, present)
    counts, averages = np.full(queries, np.nan), np.full(queries, np.nan)
    kernel = partial(
        _ask, truth, shown, np.asarray(target, np.float64), np.asarray(inferred, np.float64), present,
        conditions, attributes, conjunction, seed64(seed_number(seed)), counts, averages,
    )  # fmt: skip
    ranges = [(lo, min(lo + _QUERIES_A_TASK, queries)) for lo in range(0, queries, _QUERIES_A_TASK)]
    if threads == 1:
        run(kernel, ranges, None)
    else:
        with ThreadPoolExecutor(threads) as pool:
            run(kernel, ranges, pool)
    return counts, averages


def _conditions(domain: np.ndarray, width: float) -> tuple[np.ndarray, np.uint64]:
    """The values that fulfil a condition, by the value it starts from, uint64[v], and the values that leave room.

    A range that would reach beyond the highest value is moved down, so that all are equally wide.
    """
    starts = np.maximum(np.minimum(domain, domain[-1] - width), domain[0])
    first = np.searchsorted(domain, starts - 1e-9)
    last = np.searchsorted(domain, starts + width + 1e-9, side="right")
    masks = np.zeros(len(domain), dtype=np.uint64)
    room = np.uint64(0)
    for code in range(len(domain)):
        for other in range(first[code], last[code]):
            masks[code] |= _ONE << np.uint64(other)
        if domain[code] + width <= domain[-1] + 1e-9:
            room |= _ONE << np.uint64(code)
    return masks, room


@njit(nogil=True, cache=True)
def _ask(
    truth: np.ndarray,
    shown: np.ndarray,
    target: np.ndarray,
    inferred: np.ndarray,
    present: np.ndarray,
    conditions: np.ndarray,
    attributes: int,
    conjunction: bool,
    seed: np.uint64,
    counts: np.ndarray,
    averages: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """Asks queries lo..hi - 1 of the original and of the release."""
    n, a = truth.shape
    order = np.empty(a, dtype=np.int64)
    asked = np.empty(attributes, dtype=np.uint64)
    zero = np.uint64(0)
    for q in range(lo, hi):
        for j in range(a):
            order[j] = j
        for j in range(attributes):  # a shuffle of as many as are needed
            other = j + int(keyed(seed, q, j) % np.uint64(a - j))
            order[j], order[other] = order[other], order[j]
        possible = True
        if conjunction:
            anchor = _rater_of_all(truth, order, attributes, int(keyed(seed, q, a) % np.uint64(n)))
            possible = anchor >= 0
            for j in range(attributes):
                if possible:
                    asked[j] = conditions[_lowest_bit(truth[anchor, order[j]])]
        else:
            for j in range(attributes):
                among = present[order[j]]
                if among == zero:
                    asked[j] = zero
                else:
                    pick = int(keyed(seed, q, a + 1 + j) % np.uint64(_count_bits(among)))
                    asked[j] = conditions[_bit_at(among, pick)]
        if not possible:
            continue
        actual, actual_sum, actual_known = 0, 0.0, 0
        found, found_sum, found_known = 0, 0.0, 0
        for u in range(n):
            real_hits, shown_hits = 0, 0
            for j in range(attributes):
                column = order[j]
                real_hits += (truth[u, column] & asked[j]) != zero
                shown_hits += (shown[u, column] & asked[j]) != zero
            if real_hits == attributes or (not conjunction and real_hits > 0):
                actual += 1
                if not np.isnan(target[u]):
                    actual_sum += target[u]
                    actual_known += 1
            if shown_hits == attributes or (not conjunction and shown_hits > 0):
                found += 1
                if not np.isnan(inferred[u]):
                    found_sum += inferred[u]
                    found_known += 1
        if actual > 0 and found > 0:
            counts[q] = abs(found - actual) / found
        if actual_known > 0 and found_known > 0 and found_sum != 0.0:
            answer = found_sum / found_known
            averages[q] = abs(answer - actual_sum / actual_known) / abs(answer)


@njit(nogil=True, cache=True)
def _rater_of_all(truth: np.ndarray, order: np.ndarray, attributes: int, start: int) -> int:
    """The first user from `start` on, around, who rated all of the chosen artifacts; -1 if there is none."""
    n = truth.shape[0]
    for step in range(n):
        u = (start + step) % n
        rated = True
        for j in range(attributes):
            if truth[u, order[j]] == np.uint64(0):
                rated = False
                break
        if rated:
            return u
    return -1


@njit(nogil=True, cache=True)
def _lowest_bit(mask: np.uint64) -> int:
    place = 0
    while place < 63 and (mask >> np.uint64(place)) & np.uint64(1) == np.uint64(0):
        place += 1
    return place


@njit(nogil=True, cache=True)
def _count_bits(mask: np.uint64) -> int:
    count = 0
    for place in range(64):
        if (mask >> np.uint64(place)) & np.uint64(1) != np.uint64(0):
            count += 1
    return count


@njit(nogil=True, cache=True)
def _bit_at(mask: np.uint64, nth: int) -> int:
    """The place of the nth set bit, counted from 0."""
    for place in range(64):
        if (mask >> np.uint64(place)) & np.uint64(1) != np.uint64(0):
            if nth == 0:
                return place
            nth -= 1
    return 63
