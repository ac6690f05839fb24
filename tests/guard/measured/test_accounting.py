"""What measurements cost: the conversion against numbers of others, and the ledger against an accountant of its own."""

import math

import numpy as np
import pytest
from worlds_of_people import charged, engine_of, guarded, long_of, raters, rows_of, seeded

from kgather._errors import InputError
from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import (
    charge,
    delta_of,
    noise_for,
    rho_of,
    success_about_a_count,
    success_about_anything,
    success_about_membership,
    tail,
)
from kgather._guard.measured.ledger import Measurement

GRIDS = [(0.05, 0.5), (0.05, 1.5), (0.25, 1.0), (0.25, 4.0), (1.05, 3.0), (1.05, 8.0), (4.0, 12.0), (20.0, 60.0)]


def _integrated(rho: float, epsilon: float) -> float:
    """The delta of Gaussian noise that costs rho: what of one density is above e^epsilon times the other."""
    sd = 1 / math.sqrt(2 * rho)
    x = np.linspace(-40 * sd, 40 * sd + 1, 400_001)
    one, other = (np.exp(-((x - middle) ** 2) / (2 * sd**2)) / (sd * math.sqrt(2 * math.pi)) for middle in (1.0, 0.0))
    return float(np.trapezoid(np.maximum(one - math.exp(epsilon) * other, 0.0), x))


@pytest.mark.parametrize(("rho", "epsilon"), GRIDS)
def test_what_is_promised_holds_for_gaussian_noise(rho: float, epsilon: float) -> None:
    exact = _integrated(rho, epsilon)
    assert exact <= delta_of(rho, epsilon) * (1 + 1e-6)


@pytest.mark.parametrize(("rho", "epsilon"), GRIDS)
def test_the_promise_is_no_worse_than_the_simple_conversion(rho: float, epsilon: float) -> None:
    simple = math.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else 1.0
    assert delta_of(rho, epsilon) <= simple
    # Of all mechanisms that cost rho, the Gaussian is nearly the worst: the bound is not far above it.
    assert delta_of(rho, epsilon) <= 12 * _integrated(rho, epsilon) + 1e-12


@pytest.mark.parametrize(("rho", "epsilon", "delta"), [(2.56, 17.14, 1e-10), (0.07, 2.47, 1e-10)])
def test_published_values(rho: float, epsilon: float, delta: float) -> None:
    """The budgets of the census of the United States of 2020, for persons and for housing units."""
    assert rho_of(epsilon, delta) == pytest.approx(rho, abs=0.005)


@pytest.mark.parametrize(("epsilon", "delta"), [(8.0, 1e-6), (1.0, 1e-9), (0.1, 1e-5), (50.0, 1e-6), (2000.0, 1e-6)])
def test_the_inverse_is_the_largest_that_holds(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta < delta_of(rho * 1.001, epsilon)


def test_the_default_budget() -> None:
    assert rho_of(8.0, 1e-6) == pytest.approx(1.05, abs=0.005)
    rho = rho_of(8.0, 0.8e-6)
    assert 0.76 < success_about_membership(rho) <= 0.77
    assert 0.84 < success_about_a_count(rho) <= 0.85
    assert 0.92 < success_about_anything(rho) <= 0.93


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), (1, 0), (1, 1), (math.inf, 0.1), (math.nan, 0.1)])
def test_numbers_that_promise_nothing(epsilon: float, delta: float) -> None:
    with pytest.raises(InputError, match="budget"):
        rho_of(epsilon, delta)


def test_noise_and_charge_belong_together() -> None:
    assert charge(3.0, noise_for(3.0, 0.2)) == pytest.approx(0.2)
    assert charge(1.0, 1.0) == 0.5
    assert tail(0.00135) == pytest.approx(3.0, abs=0.001)


def test_success_is_that_of_a_test_between_two_bells() -> None:
    """A fact moves one person from one count to another: the distance is root 2, and whoever guesses is right where the
    noise is on that side of the middle."""
    rng = np.random.default_rng(3)
    for rho in (0.1, 0.5, 1.05):
        noise = rng.normal(size=(200_000, 2)) * noise_for(1.0, rho)
        right = np.mean((noise + np.array([1.0, 0.0])) @ [1.0, -1.0] > 0)
        assert right == pytest.approx(success_about_a_count(rho), abs=0.005)
        right = np.mean(noise[:, 0] + 1 > 0.5)
        assert right == pytest.approx(success_about_membership(rho), abs=0.005)


# An accountant of its own making over the ledger

