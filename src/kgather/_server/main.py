"""The server process: what it checks, gives up and opens, in this order, and how it ends.

Files and addresses are checked first, by whoever will run it. Then the process gives up what it does not need; kernels
are compiled while there is one thread only, because Landlock binds a thread and those that it starts. Only then are
data and ledger opened, and ports last.
"""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kgather._errors import InputError
from kgather._guard.audit_log import AuditLog, Rotation
from kgather._guard.policy import Mode, Policy, bytes_of, load_policy
from kgather._server import lockdown
from kgather._server.lockdown import Private
from kgather._server.logins import FailedLogins
from kgather._server.settings import ServerSettings, is_loopback
from kgather._server.telemetry import MetricsServer, Telemetry, reopen_logs, start_logging
from kgather._server.users import Users, load
from kgather._version import __version__

if TYPE_CHECKING:
    from kgather._guard.guard import Guard

_OF_PROCESS = 8 * 2**30
"""Address space, mostly never touched, of Python, its libraries and the stacks of threads."""

_ALPN = "postgresql"
"""What a client says that speaks TLS from the first byte on."""

_log = logging.getLogger("kgather._server")


class Postgres(Protocol):
    """What this module needs of the PostgreSQL wire."""

    port: int

    async def start(self) -> None:
        """Listen."""

    def renew_certificate(self) -> None:
        """Take note that the TLS context has another certificate."""

    async def stop(self, grace_s: float) -> None:
        """Take no more connections; end those that are left after the grace."""


def serve(policy_path: Path, settings: ServerSettings) -> None:
    """Serve a policy until SIGTERM or SIGINT. Raises InputError where something is not as it has to be."""
    lockdown.check_root(settings.user, settings.allow_root)
    settings = _at_addresses(settings)
    tls = _Tls.of(settings)
    lockdown.become(settings.user)
    lockdown.check_code()
    start_logging(settings.log_file, settings.log_level)
    text = _text(policy_path)
    policy = load_policy(policy_path)
    lockdown.check_private(private_files(policy, policy_path, settings))
    users = load(settings.users, policy.principals)
    lockdown.keep_kernels(policy.ledger.parent)
    missing = lockdown.give_up_privileges()
    size = _memory(policy, settings)
    lockdown.limit_memory(size)
    _import_all(policy.mode)
    files = lockdown.restrict_files(*_paths(policy, policy_path, settings))
    _log.info("locked down", extra={"landlock": files, "memory_bytes": size, "missing": ", ".join(missing) or None})
    AuditLog.rotation = Rotation(settings.audit_max_bytes, settings.audit_backups, settings.audit_every)
    _warn_of(policy_path, policy, users, settings)
    from kgather._guard.guard import Guard

    guard = Guard.from_policy(policy_path)
    asyncio.run(_run(guard, users, settings, tls, policy_path, text))


async def _run(
    guard: "Guard", users: Users, settings: ServerSettings, tls: "_Tls | None", policy_path: Path, text: bytes
) -> None:
    await _Server(guard, users, settings, tls, policy_path, text).run()


def _text(policy_path: Path) -> bytes:
    """The policy as it is now; of one that cannot be read, nothing: why is said where it is loaded."""
    try:
        return policy_path.read_bytes()
    except OSError:
        return b""


def private_files(policy: Policy, policy_path: Path, settings: ServerSettings) -> Iterator[Private]:
    """The files that others must not read."""
    ledger = policy.ledger
    yield Private(policy_path, "the policy")
    yield Private(policy.database, "the database")
    yield Private(_beside(policy.database, ".wal"), "the database's write-ahead log")
    yield Private(ledger, "the ledger")
    yield Private(_beside(ledger, ".wal"), "the ledger's write-ahead log")
    yield Private(_beside(ledger, "-journal"), "the ledger's journal")
    yield Private(settings.users, "the file of users")
    if policy.audit_log is not None:
        yield Private(policy.audit_log, "the audit log")
        for older in sorted(policy.audit_log.parent.glob(policy.audit_log.name + ".*[0-9]")):
            yield Private(older, "an older audit log")
    if settings.tls_key is not None:
        yield Private(settings.tls_key, "the key of the certificate")
    if settings.log_file is not None:
        yield Private(settings.log_file, "the log")


