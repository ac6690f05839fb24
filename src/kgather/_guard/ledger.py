"""The ledger: the partitions of all universes, durable in a DuckDB file of its own before an answer leaves.

Whoever decides holds a lock on a file beside it, so that two processes, like two threads, come one after the other.
What is written is written in one transaction: after a kill the ledger is as it was before the question or as it is
after it, and no answer has left in the first case.

A split writes what it changed: of each atom that was cut, the largest part by a new name for what is left of the old
atom, the other parts row by row. Once the changes outnumber the rows, all rows are written anew.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from kgather._errors import DISK_FULL, InputError

_KIND, _VERSION = "kgather guard ledger", 1
_SCHEMA = """
create table state (kind varchar, version integer, k integer, decisions bigint);
create table universes (id integer, universe varchar, next_name bigint);
create table rows (id integer, row_key ubigint, atom bigint);
create table moves (id integer, decision bigint, row_key ubigint, atom bigint);
create table renames (id integer, decision bigint, atom bigint, new_atom bigint);
create table clusters (id integer, column_name varchar, atom bigint, cluster bigint);
create table splits (decision bigint, decided_at timestamp, universe varchar, atoms bigint, moved bigint);
"""
_FEW = 100_000  # changes that are never too many
_PATIENCE = 3.0  # seconds to wait for another program that has the file open


@dataclass(frozen=True)
class Kept:
    """A partition as it is kept: the atom of each row by its key, uint64 and int64, below 0 where the row is not
    answered about; the next free name; of each column, the cluster of each atom."""

    keys: NDArray[np.uint64]
    atoms: NDArray[np.int64]
    next_name: int
    clusters: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Change:
    """What is kept of a universe from now on, what was kept before, and the number of atoms."""

    before: Kept | None
    after: Kept
    atoms: int


@dataclass(frozen=True)
class Delta:
    """Rows that move, by their keys, uint64[m], to atoms int64[m]; old atoms, all others of which have a new name."""

    keys: NDArray[np.uint64]
    atoms: NDArray[np.int64]
    renames: Mapping[int, int]


class Ledger:
    """The partitions on disk. Use `deciding` around everything that reads or changes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = threading.RLock()
        self._decisions = 0

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Be the only one who decides, of all threads and processes.

        Raises InputError where the folder cannot be written to.
        """
        with self._thread:
            lock = _beside(self.path, ".lock")
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                msg = (
                    f"{self.path.parent} cannot be written to: {error.strerror}. The ledger has to be recorded there "
                    "before an answer leaves: give write access, or name another place under ledger in the policy."
                )
                raise InputError(msg) from None
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)

    def stamp(self) -> tuple[int, ...]:
        """Something that differs when the file was changed."""
        found = []
        for file in (self.path, _beside(self.path, ".wal")):
            with suppress(FileNotFoundError):
                stat = file.stat()
                found += [stat.st_ino, stat.st_mtime_ns, stat.st_size]
        return tuple(found)

    def read(self, k: int) -> dict[str, Kept]:
        """What is kept of each universe, keys ascending. O(n log n) in the rows.

        Raises InputError where the file is no ledger, cannot be opened, was kept for another k, or holds less than it
        did before.
        """
        with self._open(k) as con:
            found = _decisions(con)
            if found < self._decisions:
                raise InputError(self._replaced())
            self._decisions = found
            kept = {}
            for number, name, next_name in con.execute("from universes order by id").fetchall():
                keys, atoms = _columns(con, "select row_key, atom from rows where id = ?", number)
                moved, to = _columns(con, "select row_key, atom from moves where id = ? order by decision", number)
                keys, atoms = latest(keys, atoms, moved, to)
                renames = con.execute("select atom, new_atom from renames where id = ?", [number]).fetchall()
                clusters: dict[str, dict[int, int]] = {}
                for column, atom, cluster in con.execute(
                    "select column_name, atom, cluster from clusters where id = ? order by column_name, atom", [number]
                ).fetchall():
                    clusters.setdefault(column, {})[atom] = cluster
                kept[name] = Kept(keys, renamed(atoms, dict(renames), next_name), next_name, clusters)
            return kept

    def write(self, k: int, changes: Mapping[str, Change]) -> None:
        """Record what has changed of some universes, in one transaction. Where nothing has, the file is not touched;
        where that fails, nothing is written.

        Raises InputError where the file is no ledger, cannot be written, or is not the one that was read.
        """
        deltas = {name: delta(change.before, change.after) for name, change in changes.items()}
        changes = {name: change for name, change in changes.items() if not _is_nothing(change, deltas[name])}
        if not changes:
            return
        with self._open(k) as con:
            con.execute("begin")
            if _decisions(con) != self._decisions:
                raise InputError(self._replaced())
            decision = self._decisions + 1
            con.execute("update state set decisions = ?", [decision])
            for name, change in changes.items():
                _record(con, name, change, deltas[name], decision)
            con.execute("commit")
        self._decisions = decision

    @contextmanager
    def _open(self, k: int) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with _private_files():
                if not self.path.exists():
                    if self._decisions:
                        raise InputError(self._replaced())
                    self._create(k)
                if self.path.stat().st_mode & 0o077:
                    self.path.chmod(0o600)
                con = self._connected()
                try:
                    self._check(con, k)
                    yield con
                finally:
                    con.close()
        except InputError:
            raise
        except OSError as error:
            msg = f"{self.path} cannot be opened: {error.strerror}. The guard needs read and write access to it."
            raise InputError(msg) from None
        except duckdb.Error as error:
            reason = DISK_FULL if DISK_FULL in str(error) else "the database engine refused"
            msg = f"{self.path} could not be read or written: {reason}. Nothing was answered, and nothing recorded."
            raise InputError(msg) from None

    def _replaced(self) -> str:
        return f"{self.path} was removed or replaced by an older one while the guard was running. {_INSTEAD}"

    def _create(self, k: int) -> None:
        """Make an empty ledger under another name first: a kill leaves a whole one or none."""
        draft = _beside(self.path, ".new")
        for file in (draft, _beside(draft, ".wal")):
            file.unlink(missing_ok=True)
        with duckdb.connect(draft) as con:
            con.execute(_SCHEMA)
            con.execute("insert into state values (?, ?, ?, 0)", [_KIND, _VERSION, k])
        draft.rename(self.path)

    def _connected(self) -> duckdb.DuckDBPyConnection:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return duckdb.connect(self.path)
            except duckdb.Error as error:
                busy = "lock" in str(error).lower()
                if busy and time.monotonic() < until:
                    time.sleep(0.05)
                    continue
            if busy:
                msg = f"{self.path} is open in another program. Close it there: the ledger is the guard's own."
            else:
                msg = f"{self.path} is no database, or is damaged. {_INSTEAD}"
            raise InputError(msg) from None

    def _check(self, con: duckdb.DuckDBPyConnection, k: int) -> None:
        try:
            found = con.execute("select kind, version, k from state").fetchone()
        except duckdb.Error:
            found = None
        kind, version, kept_k = found or (None, None, None)
        if kind != _KIND:
            msg = f"{self.path} is no ledger of the guard. {_INSTEAD}"
            raise InputError(msg)
        if version != _VERSION:
            msg = f"{self.path} was written by another version of kgather (format {version}, not {_VERSION})."
            raise InputError(msg)
        if kept_k != k:
            msg = (
                f"{self.path} was kept with k = {kept_k}, the policy says {k}. Answers given under one k "
                "cannot be combined safely with another: restore k, or begin a new ledger over other data."
            )
            raise InputError(msg)


_INSTEAD = (
    "Name another file under ledger in the policy, or restore this one from a backup taken after the last answer: "
    "with a new ledger the guard does not know what it has told of the same data."
)


def delta(before: Kept | None, after: Kept) -> Delta:
    """What has changed. Every key of `before` is in `after`. O(n) where the keys are in the same order."""
    if before is None:
        return Delta(after.keys, after.atoms, {})
    n = len(before.keys)
    if np.array_equal(before.keys, after.keys[:n]):
        was = np.concatenate([before.atoms, np.full(len(after.keys) - n, -1, dtype=np.int64)])
        fresh = np.arange(len(after.keys)) >= n
    else:
        order = np.argsort(before.keys, kind="stable")
        place = order[np.minimum(np.searchsorted(before.keys, after.keys, sorter=order), max(n - 1, 0))]
        fresh = before.keys[place] != after.keys
        was = np.where(fresh, -1, before.atoms[place])
    target = _followers(was, after.atoms, after.next_name)
    moved = _moved(was, after.atoms, target, fresh)
    renames = {int(name): int(target[name]) for name in np.flatnonzero(target >= 0)}
    return Delta(after.keys[moved], after.atoms[moved], renames)


@njit(nogil=True, cache=True)
def _followers(was: NDArray[np.int64], now: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The new name of what is left of each atom, int64[size], or -1.

    The largest part of an atom that was cut can go by a new name of the whole, if no row of the atom keeps the old name
    and the part holds rows of this atom only.
    """
    rows = np.zeros(size, dtype=np.int64)
    origin = np.full(size, -1, dtype=np.int64)
    target = np.full(size, -1, dtype=np.int64)
    for row in range(len(now)):
        old, new = was[row], now[row]
        if new < 0:
            continue
        if old < 0 or new <= old or (rows[new] > 0 and origin[new] != old):
            origin[new] = -2
        elif rows[new] == 0 and origin[new] == -1:
            origin[new] = old
        rows[new] += 1
    for new in range(size):
        old = origin[new]
        if old >= 0 and rows[old] == 0 and (target[old] < 0 or rows[new] > rows[target[old]]):
            target[old] = new
    return target


