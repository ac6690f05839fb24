"""The private item side: what it costs, that no user moves a sum by more than is paid for, and what it is good for."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_data import Ratings, made_up, matrix_of, mean_absolute_error, movielens_100k, predict, release, split

from kgather._errors import InputError
from kgather.udfs.gathering.bkg import gather
from kgather.udfs.preferences import private_items
from kgather.udfs.preferences._accounting import (
    Charge,
    Noise,
    delta_of,
    epsilon_of,
    rho_of,
    zcdp_epsilon_of,
)
from kgather.udfs.preferences._bounded_sums import (
    SENSITIVITY,
    USER_BINS,
    add_gaps,
    add_moments,
    add_pairs,
    add_up,
    add_users,
)
from kgather.udfs.preferences._gram import new_design, tag_of
from kgather.udfs.preferences.learning import learn
from kgather.udfs.preferences.metric import comparison_vectors
from kgather.udfs.preferences.private_items import PrivateModel, Sums, learn_private, plan
from kgather.udfs.ratings.matrix import RatingMatrix

SCALE = (1.0, 5.0)
ITEMS = 12


def private(matrix: RatingMatrix, **options: object) -> PrivateModel:
    return learn_private(matrix, **{"scale": SCALE, "epsilon": 4.0, "delta": 1e-5, "noise_seed": 1, **options})


def some_matrix(n: int = 300, m: int = 40, share: float = 0.4, seed: int = 0) -> RatingMatrix:
    return matrix_of(made_up(n, m, share, seed), n, m)


def same(one: PrivateModel, other: PrivateModel, *, users: bool = True) -> bool:
    fields = ("item_level", "item_factors") + (("user_level", "user_factors") if users else ())
    return np.array_equal(one.raters, other.raters) and all(
        np.array_equal(getattr(one.preferences, name), getattr(other.preferences, name)) for name in fields
    )


# What it costs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.4, 2.0, 9.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0, 10.0])
def test_delta_is_the_largest_gap_of_two_gaussians(rho: float, epsilon: float) -> None:
    # sup over sets of P(set) - e^epsilon Q(set), P and Q normal with deviation 1 and means mu and 0, by quadrature
    mu = math.sqrt(2 * rho)
    x = np.linspace(-40, 40, 800_001)
    gap = np.exp(-((x - mu) ** 2) / 2) - np.exp(epsilon - x**2 / 2)
    expected = np.maximum(gap, 0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    assert delta_of(rho, epsilon) == pytest.approx(expected, rel=1e-4, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 10.0, 100.0, 500.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-5, 0.01])
def test_rho_and_epsilon_are_inverse_and_rounded_to_the_side_of_privacy(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert delta_of(rho * 1.0001, epsilon) > delta
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    assert epsilon_of(rho, delta) <= epsilon


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.3, 2.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_conversions_are_in_order(rho: float, delta: float) -> None:
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    alpha = 1 + np.logspace(-4, 7, 300_000)
    each = rho * alpha + (np.log(1 / delta) - np.log(alpha)) / (alpha - 1) + np.log1p(-1 / alpha)
    # the same as P(loss > epsilon) is bounded by: E (loss - epsilon)+ <= sup_z (z - epsilon)+ / e^((a - 1) z) ...
    least = max(float(each.min()), 0.0)
    assert zcdp_epsilon_of(rho, delta) == pytest.approx(least, rel=1e-6, abs=1e-9)
    assert epsilon_of(rho, delta) <= zcdp_epsilon_of(rho, delta) <= simple


def test_zcdp_epsilon_by_its_delta() -> None:
    # Canonne, Kamath and Steinke state it as delta: e^((a - 1)(a rho - epsilon)) / (a - 1) (1 - 1 / a)^a
    rho, delta = 0.2, 1e-6
    epsilon = zcdp_epsilon_of(rho, delta)
    a = 1 + np.logspace(-3, 4, 100_000)
    log_delta = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    assert math.exp(log_delta.min()) == pytest.approx(delta, rel=1e-5)


def test_nothing_costs_nothing() -> None:
    assert epsilon_of(0.0, 1e-5) == 0.0
    assert zcdp_epsilon_of(0.0, 1e-5) == 0.0
    assert epsilon_of(1e9, 1e-5) == math.inf


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 200), (4.0, 200), (40.0, 400), (500.0, 400)])
def test_charges_are_what_was_added_and_sum_to_the_budget(
    epsilon: float, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, float, int]] = []
    draw = Noise.draw

    def listen(self: Noise, what: str, deviation: float, shape: tuple[int, ...]) -> np.ndarray:
        drawn.append((what, deviation, math.prod(shape)))
        return draw(self, what, deviation, shape)

    monkeypatch.setattr(Noise, "draw", listen)
    found = private(some_matrix(n), epsilon=epsilon)
    assert [(charge.what, charge.deviation, charge.numbers) for charge in found.charges] == drawn
    assert len({what for what, *_ in drawn}) == len(drawn)
    assert all(charge.sensitivity == SENSITIVITY for charge in found.charges)
    rho = sum(charge.sensitivity**2 / 2 / charge.deviation**2 for charge in found.charges)
    assert found.rho == pytest.approx(rho)
    assert rho == pytest.approx(rho_of(epsilon, 1e-5))
    assert epsilon_of(found.rho, found.delta) <= found.epsilon == epsilon


def test_what_a_charge_costs() -> None:
    assert Charge("x", 3.0, 6.0, 1).rho == pytest.approx(0.125)


@pytest.mark.parametrize("rho", [1e-4, 0.3, 400.0])
@pytest.mark.parametrize("users", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("items", [1, 500, 100_000])
def test_plans_spend_all_and_no_more(users: float, items: int, rho: float) -> None:
    steps = plan(users, 20 * users, items, rho)
    shares = (steps.users, steps.levels, steps.pairs, *steps.rounds, steps.median)
    assert math.fsum(shares) == pytest.approx(1.0)
    assert min(share for share in shares if share != steps.pairs) > 0


def test_more_is_measured_where_more_can_be_seen() -> None:
    assert not plan(943, 80_000, 1682, rho_of(4, 1e-5)).factors
    middle = plan(6040, 800_000, 3706, rho_of(4, 1e-5))
    assert middle.factors
    assert middle.pairs == 0
    assert plan(100_000, 5_200_000, 3706, rho_of(4, 1e-6)).pairs > 0


# No user moves a sum by more --------------------------------------------------------------------------------------

Sum = Callable[[RatingMatrix], np.ndarray]


def design_of(factors: np.ndarray) -> np.ndarray:
    m, rank = factors.shape
    design = new_design(m, rank)
    design.reshape(m + 1, -1)[:m, 1 : rank + 1] = factors
    return design


def room(ratings: tuple[np.ndarray, ...], columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Where users' levels and factors go."""
    n = len(ratings[0]) - 1
    return np.zeros(n, dtype=np.float32), np.zeros((n, columns - 1), dtype=np.float32)