class _Tls:
    """A certificate and its key, read while the process may still read them."""

    def __init__(self, certificate: Path, key: Path, user: str | None) -> None:
        lockdown.check_private([Private(key, "the key of the certificate")], user)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols([_ALPN])
        try:
            self.pem = certificate.read_bytes(), key.read_bytes()
            self.context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError:
            msg = f"{certificate} and {key} are no certificate and its key, as PEM and without a password."
            raise InputError(msg) from None
        except OSError as error:
            msg = f"{error.filename or certificate} cannot be read: {error.strerror}. See --tls-certificate, --tls-key."
            raise InputError(msg) from None

    @classmethod
    def of(cls, settings: ServerSettings) -> "_Tls | None":
        """The certificate of the settings, if they have one."""
        if settings.tls_certificate is None or settings.tls_key is None:
            return None
        return cls(settings.tls_certificate, settings.tls_key, settings.user)


class _Server:
    """The wires, and the signals that reload and end them."""

    def __init__(
        self,
        guard: "Guard",
        users: Users,
        settings: ServerSettings,
        tls: _Tls | None,
        policy_path: Path,
        text: bytes,
    ) -> None:
        from kgather._server.flight.server import FlightServer
        from kgather._server.postgres import PostgresServer
        from kgather._server.readiness import Readiness
        from kgather._server.reloading import Reloading
        from kgather._server.service import Service

        self._settings = settings
        telemetry = Telemetry()
        failed = FailedLogins()
        self._service = Service(guard, settings, telemetry)
        self._service.permit(users.names)
        if guard.policy.mode == "measured":
            telemetry.watch_budget(lambda: self._service.guard.spending)
            _log.info("what the budget buys", extra={"told": " ".join(guard.buys)})
        else:
            telemetry.watch_atoms(lambda: self._service.guard.atoms)
        context = tls.context if tls is not None else None
        self._postgres: Postgres = PostgresServer(self._service, users, settings, telemetry, context, failed)
        self._reloading = Reloading(
            policy_path, text, settings, self._service, users, context, self._postgres.renew_certificate
        )
        self._ready = Readiness(lambda: self._service.guard, self._service.takes_queries)
        self._reload_lock = asyncio.Lock()
        self._reloads: set[asyncio.Task[None]] = set()
        self._flight = (
            FlightServer(self._service, users, settings, telemetry, tls.pem if tls is not None else None, failed)
            if settings.flight_port is not None
            else None
        )
        self._metrics = (
            MetricsServer(
                settings.metrics_host,
                settings.metrics_port,
                telemetry,
                self._ready.look,
                None if is_loopback(settings.metrics_host) else context,
            )
            if settings.metrics_port is not None
            else None
        )
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal, then let what runs finish within the grace."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            await self._postgres.start()
        except OSError as error:
            where = f"{self._settings.host}:{self._settings.port}"
            msg = f"The server cannot listen on {where}: {os.strerror(error.errno or 0)}. Choose another --port."
            raise InputError(msg) from None
        if self._flight is not None:
            self._flight.start()
        if self._metrics is not None:
            self._metrics.start()
        _log.info(
            "ready",
            extra={
                "version": __version__,
                "host": self._settings.host,
                "port": self._postgres.port,
                "flight_port": self._flight.port if self._flight is not None else None,
                "metrics_port": self._metrics.port if self._metrics is not None else None,
                "tls": self._settings.tls,
                "pid": os.getpid(),
            },
        )
        _notify("READY=1")
        await self._stopping.wait()
        _notify("STOPPING=1")
        _log.info("shutting down", extra={"queries": self._service.running()})
        grace = self._settings.shutdown_grace_s
        self._service.drain()
        await asyncio.gather(
            asyncio.to_thread(self._finish, grace),
            self._postgres.stop(grace),
            asyncio.to_thread(self._flight.stop, grace) if self._flight is not None else asyncio.sleep(0),
        )
        if self._metrics is not None:
            self._metrics.stop()
        left = self._service.running()
        _log.info("stopped", extra={"queries_left": left or None})
        if left:
            # Their clients have been told; the ledger is as before them or as after them.
            logging.shutdown()
            os._exit(0)

    def _finish(self, grace: float) -> None:
        self._service.wait_until_idle(grace)
        self._service.end()

    def _stop(self) -> None:
        if self._stopping.is_set():
            self._service.end()  # asked twice: no more grace
        self._stopping.set()

    def _reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload_all())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload_all(self) -> None:
        reopen_logs()
        async with self._reload_lock:
            # In a thread, because a policy that is read again takes as long as a start.
            await asyncio.to_thread(self._reloading.run)


