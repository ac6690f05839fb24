"""kgather's default beside newer ways to make ratings anonymous, on one split of ml-100k and one of ml-1m.

    make bench-anchors

Four fifths of the ratings are anonymized, k = 10, and the rest is predicted: by a low-rank model that learns from what
is shown, and, where users' groups show values, by those. "Right row": an attacker who knows 4 or 8 ratings takes the
row (of a group, or of a user) whose values are nearest. Membership: half of the users are anonymized, all ratings of a
person are known. Gender: a classifier is taught on half of the users by what is shown of them, and asked about the
other half; AUC, 0.5 is guessing. In the second column it was taught on ratings as they were, which is the attacker that
PerBlur is meant against; who knows the method is taught on what is shown. Needs u.data and u.user, and ratings.csv and
users.dat of ml-1m, under $KGATHER_DATA, and scikit-learn. Writes benchmarks/results/anchors.{md,json}. About a quarter
of an hour; names of data sets as arguments measure those alone.

No paper's full text was at hand, so a reading had to be chosen. What was read of each is in brackets:

- (p, l, alpha)-diversity (Wei, Tian and Shen 2018) [abstract]: a latent factor model fills the matrix; users are parted
  in three by how many items they rated ("importance"), each part is gathered by MDAV on the factors, and groups are
  merged until each has members of l = 3 of alpha = 8 clusters of k-means. Groups show the mean filled row.
- CCWS (Zheng and others 2023) [abstract, and a review that tells the algorithm]: cohorts are split by the next
  consistent weighted sample of their members' ratings, as long as each part has k members; parts that are too small
  stay together, and are a cohort if they are k. Groups show what kgather's default shows of groups, so that gathering
  alone is compared.
- k-anonymized ratings with item-based prediction (Sakuma and Osame 2018) [abstract]: groups of Bisecting K-Gather show
  the mean of those who rated; a user's rating is predicted from the user's own by the cosine of items' columns. It is
  a way to predict, so that only its error is another than that of the release it learns from.
- PerBlur (Slokom, Hanjalic and Larson 2021) [abstract, and the authors' code]: to each user a tenth of the profile is
  added, of the 100 items that tell the other gender most, those first that are predicted highest for the user, with
  the items' mean ratings; no item gets more than twice its raters. As many ratings in all are taken away, equally from
  all users who have at least 50, of the items that tell the own gender most. A logistic regression of the ratings says
  which items tell a gender. Users keep rows of their own.
- UPC-SDG (Liu and others 2022) [abstract, the authors' notes on their code, and another's code of the model]: of each
  user's items those that fit the user's preferences least are each replaced, a fifth of them as in the authors'
  commands, or half. What replaces an item is the unrated one that fits the user best among those whose likeness to it,
  from 0 to 1 over all items, is at most the user's sensitivity, here 0.5; it has its predicted rating. The paper trains
  both steps; here they are taken from factors. Users keep rows of their own.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from harness import RESULTS, machine
from numpy.typing import NDArray
from release import ATTACKED, KNOWN, K, Ratings, data_folder, evidence_by_kernels, evidence_of
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from kgather._attacks import run
from kgather._attacks.membership import compare
from kgather._evaluation.candidates import ShownCells
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.metrics import shown_values
from kgather._evaluation.recommenders import recommender_errors
from kgather.udfs.diversity.sensitive_diversity import merge_until_diverse
from kgather.udfs.gathering import bkg, mdav
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT

L, ALPHA, PARTS = 3, 8, 3
# Of PerBlur: added share of a profile, items that tell a gender, ratings from which on some are taken away.
EXTRA, TELLING, MANY = 0.1, 100, 50
SENSITIVITY = 0.5  # of UPC-SDG
USERS = {"ml-100k": ("ml-100k/u.user", "|", 2), "ml-1m": ("ml-1m/users.dat", "::", 1)}  # where their gender is


@dataclass(frozen=True)
class Known:
    """Ratings to anonymize, and the gender of their users, bool[n]: what PerBlur is about."""

    ratings: Ratings
    male: NDArray[np.bool_]


Rival = Callable[[Known, int], Evidence]


def factors(ratings: Ratings, seed: int) -> Preferences:
    """The latent factor model of all rivals."""
    return learn(ratings.matrix(), rank=10, seed=seed, threads=2, scale=ratings.scale, **FOR_FIT)


def table(model: Preferences, ratings: Ratings) -> NDArray[np.float64]:
    """All predictions, float64[n, m], clipped to the scale."""
    shown = model.user_level[:, None] + model.item_level + model.user_factors @ model.item_factors.T
    return np.clip(shown.astype(np.float64), *ratings.scale)


def rows_of_groups(ratings: Ratings, values: NDArray[np.float64], groups: NDArray[np.integer]) -> Evidence:
    """A release that shows a row of values, float64[g, m], of every group."""
    seen = np.flatnonzero(np.bincount(ratings.item, minlength=ratings.n_items))
    rows, items = (side.reshape(-1) for side in np.meshgrid(np.arange(len(values)), seen, indexing="ij"))
    shown = values[rows, items]
    cells = ShownCells.from_cells(np.bincount(groups).astype(np.int64), ratings.n_items, rows, items, shown, shown)
    return evidence_of(ratings, ratings.matrix(), cells, groups.astype(np.int32), None)


def rows_of_users(original: Ratings, changed: Ratings) -> Evidence:
    """A release that shows a row of every user."""
    everybody = np.arange(original.n_users, dtype=np.int32)
    cells = ShownCells.from_cells(
        np.ones(len(everybody), dtype=np.int64), original.n_items, changed.user, changed.item, changed.rating,
        changed.rating,
    )  # fmt: skip
    return evidence_of(original, original.matrix(), cells, everybody, None)


def default(known: Known, seed: int) -> Evidence:
    return evidence_by_kernels(known.ratings, {}, seed)


def nothing(known: Known, seed: int) -> Evidence:
    del seed
    return rows_of_users(known.ratings, known.ratings)


def diverse(known: Known, seed: int) -> Evidence:
    """(p, l, alpha)-diversity by importance-partitioned MDAV."""
    model = factors(known.ratings, seed)
    vectors = comparison_vectors(model)
    importance = np.argsort(np.argsort(np.bincount(known.ratings.user, minlength=len(vectors)), kind="stable"))
    groups, found = np.empty(len(vectors), dtype=np.int32), 0
    for part in range(PARTS):
        users = np.flatnonzero(importance * PARTS // len(vectors) == part)
        groups[users] = found + mdav.gather(vectors[users], K)
        found = int(groups[users].max()) + 1
    clusters = KMeans(ALPHA, random_state=seed, n_init=4).fit_predict(vectors).astype(np.float64)[:, None]
    groups = merge_until_diverse(vectors, groups, clusters, kind="distinct", l=L, names=["cluster"])
    return rows_of_groups(known.ratings, _filled_means(known.ratings, table(model, known.ratings), groups), groups)


def _filled_means(ratings: Ratings, filled: NDArray[np.float64], groups: NDArray[np.integer]) -> NDArray[np.float64]:
    """The mean of each group's rows, where ratings stand before predictions."""
    rows = filled.copy()
    rows[ratings.user, ratings.item] = ratings.rating
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.add.reduceat(rows[order], starts) / np.bincount(groups)[:, None]


