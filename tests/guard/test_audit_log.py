"""The audit log: every query leaves a line, no line holds an answer, and without a line there is no answer."""

import json
import os
import stat
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from guard_files import write_exact_files, write_files

from kgather._errors import InputError
from kgather._guard.audit_log import AuditLog, Entry, Rotation
from kgather._guard.guard import Guard
from kgather._guard.refused import TOO_FEW_MESSAGE, Refused

ASK = "SELECT AVG(salary) AS v FROM ratings_wide WHERE warcross >= ?"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """In mode exact: what the log has of measurements is tested with mode measured."""
    return Guard.from_policy(write_exact_files(tmp_path, audit_log="log/audit.jsonl", k=10))


@pytest.fixture
def log(guard: Guard, tmp_path: Path) -> Path:
    assert guard.policy.audit_log is not None
    return tmp_path / "log" / "audit.jsonl"


def test_an_answer_by_hand(guard: Guard, log: Path) -> None:
    """One atom is cut into two, of which one was asked for."""
    before = datetime.now(UTC)
    answer = guard.query(ASK, parameters=[4]).to_pylist()[0]["v"]
    (line,) = lines(log)
    assert list(line) == [
        "at",
        "principal",
        "text",
        "parameters",
        "decision",
        "atoms_touched",
        "atoms_cut",
        "milliseconds",
    ]
    assert abs(datetime.fromisoformat(line["at"]) - before) < timedelta(minutes=1)
    assert line["at"].endswith("Z")
    assert (line["principal"], line["text"], line["parameters"]) == ("analyst", ASK, ["int"])
    assert line["decision"] == "answered"
    assert line["atoms_cut"] >= 1
    assert 1 <= line["atoms_touched"] <= 1 + line["atoms_cut"]
    assert line["milliseconds"] > 0
    assert str(answer)[:6] not in log.read_text(encoding="utf-8").replace(line["at"], "")


def test_asking_again_cuts_nothing(guard: Guard, log: Path) -> None:
    for _ in range(2):
        guard.query(ASK, parameters=[4])
    first, second = lines(log)
    assert second["atoms_cut"] == 0
    assert second["atoms_touched"] == first["atoms_touched"] >= 1


def test_values_of_parameters_are_not_written(guard: Guard, log: Path) -> None:
    guard.query(ASK.replace("?", "$least"), parameters={"least": 2})
    with pytest.raises(Refused):
        guard.query(ASK, parameters=["secret text"])
    first, second = lines(log)
    assert first["parameters"] == {"least": "int"}
    assert second["parameters"] == ["str"]
    assert "secret text" not in json.dumps(second)


def test_a_refused_text_is_written_with_its_reason(guard: Guard, log: Path) -> None:
    with pytest.raises(Refused) as told:
        guard.query("SELECT salary FROM ratings_wide")
    (line,) = lines(log)
    assert (line["decision"], line["reason"], line["code"]) == ("refused", told.value.reason, told.value.code)
    assert line["rule"] == told.value.rule
    assert (line["atoms_touched"], line["atoms_cut"]) == (0, 0)


def test_too_few_is_written_as_a_code(guard: Guard, log: Path) -> None:
    with pytest.raises(Refused, match=TOO_FEW_MESSAGE):
        guard.query("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 99")
    (line,) = lines(log)
    assert (line["decision"], line["code"], line["rule"]) == ("refused", "KG001", "too_few")
    assert "reason" not in line


def test_without_a_line_there_is_no_answer(guard: Guard, log: Path) -> None:
    log.mkdir(parents=True)
    with pytest.raises(InputError, match=r"The audit log .* cannot be written: Is a directory"):
        guard.query(ASK, parameters=[4])
    with pytest.raises(InputError, match="The audit log"):
        guard.query("SELECT salary FROM ratings_wide")
    log.rmdir()
    assert guard.query(ASK, parameters=[4]).num_rows == 1


