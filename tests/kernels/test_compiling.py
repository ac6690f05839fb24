"""Kernels are compiled once: another process finds them on disk. They need no SciPy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgather._errors import InputError
from kgather._progress import listening
from kgather._steps import compiling
from kgather.udfs.refining import refine

NO_SCIPY = """
import sys
sys.modules["scipy"] = None  # as if it were not installed
"""

MADE_UP = """
import numpy as np, pyarrow as pa
from kgather.udfs.ratings import matrix

rng = np.random.default_rng(0)
users, items = np.nonzero(rng.random((60, 40)) < 0.4)
batch = pa.record_batch({
    "user_code": pa.array(users, pa.int32()),
    "item_code": pa.array(items, pa.int32()),
    "rating": pa.array(rng.integers(1, 6, len(users)), pa.float64()),
})
ratings = matrix.RatingMatrix.from_batches([batch], 60, 40)
"""

DEFAULT_PATH = """
import json
from numba.core import event
from kgather.udfs._shared import hashing, reordering, selection, vectors
from kgather.udfs.gathering import _bisection, _mdav_blocks, bkg, blocks, bounded_t_means, mdav
from kgather.udfs.preferences import _gram, als, filled, funk, learning, metric, model
from kgather.udfs.ratings import _held_out, matrix
from kgather.udfs.refining import _chains, _near, _reshape, refine

misses = lambda: {
    f"{module.__name__}.{name}": sum(kernel.stats.cache_misses.values())
    for module in (
        als, _bisection, bkg, blocks, bounded_t_means, filled, funk, _gram, hashing, _held_out, matrix, mdav,
        _mdav_blocks, metric, refine, _chains, _near, _reshape, reordering, selection, vectors,
    )
    for name, kernel in vars(module).items()
    if hasattr(kernel, "stats") and sum(kernel.stats.cache_misses.values())
}
for solver in ("als", "funk"):
    learnt = learning.learn(ratings, solver=solver, threads=2)
    learnt = model.from_table(model.to_table(learnt))
    users = metric.comparison_vectors(learnt)
    bounded_t_means.gather(users, 5)
    for rows in (users, filled.filled_scores(ratings, fill=3.0)):
        for method in (bkg, mdav):
            refine.refine(rows, method.gather(rows, 5), 5, threads=2)
print(json.dumps(misses()))
"""


def _run() -> dict:
    done = subprocess.run(
        [sys.executable, "-c", NO_SCIPY + MADE_UP + DEFAULT_PATH], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_second_process_compiles_nothing() -> None:
    _run()
    assert _run() == {}


AHEAD = """
from kgather.udfs.gathering import bkg
from kgather.udfs.preferences import learning, metric, model
from kgather.udfs.refining import refine

refine.compile_all()
assert refine.compiled()
kernels = [value for value in vars(refine).values() if hasattr(value, "signatures")]
known = [len(kernel.signatures) for kernel in kernels]
learnt = learning.learn(ratings, threads=2)
learnt = model.from_table(model.to_table(learnt))
rows = metric.comparison_vectors(learnt, "prediction")
refine.refine(rows, bkg.gather(rows, 5), np.full(60, 5, np.int32), threads=2)
assert [len(kernel.signatures) for kernel in kernels] == known, "gathering calls them with other types"
"""


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_gathering_calls() -> None:
    subprocess.run([sys.executable, "-c", MADE_UP + AHEAD], check=True)


@pytest.fixture
def never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refine, "compiled", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.slow
@pytest.mark.usefixtures("never_compiled")
def test_what_is_compiled_ahead_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = tmp_path / "done"
    monkeypatch.setattr(
        compiling, "_COMPILE", f"import time, pathlib; time.sleep(1); pathlib.Path({str(done)!r}).touch()"
    )
    heard = []
    with compiling.ahead(wanted=True):
        assert not done.exists()
        with listening(lambda *progress: heard.append(progress)):
            compiling.wait()
        assert done.exists()
    assert heard[-1] == ("compile", 1, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("never_compiled")
def test_what_is_compiled_ahead_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_COMPILE", "import time; time.sleep(600)")
    started = []

    def refused() -> None:
        with compiling.ahead(wanted=True):
            started.extend(compiling._ahead)
            msg = "no input"
            raise InputError(msg)

    with pytest.raises(InputError):
        refused()
    [process] = started
    assert process.poll() is not None
    assert compiling._ahead == []


def test_nothing_is_compiled_ahead_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refine, "compiled", lambda: True)
    with compiling.ahead(wanted=True):
        assert compiling._ahead == []
    monkeypatch.setattr(refine, "compiled", lambda: False)
    with compiling.ahead(wanted=False):
        assert compiling._ahead == []
        compiling.wait()
