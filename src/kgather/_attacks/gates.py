"""Limits on what attacks may find: what a pipeline fails on."""

from collections.abc import Mapping
from dataclasses import dataclass

from kgather._attacks.results import AttackReport
from kgather._errors import InputError

MEASURES = {
    "user-reidentification": ("user", "an attack that names people"),
    "group-identification": ("group", "an attack that names people"),
    "exact-rating-disclosure": ("exact", "the attack disclosure"),
    "matched": ("rightly_matched", "scoring, structure, label, homogeneity or posterior"),
    "membership-advantage": ("advantage", "the attack membership, which takes --others"),
}
"""Gates by name: what is compared, and what has to be run for it."""


@dataclass(frozen=True)
class Gate:
    """A limit and the worst that was measured, by which attack, with what knowledge."""

    name: str
    allowed: float
    measured: float
    attack: str
    knowledge: str

    @property
    def passed(self) -> bool:
        return self.measured <= self.allowed

    @property
    def sentence(self) -> str:
        """What is to be said of it."""
        relation = "at most" if self.passed else "more than"
        return (
            f"{self.name}: {self.attack} ({self.knowledge}) measures {self.measured:.4f}, {relation} the allowed "
            f"{self.allowed:g}."
        )


def check_limits(limits: Mapping[str, float]) -> None:
    """Raise InputError for an unknown gate or a limit that is no share."""
    for name, allowed in limits.items():
        if name not in MEASURES:
            msg = f"there is no gate {name!r}. There are: {', '.join(MEASURES)}."
            raise InputError(msg)
        if not 0 <= allowed <= 1:
            msg = f"--max-{name} is a share from 0 to 1, not {allowed:g}."
            raise InputError(msg)


def gates(report: AttackReport, limits: Mapping[str, float]) -> tuple[Gate, ...]:
    """Compare the worst results with the limits. Raises InputError for a limit on what was not run."""
    check_limits(limits)
    found = []
    for name, allowed in limits.items():
        measure, needed = MEASURES[name]
        worst = report.worst(measure)
        if worst is None:
            msg = f"--max-{name} has nothing to look at: run {needed}."
            raise InputError(msg)
        measured, result = worst
        found.append(Gate(name, allowed, measured, result.attack, result.knowledge))
    return tuple(found)