POLICY = """version: 1
database: db.duckdb
k: 5
budget: {{epsilon: {epsilon}, delta: 1.0e-6}}
tables:
  people:
    privacy_unit: user_id
    artifacts: [f0, f1, f2, f3]
    measures: [salary, age]
    dimensions: [city]
    bounds: {{age: [0, 100]}}
  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating]
    rows_per_person: 4
  visits:
    privacy_unit: user_id
    grain: rows
    artifacts: [rating]
    dimensions: [place]
joins:
  - ratings.user_id = people.user_id
principals:
  a: {{}}
"""
ROWS = {"ratings": 4}
QUESTIONS = [
    "SELECT COUNT(*) FROM people",
    "SELECT city, COUNT(*), AVG(age), AVG(salary) FROM people GROUP BY city",
    "SELECT f0, f1, COUNT(*) FROM people GROUP BY f0, f1",
    "SELECT f0, STDDEV_POP(age) FROM people WHERE f1 >= 3 AND f2 < 4 GROUP BY f0",
    "SELECT COUNT(*) FROM people WHERE f0 = 1 OR (f1 = 2 AND f2 = 3 AND f3 IS NOT NULL) OR city = 'Graz'",
    "SELECT COVAR_POP(age, salary) FROM people",
    "SELECT item_id, AVG(rating), COUNT(*) FROM ratings GROUP BY item_id",
    "SELECT rating, COUNT(*) FROM ratings GROUP BY rating",
    "SELECT item_id, rating, COUNT(*) FROM ratings GROUP BY item_id, rating",
    "SELECT place, AVG(rating), COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY place",
    "SELECT rating, COUNT(*) FROM ratings WHERE item_id = 2 GROUP BY rating",
    "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) n FROM visits GROUP BY user_id) t GROUP BY n",
]


@pytest.fixture(scope="module", params=[1.0, 8.0, 400.0])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guard:
    """A guard that was asked everything twice."""
    people = raters(400, 4, 1)
    ratings = long_of(people, 4)
    visits = ratings.rename(columns={"item_id": "place"}).astype({"place": str})
    tables = {"people": people, "ratings": ratings, "visits": visits}
    folder = tmp_path_factory.mktemp("asked")
    guard = guarded(folder, tables, POLICY.format(epsilon=request.param), seeded(5))
    for sql in QUESTIONS * 2:
        rows_of(guard, sql)
    return guard


def _reach(one: Measurement) -> float:
    """What one person moves in a measurement, by what it says that it is."""
    table = one.about["rows"]
    reach = 1.0
    if table and one.kind not in ("rows", "grain"):
        # As many rows as the policy says; where it says nothing, what was found is a power of 2. A person's rows are
        # in cells of their own where the unique key is among the features.
        own = any(name == '"ratings"."item_id"' for name in one.about["features"])
        own = own or ", people" in one.name  # a person counts once in each cell
        most = ROWS.get(table)
        if one.kind in ("keys", "keyed"):
            own = True
        if most is None:
            most = round(one.about["reach"] ** (2 if own else 1))
            assert math.log2(most) % 1 == 0
        reach = (math.sqrt(most) if own else most) * 1024
    if one.kind in ("sums", "keyed"):
        reach = reach / (1024 if table else 1) * math.hypot(1 << 20, one.about["counted"])
    return reach


def test_each_charge_is_what_noise_and_reach_say(asked: Guard) -> None:
    measurements = engine_of(asked).ledger.measurements()
    assert len(measurements) >= 3
    for one in measurements:
        assert _reach(one) ** 2 / (2 * one.sd**2) <= one.rho * (1 + 1e-6), one.name
        assert one.rho > 0


def test_all_charges_together_are_within_the_budget(asked: Guard) -> None:
    budget = asked.policy.budget
    measurements = engine_of(asked).ledger.measurements()
    rho, delta = math.fsum(one.rho for one in measurements), math.fsum(one.delta for one in measurements)
    assert {one.kind for one in measurements if one.delta} <= {"keys", "keyed"}
    assert all(one.delta > 0 for one in measurements if one.kind in ("keys", "keyed"))
    assert delta < 0.2 * budget.delta
    assert delta_of(rho, budget.epsilon) + delta <= budget.delta * (1 + 1e-6)


def test_nothing_is_measured_twice(asked: Guard) -> None:
    names = [one.name for one in engine_of(asked).ledger.measurements()]
    spent = charged(asked)
    for sql in QUESTIONS:
        rows_of(asked, sql)
    if (
        asked.policy.budget.epsilon > 100
    ):  # what is refused may be paid for by nobody, but what is left sharpens nothing
        assert charged(asked) == pytest.approx(spent)
        assert len(set(names)) == len(names)
