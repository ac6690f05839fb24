"""More ratings than 2^31, and more items than 2^16: places are counted in 64 bits, item codes in 32."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kgather.udfs._shared.workers import row_ranges
from kgather.udfs.preferences import als
from kgather.udfs.preferences._gram import new_design, tag_of
from kgather.udfs.preferences.learning import learn
from kgather.udfs.ratings.matrix import RatingMatrix

FAR = 2**31 + 8
RANK, ITEMS = 3, 70_000
OWN_ITEMS = np.array([5, 65_535, 65_536, 69_999], np.int32)
OWN_VALUES = np.array([1, 5, 3, 4], np.float32)


def far_end(values: np.ndarray, dtype: Any) -> np.ndarray:
    """An array with the values at its end, beyond 2^31; pages that nobody writes to take no memory."""
    try:
        array = np.zeros(FAR + len(values), dtype=dtype)
    except MemoryError:
        pytest.skip("this machine gives no 8 GB of addresses")
    array[FAR:] = values
    return array


def designs() -> tuple[np.ndarray, np.ndarray]:
    design, level = new_design(ITEMS, RANK), np.linspace(1, 5, ITEMS, dtype=np.float32)
    design.reshape(ITEMS + 1, -1)[:ITEMS, 1 : RANK + 1] = np.random.default_rng(0).normal(size=(ITEMS, RANK))
    return design, level


def solved_user(indptr: list[int], items: np.ndarray, values: np.ndarray, user: int) -> np.ndarray:
    design, level = designs()
    users = len(indptr) - 1
    out, out_level = new_design(users, RANK), np.zeros(users, np.float32)
    als._solve_users(
        user, user + 1, np.array(indptr), items, values,
        np.zeros(users + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32),
        design, level, (0.5, 0.1, 0.5, 0.0), out, out_level, tag_of(RANK),
    )  # fmt: skip
    return np.append(out.reshape(users + 1, -1)[user], out_level[user])


def test_a_user_beyond_two_to_the_31_ratings_is_solved_as_any() -> None:
    near = solved_user([0, 0, 4], OWN_ITEMS, OWN_VALUES, 1)
    assert np.abs(near).sum() > 1
    far = solved_user([0, FAR, FAR + 4], far_end(OWN_ITEMS, np.int32), far_end(OWN_VALUES, np.float32), 1)
    np.testing.assert_array_equal(near, far)


def test_tiles_beyond_two_to_the_31_ratings() -> None:
    order = np.array([2, 0, 3, 1])
    items, values = far_end(OWN_ITEMS[order], np.int32), far_end(OWN_VALUES[order], np.float32)
    indptr = np.array([0, FAR, FAR + 4])
    tile_indptr = np.zeros((2, ITEMS + 1), dtype=np.int64)
    tile_users, tile_values = far_end(np.zeros(4), np.int32), far_end(np.zeros(4), np.float32)
    als._fill_tiles(indptr, items, values, 1, 2, 1, tile_indptr, tile_users, tile_values)
    np.testing.assert_array_equal(tile_indptr[1, OWN_ITEMS], FAR + np.arange(4))
    assert tile_indptr[1, -1] == FAR + 4
    np.testing.assert_array_equal(tile_values[FAR:], OWN_VALUES)
    np.testing.assert_array_equal(tile_users[FAR:], 1)


def test_ranges_of_rows_with_many_ratings() -> None:
    indptr = np.arange(0, 9, dtype=np.int64) * 2**31
    ranges = row_ranges(indptr, 2)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 8
    assert all(lo < hi for lo, hi in ranges)


def test_items_beyond_two_to_the_16_keep_their_codes() -> None:
    users = np.repeat(np.arange(50, dtype=np.int32), 4)
    batch = pa.record_batch(
        {
            "user_code": users[::-1].copy(),
            "item_code": np.tile(OWN_ITEMS, 50)[::-1].copy(),
            "rating": np.tile(OWN_VALUES, 50)[::-1].astype(np.float64),
        }
    )
    matrix = RatingMatrix.from_batches([batch], 50, ITEMS)
    np.testing.assert_array_equal(matrix.items.reshape(50, 4), np.tile(OWN_ITEMS, (50, 1)))
    one, two = (learn(matrix, rank=RANK, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.item_factors, two.item_factors)
    predicted = one.user_level[0] + one.item_level[OWN_ITEMS] + one.item_factors[OWN_ITEMS] @ one.user_factors[0]
    np.testing.assert_allclose(predicted, OWN_VALUES, atol=1)
