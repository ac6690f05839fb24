"""Tables of people for the tests, and a checker of what was made of them that shares nothing with kgather."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Row = Mapping[str, Any]

HIERARCHY = [
    ["flu", "cold-like", "lungs", "*"],
    ["cold", "cold-like", "lungs", "*"],
    ["asthma", "asthma", "lungs", "*"],
    ["gout", "joints", "other", "*"],
    ["burn", "skin", "other", "*"],
]


def people(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Made-up people with skewed columns, nulls and a heavy combination."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        heavy = random.random() < 0.2
        rows.append(
            {
                "age": 40 if heavy else None if random.random() < 0.05 else int(random.integers(18, 95)),
                "zip": "02139" if heavy else f"0{random.choice([21, 22, 90])}{random.integers(0, 100):02}",
                "job": str(random.choice(["flu", "cold", "asthma", "gout", "burn"], p=[0.5, 0.2, 0.15, 0.1, 0.05])),
                "income": float(np.round(random.lognormal(10, 1), 2)),
                "illness": str(random.choice(["a", "b", "c", "d"], p=[0.6, 0.2, 0.15, 0.05])),
            }
        )
    return rows


def classes(rows: Sequence[Row], columns: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows that agree in all of the columns."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def least_entropy(found: Mapping[Any, Sequence[Row]], column: str) -> float:
    return min(
        math.exp(-sum(n / len(rows) * math.log(n / len(rows)) for n in Counter(r[column] for r in rows).values()))
        for rows in found.values()
    )


def least_recursive_margin(found: Mapping[Any, Sequence[Row]], column: str, l: int, c: float) -> float:  # noqa: E741
    """The smallest c (r_l + ... + r_m) - r_1: above 0 where all classes are recursively (c, l)-diverse."""
    margins = []
    for rows in found.values():
        times = sorted(Counter(row[column] for row in rows).values(), reverse=True)
        margins.append(c * sum(times[l - 1 :]) - times[0])
    return min(margins)


def greatest_share(found: Mapping[Any, Sequence[Row]], column: str) -> float:
    return max(max(Counter(row[column] for row in rows).values()) / len(rows) for rows in found.values())


def greatest_distance(found: Mapping[Any, Sequence[Row]], column: str, *, ordered: bool) -> float:
    """The greatest earth mover's distance of a class from all rows."""
    everybody = [row[column] for rows in found.values() for row in rows]
    values = sorted(set(everybody), key=lambda value: (value is None, value))
    whole = Counter(everybody)
    worst = 0.0
    for rows in found.values():
        own = Counter(row[column] for row in rows)
        gaps = [own[value] / len(rows) - whole[value] / len(everybody) for value in values]
        moved = sum(abs(sum(gaps[: at + 1])) for at in range(len(gaps))) / max(len(values) - 1, 1)
        worst = max(worst, moved if ordered else sum(gap for gap in gaps if gap > 0))
    return worst


_RANGE = re.compile(r"\[(\S+), (\S+)([)\]])")


def holds(shown: str | None, value: Any, labels: Mapping[Any, set[str]] | None = None) -> bool:
    """Whether what a cell shows is true of a value. labels: of each value of a hierarchy all labels it lies in."""
    if shown == "*":
        return True
    if shown is None or value is None:
        return shown is None and value is None
    if labels is not None:
        return shown in labels[value]
    if isinstance(value, str):
        return shown.rstrip("*") == value[: len(shown.rstrip("*"))]
    found = _RANGE.fullmatch(shown)
    if found:
        end = float(found[2])
        return float(found[1]) <= value and (value <= end if found[3] == "]" else value < end)
    if shown.startswith("<= "):
        return value <= float(shown[3:])
    if shown.startswith("< "):
        return value < float(shown[2:])
    if shown.startswith(">= "):
        return value >= float(shown[3:])
    return float(shown) == value


LABELS = {line[0]: set(line) for line in HIERARCHY}
