"""The private folder in which a run works, and what is finished in it: a run that was killed is taken up again."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from kgather import _stopping as stopping
from kgather._dbt_package import dbt_path, package_digest
from kgather._loaders.checksums import sha256
from kgather._version import __version__

_NEW, _RUN = ".new-kgather-", ".kgather-"
_ENGINES = ("duckdb", "dbt-core", "dbt-duckdb", "numba", "numpy", "pyarrow")


def fingerprint(target: Path, files: Sequence[Path], asked: Mapping[str, Any]) -> str:
    """What a run is known by: where it writes, the content of its input, what was asked, and all versions.

    Two runs of one fingerprint do the same steps. O(size of the input), read once.
    """
    said = {
        "target": str(target),
        "inputs": [(str(file), sha256(file)) for file in files],
        "asked": asked,
        "version": __version__,
        "engines": {name: version(name) for name in _ENGINES},
        "sources": _sources(),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:24]


@contextmanager
def folder_of(target: Path, mark: str) -> Iterator[Path]:
    """The private folder of the run with this fingerprint, beside the target; gone when the block ends.

    A run that was killed has left its folder behind. That of the same fingerprint is given again with all that is in
    it; those of others are removed. Where the same run is under way already, this one has a folder of its own.
    """
    folder = target.parent / f"{_RUN}{mark}"
    _sweep(target.parent, spared=folder.name)
    with stopping.whole:
        lock, folder = _taken_up(folder) or _made(folder)
        stopping.note(folder)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            stopping.forget(folder)


class Journal:
    """The names of finished steps, in a file that is on the disk before the next step begins."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def finished(self) -> frozenset[str]:
        """The steps that are finished; a line that was cut off is none."""
        if not self._file.exists():
            return frozenset()
        return frozenset(self._file.read_text(encoding="utf-8").split("\n")[:-1])

    def add(self, step: str) -> None:
        """Note that a step is finished."""
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(f"{step}\n")
            _flush(stream)


def once(file: Path, make: Callable[[], Any]) -> Any:
    """What `make` gives, as JSON: made and kept in the file, or read from there where an earlier run kept it."""
    if not file.exists():
        part = file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as stream:
            json.dump(make(), stream)
            _flush(stream)
        part.replace(file)
    return json.loads(file.read_text(encoding="utf-8"))


def _flush(stream: TextIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sources() -> str:
    """One number for all text of this package: models, SQL and Python."""
    found = hashlib.sha256(package_digest(dbt_path()).encode())
    package = dbt_path().parent
    for file in sorted((*package.glob("*.py"), *(package / "udfs").rglob("*.py"), *package.glob("_*/**/*.py"))):
        found.update(f"{file.relative_to(package)} {sha256(file)}\n".encode())
    return found.hexdigest()


def _made(folder: Path) -> tuple[TextIO, Path]:
    """A new folder, and its lock, which is held."""
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=folder.parent))
    lock = (new / stopping.LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    # Under its final name another run may sweep it, and finds it locked.
    if not folder.exists():
        try:
            return lock, new.rename(folder)
        except OSError:
            pass
    return lock, new.rename(new.with_name(new.name.replace(_NEW, _RUN, 1)))


def _taken_up(folder: Path) -> tuple[TextIO, Path] | None:
    """The folder that a killed run left behind, and its lock, which is held; None where there is none to be had."""
    try:
        mode = folder.lstat()
        # Its name can be guessed: what somebody else put there is left alone.
        if mode.st_uid != os.geteuid() or mode.st_mode & 0o077:
            return None
        lock = (folder / stopping.LOCK).open("r+")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It may have been swept between the two.
        if os.path.samestat(os.fstat(lock.fileno()), (folder / stopping.LOCK).stat()):
            return lock, folder
    except OSError:
        pass  # the run is alive
    lock.close()
    return None


def _sweep(parent: Path, spared: str) -> None:
    for lock in parent.glob(f"{_RUN}*/{stopping.LOCK}"):
        if lock.parent.name == spared:
            continue
        with lock.open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its run is alive
            stopping.note(lock.parent)
            shutil.rmtree(lock.parent, ignore_errors=True)
            stopping.forget(lock.parent)
