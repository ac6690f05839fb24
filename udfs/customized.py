"""Customized k-anonymity: every user says how large its group must at least be (X. Chen's thesis, sections 5.1 and
8.4, which asks for a method and gives none).

The groups are made in two steps.

Start (`_start`): the set is bisected as in Bisecting K-Gather, where a side is allowed if it is as large as the
highest level among its users; a side that is too small takes the nearest users of the other side. A part that
cannot be bisected lets users go whom it can spare: users of level 1, farthest first, who then stand alone, and the
surroundings of its farthest user, as many as can satisfy their levels among themselves.

Search (`_improve`): users and groups near each other form a block, and in every block steps are taken as long as
they lower the sum of squares and no group gets smaller than its highest level:

- a user goes to another group, or stands alone if it has level 1; two users change places;
- a group takes the nearest users of level 1 for company, instead of those it has;
- a group that has grown is cut as in the start;
- a group is given up: those of the highest level go to other groups, the others are gathered anew;
- a user and its nearest ones that can be spared found a new group.

Blocks are cut anew, by other planes, in every pass. They are independent of each other, so the result does not
depend on the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit

from kgather.udfs import bkg
from kgather.udfs.bisection import (
    LOPSIDED,
    LOPSIDED_MAX,
    STACK,
    bisect,
    bring_smallest,
    fill_up,
    mean_of,
    split_by_farthest,
    squared_distances,
)
from kgather.udfs.hashing import keyed, seed64
from kgather.udfs.levels import checked_levels
from kgather.udfs.options import seed_number, whole
from kgather.udfs.selection import kth_smallest
from kgather.udfs.vectors import checked_vectors
from kgather.udfs.workers import run

_BATCH = 256  # of a large part, at most one user in 256 is let go at a time
_BLOCK_USERS = 512
_BLOCK_GROUPS = 16  # a block of larger groups has at least a few of them
_ROUNDS = 3  # over a block in one pass
_PARTNERS = 64  # users of another group that are tried for an exchange
_NEAR = 3  # groups that are tried for an exchange
_TINY = 1e-9  # steps that save a smaller share of what they change are rounding errors
_SETTLED = 1e-3  # a pass that saves a smaller share of the loss is the last one
_MOVE_WORK = 1 << 28  # users times groups in a block that is not too large to work on
_FOUND_WORK = 1 << 18  # pairs of users looked at to found groups, in one round over a block


def gather(
    vectors: np.ndarray, levels: np.ndarray, *, tries: int = 10, passes: int = 10, seed: int = 0, threads: int = 1
) -> np.ndarray:
    tries = whole("tries", tries, 1)
    passes = whole("passes", passes, 0)
    seed = seed_number(seed)
    threads = whole("threads", threads, 1)
    rows, _ = checked_vectors(vectors, 1)
    n = len(rows)
    wanted = checked_levels(levels, n)
    if wanted.min() == wanted.max():
        return bkg.gather(rows, int(wanted[0]), tries=tries, seed=seed)
    groups = np.empty(n, dtype=np.int32)
    _start(rows.copy(), np.arange(n, dtype=np.int32), wanted, tries, seed64(seed), groups)
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        for turn in range(passes):
            if not _pass(rows, wanted, groups, tries, seed64(keyed(seed64(seed), turn, 1)), threads, pool):
                break
    finally:
        if pool is not None:
            pool.shutdown()
    return groups


def _pass(
    rows: np.ndarray,
    levels: np.ndarray,
    groups: np.ndarray,
    tries: int,
    seed: np.uint64,
    threads: int,
    pool: ThreadPoolExecutor | None,
) -> bool:
    """Improves the groups in place, block by block; says whether another pass is worth it."""
    n = len(rows)
    size = np.bincount(groups)
    block = np.empty(len(size), dtype=np.int32)
    centroids = np.zeros((len(size), rows.shape[1]))
    _centroids(rows, groups, size, centroids)
    _blocks(centroids.astype(np.float32), size, seed, block)
    of_user = block[groups]
    users = np.lexsort((groups, of_user))
    edges = np.concatenate([[0], np.cumsum(np.bincount(of_user))])
    loss = np.zeros((len(edges) - 1, 2))
    found = np.empty(n, dtype=np.int32)

    def improve(lo: int, hi: int) -> None:
        _improve(rows, levels, groups, users, edges, lo, hi, tries, seed, found, loss)

    step = max(1, (len(edges) - 1) // (8 * threads))
    run(improve, [(lo, min(lo + step, len(edges) - 1)) for lo in range(0, len(edges) - 1, step)], pool)
    groups[:] = np.unique(found, return_inverse=True)[1]
    before, after = loss.sum(axis=0)
    return bool(before - after > _SETTLED * before)


@njit(nogil=True, cache=True)
def _centroids(rows: np.ndarray, groups: np.ndarray, size: np.ndarray, out: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            out[groups[i], a] += rows[i, a]
    for group in range(out.shape[0]):
        for a in range(rows.shape[1]):
            out[group, a] /= size[group]


@njit(nogil=True, cache=True)
def _blocks(rows: np.ndarray, size: np.ndarray, seed: np.uint64, block: np.ndarray) -> None:
    """Cuts the groups, given by centroids float32[g, d] and sizes, into blocks of near ones; block int32[g]."""
    n, d = rows.shape
    order = np.arange(n).astype(np.int32)
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((1, d)), np.empty((1, d)), np.empty(1, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((STACK, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
    depth = 1
    number = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        users, several = 0, 0
        for i in range(lo, hi):
            users += size[order[i]]
            several += size[order[i]] > 1
        if users <= _BLOCK_USERS or several <= _BLOCK_GROUPS and hi - lo <= _BLOCK_USERS:
            for i in range(lo, hi):
                block[order[i]] = number
            number += np.int32(1)
            continue
        border = bisect(
            rows, order, lo, hi, 1, seed, lopsided >= LOPSIDED_MAX, centroid, planes, sums, counts, total, key, spare
        )
        if min(border - lo, hi - border) * LOPSIDED < hi - lo:
            lopsided += 1
        first_larger = border - lo > hi - border
        for part in range(2):
            if (part == 0) == first_larger:
                stack[depth, 0], stack[depth, 1] = lo, border
            else:
                stack[depth, 0], stack[depth, 1] = border, hi
            stack[depth, 2] = lopsided
            depth += 1


# ------------------------------------------------------------------------------------------------ start


@njit(nogil=True, cache=True)
def _highest(levels: np.ndarray, order: np.ndarray, lo: int, hi: int) -> int:
    found = 1
    for i in range(lo, hi):
        found = max(found, levels[order[i]])
    return found


@njit(nogil=True, cache=True)
def _fill_side(
    rows: np.ndarray,
    order: np.ndarray,
    levels: np.ndarray,
    lo: int,
    border: int,
    hi: int,
    highest: int,
    centroid: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """A side that is too small for its levels takes the nearest of the other side; returns the new border.

    There are at least 3 times `highest` records, the highest level of all. Taken are users of no higher level than
    the side has; if there are too few of them, anyone, up to `highest`.
    """
    left, right = border - lo, hi - border
    if left >= highest and right >= highest:
        return border
    first = left < right
    side = _highest(levels, order, lo, border) if first else _highest(levels, order, border, hi)
    smaller = min(left, right)
    if smaller >= side:
        return border
    fitting = 0
    for i in range(border if first else lo, hi if first else border):
        fitting += levels[order[i]] <= side
    if fitting < side - smaller:
        return fill_up(rows, order, lo, border, hi, highest, centroid, key, spare)
    if first:
        mean_of(rows, lo, border, centroid)
        squared_distances(rows, border, hi, centroid, key)
        for i in range(border, hi):
            if levels[order[i]] > side:
                key[i] = np.inf
        bring_smallest(rows, order, border, hi, side - smaller, key, spare)
        return lo + side
    mean_of(rows, border, hi, centroid)
    squared_distances(rows, lo, border, centroid, key)
    for i in range(lo, border):
        key[i] = -key[i] if levels[order[i]] <= side else -np.inf
    # the nearest fitting ones have the largest keys, those that do not fit the smallest
    bring_smallest(rows, order, lo, border, left - (side - smaller), key, spare)
    return hi - side


@njit(nogil=True, cache=True)
def _let_go_alone(
    rows: np.ndarray,
    order: np.ndarray,
    levels: np.ndarray,
    lo: int,
    hi: int,
    highest: int,
    centroid: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """Brings the users of level 1 that can be spared to the front, the farthest first; returns where the rest begins."""
    while hi - lo > highest:
        mean_of(rows, lo, hi, centroid)
        squared_distances(rows, lo, hi, centroid, key)
        ones = 0
        for i in range(lo, hi):
            if levels[order[i]] == 1:
                key[i] = -key[i]
                ones += 1
            else:
                key[i] = 1.0
        if ones == 0:
            break
        count = min(ones, hi - lo - highest, max(1, (hi - lo) // _BATCH))
        bring_smallest(rows, order, lo, hi, count, key, spare)
        lo += count
    return lo


@njit(nogil=True, cache=True)
def _let_go_together(
    rows: np.ndarray,
    order: np.ndarray,
    levels: np.ndarray,
    lo: int,
    hi: int,
    highest: int,
    centroid: np.ndarray,
    key: np.ndarray,
    spare: np.ndarray,
) -> int:
    """Brings as many users as can be spared and satisfy their levels among themselves to the front: those nearest to
    the farthest of them. Returns where the rest begins.
    """
    slack = hi - lo - highest
    if slack < 2:
        return lo
    of_level = np.zeros(slack + 1, dtype=np.int64)
    for i in range(lo, hi):
        if levels[order[i]] <= slack:
            of_level[levels[order[i]]] += 1
    together, most = 0, 0
    for level in range(1, slack + 1):
        together += of_level[level]
        if together >= level:
            most = level
    if most == 0:
        return lo
    mean_of(rows, lo, hi, centroid)
    squared_distances(rows, lo, hi, centroid, key)
    seed = -1
    for i in range(lo, hi):
        if levels[order[i]] <= most and (seed < 0 or key[i] > key[seed]):
            seed = i
    for a in range(rows.shape[1]):
        centroid[a] = rows[seed, a]
    squared_distances(rows, lo, hi, centroid, key)
    for i in range(lo, hi):
        if levels[order[i]] > most:
            key[i] = np.inf
    bring_smallest(rows, order, lo, hi, most, key, spare)
    return lo + most


@njit(nogil=True, cache=True)
def _start(
    rows: np.ndarray, order: np.ndarray, levels: np.ndarray, tries: int, seed: np.uint64, groups: np.ndarray
) -> int:
    """Gathers the users order[:] (the rows, which are reordered) by their levels; returns the number of groups.

    rows float32[n, d], order int32[n], levels int64 and groups int32 by the numbers in `order`; n is at least the
    highest level.
    """
    n, d = rows.shape
    centroid, total = np.empty(d), np.empty(d)
    planes, sums, counts = np.empty((tries, d)), np.empty((tries, d)), np.empty(tries, dtype=np.int64)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((STACK, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
    depth = 1
    group = np.int32(0)
    while depth > 0:
        depth -= 1
        lo, hi, lopsided = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        size = hi - lo
        highest = _highest(levels, order, lo, hi)
        if size < 2 * highest or highest == 1:
            rest = hi if highest == 1 else _let_go_alone(rows, order, levels, lo, hi, highest, centroid, key, spare)
            for i in range(lo, rest):
                groups[order[i]] = group
                group += np.int32(1)
            border = _let_go_together(rows, order, levels, rest, hi, highest, centroid, key, spare)
            if border == rest:
                for i in range(rest, hi):
                    groups[order[i]] = group
                if rest < hi:
                    group += np.int32(1)
                continue
            lo = rest
        elif size < 3 * highest:
            border = split_by_farthest(rows, order, lo, hi, highest, centroid, key, spare)
        else:
            guarded = lopsided >= LOPSIDED_MAX
            border = bisect(
                rows, order, lo, hi, tries, seed, guarded, centroid, planes, sums, counts, total, key, spare
            )
            border = _fill_side(rows, order, levels, lo, border, hi, highest, centroid, key, spare)
            if min(border - lo, hi - border) * LOPSIDED < size:
                lopsided += 1
        first_larger = border - lo > hi - border
        for part in range(2):
            if (part == 0) == first_larger:
                stack[depth, 0], stack[depth, 1] = lo, border
            else:
                stack[depth, 0], stack[depth, 1] = border, hi
            stack[depth, 2] = lopsided
            depth += 1
    return int(group)


# ------------------------------------------------------------------------------------------------ search


_USER = np.dtype(
    [
        ("level", np.int32),
        ("group", np.int32),  # -1: alone
        ("before", np.int32),  # the members of a group are a list; -1: none
        ("after", np.int32),
    ]
)
_GROUP = np.dtype(
    [
        ("first", np.int32),  # member
        ("size", np.int32),
        ("highest", np.int32),  # level of a member
        ("holders", np.int32),  # members that have it; -1: the number of the group is free
    ]
)


class _Block(NamedTuple):
    """The users 0..m-1 of a block and their groups of two or more, numbered 0..c-1."""

    rows: np.ndarray  # float32[m, d]
    columns: np.ndarray  # float32[d, m]: the same
    users: np.ndarray  # _USER[m]
    groups: np.ndarray  # _GROUP[c]
    sums: np.ndarray  # float64[c, d]
    means: np.ndarray  # float32[d + 1, c]: centroids, infinite where there is no member, and size / (size + 1)
    free: np.ndarray  # int32[c + 2]: free numbers; the last places: how many they are, and the numbers ever in use


@njit(nogil=True, cache=True)
def _new_group(b: _Block) -> int:
    b.free[-2] -= 1
    group = int(b.free[b.free[-2]])
    b.free[-1] = max(b.free[-1], group + 1)
    b.groups[group].first = -1
    b.groups[group].size = b.groups[group].highest = b.groups[group].holders = 0
    b.sums[group, :] = 0.0
    return group


@njit(nogil=True, cache=True)
def _set_mean(b: _Block, group: int) -> None:
    size = b.groups[group].size
    d = b.rows.shape[1]
    b.means[d, group] = size / (size + 1)
    for a in range(d):
        b.means[a, group] = b.sums[group, a] / size if size > 0 else np.inf


@njit(nogil=True, cache=True)
def _join(b: _Block, user: int, group: int) -> None:
    """A user without a group joins one."""
    b.users[user].group = group
    b.users[user].before = -1
    b.users[user].after = b.groups[group].first
    if b.groups[group].first >= 0:
        b.users[b.groups[group].first].before = user
    b.groups[group].first = user
    b.groups[group].size += 1
    if b.users[user].level > b.groups[group].highest:
        b.groups[group].highest = b.users[user].level
        b.groups[group].holders = 1
    elif b.users[user].level == b.groups[group].highest:
        b.groups[group].holders += 1
    for a in range(b.rows.shape[1]):
        b.sums[group, a] += b.rows[user, a]
    _set_mean(b, group)


@njit(nogil=True, cache=True)
def _quit(b: _Block, user: int) -> None:
    """The user leaves its group, if it has one; `_tidy` has to follow."""
    group = b.users[user].group
    if group < 0:
        return
    if b.users[user].before >= 0:
        b.users[b.users[user].before].after = b.users[user].after
    else:
        b.groups[group].first = b.users[user].after
    if b.users[user].after >= 0:
        b.users[b.users[user].after].before = b.users[user].before
    b.users[user].group = -1
    b.groups[group].size -= 1
    for a in range(b.rows.shape[1]):
        b.sums[group, a] -= b.rows[user, a]
    if b.users[user].level == b.groups[group].highest:
        b.groups[group].holders -= 1
        if b.groups[group].holders == 0:
            b.groups[group].highest = 0
            i = b.groups[group].first
            while i >= 0:
                if b.users[i].level > b.groups[group].highest:
                    b.groups[group].highest, b.groups[group].holders = b.users[i].level, 1
                elif b.users[i].level == b.groups[group].highest:
                    b.groups[group].holders += 1
                i = b.users[i].after
    _set_mean(b, group)


@njit(nogil=True, cache=True)
def _tidy(b: _Block, group: int) -> None:
    """Frees the number of a group that has lost its members; the last one stands alone."""
    if group < 0 or b.groups[group].size > 1 or b.groups[group].holders < 0:
        return
    if b.groups[group].size == 1:
        _quit(b, b.groups[group].first)
    b.free[b.free[-2]] = group
    b.free[-2] += 1
    b.groups[group].holders = -1


@njit(nogil=True, cache=True)
def _needed_without(b: _Block, user: int) -> int:
    """The highest level in the user's group among the others."""
    group = b.users[user].group
    if b.users[user].level < b.groups[group].highest or b.groups[group].holders > 1:
        return int(b.groups[group].highest)
    found = np.int64(0)
    i = b.groups[group].first
    while i >= 0:
        if i != user:
            found = max(found, b.users[i].level)
        i = b.users[i].after
    return int(found)


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
    return b.groups[group].size / (b.groups[group].size - 1) * _squared_distance(b, user, group)


