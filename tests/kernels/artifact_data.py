"""Artifact tables for the tests: the paper's example, the ten most rated films of ML-100k, and any small one."""

import csv
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kgather.udfs.measuring.generalization_loss import (
    average_class_size,
    class_ranges,
    discernibility,
    equivalence_classes,
    information_loss,
)

ARTIFACTS = ("warcross", "joy_ride", "egomaniac", "pachinko", "geekerella")
PUBLISHED = {frozenset({1, 2, 3}), frozenset({4, 5, 6, 7}), frozenset({8, 9, 10})}  # the classes of tables 2 and 3
TOP_TEN = (50, 258, 100, 181, 294, 286, 288, 1, 300, 121)


def paper_table() -> np.ndarray:
    """Table 1 of the paper: users 1 to 10 by five artifacts, NaN where not rated."""
    file = Path(__file__).parent.parent.parent / "fixtures" / "recommendation_table.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        return np.array([[float(row[name] or "nan") for name in ARTIFACTS] for row in csv.DictReader(lines)])


def top_ten(data_dir: Path) -> np.ndarray:
    """The users of ML-100k who rated one or more of the ten most rated films, by these films."""
    ratings = np.loadtxt(data_dir / "ml-100k" / "u.data", usecols=(0, 1, 2))
    ratings = ratings[np.isin(ratings[:, 1], TOP_TEN)]
    users = np.unique(ratings[:, 0], return_inverse=True)[1]
    films = np.argsort(TOP_TEN)[np.searchsorted(np.sort(TOP_TEN), ratings[:, 1])]
    table = np.full((users.max() + 1, len(TOP_TEN)), np.nan)
    table[users, films] = ratings[:, 2]
    return table


def losses(table: np.ndarray, groups: np.ndarray, k: int) -> tuple[int, float, float]:
    """DM, C_AVG and GenILoss (ratings up to 5) of the groups' ranges."""
    low, high = class_ranges(table, groups)
    classes = equivalence_classes(low, high, groups)
    return discernibility(classes), average_class_size(classes, k), information_loss(low, high, groups, 5.0)


def by_members(groups: np.ndarray) -> set[frozenset[int]]:
    """The groups as sets of users, counted from 1."""
    return {frozenset((np.flatnonzero(groups == group) + 1).tolist()) for group in range(groups.max() + 1)}


def check_partition(groups: np.ndarray, n: int, k: int) -> np.ndarray:
    """Every user in one group, numbered without a gap, k or more in each; returns the sizes."""
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    assert groups.min() == 0
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    return sizes


def same_up_to_equal_rows(table: np.ndarray, groups: np.ndarray, expected: np.ndarray) -> bool:
    """Whether both cut the table into the same multisets of rows."""
    code = np.unique(np.nan_to_num(table, nan=-77), axis=0, return_inverse=True)[1].reshape(-1)

    def shapes(parts: np.ndarray) -> list:
        return sorted(sorted(code[parts == part].tolist()) for part in np.unique(parts))

    return shapes(groups) == shapes(expected)


def coded(table: np.ndarray, categorical: np.ndarray) -> np.ndarray:
    """What the methods compute with: not rated is 0 in a numeric column and the last category in others."""
    values = np.where(np.isnan(table), 0.0, table)
    for column in np.flatnonzero(categorical):
        values[:, column] = np.unique(table[:, column], return_inverse=True)[1]
    return values


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """A table with many equal values and rows, which columns are categorical, and a k that it has users for."""
    k = draw(st.integers(1, 6))
    n = draw(st.integers(k, 40))
    a = draw(st.integers(1, 4))
    values = draw(
        st.sampled_from(
            [
                [0.0, 1.0, np.nan],
                [1.0, 2.0, 3.0, 4.0, 5.0, np.nan],
                [0.5, 1.0, 2.5, 4.5, np.nan],
                [-10.0, -0.7, -0.0, 0.0, 3.3],
                [7.0],
                [np.nan],
                [np.nan, 1e99, -1e99, 1e-300, 1.0 / 3.0],
            ]
        )
    )
    table = draw(arrays(np.float64, (n, a), elements=st.sampled_from(values)))
    return table, draw(arrays(np.bool_, a)), k


def plain(table: np.ndarray) -> bool:
    """Whether all numbers are tenths of moderate size, so that a plain program tells equal sums apart from others."""
    rated = table[~np.isnan(table)]
    return bool((np.abs(rated) < 100).all() and np.array_equal(np.rint(rated * 10) / 10, rated))
