"""Boxes on shelves: which of many boxes is cheapest to join, without looking at all of them.

Boxes lie in buckets of some 16, and buckets on shelves of 16 buckets. Of both it is known between which codes their
boxes lie. Whatever joins one of them covers the gap to it, so one whose gap alone costs more than what was found is
passed over.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from kgather.udfs.recoding.loss import joined_losses, least_increases
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


class Boxes(NamedTuple):
    """Boxes on shelves, as `cheapest` looks at them.

    first, last int32[d, m]: the boxes, by their places; alive int64[m]: 0 for one that is gone; mass int64[m]: the rows
    whose loss[m] rises where the box is joined. bucket_of int64[m], start int64[buckets + 1], and the boxes of buckets
    and shelves, int32[d, buckets] and int32[d, shelves]. sums, near, far: room to work in.
    """

    first: Any
    last: Any
    alive: Any
    mass: Any
    loss: Any
    bucket_of: Any
    start: Any
    bucket_low: Any
    bucket_high: Any
    shelf_low: Any
    shelf_high: Any
    sums: Any
    near: Any
    far: Any


@njit(nogil=True, cache=True)
def boxed(low, high, alive, mass, loss, parts):  # type: ignore[no-untyped-def]
    """Boxes low, high int32[m, d] on shelves: the order int64[m] of their places, and `Boxes`. O(m d log m)."""
    order, bucket_of, start, bucket_low, bucket_high, shelf_low, shelf_high = shelved(low, high, parts)
    most = 0
    for b in range(len(start) - 1):
        most = max(most, start[b + 1] - start[b])
    return order, Boxes(
        _turned(low[order]), _turned(high[order]), alive[order], mass[order], loss[order], bucket_of, start,
        _turned(bucket_low), _turned(bucket_high), _turned(shelf_low), _turned(shelf_high), np.empty(most),
        np.empty(_SHELF), np.empty(len(shelf_low)),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _turned(boxes):  # type: ignore[no-untyped-def]
    return np.ascontiguousarray(boxes.T)


@njit(nogil=True, cache=True)
def put_box(boxes, p, low, high):  # type: ignore[no-untyped-def]
    """The box at a place becomes low..high int32[d], and its bucket and its shelf cover that, too."""
    b = boxes.bucket_of[p]
    s = b // _SHELF
    for j in range(len(low)):
        boxes.first[j, p], boxes.last[j, p] = low[j], high[j]
        boxes.bucket_low[j, b] = min(boxes.bucket_low[j, b], low[j])
        boxes.bucket_high[j, b] = max(boxes.bucket_high[j, b], high[j])
        boxes.shelf_low[j, s] = min(boxes.shelf_low[j, s], low[j])
        boxes.shelf_high[j, s] = max(boxes.shelf_high[j, s], high[j])


@njit(nogil=True, cache=True)
def cheapest(parts, low, high, weight, least, limit, home, spared, boxes):  # type: ignore[no-untyped-def]
    """The box that the box low..high int32[d] joins at the least increase of the summed loss; (increase, place), -1:
    none.

    weight: the rows of the box, whose own loss does not count. least: no box has a mass below that. limit: increases
    from here on are of no interest. home: the bucket to begin in. spared: a place that is passed over. Of equal
    increases the box with more alive is taken, then the first in this order.
    """
    n_buckets, n_shelves = boxes.bucket_low.shape[1], boxes.shelf_low.shape[1]
    best, chosen = limit, -1
    far, near, sums = boxes.far, boxes.near, boxes.sums
    least_increases(parts, low, high, weight, least, boxes.shelf_low, boxes.shelf_high, 0, n_shelves, 1e300, far)
    for turn in range(-1, n_shelves):
        begin, end = turn * _SHELF, min((turn + 1) * _SHELF, n_buckets)
        if turn < 0:
            begin, end = home, home + 1
            near[0] = 0.0
        elif far[turn] > best:
            continue
        else:
            least_increases(
                parts, low, high, weight, least, boxes.bucket_low, boxes.bucket_high, begin, end, best, near
            )  # fmt: skip
        for bucket in range(begin, end):
            if near[bucket - begin] > best or (turn >= 0 and bucket == home):
                continue
            first, beyond = boxes.start[bucket], boxes.start[bucket + 1]
            most = 0.0
            for q in range(first, beyond):
                most = max(most, (best + boxes.mass[q] * boxes.loss[q]) / (boxes.mass[q] + weight))
            joined_losses(parts, low, high, boxes.first, boxes.last, first, beyond, most, sums)
            for q in range(first, beyond):
                if boxes.alive[q] == 0 or q == spared:
                    continue
                increase = (boxes.mass[q] + weight) * sums[q - first] - boxes.mass[q] * boxes.loss[q]
                if increase < best or (increase == best and chosen >= 0 and boxes.alive[q] > boxes.alive[chosen]):
                    best, chosen = increase, q
    return best, chosen
