"""How much of the disk a run needs and may take."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb

from kgather._errors import DISK_FULL, KgatherError
from kgather._loaders.sources import Source
from kgather._sql_text import literal

# Measured at 10 and 100 million ratings: the working database holds a rating three times, and sorting spills it once.
_BYTES_A_RATING = 24
# Lines of ratings are seldom longer, and compressed text is seldom longer than this share of it.
_LINE = 32
_COMPRESSED = 4
_RESERVE = 64 << 20  # never taken by what spills
_OVER_LIMIT = "max_temp_directory_size"


def check(folder: Path, inputs: Sequence[Source]) -> None:
    """Refuse, before any work, a disk that cannot hold it. What is not known before is not refused.

    Raises KgatherError, naming what is there and what is needed.
    """
    ratings = sum(_ratings(source) for source in inputs)
    needed, free = ratings * _BYTES_A_RATING, shutil.disk_usage(folder).free
    if needed > free:
        msg = (
            f"the disk of {folder.parent} has {_size(free)} left, and the work on {ratings:,} ratings needs at least "
            f"{_size(needed)}: nothing was written. Free some space or give another --out."
        )
        raise KgatherError(msg)


def spill_limit(folder: Path) -> str:
    """What may spill to the disk, for DuckDB: all that is free now but a reserve."""
    return f"{max(shutil.disk_usage(folder).free - _RESERVE, 1 << 20) >> 20}MiB"


def is_full(message: str) -> bool:
    """Whether an engine's message says that the disk is full, or would be."""
    return DISK_FULL in message or _OVER_LIMIT in message


def _ratings(source: Source) -> int:
    """How many ratings an input holds at least, without reading it."""
    size = source.path.stat().st_size
    if source.kind == "parquet":
        try:
            with duckdb.connect() as con:
                query = f"select num_rows from parquet_file_metadata({literal(source.path)})"
                return int(con.sql(query).fetchall()[0][0])
        except duckdb.Error:
            return 0  # its loader says what is wrong with it
    if source.kind == "duckdb":
        return 0
    return size * (1 if source.kind == "text" else _COMPRESSED) // _LINE


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.0f} MB"
