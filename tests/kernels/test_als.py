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

from kgather._errors import InputError
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.preferences import als
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT, AlsOptions
from kgather.udfs.ratings._held_out import part_of
from kgather.udfs.ratings.matrix import RatingMatrix

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
        regularization=0.3, count_power=power, level_regularization=1.5, few_raters=20.0, median=False,
    )  # fmt: skip
    harder = 1 + 20.0 / (len(ratings) / len(np.unique(items)))
    for user in range(60):
        rated = items[users == user]
        x = np.concatenate([np.ones((len(rated), 1)), learnt.item_factors[rated]], axis=1)
        target = ratings[users == user] - learnt.item_level[rated]
        penalty = np.diag([1.5] + [0.3 * ratings.std() * len(rated) ** power] * 4) * harder
        expected = np.linalg.solve(x.T @ x + penalty, x.T @ target)
        found = np.concatenate([learnt.user_level[user : user + 1], learnt.user_factors[user]])
        assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("influence", [0.0, 0.02, 0.1, 10.0])
def test_items_solve_their_ridge_regressions_of_winsorized_ratings(influence: float) -> None:
    users, items, ratings = made_up(60, 40, 0.3, 0)
    options = {
        "rank": 3, "holdout": 0.0, "regularization": 0.3, "rare_regularization": 4.0, "item_level_regularization": 2.5,
        "influence": influence, "median": False,
    }  # fmt: skip
    before, after = (learn(matrix_of((users, items, ratings), 60, 40), sweeps=sweeps, **options) for sweeps in (2, 3))
    mean, deviation, moved = ratings.mean(), ratings.std(), 0
    for item in range(40):
        raters = users[items == item]
        n = len(raters)
        x = np.concatenate([np.ones((n, 1)), before.user_factors[raters]], axis=1)
        target = ratings[items == item] - mean - before.user_level[raters]
        strength = 0.3 * deviation * (1 + 4.0 / n)
        square = (before.user_factors**2).sum() / (60 * 3)
        lengths = np.sqrt((before.user_factors[raters] ** 2).sum(axis=1))
        reach = influence * deviation / (1 / (n + 2.5) + np.sqrt(deviation) * lengths / (strength + n * square))
        if influence:
            moved += (np.abs(target) > reach).sum()
            target = np.clip(target, -reach, reach)
        penalty = np.diag([2.5] + [strength] * 3)
        expected = np.linalg.solve(x.T @ x + penalty, x.T @ target)
        found = np.concatenate([after.item_level[item : item + 1] - mean, after.item_factors[item]])
        assert found == pytest.approx(expected, abs=1e-4)
    assert (moved > 0) == (0 < influence < 1)


def test_held_out_ratings_are_taken_out_as_they_were_put_in() -> None:
    """A sweep with ratings held out solves what a sweep without them solves, winsorized or not."""
    matrix = matrix_of(made_up(80, 50, 0.3, 9), 80, 50)
    entries = np.arange(0, matrix.nnz, 7)
    rest = part_of(matrix, np.setdiff1d(np.arange(matrix.nnz), entries))
    nothing = part_of(matrix, np.empty(0, dtype=np.int64))
    for influence in (0.0, 0.03):
        options = AlsOptions(influence=influence, few_raters=0.0)
        found = []
        for ratings, held in ((matrix, part_of(matrix, entries)), (rest, nothing)):
            work = als._Work(ratings, 2, options, 3.4, 1.0, 1, None)
            work.start_items(0, 1.0, None)
            work.solve_users(held)
            work.sweep(held)
            found.append(work.preferences(()))
        for name in FIELDS:
            assert getattr(found[0], name) == pytest.approx(getattr(found[1], name), abs=1e-5)


@pytest.mark.parametrize("raters", [1, 3, 8, 30])
def test_no_rating_moves_its_items_level_far(raters: int) -> None:
    users, items, ratings = made_up(120, 30, 0.5, 10)
    own = np.arange(raters)
    rare = (np.concatenate([users, own]), np.concatenate([items, np.full(raters, 30)]))
    levels = []
    for last in (1.0, 5.0):
        given = np.concatenate([ratings, np.full(raters, 3.0)])
        given[-1] = last
        levels.append(learn(matrix_of((*rare, given), 120, 31), holdout=0.0, sweeps=8).item_level[30])
    moved = levels[1] - levels[0]
    # from one end of the scale to the other, which is twice what leaving it out does
    assert 0 < moved < 2.2 * AlsOptions().influence * ratings.std()
    fitted = []
    for last in (1.0, 5.0):
        given = np.concatenate([ratings, np.full(raters, 3.0)])
        given[-1] = last
        fitted.append(learn(matrix_of((*rare, given), 120, 31), holdout=0.0, sweeps=8, **FOR_FIT).item_level[30])
    assert raters == 30 or fitted[1] - fitted[0] > 1.5 * moved


