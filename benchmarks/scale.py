"""Publishing at the Netflix Prize's size: every stage against one plain statement of DuckDB over the same file.

    make bench-scale

The yardstick Y is the wall time of `select user_id % 75022 as g, item_id, avg(rating), count(*) from ratings group by
all`, counted, with two threads and 8 GB, over the same Parquet file in the same run. Ratings are made up by
make_ratings.py. The command runs in a process of its own; the memory of all its processes is watched from outside.
After the sizes come the variants at the largest: other k, methods and forms, other orders of the rows, Netflix's text.
Writes benchmarks/results/scale.{md,json}. Needs 12 GB of disk for 100 million ratings, in $KGATHER_SCRATCH or /tmp.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
from harness import Claim, Result, tree_of
from make_ratings import RATINGS, USERS, Shape, write_netflix, write_parquet
from numba import njit

from kgather._sql_text import literal
from kgather.udfs.gathering import bkg

GROUPS = 75_022
SIZES = (1_000_000, 10_000_000, RATINGS)
MEMORY = 4.0  # GB

# What belongs to a stage, by the beginnings of the names of models and tests; the first that fits counts.
_STAGES = {
    "stage and validate": (
        "load", "base_", "stg_", "int_kgather__rejected", "int_kgather__scale", "int_kgather__users",
        "int_kgather__items", "int_kgather__checked", "int_kgather__coded", "int_kgather__user_levels",
        "kgather_unique_combination_stg", "kgather_unique_combination_int_kgather__users", "rows_",
        "int_kgather__artifact", "int_kgather__sensitive",
    ),
    "preferences": ("int_kgather__factors",),
    "gather": ("int_kgather__gathered",),
    "homogenize": (
        "int_kgather__groups", "int_kgather__group_vectors", "int_kgather__item_factors", "int_kgather__preferences",
        "int_kgather__cells", "int_kgather__rated", "kgather__ratings", "kgather__groups", "kgather__members",
        "kgather__group_vectors", "kgather__item_vectors",
    ),
    "audit": ("kgather__", "kgather_", "unique_", "not_null_", "int_kgather__", "attack"),
    "write and verify": ("write",),
}  # fmt: skip

# Publishes and says, line by line, when each step was done: seconds of wall and of processor time.
_DRIVER = """
import json, sys, time
from pathlib import Path
from kgather import pipeline, publish as publishing
from kgather._loaders import LoadOptions
from kgather._progress import listening
from kgather._settings.publication import PublishSettings

source, target, options, attributes = sys.argv[1:]

def tell(step):
    print(json.dumps([step, time.perf_counter(), time.process_time()]), file=sys.stderr, flush=True)

build = pipeline.build
def heard(workspace, variables, *, verbose, on_node):
    tell("started")
    build(workspace, variables, verbose=verbose, on_node=lambda name, *_: tell(name))
    tell("started")
pipeline.build = heard
def done(step, done, total):
    if done == total and step in ("load", "attack", "write", "compile"):
        tell(step)
tell("started")
with listening(done):
    settings = PublishSettings(
        **json.loads(options), user_attributes=publishing.LOADED_ATTRIBUTES if attributes else None
    )
    publishing.publish(
        [source], Path(target), settings, LoadOptions(), force=True, report=done,
        user_attributes=publishing.AttributesSource(attributes) if attributes else None,
    )
"""


@dataclass(frozen=True)
class Variant:
    """Another way to publish the same ratings. levels: of 5, 10 or 50, one for each user."""

    name: str
    options: Mapping[str, object]
    order: Literal["user", "item", "random"] = "user"
    text: bool = False
    levels: bool = False


_LOW_RANK = {"k": 5, "cells": "low_rank"}
VARIANTS = (
    Variant("k = 10", _LOW_RANK | {"k": 10}),
    Variant("k = 50", _LOW_RANK | {"k": 50}),
    Variant("10 factors", _LOW_RANK | {"rank": 10}),
    Variant("groups not refined", _LOW_RANK | {"refine": False}),
    Variant("bounded_t_means", _LOW_RANK | {"method": "bounded_t_means"}),
    Variant("customized", _LOW_RANK | {"method": "customized", "level_column": "level"}, levels=True),
    Variant("pure, single raters dropped", {"k": 5, "homogenize": "pure", "single_rater": "drop"}),
    Variant("pure, single raters padded", {"k": 5, "homogenize": "pure"}),
    Variant("padded, the rated cells", {"k": 5, "homogenize": "padded", "cells": "rated"}),
    Variant("rows in random order", _LOW_RANK, order="random"),
    Variant("rows by item, as Netflix's text", _LOW_RANK, text=True),
)


@dataclass
class Published:
    """One run of the pipeline: seconds of wall and processor by stage, and what all its processes took."""

    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    wall: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0  # GB, the peak of the whole tree
    disk: float = 0.0  # GB, the peak of the private folder

    def of(self, stage: str) -> float:
        """Seconds of wall time of a stage."""
        return self.stages.get(stage, (0.0, 0.0))[0]


def publish(file: Path, folder: Path, options: Mapping[str, object], attributes: Path | None = None) -> Published:
    """Publish in a process of its own, watched from outside."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(file), str(folder / "release"), json.dumps(options), str(attributes or "")],
        stderr=subprocess.PIPE,
        text=True,
    )
    found = Published()
    watching = threading.Thread(target=_watch, args=(process, folder, found), daemon=True)
    watching.start()
    before: tuple[float, float] | None = None
    said = []
    assert process.stderr is not None
    for line in process.stderr:
        try:
            step, wall, cpu = json.loads(line)
        except ValueError:
            said.append(line)
            continue
        if before is not None:
            stage = _stage_of(step)
            spent = found.stages.get(stage, (0.0, 0.0))
            found.stages[stage] = (spent[0] + wall - before[0], spent[1] + cpu - before[1])
            found.cpu = cpu
        before = wall, cpu
    if process.wait():
        sys.exit("".join(said))
    watching.join()
    found.wall = time.perf_counter() - start
    return found


