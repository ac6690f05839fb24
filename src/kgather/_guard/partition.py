"""The partition of a universe into atoms, and for each column that is summed up, which atoms go together.

A value that is missing says nothing of a person, so that the cells of a column with gaps are fewer than the rows. Each
column has clusters of atoms, each with cells of at least k units, or with none: whatever is said of the column is made
of the means of whole clusters. As atoms are cut, clusters are, too, where every part keeps cells of k units; so neither
the one nor the other ever takes back what an earlier answer could be subtracted from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgather._guard import atoms


@dataclass(frozen=True)
class Column:
    """The cells of a column, in the order of the rows.

    values float64[n], NaN where missing.
    """

    values: NDArray[np.float64]

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which cells there are, bool[n]."""
        return ~np.isnan(self.values)

    @cached_property
    def origin(self) -> float:
        """A whole number near the mean, so that sums around it lose no digits."""
        return float(np.round(np.nanmean(self.values))) if self.present.any() else 0.0


@dataclass(frozen=True)
class Means:
    """Of each atom, the means of its cluster's cells around `origin` and their least and greatest; told: whether there
    are cells to tell of; cluster: a number."""

    origin: float
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    told: NDArray[np.bool_]
    cluster: NDArray[np.int64]

    def whole(self, mine: NDArray[np.int64]) -> bool:
        """Whether no cluster lies both inside and outside of the chosen atoms."""
        outside = np.ones(len(self.cluster), dtype=bool)
        outside[mine] = False
        return not np.isin(self.cluster[mine], self.cluster[outside]).any()


