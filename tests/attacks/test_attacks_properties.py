"""What holds for every attack on every release."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from attack_data import cells, evidence, grouped_means, matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from work import count_calls, megabytes

from kgather._attacks import Extra, Knowledge, quick, run
from kgather._attacks.attacked import Attacked
from kgather._attacks.auxiliary import draw
from kgather._attacks.differences import differences
from kgather._attacks.intersection import Second
from kgather._attacks.membership import PRACTISED, Others, compare, membership
from kgather._attacks.profiles import profiles_of
from kgather._attacks.results import Rate
from kgather._attacks.row_order import Members
from kgather._attacks.telling import ALONE, WITH_OTHERS
from kgather._errors import InputError
from kgather._evaluation.candidates import ShownVectors
from kgather._evaluation.evidence import Evidence

RATING = st.sampled_from([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])


@st.composite
def releases(draw_: st.DrawFn, k: int = 2) -> Evidence:
    """Groups of k to k + 1 users that show the mean of their ratings, or every user's own row."""
    n_groups, n_items = draw_(st.integers(1, 4)), draw_(st.integers(1, 6))
    sizes = draw_(st.lists(st.integers(k, k + 1), min_size=n_groups, max_size=n_groups))
    groups = np.repeat(np.arange(n_groups), sizes)
    table = draw_(hnp.arrays(np.float64, (len(groups), n_items), elements=RATING))
    table[0, 0] = 4.0
    return evidence(table.tolist(), grouped_means(table, groups).tolist(), groups.tolist())


