"""The nearest users of every user of a block: where the search of `refine` looks for groups to enter."""

import numpy as np
from numba import njit

from kgather.udfs.refine_chains import gap

_KNOWN_UP_TO = 2048  # users of a block whose distances are all kept (32 MB)
_WIDE = 48  # columns from which on keeping them pays
_COMPARED = 6144  # users that each one is compared with; of more, a sample stands for the rest
_TILE = 4


@njit(nogil=True, cache=True)
def all_gaps(rows: np.ndarray) -> np.ndarray:
    """The squared distances of all pairs, float64[b, b], for wide rows of few users; else float64[0, 0].

    O(b^2 d). Each pair is computed once, so the table is symmetric.
    """
    b, d = rows.shape
    if d < _WIDE or b > _KNOWN_UP_TO:
        return np.empty((0, 0))
    gaps = np.zeros((b, b))
    for lo in range(0, b, _TILE):
        hi = min(lo + _TILE, b)
        for j in range(lo + 1, b):
            if hi - lo == _TILE and j >= hi:
                _four_gaps(rows, lo, j, gaps)
            else:
                for i in range(lo, min(hi, j)):
                    gaps[i, j] = gap(rows, i, rows, j)
            for i in range(lo, min(hi, j)):
                gaps[j, i] = gaps[i, j]
    return gaps


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _four_gaps(rows: np.ndarray, lo: int, j: int, gaps: np.ndarray) -> None:
    """The distances of row j to the rows lo to lo + 3, with row j read once."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for a in range(rows.shape[1]):
        value = rows[j, a]
        d0, d1, d2, d3 = rows[lo, a] - value, rows[lo + 1, a] - value, rows[lo + 2, a] - value, rows[lo + 3, a] - value
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
    gaps[lo, j], gaps[lo + 1, j], gaps[lo + 2, j], gaps[lo + 3, j] = s0, s1, s2, s3


@njit(nogil=True, cache=True)
def nearest(rows: np.ndarray, gaps: np.ndarray, m: int) -> np.ndarray:
    """The m nearest other users of each, int32[b, m], nearest first, -1 where there are fewer.

    Of equally near ones the first compared stay. In a block of more than 6,144 users everyone is compared
    with a sample of that many. O(b min(b, 6144) d), in float32: the search tolerates a wrong order.
    """
    b, d = rows.shape
    step = (b + _COMPARED - 1) // _COMPARED
    others = (b + step - 1) // step
    near = np.full((b, m), -1, dtype=np.int32)
    distance = np.empty(others, dtype=np.float32)
    kept = np.empty(m, dtype=np.float32)
    columns, shrink = _columns(rows, step, others)
    point = np.empty(d, dtype=np.float32)
    for i in range(b):
        if len(gaps) > 0:
            for j in range(others):
                distance[j] = np.float32(gaps[i, j * step] * shrink * shrink)
        else:
            for a in range(d):
                point[a] = np.float32(rows[i, a] * shrink)
            _to_all(columns, point, distance)
        found = 0
        for j in range(others):
            if found == m and distance[j] >= kept[m - 1]:
                continue
            if j * step == i:
                continue
            place = min(found, m - 1)
            found = min(found + 1, m)
            while place > 0 and kept[place - 1] > distance[j]:
                kept[place] = kept[place - 1]
                near[i, place] = near[i, place - 1]
                place -= 1
            kept[place] = distance[j]
            near[i, place] = j * step
    return near


@njit(nogil=True, cache=True)
def _columns(rows: np.ndarray, step: int, others: int) -> tuple[np.ndarray, float]:
    """Every step-th row as float32[d, others], and the factor they are multiplied by: no square overflows."""
    largest = 0.0
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            largest = max(largest, abs(rows[i, a]))
    shrink = 1.0 / largest if largest > 0.0 else 1.0
    columns = np.empty((rows.shape[1], others), dtype=np.float32)
    for j in range(others):
        for a in range(rows.shape[1]):
            columns[a, j] = np.float32(rows[j * step, a] * shrink)
    return columns, shrink


@njit(nogil=True, cache=True)
def _to_all(columns: np.ndarray, point: np.ndarray, distance: np.ndarray) -> None:
    """distance[j] = squared distance of the point to column j."""
    d, others = columns.shape
    for j in range(others):
        distance[j] = np.float32(0.0)
    for a in range(d):
        value = point[a]
        for j in range(others):
            difference = columns[a, j] - value
            distance[j] += difference * difference
