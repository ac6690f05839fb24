"""Atoms: sets of rows of at least k people that answers are made of. What is asked cuts them; none gets too small.

Rows are numbered as they lie, the rows of one unit beside each other. An outcome says what a question means for a row:
0 that it is not asked for, 1 that this is unknown, 2, 3, ... the group that it falls into. An atom all of whose rows
have one outcome is pure, others are mixed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, mix

T = TypeVar("T")

_MOST = np.iinfo(np.int32).max
_A_PART = 1 << 20  # rows that are not worth a second thread
_DENSE = 1 << 26  # pieces counted in a table without sorting
_MARK = 4  # what a key is for: part of the ledger's format


@dataclass(frozen=True)
class Pieces:
    """The parts into which outcomes cut atoms, in the order of atoms and outcomes.

    atom int32[p], outcome int32[p], rows int64[p], units int64[p] (distinct), of_row int64[n] (the piece of each row).
    """

    atom: NDArray[np.int32]
    outcome: NDArray[np.int32]
    rows: NDArray[np.int64]
    units: NDArray[np.int64]
    of_row: NDArray[np.int64]


def cut_into_pieces(atom: NDArray[np.int32], outcome: NDArray[np.int8 | np.int32], unit: NDArray[np.int32]) -> Pieces:
    """Find the pieces. atom, outcome, unit: int32[n], the rows of a unit beside each other. O(n), or O(n log n)."""
    outcomes = int(outcome.max(initial=0)) + 1
    span = (int(atom.max(initial=-1)) + 1) * outcomes
    if span <= _DENSE:
        rows, units = _count_pieces(atom, outcome, unit, outcomes, span)
        found = np.flatnonzero(rows)
        rows, units = rows[found], units[found]
        place = np.zeros(span, dtype=np.int64)
        place[found] = np.arange(len(found))
        of_row = _places(atom, outcome, outcomes, place)
    else:
        keys = atom.astype(np.int64) * outcomes + outcome
        found = np.unique(keys)
        of_row = np.searchsorted(found, keys)
        rows, units = np.bincount(of_row, minlength=len(found)), count_units(of_row, unit, len(found))
    return Pieces((found // outcomes).astype(np.int32), (found % outcomes).astype(np.int32), rows, units, of_row)


@njit(nogil=True, cache=True)
def _count_pieces(
    atom: NDArray[np.int32], outcome: NDArray[np.int8 | np.int32], unit: NDArray[np.int32], outcomes: int, span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, units = np.zeros(span, dtype=np.int64), np.zeros(span, dtype=np.int64)
    last = np.full(span, -1, dtype=np.int32)
    for row in range(len(atom)):
        own = np.int64(atom[row]) * outcomes + outcome[row]
        rows[own] += 1
        if last[own] != unit[row]:
            last[own] = unit[row]
            units[own] += 1
    return rows, units


@njit(nogil=True, cache=True)
def _places(
    atom: NDArray[np.int32], outcome: NDArray[np.int8 | np.int32], outcomes: int, place: NDArray[np.int64]
) -> NDArray[np.int64]:
    found = np.empty(len(atom), dtype=np.int64)
    for row in range(len(atom)):
        found[row] = place[np.int64(atom[row]) * outcomes + outcome[row]]
    return found


@dataclass(frozen=True)
class Spread:
    """How outcomes spread over atoms.

    low, high int32[a]: the least and the greatest outcome of each atom. mixed int64[m]: atoms with several; places
    int64[r], rows int32[r], unit int32[r]: their rows, and where these stand among all, atom by atom; pieces: of these,
    with atoms numbered as in `mixed`.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    mixed: NDArray[np.int64]
    places: NDArray[np.int64]
    rows: NDArray[np.int32]
    unit: NDArray[np.int32]
    pieces: Pieces

    @property
    def group(self) -> NDArray[np.int32]:
        """The group that each atom counts for, int32[a]: 0 that it is not asked for, else 1 + the number of the group.
        Only where none is undecided."""
        return np.maximum(self.low - 1, 0)

    @property
    def undecided(self) -> bool:
        """Whether an atom has rows of several groups, or some that are asked for beside others that are not: that
        something is false or unknown is the same."""
        return bool((np.maximum(self.low, 1) < np.maximum(self.high, 1)).any())


