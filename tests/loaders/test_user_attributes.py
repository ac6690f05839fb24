"""Tables of what is known of users beside their ratings."""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather._loaders import LoadOptions, LoadReport, UserAttributesReport, load, load_user_attributes

Attributes = Callable[..., tuple[UserAttributesReport, list[Any]]]
RATINGS = "user,item,rating\n" + "".join(f"{user},10,3\n" for user in (1, 2, 3))
LOADED = LoadReport(inputs=[], user_id_type="BIGINT", item_id_type="BIGINT", warnings=[])
HEADLESS = "1|24|M|technician|85711\n2|53|F|other|02139\n4|23|M|writer|T8H1N\n"


@pytest.fixture
def attributes(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> Attributes:
    """Load ratings of the users 1, 2 and 3 (or others), then a file of attributes; give the report and the rows."""

    def made(content: str | bytes, name: str = "users.txt", ratings: str = RATINGS, **options: Any) -> Any:
        loaded = load(con, [write(ratings)], LoadOptions())
        report = load_user_attributes(con, str(write(content, name)), ratings_loaded=loaded, **options)
        return report, rows_of(con)

    return made


def rows_of(con: duckdb.DuckDBPyConnection) -> list[Any]:
    """The table that was loaded."""
    return con.execute("from loaded.user_attributes order by user_id").fetchall()


def test_a_file_without_a_header(attributes: Attributes, con: duckdb.DuckDBPyConnection) -> None:
    report, rows = attributes(HEADLESS)
    assert rows == [
        (1, 24, "M", "technician", "85711"),
        (2, 53, "F", "other", "02139"),
        (4, 23, "M", "writer", "T8H1N"),
    ]
    described = con.execute("select column_name, column_type from (describe loaded.user_attributes)").fetchall()
    assert described == [
        ("user_id", "BIGINT"),
        ("column_2", "BIGINT"),
        ("column_3", "VARCHAR"),
        ("column_4", "VARCHAR"),
        ("column_5", "VARCHAR"),
    ]
    assert report.columns == dict(described[1:])
    assert (report.format, report.delimiter, report.header, report.user_column) == ("csv", "|", False, "column_1")
    assert (report.users, report.users_without_ratings, report.raters_without_attributes) == (3, 1, 1)
    assert len(report.warnings) == 1
    assert "no line was taken for a header" in report.warnings[0]


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", "::", " ", "~"])
def test_delimiters(attributes: Attributes, delimiter: str) -> None:
    content = "userId,city,age\n1,Graz,30\n2,Lyon,40\n".replace(",", delimiter)
    report, rows = attributes(content, delimiter="~" if delimiter == "~" else None)
    assert rows == [(1, "Graz", 30), (2, "Lyon", 40)]
    assert (report.delimiter, report.header, report.warnings) == (delimiter, True, [])


def zstd(content: bytes) -> bytes:
    """The content, compressed."""
    return pa.Codec("zstd").compress(content, asbytes=True)


@pytest.mark.parametrize(
    ("wrap", "compression"),
    [(bytes, None), (gzip.compress, "gzip"), (zstd, "zstd"), (b"\xef\xbb\xbf".__add__, None)],
    ids=["plain", "gzip", "zstd", "mark"],
)
def test_compression(attributes: Attributes, wrap: Callable[[bytes], bytes], compression: str | None) -> None:
    report, rows = attributes(wrap(b"user_id,city\r\n1,Graz\r\n2,Lyon\r\n"))
    assert rows == [(1, "Graz"), (2, "Lyon")]
    assert report.compression == compression


def test_encodings(attributes: Attributes) -> None:
    assert attributes("id;city\n1;Zürich\n2;Kraków\n")[1] == [(1, "Zürich"), (2, "Kraków")]
    assert attributes("id;city\n1;Zürich\n2;Malmö\n".encode("latin-1"), encoding="latin-1")[1] == [
        (1, "Zürich"),
        (2, "Malmö"),
    ]
    with pytest.raises(InputError, match=r"line 3 is not valid UTF-8.*--encoding latin-1"):
        attributes("id;city\n1;Linz\n2;Malmö\n".encode("latin-1"))


@pytest.mark.parametrize("name", ["user_id", "userId", "USER", "uid", "ID", "customer_id", "Tuple ID", "", " user id "])
@pytest.mark.parametrize("place", [0, 1])
def test_usual_names_of_the_users(attributes: Attributes, name: str, place: int) -> None:
    if not name and place:
        with pytest.raises(InputError, match="no column of users found"):
            attributes("age,,city\n24,1,Graz\n53,2,Lyon\n", header=True)
        return
    lines = [["age", "city"], ["24", "Graz"], ["53", "Lyon"]]
    for line, text in zip(lines, (name, "1", "2"), strict=True):
        line.insert(place, text)
    report, rows = attributes("".join(",".join(line) + "\n" for line in lines))
    assert rows == [(1, 24, "Graz"), (2, 53, "Lyon")]
    assert report.header is True
    assert report.user_column == (name.strip() or "column_1")


@pytest.mark.parametrize(
    ("said", "header"), [("nick", None), ("NICK", True), ("2", True), (" Nick ", None), ("3", None)]
)
def test_the_column_of_users_is_said(attributes: Attributes, said: str, header: bool | None) -> None:
    content = "user,Nick,3\n7,1,x\n8,2,y\n"
    if said == "3":
        content = "user,Nick,number\nx,y,1\nx,z,2\n"
    report, rows = attributes(content, user_column=said, header=header)
    assert [row[0] for row in rows] == [1, 2]
    assert report.user_column == ("number" if said == "3" else "Nick")
    assert list(report.columns) == (["user", "Nick"] if said == "3" else ["user", "3"])


def test_the_place_of_the_users_without_a_header(attributes: Attributes) -> None:
    report, rows = attributes("24,1,Graz\n53,2,Lyon\n", user_column="2")
    assert rows == [(1, 24, "Graz"), (2, 53, "Lyon")]
    assert list(report.columns) == ["column_1", "column_3"]


def test_the_name_of_the_users_among_the_ratings(attributes: Attributes) -> None:
    _, rows = attributes("age,reader\n24,1\n53,2\n", ratings=RATINGS.replace("user", "reader"))
    assert rows == [(1, 24), (2, 53)]
    with pytest.raises(InputError, match="'id' and 'user' fit the users equally well"):
        attributes("id,user,age\n1,2,3\n", ratings=RATINGS.replace("user", "uid"))
    assert attributes("id,user,age\n7,1,3\n")[1] == [(1, 7, 3)]


@pytest.mark.parametrize(
    "content",
    [
        "3|21|F|student|02139\n2|30|M|user|10001\n",
        "3|student\n2|user\n",
        "3,id\n1,uid\n",
        "3,uid,1\n2,uid,2\n",
        "a,NA,Graz\nb,30,Lyon\n",
        "a;2,5;Graz\nb;30;Lyon\n",
    ],
)
def test_words_that_are_no_header(attributes: Attributes, content: str) -> None:
    report, rows = attributes(content, ratings="user,item,rating\na,1,3\n2,1,3\n3,1,3\n1,1,3\n")
    assert (report.header, report.users, len(rows)) == (False, 2, 2)


def test_header_said(attributes: Attributes) -> None:
    assert attributes("1,x\n2,y\n", header=True, user_column="1")[1] == [(2, "y")]
    assert attributes("id,x\n1,y\n", header=False)[0].users == 2
    assert attributes("nick,town,born\n1,Graz,1990\n2,Lyon,1980\n", user_column="nick")[1][0] == (1, "Graz", 1990)
    with pytest.raises(InputError, match=r"no column of users found. The columns are: nick, town, born"):
        attributes("nick,town,born\n1,Graz,1990\n2,Lyon,1980\n")


TYPES = [
    ("BIGINT", ["1", "-20", "9223372036854775807"], [1, -20, 2**63 - 1]),
    ("BIGINT", [" 1 ", "", "0"], [1, None, 0]),
    ("VARCHAR", ["02139", "10001", "94043"], ["02139", "10001", "94043"]),
    ("VARCHAR", ["02139", "1.5", ""], ["02139", "1.5", None]),
    ("VARCHAR", ["+49", "1", "2"], ["+49", "1", "2"]),
    ("VARCHAR", ["1_000", "1", "2"], ["1_000", "1", "2"]),
    ("VARCHAR", ["9223372036854775808", "1", "2"], ["9223372036854775808", "1", "2"]),
    ("VARCHAR", ["9007199254740993", "1.5", "2"], ["9007199254740993", "1.5", "2"]),
    ("VARCHAR", ["0.12345678901234567890", "1", "2"], ["0.12345678901234567890", "1", "2"]),
    ("VARCHAR", ["12E5", "13E5", "14E6"], ["12E5", "13E5", "14E6"]),
    ("VARCHAR", ["1.5e999", "1", "2"], ["1.5e999", "1", "2"]),
    ("VARCHAR", ["$42,000", "$1", "$2"], ["$42,000", "$1", "$2"]),
    ("VARCHAR", ["0x10", "1", "2"], ["0x10", "1", "2"]),
    ("DOUBLE", ["1.50", "-2", ".25"], [1.5, -2.0, 0.25]),
    ("DOUBLE", ["0.30000000000000004", "1e-05", "1e+16"], [0.30000000000000004, 1e-05, 1e16]),
    ("DOUBLE", ["1.5", "NA", "NaN"], [1.5, None, None]),
    ("BIGINT", ["24", "null", "\\N"], [24, None, None]),
    ("VARCHAR", ["none", "writer", "NA"], ["none", "writer", "NA"]),
    ("VARCHAR", ["NA", "NA", ""], ["NA", "NA", None]),
    ("VARCHAR", ["", " ", ""], [None, None, None]),
    ("BOOLEAN", ["true", "FALSE", ""], [True, False, None]),
    ("VARCHAR", ["true", "no", ""], ["true", "no", None]),
    ("VARCHAR", ["true", "1", "0"], ["true", "1", "0"]),
    ("DATE", ["2024-02-29", "1999-12-31", ""], [date(2024, 2, 29), date(1999, 12, 31), None]),
    ("VARCHAR", ["2023-02-29", "1999-12-31", ""], ["2023-02-29", "1999-12-31", None]),
    ("VARCHAR", ["31/12/1999", "01/02/2000", ""], ["31/12/1999", "01/02/2000", None]),
    ("TIMESTAMP", ["2024-02-29 10:11", "2024-02-29T10:11:12.5", ""],
     [datetime(2024, 2, 29, 10, 11), datetime(2024, 2, 29, 10, 11, 12, 500000), None]),
    ("TIMESTAMP", ["2024-02-29 10:11", "2024-03-01", ""], [datetime(2024, 2, 29, 10, 11), datetime(2024, 3, 1), None]),
    ("VARCHAR", ["2024-02-29 10:11+02", "", ""], ["2024-02-29 10:11+02", None, None]),
    ("VARCHAR", [" New  York ", "x", "y"], ["New  York", "x", "y"]),
    ("VARCHAR", ["R&D", "a;b", "it's"], ["R&D", "a;b", "it's"]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TYPES)))
