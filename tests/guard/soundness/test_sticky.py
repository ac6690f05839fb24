"""Asking again, otherwise or anew tells nothing more: what decides is the set that is asked for, not how."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from oracle import decoded
from test_attacks import CARRIED, SUMS, N, build, values

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
MANY = ("p >= 3", "p > 2", "not (p < 3)", "p in (3, 4, 5)", "(p < 3) is false", "coalesce(p, 0) >= 3")


def told(guard: Guard, where: str) -> list[float]:
    [row] = guard.query(f"select {SUMS} from w where {where}").to_pylist()
    return decoded([row[name] for name in CARRIED], N).tolist()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path, values())


def answers(guard: Guard, wheres: Sequence[str]) -> list[list[float] | None]:
    """What is told under each condition, None where it is refused."""
    found: list[list[float] | None] = []
    for where in wheres:
        try:
            found.append(told(guard, where))
        except Refused as refusal:
            if refusal.static:
                raise
            found.append(None)
    return found


@pytest.mark.parametrize("family", [CLONES, WIDE, MANY], ids=["few", "some", "many"])
def test_one_set_in_many_ways(policy: Path, family: tuple[str, ...]) -> None:
    found = answers(Guard.from_policy(policy), family)
    assert all(one == found[0] for one in found)
    assert found[0] is not None or family is CLONES


def test_asking_again_and_reconnecting(policy: Path) -> None:
    guard = Guard.from_policy(policy)
    wheres = ["p >= 4 and q <= 2", "r = 5 or s = 1", "p + q + r > 9", "t = 4"]
    first = answers(guard, wheres)
    assert sum(one is not None for one in first) >= 2
    for _ in range(3):
        assert answers(guard, wheres) == first
    assert answers(Guard.from_policy(policy), wheres) == first
