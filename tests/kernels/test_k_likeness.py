"""k-Likeness: the paper's example, the algorithm as written, real data, and bad data."""

import numpy as np
import pytest
from artifact_data import (
    PUBLISHED,
    by_members,
    check_partition,
    coded,
    losses,
    paper_table,
    plain,
    same_up_to_equal_rows,
    small_tables,
    top_ten,
)
from hypothesis import given, settings

from kgather.udfs._shared.counting import counted
from kgather.udfs.gathering import k_likeness, k_member
from kgather.udfs.gathering.k_likeness import gather, record_scans
from kgather.udfs.ratings.artifacts import checked_artifacts, coded_rows


def test_the_papers_example() -> None:
    assert by_members(gather(paper_table(), 3)) == PUBLISHED


def test_a_leftover_joins_where_the_sum_over_all_members_is_least() -> None:
    # (0, 40) is 40 from the nucleus of the first class and 41 from the second's, but 144 and 123 from all members
    table = np.array([[0, 0], [6, -6], [6, -6], [8, 7], [8, 7], [8, 7], [0, 40]])
    assert by_members(gather(table, 3)) == {frozenset({1, 2, 3}), frozenset({4, 5, 6, 7})}


def _by_the_book(table: np.ndarray, categorical: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Algorithms 1 to 3 written down with no regard to speed: the classes, and the distances measured."""
    values = coded(table, categorical)
    n = len(values)
    totals = np.round(values[:, ~categorical].sum(axis=1), 9)
    order = np.lexsort((*values.T[::-1], totals)).tolist()
    groups = np.full(n, -1)
    if n < 2 * k:
        return np.zeros(n, dtype=int), 0
    scans = 0

    def distance(i: int, j: int) -> float:
        gap = np.abs(values[i] - values[j])
        gap[categorical] = gap[categorical] > 0
        return round(float(gap.sum()), 9)

    group = 0
    while len(order) >= k:
        nucleus, *others = order
        scans += len(others)
        near = sorted(others, key=lambda i: distance(nucleus, i))[: k - 1]  # sorted keeps the order of equal ones
        groups[[nucleus, *near]] = group
        order = [i for i in others if i not in near]
        group += 1
    for i in order:
        sums = [sum(distance(i, j) for j in np.flatnonzero(groups == g)) for g in range(group)]
        groups[i] = int(np.argmin(np.round(sums, 9)))
    return groups, scans


@settings(max_examples=200, deadline=None)
@given(small_tables())
def test_same_as_the_algorithm_as_written(drawn: tuple) -> None:
    table, categorical, k = drawn
    groups = gather(table, k, categorical=categorical)
    sizes = check_partition(groups, len(table), k)
    if len(table) >= 2 * k:
        assert (sizes - k).sum() == len(table) % k
    else:
        assert len(sizes) == 1
    if plain(table):
        expected, scans = _by_the_book(table, categorical, k)
        assert np.array_equal(groups, expected) or same_up_to_equal_rows(table, groups, expected)
        assert scans == record_scans(len(table), k)


@pytest.mark.parametrize("seed", range(6))
def test_same_as_the_algorithm_on_real_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(700, 3)) * [1, 10, 0.1]
    categorical = np.array([False, False, False]) if seed % 2 else np.array([False, True, False])
    table[:, categorical] = rng.integers(0, 4, (700, int(categorical.sum())))
    k = int(rng.integers(2, 12))
    assert np.array_equal(gather(table, k, categorical=categorical), _by_the_book(table, categorical, k)[0])


def test_categories_are_equal_or_not() -> None:
    # 1, 2 and 1000 are all 1 apart: the second column decides, until 7 and 8 join the class with their like
    table = np.array([[1, 0.0], [2, 0.4], [1000, 0.2], [3, 0.1], [0, 0.3], [0, 9], [0, 9], [0, 9]])
    groups = gather(table, 3, categorical=[True, False])
    assert by_members(groups) == {frozenset({1, 3, 4}), frozenset({2, 5, 6, 7, 8})}


def test_not_rated_is_a_category_but_the_number_zero() -> None:
    table = np.array([[np.nan, 0], [0, 0.05], [np.nan, 0.9], [np.nan, 0.9], [0, 1], [0, 1]])
    assert by_members(gather(table, 3, categorical=[True, False])) == {frozenset({1, 3, 4}), frozenset({2, 5, 6})}
    # as numbers: 1 takes 2 and one of .9
    groups = gather(table, 3)
    assert groups[0] == groups[1]


MEASURED = [  # k, DM, C_AVG, GenILoss of a plain program with nuclei in the order of the users' ids
    (2, 1857, 1.001, 0.099),
    (3, 2781, 1.000, 0.189),
    (5, 4647, 1.002, 0.324),
    (7, 6513, 1.003, 0.432),
    (10, 9355, 1.008, 0.543),
    (12, 11163, 1.003, 0.605),
    (20, 18689, 1.008, 0.748),
]


@pytest.mark.parametrize(("k", "dm", "c_avg", "loss"), MEASURED)
def test_losses_on_movielens(data_dir, k: int, dm: int, c_avg: float, loss: float) -> None:
    table = top_ten(data_dir)
    found = losses(table, gather(table, k), k)
    assert found[0] == pytest.approx(dm, rel=0.01)
    assert found[1] == pytest.approx(c_avg, rel=0.01)
    assert found[2] == pytest.approx(loss, rel=0.035)


def test_record_scans_are_k_times_fewer_than_those_of_k_member(data_dir) -> None:
    n = 927
    ratios = {k: k_member.record_scans(n, k) / record_scans(n, k) for k in (2, 3, 5, 10, 15, 20)}
    assert ratios == pytest.approx({2: 2.0, 3: 3.0, 5: 5.0, 10: 9.9, 15: 14.8, 20: 19.6}, rel=0.01)
    artifacts = checked_artifacts(top_ten(data_dir), 5)
    measured = k_likeness._classes(coded_rows(artifacts, by_width=False), 5)[1]
    assert 0 < measured < 0.6 * record_scans(n, 5)


@pytest.mark.parametrize("k", [2, 3, 10, 100])
def test_distances_are_measured_as_often_as_is_said(k: int) -> None:
    n = 1000
    table = np.random.default_rng(0).normal(size=(n, 30))
    table -= table.mean(axis=1, keepdims=True)  # sums tell nothing, so that no row is left out
    scans = k_likeness._classes(coded_rows(checked_artifacts(table, k), by_width=False), k)[1]
    assert 0.9 * record_scans(n, k) < scans <= 8 / 7 * (n + k) ** 2 / (2 * k)


def test_what_is_looked_at_is_counted_where_somebody_counts() -> None:
    table = np.random.default_rng(0).normal(size=(103, 5))
    scans = k_likeness._classes(coded_rows(checked_artifacts(table, 10), by_width=False), 10)[1]
    with counted() as looked:
        gather(table, 10)
    # Three are left over: each is held against 100 members, and against those who came before it.
    assert looked.at_leftovers == 5 * (3 * 100 + 3)
    assert looked.at == 5 * scans + looked.at_leftovers
    with counted() as looked:
        np.zeros(3)
    assert looked.at == 0
