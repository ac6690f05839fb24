"""Refinement: lowers the sum of squared errors (SSE) of any partition while the sizes stay in bounds.

Users are looked at in blocks of a few thousand that lie together. Inside a block, members are handed from
group to group in chains and cycles (kgather.udfs.refine_chains), groups are given up or made anew
(kgather.udfs.refine_reshape), each only if the SSE falls. The next pass cuts the blocks elsewhere and
follows longer chains, so what was a border is refined across.

Source: the idea to refine microaggregation by moving records is that of TFRP (Chang, Li and Huang 2007) and
of the constrained k-means of Bradley, Bennett and Demiriz (2000); see the helper modules for theirs.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
from numba import njit

from kgather.errors import InputError
from kgather.udfs import bkg
from kgather.udfs.blocks import cut
from kgather.udfs.options import whole
from kgather.udfs.refine_chains import GROUP, NEXT, STEP, USER, descend, new_block
from kgather.udfs.refine_near import all_gaps, near_groups, near_users
from kgather.udfs.refine_reshape import reshape
from kgather.udfs.vectors import checked_vectors
from kgather.udfs.workers import run

_BLOCK = 12800
_CELL = 1024
_TURNS = 2
_TIMES = 4  # groups of more than so many times their level are cut before the first pass
_STEPS = ((2, 3, -7), (3, 4, 8), (4, 5, 8), (6, 5, 8))  # (steps, continuations) of the search, pass by pass; then the last
_NEAR = 10
_SWEEPS = 20
_ENOUGH = 0.001  # a pass that lowers the SSE by a smaller share is the last


def refine(
    vectors: np.ndarray,
    groups: np.ndarray,
    least: int | np.ndarray,
    *,
    most: int | None = None,
    passes: int = 20,
    threads: int = 1,
) -> np.ndarray:
    rows, code, levels = _checked(vectors, groups, least)
    limit = 0 if most is None else whole("most", most, int(levels.max()))
    passes = whole("passes", passes, 0)
    threads = whole("threads", threads, 1)
    code = _cut_large(rows, code, levels)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        for turn in range(passes):
            before, after, code = _one_pass(rows, code, levels, limit, turn, pool)
            if after == 0.0 or (turn + 1 >= len(_STEPS) and before - after <= _ENOUGH * before):
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
        msg = f"groups must be one whole number for each of the {n} users, not {groups.dtype} {groups.shape}"
        raise InputError(msg)
    if np.ndim(least) == 0:
        levels = np.full(n, min(whole("least", least, 1), n + 1), dtype=np.int32)
    else:
        levels = np.asarray(least)
        if levels.shape != (n,) or levels.dtype.kind not in "iu" or levels.min() < 1:
            msg = f"least must be a whole number >= 1, or one for each of the {n} users"
            raise InputError(msg)
        levels = np.minimum(levels, n + 1).astype(np.int32)
    code = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    size = np.bincount(code)
    level = np.zeros(len(size), dtype=np.int32)
    np.maximum.at(level, code, levels)
    small = np.flatnonzero(size < level)
    if len(small):
        msg = (
            f"{len(small)} of {len(size)} groups are smaller than their members accept (one has {size[small[0]]} "
            f"users and needs {level[small[0]]}); gather them first"
        )
        raise InputError(msg)
    return rows, _renumbered(code.astype(np.int64), len(size)), levels


def _cut_large(rows: np.ndarray, code: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Cuts groups far larger than they need to be by BKG: the SSE falls, and no pass meets a huge group."""
    size = np.bincount(code)
    level = np.zeros(len(size), dtype=np.int32)
    np.maximum.at(level, code, levels)
    large = np.flatnonzero(size > _TIMES * level)
    if len(large) == 0:
        return code
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(size)
    fresh = code.astype(np.int64)
    used = len(size)
    for group in large:
        members = order[ends[group] - size[group] : ends[group]]
        parts = bkg.gather(rows[members], int(level[group]))
        fresh[members] = used + parts
        used += int(parts.max()) + 1
    return _renumbered(fresh, used)