def test_types(attributes: Attributes, number: int) -> None:
    expected, texts, values = TYPES[number]
    lines = "".join(f'{user},"{text}"\n' for user, text in enumerate(texts, 1))
    report, rows = attributes(f"user_id,x\n{lines}")
    assert report.columns == {"x": expected}
    assert [row[1] for row in rows] == values
    words = sum(text.strip().lower() in ("na", "nan", "null", "\\n") for text in texts)
    assert report.warnings == (
        [] if expected == "VARCHAR" or not words else [f"{report.path}: {words} texts such as NA in column 'x' "
                                                       "are read as no value."]
    )  # fmt: skip


CELLS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 99).map("{:03d}".format),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
    st.dates().map(str),
    st.sampled_from(["", "true", "False", "NA", "none", "1e5", "-0", "1.", "inf", "nan", "+1", "1,5", 'a "b"', "a\nb"]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(st.tuples(st.lists(CELLS, min_size=4, max_size=4), st.booleans()), min_size=1, max_size=4))
def test_no_value_is_changed(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], columns: list[tuple[list[str], bool]]
) -> None:
    """Whatever the type: the value, written down again, is the text, or a number or a time equal to it."""
    if not con.execute("select 1 from duckdb_tables() where table_name = 'ratings'").fetchall():
        load(con, [write("user,item,rating\n0,7,3\n3,7,3\n")], LoadOptions())
    cells = [[first] * 4 if alike else [first, *others] for (first, *others), alike in columns]
    names = [f"x{at}" for at in range(len(cells))]
    text = io.StringIO()
    lines = [(user, *line, "z") for user, line in enumerate(zip(*cells, strict=True))]
    csv.writer(text, lineterminator="\n").writerows([("user", *names, "z"), *lines])
    report = load_user_attributes(con, write(text.getvalue(), "users.csv"), ratings_loaded=LOADED)
    rows = rows_of(con)
    assert [(row[0], row[-1]) for row in rows] == [(user, "z") for user in range(4)]
    for at, name in enumerate(names):
        for cell, row in zip(cells[at], rows, strict=True):
            value = row[at + 1]
            if value is None:
                no_value = report.columns[name] != "VARCHAR" and cell.lower() in ("na", "none", "nan")
                assert cell.strip() == "" or no_value
            elif isinstance(value, float):
                assert float(cell) == value
            elif isinstance(value, bool):
                assert cell.lower() == str(value).lower()
            else:
                assert str(value) == cell.strip()


