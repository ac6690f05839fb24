"""F. Casino et al.: microaggregation of the filled rating table, against Gaussian noise."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kgather._attacks.attacked import Attacked
from kgather._attacks.linkage import linkage
from kgather._paper import macros
from kgather._paper.findings import Finding, drawn, in_part, number, statement
from kgather._paper.macros import large_enough, shuffled
from kgather._paper.movielens import HIGH, LOW, MovieLens, Split
from kgather._paper.shown import rows_shown
from kgather.udfs.gathering import mdav
from kgather.udfs.preferences.filled import filled_ratings, filled_scores
from kgather.udfs.ratings.matrix import RatingMatrix

_FILL = 3.0
_TABLE_2 = {
    2: (64, 40.82), 3: (87, 26.51), 4: (99, 19.93), 5: (105, 15.90), 6: (110, 12.19), 7: (114, 12.19), 8: (117, 9.65),
    9: (119, 7.95), 10: (120, 7.21), 25: (130, 2.33), 50: (134, 0.63), 75: (136, 0.21), 100: (136, 0.21),
    150: (138, 0.10), 200: (139, 0.10),
}  # fmt: skip
_TABLE_3 = {
    0.25: (246, 100), 0.5: (248, 100), 0.75: (257, 98.51), 1: (275, 89.28), 1.25: (302, 68.5), 1.5: (336, 50.58),
    1.75: (376, 44.53), 2: (418, 27.99), 2.5: (509, 18.76), 3: (592, 10.49), 3.5: (663, 8.58), 4: (727, 7.21),
    5: (830, 4.24), 10: (1078, 1.40), 20: (1221, 0.42), 40: (1294, 0.31), 50: (1339, 0.10),
}  # fmt: skip
_RISK = 0.25  # of the printed risk: within that it is reproduced
_MAE = 0.01  # of the printed error: groups at random come within 2% of it
_DRAWS = 3  # of groups at random: each costs a table of users x items
_K, _SIGMA = 10, 4  # of table IV


def microaggregation(data: MovieLens) -> Iterator[Finding]:
    """Table II, figures 4 and 5: loss and disclosure risk of MDAV, by k."""
    original, scores = filled_ratings(data.ratings, fill=_FILL), filled_scores(data.ratings, fill=_FILL)
    for k, (loss, risk) in _TABLE_2.items():
        groups = mdav.gather(scores, k)
        valid = large_enough(groups, k)
        shown = macros.centroids(data.ratings, groups, _FILL)
        random = [(one, macros.centroids(data.ratings, one, _FILL)) for one in drawn(partial(shuffled, groups), _DRAWS)]
        yield number(
            "SSE, thousands", _sse(original, shown[groups]), loss,
            chance=[_sse(original, rows[one]) for one, rows in random], valid=valid, x=k, within=0.015,
            shows="table II; figure 4",
            reading="3 where not rated, z-scores to gather, centroids in rating units, not rounded, all cells",
        )  # fmt: skip
        there, back = _risks(data, shown, groups)
        yield number(
            "disclosure risk, %", there, risk, chance=[_risks(data, rows, one)[0] for one, rows in random],
            valid=valid, x=k, within=_RISK, shows="table II; figure 5",
            reading="from the original row to the nearest protected one, one guess among ties",
        )  # fmt: skip
        yield number(
            "disclosure risk as the text says, %", back, x=k, shows="table II",
            reading="from the protected row to the nearest original one: the other way round",
        )  # fmt: skip


def noise(data: MovieLens) -> Iterator[Finding]:
    """Table III, figures 6 to 8: Gaussian noise, by its standard deviation, and against MDAV at equal risk."""
    original, scores = filled_ratings(data.ratings, fill=_FILL), filled_scores(data.ratings, fill=_FILL)
    of_one = macros.noise(original)
    is_noise = macros.is_noise(of_one, original)
    everybody = np.arange(len(original))
    curve = []
    guessed, unchanged = 100 / len(original), 100.0
    for sigma, (loss, risk) in _TABLE_3.items():
        shown = original + sigma * of_one
        curve.append((_sse(original, shown), _risks(data, shown, everybody)[0]))
        yield number(
            "SSE, thousands", curve[-1][0], loss, chance=_sse(original, original[shuffled(everybody)]),
            valid=is_noise, x=sigma, of="sigma", shows="table III; figure 6",
            reading="noise of sigma standard deviations of each item on all cells, not clipped; the printed column "
            "starts too high and levels off, which no reading that was tried explains; by chance: rows that change "
            "places",
        )  # fmt: skip
        yield number(
            "disclosure risk, %", curve[-1][1], risk, chance=min(guessed, unchanged, key=lambda one: abs(one - risk)),
            valid=is_noise, x=sigma, of="sigma", within=_RISK, shows="table III; figure 7",
            reading="by chance: a guess among all, or ratings without noise, whichever comes nearer",
        )  # fmt: skip
    for k in (3, 10):
        groups = mdav.gather(scores, k)
        at_random = shuffled(groups)
        times = [
            _loss_at(curve, _risks(data, shown, one)[0]) / _sse(original, shown[one])
            for one in (groups, at_random)
            for shown in [macros.centroids(data.ratings, one, _FILL)]
        ]
        yield statement(
            f"noise against MDAV at the risk of k = {k}",
            "four times the loss at 30%, and more at lower risks",
            f"{times[0]:.1f} times",
            holds=times[0] >= 4,
            chance=f"{times[1]:.1f} times",
            by_chance=times[1] >= 4,
            valid=is_noise and large_enough(groups, k),
            shows="figure 8; section V",
            reading="the loss of noise between the measured sigmas is interpolated",
        )


def neighbours(data: MovieLens) -> Iterator[Finding]:
    """Table IV: predictions from the protected row that is nearest."""
    held = next(iter(data.splits(1)))
    original, scores = filled_ratings(data.ratings, fill=_FILL), filled_scores(data.ratings, fill=_FILL)
    of_one = macros.noise(original)
    noisy, is_noise = original + _SIGMA * of_one, macros.is_noise(of_one, original)
    everybody = np.arange(len(original))
    leaking = "the test ratings were part of what was protected; the nearest protected row outside the user's own group"
    grouped, at_random, valid = _grouped_errors(data, original, scores, held)
    yield number(
        "MAE after MDAV, k = 10", grouped, 0.89, within=_MAE, chance=at_random, valid=valid, shows="table IV",
        reading=f"{leaking}; by chance: groups at random",
    )  # fmt: skip
    errors = [
        _error(held, noisy[nearest])
        for nearest in (_nearest(original, noisy, everybody), np.roll(everybody, 1))
    ]  # fmt: skip
    yield number(
        "MAE after noise, sigma = 4", errors[0], 1.08, within=_MAE, chance=errors[1], valid=is_noise,
        shows="table IV",
        reading=f"{leaking}; the noise of table III, whose printed numbers suggest another; by chance: any other row",
    )  # fmt: skip
    emptied = np.where((noisy < LOW) | (noisy > HIGH), _FILL, noisy)
    yield number(
        "the same, noise off the scale is not rated", _error(held, emptied[_nearest(original, emptied, everybody)]),
        shows="table IV", reading="near the printed 1.08, but it is not the noise of table III",
    )  # fmt: skip
    yield statement(
        "MAE of MDAV and of noise",
        "MDAV has less",
        f"{grouped:.3f} and {errors[0]:.3f}",
        holds=grouped < errors[0],
        chance=f"{np.median(at_random):.3f} and {errors[0]:.3f}",
        by_chance=[one < errors[0] for one in at_random],
        valid=valid and is_noise,
        shows="table IV",
    )
    train, of_train = filled_ratings(held.train, fill=_FILL), filled_scores(held.train, fill=_FILL)
    groups = mdav.gather(of_train, _K)
    honest, *random = _errors_of(held.train, train, groups, held)
    always = float(np.abs(held.ratings - _FILL).mean())
    yield number(
        "MAE without the test ratings", honest, 0.89, within=_MAE, chance=random,
        valid=large_enough(groups, _K), shows="table IV",
        reading="four fifths are protected, the others predicted",
    )  # fmt: skip
    yield statement(
        "gain over always 3, without the test ratings",
        f"{always - 0.89:.3f}",
        f"{always - honest:.3f}",
        holds=in_part(honest < always, abs(honest - 0.89) <= _MAE * 0.89),
        chance=f"{always - np.median(random):.3f}",
        by_chance=[in_part(one < always, abs(one - 0.89) <= _MAE * 0.89) for one in random],
        valid=large_enough(groups, _K),
        shows="table IV",
    )


def _grouped_errors(
    data: MovieLens, original: NDArray[np.float64], scores: NDArray[np.float64], held: Split
) -> tuple[float, list[float], bool]:
    """The error of the nearest centroid of another group, by MDAV and by groups at random; whether MDAV gathered."""
    groups = mdav.gather(scores, _K)
    found, *at_random = _errors_of(data.ratings, original, groups, held)
    return found, at_random, large_enough(groups, _K)


def _errors_of(
    ratings: RatingMatrix, rows: NDArray[np.float64], groups: NDArray[np.integer], held: Split
) -> list[float]:
    """The error of the nearest centroid of another group, by the groups, and by groups of the same sizes at random."""
    return [
        _error(held, shown[one][_nearest(rows, shown[one], one)])
        for one in (groups, *drawn(partial(shuffled, groups), _DRAWS))
        for shown in [macros.centroids(ratings, one, _FILL)]
    ]


def _sse(original: NDArray[np.float64], shown: NDArray[np.float64]) -> float:
    return float(((original - shown) ** 2).sum()) / 1000


def _loss_at(curve: list[tuple[float, float]], risk: float) -> float:
    """The loss of noise at a risk, between those measured of some risk."""
    losses, risks = zip(*sorted((each for each in curve if each[1] > 0), key=lambda each: each[1]), strict=True)
    return float(np.exp(np.interp(np.log(risk), np.log(risks), np.log(losses))))


def _risks(data: MovieLens, rows: NDArray[np.float64], truth: NDArray[np.integer]) -> tuple[float, float]:
    """How often, in percent, the protected row nearest to an original one is that of the same user, and how often the
    original row nearest to a protected one is.
    """
    there, back = (found.user for found in linkage(Attacked.of(rows_shown(data.ratings, rows, truth)), fill=_FILL))
    assert there is not None
    return 100 * there.value, float("nan") if back is None else 100 * back.value


def _nearest(
    original: NDArray[np.float64], shown: NDArray[np.float64], groups: NDArray[np.integer]
) -> NDArray[np.int64]:
    """For each user the row that is nearest of another group, int64[n], of equally near ones the first.

    shown: one row a user, float64[n, m].
    """
    squares = (original**2).sum(axis=1)[:, None] - 2 * original @ shown.T + (shown**2).sum(axis=1)
    squares[groups[:, None] == groups] = np.inf
    # Rounded: which of two equally near rows comes first must not hang on the last bits, which processors differ in.
    return squares.round(6).argmin(axis=1)


def _error(held: Split, predicted: NDArray[np.float64]) -> float:
    """The mean error of predictions, one row a user, float64[n, m]."""
    return float(np.abs(predicted[held.users, held.items] - held.ratings).mean())