def cohorts(known: Known, seed: int) -> Evidence:
    """Consecutive consistent weighted sampling."""
    groups = consecutive_samples(known.ratings, seed)
    model = factors(known.ratings, seed)
    sizes = np.bincount(groups)
    level = np.bincount(groups, model.user_level) / sizes
    places = np.stack([np.bincount(groups, one) / sizes for one in model.user_factors.T], axis=1)
    values = np.clip(level[:, None] + model.item_level + places @ model.item_factors.T, *known.ratings.scale)
    return rows_of_groups(known.ratings, values, groups)


def consecutive_samples(ratings: Ratings, seed: int, rounds: int = 12) -> NDArray[np.int32]:
    """The cohort of every user, int32[n]."""
    draws = np.random.default_rng(seed)
    groups = np.zeros(ratings.n_users, dtype=np.int64)
    for _ in range(rounds):
        sample = weighted_sample(ratings, draws)
        parts = np.unique(np.stack([groups, sample]), axis=1, return_inverse=True)[1].reshape(-1)
        # Parts that are too small stay together; where they are fewer than k, the cohort is not split.
        small = np.bincount(parts)[parts] < K
        rest = np.bincount(groups, small, minlength=int(groups.max()) + 1)
        split = (rest == 0) | (rest >= K)
        groups = np.unique(np.where(split[groups] & ~small, parts + 1, -1 - groups), return_inverse=True)[1]
    return groups.astype(np.int32)


