"""The audit log: one line of JSON for each query, without answers and without values of parameters.

A query that cannot be recorded is not answered. The file is its owner's only; a full one is kept as NAME.1, NAME.2 ...
"""

import fcntl
import glob
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgather._errors import InputError
from kgather._guard.engine import Trace
from kgather._guard.plan import Value
from kgather._guard.refused import Refused

MAX_BYTES = 10_000_000
"""A file that is larger is set aside."""
BACKUPS = 9
PERIODS = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}
"""Seconds after which a file can be set aside, too; hours, days and weeks of UTC."""
_FIRST = 60  # bytes at the beginning of a file that say since when it is written
_TEXT = 10_000  # characters of a statement; longer ones are cut and named by their hash

_LAST = 1 << 17  # bytes at the end of a log in which the last line is


@dataclass
class Entry:
    """One query. client: the address that it came from, of those that came to a server. trace: how it was decided.
    answer: what was told."""

    principal: str
    text: str
    parameters: Sequence[Any] | Mapping[str, Any]
    client: str | None = None
    trace: Trace = field(default_factory=Trace)
    answer: pa.Table | None = None
    _started: float = field(default_factory=time.perf_counter)
    _at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def today(self) -> date:
        """The day on which it is asked, of UTC."""
        return self._at.date()

    def line(self, refusal: Refused | None) -> str:
        """The entry as JSON. refusal: None where the query is answered."""
        values: dict[str, Any] = {
            "at": self._at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "principal": self.principal,
            **({"client": self.client} if self.client is not None else {}),
            "text": self.text[:_TEXT] if self.trace.version is None else self.text,
            "parameters": _types(self.parameters),
            "decision": "answered" if refusal is None else "refused",
        }
        if len(values["text"]) < len(self.text):
            values["characters"] = len(self.text)
            values["sha256"] = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        if refusal is not None:
            values |= {"code": refusal.code, "rule": str(refusal.rule)}
            if refusal.static:
                values["reason"] = refusal.reason
        if self.trace.version is not None or self.trace.measured:
            values |= self._measured()
        else:
            values |= {"atoms_touched": self.trace.touched, "atoms_cut": self.trace.cut}
        values |= {
            "milliseconds": round((time.perf_counter() - self._started) * 1000, 3),
        }
        return json.dumps(values) + "\n"

    def _measured(self) -> dict[str, Any]:
        """What makes it possible to give the answer again from the ledger, and to charge again what it cost."""
        found: dict[str, Any] = {"values": plain(self.parameters)} if self.parameters else {}
        found |= {
            "ledger": self.trace.ledger,
            "version": self.trace.version,
            "measurements": self.trace.position,
            "terms": self.trace.terms,
            "measured": [*self.trace.measured],
        }
        if self.trace.public:
            found["public"] = dict(self.trace.public)
        if self.answer is not None:
            found["answer"] = digest(self.answer)
        return found


def digest(answer: pa.Table) -> str:
    """A checksum of an answer: of its columns' names and its rows, in whatever order. Numbers count to nine digits:
    what an engine computes on several threads differs behind them."""
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    written = sorted(json.dumps([_nine(value) for value in row], default=str) for row in rows)
    text = json.dumps([answer.column_names, answer.num_rows, written])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _nine(value: object) -> object:
    return f"{value:.9g}" if isinstance(value, float) else value


def valued(kept: Any) -> list[Value] | dict[str, Value]:
    """The parameters that `plain` wrote."""
    if isinstance(kept, Mapping):
        return {str(name): _value(*pair) for name, pair in kept.items()}
    return [_value(*pair) for pair in kept]


def _value(kind: str, text: str) -> Value:
    if kind == "NoneType":
        return None
    if kind == "bool":
        return text == "True"
    return _READ.get(kind, str)(text)


_READ: Mapping[str, Callable[[str], Value]] = {
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}


