"""Cells added until every set of items is shown by enough groups, as the pipeline adds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._settings.project import read
from kgather._steps.relations import BATCH_ROWS, columns
from kgather.udfs.diversity import item_diversity
from kgather.udfs.ratings.matrix import RatingMatrix


def cells_to_add(
    cells: duckdb.DuckDBPyRelation,
    groups: duckdb.DuckDBPyRelation,
    shown_items: duckdb.DuckDBPyRelation,
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    settings: str | Mapping[str, Any],
) -> pa.Table:
    """Choose cells to add until every set of b items that some user rated is shown by at least l groups.

    `cells` (group_id, item_id) are shown already, `groups` (user_id, group_id), `shown_items` (item_id, item_code) may
    be shown. Returns a table (group_id, item_id). Raises InputError where l is more than the number of groups or the
    sets are too many to look at.
    """
    asked = read(settings)
    problem = _Coverage.read(cells, groups, shown_items, coded_ratings)
    if problem is None:
        return cells.limit(0).project("group_id, item_id").to_arrow_table()
    # Whoever knew the seed could tell which cells are made up.
    added_groups, added_items = item_diversity.added_cells(
        problem.cells,
        len(problem.group_ids),
        problem.ratings,
        problem.shown,
        b=asked.diversity_b,
        l=asked.diversity_l,
        random=np.random.default_rng(),
    )
    return pa.table(
        {
            "group_id": pa.array(problem.group_ids[added_groups], pa.int64()),
            "item_id": problem.item_ids.take(pa.array(added_items)),
        }
    )


def item_coverage(
    cells: duckdb.DuckDBPyRelation,
    groups: duckdb.DuckDBPyRelation,
    shown_items: duckdb.DuckDBPyRelation,
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    settings: str | Mapping[str, Any],
) -> pa.Table:
    """Count the groups that show the set of b items, rated by some user, which the fewest show: (least_groups)."""
    asked = read(settings)
    problem = _Coverage.read(cells, groups, shown_items, coded_ratings)
    if problem is None:
        return pa.table({"least_groups": pa.array([], pa.int64())})
    least = item_diversity.least_coverage(
        problem.cells, len(problem.group_ids), problem.ratings, problem.shown, b=asked.diversity_b
    )
    return pa.table({"least_groups": pa.array([least], pa.int64())})


@dataclass(frozen=True)
class _Coverage:
    """Who shows what, in codes: cells (group int32[c], item int32[c]), shown bool[m] the items that may be shown."""

    cells: tuple[NDArray[np.int32], NDArray[np.int32]]
    group_ids: NDArray[np.int64]
    item_ids: pa.Array
    shown: NDArray[np.bool_]
    ratings: RatingMatrix

    @classmethod
    def read(
        cls,
        cells: duckdb.DuckDBPyRelation,
        groups: duckdb.DuckDBPyRelation,
        shown_items: duckdb.DuckDBPyRelation,
        coded_ratings: duckdb.DuckDBPyRelation,
    ) -> "_Coverage | None":
        """None where nobody rated anything, as where dbt is asked for empty relations."""
        [(n_users, n_items)] = coded_ratings.aggregate("max(user_code) + 1, max(item_code) + 1").fetchall()
        if n_users is None:
            return None
        items = shown_items.project("item_code, item_id").to_arrow_table().combine_chunks()
        codes = items["item_code"].to_numpy()
        shown = np.zeros(n_items, dtype=bool)
        shown[codes] = True
        places = np.full(n_items, 0)
        places[codes] = np.arange(len(codes))
        [group_ids] = columns(groups.aggregate("group_id").order("group_id"), "group_id")
        coded_cells = cells.set_alias("cells").join(shown_items.set_alias("items"), "item_id")
        cell_groups, cell_items = columns(coded_cells, "group_id", "item_code")
        return cls(
            cells=(np.searchsorted(group_ids, cell_groups).astype(np.int32), cell_items.astype(np.int32)),
            group_ids=group_ids,
            item_ids=items["item_id"].combine_chunks().take(pa.array(places)),
            shown=shown,
            ratings=RatingMatrix.from_batches(coded_ratings.to_arrow_reader(BATCH_ROWS), n_users, n_items),
        )
