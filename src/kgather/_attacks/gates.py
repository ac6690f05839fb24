"""Limits on what attacks may find: what a pipeline fails on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgather._attacks.results import AttackReport
from kgather._errors import InputError

MEASURES: Mapping[str, tuple[str, str, str | None]] = {
    "user-reidentification": ("user", "an attack that names people", None),
    "group-identification": ("group", "an attack that names people", None),
    "exact-rating-disclosure": ("exact", "the attack disclosure", None),
    "matched": ("rightly_matched", "scoring, structure, label, homogeneity or posterior", None),
    "membership-advantage": ("advantage", "the attack membership, which takes --others", "membership"),
    "shadow-advantage": ("advantage", "the attack shadows, which --attacks has to name", "shadows"),
    "sign-auc": ("sign_auc", "the attack existence, which --attacks has to name", "existence"),
    "linked-items": ("linked_beyond_chance", "the attack columns", "columns"),
    "rare-item-gain": ("beyond_stranger", "the attack rare_item", "rare_item"),
    "attribute-gain": ("sign_gain", "the attack attribute, which --attacks has to name", "attribute"),
    "changed-auc": ("changed_auc", "the attack changes, which takes --second", "changes"),
    "newcomer-auc": ("newcomer_auc", "the attack changes, which takes --second", "changes"),
    "existence-auc": ("existence_auc", "the attack existence, which --attacks has to name", "existence"),
}
"""Gates by name: what is compared, what has to be run for it, and whose results count, if not everybody's."""

_NOTHING = "--max-{name} has nothing to look at: run {needed}."


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


def check_attacks(limits: Mapping[str, float], attacks: Sequence[str] | None, when_named: Sequence[str]) -> None:
    """Raise InputError for a limit on an attack that will not run, before others do. attacks: those that are named;
    None: all but those of `when_named`.
    """
    for name in limits:
        _, needed, attack = MEASURES[name]
        runs = attack not in when_named if attacks is None else attack is None or attack in attacks
        if not runs:
            raise InputError(_NOTHING.format(name=name, needed=needed))


def gates(report: AttackReport, limits: Mapping[str, float]) -> tuple[Gate, ...]:
    """Compare the worst results with the limits. Raises InputError for a limit on what was not run."""
    check_limits(limits)
    found = []
    for name, allowed in limits.items():
        measure, needed, attack = MEASURES[name]
        worst = report.worst(measure, attack)
        if worst is None:
            raise InputError(_NOTHING.format(name=name, needed=needed))
        measured, result = worst
        found.append(Gate(name, allowed, measured, result.attack, result.knowledge))
    return tuple(found)
