"""Made-up ratings of the Netflix Prize's shape, at any size, streamed to a file.

    python benchmarks/make_ratings.py netflix.parquet --ratings 100480507

Few users rate much and few items are rated much; users have one of a few tastes, which decide what they rate and how:
a rating is the mean, a level of the user and of the item, the product of two vectors and noise, rounded to 1..5. Every
user is drawn from a seed of its own, so the same options give the same ratings, for any number of threads.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit

from kgather._sql_text import literal
from kgather.udfs._shared.hashing import keyed, mix, seed64

USERS, ITEMS, RATINGS = 480_189, 17_770, 100_480_507
TASTES, DIMENSIONS = 24, 8
_BLOCK = 1 << 20  # ratings that are made at once
_ROW_GROUP = 1 << 20
_FIRST_DAY, _DAYS = 10_906, 2_242  # 1999-11-11 and the days until 2005-12-31

Order = Literal["user", "item", "random"]


@dataclass(frozen=True)
class Shape:
    """What the ratings look like.

    activity, popularity: standard deviations of the logarithms of the ratings by user and by item. most_share: the
    largest share of the ratings that one item can have, in means. taste: how much a taste decides what is rated.
    identical: share of users who all rate the same items the same. everything: the first user rates every item.
    repeated: share of pairs of user and item that are rated a second time. order: how rows are sorted.
    """

    ratings: int = RATINGS
    users: int = 0
    items: int = ITEMS
    activity: float = 1.247
    popularity: float = 2.1
    most_share: float = 41.0
    taste: float = 0.7
    identical: float = 0.0
    everything: bool = False
    repeated: float = 0.0
    dates: bool = False
    order: Order = "user"
    seed: int = 0

    @property
    def n_users(self) -> int:
        """The number of users: as many a rating as Netflix had, where it is not said."""
        return self.users or max(round(USERS * self.ratings / RATINGS), -(-self.ratings // self.items), 1)


class Model:
    """What is drawn once: how many ratings each user gives, and what tastes and items are like."""

    def __init__(self, shape: Shape) -> None:
        n, m = shape.n_users, shape.items
        if shape.ratings > n * m or shape.ratings < n:
            msg = f"{shape.ratings:,} ratings do not fit {n:,} users and {m:,} items."
            raise SystemExit(msg)
        draws = np.random.default_rng(shape.seed)
        self.counts = _activity(shape, draws)
        self.tastes = draws.integers(0, TASTES, n, dtype=np.int32)
        centres = draws.normal(0, 1, (TASTES, DIMENSIONS))
        self.items = draws.normal(0, 1, (m, DIMENSIONS)).astype(np.float32)
        self.item_level = draws.normal(0, 0.4, m).astype(np.float32)
        weights = draws.lognormal(0, shape.popularity, m)
        weights /= weights.mean()
        weights /= 1 + weights / shape.most_share
        self.centres = (centres * 0.35 / np.sqrt(DIMENSIONS)).astype(np.float32)
        chosen = weights[None, :] * np.exp(shape.taste * (centres @ self.items.T) / np.sqrt(DIMENSIONS))
        self.weights = chosen / chosen.sum(axis=1, keepdims=True)
        tables = [_alias(row) for row in self.weights]
        self.chance = np.stack([chance for chance, _ in tables])
        self.other = np.stack([other for _, other in tables])
        # Users who are alike are drawn from one seed.
        self.seeds = np.arange(n)
        alike = draws.permutation(np.arange(1 if shape.everything else 0, n))[: round(shape.identical * n)]
        if len(alike):
            self.seeds[alike] = n
            self.tastes[alike] = self.tastes[alike[0]]
            self.counts[alike] = max(int(self.counts[alike].mean()), 1)
        self.shape = shape

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of users who give about equally many ratings."""
        ends = np.cumsum(self.counts)
        cuts = np.searchsorted(ends, np.arange(_BLOCK, ends[-1], _BLOCK))
        edges = np.unique(np.concatenate([[0], cuts + 1, [len(ends)]]))
        return [(int(lo), int(hi)) for lo, hi in pairwise(edges)]

    def block(self, lo: int, hi: int) -> pa.RecordBatch:
        """The ratings of some users, ordered by user and item."""
        starts = np.concatenate([[0], np.cumsum(self.counts[lo:hi])])
        items, days = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
        values = np.empty(starts[-1], np.int8)
        _draw(
            starts, self.seeds[lo:hi], self.tastes[lo:hi], seed64(self.shape.seed), self.centres, self.items,
            self.item_level, self.weights, self.chance, self.other, items, values, days,
        )  # fmt: skip
        users = np.repeat(np.arange(lo, hi), self.counts[lo:hi])
        if self.shape.repeated:
            rows = np.random.default_rng([self.shape.seed, lo])
            again = np.flatnonzero(rows.random(len(items)) < self.shape.repeated)
            order = np.sort(np.concatenate([np.arange(len(items)), again]), kind="stable")
            users, items, days, values = users[order], items[order], days[order], values[order]
            second = np.flatnonzero(np.diff(order) == 0) + 1
            values[second] = rows.integers(1, 6, len(second))
            days[second] += 1
        # Ids ascend with the codes, with gaps.
        columns = {"user_id": pa.array((5 * users + 1 + users % 3).astype(np.int32)), "item_id": pa.array(items + 1)}
        columns["rating"] = pa.array(values)
        if self.shape.dates:
            columns["date"] = pa.array(days, pa.date32())
        return pa.record_batch(columns)


