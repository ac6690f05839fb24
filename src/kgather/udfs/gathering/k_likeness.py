"""k-Likeness: a user and the k - 1 most alike, again and again (Riyana and Natwichai 2018, section 4,
algorithms 1 to 3).

While k or more users are left, one of them, the nucleus, takes the k - 1 others whose rows are nearest by the
sum of absolute differences. The fewer than k that stay over join the class to whose members together they are
nearest. Fewer than 2k users are one class.

The paper takes an arbitrary user as the nucleus; here it is the one whose numbers add up to least, so
those who rated little come first. With that order no row is nearer than the difference of two sums, and most
of a scan is saved: the nearest rows are the same.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.counting import count
from kgather.udfs._shared.options import whole
from kgather.udfs.ratings.artifacts import CodedRows, checked_artifacts, coded_rows, distances, keep_rows, take

_BLOCK = 256  # rows whose distances are found before one of them is looked at
_GONE = 8  # rows without users are cleared away when they are more than 1/8


def gather(
    table: NDArray[np.floating | np.integer], k: int, *, categorical: NDArray[np.bool_] | None = None, threads: int = 1
) -> NDArray[np.int32]:
    """The class of every user, int32[n], numbered 0..g-1; all classes have k members but for leftovers.

    table: real numbers[n, a], one row a user, one column an artifact, NaN where not rated (counts as 0).
    categorical: bool[a], columns whose numbers are codes: 0 apart when equal, 1 when not. The classes do not
    depend on the order of the rows, except for which of several equal rows goes where. threads: accepted as by
    every method, for the same result; one scan is too short to be shared. At most 8/7 (n + k)^2 / 2k distances of
    O(a) to form the classes: rows that are gone are cleared away when they are more than an eighth.

    Raises InputError if k or threads is no whole number >= 1, there are fewer than k users, or the table is
    not one of finite numbers (see `checked_artifacts`).
    """
    whole("threads", threads, 1)
    artifacts = checked_artifacts(table, k, categorical)
    n, least = len(artifacts.values), artifacts.k
    if n < 2 * least:
        return np.zeros(n, dtype=np.int32)
    rows = coded_rows(artifacts, by_width=False)
    placed, scans, of_leftovers = _classes(rows, least)
    a = len(rows.columns)
    count((scans + of_leftovers) * a, of_leftovers * a)
    groups = np.empty(n, dtype=np.int32)
    groups[rows.order] = placed
    return groups


def record_scans(n: int, k: int) -> int:
    """How many distances algorithm 1 measures to form the classes of n users as it is written, leftovers not counted:
    about n^2 / 2k. `gather` leaves out rows that are too far by their sums alone and looks at equal rows once, but
    looks at some that are gone; what it measured is told within `kgather.udfs._shared.counting.counted`.
    """
    return sum(left - 1 for left in range(n, k - 1, -k)) if n >= 2 * k else 0


def _classes(rows: CodedRows, k: int) -> tuple[NDArray[np.int32], int, int]:
    """The class of every user in the order of the rows, int32[n]; how many distances were measured to form the classes,
    and how many more for those left over.
    """
    placed = np.full(len(rows.order), -1, dtype=np.int32)
    scans = _gather(rows.columns.copy(), rows.totals.copy(), rows.categorical, rows.unit, rows.starts, k, placed)
    row_of = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    by_class = np.argsort(placed, kind="stable")
    leftovers, members = np.split(by_class, [int((placed < 0).sum())])
    of_leftovers = len(leftovers) * len(members) + len(leftovers) * (len(leftovers) - 1) // 2
    _place(
        rows.columns[:, row_of[leftovers]],
        rows.columns[:, row_of[members]],
        rows.categorical,
        rows.unit,
        k,
        leftovers,
        placed,
    )
    return placed, scans, of_leftovers


@njit(nogil=True, cache=True)
def _worse(distance: NDArray[np.int16 | np.float64], row: NDArray[np.int64], i: int, j: int) -> bool:
    return distance[i] > distance[j] or (distance[i] == distance[j] and row[i] > row[j])


@njit(nogil=True, cache=True)
def _swap(distance: NDArray[np.int16 | np.float64], row: NDArray[np.int64], i: int, j: int) -> None:
    distance[i], distance[j] = distance[j], distance[i]
    row[i], row[j] = row[j], row[i]


@njit(nogil=True, cache=True)
def _rise(distance: NDArray[np.int16 | np.float64], row: NDArray[np.int64], at: int) -> None:
    """Restores the heap (the worst on top) after its last entry was set."""
    while at > 0:
        above = (at - 1) // 2
        if not _worse(distance, row, at, above):
            return
        _swap(distance, row, at, above)
        at = above


@njit(nogil=True, cache=True)
def _sink(distance: NDArray[np.int16 | np.float64], row: NDArray[np.int64], size: int) -> None:
    """Restores the heap after its top was set."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        if below + 1 < size and _worse(distance, row, below + 1, below):
            below += 1
        if not _worse(distance, row, below, at):
            return
        _swap(distance, row, below, at)
        at = below


