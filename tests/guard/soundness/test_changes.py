"""Rows come, go and change between questions. What was said before, less what is said now, tells of nobody."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from duck import insert
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import BITS, Oracle, decoded
from test_soundness import LONG

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

pytestmark = pytest.mark.long


@dataclass
class Diary:
    """A database that changes. people: user -> (a, b, cell of pay or None).

    Cells have numbers that are given once, and hold that power of two; `full` is a user's for ever."""

    folder: Path
    k: int
    people: dict[int, list[Any]] = field(default_factory=dict)
    cells: list[int] = field(default_factory=list)

    def pay(self, user: int) -> None:
        """A user gets a value, or another one."""
        if user in self.people and len(self.cells) < BITS:
            self.cells.append(user)
            self.people[user][2] = len(self.cells) - 1

    def enter(self, user: int, a: int, b: int | None) -> None:
        self.people[user] = [a, b, None]
        self.pay(user)

    def leave(self, user: int) -> None:
        self.people.pop(user, None)

    def write(self) -> None:
        """Put down what there is today."""
        people = [
            [user, a, b, 2.0**user, None if cell is None else 2.0**cell]
            for user, (a, b, cell) in sorted(self.people.items())
        ]
        path = self.folder / "diary.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect(path) as con:
            con.execute('create table people (user_id int, a int, b int, "full" double, pay double)')
            insert(con, "people", people)
        (self.folder / "policy.yml").write_text(f"""
version: 1
database: diary.duckdb
k: {self.k}
mode: exact
tables:
  people: {{privacy_unit: user_id, grain: unit, artifacts: [a, b], measures: ["full", pay]}}
principals: {{analyst: {{}}}}
""")

    def ask(self, guard: Guard, told: "Told", from_where: str) -> bool:
        """Ask for sums over people, and note their weights; whether there was an answer."""
        columns = ["full", "pay"]
        sums = ", ".join(f'sum("{column}")' for column in columns)
        try:
            answer = guard.query(f"select count(*) as n, {sums} from {from_where}")
        except Refused as refusal:
            if refusal.static:
                raise
            return False
        count, *found = (column[0].as_py() for column in answer.columns)
        for column, total in zip(columns, found, strict=True):
            if total is not None:
                weights = decoded([total], BITS)
                told.of[column].append(weights)
                if column != "pay" and count == weights.sum():
                    told.of[f"count {column}"].append(weights)
        return True


@dataclass
class Told:
    """Weights of answers, of columns and of counts."""

    of: dict[str, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))

    def check(self, diary: Diary) -> None:
        """Ask the oracle. Cells that there never was a user for are nobody's, and told of nowhere."""

        def filled(users: list[int]) -> list[int]:
            return users + [-1] * (BITS - len(users))

        cells = {"full": list(range(BITS)), "pay": filled(diary.cells)}
        oracle = Oracle(diary.k, cells | {f"count {name}": users for name, users in cells.items()})
        for name, answers in self.of.items():
            for weights in answers:
                oracle.hear(name, weights)
        oracle.check(untold_too=False)


def started(folder: Path, k: int = 5, n: int = 20, seed: int = 1) -> Diary:
    random = np.random.default_rng(seed)
    diary = Diary(folder, k)
    for user in range(n):
        diary.enter(user, int(random.integers(1, 4)), int(random.integers(1, 3)) if random.random() < 0.8 else None)
    diary.write()
    return diary


ALL = (
    "people",
    "people where a = 1",
    "people where a >= 2",
    "people where b is null",
)


def asked(diary: Diary, guard: Guard, told: Told) -> int:
    return sum(diary.ask(guard, told, text) for text in ALL)


Change = Callable[[Diary], None]


def came(users: range) -> Change:
    def change(diary: Diary) -> None:
        for user in users:
            diary.enter(user, 1, 1)

    return change


def left(users: range) -> Change:
    def change(diary: Diary) -> None:
        for user in users:
            diary.leave(user)

    return change


def paid(users: range) -> Change:
    def change(diary: Diary) -> None:
        for user in users:
            diary.pay(user)

    return change


def unpaid(diary: Diary) -> None:
    if 7 in diary.people:
        diary.people[7][2] = None


CHANGES = {
    "one comes": came(range(30, 31)),
    "six come": came(range(30, 36)),
    "one goes": left(range(7, 8)),
    "six go": left(range(6)),
    "one value changes": paid(range(7, 8)),
    "six values change": paid(range(6)),
    "one value goes": unpaid,
}


