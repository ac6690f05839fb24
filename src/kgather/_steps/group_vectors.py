"""What a release shows of groups: their means, the farthest drawn in."""

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from kgather._settings.project import read
from kgather._steps.relations import BATCH_ROWS
from kgather.udfs._shared.arrow_columns import lists
from kgather.udfs.preferences import model
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.outliers import drawn_in

_SCHEMA = pa.schema(
    [
        pa.field("group_id", pa.int64()),
        pa.field("level", pa.float32()),
        pa.field("factor", pa.list_(pa.float32())),
    ]
)


def shown_vectors(
    group_means: duckdb.DuckDBPyRelation, factors: duckdb.DuckDBPyRelation, *, settings: str | Mapping[str, Any]
) -> pa.Table:
    """Draw the mean vectors of the farthest groups in, as far as the setting outliers says.

    `group_means` (group_id, level, factor), `factors` what `learn_preferences` gave. How far a group is from the middle
    is measured in what is predicted, whatever users are compared in, as that is what a release shows. Returns a table
    (group_id, level, factor).
    """
    asked = read(settings)
    means = group_means.order("group_id").to_arrow_table().cast(_SCHEMA)
    if asked.outliers == 1 or not len(means):
        return means
    learnt = model.from_table(factors.to_arrow_reader(BATCH_ROWS))
    level = means["level"].to_numpy()
    factor = np.stack(means["factor"].to_numpy())
    groups = Preferences(level, factor.astype(np.float32), learnt.item_level, learnt.item_factors)
    left, _ = drawn_in(
        comparison_vectors(learnt), comparison_vectors(groups), share=asked.outliers, smooth=max(asked.k, 1)
    )
    middle = learnt.user_level.mean(dtype=np.float64), learnt.user_factors.mean(axis=0, dtype=np.float64)
    level = middle[0] + left * (level - middle[0])
    factor = middle[1] + left[:, None] * (factor - middle[1])
    columns = [means["group_id"], pa.array(level.astype(np.float32)), lists(factor.astype(np.float32))]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)
