"""Boxes on shelves: which of many boxes is cheapest to join, without looking at all of them.

Boxes lie in buckets of some 16, and buckets on shelves of 16 buckets. Of both it is known between which codes their
boxes lie. Whatever joins one of them covers the gap to it, so one whose gap alone costs more than what was found is
passed over.
"""

import numpy as np
from numba import njit

from kgather.udfs.recoding.loss import joined_loss, reached_loss
from kgather.udfs.recoding.mondrian import _gather

_BUCKET = 16
_SHELF = 16


@njit(nogil=True, cache=True)
def shelved(low, high, parts):  # type: ignore[no-untyped-def]
    """An index of boxes int32[m, d]: (order, bucket of each place, where buckets start, boxes of buckets and shelves).

    Boxes are looked for in the order int64[m], by their places in it. O(m d log m).
    """
    m, d = low.shape
    bucket = np.zeros(m, np.int32)
    _gather(low.copy(), np.ones(m, np.int64), np.arange(m), parts, _BUCKET // 2, _BUCKET, bucket)
    order = np.argsort(bucket, kind="mergesort")
    of_place = bucket[order].astype(np.int64)
    n_buckets = of_place[m - 1] + 1
    n_shelves = (n_buckets + _SHELF - 1) // _SHELF
    start = np.zeros(n_buckets + 1, np.int64)
    for p in range(m):
        start[of_place[p] + 1] += 1
    for b in range(n_buckets):
        start[b + 1] += start[b]
    bucket_low, bucket_high = np.empty((n_buckets, d), np.int32), np.empty((n_buckets, d), np.int32)
    shelf_low, shelf_high = np.empty((n_shelves, d), np.int32), np.empty((n_shelves, d), np.int32)
    for b in range(n_buckets):
        bucket_low[b] = low[order[start[b]]]
        bucket_high[b] = high[order[start[b]]]
        for p in range(start[b], start[b + 1]):
            widen(bucket_low, bucket_high, b, low, high, order[p])
        s = b // _SHELF
        if b % _SHELF == 0:
            shelf_low[s] = bucket_low[b]
            shelf_high[s] = bucket_high[b]
        else:
            widen(shelf_low, shelf_high, s, bucket_low, bucket_high, b)
    return order, of_place, start, bucket_low, bucket_high, shelf_low, shelf_high


@njit(nogil=True, cache=True)
def widen(low, high, i, first, last, q):  # type: ignore[no-untyped-def]
    """Makes the box i of low, high cover the box q of first, last too."""
    for j in range(low.shape[1]):
        if first[q, j] < low[i, j]:
            low[i, j] = first[q, j]
        if last[q, j] > high[i, j]:
            high[i, j] = last[q, j]


@njit(nogil=True, cache=True)
def cheapest(  # type: ignore[no-untyped-def]
    parts, low, high, i, weight, limit, home, spared, first, last, alive, mass, loss, start, bucket_low, bucket_high,
    shelf_low, shelf_high
):  # fmt: skip
    """The box that box i of low, high joins at the least increase of the summed loss; (increase, place), -1: none.

    weight: the rows of box i, whose own loss does not count. limit: increases from here on are of no interest.
    home: the bucket to begin in. spared: a place that is passed over. The others describe the index: first and last
    int32[m, d] the boxes by place, alive int64[m] (0: gone), mass int64[m] the rows whose loss[m] rises with the join.
    Of equal increases the box with more alive is taken, then the first in this order.
    """
    kind, at, size, flat, cap, bound = parts
    n_buckets, n_shelves = len(bucket_low), len(shelf_low)
    best, chosen = limit, -1
    for turn in range(-1, n_shelves):
        begin, end = turn * _SHELF, min((turn + 1) * _SHELF, n_buckets)
        if turn < 0:
            begin, end = home, home + 1
        else:
            total = reached_loss(
                kind, at, size, flat, cap, bound, low, high, i, shelf_low, shelf_high, turn, best / weight
            )
            if total * weight > best:
                continue
        for bucket in range(begin, end):
            if turn >= 0:
                if bucket == home:
                    continue
                total = reached_loss(
                    kind, at, size, flat, cap, bound, low, high, i, bucket_low, bucket_high, bucket, best / weight
                )
                if total * weight > best:
                    continue
            for q in range(start[bucket], start[bucket + 1]):
                if alive[q] == 0 or q == spared:
                    continue
                before = mass[q] * loss[q]
                most = (best + before) / (mass[q] + weight)
                total = joined_loss(kind, at, size, flat, cap, bound, low, high, i, first, last, q, most)
                if total > most:
                    continue
                increase = (mass[q] + weight) * total - before
                if increase < best or (increase == best and chosen >= 0 and alive[q] > alive[chosen]):
                    best, chosen = increase, q
    return best, chosen
