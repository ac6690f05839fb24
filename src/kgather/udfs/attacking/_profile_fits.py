"""How whole profiles of a release fit people's ratings, item range by item range.

For each person and candidate five sums are kept, from which distances and correlations follow. People are sparse, so
what somebody has not rated costs nothing.
"""

import numpy as np
from numba import njit

from kgather.udfs.attacking._scoring import mean_gap

GAPS, SQUARES, SHOWN, SHOWN_SQUARES, PRODUCTS = 0, 1, 2, 3, 4
SUMS = 5


@njit(nogil=True, cache=True)
def add_fits(
    indptr: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray,
    places: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    means: np.ndarray,
    width: float,
    sums: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Add to sums float64[t, SUMS, c] those of people start..end with all candidates, over the items at hand.

    indptr int64[t + 1], items int32, ratings float32: people by row. places int32[n_items]: the rows of low and high
    float32[i, c] (NaN: not shown), -1 for other items. means float64[n_items]: what is usually shown. GAPS: mean gaps,
    SQUARES: squared ones, the width where nothing is shown; SHOWN: shown values less the mean, 0 where nothing is,
    SHOWN_SQUARES: their squares; PRODUCTS: they times the rating less the mean. O(ratings x c).
    """
    for t in range(start, end):
        row = sums[t]
        for j in range(indptr[t], indptr[t + 1]):
            place = places[items[j]]
            if place < 0:
                continue
            rating, mean = np.float64(ratings[j]), means[items[j]]
            for c in range(row.shape[1]):
                lowest, highest = np.float64(low[place, c]), np.float64(high[place, c])
                if np.isnan(lowest):
                    row[GAPS, c] += width
                    row[SQUARES, c] += width * width
                    continue
                gap = mean_gap(rating, lowest, highest)
                shown = (lowest + highest) / 2 - mean
                row[GAPS, c] += gap
                row[SQUARES, c] += gap * gap
                row[SHOWN, c] += shown
                row[SHOWN_SQUARES, c] += shown * shown
                row[PRODUCTS, c] += shown * (rating - mean)


@njit(nogil=True, cache=True)
def best_fits(
    own: np.ndarray, sums: np.ndarray, weights: np.ndarray, variance: float, out: np.ndarray, start: int, end: int
) -> None:
    """Write the best of all candidates for people start..end to out float64[t, 4].

    own float64[t, 3]: how many ratings, the sum of (rating - mean) and of its square. weights float64[c]: logarithms of
    the shares of users behind the candidates. variance: of ratings around what is shown. Written are, the larger the
    better: less the least mean gap; the share of the squares that the nearest candidate explains; the largest
    correlation with a candidate; by how much, for each rating, the logarithm of the likelihood of being behind some
    candidate is above that of an average person. O(c) for each.
    """
    for t in range(start, end):
        n = max(own[t, 0], 1.0)
        spread = own[t, 2] - own[t, 1] * own[t, 1] / n
        least, nearest, alike = np.inf, np.inf, -1.0
        for c in range(sums.shape[2]):
            least = min(least, sums[t, GAPS, c])
            nearest = min(nearest, sums[t, SQUARES, c])
            wide = sums[t, SHOWN_SQUARES, c] - sums[t, SHOWN, c] * sums[t, SHOWN, c] / n
            if wide > 1e-9 * n and spread > 1e-9 * n:
                both = sums[t, PRODUCTS, c] - sums[t, SHOWN, c] * own[t, 1] / n
                alike = max(alike, both / np.sqrt(wide * spread))
        top, total = -np.inf, 0.0
        for c in range(sums.shape[2]):
            top = max(top, weights[c] - sums[t, SQUARES, c] / (2 * variance))
        for c in range(sums.shape[2]):
            total += np.exp(weights[c] - sums[t, SQUARES, c] / (2 * variance) - top)
        out[t, 0] = -least / n
        out[t, 1] = 1 - nearest / own[t, 2] if own[t, 2] > 1e-9 * n else 0.0
        out[t, 2] = alike
        out[t, 3] = (top + np.log(total) + own[t, 2] / (2 * variance)) / n
