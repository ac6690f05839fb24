"""An audit of each kind of measurement by itself: two databases that differ by one person, many draws of each, and what
epsilon the best test between them proves. It may not be more than what was charged."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from sensitivity import elsewhere, recorded, without
from worlds_of_people import engine_of, guarded, rows_of, silent

from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import delta_of, rho_of
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.measuring import Session, Wanted
from kgather._guard.measured.noise import discrete_gaussian
from kgather._guard.measured.reading import Reading

DRAWS = 2_000
EPSILON, DELTA = 1.0, 1e-2
"""What a measurement is made to cost here. Delta is large, so that draws can say anything about the tails."""
ERROR = 0.01  # of the whole audit of a measurement

POLICY = """version: 1
database: db.duckdb
k: 2
budget: {epsilon: 1.0e+6, delta: 1.0e-6}
tables:
  people:
    privacy_unit: user_id
    artifacts: [f0, f1]
    measures: [salary]
    dimensions: [city]
    values: {f0: [1, 2], f1: [1, 2]}
    bounds: {salary: [0, 10]}
  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating]
    dimensions: [device]
    rows_per_person: 4
    bounds: {rating: [1, 5]}
joins:
  - ratings.user_id = people.user_id
principals:
  a: {}
"""
TABLES = {
    "people": "select i as user_id, 1 + i % 2 as f0, 1 as f1, case when i = 30 then 1000 else 5 end as salary, "
    "case when i > 27 then 'Graz' else 'Wien' end as city from range(31) t(i)",
    # The last one has ten rows of ten items, of which four count in full.
    "ratings": "select i as user_id, j as item_id, case when i = 30 then 100 else 3 end as rating, "
    "case when i >= 29 then 'tv' else 'phone' end as device from range(31) t(i), range(10) s(j) where i = 30 or j < 3",
}
PERSON = 30
UNITS = {"people": "user_id", "ratings": "user_id"}
MEASURED = {
    "people": "SELECT COUNT(*) FROM people",
    "one": "SELECT f0, COUNT(*) FROM people GROUP BY f0",
    "pair": "SELECT f0, f1, COUNT(*) FROM people GROUP BY f0, f1",
    "keys": "SELECT city, COUNT(*) FROM people GROUP BY city",
    "sums": "SELECT f0, AVG(salary) FROM people GROUP BY f0",
    "rows": "SELECT rating, COUNT(*) FROM ratings WHERE rating > 2 GROUP BY rating",
    "sums of rows": "SELECT AVG(rating) FROM ratings",
    "keys of rows": "SELECT device, COUNT(*) FROM ratings GROUP BY device",
    "keyed": "SELECT item_id, AVG(rating) FROM ratings GROUP BY item_id",
}


@dataclass
class _Nowhere:
    known: tuple[Measurement, ...] = ()

    def add(self, measurement: Measurement) -> Measurement:
        return measurement


def _quick(seed: int) -> Callable[[int, float], NDArray[np.int64]]:
    """The discrete Gaussian from a seed, by a table of its distribution."""
    rng, tables = np.random.default_rng(seed), {}

    def drawn(count: int, sd: float) -> NDArray[np.int64]:
        if sd > 50:  # as good as the rounded one
            return np.rint(rng.normal(size=count) * sd).astype(np.int64)
        if sd not in tables:
            values = np.arange(-math.ceil(12 * sd), math.ceil(12 * sd) + 1)
            weights = np.exp(-(values**2) / (2 * sd**2))
            tables[sd] = values, np.cumsum(weights / weights.sum())
        values, below = tables[sd]
        return values[np.searchsorted(below, rng.random(count)).clip(max=len(values) - 1)]

    return drawn


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return guarded(tmp_path, TABLES, POLICY, silent)


def _wanted(guard: Guard, sql: str) -> list[Wanted]:
    with recorded() as wanted:
        rows_of(guard, sql)
    return wanted


@pytest.mark.parametrize("name", MEASURED)
def test_no_test_proves_more_than_was_charged(guard: Guard, tmp_path: Path, name: str) -> None:
    engine = engine_of(guard)
    path = without(engine.database.path, tmp_path / "other.duckdb", PERSON, UNITS)
    other = elsewhere(engine.database, path)
    rho = rho_of(EPSILON, DELTA)
    wanted = {one.name: one for one in _wanted(guard, MEASURED[name])}
    assert wanted
    with engine.database.reading() as one, other.reading() as two:
        for each in wanted.values():
            draws = [_draws(guard, each, reading, rho, seed) for seed, reading in enumerate((one, two))]
            found = _proven(*draws)
            assert found <= EPSILON, (each.name, found)
            assert delta_of(rho, EPSILON) <= DELTA


def test_the_audit_proves_a_leak(guard: Guard, tmp_path: Path) -> None:
    """Where noise is for half of what a person moves, the audit says so."""
    engine = engine_of(guard)
    path = without(engine.database.path, tmp_path / "other.duckdb", PERSON, UNITS)
    other = elsewhere(engine.database, path)
    (each,) = _wanted(guard, "SELECT f0, COUNT(*) FROM people GROUP BY f0")[-1:]
    with engine.database.reading() as one, other.reading() as two:
        draws = [_draws(guard, each, reading, 16 * rho_of(EPSILON, DELTA), at) for at, reading in enumerate((one, two))]
    assert _proven(*draws) > EPSILON


def _draws(guard: Guard, wanted: Wanted, reading: Reading, rho: float, seed: int) -> NDArray[np.float64]:
    """What many ledgers would hold: of each, numbers float64[draws, cells], with keys by their text."""
    session: Session = engine_of(guard).session()
    session.noise = _quick(seed)
    priced = Wanted(**{**wanted.__dict__, "price": rho})
    first = session._taken(priced, reading, _Nowhere())  # type: ignore[arg-type]
    if wanted.kind not in ("keys", "keyed"):
        exact = first.numbers - _quick(seed)(first.numbers.size, first.sd).reshape(first.numbers.shape)
        noise = _quick(seed + 10)(DRAWS * exact.size, first.sd)
        return (exact.ravel() + noise.reshape(DRAWS, exact.size)) / first.sd
    # What is read of keys depends on the data alone; the noise, and what it shows, is drawn each time.
    found = _read_once(session, priced, reading)
    rows = [found() for _ in range(DRAWS)]
    texts = sorted({text for row in rows for text in row})
    return np.array([[row.get(text, -9.0) for text in texts] for row in rows]).reshape(DRAWS, len(texts))


def _read_once(session: Session, wanted: Wanted, reading: Reading) -> Callable[[], dict[str, float]]:
    """Draws of keys over one reading."""
    kind = "values" if wanted.kind == "keys" else "keyed"
    kept = {}

    class Once:
        def __getattr__(self, name: str) -> Callable[..., object]:
            def read(*args: object) -> object:
                if name not in kept:
                    kept[name] = getattr(reading, name)(*args)
                return kept[name]

            assert name == kind
            return read

    def draw() -> dict[str, float]:
        taken = session._taken(wanted, Once(), _Nowhere())  # type: ignore[arg-type]
        counts = taken.numbers if taken.numbers.ndim == 1 else taken.numbers[:, 1]
        return dict(zip(taken.domains[0].values, counts / taken.sd, strict=True))

    return draw


def _proven(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The lower bound of epsilon, at DELTA, by the best threshold along the line between the means. It is chosen on one
    half of the draws and tested on the other (Clopper and Pearson)."""
    if one.shape[1] != other.shape[1]:  # keys that were shown in one of them only
        width = max(one.shape[1], other.shape[1])
        one, other = (np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-9.0) for part in (one, other))
    half = DRAWS // 2
    line = one[:half].mean(0) - other[:half].mean(0)
    if not np.any(line):
        return 0.0
    best = 0.0
    for a, b, sign in ((one, other, 1.0), (other, one, -1.0)):
        first, second = (sign * (part @ line) for part in (a, b))
        cuts = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.02, 0.98, 49))
        gain = [_ratio(np.mean(first[:half] > cut), np.mean(second[:half] > cut)) for cut in cuts]
        cut = cuts[int(np.argmax(gain))]
        hits, misses = (int(np.sum(part[half:] > cut)) for part in (first, second))
        low, high = _lower(hits, DRAWS - half), 1 - _lower(DRAWS - half - misses, DRAWS - half)
        best = max(best, _ratio(low, high))
    return best


