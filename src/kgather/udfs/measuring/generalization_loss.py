"""How much a generalized table loses (Riyana and Natwichai 2018, section 3.1, equations 1 to 3).

A class shows a range of values for every artifact: from the smallest to the largest of its members' values,
where not rated counts as 0. Where no member rated the artifact the cell stays blank.
"""

import numpy as np

from kgather._errors import InputError


def class_ranges(table: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of every class as float64[g, a] twice, NaN where the cell is blank.

    table: real numbers[n, a], NaN where not rated. groups: int[n], numbered 0..g-1. The bounds are always
    values of members, so they are as tight as can be. O(n a + n log n).
    Raises InputError if the shapes do not fit, there are no users, or a number of a class is not used.
    """
    table = np.asarray(table, dtype=np.float64)
    groups = np.asarray(groups)
    if table.ndim != 2 or groups.shape != table.shape[:1] or not np.issubdtype(groups.dtype, np.integer):
        msg = "the table must have one row a user, groups one whole number for each of its rows."
        raise InputError(msg)
    order = np.argsort(groups, kind="stable")
    named, starts = np.unique(groups[order], return_index=True)
    if not np.array_equal(named, np.arange(len(named))) or len(named) == 0:
        msg = "classes must be numbered 0, 1, 2 ... without a gap."
        raise InputError(msg)
    blank = np.logical_and.reduceat(np.isnan(table[order]), starts)
    rated = np.nan_to_num(table[order], nan=0.0)
    low, high = np.minimum.reduceat(rated, starts), np.maximum.reduceat(rated, starts)
    low[blank] = high[blank] = np.nan
    return low, high


def equivalence_classes(low: np.ndarray, high: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The equivalence class of every user, int32[n]: groups that show the same in all columns are one.

    low and high as from `class_ranges`, or wider ones from a hierarchy. O(n + a g log g).
    """
    shown = np.concatenate([np.isnan(low), np.nan_to_num(low), np.nan_to_num(high)], axis=1)
    return np.unique(shown, axis=0, return_inverse=True)[1].reshape(-1)[groups].astype(np.int32)


def discernibility(classes: np.ndarray) -> int:
    """DM, equation 1: the sum of the squared sizes of the classes; classes int[n]."""
    return int((np.unique(classes, return_counts=True)[1].astype(np.int64) ** 2).sum())


def average_class_size(classes: np.ndarray, k: int) -> float:
    """C_AVG, equation 2: the mean size of the classes divided by k; classes int[n]."""
    return len(classes) / (len(np.unique(classes)) * k)


def information_loss(low: np.ndarray, high: np.ndarray, groups: np.ndarray, width: float | np.ndarray) -> float:
    """GenILoss, equation 3: the mean over all cells of the range shown divided by the domain's width.

    low and high as from `class_ranges`; a blank cell loses nothing. width: of the domain of ratings (5 for
    ratings up to 5, not rated being 0), or one number for each column; a column of width 0 loses nothing.
    """
    width = np.broadcast_to(np.asarray(width, dtype=np.float64), low.shape[1:])
    loss = np.nan_to_num(high - low) / np.where(width > 0, width, 1.0)
    return float(loss.mean(axis=1)[groups].mean())
