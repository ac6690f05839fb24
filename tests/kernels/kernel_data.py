"""Ratings for the tests of the kernels: made up ones and the public sets, as arrays."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

Ratings = tuple[np.ndarray, np.ndarray, np.ndarray]  # user codes, item codes, ratings


def cpu_seconds(work: Callable[[], object]) -> float:
    """Seconds that processors worked at it, all threads together: what else the machine does hardly counts."""
    start = time.process_time()
    work()
    return time.process_time() - start


def check_growth(work: Callable[[int], object], n: int) -> None:
    """No claim of speed: what is quadratic takes 64 times as long for n as for an eighth of it, what is linear 8."""
    work(n // 64)  # compiled
    usual = max(cpu_seconds(lambda: work(n // 8)), 0.05)  # of what takes less, most is the same for any n
    assert cpu_seconds(lambda: work(n)) <= 24 * usual


def batch(users: Sequence[int], items: Sequence[int], ratings: Sequence[float]) -> pa.RecordBatch:
    """One batch as the pipeline hands it over."""
    return pa.record_batch(
        {
            "user_code": pa.array(users, pa.int32()),
            "item_code": pa.array(items, pa.int32()),
            "rating": pa.array(ratings, pa.float64()),
        }
    )


def matrix_of(ratings: Ratings, n_users: int, n_items: int) -> RatingMatrix:
    """The matrix of the ratings, in whatever order they are."""
    return RatingMatrix.from_batches([batch(*ratings)], n_users, n_items)


def made_up(n_users: int, n_items: int, share: float, seed: int, rank: int = 3) -> Ratings:
    """Ratings 1 to 5 with levels and `rank` tastes behind them; some users and items may have none."""
    rng = np.random.default_rng(seed)
    level = 3.4 + rng.normal(0, 0.4, (n_users, 1)) + rng.normal(0, 0.4, (1, n_items))
    taste = rng.normal(0, 0.6, (n_users, rank)) @ rng.normal(0, 0.6, (rank, n_items))
    users, items = np.nonzero(rng.random((n_users, n_items)) < share)
    rating = np.clip(np.rint(level + taste + rng.normal(0, 0.3, level.shape)), 1, 5)
    return users, items, rating[users, items]


def movielens_100k(data_dir: Path) -> tuple[Ratings, int, int]:
    """The ratings of ML-100k with the numbers of users and items."""
    return _coded(np.loadtxt(data_dir / "ml-100k" / "u.data", usecols=(0, 1, 2)))


def movielens_csv(data_dir: Path, name: str) -> tuple[Ratings, int, int]:
    """The ratings of ML-1M ("ml-1m") or ML-latest-small, with the numbers of users and items."""
    path = data_dir / name / "ratings.csv"
    return _coded(np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1, 2)))


def _coded(raw: np.ndarray) -> tuple[Ratings, int, int]:
    users = np.unique(raw[:, 0], return_inverse=True)[1]
    items = np.unique(raw[:, 1], return_inverse=True)[1]
    return (users, items, raw[:, 2]), int(users.max()) + 1, int(items.max()) + 1


def split(ratings: Ratings, seed: int) -> tuple[Ratings, Ratings]:
    """80% to learn from and 20% to test on, at random."""
    test = np.random.default_rng(seed).random(len(ratings[0])) < 0.2
    return tuple(part[~test] for part in ratings), tuple(part[test] for part in ratings)


def predict(preferences: Preferences, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """What the preferences predict, not clipped."""
    product = np.einsum("ij,ij->i", preferences.user_factors[users], preferences.item_factors[items])
    return preferences.user_level[users] + preferences.item_level[items] + product


def mean_absolute_error(predicted: np.ndarray, rating: np.ndarray, low: float = 1, high: float = 5) -> float:
    """The error of the predictions after clipping them to the scale."""
    return float(np.abs(np.clip(predicted, low, high) - rating).mean())


def release(preferences: Preferences, groups: np.ndarray) -> Preferences:
    """The `predicted` release: every user gets the mean vector of its group."""
    size = np.bincount(groups)

    def mean(column: np.ndarray) -> np.ndarray:
        return np.bincount(groups, weights=column) / size

    factors = np.stack([mean(column) for column in preferences.user_factors.T], axis=1)
    return Preferences(
        mean(preferences.user_level)[groups], factors[groups], preferences.item_level, preferences.item_factors
    )


def group_rows(matrix: RatingMatrix, groups: np.ndarray) -> RatingMatrix:
    """The `pure` release of the papers: one row a group, the mean over those of the group who rated the item."""
    owner = groups[np.repeat(np.arange(matrix.n_users), np.diff(matrix.indptr))].astype(np.int64)
    cell, place = np.unique(owner * matrix.n_items + matrix.items, return_inverse=True)
    mean = np.bincount(place, weights=matrix.values) / np.bincount(place)
    cells = (cell // matrix.n_items, cell % matrix.n_items, mean)
    return matrix_of(cells, int(groups.max()) + 1, matrix.n_items)
