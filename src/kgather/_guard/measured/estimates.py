"""Numbers of groups with their standard errors, and how they came about."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kgather._guard.engine import KINDS
from kgather._guard.measured.model import Floats

MEASURED, MODELLED, ESTIMATED = KINDS

Keys = tuple[Any, ...]


@dataclass(frozen=True)
class Estimates:
    """Of each group, by its keys: values and the variance of each, float64[g]. kind: the least sure of what they are
    made of. bounded: whether it is likely that rows of some people are not counted in full. beyond: what that adds to
    the standard error, as a part of each value. It is not in the variance, which says whether a group is shown."""

    keys: tuple[Keys, ...]
    types: tuple[pa.DataType, ...]
    values: Floats
    variance: Floats
    kind: str
    bounded: bool = False
    beyond: float = 0.0

    def at(self, keys: Keys) -> tuple[float, float] | None:
        """Value and standard error of a group."""
        place = self._places.get(keys)
        if place is None:
            return None
        value = float(self.values[place])
        return value, math.hypot(math.sqrt(max(float(self.variance[place]), 0.0)), self.beyond * value)

    @cached_property
    def _places(self) -> Mapping[Keys, int]:
        return {keys: at for at, keys in enumerate(self.keys)}


def worse(*kinds: str) -> str:
    """The least sure of some kinds."""
    return max(kinds, key=KINDS.index)
