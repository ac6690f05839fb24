"""Cliques of users whose ratings of the same items lie within epsilon of each other (Sun and Sun, section 6).

Rows with equal item sets are points; two are neighbours if they are within epsilon on every axis. So a set of them
is a clique exactly if its bounding box is nowhere wider than epsilon, which is all that is ever checked. Equal rows
are one point with as many users.

A large set of points is first cut into parts: at a gap wider than epsilon, which no clique crosses, or at a median.
A part whose box is narrow enough is a clique. In a part of at most 512 points cliques are grown: from the point with
the fewest users left around it, adding the neighbour that widens the box least, until k users are in it, no more. A
point left over joins a clique in whose box it fits; what then is left grows cliques with the users that others can
spare. What the medians separated is given a second try. This is greedy: who could be in a clique may be left over,
but every clique is one.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

_PAIRED = 512  # points of a part whose pairs are compared
_STACK = 256  # a part is cut at most 7 to 1, so the stack is never deeper than 8 log2(n / 512)
_LOOKS = 2  # times the pairs of a part: after so many looks at points no further clique is tried
_PASSES = 2  # passes over the points: all, then those that the medians may have separated


@njit(nogil=True, cache=True)
def find_cliques(
    indptr: NDArray[np.int64],
    values: NDArray[np.float32],
    users: NDArray[np.int64],
    row_starts: NDArray[np.int64],
    set_starts: NDArray[np.int64],
    lo: int,
    hi: int,
    k: int,
    limit: float,
    clique: NDArray[np.int64],
) -> None:
    """Cliques of at least k users within each of the item sets lo..hi-1.

    indptr, values: the ratings by user. users int64[n]: the users by item set and row; row r has the users from
    row_starts[r] on, item set s the rows from set_starts[s] on. limit: the widest a box may be. clique int64[n] is
    written: the number of the clique of every user, or left as it is for those without. Numbers are unique over all
    sets.

    For a set of p points over m items O(512 p m log p) at most, and O(users).
    """
    for s in range(lo, hi):
        first, last = set_starts[s], set_starts[s + 1]
        if row_starts[last] - row_starts[first] < k:
            continue
        sample = users[row_starts[first]]
        points = np.empty((last - first, indptr[sample + 1] - indptr[sample]), dtype=np.float32)
        left = np.empty(last - first, dtype=np.int64)
        for r in range(first, last):
            start = indptr[users[row_starts[r]]]
            for a in range(points.shape[1]):
                points[r - first, a] = values[start + a]
            left[r - first] = row_starts[r + 1] - row_starts[r]
        _decompose(points, left, row_starts[first:], users, k, limit, row_starts[first], clique)


@njit(nogil=True, cache=True)
def are_cliques(
    indptr: NDArray[np.int64],
    values: NDArray[np.float32],
    sets: NDArray[np.int32],
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    limit: float,
    out: NDArray[np.bool_],
) -> None:
    """out bool[g]: whether the users members[starts[g]:starts[g + 1]] have one item set and a box within the limit."""
    for group in range(len(starts) - 1):
        first = members[starts[group]]
        low = values[indptr[first] : indptr[first + 1]].copy()
        high = low.copy()
        out[group] = True
        for i in range(starts[group] + 1, starts[group + 1]):
            user = members[i]
            if sets[user] != sets[first]:
                out[group] = False
                break
            for a in range(len(low)):
                value = values[indptr[user] + a]
                low[a] = min(low[a], value)
                high[a] = max(high[a], value)
        for a in range(len(low)):
            out[group] &= np.float64(high[a]) - low[a] <= limit


@njit(nogil=True, cache=True)
def _decompose(
    points: NDArray[np.float32],
    left: NDArray[np.int64],
    row_starts: NDArray[np.int64],
    users: NDArray[np.int64],
    k: int,
    limit: float,
    unused: int,
    clique: NDArray[np.int64],
) -> None:
    """Cliques among all points of one item set; `left` int64[p] counts the users of each that are in none."""
    stack = np.empty((_STACK, 2), dtype=np.int64)
    low, high = np.empty(points.shape[1]), np.empty(points.shape[1])
    for _ in range(_PASSES):
        part = np.flatnonzero(left)
        stack[0, 0], stack[0, 1] = 0, len(part)
        depth = 1
        medians = False
        while depth > 0:
            depth -= 1
            lo, hi = stack[depth, 0], stack[depth, 1]
            if left[part[lo:hi]].sum() < k:
                continue
            axis = _box(points, part[lo:hi], low, high)
            if axis < 0 or high[axis] - low[axis] <= limit:
                for p in part[lo:hi]:
                    _put(row_starts[p] + left[p], left[p], unused, users, clique)
                    left[p] = 0
                unused += 1
            elif hi - lo <= _PAIRED:
                unused = _grow_cliques(points, part[lo:hi], left, row_starts, users, k, limit, unused, clique)
            else:
                border, gap = _cut(points, part[lo:hi], axis, limit)
                medians |= not gap
                stack[depth, 0], stack[depth, 1] = lo, lo + border
                stack[depth + 1, 0], stack[depth + 1, 1] = lo + border, hi
                depth += 2
        if not medians:
            return


@njit(nogil=True, cache=True)
def _put(end: int, count: int, number: int, users: NDArray[np.int64], clique: NDArray[np.int64]) -> None:
    """Puts the `count` users before the place `end` into a clique."""
    for place in range(end - count, end):
        clique[users[place]] = number


@njit(nogil=True, cache=True)
def _box(
    points: NDArray[np.float32], part: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> int:
    """Fills the bounding box float64[m] of the points; returns its widest axis, -1 if there is none."""
    low[:] = np.inf
    high[:] = -np.inf
    for p in part:
        for a in range(points.shape[1]):
            low[a] = min(low[a], np.float64(points[p, a]))
            high[a] = max(high[a], np.float64(points[p, a]))
    widest = -1
    for a in range(points.shape[1]):
        if widest < 0 or high[a] - low[a] > high[widest] - low[widest]:
            widest = a
    return widest


@njit(nogil=True, cache=True)
def _cut(points: NDArray[np.float32], part: NDArray[np.int64], axis: int, limit: float) -> tuple[int, bool]:
    """Sorts the part by an axis, in place, and says where to cut it, and whether there is a gap wider than the limit.

    At least an eighth is on either side. Of the gaps it is the one nearest to the middle; without one, the place
    nearest to the middle between unequal points, or the middle.
    """
    size = len(part)
    value = np.empty(size)
    for i in range(size):
        value[i] = points[part[i], axis]
    order = np.argsort(value, kind="mergesort")
    part[:] = part[order]
    middle, border, found = size // 2, size // 2, 0
    for i in range(size // 8, size - size // 8):
        step = value[order[i]] - value[order[i - 1]]
        kind = 2 if step > limit else 1 if step > 0.0 else 0
        if kind > found or (kind == found > 0 and abs(i - middle) < abs(border - middle)):
            border, found = i, kind
    return border, found == 2


@njit(nogil=True, cache=True)
def _grow_cliques(
    all_points: NDArray[np.float32],
    part: NDArray[np.int64],
    all_left: NDArray[np.int64],
    row_starts: NDArray[np.int64],
    users: NDArray[np.int64],
    k: int,
    limit: float,
    unused: int,
    clique: NDArray[np.int64],
) -> int:
    """Grows cliques in a part of p points; returns the next unused number. O(p^2 m).

    Tries that fail may cost k times as much as those that succeed, so their work is limited.

    A clique in the making has a local number: owner[i] is that of the users of point i that are left, or -1; users
    of i that went elsewhere are written at once. spare[c]: how many users clique c can lose and keep k.
    """
    points, left = all_points[part], all_left[part]
    size = len(part)
    near = _neighbours(points, limit)
    owner = np.full(size, np.int64(-1))
    around = np.zeros(size, dtype=np.int64)  # users in no clique at the point and its neighbours
    for i in range(size):
        _count(near, i, left[i], around)
    # every clique takes up the point that it grew from, so there are no more cliques than points
    spare = np.zeros(size, dtype=np.int64)
    low, high = np.empty((size, points.shape[1])), np.empty((size, points.shape[1]))
    taken = np.zeros(size, dtype=np.int64)
    looks = _LOOKS * size * size
    count = 0
    for _ in range(2):
        tried = np.zeros(size, dtype=np.bool_)
        while True:
            seed = _next_seed(owner, left, tried, around)
            if seed < 0 or looks <= 0:
                break
            tried[seed] = True
            allowed = np.flatnonzero(near[seed])
            grown, looked = _grow(
                points, seed, allowed, owner, left, around, spare, k, limit, low[count], high[count], taken
            )
            looks -= looked
            if not grown:
                continue
            spare[count] = max(left[seed] - k, 0)
            for i in range(size):
                if taken[i] == 0:
                    continue
                if owner[i] < 0:
                    _count(near, i, -taken[i], around)
                if owner[i] < 0 and taken[i] == left[i]:
                    owner[i] = count
                else:
                    _put(row_starts[part[i]] + left[i], taken[i], unused + count, users, clique)
                    left[i] -= taken[i]
                taken[i] = 0
            count += 1
        for i in range(size):
            if owner[i] < 0 and left[i] > 0:
                joined = _narrowest(points[i], low[:count], high[:count], limit)
                if joined >= 0:
                    owner[i] = joined
                    spare[joined] += left[i]
                    _count(near, i, -left[i], around)
                    _widen(points[i], low[joined], high[joined])
        if not spare.any():
            break
    for i in range(size):
        if owner[i] >= 0:
            _put(row_starts[part[i]] + left[i], left[i], unused + owner[i], users, clique)
            left[i] = 0
        all_left[part[i]] = left[i]
    return unused + count


@njit(nogil=True, cache=True)
def _neighbours(points: NDArray[np.float32], limit: float) -> NDArray[np.bool_]:
    """bool[p, p]: which points are within the limit on every axis; each is its own neighbour."""
    size = len(points)
    near = np.ones((size, size), dtype=np.bool_)
    for i in range(size):
        for j in range(i):
            for a in range(points.shape[1]):
                if abs(np.float64(points[i, a]) - points[j, a]) > limit:
                    near[i, j] = near[j, i] = False
                    break
    return near


@njit(nogil=True, cache=True)
def _count(near: NDArray[np.bool_], i: int, users: int, around: NDArray[np.int64]) -> None:
    """Adds users of point i to what is around its neighbours."""
    for j in range(len(near)):
        if near[i, j]:
            around[j] += users


@njit(nogil=True, cache=True)
def _next_seed(
    owner: NDArray[np.int64], left: NDArray[np.int64], tried: NDArray[np.bool_], around: NDArray[np.int64]
) -> int:
    """The point with users in no clique, not tried yet, that has fewest of them around; -1 if there is none."""
    seed = -1
    for i in range(len(owner)):
        if owner[i] < 0 and left[i] > 0 and not tried[i] and (seed < 0 or around[i] < around[seed]):
            seed = i
    return seed


@njit(nogil=True, cache=True)
def _available(i: int, owner: NDArray[np.int64], left: NDArray[np.int64], spare: NDArray[np.int64]) -> int:
    """How many users of point i another clique may take."""
    return left[i] if owner[i] < 0 else min(left[i], spare[owner[i]])


@njit(nogil=True, cache=True)
def _grow(
    points: NDArray[np.float32],
    seed: int,
    allowed: NDArray[np.int64],
    owner: NDArray[np.int64],
    left: NDArray[np.int64],
    around: NDArray[np.int64],
    spare: NDArray[np.int64],
    k: int,
    limit: float,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    taken: NDArray[np.int64],
) -> tuple[bool, int]:
    """Grows one clique from all users left at the seed to k users, if it can; the points are among `allowed`.

    Returns whether it could, and at how many points it looked. If so, `taken` int64[p] (all 0 before) holds how
    many users of each point it takes, low and high its box, and `spare` of those cliques that gave users is less. If
    not, all is as it was, but for the order of `allowed`.
    """
    weight = left[seed]
    taken[seed] = weight
    for a in range(points.shape[1]):
        low[a] = high[a] = points[seed, a]
    candidates = len(allowed)
    looked = 0
    while weight < k:
        looked += candidates
        best, least = -1, np.inf
        kept = 0
        for n in range(candidates):
            i = allowed[n]
            if taken[i] > 0 or _available(i, owner, left, spare) == 0:
                continue
            wider = _widening(points[i], low, high, limit, least)
            if wider == np.inf:
                continue  # the box only grows, so it never fits again
            allowed[kept] = i
            kept += 1
            if wider < least or (wider == least and (around[i], i) < (around[best], best)):
                best, least = i, wider
        candidates = kept
        if best < 0:
            for i in range(len(taken)):
                if taken[i] > 0 and owner[i] >= 0:
                    spare[owner[i]] += taken[i]
                taken[i] = 0
            return False, looked
        taken[best] = min(_available(best, owner, left, spare), k - weight)
        weight += taken[best]
        if owner[best] >= 0:
            spare[owner[best]] -= taken[best]
        _widen(points[best], low, high)
    return True, looked


@njit(nogil=True, cache=True)
def _widen(point: NDArray[np.float32], low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    for a in range(len(point)):
        low[a] = min(low[a], np.float64(point[a]))
        high[a] = max(high[a], np.float64(point[a]))


@njit(nogil=True, cache=True)
def _widening(
    point: NDArray[np.float32], low: NDArray[np.float64], high: NDArray[np.float64], limit: float, enough: float
) -> float:
    """By how much, summed over the axes, the box grows that takes in the point; infinity if it is too wide then.

    A sum beyond `enough` may be cut short.
    """
    wider = 0.0
    for a in range(len(point)):
        value = np.float64(point[a])
        if value > high[a]:
            if value - low[a] > limit:
                return np.inf
            wider += value - high[a]
        elif value < low[a]:
            if high[a] - value > limit:
                return np.inf
            wider += low[a] - value
        if wider > enough:
            break
    return wider


@njit(nogil=True, cache=True)
def _narrowest(point: NDArray[np.float32], low: NDArray[np.float64], high: NDArray[np.float64], limit: float) -> int:
    """The box that grows least to take in the point, or -1 if none can."""
    best, least = -1, np.inf
    for c in range(len(low)):
        wider = _widening(point, low[c], high[c], limit, least)
        if wider < least:
            best, least = c, wider
    return best
