"""Kernels that are compiled: the first run on a machine compiles them, later ones find them on the disk."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import event

from kgather import _stopping as stopping
from kgather._progress import reporter
from kgather.udfs.refining import refine

_COMPILE = "from kgather._publishing import compiled_ahead; compiled_ahead.compile_all()"
_GLANCE = 0.05  # seconds between two looks at the disk
_ahead: list[subprocess.Popen[bytes]] = []


class _Compiling(event.Listener):
    """Reports each kernel that is compiled, as the step `compile`; those that come from the disk are not."""

    def __init__(self) -> None:
        self._report = reporter("compile")
        self._depth = self._compiled = 0

    def on_start(self, _: Any) -> None:
        # A kernel that another one calls is compiled within it.
        if self._depth == 0:
            self._report(self._compiled, self._compiled + 1)
        self._depth += 1

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._compiled += 1
            self._report(self._compiled, self._compiled)


@cache
def tell() -> None:
    """From now on, report what is compiled."""
    event.register("numba:compile", _Compiling())


@contextmanager
def ahead(*, wanted: bool) -> Iterator[None]:
    """Compile refining, which takes longest, and then the attackers, which come last, in a process of its own
    meanwhile, where it is wanted and not on disk.
    """
    if not wanted or not sys.executable or refine.compiled() or (os.cpu_count() or 1) < 2:
        yield
        return
    quiet = subprocess.DEVNULL
    with stopping.whole:
        # -P: what lies in the folder that the user works in is not imported.
        process = subprocess.Popen([sys.executable, "-P", "-c", _COMPILE], stdin=quiet, stdout=quiet, stderr=quiet)
        stopping.note_child(process)
    _ahead.append(process)
    try:
        yield
    finally:
        _ahead.remove(process)
        process.kill()
        process.wait()
        stopping.forget_child(process)


def wait_for_refining() -> None:
    """Wait until refining is compiled, if it is compiled ahead; the attackers need not be."""
    _wait(refine.compiled)


def wait() -> None:
    """Wait for all that is compiled ahead, if anything is."""
    _wait(lambda: False)


def _wait(enough: Callable[[], bool]) -> None:
    for process in _ahead:
        if process.poll() is None and not enough():
            report = reporter("compile")
            report(0, 1)
            while process.poll() is None and not enough():
                time.sleep(_GLANCE)
            report(1, 1)
