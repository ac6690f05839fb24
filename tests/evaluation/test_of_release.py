"""`kgather metrics`: all metrics of a release that lies beside its original."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
import typer
from typer.testing import CliRunner

from kgather._cli.metrics import command
from kgather._errors import InputError
from kgather._evaluation.metrics import read_metrics
from kgather._publishing.publish import Published
from kgather._republishing.of_release import class_metrics, measure_release

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("metrics")(command)


@pytest.fixture(scope="module")
def generalized(publish_to, sample: Path) -> Published:
    return publish_to(sample, k=5, method="k_likeness")


def run(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_metrics_are_printed_with_what_they_mean(generalized: Published) -> None:
    text = run(str(generalized.folder), "--original", str(generalized.work_database))
    for told in ("generalized_information_loss", "discernibility", "mean_absolute_error", "tuple_distortion",
                 "query_error_average_and_5", "share of the original's items that the release shows"):  # fmt: skip
        assert told in text


def test_json_has_every_metric_once(generalized: Published) -> None:
    said = json.loads(run(str(generalized.folder), "--original", str(generalized.work_database), "--json"))
    names = [metric["metric"] for metric in said["metrics"]]
    assert len(set(names)) == len(names)
    assert all(metric.keys() == {"metric", "value", "about"} and metric["about"] for metric in said["metrics"])
    values = {metric["metric"]: metric["value"] for metric in said["metrics"]}
    assert values["average_class_size"] == pytest.approx(239 / 47 / 5, rel=1e-3)
    assert values["items_shown"] == 10 / 80


def test_the_recommender_test_takes_the_working_database(generalized: Published) -> None:
    found = measure_release(generalized.folder, [str(generalized.work_database)], recommender=True)
    values = {metric.metric: metric.value for metric in found}
    # Ten artifacts of 80 items.
    assert 0.1 < values["direct_covered"] < 0.4
    assert values["svd_mae"] > 0
    assert values["neighbours_mae_original"] > 0


def test_what_a_release_brings_along_is_taken(generalized: Published, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(generalized.folder, tmp_path / "release"))
    with duckdb.connect(copy / "release.duckdb") as con:
        con.execute("create or replace table kgather__metrics as select 'sum_of_squares' as metric, 12.5 as value")
    assert [(metric.metric, metric.value) for metric in read_metrics(copy)] == [("sum_of_squares", 12.5)]
    found = measure_release(copy, [str(generalized.work_database)])
    assert [metric.value for metric in found if metric.metric == "sum_of_squares"] == [12.5]
    assert {"discernibility", "mean_absolute_error"} <= {metric.metric for metric in found}


def test_classes_are_those_of_the_generalized_table(generalized: Published) -> None:
    found = {metric.metric: metric.value for metric in class_metrics(generalized.folder)}
    assert found.keys() == {"discernibility", "average_class_size", "generalized_information_loss"}
    with duckdb.connect(generalized.folder / "release.duckdb", read_only=True) as con:
        table = con.sql("select * exclude (group_id) from kgather__generalized").fetchall()
    spans = [max(cell) - min(cell) if cell else 0 for row in table for cell in row]
    assert found["generalized_information_loss"] == pytest.approx(sum(spans) / len(spans) / 5)
    sizes: dict[str, int] = {}
    for row in table:
        sizes[repr(row)] = sizes.get(repr(row), 0) + 1
    assert found["discernibility"] == sum(size**2 for size in sizes.values())


def test_classes_of_cells_are_the_groups(released: Published) -> None:
    found = {metric.metric: metric.value for metric in class_metrics(released.folder)}
    with duckdb.connect(released.folder / "release.duckdb", read_only=True) as con:
        [(squares, mean)] = con.sql("select sum(group_size ** 2), avg(group_size) from kgather__groups").fetchall()
    assert found == {"discernibility": squares, "average_class_size": pytest.approx(mean / 5)}


def test_what_is_no_release_is_refused(tmp_path: Path, generalized: Published) -> None:
    with pytest.raises(InputError, match="is no release"):
        class_metrics(tmp_path)
    with pytest.raises(InputError, match="is no release"):
        measure_release(tmp_path, [str(generalized.work_database)])


def test_users_attributes_are_asked_for_where_they_are_needed(
    released: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgather._republishing import of_release

    opened = of_release.open_evidence

    def with_levels(*arguments: object, **named: object) -> object:
        evidence = opened(*arguments, **named)  # type: ignore[arg-type]
        return type(evidence)(**{**vars(evidence), "parameters": {**evidence.parameters, "method": "bokg"}})

    monkeypatch.setattr(of_release, "open_evidence", with_levels)
    with pytest.raises(InputError, match="--no-recommender"):
        measure_release(released.folder, [str(released.work_database)], recommender=True)


@pytest.mark.slow
def test_an_original_that_is_another_is_named(released: Published, sample: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    header, *rows = sample.read_text(encoding="utf-8").splitlines()
    moved = [",".join((user, f"other-{item}", *rest)) for user, item, *rest in (row.split(",") for row in rows)]
    other.write_text("\n".join([header, *moved]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be made again from .*other\.csv: it shows other items"):
        measure_release(released.folder, [str(other)])
