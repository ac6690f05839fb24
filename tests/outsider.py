"""A program as somebody would write it who has the folders of several releases of the same people, and nothing else.

It reads the published tables with SQL, intersects names and ids, follows groups from release to release by what they
show and by their sizes, and subtracts. Nothing of kgather is used.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Seen:
    """What one release shows. ids int64[g], sizes int64[g]; items by id; cells float64[g, m]; names of its people."""

    ids: NDArray[np.int64]
    sizes: NDArray[np.int64]
    items: list[str]
    cells: NDArray[np.float64]
    names: frozenset[str]
    audit: dict[str, Any]

    @classmethod
    def of(cls, folder: Path) -> "Seen":
        def rows(query: str) -> list[tuple[Any, ...]]:
            return duckdb.sql(query).fetchall()

        groups = dict(rows(f"select group_id, group_size from '{folder}/groups.parquet' order by group_id"))
        members = rows(f"select group_id, count(*) from '{folder}/members.parquet' group by group_id")
        assert dict(members) == groups
        found = rows(f"select group_id, cast(item_id as varchar), rating from '{folder}/ratings.parquet'")
        items = sorted({item for _, item, _ in found})
        cells = np.full((len(groups), len(items)), np.nan)
        places = {group: place for place, group in enumerate(groups)}, {item: place for place, item in enumerate(items)}
        for group, item, rating in found:
            cells[places[0][group], places[1][item]] = rating
        names = frozenset(
            name for (name,) in rows(f"select cast(pseudonym as varchar) from '{folder}/members.parquet'")
        )
        audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
        return cls(np.array(list(groups)), np.array(list(groups.values())), items, cells, names, audit)

    def of_items(self, items: Sequence[str]) -> NDArray[np.float64]:
        """The cells of some items, float64[g, i]."""
        return self.cells[:, [self.items.index(item) for item in items]]


@dataclass(frozen=True)
class Both:
    """What two releases say together. stayed: places of a group in the first and of the one that is likely it in the
    second. shared: items of both. moved float64[i]: how far the mean of what is shown of them has gone.
    """

    first: Seen
    second: Seen
    stayed: list[tuple[int, int]]
    shared: list[str]
    moved: NDArray[np.float64]

    @classmethod
    def of(cls, first: Seen, second: Seen) -> "Both":
        shared = sorted(set(first.items) & set(second.items))
        one, two = first.of_items(shared), second.of_items(shared)
        means = [np.average(side, axis=0, weights=sizes) for side, sizes in ((one, first.sizes), (two, second.sizes))]
        # Items move for everybody: what is left of a group is where it lies among the others.
        far = np.sqrt((((one - means[0])[:, None] - (two - means[1])[None]) ** 2).mean(axis=2))
        # A group that stays gets no larger. The pairs that are nearest are taken first.
        far[first.sizes[:, None] < second.sizes[None]] = np.inf
        stayed: dict[int, int] = {}
        for place in np.argsort(far, axis=None):
            left, right = (int(part) for part in np.unravel_index(place, far.shape))
            if np.isfinite(far[left, right]) and left not in stayed and right not in stayed.values():
                stayed[left] = right
        return cls(first, second, sorted(stayed.items()), shared, means[1] - means[0])

    @property
    def more(self) -> int:
        """How many people more the second has."""
        return int(self.second.sizes.sum() - self.first.sizes.sum())

    def leavers(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Of each group that got smaller, for the shared items: what its sums differ by, a person who went, and what it
        showed before.
        """
        one, two = self.first.of_items(self.shared), self.second.of_items(self.shared)
        found = []
        for left, right in self.stayed:
            n, m = int(self.first.sizes[left]), int(self.second.sizes[right])
            if m < n:
                found.append(((n * one[left] - m * (two[right] - self.moved)) / (n - m), one[left]))
        return found


def look(folders: Sequence[Path], k: int) -> list[Both]:
    """Look for what must not be in any release of a chain, and say what each two neighbours tell together.

    Raises AssertionError where a group has fewer than k people, somebody's name or a group's id is in two releases, or
    an audit counts absent people otherwise than in steps of k.
    """
    seen = [Seen.of(folder) for folder in folders]
    for number, one in enumerate(seen):
        assert one.sizes.min() >= k
        steps = [each["measured"] for each in one.audit["checks"] if each["check"].endswith("in steps of k")]
        assert all(count % k == 0 for count in steps)
        for other in seen[:number]:
            assert not one.names & other.names
            assert not set(one.ids.tolist()) & set(other.ids.tolist())
    return [Both.of(one, other) for one, other in pairwise(seen)]


def telling(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Where two audits differ, by the names on the way there."""

    def walk(mine: Any, theirs: Any, way: tuple[str, ...]) -> set[str]:
        if isinstance(mine, dict) and isinstance(theirs, dict):
            return set().union(*(walk(mine.get(name), theirs.get(name), (*way, name)) for name in {*mine, *theirs}))
        if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
            return set().union(*(walk(a, b, way) for a, b in zip(mine, theirs, strict=True)))
        return set() if mine == theirs else {".".join(way)}

    return walk(one, other, ())
