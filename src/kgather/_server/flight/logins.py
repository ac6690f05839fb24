"""Logins of Flight: a password at the handshake, a bearer token afterwards.

pyarrow does not say where a handshake comes from. It says so for every other call. So a handshake always ends with a
token, and whether the password was right is told at the first call with it: only then can whoever guesses be slowed
down by address. A token of a wrong password looks like any other, and nothing is kept for it: it is signed with a key
of this process.
"""

import base64
import binascii
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow.flight as flight

from kgather._server.flight.sessions import NAME, SECRET, Kept
from kgather._server.logins import FailedLogins, TooManyLoginsError
from kgather._server.service import Kind, Service, Unavailable
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users, Verifier

WIRE = "flight"
LOG_IN = "28000: Log in with name and password, or with a bearer token that is still good."

_AT_ONCE = 8  # passwords that are tried at once, and tokens that are looked at for the first time
_AFTER_FAILURE = 0.5  # seconds
_NAMES = 1_000
"""Of how many failed handshakes the name is known when their token is used."""
_sleep = time.sleep


@dataclass(eq=False)
class Session:
    """What a token stands for: a user, and the password that was proved; verifier: None where it was a wrong one.
    used: whether there was a call with it."""

    principal: str
    verifier: Verifier | None
    used: bool = False


class Logins:
    """Passwords and tokens. Safe to share among threads."""

    def __init__(
        self,
        users: Users,
        service: Service,
        settings: ServerSettings,
        telemetry: Telemetry,
        failed: FailedLogins,
    ) -> None:
        self._users = users
        self._service = service
        self._telemetry = telemetry
        self._failed = failed
        self._trying = threading.BoundedSemaphore(_AT_ONCE)
        self._waiting = threading.BoundedSemaphore(_AT_ONCE)
        self._tokens: Kept[Session] = Kept(seconds=settings.session_s, each=settings.connections_per_principal)
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._names: OrderedDict[bytes, str] = OrderedDict()

    def token(self, credential: str) -> bytes:
        """A token for what a client says at the handshake, right or wrong. Raises Unavailable without room for it."""
        name, password = _credential(credential)
        with self._room(self._trying):
            right = self._users.check(name, password)
        wrong = self._wrong(secrets.token_bytes(NAME))
        if right:
            token = self._tokens.add(name, Session(name, self._users.verifier(name)))
            if token is not None:
                return token
        with self._lock:
            self._names[wrong] = name
            while len(self._names) > _NAMES:
                self._names.popitem(last=False)
        return wrong

    def session(self, token: bytes) -> Session | None:
        """What a token stands for, None for nothing."""
        if hmac.compare_digest(token, self._wrong(token[:NAME])):
            with self._lock:
                return Session(self._names.get(token, ""), None)
        found = self._tokens.get(token)
        # Who was taken out, or has another password now, has to log in again.
        return found[1] if found is not None and self._users.verifier(found[0]) == found[1].verifier else None

    def admit(self, session: Session, address: str | None) -> bool:
        """Whether a call from there is answered. The first with a token waits as long as the address has to. Raises
        Unavailable where too many wait."""
        if session.used:
            return True
        try:
            self._judge(session, address)
        except TooManyLoginsError:
            self._telemetry.turned_away(WIRE, "logins")
            why: Kind = "busy"
            raise Unavailable(why) from None
        if session.verifier is None:
            self._telemetry.login(WIRE, ok=False)
            with self._room(self._waiting):
                _sleep(_AFTER_FAILURE)
            return False
        with self._lock:
            first, session.used = not session.used, True
        if first:
            self._telemetry.login(WIRE, ok=True)
        return True

    def _judge(self, session: Session, address: str | None) -> None:
        """Wait for the turn of a login, and note whether it was right. Raises Unavailable, TooManyLoginsError."""
        with (
            self._failed.queue(address, session.principal) as turn,
            self._room(self._waiting) if turn.wait() else nullcontext(),
        ):
            while seconds := turn.wait():
                _sleep(seconds)
            if session.verifier is None:
                self._failed.failed(WIRE, address, session.principal)
            else:
                self._failed.succeeded(address, session.principal)

    def _wrong(self, name: bytes) -> bytes:
        """The token of a wrong password that begins with these bytes."""
        return name + hmac.digest(self._key, name, "sha512")[:SECRET]

    @contextmanager
    def _room(self, room: threading.BoundedSemaphore) -> Iterator[None]:
        why: Kind | None = None
        if not self._service.takes_queries():
            why = "shutting_down"
        elif not room.acquire(blocking=False):
            why = "busy"
        if why is not None:
            self._telemetry.turned_away(WIRE, why)
            raise Unavailable(why)
        try:
            yield
        finally:
            room.release()


class Middleware(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Reads what a call says about who makes it."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str]]) -> "Identity":
        """Raises FlightUnauthenticatedError with one text whatever is wrong, Unavailable."""
        given = [value for name, values in headers.items() if name.lower() == "authorization" for value in values]
        scheme, _, credential = (given[0] if len(given) == 1 else "").partition(" ")
        if info.method == flight.FlightMethod.HANDSHAKE:
            if scheme.lower() == "basic":
                return Identity(self._logins, None, self._logins.token(credential))
        elif scheme.lower() == "bearer":
            session = self._logins.session(_token(credential))
            if session is not None:
                return Identity(self._logins, session)
        raise flight.FlightUnauthenticatedError(LOG_IN)


class Identity(flight.ServerMiddleware):  # type: ignore[misc]
    """Who calls, or the token to send back after a handshake."""

    def __init__(self, logins: Logins, session: Session | None, token: bytes | None = None) -> None:
        self._logins = logins
        self._session = session
        self._new = token

    def principal(self, address: str | None) -> str:
        """Who calls from an address. Raises FlightUnauthenticatedError, Unavailable."""
        if self._session is None or not self._logins.admit(self._session, address):
            raise flight.FlightUnauthenticatedError(LOG_IN)
        return self._session.principal

    def sending_headers(self) -> dict[str, str]:
        """The token, once."""
        if self._new is None:
            return {}
        return {"authorization": f"Bearer {base64.urlsafe_b64encode(self._new).decode()}"}


def _token(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        return b""


def _credential(text: str) -> tuple[str, str]:
    """Name and password, both empty where there is neither."""
    stripped = text.rstrip("=")  # Go's client leaves the padding out
    try:
        decoded = base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    name, _, password = decoded.partition(":")
    return name, password
