"""Users into groups, as the pipeline gathers them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._methods import Groups, Users
from kgather._settings.project import read
from kgather._steps import compiling
from kgather._steps.gathering import gather_beside
from kgather._steps.relations import BATCH_ROWS, columns, count
from kgather.udfs.gathering._group_ids import random_group_ids, random_pseudonyms
from kgather.udfs.preferences import model
from kgather.udfs.ratings.matrix import RatingMatrix

compiling.tell()

_SCHEMA = pa.schema(
    {
        "user_code": pa.int32(),
        "group_id": pa.int64(),
        "lineage": pa.int64(),
        "pseudonym": pa.string(),
        "bin": pa.int32(),
        "unchanged": pa.bool_(),
    }
)


def gather_users(
    coded_ratings: duckdb.DuckDBPyRelation,
    factors: duckdb.DuckDBPyRelation,
    *,
    artifact_ratings: duckdb.DuckDBPyRelation,
    artifact_categories: duckdb.DuckDBPyRelation,
    levels: duckdb.DuckDBPyRelation,
    sensitive_values: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    scale: duckdb.DuckDBPyRelation,
    stayed: duckdb.DuckDBPyRelation,
    origins: duckdb.DuckDBPyRelation,
    settings: str | Mapping[str, Any],
) -> pa.Table:
    """Gather users into groups and name groups and members at random.

    `coded_ratings` as for `learn_preferences`, `factors` what it returned, `artifact_ratings` (user_code, position from
    1, rating), `artifact_categories` (user_code, place from 1, category) what users have of `categorical_artifacts`,
    `levels` (user_code, level) with a row for each user, `sensitive_values` (user_code, attribute, value),
    `items` (item_code, item_id), `scale` one row, `stayed` (user_code, lineage) those whose group of the last release
    stays, by the id that it was formed with; `origins` (user_code, group_id) the groups of another release that this
    one's are made of, empty unless `within` is set; `settings` the project's vars
    as dbt hands them over (see `kgather._settings.project.read`).

    Methods that gather on artifacts gather the users who rated some of them, all others everybody. Returns a table
    (user_code, group_id, lineage, pseudonym, bin, unchanged) in the order of the group ids, empty without users;
    lineage is the id that a group was formed with. Raises InputError where users or options make no sense to the
    method, PromiseError where a method broke its promise.
    """
    asked = read(settings)
    on_artifacts = asked.of_method.gathers_on == "artifacts"
    level_codes, level = columns(levels.order("user_code"), "user_code", "level")
    if not len(level_codes):  # only where dbt is asked for empty relations: an input without ratings was refused before
        return _SCHEMA.empty_table()
    many = len(asked.categorical_artifacts)
    codes, artifacts, categorical = artifact_table(artifact_ratings, artifact_categories, many)
    if not on_artifacts:
        codes = level_codes
    if len(codes) < asked.k:
        msg = f"{len(codes)} users rated one of the artifacts, too few for groups of at least {asked.k}."
        raise InputError(msg)
    names, sensitive = _sensitive_table(sensitive_values, codes)
    identifying = _identifying(items, asked.sensitive_items)
    learnt = count(factors) > 0
    [(low, high)] = scale.project("scale_min, scale_max").fetchall()

    def read_ratings() -> RatingMatrix:
        return RatingMatrix.from_batches(
            coded_ratings.to_arrow_reader(BATCH_ROWS), n_users=len(level_codes), n_items=len(identifying)
        )

    users = Users(
        n=len(codes),
        read_ratings=read_ratings,
        preferences=model.from_table(factors.to_arrow_reader(BATCH_ROWS)) if learnt else None,
        artifacts=artifacts,
        levels=level[codes].astype(np.int32),
        sensitive=sensitive,
        sensitive_names=names,
        identifying=identifying,
        scale=(low, high),
        asked=asked,
        threads=asked.threads or os.cpu_count() or 1,
        on_artifacts=on_artifacts,
        categorical=categorical,
    )
    within = _origins(origins, users.n) if asked.within is not None else None
    lineages = _lineages(stayed, len(codes))
    found = gather_beside(users, asked.of_method, asked.options, lineages, asked.gathered, within)
    return _named(codes, found, lineages, keep=asked.keep_group_ids)


def _lineages(stayed: duckdb.DuckDBPyRelation, n: int) -> NDArray[np.int64]:
    """The lineage of everybody's group, int64[n] by code; -1 where a user is in none yet."""
    codes, lineages = columns(stayed, "user_code", "lineage")
    known = np.full(n, -1, dtype=np.int64)
    known[codes] = lineages
    return known


