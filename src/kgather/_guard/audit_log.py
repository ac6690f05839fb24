"""The audit log: one line of JSON for each query, without answers and without values of parameters.

A query that cannot be recorded is not answered. The file is its owner's only; a full one is kept as NAME.1, NAME.2 ...
"""

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgather._errors import InputError
from kgather._guard.refused import Refused

MAX_BYTES = 10_000_000
"""A file that is larger is set aside."""
BACKUPS = 9
PERIODS = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}
"""Seconds after which a file can be set aside, too; hours, days and weeks of UTC."""
_FIRST = 60  # bytes at the beginning of a file that say since when it is written
_TEXT = 10_000  # characters of a statement; longer ones are cut and named by their hash


@dataclass
class Entry:
    """One query. atoms_touched: atoms with rows that were asked for. atoms_cut: how many more there are now."""

    principal: str
    text: str
    parameters: Sequence[Any] | Mapping[str, Any]
    atoms_touched: int = 0
    atoms_cut: int = 0
    _started: float = field(default_factory=time.perf_counter)
    _at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def line(self, refusal: Refused | None) -> str:
        """The entry as JSON. refusal: None where the query is answered."""
        values: dict[str, Any] = {
            "at": self._at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "principal": self.principal,
            "text": self.text[:_TEXT],
            "parameters": _types(self.parameters),
            "decision": "answered" if refusal is None else "refused",
        }
        if len(self.text) > _TEXT:
            values["characters"] = len(self.text)
            values["sha256"] = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()
        if refusal is not None:
            values |= {"code": refusal.code, "rule": str(refusal.rule)}
            if refusal.static:
                values["reason"] = refusal.reason
        values |= {
            "atoms_touched": self.atoms_touched,
            "atoms_cut": self.atoms_cut,
            "milliseconds": round((time.perf_counter() - self._started) * 1000, 3),
        }
        return json.dumps(values) + "\n"


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
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.fchmod(handle, 0o600)
                _write_whole(handle, line)
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


def _write_whole(handle: int, line: bytes) -> None:
    """Write all of a line or, on a full disk, nothing that a later line could run into."""
    start = os.fstat(handle).st_size
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
