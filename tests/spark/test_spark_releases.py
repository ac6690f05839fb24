"""Releases made by Spark: those of the engine duckdb in all that is promised, however Spark cuts the rows."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spark_data import groups_of, messy

import kgather
from kgather._errors import InputError
from kgather._release.release import put_in_place

pytestmark = pytest.mark.long

ASKED: dict[str, Any] = {"k": 5, "scale": [1.0, 5.0], "max_rejected_share": 0.05}
CUT = {"ratings_per_block": 700, "leaf_users": 60}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return messy(tmp_path_factory.mktemp("ratings") / "ratings.parquet")


@pytest.fixture(scope="module")
def made(spark: Any, file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release and its secret map."""
    from kgather import spark as on_spark

    folder = tmp_path_factory.mktemp("made")
    on_spark.publish(spark.read.parquet(str(file)), folder / "release", secret_map=str(folder / "map"), **ASKED, **CUT)
    return folder


def test_what_is_promised_is_what_the_engine_duckdb_promises(
    made: Path, file: Path, publish_to: Callable[..., Any]
) -> None:
    # As the files say it: numbers are rounded there.
    mine, whole = (kgather.Release(each).audit for each in (made / "release", publish_to(file, **ASKED).folder))
    assert mine.passed
    own = "groups whose size is not that of the map"
    assert {check.check for check in mine.checks} - {own} == {check.check for check in whole.checks}
    promised = {check.check: check.promised for check in whole.checks}
    assert {check.check: check.promised for check in mine.checks if check.check != own} == promised
    for name in ("read_rows", "staged_rows", "rejected_rows", "users", "items", "rejected_by_reason"):
        assert mine.counts[name] == whole.counts[name]
    assert dict(mine.scale) == dict(whole.scale)
    errors = [{each["metric"]: each["value"] for each in audit.metrics} for audit in (mine, whole)]
    assert errors[0]["mean_absolute_error"] == pytest.approx(errors[1]["mean_absolute_error"], abs=0.03)
    assert errors[0].keys() == errors[1].keys()
    for name in ("items_shown", "ratings_shown", "cells_shown"):
        assert errors[0][name] == errors[1][name]


def test_the_release_is_verified_and_says_what_was_not_measured(made: Path, file: Path) -> None:
    with pytest.raises(InputError, match="was made by the engine spark"):
        kgather.attack(made / "release", original=file)
    assert kgather.verify(made / "release", k=5)
    said = json.loads((made / "release" / "audit.json").read_text())
    assert said["parameters"]["attacked"] == "everybody"
    assert {each["attack"] for each in said["attacks"]["results"]} >= {"posterior", "disclosure", "columns"}
    assert not any("engine spark" in each for each in said["not_promised"])
    assert said["parameters"]["engine"] == "spark"
    released = kgather.Release(made / "release").table("groups")
    sizes = sorted(len(members) for members in groups_of(made / "map"))
    assert sorted(released["group_size"].to_pylist()) == sizes
    assert min(sizes) >= 5
    assert (made / "map").stat().st_mode & 0o077 == 0


def test_groups_are_the_same_however_the_rows_are_cut(spark: Any, file: Path, made: Path, tmp_path: Path) -> None:
    from kgather import spark as on_spark

    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        on_spark.publish(
            spark.read.parquet(str(file)).repartition(7, "rating").withColumnRenamed("user_id", "us`er.id x"),
            tmp_path / "release",
            user_column="us`er.id x",
            secret_map=str(tmp_path / "map"),
            **ASKED,
            **CUT,
        )
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert groups_of(tmp_path / "map") == groups_of(made / "map")
    one, other = (kgather.Release(each / "release").table("groups") for each in (made, tmp_path))
    assert set(one["group_id"].to_pylist()).isdisjoint(other["group_id"].to_pylist())


def test_no_id_is_in_the_event_log(made: Path, spark_folder: Path) -> None:
    assert (made / "release").is_dir()
    logs = [each for each in (spark_folder / "events").rglob("*") if each.is_file()]
    written = b"".join(log.read_bytes() for log in logs)
    assert b"SparkListenerJobEnd" in written
    assert b"person-0" not in written


