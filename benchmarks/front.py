"""The front of loss against what attackers get: which model to release.

    make bench-front

For each choice of the model: direct MAE of the released value (80/20), how often an attacker who knows 4 or 8 exact
ratings finds the right group, and the advantage of attackers who tell the users in the data from as many left out (half
of the users each): by the distance to the nearest profile, and the best of those who have the release and the person's
ratings. One thing is changed at a time from the default; then the size of everything. k = 10, kernels as in the
pipeline. Needs real data under $KGATHER_DATA. Writes benchmarks/results/front.md; a choice on the front is one that no
other of the same data set beats in MAE, right group (8 known) and the nearest profile's advantage at once.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from harness import RESULTS, machine
from preferences import right_group, vectors_of
from release import Fitted, K, Ratings

from kgather._attacks.membership import compare
from kgather.udfs.gathering import bkg
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.options import FOR_FIT
from kgather.udfs.refining.refine import refine

ALONE = ("nearest", "explained", "correlation", "likelihood", "folded")
CHOICES: dict[str, dict] = {
    "default": {},
    "best fit": {"rank": 10, **FOR_FIT},
    **{f"rank {rank}": {"rank": rank} for rank in (2, 10)},
    **{f"regularization {strength:g}": {"regularization": strength} for strength in (7.0, 28.0)},
    **{f"level_regularization {strength:g}": {"level_regularization": strength} for strength in (2.0, 30.0)},
    **{f"item_level_regularization {strength:g}": {"item_level_regularization": strength} for strength in (10.0, 30.0)},
    "influence 0": {"influence": 0.0},
    **{f"rare_regularization {strength:g}": {"rare_regularization": strength} for strength in (0.0, 200.0)},
    "count_power 0.5, regularization 2": {"count_power": 0.5, "regularization": 2.0},
    "rank 2, regularization 28": {"rank": 2, "regularization": 28.0},
}
SEEDS = {"ml-100k": (0, 1), "ml-1m": (0,), "ml-latest-small": (0, 1), "jester": (0,)}


@dataclass(frozen=True)
class Point:
    """One choice: what it costs and gives away."""

    mae: float
    right_group: tuple[float, ...]
    nearest: float
    best: float

    def beats(self, other: "Point") -> bool:
        mine = (self.mae, self.right_group[-1], self.nearest)
        theirs = (other.mae, other.right_group[-1], other.nearest)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def gathered(model: Preferences, seed: int) -> np.ndarray:
    """Groups as the pipeline makes them."""
    vectors = comparison_vectors(model)
    groups = bkg.gather(vectors, K, tries=10, seed=seed)
    return refine(vectors, groups, np.full(len(groups), K, dtype=np.int32), passes=20, threads=2)


def measure(ratings: Ratings, choice: dict, seed: int) -> Point:
    """One choice on one split."""
    scale = ratings.scale
    held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
    train, test = ratings.part(~held_out), ratings.part(held_out)
    model = learn(train.matrix(), seed=seed, threads=2, scale=scale, **choice)
    groups = gathered(model, seed)
    table = Fitted(model, groups).values(scale, groups)
    seen = np.bincount(train.item, minlength=train.n_items)[test.item] > 0
    mae = np.abs(table[groups[test.user], test.item] - test.rating)[seen].mean()
    told = membership(ratings, choice, seed)
    return Point(
        float(mae), right_group(model, groups, train, scale, seed), told["nearest"], max(told[name] for name in ALONE)
    )


def membership(ratings: Ratings, choice: dict, seed: int) -> dict[str, float]:
    """Advantage of each attacker, half of the users being in the data."""
    scale = ratings.scale
    inside = np.random.default_rng(seed).random(ratings.n_users) < 0.5
    sides = []
    for side in (inside, ~inside):
        kept = side[ratings.user]
        code = np.cumsum(side) - 1
        sides.append(
            Ratings(code[ratings.user[kept]], ratings.item[kept], ratings.rating[kept], side.sum(), ratings.n_items)
        )
    model = learn(sides[0].matrix(), seed=seed, threads=2, scale=scale, **choice)
    shown = vectors_of(model, gathered(model, seed), np.bincount(sides[0].item, minlength=ratings.n_items), scale)
    found = compare(shown, sides[0].matrix(), sides[1].matrix(), width=scale[1] - scale[0], seed=seed, threads=2)
    return {name: advantage.value for name, advantage in found.items()}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", default=",".join(SEEDS))
    given = arguments.parse_args().data.split(",")
    lines = ["# front", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    lines += [
        "| data | choice | MAE | right group, 4 | 8 | nearest | best attacker | on the front |",
        "| --- " * 8 + "|",
    ]
    for name in given:
        ratings = Ratings.read(name)
        points = {}
        for said, choice in CHOICES.items():
            runs = [measure(ratings, choice, seed) for seed in SEEDS[name]]
            points[said] = Point(
                float(np.mean([one.mae for one in runs])),
                tuple(np.mean([one.right_group for one in runs], axis=0).tolist()),
                float(np.mean([one.nearest for one in runs])),
                float(np.mean([one.best for one in runs])),
            )
            print(name, said, points[said], flush=True)
        for said, point in points.items():
            front = "" if any(other.beats(point) for other in points.values()) else "yes"
            rates = " | ".join(f"{rate:.3f}" for rate in point.right_group)
            lines.append(
                f"| {name} | {said} | {point.mae:.4f} | {rates} | {point.nearest:.3f} | {point.best:.3f} | {front} |"
            )
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "front.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
