"""Who stands behind the cells of a release: how many rated them, and whether the shown value is what they said.

Source: homogeneity attacks of Chang, Thompson, Wang and Yao 2010 (section 6). That cells with one rater show the rating
follows from the averages of X. Chen's thesis (section 3.3).
"""

import numpy as np
from numba import njit

SHOWN, RATED, ONE_RATER, EXACT, NEAR, ALIKE, WORKED_OUT = 0, 1, 2, 3, 4, 5, 6
FIELDS = 7

_HAIR = 1e-5  # shown values are float32


@njit(nogil=True, cache=True)
def by_item(
    indptr: np.ndarray, items: np.ndarray, values: np.ndarray, truth: np.ndarray, places: np.ndarray, n_places: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ratings of some items by item: indptr int64[n_places + 1], candidates int32, values float32.

    places int32[n_items]: the place of each item, -1 for those left out. truth int32[n_users]: the candidate of each
    user, -1 for those left out. O(nnz) time, 8 bytes for each rating kept.
    """
    out = np.zeros(n_places + 1, dtype=np.int64)
    for user in range(len(truth)):
        if truth[user] >= 0:
            for j in range(indptr[user], indptr[user + 1]):
                if places[items[j]] >= 0:
                    out[places[items[j]] + 1] += 1
    for place in range(n_places):
        out[place + 1] += out[place]
    at = out[:-1].copy()
    candidates = np.empty(out[-1], dtype=np.int32)
    ratings = np.empty(out[-1], dtype=np.float32)
    for user in range(len(truth)):
        if truth[user] >= 0:
            for j in range(indptr[user], indptr[user + 1]):
                place = places[items[j]]
                if place >= 0:
                    candidates[at[place]] = truth[user]
                    ratings[at[place]] = values[j]
                    at[place] += 1
    return out, candidates, ratings


@njit(nogil=True, cache=True)
def count_cells(
    low: np.ndarray,
    high: np.ndarray,
    indptr: np.ndarray,
    candidates: np.ndarray,
    ratings: np.ndarray,
    first: int,
    half: float,
    sizes: np.ndarray,
    fill: float,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Count the cells of items start..end of a piece into out int64[i, FIELDS].

    low, high float32[i, n] show the items at places first, first + 1 ... of `indptr`. EXACT: the value is that of the
    only rater; NEAR: it is less than half a step (`half`) off. ALIKE: there are several raters, all said the same and
    the value is that. WORKED_OUT: the rating of the only rater follows from the value taken as the mean of it and of
    `fill` for each other member (sizes int64[n]); never where fill is NaN. O(n + ratings) for each item.
    """
    n = low.shape[1]
    count = np.zeros(n, dtype=np.int32)
    least, most = np.zeros(n), np.zeros(n)
    for i in range(start, end):
        count[:] = 0
        for j in range(indptr[first + i], indptr[first + i + 1]):
            c, rating = candidates[j], np.float64(ratings[j])
            least[c] = rating if count[c] == 0 else min(least[c], rating)
            most[c] = rating if count[c] == 0 else max(most[c], rating)
            count[c] += 1
        for c in range(n):
            lowest, highest = np.float64(low[i, c]), np.float64(high[i, c])
            if np.isnan(lowest):
                continue
            out[i, SHOWN] += 1
            if count[c] == 0:
                continue
            out[i, RATED] += 1
            middle = (lowest + highest) / 2
            exact = least[c] == most[c] and max(abs(lowest - least[c]), abs(highest - least[c])) <= _HAIR
            if count[c] > 1:
                if exact:
                    out[i, ALIKE] += 1
                continue
            out[i, ONE_RATER] += 1
            if exact:
                out[i, EXACT] += 1
            if abs(middle - least[c]) < half - _HAIR:
                out[i, NEAR] += 1
            if abs(fill + (middle - fill) * sizes[c] - least[c]) <= _HAIR * sizes[c]:
                out[i, WORKED_OUT] += 1


@njit(nogil=True, cache=True)
def most_frequent(indptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The most frequent value of every item, float32[n_items], NaN where there is none; the lowest of several.

    indptr int64[n_items + 1], values float32[nnz], by item. O(nnz log nnz).
    """
    found = np.full(len(indptr) - 1, np.nan, dtype=np.float32)
    for item in range(len(found)):
        own = np.sort(values[indptr[item] : indptr[item + 1]])
        longest, run = 0, 0
        for j in range(len(own)):
            run = run + 1 if j > 0 and own[j] == own[j - 1] else 1
            if run > longest:
                longest = run
                found[item] = own[j]
    return found
