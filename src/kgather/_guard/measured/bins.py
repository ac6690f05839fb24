"""Bins of a bounded value: counts in them, and in wider bins that each hold four of those before, say where the values
lie. Where values are summed up to a point, few counts are needed then, so that little noise comes together.

One measurement holds all levels. A person is in one bin of each level, or, of rows, has no more weight in a level than
in the question's groups: the reach of the whole is that of a level times the root of their number.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kgather._guard.measured.coding import Bounds
from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import Feature
from kgather._guard.measured.model import Floats
from kgather._guard.measured.reading import GRANULES, Reading
from kgather._guard.plan import MEASURE, Expr, Literal, Op, PerUnit

LEAVES = 256
"""How many bins there are of the narrowest level, at most."""
_FANOUT = 4


@dataclass(frozen=True)
class Bins:
    """The narrowest bins. whole: of whole numbers, each bin has `width` of them."""

    low: float
    width: float
    leaves: int
    whole: bool

    @classmethod
    def of(cls, argument: Feature, bounds: Bounds) -> "Bins":
        """The bins of a value between bounds."""
        if is_whole(argument.expr):
            low, high = math.ceil(bounds.low), math.floor(bounds.high)
            many = max(high - low + 1, 1)
            width = -(-many // LEAVES)
            return cls(float(low), float(width), -(-many // width), whole=True)
        if bounds.high <= bounds.low:
            return cls(bounds.low, 1.0, 1, whole=False)
        return cls(bounds.low, (bounds.high - bounds.low) / LEAVES, LEAVES, whole=False)

    @property
    def steps(self) -> tuple[int, ...]:
        """How many of the narrowest bins one of each level has."""
        found = [1]
        while found[-1] * _FANOUT < self.leaves:
            found.append(found[-1] * _FANOUT)
        return tuple(found)

    @property
    def size(self) -> int:
        """How many bins there are on all levels."""
        return sum(-(-self.leaves // step) for step in self.steps)

    @property
    def length(self) -> float:
        """What one person moves in all levels, as a multiple of one of them."""
        return math.sqrt(len(self.steps))

    def levels(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of the narrowest bins, int64[..., leaves], as those of all levels, int64[..., size]."""
        parts = [np.add.reduceat(counts, np.arange(0, self.leaves, step), axis=-1) for step in self.steps]
        return np.concatenate(parts, axis=-1)

    def fitted(self, counts: Floats) -> Floats:
        """Noisy counts of all levels, float64[..., size], as those of the narrowest bins that agree with them best,
        float64[..., leaves]: by least squares."""
        return counts @ _fit(self.leaves, self.steps).T

    def below(self, share: float) -> Floats:
        """The variance of how many are in the narrowest bins up to each one, beyond a share of all; float64[leaves],
        where each count has variance 1."""
        whole = _covariance(self.leaves, self.steps)
        sums = whole.cumsum(0).cumsum(1)
        return np.maximum(np.diag(sums) - 2 * share * sums[-1] + share**2 * sums[-1, -1], 0.0)

    def feature(self, argument: Feature) -> Feature:
        """The bin of a value, as a feature; what is beyond the ends is in the first and the last one."""
        low = Literal(self.low, "number")
        high = Literal(self.low + self.width * (self.leaves - (1 if self.whole else 0)), "number")
        cut = Op("least", (Op("greatest", (argument.expr, low), "number"), high), "number")
        place = Op(
            "floor", (Op("/", (Op("-", (cut, low), "number"), Literal(self.width, "number")), "number"),), "number"
        )
        last = Op("least", (place, Literal(float(self.leaves - 1), "number")), "number")
        # Both ends cut off a NULL, too; a value that is missing stays so.
        there = Op("case", (Op("is null", (argument.expr,)), Literal(None, "null"), last), "number")
        return replace(argument, expr=there)

    def domain(self, argument: Feature) -> Domain:
        """The classes of the bin."""
        listed = tuple(str(at) for at in range(self.leaves))
        return Domain(listed, "DOUBLE", null=True, other=True, absent=argument.may_be_absent)

    def edge(self, at: float) -> float:
        """Where a bin begins; between two bins, as far between their beginnings."""
        return self.low + at * self.width


def is_whole(expr: Expr) -> bool:
    """Whether an expression is a whole number."""
    if isinstance(expr, Op) and expr.name == MEASURE:
        (inner,) = expr.args
        return inner.kind == "integer" and isinstance(inner, PerUnit)
    return expr.kind == "integer"


@lru_cache(maxsize=64)
def _covariance(leaves: int, steps: tuple[int, ...]) -> Floats:
    held = _held(leaves, steps)
    return np.asarray(np.linalg.inv(held.T @ held), dtype=np.float64)


@lru_cache(maxsize=64)
def _fit(leaves: int, steps: tuple[int, ...]) -> Floats:
    return _covariance(leaves, steps) @ _held(leaves, steps).T


def _held(leaves: int, steps: tuple[int, ...]) -> Floats:
    """Which of the narrowest bins each bin holds; float64[size, leaves]."""
    return np.concatenate([np.add.reduceat(np.eye(leaves), np.arange(0, leaves, step), axis=0) for step in steps])


def read(
    reading: Reading,
    rows: str | None,
    features: tuple[Feature, ...],
    domains: tuple[Domain, ...],
    argument: Feature,
    bins: Bins,
    reach: float,
) -> NDArray[np.int64]:
    """People, or rows (in granules), in each cell of the features' classes and each bin of all levels;
    int64[*sizes, size]. A person's rows are scaled by how many there are in each cell, in whatever bins: so no level
    holds more of a person than `reach`."""
    of, classes = (*features, bins.feature(argument)), (*domains, bins.domain(argument))
    if rows is None:
        counts = reading.count(None, of, classes, reach)
    else:
        counts = reading.weighed(rows, of, classes, reach, GRANULES)
    return bins.levels(np.ascontiguousarray(counts[..., : bins.leaves]))
