"""Tables of artifacts: the paper's figures, the codes, and what is refused."""

import numpy as np
import pytest
from artifact_data import PUBLISHED, coded, paper_table, small_tables, top_ten
from hypothesis import given, settings

from kgather._errors import InputError
from kgather.udfs.gathering import k_likeness, k_member, mondrian
from kgather.udfs.measuring.generalization_loss import (
    average_class_size,
    class_ranges,
    discernibility,
    equivalence_classes,
    information_loss,
)
from kgather.udfs.ratings.artifacts import CodedRows, checked_artifacts, coded_rows

METHODS = [k_likeness.gather, k_member.gather, mondrian.gather]
NAMES = ["k_likeness", "k_member", "mondrian"]
EXAMPLE = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])  # the published classes


def test_published_figures_of_the_example() -> None:
    assert {frozenset((np.flatnonzero(group == EXAMPLE) + 1).tolist()) for group in range(3)} == PUBLISHED
    low, high = class_ranges(paper_table(), EXAMPLE)
    classes = equivalence_classes(low, high, EXAMPLE)
    assert discernibility(classes) == 34
    assert average_class_size(classes, 3) == pytest.approx(1.11, abs=0.002)
    # table 3: the ranges of the members
    nan = np.nan
    assert np.array_equal(low, [[4, nan, 3, 0, 3], [0, 5, 4, 0, 1], [2, 4, 3, nan, nan]], equal_nan=True)
    assert np.array_equal(high, [[5, nan, 4, 1, 4], [1, 5, 5, 2, 2], [2, 4, 3, nan, nan]], equal_nan=True)
    assert information_loss(low, high, EXAMPLE, 5) == pytest.approx(0.128)


def test_loss_of_the_example_in_halves() -> None:
    # table 2: a range within 0..2 or 3..5 becomes that half, any other one 0..5, a single value stays
    low, high = class_ranges(paper_table(), EXAMPLE)
    ranged = high > low
    halves = ranged & ((high <= 2) | (low >= 3))
    wide_low = np.where(ranged, np.where(halves & (low >= 3), 3, 0), low)
    wide_high = np.where(ranged, np.where(halves & (high <= 2), 2, 5), high)
    assert information_loss(wide_low, wide_high, EXAMPLE, 5) == pytest.approx(0.224)
    assert discernibility(equivalence_classes(wide_low, wide_high, EXAMPLE)) == 34


def test_groups_that_show_the_same_are_one_class() -> None:
    table = np.array([[1.0, np.nan], [2, np.nan], [2, np.nan], [1, np.nan], [1, 0], [2, 0]])
    groups = np.array([0, 0, 1, 1, 2, 2])
    low, high = class_ranges(table, groups)
    classes = equivalence_classes(low, high, groups)
    # a rating of 0 is shown, no rating is not
    assert classes[0] == classes[1] == classes[2] == classes[3] != classes[4] == classes[5]
    assert discernibility(classes) == 16 + 4
    assert average_class_size(classes, 2) == 1.5


def test_loss_of_columns_of_their_own_width() -> None:
    low, high = np.array([[0.0, 3.0, 1.0]]), np.array([[5.0, 3.0, 3.0]])
    groups = np.zeros(4, dtype=int)
    assert information_loss(low, high, groups, np.array([10.0, 0.0, 4.0])) == pytest.approx((0.5 + 0 + 0.5) / 3)


@pytest.mark.parametrize("groups", [np.array([0, 2, 2]), np.array([-1, 0, 0]), np.array([0, 0]), np.zeros(3)])
def test_refuses_groups(groups: np.ndarray) -> None:
    with pytest.raises(InputError):
        class_ranges(np.zeros((3, 2)), groups)


def test_the_real_table_is_the_papers(data_dir) -> None:
    table = top_ten(data_dir)
    assert table.shape == (927, 10)
    assert (~np.isnan(table)).sum() == 4863


def _decoded(rows: CodedRows) -> np.ndarray:
    """The coded row of every user, [n, a]."""
    back = np.empty((len(rows.order), len(rows.columns)), dtype=rows.columns.dtype)
    back[rows.order] = rows.columns.T[np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))]
    return back


