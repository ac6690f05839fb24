"""Sun and Sun: (k, epsilon)-anonymity of ratings, its satisfaction, and the windows that anonymize."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._paper.findings import Finding, number, statement
from kgather._paper.movielens import HIGH, MovieLens
from kgather._sql_functions import load
from kgather.udfs.checking.satisfaction import fewest_neighbours, least_deviation, neighbours
from kgather.udfs.gathering import epsilon
from kgather.udfs.preferences import learning
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.ratings._held_out import rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

_NAN = float("nan")
_TABLE_1 = [(6, 1, _NAN), (1, 6, _NAN), (2, 5, _NAN), (1, _NAN, 5), (2, _NAN, 6)]
_COLUMN_4 = [6, 1, 1, 1, 5]
_TABLE_2 = [(3, 6, _NAN), (2, 5, _NAN), (4, 7, _NAN), (5, 6, _NAN), (1, _NAN, 5), (2, _NAN, 6)]
_TABLE_5 = {"first": ((6, 3, 4, 2), (4, 3, 4, 6)), "second": ((1, 6, 5, 5), (10, 8, 6, 4, 4))}


def satisfaction(data: MovieLens) -> Iterator[Finding]:
    """Sections 4 and 5: the worked tables, and ML-100k itself."""
    first = _matrix(np.array(_TABLE_1))
    near = neighbours(first, 5, r=6, at_most=9, threads=1)
    yield statement(
        "groups of table 1 at epsilon = 5", "3 and 2 users", " and ".join(map(str, sorted({*near.tolist()})[::-1])),
        holds=near.tolist() == [3, 3, 3, 2, 2], reading="null against a rating is as far as the scale is wide",
    )  # fmt: skip
    second = fewest_neighbours(_matrix(np.array(_TABLE_2)), 2, r=6, at_most=9, threads=1)
    yield statement("table 2", "(2, 2)-anonymous", f"({second}, 2)-anonymous", holds=second >= 2)
    yield number("standard deviation of column 4", float(np.std(_COLUMN_4)), 2.23, reading="of the population")
    deviation = least_deviation(
        _matrix(np.array(_TABLE_1[3:])), np.array(_COLUMN_4[3:], dtype=float)[:, None], 1, r=6, threads=1
    )
    yield number("standard deviation of column 4 in {t4, t5}", deviation, 2.0)
    for limit in (1, 2, 3, 4, 5):
        found = neighbours(data.ratings, limit, r=HIGH, at_most=20, threads=1)
        yield number(
            "users of ML-100k with 19 others within epsilon, %", 100 * float((found >= 20).mean()), x=limit,
            of="epsilon",
            reading="all users rated different items, so that none has a neighbour below 5: figures 3 to 6 are of data "
            "that the text does not describe; for their speed see benchmarks/satisfaction.py",
        )  # fmt: skip


def windows(data: MovieLens) -> Iterator[Finding]:
    """Section 6: the window that changes least, and the distortion of ML-100k by epsilon and k."""
    ratings = (3, 4, 5, 6, 7, 7, 8, 8)
    for low, printed in ((3, 11), (4, 7), (5, 5), (6, 6)):
        yield number("distortion of table 4", _moved(ratings, low, 2), printed, x=low, of="window from", within=0)
    for name, (values, printed_row) in _TABLE_5.items():
        start = min(values)
        for place, printed in enumerate(printed_row):
            yield number(
                f"distortion of table 5, {name} column", _moved(values, start + place, 1), printed, x=start + place,
                of="window from", within=0,
                reading="on the ratings that the printed windows follow from; those of table 1 give other numbers",
            )  # fmt: skip
    vectors = comparison_vectors(learning.learn(data.ratings))
    by_epsilon = {limit: _distortion(data, vectors, 40, limit) for limit in (1, 2, 3, 4, 5)}
    for limit, lost in by_epsilon.items():
        yield number("distortion a rating by epsilon (k = 40)", lost, x=limit, of="epsilon")
    by_k = {k: _distortion(data, vectors, k, 2) for k in (5, 10, 20, 40)}
    for k, lost in by_k.items():
        yield number("distortion a rating by k (epsilon = 2)", lost, x=k)
    yield statement(
        "distortion falls with epsilon",
        "to 0 at epsilon = 5",
        f"{by_epsilon[1]:.2f} to {by_epsilon[5]:.2f}",
        holds=by_epsilon[5] == 0 < by_epsilon[4] < by_epsilon[1],
    )
    yield statement("distortion grows with k", "yes", f"{by_k[5]:.2f} to {by_k[40]:.2f}", holds=by_k[5] < by_k[40])


def accuracy(data: MovieLens) -> Iterator[Finding]:
    """Section 7.3: Naive Bayes learnt from anonymized ratings, epsilon = 2, against the original ones."""
    try:
        from sklearn.naive_bayes import CategoricalNB
    except ImportError:
        msg = "the experiment accuracy needs scikit-learn: pip install 'kgather[paper]'."
        raise InputError(msg) from None
    users, table = data.most_rated(10)
    vectors = comparison_vectors(learning.learn(data.ratings))[users]
    plain: list[float] = []
    anonymized: list[float] = []
    most: list[float] = []
    for target in range(table.shape[1]):
        rated = ~np.isnan(table[:, target])
        likes = table[rated, target] >= 4
        features = np.delete(table[rated], target, axis=1)
        matrix = _matrix(features)
        groups, _ = epsilon.decompose(matrix, 10, epsilon=2, rating_range=HIGH, vectors=vectors[rated])
        changed = _windowed(matrix, groups, 2)
        most.append(float(max(likes.mean(), 1 - likes.mean())))
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(likes))
            learn, test = order[: len(order) // 2], order[len(order) // 2 :]
            for values, found in ((features, plain), (changed, anonymized)):
                codes = np.nan_to_num(values, nan=0).astype(int)
                model = CategoricalNB(min_categories=int(HIGH) + 1).fit(codes[learn], likes[learn])
                found.append(float((model.predict(codes[test]) == likes[test]).mean()))
    reading = (
        "whether a user gives one of the ten most rated films 4 or 5, from the ratings of the nine others; (10, 2) "
        f"windows, 50 halves. The task is not described; the more frequent answer is right in {np.mean(most):.0%}"
    )
    yield number("accuracy on the original, %", 100 * float(np.mean(plain)), reading=reading)
    yield number(
        "accuracy on the anonymized ratings, %", 100 * float(np.mean(anonymized)), 75, points=5, reading=reading
    )


def _matrix(table: np.ndarray) -> RatingMatrix:
    users, items = np.nonzero(~np.isnan(table))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=len(table)))]).astype(np.int64)
    return RatingMatrix(
        len(table), table.shape[1], indptr, items.astype(np.int32), table[users, items].astype(np.float32)
    )


def _moved(ratings: tuple[int, ...], low: int, width: int) -> float:
    values = np.array(ratings)
    return float(np.maximum(np.maximum(low - values, values - low - width), 0).sum())


def _windowed(matrix: RatingMatrix, groups: np.ndarray, width: float) -> np.ndarray:
    """The ratings moved into their groups' windows, float64[n, m], NaN where none is shown."""
    with duckdb.connect() as con:
        load(con)
        con.register("kg_groups", pa.table({"user_id": np.arange(len(groups)), "group_id": groups}))
        owners = rows_of(matrix.indptr, np.arange(matrix.nnz))
        con.register("kg_rows", pa.table({"user_id": owners, "item_id": matrix.items, "rating": matrix.values}))
        con.execute(f"create table kg_windows as from kg_intervals('kg_rows', 'kg_groups', {width})")
        users, items, ratings = (
            con.sql("from kg_clip_to_intervals('kg_rows', 'kg_groups', 'kg_windows')").fetchnumpy().values()
        )
    table = np.full((matrix.n_users, matrix.n_items), np.nan)
    table[np.asarray(users), np.asarray(items)] = ratings
    return table


def _distortion(data: MovieLens, vectors: np.ndarray, k: int, width: float) -> float:
    """The mean change of a rating; where only one of the two is rated, the other counts as 0."""
    groups, is_clique = epsilon.decompose(data.ratings, k, epsilon=width, rating_range=HIGH, vectors=vectors)
    table = np.zeros((data.ratings.n_users, data.ratings.n_items))
    table[rows_of(data.ratings.indptr, np.arange(data.ratings.nnz)), data.ratings.items] = data.ratings.values
    changed = np.nan_to_num(_windowed(data.ratings, groups, width))
    # Groups that are near enough as they are need no windows.
    return float(np.abs(changed - table)[~is_clique[groups]].sum() / data.ratings.nnz)
