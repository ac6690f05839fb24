"""Numbers as codes: cuts that were declared, or found at round numbers."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._recoding.lines import Coded, binned
from kgather._settings.table import QuasiIdentifier

_EXACT = 2.0**53  # whole numbers beyond are not told apart
_DIGITS = 15  # of a decimal number; more are not told apart
_LEAST = 1e-300  # steps below are none: a share of them may be 0
_WANTED = 20  # bins of a number whose cuts nobody said
_TAIL = 0.01  # share of rows beyond the outer cuts of such a number
_ROUND = 5  # outer cuts lie on multiples of so many steps


def number(
    name: str, asked: QuasiIdentifier, kind: str, values: Sequence[str | None], rows: NDArray[np.int64], k: int
) -> Coded:
    """A column of numbers; arguments and errors as in `columns.coded`."""
    numbers = np.array([math.nan if value is None else float(value) for value in values])
    if np.isinf(numbers).any():
        msg = f"column '{name}' has infinite numbers, which lie in no range. Make them null or a number."
        raise InputError(msg)
    present = numbers[~np.isnan(numbers)]
    if len(present) and np.abs(present).max() >= _EXACT and "INT" in kind:
        msg = f"column '{name}' has whole numbers beyond 2^53. Give it kind prefix or category, or divide them."
        raise InputError(msg)
    if "DECIMAL" in kind and any(len(value.strip("-0.").replace(".", "")) > _DIGITS for value in values if value):
        msg = (
            f"column '{name}' has numbers of more than {_DIGITS} digits, which are not told apart. Cast it to "
            "DOUBLE, or round it."
        )
        raise InputError(msg)
    whole = bool("INT" in kind or (present == np.floor(present)).all()) and "DECIMAL" not in kind
    weight = rows[~np.isnan(numbers)]
    if asked.cuts is not None:
        cuts = np.array(asked.cuts, dtype=np.float64)
        said = "number with cuts of its own"
    elif asked.step is not None:
        if isinstance(asked.step, str):
            msg = f"step of column '{name}' is a number, not {asked.step}."
            raise InputError(msg)
        cuts = _occupied(name, present, float(asked.step))
        said = f"number with cuts every {asked.step:g}"
    else:
        cuts, step = _sensible(present, weight, k, whole=whole)
        if asked.widest is not None:  # ranges that are open at one end are as wide as can be
            if 0 < asked.widest < step:
                step = max(_up_to(asked.widest), 1.0 if whole else 0.0)
            cuts = _occupied(name, present, step)
        said = f"number with cuts every {step:g}, found by the spread of the values"
    return binned(name, numbers, weight, cuts, asked, said, written, unit=1.0 if whole else None)


def written(value: float) -> str:
    """A number as it is shown: a text that is exactly this number."""
    value = float(value)
    return str(int(value)) if abs(value) < _EXACT and value == int(value) else repr(value)


def nice(rough: float) -> float:
    """The least of 1, 2, 5, 10, ... times a power of ten that is not below a number."""
    rough = max(rough, _LEAST)
    scale = 10.0 ** math.floor(math.log10(rough))
    return next((each * scale for each in (1, 2, 5) if each * scale >= rough * (1 - 1e-9)), 10 * scale)


def _up_to(most: float) -> float:
    """The greatest of 1, 2, 5, 10, ... times a power of ten that is not above a number above 0."""
    scale = 10.0 ** math.floor(math.log10(most))
    return next(each * scale for each in (5, 2, 1) if each * scale <= most * (1 + 1e-9))


def _occupied(name: str, present: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """The cuts at multiples of the step on both sides of every value."""
    with np.errstate(over="ignore"):
        below = np.unique(np.floor(present / step))
    if len(below) and np.abs(below).max() >= _EXACT:
        msg = f"step {step:g} of column '{name}' is too small for its values: give a larger step."
        raise InputError(msg)
    if len(below) == 0:
        return np.array([0.0, step])
    # One more on both sides, where a quotient was rounded over its cut.
    return _as_shown(np.unique(np.concatenate([below - 1, below, below + 1, below + 2])) * step)


def _sensible(
    present: NDArray[np.float64], weight: NDArray[np.int64], k: int, *, whole: bool
) -> tuple[NDArray[np.float64], float]:
    """Cuts at round numbers around those that at least k rows lie below and above.

    How far apart they are hangs on the distance between two ranks, which k rows or more lie beyond, and on no more of
    it than its size to the next of 1, 2, 5, 10, ... The outer cuts lie on multiples of five such steps, so that they
    are nobody's value: where steps are 1, the first cut would else be the value at that rank.
    """
    if len(present) == 0:
        return np.array([0.0, 1.0]), 1.0
    order = np.argsort(present, kind="stable")
    present, weight = present[order], weight[order]
    upto = np.cumsum(weight)
    beyond = max(k, int(_TAIL * upto[-1]))
    low = present[min(int(np.searchsorted(upto, beyond)), len(present) - 1)]
    high = present[max(int(np.searchsorted(upto, upto[-1] - beyond)), 0)]
    # Half of it, as all of it may be beyond the largest number. Of few rows `low` may be the higher one.
    spread = abs(high / 2 - low / 2)
    step = 1.0 if spread <= 0 else nice(max(spread / (_WANTED / 2), 1.0 if whole else 0.0))
    coarse = _ROUND * step
    if np.isfinite(coarse) and max(abs(low), abs(high)) / coarse < _EXACT / (2 * _ROUND):
        first = math.floor(min(low, high) / coarse) * _ROUND
        last = math.floor(max(low, high) / coarse) * _ROUND + _ROUND
        return _as_shown(np.arange(first, last + 1) * step), step
    # Too far from 0 for its spread: only the size of the numbers is told.
    size = float(nice(max(abs(low), abs(high))))
    return np.array([-size, 0.0, size]) if np.isfinite(size) else np.array([0.0]), size


def _as_shown(cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cuts with the digits that people write, 0.3 for 3 times 0.1: what is shown is what decides."""
    return np.unique([cut if cut == np.floor(cut) else float(f"{cut:.15g}") for cut in cuts.tolist()])
