"""MDAV: groups known by hand, the algorithm as written in exact arithmetic, published losses, and bad data."""

import time
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernel_data import matrix_of, movielens_100k
from preference_data import made_up_preferences

from kgather._errors import InputError
from kgather.udfs.gathering import mdav
from kgather.udfs.gathering.mdav import gather, gather_brute_force
from kgather.udfs.measuring.quality import sse
from kgather.udfs.preferences.filled import filled_ratings, filled_scores

EVERY_WAY = ["tree", "no tree", "brute force"]


def grouped(points: object, k: int, way: str, **options: object) -> np.ndarray:
    """The groups found with a kd-tree whatever the number of records, without one, or by the plain loop."""
    if way == "brute force":
        return gather_brute_force(points, k, **options)
    with patch.object(mdav, "_TREE_RECORDS", 0 if way == "tree" else 1 << 40):
        return gather(points, k, **options)


def line(*points: float) -> np.ndarray:
    return np.array(points, dtype=np.float64)[:, None]


HAND_MADE = {
    # 6 = 3k, centroid 6: 0 and 12 are farthest, 0 comes first; 12 is farthest from it; 5 and 7 stay, 1 from their mean
    "leftovers near each other": (line(0, 1, 5, 7, 11, 12), 2, [0, 0, 2, 2, 1, 1], [0, 0, 2, 2, 1, 1]),
    # the same with 3 and 9, which lie 3 from their mean 6 and 2.5 from the means .5 and 11.5: each joins a group
    "leftovers spread": (line(0, 1, 3, 9, 11, 12), 2, [0, 0, 0, 1, 1, 1], [0, 0, 2, 2, 1, 1]),
    # 9 is nearer to the mean 6 than to 13.5, 3 is nearer to .5: half of them is not more than half
    "half of the leftovers": (line(0, 1, 3, 9, 13, 14), 2, [1, 1, 1, 0, 0, 0], [1, 1, 2, 2, 0, 0]),
    # 3 lies 2.5 from the mean 5.5 of 3 and 8 and as far from .5: as near is not nearer
    "a leftover between two means": (line(0, 1, 3, 8, 20, 21), 2, [1, 1, 1, 1, 0, 0], [1, 1, 2, 2, 0, 0]),
    # 7 and 8 are nearer to the mean 17/3, 2 is nearer to .5: two of three are more than half, so all three stay
    "most of the leftovers": (line(0, 1, 2, 7, 8, 20, 21), 2, [1, 1, 2, 2, 2, 0, 0], [1, 1, 2, 2, 2, 0, 0]),
    # 5 = 3k - 1: only the record farthest from the centroid 4.8 forms a group
    "2k to 3k - 1": (line(0, 1, 2, 10, 11), 2, [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]),
    "2k": (line(0, 10, 1, 12), 2, [1, 0, 1, 0], [1, 0, 1, 0]),
    "2k - 1": (line(0, 10, 100), 2, [0, 0, 0], [0, 0, 0]),
    # the first pivot is 11, not the first record: {3, 2} would be a group then
    "pivot is the farthest": (line(3, 0, 2, 10, 11, 6), 2, [2, 1, 1, 0, 0, 2], [2, 1, 1, 0, 0, 2]),
    # all 5 from the centroid, so 0 begins, then 4 as the first of those 10 away; 2 and 3 are next; 6 and 7 lie on
    # their own mean and on that of the group of 4 and 5
    "ties": (line(0, 0, 0, 0, 10, 10, 10, 10), 2, [0, 0, 2, 2, 1, 1, 1, 1], [0, 0, 2, 2, 1, 1, 3, 3]),
    # the corners of a square, all as far from the centroid; of 1 and 3, as near to 0, the lower one joins it
    "corners": (np.array([[0, 0], [0, 2], [2, 2], [2, 0]]), 2, [0, 0, 1, 1], [0, 0, 1, 1]),
}


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("name", HAND_MADE)
def test_groups_known_by_hand(name: str, way: str) -> None:
    points, k, nearest, own = HAND_MADE[name]
    assert grouped(points, k, way).tolist() == nearest
    assert grouped(points, k, way, leftovers="nearest").tolist() == nearest
    assert grouped(points, k, way, leftovers="own").tolist() == own


