"""What the files of a release hold beside their rows: metadata, bytes that are of no column, blocks that are free."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb

from kgather._sql_text import identifier, literal

_BY_DUCKDB = re.compile(r"DuckDB version v?[\w.\-+]{1,60}( \(build [0-9a-f]{1,40}\))?")
_ENDS = 12  # bytes of a Parquet file around its parts: its name twice, and the length of the last one
_HEADERS = 3 * 4096  # bytes of a database before its blocks
# The least and the greatest text of each part.
_NOTED = """
select distinct unnest([stats_min, stats_min_value, stats_max, stats_max_value]) as noted,
  coalesce(min_is_exact and max_is_exact, true) as is_exact
from parquet_metadata({file})
where path_in_schema = {name}
"""


def of_parquet(con: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """What a Parquet file holds that DuckDB does not write beside the rows of a table, each in words.

    What lies within the pages of a column, and is no value of it, is not looked at.
    """
    return list(_of_parquet(con, literal(file), file.stat().st_size))


def _of_parquet(con: duckdb.DuckDBPyConnection, file: str, size: int) -> Iterator[str]:
    [(noted,)] = con.execute(f"select count(*) from parquet_kv_metadata({file})").fetchall()
    [(of_columns,)] = con.execute(
        f"select count(*) from parquet_metadata({file}) where cardinality(key_value_metadata) > 0"
    ).fetchall()
    if noted or of_columns:
        yield "metadata"
    [(writer, footer)] = con.execute(f"select created_by, footer_size from parquet_file_metadata({file})").fetchall()
    if _BY_DUCKDB.fullmatch(str(writer)) is None:
        yield "a name of what wrote it"
    [(of_rows,)] = con.execute(
        "select coalesce(sum(total_compressed_size + coalesce(bloom_filter_length, 0) "
        "+ coalesce(column_index_length, 0) + coalesce(offset_index_length, 0)), 0) "
        f"from parquet_metadata({file})"
    ).fetchall()
    if int(of_rows) + int(footer) + _ENDS != size:
        yield "bytes that are of no column"
    described = con.execute(f"describe select * from {file}").fetchall()
    for name in (name for name, kind, *_ in described if kind == "VARCHAR"):
        if _has_other_texts(con, file, name):
            yield f"statistics of {name} that are none of its values"


def _has_other_texts(con: duckdb.DuckDBPyConnection, file: str, name: str) -> bool:
    """Whether the statistics of a column name a text that is none of its values. O(rows + statistics)."""
    noted = con.execute(_NOTED.format(file=file, name=literal(name))).fetchall()
    texts = {str(text) for text, is_exact in noted if is_exact and text is not None}
    # A long one is cut off, and the last of its characters is raised then.
    begun = {str(text)[:-1] for text, is_exact in noted if not is_exact and text is not None}
    for of, length in [(texts, None), *(({each for each in begun if len(each) == n}, n) for n in {*map(len, begun)})]:
        value = identifier(name) if length is None else f"left({identifier(name)}, {length})"
        held = con.execute(
            f"select count(distinct {value}) from {file} where {value} in (select unnest($texts))", {"texts": [*of]}
        ).fetchall()
        if held[0][0] != len(of):
            return True
    return False


def of_database(con: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """What the attached database `release` holds beside its tables, in words: blocks that are free, which may have
    rows that were dropped, and bytes beyond its blocks. What a block holds beyond its tables is not looked at."""
    [(size, blocks, free)] = con.execute(
        "select block_size, total_blocks, free_blocks from pragma_database_size() where database_name = 'release'"
    ).fetchall()
    found = [f"{free} free blocks"] if free else []
    return found if _HEADERS + size * blocks == file.stat().st_size else [*found, "bytes beyond its blocks"]
