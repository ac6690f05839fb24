"""What operators see: logs as JSON lines, and metrics for Prometheus. No answers, no statements, no values, no names.

Metrics count what clients were *told*: a query that was cancelled counts as cancelled whatever the guard found later,
so that nobody who sees the metrics learns more than the client did.
"""

import json
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kgather._errors import InputError
from kgather._guard.refused import Refused
from kgather._version import __version__

if TYPE_CHECKING:
    from kgather._guard.guard import Spending

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SCRAPES_AT_ONCE = 8
_PATIENCE = 5.0  # seconds for a request for metrics to arrive
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

log = logging.getLogger("kgather._server")

disable_created_metrics()  # type: ignore[no-untyped-call]


class Telemetry:
    """Counts for one server. Safe to share among threads."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        Gauge("kgather_info", "Version of kgather.", ["version"], registry=registry).labels(__version__).set(1)
        self._queries = Counter("kgather_queries", "Queries, by what was told.", ["outcome"], registry=registry)
        self._refusals = Counter("kgather_refusals", "Refused queries, by the rule.", ["rule"], registry=registry)
        self._seconds = Histogram(
            "kgather_query_seconds",
            "Seconds from a query's arrival until its client is told something, whatever that is.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._running = Gauge("kgather_queries_running", "Queries that run or wait for a turn.", registry=registry)
        self._connections = Gauge("kgather_connections", "Open connections.", ["wire"], registry=registry)
        self._turned_away = Counter(
            "kgather_connections_refused", "Connections turned away, by why.", ["wire", "reason"], registry=registry
        )
        self._logins = Counter("kgather_logins", "Logins, by how they ended.", ["wire", "outcome"], registry=registry)

    def told(self, error: BaseException | None, seconds: float) -> None:
        """Count a query: answered, or what its client was told instead."""
        if error is None:
            outcome = "answered"
        elif isinstance(error, Refused):
            outcome = "refused"
            self._refusals.labels(str(error.rule)).inc()
        else:
            outcome = getattr(error, "kind", "failed")
        self._queries.labels(outcome).inc()
        self._seconds.observe(seconds)

    def running(self, change: int) -> None:
        """Count queries that run or wait."""
        self._running.inc(change)

    def connected(self, wire: str, change: int) -> None:
        """Count open connections: +1 or -1."""
        self._connections.labels(wire).inc(change)

    def turned_away(self, wire: str, reason: str) -> None:
        """Count a connection that was not let in. reason: one of few words of our own."""
        self._turned_away.labels(wire, reason).inc()

    def login(self, wire: str, ok: bool) -> None:
        """Count a login."""
        self._logins.labels(wire, "ok" if ok else "failed").inc()

    def watch_atoms(self, atoms: Callable[[], Mapping[str, int]]) -> None:
        """Show how many atoms there are, asked for at each scrape."""
        self.registry.register(_Atoms(atoms))

    def watch_budget(self, spending: "Callable[[], Spending | None]") -> None:
        """Show what was spent of the budget, asked for at each scrape; nothing where it cannot be read."""
        self.registry.register(_Budget(spending))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class _Atoms(Collector):
    def __init__(self, atoms: Callable[[], Mapping[str, int]]) -> None:
        self._atoms = atoms

    def collect(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily("kgather_atoms", "Parts that people or rows are split into.", labels=["universe"])
        for universe, number in self._atoms().items():
            family.add_metric([universe], number)
        return [family]


class _Budget(Collector):
    def __init__(self, spending: "Callable[[], Spending | None]") -> None:
        self._spending = spending

    def collect(self) -> list[GaugeMetricFamily]:
        try:
            found = self._spending()
        except InputError as error:
            log.error("the budget cannot be read", extra={"told": str(error)})
            found = None
        if found is None:
            return []
        rho = "rho of zero-concentrated differential privacy"
        spent, total = f"What all measurements cost, as {rho}.", f"What they may cost in all, as {rho}."
        measurements = GaugeMetricFamily("kgather_measurements", "Measurements in the ledger.", found.measurements)
        if not found.kinds:
            return [
                GaugeMetricFamily("kgather_budget_spent_rho", spent, found.spent),
                GaugeMetricFamily("kgather_budget_total_rho", total, found.total),
                measurements,
            ]
        # People of each kind have a budget of their own: a sum would hide that one of them is spent.
        of_spent = GaugeMetricFamily("kgather_budget_spent_rho", spent, labels=["people"])
        of_total = GaugeMetricFamily("kgather_budget_total_rho", total, labels=["people"])
        for kind, one in found.kinds.items():
            of_spent.add_metric([kind], one.spent)
            of_total.add_metric([kind], one.total)
        return [of_spent, of_total, measurements]


class MetricsServer(ThreadingHTTPServer):
    """/metrics, /healthz and /readyz over HTTP, or HTTPS where `tls` is given. ready: what works of all that answers
    need, by its name."""

    daemon_threads = True

    def __init__(
        self,
        host: str,
        port: int,
        telemetry: Telemetry,
        ready: Callable[[], Mapping[str, bool]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.telemetry = telemetry
        self.ready = ready
        self._tls = tls
        self._room = threading.BoundedSemaphore(_SCRAPES_AT_ONCE)
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            msg = f"The metrics cannot listen on {host}:{port}: {error.strerror}. Choose another --metrics-port."
            raise InputError(msg) from None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Serve in a thread."""
        threading.Thread(target=self.serve_forever, daemon=True, name="kgather-metrics").start()

    def stop(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        return self._room.acquire(blocking=False)

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            request.settimeout(_PATIENCE)
            if self._tls is None:
                super().finish_request(request, client_address)
            else:
                with self._tls.wrap_socket(request, server_side=True) as wrapped:
                    super().finish_request(wrapped, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asks badly hears nothing, and a scrape that breaks off is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    timeout = _PATIENCE
    server_version = "kgather"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, self.server.telemetry.text())
        elif self.path == "/healthz":
            self._answer(200, "text/plain", b"alive\n")
        elif self.path == "/readyz":
            found = self.server.ready()
            told = "".join(f"{name}: {'ok' if works else 'fails'}\n" for name, works in found.items())
            self._answer(200 if all(found.values()) else 503, "text/plain", told.encode())
        else:
            self._answer(404, "text/plain", b"There is /metrics, /healthz and /readyz.\n")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing of each scrape."""


class JsonLines(logging.Formatter):
    """A line of JSON for each record: at, level, event, and what the record was given as extra."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "event": record.getMessage()}
        for name, value in vars(record).items():
            if name not in _STANDARD and value is not None:
                line[f"{name}_" if name in line else name] = value
        if record.exc_info and record.exc_info[0] is not None:
            # The text of an unforeseen error may quote data, so only its kind is told.
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, default=lambda value: type(value).__name__)