def test_quotes(attributes: Attributes, con: duckdb.DuckDBPyConnection) -> None:
    content = 'user,address,age\n1,"Main St 1,\nGraz",30\n\n2,"say ""hi""",40\n3, 5" disks ,50\n'
    _, rows = attributes(content)
    assert rows == [(1, "Main St 1,\nGraz", 30), (2, 'say "hi"', 40), (3, '5" disks', 50)]
    assert con.execute("select table_name from duckdb_tables()").fetchall() == [("ratings",), ("user_attributes",)]


def test_ids_have_the_type_of_the_ratings(attributes: Attributes) -> None:
    texts = "user,item,rating\na,1,3\n007,1,3\n8,1,3\n"
    report, rows = attributes("user,age\n a ,1\n007,2\n7,3\n8,4\n", ratings=texts)
    assert rows == [("007", 2), ("7", 3), ("8", 4), ("a", 1)]
    assert (report.users, report.users_without_ratings, report.raters_without_attributes) == (4, 1, 0)
    report, rows = attributes("user,age\n7,3\n8,4\n", ratings=texts)
    assert rows == [("7", 3), ("8", 4)]
    report, rows = attributes("user,age\n1,1\nguest,2\n02,3\n")
    assert rows == [(1, 1)]
    assert (report.users, report.users_without_ratings, report.raters_without_attributes) == (3, 2, 2)
    assert [warning.split(": ")[1] for warning in report.warnings] == [
        "2 user ids are not integers as those of the ratings are, so these users have no ratings."
    ]


