"""A text file as Arrow batches of numbered physical lines.

The bytes are cut at line ends here, with array operations, so that line numbers are exact for every kind of
line end and so that compression, encoding and damage are noticed where they happen; all meaning is given to
the lines later, in SQL.
"""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import duckdb
import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._loaders.options import Encoding
from kgather._loaders.sources import HEAD_BYTES, Source, kind_of

CHUNK_BYTES = 2 << 20
LONGEST_LINE = 64 << 20
SCHEMA = pa.schema([("line", pa.int64()), ("text", pa.string())])

Batches = Iterator[pa.RecordBatch]


class LineReader:
    """Reads the physical lines of a text file, plain or compressed.

    Args:
        source: The file; its kind is text, gzip or zstd.
        encoding: How its text is encoded.
    """

    def __init__(self, source: Source, encoding: Encoding) -> None:
        self._source = source
        self._encoding = encoding
        self.error: InputError | None = None

    def batches(self) -> Batches:
        """Yield batches of `line` (counted from 1, blank lines too) and `text` (without its line end).

        Raises:
            InputError: The file is damaged, not in its encoding, or no text. The error is also kept in
                `error`, for callers that see it through a database.
        """
        try:
            yield from self._batches()
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
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._fail(f"the {kind} data are cut off or damaged. Get the file again")
        except PermissionError:
            self._fail("the file may not be read. Look at its permissions")
        except OSError as error:
            if kind == "zstd" and not error.errno:
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


def _open(source: Source) -> IO[bytes] | Any:
    if source.kind == "gzip":
        return gzip.open(source.path, "rb")
    if source.kind == "zstd":
        return pa.input_stream(str(source.path), compression="zstd")
    return source.path.open("rb")