def _by_the_book(points: np.ndarray, k: int, leftovers: str) -> list[int]:
    """The algorithm on whole numbers, in whole numbers and fractions, with no regard to speed."""

    def squares(rows: np.ndarray) -> np.ndarray:
        return (rows * rows).sum(axis=-1)

    def form(pivot: int) -> None:
        others = np.array([i for i in left if i != pivot], dtype=int)
        near = others[np.lexsort((others, squares(points[others] - points[pivot])))[: k - 1]]
        groups[[pivot, *near]] = groups.max() + 1
        left[:] = [i for i in left if groups[i] < 0]

    groups = np.full(len(points), -1)
    left = list(range(len(points)))
    while len(left) >= 2 * k:
        two = len(left) >= 3 * k
        pivot = left[int(np.argmax(squares(len(left) * points[left] - points[left].sum(axis=0))))]
        form(pivot)
        if two:
            form(left[int(np.argmax(squares(points[left] - points[pivot])))])
    formed = groups.max() + 1
    nearer_to_own, nearest = 0, []
    rest = points[left].sum(axis=0)
    sums = [points[groups == group].sum(axis=0) for group in range(formed)]
    for i in left:
        away = [Fraction(int(squares(k * points[i] - total)), k * k) for total in sums]
        own = Fraction(int(squares(len(left) * points[i] - rest)), len(left) ** 2)
        nearer_to_own += not away or own < min(away)
        nearest.append(away.index(min(away)) if away else 0)
    groups[left] = formed if leftovers == "own" or 2 * nearer_to_own > len(left) else nearest
    return groups.tolist()


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_same_as_the_algorithm_in_exact_arithmetic(data: st.DataObject) -> None:
    # few whole numbers: every choice is one between ties
    n = data.draw(st.integers(1, 230))
    k = data.draw(st.integers(1, min(n, 9)))
    high = data.draw(st.sampled_from([1, 2, 5, 40]))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    points = draw.integers(0, high + 1, (n, data.draw(st.integers(1, 6)))) + data.draw(st.sampled_from([0, -7, 9999]))
    leftovers = data.draw(st.sampled_from(mdav.LEFTOVERS))
    expected = _by_the_book(points, k, leftovers)
    for way in EVERY_WAY:
        assert grouped(points, k, way, leftovers=leftovers).tolist() == expected


def _check_promises(groups: np.ndarray, n: int, k: int, leftovers: str) -> None:
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    assert groups.min() == 0
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    if leftovers == "own":
        assert (sizes[:-1] == k).all()
        assert sizes[-1] <= 2 * k - 1
    else:
        assert sizes.max() <= 3 * k - 1


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_promises_on_any_data(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 7))
    n = data.draw(st.integers(k, 90))
    values = st.sampled_from([0.0, -0.0, 1.0, 0.1, 5e-324, 1e-200, 1e200, 1.7e308, -1.7e308]) | st.floats(-5, 5)
    points = data.draw(arrays(np.float64, (n, data.draw(st.integers(1, 3))), elements=values))
    leftovers = data.draw(st.sampled_from(mdav.LEFTOVERS))
    expected = gather_brute_force(points, k, leftovers=leftovers)
    _check_promises(expected, n, k, leftovers)
    for way in ("tree", "no tree"):
        assert np.array_equal(grouped(points, k, way, leftovers=leftovers), expected)