def random_release(n: int, m: int, k: int, seed: int, *, share: float = 0.3) -> Evidence:
    """n users in groups of k that show the mean of their ratings."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((n, m)) < share, rng.integers(1, 6, (n, m)).astype(float), np.nan)
    table[np.isnan(table).all(axis=1), 0] = 3.0
    groups = rng.permutation(np.minimum(np.arange(n) // k, n // k - 1))
    return evidence(table.tolist(), grouped_means(table, groups).tolist(), groups.tolist())


@settings(max_examples=40, deadline=None)
@given(releases(), st.integers(0, 2**64 - 1), st.booleans(), st.sampled_from(["all", "popular", "rare"]))
def test_rates_are_shares_and_k_look_alikes_bound_them(given_: Evidence, seed: int, noisy: bool, pool: str) -> None:
    report = run(given_, known=(1, 2), noisy=noisy, pool=pool, targets=20, seed=seed, threads=1)
    for result in (*report.results, *report.original):
        for rate in (result.user, result.group, result.matched, result.wrong_among_matched):
            assert rate is None or 0 <= rate.low <= rate.value <= rate.high <= 1
        if result.user is not None:
            assert result.user.value <= result.group.value + 1e-12
    for result in report.results:
        if result.user is not None:
            assert result.user.value <= 1 / 2 + 1e-12
    shares = next(result.details for result in report.results if result.attack == "disclosure")
    assert 0 <= shares["exact"] <= shares["near"] <= shares["one_rater"] <= shares["rated"] <= 1


def test_the_same_seed_gives_the_same_at_any_number_of_threads() -> None:
    release = random_release(60, 30, 4, 1)
    one = run(release, seed=5, targets=100, threads=1)
    assert one.as_dict() == run(release, seed=5, targets=100, threads=4).as_dict()
    assert one.as_dict() == run(release, seed=5, targets=100).as_dict()
    assert one.results != run(release, seed=6, targets=100, threads=1).results


def test_memory_for_one_item_at_a_time_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = random_release(40, 25, 4, 2)
    whole = run(release, targets=50, threads=2)
    monkeypatch.setattr("kgather._attacks.attacked.PIECE_BYTES", 1)
    monkeypatch.setattr("kgather._attacks.linkage.PIECE_BYTES", 1)
    monkeypatch.setattr("kgather._attacks.disclosure.PIECE_BYTES", 1)
    monkeypatch.setattr("kgather._attacks.profiles._CELLS", 1)
    pieces = run(release, targets=50, threads=2)
    # Sums in another order differ in the last digit, which rates do not show.
    assert whole.as_dict() == pieces.as_dict()


def test_known_ratings_are_the_users_own_and_nested() -> None:
    release = random_release(50, 40, 5, 3)
    attacked = Attacked.of(release)
    original = release.original
    few, more = (draw(attacked, Knowledge(m), targets=50, seed=9) for m in (3, 5))
    assert few.people + few.left_out == 50
    at = {(user, tuple(few.items[t])) for t, user in enumerate(few.users)}
    for t, user in enumerate(more.users):
        own = slice(original.indptr[user], original.indptr[user + 1])
        rated = dict(zip(original.items[own].tolist(), original.values[own].tolist(), strict=True))
        assert len(set(more.items[t].tolist())) == 5
        for item, rating in zip(more.items[t].tolist(), more.ratings[t].tolist(), strict=True):
            assert rated[item] == rating
        assert (user, tuple(more.items[t][:3])) in at


def test_noise_is_at_most_a_step_and_stays_on_the_scale() -> None:
    attacked = Attacked.of(random_release(200, 30, 5, 4))
    exact, noisy = (draw(attacked, Knowledge(4, noise), targets=500, seed=1) for noise in (False, True))
    assert np.array_equal(exact.items, noisy.items)
    moved = noisy.ratings - exact.ratings
    assert set(np.unique(moved)) == {-1.0, 0.0, 1.0}
    assert noisy.ratings.min() >= 1
    assert noisy.ratings.max() <= 5
    inside = (exact.ratings > 1) & (exact.ratings < 5)
    counts = np.bincount((moved[inside] + 1).astype(int)) / inside.sum()
    assert np.all(np.abs(counts - 1 / 3) < 0.05)


def test_the_halves_are_those_with_most_and_fewest_raters() -> None:
    release = random_release(100, 30, 5, 5)
    attacked = Attacked.of(release)
    for pool, first in (("popular", True), ("rare", False)):
        known = draw(attacked, Knowledge(1, pool=pool), targets=300, seed=2)
        for user, [item] in zip(known.users, known.items, strict=True):
            own = release.original.items[release.original.indptr[user] : release.original.indptr[user + 1]]
            others = attacked.raters[own]
            better = (others > attacked.raters[item]).sum() if first else (others < attacked.raters[item]).sum()
            assert better < (len(own) + 1) // 2


def test_only_shown_items_are_known_and_only_released_users_are_targets() -> None:
    release = evidence([[5, 4, 1], [4, 4, None], [1, None, 2]], [[4.5, None, None]], [0, 0, -1])
    known = draw(Attacked.of(release), Knowledge(1), targets=10)
    assert set(known.users.tolist()) == {0, 1}
    assert set(known.items.reshape(-1).tolist()) == {0}
    assert draw(Attacked.of(release), Knowledge(2), targets=10).left_out == 2


def test_nobody_with_enough_ratings_is_told_and_no_error() -> None:
    report = run(evidence([[5], [4]], [[4.5]], [0, 0]), known=(3,))
    found = next(result for result in report.results if result.attack == "scoring")
    assert (found.targets, found.left_out, found.user) == (0, 2, None)


@pytest.mark.parametrize(
    "release",
    [
        evidence([[3]] * 4, [[3]], [0] * 4),
        evidence([[3]], [[3]], [0]),
        evidence([[5, 1]] * 6, [[5, 1], [5, 1]], [0, 0, 0, 1, 1, 1]),
        evidence([[3, 3]] * 4, [[3, 3], [3, 3]], [0, 0, 1, 1], scale=(3, 3), step=None),
        evidence([[0.5], [9.5]], [[0.5], [9.5]], [0, 1], scale=(-10, 10), step=None),
    ],
    ids=["all equal", "one user", "two groups alike", "no scale", "no step"],
)
def test_degenerate_releases(release: Evidence) -> None:
    for report in (run(release, known=(1,), targets=10), quick(release)):
        for result in report.results:
            assert result.matched is None or np.isfinite(result.matched.value)


def test_structure_is_chance_where_everything_is_shown() -> None:
    release = random_release(60, 10, 3, 6, share=0.5)
    full = dataclasses.replace(
        release, shown=evidence([[1] * 10], np.random.default_rng(0).uniform(1, 5, (20, 10)).tolist(), [0]).shown
    )
    full = dataclasses.replace(full, shown=dataclasses.replace(full.shown, sizes=release.shown.sizes))
    [result] = run(full, known=(2,), attacks=["structure"], targets=1000, original_too=False).results
    assert result.group.value == pytest.approx(result.chance_group)
    assert result.user.value == pytest.approx(result.chance_user, rel=0.2)


def test_rows_at_random_do_not_raise_the_alarm() -> None:
    release = random_release(400, 5, 5, 7, share=0.9)
    rng = np.random.default_rng(0)
    members = Members(
        release.group_ids[rng.permutation(release.groups)], rng.permutation(400).astype(str), release.group_ids
    )
    report = run(release, attacks=["row_order"], extra=Extra(members=members), original_too=False)
    by_file = report.results[0]
    assert by_file.group.low <= by_file.chance_group <= by_file.group.high


def test_wrong_options_are_refused() -> None:
    release = evidence([[5], [4]], [[4.5]], [0, 0])
    with pytest.raises(InputError, match="no attack 'magic'"):
        run(release, attacks=["magic"])
    with pytest.raises(InputError, match="membership needs ratings of people"):
        run(release, attacks=["membership"])
    with pytest.raises(InputError, match="known"):
        run(release, known=(0,))
    with pytest.raises(InputError, match="popular"):
        run(release, pool="some")
    with pytest.raises(InputError, match="targets"):
        run(release, targets=0)
    with pytest.raises(InputError, match="seed"):
        run(release, seed=2**70)


def test_a_user_with_very_many_ratings_costs_no_square() -> None:
    n_items = 4_000
    shown = [[3.0] * n_items, [2.0] * n_items]
    release = evidence([[4.0] * n_items, [2.0] * n_items], shown, [0, 1])
    assert count_calls(lambda: run(release, targets=50)) < 500_000
    # A table of all pairs of a user's ratings would be 128 MB. The kernels are compiled by now.
    assert megabytes(lambda: run(release, targets=50)) < 60


@given(st.integers(1, 500), st.floats(0, 1))
def test_intervals_hold_their_share(n: int, share: float) -> None:
    rate = Rate.of(np.full(3, share), n)
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    wider = Rate.of(np.full(3, share), max(1, n // 2))
    assert wider.high - wider.low >= rate.high - rate.low - 1e-9


def test_the_report_is_plain_data() -> None:
    said = run(random_release(20, 8, 2, 8), targets=10).as_dict()
    assert json.loads(json.dumps(said)) == said


def people(n: int, m: int, seed: int, *, taste: np.ndarray | None = None) -> np.ndarray:
    """Ratings of n people who like items alike, in two directions, with noise; NaN where not rated."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(m, 2)) if taste is None else taste
    likes = 3 + rng.normal(size=(n, 2)) @ directions.T + rng.normal(scale=0.5, size=(n, m))
    rated = rng.random((n, m)) < 0.6
    rated[:, 0] = True
    return np.where(rated, np.clip(np.round(likes), 1, 5), np.nan)


