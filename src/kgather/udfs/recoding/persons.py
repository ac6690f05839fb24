"""Rows of people in groups: cut a group's rows into classes in each of which everybody of the group has a row.

Where people have several rows, k rows that look the same may be one person's, and which classes a person's rows are in
may be true of nobody else. So people are put into groups first. The rows of a group are then cut as Mondrian cuts rows
(see `mondrian`), but only where each member has rows on both sides: all members have the same set of classes then, and
each class has rows of all of them.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs.recoding._codes import checked_codes, checked_counts
from kgather.udfs.recoding.loss import Losses, interval_loss


def boxes(codes: NDArray[np.int32], person: NDArray[np.int64], n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The least and the greatest codes of n people, int32[n, d] each. person: int64[m], whose row each of codes is."""
    low = np.full((n, codes.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full((n, codes.shape[1]), -1, dtype=np.int32)
    np.minimum.at(low, person, codes)
    np.maximum.at(high, person, codes)
    return low, high


def part_rows(
    codes: NDArray[np.integer],
    counts: NDArray[np.integer],
    person: NDArray[np.integer],
    group: NDArray[np.integer],
    losses: Losses,
) -> NDArray[np.int64]:
    """The class of every combination, int64[m], numbered from 0.

    codes: whole numbers[m, d], one row for each different combination of a person. counts: int[m], its rows. person:
    int[m] from 0, whose it is. group: int[m] from 0, that of the person. losses: those of the d columns.

    A part is cut in the column of the largest loss, where its rows are divided most evenly; where that is not possible,
    in the next one. O(m d log m) where cuts are even. Nothing is random, and nothing hangs on how people are numbered.
    Raises InputError where the shapes do not fit, or a person is in two groups.
    """
    rows = checked_codes(codes, losses)
    weight = checked_counts(counts, len(rows), 1)
    who, of = np.asarray(person, dtype=np.int64), np.asarray(group, dtype=np.int64)
    if who.shape != (len(rows),) or of.shape != (len(rows),) or who.min() < 0 or of.min() < 0:
        msg = "each combination needs one person and one group, numbered from 0."
        raise InputError(msg)
    of_person = np.full(int(who.max()) + 1, -1, dtype=np.int64)
    of_person[who] = of
    if (of_person[who] != of).any():
        msg = "a person can be in one group only."
        raise InputError(msg)
    # Groups lie together. Within one, the order of the codes: nothing hangs on how people are numbered.
    order = np.lexsort((*rows.T[::-1], of)).astype(np.int64)
    found = np.empty(len(rows), dtype=np.int64)
    _part_rows(rows[order], weight[order], who[order], of[order], order, losses.parts, len(of_person), found)
    return found


@njit(nogil=True, cache=True)
def _part_rows(rows, weight, who, of, order, parts, people, found):  # type: ignore[no-untyped-def]
    """Writes the class of each row of int32[m, d], ordered by group, to where `order` says."""
    kind, at, size, flat, cap, bound = parts
    m, d = rows.shape
    starts, ends = [np.int64(0)], [np.int64(0)]
    starts.pop()
    ends.pop()
    end = m
    while end > 0:  # the first group comes out of the stack first
        start = end - 1
        while start > 0 and of[start - 1] == of[end - 1]:
            start -= 1
        starts.append(np.int64(start))
        ends.append(np.int64(end))
        end = start
    least, greatest = np.empty(people, np.int32), np.empty(people, np.int32)
    span = np.empty(d)
    classes = 0
    while len(starts) > 0:
        start, end = starts.pop(), ends.pop()
        for j in range(d):
            low, high = rows[start, j], rows[start, j]
            for i in range(start, end):
                low, high = min(low, rows[i, j]), max(high, rows[i, j])
            span[j] = interval_loss(kind, at, size, flat, cap, bound, j, low, high) if high > low else -1.0
        column, border = -1, -1
        for j in np.argsort(-span, kind="mergesort"):
            if span[j] < 0:
                break
            border = _border(rows, weight, who, start, end, j, least, greatest)
            if border >= 0:
                column = j
                break
        if column < 0:
            for i in range(start, end):
                found[order[i]] = classes
            classes += 1
            continue
        middle = _divide(rows, weight, who, order, start, end, column, border)
        starts.append(middle)
        ends.append(end)
        starts.append(start)
        ends.append(middle)


@njit(nogil=True, cache=True)
def _border(rows, weight, who, start, end, j, least, greatest):  # type: ignore[no-untyped-def]
    """The last code of the lower side of the most even cut with rows of everybody on both sides; -1: there is none."""
    for i in range(start, end):
        least[who[i]] = np.iinfo(np.int32).max
        greatest[who[i]] = -1
    for i in range(start, end):
        p = who[i]
        least[p] = min(least[p], rows[i, j])
        greatest[p] = max(greatest[p], rows[i, j])
    first, last = least[who[start]], greatest[who[start]]
    for i in range(start, end):
        first = max(first, least[who[i]])
        last = min(last, greatest[who[i]])
    if first >= last:
        return -1
    column = rows[start:end, j].copy()
    ascending = np.argsort(column, kind="mergesort")
    total = np.int64(0)
    for i in range(start, end):
        total += weight[i]
    best, border = total * 2 + 1, -1
    below = np.int64(0)
    for place in range(end - start - 1):
        code = column[ascending[place]]
        below += weight[start + ascending[place]]
        if code == column[ascending[place + 1]] or code < first or code >= last:
            continue
        if abs(2 * below - total) < best:
            best, border = abs(2 * below - total), code
    return border


@njit(nogil=True, cache=True)
def _divide(rows, weight, who, order, start, end, j, border):  # type: ignore[no-untyped-def]
    """Moves the rows up to the border to the front; returns where the others begin."""
    i, last = start, end
    while i < last:
        if rows[i, j] <= border:
            i += 1
            continue
        last -= 1
        if i != last:
            for a in range(rows.shape[1]):
                kept = rows[i, a]
                rows[i, a] = rows[last, a]
                rows[last, a] = kept
            weight[i], weight[last] = weight[last], weight[i]
            who[i], who[last] = who[last], who[i]
            order[i], order[last] = order[last], order[i]
    return i
