"""The partition of a universe into atoms, and for each column that is summed up, which atoms go together.

A value that is missing says nothing of a person, so that the cells of a column with gaps are fewer than the rows. Each
column has clusters of atoms, each with cells of at least k units, or with none: whatever is said of the column is made
of the means of whole clusters. As atoms are cut, clusters are, too, where every part keeps cells of k units; so neither
the one nor the other ever takes back what an earlier answer could be subtracted from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kgather.guard import atoms


@dataclass(frozen=True)
class Column:
    """The cells of a column, in the order of the rows.

    values float64[n], NaN where missing.
    """

    values: np.ndarray

    @property
    def present(self) -> np.ndarray:
        """Which cells there are, bool[n]."""
        return ~np.isnan(self.values)


@dataclass(frozen=True)
class Partition:
    """unit int32[n]: the unit of each row, rows of a unit beside each other. atom int32[n]. names int64[a]: of atoms,
    never used twice. next_name: the next that is free. clusters: of each column, int64[a], a label for each atom."""

    unit: np.ndarray
    atom: np.ndarray
    names: np.ndarray
    next_name: int
    clusters: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def whole(cls, unit: np.ndarray) -> "Partition":
        """One atom of all rows."""
        return cls(unit, np.zeros(len(unit), dtype=np.int32), np.zeros(1, dtype=np.int64), 1)

    @property
    def n_atoms(self) -> int:
        """How many atoms there are."""
        return len(self.names)

    def units(self) -> np.ndarray:
        """Distinct units of each atom, int64[a]."""
        return atoms.count_units(self.atom.astype(np.int64), self.unit, self.n_atoms)

    def refined(
        self,
        outcome: np.ndarray,
        k: int,
        columns: Mapping[str, Column],
        *,
        seed: np.uint64,
        sd: float,
        diverse: Sequence[np.ndarray] = (),
        l: int = 1,  # noqa: E741
    ) -> "Partition":
        """Cut where the pieces stay large enough; the same object where nothing is cut.

        outcome int32[n]. columns: those that clusters are known of. diverse: int32[n] codes of what must keep l values
        in every atom.
        """
        pieces = atoms.cut_into_pieces(self.atom, outcome, self.unit)
        # Where nobody is asked for the steps are those of a few.
        if len(pieces.atom) == self.n_atoms and int(pieces.outcome.max(initial=0)) > 1:
            return self
        new = atoms.split(pieces, self.unit, self.names, k, seed=seed, sd=sd)
        for codes in diverse:
            new = _kept_diverse(new, pieces, codes, l)
        count = int(new.max()) + 1
        if count == self.n_atoms:
            return self
        old_of = np.zeros(count, dtype=np.int64)
        old_of[new] = pieces.atom
        parts = np.bincount(old_of, minlength=self.n_atoms)
        cut = parts[old_of] > 1
        names = self.names[old_of]
        names[cut] = self.next_name + np.arange(int(cut.sum()))
        atom = new[pieces.of_row].astype(np.int32)
        finer = replace(self, atom=atom, names=names, next_name=self.next_name + int(cut.sum()), clusters={})
        touched = np.flatnonzero(parts > 1)
        return replace(
            finer,
            clusters={
                name: finer._separated(label[old_of], columns[name].present, k, np.unique(label[touched]))
                for name, label in self.clusters.items()
            },
        )

    def with_column(self, name: str, column: Column, k: int) -> "Partition":
        """The same with the clusters of one more column."""
        if name in self.clusters:
            return self
        label = np.zeros(self.n_atoms, dtype=np.int64)
        own = self._separated(label, column.present, k, np.zeros(1, dtype=np.int64))
        return replace(self, clusters={**self.clusters, name: own})

    def _separated(self, label: np.ndarray, present: np.ndarray, k: int, wanted: np.ndarray) -> np.ndarray:
        """Clusters with the labels `wanted` cut into their atoms, as far as every part keeps cells of k units."""
        row_atom = np.where(present, self.atom, -1).astype(np.int64)
        own = atoms.count_units(row_atom, self.unit, self.n_atoms)
        places, cluster = np.unique(label, return_inverse=True)
        # Labels below 0 are of clusters that are answered about no more, nor is any part of them.
        open_ = np.isin(places, wanted[wanted >= 0])[cluster]
        stands = open_ & (own >= k)
        rest = open_ & ~stands
        row_rest = np.where(present & rest[self.atom], cluster[self.atom], -1).astype(np.int64)
        left = atoms.count_units(row_rest, self.unit, len(places))
        alone = np.bincount(cluster, weights=stands, minlength=len(places)) > 0
        result = label.copy()
        # Labels are names of atoms: no two clusters have the same one.
        result[stands] = self.names[stands] + 1
        glued = (left > 0) & (left < k)
        for group in np.flatnonzero(np.bincount(cluster, weights=rest, minlength=len(places)) * alone):
            mine = rest & (cluster == group)
            if glued[group]:
                partner = np.flatnonzero(stands & (cluster == group))
                result[mine] = result[partner[np.argmax(own[partner])]]
            else:
                result[mine] = self.names[np.flatnonzero(mine)[0]] + 1
        return result


def _kept_diverse(new: np.ndarray, pieces: atoms.Pieces, codes: np.ndarray, least: int) -> np.ndarray:
    """Cuts undone of atoms one of whose parts would have fewer than `least` different values."""
    part = new[pieces.of_row].astype(np.int64)
    known = codes >= 0
    pairs = np.unique(part[known] * (int(codes.max(initial=0)) + 1) + codes[known])
    values = np.bincount(pairs // (int(codes.max(initial=0)) + 1), minlength=int(new.max()) + 1)
    poor = np.zeros(int(pieces.atom.max()) + 1, dtype=bool)
    poor[pieces.atom[values[new] < least]] = True
    first = np.zeros(len(poor), dtype=np.int64)
    first[pieces.atom[::-1]] = new[::-1]
    return np.unique(np.where(poor[pieces.atom], first[pieces.atom], new), return_inverse=True)[1].reshape(-1)