def test_whoever_shows_rows_as_they_are_tells_who_is_in() -> None:
    inside, outside = people(60, 30, 1), people(60, 30, 2)
    groups = np.arange(60) // 2
    attacked = Attacked.of(evidence(inside.tolist(), grouped_means(inside, groups).tolist(), groups.tolist()))
    alone, more = membership(attacked, Others.of(matrix(outside.tolist())), None)
    assert alone.details["by_nearest"] > 0.6
    assert alone.details["advantage_settled"] > 0.5
    assert alone.details["advantage_low"] <= alone.details["advantage"] <= alone.details["advantage_high"]
    assert more.details["by_practised"] > 0.6


def test_where_there_is_nothing_to_tell_membership_is_chance() -> None:
    # What is shown was made of third people.
    third, groups = people(200, 30, 3), np.arange(200) // 10
    inside, outside = people(200, 30, 4), people(200, 30, 5)
    attacked = Attacked.of(evidence(inside.tolist(), grouped_means(third, groups).tolist(), groups.tolist()))
    for result in membership(attacked, Others.of(matrix(outside.tolist())), None):
        assert result.details["advantage"] <= result.details["advantage_by_chance"]
        assert abs(result.details["advantage_settled"]) < 0.15


def test_item_vectors_that_know_people_by_heart_are_found_out() -> None:
    """Vectors learnt from few people explain these better than others, though four groups' profiles hardly do."""
    inside, outside = people(40, 120, 6), people(40, 120, 7)
    left, size, right = np.linalg.svd(np.where(np.isnan(inside), 3, inside) - 3, full_matrices=False)
    vectors = ShownVectors(
        sizes=np.full(4, 10),
        group_levels=np.zeros(4, dtype=np.float32),
        group_factors=(left[:, :24] * size[:24]).reshape(4, 10, 24).mean(axis=1).astype(np.float32),
        item_levels=np.full(120, 3, dtype=np.float32),
        item_factors=right[:24].T.astype(np.float32),
        scale=(1, 5),
    )
    told = compare(vectors, matrix(inside.tolist()), matrix(outside.tolist()), width=4)
    assert set(told) == {*ALONE, *WITH_OTHERS, PRACTISED}
    assert told["vectors"].settled > 0.4
    assert told["vectors"].value > max(told["nearest"].value, told["vectors"].by_chance)


