"""Reading ratings: any order gives the same matrix, and what is not a rating is refused."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import batch, made_up, matrix_of

from kgather._errors import InputError
from kgather.udfs.ratings import matrix as matrix_module
from kgather.udfs.ratings.matrix import RatingMatrix


def _same(one: RatingMatrix, other: RatingMatrix) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in ("indptr", "items", "values")
    )


def test_by_hand() -> None:
    matrix = RatingMatrix.from_batches([batch([0, 0, 2], [1, 3, 0], [4, 2.5, 1])], 4, 5)
    assert matrix.indptr.tolist() == [0, 2, 2, 3, 3]
    assert matrix.items.tolist() == [1, 3, 0]
    assert matrix.values.tolist() == [4, 2.5, 1]
    assert (matrix.indptr.dtype, matrix.items.dtype, matrix.values.dtype) == (np.int64, np.int32, np.float32)
    indptr, users, values = matrix.transpose()
    assert indptr.tolist() == [0, 1, 2, 2, 3, 3]
    assert users.tolist() == [2, 0, 0]
    assert values.tolist() == [1, 4, 2.5]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_in_any_batches(data: st.DataObject) -> None:
    users, items, ratings = made_up(12, 9, 0.5, data.draw(st.integers(0, 50)))
    if len(users) == 0:
        return
    expected = matrix_of((users, items, ratings), 12, 9)
    kind = data.draw(st.sampled_from(["sorted", "by user", "by item", "shuffled", "sorted but for the end"]))
    noise = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(len(users))
    order = {
        "sorted": np.arange(len(users)),
        "by user": np.lexsort((noise, users)),
        "by item": np.lexsort((users, items)),
        "shuffled": noise,
        "sorted but for the end": np.roll(np.arange(len(users)), -1),
    }[kind]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(users)), max_size=4)))
    whole = batch(users[order], items[order], ratings[order])
    edges = [0, *cuts, len(users)]
    batches = [whole.slice(lo, hi - lo) for lo, hi in pairwise(edges)]
    assert _same(RatingMatrix.from_batches(iter(batches), 12, 9), expected)
    assert _same(RatingMatrix.from_batches(iter(batches), 12, 9, np.bincount(users, minlength=12)), expected)


def test_pieces_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = made_up(40, 30, 0.4, 1)
    expected = matrix_of(ratings, 40, 30)
    monkeypatch.setattr(matrix_module, "_PIECE", 17)
    noise = np.random.default_rng(0).permutation(len(ratings[0]))
    assert _same(matrix_of(ratings, 40, 30), expected)
    assert _same(matrix_of(tuple(part[noise] for part in ratings), 40, 30), expected)


def test_many_ratings_of_one_user_are_sorted() -> None:
    items = np.random.default_rng(0).permutation(50_000)
    matrix = matrix_of((np.zeros(50_000, int), items, items % 5), 1, 50_000)
    assert np.array_equal(matrix.items, np.arange(50_000))
    assert np.array_equal(matrix.values, np.arange(50_000) % 5)


@pytest.mark.parametrize("behind", [1, 2, 16, 17, 40])
def test_ratings_that_came_later_are_put_among_the_others(behind: int) -> None:
    users, items, ratings = made_up(40, 90, 0.6, 2)
    last = np.random.default_rng(behind).permutation(len(users))[: behind * 8]
    others = np.delete(np.arange(len(users)), last)
    order = np.concatenate([others, last])
    assert _same(
        matrix_of((users[order], items[order], ratings[order]), 40, 90), matrix_of((users, items, ratings), 40, 90)
    )
    own = np.flatnonzero(users == 0)[: behind + 1]
    turned = np.roll(own, -1) if behind > 1 else own[::-1]
    alone = matrix_of((users[turned], items[turned], ratings[turned]), 40, 90)
    assert alone.items.tolist() == sorted(items[own].tolist())


def test_a_pair_twice_is_found_behind_the_others() -> None:
    items = np.append(np.arange(30), 7)
    with pytest.raises(InputError, match="item code 7 more than once"):
        matrix_of((np.zeros(31, int), items, np.ones(31)), 1, 30)


def test_transpose_of_made_up_ratings() -> None:
    users, items, ratings = made_up(50, 20, 0.3, 3)
    indptr, by_item, values = matrix_of((users, items, ratings), 50, 20).transpose()
    order = np.lexsort((users, items))
    assert np.array_equal(np.diff(indptr), np.bincount(items, minlength=20))
    assert np.array_equal(by_item, users[order])
    assert np.array_equal(values, ratings[order].astype(np.float32))


def test_other_types_and_columns_are_cast() -> None:
    given_batch = pa.record_batch(
        {
            "rating": pa.array([Decimal("1.5"), Decimal("4.0")]),
            "other": pa.array(["a", "b"]),
            "item_code": pa.array([0, 1], pa.uint8()),
            "user_code": pa.array([0, 0], pa.int64()),
        }
    )
    assert RatingMatrix.from_batches([given_batch], 1, 2).values.tolist() == [1.5, 4.0]


def _columns(**changed: pa.Array) -> pa.RecordBatch:
    columns = {
        "user_code": pa.array([0, 1], pa.int32()),
        "item_code": pa.array([0, 0], pa.int32()),
        "rating": pa.array([1.0, 2.0]),
        **changed,
    }
    return pa.record_batch({name: column for name, column in columns.items() if column is not None})


@pytest.mark.parametrize(
    ("given_batch", "says"),
    [
        (_columns(rating=None), "need one column 'rating'; they have: user_code, item_code"),
        (_columns(rating=pa.array([1.0, None])), "1 values of the column 'rating' are null"),
        (_columns(user_code=pa.array([None, None], pa.int32())), "2 values of the column 'user_code' are null"),
        (_columns(rating=pa.array(["1", "2"])), "'rating' must be double; it is string"),
        (_columns(rating=pa.array([True, False])), "'rating' must be double; it is bool"),
        (_columns(user_code=pa.array([0, 2**40])), "'user_code' must be int32"),
        (_columns(item_code=pa.array([0.5, 1.0])), "'item_code' must be int32"),
        (_columns(user_code=pa.array([0, 5], pa.int32())), r"user code 5 is out of range: expected within 0\.\.1"),
        (_columns(item_code=pa.array([-1, 0], pa.int32())), r"item code -1 is out of range"),
        (_columns(rating=pa.array([1.0, np.nan])), "rating nan is out of range"),
        (_columns(rating=pa.array([1.0, np.inf])), "rating inf is out of range"),
        (_columns(rating=pa.array([1.0, 1e39])), r"rating 1e\+39 is out of range"),
        (_columns(user_code=pa.array([1, 1], pa.int32())), "user code 1 has rated item code 0 more than once"),
        (_columns().slice(0, 0), "there are no ratings"),
    ],
)
def test_refuses(given_batch: pa.RecordBatch, says: str) -> None:
    with pytest.raises(InputError, match=says):
        RatingMatrix.from_batches([given_batch], 2, 2)
    counts = [0, 2] if "more than once" in says else [1, 1] if given_batch.num_rows else [0, 0]
    with pytest.raises(InputError, match=says):
        RatingMatrix.from_batches([given_batch], 2, 2, np.array(counts))


@pytest.mark.parametrize(
    ("counts", "says"),
    [([1, 2], "user code 0 has more ratings than were counted"), ([2, 3], "user code 1 has fewer ratings than")],
)
def test_refuses_other_counts(counts: list[int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        RatingMatrix.from_batches([batch([0, 1, 0, 1], [1, 1, 0, 0], [1, 2, 3, 4])], 2, 2, np.array(counts))


def test_a_pair_twice_is_found_in_any_order() -> None:
    with pytest.raises(InputError, match="user code 1 has rated item code 3 more than once"):
        RatingMatrix.from_batches([batch([1, 0, 1], [3, 0, 1], [1, 1, 1]), batch([1], [3], [2])], 2, 4)


@pytest.mark.parametrize(("n_users", "n_items"), [(0, 1), (1, 0), (-1, 3)])
def test_refuses_no_users_or_items(n_users: int, n_items: int) -> None:
    with pytest.raises(InputError, match="needs users and items"):
        RatingMatrix.from_batches([], n_users, n_items)


def test_refuses_no_batches() -> None:
    with pytest.raises(InputError, match="there are no ratings"):
        RatingMatrix.from_batches([], 1, 1)