@settings(max_examples=150, deadline=None)
@given(small_tables())
def test_coded_rows_keep_all_distances(drawn: tuple) -> None:
    table, categorical, _ = drawn
    artifacts = checked_artifacts(table, 1, categorical)
    values = coded(table, categorical)
    assert np.array_equal(artifacts.values, values)
    for by_width in (False, True):
        rows = coded_rows(artifacts, by_width=by_width)
        scale = np.ones(table.shape[1])
        if by_width:
            scale = np.where(np.ptp(values, axis=0) > 0, np.ptp(values, axis=0), 1.0)
        scale[categorical] = 1.0
        theirs = values / scale
        ours = _decoded(rows).astype(np.float64)
        reach, coded_reach = (np.ptp(side[:, ~categorical], axis=0).sum() for side in (theirs, ours))
        factor = coded_reach / reach if reach > 0 else float(rows.unit)
        for i in range(len(table)):
            gaps = np.abs(theirs - theirs[i])
            gaps[:, categorical] = gaps[:, categorical] > 0
            found = np.abs(ours - ours[i])
            found[:, categorical] = (found[:, categorical] > 0) * float(rows.unit)
            assert found.sum(axis=1) / factor == pytest.approx(gaps.sum(axis=1), abs=1e-12 * reach)
        # in order, distinct, and never farther apart in their sums than in distance
        totals = rows.totals.astype(np.float64)
        assert (np.diff(totals) >= 0).all()
        assert len(np.unique(rows.columns, axis=1).T) == len(totals)
        assert sorted(rows.order) == list(range(len(table)))


@pytest.mark.parametrize(
    ("table", "by_width", "unit"),
    [
        ([[1, 5], [2, 4]], False, 1),
        ([[0.5, 5], [2, 4]], False, 2),
        ([[0.1, 5], [0.7, 4]], False, 10),
        ([[1 / 3, 5], [2, 4]], False, None),
        ([[0, 0], [16_000, 0]], False, 1),
        ([[0, 0], [16_000, 1]], False, None),
        ([[0, 0], [4, 5]], True, 20),
        ([[0, 0], [20_000, 5]], True, None),
        ([[0, 0], [127, 131]], True, None),  # their least common multiple is too large
    ],
)
def test_choice_of_codes(table: list, by_width: bool, unit: int | None) -> None:
    rows = coded_rows(checked_artifacts(np.array(table), 1), by_width=by_width)
    if unit is None:
        assert rows.columns.dtype == np.float64
        assert np.array_equal(rows.columns, np.rint(rows.columns))
        assert 2**48 < rows.columns.max(axis=1).sum() < 2**53
    else:
        assert rows.columns.dtype == np.int16
        assert rows.unit == unit


@pytest.mark.parametrize("gather", METHODS, ids=NAMES)
@pytest.mark.parametrize(
    ("table", "k", "options", "says"),
    [
        (np.zeros((4, 2)), 5, {}, "4 users .* at least 5"),
        (np.zeros((0, 2)), 1, {}, "0 users .* at least 1"),
        (np.zeros((4, 2)), 0, {}, "k must be at least 1"),
        (np.zeros((4, 2)), 2.5, {}, "k must be a whole number"),
        (np.zeros((4, 2)), True, {}, "k must be a whole number"),
        (np.zeros((4, 0)), 2, {}, "at least one column"),
        (np.zeros(4), 2, {}, "at least one column"),
        (np.array([["a"], ["b"]]), 1, {}, "must be numbers"),
        (np.array([[1j], [2]]), 1, {}, "must be numbers"),
        (np.array([[1.0], [np.inf], [np.nan], [-np.inf]]), 2, {}, "2 of 4 rows .* infinite"),
        (np.array([[1.0], [1e101]]), 1, {}, r"1 of 2 rows .* beyond 1e\+100"),
        (np.array([[1], [1 << 60]]), 1, {}, "1 of 2 rows .* beyond"),
        (np.array([[1.0], [np.inf]]), 1, {"categorical": [True]}, "1 of 2 rows"),
        (np.zeros((4, 2)), 2, {"categorical": [True]}, "each of the 2 columns"),
        (np.zeros((4, 2)), 2, {"categorical": [0, 1]}, "true or false"),
        (np.zeros((4, 2)), 2, {"categorical": True}, "each of the 2 columns"),
        (np.zeros((4, 2)), 2, {"threads": 0}, "threads must be at least 1"),
        (np.zeros((4, 2)), 2, {"threads": 1.5}, "threads must be a whole number"),
    ],
)
def test_refuses(gather, table: np.ndarray, k: object, options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        gather(table, k, **options)


@pytest.mark.parametrize("gather", METHODS, ids=NAMES)
def test_input_is_left_alone_and_its_form_does_not_matter(gather) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 6, (60, 4)).astype(np.float64)
    before = table.copy()
    groups = gather(table, 3, categorical=np.array([False, True, False, False]))
    assert np.array_equal(table, before)
    for form in (table.astype(np.int64), table.astype(np.float32), np.asfortranarray(table), table.astype(np.uint8)):
        assert np.array_equal(groups, gather(form, np.int64(3), categorical=[False, True, False, False]))
    table.flags.writeable = False
    assert np.array_equal(groups, gather(table, 3, categorical=(False, True, False, False)))
