"""Listens, lets clients in, and keeps count of them."""

import asyncio
import hmac
import logging
import secrets
import ssl
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from pygwire.constants import StartupRequestCode
from pygwire.messages import (
    BackendKeyData,
    CancelRequest,
    NegotiateProtocolVersion,
    ParameterStatus,
    StartupMessage,
)

from kgather._server.logins import FailedLogins
from kgather._server.postgres import errors
from kgather._server.postgres.catalog import ShadowCatalog, Who
from kgather._server.postgres.errors import FatalError, PgError
from kgather._server.postgres.frames import read_startup
from kgather._server.postgres.login import WIRE, log_in
from kgather._server.postgres.session import Session, farewell
from kgather._server.postgres.session_settings import VERSION, Settings, accepted
from kgather._server.postgres.startup import options
from kgather._server.postgres.stream import GoneError, Stream
from kgather._server.service import Service
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users

_NEWEST = 0x0003_0002
_SHORT_KEY, _LONG_KEY = 4, 32
_HANDSHAKE = b"\x16"
"""What TLS begins with; every message of the protocol begins with a length, whose first byte is 0."""
ALPN = "postgresql"
_CONNECTIONS, _PRINCIPAL, _LOGINS = "connections", "principal", "logins"
"""Why a connection is turned away."""
_FAREWELL = 1.0  # seconds for the last words to leave
_CATALOG_THREADS = 2

_log = logging.getLogger("kgather._server.postgres")


@dataclass(eq=False)
class _Client:
    """A connection, from its first byte on. number: in the order of their coming; greeted: whether it has said who it
    is; let_go: whether it is to make room for others; key: what its queries are cancelled with."""

    stream: Stream
    number: int
    greeted: bool = False
    let_go: bool = False
    task: "asyncio.Task[None] | None" = None
    session: Session | None = None
    key: bytes = b""

    @property
    def network(self) -> str:
        """Where it is, as far as connections that have not logged in are counted by it."""
        return self.stream.address or ""


