"""Tables of artifacts: one row a user, one column an artifact, a missing number where it was not rated
(Riyana and Natwichai 2018, section 3.1).

What k-Likeness, k-Member and Mondrian share: the checks, the meaning of "not rated", and compact codes. Not
rated counts as 0 among numbers, which is the reading that reproduces the paper's tables 2 and 3; in a
categorical column it is a category of its own.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from kgather._errors import InputError
from kgather.udfs._shared.options import whole

_LARGEST = 1e100  # sums of differences stay finite
_LARGEST_WHOLE = 1 << 53  # beyond it neighbouring whole numbers become one float
_GRIDS = (1, 2, 4, 10, 20, 100)  # steps of rating scales: 1, 1/2, 1/4, 1/10, 1/20, 1/100
_ROOM = 16_000  # the largest distance in int16: twice as much must fit, see CodedRows.far


@dataclass(frozen=True)
class Artifacts:
    """A checked table: values float64[n, a] (C order, finite), categorical bool[a], and k as int, k <= n.

    Categorical columns hold dense codes 0..m-1 in the order of the numbers given, not rated last.
    """

    values: np.ndarray
    categorical: np.ndarray
    k: int


def checked_artifacts(table: np.ndarray, k: object, categorical: np.ndarray | None = None) -> Artifacts:
    """The table with its columns coded; the table given is left alone.

    table: real numbers[n, a], NaN where not rated. categorical: bool[a], the columns whose numbers are codes
    of categories (None: no column). O(n a), and O(n log n) for every categorical column.

    Raises InputError if k is no whole number >= 1, there are fewer than k users, the table is no
    two-dimensional table of real numbers with at least one column, `categorical` does not say one truth value
    for each column, or a value is infinite or too large (1e100; 2^53 in tables of whole numbers).
    """
    least = whole("k", k, 1)
    table = np.asarray(table)
    if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in "fiub":
        shape = "x".join(str(side) for side in table.shape)
        msg = f"the artifact table must be numbers in rows of at least one column, not {table.dtype} {shape}."
        raise InputError(msg)
    n, a = table.shape
    if n < least:
        msg = f"{n} users are too few for groups of at least {least}."
        raise InputError(msg)
    columns = np.zeros(a, dtype=bool) if categorical is None else np.asarray(categorical)
    if columns.shape != (a,) or columns.dtype != bool:
        msg = f"categorical must say true or false for each of the {a} columns of the artifact table."
        raise InputError(msg)
    limit = _LARGEST if table.dtype.kind == "f" else _LARGEST_WHOLE
    values = np.array(table, dtype=np.float64, order="C")
    bad = int((np.abs(values) > limit).any(axis=1).sum())
    if bad:
        msg = f"{bad} of {n} rows of the artifact table hold a value that is infinite or beyond {limit:g}."
        raise InputError(msg)
    for j in np.flatnonzero(columns):
        values[:, j] = np.unique(values[:, j], return_inverse=True)[1]
    values[np.isnan(values)] = 0.0
    values += 0.0  # there is one zero
    return Artifacts(values, columns.copy(), least)


@dataclass(frozen=True)
class CodedRows:
    """The distinct rows of a table, coded so that distances are sums of differences of whole numbers.

    The distance of two rows is the sum of |x - y| over numeric columns, plus `unit` for each categorical
    column in which they differ; all of it exact. Rows are in rising order of the sum of their numbers, equal
    sums in the order of the columns' values: an order that does not depend on how the users were listed.

    columns: int16[a, m], or whole numbers in float64[a, m] where they need more room. totals: [m], the sums
    that the rows are ordered by; two rows are never nearer than the difference of their totals. far: more than
    any distance, and still so after subtracting one. order: int64[n], the users row by row; those of row i
    stand at starts[i]:starts[i + 1]. unit and far are of the columns' type.
    """

    columns: np.ndarray
    totals: np.ndarray
    categorical: np.ndarray
    unit: Any
    far: Any
    order: np.ndarray
    starts: np.ndarray


def coded_rows(artifacts: Artifacts, *, by_width: bool) -> CodedRows:
    """The distinct rows. `by_width` divides every numeric column by its largest difference (a constant column
    then counts for nothing).

    Numbers on a common grid (whole, half, tenths ...) are coded as they are where int16 has the room. Others are
    rounded to multiples of about 2^-52 of the largest distance there can be. O(a n log n).
    """
    columns = _on_their_grid(artifacts, by_width)
    if columns is None:
        columns = _on_a_fine_grid(artifacts, by_width)
    coded, unit, far = columns
    totals = coded[~artifacts.categorical].sum(axis=0, dtype=coded.dtype)
    order = np.lexsort((*coded[::-1], totals))
    coded = coded[:, order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (coded[:, 1:] != coded[:, :-1]).any(axis=0)
    rows = np.flatnonzero(first)
    return CodedRows(
        np.ascontiguousarray(coded[:, rows]),
        totals[order[rows]],
        artifacts.categorical,
        unit,
        far,
        order.astype(np.int64),
        np.append(rows, len(order)).astype(np.int64),
    )


_Coded = tuple[np.ndarray, Any, Any]  # columns, unit, far


def _on_their_grid(artifacts: Artifacts, by_width: bool) -> _Coded | None:
    """Columns int16[a, n] in which nothing is rounded, if there are such."""
    values, numeric = artifacts.values, ~artifacts.categorical
    numbers = values[:, numeric]
    lowest, highest = numbers.min(axis=0), numbers.max(axis=0)
    # a glance at the ranges first: most tables that do not fit are told here
    if (highest - lowest).sum() > _ROOM or values[:, ~numeric].max(initial=0.0) > _ROOM:
        return None
    for grid in _GRIDS:
        steps = np.rint(numbers * grid)
        if (steps / grid == numbers).all():
            break
    else:
        return None
    steps -= steps.min(axis=0)
    width = [int(step) for step in steps.max(axis=0)]
    unit = math.lcm(*(step for step in width if step)) if by_width else grid
    factor = [unit // step if step else 1 for step in width] if by_width else [1] * len(width)
    reach = sum(step * times for step, times in zip(width, factor, strict=True))
    if reach + unit * int((~numeric).sum()) > _ROOM:
        return None
    columns = np.empty(values.T.shape, dtype=np.int16)
    columns[numeric] = (steps * np.array(factor)).T
    columns[~numeric] = values[:, ~numeric].T
    return columns, np.int16(unit), np.int16(np.iinfo(np.int16).max)


def _on_a_fine_grid(artifacts: Artifacts, by_width: bool) -> _Coded:
    """Whole numbers as float64[a, n], whose sums stay below 2^53 and so are exact too."""
    columns = np.ascontiguousarray(artifacts.values.T)
    numeric = ~artifacts.categorical
    numbers = columns[numeric]
    numbers -= numbers.min(axis=1, keepdims=True)
    width = numbers.max(axis=1, keepdims=True)
    if by_width:
        numbers /= np.where(width > 0, width, 1.0)
        width = (width > 0).astype(np.float64)
    reach = float(width.sum()) + int((~numeric).sum())
    scale = 2.0 ** (51 - math.frexp(max(reach, 1e-290))[1])
    columns[numeric] = np.rint(numbers * scale)
    return columns, np.float64(max(np.rint(scale), 1.0)), np.float64(np.inf)


@njit(nogil=True, cache=True)
def distances(
    columns: np.ndarray,
    categorical: np.ndarray,
    unit: float,
    point: np.ndarray,
    lo: int,
    hi: int,
    out: np.ndarray,
) -> None:
    """out[: hi - lo] = the distances of the rows lo:hi to the point; point and out of the columns' type.

    O(a (hi - lo)); columns are scanned one after the other, so that the loop works on many rows at once.
    """
    for i in range(hi - lo):
        out[i] = 0
    for j in range(columns.shape[0]):
        value = point[j]
        column = columns[j, lo:hi]
        if categorical[j]:
            for i in range(hi - lo):
                if column[i] != value:
                    out[i] += unit
        else:
            for i in range(hi - lo):
                out[i] += max(column[i], value) - min(column[i], value)


@njit(nogil=True, cache=True)
def keep_rows(columns: np.ndarray, aside: np.ndarray, left: np.ndarray, following: np.ndarray, lo: int, hi: int) -> int:
    """Moves the rows of lo:hi that still have users to the front, in order; returns how many there are.

    aside[m] is moved along, and so are left int64[m], the users left of each row, and following int64[m], the
    place of the first of them.
    """
    kept = 0
    for i in range(lo, hi):
        if left[i] > 0:
            for j in range(columns.shape[0]):
                columns[j, kept] = columns[j, i]
            aside[kept] = aside[i]
            left[kept] = left[i]
            following[kept] = following[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def take(row: int, count: int, group: int, left: np.ndarray, following: np.ndarray, placed: np.ndarray) -> int:
    """Puts the next `count` users of the row in the group; returns 1 if the row has none left, else 0.

    placed int32[n] holds the group of every user, row after row; left and following as in `keep_rows`.
    """
    for at in range(following[row], following[row] + count):
        placed[at] = group
    following[row] += count
    left[row] -= count
    return 1 if left[row] == 0 else 0
