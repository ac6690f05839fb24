"""The ledger of mode measured: every measurement with its charge, durable in an SQLite file before anything is told.

A measurement is written in one transaction; while it is taken nobody else measures, of all threads and processes. After
a kill the ledger is as before the measurement, and nothing of it was told, or as after it.
"""

import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.measured.domain import Domain

KIND, FORMAT = "kgather guard ledger, measured", 1
_SCHEMA = """
create table state (name text primary key, value text not null);
create table versions (number integer primary key, opened_at text not null, stamp text not null);
create table measurements (
  number integer primary key, version integer not null, made_at text not null, kind text not null, name text not null,
  rho real not null, delta real not null, sd real not null, about text not null, numbers blob not null
);
create table terms (digest text primary key, seen_at text not null, text text not null);
"""
LOST = "lost"
"""The kind of a measurement that is charged, and whose numbers are gone: a backup of the ledger did not have them."""
_PATIENCE = 600.0  # seconds to wait for somebody else's measurement


@dataclass(frozen=True)
class Measurement:
    """Noisy sums over people.

    kind: people (how many there are), keys (of each value found), counts, sums, rows (how many each person has),
    magnitudes or LOST, which tells nothing and has no numbers. name: what was measured, in canonical text. rho, delta:
    what it cost. sd: of the noise, in the unit of `numbers`. domains: of each axis. numbers int64[...]. about: what
    else tells how to read them.
    """

    kind: str
    name: str
    rho: float
    delta: float
    sd: float
    domains: tuple[Domain, ...]
    numbers: NDArray[np.int64]
    about: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    number: int = 0
    made_at: str = ""

    @property
    def whom(self) -> str | None:
        """The kind of people that it is about; None of one that was charged to everybody, before kinds had budgets."""
        found = self.about.get("whom")
        return None if found is None else str(found)

    @property
    def charged_as(self) -> str:
        """Its kind; of one whose numbers are lost, the kind that it had."""
        return str(self.about.get("kind", self.kind))

    def as_charge(self) -> dict[str, Any]:
        """What the audit log keeps of it: enough to charge it again, without what it told."""
        return {
            "number": self.number,
            "version": self.version,
            "kind": self.charged_as,
            "name": self.name,
            "pool": self.about.get("pool", ""),
            "rho": self.rho,
            "delta": self.delta,
            **{name: self.about[name] for name in ("whom", "principal") if name in self.about},
        }


@dataclass(frozen=True)
class Version:
    """A state of the data. stamp: of the file."""

    number: int
    opened_at: str
    stamp: str


