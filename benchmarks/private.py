"""What a differentially private item side costs, by epsilon.

    make bench-private

Four fifths of the ratings are learnt from (80/20, three splits), k = 10; users are folded into the private items,
gathered and refined as in a publication. The mean absolute error of the held-out fifth is that of the group's mean
user; "own": of the user's own vector, which is never released. Simulated: 100,000 users after a model of ml-1m,
gathered and not refined. Needs real data under $KGATHER_DATA. Writes benchmarks/results/private.md.
"""

import argparse
import time

import numpy as np
from harness import RESULTS, machine
from release import Ratings, data_folder, predicted

from kgather.udfs.gathering import bkg
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.preferences.private_items import learn_private
from kgather.udfs.refining.refine import refine

K = 10
SPLITS = (101, 102, 103)
EPSILONS = (500.0, 10.0, 4.0, 2.0, 1.0)
DATA = ("ml-100k", "filmtrust", "ml-1m", "ml-latest-small", "jester", "simulated")
SIMULATED = 100_000
NOISES = 3  # seeds of noise for each split of data that are learnt in no time
# MAE of groups at epsilon, at most.
GOALS = {
    "ml-100k": {10.0: 0.781, 4.0: 0.800, 2.0: 0.815, 1.0: 0.828},
    "filmtrust": {10.0: 0.630, 4.0: 0.631, 2.0: 0.633, 1.0: 0.637},
    "ml-1m": {10.0: 0.737, 4.0: 0.749, 2.0: 0.763, 1.0: 0.782},
    "simulated": {4.0: 0.725},
}


def read(name: str) -> Ratings:
    if name == "simulated":
        return simulated(Ratings.read("ml-1m"), SIMULATED)
    if name != "filmtrust":
        return Ratings.read(name)
    text = (data_folder() / "filmtrust" / "ratings.txt").read_text(encoding="utf-8")
    rows = np.array(text.replace(",", " ").split(), dtype=np.float64).reshape(-1, 3)
    users, user = np.unique(rows[:, 0], return_inverse=True)
    items, item = np.unique(rows[:, 1], return_inverse=True)
    pair, place = np.unique(user * len(items) + item, return_inverse=True)
    mean = np.bincount(place, rows[:, 2]) / np.bincount(place)
    return Ratings(*np.divmod(pair, len(items)), mean, len(users), len(items))


def simulated(like: Ratings, users: int, most: int = 80) -> Ratings:
    """Users made of a vector of one user, a little off, and the rated items (at most `most`) of another."""
    matrix = like.matrix()
    model = learn(matrix, threads=2, scale=like.scale, rank=10, **FOR_FIT)
    taste = 1.25 * model.user_factors.astype(np.float64)  # learning has shrunk them
    rng = np.random.default_rng(0)
    whose, rater = rng.integers(0, like.n_users, users), rng.integers(0, like.n_users, users)
    level = model.user_level[whose] + 0.1 * rng.normal(size=users)
    factors = taste[whose] + 0.3 * taste.std(axis=0) * rng.normal(size=(users, 10))
    item = [matrix.items[matrix.indptr[one] : matrix.indptr[one + 1]] for one in rater]
    item = [one if len(one) <= most else np.sort(rng.choice(one, most, replace=False)) for one in item]
    user = np.repeat(np.arange(users), [len(one) for one in item])
    made = Ratings(user, np.concatenate(item), np.zeros(len(user)), users, like.n_items)
    vectors = Preferences(level, factors, model.item_level, model.item_factors)
    rating = np.rint(predicted(vectors, made, (-np.inf, np.inf)) + 0.86 * rng.normal(size=len(user)))
    return Ratings(made.user, made.item, np.clip(rating, *like.scale), users, like.n_items)


