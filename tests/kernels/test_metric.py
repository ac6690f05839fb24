"""The distance of two users is the root mean square difference of what is predicted for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import made_up, matrix_of

from kgather._errors import InputError
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences


def _distances(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(((vectors[:, None].astype(np.float64) - vectors[None]) ** 2).sum(axis=2))


def _differences(preferences: Preferences) -> np.ndarray:
    """Root mean square over all items of the difference of the predictions, for each two users."""
    product = preferences.user_factors.astype(np.float64) @ preferences.item_factors.astype(np.float64).T
    predicted = preferences.user_level[:, None] + preferences.item_level[None].astype(np.float64) + product
    return np.sqrt(((predicted[:, None] - predicted[None]) ** 2).mean(axis=2))


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 12), m=st.integers(1, 15), rank=st.integers(1, 12), seed=st.integers(0, 99),
    kind=st.sampled_from(["full", "low rank", "zero", "repeated", "large"]),
)  # fmt: skip
def test_distance_is_the_difference_of_predictions(n: int, m: int, rank: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    items = rng.standard_normal((m, rank)).astype(np.float32)
    if kind == "low rank":
        items = (rng.standard_normal((m, 1)) @ rng.standard_normal((1, rank))).astype(np.float32)
    elif kind == "zero":
        items[:] = 0
    elif kind == "repeated":
        items[:] = items[0]
    elif kind == "large":
        items *= 1000
    preferences = Preferences(
        rng.standard_normal(n).astype(np.float32),
        rng.standard_normal((n, rank)).astype(np.float32),
        rng.standard_normal(m).astype(np.float32),
        items,
    )
    vectors = comparison_vectors(preferences)
    assert vectors.dtype == np.float32
    assert vectors.shape == (n, rank + 1)
    expected = _differences(preferences)
    assert np.allclose(_distances(vectors), expected, rtol=1e-4, atol=1e-4 * max(1.0, expected.max()))


def test_for_learnt_preferences() -> None:
    learnt = learn(matrix_of(made_up(60, 40, 0.3, 0), 60, 40), rank=5)
    assert np.allclose(_distances(comparison_vectors(learnt)), _differences(learnt), atol=1e-5)


def test_by_hand() -> None:
    # predictions: user 0: 1 and 3; user 1: 0 and 0; differences 1 and 3: the root of their mean square is the root of 5
    preferences = Preferences(
        np.array([0, 0], np.float32), np.array([[1], [0]], np.float32),
        np.array([0, 0], np.float32), np.array([[1], [3]], np.float32),
    )  # fmt: skip
    vectors = comparison_vectors(preferences)
    assert vectors.tolist() == [[2, 1], [0, 0]]
    assert _distances(vectors)[0, 1] == pytest.approx(np.sqrt(5))


def test_preference_is_the_factors_themselves() -> None:
    learnt = learn(matrix_of(made_up(20, 10, 0.5, 0), 20, 10), rank=2)
    assert np.array_equal(comparison_vectors(learnt, "preference"), learnt.user_factors)


def test_refuses_another_metric() -> None:
    learnt = learn(matrix_of(([0], [0], [1.0]), 1, 1))
    with pytest.raises(InputError, match="no metric 'cosine'; the metrics are: prediction, preference"):
        comparison_vectors(learnt, "cosine")
