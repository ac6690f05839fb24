"""The two steps of the pipeline that SQL cannot say, as the dbt Python models call them: relation in, Arrow out."""

import json
import os
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from kgather.errors import PromiseError
from kgather.progress import reporter
from kgather.udfs import bkg, preferences
from kgather.udfs.group_ids import random_group_ids, random_pseudonyms
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.metric import comparison_vectors

_BATCH_ROWS = 1 << 20
_METHODS = {"bkg": bkg.gather}


def learn_preferences(
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    scale: duckdb.DuckDBPyRelation,
    solver: str,
    solver_options: str | Mapping[str, Any],
    rank: int | str,
    seed: int | str,
    threads: int | str,
) -> pa.Table:
    """Learn levels and factors of users and items.

    `coded_ratings` has user_code and item_code (dense, from 0) and rating, `scale` one row with scale_min and
    scale_max. Options may come as text, as dbt renders them.

    Returns a table (side, code, level, factor). Raises InputError where the options make no sense.
    """
    options = json.loads(solver_options) if isinstance(solver_options, str) else dict(solver_options)
    low, high = scale.project("scale_min, scale_max").fetchall()[0]
    n_users, n_items = coded_ratings.aggregate("max(user_code) + 1, max(item_code) + 1").fetchall()[0]
    matrix = RatingMatrix.from_batches(coded_ratings.to_arrow_reader(_BATCH_ROWS), n_users, n_items)
    learnt = preferences.learn(
        matrix,
        solver=solver,
        rank=int(rank),
        seed=int(seed),
        threads=int(threads) or os.cpu_count() or 1,
        # Ratings that are all the same span no scale.
        scale=(low, high) if low < high else None,
        progress=reporter("preferences"),
        **options,
    )
    return preferences.to_table(learnt)


def gather_users(
    factors: duckdb.DuckDBPyRelation,
    *,
    method: str,
    k: int | str,
    metric: str,
    bisection_tries: int | str,
    seed: int | str,
) -> pa.Table:
    """Gather users into groups of at least k and name groups and members at random.

    `factors` is what `learn_preferences` returned. Returns a table (user_code, group_id, pseudonym) in the order of
    the group ids. Raises InputError where the users are fewer than k, PromiseError where a method broke its promise.
    """
    learnt = preferences.from_table(factors.to_arrow_reader(_BATCH_ROWS))
    vectors = comparison_vectors(learnt, metric)
    groups = _METHODS[method](vectors, int(k), tries=int(bisection_tries), seed=int(seed))
    _check_partition(groups, len(vectors), int(k))
    group_ids = random_group_ids(int(groups.max()) + 1)[groups]
    order = np.argsort(group_ids, kind="stable")
    return pa.table(
        {
            "user_code": pa.array(order.astype(np.int32)),
            "group_id": pa.array(group_ids[order]),
            "pseudonym": pa.array(random_pseudonyms(len(groups))),
        }
    )


def _check_partition(groups: np.ndarray, users: int, k: int) -> None:
    """Whatever the method: each user in exactly one group, each group large enough."""
    sizes = np.bincount(groups)
    if groups.shape != (users,) or groups.min() < 0 or sizes.min() < k:
        msg = f"the groups do not hold: the smallest of {sizes.size} has {sizes.min()} of at least {k} users."
        raise PromiseError(msg)
