"""What attacks find: rates with intervals, one result for each attack, and the report of all."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_Z = 1.959963984540054  # 95% of a normal distribution lie within


@dataclass(frozen=True)
class Rate:
    """A share of the targets, 0..1, with a 95% Wilson interval over them."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, credits: NDArray[np.floating], targets: int) -> Self | None:
        """The mean of credits float64[draws], each 0..1, in an interval for `targets` people; None where nobody is.

        Several draws of one user count as one observation, so the interval is rather too wide than too narrow.
        """
        if targets == 0 or len(credits) == 0:
            return None
        value = min(max(float(np.mean(credits)), 0.0), 1.0)
        spread = _Z * _Z / targets
        middle = (value + spread / 2) / (1 + spread)
        half = _Z / (1 + spread) * math.sqrt(value * (1 - value) / targets + spread / (4 * targets))
        return cls(value, min(max(middle - half, 0.0), value), max(min(middle + half, 1.0), value))


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """What one attack with one amount of knowledge finds.

    targets: people attacked; left_out: those who have too few ratings for it. user: the chance that the attacker's
    guess is the target; group: that it is somebody of the target's group. matched: how often the attacker believes to
    have found somebody; wrong_among_matched: how often that is somebody else. chance_user, chance_group: what guessing
    blindly gives. details: further numbers, by name. by: which way of attacking found most, where several were tried.
    known: how many ratings the attacker knows, where it is a number. What an attack does not measure is None.
    """

    attack: str
    knowledge: str
    targets: int
    user: Rate | None = None
    group: Rate | None = None
    matched: Rate | None = None
    wrong_among_matched: Rate | None = None
    chance_user: float
    chance_group: float
    seed: int
    left_out: int = 0
    details: Mapping[str, float] = field(default_factory=dict)
    by: str | None = None
    known: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self) | {"details": dict(self.details)}


QUESTIONS = ("singling out", "linkability", "inference")
"""What data protection asks of anonymized data: whether a person can be singled out, whether records of a person can be
linked, and whether something can be inferred about a person (Article 29 Working Party, opinion 05/2014).
"""


@dataclass(frozen=True)
class Aim:
    """What an attack is after: the strongest of a kind is what counts.

    question: one of `QUESTIONS`. measure: what is compared: `group` (the person's group is found), `matched`, or the
    name of one of the details. chance: the name of the detail that chance gives, or a number.
    """

    question: str
    kind: str
    measure: str = "group"
    chance: str | float = "chance_group"


_FOUND, _LINKED, _TOLD = QUESTIONS
AIMS: Mapping[str, tuple[Aim, ...]] = {
    "scoring": (Aim(_FOUND, "a few ratings"),),
    "distance": (Aim(_FOUND, "a few ratings"),),
    "label": (Aim(_FOUND, "a few ratings"),),
    "posterior": (Aim(_FOUND, "a few ratings"),),
    "folded": (Aim(_FOUND, "a few ratings"),),
    "dated": (Aim(_FOUND, "a few ratings with dates"),),
    "own_model": (Aim(_FOUND, "a few ratings and other people's"),),
    "structure": (Aim(_FOUND, "items only"),),
    "items": (Aim(_FOUND, "items only"),),
    "rare_item": (Aim(_FOUND, "an item of few raters", chance="stranger"),),
    "columns": (Aim(_LINKED, "items of one person", "matched", "linked_by_chance"),),
    "linkage": (Aim(_LINKED, "all ratings"),),
    "intersection": (Aim(_LINKED, "two releases"),),
    "changes": (Aim(_LINKED, "items that changed between two releases", "changed_auc", "changed_by_raters"),),
    "pairs": (
        Aim(_TOLD, "who came between two releases", "came", "single"),
        Aim(_TOLD, "who left between two releases", "left", 0.5),
        Aim(_TOLD, "what a newcomer rated", "items", 0.5),
    ),
    "disclosure": (Aim(_TOLD, "exact ratings in cells", "exact", 0.0),),
    "homogeneity": (Aim(_TOLD, "other ratings of the person", "learnt", "learnt_by_chance"),),
    "membership": (Aim(_TOLD, "membership", "advantage", "advantage_by_chance"),),
    "shadows": (Aim(_TOLD, "membership, by shadow releases", "advantage", "advantage_by_chance"),),
    "attribute": (Aim(_TOLD, "a rating that is not known", "sign_in", "sign_out"),),
    "existence": (
        Aim(_TOLD, "one rater more, all others known", "existence_auc", 0.5),
        Aim(_TOLD, "one rating, all others known", "sign_auc", 0.5),
    ),
}