def _stage_of(step: str) -> str:
    if step == "compile":
        return step
    # The first model is a view: until it is there, dbt has read its project.
    if step in ("started", "kgather_loaded"):
        return "start of dbt"
    return next(stage for stage, names in _STAGES.items() if step.startswith(names))


def _watch(process: subprocess.Popen[str], folder: Path, found: Published) -> None:
    while process.poll() is None:
        found.memory = max(found.memory, sum(size for _, size in tree_of(process.pid).values()))
        found.disk = max(found.disk, _size_of(folder) / 2**30)
        time.sleep(0.05)


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(place) / name).stat().st_size
            except OSError:
                continue
    return total


def yardstick(file: Path) -> tuple[float, float]:
    """Y: seconds of wall and of processor time."""
    with duckdb.connect() as con:
        con.execute("set threads = 2; set memory_limit = '8GB'; set enable_progress_bar = false")
        con.execute(f"set temp_directory = {literal(file.parent / 'yardstick')}")
        wall, cpu = time.perf_counter(), time.process_time()
        con.sql(
            f"""
            select count(*)
            from (select user_id % {GROUPS} as g, item_id, avg(rating), count(*) from {literal(file)} group by all)
            """
        ).fetchall()
        return time.perf_counter() - wall, time.process_time() - cpu


@njit(nogil=True, cache=True)
def _triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    for i in range(len(a)):
        a[i] = b[i] + np.float32(3.0) * c[i]


def bandwidth() -> float:
    """GB/s of a + 3 b over arrays far larger than the caches, one thread, the best of five."""
    a, b, c = (np.ones(1 << 26, np.float32) for _ in range(3))
    best = 0.0
    for _ in range(6):
        start = time.perf_counter()
        _triad(a, b, c)
        best = max(best, 3 * a.nbytes / (time.perf_counter() - start) / 1e9)
    return best


def measure(size: int, folder: Path, result: Result, k: int) -> Published:
    """One size: generator, yardstick before and after, and the pipeline between them."""
    file = folder / "ratings.parquet"
    start = time.perf_counter()
    write_parquet(file, Shape(ratings=size))
    made = time.perf_counter() - start
    first = yardstick(file)
    # At small sizes all cells would be written, which is another task: the same form at all sizes.
    run = publish(file, folder, {"k": k, "cells": "low_rank"})
    y = sum(yard[0] for yard in (first, yardstick(file))) / 2
    at = f"{size / 1e6:.0f} M, k = {k}"
    y_said = f"Y: {y:.2f} s"

    def claim(what: str, seconds: float, most: float, notes: str = "") -> None:
        ratio = seconds / y
        judged = size == RATINGS and math.isfinite(most)
        goal = f"at most {most:g} Y" if judged else "no goal"
        reached = ratio <= most or not judged
        result.add(Claim(f"{what}, {at}", f"{seconds:.1f} s", y_said, ratio, goal, reached, notes))

    cpu = {stage: f"{spent:.1f} CPU s" for stage, (_, spent) in run.stages.items()}
    claim("make the ratings", made, math.inf)
    for stage, most in (
        ("stage and validate", 2), ("preferences", 1), ("gather", math.inf), ("homogenize", 1.5), ("audit", 1),
        ("write and verify", 1), ("start of dbt", math.inf),
    ):  # fmt: skip
        claim(stage, run.of(stage), most, cpu.get(stage, ""))
    claim("all of publish", run.wall, 6, f"{run.cpu:.1f} CPU s, {run.disk:.2f} GB of disk")
    kernels = run.of("preferences") + run.of("gather")
    result.add(
        Claim(
            f"all of publish against its kernels, {at}", f"{run.wall:.1f} s", f"kernels: {kernels:.1f} s",
            run.wall / kernels, "at most 3 times" if size == RATINGS else "no goal",
            run.wall <= 3 * kernels or size != RATINGS,
        )
    )  # fmt: skip
    result.add(
        Claim(
            f"peak memory of all processes, {at}", f"{run.memory:.2f} GB", f"{MEMORY:g} GB", run.memory / MEMORY,
            f"at most {MEMORY:g} GB", run.memory <= MEMORY,
        )
    )  # fmt: skip
    stream = size * 8 / bandwidth() / 1e9
    result.add(
        Claim(
            f"preferences against the memory's bandwidth, {at}", f"{run.of('preferences'):.1f} s",
            f"reading 8 bytes a rating once: {stream:.3f} s", run.of("preferences") / stream, "none: said for scale",
            True,
        )
    )  # fmt: skip
    if size == RATINGS:
        measure_kernel(result, y)
    file.unlink()
    return run


