"""What the release costs: how far what is shown lies from the users' own ratings, by the project's SQL."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kgather._dbt_package import macro_sql
from kgather._loaders.report import IdType
from kgather._spark.audit import macro_select
from kgather._spark.blocks import batch_of, database, matrix_of, numbers, rows_of, unpacked
from kgather._spark.row_sums import RowSums
from kgather._sql_text import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ERRORS = "block int, shown bigint, absolute double, squares double"
MEMBERS = "block int, rows binary, group_ids binary, bins binary"
"""The map: of users of a block int32 row and int64 group id, and int64 bin where there are bins."""
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
            return {"block": block["block"], **errors_in(con, "ratings", "groups", "cells")}


def errors_in(con: duckdb.DuckDBPyConnection, ratings: str, groups: str, cells: str) -> dict[str, Any]:
    """The sums of the errors of some ratings, by the macro of the project: `shown`, `absolute`, `squares`."""
    [(shown, absolute, squares)] = con.sql(
        f"select shown, mean_absolute_error, sum_of_squares from kg_shown_errors('{ratings}', '{groups}', '{cells}')"
    ).fetchall()
    return {"shown": shown, "absolute": absolute * shown if shown else 0.0, "squares": squares or 0.0}


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
            bins = numbers(leaf["bins"], np.int64)
            for block in np.unique(blocks):
                own = blocks == block
                row = {"block": int(block), "rows": rows[own].tobytes(), "group_ids": ids[own].tobytes()}
                yield batch_of([row | {"bins": bins[own].tobytes() if len(bins) else b""}], MEMBERS)

    return gathered.select("leaf", "part", "blocks", "rows", "groups", "bins").mapInArrow(named, MEMBERS)


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


def shown_errors(
    spark: "SparkSession", blocks: "DataFrame", members: "DataFrame", shown: Shown
) -> list[Mapping[str, Any]]:
    """The sums of the errors of what is shown, of each block. blocks: of `CODED`. members: of `MEMBERS`."""
    known = spark.sparkContext.broadcast(shown)

    def one(block: pa.Table, own: pa.Table) -> pa.Table:
        rows = [known.value.errors(each, members_table(own)) for each in block.to_pylist()]
        return pa.Table.from_batches([batch_of(rows, _ERRORS)])

    found = blocks.groupBy("block").cogroup(members.groupBy("block")).applyInArrow(one, _ERRORS).collect()
    return [row.asDict() for row in sorted(found, key=lambda row: int(row["block"]))]


def mean_errors(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The errors by the names of the metrics, from the sums of all parts."""
    total = sum(row["shown"] for row in found)
    if not total:
        return {}
    squares = math.fsum(row["squares"] for row in found)
    return {
        "mean_absolute_error": math.fsum(row["absolute"] for row in found) / total,
        "root_mean_square_error": math.sqrt(squares / total),
        "sum_of_squares": squares,
    }


_RATINGS_OF_PART = 2_000_000  # whose cells one executor counts
_KEYS = "part int, keys binary"
_COUNT = "pairs bigint"


