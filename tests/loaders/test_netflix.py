"""Blocks of ratings under movie headers."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load

NO_HEADER = "no valid movie header above"
BROKEN = "movie header is not readable"


def test_blocks(loaded: Callable[..., Any]) -> None:
    got = loaded("1:\n7,3,2005-09-06\n8,5,2005-05-13\n\n2:\r\n3 :\n7,4,2004-01-02")
    assert got.rows("user_id, item_id, rating, rated_at, line, raw, problem") == [
        (7, 1, 3.0, datetime(2005, 9, 6), 2, None, None),
        (8, 1, 5.0, datetime(2005, 5, 13), 3, None, None),
        (7, 3, 4.0, datetime(2004, 1, 2), 7, None, None),
    ]
    report = got.report.inputs[0]
    assert (report.format, report.rows, report.problem_rows) == ("netflix", 3, 0)
    assert (got.report.user_id_type, got.report.item_id_type) == ("BIGINT", "BIGINT")


@pytest.mark.parametrize(
    "header", ["abc::", "12;", ":", " :", "1 2:", "12", "x:", "1::", "1,2:", "-1:", "1:2,3", "1.5:"]
)
def test_a_broken_header_ends_the_block_before(loaded: Callable[..., Any], header: str) -> None:
    got = loaded(f"1:\n7,3,2005-09-06\n{header}\n8,5,2005-05-13\n9,5,2005-05-13\n2:\n8,4,2004-01-02\n")
    assert got.good() == [(7, 1, 3.0), (8, 2, 4.0)]
    assert got.problems() == [(3, BROKEN), (4, NO_HEADER), (5, NO_HEADER)]
    assert got.rows("raw")[1:4] == [(header,), ("8,5,2005-05-13",), ("9,5,2005-05-13",)]


def test_rows_with_problems(loaded: Callable[..., Any]) -> None:
    got = loaded(
        "6,1,2005-09-06\n1:\n7,3,2005-09-06\n8,3\n,3,2005-09-06\n8,x,2005-09-06\n9,3,monday\n10,2,\n"
        "11,nan,2005-09-06\n12,1,2005-09-06,9\n"
    )
    assert got.good() == [(7, 1, 3.0), (10, 1, 2.0)]
    assert got.problems() == [
        (1, NO_HEADER),
        (4, "malformed line: expected 3 fields, found 2"),
        (5, "user id is empty"),
        (6, "rating is not a number"),
        (7, "time is not readable"),
        (9, "rating is not a finite number"),
        (10, "malformed line: expected 3 fields, found 4"),
    ]


def test_files_start_anew(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    first = write("1:\n7,3,2005-09-06\n", "combined_1.txt")
    second = write("8,3,2005-09-06\n2:\n9,3,2005-09-06\n", "combined_2.txt")
    load(con, [first, second], LoadOptions())
    rows = con.execute("select source, line, item_id, problem from loaded.ratings order by 1, 2").fetchall()
    assert rows == [
        ("combined_1.txt", 2, 1, None),
        ("combined_2.txt", 1, None, NO_HEADER),
        ("combined_2.txt", 3, 2, None),
    ]


def test_blocks_over_many_batches(loaded: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._loaders.lines.CHUNK_BYTES", 11)
    text, expected = "", []
    for movie in range(1, 60):
        broken = movie % 7 == 0
        text += "bad\n" if broken else f"{movie}:\n"
        for user in range(movie % 5):
            text += f"{user},3,2005-09-06\n"
            if not broken:
                expected.append((user, movie, 3.0))
    assert loaded(text).good() == expected


def test_text_users_and_no_dates(loaded: Callable[..., Any]) -> None:
    got = loaded("1:\nanna,3\nbob,4\n")
    assert got.good() == [("anna", 1, 3.0), ("bob", 1, 4.0)]
    got = loaded("1:\n7,3,never\n8,4,2005-01-01\n", time_column="none")
    assert got.good() == [(7, 1, 3.0), (8, 1, 4.0)]


def test_only_headers(loaded: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="only movie headers"):
        loaded("1:\n2:\n")
