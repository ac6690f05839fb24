"""One line of an experiment: what a paper prints, what was found, what chance gives, and how they compare."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "near", "not reproduced", "as by chance", "not printed"]

_NEAR = 3  # times the tolerance
_RANKED: tuple[Verdict, ...] = ("not reproduced", "near", "reproduced")


@dataclass(frozen=True)
class Finding:
    """A number, or a statement that holds or does not.

    measure: what is measured; lines of one measure are a curve over x, where they have one. x: the parameter that
    varies, in the unit that `of` names. paper: what is printed (None: nothing), measured: what is found, both as
    numbers or, of statements, as text. chance: the same measured where the users are in groups at random, or whatever
    else stands for knowing nothing; every line with a verdict has it. shows: the figure, table or section of the paper.
    reading: what the paper leaves open, and how it was read here. timed: whether it is of a clock, so that no two runs
    have the same.
    """

    measure: str
    measured: float | str
    paper: float | str | None = None
    x: float | None = None
    of: str = ""
    verdict: Verdict = "not printed"
    reading: str = ""
    chance: float | str | None = None
    shows: str = ""
    timed: bool = False

    @property
    def deviation(self) -> float | None:
        """How far the number found is from the one printed, as a share of the latter; None where there is none."""
        if isinstance(self.measured, str) or isinstance(self.paper, str) or not self.paper:
            return None
        return self.measured / self.paper - 1


def number(
    measure: str,
    measured: float,
    paper: float | None = None,
    *,
    chance: float | None = None,
    x: float | None = None,
    of: str = "k",
    within: float = 0.02,
    points: float | None = None,
    shows: str = "",
    reading: str = "",
    timed: bool = False,
) -> Finding:
    """A number beside the printed one: reproduced within a share `within`, or within so many `points` of its unit.

    What chance comes as near to is not reproduced by what the paper proposes, and has the verdict "as by chance".
    Raises ValueError where a printed number has no chance beside it.
    """
    verdict: Verdict = "not printed"
    if paper is not None:
        if chance is None:
            msg = f"{measure}: what does chance give?"
            raise ValueError(msg)
        allowed = points if points is not None else within * abs(paper)
        verdict = _verdict(_nearness(measured - paper, allowed), _nearness(chance - paper, allowed))
    return Finding(measure, measured, paper, x, of if x is not None else "", verdict, reading, chance, shows, timed)


def statement(
    measure: str,
    paper: str,
    found: str,
    *,
    holds: bool | None,
    chance: str,
    by_chance: bool | None,
    shows: str = "",
    reading: str = "",
) -> Finding:
    """A statement of a paper beside what was found; holds None: in part. chance, by_chance: the same by chance."""
    verdict = _verdict(_rank(holds), _rank(by_chance))
    return Finding(measure, found, paper, verdict=verdict, reading=reading, chance=chance, shows=shows)


def _nearness(gap: float, allowed: float) -> int:
    return 2 if abs(gap) <= allowed else 1 if abs(gap) <= _NEAR * allowed else 0


def _rank(holds: bool | None) -> int:
    return 1 if holds is None else 2 * bool(holds)


def _verdict(found: int, by_chance: int) -> Verdict:
    return "as by chance" if 0 < found <= by_chance else _RANKED[found]


def in_part(*holds: bool) -> bool | None:
    """Whether all of several hold; None where some do."""
    return True if all(holds) else None if any(holds) else False
