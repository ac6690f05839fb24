"""(b, l)-diversity of what groups show, for the sets of items that users rated, which a release does not tell."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from kgather._errors import InputError
from kgather._loaders import LoadOptions, load
from kgather._release.release import Check
from kgather._settings.publication import PublishSettings
from kgather._sql_text import literal
from kgather._verify.connection import bounded
from kgather._verify.verdicts import at_least, at_most

UNREAD = "share of the users' ratings that could not be read"

# Groups show an item by a cell, by their members' rows, or by vectors, which show every item of every group.
_CELLS = {
    "ratings": "select distinct group_id, item_id from {ratings}",
    "user_ratings": "select distinct group_id, item_id from {user_ratings} join {members} using (pseudonym)",
    "group_vectors": "select group_id, item_id from {group_vectors} cross join {item_vectors}",
}


def of_cells(
    cells: pa.Table,
    source: str,
    options: LoadOptions,
    b: int,
    least: int,
    *,
    max_rejected_share: float = 0.0,
) -> tuple[Check, ...]:
    """Check that every set of up to b items which a user rated is shown by enough groups.

    cells (group_code int, item text): what groups show, groups numbered from 0. source: the users' ratings, as publish
    read them. Items that no group shows do not count, as a release may leave items out. Where rows cannot be read, a
    check of its own holds their share against max_rejected_share. Raises InputError where the ratings cannot be read,
    or none is of an item that is shown.
    """
    with bounded() as con:
        load(con, [source], options)
        con.register("given_cells", cells)
        con.execute(
            "create table shown as select item, row_number() over (order by item) - 1 as item_code "
            "from (select distinct item from given_cells)"
        )
        [(rows, unread)] = con.sql("select count(*), count(problem) from loaded.ratings").fetchall()
        rated = con.sql(
            """
            select dense_rank() over (order by user_id) - 1 as user_code, item_code
            from (
              select distinct user_id, cast(item_id as varchar) as item
              from loaded.ratings
              where problem is null
            )
            join shown using (item)
            order by user_code, item_code
            """
        )
        measured = _least(con, rated, b)
    if measured is None:
        msg = f"{source} has no rating of an item that is shown. Give the ratings that were published."
        raise InputError(msg)
    name = f"(b, l)-diversity: groups that show the set of up to {b} items, rated by some user, which the fewest show"
    found = at_least(name, least, measured)
    return (found,) if not unread else (at_most(UNREAD, max_rejected_share, unread / rows), found)


def of_release(
    folder: Path,
    parameters: dict[str, Any],
    source: str,
    options: LoadOptions,
    b: int | None,
    least: int | None,
    *,
    max_rejected_share: float | None = None,
) -> tuple[Check, ...]:
    """The same of a release; b, least and max_rejected_share: where they are None, what it promised, and the share that
    publish allows where nothing else is said.

    Raises InputError as `of_cells` does, and where the release promised nothing of the kind or shows no cells.
    """
    if b is None or least is None:
        b, least = int(parameters.get("diversity_b", 1)), int(parameters.get("diversity_l", 1))
        if least < 2:
            msg = f"{folder} promises no (b, l)-diversity. Say what to check for with --b and --l."
            raise InputError(msg)
    files = {name: literal(folder / f"{name}.parquet") for name in (*_CELLS, "members", "item_vectors")}
    found = next((name for name in _CELLS if (folder / f"{name}.parquet").exists()), None)
    if found is None:
        msg = f"{folder} shows no items of groups but the generalized table, of which --ratings tells nothing."
        raise InputError(msg)
    with bounded() as con:
        relation = _CELLS[found].format(**{name: f"read_parquet({file})" for name, file in files.items()})
        cells = con.sql(
            f"select dense_rank() over (order by group_id) - 1 as group_code, cast(item_id as varchar) as item "
            f"from ({relation})"
        ).to_arrow_table()
    if max_rejected_share is None:
        max_rejected_share = float(PublishSettings.model_fields["max_rejected_share"].default)
    return of_cells(cells, source, options, b, least, max_rejected_share=max_rejected_share)


def _least(con: duckdb.DuckDBPyConnection, rated: duckdb.DuckDBPyRelation, b: int) -> int | None:
    """The groups that show the set which the fewest show; None where there is no set."""
    # Imported here: it takes a while, and most checks do not need it.
    from kgather.udfs.diversity.item_diversity import least_coverage
    from kgather.udfs.ratings.matrix import RatingMatrix

    pairs = rated.to_arrow_table()
    if len(pairs) == 0:
        return None
    users, [[items]] = int(pairs["user_code"].to_numpy()[-1]) + 1, con.sql("select count(*) from shown").fetchall()
    matrix = RatingMatrix.from_batches(
        con.sql(
            "select cast(user_code as integer) as user_code, cast(item_code as integer) as item_code, "
            "cast(1 as double) as rating from pairs order by all"
        ).to_arrow_reader(1 << 20),
        users,
        int(items),
    )
    cells = con.sql("select group_code, item_code from given_cells join shown using (item)").fetchnumpy()
    groups = int(cells["group_code"].max()) + 1
    return int(least_coverage((cells["group_code"], cells["item_code"]), groups, matrix, b=b))
