"""Funk's SVD: the steps as they are written down, and the numbers of the thesis."""

import numpy as np
import pytest
from kernel_data import (
    Ratings,
    group_rows,
    made_up,
    matrix_of,
    mean_absolute_error,
    movielens_100k,
    predict,
    split,
)

from kgather._errors import InputError
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.preferences.funk import visiting_order
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.options import FunkOptions


def _by_the_book(ratings: Ratings, n: int, m: int, rank: int, options: FunkOptions) -> tuple[np.ndarray, np.ndarray]:
    # one row a rating, by user and item as the matrix has them, then in the order of visits
    by_place = np.lexsort((ratings[1], ratings[0]))[visiting_order(len(ratings[0]), 0)]
    users, items, rating = (column[by_place] for column in ratings)
    left = rating.astype(np.float64).copy()
    p_all, q_all = np.empty((n, rank)), np.empty((m, rank))
    for factor in range(rank):
        p, q = np.full(n, options.init), np.full(m, options.init)
        for _ in range(options.epochs):
            for u, i, target in zip(users, items, left, strict=True):
                error = target - p[u] * q[i]
                p[u], q[i] = (
                    p[u] + options.learning_rate * (error * q[i] - options.regularization * p[u]),
                    q[i] + options.learning_rate * (error * p[u] - options.regularization * q[i]),
                )
        left -= p[users] * q[items]
        p_all[:, factor], q_all[:, factor] = p, q
    return p_all, q_all


def test_one_step_by_hand() -> None:
    # rating 4, p = q = 0.1: error 3.99, step 0.01 (3.99 * 0.1 - 0.5 * 0.1) = 0.00349 for both
    learnt = learn(
        matrix_of(([0], [0], [4.0]), 1, 1), solver="funk", rank=1, epochs=1, learning_rate=0.01, regularization=0.5
    )
    assert learnt.user_factors == pytest.approx(0.10349)
    assert learnt.item_factors == pytest.approx(0.10349)
    assert learnt.user_level.tolist() == learnt.item_level.tolist() == [0]
    assert learnt.held_out_rmse == ()


@pytest.mark.parametrize("seed", range(3))
def test_same_as_the_steps_as_written(seed: int) -> None:
    ratings = made_up(25, 15, 0.4, seed)
    options = FunkOptions(learning_rate=0.02, regularization=0.05, epochs=30)
    learnt = learn(
        matrix_of(ratings, 25, 15), solver="funk", rank=3, learning_rate=0.02, regularization=0.05, epochs=30
    )
    p, q = _by_the_book(ratings, 25, 15, 3, options)
    assert learnt.user_factors == pytest.approx(p, abs=1e-5)
    assert learnt.item_factors == pytest.approx(q, abs=1e-5)


def test_levels_are_taken_out() -> None:
    rng = np.random.default_rng(0)
    user_level, item_level = rng.normal(0, 1, 12), rng.normal(3, 1, 7)
    users, items = np.divmod(np.arange(12 * 7), 7)
    matrix = matrix_of((users, items, user_level[users] + item_level[items]), 12, 7)
    learnt = learn(matrix, solver="funk", biases=True, level_regularization=0.0, init=0.0)
    assert learnt.user_level == pytest.approx(user_level - user_level.mean(), abs=1e-5)
    assert learnt.item_level == pytest.approx(item_level + user_level.mean(), abs=1e-5)
    assert not learnt.user_factors.any()
    damped = learn(matrix, solver="funk", biases=True, level_regularization=20.0)
    assert np.abs(damped.user_level).mean() < 0.5 * np.abs(learnt.user_level).mean()


def test_early_stopping_holds_out_ratings() -> None:
    matrix = matrix_of(made_up(80, 50, 0.5, 1), 80, 50)
    options = {"solver": "funk", "rank": 3, "learning_rate": 0.02, "early_stopping": True, "holdout": 0.1}
    learnt = learn(matrix, scale=(1, 5), **options)
    assert len(learnt.held_out_rmse) == 3
    assert learnt.held_out_rmse[-1] < 1.0
    again = learn(matrix, scale=(1, 5), threads=2, **options)
    assert np.array_equal(learnt.user_factors, again.user_factors)
    assert not np.array_equal(learnt.user_factors, learn(matrix, seed=1, **options).user_factors)


@pytest.mark.parametrize(("n_users", "n_items"), [(1, 1), (1, 9), (9, 1), (30, 20)])
def test_odd_shapes(n_users: int, n_items: int) -> None:
    matrix = matrix_of(([n_users - 1], [n_items - 1], [3.0]), n_users, n_items)
    for biases in (False, True):
        learnt = learn(matrix, solver="funk", rank=12, biases=biases, early_stopping=True)
        assert learnt.user_factors.shape == (n_users, 12)
        assert np.isfinite(learnt.user_factors).all()
        assert np.isfinite(learnt.item_factors).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sweeps": 3}, "funk has no option 'sweeps'; its options are: learning_rate, regularization, epochs"),
        ({"learning_rate": 0}, "learning_rate must be more than 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"biases": 1}, "biases must be true or false, not 1"),
        ({"learning_rate": 1.0, "init": 50.0}, "does not converge with a learning rate of 1"),
    ],
)
def test_refuses(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        learn(matrix_of(made_up(20, 10, 0.5, 0), 20, 10), solver="funk", **options)


def test_error_on_movielens_as_in_the_thesis(data_dir) -> None:
    """MAE of 20 factors on 20% of the ratings: 0.748 in the thesis, 0.751 over three random splits."""
    ratings, n, m = movielens_100k(data_dir)
    errors = []
    for seed in range(3):
        train, test = split(ratings, seed)
        learnt = learn(matrix_of(train, n, m), solver="funk", rank=20)
        errors.append(mean_absolute_error(predict(learnt, *test[:2]), test[2]))
    assert np.mean(errors) == pytest.approx(0.751, abs=0.005)


def test_small_groups_beat_the_baseline_as_in_the_thesis(data_dir) -> None:
    """A Funk SVD learnt from the group rows: k = 2 and 3 slightly better than one learnt from the users' rows."""
    ratings, n, m = movielens_100k(data_dir)
    train, test = split(ratings, 0)
    matrix = matrix_of(train, n, m)
    vectors = learn(matrix, solver="funk", rank=10).user_factors

    def error(rows: np.ndarray) -> float:
        learnt = learn(group_rows(matrix, rows), solver="funk", rank=20)
        return mean_absolute_error(predict(learnt, rows[test[0]], test[1]), test[2])

    baseline = error(np.arange(n))
    worse = {k: error(gather(vectors, k)) - baseline for k in (2, 3, 10)}
    assert worse[2] < 0
    assert worse[3] < 0
    assert worse[10] < 0.004
    at_random = np.random.default_rng(0).permutation(gather(vectors, 10))
    assert error(at_random) - baseline > 0.03
