"""Membership by shadow releases, and the machinery that makes them."""

import dataclasses

import numpy as np
import pytest
from shadow_data import DROWNED, UNPROTECTED, published, ratings

from kgather._attacks import AttackReport, run
from kgather._attacks.attacked import Attacked
from kgather._attacks.gates import check_attacks, gates
from kgather._attacks.roc import Curve, auc, normal_auc
from kgather._attacks.runner import ATTACKS, WHEN_NAMED
from kgather._attacks.shadow_membership import NUMBERS, shadow_membership
from kgather._attacks.shadow_scores import Learnt
from kgather._attacks.shadow_traces import ItemsOf
from kgather._attacks.shadows import Shadowed, affordable, halves, people_of
from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence
from kgather.udfs.attacking._shadow_traces import fit_people, trace_over_releases

SHADOWS = 48


@pytest.fixture(scope="module")
def unprotected() -> Evidence:
    return published(**UNPROTECTED)


def told(evidence: Evidence, shadows: int = SHADOWS, **options: int) -> dict[str, float]:
    return dict(shadow_membership(Attacked.of(evidence), asked=shadows, **options).details)


def test_people_of_an_unprotected_release_are_told(unprotected: Evidence) -> None:
    result = shadow_membership(Attacked.of(unprotected), asked=SHADOWS, threads=2)
    found = result.details
    assert found["advantage"] > 0.4 > 3 * found["advantage_by_chance"]
    assert found["advantage_low"] < found["advantage"] == found[f"by_{result.by}"] < found["advantage_high"]
    assert found["by_traced"] > 0.35
    assert 0.8 < found["auc"] <= 1
    assert found["tpr_at_01"] <= found["tpr_at_1"] <= 1
    assert found["tpr_at_1"] > 0.1
    assert found["people_above_08"] > 0.4 > found["people_above_08_by_chance"]
    assert found["worst_decile_auc"] > found["auc"]
    assert (found["shadows"], found["tested"], found["people"]) == (SHADOWS, 16, 120)
    assert {f"by_{name}" for name in NUMBERS} < set(found)


def test_noise_hides_people(unprotected: Evidence) -> None:
    noisy = told(published(**DROWNED), threads=2)
    assert noisy["by_traced"] < 0.12
    # Groups have no noise: who is in moves them, which takes more shadows to see.
    assert noisy["advantage"] < 0.35 < told(unprotected, threads=2)["advantage"]


def test_results_hang_on_the_seed_and_not_on_threads(unprotected: Evidence) -> None:
    one = told(unprotected, 15, seed=1, threads=1)
    assert one == told(unprotected, 15, seed=1, threads=2)
    assert one != told(unprotected, 15, seed=2, threads=2)


def test_everybody_is_in_half_of_the_releases() -> None:
    drawn = halves(np.random.default_rng(0), 20, 50)
    assert drawn.shape == (20, 50)
    assert (drawn.sum(axis=0) == 10).all()
    assert len(np.unique(drawn, axis=1).T) > 40
    assert set(halves(np.random.default_rng(0), 7, 50).sum(axis=0)) == {3, 4}


def test_each_shadow_has_noise_and_a_seed_of_its_own(unprotected: Evidence) -> None:
    shadowed = Shadowed.of(published(item_noise=2.0), 0)
    levels = [shadowed.release(number, shadowed.ratings).shown.item_levels for number in (0, 0, 1)]
    assert np.array_equal(levels[0], levels[1])
    assert (levels[0] != levels[2]).mean() > 0.9
    plain = Shadowed.of(unprotected, 0)
    assert np.allclose(
        plain.release(0, plain.ratings).shown.item_levels, plain.release(1, plain.ratings).shown.item_levels, atol=0.1
    )


