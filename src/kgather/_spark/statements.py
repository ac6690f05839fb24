"""The project's own SQL of staging, as text: DuckDB runs it on the executors, block by block."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from kgather._loaders.report import IdType
from kgather._publishing import pipeline
from kgather._settings.publication import PublishSettings

LOADED = "kgather_loaded"
READ, STAGED = "base_kgather__read_ratings", "stg_kgather__ratings"
STAGED_OF_READ = "base_kgather__staged_of_read"
REJECTED = "int_kgather__rejected_ratings"
CATALOGUE = "stg_kgather__items"
USERS, ITEMS = "int_kgather__users", "int_kgather__items"
MODELS = (READ, "base_kgather__sorted_ratings", "base_kgather__repeated_pairs", STAGED, USERS, REJECTED, ITEMS)
"""The models that are run on each block, each from those before it."""


def staging(settings: PublishSettings, ids: Mapping[str, IdType], *, verbose: bool) -> dict[str, str]:
    """The SQL of `MODELS`, by name, as dbt writes it for these settings and types of ids (of user and item).

    dbt writes shorter SQL where no pair is repeated, as it looks. So it is shown ratings in which one is.
    Raises InputError where dbt refuses the settings.
    """
    with tempfile.TemporaryDirectory(prefix="kgather-spark-") as folder:
        workspace = pipeline.Workspace(Path(folder))
        workspace.write_profile()
        with workspace.connected() as con:
            con.execute("create schema loaded")
            con.execute(
                f"create table loaded.ratings (user_id {ids['user']}, item_id {ids['item']}, rating double, "
                "rated_at timestamp, source varchar, line bigint, raw varchar, problem varchar)"
            )
            con.execute(f"create table {CATALOGUE} as select cast('1' as {ids['item']}) as item_id")
            con.execute(
                "insert into loaded.ratings select '1', '1', ?, null, '', 1, null, null from range(2)",
                [_usable(settings)],
            )
        variables = variables_of(settings, ids["item"])
        written = pipeline.compiled(workspace, variables, (LOADED, *MODELS), run=True, verbose=verbose)
    return {name: written[name] for name in MODELS}


def variables_of(settings: PublishSettings, item_id_type: IdType) -> dict[str, object]:
    """The settings as dbt takes them."""
    return settings.model_dump(mode="json") | {"ratings": LOADED, "item_id_type": item_id_type.lower()}


def _usable(settings: PublishSettings) -> float:
    """A rating that is not set aside."""
    ends = settings.scale[:2] if settings.scale else [1.0, 2.0]
    return next(
        (end for end in ends if end != settings.not_rated and not (settings.rating_log and end < 0)), float(ends[0])
    )
