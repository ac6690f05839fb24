"""The corpus, asked of a guard over its own tables: what must be answered is, and no answers tell of one person."""

import os
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
# The one in Bergen, whose salary no sums may give.
SALARY = 999_999
ASIDE = {"V07": "its text is two statements", "G05": "all its groups are too small"}

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(os.environ.get("KGATHER_REDTEAM", ROOT.parent / "shared" / "redteam"))
    if not (source / "policy.yml").is_file():
        pytest.skip(f"no corpus at {source}: set KGATHER_REDTEAM to a folder with its tables and policy")
    made = tmp_path_factory.mktemp("corpus")
    with duckdb.connect(made / "fixture.duckdb") as con:
        for table in ("ratings_wide", "ratings", "users", "items"):
            con.execute(f"create table {table} as from read_csv('{source / table}.csv')")
    (made / "policy.yml").write_text((source / "policy.yml").read_text(encoding="utf-8"), encoding="utf-8")
    return made


@pytest.fixture
def fresh(folder: Path) -> Callable[[], Guard]:
    """A guard with an empty ledger, over and over."""

    def opened() -> Guard:
        for file in folder.glob("ledger.duckdb*"):
            file.unlink()
        return Guard.from_policy(folder / "policy.yml")

    return opened


def _asked(guard: Guard, entry: Entry) -> list[list[dict[str, Any]] | None]:
    """The rows of each step, None where it is refused."""
    answers: list[list[dict[str, Any]] | None] = []
    for step in entry["steps"]:
        if step.lstrip().startswith("--"):
            continue
        values = {"?": [5], "$1": [5, 1, 5]}
        parameters = next((given for mark, given in values.items() if mark in step), [])
        try:
            answers.append(guard.query(step, parameters=parameters).to_pylist())
        except Refused:
            answers.append(None)
    return answers


def test_what_must_be_answered_is_answered_alone(fresh: Callable[[], Guard], corpus: list[Entry]) -> None:
    wanted = [entry for entry in corpus if entry["verdict"] in ("ALLOW", "REWRITE") and entry["id"] not in ASIDE]
    assert [entry["id"] for entry in wanted if None in _asked(fresh(), entry)] == []


def test_nearly_all_is_answered_one_after_the_other(fresh: Callable[[], Guard], corpus: list[Entry]) -> None:
    guard = fresh()
    wanted = [entry for entry in corpus if entry["verdict"] in ("ALLOW", "REWRITE") and entry["id"] not in ASIDE]
    answers = [answer for entry in wanted for answer in _asked(guard, entry)]
    assert sum(answer is not None for answer in answers) >= 0.95 * len(answers)


def test_no_sums_and_differences_give_one_salary(fresh: Callable[[], Guard], corpus: list[Entry]) -> None:
    for entry in corpus:
        if entry["verdict"] not in ("REFUSE-D", "SESSION"):
            continue
        answers = _asked(fresh(), entry)
        sums = _sums(answers)
        for size in (1, 2, 3, 4):
            for some in combinations(sums, size):
                for signs in product((1, -1), repeat=size):
                    total = sum(sign * value for sign, value in zip(signs, some, strict=True))
                    assert abs(abs(total) - SALARY) > 0.5, entry["id"]


def _sums(answers: list[list[dict[str, Any]] | None]) -> list[float]:
    """The numbers of the answers, and the products of a mean and a count that stand in one row; the first few."""
    found: list[float] = []
    for rows in answers:
        for row in rows or []:
            numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
            found += [float(value) for value in numbers.values()]
            means = [value for name, value in numbers.items() if "avg" in name]
            counts = [value for name, value in numbers.items() if "count" in name]
            found += [mean * count for mean, count in product(means, counts)]
    return found[:14]


def test_a_refusal_that_the_data_decide_says_always_the_same(fresh: Callable[[], Guard], corpus: list[Entry]) -> None:
    told = set()
    for entry in corpus:
        if entry["verdict"] == "REFUSE-D":
            guard = fresh()
            for step in entry["steps"]:
                try:
                    guard.query(step, parameters=[5, 1, 5] if "$1" in step else ())
                except Refused as refusal:
                    if not refusal.static:
                        told.add((refusal.reason, refusal.code))
    assert len(told) == 1
