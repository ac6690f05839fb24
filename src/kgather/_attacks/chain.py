"""What two releases of a chain promise together, and whether it is so.

Whoever is in both shares both groups with at least k who are in both, too. And both are of one kind: who has two kinds
of the same groups learns from both.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from kgather._attacks.attacked import Attacked
from kgather._attacks.intersection import Second, in_common
from kgather._settings.publication import CHAIN


@dataclass(frozen=True)
class Chain:
    """promised: the k of two releases that follow each other; None where neither is of a chain. measured: people in the
    smallest set that a group of each has in common. other_settings: what a chain has in common and these have not.
    """

    promised: int | None
    measured: int
    other_settings: tuple[str, ...]

    @classmethod
    def of(cls, first: Attacked, second: Second) -> Self:
        """O(users)."""
        mine, theirs = first.evidence.parameters, second.attacked.evidence.parameters
        both = in_common(first, second)[np.flatnonzero(second.users >= 0)]
        promised = min(int(mine["k"]), int(theirs["k"])) if _follows(mine) or _follows(theirs) else None
        # A coarser k has the same groups, put together.
        others = [
            name for name in CHAIN if name in mine and name in theirs and name != "k" and mine[name] != theirs[name]
        ]
        return cls(promised, int(both.min()), tuple(others) if promised is not None else ())

    @property
    def broken(self) -> tuple[str, ...]:
        """What is not kept, in sentences."""
        said = []
        if self.promised is not None and self.measured < self.promised:
            said.append(
                f"the promise over both releases is not kept: {self.promised} people in the smallest set that a group "
                f"of each has in common are promised, {self.measured} are measured."
            )
        if self.other_settings:
            said.append(
                f"the two releases are of two kinds ({', '.join(self.other_settings)}): who has both learns from both."
            )
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self) | {"broken": list(self.broken)}


def _follows(parameters: Mapping[str, Any]) -> bool:
    """Whether a release is one of a chain, or was made to be followed."""
    return bool(parameters.get("history") or parameters.get("reserve"))
