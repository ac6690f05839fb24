"""Ends what takes longer than the policy allows, or more memory, with one message that the data do not change."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import duckdb
import pyarrow as pa

from kgather._guard.refused import TOO_COMPLEX, Refused, Rule

LIMITS_MESSAGE = "The query took more time or memory than the policy allows. Ask for less at once."

_AGAIN = 0.02  # seconds between two interrupts: one that falls between two statements is lost


def over_limits() -> Refused:
    """The refusal of what takes too much, always the same."""
    return Refused(LIMITS_MESSAGE, code=TOO_COMPLEX, rule=Rule.LIMITS, static=False)


class Deadline:
    """Interrupts connections from `milliseconds` after it was entered until it is left."""

    def __init__(self, milliseconds: int) -> None:
        self.ends = 0.0
        self.over = False
        self._seconds = milliseconds / 1000
        self._connections: list[duckdb.DuckDBPyConnection] = []

    def __enter__(self) -> Self:
        self.ends = time.monotonic() + self._seconds
        return self

    def __exit__(self, *_: object) -> None:
        _WATCH.leave(self)

    def check(self) -> None:
        """Raises Refused where the time is over."""
        if self.over or time.monotonic() > self.ends:
            self.over = True
            raise over_limits()

    @contextmanager
    def watching(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Let a connection be interrupted; what the engine says of data never gets out.

        Raises Refused for every error of the engine: over the limits, or else as for too few people.
        """
        self.check()
        self._connections.append(connection)
        _WATCH.keep(self)
        try:
            yield
        except (duckdb.InterruptException, duckdb.OutOfMemoryException, MemoryError):
            raise over_limits() from None
        except (duckdb.Error, pa.ArrowException, ArithmeticError, ValueError, RecursionError):
            raise (over_limits() if self.over else Refused.too_few()) from None
        finally:
            self._connections.remove(connection)
        self.check()

    def interrupt(self) -> None:
        """Say that the time is over, and interrupt what runs."""
        self.over = True
        for connection in tuple(self._connections):
            with suppress(duckdb.Error):
                connection.interrupt()


class _Watch:
    """One thread that interrupts what is over its deadline: most of the time there is nothing to interrupt."""

    def __init__(self) -> None:
        self._kept: set[Deadline] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._until = math.inf
        """When the thread looks again by itself, on the clock of deadlines."""

    def keep(self, deadline: Deadline) -> None:
        with self._changed:
            self._kept.add(deadline)
            if self._thread is None or not self._thread.is_alive():  # a process that was forked has no thread yet
                self._until = math.inf
                self._thread = threading.Thread(target=self._run, daemon=True, name="kgather-deadline")
                self._thread.start()
            elif deadline.ends < self._until:
                self._changed.notify()

    def leave(self, deadline: Deadline) -> None:
        """Once this returns, none of its connections is interrupted any more: others may use them."""
        with self._changed:
            self._kept.discard(deadline)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                over = [deadline for deadline in self._kept if deadline.ends <= now]
                for deadline in over:
                    deadline.interrupt()
                self._until = now + _AGAIN if over else min((one.ends for one in self._kept), default=math.inf)
                self._changed.wait(None if math.isinf(self._until) else self._until - now)


_WATCH = _Watch()
