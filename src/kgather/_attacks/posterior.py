"""The attackers who do what can be done with what they know: the rule of Bayes over all candidates.

They take the candidate that is most likely the target's, and believe in it where it is likelier than all others
together. What they suppose of the world (how ratings scatter, how popular items are) is general knowledge, here taken
from the original as a whole.
"""

import dataclasses
from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from kgather._attacks import farthest
from kgather._attacks.attacked import Attacked, in_threads
from kgather._attacks.auxiliary import Knowledge, Known, draw
from kgather._attacks.guesses import Guesses, Kernel, Piece, look, truth_of
from kgather._attacks.profiles import Profiles, directions_of, means_of, profiles_of, rank_of
from kgather._attacks.public import OWN_MODEL, only, public_half
from kgather._attacks.results import AttackResult
from kgather._attacks.telling import axes_of_model
from kgather.udfs.attacking._posterior import add_totals, judge_folded, judge_items, judge_ratings, squared_gaps
from kgather.udfs.preferences.learning import learn
from kgather.udfs.ratings.matrix import RatingMatrix

SURE = 0.5

_AROUND = 0.7  # of the variance around what is usually shown, that around what is shown of the target's group
_SPREAD = 0.2  # of the variance of candidates' places, that of users around theirs
_RATERS = 20.0  # so many raters weigh as much as what is known of all items
_OWN = 0.5  # how likely a shown value that is a rating of the scale is the target's own, where there are many
_MANY = 0.1
_CHECKED = 1 << 22  # cells


class Posterior:
    """What the attackers work out from a release before they look for anybody."""

    def __init__(self, attacked: Attacked, *, threads: int | None = None) -> None:
        self.attacked = attacked
        self.threads = threads
        self.means = means_of(attacked.evidence.shown)
        self.variance, self.variances = _variances(attacked, self.means)
        self.own = _OWN if _on_scale(attacked) > _MANY else 0.0

    def variances_of(self, items: NDArray[np.integer]) -> NDArray[np.float64]:
        """How ratings of some items scatter around what is shown of the group, squared: float64[i, 1]."""
        return _AROUND * self.variances[items][:, None]

    @cached_property
    def _ranks(self) -> NDArray[np.float64]:
        return farthest.ranks(self.attacked)

    @cached_property
    def profiles(self) -> Profiles:
        """The release taken apart, its rows those of classes of look-alikes rather than of candidates."""
        attacked = self.attacked
        found = profiles_of(attacked.evidence.shown, rank_of(attacked.evidence.parameters))
        return dataclasses.replace(found, places=found.places[attacked.faces], shares=self._shares)

    @cached_property
    def directions(self) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        """Where items point, float64[m, d] each, and where classes of look-alikes lie, float64[c, d]."""
        aways, places = directions_of(self.attacked.evidence.shown, rank_of(self.attacked.evidence.parameters))
        return aways, places[self.attacked.faces]

    @property
    def _shares(self) -> NDArray[np.float64]:
        return self.attacked.users / max(self.attacked.users.sum(), 1)

    def ratings(self, known: Known, *, seed: int = 0) -> AttackResult:
        """Look for people by their ratings."""
        guesses = self.guess(known)
        far = farthest.of_the_farthest(self.attacked, self._ranks, known.users, guesses.group(0))
        return _told("posterior", known.knowledge.ratings, guesses, seed, far)

    def guess(self, known: Known) -> Guesses:
        """Find the likeliest class of each target by the ratings known; there is one rule, 0."""
        attacked = self.attacked

        def judge(piece: Piece) -> Kernel:
            return partial(
                judge_ratings,
                piece.low,
                piece.high,
                piece.places,
                piece.ratings,
                _AROUND * self.variances[piece.items],
                attacked.evidence.scale.low,
                attacked.step,
                self.own,
                *piece.truth,
                piece.found[:, 0],
            )

        return look(attacked, known, 1, judge, self.threads)

    def items(self, known: Known, *, seed: int = 0) -> AttackResult:
        """Look for people by which items they rated, knowing no rating."""
        attacked, means = self.attacked, self.means

        def judge(piece: Piece) -> Kernel:
            return partial(
                judge_items,
                piece.low,
                piece.high,
                piece.places,
                means[piece.items],
                attacked.unit,
                self._logarithms,
                *piece.truth,
                piece.found[:, 0],
            )

        return _told("items", known.knowledge.items, look(attacked, known, 1, judge, self.threads), seed)

    def folded(self, known: Known, *, seed: int = 0) -> AttackResult:
        """Fold people into the item vectors of the release, or those of its cells, and compare whole profiles."""
        return self._fold(self.profiles, known, "folded", known.knowledge.ratings, seed)

    def own_model(self, knowledge: Knowledge, *, targets: int, seed: int) -> AttackResult | None:
        """The same with item vectors learnt from public ratings of other people; None where there are none.

        Public are all ratings of half of the users, drawn by the seed, or of so many as have 5 million; targets are
        among the others.
        """
        evidence = self.attacked.evidence
        public = public_half(evidence.original, seed)
        if not np.diff(evidence.original.indptr)[public].any():
            return None
        known = draw(self.attacked, knowledge, targets=targets, seed=seed, among=~public)
        people = int(public.sum())
        profiles = self._as_seen_by(evidence.original, public, seed)
        said = f"{knowledge.ratings}, all ratings of {people:,} other people"
        return self._fold(profiles, known, "own_model", said, seed)

    def _fold(self, profiles: Profiles, known: Known, attack: str, said: str, seed: int) -> AttackResult:
        found = np.zeros((len(known.users), 1, 5))
        # Where all rows are the same there is no direction; one that nobody differs in says so.
        flat = profiles.axes.shape[1] == 0
        axes = np.zeros((len(profiles.axes), 1)) if flat else np.ascontiguousarray(profiles.axes)
        places = np.zeros((len(profiles.places), 1)) if flat else np.ascontiguousarray(profiles.places)
        judge = partial(
            judge_folded,
            profiles.means,
            axes,
            places,
            known.items,
            known.ratings,
            _AROUND * self.variance,
            _SPREAD,
            *truth_of(self.attacked, known.users),
            found[:, 0],
        )
        in_threads(judge, len(known.users), self.threads)
        return _told(attack, said, Guesses(self.attacked, known, found), seed)

    def _as_seen_by(self, original: RatingMatrix, public: NDArray[np.bool_], seed: int) -> Profiles:
        """The rows of the release in the directions of a model of the public ratings.

        A row's place is where it is predicted best, items weighing as they have raters; what is not shown is at the
        model's own mean.
        """
        ratings = only(original, public)
        counts = ratings.raters().astype(np.float64)
        model = learn(ratings, seed=seed, threads=self.threads or 1, **OWN_MODEL)
        levels = model.user_level[public].astype(np.float64)
        means = np.where(counts > 0, model.item_level + levels.mean(), np.nan)
        axes = np.column_stack([np.full(len(means), levels.std()), axes_of_model(model, public)])
        axes[counts == 0] = 0.0
        weights = counts / counts.sum()
        onto = np.zeros((self.attacked.n_classes, axes.shape[1]))
        for first in range(0, len(means), self.attacked.items_at_once):
            items = np.arange(first, min(first + self.attacked.items_at_once, len(means)))
            low, high = self.attacked.columns(items)
            gaps = np.nan_to_num((low + high) / 2 - means[items][:, None].astype(np.float32))
            onto += gaps.T @ (axes[items] * weights[items][:, None]).astype(np.float32)
        within = (axes * weights[:, None]).T @ axes
        steady = 1e-6 * max(float(np.trace(within)), 1e-12) * np.eye(len(within))
        return Profiles(means, axes, np.linalg.solve(within + steady, onto.T).T, self._shares, axes)

    @cached_property
    def _logarithms(self) -> NDArray[np.float64]:
        attacked, totals = self.attacked, np.zeros(self.attacked.n_classes)
        raters = attacked.raters.astype(np.float64)
        for first in range(0, len(raters), attacked.items_at_once):
            items = np.arange(first, min(first + attacked.items_at_once, len(raters)))
            low, high = attacked.columns(items)
            add = partial(add_totals, low, high, raters[items], self.means[items], attacked.unit, totals)
            in_threads(add, len(totals), self.threads)
        return np.log(np.maximum(totals / max(raters.sum(), 1.0), 1e-300))


