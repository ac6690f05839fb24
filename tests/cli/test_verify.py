"""`kgather verify`: what is anonymous passes, what is not exits with 3 and says how far it is off."""

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kgather.cli.app import app
from kgather.errors import KgatherError
from kgather.publish import Published

ROWS = pa.table(
    {
        "age": [30, 30, 30, 40, 40, None, None],
        "zip": ["a", "a", "a", "b", "b", "b", "b"],
        "illness": ["x", "y", "z", "x", "x", "y", "z"],
    }
)


def verify(*arguments: object) -> tuple[int, str]:
    """The exit code and what was printed."""
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    if isinstance(result.exception, KgatherError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.stdout


def smallest(target: object, *arguments: object) -> int:
    _, said = verify(target, "--json", *arguments)
    return json.loads(said)["checks"][0]["measured"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The same seven rows as Parquet, as CSV and as a table of a DuckDB file."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    with duckdb.connect(tmp_path / "rows.duckdb") as con:
        con.execute(f"create table people as from '{tmp_path}/rows.parquet'; create table other as select 1 as one")
        con.execute(f"copy people to '{tmp_path}/rows.csv'")
    return {
        "parquet": str(tmp_path / "rows.parquet"),
        "csv": str(tmp_path / "rows.csv"),
        "duckdb": f"{tmp_path}/rows.duckdb:people",
        "qualified": f"{tmp_path}/rows.duckdb:main.people",
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "qualified"])
def test_null_is_a_value(files: dict[str, str], kind: str) -> None:
    # Classes by age and zip: three of (30, a), two of (40, b), two of (null, b).
    assert verify(files[kind], "--k", 2, "--columns", "age,zip")[0] == 0
    assert verify(files[kind], "--k", 3, "--columns", "age,zip")[0] == 3
    assert smallest(files[kind], "--k", 3, "--columns", "AGE, zip") == 2
    assert smallest(files[kind], "--k", 3, "--columns", "zip") == 3


def test_without_columns_all_of_them_count(files: dict[str, str]) -> None:
    assert smallest(files["parquet"], "--k", 2) == 1


def test_an_empty_relation_passes(tmp_path: Path) -> None:
    pq.write_table(ROWS.slice(0, 0), tmp_path / "none.parquet")
    assert verify(tmp_path / "none.parquet", "--k", 5)[0] == 0


def test_what_cannot_be_checked(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for arguments, told in [
        ((files["csv"],), "--k"),
        ((files["csv"], "--k", 2, "--columns", "age,size"), "no column size. There are: age, zip, illness"),
        ((tmp_path / "none.csv", "--k", 2), "does not exist"),
        ((tmp_path / "folder", "--k", 2), "no release"),
        ((tmp_path / "rows.duckdb", "--k", 2), "Tables: main.other, main.people"),
        ((f"{tmp_path}/rows.duckdb:pets", "--k", 2), "has no table pets"),
    ]:
        code, said = verify(*arguments)
        assert (code, told in said) == (2, True), said


@pytest.fixture
def copy(released: Published, tmp_path: Path) -> Path:
    """A release to tamper with."""
    return Path(shutil.copytree(released.folder, tmp_path / "copy"))


def failed(release: Path) -> set[str]:
    code, said = verify(release, "--json")
    checks = {check["check"] for check in json.loads(said)["checks"] if not check["passed"]}
    assert code == (3 if checks else 0)
    return checks


def test_a_release_keeps_what_it_promised(copy: Path) -> None:
    assert failed(copy) == set()
    assert verify(copy, "--k", 6)[0] == 3


def test_a_member_taken_away_is_found(copy: Path) -> None:
    members = pq.read_table(copy / "members.parquet")
    groups = pq.read_table(copy / "groups.parquet").to_pylist()
    smallest_group = min(groups, key=lambda group: group["group_size"])["group_id"]
    taken = members["group_id"].to_pylist().index(smallest_group)
    kept = [row for row in range(members.num_rows) if row != taken]
    pq.write_table(members.take(kept), copy / "members.parquet")
    assert failed(copy) == {
        "k-anonymity: users in the smallest group",
        "groups whose size is not the number of their members",
        "rows in which members.parquet and release.duckdb differ",
    }


def test_files_that_disagree_are_found(copy: Path) -> None:
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute("update kgather__ratings set rating = 1 where rowid = 0")
    assert failed(copy) == {"rows in which ratings.parquet and release.duckdb differ"}


def test_a_missing_file_is_no_release(copy: Path) -> None:
    (copy / "members.parquet").unlink()
    code, said = verify(copy)
    assert code == 2
    assert "members.parquet is missing" in said