SECOND = ("one goes", "one value changes", "one comes")
CASES = [
    (first, second, anew)
    for at, first in enumerate(CHANGES)
    for place, second in enumerate(SECOND)
    for anew in (False, True)
    if LONG or (at % 3 == place and at % 2 == anew)
]


@pytest.mark.parametrize(("first", "second", "anew"), CASES)
def test_before_and_after(tmp_path: Path, first: str, second: str, anew: bool) -> None:
    diary, told = started(tmp_path), Told()
    guard = Guard.from_policy(tmp_path / "policy.yml")
    assert asked(diary, guard, told)
    for name in (first, second):
        CHANGES[name](diary)
        diary.write()
        if anew:
            guard = Guard.from_policy(tmp_path / "policy.yml")
        asked(diary, guard, told)
    told.check(diary)


@pytest.mark.parametrize("text", ["people", "people where a >= 2", "people where b = 1"])
def test_one_comes_after_a_question_that_cut_nothing(tmp_path: Path, text: str) -> None:
    diary, told = started(tmp_path), Told()
    diary.ask(Guard.from_policy(tmp_path / "policy.yml"), told, text)
    for user in (30, 31):
        diary.enter(user, 1, 1)
        diary.write()
        diary.ask(Guard.from_policy(tmp_path / "policy.yml"), told, text)
    told.check(diary)


def test_new_users_are_counted_when_there_are_k(tmp_path: Path) -> None:
    diary = started(tmp_path)
    guard = Guard.from_policy(tmp_path / "policy.yml")

    def count() -> int:
        return guard.query("select count(*) as n from people")["n"][0].as_py()

    counts = [count()]
    for user in range(30, 40):
        diary.enter(user, 1, 1)
        diary.write()
        counts.append(count())
    # 20 users, then five more at once, twice.
    assert counts == [20] * 5 + [25] * 5 + [30]


def test_what_did_not_change_is_still_answered(tmp_path: Path) -> None:
    diary = started(tmp_path, n=36)
    path = tmp_path / "policy.yml"
    guard = Guard.from_policy(path)
    before = guard.query('select a, count(*) as n, sum("full") as s, sum(pay) as p from people group by a')
    paid(range(7, 8))(diary)
    diary.write()
    after = Guard.from_policy(path).query(
        'select a, count(*) as n, sum("full") as s, sum(pay) as p from people group by a'
    )
    assert after.select(["a", "n", "s"]).equals(before.select(["a", "n", "s"]))
    # Only the sum that the one value is in is told no more.
    gone = diary.people[7][0]
    told = dict(zip(before["a"].to_pylist(), before["p"].to_pylist(), strict=True))
    assert dict(zip(after["a"].to_pylist(), after["p"].to_pylist(), strict=True)) == told | {gone: None}


@settings(max_examples=max(LONG // 2, 4), deadline=None, derandomize=not LONG, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nobody_is_singled_out_by_changes(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("diary")
    diary = started(folder, k=data.draw(st.integers(2, 5)), n=16, seed=data.draw(st.integers(0, 99)))
    guard, told = Guard.from_policy(folder / "policy.yml"), Told()
    whole = st.integers(1, 3)
    for _ in range(data.draw(st.integers(2, 12 if LONG else 4))):
        for _ in range(data.draw(st.integers(0, 3))):
            condition = f"a {data.draw(st.sampled_from(('=', '>', '<>')))} {data.draw(whole)}"
            more = f"{data.draw(st.sampled_from(('and', 'or')))} b {data.draw(st.sampled_from(('= 1', 'is null')))}"
            where = data.draw(
                st.sampled_from(("people", f"people where {condition} {more}", f"people where {condition}"))
            )
            diary.ask(guard, told, where)
        users = sorted(diary.people)
        for _ in range(data.draw(st.integers(0, 7))):
            user = data.draw(st.sampled_from(users))
            kind = data.draw(st.sampled_from(("enter", "enter", "leave", "pay", "unpay", "move")))
            if kind == "enter" and (new := max(users) + 1) < BITS and new not in diary.people:
                diary.enter(new, data.draw(whole), data.draw(whole))
            elif user not in diary.people:
                continue
            elif kind == "leave":
                diary.leave(user)
            elif kind == "pay":
                diary.pay(user)
            elif kind == "unpay":
                diary.people[user][2] = None
            elif kind == "move":
                diary.people[user][0] = data.draw(whole)
        diary.write()
        if data.draw(st.booleans()):
            guard = Guard.from_policy(folder / "policy.yml")
    told.check(diary)
