"""What measurements cost, in one number for each privacy unit, and what that number promises.

The number is rho of zero-concentrated differential privacy (Bun and Steinke 2016), for databases that differ by all
records of one person. It adds up over measurements. Gaussian noise of standard deviation sd on numbers of which one
person moves at most `reach` in all (root of the sum of squares) costs reach^2 / (2 sd^2), and so does the discrete
Gaussian (Canonne, Kamath and Steinke 2020).
"""

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from kgather._errors import InputError

_ALPHAS = 4_000  # at which the bound is looked for
_CLOSE = 1e-6  # far more than the logarithms of numpy and of Python differ by
_STEPS = 100  # of a bisection
_NORMAL = NormalDist()


def delta_of(rho: float, epsilon: float) -> float:
    """The smallest delta for which rho is proven to give (epsilon, delta): proposition 12 of Canonne, Kamath and
    Steinke, the least over alpha of exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)."""
    if rho <= 0:
        return 0.0
    # The best alpha is near (epsilon + rho) / (2 rho); steps are even in the logarithm of alpha - 1 around it.
    middle = math.log(max((epsilon + rho) / (2 * rho) - 1, 1e-3))
    above = np.exp(middle - 6 + 12 * np.arange(_ALPHAS + 1) / _ALPHAS)
    alpha = 1 + above
    logs = above * (alpha * rho - epsilon) - np.log(above) + alpha * np.log1p(-1 / alpha)
    # numpy finds those that may be the least. What counts does not hang on how numpy was built.
    best = 0.0
    for step in np.flatnonzero(logs <= logs.min() + _CLOSE).tolist():
        best = min(best, _log_at(middle - 6 + 12 * step / _ALPHAS, rho, epsilon))
    return math.exp(best)


def _log_at(place: float, rho: float, epsilon: float) -> float:
    above = math.exp(place)
    alpha = 1 + above
    return above * (alpha * rho - epsilon) - math.log(above) + alpha * math.log1p(-1 / alpha)


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that gives (epsilon, delta), by the conversion of `delta_of`. Raises InputError for numbers that
    promise nothing."""
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        msg = f"a budget has an epsilon above 0 and a delta between 0 and 1, not {epsilon:g} and {delta:g}."
        raise InputError(msg)
    return _boundary(epsilon + 1, lambda rho: delta_of(rho, epsilon) > delta).below


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon for which rho is proven to give (epsilon, delta), by the conversion of `delta_of`."""
    if rho <= 0:
        return 0.0
    enough = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    return _boundary(enough, lambda epsilon: delta_of(rho, epsilon) <= delta).above


class _Boundary(NamedTuple):
    """Two numbers next to each other, between which a condition begins to hold."""

    below: float
    above: float


def _boundary(most: float, holds: Callable[[float], bool]) -> _Boundary:
    """Where a condition begins to hold that holds from some number on, by halving what is between 0 and most."""
    low, high = 0.0, most
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return _Boundary(low, high)


def charge(reach: float, sd: float) -> float:
    """What one measurement costs, as rho. reach: what one person moves at most; sd: of the noise, in the same unit."""
    return reach**2 / (2 * sd**2)


def noise_for(reach: float, rho: float) -> float:
    """The standard deviation of the noise of a measurement that costs rho."""
    return reach / math.sqrt(2 * rho)


def tail(share: float) -> float:
    """How many standard deviations noise passes with this probability at most."""
    return -_NORMAL.inv_cdf(share)


def success_about_a_count(rho: float) -> float:
    """How often somebody is right who knows everybody else, has all measurements that cost rho and guesses one of two
    values of a fact that a person's record has (both moved at most by one reach); a coin is right half of the time."""
    return _NORMAL.cdf(math.sqrt(rho))


def success_about_membership(rho: float) -> float:
    """The same for whether a person is in the data at all."""
    return _NORMAL.cdf(math.sqrt(rho / 2))


def success_about_anything(rho: float) -> float:
    """The same for any two records that a person may have."""
    return _NORMAL.cdf(math.sqrt(2 * rho))
