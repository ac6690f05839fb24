"""What the default release costs and gives away, beside those of the papers, in one run.

    make bench-release

Four fifths of the ratings are published (80/20, three seeds), k = 10. The released value of (group of the user, item)
is the prediction of the held-out fifth: its mean absolute error. "Right group": an attacker who knows 4 or 8 ratings
takes the group whose values are nearest (distance), or the likeliest one (posterior).

Membership: half of the users are published, half left out; all ratings of a person are known. Leave-one-out: what of
ml-100k changes when one rating, or one user, is left out, with the same groups and with everything redone. Needs real
data under $KGATHER_DATA. Releases are made by the pipeline's kernels alone; --pipeline makes them by whole publications
(the same values, many minutes). Writes benchmarks/results/release.{md,json}.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from harness import RESULTS, machine

from kgather._attacks import run
from kgather._attacks.membership import compare
from kgather._evaluation.candidates import Candidates, ShownCells
from kgather._evaluation.evidence import Evidence, Scale, read_evidence
from kgather._evaluation.in_memory import make
from kgather._loaders import LoadOptions, load
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings
from kgather.udfs.gathering import bkg
from kgather.udfs.preferences.item_side import learn_apart
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.ratings.matrix import RatingMatrix
from kgather.udfs.refining.refine import refine

K = 10
SEEDS = (0, 1, 2)
KNOWN = (4, 8)
ATTACKED = 10_000  # all users of these data, some of them several times
ATTACKS = ("distance", "posterior")
FARTHEST = ("farthest_tenth", "farthest_3_percent", "farthest_3_percent_user")
DATA = {
    "ml-100k": "ml-100k/u.data",
    "ml-1m": "ml-1m/ratings.csv",
    "ml-latest-small": "ml-latest-small/ratings.csv",
    "jester": "jester/jester1_ratings.csv.gz",
    "filmtrust": "filmtrust/ratings.txt",
}
FIELDS = {"filmtrust": ("user", "item", "rating")}  # its first line names nothing
JESTER_USERS = 4000
# The papers compare users by their factors alone; their model is fitted as well as can be.
_PAPERS = {
    "metric": "preference", "rank": 10, "solver_options": dict(FOR_FIT), "refine": False,
    "min_raters": 1, "item_noise": 0.0, "outliers": 1.0,
}  # fmt: skip
RELEASES: dict[str, dict] = {
    "pure (papers)": {"homogenize": "pure", "single_rater": "keep", **_PAPERS},
    "padded (papers)": {"homogenize": "padded", **_PAPERS},
    "predicted (default)": {},
}
# MAE, right group by distance with 4 and with 8 known ratings: at most.
GOALS = {
    "ml-100k": (0.743, 0.05, 0.07),
    "ml-1m": (0.693, 0.012, 0.018),
    "ml-latest-small": (0.690, 0.05, 0.07),
    "jester": (3.30, 0.025, 0.045),
    "filmtrust": (0.624, 0.05, 0.07),
}


@dataclass(frozen=True)
class Ratings:
    """Ratings in codes: user, item int[c], rating float[c], with the numbers of users and items."""

    user: np.ndarray
    item: np.ndarray
    rating: np.ndarray
    n_users: int
    n_items: int

    @classmethod
    def read(cls, name: str) -> "Ratings":
        file = data_folder() / DATA[name]
        if not file.exists():
            sys.exit(f"No {DATA[name]} under {data_folder()}. Set KGATHER_DATA.")
        few = f"where user_id in (select distinct user_id from r order by 1 limit {JESTER_USERS})"
        with duckdb.connect() as con:
            load(con, [str(file)], LoadOptions(fields=FIELDS.get(name)))
            table = con.sql(
                "with r as (select user_id, item_id, avg(rating) as rating from loaded.ratings group by all) "
                f"select * from r {few if name == 'jester' else ''} order by all"
            ).fetchnumpy()
        users, user = np.unique(table["user_id"], return_inverse=True)
        items, item = np.unique(table["item_id"], return_inverse=True)
        return cls(user, item, table["rating"].astype(np.float64), len(users), len(items))

    def part(self, kept: np.ndarray) -> "Ratings":
        """Those ratings alone; codes stay."""
        return Ratings(self.user[kept], self.item[kept], self.rating[kept], self.n_users, self.n_items)

    def matrix(self) -> RatingMatrix:
        order = np.lexsort((self.item, self.user))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.user, minlength=self.n_users))]).astype(np.int64)
        values = self.rating[order].astype(np.float32)
        return RatingMatrix(self.n_users, self.n_items, indptr, self.item[order].astype(np.int32), values)

    @property
    def scale(self) -> tuple[float, float]:
        return float(self.rating.min()), float(self.rating.max())


def data_folder() -> Path:
    return Path(os.environ.get("KGATHER_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


PIPELINE = False  # --pipeline


def made(ratings: Ratings, choice: dict, seed: int) -> Evidence:
    """A release with the truth beside it."""
    if not PIPELINE:
        return evidence_by_kernels(ratings, choice, seed)
    with tempfile.TemporaryDirectory() as temporary:
        return evidence_by_pipeline(ratings, choice, Path(temporary), seed)


def evidence_by_pipeline(ratings: Ratings, choice: dict, folder: Path, seed: int) -> Evidence:
    """Publish ratings by the pipeline and look at the release with the secret map in hand."""
    file = folder / "train.csv"
    with duckdb.connect() as con:
        columns = {"user_id": ratings.user, "item_id": ratings.item, "rating": ratings.rating}
        con.register("given", columns)
        con.execute(f"copy (from given) to '{file}' (header)")
    settings = PublishSettings(**{"k": K, "seed": seed, "metrics": "none", **choice})
    published = publish([str(file)], folder / "release", settings, LoadOptions(), force=True, keep_work=folder / "work")
    with duckdb.connect() as con:
        con.execute(f"attach '{folder}/work/work.duckdb' as work (read_only)")
        con.execute(f"attach '{folder}/release/release.duckdb' as release (read_only)")
        return read_evidence(con, "work", "release", published.audit.parameters)


def evidence_by_kernels(ratings: Ratings, choice: dict, seed: int) -> Evidence:
    """The same release from the same kernels, without the pipeline around them."""
    scale, matrix = ratings.scale, ratings.matrix()
    if choice.get("homogenize", "predicted") == "predicted":
        settings = PublishSettings(**{"k": K, "seed": seed, **choice})
        secret = hashlib.sha256(f"benchmark {seed}".encode()).digest()
        found = make(matrix, settings, scale=scale, secret=secret, threads=2)
        return evidence_of(ratings, matrix, found.shown, found.groups, settings)
    model = learn(matrix, seed=seed, threads=2, scale=scale, rank=choice["rank"], **choice["solver_options"])
    vectors = comparison_vectors(model, choice.get("metric", "prediction"))
    groups = bkg.gather(vectors, K, tries=10, seed=seed)
    if choice.get("refine", True):
        groups = refine(vectors, groups, np.full(len(groups), K, dtype=np.int32), passes=20, threads=2)
    seen = np.bincount(ratings.item, minlength=ratings.n_items) > 0
    shown = _shown(ratings, model, groups, choice["homogenize"], seen)
    return evidence_of(ratings, matrix, shown, groups, None)


def evidence_of(
    ratings: Ratings, matrix: RatingMatrix, shown: Candidates, groups: np.ndarray, settings: PublishSettings | None
) -> Evidence:
    """What is shown beside the truth."""
    seen = np.bincount(ratings.item, minlength=ratings.n_items) > 0
    said = {} if settings is None else {**settings.model_dump(mode="json"), "homogenize": settings.form}
    return Evidence(
        original=matrix, shown=shown, truth=groups, groups=groups, shown_items=seen,
        items=pa.array(np.arange(ratings.n_items)), scale=Scale(*ratings.scale, None), parameters=said,
        group_ids=np.arange(len(shown.sizes)), user_ids=pa.array(np.arange(ratings.n_users)),
    )  # fmt: skip


def _shown(ratings: Ratings, model: Preferences, groups: np.ndarray, form: str, seen: np.ndarray) -> Candidates:
    sizes = np.bincount(groups).astype(np.int64)
    cell = groups[ratings.user].astype(np.int64) * ratings.n_items + ratings.item
    if form == "pure":
        cells, place = np.unique(cell, return_inverse=True)
        mean = np.bincount(place, ratings.rating) / np.bincount(place)
        return ShownCells.from_cells(sizes, ratings.n_items, *np.divmod(cells, ratings.n_items), mean, mean)
    level = np.bincount(groups, model.user_level) / sizes
    factors = np.stack([np.bincount(groups, one) / sizes for one in model.user_factors.T], axis=1)
    table = level[:, None] + model.item_level + factors @ model.item_factors.T
    surprise = ratings.rating - predicted(model, ratings, (-np.inf, np.inf))
    table += np.bincount(cell, surprise, table.size).reshape(table.shape) / sizes[:, None]
    rows, items = np.nonzero(np.broadcast_to(seen, table.shape))
    values = np.clip(table[rows, items], *ratings.scale)
    return ShownCells.from_cells(sizes, ratings.n_items, rows, items, values, values)


def predicted(model: Preferences, ratings: Ratings, scale: tuple[float, float]) -> np.ndarray:
    """What the model predicts of the pairs, clipped to the scale."""
    product = np.einsum("ij,ij->i", model.user_factors[ratings.user], model.item_factors[ratings.item])
    return np.clip(model.user_level[ratings.user] + model.item_level[ratings.item] + product, *scale)


def not_anonymized(train: Ratings, test: Ratings, scale: tuple[float, float], seed: int) -> float:
    """MAE of the SVD that fits best, on test ratings of items it has seen."""
    model = learn(train.matrix(), rank=10, seed=seed, threads=2, scale=scale, **FOR_FIT)
    seen = np.bincount(train.item, minlength=train.n_items)[test.item] > 0
    return float(np.abs(predicted(model, test, scale) - test.rating)[seen].mean())


def measure(ratings: Ratings, choice: dict, seed: int) -> dict[str, float]:
    """One release: MAE on held-out ratings that have a cell, their share, attack rates, chance."""
    held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
    train, test = ratings.part(~held_out), ratings.part(held_out)
    evidence = made(train, choice, seed)
    # The pipeline codes users and items by their ids, and knows those of the training part only.
    user_code, item_code = (
        {value: code for code, value in enumerate(ids.to_pylist())} for ids in (evidence.user_ids, evidence.items)
    )
    errors = []
    items = np.array([item_code.get(item, -1) for item in range(ratings.n_items)])
    rows = np.array([evidence.truth[user_code[user]] if user in user_code else -1 for user in range(ratings.n_users)])
    known = (items[test.item] >= 0) & (rows[test.user] >= 0)
    for start in range(0, len(evidence.items), 512):
        chunk = np.arange(start, min(start + 512, len(evidence.items)))
        shown, _ = evidence.shown.columns(chunk)
        here = known & (items[test.item] >= start) & (items[test.item] < start + len(chunk))
        values = shown[items[test.item[here]] - start, rows[test.user[here]]]
        errors.append(np.abs(values - test.rating[here]))
    gaps = np.concatenate(errors)
    attacked = run(
        evidence, known=KNOWN, targets=ATTACKED, attacks=list(ATTACKS), seed=seed, original_too=False, threads=2
    )
    rates = {
        f"{result.attack} {result.knowledge.split()[0]}": result.group.value
        for result in attacked.results
        if result.group and result.attack in ATTACKS
    }
    likeliest = [one for one in attacked.results if one.attack == "posterior" and one.known == 8]
    far = {name: likeliest[0].details.get(name, float("nan")) for name in FARTHEST}
    shown_share = float((~np.isnan(gaps)).sum() / len(test.rating))
    groups = len(evidence.group_ids)
    return {
        "mae": float(np.nanmean(gaps)),
        "covered": shown_share,
        **rates,
        **far,
        "chance": 1 / groups,
        "groups": groups,
    }


def membership(ratings: Ratings, choice: dict, seed: int) -> dict[str, float]:
    """Advantage of each attacker who tells the published half of the users from the other half."""
    inside = np.random.default_rng(seed).random(ratings.n_users) < 0.5
    members, others = ratings.part(inside[ratings.user]), ratings.part(~inside[ratings.user])
    evidence = made(members, choice, seed)
    code = np.full(ratings.n_items, -1)
    code[np.array(evidence.items.to_pylist())] = np.arange(len(evidence.items))
    known = code[others.item] >= 0
    owner = np.unique(others.user[known], return_inverse=True)[1]
    strangers = Ratings(
        owner, code[others.item[known]], others.rating[known], int(owner.max()) + 1, len(evidence.items)
    )
    found = compare(
        evidence.shown, evidence.original, strangers.matrix(), width=evidence.scale.width, seed=seed, threads=2
    )
    return {name: advantage.value for name, advantage in found.items()}


# Leave-one-out ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """A model and the groups of its users, int32[n]."""

    model: Preferences
    groups: np.ndarray

    def values(self, scale: tuple[float, float], groups: np.ndarray, left_out: int = -1) -> np.ndarray:
        """The released value of every group and item, float64[g, m]; `left_out`: a user who counts for no group."""
        weights = np.ones(len(groups))
        if left_out >= 0:
            weights[left_out] = 0
        sizes = np.bincount(groups, weights)
        level = np.bincount(groups, weights * self.model.user_level) / sizes
        factors = np.stack([np.bincount(groups, weights * one) / sizes for one in self.model.user_factors.T], axis=1)
        return np.clip(level[:, None] + self.model.item_level + factors @ self.model.item_factors.T, *scale)


def fit(ratings: Ratings, scale: tuple[float, float], *, gathered: bool = True) -> Fitted:
    """What the pipeline does, by its kernels."""
    model, _ = learn_apart(ratings.matrix(), min_raters=K, scale=scale, threads=2)
    groups = np.zeros(ratings.n_users, dtype=np.int32)
    if gathered:
        vectors = comparison_vectors(model)
        groups = bkg.gather(vectors, K, tries=10)
        groups = refine(vectors, groups, np.full(len(groups), K, dtype=np.int32), passes=20, threads=2)
    return Fitted(model, groups)


def raters_bin(raters: int) -> str:
    for low, high in ((1, 1), (2, 2), (3, 5), (6, 10), (11, 30)):
        if low <= raters <= high:
            return str(low) if low == high else f"{low} to {high}"
    return "more than 30"


def leave_one_rating_out(ratings: Ratings, sample: int, redone: int) -> Iterator[dict]:
    """Largest changes of released values by the number of raters of the rating's item, with the same groups; then what
    a user's values do when everything, the groups too, is made again.
    """
    scale = ratings.scale
    whole = fit(ratings, scale)
    table = whole.values(scale, whole.groups)
    raters = np.bincount(ratings.item, minlength=ratings.n_items)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(ratings.rating))[:sample]
    rare = rng.permutation(np.flatnonzero(raters[ratings.item] <= 10))[: sample // 2]
    own: dict[str, list[float]] = {}
    others: list[float] = []
    for entry in np.concatenate([chosen, rare]):
        kept = np.ones(len(ratings.rating), dtype=bool)
        kept[entry] = False
        again = fit(ratings.part(kept), scale, gathered=False)
        moved = np.abs(again.values(scale, whole.groups) - table)
        item = ratings.item[entry]
        own.setdefault(raters_bin(raters[item]), []).append(float(moved[:, item].max()))
        others.append(float(np.delete(moved, item, axis=1).max()))
    for name, moves in sorted(own.items(), key=lambda pair: int(pair[0].split()[-1]) + 100 * ("more" in pair[0])):
        yield _moves(f"one rating, its item, rated by {name}", moves)
    yield _moves("one rating, all other items", others)
    users = np.arange(ratings.n_users)
    medians, most = [], []
    for entry in chosen[:redone]:
        kept = np.ones(len(ratings.rating), dtype=bool)
        kept[entry] = False
        again = fit(ratings.part(kept), scale)
        moved = np.abs(again.values(scale, again.groups)[again.groups[users]] - table[whole.groups[users]])
        medians.append(float(np.median(moved)))
        most.append(float(moved.max()))
    yield _moves("one rating, everything redone: a user's values, the median of all", medians)
    yield _moves("one rating, everything redone: a user's values, the largest", most)


def leave_one_user_out(ratings: Ratings) -> tuple[dict, dict]:
    """The largest change of any released value when one user is left out, for all users, with the same groups."""
    scale = ratings.scale
    whole = fit(ratings, scale)
    table = whole.values(scale, whole.groups)
    moves, elsewhere = [], []
    for user in range(ratings.n_users):
        again = fit(ratings.part(ratings.user != user), scale, gathered=False)
        moved = np.abs(again.values(scale, whole.groups, user) - table)
        moves.append(float(moved.max()))
        elsewhere.append(float(np.delete(moved, whole.groups[user], axis=0).max()))
    return _moves("one user, own group too", moves), _moves("one user, all other groups", elsewhere)


def _moves(what: str, moves: list[float]) -> dict:
    found = np.array(moves)
    return {
        "what": what, "times": len(found), "median": float(np.median(found)),
        "99 of 100": float(np.quantile(found, 0.99)), "largest": float(found.max()),
    }  # fmt: skip


# Report -------------------------------------------------------------------------------------------------------------


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--parts", default="releases,membership,leave-one-out")
    arguments.add_argument("--data", default=",".join(DATA))
    arguments.add_argument("--seeds", type=int, default=len(SEEDS))
    arguments.add_argument("--sample", type=int, default=1000)
    arguments.add_argument("--pipeline", action="store_true", help="whole publications instead of their kernels")
    given = arguments.parse_args()
    global PIPELINE
    PIPELINE = given.pipeline
    parts, seeds = given.parts.split(","), SEEDS[: given.seeds]
    said: dict = {"machine": machine()}
    if "releases" in parts:
        for name in given.data.split(","):
            ratings = Ratings.read(name)
            said.setdefault("releases", {})[name] = releases_of(ratings, seeds)
            write(said)
    if "membership" in parts:
        for name in ("ml-100k", "ml-1m"):
            ratings = Ratings.read(name)
            for label, choice in RELEASES.items():
                runs = [membership(ratings, choice, seed) for seed in seeds]
                found = {attacker: float(np.mean([one[attacker] for one in runs])) for attacker in runs[0]}
                said.setdefault("membership", {}).setdefault(name, {})[label] = found
                print(name, label, found, flush=True)
                write(said)
    if "leave-one-out" in parts:
        ratings = Ratings.read("ml-100k")
        said["leave_one_out"] = [
            *leave_one_rating_out(ratings, given.sample, given.sample // 10),
            *leave_one_user_out(ratings),
        ]
        write(said)


def releases_of(ratings: Ratings, seeds: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Mean over the seeds of what is measured of each release, and of the SVD that is not anonymized."""
    svd = []
    for seed in seeds:
        held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
        svd.append(not_anonymized(ratings.part(~held_out), ratings.part(held_out), ratings.scale, seed))
    found = {"not anonymized": {"mae": float(np.mean(svd))}}
    for label, choice in RELEASES.items():
        runs = [measure(ratings, choice, seed) for seed in seeds]
        found[label] = {name: float(np.mean([one[name] for one in runs])) for name in runs[0]}
        print(label, found[label], flush=True)
    return found


