"""The search of customized k-anonymity: steps inside a block of near users (see kgather.udfs.gathering.customized).

Every step lowers the sum of squares of the block and leaves every group as large as the highest level among its
members. Users and groups of a block have numbers of their own.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.selection import kth_smallest
from kgather.udfs.gathering._customized_start import start

_PARTNERS = 64  # users of another group that are tried for an exchange
_NEAR = 3  # groups that are tried for an exchange
_TINY = 1e-9  # steps that save a smaller share of what they change are rounding errors
_WORK = 1 << 28  # users times groups in a block that is not too large to work on
_SEARCHED = 8192  # users in a block that is not too large to look for users standing alone
_FOUND_WORK = 1 << 18  # pairs of users looked at to found groups
_ALONE: Any = np.int64(-1)  # the group of a user who stands alone
_ZERO: Any = np.int64(0)  # where a plain 0 would make numba compile once more

_USER = np.dtype(
    [
        ("level", np.int64),
        ("group", np.int64),  # -1: alone
        ("before", np.int64),  # the members of a group are a list; -1: none
        ("after", np.int64),
    ]
)
_GROUP = np.dtype(
    [
        ("first", np.int64),  # member
        ("size", np.int64),
        ("highest", np.int64),  # level of a member
        ("holders", np.int64),  # members that have it; -1: the number of the group is free
    ]
)


class _Block(NamedTuple):
    """The users 0..m-1 of a block and their groups of two or more, numbered 0..c-1."""

    rows: NDArray[np.float32]  # float32[m, d]
    columns: NDArray[np.float32]  # float32[d, m]: the same
    users: NDArray[np.void]  # _USER[m]
    groups: NDArray[np.void]  # _GROUP[c]
    sums: NDArray[np.float64]  # float64[c, d]
    means: NDArray[np.float32]  # float32[d + 1, c]: centroids, infinite where there is no member, and size / (size + 1)
    free: NDArray[np.int64]  # int64[c]: numbers of groups that are free, the next one last
    state: NDArray[np.int64]  # int64[2]: how many numbers are free; how many numbers were ever in use


class _Scratch(NamedTuple):
    """What the steps write over, so that none has to allocate it."""

    members: NDArray[np.int64]  # int64[m]
    found: NDArray[np.int32]  # int32[m]
    key: NDArray[np.float64]  # float64[m]
    spare: NDArray[np.float64]  # float64[m]
    cost: NDArray[np.float32]  # float32[m]
    near: NDArray[np.int64]  # int64[_NEAR]
    point: NDArray[np.float64]  # float64[d]


@njit(nogil=True, cache=True)
def _put(b: _Block, user: int, group: int) -> None:
    """The user leaves its group, if it has one, for another (-1: none). A group left by all but one has to be freed."""
    d = b.rows.shape[1]
    home, level = b.users[user].group, b.users[user].level
    b.users[user].group = group
    if home >= 0:
        before, after = b.users[user].before, b.users[user].after
        if before >= 0:
            b.users[before].after = after
        else:
            b.groups[home].first = after
        if after >= 0:
            b.users[after].before = before
        b.groups[home].size -= 1
        if level == b.groups[home].highest:
            b.groups[home].holders -= 1
            if b.groups[home].holders == 0:
                b.groups[home].highest = 0
                i = b.groups[home].first
                while i >= 0:
                    if b.users[i].level > b.groups[home].highest:
                        b.groups[home].highest, b.groups[home].holders = b.users[i].level, 1
                    elif b.users[i].level == b.groups[home].highest:
                        b.groups[home].holders += 1
                    i = b.users[i].after
    if group >= 0:
        first = b.groups[group].first
        b.users[user].before, b.users[user].after = -1, first
        if first >= 0:
            b.users[first].before = user
        b.groups[group].first = user
        b.groups[group].size += 1
        if level > b.groups[group].highest:
            b.groups[group].highest, b.groups[group].holders = level, 1
        elif level == b.groups[group].highest:
            b.groups[group].holders += 1
    for side in range(2):
        changed = home if side == 0 else group
        if changed < 0:
            continue
        size = b.groups[changed].size
        b.means[d, changed] = size / (size + 1)
        for a in range(d):
            b.sums[changed, a] += -b.rows[user, a] if side == 0 else b.rows[user, a]
            b.means[a, changed] = b.sums[changed, a] / size if size > 0 else np.inf


@njit(nogil=True, cache=True)
def _new_group(b: _Block) -> int:
    b.state[0] -= 1
    group = b.free[b.state[0]]
    b.state[1] = max(b.state[1], group + 1)
    b.groups[group].first = -1
    b.groups[group].size = 0
    b.groups[group].highest = 0
    b.groups[group].holders = 0
    for a in range(b.rows.shape[1]):
        b.sums[group, a] = 0.0
    return int(group)


@njit(nogil=True, cache=True)
def _tidy(b: _Block, group: int) -> None:
    """Frees the number of a group with fewer than two members; the last one stands alone."""
    if group < 0 or b.groups[group].size > 1 or b.groups[group].holders < 0:
        return
    if b.groups[group].size == 1:
        _put(b, b.groups[group].first, _ALONE)
    b.free[b.state[0]] = group
    b.state[0] += 1
    b.groups[group].holders = -1


@njit(nogil=True, cache=True)
def _spared(b: _Block, user: int) -> bool:
    """Can the user leave its group, if it has one, without making it too small for the others?"""
    group = b.users[user].group
    if group < 0 or b.groups[group].size > b.groups[group].highest:
        return True
    if b.users[user].level < b.groups[group].highest or b.groups[group].holders > 1:
        return False
    i = b.groups[group].first
    while i >= 0:
        if i != user and b.users[i].level >= b.groups[group].size:
            return False
        i = b.users[i].after
    return True


@njit(nogil=True, cache=True)
def _squared_distance(b: _Block, user: int, group: int) -> float:
    """To the centroid of the group."""
    total = 0.0
    share = 1.0 / b.groups[group].size
    for a in range(b.rows.shape[1]):
        gap = b.rows[user, a] - b.sums[group, a] * share
        total += gap * gap
    return total


@njit(nogil=True, cache=True)
def _loss(b: _Block, group: int) -> float:
    """The sum of squared distances to the centroid."""
    total = 0.0
    i = b.groups[group].first
    while i >= 0:
        total += _squared_distance(b, i, group)
        i = b.users[i].after
    return total


@njit(nogil=True, cache=True)
def _gain(b: _Block, user: int) -> float:
    """What the loss of the user's group falls by when the user leaves."""
    group = b.users[user].group
    if group < 0 or b.groups[group].size == 1:
        return 0.0
    size = b.groups[group].size
    return size / (size - 1) * _squared_distance(b, user, group)