def test_ratings_with_a_problem_count_for_nobody(attributes: Attributes) -> None:
    report, _ = attributes("user,age\n1,1\n2,2\n", ratings="user,item,rating\n1,1,3\n1,2,4\n2,1,x\n3,1,5\n")
    assert (report.users_without_ratings, report.raters_without_attributes) == (1, 1)


REFUSED = [
    ("age,city\n24,secret\n53,Lyon\n", {}, "no column of users found. The columns are: age, city. .*"
     "--attributes-user-column"),
    ("user,age\n1,secret\n2,x\n1,y\n3,z\n2,z\n1,z\n", {}, r"line 4 has a user id for the second time "
     r"\(2 user ids in all are such\). A user has one row"),
    ("user,age\n1,secret\n\n1,x\n", {}, "line 4 has a user id for the second time. A user has one row"),
    ("user,age\n7,secret\n 7,x\n", {}, "line 3 has a user id for the second time"),
    ("user,age\nsecret,1\nsecret ,x\n", {}, "line 3 has a user id for the second time"),
    ("user,age\n1,secret\n,x\n  ,y\n", {}, r"line 3 has no user id \(2 rows in all are such\)"),
    ("user\tage\n1\tsecret\n\t\n", {}, "line 3 has no user id"),
    ("user,age\n", {}, "holds only a header, there are no users in it"),
    ("user,age\n\n \n", {}, "holds only a header"),
    ("\n \n", {}, "only blank lines, there are no users in it"),
    ("", {}, "is empty, there are no users in it"),
    ("PK\x03\x04secret", {}, "the zip data are cut off or damaged"),
    ("user\nsecret\nx\n", {}, "the lines have 1 field, .*--attributes-delimiter"),
    ("user,age\n1,2\nsecret\n1,2,3\n", {}, r"line 3 is malformed \(2 lines in all are such\): it has 1 fields, not 2"),
    ('user,age\n1,2\n2,"secret\n', {}, "line 3 is malformed: quote is never closed"),
    ('user,age\n1,2\n2,"secret"x\n', {}, "line 3 is malformed: quote is not at the ends of a field"),
    ("user,age,Age\n1,2,3\n", {}, "2 columns are named 'age'. Rename one"),
    ("id,user_id,age\n1,secret,3\n", {"user_column": "id"}, "column 'user_id' is not the column of users"),
    ("user,age\n1,secret\n", {"user_column": "nick"}, r"no column 'nick' for the users \(--attributes-user-column\). "
     "The columns are: user, age"),
    ("1,secret\n2,x\n", {"user_column": "nick"}, "no column 'nick' .*called column_1 to column_2"),
    ("1,secret\n2,x\n", {"user_column": "3"}, "no column '3' for the users"),
    ("user,age\n71,secret\n72,x\n", {}, "none of its 2 users has ratings. .*in the column 'user'"),
    ("user,age\n001,secret\n", {}, "none of its 1 users has ratings"),
    ("user,age\n1,2\n", {"delimiter": "12345"}, "a delimiter has 1 to 4 characters"),
    ("user,age\n1,2\n", {"encoding": "utf-16"}, "encoding"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], attributes: Attributes, number: int
) -> None:
    content, options, message = REFUSED[number]
    attributes("user,age\n1,50\n")
    path = write(content, "bad.csv")
    loaded = load(con, [write(RATINGS)], LoadOptions())
    with pytest.raises(InputError, match=message) as caught:
        load_user_attributes(con, path, ratings_loaded=loaded, **options)
    assert "secret" not in str(caught.value)
    assert rows_of(con) == [(1, 50)]
    tables = con.execute("select table_name from duckdb_tables() order by all").fetchall()
    assert tables == [("ratings",), ("user_attributes",)]