def rated_pairs(
    spark: "SparkSession",
    blocks: "DataFrame",
    members: "DataFrame",
    ratings: int,
    ids: NDArray[np.int64],
    items: NDArray[np.bool_],
) -> int:
    """How many cells of groups x items some member rated.

    ratings: how many there are. ids: of the groups, ascending. items: which are looked at.
    """
    known = spark.sparkContext.broadcast((ids, items))
    parts = min(-(-ratings // _RATINGS_OF_PART), len(ids))
    first = np.arange(parts) * len(ids) // parts

    def send(block: pa.Table, own: pa.Table) -> pa.Table:
        names, wanted = known.value
        mapped, sent = members_table(own), []
        for row in block.to_pylist():
            matrix = matrix_of(row, len(wanted))
            groups = np.empty(matrix.n_users, dtype=np.int64)
            groups[mapped["user_id"].to_numpy()] = np.searchsorted(names, mapped["group_id"].to_numpy())
            keys = np.repeat(groups, np.diff(matrix.indptr)) * len(wanted) + matrix.items
            keys = np.unique(keys[wanted[matrix.items]])
            edges = np.append(np.searchsorted(keys, first * len(wanted)), len(keys))
            sent += [
                {"part": int(part), "keys": keys[edges[part] : edges[part + 1]].tobytes()}
                for part in np.flatnonzero(np.diff(edges))
            ]
        return pa.Table.from_batches([batch_of(sent, _KEYS)])

    def count(rows: pa.Table) -> pa.Table:
        keys = np.concatenate([np.frombuffer(each, dtype=np.int64) for each in rows["keys"].to_pylist()])
        return pa.Table.from_batches([batch_of([{"pairs": len(np.unique(keys))}], _COUNT)])

    sent = blocks.groupBy("block").cogroup(members.groupBy("block")).applyInArrow(send, _KEYS)
    counted = sent.groupBy("part").applyInArrow(count, _COUNT).collect()
    return sum(row["pairs"] for row in counted)


def coverage(
    *,
    ratings: int,
    items: int,
    groups: int,
    shown: int,
    shown_items: int,
    of_rated: int,
    cells: int,
    repeated: int,
    pairs: int,
) -> dict[str, float]:
    """How much of the original a release speaks of, and what it has beside it: as kg_coverage and kg_entries_added.

    ratings, items: of the original. shown: ratings whose user's group shows the item. shown_items: of these items.
    cells: that are shown; of_rated: those of these items; repeated: each as often as its group has members; pairs:
    those that some member rated.
    """
    return {
        "items_shown": shown_items / items,
        "ratings_shown": shown / ratings,
        "cells_shown": of_rated / (groups * items),
        "entries_of_groups": float(cells),
        "entries_repeated": float(repeated),
        "entries_added": float(repeated - ratings),
        "cells_added": float(cells - pairs),
    }


def popularity_kept(
    spark: "SparkSession",
    blocks: "DataFrame",
    n_blocks: int,
    con: duckdb.DuckDBPyConnection,
    cells: str,
    groups: str,
) -> dict[str, float]:
    """Whether items keep their order, by the project's SQL, each part where its relations are; see kg_popularity_kept.

    con: has the relations cells(group_id, item_id, rating) and groups(user_id, group_id) under these names, and the
    items of the working database. What users gave is summed by items on the executors, where the ranks are compared.
    """
    macro = macro_select("kg_popularity_kept", {"p_ratings": "ratings", "p_groups": groups, "p_cells": cells})
    shown = con.sql(
        "select item_code as item_id, mean, times from "
        f"({_only(macro, ('kg_sizes', 'kg_shown')).select('*', append=False).from_('kg_shown').sql('duckdb')}) "
        "join work.int_kgather__items using (item_id)"
    ).to_arrow_table()
    [(m,)] = con.sql("select count(*) from work.int_kgather__items").fetchall()
    known = spark.sparkContext.broadcast((shown, _only(macro, ("kg_pairs", "kg_ranks")).sql("duckdb")))

    def table(block: dict[str, Any]) -> NDArray[np.float64]:
        matrix = matrix_of(block, m)
        sums = np.bincount(matrix.items, weights=matrix.values, minlength=m)
        return np.column_stack([sums, np.bincount(matrix.items, minlength=m)])

    def finish(total: NDArray[Any]) -> NDArray[np.float64]:
        of_release, sql = known.value
        times = total[:, 1].astype(np.int64)
        rated = np.flatnonzero(times)
        items = pa.table({"item_id": rated, "mean": total[rated, 0] / times[rated], "times": times[rated]})
        with database() as con:
            con.register("kg_items", items)
            con.register("kg_shown", of_release)
            [found] = con.sql(sql).fetchall()
        return np.array([np.nan if each is None else each for each in found], dtype=np.float64)

    means, counts = RowSums(m, 2, np.float64, n_blocks).of(blocks, table, finish)
    return {"popularity_of_means": float(means), "popularity_of_counts": float(counts)}


def _only(tree: exp.Select, names: Sequence[str]) -> exp.Select:
    """A statement with these common table expressions alone; the others are relations of these names."""
    tree = tree.copy()
    for each in tree.ctes:
        if each.alias not in names:
            each.pop()
    return tree
