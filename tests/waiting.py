"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

_PATIENCE = 120  # seconds: no bound of what is tested, but an end for what never comes


def until(holds: Callable[[], object]) -> None:
    """Look again and again, until it holds."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "this never came"
        time.sleep(0.01)


def no_error(run: Callable[[], object], kind: type[Exception]) -> bool:
    """Whether it runs without an error of this kind."""
    try:
        run()
    except kind:
        return False
    return True
