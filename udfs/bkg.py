"""Bisecting K-Gather: users into groups of k to 2k - 1 near ones (X. Chen's thesis, section 3.2, algorithm
1).

The set is bisected by the plane half way between a random record and its mirror image in the centroid; of
several tries the one with the smallest sum of squares is kept. A side of fewer than k records takes the
nearest records of the other one, a part of 2k to 3k - 1 records is cut by its farthest record, smaller
parts are groups.

Two things are added, and neither shows on small or well-behaved data:

- a part of more than 4,096 records scores its tries on a sample of 1,024 of them;
- data with far outliers or many equal records would cut off a few records at a time, which is quadratic. On
  the way from the root to a group at most 8 bisections may be lopsided (smaller side below 1/64); from
  there on only tries with two larger sides count, and where there is none the part is cut in halves at the
  median of the best direction.
"""

import numpy as np
from numba import njit

from kgather.udfs.hashing import keyed, mix, seed64
from kgather.udfs.options import seed_number, whole
from kgather.udfs.selection import kth_smallest
from kgather.udfs.vectors import checked_vectors

_SAMPLE_ABOVE = 4096
_SAMPLE = 1024
_LOPSIDED = 64  # a side of fewer than 1/64 of the records is lopsided
_LOPSIDED_MAX = 8
_STACK = 128  # the larger part waits, so the stack is never deeper than log2(n) + 1


def gather(vectors: np.ndarray, k: int, *, tries: int = 10, seed: int = 0) -> np.ndarray:
    """The group of every user, int32[n], numbered 0..g-1; every group has k to 2k - 1 members.

    vectors: float32[n, d] (other real types are converted), one row a user, any unit (the distance is
    Euclidean). tries: bisections tried at every node. seed: the same seed gives the same groups. Expected
    time O(tries n d log n); memory: one copy of the vectors and 24 bytes a user.

    Raises InputError if k or tries is no whole number >= 1, seed is none of 64 bits, there are fewer than k users,
    the vectors are no two-dimensional table with at least one column, or some are not finite.
    """
    tries = whole("tries", tries, 1)
    seed = seed_number(seed)
    rows, k = checked_vectors(vectors, k)
    n = len(rows)
    order = np.arange(n, dtype=np.int32)
    groups = np.empty(n, dtype=np.int32)
    _gather(rows, order, k, tries, seed64(seed), groups)
    return groups


@njit(nogil=True, cache=True)
def _swap(rows: np.ndarray, order: np.ndarray, i: int, j: int) -> None:
    for a in range(rows.shape[1]):
        keep = rows[i, a]
        rows[i, a] = rows[j, a]
        rows[j, a] = keep
    keep_order = order[i]
    order[i] = order[j]
    order[j] = keep_order


@njit(nogil=True, cache=True)
def _centroid(rows: np.ndarray, lo: int, hi: int, out: np.ndarray) -> None:
    for a in range(rows.shape[1]):
        out[a] = 0.0
    for i in range(lo, hi):
        for a in range(rows.shape[1]):
            out[a] += rows[i, a]
    for a in range(rows.shape[1]):
        out[a] /= hi - lo


@njit(nogil=True, cache=True)
def _distances(rows: np.ndarray, lo: int, hi: int, point: np.ndarray, out: np.ndarray) -> None:
    """out[lo:hi] = squared distances to the point."""
    for i in range(lo, hi):
        total = 0.0
        for a in range(rows.shape[1]):
            gap = rows[i, a] - point[a]
            total += gap * gap
        out[i] = total


@njit(nogil=True, cache=True)
def _bring_smallest(
    rows: np.ndarray, order: np.ndarray, lo: int, hi: int, count: int, key: np.ndarray, spare: np.ndarray
) -> None:
    """Reorders lo:hi so that the `count` records of the smallest key come first; ties fall to the earlier
    ones.

    key float64[n] holds a number for every record of lo:hi (and is reordered with them), spare float64[n] is
    scratch. O(hi - lo).
    """
    if count <= 0 or count >= hi - lo:
        return
    for i in range(lo, hi):
        spare[i] = key[i]
    limit = kth_smallest(spare, lo, hi, count - 1)
    smaller = 0
    for i in range(lo, hi):
        if key[i] < limit:
            smaller += 1
    equal_left = count - smaller
    target = lo
    for i in range(lo, hi):
        take = key[i] < limit
        if not take and key[i] == limit and equal_left > 0:
            equal_left -= 1
            take = True
        if take:
            if i != target:
                _swap(rows, order, i, target)
                held = key[i]
                key[i] = key[target]
                key[target] = held
            target += 1


