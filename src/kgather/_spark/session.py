"""A session of Spark for the command line, and what it reads."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    # Otherwise the workers are of any Python that is first on the path, without kgather.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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
        spark.stop()


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