def spread(
    atom: NDArray[np.int32],
    outcome: NDArray[np.int8 | np.int32],
    unit: NDArray[np.int32],
    order: NDArray[np.int32],
    start: NDArray[np.int64],
) -> Spread:
    """Find how outcomes spread. atom, unit: int32[n]; outcome int8[n] or int32[n]. order int32[n]: rows, atom by atom;
    start int64[a + 1]: where each begins in it. O(n), of which most is one comparison a row."""
    parts, n_atoms = _parts(len(atom)), len(start) - 1
    ends = [(np.full(n_atoms, _MOST, dtype=np.int32), np.full(n_atoms, -1, dtype=np.int32)) for _ in parts]
    run(lambda part: _ends(atom[parts[part]], outcome[parts[part]], *ends[part]), len(parts))
    low, high = (reduce(best, of) for best, of in zip((np.minimum, np.maximum), zip(*ends, strict=True), strict=True))
    mixed = np.flatnonzero(low < high)
    sizes = start[mixed + 1] - start[mixed]
    number = np.repeat(np.arange(len(mixed), dtype=np.int32), sizes)
    places = np.arange(len(number)) + np.repeat(start[mixed] - (np.cumsum(sizes) - sizes), sizes)
    rows = order[places]
    own = unit[rows]
    return Spread(low, high, mixed, places, rows, own, cut_into_pieces(number, outcome[rows], own))


