import numpy as np
from kernel_data import made_up, matrix_of

from kgather.udfs._shared.hashing import seed64
from kgather.udfs.ratings._held_out import choose_held_out, part_of


def test_share_and_what_is_left() -> None:
    users, items, ratings = made_up(400, 100, 0.3, 0)
    matrix = matrix_of((users, items, ratings), 400, 100)
    entries = choose_held_out(matrix.indptr, matrix.items, 0.1, seed64(3))
    assert 0.08 < len(entries) / matrix.nnz < 0.12
    assert (np.diff(entries) > 0).all()
    held, kept = part_of(matrix, entries), part_of(matrix, np.setdiff1d(np.arange(matrix.nnz), entries))
    assert held.nnz + kept.nnz == matrix.nnz
    assert np.array_equal(np.diff(held.indptr) + np.diff(kept.indptr), np.diff(matrix.indptr))
    mine = np.zeros((400, 100), dtype=int)
    for part in (held, kept):
        mine[np.repeat(np.arange(400), np.diff(part.indptr)), part.items] += 1
    assert np.array_equal(mine[users, items], np.ones(len(users), int))
    assert mine.sum() == len(users)


def test_nobody_loses_all_ratings() -> None:
    matrix = matrix_of((np.repeat(np.arange(2000), 2), np.tile([0, 1], 2000), np.ones(4000)), 2000, 2)
    entries = choose_held_out(matrix.indptr, matrix.items, 0.5, seed64(0))
    assert np.diff(part_of(matrix, entries).indptr).max() == 1
    alone = matrix_of((np.arange(500), np.zeros(500, int), np.ones(500)), 500, 1)
    assert len(choose_held_out(alone.indptr, alone.items, 0.5, seed64(0))) == 0


def test_a_pair_is_held_out_whatever_else_there_is() -> None:
    users, items, ratings = made_up(100, 80, 0.5, 1)

    def chosen(keep: np.ndarray, seed: int) -> set[tuple[int, int]]:
        matrix = matrix_of((users[keep], items[keep], ratings[keep]), 100, 80)
        entries = choose_held_out(matrix.indptr, matrix.items, 0.2, seed64(seed))
        held = part_of(matrix, entries)
        return set(zip(np.repeat(np.arange(100), np.diff(held.indptr)).tolist(), held.items.tolist(), strict=True))

    half = items % 2 == 0
    everything = chosen(np.ones(len(items), bool), 7)
    assert chosen(half, 7) == {pair for pair in everything if pair[1] % 2 == 0}
    assert chosen(half, 8) != chosen(half, 7)
