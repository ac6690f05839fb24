"""Gathering without all vectors on one machine: a tree of planes sends users to leaves, and each leaf is gathered.

The tree is learnt on a sample of vectors without ids. In a leaf the methods of the package work as ever.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from kgather._dbt_package import macro_sql
from kgather._errors import KgatherError
from kgather._methods import Users
from kgather._settings.publication import PublishSettings
from kgather._spark.blocks import batch_of, database, matrix_of, numbers, rows_of
from kgather._spark.learning import Learnt
from kgather._spark.levels import Asked, row_levels
from kgather._spark.private import PrivateLearnt
from kgather._spark.sums import summed
from kgather._steps.gathering import gather
from kgather.udfs._shared.arrow_columns import lists
from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs.gathering.planes import Planes, learn_planes
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.model import Preferences
from kgather.udfs.preferences.outliers import lengths, places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = 200_000
"""Vectors that the tree is learnt on, at most."""
_FULL = 0.75  # of a leaf, as its share of the sample: the leaf itself may be larger
_TOO_FULL = 1.25
_LEAST_SHARE = 0.05  # a leaf with a smaller share of what it may have is merged

USERS = "block int, level binary, factors binary"
"""The users' vectors, one row a block: float32[n] and float32[n, r]."""
_SENT = "leaf int, part int, block int, rows binary, level binary, factors binary, asked binary"
GATHERED = (
    "leaf int, part int, blocks binary, rows binary, groups binary, bins binary, sizes binary, level binary, "
    "factors binary"
)
"""One row a leaf: of its users int32 block, row in the block and group in the leaf, and int64 bin where the method
tells bins; of its groups int64 size, float32 level and factors, which are the members' means.
"""
_BINS_OF_PART = 1 << 24
_PARTS_OF_LEAF = 1 << 20


