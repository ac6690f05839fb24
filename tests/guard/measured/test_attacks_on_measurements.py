"""Attacks on single people that read exact answers: their success stays below what the ledger's charges allow.

Who attacks knows all other people, as far as the script needs them, and guesses one of two values of a fact. An attack
on many people shares a ledger where that is quicker; the bound for each is then that of the whole ledger's charges.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from worlds_of_people import (
    GENEROUS,
    charged,
    condition_of,
    engine_of,
    guarded,
    long_of,
    number_of,
    policy_of_raters,
    raters,
    rows_of,
    seeded,
    write,
)

from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import success_about_a_count, success_about_anything
from kgather._guard.policy import parse_policy

KS = pytest.mark.parametrize("k", [3, 5, 10])
SMALL = "budget: {epsilon: 2, delta: 1.0e-6}"
"""A budget under which a bound of success is well below what any attack that works reaches."""


def _bounded(right: list[bool], rho: float, bound: Callable[[float], float]) -> None:
    """Check that no more guesses were right than the charge allows, with two standard errors."""
    most = bound(rho)
    assert rho > 0
    assert np.mean(right) <= most + 2 * math.sqrt(most * (1 - most) / len(right)), (np.mean(right), most)


def _alone(people: pd.DataFrame, names: list[str], fact: str) -> Iterator[int]:
    """The places of people whom their values of these columns tell from all others, and who have the fact."""
    alone = ~people.duplicated(names, keep=False) & people[fact].notna()
    yield from np.random.default_rng(4).permutation(np.flatnonzero(alone))


def _guess(difference: float | None, rng: np.random.Generator) -> bool:
    """Whether somebody is in the first of two groups rather than in the second, by what they differ; a coin where
    nothing is told."""
    return bool(difference > 0) if difference else bool(rng.random() < 0.5)


def _in_a_ledger(guard: Guard, name: str, seed: int) -> Guard:
    """A guard over the same data with a ledger of its own."""
    folder = engine_of(guard).database.path.parent
    policy = guard.policy.model_copy(update={"ledger": Path(f"{name}.sqlite"), "database": Path("db.duckdb")})
    return Guard(policy, folder, noise=seeded(seed))


@KS
def test_rows_and_people_are_subtracted(tmp_path: Path, k: int) -> None:
    """All rows of an item by rating, less the people of the others: what is left is the target's rating."""
    people = raters(300, 6, seed=6, missing=0.2)
    policy = f"""version: 1
database: db.duckdb
k: {k}
{SMALL}
tables:
  people:
    privacy_unit: user_id
    artifacts: [f0, f1, f2, f3, f4, f5]
    values: {{f0: [1, 2, 3, 4, 5], f1: [1, 2, 3, 4, 5]}}
    pivot_of: {{table: ratings, key: item_id, value: rating, names: {{1: f0, 2: f1, 3: f2, 4: f3, 5: f4, 6: f5}}}}
  ratings:
    privacy_unit: user_id
    artifacts: [item_id, rating]
    rows_per_person: 6
    values: {{item_id: [1, 2, 3, 4, 5, 6], rating: [1, 2, 3, 4, 5]}}
joins:
  - ratings.user_id = people.user_id
principals:
  a: {{}}
"""
    guard = guarded(tmp_path, {"people": people, "ratings": long_of(people, 6)}, policy, seeded(k))
    rng, right = np.random.default_rng(k), []
    known = [f"f{film}" for film in range(1, 6)]
    rows = {
        low: number_of(
            guard,
            "SELECT COUNT(*) FROM ratings r JOIN people p USING (user_id) "
            f"WHERE r.item_id < 2 AND r.rating {'<' if low else '>='} 4 AND p.f1 >= 4",
        )
        for low in (True, False)
    }
    for at in _alone(people, known, "f0"):
        row = people.iloc[at]
        if pd.isna(row["f1"]) or row["f1"] < 4:
            continue
        others = [
            number_of(
                guard,
                "SELECT COUNT(*) FROM people "
                f"WHERE f1 >= 4 AND f0 {side} 4 AND ({condition_of(row, known)}) IS NOT TRUE",
            )
            for side in ("<", ">=")
        ]
        told = [None if a is None or b is None else a - b for a, b in zip(rows.values(), others, strict=True)]
        difference = None if None in told else told[1] - told[0]  # type: ignore[operator]
        right.append(_guess(difference, rng) == bool(row["f0"] >= 4))
        if len(right) == 14:
            break
    _bounded(right, charged(guard), success_about_a_count)