@njit(nogil=True, cache=True)
def _cost(b: _Block, user: int, group: int) -> float:
    """What the loss of the group rises by when the user joins."""
    return b.groups[group].size / (b.groups[group].size + 1) * _squared_distance(b, user, group)


@njit(nogil=True, cache=True)
def _nearest_groups(b: _Block, user: int, near: np.ndarray, cost: np.ndarray) -> None:
    """near int32[_NEAR]: the other groups that the user would add least to and that are large enough for it once it is
    there, nearest first, -1 where there are fewer.

    cost float32[c] is scratch.
    """
    used = b.free[-1]
    for group in range(used):
        cost[group] = 0
    for a in range(b.rows.shape[1]):
        x = b.rows[user, a]
        mean = b.means[a]
        for group in range(used):
            gap = x - mean[group]
            cost[group] += gap * gap
    weight = b.means[b.rows.shape[1]]
    for group in range(used):
        cost[group] *= weight[group]
    if b.users[user].group >= 0:
        cost[b.users[user].group] = np.inf
    near[:] = -1
    worst = np.float32(np.inf)
    level = b.users[user].level
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
def _nearest_alone(b: _Block, point: np.ndarray, cost: np.ndarray) -> int:
    """The user standing alone who is nearest to the point, float64[d]; -1 if there is none. cost float32[m]: scratch."""
    m = len(b.users)
    for other in range(m):
        cost[other] = 0
    for a in range(b.rows.shape[1]):
        x = np.float32(point[a])
        column = b.columns[a]
        for other in range(m):
            gap = x - column[other]
            cost[other] += gap * gap
    found, least = -1, np.float32(np.inf)
    for other in range(m):
        if cost[other] < least and b.users[other].group < 0:
            found, least = other, cost[other]
    return found


