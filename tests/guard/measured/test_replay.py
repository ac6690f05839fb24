"""Whatever was told follows from the ledger, without the database."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_guard import EXACT, change_data, kgather, ledger_of, logged, opened, policy_in

from kgather._guard.audit_log import AuditLog, digest, plain, read_log, valued
from kgather._guard.broken_lines import broken_lines
from kgather._guard.guard import Guard
from kgather._guard.measured.replay import Repeated, Replay
from kgather._guard.measured.terms import digest_of, read, written
from kgather._guard.policy import load_policy
from kgather._guard.refused import Refused
from kgather._guard.warehouse import Warehouse

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM ratings_wide",
    "SELECT city, COUNT(*) AS n, AVG(salary) AS m FROM ratings_wide GROUP BY city",
    "SELECT AVG(salary) AS m FROM ratings_wide WHERE warcross >= 4 AND pachinko <= 3",
    "SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross = 99",
    "SELECT item_id, AVG(rating) AS m FROM ratings GROUP BY item_id",
    "SELECT COUNT(*) AS n FROM ratings_wide",
)
WITH_PUBLIC = "SELECT items.genre, COUNT(*) FROM ratings JOIN items ON ratings.item_id = items.item_id GROUP BY 1"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy whose questions were asked."""
    policy = policy_in(tmp_path_factory.mktemp("replay"))
    guard = opened(policy)
    for sql in QUESTIONS:
        try:
            guard.query(sql)
        except Refused:
            assert "99" in sql
    guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= ?", parameters=[3])
    with pytest.raises(Refused, match="rows of people"):
        guard.query("SELECT salary FROM ratings_wide")
    return policy


def copied(policy: Path, folder: Path) -> Path:
    """The same, to be changed."""
    for name in ("fixture.duckdb", "ledger.sqlite", "audit.jsonl", "policy.yml"):
        (folder / name).write_bytes((policy.parent / name).read_bytes())
    return folder / "policy.yml"


def replayed(policy: Path) -> list[Repeated]:
    read = load_policy(policy)
    assert read.audit_log is not None
    again = Replay(ledger_of(policy), Warehouse.of(read))
    return [again.repeated(entry) for entry in again.entries(read_log(read.audit_log))]


def test_every_answer_and_refusal_follows_without_the_database(policy: Path, tmp_path: Path) -> None:
    alone = copied(policy, tmp_path)
    (tmp_path / "fixture.duckdb").unlink()
    found = replayed(alone)
    assert [one.result for one in found] == ["agrees"] * (len(QUESTIONS) + 1)
    assert {one.entry["decision"] for one in found} == {"answered", "refused"}


