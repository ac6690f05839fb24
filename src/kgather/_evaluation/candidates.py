"""What a release shows, as an attacker sees it: candidates, each of which may be the person looked for."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgather.udfs._shared.fingerprints import add_cell_hashes
from kgather.udfs.ratings.matrix import RatingMatrix

_CHUNK = 1 << 24  # cells looked at in one piece
_SALTS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


class Candidates(Protocol):
    """Rows of a release: one for each group of users who look the same, or one for each user.

    sizes int64[n]: how many users look like the candidate. Values are ranges: a rating that is shown as it is has
    low = high.
    """

    @property
    def n_items(self) -> int: ...

    @property
    def sizes(self) -> NDArray[np.int64]: ...

    def columns(self, items: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What all candidates show of some items, int[i]: low and high, float32[i, n] each, NaN where nothing."""

    def some(self, rows: NDArray[np.integer]) -> "Candidates":
        """Some of the candidates, int[k] ascending."""

    def fingerprints(self) -> NDArray[np.uint64]:
        """uint64[n, 2]: candidates show the same of every item where theirs are the same, in any release."""

    def distinct(self) -> NDArray[np.int32]:
        """A code for each candidate, int32[n], from 0: those with the same code show the same of every item."""


class _Fingerprinted:
    def fingerprints(self) -> NDArray[np.uint64]:
        raise NotImplementedError

    def distinct(self) -> NDArray[np.int32]:
        """As `Candidates.distinct`. O(n log n) after the fingerprints."""
        return np.unique(self.fingerprints(), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


@dataclass(frozen=True)
class ShownCells(_Fingerprinted):
    """Candidates of a release that lists its cells, by item.

    indptr int64[n_items + 1], rows int32[c] ascending within an item, low and high float32[c].
    """

    sizes: NDArray[np.int64]
    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @classmethod
    def from_cells(
        cls,
        sizes: NDArray[np.int64],
        n_items: int,
        rows: NDArray[np.integer],
        items: NDArray[np.integer],
        low: NDArray[np.floating | np.integer],
        high: NDArray[np.floating | np.integer],
    ) -> "ShownCells":
        """Sort cells, int[c] of candidate and item codes and float[c] bounds, in any order. O(c log c)."""
        order = np.lexsort((rows, items))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
        return cls(
            sizes,
            indptr.astype(np.int64),
            rows[order].astype(np.int32),
            low[order].astype(np.float32),
            high[order].astype(np.float32),
        )

    @classmethod
    def from_matrix(cls, sizes: NDArray[np.int64], shown: RatingMatrix) -> "ShownCells":
        """What candidates show as ratings, a candidate in the place of a user. O(c)."""
        indptr, rows, values = shown.transpose()
        return cls(sizes, indptr, rows, values, values)

    @classmethod
    def from_ratings(cls, ratings: RatingMatrix) -> "ShownCells":
        """The ratings themselves, every user a candidate: a release that hides nothing but names."""
        return cls.from_matrix(np.ones(ratings.n_users, dtype=np.int64), ratings)

    @property
    def n_items(self) -> int:
        return len(self.indptr) - 1

    def columns(self, items: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """As `Candidates.columns`. O(i n)."""
        low = np.full((len(items), len(self.sizes)), np.nan, dtype=np.float32)
        high = low.copy()
        for place, item in enumerate(items):
            start, end = self.indptr[item], self.indptr[item + 1]
            low[place, self.rows[start:end]] = self.low[start:end]
            high[place, self.rows[start:end]] = self.high[start:end]
        return low, high

    def some(self, rows: NDArray[np.integer]) -> "ShownCells":
        """As `Candidates.some`. O(n + c)."""
        places = np.full(len(self.sizes), -1, dtype=np.int32)
        places[rows] = np.arange(len(rows))
        kept = places[self.rows] >= 0
        items = np.repeat(np.arange(self.n_items), np.diff(self.indptr))[kept]
        return ShownCells.from_cells(
            self.sizes[rows], self.n_items, places[self.rows[kept]], items, self.low[kept], self.high[kept]
        )

    def fingerprints(self) -> NDArray[np.uint64]:
        """As `Candidates.fingerprints`: two sums of 64-bit hashes of the row's cells. O(c)."""
        sums = np.zeros((len(self.sizes), len(_SALTS)), dtype=np.uint64)
        low, high = self.low.view(np.uint32), self.high.view(np.uint32)
        add_cell_hashes(self.indptr, self.rows, low, high, np.array(_SALTS, dtype=np.uint64), sums)
        return sums


@dataclass(frozen=True)
class ShownVectors(_Fingerprinted):
    """Candidates of a low-rank release: every cell is computed from the vectors of the group and of the item.

    group_levels float32[n], group_factors float32[n, r], item_levels float32[m] (NaN: the item is not in the
    release), item_factors float32[m, r]; scale: the bounds that cells are clipped to.
    """

    sizes: NDArray[np.int64]
    group_levels: NDArray[np.float32]
    group_factors: NDArray[np.float32]
    item_levels: NDArray[np.float32]
    item_factors: NDArray[np.float32]
    scale: tuple[float, float]

    @property
    def n_items(self) -> int:
        return len(self.item_levels)

    def columns(self, items: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """As `Candidates.columns`. O(i n r)."""
        shown = self.item_factors[items] @ self.group_factors.T
        for row, level in zip(shown, self.item_levels[items], strict=True):
            row += level + self.group_levels
        np.clip(shown, *self.scale, out=shown)
        return shown, shown

    def some(self, rows: NDArray[np.integer]) -> "ShownVectors":
        """As `Candidates.some`."""
        return replace(
            self,
            sizes=self.sizes[rows],
            group_levels=self.group_levels[rows],
            group_factors=self.group_factors[rows],
        )

    def fingerprints(self) -> NDArray[np.uint64]:
        """As `Candidates.fingerprints`, of the vectors. O(n r)."""
        vectors = np.column_stack([self.group_levels, self.group_factors]).view(np.uint32).astype(np.uint64)
        places = np.arange(vectors.shape[1], dtype=np.uint64)
        hashes = [_mixed(_mixed(places + np.uint64(salt)) ^ vectors).sum(axis=1) for salt in _SALTS]
        return np.stack(hashes, axis=1)


def item_chunks(n_items: int, n_candidates: int) -> list[NDArray[np.int64]]:
    """All item codes in pieces, so that the columns of a piece fit into some 64 MB."""
    step = max(1, _CHUNK // max(n_candidates, 1))
    return [np.arange(start, min(start + step, n_items)) for start in range(0, n_items, step)]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64: every bit of the input changes half of the bits of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