@njit(nogil=True, cache=True)
def _squared_gap(b: _Block, user: int, other: int) -> float:
    total = 0.0
    for a in range(b.rows.shape[1]):
        gap = float(b.rows[user, a]) - b.rows[other, a]
        total += gap * gap
    return total


@njit(nogil=True, cache=True)
def _best_place(
    b: _Block, user: int, near: np.ndarray, cost: np.ndarray, point: np.ndarray
) -> tuple[int, int, float]:
    """Where the user adds least: (a group, -1, cost), or (-1, a user standing alone, cost); (-1, -1, inf) if nowhere.

    near int32[_NEAR] becomes the nearest other groups.
    """
    level = b.users[user].level
    _nearest_groups(b, user, near, cost)
    group, other, least = -1, -1, np.inf
    if near[0] >= 0:
        group, least = near[0], _cost(b, user, near[0])
    if level <= 2:
        for a in range(b.rows.shape[1]):
            point[a] = b.rows[user, a]
        alone = _nearest_alone(b, point, cost)
        if alone >= 0:
            of_pair = _squared_gap(b, user, alone) / 2
            if of_pair < least:
                group, other, least = -1, alone, of_pair
    return group, other, least


@njit(nogil=True, cache=True)
def _go(b: _Block, user: int, group: int, other: int) -> None:
    """The user leaves its group for the place that `_best_place` found; `_tidy` has to follow."""
    _quit(b, user)
    if other >= 0:
        group = _new_group(b)
        _join(b, other, group)
    _join(b, user, group)


