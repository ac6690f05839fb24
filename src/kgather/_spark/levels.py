"""The sizes of group that users ask for, from a table of their attributes, by the project's SQL."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp

from kgather._errors import InputError, quoted
from kgather._loaders import columns
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._settings.publication import PublishSettings
from kgather._spark.blocks import batch_of, database, folded, numbers, rows_of, unpacked
from kgather._spark.session import column
from kgather._spark.staging import codes_of
from kgather._spark.staging import people as people_of
from kgather._sql_text import identifier
from kgather.udfs.gathering.bokg import other_levels, refuse_other_levels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

MODEL = "int_kgather__user_levels"
_USERS, _ATTRIBUTES = "int_kgather__users", "stg_kgather__user_attributes"
LEVELS = "block int, asked binary"
"""The sizes of group that the users of a block ask for, int32[n]."""
_MADE = "block int, asked binary, highest int, bad bigint, unlisted bigint, others bigint, users bigint"
_LISTED = "__kgather_listed"


@dataclass(frozen=True)
class Asked:
    """levels: of `LEVELS`. highest: the largest size that is asked for. unlisted: users without a row of attributes.
    kept: what Spark keeps.
    """

    levels: "DataFrame"
    highest: int
    unlisted: int
    kept: "DataFrame"


def chosen(attributes: "DataFrame", settings: PublishSettings, options: LoadOptions) -> "DataFrame":
    """The columns that are read, as texts (user_id, level). Raises InputError where one is not found."""
    names = {name.lower(): name for name in attributes.columns}
    level = settings.level_column
    if level is None:
        msg = "the engine spark reads of the users' attributes level_column alone. Set it, or leave them out."
        raise InputError(msg)
    if level.lower() not in names:
        msg = f"the users' attributes have no column {level}. There are: {quoted(attributes.columns)}."
        raise InputError(msg)
    plain = {columns.plain(name): name for name in attributes.columns}
    said = (options.user_column or "").lower()
    usual = [name for known in columns.SYNONYMS["user"] for name in plain if name in known]
    found = names.get(said) or (plain[usual[0]] if usual else plain.get("id"))
    if found is None:
        msg = (
            f"the users' attributes have no column of users. There are: {quoted(attributes.columns)}. Name one user_id."
        )
        raise InputError(msg)
    texts = attributes.selectExpr(
        f"cast({column(found)} as string) as user_id",
        f"cast({column(names[level.lower()])} as string) as level",
    )

    def in_one_form(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            yield batch.set_column(0, "user_id", folded(batch.column(0).cast(pa.string())))

    return texts.mapInArrow(in_one_form, texts.schema)


def row_levels(row: dict[str, Any], n: int, k: int) -> NDArray[np.int32]:
    """The sizes that the n users of a block ask for, int32[n]: k where nobody could say."""
    asked = row.get("asked")
    return np.full(n, k, dtype=np.int32) if asked is None else numbers(asked, np.int32)


def asked(
    blocks: "DataFrame", attributes: "DataFrame", sql: str, user_type: IdType, settings: PublishSettings
) -> Asked:
    """The sizes of group that users ask for, kept where Spark keeps them.

    blocks: of `STAGED`. attributes: of `chosen`. sql: that of `MODEL`. Raises InputError where a user occurs twice or
    asks for what is no size of a group, or none of those that the method knows.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

    nobody = attributes.where("user_id is null or trim(user_id) = ''").count()
    if nobody:
        msg = f"{nobody} rows of the users' attributes have no user id. Take them out."
        raise InputError(msg)
    twice = attributes.groupBy("user_id").count().where("count > 1").count()
    if twice:
        msg = f"{twice} users occur twice in the users' attributes. Give one row for each user."
        raise InputError(msg)
    level = str(settings.level_column)
    bad = _count_of_bad(sql)

    def of_block(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("user_code")
        with database() as con:
            con.register("given", rows)
            con.execute(f"create table {_USERS} as select user_id, user_code from given")
            con.execute(f"create table {_ATTRIBUTES} as select user_id, level as {identifier(level)} from given")
            [(wrong,)] = con.sql(bad).fetchall()
            found = [] if wrong else con.sql(f"select level from ({sql}) order by user_code").fetchall()
        levels = np.array([size for (size,) in found], dtype=np.int32)
        row = {
            "block": rows["block"][0].as_py(),
            "asked": levels.tobytes(),
            "highest": int(levels.max(initial=0)),
            "bad": wrong,
            "unlisted": rows[_LISTED].null_count,
            "others": other_levels(levels, settings.k),
            "users": len(rows),
        }
        return pa.Table.from_batches([batch_of([row], _MADE)])

    known = people_of(blocks, user_type).select("user_code", F.col("user_id").cast("string").alias("user_id"))
    joined = known.join(attributes.withColumn(_LISTED, F.lit(1)), "user_id", "left")
    joined = joined.withColumn("block", F.shiftright("user_code", 32).cast("int"))
    made = joined.groupBy("block").applyInArrow(of_block, _MADE).persist(StorageLevel.DISK_ONLY)
    [(highest, wrong, unlisted, others, users)] = made.selectExpr(
        "max(highest)", "sum(bad)", "sum(unlisted)", "sum(others)", "sum(users)"
    ).collect()
    try:
        if wrong:
            msg = f"{wrong} users have a level in the column {level} that is no whole number of at least 1."
            raise InputError(msg)
        if settings.method == "bokg":
            # A leaf has some of the users only.
            refuse_other_levels(int(others), int(users), settings.k)
    except InputError:
        made.unpersist()
        raise
    return Asked(made.select("block", "asked"), int(highest), int(unlisted), made)


def _count_of_bad(sql: str) -> str:
    """The statement of the model that counts the users whose level is none."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Select)
    return tree.select("users", append=False).from_("bad").sql("duckdb")


def people(blocks: "DataFrame", levels: "DataFrame", user_type: IdType) -> "DataFrame":
    """Who asks for what, as `MODEL` has it: (user_id, user_code, level). blocks: of `STAGED`. levels: of `LEVELS`."""
    kind = "string" if user_type == "VARCHAR" else "bigint"

    def listed(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for row in rows_of(batches):
            ids = unpacked(row["user_ids"])
            yield pa.RecordBatch.from_arrays(
                [ids, pa.array(codes_of(row["block"], np.arange(len(ids)))), pa.array(numbers(row["asked"], np.int32))],
                ["user_id", "user_code", "level"],
            )

    both = blocks.select("block", "user_ids").join(levels, "block")
    return both.mapInArrow(listed, f"user_id {kind}, user_code bigint, level int")
