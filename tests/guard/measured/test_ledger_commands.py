"""`kgather ledger` and `kgather explain --cost` in mode measured: what is charged stays charged."""

import json
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from measured_guard import EXACT, change_data, kgather, ledger_of, logged, opened, policy_in, seeded

from kgather._errors import InputError
from kgather._guard.audit_log import AuditLog, Rotation
from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import delta_of, epsilon_of
from kgather._guard.measured.database import Database
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.ledger import LOST
from kgather._guard.policy import load_policy

COUNT = "SELECT COUNT(*) AS n FROM ratings_wide"
BY_CITY = "SELECT city, COUNT(*) AS n FROM ratings_wide GROUP BY city"
BY_EDUCATION = "SELECT education, COUNT(*) AS n FROM ratings_wide GROUP BY education"


def charged(policy: Path) -> float:
    return sum(one.rho for one in ledger_of(policy).measurements())


def copy_of(policy: Path) -> Path:
    copy = policy.parent / "copy.sqlite"
    code, told = kgather("ledger", "backup", "--policy", policy, "--out", copy)
    assert code == 0, told
    return copy


# show


def test_the_guarantee_so_far_by_hand() -> None:
    """rho 0.5 at delta 1e-6: epsilon is where the conversion gives that delta, and less than the simple bound."""
    found = epsilon_of(0.5, 1e-6)
    assert delta_of(0.5, found) == pytest.approx(1e-6, rel=1e-6)
    assert 4.5 < found < 0.5 + 2 * (0.5 * 13.816) ** 0.5
    assert epsilon_of(0.0, 1e-6) == 0.0
    assert epsilon_of(1.0, 1e-6) > found


