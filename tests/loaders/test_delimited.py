"""Files with one rating a line."""

import csv
import gzip
import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather._loaders import LoadOptions, fields, load, values
from kgather._loaders.columns import RolesUnknownError
from kgather._loaders.expressions import WHITE_SPACE, is_blank, trimmed
from kgather._loaders.options import MISSING

TWO = [(1, 10, 4.0), (2, 11, 3.5)]
FIELDS = ("user", "item", "rating")


@pytest.mark.parametrize(
    ("content", "delimiter", "header"),
    [
        ("user,item,rating\n1,10,4\n2,11,3.5\n", ",", True),
        ("userId;movieId;Rating\n1;10;4\n2;11;3.5\n", ";", True),
        ("Customer_ID\tISBN\tStars\n1\t10\t4\n2\t11\t3.5\n", "\t", True),
        ("reviewerID|asin|overall\n1|10|4\n2|11|3.5\n", "|", True),
        ("user item rating\n1 10 4\n2 11 3.5\n", " ", True),
        ("user::item::rating\n1::10::4\n2::11::3.5\n", "::", True),
        ("rating,item,user\n4,10,1\n3.5,11,2\n", ",", True),
        ("1,10,4\n2,11,3.5\n", ",", False),
        ("1\t10\t4\n2\t11\t3.5\n", "\t", False),
        ("1::10::4\n2::11::3.5\n", "::", False),
        ("1 10 4\n2 11 3.5", " ", False),
        ("1;10;4\n2;11;3,5\n", ";", False),
        ("1,10,4\r\n2,11,3.5\r\n", ",", False),
        ("1,10,4\r2,11,3.5\r", ",", False),
        ("\ufeffuser,item,rating\n1,10,4\n2,11,3.5\n", ",", True),
        ("\ufeff1,10,4\n2,11,3.5\n", ",", False),
        ("\n\nuser,item,rating\n\n1,10,4\n \t\n2,11,3.5\n\n", ",", True),
        ('"user","item","rating"\n"1","10","4"\n"2","11","3.5"\n', ",", True),
        ("user, item, rating\n1, 10, 4\n2, 11, 3.5\n", ",", True),
        ("title,user,item,note,rating\na b,1,10,,4\nc,2,11,x,3.5\n", ",", True),
    ],
)
def test_layouts(loaded: Callable[..., Any], content: str, delimiter: str, header: bool) -> None:
    got = loaded(content, fields=None if header else FIELDS)
    assert got.good() == TWO
    assert got.problems() == []
    report = got.report.inputs[0]
    assert (report.delimiter, report.header, report.rows, report.problem_rows) == (delimiter, header, 2, 0)
    assert got.report.user_id_type == got.report.item_id_type == "BIGINT"
    if not header:
        with pytest.raises(RolesUnknownError, match="no line names the columns"):
            loaded(content)


def test_columns_of_the_relation(loaded: Callable[..., Any]) -> None:
    got = loaded("user,item,rating,timestamp\n1,10,4,978300760\n2,11,x,1\n", "r.csv")
    described = got.con.execute("describe loaded.ratings").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("user_id", "BIGINT"),
        ("item_id", "BIGINT"),
        ("rating", "DOUBLE"),
        ("rated_at", "TIMESTAMP"),
        ("source", "VARCHAR"),
        ("line", "BIGINT"),
        ("raw", "VARCHAR"),
        ("problem", "VARCHAR"),
    ]
    assert got.rows("*") == [
        (1, 10, 4.0, datetime(2000, 12, 31, 22, 12, 40), "r.csv", 2, None, None),
        (None, None, None, None, "r.csv", 3, "2,11,x,1", "rating is not a number"),
    ]
    assert got.report.inputs[0].columns == {
        "user": "user",
        "item": "item",
        "rating": "rating",
        "time": "timestamp",
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1,10", "malformed line: expected 3 fields, found 2"),
        ("1,10,4,5", "malformed line: expected 3 fields, found 4"),
        ("x", "malformed line: expected 3 fields, found 1"),
        (",10,4", "user id is empty"),
        ("  ,10,4", "user id is empty"),
        ('"",10,4', "user id is empty"),
        ("1,,4", "item id is empty"),
        ("1,10,", "rating is not a number"),
        ("1,10,four", "rating is not a number"),
        ("1,10,1_0", "rating is not a number"),
        ("1,10,0x10", "rating is not a number"),
        ("1,10,+-1", "rating is not a number"),
        ('1,10,"3,5"', "rating is not a number"),
        ("1,10,NaN", "rating is not a finite number"),
        ("1,10,-inf", "rating is not a finite number"),
        ("1,10,1e999", "rating is not a finite number"),
        ('1,"10,4', "quote is never closed"),
        ('1,"10"x,4', "quote is not at the ends of a field"),
        ("user,item,rating", "rating is not a number"),
    ],
)
def test_problem_rows_are_kept(loaded: Callable[..., Any], line: str, problem: str) -> None:
    got = loaded(f"user,item,rating\n1,10,4\n\n{line}\n2,11,3.5\n")
    assert got.good() == TWO
    assert got.rows("line, raw, problem") == [(2, None, None), (4, line, problem), (5, None, None)]
    assert got.report.problem_rows == 1
    assert got.report.user_id_type == "BIGINT"


