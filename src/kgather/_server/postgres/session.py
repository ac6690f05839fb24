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
    CopyData,
    CopyDone,
    CopyOutResponse,
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
)

from kgather._guard.refused import TOO_COMPLEX
from kgather._server.postgres import copying, errors, parameters, statements
from kgather._server.postgres.asking import Asker, Values
from kgather._server.postgres.catalog import ShadowCatalog, Who
from kgather._server.postgres.cursors import step
from kgather._server.postgres.errors import FatalError, PgError
from kgather._server.postgres.frames import FUNCTION_CALL, OUT_OF_COPY, STATEMENTS, read_frame, statement
from kgather._server.postgres.result import Column, Result, data_rows, row_description, spread
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.statements import (
    Ask,
    Begin,
    CloseCursor,
    Command,
    Copy,
    Declare,
    End,
    Fetch,
    Forget,
    Nothing,
    Savepoint,
    Set,
    Show,
)
from kgather._server.postgres.stream import GoneError, Stream
from kgather._server.postgres.transactions import Transaction
from kgather._server.postgres.types import BINARY, FRACTIONS, STRING, TEXT, WHOLE
from kgather._server.service import Service

_KNOWN = frozenset(STATEMENTS) | {FUNCTION_CALL} | OUT_OF_COPY
_AT_ONCE = 256  # rows between two looks at whether the client takes them
_MOST_STATEMENTS = 1_000
_MOST_PORTALS = 100
_MOST_KEPT = 8 << 20  # bytes of statements and of values
_NO_LIMIT = 1 << 31
_FAILED = "The transaction has failed. Nothing is answered until ROLLBACK."
_SEVERAL = "These are several statements."
_SEVERAL_QUESTIONS = "Several of these statements ask about data."
_OTHERS = "The columns of the result are others now."
_ALONE = "Send each of them in a message of its own."


@dataclass
class Prepared:
    """A prepared statement. declared: types of parameters as the client said; types: all, once they are known."""

    text: str
    command: Command
    declared: Sequence[int] = ()
    types: tuple[int, ...] | None = None
    columns: Sequence[Column] | None = None
    refused: bool = False
    """Whether Describe was answered by an error."""


