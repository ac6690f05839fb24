"""The command line on Spark, in processes of its own: what it reads, and what Spark's logs have of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_data import groups_of, messy, spark_home

import kgather

pytestmark = pytest.mark.long

USERS = 150


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install kgather[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java on this machine, which Spark needs")
    return messy(tmp_path / "ratings.parquet", users=USERS)


def kgather_publish(
    folder: Path, master: str, file: Path, *options: str, **conf: str
) -> "subprocess.CompletedProcess[str]":
    """A publication by the command line, with the logs of executors in the folder `spark/work`."""
    conf |= {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf |= {"spark.local.dir": str(folder / "local")}
    submitted = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    environment |= {"PYSPARK_SUBMIT_ARGS": f"{submitted} pyspark-shell", "SPARK_HOME": spark_home(folder / "spark")}
    command = [str(Path(sys.executable).with_name("kgather")), "publish", str(file), "--k", "5", "--scale", "1,5"]
    command += [
        "--max-rejected-share",
        "0.3",
        "--engine",
        "spark",
        "--master",
        master,
        "--out",
        str(folder / "release"),
    ]
    command += ["--secret-map", str(folder / "map"), "--noise-key", str(folder / "key"), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_levels_and_a_catalogue_are_read_from_parquet(file: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    wanted = {f"person-{user:05d}": int(rng.choice([1, 5])) for user in range(USERS) if user % 10}
    levels, items = tmp_path / "levels.parquet", tmp_path / "items.parquet"
    pq.write_table(pa.table({"user_id": list(wanted), "size": list(wanted.values())}), levels)
    pq.write_table(pa.table({"item_id": [*range(2, 30), 400]}), items)
    asked = ["--method", "bokg", "--level-column", "size", "--user-attributes", str(levels), "--items", str(items)]
    done = kgather_publish(tmp_path, "local[2]", file, *asked, "--json")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["counts"]["rejected_by_reason"]["item is not in the catalogue"] > 0
    assert f"{USERS // 10} users with ratings have no row in the users' attributes" in done.stderr
    groups = groups_of(tmp_path / "map")
    assert sum(len(members) for members in groups) == USERS
    assert all(len(members) >= wanted.get(user, 5) for members in groups for user in members)
    assert min(len(members) for members in groups) == 1
    assert kgather.verify(tmp_path / "release", k=1)
    assert "person-" not in done.stdout + done.stderr


def test_no_log_of_an_executor_has_an_id_or_a_rating(file: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    done = kgather_publish(
        tmp_path, "local-cluster[2,1,1024]", file, "--homogenize", "pure", "--single-rater", "drop",
        **{"spark.executor.memory": "1g", "spark.log.level": "DEBUG", "spark.sql.shuffle.partitions": "3",
           "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
           "spark.eventLog.dir": events.as_uri()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    logs = [each for folder in (tmp_path / "spark" / "work", events) for each in folder.rglob("*") if each.is_file()]
    said = {str(each.relative_to(tmp_path)): each.read_bytes() for each in logs}
    assert sum(name.endswith("stderr") for name in said) >= 2
    assert b"SparkListenerJobEnd" in b"".join(said.values())
    said["driver"] = (done.stdout + done.stderr).encode()
    assert not [name for name, each in said.items() if b"person-0" in each]


def test_a_driver_whose_java_stops_leaves_nothing_and_says_what_to_do(file: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(kgather_publish, tmp_path, "local[1]", file)
        while not (javas := _javas_at_work(tmp_path)):
            assert not run.done(), run.result().stderr
            time.sleep(0.1)
        os.kill(javas[0], signal.SIGKILL)
        done = run.result(timeout=60)
    assert done.returncode == 1
    assert "Spark's driver stopped. Where it had too little memory, set spark.driver.memory to more." in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "release").exists()


def _javas_at_work(folder: Path) -> list[int]:
    """The Java of a run in this folder, once it has started a Python worker."""
    found, parents = [], set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            said = (entry / "cmdline").read_bytes()
            if b"pyspark.daemon" in said:
                parents.add(int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]))
            elif str(folder / "local").encode() in said and b"SparkSubmit" in said:
                found.append(int(entry.name))
    return [pid for pid in found if pid in parents]
