"""One rating of an item, all others known: whether it is there, and whether its rater liked the item."""

import dataclasses
import math

import numpy as np
import pytest
from shadow_data import UNPROTECTED, published, ratings

from kgather._attacks.attacked import Attacked
from kgather._attacks.existence import Existing, Sign, classes_of, existence, tell
from kgather._attacks.roc import normal_auc
from kgather._attacks.shadows import Shadowed
from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence


def rare(**settings: object) -> Evidence:
    """A release of data that have items of every number of raters."""
    return published(ratings(n=100, m=80, rarest=0.01), **settings)


def told(**settings: object) -> dict[str, float]:
    return dict(existence(Attacked.of(rare(**settings)), pairs=16, threads=1).details)


@pytest.fixture(scope="module")
def unprotected() -> dict[str, float]:
    return told(**UNPROTECTED)


def test_without_noise_a_rating_and_its_sign_are_read(unprotected: dict[str, float]) -> None:
    assert unprotected["existence_auc"] > 0.99
    assert unprotected["sign_auc"] > 0.95
    assert min(unprotected[f"sign_{name}"] for name in ("below", "at", "one_more", "few_more", "above")) > 0.9
    assert unprotected["threshold"] == 5  # k, as every item has a vector of its own


def test_items_below_the_threshold_tell_nothing_with_noise() -> None:
    found = told(item_noise=6.0)
    assert found["existence_at"] < 0.54
    assert found["sign_at"] == pytest.approx(0.5, abs=0.03)
    assert found["sign_below"] < 0.53
    # With few rare items their shared noise is large, and an item's share of it tells the number of its raters.
    assert found["existence_auc"] < 0.65
    assert found["sign_auc"] < 0.6


def test_more_noise_hides_more(unprotected: dict[str, float]) -> None:
    kept = {"min_raters": 1, "outliers": 1.0}
    some, more = told(item_noise=2.0, **kept), told(item_noise=1000.0, **kept)
    for measure in ("existence_auc", "sign_auc"):
        assert unprotected[measure] > some[measure] > more[measure]
    assert more["sign_auc"] == pytest.approx(0.5, abs=0.03)
    # The size of the noise grows from rater to rater, which tells a little, however large it is.
    assert more["existence_auc"] == pytest.approx(0.55, abs=0.03)


def test_the_noise_at_the_threshold_is_what_is_said() -> None:
    # What one rating moves an item of its own by is known, and so is the noise.
    shadowed = Shadowed.of(rare(min_raters=1, item_noise=2.0, outliers=1.0), 0)
    tested = tell(shadowed, threads=1, pairs=8)
    assert set(tested.existing) >= {"at", "few_more"}
    # A rating moves an item by one reach at most, half of the noise's deviation, and by its factors by as much again.
    assert tested.existing["few_more"].aucs.max() < normal_auc(1.0)
    assert tested.existing["few_more"].aucs.mean() > 0.52


def test_results_hang_on_the_seed_and_not_on_threads() -> None:
    found = [
        tell(Shadowed.of(rare(), seed), threads, pairs=8).existing["few_more"].rated
        for seed, threads in ((1, 1), (1, 2), (2, 2))
    ]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_an_item_that_is_left_out_tells_what_its_count_tells() -> None:
    dropped = told(rare_items="drop", item_noise=1000.0)
    # Laplace noise of scale 2 between counts that differ by one: the AUC is known.
    draw = np.random.default_rng(0)
    shown = [(count + 2 * draw.laplace(size=400_000) >= 5).mean() for count in (5, 4)]
    expected = 0.5 + (shown[0] - shown[1]) / 2
    assert dropped["existence_at"] == pytest.approx(expected, abs=0.02)
    assert told(item_noise=1000.0)["existence_at"] < dropped["existence_at"] - 0.05


def test_sign_by_hand() -> None:
    middle, above = np.array([1.0, -1.0, 0.0]), np.array([True, False, False])
    found = Sign(middle, np.array([1.0, 1.0, 3.0]), above).auc
    first, second = (0.5 * (1 + math.erf(z / math.sqrt(2))) for z in (2 / math.sqrt(2), 1 / 2))
    assert found == pytest.approx((first + second) / 2)
    assert math.isnan(Sign(middle, np.ones(3), np.zeros(3, dtype=bool)).auc)


def test_existing_by_hand() -> None:
    found = Existing(np.array([[2.0, 3.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert found.aucs.tolist() == [1.0, 0.5]


def test_classes_leave_no_gap() -> None:
    classes = classes_of(10)
    assert [(one.first, one.last) for one in classes] == [(1, 9), (10, 10), (11, 11), (12, 15), (16, 20), (21, None)]


def test_data_without_such_items() -> None:
    everybody = published(ratings(n=60, m=10, rarest=0.7))
    found = existence(Attacked.of(everybody), pairs=8, threads=1).details
    assert (found["sign_auc"], found["existence_auc"]) == (found["sign_above"], found["existence_above"])
    same = dataclasses.replace(everybody.original, values=np.full(everybody.original.nnz, 3, dtype=np.float32))
    with pytest.raises(InputError, match="people who rate differently"):
        existence(Attacked.of(dataclasses.replace(everybody, original=same)), threads=1)
    other = dataclasses.replace(everybody, parameters={"k": 5, "homogenize": "padded", "cells": "rated"})
    with pytest.raises(InputError, match="made in memory"):
        existence(Attacked.of(other))
