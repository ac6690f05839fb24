"""What users like and items are like, in r numbers each, and the level at which each is rated.

The prediction for user u and item i is user_level[u] + item_level[i] + user_factors[u] . item_factors[i],
in the unit of the ratings and not clipped to their scale; the mean of all ratings is part of item_level.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather.udfs._shared.arrow_columns import codes, lists, numbers, texts, vectors
from kgather.udfs.preferences._accounting import Charge

Progress = Callable[[int, int], None]
Start = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Where items begin: level float32[m], NaN where nothing is known of an item, and factors float32[m, r]."""

SCHEMA = pa.schema(
    [
        pa.field("side", pa.string()),
        pa.field("code", pa.int32()),
        pa.field("level", pa.float32()),
        pa.field("factor", pa.list_(pa.float32())),
    ]
)
CHARGE = pa.struct(
    [
        pa.field("what", pa.string()),
        pa.field("sensitivity", pa.float64()),
        pa.field("deviation", pa.float64()),
        pa.field("numbers", pa.int64()),
        pa.field("rho", pa.float64()),
    ]
)
CHARGED_SCHEMA = SCHEMA.append(pa.field("charge", CHARGE))
"""Rows of the side 'charge' say what was measured for a private item side, and what it cost; see `Charge`."""


@dataclass(frozen=True)
class Preferences:
    """A low-rank model of the ratings, see the module.

    user_level float32[n], user_factors float32[n, r], item_level float32[m], item_factors float32[m, r].
    held_out_rmse: root mean square error on the ratings held out while learning, step by step (a sweep of
    ALS, a factor of Funk's SVD), in the unit of the ratings; empty if none were held out.
    """

    user_level: NDArray[np.float32]
    user_factors: NDArray[np.float32]
    item_level: NDArray[np.float32]
    item_factors: NDArray[np.float32]
    held_out_rmse: tuple[float, ...] = ()

    @property
    def rank(self) -> int:
        """The number of factors."""
        return int(self.user_factors.shape[1])


def to_table(preferences: Preferences) -> pa.Table:
    """One row a user and a row an item: side ('user' or 'item'), code int32, level float32, factor
    list<float32>.
    """
    tables = []
    for side, level, factors in (
        ("user", preferences.user_level, preferences.user_factors),
        ("item", preferences.item_level, preferences.item_factors),
    ):
        count = len(level)
        columns = [
            pa.array([side], pa.string()).take(pa.array(np.zeros(count, dtype=np.int32))),
            pa.array(np.arange(count, dtype=np.int32)),
            pa.array(level, pa.float32()),
            lists(factors),
        ]
        tables.append(pa.Table.from_arrays(columns, schema=SCHEMA))
    return pa.concat_tables(tables)


def of_items(preferences: Preferences, kept: NDArray[np.bool_], side: str) -> pa.Table:
    """One row for each of some items, bool[m], as `to_table` has them, but of a side of its own."""
    codes = np.flatnonzero(kept)
    return pa.Table.from_arrays(
        [
            pa.array([side], pa.string()).take(pa.array(np.zeros(len(codes), dtype=np.int32))),
            pa.array(codes.astype(np.int32)),
            pa.array(preferences.item_level[codes], pa.float32()),
            lists(preferences.item_factors[codes]),
        ],
        schema=SCHEMA,
    )


def charged(charges: Sequence[Charge], rank: int) -> pa.Table:
    """One row a charge, in their order: side 'charge', with nothing in level and factor."""
    rows = [
        {name: getattr(charge, name) for name in ("what", "sensitivity", "deviation", "numbers", "rho")}
        for charge in charges
    ]
    return pa.Table.from_arrays(
        [
            pa.array(["charge"] * len(rows), pa.string()),
            pa.array(range(len(rows)), pa.int32()),
            pa.array([0.0] * len(rows), pa.float32()),
            lists(np.zeros((len(rows), rank), dtype=np.float32)),
            pa.array(rows, CHARGE),
        ],
        schema=CHARGED_SCHEMA,
    )


def from_table(batches: pa.Table | Iterable[pa.RecordBatch]) -> Preferences:
    """Preferences back from what `to_table` gave (a table, a reader or batches; rows in any order). Rows of
    other sides are passed over.

    Raises InputError if a column is missing or of another type, a user or item is missing or occurs twice, or
    vectors differ in length.
    """
    side, code, level, factor = _read(batches, {"side": texts, "code": codes, "level": numbers, "factor": vectors})
    if not np.isin(side, ("user", "item", "shown", "noise", "charge")).all():
        msg = "the column 'side' of the preferences must be 'user', 'item', 'shown', 'noise' or 'charge'."
        raise InputError(msg)
    parts: list[NDArray[np.float32]] = []
    for name in ("user", "item"):
        rows = np.flatnonzero(side == name)
        order = rows[_order(code[rows], name)]
        parts += [level[order], factor[order]]
    return Preferences(parts[0], parts[1], parts[2], parts[3])


def _order(code: NDArray[np.int64], side: str) -> NDArray[np.int64]:
    """The places of the codes 0, 1, 2 ..."""
    count = len(code)
    order = np.argsort(code, kind="stable")
    if count == 0 or not np.array_equal(code[order], np.arange(count)):
        msg = f"the preferences need each {side} once, with codes from 0 without a gap."
        raise InputError(msg)
    return order


def _read(
    batches: pa.Table | Iterable[pa.RecordBatch],
    readers: dict[str, Callable[[pa.Array, str], NDArray[Any]]],
) -> list[NDArray[Any]]:
    """The named columns of all batches, each read by its reader."""
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in readers}
    for batch in batches.to_batches() if isinstance(batches, pa.Table) else batches:
        if batch.num_rows == 0:
            continue
        for name, read in readers.items():
            if name not in batch.schema.names:
                msg = f"the preferences have no column '{name}'; they have: {', '.join(batch.schema.names)}."
                raise InputError(msg)
            pieces[name].append(read(batch.column(name), name))
    if not all(pieces.values()):
        msg = "there are no preferences."
        raise InputError(msg)
    for name, parts in pieces.items():
        if len({part.shape[1:] for part in parts}) > 1:
            msg = f"the lists in the column '{name}' differ in length."
            raise InputError(msg)
    return [np.concatenate(parts) for parts in pieces.values()]
