"""What quick attackers get: all people, or all members of some groups, come together on one executor with the release.

The attacks are those of every publication. Where people are many, a sample of groups is attacked among all groups.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._attacks.runner import quick
from kgather._evaluation.candidates import Candidates
from kgather._evaluation.evidence import Evidence, Scale, read_released, shown_items_of
from kgather._spark.blocks import batch_of, numbers
from kgather._spark.cells import together
from kgather.udfs._shared.hashing import seed64
from kgather.udfs.attacking._known_ratings import order_users
from kgather.udfs.ratings.matrix import RatingMatrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_RATINGS = 2_000_000
"""Ratings that come together on one executor, about."""
MOST_CELLS = 20_000_000
"""Cells of a release beyond which it is not attacked: one executor would hold all of them."""
_REPORT = "report string"


@dataclass(frozen=True)
class Chosen:
    """The groups that are attacked: ids int64[g] ascending, of all groups of the release or of some."""

    ids: NDArray[np.int64]

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """0 for groups that are attacked, -1 for the others, int64[n]; see `cells.Parts.places`."""
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, 0, -1)

    @classmethod
    def of(cls, ids: NDArray[np.int64], sizes: NDArray[np.int64], ratings: int, seed: int) -> "Chosen":
        """All groups where all ratings are at most `MOST_RATINGS`, else some.

        ids int64[g], sizes int64[g]: in an order that is the same whatever the ids are, so that the same seed attacks
        the same groups.
        """
        if ratings <= MOST_RATINGS:
            return cls(np.sort(ids))
        order = order_users(np.arange(len(ids), dtype=np.int64), seed64(seed))
        most = MOST_RATINGS / ratings * sizes.sum()
        kept = order[: max(int(np.searchsorted(np.cumsum(sizes[order]), most)), 1)]
        return cls(np.sort(ids[kept]))


@dataclass(frozen=True)
class Attack:
    """What attackers have: what the release shows to everybody, and what it was made with."""

    shown: Candidates
    group_ids: NDArray[np.int64]
    raters: NDArray[np.int64]
    people: int
    scale: Scale
    parameters: Mapping[str, Any]

    def of(self, rows: pa.Table, threads: int, *, everybody: bool) -> dict[str, Any]:
        """The report on those who are in rows of `cells.SENT`, in the order of the blocks; the same for any threads."""
        sent = rows.to_pylist()

        def joined(name: str, kind: type[np.generic]) -> NDArray[Any]:
            return np.concatenate([numbers(each[name], kind) for each in sent])

        rated = joined("rated", np.int64)
        original = RatingMatrix(
            len(rated),
            len(self.raters),
            np.concatenate([[0], np.cumsum(rated)]).astype(np.int64),
            joined("codes", np.int32),
            joined("ratings", np.float32),
        )
        groups = np.searchsorted(self.group_ids, joined("group_ids", np.int64)).astype(np.int32)
        evidence = Evidence(
            original=original,
            shown=self.shown,
            truth=groups,
            groups=groups,
            shown_items=shown_items_of(self.shown),
            items=pa.nulls(len(self.raters)),
            scale=self.scale,
            parameters=self.parameters,
            group_ids=self.group_ids,
            raters=None if everybody else self.raters,
            people=None if everybody else self.people,
        )
        return dict(quick(evidence, threads=threads).as_dict())


def attacked(
    spark: "SparkSession",
    blocks: "DataFrame",
    members: "DataFrame",
    con: duckdb.DuckDBPyConnection,
    chosen: Chosen,
    people: int,
    parameters: Mapping[str, Any],
) -> dict[str, Any] | None:
    """What quick attackers get, as audit.json holds it; None where the release has too many cells for one executor.

    blocks: of `CODED`. members: of `measuring.MEMBERS`. con: has what was built, as `work` and `marts`. people: users
    of the release.
    """
    if parameters["cells"] != "low_rank":
        [(listed,)] = con.sql("select count(*) from marts.kgather__ratings").fetchall()
        if listed > MOST_CELLS:
            return None
    released = read_released(con, "work", "marts")
    items = con.sql("select item_id, raters from work.int_kgather__items order by item_code").to_arrow_table()
    [scale] = con.sql("select scale_min, scale_max, scale_step from work.int_kgather__scale").fetchall()
    attack = Attack(
        released.shown,
        released.group_ids,
        # Names of items are in no result.
        items["raters"].to_numpy().astype(np.int64),
        people,
        Scale(*scale),
        parameters,
    )
    threads = _threads(spark)
    everybody = len(chosen.ids) == len(released.group_ids)
    known = spark.sparkContext.broadcast(attack)

    def look(rows: pa.Table) -> pa.Table:
        report = known.value.of(rows.sort_by("block"), threads, everybody=everybody)
        return pa.Table.from_batches([batch_of([{"report": json.dumps(report)}], _REPORT)])

    [row] = together(blocks, members, chosen).groupBy("part").applyInArrow(look, _REPORT).collect()
    return dict(json.loads(row["report"]))


def _threads(spark: "SparkSession") -> int:
    """The cores of one executor, of which no other task uses any while this one runs."""
    context = spark.sparkContext
    alone = context.defaultParallelism if str(context.master).startswith("local[") else 1
    return int(context.getConf().get("spark.executor.cores") or alone)
