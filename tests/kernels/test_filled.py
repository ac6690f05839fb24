"""The filled matrix: cells known by hand, exact zeros, MovieLens, and input that is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import made_up, matrix_of, movielens_100k, predict

from kgather._errors import InputError
from kgather.udfs.preferences.filled import filled_ratings, filled_scores
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

# three users, four items: 5 . . 2 / 1 3 . 2 / . 3 4 2
TABLE = (np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.array([0, 3, 0, 1, 3, 1, 2, 3]), np.array([5, 2, 1, 3, 2, 3, 4, 2]))


def table() -> RatingMatrix:
    return matrix_of(TABLE, 3, 4)


def model(**changed: np.ndarray) -> Preferences:
    given = Preferences(
        user_level=np.array([1, 0, -1], dtype=np.float32),
        user_factors=np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32),
        item_level=np.array([3, 2, 4, 1], dtype=np.float32),
        item_factors=np.array([[0, 0], [2, 0], [0, 3], [1, 1]], dtype=np.float32),
    )
    return replace(given, **changed)


def test_cells_known_by_hand() -> None:
    values = filled_ratings(table(), fill=3)
    assert values.dtype == np.float64
    assert values.tolist() == [[5, 3, 3, 2], [1, 3, 3, 2], [3, 3, 4, 2]]
    assert filled_ratings(table(), fill=2.5).tolist() == [[5, 2.5, 2.5, 2], [1, 3, 2.5, 2], [2.5, 3, 4, 2]]


def test_predictions_known_by_hand() -> None:
    # user 0, item 1: 1 + 2 + (1, 0).(2, 0) = 5; item 2: 1 + 4 + 0; user 1, item 2: 0 + 4 + 3; user 2, item 0: -1 + 3
    assert filled_ratings(table(), fill=model()).tolist() == [[5, 5, 5, 2], [1, 3, 7, 2], [2, 3, 4, 2]]


def test_scores_known_by_hand() -> None:
    # item 0: mean 3, variance 8/3; item 2: mean 10/3, variance 2/9; items 1 and 3 are constant
    scores = filled_scores(table(), fill=3)
    expected = [[1.5**0.5, 0, -(0.5**0.5), 0], [-(1.5**0.5), 0, -(0.5**0.5), 0], [0, 0, 2**0.5, 0]]
    assert scores == pytest.approx(np.array(expected), abs=1e-15)
    assert not scores[:, [1, 3]].any()


@pytest.mark.parametrize("fill", [0.1, 1 / 3, 1e-300, -1e30, 3.4e38])
@pytest.mark.parametrize("n", [1, 3, 10, 997])
def test_constant_items_are_exactly_zero(n: int, fill: float) -> None:
    # the mean of n times 0.1 is not always 0.1
    everyone = np.arange(n)
    matrix = matrix_of((everyone, np.zeros(n, dtype=int), np.full(n, 0.1)), n, 2)
    assert not filled_scores(matrix, fill=fill).any()


@pytest.mark.parametrize("size", [1e-37, 1e-9, 1, 1e9, 3e38])
def test_small_and_large_ratings(size: float) -> None:
    values = np.array([1, 0, -1, 1, 0, -1]) * size
    scores = filled_scores(matrix_of((np.arange(6), np.zeros(6, dtype=int), values), 6, 1), fill=0)
    assert scores[:, 0] == pytest.approx(np.array([1, 0, -1, 1, 0, -1]) * 1.5**0.5, abs=1e-12)


def test_ratings_that_hardly_differ() -> None:
    # neighbouring doubles: their mean is none, and rounds to one of them
    matrix = matrix_of((np.array([0, 1]), np.array([0, 0]), np.array([3, 3])), 4, 1)
    scores = filled_scores(matrix, fill=float(np.nextafter(3, 4)))
    assert scores[:, 0].tolist() == [-1, -1, 1, 1]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.floats(-3, 8), st.integers(2, 40), st.integers(1, 12))
def test_promises_on_any_data(seed: int, fill: float, n: int, m: int) -> None:
    ratings = made_up(n, m, 0.5, seed)
    ratings = (np.append(ratings[0], 0), np.append(ratings[1], m), np.append(ratings[2], 3.0))
    matrix = matrix_of(ratings, n, m + 1)
    values, scores = filled_ratings(matrix, fill=fill), filled_scores(matrix, fill=fill)
    dense = np.full((n, m + 1), fill)
    dense[ratings[0], ratings[1]] = ratings[2]
    assert np.array_equal(values, dense)
    varies = np.ptp(values, axis=0) > 0
    assert not scores[:, ~varies].any()
    assert scores.mean(axis=0) == pytest.approx(np.zeros(m + 1), abs=1e-7)
    assert (scores[:, varies] ** 2).mean(axis=0) == pytest.approx(np.ones(varies.sum()))
    # equal ratings of an item stay equal, to the last bit
    for item in range(m + 1):
        assert len(np.unique(scores[:, item])) <= len(np.unique(values[:, item]))


def test_movielens(data_dir: Path) -> None:
    ratings, n, m = movielens_100k(data_dir)
    matrix = matrix_of(ratings, n, m)
    values, scores = filled_ratings(matrix, fill=3), filled_scores(matrix, fill=3)
    assert values.size == 1_586_126  # as the paper counts them
    assert ((values - values.mean(axis=0)) ** 2).sum() == pytest.approx(142_695.6, abs=0.1)
    assert ((values - 3) ** 2).sum() == 154_788
    constant = np.ptp(values, axis=0) == 0
    assert constant.sum() == 40
    assert not scores[:, constant].any()
    assert (scores**2).sum() == pytest.approx(n * (m - 40))


def test_what_a_solver_predicts() -> None:
    ratings = made_up(60, 40, 0.4, seed=1)
    matrix = matrix_of(ratings, 60, 40)
    learnt = learn(matrix, rank=3)
    values = filled_ratings(matrix, fill=learnt)
    assert np.array_equal(values[ratings[0], ratings[1]], ratings[2])
    rated = np.zeros(values.shape, dtype=bool)
    rated[ratings[0], ratings[1]] = True
    users, items = np.nonzero(~rated)
    assert values[users, items] == pytest.approx(predict(learnt, users, items), abs=1e-5)


@pytest.mark.parametrize("fill", ["3", None, True, np.nan, np.inf, -np.inf, 1e39, [3]])
def test_refuses_fill(fill: object) -> None:
    for method in (filled_ratings, filled_scores):
        with pytest.raises(InputError, match="fill must be"):
            method(table(), fill=fill)


def test_refuses_preferences_of_other_ratings() -> None:
    with pytest.raises(InputError, match="of 2 users and 4 items, the ratings of 3 and 4"):
        filled_scores(table(), fill=model(user_level=np.zeros(2, dtype=np.float32)))
    with pytest.raises(InputError, match="of 3 users and 5 items"):
        filled_scores(table(), fill=model(item_level=np.zeros(5, dtype=np.float32)))


@pytest.mark.parametrize("name", ["user_level", "user_factors", "item_level", "item_factors"])
def test_refuses_preferences_that_are_not_finite(name: str) -> None:
    wrong = getattr(model(), name).copy()
    wrong.flat[1] = np.nan
    with pytest.raises(InputError, match="not finite"):
        filled_scores(table(), fill=model(**{name: wrong}))
