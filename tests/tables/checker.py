"""A checker of every privacy model over the files of a release, which shares nothing with kgather but the files.

It reads `audit.json` for what is promised and `table.parquet` for what was written, and says what is not kept.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_SLACK = 1e-6


def violations(folder: Path) -> list[str]:
    """What a release promises and does not keep; nothing where it keeps all."""
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    rows = pq.read_table(folder / "table.parquet").to_pylist()
    return list(_violations(audit["parameters"], rows))


def _violations(promised: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    quasi = list(promised["quasi_identifiers"])
    classes: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        classes[tuple(row[name] for name in quasi)].append(row)
    if min(map(len, classes.values())) < promised["k"]:
        yield "k"
    for name, asked in promised.get("sensitive", {}).items():
        everybody = Counter(row[name] for row in rows)
        for inside in classes.values():
            own = Counter(row[name] for row in inside)
            if asked.get("l") is not None and not _is_diverse(own, asked):
                yield f"l of {name}"
            if asked.get("alpha") is not None and max(own.values()) / len(inside) > asked["alpha"] + _SLACK:
                yield f"alpha of {name}"
            if asked.get("t") is not None and _distance(own, everybody, asked) > asked["t"] + _SLACK:
                yield f"t of {name}"
    shown = Counter(tuple(row[name] for name in quasi) for row in rows)
    gone = shown.get(("*",) * len(quasi), 0)
    if 0 < gone < promised["k"]:
        yield "suppressed rows"


def _is_diverse(own: Counter[Any], asked: dict[str, Any]) -> bool:
    total = sum(own.values())
    kind = asked.get("diversity", "entropy")
    if kind == "distinct":
        return len(own) >= asked["l"]
    if kind == "entropy":
        entropy = -sum(n / total * math.log(n / total) for n in own.values())
        return math.exp(entropy) >= asked["l"] - _SLACK
    often = sorted(own.values(), reverse=True)
    return often[0] < asked["c"] * sum(often[int(asked["l"]) - 1 :]) + _SLACK


def _distance(own: Counter[Any], everybody: Counter[Any], asked: dict[str, Any]) -> float:
    """The earth mover's distance by moving what is too much to where too little is, nearest first."""
    values = sorted(everybody, key=lambda value: (value is None, value))
    gaps = {v: own[v] / sum(own.values()) - everybody[v] / sum(everybody.values()) for v in values}
    if asked.get("hierarchy") is not None:
        return _along_tree(gaps, asked["hierarchy"])
    is_number = all(isinstance(v, int | float) for v in values if v is not None)
    if asked.get("ordered", is_number):
        moved, carried = 0.0, 0.0
        for v in values:
            carried += gaps[v]
            moved += abs(carried)
        return moved / max(len(values) - 1, 1)
    return sum(max(gap, 0.0) for gap in gaps.values())


def _along_tree(gaps: dict[Any, float], lines: Sequence[Sequence[str]]) -> float:
    """Level by level, what is too much in a leaf fills what is too little below the same label."""
    paths: dict[Any, list[str | None]] = {line[0]: list(line) for line in lines}
    height = len(lines[0]) - 1
    paths[None] = [None] * height + [lines[0][-1]]
    left, cost = dict(gaps), 0.0
    for level in range(1, height + 1):
        groups: dict[tuple[str | None, ...], list[Any]] = defaultdict(list)
        for value in left:
            groups[tuple(paths[value][level:])].append(value)
        for members in groups.values():
            more = sum(left[v] for v in members if left[v] > 0)
            less = -sum(left[v] for v in members if left[v] < 0)
            moved = min(more, less)
            cost += level / height * moved
            for v in members:
                side = more if left[v] > 0 else less
                if side > 0:
                    left[v] -= left[v] / side * moved
    return cost
