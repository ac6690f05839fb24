"""Cells that members rated: all ratings of a group come together on an executor, where the project's SQL makes cells.

The groups are cut into parts by their ids. An executor has all members of a part's groups with their ratings, and runs
the models that the engine duckdb runs on everything. The driver gets what the release shows, and counts.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from kgather._dbt_package import macro_sql
from kgather._publishing.pipeline import Workspace
from kgather._settings.publication import PublishSettings
from kgather._spark.audit import Parts as AuditParts
from kgather._spark.audit import relations
from kgather._spark.blocks import batch_of, database, numbers, rows_of
from kgather._spark.measuring import errors_in, members_table
from kgather._sql_text import identifier, literal
from kgather.udfs._shared.arrow_columns import lists

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PADDING, RATED, CELLS, SHOWN = (
    "int_kgather__padding_ratings", "int_kgather__rated_cells", "int_kgather__cells", "kgather__ratings",
)  # fmt: skip
MODELS = (PADDING, RATED, CELLS, SHOWN)
"""The models that are run on each part, each from those before it; those that a form does not have are left out."""
_MART = f"marts.main.{SHOWN}"
_MACROS = (
    "kg_digits", "kg_cell", "kg_predicted", "kg_pure", "kg_rated_cells", "kg_padded_cell", "kg_shown_errors",
)  # fmt: skip

RATED_COLUMNS = "group_id bigint, item_id {}, rating double, raters bigint, surprise double"

SENT = "part int, block int, group_ids binary, rated binary, codes binary, ratings binary, level binary, factors binary"
"""Some users of a block: int64 group id, int64 number of ratings, float32 level and factors; of their ratings int32
item code and float32 rating.
"""
MADE = "part int, group_ids binary, codes binary, shown binary, counts string"
"""A part's cells: int64 group id, int32 item code and float64 value that is shown; and what was counted, as JSON."""


def are_rated(settings: PublishSettings) -> bool:
    """Whether the release shows what members rated, and nothing else: the macro `shows_rated_cells`."""
    return settings.cells == "rated" or settings.of_form.bounded


def looks_at_rated(parts: AuditParts, part: exp.Select) -> bool:
    """Whether a check looks at the relation of what members rated."""
    return RATED in relations(parts.only([part]))


