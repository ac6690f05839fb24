"""Mondrian over mixed columns: cut the widest column at its median until no class can be cut.

Source: LeFevre, DeWitt and Ramakrishnan, Mondrian multidimensional k-anonymity (2006), strict partitioning: rows of
equal codes stay together. Columns are codes with losses (see `loss`), so a category's codes are cut where its walk
through the hierarchy is, and the widest column is the one of the largest loss. `gather_relaxed` divides
equal rows, too.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.options import whole
from kgather.udfs.recoding._codes import checked_codes, checked_counts
from kgather.udfs.recoding.loss import Losses, interval_loss

_STACK = 4096


def gather(
    codes: NDArray[np.integer], counts: NDArray[np.integer], losses: Losses, k: int, *, most: int = 0
) -> NDArray[np.int32]:
    """The class of every combination, int32[m], numbered from 0 in the order of the cuts.

    codes: whole numbers[m, d], one row for each different combination. counts: int[m], the rows of each. losses: those
    of the d columns. k: rows in the smallest class. most: parts of at most so many rows are not cut further (0: none).

    A part is cut in the column of the largest loss, where its rows are divided most evenly with k or more on both
    sides; where that is not possible, in the next one. O(m d log m) where cuts are even; a part takes a step for each
    of its combinations and columns, and for each code that lies between its ends, if they are not many more.
    Nothing is random. Raises InputError where there are fewer than k rows or the shapes do not fit.
    """
    rows = checked_codes(codes, losses)
    weight = checked_counts(counts, len(rows), whole("k", k, 1))
    order = np.arange(len(rows), dtype=np.int64)
    group = np.zeros(len(rows), dtype=np.int32)
    _gather(rows.copy(), weight.copy(), order, losses.parts, k, most, group)
    return group


@njit(nogil=True, cache=True)
def _gather(rows, weight, order, parts, k, most, group):  # type: ignore[no-untyped-def]
    """Cuts rows int32[m, d] with weight int64[m], which are reordered with `order`, and writes the classes."""
    kind, at, size, flat, cap, bound = parts
    m, d = rows.shape
    starts, ends = [np.int64(0)], [np.int64(m)]
    low, high = np.empty(d, np.int32), np.empty(d, np.int32)
    span = np.empty(d)
    largest = 0
    for j in range(d):
        largest = max(largest, size[j])
    tally = np.zeros(largest, np.int64)
    found = 0
    while len(starts) > 0:
        start, end = starts.pop(), ends.pop()
        total = np.int64(0)
        low[:] = rows[start]
        high[:] = rows[start]
        for i in range(start, end):
            total += weight[i]
            for j in range(d):
                code = rows[i, j]
                low[j] = min(low[j], code)
                high[j] = max(high[j], code)
        column, border = -1, 0
        if total >= 2 * k and total > most:
            for j in range(d):
                span[j] = interval_loss(kind, at, size, flat, cap, bound, j, low[j], high[j])
            for j in np.argsort(-span, kind="mergesort"):
                if high[j] > low[j]:
                    border = _even_cut(rows, weight, start, end, j, low[j], high[j], total, k, tally)
                    if border >= 0:
                        column = j
                        break
        if column < 0:
            for i in range(start, end):
                group[order[i]] = found
            found += 1
            continue
        middle = _part(rows, weight, order, start, end, column, border)
        # The lower side is cut first: classes are numbered along the cuts.
        starts.append(middle)
        ends.append(end)
        starts.append(start)
        ends.append(middle)


@njit(nogil=True, cache=True)
def _even_cut(rows, weight, start, end, j, low, high, total, k, tally):  # type: ignore[no-untyped-def]
    """The last code of the lower side of the most even cut with k rows on both sides; -1: there is none."""
    best, border = total * 2 + 1, -1
    below = np.int64(0)
    if high - low <= 4 * (end - start):
        for i in range(start, end):
            tally[rows[i, j]] += weight[i]
        for code in range(low, high):
            below += tally[code]
            if tally[code] > 0 and below >= k and total - below >= k and abs(2 * below - total) < best:
                best, border = abs(2 * below - total), code
        for i in range(start, end):
            tally[rows[i, j]] = 0
        return border
    # Few rows over many codes: in the order of their codes.
    column = rows[start:end, j].copy()
    sorted_rows = np.argsort(column, kind="mergesort")
    for place in range(end - start - 1):
        code = column[sorted_rows[place]]
        below += weight[start + sorted_rows[place]]
        if code == column[sorted_rows[place + 1]]:
            continue
        if below >= k and total - below >= k and abs(2 * below - total) < best:
            best, border = abs(2 * below - total), code
    return border


@njit(nogil=True, cache=True)
def _part(rows, weight, order, start, end, j, border):  # type: ignore[no-untyped-def]
    """Moves the rows up to the border to the front; returns where the others begin."""
    d = rows.shape[1]
    i, last = start, end
    while i < last:
        if rows[i, j] <= border:
            i += 1
            continue
        last -= 1
        if i != last:
            for a in range(d):
                kept = rows[i, a]
                rows[i, a] = rows[last, a]
                rows[last, a] = kept
            weight[i], weight[last] = weight[last], weight[i]
            order[i], order[last] = order[last], order[i]
    return i


def gather_relaxed(
    codes: NDArray[np.integer], counts: NDArray[np.integer], losses: Losses, k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Classes by relaxed partitioning: pieces (combination, class, rows), int64[p] each.

    Arguments and errors as in `gather`. Classes that `gather` cannot cut, as fewer than k rows would be on one side,
    are cut where rows are equal: in the column of the largest loss, next to the most even cut, so that both sides have
    k rows. Rows that are equal there may be on either side, so the rows of a combination may be in several classes.
    Only classes that lose nothing are left whole, and all others have k to 2k - 1 rows. One piece more for each cut.
    Nothing is random: equal rows are taken in the order of combinations.
    """
    rows = checked_codes(codes, losses)
    weight = checked_counts(counts, len(rows), whole("k", k, 1))
    room = len(rows) + int(weight.sum()) // k + 1
    group = gather(rows, weight, losses, k)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return _gather_relaxed(rows, weight, order, starts, losses.parts, k, room)