@pytest.mark.slow
def test_answers_do_not_depend_on_the_order_of_sets(policy: Path) -> None:
    """Another process hashes texts in another way."""
    for seed in ("1", "2"):
        run = "from kgather._cli.app import main; main()"
        command = [sys.executable, "-c", run, "ledger", "replay", "--policy", str(policy)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert (done.returncode, done.stdout) == (0, "7 agree, 0 disagree\n"), done.stderr


def test_the_command_counts(policy: Path) -> None:
    assert kgather("ledger", "replay", "--policy", policy) == (0, "7 agree, 0 disagree\n")
    _, told = kgather("ledger", "replay", "--json", "--policy", policy)
    assert json.loads(told) == {
        "agrees": 7,
        "disagrees": 0,
        "cannot be replayed": 0,
        "of another ledger": 0,
        "broken lines": [],
        "others": [],
    }


def test_a_changed_number_is_found(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as con, con:
        (numbers,) = con.execute("select numbers from measurements where number = 1").fetchone()
        more = np.frombuffer(numbers, dtype="<i8") + 50
        con.execute("update measurements set numbers = ? where number = 1", [more.tobytes()])
    code, told = kgather("ledger", "replay", "--policy", changed)
    assert code == 3
    assert "answers do not follow from the ledger" in told
    assert "disagrees: the ledger gives another answer: SELECT COUNT(*) AS n FROM ratings_wide\n" in told


def test_an_answer_that_was_none_is_found(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    log = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    refused = next(at for at, line in enumerate(lines) if line["decision"] == "refused")
    lines[refused] |= {"decision": "answered", "answer": "0"}
    lines[0] |= {"decision": "refused", "code": "KG001", "rule": "too_few"}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = replayed(changed)
    assert [one.result for one in found].count("disagrees") == 2
    assert {one.why for one in found} >= {
        "the ledger gives a refusal (too_few)",
        "it was refused (too_few), and the ledger gives an answer",
    }


def test_files_that_were_set_aside_are_read(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    log = tmp_path / "audit.jsonl"
    first, *rest = log.read_text().splitlines(keepends=True)
    (tmp_path / "audit.jsonl.10").write_text(first)
    (tmp_path / "audit.jsonl.2").write_text(rest[0])
    (tmp_path / "audit.jsonl.lock").touch()
    (tmp_path / "audit.jsonl.old").write_text("{}")
    log.write_text("".join(rest[1:]) + '{"at": "2024')
    texts = [entry["text"] for entry in read_log(log)]
    assert texts == [line["text"] for line in logged(policy)]
    code, told = kgather("ledger", "replay", "--policy", changed)
    assert (code, told.splitlines()[0]) == (0, "7 agree, 0 disagree")


def test_broken_lines_are_said(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    log = tmp_path / "audit.jsonl"
    first, second, *rest = log.read_text().splitlines(keepends=True)
    (tmp_path / "audit.jsonl.1").write_text(first + second.replace('"at"', "at"))
    log.write_text("".join(rest[:-1]) + "[]\n\n" + rest[-1] + rest[0][:99])
    code, told = kgather("ledger", "replay", "--policy", changed)
    assert code == 0
    lines = told.splitlines()
    assert lines[0] == "6 agree, 0 disagree"
    places = f"{tmp_path / 'audit.jsonl.1'}:2, {log}:{len(rest)}"
    assert lines[1].startswith(
        f"2 lines of the audit log cannot be read and were left out: {places}. What was answered"
    )
    assert lines[2].startswith("1 line of the audit log ends too early, as after a kill, and was left out: ")
    assert f"{log}:{len(rest) + 3}. Nothing was answered then." in lines[2]
    _, found = kgather("ledger", "replay", "--json", "--policy", changed)
    assert len(json.loads(found)["broken lines"]) == 3
    _, audited = kgather("guard", "audit", "--policy", changed)
    assert all(line in audited for line in lines[1:3])


@given(st.integers(1, 10_000))
def test_every_beginning_of_an_entry_is_known_as_one(policy: Path, end: int) -> None:
    line = json.dumps(logged(policy)[1] | {"rest": [True, False, None, -1.5e-9, "\u00fc\\ \n", {}]})
    with TemporaryDirectory() as folder:
        log = Path(folder) / "audit.jsonl"
        log.write_text(line[: min(end, len(line) - 1)])
        (broken,) = broken_lines(log)
    assert (broken.cut_off, broken.line, broken.before) == (True, 1, 0)


def test_a_log_that_is_missing_is_not_said_never_to_have_been(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    (tmp_path / "audit.jsonl").unlink()
    code, told = kgather("ledger", "replay", "--policy", changed)
    assert (code, "bring back its files" in told, "nothing was answered" in told) == (2, True, False)
    _, told = kgather("guard", "audit", "--policy", changed)
    assert "What was answered is not known: bring back its files." in told


def test_after_half_a_line_comes_a_whole_one(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    (tmp_path / "audit.jsonl").write_text('{"at": "2024')
    ledger = policy_in(tmp_path, audit_log=None)
    guard = opened(ledger)
    guard._log = AuditLog(tmp_path / "audit.jsonl")
    guard.query(QUESTIONS[0])
    assert [entry["text"] for entry in read_log(tmp_path / "audit.jsonl")] == [QUESTIONS[0]]
    assert policy == ledger


def test_public_tables_are_told_by_their_checksum(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(WITH_PUBLIC)
    (entry,) = logged(policy)
    assert list(entry["public"]) == ["items"]
    assert [one.result for one in replayed(policy)] == ["agrees"]
    # In another order they are the same.
    change_data(policy, "create table i as from items order by title; delete from items; insert into items from i")
    assert [one.result for one in replayed(policy)] == ["agrees"]
    change_data(policy, "update items set genre = 'other' where item_id = 6")
    (found,) = replayed(policy)
    assert (found.result, found.why) == ("cannot be replayed", "the public table items is another one now")
    (tmp_path / "fixture.duckdb").unlink()
    (found,) = replayed(policy)
    assert (found.result, found.why) == ("cannot be replayed", "the public table items cannot be read now")
    code, told = kgather("ledger", "replay", "--policy", policy)
    assert code == 0
    assert "1 cannot be replayed" in told


def test_a_policy_that_was_changed_since_does_not_matter(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    text = changed.read_text().replace("k: 5", "k: 60")
    assert text != changed.read_text()
    changed.write_text(text)
    guard = opened(changed)
    guard.query(QUESTIONS[0])
    with pytest.raises(Refused):
        guard.query("SELECT COUNT(*) AS n FROM ratings_wide WHERE warcross >= ?", parameters=[5])
    assert {one.result for one in replayed(changed)} == {"agrees"}
    assert len({entry["terms"] for entry in logged(changed) if "terms" in entry}) == 2


def test_versions_of_the_data_are_kept_apart(tmp_path: Path) -> None:
    """The same question after the next version began is measured anew, and both answers follow."""
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(QUESTIONS[1])
    change_data(policy, "delete from ratings_wide where user_id <= 100")
    assert kgather("ledger", "next", "--policy", policy)[0] == 0
    guard.query(QUESTIONS[1])
    guard.query(QUESTIONS[0])
    assert [entry["version"] for entry in logged(policy)] == [1, 2, 2]
    assert logged(policy)[0]["answer"] != logged(policy)[1]["answer"]
    assert [one.result for one in replayed(policy)] == ["agrees"] * 3


def test_another_ledger_is_not_replayed(policy: Path, tmp_path: Path) -> None:
    changed = copied(policy, tmp_path)
    assert kgather("ledger", "new", "--yes", "--policy", changed)[0] == 0
    code, told = kgather("ledger", "replay", "--policy", changed)
    assert (code, told.splitlines()[0]) == (0, "0 agree, 0 disagree")
    assert "7 entries of the audit log are of another ledger, and are not repeated: what was told from that" in told
    assert json.loads(kgather("ledger", "replay", "--json", "--policy", changed)[1])["of another ledger"] == 7
    assert "7 entries of the audit log are of another" in kgather("guard", "audit", "--policy", changed)[1]
    opened(changed).query(QUESTIONS[0])
    assert kgather("ledger", "replay", "--policy", changed)[1].startswith("1 agree, 0 disagree\n7 entries of the")


def test_an_answer_of_many_parts_comes_from_one_state(tmp_path: Path) -> None:
    """What is measured in the middle of an answer is in all of its numbers."""
    policy = policy_in(tmp_path)
    guard = opened(policy)
    first = guard.query(QUESTIONS[2]).to_pylist()
    assert guard.query(QUESTIONS[2]).to_pylist() == first
    assert opened(policy, seed=9).query(QUESTIONS[2]).to_pylist() == first
    entries = logged(policy)
    assert len({entry["answer"] for entry in entries}) == 1
    assert len(entries[0]["measured"]) > 3
    assert [entry["measured"] for entry in entries[1:]] == [[], []]


@pytest.mark.parametrize(
    "value",
    [None, True, False, 7, -1.5e-9, "x 'y'", Decimal("1.50"), date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4)],
)
def test_parameters_are_read_as_they_were(value: object) -> None:
    (found,) = valued(json.loads(json.dumps(plain([value]))))
    assert (type(found), found) == (type(value), value)
    assert valued(json.loads(json.dumps(plain({"name": value})))) == {"name": value}


def test_terms_are_read_as_they_were(policy: Path) -> None:
    catalog = opened(policy).catalog
    text = written(catalog)
    again = read(text)
    assert written(again) == text
    assert again.tables == catalog.tables
    assert again.uniques == catalog.uniques
    assert again.policy.tables["ratings_wide"].pivot_of == catalog.policy.tables["ratings_wide"].pivot_of
    assert str(policy.parent) not in text
    assert digest_of(text) == logged(policy)[0]["terms"]


def test_a_checksum_tells_rows_apart_and_not_their_order() -> None:
    table = pa.table({"a": [1, 2], "b": [0.1, None]})
    assert digest(table) == digest(table.take([1, 0]))
    assert digest(table) == digest(pa.table({"a": [1, 2], "b": [0.1 + 1e-13, None]}))
    others = [
        pa.table({"a": [1, 2], "b": [0.1001, None]}),
        pa.table({"a": [2, 1], "b": [0.1, None]}),
        pa.table({"a": [1, 2], "c": [0.1, None]}),
        pa.table({"a": [1, 2, 2], "b": [0.1, None, None]}),
        pa.table({"a": [1, 2], "b": [0.1, 0.0]}),
    ]
    assert len({digest(other) for other in [table, *others]}) == 6


def test_modes_without_measurements_have_nothing_to_replay(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **EXACT)
    code, told = kgather("ledger", "replay", "--policy", policy)
    assert code == 2
    assert told.startswith("the policy has mode exact.")


def test_without_an_audit_log_there_is_nothing_to_compare(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, audit_log=None)
    Guard.from_policy(policy)
    code, told = kgather("ledger", "replay", "--policy", policy)
    assert code == 2
    assert "names no audit_log" in told
    code, told = kgather("ledger", "replay", "--policy", policy_in(tmp_path))
    assert code == 2
    assert "does not exist yet: nothing was answered" in told
