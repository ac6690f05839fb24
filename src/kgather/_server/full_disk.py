"""Whether something failed because the disk takes no more."""

import errno
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import duckdb

_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No room, none for this user, or none in this file."""
_PROBE = 1 << 16  # bytes


def is_disk_full(error: BaseException, ledger: Callable[[], Path]) -> bool:
    """Whether an error comes from a full disk, itself or as what it was raised for. ledger: gives its folder."""
    return any(_says_so(one, ledger) for one in _chain(error))


def try_writing(folder: Path) -> None:
    """Write as much as a line of the ledger takes, to the disk itself, and remove it."""
    path = folder / f".kgather-ready-{secrets.token_hex(8)}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(handle, bytes(_PROBE))
        os.fsync(handle)
        if written < _PROBE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)
        with suppress(OSError):
            path.unlink()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        # `from None` hides what came before, and keeps it.
        error = error.__cause__ or error.__context__


def _says_so(error: BaseException, ledger: Callable[[], Path]) -> bool:
    if isinstance(error, OSError):
        return error.errno in _ERRORS
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        # SQLite keeps the system's reason for itself where a write failed; the next one has it.
        return code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR_WRITE and _is_full(ledger()))
    return isinstance(error, duckdb.Error) and any(os.strerror(one) in str(error) for one in _ERRORS)


def _is_full(folder: Path) -> bool:
    try:
        try_writing(folder)
    except OSError as error:
        return error.errno in _ERRORS
    return False