class Ledger:
    """The file. What is in it only ever grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = threading.RLock()
        self._known: list[Measurement] = []

    def exists(self) -> bool:
        """Whether there is a file."""
        return self.path.exists()

    def make(self, state: Mapping[str, str], stamp: str) -> None:
        """Make an empty ledger, whole as soon as it is there; whoever comes second takes the first one's. Raises
        InputError where the folder cannot be written to."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            con = sqlite3.connect(draft)
            with con:
                con.executescript(_SCHEMA)
                kept = {"kind": KIND, "format": str(FORMAT), "id": secrets.token_hex(8), "made_at": _now(), **state}
                con.executemany("insert into state values (?, ?)", kept.items())
                con.execute("insert into versions values (1, ?, ?)", [_now(), stamp])
            con.close()
            with suppress(FileExistsError):
                os.link(draft, self.path)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def set_aside(self) -> Path | None:
        """Give the file, if there is one, a name with the date, and return it. Nothing is deleted, and nobody measures
        meanwhile. Raises InputError where it cannot be renamed."""
        if not self.exists():
            return None
        with ExitStack() as stack:
            with suppress(InputError):  # what cannot be read nobody measures in
                stack.enter_context(self.measuring())
            aside = self._linked_aside()
            self.path.unlink()
        self._known = []
        return aside

    def take(self, draft: Path) -> Path | None:
        """Put another file in place of this one, which gets a name with the date; returns that. Whoever calls sees to
        it that nobody measures. Raises InputError where it cannot be written."""
        try:
            if not self.exists():
                os.link(draft, self.path)
                draft.unlink()
                return None
            aside = self._linked_aside()
            draft.replace(self.path)
        except OSError as error:
            raise self._unusable(error) from None
        return aside

    def _linked_aside(self) -> Path:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
        aside = self.path.with_name(f"{self.path.name}.{at}")
        try:
            os.link(self.path, aside)
            # What was begun and not ended goes with the file, or it would be undone in the next one.
            for suffix in ("-journal", "-wal"):
                file = self.path.with_name(self.path.name + suffix)
                if file.exists():
                    file.rename(aside.with_name(aside.name + suffix))
        except OSError as error:
            msg = f"{self.path} cannot be given the name {aside.name}: {error.strerror}."
            raise InputError(msg) from None
        return aside

    def state(self) -> dict[str, str]:
        """What the ledger was made for. Raises InputError where the file is no ledger of this kind and format."""
        with self._open() as con:
            return dict(con.execute("select name, value from state").fetchall())

    def set_state(self, name: str, value: str) -> None:
        """Change what the ledger is for."""
        with self._writing() as con:
            con.execute("insert or replace into state values (?, ?)", [name, value])

    def logged(self) -> int:
        """Up to which measurement the audit log has all charges."""
        return int(self.state().get("logged", "0"))

    def set_logged(self, number: int) -> None:
        """Remember that the audit log has all charges up to a measurement."""
        with self._writing() as con:
            con.execute(
                "insert into state values ('logged', ?) on conflict (name) do update set value = excluded.value"
                " where cast(excluded.value as integer) > cast(value as integer)",
                [str(number)],
            )

    def keep_terms(self, digest: str, text: str) -> None:
        """Keep the terms that answers are given under, by their digest."""
        with self._open() as con:
            if con.execute("select 1 from terms where digest = ?", [digest]).fetchone() is None:
                con.execute("insert or ignore into terms values (?, ?, ?)", [digest, _now(), text])

    def terms(self) -> dict[str, str]:
        """The terms that answers were given under, by digest, the newest last."""
        with self._open() as con:
            return dict(con.execute("select digest, text from terms order by seen_at").fetchall())

    def versions(self) -> list[Version]:
        """The states of the data that it is about, the first one first."""
        with self._open() as con:
            return [Version(*row) for row in con.execute("select number, opened_at, stamp from versions order by 1")]

    def open_version(self, stamp: str) -> Version:
        """Begin the next state of the data."""
        with self._writing() as con:
            number = con.execute("select max(number) + 1 from versions").fetchone()[0]
            version = Version(int(number), _now(), stamp)
            con.execute("insert into versions values (?, ?, ?)", [version.number, version.opened_at, version.stamp])
        return version

    def add_lost(self, charges: Sequence[Mapping[str, Any]]) -> None:
        """Charge what was measured since this copy of the ledger was made. charges: as the audit log has them, with
        numbers that follow those here. States of the data that came since become known, without a stamp: a database is
        none of them."""
        with self._writing() as con:
            for charge in charges:
                about = {"kind": charge["kind"], "pool": charge["pool"], "domains": [], "shape": [0]}
                about |= {name: charge[name] for name in ("whom", "principal") if name in charge}
                row = [
                    charge["number"],
                    charge["version"],
                    _now(),
                    LOST,
                    charge["name"],
                    charge["rho"],
                    charge["delta"],
                ]
                con.execute(
                    "insert into measurements values (?, ?, ?, ?, ?, ?, ?, 0.0, ?, x'')", [*row, json.dumps(about)]
                )
                con.execute("insert or ignore into versions values (?, ?, '')", [charge["version"], _now()])

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy, for its owner only, while others use the ledger. Raises InputError where the file
        exists or cannot be written."""
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            msg = f"{path} exists. Name a file that does not: no copy is written over."
            raise InputError(msg) from None
        except OSError as error:
            msg = f"{path} cannot be written: {error.strerror}."
            raise InputError(msg) from None
        try:
            with self._open() as con, closing(sqlite3.connect(path)) as copy:
                con.backup(copy)
            _sync(path)
            _sync(path.parent)
        except BaseException as error:
            path.unlink(missing_ok=True)
            if not isinstance(error, OSError | sqlite3.Error):
                raise
            msg = f"{path} cannot be written: {error}."
            raise InputError(msg) from None

    def measurements(self) -> list[Measurement]:
        """All that was measured, in the order in which it was. Raises InputError where the file is no ledger, or holds
        less than it did."""
        with self._thread, self._open() as con:
            return self._refreshed(con)

    def current(self) -> tuple[Version, list[Measurement]]:
        """The newest version of the data, and all that was measured. Errors as of `measurements`."""
        with self._thread, self._open() as con:
            row = con.execute("select number, opened_at, stamp from versions order by 1 desc limit 1").fetchone()
            return Version(*row), self._refreshed(con)

    @contextmanager
    def measuring(self) -> Iterator["Writing"]:
        """Be the only one who measures; what was written is there when this is left, or none of it."""
        with self._thread, self._open() as con:
            try:
                con.execute("begin immediate")
                writing = Writing(con, self._refreshed(con))
                yield writing
                con.commit()
            except sqlite3.Error as error:
                con.rollback()
                raise self._unusable(error) from None
            except BaseException:
                con.rollback()
                raise
            self._known = writing.known

    def look(self) -> None:
        """Read the file without waiting for who measures. Raises InputError as `measurements`."""
        with self._open() as con:
            try:
                self._count(con)
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    def _count(self, con: sqlite3.Connection) -> int:
        """How many measurements the file holds, which are those that are known, and more."""
        count = int(con.execute("select count(*) from measurements").fetchone()[0])
        if count < len(self._known) or not self._is_continued(con):
            msg = (
                f"{self.path} was replaced by another one while the guard was running. Start the guard again, if "
                f"that was meant. {INSTEAD}"
            )
            raise InputError(msg)
        return count

    def _refreshed(self, con: sqlite3.Connection) -> list[Measurement]:
        try:
            count = self._count(con)
            if count > len(self._known):
                rows = con.execute("select * from measurements order by number limit -1 offset ?", [len(self._known)])
                self._known = [*self._known, *(_measurement(row) for row in rows)]
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        return self._known

    def _is_continued(self, con: sqlite3.Connection) -> bool:
        """Whether what is known of the file is still what it holds."""
        if not self._known:
            return True
        last = self._known[-1]
        held = con.execute("select made_at from measurements where number = ?", [last.number]).fetchone()
        return held is not None and held[0] == last.made_at

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Change the file at once, or not at all."""
        with self._open() as con:
            try:
                con.execute("begin immediate")
                yield con
                con.commit()
            except sqlite3.Error as error:
                con.rollback()
                raise self._unusable(error) from None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            msg = f"{self.path} is gone. {INSTEAD}"
            raise InputError(msg)
        try:
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
            con = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None
        try:
            self._check(con)
            yield con
        finally:
            con.close()

    def _check(self, con: sqlite3.Connection) -> None:
        try:
            con.execute("pragma synchronous = extra")
            state = dict(con.execute("select name, value from state where name in ('kind', 'format')").fetchall())
        except sqlite3.Error:
            state = {}
        if state.get("kind") != KIND:
            msg = (
                f"{self.path} is no ledger of mode measured; it may be one of another mode, or of a kgather before it. "
                f"{INSTEAD}"
            )
            raise InputError(msg)
        if state.get("format") != str(FORMAT):
            msg = (
                f"{self.path} has format {state.get('format')}, and this kgather knows {FORMAT}. Use the version of "
                "kgather that wrote it, or a newer one."
            )
            raise InputError(msg)

    def _unusable(self, error: Exception) -> InputError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return InputError(
            f"{self.path} could not be read or written: {reason}. Nothing was told that is not recorded there: the "
            "ledger, and the folder it is in, have to be readable and writable."
        )