def test_more_sweeps_lower_the_objective() -> None:
    users, items, ratings = made_up(80, 60, 0.3, 1)
    matrix = matrix_of((users, items, ratings), 80, 60)

    def objective(sweeps: int) -> float:
        found = learn(matrix, rank=4, holdout=0.0, sweeps=sweeps, **(dict(FOR_FIT) | {"count_power": 0.0}))
        squares = (found.user_factors**2).sum() + (found.item_factors**2).sum()
        levels = (found.user_level**2).sum() + ((found.item_level - ratings.mean()) ** 2).sum()
        error = ((predict(found, users, items) - ratings) ** 2).sum()
        return float(error + ratings.std() * squares + FOR_FIT["level_regularization"] * levels)

    values = [objective(sweeps) for sweeps in (1, 2, 4, 8, 16)]
    assert values == sorted(values, reverse=True)


def test_finds_the_tastes_behind_the_ratings() -> None:
    ratings = made_up(400, 200, 0.3, 2, rank=2)
    train, test = split(ratings, 0)
    learnt = learn(matrix_of(train, 400, 200), rank=2, scale=(1, 5), **FOR_FIT)
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
    matrix = matrix_of((users, items, ratings), n_users, n_items)
    learnt = learn(matrix, rank=rank, threads=2)
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
    assert not learnt.item_factors[unseen].any()
    # the median moves the levels of unseen items too
    at_mean = learn(matrix, rank=rank, median=False)
    assert at_mean.item_level[unseen] == pytest.approx(ratings.mean(), abs=1e-6)
    assert np.ptp(learnt.item_level - at_mean.item_level) < 1e-6


def test_all_ratings_equal() -> None:
    users, items, _ = made_up(20, 10, 0.5, 6)
    learnt = learn(matrix_of((users, items, np.full(len(users), 3.5)), 20, 10))
    assert predict(learnt, users, items) == pytest.approx(3.5)


@pytest.mark.parametrize("regularization", [AlsOptions().regularization, 1.0])  # factors near zero, and long ones
@pytest.mark.parametrize("influence", [0.0, 0.02, AlsOptions().influence])
def test_the_scale_of_the_ratings_does_not_matter(regularization: float, influence: float) -> None:
    users, items, ratings = made_up(100, 50, 0.4, 7)
    options = {"rank": 3, "regularization": regularization, "influence": influence}
    one = learn(matrix_of((users, items, ratings), 100, 50), **options)
    other = learn(matrix_of((users, items, 20 * ratings - 60), 100, 50), **options)
    assert predict(other, users, items) == pytest.approx(20 * predict(one, users, items) - 60, abs=0.05)


