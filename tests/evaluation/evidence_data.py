"""Evidence made by hand, from whole tables."""

import numpy as np
import pyarrow as pa
from kernel_data import matrix_of

from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence, Scale

Table = list[list[float]] | np.ndarray


def evidence_of(
    original: Table,
    low: Table,
    truth: list[int] | np.ndarray,
    *,
    high: Table | None = None,
    groups: list[int] | np.ndarray | None = None,
    scale: tuple[float, float] = (1, 5),
) -> Evidence:
    """original[n, m] and what the candidates show[c, m], NaN where nothing; truth[n]: each user's candidate, or -1."""
    ratings, shown = np.array(original, dtype=float), np.array(low, dtype=float)
    upper = shown if high is None else np.array(high, dtype=float)
    candidate = np.array(truth, dtype=np.int32)
    group = candidate if groups is None else np.array(groups, dtype=np.int32)
    users, items = np.nonzero(~np.isnan(ratings))
    rows, columns = np.nonzero(~np.isnan(shown))
    n_items = ratings.shape[1]
    cells = ShownCells.from_cells(
        np.bincount(candidate[candidate >= 0], minlength=len(shown)),
        n_items,
        rows,
        columns,
        shown[rows, columns],
        upper[rows, columns],
    )
    return Evidence(
        original=matrix_of((users, items, ratings[users, items]), *ratings.shape),
        shown=cells,
        truth=candidate,
        groups=group,
        shown_items=np.diff(cells.indptr) > 0,
        items=pa.array(range(n_items)),
        scale=Scale(*scale, 1.0),
        parameters={"k": 1},
        group_ids=np.arange(int(group.max()) + 1),
    )