def write(said: dict) -> None:
    """Write what is known so far, as JSON and as a page. What is not measured now stays as it was measured."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "release.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for part in ("releases", "membership"):
        if part in before:
            said[part] = before[part] | said.get(part, {})
    said = before | said
    file.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    lines = ["# release", "", *(f"- {name}: {value}" for name, value in said["machine"].items()), ""]
    if "releases" in said:
        rates = [f"{attack} {known}" for attack in ATTACKS for known in KNOWN]
        more = [*rates, *FARTHEST]
        lines += [f"| data, k = {K} | release | MAE | covered | " + " | ".join(more) + " | chance | groups |"]
        lines += ["| --- " * (6 + len(more)) + "|"]
        for name, found in said["releases"].items():
            for label, one in found.items():
                cells = [f"{one[key]:.3f}" if key in one else "" for key in ("covered", *more, "chance")]
                groups = f"{one['groups']:.0f}" if "groups" in one else ""
                lines.append(f"| {name} | {label} | {one['mae']:.4f} | " + " | ".join(cells) + f" | {groups} |")
        lines += ["", "| data | goal: MAE, distance 4, distance 8 | default | reached |", "| --- " * 4 + "|"]
        for name, found in said["releases"].items():
            one = found["predicted (default)"]
            measured = (one["mae"], one["distance 4"], one["distance 8"])
            reached = ["yes" if value <= goal else "**no**" for value, goal in zip(measured, GOALS[name], strict=True)]
            goals = ", ".join(f"{goal:g}" for goal in GOALS[name])
            values = ", ".join(f"{value:.4f}" for value in measured)
            lines.append(f"| {name} | {goals} | {values} | {', '.join(reached)} |")
        lines.append("")
    if "membership" in said:
        attackers = list(next(iter(next(iter(said["membership"].values())).values())))
        lines += ["| membership advantage | release | " + " | ".join(attackers) + " |"]
        lines += ["| --- " * (2 + len(attackers)) + "|"]
        for name, found in said["membership"].items():
            for label, one in found.items():
                lines.append(f"| {name} | {label} | " + " | ".join(f"{one[each]:.3f}" for each in attackers) + " |")
        lines.append("")
    if "leave_one_out" in said:
        columns = ("times", "median", "99 of 100", "largest")
        lines += ["| left out of ml-100k: largest change of a value | " + " | ".join(columns) + " |"]
        lines += ["| --- " * (1 + len(columns)) + "|"]
        for one in said["leave_one_out"]:
            numbers = " | ".join(f"{one[column]:.3f}" for column in columns[1:])
            lines.append(f"| {one['what']} | {one['times']} | {numbers} |")
    (RESULTS / "release.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
