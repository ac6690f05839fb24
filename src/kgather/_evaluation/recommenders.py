"""What a recommender loses that is trained on a release instead of on the original: same test, same model.

Use them with a release of the training part alone (kgather._republishing.held_out): where test ratings entered the
release, the errors are too good.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgather._evaluation.candidates import item_chunks
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.metrics import Metric, shown_errors
from kgather.udfs.measuring import nearest_neighbour
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.ratings.matrix import RatingMatrix

_MOST_CELLS = 30_000_000  # of the release: above it nothing is trained, as cells would have to be written out


@dataclass(frozen=True)
class _Training:
    """Rows to learn from: the row of each user, int[n_users], -1 for none, and how many users a row stands for."""

    matrix: RatingMatrix
    row_of_user: NDArray[np.integer]
    weights: NDArray[np.int64]


def recommender_errors(
    evidence: Evidence,
    test: tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.floating | np.integer]],
    *,
    rank: int = 10,
    neighbours: int = 30,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[Metric, ...]:
    """MAE and RMSE on the test ratings, (users, items, ratings) in the evidence's codes.

    direct: what is shown of (the user, the item) is the prediction, where something is. svd: a low-rank model (als).
    neighbours: the nearest neighbours among users. Each of the last two is trained on the release and on the original
    and asked for the same ratings, those whose user is in the release and whose item was rated in the training part. A
    row of a group stands for its members, so that items' means do not shrink because there are few rows. Predictions
    are clipped to the scale. Above 30 million cells the release is not learnt from.
    """
    users, items, ratings = test
    threads = threads or os.cpu_count() or 1
    found = list(_direct(evidence, users, items, ratings))
    asked = (users >= 0) & (items >= 0)
    asked[asked] &= evidence.truth[users[asked]] >= 0
    if not asked.any():
        return tuple(found)
    users, items, ratings = users[asked], items[asked], np.asarray(ratings, dtype=np.float64)[asked]
    for name, training in (("", _released(evidence)), ("_original", _original(evidence))):
        if training is None:
            continue
        told = "the original" if name else "the release"
        rows = training.row_of_user[users]
        svd = _svd(training, rank, seed, threads, (evidence.scale.low, evidence.scale.high))
        product = np.einsum("ij,ij->i", svd.user_factors[rows], svd.item_factors[items], dtype=np.float64)
        found += _errors(
            f"svd{{}}{name}",
            f"a low-rank model trained on {told}, on ratings held out",
            svd.user_level[rows] + svd.item_level[items] + product,
            ratings,
            evidence,
        )
        found += _errors(
            f"neighbours{{}}{name}",
            f"nearest neighbours trained on {told}, on ratings held out",
            nearest_neighbour.predict(
                training.matrix, rows, items, weights=training.weights, neighbours=neighbours, threads=threads
            ),
            ratings,
            evidence,
        )
    return tuple(found)


def _direct(
    evidence: Evidence,
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    ratings: NDArray[np.floating | np.integer],
) -> list[Metric]:
    mae, rmse, covered = shown_errors(evidence, users, items, ratings)
    metrics = [Metric("direct_covered", covered, "share of the ratings held out for which the release shows a value")]
    if covered:
        metrics += [
            Metric("direct_mae", mae, "mean absolute error of what is shown, on ratings held out"),
            Metric("direct_rmse", rmse, "root mean square error of what is shown, on ratings held out"),
        ]
    return metrics


def _errors(
    name: str, about: str, predicted: NDArray[np.floating], ratings: NDArray[np.float64], evidence: Evidence
) -> list[Metric]:
    gaps = np.clip(predicted, evidence.scale.low, evidence.scale.high) - ratings
    return [
        Metric(name.format("_mae"), float(np.abs(gaps).mean()), f"mean absolute error of {about}"),
        Metric(name.format("_rmse"), float(np.sqrt((gaps**2).mean())), f"root mean square error of {about}"),
    ]


def _svd(training: _Training, rank: int, seed: int, threads: int, scale: tuple[float, float]) -> Preferences:
    """A model of rows that each stand for several users.

    The pull of levels towards 0 counts ratings: divided by what a row stands for, it is that of so many users.
    """
    used = np.diff(training.matrix.indptr) > 0
    each = float(training.weights[used].mean())
    pull = {name: FOR_FIT[name] / each for name in ("level_regularization", "item_level_regularization")}
    return learn(
        training.matrix,
        rank=rank,
        seed=seed,
        threads=threads,
        scale=scale if scale[0] < scale[1] else None,
        **(dict(FOR_FIT) | pull),
    )


def _original(evidence: Evidence) -> _Training:
    n = evidence.original.n_users
    return _Training(evidence.original, np.arange(n), np.ones(n, dtype=np.int64))


def _released(evidence: Evidence) -> _Training | None:
    """The rows of the release, ranges by their midpoint; None where they are too many to write out."""
    n, n_items = len(evidence.shown.sizes), evidence.original.n_items
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.floating]]] = []
    cells = 0
    for chunk in item_chunks(n_items, n):
        low, high = evidence.shown.columns(chunk)
        places, rows = np.nonzero(~(np.isnan(low) | np.isnan(high)))
        cells += len(rows)
        if cells > _MOST_CELLS:
            return None
        middle = low[places, rows] if low is high else (low[places, rows] + high[places, rows]) / 2
        parts.append((rows.astype(np.int32), chunk[places].astype(np.int32), middle))
    rows, items, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(rows) == 0:
        return None
    order = np.lexsort((items, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)
    matrix = RatingMatrix(n, n_items, indptr, items[order], values[order].astype(np.float32))
    return _Training(matrix, evidence.truth, np.maximum(evidence.shown.sizes.astype(np.int64), 1))
