"""A release of a part of the ratings, beside those that were left out: what can honestly be predicted from it.

Ratings that were in what was published cannot test a prediction from it: the release is made of the training part only,
and nothing of the test part enters it, not even the learnt preferences.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._evaluation.evidence import Evidence, read_evidence
from kgather._loaders import LoadOptions, load
from kgather._publishing.early import LOADED_ITEMS, reason_not_to_use
from kgather._publishing.pipeline import MEMORY_LIMIT
from kgather._publishing.publish import AttributesSource, publish
from kgather._release.release import DATABASE
from kgather._settings.publication import PublishSettings
from kgather._sql_text import literal
from kgather.udfs._shared.hashing import seed64
from kgather.udfs._shared.options import real, seed_number
from kgather.udfs.ratings._held_out import choose_held_out, rows_of
from kgather.udfs.ratings.matrix import RatingMatrix

Test = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
_BATCH_ROWS = 1 << 20


def held_out(
    inputs: Sequence[str],
    settings: PublishSettings,
    load_options: LoadOptions | None = None,
    *,
    share: float = 0.2,
    seed: int = 0,
    folder: Path | None = None,
    user_attributes: AttributesSource | None = None,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[Evidence, Test]:
    """Publish all but a share of the ratings, and return the evidence of that release and the ratings left out.

    The test ratings are (users int32[t], items int32[t], ratings float64[t]) in the evidence's codes, -1 for a user or
    an item that the training part does not have. Each pair of user and item is left out with probability `share`, by a
    hash of the seed, but never all pairs of a user; a pair that occurs more than once is in one part as a whole, and is
    tested with what the pipeline would make of it. folder: where the private working folder (mode 0700, removed
    afterwards) is made; None: the system's.

    Raises InputError where the input or the settings cannot be published, or nothing would be left to test.
    """
    share, seed = real("share", share, 0, 0.9, above=True), seed_number(seed)
    with tempfile.TemporaryDirectory(prefix="kgather-", dir=folder) as private:
        work = Path(private)
        settings = _split(work, inputs, settings, load_options or LoadOptions(), share, seed)
        publish(
            [str(work / "train.parquet")],
            work / "release",
            # Nobody looks at the metrics here, and the items were looked at when all ratings were published.
            settings.model_copy(update={"metrics": "none", "items_confirmed": True}),
            LoadOptions(items=str(work / "items.parquet")) if (work / "items.parquet").exists() else LoadOptions(),
            user_attributes=user_attributes,
            keep_work=work / "work",
            report=report,
        )
        with duckdb.connect() as con:
            con.execute(f"attach {literal(work / 'work' / 'work.duckdb')} as work (read_only)")
            con.execute(f"attach {literal(work / 'release' / DATABASE)} as release (read_only)")
            evidence = read_evidence(con, "work", "release", settings.model_dump(mode="json"))
            return evidence, _in_codes(con, work / "test.parquet")


def _split(
    work: Path,
    inputs: Sequence[str],
    settings: PublishSettings,
    options: LoadOptions,
    share: float,
    seed: int,
) -> PublishSettings:
    """Write train.parquet, which has all rows of its pairs, and test.parquet, which has one row a pair."""
    with duckdb.connect(work / "split.duckdb") as con:
        con.execute(f"set memory_limit = {literal(MEMORY_LIMIT)}")
        con.execute(f"set temp_directory = {literal(work / 'spill')}")
        loaded = load(con, inputs, options)
        if options.items is not None:
            con.execute(f"copy loaded.items to {literal(work / 'items.parquet')} (format parquet)")
            settings = settings.model_copy(update={"items": LOADED_ITEMS})
        usable = f"({reason_not_to_use(settings)}) is null"
        rows, rating = _KEPT.get(settings.repeats or "latest", (_ALL, f"{settings.repeats}(rating)"))
        con.execute(_PAIRS.format(usable=usable, rows=rows, rating=rating))
        changed = _shape(con, settings)
        con.register("left_out", _left_out(con, share, seed))
        con.execute("""
            create table test as
            select user_id, item_id, rating
            from pairs
            join left_out using (user_code, item_code)
        """)
        con.execute(f"copy (from test order by user_id, item_id) to {literal(work / 'test.parquet')} (format parquet)")
        con.execute(
            f"copy ({_TRAIN_OF_PAIRS if changed else _TRAIN}) to {literal(work / 'train.parquet')} (format parquet)"
        )
        if loaded.artifact_columns and "artifacts" not in settings.model_fields_set:
            trained = con.sql("select distinct item_id from pairs anti join test using (user_id, item_id)").fetchall()
            rated = {str(item) for (item,) in trained}
            artifacts: list[int | str] = [name for name in loaded.artifact_columns if name in rated]
            settings = settings.model_copy(update={"artifacts": artifacts or settings.artifacts})
    (work / "split.duckdb").unlink()
    if changed:
        settings = settings.model_copy(update={"repeats": None, "rating_cap": None, "rating_log": False})
    return settings


def _shape(con: duckdb.DuckDBPyConnection, settings: PublishSettings) -> bool:
    """Cap the ratings of the pairs and take their logarithm, as the pipeline does; whether anything is changed."""
    counts = settings.repeats in ("sum", "count")
    cap = settings.rating_cap
    if cap is None and counts:
        [(cap,)] = con.sql(
            "select min(most) from (select max(rating) as most from pairs group by user_code order by most desc "
            f"limit {settings.k})"
        ).fetchall()
    if cap is not None:
        con.execute(f"update pairs set rating = least(rating, {cap!r})")
    if settings.rating_log:
        con.execute("update pairs set rating = ln(1 + rating)")
    return settings.changes_ratings or settings.repeats is not None


_ALL = "count(*) over pair > 0"
_KEPT = {
    "latest": ("rated_at is not distinct from max(rated_at) over pair", "avg(rating)"),
    "first": ("rated_at is not distinct from min(rated_at) over pair", "avg(rating)"),
    "mean": (_ALL, "avg(rating)"),
    "count": (_ALL, "cast(count(*) as double)"),
}
"""Which rows of a pair are kept, and the rating that they give; max and sum are aggregates of all rows."""

# One row a pair, as the pipeline stages it.
_PAIRS = """
create table pairs as
select
  user_id,
  item_id,
  cast(dense_rank() over (order by user_id) - 1 as integer) as user_code,
  cast(dense_rank() over (order by item_id) - 1 as integer) as item_code,
  rating
