"""Preferences, as the pipeline learns them."""

import os
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from kgather._progress import reporter
from kgather._settings.project import read
from kgather._steps import compiling
from kgather._steps.relations import BATCH_ROWS, columns, count
from kgather.udfs.preferences import learning, model
from kgather.udfs.ratings.matrix import RatingMatrix

compiling.tell()


def learn_preferences(
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    users: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    scale: duckdb.DuckDBPyRelation,
    settings: str | Mapping[str, Any],
) -> pa.Table:
    """Learn levels and factors of users and items.

    `coded_ratings` has user_code and item_code (dense, from 0) and rating, `users` (user_code and rated, a user's
    number of items) and `items` a row for each code, `scale` one row with scale_min and scale_max. `settings` are
    the project's vars as dbt hands them over (see `kgather._settings.project.read`).

    Returns a table (side, code, level, factor), empty where the solver is none. Raises InputError where the options
    make no sense.
    """
    asked = read(settings)
    if asked.solver == "none":
        return model.SCHEMA.empty_table()
    low, high = scale.project("scale_min, scale_max").fetchall()[0]
    [rated] = columns(users.order("user_code"), "rated")
    n_items = count(items)
    matrix = RatingMatrix.from_batches(coded_ratings.to_arrow_reader(BATCH_ROWS), len(rated), n_items, rated)
    learnt = learning.learn(
        matrix,
        solver=asked.solver,
        rank=asked.rank,
        seed=asked.seed,
        threads=asked.threads or os.cpu_count() or 1,
        # Ratings that are all the same span no scale.
        scale=(low, high) if low < high else None,
        progress=reporter("preferences"),
        **asked.solver_options,
    )
    return model.to_table(learnt)