@njit(nogil=True, cache=True)
def _move(b: _Block, user: int, near: np.ndarray, cost: np.ndarray, point: np.ndarray) -> bool:
    """The user stands alone or goes to another group, if the loss falls; in its place a user standing alone may come.

    near int32[_NEAR] becomes the nearest other groups, none (-1) if they were not looked for.
    """
    home, level = b.users[user].group, b.users[user].level
    near[:] = -1
    if home < 0:
        return False
    spared = b.groups[home].size > _needed_without(b, user)
    if spared and level == 1:
        _quit(b, user)
        _tidy(b, home)
        return True
    group, other, least = _best_place(b, user, near, cost, point)
    gain = _gain(b, user)
    if least >= gain * (1 - _TINY):
        return False
    if spared:
        _go(b, user, group, other)
        _tidy(b, home)
        return True
    if level == 1 or other >= 0:
        return False
    size = b.groups[home].size
    for a in range(b.rows.shape[1]):
        point[a] = (b.sums[home, a] - b.rows[user, a]) / (size - 1)
    alone = _nearest_alone(b, point, cost)
    if alone < 0:
        return False
    gap = 0.0
    for a in range(b.rows.shape[1]):
        gap += (b.rows[alone, a] - point[a]) ** 2
    if least + gap * (size - 1) / size >= gain * (1 - _TINY):
        return False
    _quit(b, user)
    _join(b, alone, home)
    _join(b, user, group)
    return True


