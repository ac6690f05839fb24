"""The server of Arrow Flight SQL: pyarrow's Flight, with logins, statements and listings that lead to the service.

A statement is asked once, when its client asks where the result is (GetFlightInfo); the protected result waits under a
random ticket of that principal until it is fetched. The metadata of its schema say under `kgather_notes` how it came
about, as a JSON list of sentences. Everything that is raised here is an error of Flight with a fixed
text: pyarrow sends clients the traceback of any other.
"""

import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from kgather._errors import InputError
from kgather._guard.describe import neutral
from kgather._guard.guard import Answer
from kgather._guard.plan import Value
from kgather._guard.refused import PARAMETERS, Refused
from kgather._server.flight import wire
from kgather._server.flight.listings import CATALOG, SCHEMA, Listing, listed
from kgather._server.flight.logins import LOG_IN, Logins, Middleware
from kgather._server.flight.prepared import awaited, schema
from kgather._server.flight.sessions import Kept
from kgather._server.logins import FailedLogins
from kgather._server.service import Internal, Service, Unavailable
from kgather._server.settings import ServerSettings
from kgather._server.telemetry import Telemetry
from kgather._server.users import Users

P = ParamSpec("P")
R = TypeVar("R")

_RESULTS, _STATEMENTS = 20, 100  # of a principal at once
_RESULT_BYTES = 256 * 2**20  # of all results that wait
_STATEMENT_BYTES = 64 * 2**20  # of all prepared statements and their values
_GLANCE = 0.05  # seconds between two looks at whether results were fetched
_CLOSED = 1
"""Of a session, as CloseSessionResult has it."""
_CANCELLED, _NOT_CANCELLABLE = 1, 3
"""As CancelStatus has them."""
_CANCEL_RESULT = b"type.googleapis.com/arrow.flight.protocol.sql.ActionCancelQueryResult"
_INVALID_NAME, _INVALID_VALUE = 1, 2
"""As SetSessionOptionsResult has them."""
OPTIONS = {"catalog": CATALOG, "schema": SCHEMA}
"""What the options of a session are, which nobody can change."""
_LAST_CALLS = 0.5  # seconds for calls that need no answer from the guard
_IDENTITY = "identity"

NOTES = b"kgather_notes"
"""Where the metadata of a result's schema say how it came about."""

UNSUPPORTED = "0A000: The server answers queries and lists tables; it does nothing else."
MALFORMED = "08P01: The request is no message of Flight SQL."
NO_TICKET = "24000: There is no such result for this user: it was fetched, is too old, or never was. Ask again."
NO_STATEMENT = "26000: There is no such prepared statement for this user. Prepare it again."
ONE_ROW = "07001: Values for one execution are one row. Execute a statement once for each."
FAILED = "XX000: The server could not answer."
NO_TRANSACTIONS = "0A000: There are no transactions: answers are only read."
NO_ROOM = "53000: Too many results or statements are kept. Fetch results, close statements, or ask again later."

_log = logging.getLogger("kgather._server")


@dataclass(frozen=True)
class _Prepared:
    sql: str
    parameters: Sequence[Value] = ()


def _sheltered(method: Callable[P, R]) -> Callable[P, R]:
    """Let nothing out of a method but errors of Flight with texts that are ours."""

    @functools.wraps(method)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(*arguments, **named)
        except flight.FlightError:
            raise
        except Exception as error:
            raise _as_flight(error) from None

    return run


def _as_flight(error: Exception) -> flight.FlightError:
    """An error of Flight. The code stands in the text: clients of Go take more than a text for a broken message."""
    if isinstance(error, Refused):
        return flight.FlightServerError(f"{error.code}: {error.reason}")
    if isinstance(error, wire.Malformed):
        return flight.FlightServerError(MALFORMED)
    if isinstance(error, Internal):
        return flight.FlightInternalError(f"{error.code}: {error.reason}")
    if isinstance(error, Unavailable):
        kind = {"timeout": flight.FlightTimedOutError, "cancelled": flight.FlightCancelledError}
        return kind.get(error.kind, flight.FlightUnavailableError)(f"{error.code}: {error.reason}")
    _log.error("a call of Flight failed", extra={"error": type(error).__name__})
    return flight.FlightInternalError(FAILED)


