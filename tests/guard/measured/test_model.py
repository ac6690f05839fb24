"""What measurements say together: fitting against plain numpy and a published table, effects against least squares."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from kgather._guard.measured.domain import Domain
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.model import (
    Axis,
    Model,
    Table,
    averaged,
    effects,
    fit_three,
    joint,
    name_of,
    one_of,
    pair_of,
)

Floats = NDArray[np.float64]
DOMAIN = Domain(("1", "2"), "BIGINT", null=True, other=False, absent=False)


def _fitted(ab: Floats, ac: Floats, bc: Floats, passes: int) -> Floats:
    """Iterative proportional fitting as textbooks have it."""
    cells = np.ones((*ab.shape, ac.shape[1]))
    for _ in range(passes):
        cells *= (ab / cells.sum(2))[:, :, None]
        cells *= (ac / cells.sum(1))[:, None, :]
        cells *= (bc / cells.sum(0))[None, :, :]
    return cells


@pytest.mark.parametrize("shape", [(2, 2, 2), (6, 7, 4), (1, 5, 3)])
def test_fitting_is_that_of_plain_numpy(shape: tuple[int, int, int]) -> None:
    truth = np.random.default_rng(1).gamma(0.7, 20.0, shape) + 0.5
    ab, ac, bc = truth.sum(2), truth.sum(1), truth.sum(0)
    found = fit_three(ab, ac, bc, 50, 0.0)
    np.testing.assert_allclose(found, _fitted(ab, ac, bc, 50), rtol=1e-9)
    np.testing.assert_allclose(found.sum(0), bc, rtol=1e-9)


def test_a_published_table_without_interaction_of_three() -> None:
    """Bartlett (1935), plum root cuttings: length and time of planting by survival, 240 in each; the expected counts
    under no interaction of three factors are 161.1, 78.9 and so on (as in Bishop, Fienberg and Holland, 1975)."""
    # [length][time][alive, dead]
    counts = np.array([[[156.0, 84.0], [84.0, 156.0]], [[107.0, 133.0], [31.0, 209.0]]])
    found = fit_three(counts.sum(2), counts.sum(1), counts.sum(0), 200, 1e-12)
    expected = np.array([[[161.1, 78.9], [78.9, 161.1]], [[101.9, 138.1], [36.1, 203.9]]])
    np.testing.assert_allclose(found, expected, atol=0.05)
    odds = found[..., 0] / found[..., 1]
    assert odds[0, 0] * odds[1, 1] == pytest.approx(odds[0, 1] * odds[1, 0], rel=1e-6)


def _pairs(truth: Floats) -> dict[tuple[int, int], Table]:
    axes = range(truth.ndim)
    return {
        place: Table(found := truth.sum(tuple(axis for axis in axes if axis not in place)), np.full(found.shape, 4.0))
        for place in combinations(axes, 2)
    }


@pytest.mark.parametrize("shape", [(3, 4, 2), (2, 3, 2, 2)])
def test_a_joint_table_keeps_its_margins(shape: tuple[int, ...]) -> None:
    truth = np.random.default_rng(2).gamma(1.0, 50.0, shape) + 1
    pairs = _pairs(truth)
    found = joint(pairs, shape)
    for place, table in pairs.items():
        others = tuple(axis for axis in range(len(shape)) if axis not in place)
        np.testing.assert_allclose(found.values.sum(others), table.values, rtol=1e-4)
    assert np.all(found.variance > 0)


def test_a_joint_table_of_independent_features_is_their_product() -> None:
    parts = [np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1])]
    truth = 1_000 * np.einsum("i,j,k->ijk", *parts)
    np.testing.assert_allclose(joint(_pairs(truth), truth.shape).values, truth, rtol=1e-6)


def test_noise_below_zero_is_fitted_to_nearly_nothing() -> None:
    truth = np.full((2, 2, 2), 100.0)
    truth[0, 0] = 0.0
    pairs = _pairs(truth)
    pairs[0, 1].values[0, 0] = -30.0
    found = joint(pairs, (2, 2, 2)).values
    assert np.all(found >= 0)
    assert found[0, 0].sum() < 1


def test_averages_are_weighted_by_noise() -> None:
    found = averaged([Table(np.array([10.0]), np.array([1.0])), Table(np.array([20.0]), np.array([4.0]))])
    assert found is not None
    assert found.values[0] == pytest.approx(12.0)
    assert found.variance[0] == pytest.approx(0.8)
    assert averaged([]) is None


def _measured(names: list[str], numbers: Floats, sd: float, kind: str = "counts") -> Measurement:
    about = {"features": names, "rows": ""}
    return Measurement(
        kind, name_of(kind, "", names), 0.1, 0.0, sd, (DOMAIN,) * len(names), numbers.astype(np.int64), about
    )


def test_margins_of_the_same_thing_are_fitted_to_each_other() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([[400.0, 100.0, 50.0], [30.0, 200.0, 70.0], [90.0, 10.0, 50.0]])
    ones: tuple[list[float], list[float]] = [], []
    for _ in range(300):
        pair = _measured(["a", "b"], truth + np.rint(rng.normal(size=(3, 3)) * 9), 9.0)
        one = _measured(["a"], truth.sum(1) + np.rint(rng.normal(size=3) * 9), 9.0)
        model = Model([pair, one])
        table = model.pair("", ("a", "b"), (DOMAIN, DOMAIN))
        margin = model.one("", "a", DOMAIN)
        assert table is not None
        assert margin is not None
        # Both axes have a part in the whole; but for it, the sums of the table are the margin.
        off = table.values.sum(1) - margin.values
        np.testing.assert_allclose(off, off.mean(), atol=1e-6)
        ones[0].append(np.std(margin.values - truth.sum(1)))
        ones[1].append(np.std(one.numbers - truth.sum(1)))
    assert np.mean(ones[0]) < np.mean(ones[1])


def test_what_was_not_measured_is_not_known() -> None:
    model = Model([_measured(["a"], np.array([1.0, 2.0, 3.0]), 1.0)])
    assert model.one("", "b", DOMAIN) is None
    assert model.pair("", ("a", "b"), (DOMAIN, DOMAIN)) is None
    assert float(Model([]).people.variance) == np.inf


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_stated_noise_of_classes_together_is_that_of_draws(size: int) -> None:
    """The standard error that is told covers what is off: within its own order, and not below it."""
    rng, sd = np.random.default_rng(4), 5.0
    truth = np.array([500.0, 300.0, 200.0])
    axis = Axis("a", DOMAIN, np.array([0] * size + [1] * (3 - size)))
    off, told = [], 0.0
    for _ in range(2_000):
        table = Table(truth + rng.normal(size=3) * sd, np.full(3, sd**2))
        found = one_of(table, axis)
        off.append(found.values[0] - truth[:size].sum())
        told = float(found.variance[0])
    if size < 3:  # what all are together is known better, from elsewhere
        assert told <= size * sd**2
    assert told > 0
    assert np.var(off) == pytest.approx(size * sd**2, rel=0.15)


def test_pairs_of_classes_together() -> None:
    values = np.arange(9.0).reshape(3, 3)
    axes = Axis("a", DOMAIN, np.array([0, 0, 1])), Axis("b", DOMAIN, np.array([0, 1, 1]))
    ones = tuple(one_of(Table(values.sum(1 - at), np.ones(3)), axes[at]) for at in (0, 1))
    found = pair_of(Table(values, np.ones((3, 3))), ones, axes)  # type: ignore[arg-type]
    assert found.values.tolist() == [[3.0, 12.0], [6.0, 15.0]]
    assert np.all(found.variance > 0)


def test_effects_without_noise_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(5)
    people = rng.integers(0, [3, 4], (5_000, 2))
    value = 10 + np.array([-2.0, 0.0, 3.0])[people[:, 0]] + np.array([1.0, -1.0, 0.5, 0.0])[people[:, 1]]
    value = value + rng.normal(size=5_000)
    mean = float(value.mean())
    counts = np.zeros((3, 4))
    np.add.at(counts, (people[:, 0], people[:, 1]), 1)
    ones = [Table(counts.sum(1 - at), np.zeros(counts.shape[at])) for at in (0, 1)]
    sums = [Table(np.bincount(people[:, at], value, counts.shape[at]), np.zeros(counts.shape[at])) for at in (0, 1)]
    found = effects(sums, ones, {(0, 1): Table(counts, np.ones((3, 4)))}, mean, 1e6)
    design = np.concatenate([np.eye(3)[people[:, 0]], np.eye(4)[people[:, 1]]], axis=1)
    solved, *_ = np.linalg.lstsq(design, value - mean, rcond=None)
    # Effects are known up to what moves from one axis to the other: what they predict is the same.
    cells = np.array([(a, b) for a in range(3) for b in range(4)])
    predicted = [of[cells[:, 0]] + of[3 + cells[:, 1]] for of in (found.values, solved)]
    np.testing.assert_allclose(predicted[0], predicted[1], atol=0.01)


def test_effects_that_noise_blurs_are_held_to_nothing() -> None:
    ones = [Table(np.array([50.0, 50.0]), np.ones(2))]
    quiet, loud = (
        effects([Table(np.array([100.0, -100.0]), np.full(2, noise))], ones, {}, 0.0, 1.0) for noise in (1.0, 1e6)
    )
    assert quiet.values[0] == pytest.approx(2.0, rel=0.1)
    assert abs(loud.values[0]) < 0.1
    assert np.all(np.diag(loud.covariance) >= 0)


@pytest.mark.parametrize("sizes", [(5,), (3, 40), (40, 3), (4, 30, 6), (2, 2)])
def test_effects_are_those_of_the_whole_normal_equations(sizes: tuple[int, ...]) -> None:
    """They are solved by parts. Here the equations are written down whole and inverted."""
    draw = np.random.default_rng(5)
    cells = draw.integers(50, 500, sizes).astype(float)
    axes = range(len(sizes))
    ones = [Table(cells.sum(axis=tuple(b for b in axes if b != a)), np.ones(sizes[a])) for a in axes]
    sums = [Table(draw.normal(0, 1000, size), draw.uniform(10, 1000, size)) for size in sizes]
    pairs = {
        (a, b): Table(cells.sum(axis=tuple(c for c in axes if c not in (a, b))), np.ones((sizes[a], sizes[b])))
        for a in axes
        for b in axes
        if a < b
    }
    prior, mean = 3.0, 0.7
    blocks = [
        [np.diag(ones[a].values) if a == b else pairs[a, b].values if a < b else pairs[b, a].values.T for b in axes]
        for a in axes
    ]
    normal = np.block(blocks)
    noise = np.concatenate([of.variance for of in sums])
    held = noise / (prior**2 * np.diag(normal)) + 1.0
    inverse = np.linalg.inv(normal + np.diag(held))
    right = np.concatenate([of.values - mean * one.values for of, one in zip(sums, ones, strict=True)])
    found = effects(sums, ones, pairs, mean, prior)
    assert found.values == pytest.approx(inverse @ right, rel=1e-6, abs=1e-9)
    expected = (inverse * (noise + (held * prior) ** 2)) @ inverse.T
    assert np.allclose(found.covariance, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
