"""The few messages of Flight SQL, read and written by hand (FlightSql.proto of Apache Arrow, protobuf encoding).

A message is a handful of texts and byte strings, so that a reader of two wire types is all there is to it; what does
not fit is Malformed, whatever its bytes. Unknown fields are skipped, as protobuf demands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_PACKAGE = "type.googleapis.com/arrow.flight.protocol.sql."
_MOST_FIELDS = 10_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):  # noqa: N818
    """The bytes are no message, or not the one that is expected."""


@dataclass(frozen=True)
class StatementQuery:
    """Ask a statement."""

    query: str
    transaction_id: bytes


@dataclass(frozen=True)
class PreparedStatementQuery:
    """Ask a prepared statement, or bind values to it."""

    handle: bytes


@dataclass(frozen=True)
class StatementTicket:
    """Fetch a result."""

    handle: bytes


@dataclass(frozen=True)
class GetCatalogs:
    """List the one catalog."""


@dataclass(frozen=True)
class GetDbSchemas:
    """List schemas."""

    catalog: str | None
    schema_pattern: str | None


@dataclass(frozen=True)
class GetTables:
    """List tables."""

    catalog: str | None
    schema_pattern: str | None
    table_pattern: str | None
    table_types: tuple[str, ...]
    include_schema: bool


@dataclass(frozen=True)
class GetTableTypes:
    """List kinds of tables."""


@dataclass(frozen=True)
class GetSqlInfo:
    """List facts of the server. info: which; none: all."""

    info: tuple[int, ...]


@dataclass(frozen=True)
class GetKeys:
    """List keys of tables, of which there are none to show. foreign: whether of foreign keys."""

    foreign: bool


@dataclass(frozen=True)
class GetXdbcTypeInfo:
    """List types of SQL. data_type: one of them by its number; None: all."""

    data_type: int | None


@dataclass(frozen=True)
class CreatePreparedStatement:
    """Keep a statement."""

    query: str
    transaction_id: bytes


@dataclass(frozen=True)
class ClosePreparedStatement:
    """Forget a statement."""

    handle: bytes


Message = (
    StatementQuery
    | PreparedStatementQuery
    | StatementTicket
    | GetCatalogs
    | GetDbSchemas
    | GetTables
    | GetTableTypes
    | GetSqlInfo
    | GetKeys
    | GetXdbcTypeInfo
    | CreatePreparedStatement
    | ClosePreparedStatement
)


def read(data: bytes) -> Message | None:
    """Read a message that is packed into google.protobuf.Any; None for one that is not known here. Raises Malformed."""
    packed = _Fields(data)
    name = packed.text(1)
    if not name.startswith(_PACKAGE):
        return None
    make = _MESSAGES.get(name.removeprefix(_PACKAGE))
    return make(_Fields(packed.bytes(2))) if make is not None else None


def tickets(data: bytes) -> Iterator[bytes]:
    """The handles of the tickets that a CancelFlightInfoRequest names: of a FlightInfo, of its endpoints. Raises
    Malformed."""
    for endpoint in _Fields(_Fields(data).bytes(1)).every(3):
        ticket = read(_Fields(_Fields(_of(endpoint, bytes)).bytes(1)).bytes(1))
        if isinstance(ticket, StatementTicket):
            yield ticket.handle


def cancelled_query(data: bytes) -> bytes:
    """The CancelFlightInfoRequest that an ActionCancelQueryRequest is, by which older clients cancel. Raises
    Malformed."""
    whole = _Fields(data)
    if whole.text(1) != _PACKAGE + "ActionCancelQueryRequest":
        raise Malformed(data)
    return whole.bytes(2)


def options(data: bytes) -> dict[str, str | None]:
    """What a SetSessionOptionsRequest sets: texts; None for a value of another kind. Raises Malformed."""
    found: dict[str, str | None] = {}
    for entry in _Fields(data).every(1):
        pair = _Fields(_of(entry, bytes))
        value = _Fields(pair.bytes(2))
        found[pair.text(1)] = value.maybe_text(1)
    return found


def status(number: int) -> bytes:
    """A message whose first field is a number below 128."""
    return _number(1 << 3 | _VARINT) + _number(number)


def packed(name: str, fields: Mapping[int, bytes]) -> bytes:
    """A message of byte strings, packed into google.protobuf.Any."""
    return written({1: (_PACKAGE + name).encode(), 2: written(fields)})


def written(fields: Mapping[int, bytes]) -> bytes:
    """A message of byte strings."""
    return b"".join(_number(field << 3 | _BYTES) + _number(len(value)) + value for field, value in fields.items())


T = TypeVar("T", int, bytes)


class _Fields:
    """The fields of a message: of each number its values in order, whole numbers or byte strings."""

    def __init__(self, data: bytes) -> None:
        self._values: dict[int, list[int | bytes]] = {}
        for at, (number, value) in enumerate(_parsed(data)):
            if at >= _MOST_FIELDS:
                raise Malformed("too many fields")  # noqa: EM101
            self._values.setdefault(number, []).append(value)

    def bytes(self, number: int) -> bytes:
        """The last value of a field, empty where there is none."""
        return self._last(number, bytes, b"")

    def every(self, number: int) -> "Sequence[Any]":
        """The values of a field."""
        return self._values.get(number, ())

    def text(self, number: int) -> str:
        """As `bytes`, of a text."""
        return _text(self.bytes(number))

    def maybe_text(self, number: int) -> str | None:
        """As `text`, None where there is none."""
        return self.text(number) if number in self._values else None

    def texts(self, number: int) -> tuple[str, ...]:
        """All values of a field."""
        return tuple(_text(_of(value, bytes)) for value in self._values.get(number, []))

    def flag(self, number: int) -> bool:
        """The last value of a field, whether it is true."""
        return bool(self._last(number, int, 0))

    def numbers(self, number: int) -> tuple[int, ...]:
        """All values of a field of numbers, one by one or many in a byte string."""
        found: list[int] = []
        for value in self._values.get(number, []):
            found += [value] if isinstance(value, int) else list(_numbers(value))
        return tuple(found[:_MOST_FIELDS])

    def _last(self, number: int, kind: type[T], default: T) -> T:
        values = self._values.get(number)
        return _of(values[-1], kind) if values else default


_MESSAGES: dict[str, Callable[[_Fields], Message]] = {
    "CommandStatementQuery": lambda f: StatementQuery(f.text(1), f.bytes(2)),
    "CommandPreparedStatementQuery": lambda f: PreparedStatementQuery(f.bytes(1)),
    "TicketStatementQuery": lambda f: StatementTicket(f.bytes(1)),
    "CommandGetCatalogs": lambda _: GetCatalogs(),
    "CommandGetDbSchemas": lambda f: GetDbSchemas(f.maybe_text(1), f.maybe_text(2)),
    "CommandGetTables": lambda f: GetTables(f.maybe_text(1), f.maybe_text(2), f.maybe_text(3), f.texts(4), f.flag(5)),
    "CommandGetTableTypes": lambda _: GetTableTypes(),
    "CommandGetSqlInfo": lambda f: GetSqlInfo(f.numbers(1)),
    "CommandGetPrimaryKeys": lambda _: GetKeys(foreign=False),
    "CommandGetExportedKeys": lambda _: GetKeys(foreign=True),
    "CommandGetImportedKeys": lambda _: GetKeys(foreign=True),
    "CommandGetCrossReference": lambda _: GetKeys(foreign=True),
    "CommandGetXdbcTypeInfo": lambda f: GetXdbcTypeInfo(next(iter(f.numbers(1)), None)),
    "ActionCreatePreparedStatementRequest": lambda f: CreatePreparedStatement(f.text(1), f.bytes(2)),
    "ActionClosePreparedStatementRequest": lambda f: ClosePreparedStatement(f.bytes(1)),
}


def _parsed(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise Malformed("field")  # noqa: EM101
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise Malformed("wire type")  # noqa: EM101
        if length > len(data) - at:
            raise Malformed("length")  # noqa: EM101
        if kind == _BYTES:
            yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise Malformed("end")  # noqa: EM101
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + place + 1
    raise Malformed("number")  # noqa: EM101


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _of(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise Malformed("type of a field")  # noqa: EM101
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("text") from None  # noqa: EM101
