"""How many numbers kernels look at, counted by the kernels themselves: the same on every machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Looked:
    """How many numbers were looked at, a number as often as it was: all in all, and for those left over at the end."""

    at: int = 0
    at_leftovers: int = 0


_COUNTING: ContextVar[Looked | None] = ContextVar("kgather_counting", default=None)


@contextmanager
def counted() -> Iterator[Looked]:
    """Count what kernels look at that are called within, in this thread; one that does not count adds nothing."""
    looked = Looked()
    before = _COUNTING.set(looked)
    try:
        yield looked
    finally:
        _COUNTING.reset(before)


def count(at: int, leftovers: int = 0) -> None:
    """Add to what is counted, if anybody counts. at: all numbers looked at; leftovers: those among them of the end."""
    looked = _COUNTING.get()
    if looked is not None:
        looked.at += at
        looked.at_leftovers += leftovers
