"""Refinement: lowers the sum of squared errors (SSE) of any partition while the sizes stay in bounds.

Users are looked at in blocks of several thousand that lie together. Inside a block, members are handed from
group to group in chains and cycles (kgather.udfs.refining._chains), groups are given up or made anew
(kgather.udfs.refining._reshape), each only if the SSE falls. The next pass cuts the blocks elsewhere and
follows longer chains, so what was a border is refined across.

Source: that groups of microaggregation are improved by moving records is from TFRP (Chang, Li and Huang
2007), that sizes are constraints of a k-means from Bradley, Bennett and Demiriz (2000); the search itself is
neither of theirs, see kgather.udfs.refining._chains.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs._shared.workers import run
from kgather.udfs.gathering.blocks import cut
from kgather.udfs.refining._chains import GROUP, NEXT, STEP, USER, descend, new_block
from kgather.udfs.refining._near import all_gaps, near_groups, near_users
from kgather.udfs.refining._reshape import reshape

_BLOCK = 12_800  # users; rows of ten columns and what is kept of them fit in a second-level cache
_WIDE_BLOCK = 2048
_WIDE = 128  # columns from which on a block is smaller and users near in all of them mean little
_GROUPS_A_BLOCK = 16
_TIMES = 4  # groups of more than so many times their level are cut before the first pass
_SWEEPS = 20
_ROUNDING = 1e-28  # an SSE of a smaller share of the squares is none
_ENOUGH = 0.01  # a pass that lowers the SSE by no larger share is the last


def refine(
    vectors: np.ndarray,
    groups: np.ndarray,
    least: int | np.ndarray,
    *,
    most: int | None = None,
    passes: int = 20,
    threads: int = 1,
) -> np.ndarray:
    """Groups of a lower SSE, int32[n], numbered 0..g-1 in the order of their first members.

    vectors: real numbers[n, d] (float32 is kept, the rest becomes float64; sums are float64), one row a user.
    groups: int[n], any numbers. least: the smallest group that users accept, one number (k) or int[n]; every
    group has as many members as each of them asks for, before and after. most: the largest size; without it
    2 l - 1 where the largest `least` in the group is l. A group that is larger already may stay so, but does
    not grow. passes: at most so many; the second and later ones stop when one lowers the SSE by less than 1%.

    The SSE never rises; the result is the same for any number of threads. Time O(n d (g + log n)) a pass,
    where g is the size of groups; memory: two copies of the vectors and about 100 bytes a user.

    Raises InputError if least or an option is no whole number in its range, most is less than some user
    accepts, the shapes do not fit, some vectors are not finite, or a given group is too small.
    """
    rows, code, levels = _checked(vectors, groups, least)
    limit = 0 if most is None else whole("most", most, int(levels.max()))
    passes = whole("passes", passes, 0)
    threads = whole("threads", threads, 1)
    if passes > 0:
        code = _cut_large(rows, code, levels)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        for turn in range(passes):
            before, after, code = _one_pass(rows, code, levels, limit, turn, pool)
            if after == 0.0 or (turn > 0 and not before - after > _ENOUGH * before):
                break
    return code


def _checked(
    vectors: np.ndarray, groups: np.ndarray, least: int | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vectors, the groups as int32[n] numbered 0..g-1, and `least` as int32[n]."""
    kept = np.float32 if np.asarray(vectors).dtype == np.float32 else np.float64
    rows, _ = checked_vectors(vectors, 1, kept)
    n = len(rows)
    groups = np.asarray(groups)
    if groups.shape != (n,) or groups.dtype.kind not in "iu":
        msg = f"groups must be one whole number for each of the {n} users, not {groups.dtype} {groups.shape}."
        raise InputError(msg)
    if np.ndim(least) == 0:
        levels = np.full(n, min(whole("least", least, 1), n + 1), dtype=np.int32)
    else:
        asked = np.asarray(least)
        if asked.shape != (n,) or asked.dtype.kind not in "iu" or asked.min() < 1:
            msg = f"least must be a whole number of at least 1, or one for each of the {n} users."
            raise InputError(msg)
        levels = np.minimum(asked, n + 1).astype(np.int32)
    code = np.unique(groups, return_inverse=True)[1].reshape(n)
    size = np.bincount(code)
    level = _level(code, levels, len(size))
    small = np.flatnonzero(size < level)
    if len(small):
        msg = (
            f"{len(small)} of {len(size)} groups have fewer users than some of them accept: one has "
            f"{size[small[0]]} where {level[small[0]]} are asked for; gather them anew."
        )
        raise InputError(msg)
    return rows, _renumbered(code, len(size)), levels