MADE_UP = {
    "tastes": lambda n, _: made_up_preferences(n, 10),
    "tastes in 40 columns": lambda n, _: made_up_preferences(n // 3, 40),
    "one decimal": lambda n, rng: np.round(rng.standard_normal((n, 3)), 1),
    "ratings": lambda n, rng: rng.integers(1, 6, (n, 4)).astype(np.float32),
    "nine tenths equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4))),
    "seven points": lambda n, rng: rng.standard_normal((7, 4))[rng.integers(0, 7, n)],
    "skewed": lambda n, rng: np.exp(4 * rng.standard_normal((n, 5))),
    "cauchy": lambda n, rng: rng.standard_cauchy((n, 4)),
    "far from zero": lambda n, rng: 1e9 + rng.standard_normal((n, 5)),
    "tiny": lambda n, rng: 1e-250 * rng.standard_normal((n, 5)),
    "on a sphere": lambda n, rng: (y := rng.standard_normal((n, 6))) / np.linalg.norm(y, axis=1, keepdims=True),
    "one column": lambda n, rng: rng.random((n, 1)),
}


@pytest.mark.parametrize("k", [1, 3, 25])
@pytest.mark.parametrize("name", MADE_UP)
def test_searches_leave_out_nothing_that_counts(name: str, k: int) -> None:
    # above 4,096 records gather builds its tree, below it does without; blocks are made anew several times
    points = MADE_UP[name](4500, np.random.default_rng(0))
    assert np.array_equal(gather(points, k), gather_brute_force(points, k))


@pytest.mark.parametrize(
    ("n", "k", "loss"),
    [
        (943, 3, 1599.38),
        (943, 10, 3375.66),
        (10_000, 3, 10172.17),
        (10_000, 10, 22372.04),
        (100_000, 10, 142198.78),
    ],
)
def test_loss_of_another_implementation(n: int, k: int, loss: float) -> None:
    """The sum of squares that sdcMicro 5.8.1 reaches on the same numbers (method mdav, leftovers on their own)."""
    points = made_up_preferences(n)
    groups = gather(points, k, leftovers="own")
    _check_promises(groups, n, k, "own")
    assert sse(points, groups) == pytest.approx(loss, abs=0.005)


@pytest.fixture(scope="module")
def movielens(data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    """ML-100k with 3 where there is no rating, and its z-scores."""
    matrix = matrix_of(*movielens_100k(data_dir))
    return filled_ratings(matrix, fill=3), filled_scores(matrix, fill=3)


# Casino et al., table II, in thousands; k = 150 as in their section V
PUBLISHED = [
    *((2, 64), (3, 87), (4, 99), (5, 105), (6, 110), (7, 114), (8, 117), (9, 119), (10, 120), (25, 130), (50, 134)),
    *((75, 136), (100, 136), (150, 138.65), (200, 139)),
]


@pytest.mark.parametrize(("k", "published"), PUBLISHED)
def test_published_loss_on_movielens(movielens: tuple[np.ndarray, np.ndarray], k: int, published: float) -> None:
    ratings, scores = movielens
    groups = gather(scores, k, leftovers="nearest")
    assert sse(ratings, groups) / 1000 == pytest.approx(published, rel=0.015)


def test_loss_on_standardised_movielens(movielens: tuple[np.ndarray, np.ndarray]) -> None:
    # what sdcMicro 5.8.1 reaches, too
    scores = movielens[1]
    groups = gather(scores, 10)
    assert np.array_equal(groups, gather_brute_force(scores, 10))
    assert sse(scores, groups) == pytest.approx(1355545.5, abs=0.05)
    assert 100 * sse(scores, groups) / (scores**2).sum() == pytest.approx(87.55, abs=0.01)


def test_doubles_stay_doubles_and_floats_are_taken_as_they_are() -> None:
    points = 1 + 1e-12 * np.array([0, 5, 1, 6, 2, 8])[:, None]
    assert gather(points, 3, leftovers="own").tolist() == [1, 0, 1, 0, 1, 0]
    # in float32 all are 1, and the groups those of ties
    assert gather(points.astype(np.float32), 3, leftovers="own").tolist() == [0, 0, 0, 1, 1, 1]
    floats = made_up_preferences(5000).astype(np.float32)
    assert np.array_equal(gather(floats, 4), gather(floats.astype(np.float64), 4))


def test_threads_and_layout_change_nothing_and_input_is_left_alone() -> None:
    points = made_up_preferences(6000, 5)
    before = points.copy()
    groups = gather(points, 6)
    for threads in (1, 2, 5):
        assert np.array_equal(gather(points, 6, threads=threads), groups)
    assert np.array_equal(gather(np.asfortranarray(points), np.int64(6)), groups)
    assert np.array_equal(gather(points * 2.0**900, 6), groups)
    assert np.array_equal(points, before)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 5000])
