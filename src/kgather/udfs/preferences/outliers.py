"""Groups far from the middle, drawn in: who is in a group that looks like no other is found by a few ratings."""

import numpy as np
from numpy.typing import NDArray

from kgather.udfs._shared.options import real, whole
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences


def draw_groups_in(
    learnt: Preferences, level: NDArray[np.floating], factors: NDArray[np.floating], *, share: float, smooth: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean vectors of groups, level float[g] and factors float[g, r], the farthest drawn to the middle of all users.

    How far a group is is measured in what is predicted, as that is what a release shows. share, smooth: as in
    `drawn_in`. Returns float64[g] and float64[g, r].
    """
    groups = Preferences(level.astype(np.float32), factors.astype(np.float32), learnt.item_level, learnt.item_factors)
    left, _ = drawn_in(comparison_vectors(learnt), comparison_vectors(groups), share=share, smooth=smooth)
    middle = learnt.user_level.mean(dtype=np.float64), learnt.user_factors.mean(axis=0, dtype=np.float64)
    return drawn_to(middle, left, level, factors)


def drawn_to(
    middle: tuple[float, NDArray[np.float64]],
    left: NDArray[np.float64],
    level: NDArray[np.floating],
    factors: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Levels float[g] and factors float[g, r] of which only `left` float64[g] remains of what they are off the middle,
    a level and factors float64[r].
    """
    return middle[0] + left * (level - middle[0]), middle[1] + left[:, None] * (factors - middle[1])


def drawn_in(
    users: NDArray[np.float32], groups: NDArray[np.float32], *, share: float, smooth: int
) -> tuple[NDArray[np.float64], float]:
    """By how much the vector of each group is drawn to the middle, and how far the farthest may be.

    users float32[n, d], groups float32[g, d]: vectors whose Euclidean distance says how unlike they are; the middle is
    the users' mean. share, 0 < share <= 1: the quantile of the users' distances from the middle up to which groups
    stay; 1 leaves all as they are. smooth: the quantile is the mean of that many distances, in order, around it: with
    one alone, the farthest groups would show the distance of one person.

    Returns float64[g], 0..1: what is left of a group's distance, and the largest distance that is left (infinite where
    share is 1). Groups do not change; only what is shown of them does. O(n (d + log n)). Raises InputError for a share
    out of its range.
    """
    share = real("outliers", share, 0, 1, above=True)
    around = whole("smooth", smooth, 1)
    if share == 1.0:
        return np.ones(len(groups)), np.inf
    middle = users.mean(axis=0, dtype=np.float64)
    distances = np.sort(lengths(users - middle))
    first, after = places(len(distances), share, around)
    radius = float(distances[first:after].mean())
    return left_of(groups, middle, radius), radius


def places(n: int, share: float, around: int) -> tuple[int, int]:
    """Which of n ascending distances make the largest one that is left, first..after: their mean."""
    first = int(np.clip(round(share * (n - 1) - (around - 1) / 2), 0, max(n - around, 0)))
    return first, min(first + around, n)


def left_of(groups: NDArray[np.float32], middle: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """What is left of each group's distance from the middle float64[d], 0..1, where none is farther than the radius.

    groups float32[g, d]. Returns float64[g].
    """
    return np.minimum(1.0, radius / np.maximum(lengths(groups - middle), 1e-300))


def lengths(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """The Euclidean lengths of rows, float64[n]."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
