"""k^m-anonymity: small sets by hand, all sets by brute force, MovieLens, hostile and bad input."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import matrix_of, movielens_100k

from kgather._errors import InputError
from kgather.udfs.checking.item_sets import least_support, violations
from kgather.udfs.diversity.item_diversity import least_coverage, number_of_sets
from kgather.udfs.ratings.matrix import RatingMatrix


def rated(*rows: tuple[int, ...], n_items: int = 6) -> RatingMatrix:
    """One user for each set of items; rated 1, 2 ... in turn."""
    users = [user for user, items in enumerate(rows) for _ in items]
    items = [item for row in rows for item in row]
    return matrix_of((users, items, [1.0 + i % 5 for i in range(len(items))]), len(rows), n_items)


def supports(rows: list[tuple[int, ...]], size: int) -> dict[tuple[int, ...], int]:
    """How many users have each set that some user has."""
    found = {one for row in rows for one in combinations(sorted(row), size)}
    return {one: sum(set(one) <= set(row) for row in rows) for one in found}


def test_by_hand() -> None:
    # items: 4, 3 and 3 users; pairs: 2 each, (0, 1), (0, 2), (1, 2); three: one user
    matrix = rated((0, 1, 2), (0, 1), (0, 2), (0,), (1, 2))
    assert [least_support(matrix, m) for m in (1, 2, 3)] == [3, 2, 1]
    assert [violations(matrix, 3, k)[0] for k in (1, 2, 3, 4)] == [1, 1, 2, 3]
    assert [violations(matrix, 3, k)[1].tolist() for k in (1, 2, 3, 4)] == [[0, 0, 0], [0, 0, 1], [0, 3], [2]]
    assert violations(matrix, 2, 2)[1].tolist() == [0, 0]


def test_alike_users_cannot_fail() -> None:
    matrix = rated((0, 1, 2), (0, 1, 2), (3, 4), (3, 4), (0, 1, 2))
    assert [least_support(matrix, m) for m in (1, 2, 3)] == [2, 2, 2]
    assert violations(matrix, 3, 2)[1].tolist() == [0, 0, 0]
    # by item 0 of the one user with four
    matrix = rated((0, 1), (0, 1), (1, 2), (1, 2), (0, 1, 2))
    assert [least_support(matrix, m) for m in (1, 2, 3)] == [3, 1, 1]


def test_users_and_items_without_ratings_are_in_no_set() -> None:
    matrix = rated((1, 4), (), (1, 4), ())
    assert least_support(matrix, 3) == 2
    nothing = RatingMatrix(3, 2, np.zeros(4, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    assert [least_support(nothing, m) for m in (1, 2, 3)] == [3, 3, 3]
    assert violations(nothing, 3, 2)[1].tolist() == [0, 0, 0]


ROWS = st.lists(st.lists(st.integers(0, 5), max_size=6, unique=True).map(tuple), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(rows=ROWS, m=st.integers(1, 3), k=st.integers(1, 6), repeats=st.integers(1, 3))
def test_all_sets(rows: list[tuple[int, ...]], m: int, k: int, repeats: int) -> None:
    rows = [*rows, (0,)] * repeats
    matrix = rated(*rows)
    by_size = [supports(rows, size) for size in range(1, m + 1)]
    assert least_support(matrix, m) == min(min(found.values(), default=len(rows)) for found in by_size)
    failing = [sum(count < k for count in found.values()) for found in by_size]
    shown = next((size for size in range(m) if failing[size]), m - 1) + 1
    least, numbers = violations(matrix, m, k)
    assert numbers.tolist() == failing[:shown]
    assert least == min([k, *(min(found.values(), default=k) for found in by_size[:shown])])
    assert least_support(matrix, m, threads=3) == least_support(matrix, m)
    assert violations(matrix, m, k, threads=3)[1].tolist() == numbers.tolist()


@pytest.fixture(scope="module")
def movielens(data_dir: Path) -> RatingMatrix:
    return matrix_of(*movielens_100k(data_dir))


def top(matrix: RatingMatrix, n: int) -> np.ndarray:
    kept = np.zeros(matrix.n_items, dtype=bool)
    kept[np.argsort(-np.bincount(matrix.items, minlength=matrix.n_items), kind="stable")[:n]] = True
    return kept


@pytest.mark.parametrize(("n", "m"), [(60, 1), (60, 2), (60, 3), (300, 2)])
def test_movielens_against_coverage_by_users(movielens: RatingMatrix, n: int, m: int) -> None:
    # a user is a group that shows what it has rated
    kept = top(movielens, n)
    matrix = movielens.with_items(kept)
    users = np.repeat(np.arange(matrix.n_users), np.diff(matrix.indptr))
    covered = least_coverage((users, matrix.items), matrix.n_users, matrix, kept, b=m)
    assert least_support(matrix, m) == covered
    assert least_support(matrix, m, threads=2) == covered


def test_movielens_is_not_anonymous(movielens: RatingMatrix) -> None:
    # 141 items have one rating each, so nothing larger is looked at
    assert least_support(movielens, 3, max_sets=1) == 1
    least, numbers = violations(movielens, 3, 2, max_sets=1)
    assert (least, numbers.tolist()) == (1, [141])


def test_large_classes_need_no_sets() -> None:
    # 40 item sets of 60 items, 500 users each: 34,220 sets of three items a user, none looked at
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(100, 60, replace=False)) for _ in range(40)]
    items = np.tile(np.concatenate(rows), 500).astype(np.int32)
    matrix = RatingMatrix(20_000, 100, np.arange(20_001) * 60, items, np.ones(len(items), dtype=np.float32))
    # that none is looked at is counted: more than one set would be refused
    assert violations(matrix, 3, 500, max_sets=1)[1].tolist() == [0, 0, 0]
    assert violations(matrix, 1, 501)[0] == 501
    with pytest.raises(InputError, match="there are 70800 sets of 2 items to look at, more than 70799"):
        violations(matrix, 2, 501, max_sets=70_799)


def test_a_user_who_has_rated_all_is_no_trap() -> None:
    everything = np.arange(3000, dtype=np.int32)
    alone = np.zeros(20_000, dtype=np.int32)
    indptr = np.concatenate([[0], 3000 + np.arange(20_001)]).astype(np.int64)
    values = np.ones(23_000, dtype=np.float32)
    matrix = RatingMatrix(20_001, 3000, indptr, np.concatenate([everything, alone]), values)
    assert violations(matrix, 3, 2)[1].tolist() == [2999]
    assert number_of_sets(matrix, np.ones(3000, dtype=bool), 2) == 4_498_500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, "m must be between 1 and 3, not 0"),
        ({"m": 4}, "m must be between 1 and 3, not 4"),
        ({"max_sets": 0}, "max_sets must be at least 1, not 0"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
        ({"max_sets": 3}, "there are 4 sets of 2 items to look at, more than 3: choose a smaller m"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, int], message: str) -> None:
    matrix = rated((0, 1, 2), (0, 1), (2,))
    with pytest.raises(InputError, match=message):
        least_support(matrix, **{"m": 2, **options})
    with pytest.raises(InputError, match=message):
        violations(matrix, **{"m": 2, "k": 2, **options})


def test_k_is_checked() -> None:
    with pytest.raises(InputError, match="k must be at least 1, not 0"):
        violations(rated((0,)), 1, 0)