def test_a_full_disk_leaves_no_half_line(guard: Guard, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.query(ASK, parameters=[4])
    before = log.read_bytes()
    monkeypatch.setattr("kgather._guard.audit_log.os.write", Filling(os.write))
    with pytest.raises(InputError, match="No space left on device"):
        guard.query(ASK, parameters=[4])
    monkeypatch.undo()
    assert log.read_bytes() == before


class Filling:
    """A disk that takes ten bytes more."""

    def __init__(self, write: Any) -> None:
        self.write = write
        self.left = 10

    def __call__(self, handle: int, data: bytes) -> int:
        if not self.left:
            raise OSError(28, "No space left on device")
        done = self.write(handle, data[: self.left])
        self.left -= done
        return int(done)


def test_the_log_is_its_owners_only(guard: Guard, log: Path) -> None:
    guard.query(ASK, parameters=[4])
    log.chmod(0o644)
    guard.query(ASK, parameters=[4])
    assert {stat.S_IMODE(file.stat().st_mode) for file in log.parent.iterdir()} == {0o600}


def test_without_an_entry_in_the_policy_nothing_is_written(tmp_path: Path) -> None:
    guard = Guard.from_policy(write_files(tmp_path))
    guard.query(ASK, parameters=[4])
    assert not list(tmp_path.rglob("*.jsonl*"))


def test_a_full_file_is_set_aside(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", rotation=Rotation(max_bytes=1_000, backups=3))
    for number in range(40):
        log.record(Entry("analyst", f"SELECT {number}", ()))
    files = sorted(file.name for file in tmp_path.iterdir() if not file.name.endswith(".lock"))
    assert files == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3"]
    texts = [line["text"] for name in reversed(files) for line in lines(tmp_path / name)]
    assert texts == [f"SELECT {number}" for number in range(40 - len(texts), 40)]
    assert len(texts) > 10
    assert all((tmp_path / name).stat().st_size <= 1_000 for name in files)


@pytest.mark.parametrize(
    ("every", "first", "second", "aside"),
    [
        ("day", "2026-03-01T23:59:59", "2026-03-02T00:00:00", True),
        ("day", "2026-03-02T00:00:00", "2026-03-02T23:59:59", False),
        ("hour", "2026-03-02T09:59:59", "2026-03-02T10:00:00", True),
        ("hour", "2026-03-02T09:00:00", "2026-03-02T09:59:59", False),
        ("week", "2026-03-01T23:59:59", "2026-03-02T00:00:00", True),  # a Sunday, a Monday
        ("week", "2026-03-02T00:00:00", "2026-03-08T23:59:59", False),
        (None, "2020-01-01T00:00:00", "2026-01-01T00:00:00", False),
    ],
)
def test_a_new_day_begins_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: str | None, first: str, second: str, aside: bool
) -> None:
    """The file itself says since when it is written, so that all processes agree."""
    path = tmp_path / "audit.jsonl"
    for moment in (first, second):
        now = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        monkeypatch.setattr("kgather._guard.audit_log.datetime", At(now))
        AuditLog(path, rotation=Rotation(every=every)).record(Entry("analyst", moment, (), _at=now))
    old = path.with_name("audit.jsonl.1")
    assert old.exists() is aside
    assert [line["text"] for line in lines(path)] == [second] if aside else [first, second]
    if aside:
        assert [line["text"] for line in lines(old)] == [first]


class At:
    """A clock that stands."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self, _: object) -> datetime:
        return self._now

    fromisoformat = staticmethod(datetime.fromisoformat)


def test_logrotate_may_rename_or_empty_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.record(Entry("analyst", "first", ()))
    path.rename(tmp_path / "audit.jsonl-20260301")
    log.record(Entry("analyst", "second", ()))
    assert [line["text"] for line in lines(path)] == ["second"]
    with path.open("r+b") as stream:  # copytruncate
        stream.truncate(0)
    log.record(Entry("analyst", "third", ()))
    assert [line["text"] for line in lines(path)] == ["third"]
    path.rename(tmp_path / "audit.jsonl-20260302")
    path.touch(0o644)  # create
    log.record(Entry("analyst", "fourth", ()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_none_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", rotation=Rotation(max_bytes=1_000, backups=0))
    for number in range(40):
        log.record(Entry("analyst", f"SELECT {number}", ()))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.jsonl", "audit.jsonl.lock"]
    assert lines(tmp_path / "audit.jsonl")[-1]["text"] == "SELECT 39"


def test_a_process_may_say_how_all_its_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard.from_policy(write_files(tmp_path, audit_log="audit.jsonl"))
    monkeypatch.setattr(AuditLog, "rotation", Rotation(max_bytes=1_000, backups=1))
    for _ in range(12):
        guard.query("SELECT COUNT(*) FROM items")
    assert (tmp_path / "audit.jsonl.1").exists()
    assert not (tmp_path / "audit.jsonl.2").exists()


def test_many_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    def work(thread: int) -> None:
        log = AuditLog(path, rotation=Rotation(max_bytes=20_000, backups=50))
        for number in range(50):
            log.record(Entry(f"p{thread}", f"{number} " + "x" * 200, ()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [line for file in tmp_path.glob("audit.jsonl*") if ".lock" not in file.name for line in lines(file)]
    assert sorted((line["principal"], int(line["text"].split()[0])) for line in found) == [
        (f"p{thread}", number) for thread in range(6) for number in range(50)
    ]


def test_a_long_text_is_cut_and_named(guard: Guard, log: Path) -> None:
    with pytest.raises(Refused):
        guard.query("SELECT " + "1, " * 1_000_000 + "1")
    (line,) = lines(log)
    assert len(line["text"]) == 10_000
    assert line["characters"] == 3_000_008
    assert len(line["sha256"]) == 64


@pytest.mark.parametrize(
    "text", ["SELECT '\n\r\u2028\x00'", "SELECT '\ud800'", "SELECT 'é\U0001f600'"], ids=["lines", "half", "wide"]
)
def test_no_text_breaks_a_line(guard: Guard, log: Path, text: str) -> None:
    with suppress(Refused):
        guard.query(text)
    assert [line["text"] for line in lines(log)] == [text]
