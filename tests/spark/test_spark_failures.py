"""What stops or breaks on Spark: the same release or none."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from spark_data import groups_of, messy, spark_home

import kgather

pytestmark = pytest.mark.long

ASKED: dict[str, Any] = {"k": 5, "scale": [1.0, 5.0], "max_rejected_share": 0.05}
CUT = {"ratings_per_block": 700, "leaf_users": 60}

# Tells each step, so that it can be broken from outside.
_RUN = """
import json, sys
import kgather.spark
from kgather._spark import session

master, file, folder, asked = sys.argv[1:]
with session.started(master) as spark:
    kgather.spark.publish(
        spark.read.parquet(file), folder + "/release", secret_map=folder + "/map", noise_key=folder + "/key",
        progress=lambda *step: print(*step, flush=True), **json.loads(asked),
    )
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return messy(tmp_path_factory.mktemp("ratings") / "ratings.parquet")


@pytest.fixture(scope="module")
def groups(spark: Any, file: Path, tmp_path_factory: pytest.TempPathFactory) -> set[frozenset[str]]:
    """The groups of a run that nothing broke."""
    from kgather import spark as on_spark

    folder = tmp_path_factory.mktemp("whole")
    on_spark.publish(spark.read.parquet(str(file)), folder / "release", secret_map=str(folder / "map"), **ASKED, **CUT)
    return groups_of(folder / "map")


def started(master: str, file: Path, folder: Path, local: Path, *conf: str, **more: Any) -> "subprocess.Popen[str]":
    """A publication in a process of its own, which tells its steps."""
    asked = json.dumps({**ASKED, **CUT, **more})
    settings = ["spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", *conf]
    submitted = " ".join(f"--conf {each}" for each in [*settings, f"spark.local.dir={local}"])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    environment |= {"PYSPARK_SUBMIT_ARGS": f"{submitted} pyspark-shell", "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_HOME": spark_home(folder / "spark")}
    with (folder / "driver.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _RUN, master, str(file), str(folder), asked],
            stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True,
        )  # fmt: skip


def steps(run: "subprocess.Popen[str]") -> Iterator[str]:
    """Each step as it begins."""
    assert run.stdout is not None
    last = ""
    for line in run.stdout:
        step = line.split(maxsplit=1)[0]
        if step != last:
            yield step
        last = step