def _share_above(learnt: Preferences, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> float:
    return float((ratings > predict(learnt, users, items)).mean())


@pytest.mark.parametrize("scale", [None, (1.0, 5.0)], ids=["no scale", "scale"])
def test_half_of_the_ratings_lie_above_what_is_predicted(scale: tuple[float, float] | None) -> None:
    users, items, ratings = made_up(200, 80, 0.4, 11)
    ratings = np.minimum(ratings * 1.3, 5)  # most ratings are the highest: mean and median differ
    matrix = matrix_of((users, items, ratings), 200, 80)
    at_median, at_mean = (learn(matrix, rank=3, scale=scale, median=median) for median in (True, False))
    assert _share_above(at_median, users, items, ratings) == pytest.approx(0.5, abs=0.005)
    assert _share_above(at_mean, users, items, ratings) > 0.52
    # all items' levels are moved by one number, and nothing else is
    moved = at_median.item_level - at_mean.item_level
    assert moved == pytest.approx(moved[0], abs=1e-6)
    assert moved[0] > 0.02
    for name in ("user_level", "user_factors", "item_factors"):
        assert np.array_equal(getattr(at_median, name), getattr(at_mean, name))
    gaps = [ratings - predict(found, users, items) for found in (at_median, at_mean)]
    assert np.abs(gaps[0]).mean() < np.abs(gaps[1]).mean()
    assert (gaps[0] ** 2).mean() > (gaps[1] ** 2).mean()


def test_without_the_median_what_is_predicted_has_the_mean_of_the_ratings() -> None:
    users, items, ratings = made_up(200, 80, 0.4, 11)
    ratings = np.minimum(ratings * 1.3, 5)
    # a level that is not held back fits the mean of its item
    free = {"item_level_regularization": 0.0, "influence": 0.0, "holdout": 0.0}
    learnt = learn(matrix_of((users, items, ratings), 200, 80), rank=3, sweeps=40, median=False, **free)
    assert predict(learnt, users, items).mean() == pytest.approx(ratings.mean(), abs=1e-3)


@pytest.mark.parametrize("median", [True, False])
def test_median_of_ratings_that_are_all_equal(median: bool) -> None:
    users, items, _ = made_up(20, 10, 0.5, 6)
    learnt = learn(matrix_of((users, items, np.full(len(users), 3.5)), 20, 10), median=median)
    assert predict(learnt, users, items) == pytest.approx(3.5)


def test_threads_do_not_change_the_median() -> None:
    matrix = matrix_of(made_up(300, 80, 0.3, 12), 300, 80)
    alone, at_mean = learn(matrix, threads=1), learn(matrix, threads=1, median=False)
    assert _same(alone, learn(matrix, threads=2))
    assert not np.array_equal(alone.item_level, at_mean.item_level)


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
        ({"rare_regularization": -1}, "rare_regularization must be at least 0, not -1"),
        ({"few_raters": -1}, "few_raters must be at least 0, not -1"),
        ({"item_level_regularization": -1}, "item_level_regularization must be at least 0"),
        ({"influence": -0.1}, "influence must be at least 0"),
        ({"median": 1}, "median must be true or false"),
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
    [("ml-100k", 1, 0.720, 0.742), ("ml-latest-small", 0.5, 0.667, 0.680), ("ml-1m", 1, 0.673, 0.696)],
)
def test_release_of_movielens(data_dir, name: str, low: float, best: float, best_released: float) -> None:
    """Groups of 10, every user predicted by the mean vector of its group; FOR_FIT fits as a tuned Funk SVD does."""
    ratings, n, m = movielens_100k(data_dir) if name == "ml-100k" else movielens_csv(data_dir, name)
    train, test = split(ratings, 0)
    fitted = learn(matrix_of(train, n, m), rank=10, scale=(low, 5), threads=2, **FOR_FIT)
    assert mean_absolute_error(predict(fitted, *test[:2]), test[2], low) < best
    learnt = learn(matrix_of(train, n, m), scale=(low, 5), threads=2)
    released = release(learnt, gather(comparison_vectors(learnt), 10))
    assert mean_absolute_error(predict(released, *test[:2]), test[2], low) < best_released


@pytest.mark.parametrize("influence", [0.0, 0.03])
def test_equations_of_parts_of_the_users_are_those_of_all_users(influence: float) -> None:
    """A sweep over the users of three parts solves what a sweep over all of them solves, held-out ratings too."""
    matrix = matrix_of(made_up(90, 50, 0.3, 9), 90, 50)
    options = AlsOptions(influence=influence)
    mean, deviation = matrix.mean_and_deviation()
    counts = matrix.raters()
    whole = als._Work(matrix, 2, options, mean, deviation, 1, None)
    whole.start_items(0, deviation, None)
    frame = als.Frame.of(
        options, 2, mean=mean, deviation=deviation, reach=float(np.ptp(matrix.values)), item_counts=counts
    )
    parts = [als.Part(matrix.with_users(np.arange(lo, lo + 30)), frame) for lo in (0, 30, 60)]
    for part in parts:
        part.hold_out(0.1, np.uint64(5))
        part.solve_users(whole.item_design, whole.item_level, all_ratings=False)
    held_counts = np.concatenate([np.diff(part.held.indptr) for part in parts])
    held = RatingMatrix(
        90,
        50,
        np.concatenate([[0], np.cumsum(held_counts)]).astype(np.int64),
        np.concatenate([part.held.items for part in parts]),
        np.concatenate([part.held.values for part in parts]),
    )
    whole.solve_users(held)
    square = sum(part.squared_lengths() for part in parts) / (90 * 2)
    left = counts - held.raters()
    systems = sum(part.equations(0, 50, left, square, all_ratings=False) for part in parts)
    level, factors = als.solve_items(systems, left, frame)
    whole.sweep(held)
    found = whole.preferences(())
    assert held.nnz > 50
    assert level == pytest.approx(found.item_level, abs=1e-5)
    assert factors == pytest.approx(found.item_factors, abs=1e-5)
