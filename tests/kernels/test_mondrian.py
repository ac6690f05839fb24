"""Mondrian: cuts known by hand, the algorithm as written, the promises on any data, real data, and bad data."""

import numpy as np
import pytest
from artifact_data import by_members, check_partition, coded, losses, paper_table, small_tables, top_ten
from hypothesis import given, settings
from kernel_data import cpu_seconds

from kgather.udfs._shared.counting import counted
from kgather.udfs.gathering.mondrian import gather
from kgather.udfs.measuring.generalization_loss import class_ranges


def leaves(table: object, k: int, **options: object) -> set[frozenset[int]]:
    return by_members(gather(np.asarray(table, dtype=float).reshape(len(table), -1), k, **options))


def test_the_papers_table_by_hand() -> None:
    # Warcross at 2 (7 and 3 users); of the 7, Egomaniac at 4 would leave 2, Pachinko at 0 leaves 4 and 3
    assert leaves(paper_table(), 3) == {frozenset({1, 2, 3}), frozenset({4, 5, 6}), frozenset({7, 8, 9, 10})}


def test_the_lower_median_stays_below() -> None:
    assert leaves([5, 1, 4, 2, 3, 6], 2) == {frozenset({2, 4, 5}), frozenset({1, 3, 6})}
    assert leaves([5, 1, 4, 2, 3, 6, 7], 3) == {frozenset({2, 3, 4, 5}), frozenset({1, 6, 7})}


def test_equal_values_stay_together() -> None:
    assert leaves([1, 2, 2, 2, 2, 2, 2, 3], 3) == {frozenset(range(1, 9))}
    # the median is the largest value: the cut below it
    assert leaves([1, 1, 2, 2, 2, 2], 2) == {frozenset({1, 2}), frozenset({3, 4, 5, 6})}


def test_widest_column_as_a_share_of_the_whole_range() -> None:
    # both halves of the first cut span 30 of 1030 in column 1 and 1 of 2 in column 2
    table = [[0, 0], [30, 0], [0, 1], [30, 1], [1000, 0], [1030, 0], [1000, 2], [1030, 2]]
    assert leaves(table, 2) == {frozenset({1, 2}), frozenset({3, 4}), frozenset({5, 6}), frozenset({7, 8})}


def test_a_narrower_column_comes_before_the_cut_below_the_median() -> None:
    # both columns span all; up to the median of the first, 9, there are all users, and below it 1 and 2
    table = [[0, 0], [0, 1], [9, 0], [9, 1], [9, 0], [9, 1]]
    assert leaves(table, 2) == {frozenset({1, 3, 5}), frozenset({2, 4, 6})}


def test_categories_are_cut_in_the_order_of_their_codes() -> None:
    # codes 3, 7, 1000 count as the first, second and third; not rated is the last, not 0
    table = [[3], [3], [7], [7], [1000], [1000], [np.nan], [np.nan]]
    assert leaves(table, 2, categorical=[True]) == {frozenset({i, i + 1}) for i in (1, 3, 5, 7)}
    mixed = np.array([[1, 0], [2, 0.9], [np.nan, 0.9], [np.nan, 0], [1, 0], [2, 0.9]])
    assert by_members(gather(mixed, 2, categorical=[True, False])) == {
        frozenset(pair) for pair in ([1, 5], [2, 6], [3, 4])
    }


def _by_the_book(table: np.ndarray, categorical: np.ndarray, k: int) -> set[frozenset[int]]:
    """The algorithm written down with no regard to speed."""
    values = coded(table, categorical)
    whole = np.ptp(values, axis=0)
    classes = []
    parts = [np.arange(len(values))]
    while parts:
        part = parts.pop()
        span = [np.ptp(values[part, j]) / whole[j] if whole[j] > 0 else 0.0 for j in range(len(whole))]
        cuts = []
        for included in (True, False):
            for j in sorted(range(len(whole)), key=lambda j: -span[j]):
                value = np.sort(values[part, j])[(len(part) - 1) // 2]
                below = values[part, j] <= value if included else values[part, j] < value
                if k <= below.sum() <= len(part) - k:
                    cuts.append(below)
        if cuts:
            parts += [part[cuts[0]], part[~cuts[0]]]
        else:
            classes.append(frozenset((part + 1).tolist()))
    return set(classes)


@settings(max_examples=300, deadline=None)
@given(small_tables())
def test_same_as_the_algorithm_as_written_and_no_class_can_be_cut(drawn: tuple) -> None:
    table, categorical, k = drawn
    groups = gather(table, k, categorical=categorical)
    check_partition(groups, len(table), k)
    assert by_members(groups) == _by_the_book(table, categorical, k)
    values = coded(table, categorical)
    for group in range(groups.max() + 1):
        members = values[groups == group]
        for column in members.T:
            sides = [min((column <= value).sum(), (column > value).sum()) for value in column]
            assert max(sides) < k


@settings(max_examples=100, deadline=None)
@given(small_tables())
def test_bounds_are_values_of_members(drawn: tuple) -> None:
    table, _, k = drawn
    groups = gather(table, k)
    low, high = class_ranges(table, groups)
    for group in range(groups.max() + 1):
        members = table[groups == group]
        for j in range(table.shape[1]):
            if np.isnan(members[:, j]).all():
                assert np.isnan(low[group, j])
                assert np.isnan(high[group, j])
            else:
                counted = np.nan_to_num(members[:, j])
                assert (low[group, j], high[group, j]) == (counted.min(), counted.max())


@pytest.mark.parametrize("seed", range(3))
def test_same_as_the_algorithm_on_more_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.normal(size=3000), rng.integers(0, 6, 3000), rng.zipf(2.0, 3000).clip(0, 50)])
    categorical = np.array([False, seed == 1, False])
    assert by_members(gather(table, 5, categorical=categorical)) == _by_the_book(table, categorical, 5)