@dataclass(frozen=True)
class Best:
    """The strongest attacker of a kind: what is measured, in a 95% interval where there is one, beside what chance
    gives. question: one of `QUESTIONS`. by: the way of attacking, where the attack stands for several. worst: the same
    for the people who are easiest to find, by name: the share of right groups, or with `_user` of right people.
    """

    question: str
    kind: str
    attack: str
    knowledge: str
    measure: str
    value: float
    low: float
    high: float
    chance: float
    targets: int
    by: str | None = None
    worst: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackReport:
    """The results on a release, and, where asked for, those of the same attacks on the ratings it was made of.

    chain: what it promises together with a second release, as `chain.Chain.as_dict` says; None without one.
    """

    results: tuple[AttackResult, ...]
    original: tuple[AttackResult, ...]
    settings: Mapping[str, Any]
    chain: Mapping[str, Any] | None = None

    def same_on_original(self, result: AttackResult) -> AttackResult | None:
        """The result of the same attack with the same knowledge on the original, if there is one."""
        for other in self.original:
            if (other.attack, other.knowledge) == (result.attack, result.knowledge):
                return other
        return None

    def worst(self, measure: str, attack: str | None = None) -> tuple[float, AttackResult] | None:
        """The largest value of a measure and the result it comes from; None where no attack measures it.

        measure: user, group, matched, rightly_matched, or the name of one of the details. attack: looks at the results
        of this one only.
        """
        looked_at = [result for result in self.results if attack in (None, result.attack)]
        found = [(value, result) for result in looked_at if (value := _measured(result, measure)) is not None]
        return max(found, key=lambda pair: pair[0], default=None)

    def best(self) -> tuple[Best, ...]:
        """The strongest attacker of each kind and amount of knowledge, by question and in the order of the runs."""
        found: dict[tuple[str, str, str | int | None], Best] = {}
        for result in self.results:
            for one in _bests_of(result):
                # Attackers who have other people's ratings too are no rivals of those who have not.
                by_words = result.attack in ("membership", "rare_item")
                key = (one.kind, one.measure, result.knowledge if by_words else result.known)
                if key not in found or one.value > found[key].value:
                    found[key] = one
        return tuple(sorted(found.values(), key=lambda one: QUESTIONS.index(one.question)))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "best": [asdict(one) for one in self.best()],
            "settings": dict(self.settings),
            "results": [result.as_dict() for result in self.results],
            "original": [result.as_dict() for result in self.original],
            **({} if self.chain is None else {"chain": dict(self.chain)}),
        }


def _bests_of(result: AttackResult) -> Iterator[Best]:
    told = result.details
    worst = {name: value for name, value in told.items() if name.startswith("farthest_")}
    for aim in AIMS.get(result.attack, ()):
        rate = getattr(result, aim.measure, None) if aim.measure in ("group", "matched") else None
        if rate is None and aim.measure in told:
            value = told[aim.measure]
            rate = Rate(value, told.get(f"{aim.measure}_low", value), told.get(f"{aim.measure}_high", value))
        if rate is None:
            continue
        chance = told.get(aim.chance, result.chance_group) if isinstance(aim.chance, str) else aim.chance
        yield Best(
            aim.question,
            aim.kind,
            result.attack,
            result.knowledge,
            aim.measure,
            rate.value,
            rate.low,
            rate.high,
            chance,
            result.targets,
            result.by,
            worst,
        )


def _measured(result: AttackResult, measure: str) -> float | None:
    if measure in ("user", "group", "matched"):
        rate: Rate | None = getattr(result, measure)
        return None if rate is None else rate.value
    if measure == "rightly_matched":
        if result.matched is None or result.attack == "intersection":
            return None
        wrong = 1.0 if result.wrong_among_matched is None else result.wrong_among_matched.value
        return result.matched.value * (1 - wrong)
    return result.details.get(measure)
