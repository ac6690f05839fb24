"""Means of groups from the effects of classes, against the formula written out."""

import numpy as np
import pyarrow as pa
import pytest

from kgather._guard.measured.domain import Domain
from kgather._guard.measured.grid import Grid
from kgather._guard.measured.means import _predicted
from kgather._guard.measured.model import Axis, Effects


def _grid(rng: np.random.Generator, shape: tuple[int, ...], keyed: tuple[int, ...]) -> Grid:
    """A question whose groups are the classes of some axes, and that asks for some of the cells."""
    axes = []
    for at, size in enumerate(shape):
        domain = Domain(tuple(str(value) for value in range(size)), "INTEGER", null=False, other=False, absent=False)
        axes.append(Axis(f"axis{at}", domain, np.arange(size)))
    place = np.indices(shape)
    group = np.zeros(shape, dtype=np.int64)
    for at in keyed:
        group = group * shape[at] + place[at]
    wanted = rng.random(shape) < 0.7
    used, places = np.unique(group[wanted], return_inverse=True)
    whole = np.full(shape, -1, dtype=np.int64)
    whole[wanted] = places
    keys = tuple((int(one),) for one in used)
    return Grid(tuple(axes), wanted, whole, keys, (pa.int64(),))


@pytest.mark.parametrize("keyed", [(), (0,), (0, 1), (0, 1, 2), (2, 0)])
@pytest.mark.parametrize("known", [(0, 1, 2), (0, 2), (1,)])
def test_means_are_those_of_the_formula(keyed: tuple[int, ...], known: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(keyed) * 10 + len(known))
    shape = (3, 4, 5)
    on = _grid(rng, shape, keyed)
    counts = rng.normal(20, 15, shape)  # noise makes some negative
    classes = sum(shape[at] for at in known)
    half = rng.normal(size=(classes, classes))
    found = Effects(rng.normal(size=classes), half @ half.T)

    values, variance = _predicted(on, counts, found, known, 2.0, 0.5)

    weights = np.maximum(counts, 1e-9)
    for group in range(len(on.keys)):
        inside = on.wanted & (on.group == group)
        shares = []
        for at in known:
            others = tuple(axis for axis in range(3) if axis != at)
            shares.append(np.where(inside, weights, 0.0).sum(axis=others) / weights[inside].sum())
        share = np.concatenate(shares)
        assert values[group] == pytest.approx(2.0 + share @ found.values)
        assert variance[group] == pytest.approx(0.5 + share @ found.covariance @ share)
