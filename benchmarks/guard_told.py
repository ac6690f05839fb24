"""What guards tell of questions, and how far off it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from guard_people import People, Question
from numpy.typing import NDArray

OLDER = "2d374cf"
"""The guard's last revision with exact figures of atoms, which gave single ratings away."""
NAMES = {
    "thresholds": "plain thresholds (unsafe)",
    "older": f"revision {OLDER} (unsafe)",
    "smartnoise-sql": "smartnoise-sql",
    "mst": "rows by MST",
    "aim": "rows by AIM",
}
_UNSAFE = ("thresholds", "older")


@dataclass(frozen=True)
class Told:
    """What somebody told of questions: counts and means, float64[m] with NaN where nothing was; and, where known,
    their standard errors."""

    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    of_counts: NDArray[np.float64] | None = None
    of_means: NDArray[np.float64] | None = None

    @classmethod
    def from_rival(cls, answers: Sequence[tuple[float | None, float | None]], asked: int) -> "Told":
        """Of a rival, which may have answered the first questions only."""
        table = np.full((asked, 2), np.nan)
        if answers:
            table[: len(answers)] = np.array(answers, dtype=np.float64)
        return cls(table[:, 0], table[:, 1])


@dataclass(frozen=True)
class Errors:
    """Relative errors, float64[m], NaN where nothing was told. looked: at which; big: which have big groups."""

    of: NDArray[np.float64]
    looked: NDArray[np.bool_]
    big: NDArray[np.bool_]

    @property
    def told(self) -> NDArray[np.bool_]:
        return self.looked & ~np.isnan(self.of)

    def median(self, among: NDArray[np.bool_] | None = None) -> tuple[float, float]:
        """Of all groups, and of big ones. among: which are looked at, instead of all that were told."""
        chosen = self.told if among is None else among
        return quantile(self.of[chosen], 0.5), quantile(self.of[chosen & self.big], 0.5)

    def p90(self, among: NDArray[np.bool_] | None = None) -> float:
        return quantile(self.of[self.told if among is None else among], 0.9)

    @property
    def withheld(self) -> float:
        """The part of questions that nothing was told about."""
        return 1 - self.told.sum() / max(self.looked.sum(), 1)


def quantile(values: NDArray[np.float64], at: float) -> float:
    return float(np.quantile(values, at)) if len(values) else np.nan


def errors_of(told: NDArray, truth: NDArray, looked: NDArray, big: NDArray) -> Errors:
    return Errors(np.abs(told - truth) / np.maximum(truth, 1e-9), looked, big)


@dataclass(frozen=True)
class Truth:
    counts: NDArray[np.float64]
    means: NDArray[np.float64]

    @classmethod
    def of(cls, people: People, questions: Sequence[Question]) -> "Truth":
        return cls(*np.array([question.told(people) for question in questions], dtype=np.float64).T)


def thresholds(truth: Truth, k: int) -> Told:
    """A guard that refuses what is about fewer than k people and tells the rest exactly."""
    shown = truth.counts >= k
    return Told(np.where(shown, truth.counts, np.nan), np.where(shown, truth.means, np.nan))


def compared(
    ours: Errors, rivals: Mapping[str, Told | str], values: Callable[[Told], Errors], *, with_p90: bool = False
) -> tuple[dict[str, str], list[str]]:
    """A cell for each rival, and the names of safe ones that kgather is behind on what both answered."""
    cells, ahead = {}, []
    for name, told in rivals.items():
        if isinstance(told, str):
            cells[NAMES[name]] = told
            continue
        theirs = values(told)
        both = ours.told & theirs.told
        if not theirs.told.any():
            cells[NAMES[name]] = "tells nothing"
            continue
        cells[NAMES[name]] = (
            f"{shown(theirs, with_p90=with_p90)}; on {both.sum()} answered by both {shown(theirs, both)} "
            f"and kgather {shown(ours, both)}"
        )
        if name not in _UNSAFE and both.any() and ours.median(both)[0] > theirs.median(both)[0]:
            ahead.append(NAMES[name])
    return cells, ahead


def shown(errors: Errors, among: NDArray | None = None, *, with_p90: bool = False) -> str:
    median, big = errors.median(among)
    more = f", p90 {errors.p90(among):.1%}" if with_p90 else ""
    return f"{percent(median)} ({percent(big)}){more}"


def percent(share: float) -> str:
    return "none" if np.isnan(share) else f"{share:.2%}"


def within_one(told: NDArray, errors: NDArray | None, truth: NDArray, looked: NDArray) -> str:
    assert errors is not None
    mine = looked & ~np.isnan(told)
    return f"{(np.abs(told - truth) <= errors)[mine].mean():.0%} within one standard error" if mine.any() else ""
