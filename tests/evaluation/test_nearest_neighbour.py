"""Predictions of the nearest neighbours: worked by hand, against a loop over whole rows, and on ml-100k."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from kernel_data import matrix_of, mean_absolute_error, movielens_100k, split

from kgather._errors import InputError
from kgather.udfs.measuring.nearest_neighbour import predict
from kgather.udfs.ratings.matrix import RatingMatrix

NAN = float("nan")


def matrix(table: list[list[float]] | np.ndarray) -> RatingMatrix:
    cells = np.array(table, dtype=float)
    users, items = np.nonzero(~np.isnan(cells))
    return matrix_of((users, items, cells[users, items]), *cells.shape)


def one(table: list[list[float]] | np.ndarray, row: int, item: int, **options: object) -> float:
    [found] = predict(matrix(table), np.array([row]), np.array([item]), **options)  # type: ignore[arg-type]
    return float(found)


def test_a_prediction_worked_by_hand() -> None:
    # Row 0 is centred (1, -1, .), row 1 (0, -2, 2): similarity (0 + 2) / sqrt(2 * 8) = 0.5; row 2 (-1, 1, 0) is
    # dissimilar, so that only row 1 speaks: 4 + (5 - 3).
    table = [[5, 3, NAN], [3, 1, 5], [2, 4, 3]]
    assert one(table, 0, 2) == pytest.approx(6)


def test_nearest_neighbours_come_first() -> None:
    table = [[5, 3, NAN, NAN], [5, 3, 4, 2], [5, 3, 1, 3]]
    # Centred: row 1 (1.5, -0.5, 0.5, -1.5), row 2 (2, 0, -2, 0).
    first = 2 / (2 * 5) ** 0.5
    second = 2 / (2 * 8) ** 0.5
    assert one(table, 0, 2) == pytest.approx(4 + (0.5 * first - 2 * second) / (first + second))
    assert one(table, 0, 2, neighbours=1) == pytest.approx(4.5)


def test_without_neighbours_the_items_mean_is_taken_and_then_the_rows() -> None:
    table = [[3, 3, NAN, NAN], [3, 1, 5, NAN], [2, 4, 2, NAN]]
    assert one(table, 0, 2) == 3.5
    assert one(table, 0, 3) == 3
    assert one(table, 1, 3) == 3
    # Weighted by the users that a row stands for.
    assert one(table, 0, 2, weights=np.array([1, 2, 1])) == 4


def test_a_row_of_several_users_has_twins() -> None:
    # One of two members: the other has the same row, which shows the item.
    table = [[5, 3, 4], [1, 5, 1]]
    assert one(table, 0, 2, weights=np.array([2, 1])) == pytest.approx(4)
    # Alone the row has no neighbour.
    assert one(table, 0, 2, weights=np.array([1, 1])) == pytest.approx(2.5)


def brute_force(table: np.ndarray, row: int, item: int, weights: np.ndarray, neighbours: int) -> float:
    """Every member a row of its own, the one asked for left out; in float64, as the kernel is."""
    repeated = np.repeat(table.astype(np.float64), weights, axis=0)
    owners = np.repeat(np.arange(len(table)), weights)
    me = int(np.flatnonzero(owners == row)[0])
    with np.errstate(invalid="ignore"):
        means = np.nansum(repeated, axis=1) / (~np.isnan(repeated)).sum(axis=1)
    centred = np.nan_to_num(repeated - means[:, None])
    norms = np.sqrt((centred**2).sum(axis=1))
    speaking = []
    for other in range(len(repeated)):
        if other == me or np.isnan(repeated[other, item]) or norms[me] * norms[other] == 0:
            continue
        alike = 1.0 if owners[other] == row else centred[me] @ centred[other] / norms[me] / norms[other]
        if alike > 1e-9:
            speaking.append((-alike, other))
    speaking = sorted(speaking)[:neighbours]
    if speaking:
        total = -sum(alike for alike, _ in speaking)
        return means[me] + sum(-alike * (repeated[other, item] - means[other]) for alike, other in speaking) / total
    rated = ~np.isnan(repeated[:, item])
    if rated.any():
        return float(repeated[rated, item].mean())
    return 0.0 if np.isnan(means[me]) else float(means[me])


# A cosine of up to six ratings is rounded by at most so much. A prediction is a mean weighted by cosines, so it is off
# by that, relative to the smallest one that counts, times how far ratings lie apart.
ROUNDING = 16 * np.finfo(np.float64).eps
LEAST_COSINE = 1e-4
APART = 10


def least_cosine(table: np.ndarray) -> float:
    """The smallest distance of a similarity from 0, but for pairs with nothing in common."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without ratings have no mean
        centred = np.nan_to_num(table - np.nanmean(table.astype(np.float64), axis=1, keepdims=True))
    products, lengths = np.abs(centred @ centred.T), np.sqrt((centred**2).sum(axis=1))
    return float((products / np.maximum(np.outer(lengths, lengths), 1e-9))[products > 0].min(initial=1))


