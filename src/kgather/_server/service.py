"""What both wires call: queries in a bounded pool of threads, with limits, timeouts and one text a kind of failure.

What a client is told is decided once. A query that its client cancelled or that took too long is told so whatever the
guard finds later; the guard's own decision is finished in any case, and what it recorded stays recorded.
"""

import asyncio
import logging
import secrets
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from kgather._errors import InputError, KgatherError
from kgather._guard.guard import Answer, Guard, Parameters
from kgather._guard.measured.measuring import DataChanged
from kgather._guard.refused import Refused
from kgather._server.full_disk import is_disk_full
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry

Kind = Literal["busy", "timeout", "cancelled", "shutting_down", "revoked", "changed", "disk_full"]

_TOLD: dict[Kind, tuple[str, str]] = {
    "busy": ("53000", "Too many queries are running or waiting. Ask again when some are done."),
    "timeout": ("57014", "The query took longer than the statement timeout."),
    "cancelled": ("57014", "The query was cancelled."),
    "shutting_down": ("57P01", "The server is shutting down."),
    "revoked": ("28000", "This user may no longer ask."),
    "changed": (
        "55000",
        "The data were changed since the guard began with them. What was measured before is still answered; for "
        "anything new, the owner begins the next version of the data.",
    ),
    "disk_full": (
        "53100",
        "The disk of the server is full: it cannot write down what it would answer, so it does not answer. Ask again "
        "when its operator has made room.",
    ),
}

_log = logging.getLogger("kgather._server")


class Unavailable(KgatherError):  # noqa: N818 - a fact about the server, not about the query
    """No answer, for a reason that has nothing to do with the data. code: as SQLSTATE. The text is fixed by `kind`."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.code, self.reason = _TOLD[kind]
        super().__init__(self.reason)


class Internal(KgatherError):  # noqa: N818
    """Something unforeseen; the log of the server has it under the number of the incident."""

    code = "XX000"

    def __init__(self, incident: str) -> None:
        self.incident = incident
        self.reason = f"The server could not answer. Its operator finds out why in the log, by the number {incident}."
        super().__init__(self.reason)


class Cancel:
    """Cancels one query, from any thread, before or while it runs; afterwards it does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._end: Callable[[], None] | None = None

    def cancel(self) -> None:
        """End the query: its client is told so, whatever the guard finds."""
        with self._lock:
            self._cancelled, end = True, self._end
        if end is not None:
            end()

    def ending(self, end: Callable[[], None]) -> None:
        """Call `end` when this is cancelled, at once if it was already."""
        with self._lock:
            self._end, cancelled = end, self._cancelled
        if cancelled:
            end()


@dataclass(frozen=True)
class _Task:
    """Work for a principal. told: what the client is told; pool: None for the guard's own."""

    principal: str
    work: Callable[[], Any]
    told: Future[Any]
    pool: Executor | None


