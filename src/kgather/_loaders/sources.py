"""Finding an input and telling its kind by its first bytes."""

import glob
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from kgather._errors import InputError

Kind = Literal["text", "gzip", "zstd", "bzip2", "xz", "zip", "parquet", "duckdb"]
TEXTS: tuple[Kind, ...] = ("text", "gzip", "zstd", "bzip2", "xz", "zip")
"""Text, plain or compressed."""

HEAD_BYTES = 4096

FETCHED_PREFIX = "kgather-input-"
"""How folders begin into which inputs from elsewhere are copied."""

_READABLE: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x1f\x8b", "gzip"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\0", "xz"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"PAR1", "parquet"),
    (8, b"DUCK", "duckdb"),
)

_FOREIGN: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"ARROW1", "an Arrow (Feather) file"),
    (0, b"PARE", "an encrypted Parquet file"),
    (0, b"Obj\x01", "an Avro file"),
    (0, b"ORC", "an ORC file"),
    (0, b"\x89HDF", "an HDF5 file"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (0, b"\x7fELF", "a program"),
    (257, b"ustar", "a tar archive"),
)

_UNICODE_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


@dataclass(frozen=True)
class Source:
    """One input, found and looked at.

    `given` is what was typed, or the path of a file in a folder that was typed; `table` is set for `file.duckdb:table`,
    `holds` says for messages what is wanted of it. `partitions` are the columns that the names of its folders give, as
    `year=2020`.
    """

    given: str
    path: Path
    kind: Kind
    table: str | None = None
    holds: str = "ratings"
    partitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def basename(self) -> str:
        """The file's name, with the table where one was named."""
        return self.path.name if self.table is None else f"{self.path.name}:{self.table}"


def find_all(inputs: Sequence[str | Path], holds: str = "ratings") -> list[Source]:
    """Find inputs: files, `file:table`, folders with all files below them, and patterns such as `part-*.csv`.

    Files of a folder come in the order of their names; those whose name, or that of a folder, begins with "." or "_"
    are none of the data.

    Raises:
        InputError: As of `find`; also where a folder has no files, or a pattern fits none.
    """
    found: list[Source] = []
    for given in inputs:
        path = Path(given)
        if _exists(path) and path.is_dir():
            inside = [each for each in sorted(path.rglob("*")) if each.is_file() and not _is_hidden(each, path)]
            if not inside:
                message = f"{given} is a folder without files, there are no {holds} in it."
                raise InputError(message)
            found += [_part(given, number, each, path, holds) for number, each in enumerate(inside, 1)]
        elif isinstance(given, str) and not _exists(path) and any(mark in given for mark in "*?["):
            matches = sorted(glob.glob(given, recursive=True))  # noqa: PTH207
            fitting = [each for each in matches if Path(each).is_file()]
            if not fitting:
                message = f"{given}: no file fits this pattern."
                raise InputError(message)
            found += [_part(given, number, Path(each), Path(), holds) for number, each in enumerate(fitting, 1)]
        else:
            found.append(find(given, holds))
    return found


def _part(given: str | Path, number: int, path: Path, folder: Path, holds: str) -> Source:
    """A file of a folder or pattern. What partitions say is data, and messages name no data: the file has a number."""
    source, partitions = find(str(path), holds), _partitions(path, folder)
    return replace(source, given=f"{given} (file {number})", partitions=partitions) if partitions else source


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _partitions(path: Path, folder: Path) -> dict[str, str]:
    """What the folders' names say, as Hive writes it: `key=value`, with %XX for signs that paths cannot have."""
    parts = (path.relative_to(folder) if path.is_relative_to(folder) else path).parts[:-1]
    pairs = [part.partition("=") for part in parts if "=" in part]
    return {unquote(key): "" if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for key, _, value in pairs}


def find(given: str | Path, holds: str = "ratings") -> Source:
    """Find an input: a path, or `file:table` for a table of a DuckDB file.

    Args:
        given: The input as typed.
        holds: What is wanted of it, for messages.

    Raises:
        InputError: There is no such file, it cannot be read, it is empty, or it is of a kind that this program
            cannot read.
    """
    text = str(given)
    path, table = Path(text), None
    if isinstance(given, str) and not _exists(path) and ":" in text:
        left, _, right = text.rpartition(":")
        if left and right and _exists(Path(left)):
            path, table = Path(left), right
    head = _head(path, text, holds)
    kind = kind_of(head, text, holds)
    if table is not None and kind != "duckdb":
        message = f"{path} is not a DuckDB database, so it has no table to name after the colon."
        raise InputError(message)
    copied = any(each.name.startswith(FETCHED_PREFIX) for each in path.parents)
    return Source(given=path.name if copied else text, path=path, kind=kind, table=table, holds=holds)


def kind_of(head: bytes, name: str, holds: str = "ratings") -> Kind:
    """Tell the kind of a file by its first bytes.

    Args:
        head: The first bytes of the file.
        name: The input as typed, for messages.
        holds: What is wanted of it, for messages.

    Raises:
        InputError: The bytes are those of a kind that is not read, or are no text.
    """
    for offset, magic, kind in _READABLE:
        if head.startswith(magic, offset):
            return kind
    for offset, magic, label in _FOREIGN:
        if head.startswith(magic, offset):
            message = (
                f"{name} is {label}, not a file of {holds}. "
                "Give text (CSV and its relatives, also compressed), Parquet or DuckDB."
            )
            raise InputError(message)
    encoding = _wide_encoding(head)
    if encoding:
        message = f"{name} is encoded in {encoding}. Save it as UTF-8 and try again."
        raise InputError(message)
    if b"\0" in head:
        message = f"{name} is a binary file (it holds NUL bytes), not a file of {holds}."
        raise InputError(message)
    return "text"


def source_names(sources: Sequence[Source]) -> list[str]:
    """Name each input for the column `source`: its basename, or what was typed where basenames collide."""
    names = [source.basename for source in sources]
    return [source.given if names.count(name) > 1 else name for source, name in zip(sources, names, strict=True)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _head(path: Path, name: str, holds: str) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            message = f"{name} is a directory. Name one file in it."
            raise InputError(message)
        if not stat.S_ISREG(mode):
            message = f"{name} is not a regular file. Save the data to a file first."
            raise InputError(message)
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        message = f"{name}: there is no such file. Look at the path and its spelling."
        raise InputError(message) from None
    except NotADirectoryError:
        message = f"{name}: there is no such file (a part of the path is not a directory)."
        raise InputError(message) from None
    except PermissionError:
        message = f"{name} may not be read. Look at the permissions of the file and its directory."
        raise InputError(message) from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "bad path"
        message = f"{name} cannot be read ({reason})."
        raise InputError(message) from None
    if not head.removeprefix(b"\xef\xbb\xbf"):
        message = f"{name} is empty, there are no {holds} in it."
        raise InputError(message)
    return head


def _wide_encoding(head: bytes) -> str | None:
    for mark, encoding in _UNICODE_MARKS:
        if head.startswith(mark):
            return encoding
    start = head[:64]
    if len(start) >= 4 and (not any(start[1::2]) or not any(start[::2])):
        return "UTF-16"
    return None