@pytest.mark.parametrize(
    ("text", "rating"),
    [("4", 4), ("4.0", 4), ("-9.95", -9.95), ("1e0", 1), ("+4", 4), (" 4 ", 4), (".5", 0.5)],
)
def test_ratings(loaded: Callable[..., Any], text: str, rating: float) -> None:
    assert loaded(f"1,10,{text}\n2,10,3\n", fields=FIELDS).good() == [(1, 10, rating), (2, 10, 3)]


def test_decimal_commas_that_could_be_thousands_are_not_guessed(loaded: Callable[..., Any]) -> None:
    got = loaded("user;item;rating\n1;2;3,5\n1;3;-4,25\n1;4;3,500\n1;5;1.000,5\n")
    assert got.good() == [(1, 2, 3.5), (1, 3, -4.25)]
    assert got.problems() == [(4, "rating is not a number"), (5, "rating is not a number")]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("978300760", datetime(2000, 12, 31, 22, 12, 40)),
        ("978300760.0", datetime(2000, 12, 31, 22, 12, 40)),
        ("978300760123", datetime(2000, 12, 31, 22, 12, 40, 123000)),
        ("0", datetime(1970, 1, 1)),
        ("2005-09-06", datetime(2005, 9, 6)),
        ("2005-09-06 10:11:12", datetime(2005, 9, 6, 10, 11, 12)),
        ("2005-09-06T10:11", datetime(2005, 9, 6, 10, 11)),
        ("2005-09-06T10:11:12.5Z", datetime(2005, 9, 6, 10, 11, 12, 500000)),
        ("2005-09-06T10:11:12+02:00", datetime(2005, 9, 6, 8, 11, 12)),
        ("2005-09-06 10:11:12 -0330", datetime(2005, 9, 6, 13, 41, 12)),
        ("2005-09-06T10:11:12 +02", datetime(2005, 9, 6, 8, 11, 12)),
        ("2005-09-06 10:11Z", datetime(2005, 9, 6, 10, 11)),
        ("2005-09-06 10:11:12 UTC", datetime(2005, 9, 6, 10, 11, 12)),
        ("", None),
        ("NaN", None),
    ],
)
def test_times(loaded: Callable[..., Any], text: str, time: datetime | None) -> None:
    got = loaded(f"user,item,rating,time\n1,2,3,{text}\n1,3,4,2001-01-01\n")
    assert got.rows("rated_at") == [(time,), (datetime(2001, 1, 1),)]
    assert got.problems() == []


@pytest.mark.parametrize("text", ["yesterday", "-5", "2005-13-01", "06.09.2005", "infinity", "10:11:12", "9" * 25])
def test_unreadable_times(loaded: Callable[..., Any], text: str) -> None:
    got = loaded(f"user,item,rating,time\n1,2,3,{text}\n1,3,4,2001-01-01\n")
    assert got.problems() == [(2, "time is not readable")]


def test_a_column_of_times_that_are_none_is_ignored(loaded: Callable[..., Any]) -> None:
    got = loaded("user,item,rating,date\n1,2,3,monday\n1,3,4,tuesday\n")
    assert got.problems() == []
    assert got.report.inputs[0].columns["time"] is None
    assert "'date'" in got.report.warnings[0]