def test_order_of_rows_and_threads_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, 6, (60_000, 7)).astype(float)
    table[rng.random(table.shape) < 0.4] = np.nan
    groups = gather(table, 10)
    check_partition(groups, len(table), 10)
    shuffled = rng.permutation(len(table))
    assert np.array_equal(groups[shuffled], gather(table[shuffled], 10))
    for threads in (2, 3, 8):
        assert np.array_equal(groups, gather(table, 10, threads=threads))


@pytest.mark.parametrize("values", [np.nan, 0.0, 3.5, -1.0])
@pytest.mark.parametrize("categorical", [False, True])
def test_columns_that_say_nothing(values: float, categorical: bool) -> None:
    table = np.full((23, 2), values)
    assert (gather(table, 5, categorical=[categorical, categorical]) == 0).all()
    varied = np.column_stack([table, np.arange(23) % 7])
    alone = gather(varied[:, 2:], 5)
    assert alone.max() == 2
    assert np.array_equal(alone, gather(varied, 5, categorical=[categorical, categorical, False]))


MEASURED = [  # k, DM, C_AVG, GenILoss of a plain program without the cut below the median
    (2, 2403, 1.210, 0.179),
    (3, 3785, 1.277, 0.291),
    (5, 6619, 1.343, 0.415),
    (7, 8885, 1.311, 0.478),
    (10, 13509, 1.384, 0.557),
    (12, 15971, 1.379, 0.583),
    (20, 29625, 1.545, 0.677),
]


@pytest.mark.parametrize(("k", "dm", "c_avg", "loss"), MEASURED)
def test_losses_on_movielens(data_dir, k: int, dm: int, c_avg: float, loss: float) -> None:
    table = top_ten(data_dir)
    found = losses(table, gather(table, k), k)
    assert found == pytest.approx((dm, c_avg, loss), rel=0.03)
    # the further cut only gains
    assert found[0] <= dm
    assert found[1] <= c_avg + 0.0005
    assert found[2] <= loss + 0.0005


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000])
def test_k_of_one_and_sizes_at_the_borders(n: int) -> None:
    table = np.random.default_rng(n).normal(size=(n, 2))
    assert sorted(gather(table, 1)) == list(range(n))
    for k in (n, (n + 1) // 2, (n + 2) // 3, max(n // 3, 1)):
        # without equal values a part of 2k or more can always be cut
        assert check_partition(gather(table, k), n, k).max() < 2 * k


BAD = {
    "equal": lambda n, _: np.ones((n, 4)),
    "nine tenths equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4))),
    "zipf": lambda n, rng: rng.zipf(1.3, (n, 4)).clip(0, 1 << 40),
    "chain of outliers": lambda n, _: np.where(np.arange(n) < 400, 1.2 ** np.arange(n).clip(0, 400), 0)[:, None],
    "a few of each column": lambda n, _: (np.arange(n)[:, None] // 5 == np.arange(30)).astype(float),
    "falling": lambda n, _: -np.arange(n, dtype=float)[:, None],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_takes_no_quadratic_time_and_no_deep_recursion(name: str) -> None:
    # No claim of speed: at this size a quadratic kernel takes hundreds of times as long as on good data.
    n, k = 100_000, 5
    rng = np.random.default_rng(0)
    table = BAD[name](n, rng)
    usual = _seconds(rng.standard_normal((n, table.shape[1])), k)
    check_partition(gather(table, k), n, k)
    assert _seconds(table, k) <= 20 * usual


def _seconds(table: np.ndarray, k: int) -> float:
    return cpu_seconds(lambda: gather(table, k))


def test_what_is_looked_at_is_counted_where_somebody_counts() -> None:
    with counted() as looked:
        leaves([1, 2, 3, 4], 2)
    # One column: its range, five passes to find the cut, and the cut itself.
    assert looked.at == 4 * (1 + 5 + 1)
    table = np.random.default_rng(0).normal(size=(20_000, 3))
    with counted() as alone:
        gather(table, 10)
    with counted() as several:
        gather(table, 10, threads=2)
    assert 20_000 * 10 * (3 + 5 + 1) <= alone.at == several.at
