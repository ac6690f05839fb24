"""Artifact tables: one row a user, one column an item."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kgather._errors import InputError
from kgather._loaders import LoadOptions, LoadReport, load

# Riyana and Natwichai, Table 1: five books, five personal attributes, ten users.
BOOKS = ("Warcross", "Joy Ride", "Egomaniac", "Pachinko", "Geekerella")
PERSONAL = ("Salary", "Age", "Marital status", "City", "Education")
TABLE_1: list[tuple[Any, ...]] = [
    (1, 4, None, 4, 1, 3, 42000, 25, "Married", "New York", "Bachelor"),
    (2, 5, None, 4, None, 3, 45000, 23, "Married", "Los Angeles", "Bachelor"),
    (3, 4, None, 3, None, 4, 50000, 27, "Single", "New York", "Master"),
    (4, None, 5, 5, 1, 2, 35000, 31, "Married", "San Antonio", "Bachelor"),
    (5, None, 5, 5, 1, 2, 40000, 35, "Single", "New York", "Doctoral"),
    (6, None, 5, 4, 2, 1, 50000, 25, "Single", "Los Angeles", "Master"),
    (7, 1, 5, 4, None, 2, 45000, 32, "Married", "Los Angeles", "Bachelor"),
    (8, 2, 4, 3, None, None, 47000, 29, "Married", "Los Angeles", "Doctoral"),
    (9, 2, 4, 3, None, None, 49000, 24, "Single", "Columbus", "Master"),
    (10, 2, 4, 3, None, None, 51000, 29, "Married", "Columbus", "Doctoral"),
]
HEADER = ("Tuple ID", *BOOKS, *PERSONAL)
WIDE = LoadOptions(artifact_columns=BOOKS)


def text(rows: list[tuple[Any, ...]], delimiter: str = ",") -> str:
    """Rows as lines, with a header."""
    lines = [HEADER, *rows]
    return "".join(delimiter.join("" if cell is None else str(cell) for cell in line) + "\n" for line in lines)


def ratings(con: duckdb.DuckDBPyConnection, columns: str = "user_id, item_id, rating") -> list[Any]:
    """The ratings that were loaded, by line and item."""
    return con.execute(f"select {columns} from loaded.ratings order by line, item_id, raw").fetchall()


def users(con: duckdb.DuckDBPyConnection) -> list[Any]:
    """The attributes that were loaded."""
    return con.execute("from loaded.user_attributes order by user_id").fetchall()


@pytest.fixture(params=["csv", "tsv", "semicolon", "parquet", "duckdb"])
def table_1(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Table 1 in a file of each kind."""
    kind = str(request.param)
    if kind in ("csv", "tsv", "semicolon"):
        path = tmp_path / f"table.{kind}"
        path.write_text(text(TABLE_1, {"csv": ",", "tsv": "\t", "semicolon": ";"}[kind]), encoding="utf-8")
        return str(path)
    columns = dict(zip(HEADER, map(list, zip(*TABLE_1, strict=True)), strict=True))
    if kind == "parquet":
        pq.write_table(pa.table(columns), tmp_path / "table.parquet")
        return str(tmp_path / "table.parquet")
    arrow = pa.table(columns)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as other:
        other.register("arrow", arrow)
        other.execute("create table table_1 as from arrow; create table other as select 1 as one")
    return f"{tmp_path / 'shop.duckdb'}:table_1"


