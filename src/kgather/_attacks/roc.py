"""How well a number tells two kinds of cases apart, whatever threshold is taken."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Curve:
    """The receiver operating characteristic of a number that is larger for the first kind.

    false, true float64[c]: shares of the others and of the first kind that reach a level; both fall, from 1. levels
    float64[c], ascending. auc: how often a case of the first kind has the larger number, ties counting half.
    """

    false: NDArray[np.float64]
    true: NDArray[np.float64]
    levels: NDArray[np.float64]
    auc: float

    @classmethod
    def of(cls, first: NDArray[np.float64], others: NDArray[np.float64]) -> Self:
        """O(n log n)."""
        levels = np.unique(np.concatenate([first, others]))
        true = 1 - np.searchsorted(np.sort(first), levels, side="left") / len(first)
        false = 1 - np.searchsorted(np.sort(others), levels, side="left") / len(others)
        return cls(false, true, levels, auc(first, others))

    @property
    def advantage(self) -> float:
        """The largest difference of the two shares; at least 0."""
        return max(0.0, float((self.true - self.false).max(initial=0.0)))

    @property
    def level(self) -> float:
        """From which number on the difference is largest."""
        return float(self.levels[np.argmax(self.true - self.false)])

    def true_at(self, false: float) -> float:
        """The largest share of the first kind that is found while at most so many of the others are."""
        return float(self.true[self.false <= false].max(initial=0.0))


def auc(first: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """How often a case of the first kind has the larger number, ties counting half; NaN where a kind has no case."""
    if len(first) == 0 or len(others) == 0:
        return math.nan
    ordered = np.sort(others)
    below = np.searchsorted(ordered, first, side="left") + np.searchsorted(ordered, first, side="right")
    return float(below.mean() / (2 * len(others)))


def auc_among_alike(gap: NDArray[np.float64], own: NDArray[np.bool_], raters: NDArray[np.int64]) -> float:
    """How often one of a person's items has the larger number than another item of about as many raters (a factor of
    two), NaN where there is no such pair. gap float64[m], own bool[m], raters int64[m].
    """
    strata = np.floor(np.log2(np.maximum(raters, 1))).astype(np.int64)
    total, weight = 0.0, 0
    for stratum in np.unique(strata[own]):
        here = strata == stratum
        inside, outside = gap[here & own], gap[here & ~own]
        if len(outside):
            total += auc(inside, outside) * len(inside)
            weight += len(inside)
    return total / weight if weight else math.nan


def normal_auc(distance: float) -> float:
    """The AUC of the best test between two normal distributions that lie so many standard deviations apart."""
    return 0.5 * (1.0 + math.erf(distance / 2.0))
