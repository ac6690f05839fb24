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
from numpy.typing import NDArray

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
    vectors: NDArray[np.floating | np.integer],
    groups: NDArray[np.integer],
    least: int | NDArray[np.integer],
    *,
    most: int | None = None,
    passes: int = 20,
    threads: int = 1,
) -> NDArray[np.int32]:
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
    vectors: NDArray[np.floating | np.integer], groups: NDArray[np.integer], least: int | NDArray[np.integer]
) -> tuple[NDArray[np.float32 | np.float64], NDArray[np.int32], NDArray[np.int32]]:
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


def _cut_large(
    rows: NDArray[np.float32 | np.float64], code: NDArray[np.int32], levels: NDArray[np.int32]
) -> NDArray[np.int32]:
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
    rows: NDArray[np.float32 | np.float64],
    code: NDArray[np.int32],
    levels: NDArray[np.int32],
    most: int,
    turn: int,
    pool: ThreadPoolExecutor | None,
) -> tuple[float, float, NDArray[np.int32]]:
    """Cuts the groups into blocks and refines each; returns the SSE before and after, and the groups."""
    n, d = rows.shape
    size = np.bincount(code)
    block = max(_BLOCK if d < _WIDE else _WIDE_BLOCK, _GROUPS_A_BLOCK * int(size.max()))
    order, edges = cut(_centroids(rows, code, size), block, weights=size, turn=turn)
    starts = np.zeros(len(size) + 1, dtype=np.int64)
    np.cumsum(size[order], out=starts[1:])
    members = _members(code, order)
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


# What follows is in numpy: as kernels these took longer to compile than they ever save.


def _level(code: NDArray[np.integer], levels: NDArray[np.int32], groups: int) -> NDArray[np.int64]:
    """The largest `least` of every group, int64[groups]."""
    level = np.zeros(groups, dtype=np.int64)
    np.maximum.at(level, code, levels)
    return level


def _centroids(rows: NDArray[np.floating], code: NDArray[np.integer], size: NDArray[np.integer]) -> NDArray[np.float64]:
    """The centroid of every group, float64[g, d]; members are added up in their order."""
    centre = np.empty((len(size), rows.shape[1]))
    for a in range(rows.shape[1]):
        centre[:, a] = np.bincount(code, weights=rows[:, a], minlength=len(size))
    return centre / size[:, None]


def _members(code: NDArray[np.integer], order: NDArray[np.integer]) -> NDArray[np.int32]:
    """The users by group, int32[n]; the groups are in the given order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return np.argsort(place[code], kind="stable").astype(np.int32)


def _renumbered(code: NDArray[np.int64], bound: int) -> NDArray[np.int32]:
    """The groups (int64[n], below the bound) numbered in the order of their first members, int32[n]."""
    n = len(code)
    first = np.full(bound, n)
    first[code[::-1]] = np.arange(n - 1, -1, -1)
    number = np.empty(bound, dtype=np.int32)
    by_first = np.argsort(first, kind="stable")
    number[by_first] = np.arange(bound)
    return number[code]


def _squares(rows: NDArray[np.float64], group: NDArray[np.int64], room: int) -> float:
    """The SSE of a block whose groups int64[b] are below `room`."""
    size = np.maximum(np.bincount(group, minlength=room), 1)
    away = (rows - _centroids(rows, group, size)[group]).ravel()
    return float(np.cumsum(away * away)[-1])  # in the order of the users, on every machine


def compiled() -> bool:
    """Whether a process on this machine compiled the search and left it on disk."""
    folder = reshape.stats.cache_path  # compiled last
    return folder is not None and any(Path(folder).glob("_reshape.reshape-*.nbi"))


def compile_all() -> None:
    """Compile the kernels for float32 vectors, which is half a minute's work where they are not on disk."""
    refine(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32), np.arange(40) // 5, 5)


def _refine_block(
    vectors: NDArray[np.float32 | np.float64],
    members: NDArray[np.int32],
    starts: NDArray[np.int64],
    levels: NDArray[np.int32],
    most: int,
    depth: int,
    width: int,
    users_near: int,
    groups_near: int,
    first: int,
    fresh: NDArray[np.int64],
) -> tuple[float, float]:
    """Refines the groups of one block: group g has the users starts[g] to starts[g + 1] of members int32[b].

    Writes their groups to fresh int64[n], numbered from `first` on (by fewer than b numbers). Returns the SSE
    of the block before and after.
    """
    b, d = len(members), vectors.shape[1]
    count = len(starts) - 1
    given = np.repeat(np.arange(count), np.diff(starts))
    users = np.zeros(b, dtype=USER)
    users["group"], users["least"] = given, levels[members]
    smallest, largest = int(users["least"].min()), int(users["least"].max())
    # relative to a user, so that rows that are all equal are exactly zero
    rows = vectors[members].astype(np.float64) - vectors[members[0]].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite squares are left alone
        before = after = _squares(rows, given, count)
        improvable = _ROUNDING * float((rows * rows).sum()) < before < np.inf
    group = given
    if improvable:
        room = max(count, b // smallest) + 2
        gaps = all_gaps(rows) if d >= _WIDE else np.empty((0, 0))
        block = new_block(rows, gaps, near_users(rows, users_near), users, np.zeros(room, dtype=GROUP), most)
        block = block._replace(near=np.hstack([block.near, near_groups(block, count, groups_near)]))
        steps, nexts = np.zeros(depth + 1, dtype=STEP), np.zeros((depth, width), dtype=NEXT)
        plain, tiny = smallest == largest, 1e-10 * before / b
        descend(block, steps, nexts, plain, tiny, _SWEEPS)
        if reshape(block, tiny) < 0.0:
            descend(block, steps, nexts, plain, tiny, _SWEEPS)
        found = users["group"].astype(np.int64)
        lowered = _squares(rows, found, room)
        if lowered < before:  # otherwise the gain was rounding
            after, group = lowered, found
    fresh[members] = first + group
    return before, after
