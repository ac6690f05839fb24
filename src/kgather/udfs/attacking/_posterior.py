"""How likely each candidate is the one that an attacker looks for, by the rule of Bayes.

Before anything is known a user is as likely as any other, so a candidate is as likely as it has users. What is known of
the target multiplies that by how likely it would be, were the target one of the candidate's users.

- Ratings: normal around what is shown, with a variance for each item. Where many values shown are ratings of the scale,
  as means of one rater are, such a value may be the target's own rating. A rating within a range that is shown is as
  likely as any other value within; one outside is next to impossible, as is having rated what is not shown.
- Items: people rate what others do, the more so what they like. An item is drawn from those that the candidate shows,
  in proportion to its raters and to exp(what is shown above the mean of all).
- Folding: ratings are those of somebody near the candidate's place among the directions in which people differ, so that
  gaps to what is shown are correlated; the normal distribution with a covariance of low rank.
"""

import numpy as np
from numba import njit

from kgather.udfs.attacking._scoring import STANDS_OUT, Behind, settle

_HAIR = 1e-4  # shown values are float32
_ALIKE = 1e-9
_IMPOSSIBLE = 1e-4  # how likely what cannot be is nevertheless: attackers, too, are told wrong things


@njit(nogil=True, cache=True)
def _prior(behind: Behind) -> np.ndarray:
    """Logarithms of how likely candidates are before anything is known, but for a constant, float64[c]."""
    return np.log(np.maximum(behind.users.astype(np.float64), 1e-9))


@njit(nogil=True, cache=True)
def _judge(
    found: np.ndarray,
    right: int,
    group: int,
    behind: Behind,
    fits: np.ndarray,
    out: np.ndarray,
) -> None:
    """Settle on the candidates with the largest logarithm of a posterior, found float64[c]; STANDS_OUT is theirs."""
    top, total, best = -np.inf, 0.0, 0.0
    for c in range(len(found)):
        top = max(top, found[c])
    for c in range(len(found)):
        fits[c] = found[c] >= top - _ALIKE * max(abs(top), 1.0)
        share = np.exp(found[c] - top)
        total += share
        if fits[c]:
            best = max(best, share)
    settle(fits, right, group, behind, out)
    out[STANDS_OUT] = best / total


