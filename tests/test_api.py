"""The Python API: the command line's way, with errors that name arguments as Python does."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import kgather
from kgather._cli.app import app
from kgather._errors import StoppedError
from kgather._publishing.publish import Published

ROWS = pa.table({"age": [30, 30, 30, 40, 40], "illness": ["x", "y", "z", "x", "x"]})


@contextmanager
def relation() -> Iterator[duckdb.DuckDBPyRelation]:
    with duckdb.connect() as con:
        con.register("rows", ROWS)
        yield con.table("rows")


def test_rows_of_any_kind_have_the_verdict_of_a_file(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    arguments: dict[str, Any] = {"k": 2, "columns": ["age"], "sensitive": ["illness"], "l": 2}
    of_file = kgather.verify(tmp_path / "rows.parquet", **arguments)
    assert not of_file
    assert [check.measured for check in of_file.checks] == [2, 1]
    assert [check.measured for check in of_file.failed] == [1]
    with relation() as rows:
        assert kgather.verify(str(tmp_path / "rows.parquet"), **arguments) == of_file
        # No file was read: only that is not said of rows.
        of_rows = replace(of_file, read=None)
        assert of_rows.checks == of_file.checks
        for given in (ROWS, ROWS.to_pandas(), ROWS.to_reader(), rows):
            assert kgather.verify(given, **arguments) == of_rows
        # Nothing is left on the connection that the rows came from.
        assert rows.fetchall() == list(zip(*ROWS.to_pydict().values(), strict=True))


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    file = str(tmp_path / "rows.parquet")
    said = CliRunner().invoke(app, ["verify", file, "--k", "3", "--columns", "age", "--json"])
    verdict = kgather.verify(file, k=3, columns=["age"])
    assert json.loads(said.stdout)["checks"] == [vars(check) for check in verdict.checks]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: kgather.verify(ROWS), "say what to check for with `k`."),
        (lambda: kgather.verify(ROWS, k=0), "k must be at least 1, not 0."),
        (lambda: kgather.verify(ROWS, k=2, columns=["size"]), "there is no column 'size'. There are: age, illness."),
        (lambda: kgather.verify(ROWS, k=2, columns="age"), "`columns` is a list of names, not one text: give ['age']."),
        (lambda: kgather.verify(ROWS, k=2, t=0.5), "`t` and `alpha` need `sensitive`"),
        (lambda: kgather.verify(3, k=2), "a value of type int cannot be verified."),
        (lambda: kgather.verify("nothing.csv", k=2), "nothing.csv: there is no such file."),
        (lambda: kgather.publish("nothing.csv", "out", k=2), "nothing.csv: there is no such file."),
        (lambda: kgather.publish("nothing.csv", "out", k=2, nonsense=1), "there is no setting 'nonsense'."),
        (lambda: kgather.publish("nothing.csv", "out", k=2, method="magic"), "method is one of bkg"),
        (lambda: kgather.publish("nothing.csv", "out", k=2, format="excel"), "format: "),
        (lambda: kgather.publish(ROWS, "out", k=2), "not from a Table: write it to a Parquet file first."),
        (lambda: kgather.publish("x.csv", "out", k=2, user_attributes={"x": 1}), "`user_attributes` is a file"),
        (lambda: kgather.attack("out", original="x.csv", second="b"), "give `second_original`"),
        (lambda: kgather.attack("out", original="x.csv", second_original="b"), "`second` and `second_original` go"),
        (lambda: kgather.attack("out"), "give `original`"),
        (lambda: kgather.attack("out", original="x.csv", rank=3), "there is no argument 'rank'."),
        (lambda: kgather.attack("out", original="x.csv"), "out is no release"),
        (lambda: kgather.Release("out"), "out is no release: audit.json is missing."),
    ],
)
def test_errors_name_arguments(
    call: Callable[[], object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kgather.InputError) as caught:
        call()
    assert told in str(caught.value)
    assert "--" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_target_that_is_taken(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "file").write_text("here first")
    with pytest.raises(kgather.InputError, match="give another `out`"):
        kgather.publish(sample, tmp_path / "file", k=5)


def test_an_interruption_is_none_of_our_errors(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise StoppedError

    monkeypatch.setattr("kgather._publishing.publish.publish", stopped)
    with pytest.raises(KeyboardInterrupt):
        kgather.publish(sample, tmp_path / "release", k=5)


def test_what_publish_is_given(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, ways of reading, users' attributes, progress and warnings reach the one way that there is."""
    given: dict[str, Any] = {}

    def noted(inputs: list[str], out: Path, settings: Any, load_options: Any, **more: Any) -> Published:
        given.update(inputs=inputs, out=out, settings=settings, load_options=load_options, **more)
        more["report"]("load", 1, 1)
        more["warn"]("k = 1 gives no anonymity.")
        (out / "audit.json").write_text("{}")
        return Published(out, None, None)  # type: ignore[arg-type]

    monkeypatch.setattr("kgather._publishing.publish.publish", noted)
    heard: list[tuple[str, int, int]] = []
    with pytest.warns(UserWarning, match="no anonymity"):
        release = kgather.publish(
            [sample, str(sample)],
            tmp_path,
            k=7,
            method="mdav",
            delimiter=";",
            user_attributes={"source": sample, "user_column": "id"},
            sweep=[2, 3],
            progress=lambda *step: heard.append(step),
        )
    assert release.folder == tmp_path
    assert given["inputs"] == [str(sample), str(sample)]
    assert (given["settings"].k, given["settings"].method) == (7, "mdav")
    assert given["settings"].user_attributes
    assert given["load_options"].delimiter == ";"
    assert (given["user_attributes"].source, given["user_attributes"].user_column) == (str(sample), "id")
    assert given["other_sizes"].ks == (2, 3)
    assert heard == [("load", 1, 1)]


def test_a_release_that_is_there(released: Published) -> None:
    release = kgather.Release(released.folder)
    assert release == kgather.Release(str(released.folder))  # type: ignore[arg-type]
    assert release.audit.checks == released.audit.checks
    # What is in the folder is for everybody: numbers of rows are rounded there.
    assert release.audit.counts == {**released.audit.counts, "read_rows": 5300, "staged_rows": 5300}
    assert release.ratings().column_names == ["group_id", "item_id", "rating"]
    assert release.table("kgather__groups").num_rows == release.audit.counts["groups"]
    with pytest.raises(kgather.InputError, match="has no 'intervals'"):
        release.table("intervals")
    with release.open() as con, pytest.raises(duckdb.Error, match="read-only"):
        con.execute("create table mine as select 1")
    assert kgather.verify(release)
    assert [check.promised for check in kgather.verify(release.folder, k=200).failed] == [200]