@njit(nogil=True, cache=True)
def _gather(
    columns: NDArray[np.int16 | np.float64],
    totals: NDArray[np.int16 | np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    starts: NDArray[np.int64],
    k: int,
    placed: NDArray[np.int32],
) -> int:
    """Algorithms 1 and 2 up to the leftovers, which stay at -1; returns how many distances were measured.

    columns and totals are used up. Arguments as in CodedRows; placed int32[n], all -1.
    """
    a, rows = columns.shape
    left = np.diff(starts)
    following = starts[:-1].copy()
    near = np.empty(min(k, rows) + 1, dtype=columns.dtype)  # a heap of the nearest rows
    near_row = np.empty(len(near), dtype=np.int64)
    block = np.empty(_BLOCK, dtype=columns.dtype)
    point = np.empty(a, dtype=columns.dtype)
    first, gone, remaining = 0, 0, len(placed)
    group = 0
    scans = 0
    while remaining >= k:
        while left[first] == 0:
            first += 1
            gone -= 1
        if gone * _GONE > rows - first:
            rows = keep_rows(columns, totals, left, following, first, rows)
            first, gone = 0, 0
        own = min(left[first], k)
        gone += take(first, own, group, left, following, placed)
        need = k - own
        size, held = 0, 0  # rows in the heap, users in these rows
        for j in range(a):
            point[j] = columns[j, first]
        lo = first + 1
        while need > 0 and lo < rows:
            if held >= need and totals[lo] - totals[first] >= near[0]:
                break  # sums rise, so all further rows are as far or farther
            hi = min(lo + _BLOCK, rows)
            distances(columns, categorical, unit, point, lo, hi, block)
            scans += hi - lo
            least = block[0]
            for i in range(1, hi - lo):
                least = min(least, block[i])
            if held < need or least < near[0]:
                for i in range(hi - lo):
                    row = lo + i
                    if (held >= need and block[i] >= near[0]) or left[row] == 0:
                        continue
                    near[size] = block[i]
                    near_row[size] = row
                    _rise(near, near_row, size)
                    size += 1
                    held += left[row]
                    while held - left[near_row[0]] >= need:  # enough without the worst
                        held -= left[near_row[0]]
                        size -= 1
                        _swap(near, near_row, 0, size)
                        _sink(near, near_row, size)
            lo = hi
        if need > 0:
            spared = held - need  # the worst row gives only what is still needed
            gone += take(near_row[0], left[near_row[0]] - spared, group, left, following, placed)
            for entry in range(1, size):
                gone += take(near_row[entry], left[near_row[entry]], group, left, following, placed)
        remaining -= k
        group += 1
    return scans


@njit(nogil=True, cache=True)
def _place(
    leftovers: NDArray[np.int16 | np.float64],
    members: NDArray[np.int16 | np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    k: int,
    places: NDArray[np.int64],
    placed: NDArray[np.int32],
) -> None:
    """Algorithm 3: every leftover joins the class with the least sum of distances to its members.

    leftovers [a, r] and members [a, n - r], class after class of k, hold the rows; places int64[r] says where
    the class of each leftover is written in placed int32[n]. O(a r n).
    """
    a, count = leftovers.shape
    groups = members.shape[1] // k
    point = np.empty(a, dtype=leftovers.dtype)
    block = np.empty(max(k, count), dtype=leftovers.dtype)
    total = np.empty(groups, dtype=np.float64)
    for t in range(count):
        for j in range(a):
            point[j] = leftovers[j, t]
        for group in range(groups):
            distances(members, categorical, unit, point, group * k, group * k + k, block)
            total[group] = 0.0
            for i in range(k):
                total[group] += block[i]
        # those who joined before count as members
        distances(leftovers, categorical, unit, point, 0, t, block)
        for i in range(t):
            total[placed[places[i]]] += block[i]
        best = 0
        for group in range(1, groups):
            if total[group] < total[best]:
                best = group
        placed[places[t]] = best