@njit(nogil=True, cache=True)
def _cost(b: _Block, user: int, group: int) -> float:
    """What the loss of the group rises by when the user joins."""
    size = b.groups[group].size
    return size / (size + 1) * _squared_distance(b, user, group)


@njit(nogil=True, cache=True)
def _nearest_groups(b: _Block, user: int, s: _Scratch) -> None:
    """s.near: the other groups that the user would add least to and that are large enough for it once it is there,
    nearest first, -1 where there are fewer.
    """
    used, d = b.state[1], b.rows.shape[1]
    cost, near = s.cost, s.near
    for group in range(used):
        cost[group] = 0
    for a in range(d):
        x, mean = b.rows[user, a], b.means[a]
        for group in range(used):
            gap = x - mean[group]
            cost[group] += gap * gap
    weight = b.means[d]
    for group in range(used):
        cost[group] *= weight[group]
    home, level = b.users[user].group, b.users[user].level
    if home >= 0:
        cost[home] = np.inf
    for place in range(_NEAR):
        near[place] = -1
    worst = np.float32(np.inf)
    for group in range(used):
        if cost[group] < worst and b.groups[group].size + 1 >= level:
            place = _NEAR - 1
            while place > 0 and (near[place - 1] < 0 or cost[near[place - 1]] > cost[group]):
                near[place] = near[place - 1]
                place -= 1
            near[place] = group
            if near[_NEAR - 1] >= 0:
                worst = cost[near[_NEAR - 1]]


