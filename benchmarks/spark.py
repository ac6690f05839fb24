"""Publishing by Spark against the engine duckdb, on the same file in the same run.

    make bench-spark

ml-1m, and with `--ratings N` so many made-up ratings (make_ratings.py). Spark runs as local[2]. Both commands run in a
process of their own, one after the other; what Spark takes to start is in its time. The goals: an error within .001 of
DuckDB's, and 3 times its wall time plus 30 s. Writes benchmarks/results/spark.{md,json}.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from harness import Claim, Result
from make_ratings import Shape, write_parquet

from kgather._sql_text import literal

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("KGATHER_DATA", ROOT.parent / "shared" / "data"))
START = 30.0


def published(file: Path, folder: Path, k: int, *more: str) -> tuple[float, float]:
    """Seconds of wall time, and the mean absolute error that the audit tells."""
    command = [str(Path(sys.executable).with_name("kgather")), "publish", str(file), "--k", str(k), "--scale", "1,5"]
    command += ["--json", "--set", "metrics=all", "--out", str(folder), "--noise-key", str(file.with_suffix(".key"))]
    command += more
    start = time.perf_counter()
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = time.perf_counter() - start
    metrics = {each["metric"]: each["value"] for each in json.loads(told)["metrics"]}
    return seconds, metrics["mean_absolute_error"]


def compare(result: Result, what: str, file: Path, folder: Path, k: int) -> None:
    """Publish once by each engine, and add what came of it."""
    whole, error = published(file, folder / "duckdb", k)
    mine, own = published(file, folder / "spark", k, "--engine", "spark", "--master", "local[2]")
    busy = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    result.add(
        Claim(
            f"{what}, k = {k}: mean absolute error",
            f"{own:.4f}",
            f"{error:.4f}",
            own / error,
            "within .001",
            abs(own - error) <= 0.001,
        )
    )
    result.add(
        Claim(
            f"{what}, k = {k}: wall time",
            f"{mine:.0f} s",
            f"{whole:.0f} s",
            mine / whole,
            f"at most 3 times and {START:.0f} s",
            mine <= 3 * whole + START,
            busy,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=0, help="made-up ratings to publish as well")
    asked = parser.parse_args()
    result = Result("spark")
    with tempfile.TemporaryDirectory(dir=os.environ.get("KGATHER_SCRATCH")) as scratch:
        folder = Path(scratch)
        films = folder / "ml-1m.parquet"
        with duckdb.connect() as con:
            con.execute(
                f"copy (from read_csv({literal(DATA / 'ml-1m' / 'ratings.csv')})) to {literal(films)} (format parquet)"
            )
        compare(result, "ml-1m", films, folder, 10)
        if asked.ratings:
            made = folder / "made.parquet"
            write_parquet(made, Shape(asked.ratings))
            compare(result, f"{asked.ratings:,} made-up ratings", made, folder / "made", 10)


if __name__ == "__main__":
    main()
