"""What a question is, whoever asks it in whichever part of the protocol: of which types its parameters are, which
columns it has, and its answer. It goes to the catalog or to the guard, and nowhere else."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kgather._guard.refused import Refused
from kgather._server.postgres import empty, errors, parameters
from kgather._server.postgres.catalog import ShadowCatalog, Who
from kgather._server.postgres.catalog_sql import Question, may_ask, relations
from kgather._server.postgres.errors import TOLD, PgError
from kgather._server.postgres.result import Column, Result, columns_of
from kgather._server.postgres.session_settings import Settings
from kgather._server.postgres.statements import Ask, reads_relations
from kgather._server.postgres.translation import Said, Template, template
from kgather._server.postgres.types import BY_OID, INTERVAL, INTERVAL_ISO, STRING, PgType, array_of
from kgather._server.service import Cancel, Internal, Service, Unavailable

_log = logging.getLogger("kgather._server.postgres")


@dataclass
class Values:
    """The values of a statement's parameters as they came. types: declared by the client or guessed."""

    types: Sequence[int] = ()
    declared: Sequence[int] = ()
    raw: Sequence[bytes | None] = ()
    formats: Sequence[int] = ()


@dataclass(frozen=True)
class Answered:
    """An answer; notes: what is told beside it; settings: what the question sets, and whether for the
    transaction only."""

    result: Result
    notes: Sequence[str] = ()
    settings: Sequence[tuple[str, str, bool]] = ()