def weighted_sample(ratings: Ratings, draws: np.random.Generator) -> NDArray[np.int64]:
    """Ioffe's consistent weighted sample of every user: the item it falls on, int64[n], the weight being the rating."""
    m = ratings.n_items
    r, c, beta = draws.gamma(2, 1, m), draws.gamma(2, 1, m), draws.uniform(0, 1, m)
    step = np.floor(np.log(ratings.rating) / r[ratings.item] + beta[ratings.item])
    y = np.exp(r[ratings.item] * (step - beta[ratings.item]))
    a = c[ratings.item] / (y * np.exp(r[ratings.item]))
    order = np.lexsort((a, ratings.user))
    first = order[np.flatnonzero(np.diff(ratings.user[order], prepend=-1))]
    sample = np.full(ratings.n_users, -1)
    sample[ratings.user[first]] = ratings.item[first]
    return sample


def pure(known: Known, seed: int) -> Evidence:
    """The release that item-based prediction learns from."""
    ratings = known.ratings
    groups = bkg.gather(comparison_vectors(factors(ratings, seed)), K, seed=seed)
    cells, place = np.unique(
        groups[ratings.user].astype(np.int64) * ratings.n_items + ratings.item, return_inverse=True
    )
    mean = np.bincount(place, ratings.rating) / np.bincount(place)
    rows, items = np.divmod(cells, ratings.n_items)
    shown = ShownCells.from_cells(np.bincount(groups).astype(np.int64), ratings.n_items, rows, items, mean, mean)
    return evidence_of(ratings, ratings.matrix(), shown, groups, None)


def item_based_error(evidence: Evidence, train: Ratings, test: Ratings) -> float:
    """The error of predictions from the user's own ratings, by the cosine of the items' columns in the release."""
    rows = np.nan_to_num(evidence.shown.columns(np.arange(train.n_items))[0].astype(np.float64)).T
    means = np.bincount(train.item, train.rating, train.n_items) / np.maximum(
        np.bincount(train.item, minlength=train.n_items), 1
    )
    centred = np.where(rows > 0, rows - means, 0)
    norm = np.sqrt((centred**2).sum(axis=0))
    near = np.maximum(centred.T @ centred / np.maximum(np.outer(norm, norm), 1e-9), 0)
    own = np.zeros((train.n_users, train.n_items))
    own[train.user, train.item] = train.rating - means[train.item]
    weight = (own != 0).astype(np.float64) @ near
    found = means + own @ near / np.maximum(weight, 1e-9)
    return float(np.abs(np.clip(found, *train.scale)[test.user, test.item] - test.rating).mean())


def of_each(ratings: Ratings) -> list[NDArray[np.int64]]:
    """The places of every user's ratings, which are in the order of the users."""
    starts = np.searchsorted(ratings.user, np.arange(ratings.n_users + 1))
    return [np.arange(start, end) for start, end in pairwise(starts)]


