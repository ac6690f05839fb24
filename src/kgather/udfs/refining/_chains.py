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
from numpy.typing import NDArray

from kgather.udfs._shared.one_type import int64
from kgather.udfs._shared.ordering import ascending

ALONE = -1  # how a chain ends, where no group is entered
CYCLE = -2
_LOOKED = 64  # members of a group looked at in one step at most, those farthest from the centroid
_SORTED_BY_INSERTION = 32
_STAYS = 50  # chains that one user may start before the next one's turn
_TRIED = 1000  # steps of one search; on usual data a search takes a few dozen

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order, so that they fit in vector registers

USER = np.dtype(
    [
        ("own", np.float64),  # squared distance to the centroid of her group
        ("root", np.float64),  # its root
        ("group", np.int32),
        ("after", np.int32),  # the next member in the ring, which goes from the farthest to the nearest
        ("before", np.int32),
        ("least", np.int32),  # the smallest group that she accepts
        ("dirty", np.int64),  # 1: to be looked at
    ]
)
GROUP = np.dtype(
    [
        ("size", np.int64),
        ("spread", np.float64),  # the mean squared distance of its members to the centroid
        ("stamp", np.int64),  # the last step of a search that has seen it
        ("head", np.int32),  # the member farthest from the centroid, -1 if there is none
        ("level", np.int32),  # the largest `least` of the members
        ("holders", np.int32),  # how many have it
        ("below", np.int32),  # the next largest, 0 if there is none
    ]
)
STEP = np.dtype(
    [
        ("user", np.int64),
        ("so_far", np.float64),  # the change of squares up to here
        ("found", np.int64),  # continuations kept, and the one being followed
        ("at", np.int64),
        ("best", np.int64),  # the user of this step in the best chain
    ]
)
NEXT = np.dtype([("cost", np.float64), ("user", np.int64)])


class Block(NamedTuple):
    """The users of a block and their groups; b users, d columns, room for g groups, m near users each."""

    rows: NDArray[np.float64]  # float64[b, d]
    gaps: NDArray[np.float64]  # float64[b, b], the squared distances; or [0, 0]: they are computed when needed
    near: NDArray[np.int32]  # int32[b, m], -1 where there are fewer
    users: NDArray[np.void]  # USER[b]
    groups: NDArray[np.void]  # GROUP[g]
    centre: NDArray[np.float64]  # float64[g, d]
    unused: NDArray[np.int32]  # int32[g + 1]: how many group numbers are not in use, then these
    spare: NDArray[np.int32]  # int32[b], scratch
    most: int  # the largest size of a group, 0 for 2 level - 1


@njit(nogil=True, cache=True, fastmath=_FAST)
def gap(left: NDArray[np.float64], i: int, right: NDArray[np.float64], j: int) -> float:
    """The squared distance of row i of the one and row j of the other, float64[., d]."""
    total = 0.0
    for a in range(left.shape[1]):
        difference = left[i, a] - right[j, a]
        total += difference * difference
    return total


@njit(nogil=True, cache=True)
def _to_centroid(gaps: NDArray[np.float64], users: NDArray[np.void], groups: NDArray[np.void], i: int, g: int) -> float:
    """The squared distance of user i to the centroid of group g from the distances to its members."""
    total = 0.0
    w = groups[g].head
    for _ in range(groups[g].size):
        total += gaps[i, w]
        w = users[w].after
    return max(0.0, total / groups[g].size - groups[g].spread)


def new_block(
    rows: NDArray[np.float64],
    gaps: NDArray[np.float64],
    near: NDArray[np.int32],
    users: NDArray[np.void],
    groups: NDArray[np.void],
    most: int,
) -> Block:
    """A block of users whose `least` and `group` are given; groups GROUP[g] are the room for them, all zero."""
    room = len(groups)
    block = Block(
        rows,
        gaps,
        near,
        users,
        groups,
        np.empty((room, rows.shape[1])),
        np.zeros(room + 1, dtype=np.int32),
        np.empty(len(users), dtype=np.int32),
        most,
    )
    _settle_all(block)
    return block


