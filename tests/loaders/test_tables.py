"""Parquet files and tables of DuckDB files."""

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load


@pytest.fixture
def parquet(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> Callable[..., Any]:
    """Write columns to a Parquet file, load it and give the rows."""

    def made(columns: dict[str, pa.Array], **options: Any) -> tuple[Any, list[Any]]:
        path = tmp_path / "r [1].parquet"
        pq.write_table(pa.table(columns), path)
        report = load(con, [path], LoadOptions(**options))
        return report, con.execute("select * exclude (source) from loaded.ratings order by line").fetchall()

    return made


def test_parquet(parquet: Callable[..., Any]) -> None:
    report, rows = parquet(
        {
            "userId": pa.array([1, 2, None], pa.int32()),
            "asin": ["a", " b ", ""],
            "stars": pa.array([1.5, float("nan"), 2], pa.float32()),
            "timestamp": pa.array([978300760, 1, 2]),
        }
    )
    assert rows == [
        (1, "a", 1.5, datetime(2000, 12, 31, 22, 12, 40), 1, None, None),
        (None, None, None, None, 2, "2, b ,nan,1", "rating is not a finite number"),
        (None, None, None, None, 3, ",,2.0,2", "user id is empty"),
    ]
    assert (report.inputs[0].format, report.inputs[0].problem_rows) == ("parquet", 2)
    assert report.inputs[0].columns == {
        "user": "userId",
        "item": "asin",
        "rating": "stars",
        "time": "timestamp",
    }


@pytest.mark.parametrize(
    ("ids", "back"),
    [
        (pa.array([12.0, None, 7.0]), [12, None, 7]),
        (pa.array([12.0, float("nan"), 7.0]), [12, None, 7]),
        (pa.array([12.5, None, 7.0]), ["12.5", None, "7"]),
        (pa.array([12.5, float("nan"), 7.0]), ["12.5", None, "7"]),
        (pa.array([1e30, None, 7.0]), ["1e+30", None, "7"]),
        (pa.array([1, None, 2**63 - 1], pa.uint64()), [1, None, 2**63 - 1]),
        (pa.array([1, None, 2**64 - 1], pa.uint64()), ["1", None, str(2**64 - 1)]),
        (pa.array([1, None, 2]).cast(pa.decimal128(20, 0)), [1, None, 2]),
        (pa.array(["1", None, "-2"]), [1, None, -2]),
        (pa.array(["7.0", None, "7"]), [7, None, 7]),
        (pa.array(["1", "NULL", "2"]), [1, None, 2]),
        (pa.array(["a", "nan", "7.0"]), ["a", None, "7"]),
        (pa.array(["Jose\u0301", None, "Jos\u00e9"]), ["Jos\u00e9", None, "Jos\u00e9"]),
        (pa.array(["1", None, "02"]), ["1", None, "02"]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
    ],
)
def test_types_of_ids(parquet: Callable[..., Any], ids: pa.Array, back: list[Any]) -> None:
    _, rows = parquet({"user": ids, "item": pa.array([1, 2, 3]), "rating": pa.array([1, 2, 3])})
    assert [row[0] for row in rows] == back
    assert [row[6] for row in rows] == [None, "user id is empty", None]


@pytest.mark.parametrize(
    ("times", "back"),
    [
        (pa.array([datetime(2005, 9, 6, 1, 2, 3)], pa.timestamp("ns")), datetime(2005, 9, 6, 1, 2, 3)),
        (pa.array([datetime(2005, 9, 6, 1, 2, 3)], pa.timestamp("ms", "UTC")), datetime(2005, 9, 6, 1, 2, 3)),
        (pa.array([date(2005, 9, 6)]), datetime(2005, 9, 6)),
        (pa.array([978300760.0]), datetime(2000, 12, 31, 22, 12, 40)),
        (pa.array([978300760000]), datetime(2000, 12, 31, 22, 12, 40)),
        (pa.array(["2005-09-06T01:02:03Z"]), datetime(2005, 9, 6, 1, 2, 3)),
        (pa.array([None], pa.timestamp("us")), None),
        (pa.array([float("nan")]), None),
        (pa.array([""]), None),
    ],
)
def test_times(parquet: Callable[..., Any], times: pa.Array, back: datetime | None) -> None:
    _, rows = parquet({"user": [1], "item": [1], "rating": ["2.5"], "time": times})
    assert [(row[2], row[3], row[6]) for row in rows] == [(2.5, back, None)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_ratings_that_are_not_finite(parquet: Callable[..., Any], kind: pa.DataType) -> None:
    ratings = pa.array([4.5, float("nan"), None, 3, float("inf")], kind)
    _, rows = parquet({"user": pa.array([1] * 5), "item": pa.array([1] * 5), "rating": ratings})
    finite = "rating is not a finite number"
    assert [(row[2], row[6]) for row in rows] == [
        (4.5, None),
        (None, finite),
        (None, "rating is not a number"),
        (3.0, None),
        (None, finite),
    ]


@pytest.mark.parametrize("times", [pa.array([-5]), pa.array(["monday"]), pa.array([1e300])])
def test_unreadable_times(parquet: Callable[..., Any], times: pa.Array) -> None:
    _, rows = parquet({"user": [1], "item": [1], "rating": [2], "time": times})
    assert [row[6] for row in rows] == ["time is not readable"]


def test_unfit_types(parquet: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"column 'user' has the type .*--user-column"):
        parquet({"user": pa.array([[1]]), "item": [1], "rating": [2]})
    with pytest.raises(InputError, match="column 'rating' has the type"):
        parquet({"user": [1], "item": [1], "rating": [date(2005, 9, 6)]})


def test_empty_and_damaged_parquet(parquet: Callable[..., Any], con: Any, write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="no ratings in it"):
        parquet(
            {
                "user": pa.array([], pa.int64()),
                "item": pa.array([], pa.int64()),
                "rating": pa.array([], pa.int64()),
            }
        )
    with pytest.raises(InputError, match="not a readable Parquet file"):
        load(con, [write(b"PAR1 this is not Parquet PAR1", "x.parquet")], LoadOptions())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A DuckDB file with one table."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "create table reviews as select * from "
            "(values (1, 'a', 3, timestamp '2005-09-06'), (2, 'b', 4, null))"
            " v(customer_id, isbn, score, rated_at)"
        )
    return path


def test_duckdb(con: duckdb.DuckDBPyConnection, database: Path) -> None:
    for given in (database, str(database), f"{database}:reviews", f"{database}:MAIN.reviews"):
        report = load(con, [given], LoadOptions())
        assert con.execute("select * exclude (source) from loaded.ratings order by line").fetchall() == [
            (1, "a", 3.0, datetime(2005, 9, 6), 1, None, None),
            (2, "b", 4.0, None, 2, None, None),
        ]
        assert report.inputs[0].format == "duckdb"
    assert con.execute("select source from loaded.ratings").fetchall() == [("shop.duckdb:MAIN.reviews",)] * 2
    databases = con.execute("select database_name from duckdb_databases() where not internal").fetchall()
    assert databases == [("memory",)]


def test_several_tables(con: duckdb.DuckDBPyConnection, database: Path) -> None:
    with duckdb.connect(str(database)) as other:
        other.execute("create schema s; create view s.v as select * from reviews where score = 4")
    with pytest.raises(InputError, match=r"holds 2 tables: reviews, s\.v\..*shop\.duckdb:"):
        load(con, [database], LoadOptions())
    with pytest.raises(InputError, match=r"no table 'nix'\. The tables are: reviews, s\.v"):
        load(con, [f"{database}:nix"], LoadOptions())
    with pytest.raises(InputError, match="a view that leads elsewhere"):
        load(con, [f"{database}:s.v"], LoadOptions())
    with duckdb.connect(str(database)) as other:
        other.execute("create or replace view s.v as select * from main.reviews where score = 4")
    for table in ("s.v", "v"):
        load(con, [f"{database}:{table}"], LoadOptions())
        assert con.execute("select user_id, line from loaded.ratings").fetchall() == [(2, 1)]


def test_the_database_of_the_connection_itself(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        load(con, [f"{database}:reviews"], LoadOptions())
        assert con.execute("select count(*) from loaded.ratings").fetchall() == [(2,)]


def test_database_without_tables_and_damaged(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, write: Callable[..., Path]
) -> None:
    path = tmp_path / "empty.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(InputError, match="without tables"):
        load(con, [path], LoadOptions())
    content = bytearray(path.read_bytes())
    content[100:] = bytes(len(content) - 100)
    with pytest.raises(InputError, match="cannot be opened as a DuckDB database"):
        load(con, [write(bytes(content), "bad.duckdb")], LoadOptions())
    with pytest.raises(InputError, match="is not a DuckDB database"):
        load(con, [f"{write('1,2,3')}:table"], LoadOptions())


def test_together_with_text(con: duckdb.DuckDBPyConnection, database: Path, write: Callable[..., Path]) -> None:
    report = load(con, [write("user,item,rating\n1,2,3\n"), f"{database}:reviews"], LoadOptions())
    rows = con.execute("select user_id, item_id from loaded.ratings order by source, line").fetchall()
    assert rows == [(1, "2"), (1, "a"), (2, "b")]
    assert report.warnings == ["item ids: some are not integers, all are kept as text."]
