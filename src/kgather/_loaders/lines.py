"""A text file as Arrow batches of numbered physical lines.

The bytes are cut at line ends here, with array operations, so that line numbers are exact for every kind of
line end and so that compression, encoding and damage are noticed where they happen; all meaning is given to
the lines later, in SQL.
"""

import bz2
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgather._errors import InputError
from kgather._loaders.options import LoadOptions
from kgather._loaders.sources import HEAD_BYTES, Source, kind_of

CHUNK_BYTES = 2 << 20
LONGEST_LINE = 64 << 20
SCHEMA = pa.schema([("line", pa.int64()), ("text", pa.string())])

Batches = Iterator[pa.RecordBatch]


class LineReader:
    """Reads the physical lines of a text file, plain or compressed.

    Args:
        source: The file; its kind is text, or text that is compressed.
        options: How its text is encoded, and which of its lines are not read.
    """

    def __init__(self, source: Source, options: LoadOptions) -> None:
        self._source = source
        self._encoding = options.encoding
        self._skipped = options.skip_lines
        self._comment = options.comment
        self._pattern, self._separator = options.separator_pattern, options.separator
        self.error: InputError | None = None

    def batches(self) -> Batches:
        """Yield batches of `line` (counted from 1, blank lines too) and `text` (without its line end).

        Raises:
            InputError: The file is damaged, not in its encoding, or no text. The error is also kept in
                `error`, for callers that see it through a database.
        """
        try:
            for batch in self._batches():
                yield self._without_unread(batch)
        except InputError as error:
            self.error = error
            raise

    def _batches(self) -> Batches:
        base = 0
        rest = b""
        for number, read in enumerate(self._chunks()):
            chunk = read
            if number == 0:
                if self._source.kind != "text":
                    self._refuse_nested(chunk)
                if self._encoding == "utf-8":
                    chunk = chunk.removeprefix(b"\xef\xbb\xbf")
            block = rest + chunk
            cut = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, -1) + 1
            part, rest = block[:cut], block[cut:]
            if len(rest) > LONGEST_LINE:
                self._fail(f"line {base + 1} or a later one is longer than {LONGEST_LINE >> 20} MiB")
            if part:
                batch = self._cut(part, base)
                base += batch.num_rows
                yield batch
        if rest:
            yield self._cut(rest, base)

    def _without_unread(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out the lines that are skipped and the comments; the others keep their numbers."""
        if self._skipped:
            batch = batch.filter(pc.greater(batch.column("line"), self._skipped))
        if self._comment is not None:
            batch = batch.filter(pc.invert(pc.starts_with(batch.column("text"), self._comment)))
        if self._pattern is not None:
            # Blanks at the ends of a line separate nothing.
            text = pc.utf8_trim(batch.column("text"), " \t")
            text = pc.replace_substring_regex(text, self._pattern, self._separator)
            batch = pa.RecordBatch.from_arrays([batch.column("line"), text], schema=SCHEMA)
        return batch

    def _cut(self, part: bytes, base: int) -> pa.RecordBatch:
        if b"\0" in part:
            line = base + 1 + _line_ends(part[: part.index(b"\0")])
            self._fail(f"line {line} holds a NUL byte: this is not a text file, or a damaged one")
        if self._encoding == "utf-8":
            if not part.isascii():
                try:
                    part.decode("utf-8")
                except UnicodeDecodeError as error:
                    line = base + 1 + _line_ends(part[: error.start])
                    self._fail(
                        f"line {line} is not valid UTF-8. "
                        "If the file is encoded in Latin-1 (Western European), use --encoding latin-1"
                    )
        elif not part.isascii():
            part = part.decode(self._encoding).encode("utf-8")
        if b"\r" in part:
            part = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not part.endswith(b"\n"):
            part += b"\n"
        ends = np.flatnonzero(np.frombuffer(part, np.uint8) == ord("\n"))
        count = len(ends)
        offsets = np.zeros(count + 1, np.int32)
        offsets[1:] = ends - np.arange(count)
        text = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(part.translate(None, b"\n")))
        numbers = pa.array(np.arange(base + 1, base + count + 1, dtype=np.int64))
        return pa.RecordBatch.from_arrays([numbers, text], schema=SCHEMA)

    def _chunks(self) -> Iterator[bytes]:
        kind = self._source.kind
        try:
            with _open(self._source) as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile):
            self._fail(f"the {kind} data are cut off or damaged. Get the file again")
        except RuntimeError:  # how zipfile says that a password is needed
            self._fail("the ZIP archive is encrypted. Unpack it first")
        except PermissionError:
            self._fail("the file may not be read. Look at its permissions")
        except OSError as error:
            if kind in ("zstd", "bzip2") and not error.errno:
                self._fail(f"the {kind} data are cut off or damaged. Get the file again")
            self._fail(f"it cannot be read ({os.strerror(error.errno) if error.errno else 'read error'})")

    def _refuse_nested(self, chunk: bytes) -> None:
        kind = kind_of(chunk[:HEAD_BYTES], self._source.given, self._source.holds)
        if kind != "text":
            self._fail(f"it is a {kind} file inside a {self._source.kind} file. Uncompress it first")

    def _fail(self, what: str) -> NoReturn:
        message = f"{self._source.given}: {what}."
        raise InputError(message)


@contextmanager
def registered(
    con: duckdb.DuckDBPyConnection,
    name: str,
    reader: LineReader,
    schema: pa.Schema = SCHEMA,
    transform: Callable[[Batches], Batches] = lambda batches: batches,
) -> Iterator[None]:
    """Make the lines of a file readable, once, as the relation `name` of a connection.

    Args:
        con: The connection.
        name: A name that is free.
        reader: The lines.
        schema: The schema of the batches that `transform` gives.
        transform: Applied to the stream of batches.

    Raises:
        InputError: The file turned out to be damaged while it was read.
    """
    batches = transform(reader.batches())
    con.register(name, pa.RecordBatchReader.from_batches(schema, batches))
    try:
        yield
    except duckdb.Error:
        if reader.error is not None:
            raise reader.error from None
        raise
    finally:
        con.unregister(name)


def sample_lines(reader: LineReader, count: int) -> list[tuple[int, str]]:
    """Give the first lines that are not blank, with their numbers.

    Args:
        reader: The file.
        count: At most so many lines.

    Raises:
        InputError: The beginning of the file is damaged.
    """
    sample: list[tuple[int, str]] = []
    batches = reader.batches()
    for batch in batches:
        for number, text in zip(*(column.to_pylist() for column in batch), strict=True):
            if text.strip():
                sample.append((number, text))
        if len(sample) >= count:
            break
    return sample[:count]


def _line_ends(text: bytes) -> int:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")


@contextmanager
def _open(source: Source) -> Iterator[IO[bytes] | Any]:
    if source.kind == "zip":
        with zipfile.ZipFile(source.path) as archive, archive.open(_only_member(source, archive)) as member:
            yield member
        return
    with _OPENERS.get(source.kind, _plain)(source.path) as file:
        yield file


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb")


_OPENERS: dict[str, Callable[[Path], Any]] = {
    "gzip": gzip.GzipFile,
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
    "zstd": lambda path: pa.input_stream(str(path), compression="zstd"),
}


def _only_member(source: Source, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file of an archive; what systems add to it (folders, __MACOSX) aside."""
    members = [
        each
        for each in archive.infolist()
        if not each.is_dir() and not each.filename.startswith("__MACOSX/") and not each.filename.endswith(".DS_Store")
    ]
    if len(members) != 1:
        message = (
            f"{source.given} is a ZIP archive (or an Excel workbook) of {len(members)} files, and one is read. "
            f"Unpack it and name the file of {source.holds}."
        )
        raise InputError(message)
    return members[0]