@njit(nogil=True, cache=True)
def _exchange(b: _Block, user: int, near: np.ndarray) -> bool:
    """The user changes places with one of a near group, where that lowers the loss most."""
    group = b.users[user].group
    size, level = b.groups[group].size, b.users[user].level
    d = b.rows.shape[1]
    best, best_change = -1, 0.0
    # the loss changes by 2 gap.(here - there) + gap.gap (2 - 1 / size - 1 / size of the other)
    for place in range(_NEAR):
        other = near[place]
        if other < 0 or b.groups[other].size < level:
            continue
        share, of_other = 1.0 / size, 1.0 / b.groups[other].size
        i = b.groups[other].first
        tried = 0
        while i >= 0 and tried < _PARTNERS:
            tried += 1
            if b.users[i].level <= size:
                linear, square = 0.0, 0.0
                for a in range(d):
                    gap = float(b.rows[i, a]) - b.rows[user, a]
                    linear -= gap * (gap + b.sums[group, a] * share - b.sums[other, a] * of_other)
                    square += gap * gap
                change = 2 * linear + square * (2 - share - of_other)
                if change < best_change and change < -_TINY * square:
                    best, best_change = i, change
            i = b.users[i].after
    if best < 0:
        return False
    other = b.users[best].group
    _quit(b, user)
    _quit(b, best)
    _join(b, user, other)
    _join(b, best, group)
    return True


