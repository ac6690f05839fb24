"""JSON, folders, patterns, standard input and addresses; and ratings that are not plain numbers."""

import gzip
import io
import json
import sys
from pathlib import Path

import duckdb
import pytest

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load
from kgather._loaders.fetched import fetched
from kgather._loaders.ratings_written import written
from kgather._loaders.report import LoadReport

REVIEWS = [
    {"reviewerID": f"A{at % 7}", "asin": f"B{at % 5}", "overall": float(at % 5 + 1), "unixReviewTime": 1300000000 + at}
    for at in range(40)
]


def loaded(given: Path | str, **options: object) -> tuple[LoadReport, list[tuple[object, ...]]]:
    with duckdb.connect() as con:
        report = load(con, [str(given)], LoadOptions(**options))  # type: ignore[arg-type]
        rows = con.sql("select user_id, item_id, rating, problem from loaded.ratings order by source, line").fetchall()
        return report, rows


@pytest.mark.parametrize("form", ["lines", "list", "indented", "gzip"])
def test_json_is_read_with_an_object_for_each_rating(form: str, tmp_path: Path) -> None:
    file = tmp_path / "reviews.json"
    text = "\n".join(map(json.dumps, REVIEWS)) if form == "lines" else json.dumps(REVIEWS, indent=form == "indented")
    file.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode())
    report, rows = loaded(file)
    assert report.inputs[0].format == "json"
    assert report.inputs[0].columns == {
        "user": "reviewerID",
        "item": "asin",
        "rating": "overall",
        "time": "unixReviewTime",
    }
    assert rows == [(each["reviewerID"], each["asin"], each["overall"], None) for each in REVIEWS]


def test_a_field_of_json_is_named_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(json.dumps({"a": {"b/c": at % 3}, "d": at, "e": "4"}) for at in range(9)))
    _, rows = loaded(file, user_column="a.b/c", item_column="d", rating_column="e")
    assert rows == [(at % 3, at, 4.0, None) for at in range(9)]


def test_a_line_that_is_no_object_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    good = '{"user": 1, "item": 2, "rating": 3}'
    file.write_text("\n".join([good, "{bad", "[1]", good, '{"user": null, "item": 2, "rating": 3}']))
    _, rows = loaded(file)
    assert [problem for *_, problem in rows] == [
        None, "it is no JSON object", "it is no JSON object", None, "user id is empty"
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["{'user': 1, 'item': 2}\n{'user': 1, 'item': 2}", '{"alice": {"film": 5}}', "[{]"])
def test_what_is_no_list_of_ratings_is_refused_without_its_keys(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(InputError, match="JSON") as refused:
        loaded(file)
    assert "alice" not in str(refused.value)


def test_folders_patterns_and_partitions(tmp_path: Path) -> None:
    for user in (7, 8):
        folder = tmp_path / "data" / f"user_id={user}" / "more"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("item_id,rating\n1,2\n2,3\n")
    (tmp_path / "data" / "_SUCCESS").write_text("")
    (tmp_path / "data" / ".hidden.csv").write_text("nonsense")
    expected = [(7, 1, 2.0, None), (7, 2, 3.0, None), (8, 1, 2.0, None), (8, 2, 3.0, None)]
    assert loaded(tmp_path / "data")[1] == expected
    assert loaded(f"{tmp_path}/data/*/more/*.csv")[1] == expected
    with pytest.raises(InputError, match="no file fits"):
        loaded(f"{tmp_path}/nothing-*.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="folder without files"):
        loaded(tmp_path / "empty")


def test_what_a_partition_says_is_told_in_no_message(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "user_id=alice"
    folder.mkdir(parents=True)
    (folder / "part.csv").write_text("who,what\nx,2\n")
    for given in (str(tmp_path / "data"), f"{tmp_path}/data/*/*.csv"):
        with pytest.raises(InputError, match=r"\(file 1\)") as refused:
            loaded(given)
        assert "alice" not in str(refused.value)
    (folder / "part.csv").write_text("item_id,rating\n1,2\n1,x\n")
    with duckdb.connect() as con:
        load(con, [str(tmp_path / "data")], LoadOptions())
        assert con.sql("select user_id, source from loaded.ratings where problem is null").fetchall() == [
            ("alice", "part.csv")
        ]


def test_partitions_of_parquet_are_columns(tmp_path: Path) -> None:
    duckdb.sql(
        "copy (select n % 4 as user_id, n as item_id, n % 3 as rating from range(12) as t(n)) "
        f"to '{tmp_path}/hive' (format parquet, partition_by (rating))"
    )
    _, rows = loaded(tmp_path / "hive")
    assert sorted(rows) == sorted((at % 4, at, float(at % 3), None) for at in range(12))


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "part1.csv").write_text("user,item,rating\n1,1,1\n")
    (tmp_path / "part[1].csv").write_text("user,item,rating\n2,2,2\n")
    assert loaded(tmp_path / "part[1].csv")[1] == [(2, 2, 2.0, None)]


def test_standard_input_is_copied_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"user,item,rating\n1,2,3\n")))
    with fetched(["-"]) as [file]:
        report, rows = loaded(file)
        assert Path(file).stat().st_mode & 0o077 == 0 or Path(file).parent.parent.stat().st_mode & 0o077 == 0
    assert rows == [(1, 2, 3.0, None)]
    assert report.inputs[0].path == "standard input"
    assert not Path(file).exists()
    with pytest.raises(InputError, match="named twice"), fetched(["-", "-"]):
        pass


