"""The data of the experiments: ML-100k, as kernels take it."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load
from kgather.udfs._shared.options import seed_number
from kgather.udfs.ratings._held_out import choose_held_out, part_of, rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

LOW, HIGH = 1.0, 5.0
USERS, ITEMS, RATINGS = 943, 1682, 100_000


@dataclass(frozen=True)
class Split:
    """Four fifths of the ratings to learn from; the others as users int32[t], items int32[t], ratings float32[t]."""

    train: RatingMatrix
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]


@dataclass(frozen=True)
class MovieLens:
    """ratings: 943 users by 1,682 items, in the order of their ids. ages: float64[943] or None where not at hand."""

    ratings: RatingMatrix
    ages: NDArray[np.float64] | None

    def splits(self, count: int) -> Iterator[Split]:
        """Splits at random, the same in every run."""
        for seed in range(count):
            held = choose_held_out(self.ratings.indptr, self.ratings.items, 0.2, np.uint64(seed_number(seed) + 1))
            kept = np.delete(np.arange(self.ratings.nnz), held)
            yield Split(
                part_of(self.ratings, kept),
                rows_of(self.ratings.indptr, held),
                self.ratings.items[held],
                self.ratings.values[held],
            )

    @cached_property
    def raters(self) -> NDArray[np.int64]:
        """How many users rated each item, int64[m]."""
        return np.bincount(self.ratings.items, minlength=self.ratings.n_items)

    def most_rated(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The users, int64[u], who rated one of the most rated items, and their table float64[u, count]; NaN: not."""
        return self.chosen(np.argsort(-self.raters, kind="stable")[:count])

    def chosen(self, items: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The same of some items, int[i]: the users, and float64[u, i]."""
        table = np.full((self.ratings.n_users, self.ratings.n_items), np.nan)
        table[rows_of(self.ratings.indptr, np.arange(self.ratings.nnz)), self.ratings.items] = self.ratings.values
        table = table[:, items]
        users = np.flatnonzero(~np.isnan(table).all(axis=1))
        return users, table[users]


def read_movielens(file: Path) -> MovieLens:
    """Read u.data, and the ages of u.user where it lies beside it.

    Raises InputError where the file does not exist or is not ML-100k.
    """
    with duckdb.connect() as con:
        load(con, [str(file)], LoadOptions(fields=("user", "item", "rating", "time")))
        rows = con.sql(
            """
            select dense_rank() over (order by user_id) - 1, dense_rank() over (order by item_id) - 1, rating, user_id
            from loaded.ratings
            where problem is null
            """
        ).fetchnumpy()
    users, items, ratings, ids = (np.asarray(column) for column in rows.values())
    matrix_shape = int(users.max()) + 1, int(items.max()) + 1
    if (*matrix_shape, len(ratings)) != (USERS, ITEMS, RATINGS):
        msg = (
            f"{file} has {len(ratings):,} ratings of {matrix_shape[1]:,} items by {matrix_shape[0]:,} users. The "
            f"papers' experiments are about ML-100k (u.data): {RATINGS:,} of {ITEMS:,} items by {USERS} users."
        )
        raise InputError(msg)
    order = np.lexsort((items, users))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=USERS))]).astype(np.int64)
    matrix = RatingMatrix(USERS, ITEMS, indptr, items[order].astype(np.int32), ratings[order].astype(np.float32))
    return MovieLens(matrix, _ages(file.with_name("u.user"), np.unique(ids)))


def _ages(file: Path, ids: NDArray[np.integer]) -> NDArray[np.float64] | None:
    if not file.exists():
        return None
    with file.open(encoding="latin-1", newline="") as lines:
        by_user = {row[0]: float(row[1]) for row in csv.reader(lines, delimiter="|")}
    return np.array([by_user[str(user)] for user in ids.tolist()])
