"""What a release shows of items: those with few raters share a vector, and all vectors have noise."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgather._errors import InputError
from kgather.udfs.preferences.item_noise import ItemNoise, secret_of
from kgather.udfs.preferences.item_side import learn_apart
from kgather.udfs.preferences.learning import learn
from kgather.udfs.ratings.matrix import RatingMatrix

SECRET = b"s" * 32


def noise(m: int = 13, number: int = 0) -> ItemNoise:
    return ItemNoise(number.to_bytes(32, "big"), np.ones(m, dtype=bool))


def ratings(n: int = 200, counts: tuple[int, ...] = (150, 120, 60, 21, 20, 19, 15, 11, 10, 9, 3, 1, 1), seed: int = 0):
    """Users by items with so many raters each."""
    rng = np.random.default_rng(seed)
    pairs = sorted((int(u), i) for i, c in enumerate(counts) for u in rng.choice(n, c, replace=False))
    users, items = (np.array(each) for each in zip(*pairs, strict=True))
    values = np.clip(np.round(3 + rng.normal(size=len(users)) + (items % 3 - 1) * 0.5), 1, 5)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n))]).astype(np.int64)
    return RatingMatrix(n, len(counts), indptr, items.astype(np.int32), values.astype(np.float32))


def test_items_with_few_raters_share_one_vector_and_take_no_part() -> None:
    matrix = ratings()
    learnt, side = learn_apart(matrix, min_raters=10)
    few = side.raters <= 10  # an item of exactly min_raters has nothing of its own yet
    assert few.sum() == 5
    assert len(np.unique(side.level[few])) == 1
    assert not side.factors[few].any()
    kept = learn(matrix.with_items(side.raters >= 10))
    assert np.array_equal(learnt.user_level, kept.user_level)
    assert np.array_equal(learnt.user_factors, kept.user_factors)


def test_from_min_raters_to_twice_as_many_an_item_moves_to_its_own_vector() -> None:
    matrix = ratings()
    _, side = learn_apart(matrix, min_raters=10)
    plain = learn(matrix.with_items(side.raters >= 10))
    shared = side.level[side.raters == 1][0]
    expected = {21: 1.0, 20: 1.0, 19: 0.9, 15: 0.5, 11: 0.1, 10: 0.0, 9: 0.0}
    for raters, own in expected.items():
        [item] = np.flatnonzero(side.raters == raters)
        assert side.own[item] == pytest.approx(own)
        assert side.level[item] == pytest.approx(shared + own * (plain.item_level[item] - shared), abs=1e-6)
        assert side.factors[item] == pytest.approx(own * plain.item_factors[item], abs=1e-6)


def test_the_shared_level_is_the_median_above_the_users_levels() -> None:
    matrix = ratings(counts=(150, 120, 90, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 4, 4, 3, 3))
    learnt, side = learn_apart(matrix, min_raters=5)
    users = np.repeat(np.arange(matrix.n_users), np.diff(matrix.indptr))
    rare = side.raters[matrix.items] < 5
    people = len(np.unique(users[rare]))
    assert people >= 35
    above = matrix.values - learnt.user_level[users].astype(np.float64)
    share = (people - 5) / 45
    expected = share * np.median(above[rare]) + (1 - share) * above.mean()
    assert side.level[-1] == pytest.approx(expected, abs=1e-5)


def test_ratings_of_few_people_do_not_set_the_shared_level() -> None:
    """Of one rating alone the median would be that rating."""
    low, high = (ratings(counts=(150, 120, 90, 1)) for _ in range(2))
    place = np.flatnonzero(low.items == 3)
    low.values[place], high.values[place] = 1.0, 5.0
    sides = [learn_apart(matrix, min_raters=10)[1] for matrix in (low, high)]
    # What is left is what the rating does to the mean of all.
    assert abs(sides[0].level[3] - sides[1].level[3]) < 0.02
    assert sides[0].shared_reach == pytest.approx(0.128 * low.values.std(), rel=0.05)


@pytest.mark.parametrize(
    ("raters", "reach"),
    [(1, 0.064), (10, 0.064), (15, (0.064 * 1.8 / 21) ** 0.5), (20, 1.8 / 21), (60, 1.8 / 61), (150, 1.8 / 151)],
)
def test_a_reach_falls_with_the_raters(raters: int, reach: float) -> None:
    matrix = ratings()
    _, side = learn_apart(matrix, min_raters=10)
    assert side.reach[side.raters == raters] == pytest.approx(matrix.values.std() * reach, rel=1e-5)


def test_one_rating_moves_an_item_by_no_more_than_a_reach() -> None:
    """The unit of the noise is what it says: how far a level moves if one rating goes from end to end of the scale."""
    matrix = ratings(counts=(150, 120, 60, 40, 30))
    _, before = learn_apart(matrix, min_raters=10)
    for item in range(5):
        [entry] = np.flatnonzero(matrix.items == item)[:1]
        values = matrix.values.copy()
        values[entry] = 1.0 if values[entry] > 3 else 5.0
        changed = RatingMatrix(matrix.n_users, 5, matrix.indptr, matrix.items, values)
        _, after = learn_apart(changed, min_raters=10)
        # A reach is that of a rating 1.8 deviations off its mean, and the scale is three to four deviations wide.
        assert abs(after.level[item] - before.level[item]) < 2.5 * before.reach[item]


def test_one_rating_moves_factors_by_no_more_than_their_reach() -> None:
    """Also those of an item that hundreds rated, where a level hardly moves."""
    matrix = ratings(n=900, counts=(700, 500, 300, 100, 60, 40))
    _, before = learn_apart(matrix, min_raters=10)
    for item in range(6):
        entries = np.flatnonzero(matrix.items == item)[:20]
        moves = []
        for entry in entries:
            values = matrix.values.copy()
            values[entry] = 1.0 if values[entry] > 3 else 5.0
            changed = RatingMatrix(matrix.n_users, 6, matrix.indptr, matrix.items, values)
            _, after = learn_apart(changed, min_raters=10)
            moves.append(np.abs(after.factors[item] - before.factors[item]).max())
        # From end to end of the scale, three to four deviations, for a user whose factors are some times the usual.
        assert np.median(moves) < 5 * before.factor_reach[item]


def test_noise_has_the_size_that_was_asked_for() -> None:
    matrix = ratings()
    _, side = learn_apart(matrix, min_raters=10)
    gaps, in_factors = [], []
    for number in range(400):
        level, factors = side.with_noise(noise(number=number), 2.0)
        gaps.append((level - side.level) / side.reach)
        in_factors.append((factors - side.factors) / side.factor_reach[:, None])
    own = side.own == 1
    # At least what was asked for, and at most a twentieth more.
    assert 1.88 < np.std(np.array(gaps)[:, own]) < 2.2
    assert 1.9 < np.std(in_factors) < 2.2
    # Items at the shared vector have the noise of its level on top, the same for all of them.
    shared = np.array(gaps)[:, side.raters == 1]
    together = 2.0 * side.shared_reach / side.reach[side.raters == 1][0]
    assert np.std(shared.mean(axis=1)) == pytest.approx(np.hypot(together, 2.0 / np.sqrt(2)), rel=0.15)


def test_without_noise_the_vectors_are_those_before() -> None:
    _, side = learn_apart(ratings(), min_raters=10)
    level, factors = side.with_noise(noise(), 0.0)
    assert np.array_equal(level, side.level)
    assert np.array_equal(factors, side.factors)


@pytest.mark.parametrize(("one", "other"), [((10, 2.0), (7, 2.0)), ((10, 2.0), (10, 6.0)), ((10, 2.0), (7, 5.0))])
def test_releases_with_noise_of_two_sizes_do_not_add_up(one: tuple[int, float], other: tuple[int, float]) -> None:
    """Two k, or two sizes of noise, are no two equations: what is best known of an item is in one of the two."""
    matrix = ratings()
    sides = [learn_apart(matrix, min_raters=least)[1] for least, _ in (one, other)]
    sizes = (one[1], other[1])
    both = (sides[0].own > 0) & (sides[1].own > 0)
    assert both.sum() >= 6
    draws = []
    for number in range(400):
        added = []
        for side, size in zip(sides, sizes, strict=True):
            # What the attacker sees of an item's own level: without the shared one, which is known from other items.
            alone = dataclasses.replace(side, shared_reach=0.0)
            level, _ = alone.with_noise(noise(number=number), size)
            added.append(((level - side.level) / np.maximum(side.own, 1e-9))[both])
        draws.append(added)
    for pairs in np.moveaxis(np.array(draws), 2, 0):
        variances = pairs.var(axis=0)
        if np.allclose(pairs[:, 0], pairs[:, 1]):
            continue  # noise of the same size is the same
        # The best weights of the two leave the variance of the better one.
        best = 1.0 / np.linalg.inv(np.cov(pairs.T)).sum()
        assert best > 0.8 * variances.min()


def test_what_is_learnt_otherwise_has_noise_of_its_own() -> None:
    rated = np.ones(50, dtype=bool)
    sizes = np.full(50, 0.1)
    one, same, other = (ItemNoise(SECRET, rated, learnt).walk("level", sizes) for learnt in ("a", "a", "b"))
    assert np.array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.5


def test_where_all_items_are_rare_they_are_all_shown_alike() -> None:
    learnt, side = learn_apart(ratings(counts=(5, 4, 3)), min_raters=10)
    assert len(np.unique(side.level)) == 1
    assert not learnt.user_factors.any()
    assert not side.factors.any()


def test_rare_items_are_left_out_by_noisy_counts() -> None:
    """Whether an item with k - 1 raters is there is told from one with k by chance and hardly more."""
    _, side = learn_apart(ratings(), min_raters=10)
    there = np.array([side.kept(noise(number=number), 10) for number in range(3000)]).mean(axis=0)
    at, below = there[side.raters == 10][0], there[side.raters == 9][0]
    assert at == pytest.approx(0.5, abs=0.03)
    assert below == pytest.approx(0.5 * np.exp(-0.5), abs=0.03)
    assert there[0] == 1.0


@pytest.mark.parametrize("reaches", [-1.0, float("nan"), float("inf")])
def test_noise_is_a_number_of_at_least_0(reaches: float) -> None:
    _, side = learn_apart(ratings(), min_raters=10)
    with pytest.raises(InputError, match="item_noise"):
        side.with_noise(noise(), reaches)


def test_noise_of_other_items_is_refused() -> None:
    _, side = learn_apart(ratings(), min_raters=10)
    with pytest.raises(InputError, match="of 12 items"):
        side.with_noise(noise(12), 1.0)


@given(
    st.binary(min_size=32, max_size=40),
    st.lists(st.booleans(), min_size=1, max_size=30),
    st.floats(1e-6, 100),
    st.floats(1.2, 50),
)
def test_larger_noise_is_smaller_noise_and_more(key: bytes, rated: list[bool], size: float, times: float) -> None:
    drawn = ItemNoise(key, np.array(rated))
    m = len(rated)
    small, again, large = (drawn.walk("level", np.full(m, each)) for each in (size, size, size * times))
    assert np.array_equal(small, again)
    if any(rated):
        assert not np.array_equal(small, large)
    assert not small[~np.array(rated)].any()
    assert np.array_equal(drawn.raters, ItemNoise(key, np.array(rated)).raters)


def test_the_steps_of_the_walk_are_not_correlated_with_where_it_begins() -> None:
    m = 4000
    drawn = noise(m, 7)
    small, large = (drawn.walk("level", np.full(m, size)) for size in (0.1, 0.3))
    assert np.std(small) == pytest.approx(0.1, rel=0.08)
    assert np.std(large) == pytest.approx(0.3, rel=0.08)
    assert abs(np.corrcoef(small, large - small)[0, 1]) < 0.05


def test_rated_items_have_the_same_noise_in_any_catalogue() -> None:
    whole = ItemNoise(SECRET, np.ones(3, dtype=bool))
    listed = ItemNoise(SECRET, np.array([False, True, True, False, True]))
    sizes = np.array([0.1, 0.2, 0.3])
    among = np.array([1.0, 0.1, 0.2, 1.0, 0.3])
    # Draws for all items of a step come in the order of the places, of which rated items have the first.
    assert whole.walk("level", sizes) == pytest.approx(listed.walk("level", among)[[1, 2, 4]])
    assert whole.raters == pytest.approx(listed.raters[[1, 2, 4]])


def test_secrets_differ_where_key_or_ratings_do() -> None:
    people = [12345678901234567890123, 7, 7]
    secrets = {
        secret_of(b"k" * 32, people),
        secret_of(b"l" * 32, people),
        secret_of(b"k" * 32, people[:2]),
        secret_of(b"k" * 32, [*people[:2], 8]),
    }
    assert len(secrets) == 4
    assert secret_of(b"k" * 32, people) == secret_of(b"k" * 32, people[::-1])
    with pytest.raises(ValueError, match="at least 32 bytes"):
        secret_of(b"short", people)
