"""MDAV microaggregation of a table of numbers: classes of k near rows, by `kgather.udfs.gathering.mdav`."""

import numpy as np
from numpy.typing import NDArray

from kgather.udfs._shared.options import whole
from kgather.udfs.gathering import mdav
from kgather.udfs.recoding import mondrian
from kgather.udfs.recoding._codes import checked_codes, checked_counts
from kgather.udfs.recoding.loss import Losses

BLOCK = 20_000
"""Rows that are gathered at once: the time of MDAV grows with their square."""


def gather(
    codes: NDArray[np.integer],
    counts: NDArray[np.integer],
    positions: NDArray[np.floating],
    losses: Losses,
    k: int,
    *,
    block: int = BLOCK,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Classes of k rows or more: pieces (combination, class, rows), int64[p] each.

    codes: whole numbers[m, d], one row for each different combination. counts: int[m], the rows of each. positions:
    numbers[m, d], where combinations lie; distances are Euclidean. losses: those of the d columns. The rows of a
    combination may be in several classes; of one with more than 3k rows all but 2k are a class of their own. More than
    `block` rows are first cut by Mondrian, and blocks share no class. Nothing is random.
    Raises InputError where there are fewer than k rows or shapes do not fit.
    """
    rows = checked_codes(codes, losses)
    weight = checked_counts(counts, len(rows), whole("k", k, 1))
    block = max(whole("block", block, 1), 2 * k)
    apart = np.where(weight > 3 * k, weight - 2 * k, 0)
    near = weight - apart
    if int(near.sum()) <= block:
        blocks = [np.arange(len(rows))]
    else:
        part = mondrian.gather(rows, near, losses, max(block // 2, k), most=block)
        order = np.argsort(part, kind="stable")
        blocks = np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    combinations, groups, sizes = [], [], []
    found = 0
    for ids in blocks:
        of = np.repeat(ids, near[ids])
        group = mdav.gather(np.asarray(positions, dtype=np.float64)[of], k).astype(np.int64)
        width = int(group.max()) + 1
        key, times = np.unique(of * width + group, return_counts=True)
        combinations.append(key // width)
        groups.append(key % width + found)
        sizes.append(times)
        found += width
    heavy = np.flatnonzero(apart)
    return (
        np.concatenate([*combinations, heavy]).astype(np.int64),
        np.concatenate([*groups, found + np.arange(len(heavy))]).astype(np.int64),
        np.concatenate([*sizes, apart[heavy]]).astype(np.int64),
    )
