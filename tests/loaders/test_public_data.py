"""Public data sets load whole."""

from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from kgather._loaders import LoadOptions, load

FILES = [
    ("ml-100k/u.data", "u.data", 100_000, 943, 1_682, 1.0, 5.0),
    ("ml-latest-small/ratings.csv", "csv", 100_836, 610, 9_724, 0.5, 5.0),
    ("ml-1m/ratings.csv", "csv", 1_000_209, 6_040, 3_706, 1.0, 5.0),
    ("ml-1m/ratings_first_487650.dat.gz", "movielens-dat", 487_650, 2_999, 3_615, 1.0, 5.0),
    ("jester/jester1_ratings.csv.gz", "csv", 1_810_455, 24_983, 100, -9.95, 10.0),
    ("netflix/combined_excerpt.txt", "netflix", 4_861, 4_700, 6, 1.0, 5.0),
    ("netflix/derived_combined_10k.txt", "netflix", 10_000, 9_687, 3_451, 1.0, 5.0),
    ("netflix/netflix-user-ratings-10k.csv", "csv", 10_000, 9_687, 3_451, 1.0, 5.0),
    ("filmtrust/ratings.txt", "csv", 35_497, 1_508, 2_071, 0.5, 4.0),
]

# No line of these names the columns, and it is no known format.
WITHOUT_NAMES = {"filmtrust/ratings.txt": ("user", "item", "rating")}


def options_of(name: str) -> LoadOptions:
    """What must be said about a file."""
    return LoadOptions(fields=WITHOUT_NAMES.get(name))


@pytest.mark.parametrize(("name", "form", "rows", "users", "items", "low", "high"), FILES)
def test_counts(
    con: duckdb.DuckDBPyConnection,
    data_dir: Path,
    name: str,
    form: str,
    rows: int,
    users: int,
    items: int,
    low: float,
    high: float,
) -> None:
    if not (data_dir / name).exists():
        pytest.skip(f"no {name} at {data_dir}")
    report = load(con, [data_dir / name], options_of(name))
    assert (report.inputs[0].format, report.rows, report.problem_rows) == (form, rows, 0)
    assert (report.user_id_type, report.item_id_type, report.warnings) == ("BIGINT", "BIGINT", [])
    got = con.execute(
        "select count(*), count(distinct user_id), count(distinct item_id), min(rating), max(rating), "
        "count(distinct line) from loaded.ratings"
    ).fetchall()
    assert got == [(rows, users, items, low, high, rows)]


def test_the_two_forms_of_the_same_ratings_agree(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    if not (data_dir / "netflix").is_dir():
        pytest.skip(f"no netflix at {data_dir}")
    load(con, [data_dir / "netflix/derived_combined_10k.txt"], LoadOptions(), schema="blocks")
    load(con, [data_dir / "netflix/netflix-user-ratings-10k.csv"], LoadOptions(), schema="plain")
    columns = "user_id, item_id, rating, rated_at"
    for one, other in (("blocks", "plain"), ("plain", "blocks")):
        sql = f"select {columns} from {one}.ratings except all select {columns} from {other}.ratings"
        assert con.execute(sql).fetchall() == []


def test_line_numbers_and_times(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    if not (data_dir / "ml-100k/u.data").exists():
        pytest.skip(f"no ml-100k/u.data at {data_dir}")
    load(con, [data_dir / "ml-100k/u.data"], LoadOptions())
    with (data_dir / "ml-100k/u.data").open() as file:
        expected = []
        for number, line in enumerate(file, 1):
            user, item, rating, seconds = line.split()
            expected.append((number, int(user), int(item), float(rating), int(seconds)))
    sql = "select line, user_id, item_id, rating, epoch(rated_at)::bigint from loaded.ratings order by line"
    assert con.execute(sql).fetchall() == expected
    assert datetime(1997, 9, 20) < con.execute("select min(rated_at) from loaded.ratings").fetchall()[0][0]


def test_all_in_one(con: duckdb.DuckDBPyConnection, data_dir: Path) -> None:
    files = [data_dir / name for name, *_ in FILES if (data_dir / name).exists()]
    if not files:
        pytest.skip(f"no ratings at {data_dir}")
    report = load(con, files, LoadOptions(user_column="1", item_column="2", rating_column="3"))
    expected = sum(rows for name, _, rows, *_ in FILES if data_dir / name in files)
    assert (report.rows, report.problem_rows) == (expected, 0)
