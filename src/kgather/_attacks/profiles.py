"""What anybody can work out from a release alone: what is usually shown of an item, and in what ways rows differ.

The rows of a release are its mean plus a few directions times a place of each row. A low-rank release says both; of
cells they are found by a singular value decomposition, with what is not shown at the mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._evaluation.candidates import Candidates, ShownCells, ShownVectors
from kgather._forms import forms

RANK = 11
"""Directions looked for in cells where the release does not tell how many there are."""

_ROUNDS = 6
_DENSEST = (0.05, 0.2, 0.5)  # of items
_SHIFTS = 20
_SPARE = 5
_CELLS = 1 << 22  # looked at in one piece


@dataclass(frozen=True)
class Profiles:
    """means float64[m]: what the average user is shown for an item, NaN where nobody is shown anything. axes
    float64[m, d] and places float64[n, d]: the row of candidate c is means + axes @ places[c], about; over all users,
    places have mean 0 and variance 1 and are not correlated. shares float64[n]: of the users. vectors float64[m, r]:
    those of items that the release has, in all directions, also those in which no two rows differ; of cells, the axes.
    Their columns have mean square 1 and are not correlated.
    """

    means: NDArray[np.float64]
    axes: NDArray[np.float64]
    places: NDArray[np.float64]
    shares: NDArray[np.float64]
    vectors: NDArray[np.float64]


def rank_of(parameters: Mapping[str, Any]) -> int:
    """In how many directions the rows of a release differ, which its audit tells where cells are predicted."""
    rank = parameters.get("rank")
    form = forms().get(str(parameters.get("homogenize")))
    return int(rank) + 1 if form is not None and form.predicts and rank else RANK


def profiles_of(shown: Candidates, rank: int = RANK) -> Profiles:
    """Take a release apart. O(what it shows x rank), with some 150 MB at a time."""
    sizes = np.asarray(shown.sizes, dtype=np.float64)
    shares = sizes / sizes.sum()
    means = means_of(shown)
    if isinstance(shown, ShownVectors):
        return _of_vectors(shown, shares, means)
    n = len(shares)
    d = min(rank, n - 1, shown.n_items)
    if d < 1:
        nothing = np.zeros((shown.n_items, 0))
        return Profiles(means, nothing, np.zeros((n, 0)), shares, nothing)
    root = np.sqrt(shares)
    # Any start does that no direction is orthogonal to; the same one gives the same result.
    start = np.cos(np.outer(np.arange(1, n + 1), np.arange(1, min(d + _SPARE, n) + 1)) ** 1.5)
    basis = np.linalg.qr(start)[0]
    for _ in range(_ROUNDS):
        again = np.zeros_like(basis)
        for _, gaps in _gaps(shown, means):
            weighted = gaps * root
            again += weighted.T @ (weighted @ basis)
        basis = np.linalg.qr(again)[0]
    onto = np.zeros((shown.n_items, basis.shape[1]))
    for items, gaps in _gaps(shown, means):
        onto[items] = (gaps * root) @ basis
    left, sizes_of, right = np.linalg.svd(onto, full_matrices=False)
    kept = np.flatnonzero(sizes_of[:d] > 1e-6 * max(sizes_of[0], 1e-12))
    axes = left[:, kept] * sizes_of[kept]
    places = (basis @ right[kept].T) / np.maximum(root, 1e-12)[:, None]
    return Profiles(means, axes, places, shares, _alike(axes))


def directions_of(shown: Candidates, rank: int = RANK) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Where items point, float64[m, d] each, and where candidates lie, float64[n, d], with nothing usual in them.

    An item of which nothing was learnt points nowhere. A low-rank release says both; in cells, where most items of few
    raters are is taken for nowhere: the middle of the densest twentieth, fifth or half of all items, one after the
    other. O(`profiles_of`).
    """
    if isinstance(shown, ShownVectors):
        away = np.where(np.isnan(shown.item_levels)[:, None], 0.0, shown.item_factors)
        return [away.astype(np.float64)], shown.group_factors.astype(np.float64)
    found = profiles_of(shown, rank)
    there = ~np.isnan(found.means)
    axes = np.nan_to_num(found.axes)
    if not there.any() or not axes.shape[1]:
        return [np.zeros((len(axes), 1))], np.zeros((len(found.places), 1))
    aways = []
    for share in _DENSEST:
        middle = np.median(axes[there], axis=0)
        for _ in range(_SHIFTS):
            gaps = np.linalg.norm(axes[there] - middle, axis=1)
            middle = axes[there][gaps <= np.quantile(gaps, share)].mean(axis=0)
        aways.append(np.where(there[:, None], axes - middle, 0.0))
    return aways, found.places


def means_of(shown: Candidates) -> NDArray[np.float64]:
    """What the average user is shown for each item, float64[m], NaN where nobody is shown anything. O(cells)."""
    shares = np.asarray(shown.sizes, dtype=np.float64)
    shares = shares / shares.sum()
    if isinstance(shown, ShownVectors):
        places, sides = _halves(shown)
        return np.asarray(shown.item_levels.astype(np.float64) + sides @ (shares @ places))
    assert isinstance(shown, ShownCells)
    means = np.full(shown.n_items, np.nan)
    for item in np.flatnonzero(np.diff(shown.indptr)):
        cells = slice(shown.indptr[item], shown.indptr[item + 1])
        weights = shares[shown.rows[cells]]
        middle = (shown.low[cells].astype(np.float64) + shown.high[cells]) / 2
        if (total := weights.sum()) > 0:
            means[item] = weights @ middle / total
    return means


def _halves(shown: ShownVectors) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of candidates and of items, whose products and the items' levels are what is shown, float64[n or m, r + 1]."""
    places = np.column_stack([shown.group_levels, shown.group_factors])
    sides = np.column_stack([np.ones(shown.n_items), shown.item_factors])
    return places.astype(np.float64), sides.astype(np.float64)


def _of_vectors(shown: ShownVectors, shares: NDArray[np.float64], means: NDArray[np.float64]) -> Profiles:
    places, sides = _halves(shown)
    middle = shares @ places
    gaps = places - middle
    spread, turned = np.linalg.eigh((gaps * shares[:, None]).T @ gaps)
    kept = spread > 1e-9 * max(spread[-1], 1e-12)
    roots, turned = np.sqrt(spread[kept]), turned[:, kept]
    vectors = _alike(np.where(np.isnan(means)[:, None], 0.0, shown.item_factors))
    return Profiles(means, (sides @ turned) * roots, (gaps @ turned) / roots, shares, vectors)


def _alike(vectors: NDArray[np.float32 | np.float64]) -> NDArray[np.float64]:
    """The same directions with mean square 1 each and uncorrelated, float64[m, r], without those that say nothing."""
    left, sizes, _ = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)
    return left[:, sizes > 1e-6 * max(sizes.max(initial=0.0), 1e-12)] * np.sqrt(len(vectors))


def _gaps(shown: Candidates, means: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Pieces of items with what is shown of them less the mean, float64[i, n], 0 where nothing is."""
    for items in _chunks(shown):
        low, high = shown.columns(items)
        yield items, np.nan_to_num((low.astype(np.float64) + high) / 2 - means[items][:, None])


def _chunks(shown: Candidates) -> Iterator[NDArray[np.int64]]:
    step = max(1, _CELLS // max(len(shown.sizes), 1))
    for start in range(0, shown.n_items, step):
        yield np.arange(start, min(start + step, shown.n_items))