def test_what_cannot_be_published_is_refused_and_nothing_is_left(spark: Any, file: Path, tmp_path: Path) -> None:
    from kgather import spark as on_spark

    ratings = spark.read.parquet(str(file))
    with pytest.raises(InputError, match="homogenize predicted, padded or pure, not microaggregated"):
        on_spark.publish(ratings, tmp_path / "release", homogenize="microaggregated", **ASKED)
    with pytest.raises(InputError, match="has the type array"):
        on_spark.publish(
            ratings.selectExpr("user_id", "array(item_id) as item_id", "rating"), tmp_path / "release", **ASKED
        )
    for twice in ("rating", "RATING"):
        both = ratings.selectExpr("*", f"rating as {twice}")
        with pytest.raises(InputError, match=r"2 columns are named 'rating'. Rename one"):
            on_spark.publish(both, tmp_path / "release", rating_column="rating", **ASKED)
    with pytest.raises(InputError, match=r"as that of the items\. The columns are: user_id, rating, timestamp\.\nSay"):
        on_spark.publish(ratings.drop("item_id"), tmp_path / "release", **ASKED)
    with pytest.raises(InputError, match="rows are rejected") as refused:
        on_spark.publish(ratings, tmp_path / "release", **{**ASKED, "max_rejected_share": 0.0})
    assert "person" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_where_it_would_go_out_or_replace_what_is_read(
    spark: Any, file: Path, tmp_path: Path
) -> None:
    from kgather import spark as on_spark

    shutil.copy(file, tmp_path / "ratings.parquet")
    ratings, release = spark.read.parquet(str(tmp_path / "ratings.parquet")), tmp_path / "out" / "release"
    for path in (release / "map", release):
        for written in (str(path), path.as_uri(), f"file:{path}"):
            for option in ("secret_map", "checkpoint"):
                with pytest.raises(InputError, match="lies in the release"):
                    on_spark.publish(ratings, release, **{option: written}, force=True, **ASKED)
    for path in (tmp_path, tmp_path / "out"):
        with pytest.raises(InputError, match=r"would be replaced by the secret map, and .*release lies there"):
            on_spark.publish(ratings, release, secret_map=path.as_uri(), force=True, **ASKED)
    with pytest.raises(InputError, match="is a file, and a folder is needed"):
        on_spark.publish(ratings, release, secret_map=str(tmp_path / "ratings.parquet"), force=True, **ASKED)
    ratings.write.parquet(str(tmp_path / "folder"))
    with pytest.raises(InputError, match=r"would be replaced by the secret map, and .*folder.part-.* lies there"):
        on_spark.publish(
            spark.read.parquet(str(tmp_path / "folder")),
            release,
            secret_map=str(tmp_path / "folder"),
            force=True,
            **ASKED,
        )
    shutil.rmtree(tmp_path / "folder")
    vault = tmp_path / "vault"
    for kept, secret in ((vault, vault), (vault / "kept", vault), (vault, vault / "map")):
        with pytest.raises(InputError, match=r"are in each other's place"):
            on_spark.publish(ratings, release, checkpoint=str(kept), secret_map=secret.as_uri(), **ASKED)
    with pytest.raises(InputError, match="has files that are read"):
        on_spark.publish(ratings, release, checkpoint=str(tmp_path), **ASKED)
    with pytest.raises(InputError, match=r"ratings\.parquet lies in .*, which would be replaced"):
        on_spark.publish(ratings, tmp_path, force=True, **ASKED)
    for sizes in ({"leaf_users": 0}, {"ratings_per_block": 2.5}):
        with pytest.raises(InputError, match="is a whole number of at least 1"):
            on_spark.publish(ratings, release, **sizes, **ASKED)
    assert {each.name for each in tmp_path.iterdir()} <= {"ratings.parquet", "out"}
    assert not release.exists()


def test_no_map_is_left_without_a_release(
    spark: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgather import spark as on_spark
    from kgather._spark import publish as publishing

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing, "put_in_place", full)
    with pytest.raises(kgather.KgatherError):
        on_spark.publish(
            spark.read.parquet(str(file)), tmp_path / "release", secret_map=str(tmp_path / "map"), **ASKED, **CUT
        )
    assert not list(tmp_path.iterdir())
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()
    assert cached == 0


