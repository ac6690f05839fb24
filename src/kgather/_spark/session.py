"""A session of Spark for the command line, and what it reads."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kgather._errors import InputError
from kgather._spark import needs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_READ = (".csv", ".tsv", ".txt", ".dat", ".data", ".json", ".jsonl", ".gz", ".zst", ".duckdb", ".mtx")


@contextmanager
def started(master: str | None) -> Iterator["SparkSession"]:
    """A session, which ends with the block. master: where it runs; None: as Spark's own configuration says.

    Raises InputError where pyspark or Java is missing.
    """
    needs.check_installed()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    # Otherwise the workers are of any Python that is first on the path, without kgather.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A driver without memory would wait for ever.
    options = "-XX:+ExitOnOutOfMemoryError"
    if master is not None and master.startswith("local"):
        # Java's second compiler takes half of all processor time of a short run, and gives back little of it.
        options += " -XX:TieredStopAtLevel=1"
    os.environ.setdefault("SPARK_SUBMIT_OPTS", options)
    if master is not None and not re.match(r"local(\[|$)", master):
        # Where executors are elsewhere, the driver needs less than Spark's 1 GB. Whatever the user has set comes first.
        os.environ.setdefault("SPARK_DRIVER_MEMORY", _DRIVER_MEMORY)
    # What the bridge to Java has to say is said as an error, without what it was told last.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName("kgather").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        msg = f"Spark does not start ({error.getCondition()}). It needs Java 17 or newer: see JAVA_HOME."
        raise InputError(msg) from None
    try:
        yield spark
    finally:
        with suppress(Py4JError, ConnectionError):  # of a driver that is no more
            spark.stop()


@contextmanager
def arranged(spark: "SparkSession") -> Iterator[None]:
    """What Spark is set to while a release is made: some of it only where the user has set nothing."""
    # Joins by broadcast would bring users' ids to the driver.
    always = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1"}
    # A row can have megabytes: ten thousand of them are too many for a worker.
    ours = {"spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES)}
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") != "true":
        # Spark's 200 are for large clusters: on few cores most of the time would go to starting tasks.
        partitions = _PARTITIONS_OF_CORE * context.defaultParallelism
        if not re.match(r"local(\[|$)", context.master or ""):
            partitions = max(partitions, _LEAST_OF_CLUSTER)  # executors may still be on their way
        ours["spark.sql.shuffle.partitions"] = str(partitions)
    own = spark.conf.getAll
    made = {name: value for name, value in ours.items() if name not in own} | always
    for name, value in made.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in made:
            if name in own:
                spark.conf.set(name, own[name])
            else:
                spark.conf.unset(name)


_PARTITIONS_OF_CORE, _LEAST_OF_CLUSTER = 2, 32
_BATCH_BYTES = 16 << 20
_DRIVER_MEMORY = "640m"


def column(name: str) -> str:
    """The name of a column as Spark's SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def tidy(spark: "SparkSession") -> None:
    """Let Java give back memory, and Spark what it kept for what is no longer there: it waits half an hour else."""
    spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]


def read(spark: "SparkSession", inputs: Sequence[str]) -> "DataFrame":
    """The ratings in Parquet files or folders, or in tables that Spark knows by name; of several all rows.

    Raises InputError where there is none of that name, or it is a file of another kind.
    """
    if not inputs:
        msg = "no input was named. Give a Parquet file or folder, or a table that Spark knows."
        raise InputError(msg)
    found = [_read(spark, each) for each in inputs]
    first = found[0]
    for each in found[1:]:
        first = first.unionByName(each)
    return first


def _read(spark: "SparkSession", name: str) -> "DataFrame":
    from pyspark.errors import AnalysisException

    if name.lower().endswith(_NOT_READ):
        msg = f"{name}: the engine spark reads Parquet and tables that Spark knows by name. Write it to Parquet first."
        raise InputError(msg)
    try:
        if "/" in name or name.lower().endswith(".parquet") or Path(name).exists():
            return spark.read.parquet(name)
        return spark.table(name)
    except AnalysisException as error:
        msg = f"{name} cannot be read by Spark ({error.getCondition()}). Give a Parquet file or folder, or a table."
        raise InputError(msg) from None
