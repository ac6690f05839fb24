"""F. Casino et al.: microaggregation of the filled rating table, against Gaussian noise."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.linkage import linkage
from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence, Scale
from kgather._paper.findings import Finding, number, statement
from kgather._paper.movielens import HIGH, LOW, MovieLens, Split
from kgather.udfs.gathering import mdav
from kgather.udfs.preferences.filled import filled_ratings, filled_scores

_FILL = 3.0
_TABLE_2 = {
    2: (64, 40.82), 3: (87, 26.51), 4: (99, 19.93), 5: (105, 15.90), 6: (110, 12.19), 7: (114, 12.19), 8: (117, 9.65),
    9: (119, 7.95), 10: (120, 7.21), 25: (130, 2.33), 50: (134, 0.63), 75: (136, 0.21), 100: (136, 0.21),
    150: (138.65, 0.10), 200: (139, 0.10),
}  # fmt: skip
_TABLE_3 = {
    0.25: (246, 100), 0.5: (248, 100), 1: (275, 89.28), 2: (418, 27.99), 4: (727, 7.21), 10: (1078, 1.40),
    50: (1339, 0.10),
}  # fmt: skip


def microaggregation(data: MovieLens) -> Iterator[Finding]:
    """Table II: loss and disclosure risk of MDAV, by k."""
    original, scores = filled_ratings(data.ratings, fill=_FILL), filled_scores(data.ratings, fill=_FILL)
    for k, (loss, risk) in _TABLE_2.items():
        groups = mdav.gather(scores, k)
        centroids = _centroids(original, groups)
        yield number(
            "SSE, thousands", float(((original - centroids[groups]) ** 2).sum()) / 1000, loss, x=k, within=0.015,
            reading="3 where not rated, z-scores to gather, centroids in rating units, not rounded, all cells",
        )  # fmt: skip
        yield number(
            "disclosure risk, %", _risk(data, centroids, groups), risk, x=k, points=1.0,
            reading="from the original row to the nearest protected one, one guess among ties: the text says the other "
            "direction, whose numbers are up to 12 points away",
        )  # fmt: skip


def noise(data: MovieLens) -> Iterator[Finding]:
    """Table III: Gaussian noise, by its standard deviation."""
    original = filled_ratings(data.ratings, fill=_FILL)
    deviation = original.std(axis=0)
    draws = np.random.default_rng(0).normal(size=original.shape)
    for sigma, (loss, risk) in _TABLE_3.items():
        shown = original + sigma * deviation * draws
        yield number(
            "SSE, thousands", float(((original - shown) ** 2).sum()) / 1000, loss, x=sigma, of="sigma",
            reading="noise of sigma standard deviations of each item on all cells; the printed column starts too high "
            "and levels off, which no reading that was tried explains",
        )  # fmt: skip
        yield number(
            "disclosure risk, %", _risk(data, shown, np.arange(len(shown))), risk, x=sigma, of="sigma", points=1.0
        )


def neighbours(data: MovieLens) -> Iterator[Finding]:
    """Table IV: predictions from the protected row that is nearest."""
    held = next(iter(data.splits(1)))
    original, scores = filled_ratings(data.ratings, fill=_FILL), filled_scores(data.ratings, fill=_FILL)
    groups = mdav.gather(scores, 10)
    draws = np.random.default_rng(0).normal(size=original.shape)
    noisy = original + 4 * original.std(axis=0) * draws
    noisy = np.where((noisy < LOW) | (noisy > HIGH), _FILL, noisy)
    leaking = "the test ratings were part of what was protected; the nearest protected row outside the user's own group"
    yield number(
        "MAE after MDAV, k = 10", _neighbour_error(original, _centroids(original, groups)[groups], groups, held), 0.89,
        reading=leaking,
    )  # fmt: skip
    yield number(
        "MAE after noise, sigma = 4", _neighbour_error(original, noisy, np.arange(len(original)), held), 1.08,
        reading=f"{leaking}; noise that leaves the scale counts as not rated",
    )  # fmt: skip
    scores, train = filled_scores(held.train, fill=_FILL), filled_ratings(held.train, fill=_FILL)
    groups = mdav.gather(scores, 10)
    honest = _neighbour_error(train, _centroids(train, groups)[groups], groups, held)
    yield statement(
        "the same without the test ratings",
        "0.89",
        f"{honest:.3f}; always 3: {np.abs(held.ratings - _FILL).mean():.3f}",
        holds=honest < 0.91,
        reading="four fifths are protected, the others predicted",
    )


def _centroids(rows: NDArray[np.float64], groups: NDArray[np.integer]) -> NDArray[np.float64]:
    """The mean row of every group, float64[g, m]."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.add.reduceat(rows[order], starts) / np.bincount(groups)[:, None]


def _risk(data: MovieLens, rows: NDArray[np.float64], truth: NDArray[np.integer]) -> float:
    """How often, in percent, the protected row nearest to an original one is that of the same user."""
    sizes = np.bincount(truth, minlength=len(rows))
    places, items = np.divmod(np.arange(rows.size), rows.shape[1])
    evidence = Evidence(
        original=data.ratings,
        shown=ShownCells.from_cells(sizes, rows.shape[1], places, items, rows.reshape(-1), rows.reshape(-1)),
        truth=truth.astype(np.int32),
        groups=truth.astype(np.int32),
        shown_items=np.ones(rows.shape[1], dtype=bool),
        items=pa.array(np.arange(rows.shape[1])),
        scale=Scale(LOW, HIGH, 1.0),
        parameters={},
        group_ids=np.arange(len(rows)),
    )
    found = linkage(Attacked.of(evidence), fill=_FILL)[0].user
    assert found is not None
    return 100 * found.value


def _neighbour_error(
    original: NDArray[np.float64], shown: NDArray[np.float64], groups: NDArray[np.integer], held: Split
) -> float:
    squares = (original**2).sum(axis=1)[:, None] - 2 * original @ shown.T + (shown**2).sum(axis=1)
    squares[groups[:, None] == groups] = np.inf
    nearest = squares.argmin(axis=1)
    return float(np.abs(shown[nearest[held.users], held.items] - held.ratings).mean())
