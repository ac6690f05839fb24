"""The search inside one block of users: chains of moves that lower the sum of squared errors.

A chain u -> v -> ... lets u enter the group of v, whose place v leaves to her, and so on; it ends by the
last user taking the place of u (a cycle; two users: an exchange), entering a group that has room, or standing
alone where she accepts that. A group occurs in a chain once, so the changes of its groups add up to
the change of the whole exactly: with n members and centroid c, x in the place of w changes the squares by

    |x - c|^2 - |w - c|^2 - |x - w|^2 / n,

x on top of them by n / (n + 1) |x - c|^2, and the loss of u by -n / (n - 1) |u - c|^2.

Source: ejection chains (Glover 1996) and cyclic exchanges (Thompson and Psaraftis 1993), searched as Lin and
Kernighan (1973) do: only while the sum so far is a gain, the best few continuations of every step.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

ALONE = -1  # how a chain ends, where no group is entered
CYCLE = -2
_LOOKED = 64  # members of a group looked at in one step at most, those farthest from the centroid
_SORTED_BY_INSERTION = 32
_STAYS = 50  # chains that one user may start before the next one's turn

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order, so that they fit in vector registers


class Block(NamedTuple):
    """The users of a block and their groups; b users, d columns, room for g groups, m near users each.

    Group numbers that are not in use wait in `unused`; the members of a group are a ring from `head` on, those
    farthest from the centroid first.
    """

    rows: np.ndarray  # float64[b, d]
    gaps: np.ndarray  # float64[b, b], the squared distances; or [0, 0]: they are computed when needed
    near: np.ndarray  # int32[b, m], -1 where there are fewer
    least: np.ndarray  # int32[b], the smallest group that each user accepts
    group: np.ndarray  # int32[b]
    after: np.ndarray  # int32[b], the next member in the ring
    before: np.ndarray  # int32[b]
    own: np.ndarray  # float64[b], squared distance to the centroid of her group
    root: np.ndarray  # float64[b], its root
    dirty: np.ndarray  # bool[b], to be looked at
    head: np.ndarray  # int32[g]
    size: np.ndarray  # int64[g]
    level: np.ndarray  # int64[g], the largest `least` of the members
    holders: np.ndarray  # int64[g], how many have it
    below: np.ndarray  # int64[g], the next largest, 0 if there is none
    centre: np.ndarray  # float64[g, d]
    unused: np.ndarray  # int32[g], a stack
    spare: np.ndarray  # int32[b], scratch
    counts: np.ndarray  # int64[2]: numbers in `unused`, the last stamp given


class Search(NamedTuple):
    """Scratch space of a search of `depth` steps that keeps the best `width` continuations of each."""

    stamp: np.ndarray  # int64[g]
    path: np.ndarray  # int64[depth + 1]
    best: np.ndarray  # int64[depth + 1], the users of the best chain
    so_far: np.ndarray  # float64[depth + 1], the change of squares up to here
    next_user: np.ndarray  # int64[depth, width]
    next_cost: np.ndarray  # float64[depth, width]
    found: np.ndarray  # int64[depth]
    at: np.ndarray  # int64[depth + 1]


@njit(nogil=True, cache=True)
def search_space(groups: int, depth: int, width: int) -> Search:
    """Scratch for a block with room for that many groups."""
    return Search(
        np.zeros(groups, dtype=np.int64),
        np.empty(depth + 1, dtype=np.int64),
        np.empty(depth + 1, dtype=np.int64),
        np.empty(depth + 1),
        np.empty((depth, width), dtype=np.int64),
        np.empty((depth, width)),
        np.empty(depth, dtype=np.int64),
        np.empty(depth + 1, dtype=np.int64),
    )


@njit(nogil=True, cache=True, fastmath=_FAST)
def gap(left: np.ndarray, i: int, right: np.ndarray, j: int) -> float:
    """The squared distance of row i of the one and row j of the other, float64[., d]."""
    total = 0.0
    for a in range(left.shape[1]):
        difference = left[i, a] - right[j, a]
        total += difference * difference
    return total


@njit(nogil=True, cache=True)
def new_block(
    rows: np.ndarray, gaps: np.ndarray, near: np.ndarray, least: np.ndarray, group: np.ndarray, groups: int, room: int
) -> Block:
    """A block of the users with the given groups 0..groups - 1; `near` may be filled, `group` is changed later."""
    b, d = rows.shape
    block = Block(
        rows,
        gaps,
        near,
        least,
        group,
        np.empty(b, dtype=np.int32),
        np.empty(b, dtype=np.int32),
        np.empty(b),
        np.empty(b),
        np.ones(b, dtype=np.bool_),
        np.full(room, -1, dtype=np.int32),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.empty((room, d)),
        np.empty(room, dtype=np.int32),
        np.empty(b, dtype=np.int32),
        np.zeros(2, dtype=np.int64),
    )
    for i in range(b):
        _link(block, i, group[i])
    for g in range(groups):
        settle(block, g)
    for g in range(room - 1, groups - 1, -1):
        block.unused[block.counts[0]] = g
        block.counts[0] += 1
    return block


@njit(nogil=True, cache=True)
def _link(block: Block, i: int, g: int) -> None:
    """Puts user i at the end of the ring of group g."""
    first = block.head[g]
    if first < 0:
        block.head[g] = i
        block.after[i] = i
        block.before[i] = i
    else:
        last = block.before[first]
        block.after[last] = i
        block.before[i] = last
        block.after[i] = first
        block.before[first] = i
    block.group[i] = g
    block.size[g] += 1


@njit(nogil=True, cache=True)
def _unlink(block: Block, i: int) -> None:
    g = block.group[i]
    ahead = block.after[i]
    if ahead == i:
        block.head[g] = -1
    else:
        behind = block.before[i]
        block.after[behind] = ahead
        block.before[ahead] = behind
        if block.head[g] == i:
            block.head[g] = ahead
    block.size[g] -= 1


@njit(nogil=True, cache=True)
def settle(block: Block, g: int) -> None:
    """Brings centroid, levels and distances of a group up to date; its members are to be looked at again."""
    size = block.size[g]
    if size == 0:
        block.level[g] = 0
        block.unused[block.counts[0]] = g
        block.counts[0] += 1
        return
    d = block.rows.shape[1]
    for a in range(d):
        block.centre[g, a] = 0.0
    level, holders, below = np.int64(0), 0, np.int64(0)
    i = block.head[g]
    for _ in range(size):
        for a in range(d):
            block.centre[g, a] += block.rows[i, a]
        least = np.int64(block.least[i])
        if least > level:
            level, holders, below = least, 1, level
        elif least == level:
            holders += 1
        elif least > below:
            below = least
        i = block.after[i]
    block.level[g], block.holders[g], block.below[g] = level, holders, below
    for a in range(d):
        block.centre[g, a] /= size
    for at in range(size):
        block.own[i] = gap(block.rows, i, block.centre, g)
        block.root[i] = np.sqrt(block.own[i])
        block.dirty[i] = True
        block.spare[at] = i
        i = block.after[i]
    _sort(block, g)


@njit(nogil=True, cache=True)
def _sort(block: Block, g: int) -> None:
    """Makes the ring of the members, which are in block.spare, anew: farthest first. They are nearly in order
    where a group was sorted before.
    """
    size, own, members = block.size[g], block.own, block.spare
    if size > _SORTED_BY_INSERTION:
        key = np.empty(size)
        for at in range(size):
            key[at] = -own[members[at]]
        members[:size] = members[:size][np.argsort(key, kind="mergesort")]
    else:
        for at in range(1, size):
            i = members[at]
            place = at
            while place > 0 and own[members[place - 1]] < own[i]:
                members[place] = members[place - 1]
                place -= 1
            members[place] = i
    last = members[size - 1]
    block.head[g] = members[0]
    for at in range(size):
        block.before[members[at]] = last
        block.after[last] = members[at]
        last = members[at]


@njit(nogil=True, cache=True)
def _rest(block: Block, g: int, i: int) -> int:
    """The level of group g without its member i."""
    if block.least[i] == block.level[g] and block.holders[g] == 1:
        return block.below[g]
    return block.level[g]


@njit(nogil=True, cache=True)
def fits(size: int, level: int, old_size: int, old_level: int, most: int) -> bool:
    """Whether a group may have this size and level: enough members, and not more than `most` (0: 2 level - 1)
    unless it has had too many before and does not grow.
    """
    if size == 0:
        return True
    if size < level:
        return False
    limit = most if most > 0 else 2 * level - 1
    if size <= limit:
        return True
    old_limit = most if most > 0 else 2 * old_level - 1
    return old_size > old_limit and size <= old_size


@njit(nogil=True, cache=True)
def _replaces(block: Block, g: int, out: int, enters: int, most: int) -> bool:
    """Whether a user may take the place of a member of group g."""
    if block.least[enters] == block.least[out]:
        return True
    level = max(_rest(block, g, out), np.int64(block.least[enters]))
    return fits(block.size[g], level, block.size[g], block.level[g], most)


@njit(nogil=True, cache=True)
def _joins(block: Block, g: int, enters: int, most: int) -> bool:
    level = max(block.level[g], np.int64(block.least[enters]))
    return fits(block.size[g] + 1, level, block.size[g], block.level[g], most)


@njit(nogil=True, cache=True)
def leaves(block: Block, i: int, most: int) -> bool:
    """Whether a user's group may go on without her."""
    g = block.group[i]
    return fits(block.size[g] - 1, _rest(block, g, i), block.size[g], block.level[g], most)