def test_maps_that_a_killed_driver_left_are_removed(spark: Any, file: Path, made: Path, tmp_path: Path) -> None:
    from kgather import spark as on_spark
    from kgather._spark import places

    path = tmp_path / "map"
    left, own, of_another = (tmp_path / f"{name}.unfinished-0123456789ab" for name in ("map", "mine", "xmap"))
    Path(places.begin_map(spark, str(path))).rename(left)
    assert left.stat().st_mode & 0o777 == 0o700
    shutil.copytree(left, of_another)
    own.mkdir()
    kept = tmp_path / "map.unfinished-ba9876543210"  # a release is there for it
    kept.mkdir()
    on_spark.publish(spark.read.parquet(str(file)), tmp_path / "release", secret_map=str(path), **ASKED, **CUT)
    assert {each.name for each in tmp_path.iterdir()} == {"release", "map", own.name, of_another.name, kept.name}
    assert groups_of(path) == groups_of(made / "map")
    assert not list(path.glob("*UNFINISHED*"))


def test_a_map_whose_place_was_taken_meanwhile_is_kept(
    spark: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgather import spark as on_spark
    from kgather._spark import publish as publishing

    def taken(*given: Any, **more: Any) -> None:
        put_in_place(*given, **more)
        (tmp_path / "map").mkdir()

    monkeypatch.setattr(publishing, "put_in_place", taken)
    ratings, kept = spark.read.parquet(str(file)), tmp_path / "kept"
    for name in ("one", "two"):  # the first map is not taken away by the second publication
        with pytest.raises(kgather.KgatherError, match=r"the release is there, but its secret map .* It is at"):
            on_spark.publish(
                ratings, tmp_path / name, secret_map=str(tmp_path / "map"), checkpoint=str(kept), **ASKED, **CUT
            )
        (tmp_path / "map").rmdir()
        assert kgather.verify(tmp_path / name, k=5)
    assert len(list(tmp_path.glob("map.unfinished-*"))) == 2
    assert not list(kept.iterdir())


def test_columns_that_are_not_read_may_be_of_any_type(spark: Any, file: Path, tmp_path: Path) -> None:
    from kgather import spark as on_spark

    ratings = spark.read.parquet(str(file)).selectExpr("*", "map(user_id, 1) as more")
    people = (
        spark.range(150)
        .selectExpr("format_string('person-%05d', id) as user_id")
        .selectExpr("*", "3 as size", "map(1, 2) as m")
    )
    asked = {"method": "customized", "level_column": "size", "user_attributes": people}
    asked["items"] = spark.range(0, 40).selectExpr("id as item_id", "map(1, 2) as more")
    made = on_spark.publish(ratings, tmp_path / "release", checkpoint=str(tmp_path / "kept"), **asked, **ASKED, **CUT)
    assert made.audit.passed


def test_workers_run_this_python(spark: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kgather import spark as on_spark

    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python-that-is-nowhere")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        on_spark.publish(spark.read.parquet(str(file)), tmp_path / "release", **ASKED, **CUT)
    assert spark.sparkContext.pythonExec == "python-that-is-nowhere"
    assert not [each for each in warned if "pandas" in str(each.message)]


def test_inputs_that_are_not_one_table_are_refused(spark: Any, file: Path, tmp_path: Path) -> None:
    from kgather._spark import session

    ratings = spark.read.parquet(str(file))
    others = {
        "more": ratings.withColumn("more", ratings["rating"]),
        "texts": ratings.withColumn("item_id", ratings["item_id"].cast("string")),
        "wider": ratings.withColumn("item_id", ratings["item_id"].cast("int")).select(*reversed(ratings.columns)),
    }
    for name, each in others.items():
        each.write.parquet(str(tmp_path / name))
    with pytest.raises(InputError, match=r"has user_id, item_id, rating, timestamp, more. Give inputs with the same"):
        session.read(spark, [str(file), str(tmp_path / "more")])
    with pytest.raises(InputError, match=r"the column 'item_id' has the type bigint in .* and string in"):
        session.read(spark, [str(file), str(tmp_path / "texts")])
    assert session.read(spark, [str(file), str(tmp_path / "wider")]).count() == 2 * ratings.count()
    with pytest.raises(InputError, match=r"there is nothing at .*no\.parquet"):
        session.read(spark, [str(tmp_path / "no.parquet")])
    with pytest.raises(InputError, match="reads Parquet and tables"):
        session.read(spark, [str(tmp_path / "ratings.csv")])
