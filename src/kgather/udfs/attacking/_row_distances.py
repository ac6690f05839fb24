"""Sums over all items of how far users' ratings are from the rows of a release, item range by item range.

Rows are sparse on the users' side only: what a user has not rated costs nothing.
Source: the disclosure risk of F. Casino et al. (microaggregation of ratings, section IV), which links records
by Euclidean distance.
"""

import numpy as np
from numba import njit

from kgather.udfs.attacking._scoring import BEST, GROUP, RIGHT, TIES, Behind, mean_gap, settle

_ALIKE = 1e-9  # relative to the numbers that a distance is the difference of


@njit(nogil=True, cache=True)
def add_products(
    indptr: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    users: np.ndarray,
    first: int,
    columns: np.ndarray,
    products: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Add to products float64[t, c] those of users start..end with all candidates, over items first..first + i.

    users int64[t]; values float32[nnz]: ratings less the fill; columns float32[i, c]: likewise shown values.
    O(ratings of the users in these items x c).
    """
    last = first + columns.shape[0]
    for t in range(start, end):
        lo, hi = indptr[users[t]], indptr[users[t] + 1]
        at = lo + np.searchsorted(items[lo:hi], first)
        row = products[t]
        while at < hi and items[at] < last:
            value = np.float64(values[at])
            column = columns[items[at] - first]
            for c in range(len(row)):
                row[c] += value * column[c]
            at += 1


@njit(nogil=True, cache=True)
def nearest_rows(
    products: np.ndarray,
    user_norms: np.ndarray,
    row_norms: np.ndarray,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """The nearest candidates of users start..end, as `scoring.settle` writes them to out float64[t, 5].

    products float64[t, c]; user_norms float64[t], row_norms float64[c]: squared norms. O(c) for each user.
    """
    n = products.shape[1]
    fits = np.empty(n, dtype=np.bool_)
    for t in range(start, end):
        least = np.inf
        for c in range(n):
            least = min(least, row_norms[c] - 2 * products[t, c])
        for c in range(n):
            slack = _ALIKE * (1 + user_norms[t] + row_norms[c])
            fits[c] = row_norms[c] - 2 * products[t, c] <= least + slack
        settle(fits, right[t], groups[t], behind, out[t])


@njit(nogil=True, cache=True)
def nearest_users(
    products: np.ndarray,
    user_norms: np.ndarray,
    row_norms: np.ndarray,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    rows: np.ndarray,
    best: np.ndarray,
    out: np.ndarray,
) -> None:
    """Let a block of users be compared with the nearest so far of each of s candidates.

    products float64[t, s], row_norms float64[s], rows int32[s]: the candidates' codes; right int32[t], groups int32[t]:
    the users' candidates and groups. best float64[s] (at first infinite): the least squared distance, less the row's
    norm. out float64[s, 5] (at first 0): TIES, the users as near as that; RIGHT, those of them who are the candidate's;
    GROUP, users of the candidate who are of their groups, summed. O(t s).
    """
    for t in range(products.shape[0]):
        for s in range(products.shape[1]):
            distance = user_norms[t] - 2 * products[t, s]
            slack = _ALIKE * (1 + user_norms[t] + row_norms[s])
            if distance > best[s] + slack:
                continue
            if distance < best[s] - slack:
                best[s] = distance
                out[s, TIES], out[s, RIGHT], out[s, GROUP], out[s, BEST] = 0.0, 0.0, 0.0, -1.0
            row = rows[s]
            out[s, TIES] += 1
            if right[t] == row:
                out[s, RIGHT] += 1
            for j in range(behind.pair_indptr[row], behind.pair_indptr[row + 1]):
                if behind.pair_groups[j] == groups[t]:
                    out[s, GROUP] += behind.pair_users[j]


@njit(nogil=True, cache=True)
def add_gaps(
    indptr: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray,
    places: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    width: float,
    gaps: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Add to gaps float64[t, c] the gaps of people start..end to all candidates, over the items at hand.

    indptr int64[t + 1], items int32, ratings float32: what is known of each. places int32[n_items]: the rows of low and
    high float32[i, c] (NaN: not shown, which counts as the width), -1 for other items. O(ratings x c).
    """
    for t in range(start, end):
        row = gaps[t]
        for j in range(indptr[t], indptr[t + 1]):
            place = places[items[j]]
            if place < 0:
                continue
            rating = np.float64(ratings[j])
            for c in range(len(row)):
                lowest = np.float64(low[place, c])
                row[c] += width if np.isnan(lowest) else mean_gap(rating, lowest, np.float64(high[place, c]))
