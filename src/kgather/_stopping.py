"""What a command that is stopped must not leave behind, and what must not be cut in two.

It belongs to the process, as its signals do. Nothing here stops anything: the command line does, and looks here for
what to remove. In a program that calls kgather it is only kept.
"""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it is there once there is a process
    import subprocess

whole = threading.RLock()
"""Held around what is done whole or not at all. Once a stop has begun, nobody gets it any more."""

LOCK = "lock"
"""The file in the private folder of a publication that is locked while it runs."""

_private: set[Path] = set()
_children: "list[subprocess.Popen[bytes]]" = []


class _Written:
    last = False
    some = False


def note(path: str | Path) -> None:
    """Note a file or folder that is gone when the command is stopped."""
    with whole:
        _private.add(Path(path))


def forget(path: Path) -> None:
    """The path is gone, or is somebody else's from now on."""
    with whole:
        _private.discard(path)


def note_child(process: "subprocess.Popen[bytes]") -> None:
    """Note a process that ends when the command is stopped."""
    with whole:
        _children.append(process)


def forget_child(process: "subprocess.Popen[bytes]") -> None:
    """The process has ended."""
    with whole:
        _children.remove(process)


def written(path: Path, *, last: bool = True) -> None:
    """Note a result that stands where the user wanted it; to be called while `whole` is held.

    After the last one the command is done: a stop that comes later lets it end. Results within private folders count
    as none.
    """
    with whole:
        if not _is_private(path):
            _Written.some = True
            _Written.last |= last


def private() -> list[Path]:
    """What is gone when the command is stopped."""
    return sorted(_private)


def children() -> "list[subprocess.Popen[bytes]]":
    """The processes that end when the command is stopped."""
    return list(_children)


def has_written(*, last: bool) -> bool:
    """Whether some result, or the last one, stands where the user wanted it."""
    return _Written.last if last else _Written.some


def forget_written() -> None:
    """A new command begins."""
    _Written.some = _Written.last = False


def _is_private(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in _private)
