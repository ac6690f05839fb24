"""kgather's default beside newer ways to make ratings anonymous, on one split of ml-100k.

    make bench-anchors

Four fifths of the ratings are anonymized, k = 10, and the rest is predicted: by a low-rank model that learns from what
is shown, and, where users' groups show values, by those. "Right row": an attacker who knows 4 or 8 ratings takes the
row (of a group, or of a user) whose values are nearest. Membership: half of the users are anonymized, all ratings of a
person are known. Gender: a classifier is taught on half of the users by what is shown of them, and asked about the
other half; AUC, 0.5 is guessing. In the second column it was taught on ratings as they were, which is the attacker that
PerBlur is meant against; who knows the method is taught on what is shown. Needs u.data and u.user under $KGATHER_DATA,
and scikit-learn. Writes benchmarks/results/anchors.{md,json}.

Of the papers only abstracts or code were at hand, so a reading had to be chosen:

- (p, l, alpha)-diversity (Wei, Tian and Shen 2018; abstract): a latent factor model fills the matrix; users are parted
  in three by how many items they rated ("importance"), each part is gathered by MDAV on the factors, and groups are
  merged until each has members of l = 3 of alpha = 8 clusters of k-means. Groups show the mean filled row.
- CCWS (Zheng and others 2023; abstract and summaries): cohorts are split by the next consistent weighted sample of
  their members' ratings, as long as each part has k members; parts that are too small stay together, and are a cohort
  if they are k. Groups show what kgather's default shows of groups, so that gathering alone is compared.
- k-anonymized ratings with item-based prediction (Sakuma and Osame 2018; abstract): groups of Bisecting K-Gather show
  the mean of those who rated; a user's rating is predicted from the user's own by the cosine of items' columns. It is
  a way to predict, so that only its error is another than that of the release it learns from.
- PerBlur (Slokom and others 2021; its code): to each user a tenth of the profile is added, of items that the other
  gender rates and that are predicted highest for the user, with the items' mean ratings; as many of the items that the
  own gender rates most are taken away where the user has many. Users keep rows of their own.
- UPC-SDG (Liu and others 2022; abstract): of each user as many items as the user wishes, half here, those that fit the
  user's preferences least, are each replaced by the unrated item whose vector is nearest, with its predicted rating.
  The paper trains both steps; here they are taken from factors. Users keep rows of their own.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

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
EXTRA, MANY = 0.1, 50  # of PerBlur: added share of a profile; ratings from which on as many are taken away
WISH = 0.5  # of UPC-SDG


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


def blurred(known: Known, seed: int) -> Evidence:
    """PerBlur."""
    ratings, predicted = known.ratings, table(factors(known.ratings, seed), known.ratings)
    raters = [np.bincount(ratings.item[known.male[ratings.user] == male], minlength=ratings.n_items) for male in (0, 1)]
    shares = [count / max((known.male == male).sum(), 1) for male, count in enumerate(raters)]
    typical = np.log((shares[1] + 1e-3) / (shares[0] + 1e-3))  # above 0: of men
    means = np.bincount(ratings.item, ratings.rating, ratings.n_items) / np.maximum(raters[0] + raters[1], 1)
    user, item, rating = [ratings.user], [ratings.item], [ratings.rating]
    kept = np.ones(len(ratings.rating), dtype=bool)
    for one in range(ratings.n_users):
        own = np.flatnonzero(ratings.user == one)
        if len(own) == 0:
            continue
        count = max(1, round(EXTRA * len(own)))
        lean = typical if known.male[one] else -typical
        of_others = (lean < 0) & (raters[0] + raters[1] > 0)
        of_others[ratings.item[own]] = False
        added = np.argsort(np.where(of_others, -predicted[one], np.inf), kind="stable")[:count]
        user.append(np.full(len(added), one))
        item.append(added)
        rating.append(np.round(means[added]))
        if len(own) >= MANY:
            kept[own[np.argsort(-lean[ratings.item[own]], kind="stable")[:count]]] = False
    of = [np.concatenate([column[0][kept], *column[1:]]) for column in (user, item, rating)]
    return rows_of_users(ratings, Ratings(*of, ratings.n_users, ratings.n_items))


def synthetic(known: Known, seed: int) -> Evidence:
    """UPC-SDG."""
    ratings, model = known.ratings, factors(known.ratings, seed)
    predicted = table(model, ratings)
    vectors = np.concatenate([model.item_level[:, None], model.item_factors], axis=1)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    likeness = vectors @ vectors.T
    seen = np.bincount(ratings.item, minlength=ratings.n_items) > 0
    item, rating = ratings.item.copy(), ratings.rating.copy()
    for one in range(ratings.n_users):
        own = np.flatnonzero(ratings.user == one)
        fits = model.user_factors[one] @ model.item_factors[ratings.item[own]].T
        free = seen.copy()
        free[ratings.item[own]] = False
        for entry in own[np.argsort(fits, kind="stable")[: int(WISH * len(own))]]:
            if not free.any():
                break
            found = int(np.where(free, likeness[ratings.item[entry]], -np.inf).argmax())
            free[found] = False
            item[entry], rating[entry] = found, np.round(predicted[one, found])
    return rows_of_users(ratings, Ratings(ratings.user, item, rating, ratings.n_users, ratings.n_items))


RIVALS: dict[str, Rival] = {
    "not anonymized": nothing,
    "kgather, default": default,
    "(p, l, alpha)-diversity": diverse,
    "CCWS cohorts": cohorts,
    "k-anonymized, item-based": pure,
    "PerBlur": blurred,
    "UPC-SDG": synthetic,
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


def men(n_users: int) -> NDArray[np.bool_]:
    """Who of ml-100k is a man, in the order of the ids."""
    file = data_folder() / "ml-100k" / "u.user"
    if not file.exists():
        sys.exit(f"No ml-100k/u.user under {data_folder()}. Set KGATHER_DATA.")
    rows = [line.split("|") for line in file.read_text(encoding="latin-1").splitlines()]
    of = {int(row[0]): row[2] == "M" for row in rows}
    return np.array([of[user] for user in sorted(of)])[:n_users]


def _told(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def main() -> None:
    ratings = Ratings.read("ml-100k")
    male = men(ratings.n_users)
    found: dict[str, dict[str, float]] = {}
    for name, rival in RIVALS.items():
        found[name] = measure(ratings, male, rival)
        print(name, {measure: round(value, 3) for measure, value in found[name].items()}, flush=True)
    RESULTS.mkdir(exist_ok=True)
    said = {"benchmark": "anchors", "machine": machine(), "found": found}
    (RESULTS / "anchors.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    names = list(next(iter(found.values())))
    lines = [
        f"# anchors\n\nml-100k, k = {K}, one split. {', '.join(map(str, machine().values()))}.\n",
        f"| | {' | '.join(names)} |",
    ]
    lines.append(f"| --- |{' --- |' * len(names)}")
    lines += [f"| {rival} | {' | '.join(map(_told, one.values()))} |" for rival, one in found.items()]
    (RESULTS / "anchors.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
