"""Columns as codes: what each value's code is, what an interval of codes loses, and how it is shown.

A function for each kind of column; `coded` chooses it from the settings and the type. Values come as the texts of a
dictionary, in the order of the database, null first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._recoding import dates, hierarchies, numbers
from kgather._recoding.hierarchies import EVERYTHING, Hierarchy
from kgather._recoding.lines import Coded, on_line
from kgather._settings.table import QuasiIdentifier
from kgather.udfs.recoding.loss import ColumnLoss

_TYPES: Mapping[str, re.Pattern[str]] = {
    "number": re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*|FLOAT|DOUBLE"),
    "date": re.compile(r"DATE|TIMESTAMP.*"),
    "time": re.compile(r"TIME|TIME WITH TIME ZONE"),
    "category": re.compile(r"VARCHAR|BOOLEAN|UUID|ENUM.*"),
}
_DISPLAYS: Mapping[str, tuple[str, ...]] = {
    "number": ("range", "tight", "mean", "median"),
    "date": ("range", "tight"),
    "time": ("range", "tight"),
    "category": ("label", "set"),
    "ordered": ("range", "set"),
    "prefix": ("label",),
    "mask": ("label",),
}
_HOLDERS = 2  # rows without which no single value of a column is shown that is not sensitive


def coded(
    name: str, asked: QuasiIdentifier, kind: str, values: Sequence[str | None], rows: NDArray[np.int64], k: int
) -> Coded:
    """A quasi-identifier as codes.

    name: that of the column, for messages. kind: its type in the database. values: its dictionary. rows int64[v]: how
    often each value occurs. k: rows without which nothing that was found in the data is used.
    Raises InputError where the column cannot be what it is asked to be; no message quotes a value.
    """
    chosen = asked.kind or _kind(name, asked, kind)
    if chosen in ("number", "date", "time") and not _TYPES[chosen].fullmatch(kind):
        msg = f"column '{name}' is {kind}, no {chosen}. Cast it, or give it another kind."
        raise InputError(msg)
    if asked.kind is None and (foreign := asked.foreign_to(chosen)) and any(value is not None for value in values):
        msg = f"column '{name}' is {kind}, a {chosen}, and {foreign}. Cast the column, or leave that out."
        raise InputError(msg)
    displays = _DISPLAYS[chosen]
    if asked.show is not None and asked.show not in displays:
        msg = f"column '{name}' is shown as {' or '.join(displays)}, not as {asked.show}: its kind is {chosen}."
        raise InputError(msg)
    found = _of_kind(name, asked, chosen, kind, values, rows, k)
    if asked.show in (None, displays[0]):
        return found
    return replace(found, display=str(asked.show), holders=max(k if asked.sensitive else _HOLDERS, 1), texts=values)


def _of_kind(
    name: str,
    asked: QuasiIdentifier,
    chosen: str,
    kind: str,
    values: Sequence[str | None],
    rows: NDArray[np.int64],
    k: int,
) -> Coded:
    if chosen == "number":
        return numbers.number(name, asked, kind, values, rows, k)
    if chosen == "date":
        return dates.moment(name, asked, kind, values, rows, k)
    if chosen == "time":
        return dates.time_of_day(name, asked, values, rows, k)
    if chosen == "ordered" and asked.hierarchy is None:
        return _ordered(name, asked, values)
    present = [value for value in values if value is not None]
    if not present:
        return _nothing(values, asked)
    if chosen == "prefix":
        tree = hierarchies.prefixes(present)
        said = "text, shown by its beginning"
    elif chosen == "mask":
        assert asked.mask is not None
        tree = hierarchies.masked(present, asked.mask)
        said = f"text, shown through {len(asked.mask)} masks"
    elif asked.hierarchy is not None:
        tree = hierarchies.read(name, asked.hierarchy, asked.order)
        said = f"category with a hierarchy of {len(tree.nodes)} levels"
    elif asked.grouping is not None:
        often = [int(times) for value, times in zip(values, rows, strict=True) if value is not None]
        tree = hierarchies.by_frequency(present, often, k)
        said = "category, grouped by frequency"
    else:
        tree = hierarchies.flat(present)
        said = "category without a hierarchy: a value or nothing"
    return _category(name, asked, tree, values, said, is_prefix=chosen == "prefix")


def _kind(name: str, asked: QuasiIdentifier, kind: str) -> str:
    if asked.order is not None:
        return "ordered"
    if asked.hierarchy is not None or asked.grouping is not None:
        return "category"
    if asked.mask is not None:
        return "mask"
    if asked.keep:
        return "prefix"
    found = next((each for each, types in _TYPES.items() if types.fullmatch(kind)), None)
    if found is None:
        msg = f"column '{name}' is {kind}, which cannot be generalized. Cast it to a number, a date or a text."
        raise InputError(msg)
    return found


def _nothing(values: Sequence[str | None], asked: QuasiIdentifier) -> Coded:
    """A column of nulls."""
    loss = ColumnLoss(1, low=np.zeros(1), high=np.zeros(1), weight=asked.weight)
    return Coded(np.zeros(len(values), dtype=np.int32), loss, lambda low, _: [None] * len(low), "nothing but nulls")


def _category(
    name: str, asked: QuasiIdentifier, tree: Hierarchy, values: Sequence[str | None], said: str, *, is_prefix: bool
) -> Coded:
    place = {leaf: at for at, leaf in enumerate(tree.leaves)}
    hierarchies.refuse_unknown(name, values, place)
    nodes, labels, below = tree.nodes, list(tree.labels), tree.below
    n = len(tree.leaves)
    if None in values:
        # Null is a leaf of its own, right below the top.
        top = nodes[-1, 0]
        own = np.full((len(nodes), 1), len(labels), dtype=np.int32)
        own[-1, 0] = top
        nodes = np.concatenate([nodes, own], axis=1)
        below = np.append(below, 1)
        below[top] += 1
        labels.append("")
        labels[top] = EVERYTHING
        place_of_null, n = n, n + 1
    else:
        place_of_null = -1
    costs = (below - 1) / max(n - 1, 1)
    if is_prefix and asked.keep:
        levels = len(nodes)
        for level in range(levels):
            if levels - 1 - level < asked.keep:
                costs[np.unique(nodes[level])] = 2.0  # more than may be shown
    codes = np.array([place_of_null if value is None else place[value] for value in values], dtype=np.int32)

    def show(low: NDArray[np.integer], high: NDArray[np.integer]) -> list[str | None]:
        found = np.full(len(low), -1, dtype=np.int64)
        for level in nodes:
            same = (level[low] == level[high]) & (found < 0)
            found[same] = level[low][same]
        is_null = (low == high) & (low == place_of_null)
        return [None if null else labels[node] for node, null in zip(found, is_null, strict=True)]

    return Coded(codes, ColumnLoss(n, nodes=nodes, costs=costs, weight=asked.weight), show, said)


def _ordered(name: str, asked: QuasiIdentifier, values: Sequence[str | None]) -> Coded:
    assert asked.order is not None
    place = {value: at for at, value in enumerate(asked.order)}
    if len(place) < len(asked.order):
        msg = f"order of column '{name}' has a value twice."
        raise InputError(msg)
    unknown = sum(value is not None and value not in place for value in values)
    if unknown:
        msg = f"{unknown} values of column '{name}' are not in its order. Add them."
        raise InputError(msg)
    ends = np.arange(len(place)) / max(len(place) - 1, 1)
    order = asked.order
    if len(set(hierarchies.ranges(order)) | place.keys()) < len(hierarchies.ranges(order)) + len(place):
        msg = (
            f"order of column '{name}' has values with ' to ' in them, so that a range would be shown as another one "
            "or as a value. Name them otherwise, or give a hierarchy."
        )
        raise InputError(msg)

    def text(low: int, high: int) -> str:
        return order[low] if low == high else hierarchies.as_range(order[low], order[high])

    codes = np.array([-1 if value is None else place[value] for value in values], dtype=np.int32)
    return on_line(codes, ends, ends, text, asked, f"ordered category of {len(place)} values")
