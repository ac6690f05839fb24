"""Noise of the items' vectors, as the pipeline draws it."""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from kgather._settings.project import read
from kgather.udfs._shared.arrow_columns import lists
from kgather.udfs.preferences import item_noise
from kgather.udfs.preferences.item_noise import ItemNoise

KEY_BYTES = 32
KEY_SCHEMA = pa.schema([pa.field("key", pa.binary())])
_SHARED = -1  # in the place of an item's code: the vector that rare items share


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
    key: duckdb.DuckDBPyRelation, items: duckdb.DuckDBPyRelation, *, settings: str | Mapping[str, Any]
) -> pa.Table:
    """Draw the noise of every item, and that of the vector that rare items share.

    `key` has one row, `items` (item_code, item_id, raters, rating_sum). Items that somebody rated have the same noise
    whatever else the catalogue lists. Returns a table (item_code, level, factor, raters), see `ItemNoise`; the shared
    vector has the code -1.
    """
    asked = read(settings)
    listed = _listed(items)
    rated = np.array([raters > 0 for _, raters, _ in listed], dtype=bool)
    drawn = item_noise.draw(_secret(key, listed), len(listed), asked.rank)
    # The draws are handed out to rated items first, in their order.
    place = np.empty(len(listed), dtype=np.int64)
    place[np.concatenate([np.flatnonzero(rated), np.flatnonzero(~rated)])] = np.arange(len(listed))
    codes = np.concatenate([np.arange(len(listed)), [_SHARED]]).astype(np.int32)
    factors = np.concatenate([drawn.factors[place], np.zeros((1, asked.rank))])
    return pa.table(
        {
            "item_code": pa.array(codes),
            "level": pa.array(np.append(drawn.level[place], drawn.shared)),
            "factor": lists(factors.astype(np.float32)),
            "raters": pa.array(np.append(drawn.raters[place], 0.0)),
        }
    )


def private_seed(key: duckdb.DuckDBPyRelation, items: duckdb.DuckDBPyRelation) -> bytes:
    """What the noise of a private item side is drawn from, 32 bytes: a function of the key and of the ratings."""
    return hmac.digest(_secret(key, _listed(items)), b"private items", "sha256")


def _listed(items: duckdb.DuckDBPyRelation) -> list[tuple[str, int, int]]:
    """Id, raters and sum of the ratings in millionths of each item, by code."""
    columns = "cast(item_id as varchar), raters, cast(rating_sum as varchar)"
    rows = items.order("item_code").project(columns).fetchall()
    return [(item, raters, int(total)) for item, raters, total in rows]


def _secret(key: duckdb.DuckDBPyRelation, listed: list[tuple[str, int, int]]) -> bytes:
    [(held,)] = key.fetchall()
    return item_noise.secret_of(held, (each for each in listed if each[1]))


def read_noise(relation: duckdb.DuckDBPyRelation) -> ItemNoise:
    """The noise that `draw_noise` made."""
    table = relation.order("item_code").to_arrow_table()
    level, raters = table["level"].to_numpy(), table["raters"].to_numpy()
    factors = np.stack(table["factor"].to_numpy()).astype(np.float64)
    return ItemNoise(level=level[1:], factors=factors[1:], shared=float(level[0]), raters=raters[1:])
