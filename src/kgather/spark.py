"""Releases on Spark: `kgather.spark.publish` takes a DataFrame and makes the same release as `kgather.publish`.

It needs the extra `kgather[spark]` and Java 17 or newer. docs/spark.md says what there is on Spark and what not.
"""

import warnings
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgather._api import FilePath, Progress, Release, _heard, _in_python, _load_options, _settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["publish"]


def publish(
    ratings: "DataFrame",
    out: FilePath,
    *,
    k: int,
    user_attributes: "DataFrame | None" = None,
    items: "DataFrame | None" = None,
    force: bool = False,
    noise_key: FilePath | None = None,
    secret_map: str | None = None,
    checkpoint: str | None = None,
    leaf_users: int | None = None,
    ratings_per_block: int | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Release:
    """Publish a DataFrame of ratings as a release that anyone may have, or write nothing.

    Ratings, ids of users and the map from users to groups stay on the executors. What the user should know is a warning
    (`UserWarning`). One publication at a time in a process.

    Args:
        ratings: One row for each pair of user and item, from any table that Spark reads. Columns of integers or texts
            for users and items, of numbers for ratings.
        out: The folder of the release, on the driver: a new or an empty one.
        k: Users in the smallest group.
        user_attributes: One row a user, with the column `level_column`: the size of group that each user asks for.
        items: The catalogue: one row for each item that may be rated, whether somebody did or not.
        force: Replace what is at `out`.
        noise_key: The file with the SECRET key of the noise in items, on the driver, made if there is none. The user's
            folder for state where not given.
        secret_map: Where Spark writes the SECRET map from users to groups as Parquet; nowhere if not given.
        checkpoint: Where Spark keeps the finished stages until the release is there, all SECRET: a run that was stopped
            goes on from there when it is called again with the same rows and settings. Not kept if not given.
        leaf_users: Users that are gathered together at most; a million where not given.
        ratings_per_block: Ratings that a worker has in memory at once; half a million where not given.
        verbose: Let dbt say on standard error what it does.
        progress: Called as `progress(step, done, total)`.
        settings: Settings of docs/vars.md that docs/spark.md lists, and `user_column`, `item_column`, `rating_column`,
            `time_column`.

    Returns:
        The release. Its audit is passed.

    Raises:
        InputError: Something is asked for that Spark does not have, or input or settings cannot be published; nothing
            was written.
        PromiseError: A promise of the release is not kept; nothing was written.
        KgatherError: Spark broke, or the disk is full; nothing was written.

    Example:
        >>> ratings = spark.read.parquet("ratings.parquet")  # doctest: +SKIP
        >>> release = kgather.spark.publish(ratings, "release", k=10)  # doctest: +SKIP
    """
    from kgather._loaders import LoadOptions

    load = {name: value for name, value in settings.items() if name in LoadOptions.model_fields}
    options = {name: value for name, value in settings.items() if name not in load}
    with _in_python():
        from kgather._publishing.asked import asked_settings
        from kgather._publishing.publish import AttributesSource
        from kgather._spark import needs

        needs.check_installed()
        from kgather._spark.publish import LEAF_USERS
        from kgather._spark.publish import publish as run
        from kgather._spark.session import without_pandas
        from kgather._spark.staging import RATINGS_PER_BLOCK

        # Where they are from is nowhere read: only that there are some.
        load_options = _load_options(load if items is None else {**load, "items": "items"})
        attributes = None if user_attributes is None else AttributesSource("")
        asked = asked_settings(_settings({"k": k, **options}), load_options, attributes)
        with _heard(progress) as report, warnings.catch_warnings():
            without_pandas()
            published = run(
                ratings,
                Path(out),
                asked,
                load_options,
                user_attributes=user_attributes,
                items=items,
                force=force,
                noise_key=None if noise_key is None else Path(noise_key),
                secret_map=None if secret_map is None else fspath(secret_map),
                checkpoint=None if checkpoint is None else fspath(checkpoint),
                leaf_users=LEAF_USERS if leaf_users is None else leaf_users,
                ratings_per_block=RATINGS_PER_BLOCK if ratings_per_block is None else ratings_per_block,
                verbose=verbose,
                report=report,
                warn=lambda message: warnings.warn(message, UserWarning, stacklevel=4),
            )
    return Release(published.folder)
