"""The steps of the pipeline that SQL cannot say, as the dbt Python models call them: relation in, Arrow out."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._progress import reporter
from kgather._settings.methods import ON_ARTIFACTS
from kgather._settings.validation import validated
from kgather._steps import compiling
from kgather._steps.gathering import Gathering, Groups, Users, gather
from kgather.udfs.diversity import item_diversity
from kgather.udfs.gathering.group_ids import random_group_ids, random_pseudonyms
from kgather.udfs.preferences import learning, model
from kgather.udfs.ratings.matrix import RatingMatrix

_BATCH_ROWS = 1 << 20

compiling.tell()


def learn_preferences(
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    users: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    scale: duckdb.DuckDBPyRelation,
    solver: str,
    solver_options: str | Mapping[str, Any],
    rank: int | str,
    seed: int | str,
    threads: int | str,
) -> pa.Table:
    """Learn levels and factors of users and items.

    `coded_ratings` has user_code and item_code (dense, from 0) and rating, `users` (user_code and rated, a user's
    number of items) and `items` a row for each code, `scale` one row with scale_min and scale_max. Options may come
    as text, as dbt renders them.

    Returns a table (side, code, level, factor), empty where the solver is none. Raises InputError where the options
    make no sense.
    """
    options = _as_mapping(solver_options)
    if solver == "none":
        return model.SCHEMA.empty_table()
    low, high = scale.project("scale_min, scale_max").fetchall()[0]
    [rated] = _columns(users.order("user_code"), "rated")
    n_items = _count(items)
    matrix = RatingMatrix.from_batches(coded_ratings.to_arrow_reader(_BATCH_ROWS), len(rated), n_items, rated)
    learnt = learning.learn(
        matrix,
        solver=solver,
        rank=int(rank),
        seed=int(seed),
        threads=int(threads) or os.cpu_count() or 1,
        # Ratings that are all the same span no scale.
        scale=(low, high) if low < high else None,
        progress=reporter("preferences"),
        **options,
    )
    return model.to_table(learnt)


def gather_users(
    coded_ratings: duckdb.DuckDBPyRelation,
    factors: duckdb.DuckDBPyRelation,
    *,
    artifact_ratings: duckdb.DuckDBPyRelation,
    levels: duckdb.DuckDBPyRelation,
    sensitive_values: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    scale: duckdb.DuckDBPyRelation,
    options: str | Mapping[str, Any],
) -> pa.Table:
    """Gather users into groups and name groups and members at random.

    `coded_ratings` as for `learn_preferences`, `factors` what it returned, `artifact_ratings` (user_code, position from
    1, rating), `levels` (user_code, level) with a row for each user, `sensitive_values` (user_code, attribute, value),
    `items` (item_code, item_id), `scale` one row, `options` the fields of `Gathering`, as a mapping or as JSON.

    Methods that gather on artifacts gather the users who rated some of them, all others everybody. Returns a table
    (user_code, group_id, pseudonym, bin, unchanged) in the order of the group ids. Raises InputError where users or
    options make no sense to the method, PromiseError where a method broke its promise.
    """
    chosen = validated(Gathering, _as_mapping(options))
    chosen = chosen.model_copy(update={"threads": chosen.threads or os.cpu_count() or 1})
    level_codes, level = _columns(levels.order("user_code"), "user_code", "level")
    codes, artifacts = _artifact_table(artifact_ratings)
    if chosen.method not in ON_ARTIFACTS:
        codes = level_codes
    if len(codes) < chosen.k:
        msg = f"{len(codes)} users rated one of the artifacts, too few for groups of at least {chosen.k}."
        raise InputError(msg)
    names, sensitive = _sensitive_table(sensitive_values, codes)
    identifying = _identifying(items, chosen.sensitive_items)
    learnt = _count(factors) > 0
    [(low, high)] = scale.project("scale_min, scale_max").fetchall()

    def read_ratings() -> RatingMatrix:
        return RatingMatrix.from_batches(
            coded_ratings.to_arrow_reader(_BATCH_ROWS), n_users=len(level_codes), n_items=len(identifying)
        )

    users = Users(
        n=len(codes),
        read_ratings=read_ratings,
        preferences=model.from_table(factors.to_arrow_reader(_BATCH_ROWS)) if learnt else None,
        artifacts=artifacts,
        levels=level[codes].astype(np.int32),
        sensitive=sensitive,
        sensitive_names=names,
        identifying=identifying,
        scale=(low, high),
        options=chosen,
    )
    return _named(codes, gather(users))


def cells_to_add(
    cells: duckdb.DuckDBPyRelation,
    groups: duckdb.DuckDBPyRelation,
    shown_items: duckdb.DuckDBPyRelation,
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    b: int | str,
    l: int | str,  # noqa: E741
) -> pa.Table:
    """Choose cells to add until every set of b items that some user rated is shown by at least l groups.

    `cells` (group_id, item_id) are shown already, `groups` (user_id, group_id), `shown_items` (item_id, item_code) may
    be shown. Returns a table (group_id, item_id). Raises InputError where l is more than the number of groups or the
    sets are too many to look at.
    """
    problem = _Coverage.read(cells, groups, shown_items, coded_ratings)
    # Whoever knew the seed could tell which cells are made up.
    added_groups, added_items = item_diversity.added_cells(
        problem.cells,
        len(problem.group_ids),
        problem.ratings,
        problem.shown,
        b=int(b),
        l=int(l),
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
    b: int | str,
) -> pa.Table:
    """Count the groups that show the set of b items, rated by some user, which the fewest show: (least_groups)."""
    problem = _Coverage.read(cells, groups, shown_items, coded_ratings)
    least = item_diversity.least_coverage(
        problem.cells, len(problem.group_ids), problem.ratings, problem.shown, b=int(b)
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
    ) -> "_Coverage":
        [(n_users, n_items)] = coded_ratings.aggregate("max(user_code) + 1, max(item_code) + 1").fetchall()
        items = shown_items.project("item_code, item_id").to_arrow_table().combine_chunks()
        codes = items["item_code"].to_numpy()
        shown = np.zeros(n_items, dtype=bool)
        shown[codes] = True
        places = np.full(n_items, 0)
        places[codes] = np.arange(len(codes))
        [group_ids] = _columns(groups.aggregate("group_id").order("group_id"), "group_id")
        coded_cells = cells.set_alias("cells").join(shown_items.set_alias("items"), "item_id")
        cell_groups, cell_items = _columns(coded_cells, "group_id", "item_code")
        return cls(
            cells=(np.searchsorted(group_ids, cell_groups).astype(np.int32), cell_items.astype(np.int32)),
            group_ids=group_ids,
            item_ids=items["item_id"].combine_chunks().take(pa.array(places)),
            shown=shown,
            ratings=RatingMatrix.from_batches(coded_ratings.to_arrow_reader(_BATCH_ROWS), n_users, n_items),
        )


def _as_mapping(options: str | Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(options) if isinstance(options, str) else options)


def _count(relation: duckdb.DuckDBPyRelation) -> int:
    return int(relation.count("*").fetchall()[0][0])


def _columns(relation: duckdb.DuckDBPyRelation, *names: str) -> list[NDArray[Any]]:
    table = relation.to_arrow_table()
    return [table[name].to_numpy() for name in names]


def _artifact_table(artifact_ratings: duckdb.DuckDBPyRelation) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The codes of the users who rated an artifact, ascending, and their float64[n, a], NaN where not rated."""
    users, positions, ratings = _columns(artifact_ratings, "user_code", "position", "rating")
    codes, rows = np.unique(users, return_inverse=True)
    table = np.full((len(codes), int(positions.max(initial=1))), np.nan)
    table[rows, positions - 1] = ratings
    return codes, table


