"""How far the work is: kernels report here, and whoever runs them may listen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Listener(Protocol):
    """Called with the name of a step, how much of it is done and how much there is."""

    def __call__(self, step: str, done: int, total: int, /) -> None: ...


# The pipeline's steps run on threads that dbt starts, so this is the process's, not the context's.
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of every step's progress within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def reporter(step: str) -> Callable[[int, int], None]:
    """Return the function by which a kernel reports `(done, total)` of this step."""

    def report(done: int, total: int) -> None:
        for listener in _listeners:
            listener(step, done, total)

    return report
