"""Who is easiest to find: people in groups that are far from what is usually shown."""

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked

_ITEMS = 512
TENTH, THREE_PERCENT = 0.9, 0.97


def ranks(attacked: Attacked) -> NDArray[np.float64]:
    """How far each class is from the mean, as the share of classes that are nearer, float64[c], 0..1.

    The distance is the root mean square over what is shown of at most 512 items, evenly chosen. O(512 c).
    """
    shown = np.flatnonzero(attacked.evidence.shown_items)
    items = shown[np.unique(np.linspace(0, len(shown) - 1, min(len(shown), _ITEMS)).astype(np.int64))]
    squares, counts = np.zeros(attacked.n_classes), np.zeros(attacked.n_classes)
    weights = attacked.users / max(attacked.users.sum(), 1)
    at_once = max(attacked.items_at_once // 8, 1)  # several arrays twice as wide are made of what is shown
    for start in range(0, len(items), at_once):
        low, high = attacked.columns(items[start : start + at_once])
        middle = (low.astype(np.float64) + high) / 2
        there = ~np.isnan(middle)
        share = np.maximum((there * weights).sum(axis=1), 1e-300)
        usual = np.nansum(middle * weights, axis=1) / share
        squares += np.nansum((middle - usual[:, None]) ** 2, axis=0)
        counts += there.sum(axis=0)
    distances = squares / np.maximum(counts, 1)
    return np.argsort(np.argsort(distances, kind="stable"), kind="stable") / max(attacked.n_classes, 1)


def of_the_farthest(
    attacked: Attacked, rank: NDArray[np.float64], users: NDArray[np.int64], right: NDArray[np.float64]
) -> dict[str, float]:
    """How often the right group is found of people in the farthest tenth and 3% of the groups, and the same divided by
    the size of their group: the right person. users int64[t]: the targets. right float64[t].
    """
    places = rank[attacked.right(users)]
    sizes = np.maximum(attacked.evidence.group_sizes[attacked.groups(users)], 1)
    found: dict[str, float] = {}
    for name, least in (("farthest_tenth", TENTH), ("farthest_3_percent", THREE_PERCENT)):
        there = places >= least
        if there.any():
            found[name] = float(right[there].mean())
            found[f"{name}_user"] = float((right / sizes)[there].mean())
    return found
