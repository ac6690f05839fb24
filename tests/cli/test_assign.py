"""`kgather assign`: people who are not in a release, put beside the group that fits them."""

import csv
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kgather._cli.app import app
from kgather._errors import InputError
from kgather._loaders import LoadOptions
from kgather._publishing.publish import Published
from kgather._republishing import assigning
from kgather._republishing.assigning import assign

Publish = Callable[..., Published]


@pytest.fixture(scope="module")
def newcomers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people: who rates as the release's groups do, who rated nothing of it, and a text id with a comma."""
    path = tmp_path_factory.mktemp("newcomers") / "new.csv"
    rows = [
        ("new-1", 1, 4),
        ("new-1", 2, 3.5),
        ("new-1", 2, 4.5),
        ("new-2", 999_999, 3),
        ("new,3", 3, 1),
        ("new,3", 5, 5),
    ]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("user_id", "item_id", "rating"), *rows])
    return path


def test_the_nearest_group_by_what_the_release_shows(publish_to: Publish, sample: Path, newcomers: Path) -> None:
    release = publish_to(sample, k=5).folder
    found = assign([str(newcomers)], release, LoadOptions()).to_pylist()
    assert [row["user_id"] for row in found] == ["new,3", "new-1", "new-2"]
    shown = pq.read_table(release / "ratings.parquet").to_pandas()
    for row, ratings in zip(found, [{3: 1.0, 5: 5.0}, {1: 4.0, 2: 4.0}, {}], strict=True):
        if not ratings:
            assert (row["group_id"], row["items"], row["distance"]) == (None, 0, None)
            continue
        squares = sum(
            (shown[shown.item_id == item].set_index("group_id").rating - rating) ** 2
            for item, rating in ratings.items()
        )
        assert row["group_id"] == squares.idxmin()
        assert row["distance"] == pytest.approx(np.sqrt(squares.min() / len(ratings)), abs=1e-6)
        assert row["items"] == len(ratings)


def test_vectors_are_shown_ratings_too(publish_to: Publish, sample: Path, newcomers: Path) -> None:
    release = publish_to(sample, k=5, cells="low_rank").folder
    with duckdb.connect(release / "release.duckdb", read_only=True) as con:
        groups = {group for (group,) in con.sql("select group_id from kgather__groups").fetchall()}
    found = assign([str(newcomers)], release, LoadOptions())
    assert {group for group in found["group_id"].to_pylist() if group is not None} <= groups


def test_people_are_taken_some_at_a_time(publish_to: Publish, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = publish_to(sample, k=5).folder
    at_once = assign([str(sample)], release, LoadOptions())
    monkeypatch.setattr(assigning, "_AT_ONCE", 20_000)
    assert assign([str(sample)], release, LoadOptions()).equals(at_once)


def test_the_command_writes_a_private_file_once(
    publish_to: Publish, sample: Path, newcomers: Path, tmp_path: Path
) -> None:
    release, out = publish_to(sample, k=5).folder, tmp_path / "groups.csv"
    result = CliRunner().invoke(app, ["assign", str(newcomers), "--release", str(release), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "2 users have a group, 1 rated nothing" in result.stderr
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with out.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["user_id"] for row in rows] == ["new,3", "new-1", "new-2"]
    again = CliRunner().invoke(app, ["assign", str(newcomers), "--release", str(release), "--out", str(out)])
    assert isinstance(again.exception, InputError)
    shown = CliRunner().invoke(app, ["assign", str(newcomers), "--release", str(release)])
    assert shown.stdout == out.read_text(encoding="utf-8")


def test_a_release_without_ratings_of_groups_is_refused(publish_to: Publish, sample: Path, newcomers: Path) -> None:
    release = publish_to(sample, k=5, method="k_member").folder
    with pytest.raises(InputError, match="shows no ratings of groups"):
        assign([str(newcomers)], release, LoadOptions())
