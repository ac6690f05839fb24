"""(b, l)-diversity for the sets of items that users rated."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.publish import Published
from kgather._settings.publication import PublishSettings
from kgather._verify import verify_named
from kgather._verify.users_ratings import UNREAD, of_release

RATINGS = "user_id,item_id,rating\n1,a,5\n1,b,4\n2,b,3\n2,c,3\n3,d,1\n"
# Groups 7 and 8 show a and b, 9 shows c alone, and nobody shows d.
CELLS = [(7, "a"), (7, "b"), (8, "a"), (8, "b"), (9, "c"), (9, "b")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "users.csv").write_text(RATINGS, encoding="utf-8")
    rows = ", ".join(f"({group}, '{item}', 3.0)" for group, item in CELLS)
    with duckdb.connect() as con:
        con.execute(
            f"copy (from (values {rows}) as shown (group_id, item_id, rating)) to '{tmp_path / 'ratings.parquet'}'"
        )
    return tmp_path


def measured(folder: Path, **given: Any) -> float:
    checks = verify_named(str(folder / "ratings.parquet"), None, given, users_ratings=str(folder / "users.csv")).checks
    return next(check.measured for check in checks if "(b, l)" in check.check)


def test_sets_are_those_that_users_rated(folder: Path) -> None:
    assert measured(folder, b=1, l=1) == 1  # c is shown by group 9 alone; nobody shows d, which does not count
    # User 1 rated a and b, which 7 and 8 show; user 2 rated b and c, which 9 shows; nobody rated a and c.
    assert measured(folder, b=2, l=1) == 1
    # Without users' ratings every group stands for one: of all sets that a group shows.
    alone = verify_named(str(folder / "ratings.parquet"), None, {"b": 2, "l": 1}).checks
    assert alone[-1].measured == 1


def test_what_a_release_promised_is_confirmed_or_not(folder: Path) -> None:
    users, options = str(folder / "users.csv"), LoadOptions()
    [kept] = of_release(folder, {"diversity_b": 1, "diversity_l": 2}, users, options, None, None)
    assert (kept.promised, kept.measured, kept.passed) == (2, 1, False)
    [asked] = of_release(folder, {}, users, options, 2, 1)
    assert (asked.promised, asked.measured, asked.passed) == (1, 1, True)
    with pytest.raises(InputError, match="promises no"):
        of_release(folder, {}, users, options, None, None)


def test_vectors_show_every_item_of_every_group(folder: Path) -> None:
    (folder / "ratings.parquet").unlink()
    with duckdb.connect() as con:
        con.execute(f"copy (select unnest([1, 2, 3]) as group_id) to '{folder / 'group_vectors.parquet'}'")
        con.execute(f"copy (select unnest(['a', 'b', 'c']) as item_id) to '{folder / 'item_vectors.parquet'}'")
    [found] = of_release(folder, {}, str(folder / "users.csv"), LoadOptions(), 2, 3)
    assert found.measured == 3


def test_ratings_go_with_b(folder: Path) -> None:
    with pytest.raises(InputError, match="--ratings goes with --b"):
        verify_named(str(folder / "ratings.parquet"), 2, {}, users_ratings=str(folder / "users.csv"))
    (folder / "others.csv").write_text("user_id,item_id,rating\n1,x,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="no rating of an item that is shown"):
        verify_named(str(folder / "ratings.parquet"), None, {"b": 1, "l": 1}, users_ratings=str(folder / "others.csv"))


# The same ratings as others write them, and what `publish` needs to be told of them.
WRITTEN = [
    ("1;5;a\n1;4;b\n2;3;b\n2;3;c\n3;1;d\n", ["--fields", "user,rating,item", "--delimiter", ";"]),
    ("who,what,stars\n1,a,5\n1,b,4\n2,b,3\n2,c,3\n3,d,1\n", ["--fields", "user,item,rating", "--skip-lines", "1"]),
    ("user_id,item_id\n1,a\n1,b\n2,b\n2,c\n3,d\n", ["--no-rating"]),
    ("user_id,item_id,rating\n1,a,good\n1,b,good\n2,b,bad\n2,c,bad\n3,d,bad\n", ["--map", "good=1,bad=0"]),
    ("1|a|5|9\n1|b|4|9\n2|b|3|9\n2|c|3|9\n3|d|1|9\n", ["--format", "csv", "--fields", "user,item,rating,-"]),
]


@pytest.mark.parametrize(("text", "options"), WRITTEN)
def test_ratings_are_read_as_publish_reads_them(folder: Path, text: str, options: list[str]) -> None:
    (folder / "others.txt").write_text(text, encoding="utf-8")
    shown, ratings = str(folder / "ratings.parquet"), str(folder / "others.txt")
    said = CliRunner().invoke(app, ["verify", shown, "--b", "2", "--l", "1", "--ratings", ratings, *options, "--json"])
    assert said.exit_code == 0, said.output
    [check] = [check for check in json.loads(said.stdout)["checks"] if "(b, l)" in check["check"]]
    assert (check["measured"], check["passed"]) == (1, True)


def test_how_ratings_are_read_goes_with_ratings(folder: Path) -> None:
    shown = str(folder / "ratings.parquet")
    said = CliRunner().invoke(app, ["verify", shown, "--k", "2", "--map", "good=1", "--fields", "user,item,rating"])
    assert isinstance(said.exception, InputError)
    assert "--fields, --map: this says how ratings are read, and goes with --ratings." in str(said.exception)


def test_columns_beside_a_release_are_those_of_the_ratings(released: Published, sample: Path, tmp_path: Path) -> None:
    # The sample again, with columns that nobody would guess.
    with duckdb.connect() as con:
        con.execute(f"create view own as select user_id as who, item_id as what, rating as stars from '{sample}'")
        con.execute(f"copy own to '{tmp_path / 'own.csv'}'")
    asked = ["verify", str(released.folder), "--b", "1", "--l", "2", "--ratings", str(tmp_path / "own.csv")]
    named = ["--user-column", "who", "--item-column", "what", "--rating-column", "stars"]
    assert isinstance(CliRunner().invoke(app, asked).exception, InputError)
    assert CliRunner().invoke(app, [*asked, *named]).exit_code == 0
    with (tmp_path / "own.csv").open("a", encoding="utf-8") as file:
        file.write("x,1,none\n" * 200)
    said = CliRunner().invoke(app, [*asked, *named, "--json"])
    assert said.exit_code == 3
    [unread] = [check for check in json.loads(said.stdout)["checks"] if check["check"] == UNREAD]
    assert unread["promised"] == PublishSettings(k=5).max_rejected_share < unread["measured"]
    assert CliRunner().invoke(app, [*asked, *named, "--max-rejected-share", "0.5"]).exit_code == 0
