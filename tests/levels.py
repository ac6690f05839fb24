"""Which run a test belongs to.

- fast: computes in this process. `make test-fast` runs these alone.
- slow: publishes or starts a process, which costs seconds. `make test` runs these, too.
- long: needs clients of others, an installation of its own, many ledgers, real ratings, load or a fuzzer, stops or
  kills what runs, or publishes again and again to compare all forms. `make test-long` runs these.

No long test begins after the moment KGATHER_LONG_TESTS_UNTIL, in seconds since 1970: it is skipped, which is told. So
the checks end in time on a slow machine, too.

Whoever asks for one of the fixtures below is slow or long without saying so. Others say so by a mark. A test without
one that publishes or starts a process is stopped, whichever run it is in: what is called fast stays fast.
"""

import os
import sys
import time
from unittest.mock import patch

import numpy.testing  # noqa: F401 - asks a process about the processor, in old versions, when it is first imported
import pytest

OF_LEVEL = {
    "slow": frozenset({"publish_to", "publish_anew", "start", "secure"}),
    "long": frozenset({"data_dir", "wheel", "site", "shop", "checkout"}),
}
_PROCESSES = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "os.exec"})
_ADVICE = "Mark it with pytest.mark.slow, or test the same without."


class NotFastError(AssertionError):
    """A test that is called fast did what is not."""


class _Watch:
    """What the audit hook looks at: Python takes no hook away again."""

    on = False


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if not _Watch.on:
        return
    if event in _PROCESSES:
        msg = f"a test that is called fast starts a process. {_ADVICE}"
        raise NotFastError(msg)
    if event == "import" and arguments[0] == "dbt.cli.main":
        _refuse_dbt()


def _refuse_dbt(*_: object, **__: object) -> None:
    msg = f"a test that is called fast runs dbt. {_ADVICE}"
    raise NotFastError(msg)


sys.addaudithook(_hear)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for level, fixtures in OF_LEVEL.items():
            if fixtures.intersection(getattr(item, "fixturenames", ())):
                item.add_marker(level)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and time.time() > float(os.environ.get("KGATHER_LONG_TESTS_UNTIL", "inf")):
        pytest.skip(f"no time is left for {item.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    if item.get_closest_marker("slow") or item.get_closest_marker("long"):
        return (yield)
    dbt = sys.modules.get("dbt.cli.main")
    _Watch.on = True
    try:
        if dbt is None:
            return (yield)
        with patch.object(dbt.dbtRunner, "invoke", _refuse_dbt):
            return (yield)
    finally:
        _Watch.on = False
