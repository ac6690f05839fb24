"""Arrow columns of codes, numbers, texts and vectors as numpy arrays, and vectors back as an Arrow column."""

import numpy as np
import pyarrow as pa

from kgather._errors import InputError


def codes(column: pa.Array, name: str) -> np.ndarray:
    """Whole numbers, int64[n]. `name` is the column's, for messages. Raises InputError for nulls and other types."""
    return _cast(column, name, pa.int64(), pa.types.is_integer(column.type))


def numbers(column: pa.Array, name: str) -> np.ndarray:
    """Real numbers, float32[n]. Raises InputError for nulls and other types."""
    return _cast(column, name, pa.float32(), _is_number(column.type))


def texts(column: pa.Array, name: str) -> np.ndarray:
    """Texts as an object[n] of str. Raises InputError for nulls and other types."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return _cast(column, name, pa.string(), pa.types.is_string(kind) or pa.types.is_large_string(kind))


def vectors(column: pa.Array, name: str) -> np.ndarray:
    """Lists of equally many numbers, float32[n, d] (d = 0 if there are no rows).

    Raises InputError for nulls, lists of unequal length, and other types.
    """
    kind = column.type
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        msg = f"the column '{name}' must hold lists of numbers; it is {kind}."
        raise InputError(msg)
    _refuse_nulls(column, name)
    count = len(column)
    width = 0
    if fixed:
        width = kind.list_size
    elif count:
        offsets = column.offsets.to_numpy(zero_copy_only=False)
        lengths = np.diff(offsets)
        width = int(lengths[0])
        if (lengths != width).any():
            msg = f"the lists in the column '{name}' differ in length."
            raise InputError(msg)
    return numbers(column.flatten(), name).reshape(count, width)


def lists(rows: np.ndarray) -> pa.ListArray:
    """The rows of a float32[n, d] as an Arrow array list<float32>. Raises InputError beyond 2^31 numbers."""
    count, width = rows.shape
    if count * width >= 1 << 31:
        msg = f"{count} vectors of {width} numbers are too many for one Arrow column."
        raise InputError(msg)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(rows).reshape(-1), pa.float32()))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _refuse_nulls(column: pa.Array, name: str) -> None:
    if column.null_count:
        msg = f"{column.null_count} values of the column '{name}' are null."
        raise InputError(msg)


def _cast(column: pa.Array, name: str, kind: pa.DataType, fits: bool) -> np.ndarray:
    _refuse_nulls(column, name)
    if not fits:
        msg = f"the column '{name}' must be {kind}; it is {column.type}."
        raise InputError(msg)
    # a float64 may lose digits, a code may not
    cast = column.cast(kind, safe=not pa.types.is_floating(kind))
    return np.asarray(cast.to_numpy(zero_copy_only=False))
