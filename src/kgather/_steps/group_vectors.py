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
from kgather.udfs.preferences.outliers import draw_groups_in

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
    level, factor = draw_groups_in(learnt, level, factor, share=asked.outliers, smooth=asked.k)
    columns = [means["group_id"], pa.array(level.astype(np.float32)), lists(factor.astype(np.float32))]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)
