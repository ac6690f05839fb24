"""Kernels are compiled once: another process finds them on disk. They need no SciPy."""

import json
import subprocess
import sys

DEFAULT_PATH = """
import json, sys
sys.modules["scipy"] = None  # as if it were not installed
import numpy as np, pyarrow as pa
from numba.core import event
from kgather.udfs import (
    als, bisection, bkg, blocks, bounded_t_means, filled, funk, gram, hashing, holdout, matrix, mdav, mdav_blocks,
    metric, preferences, refine, refine_chains, refine_near, refine_reshape, reordering, selection, vectors,
)

misses = lambda: {
    f"{module.__name__}.{name}": sum(kernel.stats.cache_misses.values())
    for module in (
        als, bisection, bkg, blocks, bounded_t_means, filled, funk, gram, hashing, holdout, matrix, mdav, mdav_blocks,
        metric, refine, refine_chains, refine_near, refine_reshape, reordering, selection, vectors,
    )
    for name, kernel in vars(module).items()
    if hasattr(kernel, "stats") and sum(kernel.stats.cache_misses.values())
}
rng = np.random.default_rng(0)
users, items = np.nonzero(rng.random((60, 40)) < 0.4)
batch = pa.record_batch({
    "user_code": pa.array(users, pa.int32()),
    "item_code": pa.array(items, pa.int32()),
    "rating": pa.array(rng.integers(1, 6, len(users)), pa.float64()),
})
ratings = matrix.RatingMatrix.from_batches([batch], 60, 40)
for solver in ("als", "funk"):
    learnt = preferences.learn(ratings, solver=solver, threads=2)
    learnt = preferences.from_table(preferences.to_table(learnt))
    users = metric.comparison_vectors(learnt)
    bounded_t_means.gather(users, 5)
    for rows in (users, filled.filled_scores(ratings, fill=3.0)):
        for method in (bkg, mdav):
            refine.refine(rows, method.gather(rows, 5), 5, threads=2)
print(json.dumps(misses()))
"""


def _run() -> dict:
    done = subprocess.run([sys.executable, "-c", DEFAULT_PATH], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_second_process_compiles_nothing() -> None:
    _run()
    assert _run() == {}