@njit(nogil=True, cache=True)
def _distances_to_point(b: _Block, s: _Scratch) -> None:
    """s.cost: the squared distance of every user to s.point."""
    m, cost = len(b.users), s.cost
    for other in range(m):
        cost[other] = 0
    for a in range(b.rows.shape[1]):
        x, column = np.float32(s.point[a]), b.columns[a]
        for other in range(m):
            gap = x - column[other]
            cost[other] += gap * gap


@njit(nogil=True, cache=True)
def _nearest_alone(b: _Block, s: _Scratch) -> tuple[int, float]:
    """The user standing alone who is nearest to s.point, and the squared distance; (-1, inf) if there is none.

    Very large blocks are not searched.
    """
    m = len(b.users)
    found, least = _ALONE, np.float32(np.inf)
    if m <= _SEARCHED:
        _distances_to_point(b, s)
        for other in range(m):
            if s.cost[other] < least and b.users[other].group < 0:
                found, least = other, s.cost[other]
    if found < 0:
        return found, np.inf
    distance = 0.0
    for a in range(b.rows.shape[1]):
        gap = b.rows[found, a] - s.point[a]
        distance += gap * gap
    return found, distance


@njit(nogil=True, cache=True)
def _best_place(b: _Block, user: int, s: _Scratch) -> tuple[int, int, float]:
    """Where the user adds least: (a group, -1, cost), or (-1, a user standing alone, cost); (-1, -1, inf) if nowhere.

    s.near becomes the nearest other groups.
    """
    _nearest_groups(b, user, s)
    group, other, least = s.near[0], _ALONE, np.inf
    if group >= 0:
        least = _cost(b, user, group)
    if b.users[user].level == 2:
        for a in range(b.rows.shape[1]):
            s.point[a] = b.rows[user, a]
        alone, distance = _nearest_alone(b, s)
        if distance / 2 < least:
            group, other, least = _ALONE, alone, distance / 2
    return group, other, least


@njit(nogil=True, cache=True)
def _go(b: _Block, user: int, group: int, other: int) -> None:
    """The user goes to the place that `_best_place` found."""
    if other >= 0:
        group = _new_group(b)
        _put(b, other, group)
    _put(b, user, group)


@njit(nogil=True, cache=True)
def _move(b: _Block, user: int, s: _Scratch) -> bool:
    """The user stands alone or goes to another group, if the loss falls. If its group cannot spare it, the nearest
    user standing alone takes its place.

    s.near becomes the nearest other groups, none (-1) if they were not looked for.
    """
    home, level = b.users[user].group, b.users[user].level
    s.near[0] = -1
    if home < 0:
        return False
    spared = _spared(b, user)
    if spared and level == 1:
        _put(b, user, _ALONE)
        _tidy(b, home)
        return True
    group, other, least = _best_place(b, user, s)
    gain = _gain(b, user) * (1 - _TINY)
    if least >= gain:
        return False
    if not spared:
        if level == 1:
            return False
        size = b.groups[home].size
        for a in range(b.rows.shape[1]):
            s.point[a] = (b.sums[home, a] - b.rows[user, a]) / (size - 1)
        alone, distance = _nearest_alone(b, s)
        if alone < 0 or alone == other or least + distance * (size - 1) / size >= gain:
            return False
        _put(b, alone, home)
    _go(b, user, group, other)
    _tidy(b, home)
    return True


