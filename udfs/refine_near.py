"""The nearest users of every user of a block: where the search of `refine` looks for groups to enter."""

import numpy as np
from numba import njit

from kgather.udfs.blocks import cut_rows
from kgather.udfs.refine_chains import gap

_KNOWN_UP_TO = 2048  # users of a block whose distances are all kept (32 MB)
_WIDE = 128  # columns from which on keeping them pays
_TILE = 4
_CHUNK = 4096
_GLANCE = 32


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
def near_users(rows: np.ndarray, gaps: np.ndarray, m: int, cell: int, turns: int) -> np.ndarray:
    """The m nearest other users of each, int32[b, m] in any order, -1 where there are fewer.

    Where the distances are not known, users are compared inside cells of that many at most, which are cut in
    `turns` ways. O(b cell d turns), in float32: the search tolerates a neighbour missed or a wrong order.
    """
    b = len(rows)
    near = np.full((b, m), -1, dtype=np.int32)
    kept = np.full((b, m), np.inf, dtype=np.float32)
    every = np.arange(b)
    if len(gaps) > 0:
        names = every.astype(np.int32)
        shrink = 1.0 / max(gaps.max(), 1e-300)
        distance = np.empty(b, dtype=np.float32)
        for i in range(b):
            for j in range(b):
                distance[j] = np.float32(gaps[i, j] * shrink)
            _keep_nearest(distance, names, i, kept, near)
        return near
    shrink = _shrink(rows)
    nothing = np.empty(0, dtype=np.int64)
    edges = np.empty(b + 2, dtype=np.int64)
    for turn in range(turns):
        moved, order = rows.copy(), every.copy()
        cells = cut_rows(moved, order, nothing, cell, turn, edges)
        points = _shrunk(moved, shrink)
        for c in range(cells):
            lo, hi = edges[c], edges[c + 1]
            columns = np.ascontiguousarray(points[lo:hi].T)
            _fill(points, lo, hi, order, columns, order[lo:hi].astype(np.int32), kept, near)
    return near


@njit(nogil=True, cache=True)
def near_groups(rows: np.ndarray, centre: np.ndarray, names: np.ndarray, m: int) -> np.ndarray:
    """A user of each of the m groups of the nearest centroids, int32[b, m] in any order, -1 where there are
    fewer; the user of group g, centroid float64[g, d], is names int32[g]. O(b g d).
    """
    b = len(rows)
    near = np.full((b, m), -1, dtype=np.int32)
    kept = np.full((b, m), np.inf, dtype=np.float32)
    shrink = _shrink(rows)
    columns = np.ascontiguousarray(_shrunk(centre, shrink).T)
    _fill(_shrunk(rows, shrink), 0, b, np.arange(b), columns, names, kept, near)
    return near


@njit(nogil=True, cache=True)
def _fill(
    points: np.ndarray,
    lo: int,
    hi: int,
    order: np.ndarray,
    columns: np.ndarray,
    names: np.ndarray,
    kept: np.ndarray,
    near: np.ndarray,
) -> None:
    """Enters the names int32[c] of the nearest columns float32[d, c] for the points lo..hi, point i is user
    order[i].
    """
    distance = np.empty(_CHUNK, dtype=np.float32)
    for start in range(0, len(names), _CHUNK):  # a chunk stays in the cache while all points pass
        chunk = columns[:, start : start + _CHUNK].copy()
        names_of_chunk = names[start : start + _CHUNK]
        for i in range(lo, hi):
            _to_chunk(chunk, points, i, distance)
            _keep_nearest(distance, names_of_chunk, order[i], kept, near)


@njit(nogil=True, cache=True)
def _shrink(rows: np.ndarray) -> float:
    """A factor that brings all values to at most 1, so that no square overflows."""
    largest = 0.0
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            largest = max(largest, abs(rows[i, a]))
    return 1.0 / largest if largest > 0.0 else 1.0


@njit(nogil=True, cache=True)
def _shrunk(rows: np.ndarray, shrink: float) -> np.ndarray:
    """The rows as float32, with columns of zeros up to a multiple of four."""
    b, d = rows.shape
    points = np.zeros((b, -(-d // 4) * 4), dtype=np.float32)
    for i in range(b):
        for a in range(d):
            points[i, a] = np.float32(rows[i, a] * shrink)
    return points


# The rows are named by their numbers: slices would count references, which costs more than a short loop.


@njit(nogil=True, cache=True)
def _to_chunk(chunk: np.ndarray, points: np.ndarray, i: int, distance: np.ndarray) -> None:
    """distance[j] = squared distance of point i to column j of the chunk."""
    size = chunk.shape[1]
    for j in range(size):
        distance[j] = np.float32(0.0)
    for a in range(0, points.shape[1], 4):
        p0, p1, p2, p3 = points[i, a], points[i, a + 1], points[i, a + 2], points[i, a + 3]
        for j in range(size):
            d0, d1, d2, d3 = chunk[a, j] - p0, chunk[a + 1, j] - p1, chunk[a + 2, j] - p2, chunk[a + 3, j] - p3
            distance[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@njit(nogil=True, cache=True)
def _keep_nearest(distance: np.ndarray, names: np.ndarray, i: int, kept: np.ndarray, near: np.ndarray) -> None:
    """Enters those of the names that are nearer to user i than the farthest of the users kept, but none twice
    and not herself.
    """
    limit, at = _farthest(kept, i)
    for start in range(0, len(names), _GLANCE):
        stop = min(start + _GLANCE, len(names))
        nearer = np.int32(0)
        for j in range(start, stop):  # in vector registers, and nearly always none is
            nearer += np.int32(distance[j] < limit)
        if nearer == 0:
            continue
        for j in range(start, stop):
            if distance[j] < limit and names[j] != i and not _has(near, i, names[j]):
                kept[i, at], near[i, at] = distance[j], names[j]
                limit, at = _farthest(kept, i)


@njit(nogil=True, cache=True)
def _has(near: np.ndarray, i: int, user: int) -> bool:
    for place in range(near.shape[1]):
        if near[i, place] == user:
            return True
    return False


@njit(nogil=True, cache=True)
def _farthest(kept: np.ndarray, i: int) -> tuple[float, int]:
    """The largest number of row i and its place."""
    limit, at = kept[i, 0], 0
    for place in range(1, kept.shape[1]):
        if kept[i, place] > limit:
            limit, at = kept[i, place], place
    return limit, at