@dataclass(frozen=True)
class Compared:
    """What turns users' levels and factors into vectors that can be compared."""

    item_level: NDArray[np.float32]
    item_factors: NDArray[np.float32]
    metric: str

    def preferences(self, level: NDArray[np.float32], factors: NDArray[np.float32]) -> Preferences:
        """Some users' preferences."""
        return Preferences(level, factors, self.item_level, self.item_factors)

    def vectors(self, level: NDArray[np.float32], factors: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32[n, d], see `comparison_vectors`."""
        return comparison_vectors(self.preferences(level, factors), self.metric)


def users_of(spark: "SparkSession", blocks: "DataFrame", learnt: Learnt | PrivateLearnt) -> "DataFrame":
    """The vectors of all users, a row of `USERS` for each block. blocks: of `CODED`."""
    known: Any = spark.sparkContext.broadcast(learnt.model)

    def solve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in rows_of(batches):
            level, factors = known.value.users(matrix_of(block, len(known.value.level)))
            row = {"block": block["block"], "level": level.tobytes(), "factors": factors.tobytes()}
            yield batch_of([row], USERS)

    return blocks.mapInArrow(solve, USERS)


def vectors_of(row: dict[str, Any], rank: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Level float32[n] and factors float32[n, rank] in a row of `USERS`."""
    return numbers(row["level"], np.float32), numbers(row["factors"], np.float32).reshape(-1, rank)


def gathered(
    spark: "SparkSession",
    users: "DataFrame",
    n: int,
    compared: Compared,
    settings: PublishSettings,
    most: int,
    asked: Asked | None = None,
) -> "DataFrame":
    """Users in groups, a row of `GATHERED` for each leaf.

    users: of `USERS`. n: how many. most: users of a leaf. asked: the sizes of group that users ask for; None: all k.
    """
    known = spark.sparkContext.broadcast(compared)
    rank = compared.item_factors.shape[1]
    planes = _planes(users, n, known, settings.seed, most)
    counts = _counts(users, known, planes)
    # Each method needs as many users as the largest group that is asked for, and a leaf of few more is no choice.
    largest = settings.k if asked is None else max(settings.k, asked.highest)
    least = min(max(3 * largest, int(_LEAST_SHARE * most)), n)
    stands = planes.merged(counts, least)
    size = np.bincount(stands, weights=counts, minlength=planes.nodes)
    parts = parts_of(size, most, least)
    seed = seed64(settings.seed)

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in rows_of(batches):
            level, factors = vectors_of(row, rank)
            if not len(level):
                continue
            leaf = stands[planes.leaves(known.value.vectors(level, factors))]
            part = _parts(seed, row["block"], parts[leaf])
            sent = []
            for at, which in np.unique(np.stack([leaf, part]), axis=1).T:
                rows = np.flatnonzero((leaf == at) & (part == which)).astype(np.int32)
                sent.append(
                    {
                        "leaf": int(at),
                        "part": int(which),
                        "block": row["block"],
                        "rows": rows.tobytes(),
                        "level": level[rows].tobytes(),
                        "factors": factors[rows].tobytes(),
                        "asked": (row_levels(row, len(level), settings.k)[rows]).tobytes(),
                    }
                )
            yield batch_of(sent, _SENT)

    def gather_leaf(rows: pa.Table) -> pa.Table:
        rows = rows.sort_by("block")
        leaf = rows.to_pylist()
        level = np.concatenate([numbers(each["level"], np.float32) for each in leaf])
        factors = np.concatenate([numbers(each["factors"], np.float32) for each in leaf]).reshape(-1, rank)
        at = [numbers(each["rows"], np.int32) for each in leaf]
        levels = np.concatenate([numbers(each["asked"], np.int32) for each in leaf])
        found = gather(_users(known.value, level, factors, levels, settings), settings.of_method, settings.options)
        means = _means(level, factors, found.groups)
        first_bin = (leaf[0]["leaf"] * _PARTS_OF_LEAF + leaf[0]["part"]) * _BINS_OF_PART
        row = {
            "leaf": leaf[0]["leaf"],
            "part": leaf[0]["part"],
            "blocks": np.repeat([each["block"] for each in leaf], [len(each) for each in at])
            .astype(np.int32)
            .tobytes(),
            "rows": np.concatenate(at).tobytes(),
            "groups": found.groups.astype(np.int32).tobytes(),
            "bins": b"" if found.bins is None else (first_bin + found.bins.astype(np.int64)).tobytes(),
            "sizes": np.bincount(found.groups).astype(np.int64).tobytes(),
            "level": means[0].tobytes(),
            "factors": means[1].tobytes(),
        }
        return pa.Table.from_batches([batch_of([row], GATHERED)])

    sent = users if asked is None else users.join(asked.levels, "block")
    return sent.mapInArrow(send, _SENT).groupBy("leaf", "part").applyInArrow(gather_leaf, GATHERED)


def parts_of(size: NDArray[np.number], most: int, least: int) -> NDArray[np.int64]:
    """In how many parts leaves of so many users are cut where planes cannot cut them, int64[l].

    Each has about `most` users, and none fewer than about `least`, however many that are.
    """
    parts = np.where(size > _TOO_FULL * most, np.ceil(size / most), 1)
    return np.maximum(np.minimum(parts, size // (2 * least)), 1).astype(np.int64)


@njit(nogil=True, cache=True)
def _parts(seed: np.uint64, block: int, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which part of a leaf that cannot be cut by planes each row of a block is in, int64[n]; parts int64[n]."""
    out = np.empty(len(parts), dtype=np.int64)
    for row in range(len(parts)):
        out[row] = np.int64(keyed(seed, block, row) % np.uint64(parts[row]))
    return out


@njit(nogil=True, cache=True)
def _chosen(seed: np.uint64, block: int, n: int, share: float) -> NDArray[np.bool_]:
    """Which rows of a block are in the sample, bool[n]."""
    limit = np.uint64(share * 18446744073709549568.0)
    out = np.empty(n, dtype=np.bool_)
    for row in range(n):
        out[row] = keyed(seed, -1 - block, row) <= limit
    return out


def _planes(users: "DataFrame", n: int, known: Any, seed: int, most: int) -> Planes:
    rank = known.value.item_factors.shape[1]
    if n <= most:
        nothing = np.array([-1], dtype=np.int32)
        return Planes(np.zeros((1, 1)), np.zeros(1), nothing, nothing)
    share, drawn = min(1.0, SAMPLE / n), seed64(seed)

    def terms(row: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        level, factors = vectors_of(row, rank)
        vectors = known.value.vectors(level, factors)
        chosen = vectors[_chosen(drawn, row["block"], len(vectors), share)]
        if len(chosen):
            yield row["block"], chosen.astype(np.float64).reshape(-1)

    found = summed(users, terms)
    width = known.value.vectors(np.zeros(1, dtype=np.float32), np.zeros((1, rank), dtype=np.float32)).shape[1]
    sample = np.concatenate([numbers(found[block], np.float64) for block in sorted(found)]).reshape(-1, width)
    return learn_planes(sample.astype(np.float32), max(int(_FULL * most * len(sample) / n), 1))


def _counts(users: "DataFrame", known: Any, planes: Planes) -> NDArray[np.int64]:
    """How many users are sent to each leaf, int64[nodes]."""
    rank = known.value.item_factors.shape[1]

    def terms(row: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        level, factors = vectors_of(row, rank)
        if len(level):
            leaves = planes.leaves(known.value.vectors(level, factors))
            yield 0, np.bincount(leaves, minlength=planes.nodes).astype(np.int64)

    return numbers(summed(users, terms)[0], np.int64)


def _users(
    compared: Compared,
    level: NDArray[np.float32],
    factors: NDArray[np.float32],
    levels: NDArray[np.int32],
    settings: PublishSettings,
) -> Users:
    """The users of a leaf, as methods look at them."""

    def no_ratings() -> Any:
        msg = f"method {settings.method} looks at ratings, which a leaf does not have."
        raise KgatherError(msg)

    n = len(level)
    return Users(
        n=n,
        read_ratings=no_ratings,
        preferences=compared.preferences(level, factors),
        artifacts=np.empty((0, 0)),
        levels=levels,
        sensitive=np.empty((n, 0)),
        sensitive_names=[],
        identifying=np.ones(len(compared.item_level), dtype=bool),
        scale=(0.0, 0.0),
        asked=settings,
        threads=1,
    )


def _means(
    level: NDArray[np.float32], factors: NDArray[np.float32], groups: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The mean level float32[g] and factors float32[g, r] of each group, by the macro of the project."""
    people = pa.array(np.arange(len(level), dtype=np.int32))
    with database() as con:
        con.execute(macro_sql("kg_group_vectors"))
        con.register(
            "preferences",
            pa.table({"user_id": people, "level": pa.array(level), "preference": lists(factors)}),
        )
        con.register("groups", pa.table({"user_id": people, "group_id": pa.array(groups)}))
        found = con.sql("from kg_group_vectors('preferences', 'groups') order by group_id").to_arrow_table()
    flat = found["factor"].combine_chunks().flatten().to_numpy()
    return found["level"].to_numpy(), flat.reshape(len(found), -1)


@dataclass(frozen=True)
class Reach:
    """How far groups may be from the middle of all users, in vectors of metric prediction; see `outliers.drawn_in`."""

    middle: NDArray[np.float64]
    radius: float


def reach_of(spark: "SparkSession", users: "DataFrame", n: int, compared: Compared, settings: PublishSettings) -> Reach:
    """The quantile of the users' distances from the middle that the setting outliers asks for.

    Where many distances lie is counted first, so that the driver sees only the few around the quantile.
    """
    rank = compared.item_factors.shape[1]
    known = spark.sparkContext.broadcast(Compared(compared.item_level, compared.item_factors, "prediction"))

    def total(row: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        yield 0, known.value.vectors(*vectors_of(row, rank)).sum(axis=0, dtype=np.float64)

    middle = numbers(summed(users, total)[0], np.float64) / n

    def distances(row: dict[str, Any]) -> NDArray[np.float64]:
        return lengths(known.value.vectors(*vectors_of(row, rank)) - middle)

    def counts(row: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        yield 0, np.bincount(_bins(distances(row)), minlength=_BINS).astype(np.int64)

    below = np.cumsum(numbers(summed(users, counts)[0], np.int64))
    first, after = places(n, settings.outliers, settings.k)
    low, high = (int(np.searchsorted(below, at, "right")) for at in (first, after - 1))

    def near(row: dict[str, Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        found = distances(row)
        bins = _bins(found)
        found = found[(bins >= low) & (bins <= high)]
        if len(found):
            yield row["block"], found

    around = np.sort(np.concatenate([numbers(each, np.float64) for each in summed(users, near).values()]))
    skipped = int(below[low - 1]) if low else 0
    return Reach(middle, float(around[first - skipped : after - skipped].mean()))


_BINS = 1 << 16


def _bins(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """A place for each distance that grows with it: the first bits of the number, which are its size."""
    return (distances.astype(np.float32).view(np.uint32) >> 15).astype(np.int64)
