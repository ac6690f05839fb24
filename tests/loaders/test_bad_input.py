"""Inputs that are refused, each with the reason and what to do."""

import gzip
import io
import itertools
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pydantic import ValidationError

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load

GOOD = b"user,item,rating\n" + b"".join(b"%d,%d,3\n" % (number, number % 97) for number in range(1, 20000))
FIELDS = ("user", "item", "rating")


def zipped() -> bytes:
    """A small ZIP archive of two files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ratings.csv", GOOD)
        archive.writestr("more.csv", GOOD)
    return buffer.getvalue()


def zstd() -> bytes:
    """The good ratings, compressed."""
    buffer = io.BytesIO()
    with pa.output_stream(buffer, compression="zstd") as out:
        out.write(GOOD)
        out.flush()
        value = buffer.getvalue()
    return value if len(value) > 100 else buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\n \n\t\n", "only blank lines"),
        (b"user,item,rating\n", "only a header"),
        (b"user,item,rating\n\n  \n", "only a header"),
        (
            b"who,what,how\n1,2,3\n",
            # The words may be a row, and are not told.
            r"no line names the columns(?s:.*)use --header(?s:.*)  aaa \| aaaa \| aaa\n(?s:.*)"
            r"--fields user,item,rating",
        ),
        (
            b"user,item,tag\n1,2,3\n",
            r"no column is clearly named as that of the ratings. The columns are: user, item, tag\. "
            r"(?s:.*)Say which columns they are: --rating-column NAME\n",
        ),
        (
            b"user_id,customer_id,item,rating\n1,2,3,4\n",
            "'user_id' and 'customer_id' fit the users equally well.*--user-column",
        ),
        (b"user,item,rating,time,date\n1,2,3,4,5\n", "'time' and 'date' fit the times equally well.*none"),
        (b"1,2\n3,4\n", "the lines have 2 fields.*--delimiter"),
        (b"1,a,b\n2,c,d\n", "no line names the columns, so which of them holds the people is not known"),
        (
            b"a little text\nof some lines\n",
            "no line names the columns, so which of them holds the people is not known",
        ),
        (b"a,b\0,3\n", "NUL"),
        (GOOD + b"\0\n", "line 20001 holds a NUL byte"),
        (b"\x89PNG\r\n\x1a\n1234", "is a PNG image"),
        (b"\xff\xd8\xff\xe0 1234", "is a JPEG image"),
        (b"SQLite format 3\0 1234", "is an SQLite database"),
        (zipped(), "is a ZIP archive .* of 2 files, and one is read. Unpack it"),
        ("user,item,rating\n1,2,3\n".encode("utf-16"), "is encoded in UTF-16.*Save it as UTF-8"),
        ("user,item,rating\n1,2,3\n".encode("utf-16-le"), "is encoded in UTF-16"),
        ("user,item,rating\n1,2,3\n".encode("utf-32"), "is encoded in UTF-32"),
        (b"user,item,rating\n1,2,3\ncaf\xe9,2,3\n", "line 3 is not valid UTF-8.*--encoding latin-1"),
        (b"a,b,1\r\rc,d,2\r\n\xe9,f,3\n", "line 4 is not valid UTF-8"),
        (GOOD + b"\xe9,1,2\n", "line 20001 is not valid UTF-8"),
        (GOOD + b"\xc3", "line 20001 is not valid UTF-8"),
        (gzip.compress(GOOD, mtime=0)[:-20], "gzip data are cut off or damaged"),
        (gzip.compress(GOOD, mtime=0)[:30], "gzip data are cut off or damaged"),
        (gzip.compress(GOOD, mtime=0)[:-8] + b"\0" * 8, "gzip data are cut off or damaged"),
        (zstd()[:-20], "zstd data are cut off or damaged"),
        (zstd()[:30], "zstd data are cut off or damaged"),
        (b"\x28\xb5\x2f\xfdnothing", "zstd data are cut off or damaged"),
        (gzip.compress(gzip.compress(GOOD, mtime=0), mtime=0), "gzip file inside a gzip file"),
        (gzip.compress(b"x" * 257 + b"ustar" + b"\0" * 100, mtime=0), "is a tar archive"),
        (gzip.compress(b"", mtime=0), "only blank lines"),
    ],
    # Names of their own: bytes are no name, and two processes must collect the same tests.
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_refused(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], content: bytes, message: str) -> None:
    path = write(content)
    with pytest.raises(InputError, match=message) as caught:
        load(con, [path], LoadOptions())
    assert str(caught.value).startswith((f"{path}: ", f"{path} "))
    assert caught.value.exit_code == 2
    assert con.execute("select table_name from duckdb_tables()").fetchall() == []
    con.execute("select 1").fetchall()


@pytest.mark.parametrize("content", ["1,a,b\n2,c,d\n", "a little text\nof some lines\n"])
def test_ratings_that_are_no_numbers(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], content: str) -> None:
    with pytest.raises(InputError, match="field 3 of 3 does not hold numbers, so it cannot be the ratings"):
        load(con, [write(content)], LoadOptions(fields=FIELDS))


def test_paths(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for given, message in [
        (tmp_path / "nothing.csv", "there is no such file"),
        (f"{tmp_path}/nothing.duckdb:t", "there is no such file"),
        (tmp_path, "is a folder without files, there are no ratings in it"),
        ("bad\0path", "cannot be read"),
        ("x" * 5000, "cannot be read"),
    ]:
        with pytest.raises(InputError, match=message):
            load(con, [given], LoadOptions())
    with pytest.raises(InputError, match="no input"):
        load(con, [], LoadOptions())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        load(con, [tmp_path / "pipe"], LoadOptions())


def test_permissions(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("user,item,rating\n1,2,3\n")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"may not be read.*permissions"):
        load(con, [path], LoadOptions())


def test_a_line_without_end(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgather._loaders.lines.LONGEST_LINE", 1000)
    monkeypatch.setattr("kgather._loaders.lines.CHUNK_BYTES", 100)
    with pytest.raises(InputError, match="line 2 or a later one is longer than"):
        load(con, [write("1,2,3\n" + "x" * 2000)], LoadOptions(fields=FIELDS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"user_column": "nix"}, "no column 'nix' for the users.*The columns are: user, item, rating"),
        ({"user_column": "item"}, "the users and the items are both taken from column 2"),
        ({"rating_column": "4"}, "no column '4' for the ratings"),
        ({"format": "parquet"}, "is a text file, not parquet"),
        ({"header": False, "user_column": "user"}, "--user-column must be a position"),
        ({"header": False, "user_column": "9"}, "no field 9"),
        (
            {"header": False, "user_column": "2", "item_column": "2", "rating_column": "3"},
            "the users and the items are both taken from column 2",
        ),
        ({"header": False, "user_column": "2"}, "no line names the columns"),
        ({"header": False, "user_column": "2", "item_column": "1"}, "no line names the columns"),
        ({"header": False}, "no line names the columns"),
        ({"header": False, "rating_column": "0"}, "no field 0"),
        ({"delimiter": "|"}, "have 1 field.*--delimiter"),
    ],
)
def test_options_that_do_not_fit(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(con, [write("user,item,rating\n1,2,3\n")], LoadOptions(**options))


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": '"'},
        {"delimiter": "\n"},
        {"delimiter": "12345"},
        {"encoding": "utf-16"},
        {"format": "excel"},
        {"user_column": " "},
        {"fields": ()},
        {"fields": ("user", "item")},
        {"fields": ("user", "item", "item", "rating")},
        {"fields": ("user", "item", "rating", "who")},
        {"nix": 1},
    ],
)
def test_options_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LoadOptions(**options)


def test_messages_hold_no_data(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    contents = (
        b"secret-user,secret-item\n" * 5,
        b"secret-user,secret-item,secret\n" * 5,
        b"1,2,3\nsecret-user,\xe9,3\n",
        b"secret-user\n" * 5,
        b"secret user likes secret-item\nsecret-user too\n",
    )
    for content, fields in itertools.product(contents, (None, FIELDS)):
        with pytest.raises(InputError) as caught:
            load(con, [write(content)], LoadOptions(fields=fields))
        assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match=r"The columns are: ####, ###, #\."):
        load(con, [write("4711,815,3\n1,2,3\n")], LoadOptions(header=True))