class Service:
    """A guard for many clients. Safe to share among threads."""

    def __init__(self, guard: Guard, settings: ServerSettings, telemetry: Telemetry) -> None:
        self.guard = guard
        self.settings = settings
        self.telemetry = telemetry
        self._pool = ThreadPoolExecutor(settings.queries_at_once, thread_name_prefix="kgather-query")
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        self._queued = 0
        """How many of them are for the guard."""
        self._lines: dict[str, deque[_Task]] = {}
        """Of each principal, what goes on beside the guard: the first runs."""
        self._open: set[Future[Any]] = set()
        self._idle = threading.Condition(self._lock)
        self._draining = False
        self._permitted: Collection[str] | None = None

    async def ask(
        self,
        principal: str,
        sql: str,
        parameters: Parameters = (),
        *,
        cancel: Cancel | None = None,
        timeout_ms: int | None = None,
        client: str | None = None,
    ) -> Answer:
        """Answer a query. timeout_ms: what the client wants; the server's own timeout holds where it is shorter.
        client: its address, for the audit log.

        Raises Refused, Unavailable or Internal, and nothing else.
        """
        return await self._awaited(self.start(principal, sql, parameters, cancel=cancel, client=client), timeout_ms)

    async def beside(
        self,
        principal: str,
        work: Callable[[Callable[[], bool]], Any],
        pool: Executor,
        *,
        cancel: Cancel | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Do something for a principal that is no query of the guard, in another pool: one thing after the other, so
        that no principal has all of its threads. It counts as a query of the principal. work: is given a function that
        says whether nobody waits any more; timeout_ms: as for `ask`.

        Raises Unavailable or Internal, and nothing else.
        """
        ended = threading.Event()
        told = self._start(principal, lambda: work(ended.is_set), cancel, counted=False, pool=pool)
        told.add_done_callback(lambda _: ended.set())
        return await self._awaited(told, timeout_ms)

    async def describe(
        self, principal: str, sql: str, parameters: Parameters = (), *, labels: bool = False
    ) -> pa.Schema:
        """Names and types of a result, without data. parameters: values, or what stands for them, as for the guard.
        labels: with the names that PostgreSQL gives.

        Raises as `ask`.
        """
        return await self._awaited(self._describing(principal, sql, parameters, labels=labels), None)

    def start(
        self,
        principal: str,
        sql: str,
        parameters: Parameters = (),
        *,
        cancel: Cancel | None = None,
        client: str | None = None,
    ) -> Future[Any]:
        """Begin a query; the future holds the Answer, or Refused, Unavailable or Internal.

        Raises Unavailable where there is no room or the server is shutting down.
        """
        return self._start(
            principal,
            lambda: self.guard.answer(sql, principal=principal, parameters=parameters, client=client),
            cancel,
        )

    def wait(self, told: Future[Any], *, gone: Callable[[], bool] = lambda: False) -> Any:
        """Wait for what `start` began, in a thread. gone: whether the client has left, asked now and then.

        Raises as `ask`.
        """
        timeout = self._timeout(None)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            with suppress(TimeoutError):
                return told.result(_GLANCE if until is None else max(min(_GLANCE, until - time.monotonic()), 0))
            if gone():
                self._tell(told, Unavailable("cancelled"))
            elif until is not None and time.monotonic() >= until:
                self._tell(told, Unavailable("timeout"))

    def describe_now(self, principal: str, sql: str, parameters: Parameters = ()) -> pa.Schema:
        """As `describe`, in a thread."""
        return self.wait(self._describing(principal, sql, parameters))

    def permit(self, principals: Collection[str] | None) -> None:
        """Answer these only, from now on; None: all that the policy names."""
        self._permitted = principals

    def running(self) -> int:
        """How many queries run or wait for their turn."""
        with self._lock:
            return sum(self._busy.values())

    def takes_queries(self) -> bool:
        """Whether queries are taken: not any more once the server is shutting down."""
        return not self._draining

    def drain(self) -> None:
        """Take no more queries; those that run are finished."""
        self._draining = True

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until every client was told what there is to tell; False where that takes longer."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._open, seconds)

    def end(self) -> None:
        """Tell all who still wait that the server is shutting down."""
        self.drain()
        with self._lock:
            left = list(self._open)
        for told in left:
            self._tell(told, Unavailable("shutting_down"))
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _describing(self, principal: str, sql: str, parameters: Parameters, *, labels: bool = False) -> Future[Any]:
        return self._start(
            principal,
            lambda: self.guard.describe(sql, parameters, principal=principal, labels=labels),
            None,
            counted=False,
        )

    async def _awaited(self, told: Future[Any], timeout_ms: int | None) -> Any:
        waiting = asyncio.wrap_future(told)
        # What nobody waits for any more is not to be warned of.
        waiting.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            done, _ = await asyncio.wait({waiting}, timeout=self._timeout(timeout_ms))
            if not done:
                self._tell(told, Unavailable("timeout"))
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._tell(told, Unavailable("cancelled"))
            raise

    def _timeout(self, wanted_ms: int | None) -> float | None:
        """Seconds, the shortest of what the client wants and what the server allows."""
        limits = [ms for ms in (wanted_ms, self.settings.statement_timeout_ms) if ms]
        return min(limits) / 1000 if limits else None

    def _start(
        self,
        principal: str,
        work: Callable[[], Any],
        cancel: Cancel | None,
        *,
        counted: bool = True,
        pool: Executor | None = None,
    ) -> Future[Any]:
        told: Future[Any] = Future()
        with self._lock:
            if self._draining:
                raise self._counted(Unavailable("shutting_down"))
            if self._permitted is not None and principal not in self._permitted:
                raise self._counted(Unavailable("revoked"))
            most = self.settings.queries_at_once + self.settings.queries_waiting
            full = pool is None and self._queued >= most
            if full or self._busy[principal] >= self.settings.queries_per_principal:
                raise self._counted(Unavailable("busy"))
            self._busy[principal] += 1
            self._queued += pool is None
            self._open.add(told)
        self.telemetry.running(+1)
        told.add_done_callback(self._closed)
        started = time.perf_counter()
        if counted:
            told.add_done_callback(
                lambda future: self.telemetry.told(future.exception(), time.perf_counter() - started)
            )
        if cancel is not None:
            cancel.ending(lambda: self._tell(told, Unavailable("cancelled")))
        task = _Task(principal, work, told, pool)
        if pool is not None:
            with self._lock:
                line = self._lines.setdefault(principal, deque())
                line.append(task)
                waits = len(line) > 1
            if waits:
                return told
        self._submit(task)
        return told

    def _submit(self, task: "_Task") -> None:
        try:
            (task.pool or self._pool).submit(self._work, task).add_done_callback(
                lambda run: self._left(task) if run.cancelled() else None
            )
        except RuntimeError:  # the pool was shut down meanwhile
            self._left(task)
            self._tell(task.told, Unavailable("shutting_down"))

    def _work(self, task: "_Task") -> None:
        told = task.told
        try:
            if told.done():
                return
            self._tell(told, task.work())
        except Refused as refusal:
            self._tell(told, refusal)
        except DataChanged:
            _log.warning("the data were changed: kgather ledger next begins their next version")
            self._tell(told, Unavailable("changed"))
        except BaseException as error:
            incident = self._incident(error)
            full = is_disk_full(error, lambda: self.guard.policy.ledger.parent)
            self._tell(told, Unavailable("disk_full") if full else incident)
        finally:
            self._left(task)

    def _counted(self, refusal: Unavailable) -> Unavailable:
        self.telemetry.told(refusal, 0.0)
        return refusal

    def _incident(self, error: BaseException) -> Internal:
        """Log an error: what is meant for people in full, of anything else the kind and the place, never its text."""
        incident = secrets.token_hex(4)
        frames = traceback.extract_tb(error.__traceback__)
        _log.error(
            "a query failed",
            extra={
                "incident": incident,
                "error": type(error).__name__,
                "told": str(error) if isinstance(error, InputError) else None,
                "where": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
            },
        )
        return Internal(incident)

    def _tell(self, told: Future[Any], what: Any) -> None:
        """Tell a client what there is; whoever comes second tells nothing."""
        with suppress(InvalidStateError):
            if isinstance(what, BaseException):
                told.set_exception(what)
            else:
                told.set_result(what)

    def _closed(self, told: Future[Any]) -> None:
        with self._idle:
            self._open.discard(told)
            self._idle.notify_all()

    def _left(self, task: "_Task") -> None:
        following = None
        with self._lock:
            self._busy[task.principal] -= 1
            if not self._busy[task.principal]:
                del self._busy[task.principal]
            if task.pool is None:
                self._queued -= 1
            else:
                line = self._lines[task.principal]
                line.popleft()
                if line:
                    following = line[0]
                else:
                    del self._lines[task.principal]
        self.telemetry.running(-1)
        if following is not None:
            self._submit(following)


_GLANCE = 0.25  # seconds between two looks at whether a client is still there
