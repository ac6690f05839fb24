"""What is measured, what it costs, and what decides about it: text, policy and earlier measurements, never rows."""

from pathlib import Path

import numpy as np
import pytest
from worlds_of_people import (
    GENEROUS,
    charged,
    engine_of,
    guarded,
    long_of,
    policy_of_raters,
    raters,
    rows_of,
    seeded,
    silent,
    write,
)

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.shares import RESERVE
from kgather._guard.refused import Refused

QUESTIONS = [
    "SELECT COUNT(*) FROM people WHERE f0 = 1",
    "SELECT f1, AVG(age) FROM people GROUP BY f1",
    "SELECT COUNT(*) FROM people WHERE f0 = 1 AND f1 > 2 AND (f2 = 3 OR f3 IS NULL)",
    "SELECT city, COUNT(*) FROM people GROUP BY city",
    "SELECT f0, f1, f2, COUNT(*) FROM people GROUP BY f0, f1, f2",
]


def _charges(guard: Guard) -> list[tuple[str, float, float, float]]:
    return [(one.name, one.rho, one.delta, one.sd) for one in engine_of(guard).ledger.measurements()]


@pytest.mark.parametrize("people", [2, 60])
def test_charges_do_not_depend_on_who_is_in_the_data(tmp_path: Path, people: int) -> None:
    """With values declared, everything about a measurement but its numbers follows from the text."""
    folders = [tmp_path / name for name in ("one", "other")]
    found = []
    for folder, frame in zip(folders, (raters(people, 4, 1), raters(3 * people, 4, 2)), strict=True):
        folder.mkdir()
        policy = policy_of_raters(4).replace("values: {", "values: {city: [Graz, Wien, Linz], ")
        guard = guarded(folder, {"people": frame}, policy, silent)
        for sql in QUESTIONS:
            rows_of(guard, sql)
        found.append(_charges(guard))
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_the_same_question_in_other_words_is_measured_once(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(100, 4, 1)}, policy_of_raters(4), seeded(1))
    texts = [
        "SELECT COUNT(*) FROM people WHERE f0 = 1 AND f1 >= 3 AND f2 = 2 AND f3 = 1",
        "SELECT COUNT(*) AS n FROM people p WHERE 1 = p.f3 AND (2 = f2 AND NOT f1 < 3) AND f0 = 1.0",
        "WITH t AS (SELECT f0, f1, f2, f3 FROM people WHERE f1 >= 3) "
        "SELECT COUNT(*) FROM t WHERE f0 = 1 AND f2 = 2 AND f3 = 1",
    ]
    spent = set()
    for sql in texts:
        rows_of(guard, sql)
        spent.add(charged(guard))
    assert len(spent) == 1
    assert spent != {0.0}


def test_the_cost_is_known_before_and_is_what_is_charged(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(100, 4, 1)}, policy_of_raters(4), seeded(1))
    for sql in QUESTIONS[:3]:
        told = guard.explain(sql, cost=True)
        before = charged(guard)
        rows_of(guard, sql)
        cost = charged(guard) - before
        assert f"{cost:.6f}" in told, told
        assert charged(guard) == pytest.approx(before + cost)


def test_asking_for_the_cost_measures_nothing(tmp_path: Path) -> None:
    guard = guarded(tmp_path, {"people": raters(100, 4, 1)}, policy_of_raters(4), seeded(1))
    guard.explain(QUESTIONS[3], cost=True)
    assert _charges(guard) == []


def test_the_budget_is_never_passed(tmp_path: Path) -> None:
    films = 6
    policy = policy_of_raters(films, budget="budget: {epsilon: 1, delta: 1.0e-6}")
    guard = guarded(tmp_path, {"people": raters(400, films, 1)}, policy, seeded(1))
    rng, refusals = np.random.default_rng(1), set()
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people") is not None
    for _ in range(45):
        parts = [
            f"f{film} {'<=' if rng.random() < 0.5 else '>'} {rng.integers(1, 5)}" for film in rng.permutation(films)[:5]
        ]
        try:
            guard.query(f"SELECT COUNT(*) FROM people WHERE {' OR '.join(parts)}")
        except Refused as refusal:
            refusals.add((refusal.code, refusal.static))
    assert charged(guard) <= engine_of(guard).prices.total * (1 + 1e-9)
    spent = charged(guard)
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people") is not None  # from what is measured, for ever
    assert charged(guard) == spent
    assert len(refusals) <= 2