@njit(nogil=True, cache=True)
def _settle_all(block: Block) -> None:
    """Links the users of a new block to rings, and settles all groups."""
    users, groups = block.users, block.groups
    for i in range(len(users)):
        _link(users, groups, i, int64(users[i].group))
    for g in range(len(groups) - 1, -1, -1):  # so that the smallest unused number is taken first
        settle(block, g)


@njit(nogil=True, cache=True, inline="always")
def _link(users: NDArray[np.void], groups: NDArray[np.void], i: int, g: int) -> None:
    """Puts user i at the end of the ring of group g."""
    if groups[g].size == 0:
        groups[g].head = i
        users[i].before = i
    first = groups[g].head
    last = users[first].before
    users[last].after = i
    users[i].before = last
    users[i].after = first
    users[first].before = i
    users[i].group = g
    groups[g].size += 1


@njit(nogil=True, cache=True)
def move(block: Block, i: int, g: int) -> int:
    """Moves user i to group g; returns the group she was in. Both have to be settled."""
    users, groups = block.users, block.groups
    left, after, before = int64(users[i].group), users[i].after, users[i].before
    users[before].after = after
    users[after].before = before
    if groups[left].head == i:
        groups[left].head = after
    groups[left].size -= 1
    _link(users, groups, i, g)
    return left


@njit(nogil=True, cache=True, inline="always")
def unused_number(block: Block) -> int:
    """Takes a group number that is not in use."""
    unused = block.unused
    number = int64(unused[unused[0]])
    unused[0] -= 1
    return number


@njit(nogil=True, cache=True)
def settle(block: Block, g: int) -> None:
    """Brings centroid, levels and distances of a group up to date; its members are to be looked at again."""
    rows, users, groups, centre, members = block.rows, block.users, block.groups, block.centre, block.spare
    size = groups[g].size
    if size == 0:
        unused = block.unused
        unused[0] += 1
        unused[unused[0]] = g
        return
    for a in range(rows.shape[1]):
        centre[g, a] = 0.0
    level, holders, below = np.int32(0), np.int32(0), np.int32(0)
    i = groups[g].head
    for at in range(size):
        members[at] = i
        for a in range(rows.shape[1]):
            centre[g, a] += rows[i, a]
        least = users[i].least
        if least > level:
            level, holders, below = least, np.int32(1), level
        elif least == level:
            holders += np.int32(1)
        elif least > below:
            below = least
        i = users[i].after
    groups[g].level, groups[g].holders, groups[g].below = level, holders, below
    for a in range(rows.shape[1]):
        centre[g, a] /= size
    groups[g].spread = 0.0
    for at in range(size):
        i = int64(members[at])
        users[i].own = gap(rows, i, centre, g)
        groups[g].spread += users[i].own / size
        users[i].root = np.sqrt(users[i].own)
        users[i].dirty = 1
    _sort(users, members[:size])
    groups[g].head = members[0]
    before = members[size - 1]
    for at in range(size):
        users[members[at]].before = before
        users[before].after = members[at]
        before = members[at]


@njit(nogil=True, cache=True, inline="always")
def _sort(users: NDArray[np.void], members: NDArray[np.int32]) -> None:
    """Sorts the members of a group: those farthest from its centroid first."""
    if len(members) > _SORTED_BY_INSERTION:
        key = np.empty(len(members))
        for at in range(len(members)):
            key[at] = -users[members[at]].own
        order = ascending(key)
        # one by one: to assign an array to a slice compiles numpy's message of shapes that do not fit
        for at in range(len(members)):
            order[at] = members[order[at]]
        for at in range(len(members)):
            members[at] = order[at]
        return
    for at in range(1, len(members)):
        i = members[at]
        place = at
        while place > 0 and users[members[place - 1]].own < users[i].own:
            members[place] = members[place - 1]
            place -= 1
        members[place] = i


@njit(nogil=True, cache=True, inline="always")
def _rest(users: NDArray[np.void], groups: NDArray[np.void], i: int) -> int:
    """The level of the group of user i without her."""
    g = users[i].group
    if users[i].least == groups[g].level and groups[g].holders == 1:
        return groups[g].below
    return groups[g].level


