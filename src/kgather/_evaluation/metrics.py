"""What utility was lost: metrics from a release beside its original, for every form of release.

Everything is summed up in one pass over the items, a chunk at a time, so that users x items is never written: it takes
O(candidates x items + ratings) time and the memory of a chunk. A range counts by its midpoint. Users who were set aside
have nothing shown and do not enter, except where a share is that of all of the original.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgather._evaluation.candidates import Candidates, item_chunks
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.named import ABOUT as ABOUT
from kgather._evaluation.named import Metric as Metric
from kgather._evaluation.named import described as described
from kgather._evaluation.named import read_metrics as read_metrics
from kgather.udfs.measuring.quality import armse, maximal_radius
from kgather.udfs.measuring.query_error import domain_of, masks_of_ranges, query_errors
from kgather.udfs.preferences.model import Preferences

_RATINGS_AT_ONCE = 1 << 22
_QUERIES = 500
_ARTIFACTS = 10
_WIDTHS = (1, 2, 3)


def measure(
    evidence: Evidence,
    *,
    known: Sequence[Metric] = (),
    personal: Mapping[str, NDArray[np.float64]] | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[Metric, ...]:
    """All metrics that the evidence alone tells, those already `known` first and not measured again.

    Where a metric makes no sense (a rank correlation of what is constant) it is left out. personal: attributes of all
    users by name, float64[n_users] each, NaN where not known, whose mean queries ask for; a release shows them as they
    are. seed: of the queries drawn. O(candidates x items + ratings), and O(queries x users) for the query errors.
    """
    names = {metric.metric for metric in known}
    found = [metric for metric in _described(_totals(evidence), evidence.filled_with) if metric.metric not in names]
    found += _closeness(evidence)
    if personal or not any(name.startswith("query_error") for name in names):
        found += _query_errors(evidence, personal or {}, seed, threads or os.cpu_count() or 1)
    return (*known, *found)


def _closeness(evidence: Evidence) -> Iterator[Metric]:
    """How close the members of groups are in what they were compared in."""
    users = evidence.gathered
    if evidence.vectors is None or len(users) == 0:
        return
    for name, measured in (("armse_preferences", armse), ("maximal_radius", maximal_radius)):
        about = f"{ABOUT[name]}: {evidence.space}" if evidence.space else ABOUT[name]
        yield Metric(name, measured(evidence.vectors[users], evidence.groups[users]), about)


def shown_errors(
    evidence: Evidence,
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    ratings: NDArray[np.floating | np.integer],
) -> tuple[float, float, float]:
    """How far ratings are from what is shown of their users: MAE, RMSE, and the share of them that is covered.

    users, items: int[t], codes of the evidence, -1 for whom it does not know; ratings: real numbers[t]. Errors are over
    the ratings covered, NaN where none is. O(t log t + candidates x items asked for).
    """
    values = shown_values(evidence, users, items)
    gaps = values[~np.isnan(values)] - np.asarray(ratings, dtype=np.float64)[~np.isnan(values)]
    if len(gaps) == 0:
        return float("nan"), float("nan"), 0.0
    return float(np.abs(gaps).mean()), float(np.sqrt((gaps**2).mean())), len(gaps) / len(values)


def shown_values(evidence: Evidence, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
    """What is shown of users for items, float64[t], NaN where nothing is. Arguments and cost as in `shown_errors`."""
    users, items = np.asarray(users, dtype=np.int64), np.asarray(items, dtype=np.int64)
    values = np.full(len(users), np.nan)
    candidates = np.where(users >= 0, evidence.truth[users], -1)
    asked = np.flatnonzero((candidates >= 0) & (items >= 0))
    asked = asked[np.argsort(items[asked], kind="stable")]
    wanted = np.unique(items[asked])
    for chunk in item_chunks(len(wanted), len(evidence.shown.sizes)):
        part = wanted[chunk]
        shown = _middle(evidence.shown, part)
        start, end = np.searchsorted(items[asked], (part[0], part[-1] + 1))
        places = asked[start:end]
        values[places] = shown[np.searchsorted(part, items[places]), candidates[places]]
    return values


def group_size_distribution(evidence: Evidence) -> tuple[tuple[int, int], ...]:
    """How many groups there are of each size: (size, groups), by size."""
    sizes, groups = np.unique(evidence.group_sizes, return_counts=True)
    return tuple((int(size), int(count)) for size, count in zip(sizes, groups, strict=True))


def spearman(left: NDArray[np.floating | np.integer], right: NDArray[np.floating | np.integer]) -> float:
    """Spearman's rank correlation, equal values having the mean of their ranks; NaN where one side is constant."""
    if len(left) < 2 or len(np.unique(left)) < 2 or len(np.unique(right)) < 2:
        return float("nan")
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: NDArray[np.floating | np.integer]) -> NDArray[np.float64]:
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(times) - (times - 1) / 2)[place.reshape(-1)]


