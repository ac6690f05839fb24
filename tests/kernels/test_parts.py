"""The small parts that the kernels share."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather.udfs._shared.hashing import keyed, mix, seed64
from kgather.udfs._shared.selection import kth_smallest
from kgather.udfs._shared.workers import row_ranges, run


def test_splitmix64_reference_values() -> None:
    # the first outputs for the state 0 and the state 1234567, from the authors' C code
    assert int(mix(np.uint64(0))) == 0xE220A8397B1DCDAF
    state, outputs = 1234567, []
    for _ in range(3):
        outputs.append(int(mix(np.uint64(state))))
        state = (state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_keys_differ() -> None:
    assert len({int(keyed(seed64(seed), a, b)) for seed in (-1, 0, 1) for a in range(9) for b in range(9)}) == 243


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-3, 3) | st.floats(-9, 9), min_size=1, max_size=60), st.data())
def test_kth_smallest(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(values) - 1))
    array = np.array([9.5, *values, -9.5])
    assert kth_smallest(array, 1, len(values) + 1, k) == sorted(values)[k]
    assert sorted(array[1:-1]) == sorted(values)
    assert (array[0], array[-1]) == (9.5, -9.5)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=80), st.integers(1, 5), st.none() | st.integers(1, 9))
def test_ranges_cover_all_rows_once(counts: list[int], threads: int, longest: int | None) -> None:
    ranges = row_ranges(np.concatenate([[0], np.cumsum(counts)]), threads, longest)
    assert [row for lo, hi in ranges for row in range(lo, hi)] == list(range(len(counts)))
    assert longest is None or max(hi - lo for lo, hi in ranges) <= longest


def test_an_error_in_a_thread_is_raised() -> None:
    def fail(lo: int, hi: int) -> None:
        raise ValueError(lo, hi)

    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="0, 1"):
        run(fail, [(0, 1), (1, 2)], pool)