@dataclass
class Portal:
    """A statement with values. result: once it was asked; at: as of a cursor, 0 before the first row."""

    prepared: Prepared
    raw: Sequence[bytes | None] = ()
    formats: Sequence[int] = ()
    result_formats: Sequence[int] = ()
    columns: Sequence[Column] | None = None
    result: Result | None = None
    at: int = 0
    done: bool = False
    cursor: Declare | None = None
    """How it was declared, of a cursor of SQL."""
    born: int = 0
    kept: bool = False
    """Whether the transaction that made it was committed."""
    tag: str = "SELECT"

    def values(self) -> Values:
        """The values of the statement's parameters."""
        return Values(self.prepared.types or (), self.prepared.declared, self.raw, self.formats)


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
    stopping: bool = False
    idle: bool = False
    _failed: bool = False
    """Whether there was an error since the last Sync: in the extended protocol all up to the next is skipped."""

    def __post_init__(self) -> None:
        self.asker = Asker(self.who, self.settings, self.service, self.shadow, self.pool)
        self.transaction = Transaction(self.settings)

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
        self.asker.cancel()

    async def _take(self, kind: bytes, content: bytes) -> None:
        """Answer one message. After an error in the extended protocol everything up to Sync is skipped."""
        if kind in OUT_OF_COPY or (self._failed and kind != b"S"):
            return
        alone = kind in (b"Q", FUNCTION_CALL)
        try:
            if kind == FUNCTION_CALL:
                raise PgError(errors.NOT_SUPPORTED, "Functions are not called by the protocol.", hint="Use SELECT.")
            message = statement(kind, content)
            if kind != b"S":
                self.transaction.start(several=self.transaction.several)
            await self._answer(message)
        except (FatalError, GoneError, ConnectionError):
            raise
        except PgError as error:
            self._fail(error)
        except Exception as error:  # of this statement; the connection goes on
            self._fail(PgError(errors.INTERNAL, errors.unforeseen(error)))
        if alone or kind == b"S":
            self._finish()

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

    def _finish(self) -> None:
        """The message, or the pipeline up to Sync, is over: so is the transaction, if it was implicit."""
        failed, self._failed = self._failed, False
        if self.transaction.status == "I":
            self._drop(commit=not failed)
        self._tell(self.transaction.finish(failed=failed))
        self._ready()

    def _ready(self) -> None:
        self._send(ReadyForQuery(status=TransactionStatus(self.transaction.status)))

    def _fail(self, error: PgError) -> None:
        self._failed = True
        self.transaction.fail()
        self._send(error.response())

    def _warn(self, code: str, message: str) -> None:
        if self.settings.takes_warnings:
            self._send(errors.notice(message, code, "WARNING"))

    def _send(self, *messages: PGMessage) -> None:
        for message in messages:
            self.stream.write(message.to_wire())

    # The simple protocol

    async def _simple(self, text: str) -> None:
        self.portals.pop("", None)
        self.prepared.pop("", None)
        commands = self._read(text)
        if len(commands) > 1:
            await self._check_questions(commands)
        for command in commands:
            # Behind a COMMIT the next transaction begins.
            self.transaction.start(several=len(commands) > 1)
            await self._run(Portal(Prepared(text, command)), _NO_LIMIT, describing=True)

    async def _check_questions(self, commands: Sequence[Command]) -> None:
        """One message asks the guard one question at most, so that one refusal is about one question. A message that
        cannot be read is an error as a whole, before anything in it is done."""
        asked = [command.ask if isinstance(command, Declare | Copy) else command for command in commands]
        guarded = []
        for ask in asked:
            if isinstance(ask, Ask) and await self.asker.is_guarded(ask):
                guarded.append(ask)
            if len(guarded) > 1:
                raise PgError(errors.NOT_SUPPORTED, _SEVERAL_QUESTIONS, guarded[1].start + 1, _ALONE)
        for ask in asked:
            if isinstance(ask, Ask):
                await self.asker.check_syntax(ask)

    # The extended protocol

    def _parse(self, message: Parse) -> None:
        if message.statement and message.statement in self.prepared:
            raise PgError(errors.STATEMENT_EXISTS, "There is a prepared statement of this name.")
        if len(self.prepared) >= _MOST_STATEMENTS:
            raise PgError(errors.TOO_MUCH_KEPT, f"A connection prepares {_MOST_STATEMENTS:,} statements at most.")
        self._check_room(len(message.query))
        if len(message.param_types) > parameters.MOST:
            raise PgError(errors.PROTOCOL, f"A statement takes {parameters.MOST:,} parameters at most.")
        if not message.statement:
            self.prepared.pop("", None)
        commands = self._read(message.query)
        if len(commands) > 1:
            raise PgError(errors.SYNTAX, _SEVERAL, hint="A prepared statement is one. " + _ALONE)
        self._may_go_on(commands[0])
        self.prepared[message.statement] = Prepared(message.query, commands[0], tuple(message.param_types))
        self._send(ParseComplete())

    async def _bind(self, message: Bind) -> None:
        prepared = self._statement(message.statement)
        if message.portal and message.portal in self.portals:
            raise PgError(errors.PORTAL_EXISTS, "There is a portal of this name.")
        self._check_portals()
        if prepared.refused and self.transaction.status == "E":
            # pg8000 writes Bind before it reads what Describe says, and sends it with ROLLBACK, which an error here
            # would skip. Execute says that the transaction has failed.
            self.portals[message.portal] = Portal(prepared, done=True, born=self._born())
            self._send(BindComplete())
            return
        self._may_go_on(prepared.command)
        self._check_room(_size(message.param_values))
        count = len(message.param_values)
        formats, result_formats = message.param_formats, message.result_formats
        if len(formats) not in (0, 1, count) or not {*formats, *result_formats} <= {TEXT, BINARY}:
            raise PgError(errors.PROTOCOL, "The formats of the parameters or of the result are not as they have to be.")
        expected = len(await self._types(prepared))
        if count != expected:
            raise PgError(errors.PROTOCOL, f"The statement takes {expected} parameters, {count} are given.")
        portal = Portal(
            prepared, tuple(message.param_values), spread(formats, count), tuple(result_formats), born=self._born()
        )
        self.asker.check_values(portal.values())
        self.portals[message.portal] = portal
        self._send(BindComplete())

    async def _describe(self, message: Describe) -> None:
        if message.kind == "S":
            prepared = self._statement(message.name)
            self._may_go_on(prepared.command)
            try:
                types = await self._types(prepared)
                if prepared.columns is None or isinstance(prepared.command, Fetch):
                    prepared.columns = await self._columns(prepared, None)
            except PgError:
                prepared.refused = True
                raise
            self._send(ParameterDescription(type_oids=list(types)))
            self._describe_columns(prepared.columns, ())
        elif message.kind == "P":
            portal = self._portal(message.name)
            self._may_go_on(portal.prepared.command)
            if portal.columns is None:
                portal.columns = await self._columns_of_portal(portal)
            self._describe_columns(portal.columns, portal.result_formats)
        else:
            raise PgError(errors.PROTOCOL, "What is described is neither a statement nor a portal.")

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
            raise PgError(errors.PROTOCOL, "What is closed is neither a statement nor a portal.")
        self._send(CloseComplete())

    def _check_portals(self) -> None:
        if len(self.portals) >= _MOST_PORTALS:
            raise PgError(errors.TOO_MUCH_KEPT, f"A connection keeps {_MOST_PORTALS} portals at most.")

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
            raise PgError(errors.NO_SUCH_PORTAL, "There is no portal or cursor of this name.")
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
        if self.transaction.status == "E" and not isinstance(command, End | Nothing) and not goes_back:
            raise PgError(errors.IN_FAILED_TRANSACTION, _FAILED)

    async def _types(self, prepared: Prepared) -> tuple[int, ...]:
        """The types of a statement's parameters."""
        if prepared.types is None:
            ask = statements.parameters_of(prepared.command)
            prepared.types = tuple(prepared.declared) if ask is None else await self.asker.types(ask, prepared.declared)
        return prepared.types

    async def _columns(self, prepared: Prepared, portal: Portal | None) -> list[Column]:
        """The columns of the result, without any data. Raises PgError where the statement is refused."""
        command = prepared.command
        if isinstance(command, Show):
            return list(_shown(self.settings, command.name)[0])
        if isinstance(command, Fetch) and not command.moves:
            return await self._columns_of(command.name)
        if portal is not None and portal.cursor is not None and portal.result is not None:
            return list(portal.result.columns)
        if not isinstance(command, Ask):
            return []
        return await self.asker.columns(
            command, await self._types(prepared), portal.values() if portal is not None else None
        )

    async def _columns_of_portal(self, portal: Portal) -> Sequence[Column]:
        """As those of its statement, which do not depend on values; where that says nothing without values, as of
        these."""
        prepared = portal.prepared
        if not portal.raw or not isinstance(prepared.command, Ask):
            return await self._columns(prepared, portal)
        if prepared.columns is None:
            try:
                prepared.columns = await self._columns(prepared, None)
            except PgError:
                return await self._columns(prepared, portal)
        return prepared.columns

    async def _run(self, portal: Portal, most: int, *, describing: bool) -> None:
        """Execute a portal, or go on with one."""
        command = portal.prepared.command
        self._may_go_on(command)
        if portal.done and portal.result is None:
            raise PgError(errors.NO_SUCH_PORTAL, "The portal was executed to its end.")
        if isinstance(command, Nothing):
            self._send(EmptyQueryResponse())
            return
        if isinstance(command, Copy):
            portal.done = True
            await self._copy(command, portal)
            return
        if portal.result is None:
            portal.result = await self._rows_of(command, portal)
        if portal.result is not None:
            await self._rows(portal, most, describing=describing)
        else:
            portal.done = True
            self._send(CommandComplete(tag=await self._command(command, portal)))

    async def _rows_of(self, command: Command, portal: Portal) -> Result | None:
        """The rows that a statement gives; None of one that gives none."""
        if isinstance(command, Show):
            portal.tag = "SHOW"
            columns, rows = _shown(self.settings, command.name)
            return Result.of_rows(columns, rows)
        if isinstance(command, Ask):
            return await self._asked(command, portal)
        if isinstance(command, Fetch) and not command.moves:
            portal.tag = "FETCH"
            await self._started(command.name)
            cursor = self._portal(command.name)
            if cursor.cursor is not None and cursor.cursor.binary and not portal.result_formats:
                portal.result_formats = (BINARY,)
            return self._result(command.name).picked(self._step(command))
        return None

    async def _rows(self, portal: Portal, most: int, *, describing: bool) -> None:
        result = portal.result
        assert result is not None
        columns, formats = result.columns, portal.result_formats
        if portal.columns is not None or portal.prepared.columns is not None:
            # The client was told which columns there are.
            told = portal.columns if portal.columns is not None else portal.prepared.columns or ()
            if [column.name for column in told] != [column.name for column in columns]:
                raise PgError(errors.NOT_SUPPORTED, _OTHERS, hint="Prepare it again.")
            if any(
                column.type.oid in WHOLE and other.type.oid in FRACTIONS
                for column, other in zip(told, columns, strict=True)
            ):
                raise PgError(errors.NOT_SUPPORTED, _OTHERS, hint="Prepare it again.")
            columns = tuple(told)
        self._check_formats(columns, formats)
        if describing and columns:
            self.stream.write(row_description(columns, formats))
        start = min(portal.at, result.count)
        end = min(start + most, result.count)
        for at in range(start, end, _AT_ONCE):
            portal.at = min(at + _AT_ONCE, end)
            self.stream.write(b"".join(data_rows(columns, result.portion(at, portal.at), formats)))
            await self.stream.drain()
        if end < result.count or end - start == most:
            # As in PostgreSQL: whether that was all is known when the next row is asked for.
            self._send(PortalSuspended())
            return
        portal.at = result.count + 1
        self._send(CommandComplete(tag="SHOW" if portal.tag == "SHOW" else f"{portal.tag} {end - start}"))

    async def _asked(self, ask: Ask, portal: Portal) -> Result:
        """The whole answer to a question; what is told beside it is sent. Raises PgError."""
        if portal.raw:
            await self._types(portal.prepared)
        answered = await self.asker.answer(ask, portal.values())
        for name, value, local in answered.settings:
            self._tell([self.settings.set(name, value, local=local)])
        if self.settings.takes_notices:
            self._send(*(errors.notice(note) for note in answered.notes))
        return answered.result

    # COPY and cursors

    async def _copy(self, command: Copy, portal: Portal) -> None:
        result = await self._asked(command.ask, portal)
        form, columns = command.form, result.columns
        self._send(CopyOutResponse(overall_format=form.code, col_formats=[form.code] * len(columns)))
        starts = range(0, result.count, _AT_ONCE)
        portions = (result.portion(at, min(at + _AT_ONCE, result.count)) for at in starts)
        for lines in copying.messages(form, columns, portions):
            self.stream.write(b"".join(CopyData(data=line).to_wire() for line in lines))
            await self.stream.drain()
        self._send(CopyDone(), CommandComplete(tag=f"COPY {result.count}"))

    async def _declare(self, command: Declare, portal: Portal) -> None:
        """Ask now: what is fetched later was computed, and charged, once."""
        if not command.hold and not self.transaction.is_block:
            told = "A cursor lives in a transaction."
            raise PgError(errors.NO_TRANSACTION, told, hint="BEGIN first, or declare it WITH HOLD.")
        if command.name in self.portals:
            raise PgError(errors.PORTAL_EXISTS, "There is a cursor of this name.")
        self._check_portals()
        result = await self._asked(command.ask, portal)
        formats = (BINARY,) if command.binary else ()
        self.portals[command.name] = Portal(
            portal.prepared, result_formats=formats, result=result, cursor=command, born=self._born()
        )

    async def _columns_of(self, name: str) -> list[Column]:
        """The columns of a cursor, or of a portal that may not have been asked yet. Raises PgError."""
        portal = self._portal(name)
        if portal.result is None and isinstance(portal.prepared.command, Ask):
            return await self._columns(portal.prepared, portal)
        return list(self._result(name).columns)

    async def _started(self, name: str) -> None:
        """A portal that was only bound is asked with the first FETCH or MOVE, as with Execute. Raises PgError."""
        portal = self._portal(name)
        if portal.result is None and not portal.done and isinstance(portal.prepared.command, Ask):
            portal.result = await self._asked(portal.prepared.command, portal)

    def _result(self, name: str) -> Result:
        """The rows of a cursor, or of a portal that was asked. Raises PgError."""
        found = self._portal(name).result
        if found is None:
            raise PgError(errors.OBJECT_STATE, "The portal was not executed yet.", hint="Use DECLARE, or Execute.")
        return found

    def _step(self, command: Fetch) -> range:
        """Move a cursor: the numbers of the rows that it comes by."""
        portal, count = self._portal(command.name), self._result(command.name).count
        made = step(command.direction, portal.at, count, scrolls=portal.cursor is not None and portal.cursor.scrolls)
        portal.at = made.at
        return made.rows

    def _born(self) -> int:
        self.transaction.born += 1
        return self.transaction.born

    def _drop(self, *, commit: bool) -> None:
        """A transaction ends, and with it the portals of it that are not to be held."""
        left = {}
        for name, portal in self.portals.items():
            if portal.cursor is not None and portal.cursor.hold and (commit or portal.kept):
                portal.kept = True
                left[name] = portal
        self.portals = left

    # Statements about the connection itself

    async def _command(self, command: Command, portal: Portal) -> str:
        """Do what a statement about the connection says; the word that the client is told. Raises PgError."""
        if isinstance(command, Declare):
            await self._declare(command, portal)
            return "DECLARE CURSOR"
        if isinstance(command, Fetch):
            await self._started(command.name)
            return f"MOVE {len(self._step(command))}"
        if isinstance(command, CloseCursor):
            return self._close_cursor(command)
        if isinstance(command, Begin):
            if self.transaction.status == "T":
                self._warn(errors.IN_TRANSACTION, "There is a transaction already.")
            self.transaction.begin()
            return command.tag
        if isinstance(command, End):
            return self._end(command)
        if isinstance(command, Savepoint):
            return self._savepoint(command)
        if isinstance(command, Set):
            if command.local and not self.transaction.is_block:
                self._warn(errors.NO_TRANSACTION, "SET LOCAL is for transactions: it changes nothing here.")
            self._tell([self.settings.set(command.name, command.value, local=command.local)])
            return command.tag
        assert isinstance(command, Forget)
        return self._forget(command)

    def _end(self, command: End) -> str:
        if self.transaction.status == "I":
            if command.chain:
                raise PgError(errors.NO_TRANSACTION, "AND CHAIN is for transactions.", hint="BEGIN first.")
            self._warn(errors.NO_TRANSACTION, "There is no transaction.")
        commit = command.commit and self.transaction.status != "E"
        self._drop(commit=commit)
        self._tell(self.transaction.end(commit=commit))
        if command.chain:
            self.transaction.begin()
        return "COMMIT" if commit else "ROLLBACK"

    def _savepoint(self, command: Savepoint) -> str:
        if command.action == "SAVEPOINT":
            self.transaction.savepoint(command.name)
        elif command.action == "RELEASE":
            self.transaction.release(command.name)
        else:
            born, told = self.transaction.back_to(command.name)
            self.portals = {name: each for name, each in self.portals.items() if each.born < born}
            self._tell(told)
        return command.action

    def _close_cursor(self, command: CloseCursor) -> str:
        if command.name is None:
            self.portals = {name: each for name, each in self.portals.items() if each.cursor is None}
            return "CLOSE CURSOR ALL"
        self._portal(command.name)
        del self.portals[command.name]
        return "CLOSE CURSOR"

    def _forget(self, command: Forget) -> str:
        if command.settings:
            self._tell(self.settings.reset())
        if command.statements:
            if command.tag.startswith("DISCARD") and self.transaction.is_block:
                raise PgError(errors.IN_TRANSACTION, "DISCARD ALL is not for transactions.")
            self.prepared.clear()
        if command.portals:
            self.portals.clear()
        if command.statement is not None and self.prepared.pop(command.statement, None) is None:
            raise PgError(errors.NO_SUCH_STATEMENT, "There is no prepared statement of this name.")
        return command.tag

    def _tell(self, names: Sequence[str | None]) -> None:
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
