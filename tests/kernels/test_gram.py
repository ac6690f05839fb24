"""The inner loops of ALS against numpy."""

import numpy as np
import pytest

from kgather.udfs.preferences._gram import add_rows, factors_of, new_design, solve_ridge, tag_of, width_of


@pytest.mark.parametrize("rank", [1, 6, 7, 8, 10, 15, 16, 33])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 31, 5000])
def test_sums_of_outer_products(rank: int, count: int) -> None:
    rng = np.random.default_rng(count)
    columns, rows = rank + 1, 9
    design = new_design(rows, rank)
    design.reshape(rows + 1, -1)[:rows, 1:columns] = rng.standard_normal((rows, rank))
    level = rng.standard_normal(rows).astype(np.float32)
    row = rng.integers(0, rows, count).astype(np.int32)
    value = rng.integers(1, 6, count).astype(np.float32)
    gram = np.zeros((columns + 1) * width_of(rank), dtype=np.float32)
    out = np.zeros((columns + 1, columns))
    add_rows(gram, design, level, row, value, 0, count, 1.0, out, tag_of(rank))
    x = np.concatenate([np.ones((rows, 1)), factors_of(design, rows, rank)], axis=1, dtype=np.float64)[row]
    target = value.astype(np.float64) - level[row]
    assert np.allclose(out[:columns], np.tril(x.T @ x), rtol=1e-5, atol=1e-4 * max(count, 1))
    assert np.allclose(out[columns], target @ x, rtol=1e-5, atol=1e-4 * max(count, 1))
    assert not gram.any()
    # what is taken out again leaves rounding only
    add_rows(gram, design, level, row, value, 0, count, -1.0, out, tag_of(rank))
    assert np.array_equal(out, np.zeros_like(out))


@pytest.mark.parametrize("columns", [1, 2, 5, 11])
def test_ridge_against_numpy(columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((3 * columns, columns))
    target = rng.standard_normal(3 * columns)
    system = np.concatenate([np.tril(x.T @ x), (target @ x)[None]])
    solve_ridge(system, 0.5, 2.0)
    penalty = np.diag([0.5] + [2.0] * (columns - 1))
    assert np.allclose(system[columns], np.linalg.solve(x.T @ x + penalty, target @ x))


def test_a_direction_that_nothing_says_gets_zero() -> None:
    system = np.array([[1.0, 0.0], [1.0, 1.0], [3.0, 3.0]])  # two equal columns, no penalty
    solve_ridge(system, 0.0, 0.0)
    assert system[2].tolist() == [3.0, 0.0]
