"""Customized k-anonymity: every user says how large its group must be at least (X. Chen's thesis, sections 5.1 and
8.4, which asks for a method for any levels and gives none).

The groups are made in two steps.

Start (`customized_start`): the set is bisected as in Bisecting K-Gather, where a side is allowed if it is as large
as the highest level among its users; a side that is too small takes the nearest users of the other side. A part that
cannot be bisected lets users go whom it can spare: users of level 1, farthest first, who then stand alone, and the
surroundings of its farthest user, as many as can satisfy their levels among themselves.

Search (`customized_search`): groups near each other form a block, and in every block these steps are taken where
they lower the sum of squares and no group gets smaller than its highest level:

- a group is given up: those who satisfy their levels among themselves are gathered anew, the others, those of the
  highest levels, go to other groups one by one;
- a user stands alone if it has level 1, or goes to another group, where need be with a user standing alone taking
  its place; or two users change places;
- a group takes the nearest users of level 1 for company instead of those it has;
- a group that has grown is cut as in the start;
- a user and its nearest ones that can be spared found a new group.

Blocks are cut anew, by other planes, in every pass. They are independent of each other, so the result does not
depend on the number of threads. A very large group makes a large block; no further step is taken there once users
times groups exceed a limit, so what a block costs is bounded.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs._shared.vectors import checked_vectors
from kgather.udfs._shared.workers import run
from kgather.udfs.gathering import bkg
from kgather.udfs.gathering._bisection import LOPSIDED, LOPSIDED_MAX, STACK, bisect, put_down
from kgather.udfs.gathering._customized_search import improve
from kgather.udfs.gathering._customized_start import start
from kgather.udfs.gathering._levels import checked_levels

_BLOCK_USERS = 2048
_BLOCK_GROUPS = 64  # or that many groups of two or more, whatever their size
_SETTLED = 1e-3  # a pass that saves a smaller share of the loss is the last one


def gather(
    vectors: NDArray[np.floating | np.integer],
    levels: NDArray[np.integer],
    *,
    tries: int = 10,
    passes: int = 8,
    seed: int = 0,
    threads: int = 1,
) -> NDArray[np.int32]:
    """The group of every user, int32[n], numbered 0..g-1: at least as large as the highest level among its members.

    vectors: float32[n, d] (other real types are converted), one row a user, any unit (the distance is Euclidean).
    levels: int[n], from 1 (may stand alone) to n. tries: bisections tried at every node. passes: of the search at
    most; it ends earlier once a pass saves less than a thousandth of the loss. seed: the same seed gives the same
    groups. threads: any number gives the same groups. If all levels are equal, the groups are those of `bkg.gather`.

    Expected time O(tries n d log n) for the start and O(n d (2,048 + log n)) at most for a pass where groups are
    small; memory: three copies of the vectors and about 200 bytes a user.

    Raises InputError if tries or threads is no whole number >= 1, passes none >= 0, seed none of 64 bits; if the
    levels are not one whole number in 1..n for every user (saying how many are not); if there are no users, the
    vectors are no two-dimensional table with at least one column, or some are not finite.
    """
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
    start(rows.copy(), np.arange(n, dtype=np.int32), wanted, tries, seed64(seed), groups)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        for turn in range(passes):
            if not _pass(rows, wanted, groups, tries, seed64(int(keyed(seed64(seed), turn, 1))), threads, pool):
                break
    return groups


def _pass(
    rows: NDArray[np.float32],
    levels: NDArray[np.int64],
    groups: NDArray[np.int32],
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

    def of_blocks(lo: int, hi: int) -> None:
        improve(rows, levels, groups, users, edges, lo, hi, tries, seed, found, loss)

    step = max(1, (len(edges) - 1) // (8 * threads))
    run(of_blocks, [(lo, min(lo + step, len(edges) - 1)) for lo in range(0, len(edges) - 1, step)], pool)
    groups[:] = np.unique(found, return_inverse=True)[1]
    before, after = loss.sum(axis=0)
    return bool(before - after > _SETTLED * before)


@njit(nogil=True, cache=True)
def _centroids(
    rows: NDArray[np.float32], groups: NDArray[np.int32], size: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            out[groups[i], a] += rows[i, a]
    for group in range(out.shape[0]):
        for a in range(rows.shape[1]):
            out[group, a] /= size[group]


@njit(nogil=True, cache=True)
def _blocks(rows: NDArray[np.float32], size: NDArray[np.int64], seed: np.uint64, block: NDArray[np.int32]) -> None:
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
        if users <= _BLOCK_USERS or several <= _BLOCK_GROUPS:
            for i in range(lo, hi):
                block[order[i]] = number
            number += np.int32(1)
            continue
        border = bisect(
            rows,
            order,
            lo,
            hi,
            len(counts),
            seed,
            lopsided >= LOPSIDED_MAX,
            centroid,
            planes,
            sums,
            counts,
            total,
            key,
            spare,
        )
        if min(border - lo, hi - border) * LOPSIDED < hi - lo:
            lopsided += 1
        depth = put_down(stack, depth, lo, border, hi, lopsided)