@dataclass
class Asker:
    """Asks for one session. shadow: gives the catalog that it sees; pool: threads for questions about that."""

    who: Who
    settings: Settings
    service: Service
    shadow: Callable[[], ShadowCatalog]
    pool: Executor
    _cancel: Cancel | None = field(default=None, init=False)

    def cancel(self) -> None:
        """End the question that is being asked, if there is one."""
        if self._cancel is not None:
            self._cancel.cancel()

    async def is_guarded(self, ask: Ask) -> bool:
        """Whether a question reads relations that are not the catalog's: only the guard may answer it. Raises PgError
        where it cannot be read; what else is wrong with one about the catalog is told in its turn."""
        if not reads_relations(ask.text):
            return False
        try:
            return await self._question(ask, None) is None
        except PgError as error:
            if error.code == errors.SYNTAX:
                raise
            return False

    async def check_syntax(self, ask: Ask) -> None:
        """Raises PgError where a question about data cannot be read, and for nothing else."""
        try:
            if await self._question(ask, None) is None:
                await self.columns(ask, (), None)
        except PgError as error:
            if error.code == errors.SYNTAX:
                raise

    def check_values(self, values: Values) -> None:
        """Raises PgError for a value that is none of its type. Of which kinds the guard has values is told later."""
        if set(values.types) <= parameters.KNOWN:
            self._values(values)

    async def types(self, ask: Ask, declared: Sequence[int]) -> tuple[int, ...]:
        """The types of a question's parameters. Raises PgError."""
        return await self._elsewhere(self._guessed, ask, declared)

    @contextmanager
    def _watched(self, ask: Ask) -> Iterator[None]:
        """Log which relations a question about the catalog names that is not answered, so that the list can grow."""
        try:
            yield
        except PgError as error:
            if error.message == TOLD or error.code in (errors.UNDEFINED_TABLE, errors.UNDEFINED_COLUMN):
                _log.warning("a question about the catalog was not answered", extra={"relations": relations(ask.text)})
            raise error.moved(ask.start) from None

    async def columns(self, ask: Ask, types: Sequence[int], values: Values | None) -> list[Column]:
        """The columns of the answer, without any data. values: None where they are not known yet. Raises PgError."""
        given = self._values(values) if values is not None else None
        question = await self._question(ask, given)
        if question is not None:
            with self._watched(ask):
                return await self._of_catalog(self.shadow().columns, question)
        made = self._template(ask)
        if given is not None:
            parameters.kinds(types, made.arrays)
            found = await self._described(ask, self._said(ask, made, given))
        elif (wide := parameters.neutral(types, made.arrays, wide=True)) != (
            narrow := parameters.neutral(types, made.arrays)
        ):
            try:
                found = await self._described(ask, self._said(ask, made, wide))
            except PgError:  # as where the number is one of days
                found = await self._described(ask, self._said(ask, made, narrow))
        else:
            found = await self._described(ask, self._said(ask, made, narrow))
        return self._as_declared(found, made, types)

    async def _described(self, ask: Ask, said: Said) -> list[Column]:
        nothing = empty.read(said.text)
        listed = empty.columns(nothing, self.service.guard.catalog) if nothing is not None else None
        if listed is not None:
            return list(listed)
        try:
            schema = await self.service.describe(self.who.user, said.text, said.values, labels=True)
        except (Refused, Unavailable, Internal) as error:
            raise self._told(error, ask, said.place) from None
        return self._shown(columns_of(schema))

    async def answer(self, ask: Ask, values: Values) -> Answered:
        """The whole answer, checked with these values. Raises PgError."""
        try:
            return await self._answer(ask, values)
        finally:
            self._cancel = None

    async def _answer(self, ask: Ask, values: Values) -> Answered:
        given = self._values(values)
        self._cancel = cancel = Cancel()
        question = await self._question(ask, given)
        if question is not None:
            with self._watched(ask):
                result = await self._of_catalog(self.shadow().answer, question, cancel)
            return Answered(result, settings=question.settings)
        made = self._template(ask)
        if values.raw:
            parameters.kinds(values.types, made.arrays)
        said = self._said(ask, made, given)
        nothing = await self._elsewhere(empty.read, said.text)
        if nothing is not None:
            sample = empty.is_sample(nothing)
            if not sample or empty.columns(nothing, self.service.guard.catalog) is not None:
                found = await self._described(ask, said)
                return Answered(Result.of_rows(found, []), (empty.SAMPLE,) if sample else ())
        try:
            answer = await self.service.ask(
                self.who.user,
                said.text,
                said.values,
                cancel=cancel,
                timeout_ms=self.settings.timeout_ms,
                client=self.who.address,
            )
        except (Refused, Unavailable, Internal) as error:
            raise self._told(error, ask, said.place) from None
        result = Result.of_table(answer.table, answer.labels)
        found = self._as_declared(self._shown(result.columns), made, values.types if values.raw else ())
        return Answered(Result(tuple(found), result.count, result.portion), answer.notes)

    def _as_declared(self, columns: list[Column], made: Template, types: Sequence[int]) -> list[Column]:
        """A column that is a parameter and nothing else has its type and no name, whatever the value is."""
        found = list(columns)
        for at, (number, name) in (parameters.bare(made.sketch()) if types else {}).items():
            type_ = BY_OID.get(types[number - 1]) if number not in made.arrays else None
            found[at] = Column(name, type_ or found[at].type)
        return found

    def _guessed(self, ask: Ask, declared: Sequence[int]) -> tuple[int, ...]:
        question = self._asked(ask, None)
        if question is None:
            made = self._template(ask)
            return parameters.guessed(made.sketch(), declared, self.service.guard.catalog, made.arrays, made.count)
        count = max(len(declared), len(question.types))
        said = [*declared, *[0] * (count - len(declared))]
        cast = [*question.types, *[0] * (count - len(question.types))]
        return tuple(one or other or STRING.oid for one, other in zip(said, cast, strict=True))

    async def _question(self, ask: Ask, values: Sequence[Any] | None) -> Question | None:
        """What a statement asks of the catalog, None where it asks of data. Raises PgError."""
        if not may_ask(ask.text):
            return None
        found: Question | None = await self._elsewhere(self._asked, ask, values)
        for name, value, _ in found.settings if found is not None else ():
            Settings(self.settings.first).set(name, value)  # refused before anything is answered
        return found

    def _asked(self, ask: Ask, values: Sequence[Any] | None) -> Question | None:
        with self._watched(ask):
            return self.shadow().question(ask.text, values)

    def _template(self, ask: Ask) -> Template:
        try:
            return template(ask.text, self.who.database)
        except PgError as error:
            raise error.moved(ask.start) from None

    def _said(self, ask: Ask, made: Template, given: Sequence[Any]) -> Said:
        try:
            return made.said(given)
        except PgError as error:
            raise error.moved(ask.start) from None

    def _values(self, values: Values) -> tuple[Any, ...]:
        if not values.raw:
            return ()
        return parameters.values(values.types, values.raw, values.formats, self.settings.zone, values.declared)

    def _shown(self, columns: Sequence[Column]) -> list[Column]:
        """Columns whose values are written as the settings say."""
        if self.settings.get("IntervalStyle") != "iso_8601":
            return list(columns)
        return [Column(one.name, _iso(one.type)) for one in columns]

    def _told(self, error: Refused | Unavailable | Internal, ask: Ask, place: Callable[[int], int]) -> PgError:
        """What a client is told, with the place in its own text."""
        told = errors.told(error)
        if told.position is not None:
            told.position = place(told.position)
        return told.moved(ask.start).placed(ask.whole)

    async def _of_catalog(self, work: Callable[..., Any], question: Question, cancel: Cancel | None = None) -> Any:
        """Have the catalog that the client sees do something with a question. Raises PgError."""

        def done(ended: Callable[[], bool]) -> Any:
            try:
                return work(question, self.who, self.settings, ended)
            except PgError as error:
                return error

        try:
            found = await self.service.beside(
                self.who.user, done, self.pool, cancel=cancel, timeout_ms=self.settings.timeout_ms
            )
        except (Unavailable, Internal) as error:
            raise errors.told(error) from None
        if isinstance(found, PgError):
            raise found
        return found

    async def _elsewhere(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something quick in a thread, so that other clients need not wait."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)


def _iso(type_: PgType) -> PgType:
    """A type whose intervals are written as ISO 8601 has them."""
    if type_.element is INTERVAL:
        return array_of(INTERVAL_ISO)
    return INTERVAL_ISO if type_ is INTERVAL else type_
