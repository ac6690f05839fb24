"""The first classes: grown from seeds by the combination whose box is cheapest to join."""

import numpy as np
from numba import njit

from kgather.udfs._shared.hashing import keyed
from kgather.udfs.recoding._index import boxed, cheapest


@njit(nogil=True, cache=True)
def seeding_order(m, seed):  # type: ignore[no-untyped-def]
    """A random order of m combinations, int64[m], that hangs on the seed alone."""
    keys = np.empty(m, np.int64)
    for i in range(m):
        keys[i] = np.int64(keyed(seed, i, 0) >> np.uint64(1))
    return np.argsort(keys, kind="mergesort")


@njit(nogil=True, cache=True)
def grow_classes(low, high, counts, parts, k, seed):  # type: ignore[no-untyped-def]
    """Classes of k rows or more from combinations low and high int32[m, d] with counts int64[m].

    A combination of k rows or more is a class of its own; others grow by the cheapest join until they have k rows. Rows
    of a combination may be cut. Returns pieces (class, combination, rows), int64[p] each, and the number of classes;
    the class is -1 for fewer than k rows that are left over. O(m^2 d) at worst; the index spares most of it.
    """
    m, d = low.shape
    total = counts.sum()
    left_of = counts.copy()
    piece_class, piece_of, piece_rows = [np.int64(0)], [np.int64(0)], [np.int64(0)]
    piece_class.pop()
    piece_of.pop()
    piece_rows.pop()
    found = np.int64(0)
    box_low, box_high = np.empty(d, np.int32), np.empty(d, np.int32)
    place_of = np.full(m, -1, np.int64)
    built, living = 0, m
    mass, loss = np.zeros(m, np.int64), np.zeros(m)  # what is joined is in no class yet
    order, boxes = boxed(low[:1], high[:1], counts[:1], mass[:1], loss[:1], parts)
    for seeded in seeding_order(m, seed):
        if left_of[seeded] == 0 or (left_of[seeded] < k and total < k):
            continue
        if living * 2 < built or built == 0:
            ids = np.flatnonzero(left_of)
            order, boxes = boxed(low[ids], high[ids], left_of[ids], mass[ids], loss[ids], parts)
            order = ids[order]
            for p in range(len(order)):
                place_of[order[p]] = p
            built, living = len(order), len(order)
        p = place_of[seeded]
        box_low[:] = low[seeded]
        box_high[:] = high[seeded]
        grown = boxes.alive[p]
        piece_class.append(found)
        piece_of.append(seeded)
        piece_rows.append(grown)
        boxes.alive[p] = 0
        left_of[seeded] = 0
        living -= 1
        while grown < k:
            _, q = cheapest(parts, box_low, box_high, 1, 0, 1e300, boxes.bucket_of[p], -1, boxes)
            taken = min(boxes.alive[q], k - grown)
            piece_class.append(found)
            piece_of.append(order[q])
            piece_rows.append(taken)
            boxes.alive[q] -= taken
            left_of[order[q]] -= taken
            if boxes.alive[q] == 0:
                living -= 1
            np.minimum(box_low, low[order[q]], box_low)
            np.maximum(box_high, high[order[q]], box_high)
            grown += taken
        total -= grown
        found += np.int64(1)
    for t in range(m):
        if left_of[t] > 0:
            piece_class.append(np.int64(-1))
            piece_of.append(np.int64(t))
            piece_rows.append(left_of[t])
    return np.array(piece_class), np.array(piece_of), np.array(piece_rows), found
