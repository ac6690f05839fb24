"""The kernels as DuckDB functions over lists: one call takes a whole table, so the cost of a call does not matter.

Nothing here looks at a value or a row in Python: lists come and go as Arrow arrays.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.options import real, whole
from kgather.udfs.checking import item_sets, satisfaction
from kgather.udfs.diversity import item_diversity
from kgather.udfs.gathering import bkg, bounded_t_means, mdav
from kgather.udfs.preferences import learning, metric
from kgather.udfs.ratings.matrix import RatingMatrix
from kgather.udfs.refining.refine import refine

_RATING = ("user_id", "item_id", "rating")
_NEIGHBOURS = pa.struct({"neighbours": pa.int32(), "users": pa.int64()})
_FAILING_SETS = pa.struct({"set_size": pa.int32(), "least_support": pa.int64(), "failing_sets": pa.int64()})


@dataclass(frozen=True)
class ArrowFunction:
    """A scalar function of DuckDB: its name, its types in SQL and the Python that computes it on Arrow columns.

    `macro` is what people call, which calls the function.
    """

    macro: str
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


def epsilon_neighbours(ratings: pa.ChunkedArray, epsilon: Any, k: Any, width: Any, sensitive: Any) -> pa.Array:
    """How many users have how many neighbours, list<struct<neighbours, users>>, for each list of ratings."""
    return _for_each_list(_neighbours, ratings, epsilon, k, width, sensitive)


def epsilon_deviation(ratings: pa.ChunkedArray, sensitive: Any, epsilon: Any, width: Any) -> pa.Array:
    """The smallest standard deviation of a sensitive item among neighbours, double, for each list of ratings."""
    calls = _calls(ratings, sensitive, epsilon, width)
    return pa.array([_deviation(rows, *chosen) for rows, *chosen in calls], pa.float64())


def item_set_support(ratings: pa.ChunkedArray, m: Any, max_sets: Any) -> pa.Array:
    """The smallest number of users who have a set of up to m items that some user has, bigint, for each list."""
    return pa.array([_support(rows, *chosen) for rows, *chosen in _calls(ratings, m, max_sets)], pa.int64())


def item_set_violations(ratings: pa.ChunkedArray, m: Any, k: Any, max_sets: Any) -> pa.Array:
    """Of how many sets of items fewer than k users have each, by size, for each list of ratings."""
    return _for_each_list(_violations, ratings, m, k, max_sets)


def item_coverage(cells: pa.ChunkedArray, b: Any, ratings: pa.ChunkedArray, max_sets: Any) -> pa.Array:
    """The smallest number of groups that show a set of up to b items, bigint, for each list of cells."""
    rated = [call.values for chunk in _chunks(ratings) for call in chunk]
    calls = zip(_calls(cells, b, max_sets), rated, strict=True)
    return pa.array([_coverage(rows, b, rated_rows, limit) for (rows, b, limit), rated_rows in calls], pa.int64())


def _for_each_list(answer: Callable[..., pa.Array], lists: pa.ChunkedArray, *options: Any) -> pa.Array:
    """Call `answer` with the rows of each list and its options; put the answers, as long as the lists, together."""
    return _as_lists([answer(rows, *chosen) for rows, *chosen in _calls(lists, *options)])


def _calls(lists: pa.ChunkedArray, *options: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of each list, None for no list, with its options."""
    return zip((call.values for chunk in _chunks(lists) for call in chunk), *map(_values, options), strict=True)


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


def _groups(
    vectors: NDArray[np.floating | np.integer], k: int, method: str, tries: int, seed: int
) -> NDArray[np.int32]:
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
    _check_present("kg_preferences", "rating", ratings, _RATING)
    users, matrix, _ = _rating_matrix("kg_preferences", ratings)
    learnt = learning.learn(matrix, solver=solver, rank=rank, seed=seed, threads=os.cpu_count() or 1)
    return _beside_first_ratings(users, metric.comparison_vectors(learnt, chosen_metric))


