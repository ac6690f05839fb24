"""Brings a partition that was kept together with the rows of today.

New rows are not answered about until they are rows of k units: then they form an atom of their own. An atom that lost
rows is answered about no more, unless k units or more are gone from it and as many are left: what was said before,
less what would be said now, would be what the lost ones said. So it goes for each column: cells that came in one go are
answered about if they are of k units. Cells that changed, came or went in rows that stayed are found by marks, which
are kept of each column and atom; their cluster is answered about no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kgather._guard.atoms import count_units, mark_keys, marks
from kgather._guard.ledger import Kept
from kgather._guard.partition import Column, Partition

_GONE = -1
Scalar = TypeVar("Scalar", bound=np.generic)


class _Marks(NamedTuple):
    """Marks of atoms: their keys, uint64[m], and themselves, int64[m]."""

    keys: NDArray[np.uint64]
    marks: NDArray[np.int64]


class _Shrunk(NamedTuple):
    """The names of atoms that lost rows, and of those of them that may be answered about no more."""

    lost: list[int]
    closed: NDArray[np.int64]


@dataclass(frozen=True)
class Present:
    """A universe today. keys uint64[n], unit int32[n] of all rows; rows int64[v]: those that are answered about, in
    the order of the partition's."""

    keys: NDArray[np.uint64]
    unit: NDArray[np.int32]
    rows: NDArray[np.int64]
    partition: Partition
    values: Mapping[str, Column] = field(default_factory=dict)
    """The columns, of all rows, that the partition has clusters of."""

    def kept(self, before: Kept | None) -> Kept:
        """What the ledger shall keep; rows that are gone, or not answered about yet, stay as they were."""
        keys, atoms = self.own(self.keys), self.partition.names[self.partition.atom]
        marked, mark = self._marks()
        if before is not None:
            n = len(keys)
            # Most often nothing came or went, and the rows are in the order in which they were kept. Keys are any 64
            # bits, so a table by their range, which isin() might choose, is of no use.
            gone = np.zeros(len(before.keys), dtype=bool)
            gone[n:] = True
            if not np.array_equal(before.keys[:n], keys):
                gone = ~np.isin(before.keys, keys, kind="sort")
            keys = np.concatenate([keys, before.keys[gone]])
            # Marks are below -1.
            atoms = np.concatenate([atoms, np.minimum(before.atoms[gone], _GONE)])
            order = np.argsort(marked)
            place = np.minimum(np.searchsorted(marked, keys[n:], sorter=order), max(len(marked) - 1, 0))
            if len(marked):
                again = marked[order[place]] == keys[n:]
                atoms[n:][again] = mark[order[place[again]]]
                new = ~np.isin(marked, keys[n:], kind="sort")
                marked, mark = marked[new], mark[new]
        keys, atoms = np.concatenate([keys, marked]), np.concatenate([atoms, mark])
        names = self.partition.names.tolist()
        clusters = {
            column: dict(zip(names, labels.tolist(), strict=True)) for column, labels in self.partition.clusters.items()
        }
        return Kept(keys, atoms, self.partition.next_name, clusters)

    def _marks(self) -> _Marks:
        """The marks of all columns and atoms."""
        partition = self.partition
        found = [
            _Marks(mark_keys(_seed(name), partition.names), marks(partition.atom, column.values, partition.n_atoms))
            for name, column in self.columns({name: self.values[name] for name in partition.clusters}).items()
        ]
        return _Marks(
            np.concatenate([np.zeros(0, dtype=np.uint64), *(each.keys for each in found)]),
            np.concatenate([np.zeros(0, dtype=np.int64), *(each.marks for each in found)]),
        )

    def columns(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Columns of all rows, of those that are answered about."""
        if self.is_all:
            return dict(columns)
        return {name: Column(column.values[self.rows]) for name, column in columns.items()}

    def own(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Values of all rows, of those that are answered about."""
        return values if self.is_all else np.ascontiguousarray(values[self.rows])

    @cached_property
    def is_all(self) -> bool:
        """Whether all rows are answered about."""
        return len(self.rows) == len(self.keys)


def present(
    keys: NDArray[np.uint64],
    unit: NDArray[np.int32],
    kept: Kept | None,
    columns: Mapping[str, Column],
    k: int,
    *,
    one_row_a_unit: bool,
) -> Present:
    """Find the atoms of today's rows. keys uint64[n], unit int32[n], columns of all n rows, those of `kept`."""
    if kept is None:
        everybody = np.arange(len(keys))
        whole = everybody if len(np.unique(unit)) >= k else everybody[:0]
        return Present(keys, unit, whole, Partition.whole(unit[whole]))
    kept = _ascending(kept)
    place = np.minimum(np.searchsorted(kept.keys, keys), max(len(kept.keys) - 1, 0))
    known = kept.keys[place] == keys if len(kept.keys) else np.zeros(len(keys), dtype=bool)
    atom = np.where(known, kept.atoms[place] if len(kept.keys) else _GONE, _GONE)
    lost, closed = _shrunk(atom[known], kept, k, one_row_a_unit=one_row_a_unit)
    atom[np.isin(atom, closed)] = _GONE
    next_name = kept.next_name
    new = np.flatnonzero(~known)
    fresh = len(np.unique(unit[new])) >= k
    if fresh:
        atom[new] = next_name
        next_name += 1
    rows = np.flatnonzero(atom >= 0)
    names, codes = np.unique(atom[rows], return_inverse=True)
    partition = Partition(unit[rows], codes.reshape(-1).astype(np.int32), names.astype(np.int64), next_name)
    labels = {}
    for column, label_of in kept.clusters.items():
        # A cluster that lost cells, of however many units, is answered about no more; nor is one with other cells.
        values = columns[column].values[rows]
        changed = names[_changed(column, partition, values, kept)].tolist()
        hidden = {label_of[name] for name in (*lost, *changed) if name in label_of}
        own = [label_of.get(name, name + 1) for name in names.tolist()]
        labels[column] = np.array(
            [-label - 1 if label >= 0 and label in hidden else label for label in own], dtype=np.int64
        )
    here = Present(keys, unit, rows, replace(partition, clusters=labels), columns)
    return replace(here, partition=_cells_of_new_rows(here, columns, kept.next_name, k)) if fresh else here


def _ascending(kept: Kept) -> Kept:
    if np.all(kept.keys[1:] >= kept.keys[:-1]):
        return kept
    order = np.argsort(kept.keys, kind="stable")
    return replace(kept, keys=kept.keys[order], atoms=kept.atoms[order])


def _shrunk(atoms: NDArray[np.int64], kept: Kept, k: int, *, one_row_a_unit: bool) -> _Shrunk:
    """What became smaller since it was kept."""
    names, before = np.unique(kept.atoms[kept.atoms >= 0], return_counts=True)
    now = np.bincount(np.searchsorted(names, atoms[atoms >= 0]), minlength=len(names))
    lost = before - now
    # Rows of a long table may be of one unit, of which nothing is known once they are gone.
    enough = one_row_a_unit & (lost >= k) & (now >= k)
    return _Shrunk(names[lost > 0].tolist(), names[(lost > 0) & ~enough])


def _cells_of_new_rows(here: Present, columns: Mapping[str, Column], name: int, k: int) -> Partition:
    """The clusters, with cells of new rows kept out where they are of fewer than k units: labels below 0."""
    partition = here.partition
    code = int(np.searchsorted(partition.names, name))
    clusters = dict(partition.clusters)
    for column, label in partition.clusters.items():
        cells = here.columns({column: columns[column]})[column].present & (partition.atom == code)
        units = int(count_units(np.where(cells, 0, -1), partition.unit, 1)[0])
        if 0 < units < k:
            clusters[column] = np.where(np.arange(len(label)) == code, -name - 1, label)
    return replace(partition, clusters=clusters)


def _changed(column: str, partition: Partition, values: NDArray[np.float64], kept: Kept) -> NDArray[np.bool_]:
    """Which atoms have other marks than those that are kept, bool[a]."""
    keys = mark_keys(_seed(column), partition.names)
    place = np.minimum(np.searchsorted(kept.keys, keys), max(len(kept.keys) - 1, 0))
    if not len(kept.keys):
        return np.ones(len(keys), dtype=bool)
    same = kept.atoms[place] == marks(partition.atom, values, partition.n_atoms)
    return ~(same & (kept.keys[place] == keys))


def _seed(column: str) -> np.uint64:
    """What keys of a column's marks hang on."""
    return np.uint64(int.from_bytes(blake2b(column.encode(), digest_size=8).digest(), "little"))