@njit(nogil=True, cache=True)
def _exchange(b: _Block, user: int, s: _Scratch) -> bool:
    """The user changes places with one of the groups s.near, where that lowers the loss most."""
    d, home, level = b.rows.shape[1], b.users[user].group, b.users[user].level
    size = b.groups[home].size
    best, best_change = _ALONE, 0.0
    # the loss changes by 2 gap.(here - there) + gap.gap (2 - 1 / size - 1 / size of the other)
    for place in range(_NEAR):
        other = s.near[place]
        if other < 0 or b.groups[other].size < level:
            continue
        share, of_other = 1.0 / size, 1.0 / b.groups[other].size
        for a in range(d):
            s.point[a] = b.sums[home, a] * share - b.sums[other, a] * of_other
        i = b.groups[other].first
        tried = 0
        while i >= 0 and tried < _PARTNERS:
            tried += 1
            if b.users[i].level <= size:
                linear, square = 0.0, 0.0
                for a in range(d):
                    gap = float(b.rows[i, a]) - b.rows[user, a]
                    linear -= gap * (gap + s.point[a])
                    square += gap * gap
                change = 2 * linear + square * (2 - share - of_other)
                if change < best_change and change < -_TINY * square:
                    best, best_change = i, change
            i = b.users[i].after
    if best < 0:
        return False
    other = b.users[best].group
    _put(b, user, other)
    _put(b, best, home)
    return True


@njit(nogil=True, cache=True)
def _refill(b: _Block, group: int, s: _Scratch) -> bool:
    """The group takes the nearest users of level 1 that stand alone for company instead of those it has, if the loss
    falls.
    """
    company = 0
    i = b.groups[group].first
    while i >= 0:
        company += b.users[i].level == 1
        i = b.users[i].after
    core = b.groups[group].size - company
    if company == 0 or core == 0:
        return False
    wanted = min(company, max(b.groups[group].highest - core, 0))
    count = _ZERO
    for user in range(len(b.users)):
        if b.users[user].group < 0 or (b.users[user].group == group and b.users[user].level == 1):
            s.members[count] = user
            s.key[count] = _squared_distance(b, user, group)
            s.spare[count] = s.key[count]
            count += 1
    limit = kth_smallest(s.spare, 0, count, wanted - 1) if wanted > 0 else -1.0
    ties = wanted
    for j in range(count):
        ties -= s.key[j] < limit
    before = _loss(b, group)
    changes = 0
    for j in range(count):
        user = s.members[j]
        take = s.key[j] < limit
        if not take and s.key[j] == limit and ties > 0:
            take = True
            ties -= 1
        if take != (b.users[user].group == group):
            s.members[changes] = user  # those that change are remembered
            changes += 1
            _put(b, user, group if take else _ALONE)
    if changes == 0:
        return False
    if _loss(b, group) < before * (1 - _TINY):
        return True
    for j in range(changes):
        user = s.members[j]
        _put(b, user, group if b.users[user].group < 0 else _ALONE)
    return False


@njit(nogil=True, cache=True)
def _satisfied(b: _Block, group: int) -> int:
    """The highest level below the group's highest such that those of up to that level are enough for it; 0: none."""
    top = b.groups[group].highest
    of_level = np.zeros(top, dtype=np.int64)
    i = b.groups[group].first
    while i >= 0:
        if b.users[i].level < top:
            of_level[b.users[i].level] += 1
        i = b.users[i].after
    together, found = 0, 0
    for level in range(1, top):
        together += of_level[level]
        if of_level[level] > 0 and together >= level:
            found = level
    return found


@njit(nogil=True, cache=True)
def _gather_anew(b: _Block, users: NDArray[np.int64], tries: int, seed: np.uint64, s: _Scratch) -> tuple[int, float]:
    """Gathers some users, int64[u], as in the start: s.found becomes the group of each, 0..g-1, in the same order.

    Returns g and the sum of squares.
    """
    count, d = len(users), b.rows.shape[1]
    rows = np.empty((count, d), dtype=np.float32)
    levels, order = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int32)
    for j in range(count):
        order[j], levels[j] = j, b.users[users[j]].level
        for a in range(d):
            rows[j, a] = b.rows[users[j], a]
    made = start(rows, order, levels, tries, seed, s.found)
    sums, size = np.zeros((made, d)), np.zeros(made)
    for j in range(count):
        size[s.found[j]] += 1
        for a in range(d):
            sums[s.found[j], a] += b.rows[users[j], a]
    loss = 0.0
    for j in range(count):
        for a in range(d):
            gap = b.rows[users[j], a] - sums[s.found[j], a] / size[s.found[j]]
            loss += gap * gap
    return made, loss