def _middle(shown: Candidates, items: NDArray[np.integer]) -> NDArray[np.float32]:
    """What all candidates show of some items, float32[i, n], ranges by their midpoint."""
    low, high = shown.columns(items)
    return low if low is high else (low + high) / np.float32(2)


def _described(totals: "_Totals", filled_with: str) -> Iterator[Metric]:
    for name, value in totals.metrics():
        if np.isfinite(value):
            yield Metric(name, float(value), f"{ABOUT[name]}: {filled_with}" if "filled" in name else ABOUT[name])


@dataclass
class _Totals:
    """Sums over the cells: `members` are the users of each candidate, int64[n], `squares` their filled SSE, float64[n].

    original, shown: mean and count of each item, float64[m] (NaN: not there).
    """

    members: NDArray[np.int64]
    squares: NDArray[np.float64]
    original: tuple[NDArray[np.float64], NDArray[np.int64]]
    shown: tuple[NDArray[np.float64], NDArray[np.float64]]
    of_rows: NDArray[np.int64]  # what the candidates are of the groups, int64[n]
    ratings: int
    own_ratings: int = 0
    covered: int = 0
    absolute: float = 0.0
    squared: float = 0.0
    distortion: float = 0.0
    cells: int = 0
    repeated: int = 0
    rated_cells: int = 0

    def metrics(self) -> Iterator[tuple[str, float]]:
        users, candidates = int(self.members.sum()), int((self.members > 0).sum())
        items = int((self.original[1] > 0).sum())
        both = (self.original[1] > 0) & (self.shown[1] > 0)
        if self.covered:
            yield "mean_absolute_error", self.absolute / self.covered
            yield "root_mean_square_error", float(np.sqrt(self.squared / self.covered))
            yield "sum_of_squares", self.squared
        if self.cells:
            yield "sum_of_squares_filled", float(self.squares.sum())
            sums = np.bincount(self.of_rows[self.members > 0], weights=self.squares[self.members > 0])
            sizes = np.bincount(self.of_rows[self.members > 0], weights=self.members[self.members > 0])
            yield "armse_filled", float(np.sqrt(sums[sizes > 0] / sizes[sizes > 0]).mean())
        if users:
            yield "total_distortion", self.distortion
            yield "tuple_distortion", self.distortion / users
            yield "items_shown", both.sum() / items
            yield "ratings_shown", self.covered / self.ratings
            yield "cells_shown", self.cells / (candidates * items)
            yield "entries_of_groups", self.cells
            yield "entries_repeated", self.repeated
            yield "entries_added", self.repeated - self.own_ratings
            yield "cells_added", self.cells - self.rated_cells
        # Rounded, so that means which differ in their last bits only are equal.
        yield "popularity_of_means", spearman(np.round(self.original[0][both], 6), np.round(self.shown[0][both], 6))
        yield "popularity_of_counts", spearman(self.original[1][both], self.shown[1][both])