def test_show_says_what_is_charged_and_what_is_left(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(BY_CITY)
    code, told = kgather("ledger", "show", "--json", "--policy", policy)
    assert code == 0
    found = json.loads(told)
    of_keys, of_counts = found["charges"][:2]
    assert (of_keys["kind"], of_keys["pool"], of_keys["lost"]) == ("keys", "keys", False)
    assert found["spent"] == pytest.approx(sum(one["rho"] for one in found["charges"]))
    assert found["left"] == pytest.approx(found["rho"] - found["spent"])
    assert found["told_delta"] == pytest.approx(0.8e-6 + sum(one["delta"] for one in found["charges"]))
    assert found["told_epsilon"] == pytest.approx(epsilon_of(found["spent"], 0.8e-6))
    assert sum(pool["rho"] for pool in found["pools"]) == pytest.approx(found["rho"])
    spent = {pool["name"]: pool["spent"] for pool in found["pools"] if pool["spent"]}
    by_pool = {of_keys["pool"]: of_keys["rho"], of_counts["pool"]: of_counts["rho"]}
    assert {name: spent[name] for name in by_pool} == pytest.approx(by_pool)
    assert [version["number"] for version in found["versions"]] == [1]
    _, told = kgather("ledger", "show", "--policy", policy)
    assert re.search(r"budget: epsilon 2000, delta 1e-06", told)
    assert "It buys " in told
    assert "the values of ratings_wide.city" in told
    assert "keys of people" not in told
    assert (of_keys["name"], of_keys["told"]) == (
        'keys of people: "ratings_wide"."city"',
        "the values of ratings_wide.city",
    )
    assert f"left: rho {found['left']:.6f}" in told


def test_show_reads_no_database(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    (tmp_path / "fixture.duckdb").unlink()
    assert kgather("ledger", "show", "--policy", policy)[0] == 0


def test_show_without_a_ledger(tmp_path: Path) -> None:
    code, told = kgather("ledger", "show", "--policy", policy_in(tmp_path))
    assert (code, told.endswith("does not exist yet: nothing was told.")) == (2, True)


def test_a_ledger_that_is_missing_is_not_said_never_to_have_been(tmp_path: Path) -> None:
    """The audit log says that there was one."""
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    (tmp_path / "ledger.sqlite").unlink()
    why = f"{tmp_path / 'ledger.sqlite'} is missing, and {tmp_path / 'audit.jsonl'} says that questions were answered."
    for command in (["show"], ["replay"], ["backup", "--out", tmp_path / "copy"]):
        code, told = kgather("ledger", *command, "--policy", policy)
        assert (code, told.startswith(why)) == (2, True), command
        assert "kgather ledger restore" in told
        assert "nothing was told" not in told
    with pytest.raises(InputError, match=re.escape(why)):
        opened(policy)
    code, told = kgather("guard", "audit", "--policy", policy)
    assert (code, why in told, "nothing was" in told) == (0, True, False)


def test_a_ledger_of_another_mode_that_is_missing(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **EXACT)
    code, told = kgather("ledger", "show", "--policy", policy)
    assert (code, told.endswith("does not exist yet: nothing was told.")) == (2, True)
    Guard.from_policy(policy).query("SELECT COUNT(*) FROM users")
    (tmp_path / "ledger.duckdb").unlink()
    code, told = kgather("ledger", "show", "--policy", policy)
    assert (code, "is missing, and" in told, "nothing was told" in told) == (2, True, False)


def test_show_of_another_mode_is_as_it_was(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **EXACT)
    Guard.from_policy(policy).query("SELECT COUNT(*) FROM users")
    code, told = kgather("ledger", "show", "--policy", policy)
    assert code == 0
    assert told.startswith("k = 5, ")


@pytest.mark.parametrize("arguments", [["next"], ["backup", "--out", "x"], ["restore", "x"], ["new", "--yes"]])
def test_of_another_mode_the_rest_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    code, told = kgather("ledger", *arguments, "--policy", policy_in(tmp_path, **EXACT))
    assert code == 2
    assert told.startswith("the policy has mode exact. This is for ledgers of mode measured")


# explain --cost


def test_cost_reads_no_row_and_is_what_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_in(tmp_path, prepare=[BY_EDUCATION])
    with monkeypatch.context() as patched:
        patched.setattr(Database, "reading", lambda _: pytest.fail("rows of people were read"))
        code, told = kgather("explain", "--cost", "--policy", policy, BY_CITY)
    assert code == 0
    assert ledger_of(policy).measurements() == [], "what the policy prepares was measured"
    prices = [float(price) for price in re.findall(r"^-- measures .*: rho ([0-9.]+) \(", told, re.M)]
    (total,) = re.findall(r"^-- costs rho ([0-9.]+) in all", told, re.M)
    assert sum(prices) == pytest.approx(float(total), abs=1e-5)
    assert told.endswith("-- the budget pays for it\n")
    before = opened(policy)
    prepared = charged(policy)
    assert prepared > 0
    before.query(BY_CITY)
    assert charged(policy) - prepared == pytest.approx(float(total), abs=1e-5)
    _, told = kgather("explain", "--cost", "--policy", policy, BY_CITY)
    assert "-- costs nothing: all that it needs was measured before" in told


def test_cost_says_what_the_budget_does_not_pay_for(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, budget={"epsilon": 1.0, "delta": 1e-6}, audit_log=None)
    guard = opened(policy)
    total = guard.engine.prices.total  # type: ignore[attr-defined]
    charge = {"number": 1, "version": 1, "kind": "counts", "name": "all", "pool": "ones", "rho": total, "delta": 0.0}
    ledger_of(policy).add_lost([charge])
    told = guard.explain(COUNT, cost=True)
    assert "-- CANNOT PAY for people by whether there is a row of ratings_wide\n" in told
    assert "the budget does not pay for 1 of 1" in told
    assert "of 0.000000 that is left" in told


def test_cost_of_another_mode(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **EXACT)
    _, told = kgather("explain", "--cost", "--policy", policy, "SELECT COUNT(*) FROM users")
    assert told.endswith("-- mode exact has no budget\n")
    _, told = kgather("explain", "--policy", policy, "SELECT COUNT(*) FROM users")
    assert "budget" not in told


# next


def test_next_is_refused_where_nothing_changed(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    before = charged(policy)
    code, told = kgather("ledger", "next", "--policy", policy)
    assert code == 2
    assert "was not changed since" in told
    assert len(ledger_of(policy).versions()) == 1
    code, told = kgather("ledger", "next", "--force", "--policy", policy)
    assert code == 0
    assert "version 2 of the data" in told
    assert charged(policy) == before


def test_next_lets_changed_data_be_asked_and_charges_go_on(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    told = guard.query(COUNT).to_pylist()
    once = charged(policy)
    change_data(policy, "delete from ratings_wide where user_id <= 150")
    assert guard.query(COUNT).to_pylist() == told
    with pytest.raises(InputError, match="kgather ledger next"):
        guard.query(BY_CITY)
    assert kgather("ledger", "next", "--policy", policy)[0] == 0
    assert guard.query(COUNT).to_pylist()[0]["n"] < told[0]["n"] - 100
    assert charged(policy) == pytest.approx(2 * once)


def test_a_guard_that_runs_follows_to_changed_public_tables(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    genres = "SELECT items.genre, COUNT(*) FROM ratings JOIN items ON ratings.item_id = items.item_id GROUP BY 1"
    assert "sf" in guard.query(genres)["genre"].to_pylist()
    change_data(policy, "update items set genre = 'other' where genre = 'sf'")
    assert kgather("ledger", "next", "--policy", policy)[0] == 0
    assert {"sf", "other"} & {*guard.query(genres)["genre"].to_pylist()} == {"other"}
    assert kgather("ledger", "replay", "--policy", policy)[1].startswith("1 agree, 0 disagree\n1 cannot be replayed")


# backup and restore


def test_a_copy_is_whole_and_its_owners_only(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    with ledger_of(policy).measuring():  # somebody measures
        copy = copy_of(policy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as con:
        assert con.execute("select count(*) from measurements").fetchone() == (1,)
    code, told = kgather("ledger", "backup", "--policy", policy, "--out", copy)
    assert (code, "exists. Name a file that does not" in told) == (2, True)
    code, told = kgather("ledger", "backup", "--policy", policy, "--out", tmp_path / "no" / "copy")
    assert (code, "cannot be written: No such file or directory" in told) == (2, True)
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite"]


def test_an_older_copy_in_place_of_the_ledger_stops_the_start(tmp_path: Path) -> None:
    """Put there by hand, it forgets what was spent since; the audit log knows of it."""
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(COUNT)
    copy = copy_of(policy)
    guard.query(BY_CITY)
    (tmp_path / "ledger.sqlite").write_bytes(copy.read_bytes())
    with pytest.raises(InputError, match=r"it is an older copy.*kgather ledger restore"):
        opened(policy)
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 0, told
    opened(policy).query(COUNT)


def test_restored_charges_count_and_tell_nothing(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(COUNT)
    copy = copy_of(policy)
    guard.query(BY_CITY)
    before, kinds = charged(policy), [one.kind for one in ledger_of(policy).measurements()]
    delta = guard.engine.prices.delta_of_next(ledger_of(policy).measurements())  # type: ignore[attr-defined]
    (tmp_path / "ledger.sqlite").unlink()
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 0, told
    assert f"{len(kinds) - 1} measurements since are lost" in told
    found = ledger_of(policy).measurements()
    assert charged(policy) == pytest.approx(before)
    assert [one.kind for one in found] == [kinds[0], *[LOST] * (len(kinds) - 1)]
    assert [one.charged_as for one in found] == kinds
    assert [one.number for one in found] == [*range(1, len(kinds) + 1)]
    assert stat.S_IMODE((tmp_path / "ledger.sqlite").stat().st_mode) == 0o600
    # Life goes on: what is lost is measured, and paid for, again.
    again = opened(policy, seed=5)
    assert again.engine.prices.delta_of_next(found) == delta  # type: ignore[attr-defined]
    again.query(COUNT)
    assert charged(policy) == pytest.approx(before)
    again.query(BY_CITY)
    assert charged(policy) > before
    # What was told of lost numbers cannot be given again, all else can.
    assert kgather("ledger", "replay", "--policy", policy)[1].startswith("3 agree, 0 disagree\n1 cannot be replayed")
    _, told = kgather("ledger", "show", "--policy", policy)
    assert "people by ratings_wide.city (lost)" in told
    with pytest.raises(InputError, match="was replaced by another one"):
        guard.query(BY_EDUCATION)


def test_restoring_twice_keeps_lost_charges(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    copy = copy_of(policy)
    guard.query(COUNT)
    for _ in range(2):
        (tmp_path / "ledger.sqlite").unlink()
        assert kgather("ledger", "restore", copy, "--policy", policy)[0] == 0
        opened(policy).query(BY_CITY)
    before = charged(policy)
    (tmp_path / "ledger.sqlite").write_bytes(b"broken")
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 0
    assert "The ledger that was there is" in told
    assert charged(policy) == pytest.approx(before)
    assert {one.kind for one in ledger_of(policy).measurements()} == {LOST}


def test_a_gap_in_the_log_is_refused(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    copy = copy_of(policy)
    guard.query(COUNT)
    guard.query(BY_CITY)
    log = tmp_path / "audit.jsonl"
    first, second = log.read_text().splitlines(keepends=True)
    log.write_text(second)
    (tmp_path / "ledger.sqlite").rename(tmp_path / "away")
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 2
    assert "it ends with measurement 0, and what measurement 1 cost is not in the audit log" in told
    assert not (tmp_path / "ledger.sqlite").exists()
    # The last entry alone says how many there were.
    log.write_text(first + json.dumps(json.loads(second) | {"measured": []}) + "\n")
    assert "what measurement 2 cost" in kgather("ledger", "restore", copy, "--policy", policy)[1]
    # A file that was set aside is read, too.
    (tmp_path / "audit.jsonl.1").write_text(first)
    log.write_text(second)
    assert kgather("ledger", "restore", copy, "--policy", policy)[0] == 0
    # So is the ledger that is there.
    shutil.copy(tmp_path / "away", tmp_path / "ledger.sqlite")
    (tmp_path / "audit.jsonl.1").unlink()
    assert kgather("ledger", "restore", copy, "--policy", policy)[0] == 0


def test_without_a_log_an_older_copy_is_refused(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, audit_log=None)
    guard = opened(policy)
    copy = copy_of(policy)
    assert kgather("ledger", "restore", copy, "--policy", policy)[0] == 0
    opened(policy).query(COUNT)
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 2
    assert "there is no audit log to tell what the rest cost" in told
    (tmp_path / "ledger.sqlite").unlink()
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert code == 2
    assert "Say --yes if nothing was asked since" in told
    assert not (tmp_path / "ledger.sqlite").exists()
    assert kgather("ledger", "restore", copy, "--yes", "--policy", policy)[0] == 0
    assert guard.policy.audit_log is None


def test_a_log_that_knows_nothing_of_the_ledger_is_none(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    copy = copy_of(policy)
    (tmp_path / "ledger.sqlite").unlink()
    entry = logged(policy)[0] | {"ledger": "another"}
    (tmp_path / "audit.jsonl").write_text(json.dumps(entry) + "\n")
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert (code, "neither an audit log of it nor" in told) == (2, True)


def restored_with(folder: Path, change: Callable[[list[str]], str], *options: str) -> tuple[int, str]:
    """What comes of a restore where the audit log of two questions was changed."""
    policy = policy_in(folder)
    guard = opened(policy)
    copy = copy_of(policy)
    guard.query(COUNT)
    guard.query(BY_CITY)
    log = folder / "audit.jsonl"
    log.write_text(change(log.read_text().splitlines(keepends=True)))
    (folder / "ledger.sqlite").unlink()
    return kgather("ledger", "restore", copy, *options, "--policy", policy)


def test_a_last_line_that_ends_too_early_told_nothing(tmp_path: Path) -> None:
    for name, cut in (("half", 40), ("nearly", -3)):
        code, told = restored_with(tmp_path / name, lambda lines, cut=cut: "".join(lines) + lines[-1][:cut])  # type: ignore[misc]
        assert code == 0, told
    # A guard that went on after the kill wrote a whole line behind it.
    code, told = restored_with(tmp_path / "on", lambda lines: lines[0] + lines[1][:200] + "\n" + lines[1])
    assert code == 0, told


@pytest.mark.parametrize("line", ["", "\0" * 50 + "\n", "[1, 2]\n", '{"at": oops}\n', "last"])
def test_a_broken_line_may_hold_charges(tmp_path: Path, line: str) -> None:
    """The charges of the last measurements could be in it: nothing else would tell of them."""

    def change(lines: list[str]) -> str:
        broken = lines[1].replace('"ledger"', "ledger") if line in ("", "last") else line
        return lines[0] + broken + (lines[0] if line == "" else "")

    code, told = restored_with(tmp_path, change)
    assert code == 2
    assert f"{tmp_path / 'audit.jsonl'}:2 of the audit log is broken, so that what was charged there is not" in told
    assert not (tmp_path / "ledger.sqlite").exists()
    copy = tmp_path / "copy.sqlite"
    assert kgather("ledger", "restore", copy, "--yes", "--policy", tmp_path / "policy.yml")[0] == 0


def test_another_ledger_is_not_written_over(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    copy = copy_of(policy)
    assert kgather("ledger", "new", "--yes", "--policy", policy)[0] == 0
    before = (tmp_path / "ledger.sqlite").read_bytes()
    code, told = kgather("ledger", "restore", copy, "--policy", policy)
    assert (code, "is another ledger than the one that the copy is of" in told) == (2, True)
    assert (tmp_path / "ledger.sqlite").read_bytes() == before
    code, told = kgather("ledger", "restore", tmp_path / "policy.yml", "--policy", policy)
    assert (code, "is no ledger of mode measured" in told) == (2, True)
    code, told = kgather("ledger", "restore", tmp_path / "none", "--policy", policy)
    assert (code, "there is no such file" in told) == (2, True)


def test_versions_that_the_copy_lacks_are_not_used_again(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    copy = copy_of(policy)
    change_data(policy)
    assert kgather("ledger", "next", "--policy", policy)[0] == 0
    guard.query(COUNT)
    (tmp_path / "ledger.sqlite").unlink()
    assert kgather("ledger", "restore", copy, "--policy", policy)[0] == 0
    with pytest.raises(InputError, match="kgather ledger next"):
        opened(policy).query(COUNT)
    assert kgather("ledger", "next", "--policy", policy)[0] == 0
    opened(policy).query(COUNT)
    assert [entry["version"] for entry in logged(policy)] == [2, 3]


# new


def test_a_missing_ledger_stops_the_start_until_a_new_one_is_begun(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    (tmp_path / "ledger.sqlite").unlink()
    (tmp_path / "audit.jsonl").rename(tmp_path / "audit.jsonl.1")
    with pytest.raises(InputError, match=r"is missing, and .* says that questions were answered"):
        opened(policy)
    code, told = kgather("ledger", "new", "--policy", policy)
    assert (code, "Say --yes to begin a new one" in told) == (2, True)
    with pytest.raises(InputError, match="is missing"):
        opened(policy)
    code, told = kgather("ledger", "new", "--yes", "--policy", policy)
    assert code == 0
    assert "What was told before of the same people adds to what will be told" in told
    assert opened(policy).query(COUNT).num_rows == 1


def test_a_ledger_that_is_left_is_kept(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    guard.query(COUNT)
    before = (tmp_path / "ledger.sqlite").read_bytes()
    (tmp_path / "ledger.sqlite-journal").write_bytes(b"")
    code, told = kgather("ledger", "new", "--yes", "--policy", policy)
    assert code == 0
    (aside,) = tmp_path.glob("ledger.sqlite.*Z")
    assert str(aside) in told
    assert aside.read_bytes() == before
    assert ledger_of(policy).measurements() == []
    with pytest.raises(InputError, match="was replaced by another one"):
        guard.query(BY_CITY)


def test_what_is_no_ledger_is_set_aside_too(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    (tmp_path / "ledger.sqlite").write_bytes(b"no ledger" * 200)
    with pytest.raises(InputError, match="is no ledger of mode measured"):
        opened(policy)
    assert kgather("ledger", "new", "--yes", "--policy", policy)[0] == 0
    assert opened(policy).query(COUNT).num_rows == 1


# What the audit log has of charges


def test_what_is_prepared_is_in_the_log(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, prepare=[BY_CITY])
    guard = opened(policy)
    assert ledger_of(policy).state()["prepared"] == "yes"
    guard.query(COUNT)
    (entry,) = logged(policy)
    numbers = [charge["number"] for charge in entry["measured"]]
    assert numbers == [one.number for one in ledger_of(policy).measurements()]
    assert {charge.get("for") for charge in entry["measured"]} >= {"another"}
    assert ledger_of(policy).logged() == len(numbers)


def test_what_was_not_logged_is_logged_with_the_next_answer(tmp_path: Path) -> None:
    """Measured, and then the log could not be written: nothing was told, and the charge stays."""
    policy = policy_in(tmp_path)
    guard = opened(policy)
    log = guard._log
    guard._log = AuditLog(tmp_path)  # a folder
    with pytest.raises(InputError, match="Nothing is answered until it can be"):
        guard.query(COUNT)
    before = charged(policy)
    assert before > 0
    guard._log = log
    guard.query(COUNT)
    assert charged(policy) == before
    (entry,) = logged(policy)
    assert [(charge["number"], charge["for"]) for charge in entry["measured"]] == [(1, "another")]
    # Another guard that was opened before it does not log it once more.
    opened(policy).query(COUNT)
    assert logged(policy)[-1]["measured"] == []


def test_where_files_are_dropped_the_newest_copies_can_be_restored(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    guard = opened(policy)
    assert guard._log is not None
    guard._log.rotation = Rotation(max_bytes=1_500, backups=1)
    old = copy_of(policy)
    for sql in (COUNT, BY_CITY, BY_EDUCATION):
        guard.query(sql)
    new = tmp_path / "newer"
    assert kgather("ledger", "backup", "--policy", policy, "--out", new)[0] == 0
    guard.query("SELECT marital_status, COUNT(*) AS n FROM ratings_wide GROUP BY marital_status")
    guard.query(COUNT)
    before = charged(policy)
    (tmp_path / "ledger.sqlite").unlink()
    assert kgather("ledger", "restore", old, "--policy", policy)[0] == 2
    assert kgather("ledger", "restore", new, "--policy", policy)[0] == 0
    assert charged(policy) == pytest.approx(before)


def test_prepared_once_only(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, prepare=[BY_CITY])
    read = load_policy(policy)
    engine = MeasuredEngine(read, tmp_path, seeded(1))
    assert ledger_of(policy).measurements() == []
    engine.prepare()
    before = charged(policy)
    engine.prepare()
    opened(policy)
    assert 0 < before == charged(policy)


# What may change during a ledger's lifetime


def test_a_budget_may_be_lowered_and_not_raised(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    policy_in(tmp_path, budget={"epsilon": 2_001.0, "delta": 1e-6})
    with pytest.raises(InputError, match="it may be lowered only"):
        opened(policy)
    policy_in(tmp_path, budget={"epsilon": 1_000.0, "delta": 1e-6})
    assert json.loads(kgather("ledger", "show", "--json", "--policy", policy)[1])["epsilon"] == 2_000
    opened(policy).query(COUNT)
    assert json.loads(kgather("ledger", "show", "--json", "--policy", policy)[1])["epsilon"] == 1_000


def test_a_column_that_is_added_is_paid_from_the_same_budget(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy).query(COUNT)
    before = charged(policy)
    text = policy.read_text()
    hidden = text.replace("hidden:\n    - occupation\n", "hidden:\n")
    assert hidden != text
    policy.write_text(hidden.replace("dimensions:\n    - gender\n", "dimensions:\n    - gender\n    - occupation\n"))
    guard = opened(policy)
    assert guard.query("SELECT occupation, COUNT(*) AS n FROM users GROUP BY occupation").num_rows == 1
    assert charged(policy) > before
    assert len(ledger_of(policy).terms()) == 2
    assert kgather("ledger", "replay", "--policy", policy) == (0, "2 agree, 0 disagree\n")


def test_whom_a_budget_protects_does_not_change(tmp_path: Path) -> None:
    def users(unit: str) -> Path:
        return policy_in(tmp_path, tables={"users": {"privacy_unit": unit, "measures": ["age"]}}, joins=[])

    policy = users("user_id")
    change_data(policy, "alter table users add column home integer; update users set home = user_id")
    opened(policy)
    database = (tmp_path / "fixture.duckdb").read_bytes()
    users("home")
    (tmp_path / "fixture.duckdb").write_bytes(database)
    with pytest.raises(InputError, match="Whom a budget protects does not change"):
        opened(policy)


def test_a_format_of_the_future_is_refused(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    opened(policy)
    ledger_of(policy).set_state("format", "99")
    with pytest.raises(InputError, match=r"has format 99, and this kgather knows 1\. Use the version of kgather"):
        opened(policy)
