"""Queries on a generalized table: worked by hand, against a loop, and ml-100k as in the paper."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather.udfs.gathering import k_likeness
from kgather.udfs.measuring.query_error import domain_of, masks_of_ranges, masks_of_sets, query_errors

NAN = float("nan")
DOMAIN = np.array([1.0, 2, 3, 4, 5])


def bits(mask: np.uint64) -> list[int]:
    return [place for place in range(64) if int(mask) >> place & 1]


def test_the_domain_is_what_occurs() -> None:
    assert domain_of(np.array([[4, NAN], [1, 4]])).tolist() == [1, 4]
    many = domain_of(np.linspace(-10, 10, 1000).reshape(-1, 1))
    assert (len(many), many[0], many[-1]) == (64, -10, 10)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (2, 2, [1]),
        (1, 5, [0, 1, 2, 3, 4]),
        (3.5, 5, [3, 4]),
        (3.4, 3.4, [2]),
        (3.6, 3.6, [3]),
        (-3, 0.5, [0]),
        (7, 9, [4]),
        (0, 2, [0, 1]),
        (NAN, NAN, []),
    ],
)
def test_ranges_are_the_values_within(low: float, high: float, shown: list[int]) -> None:
    [[mask]] = masks_of_ranges(np.array([[low]]), np.array([[high]]), DOMAIN)
    assert bits(mask) == shown


def test_all_64_values_fit() -> None:
    domain = np.arange(64.0)
    [mask, last] = masks_of_ranges(np.array([0.0, 63]), np.array([63.0, 63]), domain)
    assert bits(mask) == list(range(64))
    assert bits(last) == [63]


def test_sets_are_the_values_of_the_members() -> None:
    table = np.array([[4, NAN], [5, NAN], [1, 2]])
    shown = masks_of_sets(table, np.array([0, 0, 1]), DOMAIN)
    assert [[bits(cell) for cell in row] for row in shown] == [[[3, 4], []], [[3, 4], []], [[0], [1]]]


def test_an_error_worked_by_hand() -> None:
    # Both users are shown as {4, 5}. Asked for 4 (or 5), the release counts 2 users of age 30 in the mean, the original
    # one, of 20 (or 40): errors (2 - 1) / 2 and 10 / 30.
    table = np.array([[4.0], [5.0]])
    truth, shown = masks_of_ranges(table, table, DOMAIN), masks_of_sets(table, np.array([0, 0]), DOMAIN)
    counts, averages = query_errors(truth, shown, np.array([20.0, 40.0]), DOMAIN, queries=20)
    assert set(counts) == {0.5}
    np.testing.assert_allclose(averages, 1 / 3)
    # What the release shows of the target may be something else.
    _, averages = query_errors(truth, shown, np.array([20.0, 20.0]), DOMAIN, queries=5, shown_target=np.full(2, 25.0))
    np.testing.assert_allclose(averages, 0.2)
    # A range of 1 has both: nothing is lost.
    counts, averages = query_errors(truth, shown, np.array([20.0, 40.0]), DOMAIN, queries=20, width=1)
    assert set(counts) == {0}


def test_queries_without_an_answer_are_left_out() -> None:
    # Nobody rated both; and the release shows nothing of the second.
    table = np.array([[4.0, NAN], [NAN, 2.0]])
    truth = masks_of_ranges(table, table, DOMAIN)
    counts, averages = query_errors(truth, truth, np.ones(2), DOMAIN, attributes=2, conjunction=True, queries=5)
    assert np.isnan(counts).all()
    assert np.isnan(averages).all()
    hidden = truth.copy()
    hidden[:, 1] = 0
    counts, _ = query_errors(truth, hidden, np.ones(2), DOMAIN, queries=40)
    assert 0 < np.isnan(counts).sum() < 40
    assert np.isnan(query_errors(truth, truth, np.full(2, NAN), DOMAIN, queries=5)[1]).all()


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 30),
    columns=st.integers(1, 5),
    attributes=st.integers(1, 5),
    conjunction=st.booleans(),
    width=st.sampled_from([0, 1, 2, 4]),
)
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_in_the_original_and_threads_change_nothing(
    seed: int, n: int, columns: int, attributes: int, conjunction: bool, width: float
) -> None:
    rng = np.random.default_rng(seed)
    attributes = min(attributes, columns)
    table = np.where(rng.random((n, columns)) < 0.7, rng.integers(1, 6, (n, columns)), NAN)
    table[0, 0] = 1
    domain, age = domain_of(table), rng.integers(18, 90, n).astype(float)
    truth = masks_of_ranges(table, table, domain)
    asked = {"attributes": attributes, "conjunction": conjunction, "width": width, "queries": 130, "seed": seed}
    for found in query_errors(truth, truth, age, domain, **asked):
        assert np.nan_to_num(found).max(initial=0) < 1e-12
    groups = rng.integers(0, 3, n)
    shown = masks_of_sets(table, groups, domain)
    once, again = (query_errors(truth, shown, age, domain, **asked, threads=threads) for threads in (1, 3))
    for left, right in zip(once, again, strict=True):
        np.testing.assert_array_equal(left, right)
    # A set holds the member's own value, so that the release never counts fewer: errors of counts are below 1.
    assert np.nan_to_num(once[0]).max(initial=0) < 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"attributes": 3}, "attributes must be between 1 and 2"),
        ({"attributes": 0}, "attributes must be between 1 and 2"),
        ({"queries": 0}, "queries must be at least 1"),
        ({"width": -1}, "width must be at least 0"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"shown_target": np.ones(3)}, "one number for each of their rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_no_sense_is_refused(options: dict, told: str) -> None:
    truth = masks_of_ranges(np.ones((4, 2)), np.ones((4, 2)), DOMAIN)
    with pytest.raises(InputError, match=told):
        query_errors(truth, truth, np.ones(4), DOMAIN, **options)


def test_tables_without_values_are_refused() -> None:
    with pytest.raises(InputError, match="no ratings to ask for"):
        domain_of(np.array([[NAN]]))
    with pytest.raises(InputError, match="not finite"):
        domain_of(np.array([[np.inf]]))
    nothing = np.zeros((0, 2), dtype=np.uint64)
    with pytest.raises(InputError, match="no users"):
        query_errors(nothing, nothing, np.ones(0), DOMAIN)


@pytest.fixture(scope="module")
def movies(data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    """The ten most rated items of ML-100k, with the raters' ages."""
    ratings = np.loadtxt(data_dir / "ml-100k" / "u.data", usecols=(0, 1, 2), dtype=int)
    ages = np.loadtxt(data_dir / "ml-100k" / "u.user", usecols=(0, 1), dtype=int, delimiter="|")
    raters = np.bincount(ratings[:, 1])
    top = np.lexsort((np.arange(len(raters)), -raters))[:10]
    ratings = ratings[np.isin(ratings[:, 1], top)]
    users, row = np.unique(ratings[:, 0], return_inverse=True)
    table = np.full((len(users), 10), NAN)
    table[row, np.argsort(top)[np.searchsorted(np.sort(top), ratings[:, 1])]] = ratings[:, 2]
    assert (len(users), len(ratings)) == (927, 4863)
    return table, ages[np.searchsorted(ages[:, 0], users), 1].astype(float)


def test_errors_go_as_in_the_paper(movies: tuple[np.ndarray, np.ndarray]) -> None:
    # Riyana and Natwichai, figures 13 to 15: mean age, k-Likeness with sets at k = 2.
    table, age = movies
    domain = domain_of(table)
    truth = masks_of_ranges(table, table, domain)
    shown = masks_of_sets(table, k_likeness.gather(table, 2), domain)

    def percent(**asked: object) -> float:
        return 100 * float(np.nanmean(query_errors(truth, shown, age, domain, queries=2000, **asked)[1]))

    by_or = [percent(attributes=number) for number in (1, 5, 10)]
    assert 4 > by_or[0] > by_or[1] > by_or[2]
    by_and = [percent(attributes=number, conjunction=True) for number in (1, 3, 5)]
    assert by_and[0] == pytest.approx(1.5, abs=0.4)
    assert by_and[0] < by_and[1] < by_and[2]
    assert percent(attributes=10, conjunction=True) == pytest.approx(19.3, abs=2)
    by_range = [percent(width=width) for width in range(4)]
    assert by_range == sorted(by_range, reverse=True)
    assert by_range[2] < 1.25
    assert by_range[3] < 1
