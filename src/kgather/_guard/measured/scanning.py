"""Sums over people of many margins in one pass: the engine streams everybody's classes, which are added up.

What is kept is a batch of people and the cells of the margins, however many people there are and whatever values they
have. A margin is exact, and the same whatever is summed up beside it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import Feature

BATCH = 60_000
"""People in a batch: their classes by a dozen features fit into a processor's cache."""
_COLUMNS = 24  # features and arguments that one pass reads
_CELLS = 4_000_000  # that one pass sums up in

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Margin:
    """What is summed up in the cells of some features: people, or with an argument and its bounds the distances of its
    values from their middle, and how many values there are."""

    features: tuple[Feature, ...]
    domains: tuple[Domain, ...]
    argument: Feature | None = None
    bounds: Bounds | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of its numbers: with an argument, sum and count are the last axis."""
        sizes = tuple(domain.size for domain in self.domains)
        return sizes if self.argument is None else (*sizes, 2)

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return math.prod(domain.size for domain in self.domains)

    @property
    def classes(self) -> list[tuple[Feature, Domain]]:
        """Its features with their classes."""
        return list(zip(self.features, self.domains, strict=True))

    @property
    def value(self) -> tuple[Feature, Bounds] | None:
        """Its argument with its bounds."""
        return None if self.argument is None or self.bounds is None else (self.argument, self.bounds)


@dataclass(frozen=True)
class Pass:
    """Margins that are summed up together. columns: features and their classes, each once; arguments likewise."""

    margins: tuple[Margin, ...]
    columns: tuple[tuple[Feature, Domain], ...]
    arguments: tuple[tuple[Feature, Bounds], ...]


def passes(margins: Sequence[Margin]) -> Iterator[Pass]:
    """Margins in the passes in which they are summed up: as few as there is room for, in the order of the margins."""
    some: list[Margin] = []
    columns: dict[tuple[Feature, Domain], None] = {}
    arguments: dict[tuple[Feature, Bounds], None] = {}
    cells = 0
    for margin in margins:
        of, by = dict.fromkeys(margin.classes), dict.fromkeys([margin.value] if margin.value else [])
        more = len(columns | of) + len(arguments | by)
        if some and (more > _COLUMNS or cells + margin.cells > _CELLS):
            yield Pass(tuple(some), tuple(columns), tuple(arguments))
            some, columns, arguments, cells = [], {}, {}, 0
        some.append(margin)
        columns, arguments, cells = columns | of, arguments | by, cells + margin.cells
    if some:
        yield Pass(tuple(some), tuple(columns), tuple(arguments))


def summed(of: Pass, batches: Iterable[pa.RecordBatch]) -> list[Whole]:
    """The numbers of each margin, int64[*shape]. batches: of people, with a column of classes for each of `of.columns`,
    and two for each of `of.arguments`: the distance, and whether there is a value, 1 or 0.

    O(people x margins), in the memory of the cells and a batch.
    """
    found = [np.zeros((margin.cells, 1 if margin.value is None else 2), dtype=np.int64) for margin in of.margins]
    places = [[of.columns.index(one) for one in margin.classes] for margin in of.margins]
    sizes = [domain.size for _, domain in of.columns]
    cells = [margin.cells for margin in of.margins]
    for batch in batches:
        columns = [column.to_numpy() for column in batch.columns]
        codes = [column.astype(np.int64) for column in columns[: len(sizes)]]
        for margin, place, many, numbers in zip(of.margins, places, cells, found, strict=True):
            cell = np.zeros(batch.num_rows, dtype=np.int64) if not place else codes[place[0]]
            for at in place[1:]:
                cell = cell * sizes[at] + codes[at]
            if margin.value is None:
                numbers[:, 0] += np.bincount(cell, minlength=many)
                continue
            first = len(sizes) + 2 * of.arguments.index(margin.value)
            for channel in range(2):
                # In a batch, sums of whole numbers up to FINE are exact as doubles.
                total = np.bincount(cell, columns[first + channel], minlength=many)
                numbers[:, channel] += total.astype(np.int64)
    return [numbers.reshape(margin.shape) for margin, numbers in zip(of.margins, found, strict=True)]
