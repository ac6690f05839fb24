"""People as points and classes as boxes: which boxes a point may be of, and how many points lie in a box."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs.recoding._index import shelved


@njit(nogil=True, cache=True)
def best_boxes(points, wanted, known, first, last, rows, at, upto, own, found):  # type: ignore[no-untyped-def]
    """For each point the boxes that are likeliest to be its own.

    points int32[t, d], wanted int64[t] of them, known bool[t, d]: the columns that are known. first, last int32[g, d]:
    the boxes; rows int64[g]. at int64[d], upto float64: the cumulated widths of the codes of each column. own int64[t]:
    the right box. found float64[t, 3]: the chance of the likeliest box, the chance that it is the own one where several
    are as likely, and how many rows are in boxes that may be the own one.

    A box is as likely as it has rows, each spread evenly over what the box covers. O(t g d).
    """
    g, d = first.shape
    for i in wanted:
        total, best, ties, right, fitting = 0.0, -1.0, 0, False, 0
        for c in range(g):
            likely = float(rows[c])
            for j in range(d):
                if not known[i, j]:
                    continue
                a, b, v = first[c, j], last[c, j], points[i, j]
                if v < a or v > b:
                    likely = 0.0
                    break
                if a < b:
                    inside = upto[at[j] + v + 1] - upto[at[j] + v]
                    likely *= inside / (upto[at[j] + b + 1] - upto[at[j] + a])
            if likely <= 0.0:
                continue
            total += likely
            fitting += rows[c]
            if likely > best * (1 + 1e-12):
                best, ties, right = likely, 1, c == own[i]
            elif likely >= best * (1 - 1e-12):
                ties += 1
                right = right or c == own[i]
        found[i, 0] = best / total if total > 0 else 0.0
        found[i, 1] = 1.0 / ties if right else 0.0
        found[i, 2] = fitting


@njit(nogil=True, cache=True)
def rows_alike(points, known, codes, counts):  # type: ignore[no-untyped-def]
    """How many rows agree with each point in the known columns, int64[t]. O(t m d)."""
    t, d = points.shape
    found = np.zeros(t, np.int64)
    for i in range(t):
        for q in range(len(codes)):
            alike = True
            for j in range(d):
                if known[i, j] and codes[q, j] != points[i, j]:
                    alike = False
                    break
            if alike:
                found[i] += counts[q]
    return found


def points_in(
    points: NDArray[np.int32],
    counts: NDArray[np.int64],
    parts: tuple[NDArray[np.generic], ...],
    first: NDArray[np.int32],
    last: NDArray[np.int32],
) -> NDArray[np.int64]:
    """How many rows of points int32[m, d], counts int64[m] each, lie in each box, int64[g].

    parts: the losses of the columns, as kernels take them. Points lie in buckets and on shelves: what lies in a box as
    a whole is not looked into, nor is what lies beside it. O(g m / 256) at best.
    """
    index = shelved(points, points, parts)
    return np.asarray(_points_in(points, counts, first, last, *index), dtype=np.int64)


@njit(nogil=True, cache=True)
def _points_in(points, counts, first, last, order, of, start, low, high, shelf_low, shelf_high):  # type: ignore[no-untyped-def]
    n_buckets, n_shelves = len(low), len(shelf_low)
    in_bucket, in_shelf = np.zeros(n_buckets, np.int64), np.zeros(n_shelves, np.int64)
    for p in range(len(order)):
        in_bucket[of[p]] += counts[order[p]]
        in_shelf[of[p] // 16] += counts[order[p]]
    found = np.zeros(len(first), np.int64)
    for c in range(len(first)):
        for s in range(n_shelves):
            told = _relation(first, last, c, shelf_low, shelf_high, s)
            if told == 1:
                found[c] += in_shelf[s]
            if told != 0:
                continue
            for b in range(s * 16, min(s * 16 + 16, n_buckets)):
                told = _relation(first, last, c, low, high, b)
                if told == 1:
                    found[c] += in_bucket[b]
                if told != 0:
                    continue
                for p in range(start[b], start[b + 1]):
                    if _relation(first, last, c, points, points, order[p]) == 1:
                        found[c] += counts[order[p]]
    return found


@njit(nogil=True, cache=True)
def _relation(first, last, c, low, high, i):  # type: ignore[no-untyped-def]
    """1: the box i lies in the box c; -1: they have nothing in common; 0: neither."""
    inside = 1
    for j in range(first.shape[1]):
        if high[i, j] < first[c, j] or low[i, j] > last[c, j]:
            return -1
        if low[i, j] < first[c, j] or high[i, j] > last[c, j]:
            inside = 0
    return inside