@njit(nogil=True, cache=True)
def _moved(
    was: NDArray[np.int64], now: NDArray[np.int64], target: NDArray[np.int64], fresh: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Places of rows that are new, bool[n], or whose atom is another and not the new name of the old one, int64[m]."""
    count = 0
    for write in range(2):
        if write:
            found = np.empty(count, dtype=np.int64)
            count = 0
        for row in range(len(now)):
            old = was[row]
            if fresh[row] or (old != now[row] and (old < 0 or target[old] < 0 or target[old] != now[row])):
                if write:
                    found[count] = row
                count += 1
    return found


def _is_nothing(change: Change, delta: Delta) -> bool:
    before, after = change.before, change.after
    if before is None or len(delta.keys) or delta.renames:
        return False
    return before.next_name == after.next_name and before.clusters == after.clusters


def _record(con: duckdb.DuckDBPyConnection, universe: str, change: Change, delta: Delta, decision: int) -> None:
    found = con.execute("select id from universes where universe = ?", [universe]).fetchone()
    if found:
        number = found[0]
        con.execute("update universes set next_name = ? where id = ?", [change.after.next_name, number])
    else:
        number = con.execute("select coalesce(max(id), 0) + 1 from universes").fetchall()[0][0]
        con.execute("insert into universes values (?, ?, ?)", [number, universe, change.after.next_name])
    moved = con.execute("select count(*) from moves where id = ?", [number]).fetchall()[0][0] + len(delta.keys)
    if not found or moved > max(len(change.after.keys), _FEW):
        for table in ("rows", "moves", "renames"):
            con.execute(f"delete from {table} where id = ?", [number])
        order = np.argsort(change.after.keys, kind="stable")
        _insert(con, "rows", number, row_key=change.after.keys[order], atom=change.after.atoms[order])
    else:
        same = np.full(len(delta.keys), decision, dtype=np.int64)
        _insert(con, "moves", number, decision=same, row_key=delta.keys, atom=delta.atoms)
        old, new = list(delta.renames), list(delta.renames.values())
        _insert(con, "renames", number, decision=[decision] * len(old), atom=old, new_atom=new)
    _record_clusters(con, number, change)
    con.execute(
        "insert into splits values (?, now() at time zone 'UTC', ?, ?, ?)",
        [decision, universe, change.atoms, len(delta.keys)],
    )


def _record_clusters(con: duckdb.DuckDBPyConnection, number: int, change: Change) -> None:
    before = _labels(change.before) if change.before is not None else {}
    after = _labels(change.after)
    gone = [place for place, label in before.items() if after.get(place) != label]
    come = [(place, label) for place, label in after.items() if before.get(place) != label]
    if gone:
        con.register("kg_gone", pa.table({"c": [place.column for place in gone], "a": [place.atom for place in gone]}))
        con.execute(
            "delete from clusters using kg_gone as gone where id = ? and column_name = gone.c and atom = gone.a",
            [number],
        )
        con.unregister("kg_gone")
    _insert(
        con,
        "clusters",
        number,
        column_name=[place.column for place, _ in come],
        atom=[place.atom for place, _ in come],
        cluster=[label for _, label in come],
    )


class _Place(NamedTuple):
    """An atom in the clusters of a column."""

    column: str
    atom: int


def _labels(kept: Kept) -> dict[_Place, int]:
    return {_Place(column, atom): label for column, of_atom in kept.clusters.items() for atom, label in of_atom.items()}


def _insert(
    con: duckdb.DuckDBPyConnection, table: str, number: int, **columns: NDArray[np.integer] | list[int] | list[str]
) -> None:
    values = pa.table(columns)
    if len(values):
        con.register("kg_values", values)
        con.execute(f"insert into {table} select ?, * from kg_values", [number])
        con.unregister("kg_values")


def _decisions(con: duckdb.DuckDBPyConnection) -> int:
    return int(con.execute("select decisions from state").fetchall()[0][0])


def _columns(con: duckdb.DuckDBPyConnection, query: str, number: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    keys, atoms = (np.asarray(column) for column in con.execute(query, [number]).fetchnumpy().values())
    return keys.astype(np.uint64), atoms.astype(np.int64)


def latest(
    keys: NDArray[np.uint64], atoms: NDArray[np.int64], moved: NDArray[np.uint64], to: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Rows with what was recorded of them last, keys ascending. moved, to: what was recorded later, in this order."""
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, atoms = keys[order], atoms[order]
    if not len(moved):
        return keys, atoms
    order = np.argsort(moved, kind="stable")
    moved, to = moved[order], to[order]
    last = np.append(moved[1:] != moved[:-1], True)
    moved, to = moved[last], to[last]
    place = np.searchsorted(keys, moved)
    known = place < len(keys)
    known[known] = keys[place[known]] == moved[known]
    atoms = atoms.copy()
    atoms[place[known]] = to[known]
    return np.insert(keys, place[~known], moved[~known]), np.insert(atoms, place[~known], to[~known])


def renamed(atoms: NDArray[np.int64], renames: Mapping[int, int], next_name: int) -> NDArray[np.int64]:
    """Atoms by the names they have now. A new name is greater than the old one, and no name is given twice."""
    now = np.arange(next_name, dtype=np.int64)
    for old in sorted(renames, reverse=True):
        now[old] = now[renames[old]]
    return np.where(atoms >= 0, now[atoms.clip(0)] if next_name else atoms, atoms)


@contextmanager
def _private_files() -> Iterator[None]:
    """Let files that the engine makes be its owner's only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