def test_an_archive(attributes: Attributes, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("users.csv", "user,city\n1,Graz\n2,Lyon\n")
    report, rows = attributes((tmp_path / "zip").read_bytes())
    assert rows == [(1, "Graz"), (2, "Lyon")]
    assert report.compression == "zip"
    with zipfile.ZipFile(tmp_path / "zip", "a") as archive:
        archive.writestr("secret.csv", "user,city\n3,Graz\n")
    with pytest.raises(InputError, match=r"is a ZIP archive .* of 2 files, .* name the file of users") as caught:
        attributes((tmp_path / "zip").read_bytes())
    assert "secret" not in str(caught.value)


def test_refused_with_an_artifact_table_that_has_attributes(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path]
) -> None:
    def wide(content: str) -> LoadReport:
        return load(con, [write(content)], LoadOptions(artifact_columns=("a",)))

    users = write("user,city\n1,Graz\n", "users.csv")
    with pytest.raises(InputError, match="has attributes of its users already"):
        load_user_attributes(con, users, ratings_loaded=wide("user,a,age\n1,5,30\n"))
    assert con.execute("from loaded.user_attributes").fetchall() == [(1, 30)]
    load_user_attributes(con, users, ratings_loaded=wide("user,a\n1,5\n"))
    assert con.execute("from loaded.user_attributes").fetchall() == [(1, "Graz")]


