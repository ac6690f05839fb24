"""One line of an experiment: what a paper prints, what was found, what chance gives, and how they compare.

What chance gives may be drawn several times. One rule says for all lines what that tells: chance reaches what more than
a twentieth of the draws reach. So of one draw that draw decides, and of twenty the second best.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np

Verdict = Literal["reproduced", "near", "not reproduced", "as by chance", "not printed", "fact"]

UNJUDGED = ("not printed", "fact")
DRAWS = 20  # of what chance gives, where they are cheap
_RARE = 20  # chance reaches what more than one of so many draws reach
_NEAR = 3  # times the tolerance
_T = TypeVar("_T")
_RANKED: tuple[Verdict, ...] = ("not reproduced", "near", "reproduced")


@dataclass(frozen=True)
class Finding:
    """A number, or a statement that holds or does not.

    measure: what is measured; lines of one measure are a curve over x, where they have one. x: the parameter that
    varies, in the unit that `of` names. paper: what is printed (None: nothing), measured: what is found, both as
    numbers or, of statements, as text. chance: the same measured where the users are in groups at random, or whatever
    else stands for knowing nothing; every line with a verdict has it. shows: figures, tables or
    sections of the paper, with semicolons.
    reading: what the paper leaves open, and how it was read here. timed: whether it is of a clock, so that no two runs
    have the same. verdict: "fact" where the line is about a printed table itself, which nothing of kgather computes.
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
    chance: float | Sequence[float] | None = None,
    valid: bool = True,
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
    chance: one draw, or several, whose median is shown. valid: whether what was measured is what the line is about, as
    groups that are large enough; where it is not, no number reproduces anything.
    Raises ValueError where a printed number has no chance beside it.
    """
    draws = [] if chance is None else [chance] if isinstance(chance, int | float) else list(chance)
    verdict: Verdict = "not printed"
    if paper is not None:
        if not draws:
            msg = f"{measure}: what does chance give?"
            raise ValueError(msg)
        allowed = points if points is not None else within * abs(paper)
        by_chance = _reached(_nearness(draw - paper, allowed) for draw in draws)
        verdict = _verdict(_nearness(measured - paper, allowed) if valid else 0, by_chance)
    shown = None if not draws else draws[0] if len(draws) == 1 else float(np.median(draws))
    return Finding(measure, measured, paper, x, of if x is not None else "", verdict, reading, shown, shows, timed)


def statement(
    measure: str,
    paper: str,
    found: str,
    *,
    holds: bool | None,
    chance: str,
    by_chance: bool | Sequence[bool | None] | None,
    valid: bool = True,
    shows: str = "",
    reading: str = "",
) -> Finding:
    """A statement of a paper beside what was found; holds None: in part. chance, by_chance: the same by chance, of one
    draw or of several. valid: as in `number`.
    """
    draws = by_chance if isinstance(by_chance, Sequence) else [by_chance]
    verdict = _verdict(_rank(holds) if valid else 0, _reached(map(_rank, draws)))
    return Finding(measure, found, paper, verdict=verdict, reading=reading, chance=chance, shows=shows)


def fact(measure: str, found: float | str, paper: float | str, *, shows: str = "", reading: str = "") -> Finding:
    """What is read off data or a printed table, without anything of kgather: it has no verdict."""
    return Finding(measure, found, paper, verdict="fact", reading=reading, shows=shows)


def judged_together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, where points of a curve reproduce nothing that is not reproduced by half of it or more.

    Of two curves of which one is steeper, some point always comes near the other one: where they cross. Points that
    chance reaches, too, tell nothing either way and do not count.
    """
    told = list(findings)
    curves: dict[str, list[Verdict]] = {}
    for found in told:
        if found.x is not None and found.verdict in _RANKED:
            curves.setdefault(found.measure, []).append(found.verdict)
    crossing = {
        measure for measure, of in curves.items() if 2 * sum(verdict != "not reproduced" for verdict in of) < len(of)
    }
    return [
        replace(found, verdict="not reproduced")
        if found.x is not None and found.measure in crossing and found.verdict in _RANKED
        else found
        for found in told
    ]


def drawn(draw: Callable[[int], _T], count: int = DRAWS) -> list[_T]:
    """What chance gives, drawn with the seeds from 0."""
    return [draw(seed) for seed in range(count)]


def how_often(holds: Sequence[bool | None], of: str = "draws") -> str:
    """In how many draws something holds, in words."""
    partly = sum(one is None for one in holds)
    told = f"in {sum(one is True for one in holds)} of {len(holds)} {of}"
    return f"{told}, in part in {partly}" if partly else told


def _reached(ranks: Iterable[int]) -> int:
    """The rank that chance reaches: the highest that more than a twentieth of the draws have or surpass."""
    ordered = sorted(ranks, reverse=True)
    return ordered[len(ordered) // _RARE]


def _nearness(gap: float, allowed: float) -> int:
    return 2 if abs(gap) <= allowed else 1 if abs(gap) <= _NEAR * allowed else 0


def _rank(holds: bool | None) -> int:
    return 1 if holds is None else 2 * bool(holds)


def _verdict(found: int, by_chance: int) -> Verdict:
    return "as by chance" if 0 < found <= by_chance else _RANKED[found]


def rises(values: Sequence[float]) -> bool:
    """Whether a curve rises from its first to its last point, but for steps of a tenth of that."""
    whole = values[-1] - values[0]
    return whole > 0 and all(later - earlier > -0.1 * whole for earlier, later in pairwise(values))


def in_part(*holds: bool) -> bool | None:
    """Whether all of several hold, of which there are some; None where some hold."""
    return True if holds and all(holds) else None if any(holds) else False