@njit(nogil=True, cache=True, inline="always")
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
def leaves(users: NDArray[np.void], groups: NDArray[np.void], i: int, most: int) -> bool:
    """Whether a user's group may go on without her."""
    g = users[i].group
    return fits(groups[g].size - 1, _rest(users, groups, i), groups[g].size, groups[g].level, most)


@njit(nogil=True, cache=True)
def joins(users: NDArray[np.void], groups: NDArray[np.void], i: int, g: int, most: int) -> bool:
    """Whether user i may become one more member of group g."""
    level = max(groups[g].level, users[i].least)
    return fits(groups[g].size + 1, level, groups[g].size, groups[g].level, most)


@njit(nogil=True, cache=True)
def _replaces(users: NDArray[np.void], groups: NDArray[np.void], i: int, out: int, most: int) -> bool:
    """Whether user i may take the place of another one."""
    if users[i].least == users[out].least:
        return True
    g = users[out].group
    level = max(_rest(users, groups, out), users[i].least)
    return fits(groups[g].size, level, groups[g].size, groups[g].level, most)


@njit(nogil=True, cache=True)
def _keep(steps: NDArray[np.void], last: int) -> None:
    """Takes the chain followed as the best one."""
    for step in range(last + 1):
        steps[step].best = steps[step].user


@njit(nogil=True, cache=True, inline="always")
def _keep_next(steps: NDArray[np.void], nexts: NDArray[np.void], step: int, user: int, cost: float) -> None:
    """Enters a continuation in the list of the best ones of a step."""
    place = steps[step].found
    if place == nexts.shape[1]:
        place -= 1
        if nexts[step, place].cost <= cost:
            return
    else:
        steps[step].found += 1
    while place > 0 and nexts[step, place - 1].cost > cost:
        nexts[step, place].cost = nexts[step, place - 1].cost
        nexts[step, place].user = nexts[step, place - 1].user
        place -= 1
    nexts[step, place].cost = cost
    nexts[step, place].user = user


