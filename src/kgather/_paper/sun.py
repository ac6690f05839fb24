"""Sun and Sun: (k, epsilon)-anonymity of ratings, its satisfaction, and the windows that anonymize."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kgather._evaluation.metrics import measure
from kgather._evaluation.naive_bayes import accuracy_of
from kgather._paper import macros
from kgather._paper.findings import Finding, drawn, how_often, number, statement
from kgather._paper.macros import large_enough
from kgather._paper.movielens import HIGH, MovieLens
from kgather._paper.shown import rows_shown
from kgather.udfs.checking import satisfaction as checking
from kgather.udfs.gathering import epsilon
from kgather.udfs.preferences import learning
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.ratings._held_out import rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

_NAN = float("nan")
_TABLE_1 = np.array([(6, 1, _NAN), (1, 6, _NAN), (2, 5, _NAN), (1, _NAN, 5), (2, _NAN, 6)])
_COLUMN_4 = np.array([6.0, 1, 1, 1, 5])
_TABLE_2 = np.array([(3, 6, _NAN), (2, 5, _NAN), (4, 7, _NAN), (5, 6, _NAN), (1, _NAN, 5), (2, _NAN, 6)])
_TABLE_3 = np.concatenate([_TABLE_2, [(6, _NAN, 6), (5, _NAN, 5)]])
_TABLE_4 = np.array([3.0, 4, 5, 6, 7, 7, 8, 8])
_TABLE_5 = {
    "first": (np.array([6.0, 3, 4, 2]), (4, 3, 4, 6)),
    "second": (np.array([1.0, 6, 5, 5]), (10, 8, 6, 4, 4)),
}
_SAME_RANGE = "by chance: ratings drawn from the same range"
_R = 6  # the highest rating of the worked tables
_TARGETS = 10
_HALVES = 5


def satisfaction(data: MovieLens) -> Iterator[Finding]:
    """Sections 4 and 5: the worked tables, and ML-100k itself."""
    tables = drawn(partial(_like, _TABLE_1))
    near, same = _near(_TABLE_1, 5), [_near(table, 5) == [3, 3, 3, 2, 2] for table in tables]
    yield statement(
        "(2, 5)-groups of table 1",
        "t1 to t3; t4, t5",
        _listed(near),
        holds=near == [3, 3, 3, 2, 2],
        chance=how_often(same, "tables with the same blanks"),
        by_chance=same,
        shows="table 1; definition 2",
        reading="who is within 5 of how many, oneself included; null against a rating is as far as the scale is wide. "
        "By chance: below 5 others would be too far; at 5 blanks alone decide",
    )
    two_and_three = _near(_TABLE_1[1:3], 1)
    other = [min(_near(table[1:3], 1)) >= 2 for table in tables]
    yield statement(
        "t2 and t3 of table 1",
        "(2, 1)-anonymous",
        f"({min(two_and_three)}, 1)-anonymous",
        holds=min(two_and_three) >= 2,
        chance=how_often(other, "tables"),
        by_chance=other,
        shows="table 1; definition 1",
    )
    second = min(_near(_TABLE_2, 2))
    random = drawn(lambda seed: min(_near(_like(_TABLE_2, seed), 2)) >= 2)
    yield statement(
        "table 2",
        "(2, 2)-anonymous",
        f"({second}, 2)-anonymous",
        holds=second >= 2,
        chance=how_often(random, "tables with the same blanks"),
        by_chance=random,
        shows="table 2; figure 2",
    )
    all_cliques, groups = _decomposed(_TABLE_3)
    decomposed = drawn(lambda seed: _decomposed(_like(_TABLE_3, seed))[0])
    yield statement(
        "table 3 at epsilon = 2",
        "decomposes into cliques of 2 and more",
        f"{groups} groups, {'all' if all_cliques else 'not all'} of them cliques",
        holds=all_cliques,
        chance=how_often(decomposed, "tables"),
        by_chance=decomposed,
        shows="table 3; theorem 2",
        reading=_SAME_RANGE,
    )
    everybody = np.nan_to_num(_TABLE_1, nan=0.0)
    rolled = np.clip(_COLUMN_4[::-1] % 4 + 1, 1, 6)
    yield number(
        "standard deviation of the fourth item", _deviation(everybody, _COLUMN_4, 6), 2.23,
        chance=_deviation(everybody, rolled, 6), shows="equation 3",
        reading="of the population, among all five; by chance: another column",
    )  # fmt: skip
    yield number(
        "standard deviation of the fourth item in {t4, t5}", _deviation(_TABLE_1, _COLUMN_4, 5), 2.0,
        chance=float(np.std(_COLUMN_4)), shows="table 1; definition 3",
        reading="the least of the groups of table 1 at epsilon = 5, of which {t4, t5} is one; by chance: that of all "
        "five, whoever is near whom",
    )  # fmt: skip
    for limit in (1, 2, 3, 4, 5):
        found = checking.neighbours(data.ratings, limit, r=HIGH, at_most=20, threads=1)
        yield number(
            "users of ML-100k with 19 others within epsilon, %", 100 * float((found >= 20).mean()), x=limit,
            of="epsilon", shows="figures 3 to 6",
            reading="all users rated different items, so that none has a neighbour below 5: figures 3 to 6 are of data "
            "that the text does not describe; for the speed see benchmarks/satisfaction.py",
        )  # fmt: skip


def windows(data: MovieLens) -> Iterator[Finding]:
    """Section 6: the window that changes least, and the distortion of ML-100k by epsilon and k."""
    shown = np.array([(5.0, 6, _NAN), (2, 5, _NAN), (4, 7, _NAN), (5, 6, _NAN)])
    changed = np.array([(5.0, 5, _NAN), (3, 5, _NAN), (3, 7, _NAN), (5, 7, _NAN)])
    yield number(
        "tuple distortion", _distortion_of(shown[:1], changed[:1]), 1,
        chance=_distortion_of(shown[:1], changed[2:3]), within=0, shows="definition 4",
    )  # fmt: skip
    yield number(
        "total distortion", _distortion_of(shown, changed), 4,
        chance=_distortion_of(shown, changed[[2, 3, 0, 1]]), within=0, shows="definition 5",
        reading="by chance: the rows change places",
    )  # fmt: skip
    yield from _row_of_windows("distortion of table 4", _TABLE_4, 2, (11, 7, 5, 6), "table 4", "")
    best = macros.best_window(_TABLE_4, 2)
    same = drawn(lambda seed: macros.best_window(_drawn(_TABLE_4, seed), 2) == 5)
    yield statement(
        "window chosen in table 4", "from 5", f"from {best:g}", holds=best == 5, chance=how_often(same, "columns"),
        by_chance=same, shows="table 4; algorithm 1", reading=_SAME_RANGE,
    )  # fmt: skip
    for name, (values, printed) in _TABLE_5.items():
        yield from _row_of_windows(
            f"distortion of table 5, {name} column", values, 1, printed, "table 5",
            "on the ratings that the printed windows follow from; those of table 1 give other numbers; ",
        )  # fmt: skip
    yield from _distortions(data)


def _row_of_windows(
    measure: str, values: NDArray[np.float64], width: float, printed: tuple[int, ...], shows: str, reading: str
) -> Iterator[Finding]:
    """The distortion by each window of a column, from its least rating on. A row is one statement: a column drawn at
    random easily has one of its numbers.
    """

    def moved(column: NDArray[np.float64]) -> tuple[float, ...]:
        least = int(values.min())
        return tuple(macros.moved(column, low, width) for low in range(least, least + len(printed)))

    found = moved(values)
    for place, distortion in enumerate(found):
        yield number(f"{measure}, each window", distortion, x=int(values.min()) + place, of="window from", shows=shows)
    same = drawn(lambda seed: moved(_drawn(values, seed)) == printed)
    yield statement(
        measure, _row(printed), _row(found), holds=found == printed, chance=how_often(same, "columns"), by_chance=same,
        shows=shows, reading=f"{reading}{_SAME_RANGE}",
    )  # fmt: skip


def _row(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{one:g}" for one in numbers)


def _distortions(data: MovieLens) -> Iterator[Finding]:
    vectors = comparison_vectors(learning.learn(data.ratings))
    by_epsilon, by_k, random_epsilon, random_k = {}, {}, {}, {}
    valid = True
    for limit in (1, 2, 3, 4, 5):
        by_epsilon[limit], random_epsilon[limit], kept = _distortion(data, vectors, 40, limit)
        valid &= kept
        yield number(
            "distortion a rating by epsilon (k = 40)", by_epsilon[limit], chance=random_epsilon[limit], x=limit,
            of="epsilon", shows="figure 7",
        )  # fmt: skip
    for k in (5, 10, 20, 40):
        by_k[k], random_k[k], kept = _distortion(data, vectors, k, 2)
        valid &= kept
        yield number(
            "distortion a rating by k (epsilon = 2)", by_k[k], chance=random_k[k], x=k, shows="figure 7",
            reading="where only one of the two is rated, the other counts as 0; by chance: groups at random",
        )  # fmt: skip
    yield statement(
        "distortion by epsilon",
        "falls, to 0 at epsilon = 5",
        f"{by_epsilon[1]:.2f} to {by_epsilon[4]:.2f} at 4, {by_epsilon[5]:.2f} at 5",
        holds=_falls(by_epsilon),
        chance=f"{random_epsilon[1]:.2f} to {random_epsilon[4]:.2f} at 4, {random_epsilon[5]:.2f} at 5",
        by_chance=_falls(random_epsilon),
        valid=valid,
        shows="figure 7",
        reading="at 5 everybody is everybody's neighbour, and nothing is changed",
    )
    yield statement(
        "distortion by k",
        "grows",
        f"{by_k[5]:.2f} to {by_k[40]:.2f}",
        holds=by_k[5] < by_k[10] < by_k[40],
        chance=f"{random_k[5]:.2f} to {random_k[40]:.2f}",
        by_chance=random_k[5] < random_k[10] < random_k[40],
        valid=valid,
        shows="figure 7",
    )
    _, table = data.most_rated(_TARGETS)
    for name, matrix, k, limits in (
        ("all films", data.ratings, 20, (1, 4, 5)),
        ("the ten most rated films", macros.matrix_of(table), 5, (1, 2, 3, 4, 5)),
    ):
        for limit in limits:
            groups = epsilon.keep_cliques(
                matrix, k, epsilon=limit, rating_range=HIGH, vectors=np.zeros((matrix.n_users, 1))
            )
            yield number(
                f"users kept by deletion, %, of {name} (k = {k})", 100 * float((groups >= 0).mean()), x=limit,
                of="epsilon", shows="section 8",
                reading="users who are in a clique stay as they are, the others are deleted",
            )  # fmt: skip


def accuracy(data: MovieLens) -> Iterator[Finding]:
    """Section 7.3: Naive Bayes learnt from anonymized ratings, epsilon = 2, against the original ones."""
    _, table = data.most_rated(_TARGETS)
    found: dict[str, list[float]] = {name: [] for name in ("original", "apart", "together", "random", "commoner")}
    valid = True
    for target in range(table.shape[1]):
        rated = ~np.isnan(table[:, target])
        likes = table[rated, target] >= 4
        features = np.delete(table[rated], target, axis=1)
        together, kept = _anonymized(features)
        valid &= kept
        for seed in range(_HALVES):
            order = np.random.default_rng(seed).permutation(len(likes))
            learn, test = order[: len(order) // 2], order[len(order) // 2 :]
            (trained_on, kept), (tested_on, too) = _anonymized(features[learn]), _anonymized(features[test])
            valid &= kept and too
            halves = {
                "original": (features[learn], features[test]),
                "apart": (trained_on, tested_on),
                "together": (together[learn], together[test]),
                "random": (features[np.random.default_rng(seed).permutation(learn)], features[test]),
            }
            for name, (trained, tested) in halves.items():
                found[name].append(accuracy_of(trained, likes[learn], tested, likes[test], highest=int(HIGH)))
            commoner = likes[learn].mean() >= 0.5
            found["commoner"].append(float((likes[test] == commoner).mean()))
    mean = {name: 100 * float(np.mean(values)) for name, values in found.items()}
    task = (
        "whether a user gives one of the ten most rated films 4 or 5, from the ratings of the nine others; (10, 2) "
        "windows, 50 halves. The task is not described"
    )
    always = "by chance: the answer that was commoner in the training set"
    yield number(
        "accuracy on the original, %", mean["original"], chance=mean["commoner"], shows="figure 8", reading=task
    )
    yield number(
        "accuracy on the anonymized ratings, %", mean["apart"], 75, chance=max(mean["commoner"], mean["random"]),
        valid=valid, points=2, shows="figure 8",
        reading=f"training and test sets anonymized apart, as printed; {always}, or what ratings of other users teach, "
        "if that is better",
    )  # fmt: skip
    yield number(
        "the same, anonymized before they are split, %", mean["together"], chance=mean["random"], shows="figure 8",
        reading="by chance: ratings of other users",
    )  # fmt: skip
    gain = {name: value - mean["commoner"] for name, value in mean.items()}
    yield statement(
        "gain over the commoner answer",
        "that of the original, nearly",
        f"{gain['apart']:+.1f} points, on the original {gain['original']:+.1f}",
        holds=gain["apart"] > 0 and gain["apart"] > gain["original"] - 2,
        chance=f"{gain['random']:+.1f} points",
        by_chance=gain["random"] > 0 and gain["random"] > gain["original"] - 2,
        valid=valid,
        shows="figure 8",
        reading="nearly: within 2 points, and above 0; by chance: ratings of other users",
    )
    yield statement(
        "accuracy beside the original's",
        "very close",
        f"{mean['apart']:.1f} and {mean['original']:.1f}%",
        holds=abs(mean["apart"] - mean["original"]) <= 2,
        chance=f"{mean['commoner']:.1f} and {mean['original']:.1f}%",
        by_chance=any(abs(mean[name] - mean["original"]) <= 2 for name in ("commoner", "random")),
        valid=valid,
        shows="figure 8",
        reading=f"very close: within 2 points; {always}, or what ratings of other users teach",
    )


def _anonymized(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """(10, 2)-anonymous windows of a table of users x items, gathered by itself; whether they are."""
    matrix = macros.matrix_of(table)
    groups, _ = epsilon.decompose(matrix, 10, epsilon=2, rating_range=HIGH, vectors=np.nan_to_num(table))
    shown = macros.windowed(matrix, groups, 2)
    members = [shown[groups == one] for one in np.unique(groups)]
    apart = [np.fmax.reduce(one) - np.fmin.reduce(one) for one in members]
    return shown, large_enough(groups, 10) and not bool((np.stack(apart) > 2).any())


def _near(table: NDArray[np.float64], limit: float) -> list[int]:
    """How many users are within epsilon of each, oneself included."""
    matrix = macros.matrix_of(table)
    return checking.neighbours(matrix, limit, r=_R, at_most=len(table), threads=1).tolist()


def _listed(near: list[int]) -> str:
    return ", ".join(f"t{place}: {count}" for place, count in enumerate(near, start=1))


def _decomposed(table: NDArray[np.float64]) -> tuple[bool, int]:
    """Whether all groups of two and more are cliques at epsilon = 2, by what they say and by who is near whom, and how
    many groups there are.
    """
    groups, cliques = epsilon.decompose(
        macros.matrix_of(table), 2, epsilon=2, rating_range=_R + 1, vectors=np.nan_to_num(table)
    )
    near = all(
        min(_near(members, 2)) == len(members) for members in (table[groups == one] for one in np.unique(groups))
    )
    return near and bool(cliques.all()) and large_enough(groups, 2), len(cliques)


def _deviation(table: NDArray[np.float64], column: NDArray[np.float64], limit: float) -> float:
    return checking.least_deviation(macros.matrix_of(table), column[:, None], limit, r=_R, threads=1)


def _like(table: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Ratings drawn from the same range at the places of those of the table."""
    return np.where(np.isnan(table), np.nan, _drawn(table, seed))