def executors(root: int) -> list[int]:
    """The executors that a process and those that it started have started, the oldest first."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            said = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in said:
            found.append(int(entry.name))

    def belongs(pid: int) -> bool:
        while pid in parents and pid != root:
            pid = parents[pid]
        return pid == root

    return sorted(pid for pid in found if belongs(pid))


@pytest.fixture
def stopped_at_end() -> Iterator[Callable[["subprocess.Popen[str]"], None]]:
    """Lets go of whatever a run has started."""
    runs: list[subprocess.Popen[str]] = []
    yield runs.append
    for run in runs:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def test_executors_are_killed_in_each_stage_and_the_release_is_the_same(
    groups: set[frozenset[str]], file: Path, tmp_path: Path, stopped_at_end: Callable[..., None]
) -> None:
    local = tmp_path / "local"
    conf = ("spark.executor.memory=1g", "spark.sql.shuffle.partitions=3", "spark.log.level=INFO")
    run = started("local-cluster[2,1,1024]", file, tmp_path, local, *conf)
    stopped_at_end(run)
    broken = []
    for step in steps(run):
        if step in ("stage", "preferences", "gather", "audit"):
            for _ in range(600):
                if executors(run.pid):
                    break
                time.sleep(0.1)
            os.kill(executors(run.pid)[0], signal.SIGKILL)
            broken.append(step)
    assert run.wait() == 0
    assert broken == ["stage", "preferences", "gather", "audit"]
    assert kgather.verify(tmp_path / "release", k=5)
    assert groups_of(tmp_path / "map") == groups
    said = (tmp_path / "driver.log").read_bytes()
    assert b"Lost executor" in said
    assert b"person-0" not in said


def test_shuffle_files_are_lost_and_the_release_is_the_same(
    groups: set[frozenset[str]], file: Path, tmp_path: Path, stopped_at_end: Callable[..., None]
) -> None:
    local = tmp_path / "local"
    run = started("local[2]", file, tmp_path, local)
    stopped_at_end(run)
    lost = 0
    for step in steps(run):
        if step in ("preferences", "gather", "audit"):
            for each in local.rglob("shuffle_*.data"):
                each.unlink(missing_ok=True)
                lost += 1
    assert run.wait() == 0
    assert lost > 0
    assert kgather.verify(tmp_path / "release", k=5)
    assert groups_of(tmp_path / "map") == groups


def test_a_driver_is_killed_and_its_run_is_taken_up(
    groups: set[frozenset[str]],
    spark: Any,
    file: Path,
    tmp_path: Path,
    stopped_at_end: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kgather import spark as on_spark
    from kgather._spark import gathering, learning, staging

    kept = tmp_path / "checkpoint"
    run = started("local[2]", file, tmp_path, tmp_path / "local", checkpoint=str(kept))
    stopped_at_end(run)
    for step in steps(run):
        if step == "audit":
            break
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert not (tmp_path / "release").exists()
    [folder] = kept.iterdir()
    assert {each.name for each in folder.iterdir() if not each.name.startswith(".")} == {"staged", "items", "gathered"}
    assert folder.stat().st_mode & 0o077 == 0

    def anew(*_: Any, **__: Any) -> None:
        pytest.fail("a finished stage is done again")

    monkeypatch.setattr(staging, "staged", anew)
    monkeypatch.setattr(learning, "_learn_many", anew)
    monkeypatch.setattr(gathering, "gathered", anew)
    shutil.rmtree(tmp_path / "map", ignore_errors=True)
    on_spark.publish(
        spark.read.parquet(str(file)).repartition(5),
        tmp_path / "release",
        secret_map=str(tmp_path / "map"),
        noise_key=tmp_path / "key",
        checkpoint=str(kept),
        **ASKED,
        **CUT,
    )
    assert kgather.verify(tmp_path / "release", k=5)
    assert groups_of(tmp_path / "map") == groups
    assert not list(kept.iterdir())
    assert not list(tmp_path.glob(".kgather*"))


def test_a_checkpoint_of_something_else_is_removed(
    spark: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgather import spark as on_spark
    from kgather._spark import publish as publishing

    def broken(*_: Any) -> None:
        raise RuntimeError

    kept = tmp_path / "checkpoint"
    ratings = spark.read.parquet(str(file))
    names = set()
    monkeypatch.setattr(publishing.learning, "about", broken)
    for rows, seed in ((ratings, 1), (ratings, 2), (ratings.limit(900), 2)):
        warned = pytest.warns(UserWarning, match="all is done anew") if names else nullcontext()
        with pytest.raises(RuntimeError), warned:
            on_spark.publish(
                rows, tmp_path / "release", checkpoint=str(kept), noise_key=tmp_path / "key", seed=seed, **ASKED, **CUT
            )
        [folder] = kept.iterdir()
        names.add(folder.name)
    assert len(names) == 3
    with pytest.raises(kgather.InputError, match="signs that stand for several paths"):
        on_spark.publish(ratings, tmp_path / "release", checkpoint=str(tmp_path / "of [today]"), **ASKED)
    with pytest.raises(kgather.InputError, match="the checkpoint would go out with it"):
        on_spark.publish(ratings, tmp_path / "release", checkpoint=str(tmp_path / "release" / "kept"), **ASKED)


def test_a_null_that_moves_to_another_column_is_another_row(spark: Any) -> None:
    from kgather._spark.checkpoint import _digest

    rows = [spark.createDataFrame([row], "a int, b int, c int") for row in ((1, None, 5), (None, 1, 5), (1, 5, None))]
    assert len({tuple(_digest(each)) for each in rows}) == 3
