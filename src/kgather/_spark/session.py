"""A session of Spark for the command line, and what it reads."""

import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kgather._errors import InputError
from kgather._spark import needs
from kgather._spark.places import at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MASTERS = "local[4], yarn, spark://HOST:PORT or k8s://https://HOST:PORT"
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_NOT_READ = (".csv", ".tsv", ".txt", ".dat", ".data", ".json", ".jsonl", ".gz", ".zst", ".duckdb", ".mtx")


@contextmanager
def started(master: str | None) -> Iterator["SparkSession"]:
    """A session, which ends with the block. master: where it runs; None: as Spark's own configuration says.

    Raises InputError where pyspark or Java is missing.
    """
    needs.check_installed()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
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
    without_pandas()
    builder = SparkSession.builder.appName("kgather").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        kind = (error.getCondition() if isinstance(error, PySparkException) else None) or type(error).__name__
        msg = f"Spark does not start ({kind}). It needs Java 17 or newer: see JAVA_HOME."
        if shutil.which("java") or os.environ.get("JAVA_HOME"):
            asked = "as it is configured" if master is None else f"as {master}"
            msg = f"Spark does not start {asked} ({kind}). A master is {_MASTERS}. Its own log says more."
        raise InputError(msg) from None
    try:
        yield spark
    finally:
        with suppress(Py4JError, ConnectionError):  # of a driver that is no more
            spark.stop()


def without_pandas() -> None:
    """Filter the warning that Spark does not know this version of pandas, which is not used here."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)


@contextmanager
def own_python(spark: "SparkSession") -> Iterator[None]:
    """Let workers of a local master run this Python, where nobody has said which: another one may have no kgather."""
    context = spark.sparkContext
    is_said = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python") is not None
    if is_said or not re.match(r"local(\[|$)", context.master or ""):
        yield
        return
    before = context.pythonExec
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


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
_DRIVER_MEMORY = "576m"


def column(name: str) -> str:
    """The name of a column as Spark's SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def is_named(frame: "DataFrame", existing: str, name: str) -> bool:
    """Whether Spark's SQL takes a column for the one of a name."""
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return existing == name
    return existing.lower() == name.lower()


def tidy(spark: "SparkSession") -> None:
    """Let Java and Arrow give back memory, and Spark what it kept for what is no longer there: it waits half an hour
    else.
    """
    pa.default_memory_pool().release_unused()
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
    for name, each in zip(inputs[1:], found[1:], strict=True):
        _refuse_others(inputs[0], found[0], name, each)
        first = first.unionByName(each)
    return first


def _refuse_others(one: str, first: "DataFrame", other: str, second: "DataFrame") -> None:
    """Raise InputError where two inputs have other columns, or columns of types that are not to be mixed."""
    if sorted(first.columns) != sorted(second.columns):
        columns = [", ".join(each.columns) for each in (first, second)]
        msg = f"{one} has the columns {columns[0]}, and {other} has {columns[1]}. Give inputs with the same columns."
        raise InputError(msg)
    types = dict(second.dtypes)
    for name, kind in first.dtypes:
        both = {each.split("(")[0] for each in (kind, types[name])}
        if len(both) > 1 and not both <= set(_NUMBERS):
            msg = f"the column '{name}' has the type {kind} in {one}, and {types[name]} in {other}. Cast one of them."
            raise InputError(msg)


def _read(spark: "SparkSession", name: str) -> "DataFrame":
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException

    if name.lower().endswith(_NOT_READ):
        msg = f"{name}: the engine spark reads Parquet and tables that Spark knows by name. Write it to Parquet first."
        raise InputError(msg)
    try:
        if "/" in name or name.lower().endswith(".parquet") or Path(name).exists():
            system, place = at(spark, name)
            # Asked first, as Spark writes pages of Java's to its log where there is nothing.
            if not system.globStatus(place):
                msg = f"there is nothing at {name}. Give a Parquet file or folder, or a table that Spark knows by name."
                raise InputError(msg)
            return spark.read.parquet(name)
        return spark.table(name)
    except (AnalysisException, Py4JError) as error:
        kind = (error.getCondition() if isinstance(error, AnalysisException) else None) or type(error).__name__
        msg = f"{name} cannot be read by Spark ({kind}). Give a Parquet file or folder, or a table."
        raise InputError(msg) from None
