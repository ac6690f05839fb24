"""ALS: the solution of its equations, the same for any number of threads, for odd shapes too."""

import numpy as np
import pytest
from kernel_data import (
    made_up,
    matrix_of,
    mean_absolute_error,
    movielens_100k,
    movielens_csv,
    predict,
    release,
    split,
)

from kgather.errors import InputError
from kgather.udfs import als
from kgather.udfs.als import AlsOptions
from kgather.udfs.bkg import gather
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.metric import comparison_vectors
from kgather.udfs.preferences import Preferences, learn

FIELDS = ("user_level", "user_factors", "item_level", "item_factors")


def _same(one: Preferences, other: Preferences) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def test_one_rating() -> None:
    learnt = learn(matrix_of(([0], [0], [4.0]), 1, 1), rank=3)
    assert predict(learnt, np.array([0]), np.array([0])) == pytest.approx(4.0)
    assert learnt.held_out_rmse == ()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_users_solve_their_ridge_regressions(power: float) -> None:
    users, items, ratings = made_up(60, 40, 0.3, 0)
    learnt = learn(
        matrix_of((users, items, ratings), 60, 40), rank=4, holdout=0.0, sweeps=3,
        regularization=0.3, count_power=power, level_regularization=1.5,
    )  # fmt: skip
    for user in range(60):
        rated = items[users == user]
        x = np.concatenate([np.ones((len(rated), 1)), learnt.item_factors[rated]], axis=1)
        target = ratings[users == user] - learnt.item_level[rated]
        penalty = np.diag([1.5] + [0.3 * ratings.std() * len(rated) ** power] * 4)
        expected = np.linalg.solve(x.T @ x + penalty, x.T @ target)
        found = np.concatenate([learnt.user_level[user : user + 1], learnt.user_factors[user]])
        assert found == pytest.approx(expected, abs=1e-4)


def test_more_sweeps_lower_the_objective() -> None:
    users, items, ratings = made_up(80, 60, 0.3, 1)
    matrix = matrix_of((users, items, ratings), 80, 60)

    def objective(sweeps: int) -> float:
        found = learn(matrix, rank=4, holdout=0.0, sweeps=sweeps, count_power=0.0)
        squares = (found.user_factors**2).sum() + (found.item_factors**2).sum()
        levels = (found.user_level**2).sum() + ((found.item_level - ratings.mean()) ** 2).sum()
        error = ((predict(found, users, items) - ratings) ** 2).sum()
        return float(error + ratings.std() * squares + AlsOptions().level_regularization * levels)

    values = [objective(sweeps) for sweeps in (1, 2, 4, 8, 16)]
    assert values == sorted(values, reverse=True)


def test_finds_the_tastes_behind_the_ratings() -> None:
    ratings = made_up(400, 200, 0.3, 2, rank=2)
    train, test = split(ratings, 0)
    learnt = learn(matrix_of(train, 400, 200), rank=2, scale=(1, 5))
    # the noise and the rounding to whole ratings have a mean absolute error of about 0.3
    assert mean_absolute_error(predict(learnt, *test[:2]), test[2]) < 0.42
    assert learnt.held_out_rmse[-1] < learnt.held_out_rmse[0]
    assert len(learnt.held_out_rmse) < AlsOptions().sweeps