def test_parquet(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], tmp_path: Path) -> None:
    # A folder of such a name is no column.
    (tmp_path / "user=7").mkdir()
    path = tmp_path / "user=7" / "users [1].parquet"
    columns = {
        "Age": pa.array([30, None], pa.int16()),
        "uid": pa.array([1.0, 2.0]),
        "income": pa.array([float("nan"), 1.5], pa.float32()),
        "zip": ["02139", " "],
        "big": pa.array([2**64 - 1, 1], pa.uint64()),
        "fits": pa.array([7, 1], pa.uint64()),
        "price": pa.array(["1", None]).cast(pa.decimal128(20, 2)),
        "exact": pa.array(["12345678901234567.89", "1"]).cast(pa.decimal128(20, 2)),
        "rate": pa.array(["0.5", "0.25"]).cast(pa.decimal128(20, 2)),
        "born": [date(1990, 1, 2), None],
        "seen": pa.array([datetime(2020, 1, 2, 3), None], pa.timestamp("ns", "UTC")),
        "member": [True, None],
        "sort": pa.array(["a", "b"]).dictionary_encode(),
        "tags": [["a"], []],
    }
    pq.write_table(pa.table(columns), path)
    loaded = load(con, [write(RATINGS)], LoadOptions())
    report = load_user_attributes(con, path, ratings_loaded=loaded)
    assert report.columns == {
        "Age": "BIGINT", "income": "DOUBLE", "zip": "VARCHAR", "big": "VARCHAR", "fits": "BIGINT", "price": "BIGINT",
        "exact": "VARCHAR", "rate": "DOUBLE", "born": "DATE", "seen": "TIMESTAMP", "member": "BOOLEAN",
        "sort": "VARCHAR",
    }  # fmt: skip
    assert rows_of(con) == [
        (1, 30, None, "02139", str(2**64 - 1), 7, 1, "12345678901234567.89", 0.5, date(1990, 1, 2),
         datetime(2020, 1, 2, 3), True, "a"),
        (2, None, 1.5, None, "1", 1, None, "1.00", 0.25, None, None, None, "b"),
    ]  # fmt: skip
    assert report.warnings == [f"{path}: column 'tags' is left out, as its type VARCHAR[] is not that of an attribute."]
    assert (report.format, report.delimiter, report.header, report.user_column) == ("parquet", None, None, "uid")
    described = dict(con.execute("select column_name, column_type from (describe loaded.user_attributes)").fetchall())
    assert described == {"user_id": "BIGINT", **report.columns}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"uid": [1, 1], "age": [1, 2]}, "row 2 has a user id for the second time"),
        ({"uid": [1, None], "age": [1, 2]}, "row 2 has no user id"),
        ({"uid": [1.0, float("nan")], "age": [1, 2]}, "row 2 has no user id"),
        ({"uid": ["1", " "], "age": [1, 2]}, "row 2 has no user id"),
        ({"uid": [[1], [2]], "age": [1, 2]}, r"column 'uid' has the type BIGINT\[\], which cannot be read as a user"),
        ({"nick": ["a", "b"], "age": [1, 2]}, "no column of users found. The columns are: nick, age"),
        ({"uid": [1, 2]}, "no column but the user ids"),
        ({"uid": pa.array([], pa.int64()), "age": pa.array([], pa.int64())}, "has no rows, there are no users in it"),
    ],
    ids=["twice", "null", "nan", "blank", "list", "none", "bare", "empty"],
)
def test_parquet_refused(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path], tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    path = tmp_path / "users.parquet"
    pq.write_table(pa.table(columns), path)
    loaded = load(con, [write(RATINGS)], LoadOptions())
    with pytest.raises(InputError, match=message):
        load_user_attributes(con, path, ratings_loaded=loaded)
    assert con.execute("select table_name from duckdb_tables()").fetchall() == [("ratings",)]


def test_duckdb(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as other:
        other.execute(
            "create table users as select * from (values ('1', 30, 'Graz'), ('3', 40, null)) v(id, age, City)"
        )
        other.execute("create table more as select 1 as id")
    loaded = load(con, [write(RATINGS)], LoadOptions())
    report = load_user_attributes(con, f"{path}:users", ratings_loaded=loaded)
    assert rows_of(con) == [(1, 30, "Graz"), (3, 40, None)]
    assert (report.format, report.columns) == ("duckdb", {"age": "BIGINT", "City": "VARCHAR"})
    databases = con.execute("select database_name from duckdb_databases() where not internal").fetchall()
    assert databases == [("memory",)]
    with pytest.raises(InputError, match=r"no table 'nix'\. The tables are: more, users"):
        load_user_attributes(con, f"{path}:nix", ratings_loaded=loaded)


def test_movielens(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    if not (data_dir / "ml-100k/u.user").exists():
        pytest.skip(f"no ml-100k/u.user at {data_dir}")
    loaded = load(con, [data_dir / "ml-100k/u.data"], LoadOptions())
    report = load_user_attributes(con, data_dir / "ml-100k/u.user", ratings_loaded=loaded)
    with (data_dir / "ml-100k/u.user").open() as file:
        lines = [line.rstrip("\n").split("|") for line in file]
    assert rows_of(con) == [(int(user), int(age), sex, job, code) for user, age, sex, job, code in lines]
    assert (report.users, report.users_without_ratings, report.raters_without_attributes) == (943, 0, 0)


def test_the_larger_movielens(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    if not (data_dir / "ml-1m/users.dat").exists():
        pytest.skip(f"no ml-1m/users.dat at {data_dir}")
    loaded = load(con, [data_dir / "ml-1m/ratings_first_487650.dat.gz"], LoadOptions())
    report = load_user_attributes(con, data_dir / "ml-1m/users.dat", ratings_loaded=loaded)
    with (data_dir / "ml-1m/users.dat").open() as file:
        lines = [line.rstrip("\n").split("::") for line in file]
    assert rows_of(con) == [(int(user), sex, int(age), int(job), code) for user, sex, age, job, code in lines]
    assert (report.users, report.users_without_ratings, report.raters_without_attributes) == (6_040, 3_041, 0)