@njit(nogil=True, cache=True)
def _score_tries(
    rows: np.ndarray,
    lo: int,
    hi: int,
    centroid: np.ndarray,
    tries: int,
    random: np.uint64,
    planes: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    total: np.ndarray,
) -> int:
    """Draws the records of all tries and sums up the left side of each; returns how many records were
    looked at.

    planes float64[tries, d]: c_L - centroid. sums float64[tries, d] and counts int64[tries]: sum of the
    records (relative to the centroid) and their number on the side of c_L. total float64[d]: the sum over
    both sides.
    """
    n, d = hi - lo, rows.shape[1]
    state = random
    for t in range(tries):
        state = mix(state)
        picked = lo + np.int64(state % np.uint64(n))
        counts[t] = 0
        for a in range(d):
            planes[t, a] = rows[picked, a] - centroid[a]
            sums[t, a] = 0.0
    for a in range(d):
        total[a] = 0.0
    sampled = n > _SAMPLE_ABOVE
    looked = _SAMPLE if sampled else n
    y = np.empty(d)
    for s in range(looked):
        i = np.int64(lo + s)
        if sampled:  # one record of each of 1,024 stretches
            state = mix(state)
            start = lo + s * n // _SAMPLE
            stop = lo + (s + 1) * n // _SAMPLE
            i = start + np.int64(state % np.uint64(stop - start))
        for a in range(d):
            y[a] = rows[i, a] - centroid[a]
            total[a] += y[a]
        for t in range(tries):
            side = 0.0
            for a in range(d):
                side += y[a] * planes[t, a]
            if side >= 0.0:  # as near to c_L as to c_R, or nearer
                counts[t] += 1
                for a in range(d):
                    sums[t, a] += y[a]
    return looked


@njit(nogil=True, cache=True)
def _choose_try(sums: np.ndarray, counts: np.ndarray, total: np.ndarray, looked: int, least: int) -> tuple[int, float]:
    """The try of the lowest sum of squares (the highest between the sides) with `least` records on both
    sides.

    Returns (-1, 0.0) if there is none.
    """
    best, best_score = -1, 0.0
    for t in range(len(counts)):
        left = counts[t]
        right = looked - left
        if left < least or right < least:
            continue
        of_left, of_right = 0.0, 0.0
        for a in range(sums.shape[1]):
            of_left += sums[t, a] * sums[t, a]
            rest = total[a] - sums[t, a]
            of_right += rest * rest
        score = of_left / left + of_right / right
        if best < 0 or score > best_score:
            best, best_score = t, score
    return best, best_score


@njit(nogil=True, cache=True)
def _bisect(rows: np.ndarray, order: np.ndarray, lo: int, hi: int, centroid: np.ndarray, plane: np.ndarray) -> int:
    """Moves the side of c_L to the front of lo:hi; returns where the other side begins."""
    i, j = lo, hi
    while i < j:
        side = 0.0
        for a in range(rows.shape[1]):
            side += (rows[i, a] - centroid[a]) * plane[a]
        if side >= 0.0:
            i += 1
        else:
            j -= 1
            if i != j:
                _swap(rows, order, i, j)
    return i


@njit(nogil=True, cache=True)
def _widest_axis(rows: np.ndarray, lo: int, hi: int, centroid: np.ndarray, plane: np.ndarray) -> bool:
    """Sets the plane to the axis of the largest variance; False if the records are all equal."""
    axis, widest = 0, 0.0
    for a in range(rows.shape[1]):
        plane[a] = 0.0
        spread = 0.0
        for i in range(lo, hi):
            gap = rows[i, a] - centroid[a]
            spread += gap * gap
        if spread > widest:
            axis, widest = a, spread
    plane[axis] = 1.0
    return widest > 0.0