@dataclass
class Writing:
    """The ledger, held by one who measures. known: all measurements, those written here, too."""

    con: sqlite3.Connection
    known: list[Measurement]

    def state(self, name: str) -> str | None:
        """What the ledger is for, by name."""
        found = self.con.execute("select value from state where name = ?", [name]).fetchone()
        return None if found is None else str(found[0])

    def keep(self, name: str, value: str) -> None:
        """Change what the ledger is for."""
        self.con.execute("insert or replace into state values (?, ?)", [name, value])

    def add(self, measurement: Measurement) -> Measurement:
        """Write a measurement."""
        about = {**measurement.about, "domains": [domain.as_json() for domain in measurement.domains]}
        about["shape"] = list(measurement.numbers.shape)
        row = [
            measurement.version,
            _now(),
            measurement.kind,
            measurement.name,
            measurement.rho,
            measurement.delta,
            measurement.sd,
            json.dumps(about),
            np.ascontiguousarray(measurement.numbers, dtype="<i8").tobytes(),
        ]
        marks = ", ".join("?" * len(row))
        self.con.execute(f"insert into measurements values (null, {marks})", row)
        added = self.con.execute("select * from measurements order by number desc limit 1").fetchone()
        self.known = [*self.known, _measurement(added)]
        return self.known[-1]


INSTEAD = (
    "Restore it from a backup (kgather ledger restore), or begin a new one (kgather ledger new): with a new one the "
    "guard does not know what it has told of the same people, and what it tells from now on adds to that."
)


def _measurement(row: Sequence[Any]) -> Measurement:
    number, version, made_at, kind, name, rho, delta, sd, about, numbers = row
    more = json.loads(about)
    domains = tuple(Domain.from_json(kept) for kept in more.pop("domains"))
    shape = more.pop("shape")
    values = np.frombuffer(numbers, dtype="<i8").astype(np.int64).reshape(shape)
    return Measurement(kind, name, rho, delta, sd, domains, values, more, version, number, made_at)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