def test_people_who_were_set_aside_are_in_no_shadow(unprotected: Evidence) -> None:
    truth = unprotected.truth.copy()
    truth[:10] = -1
    shadowed = Shadowed.of(dataclasses.replace(unprotected, truth=truth, groups=truth), 0)
    assert shadowed.users.tolist() == list(range(10, 120))
    own = people_of(unprotected.original, np.arange(120) >= 10)
    assert np.array_equal(shadowed.ratings.values, own.values)
    assert own.nnz == unprotected.original.indptr[-1] - unprotected.original.indptr[10]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"homogenize": "padded", "cells": "rated"}, "homogenize padded"),
        ({"method": "k_likeness", "homogenize": "auto"}, "method k_likeness"),
        ({"cells": "top 5"}, "cells top 5"),
        ({"sensitive_l": 2, "sensitive_items": [3]}, "diversity"),
        ({"sensitive_l": 2, "sensitive_columns": ["x"]}, "attributes"),
    ],
)
def test_other_releases_cannot_be_made_again(unprotected: Evidence, settings: dict, complaint: str) -> None:
    other = dataclasses.replace(unprotected, parameters={"k": 5, **settings})
    with pytest.raises(InputError, match=f"made in memory.*{complaint}"):
        Shadowed.of(other, 0)


def test_too_few_people_or_shadows(unprotected: Evidence) -> None:
    truth = np.where(np.arange(120) < 19, unprotected.truth, -1).astype(np.int32)
    few = dataclasses.replace(unprotected, truth=truth, groups=truth)
    with pytest.raises(InputError, match="at least 20 people"):
        shadow_membership(Attacked.of(few))
    with pytest.raises(InputError, match="shadows"):
        shadow_membership(Attacked.of(unprotected), asked=11)


def test_work_is_bounded() -> None:
    assert affordable(100, 1_000_000) == 100
    assert affordable(100, 20_000_000) == 20
    assert affordable(100, 10**12) == 12
    assert affordable(15, 10**12) == 12


def test_the_likelihood_ratio_is_that_of_normal_distributions() -> None:
    draw = np.random.default_rng(5)
    member = halves(draw, 400, 50)
    place, spread = draw.normal(0, 9, 50), draw.uniform(0.1, 3, 50)
    numbers = (place + spread * (draw.normal(size=member.shape) + member))[..., None]
    learnt = Learnt.of(numbers[:300], member[:300])
    scores = learnt.online(numbers[300:], [0])
    tested = member[300:]
    assert auc(scores[tested], scores[~tested]) == pytest.approx(normal_auc(1.0), abs=0.02)
    offline = learnt.offline(numbers[300:], [0])
    assert auc(offline[tested], offline[~tested]) == pytest.approx(normal_auc(1.0), abs=0.02)
    # Without knowing where a person is usually, there is nothing to see.
    raw = numbers[300:, :, 0]
    assert auc(raw[tested], raw[~tested]) < 0.6


def test_numbers_that_say_the_same_count_once() -> None:
    draw = np.random.default_rng(6)
    member = halves(draw, 300, 40)
    one = draw.normal(size=member.shape) + member
    numbers = np.stack([one, one, draw.normal(size=member.shape) + member], axis=2)
    learnt = Learnt.of(numbers[:200], member[:200])
    scores, tested = learnt.online(numbers[200:], [0, 1, 2]), member[200:]
    assert auc(scores[tested], scores[~tested]) == pytest.approx(normal_auc(np.sqrt(2)), abs=0.02)


def test_the_area_under_the_curve_by_hand() -> None:
    assert auc(np.array([2.0, 3.0]), np.array([1.0, 2.0])) == pytest.approx(3.5 / 4)
    assert auc(np.ones(2), np.ones(2)) == 0.5
    assert np.isnan(auc(np.ones(2), np.empty(0)))


def test_curve_by_hand() -> None:
    curve = Curve.of(np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.0, 0.0, 0.0]))
    assert curve.auc == pytest.approx((4 + 3.5 + 3) / 12)
    assert curve.advantage == pytest.approx(1 - 1 / 4)
    assert curve.level == 1.0
    assert curve.true_at(0.0) == pytest.approx(1 / 3)
    assert curve.true_at(0.25) == 1
    assert np.isnan(auc(np.empty(0), np.ones(3)))
    assert normal_auc(0) == 0.5
    assert normal_auc(np.sqrt(2)) == pytest.approx(0.8413447)


