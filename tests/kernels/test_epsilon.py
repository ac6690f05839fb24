"""(k, epsilon)-anonymity: the paper's tables, the definition itself, and the best that is possible on small data."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import Ratings, check_growth, matrix_of, movielens_100k

from kgather._errors import InputError
from kgather.udfs.gathering import bkg, epsilon
from kgather.udfs.gathering.epsilon import decompose, gather, keep_cliques
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.ratings._equal_rows import equal_rows
from kgather.udfs.ratings.matrix import RatingMatrix

Row = list[float | None]

TABLE_1 = [[6, 1], [1, 6], [2, 5], [1, None], [2, None]]  # its first two columns: the others are sensitive
TABLE_2 = [[3, 6], [2, 5], [4, 7], [5, 6], [1, None], [2, None]]


def matrix(rows: list[Row]) -> RatingMatrix:
    cells = [(user, item, x) for user, row in enumerate(rows) for item, x in enumerate(row) if x is not None]
    users, items, ratings = zip(*cells, strict=True)
    return matrix_of((users, items, ratings), len(rows), max(map(len, rows)))


def groups_of(rows: list[Row], k: int, epsilon: float, rating_range: float = 7, **options: object) -> list[tuple]:
    """The groups as sets of users, each with whether it is a clique; users are compared by their places."""
    options.setdefault("vectors", np.arange(len(rows), dtype=np.float32)[:, None])
    groups, is_clique = decompose(matrix(rows), k, epsilon=epsilon, rating_range=rating_range, **options)
    found = [({int(user) for user in np.flatnonzero(groups == g)}, bool(is_clique[g])) for g in range(len(is_clique))]
    return sorted(found, key=lambda group: min(group[0]))


def near(a: Row, b: Row, epsilon: float, rating_range: float) -> bool:
    """Definition 1, with equation 1 as the distance."""

    def distance(x: float | None, y: float | None) -> float:
        if x is None or y is None:
            return 0 if x is y else rating_range
        return abs(x - y)

    return all(distance(x, y) <= epsilon for x, y in zip(a, b, strict=True))


def is_proximate(rows: list[Row], epsilon: float, rating_range: float) -> bool:
    return all(near(a, b, epsilon, rating_range) for a, b in combinations(rows, 2))


@pytest.mark.parametrize("epsilon", [1, 2, 5, 6])
def test_table_2_is_decomposable(epsilon: float) -> None:
    assert groups_of(TABLE_2, 2, epsilon) == [({0, 1}, True), ({2, 3}, True), ({4, 5}, True)]


def test_table_1() -> None:
    # (2, 5): two groups. With epsilon 1 only t2, t3 and t4, t5 are near each other, and t1 joins the nearest.
    assert groups_of(TABLE_1, 2, 5, 6) == [({0, 1, 2}, True), ({3, 4}, True)]
    assert groups_of(TABLE_1, 2, 1, 6) == [({0, 1, 2}, False), ({3, 4}, True)]
    assert groups_of(TABLE_1[1:], 2, 1, 6) == [({0, 1}, True), ({2, 3}, True)]


def test_from_the_range_on_everybody_is_near() -> None:
    rows = [[1, None, 3], [None, 5, None], [5, None, 1], [2, 2, 2]]
    vectors = np.array([[0.0], [9.0], [1.0], [10.0]])
    assert groups_of(rows, 2, 5, 5, vectors=vectors) == [({0, 2}, True), ({1, 3}, True)]
    assert [clique for _, clique in groups_of(rows, 2, 3.9, 5, vectors=vectors)] == [False, False]


def test_ratings_further_apart_than_the_range_are_so_still() -> None:
    assert groups_of([[-9], [9], [-9], [9]], 2, 10, 10) == [({0, 2}, True), ({1, 3}, True)]
    assert groups_of([[-9], [9]], 2, 10, 10) == [({0, 1}, False)]
    assert groups_of([[-9], [9]], 2, 18, 10) == [({0, 1}, True)]


@pytest.mark.parametrize(
    ("ratings", "k", "epsilon", "expected"),
    [
        # a path: its ends, which have one neighbour, choose first
        ([0, 1, 2, 3], 2, 1, [{0, 1}, {2, 3}]),
        ([3, 1, 0, 2], 2, 1, [{0, 3}, {1, 2}]),
        # equal users are shared out: each of the ends needs one of the two in the middle
        ([0, 1, 1, 2], 2, 1, [{0, 2}, {1, 3}]),
        # a gap on both sides of everybody
        ([0, 0, 5, 5], 2, 1, [{0, 1}, {2, 3}]),
        # who is left over joins a clique in whose box it fits
        ([0, 0, 1], 2, 1, [{0, 1, 2}]),
        # a clique of 2k is two
        ([4, 4, 4, 4, 4], 2, 0, [{0, 1, 2}, {3, 4}]),
    ],
    ids=str,
)
def test_cliques_on_a_line(ratings: list[float], k: int, epsilon: float, expected: list[set[int]]) -> None:
    assert groups_of([[rating] for rating in ratings], k, epsilon) == [(group, True) for group in expected]


def test_who_is_left_over_of_one_item_set_stays_together() -> None:
    # nobody is near anybody; users 4 and 5 have rated another item, and lie near 0 and 1 by their preferences
    rows = [[1, None], [3, None], [5, None], [7, None], [None, 1], [None, 5]]
    vectors = np.array([[0.0], [10.0], [0.1], [10.1], [0.0], [10.0]])
    assert groups_of(rows[:3] + rows[4:], 2, 1, vectors=vectors[[0, 1, 2, 4, 5]]) == [
        ({0, 1, 2}, False),
        ({3, 4}, False),
    ]
    # from 2k on they are cut by their preferences
    assert groups_of(rows, 2, 1, vectors=vectors) == [({0, 2}, False), ({1, 3}, False), ({4, 5}, False)]


def test_the_rest_is_gathered_by_preferences() -> None:
    rows = [[1, None, None], [None, 1, None], [None, None, 1], [1, 1, 1], [1, 1, None], [1, 1, None]]
    vectors = np.array([[0.0], [10.0], [0.0], [10.0], [5.0], [5.0]])
    assert groups_of(rows, 2, 1, vectors=vectors) == [({0, 2}, False), ({1, 3}, False), ({4, 5}, True)]
    # fewer than k go to the nearest group, which is no clique any more
    rows = [[1, None], [1, None], [None, 1], [None, 1], [1, 1]]
    vectors = np.array([[0.0], [0.0], [10.0], [10.0], [9.0]])
    assert groups_of(rows, 2, 1, vectors=vectors) == [({0, 1}, True), ({2, 3, 4}, False)]


def test_users_without_ratings_are_equal() -> None:
    rows: list[Row] = [[None, None], [1, 2], [None, None], [1, 2]]
    assert groups_of(rows, 2, 0) == [({0, 2}, True), ({1, 3}, True)]
    assert groups_of([*rows, [None, None]], 2, 0) == [({0, 2, 4}, True), ({1, 3}, True)]


def test_nobody_has_rated_anything() -> None:
    nothing = RatingMatrix(5, 3, np.zeros(6, dtype=np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    groups, is_clique = decompose(nothing, 2, epsilon=0, rating_range=5, vectors=np.zeros((5, 1)))
    assert np.bincount(groups).tolist() == [3, 2]
    assert is_clique.all()


def test_zero_is_zero_and_tenths_are_tenths() -> None:
    assert groups_of([[0.0], [-0.0]], 2, 0) == [({0, 1}, True)]
    # as float32 they differ by more than 0.2
    assert groups_of([[3.3], [3.1]], 2, 0.2) == [({0, 1}, True)]
    assert groups_of([[3.3], [3.1]], 2, 0.1999) == [({0, 1}, False)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from([None, 0.0, -0.0, 1.0]), min_size=3, max_size=3), min_size=1, max_size=40))
def test_equal_rows(rows: list[Row]) -> None:
    rows = [*rows, [1.0, 1.0, 1.0]]
    sets, same = equal_rows(matrix(rows))
    as_sets = [tuple(x is None for x in row) for row in rows]
    assert sets.tolist() == [list(dict.fromkeys(as_sets)).index(one) for one in as_sets]
    as_rows = [tuple(row) for row in rows]
    assert same.tolist() == [list(dict.fromkeys(as_rows)).index(one) for one in as_rows]


RATING = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, 3.5])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_promises_on_any_data(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 4))
    n = data.draw(st.integers(k, 24))
    cell = RATING if data.draw(st.booleans()) else st.none() | RATING
    width = data.draw(st.integers(1, 3))
    # one more item that all have rated the same, so that there is a rating
    rows: list[Row] = [[*(data.draw(cell) for _ in range(width)), 3.0] for _ in range(n)]
    epsilon = data.draw(st.sampled_from([0, 0.5, 1, 2, 3, 5, 6]))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    options = {"epsilon": epsilon, "rating_range": 5, "vectors": rng.standard_normal((n, 2))}
    groups, is_clique = decompose(matrix(rows), k, **options)
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    assert is_clique.shape == (groups.max() + 1,)
    assert np.bincount(groups).min() >= k
    for group, clique in enumerate(is_clique):
        members = [rows[user] for user in np.flatnonzero(groups == group)]
        assert clique == is_proximate(members, epsilon, 5)
    assert np.array_equal(groups, gather(matrix(rows), k, **options, threads=3))
    kept = keep_cliques(matrix(rows), k, **options)
    for group in range(kept.max() + 1):
        members = [rows[user] for user in np.flatnonzero(kept == group)]
        assert k <= len(members) < 2 * k
        assert is_proximate(members, epsilon, 5)


def test_who_is_in_no_clique_is_left_out() -> None:
    rows: list[Row] = [[1, None], [2, None], [2, None], [5, None], [5, 5], [None, 5], [None, 4], [None, 5]]
    options = {"epsilon": 1, "rating_range": 5, "vectors": np.zeros((8, 1))}
    kept = keep_cliques(matrix(rows), 3, **options)
    assert kept.tolist() in ([0, 0, 0, -1, -1, 1, 1, 1], [1, 1, 1, -1, -1, 0, 0, 0])
    assert (keep_cliques(matrix(rows), 4, **options) == -1).all()
    assert (keep_cliques(matrix(rows), 4, **(options | {"epsilon": 5})) >= 0).all()


def _most_in_cliques(points: np.ndarray, k: int, epsilon: float) -> int:
    """How many points on at most ten disjoint cliques of k or more can cover, by trying all."""
    n = len(points)
    cliques = set()
    for chosen in range(1, 1 << n):
        members = points[[i for i in range(n) if chosen >> i & 1]]
        if len(members) >= k and np.ptp(members, axis=0).max() <= epsilon:
            cliques.add(chosen)

    @cache
    def most(free: int) -> int:
        if not free:
            return 0
        first = free & -free
        others = part = free ^ first
        best = most(others)
        while True:
            if part | first in cliques:
                best = max(best, (part | first).bit_count() + most(others ^ part))
            if not part:
                return best
            part = part - 1 & others

    return most((1 << n) - 1)


def _cliques(points: np.ndarray, k: int, limit: float, threads: int = 1) -> np.ndarray:
    """The clique of every point, before the others are gathered; each is checked to be one."""
    n, m = points.shape
    full = matrix_of((np.repeat(np.arange(n), m), np.tile(np.arange(m), n), points.ravel()), n, m)
    sets, row_of = equal_rows(full)
    clique = epsilon._cliques(full, k, limit, sets, row_of, np.lexsort((row_of, sets)), threads)
    members = np.flatnonzero(clique >= 0)
    if len(members):
        number = np.unique(clique[members], return_inverse=True)[1]
        assert np.bincount(number).min() >= k
        order = members[np.argsort(number, kind="stable")]
        starts = np.concatenate([[0], np.cumsum(np.bincount(number))[:-1]])
        rated = points.astype(np.float32).astype(np.float64)[order]
        assert (np.maximum.reduceat(rated, starts) - np.minimum.reduceat(rated, starts)).max() <= limit
    return clique


@pytest.mark.parametrize(("k", "share"), [(2, 1), (3, 0.95), (4, 0.9)])
def test_nearly_the_most_that_can_be_in_cliques(k: int, share: float) -> None:
    rng = np.random.default_rng(k)
    found, possible = 0, 0
    for _ in range(60):
        points = rng.integers(1, 7, (int(rng.integers(k, 10)), int(rng.integers(1, 3)))).astype(float)
        found += np.sum(_cliques(points, k, 1) >= 0)
        possible += _most_in_cliques(points, k, 1)
    assert share * possible <= found <= possible


def test_cliques_lend_users_to_others() -> None:
    # the four at 2 are a clique, which 1 joins; so it can lend two of its five to 3; 0 and 4 have one neighbour each
    points = np.array([2.0, 4, 2, 3, 0, 1, 2, 2])[:, None]
    clique = _cliques(points, 3, 1)
    assert np.array_equal(clique < 0, (points[:, 0] == 0) | (points[:, 0] == 4))
    assert len(np.unique(clique[clique >= 0])) == 2


def test_who_chose_leaves_fewer_to_choose_from() -> None:
    # all find a clique only if those choose next who have lost neighbours
    points = np.array([[3.0, 3], [2, 1], [2, 0], [2, 1], [1, 1], [2, 4], [3, 2]])
    assert _cliques(points, 2, 1).min() >= 0


def test_what_medians_separated_finds_each_other() -> None:
    rng = np.random.default_rng(1)
    shares = [np.mean(_cliques(rng.uniform(1, 8, (3000, 4)), 5, 1) >= 0) for _ in range(4)]
    assert np.mean(shares) > 0.574  # 0.564 without a second pass, 0.584 with it


def test_many_points_of_one_item_set() -> None:
    rng = np.random.default_rng(0)
    # 3,000 neighbourhoods of 6: they are cut apart by medians and found still
    centres = rng.uniform(0, 100, (3000, 4))
    points = np.repeat(centres, 6, axis=0) + rng.uniform(0, 0.5, (18_000, 4))
    points = points[rng.permutation(len(points))]
    clique = _cliques(points, 5, 1)
    assert np.mean(clique >= 0) > 0.95
    assert np.array_equal(clique, _cliques(points, 5, 1, threads=3))


def test_clones_find_each_other(data_dir) -> None:
    """Of each of 47 users of ML-100k at least 20 clones, whose ratings are moved by one now and then."""
    (users, items, ratings), n, m = movielens_100k(data_dir)
    rng = np.random.default_rng(0)
    of = np.arange(943) % 47
    cells: list[Ratings] = []
    for user, original in enumerate(of):
        chosen = users == original
        moved = np.clip(ratings[chosen] + (rng.random(chosen.sum()) < 0.1), 1, 5)
        cells.append((np.full(chosen.sum(), user), items[chosen], moved))
    clones = matrix_of(tuple(np.concatenate(column) for column in zip(*cells, strict=True)), n, m)
    groups, is_clique = decompose(clones, 10, epsilon=1, rating_range=5, vectors=rng.standard_normal((n, 2)))
    assert is_clique.all()
    assert all(len(np.unique(of[groups == group])) == 1 for group in range(len(is_clique)))


def test_on_movielens_nobody_has_a_neighbour(data_dir) -> None:
    ratings, n, m = movielens_100k(data_dir)
    sparse = matrix_of(ratings, n, m)
    vectors = comparison_vectors(learn(sparse, threads=2))
    sets, rows = equal_rows(sparse)
    assert np.array_equal(sets, np.arange(n))
    assert np.array_equal(rows, np.arange(n))
    for apart in (0, 1, 4.9):
        groups, is_clique = decompose(sparse, 10, epsilon=apart, rating_range=5, vectors=vectors)
        assert not is_clique.any()
        assert np.array_equal(groups, bkg.gather(vectors, 10))
    groups, is_clique = decompose(sparse, 10, epsilon=5, rating_range=5, vectors=vectors)
    assert is_clique.all()
    assert np.array_equal(groups, bkg.gather(vectors, 10))


BAD = {
    "equal": lambda n, _: np.full((n, 3), 4.0),
    "few points": lambda n, rng: rng.integers(1, 6, (n, 3)).astype(float),
    "all different, all near": lambda n, rng: rng.uniform(1, 2, (n, 3)),
    "all different, nobody near": lambda n, _: np.arange(n)[:, None] * 1.5,
    "a chain": lambda n, _: np.arange(n)[:, None] * 1.0,
    "many axes": lambda n, rng: rng.integers(1, 6, (n, 12)).astype(float),
    "skewed": lambda n, rng: rng.zipf(1.5, (n, 3)).clip(0, 1000).astype(float),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_takes_no_quadratic_time(name: str) -> None:
    check_growth(lambda n: _cliques(BAD[name](n, np.random.default_rng(0)), 3, 1), 40_000)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_n_is_k(n: int) -> None:
    rows: list[Row] = [[float(user), None if user % 2 else 1.0] for user in range(n)]
    options = {"epsilon": 1, "rating_range": 9, "vectors": np.zeros((n, 1))}
    assert gather(matrix(rows), n, **options).tolist() == [0] * n
    assert sorted(gather(matrix(rows), 1, **options)) == list(range(n))


def test_the_seed_decides_what_is_no_clique() -> None:
    rng = np.random.default_rng(0)
    rows: list[Row] = [[1.0 if rng.random() < 0.5 else None for _ in range(12)] for _ in range(300)]
    options = {"epsilon": 1, "rating_range": 5, "vectors": rng.standard_normal((300, 3))}
    first = gather(matrix(rows), 5, **options, seed=1)
    assert np.array_equal(first, gather(matrix(rows), 5, **options, seed=1, threads=2))
    assert not np.array_equal(first, gather(matrix(rows), 5, **options, seed=2))


@pytest.mark.parametrize(
    ("k", "options", "says"),
    [
        (3, {}, "2 users .* at least 3"),
        (0, {}, "k must be at least 1"),
        (1, {"epsilon": -1}, "epsilon must be at least 0"),
        (1, {"epsilon": float("nan")}, "epsilon must be a finite number"),
        (1, {"rating_range": 0}, "rating_range must be more than 0"),
        (1, {"vectors": np.zeros((3, 1))}, "3 preference vectors for the ratings of 2 users"),
        (1, {"vectors": np.array([[np.nan], [1.0]])}, "1 of 2 preference vectors"),
        (1, {"seed": 0.5}, "seed must be"),
        (1, {"threads": 0}, "threads must be"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else str(value),
)
def test_refuses(k: int, options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        gather(matrix([[1.0], [2.0]]), k, **{"epsilon": 1, "rating_range": 5, "vectors": np.zeros((2, 1))} | options)


def test_refuses_ratings_that_are_no_numbers() -> None:
    bad = RatingMatrix(1, 1, np.array([0, 1]), np.array([0], np.int32), np.array([np.nan], np.float32))
    with pytest.raises(InputError, match="not finite"):
        gather(bad, 1, epsilon=1, rating_range=5, vectors=np.zeros((1, 1)))