class PostgresServer:
    """Speaks PostgreSQL's protocol over a guard. Use it in one event loop: `start`, and then `stop`."""

    def __init__(
        self,
        service: Service,
        users: Users,
        settings: ServerSettings,
        telemetry: Telemetry,
        tls: ssl.SSLContext | None = None,
        failed: FailedLogins | None = None,
    ) -> None:
        self._service = service
        self._users = users
        self._settings = settings
        self._telemetry = telemetry
        self._tls = tls
        self._certificate = certificate_of(tls) if tls is not None else None
        self._failed = failed or FailedLogins()
        self._shadow = ShadowCatalog(service.guard.catalog)
        self._pool = ThreadPoolExecutor(_CATALOG_THREADS, thread_name_prefix="kgather-catalog")
        self._clients: set[_Client] = set()
        self._sessions: dict[int, _Client] = {}
        self._of_principal: Counter[str] = Counter()
        self._listening: asyncio.Server | None = None
        self._stopping = False
        self._accepted_so_far = 0
        self.port = settings.port

    async def start(self) -> None:
        """Listen. Raises OSError where the port cannot be had."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Stream(self._accepted), self._settings.host, self._settings.port, backlog=128
        )
        self.port = self._listening.sockets[0].getsockname()[1]

    async def stop(self, grace_s: float) -> None:
        """Take no more connections. Those that ask nothing are ended now, those that ask when they have their answer,
        and what is left after the grace is ended, too."""
        self._stopping = True
        if self._listening is not None:
            self._listening.close()
        for client in list(self._clients):
            if client.session is None or client.session.idle:
                self._end(client)
            else:
                client.session.stopping = True
        await self._gone(grace_s)
        for client in list(self._clients):
            if client.session is not None:
                client.session.cancel()
            self._end(client)
        await self._gone(_FAREWELL)
        for client in list(self._clients):
            client.stream.abort()
        await self._gone(_FAREWELL)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def renew_certificate(self) -> None:
        """Take note that the TLS context has another certificate."""
        self._certificate = certificate_of(self._tls) if self._tls is not None else None

    @property
    def version(self) -> str:
        """The version that clients are told."""
        return VERSION

    @property
    def connections(self) -> int:
        """How many connections are open, whoever has them."""
        return len(self._clients)

    async def _gone(self, seconds: float) -> None:
        tasks = [client.task for client in self._clients if client.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _end(self, client: _Client) -> None:
        if client.task is not None:
            client.task.cancel()

    # A connection

    def _accepted(self, stream: Stream) -> None:
        self._accepted_so_far += 1
        client = _Client(stream, self._accepted_so_far)
        self._clients.add(client)
        self._telemetry.connected(WIRE, +1)
        client.task = asyncio.get_running_loop().create_task(self._serve(client))

    async def _serve(self, client: _Client) -> None:
        """One connection, from the first byte to the last word. Nothing that goes wrong in it leaves it."""
        stream = client.stream
        try:
            await self._talk(client)
        except (GoneError, ConnectionError):
            pass
        except FatalError as error:
            farewell(stream, error)
        except asyncio.CancelledError:
            farewell(stream, FatalError(errors.SHUTTING_DOWN, "The server is shutting down."))
        except Exception as error:
            farewell(stream, FatalError(errors.INTERNAL, errors.unforeseen(error)))
        finally:
            self._forget(client)
            stream.close()

    def _forget(self, client: _Client) -> None:
        self._clients.discard(client)
        self._telemetry.connected(WIRE, -1)
        if client.session is not None:
            client.session.cancel()
            self._sessions.pop(client.session.who.pid, None)
            user = client.session.who.user
            self._of_principal[user] -= 1
            if not self._of_principal[user]:
                del self._of_principal[user]

    async def _talk(self, client: _Client) -> None:
        self._make_room()
        try:
            async with asyncio.timeout(self._settings.authentication_timeout_s):
                startup = await self._greeted(client.stream)
                if startup is None:
                    return
                client.greeted = True
                session = await self._let_in(client, startup)
        except TimeoutError:
            self._telemetry.turned_away(WIRE, "timeout")
            raise FatalError(errors.NOT_PERMITTED, "Logging in took too long.") from None
        await session.run()

    async def _greeted(self, stream: Stream) -> StartupMessage | None:
        """What a client begins with, after encryption if it asks for it; None where it came to cancel a query."""
        asked: set[StartupRequestCode] = set()
        if await stream.first_byte() == _HANDSHAKE:
            await self._encrypted(stream)
        while True:
            first = await read_startup(stream, self._settings.max_unauthenticated_bytes)
            if isinstance(first, CancelRequest):
                self._cancel(first)
                return None
            if isinstance(first, StartupMessage):
                return first
            if first in asked or stream.encryption is not None:
                errors.violate("encryption is asked for twice")
            asked.add(first)
            if stream.buffered:
                # What is sent before there is an answer may come from somebody in between.
                errors.violate("there are bytes behind a request to encrypt")
            if first is StartupRequestCode.SSL_REQUEST and self._tls is not None:
                await stream.encrypt(self._tls, b"S", self._settings.authentication_timeout_s)
            else:
                stream.write(b"N")
                await stream.drain()

    async def _encrypted(self, stream: Stream) -> None:
        """TLS from the first byte on, as with sslnegotiation=direct: the client has to say which protocol is inside."""
        if self._tls is None:
            errors.violate("the server has no certificate for TLS")
        await stream.encrypt(self._tls, b"", self._settings.authentication_timeout_s)
        found = stream.encryption
        if found is None or found.selected_alpn_protocol() != ALPN:
            errors.violate("TLS from the first byte on needs ALPN")

    def _make_room(self) -> None:
        """Connections that have not logged in are let go where there are too many: of the address that has most of them
        the oldest that has said nothing, or else the oldest, so that nobody keeps the others out."""
        waiting = [client for client in self._clients if client.session is None and not client.let_go]
        if len(waiting) <= self._settings.max_unauthenticated:
            return
        busiest, _ = Counter(client.network for client in waiting).most_common(1)[0]
        of_it = [client for client in waiting if client.network == busiest]
        oldest = min(of_it, key=lambda client: (client.greeted, client.number))
        self._telemetry.turned_away(WIRE, _CONNECTIONS)
        oldest.let_go = True
        if not oldest.stream.encrypting:
            farewell(oldest.stream, FatalError(errors.TOO_MANY_CONNECTIONS, "Too many connections have not logged in."))
        oldest.stream.close()

    async def _let_in(self, client: _Client, startup: StartupMessage) -> Session:
        stream = client.stream
        if self._stopping:
            raise FatalError(errors.SHUTTING_DOWN, "The server is shutting down.")
        if self._tls is not None and stream.encryption is None:
            raise FatalError(errors.NOT_PERMITTED, "Connect with TLS, as with sslmode=require.")
        if len(self._sessions) >= self._settings.max_connections:
            raise self._turned_away(_CONNECTIONS)
        self._negotiate(stream, startup)
        user = startup.params.get("user", "")
        if not user:
            raise FatalError(errors.NOT_PERMITTED, "Say who you are: the startup message names no user.")
        settings = _settings_of(startup, self._facts(user))
        certificate = self._certificate if stream.encryption is not None else None
        most = self._settings.max_unauthenticated_bytes
        try:
            await log_in(stream, user, self._users, certificate, most, self._failed)
        except FatalError as error:
            if error.code == errors.TOO_MANY_CONNECTIONS:
                self._telemetry.turned_away(WIRE, _LOGINS)
            else:
                self._telemetry.login(WIRE, ok=False)
            raise
        self._telemetry.login(WIRE, ok=True)
        if len(self._sessions) >= self._settings.max_connections:
            raise self._turned_away(_CONNECTIONS)
        if self._of_principal[user] >= self._settings.connections_per_principal:
            raise self._turned_away(_PRINCIPAL)
        pid = self._new_pid()
        who = Who(user, startup.params.get("database", user), pid, stream.address)
        client.session = session = Session(stream, who, settings, self._service, self._catalog, self._pool)
        client.key = secrets.token_bytes(_LONG_KEY if startup.protocol_version >= _NEWEST else _SHORT_KEY)
        self._of_principal[user] += 1
        self._sessions[pid] = client
        for name, value in settings.reported().items():
            stream.write(ParameterStatus(name=name, value=value).to_wire())
        stream.write(BackendKeyData(process_id=pid, secret_key=client.key).to_wire())
        return session

    def _facts(self, user: str) -> dict[str, str]:
        """Settings that say how the server runs, and for whom."""
        return {
            "session_authorization": user,
            "ssl": "off" if self._tls is None else "on",
            "port": str(self.port),
            "max_connections": str(self._settings.max_connections),
        }

    def _negotiate(self, stream: Stream, startup: StartupMessage) -> None:
        """Say which version is spoken where a client asks for a newer one, or for options that nobody knows."""
        unknown = [name for name in startup.params if name.startswith("_pq_.")]
        if startup.protocol_version > _NEWEST or unknown:
            version = min(startup.protocol_version, _NEWEST)
            stream.write(NegotiateProtocolVersion(newest_minor=version, unrecognized=unknown).to_wire())

    def _turned_away(self, why: str) -> FatalError:
        self._telemetry.turned_away(WIRE, why)
        if why == _PRINCIPAL:
            return FatalError(errors.TOO_MANY_CONNECTIONS, "This user has too many connections.")
        return FatalError(errors.TOO_MANY_CONNECTIONS, "There are too many connections.")

    def _new_pid(self) -> int:
        while True:
            pid = secrets.randbelow((1 << 31) - 1) + 1
            if pid not in self._sessions:
                return pid

    def _cancel(self, request: CancelRequest) -> None:
        """Cancel what a session asks, for whoever has its key. Nobody is told whether there was anything."""
        client = self._sessions.get(request.process_id)
        key = client.key if client is not None else secrets.token_bytes(len(request.secret_key))
        if hmac.compare_digest(key, request.secret_key) and client is not None and client.session is not None:
            client.session.cancel()

    def _catalog(self) -> ShadowCatalog:
        """The catalog that clients see, made anew where the guard's has changed."""
        if self._shadow.of is not self._service.guard.catalog:
            self._shadow = ShadowCatalog(self._service.guard.catalog)
        return self._shadow


def _settings_of(startup: StartupMessage, facts: Mapping[str, str]) -> Settings:
    """The settings that a session begins with. facts: those that no client makes. Raises FatalError for settings that
    are not in the list."""
    first: dict[str, str] = {}
    try:
        for name, value in options(startup.params):
            first[name.lower()] = accepted(name, value)
    except PgError as error:
        raise FatalError(error.code, error.message) from None
    return Settings({**first, **facts})


def certificate_of(context: ssl.SSLContext) -> str:
    """The certificate that a context shows, as PEM. Found by shaking hands with it: its file may be out of reach."""
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    mine.check_hostname, mine.verify_mode = False, ssl.CERT_NONE
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = mine.wrap_bio(here, there)
    server = context.wrap_bio(there, here, server_side=True)
    for _ in range(10):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    shown = client.getpeercert(binary_form=True)
    if shown is None:
        msg = "The TLS context has no certificate."
        raise ValueError(msg)
    return ssl.DER_cert_to_PEM_cert(shown)