def test_k_of_one_and_sizes_at_the_borders(n: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 2))
    assert sorted(gather(points, 1)) == list(range(n))
    for k in sorted({n, (n + 1) // 2, (n + 2) // 3, max(n // 3, 1)}):
        for leftovers in mdav.LEFTOVERS:
            _check_promises(gather(points, k, leftovers=leftovers), n, k, leftovers)


@pytest.mark.parametrize("n", [10, 11, 14, 15, 17])
def test_equal_records_are_dealt_in_their_order(n: int) -> None:
    # leftovers lie as near to the first group's mean as to their own, so they join it
    formed = np.arange(n) // 5
    last = n // 5 - 1
    assert gather(np.full((n, 2), 0.1), 5, leftovers="own").tolist() == np.minimum(formed, last).tolist()
    assert gather(np.full((n, 2), 0.1), 5).tolist() == np.where(formed < last, formed, 0).tolist()


BAD = {
    "equal": lambda n, _: np.full((n, 4), 0.1),
    "nine tenths equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4))),
    "seven points": lambda n, rng: rng.standard_normal((7, 4))[rng.integers(0, 7, n)],
    "zipf over 1000 points": lambda n, rng: rng.standard_normal((1000, 4))[np.minimum(rng.zipf(1.3, n), 1000) - 1],
    "chain of outliers": lambda n, _: np.where(np.arange(n) < 400, 1.2 ** np.arange(n).clip(0, 400), 0)[:, None],
    "heads or tails": lambda n, rng: rng.choice([-1.0, 1.0], (n, 1)),
    "pairs of ratings": lambda n, rng: rng.integers(1, 6, (n, 2)),
}


@pytest.mark.parametrize("name", BAD)
def test_duplicates_and_skew_take_no_longer(name: str) -> None:
    # no claim of speed: the plain loop takes some twenty times as long as gather does on good data of this size
    n, k = 100_000, 10
    rng = np.random.default_rng(0)
    usual = _seconds(rng.standard_normal((n, 4)), k)
    assert _seconds(BAD[name](n, rng), k) <= 6 * usual


def _seconds(points: np.ndarray, k: int) -> float:
    start = time.thread_time()  # of the processor, so that neighbours do not count
    groups = gather(points, k)
    seconds = time.thread_time() - start
    _check_promises(groups, len(points), k, "nearest")
    return seconds


@pytest.mark.parametrize("method", [gather, gather_brute_force], ids=["gather", "brute force"])
@pytest.mark.parametrize(
    ("vectors", "k", "says"),
    [
        (np.zeros((4, 2)), 5, "4 users .* at least 5"),
        (np.zeros((0, 2)), 1, "0 users .* at least 1"),
        (np.zeros((4, 2)), 0, "k must be at least 1, not 0"),
        (np.zeros((4, 2)), 2.5, "k must be a whole number"),
        (np.zeros((4, 2)), True, "k must be a whole number"),
        (np.array([[1.0], [np.nan], [np.inf], [2.0]]), 2, "2 of 4 preference vectors"),
        (np.zeros((4, 0)), 2, "at least one column"),
        (np.zeros(4), 2, "at least one column"),
        (np.array([["a"], ["b"]]), 1, "must be numbers"),
    ],
)
def test_refuses(method, vectors: np.ndarray, k: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        method(vectors, k)


@pytest.mark.parametrize("leftovers", ["spread", "", None, 1, "Own"])
def test_refuses_leftovers(leftovers: object) -> None:
    for method in (gather, gather_brute_force):
        with pytest.raises(InputError, match="leftovers must be one of nearest, own; it is"):
            method(np.zeros((4, 2)), 2, leftovers=leftovers)


@pytest.mark.parametrize("threads", [0, -1, 1.5, None])
def test_refuses_threads(threads: object) -> None:
    with pytest.raises(InputError, match="threads must be"):
        gather(np.zeros((4, 2)), 2, threads=threads)
