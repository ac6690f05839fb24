"""What the default release hides of the rare, and at what price: noise in items, groups drawn in, a proven item side.

    make bench-hidden

Releases are made in memory. Loss: mean absolute error on the held-out fifth of the ratings (three splits). Farthest:
the likeliest group is the right one, eight exact ratings known, of people in the tenth and the 3% of the groups that
are farthest from the middle (four fifths of the ratings published). Shadows: who has published random halves of the
people again and again tells who is in (100 releases, a third of them tested; 44 of ml-1m, without refining).
Existence, sign: that one person more rated an item, and how, all other ratings known. Needs real data under
$KGATHER_DATA. Writes benchmarks/results/hidden.md.
"""

import argparse
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from harness import RESULTS, machine
from release import SEEDS, K, Ratings, evidence_of

from kgather._attacks import run
from kgather._evaluation.evidence import Evidence
from kgather._evaluation.in_memory import make
from kgather._settings.publication import PublishSettings

DATA = ("ml-100k", "ml-latest-small", "filmtrust", "ml-1m", "jester")
NOISES = (0.0, 4.0, 6.0, 8.0, 12.0, 20.0)
QUANTILES = (1.0, 0.95, 0.90, 0.85)
EPSILONS = (10.0, 4.0, 2.0, 1.0)
SHADOWED = {"ml-100k": 100, "ml-latest-small": 100, "filmtrust": 100, "ml-1m": 44}


def settings(choice: dict[str, Any], seed: int, name: str) -> PublishSettings:
    faster = {"refine": False} if name == "ml-1m" and choice.pop("shadowed", False) else {}
    choice.pop("shadowed", None)
    return PublishSettings(**{"k": K, "seed": seed, **faster, **choice})


def made(ratings: Ratings, asked: PublishSettings) -> Evidence:
    secret = hashlib.sha256(f"benchmark {asked.seed}".encode()).digest()
    matrix = ratings.matrix()
    found = make(matrix, asked, scale=ratings.scale, secret=secret, catalogue=asked.items is not None, threads=2)
    return evidence_of(ratings, matrix, found.shown, found.groups, asked)


def loss(name: str, ratings: Ratings, choice: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """The mean over three splits of the loss, and of the rates of right groups."""
    losses, rates = [], []
    for seed in SEEDS:
        held_out = np.random.default_rng(seed).random(len(ratings.rating)) < 0.2
        train, test = ratings.part(~held_out), ratings.part(held_out)
        evidence = made(train, settings(dict(choice), seed, name))
        known = np.bincount(train.item, minlength=train.n_items)[test.item] > 0
        gaps = []
        for start in range(0, ratings.n_items, 512):
            items = np.arange(start, min(start + 512, ratings.n_items))
            shown, _ = evidence.shown.columns(items)
            here = known & (test.item >= start) & (test.item < start + len(items))
            gaps.append(np.abs(shown[test.item[here] - start, evidence.truth[test.user[here]]] - test.rating[here]))
        losses.append(float(np.nanmean(np.concatenate(gaps))))
        [found] = run(
            evidence, known=(8,), targets=10_000, attacks=["posterior"], seed=seed, original_too=False
        ).results
        assert found.group is not None
        rates.append({"mean": found.group.value, **found.details})
    names = ("mean", "farthest_tenth", "farthest_3_percent", "farthest_3_percent_user")
    return float(np.mean(losses)), {each: float(np.mean([one.get(each, np.nan) for one in rates])) for each in names}


def told(name: str, ratings: Ratings, choice: dict[str, Any], attack: str) -> dict[str, float]:
    """The details of an attack on the release of all ratings."""
    evidence = made(ratings, settings({**choice, "shadowed": True}, 0, name))
    [found] = run(evidence, attacks=[attack], shadows=SHADOWED.get(name, 44), original_too=False).results
    return dict(found.details)


def measured(name: str) -> Iterator[str]:
    ratings = Ratings.read(name)
    proven = {"items": "all", "scale": list(ratings.scale)}
    choices: list[tuple[str, dict[str, Any]]] = [
        ("default", {}),
        *((f"item_noise {noise:g}", {"item_noise": noise}) for noise in NOISES),
        *((f"outliers {share:g}", {"outliers": share}) for share in QUANTILES),
        *((f"item_epsilon {epsilon:g}", {"item_epsilon": epsilon, **proven}) for epsilon in EPSILONS),
    ]
    for label, choice in choices:
        mae, rates = loss(name, ratings, choice)
        cells = [name, label, f"{mae:.4f}", *(f"{rate:.3f}" for rate in rates.values())]
        if name in SHADOWED and not label.startswith("outliers"):
            found = told(name, ratings, choice, "shadows")
            cells += [f"{found[each]:.3f}" for each in ("advantage", "tpr_at_1", "people_above_08")]
        else:
            cells += [""] * 3
        if label in ("default", "item_noise 0", "item_noise 6") and name != "jester":
            found = told(name, ratings, choice, "existence")
            cells += [f"{found[each]:.3f}" for each in ("existence_auc", "sign_auc", "sign_above")]
        else:
            cells += [""] * 3
        yield "| " + " | ".join(cells) + " |"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", default=",".join(DATA))
    given = arguments.parse_args()
    heads = (
        "data", "release", "MAE", "right group, 8 known", "farthest tenth", "farthest 3%", "person there",
        "shadows: advantage", "TPR at 1%", "people above .8", "existence, k to 2k raters", "sign, up to 2k",
        "sign, more",
    )  # fmt: skip
    lines = ["# hidden", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    lines += ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for name in given.data.split(","):
        for line in measured(name):
            print(line, flush=True)
            lines.append(line)
            (RESULTS / "hidden.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
