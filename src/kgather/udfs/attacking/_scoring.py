"""How well candidates fit what an attacker knows, by four rules, each with the candidates that fit best.

- Scoring: the sum over known items of weight times exp(-gap / 1.5), and the eccentricity, by which the best score
  stands out: (best - second) / standard deviation of all (Narayanan and Shmatikov 2008, section 4, there called
  Scoreboard-RH; its weights are 1 / ln of an item's support).
- Distance: the mean gap; an item that is not shown counts as the full width of the scale.
- Structure and label: all candidates that show all known items, or show them with the known ratings within a
  tolerance (Chang, Thompson, Wang and Yao 2010, sections 4.3, 5.2 and 6).

The gap to a range is the mean gap to the numbers within it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

SCORING, DISTANCE, STRUCTURE, LABEL = 0, 1, 2, 3
TIES, RIGHT, GROUP, STANDS_OUT, BEST = 0, 1, 2, 3, 4

_ALIKE = 1e-9  # sums that differ by less, relative to their size, are equal but for rounding
_HAIR = 1e-5  # shown values are float32
DECAY = 1.5


class Behind(NamedTuple):
    """Who stands behind each of c candidates: so many users, int64[c]; of group pair_groups[j] (int32) they are
    pair_users[j] (int64), j in the candidate's pair_indptr range (int64[c + 1])."""

    users: np.ndarray
    pair_indptr: np.ndarray
    pair_groups: np.ndarray
    pair_users: np.ndarray


@njit(nogil=True, cache=True, inline="always")
def mean_gap(rating: float, low: float, high: float) -> float:
    """The mean absolute difference of a rating to the numbers in low..high."""
    if rating <= low or rating >= high:
        return float(abs(rating - (low + high) / 2))
    below, above = rating - low, high - rating
    return (below * below + above * above) / (2 * (high - low))


@njit(nogil=True, cache=True)
def settle(
    fits: np.ndarray,
    right: int,
    group: int,
    behind: Behind,
    out: np.ndarray,
) -> None:
    """Write of the candidates that fit, bool[c]: how many, whether `right` is one of them, the chance that a user of
    one of them (any is as likely) is of the group, and the first (-1: none), to out[TIES, RIGHT, GROUP, BEST].
    """
    ties, first, credit = 0, -1, 0.0
    for c in range(len(fits)):
        if fits[c]:
            ties += 1
            if first < 0:
                first = c
            for j in range(behind.pair_indptr[c], behind.pair_indptr[c + 1]):
                if behind.pair_groups[j] == group:
                    credit += behind.pair_users[j] / behind.users[c]
    out[TIES] = ties
    out[RIGHT] = 1.0 if fits[right] else 0.0
    out[GROUP] = credit / ties if ties else 0.0
    out[BEST] = first


@njit(nogil=True, cache=True)
def settle_scores(score: np.ndarray, fits: np.ndarray, right: int, group: int, behind: Behind, out: np.ndarray) -> None:
    """Settle on the candidates with the best score, float64[c], which `fits` bool[c] then marks; STANDS_OUT is its
    eccentricity, 0 where several have it: a single candidate stands out from nobody.
    """
    n = len(score)
    best, total = 0.0, 0.0
    for c in range(n):
        best = max(best, score[c])
        total += score[c]
    mean, squares, second, leaders = total / n, 0.0, 0.0, 0
    for c in range(n):
        squares += (score[c] - mean) ** 2
        fits[c] = score[c] >= best - _ALIKE * best
        if fits[c]:
            leaders += 1
        else:
            second = max(second, score[c])
    settle(fits, right, group, behind, out)
    out[STANDS_OUT] = (best - second) / np.sqrt(squares / n) if leaders == 1 and n > 1 else 0.0


@njit(nogil=True, cache=True)
def fit_candidates(
    low: np.ndarray,
    high: np.ndarray,
    places: np.ndarray,
    ratings: np.ndarray,
    weights: np.ndarray,
    unit: float,
    width: float,
    tolerance: float,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Look for targets start..end among c candidates; write out[t, rule, field], float64[t, 4, 5].

    low, high float32[i, c]: what the candidates show, NaN where nothing. places int32[t, m]: rows of them, of the items
    known; ratings float32[t, m]. weights float64[i]. unit: what a gap is multiplied by within the exponential. width:
    of the scale. right int32[t]: the target's candidate. groups int32[t]: the target's group. For the rest see
    `settle`. STANDS_OUT is the eccentricity for SCORING, else 1 where a single candidate fits. O(m c) for each target.
    """
    n = low.shape[1]
    m = places.shape[1]
    score, gaps, shown, agree = np.empty(n), np.empty(n), np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    fits = np.empty(n, dtype=np.bool_)
    for t in range(start, end):
        score[:], gaps[:], shown[:], agree[:] = 0.0, 0.0, 0, 0
        for j in range(m):
            place = places[t, j]
            rating, weight = np.float64(ratings[t, j]), weights[place]
            for c in range(n):
                lowest, highest = np.float64(low[place, c]), np.float64(high[place, c])
                if np.isnan(lowest):
                    gaps[c] += width
                    continue
                gap = mean_gap(rating, lowest, highest)
                gaps[c] += gap
                score[c] += weight * np.exp(-gap * unit / DECAY)
                shown[c] += 1
                if lowest - tolerance - _HAIR <= rating <= highest + tolerance + _HAIR:
                    agree[c] += 1

        settle_scores(score, fits, right[t], groups[t], behind, out[t, SCORING])
        least = gaps.min()
        for c in range(n):
            fits[c] = gaps[c] <= least + _ALIKE * max(least, 1.0)
        settle(fits, right[t], groups[t], behind, out[t, DISTANCE])
        for c in range(n):
            fits[c] = shown[c] == m
        settle(fits, right[t], groups[t], behind, out[t, STRUCTURE])
        for c in range(n):
            fits[c] = agree[c] == m
        settle(fits, right[t], groups[t], behind, out[t, LABEL])
        for rule in range(DISTANCE, LABEL + 1):
            out[t, rule, STANDS_OUT] = 1.0 if out[t, rule, TIES] == 1 else 0.0