@njit(nogil=True, cache=True)
def _remake(b: _Block, group: int, up_to: int, tries: int, seed: np.uint64, s: _Scratch) -> bool:
    """Gathers the members of up to a level anew and sends the others to other groups, one by one, if the loss falls.

    With the group's highest level as `up_to` this is a cut, with what `_satisfied` says the group is given up.
    """
    size = b.groups[group].size
    users = np.empty(size, dtype=np.int64)
    stay, behind = 0, size
    i = b.groups[group].first
    while i >= 0:
        if b.users[i].level <= up_to:
            users[stay] = i
            stay += 1
        else:
            behind -= 1
            users[behind] = i
        i = b.users[i].after
    made, loss = 0, 0.0
    if stay > 0:
        made, loss = _gather_anew(b, users[:stay], tries, seed, s)
    before = _loss(b, group)
    change = loss - before
    if (stay == size and made == 1) or change >= -_TINY * before:
        return False
    partner = np.empty(size, dtype=np.int64)
    moved = stay
    while moved < size and change < -_TINY * before:
        place, partner[moved], cost = _best_place(b, users[moved], s)
        change += cost
        if cost == np.inf:
            break
        _go(b, users[moved], place, partner[moved])
        moved += 1
    if change >= -_TINY * before:
        for j in range(moved - 1, stay - 1, -1):
            place = b.users[users[j]].group
            _put(b, users[j], group)
            if partner[j] >= 0:
                _tidy(b, place)
        return False
    numbers = np.zeros(made, dtype=np.int64)
    for j in range(stay):
        numbers[s.found[j]] += 1
    for new in range(made):
        numbers[new] = _new_group(b) if numbers[new] > 1 else -1
    for j in range(stay):
        _put(b, users[j], numbers[s.found[j]])
    _tidy(b, group)
    return True


@njit(nogil=True, cache=True)
def _found(b: _Block, user: int, s: _Scratch) -> bool:
    """The user and its nearest ones that can be spared, none of a higher level, found a group, if the loss falls."""
    m, d = b.rows.shape
    level, home = b.users[user].level, b.users[user].group
    if level == 1 or home < 0 or not _spared(b, user):
        return False
    for a in range(d):
        s.point[a] = b.rows[user, a]
    _distances_to_point(b, s)
    count = _ZERO
    for other in range(m):
        group = b.users[other].group
        if (
            other != user
            and b.users[other].level <= level
            and (group < 0 or b.groups[group].size > b.groups[group].highest)
        ):
            s.members[count] = other
            s.key[count] = s.cost[other]
            s.spare[count] = s.cost[other]
            count += 1
    if count < level - 1:
        return False
    limit = kth_smallest(s.spare, 0, count, level - 2)
    chosen, origin = np.empty(level, dtype=np.int64), np.empty(level, dtype=np.int64)
    new = _new_group(b)
    taken = 0
    change, scale = 0.0, 0.0
    for j in range(-1, count):
        if taken == level or (j >= 0 and s.key[j] > limit):
            continue
        other = user if j < 0 else s.members[j]
        if not _spared(b, other):
            continue
        chosen[taken], origin[taken] = other, b.users[other].group
        gain = _gain(b, other)
        scale += gain
        change -= gain
        if taken > 0:
            change += _cost(b, other, new)
        _put(b, other, new)
        taken += 1
    if taken == level and change < -_TINY * scale:
        for j in range(taken):
            _tidy(b, origin[j])
        return True
    for j in range(taken):
        _put(b, chosen[j], origin[j])
    _tidy(b, new)
    return False