@njit(nogil=True, cache=True)
def judge_ratings(
    low: np.ndarray,
    high: np.ndarray,
    places: np.ndarray,
    ratings: np.ndarray,
    variances: np.ndarray,
    lowest: float,
    step: float,
    own: float,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Look for targets start..end by their ratings; write out[t], float64[t, 5], as `scoring.settle` does.

    low, high float32[i, c], places int32[t, m], ratings float32[t, m]: as for `scoring.fit_candidates`. variances
    float64[i]: of ratings around what is shown. lowest, step: of the scale. own: how likely a shown value that is a
    rating of the scale is the target's own. For the rest see `scoring.settle`. STANDS_OUT is the posterior of a best
    candidate. O(m c) for each target.
    """
    n, m = low.shape[1], places.shape[1]
    prior, found, fits = _prior(behind), np.empty(n), np.empty(n, dtype=np.bool_)
    impossible = np.log(_IMPOSSIBLE)
    for t in range(start, end):
        found[:] = prior
        for j in range(m):
            place = places[t, j]
            rating, variance = np.float64(ratings[t, j]), variances[place]
            # The density is one of rating steps, so that it compares with the chance of an exact hit.
            scale = np.log(step) - 0.5 * np.log(2 * np.pi * variance)
            for c in range(n):
                bottom, top = np.float64(low[place, c]), np.float64(high[place, c])
                if np.isnan(bottom):
                    found[c] += impossible
                elif top > bottom:
                    inside = bottom - _HAIR <= rating <= top + _HAIR
                    found[c] += -np.log((top - bottom) / step + 1) if inside else impossible
                else:
                    gap = rating - bottom
                    normal = scale - gap * gap / (2 * variance)
                    if own > 0.0:
                        steps = (bottom - lowest) / step
                        if abs(steps - np.round(steps)) * step < _HAIR:
                            hit = own if abs(gap) < _HAIR else 0.0
                            normal = np.log(hit + (1 - own) * np.exp(max(normal, -700.0)) + 1e-300)
                    found[c] += normal
        _judge(found, right[t], groups[t], behind, fits, out[t])


@njit(nogil=True, cache=True)
def judge_items(
    low: np.ndarray,
    high: np.ndarray,
    places: np.ndarray,
    means: np.ndarray,
    unit: float,
    totals: np.ndarray,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Look for targets start..end by which items they rated; out, low, high and places as for `judge_ratings`.

    means float64[i]: what is usually shown. unit: what a gap is multiplied by to be one on a scale of width 4. totals
    float64[c]: logarithms of the sums, over the items that a candidate shows, of exp(unit x (shown - mean)) x the
    item's share of all raters.
    """
    n, m = low.shape[1], places.shape[1]
    prior, found, fits = _prior(behind), np.empty(n), np.empty(n, dtype=np.bool_)
    impossible = np.log(_IMPOSSIBLE)
    for t in range(start, end):
        found[:] = prior
        for j in range(m):
            place = places[t, j]
            for c in range(n):
                bottom = np.float64(low[place, c])
                if np.isnan(bottom):
                    found[c] += impossible
                else:
                    gap = (bottom + np.float64(high[place, c])) / 2 - means[place]
                    found[c] += unit * gap - totals[c]
        _judge(found, right[t], groups[t], behind, fits, out[t])


@njit(nogil=True, cache=True)
def squared_gaps(items: np.ndarray, values: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By item, the sum of the squared gaps of ratings to the item's mean, and how many they are; both float64[n_items].

    items int32[nnz], values float32[nnz], means float64[n_items], NaN: an item to be left out. O(nnz).
    """
    sums, counts = np.zeros(len(means)), np.zeros(len(means))
    for j in range(len(items)):
        item = items[j]
        gap = values[j] - means[item]
        if not np.isnan(gap):
            sums[item] += gap * gap
            counts[item] += 1.0
    return sums, counts


@njit(nogil=True, cache=True)
def add_totals(
    low: np.ndarray,
    high: np.ndarray,
    raters: np.ndarray,
    means: np.ndarray,
    unit: float,
    totals: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Add to totals float64[c], of candidates start..end, raters x exp(unit x (shown - mean)) of the items at hand.

    low, high float32[i, c], NaN where nothing is shown; raters, means float64[i]. O(i c).
    """
    for place in range(low.shape[0]):
        for c in range(start, end):
            bottom = np.float64(low[place, c])
            if not np.isnan(bottom):
                gap = (bottom + np.float64(high[place, c])) / 2 - means[place]
                totals[c] += raters[place] * np.exp(unit * gap)


@njit(nogil=True, cache=True)
def judge_folded(
    means: np.ndarray,
    axes: np.ndarray,
    coordinates: np.ndarray,
    items: np.ndarray,
    ratings: np.ndarray,
    variance: float,
    spread: float,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Look for targets start..end among rows means + axes @ coordinates[c]; out as for `judge_ratings`.

    means float64[n_items], NaN where unknown, and the rating is left aside; axes float64[n_items, d], coordinates
    float64[c, d]. items int32[t, m], ratings float32[t, m]. variance: of a rating around what somebody is predicted;
    spread: of a user's coordinates around those of the candidate. Gaps have the covariance variance + spread A A' (A:
    the axes of the items known), whose inverse is found in d dimensions. O(m d^2 + d^3 + c d^2) for each target.
    """
    n, d = coordinates.shape
    prior, found, fits = _prior(behind), np.empty(n), np.empty(n, dtype=np.bool_)
    for t in range(start, end):
        products, onto = np.zeros((d, d)), np.zeros(d)
        for j in range(items.shape[1]):
            item = items[t, j]
            if np.isnan(means[item]):
                continue
            gap = np.float64(ratings[t, j]) - means[item]
            for a in range(d):
                onto[a] += axes[item, a] * gap
                for b in range(d):
                    products[a, b] += axes[item, a] * axes[item, b]
        # With P = A'A, A' C^-1 A = (P - P (P + variance/spread)^-1 P) / variance, and likewise for A' C^-1 gaps.
        inner = np.linalg.inv(products + variance / spread * np.eye(d))
        shrink = np.eye(d) - products @ inner
        weight = shrink @ products / variance
        towards = shrink @ onto / variance
        for c in range(n):
            value = prior[c]
            for a in range(d):
                row = 0.0
                for b in range(d):
                    row += weight[a, b] * coordinates[c, b]
                value += coordinates[c, a] * (towards[a] - 0.5 * row)
            found[c] = value
        _judge(found, right[t], groups[t], behind, fits, out[t])