def _origins(origins: duckdb.DuckDBPyRelation, n: int) -> NDArray[np.int64]:
    """The group of another release that everybody is in, int64[n] by code.

    Raises InputError where somebody is in none.
    """
    codes, groups = columns(origins, "user_code", "group_id")
    found = np.zeros(n, dtype=np.int64)
    found[codes] = groups
    missing = n - len(np.unique(codes))
    if missing:
        msg = "some users are in no group of the release that this one is within. Give both the same people."
        raise InputError(msg)
    return found


def artifact_table(
    artifact_ratings: duckdb.DuckDBPyRelation, artifact_categories: duckdb.DuckDBPyRelation, n_categorical: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """The codes of the users who rated an artifact, ascending, their float64[n, a + n_categorical], NaN where not rated
    and where they have no category, and which columns hold codes of categories, bool."""
    codes, artifacts = _rating_table(artifact_ratings)
    categories = _category_table(artifact_categories, codes, n_categorical)
    categorical = np.repeat([False, True], [artifacts.shape[1], n_categorical])
    return codes, np.hstack([artifacts, categories]), categorical


def _rating_table(artifact_ratings: duckdb.DuckDBPyRelation) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    users, positions, ratings = columns(artifact_ratings, "user_code", "position", "rating")
    codes, rows = np.unique(users, return_inverse=True)
    table = np.full((len(codes), int(positions.max(initial=1))), np.nan)
    table[rows, positions - 1] = ratings
    return codes, table


def _category_table(
    artifact_categories: duckdb.DuckDBPyRelation, codes: NDArray[np.integer], n_columns: int
) -> NDArray[np.float64]:
    """The codes of categories float64[n, n_columns], NaN where a user has none; users as in `codes`."""
    users, places, categories = columns(artifact_categories, "user_code", "place", "category")
    table = np.full((len(codes), n_columns), np.nan)
    gathered = np.isin(users, codes)
    table[np.searchsorted(codes, users[gathered]), places[gathered] - 1] = categories[gathered]
    return table


def _sensitive_table(
    values: duckdb.DuckDBPyRelation, codes: NDArray[np.integer]
) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the sensitive attributes and float64[n, s], NaN where a user has no value; users as in `codes`."""
    users, attributes, numbers = columns(values, "user_code", "attribute", "value")
    names, places = np.unique(attributes.astype(str), return_inverse=True)
    table = np.full((len(codes), len(names)), np.nan)
    gathered = np.isin(users, codes)
    table[np.searchsorted(codes, users[gathered]), places[gathered]] = numbers[gathered]
    return names.tolist(), table


def _identifying(items: duckdb.DuckDBPyRelation, sensitive_items: Sequence[Any]) -> NDArray[np.bool_]:
    """Which items, by code, are not sensitive."""
    table = items.project("item_code, cast(item_id as varchar) as item_id").to_arrow_table()
    identifying = np.ones(len(table), dtype=bool)
    sensitive = pc.is_in(table["item_id"], pa.array([str(item) for item in sensitive_items], pa.string()))
    identifying[table["item_code"].to_numpy()[sensitive.to_numpy()]] = False
    return identifying


def _named(codes: NDArray[np.integer], found: Groups, lineages: NDArray[np.int64], *, keep: bool) -> pa.Table:
    """The secret map under random names, in the order of the group ids, of those who are in a group.

    keep: groups that stay have their old ids.
    """
    count = int(found.groups.max()) + 1
    # Each user of a group that stays knows its lineage; those of a new group know none.
    known = np.full(count, -1, dtype=np.int64)
    known[found.groups] = lineages
    fresh = random_group_ids(count, taken=known)
    born = np.where(known < 0, fresh, known)[found.groups]
    group_ids = born if keep else fresh[found.groups]
    order = np.argsort(group_ids, kind="stable")
    order = order[found.groups[order] >= 0]

    def beside(values: NDArray[np.generic] | None, kind: pa.DataType) -> pa.Array:
        return pa.nulls(len(order), kind) if values is None else pa.array(values[order], kind)

    return pa.table(
        {
            "user_code": pa.array(codes[order].astype(np.int32)),
            "group_id": pa.array(group_ids[order]),
            "lineage": pa.array(born[order]),
            "pseudonym": pa.array(random_pseudonyms(len(order))),
            "bin": beside(found.bins, pa.int32()),
            "unchanged": beside(found.unchanged, pa.bool_()),
        },
        schema=_SCHEMA,
    )