def test_traces_are_sums_of_products() -> None:
    indptr, items = np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32)
    pulls, shifts = np.array([1.0, -2.0, 0.5]), np.arange(6.0).reshape(3, 2)
    out = np.full((2, 2), np.nan)
    trace_over_releases(indptr, items, pulls, shifts, out, 0, 2)
    assert out.tolist() == [[-8.0, -9.0], [1.0, 1.5]]


def test_folding_is_ridge_regression() -> None:
    draw = np.random.default_rng(0)
    usual, axes, ridge = draw.normal(size=8), draw.normal(size=(8, 2)), np.array([4.0, 1.0, 1.0])
    ratings = draw.integers(1, 6, 8).astype(np.float32)
    places, gaps = np.empty((1, 2)), np.empty(8)
    fit_people(np.array([0, 8]), np.arange(8, dtype=np.int32), ratings, usual, axes, ridge, places, gaps, 0, 1)
    design = np.column_stack([np.ones(8), axes])
    found = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ (ratings - usual))
    assert places[0] == pytest.approx(found[1:])
    assert gaps == pytest.approx(ratings - usual - design @ found)


def test_factors_are_for_users_of_variance_one(unprotected: Evidence) -> None:
    shown = unprotected.shown
    own = ItemsOf.of(shown, np.where(np.arange(60) == 7, np.nan, 3.0))
    shares = shown.sizes / shown.sizes.sum()
    gaps = shown.group_factors - shares @ shown.group_factors
    predicted = shown.item_factors @ gaps.T
    variance = (predicted**2) @ shares
    assert (own.factors**2).sum(axis=1)[:7] == pytest.approx(variance[:7], rel=1e-4)
    assert (own.factors[7] == 0).all()


def test_slow_attacks_run_when_they_are_named(unprotected: Evidence) -> None:
    usual = run(unprotected, known=(2,), targets=20, original_too=False)
    assert not set(WHEN_NAMED) & {result.attack for result in usual.results}
    assert set(WHEN_NAMED) < set(ATTACKS)
    rare = published(ratings(rarest=0.02), **UNPROTECTED)
    alone = [name for name in WHEN_NAMED if name != "pairs"]  # which needs a second release
    report = run(rare, known=(2,), attacks=alone, shadows=12, original_too=False)
    assert [result.attack for result in report.results] == alone
    assert report.settings["shadows"] == 12
    assert [(best.kind, best.measure) for best in report.best()] == [
        ("membership, by shadow releases", "advantage"),
        ("a rating that is not known", "sign_in"),
        ("one rater more, all others known", "existence_auc"),
        ("one rating, all others known", "sign_auc"),
    ]
    limits = {"shadow-advantage": 0.01, "sign-auc": 0.6, "existence-auc": 1.0}
    assert [gate.passed for gate in gates(report, limits)] == [False, False, True]


def test_a_gate_without_its_attack_is_an_error() -> None:
    nothing = AttackReport((), (), {})
    for name, attack in (("shadow-advantage", "shadows"), ("sign-auc", "existence"), ("existence-auc", "existence")):
        with pytest.raises(InputError, match=f"run the attack {attack}"):
            gates(nothing, {name: 0.5})
        for attacks in (None, ["scoring"]):
            with pytest.raises(InputError, match=f"--max-{name}.*{attack}"):
                check_attacks({name: 0.5}, attacks, WHEN_NAMED)
        check_attacks({name: 0.5}, [attack], WHEN_NAMED)
    check_attacks({"matched": 0.5, "membership-advantage": 0.5}, None, WHEN_NAMED)


def test_shadows_do_not_count_for_the_gate_of_membership(unprotected: Evidence) -> None:
    report = AttackReport((shadow_membership(Attacked.of(unprotected), asked=12),), (), {})
    with pytest.raises(InputError, match="--others"):
        gates(report, {"membership-advantage": 1.0})
