"""Scores of candidates whose ratings have dates (Narayanan and Shmatikov 2008, section 5, for the Netflix Prize data).

A candidate's score is the sum, over the known items that it shows, of weight x (exp(-gap / 1.5) + exp(-days / 30)).
"""

import numpy as np
from numba import njit

from kgather.udfs.attacking._scoring import DECAY, Behind, settle_scores

_DAYS = 30.0


@njit(nogil=True, cache=True)
def judge_dated(
    shown: np.ndarray,
    days: np.ndarray,
    places: np.ndarray,
    ratings: np.ndarray,
    known_days: np.ndarray,
    weights: np.ndarray,
    unit: float,
    right: np.ndarray,
    groups: np.ndarray,
    behind: Behind,
    out: np.ndarray,
    start: int,
    end: int,
) -> None:
    """Look for targets start..end; write out[t], float64[t, 5], as `scoring.settle_scores` does.

    shown, days float32[i, c]: ratings and their days, NaN where there is none. places int32[t, m], ratings and
    known_days float32[t, m]; a day that is NaN counts for nothing. For the rest see `scoring.fit_candidates`. O(m c)
    for each target.
    """
    n, m = shown.shape[1], places.shape[1]
    score, fits = np.empty(n), np.empty(n, dtype=np.bool_)
    for t in range(start, end):
        score[:] = 0.0
        for j in range(m):
            place = places[t, j]
            weight = weights[place]
            for c in range(n):
                if np.isnan(shown[place, c]):
                    continue
                score[c] += weight * np.exp(-abs(np.float64(ratings[t, j]) - shown[place, c]) * unit / DECAY)
                apart = abs(np.float64(known_days[t, j]) - days[place, c])
                if not np.isnan(apart):
                    score[c] += weight * np.exp(-apart / _DAYS)
        settle_scores(score, fits, right[t], groups[t], behind, out[t])
