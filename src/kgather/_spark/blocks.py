"""A block: some users with all their ratings, staged by the project's own SQL and kept as arrays.

Which block a user is in hangs on a hash of the id, and all that hangs on an order is sorted, so that a block is the
same however Spark cuts, moves or repeats its rows.
"""

import gc
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgather._errors import KgatherError
from kgather._loaders import seen, tables, values
from kgather._loaders.options import LoadOptions
from kgather._loaders.report import IdType
from kgather._loaders.store import ID_ROLES, IdRole, rows_sql
from kgather._spark import statements
from kgather._sql_text import identifier
from kgather._steps.relations import BATCH_ROWS
from kgather.udfs.ratings.matrix import RatingMatrix

MEMORY = "256MB"
MOST_VALUES = 1000
"""Different ratings up to which they are counted one by one, to see what scale they have."""

STAGED = (
    "block int, read bigint, staged bigint, users bigint, lowest double, highest double, rejected string, "
    "read_values string, staged_values string, users_merged bigint, items_spelled bigint, spellings binary, "
    "users_whole bigint, shapes binary, user_ids binary, rated_so binary, item_ids binary, raters binary, "
    "indptr binary, codes binary, ratings binary"
)
"""The columns of a staged block, for Spark. `codes` are places in the block's own `item_ids`. users_merged: users whose
ids were written in several ways. items_spelled: rows in which an item's id was not written in its one form; spellings:
of each item that was read the first and the last way in which it was written, (item_id, first, last). users_whole:
users whose id is an integer. shapes: of the ids of users, (shape, users).
"""
CODED = "block int, indptr binary, codes binary, ratings binary"
"""The columns of a block whose items have the codes of all blocks."""