def _at_addresses(settings: ServerSettings) -> ServerSettings:
    """The settings with addresses in place of names. Raises InputError where one is not to be served as it stands."""
    host, metrics_host = (_address(name) for name in (settings.host, settings.metrics_host))
    lockdown.check_binding(host, is_loopback(host), settings.tls, "--host")
    if settings.metrics_port is not None:
        lockdown.check_binding(metrics_host, is_loopback(metrics_host), settings.tls, "--metrics-host")
    return settings.model_copy(update={"host": host, "metrics_host": metrics_host})


def _address(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][4][0])
    except (OSError, UnicodeError):
        msg = f"{host!r} is no address of this machine. Listen on 127.0.0.1, or on 0.0.0.0 for all."
        raise InputError(msg) from None


def _memory(policy: Policy, settings: ServerSettings) -> int:
    """Bytes of address space: as in the settings, or for the copy of the data, for queries and for the process."""
    if settings.memory is not None:
        return bytes_of(settings.memory)
    of_queries = max(bytes_of(policy.limits_of(name).memory) for name in policy.principals) if policy.principals else 0
    return bytes_of(policy.limits.memory) + settings.queries_at_once * of_queries + _OF_PROCESS


def _paths(policy: Policy, policy_path: Path, settings: ServerSettings) -> tuple[list[Path], list[Path]]:
    """Folders, not files: a file that is replaced is another one."""
    read = [policy.database.parent, policy_path.resolve().parent, settings.users.resolve().parent]
    keep = [policy.ledger.parent]
    keep += [file.resolve().parent for file in (policy.audit_log, settings.log_file) if file is not None]
    for folder in keep:
        folder.mkdir(parents=True, exist_ok=True)
    # SIGHUP reads a certificate again that took the place of the old one.
    read += [file.resolve().parent for file in (settings.tls_certificate, settings.tls_key) if file is not None]
    return [*read, *lockdown.code_paths()], keep


def _import_all(mode: Mode) -> None:
    """Import and compile what would read or write files later on. mode: of the policy, which takes a restart."""
    from kgather._guard import guard
    from kgather._guard.measured import warm
    from kgather._guard.warm import compile_kernels
    from kgather._server import postgres, readiness, reloading, service
    from kgather._server.flight import server

    del guard, postgres, readiness, reloading, service, server
    if mode == "measured":
        warm.load()
    else:
        compile_kernels()
    from numba.core import caching

    # What is compiled later on is not kept: the process may not write where code lies.
    setattr(caching.Cache, "save_overload", lambda *_: None)  # noqa: B010


def _warn_of(policy_path: Path, policy: Policy, users: Users, settings: ServerSettings) -> None:
    undecided = policy_path.read_text(encoding="utf-8").count("# DECIDE:")
    if undecided:
        _log.warning("the policy is made of guesses: decide what it marks DECIDE", extra={"marks": undecided})
    if not users.names:
        _log.warning("nobody can log in", extra={"told": f"kgather user add NAME --users {settings.users}"})
    if policy.audit_log is None:
        _log.warning("there is no audit log: name one under audit_log in the policy")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _notify(state: str) -> None:
    """Tell systemd (sd_notify) where it wants to know."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