@njit(nogil=True, cache=True)
def _best_chain(
    rows: NDArray[np.float64],
    gaps: NDArray[np.float64],
    near: NDArray[np.int32],
    users: NDArray[np.void],
    groups: NDArray[np.void],
    centre: NDArray[np.float64],
    most: int,
    steps: NDArray[np.void],
    nexts: NDArray[np.void],
    stamp: int,
    u: int,
    plain: bool,
    tiny: float,
) -> tuple[float, int, int, int]:
    """The best chain from user u that lowers the squares by more than `tiny`: its change, its number of
    users (0: there is none; they are in steps.best), its end (a group, ALONE or CYCLE), and the last stamp.

    steps STEP[depth + 1] and nexts NEXT[depth, width]: scratch. stamp: the last one that was given to a
    group. plain: all users have the same `least`. The arrays are given one by one because to take them out
    of a tuple counts references, which costs more than the search of a user.
    """
    depth = len(nexts)
    known = len(gaps) > 0
    home, own_u, root_u = int64(users[u].group), users[u].own, users[u].root
    size_home = groups[home].size
    may_leave = leaves(users, groups, u, most)
    loss = -own_u * size_home / (size_home - 1) if may_leave and size_home > 1 else 0.0
    ceiling = -loss  # the sum so far of a chain that may still become a gain
    best, length, end = -tiny, 0, CYCLE
    steps[0].user, steps[0].so_far, steps[0].at = u, 0.0, -1
    if may_leave and users[u].least == 1 and loss < best:
        best, length, end = loss, 1, ALONE
        _keep(steps, int64(0))
    step = int64(0)
    last_stamp = stamp + _TRIED
    while step >= 0 and stamp < last_stamp:
        if steps[step].at < 0:
            x, so_far = steps[step].user, steps[step].so_far
            stamp += 1
            for s in range(step + 1):
                groups[users[steps[s].user].group].stamp = stamp
            steps[step].found = 0
            for j in range(near.shape[1]):
                if near[x, j] < 0:
                    continue
                g = int64(users[near[x, j]].group)
                if groups[g].stamp == stamp:
                    continue
                groups[g].stamp = stamp
                to_centre = _to_centroid(gaps, users, groups, x, g) if known else gap(rows, x, centre, g)
                n = groups[g].size
                if may_leave:
                    change = so_far + loss + to_centre * n / (n + 1)
                    if change < best and joins(users, groups, x, g, most):
                        best, length, end = change, step + 1, g
                        _keep(steps, step)
                entered = so_far + to_centre
                to_root = np.sqrt(to_centre)
                w = int64(groups[g].head)
                for _ in range(min(n, _LOOKED)):
                    # x_w is at most `reach` squared, by the triangle inequality; nearer members only cost more
                    own = users[w].own
                    reach = to_root + users[w].root
                    if entered - own - reach * reach / n >= ceiling:
                        break
                    x_w = gaps[x, w] if known else gap(rows, x, rows, w)
                    cost = entered - own - x_w / n
                    if cost < ceiling and (plain or _replaces(users, groups, x, w, most)):
                        to_home = _to_centroid(gaps, users, groups, w, home) if known else gap(rows, w, centre, home)
                        change = cost + to_home - own_u
                        reach = root_u + np.sqrt(to_home)
                        if change - reach * reach / size_home < best:
                            change -= (gaps[u, w] if known else gap(rows, u, rows, w)) / size_home
                            if change < best and (plain or _replaces(users, groups, w, u, most)):
                                best, length, end = change, step + 2, CYCLE
                                _keep(steps, step)
                                steps[step + 1].best = w
                        if may_leave and users[w].least == 1 and cost + loss < best:
                            best, length, end = cost + loss, step + 2, ALONE
                            _keep(steps, step)
                            steps[step + 1].best = w
                        if step + 1 < depth:
                            _keep_next(steps, nexts, step, w, cost)
                    w = users[w].after
            if length > 0:  # the shortest chains first: a longer one may follow
                break
            steps[step].at = 0
        if steps[step].at >= steps[step].found:
            step -= 1
            if step >= 0:
                steps[step].at += 1
            continue
        chosen = nexts[step, steps[step].at]
        step += 1
        steps[step].user, steps[step].so_far, steps[step].at = chosen.user, chosen.cost, -1
    return best, length, end, stamp


@njit(nogil=True, cache=True, inline="always")
def _follow(block: Block, steps: NDArray[np.void], length: int, end: int) -> None:
    """Moves the users of the best chain."""
    home = int64(block.users[steps[0].best].group)
    target = end
    if end == CYCLE:
        target = home
    elif end == ALONE:
        target = unused_number(block)
    entered = target
    for step in range(length - 1, -1, -1):
        target = move(block, steps[step].best, target)
        if entered != home:
            settle(block, entered)
        entered = target
    settle(block, home)


@njit(nogil=True, cache=True)
def descend(
    block: Block, steps: NDArray[np.void], nexts: NDArray[np.void], plain: bool, tiny: float, sweeps: int
) -> float:
    """Follows chains until no user to be looked at starts one, or `sweeps` times; returns the change."""
    rows, gaps, near, users, groups, centre = (
        block.rows, block.gaps, block.near, block.users, block.groups, block.centre,
    )  # fmt: skip
    total = 0.0
    stamp = int64(0)  # of one type with what a search returns, so that it is compiled once
    for g in range(len(groups)):
        groups[g].stamp = 0
    for _ in range(sweeps):
        changed = False
        for u in range(len(users)):
            if users[u].dirty == 0:
                continue
            g = users[u].group
            if plain and groups[g].spread <= tiny and groups[g].head != u:  # all are equal: one stands for them
                users[u].dirty = 0
                continue
            for _ in range(_STAYS):
                change, length, end, stamp = _best_chain(
                    rows, gaps, near, users, groups, centre, block.most, steps, nexts, stamp, u, plain, tiny
                )
                if length == 0:
                    break
                _follow(block, steps, length, end)
                total += change
                changed = True
            users[u].dirty = 0
        if not changed:
            break
    return total
