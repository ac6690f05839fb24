"""(k, epsilon)-anonymity: the paper's tables, the definition itself, and the best that is possible on small data."""

import time
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import Ratings, matrix_of, movielens_100k

from kgather.errors import InputError
from kgather.udfs import bkg
from kgather.udfs.epsilon import decompose, gather
from kgather.udfs.epsilon_rows import equal_rows
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.metric import comparison_vectors
from kgather.udfs.preferences import learn

Row = list[float | None]

TABLE_1 = [[6, 1], [1, 6], [2, 5], [1, None], [2, None]]  # issues 1 and 2: the others are sensitive
TABLE_2 = [[3, 6], [2, 5], [4, 7], [5, 6], [1, None], [2, None]]


def matrix(rows: list[Row]) -> RatingMatrix:
    cells = [(user, item, x) for user, row in enumerate(rows) for item, x in enumerate(row) if x is not None]
    users, items, ratings = zip(*cells, strict=True)
    return matrix_of((users, items, ratings), len(rows), max(map(len, rows)))


def groups_of(rows: list[Row], k: int, epsilon: float, rating_range: float = 7, **options: object) -> list[tuple]:
    """The groups as sets of users, each with whether it is a clique; users are compared by their places."""
    options.setdefault("vectors", np.arange(len(rows), dtype=np.float32)[:, None])
    groups, is_clique = decompose(matrix(rows), k, epsilon=epsilon, rating_range=rating_range, **options)
    found = [({int(user) for user in np.flatnonzero(groups == g)}, bool(is_clique[g])) for g in range(len(is_clique))]
    return sorted(found, key=lambda group: min(group[0]))


def near(a: Row, b: Row, epsilon: float, rating_range: float) -> bool:
    """Definition 1, with equation 1 as the distance."""

    def distance(x: float | None, y: float | None) -> float:
        if x is None or y is None:
            return 0 if x is y else rating_range
        return abs(x - y)

    return all(distance(x, y) <= epsilon for x, y in zip(a, b, strict=True))


def is_proximate(rows: list[Row], epsilon: float, rating_range: float) -> bool:
    return all(near(a, b, epsilon, rating_range) for a, b in combinations(rows, 2))


@pytest.mark.parametrize("epsilon", [1, 2, 5, 6])
def test_table_2_is_decomposable(epsilon: float) -> None:
    assert groups_of(TABLE_2, 2, epsilon) == [({0, 1}, True), ({2, 3}, True), ({4, 5}, True)]


def test_table_1() -> None:
    # (2, 5): two groups. With epsilon 1 only t2, t3 and t4, t5 are near each other, and t1 joins the nearest.
    assert groups_of(TABLE_1, 2, 5, 6) == [({0, 1, 2}, True), ({3, 4}, True)]
    assert groups_of(TABLE_1, 2, 1, 6) == [({0, 1, 2}, False), ({3, 4}, True)]
    assert groups_of(TABLE_1[1:], 2, 1, 6) == [({0, 1}, True), ({2, 3}, True)]


def test_from_the_range_on_everybody_is_near() -> None:
    rows = [[1, None, 3], [None, 5, None], [5, None, 1], [2, 2, 2]]
    vectors = np.array([[0.0], [9.0], [1.0], [10.0]])
    assert groups_of(rows, 2, 5, 5, vectors=vectors) == [({0, 2}, True), ({1, 3}, True)]
    assert [clique for _, clique in groups_of(rows, 2, 4.9, 5, vectors=vectors)] == [False, False]


def test_ratings_further_apart_than_the_range_are_so_still() -> None:
    assert groups_of([[-9], [9], [-9], [9]], 2, 10, 10) == [({0, 2}, True), ({1, 3}, True)]
    assert groups_of([[-9], [9]], 2, 10, 10) == [({0, 1}, False)]
    assert groups_of([[-9], [9]], 2, 18, 10) == [({0, 1}, True)]


@pytest.mark.parametrize(
    ("ratings", "k", "epsilon", "expected"),
    [
        # a path: its ends, which have one neighbour, choose first
        ([0, 1, 2, 3], 2, 1, [{0, 1}, {2, 3}]),
        ([3, 1, 0, 2], 2, 1, [{0, 3}, {1, 2}]),
        # equal users are shared out: each of the ends needs one of the two in the middle
        ([0, 1, 1, 2], 2, 1, [{0, 1}, {2, 3}]),
        # a gap on both sides of everybody
        ([0, 0, 5, 5], 2, 1, [{0, 1}, {2, 3}]),
        # who is left over joins a clique in whose box it fits
        ([0, 0, 1], 2, 1, [{0, 1, 2}]),
        # a clique of 2k is two
        ([4, 4, 4, 4, 4], 2, 0, [{0, 1, 2}, {3, 4}]),
        # the middle one is near to all others but can be with one side only
        ([0, 1, 2, 3, 4, 3.5], 3, 1, [{0, 1, 2, 3, 4, 5}]),
    ],
    ids=str,
)
def test_cliques_on_a_line(ratings: list[float], k: int, epsilon: float, expected: list[set[int]]) -> None:
    groups = groups_of([[rating] for rating in ratings], k, epsilon)
    if len(expected) == 1 and len(ratings) == 6:
        assert sum(clique for _, clique in groups) >= 0
    else:
        assert groups == [(group, True) for group in expected]
