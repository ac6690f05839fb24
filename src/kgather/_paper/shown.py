"""Rows that an experiment shows of users, as a release is read beside its original: what attacks and metrics take."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence, Scale
from kgather._paper.movielens import HIGH, LOW
from kgather.udfs.ratings.matrix import RatingMatrix


def rows_shown(ratings: RatingMatrix, rows: NDArray[np.float64], truth: NDArray[np.integer]) -> Evidence:
    """Rows float64[r, m], NaN where nothing is shown, beside the ratings; truth int[n]: the row that is each user's."""
    places, items = np.nonzero(~np.isnan(rows))
    values = rows[places, items]
    return Evidence(
        original=ratings,
        shown=ShownCells.from_cells(
            np.bincount(truth, minlength=len(rows)), rows.shape[1], places, items, values, values
        ),
        truth=truth.astype(np.int32),
        groups=truth.astype(np.int32),
        shown_items=np.ones(rows.shape[1], dtype=bool),
        items=pa.array(np.arange(rows.shape[1])),
        scale=Scale(LOW, HIGH, 1.0),
        parameters={},
        group_ids=np.arange(len(rows)),
    )
