"""Privacy models of sensitive columns, and classes that are merged until they have them.

- distinct: at least l different values. entropy: exp of their entropy at least l. recursive: r_1 < c (r_l + ... + r_m),
  where r_1 >= r_2 >= ... is how often the values occur (Machanavajjhala et al., l-Diversity, 2006).
- alpha: no value has more than this share of a class (Wong et al., (alpha, k)-Anonymity, 2006).
- t: the earth mover's distance of the class's distribution from that of all rows, values on a line (`t_ordered`), all
  equally far (`t_equal`), or as far as their lowest common label in a hierarchy is high (`t_hierarchical`) (Li, Li and
  Venkatasubramanian, t-Closeness, 2007).

A null is a value like any other. All of them are kept by a merged class if its parts have them.

Where people have several rows, each is kept twice: of the rows, which is what a reader sees, and of people, as
`holders` counts them. A merged class may lack the latter though its parts have it, as people may be in both parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs.recoding import holders
from kgather.udfs.recoding._index import boxed, cheapest
from kgather.udfs.recoding.loss import Losses, box_loss

KINDS = ("distinct", "entropy", "recursive", "alpha", "t_ordered", "t_equal", "t_hierarchical")
DIVERSITIES = KINDS[:3]
_AT_MOST = ("alpha", "t_ordered", "t_equal", "t_hierarchical")  # kinds whose bound is the largest that may be
_PARTNERS = 8  # classes that are tried as partners
_SLACK = 1e-9


@dataclass(frozen=True)
class Model:
    """What is asked of a sensitive column: its number, the kind of model, its bound (l, alpha or t), c of recursive.

    nodes int32[levels, codes], of `t_hierarchical`: the node of each code, the finest level first and one node on the
    last; codes of one node follow each other.
    """

    column: int
    kind: str
    bound: float
    c: float = 0.0
    nodes: NDArray[np.int32] | None = None


Whole = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]


def merge_until_kept(
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    group: NDArray[np.integer],
    values: NDArray[np.integer],
    rows: NDArray[np.integer],
    losses: Losses,
    models: Sequence[Model],
    names: Sequence[str],
    *,
    whole: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
    person: NDArray[np.integer] | None = None,
) -> NDArray[np.int64]:
    """The class of every piece once classes are merged until each keeps every model; int64[p], from 0.

    low, high: int32[p, d], the boxes of the pieces. group: int[p], their classes, numbered from 0. values: int[p, s],
    codes of the sensitive columns, in the order of the values. rows: int[p]. names: the sensitive columns, for
    messages. whole: the values and the rows of the whole table, from whose distribution t is measured; those of the
    pieces where not given. person: int[p], whose pieces they are, where people have several rows.

    Smallest first, a class that fails is merged with one of the 8 that cost least to join: the cheapest with which it
    keeps all models, or else the cheapest. Classes that were merged wait for the next round. Nothing is random.
    O(p s log p) a round and a search for each failing class; rounds are few, as failing classes at least halve.
    Raises InputError where all rows together do not keep a model: at once, or where people are counted at the end.
    """
    group = _numbered(group)
    if not models or len(group) == 0:
        return group
    weight = np.asarray(rows, dtype=np.int64)
    everything, of_everything = (values, weight) if whole is None else whole
    wholes = [_whole(model, np.asarray(everything), np.asarray(of_everything, dtype=np.int64)) for model in models]
    _refuse_unreachable(values, weight, models, wholes, names)
    of_people = [] if person is None else [_whole_of_people(model, values, weight, person) for model in models]
    while True:
        g = int(group.max()) + 1
        fails = failing(group, values, weight, models, wholes, person=person)
        if not fails.any():
            return group
        if g == 1:
            msg = (
                f"{' and '.join(_told(model, names) for model in models)} cannot be kept: too many people have the "
                "same sensitive value in some row. Ask for less, let people have fewer rows, or set aggregate."
            )
            raise InputError(msg)
        box_low = np.full((g, low.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
        box_high = np.full((g, low.shape[1]), -1, dtype=np.int32)
        np.minimum.at(box_low, group, low)
        np.maximum.at(box_high, group, high)
        size = np.bincount(group, weights=weight, minlength=g).astype(np.int64)
        lists = [_lists(group, np.asarray(values)[:, model.column], weight, g) for model in models]
        pieces = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=g))[:-1])
        asking = np.flatnonzero(fails)
        asking = asking[np.argsort(size[asking], kind="stable")]
        near = partners(box_low, box_high, size, asking, losses.parts)
        into = np.arange(g)
        taken = np.zeros(g, dtype=bool)
        for number, c in enumerate(asking.tolist()):
            if taken[c]:
                continue
            chosen = -1
            for other in near[number].tolist():
                if other < 0 or taken[other]:
                    continue
                if chosen < 0:
                    chosen = other
                if all(
                    _kept(*_joined(*each, c, other), KINDS.index(model.kind), model.bound, model.c, *shares)
                    for each, model, shares in zip(lists, models, wholes, strict=True)
                ) and (
                    person is None
                    or _kept_by_people(pieces[c], pieces[other], values, of_people, weight, person, models)
                ):
                    chosen = other
                    break
            if chosen >= 0:
                taken[c] = taken[chosen] = True
                into[max(c, chosen)] = min(c, chosen)
        if not taken.any():  # cannot be: a failing class has a partner where there are two
            return np.zeros_like(group)
        group = _numbered(into[group])


def _numbered(group: NDArray[np.integer]) -> NDArray[np.int64]:
    """The same classes, numbered from 0 in the order of their numbers."""
    return np.asarray(np.unique(group, return_inverse=True)[1], dtype=np.int64)


def failing(
    group: NDArray[np.int64],
    values: NDArray[np.integer],
    rows: NDArray[np.int64],
    models: Sequence[Model],
    wholes: Sequence[Whole] | None = None,
    *,
    person: NDArray[np.integer] | None = None,
) -> NDArray[np.bool_]:
    """Which classes do not keep some model; bool[g]. Arguments as in `merge_until_kept`. Where person is given, the
    pieces are the whole table: t of people is measured from them."""
    g = int(group.max()) + 1
    fails = np.zeros(g, dtype=np.bool_)
    if wholes is None:
        wholes = [_whole(model, np.asarray(values), rows) for model in models]
    for model, whole in zip(models, wholes, strict=True):
        starts, found, counts = _lists(group, np.asarray(values)[:, model.column], rows, g)
        fails |= _failing(starts, found, counts, KINDS.index(model.kind), model.bound, model.c, *whole)
        if person is not None:
            lists = _of_people(model, group, values, rows, person, g)
            everybody = _whole_of_people(model, values, rows, person)
            fails |= _failing(*lists, KINDS.index(model.kind), model.bound, model.c, *everybody)
    return fails


def measures_of_people(
    group: NDArray[np.int64],
    values: NDArray[np.integer],
    rows: NDArray[np.int64],
    person: NDArray[np.integer],
    models: Sequence[Model],
) -> list[float]:
    """The l, alpha or t of each model, of people, in the class that keeps it worst. Arguments as in `failing`."""
    g = int(group.max()) + 1
    found = []
    for model in models:
        lists = _of_people(model, group, values, rows, person, g)
        everybody = _whole_of_people(model, values, rows, person)
        worst = _measures(*lists, KINDS.index(model.kind), model.c, *everybody)
        found.append(float(worst.max() if model.kind in _AT_MOST else worst.min()))
    return found


def _of_people(
    model: Model,
    group: NDArray[np.integer],
    values: NDArray[np.integer],
    rows: NDArray[np.int64],
    person: NDArray[np.integer],
    g: int,
) -> holders.Lists:
    own = np.asarray(values)[:, model.column]
    if model.kind.startswith("t_"):
        return holders.even(group, own, person, rows, g)
    return holders.crowded(group, own, person, g)


def _whole_of_people(
    model: Model, values: NDArray[np.integer], rows: NDArray[np.int64], person: NDArray[np.integer]
) -> Whole:
    return _whole(model, np.asarray(values), holders.shares(np.zeros(len(rows), dtype=np.int64), person, rows))


def _kept_by_people(
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    values: NDArray[np.integer],
    wholes: Sequence[Whole],
    rows: NDArray[np.int64],
    person: NDArray[np.integer],
    models: Sequence[Model],
) -> bool:
    """Whether two classes, by their pieces, keep all models together."""
    both = np.concatenate([one, other])
    group = np.zeros(len(both), dtype=np.int64)
    return not any(
        _failing(
            *_of_people(model, group, np.asarray(values)[both], rows[both], person[both], 1),
            KINDS.index(model.kind), model.bound, model.c, *whole,
        ).any()
        for model, whole in zip(models, wholes, strict=True)
    )  # fmt: skip


def _whole(model: Model, values: NDArray[np.integer], rows: NDArray[np.int64] | NDArray[np.float64]) -> Whole:
    """Of all rows together: the share of values up to each code, the sum of these shares up to it, the nodes of a
    hierarchy, and the share of each node."""
    share = np.bincount(values[:, model.column], weights=rows)
    present = share > 0
    if not present.all():
        msg = "some codes of a sensitive column have no row."
        raise InputError(msg)
    cumulated = np.cumsum(share) / share.sum()
    nodes = np.zeros((0, 0), dtype=np.int32) if model.nodes is None else np.ascontiguousarray(model.nodes)
    of_nodes = np.bincount(nodes.ravel(), weights=np.tile(share / share.sum(), len(nodes))).astype(np.float64)
    return cumulated, np.cumsum(cumulated), nodes, of_nodes


def _lists(
    group: NDArray[np.int64], values: NDArray[np.integer], rows: NDArray[np.int64], g: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The values of each class, ascending, and how often they occur: (where classes start, values, rows)."""
    top = int(values.max()) + 1
    cells, place = np.unique(group * top + values, return_inverse=True)
    counts = np.bincount(place, weights=rows).astype(np.int64)
    starts = np.searchsorted(cells // top, np.arange(g + 1))
    return starts, cells % top, counts


def _joined(
    starts: NDArray[np.int64], found: NDArray[np.int64], counts: NDArray[np.int64], c: int, other: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.concatenate([found[starts[c] : starts[c + 1]], found[starts[other] : starts[other + 1]]])
    rows = np.concatenate([counts[starts[c] : starts[c + 1]], counts[starts[other] : starts[other + 1]]])
    return _summed(both, rows)


@njit(nogil=True, cache=True)
def _summed(found, counts):  # type: ignore[no-untyped-def]
    order = np.argsort(found, kind="mergesort")
    values, rows = np.empty(len(found), np.int64), np.empty(len(found), np.int64)
    n = 0
    for i in order:
        if n > 0 and values[n - 1] == found[i]:
            rows[n - 1] += counts[i]
        else:
            values[n], rows[n] = found[i], counts[i]
            n += 1
    return values[:n], rows[:n]


@njit(nogil=True, cache=True)
def _kept(found, counts, kind, bound, c, cumulated, area, nodes, of_nodes):  # type: ignore[no-untyped-def]
    """Whether a class keeps a model. found int64[v], ascending: its values; counts int64[v] or float64[v]: how often
    each occurs."""
    if kind == 3:
        return counts.max() <= bound * counts.sum() + _SLACK
    measured = _measure(found, counts, kind, c, cumulated, area, nodes, of_nodes)
    if kind <= 2:
        return measured >= bound - _SLACK
    return measured <= bound + _SLACK


@njit(nogil=True, cache=True)
def _measure(found, counts, kind, c, cumulated, area, nodes, of_nodes):  # type: ignore[no-untyped-def]
    """The l, alpha or t of such a class."""
    total = counts.sum()
    if kind == 6:
        return _hierarchical_distance(found, counts, nodes, of_nodes)
    if kind == 0:
        return float(len(found))
    if kind == 1:
        entropy = 0.0
        for times in counts:
            entropy -= times / total * np.log(times / total)
        return np.exp(entropy)
    if kind == 2:
        ordered = np.sort(counts)[::-1]
        rest, most = 0.0, 0
        for i in range(len(ordered) - 1, -1, -1):
            rest += ordered[i]
            if ordered[0] < c * rest - _SLACK:
                most = i + 1
                break
        return float(most)
    if kind == 3:
        return counts.max() / total
    if kind == 5:
        distance = 0.0
        for i in range(len(found)):
            before = cumulated[found[i] - 1] if found[i] > 0 else 0.0
            distance += max(counts[i] / total - (cumulated[found[i]] - before), 0.0)
        return distance
    # On a line: the area between the cumulated shares. Between two values of the class its own stands still, and that
    # of all rows crosses it at most once.
    distance, own, start = 0.0, 0.0, 0
    last = len(cumulated)
    for i in range(len(found) + 1):
        end = found[i] if i < len(found) else last
        crossing = start + np.searchsorted(cumulated[start:end], own)
        below = area[crossing - 1] - (area[start - 1] if start > 0 else 0.0) if crossing > start else 0.0
        before = area[crossing - 1] if crossing > 0 else 0.0
        above = area[end - 1] - before if end > crossing else 0.0
        distance += own * (crossing - start) - below + above - own * (end - crossing)
        if i < len(found):
            own += counts[i] / total
            start = end
    return distance / max(last - 1, 1)


@njit(nogil=True, cache=True)
def _hierarchical_distance(found, counts, nodes, of_nodes):  # type: ignore[no-untyped-def]
    """The earth mover's distance of a class from all rows: what nodes below one have more than all rows is moved within
    it, as far as there is room, at the cost of its height. Nodes that the class lacks have nothing to move. O(levels
    v)."""
    total = counts.sum()
    height = max(len(nodes) - 1, 1)
    distance = 0.0
    for level in range(len(nodes) - 1):
        i = 0
        while i < len(found):
            above = nodes[level + 1, found[i]]
            more, share = 0.0, 0.0
            while i < len(found) and nodes[level + 1, found[i]] == above:
                node, own = nodes[level, found[i]], 0.0
                while i < len(found) and nodes[level, found[i]] == node:
                    own += counts[i]
                    i += 1
                share += own / total
                more += max(own / total - of_nodes[node], 0.0)
            distance += (level + 1) / height * max(min(more, more - (share - of_nodes[above])), 0.0)
    return distance


@njit(nogil=True, cache=True)
def _failing(starts, found, counts, kind, bound, c, cumulated, area, nodes, of_nodes):  # type: ignore[no-untyped-def]
    fails = np.zeros(len(starts) - 1, np.bool_)
    for e in range(len(starts) - 1):
        a, b = starts[e], starts[e + 1]
        fails[e] = b > a and not _kept(found[a:b], counts[a:b], kind, bound, c, cumulated, area, nodes, of_nodes)
    return fails


@njit(nogil=True, cache=True)
def _measures(starts, found, counts, kind, c, cumulated, area, nodes, of_nodes):  # type: ignore[no-untyped-def]
    """Of classes that all have rows."""
    measured = np.empty(len(starts) - 1)
    for e in range(len(starts) - 1):
        a, b = starts[e], starts[e + 1]
        measured[e] = _measure(found[a:b], counts[a:b], kind, c, cumulated, area, nodes, of_nodes)
    return measured


@njit(nogil=True, cache=True)
def partners(low, high, size, asking, parts):  # type: ignore[no-untyped-def]
    """For each class that asks the 8 that cost least to join, the cheapest first; int64[a, 8], -1: there is none."""
    kind, at, sizes, flat, cap, bound = parts
    g = len(low)
    loss = np.empty(g)
    for c in range(g):
        loss[c] = box_loss(kind, at, sizes, flat, cap, bound, low, high, c)
    order, boxes = boxed(low, high, size, size, loss, parts)
    least, alive = size.min(), boxes.alive
    place_of = np.empty(g, np.int64)
    for p in range(g):
        place_of[order[p]] = p
    found = np.full((len(asking), _PARTNERS), -1, np.int64)
    for number in range(len(asking)):
        c = asking[number]
        p = place_of[c]
        alive[p] = 0
        for turn in range(_PARTNERS):
            _, q = cheapest(parts, low[c], high[c], size[c], least, 1e300, boxes.bucket_of[p], -1, boxes)
            if q < 0:
                break
            found[number, turn] = order[q]
            alive[q] = 0
        alive[p] = size[c]
        for turn in range(_PARTNERS):
            if found[number, turn] >= 0:
                alive[place_of[found[number, turn]]] = size[found[number, turn]]
    return found


def _told(model: Model, names: Sequence[str]) -> str:
    return f"{_asked(model)} {model.bound:g} of the sensitive column '{names[model.column]}'"


def _asked(model: Model) -> str:
    """What settings call a model."""
    return "t" if model.kind.startswith("t_") else model.kind


def _refuse_unreachable(
    values: NDArray[np.integer],
    rows: NDArray[np.int64],
    models: Sequence[Model],
    wholes: Sequence[Whole],
    names: Sequence[str],
) -> None:
    one = np.zeros(len(rows), dtype=np.int64)
    for model, whole in zip(models, wholes, strict=True):
        if failing(one, values, rows, [model], [whole]).any():
            msg = (
                f"{_asked(model)} {model.bound:g} cannot be kept for the sensitive column '{names[model.column]}': all "
                "rows together do not keep it. Ask for less, or leave the column out."
            )
            raise InputError(msg)
