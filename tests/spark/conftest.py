"""A session of Spark, where pyspark and Java are there; else these tests are skipped, and say so."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps its event log and its files."""
    return tmp_path_factory.mktemp("spark")


# pyspark forks to start Java. Threads of kernels and databases, which tests before may have left, do not survive that.
_START = """
import sys
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
print(gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """Spark's Java, started by a process that has no threads."""
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": "--driver-memory 1g pyspark-shell"}
    started = subprocess.Popen(
        [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert started.stdout is not None
    port, secret = started.stdout.readline().split()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_GATEWAY_PORT", port)
        patch.setenv("PYSPARK_GATEWAY_SECRET", secret)
        yield
    started.communicate(timeout=60)


@pytest.fixture(scope="session")
def spark(spark_folder: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session with two workers, whose events are logged."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install kgather[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java on this machine, which Spark needs")
    request.getfixturevalue("java")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    (spark_folder / "events").mkdir()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", (spark_folder / "events").as_uri())
        .config("spark.eventLog.compress", "false")
        .config("spark.sql.warehouse.dir", str(spark_folder / "warehouse"))
        .config("spark.local.dir", str(spark_folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