@njit(nogil=True, cache=True)
def _refill(b: _Block, group: int, members: np.ndarray, key: np.ndarray, spare: np.ndarray) -> bool:
    """The group takes the nearest users of level 1 that stand alone for company instead of those it has.

    Scratch: members int32[m], key and spare float64[m].
    """
    d = b.rows.shape[1]
    company = 0
    i = b.groups[group].first
    while i >= 0:
        company += b.users[i].level == 1
        i = b.users[i].after
    core = b.groups[group].size - company
    if company == 0 or core == 0:
        return False
    wanted = min(company, max(b.groups[group].highest - core, 0))
    count = 0
    for user in range(len(b.users)):
        if b.users[user].group < 0 or (b.users[user].group == group and b.users[user].level == 1):
            members[count] = user
            key[count] = _squared_distance(b, user, group)
            spare[count] = key[count]
            count += 1
    limit = kth_smallest(spare, 0, count, wanted - 1) if wanted > 0 else -1.0
    ties = wanted
    for j in range(count):
        ties -= key[j] < limit
    taken = 0
    changed = False
    for j in range(count):
        take = key[j] < limit
        if not take and key[j] == limit and ties > 0:
            take = True
            ties -= 1
        changed |= take != (b.users[members[j]].group == group)
        if take:  # the taken ones go to the front
            members[j], members[taken] = members[taken], members[j]
            taken += 1
    if not changed:
        return False
    before = _loss(b, group)
    for j in range(taken, count):
        spare[j] = -1.0
        if b.users[members[j]].group == group:
            _quit(b, members[j])
            spare[j] = 1.0
    for j in range(taken):
        spare[j] = -1.0
        if b.users[members[j]].group < 0:
            _join(b, members[j], group)
            spare[j] = 1.0
    if _loss(b, group) < before * (1 - _TINY):
        return True
    for j in range(count):
        if spare[j] > 0 and j < taken:
            _quit(b, members[j])
        elif spare[j] > 0:
            _join(b, members[j], group)
    return False


@njit(nogil=True, cache=True)
def _regather(b: _Block, users: np.ndarray, tries: int, seed: np.uint64, found: np.ndarray) -> tuple[int, float]:
    """Gathers some users, int32[s], as in the start: found int32[m] becomes the group of each, 0..g-1,
    in the same order.

    Returns g and the sum of squares.
    """
    s, d = len(users), b.rows.shape[1]
    rows, levels, order = np.empty((s, d), dtype=np.float32), np.empty(s, dtype=np.int64), np.empty(s, dtype=np.int32)
    for j in range(s):
        order[j], levels[j] = j, b.users[users[j]].level
        for a in range(d):
            rows[j, a] = b.rows[users[j], a]
    count = _start(rows, order, levels, tries, seed, found)
    sums, size = np.zeros((count, d)), np.zeros(count)
    for j in range(s):
        group = found[j]
        size[group] += 1
        for a in range(d):
            sums[group, a] += b.rows[users[j], a]
    loss = 0.0
    for j in range(s):
        group = found[j]
        for a in range(d):
            gap = b.rows[users[j], a] - sums[group, a] / size[group]
            loss += gap * gap
    return count, loss


