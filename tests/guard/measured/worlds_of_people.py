"""Made-up databases with everything that rows of people may hold, and guards over them with seeded noise."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kgather._guard.guard import Guard
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.noise import Noise
from kgather._guard.policy import parse_policy
from kgather._guard.refused import Refused

GENEROUS = "budget: {epsilon: 1.0e+6, delta: 1.0e-6}"
"""A budget beside which noise is nothing: for tests that are about something else."""


def seeded(seed: int) -> Noise:
    """Rounded Gaussian noise from a seed: quick, and for tests only."""
    rng = np.random.default_rng(seed)
    return lambda count, sd: np.rint(rng.normal(size=count) * sd).astype(np.int64)


def silent(count: int, sd: float) -> NDArray[np.int64]:
    """No noise at all, to see what is measured."""
    del sd
    return np.zeros(count, dtype=np.int64)


def write(path: Path, tables: Mapping[str, pd.DataFrame | str]) -> Path:
    """Write a database; of each table a frame, or the SQL that makes its rows."""
    with duckdb.connect(path) as con:
        for name, content in tables.items():
            if isinstance(content, str):
                con.execute(f"create table {name} as {content}")
                continue
            con.register("frame", content)
            con.execute(f"create table {name} as from frame")
            con.unregister("frame")
    return path


def guarded(folder: Path, tables: Mapping[str, pd.DataFrame | str] | None, policy: str, noise: Noise) -> Guard:
    """A guard over tables, which are written where they are given. The policy names db.duckdb."""
    if tables is not None:
        write(folder / "db.duckdb", tables)
    return Guard(parse_policy(policy), folder, noise=noise)


def engine_of(guard: Guard) -> MeasuredEngine:
    """The engine of a guard in mode measured."""
    assert isinstance(guard.engine, MeasuredEngine)
    return guard.engine


def charged(guard: Guard) -> float:
    """What the ledger has charged so far, as rho."""
    return sum(one.rho for one in engine_of(guard).ledger.measurements())


def rows_of(guard: Guard, sql: str) -> list[dict[str, Any]] | None:
    """The rows of an answer, None where it is refused."""
    try:
        return guard.query(sql).to_pylist()
    except Refused:
        return None


def number_of(guard: Guard, sql: str) -> float | None:
    """The number of an answer of one row and one column, None where nothing is told."""
    rows = rows_of(guard, sql)
    if not rows:
        return None
    (value,) = rows[0].values()
    return None if value is None else float(value)


def raters(people: int, films: int, seed: int, missing: float = 0.3) -> pd.DataFrame:
    """People with ratings of films, f0 and so on, a salary, an age and a city."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"user_id": np.arange(1, people + 1)}
    for film in range(films):
        values = rng.choice([1, 2, 3, 4, 5], people, p=[0.1, 0.15, 0.25, 0.3, 0.2]).astype(float)
        values[rng.random(people) < missing] = np.nan
        columns[f"f{film}"] = pd.array(values, dtype="Int64")
    columns["salary"] = rng.integers(20_000, 90_000, people)
    columns["age"] = rng.integers(18, 80, people)
    columns["city"] = rng.choice(["Graz", "Wien", "Linz"], people)
    return pd.DataFrame(columns)


def policy_of_raters(films: int, k: int = 5, budget: str = "", more: str = "") -> str:
    """The policy of `raters`: films are artifacts of 1 to 5."""
    names = [f"f{film}" for film in range(films)]
    values = ", ".join(f"{name}: [1, 2, 3, 4, 5]" for name in names)
    return f"""version: 1
database: db.duckdb
k: {k}
{budget}
tables:
  people:
    privacy_unit: user_id
    grain: unit
    artifacts: [{", ".join(names)}]
    measures: [salary, age]
    dimensions: [city]
    values: {{{values}}}
    bounds: {{salary: [0, 100000], age: [0, 100]}}
{more}
principals:
  a: {{}}
"""


def long_of(people: pd.DataFrame, films: int) -> pd.DataFrame:
    """The same ratings as rows: user_id, item_id (from 1), rating."""
    long = people.melt("user_id", [f"f{film}" for film in range(films)], "item", "rating").dropna()
    long["item_id"] = long["item"].str[1:].astype(int) + 1
    return long[["user_id", "item_id", "rating"]].astype(int).sort_values(["user_id", "item_id"])


def condition_of(row: Mapping[str, Any], names: list[str]) -> str:
    """The condition that somebody's values fulfil."""
    return " AND ".join(f"{name} IS NULL" if pd.isna(row[name]) else f"{name} = {int(row[name])}" for name in names)
