"""What is shown and told, and how: groups of enough people, numbers as precise as they are, one text for the rest."""

from pathlib import Path

import numpy as np
import pytest
from worlds_of_people import GENEROUS, charged, guarded, policy_of_raters, raters, rows_of, seeded, silent

from kgather._guard.guard import Guard
from kgather._guard.measured.answering import _told
from kgather._guard.refused import TOO_FEW, Refused

FEW = [
    "SELECT COUNT(*) FROM people WHERE f0 = 99",
    "SELECT AVG(age) FROM people WHERE f0 = 1 AND f1 = 1",
    "SELECT COUNT(*) FROM people WHERE f0 = 1 AND f1 = 1 AND f2 = 1 AND f3 = 1",
    "SELECT f1, COUNT(*) FROM people WHERE f0 = 1 AND f1 = 1 GROUP BY f1",
]


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A guard of people of whom two have f0 = 1, three f1 = 1, and one all of them."""
    people = raters(200, 4, 1, missing=0.0)
    for film in range(4):
        people[f"f{film}"] = people[f"f{film}"].where(people[f"f{film}"] > 1, 2)
    people.loc[:1, "f0"] = 1
    people.loc[:2, "f1"] = 1
    people.loc[0, ["f2", "f3"]] = 1
    return guarded(tmp_path, {"people": people}, policy_of_raters(4, k=5, budget=GENEROUS), seeded(1))


def test_too_few_and_nobody_are_refused_alike(guard: Guard) -> None:
    told = set()
    for sql in FEW:
        with pytest.raises(Refused) as refusal:
            guard.query(sql)
        told.add((str(refusal.value), refusal.value.code, refusal.value.static))
    assert len(told) == 1
    ((_, code, static),) = told
    assert (code, static) == (TOO_FEW, False)


def test_groups_of_fewer_than_k_are_not_shown(guard: Guard) -> None:
    rows = rows_of(guard, "SELECT f0, COUNT(*) AS n FROM people GROUP BY f0") or []
    assert {row["f0"] for row in rows} == {2, 3, 4, 5}


def test_what_is_not_shown_is_told_as_a_difference_only(guard: Guard) -> None:
    """The total includes the hidden group; both are measured, and neither is exact by itself."""
    (whole,) = rows_of(guard, "SELECT COUNT(*) AS n FROM people") or []
    parts = rows_of(guard, "SELECT f0, COUNT(*) AS n FROM people GROUP BY f0") or []
    assert whole["n"] - sum(row["n"] for row in parts) == 2  # noise is nothing here; with noise it is in both


def test_asking_again_tells_the_same_and_costs_nothing(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(300, 3, 1)}, policy_of_raters(3), seeded(1))
    sql = "SELECT f0, COUNT(*) AS n, AVG(age) AS m FROM people WHERE f1 >= 3 GROUP BY f0 ORDER BY f0"
    first, spent = rows_of(guard, sql), charged(guard)
    assert all(rows_of(guard, sql) == first for _ in range(5))
    assert charged(guard) == spent
    other = Guard(guard.policy, tmp_path, noise=silent)
    assert rows_of(other, sql) == first


@pytest.mark.parametrize(
    ("number", "function", "told"),
    [
        ((1234.567, 3.4), "COUNT", (1235, 3.4)),
        ((1234.567, 340.0), "COUNT", (1230, 340.0)),
        ((10.0, 20.0), "AVG", None),
        ((-10.0, 20.0), "AVG", None),
        ((float("nan"), 1.0), "AVG", None),
        ((1.0, float("inf")), "SUM", None),
        ((-3.0, 1.0), "COUNT", (0, 1.0)),
        ((12.3456, 0.123), "AVG", (12.35, 0.12)),
        ((0.1, 0.4), "CORR", (0.1, 0.4)),
        ((0.9, 0.6), "CORR", None),
        ((5.0, 0.0), "COUNT", (5, 0.0)),
        (None, "AVG", None),
    ],
)
def test_numbers_are_told_as_far_as_they_are_known(
    number: tuple[float, float] | None, function: str, told: tuple[float, float] | None
) -> None:
    assert _told(number, function) == told


def test_every_number_says_how_it_came_about(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(3_000, 4, 1)}, policy_of_raters(4), seeded(1))
    kinds = {}
    for name, sql in {
        "two": "SELECT COUNT(*) FROM people WHERE f0 >= 3 AND f1 >= 3",
        "three": "SELECT COUNT(*) FROM people WHERE f0 >= 3 AND f1 >= 3 AND f2 >= 2",
        "mean": "SELECT AVG(age) FROM people WHERE f0 >= 3 AND f1 >= 3",
        "four": "SELECT COUNT(*) FROM people WHERE f0 >= 2 AND f1 >= 2 AND f2 >= 2 AND f3 >= 2",
    }.items():
        (errors,) = guard.answer(sql, errors=True).errors.values()
        kinds[name] = errors["value_1_kind"].to_pylist()[0]
        assert errors["value_1_error"].to_pylist()[0] > 0
    assert kinds == {"two": "measured", "three": "modelled", "mean": "modelled", "four": "measured"}


def test_the_largest_and_smallest_value_are_refused_where_the_policy_does_not_list_them(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(100, 2, 1)}, policy_of_raters(2), seeded(1))
    with pytest.raises(Refused, match="aggregates in the policy would allow it") as refusal:
        guard.query("SELECT MAX(salary) FROM people")
    assert refusal.value.static


def test_groups_of_nobody_are_seldom_shown(tmp_path: Path) -> None:
    """Among many empty groups under the default budget."""
    people = raters(300, 2, 1)
    people["f0"] = people["f0"].fillna(3).clip(2, 4)
    shown = 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        policy = policy_of_raters(2).replace("f0: [1, 2, 3, 4, 5]", f"f0: {list(range(40))}")
        guard = guarded(folder, {"people": people}, policy, seeded(seed))
        rows = rows_of(guard, "SELECT f0, COUNT(*) AS n FROM people GROUP BY f0") or []
        shown += sum(row["f0"] not in (2, 3, 4) for row in rows)
    assert shown <= 4
    assert np.isfinite(shown)
