"""How people who are in the data may be told from people who are not: a number each, larger for who is likelier in.

From the release and the person's ratings alone:

- nearest: how near the nearest profile is, by the mean gap (Yeom, Giacomelli, Fredrikson and Jha 2018).
- explained: what share of the person's squared deviations from the usual the nearest profile explains.
- correlation: the largest correlation of these deviations with those of a profile.
- likelihood: of being behind one of the profiles, against that of an average person (a likelihood ratio).
- folded: what the directions in which rows differ explain of the person's ratings beyond what as many random ones
  would.
- vectors: the same with all directions of the released item vectors alike.
- frame: how few of the person's items the release does not have at all.

With ratings of other people, who are not in the data either:

- traced: how far the release's item means lean from theirs towards the person's ratings (Homer et al. 2008).
- compared: by how much the release explains the person better than a model does that was learnt from the others.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import PIECE_BYTES, in_threads
from kgather._attacks.profiles import Profiles
from kgather._evaluation.candidates import Candidates
from kgather.udfs.attacking._folding import explained_shares, trace_scores
from kgather.udfs.attacking._profile_fits import SUMS, add_fits, best_fits
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.ratings.matrix import RatingMatrix

ALONE = ("nearest", "explained", "correlation", "likelihood", "folded", "vectors", "frame")
WITH_OTHERS = ("traced", "compared")

_RIDGE = 0.02  # of the variance of ratings around what is shown: people are fitted almost freely
_SHRINK = 5.0  # an item's mean counts so many ratings at the mean of all


@dataclass(frozen=True)
class People:
    """Ratings of t people: indptr int64[t + 1], items int32, ratings float32. missing int64[t]: their ratings of items
    that the release does not have.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    missing: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.missing)

    @classmethod
    def table(cls, items: NDArray[np.int32], ratings: NDArray[np.float32]) -> "People":
        """People of each of whom m ratings are known: int32[t, m], float32[t, m]."""
        indptr = np.arange(len(items) + 1, dtype=np.int64) * items.shape[1]
        missing = np.zeros(len(items), dtype=np.int64)
        return cls(indptr, np.ascontiguousarray(items.reshape(-1)), np.ascontiguousarray(ratings.reshape(-1)), missing)

    @classmethod
    def rows(
        cls, matrix: RatingMatrix, users: NDArray[np.int64], shown: NDArray[np.bool_], beyond: NDArray[np.int64]
    ) -> "People":
        """All ratings of some users, of items that the release shows; beyond int64[n_users]: ratings that the matrix
        lacks because the release's original does not have their items.
        """
        starts, ends = matrix.indptr[users], matrix.indptr[users + 1]
        lengths = ends - starts
        entries = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
        kept = shown[matrix.items[entries]]
        owner = np.repeat(np.arange(len(users)), lengths)
        counts = np.bincount(owner[kept], minlength=len(users))
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = entries[kept]
        return cls(indptr, matrix.items[entries], matrix.values[entries], lengths - counts + beyond[users])


def tell_alone(
    shown: Candidates,
    people: People,
    profiles: Profiles,
    *,
    width: float,
    variance: float,
    threads: int | None = None,
) -> dict[str, NDArray[np.float64]]:
    """The numbers of `ALONE`, float64[t] each.

    variance: of ratings around what is usually shown. O(ratings x candidates), with some 300 MB.
    """
    t, n = len(people), len(profiles.shares)
    fits, own = np.empty((t, 4)), _own(people, profiles.means)
    at_once = max(1, 2 * PIECE_BYTES // (8 * SUMS * n))
    weights = np.log(np.maximum(profiles.shares, 1e-300))
    for start in range(0, t, at_once):
        end = min(start + at_once, t)
        indptr = people.indptr[start : end + 1]
        sums = np.zeros((end - start, SUMS, n))
        wanted = np.unique(people.items[indptr[0] : indptr[-1]])
        step = max(1, PIECE_BYTES // (8 * n))
        for first in range(0, len(wanted), step):
            piece = wanted[first : first + step]
            places = np.full(shown.n_items, -1, dtype=np.int32)
            places[piece] = np.arange(len(piece))
            low, high = (np.ascontiguousarray(bound, dtype=np.float32) for bound in shown.columns(piece))
            look = partial(
                add_fits, indptr, people.items, people.ratings, places, low, high, profiles.means, width, sums
            )
            in_threads(look, end - start, threads)
        in_threads(
            partial(best_fits, own[start:end], sums, weights, max(variance, 1e-9), fits[start:end]),
            end - start,
            threads,
        )
    folded = fold(people, profiles.means, profiles.axes, variance, threads)
    free = fold(people, profiles.means, profiles.vectors, variance, threads)
    found = (*fits.T, folded, free, -people.missing.astype(np.float64))
    return dict(zip(ALONE, found, strict=True))


def tell_with_others(
    people: People, profiles: Profiles, others: RatingMatrix, variance: float, *, seed: int, threads: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """The numbers of `WITH_OTHERS`, float64[t] each; others: whose ratings the attacker has, by the same item codes.

    O(ratings), and learning a model of the others.
    """
    counts = others.raters()
    usual = float(others.values.mean())
    sums = np.bincount(others.items, weights=others.values, minlength=others.n_items)
    means = (sums + _SHRINK * usual) / (counts + _SHRINK)
    traced = np.empty(len(people))
    leaning = partial(trace_scores, people.indptr, people.items, people.ratings, means, profiles.means - means, traced)
    in_threads(leaning, len(people), threads)
    rank = max(1, profiles.axes.shape[1] - 1)
    model = learn(others, rank=rank, seed=seed, threads=threads or 1)
    # An item that nobody of the others rated has no vector; who rated it is compared on the rest.
    own_means = np.where(counts > 0, model.item_level, np.nan).astype(np.float64)
    theirs = fold(people, own_means, axes_of_model(model, np.diff(others.indptr) > 0), variance, threads)
    released = fold(people, profiles.means, profiles.axes, variance, threads)
    return {"traced": traced, "compared": released - theirs}


def axes_of_model(model: Preferences, users: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The item vectors of a model, turned and stretched so that its users, bool[n], have variance 1 in each."""
    factors = model.user_factors[users].astype(np.float64)
    spread, turned = np.linalg.eigh(np.atleast_2d(np.cov(factors.T, bias=True)))
    return (model.item_factors @ turned) * np.sqrt(np.maximum(spread, 0))


def variance_of(people: People, means: NDArray[np.float64]) -> float:
    """How ratings scatter around what is usually shown, squared; attackers know about how much that is."""
    gaps = people.ratings - means[people.items]
    return max(float(np.nanmean(gaps**2)), 1e-9) if len(gaps) else 1.0


def fold(
    people: People, means: NDArray[np.float64], axes: NDArray[np.float64], variance: float, threads: int | None
) -> NDArray[np.float64]:
    """`explained_shares` of all people, float64[t]."""
    out = np.zeros(len(people))
    vectors = np.ascontiguousarray(axes, dtype=np.float64)
    if vectors.shape[1]:
        ridge = _RIDGE * variance
        look = partial(explained_shares, people.indptr, people.items, people.ratings, means, vectors, ridge, out)
        in_threads(look, len(people), threads)
    return out


def _own(people: People, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many ratings, the sum of their deviations and of the squares of these, float64[t, 3]."""
    owner = np.repeat(np.arange(len(people)), np.diff(people.indptr))
    gaps = np.nan_to_num(people.ratings - means[people.items])
    columns = (np.ones(len(gaps)), gaps, gaps**2)
    return np.stack([np.bincount(owner, weights=column, minlength=len(people)) for column in columns], axis=1)
