"""The minimality attack: classes that were merged tell that one of their parts did not keep what is promised.

Source: Wong, Fu, Wang and Pei, Minimality attack in privacy preserving data publishing (2007). The attacker knows the
algorithm and the quasi-identifiers of everybody, so they find the parts from which a class was merged, and know that at
least one of them failed. Of all ways to deal the values of the class to its members, those in which no part fails are
struck out; how often a part gets a value in the others is what the attacker believes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs._shared.options import seed_number
from kgather.udfs.recoding.models import KINDS, Model, Whole, _kept, _whole

_DEALS = 300
"""Ways in which the values of a class are dealt."""
_FEW = 30  # ways that fit, below which nothing is believed
_MOST = 10_000_000  # rows that are dealt at most, over all classes
SURE = 0.95


@dataclass(frozen=True)
class Believed:
    """What the attacker believes of one sensitive column.

    rows: in merged classes that were looked at. undecided: of these, rows of classes that too few ways of dealing fit.
    most: the largest chance that a value gets for somebody; by_reading: the largest share of a value in one of these
    classes. sure, sure_by_reading: the rows for which the most likely value has at least .95. right, right_by_reading:
    the rows whose most likely value is expected to be the true one.

    All of it is worked out from what the classes show and how large their parts are, as the attacker would, and from
    nobody's own value.
    """

    rows: int
    undecided: int
    most: float
    by_reading: float
    sure: int
    sure_by_reading: int
    right: float
    right_by_reading: float


def believed(
    part: NDArray[np.integer],
    group: NDArray[np.integer],
    values: NDArray[np.integer],
    rows: NDArray[np.integer],
    models: Sequence[Model],
    whole: tuple[NDArray[np.integer], NDArray[np.integer]],
    *,
    seed: int = 0,
) -> dict[int, Believed]:
    """What the attacker believes of each column that a model is asked for.

    part, group: int[p], the classes of pieces before and after they were merged. values: int[p, s], codes of the
    sensitive columns; rows: int[p]. whole: the values and rows of the whole table, as in `merge_until_kept`.

    Each class is dealt 300 times. Classes are looked at in an order drawn by the seed until 10 million rows were dealt;
    one that is larger than that is left out. The same for any order of the pieces.
    """
    asked = sorted({model.column for model in models})
    merged = _merged(np.asarray(part), np.asarray(group))
    totals = np.zeros((len(asked), 8))
    inside = np.flatnonzero(merged[group]) if asked else np.empty(0, np.int64)
    table, weight = np.asarray(values, dtype=np.int64)[inside], np.asarray(rows, dtype=np.int64)[inside]
    order = np.lexsort((*table.T[::-1], np.asarray(part)[inside], np.asarray(group)[inside]))
    of, own = np.asarray(group)[inside][order], np.asarray(part)[inside][order]
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    start = seed64(seed_number(seed))
    keys = np.array([keyed(start, int(each), 0) for each in of[starts]], dtype=np.uint64)
    models_with_wholes = [
        (model, _whole(model, np.asarray(whole[0]), np.asarray(whole[1], dtype=np.int64))) for model in models
    ]
    ends = np.append(starts[1:], len(of))
    left = _MOST
    for number in np.argsort(keys, kind="stable").tolist():
        pieces = order[starts[number] : ends[number]]
        size = int(weight[pieces].sum())
        if size * _DEALS > left:
            continue
        left -= size * _DEALS
        _, parts = np.unique(own[starts[number] : ends[number]], return_inverse=True)
        # In the order of the values: nothing that is said may hang on who has which.
        people = np.repeat(table[pieces], weight[pieces], axis=0)
        people = people[np.lexsort(people.T[::-1])]
        lengths = np.bincount(parts, weights=weight[pieces]).astype(np.int64)
        deals = _dealt(size, np.uint64(keys[number]))
        fits = _fitting(people, deals, lengths, models_with_wholes)
        for place, column in enumerate(asked):
            _add(totals[place], people[:, column], lengths, deals[fits])
    return {column: _of(row) for column, row in zip(asked, totals.tolist(), strict=True)}


def _of(totals: list[float]) -> Believed:
    rows, undecided, most, by_reading, sure, sure_by_reading, right, right_by_reading = totals
    return Believed(
        int(rows), int(undecided), most, by_reading, int(sure), int(sure_by_reading), right, right_by_reading
    )  # fmt: skip


def _merged(part: NDArray[np.integer], group: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which classes have several parts; bool[g]."""
    order = np.lexsort((part, group))
    changes = (np.diff(group[order]) == 0) & (np.diff(part[order]) != 0)
    found = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.bool_)
    found[group[order][1:][changes]] = True
    return found


def _fitting(
    people: NDArray[np.int64],
    deals: NDArray[np.int32],
    lengths: NDArray[np.int64],
    models: Sequence[tuple[Model, Whole]],
) -> NDArray[np.bool_]:
    """The deals in which some part does not keep some model, so that there was a reason to merge."""
    bounds = np.append(0, np.cumsum(lengths))
    fits = np.zeros(len(deals), dtype=np.bool_)
    for model, shares in models:
        column = np.ascontiguousarray(people[:, model.column])
        _mark_failing(column, deals, bounds, KINDS.index(model.kind), model.bound, model.c, *shares, fits)
    return fits


def _add(
    totals: NDArray[np.float64], column: NDArray[np.int64], lengths: NDArray[np.int64], deals: NDArray[np.int32]
) -> None:
    """Adds what is believed of one column in one class, in the order of `Believed`. deals: those that fit."""
    _, which = np.unique(column, return_inverse=True)
    size = len(which)
    totals[0] += size
    if len(deals) < _FEW:
        totals[1] += size
        return
    reading = np.bincount(which) / size
    owners = np.repeat(np.arange(len(lengths)), lengths)
    cells = (owners * len(reading) + which[deals]).ravel()
    times = np.bincount(cells, minlength=len(lengths) * len(reading)).reshape(len(lengths), -1)
    best = (times / (len(deals) * lengths[:, None])).max(axis=1)
    totals[2:4] = np.maximum(totals[2:4], [best.max(), reading.max()])
    totals[4] += lengths[best >= SURE].sum()
    totals[5] += size if reading.max() >= SURE else 0
    totals[6] += (lengths * best).sum()
    totals[7] += size * reading.max()


@njit(nogil=True, cache=True)
def _dealt(size, seed):  # type: ignore[no-untyped-def]
    """Orders of the people of a class, int32[deals, size]."""
    deals = np.empty((_DEALS, size), np.int32)
    for turn in range(_DEALS):
        for i in range(size):
            deals[turn, i] = i
        for i in range(size - 1, 0, -1):
            j = np.int64(keyed(seed, turn, i) % np.uint64(i + 1))
            deals[turn, i], deals[turn, j] = deals[turn, j], deals[turn, i]
    return deals


@njit(nogil=True, cache=True)
def _mark_failing(column, deals, bounds, kind, bound, c, cumulated, area, nodes, of_nodes, fits):  # type: ignore[no-untyped-def]
    for turn in range(len(deals)):
        for e in range(len(bounds) - 1):
            if fits[turn]:
                break
            own = np.sort(column[deals[turn, bounds[e] : bounds[e + 1]]])
            found, times = np.empty(len(own), np.int64), np.zeros(len(own), np.int64)
            n = 0
            for i in range(len(own)):
                if n == 0 or found[n - 1] != own[i]:
                    found[n] = own[i]
                    n += 1
                times[n - 1] += 1
            fits[turn] = not _kept(found[:n], times[:n], kind, bound, c, cumulated, area, nodes, of_nodes)
