"""A rating of a person, all others of the person known: what it adds that the rating was published."""

import dataclasses

import numpy as np
import pytest
from shadow_data import DROWNED, UNPROTECTED, published, ratings

from kgather._attacks.attacked import Attacked
from kgather._attacks.attribute import WAYS, attribute
from kgather._errors import InputError
from kgather.udfs.attacking._left_out_rating import predict_without


def table(seed: int = 3):
    return ratings(n=150, m=100, rarest=0.05, seed=seed)


def told(shadows: int = 60, **settings: object) -> dict[str, float]:
    return dict(attribute(Attacked.of(published(table(), **settings)), asked=shadows, threads=2).details)


@pytest.fixture(scope="module")
def unprotected() -> dict[str, float]:
    return told(**UNPROTECTED)


def test_published_ratings_are_predicted_better(unprotected: dict[str, float]) -> None:
    assert unprotected["gain_low"] > 0
    assert unprotected["gain_low"] < unprotected["gain"] < unprotected["gain_high"]
    assert unprotected["gain_11_to_30"] > unprotected["gain_over_100"] > 0
    assert unprotected["mae_out"] > unprotected["mae_in"]
    assert unprotected["sign_gain_11_to_30"] > unprotected["sign_gain_over_100"] > 0
    assert unprotected["sign_in"] - unprotected["sign_out"] == pytest.approx(unprotected["sign_gain"])
    assert unprotected["gain"] in {unprotected[f"gain_by_{way}"] for way in WAYS}
    assert unprotected["shadows"] == 60


def test_noise_hides_whether_a_rating_was_published(unprotected: dict[str, float]) -> None:
    noisy = told(**DROWNED)
    assert noisy["gain_low"] < 0 < noisy["gain_high"]
    assert abs(noisy["sign_gain_11_to_30"]) < unprotected["sign_gain_11_to_30"] / 2


def test_results_hang_on_the_seed_and_not_on_threads() -> None:
    attacked = Attacked.of(published(table()))
    one = attribute(attacked, asked=12, seed=1, threads=1)
    assert one == attribute(attacked, asked=12, seed=1, threads=2)
    assert one.details != attribute(attacked, asked=12, seed=2, threads=2).details


def test_predictions_are_those_of_who_does_not_know_the_rating() -> None:
    draw = np.random.default_rng(4)
    m, groups, rank = 9, 5, 2
    levels, factors = draw.normal(3, 0.5, m), draw.normal(size=(m, rank))
    places, shares = draw.normal(0, 0.6, (groups, rank + 1)), np.full(groups, 1 / groups)
    values = draw.integers(1, 6, m).astype(np.float32)
    middle, stiffness, variance = places.mean(axis=0), np.diag([2.0, 1.0, 1.0]), 0.7
    wanted = np.full(m, -1)
    wanted[[2, 6]] = [1, 0]

    def predicted(items: np.ndarray, of: np.ndarray, wanted: np.ndarray, count: int) -> np.ndarray:
        out = np.empty((count, 2))
        predict_without(
            np.array([0, len(items)]), items.astype(np.int32), of, wanted, levels, factors, places, np.log(shares),
            middle, stiffness, variance, 1.0, 5.0, out, 0, 1,
        )  # fmt: skip
        return out

    found = predicted(np.arange(m), values, wanted, 2)
    design = np.column_stack([np.ones(m), factors])
    shown = np.clip(levels[:, None] + design @ places.T, 1, 5)
    for item, row in ((2, 1), (6, 0)):
        others = np.arange(m) != item
        gaps = values[others] - levels[others] - design[others] @ middle
        system = design[others].T @ design[others] + stiffness
        place = middle + np.linalg.solve(system, design[others].T @ gaps)
        assert found[row, 1] == pytest.approx(np.clip(levels[item] + design[item] @ place, 1, 5), abs=1e-5)
        likely = np.exp(-((values[others, None] - shown[others]) ** 2).sum(axis=0) / (2 * variance))
        assert found[row, 0] == pytest.approx(shown[item] @ likely / likely.sum(), abs=1e-5)


def test_too_little_to_leave_out() -> None:
    with pytest.raises(InputError, match="at least 20 ratings"):
        attribute(Attacked.of(published(ratings(n=12, m=3, rarest=0.7))), asked=12)
    evidence = published(table())
    truth = np.where(np.arange(150) < 9, evidence.truth, -1).astype(np.int32)
    with pytest.raises(InputError, match="at least 10 people"):
        attribute(Attacked.of(dataclasses.replace(evidence, truth=truth, groups=truth)))