def _ratio(hits: float, misses: float) -> float:
    return math.log(max(hits - DELTA, 1e-9) / max(misses, 1e-3))


def _lower(successes: int, draws: int) -> float:
    """The lower end of the interval of Clopper and Pearson; four such ends share the error. By bisection."""
    low, high = 0.0, successes / draws
    for _ in range(40):
        middle = (low + high) / 2
        if _at_least(successes, draws, middle) > ERROR / 4:
            high = middle
        else:
            low = middle
    return low


def _at_least(successes: int, draws: int, chance: float) -> float:
    if successes == 0:
        return 1.0
    if chance <= 0:
        return 0.0
    at = np.arange(successes, draws + 1)
    logs = np.array([math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1) for k in at])
    return float(np.exp(logs + at * math.log(chance) + (draws - at) * math.log1p(-chance)).sum())


# The noise itself


@pytest.mark.parametrize("sd", [0.4, 3.0, 1000.0])
def test_noise_is_of_the_deviation_that_is_charged_for(sd: float) -> None:
    drawn = discrete_gaussian(4_000, sd)
    assert drawn.dtype == np.int64
    wanted = sd
    if sd < 1:  # of whole numbers it is less than the parameter says
        values = np.arange(-20, 21)
        weights = np.exp(-(values**2) / (2 * sd**2))
        wanted = math.sqrt(float(weights @ values**2 / weights.sum()))
    assert np.std(drawn) == pytest.approx(wanted, rel=0.1)
    assert abs(np.mean(drawn)) < 5 * sd / math.sqrt(4_000)


def test_noise_of_nothing_is_nothing() -> None:
    assert discrete_gaussian(0, 1.0).shape == (0,)


def test_draws_come_from_the_operating_system() -> None:
    np.random.seed(1)  # noqa: NPY002 - it must not matter
    first = discrete_gaussian(50, 100.0)
    np.random.seed(1)  # noqa: NPY002
    assert not np.array_equal(first, discrete_gaussian(50, 100.0))


def test_the_database_is_left_as_it_was(guard: Guard) -> None:
    with duckdb.connect(engine_of(guard).database.path, read_only=True) as con:
        assert con.execute("select count(*) from people").fetchall() == [(31,)]