@dataclass(frozen=True)
class Maker:
    """What makes the cells of a part.

    sql: that of `MODELS` by name. relations: what these models read that the driver has, by name; items are known by
    their codes in all of it. checks: of the audit, each with the statement
    that measures it. ends: the lowest and the highest rating. errors: whether errors are measured.
    """

    sql: Mapping[str, str]
    relations: Mapping[str, pa.Table]
    checks: Mapping[str, str]
    ends: tuple[float, float]
    errors: bool

    @classmethod
    def of(
        cls, con: duckdb.DuckDBPyConnection, sql: Mapping[str, str], checks: Mapping[str, str], *, errors: bool
    ) -> "Maker":
        """From a connection to the working database."""
        codes = "(select * replace (item_code as item_id) from int_kgather__items)"
        selects = {
            "int_kgather__group_vectors": "from int_kgather__group_vectors",
            "int_kgather__item_factors": (
                "select item_code as item_id, level, factor from int_kgather__item_factors "
                "join int_kgather__items using (item_id)"
            ),
            "int_kgather__items": f"from {codes}",
            "int_kgather__shown_items": "select item_code as item_id, item_code from int_kgather__shown_items",
            "int_kgather__scale": "from int_kgather__scale",
        }
        found = {name: con.sql(select).to_arrow_table() for name, select in selects.items()}
        [ends] = con.sql("select scale_min, scale_max from int_kgather__scale").fetchall()
        return cls({name: sql[name] for name in MODELS if name in sql}, found, checks, ends, errors)

    def of_part(self, part: int, rows: pa.Table) -> dict[str, Any]:
        """A row of `MADE`, from the rows of `SENT` of a part, which stand in the order of the blocks."""
        sent = rows.to_pylist()

        def joined(name: str, kind: type[np.generic]) -> NDArray[Any]:
            return np.concatenate([numbers(each[name], kind) for each in sent])

        rated, level = joined("rated", np.int64), joined("level", np.float32)
        people = np.arange(len(rated), dtype=np.int32)
        factors = joined("factors", np.float32).reshape(len(rated), -1)
        values = self._exact(joined("ratings", np.float32))
        with database() as con:
            con.execute("attach ':memory:' as marts")
            for name in _MACROS:
                con.execute(macro_sql(name))
            for name, table in (
                ("stg_kgather__ratings", pa.table({
                    "user_id": np.repeat(people, rated), "item_id": joined("codes", np.int32), "rating": values,
                })),
                ("int_kgather__groups", pa.table({"user_id": people, "group_id": joined("group_ids", np.int64)})),
                ("int_kgather__preferences", pa.table({
                    "user_id": people, "level": level, "preference": lists(factors),
                })),
                *self.relations.items(),
            ):  # fmt: skip
                con.register("given", table)
                own = " semi join int_kgather__groups using (group_id)" if name == "int_kgather__group_vectors" else ""
                con.execute(f"create table {identifier(name)} as from given{own}")
                con.unregister("given")
            for name in MODELS:
                if name in self.sql:
                    place = _MART if name == SHOWN else identifier(name)
                    con.execute(f"create table {place} as {self.sql[name]}")
            shown = con.sql(f"select group_id, cast(item_id as integer) as code, rating from {_MART}").to_arrow_table()
            counts = {
                "checks": {check: int(con.sql(sql).fetchall()[0][0]) for check, sql in self.checks.items()},
                "errors": errors_in(con, "stg_kgather__ratings", "int_kgather__groups", _MART) if self.errors else None,
            }
        return {
            "part": part,
            "group_ids": shown["group_id"].to_numpy().tobytes(),
            "codes": shown["code"].to_numpy().tobytes(),
            "shown": shown["rating"].to_numpy().tobytes(),
            "counts": json.dumps(counts),
        }

    def _exact(self, ratings: NDArray[np.float32]) -> NDArray[np.float64]:
        """The ratings as they were staged: a block has them in float32, and means of them are shown."""
        values, places = np.unique(ratings, return_inverse=True)
        # 3.3 comes back as 3.3, whose nearest float32 is 3.29999995.
        return np.clip(values.astype(str).astype(np.float64), *self.ends)[places]


@dataclass(frozen=True)
class Parts:
    """Where groups go: first int64[p - 1], the least id of a group of each part but the first."""

    first: NDArray[np.int64]

    @classmethod
    def of(cls, ids: NDArray[np.int64], sizes: NDArray[np.int64], parts: int) -> "Parts":
        """About equally many users in each part. ids int64[g] ascending, sizes int64[g]."""
        ends = np.cumsum(sizes)
        at = np.searchsorted(ends, ends[-1] * np.arange(1, parts) / parts)
        return cls(np.unique(ids[at]))

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part of each group, int64[n]."""
        return np.searchsorted(self.first, ids, side="right")


class Placing(Protocol):
    """Says which groups come together."""

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the part of each group, int64[n] >= 0; -1: it is not asked for."""


