"""What a few item vectors explain of people's ratings: every person is folded in by ridge regression.

A model explains the ratings that it learnt from better than those of people it never saw, and the better the more
vectors it has. Source: folding in is that of Sarwar, Karypis, Konstan and Riedl 2002; that a model's loss tells who was
in its data is the observation of Yeom, Giacomelli, Fredrikson and Jha 2018.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def explained_shares(
    indptr: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray,
    means: np.ndarray,
    axes: np.ndarray,
    ridge: float,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Write what the vectors explain of the people start..end beyond what as many random ones would, float64[t].

    indptr int64[t + 1], items int32, ratings float32: people by row. means float64[m]: an item's usual value, NaN where
    it has none, and the rating is left aside. axes float64[m, d]. ridge: added to the diagonal. The deviations of a
    person's ratings from `means`, less their own mean, are regressed on the vectors, less theirs. Written is the share
    of their squares that is explained, less that expected where nothing is to be found: degrees of freedom / (n - 1).
    0 where a person has fewer than three ratings or deviations that are all the same. O(n d^2 + d^3) for n ratings.
    """
    d = axes.shape[1]
    for t in range(start, end):
        products, sums, onto = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        n, total, squares = 0, 0.0, 0.0
        for j in range(indptr[t], indptr[t + 1]):
            item = items[j]
            if np.isnan(means[item]):
                continue
            gap = np.float64(ratings[j]) - means[item]
            n += 1
            total += gap
            squares += gap * gap
            for a in range(d):
                x = axes[item, a]
                sums[a] += x
                onto[a] += x * gap
                for b in range(a + 1):
                    products[a, b] += x * axes[item, b]
        out[t] = 0.0
        squares -= total * total / max(n, 1)
        if n < 3 or squares <= 1e-9 * n:
            continue
        for a in range(d):
            onto[a] -= sums[a] * total / n
            for b in range(a + 1):
                products[a, b] -= sums[a] * sums[b] / n
                products[b, a] = products[a, b]
        inverse = np.linalg.inv(products + ridge * np.eye(d))
        found = inverse @ onto
        explained = 2 * np.dot(found, onto) - np.dot(found, products @ found)
        freedom = d - ridge * np.trace(inverse)
        out[t] = explained / squares - freedom / (n - 1)


@njit(nogil=True, cache=True)
def trace_scores(
    indptr: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray,
    means: np.ndarray,
    published: np.ndarray,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Write how far the published item means lean towards the ratings of people start..end, float64[t].

    means float64[m]: what is usual elsewhere; published float64[m]: what is published less that. The mean over a
    person's ratings of (rating less what is usual less the person's mean of this) x published, NaN left aside.
    Source: the trace of a person in published means is that of Homer et al. 2008. O(n) for n ratings.
    """
    for t in range(start, end):
        n, total = 0, 0.0
        for j in range(indptr[t], indptr[t + 1]):
            if not np.isnan(means[items[j]]) and not np.isnan(published[items[j]]):
                n += 1
                total += np.float64(ratings[j]) - means[items[j]]
        own, score = total / max(n, 1), 0.0
        for j in range(indptr[t], indptr[t + 1]):
            if not np.isnan(means[items[j]]) and not np.isnan(published[items[j]]):
                score += (np.float64(ratings[j]) - means[items[j]] - own) * published[items[j]]
        out[t] = score / max(n, 1)