def plain(parameters: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Parameters as JSON holds them: each with the name of its type."""
    if isinstance(parameters, Mapping):
        return {str(name): [type(value).__name__, str(value)] for name, value in parameters.items()}
    return [[type(value).__name__, str(value)] for value in parameters]


@dataclass(frozen=True)
class Rotation:
    """When a file is set aside: before it is larger than `max_bytes`, and with each new `every` (of PERIODS).
    backups: how many are kept."""

    max_bytes: int = MAX_BYTES
    backups: int = BACKUPS
    every: str | None = None


class AuditLog:
    """Lines of JSON in a file. Several threads and processes may write to one, and the file may be renamed at any
    time, as logrotate does: it is opened anew for each line."""

    rotation = Rotation()
    """Of all logs of this process that are given none of their own."""

    def __init__(self, path: Path, *, rotation: Rotation | None = None) -> None:
        self.path = path
        if rotation is not None:
            self.rotation = rotation

    def record(self, entry: Entry, refusal: Refused | None = None) -> None:
        """Write a line. Raises InputError where it cannot be written: then nothing may be answered."""
        line = entry.line(refusal).encode()
        lock = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._make_room(len(line))
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.fchmod(handle, 0o600)
                _write_whole(handle, line)
                if entry.trace.measured:
                    os.fsync(handle)  # a ledger may have to be restored from these charges
            finally:
                os.close(handle)
        except OSError as error:
            msg = (
                f"The audit log {self.path} cannot be written: {error.strerror}. "
                "Nothing is answered until it can be; see audit_log in the policy."
            )
            raise InputError(msg) from None
        finally:
            if lock is not None:
                os.close(lock)
        if entry.trace.written is not None:
            entry.trace.written()

    def _make_room(self, size: int) -> None:
        """Set a file aside that is full or of an earlier period. Whoever calls holds the lock."""
        rotation = self.rotation
        try:
            written = self.path.stat().st_size
        except FileNotFoundError:
            return
        if not written or (written + size <= rotation.max_bytes and not self._is_of_earlier(rotation.every)):
            return
        if not rotation.backups:
            self.path.unlink()
        for number in range(rotation.backups, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))

    def _is_of_earlier(self, every: str | None) -> bool:
        """Whether the first line is of an earlier period; the file itself says when, to all processes alike."""
        if every is None:
            return False
        with self.path.open("rb") as stream:
            found = _AT.match(stream.read(_FIRST))
        if found is None:
            return False
        began = datetime.fromisoformat(found[1].decode())
        return _period(began, every) < _period(datetime.now(UTC), every)

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


_AT = re.compile(rb'\{"at": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)')
_MONDAY = 3 * 86_400  # seconds from the start of the first week that has 1970 in it


def _period(at: datetime, every: str) -> int:
    return int(at.replace(tzinfo=UTC).timestamp() + _MONDAY) // PERIODS[every]


def files_of(path: Path) -> list[Path]:
    """The files of a log that there are, the oldest one first."""
    pattern = re.compile(re.escape(path.name) + r"(?:\.(\d+))?")
    found = []
    for file in path.parent.glob(f"{glob.escape(path.name)}*"):
        named = pattern.fullmatch(file.name)
        if named is not None and file.is_file():
            found.append((int(named[1] or 0), file))
    return [file for _, file in sorted(found, reverse=True)]


def last_entry(path: Path) -> Mapping[str, Any] | None:
    """The last whole line of a log, without what was set aside; None where there is none that can be read."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(path.stat().st_size - _LAST, 0))
            lines = stream.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                return entry
    return None


def read_log(path: Path) -> Iterator[Mapping[str, Any]]:
    """The entries of a log and of the files that were set aside, the oldest one first. A line that ends in the middle,
    as after a kill, is left out: nothing was answered then. Raises InputError where they cannot be read."""
    try:
        with ExitStack() as stack:
            lock = path.with_name(path.name + ".lock")
            if lock.exists():
                held = stack.enter_context(lock.open())
                fcntl.flock(held, fcntl.LOCK_SH)  # no file is set aside meanwhile
            streams = [stack.enter_context(file.open(encoding="utf-8", errors="replace")) for file in files_of(path)]
            if lock.exists():
                fcntl.flock(held, fcntl.LOCK_UN)
            for stream in streams:
                for line in stream:
                    try:
                        entry = json.loads(line)
                    except ValueError:
                        continue
                    if isinstance(entry, dict):
                        yield entry
    except OSError as error:
        msg = f"The audit log {path} cannot be read: {error.strerror}."
        raise InputError(msg) from None


def _write_whole(handle: int, line: bytes) -> None:
    """Write all of a line or, on a full disk, nothing that a later line could run into."""
    start = os.fstat(handle).st_size
    if start and os.pread(handle, 1, start - 1) != b"\n":
        line = b"\n" + line  # a process was killed in the middle of the line before
    try:
        done = 0
        while done < len(line):
            done += os.write(handle, line[done:])
    except OSError:
        os.ftruncate(handle, start)
        raise


def _types(parameters: Sequence[Any] | Mapping[str, Any]) -> list[str] | dict[str, str]:
    if isinstance(parameters, Mapping):
        return {str(name): type(value).__name__ for name, value in parameters.items()}
    return [type(value).__name__ for value in parameters]
