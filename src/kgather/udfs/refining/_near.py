"""Where the search of `refine` looks for groups to enter: users and groups near every user of a block.

A candidate is always a user, and her group at the time of the search is looked at.
"""

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs.gathering.blocks import cut
from kgather.udfs.refining._chains import Block, gap

_KNOWN_UP_TO = 4096  # users of a block whose distances are all kept (128 MB)
_TILE = 4
_CELL = 512  # users that are compared with each other, in cells cut in so many ways: of 12,500 users
_TURNS = 3  # in ten columns, 3/4 of the nearest eight are found, at an eighth of the cost
_CHUNK = 512
_GLANCE = 32


@njit(nogil=True, cache=True)
def all_gaps(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The squared distances of all pairs of up to 4,096 rows, float64[b, b]; of more, float64[0, 0].

    O(b^2 d). Each pair is computed once, so the table is symmetric.
    """
    b = len(rows)
    if b > _KNOWN_UP_TO:
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
def _four_gaps(rows: NDArray[np.float64], lo: int, j: int, gaps: NDArray[np.float64]) -> None:
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


def near_users(rows: NDArray[np.float64], count: int) -> NDArray[np.int32]:
    """So many users near each, int32[b, count], in any order; -1 where there are fewer.

    Users are compared inside cells of at most 512, which are cut in three ways: a near one across the border
    of all three is missed. O(b d), in float32: the search tolerates that. An exact search by scipy's cKDTree takes half
    as long in 3 columns, and 9 times as long in 11 (benchmarks/trees.py).
    """
    near, kept = _nobody(rows, count)
    if count == 0:
        return near
    shrink = _shrink(rows)
    for turn in range(_TURNS):
        moved = rows.copy()
        order, edges = cut(moved, _CELL, turn=turn)
        points, names = _shrunk(moved, shrink), order.astype(np.int32)
        for lo, hi in pairwise(edges.tolist()):
            _enter_all(points[lo:hi], order[lo:hi], points[lo:hi], names[lo:hi], kept, near)
    return near


def near_groups(block: Block, groups: int, count: int) -> NDArray[np.int32]:
    """A user of each of the `count` groups whose centroids are nearest to each user, int32[b, count]; -1 where there
    are fewer.

    The user is the member nearest to the centroid, who is likely to stay. O(b groups d).
    """
    rows = block.rows
    names = block.users["before"][block.groups["head"][:groups]]
    near, kept = _nobody(rows, count)
    shrink = _shrink(rows)
    _enter_all(_shrunk(rows, shrink), np.arange(len(rows)), _shrunk(block.centre[:groups], shrink), names, kept, near)
    return near


def _nobody(rows: NDArray[np.float64], count: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Places for so many near ones of each, int32[b, count], and their distances, float32[b, count]."""
    shape = (len(rows), count)
    return np.full(shape, -1, dtype=np.int32), np.full(shape, np.inf, dtype=np.float32)


def _shrink(rows: NDArray[np.float64]) -> float:
    """A factor that brings all values to at most 1, so that no square overflows."""
    largest = float(np.abs(rows).max())
    return 1.0 / largest if largest > 0.0 else 1.0


def _shrunk(rows: NDArray[np.float64], shrink: float) -> NDArray[np.float32]:
    """The rows as float32, with columns of zeros up to a multiple of four."""
    b, d = rows.shape
    points = np.zeros((b, -(-d // 4) * 4), dtype=np.float32)
    points[:, :d] = rows * shrink
    return points


def _enter_all(
    points: NDArray[np.float32],
    order: NDArray[np.int64],
    others: NDArray[np.float32],
    names: NDArray[np.int32],
    kept: NDArray[np.float32],
    near: NDArray[np.int32],
) -> None:
    """Enters the names int32[c] of the others float32[c, d] that are nearest to the points float32[p, d].

    Point i is user order[i]; near and kept float32[b, m], their distances, are those of all users.
    """
    distance = np.empty(_CHUNK, dtype=np.float32)
    for start in range(0, len(names), _CHUNK):  # a chunk stays in the cache while all points pass
        chunk = np.ascontiguousarray(others[start : start + _CHUNK].T)
        _enter(points, order, chunk, names[start : start + _CHUNK], distance, kept, near)


@njit(nogil=True, cache=True)
def _enter(
    points: NDArray[np.float32],
    order: NDArray[np.int64],
    chunk: NDArray[np.float32],
    names: NDArray[np.int32],
    distance: NDArray[np.float32],
    kept: NDArray[np.float32],
    near: NDArray[np.int32],
) -> None:
    """Enters those of a chunk float32[d, c] that are nearest to the points. distance float32[>= c]: scratch."""
    size = len(names)
    for i in range(len(points)):
        _to_chunk(chunk, points, i, distance)
        first = i * size // len(points)
        for part in range(2):
            lo, hi = (first, size) if part == 0 else (0, first)
            _keep_nearest(distance, lo, hi, names, order[i], kept, near)


# Rows are named by their numbers here: to slice them counts references, which costs more than a short loop.


@njit(nogil=True, cache=True, inline="always")
def _to_chunk(chunk: NDArray[np.float32], points: NDArray[np.float32], i: int, distance: NDArray[np.float32]) -> None:
    """distance[j] = squared distance of point i to column j of the chunk float32[d, c]."""
    size = chunk.shape[1]
    for j in range(size):
        distance[j] = np.float32(0.0)
    for a in range(0, points.shape[1], 4):
        p0, p1, p2, p3 = points[i, a], points[i, a + 1], points[i, a + 2], points[i, a + 3]
        for j in range(size):
            d0, d1, d2, d3 = chunk[a, j] - p0, chunk[a + 1, j] - p1, chunk[a + 2, j] - p2, chunk[a + 3, j] - p3
            distance[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@njit(nogil=True, cache=True, inline="always")
def _keep_nearest(
    distance: NDArray[np.float32],
    lo: int,
    hi: int,
    names: NDArray[np.int32],
    user: int,
    kept: NDArray[np.float32],
    near: NDArray[np.int32],
) -> None:
    """Enters those of the names lo..hi that are nearer to the user than the farthest of those kept so far; none twice,
    and not herself.
    """
    limit, at = _farthest(kept, user)
    for start in range(lo, hi, _GLANCE):
        stop = min(start + _GLANCE, hi)
        nearer = np.int32(0)
        for j in range(start, stop):  # in vector registers, and nearly always none is
            nearer += np.int32(distance[j] < limit)
        if nearer == 0:
            continue
        for j in range(start, stop):
            if distance[j] < limit and names[j] != user and not _has(near, user, names[j]):
                kept[user, at], near[user, at] = distance[j], names[j]
                limit, at = _farthest(kept, user)


@njit(nogil=True, cache=True, inline="always")
def _has(near: NDArray[np.int32], user: int, name: int) -> bool:
    found = False
    for place in range(near.shape[1]):
        found = found or near[user, place] == name
    return found


@njit(nogil=True, cache=True, inline="always")
def _farthest(kept: NDArray[np.float32], user: int) -> tuple[float, int]:
    """The largest distance kept for the user, and its place."""
    limit, at = kept[user, 0], 0
    for place in range(1, kept.shape[1]):
        if kept[user, place] > limit:
            limit, at = kept[user, place], place
    return limit, at
