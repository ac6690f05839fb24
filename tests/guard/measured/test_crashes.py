"""Nothing is told that is not charged, whoever asks at once and whatever breaks."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from guard_data import POLICY
from measured_guard import kgather, ledger_of, logged, opened, policy_in, seeded
from numpy.typing import NDArray
from victims import Victim

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.ledger import Ledger, Measurement, Writing
from kgather._guard.policy import load_policy

QUERIES = [
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= 4",
    "SELECT city, AVG(salary) AS m FROM ratings_wide GROUP BY city",
    "SELECT COUNT(*) AS n FROM ratings WHERE rating >= 4",
]
COUNT = "SELECT COUNT(*) AS n FROM ratings_wide"


class StoppedError(BaseException):
    """What ends a process, as far as it can be told from within."""


def stored(policy: Path) -> list[tuple[int, str, bytes]]:
    return [(one.number, one.name, one.numbers.tobytes()) for one in ledger_of(policy).measurements()]


def replays(policy: Path) -> None:
    code, told = kgather("ledger", "replay", "--policy", policy)
    assert code == 0, told
    assert "cannot" not in told


# What ends before a measurement is written, and after

SETS = "SELECT warcross, pachinko, COUNT(*) AS n FROM ratings_wide GROUP BY CUBE (warcross, pachinko)"


def test_what_ends_among_many_measurements_has_told_and_charged_nothing(tmp_path: Path) -> None:
    tables = yaml.safe_load(POLICY)["tables"]
    tables["ratings_wide"]["bounds"] = {"warcross": [1, 5], "pachinko": [1, 5]}
    policy = policy_in(tmp_path, margins=True, tables=tables)
    drawn = []

    def broken_later(count: int, sd: float) -> NDArray[np.int64]:
        drawn.append(sd)
        if len(drawn) == 3:
            raise StoppedError
        return seeded(1)(count, sd)

    with pytest.raises(StoppedError):
        Guard(load_policy(policy), tmp_path, noise=broken_later).query(SETS)
    assert stored(policy) == []
    assert not (tmp_path / "audit.jsonl").exists()
    assert opened(policy).query(SETS).num_rows > 1
    names = [name for _, name, _ in stored(policy)]
    assert len(names) == len({*names}) >= 3
    replays(policy)


def test_what_ends_while_noise_is_drawn_has_told_and_charged_nothing(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)

    def broken(*_: float) -> NDArray[np.int64]:
        raise StoppedError

    with pytest.raises(StoppedError):
        Guard(load_policy(policy), tmp_path, noise=broken).query(COUNT)
    assert stored(policy) == []
    assert not (tmp_path / "audit.jsonl").exists()
    assert opened(policy).query(COUNT).num_rows == 1


def test_of_several_measurements_at_once_none_is_kept(tmp_path: Path) -> None:
    """A margin of three columns is three measurements in one transaction; the last one fails."""
    policy = policy_in(tmp_path)
    whole = opened(policy)
    sql = "SELECT warcross, joy_ride, pachinko, COUNT(*) AS n FROM ratings_wide GROUP BY ALL"
    for column in ("warcross", "joy_ride", "pachinko"):
        whole.query(f"SELECT {column}, COUNT(*) AS n FROM ratings_wide GROUP BY {column}")
    before, drawn, draw = stored(policy), 0, seeded(3)

    def breaks(n: int, sd: float) -> NDArray[np.int64]:
        nonlocal drawn
        drawn += 1
        if drawn == 3:
            raise StoppedError
        return draw(n, sd)

    with pytest.raises(StoppedError):
        Guard(load_policy(policy), tmp_path, noise=breaks).query(sql)
    assert drawn == 3
    assert stored(policy) == before


def test_what_ends_after_a_measurement_was_written_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    guard = opened(policy)
    with monkeypatch.context() as patched:
        patched.setattr("kgather._guard.measured.answering._told", _stops)
        with pytest.raises(StoppedError):
            guard.query(QUERIES[1])
    measured = stored(policy)
    assert len(measured) > 1, "nothing was measured before it ended"
    assert len(logged(policy)) == 1
    opened(policy, seed=7).query(COUNT)
    numbers = [charge["number"] for entry in logged(policy) for charge in entry["measured"]]
    assert numbers == [number for number, *_ in measured]
    opened(policy, seed=8).query(QUERIES[1])
    assert stored(policy)[: len(measured)] == measured, "it was measured again"
    replays(policy)


def _stops(*_: object) -> None:
    raise StoppedError


def test_a_transaction_that_cannot_be_committed_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    add = Writing.add

    def full(self: Writing, one: Measurement) -> Measurement:
        add(self, one)
        msg = "database or disk is full"
        raise sqlite3.OperationalError(msg)

    with monkeypatch.context() as patched:
        patched.setattr(Writing, "add", full)
        with pytest.raises(InputError, match="disk is full"):
            guard.query(COUNT)
    assert stored(policy) == []
    assert not (tmp_path / "audit.jsonl").exists()
    guard.query(COUNT)
    replays(policy)


def test_the_transaction_is_durable(tmp_path: Path) -> None:
    """SQLite's strongest setting: the file, its journal and the folder are on disk before anything is told."""
    ledger = ledger_of(policy_in(tmp_path))
    ledger.make({}, "")
    with ledger._open() as con:
        assert con.execute("pragma synchronous").fetchone() == (3,)


