"""What users like and items are like, in r numbers each, and the level at which each is rated.

The prediction for user u and item i is user_level[u] + item_level[i] + user_factors[u] . item_factors[i], in the
unit of the ratings and not clipped to their scale; the mean of all ratings is part of item_level.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kgather.errors import InputError
from kgather.udfs.matrix import RatingMatrix
from kgather.udfs.options import make_options, real, whole

Progress = Callable[[int, int], None]
Solver = Literal["als", "funk"]

SCHEMA = pa.schema(
    [
        pa.field("side", pa.string()),
        pa.field("code", pa.int32()),
        pa.field("level", pa.float32()),
        pa.field("factor", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True)
class Preferences:
    """A low-rank model of the ratings, see the module.

    user_level float32[n], user_factors float32[n, r], item_level float32[m], item_factors float32[m, r].
    held_out_rmse: root mean square error on the ratings held out while learning, step by step (a sweep of ALS, a
    factor of Funk's SVD), in the unit of the ratings; empty if none were held out.
    """

    user_level: np.ndarray
    user_factors: np.ndarray
    item_level: np.ndarray
    item_factors: np.ndarray
    held_out_rmse: tuple[float, ...] = ()

    @property
    def rank(self) -> int:
        """The number of factors."""
        return int(self.user_factors.shape[1])


def learn(
    matrix: RatingMatrix,
    *,
    solver: Solver = "als",
    rank: int = 10,
    seed: int = 0,
    threads: int = 1,
    scale: tuple[float, float] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Preferences:
    """Learns preferences from ratings.

    solver: "als" (kgather.udfs.als.AlsOptions) or "funk" (kgather.udfs.funk.FunkOptions), whose fields are the
    `options`. rank: number of factors, >= 1 (may exceed the numbers of users and items). seed: what is drawn
    (start values, held-out ratings) depends on it alone; `threads` never changes the result. scale: lowest and
    highest possible rating, used to judge predictions on held-out ratings. progress: called with steps done and
    steps at most.

    Users and items without ratings get the level and factors of someone about whom nothing is known.
    Raises InputError for an unknown solver or option, or an option out of its range.
    """
    # imported here because the solvers need the class above
    from kgather.udfs.als import AlsOptions, learn_als
    from kgather.udfs.funk import FunkOptions, learn_funk

    rank = whole("rank", rank, 1)
    threads = whole("threads", threads, 1)
    seed = whole("seed", seed, -(1 << 63), (1 << 64) - 1)
    if scale is not None:
        low, high = real("the lowest rating", scale[0], -np.inf), real("the highest rating", scale[1], -np.inf)
        if low >= high:
            msg = f"the lowest rating of the scale, {low:g}, must be below the highest, {high:g}"
            raise InputError(msg)
        scale = (low, high)
    if solver == "als":
        return learn_als(matrix, rank, make_options(AlsOptions, options, "als"), seed, threads, scale, progress)
    if solver == "funk":
        return learn_funk(matrix, rank, make_options(FunkOptions, options, "funk"), seed, scale, progress)
    msg = f"there is no solver '{solver}'; the solvers are: als, funk"
    raise InputError(msg)


def to_table(preferences: Preferences) -> pa.Table:
    """One row a user and a row an item: side ('user' or 'item'), code int32, level float32, factor list<float32>."""
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


def lists(vectors: np.ndarray) -> pa.ListArray:
    """The rows of a float32[n, d] as an Arrow array of lists."""
    count, width = vectors.shape
    if count * width >= 1 << 31:
        msg = f"{count} vectors of {width} numbers are too many for one Arrow list array"
        raise InputError(msg)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32()))


def from_table(batches: pa.Table | Iterable[pa.RecordBatch]) -> Preferences:
    """Preferences back from what `to_table` gave (a table, a reader or batches; rows in any order).

    Raises InputError if a column is missing, a user or item is missing or occurs twice, or vectors differ in length.
    """
    read = _read(batches, ("side", "code", "level", "factor"))
    is_user = np.asarray(read["side"] == "user")
    if not (is_user | (read["side"] == "item")).all():
        msg = "the column 'side' of the preferences must be 'user' or 'item'"
        raise InputError(msg)
    parts: list[np.ndarray] = []
    for side, rows in (("user", is_user), ("item", ~is_user)):
        place = _places(read["code"][rows], side)
        for name in ("level", "factor"):
            part = np.empty_like(read[name][rows])
            part[place] = read[name][rows]
            parts.append(part)
    return Preferences(parts[0], parts[1], parts[2], parts[3])


def user_vectors(
    batches: pa.Table | Iterable[pa.RecordBatch], code: str = "code", vector: str = "factor"
) -> np.ndarray:
    """The users' vectors, float32[n, d], from rows of a code (0..n-1, each once, in any order) and a list column.

    Where there is a column 'side' only the rows of 'user' count. Raises InputError as `from_table`.
    """
    read = _read(batches, (code, vector), optional="side")
    rows = np.ones(len(read[code]), dtype=bool)
    if "side" in read:
        rows = np.asarray(read["side"] == "user")
    vectors = read[vector][rows]
    out = np.empty_like(vectors)
    out[_places(read[code][rows], "user")] = vectors
    return out


def _places(codes: np.ndarray, side: str) -> np.ndarray:
    count = len(codes)
    if count == 0:
        msg = f"the preferences hold no {side}"
        raise InputError(msg)
    if codes.min() < 0 or codes.max() >= count or (np.bincount(codes, minlength=count) != 1).any():
        msg = f"the {side} codes of the preferences must be 0 to {count - 1}, each of them once"
        raise InputError(msg)
    return codes


def _read(
    batches: pa.Table | Iterable[pa.RecordBatch], names: tuple[str, ...], optional: str | None = None
) -> dict[str, np.ndarray]:
    """The named columns of all batches as arrays; lists become the rows of a float32 matrix."""
    pieces: dict[str, list[np.ndarray]] = {}
    for batch in batches.to_batches() if isinstance(batches, pa.Table) else batches:
        for name in (*names, optional) if optional in batch.schema.names else names:
            if name not in batch.schema.names:
                msg = f"the preferences have no column '{name}'; they have: {', '.join(batch.schema.names)}"
                raise InputError(msg)
            pieces.setdefault(name, []).append(_array(batch.column(name), name))
    if not pieces:
        msg = "there are no preferences"
        raise InputError(msg)
    widths = {piece.shape[1:] for parts in pieces.values() for piece in parts if piece.ndim == 2 and len(piece)}
    if len(widths) > 1:
        msg = "the vectors of the preferences differ in length"
        raise InputError(msg)
    joined = {}
    for name, parts in pieces.items():
        filled = [piece for piece in parts if len(piece)] or parts[:1]
        joined[name] = np.concatenate(filled)
    return joined


def _array(column: pa.Array, name: str) -> np.ndarray:
    if column.null_count:
        msg = f"{column.null_count} values of the column '{name}' of the preferences are null"
        raise InputError(msg)
    kind = column.type
    try:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            flat = column.flatten()
            width = len(flat) // max(len(column), 1)
            if len(flat) != width * len(column) or (len(column) and set(column.value_lengths().unique().to_pylist()) != {width}):
                msg = "the vectors of the preferences differ in length"
                raise InputError(msg)
            if flat.null_count:
                msg = f"vectors in the column '{name}' of the preferences hold nulls"
                raise InputError(msg)
            return flat.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False).reshape(len(column), width)
        if name == "side":
            return column.cast(pa.string()).to_numpy(zero_copy_only=False)
        if name == "level":
            return column.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        msg = f"the column '{name}' of the preferences is of the unexpected type {kind}"
        raise InputError(msg) from None
