"""The guard as a database of Python's DB-API 2.0 (PEP 249): for pandas and other clients that know nothing of kgather.

    with connect("guard.yml", "analyst") as connection:
        connection.execute("SELECT city, AVG(salary) FROM people GROUP BY city").fetchall()

There is nothing to commit and nothing to roll back: answers are only read.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from kgather._errors import InputError
from kgather._guard.guard import Answer, Guard, Parameters
from kgather._guard.refused import Refused, Rule

apilevel = "2.0"
threadsafety = 2
"""Threads may have a module and connections in common, not cursors."""
paramstyle = "qmark"
"""Named parameters, as $name with a mapping, are taken, too."""


class Warning(Exception):  # noqa: N818 - the name that PEP 249 gives
    """How an answer came about, in `messages` of its cursor. Never raised."""


class Error(Exception):
    """Whatever goes wrong. code: five characters, as SQLSTATE, of a refusal, else an empty text."""

    code = ""


class InterfaceError(Error):
    """A connection or cursor is used that is closed."""


class DatabaseError(Error):
    """The guard does not answer."""


class DataError(DatabaseError):
    """Never raised."""


class OperationalError(DatabaseError):
    """The policy, the database or the ledger is not as it should be, or the query costs too much."""


class IntegrityError(DatabaseError):
    """Never raised."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The text of the statement is refused; the message says what and where."""


class NotSupportedError(DatabaseError):
    """A method that does not go with reading."""


class BudgetSpent(OperationalError):  # noqa: N818 - a refusal is an answer, too
    """The budget of the ledger does not pay for what would have to be measured."""


class TooFew(DatabaseError):  # noqa: N818 - a refusal is an answer, too
    """The answer would cover too few people, or none."""


class TypeObject:
    """What the types in a description are compared with."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other in self._names)

    def __hash__(self) -> int:
        return hash(self._names)


STRING = TypeObject("VARCHAR")
BINARY = TypeObject("BLOB")
NUMBER = TypeObject("BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN")
DATETIME = TypeObject("DATE", "TIMESTAMP")
ROWID = TypeObject()

Column = tuple[str, str, None, None, None, None, bool]


def connect(policy: str | Path | Guard, principal: str | None = None) -> "Connection":
    """Open the guard of a policy file, or use one that is open.

    principal: who asks; may be left out if the policy names only one. Raises OperationalError.
    """
    try:
        guard = policy if isinstance(policy, Guard) else Guard.from_policy(policy)
        if principal is not None or len(guard.policy.principals) != 1:
            guard.policy.principal(principal or "")
    except InputError as error:
        raise OperationalError(str(error)) from None
    return Connection(guard, principal)


class Connection:
    """A guard and who asks it."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, guard: Guard, principal: str | None = None) -> None:
        self._guard: Guard | None = guard
        self._principal = principal

    def cursor(self) -> "Cursor":
        """A new cursor."""
        self._open()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters = ()) -> "Cursor":
        """A new cursor that has executed a statement."""
        return self.cursor().execute(sql, parameters)

    def commit(self) -> None:
        """Do nothing."""
        self._open()

    def rollback(self) -> None:
        """Do nothing."""
        self._open()

    def close(self) -> None:
        """Make the connection and its cursors unusable."""
        self._guard = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Guard:
        if self._guard is None:
            msg = "The connection is closed."
            raise InterfaceError(msg)
        return self._guard

    def _ask(self, sql: str, parameters: Parameters) -> Answer:
        guard = self._open()
        try:
            return guard.answer(sql, principal=self._principal, parameters=parameters)
        except Refused as refusal:
            told = _error_of(refusal)(refusal.reason)
            told.code = refusal.code
            raise told from None
        except InputError as error:
            raise OperationalError(str(error)) from None


class Cursor:
    """A statement and its rows. arraysize: how many rows fetchmany gives. messages: how the answer came about, as pairs
    of Warning and an instance of it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.messages: list[tuple[type[Warning], Warning]] = []
        self._closed = False
        self._table: pa.Table | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    @property
    def description(self) -> list[Column] | None:
        """Name and type of each column; None before a statement, or if it has no rows."""
        if self._table is None or not self._table.num_columns:
            return None
        return [(field.name, _type(field.type), None, None, None, None, True) for field in self._table.schema]

    @property
    def rowcount(self) -> int:
        """How many rows the protected result has; -1 if there is none."""
        return self._table.num_rows if self._table is not None and self._table.num_columns else -1

    def execute(self, sql: str, parameters: Parameters = ()) -> Self:
        """Ask a query. parameters: a sequence for ?, a mapping for $name.

        Raises ProgrammingError if its text is refused, TooFew, or OperationalError (BudgetSpent where the budget does
        not pay for it).
        """
        self._open()
        self._table, self._rows = None, iter(())
        self.messages.clear()
        if isinstance(parameters, str) or not isinstance(parameters, Sequence | Mapping):
            msg = "Parameters are a sequence of values, or a mapping of names to values."
            raise ProgrammingError(msg)
        answer = self.connection._ask(sql, parameters)
        self._table = answer.table
        self.messages += [(Warning, Warning(note)) for note in answer.notes]
        self._rows = _rows(self._table)
        return self

    def executemany(self, sql: str, parameters: Sequence[Parameters]) -> NoReturn:  # noqa: ARG002
        """Raises NotSupportedError: answers are only read, one at a time."""
        self._open()
        msg = "executemany is for writing. Execute one query at a time."
        raise NotSupportedError(msg)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None after the last."""
        self._result()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""
        self._result()
        wanted = self.arraysize if size is None else size
        return [row for _, row in zip(range(wanted), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        self._result()
        return list(self._rows)

    def fetch_arrow_table(self) -> pa.Table:
        """The whole result, whatever was fetched before."""
        return self._result()

    def close(self) -> None:
        """Make the cursor unusable."""
        self._closed = True
        self._table, self._rows = None, iter(())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._result()
        return self._rows

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        if self._closed:
            msg = "The cursor is closed."
            raise InterfaceError(msg)
        self.connection._open()

    def _result(self) -> pa.Table:
        self._open()
        if self._table is None:
            msg = "There is no result to fetch. Execute a query first."
            raise ProgrammingError(msg)
        return self._table


def _error_of(refusal: Refused) -> type[DatabaseError]:
    if refusal.rule is Rule.BUDGET:
        return BudgetSpent
    if refusal.static:
        return ProgrammingError
    return TooFew if refusal.rule is Rule.TOO_FEW else OperationalError


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _type(of: pa.DataType) -> str:
    """The name that DuckDB has for a type, without its width."""
    for is_it, name in (
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_integer, "BIGINT"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_decimal, "DECIMAL"),
        (pa.types.is_date, "DATE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (pa.types.is_binary, "BLOB"),
    ):
        if is_it(of):
            return name
    return "VARCHAR"
