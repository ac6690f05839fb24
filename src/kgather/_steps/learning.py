"""Preferences, as the pipeline learns them."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kgather._errors import InputError, PromiseError
from kgather._progress import reporter
from kgather._settings.project import ProjectSettings, read
from kgather._settings.publication import PublishSettings
from kgather._steps import compiling
from kgather._steps.noise import noise_of, private_seed
from kgather._steps.relations import BATCH_ROWS, columns, count
from kgather.udfs.preferences import item_side, model, private_items
from kgather.udfs.preferences._accounting import Charge, epsilon_of
from kgather.udfs.preferences.item_side import ItemSide
from kgather.udfs.preferences.model import Preferences, Progress, Start
from kgather.udfs.preferences.private_items import PrivateModel
from kgather.udfs.ratings.matrix import RatingMatrix

compiling.tell()


def learn_preferences(
    coded_ratings: duckdb.DuckDBPyRelation,
    *,
    users: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    scale: duckdb.DuckDBPyRelation,
    noise_key: duckdb.DuckDBPyRelation,
    settings: str | Mapping[str, Any],
    last: Callable[[], duckdb.DuckDBPyRelation] | None = None,
) -> pa.Table:
    """Learn levels and factors of users and items, and what a release may show of the items.

    `coded_ratings` has user_code and item_code (dense, from 0) and rating, `users` (user_code and rated, a user's
    number of items) and `items` a row for each code, `scale` one row with scale_min and scale_max. `noise_key` has one
    row. `settings` are the project's vars as dbt hands them over (see
    `kgather._settings.project.read`). `last` gives what the last release showed of items (item_id, level, factor), from
    which a release that follows goes on; it raises where there is none.

    Returns a table (side, code, level, factor, charge), empty where the solver is none or there are no users. The
    side `item` has what users are compared by, `noise` what was added to it, and `shown` the sum, without the items
    that are left out. With a private item side, `item` and `shown` are the same, and rows of the side `charge` say
    what it cost. Raises InputError where the options make no sense.
    """
    asked = read(settings)
    if asked.solver == "none":
        return model.CHARGED_SCHEMA.empty_table()
    low, high = scale.project("scale_min, scale_max").fetchall()[0]
    [rated] = columns(users.order("user_code"), "rated")
    if not len(rated):  # only where dbt is asked for empty relations: an input without ratings was refused before
        return model.CHARGED_SCHEMA.empty_table()
    n_items = count(items)

    def ratings() -> RatingMatrix:
        return RatingMatrix.from_batches(coded_ratings.to_arrow_reader(BATCH_ROWS), len(rated), n_items, rated)

    if asked.item_epsilon is not None:
        return _private(ratings(), (low, high), private_seed(noise_key, users), asked)
    learnt, side = learn_apart_as(
        ratings(),
        asked,
        scale=(low, high),
        threads=_threads(asked),
        progress=reporter("preferences"),
        start=_start(last, items, asked.rank) if last is not None and asked.history else None,
    )
    noise = noise_of(noise_key, users, items, asked)
    level, factors = side.with_noise(noise, asked.noise_of_items)
    shown = replace(learnt, item_level=level.astype(np.float32), item_factors=factors.astype(np.float32))
    kept = np.ones(n_items, dtype=bool)
    if asked.rare_items == "drop":
        kept = side.kept(noise, asked.least_raters)
    return model_table(learnt, shown, kept)


def learn_apart_as(
    ratings: RatingMatrix,
    asked: PublishSettings,
    *,
    scale: tuple[float, float],
    threads: int,
    progress: Progress | None = None,
    start: Start | None = None,
) -> tuple[Preferences, ItemSide]:
    """Learn with the solver and the options that are asked for; see `item_side.learn_apart`.

    Raises InputError where the item side is proven: there it has no vectors before noise.
    """
    if asked.item_epsilon is not None:
        msg = "the items' vectors of this release have a proven bound (item_epsilon), and none without noise."
        raise InputError(msg)
    return item_side.learn_apart(
        ratings,
        min_raters=asked.least_raters,
        solver=asked.solver,
        rank=asked.rank,
        seed=asked.seed,
        threads=threads,
        # Ratings that are all the same span no scale.
        scale=scale if scale[0] < scale[1] else None,
        progress=progress,
        start=start,
        **asked.solver_options,
    )


def _start(last: Callable[[], duckdb.DuckDBPyRelation], items: duckdb.DuckDBPyRelation, rank: int) -> Start | None:
    """The items' vectors of the last release, of those items that it showed; None where there was none.

    They are published, so that nothing of those who have left is in them that everybody could not know.
    """
    try:
        table = last().project("cast(item_id as varchar) as item_id, level, factor").to_arrow_table()
    except duckdb.CatalogException:
        return None
    codes = items.project("cast(item_id as varchar) as item_id, item_code").to_arrow_table()
    names = codes["item_id"].combine_chunks()
    places = pc.index_in(table["item_id"], names).to_numpy()
    level = np.full(len(codes), np.nan, dtype=np.float32)
    factors = np.zeros((len(codes), rank), dtype=np.float32)
    lengths = pc.list_value_length(table["factor"]).to_numpy()
    known = np.isfinite(places) & (lengths == rank)
    at = codes["item_code"].to_numpy()[places[known].astype(np.int64)]
    level[at] = table["level"].to_numpy()[known]
    flat = pc.list_flatten(table["factor"].filter(pa.array(known))).to_numpy()
    factors[at] = flat.reshape(-1, rank)
    return level, factors


def learn_private_as(
    ratings: RatingMatrix,
    asked: PublishSettings,
    *,
    scale: tuple[float, float],
    noise_seed: bytes,
    threads: int,
    progress: Progress | None = None,
) -> PrivateModel:
    """Learn with the bound that is asked for; see `private_items.learn_private`.

    Raises PromiseError where the measurements together cost more.
    """
    assert asked.item_epsilon is not None
    learnt = private_items.learn_private(
        ratings,
        scale=scale,
        epsilon=asked.item_epsilon,
        delta=asked.item_delta,
        noise_seed=noise_seed,
        rank=asked.rank,
        threads=threads,
        progress=progress,
    )
    check_cost(learnt.charges, asked)
    return learnt


def check_cost(charges: Sequence[Charge], asked: PublishSettings) -> None:
    """Raise PromiseError where measurements together cost more than is asked for."""
    assert asked.item_epsilon is not None
    spent = epsilon_of(math.fsum(charge.rho for charge in charges), asked.item_delta)
    if spent > asked.item_epsilon:
        msg = f"the items' vectors cost an epsilon of {spent:g}, more than item_epsilon {asked.item_epsilon:g}."
        raise PromiseError(msg)


def _threads(asked: PublishSettings) -> int:
    return asked.threads or os.cpu_count() or 1


def _private(matrix: RatingMatrix, scale: tuple[float, float], seed: bytes, asked: ProjectSettings) -> pa.Table:
    """The model with a private item side, which is shown as it is, and what it cost."""
    learnt = learn_private_as(
        matrix, asked, scale=scale, noise_seed=seed, threads=_threads(asked), progress=reporter("preferences")
    )
    everything = np.ones(matrix.n_items, dtype=bool)
    return model_table(learnt.preferences, learnt.preferences, everything, learnt.charges)


def model_table(
    learnt: Preferences, shown: Preferences, kept: NDArray[np.bool_], charges: Sequence[Charge] = ()
) -> pa.Table:
    """What `learn_preferences` returns: the model before noise, as shown, and the items bool[m] that are shown."""
    return pa.concat_tables(model_tables(learnt, shown, kept, charges))


def model_tables(
    learnt: Preferences, shown: Preferences, kept: NDArray[np.bool_], charges: Sequence[Charge] = ()
) -> Iterator[pa.Table]:
    """`model_table` in pieces, of which only one need be in memory."""

    def uncharged(table: pa.Table) -> pa.Table:
        return table.append_column("charge", pa.nulls(len(table), model.CHARGE))

    yield uncharged(model.to_table(learnt))
    yield uncharged(model.of_items(shown, kept, "shown"))
    added = replace(
        shown,
        item_level=shown.item_level - learnt.item_level,
        item_factors=shown.item_factors - learnt.item_factors,
    )
    yield uncharged(model.of_items(added, np.ones(len(kept), dtype=bool), "noise"))
    yield model.charged(charges, learnt.rank)
