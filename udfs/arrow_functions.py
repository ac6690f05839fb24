"""The kernels as DuckDB functions over lists: one call takes a whole table, so the cost of a call does not matter."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgather.errors import InputError
from kgather.udfs import bkg, metric, preferences
from kgather.udfs.matrix import RatingMatrix

_LEARNT = pa.list_(pa.struct([("row", pa.int32()), ("preference", pa.list_(pa.float32()))]))


@dataclass(frozen=True)
class ArrowFunction:
    """A scalar function of DuckDB: its name, its types in SQL and the Python that computes it on Arrow columns."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    compute: Callable[..., Any]


def gather_vectors(vectors: pa.ChunkedArray, k: Any, tries: Any, seed: Any) -> pa.Array:
    """Group numbers, list<int32>, for each list of vectors, list<list<float>>, by Bisecting K-Gather."""
    calls = zip(vectors.combine_chunks(), k.to_pylist(), tries.to_pylist(), seed.to_pylist(), strict=True)
    return pa.array(
        [_gather(call.values, size, bisections, keyed) for call, size, bisections, keyed in calls],
        type=pa.list_(pa.int32()),
    )


def preference_vectors(ratings: pa.ChunkedArray, rank: Any, solver: Any, metric: Any, seed: Any) -> pa.Array:
    """Preferences, list<struct<row, preference>>, for each list of ratings, list<struct<user_id, item_id, rating>>.

    `row` is the place, from 1, at which the list first names the user.
    """
    options = (column.to_pylist() for column in (rank, solver, metric, seed))
    calls = zip(ratings.combine_chunks(), *options, strict=True)
    return pa.array([_learn(call.values, *chosen) for call, *chosen in calls], type=_LEARNT)


def _gather(vectors: pa.ListArray, k: int, tries: int, seed: int) -> np.ndarray:
    lengths = set(pc.list_value_length(vectors).to_pylist())
    if len(lengths) != 1 or None in lengths:
        msg = f"kg_gather needs preferences of one length, not of {sorted(map(str, lengths))}."
        raise InputError(msg)
    points = np.asarray(vectors.flatten(), dtype=np.float32).reshape(len(vectors), lengths.pop())
    groups = bkg.gather(points, k, tries=tries, seed=seed)
    names = np.random.default_rng().permutation(int(groups.max()) + 1)
    return (names + 1).astype(np.int32)[groups]


def _learn(ratings: pa.StructArray, rank: int, solver: str, chosen_metric: str, seed: int) -> list[dict[str, Any]]:
    users = pc.dictionary_encode(ratings.field("user_id"))
    items = pc.dictionary_encode(ratings.field("item_id"))
    batch = pa.record_batch(
        {"user_code": users.indices, "item_code": items.indices, "rating": ratings.field("rating")}
    )
    matrix = RatingMatrix.from_batches([batch], len(users.dictionary), len(items.dictionary))
    learnt = preferences.learn(matrix, solver=solver, rank=rank, seed=seed)
    vectors = metric.comparison_vectors(learnt, chosen_metric)
    _, first_rows = np.unique(users.indices.to_numpy(), return_index=True)
    return [
        {"row": int(row) + 1, "preference": vector} for row, vector in zip(first_rows, vectors, strict=True)
    ]


FUNCTIONS = (
    ArrowFunction("kg_gather_vectors", ("FLOAT[][]", "INTEGER", "INTEGER", "BIGINT"), "INTEGER[]", gather_vectors),
    ArrowFunction(
        "kg_preference_vectors",
        (
            "STRUCT(user_id VARCHAR, item_id VARCHAR, rating DOUBLE)[]",
            "INTEGER",
            "VARCHAR",
            "VARCHAR",
            "BIGINT",
        ),
        "STRUCT(row INTEGER, preference FLOAT[])[]",
        preference_vectors,
    ),
)


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Make every function known to the connection's database; those that it knows already stay."""
    known = {name for (name,) in con.sql("select distinct function_name from duckdb_functions()").fetchall()}
    for function in FUNCTIONS:
        if function.name not in known:
            con.create_function(
                function.name,
                function.compute,
                list(function.parameters),
                function.returns,
                type="arrow",
                # Group numbers are drawn anew each time: the engine must not fold two calls into one.
                side_effects=True,
            )
