"""What the release costs: how far what is shown lies from the users' own ratings, by the project's SQL."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kgather._dbt_package import macro_sql
from kgather._loaders.report import IdType
from kgather._spark.blocks import batch_of, database, matrix_of, numbers, rows_of, unpacked
from kgather._sql_text import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ERRORS = "block int, shown bigint, absolute double, squares double"
MEMBERS = "block int, rows binary, group_ids binary"
"""The map: of users of a block int32 row and int64 group id."""
_MACROS = ("kg_digits", "kg_cell", "kg_predicted", "kg_shown_errors")
_RELATIONS = ("int_kgather__group_vectors", "int_kgather__item_factors", "int_kgather__scale")


@dataclass(frozen=True)
class Shown:
    """What a release shows, as far as cells are made of it.

    relations: by name what the driver has of `_RELATIONS`; items are known by their codes. cells: the SQL of the mart
    of ratings, which rounds them; None where vectors are shown, from which cells are computed as they are.
    """

    relations: Mapping[str, pa.Table]
    cells: str | None

    @classmethod
    def of(cls, con: Any, cells: str | None) -> "Shown":
        """From a connection to the working database."""
        read = {name: con.sql(f"from work.{name}").to_arrow_table() for name in _RELATIONS}
        codes = con.sql(
            "select item_code as item_id, level, factor from work.int_kgather__item_factors "
            "join work.int_kgather__items using (item_id)"
        ).to_arrow_table()
        return cls(read | {"int_kgather__item_factors": codes}, cells)

    def errors(self, block: Mapping[str, Any], members: pa.Table) -> dict[str, Any]:
        """The sums of the errors of a block's ratings: a row of `_ERRORS`."""
        matrix = matrix_of(block, 0)
        users = np.repeat(np.arange(matrix.n_users, dtype=np.int32), np.diff(matrix.indptr))
        with database() as con:
            for name in _MACROS:
                con.execute(macro_sql(name))
            for name, relation in self.relations.items():
                con.register("given", relation)
                con.execute(f"create table {identifier(name)} as from given")
                con.unregister("given")
            con.register("ratings", pa.table({"user_id": users, "item_id": matrix.items, "rating": matrix.values}))
            con.register("groups", members)
            con.execute(
                "create table int_kgather__cells as select distinct group_id, item_id from ratings join groups "
                "using (user_id)"
            )
            con.execute(f"create table cells as {self.cells or _OF_VECTORS}")
            [(_, shown, absolute, _, squares)] = con.sql(
                "select ratings, shown, mean_absolute_error, root_mean_square_error, sum_of_squares "
                "from kg_shown_errors('ratings', 'groups', 'cells')"
            ).fetchall()
        if not shown:
            return {"block": block["block"], "shown": 0, "absolute": 0.0, "squares": 0.0}
        return {"block": block["block"], "shown": shown, "absolute": absolute * shown, "squares": squares}


_OF_VECTORS = """
from kg_predicted(
  'int_kgather__cells', 'int_kgather__group_vectors', 'int_kgather__item_factors',
  (select scale_min from int_kgather__scale), (select scale_max from int_kgather__scale)
)
"""


def members_of(spark: "SparkSession", gathered: "DataFrame", names: Mapping[tuple[int, int], Any]) -> "DataFrame":
    """The map from users to group ids, rows of `MEMBERS`. names: int64 of each leaf, the ids of its groups."""
    known = spark.sparkContext.broadcast(dict(names))

    def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for leaf in rows_of(batches):
            blocks, rows = numbers(leaf["blocks"], np.int32), numbers(leaf["rows"], np.int32)
            ids = known.value[leaf["leaf"], leaf["part"]][numbers(leaf["groups"], np.int32)]
            for block in np.unique(blocks):
                own = blocks == block
                row = {"block": int(block), "rows": rows[own].tobytes(), "group_ids": ids[own].tobytes()}
                yield batch_of([row], MEMBERS)

    return gathered.select("leaf", "part", "blocks", "rows", "groups").mapInArrow(named, MEMBERS)


def map_of(staged: "DataFrame", members: "DataFrame", user_type: IdType) -> "DataFrame":
    """The map from users to groups, as `int_kgather__groups` has it: (user_id, group_id). staged: of `STAGED`."""
    kind = "string" if user_type == "VARCHAR" else "bigint"

    def one(block: pa.Table, own: pa.Table) -> pa.Table:
        found = members_table(own)
        ids = [unpacked(each) for each in block["user_ids"].to_pylist()]
        rows = found["user_id"].combine_chunks()
        return pa.table({"user_id": pa.concat_arrays(ids).take(rows), "group_id": found["group_id"]})

    blocks = staged.select("block", "user_ids").groupBy("block")
    return blocks.cogroup(members.groupBy("block")).applyInArrow(one, f"user_id {kind}, group_id bigint")


def members_table(rows: pa.Table) -> pa.Table:
    """Rows of `MEMBERS`, of one block, as (user_id, group_id), where a user is its row in the block."""
    parts = rows.to_pylist()
    return pa.table(
        {
            "user_id": np.concatenate([np.empty(0, np.int32), *(numbers(each["rows"], np.int32) for each in parts)]),
            "group_id": np.concatenate(
                [np.empty(0, np.int64), *(numbers(each["group_ids"], np.int64) for each in parts)]
            ),
        }
    )


def shown_errors(spark: "SparkSession", blocks: "DataFrame", members: "DataFrame", shown: Shown) -> dict[str, float]:
    """The errors of what is shown, by the names of the metrics. blocks: of `CODED`. members: of `MEMBERS`."""
    known = spark.sparkContext.broadcast(shown)

    def one(block: pa.Table, own: pa.Table) -> pa.Table:
        rows = [known.value.errors(each, members_table(own)) for each in block.to_pylist()]
        return pa.Table.from_batches([batch_of(rows, _ERRORS)])

    found = blocks.groupBy("block").cogroup(members.groupBy("block")).applyInArrow(one, _ERRORS).collect()
    found = sorted(found, key=lambda row: row["block"])
    total = sum(row["shown"] for row in found)
    if not total:
        return {}
    squares = math.fsum(row["squares"] for row in found)
    return {
        "mean_absolute_error": math.fsum(row["absolute"] for row in found) / total,
        "root_mean_square_error": math.sqrt(squares / total),
        "sum_of_squares": squares,
    }
