"""Bounded t-means over bins: the rules by hand and as written down, the promises on any data, and real data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernel_data import cpu_seconds, matrix_of, movielens_100k, movielens_csv, split

from kgather._errors import InputError
from kgather.udfs._shared.hashing import keyed, seed64
from kgather.udfs.gathering import bkg
from kgather.udfs.gathering import bounded_t_means as btm
from kgather.udfs.measuring.quality import armse
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.options import FOR_FIT


def choose(users: list[float], centres: list[float], least: int, most: int) -> list[int]:
    """The centres that users on a line choose in turn."""
    rows = np.array(users, dtype=np.float32)[:, None]
    label = np.full(len(users), -1, dtype=np.int64)
    assert btm._choose_bounded(rows, np.arange(len(users)), np.array([centres], dtype=np.float64), least, most, label)
    return label.tolist()


@pytest.mark.parametrize(
    ("users", "least", "most", "chosen"),
    [
        ([1, 2, 3, 4], 2, 2, [0, 0, 1, 1]),  # the first centre is full, so the next nearest
        ([4, 3, 2, 1], 2, 2, [0, 0, 1, 1]),
        ([1, 2, 3, 4, 5], 2, 3, [0, 0, 0, 1, 1]),  # one further place, for who wants it first
        ([1, 9, 2, 3, 8, 4], 2, 4, [0, 1, 0, 0, 1, 0]),
        ([1, 9, 2, 3, 4, 2], 2, 4, [0, 1, 0, 0, 0, 1]),  # both further places taken: the other has to be filled
        ([5, 5, 5, 5], 2, 2, [0, 0, 1, 1]),  # as near to both: the first
    ],
    ids=str,
)
def test_who_finds_a_place(users: list[float], least: int, most: int, chosen: list[int]) -> None:
    assert choose(users, [0, 10], least, most) == chosen


@pytest.mark.parametrize(("virtual", "expected"), [(True, [2.0, 20.0]), (False, [1.0, 19.0])])
def test_centres_are_means_or_the_members_nearest_to_them(virtual: bool, expected: list[float]) -> None:
    rows = np.array([[0], [1], [5], [19], [21]], dtype=np.float32)  # 19 and 21 are as near to 20: the first
    centres = np.empty((1, 2))
    btm._move_centres(rows, np.array([0, 0, 0, 1, 1]), virtual, centres)
    assert centres.tolist() == [expected]


def test_small_bins_join_the_nearest() -> None:
    bin_of = np.array([0, 1, 1, 1, 2, 3, 3, 5, 5, 5], dtype=np.int32)
    btm._join_small(bin_of, np.array([[0.0, 10.0, 18.0, 24.0, 1.0, 99.0]]), 3)
    # 0 joins 1 (4 is nearer but empty), 2 joins 3, which is large enough then
    assert bin_of.tolist() == [1, 1, 1, 1, 3, 3, 3, 5, 5, 5]


def test_large_bins_are_cut_at_medians() -> None:
    rows = np.array([[x % 3, x] for x in range(20)], dtype=np.float32)[::-1].copy()
    bin_of = np.array([0] * 10 + [1] * 10, dtype=np.int32)
    btm._cut_large(rows, bin_of, 10)
    assert bin_of.tolist() == [0] * 10 + [1] * 10
    btm._cut_large(rows, bin_of, 4)
    assert sorted(np.bincount(bin_of).tolist()) == [2, 2, 2, 2, 3, 3, 3, 3]
    assert all(np.ptp(rows[bin_of == part, 1]) == np.sum(bin_of == part) - 1 for part in np.unique(bin_of))


def _as_written(rows: np.ndarray, k: int, rounds: int, virtual: bool, seed: int) -> np.ndarray:
    """All users in one bin, clustered with no regard to speed; the random order is the kernel's."""
    n, t = len(rows), len(rows) // k
    order = btm._shuffled(n, np.uint64(keyed(seed64(seed), btm._OF_BINS, 0)))
    centres = [rows[i] for i in order[:t]]
    for turn in range(rounds):
        clusters: list[list[int]] = [[] for _ in range(t)]
        further = n - t * k
        for i in order:
            for c in sorted(range(t), key=lambda c: (((rows[i] - centres[c]) ** 2).sum(), c)):
                if len(clusters[c]) < k or further > 0:
                    further -= len(clusters[c]) >= k
                    clusters[c].append(int(i))
                    break
        if turn < rounds - 1:
            centres = [rows[sorted(cluster)].mean(axis=0) for cluster in clusters]
            if not virtual:
                nearest = [
                    min(sorted(cluster), key=lambda i: ((rows[i] - centre) ** 2).sum())
                    for cluster, centre in zip(clusters, centres, strict=True)
                ]
                centres = [rows[i] for i in nearest]
    groups = np.empty(n, dtype=np.int32)
    for c, cluster in enumerate(clusters):
        groups[cluster] = c
    return groups