# Kills

STEPS = [f"kgather._guard.{name}" for name in ("guard", "audit_log")]
STEPS += [f"kgather._guard.measured.{name}" for name in ("engine", "ledger", "measuring")]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(policy_in(tmp_path_factory.mktemp("victim")), QUERIES, STEPS)
    yield victim
    victim.process.communicate()


@pytest.fixture(scope="module")
def steps(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many steps there are when nothing breaks."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert victim.run(policy_in(folder), 0, folder / "answers") == 0
    return abs(int((folder / "answers").read_text().splitlines()[-1]))


POINTS = 24


@pytest.mark.long
@pytest.mark.parametrize("point", range(POINTS))
def test_after_a_kill_everything_is_charged_that_was_told(
    victim: Victim, steps: int, tmp_path: Path, point: int
) -> None:
    policy = policy_in(tmp_path)
    at = 1 + point * (steps - 1) // (POINTS - 1)
    # Noise is another one each time, and so may be the number of steps at the very end.
    assert victim.run(policy, at, tmp_path / "answers") in (-signal.SIGKILL, 0)
    told: list[Any] = []
    if (tmp_path / "answers").exists():
        lines = (tmp_path / "answers").read_text().splitlines()
        told = [found for found in map(json.loads, lines) if isinstance(found, list)]
    if (tmp_path / "ledger.sqlite").exists():
        numbers = [number for number, *_ in stored(policy)]
        assert numbers == [*range(1, len(numbers) + 1)], "a part of a transaction"
    assert told == [] or len(logged(policy)) >= len(told)
    if told:
        replays(policy)
    before = stored(policy) if (tmp_path / "ledger.sqlite").exists() else []
    # Life goes on: what was told comes from what is stored, and what is charged is in the log at the end.
    guard = Guard.from_policy(policy)
    for query in QUERIES:
        guard.query(query)
    assert stored(policy)[: len(before)] == before
    replays(policy)
    charged = {charge["number"] for entry in logged(policy) for charge in entry["measured"]}
    assert charged == {number for number, *_ in stored(policy)}


# Many at once

ASKING = """
import json, sys, threading
from kgather._guard.guard import Guard
policy, queries = sys.argv[1], json.loads(sys.argv[2])
guard = Guard.from_policy(policy)
print("ready", flush=True)
input()
found = []
def ask(order):
    for query in queries[::order]:
        found.append([query, sorted(map(str, guard.query(query).to_pylist()))])
threads = [threading.Thread(target=ask, args=(order,)) for order in (1, -1)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(found))
"""


def asked_at_once(policy: Path, queries: list[str], processes: int) -> list[list[Any]]:
    command = [sys.executable, "-c", ASKING, str(policy), json.dumps(queries)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [answer for process in running for answer in json.loads(process.communicate()[0])]


@pytest.mark.slow
def test_one_question_of_two_processes_has_one_answer(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    (sql,) = QUERIES[1:2]
    answers = asked_at_once(policy, [sql], 2)
    assert len(answers) == 4
    assert len({json.dumps(answer) for answer in answers}) == 1
    # It was measured once, and each charge is in the log.
    names = [name for _, name, _ in stored(policy)]
    assert len(set(names)) == len(names)
    replays(policy)


@pytest.mark.long
def test_many_questions_of_many_processes_follow_from_one_ledger(tmp_path: Path) -> None:
    """Under a budget that does not pay for all: what is charged is never more than it, and every answer replays."""
    policy = policy_in(tmp_path, budget={"epsilon": 8.0, "delta": 1e-6}, k=2)
    columns = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
    queries = [COUNT] + [
        f"SELECT {a}, {b}, COUNT(*) AS n FROM ratings_wide GROUP BY {a}, {b}" for a in columns for b in columns if a < b
    ]
    asked_at_once(policy, queries, 3)
    names = [name for _, name, _ in stored(policy)]
    assert len(set(names)) == len(names), "something was measured twice"
    total = opened(policy).engine.prices.total  # type: ignore[attr-defined]
    assert sum(one.rho for one in ledger_of(policy).measurements()) <= total * (1 + 1e-9)
    replays(policy)


def test_who_waits_sees_what_the_other_measured(tmp_path: Path) -> None:
    """The second one measures nothing, whatever it knew when it began."""
    policy = policy_in(tmp_path)
    one, two = opened(policy), opened(policy, seed=2)
    known = two.engine.session()  # type: ignore[attr-defined]
    assert known.known == []
    first = one.query(COUNT).to_pylist()
    assert two.query(COUNT).to_pylist() == first
    assert len(stored(policy)) == 1


def test_two_ledgers_made_at_once_are_one(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    path = load_policy(policy).ledger
    one, two = Ledger(path), Ledger(path)
    one.make({}, "a")
    name = one.state()["id"]
    two.make({}, "b")
    assert two.state()["id"] == name
    assert [version.stamp for version in two.versions()] == ["a"]
    assert [file.name for file in tmp_path.glob("*.new")] == []
    assert path.stat().st_nlink == 1
