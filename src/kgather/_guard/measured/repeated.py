"""Whether somebody has several rows in a table that is to have one of each: found in passes over the ids, exactly, in
the memory of some bytes a row at most."""

from collections.abc import Iterator

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgather._guard.measured.coding import INTEGERS
from kgather._guard.measured.streaming import streamed

BATCH = 100_000
_SPARSE = 16  # places for each row that whole numbers take which are near each other
_PLACES = 1 << 27
_SORTED = 1 << 24  # hashes at once
_TRIED = 100  # hashes that are looked at first, where some are equal


def is_repeated(con: duckdb.DuckDBPyConnection, relation: str, name: str) -> bool:
    """Whether a value of a column is in several rows. relation: SQL of rows in which the column is no NULL; name: the
    column's, as SQL. Nobody is told of it: that a person has a second row is that person's.

    O(rows) of whole numbers that are near each other, else O(rows log rows).
    """
    rows = int(con.execute(f"select count(*) from {relation}").fetchall()[0][0])
    if rows < 2:
        return False
    if str(con.sql(f"select {name} from {relation}").types[0]) in INTEGERS:
        low, high = (int(end) for end in con.execute(f"select min({name}), max({name}) from {relation}").fetchall()[0])
        span = high - low + 1
        if span < rows:
            return True
        if span <= min(_SPARSE * rows, _PLACES):
            seen = np.zeros(span, dtype=np.bool_)
            for places in _streamed(con, f"select cast({name} - ({low}) as ubigint) as kg_at from {relation}"):
                seen[places] = True
            return int(seen.sum()) < rows
    return _has_equal_hashes(con, relation, name, rows)


def _has_equal_hashes(con: duckdb.DuckDBPyConnection, relation: str, name: str, rows: int) -> bool:
    parts = rows // _SORTED + 1
    for part in range(parts):
        own = f"where hash({name}) % {parts} = {part}" if parts > 1 else ""
        hashes = np.empty(rows if parts == 1 else 2 * _SORTED, dtype=np.uint64)
        end = 0
        for batch in _streamed(con, f"select hash({name}) as kg_at from {relation} {own}"):
            if end + len(batch) > len(hashes):
                hashes = np.concatenate([hashes, np.empty(len(hashes), dtype=np.uint64)])
            hashes[end : end + len(batch)] = batch
            end += len(batch)
        hashes = hashes[:end]
        hashes.sort()
        equal = hashes[1:][hashes[1:] == hashes[:-1]]
        if not len(equal):
            continue
        some = ", ".join(str(one) for one in equal[:_TRIED].tolist())
        several = f"select 1 from {relation} where hash({name}) in ({some}) group by {name} having count(*) > 1 limit 1"
        if con.execute(several).fetchall():
            return True
        # Ids that are not equal have had equal hashes, which hardly ever happens.
        counted = con.execute(f"select count({name}) <> count(distinct {name}) from {relation}")
        return bool(counted.fetchall()[0][0])
    return False


def _streamed(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[NDArray[np.uint64]]:
    for batch in streamed(con, sql, BATCH):
        yield batch.column(0).to_numpy()
