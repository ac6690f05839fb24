"""From a DataFrame of ratings to staged blocks, and what is known of all of them together."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._loaders import columns, seen
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._loaders.store import IdRole
from kgather._settings.publication import PublishSettings
from kgather._spark import statements
from kgather._spark.blocks import (
    CODED,
    MOST_VALUES,
    STAGED,
    Items,
    Staging,
    batch_of,
    folded,
    numbers,
    opened_table,
    packed_table,
    rows_of,
    unpacked,
)
from kgather._spark.session import column, is_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RATINGS_PER_BLOCK = 500_000
_BLOCK = "__kgather_block"
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "float", "double", "decimal")
_ID_TYPES = (*_INTEGERS, "string")
_TIME_TYPES = (*_INTEGERS, "string", "timestamp", "timestamp_ntz", "date")
_PERSON = 1 << 32
_PIECES = "block int, rows binary"
_PIECE_ROWS, _PIECE_BYTES = 1 << 20, 64 << 20


@dataclass(frozen=True)
class Chosen:
    """The columns that are read, of a DataFrame, by the names of their roles. names: of these, by role."""

    ratings: "DataFrame"
    names: dict[str, str | None]
    user_type: IdType
    item_type: IdType


@dataclass(frozen=True)
class Counts:
    """What was read and staged. values: (rating, times) of what the scale is inferred from, where it is. merged: ids
    that were written in several ways, by role. users_whole: users whose ids are integers.
    """

    read: int
    staged: int
    users: int
    rejected: dict[str, int]
    lowest: float
    highest: float
    read_values: list[tuple[float, int]]
    staged_values: list[tuple[float, int]]
    merged: dict[IdRole, int]
    users_whole: int


def chosen(ratings: "DataFrame", options: LoadOptions) -> Chosen:
    """Find the columns by their names, as for a file. Raises InputError where they are not found or cannot be read."""
    existing = list(dict.fromkeys(ratings.columns))
    found = columns.choose_by_name("the ratings", existing, options)
    types = dict(ratings.dtypes)
    names: dict[str, str | None] = {}
    for role in columns.ROLES:
        at = found.position(role)
        names[role] = None if at is None or at >= len(existing) else existing[at]
        if names[role] is None:
            continue
        often = sum(is_named(ratings, each, str(names[role])) for each in ratings.columns)
        if often > 1:
            msg = f"the ratings: {often} columns are named '{names[role]}'. Rename one."
            raise InputError(msg)
        kind = types[str(names[role])].split("(")[0]
        allowed = {"rating": _NUMBERS, "time": _TIME_TYPES}.get(role, _ID_TYPES)
        if kind not in allowed:
            msg = (
                f"the column '{names[role]}' has the type {kind}, which the engine spark does not read as a {role}: "
                f"{', '.join(allowed)}. Cast it, or say which column to use with {columns.option_name(role)}."
            )
            raise InputError(msg)
    # Spark gives columns to Python only under names without signs of its own.
    read = [f"{column(name)} as {column(role)}" for role, name in names.items() if name is not None]

    def id_type(role: str) -> IdType:
        return "VARCHAR" if types[str(names[role])] == "string" else "BIGINT"

    of_roles = {role: None if name is None else str(role) for role, name in names.items()}
    return Chosen(ratings.selectExpr(*read), of_roles, id_type("user"), id_type("item"))


def staged(
    read: Chosen,
    settings: PublishSettings,
    options: LoadOptions,
    *,
    ratings_per_block: int,
    verbose: bool,
    catalogue: pa.Array | None = None,
) -> "DataFrame":
    """The ratings as blocks of `STAGED`, kept where Spark keeps them once they are made.

    catalogue: the ids of all items that may be rated; None: any. How many blocks there are hangs on the rows alone.
    Raises InputError where there are none.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

    rows = read.ratings.count()
    if rows == 0:
        msg = "the input has no ratings."
        raise InputError(msg)
    blocks = -(-rows // ratings_per_block)
    sql = statements.staging(settings, {"user": read.user_type, "item": read.item_type}, verbose=verbose)
    named = options.model_copy(
        update={f"{role}_column": name or ("none" if role == "time" else None) for role, name in read.names.items()}
    )
    known = read.ratings.sparkSession.sparkContext.broadcast(Staging(sql, named, settings.scale is None, catalogue))
    user, are_texts = str(read.names["user"]), read.user_type == "VARCHAR"
    # All spellings of an id are of one person: see `_of_text`.
    block = F.lit(0) if are_texts else F.pmod(F.xxhash64(F.col(column(user)).cast("string")), F.lit(blocks))

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in _pieces(batches):
            if are_texts:
                at = piece.schema.get_field_index(_BLOCK)
                yield from _packed(piece.set_column(at, _BLOCK, _of_text(piece[user], blocks)))
            else:
                yield from _packed(piece)

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Pieces of a block follow each other.
        for at, pieces in groupby(rows_of(batches), lambda row: int(row["block"])):
            rows = pa.concat_tables(opened_table(piece["rows"]) for piece in pieces)
            yield from known.value.of(at, rows).to_batches()

    packed = read.ratings.withColumn(_BLOCK, block.cast("int")).mapInArrow(pack, _PIECES)
    together = _together(packed, blocks).sortWithinPartitions("block")
    return together.mapInArrow(stage, STAGED).persist(StorageLevel.DISK_ONLY)


def _of_text(ids: pa.ChunkedArray, blocks: int) -> pa.Array:
    """The block of each row by its user's id, which is a text, int32; however the id is written."""
    known = ids.combine_chunks().cast(pa.string()).dictionary_encode()
    # Of hashes that differ between platforms or versions none is taken.
    names = [each or "" for each in folded(known.dictionary).to_pylist()]
    of_names = [int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) % blocks for name in names]
    places = known.indices.fill_null(len(of_names))
    return pa.array([*of_names, 0], pa.int32()).take(places)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows in larger pieces, so that those of a block are not in crumbs."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _PIECE_ROWS or sum(each.nbytes for each in held) >= _PIECE_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _packed(piece: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of each block as bytes: Spark then moves few large rows, which costs far less than many."""
    if not len(piece):
        return
    piece = piece.sort_by(_BLOCK).combine_chunks()
    found, first = np.unique(piece[_BLOCK].to_numpy(), return_index=True)
    rows = piece.drop_columns([_BLOCK])
    for at, start, stop in zip(found, first, [*first[1:], len(rows)], strict=True):
        own = packed_table(rows.slice(start, stop - start))
        yield batch_of([{"block": int(at), "rows": own}], _PIECES)