def blurred(known: Known, seed: int) -> Evidence:
    """PerBlur."""
    ratings, predicted = known.ratings, table(factors(known.ratings, seed), known.ratings)
    raters_before = np.bincount(ratings.item, minlength=ratings.n_items)
    rated = np.nan_to_num(ShownCells.from_ratings(ratings.matrix()).columns(np.arange(ratings.n_items))[0].T)
    typical = LogisticRegression(C=0.01, max_iter=200).fit(rated, known.male).coef_[0]  # above 0: of men
    means = np.bincount(ratings.item, ratings.rating, ratings.n_items) / np.maximum(raters_before, 1)
    telling = np.argsort(typical, kind="stable")[:TELLING], np.argsort(-typical, kind="stable")[:TELLING]
    places, now = of_each(ratings), raters_before.copy()
    user, item = [ratings.user], [ratings.item]
    for one, own in enumerate(places):
        others = telling[1 - int(known.male[one])]
        left = ~np.isin(others, ratings.item[own]) & (now[others] < 2 * raters_before[others])
        added = others[left][np.argsort(-predicted[one, others[left]], kind="stable")][: round(EXTRA * len(own))]
        now[added] += 1
        user.append(np.full(len(added), one))
        item.append(added)
    many = [one for one, own in enumerate(places) if len(own) >= MANY]
    taken = round((sum(map(len, item)) - len(ratings.item)) / max(len(many), 1))
    kept = np.ones(len(ratings.rating), dtype=bool)
    for one in many:
        lean = typical if known.male[one] else -typical
        kept[places[one][np.argsort(-lean[ratings.item[places[one]]], kind="stable")[:taken]]] = False
    users, items = (np.concatenate([column[0][kept], *column[1:]]) for column in (user, item))
    added_ratings = np.round(means[items[kept.sum() :]])
    values = np.concatenate([ratings.rating[kept], added_ratings])
    return rows_of_users(ratings, Ratings(users, items, values, ratings.n_users, ratings.n_items))


def synthetic(share: float) -> Rival:
    """UPC-SDG that replaces a share of every user's items."""

    def replaced(known: Known, seed: int) -> Evidence:
        ratings, model = known.ratings, factors(known.ratings, seed)
        predicted = table(model, ratings)
        vectors = np.concatenate([model.item_level[:, None], model.item_factors], axis=1)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        likeness = vectors @ vectors.T
        least, most = likeness.min(axis=1), likeness.max(axis=1)
        highest = least + SENSITIVITY * (most - least)
        seen = np.bincount(ratings.item, minlength=ratings.n_items) > 0
        item, rating = ratings.item.copy(), ratings.rating.copy()
        for one, own in enumerate(of_each(ratings)):
            fits = model.item_factors @ model.user_factors[one]
            free = np.where(seen, fits, -np.inf)
            free[ratings.item[own]] = -np.inf
            order = np.argsort(fits[ratings.item[own]], kind="stable")
            for entry in own[order[: int(share * len(own))]]:
                before = ratings.item[entry]
                found = int(np.where(likeness[before] <= highest[before], free, -np.inf).argmax())
                if free[found] == -np.inf:
                    continue
                free[found] = -np.inf
                item[entry], rating[entry] = found, np.round(predicted[one, found])
        return rows_of_users(ratings, Ratings(ratings.user, item, rating, ratings.n_users, ratings.n_items))

    return replaced


RIVALS: dict[str, Rival] = {
    "not anonymized": nothing,
    "kgather, default": default,
    "(p, l, alpha)-diversity": diverse,
    "CCWS cohorts": cohorts,
    "k-anonymized, item-based": pure,
    "PerBlur": blurred,
    "UPC-SDG, a fifth": synthetic(0.2),
    "UPC-SDG, half": synthetic(0.5),
}


