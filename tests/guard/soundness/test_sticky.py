"""Asking again, otherwise or anew tells nothing more: noise hangs on the set that is asked for, and on the key."""

import shutil
from pathlib import Path

import pytest
from oracle import decoded
from test_attacks import N, build, values

from kgather._guard.guard import Guard
from kgather._guard.refused import Refused

CLONES = (
    "p = 5 and q = 1",
    "q = 1 and p = 5",
    "(p = 5) is true and (q = 1) is true",
    "p >= 5 and q <= 1",
    "p + 0 = 5 and q in (1, 9)",
    "not (p <> 5 or q <> 1) and p is not null and q is not null",
    "case when p = 5 and q = 1 then true else false end",
    "case when p = 5 and q = 1 then true when r = 2 then null else false end",
    "case when p = 5 and q = 1 then true when s > 2 then null end",
    "coalesce(p, 0) = 5 and coalesce(q, 0) = 1",
)
WIDE = tuple(text.replace("p = 5", "p >= 4").replace("q = 1", "q <= 2") for text in CLONES[:2])


def told(guard: Guard, where: str) -> list[float]:
    row = guard.query(f"select sum(v0) as a, sum(v1) as b from w where {where}").to_pylist()[0]
    return decoded([row["a"], row["b"]], N).tolist()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path, values())


def cut(guard: Guard) -> None:
    """Cut as far as the tests go, so that what differs afterwards is noise alone."""
    for text in ("p", "q", "r", "s", "p >= 4", "q <= 2", "s > 2", "r = 2", "p = 5 and q = 1", "p >= 4 and q <= 2"):
        for _ in range(3):
            guard.query(f"select {text} as key, count(*) as n from w group by 1")


def test_one_set_in_many_ways(policy: Path) -> None:
    guard = Guard.from_policy(policy)
    cut(guard)
    for family in (CLONES, WIDE):
        found: list[list[float]] = []
        refusals = 0
        for where in family:
            try:
                found.append(told(guard, where))
            except Refused as refusal:
                refusals += not refusal.static
        assert (len(found), refusals) in ((0, len(family)), (len(family), 0))
        assert all(one == found[0] for one in found)


def test_asking_again_and_reconnecting(policy: Path) -> None:
    guard = Guard.from_policy(policy)
    cut(guard)
    wheres = ["p >= 4 and q <= 2", "r = 5 or s = 1", "p + q + r > 9", "t = 4"]
    for where in wheres:
        told(guard, where)
    for _ in range(3):
        for where in wheres:
            told(guard, where)
    first = [told(guard, where) for where in wheres]
    assert first == [told(guard, where) for where in wheres]
    assert first == [told(Guard.from_policy(policy), where) for where in wheres]


def answers(folder: Path, key: Path | None, wheres: list[str]) -> list[list[float]]:
    policy = build(folder, values())
    if key is not None:
        shutil.copy(key, folder / "ledger.duckdb.key")
    guard = Guard.from_policy(policy)
    return [told(guard, where) for where in wheres]


def test_another_key_gives_other_answers(tmp_path: Path) -> None:
    wheres = ["p >= 3", "p + q + r > 7", "q <= 2 or s >= 4", "least(p, q, r) >= 2 or t = 1", "p + s > 5", "r + t > 5"]
    one = answers(tmp_path / "one", None, wheres)
    key = tmp_path / "one" / "ledger.duckdb.key"
    assert answers(tmp_path / "same", key, wheres) == one
    others = [answers(tmp_path / f"other{at}", None, wheres) for at in range(3)]
    assert any(other != one for other in others)
