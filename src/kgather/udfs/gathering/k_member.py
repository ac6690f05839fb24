"""k-Member: classes grown one record at a time by the least loss (Byun, Kamra, Bertino and Li 2007; the
rival of Riyana and Natwichai 2018, section 5).

The next class starts with the record farthest from the one that started the last class, and takes, until it
has k members, the record that widens its ranges least. The loss of a class is its size times the sum over
columns of its range divided by the column's range in the whole table; a categorical column counts 0 as long as
the members agree, else 1. The fewer than k that stay over join the class whose loss rises least.

The cost of every record for the growing class is kept and corrected in the columns that were widened, block
by block of records, and only in blocks that may hold the cheapest one. The records taken are the same.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.counting import count
from kgather.udfs._shared.options import whole
from kgather.udfs.ratings.artifacts import CodedRows, checked_artifacts, coded_rows, distances, keep_rows, take

_BLOCK = 256  # records whose costs are corrected together
_GONE = 8  # rows with no record left are cleared away when they are more than 1/8


def gather(
    table: NDArray[np.floating | np.integer], k: int, *, categorical: NDArray[np.bool_] | None = None, threads: int = 1
) -> NDArray[np.int32]:
    """The class of every user, int32[n], numbered 0..g-1; all classes have k members but for leftovers.

    table: real numbers[n, a], one row a user, one column an artifact, NaN where not rated (counts as 0).
    categorical: bool[a], columns whose numbers are codes of categories without order. Records are in the order
    of the sum of their numbers, each as a share of its column's range: the first class starts with the record
    farthest from the first one, and of equally good records the first is taken. So the classes do not depend
    on the order of the rows, except for which of several equal rows goes where. threads: accepted as by every
    method, for the same result; one scan is too short to be shared. A record is looked at O(n^2) times in all, at most
    8/7 (k + 1) / k n (n + k) / 2 + n: once more for each class than `record_scans` counts, and records that are gone
    are cleared away when they are more than an eighth.

    Raises InputError if k or threads is no whole number >= 1, there are fewer than k users, or the table is
    not one of finite numbers (see `checked_artifacts`).
    """
    whole("threads", threads, 1)
    artifacts = checked_artifacts(table, k, categorical)
    n = len(artifacts.values)
    rows = coded_rows(artifacts, by_width=True)
    placed, _, looked, of_leftovers = _classes(rows, artifacts.k)
    count(looked + of_leftovers, of_leftovers)
    groups = np.empty(n, dtype=np.int32)
    groups[rows.order] = placed
    return groups


def record_scans(n: int, k: int) -> int:
    """How many records the algorithm looks at, as it is written, to form the classes of n users, leftovers not counted:
    n (n + 1) / 2 where k divides n. `gather` leaves out blocks and looks at equal records once, but looks at all
    records once more for each class; what it looked at is told within `kgather.udfs._shared.counting.counted`.
    """
    return sum(left for left in range(n, n % k, -1)) if n >= k else 0


def _classes(rows: CodedRows, k: int) -> tuple[NDArray[np.int32], int, int, int]:
    """The class of every user in the order of the rows, int32[n]; how many records were looked at to form the classes,
    how many numbers of them, and how many more numbers for those left over.
    """
    placed = np.full(len(rows.order), -1, dtype=np.int32)
    classes = len(placed) // k
    low, high = np.empty((classes, len(rows.columns))), np.empty((classes, len(rows.columns)))
    scans, looked = _gather(
        rows.columns.copy(), rows.categorical, rows.unit, rows.far, rows.starts, k, placed, low, high
    )
    row_of = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    leftovers = np.flatnonzero(placed < 0)
    points = rows.columns.T[row_of[leftovers]].astype(np.float64)
    _place(points, rows.categorical, float(rows.unit), k, low, high, leftovers, placed)
    return placed, scans, looked, points.size * classes


@njit(nogil=True, cache=True)
def _start(
    columns: NDArray[np.int16 | np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    far: float,
    seed: NDArray[np.int16 | np.float64],
    rows: int,
    used: NDArray[np.int16 | np.float64],
    from_seed: NDArray[np.int16 | np.float64],
    cost: NDArray[np.int16 | np.float64],
    least: NDArray[np.int16 | np.float64],
) -> None:
    """Distances and costs of all rows for a class that holds the seed alone.

    used [rows]: 0 for rows with records left, else `far`. Sets from_seed (-1 for used rows), cost (`far` for
    used rows), and for each block of rows the least cost.
    """
    for block in range((rows + _BLOCK - 1) // _BLOCK):
        lo, hi = block * _BLOCK, min((block + 1) * _BLOCK, rows)
        part, apart, barred = cost[lo:hi], from_seed[lo:hi], used[lo:hi]
        distances(columns, categorical, unit, seed, lo, hi, part)
        for i in range(hi - lo):
            apart[i] = part[i] if barred[i] == 0 else -1
            part[i] = max(part[i], barred[i])
        smallest = far
        for i in range(hi - lo):
            smallest = min(smallest, part[i])
        least[block] = smallest


@njit(nogil=True, cache=True)
def _farthest(from_seed: NDArray[np.int16 | np.float64], rows: int) -> int:
    """The first row of the largest distance."""
    best, best_block = from_seed[0], 0
    for lo in range(0, rows, _BLOCK):
        part = from_seed[lo : min(lo + _BLOCK, rows)]
        largest = part[0]
        for i in range(1, len(part)):
            largest = max(largest, part[i])
        if largest > best:
            best, best_block = largest, lo
    row = best_block
    while from_seed[row] != best:
        row += 1
    return row


@njit(nogil=True, cache=True)
def _correct(
    columns: NDArray[np.int16 | np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    far: float,
    lo: int,
    hi: int,
    floor: NDArray[np.int16 | np.float64],
    top: NDArray[np.int16 | np.float64],
    known_floor: NDArray[np.int16 | np.float64],
    known_top: NDArray[np.int16 | np.float64],
    cost: NDArray[np.int16 | np.float64],
) -> tuple[float, int]:
    """Corrects the costs of the rows lo:hi from the known bounds of the class to its bounds now; returns the
    least, and how many numbers were looked at.

    floor, top, known_floor and known_top [a]; the known ones are set to the others.
    """
    part = cost[lo:hi]
    looked = hi - lo
    for j in range(columns.shape[0]):
        column = columns[j, lo:hi]
        if categorical[j]:
            if known_floor[j] == known_top[j] and floor[j] != top[j]:
                old = known_floor[j]
                looked += hi - lo
                for i in range(hi - lo):
                    if column[i] != old:
                        part[i] -= unit
        else:
            if top[j] > known_top[j]:
                old, new = known_top[j], top[j]
                looked += hi - lo
                for i in range(hi - lo):
                    part[i] -= max(min(column[i], new), old) - old
            if floor[j] < known_floor[j]:
                old, new = known_floor[j], floor[j]
                looked += hi - lo
                for i in range(hi - lo):
                    part[i] -= old - min(max(column[i], new), old)
        known_floor[j], known_top[j] = floor[j], top[j]
    smallest = far
    for i in range(hi - lo):
        smallest = min(smallest, part[i])
    return smallest, looked


@njit(nogil=True, cache=True)
def _gather(
    columns: NDArray[np.int16 | np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    far: float,
    starts: NDArray[np.int64],
    k: int,
    placed: NDArray[np.int32],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[int, int]:
    """Forms the classes; leftovers stay at -1. Returns how often records and their numbers were looked at.

    columns are used up. Arguments as in CodedRows; placed int32[n], all -1. low and high float64[g, a] receive
    the bounds of the classes, in a categorical column the smallest and largest code.
    """
    a, rows = columns.shape
    dtype = columns.dtype
    left = np.diff(starts)
    following = starts[:-1].copy()
    used = np.zeros(rows, dtype=dtype)
    cost, from_seed = np.empty(rows, dtype=dtype), np.empty(rows, dtype=dtype)
    seed, floor, top = columns[:, 0].copy(), np.empty(a, dtype=dtype), np.empty(a, dtype=dtype)
    # for each block of rows: the bounds of the class and their widths when its costs were last corrected, and
    # the least of them
    blocks = (rows + _BLOCK - 1) // _BLOCK
    known_floor, known_top = np.empty((blocks, a), dtype=dtype), np.empty((blocks, a), dtype=dtype)
    known_width, least = np.empty(blocks, dtype=dtype), np.empty(blocks, dtype=dtype)
    _start(columns, categorical, unit, far, seed, rows, used, from_seed, cost, least)
    scans, looked = rows, rows * a
    gone, remaining = 0, len(placed)
    group = 0
    while remaining >= k:
        if gone * _GONE > rows:
            rows = keep_rows(columns, from_seed, left, following, 0, rows)
            blocks = (rows + _BLOCK - 1) // _BLOCK
            used[:rows] = 0
            gone = 0
        row = _farthest(from_seed, rows)
        for j in range(a):
            seed[j] = floor[j] = top[j] = columns[j, row]
        _start(columns, categorical, unit, far, seed, rows, used, from_seed, cost, least)
        scans += rows
        looked += rows * (a + 1)
        for block in range(blocks):
            known_floor[block], known_top[block] = seed, seed
            known_width[block] = 0
        width = known_width[0]
        need = k
        chosen = 0
        while need > 0:
            # No cost falls by more than the class was widened, so most blocks need no look. The block chosen
            # last comes first, to have a low cost to compare with.
            best, best_block = far, -1
            for visit in range(-1, blocks):
                block = chosen if visit < 0 else visit
                if visit == chosen:
                    continue
                bound = least[block] - (width - known_width[block])
                if best_block >= 0 and (bound > best or (bound == best and block > best_block)):
                    continue
                lo, hi = block * _BLOCK, min((block + 1) * _BLOCK, rows)
                smallest, corrected = _correct(
                    columns,
                    categorical,
                    unit,
                    far,
                    lo,
                    hi,
                    floor,
                    top,
                    known_floor[block],
                    known_top[block],
                    cost,
                )
                scans += hi - lo
                looked += corrected
                known_width[block], least[block] = width, smallest
                if best_block < 0 or smallest < best or (smallest == best and block < best_block):
                    best, best_block = smallest, block
            chosen = best_block
            lo, hi = chosen * _BLOCK, min((chosen + 1) * _BLOCK, rows)
            row = lo
            while cost[row] != best:
                row += 1
            looked += row - lo + 1
            # a record that widens nothing changes no cost: the further ones of the block are taken at once
            stop = hi if best <= 0 else row + 1
            for i in range(row, stop):
                if need > 0 and cost[i] <= best:
                    taken = min(left[i], need) if best <= 0 else 1
                    need -= taken
                    if take(i, taken, group, left, following, placed):
                        cost[i] = used[i] = far
                        from_seed[i] = -1
                        gone += 1
            if best > 0:
                for j in range(a):
                    value = columns[j, row]
                    if categorical[j]:
                        if floor[j] == top[j] and value != floor[j]:
                            width += unit
                    else:
                        width += max(value, top[j]) - top[j] + floor[j] - min(value, floor[j])
                    floor[j], top[j] = min(floor[j], value), max(top[j], value)
        for j in range(a):
            low[group, j], high[group, j] = floor[j], top[j]
        remaining -= k
        group += 1
    return scans, looked


@njit(nogil=True, cache=True)
def _place(
    points: NDArray[np.float64],
    categorical: NDArray[np.bool_],
    unit: float,
    k: int,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    places: NDArray[np.int64],
    placed: NDArray[np.int32],
) -> None:
    """Every leftover joins the class whose loss rises least; bounds and sizes follow at once.

    points float64[r, a]; places int64[r] says where the class of each is written in placed. O(r g a).
    """
    groups, a = low.shape
    size = np.full(groups, k)
    for t in range(len(points)):
        best, best_rise = 0, 0.0
        for group in range(groups):
            width, wider = 0.0, 0.0
            for j in range(a):
                value = points[t, j]
                floor, top = low[group, j], high[group, j]
                if categorical[j]:
                    width += unit * (floor != top)
                    wider += unit * (floor != top or value != floor)
                else:
                    width += top - floor
                    wider += max(top, value) - min(floor, value)
            rise = (size[group] + 1) * wider - size[group] * width
            if group == 0 or rise < best_rise:
                best, best_rise = group, rise
        size[best] += 1
        for j in range(a):
            low[best, j] = min(low[best, j], points[t, j])
            high[best, j] = max(high[best, j], points[t, j])
        placed[places[t]] = best