@given(
    hnp.arrays(np.float64, (5, 7), elements=st.sampled_from([np.nan, 1.0, 2.5, 4.0])),
    st.lists(st.integers(1, 9), min_size=5, max_size=5),
)
@settings(max_examples=50, deadline=None)
def test_profiles_are_what_is_shown(shown: np.ndarray, sizes: list[int]) -> None:
    shown[:, 0] = [1, 2, 3, 4, 5]
    release = cells(shown.tolist(), sizes)
    found = profiles_of(release, rank=5)
    weights = np.array(sizes) / sum(sizes)
    for item in range(7):
        seen = ~np.isnan(shown[:, item])
        if not seen.any():
            assert np.isnan(found.means[item])
            continue
        mean = np.average(shown[seen, item], weights=weights[seen])
        assert found.means[item] == pytest.approx(mean)
        again = found.means[item] + found.places @ found.axes[item]
        assert np.allclose(again[seen], shown[seen, item], atol=1e-3)
        assert np.allclose(again[~seen], mean, atol=1e-3)
    within = (found.places * weights[:, None]).T @ found.places
    assert np.allclose(within, np.eye(len(within)), atol=1e-6)


def test_profiles_of_vectors_and_of_their_cells_agree() -> None:
    rng = np.random.default_rng(0)
    vectors = ShownVectors(
        np.array([3, 5, 2, 6, 4, 4, 9]),
        *(rng.normal(scale=0.2, size=size).astype(np.float32) for size in (7, (7, 2), 11, (11, 2))),
        scale=(-10, 10),
    )
    shown = vectors.columns(np.arange(11))[0].T
    one, other = profiles_of(vectors), profiles_of(cells(shown.tolist(), vectors.sizes.tolist()))
    assert np.allclose(one.means, other.means, atol=1e-6)
    assert np.allclose(one.axes @ one.places.T, other.axes @ other.places.T, atol=1e-5)
    assert one.axes.shape == other.axes.shape == (11, 3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_differences_believe_in_no_more_than_there_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 6, (12, 4)).astype(float)
    one, two = rng.integers(0, 3, 12), rng.integers(0, 3, 12)
    one[:3] = two[:3] = [0, 1, 2]
    first, second = (
        Attacked.of(evidence(table.tolist(), grouped_means(table, groups).tolist(), groups.tolist()))
        for groups in (one, two)
    )
    ids = pa.array(range(12))
    told = differences(first, Second.of(first, second, ids, ids))
    assert 0 <= told.details["found_alone"] <= min(told.details["alone"], told.matched.value)
    assert 0 <= told.details["overlap"] <= 1
    same = differences(first, Second.of(first, first, ids, ids))
    assert same.details["overlap"] == 1
    assert same.details["alone"] == 0
