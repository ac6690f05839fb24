"""Looks for every target among all candidates, once, by all rules that start from a few known ratings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kgather._attacks.attacked import Attacked, in_threads
from kgather._attacks.auxiliary import Known
from kgather._attacks.results import AttackResult, Rate
from kgather.udfs.attacking._scoring import BEST, GROUP, RIGHT, STANDS_OUT, TIES, Behind, fit_candidates

Kernel = Callable[[int, int], object]
Truth = tuple[np.ndarray, np.ndarray, Behind]


@dataclass(frozen=True)
class Guesses:
    """Which classes fit best what is known: float64[t, rule, field] numbered as in `udfs.attacking.scoring`."""

    attacked: Attacked
    known: Known
    found: np.ndarray

    def ties(self, rule: int) -> np.ndarray:
        """How many classes fit equally well."""
        return self.found[:, rule, TIES]

    def right(self, rule: int) -> np.ndarray:
        """How likely the one that is taken of them is the target's."""
        return self.found[:, rule, RIGHT] / np.maximum(self.ties(rule), 1)

    def user(self, rule: int) -> np.ndarray:
        """How likely the one that is taken of the users who look like it is the target."""
        return self.right(rule) / np.maximum(self.attacked.users[self.attacked.right(self.known.users)], 1)

    def group(self, rule: int) -> np.ndarray:
        """How likely that one is of the target's group."""
        return self.found[:, rule, GROUP]

    def stands_out(self, rule: int) -> np.ndarray:
        """The eccentricity, or 1 where nothing else fits."""
        return self.found[:, rule, STANDS_OUT]

    def best(self, rule: int) -> np.ndarray:
        """The class that is taken where the first of several is, int64; -1 where none fits."""
        return self.found[:, rule, BEST].astype(np.int64)

    def result(
        self,
        attack: str,
        knowledge: str,
        rule: int,
        seed: int,
        matched: np.ndarray | None,
        details: dict[str, float] | None = None,
    ) -> AttackResult:
        """Sum up; matched bool[t]: where the attacker believes to have found somebody."""
        people = self.known.people
        wrong = None
        if matched is not None:
            # Matches are observations of their own people only.
            wrong = Rate.of(1 - self.right(rule)[matched], len(np.unique(self.known.users[matched])))
        return AttackResult(
            attack=attack,
            knowledge=knowledge,
            targets=people,
            user=Rate.of(self.user(rule), people),
            group=Rate.of(self.group(rule), people),
            matched=None if matched is None else Rate.of(matched.astype(np.float64), people),
            wrong_among_matched=wrong,
            chance_user=self.attacked.chance_user,
            chance_group=self.attacked.chance_group,
            seed=seed,
            left_out=self.known.left_out,
            known=self.known.knowledge.known,
            details=details or {},
        )


def guess(attacked: Attacked, known: Known, *, tolerance: float | None = None, threads: int | None = None) -> Guesses:
    """Compare all targets with all classes. tolerance: of the label rule, one step where not given.

    O(t m c) for t targets, m known ratings and c classes, with some 128 MB for what the classes show of some items.
    """

    def fit(piece: Piece) -> Kernel:
        return partial(
            fit_candidates,
            piece.low,
            piece.high,
            piece.places,
            piece.ratings,
            attacked.weights[piece.items],
            attacked.unit,
            attacked.width,
            attacked.step if tolerance is None else tolerance,
            *piece.truth,
            piece.found,
        )

    return look(attacked, known, 4, fit, threads)


@dataclass(frozen=True)
class Piece:
    """Some targets t, and what classes show of the items known of them.

    items int[i]; low, high float32[i, c]; places int32[t, m]: rows of these; ratings float32[t, m]. truth: the targets'
    classes and groups, int32[t], and who is behind classes. found float64[t, rules, 5]: to be written.
    """

    targets: slice
    items: np.ndarray
    low: np.ndarray
    high: np.ndarray
    places: np.ndarray
    ratings: np.ndarray
    truth: Truth
    found: np.ndarray


def truth_of(attacked: Attacked, users: np.ndarray) -> Truth:
    """What kernels compare guesses of users with: their classes and groups, int32, and who is behind classes."""
    return attacked.right(users), attacked.groups(users), attacked.behind


def look(
    attacked: Attacked, known: Known, rules: int, kernel: Callable[[Piece], Kernel], threads: int | None
) -> Guesses:
    """Look for all targets, so many at a time that what classes show of their items fits into memory.

    kernel: makes, of a piece, what looks for its targets start..end.
    """
    found = np.zeros((len(known.users), rules, 5))
    for start, end, items in pieces(known.items, attacked.items_at_once):
        piece = Piece(
            slice(start, end),
            items,
            *attacked.columns(items),
            np.searchsorted(items, known.items[start:end]).astype(np.int32),
            known.ratings[start:end],
            truth_of(attacked, known.users[start:end]),
            found[start:end],
        )
        in_threads(kernel(piece), end - start, threads)
    return Guesses(attacked, known, found)


def pieces(items: np.ndarray, at_once: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Cut targets, int[t, m], into pieces (start, end, their items in order) of at most `at_once` different items."""
    start, seen = 0, set[int]()
    for t, own in enumerate(items.tolist()):
        more = seen.union(own)
        if t > start and len(more) > at_once:
            yield start, t, np.array(sorted(seen))
            start, more = t, set(own)
        seen = more
    if len(items):
        yield start, len(items), np.array(sorted(seen))
