"""Noise of the items' vectors, as the pipeline draws it."""

import hmac
import secrets

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._settings.publication import PublishSettings
from kgather._steps.relations import columns
from kgather.udfs.preferences import item_noise
from kgather.udfs.preferences.item_noise import ItemNoise

KEY_BYTES = 32
KEY_SCHEMA = pa.schema([pa.field("key", pa.binary())])


def noise_key(session: duckdb.DuckDBPyConnection, existing: str) -> pa.Table:
    """The key of all noise, (key), one row: the one that the relation `existing` holds, or a new one.

    `existing`: the name of the relation, which the first run has not made yet.
    """
    try:
        kept = session.sql(f"select key from {existing}").fetchall()
    except duckdb.CatalogException:
        kept = []
    [key] = kept[0] if len(kept) == 1 else [secrets.token_bytes(KEY_BYTES)]
    return pa.table({"key": pa.array([key], pa.binary())}, schema=KEY_SCHEMA)


def draw_noise(
    key: duckdb.DuckDBPyRelation, users: duckdb.DuckDBPyRelation, items: duckdb.DuckDBPyRelation
) -> pa.Table:
    """Draw the noise in counts of raters, by which it is chosen which items are shown: (item_code, raters).

    `key` has one row, `users` a row each with rated_so, `items` (item_code, raters). Items that somebody rated have the
    same noise whatever else the catalogue lists.
    """
    rated = _rated(items)
    noise = ItemNoise(_secret(key, users), rated)
    return pa.table({"item_code": pa.array(np.arange(len(rated), dtype=np.int32)), "raters": pa.array(noise.raters)})


def noise_of(
    key: duckdb.DuckDBPyRelation,
    users: duckdb.DuckDBPyRelation,
    items: duckdb.DuckDBPyRelation,
    asked: PublishSettings,
) -> ItemNoise:
    """The noise of items' vectors that are learnt with these settings."""
    return ItemNoise(_secret(key, users), _rated(items), asked.learnt)


def private_seed(key: duckdb.DuckDBPyRelation, users: duckdb.DuckDBPyRelation) -> bytes:
    """What the noise of a private item side is drawn from, 32 bytes: a function of the key and of all ratings."""
    return private_seed_of(_secret(key, users))


def private_seed_of(secret: bytes) -> bytes:
    """The same from the secret of the noise, see `item_noise.secret_of`."""
    return hmac.digest(secret, b"private items", "sha256")


def _secret(key: duckdb.DuckDBPyRelation, users: duckdb.DuckDBPyRelation) -> bytes:
    [(held,)] = key.fetchall()
    rows = users.project("cast(rated_so as varchar)").fetchall()
    return item_noise.secret_of(held, (int(person) for (person,) in rows))


def _rated(items: duckdb.DuckDBPyRelation) -> NDArray[np.bool_]:
    [raters] = columns(items.order("item_code"), "raters")
    return np.asarray(raters > 0)
