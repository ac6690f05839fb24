"""Answers that are constants of other questions: found once, kept in the ledger, and repeated from it alone."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from measured_guard import kgather, ledger_of, logged, opened, policy_in

from kgather._guard.measured.replay import Replay
from kgather._guard.policy import load_policy
from kgather._guard.refused import Refused

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross > (SELECT AVG(warcross) FROM ratings_wide)",
    "SELECT marital_status, COUNT(*) AS n FROM ratings_wide WHERE joy_ride >= "
    "(SELECT MEDIAN(joy_ride) FROM ratings_wide WHERE pachinko < (SELECT AVG(pachinko) FROM ratings_wide)) "
    "GROUP BY marital_status",
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross IN (SELECT warcross FROM ratings_wide GROUP BY warcross "
    "HAVING COUNT(*) > 20)",
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = "
    "(SELECT joy_ride FROM ratings_wide WHERE joy_ride IS NOT NULL GROUP BY joy_ride "
    "ORDER BY COUNT(*) DESC, joy_ride LIMIT 1)",
    "SELECT COUNT(*) FILTER (WHERE pachinko > (SELECT AVG(pachinko) FROM ratings_wide)) AS n, "
    "SUM(CASE WHEN warcross > (SELECT AVG(warcross) FROM ratings_wide) THEN salary ELSE 0 END) AS s FROM ratings_wide",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS m FROM ratings GROUP BY user_id "
    "HAVING COUNT(*) > (SELECT COUNT(*) / 100 FROM ratings_wide)) AS t",
    "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM ratings_wide "
    "WHERE warcross > (SELECT AVG(joy_ride) FROM ratings_wide)",
)


def repeated(policy: Path) -> list[str]:
    read = load_policy(policy)
    replay = Replay(ledger_of(policy), read.database)
    return [replay.repeated(entry).result for entry in replay.entries(iter(logged(policy)))]


def test_they_are_the_databases(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, budget={"epsilon": 1e7, "delta": 1e-6})
    guard = opened(policy)
    with duckdb.connect(tmp_path / "fixture.duckdb", read_only=True) as con:
        for sql in QUESTIONS[:5]:
            true = con.execute(sql).fetchall()
            told = [tuple(row.values()) for row in guard.query(sql).to_pylist()]
            assert sorted(map(str, told))[0][:8] == sorted(map(str, true))[0][:8]
            for row, other in zip(sorted(told, key=str), sorted(true, key=str), strict=True):
                for one, two in zip(row, other, strict=True):
                    assert one == two if isinstance(two, str) else float(one) == pytest.approx(float(two), rel=0.02)


def test_a_replay_gives_the_same_without_the_database(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, budget={"epsilon": 20.0, "delta": 1e-6})
    guard = opened(policy)
    for sql in (*QUESTIONS, *QUESTIONS[:2]):
        with suppress(Refused):
            guard.query(sql)
    (tmp_path / "fixture.duckdb").unlink()
    assert repeated(policy) == ["agrees"] * (len(QUESTIONS) + 2)


def test_a_constant_stays_as_it_was_first_told(tmp_path: Path) -> None:
    """Better answers to the inner question do not make new outer questions, which would be charged again."""
    policy = policy_in(tmp_path, budget={"epsilon": 300.0, "delta": 1e-6})
    guard = opened(policy)
    first = guard.query(QUESTIONS[0])
    before = len(ledger_of(policy).measurements())
    guard.query("SELECT city, AVG(warcross) AS m FROM ratings_wide GROUP BY city")  # tells more of the inner answer
    guard.query("SELECT marital_status, AVG(warcross) AS m FROM ratings_wide GROUP BY marital_status")
    between = len(ledger_of(policy).measurements())
    assert between > before
    guard.query(QUESTIONS[0])
    assert len(ledger_of(policy).measurements()) == between
    assert [one.kind for one in ledger_of(policy).measurements()].count("constant") == 1
    assert first.num_rows == 1
    # Another guard takes it from the ledger.
    opened(policy).query(QUESTIONS[0])
    assert len(ledger_of(policy).measurements()) == between
    assert set(repeated(policy)) == {"agrees"}


def test_a_constant_costs_nothing_itself_and_is_shown(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    told = guard.explain(QUESTIONS[0], cost=True)
    assert "an answer of its own" in told
    assert not ledger_of(policy).measurements()
    guard.query(QUESTIONS[0])
    (constant,) = [one for one in ledger_of(policy).measurements() if one.kind == "constant"]
    assert (constant.rho, constant.delta) == (0.0, 0.0)
    assert "costs nothing" in guard.explain(QUESTIONS[0], cost=True)
    assert guard.describe(QUESTIONS[0]).names == ["n"]
    code, text = kgather("ledger", "show", "--policy", policy)
    assert code == 0, text
    code, text = kgather("ledger", "replay", "--policy", policy)
    assert code == 0, text


def test_a_changed_constant_is_found_out(tmp_path: Path) -> None:
    """A constant that does not follow from what was measured before it cannot be replayed."""
    policy = policy_in(tmp_path)
    opened(policy).query(QUESTIONS[0])
    with sqlite3.connect(load_policy(policy).ledger) as con:
        (about,) = con.execute("select about from measurements where kind = 'constant'").fetchone()
        changed = json.loads(about)
        changed["values"] = [["float", "4.9"]]
        con.execute("update measurements set about = ? where kind = 'constant'", [json.dumps(changed)])
    assert repeated(policy) == ["cannot be replayed"]


def test_too_few_inside_is_too_few_outside(tmp_path: Path) -> None:
    guard = opened(policy_in(tmp_path))
    inner = "(SELECT AVG(joy_ride) FROM ratings_wide WHERE warcross = 99)"
    with pytest.raises(Refused) as told:
        guard.query(f"SELECT COUNT(*) FROM ratings_wide WHERE warcross > {inner}")
    assert told.value.code == "KG001"


def test_prepare_and_plan_know_them(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, prepare=[QUESTIONS[0]])
    guard = opened(policy)
    guard.engine.prepare()  # type: ignore[attr-defined]
    before = len(ledger_of(policy).measurements())
    assert before > 1
    guard.query(QUESTIONS[0])
    assert len(ledger_of(policy).measurements()) == before
    (tmp_path / "two").mkdir()
    assert opened(policy_in(tmp_path / "two")).workload(";".join(QUESTIONS))


def test_one_value_and_a_list_of_values_are_two_constants(tmp_path: Path) -> None:
    """What is known of IN is not taken for a comparison, which takes one value."""
    guard = opened(policy_in(tmp_path))
    inner = "(SELECT warcross FROM ratings_wide GROUP BY warcross HAVING COUNT(*) > 20)"
    guard.query(f"SELECT COUNT(*) FROM ratings_wide WHERE warcross IN {inner}")
    with pytest.raises(Refused, match="gives several rows"):
        guard.query(f"SELECT COUNT(*) FROM ratings_wide WHERE warcross = {inner}")


def test_they_stand_in_keys_and_arguments(tmp_path: Path) -> None:
    guard = opened(policy_in(tmp_path))
    sql = (
        "SELECT CASE WHEN warcross > (SELECT AVG(warcross) FROM ratings_wide) THEN 'much' ELSE 'little' END AS k, "
        "COUNT(*) AS n, SUM(salary - (SELECT AVG(salary) FROM ratings_wide)) AS s FROM ratings_wide GROUP BY 1"
    )
    assert guard.describe(sql).names == ["k", "n", "s"]
    assert {row["k"] for row in guard.query(sql).to_pylist()} == {"much", "little"}
    assert set(repeated(tmp_path / "policy.yml")) == {"agrees"}


def test_an_audit_knows_constants_and_what_is_no_number(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(QUESTIONS[0])
    guard.query(QUESTIONS[4])
    guard.query("SELECT MODE(warcross) AS m, HISTOGRAM(warcross) AS h, COUNT(DISTINCT warcross) AS n FROM ratings_wide")
    guard.query("SELECT HISTOGRAM(salary) AS h, MEDIAN(salary) AS m FROM ratings_wide")
    code, text = kgather("guard", "audit", "--policy", policy)
    assert code == 0, text
    assert "(QUANTILE_CONT)" in text
    assert "(HISTOGRAM" not in text