@KS
def test_noise_is_averaged_through_branches_of_junk(tmp_path: Path, k: int) -> None:
    """The same group beside ever other ones: noise that is drawn anew for each would average out."""
    films, times = 8, 2
    people = raters(300, films, seed=k)
    opened = guarded(tmp_path, {"people": people}, policy_of_raters(films, k, SMALL), seeded(k))
    rng, right, spent = np.random.default_rng(k), [], 0.0
    known = [f"f{film}" for film in range(6)]

    def junk() -> str:
        a, b = rng.choice(films, 2, replace=False)
        return f"f{a} <= {rng.integers(1, 5)} OR f{b} > {rng.integers(1, 5)}"

    for place, at in zip(range(14), _alone(people, known, "f7"), strict=False):
        guard = _in_a_ledger(opened, f"ledger{place}", 1_000 * k + place)
        mine = condition_of(people.iloc[at], known)
        means = []
        for side in ("f7 >= 4", "f7 < 4"):
            others = f"(f2 >= 4 OR f3 <= 2) AND (f5 <= 3 OR f1 >= 4) AND NOT COALESCE({mine}, FALSE)"
            group = f"({others}) OR ({mine} AND {side})"
            told = []
            for _ in range(times):
                case = f"CASE WHEN {group} THEN 1 WHEN {junk()} THEN 2 WHEN {junk()} THEN 3 END"
                rows = rows_of(guard, f"SELECT {case} AS g, COUNT(*) AS n FROM people GROUP BY 1") or []
                told += [row["n"] for row in rows if row["g"] == 1]
            means.append(np.mean(told) if told else None)
        difference = None if None in means else float(means[0] - means[1])  # type: ignore[operator]
        right.append(_guess(difference, rng) == bool(people.iloc[at]["f7"] >= 4))
        spent = max(spent, charged(guard))
    _bounded(right, spent, success_about_anything)


@KS
def test_refusals_are_no_oracle(tmp_path: Path, k: int) -> None:
    """One less than k helpers, or the target if the fact is true: a floor of k would tell it."""
    films = 8
    people = raters(300, films, seed=3)
    guard = guarded(tmp_path, {"people": people}, policy_of_raters(films, k, SMALL), seeded(k))
    rng, right = np.random.default_rng(k), []
    known = [f"f{film}" for film in range(6)]
    places = list(_alone(people, known, "f7"))
    helpers = " OR ".join(f"({condition_of(people.iloc[at], known)})" for at in places[-(k - 1) :])
    for at in places[:16]:
        mine = condition_of(people.iloc[at], known)
        told = [
            number_of(guard, f"SELECT COUNT(*) FROM people WHERE {helpers} OR ({mine} AND f7 {side} 4)") or 0.0
            for side in (">=", "<")
        ]
        right.append(_guess(told[0] - told[1], rng) == bool(people.iloc[at]["f7"] >= 4))
    _bounded(right, charged(guard), success_about_a_count)


def _with_villages(people: pd.DataFrame, k: int) -> dict[str, int]:
    """Move people to villages of fewer than k; their names with how many live there."""
    perm, start, sizes = np.random.default_rng(5).permutation(len(people)), 0, {}
    places = people["city"].to_numpy(dtype=object, copy=True)
    for at in range(40):
        size = 1 + at % (k - 1)
        places[perm[start : start + size]] = f"village{at:02}"
        sizes[f"village{at:02}"] = size
        start += size
    people["city"] = places
    return sizes


@KS
@pytest.mark.parametrize("budget", ["", GENEROUS])
def test_keys_of_fewer_than_k_people_are_not_shown(tmp_path: Path, k: int, budget: str) -> None:
    people = raters(600, 4, seed=4)
    sizes = _with_villages(people, k)
    guard = guarded(tmp_path, {"people": people}, policy_of_raters(4, k, budget), seeded(k))
    rng, seen, groups = np.random.default_rng(k), set(), 0
    questions = [
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
        "SELECT city, f0, COUNT(*) AS n FROM people GROUP BY 1, 2",
    ]
    questions += [
        f"SELECT city, COUNT(*) AS n FROM people WHERE f{rng.integers(4)} <= {rng.integers(1, 5)} "
        f"OR f{rng.integers(4)} IS NULL GROUP BY city"
        for _ in range(8)
    ]
    for sql in questions:
        rows = rows_of(guard, sql) or []
        groups += len(rows)
        seen |= {row["city"] for row in rows}
    assert groups
    assert not seen & set(sizes)
    listed = [
        value for one in engine_of(guard).ledger.measurements() for domain in one.domains for value in domain.values
    ]
    assert not set(listed) & set(sizes)