@njit(nogil=True, cache=True)
def _gather_relaxed(rows, weight, pieces, firsts, parts, k, room):  # type: ignore[no-untyped-def]
    """Cuts classes that begin at firsts int64[g] of pieces int64[m]. The parts that wait lie behind each other in a
    buffer of pieces, the next one last: a cut adds one at its end."""
    kind, at, size, flat, cap, bound = parts
    m, d = rows.shape
    of, left = np.empty(room, np.int64), np.empty(room, np.int64)
    of[:m] = pieces
    left[:m] = weight[pieces]
    out_of, out_class, out_rows = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    starts, ends = [np.int64(0)], [np.int64(0)]
    starts.pop()
    ends.pop()
    for c in range(len(firsts)):
        starts.append(firsts[c])
        ends.append(firsts[c + 1] if c + 1 < len(firsts) else m)
    low, high, span = np.empty(d, np.int32), np.empty(d, np.int32), np.empty(d)
    found, filled = 0, 0
    while len(starts) > 0:
        start, end = starts.pop(), ends.pop()
        total = np.int64(0)
        low[:] = rows[of[start]]
        high[:] = rows[of[start]]
        for i in range(start, end):
            total += left[i]
            for j in range(d):
                low[j] = min(low[j], rows[of[i], j])
                high[j] = max(high[j], rows[of[i], j])
        column = -1
        if total >= 2 * k:
            widest = 0.0
            for j in range(d):
                span[j] = interval_loss(kind, at, size, flat, cap, bound, j, low[j], high[j])
                if high[j] > low[j] and span[j] > widest:
                    widest, column = span[j], j
        if column < 0:
            for i in range(start, end):
                out_of[filled], out_class[filled], out_rows[filled] = of[i], found, left[i]
                filled += 1
            found += 1
            continue
        codes = np.empty(end - start, np.int32)
        for i in range(start, end):
            codes[i - start] = rows[of[i], column]
        order = np.argsort(codes, kind="mergesort")[::-1]  # the upper side waits
        own, own_left = of[start:end].copy(), left[start:end].copy()
        # The rows above the most even border between codes, but k on both sides.
        wanted, above, closest = total, np.int64(0), 2 * total
        for e in range(len(order) - 1):
            above += own_left[order[e]]
            if codes[order[e]] != codes[order[e + 1]] and abs(2 * above - total) < closest:
                wanted, closest = above, abs(2 * above - total)
        wanted = min(max(wanted, k), total - k)
        middle, place, taken = start, start, np.int64(0)
        for i in order:
            if taken < wanted:
                part = min(own_left[i], wanted - taken)
                of[place], left[place] = own[i], part
                taken += part
                place += 1
                if taken == wanted:
                    middle = place
                if part == own_left[i]:
                    continue
                own_left[i] -= part
            of[place], left[place] = own[i], own_left[i]
            place += 1
        starts.append(start)
        ends.append(middle)
        starts.append(middle)
        ends.append(place)
    return out_of[:filled], out_class[:filled], out_rows[:filled]
