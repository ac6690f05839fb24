"""The guard's noise in tests: seeded by the test that draws it, so that no run fails by chance.

Noise of a small budget hides few people once in a while, and the randomness of the operating system takes no seed. A
guard that a test opens in its own process draws from a generator instead, which begins anew for each test and for each
fixture. A process that a test starts, and a test that calls `discrete_gaussian` itself, have the real noise.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kgather._guard.guard import Guard
from kgather._guard.measured.engine import MeasuredEngine
from kgather._guard.measured.noise import discrete_gaussian


class _Seeded:
    """Noise, int64[n], of a standard deviation: a normal variable rounded to whole numbers."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, name: str) -> None:
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, count: int, sd: float) -> NDArray[np.int64]:
        return np.rint(self._random.normal(size=count) * sd).astype(np.int64)


_NOISE = _Seeded()


def _replace(make: Any, noise: Any) -> Any:
    """Let what `make` builds draw `noise` where its caller names none. Returns what it drew before."""
    if "noise" in (make.__kwdefaults__ or {}):
        before = make.__kwdefaults__["noise"]
        make.__kwdefaults__["noise"] = noise
        return before
    [before] = make.__defaults__
    make.__defaults__ = (noise,)
    return before


@pytest.fixture(autouse=True, scope="session")
def noise_by_test() -> Iterator[None]:
    makers = [Guard.__init__, MeasuredEngine.__init__]
    assert [_replace(make, _NOISE) for make in makers] == [discrete_gaussian, discrete_gaussian]
    yield
    for make in makers:
        _replace(make, discrete_gaussian)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> None:
    _NOISE.begin(f"{request.node.nodeid}::{fixturedef.argname}::{request.param_index}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _NOISE.begin(item.nodeid)
