"""Tells of kernels that are compiled: the first run on a machine compiles them, later ones find them on the disk."""

from functools import cache
from typing import Any

from numba.core import event

from kgather.progress import reporter


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
