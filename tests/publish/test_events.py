"""Repeats that are meant, counts, and what is told of an input before and after it is published."""

import json
import math
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError, KgatherError
from kgather._publishing.publish import Published
from kgather._republishing.held_out import held_out
from kgather._settings.publication import PublishSettings

PLAYS = [
    (f"u{user:02}", f"s{song}", time, 1 + (user + song + time) % 4)
    for user in range(30)
    for song in range(6)
    if (user + song) % 3
    for time in range(1 + (user * song) % 4)
]
HEAVY = [("u01", "s1", 1000 + at, 1) for at in range(300)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    lines = [f"{user},{song},{1_300_000_000 + time},{rating}" for user, song, time, rating in PLAYS + HEAVY]
    file.write_text("user,item,timestamp,rating\n" + "\n".join(lines) + "\n")
    return file


def staged(published: Published) -> dict[tuple[str, str], float]:
    assert published.work_database is not None
    with duckdb.connect(str(published.work_database), read_only=True) as con:
        rows = con.sql("select user_id, item_id, rating from stg_kgather__ratings").fetchall()
    return {(user, item): rating for user, item, rating in rows}


def by_hand(how: str) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], list[float]] = {}
    for user, song, _, rating in PLAYS + HEAVY:  # in the order of time
        found.setdefault((user, song), []).append(rating)
    chosen = {
        "latest": lambda each: each[-1], "first": lambda each: each[0], "max": max, "sum": sum, "count": len,
        "mean": lambda each: sum(each) / len(each),
    }[how]  # fmt: skip
    return {pair: float(chosen(ratings)) for pair, ratings in found.items()}


@pytest.mark.parametrize("how", ["latest", "first", "mean", "max"])
def test_the_rating_of_a_pair_that_occurs_several_times(how: str, log: Path, publish_to: object) -> None:
    published = publish_to(log, k=3, repeats=how, refine=False)  # type: ignore[operator]
    expected = by_hand(how)
    found = staged(published)
    assert found.keys() == expected.keys()
    assert all(math.isclose(found[pair], expected[pair]) for pair in expected)
    assert published.audit.counts["rejected_rows"] == len(PLAYS + HEAVY) - len(expected)


@pytest.mark.parametrize("log_of", [False, True])
def test_the_heaviest_user_is_not_the_end_of_the_scale(log_of: bool, log: Path, publish_to: object) -> None:
    published = publish_to(log, k=3, repeats="count", rating_log=log_of, refine=False)  # type: ignore[operator]
    counts = by_hand("count")
    most = sorted(max(each for (who, _), each in counts.items() if who == user) for user in {u for u, _ in counts})
    cap = most[-3]
    assert cap < 300
    shaped = {pair: min(each, cap) for pair, each in counts.items()}
    if log_of:
        shaped = {pair: math.log(1 + each) for pair, each in shaped.items()}
    found = staged(published)
    assert all(math.isclose(found[pair], each) for pair, each in shaped.items())
    assert math.isclose(published.audit.scale["max"], max(shaped.values()))


