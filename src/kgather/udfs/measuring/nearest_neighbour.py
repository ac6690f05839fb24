"""Ratings predicted by the nearest neighbours among the users (Herlocker et al. 1999; the recommender of Casino et
al., section IV).

Rows are centred at their own mean. Two rows are as similar as the cosine of their centred ratings, what one has not
rated being 0, so that few ratings in common count for little. A rating is predicted as the mean of the user's row plus
the mean, weighted by similarity, of what the most similar rows gave the item above their own mean.

A row can stand for several users who look the same, as a group's row of a release does: its weight says how many.
`neighbours` counts users. Whoever predicts for one of its members has the others as neighbours of similarity 1, as if
every member had a row.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole
from kgather.udfs._shared.workers import row_ranges, run
from kgather.udfs.ratings.matrix import RatingMatrix


def predict(
    matrix: RatingMatrix,
    rows: np.ndarray,
    items: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    neighbours: int = 30,
    threads: int = 1,
) -> np.ndarray:
    """What the rows would rate the items, float64[t], not clipped to any scale.

    matrix: the ratings to learn from. rows, items: int[t], codes of the matrix. weights: int[n_users], how many users a
    row stands for (None: one each). neighbours: how many users with a positive similarity enter. Where there are none,
    the item's mean (weighted) is predicted, and for an item that nobody rated the row's mean.

    O(sum over the asked rows of their items' raters + t r log r) for r raters of an item; memory O(n_users) a thread
    beside the matrix by item. The result is the same for any number of threads.
    Raises InputError where codes are out of range, weights are not one whole number >= 1 a row, or options are wrong.
    """
    neighbours, threads = whole("neighbours", neighbours, 1), whole("threads", threads, 1)
    rows, items = np.asarray(rows, dtype=np.int64), np.asarray(items, dtype=np.int64)
    counts = np.ones(matrix.n_users, dtype=np.int64) if weights is None else np.asarray(weights)
    if rows.ndim != 1 or rows.shape != items.shape:
        msg = "rows and items must be lists of the same length."
        raise InputError(msg)
    for name, codes, size in (("row", rows, matrix.n_users), ("item", items, matrix.n_items)):
        if len(codes) and not 0 <= codes.min() <= codes.max() < size:
            msg = f"the codes of a {name} are 0 to {size - 1}."
            raise InputError(msg)
    if counts.shape != (matrix.n_users,) or counts.dtype.kind not in "iu" or counts.min(initial=1) < 1:
        msg = "the weights must be one whole number of at least 1 for each row."
        raise InputError(msg)
    counts = counts.astype(np.int64)
    means, norms, centred = _centre(matrix.indptr, matrix.values)
    by_item, raters, ratings = matrix.transpose()
    item_means = _item_means(by_item, raters, ratings, counts)
    order = np.argsort(rows, kind="stable")
    asked = np.searchsorted(rows[order], np.arange(matrix.n_users + 1)).astype(np.int64)
    found = np.empty(len(rows))
    kernel = partial(
        _predict, matrix.indptr, matrix.items, centred, means, norms, by_item, raters, ratings, item_means, counts,
        asked, items[order], neighbours, found,
    )  # fmt: skip
    if threads == 1:
        run(kernel, [(0, matrix.n_users)], None)
    else:
        with ThreadPoolExecutor(threads) as pool:
            run(kernel, row_ranges(matrix.indptr, threads), pool)
    result = np.empty(len(rows))
    result[order] = found
    return result


@njit(nogil=True, cache=True)
def _centre(indptr: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each row's mean, the length of the centred row, and the centred ratings, float64."""
    n = len(indptr) - 1
    means, norms = np.zeros(n), np.zeros(n)
    centred = np.empty(len(values))
    for u in range(n):
        lo, hi = indptr[u], indptr[u + 1]
        if lo == hi:
            continue
        total = 0.0
        for j in range(lo, hi):
            total += values[j]
        means[u] = total / (hi - lo)
        squares = 0.0
        for j in range(lo, hi):
            centred[j] = values[j] - means[u]
            squares += centred[j] * centred[j]
        norms[u] = np.sqrt(squares)
    return means, norms, centred


@njit(nogil=True, cache=True)
def _item_means(indptr: np.ndarray, raters: np.ndarray, ratings: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of each item over users, float64[m], NaN where there is none."""
    means = np.full(len(indptr) - 1, np.nan)
    for i in range(len(means)):
        total, count = 0.0, 0
        for j in range(indptr[i], indptr[i + 1]):
            total += weights[raters[j]] * ratings[j]
            count += weights[raters[j]]
        if count > 0:
            means[i] = total / count
    return means


@njit(nogil=True, cache=True)
def _predict(
    indptr: np.ndarray,
    row_items: np.ndarray,
    centred: np.ndarray,
    means: np.ndarray,
    norms: np.ndarray,
    by_item: np.ndarray,
    raters: np.ndarray,
    ratings: np.ndarray,
    item_means: np.ndarray,
    weights: np.ndarray,
    asked: np.ndarray,
    items: np.ndarray,
    neighbours: int,
    found: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """Predictions of rows lo..hi - 1: asked[u]..asked[u + 1] are the places of row u in items and found."""
    n = len(means)
    similarity = np.zeros(n)
    for u in range(lo, hi):
        if asked[u] == asked[u + 1]:
            continue
        similarity[:] = 0.0
        for j in range(indptr[u], indptr[u + 1]):
            own = centred[j]
            item = row_items[j]
            for r in range(by_item[item], by_item[item + 1]):
                v = raters[r]
                similarity[v] += own * (ratings[r] - means[v])
        for v in range(n):
            lengths = norms[u] * norms[v]
            similarity[v] = similarity[v] / lengths if lengths > 0.0 else 0.0
        if norms[u] > 0.0:
            similarity[u] = 1.0
        for t in range(asked[u], asked[u + 1]):
            item = items[t]
            found[t] = _of_neighbours(
                u, by_item[item], by_item[item + 1], raters, ratings, similarity, means, weights, neighbours
            )
            if np.isnan(found[t]):
                found[t] = means[u] if np.isnan(item_means[item]) else item_means[item]


@njit(nogil=True, cache=True)
def _of_neighbours(
    u: int,
    start: int,
    end: int,
    raters: np.ndarray,
    ratings: np.ndarray,
    similarity: np.ndarray,
    means: np.ndarray,
    weights: np.ndarray,
    neighbours: int,
) -> float:
    """The prediction from the raters of one item, the most similar first; NaN where none is similar."""
    keys = np.empty(end - start)
    for r in range(start, end):
        keys[r - start] = -similarity[raters[r]]
    order = np.argsort(keys, kind="mergesort")  # equal ones in the order of their codes
    left, above, total = neighbours, 0.0, 0.0
    for place in order:
        v = raters[start + place]
        alike = similarity[v]
        if alike <= 0.0 or left == 0:
            break
        users = weights[v] - 1 if v == u else weights[v]  # the user asked for is no neighbour of one's own
        users = min(users, left)
        left -= users
        above += users * alike * (ratings[start + place] - means[v])
        total += users * alike
    return means[u] + above / total if total > 0.0 else np.nan
