"""The kernels as DuckDB functions over lists: one call takes a whole table, so the cost of a call does not matter.

Nothing here looks at a value or a row in Python: lists come and go as Arrow arrays.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from kgather.errors import InputError
from kgather.udfs import bkg, bounded_t_means, mdav, metric, preferences
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.refine import refine


@dataclass(frozen=True)
class ArrowFunction:
    """A scalar function of DuckDB: its name, its types in SQL and the Python that computes it on Arrow columns."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    compute: Callable[..., Any]


def gather_vectors(users: pa.ChunkedArray, k: Any, method: Any, refined: Any, tries: Any, seed: Any) -> pa.Array:
    """A group number, int32, for each user of each list<struct<user_id, preference>>."""
    return _for_each_list(_gather, users, k, method, refined, tries, seed)


def preference_vectors(ratings: pa.ChunkedArray, rank: Any, solver: Any, metric: Any, seed: Any) -> pa.Array:
    """The user's preference, list<float>, at each user's first rating of each list<struct<user_id, item_id, rating>>.

    It is null at the user's other ratings, so that the answer lies beside the list it was asked about.
    """
    return _for_each_list(_learn, ratings, rank, solver, metric, seed)


def _for_each_list(answer: Callable[..., pa.Array], lists: pa.ChunkedArray, *options: Any) -> pa.Array:
    """Call `answer` with the rows of each list and its options; put the answers, as long as the lists, together."""
    calls = zip((call.values for chunk in _chunks(lists) for call in chunk), *map(_values, options), strict=True)
    return _as_lists([answer(rows, *chosen) for rows, *chosen in calls])


def _chunks(column: Any) -> Sequence[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _values(column: Any) -> list[Any]:
    return column.to_pylist()


def _as_lists(answers: list[pa.Array]) -> pa.Array:
    offsets = np.cumsum([0, *map(len, answers)])
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.concat_arrays(answers))


def _gather(users: pa.StructArray | None, k: int, method: str, refined: bool, tries: int, seed: int) -> pa.Array:
    _check_options("kg_gather", p_k=k, p_method=method, p_refine=refined, p_tries=tries, p_seed=seed)
    if not users:
        msg = f"kg_gather got no users; it needs at least p_k = {k}."
        raise InputError(msg)
    _check_present("kg_gather", "user", users, ("user_id", "preference"))
    repeated = len(users) - pc.count_distinct(users.field("user_id")).as_py()
    if repeated:
        msg = (
            f"kg_gather got {len(users)} rows of {len(users) - repeated} users. Give one row for each user: a user "
            "who counts twice makes a group look larger than it is."
        )
        raise InputError(msg)
    groups = _groups(_matrix(users.field("preference")), k, method, tries, seed)
    if refined:
        groups = refine(_matrix(users.field("preference")), groups, k, threads=os.cpu_count() or 1)
    names = np.random.default_rng().permutation(int(groups.max()) + 1) + 1
    return pa.array(names.astype(np.int32)[groups])


def _groups(vectors: np.ndarray, k: int, method: str, tries: int, seed: int) -> np.ndarray:
    if method == "bkg":
        return bkg.gather(vectors, k, tries=tries, seed=seed)
    if method == "mdav":
        return mdav.gather(vectors, k, threads=os.cpu_count() or 1)
    if method == "bounded_t_means":
        return bounded_t_means.gather(vectors, k, seed=seed, threads=os.cpu_count() or 1)
    msg = f"kg_gather: there is no p_method '{method}'; the methods are: bkg, mdav, bounded_t_means."
    raise InputError(msg)