@KS
def test_a_policy_with_another_column_adds_to_the_same_charge(tmp_path: Path, k: int) -> None:
    """What was told under one policy, less what is told under the next: the same person pays for both."""
    people = raters(300, 6, seed=6, missing=0.2)
    long = long_of(people, 6)
    rng = np.random.default_rng(k)
    long["spent"] = rng.choice([0, 1000], len(long))
    long["device"] = rng.choice(["tv", "phone"], len(long))

    def policy(more: str) -> str:
        return f"""version: 1
database: db.duckdb
k: {k}
{SMALL}
tables:
  users:
    privacy_unit: user_id
    dimensions: [city]
  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating]
    measures: [spent]
    rows_per_person: 6
    values: {{item_id: [1, 2, 3, 4, 5, 6]}}
    bounds: {{spent: [0, 1000], rating: [1, 5]}}
{more}
joins:
  - ratings.user_id = users.user_id
principals:
  a: {{}}
"""

    tables = {"users": people[["user_id", "city"]], "ratings": long}
    first = guarded(tmp_path, tables, policy(""), seeded(k))
    whole = number_of(first, "SELECT SUM(spent) FROM ratings WHERE item_id = 1")
    before = charged(first)
    second = guarded(tmp_path, None, policy("    dimensions: [device]"), seeded(k + 1))
    assert charged(second) == before
    known, right = [f"f{film}" for film in range(1, 6)], []
    spent = long[long["item_id"] == 1].set_index("user_id")["spent"]
    for at in _alone(people, known, "f0"):
        row = people.iloc[at]
        mine = " AND ".join(
            f"user_id IN (SELECT user_id FROM ratings WHERE item_id = {item} AND rating = {int(row[f'f{item - 1}'])})"
            for item in range(2, 7)
            if not pd.isna(row[f"f{item - 1}"])
        )
        rest = number_of(second, f"SELECT SUM(spent) FROM ratings WHERE item_id = 1 AND NOT ({mine})")
        difference = None if whole is None or rest is None else whole - rest - 500
        right.append(_guess(difference, rng) == bool(spent[row["user_id"]] > 500))
        if len(right) == 12:
            break
    rho = charged(second)
    assert before < rho <= engine_of(second).prices.total
    _bounded(right, rho, success_about_anything)


@KS
def test_one_row_changes_in_between(tmp_path: Path, k: int) -> None:
    """Answers before and after an update of one person: which of two values was it first?"""
    rng, right, spent = np.random.default_rng(k), [], 0.0
    people = raters(200, 2, seed=20, missing=0.1)
    for trial in range(10):
        folder = tmp_path / str(trial)
        folder.mkdir()
        old, new = rng.permutation([2, 4])
        target = int(rng.integers(200))
        people.loc[target, "f0"] = old
        guard = guarded(folder, {"people": people}, policy_of_raters(2, k, SMALL), seeded(50 * k + trial))
        ask = "SELECT COUNT(*) FROM people WHERE f0 <= 3"
        before = number_of(guard, ask)
        (folder / "db.duckdb").unlink()
        people.loc[target, "f0"] = new
        write(folder / "db.duckdb", {"people": people})
        assert number_of(guard, ask) == before  # what was told stays told, of the version it was about
        engine_of(guard).next_version()
        after = number_of(guard, ask)
        difference = None if before is None or after is None else after - before
        right.append(_guess(difference, rng) == bool(new < old))
        spent = max(spent, charged(guard))
    _bounded(right, spent, success_about_anything)