@njit(nogil=True, cache=True)
def rows_by_atom(atom: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """Rows, atom by atom, ascending in each, int32[n]. start int64[a + 1]. O(n)."""
    order = np.empty(len(atom), dtype=np.int32)
    place = start.copy()
    for row in range(len(atom)):
        own = atom[row]
        order[place[own]] = row
        place[own] += 1
    return order


def _parts(n: int) -> list[slice]:
    """Halves of many rows, one for each thread."""
    middle = n // 2 if n > _A_PART else n
    return [slice(0, middle), slice(middle, n)] if middle < n else [slice(0, n)]


def run(step: Callable[[int], T], parts: int) -> list[T]:
    """The step of each part, at the same time."""
    if parts == 1:
        return [step(0)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(step, range(parts)))


@njit(nogil=True, cache=True)
def _ends(
    atom: NDArray[np.int32], outcome: NDArray[np.int8 | np.int32], low: NDArray[np.int32], high: NDArray[np.int32]
) -> None:
    for row in range(len(atom)):
        own, found = atom[row], outcome[row]
        if found < low[own]:
            low[own] = found
        if found > high[own]:
            high[own] = found


@njit(nogil=True, cache=True)
def tally(
    atom: NDArray[np.int32], unit: NDArray[np.int32], values: NDArray[np.float64], n_atoms: int, origin: float
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]:
    """Of each atom the number of cells, of units with one, the sums of cells and of their squares around `origin`, the
    least and the greatest. values float64[n], NaN where there is none."""
    count, units = np.zeros(n_atoms, dtype=np.int64), np.zeros(n_atoms, dtype=np.int64)
    first, second = np.zeros(n_atoms), np.zeros(n_atoms)
    low, high = np.full(n_atoms, np.inf), np.full(n_atoms, -np.inf)
    last = np.full(n_atoms, -1, dtype=np.int32)
    for row in range(len(atom)):
        value = values[row]
        if np.isnan(value):
            continue
        own = atom[row]
        count[own] += 1
        if last[own] != unit[row]:
            last[own] = unit[row]
            units[own] += 1
        first[own] += value - origin
        second[own] += (value - origin) ** 2
        low[own] = min(low[own], value)
        high[own] = max(high[own], value)
    return count, units, first, second, low, high


@njit(nogil=True, cache=True)
def count_units(part: NDArray[np.int32 | np.int64], unit: NDArray[np.int32], parts: int) -> NDArray[np.int64]:
    """How many distinct units each part has, int64[parts]; a part below 0 is none. The rows of a unit lie together."""
    counts = np.zeros(parts, dtype=np.int64)
    last = np.full(parts, -1, dtype=np.int64)
    for row in range(len(part)):
        own = part[row]
        if own >= 0 and last[own] != unit[row]:
            last[own] = unit[row]
            counts[own] += 1
    return counts


@njit(nogil=True, cache=True)
def count_units_with_cells(
    atom: NDArray[np.int32],
    part_of_atom: NDArray[np.int64],
    unit: NDArray[np.int32],
    values: NDArray[np.float64],
    parts: int,
) -> NDArray[np.int64]:
    """How many distinct units with a cell each part has, int64[parts]. A part is of whole atoms; one below 0 is none.
    values float64[n], NaN where there is no cell."""
    counts = np.zeros(parts, dtype=np.int64)
    last = np.full(parts, -1, dtype=np.int32)
    for row in range(len(atom)):
        own = part_of_atom[atom[row]]
        if own >= 0 and last[own] != unit[row] and not np.isnan(values[row]):
            last[own] = unit[row]
            counts[own] += 1
    return counts


@njit(nogil=True, cache=True)
def marks(part: NDArray[np.int32 | np.int64], values: NDArray[np.float64], parts: int) -> NDArray[np.int64]:
    """What the values of each part add up to as hashes, int64[parts] below -1: another if a value comes, goes or
    changes. values float64[n], NaN where there is none."""
    sums = np.zeros(parts, dtype=np.uint64)
    bits = values.view(np.uint64)
    for row in range(len(part)):
        if not np.isnan(values[row]):
            sums[part[row]] += mix(bits[row])
    found = np.empty(parts, dtype=np.int64)
    for at in range(parts):
        found[at] = -2 - np.int64(sums[at] >> np.uint64(2))
    return found


@njit(nogil=True, cache=True)
def mark_keys(seed: np.uint64, names: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Keys that marks of atoms are kept by, uint64[a]. seed: of the column. names int64[a]."""
    found = np.empty(len(names), dtype=np.uint64)
    for at in range(len(names)):
        found[at] = keyed(seed, _MARK, names[at])
    return found


def split(pieces: Pieces, unit: NDArray[np.int32], n_atoms: int, k: int) -> NDArray[np.int64]:
    """Which pieces go together, int64[p]: numbers of new atoms, from 0, in the order of the old ones.

    A piece with k units becomes an atom. The other pieces of an old atom become one together, if they have k units;
    otherwise they stay with the largest of the former.
    """
    big = pieces.units >= k
    bigs = np.bincount(pieces.atom[big], minlength=n_atoms)
    # The small pieces of each atom, together.
    small_of = np.where(big, -1, pieces.atom).astype(np.int64)
    together = count_units(small_of[pieces.of_row], unit, n_atoms)
    stands = (together >= k) & (bigs > 0)
    label = np.arange(len(pieces.atom))
    first = np.full(n_atoms, -1)
    small = np.flatnonzero(~big)
    first[pieces.atom[small[::-1]]] = small[::-1]
    # Of the large pieces of each atom, the largest; of equals the first.
    largest = np.full(n_atoms, -1)
    order = np.lexsort((-np.arange(len(label)), pieces.units))
    order = order[big[order]]
    largest[pieces.atom[order]] = order
    anchor = np.where(stands | (bigs == 0), first, largest)
    label[small] = anchor[pieces.atom[small]]
    return np.unique(label, return_inverse=True)[1].reshape(-1)
