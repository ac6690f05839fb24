"""How preferences are learned: what each way costs and gives away.

    make bench-preferences

Plain Funk SVD as in Chen's thesis (no levels), ALS with levels for the best fit, ALS as the release has it (the
default), and a truncated SVD of the ratings with zeros where there are none. Each on ml-100k, ml-1m and jester (4,000
users), four fifths of the ratings, k = 10, three seeds (ml-1m: one), groups by BKG (refined as by default) in what each
compares users in: the factors alone, or predicted ratings.

- trained: MAE on the held-out fifth of an SVD that is trained on the rows that the release shows, each counted for its
  group.
- direct: MAE of the released value itself.
- ARMSE: root mean square distance of users from their group's mean, in the unit of the ratings (predicted ratings) or
  of the factors; it compares within one way only.
- right group: an attacker who knows 4 or 8 exact ratings takes the nearest group.

Needs real data under $KGATHER_DATA. Writes benchmarks/results/preferences.md.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from harness import RESULTS, machine
from release import ATTACKED, KNOWN, Fitted, K, Ratings, not_anonymized

from kgather._attacks import run
from kgather._evaluation.candidates import ShownVectors
from kgather._evaluation.evidence import Evidence, Scale
from kgather.udfs.gathering import bkg
from kgather.udfs.measuring.quality import armse
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.refining.refine import refine

SEEDS = {"ml-100k": (0, 1, 2), "ml-1m": (0,), "jester": (0, 1, 2)}


def funk(train: Ratings, seed: int) -> Preferences:
    """The thesis: one factor at a time, no levels."""
    return learn(train.matrix(), solver="funk", rank=10, seed=seed, scale=train.scale)


def als_for_fit(train: Ratings, seed: int) -> Preferences:
    """Levels and 10 factors, as little regularized as predicts best."""
    return learn(train.matrix(), rank=10, seed=seed, scale=train.scale, threads=2, **FOR_FIT)


def als_for_release(train: Ratings, seed: int) -> Preferences:
    """The default."""
    return learn(train.matrix(), seed=seed, scale=train.scale, threads=2)


def zeros(train: Ratings, seed: int) -> Preferences:
    """Truncated SVD (randomized, as of Halko, Martinsson and Tropp) of users x items, 0 where there is no rating."""
    table = np.zeros((train.n_users, train.n_items), dtype=np.float32)
    table[train.user, train.item] = train.rating
    sketch = np.random.default_rng(seed).standard_normal((train.n_items, 20)).astype(np.float32)
    for _ in range(4):
        basis, _ = np.linalg.qr(table @ sketch)
        sketch = table.T @ basis
    left, values, right = np.linalg.svd(sketch.T, full_matrices=False)
    users = (basis @ left)[:, :10] * values[:10]
    nothing = np.zeros(train.n_users, dtype=np.float32), np.zeros(train.n_items, dtype=np.float32)
    return Preferences(nothing[0], users.astype(np.float32), nothing[1], np.ascontiguousarray(right[:10].T))


WAYS: dict[str, tuple[Callable[[Ratings, int], Preferences], str]] = {
    "plain Funk, factors": (funk, "preference"),
    "plain Funk, predictions": (funk, "prediction"),
    "ALS for fit, factors": (als_for_fit, "preference"),
    "ALS for fit, predictions": (als_for_fit, "prediction"),
    "ALS for release, predictions (default)": (als_for_release, "prediction"),
    "SVD of zeros, factors": (zeros, "preference"),
    "SVD of zeros to compare, ALS for release to show": (zeros, "preference"),
}


@dataclass(frozen=True)
class Measured:
    trained: float
    direct: float
    armse: float
    right_group: tuple[float, ...]
    groups: int


def measure(train: Ratings, test: Ratings, scale: tuple[float, float], way: str, seed: int) -> Measured:
    """One way on one split."""
    solve, metric = WAYS[way]
    model = solve(train, seed)
    vectors = comparison_vectors(model, metric)
    groups = bkg.gather(vectors, K, tries=10, seed=seed)
    groups = refine(vectors, groups, np.full(len(groups), K, dtype=np.int32), passes=20, threads=2)
    shown_by = als_for_release(train, seed) if way.endswith("to show") else model
    table = Fitted(shown_by, groups).values(scale, groups)
    seen = np.bincount(train.item, minlength=train.n_items)[test.item] > 0
    direct = np.abs(table[groups[test.user], test.item] - test.rating)[seen].mean()
    return Measured(
        trained=_trained(table, groups, test, seen, scale, seed),
        direct=float(direct),
        armse=armse(vectors, groups),
        right_group=right_group(shown_by, groups, train, scale, seed),
        groups=len(table),
    )


def _trained(
    table: np.ndarray,
    groups: np.ndarray,
    test: Ratings,
    seen: np.ndarray,
    scale: tuple[float, float],
    seed: int,
) -> float:
    """MAE of an SVD that is trained on the rows shown; each stands for its members, as in evaluation/recommenders."""
    rows, items = np.indices(table.shape).reshape(2, -1)
    shown = Ratings(rows, items, table.reshape(-1), *table.shape)
    each = len(groups) / len(table)
    pull = {name: FOR_FIT[name] / each for name in ("level_regularization", "item_level_regularization")}
    model = learn(shown.matrix(), rank=10, seed=seed, threads=2, scale=scale, **(dict(FOR_FIT) | pull))
    asked = groups[test.user]
    product = np.einsum("ij,ij->i", model.user_factors[asked], model.item_factors[test.item])
    guess = np.clip(model.user_level[asked] + model.item_level[test.item] + product, *scale)
    return float(np.abs(guess - test.rating)[seen].mean())


def right_group(
    model: Preferences, groups: np.ndarray, train: Ratings, scale: tuple[float, float], seed: int
) -> tuple[float, ...]:
    shown = vectors_of(model, groups, np.bincount(train.item, minlength=train.n_items), scale)
    shown_items = ~np.isnan(shown.item_levels)
    evidence = Evidence(
        original=train.matrix(), shown=shown, truth=groups, groups=groups, shown_items=shown_items,
        items=pa.array(np.arange(train.n_items)), scale=Scale(*scale, None), parameters={},
        group_ids=np.arange(len(shown.sizes)),
    )  # fmt: skip
    attacked = run(
        evidence, known=KNOWN, targets=ATTACKED, attacks=["distance"], seed=seed, original_too=False, threads=2
    )
    return tuple(result.group.value for result in attacked.results if result.group)


def vectors_of(model: Preferences, groups: np.ndarray, raters: np.ndarray, scale: tuple[float, float]) -> ShownVectors:
    """The low-rank release of a model and groups; raters int[m]: items without any are not in it."""
    sizes = np.bincount(groups)
    level = np.bincount(groups, model.user_level) / sizes
    factors = np.stack([np.bincount(groups, one) / sizes for one in model.user_factors.T], axis=1)
    item_level = np.where(raters > 0, model.item_level, np.nan)
    return ShownVectors(
        sizes.astype(np.int64), level.astype(np.float32), factors.astype(np.float32),
        item_level.astype(np.float32), model.item_factors, scale,
    )  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", default=",".join(SEEDS))
    arguments.add_argument("--seeds", type=int, default=3, help="splits at most")
    given = arguments.parse_args()
    lines = ["# preferences", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    lines += ["| data | preferences, compared in | trained | direct | ARMSE | right group, 4 | 8 | groups |"]
    lines += ["| --- " * 8 + "|"]
    for name in given.data.split(","):
        ratings, seeds = Ratings.read(name), SEEDS[name][: given.seeds]
        found: dict[str, list[Measured]] = {way: [] for way in WAYS}
        original = []
        for seed in seeds:
            held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
            train, test = ratings.part(~held_out), ratings.part(held_out)
            original.append(not_anonymized(train, test, ratings.scale, seed))
            for way in WAYS:
                found[way].append(measure(train, test, ratings.scale, way, seed))
                print(name, way, found[way][-1], flush=True)
        lines.append(f"| {name} | not anonymized | {np.mean(original):.4f} | | | | | |")
        for way, runs in found.items():
            means = [np.mean([getattr(one, field) for one in runs]) for field in ("trained", "direct", "armse")]
            rates = [np.mean([one.right_group[place] for one in runs]) for place in range(len(KNOWN))]
            count = np.mean([one.groups for one in runs])
            lines.append(
                f"| {name} | {way} | {means[0]:.4f} | {means[1]:.4f} | {means[2]:.3g} "
                f"| {rates[0]:.3f} | {rates[1]:.3f} | {count:.0f} |"
            )
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "preferences.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