def test_times_can_be_ignored(loaded: Callable[..., Any]) -> None:
    fields = (*FIELDS, "time")
    got = loaded("1\t2\t3\t978300760\n1\t3\t4\tnever\n", time_column="none", fields=fields)
    assert got.rows("rated_at, problem") == [(None, None), (None, None)]


@pytest.mark.parametrize(
    ("ids", "kind", "back"),
    [
        (["1", "-2", "0"], "BIGINT", [1, -2, 0]),
        (["9223372036854775807", "-9223372036854775808"], "BIGINT", [2**63 - 1, -(2**63)]),
        ([" 1 ", "2\t", "\u00a03"], "BIGINT", [1, 2, 3]),
        (["1", "9223372036854775808"], "VARCHAR", ["1", "9223372036854775808"]),
        (["1", "007"], "VARCHAR", ["1", "007"]),
        (["1", "+7"], "VARCHAR", ["1", "+7"]),
        (["1", "-0"], "VARCHAR", ["1", "-0"]),
        (["1", "1.0"], "BIGINT", [1, 1]),
        (["7", " 7.0", "7.00", "-7.0"], "BIGINT", [7, 7, 7, -7]),
        (["1", "1.5"], "VARCHAR", ["1", "1.5"]),
        (["1", "x", "1.0", "007.0"], "VARCHAR", ["1", "x", "1", "007.0"]),
        (["1", "1e3"], "VARCHAR", ["1", "1e3"]),
        (["1", "1_0"], "VARCHAR", ["1", "1_0"]),
        (["anna", " Ωmega\u3000"], "VARCHAR", ["anna", "Ωmega"]),
    ],
)
def test_types_of_ids(loaded: Callable[..., Any], ids: list[str], kind: str, back: list[Any]) -> None:
    got = loaded("user,item,rating\n" + "".join(f"{each},5,1\n" for each in ids))
    assert [row[0] for row in got.good()] == back
    assert (got.report.user_id_type, got.report.item_id_type) == (kind, "BIGINT")
    mixed = kind == "VARCHAR" and back[0] == "1"
    texts = ["user ids: some are not integers, all are kept as text."] * mixed
    merged = ["1 user ids were written in several ways (as 7 and 7.0); each is one user."] * got.report.merged_users
    assert got.report.warnings == texts + merged
    assert got.report.merged_users == (1 if len({*map(str.strip, ids)}) > len({*back}) else 0)


def test_a_text_id_after_the_sample(loaded: Callable[..., Any]) -> None:
    lines = [f"{number},{number + 1},3" for number in range(1, 3001)]
    lines[2500] = "x7,2,3"
    got = loaded("\n".join(lines), fields=FIELDS)
    assert got.report.user_id_type == "VARCHAR"
    assert got.report.item_id_type == "BIGINT"
    assert got.report.rows == 3000
    assert [row[0] for row in got.good()][2499:2502] == ["2500", "x7", "2502"]