@njit(nogil=True, cache=True)
def _settle(b: _Block, users: np.ndarray, count: int, found: np.ndarray) -> None:
    """Puts users that have no group into the `count` groups that `_regather` found."""
    size = np.zeros(count, dtype=np.int32)
    for j in range(len(users)):
        size[found[j]] += 1
    for group in range(count):
        size[group] = _new_group(b) if size[group] > 1 else -1
    for j in range(len(users)):
        if size[found[j]] >= 0:
            _join(b, users[j], size[found[j]])


@njit(nogil=True, cache=True)
def _list_members(b: _Block, group: int, up_to: int, members: np.ndarray) -> int:
    """Members of at most the given level to the front of members int32[m], the others behind; how many the first are."""
    low, high = 0, b.groups[group].size
    i = b.groups[group].first
    while i >= 0:
        if b.users[i].level <= up_to:
            members[low] = i
            low += 1
        else:
            high -= 1
            members[high] = i
        i = b.users[i].after
    return low


@njit(nogil=True, cache=True)
def _split(b: _Block, group: int, tries: int, seed: np.uint64, members: np.ndarray, found: np.ndarray) -> bool:
    """Cuts the group as in the start, if that can be done."""
    if b.groups[group].size <= b.groups[group].highest:
        return False
    users = members[: _list_members(b, group, b.groups[group].highest, members)]
    count, _ = _regather(b, users, tries, seed, found)
    if count == 1:
        return False
    for j in range(len(users)):
        _quit(b, users[j])
    _tidy(b, group)
    _settle(b, users, count, found)
    return True


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
def _dissolve(
    b: _Block,
    group: int,
    tries: int,
    seed: np.uint64,
    members: np.ndarray,
    found: np.ndarray,
    near: np.ndarray,
    cost: np.ndarray,
    point: np.ndarray,
) -> bool:
    """Gives the group up if the loss falls: as many as satisfy their levels among themselves are gathered anew, the
    others, those of the highest levels, go to other groups one by one.
    """
    size = b.groups[group].size
    before = _loss(b, group)
    stay = _list_members(b, group, _satisfied(b, group), members)
    users = members[:size].copy()
    count = 0
    change = -before
    if stay > 0:
        count, loss = _regather(b, users[:stay], tries, seed, found)
        change += loss
    partner = np.full(size, -1, dtype=np.int32)
    moved = stay
    while moved < size and change < 0.0:
        place, partner[moved], least = _best_place(b, users[moved], near, cost, point)
        change += least
        if least == np.inf:
            break
        _go(b, users[moved], place, partner[moved])
        moved += 1
    if moved == size and change < -_TINY * before:
        for j in range(stay):
            _quit(b, users[j])
        _tidy(b, group)
        _settle(b, users[:stay], count, found)
        return True
    for j in range(moved - 1, stay - 1, -1):
        other = b.users[users[j]].group
        _quit(b, users[j])
        if partner[j] >= 0:
            _tidy(b, other)
        _join(b, users[j], group)
    return False


@njit(nogil=True, cache=True)
def _found(b: _Block, user: int, members: np.ndarray, key: np.ndarray, spare: np.ndarray, cost: np.ndarray) -> bool:
    """The user and its nearest ones that can be spared found a group, if the loss falls.

    None of them has a higher level. cost float32[m] is scratch, too.
    """
    m, d = b.rows.shape
    level, home = b.users[user].level, b.users[user].group
    if level == 1 or home < 0 or b.groups[home].size <= _needed_without(b, user):
        return False
    for other in range(m):
        cost[other] = 0
    for a in range(d):
        x = b.rows[user, a]
        column = b.columns[a]
        for other in range(m):
            gap = x - column[other]
            cost[other] += gap * gap
    count = 0
    for other in range(m):
        group = b.users[other].group
        if other != user and b.users[other].level <= level and (group < 0 or b.groups[group].size > b.groups[group].highest):
            members[count] = other
            key[count] = cost[other]
            spare[count] = cost[other]
            count += 1
    if count < level - 1:
        return False
    limit = kth_smallest(spare, 0, count, level - 2)
    chosen, origin = np.empty(level, dtype=np.int32), np.empty(level, dtype=np.int32)
    chosen[0], origin[0] = user, home
    change = -_gain(b, user)
    _quit(b, user)
    new = _new_group(b)
    _join(b, user, new)
    taken = 1
    for j in range(count):
        if key[j] > limit or taken == level:
            continue
        other = members[j]
        group = b.users[other].group
        if group >= 0 and b.groups[group].size <= _needed_without(b, other):
            continue
        chosen[taken], origin[taken] = other, group
        taken += 1
        change -= _gain(b, other)
        change += _cost(b, other, new)
        _quit(b, other)
        _join(b, other, new)
    if taken == level and change < -_TINY * limit:
        for j in range(taken):
            _tidy(b, origin[j])
        return True
    for j in range(taken):
        _quit(b, chosen[j])
        if origin[j] >= 0:
            _join(b, chosen[j], origin[j])
    _tidy(b, new)
    return False