def together(
    blocks: "DataFrame", members: "DataFrame", parts: Placing, users: "DataFrame | None" = None
) -> "DataFrame":
    """The ratings of groups, rows of `SENT`; those of a part come together by its number.

    blocks: of `CODED`. members: of `measuring.MEMBERS`. users: of `gathering.USERS`; None: nobody asks for vectors.
    """

    vectors = users is not None

    def send(block: pa.Table, own: pa.Table) -> pa.Table:
        mapped, sent = members_table(own), []
        rows, groups = mapped["user_id"].to_numpy(), mapped["group_id"].to_numpy()
        of_groups = parts.places(groups)
        group_of_row = np.empty(len(rows), dtype=np.int64)
        group_of_row[rows] = groups
        for row in rows_of(iter(block.to_batches())):
            indptr, codes = numbers(row["indptr"], np.int64), numbers(row["codes"], np.int32)
            ratings = numbers(row["ratings"], np.float32)
            level, factors = np.zeros(0, dtype=np.float32), np.zeros((0, 0), dtype=np.float32)
            if vectors:
                level = numbers(row["level"], np.float32)
                factors = numbers(row["factors"], np.float32).reshape(len(level), -1)
            for part in np.unique(of_groups[of_groups >= 0]):
                here = np.sort(rows[of_groups == part])
                rated = np.diff(indptr)[here]
                chosen = _ranges(indptr[here], rated)
                sent.append(
                    {
                        "part": int(part),
                        "block": row["block"],
                        "group_ids": group_of_row[here].tobytes(),
                        "rated": rated.tobytes(),
                        "codes": codes[chosen].tobytes(),
                        "ratings": ratings[chosen].tobytes(),
                        "level": level[here].tobytes() if vectors else b"",
                        "factors": factors[here].tobytes() if vectors else b"",
                    }
                )
        return pa.Table.from_batches([batch_of(sent, SENT)])

    whole = blocks if users is None else blocks.join(users, "block")
    return whole.groupBy("block").cogroup(members.groupBy("block")).applyInArrow(send, SENT)


def made(
    spark: "SparkSession", blocks: "DataFrame", users: "DataFrame", members: "DataFrame", parts: Parts, maker: Maker
) -> "DataFrame":
    """The cells of all groups, a row of `MADE` for each part.

    blocks: of `CODED`. users: of `gathering.USERS`. members: of `measuring.MEMBERS`.
    """
    known = spark.sparkContext.broadcast(maker)

    def make(rows: pa.Table) -> pa.Table:
        row = known.value.of_part(rows["part"][0].as_py(), rows.sort_by("block"))
        return pa.Table.from_batches([batch_of([row], MADE)])

    sent = together(blocks, members, parts, users)
    # A partition for each part: the driver gets one after the other.
    return sent.repartition(len(parts.first) + 1, "part").groupBy("part").applyInArrow(make, MADE)


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each start on, as many as its length says, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


@dataclass(frozen=True)
class Counted:
    """What was counted in all parts: the checks by their names, and the sums of the errors of each part."""

    checks: Mapping[str, int]
    errors: Sequence[Mapping[str, Any]]


def put(workspace: Workspace, made: "DataFrame") -> Counted:
    """Put all cells into the mart of ratings, which has none, in the order that the model has them in."""
    counts: list[tuple[int, dict[str, Any]]] = []
    with workspace.connected() as con:
        con.execute(f"attach {literal(workspace.marts_database)} as marts")
        con.execute("create temp table made (group_id bigint, code integer, rating double)")
        for row in made.toLocalIterator():
            table = pa.table(
                {
                    "group_id": numbers(bytes(row["group_ids"]), np.int64),
                    "code": numbers(bytes(row["codes"]), np.int32),
                    "rating": numbers(bytes(row["shown"]), np.float64),
                }
            )
            con.register("given", table)
            con.execute("insert into made from given")
            con.unregister("given")
            counts.append((row["part"], json.loads(row["counts"])))
        con.execute(
            f"insert into {_MART} "
            "select made.group_id, items.item_id, made.rating, stamp.release_id, stamp.released_on "
            "from made join int_kgather__items as items on items.item_code = made.code "
            "cross join (select distinct release_id, released_on from marts.main.kgather__groups) as stamp "
            "order by made.group_id, items.item_id"
        )
    checks: Counter[str] = Counter()
    for _, each in counts:
        checks.update(each["checks"])
    counts.sort(key=lambda each: each[0])
    return Counted(checks, [each["errors"] for _, each in counts if each["errors"] is not None])
