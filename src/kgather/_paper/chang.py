"""C.-C. Chang et al., Predictive Anonymization: bins, and how sure anybody can be that somebody rated an item."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.existence import tell
from kgather._attacks.shadows import Shadowed
from kgather._evaluation.in_memory import make
from kgather._paper.findings import Finding, number, statement
from kgather._paper.macros import shuffled
from kgather._paper.movielens import HIGH, LOW, USERS, MovieLens
from kgather._settings.publication import PublishSettings
from kgather.udfs.gathering import bounded_t_means
from kgather.udfs.measuring.quality import sse
from kgather.udfs.preferences import learning
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.ratings._held_out import rows_of

_K = 10
_BINS = 5
_TENTHS = 10
_PAIRS = 40
_SEEDS = 20
_SECRET = b"the noise of an experiment, no secret"
_UNPROTECTED = {"min_raters": 1, "item_noise": 0.0, "outliers": 1.0}


def bins(data: MovieLens) -> Iterator[Finding]:
    """Section 4.2: bins around virtual centres, the means of clusters, against bins around real users."""
    vectors = comparison_vectors(learning.learn(data.ratings))
    spread: dict[str, float] = {}
    near = True
    for kind, virtual in (("virtual centres", True), ("real users", False)):
        found = [
            bounded_t_means.gather_with_bins(vectors, _K, virtual_centres=virtual, seed=seed)[1]
            for seed in range(_SEEDS)
        ]
        near &= all(_closer(vectors, one) for one in found)
        sizes = [np.bincount(one) for one in found]
        spread[kind] = _unevenness(sizes)
        for what, of in (("smallest", np.min), ("largest", np.max)):
            yield number(
                f"{what} bin, {kind}", float(np.mean([of(one) for one in sizes])), shows="figure 4",
                reading="padded vectors compared by predictions; mean of 20 seeds",
            )  # fmt: skip
    drawn = [_unevenness([_around_users(vectors, len(sizes[0]), seed)]) for seed in range(_SEEDS)]
    yield statement(
        "bins around virtual centres and real users",
        "200 to 900 users and 50 to 2000: 4.5 and 40 times",
        f"largest {spread['virtual centres']:.1f} and {spread['real users']:.1f} times the smallest",
        holds=_more_even(spread["virtual centres"], spread["real users"]),
        chance=f"{np.median(drawn):.1f} and {spread['real users']:.1f} times",
        by_chance=[_more_even(one, spread["real users"]) for one in drawn],
        valid=near,
        shows="figure 4",
        reading="more even: half as uneven or less; less uneven is in part; median of 20 seeds; the printed sizes are "
        "of Netflix; by chance: users drawn at random are the centres. Bins whose users are no nearer to each other "
        "than any users are none",
    )


def _closer(vectors: NDArray[np.float32], bins: NDArray[np.integer]) -> bool:
    """Whether users are a tenth nearer to their bins' means than in bins of the same sizes at random."""
    return sse(vectors, bins) < 0.9 * sse(vectors, shuffled(bins))


def _more_even(times: float, than: float) -> bool | None:
    return True if 2 * times <= than else None if times < than else False


def _unevenness(sizes: list[NDArray[np.int64]]) -> float:
    """How many times its smallest bin the largest is, in the median of several runs; int64[bins] of each."""
    return float(np.median([one.max() / max(one.min(), 1) for one in sizes]))


def _around_users(vectors: NDArray[np.float32], count: int, seed: int) -> NDArray[np.int64]:
    """The sizes of bins around users drawn at random, int64[count]."""
    centres = vectors[np.random.default_rng(seed).permutation(len(vectors))[:count]]
    distance = ((vectors[:, None, :] - centres[None]) ** 2).sum(axis=2)
    return np.bincount(distance.argmin(axis=1), minlength=count)


