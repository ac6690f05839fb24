"""Mondrian against anonypy, and the three ways of gathering on a table of artifacts against each other, all in one run.

    make bench-mondrian

Needs anonypy (pip install anonypy==0.2.1) and no data: the tables are made up. Writes
benchmarks/results/mondrian.{md,json}.
"""

import argparse
import time
from importlib.metadata import version

import numpy as np
import pandas as pd
from anonypy import Preserver
from harness import Claim, Result, paired, timed

from kgather.udfs.gathering import k_likeness, k_member, mondrian
from kgather.udfs.measuring.generalization_loss import class_ranges

K = 10
PEOPLE, USERS, ARTIFACTS = 30_000, 100_000, 10
FEATURES = ["age", "education", "workclass", "marital_status", "sex"]
EDUCATION = [325, 221, 167, 54, 46, 35, 35, 33, 27, 20, 18, 15, 13, 10, 5, 1.5]
WORKCLASS = [739, 83, 69, 42, 36, 31, 0.5]
MARITAL_UNDER_30 = [27, 62, 6, 1, 3, 0.5, 0.5]
MARITAL = [57, 15, 17, 5, 3.5, 2, 0.1]


def census(n: int) -> pd.DataFrame:
    """A made-up table with the shape of UCI Adult: age 17 to 90, categories 16, 7, 7 and 2 of much the same skew."""
    rng = np.random.default_rng(0)

    def draw(weights: list[float]) -> np.ndarray:
        return rng.choice(len(weights), n, p=np.array(weights) / sum(weights))

    age = np.clip(17 + rng.gamma(2.8, 7.6, n), 17, 90).astype(int)
    codes = {
        "education": draw(EDUCATION),
        "workclass": draw(WORKCLASS),
        "marital_status": np.where(age < 30, draw(MARITAL_UNDER_30), draw(MARITAL)),
        "sex": draw([67, 33]),
        "income": draw([75, 25]),
    }
    named = {name: pd.Categorical([f"{name} {code:02d}" for code in column]) for name, column in codes.items()}
    return pd.DataFrame({"age": age, **named})


def films(n: int) -> np.ndarray:
    """Made-up ratings 1 to 5 of ten films that about half of the users rated; tastes make users alike."""
    rng = np.random.default_rng(0)
    taste = rng.normal(0, 0.8, (n, 3)) @ rng.normal(0, 0.8, (3, ARTIFACTS))
    rating = np.rint(3.5 + rng.normal(0, 0.5, (n, 1)) + taste + rng.normal(0, 0.6, (n, ARTIFACTS))).clip(1, 5)
    share = np.clip(0.5 + rng.normal(0, 0.25, (n, 1)), 0.05, 0.95)
    return np.where(rng.random((n, ARTIFACTS)) < share, rating, np.nan)


def gather(people: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The data frame as a table of numbers, and its classes."""
    columns = [people[name].cat.codes if name != "age" else people[name] for name in FEATURES]
    table = np.column_stack(columns).astype(np.float64)
    return table, mondrian.gather(table, K, categorical=np.array([name != "age" for name in FEATURES]))


def against_anonypy(runs: int, result: Result) -> None:
    people = census(PEOPLE)
    rival = Preserver(people, FEATURES, "income")
    sizes = np.bincount(gather(people)[1])  # compiled before it is timed
    rivals = np.array([len(part) for part in rival.modrian.partition(K)])
    classes = f"{len(sizes)} classes, DM {(sizes**2).sum():,}"
    rivals_classes = f"{len(rivals)} classes, DM {(rivals**2).sum():,}"
    what = f"Mondrian, {PEOPLE:,} x {len(FEATURES)}, k = {K}"
    name = f"anonypy {version('anonypy')}"
    goal = "at least 300 times as fast, at least as many classes"
    ours, theirs = paired(lambda: gather(people), lambda: rival.modrian.partition(K), runs)
    ratio = theirs.median / ours.median
    reached = ratio >= 300 and len(sizes) >= len(rivals)
    result.add(
        Claim(
            f"{what}, data frame to classes",
            f"{ours}, {classes}",
            f"{name}, Mondrian.partition: {theirs}, {rivals_classes}",
            ratio,
            goal,
            reached,
        )
    )
    ours, theirs = paired(
        lambda: class_ranges(*gather(people)), lambda: rival.anonymize_k_anonymity(K), max(1, runs // 2)
    )
    ratio = theirs.median / ours.median
    result.add(
        Claim(
            f"{what}, data frame to classes and their ranges",
            f"{ours}",
            f"{name}, Preserver.anonymize_k_anonymity: {theirs}",
            ratio,
            goal,
            ratio >= 300 and len(sizes) >= len(rivals),
            "the rival also counts the sensitive values",
        )
    )


def growth(runs: int, result: Result) -> None:
    people, more = census(PEOPLE), census(20 * PEOPLE)
    few, many = timed(lambda: gather(people), runs), timed(lambda: gather(more), runs)
    ratio = many.median / few.median
    what = f"Mondrian, {20 * PEOPLE:,} x {len(FEATURES)}, k = {K}"
    result.add(Claim(what, f"{many}", f"{PEOPLE:,} rows: {few}", ratio, "at most 40 times as long", ratio <= 40))


def against_each_other(runs: int, result: Result) -> None:
    """Three ways on one table. The paper has k-Likeness more than three times as fast as k-Member."""
    table = films(USERS)
    for k in (2, K):
        for way in (k_likeness, k_member, mondrian):
            way.gather(table[:1000], k)  # compiled before it is timed
        likeness, member = paired(lambda k=k: k_likeness.gather(table, k), lambda k=k: k_member.gather(table, k), runs)
        ratio = member.median / likeness.median
        what = f"k-Likeness, {USERS:,} x {ARTIFACTS}, k = {k}"
        goal = "more than 3 times as fast"
        result.add(Claim(what, f"{likeness}", f"k-Member: {member}", ratio, goal, ratio > 3))
        cuts = timed(lambda k=k: mondrian.gather(table, k), runs)
        ratio = likeness.median / cuts.median
        what = f"Mondrian, {USERS:,} x {ARTIFACTS}, k = {k}"
        result.add(Claim(what, f"{cuts}", f"k-Likeness: {likeness}", ratio, "faster", ratio > 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side (default 3)")
    runs = parser.parse_args().runs
    result = Result("mondrian")
    start = time.perf_counter()
    against_each_other(runs, result)
    growth(runs, result)
    against_anonypy(runs, result)
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