@njit(nogil=True, cache=True)
def _new_block(
    rows: NDArray[np.float32],
    levels: NDArray[np.int64],
    groups: NDArray[np.int32],
    users: NDArray[np.int64],
    begin: int,
    m: int,
) -> _Block:
    """The block of users[begin:begin + m], where those of a group stand together."""
    d, c = rows.shape[1], m // 2 + 2
    b = _Block(
        np.empty((m, d), dtype=np.float32),
        np.empty((d, m), dtype=np.float32),
        np.empty(m, dtype=_USER),
        np.empty(c, dtype=_GROUP),
        np.empty((c, d)),
        np.empty((d + 1, c), dtype=np.float32),
        np.empty(c, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    b.state[0] = c
    for group in range(c):
        b.free[group] = c - 1 - group
        b.groups[group].size, b.groups[group].holders = 0, -1
        for a in range(d + 1):
            b.means[a, group] = np.inf
    number = _ALONE
    for i in range(m):
        user = users[begin + i]
        b.users[i].level, b.users[i].group = levels[user], -1
        for a in range(d):
            b.rows[i, a] = rows[user, a]
            b.columns[a, i] = rows[user, a]
        first = i == 0 or groups[users[begin + i - 1]] != groups[user]
        last = i == m - 1 or groups[users[begin + i + 1]] != groups[user]
        if first and last:
            continue
        if first:
            number = _new_group(b)
        _put(b, i, number)
    return b


@njit(nogil=True, cache=True)
def improve(
    rows: NDArray[np.float32],
    levels: NDArray[np.int64],
    groups: NDArray[np.int32],
    users: NDArray[np.int64],
    edges: NDArray[np.int64],
    lo: int,
    hi: int,
    tries: int,
    seed: np.uint64,
    found: NDArray[np.int32],
    loss: NDArray[np.float64],
) -> None:
    """Improves the blocks lo:hi; block j has the users users[edges[j]:edges[j + 1]], those of a group together.

    found int32[n] becomes the new group of every user of these blocks, other numbers in every block; loss
    float64[blocks, 2] the sum of squares before and after.
    """
    for j in range(lo, hi):
        begin, m = edges[j], edges[j + 1] - edges[j]
        b = _new_block(rows, levels, groups, users, begin, m)
        s = _Scratch(
            np.empty(m, dtype=np.int64),
            np.empty(m, dtype=np.int32),
            np.empty(m),
            np.empty(m),
            np.empty(m + 2, dtype=np.float32),
            np.empty(_NEAR, dtype=np.int64),
            np.empty(rows.shape[1]),
        )
        for group in range(b.state[1]):
            loss[j, 0] += _loss(b, group)
        step = max(1, m * m // _FOUND_WORK)
        shift = np.int64(seed % np.uint64(step))
        for kind in range(5):
            for i in range(m if kind in (1, 4) else b.state[1]):
                if m * b.state[1] > _WORK:
                    break
                if kind == 1:
                    if not _move(b, i, s) and s.near[0] >= 0:
                        _exchange(b, i, s)
                elif kind == 4:
                    if i % step == shift:
                        _found(b, i, s)
                elif b.groups[i].size > 1:
                    highest = b.groups[i].highest
                    if kind == 0:
                        _remake(b, i, _satisfied(b, i), tries, seed, s)
                    elif kind == 2:
                        _refill(b, i, s)
                    elif b.groups[i].size > highest:
                        _remake(b, i, highest, tries, seed, s)
        number = begin
        numbers = np.full(len(b.groups), -1, dtype=np.int64)
        for i in range(m):
            group = b.users[i].group
            if group < 0 or numbers[group] < 0:
                if group >= 0:
                    numbers[group] = number
                    loss[j, 1] += _loss(b, group)
                found[users[begin + i]] = number
                number += 1
            else:
                found[users[begin + i]] = numbers[group]