def links(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2: theorems 5.2 and 5.3, how sure an attacker is of a link who has found the right group."""
    made = make(data.ratings, PublishSettings(k=_K), scale=(LOW, HIGH), secret=_SECRET)
    shares = data.raters / USERS
    rated, alone = _raters(data, made.groups), _raters(data, np.arange(USERS))
    sizes = made.shown.sizes[:, None]
    of_one = np.ones((USERS, 1), dtype=np.int64)
    values = made.shown.columns(np.arange(data.ratings.n_items))[0].T
    of_each = make(data.ratings, PublishSettings(k=1, min_raters=_K), scale=(LOW, HIGH), secret=_SECRET)
    rated_by_each = _raters(data, of_each.groups)
    own_values = of_each.shown.columns(np.arange(data.ratings.n_items))[0].T
    pure, predicted, unprotected, ungathered, bounds = [], [], [], [], []
    for first in np.arange(_BINS) / (_BINS * _K):
        own = (shares > first) & (shares <= first + 1 / (_BINS * _K))
        p = float(shares[own].mean())
        bounds.append(1 / _K + p / (2 - _K * p))
        some = rated[:, own] > 0
        pure.append(float(rated[:, own].sum() / (some * sizes).sum()))
        predicted.append(_surest(rated[:, own], values[:, own], sizes))
        unprotected.append(float(alone[:, own].sum() / ((alone[:, own] > 0) * of_one).sum()))
        ungathered.append(_surest(rated_by_each[:, own], own_values[:, own], of_one))
        yield number(
            "confidence in a link, pure", pure[-1], x=p, of="p", shows="theorem 5.3",
            reading="members who rated a shown cell, k = 10",
        )  # fmt: skip
        yield number(
            "confidence in a link, predicted", predicted[-1], x=p, of="p", shows="theorem 5.3",
            reading="all cells are shown: members who rated a cell, in that tenth of the values shown that has most",
        )  # fmt: skip
        yield number("bound of theorem 5.3", bounds[-1], x=p, of="p", shows="theorem 5.3")
    rare = (shares > 0) & (shares <= 1 / _K)
    unknowing = _surest(rated[:, rare], values[:, rare], sizes)
    knowing = _surest(rated_by_each[:, rare], own_values[:, rare], of_one)
    nothing = "by chance: nobody is gathered"
    yield statement(
        "theorem 5.2, predicted",
        "at most 1/k without prior knowledge",
        f"at most {unknowing:.3f}",
        holds=unknowing <= 1 / _K,
        chance=f"at most {knowing:.3f}",
        by_chance=knowing <= 1 / _K,
        shows="theorem 5.2",
        reading=f"no prior knowledge: the attacker takes any item that at most a tenth of the users rated; {nothing}",
    )
    for form, found, alone_too in (("pure", pure, unprotected), ("predicted", predicted, ungathered)):
        above, bare = (max(one - bound for one, bound in zip(ones, bounds, strict=True)) for ones in (found, alone_too))
        yield statement(
            f"theorem 5.3, {form}",
            "at most 1/k + p / (2 - k p)",
            f"the largest less its bound: {above:+.3f}",
            holds=above <= 0,
            chance=f"{bare:+.3f}",
            by_chance=bare <= 0,
            shows="theorem 5.3",
            reading=f"the theorem takes ratings to be independent; people of a group are alike; {nothing}",
        )
    yield from _all_others_known(data)


def _raters(data: MovieLens, groups: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many members of each group, int[n] from 0, rated each item, int64[g, m]."""
    ratings = data.ratings
    of_ratings = groups[rows_of(ratings.indptr, np.arange(ratings.nnz))].astype(np.int64)
    cells = of_ratings * ratings.n_items + ratings.items
    return np.bincount(cells, minlength=(int(groups.max()) + 1) * ratings.n_items).reshape(-1, ratings.n_items)


def _surest(rated: NDArray[np.int64], values: NDArray[np.float32], sizes: NDArray[np.int64]) -> float:
    """The share of members who rated a cell, in that tenth of the values shown in which it is largest. int64[g, m],
    float32[g, m], int64[g, 1].
    """
    tenth = np.searchsorted(np.quantile(values, np.arange(1, _TENTHS) / _TENTHS), values)
    within = [tenth == place for place in range(_TENTHS)]
    return max(float((rated * one).sum() / (one * sizes).sum()) for one in within if one.any())


def _all_others_known(data: MovieLens) -> Iterator[Finding]:
    """An attacker whose prior knowledge is all other ratings, of items that k people rated."""
    p = _K / USERS
    bound = 1 / _K + p / (2 - _K * p)
    everybody = np.arange(USERS)
    sure = {}
    for name, settings in (("default", {}), ("no noise, min_raters 1", _UNPROTECTED)):
        asked = PublishSettings(**({"k": _K} | settings))  # type: ignore[arg-type]
        found = tell(Shadowed(data.ratings, everybody, asked, (LOW, HIGH), False, 0), pairs=_PAIRS).existing["at"]
        odds = np.log(p / (1 - p)) + found.rated
        sure[name] = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
    highest = {name: float(np.quantile(of, 0.99)) for name, of in sure.items()}
    worst = "no noise, min_raters 1"
    for name, of in sure.items():
        yield statement(
            f"all other ratings known, {name}",
            f"at most {bound:.3f}",
            f"{of.mean():.3f} where the link is, {highest[name]:.3f} in the surest of 100 cases",
            holds=highest[name] <= bound,
            chance=f"{highest[worst]:.3f}",
            by_chance=highest[worst] <= bound,
            shows="theorem 5.3",
            reading="more than the theorem grants the attacker, who knows p alone there: `kgather attack --attacks "
            "existence`, with p as the prior; by chance: items' vectors are learnt and shown without protection",
        )