def test_table_1(con: duckdb.DuckDBPyConnection, table_1: str, write: Callable[..., Path]) -> None:
    report = load(con, [table_1], WIDE)
    expected = sorted(
        (user, item, float(rating))
        for user, *cells in TABLE_1
        for item, rating in zip(BOOKS, cells[:5], strict=True)
        if rating is not None
    )
    assert len(expected) == 35
    assert sorted(ratings(con)) == expected
    assert users(con) == [(row[0], *row[6:]) for row in TABLE_1]
    described = con.execute("select column_name, column_type from (describe loaded.user_attributes)").fetchall()
    assert described == [
        ("user_id", "BIGINT"),
        ("Salary", "BIGINT"),
        ("Age", "BIGINT"),
        ("Marital status", "VARCHAR"),
        ("City", "VARCHAR"),
        ("Education", "VARCHAR"),
    ]
    # The line is the user's own, of a table the row.
    first = 1 if report.inputs[0].delimiter is None else 2
    lines = con.execute("select distinct user_id, line from loaded.ratings order by 1").fetchall()
    assert lines == [(user, user - 1 + first) for user in range(1, 11)]
    assert con.execute("select distinct source, rated_at, raw, problem from loaded.ratings").fetchall() == [
        (Path(table_1).name, None, None, None)
    ]
    assert (report.rows, report.problem_rows, report.warnings) == (35, 0, [])
    assert (report.artifact_columns, report.users_without_artifacts) == (BOOKS, 0)
    assert report.inputs[0].columns["user"] == "Tuple ID"
    assert report.user_attributes is not None
    assert (report.user_attributes.users, list(report.user_attributes.columns)) == (10, list(PERSONAL))
    left = con.execute("select database_name, table_name from duckdb_tables() order by all").fetchall()
    assert left == [("memory", "ratings"), ("memory", "user_attributes")]
    # The same ratings one a line give the same table.
    wide_types = con.execute("describe loaded.ratings").fetchall()
    long = write("user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in expected))
    assert load(con, [long], LoadOptions()).item_id_type == report.item_id_type == "VARCHAR"
    assert con.execute("describe loaded.ratings").fetchall() == wide_types
    assert sorted(ratings(con)) == expected


def test_names_are_found_in_any_case_and_order(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    path = write(text(TABLE_1))
    report = load(con, [path], LoadOptions(artifact_columns=("joy ride", " WARCROSS ")))
    assert report.artifact_columns == ("Warcross", "Joy Ride")
    assert {row[1] for row in ratings(con)} == {"Warcross", "Joy Ride"}
    assert len(users(con)[0]) == 1 + 3 + 5


def test_all_numeric(con: duckdb.DuckDBPyConnection, table_1: str) -> None:
    report = load(con, [table_1], LoadOptions(artifact_columns=("*",)))
    assert report.artifact_columns == (*BOOKS, "Salary", "Age")
    assert len(report.warnings) == 1
    assert "are all columns of numbers: Warcross, Joy Ride," in report.warnings[0]
    assert [row[1:] for row in users(con)] == [row[8:] for row in TABLE_1]


def test_all_numeric_leaves_codes_alone(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    report = load(
        con, [write("user,a,zip,b,none\n1,5,02139,,\n2,1.5,10001,2,\n")], LoadOptions(artifact_columns=("*",))
    )
    assert report.artifact_columns == ("a", "b")
    assert ratings(con) == [(1, "a", 5.0), (2, "a", 1.5), (2, "b", 2.0)]
    assert users(con) == [(1, "02139", None), (2, "10001", None)]


def test_rows_are_the_users_where_no_column_is(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    report = load(con, [write("a,b,city\n5,,Graz\n\n,,Lyon\n,4,Bonn\n")], LoadOptions(artifact_columns=("a", "b")))
    assert ratings(con, "user_id, item_id, rating, line") == [(1, "a", 5.0, 2), (3, "b", 4.0, 5)]
    assert users(con) == [(1, "Graz"), (2, "Lyon"), (3, "Bonn")]
    assert report.inputs[0].columns["user"] is None
    assert [warning.split(": ", 1)[1] for warning in report.warnings] == [
        "no column of users was found; they are numbered by their rows.",
        "1 of 3 users rated none of the artifacts.",
    ]


def test_a_header_above_columns_that_are_mostly_blank(
    con: duckdb.DuckDBPyConnection, write: Callable[..., Path]
) -> None:
    report = load(con, [write("a;b;c\n;2,5;\n;;\n;;3\n;;\n")], LoadOptions(artifact_columns=("*",)))
    assert (report.inputs[0].header, report.artifact_columns) == (True, ("b", "c"))
    load(con, [write("a;b;c\n;2,5;\n;;\n;;3\n;;\n")], LoadOptions(artifact_columns=("c", "b")))
    assert ratings(con) == [(1, "b", 2.5), (3, "c", 3.0)]


def test_rows_of_tabs_only_are_users(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    report = load(con, [write("a\tb\n5\t\n\t\n \n\t4\n")], LoadOptions(artifact_columns=("a", "b")))
    assert ratings(con) == [(1, "a", 5.0), (3, "b", 4.0)]
    assert users(con) == [(1,), (2,), (3,)]
    assert report.users_without_artifacts == 1


def test_without_a_header(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    path = write("7,5,,x\n8,,4,y\n")
    load(con, [path], LoadOptions(artifact_columns=("column_2", "COLUMN_3"), user_column="1"))
    assert ratings(con) == [(7, "column_2", 5.0), (8, "column_3", 4.0)]
    assert users(con) == [(7, "x"), (8, "y")]
    report = load(con, [path], LoadOptions(artifact_columns=("column_2", "column_3")))
    assert ratings(con) == [(1, "column_2", 5.0), (2, "column_3", 4.0)]
    assert users(con) == [(1, 7, "x"), (2, 8, "y")]
    assert "the users are numbered by their rows" in report.warnings[-1]
    # A number is the name of a column, never its place: "2" would be a joke of that name.
    with pytest.raises(InputError, match=r"no artifact column '2'. .*called column_1 to column_4"):
        load(con, [path], LoadOptions(artifact_columns=("2",)))


@pytest.mark.parametrize("first", ["user_id", "", "nick"])
def test_items_that_are_numbers(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], first: str) -> None:
    options = LoadOptions(artifact_columns=("10", "9"), user_column="nick" if first == "nick" else None)
    report = load(con, [write(f"{first},9,10\n5,1,2\n6,,3\n")], options)
    assert ratings(con) == [(5, 9, 1.0), (5, 10, 2.0), (6, 10, 3.0)]
    assert (report.item_id_type, report.artifact_columns) == ("BIGINT", ("9", "10"))


def test_ids_are_texts_for_all_where_one_is(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    report = load(con, [write("user,a,age\n1,5,20\nguest,,30\n")], LoadOptions(artifact_columns=("a",)))
    assert report.user_id_type == "VARCHAR"
    assert ratings(con) == [("1", "a", 5.0)]
    assert users(con) == [("1", 20), ("guest", 30)]
    assert report.users_without_artifacts == 1
    assert report.warnings[0] == "user ids: some are not integers, all are kept as text."


def test_values_that_are_no_ratings(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    content = "user;a;b;city\n1;x;3;Graz\n2;nan; ;Lyon\n3;-inf;2,5;Bonn\n4; 4 ;NA;Linz\n"
    report = load(con, [write(content)], LoadOptions(artifact_columns=("a", "b")))
    assert ratings(con, "line, user_id, item_id, rating, raw, problem") == [
        (2, 1, "b", 3.0, None, None),
        (2, None, None, None, "1,a,x", "rating is not a number"),
        (3, None, None, None, "2,a,nan", "rating is not a finite number"),
        (4, 3, "b", 2.5, None, None),
        (4, None, None, None, "3,a,-inf", "rating is not a finite number"),
        (5, 4, "a", 4.0, None, None),
        (5, None, None, None, "4,b,NA", "rating is not a number"),
    ]
    assert (report.rows, report.problem_rows, report.users_without_artifacts) == (7, 4, 0)
    assert report.user_attributes is not None
    assert report.user_attributes.users_without_ratings == 1
    assert [row[1] for row in users(con)] == ["Graz", "Lyon", "Bonn", "Linz"]


def test_types_of_artifacts(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    columns = {
        "user": ["u", "v"],
        "i": pa.array([1, None], pa.int8()),
        "f": pa.array([0.5, float("nan")], pa.float32()),
        "d": pa.array([None, float("inf")]),
        "t": ["2.5", " "],
        "n": pa.array([3, 4]).cast(pa.decimal128(20, 1)),
        "h": pa.array([2**63, None], pa.uint64()),
        "x": ["x", None],
    }
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table(columns), path)
    report = load(con, [path], LoadOptions(artifact_columns=("i", "f", "d", "t", "n", "h", "x")))
    assert ratings(con, "line, item_id, rating, raw, problem") == [
        (1, "f", 0.5, None, None),
        (1, "h", 2.0**63, None, None),
        (1, "i", 1.0, None, None),
        (1, "n", 3.0, None, None),
        (1, "t", 2.5, None, None),
        (1, None, None, "u,x,x", "rating is not a number"),
        (2, "n", 4.0, None, None),
        (2, None, None, "v,d,inf", "rating is not a finite number"),
        (2, None, None, "v,f,nan", "rating is not a finite number"),
    ]
    assert (report.user_id_type, report.problem_rows) == ("VARCHAR", 3)
    report = load(con, [path], LoadOptions(artifact_columns=("*",)))
    assert report.artifact_columns == ("i", "f", "d", "n", "h")


REFUSED = [
    (text(TABLE_1), {"artifact_columns": ("Warcross", "Nix")}, "no artifact column 'Nix'. The columns are: Tuple ID, "
     "Warcross, Joy Ride, Egomaniac, Pachinko, Geekerella, Salary, Age, Marital status, City, Education"),
    (text(TABLE_1), {"artifact_columns": ("Warcross", "warcross")}, "'warcross' is named twice"),
    (text(TABLE_1), {"user_column": "Warcross"}, "the users and an artifact are both taken from column 2.*"
     "--user-column"),
    (text(TABLE_1), {"user_column": "who"}, r"no column 'who' for the users \(--user-column\)"),
    (text(TABLE_1), {"item_column": "City"}, "--item-column and --artifact-columns do not go together"),
    (text(TABLE_1), {"rating_column": "City"}, "--rating-column and --artifact-columns do not go together"),
    (text(TABLE_1), {"time_column": "none"}, "--time-column and --artifact-columns do not go together"),
    (text(TABLE_1), {"format": "netflix"}, "an artifact table of the format netflix is not read"),
    (text(TABLE_1), {"format": "parquet"}, "an artifact table of the format parquet is not read"),
    (text([*TABLE_1, TABLE_1[0]]), {}, "line 12 has a user id for the second time"),
    (text([*TABLE_1, (None, *TABLE_1[0][1:])]), {}, "line 12 has no user id"),
    (text([]), {}, "holds only a header"),
    (text([(1, None, None, None, None, None, 1, 2, "a", "b", "c")]), {}, "all artifacts are blank in every row"),
    (text(TABLE_1) + "11,3\n", {}, "line 12 is malformed: it has 2 fields, not 11.*--delimiter"),
    ("user,a,A\n1,2,3\n", {"artifact_columns": ("a",)}, "2 columns are named 'a'"),
    ("user,city\n1,Graz\n", {"artifact_columns": ("*",)}, "no column holds numbers only"),
    ("user,a,user_id\n1,2,3\n", {"artifact_columns": ("a",), "user_column": "user"}, "column 'user_id' is not the"),
    ("user\n1\n", {"artifact_columns": ("*",)}, "the lines have 1 field"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(con: duckdb.DuckDBPyConnection, write: Callable[..., Path], number: int) -> None:
    content, options, message = REFUSED[number]
    load(con, [write("user,a,age\n7,5,30\n", "older.csv")], LoadOptions(artifact_columns=("a",)))
    before = ratings(con), users(con)
    with pytest.raises(InputError, match=message):
        load(con, [write(content)], LoadOptions(**{"artifact_columns": BOOKS, **options}))
    assert (ratings(con), users(con)) == before
    tables = con.execute("select table_name from duckdb_tables() order by all").fetchall()
    assert tables == [("ratings",), ("user_attributes",)]


def test_one_table_only(con: duckdb.DuckDBPyConnection, write: Callable[..., Path]) -> None:
    path = write(text(TABLE_1))
    for inputs in ([path, path], []):
        with pytest.raises(InputError, match="one"):
            load(con, inputs, WIDE)


def test_artifacts_of_a_wrong_type(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"user": [1], "a": [2], "b": [[1]], "c": [True]}), path)
    for name, kind in (("b", r"BIGINT\[\]"), ("c", "BOOLEAN")):
        with pytest.raises(InputError, match=f"column '{name}' has the type {kind}, which cannot be read as ratings"):
            load(con, [path], LoadOptions(artifact_columns=("a", name)))


@pytest.mark.parametrize("said", [(), ("a", " "), ("*", "a")], ids=["none", "blank", "star"])
def test_options_that_are_none(said: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        LoadOptions(artifact_columns=said)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(
        st.lists(st.one_of(st.none(), st.integers(-5, 5), st.floats(-10, 10)), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    as_text=st.booleans(),
)
def test_every_cell_is_there_once(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, cells: list[list[float | None]], as_text: bool
) -> None:
    columns: dict[str, Any] = {"user": pa.array([f"u{at}" for at in range(len(cells))])}
    for at in range(3):
        columns[f"item {at}"] = pa.array([row[at] for row in cells], pa.float64())
    path = tmp_path / "wide"
    if as_text:
        pacsv.write_csv(pa.table(columns), path)
    else:
        pq.write_table(pa.table(columns), path)
    options = LoadOptions(artifact_columns=("item 0", "item 1", "item 2"))
    expected = [
        (f"u{user}", f"item {at}", cell)
        for user, row in enumerate(cells)
        for at, cell in enumerate(row)
        if cell is not None
    ]
    if not expected:
        with pytest.raises(InputError, match="no ratings in it"):
            load(con, [path], options)
        return
    report: LoadReport = load(con, [path], options)
    assert ratings(con) == expected
    assert len(users(con)) == len(cells)
    assert report.users_without_artifacts == sum(set(row) == {None} for row in cells)


def test_a_table_of_many_items(con: duckdb.DuckDBPyConnection, data_dir: Path, tmp_path: Path) -> None:
    """The ratings of ml-100k, turned to 943 rows and 1,682 columns, come back the same."""
    if not (data_dir / "ml-100k/u.data").exists():
        pytest.skip(f"no ml-100k/u.data at {data_dir}")
    load(con, [data_dir / "ml-100k/u.data"], LoadOptions(), schema="long")
    pivot = "pivot long.ratings on item_id using first(rating) group by user_id order by user_id"
    con.execute(f"copy ({pivot}) to '{tmp_path / 'wide.csv'}'")
    report = load(con, [tmp_path / "wide.csv"], LoadOptions(artifact_columns=("*",)))
    assert (report.rows, len(report.artifact_columns), report.user_id_type) == (100_000, 1_682, "BIGINT")
    for one, other in (("long", "loaded"), ("loaded", "long")):
        columns = "user_id, item_id, rating"
        sql = f"select {columns} from {one}.ratings except all select {columns} from {other}.ratings"
        assert con.execute(sql).fetchall() == []