@njit(nogil=True, cache=True)
def _keep_best(users: np.ndarray, costs: np.ndarray, found: int, user: int, cost: float) -> int:
    """Enters a continuation in the list of the best ones of a step; returns how many there are now."""
    place = found
    if found == len(users):
        place = found - 1
        if costs[place] <= cost:
            return found
    else:
        found += 1
    while place > 0 and costs[place - 1] > cost:
        costs[place] = costs[place - 1]
        users[place] = users[place - 1]
        place -= 1
    costs[place] = cost
    users[place] = user
    return found


@njit(nogil=True, cache=True)
def _best_chain(block: Block, search: Search, u: int, most: int, plain: bool, tiny: float) -> tuple[float, int, int]:
    """The best chain from user u that lowers the squares by more than `tiny`: its change, its number of
    users (0: there is none; they are in search.best) and its end: a group, ALONE or CYCLE.

    plain: all users have the same `least`.
    """
    # every array is taken out of its tuple once: doing so in the loops would count references each time
    rows, gaps, near, least, group = block.rows, block.gaps, block.near, block.least, block.group
    after, own, root, head, size, centre = block.after, block.own, block.root, block.head, block.size, block.centre
    stamps, path, best_path, all_so_far = search.stamp, search.path, search.best, search.so_far
    next_user, next_cost, found, at = search.next_user, search.next_cost, search.found, search.at
    counts = block.counts
    depth = next_user.shape[0]
    known = len(gaps) > 0
    home = group[u]
    size_home = size[home]
    may_leave = leaves(block, u, most)
    loss = -own[u] * size_home / (size_home - 1) if may_leave and size_home > 1 else 0.0
    ceiling = -loss  # the sum so far of a chain that may still become a gain
    best, length, end = -tiny, 0, CYCLE
    path[0], all_so_far[0], at[0] = u, 0.0, -1
    if may_leave and least[u] == 1 and loss < best:
        best, length, end = loss, 1, ALONE
        best_path[0] = u
    step = 0
    while step >= 0:
        if at[step] < 0:
            x, so_far = path[step], all_so_far[step]
            stamp = counts[1] + 1
            counts[1] = stamp
            for s in range(step + 1):
                stamps[group[path[s]]] = stamp
            count = 0
            for j in range(near.shape[1]):
                if near[x, j] < 0:
                    continue
                g = group[near[x, j]]
                if stamps[g] == stamp:
                    continue
                stamps[g] = stamp
                to_centre = gap(rows, x, centre, g)
                n = size[g]
                if may_leave:
                    change = so_far + loss + to_centre * n / (n + 1)
                    if change < best and _joins(block, g, x, most):
                        best, length, end = change, step + 1, g
                        for s in range(step + 1):
                            best_path[s] = path[s]
                entered = so_far + to_centre
                to_root = np.sqrt(to_centre)
                w = head[g]
                for _ in range(min(n, _LOOKED)):
                    # x_w is at most `reach` squared, by the triangle inequality; nearer members only cost more
                    reach = to_root + root[w]
                    if entered - own[w] - reach * reach / n >= ceiling:
                        break
                    x_w = gaps[x, w] if known else gap(rows, x, rows, w)
                    cost = entered - own[w] - x_w / n
                    if cost < ceiling and (plain or _replaces(block, g, w, x, most)):
                        to_home = gap(rows, w, centre, home)
                        change = cost + to_home - own[u]
                        reach = root[u] + np.sqrt(to_home)
                        if change - reach * reach / size_home < best:
                            change -= (gaps[u, w] if known else gap(rows, u, rows, w)) / size_home
                            if change < best and (plain or _replaces(block, home, u, w, most)):
                                best, length, end = change, step + 2, CYCLE
                                for s in range(step + 1):
                                    best_path[s] = path[s]
                                best_path[step + 1] = w
                        if may_leave and least[w] == 1 and cost + loss < best:
                            best, length, end = cost + loss, step + 2, ALONE
                            for s in range(step + 1):
                                best_path[s] = path[s]
                            best_path[step + 1] = w
                        if step + 1 < depth:
                            count = _keep_best(next_user[step], next_cost[step], count, w, cost)
                    w = after[w]
            if length > 0:  # the shortest chains first: a longer one may follow
                break
            found[step], at[step] = count, 0
        if at[step] >= found[step]:
            step -= 1
            if step >= 0:
                at[step] += 1
            continue
        path[step + 1] = next_user[step, at[step]]
        all_so_far[step + 1] = next_cost[step, at[step]]
        step += 1
        at[step] = -1
    return best, length, end


