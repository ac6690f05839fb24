"""Kernels are compiled once: another process finds them on disk. They need no SciPy."""

import json
import subprocess
import sys

DEFAULT_PATH = """
import json, sys
sys.modules["scipy"] = None  # as if it were not installed
import numpy as np, pyarrow as pa
from numba.core import event
from kgather.udfs import als, bkg, funk, gram, hashing, holdout, matrix, metric, preferences, selection

misses = lambda: {
    f"{module.__name__}.{name}": sum(kernel.stats.cache_misses.values())
    for module in (als, bkg, funk, gram, hashing, holdout, matrix, metric, selection)
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
    bkg.gather(metric.comparison_vectors(learnt), 5)
print(json.dumps(misses()))
"""


def _run() -> dict:
    done = subprocess.run([sys.executable, "-c", DEFAULT_PATH], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_second_process_compiles_nothing() -> None:
    _run()
    assert _run() == {}