def _activity(shape: Shape, draws: np.random.Generator) -> np.ndarray:
    """How many ratings each user gives, int64[n]: lognormal, 1 to all items, `shape.ratings` in total."""
    n, m = shape.n_users, shape.items
    wish = draws.lognormal(0, shape.activity, n)
    if shape.everything:
        wish[0] = np.inf
    low, high = 0.0, float(m) / wish.min()
    for _ in range(60):
        middle = (low + high) / 2
        total = np.clip(np.floor(wish * middle), 1, m).sum()
        low, high = (middle, high) if total <= shape.ratings else (low, middle)
    counts = np.clip(np.floor(wish * low), 1, m).astype(np.int64)
    missing = shape.ratings - int(counts.sum())
    while missing > 0:
        open_users = np.flatnonzero(counts < m)
        some = draws.permutation(open_users)[:missing]
        counts[some] += 1
        missing -= len(some)
    return counts


def _alias(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias table of weights that sum to 1: chance float64[m] to keep a place, other int32[m]."""
    chance, other = weights * len(weights), np.arange(len(weights), dtype=np.int32)
    _fill_alias(chance, other)
    return chance, other


@njit(nogil=True, cache=True)
def _fill_alias(chance: np.ndarray, other: np.ndarray) -> None:
    m = len(chance)
    small, large = np.empty(m, np.int32), np.empty(m, np.int32)
    n_small, n_large = 0, 0
    for i in range(m):
        if chance[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small and n_large:
        n_small -= 1
        low, high = small[n_small], large[n_large - 1]
        other[low] = high
        chance[high] -= 1.0 - chance[low]
        if chance[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1


@njit(nogil=True, cache=True)
def _normal(state: np.uint64) -> float:
    """A number of about the standard normal distribution from 64 bits: a sum of four uniform ones."""
    total = 0.0
    for part in range(4):
        total += np.float64((state >> np.uint64(16 * part)) & np.uint64(0xFFFF))
    return (total / 65536.0 - 2.0) * 1.7320508


@njit(nogil=True, cache=True)
def _draw(
    starts: np.ndarray,
    seeds: np.ndarray,
    tastes: np.ndarray,
    seed: np.uint64,
    centres: np.ndarray,
    item_vectors: np.ndarray,
    item_level: np.ndarray,
    weights: np.ndarray,
    chance: np.ndarray,
    other: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    days: np.ndarray,
) -> None:
    """Fills in the ratings starts[u]..starts[u + 1] of each user."""
    m, d = item_vectors.shape
    seen = np.full(m, -1, np.int64)
    vector = np.empty(d, np.float32)
    for u in range(len(seeds)):
        lo, hi = starts[u], starts[u + 1]
        count, taste = hi - lo, tastes[u]
        state = keyed(seed, seeds[u], 1)
        found, tried = 0, 0
        while found < count and tried < 8 * count and 8 * count < m:
            state = mix(state)
            tried += 1
            place = np.int64(state % np.uint64(m))
            state = mix(state)
            if np.float64(state >> np.uint64(11)) * 1.1102230246251565e-16 >= chance[taste, place]:
                place = np.int64(other[taste, place])
            if seen[place] != u:
                seen[place] = u
                items[lo + found] = place
                found += 1
        if found < count:  # much is rated: the smallest of exponential keys
            keys = np.empty(m)
            for i in range(m):
                draw = np.float64(keyed(state, i, 2) >> np.uint64(11)) * 1.1102230246251565e-16
                keys[i] = -np.log(1.0 - draw) / weights[taste, i]
            items[lo:hi] = np.argsort(keys)[:count]
        items[lo:hi].sort()
        state = keyed(seed, seeds[u], 3)
        level = 3.6 + 0.35 * _normal(mix(state))
        for a in range(d):
            vector[a] = centres[taste, a] + np.float32(0.12 * _normal(keyed(state, a, 4)))
        first = np.int64(mix(mix(state)) % np.uint64(_DAYS))
        for j in range(lo, hi):
            item = items[j]
            draw = keyed(state, item, 5)
            value = level + item_level[item] + 0.8 * _normal(draw)
            for a in range(d):
                value += vector[a] * item_vectors[item, a]
            values[j] = min(max(np.int64(np.rint(value)), 1), 5)
            days[j] = _FIRST_DAY + (first + np.int64(mix(draw) % np.uint64(90))) % _DAYS


def batches(shape: Shape, threads: int = 0) -> Iterator[pa.RecordBatch]:
    """The ratings, ordered by user and item, as (user_id, item_id, rating[, date])."""
    model = Model(shape)
    threads = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        blocks = model.blocks()
        # Not all at once: what is made waits to be written.
        for start in range(0, len(blocks), threads):
            yield from pool.map(lambda edge: model.block(*edge), blocks[start : start + threads])


def write_parquet(file: Path, shape: Shape, threads: int = 0) -> int:
    """Write the ratings to a Parquet file; returns their number."""
    if shape.order == "user":
        return _stream(file, batches(shape, threads))
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        sorted_file = Path(folder) / "by_user.parquet"
        rows = _stream(sorted_file, batches(shape, threads))
        order = "item_id, user_id" if shape.order == "item" else "hash(user_id, item_id)"
        with _database(Path(folder)) as con:
            con.execute(
                f"copy (from {literal(sorted_file)} order by {order}) to {literal(file)} "
                f"(format parquet, compression zstd, compression_level 1)"
            )
    return rows


def write_netflix(file: Path, shape: Shape, threads: int = 0) -> int:
    """Write the ratings as the Netflix Prize did: a line `movie:`, then `user,rating,date` for each of its ratings."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        sorted_file = Path(folder) / "by_user.parquet"
        rows = _stream(sorted_file, batches(shape, threads))
        date = " || ',' || date" if shape.dates else ""
        with _database(Path(folder)) as con:
            con.execute(
                f"""
                copy (
                  select if(user_id is null, item_id || ':', user_id || ',' || rating{date}) as line
                  from (
                    select user_id, item_id, rating{", date" if shape.dates else ""} from {literal(sorted_file)}
                    union all by name
                    select distinct item_id from {literal(sorted_file)}
                  )
                  order by item_id, user_id nulls first
                ) to {literal(file)} (format csv, header false, delimiter '|', quote '')
                """
            )
    return rows


def _stream(file: Path, made: Iterator[pa.RecordBatch]) -> int:
    rows, writer = 0, None
    for batch in made:
        if writer is None:
            writer = pq.ParquetWriter(
                file, batch.schema, compression="zstd", compression_level=1,
                use_dictionary=["rating", "user_id"],
                column_encoding={"item_id": "DELTA_BINARY_PACKED"},
            )  # fmt: skip
        writer.write_batch(batch, row_group_size=_ROW_GROUP)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return rows


def _database(folder: Path) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("set memory_limit = '2GB'; set preserve_insertion_order = true; set enable_progress_bar = false")
    con.execute(f"set temp_directory = {literal(folder / 'spill')}")
    return con


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    plain = Shape()
    parser.add_argument("file", type=Path, help="where they go; the end of its name says nothing of the format")
    parser.add_argument("--format", choices=("parquet", "netflix"), default="parquet")
    parser.add_argument("--ratings", type=lambda text: int(float(text)), default=plain.ratings)
    parser.add_argument("--users", type=int, default=0, help="default: as many a rating as Netflix had")
    parser.add_argument("--items", type=int, default=plain.items)
    parser.add_argument("--activity", type=float, default=plain.activity, help="skew of the ratings by user")
    parser.add_argument("--popularity", type=float, default=plain.popularity, help="skew of the ratings by item")
    parser.add_argument("--most-share", type=float, default=plain.most_share, help="means that one item can have")
    parser.add_argument("--taste", type=float, default=plain.taste, help="how much taste decides what is rated")
    parser.add_argument("--identical", type=float, default=0.0, help="share of users who are all alike")
    parser.add_argument("--everything", action="store_true", help="one user rates every item")
    parser.add_argument("--repeated", type=float, default=0.0, help="share of pairs that are rated twice")
    parser.add_argument("--dates", action="store_true", help="with the day of each rating")
    parser.add_argument("--order", choices=get_args(Order), default="user", help="how rows are sorted (parquet)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    given = vars(parser.parse_args())
    file, kind, threads = given.pop("file"), given.pop("format"), given.pop("threads")
    write = write_netflix if kind == "netflix" else write_parquet
    rows = write(file, Shape(**given), threads)
    print(f"{rows:,} ratings in {file}, {file.stat().st_size / 2**20:,.0f} MB")


if __name__ == "__main__":
    main()