class FlightServer:
    """Listens from `start` to `stop`. tls: certificate and key, as PEM; failed: the failures of all wires."""

    def __init__(
        self,
        service: Service,
        users: Users,
        settings: ServerSettings,
        telemetry: Telemetry,
        tls: tuple[bytes, bytes] | None = None,
        failed: FailedLogins | None = None,
    ) -> None:
        self._service = service
        self._logins = Logins(users, service, settings, telemetry, failed or FailedLogins())
        self._settings = settings
        self._tls = tls
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.port) if self._server is not None else 0

    def start(self) -> None:
        """Listen. Raises InputError where that cannot be."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        scheme = "grpc+tls" if self._tls is not None else "grpc"
        try:
            self._server = _Server(
                f"{scheme}://{host}:{self._settings.flight_port or 0}",
                auth_handler=_AnyHandshake(),
                tls_certificates=[self._tls] if self._tls is not None else None,
                middleware={_IDENTITY: _Calls(self._logins)},
                service=self._service,
                settings=self._settings,
            )
        except (OSError, pa.ArrowException, flight.FlightError):
            msg = (
                f"Arrow Flight cannot listen on {host}:{self._settings.flight_port}. Choose another --flight-port; "
                "with a certificate, see that it and its key are PEM."
            )
            raise InputError(msg) from None

    def stop(self, grace_s: float) -> None:
        """Let clients fetch, within `grace_s`, what they were answered; then take no more calls."""
        server, self._server = self._server, None
        if server is None:
            return
        until = time.monotonic() + grace_s
        self._service.wait_until_idle(grace_s)
        while server.results_waiting() and time.monotonic() < until:
            time.sleep(_GLANCE)
        # Clients close their statements after they have fetched.
        time.sleep(max(min(_LAST_CALLS, until - time.monotonic()), 0))
        # Flight waits for its calls as long as they take; the service ends them after the grace.
        waiting = threading.Thread(target=server.shutdown, daemon=True, name="kgather-flight-stop")
        waiting.start()
        waiting.join(_LAST_CALLS + 1)


class _AnyHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets the handshake through to the headers, where the password is."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Do nothing."""

    def is_valid(self, token: bytes) -> bytes:  # noqa: ARG002
        """Nobody in particular: who calls is in the middleware."""
        return b""