class _PrivateFile(WatchedFileHandler):
    """A log file of its owner's only, opened again when it was set aside."""

    def _open(self) -> Any:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(handle, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8")


def start_logging(file: Path | None, level: str) -> None:
    """Send the log of the server to a file, or to standard error. Raises InputError where the file cannot be written.

    What libraries log may quote what they work on, so of theirs only the name of the logger is kept.
    """
    try:
        handler: logging.Handler = logging.StreamHandler(sys.stderr) if file is None else _PrivateFile(file)
    except OSError as error:
        msg = f"{file}, the log, cannot be written: {error.strerror}."
        raise InputError(msg) from None
    handler.setFormatter(JsonLines())
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
    root = logging.getLogger()
    root.handlers[:] = [_Muted(handler)]
    root.setLevel(logging.WARNING)
    # Errors of the interpreter's own (threads, callbacks) go the same way, without their text.
    threading.excepthook = lambda failed: log.error("a thread failed", extra={"error": failed.exc_type.__name__})
    sys.unraisablehook = lambda failed: log.error("an error was ignored", extra={"error": failed.exc_type.__name__})


def reopen_logs() -> None:
    """Open the log file again, as after it was renamed."""
    for handler in log.handlers:
        if isinstance(handler, WatchedFileHandler):
            handler.reopenIfNeeded()


class _Muted(logging.Handler):
    """Passes on that another logger said something, not what."""

    def __init__(self, to: logging.Handler) -> None:
        super().__init__()
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        said = logging.makeLogRecord(
            {"name": "kgather._server", "levelno": record.levelno, "levelname": record.levelname}
        )
        said.msg = "a library reports"
        said.logger, said.error, said.where = record.name, error, f"{record.module}:{record.lineno}"
        self._to.handle(said)
