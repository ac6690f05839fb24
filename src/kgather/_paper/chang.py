"""C.-C. Chang et al., Predictive Anonymization: how sure anybody can be that somebody rated an item."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.existence import tell
from kgather._attacks.shadows import Shadowed
from kgather._evaluation.in_memory import Made, make
from kgather._paper.findings import Finding, number, statement
from kgather._paper.movielens import HIGH, LOW, USERS, MovieLens
from kgather._settings.publication import PublishSettings
from kgather.udfs.ratings._held_out import rows_of

_K = 10
_BINS = 5
_TENTHS = 10
_PAIRS = 40
_SECRET = b"the noise of an experiment, no secret"
_UNPROTECTED = {"min_raters": 1, "item_noise": 0.0, "outliers": 1.0}


def links(data: MovieLens) -> Iterator[Finding]:
    """Section 5.2: theorems 5.2 and 5.3, how sure an attacker is of a link who has found the right group."""
    made = make(data.ratings, PublishSettings(k=_K), scale=(LOW, HIGH), secret=_SECRET)
    shares = data.raters / USERS
    rated = _raters(data, made)
    sizes = made.shown.sizes[:, None]
    values = made.shown.columns(np.arange(data.ratings.n_items))[0].T
    pure, predicted, bounds = [], [], []
    for first in np.arange(_BINS) / (_BINS * _K):
        own = (shares > first) & (shares <= first + 1 / (_BINS * _K))
        p = float(shares[own].mean())
        bounds.append(1 / _K + p / (2 - _K * p))
        some = rated[:, own] > 0
        pure.append(float(rated[:, own].sum() / (some * sizes).sum()))
        predicted.append(_surest(rated[:, own], values[:, own], sizes))
        yield number(
            "confidence in a link, pure", pure[-1], bounds[-1], x=p, of="p", within=0.05,
            reading="members who rated a shown cell; printed is the bound 1/k + p / (2 - k p), for k = 10",
        )  # fmt: skip
        yield number(
            "confidence in a link, predicted", predicted[-1], x=p, of="p",
            reading="all cells are shown: members who rated a cell, in that tenth of the values shown that has most",
        )  # fmt: skip
    rare = (shares > 0) & (shares <= 1 / _K)
    unknowing = _surest(rated[:, rare], values[:, rare], sizes)
    yield statement(
        "theorem 5.2, predicted",
        "at most 1/k without prior knowledge",
        f"at most {unknowing:.3f}",
        holds=unknowing <= 1 / _K,
        reading="no prior knowledge: the attacker takes any item that at most a tenth of the users rated",
    )
    for form, found in (("pure", pure), ("predicted", predicted)):
        above = max(one - bound for one, bound in zip(found, bounds, strict=True))
        yield statement(
            f"theorem 5.3, {form}",
            "at most 1/k + p / (2 - k p)",
            f"the largest less its bound: {above:+.3f}",
            holds=above <= 0,
            reading="the theorem takes ratings to be independent; people of a group are alike",
        )
    yield from _all_others_known(data)


def _raters(data: MovieLens, made: Made) -> NDArray[np.int64]:
    """How many members of each group rated each item, int64[g, m]."""
    ratings = data.ratings
    groups = made.groups[rows_of(ratings.indptr, np.arange(ratings.nnz))].astype(np.int64)
    cells = groups * ratings.n_items + ratings.items
    return np.bincount(cells, minlength=len(made.shown.sizes) * ratings.n_items).reshape(-1, ratings.n_items)


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
    for name, settings in (("default", {}), ("no noise, min_raters 1", _UNPROTECTED)):
        asked = PublishSettings(**({"k": _K} | settings))  # type: ignore[arg-type]
        found = tell(Shadowed(data.ratings, everybody, asked, (LOW, HIGH), False, 0), pairs=_PAIRS).existing["at"]
        odds = np.log(p / (1 - p)) + found.rated
        sure = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
        yield statement(
            f"all other ratings known, {name}",
            f"at most {bound:.3f}",
            f"{sure.mean():.3f} where the link is, {np.quantile(sure, 0.99):.3f} in the surest of 100 cases",
            holds=bool(np.quantile(sure, 0.99) <= bound),
            reading="more than the theorem grants the attacker, who knows p alone there: `kgather attack --attacks "
            "existence`, with p as the prior",
        )
