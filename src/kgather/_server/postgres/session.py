"""The conversation with a client that has logged in: simple and extended queries, and what a connection keeps.

Every question is checked when it is asked, with the values it is asked with; nothing that a client prepares is trusted
later. A whole protected result is there before its first row is sent.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pygwire.constants import TransactionStatus
from pygwire.messages import (
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    Describe,
    EmptyQueryResponse,
    Execute,
    NoData,
    ParameterDescription,
    ParameterStatus,
    Parse,
    ParseComplete,
    PGMessage,
    PortalSuspended,
    Query,
    ReadyForQuery,
    Sync,
)

from kgather._guard.describe import neutral
from kgather._guard.refused import TOO_COMPLEX, Refused
from kgather._server.postgres import errors, parameters, statements
from kgather._server.postgres.catalog import ShadowCatalog, Who
from kgather._server.postgres.catalog_sql import Question, may_ask
from kgather._server.postgres.errors import FatalError, PgError
from kgather._server.postgres.frames import FUNCTION_CALL, OUT_OF_COPY, STATEMENTS, decoded, read_frame
from kgather._server.postgres.result import Column, Result, columns_of, data_rows, row_description, spread
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.statements import Ask, Begin, Command, End, Forget, Nothing, Savepoint, Set, Show
from kgather._server.postgres.stream import Stream
from kgather._server.postgres.types import BINARY, STRING, TEXT
from kgather._server.service import Cancel, Internal, Service, Unavailable

_KNOWN = frozenset(STATEMENTS) | {FUNCTION_CALL} | OUT_OF_COPY
_AT_ONCE = 256  # rows between two looks at whether the client takes them
_MOST_STATEMENTS = 1_000
_MOST_PORTALS = 100
_MOST_SAVEPOINTS = 1_000
_MOST_KEPT = 8 << 20  # bytes of statements and of values
_NO_LIMIT = 1 << 31
_FAILED = "The transaction has failed. Nothing is answered until ROLLBACK."


@dataclass
class Prepared:
    """A prepared statement. declared: types of parameters as the client said; types: all, once they are known."""

    text: str
    commands: Sequence[Command]
    declared: Sequence[int]
    types: tuple[int, ...] | None = None
    columns: Sequence[Column] | None = None


@dataclass
class Portal:
    """A statement with values. result: once it was asked; at: the next row to send."""

    prepared: Prepared
    raw: Sequence[bytes | None]
    formats: Sequence[int]
    result_formats: Sequence[int]
    columns: Sequence[Column] | None = None
    result: Result | None = None
    at: int = 0
    done: bool = False


@dataclass
class Session:
    """One client. shadow: gives the catalog that it sees; pool: threads for questions about that."""

    stream: Stream
    who: Who
    settings: Settings
    service: Service
    shadow: Callable[[], ShadowCatalog]
    pool: Executor
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    status: str = "I"
    savepoints: list[str] = field(default_factory=list)
    stopping: bool = False
    idle: bool = False
    _cancel: Cancel | None = None
    _skipping: bool = False

    async def run(self) -> None:
        """Talk until the client leaves. Raises FatalError where the conversation cannot go on, and GoneError."""
        self.stream.lost = self.cancel
        self._ready()
        await self.stream.drain()
        limits = self.service.settings
        while True:
            if self.stopping:
                raise FatalError(errors.SHUTTING_DOWN, "The server is shutting down.")
            self.idle = not self.stream.buffered
            try:
                async with asyncio.timeout(limits.idle_timeout_s):
                    kind, content = await read_frame(self.stream, _KNOWN, limits.max_message_bytes)
            except TimeoutError:
                raise FatalError(errors.IDLE, "Nothing was asked for too long.") from None
            self.idle = False
            if kind == b"X":
                return
            await self._take(kind, content)
            await self.stream.drain()

    def cancel(self) -> None:
        """End the question that is being asked, if there is one."""
        if self._cancel is not None:
            self._cancel.cancel()

    async def _take(self, kind: bytes, content: bytes) -> None:
        """Answer one message. After an error in the extended protocol everything up to Sync is skipped."""
        if kind in OUT_OF_COPY:
            return
        if self._skipping and kind != b"S":
            return
        try:
            if kind == FUNCTION_CALL:
                raise PgError(errors.NOT_SUPPORTED, "Functions are not called by the protocol. Ask with SELECT.")
            await self._answer(decoded(STATEMENTS[kind], content))
        except FatalError:
            raise
        except PgError as error:
            self._fail(error)
            self._skipping = kind not in (b"Q", FUNCTION_CALL)
        if kind in (b"Q", FUNCTION_CALL):
            self._ready()

    async def _answer(self, message: PGMessage) -> None:
        if isinstance(message, Query):
            await self._simple(message.query_string)
        elif isinstance(message, Parse):
            self._parse(message)
        elif isinstance(message, Bind):
            await self._bind(message)
        elif isinstance(message, Describe):
            await self._describe(message)
        elif isinstance(message, Execute):
            await self._execute(message)
        elif isinstance(message, Close):
            self._close(message)
        elif isinstance(message, Sync):
            self._skipping = False
            self._ready()

    def _ready(self) -> None:
        if self.status == "I":
            # Without a transaction a portal lives until here.
            self.portals.clear()
        self._send(ReadyForQuery(status=TransactionStatus(self.status)))

    def _fail(self, error: PgError) -> None:
        if self.status == "T":
            self.status = "E"
        self._send(error.response())

    def _send(self, *messages: PGMessage) -> None:
        for message in messages:
            self.stream.write(message.to_wire())

    # The simple protocol

    async def _simple(self, text: str) -> None:
        self.portals.pop("", None)
        self.prepared.pop("", None)
        for command in self._read(text):
            portal = Portal(Prepared(text, (command,), ()), (), (), ())
            await self._run(portal, _NO_LIMIT, describing=True)

    # The extended protocol

    def _parse(self, message: Parse) -> None:
        if message.statement and message.statement in self.prepared:
            raise PgError(errors.STATEMENT_EXISTS, "There is a prepared statement of this name.")
        if len(self.prepared) >= _MOST_STATEMENTS:
            raise PgError(errors.TOO_MUCH_KEPT, f"A connection prepares {_MOST_STATEMENTS:,} statements at most.")
        self._check_room(len(message.query))
        if len(message.param_types) > parameters.MOST:
            raise PgError(errors.PROTOCOL, f"A statement takes {parameters.MOST:,} parameters at most.")
        commands = self._read(message.query)
        if len(commands) > 1:
            raise PgError(errors.SYNTAX, "These are several statements. Send one at a time.")
        self.prepared[message.statement] = Prepared(message.query, commands, tuple(message.param_types))
        self._send(ParseComplete())

    async def _bind(self, message: Bind) -> None:
        prepared = self._statement(message.statement)
        if message.portal and message.portal in self.portals:
            raise PgError(errors.PORTAL_EXISTS, "There is a portal of this name.")
        if len(self.portals) >= _MOST_PORTALS:
            raise PgError(errors.TOO_MUCH_KEPT, f"A connection keeps {_MOST_PORTALS} portals at most.")
        self._may_go_on(prepared.commands[0])
        self._check_room(_size(message.param_values))
        count = len(message.param_values)
        formats, result_formats = message.param_formats, message.result_formats
        if len(formats) not in (0, 1, count) or not {*formats, *result_formats} <= {TEXT, BINARY}:
            raise PgError(errors.PROTOCOL, "The formats of the parameters or of the result are not as they have to be.")
        expected = len(await self._types(prepared))
        if count != expected:
            raise PgError(errors.PROTOCOL, f"The statement takes {expected} parameters, {count} are given.")
        self.portals[message.portal] = Portal(
            prepared, tuple(message.param_values), spread(formats, count), tuple(result_formats)
        )
        self._send(BindComplete())

    async def _describe(self, message: Describe) -> None:
        if message.kind == "S":
            prepared = self._statement(message.name)
            self._may_go_on(prepared.commands[0])
            types = await self._types(prepared)
            if prepared.columns is None:
                prepared.columns = await self._columns(prepared, None)
            self._send(ParameterDescription(type_oids=list(types)))
            self._describe_columns(prepared.columns, ())
        elif message.kind == "P":
            portal = self._portal(message.name)
            self._may_go_on(portal.prepared.commands[0])
            if portal.columns is None:
                portal.columns = await self._columns(portal.prepared, portal)
            self._describe_columns(portal.columns, portal.result_formats)
        else:
            errors.violate("what is described is neither a statement nor a portal")

    def _describe_columns(self, columns: Sequence[Column], formats: Sequence[int]) -> None:
        if not columns:
            self._send(NoData())
            return
        self._check_formats(columns, formats)
        self.stream.write(row_description(columns, formats))

    async def _execute(self, message: Execute) -> None:
        portal = self._portal(message.portal)
        rows = message.max_rows if 0 < message.max_rows < _NO_LIMIT else _NO_LIMIT
        await self._run(portal, rows, describing=False)

    def _close(self, message: Close) -> None:
        if message.kind == "S":
            gone = self.prepared.pop(message.name, None)
            if gone is not None:
                self.portals = {name: each for name, each in self.portals.items() if each.prepared is not gone}
        elif message.kind == "P":
            self.portals.pop(message.name, None)
        else:
            errors.violate("what is closed is neither a statement nor a portal")
        self._send(CloseComplete())

    def _check_room(self, more: int) -> None:
        """There is an end to what a connection has the server keep."""
        kept = sum(len(each.text) for each in self.prepared.values())
        kept += sum(_size(each.raw) for each in self.portals.values())
        if kept + more > _MOST_KEPT:
            raise PgError(errors.TOO_MUCH_KEPT, "The connection's statements and values are too large together.")

    def _statement(self, name: str) -> Prepared:
        found = self.prepared.get(name)
        if found is None:
            raise PgError(errors.NO_SUCH_STATEMENT, "There is no prepared statement of this name.")
        return found

    def _portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise PgError(errors.NO_SUCH_PORTAL, "There is no portal of this name.")
        return found

    def _check_formats(self, columns: Sequence[Column], formats: Sequence[int]) -> None:
        if len(formats) not in (0, 1, len(columns)):
            raise PgError(errors.PROTOCOL, "There are not as many formats as columns.")

    # What statements mean

    def _read(self, text: str) -> list[Command]:
        longest = self.service.guard.policy.limits_of(self.who.user).statement_bytes
        if len(text.encode()) > longest:
            raise PgError(TOO_COMPLEX, f"The statement is longer than {longest} bytes.")
        return statements.read(text)

    def _may_go_on(self, command: Command) -> None:
        """In a transaction that has failed there is only its end."""
        goes_back = isinstance(command, Savepoint) and command.action == "ROLLBACK"
        if self.status == "E" and not isinstance(command, End | Nothing) and not goes_back:
            raise PgError(errors.IN_FAILED_TRANSACTION, _FAILED)

    async def _types(self, prepared: Prepared) -> tuple[int, ...]:
        """The types of a statement's parameters."""
        if prepared.types is None:
            if not isinstance(prepared.commands[0], Ask):
                prepared.types = tuple(prepared.declared)
            else:
                prepared.types = await self._elsewhere(self._guessed, prepared)
        return prepared.types

    def _guessed(self, prepared: Prepared) -> tuple[int, ...]:
        question = self.shadow().question(prepared.text)
        if question is None:
            return parameters.guessed(prepared.text, prepared.declared, self.service.guard.catalog)
        count = max(len(prepared.declared), len(question.types))
        said = [*prepared.declared, *[0] * (count - len(prepared.declared))]
        cast = [*question.types, *[0] * (count - len(question.types))]
        return tuple(one or other or STRING.oid for one, other in zip(said, cast, strict=True))

    async def _columns(self, prepared: Prepared, portal: Portal | None) -> list[Column]:
        """The columns of the result, without any data. Raises PgError where the statement is refused."""
        command = prepared.commands[0]
        if isinstance(command, Show):
            return list(_shown(self.settings, command.name)[0])
        if not isinstance(command, Ask):
            return []
        values = self._values(portal) if portal is not None else None
        question = await self._question(prepared.text, values)
        if question is not None:
            return await self._elsewhere(self.shadow().columns, question, self.who, self.settings, pool=self.pool)
        if values is None:
            values = neutral(parameters.kinds(await self._types(prepared)))
        else:
            parameters.kinds(await self._types(prepared))
        try:
            return columns_of(await self.service.describe(self.who.user, prepared.text, values))
        except (Refused, Unavailable, Internal) as error:
            raise errors.told(error) from None

    async def _run(self, portal: Portal, most: int, *, describing: bool) -> None:
        """Execute a portal, or go on with one."""
        command = portal.prepared.commands[0]
        self._may_go_on(command)
        if portal.done and portal.result is None:
            raise PgError(errors.NO_SUCH_PORTAL, "The portal was executed to its end.")
        if isinstance(command, Nothing):
            self._send(EmptyQueryResponse())
        elif isinstance(command, Ask | Show):
            if portal.result is None:
                portal.result = (
                    await self._asked(portal)
                    if isinstance(command, Ask)
                    else Result.of_rows(*_shown(self.settings, command.name))
                )
            await self._rows(portal, most, "SHOW" if isinstance(command, Show) else "SELECT", describing=describing)
        else:
            portal.done = True
            self._send(CommandComplete(tag=self._command(command)))

    async def _rows(self, portal: Portal, most: int, tag: str, *, describing: bool) -> None:
        result = portal.result
        assert result is not None
        columns, formats = result.columns, portal.result_formats
        if portal.columns is not None or portal.prepared.columns is not None:
            # The client was told which columns there are.
            told = portal.columns if portal.columns is not None else portal.prepared.columns or ()
            if [column.name for column in told] != [column.name for column in columns]:
                raise PgError(
                    errors.NOT_SUPPORTED, "The columns of the result are others now. Prepare the statement again."
                )
            columns = tuple(told)
        self._check_formats(columns, formats)
        if describing and columns:
            self.stream.write(row_description(columns, formats))
        end = min(portal.at + most, result.count)
        sent = end - portal.at
        while portal.at < end:
            upto = min(portal.at + _AT_ONCE, end)
            self.stream.write(b"".join(data_rows(columns, result.portion(portal.at, upto), formats)))
            portal.at = upto
            await self.stream.drain()
        if portal.at < result.count:
            self._send(PortalSuspended())
        else:
            self._send(CommandComplete(tag=tag if tag == "SHOW" else f"{tag} {sent}"))

    async def _asked(self, portal: Portal) -> Result:
        try:
            return await self._whole(portal)
        finally:
            self._cancel = None

    async def _whole(self, portal: Portal) -> Result:
        """The whole answer to a question, checked with the values of this portal. Raises PgError."""
        text = portal.prepared.text
        values = self._values(portal)
        self._cancel = cancel = Cancel()
        question = await self._question(text, values)
        if question is not None:
            result = await self._elsewhere(self.shadow().answer, question, self.who, self.settings, pool=self.pool)
            for name, value in question.settings:
                self._tell(self.settings.set(name, value))
            return result
        if portal.raw:
            parameters.kinds(await self._types(portal.prepared))
        try:
            table = await self.service.ask(
                self.who.user, text, values, cancel=cancel, timeout_ms=self.settings.timeout_ms
            )
            return Result.of_table(table)
        except (Refused, Unavailable, Internal) as error:
            raise errors.told(error) from None

    async def _question(self, text: str, values: Sequence[Any] | None) -> Question | None:
        """What a statement asks of the catalog, None where it asks of data. Raises PgError."""
        if not may_ask(text):
            return None
        found: Question | None = await self._elsewhere(self.shadow().question, text, values)
        for name, value in found.settings if found is not None else ():
            Settings(self.settings.first).set(name, value)  # refused before anything is answered
        return found

    def _values(self, portal: Portal) -> tuple[Any, ...]:
        types = portal.prepared.types or ()
        if not portal.raw:
            return ()
        return parameters.values(types, portal.raw, portal.formats, self.settings.zone)

    async def _elsewhere(self, work: Callable[..., Any], *arguments: Any, pool: Executor | None = None) -> Any:
        """Do something in a thread, so that other clients need not wait. pool: None for what is quick."""
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)

    # Statements about the connection itself

    def _command(self, command: Command) -> str:
        """Do what a statement about the connection says; the word that the client is told. Raises PgError."""
        if isinstance(command, Begin):
            self.status = "T"
            return command.tag
        if isinstance(command, End):
            committed = command.commit and self.status != "E"
            self.status = "I"
            self.savepoints.clear()
            self.portals.clear()
            return "COMMIT" if committed else "ROLLBACK"
        if isinstance(command, Savepoint):
            return self._savepoint(command)
        if isinstance(command, Set):
            self._tell(self.settings.set(command.name, command.value))
            return command.tag
        assert isinstance(command, Forget)
        if command.settings:
            self._tell(*self.settings.reset())
        if command.statements:
            self.prepared.clear()
            self.portals.clear()
        if command.statement is not None and self.prepared.pop(command.statement, None) is None:
            raise PgError(errors.NO_SUCH_STATEMENT, "There is no prepared statement of this name.")
        return command.tag

    def _savepoint(self, command: Savepoint) -> str:
        if self.status == "I":
            raise PgError(errors.NO_TRANSACTION, "Savepoints are for transactions. BEGIN first.")
        if command.action == "SAVEPOINT":
            if len(self.savepoints) >= _MOST_SAVEPOINTS:
                raise PgError(errors.TOO_MUCH_KEPT, f"A transaction has {_MOST_SAVEPOINTS:,} savepoints at most.")
            self.savepoints.append(command.name)
            return "SAVEPOINT"
        if command.name not in self.savepoints:
            raise PgError(errors.NO_SUCH_SAVEPOINT, "There is no savepoint of this name.")
        at = len(self.savepoints) - 1 - self.savepoints[::-1].index(command.name)
        if command.action == "RELEASE":
            del self.savepoints[at:]
            return "RELEASE"
        del self.savepoints[at + 1 :]
        self.status = "T"
        return "ROLLBACK"

    def _tell(self, *names: str | None) -> None:
        for name in names:
            if name is not None:
                self._send(ParameterStatus(name=name, value=self.settings.get(name)))


def _shown(settings: Settings, name: str) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
    """What SHOW answers."""
    if name == "all":
        columns = tuple(Column(each, STRING) for each in ("name", "setting", "description"))
        return columns, [(each, value, "") for each, value in settings.all().items()]
    return (Column(settings.name(name), STRING),), [(settings.get(name),)]


def _size(values: Sequence[bytes | None]) -> int:
    return sum(len(value) for value in values if value is not None)


def farewell(stream: Stream, error: FatalError) -> None:
    """Say why the connection ends."""
    with suppress(OSError, RuntimeError):
        stream.write(error.response().to_wire())