def measure(ratings: Ratings, male: NDArray[np.bool_], rival: Rival, seed: int = 0) -> dict[str, float]:
    """Everything of one rival."""
    held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
    train, test = ratings.part(~held_out), ratings.part(held_out)
    evidence = rival(Known(train, male), seed)
    asked = test.user.astype(np.int32), test.item.astype(np.int32), test.rating
    learnt = {one.metric: one.value for one in recommender_errors(evidence, asked, seed=seed, threads=2)}
    direct = shown_values(evidence, *asked[:2])
    attacked = run(
        evidence, known=KNOWN, targets=ATTACKED, attacks=["distance"], seed=seed, original_too=False, threads=2
    )
    right = {one.known: one.group.value for one in attacked.results if one.group and one.attack == "distance"}
    found = {
        "shown value, MAE": float(np.nanmean(np.abs(direct - test.rating))) if not np.isnan(direct).all() else np.nan,
        "covered": float((~np.isnan(direct)).mean()),
        "learnt from it, MAE": learnt["svd_mae"],
        "right row, 4 known": right[KNOWN[0]],
        "right row, 8 known": right[KNOWN[1]],
        "membership": membership(ratings, male, rival, seed),
        "gender, AUC": gender(evidence, male, seed),
        "gender, taught on ratings": gender(evidence, male, seed, on_ratings=True),
    }
    if rival is pure:
        found["learnt from it, MAE"] = item_based_error(evidence, train, test)
    return found


def membership(ratings: Ratings, male: NDArray[np.bool_], rival: Rival, seed: int) -> float:
    """The largest advantage of an attacker who tells users who were anonymized from others."""
    inside = np.random.default_rng(seed).random(ratings.n_users) < 0.5
    places = np.cumsum(inside) - 1
    of = inside[ratings.user]
    members = Ratings(
        places[ratings.user[of]], ratings.item[of], ratings.rating[of], int(inside.sum()), ratings.n_items
    )
    evidence = rival(Known(members, male[inside]), seed)
    outside = np.cumsum(~inside) - 1
    others = Ratings(
        outside[ratings.user[~of]], ratings.item[~of], ratings.rating[~of], int((~inside).sum()), ratings.n_items
    )
    found = compare(
        evidence.shown, evidence.original, others.matrix(), width=evidence.scale.width, seed=seed, threads=2
    )
    return max(advantage.value for advantage in found.values())


def gender(evidence: Evidence, male: NDArray[np.bool_], seed: int, *, on_ratings: bool = False) -> float:
    """The AUC of a classifier of what is shown of users, taught on half of them: on what is shown, or on ratings."""
    columns = evidence.shown.columns(np.arange(evidence.original.n_items))[0]
    shown = np.nan_to_num(columns[:, evidence.truth].T.astype(np.float64))
    taught = shown
    if on_ratings:
        original = ShownCells.from_ratings(evidence.original).columns(np.arange(evidence.original.n_items))[0]
        taught = np.nan_to_num(original.T.astype(np.float64))
    known = np.random.default_rng(seed).random(len(male)) < 0.5
    model = LogisticRegression(C=0.01, max_iter=200).fit(taught[known], male[known])
    return float(roc_auc_score(male[~known], model.decision_function(shown[~known])))


def men(data: str) -> NDArray[np.bool_]:
    """Who of the users is a man, in the order of the ids."""
    name, delimiter, column = USERS[data]
    file = data_folder() / name
    if not file.exists():
        sys.exit(f"No {name} under {data_folder()}. Set KGATHER_DATA.")
    rows = [line.split(delimiter) for line in file.read_text(encoding="latin-1").splitlines()]
    of = {int(row[0]): row[column] == "M" for row in rows}
    return np.array([of[user] for user in sorted(of)])


def _told(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def main() -> None:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for data in sys.argv[1:] or list(USERS):
        ratings, male = Ratings.read(data), men(data)
        found[data] = {}
        for name, rival in RIVALS.items():
            of = found[data][name] = measure(ratings, male, rival)
            print(data, name, {measure: round(value, 3) for measure, value in of.items()}, flush=True)
    RESULTS.mkdir(exist_ok=True)
    said = {"benchmark": "anchors", "machine": machine(), "found": found}
    (RESULTS / "anchors.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    lines = [f"# anchors\n\nk = {K}, one split. {', '.join(map(str, machine().values()))}."]
    for data, rivals in found.items():
        names = list(next(iter(rivals.values())))
        lines += [f"\n## {data}\n", f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
        lines += [f"| {rival} | {' | '.join(map(_told, one.values()))} |" for rival, one in rivals.items()]
    (RESULTS / "anchors.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