@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_same_as_written_down(seed: int, virtual: bool) -> None:
    rng = np.random.default_rng(seed)
    k, rounds = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    rows = rng.standard_normal((int(rng.integers(2 * k, 60)), 3)).astype(np.float32)
    groups = btm.gather(rows, k, bins=1, rounds=rounds, virtual_centres=virtual, seed=seed)
    assert np.array_equal(groups, _as_written(rows.astype(np.float64), k, rounds, virtual, seed))


def _check_promises(groups: np.ndarray, n: int, k: int) -> None:
    assert groups.dtype == np.int32
    assert groups.shape == (n,)
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_promises_on_any_data(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 7))
    n = data.draw(st.integers(k, 90))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, -3e38]) | st.floats(-5, 5, width=32)
    points = data.draw(arrays(np.float32, (n, data.draw(st.integers(1, 3))), elements=values))
    bins = data.draw(st.none() | st.integers(1, n))
    sample = data.draw(st.none() | st.integers(bins or n, n))
    options = {
        "bins": bins,
        "sample": sample,
        "rounds": data.draw(st.integers(1, 5)),
        "virtual_centres": data.draw(st.booleans()),
        "seed": data.draw(st.integers(-5, 5)),
    }
    groups, bin_of = btm.gather_with_bins(points, k, **options)
    _check_promises(groups, n, k)
    assert bin_of.dtype == np.int32
    assert 0 <= bin_of.min() <= bin_of.max() < (bins or n)
    # equal users are equally near to all centres
    _, point = np.unique(points, axis=0, return_inverse=True)
    assert len(np.unique(point)) == len({(int(p), int(b)) for p, b in zip(point.ravel(), bin_of, strict=True)})
    threaded = btm.gather_with_bins(points, k, **options, threads=3)
    assert np.array_equal(threaded[0], groups)
    assert np.array_equal(threaded[1], bin_of)


