"""Refinement: moves known by hand, and what holds for any partition."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import matrix_of, movielens_100k
from preference_data import made_up_preferences

from kgather._errors import InputError
from kgather.udfs.gathering import bkg, mdav
from kgather.udfs.measuring.quality import sse
from kgather.udfs.preferences.filled import filled_scores
from kgather.udfs.refining.refine import refine


def refined(points: list, groups: list[int], least: object, **options: int) -> set[frozenset]:
    """The groups as sets of users."""
    rows = np.asarray(points, dtype=float).reshape(len(points), -1)
    found = refine(rows, np.array(groups), least, **options)
    return {frozenset(np.flatnonzero(found == group).tolist()) for group in range(found.max() + 1)}


def test_a_user_moves_to_the_nearer_group() -> None:
    # The user at 9 stands among those at 0; her group can spare her and the other has room.
    assert refined([0, 1, 2, 9, 10, 11], [0, 0, 0, 0, 1, 1], 2) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


def test_two_users_change_places() -> None:
    assert refined([0, 1, 11, 10, 12, 2], [0, 0, 0, 1, 1, 1], 3) == {frozenset({0, 1, 5}), frozenset({2, 3, 4})}


def test_three_users_go_round() -> None:
    # No two of them can change places for the better of both groups as three can.
    points = [(0, 0), (0.1, 0), (10, 0.2), (10, 0), (10.1, 0), (5, 9.2), (5, 9), (5.1, 9), (0, 0.2)]
    expected = {frozenset({0, 1, 8}), frozenset({2, 3, 4}), frozenset({5, 6, 7})}
    assert refined(points, [0, 0, 0, 1, 1, 1, 2, 2, 2], 3, most=3) == expected


def test_who_asks_for_nothing_may_stand_alone() -> None:
    found = refined([0, 1, 2, 50], [0, 0, 0, 0], np.array([3, 3, 3, 1]))
    assert found == {frozenset({0, 1, 2}), frozenset({3})}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_partition_keeps_its_bounds_and_loses_loss(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 70))
    d = data.draw(st.integers(1, 4))
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d)) if data.draw(st.booleans()) else rng.integers(0, 3, (n, d)).astype(float)
    k = data.draw(st.integers(1, min(n, 6)))
    groups = np.minimum(np.arange(n) // k, n // k - 1)[rng.permutation(n)]
    least = np.full(n, k)
    if data.draw(st.booleans()):
        least[rng.random(n) < 0.3] = 1
    found = refine(vectors, groups, least)
    sizes = np.bincount(found)
    assert found.shape == (n,)
    assert found.dtype == np.int32
    assert sizes.min() >= 1
    level = np.zeros(len(sizes), dtype=int)
    np.maximum.at(level, found, least)
    assert (sizes >= level).all()
    assert (sizes <= np.maximum(2 * level - 1, np.bincount(groups).max())).all()
    assert sse(vectors, found) <= sse(vectors, groups) * (1 + 1e-9) + 1e-9
    assert (refine(vectors, groups, least, threads=2) == found).all()


@pytest.mark.parametrize(("n", "k", "share"), [(943, 3, 0.08), (943, 10, 0.12), (10_000, 3, 0.08)])
def test_it_loses_far_less_than_mdav(n: int, k: int, share: float) -> None:
    vectors = made_up_preferences(n)
    groups = mdav.gather(vectors, k, leftovers="own")
    found = refine(vectors, groups, k)
    assert sse(vectors, found) <= (1 - share) * sse(vectors, groups)
    assert np.bincount(found).min() >= k
    assert np.bincount(found).max() <= 2 * k - 1


def test_filled_ratings_of_many_columns(data_dir: Path) -> None:
    ratings, n_users, n_items = movielens_100k(data_dir)
    vectors = filled_scores(matrix_of(ratings, n_users, n_items), fill=3.0)
    groups = mdav.gather(vectors, 10)
    assert sse(vectors, refine(vectors, groups, 10)) <= 0.96 * sse(vectors, groups)


def test_refined_groups_stay_as_they_are() -> None:
    vectors = made_up_preferences(943)
    once = refine(vectors, bkg.gather(vectors, 5), 5)
    assert sse(vectors, refine(vectors, once, 5)) >= 0.98 * sse(vectors, once)


def test_many_blocks_are_the_same_for_any_number_of_threads() -> None:
    vectors = made_up_preferences(40_000).astype(np.float32)
    groups = bkg.gather(vectors, 5)
    one = refine(vectors, groups, 5, passes=2)
    assert (one == refine(vectors, groups, 5, passes=2, threads=3)).all()
    assert 5 <= np.bincount(one).min() <= np.bincount(one).max() <= 9
    # what lies across the borders of the first pass is left to the second
    assert sse(vectors, one) < 0.95 * sse(vectors, refine(vectors, groups, 5, passes=1))


def test_no_passes_leave_the_groups_and_number_them_anew() -> None:
    assert refine(np.arange(6.0)[:, None], np.array([7, 3, 7, 3, 9, 9]), 2, passes=0).tolist() == [0, 1, 0, 1, 2, 2]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), most=st.integers(3, 9))
def test_groups_do_not_grow_above_most(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, groups = rng.normal(size=(60, 2)), rng.integers(0, 5, 60)
    groups[:15] = np.repeat(np.arange(5), 3)
    sizes = np.bincount(refine(vectors, groups, 3, most=most))
    assert sizes.min() >= 3
    assert sizes.max() <= max(most, np.bincount(groups).max())


@pytest.mark.parametrize("points", [2, 7, 40])
def test_equal_users_find_each_other(points: int) -> None:
    # Groups drawn at random of users of few kinds: each kind has enough for groups of its own, of no loss.
    rng = np.random.default_rng(points)
    vectors = rng.normal(size=(points, 4))[rng.integers(0, points, 4000)]
    groups = rng.permutation(4000) // 5
    assert sse(vectors, refine(vectors, groups, 5)) <= 0.01 * sse(vectors, groups)


@pytest.mark.parametrize("kind", ["equal", "two points", "outlier"])
def test_bad_data_costs_no_more(kind: str) -> None:
    n = 20_000
    vectors = np.zeros((n, 3))
    if kind == "two points":
        vectors[::2] = 1.0
    elif kind == "outlier":
        vectors[0] = 1e6
    groups = bkg.gather(vectors, 5)
    assert sse(vectors, refine(vectors, groups, 5)) <= sse(vectors, groups) + 1e-6


def test_what_makes_no_sense_is_refused() -> None:
    vectors = np.zeros((4, 1))
    with pytest.raises(InputError, match="fewer users than some of them accept"):
        refine(vectors, np.array([0, 0, 0, 1]), 2)
    with pytest.raises(InputError, match="least"):
        refine(vectors, np.array([0, 0, 0, 0]), 0)
    with pytest.raises(InputError, match="groups must be"):
        refine(vectors, np.array([0, 0, 0]), 2)
    with pytest.raises(InputError, match="finite"):
        refine(np.full((4, 1), np.nan), np.zeros(4, dtype=int), 2)
