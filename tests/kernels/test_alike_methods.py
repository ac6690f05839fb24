"""What k-Likeness and k-Member, which both gather rows one by one around the nearest, have in common."""

from types import ModuleType

import numpy as np
import pytest
from artifact_data import check_partition
from kernel_data import check_growth

from kgather.udfs.gathering import k_likeness, k_member

both = pytest.mark.parametrize("method", [k_likeness, k_member], ids=["k_likeness", "k_member"])


@both
def test_order_of_rows_and_threads_do_not_matter(method: ModuleType) -> None:
    rng = np.random.default_rng(3)
    table = rng.permutation(np.unique(rng.integers(0, 6, (600, 5)).astype(float), axis=0))
    groups = method.gather(table, 4)
    shuffled = rng.permutation(len(table))
    assert np.array_equal(groups[shuffled], method.gather(table[shuffled], 4))
    for threads in (2, 3, 8):
        assert np.array_equal(groups, method.gather(table, 4, threads=threads))


@both
def test_columns_without_a_category_are_compared(method: ModuleType) -> None:
    # with no categorical column the distance must not vanish in an empty block of them
    rng = np.random.default_rng(0)
    table = rng.permutation(np.repeat([[0.0, 1.0], [50.0, 2.0], [0.0, 90.0]], 5, axis=0))
    for categorical in (None, np.zeros(2, dtype=bool)):
        groups = method.gather(table, 5, categorical=categorical)
        assert all(len(np.unique(table[groups == group], axis=0)) == 1 for group in range(3))


@both
@pytest.mark.parametrize("values", [np.nan, 0.0, 3.5, -1.0])
@pytest.mark.parametrize("categorical", [False, True])
def test_columns_that_say_nothing(method: ModuleType, values: float, categorical: bool) -> None:
    table = np.full((23, 2), values)
    assert np.bincount(method.gather(table, 5, categorical=[categorical, categorical])).tolist() == [8, 5, 5, 5]
    # beside one that does say something they change nothing
    varied = np.column_stack([table, np.arange(23) % 7])
    alone = method.gather(varied[:, 2:], 5)
    assert np.array_equal(alone, method.gather(varied, 5, categorical=[categorical, categorical, False]))


@both
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000])
def test_k_of_one_and_sizes_at_the_borders(method: ModuleType, n: int) -> None:
    table = np.random.default_rng(n).integers(0, 9, (n, 2))
    assert sorted(method.gather(table, 1)) == list(range(n))
    for k in (n, (n + 1) // 2, (n + 2) // 3, max(n // 3, 1)):
        assert len(check_partition(method.gather(table, k), n, k)) == n // k


BAD = {
    "equal": lambda n, _: np.ones((n, 3)),
    "all blank": lambda n, _: np.full((n, 3), np.nan),
    "nearly all equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.995, 3, rng.integers(0, 6, (n, 3))),
    "seven rows": lambda n, rng: rng.integers(0, 6, (7, 3))[rng.integers(0, 7, n)],
    "far outliers": lambda n, rng: np.where(np.arange(n) < 300, 1e6 * rng.random(n), 0)[:, None],
}


@both
@pytest.mark.parametrize("name", BAD)
def test_equal_rows_cost_nothing(method: ModuleType, name: str) -> None:
    n = 400_000
    table = BAD[name](n, np.random.default_rng(0)).astype(np.float64)
    check_partition(method.gather(table, 2), n, 2)
    check_growth(lambda size: method.gather(BAD[name](size, np.random.default_rng(0)).astype(np.float64), 2), n)