def test_users_go_to_the_nearest_centre() -> None:
    users = np.array([[-9], [4], [5], [6], [15], [99]], dtype=np.float32)
    bin_of = np.full(6, -1, dtype=np.int32)
    btm._nearest_centres(users, np.array([[0.0, 10.0, 20.0]]), 0, 5, bin_of)
    assert bin_of.tolist() == [0, 0, 0, 1, 1, -1]  # as near to both: the first


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 2_000])
def test_k_of_one_and_sizes_at_the_borders(n: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 2))
    assert sorted(btm.gather(points, 1)) == list(range(n))
    for k in {n, (n + 1) // 2, (n + 2) // 3, max(n // 3, 1)}:
        _check_promises(btm.gather(points, k), n, k)


def test_the_seed_decides_and_threads_do_not() -> None:
    points = np.random.default_rng(0).standard_normal((5_000, 4)).astype(np.float32)
    before = points.copy()
    first = btm.gather(points, 5, seed=7)
    for threads in (1, 2, 5):
        assert np.array_equal(first, btm.gather(points, 5, seed=7, threads=threads))
    assert not np.array_equal(first, btm.gather(points, 5, seed=8))
    assert np.array_equal(points, before)
    assert np.array_equal(first, btm.gather(np.asfortranarray(points), 5, seed=7))
    assert np.array_equal(first, btm.gather(points.astype(np.float64), 5, seed=7))


def test_bins_without_and_with_options() -> None:
    points = np.random.default_rng(0).standard_normal((900, 2))
    assert btm.gather_with_bins(points, 5)[1].max() < 30  # the root of 900
    assert btm.gather_with_bins(points, 45)[1].max() < 10  # 2k users a bin
    assert len(np.unique(btm.gather_with_bins(points, 5, bins=77, sample=900)[1])) == 77


@pytest.fixture(scope="module")
def thesis_vectors(data_dir) -> np.ndarray:
    """Plain Funk factors of 80% of the ratings of ML-100k: ten, as docs/methods/bounded_t_means.md has them."""
    ratings, n, m = movielens_100k(data_dir)
    return learn(matrix_of(split(ratings, 0)[0], n, m), solver="funk", rank=10).user_factors


def _armse(vectors: np.ndarray, k: int, **options: object) -> float:
    return float(np.mean([armse(vectors, btm.gather(vectors, k, seed=run, **options)) for run in range(10)]))


def test_armse_on_movielens_without_bins(thesis_vectors: np.ndarray) -> None:
    rival = np.mean([armse(thesis_vectors, bkg.gather(thesis_vectors, 3, seed=run)) for run in range(10)])
    by_rounds = [_armse(thesis_vectors, 3, bins=1, rounds=rounds) / rival for rounds in (1, 2, 10)]
    assert by_rounds == pytest.approx([1.8, 1.3, 1.05], rel=0.1)


def test_armse_on_movielens_with_bins(thesis_vectors: np.ndarray) -> None:
    rival = np.mean([armse(thesis_vectors, bkg.gather(thesis_vectors, 3, seed=run)) for run in range(10)])
    assert _armse(thesis_vectors, 3, rounds=1) > 1.2 * rival
    assert _armse(thesis_vectors, 3) < 1.1 * rival
    assert _armse(thesis_vectors, 3) < _armse(thesis_vectors, 3, virtual_centres=False)


@pytest.mark.parametrize("name", ["ml-100k", "ml-1m"])
def test_virtual_centres_make_bins_more_equal(data_dir, name: str) -> None:
    ratings, n, m = movielens_100k(data_dir) if name == "ml-100k" else movielens_csv(data_dir, name)
    # where users differ in few directions, as with the default model, there is little to choose
    vectors = comparison_vectors(learn(matrix_of(ratings, n, m), rank=10, threads=2, **FOR_FIT))
    spread, smallest, largest = {}, {}, {}
    for virtual in (True, False):
        options = {"virtual_centres": virtual, "threads": 2}
        runs = [np.bincount(btm.gather_with_bins(vectors, 5, seed=seed, **options)[1]) for seed in range(5)]
        spread[virtual] = np.mean([sizes.std() / sizes.mean() for sizes in runs])
        smallest[virtual] = np.mean([sizes.min() for sizes in runs])
        largest[virtual] = np.mean([sizes.max() for sizes in runs])
    assert spread[True] < 0.85 * spread[False]
    assert smallest[True] > smallest[False]
    assert largest[True] < largest[False]


BAD = {
    "equal": lambda n, _: np.full((n, 4), 0.1),
    "nine tenths equal": lambda n, rng: np.where(rng.random((n, 1)) < 0.9, 0.3, rng.standard_normal((n, 4))),
    "seven points": lambda n, rng: rng.standard_normal((7, 4))[rng.integers(0, 7, n)],
    "chain of outliers": lambda n, _: np.where(np.arange(n) < 400, 1.2 ** np.arange(n).clip(0, 400), 0)[:, None],
    "cauchy": lambda n, rng: rng.standard_cauchy((n, 4)),
    "zeros and two far ones": lambda n, _: np.where(np.arange(n) < 2, 1e38 * (-1.0) ** np.arange(n), 0)[:, None],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_takes_no_quadratic_time(name: str) -> None:
    # no claim of speed: one bin of all users would take a hundred times as long
    n, k = 60_000, 5
    rng = np.random.default_rng(0)
    usual = _seconds(rng.standard_normal((n, 4)), k)
    points = BAD[name](n, rng).astype(np.float32)
    _check_promises(btm.gather(points, k, rounds=2), n, k)
    assert _seconds(points, k) <= 20 * usual


def _seconds(points: np.ndarray, k: int) -> float:
    return cpu_seconds(lambda: btm.gather(points, k, rounds=2))


@pytest.mark.parametrize(
    ("vectors", "k", "says"),
    [
        (np.zeros((4, 2)), 5, "4 users .* at least 5"),
        (np.zeros((0, 2)), 1, "0 users .* at least 1"),
        (np.zeros((4, 2)), 0, "k must be at least 1, not 0"),
        (np.zeros((4, 2)), 2.5, "k must be a whole number"),
        (np.array([[1.0], [np.nan], [np.inf], [2.0]]), 2, "2 of 4 preference vectors"),
        (np.zeros((4, 0)), 2, "at least one column"),
        (np.zeros(4), 2, "at least one column"),
    ],
)
def test_refuses(vectors: np.ndarray, k: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        btm.gather(vectors, k)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bins": 0}, "bins must be between 1 and 9, not 0"),
        ({"bins": 10}, "bins must be between 1 and 9, not 10"),
        ({"bins": 3, "sample": 2}, "sample must be between 3 and 9, not 2"),
        ({"sample": 10}, "sample must be between"),
        ({"sample": "all"}, "sample must be a whole number"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"virtual_centres": 1}, "virtual_centres must be true or false"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"seed": 0.5}, "seed must be"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_refuses_options(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        btm.gather(np.zeros((9, 2)), 2, **options)