_BLOCKS_AT_ONCE = 16  # in a partition at most: Java holds one partition while it is written or moved


def _together(packed: "DataFrame", blocks: int) -> "DataFrame":
    """All pieces of a block in one partition, and each partition with as many blocks as any other.

    Partitions are few enough that none is without a block: each costs every later step a start.
    """
    from pyspark.sql import functions as F  # noqa: N812

    asked = int(packed.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    partitions = min(blocks, max(asked, -(-blocks // _BLOCKS_AT_ONCE)))
    if hasattr(packed, "repartitionById"):  # pyspark 4.1
        return packed.repartitionById(partitions, F.col("block") % partitions)
    return packed.repartition(partitions, "block")


def counts_of(blocks: "DataFrame", settings: PublishSettings) -> Counts:
    """What was read, of all blocks. Raises InputError where a scale would have to be inferred from too many values."""
    rows = blocks.select(
        "read", "staged", "users", "lowest", "highest", "rejected", "read_values", "staged_values", "users_merged",
        "items_spelled", "users_whole",
    ).collect()  # fmt: skip
    rejected: Counter[str] = Counter()
    values: dict[str, Counter[float]] = {"read_values": Counter(), "staged_values": Counter()}
    for row in rows:
        rejected.update(dict(json.loads(row["rejected"])))
        for name, times in values.items():
            times.update({float(rating): count for rating, count in json.loads(row[name])})
    if settings.scale is None and max(len(times) for times in values.values()) > MOST_VALUES:
        msg = (
            f"the ratings have more than {MOST_VALUES:,} different values, from which the engine spark infers no "
            "scale. Say it (scale, on the command line --scale MIN,MAX)."
        )
        raise InputError(msg)
    ends = [row for row in rows if row["staged"]]
    return Counts(
        read=sum(row["read"] for row in rows),
        staged=sum(row["staged"] for row in rows),
        users=sum(row["users"] for row in rows),
        rejected=dict(rejected),
        lowest=min((row["lowest"] for row in ends), default=0.0),
        highest=max((row["highest"] for row in ends), default=0.0),
        read_values=sorted(values["read_values"].items()),
        staged_values=sorted(values["staged_values"].items()),
        merged={
            "user": sum(row["users_merged"] for row in rows),
            "item": _items_merged(blocks) if any(row["items_spelled"] for row in rows) else 0,
        },
        users_whole=sum(row["users_whole"] for row in rows),
    )


def shapes_of(blocks: "DataFrame", k: int) -> list[str]:
    """The usual shapes of users' ids, none that fewer than k have; see `seen.ids`."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            yield from opened_table(row["shapes"]).to_batches()

    found = blocks.select("shapes").mapInArrow(listed, "shape string, users bigint")
    of_many = found.groupBy("shape").agg(F.sum("users").alias("users")).where(F.col("users") >= k)
    usual = of_many.orderBy(F.col("users").desc(), F.col("shape").asc()).limit(seen.MOST_SHAPES).collect()
    return [row["shape"] for row in usual]


def _items_merged(blocks: "DataFrame") -> int:
    """How many items' ids were written in several ways, in one block or in several."""

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            yield from opened_table(row["spellings"]).to_batches()

    written = blocks.select("spellings").mapInArrow(listed, "item_id string, first string, last string")
    ways = written.groupBy("item_id").agg({"first": "min", "last": "max"}).toDF("item_id", "first", "last")
    return ways.where("first <> last").count()


def raters_of(blocks: "DataFrame", item_type: IdType) -> pa.Table:
    """All items with how many users rated each: (item_id, raters), in no order."""
    from pyspark.sql import functions as F  # noqa: N812

    columns_of = f"item_id {'string' if item_type == 'VARCHAR' else 'bigint'}, raters bigint"

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            ids = unpacked(row["item_ids"])
            yield pa.RecordBatch.from_arrays([ids, pa.array(numbers(row["raters"], np.int64))], ["item_id", "raters"])

    found = blocks.select("item_ids", "raters").mapInArrow(listed, columns_of)
    return found.groupBy("item_id").agg(F.sum("raters").alias("raters")).toArrow()


def coded(spark: "SparkSession", blocks: "DataFrame", items: pa.Array) -> "DataFrame":
    """Blocks of `CODED`, kept; items: the ids in the order of their codes."""
    from pyspark import StorageLevel

    known = spark.sparkContext.broadcast(Items(items))

    def code(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            yield batch_of([known.value.coded(row)], CODED)

    read = blocks.select("block", "item_ids", "indptr", "codes", "ratings")
    return read.mapInArrow(code, CODED).persist(StorageLevel.DISK_ONLY)


def people(blocks: "DataFrame", user_type: IdType) -> "DataFrame":
    """The users, as `int_kgather__users` has them: (user_code, user_id, rated). A code is block and row."""
    kind = "string" if user_type == "VARCHAR" else "bigint"

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            ids, rated = unpacked(row["user_ids"]), np.diff(numbers(row["indptr"], np.int64))
            yield pa.RecordBatch.from_arrays(
                [pa.array(codes_of(row["block"], np.arange(len(ids)))), ids, pa.array(rated)],
                ["user_code", "user_id", "rated"],
            )

    columns_of = f"user_code bigint, user_id {kind}, rated bigint"
    return blocks.select("block", "user_ids", "indptr").mapInArrow(listed, columns_of)


def codes_of(block: int, rows: Any) -> Any:
    """The codes of users of a block, int64."""
    return np.int64(block) * _PERSON + rows.astype(np.int64)


def rated_so(blocks: "DataFrame") -> Iterator[bytes]:
    """The number of each user that is made of what the user rated how, ascending, as lines, in pieces.

    The driver sees them pass by and keeps none: they are what the secret of the noise is made of.
    """
    from pyspark.sql import functions as F  # noqa: N812

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            yield pa.RecordBatch.from_arrays([unpacked(row["rated_so"])], ["person"])

    def joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lines = "".join(f"{person}\n" for person in batch.column(0).to_pylist())
            yield pa.RecordBatch.from_arrays([pa.array([lines.encode()], pa.binary())], ["lines"])

    found = blocks.select("rated_so").mapInArrow(listed, "person string")
    ascending = found.select(F.col("person").cast("decimal(38,0)").alias("number"), "person").orderBy("number")
    for row in ascending.select("person").mapInArrow(joined, "lines binary").toLocalIterator():
        yield bytes(row["lines"])