def errors(model: Preferences, test: Ratings, scale: tuple[float, float], whole: bool) -> tuple[float, float]:
    """MAE of groups' and of users' own vectors. whole: gather and refine as a publication does."""
    vectors = comparison_vectors(model)
    groups = bkg.gather(vectors, K, tries=10 if whole else 3)
    if whole:
        groups = refine(vectors, groups, np.full(len(groups), K, dtype=np.int32), passes=20, threads=2)
    sizes = np.bincount(groups)
    level = np.bincount(groups, model.user_level) / sizes
    factors = np.stack([np.bincount(groups, one) / sizes for one in model.user_factors.T], axis=1)
    grouped = Preferences(level[groups], factors[groups], model.item_level, model.item_factors)
    group, own = (float(np.abs(predicted(one, test, scale) - test.rating).mean()) for one in (grouped, model))
    return group, own


def measure(name: str, epsilons: tuple[float, ...], splits: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Means over splits and noise: what the usual model and the private ones do."""
    ratings = read(name)
    whole = name != "simulated"
    delta = 1e-5 if whole else 1e-6
    found: dict[str, list[dict[str, float]]] = {}
    for seed in splits if whole else splits[:1]:
        held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
        train, test = ratings.part(~held_out), ratings.part(held_out)
        seen = np.bincount(train.item, minlength=train.n_items) > 0
        test, matrix = test.part(seen[test.item]), train.matrix()
        start = time.perf_counter()
        model = learn(matrix, threads=2, scale=ratings.scale)
        seconds = time.perf_counter() - start
        group, own = errors(model, test, ratings.scale, whole)
        found.setdefault("predicted", []).append({"group": group, "own": own, "seconds": seconds})
        for epsilon in epsilons:
            for noise in range(NOISES if matrix.nnz < 200_000 else 1):
                start = time.perf_counter()
                private = learn_private(
                    matrix, scale=ratings.scale, epsilon=epsilon, delta=delta, noise_seed=1000 * noise + seed, threads=2
                )
                seconds = time.perf_counter() - start
                group, own = errors(private.preferences, test, ratings.scale, whole)
                one = {"group": group, "own": own, "seconds": seconds, "rho": private.rho, "delta": delta}
                found.setdefault(f"{epsilon:g}", []).append(one | {"charges": len(private.charges)})
    means = {
        label: {key: float(np.mean([one[key] for one in runs])) for key in runs[0]} for label, runs in found.items()
    }
    for label, one in means.items():
        goal = GOALS.get(name, {}).get(float(label)) if label != "predicted" else None
        if goal is not None:
            one["goal"] = goal
        print(name, label, {key: round(value, 4) for key, value in one.items()}, flush=True)
    return means


def write(said: dict[str, dict[str, dict[str, float]]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    lines = ["# private", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    columns = ("delta", "rho", "measurements", "MAE of groups", "own", "seconds", "goal", "reached")
    lines += ["| data, k = 10 | epsilon | " + " | ".join(columns) + " |", "| --- " * (2 + len(columns)) + "|"]
    for name, found in said.items():
        for label, one in found.items():
            spent = ["", "", ""]
            if "rho" in one:
                spent = [f"{one['delta']:g}", f"{one['rho']:.3g}", f"{one['charges']:g}"]
            reached = ("yes" if one["group"] <= one["goal"] else "**no**") if "goal" in one else ""
            goal = f"{one['goal']:.3f}" if "goal" in one else ""
            measured = [f"{one['group']:.4f}", f"{one['own']:.4f}", f"{one['seconds']:.2f}", goal, reached]
            lines.append(f"| {name} | {label} | " + " | ".join([*spent, *measured]) + " |")
    lines += ["", "Epsilon 500 is next to no noise: what the estimator does. predicted: the usual model, not private."]
    (RESULTS / "private.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", default=",".join(DATA))
    arguments.add_argument("--splits", type=int, default=len(SPLITS))
    given = arguments.parse_args()
    said: dict[str, dict[str, dict[str, float]]] = {}
    for name in given.data.split(","):
        said[name] = measure(name, EPSILONS, SPLITS[: given.splits])
        write(said)


if __name__ == "__main__":
    main()