def sums_of(level: np.ndarray, factors: np.ndarray, gains: np.ndarray, options: dict[str, float]) -> dict[str, Sum]:
    """All statistics that are measured, without noise, as one sum each."""
    reach, cap, balance = options["reach"], options["cap"], options["balance"]
    penalty = (options["level_penalty"], options["factor_penalty"])
    m, c = len(level), factors.shape[1] + 1
    design, level = design_of(factors), level.astype(np.float32)
    places = np.where(np.arange(m) % 3 < 2, 0, -1).astype(np.int32)
    places[places == 0] = np.arange((places == 0).sum())
    q = int(places.max()) + 1

    def over(kernel: Callable[..., None], shape: tuple[int, ...]) -> Sum:
        def total(matrix: RatingMatrix) -> np.ndarray:
            ratings = (matrix.indptr, matrix.items, matrix.values)
            return add_up(lambda lo, hi, out: kernel(lo, hi, ratings, out), matrix.indptr, shape, 1, None)

        return total

    def moments(used: int) -> Sum:
        return over(
            lambda lo, hi, ratings, out: add_moments(
                lo,
                hi,
                *ratings,
                design,
                level,
                penalty,
                gains,
                balance,
                reach,
                2.0,
                cap,
                out,
                tag_of(c - 1),
                tag_of(used - 1),
            ),
            (m, used * (used + 1) // 2 + used),
        )

    return {
        "users": over(
            lambda lo, hi, ratings, out: add_users(lo, hi, ratings[0], ratings[2], *SCALE, out), (USER_BINS + 2,)
        ),
        "levels": moments(1),
        "vectors": moments(c),
        "pairs": over(
            lambda lo, hi, ratings, out: add_pairs(lo, hi, *ratings, level, penalty[0], places, q, gains, reach, out),
            (q, q),
        ),
        "gaps": over(
            lambda lo, hi, ratings, out: add_gaps(
                lo, hi, *ratings, design, level, penalty, *SCALE, 2.0, 5.0, out, *room(ratings, c), tag_of(c - 1)
            ),
            (64,),
        ),
    }


def rows(users: list[list[tuple[int, float]]], m: int) -> RatingMatrix:
    indptr = np.concatenate([[0], np.cumsum([len(user) for user in users])]).astype(np.int64)
    entries = [entry for user in users for entry in sorted(user)]
    items = np.array([item for item, _ in entries], dtype=np.int32)
    return RatingMatrix(len(users), m, indptr, items, np.array([value for _, value in entries], dtype=np.float32))


def check_user(user: list[tuple[int, float]], others: list[list[tuple[int, float]]], sums: dict[str, Sum]) -> None:
    m = ITEMS if max([item for item, _ in user], default=0) < ITEMS else 2000
    for name, total in sums.items():
        moved = total(rows([*others[:1], user, *others[1:]], m)) - total(rows(others, m))
        assert np.linalg.norm(moved) <= SENSITIVITY, name


RATING = st.floats(width=32, allow_nan=True, allow_infinity=True) | st.sampled_from([1.0, 3.0, 5.0, 1e-30, 1e38])
USER = st.dictionaries(st.integers(0, ITEMS - 1), RATING, max_size=ITEMS).map(lambda user: sorted(user.items()))
NUMBER = st.floats(-100.0, 100.0) | st.sampled_from([0.0, 1e-160, 1e12, -1e12, 3.0])
OPTIONS = st.fixed_dictionaries(
    {
        "reach": st.sampled_from([1e-30, 0.5, 2.0, 1e6]),
        "cap": st.sampled_from([1e-3, 0.2, 1e6, math.inf]),
        "balance": st.sampled_from([1e-9, 0.2, 1e3]),
        "level_penalty": st.sampled_from([0.0, 1e-9, 8.5]),
        "factor_penalty": st.sampled_from([0.0, 1e-9, 4.0]),
    }
)


@given(
    user=USER,
    others=st.lists(USER, max_size=3),
    level=st.lists(NUMBER, min_size=ITEMS, max_size=ITEMS),
    factors=st.lists(NUMBER, min_size=2 * ITEMS, max_size=2 * ITEMS),
    gains=st.lists(st.sampled_from([0.0, 1e-160, 0.1, 1.0, 50.0, 1e12]), min_size=ITEMS, max_size=ITEMS),
    options=OPTIONS,
)
def test_no_user_moves_a_sum_by_more_than_the_sensitivity(
    user: list, others: list, level: list, factors: list, gains: list, options: dict
) -> None:
    vectors = np.array(factors).reshape(ITEMS, 2)
    check_user(user, others, sums_of(np.array(level), vectors, np.array(gains), options))


@pytest.mark.parametrize("cap", [0.01, math.inf])
@pytest.mark.parametrize("value", [1.0, 5.0, 1e38, -1e38, math.nan, "alternating", "one off", "random"])
@pytest.mark.parametrize("count", [1, 2, 3, 200, 2000])
def test_adversarial_users(count: int, value: float | str, cap: float) -> None:
    m = 2000
    rng = np.random.default_rng(count)
    patterns = {
        "alternating": np.where(np.arange(count) % 2, 1.0, 5.0),
        "one off": np.where(np.arange(count) == 0, 5.0, 1.0),
        "random": rng.uniform(-9, 9, count),
    }
    ratings = patterns[value] if isinstance(value, str) else np.full(count, value)
    chosen = rng.permutation(m)[:count]
    user = [(int(item), float(rating)) for item, rating in zip(chosen, ratings, strict=True)]
    # as large as released numbers get: factors at the edge of what they are clipped to
    options = {"reach": 1.8, "cap": cap, "balance": 0.2, "level_penalty": 8.5, "factor_penalty": 0.7}
    level, factors = rng.uniform(1, 5, m), rng.choice([-4.0, 4.0], (m, 3))
    others = [[(int(item), 4.0) for item in rng.permutation(m)[:50]] for _ in range(3)]
    check_user(user + [(m - 1, 1.0)] * (m - 1 not in chosen), others, sums_of(level, factors, np.ones(m), options))


def test_a_user_can_move_a_sum_by_nearly_as_much() -> None:
    rng = np.random.default_rng(0)
    options = {"reach": 1.8, "cap": math.inf, "balance": 0.2, "level_penalty": 8.5, "factor_penalty": 0.7}
    sums = sums_of(rng.uniform(1, 5, ITEMS), rng.normal(0, 0.3, (ITEMS, 2)), np.ones(ITEMS), options)
    user = rows([[(item, float(rng.integers(1, 6))) for item in range(ITEMS)]], ITEMS)
    for name in ("levels", "vectors", "pairs"):
        assert np.linalg.norm(sums[name](user)) == pytest.approx(1.0, abs=1e-7)


def test_a_user_adds_the_same_whoever_else_is_there() -> None:
    # exactly, not up to rounding: sums are whole numbers
    rng = np.random.default_rng(1)
    options = {"reach": 1.8, "cap": 0.3, "balance": 0.2, "level_penalty": 8.5, "factor_penalty": 0.7}
    sums = sums_of(rng.uniform(1, 5, ITEMS), rng.normal(0, 0.3, (ITEMS, 2)), rng.uniform(0.1, 3, ITEMS), options)
    many = [[(item, float(rng.integers(1, 6))) for item in range(ITEMS) if rng.random() < 0.6] for _ in range(500)]
    user = [(item, float(rng.integers(1, 6))) for item in range(0, ITEMS, 2)]
    for name, total in sums.items():
        moved = total(rows([*many, user], ITEMS)) - total(rows(many, ITEMS))
        assert np.array_equal(moved, total(rows([user], ITEMS))), name


def test_the_item_side_is_a_function_of_the_noisy_sums_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # quite other ratings, the same sums: the same items, to the last bit
    canned: list[np.ndarray] = []

    def record(*arguments: object) -> np.ndarray:
        canned.append(add_up(*arguments))  # type: ignore[arg-type]
        return canned[-1].copy()

    for epsilon in (1.0, 40.0, 500.0):
        canned.clear()
        monkeypatch.setattr(private_items, "add_up", record)
        first = private(some_matrix(400), epsilon=epsilon)
        replayed = iter(canned)
        monkeypatch.setattr(private_items, "add_up", lambda *_, replayed=replayed: next(replayed).copy())
        assert same(first, private(some_matrix(50, share=0.1, seed=9), epsilon=epsilon), users=False)


# The noise ----------------------------------------------------------------------------------------------------------


def test_the_noise_is_as_large_as_is_charged_for() -> None:
    matrix = some_matrix(60, 20)
    ratings = (matrix.indptr, matrix.values, *SCALE)

    def kernel(_: RatingMatrix, lo: int, hi: int, out: np.ndarray) -> None:
        add_users(lo, hi, *ratings, out)

    true = add_up(partial(kernel, matrix), matrix.indptr, (USER_BINS + 2,), 1, None)
    residuals = []
    for seed in range(2000):
        sums = Sums(matrix, Noise(seed, ""), 1, None)
        noisy, deviation = sums.measure("something", 0.05, kernel, (USER_BINS + 2,))
        residuals.append(noisy - true)
    assert deviation == sums.charges[0].deviation == SENSITIVITY / math.sqrt(0.1)
    found = np.array(residuals) / deviation
    assert abs(found.mean()) < 5 / math.sqrt(found.size)
    assert found.std() == pytest.approx(1.0, abs=5 / math.sqrt(2 * found.size))
    assert (found**4).mean() == pytest.approx(3.0, abs=0.15)
    correlations = np.corrcoef(found.T) - np.eye(USER_BINS + 2)
    assert np.abs(correlations).max() < 5.5 / math.sqrt(len(found))


def test_two_worlds_are_as_hard_to_tell_apart_as_is_promised() -> None:
    # the best test of two Gaussians at distance 1: its gap of P(in | with) - P(in | without) is 2 Phi(mu / 2) - 1
    rho = 0.125
    with_user, without = rows([[(0, 5.0), (1, 1.0)]], 2), rows([[]], 2)
    options = {"reach": 9.0, "cap": math.inf, "balance": 0.5, "level_penalty": 0.0, "factor_penalty": 0.0}
    vector = sums_of(np.full(2, 3.0), np.zeros((2, 0)), np.ones(2), options)["levels"](with_user)

    def kernel(matrix: RatingMatrix, lo: int, hi: int, out: np.ndarray) -> None:
        add_moments(
            lo, hi, matrix.indptr, matrix.items, matrix.values, new_design(2, 0), np.full(2, 3.0, np.float32),
            (0.0, 0.0), np.ones(2), 0.5, 9.0, 2.0, math.inf, out, tag_of(0), tag_of(0),
        )  # fmt: skip

    said = []
    for matrix in (with_user, without):
        scores = []
        for seed in range(4000):
            noise = Noise(seed, f"{matrix.nnz}")
            sums = Sums(matrix, noise, 1, None)
            noisy, _ = sums.measure("x", rho, kernel, (2, 2))
            scores.append(float((noisy * vector).sum()))
        said.append(float((np.array(scores) > 0.5).mean()))
    mu = math.sqrt(2 * rho)
    assert said[0] - said[1] == pytest.approx(math.erf(mu / 2 / math.sqrt(2)), abs=0.04)


def test_a_measurement_has_a_name_of_its_own() -> None:
    sums = Sums(some_matrix(), Noise(1, ""), 1, None)
    sums.measure("x", 1.0, lambda *_: None, (3,))
    with pytest.raises(ValueError, match="twice"):
        sums.measure("x", 1.0, lambda *_: None, (3,))


def test_streams_differ_by_secret_options_and_name() -> None:
    draws = [
        Noise(secret, options).draw(what, 1.0, (4,)).tobytes()
        for secret in (1, 2, b"1", b"\x01", b"a", bytes(range(40)))
        for options in ("", "a")
        for what in ("", "a", "b")
    ]
    assert len(set(draws)) == len(draws)
    assert Noise(7, "a").draw("b", 1.0, (4,)).tobytes() == Noise(7, "a").draw("b", 1.0, (4,)).tobytes()


# The result ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 40.0, 500.0])
def test_same_for_any_number_of_threads_and_the_same_secret(epsilon: float) -> None:
    matrix = some_matrix()
    first = private(matrix, epsilon=epsilon)
    assert same(first, private(matrix, epsilon=epsilon))
    assert same(first, private(matrix, epsilon=epsilon, threads=2))
    assert same(first, private(matrix, epsilon=epsilon, threads=5))
    other = private(matrix, epsilon=epsilon, noise_seed=2)
    assert not np.array_equal(first.preferences.item_level, other.preferences.item_level)
    assert not np.array_equal(first.raters, private(matrix, epsilon=epsilon, noise_seed=b"1").raters)


@pytest.mark.parametrize("epsilon", [0.01, 4.0, 500.0])
@pytest.mark.parametrize(
    "ratings",
    [
        ([0], [0], [4.0]),
        (np.zeros(9, int), np.arange(9), np.full(9, 5.0)),
        (np.repeat(np.arange(30), 9), np.tile(np.arange(9), 30), np.full(270, 3.0)),
        (np.repeat(np.arange(30), 9), np.tile(np.arange(9), 30), np.tile([1.0, 5.0, 5.0], 90)),
    ],
    ids=["one rating", "one user with all items", "constant", "all rated all"],
)
def test_small_and_odd_ratings(ratings: Ratings, epsilon: float) -> None:
    matrix = matrix_of(ratings, 31, 11)  # the last user and two items have no ratings
    for rank in (1, 3, 5):
        found = private(matrix, epsilon=epsilon, rank=rank)
        model = found.preferences
        shapes = (model.user_level.shape, model.user_factors.shape, model.item_level.shape, model.item_factors.shape)
        assert shapes == ((31,), (31, rank), (11,), (11, rank))
        for part in (model.user_level, model.user_factors, model.item_level, model.item_factors):
            assert part.dtype == np.float32
            assert np.isfinite(part).all()
        assert model.item_level.min() >= 1.0
        assert model.item_level.max() <= 5.0
        assert model.user_level[30] == 0.0
        assert epsilon_of(found.rho, found.delta) <= epsilon


def test_constant_ratings_are_learnt() -> None:
    users, items = np.nonzero(np.random.default_rng(0).random((2000, 20)) < 0.5)
    matrix = matrix_of((users, items, np.full(len(users), 4.0)), 2000, 20)
    model = private(matrix, epsilon=10.0).preferences
    assert predict(model, users, items) == pytest.approx(4.0, abs=0.1)


def test_no_ratings_at_all_are_no_error() -> None:
    # whether there are any is not public
    for n in (0, 5):
        nothing = RatingMatrix(n, 6, np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
        model = private(nothing).preferences
        assert np.isfinite(model.item_level).all()
        assert model.user_level.shape == (n,)


def test_ratings_off_the_scale_count_as_the_nearest_on_it() -> None:
    users, items, ratings = made_up(200, 30, 0.4, 3)
    off = np.where(ratings == 5, 1e30, np.where(ratings == 1, -7.0, ratings))
    one, other = (private(matrix_of((users, items, values), 200, 30)) for values in (ratings, off))
    assert same(one, other)


def test_an_item_without_ratings_looks_like_one_with_few() -> None:
    users, items, ratings = made_up(3000, 40, 0.3, 4)
    matrix = matrix_of((users, items, ratings), 3000, 60)
    found = private(matrix, epsilon=4.0)
    count = np.bincount(items, minlength=60)
    assert np.corrcoef(found.raters, count)[0, 1] > 0.95
    assert (found.raters[40:] != 0).all()  # noise is on them, too
    assert np.abs(found.raters[40:]).max() < count[:40].min()


def test_progress_is_told() -> None:
    for epsilon in (0.1, 40.0, 500.0):
        steps: list[tuple[int, int]] = []
        private(some_matrix(), epsilon=epsilon, progress=lambda done, most, steps=steps: steps.append((done, most)))
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert {most for _, most in steps} == {steps[-1][0]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be more than 0"),
        ({"epsilon": -1.0}, "epsilon must be more than 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number"),
        ({"epsilon": 501.0}, "at most 500"),
        ({"epsilon": "4"}, "epsilon must be a finite number"),
        ({"delta": 0.0}, "delta must be at least"),
        ({"delta": 1.0}, "at most 0.5"),
        ({"delta": math.nan}, "delta must be a finite number"),
        ({"rank": 0}, "rank must be at least 1"),
        ({"rank": 1.5}, "rank must be a whole number"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"scale": (5.0, 1.0)}, "must be below the highest"),
        ({"scale": (3.0, 3.0)}, "must be below the highest"),
        ({"scale": (1.0, math.inf)}, "the highest rating must be a finite number"),
        ({"noise_seed": b""}, "noise seed must not be empty"),
        ({"noise_seed": -1}, "noise seed must be between"),
        ({"noise_seed": 1 << 256}, "noise seed must be between"),
        ({"noise_seed": "secret"}, "noise seed must be a whole number"),
        ({"noise_seed": None}, "noise seed must be a whole number"),
    ],
)
def test_bad_options_are_refused(options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        private(some_matrix(), **options)


# What it is good for ------------------------------------------------------------------------------------------------


def test_more_privacy_costs_more_and_the_best_is_near_the_usual() -> None:
    n, m = 4000, 80
    train, test = split(made_up(n, m, 0.3, 5), 0)
    matrix = matrix_of(train, n, m)

    def error(epsilon: float) -> float:
        model = private(matrix, epsilon=epsilon, threads=2).preferences
        return mean_absolute_error(predict(model, test[0], test[1]), test[2])

    usual = mean_absolute_error(predict(learn(matrix, scale=SCALE), test[0], test[1]), test[2])
    mean = np.bincount(train[1], train[2]) / np.bincount(train[1])
    items = mean_absolute_error(mean[test[1]], test[2])
    none, some, much = error(500.0), error(4.0), error(0.05)
    assert none < usual + 0.04  # tastes are stronger here than the rules expect
    assert none < some + 0.01
    assert some < usual + 0.05
    assert some < items - 0.05
    assert some < much


def test_pairs_show_the_factors() -> None:
    # most of what users say is taste: where pairs are measured, factors are learnt from them
    n, m = 4000, 60
    ratings = made_up(n, m, 0.4, 6)
    found = private(matrix_of(ratings, n, m), epsilon=20.0)
    assert "pairs of items" in [charge.what for charge in found.charges]
    model = found.preferences
    usual = learn(matrix_of(ratings, n, m), scale=SCALE)
    basis = np.linalg.qr(usual.item_factors - usual.item_factors.mean(axis=0))[0]
    own = np.linalg.qr(model.item_factors - model.item_factors.mean(axis=0))[0]
    assert np.linalg.svd(basis.T @ own)[1].min() > 0.9


@pytest.mark.parametrize(("epsilon", "most"), [(10.0, 0.760), (4.0, 0.775), (1.0, 0.815)])
def test_groups_of_movielens(data_dir: Path, epsilon: float, most: float) -> None:
    ratings, n, m = movielens_100k(data_dir)
    found = []
    for seed in (101, 102, 103):
        train, test = split(ratings, seed)
        model = private(matrix_of(train, n, m), epsilon=epsilon, noise_seed=seed).preferences
        groups = gather(comparison_vectors(model), 10, tries=3)
        seen = np.isin(test[1], train[1])
        found.append(mean_absolute_error(predict(release(model, groups), *test[:2])[seen], test[2][seen]))
    assert np.mean(found) <= most


def test_what_a_kernel_adds_is_the_ridge_regressions_statistics() -> None:
    users, items, ratings = made_up(50, ITEMS, 0.6, 7)
    matrix = matrix_of((users, items, ratings), 50, ITEMS)
    rng = np.random.default_rng(0)
    level, factors, gains = rng.uniform(2, 4, ITEMS), rng.normal(0, 0.4, (ITEMS, 2)), rng.uniform(0.5, 2, ITEMS)
    options = {"reach": 1.2, "cap": 0.2, "balance": 0.3, "level_penalty": 8.5, "factor_penalty": 4.0}
    found = sums_of(level, factors, gains, options)["vectors"](matrix)
    expected = np.zeros((ITEMS, 9))
    for user in range(50):
        rated = items[users == user]
        if not len(rated):
            continue
        x = np.column_stack([np.ones(len(rated)), factors[rated]])
        target = ratings[users == user] - level[rated]
        own = np.linalg.solve(x.T @ x + np.diag([8.5, 4.0, 4.0]), x.T @ target)
        vector = np.array([1.0, *own[1:]])
        vector[1:] *= min(1.0, 2.0 / np.linalg.norm(own[1:]))
        gap = np.clip(target - own[0] - factors[rated] @ vector[1:], -1.2, 1.2)
        outer = 0.3 * np.outer(vector, vector)[np.tril_indices(3)]
        added = gains[rated, None] * np.column_stack([np.tile(outer, (len(rated), 1)), gap[:, None] * vector])
        expected[rated] += added * min(0.2, 1 / np.linalg.norm(added))
    assert found == pytest.approx(expected, abs=1e-5)
