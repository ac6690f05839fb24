"""Classes that are merged until enough people of a population look like them, or few enough of these are in the table.

Sources: Sweeney, k-Anonymity (2002), for k-map; Nergiz, Atzori and Clifton, Hiding the presence of individuals from
shared databases (2007), for delta-presence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs.recoding._index import shelved
from kgather.udfs.recoding.loss import Losses
from kgather.udfs.recoding.models import partners

Boxes = tuple[NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True)
class Population:
    """What is asked of classes: codes int32[m, d] and people int64[m] of a population's combinations, how many of its
    people each class must match at least, and between which bounds the share of these in the table must lie."""

    codes: NDArray[np.int32]
    people: NDArray[np.int64]
    k: int = 1
    least: float = 0.0
    most: float = 1.0

    def fails(self, matched: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which classes do not keep it: matched and rows int64[g], the people of each in the population and table."""
        share = rows / np.maximum(matched, 1)
        return np.asarray(
            (matched < np.maximum(self.k, 1)) | (share > self.most + 1e-9) | (share < self.least - 1e-9), dtype=np.bool_
        )


def merge_until_matched(
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    group: NDArray[np.int64],
    rows: NDArray[np.int64],
    losses: Losses,
    asked: Population,
    reach: Callable[[NDArray[np.int32], NDArray[np.int32]], Boxes],
) -> NDArray[np.int64]:
    """The class of every piece, int64[p], once classes are merged until the population matches each as asked.

    low, high int32[p, d]: the boxes of pieces. reach: from the boxes of classes to those of what they show. Smallest
    first, a class that fails is merged with the one that costs least to join. Rounds at least halve failing classes;
    each counts the population in every box. Raises InputError where all rows as one class do not keep what is asked.
    """
    group = np.asarray(np.unique(group, return_inverse=True)[1], dtype=np.int64)
    while True:
        g = int(group.max()) + 1
        box_low = np.full((g, low.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
        box_high = np.full((g, low.shape[1]), -1, dtype=np.int32)
        np.minimum.at(box_low, group, low)
        np.maximum.at(box_high, group, high)
        first, last = reach(box_low, box_high)
        same = np.unique(np.concatenate([first, last], axis=1), axis=0, return_inverse=True)[1].ravel()
        if int(same.max()) + 1 < g:  # classes that show the same are one to whoever reads them
            group = np.asarray(same[group], dtype=np.int64)
            continue
        size = np.bincount(group, weights=rows, minlength=g).astype(np.int64)
        matched = matches(first, last, asked.codes, asked.people, losses)
        fails = asked.fails(matched, size)
        if not fails.any():
            return group
        if g == 1:
            msg = (
                "the population does not hold what is asked of it: all rows together match too few people of it, or "
                "their share in it is out of bounds. Ask for less, or give a population that the table is part of."
            )
            raise InputError(msg)
        asking = np.flatnonzero(fails)
        asking = asking[np.argsort(size[asking], kind="stable")]
        near = partners(box_low, box_high, size, asking, losses.parts)
        into, taken = np.arange(g), np.zeros(g, dtype=bool)
        for number, c in enumerate(asking.tolist()):
            other = next((each for each in near[number].tolist() if each >= 0 and not taken[each]), -1)
            if not taken[c] and other >= 0:
                taken[c] = taken[other] = True
                into[max(c, other)] = min(c, other)
        group = np.asarray(np.unique(into[group], return_inverse=True)[1], dtype=np.int64)


def matches(
    low: NDArray[np.int32], high: NDArray[np.int32], codes: NDArray[np.int32], people: NDArray[np.int64], losses: Losses
) -> NDArray[np.int64]:
    """How many people lie in each box low..high int32[g, d]; int64[g]. codes int32[m, d], people int64[m].

    O(g m d) at worst; an index of the codes spares what lies outside of a box, or wholly inside.
    """
    if len(codes) == 0:
        return np.zeros(len(low), dtype=np.int64)
    return np.asarray(_matches(low, high, np.ascontiguousarray(codes), people, losses.parts), dtype=np.int64)


@njit(nogil=True, cache=True)
def _side(low, high, c, first, last, i):  # type: ignore[no-untyped-def]
    """0: the box i of first, last lies outside of box c; 1: partly inside; 2: inside."""
    found = 2
    for j in range(low.shape[1]):
        if last[i, j] < low[c, j] or first[i, j] > high[c, j]:
            return 0
        if first[i, j] < low[c, j] or last[i, j] > high[c, j]:
            found = 1
    return found


@njit(nogil=True, cache=True)
def _matches(low, high, codes, people, parts):  # type: ignore[no-untyped-def]
    order, _, start, bucket_low, bucket_high, shelf_low, shelf_high = shelved(codes, codes, parts)
    points = codes[order]
    upto = np.zeros(len(order) + 1, np.int64)
    for p in range(len(order)):
        upto[p + 1] = upto[p] + people[order[p]]
    n_buckets = len(bucket_low)
    found = np.zeros(len(low), np.int64)
    for c in range(len(low)):
        for s in range(len(shelf_low)):
            side = _side(low, high, c, shelf_low, shelf_high, s)
            begin, end = s * 16, min((s + 1) * 16, n_buckets)
            if side == 2:
                found[c] += upto[start[end]] - upto[start[begin]]
            if side != 1:
                continue
            for b in range(begin, end):
                side = _side(low, high, c, bucket_low, bucket_high, b)
                if side == 2:
                    found[c] += upto[start[b + 1]] - upto[start[b]]
                if side != 1:
                    continue
                for p in range(start[b], start[b + 1]):
                    if _side(low, high, c, points, points, p) == 2:
                        found[c] += people[order[p]]
    return found
