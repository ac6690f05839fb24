"""Preferences as Arrow tables, there and back."""

import numpy as np
import pyarrow as pa
import pytest
from kernel_data import made_up, matrix_of

from kgather._errors import InputError
from kgather.udfs._shared.arrow_columns import vectors
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.model import Preferences, from_table, to_table


@pytest.fixture(scope="module")
def learnt() -> Preferences:
    return learn(matrix_of(made_up(30, 20, 0.4, 0), 30, 20), rank=3)


def test_there_and_back_in_any_order(learnt: Preferences) -> None:
    table = to_table(learnt)
    assert table.schema.names == ["side", "code", "level", "factor"]
    assert table.schema.types == [pa.string(), pa.int32(), pa.float32(), pa.list_(pa.float32())]
    assert table.num_rows == 50
    shuffled = table.take(np.random.default_rng(0).permutation(50))
    for given in (table, shuffled, shuffled.to_reader(max_chunksize=7), iter(shuffled.to_batches(max_chunksize=1))):
        back = from_table(given)
        for name in ("user_level", "user_factors", "item_level", "item_factors"):
            assert np.array_equal(getattr(back, name), getattr(learnt, name))
            assert getattr(back, name).dtype == np.float32
            assert getattr(back, name).flags.c_contiguous


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 2)])
def test_lists_of_every_kind_are_vectors(kind: pa.DataType) -> None:
    rows = [[1, 2], [3, 4], [5, 6]]
    column = pa.array(rows, kind)
    assert vectors(column, "factor").tolist() == rows
    # a slice reads its own rows only
    assert vectors(column.slice(1), "factor").tolist() == rows[1:]


def _table(**changed: pa.Array) -> pa.Table:
    columns = {
        "side": pa.array(["user", "item"]),
        "code": pa.array([0, 0]),
        "level": pa.array([0.0, 1.0]),
        "factor": pa.array([[1.0, 2.0], [3.0, 4.0]]),
        **changed,
    }
    return pa.table({name: column for name, column in columns.items() if column is not None})


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (_table(level=None), "no column 'level'; they have: side, code, factor"),
        (
            _table(side=pa.array(["user", "movie"])),
            "'side' of the preferences must be 'user', 'item', 'shown', 'noise' or 'charge'",
        ),
        (_table(side=pa.array([1, 2])), "'side' must be string"),
        (_table(side=pa.array(["user", "user"])), "each user once"),
        (_table(side=pa.array(["item", "item"]), code=pa.array([0, 1])), "each user once"),
        (_table(code=pa.array([0, 1])), "each item once, with codes from 0"),
        (_table(code=pa.array([0.5, 1.0])), "'code' must be int64; it is double"),
        (_table(level=pa.array([None, 1.0])), "1 values of the column 'level' are null"),
        (_table(factor=pa.array([[1.0, 2.0], [3.0]])), "'factor' differ in length"),
        (_table(factor=pa.array([[1.0, None], [3.0, 4.0]])), "1 values of the column 'factor' are null"),
        (_table(factor=pa.array([None, [3.0, 4.0]])), "1 values of the column 'factor' are null"),
        (_table(factor=pa.array([1.0, 2.0])), "'factor' must hold lists of numbers"),
        (_table(factor=pa.array([["a"], ["b"]])), "'factor' must be float"),
        (_table().slice(0, 0), "there are no preferences"),
    ],
)
def test_refuses(table: pa.Table, says: str) -> None:
    with pytest.raises(InputError, match=says):
        from_table(table)


def test_refuses_lists_that_differ_between_batches() -> None:
    batches = [*_table().slice(0, 1).to_batches(), *_table(factor=pa.array([[1.0], [2.0]])).slice(1).to_batches()]
    with pytest.raises(InputError, match="'factor' differ in length"):
        from_table(batches)
