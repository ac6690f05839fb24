"""What a publication has finished, at a path that outlives the driver: another run of the same goes on from there.

It holds ids, ratings and the groups of users, all SECRET, and is removed when the release is there. It is in a folder
whose name is made, with the key of the noise, of the rows, the settings and the versions. What lies there under another
name is of something else, and is removed.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._spark.places import at, make_private, remove
from kgather._spark.session import column
from kgather._version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDER = "kgather-{}"
_OURS = re.compile(r"kgather-[0-9a-f]{32}")
_VERSIONS = ("duckdb", "numba", "numpy", "pyarrow", "pyspark")
_ROW_GROUP = 16 << 20  # bytes: readers hold the rows of one, and a row is a block of ratings

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Checkpoint:
    """The finished stages of one publication, by name. folder: where they are kept; None: nowhere."""

    spark: "SparkSession"
    folder: str | None

    @classmethod
    def at(
        cls, path: str | None, frames: Sequence["DataFrame"], asked: Mapping[str, Any], key: bytes, warn: Warn
    ) -> "Checkpoint":
        """What was finished of these rows and of what is asked, at a path that Spark knows. Reads all rows once.

        frames: the ratings, and what else is read.
        """
        spark = frames[0].sparkSession
        if path is None:
            return cls(spark, None)
        said = {
            "asked": asked,
            "columns": [each.dtypes for each in frames],
            "rows": [_digest(each) for each in frames],
            "version": __version__,
            "versions": {name: version(name) for name in _VERSIONS},
        }
        name = _FOLDER.format(hmac.new(key, json.dumps(said, default=str).encode(), hashlib.sha256).hexdigest()[:32])
        found = cls(spark, f"{path.rstrip('/')}/{name}")
        others = [each for each in found._listed(path) if _OURS.fullmatch(each) and each != name]
        for each in others:
            cls(spark, f"{path.rstrip('/')}/{each}").remove()
        if others:
            warn("the checkpoint was of other ratings, settings or versions: it was removed, and all is done anew.")
        make_private(spark, str(found.folder))
        return found

    def table(self, name: str, make: Callable[[], "DataFrame"]) -> "DataFrame":
        """A DataFrame as it was kept, or as `make` gives it, which is kept."""
        if self.folder is None:
            return make()
        place = f"{self.folder}/{name}"
        if not self._finished(place):
            made = make()
            made.write.mode("overwrite").option("parquet.block.size", _ROW_GROUP).parquet(place)
            made.unpersist()
        return self.spark.read.parquet(place)

    def arrays(self, name: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> Mapping[str, NDArray[Any]]:
        """Arrays by name as they were kept, or as `make` gives them."""
        if self.folder is None:
            return make()
        place = f"{self.folder}/{name}"
        if not self._finished(place):
            rows = [
                {"name": each, "kind": array.dtype.str, "shape": list(array.shape), "numbers": array.tobytes()}
                for each, array in make().items()
            ]
            kinds = {"name": pa.string(), "kind": pa.string(), "shape": pa.list_(pa.int64()), "numbers": pa.binary()}
            table = pa.Table.from_pylist(rows, schema=pa.schema(kinds))
            self.spark.createDataFrame(table).coalesce(1).write.mode("overwrite").parquet(place)
        return {
            row["name"]: np.frombuffer(row["numbers"], dtype=row["kind"]).reshape(row["shape"]).copy()
            for row in self.spark.read.parquet(place).collect()
        }

    def remove(self) -> None:
        """Remove all that was kept."""
        if self.folder is not None:
            remove(self.spark, self.folder)

    def _finished(self, place: str) -> bool:
        system, path = self._at(f"{place}/_SUCCESS")
        return bool(system.exists(path))

    def _listed(self, place: str) -> Iterator[str]:
        system, path = self._at(place)
        if system.exists(path):
            for each in system.listStatus(path):
                yield each.getPath().getName()

    def _at(self, place: str) -> tuple[Any, Any]:
        return at(self.spark, place)


def _digest(frame: "DataFrame") -> list[str]:
    """What all rows are known by, in any order: their number and the sum and the xor of their hashes."""
    from pyspark.sql import functions as F  # noqa: N812

    # A hash passes over nulls: that there are some is told beside.
    columns = [F.col(column(name)) for name in frame.columns]
    own = F.xxhash64(*columns, *(each.isNull() for each in columns))
    hashed = frame.select(own.alias("own"))
    found = hashed.agg(F.count("*"), F.sum(F.col("own").cast("decimal(38,0)")), F.bit_xor("own")).first()
    return [str(each) for each in found or ()]