def measure_variants(size: int, folder: Path, result: Result) -> None:
    """The variants one after the other, over files that are made when they are first asked for."""
    files: dict[tuple[str, bool], Path] = {}
    y = 0.0
    for variant in VARIANTS:
        kind = variant.order, variant.text
        if kind not in files:
            for old in files.values():
                old.unlink()
            files = {kind: folder / ("ratings.txt" if variant.text else "ratings.parquet")}
            write = write_netflix if variant.text else write_parquet
            write(files[kind], Shape(ratings=size, order=variant.order))
        if not y:
            y = yardstick(files[kind])[0]
        run = publish(files[kind], folder, variant.options, _levels(folder, size) if variant.levels else None)
        stages = ", ".join(
            f"{stage} {run.of(stage):.1f}"
            for stage in ("stage and validate", "preferences", "gather", "homogenize", "audit", "write and verify")
        )
        result.add(
            Claim(
                f"all of publish, {size / 1e6:.0f} M, {variant.name}", f"{run.wall:.1f} s", f"Y: {y:.2f} s",
                run.wall / y,
                f"none of time; at most {2 * MEMORY:g} GB", run.memory <= 2 * MEMORY,
                f"{run.cpu:.0f} CPU s, {run.memory:.2f} GB, {run.disk:.2f} GB of disk; {stages}",
            )
        )  # fmt: skip


def _levels(folder: Path, size: int) -> Path:
    file = folder / "levels.parquet"
    with duckdb.connect() as con:
        con.execute(
            f"""
            copy (
              select user_id, [5, 5, 5, 10, 10, 50][1 + user_id % 6] as level
              from range({Shape(ratings=size).n_users + 1}) as users (user_id)
            ) to {literal(file)}
            """
        )
    return file


def measure_kernel(result: Result, y: float) -> None:
    """BKG by itself, where the pipeline also reads preferences, refines groups and draws ids."""
    vectors = np.random.default_rng(0).normal(size=(USERS, 10))
    bkg.gather(vectors[:1000], 5, tries=10, seed=0)
    times = []
    for seed in range(3):
        start = time.perf_counter()
        bkg.gather(vectors, 5, tries=10, seed=seed)
        times.append(time.perf_counter() - start)
    taken = sorted(times)[1]
    result.add(
        Claim(
            "BKG alone, 480,189 x 10, k = 5, 10 tries", f"{taken:.2f} s", f"Y: {y:.2f} s", taken / y, "at most 0.1 Y",
            taken <= 0.1 * y, f"median of {', '.join(f'{one:.2f}' for one in times)} s, one thread",
        )
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(str(size) for size in SIZES), help="ratings, ascending")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--variants", action=argparse.BooleanOptionalAction, default=True, help="at the largest size")
    given = parser.parse_args()
    sizes = [int(float(size)) for size in given.sizes.split(",")]
    result = Result("scale")
    with tempfile.TemporaryDirectory(dir=os.environ.get("KGATHER_SCRATCH"), prefix="kgather-scale-") as scratch:
        runs = [measure(size, Path(scratch), result, given.k) for size in sizes]
        if given.variants:
            measure_variants(sizes[-1], Path(scratch), result)
    for (small, one), (large, other) in zip(
        zip(sizes, runs, strict=True), list(zip(sizes, runs, strict=True))[1:], strict=False
    ):
        times, slope = other.wall / one.wall, math.log(other.wall / one.wall) / math.log(large / small)
        result.add(
            Claim(
                f"from {small / 1e6:.0f} M to {large / 1e6:.0f} M", f"{other.wall:.1f} s", f"{one.wall:.1f} s", times,
                "at most 12 times", times <= 12, f"slope {slope:.2f} (log-log)",
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
