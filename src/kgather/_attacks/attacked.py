"""The release under attack: candidates that look the same are one, as no attacker can tell them apart."""

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence
from kgather.udfs._shared.workers import run
from kgather.udfs.attacking._rated_cells import most_frequent
from kgather.udfs.attacking._scoring import Behind

PIECE_BYTES = 1 << 27
"""So much memory is used for what candidates show at a time."""


@dataclass(frozen=True)
class Attacked:
    """Evidence with its candidates put into classes of look-alikes.

    classes int32[n_candidates]: the class of each candidate. faces int64[c]: one candidate of each class. behind: the
    users who look like it, and their groups. raters int64[n_items]: in the original.
    """

    evidence: Evidence
    classes: NDArray[np.int32]
    faces: NDArray[np.int64]
    behind: Behind
    raters: NDArray[np.int64]

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Find the classes. O(what the release shows)."""
        _, faces, places = np.unique(evidence.shown.distinct(), return_index=True, return_inverse=True)
        # Numbered in the order of their first candidates, so that columns need no other order where none look alike.
        order = np.argsort(faces)
        faces, classes = faces[order], np.argsort(order)[places.reshape(-1)].astype(np.int32)
        own = evidence.gathered
        pairs = np.stack([classes[evidence.truth[own]], evidence.groups[own]], axis=1)
        pairs, counts = np.unique(pairs, axis=0, return_counts=True)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=len(faces)))])
        return cls(
            evidence=evidence,
            classes=classes,
            faces=faces.astype(np.int64),
            behind=Behind(
                users=np.bincount(classes, weights=evidence.shown.sizes, minlength=len(faces)).astype(np.int64),
                pair_indptr=indptr.astype(np.int64),
                pair_groups=np.ascontiguousarray(pairs[:, 1], dtype=np.int32),
                pair_users=counts.astype(np.int64),
            ),
            raters=evidence.original.raters() if evidence.raters is None else evidence.raters,
        )

    @property
    def users(self) -> NDArray[np.int64]:
        """How many users look like each class, int64[c]."""
        return self.behind.users

    @property
    def n_classes(self) -> int:
        """How many candidates look different."""
        return len(self.faces)

    @property
    def chance_user(self) -> float:
        """How often a user named at random is the target."""
        return 1 / max(self.evidence.people or len(self.evidence.gathered), 1)

    @property
    def chance_group(self) -> float:
        """How often a group named at random is the target's."""
        return 1 / max(len(self.evidence.group_ids), 1)

    @property
    def width(self) -> float:
        """The width of the scale; 1 where all ratings are the same."""
        return self.evidence.scale.width or 1.0

    @property
    def step(self) -> float:
        """The step of the scale, or a quarter of its width where it has none."""
        return self.evidence.scale.step or self.width / 4

    @property
    def unit(self) -> float:
        """What a gap is multiplied by to be one on a scale as wide as that from 1 to 5."""
        return 4 / self.width

    @cached_property
    def _in_order(self) -> bool:
        """Whether every candidate is a class of its own, under the same number."""
        return np.array_equal(self.faces, np.arange(len(self.classes)))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """1 / ln of each item's raters, float64[n_items]; an item with one rater weighs as one with two."""
        return 1 / np.log(np.maximum(self.raters, 2))

    @cached_property
    def usual(self) -> NDArray[np.float32]:
        """The most frequent rating of each item in the original, float32[n_items]; NaN where nobody rated it."""
        indptr, _, values = self.evidence.original.transpose()
        return most_frequent(indptr, values)

    def right(self, users: NDArray[np.int64]) -> NDArray[np.int32]:
        """The classes of users, int32."""
        return np.ascontiguousarray(self.classes[self.evidence.truth[users]], dtype=np.int32)

    def groups(self, users: NDArray[np.int64]) -> NDArray[np.int32]:
        """The groups of users, int32."""
        return np.ascontiguousarray(self.evidence.groups[users], dtype=np.int32)

    def columns(self, items: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What the classes show of some items: low and high, float32[i, c], NaN where nothing."""
        low, high = self.evidence.shown.columns(items)
        if not self._in_order:
            low, high = low[:, self.faces], high[:, self.faces]
        return np.ascontiguousarray(low, dtype=np.float32), np.ascontiguousarray(high, dtype=np.float32)

    @property
    def items_at_once(self) -> int:
        """Of how many items the columns fit into the memory meant for them."""
        return max(1, PIECE_BYTES // (8 * max(len(self.classes), 1)))


def original_of(evidence: Evidence) -> Evidence:
    """The ratings without names as if they were the release: every user is a candidate and a group."""
    own = np.arange(evidence.original.n_users, dtype=np.int32)
    return dataclasses.replace(
        evidence,
        shown=ShownCells.from_ratings(evidence.original),
        truth=own,
        groups=own,
        shown_items=np.bincount(evidence.original.items, minlength=evidence.original.n_items) > 0,
        group_ids=own.astype(np.int64),
    )


def groups_of(evidence: Evidence) -> Evidence:
    """The part of a release that is about the people of the evidence: their groups alone, as candidates."""
    kept, truth = np.unique(evidence.truth, return_inverse=True)
    own = truth.astype(np.int32)
    return dataclasses.replace(
        evidence, shown=evidence.shown.some(kept), truth=own, groups=own, group_ids=evidence.group_ids[kept]
    )


def in_threads(kernel: Callable[[int, int], object], n: int, threads: int | None) -> None:
    """Call kernel(start, end) for ranges that cover 0..n, in threads (None: one for each processor)."""
    workers = threads or os.cpu_count() or 1
    edges = np.unique(np.linspace(0, n, min(n, workers * 4) + 1).astype(np.int64))
    ranges = [(int(start), int(end)) for start, end in pairwise(edges)]
    if workers == 1:
        run(kernel, ranges, None)
        return
    with ThreadPoolExecutor(workers) as pool:
        run(kernel, ranges, pool)
