"""What each way of homogenizing costs and gives away, measured on whole releases.

    make bench-choices

Four fifths of the ratings are published. The released value of (group of the user, item) is taken as the prediction of
the held-out fifth: its mean absolute error is the price. An attacker who knows a few exact ratings of a user takes the
group whose released values are nearest: how often that is the user's group is what the release gives away. Needs real
data under $KGATHER_DATA. Writes benchmarks/results/choices.md.
"""

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from harness import RESULTS, machine

from kgather._attacks import run
from kgather._evaluation.evidence import read_evidence
from kgather._loaders import LoadOptions, load
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

DATA = {"ml-100k": "ml-100k/u.data", "ml-1m": "ml-1m/ratings.csv", "ml-latest-small": "ml-latest-small/ratings.csv"}
CHOICES: list[dict] = [
    {"k": 5},
    {"k": 10},
    {"k": 20},
    {"k": 10, "metric": "preference"},
    {"k": 10, "cells": "rated"},
    {"k": 10, "homogenize": "padded"},
    {"k": 10, "homogenize": "pure", "single_rater": "pad"},
    {"k": 10, "homogenize": "pure", "single_rater": "drop"},
    {"k": 10, "homogenize": "pure", "single_rater": "keep"},
]
KNOWN = (4, 8)
ATTACKED = 1000


@dataclass(frozen=True)
class Measured:
    """One line: error on held-out ratings, share of them with a cell, attack rates, chance, groups."""

    mae: float
    covered: float
    right_group: tuple[float, ...]
    chance: float
    groups: int


def split(file: Path, folder: Path, seed: int) -> tuple[Path, list[tuple]]:
    """Write four fifths of the ratings to a file; return it and the rest."""
    with duckdb.connect() as con:
        load(con, [str(file)], LoadOptions())
        rows = con.sql("select user_id, item_id, rating from loaded.ratings order by all").fetchall()
    order = np.random.default_rng(seed).permutation(len(rows))
    cut = int(0.8 * len(rows))
    train = folder / "train.csv"
    with train.open("w") as stream:
        stream.write("user_id,item_id,rating\n")
        stream.writelines(f"{user},{item},{rating}\n" for user, item, rating in (rows[i] for i in order[:cut]))
    return train, [rows[i] for i in order[cut:]]


def measure(train: Path, held_out: list[tuple], folder: Path, choice: dict) -> Measured:
    """Publish and look at the release with the secret map in hand."""
    published = publish(
        [str(train)],
        folder / "release",
        PublishSettings(**choice),
        LoadOptions(),
        force=True,
        keep_work=folder / "work",
    )
    with duckdb.connect() as con:
        con.execute(f"attach '{folder}/work/work.duckdb' as work (read_only)")
        con.execute(f"attach '{folder}/release/release.duckdb' as release (read_only)")
        secret = dict(con.sql("select user_id, group_id from work.int_kgather__groups").fetchall())
        cells = con.sql("select group_id, item_id, rating from release.kgather__ratings").fetchall()
        evidence = read_evidence(con, "work", "release", published.audit.parameters)
    attacked = run(evidence, known=KNOWN, targets=ATTACKED, attacks=["distance"], original_too=False)
    group_code = {group: code for code, group in enumerate(sorted(set(secret.values())))}
    item_code = {item: code for code, item in enumerate(sorted({item for _, item, _ in cells}))}
    table = np.full((len(group_code), len(item_code)), np.nan)
    for group, item, rating in cells:
        table[group_code[group], item_code[item]] = rating
    errors = []
    for user, item, rating in held_out:
        if user in secret and item in item_code:
            errors.append(abs(table[group_code[secret[user]], item_code[item]] - rating))
    found = ~np.isnan(errors)
    return Measured(
        mae=float(np.mean(np.array(errors)[found])),
        covered=float(found.sum() / len(held_out)),
        right_group=tuple(result.group.value for result in attacked.results if result.group),
        chance=1 / len(group_code),
        groups=published.audit.counts["groups"],
    )


def main() -> None:
    here = Path(__file__).parent.parent
    data = Path(os.environ.get("KGATHER_DATA", here.parent / "shared" / "data"))
    lines = ["# choices", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    lines += [
        "| data | choice | MAE | covered | right group, 4 known | 8 known | chance | groups |",
        "| --- " * 8 + "|",
    ]
    for name, file in DATA.items():
        if not (data / file).exists():
            sys.exit(f"No {file} under {data}. Set KGATHER_DATA.")
        with tempfile.TemporaryDirectory() as temporary:
            train, held_out = split(data / file, Path(temporary), seed=0)
            for choice in CHOICES:
                # Bare groups: what refining them gains is measured in methods.py.
                found = measure(train, held_out, Path(temporary), {"refine": False, **choice})
                said = ", ".join(f"{key} {value}" for key, value in choice.items())
                rates = " | ".join(f"{rate:.3f}" for rate in found.right_group)
                lines.append(
                    f"| {name} | {said} | {found.mae:.4f} | {found.covered:.3f} | {rates} | {found.chance:.3f} "
                    f"| {found.groups:,} |"
                )
                print(lines[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "choices.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
