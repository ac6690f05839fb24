"""Means and medians of classes that give nobody's number away.

Sources: the dominance rule and the rounding of magnitudes are those of Hundepool et al., Statistical Disclosure Control
(2012), chapter 4.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

MEAN, MEDIAN, NEITHER = 0, 1, 2
_TAIL = 0.05  # share of rows at each end whose numbers are winsorized; one row at least
_DOMINANT = 3.0  # nobody counts for more than so many times an equal share


def averages(
    starts: NDArray[np.int64], numbers: NDArray[np.float64], rows: NDArray[np.int64], k: int, *, medians: bool = False
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """What is shown of each class: (MEAN, MEDIAN or NEITHER int8[g], the average float64[g], its grain float64[g]).

    starts int64[g + 1]: where classes start in numbers float64[v], which ascend in each class, and rows int64[v], how
    often they occur. medians: no means are taken.

    A mean is of winsorized numbers: those of the lowest and the highest row (or one in twenty) are taken for the next
    to them. Its grain is their range over the number of rows, what one row can move it by. There is none in a class
    of fewer than four rows, of one number, or where one row has more than three times an equal share of the sum of
    sizes. Else the lower median is shown, if k rows or more hold it. O(v).
    """
    return _averages(starts, numbers, rows, k, medians)


@njit(nogil=True, cache=True)
def _at_rank(rows, start, end, rank):  # type: ignore[no-untyped-def]
    """Where the number of a rank, from 1, is."""
    upto = 0
    for i in range(start, end):
        upto += rows[i]
        if upto >= rank:
            return i
    return end - 1


@njit(nogil=True, cache=True)
def _averages(starts, numbers, rows, k, medians):  # type: ignore[no-untyped-def]
    g = len(starts) - 1
    kind = np.full(g, 2, np.int8)
    found, grain = np.zeros(g), np.zeros(g)
    for c in range(g):
        start, end = starts[c], starts[c + 1]
        n = 0
        for i in range(start, end):
            n += rows[i]
        if n == 0:
            continue
        tail = np.int64(np.ceil(_TAIL * n))  # one at least
        if not medians and n >= 4:
            low = numbers[_at_rank(rows, start, end, tail + 1)]
            high = numbers[_at_rank(rows, start, end, n - tail)]
            mean, size = 0.0, 0.0  # of shares of the numbers, as their sum may be beyond the largest number
            for i in range(start, end):
                number = numbers[i]
                if number < low:
                    number = low
                elif number > high:
                    number = high
                mean += number / n * rows[i]
                size += abs(number) / n * rows[i]
            largest = max(abs(low), abs(high)) / n
            if high > low and np.isfinite(high - low) and largest <= _DOMINANT / n * size:
                kind[c], found[c], grain[c] = 0, mean, (high - low) / n
                continue
        middle = _at_rank(rows, start, end, (n + 1) // 2)
        if rows[middle] >= k:
            kind[c], found[c] = 1, numbers[middle]
    return kind, found, grain
