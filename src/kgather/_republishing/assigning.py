"""Which group of a release fits people who are not in it: by what is published alone."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from kgather import _sql_functions as sql_functions
from kgather._errors import InputError
from kgather._loaders import LoadOptions, load
from kgather._publishing.pipeline import MEMORY_LIMIT
from kgather._release.reading import read_audit
from kgather._release.release import DATABASE
from kgather._sql_text import literal

SCHEMA = pa.schema(
    [("user_id", pa.string()), ("group_id", pa.int64()), ("items", pa.int64()), ("distance", pa.float64())]
)
_AT_ONCE = 20_000_000  # differences between a rating and a group's

_RATINGS = """
create temp table rated as
select
  cast(user_id as varchar) as user_id,
  cast(item_id as varchar) as item_id,
  {rating} as rating,
  dense_rank() over (order by cast(user_id as varchar)) as person
from (
  select user_id, item_id, avg({capped}) as rating
  from loaded.ratings
  where problem is null and isfinite(rating)
  group by user_id, item_id
)
"""
_SHOWN = """
create temp view shown as
select group_id, cast(item_id as varchar) as item_id, rating
from release.kgather__ratings
"""


def assign(inputs: Sequence[str], release: Path, options: LoadOptions) -> pa.Table:
    """The group of a release that fits each user of the inputs best: see the macro `kg_nearest_groups`.

    Nothing is read but the ratings of these users and the release. Repeated pairs count as their mean; the release's
    rating_cap and rating_log are applied. Returns `SCHEMA`, one row a user in the order of their ids; group_id and
    distance are null where a user rated nothing that the release shows. O(ratings x groups) time, bounded memory.

    Raises InputError where the inputs cannot be read, or the release has no ratings of groups.
    """
    parameters = read_audit(release).parameters
    with duckdb.connect() as con:
        con.execute(f"set memory_limit = {literal(MEMORY_LIMIT)}")
        sql_functions.create_macros(con)
        con.execute(f"attach {literal(release / DATABASE)} as release (read_only)")
        tables = {name for (name,) in con.sql(
            "select table_name from information_schema.tables where table_catalog = 'release'"
        ).fetchall()}  # fmt: skip
        if "kgather__ratings" not in tables:
            msg = f"{release} shows no ratings of groups ({parameters['homogenize']}), so nobody can be put beside one."
            raise InputError(msg)
        load(con, inputs, options)
        cap = parameters.get("rating_cap")
        con.execute(
            _RATINGS.format(
                rating="ln(1 + rating)" if parameters.get("rating_log") else "rating",
                capped="rating" if cap is None else f"least(rating, {float(cap)!r})",
            )
        )
        con.execute(_SHOWN)
        return _nearest(con)


def _nearest(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """The nearest groups, some people at a time."""
    [(people, ratings, groups)] = con.sql(
        "select coalesce(max(person), 0), count(*), (select count(distinct group_id) from shown) from rated"
    ).fetchall()
    size = max(int(people * _AT_ONCE / max(ratings * groups, 1)), 1)
    parts = [SCHEMA.empty_table()]
    for first in range(1, people + 1, size):
        con.execute(
            "create or replace temp view part as select user_id, item_id, rating from rated "
            f"where person between {first} and {first + size - 1}"
        )
        found = con.sql("""
            select
              people.user_id,
              cast(group_id as bigint) as group_id,
              cast(coalesce(items, 0) as bigint) as items,
              distance
            from (select distinct user_id from part) as people
            left join kg_nearest_groups('part', 'shown') using (user_id)
            order by people.user_id
        """).to_arrow_table()  # fmt: skip
        parts.append(found.cast(SCHEMA))
    return pa.concat_tables(parts)
