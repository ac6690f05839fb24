"""Gathering in blocks: users who lie together are gathered together, so time grows as n and not as n squared.

The table is cut in halves at the median of its principal axis, the halves are cut again, until a part is a
block. Any method of gathering then works inside each block, and the blocks side by side. Groups never reach
across a border; `refine` (kgather.udfs.refining.refine) mends what that costs.

Source: recursive median cuts are those of the k-d tree (Bentley 1975), with the principal axis found by
power iteration instead of a coordinate axis.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.hashing import keyed
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.reordering import bring_smallest
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs._shared.workers import run

_SAMPLE = 1024  # rows that the principal axis is found from
_ITERATIONS = 8
_STACK = 128


def gather_in_blocks(
    vectors: NDArray[np.floating | np.integer],
    k: int,
    gather: Callable[[NDArray[Any], int], NDArray[np.integer]],
    *,
    block_size: int = 4000,
    threads: int = 1,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1, gathered block by block.

    vectors: real numbers[n, d] (float32 is kept, the rest becomes float64), one row a user. gather(rows, k)
    is called once a block, in a pool of `threads`, and returns a whole number for each of its rows; every
    group must have k members or more. A block has at most max(block_size, 2k - 1) users, and at least half
    of block_size and k where n allows. Groups are numbered in the order of the blocks, the same for any
    number of threads. Expected O(n d log(n / block_size)) besides what gather costs; memory: one copy of the
    vectors and about 20 bytes a user.

    Raises InputError if k or block_size is no whole number >= 1, there are fewer than k users, the vectors
    are no two-dimensional table with at least one column, some are not finite, or gather returns groups that
    do not fit its rows or are too small.
    """
    block_size = whole("block_size", block_size, 1)
    threads = whole("threads", threads, 1)
    kept = np.float32 if np.asarray(vectors).dtype == np.float32 else np.float64
    rows, k = checked_vectors(vectors, k, kept)
    order, edges = cut(rows, max(block_size, 2 * k - 1))
    blocks = list(pairwise(edges.tolist()))
    codes: dict[int, tuple[NDArray[np.int32], int]] = {}

    def one(lo: int, hi: int) -> None:
        codes[lo] = _coded(gather(rows[lo:hi], k), hi - lo, k)

    with ThreadPoolExecutor(threads) if threads > 1 and len(blocks) > 1 else nullcontext() as pool:
        run(one, blocks, pool)
    groups = np.empty(len(rows), dtype=np.int32)
    first = 0
    for lo, hi in blocks:
        code, found = codes[lo]
        groups[order[lo:hi]] = code + first
        first += found
    return groups


def _coded(groups: NDArray[np.integer], size: int, k: int) -> tuple[NDArray[np.int32], int]:
    """The groups of one block numbered from 0, and how many there are; they are checked."""
    groups = np.asarray(groups)
    if groups.shape != (size,) or groups.dtype.kind not in "iu":
        msg = f"gather must return one whole number for each of its {size} rows, not {groups.dtype} {groups.shape}."
        raise InputError(msg)
    _, code, members = np.unique(groups, return_inverse=True, return_counts=True)
    if members.min() < k:
        msg = f"gather returned a group of {members.min()} users where {k} are needed."
        raise InputError(msg)
    return code.astype(np.int32), len(members)