@pytest.mark.parametrize("block_bytes", [als._BLOCK_BYTES, 4096])
def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(als, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(als, "_ITEMS_AT_ONCE", 37)
    matrix = matrix_of(made_up(500, 300, 0.2, 3), 500, 300)
    alone = learn(matrix, threads=1, seed=5)
    for threads in (2, 3, 8):
        others = learn(matrix, threads=threads, seed=5)
        assert _same(alone, others)
        assert alone.held_out_rmse == others.held_out_rmse
    assert not _same(alone, learn(matrix, seed=6))


def test_large_data_starts_from_a_part_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = split(made_up(900, 120, 0.3, 4), 0)
    matrix = matrix_of(train, 900, 120)
    usual = learn(matrix, rank=3)
    monkeypatch.setattr(als, "_SAMPLE_ABOVE", 1000)
    sampled = learn(matrix, rank=3, threads=2)
    assert _same(sampled, learn(matrix, rank=3, threads=1))
    assert not _same(sampled, usual)
    errors = [mean_absolute_error(predict(found, *test[:2]), test[2]) for found in (usual, sampled)]
    assert errors[1] == pytest.approx(errors[0], abs=0.01)


@pytest.mark.parametrize(
    ("n_users", "n_items", "share", "rank"),
    [(1, 30, 0.6, 10), (30, 1, 0.6, 10), (5, 4, 0.9, 50), (40, 30, 0.02, 3), (2, 2, 1.0, 1)],
)
def test_odd_shapes(n_users: int, n_items: int, share: float, rank: int) -> None:
    users, items, ratings = made_up(n_users, n_items, share, 5)
    learnt = learn(matrix_of((users, items, ratings), n_users, n_items), rank=rank, threads=2)
    assert learnt.user_factors.shape == (n_users, rank)
    assert learnt.item_factors.shape == (n_items, rank)
    for name in FIELDS:
        column = getattr(learnt, name)
        assert np.isfinite(column).all()
        assert column.dtype == np.float32
        assert column.flags.c_contiguous
    unseen = np.setdiff1d(np.arange(n_users), users)
    assert not learnt.user_level[unseen].any()
    assert not learnt.user_factors[unseen].any()
    unseen = np.setdiff1d(np.arange(n_items), items)
    assert learnt.item_level[unseen] == pytest.approx(ratings.mean(), abs=1e-6)
    assert not learnt.item_factors[unseen].any()


def test_all_ratings_equal() -> None:
    users, items, _ = made_up(20, 10, 0.5, 6)
    learnt = learn(matrix_of((users, items, np.full(len(users), 3.5)), 20, 10))
    assert predict(learnt, users, items) == pytest.approx(3.5)


def test_the_scale_of_the_ratings_does_not_matter() -> None:
    users, items, ratings = made_up(100, 50, 0.4, 7)
    one = learn(matrix_of((users, items, ratings), 100, 50), rank=3)
    other = learn(matrix_of((users, items, 20 * ratings - 60), 100, 50), rank=3)
    assert predict(other, users, items) == pytest.approx(20 * predict(one, users, items) - 60, abs=0.05)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    learn(matrix_of(made_up(50, 30, 0.5, 8), 50, 30), progress=lambda done, most: told.append((done, most)))
    assert told[0] == (0, 20)
    assert told[-1] == (20, 20)
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epochs": 3}, "als has no option 'epochs'; its options are: sweeps, regularization"),
        ({"solver": "svd"}, "no solver 'svd'; the solvers are: als, funk"),
        ({"rank": 0}, "rank must be at least 1, not 0"),
        ({"rank": 2.0}, "rank must be a whole number"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"scale": (5, 1)}, "the lowest rating of the scale, 5, must be below the highest, 1"),
        ({"scale": (1, float("inf"))}, "the highest rating must be a finite number"),
        ({"regularization": 0}, "regularization must be more than 0, not 0"),
        ({"regularization": "much"}, "regularization must be a finite number, not 'much'"),
        ({"count_power": 2}, "count_power must be at least 0 and at most 1, not 2"),
        ({"holdout": 0.9}, "holdout must be"),
        ({"sweeps": True}, "sweeps must be a whole number"),
        ({"refit": 0}, "refit must be at least 1"),
    ],
)
def test_refuses(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        learn(matrix_of(([0], [0], [1.0]), 1, 1), **options)


def test_refuses_no_ratings() -> None:
    nothing = RatingMatrix(1, 1, np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    with pytest.raises(InputError, match="no ratings to learn from"):
        learn(nothing)


@pytest.mark.parametrize(
    ("name", "low", "best", "best_released"),
    [("ml-100k", 1, 0.720, 0.737), ("ml-latest-small", 0.5, 0.667, 0.668), ("ml-1m", 1, 0.673, 0.696)],
)
def test_release_of_movielens(data_dir, name: str, low: float, best: float, best_released: float) -> None:
    """Groups of 10, every user predicted by the mean vector of its group; a tuned Funk SVD reaches about the same."""
    ratings, n, m = movielens_100k(data_dir) if name == "ml-100k" else movielens_csv(data_dir, name)
    train, test = split(ratings, 0)
    learnt = learn(matrix_of(train, n, m), scale=(low, 5), threads=2)
    assert mean_absolute_error(predict(learnt, *test[:2]), test[2], low) < best
    released = release(learnt, gather(comparison_vectors(learnt), 10))
    assert mean_absolute_error(predict(released, *test[:2]), test[2], low) < best_released
