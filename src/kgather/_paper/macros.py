"""kgather's SQL macros on the arrays of an experiment: what a release would hold, computed as a release computes it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._sql_functions import load
from kgather.udfs.ratings._held_out import rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database with the macros for all experiments: creating them takes longer than calling them."""
    con = duckdb.connect(config={"threads": 1})
    load(con)
    return con


@contextmanager
def _connected() -> Iterator[duckdb.DuckDBPyConnection]:
    con = _database().cursor()
    try:
        yield con
    finally:
        con.close()


@contextmanager
def opened(ratings: RatingMatrix, groups: NDArray[np.integer]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the macros and the relations `ratings` and `groups`, ids being places from 0.

    groups: int[n], -1 for users who are in none.
    """
    with _connected() as con:
        owners = rows_of(ratings.indptr, np.arange(ratings.nnz))
        register(con, "ratings", user_id=owners, item_id=ratings.items, rating=ratings.values.astype(np.float64))
        members = np.flatnonzero(groups >= 0)
        register(con, "groups", user_id=members, group_id=groups[members])
        yield con


def register(con: duckdb.DuckDBPyConnection, name: str, **columns: NDArray[Any] | Sequence[Any]) -> None:
    """Make a table of columns, all of one length."""
    con.register(f"{name}_given", pa.table(columns))
    con.execute(f"create or replace table {name} as from {name}_given")
    con.unregister(f"{name}_given")


def matrix_of(table: NDArray[np.float64]) -> RatingMatrix:
    """A table of users x items, float64[n, m], NaN where not rated."""
    users, items = np.nonzero(~np.isnan(table))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=len(table)))]).astype(np.int64)
    return RatingMatrix(
        len(table), table.shape[1], indptr, items.astype(np.int32), table[users, items].astype(np.float32)
    )


def centroids(ratings: RatingMatrix, groups: NDArray[np.integer], fill: float) -> NDArray[np.float64]:
    """The mean filled row of every group, float64[g, m], by kg_microaggregate."""
    shape = int(groups.max()) + 1, ratings.n_items
    places, items = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    with opened(ratings, groups) as con:
        register(con, "cells", group_id=places, item_id=items)
        return _table(con, f"from kg_microaggregate('cells', 'ratings', 'groups', {fill!r})", shape)


def group_rows(ratings: RatingMatrix, groups: NDArray[np.integer]) -> RatingMatrix:
    """One row a group: the mean of each item over the members who rated it, by kg_pure. groups: int[n] from 0."""
    with opened(ratings, groups) as con:
        rows = con.sql(
            "select group_id, item_id, rating from kg_pure('ratings', 'groups', p_one_per_pair := true) order by all"
        ).fetchnumpy()
    owners, items, values = (np.asarray(column) for column in rows.values())
    n = int(groups.max()) + 1
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))]).astype(np.int64)
    return RatingMatrix(n, ratings.n_items, indptr, items.astype(np.int32), values.astype(np.float32))


def noise(filled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noise of one standard deviation of each column on every cell, float64[n, m], by kg_gaussian_noise.

    The draw is the same in every run. Noise of sigma standard deviations is sigma times as much.
    """
    users, items = np.divmod(np.arange(filled.size), filled.shape[1])
    with _connected() as con:
        register(con, "cells", user_id=users, item_id=items, rating=filled.reshape(-1))
        con.execute("select setseed(0.5)").fetchall()
        return _table(con, "from kg_gaussian_noise('cells', 1, null, null)", filled.shape) - filled


def is_noise(added: NDArray[np.float64], filled: NDArray[np.float64]) -> bool:
    """Whether what is added, float64[n, m], is Gaussian noise of one standard deviation of each column, drawn anew for
    each cell: to protect by the same number for a whole row or column, or by nothing, is another method.
    """
    deviations = filled.std(axis=0)
    if not np.isfinite(added).all() or (added[:, deviations == 0] != 0).any():
        return False
    z = added[:, deviations > 0] / deviations[deviations > 0]
    rows, columns = z.shape
    of_rows, of_columns = z.mean(axis=1) * np.sqrt(columns), z.mean(axis=0) * np.sqrt(rows)
    return bool(
        abs(z.std() - 1) < 0.02
        and abs((z**4).mean() - 3) < 0.2
        and (of_rows**2).mean() < 2
        and (of_columns**2).mean() < 2
    )


def windowed(ratings: RatingMatrix, groups: NDArray[np.integer], width: float) -> NDArray[np.float64]:
    """The ratings in their groups' windows, float64[n, m], NaN where none is shown."""
    with opened(ratings, groups) as con:
        con.execute(f"create or replace table windows as from kg_intervals('ratings', 'groups', {width!r})")
        shown = "from kg_clip_to_intervals('ratings', 'groups', 'windows')"
        return _table(con, shown, (ratings.n_users, ratings.n_items))


def moved(column: NDArray[np.float64], low: float, width: float) -> float:
    """The distortion of one group's ratings of one item, float64[n], moved into the window from `low` on."""
    with opened(matrix_of(column[:, None]), np.zeros(len(column), dtype=np.int64)) as con:
        register(con, "windows", group_id=[0], item_id=[0], low=[float(low)], high=[float(low + width)])
        shown = _table(con, "from kg_clip_to_intervals('ratings', 'groups', 'windows')", (len(column), 1))
    return float(np.abs(shown[:, 0] - column).sum())


def best_window(column: NDArray[np.float64], width: float) -> float:
    """Where the window begins that kg_intervals finds for one group's ratings of one item, float64[n]."""
    with opened(matrix_of(column[:, None]), np.zeros(len(column), dtype=np.int64)) as con:
        [(low,)] = con.sql(f"select low from kg_intervals('ratings', 'groups', {width!r})").fetchall()
    return float(low)


def ranges(
    table: NDArray[np.float64], groups: NDArray[np.integer], hierarchy: Sequence[tuple[int, float, float]]
) -> Bounds:
    """What kg_generalize_ranges shows of every group, float64[g, a] twice, NaN where blank."""
    shape = int(groups.max()) + 1, table.shape[1]
    with opened(matrix_of(table), groups) as con:
        level, low, high = zip(*hierarchy, strict=True)
        register(con, "hierarchy", level=level, low=low, high=high)
        con.execute("create or replace table shown as from kg_generalize_ranges('ratings', 'groups', 'hierarchy')")
        return _bounds(con, "range.low", "range.high", shape)


def spans_of_sets(table: NDArray[np.float64], groups: NDArray[np.integer]) -> Bounds:
    """The least and the greatest value of what kg_generalize_sets shows, float64[g, a] twice, NaN where blank."""
    with opened(matrix_of(table), groups) as con:
        con.execute("create or replace table shown as from kg_generalize_sets('ratings', 'groups')")
        return _bounds(con, 'list_min("values")', 'list_max("values")', (int(groups.max()) + 1, table.shape[1]))


def classes_of_sets(table: NDArray[np.float64], groups: NDArray[np.integer]) -> NDArray[np.int64]:
    """The class of each group, int64[g]: groups whose sets of kg_generalize_sets are the same are one."""
    with opened(matrix_of(table), groups) as con:
        con.execute("create or replace table shown as from kg_generalize_sets('ratings', 'groups')")
        told = con.sql(
            'select group_id, list((item_id, list_sort("values")) order by item_id)::varchar as told '
            "from shown group by group_id"
        ).fetchnumpy()
    texts = np.full(int(groups.max()) + 1, "", dtype=object)  # groups without a value show nothing, and are alike
    texts[np.asarray(told["group_id"])] = np.asarray(told["told"])
    return np.unique(texts.astype(str), return_inverse=True)[1].reshape(-1).astype(np.int64)


def losses(
    bounds: Bounds, groups: NDArray[np.integer], k: int, width: float, same: NDArray[np.int64] | None = None
) -> tuple[float, float, float]:
    """DM, C_AVG and GenILoss by the macros. bounds: float64[g, a] twice. same: the class of each group, int64[g]; if it
    is not given, groups that show the same bounds are one."""
    low, high = bounds
    if same is None:
        shown = np.concatenate([np.isnan(low), np.nan_to_num(low), np.nan_to_num(high)], axis=1)
        same = np.unique(shown, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    classes = same[groups]
    places, items = np.nonzero(~np.isnan(low))
    with _connected() as con:
        register(con, "classes", group_id=classes)
        register(con, "members", group_id=groups)
        register(con, "artifacts", item_id=np.arange(low.shape[1]))
        register(con, "bounds", group_id=places, item_id=items, low=low[places, items], high=high[places, items])
        calls = (
            "kg_discernibility('classes')",
            f"kg_average_class_size('classes', {k})",
            f"kg_generalized_information_loss('bounds', 'members', 'artifacts', {width!r})",
        )
        dm, average, loss = (float(con.sql(f"from {call}").fetchall()[0][0]) for call in calls)
    return dm, average, loss


def risk_conditions(bounds: Bounds, groups: NDArray[np.integer], k: int) -> int:
    """How many conditions on artifacts, each a value that is shown, match fewer than k users: kg_risk_conditions."""
    low, high = bounds
    with _connected() as con:
        texts = [
            [f"{low[group, a]:g}-{high[group, a]:g}" if not np.isnan(low[group, a]) else "" for group in groups]
            for a in range(low.shape[1])
        ]
        names = [f"artifact_{a}" for a in range(len(texts))]
        register(con, "shown", **dict(zip(names, texts, strict=True)))
        listed = ", ".join(f"'{name}'" for name in names)
        query = f"select coalesce(sum(conditions), 0) from kg_risk_conditions('shown', [{listed}], {k}, {len(names)})"
        [(found,)] = con.sql(query).fetchall()
    return int(found)


def _bounds(con: duckdb.DuckDBPyConnection, low: str, high: str, shape: tuple[int, int]) -> Bounds:
    least, greatest = (
        _table(con, f"select group_id, item_id, {bound} as bound from shown", shape) for bound in (low, high)
    )
    return least, greatest


def _table(con: duckdb.DuckDBPyConnection, query: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Rows (place, item, number) as a table, NaN where there is none."""
    rows, columns, values = (np.asarray(column) for column in con.sql(query).fetchnumpy().values())
    table = np.full(shape, np.nan)
    table[rows, columns] = values
    return table


def shuffled(groups: NDArray[np.integer], seed: int = 0) -> NDArray[Any]:
    """Groups of the same sizes with members drawn at random: what gathering without looking gives."""
    return groups[np.random.default_rng(seed).permutation(len(groups))]


def large_enough(groups: NDArray[np.integer], k: int | NDArray[np.integer]) -> bool:
    """Whether every group is as large as asked for, in all, k, or by each of its members, int[n]: what is measured of
    other groups is not of a method that gathers.
    """
    return bool((np.bincount(groups)[groups] >= k).all())
