"""Small evidence made by hand: what a release shows beside the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence, Scale
from kgather.udfs.ratings.matrix import RatingMatrix

Rows = Sequence[Sequence[float | None]]


def matrix(rows: Rows) -> RatingMatrix:
    """Ratings by user and item, None where not rated."""
    table = np.array(rows, dtype=float)
    users, items = np.nonzero(~np.isnan(table))
    batch = pa.record_batch(
        {
            "user_code": pa.array(users, pa.int32()),
            "item_code": pa.array(items, pa.int32()),
            "rating": pa.array(table[users, items], pa.float64()),
        }
    )
    return RatingMatrix.from_batches([batch], *table.shape)


def cells(rows: Rows, sizes: Sequence[int], high: Rows | None = None) -> ShownCells:
    """Candidates by what they show, None where nothing; `high` makes ranges."""
    low = np.array(rows, dtype=float)
    top = low if high is None else np.array(high, dtype=float)
    at, items = np.nonzero(~np.isnan(low))
    return ShownCells.from_cells(
        np.array(sizes, dtype=np.int64), low.shape[1], at, items, low[at, items], top[at, items]
    )


def evidence(
    original: Rows,
    shown: Rows,
    truth: Sequence[int],
    *,
    high: Rows | None = None,
    groups: Sequence[int] | None = None,
    step: float | None = 1.0,
    scale: tuple[float, float] = (1.0, 5.0),
    parameters: Mapping[str, Any] | None = None,
) -> Evidence:
    """Evidence: truth[u] is the candidate of user u, -1 for who was set aside; groups likewise (default: truth)."""
    right = np.array(truth, dtype=np.int32)
    group = right if groups is None else np.array(groups, dtype=np.int32)
    ratings = matrix(original)
    release = cells(shown, [int((right == c).sum()) for c in range(len(shown))], high)
    return Evidence(
        original=ratings,
        shown=release,
        truth=right,
        groups=group,
        shown_items=np.diff(release.indptr) > 0,
        items=pa.array(range(ratings.n_items)),
        scale=Scale(*scale, step),
        parameters=parameters or {},
        group_ids=np.arange(group.max() + 1, dtype=np.int64) * 10,
    )


def grouped_means(table: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mean of each group's ratings of each item, NaN where nobody rated; table float[n, m] with NaN."""
    rows = []
    for group in range(groups.max() + 1):
        own = table[groups == group]
        count = (~np.isnan(own)).sum(axis=0)
        rows.append(np.where(count > 0, np.nansum(own, axis=0) / np.maximum(count, 1), np.nan))
    return np.array(rows)
