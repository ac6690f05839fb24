"""Gathering in blocks: blocks known by hand, and groups that hold whatever the data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preference_data import made_up_preferences

from kgather._errors import InputError
from kgather.udfs.gathering import bkg, mdav
from kgather.udfs.gathering.blocks import gather_in_blocks
from kgather.udfs.measuring.quality import sse


def in_order(rows: np.ndarray, k: int) -> np.ndarray:
    """Groups of k in the order of the rows; what is left over goes to the last."""
    return np.minimum(np.arange(len(rows)) // k, max(len(rows) // k - 1, 0)).astype(np.int32)


def whole(rows: np.ndarray, _: int) -> np.ndarray:
    return np.zeros(len(rows), dtype=np.int32)


def test_two_halves_are_two_blocks() -> None:
    line = np.array([[9.0], [1], [8], [2], [7], [3]])
    assert gather_in_blocks(line, 2, whole, block_size=3).tolist() in ([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0])


def test_the_cut_follows_the_longest_direction() -> None:
    # A long diagonal: neither axis alone tells its ends apart as well as their sum does.
    rng = np.random.default_rng(0)
    along = np.repeat([-10.0, 10.0], 50)
    points = np.stack([along, along], axis=1) + rng.normal(0, 1, (100, 2))
    groups = gather_in_blocks(points, 5, whole, block_size=50)
    assert len(set(groups[:50])) == len(set(groups[50:])) == 1
    assert groups[0] != groups[50]


def test_one_block_is_the_method_itself() -> None:
    vectors = made_up_preferences(943)
    assert (gather_in_blocks(vectors, 5, mdav.gather, block_size=943) == mdav.gather(vectors, 5)).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_blocks_of_any_size_hold_groups_of_k(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 300))
    d = data.draw(st.integers(1, 4))
    k = data.draw(st.integers(1, min(n, 8)))
    size = data.draw(st.integers(1, 120))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    vectors = rng.normal(size=(n, d)) if data.draw(st.booleans()) else rng.integers(0, 2, (n, d)).astype(float)
    groups = gather_in_blocks(vectors, k, in_order, block_size=size)
    assert groups.shape == (n,)
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert (gather_in_blocks(vectors, k, in_order, block_size=size, threads=3) == groups).all()


def test_blocks_lose_little() -> None:
    vectors = made_up_preferences(10_000)
    exact = sse(vectors, mdav.gather(vectors, 10))
    assert sse(vectors, gather_in_blocks(vectors, 10, mdav.gather, block_size=2500)) <= 1.1 * exact


def test_equal_users_are_cut_without_end() -> None:
    groups = gather_in_blocks(np.zeros((50_000, 3)), 5, bkg.gather, block_size=1000)
    assert np.bincount(groups).min() >= 5


def test_what_makes_no_sense_is_refused() -> None:
    line = np.arange(10.0)[:, None]
    with pytest.raises(InputError, match="block_size"):
        gather_in_blocks(line, 2, in_order, block_size=0)
    with pytest.raises(InputError, match="too few"):
        gather_in_blocks(line, 11, in_order)
    with pytest.raises(InputError):
        gather_in_blocks(line, 2, lambda rows, _: np.arange(len(rows)), block_size=5)