class _Calls(Middleware):
    """Who calls, with errors of Flight only."""

    start_call = _sheltered(Middleware.start_call)


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """The calls of Flight. Each is either answered by the service or refused with a fixed text."""

    def __init__(self, location: str, *, service: Service, settings: ServerSettings, **options: Any) -> None:
        self._service = service
        self._settings = settings
        self._results: Kept[pa.Table] = Kept(seconds=settings.result_s, each=_RESULTS, total=_RESULT_BYTES)
        self._statements: Kept[_Prepared] = Kept(seconds=settings.session_s, each=_STATEMENTS, total=_STATEMENT_BYTES)
        super().__init__(location, **options)

    def results_waiting(self) -> int:
        """How many results wait to be fetched."""
        return len(self._results)

    @_sheltered
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Ask a statement or make a listing, and say under which ticket the result waits."""
        principal = _principal(context)
        table = self._asked(context, principal, _command(descriptor))
        ticket = self._results.add(principal, table, table.nbytes)
        if ticket is None:
            raise flight.FlightUnavailableError(NO_ROOM)
        endpoint = flight.FlightEndpoint(wire.packed("TicketStatementQuery", {1: ticket}), [])
        return flight.FlightInfo(table.schema, descriptor, [endpoint], table.num_rows, table.nbytes)

    @_sheltered
    def do_get(self, context: Any, ticket: Any) -> Any:
        """Hand a result over, once."""
        principal = _principal(context)
        message = wire.read(self._bounded(bytes(ticket.ticket)))
        if not isinstance(message, wire.StatementTicket):
            raise flight.FlightServerError(UNSUPPORTED)
        table = self._results.take(message.handle, principal)
        if table is None:
            raise flight.FlightServerError(NO_TICKET)
        return flight.RecordBatchStream(table)

    @_sheltered
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Names and types of a result, without data."""
        principal = _principal(context)
        message = _command(descriptor)
        if isinstance(message, wire.StatementQuery):
            return flight.SchemaResult(self._service.describe_now(principal, message.query))
        return flight.SchemaResult(self._asked(context, principal, message).schema)

    @_sheltered
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Bind one row of values to a prepared statement."""
        principal = _principal(context)
        message = _command(descriptor)
        if not isinstance(message, wire.PreparedStatementQuery):
            raise flight.FlightServerError(UNSUPPORTED)
        prepared = self._prepared(principal, message.handle)
        values, size = self._row(reader)
        kept = _Prepared(prepared.sql, values)
        if not self._statements.replace(message.handle, principal, kept, len(prepared.sql) + size):
            raise flight.FlightUnavailableError(NO_ROOM)
        writer.write(pa.py_buffer(wire.written({1: message.handle})))

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """Prepare a statement, or forget it."""
        # A list, not a generator: what is raised while a generator runs would not be sheltered.
        return iter(self._acted(context, action))

    @_sheltered
    def _acted(self, context: Any, action: Any) -> list[Any]:
        principal = _principal(context)
        if action.type == "CloseSession":
            # What a session of JDBC keeps is its token, which it forgets; nothing else hangs on it.
            return [flight.Result(wire.status(_CLOSED))]
        if action.type == "SetSessionOptions":
            return [flight.Result(_set(wire.options(self._bounded(action.body.to_pybytes()))))]
        if action.type == "GetSessionOptions":
            named = {name: wire.written({1: value.encode()}) for name, value in OPTIONS.items()}
            entries = (wire.written({1: wire.written({1: name.encode(), 2: value})}) for name, value in named.items())
            return [flight.Result(b"".join(entries))]
        if action.type == "CancelQuery":
            request = wire.cancelled_query(self._bounded(action.body.to_pybytes()))
            result = {2: wire.status(self._cancelled(principal, request))}
            return [flight.Result(wire.written({1: _CANCEL_RESULT, **result}))]
        if action.type == "CancelFlightInfo":
            return [flight.Result(wire.status(self._cancelled(principal, action.body.to_pybytes())))]
        if action.type not in ("CreatePreparedStatement", "ClosePreparedStatement"):
            raise flight.FlightServerError(UNSUPPORTED)
        message = wire.read(self._bounded(action.body.to_pybytes()))
        if action.type == "CreatePreparedStatement" and isinstance(message, wire.CreatePreparedStatement):
            return [flight.Result(self._prepare(principal, message))]
        if action.type == "ClosePreparedStatement" and isinstance(message, wire.ClosePreparedStatement):
            self._statements.take(message.handle, principal)
            return []
        raise wire.Malformed(action.type)

    @_sheltered
    def list_actions(self, context: Any) -> list[Any]:
        """What `do_action` does."""
        _principal(context)
        return [
            flight.ActionType("CreatePreparedStatement", "Keeps a statement to be executed with values."),
            flight.ActionType("ClosePreparedStatement", "Forgets such a statement."),
            flight.ActionType("CancelFlightInfo", "Forgets a result that waits to be fetched."),
            flight.ActionType("CancelQuery", "The same, as older clients ask for it."),
            flight.ActionType("GetSessionOptions", "Says the names of the one catalog and schema."),
            flight.ActionType("CloseSession", "Ends a session, which keeps nothing."),
            flight.ActionType(
                "SetSessionOptions", "Takes the names of the one catalog and schema, and refuses others."
            ),
        ]

    @_sheltered
    def list_flights(self, context: Any, criteria: Any) -> Any:  # noqa: ARG002
        """Refused."""
        _principal(context)
        raise flight.FlightServerError(UNSUPPORTED)

    @_sheltered
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:  # noqa: ARG002
        """Refused."""
        _principal(context)
        raise flight.FlightServerError(UNSUPPORTED)

    def _asked(self, context: Any, principal: str, message: wire.Message | None) -> pa.Table:
        if isinstance(message, wire.StatementQuery):
            _no_transaction(message.transaction_id)
            return self._queried(context, principal, _Prepared(message.query))
        if isinstance(message, wire.PreparedStatementQuery):
            return self._queried(context, principal, self._prepared(principal, message.handle))
        if isinstance(message, Listing):
            return listed(message, self._service.guard.catalog)
        raise flight.FlightServerError(UNSUPPORTED)

    def _queried(self, context: Any, principal: str, prepared: _Prepared) -> pa.Table:
        told = self._service.start(principal, prepared.sql, prepared.parameters, client=_address(context))
        answer: Answer = self._service.wait(told, gone=context.is_cancelled)
        if not answer.notes:
            return answer.table
        metadata = answer.table.schema.metadata or {}
        return answer.table.replace_schema_metadata({**metadata, NOTES: json.dumps(answer.notes).encode()})

    def _cancelled(self, principal: str, request: bytes) -> int:
        """Forget the result that a request names by its FlightInfo. A query that runs is cancelled by its call. Returns
        how that went, as CancelStatus."""
        for handle in wire.tickets(self._bounded(request)):
            if self._results.take(handle, principal) is not None:
                return _CANCELLED
        return _NOT_CANCELLABLE

    def _prepare(self, principal: str, message: wire.CreatePreparedStatement) -> bytes:
        _no_transaction(message.transaction_id)
        result = {}
        awaiting = awaited(message.query, self._service.guard.catalog)
        if awaiting:
            result[3] = schema(awaiting).serialize().to_pybytes()
        described = self._described(principal, message.query, neutral(awaiting))
        if described is not None:
            result[2] = described.serialize().to_pybytes()
        handle = self._statements.add(principal, _Prepared(message.query), len(message.query))
        if handle is None:
            raise flight.FlightUnavailableError(NO_ROOM)
        return wire.packed("ActionCreatePreparedStatementResult", {1: handle, **result})

    def _described(self, principal: str, sql: str, values: Sequence[Value]) -> pa.Schema | None:
        """The columns of an answer; None where they are only known with its values. values: what stands for them."""
        try:
            return self._service.describe_now(principal, sql, values)
        except Refused as refusal:
            if refusal.code == PARAMETERS:
                return None
            if not values:
                raise
            # It may be what stands for the values that is refused.
            return self._described(principal, sql, ())

    def _prepared(self, principal: str, handle: bytes) -> _Prepared:
        found = self._statements.get(handle, principal)
        if found is None:
            raise flight.FlightServerError(NO_STATEMENT)
        return found[1]

    def _row(self, reader: Any) -> tuple[Sequence[Value], int]:
        """The one row that a client sends, and its bytes. Raises FlightServerError where there are more or none, or it
        is too long."""
        row: list[Value] | None = [] if not len(reader.schema) else None
        size = 0
        for chunk in reader:
            size += chunk.data.nbytes
            if size > self._settings.max_message_bytes:
                raise flight.FlightServerError(_too_long(self._settings))
            if chunk.data.num_rows > 1 or (chunk.data.num_rows and row):
                raise flight.FlightServerError(ONE_ROW)
            if chunk.data.num_rows:
                row = [column[0].as_py() for column in chunk.data.columns]
        if row is None:
            raise flight.FlightServerError(ONE_ROW)
        return row, size

    def _bounded(self, data: bytes) -> bytes:
        if len(data) > self._settings.max_message_bytes:
            raise flight.FlightServerError(_too_long(self._settings))
        return data


def _set(options: Mapping[str, str | None]) -> bytes:
    """Set a session's options, of which each can be only what it is. Returns a SetSessionOptionsResult with what could
    not be set."""
    wrong = {
        name: _INVALID_NAME if name not in OPTIONS else _INVALID_VALUE
        for name, value in options.items()
        if name not in OPTIONS or value != OPTIONS[name]
    }
    return b"".join(
        wire.written({1: wire.written({1: name.encode(), 2: wire.status(why)})}) for name, why in wrong.items()
    )


def _principal(context: Any) -> str:
    identity = context.get_middleware(_IDENTITY)
    if identity is None:
        raise flight.FlightUnauthenticatedError(LOG_IN)
    return str(identity.principal(_address(context)))


def _address(context: Any) -> str | None:
    """Where a client is, without its port: gRPC says ipv4:192.0.2.1:50051 or ipv6:%5B::1%5D:50051."""
    kind, _, rest = str(context.peer()).partition(":")
    host = rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
    return host if kind in ("ipv4", "ipv6") and host else None


def _command(descriptor: Any) -> wire.Message | None:
    if descriptor.descriptor_type != flight.DescriptorType.CMD:
        raise flight.FlightServerError(UNSUPPORTED)
    return wire.read(bytes(descriptor.command))


def _no_transaction(transaction: bytes) -> None:
    if transaction:
        raise flight.FlightServerError(NO_TRANSACTIONS)


def _too_long(settings: ServerSettings) -> str:
    return f"54000: The message is longer than {settings.max_message_bytes:,} bytes."