def cut(
    points: NDArray[np.float32 | np.float64], most: int, *, weights: NDArray[np.int64] | None = None, turn: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cuts the points into blocks of at most `most`; where all weigh 1, blocks have at least half of that.

    points: float[n, d], n >= 1, C order; they are reordered in place, block by block. weights: int64[n], how
    much each counts towards `most` (default 1); a single point may weigh more. turn: every turn from 1 on
    cuts elsewhere, off the median (blocks have three eighths at least). Returns the order int64[n] (row i of
    the result was row order[i] before) and the edges int64[blocks + 1]. Expected O(n d log(n / most)).
    """
    n = len(points)
    order = np.arange(n, dtype=np.int64)
    edges = np.empty(n + 1 if weights is not None else min(n, 3 * n // most + 1) + 1, dtype=np.int64)
    heavy = np.empty(0, dtype=np.int64) if weights is None else weights
    blocks = cut_rows(points, order, heavy, most, turn, edges)
    return order, edges[: blocks + 1]


@njit(nogil=True, cache=True, inline="always")
def principal_axis(rows: NDArray[np.float32 | np.float64], lo: int, hi: int, direction: NDArray[np.float64]) -> bool:
    """Sets the direction to the principal axis of lo:hi, by a sample; False if the sampled rows are equal."""
    n, d = hi - lo, rows.shape[1]
    looked = min(n, _SAMPLE)
    sample = np.empty((looked, d))
    mean, next_one = np.zeros(d), np.empty(d)
    for s in range(looked):
        i = lo + s * n // looked
        for a in range(d):
            sample[s, a] = rows[i, a]
            mean[a] += sample[s, a]
    for a in range(d):
        mean[a] /= looked
    widest = 0.0
    for a in range(d):
        spread = 0.0
        for s in range(looked):
            sample[s, a] -= mean[a]
            spread += sample[s, a] * sample[s, a]
        next_one[a] = spread
        widest = max(widest, spread)
    if not 0.0 < widest < np.inf:
        return False
    for a in range(d):  # the spreads: no axis of any weight is orthogonal to them
        direction[a] = next_one[a] / widest
    for _ in range(_ITERATIONS):
        for a in range(d):
            next_one[a] = 0.0
        for s in range(looked):
            side = 0.0
            for a in range(d):
                side += sample[s, a] * direction[a]
            side /= widest
            for a in range(d):
                next_one[a] += side * sample[s, a]
        largest = 0.0
        for a in range(d):
            largest = max(largest, abs(next_one[a]))
        if not 0.0 < largest < np.inf:
            break
        for a in range(d):
            direction[a] = next_one[a] / largest
    return True


@njit(nogil=True, cache=True, inline="always")
def _widest(rows: NDArray[np.float32 | np.float64], lo: int, hi: int, direction: NDArray[np.float64]) -> None:
    """Sets the direction to the axis along which lo:hi reach farthest."""
    axis, widest = 0, -1.0
    for a in range(rows.shape[1]):
        direction[a] = 0.0
        low, high = rows[lo, a], rows[lo, a]
        for i in range(lo, hi):
            low, high = min(low, rows[i, a]), max(high, rows[i, a])
        if high - low > widest:
            axis, widest = a, high - low
    direction[axis] = 1.0


@njit(nogil=True, cache=True)
def cut_rows(
    rows: NDArray[np.float32 | np.float64],
    order: NDArray[np.int64],
    weights: NDArray[np.int64],
    most: int,
    turn: int,
    edges: NDArray[np.int64],
) -> int:
    """Does the work of `cut`; returns the number of blocks.

    order int64[n]; weights int64[n], or empty where all weigh 1; edges int64[blocks + 1 at least], which is written.
    """
    n, d = rows.shape
    direction = np.empty(d)
    key, spare = np.empty(n), np.empty(n)
    stack = np.empty((_STACK, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth, blocks = 1, 0
    edges[0] = 0
    while depth > 0:
        depth -= 1
        lo, hi = stack[depth, 0], stack[depth, 1]
        size = hi - lo
        weight = size
        if len(weights) > 0:
            weight = 0
            for i in range(lo, hi):
                weight += weights[order[i]]
        if weight <= most or size == 1:
            blocks += 1
            edges[blocks] = hi
            continue
        border = lo + size // 2
        if turn > 0:  # 3/8 to 5/8
            draw = np.int64(keyed(np.uint64(turn), lo, hi) % np.uint64(1024))
            border = lo + max(1, (size * (384 + draw // 4)) // 1024)
        if not principal_axis(rows, lo, hi, direction):
            _widest(rows, lo, hi, direction)
        for i in range(lo, hi):
            side = 0.0
            for a in range(d):
                side += rows[i, a] * direction[a]
            key[i] = side
        bring_smallest(rows, order, lo, hi, border - lo, key, spare)
        stack[depth, 0], stack[depth, 1] = border, hi
        stack[depth + 1, 0], stack[depth + 1, 1] = lo, border
        depth += 2
    return blocks