def test_an_address_needs_the_engines_extension_and_its_query_is_not_told() -> None:
    with pytest.raises(InputError) as refused, fetched(["https://example.invalid/a/ratings.csv?token=secret"]):
        pass
    assert "https://example.invalid/a/ratings.csv" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["4/5", "1 / 5", "3.5/5"], [4, 1, 3.5]),
        (["4 out of 5 stars", "2.0 out of 5 stars"], [4, 2]),
        (["80%", "7.5 %"], [80, 7.5]),
        (["★★★☆☆", "★", "★★½"], [3, 1, 2.5]),
        (["4 stars", "1 star"], [4, 1]),
        (["Like", "dislike", "LIKE"], [1, 0, 1]),
        (["4", "3.5"], [4, 3.5]),
    ],
)
def test_ratings_that_are_not_plain_numbers(texts: list[str], values: list[float], tmp_path: Path) -> None:
    words = {"like": 1, "dislike": 0}
    assert all(written(texts, words).reads(text) for text in texts)
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n" + "".join(f"{at},{at},{text}\n" for at, text in enumerate(texts)))
    assert [rating for *_, rating, _ in loaded(file, words=words)[1]] == values
    table = tmp_path / "ratings.parquet"
    duckdb.sql(f"copy (from read_csv('{file}', all_varchar = true)) to '{table}'")
    assert [rating for *_, rating, _ in loaded(table, words=words)[1]] == values


def test_parts_of_another_whole_are_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,4/5\n1,2,3/5\n1,3,8/10\n1,4,4\n")
    assert [problem for *_, problem in loaded(file)[1]] == [None, None, *["rating is not a number"] * 2]


@pytest.mark.parametrize("text", ["user,item\n1,2\n1,3\n", "user,item,time\n1,2,1300000000\n1,3,1300000000\n"])
def test_without_ratings_every_row_counts_as_1(text: str, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(text)
    assert loaded(file, no_rating=True)[1] == [(1, 2, 1.0, None), (1, 3, 1.0, None)]
    table = tmp_path / "events.parquet"
    duckdb.sql(f"copy (from '{file}') to '{table}'")
    assert loaded(table, no_rating=True)[1] == [(1, 2, 1.0, None), (1, 3, 1.0, None)]
    (tmp_path / "bare.csv").write_text("1,2\n1,3\n")
    assert loaded(tmp_path / "bare.csv", no_rating=True, fields=("user", "item"))[1][0] == (1, 2, 1.0, None)