@KS
def test_a_value_that_is_recognised_in_a_total(tmp_path: Path, k: int) -> None:
    """Everybody's salary ends in 00 but the target's: does the total end in 37?"""
    films = 8
    people = raters(300, films, seed=3)
    people["salary"] = people["salary"] // 100 * 100
    known = [f"f{film}" for film in range(6)]
    rng, right, spent = np.random.default_rng(k), [], 0.0
    for place, at in zip(range(8), _alone(people, known, "f7"), strict=False):
        folder = tmp_path / str(place)
        folder.mkdir()
        mine = condition_of(people.iloc[at], known)
        marked = people.copy()
        marked.loc[at, "salary"] += 37
        guard = guarded(folder, {"people": marked}, policy_of_raters(films, k, SMALL), seeded(10 * k + place))
        told = number_of(
            guard,
            f"SELECT SUM(salary) FROM people WHERE (f0 >= 4 OR f1 <= 2) AND NOT (({mine}) IS TRUE) "
            f"OR (({mine}) AND f7 >= 4)",
        )
        guess = bool(rng.random() < 0.5) if told is None else int(told) % 100 == 37
        right.append(guess == bool(people.iloc[at]["f7"] >= 4))
        spent = max(spent, charged(guard))
    _bounded(right, spent, success_about_anything)


@KS
def test_numbers_that_swallow_others(tmp_path: Path, k: int) -> None:
    """Huge and missing numbers neither fail nor get past the bounds."""
    people = raters(200, 3, seed=1)
    salary = np.random.default_rng(0).integers(1, 99, 200).astype(float)
    salary[[50, 53, 60, 61, 62]] = [1e18, -1e18, np.nan, np.inf, -0.0]
    people["salary"] = salary
    people["f0"] = pd.array([1] * 200, dtype="Int64")
    policy = policy_of_raters(3, k, GENEROUS).replace("salary: [0, 100000]", "salary: [0, 100]")
    guard = guarded(tmp_path, {"people": people}, policy, seeded(k))
    (row,) = (
        rows_of(guard, "SELECT COUNT(*) AS n, COUNT(salary) AS c, SUM(salary) AS s, AVG(salary) AS a FROM people") or []
    )
    clipped = np.clip(salary[np.isfinite(salary)], 0, 100)
    assert row["a"] == pytest.approx(clipped.mean(), abs=0.5)
    assert row["s"] == pytest.approx(clipped.sum(), rel=0.02)


@KS
def test_versions_are_averaged(tmp_path: Path, k: int) -> None:
    """The same question of ever new versions of the same data: all of them pay from one budget."""
    films = 8
    people = raters(300, films, seed=9)
    guard = guarded(tmp_path, {"people": people}, policy_of_raters(films, k, SMALL), seeded(k))
    known, right, rng = [f"f{film}" for film in range(6)], [], np.random.default_rng(k)
    targets = list(_alone(people, known, "f7"))[:10]
    told: list[list[float]] = [[] for _ in targets]
    for version in range(3):
        if version:
            engine_of(guard).next_version(force=True)
        for place, at in enumerate(targets):
            mine = condition_of(people.iloc[at], known)
            number = number_of(
                guard,
                f"SELECT COUNT(*) FROM people WHERE f6 IS NOT NULL AND NOT COALESCE({mine}, FALSE) "
                f"OR ({mine} AND f7 >= 4)",
            )
            told[place] += [] if number is None else [number]
    for place, at in enumerate(targets):
        others = people.drop(index=int(people.index[at]))
        exact = float(others["f6"].notna().sum())
        difference = float(np.mean(told[place])) - exact - 0.5 if told[place] else None
        right.append(_guess(difference, rng) == bool(people.iloc[at]["f7"] >= 4))
    assert sum(map(len, told)) > 10
    rho = charged(guard)
    assert rho <= engine_of(guard).prices.total * (1 + 1e-6)
    _bounded(right, rho, success_about_a_count)


def test_the_bound_condemns_a_guard_without_noise(tmp_path: Path) -> None:
    """The attacks work: against exact answers each of them is right nearly always."""
    films = 8
    people = raters(300, films, seed=3)
    policy = policy_of_raters(films, 3, GENEROUS)
    guard = guarded(tmp_path, {"people": people}, policy, seeded(1))
    known, right, rng = [f"f{film}" for film in range(6)], [], np.random.default_rng(1)
    for at in list(_alone(people, known, "f7"))[:12]:
        mine = condition_of(people.iloc[at], known)
        told = [
            number_of(
                guard, f"SELECT COUNT(*) FROM people WHERE f6 >= 3 AND ({mine}) IS NOT TRUE OR ({mine} AND f7 {side} 4)"
            )
            or 0.0
            for side in (">=", "<")
        ]
        right.append(_guess(told[0] - told[1], rng) == bool(people.iloc[at]["f7"] >= 4))
    assert all(right)
    with pytest.raises(AssertionError):
        _bounded(right, 0.08, success_about_anything)
    assert parse_policy(policy).budget.epsilon == 1e6
