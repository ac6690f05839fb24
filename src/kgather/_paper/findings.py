"""One line of an experiment: what a paper prints, what was found, and how the two compare."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "near", "not reproduced", "not printed"]

_NEAR = 3  # times the tolerance


@dataclass(frozen=True)
class Finding:
    """A number, or a statement that holds or does not.

    measure: what is measured; lines of one measure are a curve over x, where they have one. x: the parameter that
    varies, in the unit that `of` names. paper: what is printed (None: nothing), measured: what is found, both as
    numbers or, of statements, as text. reading: what the paper leaves open, and how it was read here.
    """

    measure: str
    measured: float | str
    paper: float | str | None = None
    x: float | None = None
    of: str = ""
    verdict: Verdict = "not printed"
    reading: str = ""

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
    x: float | None = None,
    of: str = "k",
    within: float = 0.02,
    points: float | None = None,
    reading: str = "",
) -> Finding:
    """A number beside the printed one: reproduced within a share `within`, or within so many `points` of its unit."""
    verdict: Verdict = "not printed"
    if paper is not None:
        gap, allowed = abs(measured - paper), points if points is not None else within * abs(paper)
        verdict = "reproduced" if gap <= allowed else "near" if gap <= _NEAR * allowed else "not reproduced"
    return Finding(measure, measured, paper, x, of if x is not None else "", verdict, reading)


def statement(measure: str, paper: str, found: str, *, holds: bool | None, reading: str = "") -> Finding:
    """A statement of a paper beside what was found; holds None: in part."""
    verdict: Verdict = "near" if holds is None else "reproduced" if holds else "not reproduced"
    return Finding(measure, found, paper, verdict=verdict, reading=reading)
