"""Clustering over mixed columns: classes grown by the cheapest join, then improved until little is left to gain.

Sources: Byun, Kamra, Bertino and Li, Efficient k-anonymization using clustering techniques (2007), for the growth;
taking near classes apart and growing them anew is Shaw's large neighbourhood search (1998).
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import seed_number, whole
from kgather.udfs.recoding import mondrian
from kgather.udfs.recoding._codes import checked_codes, checked_counts
from kgather.udfs.recoding._improving import improve
from kgather.udfs.recoding._seeding import grow_classes
from kgather.udfs.recoding.loss import Losses, interval_loss

BLOCK = 20_000
"""Combinations that are clustered at once."""
PART = 3
"""Rows of one combination that take part, in k, at most: the others are a class that loses nothing."""
_NEIGHBOURS, _TRIES = 3, 3
_SAMPLE = 4096

Pieces = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def gather(
    codes: NDArray[np.integer],
    counts: NDArray[np.integer],
    losses: Losses,
    k: int,
    *,
    high: NDArray[np.integer] | None = None,
    seed: int = 0,
    rounds: int = 3,
    block: int = BLOCK,
    threads: int = 1,
) -> Pieces:
    """Classes of k rows or more at a low loss: pieces (combination, class, rows), int64[p] each.

    codes: whole numbers[m, d], one row for each different combination; with `high` they are the least codes of its
    boxes and `high` the greatest. counts: int[m], the rows of each. losses: those of the d columns. rounds: how often
    classes are improved; 0 to 3 in most uses. The rows of a combination may be in several classes. More than `block`
    combinations are first cut into blocks by Mondrian, and blocks share no class.

    O(m block d) at worst; the index of boxes spares most of it. The same for any number of threads and any order of
    the combinations that has the same codes. Raises InputError where there are fewer than k rows or shapes do not fit.
    """
    low = checked_codes(codes, losses)
    upper = low if high is None else checked_codes(high, losses)
    weight = checked_counts(counts, len(low), whole("k", k, 1))
    rounds, block = whole("rounds", rounds, 0), whole("block", block, 1)
    start = seed64(seed_number(seed))
    columns = _telling_first(low, losses)
    low, upper = np.ascontiguousarray(low[:, columns]), np.ascontiguousarray(upper[:, columns])
    parts = _chosen(losses, columns).parts
    if len(low) <= block:
        blocks = [np.arange(len(low))]
    else:
        part = mondrian.gather(
            low, np.ones(len(low), np.int64), _chosen(losses, columns), max(block // 2, 1), most=block
        )
        order = np.argsort(part, kind="stable")
        blocks = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
        blocks = _with_enough_rows(blocks, weight, k)

    def clustered(number: int) -> Pieces:
        ids = blocks[number]
        of, group, rows = _clustered(
            low[ids], upper[ids], weight[ids], parts, k, np.uint64(keyed(start, number, 0)), rounds, _NEIGHBOURS, _TRIES
        )
        return ids[of], group, rows

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        found = list(pool.map(clustered, range(len(blocks))))
    firsts = np.cumsum([0, *(int(group.max()) + 1 for _, group, _ in found)])
    return (
        np.concatenate([of for of, _, _ in found]),
        np.concatenate([group + first for (_, group, _), first in zip(found, firsts, strict=False)]),
        np.concatenate([rows for _, _, rows in found]),
    )


def _telling_first(low: NDArray[np.int32], losses: Losses) -> NDArray[np.int64]:
    """The columns in the order in which they tell combinations apart best: sums of losses are then cut short early."""
    m = len(low)
    one = (np.arange(_SAMPLE, dtype=np.int64) * 2654435761) % m
    other = (np.arange(_SAMPLE, dtype=np.int64) * 40503 + 1) % m
    return np.argsort(-_mean_losses(low, one, other, *losses.parts), kind="stable")


@njit(nogil=True, cache=True)
def _mean_losses(low, one, other, kind, at, size, flat, cap, bound):  # type: ignore[no-untyped-def]
    from_pairs = np.zeros(low.shape[1])
    for i in range(len(one)):
        for j in range(low.shape[1]):
            a, b = low[one[i], j], low[other[i], j]
            loss = interval_loss(kind, at, size, flat, cap, bound, j, min(a, b), max(a, b))
            from_pairs[j] += min(loss, cap[j])
    return from_pairs


def _chosen(losses: Losses, columns: NDArray[np.int64]) -> Losses:
    return Losses(
        losses.kind[columns], losses.at[columns], losses.size[columns], losses.flat, losses.cap[columns],
        losses.bound[columns],
    )  # fmt: skip


def _with_enough_rows(blocks: list[NDArray[np.int64]], weight: NDArray[np.int64], k: int) -> list[NDArray[np.int64]]:
    """Blocks of fewer than k rows are put together with the next."""
    kept: list[NDArray[np.int64]] = []
    waiting: list[NDArray[np.int64]] = []
    for ids in blocks:
        waiting.append(ids)
        if sum(int(weight[each].sum()) for each in waiting) >= k:
            kept.append(np.concatenate(waiting))
            waiting = []
    if waiting:
        kept[-1] = np.concatenate([kept[-1], *waiting])
    return kept


@njit(nogil=True, cache=True)
def _clustered(low, high, counts, parts, k, seed, rounds, neighbours, tries):  # type: ignore[no-untyped-def]
    """The pieces (combination, class, rows) of one block."""
    m = len(low)
    # Of a combination with many rows a few take part: the others are a class that loses nothing by it.
    apart = np.zeros(m, np.int64)
    for t in range(m):
        if counts[t] > PART * k:
            apart[t] = counts[t] - (PART - 1) * k
    piece_class, piece_of, piece_rows, n_classes = grow_classes(low, high, counts - apart, parts, k, seed)
    n = piece_rows.sum()
    of, group = np.empty(n, np.int64), np.empty(n, np.int64)
    r = 0
    for i in range(len(piece_rows)):
        for _ in range(piece_rows[i]):
            of[r], group[r] = piece_of[i], piece_class[i]
            r += 1
    n_classes = improve(low, high, of, group, n_classes, parts, k, seed, rounds, neighbours, tries)
    key = of * np.int64(n_classes) + group
    key.sort()
    out_of, out_class, out_rows = np.empty(n + m, np.int64), np.empty(n + m, np.int64), np.empty(n + m, np.int64)
    p = -1
    for i in range(n):
        if i == 0 or key[i] != key[i - 1]:
            p += 1
            out_of[p], out_class[p], out_rows[p] = key[i] // n_classes, key[i] % n_classes, 0
        out_rows[p] += 1
    for t in range(m):
        if apart[t] > 0:
            p += 1
            out_of[p], out_class[p], out_rows[p] = t, n_classes, apart[t]
            n_classes += 1
    return out_of[: p + 1], out_class[: p + 1], out_rows[: p + 1]
