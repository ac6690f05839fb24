"""Means of small groups are drawn to the mean of all, and their errors say by how much that may be wrong."""

from pathlib import Path

import numpy as np
import pandas as pd
from worlds_of_people import charged, guarded, seeded

from kgather._guard.measured.model import Table, effects

POLICY = """version: 1
database: db.duckdb
k: 10
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [job]
    measures: [age]
    values: {{job: [{jobs}]}}
    bounds: {{age: [10, 100]}}
principals: {{a: {{}}}}
"""


def test_errors_cover_what_is_drawn(tmp_path: Path) -> None:
    """Over ledgers of the default budget, in groups of 20 people and of thousands: about two of three answers are
    within a standard error, and 19 of 20 within two."""
    rng = np.random.default_rng(5)
    jobs = [f"j{at}" for at in range(12)]
    sizes = np.array([20, 25, 30, 50, 80, 120, 300, 600, 1_000, 2_000, 4_000, 8_000])
    job = np.repeat(jobs, sizes)
    age = np.clip(np.repeat(rng.normal(39, 5, 12), sizes) + rng.normal(0, 9, sizes.sum()), 10, 100).round()
    people = pd.DataFrame({"user_id": range(sizes.sum()), "job": job, "age": age.astype(int)})
    true = people.groupby("job")["age"].mean()
    off = []
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        guard = guarded(folder, {"people": people}, POLICY.format(jobs=", ".join(jobs)), seeded(seed))
        table = guard.answer("SELECT job, AVG(age) AS m FROM people GROUP BY job", errors="columns").table
        assert charged(guard) > 0
        off += [(row["m"] - true[row["job"]]) / row["m_error"] for row in table.to_pylist() if row["m"] is not None]
    assert len(off) > 80
    assert np.mean(np.abs(off) < 1) > 0.55
    assert np.mean(np.abs(off) < 2) > 0.9


def test_a_class_of_which_nothing_is_known_is_as_uncertain_as_it_was() -> None:
    """One of 20 people beside noise of 700 in their sum; the other of 10,000."""
    sums = Table(np.array([20 * 9.0, 0.0]), np.array([700.0**2, 700.0**2]))
    ones = Table(np.array([20.0, 10_000.0]), np.array([1.0, 1.0]))
    found = effects([sums], [ones], {}, 0.0, 5.0)
    first, second = np.sqrt(np.diag(found.covariance))
    assert abs(found.values[0]) < 0.5
    assert 4.5 < first < 5.5
    assert second < 0.1
