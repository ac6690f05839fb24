"""Groups far from the middle are drawn in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.outliers import draw_groups_in, drawn_in


def test_groups_beyond_the_quantile_come_to_its_distance_and_others_stay() -> None:
    # Users at 1, 2 .. 100 on both sides of 0.
    users = np.array([[side * place] for place in range(1, 101) for side in (-1, 1)], dtype=np.float32)
    groups = np.array([[50.0], [95.0], [-99.0]], dtype=np.float32)
    left, radius = drawn_in(users, groups, share=0.9, smooth=4)
    # Nine tenths of the way from place 0 to 199 is 179; the places 178 to 181 have 90, 90, 91, 91.
    assert radius == pytest.approx(90.5)
    assert left == pytest.approx([1.0, 90.5 / 95, 90.5 / 99])


def test_the_radius_is_no_single_persons_distance() -> None:
    users = np.arange(1, 101, dtype=np.float32)[:, None]
    users = np.concatenate([users, -users])
    moved = users.copy()
    moved[179] += 0.5
    radii = [drawn_in(each, users, share=0.9, smooth=10)[1] for each in (users, moved)]
    assert abs(radii[0] - radii[1]) < 0.1


@given(st.integers(1, 40), st.integers(1, 4), st.floats(0.5, 0.999), st.integers(1, 50), st.integers(0, 1000))
def test_no_group_is_farther_than_the_radius_and_none_moves_away(
    n: int, d: int, share: float, smooth: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    users = rng.standard_t(2, size=(n, d)).astype(np.float32)
    groups = users[: max(n // 3, 1)] * 2
    left, radius = drawn_in(users, groups, share=share, smooth=smooth)
    middle = users.mean(axis=0, dtype=np.float64)
    assert (left >= 0).all()
    assert (left <= 1).all()
    assert (np.linalg.norm((groups - middle) * left[:, None], axis=1) <= radius * (1 + 1e-6) + 1e-9).all()


def test_1_leaves_all_as_they_are() -> None:
    users = np.arange(9, dtype=np.float32).reshape(3, 3)
    left, radius = drawn_in(users, users, share=1.0, smooth=2)
    assert left.tolist() == [1.0, 1.0, 1.0]
    assert radius == np.inf


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(share: float) -> None:
    users = np.ones((3, 2), dtype=np.float32)
    with pytest.raises(InputError, match="outliers"):
        drawn_in(users, users, share=share, smooth=1)


def test_distances_are_those_of_what_is_predicted() -> None:
    rng = np.random.default_rng(0)
    f = np.float32
    learnt = Preferences(
        rng.normal(size=300).astype(f), rng.normal(size=(300, 2)).astype(f),
        rng.normal(size=40).astype(f), rng.normal(size=(40, 2)).astype(f),
    )  # fmt: skip
    level, factors = learnt.user_level[:30] * 3, learnt.user_factors[:30] * 3
    drawn = draw_groups_in(learnt, level, factors, share=0.9, smooth=5)

    def off(level: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Root mean square of the predictions less the mean user's, of each row."""
        mean = learnt.user_level.mean(), learnt.user_factors.mean(axis=0)
        gaps = (level - mean[0])[:, None] + (factors - mean[1]) @ learnt.item_factors.T
        return np.sqrt((gaps**2).mean(axis=1))

    _, radius = drawn_in(comparison_vectors(learnt), comparison_vectors(learnt), share=0.9, smooth=5)
    before, after = off(level, factors), off(*drawn)
    assert (before > radius).any()
    assert after == pytest.approx(np.minimum(before, radius), rel=1e-3)