@pytest.mark.slow
def test_repeats_are_faults_where_nothing_is_said_and_the_option_is_named(log: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["publish", str(log), "--k", "3", "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, KgatherError)
    assert "--repeats" in str(result.exception)
    assert "--max-rejected-share" in str(result.exception)


@pytest.mark.slow
def test_what_is_held_out_is_shaped_as_what_is_published(log: Path) -> None:
    settings = PublishSettings(k=3, repeats="count", rating_log=True, refine=False)
    _, (_, _, ratings) = held_out([str(log)], settings, share=0.2, seed=1)
    cap = sorted(max(each for (who, _), each in by_hand("count").items() if who == f"u{user:02}") for user in range(30))
    assert len(ratings)
    assert ratings.max() <= math.log(1 + cap[-3]) + 1e-9


def test_a_scale_goes_with_ratings_as_they_are_read() -> None:
    with pytest.raises(InputError, match="leave it out with rating_log"):
        PublishSettings(k=3, scale=[1, 5], rating_log=True)


def test_a_dry_run_says_what_was_read_and_writes_nothing(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [str(log), "--k", "3", "--repeats", "max", "--dry-run", "--json"]
    result = CliRunner().invoke(app, ["publish", *arguments, "--out", str(out)])
    assert result.exit_code == 0, result.exception
    read = json.loads(result.stdout)["read"]
    assert not out.exists()
    assert read["files"][0]["columns"] == {"user": "user", "item": "item", "rating": "rating", "time": "timestamp"}
    assert read["users"] == {"count": 30, "type": "text", "shapes": ["a##"]}
    assert read["items"]["shapes"] == ["a#"]
    assert read["repeats"] == len(PLAYS + HEAVY) - len(by_hand("max"))
    assert "u01" not in result.stdout


def test_the_audit_and_the_report_say_what_was_read(released: Published, sample: Path) -> None:
    read = json.loads((released.folder / "audit.json").read_text())["read"]
    assert read["files"][0]["file"] == sample.name
    assert len(read["files"][0]["keyed_sha256"]) == 64
    report = (released.folder / "report.html").read_text()
    assert "What was read" in report
    assert "user = user_id" in report
    assert str(sample.parent) not in report


def test_shapes_of_few_ids_are_not_told(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    users = [f"a{user}" for user in range(10, 40)] + ["Zoe-Anna", "b@x"]
    file.write_text(
        "user,item,rating\n" + "".join(f"{user},{item},{item % 5}\n" for user in users for item in range(8))
    )
    result = CliRunner().invoke(app, ["inspect", str(file), "--json"])
    assert json.loads(result.stdout)["read"]["users"]["shapes"] == ["a##"]


def _of_cities(tmp_path: Path, sample: Path) -> list[str]:
    """The arguments that publish the sample with a city, which one person has alone, and an age of each user."""
    with duckdb.connect() as con:
        users = con.sql(f"select distinct user_id from '{sample}' order by all").fetchall()
    file = tmp_path / "users.csv"
    lines = [f"{user},{'Rome' if at else 'Oslo'},{20 + at % 50}" for at, (user,) in enumerate(users)]
    file.write_text("user_id,city,age\n" + "\n".join(lines) + "\n")
    return ["publish", str(sample), "--k", "5", "--user-attributes", str(file), "--personal-columns", "city,age",
            "--generalize", "ndgh", "--out", str(tmp_path / "out")]  # fmt: skip


def test_personal_columns_are_not_shown_as_they_are_unasked(tmp_path: Path, sample: Path) -> None:
    arguments, how = _of_cities(tmp_path, sample), tmp_path / "how.yml"
    result = CliRunner().invoke(app, [*arguments, "--personal", "as_is"])
    assert isinstance(result.exception, InputError)
    assert "rare ones single people out" in str(result.exception)
    assert "Oslo" not in str(result.exception)
    how.write_text("age: {stop: 5}\n")
    result = CliRunner().invoke(app, [*arguments, "--personal-recoding", str(how)])
    assert isinstance(result.exception, InputError)
    assert "column 'age': there is no setting 'stop'" in str(result.exception)


@pytest.mark.slow
def test_a_file_says_how_personal_columns_are_generalized(tmp_path: Path, sample: Path) -> None:
    arguments, how = _of_cities(tmp_path, sample), tmp_path / "how.yml"
    how.write_text("age: {step: 5}\ncity: {kind: category}\n")
    result = CliRunner().invoke(app, [*arguments, "--personal-recoding", str(how), "--personal", "separate"])
    assert result.exit_code == 0, result.exception
    with duckdb.connect() as con:
        shown = con.sql(f"from '{tmp_path}/out/personal.parquet'")
        assert shown.columns == ["city", "age"]
        rows = shown.fetchall()
    assert "Oslo" not in {city for city, _ in rows}
    assert min(rows.count(row) for row in set(rows)) >= 5
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "out")]).exit_code == 0
