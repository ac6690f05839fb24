"""A tree of planes: everybody is sent to one leaf, leaves are as large as they may be, and small ones are merged."""

import numpy as np
import pytest

from kgather._errors import InputError
from kgather.udfs.gathering.planes import learn_planes


def points(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, (n, d)).astype(np.float32)


def test_two_clouds_are_two_leaves() -> None:
    cloud = points(60)
    cloud[30:, 0] += 50
    leaves = learn_planes(cloud, 30).leaves(cloud)
    assert len(set(leaves[:30])) == len(set(leaves[30:])) == 1
    assert leaves[0] != leaves[30]


def test_no_leaf_has_more_of_the_sample_than_asked_for() -> None:
    sample = points(5000)
    leaves = learn_planes(sample, 300).leaves(sample)
    sizes = np.bincount(leaves)
    assert sizes.sum() == 5000
    assert sizes.max() <= 300
    assert sizes[sizes > 0].min() >= 100


def test_those_who_were_not_in_the_sample_are_spread_alike() -> None:
    planes = learn_planes(points(2000), 250)
    sizes = np.bincount(planes.leaves(points(20_000, seed=1)), minlength=planes.nodes)
    assert sizes.max() <= 1.5 * 2500


def test_a_sample_that_fits_is_one_leaf() -> None:
    sample = points(50)
    planes = learn_planes(sample, 50)
    assert planes.nodes == 1
    assert not planes.leaves(sample).any()


@pytest.mark.parametrize("most", [1, 7])
def test_equal_points_stay_together(most: int) -> None:
    same = np.ones((100, 2), dtype=np.float32)
    assert learn_planes(same, most).nodes == 1
    same[0] = 1e6
    leaves = learn_planes(same, most).leaves(same)
    assert len(set(leaves[1:])) == 1


def test_leaves_too_small_are_merged_with_their_neighbours() -> None:
    sample = points(1000)
    planes = learn_planes(sample, 130)
    leaves = planes.leaves(sample)
    counts = np.bincount(leaves, minlength=planes.nodes)
    poor = int(leaves[0])
    counts[poor] = 2
    stands = planes.merged(counts, 10)
    merged = np.bincount(stands, weights=counts, minlength=planes.nodes)
    assert merged.sum() == counts.sum()
    assert merged[merged > 0].min() >= 10
    # Only what is beside the poor leaf becomes one with it.
    assert len(set(stands[leaves])) == len(set(leaves)) - 1
    assert (planes.merged(np.zeros(planes.nodes, dtype=np.int64), 1) == 0).all()


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError):
        learn_planes(np.full((3, 2), np.nan, dtype=np.float32), 1)
    with pytest.raises(InputError):
        learn_planes(points(5), 0)
