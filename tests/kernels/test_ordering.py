"""The order of numbers, against numpy's stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kgather.udfs._shared.ordering import ascending


def test_by_hand() -> None:
    np.testing.assert_array_equal(ascending(np.array([3.0, 1.0, 2.0, 1.0])), [1, 3, 2, 0])


@given(arrays.arrays(np.float64, st.integers(0, 200), elements=st.sampled_from([-1.5, 0.0, 0.25, 2.0, np.inf])))
def test_equal_numbers_keep_their_order(values: np.ndarray) -> None:
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("top", [3, 2**63])
def test_large_whole_numbers(top: int) -> None:
    values = np.random.default_rng(0).integers(0, top, 5000).astype(np.uint64) + np.uint64(top)
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))
