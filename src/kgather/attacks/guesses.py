"""Looks for every target among all candidates, once, by all rules that start from a few known ratings."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kgather.attacks.attacked import Attacked, in_threads
from kgather.attacks.auxiliary import Known
from kgather.attacks.results import AttackResult, Rate
from kgather.udfs.scoring import BEST, GROUP, RIGHT, STANDS_OUT, TIES, fit_candidates


@dataclass(frozen=True)
class Guesses:
    """Which classes fit best what is known: float64[t, rule, field] as `kgather.udfs.scoring` numbers them."""

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
    found = np.zeros((len(known.users), 4, 5))
    right, groups = attacked.right(known.users), attacked.groups(known.users)
    for start, end, items in pieces(known.items, attacked.items_at_once):
        low, high = attacked.columns(items)
        places = np.searchsorted(items, known.items[start:end]).astype(np.int32)
        look = partial(
            fit_candidates,
            low,
            high,
            places,
            known.ratings[start:end],
            attacked.weights[items],
            attacked.unit,
            attacked.width,
            attacked.step if tolerance is None else tolerance,
            right[start:end],
            groups[start:end],
            attacked.users,
            attacked.pair_indptr,
            attacked.pair_groups,
            attacked.pair_users,
            found[start:end],
        )
        in_threads(look, end - start, threads)
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
