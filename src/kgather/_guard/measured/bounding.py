"""What counts of rows lose as the rows of some people are not counted in full, from how many rows people have.

It is computed from the measured histogram of activity, so it is known roughly, and tells nothing more of anybody. What
the few people have whom noise hides is not known.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgather._guard.measured.features import Feature
from kgather._guard.measured.measuring import Session
from kgather._guard.measured.model import Floats

_SEEN = 4.0  # standard deviations of noise from which on there are people in a part of the histogram
_UNEVEN = 0.35  # the standard error of what is missing in a group, as a part of it
_STEPS = 65  # points at which a part of the histogram is looked at
_STEEPEST = 20.0
_MOST = 0.9  # share that is missing at most


@dataclass(frozen=True)
class Lost:
    """some: whether it is likely that rows are not counted. share: of all rows, about how many are not; more: how many
    may be missing beyond that for each row that is counted, as noise hides them."""

    some: bool
    share: float = 0.0
    more: float = 0.0

    @property
    def factor(self) -> float:
        """By what counts are multiplied, so that what is missing is in them on average."""
        return 1 / (1 - self.share)

    @property
    def error(self) -> float:
        """A standard error of such a count as a part of it: in some groups there is more missing than in others."""
        return _UNEVEN * self.share + self.more


def lost(
    session: Session, rows: str, reach: float, spread: float, only: Feature | None = None, cells: float = math.inf
) -> Lost:
    """What is lost of a long table's rows, where one person moves `reach` at most. spread: as of `spread_of`; 0 where
    each row of a person is in a cell of its own, or a person counts once in each. only: of the rows for which it is
    true. cells: how many there are, where a person counts once in each."""
    activity = session.activity(rows, only)
    if not session.ensure(activity, required=False):
        return Lost(some=True)
    counts = session.model.mean(activity.name)
    assert counts is not None
    sd = math.sqrt(float(counts.variance[0]))
    many = np.minimum(_middles(activity.edges, counts.values, _SEEN * sd), cells)
    length = np.maximum(many * spread, np.sqrt(many))
    kept = many * np.minimum(1.0, reach / length)
    above = np.flatnonzero(kept < many)
    if not len(above):
        return Lost(some=False)
    first = int(above[0])
    seen = np.flatnonzero(counts.values >= _SEEN * sd)
    last = max(int(seen[-1]) if len(seen) else 0, first)
    # Right beyond those who are seen there are likely some more, and each of them has many rows.
    if last + 1 < len(many) and counts.values[last + 1] >= sd:
        last += 1
    people = np.maximum(counts.values[: last + 1], 0.0)
    missing, whole = (float(people @ of[: last + 1]) for of in (many - kept, many))
    tail = counts.values[first : last + 1]
    some = float(tail.sum()) > sd * math.sqrt(len(tail))
    share = min(missing / max(whole, 1.0), _MOST) if some else 0.0
    # A standard deviation of people who have many rows may be there, and be hidden.
    return Lost(some, share, sd * float((many - kept)[first]) / max(whole - missing, 1.0))


def _middles(edges: Sequence[int], people: Floats, hidden: float) -> Floats:
    """How many rows the people of each part of the histogram have, about; of the last one at least. people: how many
    are in each part. hidden: so many may be noise.

    Where there are fewer and fewer people from part to part, those of a part are near its lower end; where there are
    more and more, near its upper end.
    """
    above = np.array(edges, dtype=float)
    below = np.array([0, *edges[:-1]], dtype=float) + 1
    middles = np.sqrt(below * above)
    for at in range(1, len(above)):
        here = _Part(below[at], above[at], float(people[at]))
        steep = here.fall_after(_seen_from(below, above, people, range(at - 1, -1, -1), hidden), hidden)
        if people[at] >= hidden and at + 1 < len(above):
            beyond = _seen_from(below, above, people, range(at + 1, len(above)), hidden)
            after = beyond.fall_after(here, hidden)
            # Where as good as nobody is beyond, the fall is steeper than noise lets it look.
            steep = max(steep, after) if beyond.people < hidden / 2 else (steep + after) / 2
        if abs(steep) > 1:  # as many people have x rows as x to the power of -steep says
            rows = np.linspace(below[at], above[at], _STEPS)
            weights = (rows / below[at]) ** -min(max(steep, -_STEEPEST), _STEEPEST)
            mean = float(rows @ weights / weights.sum())
            middles[at] = min(middles[at], mean) if steep > 0 else mean
    return np.append(middles, above[-1] + 1)


@dataclass(frozen=True)
class _Part:
    """People with so many rows: from `low` to `high`."""

    low: float
    high: float
    people: float

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high)

    def people_a_row(self, hidden: float) -> float:
        """Noise is taken for people where it could hide some."""
        return max(self.people, hidden, 1.0) / (self.high - self.low + 1)

    def fall_after(self, before: "_Part", hidden: float) -> float:
        """How fast there are fewer people from the part before to this one: as a power of how many rows they have."""
        fewer = before.people_a_row(hidden) / self.people_a_row(hidden)
        return math.log(fewer) / math.log(self.middle / before.middle)


def _seen_from(below: Floats, above: Floats, people: Floats, places: Sequence[int], hidden: float) -> _Part:
    """The parts at these places, one beside the other, until there are people to be seen in them, or their ends are as
    far apart as those of most. One that is narrow, as beside a declared number of rows, has few people and says nothing
    by itself."""
    found, ends = 0.0, [places[0], places[0]]
    for last in places:
        found, ends = found + float(people[last]), sorted((places[0], last))
        if found >= hidden or above[ends[1]] + 1 >= 2 * below[ends[0]]:
            break
    return _Part(float(below[ends[0]]), float(above[ends[1]]), found)


def spread_of(cells: Floats) -> float:
    """How far a person moves the counts of some cells for each row (root of the sum of squares), where each person's
    rows are spread as all are."""
    values = np.maximum(cells, 0.0)
    whole = float(values.sum())
    return math.sqrt(float((values**2).sum())) / whole if whole > 0 else 1.0
