"""Checksums of files, each read once for it."""

import hashlib
from functools import lru_cache
from pathlib import Path


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits. It is kept as long as the file is not changed."""
    found = path.stat()
    return _sha256(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=100_000)
def _sha256(path: Path, inode: int, size: int, changed: int) -> str:
    del inode, size, changed
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
