"""Sensitive values of classes where people have several rows: people are counted, and not rows.

Somebody with many rows holds many values, and may hold the same one often. Two distributions of a class count each
person once:

- `crowded`: the values in order of how many people of the class hold them, each given as many people as are left:
  where 5 people hold `a`, 3 hold `b` and there are 6 people, it is (5, 1). Whichever one of the own values each person
  is thought to have, the values are spread at least as evenly (this one majorizes all of these), so diversity and alpha
  that hold of it hold whatever is thought: alpha is then the share of the people who hold a value at all.
- `even`: each person counts 1, divided among the own rows in the class. t is measured of it.

Both are the distribution of the rows where each person has one. numpy sorts: O(p log p) for p pieces.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Lists = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""The distributions of classes: (where they start int64[g + 1], values, people)."""


def crowded(group: NDArray[np.integer], values: NDArray[np.integer], person: NDArray[np.integer], g: int) -> Lists:
    """Of each of g classes the people of each value, the most frequent first. Values are places in this order.

    group, values, person: int[p], from 0: some rows of this class, value and person.
    """
    of, _, held = _held(group, values, person)
    people = _people(group, person, g)
    order = np.lexsort((-held, of))
    of, held = of[order], held[order]
    starts = np.searchsorted(of, np.arange(g + 1)).astype(np.int64)
    upto = np.cumsum(held)
    before = np.append(0, upto)[starts[of]]
    taken = np.minimum(held, people[of] - (upto - held - before))
    kept = taken > 0
    starts = np.searchsorted(of[kept], np.arange(g + 1)).astype(np.int64)
    return starts, np.arange(int(kept.sum()), dtype=np.int64) - starts[of[kept]], taken[kept].astype(np.float64)


def even(
    group: NDArray[np.integer],
    values: NDArray[np.integer],
    person: NDArray[np.integer],
    rows: NDArray[np.integer],
    g: int,
) -> Lists:
    """Of each of g classes the people of each value, ascending, each divided among the own rows there. rows: int[p]."""
    share = shares(group, person, rows)
    cells, place = np.unique(np.stack([group, values]), axis=1, return_inverse=True)
    starts = np.searchsorted(cells[0], np.arange(g + 1)).astype(np.int64)
    people = np.bincount(place.ravel(), weights=share).astype(np.float64)
    return starts, cells[1].astype(np.int64), people


def shares(group: NDArray[np.integer], person: NDArray[np.integer], rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """What part of the rows of its person in its class each piece has, float64[p]."""
    key = np.asarray(group, dtype=np.int64) * (int(np.max(person, initial=0)) + 1) + person
    place = np.unique(key, return_inverse=True)[1]
    return np.asarray(rows / np.bincount(place, weights=rows)[place])


def told(
    group: NDArray[np.integer], values: Sequence[NDArray[np.integer]], person: NDArray[np.integer]
) -> tuple[float, float, list[tuple[float, float]]]:
    """What somebody gets who knows all quasi-identifiers of all rows of people.

    Gives the largest chance to pick one person among those whose rows are in the same set of classes; the share of
    people who are picked rightly at random, one of each such set; and for each sensitive column the shares of people
    some class of whom has one value that all people there hold, and one that more than half of them hold.
    """
    who, of = np.unique(np.stack([person, group]), axis=1).astype(np.int64)
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    sets: dict[bytes, int] = {}
    for own in np.split(of, starts[1:]):
        key = own.tobytes()
        sets[key] = sets.get(key, 0) + 1
    people, g = len(starts), int(of.max()) + 1
    size = np.bincount(of, minlength=g)
    columns = []
    for column in values:
        in_class, _, held = _held(group, column, person)
        most = np.zeros(g, dtype=np.int64)
        np.maximum.at(most, in_class, held)
        columns.append(
            (
                len(np.unique(who[(most == size)[of]])) / people,
                len(np.unique(who[(2 * most > size)[of]])) / people,
            )
        )
    return 1 / min(sets.values()), len(sets) / people, columns


def _held(
    group: NDArray[np.integer], values: NDArray[np.integer], person: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Classes, their values, and how many people hold them, in this order."""
    triples = np.unique(np.stack([group, values, person]), axis=1)
    pairs, held = np.unique(triples[:2], axis=1, return_counts=True)
    return pairs[0].astype(np.int64), pairs[1].astype(np.int64), held.astype(np.int64)


def _people(group: NDArray[np.integer], person: NDArray[np.integer], g: int) -> NDArray[np.int64]:
    return np.bincount(np.unique(np.stack([group, person]), axis=1)[0], minlength=g)