@dataclass(frozen=True)
class Partition:
    """unit int32[n]: the unit of each row, rows of a unit beside each other. atom int32[n]. names int64[a]: of atoms,
    never used twice. next_name: the next that is free. clusters: of each column, int64[a], a label for each atom."""

    unit: NDArray[np.int32]
    atom: NDArray[np.int32]
    names: NDArray[np.int64]
    next_name: int
    clusters: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    _means: dict[str, Means] = field(init=False, default_factory=dict, compare=False, repr=False)

    @classmethod
    def whole(cls, unit: NDArray[np.int32]) -> "Partition":
        """One atom of all rows."""
        return cls(unit, np.zeros(len(unit), dtype=np.int32), np.zeros(1, dtype=np.int64), 1)

    @property
    def n_atoms(self) -> int:
        """How many atoms there are."""
        return len(self.names)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each atom, int64[a]."""
        return np.bincount(self.atom, minlength=self.n_atoms)

    def units(self) -> NDArray[np.int64]:
        """Distinct units of each atom, int64[a]."""
        return atoms.count_units(self.atom.astype(np.int64), self.unit, self.n_atoms)

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """Where each atom begins in `order`, and the end, int64[a + 1]."""
        return np.concatenate([[0], np.cumsum(self.rows)])

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The rows, atom by atom, int32[n]."""
        return atoms.rows_by_atom(self.atom, self.start)

    def spread(self, outcome: NDArray[np.int8 | np.int32]) -> atoms.Spread:
        """How the outcomes of a question spread over the atoms, int8[n] or int32[n]."""
        return atoms.spread(self.atom, outcome, self.unit, self.order, self.start)

    def means(self, name: str, column: Column, k: int) -> Means:
        """What is said of a column, of each atom. Kept, as long as there is this partition."""
        if name not in self._means:
            self._means[name] = self._meant(column, self.clusters[name], k)
        return self._means[name]

    def _meant(self, column: Column, label: NDArray[np.int64], k: int) -> Means:
        places, cluster = np.unique(label, return_inverse=True)
        cluster = cluster.reshape(-1)
        count, units, first, second, low, high = atoms.tally(
            self.atom, self.unit, column.values, self.n_atoms, column.origin
        )
        n = len(places)
        safe = np.maximum(np.bincount(cluster, count, n), 1)
        least, greatest, most = np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n, dtype=np.int64)
        np.minimum.at(least, cluster, low)
        np.maximum.at(greatest, cluster, high)
        np.maximum.at(most, cluster, units)
        # One unit may be in several atoms of a cluster: where no atom has k by itself, units are counted.
        most = np.maximum(most, self._units_with_cells(column, np.where(most[cluster] < k, cluster, -1), n))
        told = (most >= k) & (places >= 0)
        return Means(
            column.origin,
            (np.bincount(cluster, first, n) / safe)[cluster],
            (np.bincount(cluster, second, n) / safe)[cluster],
            least[cluster],
            greatest[cluster],
            told[cluster],
            cluster,
        )

    def refined(
        self,
        spread: atoms.Spread,
        k: int,
        columns: Mapping[str, Column],
        *,
        diverse: Sequence[NDArray[np.int32]] = (),
        l: int = 1,  # noqa: E741
    ) -> "Partition":
        """Cut where the pieces stay large enough; the same object where nothing is cut.

        spread: of what cuts. columns: those that clusters are known of. diverse: int32[n] codes of what must keep l
        values in every atom.
        """
        pieces, mixed = spread.pieces, spread.mixed
        # Where nobody is asked for the steps are those of a few.
        if not len(mixed) and int(spread.high.max()) > 1:
            return self
        new = atoms.split(pieces, spread.unit, len(mixed), k)
        for codes in diverse:
            new = _kept_diverse(new, pieces, codes[spread.rows], l)
        count = int(new.max(initial=-1)) + 1
        if count == len(mixed):
            return self
        # Which of the mixed atoms each new one is of, and into how many each atom is cut.
        of_mixed = np.zeros(count, dtype=np.int64)
        of_mixed[new] = pieces.atom
        parts = np.ones(self.n_atoms, dtype=np.int64)
        parts[mixed] = np.bincount(of_mixed, minlength=len(mixed))
        # Atoms are numbered in the order of their names, as they are when the partition is read again: those that stay,
        # then the new ones, which have the next free names.
        stays, cut = np.flatnonzero(parts == 1), np.flatnonzero(parts > 1)
        old_of = np.concatenate([stays, np.repeat(cut, parts[cut])])
        fresh = np.arange(len(old_of) - len(stays))
        names = np.concatenate([self.names[stays], self.next_name + fresh])
        number = np.full(self.n_atoms, -1, dtype=np.int32)
        number[stays] = np.arange(len(stays))
        place = parts[mixed[of_mixed]] > 1
        number_of_new = np.where(place, len(stays) + np.cumsum(place) - 1, number[mixed[of_mixed]])
        atom = number[self.atom]
        of_row = number_of_new[new[pieces.of_row]]
        atom[spread.rows] = of_row
        moves = of_row >= len(stays)
        last = spread.rows[moves][np.argsort(of_row[moves], kind="stable")]
        kept = np.ones(len(self.atom), dtype=bool)
        kept[spread.places[moves]] = False
        order = np.concatenate([self.order[kept], last])
        finer = replace(self, atom=atom, names=names, next_name=self.next_name + len(fresh), clusters={})
        finer = replace(
            finer,
            clusters={
                name: finer._separated(label[old_of], columns[name], k, np.unique(label[cut]))
                for name, label in self.clusters.items()
            },
        )
        finer.__dict__["order"] = order
        return finer

    def with_column(self, name: str, column: Column, k: int) -> "Partition":
        """The same with the clusters of one more column."""
        if name in self.clusters:
            return self
        label = np.zeros(self.n_atoms, dtype=np.int64)
        own = self._separated(label, column, k, np.zeros(1, dtype=np.int64))
        made = replace(self, clusters={**self.clusters, name: own})
        made.__dict__["order"] = self.order
        return made

    def _units_with_cells(self, column: Column, part: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
        """Distinct units with a cell of parts of whole atoms, int64[parts]; a part below 0 is none."""
        return atoms.count_units_with_cells(self.atom, part, self.unit, column.values, parts)

    def _separated(
        self, label: NDArray[np.int64], column: Column, k: int, wanted: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Clusters with the labels `wanted` cut into their atoms, as far as every part keeps cells of k units."""
        own = self._units_with_cells(column, np.arange(self.n_atoms), self.n_atoms)
        places, cluster = np.unique(label, return_inverse=True)
        # Labels below 0 are of clusters that are answered about no more, nor is any part of them.
        open_ = np.isin(places, wanted[wanted >= 0])[cluster]
        stands = open_ & (own >= k)
        rest = open_ & ~stands
        left = self._units_with_cells(column, np.where(rest, cluster, -1), len(places))
        alone = np.bincount(cluster, weights=stands, minlength=len(places)) > 0
        result = label.copy()
        # Labels are names of atoms: no two clusters have the same one.
        result[stands] = self.names[stands] + 1
        # What is left of a cluster is one by itself, or with the part of the most cells where it is too little.
        glued = (left > 0) & (left < k)
        first = _last_of(cluster[rest][::-1], np.flatnonzero(rest)[::-1], len(places))
        order = np.flatnonzero(stands)
        order = order[np.lexsort((-order, own[order]))]
        largest = _last_of(cluster[order], order, len(places))
        anchor = np.where(glued, largest, first)
        moved = rest & alone[cluster]
        result[moved] = self.names[anchor[cluster[moved]]] + 1
        return result


def _last_of(group: NDArray[np.int64], values: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """The last of the values of each group, int64[groups], or -1."""
    found = np.full(groups, -1, dtype=np.int64)
    found[group] = values
    return found


def _kept_diverse(
    new: NDArray[np.int64], pieces: atoms.Pieces, codes: NDArray[np.int32], least: int
) -> NDArray[np.int64]:
    """Cuts undone of atoms one of whose parts would have fewer than `least` different values."""
    part = new[pieces.of_row].astype(np.int64)
    known = codes >= 0
    pairs = np.unique(part[known] * (int(codes.max(initial=0)) + 1) + codes[known])
    values = np.bincount(pairs // (int(codes.max(initial=0)) + 1), minlength=int(new.max(initial=-1)) + 1)
    poor = np.zeros(int(pieces.atom.max(initial=-1)) + 1, dtype=bool)
    poor[pieces.atom[values[new] < least]] = True
    first = np.zeros(len(poor), dtype=np.int64)
    first[pieces.atom[::-1]] = new[::-1]
    return np.unique(np.where(poor[pieces.atom], first[pieces.atom], new), return_inverse=True)[1].reshape(-1)
