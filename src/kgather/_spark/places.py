"""Where Spark reads and writes: paths of any file system that it knows, some of which are folders of this machine."""

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from kgather._errors import InputError, KgatherError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNFINISHED = "_KGATHER_UNFINISHED"
"""A file in a map that no release is there for; readers of Parquet pass over it."""


def inputs_of(frames: "Sequence[DataFrame]") -> list[str]:
    """The files of this machine that are read."""
    read = [urlparse(file) for frame in frames for file in frame.inputFiles()]
    return [unquote(each.path) for each in read if each.scheme in ("", "file")]


def check_map(spark: "SparkSession", path: str, target: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Refuse a place for the secret map that is taken, would go out with the release, or has what is not to be lost.

    Raises InputError.
    """
    _refuse_unknown(spark, path, "--secret-map")
    _refuse_within(spark, path, target, "secret map", "--secret-map")
    system, place = at(spark, path)
    if not force and system.exists(place):
        msg = f"{path} exists. Give another --secret-map, or --force to replace it."
        raise InputError(msg)
    local = _local(spark, path)
    for given in [] if local is None else [target, *map(Path, inputs)]:
        if local in (given.resolve(), *given.resolve().parents):
            msg = f"{path} would be replaced by the secret map, and {given} lies there. Give another --secret-map."
            raise InputError(msg)


def check_checkpoint(
    spark: "SparkSession", path: str, target: Path, inputs: Sequence[str], secret_map: str | None
) -> None:
    """Refuse a place for stages that would go out with the release, or lies among the files that are read, or where
    the secret map goes.

    Raises InputError.
    """
    _refuse_unknown(spark, path, "--checkpoint")
    _refuse_within(spark, path, target, "checkpoint", "--checkpoint")
    if set(path) & set("*?[]{}\\"):
        msg = f"{path} has signs that stand for several paths (* ? [ ] {{ }}). Give another --checkpoint."
        raise InputError(msg)
    local = _local(spark, path)
    if local is not None and local in {Path(given).resolve().parent for given in inputs}:
        msg = f"{path} has files that are read. Give another --checkpoint."
        raise InputError(msg)
    if secret_map is not None:
        one, other = (f"{_local(spark, each) or at(spark, each)[1].toString()}/" for each in (path, secret_map))
        if one.startswith(other) or other.startswith(one):
            msg = f"{path} and {secret_map} are in each other's place. Give another --checkpoint or --secret-map."
            raise InputError(msg)


def at(spark: "SparkSession", path: str) -> tuple[Any, Any]:
    """A path as Hadoop knows it: its file system, and its place there."""
    place = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    system = place.getFileSystem(spark._jsc.hadoopConfiguration())
    return system, system.makeQualified(place)


def make_private(spark: "SparkSession", path: str) -> None:
    """Make a folder that only its owner may look into, where the file system knows of that."""
    system, place = at(spark, path)
    system.mkdirs(place)
    system.setPermission(place, spark._jvm.org.apache.hadoop.fs.permission.FsPermission("700"))  # type: ignore[union-attr]


def begin_map(spark: "SparkSession", path: str) -> str:
    """A new folder for a secret map that is to come to a path, beside it; it is marked as unfinished."""
    made = f"{path.rstrip('/')}.unfinished-{secrets.token_hex(6)}"
    make_private(spark, made)
    system, place = at(spark, f"{made}/{_UNFINISHED}")
    system.createNewFile(place)
    return made


def finish_map(spark: "SparkSession", made: str, path: str, *, force: bool) -> None:
    """Give a secret map its final path, with force instead of what is there: its release is there. Raises KgatherError
    where the path is taken.
    """
    remove(spark, f"{made}/{_UNFINISHED}")
    if force:
        remove(spark, path)
    system, place = at(spark, path)
    if system.exists(place) or not system.rename(at(spark, made)[1], place):
        msg = f"the release is there, but its secret map could not be put at {path}. It is at {made}."
        raise KgatherError(msg)


def remove_unfinished(spark: "SparkSession", path: str) -> None:
    """Remove the maps for a path that were left unfinished, by drivers that were killed."""
    system, place = at(spark, path)
    beside, name = place.getParent(), re.escape(place.getName())
    if beside is None or not system.exists(beside):
        return
    for each in system.listStatus(beside):
        left = each.getPath()
        is_of_it = re.fullmatch(rf"{name}\.unfinished-[0-9a-f]{{12}}", left.getName())
        if is_of_it and system.exists(at(spark, f"{left.toString()}/{_UNFINISHED}")[1]):
            system.delete(left, True)


def remove(spark: "SparkSession", path: str) -> None:
    """Remove what is at a path, if anything is."""
    system, place = at(spark, path)
    system.delete(place, True)


def _refuse_unknown(spark: "SparkSession", path: str, option: str) -> None:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        system, place = at(spark, path)
        taken = system.exists(place) and system.getFileStatus(place).isFile()
    except (Py4JJavaError, PySparkException) as error:
        kind = re.search(r"\b(\w+(?:Error|Exception))\b", str(error))
        msg = f"'{path}' is no place that Spark knows ({kind[1] if kind else 'error'}). Give another {option}."
        raise InputError(msg) from None
    if taken:
        msg = f"{path} is a file, and a folder is needed. Give another {option}."
        raise InputError(msg)


def _refuse_within(spark: "SparkSession", path: str, target: Path, what: str, option: str) -> None:
    local = _local(spark, path)
    if local is not None and target in (local, *local.parents):
        msg = f"{path} lies in the release: the {what} would go out with it. Give another {option}."
        raise InputError(msg)


def _local(spark: "SparkSession", path: str) -> Path | None:
    """The folder of this machine, where it is one, however it is written."""
    _, place = at(spark, path)
    uri = place.toUri()
    return Path(uri.getPath()).resolve() if uri.getScheme() == "file" else None
