"""Changes of the number of groups inside one block of users: a group given up, or one made anew.

`refine` alternates them with the chains of kgather.udfs.refining._chains, which keep all sizes or shift one
member. Both are followed only where they lower the sum of squared errors.

Source: the group given up and shared out among near ones is step 4 of TFRP (Chang, Li and Huang 2007), the
split of large groups its counterpart in MHM (Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz and Sebe 2006).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.one_type import int64
from kgather.udfs._shared.ordering import ascending
from kgather.udfs.refining._chains import Block, fits, gap, joins, leaves, move, settle, unused_number

_POOLED = 64  # members of one group that may be drawn into a new one


@njit(nogil=True, cache=True)
def reshape(block: Block, tiny: float) -> float:
    """Tries to give up every group and to make a new one around every user; returns the change.

    tiny: what a change has to gain at least.
    """
    total = 0.0
    users, groups, near = block.users, block.groups, block.near
    for g in range(len(groups)):
        if groups[g].size > 0:
            total += _give_up(block, g, tiny)
    around = near.shape[1] + 1
    pool, distance = np.empty(around * _POOLED, dtype=np.int64), np.empty(around * _POOLED)
    some = np.empty(around, dtype=np.int64)
    quota = np.empty(len(groups), dtype=np.int64)
    marked = np.zeros(len(users), dtype=np.bool_)
    for u in range(len(users)):
        spare = groups[users[u].group].size > users[u].least > 1
        if spare and block.unused[0] > 0 and leaves(users, groups, u, block.most):
            total += _make_new(block, u, tiny, pool, distance, some, quota, marked)
    return total


@njit(nogil=True, cache=True)
def _cheapest(
    rows: NDArray[np.float64],
    near: NDArray[np.int32],
    users: NDArray[np.void],
    groups: NDArray[np.void],
    centre: NDArray[np.float64],
    i: int,
    most: int,
) -> tuple[float, int]:
    """The other group near user i that she raises least by joining, with the change; (inf, -1) if none has
    room.
    """
    best, target = np.inf, -1
    for j in range(near.shape[1]):
        if near[i, j] < 0:
            continue
        g = int64(users[near[i, j]].group)
        if g == users[i].group or g == target:
            continue
        n = groups[g].size
        change = gap(rows, i, centre, g) * n / (n + 1)
        if change < best and joins(users, groups, i, g, most):
            best, target = change, g
    return best, target


@njit(nogil=True, cache=True, inline="always")
def _give_up(block: Block, g: int, tiny: float) -> float:
    """Shares the members of a group out among near ones if that lowers the squares; returns the change."""
    rows, near, users, groups, centre = block.rows, block.near, block.users, block.groups, block.centre
    n = groups[g].size
    squares, shared_out = 0.0, 0.0
    i = int64(groups[g].head)
    for _ in range(n):
        squares += users[i].own
        i = users[i].after
    for _ in range(n):  # at least as much as it costs, as each who joins moves the centroid away from the rest
        change, target = _cheapest(rows, near, users, groups, centre, i, block.most)
        shared_out += change
        if target < 0 or shared_out >= squares - tiny:
            return 0.0
        i = users[i].after
    members = np.empty(n, dtype=np.int64)
    for at in range(n):
        members[at] = i
        i = users[i].after
    total = -squares
    moved = 0
    while moved < n:
        change, target = _cheapest(rows, near, users, groups, centre, members[moved], block.most)
        total += change
        if target < 0 or total >= -tiny:
            break
        move(block, members[moved], target)
        settle(block, target)
        moved += 1
    if moved < n:
        for at in range(moved - 1, -1, -1):
            settle(block, move(block, members[at], g))
        total = 0.0
    if moved > 0:
        settle(block, g)
    return total


@njit(nogil=True, cache=True, inline="always")
def _make_new(
    block: Block,
    u: int,
    tiny: float,
    pool: NDArray[np.int64],
    distance: NDArray[np.float64],
    some: NDArray[np.int64],
    quota: NDArray[np.int64],
    marked: NDArray[np.bool_],
) -> float:
    """Makes a group of user u and the nearest users that their groups can spare, if that lowers the squares.

    pool, distance, some and quota: scratch of one entry a candidate or group; marked bool[b]: all False, before and
    after. Returns the change.
    """
    rows, near, users, groups = block.rows, block.near, block.users, block.groups
    wanted = users[u].least
    some[0] = users[u].group
    count = 1
    for j in range(near.shape[1]):
        if near[u, j] >= 0:
            some[count] = users[near[u, j]].group
            count += 1
    pooled = 0
    for c in range(count):
        g = some[c]
        quota[g] = groups[g].size - groups[g].level - (1 if c == 0 else 0)
        if quota[g] <= 0 or _seen(some, c):
            continue
        w = int64(groups[g].head)
        for _ in range(min(groups[g].size, _POOLED)):
            if w != u and users[w].least <= wanted:
                pool[pooled], distance[pooled] = w, gap(rows, u, rows, w)
                pooled += 1
            w = users[w].after
    if pooled < wanted - 1:
        return 0.0
    taken: NDArray[np.int64] = np.empty(int64(wanted), dtype=np.int64)
    taken[0] = u
    got = 1
    for at in ascending(distance[:pooled]):
        g = users[pool[at]].group
        if got < wanted and quota[g] > 0:
            quota[g] -= 1
            taken[got] = pool[at]
            got += 1
    if got < wanted:
        return 0.0
    for w in taken:
        marked[w] = True
    change = _change_of_new(block, taken, marked, some[:count])
    for w in taken:
        marked[w] = False
    if change >= -tiny:
        return 0.0
    target = unused_number(block)
    for w in taken:
        move(block, w, target)
    settle(block, target)
    for c in range(count):
        if not _seen(some, c):
            settle(block, int64(some[c]))
    return change


@njit(nogil=True, cache=True, inline="always")
def _seen(some: NDArray[np.int64], c: int) -> bool:
    """Whether the group some[c] stands there before."""
    seen = False
    for earlier in range(c):
        seen = seen or some[earlier] == some[c]
    return seen


@njit(nogil=True, cache=True, inline="always")
def _change_of_new(block: Block, taken: NDArray[np.int64], marked: NDArray[np.bool_], some: NDArray[np.int64]) -> float:
    """The change of squares if the taken users leave their groups (which are among some, maybe more than
    once) for one of their own; inf if a group that stays behind would not fit.
    """
    rows, users, groups, centre = block.rows, block.users, block.groups, block.centre
    d = rows.shape[1]
    shift = np.empty(d)
    change = 0.0
    for a in range(d):
        shift[a] = 0.0
    for w in taken:
        for a in range(d):
            shift[a] += rows[w, a]
    for w in taken:
        for a in range(d):
            away = rows[w, a] - shift[a] / len(taken)
            change += away * away
    for c in range(len(some)):
        g = some[c]
        if _seen(some, c):
            continue
        for a in range(d):
            shift[a] = 0.0
        gone = 0
        for w in taken:
            if users[w].group == g:
                gone += 1
                change -= users[w].own
                for a in range(d):
                    shift[a] += rows[w, a] - centre[g, a]
        if gone == 0:
            continue
        n = groups[g].size
        level = 0
        i = groups[g].head
        for _ in range(n):
            if not marked[i]:
                level = max(level, users[i].least)
            i = users[i].after
        if not fits(n - gone, level, n, groups[g].level, block.most):
            return np.inf
        moved = 0.0
        for a in range(d):
            moved += shift[a] * shift[a]
        change -= moved / (n - gone)
    return change
