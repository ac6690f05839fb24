"""The items' equations are summed in whole numbers: the same in any order, and as near as sums of floats."""

import numpy as np
import pytest

from kgather._errors import KgatherError
from kgather._spark.learning import own_items, steps_of, whole
from kgather._spark.sums import Rows, _Held
from kgather.udfs.preferences.als import Frame
from kgather.udfs.preferences.options import AlsOptions
from kgather.udfs.ratings.matrix import RatingMatrix


def frame_of(mean: float, deviation: float, counts: np.ndarray) -> Frame:
    return Frame.of(AlsOptions(), 3, mean=mean, deviation=deviation, reach=4 * deviation, item_counts=counts)


@pytest.mark.parametrize(("mean", "deviation"), [(3.5, 1.0), (1e6, 1e-3), (0.002, 1e-4), (-40.0, 300.0)])
def test_sums_are_the_same_in_any_order_and_near_those_of_floats(mean: float, deviation: float) -> None:
    rng = np.random.default_rng(4)
    counts = np.array([1, 10, 1_000, 10_000_000], dtype=np.int64)
    frame = frame_of(mean, deviation, counts)
    steps = steps_of(frame, counts)
    assert (np.log2(steps) % 1 == 0).all()
    blocks = 60
    factors = rng.normal(0, 2 * np.sqrt(deviation), (blocks, len(counts), 3))
    parts = np.zeros((blocks, len(counts), 5, 4))
    rows = np.concatenate([np.ones((blocks, len(counts), 1)), factors], axis=2)
    share = (counts / blocks)[None, :, None, None]
    parts[:, :, :4] = rows[..., :, None] * rows[..., None, :] * share
    parts[:, :, 4] = rows * rng.normal(mean, deviation, (blocks, len(counts), 1)) * share[..., 0]
    terms = [whole(part, steps, blocks) for part in parts]
    total = sum(terms)
    for order in (rng.permutation(blocks) for _ in range(5)):
        halves = sum(terms[at] for at in order[:23]), sum(terms[at] for at in order[23:])
        assert np.array_equal(halves[0] + halves[1], total)
    found = total.reshape(len(counts), 5, 4) * steps
    exact = parts.astype(np.longdouble).sum(axis=0)
    # Half a step for each block, and what floats lose by themselves; both are far below what holds an item.
    assert (np.abs(found - exact) <= blocks / 2 * steps + 1e-15 * np.abs(parts).sum(axis=0)).all()
    in_units = steps / steps[:, :1, :1] * 2.0**-50
    assert (steps <= counts[:, None, None] * 2 * in_units).all()


def test_what_cannot_be_summed_is_refused() -> None:
    counts = np.array([10], dtype=np.int64)
    steps = steps_of(frame_of(3.0, 1.0, counts), counts)
    for much in (1e30, np.nan):
        with pytest.raises(KgatherError, match="too large to be summed"):
            whole(np.full((1, 5, 4), much), steps, 40)


def test_rows_of_blocks_are_added_and_cut_into_stretches() -> None:
    rng = np.random.default_rng(7)
    table, held = np.zeros((40, 3), dtype=np.int64), _Held()
    for _ in range(6):
        places = np.sort(rng.choice(40, size=9, replace=False))
        rows = Rows(places, rng.integers(-9, 9, (9, 3)))
        table[places] += rows.numbers
        for stretch, own in rows.cut(7):
            assert (own.places // 7 == stretch).all()
            held.put_rows(stretch, own)
    assert held.nbytes == 6 * 9 * 4 * 8
    sent = list(held.sent())
    assert len(sent) == 6
    found = np.zeros_like(table)
    for batch in sent:
        [term] = batch.to_pylist()
        places = np.frombuffer(term["places"], dtype=np.int64)
        assert (places // 7 == term["key"]).all()
        assert (np.diff(places) > 0).all()
        found[places] = np.frombuffer(term["numbers"], dtype=np.int64).reshape(-1, 3)
    assert np.array_equal(found, table)
    assert held.nbytes == 0
    assert not list(held.sent())
    nothing = np.zeros(0, dtype=np.int64)
    assert not list(Rows(nothing, nothing.reshape(0, 3)).cut(7))


def test_a_block_knows_the_items_of_its_ratings_alone() -> None:
    indptr = np.array([0, 2, 2, 4], dtype=np.int64)
    items, values = np.array([3, 900, 3, 50], dtype=np.int32), np.array([1, 2, 3, 4], dtype=np.float32)
    own, matrix = own_items(RatingMatrix(3, 1_000_000, indptr, items, values))
    assert own.tolist() == [3, 50, 900]
    assert matrix.n_items == 3
    assert matrix.items.tolist() == [0, 2, 0, 1]
    nobody, nothing = own_items(RatingMatrix(1, 5, np.zeros(2, dtype=np.int64), items[:0], values[:0]))
    assert (len(nobody), nothing.n_items, nothing.nnz) == (0, 0, 0)