from (
  select user_id, item_id, {rating} as rating
  from (
    select user_id, item_id, rating
    from loaded.ratings
    where {usable}
    window pair as (partition by user_id, item_id)
    qualify {rows}
  )
  group by user_id, item_id
)
"""
_TRAIN_OF_PAIRS = """
select user_id, item_id, rating, cast(null as timestamp) as rated_at
from pairs
anti join test using (user_id, item_id)
order by user_id, item_id
"""
_TRAIN = """
select user_id, item_id, rating, rated_at
from loaded.ratings
anti join test using (user_id, item_id)
where problem is null
order by user_id, item_id, source, line
"""


def _left_out(con: duckdb.DuckDBPyConnection, share: float, seed: int) -> pa.Table:
    """The pairs to leave out, in codes."""
    [(users, items)] = con.sql("select max(user_code) + 1, max(item_code) + 1 from pairs").fetchall()
    if users is None:
        msg = "there are no ratings that could be held out."
        raise InputError(msg)
    pairs = con.sql("select user_code, item_code, rating from pairs order by all").to_arrow_reader(_BATCH_ROWS)
    matrix = RatingMatrix.from_batches(pairs, users, items)
    chosen = choose_held_out(matrix.indptr, matrix.items, share, seed64(seed))
    if len(chosen) == 0:
        msg = (
            f"a share of {share:g} of {matrix.nnz} ratings leaves nothing to test. Give more ratings, or more of them."
        )
        raise InputError(msg)
    return pa.table(
        {
            "user_code": pa.array(rows_of(matrix.indptr, chosen)),
            "item_code": pa.array(matrix.items[chosen]),
        }
    )


def _in_codes(con: duckdb.DuckDBPyConnection, file: Path) -> Test:
    table = con.sql(f"""
        select
          coalesce(users.user_code, -1) as user_code,
          coalesce(items.item_code, -1) as item_code,
          cast(test.rating as double) as rating
        from read_parquet({literal(file)}) as test
        left join work.int_kgather__users as users
          on cast(users.user_id as varchar) = cast(test.user_id as varchar)
        left join work.int_kgather__items as items
          on cast(items.item_id as varchar) = cast(test.item_id as varchar)
        order by user_code, item_code, rating
    """).to_arrow_table()
    users, items, ratings = (column.to_numpy() for column in table.columns)
    return users.astype(np.int32), items.astype(np.int32), ratings
