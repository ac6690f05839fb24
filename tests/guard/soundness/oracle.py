"""An oracle of the guard's guarantee that knows nothing of the guard: it imports nothing of it.

An answer is a sum over base cells (row x column) with weights. Cells of a column that had the same weight in every
answer ever given can be exchanged without changing anything that was said; every such group has to hold cells of at
least k distinct users.

Weights are read out of the answers themselves. A column whose i-th cell is 1 and whose others are 0 gives the weight of
cell i as its sum; a column whose i-th cell is 2**i gives all weights that are 0 or 1 at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

BITS = 40
"""Cells that one column of powers of two carries: their sums are exact in DOUBLE, with room for rounding."""

_DIGITS = 6  # weights are ratios of numbers of rows; they are told apart to so many digits


def powers(count: int) -> np.ndarray:
    """Values of columns that carry all cells, float64[ceil(count / BITS), count]; 0 for cells of another column."""
    values = np.zeros((-(-count // BITS), count))
    for cell in range(count):
        values[cell // BITS, cell] = 2.0 ** (cell % BITS)
    return values


def decoded(sums: Sequence[float | None], count: int) -> np.ndarray:
    """Weights from the sums of the columns of `powers`, float64[count]; a sum that is missing told of nothing.

    Raises ValueError where a sum is not one of cells taken once.
    """
    weights = np.zeros(count)
    for at, total in enumerate(sums):
        if total is None:
            continue
        whole = round(total)
        cells = range(at * BITS, min(count, (at + 1) * BITS))
        if abs(total - whole) > 0.01 or not 0 <= whole < 2 ** len(cells):
            msg = f"{total!r} is no sum of cells taken once"
            raise ValueError(msg)
        for place, cell in enumerate(cells):
            weights[cell] = whole >> place & 1
    return weights


@dataclass
class Oracle:
    """What was told of each column. users: of each column, the user of each cell."""

    k: int
    users: Mapping[str, Sequence[int]]
    told: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def hear(self, column: str, weights: Iterable[float] | None) -> None:
        """One answer: the weight of each cell of a column; None where they are not known."""
        if weights is None:
            return
        found = np.asarray(list(weights), dtype=np.float64)
        if found.shape != (len(self.users[column]),):
            msg = f"{column} has {len(self.users[column])} cells, not {len(found)}"
            raise ValueError(msg)
        self.told.setdefault(column, []).append(np.round(found, _DIGITS))

    def groups(self, column: str) -> dict[tuple[float, ...], list[int]]:
        """The cells that cannot be told apart, by their weights in every answer."""
        answers = np.array(self.told.get(column, []))
        found: dict[tuple[float, ...], list[int]] = {}
        for cell in range(len(self.users[column])):
            found.setdefault(tuple(answers[:, cell]) if len(answers) else (), []).append(cell)
        return found

    def singled_out(self, column: str, *, untold_too: bool = True) -> list[list[int]]:
        """Groups of cells of fewer than k distinct users. untold_too: also of cells that no answer was about: they
        count where it is known what all cells are."""
        return [
            cells
            for weights, cells in self.groups(column).items()
            if len({self.users[column][cell] for cell in cells}) < self.k and (untold_too or any(weights))
        ]

    def check(self, *, untold_too: bool = True) -> None:
        """Assert the guarantee of every column."""
        for column in self.told:
            small = self.singled_out(column, untold_too=untold_too)
            assert not small, (
                f"{column}: cells {small[0]} are told apart from all others after {len(self.told[column])}"
            )