class _Fill(Protocol):
    """What stands for the ratings that are not there."""

    def squares(
        self, items: NDArray[np.int64], value: NDArray[np.float64], there: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The squared distances of what candidates show, float64[i, n] where bool[i, n] is true, to the fills of all
        their users, float64[n].
        """
        ...

    def of_users(self, users: NDArray[np.integer], items: NDArray[np.int64]) -> NDArray[np.float64] | float:
        """The fills of cells, float64[t] of int[t] twice, or one number for all."""
        ...


@dataclass(frozen=True)
class _Number:
    """One number for all; NaN where it is not known. members int64[n] of each candidate."""

    fill: float
    members: NDArray[np.int64]

    def squares(
        self, items: NDArray[np.int64], value: NDArray[np.float64], there: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        del items
        return np.asarray(np.where(there, (value - self.fill) ** 2, 0).sum(axis=0) * self.members)

    def of_users(self, users: NDArray[np.integer], items: NDArray[np.int64]) -> float:
        del users, items
        return self.fill


@dataclass(frozen=True)
class _Predicted:
    """The predictions, each the product of a user's and an item's vector, float64[n_users, d] and float64[m, d].

    So what a candidate's users add up to follows from the sums of their vectors and of the products of these, and
    users x items is never written: members int64[n], sums float64[n, d], products float64[n, d, d].
    """

    users: NDArray[np.float64]
    items: NDArray[np.float64]
    members: NDArray[np.int64]
    sums: NDArray[np.float64]
    products: NDArray[np.float64]

    @classmethod
    def of(cls, learnt: Preferences, truth: NDArray[np.integer], members: NDArray[np.int64]) -> "_Predicted":
        """truth int[n_users]: the candidate of each user, -1 for those who have none."""
        ones = np.ones_like
        users = np.column_stack([learnt.user_level, ones(learnt.user_level), learnt.user_factors]).astype(np.float64)
        items = np.column_stack([ones(learnt.item_level), learnt.item_level, learnt.item_factors]).astype(np.float64)
        known = np.flatnonzero(truth >= 0)
        n, d = len(members), users.shape[1]

        def added(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(np.bincount(truth[known], values[known], minlength=n))

        sums = np.stack([added(column) for column in users.T], axis=1)
        products = np.empty((n, d, d))
        for row, column in np.ndindex(d, d):
            products[:, row, column] = added(users[:, row] * users[:, column])
        return cls(users, items, members, sums, products)

    def squares(
        self, items: NDArray[np.int64], value: NDArray[np.float64], there: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        of_items = self.items[items]
        found = value**2 * self.members - 2 * value * (of_items @ self.sums.T)
        for place in range(of_items.shape[1]):
            found += of_items[:, [place]] * (of_items @ self.products[:, place].T)
        return np.asarray(np.where(there, found, 0).sum(axis=0))

    def of_users(self, users: NDArray[np.integer], items: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("td,td->t", self.users[users], self.items[items]))


def _fill_of(evidence: Evidence) -> _Fill:
    """What the setting `fill` says; NaN where that is predictions, and these were not read."""
    members = np.bincount(evidence.truth[evidence.truth >= 0], minlength=len(evidence.shown.sizes))
    if np.isnan(evidence.fill) and evidence.preferences is not None:
        return _Predicted.of(evidence.preferences, evidence.truth, members)
    return _Number(evidence.fill, members)


def _totals(evidence: Evidence) -> _Totals:
    """One pass over the items."""
    n_items, n = evidence.original.n_items, len(evidence.shown.sizes)
    indptr, users, ratings = evidence.original.transpose()
    members = np.bincount(evidence.truth[evidence.truth >= 0], minlength=n)
    fill = _fill_of(evidence)
    of_rows = np.zeros(n, dtype=np.int64)
    of_rows[evidence.truth[evidence.truth >= 0]] = evidence.groups[evidence.truth >= 0]
    count = np.diff(indptr)
    sums = np.array([ratings[lo:hi].sum(dtype=np.float64) for lo, hi in pairwise(indptr)])
    with np.errstate(invalid="ignore"):
        totals = _Totals(
            members=members,
            squares=np.zeros(n),
            original=(sums / count, count),
            shown=(np.full(n_items, np.nan), np.zeros(n_items)),
            of_rows=of_rows,
            ratings=evidence.original.nnz,
        )
    seated = members > 0
    for chunk in item_chunks(n_items, n):
        shown = _middle(evidence.shown, chunk)
        there = ~np.isnan(shown) & seated
        value = np.where(there, shown, 0).astype(np.float64)
        counts = there @ members
        with np.errstate(invalid="ignore"):
            totals.shown[0][chunk] = value @ members / counts
        totals.shown[1][chunk] = counts
        totals.cells += int(there.sum())
        totals.repeated += int(counts.sum())
        # As if nobody had rated: what the ratings change follows.
        totals.distortion += float((np.abs(value) @ members).sum())
        totals.squares += fill.squares(chunk, value, there)
        _add_ratings(totals, evidence, chunk, value, there, fill, (indptr, users, ratings))
    return totals


def _add_ratings(
    totals: _Totals,
    evidence: Evidence,
    chunk: NDArray[np.int64],
    value: NDArray[np.float64],
    there: NDArray[np.bool_],
    fill: "_Fill",
    by_item: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]],
) -> None:
    """Add what the ratings of a chunk of items say beside what is shown of their users."""
    indptr, users, ratings = by_item
    start, end = int(indptr[chunk[0]]), int(indptr[chunk[-1] + 1])
    rated = np.zeros(there.shape, dtype=bool)
    for lo in range(start, end, _RATINGS_AT_ONCE):
        hi = min(lo + _RATINGS_AT_ONCE, end)
        places = np.searchsorted(indptr, np.arange(lo, hi), side="right") - 1 - chunk[0]
        candidates = evidence.truth[users[lo:hi]]
        gathered = candidates >= 0
        raters = users[lo:hi][gathered]
        places, candidates = places[gathered], candidates[gathered]
        own = ratings[lo:hi][gathered].astype(np.float64)
        shown, covered = value[places, candidates], there[places, candidates]
        gaps = np.abs(own - shown)
        totals.own_ratings += len(own)
        totals.covered += int(covered.sum())
        totals.absolute += float(gaps[covered].sum())
        totals.squared += float((gaps[covered] ** 2).sum())
        totals.distortion += float((gaps - np.abs(shown)).sum())
        changes = np.where(covered, (own - shown) ** 2 - (shown - fill.of_users(raters, chunk[places])) ** 2, 0)
        totals.squares += np.bincount(candidates, weights=changes, minlength=len(totals.squares))
        rated[places, candidates] = True
    totals.rated_cells += int((rated & there).sum())


def artifacts_of(evidence: Evidence) -> NDArray[np.int64]:
    """The items that queries ask about: the most rated ones that are shown, int64, ascending."""
    raters = np.bincount(evidence.original.items, minlength=evidence.original.n_items)
    items = np.flatnonzero(evidence.shown_items & (raters > 0))
    return np.sort(items[np.argsort(-raters[items], kind="stable")][:_ARTIFACTS])


def artifact_tables(
    evidence: Evidence, items: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The ratings of those who are in the release, and the least and greatest that is shown of them, float64[u, i]
    each, NaN where there is none.
    """
    gathered = evidence.gathered
    low, high = (side[:, evidence.truth[gathered]].T.astype(np.float64) for side in evidence.shown.columns(items))
    return _columns_of(evidence, items)[gathered], low, high


def _query_errors(
    evidence: Evidence, personal: Mapping[str, NDArray[np.float64]], seed: int, threads: int
) -> Iterator[Metric]:
    """The errors of counts and means, asked of the artifact table: the most rated items that are shown."""
    gathered, items = evidence.gathered, artifacts_of(evidence)
    if len(items) == 0 or len(gathered) == 0:
        return
    table, low, high = artifact_tables(evidence, items)
    if np.isnan(table).all():
        return
    domain = domain_of(table)
    truth, shown = masks_of_ranges(table, table, domain), masks_of_ranges(low, high, domain)
    target, inferred = _mean_of_rows(table), _mean_of_rows((low + high) / 2)
    several = min(5, len(items))
    # (kind, what is asked for, artifacts, width, AND)
    kinds = [
        ("or_1", "one artifact, one value", 1, 0.0, False),
        (f"or_{several}", f"any of {several} artifacts", several, 0.0, False),
        (f"and_{several}", f"all of {several} artifacts", several, 0.0, True),
        *(
            (f"range_{width}", f"one artifact, a range of width {width} in steps", 1, width * _step(evidence), False)
            for width in _WIDTHS
        ),
    ]
    for kind, told, artifacts, width, conjunction in {kind[0]: kind for kind in kinds}.values():
        ask = partial(
            query_errors,
            truth,
            shown,
            domain=domain,
            attributes=artifacts,
            width=width,
            conjunction=conjunction,
            queries=_QUERIES,
            seed=seed,
            threads=threads,
        )
        counts, averages = ask(target, shown_target=inferred)
        if not np.isnan(counts).all():
            about = f"mean relative error of a count of users by ratings of {told}"
            yield Metric(f"query_error_count_{kind}", float(np.nanmean(counts)), about)
        # A relative error of a mean says something only where 0 lies off the scale.
        if evidence.scale.low > 0 and not np.isnan(averages).all():
            about = f"mean relative error of a mean rating, users chosen by ratings of {told}"
            yield Metric(f"query_error_average_{kind}", float(np.nanmean(averages)), about)
        for name, values in personal.items():
            errors = ask(values[gathered])[1]
            if not np.isnan(errors).all():
                about = f"mean relative error of the mean {name} of users chosen by ratings of {told}"
                yield Metric(f"query_error_average_{name}_{kind}", float(np.nanmean(errors)), about)


def _step(evidence: Evidence) -> float:
    return evidence.scale.step or evidence.scale.width / 4


def _columns_of(evidence: Evidence, items: NDArray[np.int64]) -> NDArray[np.float64]:
    """All users' ratings of some items, ascending, float64[n_users, i], NaN where not rated."""
    original = evidence.original
    place = np.full(original.n_items, -1)
    place[items] = np.arange(len(items))
    entries = np.flatnonzero(place[original.items] >= 0)
    table = np.full((original.n_users, len(items)), np.nan)
    rows = np.searchsorted(original.indptr, entries, side="right") - 1
    table[rows, place[original.items[entries]]] = original.values[entries]
    return table


def _mean_of_rows(table: NDArray[np.float32 | np.float64]) -> NDArray[np.float64]:
    """The mean of each row over what is there, NaN where nothing is."""
    there = ~np.isnan(table)
    with np.errstate(invalid="ignore"):
        return np.where(there, table, 0).sum(axis=1, dtype=np.float64) / there.sum(axis=1)