@example(seed=2587, n=7, items=4, weighted=False)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), items=st.integers(1, 6), weighted=st.booleans())
@settings(max_examples=80, deadline=None)
def test_predictions_are_those_of_repeated_rows(seed: int, n: int, items: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    # No two similarities are equal, which the order of rows would decide.
    table = np.where(rng.random((n, items)) < 0.6, rng.normal(3, 1, (n, items)).astype(np.float32), NAN)
    table[0, 0] = 3
    assume(least_cosine(table) >= LEAST_COSINE)
    weights = rng.integers(1, 4, n) if weighted else np.ones(n, dtype=int)
    rows, columns = (side.ravel() for side in np.indices(table.shape))
    found = predict(matrix(table), rows, columns, weights=weights, neighbours=1000)
    expected = [brute_force(table, row, item, weights, 1000) for row, item in zip(rows, columns, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING / LEAST_COSINE * APART)


def test_threads_and_order_change_nothing() -> None:
    rng = np.random.default_rng(1)
    table = np.where(rng.random((200, 60)) < 0.2, rng.integers(1, 6, (200, 60)), NAN)
    rows, items = rng.integers(0, 200, 3000), rng.integers(0, 60, 3000)
    once = predict(matrix(table), rows, items)
    np.testing.assert_array_equal(predict(matrix(table), rows, items, threads=4), once)
    order = rng.permutation(3000)
    np.testing.assert_array_equal(predict(matrix(table), rows[order], items[order]), once[order])


def test_equal_users_and_constant_rows_are_no_burden() -> None:
    same = np.tile([[1.0, 2, 3, 4]], (50, 1))
    assert one(same, 0, 3) == pytest.approx(4)
    assert one(np.full((50, 4), 3.0), 0, 3) == 3
    assert one([[3.0]], 0, 0) == 3
    assert len(predict(matrix([[3.0]]), np.empty(0, int), np.empty(0, int))) == 0


@pytest.mark.parametrize(
    ("rows", "items", "options", "told"),
    [
        ([2], [0], {}, "codes of a row are 0 to 1"),
        ([0], [-1], {}, "codes of a item are 0 to 1"),
        ([0, 1], [0], {}, "same length"),
        ([0], [0], {"weights": np.array([1, 0])}, "at least 1 for each row"),
        ([0], [0], {"weights": np.array([1.0, 1.0])}, "whole number"),
        ([0], [0], {"neighbours": 0}, "neighbours must be at least 1"),
    ],
    ids=["row", "item", "lengths", "weight 0", "weights of another type", "neighbours"],
)
def test_what_makes_no_sense_is_refused(rows: list[int], items: list[int], options: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        predict(matrix([[1, 2], [3, 4]]), np.array(rows), np.array(items), **options)


def test_it_predicts_better_than_item_means(data_dir: Path) -> None:
    ratings, n_users, n_items = movielens_100k(data_dir)
    train, test = split(ratings, 0)
    found = predict(matrix_of(train, n_users, n_items), test[0], test[1], threads=2)
    # Means of items have 0.816 to 0.818.
    assert mean_absolute_error(found, test[2]) == pytest.approx(0.730, abs=0.01)
