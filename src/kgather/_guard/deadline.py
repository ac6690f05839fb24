"""Ends what takes longer than the policy allows, or more memory, with one message that the data do not change."""

import threading
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
        self._seconds = milliseconds / 1000
        self._connections: list[duckdb.DuckDBPyConnection] = []
        self._left = threading.Event()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._wait, daemon=True, name="kgather-deadline").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()

    def check(self) -> None:
        """Raises Refused where the time is over."""
        if self._over.is_set():
            raise over_limits()

    @contextmanager
    def watching(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Let a connection be interrupted; what the engine says of data never gets out.

        Raises Refused for every error of the engine: over the limits, or else as for too few people.
        """
        self.check()
        self._connections.append(connection)
        try:
            yield
        except (duckdb.InterruptException, duckdb.OutOfMemoryException, MemoryError):
            raise over_limits() from None
        except (duckdb.Error, pa.ArrowException, ArithmeticError, ValueError, RecursionError):
            raise (over_limits() if self._over.is_set() else Refused.too_few()) from None
        finally:
            self._connections.remove(connection)
        self.check()

    def _wait(self) -> None:
        if self._left.wait(self._seconds):
            return
        self._over.set()
        while not self._left.is_set():
            for connection in tuple(self._connections):
                with suppress(duckdb.Error):
                    connection.interrupt()
            self._left.wait(_AGAIN)