@njit(nogil=True, cache=True)
def _improve_block(b: _Block, tries: int, seed: np.uint64) -> None:
    m = len(b.users)
    members, found = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    key, spare = np.empty(m), np.empty(m)
    near, cost = np.empty(_NEAR, dtype=np.int32), np.empty(m + 1, dtype=np.float32)
    point = np.empty(b.rows.shape[1])
    step = max(1, m * m // _FOUND_WORK)
    for turn in range(_ROUNDS):
        if m * b.free[-1] > _MOVE_WORK:
            break
        changes = 0
        for group in range(b.free[-1]):
            if b.groups[group].size > 1:
                changes += _dissolve(b, group, tries, seed, members, found, near, cost, point)
        for user in range(m):
            if _move(b, user, near, cost, point):
                changes += 1
            elif near[0] >= 0 and _exchange(b, user, near):
                changes += 1
        for group in range(b.free[-1]):
            if b.groups[group].size > 1:
                changes += _refill(b, group, members, key, spare)
        for group in range(b.free[-1]):
            if b.groups[group].size > 1:
                changes += _split(b, group, tries, seed, members, found)
        for user in range(turn % step, m, step):
            changes += _found(b, user, members, key, spare, cost)
        if changes == 0:
            break


@njit(nogil=True, cache=True)
def _improve(
    rows: np.ndarray,
    levels: np.ndarray,
    groups: np.ndarray,
    users: np.ndarray,
    edges: np.ndarray,
    lo: int,
    hi: int,
    tries: int,
    seed: np.uint64,
    found: np.ndarray,
    loss: np.ndarray,
) -> None:
    """Improves the blocks lo:hi; block j has the users users[edges[j]:edges[j + 1]], those of a group together.

    found int32[n] becomes the new group of every user of these blocks, other numbers in every block; loss
    float64[blocks, 2] the sum of squares before and after.
    """
    d = rows.shape[1]
    for j in range(lo, hi):
        start, m = edges[j], edges[j + 1] - edges[j]
        c = m // 2 + 2
        b = _Block(
            np.empty((m, d), dtype=np.float32),
            np.empty((d, m), dtype=np.float32),
            np.empty(m, dtype=_USER),
            np.empty(c, dtype=_GROUP),
            np.empty((c, d)),
            np.full((d + 1, c), np.inf, dtype=np.float32),
            np.empty(c + 2, dtype=np.int32),
        )
        for group in range(c):
            b.free[group] = c - 1 - group
            b.groups[group].size, b.groups[group].holders = 0, -1
        b.free[-2], b.free[-1] = c, 0
        number = -1
        for i in range(m):
            user = users[start + i]
            b.users[i].level, b.users[i].group = levels[user], -1
            for a in range(d):
                b.rows[i, a] = rows[user, a]
                b.columns[a, i] = rows[user, a]
        for i in range(m):
            of_user = groups[users[start + i]]
            first = i == 0 or groups[users[start + i - 1]] != of_user
            last = i == m - 1 or groups[users[start + i + 1]] != of_user
            if first and last:
                continue
            if first:
                number = _new_group(b)
            _join(b, i, number)
        for group in range(b.free[-1]):
            loss[j, 0] += _loss(b, group)
        _improve_block(b, tries, seed)
        for group in range(b.free[-1]):
            if b.groups[group].size > 0:
                loss[j, 1] += _loss(b, group)
        number = start
        numbers = np.full(c, -1, dtype=np.int64)
        for i in range(m):
            group = b.users[i].group
            if group < 0 or numbers[group] < 0:
                found[users[start + i]] = number
                if group >= 0:
                    numbers[group] = number
                number += 1
            else:
                found[users[start + i]] = numbers[group]
