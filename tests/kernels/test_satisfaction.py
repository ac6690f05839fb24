"""The satisfaction problem: the paper's tables, the definitions by brute force, MovieLens, and hostile input."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import check_growth, movielens_100k

from kgather._errors import InputError
from kgather.udfs.checking import satisfaction
from kgather.udfs.checking.satisfaction import fewest_neighbours, least_deviation, neighbours
from kgather.udfs.gathering.epsilon import decompose
from kgather.udfs.ratings.matrix import RatingMatrix

N = np.nan
# columns 1 to 4: the first two are not sensitive
TABLE_1 = np.array([[6, 1, N, 6], [1, 6, N, 1], [2, 5, N, 1], [1, N, 5, 1], [2, N, 6, 5]])
TABLE_2 = np.array([[3, 6, N, 6], [2, 5, N, 1], [4, 7, N, 4], [5, 6, N, 1], [1, N, 5, 1], [2, N, 6, 5]])


def matrix(table: np.ndarray) -> RatingMatrix:
    """The ratings of a table of users and items, NaN where there is none."""
    table = np.asarray(table, dtype=np.float64)
    rated = ~np.isnan(table)
    indptr = np.concatenate([[0], np.cumsum(rated.sum(axis=1))]).astype(np.int64)
    return RatingMatrix(*table.shape, indptr, np.nonzero(rated)[1].astype(np.int32), table[rated].astype(np.float32))


def near(table: np.ndarray, epsilon: float, r: float) -> np.ndarray:
    """bool[n, n]: definition 1 with equation 1, with the tolerance that float32 needs."""
    found = np.ones((len(table), len(table)), dtype=bool)
    limit = epsilon + 2.0**-23 * float(np.nanmax(np.abs(table), initial=0))
    for column in np.asarray(table, dtype=np.float32).astype(np.float64).T:
        a, b = column[:, None], column[None, :]
        found &= np.where(np.isnan(a) | np.isnan(b), (np.isnan(a) & np.isnan(b)) | (r <= epsilon), abs(a - b) <= limit)
    return found


def deviation(table: np.ndarray, sensitive: np.ndarray, epsilon: float, r: float) -> float:
    """Definition 3, nulls left out."""
    least = np.inf
    for row in near(table, epsilon, r):
        for column in sensitive[row].T:
            held = column[~np.isnan(column)]
            if len(held):
                least = min(least, held.std())
    return least


def counted(table: np.ndarray, epsilon: float, r: float, at_most: int | None = None, **options: int) -> list[int]:
    found = neighbours(matrix(table), epsilon, r=r, at_most=at_most or len(table), **options)
    assert found.dtype == np.int32
    assert found.shape == (len(table),)
    return found.tolist()


# The paper's examples --------------------------------------------------------------------------------------------


def test_table_1() -> None:
    table = TABLE_1[:, :2]
    assert counted(table, 5, 6) == [3, 3, 3, 2, 2]  # {t1, t2, t3} and {t4, t5}
    assert fewest_neighbours(matrix(table), 5, r=6, at_most=2) == 2
    assert counted(table, 1, 6) == [1, 2, 2, 2, 2]  # t2 and t3, t4 and t5
    assert fewest_neighbours(matrix(table), 1, r=6, at_most=2) == 1
    assert counted(table, 6, 6) == [5] * 5


def test_table_2() -> None:
    table = TABLE_2[:, :2]
    assert counted(table, 2, 7) == [4, 3, 4, 3, 2, 2]
    assert counted(table, 1, 7) == [3, 2, 3, 2, 2, 2]
    assert counted(table, 1, 7, at_most=2) == [2] * 6
    assert counted(table, 0, 7) == [1] * 6


def test_deviations_of_the_paper() -> None:
    column_4 = TABLE_1[:, 3:]
    assert least_deviation(matrix(TABLE_1[:, :2]), column_4, 6, r=6) == pytest.approx(2.227, abs=5e-4)
    assert least_deviation(matrix(TABLE_1[3:, :2]), column_4[3:], 1, r=6) == 2
    # t2 and t3 have the same value
    assert least_deviation(matrix(TABLE_1[:, :2]), column_4, 1, r=6) == 0


def test_null_is_as_far_as_r_from_a_rating() -> None:
    table = np.array([[1, N], [2, 3], [N, 3.0]])
    assert counted(table, 1.9, 2) == [1, 1, 1]
    assert counted(table, 2, 2) == [3, 3, 3]  # from r on only items that both have rated count
    table = np.array([[1, N], [9, 3], [N, 3.0]])
    assert counted(table, 2, 2) == [2, 2, 3]


def test_sensitive_nulls_are_left_out() -> None:
    table = np.ones((3, 1))
    assert least_deviation(matrix(table), np.array([[5], [N], [N]]), 0, r=4) == 0
    assert least_deviation(matrix(table), np.array([[5], [N], [1.0]]), 0, r=4) == 2
    assert least_deviation(matrix(table), np.full((3, 2), N), 0, r=4) == np.inf
    assert least_deviation(matrix(table), np.empty((3, 0)), 0, r=4) == np.inf
    # a column nobody near has rated passes, the other counts
    assert least_deviation(matrix(table), np.array([[N, 3], [N, 3], [N, 9.0]]), 0, r=4) == pytest.approx(np.sqrt(8))


# The definitions -------------------------------------------------------------------------------------------------


def drawn_table(rng: np.random.Generator, n: int, m: int, kind: str, share: float) -> np.ndarray:
    table = rng.integers(1, 6, (n, m)).astype(np.float64)
    if kind == "any numbers":
        table = rng.normal(0, 3, (n, m))
    if kind == "alike":  # a few rows, a few ratings moved
        table = table[rng.integers(0, min(n, 3), n)] + (rng.random((n, m)) < 0.05)
    if kind == "mostly one value":
        table = np.where(rng.random((n, m)) < 0.95, -3.0, rng.normal(-3, 2, (n, m)))
    table[rng.random((n, m)) >= share] = np.nan
    return table[rng.integers(0, max(1, n // 4), n)] if kind == "repeated" else table


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([1, 2, 5, 40, 200, 700]),
    m=st.integers(1, 8),
    kind=st.sampled_from(["1 to 5", "any numbers", "alike", "mostly one value", "repeated"]),
    share=st.sampled_from([1.0, 1.0, 0.9, 0.5]),
    epsilon=st.sampled_from([0, 0.5, 1, 2, 4]),
    r=st.sampled_from([0.5, 1, 3, 5]),
    at_most=st.sampled_from([1, 2, 10, 100_000]),
)
def test_what_brute_force_finds(
    seed: int, n: int, m: int, kind: str, share: float, epsilon: float, r: float, at_most: int
) -> None:
    rng = np.random.default_rng(seed)
    table = drawn_table(rng, n, m, kind, share)
    expected = np.minimum(near(table, epsilon, r).sum(axis=1), at_most)
    assert counted(table, epsilon, r, at_most) == expected.tolist()
    assert counted(table, epsilon, r, at_most, threads=3) == expected.tolist()
    sensitive = rng.integers(0, 4, (n, 2)).astype(np.float64)
    sensitive[rng.random((n, 2)) < 0.4] = np.nan
    least = least_deviation(matrix(table), sensitive, epsilon, r=r)
    assert least == least_deviation(matrix(table), sensitive, epsilon, r=r, threads=3)
    assert least == pytest.approx(deviation(table, sensitive, epsilon, r), abs=1e-9)


@pytest.mark.parametrize("n_bits", [1, 2, 3, 8], ids=lambda n: f"{n} items with bits")
@pytest.mark.parametrize("kind", ["1 to 5", "any numbers", "mostly one value"])
@pytest.mark.parametrize(("share", "r"), [(1, 5), (0.6, 0.5)], ids=["one item set", "common items"])
def test_every_way_and_many_blocks_find_the_same(
    monkeypatch: pytest.MonkeyPatch, n_bits: int, kind: str, share: float, r: float
) -> None:
    table = drawn_table(np.random.default_rng(0), 1200, 8, kind, share)
    sensitive = np.random.default_rng(1).integers(0, 9, (1200, 1)).astype(np.float64)
    monkeypatch.setattr(satisfaction, "_bits_that_fit", lambda points: min(n_bits, points.n_axes))
    if n_bits < 8:
        monkeypatch.setattr(satisfaction, "_BITS_MEMORY", 1 << 12)  # blocks of 1,024 candidates
    expected = near(table, 1, r).sum(axis=1)
    assert counted(table, 1, r) == expected.tolist()
    assert counted(table, 1, r, 3, threads=2) == np.minimum(expected, 3).tolist()
    assert least_deviation(matrix(table), sensitive, 1, r=r) == pytest.approx(
        deviation(table, sensitive, 1, r), abs=1e-9
    )


# Real data -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def movielens(data_dir: Path) -> np.ndarray:
    (users, items, ratings), n, m = movielens_100k(data_dir)
    table = np.full((n, m), np.nan)
    table[users, items] = ratings
    return table


def test_movielens_has_no_neighbours_below_the_width(movielens: np.ndarray) -> None:
    # all item sets differ
    assert counted(movielens, 4, 5, 20) == [1] * 943
    assert counted(movielens, 5, 5, 20) == [20] * 943
    assert least_deviation(matrix(movielens), movielens[:, [49]], 4, r=5) == 0


@pytest.mark.parametrize("epsilon", [1, 2])
@pytest.mark.parametrize("filled", [True, False], ids=["filled with 3", "common items"])
def test_movielens_against_the_definition(movielens: np.ndarray, epsilon: float, filled: bool) -> None:
    table, r = (np.where(np.isnan(movielens), 3, movielens), 5) if filled else (movielens, 1)
    most = np.argsort(-(~np.isnan(movielens)).sum(axis=0), kind="stable")
    table, sensitive = table[:, most[2:120]], movielens[:, most[:2]]
    expected = near(table, epsilon, r).sum(axis=1)
    assert counted(table, epsilon, r) == expected.tolist()
    assert counted(table, epsilon, r, 20, threads=2) == np.minimum(expected, 20).tolist()
    assert least_deviation(matrix(table), sensitive, epsilon, r=r, threads=2) == pytest.approx(
        deviation(table, sensitive, epsilon, r), abs=1e-9
    )


def test_cliques_are_neighbours(movielens: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    clones = movielens[rng.integers(0, 47, 943)]
    moved = np.clip(clones + rng.choice([-1, 1], clones.shape), 1, 5)
    clones = np.where(rng.random(clones.shape) < 0.02, moved, clones)
    groups, is_clique = decompose(matrix(clones), 5, epsilon=1, rating_range=5, vectors=rng.standard_normal((943, 2)))
    assert is_clique.sum() > 50
    assert neighbours(matrix(clones), 1, r=5, at_most=5)[is_clique[groups]].min() == 5


# Hostile input ---------------------------------------------------------------------------------------------------


def test_equal_users_are_one_row() -> None:
    table = np.tile([[3.0, N, 5.0]], (50_000, 1))
    assert set(counted(table, 0, 4, 50_000)) == {50_000}
    table[::2, 0] = 1
    assert set(counted(table, 1, 4, 50_000)) == {25_000}
    assert least_deviation(matrix(table), np.arange(50_000.0)[:, None], 1, r=4) == pytest.approx(14433.757, rel=1e-6)


def test_rows_of_k_users_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    # what an anonymized release looks like
    table = np.repeat(np.random.default_rng(0).integers(1, 6, (300, 12)), 5, axis=0).astype(np.float64)
    single = np.concatenate([table, table[:1] + 1])
    assert counted(single, 1, 4, 5) == [5] * 1500 + [5]
    assert counted(single, 0, 4, 5) == [5] * 1500 + [1]
    monkeypatch.setattr(satisfaction, "_points", None)
    assert counted(table, 1, 4, 5) == [5] * 1500


def test_nobody_has_rated_anything() -> None:
    assert counted(np.full((4, 3), N), 0, 5) == [4] * 4
    assert counted(np.array([[N], [N], [1.0]]), 0, 5) == [2, 2, 1]
    assert counted(np.array([[N], [N], [1.0]]), 5, 5) == [3, 3, 3]


def test_one_item_and_one_user() -> None:
    assert counted(np.array([[2.0]]), 0, 5) == [1]
    assert counted(np.array([[1], [2], [3], [9.0]]), 1, 5) == [2, 3, 2, 1]


def test_negative_ratings_tenths_and_zeros() -> None:
    assert counted(np.array([[-10], [-9.5], [10.0]]), 0.5, 20) == [2, 2, 1]
    assert counted(np.array([[-10], [10.0]]), 19.9, 20) == [1, 1]
    assert counted(np.array([[0.0], [-0.0]]), 0, 1) == [2, 2]
    # as float32 they differ by more than 0.2
    assert counted(np.array([[3.3], [3.1]]), 0.2, 5) == [2, 2]
    assert counted(np.array([[3.3], [3.1]]), 0.1999, 5) == [1, 1]


def many_rows(kind: str) -> tuple[np.ndarray, float]:
    rng = np.random.default_rng(0)
    if kind == "one item, all apart":
        return np.arange(100_000.0)[:, None] * 4, 1
    if kind == "one item, an outlier":
        return np.append(np.arange(99_999) / 1e5, 1e6)[:, None], 1e-3
    if kind == "five rows, each with its own noise":
        table = rng.integers(1, 6, (5, 30))[rng.integers(0, 5, 30_000)].astype(np.float64)
        table[np.arange(30_000), rng.integers(0, 30, 30_000)] += rng.random(30_000)
        return table, 0.1
    return np.where(rng.random((20_000, 60)) < 0.1, rng.integers(1, 6, (20_000, 60)), 3).astype(np.float64), 1


@pytest.mark.parametrize(
    "kind",
    ["one item, all apart", "one item, an outlier", "five rows, each with its own noise", "filled with 3"],
)
def test_many_rows_are_no_trap(kind: str) -> None:
    table, epsilon = many_rows(kind)
    check_growth(lambda n: neighbours(matrix(table[:n]), epsilon, r=5, at_most=10), len(table))
    found = neighbours(matrix(table), epsilon, r=5, at_most=10)
    some = np.random.default_rng(1).choice(len(table), 20, replace=False)
    apart = np.abs(table[some, None].astype(np.float32) - table[None].astype(np.float32)).max(axis=2)
    assert found[some].tolist() == np.minimum((apart <= epsilon + 1e-6).sum(axis=1), 10).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1}, "epsilon must be at least 0, not -1"),
        ({"epsilon": N}, "epsilon must be a finite number, not nan"),
        ({"r": 0}, "r must be more than 0, not 0"),
        ({"at_most": 0}, "at_most must be at least 1, not 0"),
        ({"at_most": 2.0}, "at_most must be a whole number, not 2.0"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    given = {"epsilon": 1, "r": 5, "at_most": 2, **options}
    with pytest.raises(InputError, match=message):
        neighbours(matrix(TABLE_1), **given)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_ratings_that_are_not_finite_are_refused(value: float) -> None:
    bad = RatingMatrix(2, 1, np.array([0, 1, 2]), np.zeros(2, np.int32), np.array([1, value], np.float32))
    with pytest.raises(InputError, match="some ratings are not finite"):
        neighbours(bad, 1, r=5, at_most=2)


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [
        (np.ones((4, 1)), "one row for each of 5 users, not 4x1"),
        (np.ones(5), "one row for each of 5 users, not 5"),
        (np.full((5, 1), np.inf), "infinite"),
        (np.full((5, 1), 1e200), "larger than 1e"),
        (np.full((5, 1), "x"), "must be numbers"),
    ],
    ids=["too few rows", "no table", "infinite", "too large", "text"],
)
def test_bad_sensitive_values_are_refused(sensitive: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        least_deviation(matrix(TABLE_1), sensitive, 1, r=6)