def _told(
    attack: str, said: str, guesses: Guesses, seed: int, further: Mapping[str, float] | None = None
) -> AttackResult:
    matched = guesses.stands_out(0) > SURE
    right = guesses.right(0)
    details = {"rightly_matched": float(np.mean(right * matched)) if len(matched) else 0.0}
    return guesses.result(attack, said, 0, seed, matched, {**details, **(further or {})})


def _variances(attacked: Attacked, means: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """How ratings scatter around what is usually shown: of all items, and of each, float64[n_items]."""
    original = attacked.evidence.original
    sums, counts = squared_gaps(original.items, original.values, means)
    least = (attacked.step / 4) ** 2
    usual = max(float(sums.sum() / max(counts.sum(), 1.0)), least)
    return usual, np.maximum((sums + _RATERS * usual) / (counts + _RATERS), least)


def _on_scale(attacked: Attacked) -> float:
    """The share of shown values that are ratings of the scale, of some items if they are many."""
    if attacked.evidence.scale.step is None:
        return 0.0
    n_items = attacked.evidence.original.n_items
    wanted = max(1, min(n_items, _CHECKED // max(attacked.n_classes, 1)))
    low, high = attacked.columns(np.unique(np.linspace(0, n_items - 1, wanted).astype(np.int64)))
    shown = low[low == high]
    steps = (shown - attacked.evidence.scale.low) / attacked.step
    return float((np.abs(steps - np.round(steps)) * attacked.step < 1e-4).mean()) if len(shown) else 0.0