def _rating_matrix(function: str, ratings: pa.StructArray) -> tuple[NDArray[np.int32], RatingMatrix, pa.Array]:
    """The code of each rating's user, the ratings, and the item of each code. Null ratings are not in the matrix."""
    users = pc.dictionary_encode(ratings.field("user_id"))
    items = pc.dictionary_encode(ratings.field("item_id"))
    user_codes, item_codes = users.indices.to_numpy(), items.indices.to_numpy()
    pairs = user_codes.astype(np.int64) * len(items.dictionary) + item_codes
    repeated = len(pairs) - len(np.unique(pairs))
    if repeated:
        msg = (
            f"{function} got {repeated} of {len(pairs)} ratings for a user and an item that it has another one "
            "for. Give one rating for each pair, as with avg(rating) and group by user_id, item_id."
        )
        raise InputError(msg)
    codes = {"user_code": users.indices, "item_code": items.indices, "rating": ratings.field("rating")}
    batch = pa.record_batch(codes)
    batch = batch.filter(pc.is_valid(batch["rating"]))
    n_users, n_items = len(users.dictionary), len(items.dictionary)
    if len(batch):
        return user_codes, RatingMatrix.from_batches([batch], n_users, n_items), items.dictionary
    nothing = np.zeros(n_users + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
    return user_codes, RatingMatrix(n_users, n_items, *nothing), items.dictionary


def _beside_first_ratings(user_codes: NDArray[np.int32], vectors: NDArray[np.float32]) -> pa.Array:
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


def _neighbours(ratings: pa.StructArray | None, epsilon: float, k: int, width: float, sensitive: list[str]) -> pa.Array:
    _check_options("kg_epsilon_neighbours", p_epsilon=epsilon, p_k=k, p_width=width, p_sensitive=sensitive)
    width = real("p_width", width, 0, above=True)
    if not ratings:
        return pa.array([], _NEIGHBOURS)
    _check_present("kg_epsilon_neighbours", "rating", ratings, _RATING[:2])
    _, matrix, items = _rating_matrix("kg_epsilon_neighbours", ratings)
    kept = np.ones(matrix.n_items, dtype=np.bool_)
    kept[_item_codes("kg_epsilon_neighbours", sensitive, items)] = False
    counts = satisfaction.neighbours(
        matrix.with_items(kept), epsilon, r=width, at_most=whole("p_k", k, 1), threads=os.cpu_count() or 1
    )
    neighbours, users = np.unique(counts, return_counts=True)
    return pa.StructArray.from_arrays([pa.array(neighbours), pa.array(users)], fields=list(_NEIGHBOURS))


def _deviation(ratings: pa.StructArray | None, sensitive: list[str], epsilon: float, width: float) -> float | None:
    _check_options("kg_epsilon_deviation", p_sensitive=sensitive, p_epsilon=epsilon, p_width=width)
    width = real("p_width", width, 0, above=True)
    if not ratings:
        return None
    _check_present("kg_epsilon_deviation", "rating", ratings, _RATING[:2])
    _, matrix, items = _rating_matrix("kg_epsilon_deviation", ratings)
    codes = _item_codes("kg_epsilon_deviation", sensitive, items)
    kept = np.ones(matrix.n_items, dtype=np.bool_)
    kept[codes] = False
    indptr, users, values = matrix.transpose()
    table = np.full((matrix.n_users, len(codes)), np.nan)
    for column, code in zip(table.T, codes, strict=True):
        column[users[indptr[code] : indptr[code + 1]]] = values[indptr[code] : indptr[code + 1]]
    least = satisfaction.least_deviation(matrix.with_items(kept), table, epsilon, r=width, threads=os.cpu_count() or 1)
    return least if np.isfinite(least) else None


def _item_codes(function: str, names: list[str], items: pa.Array) -> NDArray[np.int32]:
    """The codes of the named items; refuses names that no rating has, which would pass for harmless."""
    codes = pc.index_in(pa.array(names, items.type), items)
    if codes.null_count:
        msg = (
            f"{function}: {codes.null_count} of the {len(names)} sensitive items occur in no rating. Write them as "
            "they are written there, or leave them out."
        )
        raise InputError(msg)
    return np.asarray(codes.to_numpy())


def _support(ratings: pa.StructArray | None, m: int, max_sets: int) -> int | None:
    _check_options("kg_item_set_support", p_m=m, p_max_sets=max_sets)
    if not ratings:
        return None
    _check_present("kg_item_set_support", "rating", ratings, _RATING[:2])
    _, matrix, _ = _rating_matrix("kg_item_set_support", ratings)
    return item_sets.least_support(matrix, m, max_sets=max_sets, threads=os.cpu_count() or 1)


def _violations(ratings: pa.StructArray | None, m: int, k: int, max_sets: int) -> pa.Array:
    _check_options("kg_item_set_violations", p_m=m, p_k=k, p_max_sets=max_sets)
    if not ratings:
        return pa.array([], _FAILING_SETS)
    _check_present("kg_item_set_violations", "rating", ratings, _RATING[:2])
    _, matrix, _ = _rating_matrix("kg_item_set_violations", ratings)
    least, failing = item_sets.violations(matrix, m, k, max_sets=max_sets, threads=os.cpu_count() or 1)
    sizes = np.flatnonzero(failing)
    rows = [{"set_size": size + 1, "least_support": least, "failing_sets": failing[size]} for size in sizes]
    return pa.array(rows, _FAILING_SETS)


def _coverage(cells: pa.StructArray | None, b: int, ratings: pa.StructArray | None, max_sets: int) -> int | None:
    """ratings: None, nobody rated anything; empty, the sets that a group shows are looked at."""
    _check_options("kg_item_coverage", p_b=b, p_max_sets=max_sets)
    if ratings is None or not (cells or ratings):
        return None
    shown = {name: cells.field(name) if cells else pa.array([], pa.string()) for name in ("group_id", "item_id")}
    if cells:
        _check_present("kg_item_coverage", "cell", cells, ("group_id", "item_id"))
    groups = pc.dictionary_encode(shown["group_id"])
    if len(ratings):
        _check_present("kg_item_coverage", "rating", ratings, _RATING[:2])
        _, matrix, items = _rating_matrix("kg_item_coverage", ratings)
    else:
        once = pa.table(shown).group_by(["group_id", "item_id"]).aggregate([])
        ones = pa.array(np.ones(len(once)))
        columns = [once["group_id"].combine_chunks(), once["item_id"].combine_chunks(), ones]
        _, matrix, items = _rating_matrix("kg_item_coverage", pa.StructArray.from_arrays(columns, names=_RATING))
    wanted = np.zeros(matrix.n_items, dtype=np.bool_)
    wanted[matrix.items] = True
    if not wanted.any():
        return None
    if not cells:
        return 0
    b = whole("p_b", b, 1, 3)
    sets = item_diversity.number_of_sets(matrix, wanted, b) if b > 1 else 0
    if sets > max_sets:
        msg = (
            f"kg_item_coverage would have to look at {sets} sets of items, more than {max_sets}: choose a smaller "
            "p_b, fewer items, or a higher p_max_sets."
        )
        raise InputError(msg)
    # cells of items that nobody rated are in no set
    codes = pc.index_in(shown["item_id"], items)
    rated = pc.is_valid(codes)
    pairs = (groups.indices.filter(rated).to_numpy(), codes.filter(rated).to_numpy())
    return item_diversity.least_coverage(pairs, len(groups.dictionary), matrix, wanted, b=b)


def _matrix(vectors: pa.Array) -> NDArray[np.floating | np.integer]:
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


_RATINGS = "STRUCT(user_id VARCHAR, item_id VARCHAR, rating DOUBLE)[]"
FUNCTIONS = (
    ArrowFunction(
        "kg_gather",
        "kg_gather_vectors",
        ("STRUCT(user_id VARCHAR, preference FLOAT[])[]", "INTEGER", "VARCHAR", "BOOLEAN", "INTEGER", "BIGINT"),
        "INTEGER[]",
        gather_vectors,
    ),
    ArrowFunction(
        "kg_preferences",
        "kg_preference_vectors",
        (_RATINGS, "INTEGER", "VARCHAR", "VARCHAR", "BIGINT"),
        "FLOAT[][]",
        preference_vectors,
    ),
    ArrowFunction(
        "kg_epsilon_neighbours",
        "kg_epsilon_neighbour_counts",
        (_RATINGS, "DOUBLE", "INTEGER", "DOUBLE", "VARCHAR[]"),
        "STRUCT(neighbours INTEGER, users BIGINT)[]",
        epsilon_neighbours,
    ),
    ArrowFunction(
        "kg_epsilon_deviation",
        "kg_epsilon_least_deviation",
        (_RATINGS, "VARCHAR[]", "DOUBLE", "DOUBLE"),
        "DOUBLE",
        epsilon_deviation,
    ),
    ArrowFunction(
        "kg_item_set_support", "kg_item_set_least_support", (_RATINGS, "INTEGER", "BIGINT"), "BIGINT", item_set_support
    ),
    ArrowFunction(
        "kg_item_set_violations",
        "kg_item_set_failures",
        (_RATINGS, "INTEGER", "INTEGER", "BIGINT"),
        "STRUCT(set_size INTEGER, least_support BIGINT, failing_sets BIGINT)[]",
        item_set_violations,
    ),
    ArrowFunction(
        "kg_item_coverage",
        "kg_item_least_coverage",
        ("STRUCT(group_id VARCHAR, item_id VARCHAR)[]", "INTEGER", _RATINGS, "BIGINT"),
        "BIGINT",
        item_coverage,
    ),
)


def _naming(function: ArrowFunction) -> Callable[..., Any]:
    """What computes the function, with the macro's name before what it refuses."""

    @wraps(function.compute)  # the engine counts its parameters
    def compute(*columns: Any) -> Any:
        try:
            return function.compute(*columns)
        except InputError as error:
            if str(error).startswith(function.macro):
                raise
            msg = f"{function.macro}: {error}"
            raise InputError(msg) from error

    return compute


def register(con: duckdb.DuckDBPyConnection) -> None:
    """Make every function known to the connection's database; those that it knows already stay."""
    known = {name for (name,) in con.sql("select distinct function_name from duckdb_functions()").fetchall()}
    for function in FUNCTIONS:
        if function.name not in known:
            con.create_function(
                function.name,
                _naming(function),
                list(function.parameters),
                function.returns,
                type=PythonUDFType.ARROW,
                # A null is an error of the caller's to be told of, not a reason to answer null.
                null_handling=FunctionNullHandling.SPECIAL,
                # Group numbers are drawn anew each time: the engine must not fold two calls into one.
                side_effects=True,
            )