def _cut_large(rows: np.ndarray, code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Cuts groups far larger than need be at medians: the SSE falls, and no pass meets a huge group."""
    size = np.bincount(code)
    level = _level(code, levels, len(size))
    large = np.flatnonzero(size > _TIMES * level)
    if len(large) == 0:
        return code
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(size)
    fresh = code.astype(np.int64)
    used = len(size)
    for group in large:
        members = order[ends[group] - size[group] : ends[group]]
        moved, edges = cut(rows[members], 2 * int(level[group]) - 1)
        for lo, hi in pairwise(edges):
            fresh[members[moved[lo:hi]]] = used
            used += 1
    return _renumbered(fresh, used)


def _one_pass(
    rows: np.ndarray, code: np.ndarray, levels: np.ndarray, most: int, turn: int, pool: ThreadPoolExecutor | None
) -> tuple[float, float, np.ndarray]:
    """Cuts the groups into blocks and refines each; returns the SSE before and after, and the groups."""
    n, d = rows.shape
    size = np.bincount(code)
    block = max(_BLOCK if d < _WIDE else _WIDE_BLOCK, _GROUPS_A_BLOCK * int(size.max()))
    order, edges = cut(_centroids(rows, code, size), block, weights=size, turn=turn)
    starts = np.zeros(len(size) + 1, dtype=np.int64)
    np.cumsum(size[order], out=starts[1:])
    members = _members(code, order, starts)
    fresh = np.empty(n, dtype=np.int64)
    ranges = list(pairwise(edges.tolist()))
    squares = np.zeros((len(ranges), 2))
    place = {lo: i for i, (lo, _) in enumerate(ranges)}
    depth, width, users_near, groups_near = _effort(turn, n / len(size), d)

    def one(lo: int, hi: int) -> None:
        squares[place[lo]] = _refine_block(
            rows,
            members[starts[lo] : starts[hi]],
            starts[lo : hi + 1] - starts[lo],
            levels,
            most,
            depth,
            width,
            users_near,
            groups_near,
            int(starts[lo]),
            fresh,
        )

    run(one, ranges, pool)
    before, after = squares.sum(axis=0)
    return float(before), float(after), _renumbered(fresh, n)


def _effort(turn: int, mean_size: float, d: int) -> tuple[int, int, int, int]:
    """How a pass searches: steps of a chain, continuations of a step, users and groups near each user.

    Measured: long chains pay in small groups, where there are few exchanges; groups near are cheaper to find
    than users near, but both find more; of many columns, users near in all of them are no help.
    """
    if d >= _WIDE:
        users_near, groups_near, longest = 0, 16, 3
    elif mean_size >= 32:
        users_near, groups_near, longest = 4, 6, 3 if mean_size < 64 else 2
    else:
        users_near, groups_near, longest = 4, 4, 4 if mean_size >= 8 else 6
    if turn == 0 and d < _WIDE:
        users_near, groups_near = 0, 6
    depth = min(turn + 2, longest)
    return depth, min(depth + 1, 5), users_near, groups_near


@njit(nogil=True, cache=True)
def _level(code: np.ndarray, levels: np.ndarray, groups: int) -> np.ndarray:
    """The largest `least` of every group, int64[groups]."""
    level = np.zeros(groups, dtype=np.int64)
    for i in range(len(code)):
        level[code[i]] = max(level[code[i]], np.int64(levels[i]))
    return level


@njit(nogil=True, cache=True)
def _centroids(rows: np.ndarray, code: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The centroid of every group, float64[g, d]."""
    centre = np.zeros((len(size), rows.shape[1]))
    for i in range(len(code)):
        for a in range(rows.shape[1]):
            centre[code[i], a] += rows[i, a]
    for g in range(len(size)):
        for a in range(rows.shape[1]):
            centre[g, a] /= size[g]
    return centre


@njit(nogil=True, cache=True)
def _members(code: np.ndarray, order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The users by group, int32[n]; the groups are in the given order and begin at the starts int64[g + 1]."""
    place = np.empty(len(order), dtype=np.int64)
    for at in range(len(order)):
        place[order[at]] = starts[at]
    members = np.empty(len(code), dtype=np.int32)
    for i in range(len(code)):
        members[place[code[i]]] = i
        place[code[i]] += 1
    return members


@njit(nogil=True, cache=True)
def _renumbered(code: np.ndarray, bound: int) -> np.ndarray:
    """The groups (int64[n], below the bound) numbered in the order of their first members, int32[n]."""
    number = np.full(bound, -1, dtype=np.int32)
    result = np.empty(len(code), dtype=np.int32)
    found = 0
    for i in range(len(code)):
        if number[code[i]] < 0:
            number[code[i]] = found
            found += 1
        result[i] = number[code[i]]
    return result


@njit(nogil=True, cache=True)
def _squares(rows: np.ndarray, group: np.ndarray, room: int) -> float:
    """The SSE of a block whose groups int64[b] are below `room`."""
    size = np.zeros(room, dtype=np.int64)
    for i in range(len(group)):
        size[group[i]] += 1
    centre = _centroids(rows, group, np.maximum(size, 1))
    total = 0.0
    for i in range(len(group)):
        for a in range(rows.shape[1]):
            away = rows[i, a] - centre[group[i], a]
            total += away * away
    return total


def compiled() -> bool:
    """Whether a process on this machine compiled the search and left it on disk."""
    folder = _refine_block.stats.cache_path
    return folder is not None and any(Path(folder).glob("refine._refine_block-*.nbi"))


def compile_all() -> None:
    """Compile the kernels for float32 vectors, which is half a minute's work where they are not on disk."""
    refine(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32), np.arange(40) // 5, 5)


@njit(nogil=True, cache=True)
def _refine_block(
    vectors: np.ndarray,
    members: np.ndarray,
    starts: np.ndarray,
    levels: np.ndarray,
    most: int,
    depth: int,
    width: int,
    users_near: int,
    groups_near: int,
    first: int,
    fresh: np.ndarray,
) -> tuple[float, float]:
    """Refines the groups of one block: group g has the users starts[g] to starts[g + 1] of members int32[b].

    Writes their groups to fresh int64[n], numbered from `first` on (by fewer than b numbers). Returns the SSE
    of the block before and after.
    """
    b, d = len(members), vectors.shape[1]
    count = len(starts) - 1
    rows = np.empty((b, d))
    users = np.zeros(b, dtype=USER)
    given = np.empty(b, dtype=np.int64)
    for g in range(count):
        for i in range(starts[g], starts[g + 1]):
            given[i] = g
    smallest, largest = levels[members[0]], levels[members[0]]
    for i in range(b):
        users[i].group, users[i].least = given[i], levels[members[i]]
        smallest, largest = min(smallest, users[i].least), max(largest, users[i].least)
        for a in range(d):  # relative to a user, so that rows that are all equal are exactly zero
            rows[i, a] = np.float64(vectors[members[i], a]) - np.float64(vectors[members[0], a])
    before = _squares(rows, given, count)
    after = before
    group = given.copy()
    if _ROUNDING * (rows * rows).sum() < before < np.inf:
        room = max(count, b // smallest) + 2
        gaps = all_gaps(rows) if d >= _WIDE else np.empty((0, 0))
        near = np.full((b, users_near + groups_near), -1, dtype=np.int32)
        block = new_block(rows, gaps, near, users, np.zeros(room, dtype=GROUP), most)
        if users_near > 0:
            near_users(rows, near[:, :users_near])
        near_groups(block, count, near[:, users_near:])
        steps, nexts = np.zeros(depth + 1, dtype=STEP), np.zeros((depth, width), dtype=NEXT)
        plain, tiny = smallest == largest, 1e-10 * before / b
        descend(block, steps, nexts, plain, tiny, _SWEEPS)
        if reshape(block, tiny) < 0.0:
            descend(block, steps, nexts, plain, tiny, _SWEEPS)
        for i in range(b):
            group[i] = users[i].group
        after = _squares(rows, group, room)
        if not after < before:  # the gain was rounding
            after = before
            group[:] = given
    for i in range(b):
        fresh[members[i]] = first + group[i]
    return before, after