def test_several_files_get_a_common_type(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    first = write("user,item,rating\n1,10,4\n", "a.csv")
    second = write("user\titem\trating\nbob\t11\t3\n", "b.tsv")
    report = load(con, [first, str(second)], LoadOptions())
    rows = con.execute("select user_id, item_id, source, line from loaded.ratings order by source").fetchall()
    assert rows == [("1", 10, "a.csv", 2), ("bob", 11, "b.tsv", 2)]
    assert [(each.format, each.rows) for each in report.inputs] == [("csv", 1), ("tsv", 1)]


def test_files_with_the_same_name_are_told_apart(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    paths = [tmp_path / "x" / "r.csv", tmp_path / "y" / "r.csv"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("1,2,3\n")
    load(con, paths, LoadOptions(fields=FIELDS))
    sources = con.execute("select source from loaded.ratings order by 1").fetchall()
    assert sources == [(str(path),) for path in paths]


QUOTED = [
    ('"a,b",i,4', ("a,b", "i", 4.0)),
    ('"say ""hi""",i,4', ('say "hi"', "i", 4.0)),
    ('a,"i","4"', ("a", "i", 4.0)),
    (' "a" , "i" ,4', ("a", "i", 4.0)),
    ('6" vinyl,i,4', ('6" vinyl', "i", 4.0)),
    ('"two\nlines",i,4', ("two\nlines", "i", 4.0)),
    ('"three\n\nlines, ""quoted""\n",i,4', ('three\n\nlines, "quoted"', "i", 4.0)),
]


@pytest.mark.parametrize(("record", "row"), QUOTED)
def test_quotes(loaded: Callable[..., Any], record: str, row: tuple[Any, ...]) -> None:
    got = loaded(f"user,item,rating\nx,y,1\n{record}\nz,y,2\n")
    assert got.good() == [("x", "y", 1.0), row, ("z", "y", 2.0)]
    last = 4 + record.count("\n")
    assert got.rows("line") == [(2,), (3,), (last,)]


def test_quotes_between_long_separators(loaded: Callable[..., Any]) -> None:
    got = loaded('a::b::1\n"c::d"::"e ""f"""::2\n', fields=FIELDS)
    assert got.good() == [("a", "b", 1.0), ("c::d", 'e "f"', 2.0)]


@pytest.mark.parametrize("distance", [1, 2, 5, 600, 3000])
def test_stray_quotes_cost_their_own_lines_only(loaded: Callable[..., Any], distance: int) -> None:
    lines = [f"{number},7,3" for number in range(1, 4001)]
    lines[700] = '701,"7,3'
    lines[700 + distance] = f'{701 + distance},"7,3'
    got = loaded("\n".join(lines), fields=FIELDS)
    assert got.problems() == [(701, "quote is never closed"), (701 + distance, "quote is never closed")]
    assert got.report.rows == 4000


def test_a_stray_quote_before_records_over_lines(loaded: Callable[..., Any]) -> None:
    got = loaded(
        'user,item,rating,note\n1,2,3,"bad\n1,3,3,fine\n1,4,4,"two\nlines"\n1,5,5,"three\n\n ""x"", y\nlines"\n'
    )
    assert got.good() == [(1, 3, 3.0), (1, 4, 4.0), (1, 5, 5.0)]
    assert got.problems() == [(2, "quote is never closed")]
    assert got.rows("line") == [(2,), (3,), (4,), (6,)]


def test_options_name_columns(loaded: Callable[..., Any]) -> None:
    content = "who,what,how much,User\n1,10,4,9\n2,11,3.5,9\n"
    got = loaded(content, user_column="WHO", item_column="what", rating_column="How Much")
    assert got.good() == TWO
    assert got.report.inputs[0].columns == {
        "user": "who",
        "item": "what",
        "rating": "how much",
        "time": None,
    }


def test_options_give_positions(loaded: Callable[..., Any]) -> None:
    got = loaded("4,x,1,10\n3.5,y,2,11\n", user_column="3", item_column="4", rating_column="1")
    assert got.good() == TWO


def test_options_force_the_header(loaded: Callable[..., Any]) -> None:
    got = loaded("user,item,rating\n1,2,3\n", header=False, fields=FIELDS)
    assert got.good() == [(1, 2, 3.0)]
    assert got.problems() == [(1, "rating is not a number")]
    got = loaded("1,2,3\n7,8,9\n", header=True, user_column="1", item_column="2", rating_column="3")
    assert got.good() == [(7, 8, 9.0)]


def test_a_first_line_that_is_wrong_is_no_header(loaded: Callable[..., Any]) -> None:
    content = "anna,dune,bad\nbob,dune,3\nbob,solaris,4\n"
    with pytest.raises(RolesUnknownError, match="no line names the columns"):
        loaded(content)
    got = loaded(content, fields=FIELDS)
    assert got.problems() == [(1, "rating is not a number")]
    assert got.good() == [("bob", "dune", 3.0), ("bob", "solaris", 4.0)]


@pytest.mark.parametrize("delimiter", ["tab", "\\t", "\t"])
def test_options_give_the_delimiter(loaded: Callable[..., Any], delimiter: str) -> None:
    assert loaded("1\t10\t4\n2\t11\t3.5\n", delimiter=delimiter, fields=FIELDS).good() == TWO


def test_unusual_delimiters(loaded: Callable[..., Any]) -> None:
    assert loaded("1^10^4\n2^11^3.5\n", delimiter="^", fields=FIELDS).good() == TWO
    assert loaded("1]10]4\n2]11]3.5\n", delimiter="]", fields=FIELDS).good() == TWO
    assert loaded("1~~~~10~~~~4\n2~~~~11~~~~3.5\n", delimiter="~~~~", fields=FIELDS).good() == TWO
    assert loaded("1'10'4\n2'11'3.5\n", delimiter="'", fields=FIELDS).good() == TWO
    assert loaded('1\\10\\4\n"2"\\11\\3.5\n', delimiter="\\", fields=FIELDS).good() == TWO


def test_latin_1(loaded: Callable[..., Any]) -> None:
    got = loaded("user;item;rating\nJosé;Café;4\n".encode("latin-1"), encoding="latin-1")
    assert got.good() == [("José", "Café", 4.0)]


def test_compressed(loaded: Callable[..., Any], tmp_path: Path) -> None:
    content = b"1,10,4\n2,11,3.5\n"
    got = loaded(gzip.compress(content[:5], mtime=0) + gzip.compress(content[5:], mtime=0), "r.csv", fields=FIELDS)
    assert got.good() == TWO
    assert got.report.inputs[0].compression == "gzip"
    with pa.output_stream(str(tmp_path / "z"), compression="zstd") as out:
        out.write(content)
    got = loaded((tmp_path / "z").read_bytes(), "r.csv", fields=FIELDS)
    assert got.good() == TWO
    assert got.report.inputs[0].compression == "zstd"
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("of one.csv", content)
    got = loaded((tmp_path / "zip").read_bytes(), "r.csv", fields=FIELDS)
    assert got.good() == TWO
    assert got.report.inputs[0].compression == "zip"


def test_line_numbers_over_many_batches(loaded: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgather._loaders.lines.CHUNK_BYTES", 7)
    text = "".join(
        f"{number},é{number},3{end}"
        for number, end in zip(range(1, 90), ["\n", "\r\n", "\r", "\n\n"] * 30, strict=False)
    )
    got = loaded(text, fields=FIELDS)
    expected, line = [], 1
    for number, end in zip(range(1, 90), ["\n", "\r\n", "\r", "\n\n"] * 30, strict=False):
        expected.append((number, f"é{number}", line))
        line += 2 if end == "\n\n" else 1
    assert got.rows("user_id, item_id, line") == expected


def test_an_older_relation_is_replaced_only_by_a_good_one(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path]
) -> None:
    options = LoadOptions(fields=FIELDS)
    good = write("1,10,4\n2,11,3.5\n")
    load(con, [good], options)
    with pytest.raises(InputError, match="line 300001 is not valid UTF-8"):
        load(con, [good, write(b"1,10,4\n" * 300_000 + b"\xff,1,2\n", "bad.csv")], options)
    assert con.execute("select user_id, item_id, rating from loaded.ratings order by 1").fetchall() == TWO
    tables = con.execute("select table_name from duckdb_tables()").fetchall()
    assert tables == [("ratings",)]
    con.execute("drop table loaded.ratings; create view loaded.ratings as select 1")
    load(con, [good, good], options)
    assert con.execute("select count(*) from loaded.ratings").fetchall() == [(4,)]


def test_another_schema(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    load(con, [write("1,10,4\n")], LoadOptions(fields=FIELDS), schema='odd "name"')
    load(con, [write("1,10,4\n")], LoadOptions(fields=FIELDS), schema='odd "name"')
    assert con.execute('select user_id from "odd ""name""".ratings').fetchall() == [(1,)]


IDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).filter(str.strip)


def one_form(text: str) -> str:
    """An id as it is kept, however it was written."""
    text = text.strip()
    if re.fullmatch(r"(0|-?[1-9][0-9]*|-0)\.0+", text):
        return str(int(text.split(".")[0]))
    return unicodedata.normalize("NFC", text)


def empty(text: str) -> bool:
    """Whether a text stands for no id."""
    return text.strip().lower() in MISSING


RATINGS = st.one_of(st.integers(-10, 10), st.floats(-1e6, 1e6, allow_nan=False))


@pytest.fixture(scope="module")
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for all examples: opening one takes longer than most of what they do."""
    with duckdb.connect() as con:
        yield con


MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@MANY
@given(
    rows=st.lists(st.tuples(IDS, IDS, RATINGS), min_size=1, max_size=12),
    delimiter=st.sampled_from([",", ";", "\t", "|", " "]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    header=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    final_end=st.booleans(),
    said=st.booleans(),
)
def test_what_csv_writes_is_read(
    opened: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    rows: list[tuple[str, str, float]],
    delimiter: str,
    end: str,
    header: bool,
    quoting: Any,
    final_end: bool,
    said: bool,
) -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
    if header:
        writer.writerow(["user", "item", "rating"])
    writer.writerows(rows)
    text = buffer.getvalue()
    path = tmp_path / "r.csv"
    path.write_bytes((text if final_end else text.removesuffix(end)).encode())
    said = said or not header
    fields = None if header else FIELDS
    options = LoadOptions(delimiter=delimiter if said else None, header=header, fields=fields)
    report = load(opened, [path], options)
    got = opened.execute("select user_id, item_id, rating, problem, line from loaded.ratings order by line").fetchall()
    bad = [(number, user, item) for number, (user, item, _) in enumerate(rows) if empty(user) or empty(item)]
    assert {number: got[number][:4] for number, *_ in bad} == {
        number: (None, None, None, f"{'user' if empty(user) else 'item'} id is empty") for number, user, item in bad
    }
    assert [(str(user), str(item), rating) for user, item, rating, problem, _ in got if problem is None] == [
        (one_form(user), one_form(item), float(rating))
        for user, item, rating in rows
        if not (empty(user) or empty(item))
    ]
    assert [row[4] for row in got] == list(range(1 + header, 1 + header + len(rows)))
    assert report.rows == len(rows)


@MANY
@given(
    lines=st.lists(st.text(st.sampled_from('1a," .\n\r\té:'), max_size=12), min_size=0, max_size=15),
    delimiter=st.sampled_from([",", "::", " ", "\t"]),
)
def test_every_line_becomes_one_row(
    opened: duckdb.DuckDBPyConnection, tmp_path: Path, lines: list[str], delimiter: str
) -> None:
    good = delimiter.join("123")
    text = "\n".join([*[good] * 60, *lines, good])
    path = tmp_path / "r.csv"
    path.write_bytes(text.encode())
    filled = [
        number
        for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
        if line.strip()
    ]
    load(opened, [path], LoadOptions(delimiter=delimiter, header=False, time_column="none", fields=FIELDS))
    got = [each for (each,) in opened.execute("select line from loaded.ratings where problem is not null").fetchall()]
    fine = opened.execute("select line from loaded.ratings where problem is null").fetchall()
    assert len(set(got)) == len(got)
    assert len(set(fine)) == len(fine)
    assert set(got).isdisjoint(line for (line,) in fine)
    assert {*got, *(line for (line,) in fine)} <= set(filled)
    if '"' not in text:
        assert sorted([*got, *(line for (line,) in fine)]) == filled


@MANY
@given(
    text=st.text(st.sampled_from('a1," ;:\n\u3000')),
    delimiter=st.sampled_from([",", "::", " ", ";", "|", "^", "]", "\\", "-"]),
)
def test_python_and_sql_split_alike(opened: duckdb.DuckDBPyConnection, text: str, delimiter: str) -> None:
    sql = (
        f"select {fields.fields_sql('t', delimiter)}, {fields.is_open_sql('t', delimiter)} "
        "from (select $1::varchar as t)"
    )
    assert opened.execute(sql, [text]).fetchall() == [(fields.split(text, delimiter), fields.is_open(text, delimiter))]


@MANY
@given(text=st.text(st.sampled_from(["a", "é", "~", *WHITE_SPACE])))
def test_python_and_sql_trim_alike(opened: duckdb.DuckDBPyConnection, text: str) -> None:
    sql = f"select {trimmed('t')}, {is_blank('t')} from (select $1::varchar as t)"
    assert opened.execute(sql, [text]).fetchall() == [(text.strip(), not text.strip())]


@MANY
@given(text=st.one_of(st.integers().map(str), st.text(st.sampled_from("0123-+ .e_"), max_size=6)))
@example(text="1e1000")
@example(text="-0.0")
@example(text="9223372036854775808.0")
def test_python_and_sql_read_ids_and_numbers_alike(opened: duckdb.DuckDBPyConnection, text: str) -> None:
    sql = (
        f"select {values.is_integer_sql(values.folded('t'))}, {values.folded('t')}, "
        f"coalesce(isfinite({values.rating_sql('t')}), false) "
        "from (select $1::varchar as t)"
    )
    assert opened.execute(sql, [text]).fetchall() == [
        (values.is_integer_text(text), one_form(text), values.is_number(text))
    ]
