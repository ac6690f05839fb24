"""Measuring privacy models against pycanon on 100,000 rows, and the memory that a check of 100 million rows takes.

    make bench-verification

Needs pycanon and no data: the tables are made up. Writes benchmarks/results/verification.{md,json}.
"""

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from harness import Claim, Result, paired
from pycanon import anonymity

from kgather._verify.connection import create_macros

ROWS, MANY = 100_000, 100_000_000
GOALS = {"k": 10, "l": 30, "t": 300}


def census() -> pd.DataFrame:
    """A made-up table with the shape of UCI Adult: five quasi-identifiers, about 7,500 classes of skewed sizes."""
    rng = np.random.default_rng(0)

    def draw(values: int, skew: float) -> np.ndarray:
        weights = 1 / np.arange(1, values + 1) ** skew
        return rng.choice(values, ROWS, p=weights / weights.sum())

    return pd.DataFrame(
        {
            "age": 17 + 5 * draw(13, 0.6),
            "education": np.char.add("education ", draw(16, 1.3).astype(str)).astype(object),
            "marital_status": np.char.add("status ", draw(7, 1.5).astype(str)).astype(object),
            "race": np.char.add("race ", draw(5, 2.3).astype(str)).astype(object),
            "sex": np.char.add("sex ", draw(2, 0.9).astype(str)).astype(object),
            "occupation": np.char.add("occupation ", draw(14, 0.6).astype(str)).astype(object),
            "hours": 5 * draw(15, 1),
        }
    )


def release() -> pd.DataFrame:
    """A release with classes of exactly ten rows."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "group_id": rng.permutation(np.repeat(np.arange(ROWS // 10), 10)),
            "occupation": np.char.add("occupation ", rng.integers(0, 14, ROWS).astype(str)).astype(object),
            "hours": 5 * rng.integers(0, 15, ROWS),
        }
    )


def against_pycanon(data: pd.DataFrame, shape: str, quasi: list[str], about: str, runs: int, result: Result) -> None:
    """Ours reads a Parquet file every time, as `kgather verify` does; the rival has its data frame in memory."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        create_macros(con)
        con.execute(f"copy (from data) to '{folder}/given.parquet' (format parquet)")
        con.execute(f"create view given as from '{folder}/given.parquet'")
        classes = con.execute("select sum(classes) from kg_class_sizes('given', ?)", [quasi]).fetchall()[0][0]

        def ours(query: str, *columns: list[str]) -> Callable[[], float]:
            return lambda: con.execute(f"select {query}", list(columns)).fetchall()[0][0]

        for model, column, ask, rival in [
            ("k", "", ours("min(class_size) from kg_class_sizes('given', ?)", quasi),
             lambda: anonymity.k_anonymity(data, quasi)),
            ("l", "occupation", ours("min(l) from kg_l_diversity('given', ?, ?)", quasi, ["occupation"]),
             lambda: anonymity.l_diversity(data, quasi, ["occupation"])),
            ("t", about, ours("max(t) from kg_t_closeness('given', ?, ?)", quasi, [about]),
             lambda: anonymity.t_closeness(data, quasi, [about])),
        ]:  # fmt: skip
            measured: list[float] = []
            # A t of the rival's takes minutes: once is enough for a ratio of hundreds.
            mine, theirs = paired(
                ask, lambda rival=rival, kept=measured: kept.append(rival()), 1 if model == "t" else runs
            )
            value = ask()
            assert all(math.isclose(value, each, abs_tol=1e-8) for each in measured), (model, value, measured)
            ratio = theirs.median / mine.median
            result.add(
                Claim(
                    f"{model}{f' of {column}' if column else ''}, {ROWS:,} rows, {shape}, {classes:,} classes",
                    f"{mine}",
                    f"pycanon {version('pycanon')}: {theirs}",
                    ratio,
                    f"at least {GOALS[model]} times as fast, the same value",
                    ratio >= GOALS[model],
                    f"{model} = {value:.6g}",
                )
            )


def memory(result: Result) -> None:
    """Peak memory of `kgather verify` of 100 million rows in a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.parquet"
        with duckdb.connect() as con:
            con.execute(f"""
                copy (
                  select i % 10_000_000 as group_id, (i % 10_000_000 * 7919) % 1000 as age, 'z' || i % 100 as zip
                  from range({MANY}) t (i)
                ) to '{file}' (format parquet)
            """)
        start = time.perf_counter()
        call = [sys.executable, "-c", "from kgather._cli import main; main()", "verify", str(file), "--k", "10"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    # The only child there was.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    result.add(
        Claim(
            f"peak memory of kgather verify --k 10, {MANY:,} rows, 10,000,000 classes",
            f"{peak:.2f} GB, {seconds:.0f} s",
            "4 GB",
            4 / peak,
            "below 4 GB",
            peak < 4,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side (default 3)")
    runs = parser.parse_args().runs
    result = Result("verification")
    memory(result)
    people = ["age", "education", "marital_status", "race", "sex"]
    against_pycanon(census(), "shaped as Adult", people, "hours", runs, result)
    against_pycanon(release(), "classes of ten", ["group_id"], "occupation", runs, result)


if __name__ == "__main__":
    main()