def _sensitive_table(
    values: duckdb.DuckDBPyRelation, codes: NDArray[np.int32]
) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the sensitive attributes and float64[n, s], NaN where a user has no value; users as in `codes`."""
    users, attributes, numbers = _columns(values, "user_code", "attribute", "value")
    names, columns = np.unique(attributes.astype(str), return_inverse=True)
    table = np.full((len(codes), len(names)), np.nan)
    gathered = np.isin(users, codes)
    table[np.searchsorted(codes, users[gathered]), columns[gathered]] = numbers[gathered]
    return names.tolist(), table


def _identifying(items: duckdb.DuckDBPyRelation, sensitive_items: Sequence[Any]) -> NDArray[np.bool_]:
    """Which items, by code, are not sensitive."""
    table = items.project("item_code, cast(item_id as varchar) as item_id").to_arrow_table()
    identifying = np.ones(len(table), dtype=bool)
    sensitive = pc.is_in(table["item_id"], pa.array([str(item) for item in sensitive_items], pa.string()))
    identifying[table["item_code"].to_numpy()[sensitive.to_numpy()]] = False
    return identifying


def _named(codes: NDArray[np.int32], found: Groups) -> pa.Table:
    """The secret map under random names, in the order of the group ids."""
    group_ids = random_group_ids(int(found.groups.max()) + 1)[found.groups]
    order = np.argsort(group_ids, kind="stable")

    def beside(values: NDArray[Any] | None, kind: pa.DataType) -> pa.Array:
        return pa.nulls(len(order), kind) if values is None else pa.array(values[order], kind)

    return pa.table(
        {
            "user_code": pa.array(codes[order].astype(np.int32)),
            "group_id": pa.array(group_ids[order]),
            "pseudonym": pa.array(random_pseudonyms(len(order))),
            "bin": beside(found.bins, pa.int32()),
            "unchanged": beside(found.unchanged, pa.bool_()),
        }
    )