_GIVEN = "kgather_given"


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory, by the name that the project's SQL gives it.

    One thread: sums come in the order of the rows. What DuckDB says in an error may quote values, and Spark writes
    errors to its logs: only the kind is told. What does not fit into memory goes where Spark keeps its own files.
    """
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    try:
        with (
            tempfile.TemporaryDirectory(prefix="kgather-", dir=local or None) as spill,
            duckdb.connect(config={"threads": 1, "memory_limit": MEMORY, "temp_directory": spill}) as con,
        ):
            con.execute("attach ':memory:' as work")
            con.execute("use work")
            yield con
    except duckdb.Error as error:
        msg = f"the SQL of a block broke ({type(error).__name__})."
        raise KgatherError(msg) from None


@dataclass(frozen=True)
class Staging:
    """How blocks are staged: the project's SQL by name, and what was said about the columns."""

    sql: Mapping[str, str]
    options: LoadOptions
    inferred: bool
    """Whether the scale is: then ratings are counted by their values."""
    catalogue: pa.Array | None = None

    def of(self, block: int, rows: pa.Table) -> pa.Table:
        """Stage the rows of a block, in any order: one row of `STAGED`."""
        with database() as con:
            con.register(_GIVEN, rows)
            table = tables.described(con, "the ratings", _GIVEN, "0", self.options)
            parsed = tables.parsed(con, table, self.options.missing)
            id_types: dict[IdRole, IdType] = {
                role: "BIGINT" if role in parsed.integers else "VARCHAR" for role in ID_ROLES
            }
            rows = rows_sql("", parsed, id_types, written=True)
            con.execute(f"create table {statements.LOADED} as from ({rows}) order by all")
            con.unregister(_GIVEN)
            spelled = _spelled(con, id_types)
            if self.catalogue is not None:
                con.register("listed", pa.table({"item_id": self.catalogue}))
                con.execute(f"create table {statements.CATALOGUE} as from listed")
            for name in statements.MODELS:
                con.execute(f"create table {identifier(name)} as {self.sql[name]}")
            if self.catalogue is not None:
                # A block knows the items of its own ratings alone.
                con.execute(
                    f"create or replace table {statements.ITEMS} as select * replace "
                    "(cast(row_number() over (order by item_id) - 1 as integer) as item_code) "
                    f"from {statements.ITEMS} where raters > 0"
                )
            row = {"block": block, **self._row(con), **spelled}
            return pa.Table.from_pylist([row], schema=_schema(STAGED))

    def _row(self, con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        [(read, users, items)] = con.sql(
            f"select (select count(*) from {statements.READ}), (select count(*) from {statements.USERS}), "
            f"(select count(*) from {statements.ITEMS})"
        ).fetchall()
        [(staged, lowest, highest)] = con.sql(
            f"select count(*), min(rating), max(rating) from {statements.STAGED}"
        ).fetchall()
        rejected = con.sql(f"select reason, count(*) from {statements.REJECTED} group by reason order by reason")
        people = con.sql(
            f"select user_id, rated, cast(rated_so as varchar) as rated_so from {statements.USERS} order by user_code"
        ).to_arrow_table()
        things = con.sql(f"select item_id, raters from {statements.ITEMS} order by item_code").to_arrow_table()
        shapes = con.sql(
            f"select shape, count(*) as users from (select {seen.shape_sql('user_id')} as shape "
            f"from {statements.USERS}) group by shape order by shape asc"
        ).to_arrow_table()
        row = {
            "read": read,
            "staged": staged,
            "users": users,
            "lowest": lowest,
            "highest": highest,
            "rejected": json.dumps(rejected.fetchall()),
            "read_values": self._values(con, f"{statements.READ} where reason is null"),
            "staged_values": self._values(con, statements.STAGED),
            "users_whole": whole_ids(con, "user_id", statements.USERS),
            "shapes": packed_table(shapes),
            "user_ids": packed(people["user_id"]),
            "rated_so": packed(people["rated_so"]),
            "item_ids": packed(things["item_id"]),
            "raters": things["raters"].to_numpy().astype(np.int64).tobytes(),
        }
        if not staged:
            nothing = np.zeros(1, dtype=np.int64).tobytes()
            return row | {"indptr": nothing, "codes": b"", "ratings": b""}
        coded = con.sql(
            f"select user_code, item_code, rating from {statements.STAGED} join {statements.USERS} using (user_id) "
            f"join {statements.ITEMS} using (item_id)"
        )
        counts = people["rated"].to_numpy().astype(np.int64)
        matrix = RatingMatrix.from_batches(coded.to_arrow_reader(BATCH_ROWS), users, items, counts)
        return row | _arrays(matrix)

    def _values(self, con: duckdb.DuckDBPyConnection, relation: str) -> str:
        """The ratings by their values, as [[rating, count], ...]; of too many different ones only the first."""
        if not self.inferred:
            return "[]"
        found = con.sql(
            f"select rating, count(*) from {relation} group by rating order by rating limit {MOST_VALUES + 1}"
        ).fetchall()
        return json.dumps(found)


def _spelled(con: duckdb.DuckDBPyConnection, id_types: Mapping[IdRole, IdType]) -> dict[str, Any]:
    """How ids were written: three columns of `STAGED`. What tells of it is taken away from what was loaded."""
    found = {"users_merged": 0, "items_spelled": 0, "spellings": b""}
    loaded = f"{statements.LOADED} where problem is null"
    [(users, items)] = con.sql(f"select count(user_written), count(item_written) from {loaded}").fetchall()
    if users:
        [(found["users_merged"],)] = con.sql(
            f"select count(*) from (select user_id from {loaded} group by user_id "
            "having count(distinct coalesce(user_written, '')) > 1)"
        ).fetchall()
    if id_types["item"] == "VARCHAR":
        found["items_spelled"] = items
        spellings = con.sql(
            "select item_id, min(coalesce(item_written, '')) as first, max(coalesce(item_written, '')) as last "
            f"from {loaded} group by item_id order by item_id"
        )
        found["spellings"] = packed_table(spellings.to_arrow_table())
    for role in ID_ROLES:
        con.execute(f"alter table {statements.LOADED} drop column {role}_written")
    return found


def whole_ids(con: duckdb.DuckDBPyConnection, column: str, relation: str) -> int:
    """How many ids of a relation are integers."""
    is_whole = values.is_integer_sql(f"cast({column} as varchar)")
    [(count,)] = con.sql(f"select count(*) from {relation} where {is_whole}").fetchall()
    return int(count)


def folded(texts: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Ids that are texts in the one form that the loaders give them; see `values.folded`."""
    with database() as con:
        con.register(_GIVEN, pa.table({"id": texts}))
        found = con.sql(f"select {values.folded('id')} as id from {_GIVEN}").to_arrow_table()
    return found["id"].combine_chunks()


def _arrays(matrix: RatingMatrix) -> dict[str, bytes]:
    return {
        "indptr": matrix.indptr.astype(np.int64).tobytes(),
        "codes": matrix.items.tobytes(),
        "ratings": matrix.values.tobytes(),
    }


@dataclass(frozen=True)
class Items:
    """All items, in the order of their codes."""

    ids: pa.Array

    def coded(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """A staged block with the codes of all items, as `CODED` has it.

        In both the items stand in the order of their ids, so that those of a user stay in order.
        """
        own = pc.index_in(unpacked(block["item_ids"]), self.ids).to_numpy(zero_copy_only=False).astype(np.int32)
        codes = np.frombuffer(block["codes"], dtype=np.int32)
        coded = own[codes].tobytes() if len(codes) else b""
        return {"block": block["block"], "indptr": block["indptr"], "codes": coded, "ratings": block["ratings"]}


def matrix_of(block: Mapping[str, Any], n_items: int) -> RatingMatrix:
    """The ratings of a block of `CODED`."""
    # Copies: kernels are compiled for arrays that can be written to.
    indptr = np.frombuffer(block["indptr"], dtype=np.int64).copy()
    return RatingMatrix(
        len(indptr) - 1,
        n_items,
        indptr,
        np.frombuffer(block["codes"], dtype=np.int32).copy(),
        np.frombuffer(block["ratings"], dtype=np.float32).copy(),
    )


def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Each row by itself: a block is large, and one at a time is enough."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield {name: batch.column(at)[row].as_py() for at, name in enumerate(batch.schema.names)}
    settle()


def packed(column: pa.ChunkedArray | pa.Array) -> bytes:
    """A column as bytes, for `unpacked`."""
    return packed_table(pa.table({"column": column}))


def unpacked(written: bytes) -> pa.Array:
    """What `packed` was given, as one array."""
    return opened_table(written)["column"].combine_chunks()


def packed_table(table: pa.Table) -> bytes:
    """A table as bytes, for `opened_table`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def opened_table(written: bytes) -> pa.Table:
    """What `packed_table` was given."""
    with pa.ipc.open_stream(written) as reader:
        return reader.read_all()


def numbers(written: bytes, kind: type[np.generic]) -> NDArray[Any]:
    """An array back from its bytes; it can be written to."""
    return np.frombuffer(written, dtype=kind).copy()


def settle() -> None:
    """Let the garbage collector pass over what a worker has loaded for good.

    pyspark runs it after each task, and it looks at all that numba and DuckDB have loaded: longer than many a task.
    """
    if len(gc.get_objects()) > _SETTLED_ABOVE:
        gc.collect()
        gc.freeze()


_SETTLED_ABOVE = 20_000  # objects that were made since

_KINDS = {
    "double": pa.float64(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
}


def _schema(columns: str) -> pa.Schema:
    """The Arrow schema of columns as Spark writes them."""
    return pa.schema([(name, _KINDS[kind]) for name, kind in (each.strip().split() for each in columns.split(","))])


def batch_of(rows: list[dict[str, Any]], columns: str) -> pa.RecordBatch:
    """Rows as a batch with these columns."""
    return pa.RecordBatch.from_pylist(rows, schema=_schema(columns))
