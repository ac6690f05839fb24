"""Reading the raw format of the Netflix Prize: a line `movie:` heads a block of lines `user,rating,date`."""

import re
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgather._loaders import values
from kgather._loaders.expressions import is_blank
from kgather._loaders.lines import SCHEMA, Batches, LineReader, registered
from kgather._loaders.options import MISSING
from kgather._loaders.store import IdRole, Parsed

NO_HEADER = "no valid movie header above"
BROKEN_HEADER = "movie header is not readable"

_LINES = "__kgather_lines"
_BLOCK_SCHEMA = SCHEMA.append(pa.field("block", pa.string())).append(pa.field("heads", pa.bool_()))
_HEADER = r"[ \t]*[0-9]+[ \t]*:[ \t]*"
_RATING = re.compile(r"[^,:]+,[^,:]+(,[^,]*)?")


def looks_like_netflix(sample: Sequence[tuple[int, str]]) -> bool:
    """Whether the first lines of a file are blocks of ratings under movie headers."""
    headers = sum(re.fullmatch(_HEADER, text, re.ASCII) is not None for _, text in sample)
    ratings = sum(_RATING.fullmatch(text) is not None for _, text in sample)
    return headers > 0 and 10 * (headers + ratings) >= 8 * len(sample)


def field_count(sample: Sequence[tuple[int, str]]) -> int:
    """How many fields a rating line has: 3, or 2 in a file without dates."""
    counts = [text.count(",") for _, text in sample if _RATING.fullmatch(text)]
    return 2 if counts and 2 * counts.count(1) > len(counts) else 3


def with_blocks(batches: Batches) -> Batches:
    """Add to each line the movie of its block (`block`) and whether it is itself a header (`heads`).

    A line is taken for a header if a colon comes before its first comma, if it ends in a colon, or if it has
    no comma at all. Every such line begins a new block; if it is not exactly an integer and a colon, the
    block has no movie (null), so that its ratings never fall to the block before.

    Args:
        batches: Batches of `line` and `text`, in order.
    """
    movie: str | None = None
    for batch in batches:
        text = batch.column("text")
        comma = pc.find_substring(text, ",")
        colon = pc.find_substring(text, ":")
        filled = pc.match_substring_regex(text, r"[^ \t]")
        heads = pc.or_(
            pc.or_(pc.and_(pc.greater_equal(colon, 0), pc.less(colon, comma)), pc.less(comma, 0)),
            pc.match_substring_regex(text, r":[ \t]*$"),
        )
        heads = pc.and_(heads, filled)
        positions = np.flatnonzero(heads.to_numpy(zero_copy_only=False))
        found = text.take(pa.array(positions))
        valid = pc.match_substring_regex(found, f"^{_HEADER}$")
        ids = pc.if_else(valid, pc.replace_substring_regex(found, r"[^0-9]", ""), pa.scalar(None, pa.string()))
        movies = pa.concat_arrays([pa.array([movie], pa.string()), ids])
        marks = np.zeros(len(text), np.int64)
        marks[positions] = 1
        block = movies.take(pa.array(np.cumsum(marks)))
        if len(movies):
            movie = movies[len(movies) - 1].as_py()
        yield pa.RecordBatch.from_arrays(
            [batch.column("line"), text, block, pc.fill_null(heads, False)], schema=_BLOCK_SCHEMA
        )


def parse(
    con: duckdb.DuckDBPyConnection,
    reader: LineReader,
    count: int,
    likely_text: frozenset[IdRole],
    insert: Callable[[Parsed], int],
    *,
    has_time: bool,
    missing: Sequence[str] = MISSING,
) -> int:
    """Give the SQL of a file in blocks to `insert`.

    Args:
        con: The connection.
        reader: The lines of the file.
        count: How many fields a rating line has.
        likely_text: The roles whose ids are texts in the sample.
        insert: Runs the SQL.
        has_time: The third field is read as a date.
        missing: Texts that stand for "no user".

    Returns:
        What `insert` returns.

    Raises:
        InputError: The file is damaged.
    """
    with registered(con, _LINES, reader, _BLOCK_SCHEMA, with_blocks):
        return insert(Parsed(_rows_sql(count, missing, has_time=has_time), likely_text=likely_text))


def _rows_sql(count: int, missing: Sequence[str], *, has_time: bool) -> str:
    split = (
        f"select line, text, block, heads, string_split(text, ',') as f from {_LINES} "
        f"where not ({is_blank('text')}) and not (heads and block is not null)"
    )
    texts = (
        "select *, f[1] as u, f[2] as r, "
        + ("f[3] as t, try_cast(f[3] as bigint) as epoch, " if has_time else "")
        + f"{values.rating_sql('f[2]')} as rating from ({split})"
    )
    time = values.time_sql("t", "epoch") if has_time else "null::timestamp"
    times = f"select *, {time} as rated_at from ({texts})"
    time_problem = (
        f"when rated_at is null and not {values.no_time_sql('t')} then '{values.TIME_NOT_READABLE}'" if has_time else ""
    )
    return (
        "select line, text as raw, u as user_id, block as item_id, rating, rated_at, "
        f"case when heads then '{BROKEN_HEADER}' "
        f"when len(f) <> {count} then 'malformed line: expected {count} fields, found ' || len(f) "
        f"when block is null then '{NO_HEADER}' "
        f"when {values.is_missing('u', missing)} then '{values.USER_EMPTY}' "
        f"{values.rating_problem_sql('rating')} {time_problem} end as problem from ({times})"
    )