@njit(nogil=True, cache=True)
def _follow(block: Block, search: Search, length: int, end: int) -> None:
    """Moves the users of the best chain."""
    home = block.group[search.best[0]]
    target = end
    if end == CYCLE:
        target = home
    elif end == ALONE:
        target = unused_number(block)
    entered = target
    for s in range(length - 1, -1, -1):
        target = move(block, search.best[s], target)
        if entered != home:
            settle(block, entered)
        entered = target
    settle(block, home)


@njit(nogil=True, cache=True)
def move(block: Block, i: int, g: int) -> int:
    """Moves user i to group g; returns the group she was in. Both have to be settled."""
    left = block.group[i]
    _unlink(block, i)
    _link(block, i, g)
    return left


@njit(nogil=True, cache=True)
def unused_number(block: Block) -> int:
    """Takes a group number that is not in use."""
    block.counts[0] -= 1
    return block.unused[block.counts[0]]


@njit(nogil=True, cache=True)
def descend(block: Block, search: Search, most: int, plain: bool, tiny: float, sweeps: int) -> float:
    """Follows chains until no user to be looked at starts one, or `sweeps` times; returns the change."""
    total = 0.0
    for _ in range(sweeps):
        changed = False
        for u in range(len(block.group)):
            if not block.dirty[u]:
                continue
            for _ in range(_STAYS):
                change, length, end = _best_chain(block, search, u, most, plain, tiny)
                if length == 0:
                    break
                _follow(block, search, length, end)
                total += change
                changed = True
            block.dirty[u] = False
        if not changed:
            break
    return total