@njit(nogil=True, cache=True)
def _halve(
    rows: np.ndarray,
    order: np.ndarray,
    lo: int,
    hi: int,
    centroid: np.ndarray,
    plane: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """Moves the half that lies farthest towards the plane's direction to the back of lo:hi; returns the
    middle.
    """
    for i in range(lo, hi):
        side = 0.0
        for a in range(rows.shape[1]):
            side += (rows[i, a] - centroid[a]) * plane[a]
        key[i] = side
    middle = lo + (hi - lo) // 2
    _bring_smallest(rows, order, lo, hi, middle - lo, key, spare)
    return middle


@njit(nogil=True, cache=True)
def _split_by_farthest(
    rows: np.ndarray,
    order: np.ndarray,
    lo: int,
    hi: int,
    k: int,
    centroid: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """Step 7.B: the record farthest from the centroid and the k - 1 nearest to it come first; returns lo +
    k.
    """
    _centroid(rows, lo, hi, centroid)
    _distances(rows, lo, hi, centroid, key)
    farthest = lo
    for i in range(lo + 1, hi):
        if key[i] > key[farthest]:
            farthest = i
    for a in range(rows.shape[1]):
        centroid[a] = rows[farthest, a]
    _swap(rows, order, lo, farthest)
    _distances(rows, lo + 1, hi, centroid, key)
    _bring_smallest(rows, order, lo + 1, hi, k - 1, key, spare)
    return lo + k


@njit(nogil=True, cache=True)
def _cut(
    rows: np.ndarray,
    order: np.ndarray,
    lo: int,
    hi: int,
    k: int,
    tries: int,
    seed: np.uint64,
    guarded: bool,
    centroid: np.ndarray,
    planes: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    total: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """Steps 1 to 6 for the records lo:hi (at least 3k): cuts them in two parts of k or more; returns the
    border.
    """
    n = hi - lo
    _centroid(rows, lo, hi, centroid)
    looked = _score_tries(rows, lo, hi, centroid, tries, keyed(seed, lo, hi), planes, sums, counts, total)
    least = max(1, looked // _LOPSIDED) if guarded else 1
    best, _ = _choose_try(sums, counts, total, looked, least)
    if best >= 0:
        border = _bisect(rows, order, lo, hi, centroid, planes[best])
        left, right = border - lo, hi - border
        smaller = min(left, right)
        # a sample may promise more than the whole keeps
        if smaller > 0 and not (guarded and smaller < n // (2 * _LOPSIDED)):
            if left < k:
                _centroid(rows, lo, border, centroid)
                _distances(rows, border, hi, centroid, key)
                _bring_smallest(rows, order, border, hi, k - left, key, spare)
                return lo + k
            if right < k:
                # the nearest have to end at the border, so the smallest of the negative go first
                _centroid(rows, border, hi, centroid)
                _distances(rows, lo, border, centroid, key)
                for i in range(lo, border):
                    key[i] = -key[i]
                _bring_smallest(rows, order, lo, border, left - (k - right), key, spare)
                return hi - k
            return border
    if best < 0:
        best, _ = _choose_try(sums, counts, total, looked, 1)
    if best < 0 and not _widest_axis(rows, lo, hi, centroid, planes[0]):
        return lo + n // 2  # all records are equal
    return _halve(rows, order, lo, hi, centroid, planes[max(best, 0)], key, spare)


@njit(nogil=True, cache=True)
def _gather(rows: np.ndarray, order: np.ndarray, k: int, tries: int, seed: np.uint64, groups: np.ndarray) -> None:
    n, d = rows.shape
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((tries, d)), np.empty((tries, d)), np.empty(tries, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((_STACK, 3), dtype=np.int64)  # lo, hi, lopsided bisections above
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
    depth = 1
    group = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        size = hi - lo
        if size < 2 * k:
            for i in range(lo, hi):
                groups[order[i]] = group
            group += np.int32(1)
            continue
        if size < 3 * k:
            border = _split_by_farthest(rows, order, lo, hi, k, centroid, key, spare)
        else:
            guarded = lopsided >= _LOPSIDED_MAX
            border = _cut(
                rows,
                order,
                lo,
                hi,
                k,
                tries,
                seed,
                guarded,
                centroid,
                planes,
                sums,
                counts,
                total,
                key,
                spare,
            )
            if min(border - lo, hi - border) * _LOPSIDED < size:
                lopsided += 1
        first_larger = border - lo > hi - border
        for part in range(2):
            if (part == 0) == first_larger:
                stack[depth, 0], stack[depth, 1] = lo, border
            else:
                stack[depth, 0], stack[depth, 1] = border, hi
            stack[depth, 2] = lopsided
            depth += 1