def _drawn(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    low, high = np.nanmin(values), np.nanmax(values)
    return np.random.default_rng(seed).integers(int(low), int(high), values.shape, endpoint=True).astype(float)


def _falls(by_epsilon: dict[int, float]) -> bool:
    return by_epsilon[5] == 0 < by_epsilon[4] < by_epsilon[1]


def _distortion_of(table: NDArray[np.float64], changed: NDArray[np.float64]) -> float:
    """The distortion of tables of users x items, as `kgather metrics` tells it."""
    evidence = rows_shown(macros.matrix_of(table), changed, np.arange(len(table)))
    return {found.metric: found.value for found in measure(evidence)}["total_distortion"]


def _distortion(
    data: MovieLens, vectors: NDArray[np.float32 | np.float64], k: int, width: float
) -> tuple[float, float, bool]:
    """The mean change of a rating, by groups as found and by groups of the same sizes at random; whether all have k.

    Where only one of the two is rated, the other counts as 0. Groups that are near enough as they are need no windows.
    """
    groups, is_clique = epsilon.decompose(data.ratings, k, epsilon=width, rating_range=HIGH, vectors=vectors)
    found, by_chance = (
        _changed(data.ratings, members, ~is_clique[members], width) for members in (groups, macros.shuffled(groups))
    )
    return found, by_chance, large_enough(groups, k)


def _changed(ratings: RatingMatrix, groups: NDArray[np.integer], moved: NDArray[np.bool_], width: float) -> float:
    table = np.zeros((ratings.n_users, ratings.n_items))
    table[rows_of(ratings.indptr, np.arange(ratings.nnz)), ratings.items] = ratings.values
    if not moved.any():
        return 0.0
    return float(np.abs(np.nan_to_num(macros.windowed(ratings, groups, width)) - table)[moved].sum() / ratings.nnz)