def _one_pass(
    rows: np.ndarray, code: np.ndarray, levels: np.ndarray, most: int, turn: int, pool: ThreadPoolExecutor | None
) -> tuple[float, float, np.ndarray]:
    """Cuts the groups into blocks and refines each; returns the SSE before and after, and the groups."""
    n = len(rows)
    size = np.bincount(code)
    order, edges = cut(_centroids(rows, code, size), _BLOCK, weights=size, turn=turn)
    starts = np.zeros(len(size) + 1, dtype=np.int64)
    np.cumsum(size[order], out=starts[1:])
    members = _members(code, order, starts)
    fresh = np.empty(n, dtype=np.int64)
    ranges = list(pairwise(edges.tolist()))
    squares = np.zeros((len(size), 2))
    depth, width, nears = _STEPS[min(turn, len(_STEPS) - 1)]

    def one(lo: int, hi: int) -> None:
        users = members[starts[lo] : starts[hi]]
        squares[lo] = _refine_block(
            rows, users, starts[lo : hi + 1] - starts[lo], levels, most, depth, width, nears, _CELL, _TURNS, fresh, int(starts[lo])
        )

    run(one, ranges, pool)
    before, after = squares.sum(axis=0)
    return float(before), float(after), _renumbered(fresh, n)


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
    """The users by group, int32[n], groups in the order given."""
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
def _squares(rows: np.ndarray, group: np.ndarray, groups: int) -> float:
    """The SSE of a block."""
    size = np.zeros(groups)
    for i in range(len(group)):
        size[group[i]] += 1.0
    centre = _centroids(rows, group, np.maximum(size, 1.0))
    total = 0.0
    for i in range(len(group)):
        for a in range(rows.shape[1]):
            away = rows[i, a] - centre[group[i], a]
            total += away * away
    return total


@njit(nogil=True, cache=True)
def _refine_block(
    vectors: np.ndarray,
    members: np.ndarray,
    starts: np.ndarray,
    levels: np.ndarray,
    most: int,
    depth: int,
    width: int,
    nears: int,
    cell: int, turns: int,
    fresh: np.ndarray,
    first: int,
) -> tuple[float, float]:
    """Refines the groups of one block: group g has the users starts[g] to starts[g + 1] of members int32[b].

    Writes their groups to fresh int64[n], numbered from `first` on (there are never more than b). Returns
    the SSE before and after.
    """
    b, d = len(members), vectors.shape[1]
    count = len(starts) - 1
    rows = np.empty((b, d))
    users = np.zeros(b, dtype=USER)
    group = np.empty(b, dtype=np.int64)
    mean = np.zeros(d)
    smallest, largest = levels[members[0]], levels[members[0]]
    for g in range(count):
        for i in range(starts[g], starts[g + 1]):
            group[i] = g
            users[i].group = g
    for i in range(b):
        users[i].least = levels[members[i]]
        smallest, largest = min(smallest, users[i].least), max(largest, users[i].least)
        for a in range(d):
            rows[i, a] = vectors[members[i], a]
            mean[a] += rows[i, a] / b
    for i in range(b):
        for a in range(d):
            rows[i, a] -= mean[a]
    before = _squares(rows, group, count)
    after = before
    if before > 0.0:
        room = max(count, b // smallest) + 2
        gaps = all_gaps(rows)
        near = near_users(rows, gaps, nears, cell, turns) if nears > 0 else np.full((b, -nears), -1, dtype=np.int32)
        block = new_block(rows, gaps, near, users, np.zeros(room, dtype=GROUP), most)
        if nears < 0:
            names = np.empty(count, dtype=np.int32)
            for g in range(count):
                names[g] = users[block.groups[g].head].before
            near[:] = near_groups(rows, block.centre[:count], names, -nears)
        steps, nexts = np.zeros(depth + 1, dtype=STEP), np.zeros((depth, width), dtype=NEXT)
        tiny = 1e-10 * before / b
        descend(block, steps, nexts, smallest == largest, tiny, _SWEEPS)
        if reshape(block, tiny) < 0.0:
            descend(block, steps, nexts, smallest == largest, tiny, _SWEEPS)
        for i in range(b):
            group[i] = users[i].group
        after = _squares(rows, group, room)
        if not after < before:  # no more than rounding
            after = before
            for g in range(count):
                for i in range(starts[g], starts[g + 1]):
                    group[i] = g
    for i in range(b):
        fresh[members[i]] = first + group[i]
    return before, after