def test_data_that_changed_are_not_measured_under_the_old_version(tmp_path: Path) -> None:
    people = raters(100, 2, 1)
    guard = guarded(tmp_path, {"people": people}, policy_of_raters(2, budget=GENEROUS), seeded(1))
    told = rows_of(guard, "SELECT COUNT(*) AS n FROM people")
    (tmp_path / "db.duckdb").unlink()
    write(tmp_path / "db.duckdb", {"people": people.head(50)})
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people") == told
    before = _charges(guard)
    with pytest.raises(InputError, match="ledger next"):
        guard.query("SELECT COUNT(*) FROM people WHERE f0 = 1")
    assert _charges(guard) == before
    engine_of(guard).next_version()
    assert rows_of(guard, "SELECT COUNT(*) AS n FROM people") == [{"n": 50}]


def test_rows_of_a_person_are_bounded_by_what_was_found(tmp_path: Path) -> None:
    """Where no rows_per_person is declared, it is a power of 2 that noisy counts give."""
    people = raters(300, 6, 1)
    long = long_of(people, 6)
    policy = f"""version: 1
database: db.duckdb
k: 5
{GENEROUS}
tables:
  ratings:
    privacy_unit: user_id
    grain: rows
    artifacts: [item_id, rating]
principals:
  a: {{}}
"""
    guard = guarded(tmp_path, {"ratings": long}, policy, silent)
    rows = rows_of(guard, "SELECT rating, COUNT(*) AS n FROM ratings GROUP BY rating") or []
    assert sum(row["n"] for row in rows) == pytest.approx(len(long), rel=0.05)
    session = engine_of(guard).session()
    most = session.rows_a_person("ratings")
    assert most in (4, 8)
    counts = long.groupby("user_id").size()
    assert (counts > most).mean() <= 0.26


@pytest.mark.parametrize("budget", ["", GENEROUS])
def test_bounds_that_are_found_hold_nearly_everybody(tmp_path: Path, budget: str) -> None:
    people = raters(2_000, 2, 1)
    policy = policy_of_raters(2, budget=budget).replace("    bounds: {salary: [0, 100000], age: [0, 100]}\n", "")
    guard = guarded(tmp_path, {"people": people}, policy, seeded(2))
    (row,) = rows_of(guard, "SELECT AVG(salary) AS m FROM people") or [{"m": None}]
    assert row["m"] == pytest.approx(people["salary"].mean(), rel=0.1)
    assert any(one.kind == "magnitudes" for one in engine_of(guard).ledger.measurements())


def test_nobody_uses_up_what_is_for_others(tmp_path: Path) -> None:
    """Any number of conditions of their own are measured from the reserve, and then from a part of the rest: half of
    what each kind of measurement has stays its own, at its own price."""
    guard = guarded(tmp_path, {"people": raters(300, 4, 1)}, policy_of_raters(4), seeded(1))
    prices, charges = engine_of(guard).prices, []
    while (offer := prices.offer(RESERVE, None, charges)) is not None:
        number = np.zeros(0, dtype=np.int64)
        charges.append(Measurement("counts", "x", offer.price, 0.0, 1.0, (), number, {"pool": offer.pool}))
    spent = sum(one.rho for one in charges)
    assert len(charges) > 100
    assert spent > prices.reserve
    assert prices.total - spent >= 0.5 * sum(prices.pools.values()) - 1e-9
    for pool, price in prices.of.items():
        found = prices.offer(pool, None, charges)
        assert found is not None
        assert found.price == price
