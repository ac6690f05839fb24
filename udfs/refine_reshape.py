"""Changes of the number of groups inside one block of users: a group given up, or one made anew.

`refine` alternates them with the chains of kgather.udfs.refine_chains, which keep all sizes or shift one
member. Both are followed only where they lower the sum of squared errors.

Source: the group given up and shared out among near ones is step 4 of TFRP (Chang, Li and Huang 2007), the
split of large groups its counterpart in MHM (Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz and Sebe 2006).
"""

import numpy as np
from numba import njit

from kgather.udfs.refine_chains import Block, fits, gap, leaves, move, settle, unused_number

_POOLED = 64  # members of one group that may be drawn into a new one


@njit(nogil=True, cache=True)
def reshape(block: Block, most: int, tiny: float) -> float:
    """Tries to give up every group and to make a new one around every user; returns the change."""
    total = 0.0
    room = len(block.size)
    for g in range(room):
        if block.size[g] > 0:
            total += _give_up(block, g, most, tiny)
    widest = (block.near.shape[1] + 1) * _POOLED
    pool, distance = np.empty(widest, dtype=np.int64), np.empty(widest)
    quota = np.empty(room, dtype=np.int64)
    for u in range(len(block.group)):
        total += _make_new(block, u, most, tiny, pool, distance, quota)
    return total


@njit(nogil=True, cache=True)
def _joins_at(block: Block, i: int, away: int, most: int) -> tuple[float, int]:
    """The group near user i that she raises least by joining, with the change; (inf, -1) if none has room."""
    best, target = np.inf, -1
    for j in range(block.near.shape[1]):
        if block.near[i, j] < 0:
            continue
        g = block.group[block.near[i, j]]
        n = block.size[g]
        if g == away or g == target:
            continue
        change = gap(block.rows, i, block.centre, g) * n / (n + 1)
        level = max(block.level[g], np.int64(block.least[i]))
        if change < best and fits(n + 1, level, n, block.level[g], most):
            best, target = change, g
    return best, target


@njit(nogil=True, cache=True)
def _give_up(block: Block, g: int, most: int, tiny: float) -> float:
    """Shares the members of a group out among near ones if that lowers the squares; returns the change."""
    n = block.size[g]
    squares, shared_out = 0.0, 0.0
    i = block.head[g]
    for _ in range(n):
        squares += block.own[i]
        i = block.after[i]
    for _ in range(n):
        change, target = _joins_at(block, i, g, most)
        shared_out += change
        if target < 0 or shared_out > squares:
            return 0.0
        i = block.after[i]
    members = np.empty(n, dtype=np.int64)
    for j in range(n):
        members[j] = i
        i = block.after[i]
    total = -squares
    moved = 0
    while moved < n:
        change, target = _joins_at(block, members[moved], g, most)
        if target < 0 or total + change >= -tiny:
            break
        total += change
        move(block, members[moved], target)
        settle(block, target)
        moved += 1
    if moved == n:
        settle(block, g)
        return total
    for j in range(moved - 1, -1, -1):
        settle(block, move(block, members[j], g))
    if moved > 0:
        settle(block, g)
    return 0.0


@njit(nogil=True, cache=True)
def _make_new(
    block: Block,
    u: int,
    most: int,
    tiny: float,
    pool: np.ndarray,
    distance: np.ndarray,
    quota: np.ndarray,
) -> float:
    """Makes a group of user u and the nearest users that their groups can spare, if that lowers the squares.

    pool, distance and quota: scratch of one entry a candidate or group. Returns the change.
    """
    home, wanted = block.group[u], np.int64(block.least[u])
    if wanted == 1 or block.size[home] <= wanted or block.counts[0] == 0 or not leaves(block, u, most):
        return 0.0
    groups = np.empty(block.near.shape[1] + 1, dtype=np.int64)
    groups[0] = home
    count = 1
    for j in range(block.near.shape[1]):
        if block.near[u, j] < 0:
            continue
        g = block.group[block.near[u, j]]
        if g not in groups[:count]:
            groups[count] = g
            count += 1
    pooled = 0
    for c in range(count):
        g = groups[c]
        quota[g] = block.size[g] - block.level[g]
        if g == home:
            quota[g] -= 1
        if quota[g] <= 0:
            continue
        w = block.head[g]
        for _ in range(min(block.size[g], _POOLED)):
            if w != u and block.least[w] <= wanted:
                pool[pooled], distance[pooled] = w, gap(block.rows, u, block.rows, w)
                pooled += 1
            w = block.after[w]
    if pooled < wanted - 1:
        return 0.0
    taken = np.empty(wanted, dtype=np.int64)
    taken[0] = u
    got = 1
    for p in np.argsort(distance[:pooled], kind="mergesort"):
        if got == wanted:
            break
        g = block.group[pool[p]]
        if quota[g] > 0:
            quota[g] -= 1
            taken[got] = pool[p]
            got += 1
    if got < wanted:
        return 0.0
    change = _change_of_new(block, taken, groups[:count], most)
    if change >= -tiny:
        return 0.0
    target = unused_number(block)
    for w in taken:
        move(block, w, target)
    settle(block, target)
    for c in range(count):
        settle(block, groups[c])
    return change


@njit(nogil=True, cache=True)
def _change_of_new(block: Block, taken: np.ndarray, groups: np.ndarray, most: int) -> float:
    """The change of squares if the taken users leave their groups for one of their own; inf if a group that
    stays behind would not fit.
    """
    d = block.rows.shape[1]
    mean = np.zeros(d)
    change = 0.0
    for w in taken:
        for a in range(d):
            mean[a] += block.rows[w, a]
    for w in taken:
        for a in range(d):
            away = block.rows[w, a] - mean[a] / len(taken)
            change += away * away
    for g in groups:
        for a in range(d):
            mean[a] = 0.0
        gone, level = 0, np.int64(0)
        for w in taken:
            if block.group[w] == g:
                gone += 1
                change -= block.own[w]
                for a in range(d):
                    mean[a] += block.rows[w, a] - block.centre[g, a]
        if gone == 0:
            continue
        n = block.size[g]
        i = block.head[g]
        for _ in range(n):
            if i not in taken:
                level = max(level, np.int64(block.least[i]))
            i = block.after[i]
        if not fits(n - gone, level, n, block.level[g], most):
            return np.inf
        shift = 0.0
        for a in range(d):
            shift += mean[a] * mean[a]
        change -= shift / (n - gone)
    return change
