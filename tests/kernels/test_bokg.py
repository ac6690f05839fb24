"""Bisecting One-K-Gather: separations known by hand, the algorithm as written, the published number of separations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernel_data import cpu_seconds, matrix_of, movielens_100k, split

from kgather._errors import InputError
from kgather.udfs.gathering import bkg
from kgather.udfs.gathering.bokg import gather
from kgather.udfs.preferences.learning import learn


def leaves(points: object, k: int, ones: object, **options: int) -> set[frozenset]:
    """The groups as sets of numbers; those in `ones` have level 1, the others level k."""
    values = np.asarray(points, dtype=np.float32)
    levels = np.where(np.isin(values, np.asarray(ones)), 1, k)
    groups = gather(values[:, None], k, levels, **options)
    return {frozenset(values[groups == group].tolist()) for group in range(groups.max() + 1)}


def sets(*groups: list[float]) -> set[frozenset]:
    return {frozenset(group) for group in groups}


def test_the_farthest_leave_one_after_the_other_down_to_k() -> None:
    # 20 leaves (centroid 5.2), then 3 (1.5 from the centroid 1.5, deviation 1.1); 0 stays, for 3 are left
    assert leaves([0, 1, 2, 3, 20], 3, [0, 3, 20]) == sets([20], [3], [0, 1, 2])


def test_who_is_within_the_deviation_stays() -> None:
    # centroid 3.25, deviation 3.96; 10 is farther but has level 3, 1 has level 1 but is 2.25 away
    assert leaves([0, 1, 2, 10], 3, [1]) == sets([0, 1, 2, 10])


def test_a_distance_equal_to_the_deviation_leaves() -> None:
    assert leaves([-1, -1.0, 1, 1], 3, [1]) == {frozenset([1.0]), frozenset([-1.0, 1.0])}
    # also where rounding puts it a little below
    rng = np.random.default_rng(0)
    for many in rng.integers(2, 30, 400):
        points = np.repeat(rng.random(2), many)[:, None]
        assert gather(points, 2 * many - 1, np.repeat([1, 2 * many - 1], many)).max() == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sign", [1, -1])
def test_a_small_side_stands_alone_if_all_have_level_1_and_borrows_if_not(seed: int, sign: int) -> None:
    points = np.array([100, -1, 7, 1, 2, 6, 3, 4, 5]) * sign
    borrowed = {frozenset(sign * x for x in group) for group in ([100, 7, 6], [-1, 1, 2], [3, 4, 5])}
    alone = {frozenset(sign * x for x in group) for group in ([100], [-1, 1, 2], [3, 4, 5, 6, 7])}
    assert leaves(points, 3, [], seed=seed) == borrowed
    assert leaves(points, 3, [sign * 100], seed=seed) == alone


def _by_the_book(points: np.ndarray, k: int, one: np.ndarray) -> set[frozenset]:
    """Algorithm 2 for k <= n < 4k with every record tried, written down with no regard to speed."""
    groups: list[list[int]] = []

    def all_one(part: np.ndarray) -> bool:
        if one[part].all():
            groups.extend([user] for user in part)
            return True
        return False

    def leave_one_out(part: np.ndarray) -> None:
        if all_one(part):
            return
        while len(part) > k:
            distance = np.linalg.norm(points[part] - points[part].mean(axis=0), axis=1)
            deviation = np.sqrt((distance**2).mean())
            ones = np.flatnonzero(one[part])
            if len(ones) == 0 or distance[ones].max() < deviation:
                break
            out = ones[distance[ones].argmax()]
            groups.append([part[out]])
            part = np.delete(part, out)
        groups.append(list(part))

    def finish(part: np.ndarray) -> None:
        if len(part) < 2 * k:
            leave_one_out(part)
            return
        farthest = part[((points[part] - points[part].mean(axis=0)) ** 2).sum(axis=1).argmax()]
        near = part[np.argsort(((points[part] - points[farthest]) ** 2).sum(axis=1))[:k]]
        if not all_one(near):
            groups.append(list(near))
        leave_one_out(np.setdiff1d(part, near))

    n = len(points)
    if n < 3 * k:
        finish(np.arange(n))
        return {frozenset(map(int, group)) for group in groups}
    centroid = points.mean(axis=0)
    best = None
    for c_left in points:
        c_right = centroid - (c_left - centroid)
        left = ((points - c_left) ** 2).sum(axis=1) <= ((points - c_right) ** 2).sum(axis=1)
        error = sum(((side - side.mean(axis=0)) ** 2).sum() for side in (points[left], points[~left]))
        if best is None or error < best[0]:
            best = (error, left)
    small, large = sorted((np.flatnonzero(best[1]), np.flatnonzero(~best[1])), key=len)
    if len(small) < k and all_one(small):
        small = small[:0]
    elif len(small) < k:
        distance = ((points[large] - points[small].mean(axis=0)) ** 2).sum(axis=1)
        taken = large[np.argsort(distance)[: k - len(small)]]
        small, large = np.concatenate([small, taken]), np.setdiff1d(large, taken)
    for side in (small, large):
        if len(side):
            finish(side)
    return {frozenset(map(int, group)) for group in groups}


@pytest.mark.parametrize("seed", range(60))
def test_same_as_the_algorithm_as_written(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n = int(rng.integers(k, 4 * k))
    points = (rng.standard_normal((n, 2)) * [3, 1] + rng.exponential(2, (n, 1))).astype(np.float32)
    one = rng.random(n) < 0.6
    groups = gather(points, k, np.where(one, 1, k), tries=40 * n, seed=seed)
    found = {frozenset(np.flatnonzero(groups == group).tolist()) for group in range(groups.max() + 1)}
    assert found == _by_the_book(points.astype(np.float64), k, one)


def _check_promises(groups: np.ndarray, levels: np.ndarray, k: int) -> None:
    assert groups.dtype == np.int32
    assert groups.shape == levels.shape
    sizes = np.bincount(groups)
    assert sizes.min() >= 1
    assert sizes.max() <= 2 * k - 1
    assert (sizes[groups] >= levels).all()
    assert set(sizes) <= {1, *range(k, 2 * k)}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_promises_on_any_data(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 7))
    n = data.draw(st.integers(k, 90))
    width = data.draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, -3e38]) | st.floats(-5, 5, width=32)
    points = data.draw(arrays(np.float32, (n, width), elements=values))
    levels = data.draw(arrays(np.int64, n, elements=st.sampled_from([1, k])))
    options = {"tries": data.draw(st.integers(1, 5)), "seed": data.draw(st.integers(-5, 5))}
    groups = gather(points, k, levels, **options)
    _check_promises(groups, levels, k)
    assert np.array_equal(groups, gather(points, k, levels, **options))


def test_with_one_level_only() -> None:
    points = np.random.default_rng(0).standard_normal((5_000, 4)).astype(np.float32)
    before = points.copy()
    assert sorted(gather(points, 7, np.ones(5_000, dtype=int))) == list(range(5_000))
    # nobody may leave: the groups are those of BKG
    assert np.array_equal(gather(points, 7, np.full(5_000, 7), seed=3), bkg.gather(points, 7, seed=3))
    assert np.array_equal(points, before)


def test_seed_decides() -> None:
    rng = np.random.default_rng(0)
    points, levels = rng.standard_normal((20_000, 4)).astype(np.float32), rng.choice([1, 5], 20_000)
    first = gather(points, 5, levels, seed=7)
    _check_promises(first, levels, 5)
    assert np.array_equal(first, gather(np.asfortranarray(points), 5, levels.astype(np.float64), seed=7))
    assert not np.array_equal(first, gather(points, 5, levels, seed=8))


def _bad(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name == "equal":
        return np.full((n, 4), 0.1)
    if name == "nine tenths equal":
        return np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4)))
    if name == "chain of outliers":
        return np.where(np.arange(n) < 400, 1.2 ** np.arange(n).clip(0, 400), 0)[:, None]
    if name == "cauchy":
        return rng.standard_cauchy((n, 4))
    return rng.standard_normal((n, 4))


@pytest.mark.parametrize("name", ["equal", "nine tenths equal", "chain of outliers", "cauchy", "groups of thousands"])
def test_bad_data_takes_no_quadratic_time(name: str) -> None:
    # No claim of speed: at this size a quadratic kernel takes hundreds of times as long as on good data.
    n = 120_000
    k = 50_000 if name == "groups of thousands" else 5
    levels = np.where(np.random.default_rng(1).random(n) < 0.5, 1, k)
    usual = _seconds(_bad("normal", n), 5, np.where(levels > 1, 5, 1))
    points = _bad(name, n).astype(np.float32)
    _check_promises(gather(points, k, levels, tries=5), levels, k)
    assert _seconds(points, k, levels) <= 40 * usual


def _seconds(points: np.ndarray, k: int, levels: np.ndarray) -> float:
    return cpu_seconds(lambda: gather(points, k, levels, tries=5))


@pytest.mark.parametrize(
    ("vectors", "k", "levels", "says"),
    [
        (np.zeros((4, 2)), 3, [1, 2, 3, 4], "2 of 4 users have a level other than 1 and 3"),
        (np.zeros((4, 2)), 3, [1, 3, 0, -1], "2 of 4 users have a level below 1"),
        (np.zeros((4, 2)), 3, [1, 1, 1], "one whole number for each of the 4 users"),
        (np.zeros((4, 2)), 3, [1, 1, 1, np.nan], "1 of 4 users have a level that is no whole number"),
        (np.zeros((4, 2)), 3, [1, 1, 1.5, np.inf], "2 of 4 users have a level that is no whole number"),
        (np.zeros((4, 2)), 3, [True, True, True, True], "not bool"),
        (np.zeros((4, 2)), 3, [1, 1, 1, None], "not object"),
        (np.zeros((4, 2)), 5, [1, 1, 1, 1], "4 users are too few for groups of at least 5"),
        (np.array([[1.0], [np.nan], [np.inf], [2.0]]), 2, [1, 1, 2, 2], "2 of 4 preference vectors"),
        (np.zeros((4, 2)), 0, [1, 1, 1, 1], "k must be at least 1"),
    ],
)
def test_refuses(vectors: np.ndarray, k: object, levels: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        gather(vectors, k, levels)


@pytest.mark.parametrize(("k", "published", "found"), [(5, 130, 133), (10, 140, 137)])
def test_users_separated_on_movielens(data_dir, k: int, published: int, found: int) -> None:
    """Plain Funk factors of 80% of the ratings, half of the users at level 1, ten tries on each of three draws."""
    ratings, n, m = movielens_100k(data_dir)
    vectors = learn(matrix_of(split(ratings, 0)[0], n, m), solver="funk", rank=10).user_factors
    separated = []
    for draw in range(3):
        levels = np.full(n, k)
        levels[np.random.default_rng(draw).permutation(n)[:471]] = 1
        for seed in range(10):
            separated.append(int((np.bincount(gather(vectors, k, levels, seed=seed)) == 1).sum()))
    assert np.mean(separated) == pytest.approx(found, abs=25)
    assert np.mean(separated) == pytest.approx(published, abs=25)
