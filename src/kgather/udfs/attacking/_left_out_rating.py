"""What a release predicts of a rating for somebody who knows all other ratings of its rater."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def predict_without(
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    ratings: NDArray[np.float32],
    wanted: NDArray[np.int64],
    levels: NDArray[np.float64],
    factors: NDArray[np.float64],
    places: NDArray[np.float64],
    weights: NDArray[np.float64],
    middle: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    variance: float,
    low: float,
    high: float,
    out: NDArray[np.float64],
    start: int,
    end: int,
) -> None:
    """Write what is predicted of wanted ratings of people start..end by the others of the person, float64[w, 2].

    indptr int64[t + 1], items int32, ratings float32: people by row. wanted int64[ratings]: the row of `out` of a
    rating, -1 where it is not wanted. levels float64[m], factors float64[m, r]: of items. places float64[g, r + 1]:
    level and factors of groups; weights float64[g]: logarithms of their shares of the users. middle float64[r + 1]: the
    users' mean place. stiffness float64[r + 1, r + 1]: `variance` times the inverse covariance of places.

    out[w, 0]: the mean of what groups show, each as likely as the other ratings make it (normal with `variance`).
    out[w, 1]: the person folded into the item vectors by the other ratings: ridge regression, whose leave-one-out
    residuals are residuals / (1 - leverage). Clipped to low..high. O(n g r + n r^2 + w g) for n ratings of a person.
    """
    groups, d = places.shape
    row = np.ones(d)
    for t in range(start, end):
        first, last = indptr[t], indptr[t + 1]
        some = False
        for j in range(first, last):
            some |= wanted[j] >= 0
        if not some:
            continue
        shown = np.empty((last - first, groups))
        likely = weights.copy()
        system, onto = stiffness.copy(), np.zeros(d)
        for j in range(first, last):
            item = items[j]
            for a in range(1, d):
                row[a] = factors[item, a - 1]
            gap = np.float64(ratings[j]) - levels[item]
            for a in range(d):
                gap -= row[a] * middle[a]
            for a in range(d):
                onto[a] += row[a] * gap
                for b in range(d):
                    system[a, b] += row[a] * row[b]
            for g in range(groups):
                value = levels[item]
                for a in range(d):
                    value += row[a] * places[g, a]
                value = min(max(value, low), high)
                shown[j - first, g] = value
                likely[g] -= (ratings[j] - value) ** 2 / (2.0 * variance)
        inverse = np.linalg.inv(system)
        found = inverse @ onto
        for j in range(first, last):
            if wanted[j] < 0:
                continue
            item = items[j]
            for a in range(1, d):
                row[a] = factors[item, a - 1]
            leverage, fitted = 0.0, levels[item]
            for a in range(d):
                fitted += row[a] * (middle[a] + found[a])
                for b in range(d):
                    leverage += row[a] * inverse[a, b] * row[b]
            left = (ratings[j] - fitted) / max(1.0 - leverage, 1e-9)
            out[wanted[j], 1] = min(max(ratings[j] - left, low), high)
            top = -np.inf
            for g in range(groups):
                top = max(top, likely[g] + (ratings[j] - shown[j - first, g]) ** 2 / (2.0 * variance))
            total, sum_of = 0.0, 0.0
            for g in range(groups):
                gap = ratings[j] - shown[j - first, g]
                weight = np.exp(likely[g] + gap * gap / (2.0 * variance) - top)
                total += weight
                sum_of += weight * shown[j - first, g]
            out[wanted[j], 0] = sum_of / total