def _learn(ratings: pa.StructArray | None, rank: int, solver: str, chosen_metric: str, seed: int) -> pa.Array:
    _check_options("kg_preferences", p_rank=rank, p_solver=solver, p_metric=chosen_metric, p_seed=seed)
    if not ratings:
        msg = "kg_preferences got no ratings."
        raise InputError(msg)
    _check_present("kg_preferences", "rating", ratings, ("user_id", "item_id", "rating"))
    users = pc.dictionary_encode(ratings.field("user_id"))
    items = pc.dictionary_encode(ratings.field("item_id"))
    user_codes, item_codes = users.indices.to_numpy(), items.indices.to_numpy()
    pairs = user_codes.astype(np.int64) * len(items.dictionary) + item_codes
    repeated = len(pairs) - len(np.unique(pairs))
    if repeated:
        msg = (
            f"kg_preferences got {repeated} of {len(pairs)} ratings for a user and an item that it has another one "
            "for. Give one rating for each pair, as with avg(rating) and group by user_id, item_id."
        )
        raise InputError(msg)
    batch = pa.record_batch({"user_code": users.indices, "item_code": items.indices, "rating": ratings.field("rating")})
    matrix = RatingMatrix.from_batches([batch], len(users.dictionary), len(items.dictionary))
    learnt = preferences.learn(matrix, solver=solver, rank=rank, seed=seed, threads=os.cpu_count() or 1)
    return _beside_first_ratings(user_codes, metric.comparison_vectors(learnt, chosen_metric))


def _beside_first_ratings(user_codes: np.ndarray, vectors: np.ndarray) -> pa.Array:
    """The vectors as lists, each at the place where its user's code comes first; null elsewhere."""
    first = np.zeros(len(user_codes), dtype=bool)
    first[np.unique(user_codes, return_index=True)[1]] = True
    # Codes are given in the order of first appearance, so the vectors are in the order of the places.
    offsets = np.concatenate([[0], np.cumsum(first) * vectors.shape[1]])
    return pa.LargeListArray.from_arrays(
        pa.array(offsets, pa.int64()),
        pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32()),
        mask=pa.array(~first),
    )


def _matrix(vectors: pa.Array) -> np.ndarray:
    """Lists of numbers as the rows of a matrix."""
    lengths = pc.unique(pc.list_value_length(vectors)).to_pylist()
    if len(lengths) != 1:
        msg = f"kg_gather needs preferences of one length, not of {', '.join(map(str, sorted(lengths)))} numbers."
        raise InputError(msg)
    numbers = vectors.flatten()
    if numbers.null_count:
        msg = f"kg_gather got preferences with {numbers.null_count} nulls in them. Every number must be there."
        raise InputError(msg)
    return numbers.to_numpy().reshape(len(vectors), lengths[0])


def _check_options(function: str, **options: Any) -> None:
    for name, value in options.items():
        if value is None:
            msg = f"{function}: {name} is null."
            raise InputError(msg)


def _check_present(function: str, row: str, rows: pa.StructArray, fields: tuple[str, ...]) -> None:
    for name in fields:
        missing = rows.field(name).null_count
        if missing:
            msg = f"{function} got {missing} of {len(rows)} {row}s with a null {name}. Fill it, or leave them out."
            raise InputError(msg)


FUNCTIONS = (
    ArrowFunction(
        "kg_gather_vectors",
        ("STRUCT(user_id VARCHAR, preference FLOAT[])[]", "INTEGER", "VARCHAR", "BOOLEAN", "INTEGER", "BIGINT"),
        "INTEGER[]",
        gather_vectors,
    ),
    ArrowFunction(
        "kg_preference_vectors",
        (
            "STRUCT(user_id VARCHAR, item_id VARCHAR, rating DOUBLE)[]",
            "INTEGER",
            "VARCHAR",
            "VARCHAR",
            "BIGINT",
        ),
        "FLOAT[][]",
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
                type=PythonUDFType.ARROW,
                # A null is an error of the caller's to be told of, not a reason to answer null.
                null_handling=FunctionNullHandling.SPECIAL,
                # Group numbers are drawn anew each time: the engine must not fold two calls into one.
                side_effects=True,
            )
