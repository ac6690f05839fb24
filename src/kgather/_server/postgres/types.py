"""PostgreSQL's types: their numbers, and how values are written and read in text and in binary."""

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

TEXT, BINARY = 0, 1
"""Formats."""

_EPOCH = date(2000, 1, 1)
_EPOCH_TIME = datetime(2000, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_DAYS_TO_EPOCH = (_EPOCH - date(1970, 1, 1)).days
_DAYS_OF_CYCLE = 146_097
_LAST_DAY, _LAST_MICROSECOND = (1 << 31) - 1, (1 << 63) - 1
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ZONE = re.compile(r"\s*(Z|[+-]\d{1,2}(:?\d{2}){0,2})$", re.IGNORECASE)
_WORD = r'[^{},"\\\s]+'
_ITEM = rf'(?:"(?:[^"\\]|\\.)*"|{_WORD}(?:\s+{_WORD})*)'
"""An element of an array as text: in quotes, or words with what is between them."""
_MOST_DIGITS = 1000


@dataclass(frozen=True)
class PgType:
    """A type. size: in bytes, -1 where values have many. text and binary write a value; element: of an array."""

    oid: int
    name: str
    size: int
    text: Callable[[Any], str]
    binary: Callable[[Any], bytes]
    element: "PgType | None" = None


def _packed(form: str) -> Callable[[Any], bytes]:
    packer = struct.Struct(form)
    return lambda value: packer.pack(value)


def _float(value: Any) -> str:
    number = float(value)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number).removesuffix(".0")


def _float4(value: Any) -> str:
    """The shortest text that is read as the same float of 32 bits."""
    short = struct.unpack("!f", struct.pack("!f", value))[0]
    return next(
        (
            text
            for digits in range(6, 10)
            if struct.pack("!f", float(text := f"{short:.{digits}g}")) == struct.pack("!f", short)
        ),
        _float(value),
    )


def _numeric(value: Any) -> str:
    return format(value, "f") if isinstance(value, Decimal) and value.is_finite() else str(value)


def _numeric_binary(value: Any) -> bytes:
    """Digits to the base of 10,000, with the weight of the first of them."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack("!hhHh", 0, 0, sign, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    scale = max(-exponent, 0)
    whole, part = (text[:-scale] or "0", text[-scale:].rjust(scale, "0")) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    groups = [int(whole[at : at + 4]) for at in range(0, len(whole), 4)]
    weight = len(groups) - 1
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    groups += [int(part[at : at + 4]) for at in range(0, len(part), 4)]
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    return struct.pack(
        f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale, *groups
    )


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """A column's values. Moments that Python's types have no room for are numbers: days or microseconds since 1970,
    infinite where they are."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_value_of(scalar) for scalar in column]


def _value_of(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pass
    type_ = scalar.type
    if pa.types.is_date32(type_):
        return _number_or_infinite(scalar.value, _LAST_DAY)
    if pa.types.is_timestamp(type_):
        number = _number_or_infinite(scalar.value, _LAST_MICROSECOND)
        return number if isinstance(number, float) else number * 1_000_000 // _UNITS[type_.unit]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_value_of(each) for each in scalar.values]
    if pa.types.is_struct(type_):
        return {name: _value_of(each) for name, each in scalar.items()}
    if pa.types.is_map(type_):
        return [(_value_of(each["key"]), _value_of(each["value"])) for each in scalar.values]
    raise ValueError(type_)


def _number_or_infinite(number: int, last: int) -> int | float:
    """DuckDB's infinite moments are its first and last numbers."""
    return number if abs(number) < last else math.copysign(math.inf, number)


def _day(value: date | float) -> str:
    if isinstance(value, date):
        return value.isoformat()
    return _endless(value) if isinstance(value, float) else " ".join(_calendar(value))


def _calendar(days: int) -> tuple[str, ...]:
    """A day since 1970 that `date` has no room for, and BC where it is before Christ: years repeat after 400."""
    cycles, rest = divmod(days + date(1970, 1, 1).toordinal() - 1, _DAYS_OF_CYCLE)
    day = date.fromordinal(rest + 1)
    year = day.year + 400 * cycles
    before = () if year > 0 else ("BC",)
    return (f"{year if year > 0 else 1 - year:04}-{day:%m-%d}", *before)


def _endless(value: float) -> str:
    return "infinity" if value > 0 else "-infinity"


def _day_binary(value: date | float) -> bytes:
    if isinstance(value, float):
        return struct.pack("!i", _LAST_DAY if value > 0 else -_LAST_DAY - 1)
    return struct.pack("!i", (value - _EPOCH).days if isinstance(value, date) else value - _DAYS_TO_EPOCH)


def _far_timestamp(value: float, zone: str) -> str:
    """A number of microseconds since 1970, or an infinite one."""
    if isinstance(value, float):
        return _endless(value)
    days, micros = divmod(value, _DAY)
    clock = _timestamp(_EPOCH_TIME + timedelta(microseconds=micros)).split(" ")[1]
    day, *before = _calendar(days)
    return " ".join([day, clock + zone, *before])


def _timestamp(value: datetime | float) -> str:
    if not isinstance(value, datetime):
        return _far_timestamp(value, "")
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def _timestamptz(value: datetime | float) -> str:
    if not isinstance(value, datetime):
        return _far_timestamp(value, "+00")
    return _timestamp(value.astimezone(UTC) if value.tzinfo else value) + "+00"


def _timestamp_binary(value: datetime | float) -> bytes:
    if isinstance(value, float):
        return struct.pack("!q", _LAST_MICROSECOND if value > 0 else -_LAST_MICROSECOND - 1)
    if isinstance(value, int):
        return struct.pack("!q", value - _DAYS_TO_EPOCH * _DAY)
    moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return struct.pack("!q", (moment - _EPOCH_TIME) // _MICROSECOND)


def _time_binary(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


def _interval(value: Any) -> str:
    months, days, micros = _interval_parts(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    clock = f"{sign}{micros // 3_600_000_000:02}:{micros // 60_000_000 % 60:02}:{micros // 1_000_000 % 60:02}"
    if micros % 1_000_000:
        clock += f".{micros % 1_000_000:06}".rstrip("0")
    parts = [(years, "year"), (months, "mon"), (days, "day")]
    words = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in parts if count]
    return " ".join([*words, clock] if micros or not words else words)


def _interval_parts(value: Any) -> tuple[int, int, int]:
    """Months, days and microseconds."""
    if isinstance(value, timedelta):
        return 0, value.days, (value - timedelta(days=value.days)) // _MICROSECOND
    months, days, nanoseconds = value
    return months, days, nanoseconds // 1000


def _interval_iso(value: Any) -> str:
    """As ISO 8601 has it: P1Y2M3DT4H5M6.5S."""
    months, days, micros = _interval_parts(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    second = f"{micros // 1_000_000 % 60}" + (f".{micros % 1_000_000:06}".rstrip("0") if micros % 1_000_000 else "")
    clock = [(str(micros // 3_600_000_000), "H"), (str(micros // 60_000_000 % 60), "M"), (second, "S")]
    date_ = "".join(f"{count}{word}" for count, word in ((years, "Y"), (months, "M"), (days, "D")) if count)
    time_ = "".join(f"{sign}{count}{word}" for count, word in clock if count != "0")
    return f"P{date_}{f'T{time_}' if time_ else ''}" if date_ or time_ else "PT0S"


def _interval_binary(value: Any) -> bytes:
    months, days, micros = _interval_parts(value)
    return struct.pack("!qii", micros, days, months)


def _utf8(value: Any) -> bytes:
    return _plain(value).encode("utf-8", "replace")


class ZeroByteError(ValueError):
    """A text that PostgreSQL's protocol cannot send."""


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    if "\0" in text:
        raise ZeroByteError
    return text


BOOL = PgType(16, "bool", 1, lambda value: "t" if value else "f", lambda value: b"\1" if value else b"\0")
BYTEA = PgType(17, "bytea", -1, lambda value: "\\x" + bytes(value).hex(), bytes)
CHAR = PgType(18, "char", 1, _plain, _utf8)
INT8 = PgType(20, "int8", 8, str, _packed("!q"))
INT2 = PgType(21, "int2", 2, str, _packed("!h"))
INT4 = PgType(23, "int4", 4, str, _packed("!i"))
STRING = PgType(25, "text", -1, _plain, _utf8)
JSON = PgType(114, "json", -1, _plain, _utf8)
OID = PgType(26, "oid", 4, str, _packed("!I"))
REGCLASS = PgType(2205, "regclass", 4, str, _packed("!I"))
REGTYPE = PgType(2206, "regtype", 4, str, _packed("!I"))
FLOAT4 = PgType(700, "float4", 4, _float4, _packed("!f"))
FLOAT8 = PgType(701, "float8", 8, _float, _packed("!d"))
VARCHAR = PgType(1043, "varchar", -1, _plain, _utf8)
DATE = PgType(1082, "date", 4, _day, _day_binary)
TIME = PgType(1083, "time", 8, lambda value: value.isoformat(), _time_binary)
TIMESTAMP = PgType(1114, "timestamp", 8, _timestamp, _timestamp_binary)
TIMESTAMPTZ = PgType(1184, "timestamptz", 8, _timestamptz, _timestamp_binary)
INTERVAL = PgType(1186, "interval", 16, _interval, _interval_binary)
INTERVAL_ISO = PgType(1186, "interval", 16, _interval_iso, _interval_binary)
"""The same as it is written where IntervalStyle is iso_8601."""
NUMERIC = PgType(1700, "numeric", -1, _numeric, _numeric_binary)

WHOLE = frozenset({INT2.oid, INT4.oid, INT8.oid, OID.oid})
FRACTIONS = frozenset({FLOAT4.oid, FLOAT8.oid, NUMERIC.oid})

BY_OID = {one.oid: one for one in (BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, STRING, VARCHAR, DATE, TIMESTAMP)}
"""Types of parameters that may be shown as they are."""

_ARRAYS = {
    **{BOOL.oid: 1000, INT8.oid: 1016, INT2.oid: 1005, INT4.oid: 1007, STRING.oid: 1009, OID.oid: 1028},
    **{FLOAT8.oid: 1022, CHAR.oid: 1002, JSON.oid: 199, VARCHAR.oid: 1015, FLOAT4.oid: 1021, NUMERIC.oid: 1231},
    **{DATE.oid: 1182, TIME.oid: 1183, TIMESTAMP.oid: 1115, TIMESTAMPTZ.oid: 1185, INTERVAL.oid: 1187},
    BYTEA.oid: 1001,
}


def array_of(element: PgType) -> PgType:
    """The type of arrays; of elements that have none, text."""
    oid = _ARRAYS.get(element.oid)
    if oid is None:
        return STRING

    def text(values: Sequence[Any]) -> str:
        return "{" + ",".join("NULL" if v is None else _array_item(element.text(v)) for v in values) + "}"

    def binary(values: Sequence[Any]) -> bytes:
        head = struct.pack("!iiI", 1 if len(values) else 0, int(any(v is None for v in values)), element.oid)
        items = b"".join(field(None if v is None else element.binary(v)) for v in values)
        return head + (struct.pack("!ii", len(values), 1) if len(values) else b"") + items

    return PgType(oid, "_" + element.name, -1, text, binary, element)


def _array_item(text: str) -> str:
    if text and text.lower() != "null" and not re.search(r'[{},"\\\s]', text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def field(value: bytes | None) -> bytes:
    """A value with its length before it; -1 for NULL."""
    return b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value


def of_arrow(type_: pa.DataType) -> PgType:
    """The type that values of an Arrow type are sent as."""
    for is_it, found in _OF_ARROW:
        if is_it(type_):
            return found
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz is None else TIMESTAMPTZ
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = of_arrow(type_.value_type)
        return array_of(element) if element.oid in _ARRAYS else _as_json(type_)
    return _as_json(type_) if pa.types.is_nested(type_) else STRING


def _as_json(type_: pa.DataType) -> PgType:
    """Text with values that PostgreSQL has no type for, as lists of lists, written as JSON."""

    def text(value: Any) -> str:
        return _plain(json.dumps(_jsonable(value, type_), ensure_ascii=False))

    return PgType(STRING.oid, STRING.name, STRING.size, text, lambda value: _utf8(text(value)))


def _jsonable(value: Any, type_: pa.DataType) -> Any:
    if value is None or pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        return value
    if pa.types.is_floating(type_) and math.isfinite(value):
        return value
    if pa.types.is_struct(type_):
        return {field.name: _jsonable(value[field.name], field.type) for field in type_}
    if pa.types.is_map(type_):
        return {of_arrow(type_.key_type).text(key): _jsonable(each, type_.item_type) for key, each in value}
    if pa.types.is_nested(type_) and isinstance(value, list):
        return [_jsonable(each, type_.value_type) for each in value]
    return of_arrow(type_).text(value)


_OF_ARROW: tuple[tuple[Callable[[pa.DataType], bool], PgType], ...] = (
    (pa.types.is_boolean, BOOL),
    (lambda of: of in (pa.int8(), pa.uint8(), pa.int16()), INT2),
    (lambda of: of in (pa.uint16(), pa.int32()), INT4),
    (lambda of: of in (pa.uint32(), pa.int64()), INT8),
    (lambda of: of == pa.uint64() or pa.types.is_decimal(of), NUMERIC),
    (lambda of: of in (pa.float16(), pa.float32()), FLOAT4),
    (lambda of: of == pa.float64(), FLOAT8),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (lambda of: pa.types.is_duration(of) or pa.types.is_interval(of), INTERVAL),
    (lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of), BYTEA),
)


# Parameters

Read = Callable[[bytes, int, tzinfo], Any]


class UnreadableError(Exception):
    """A parameter that cannot be read."""


def read_parameter(oid: int, raw: bytes, form: int, zone: tzinfo) -> Any:
    """The value of a parameter. zone: of timestamps that say none. Raises UnreadableError."""
    try:
        if form == BINARY:
            return _read_binary(oid, raw, zone)
        return _read_text(oid, raw.decode("utf-8"), zone)
    except (ValueError, KeyError, struct.error, InvalidOperation, OverflowError, IndexError) as error:
        raise UnreadableError from error


def _read_text(oid: int, text: str, zone: tzinfo) -> Any:
    if "\0" in text:
        raise ValueError(oid)
    if oid in ELEMENTS:
        return list(_array_items(ELEMENTS[oid], text, zone))
    if oid in _INTEGERS:
        number = int(text) if re.fullmatch(r"\s*[+-]?\d{1,19}\s*", text, re.ASCII) else _never()
        low = 0 if oid == OID.oid else -(1 << _INTEGERS[oid])
        return number if low <= number < (1 << _INTEGERS[oid]) else _never()
    if oid in (FLOAT4.oid, FLOAT8.oid):
        return float(text) if "_" not in text else _never()
    if oid == NUMERIC.oid:
        return Decimal(text.strip()) if len(text) <= _MOST_DIGITS and "_" not in text else _never()
    if oid == BOOL.oid:
        return TRUTH[text.strip().lower()]
    if oid == DATE.oid:
        # An offset behind a date is of no meaning, as in PostgreSQL.
        text = _ZONE.sub("", text.strip()) if len(text.strip()) > len("2000-01-01") else text.strip()
        return date.fromisoformat(text) if len(text) == len("2000-01-01") else _moment(text).date()
    if oid == TIMESTAMP.oid:
        return _moment(text).replace(tzinfo=None)
    if oid == TIMESTAMPTZ.oid:
        return _local(_moment(text), zone)
    return text


def _read_binary(oid: int, raw: bytes, zone: tzinfo) -> Any:
    if oid in ELEMENTS:
        return list(_binary_items(ELEMENTS[oid], raw, zone))
    if oid in _FIXED:
        return struct.unpack(_FIXED[oid], raw)[0]
    if oid in (REGCLASS.oid, REGTYPE.oid):
        return struct.unpack("!I", raw)[0]
    if oid == BOOL.oid:
        return {b"\1": True, b"\0": False}[raw]
    if oid == NUMERIC.oid:
        return _decimal(raw)
    if oid == DATE.oid:
        return _EPOCH + timedelta(days=struct.unpack("!i", raw)[0])
    if oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        moment = _EPOCH_TIME + timedelta(microseconds=struct.unpack("!q", raw)[0])
        return moment if oid == TIMESTAMP.oid else _local(moment.replace(tzinfo=UTC), zone)
    if oid in _TEXTS:
        return _read_text(oid, raw.decode("utf-8"), zone)
    raise KeyError(oid)


def _decimal(raw: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!hhHh", raw)
    groups = struct.unpack(f"!{count}h", raw[8:])
    if sign not in (0, 0x4000) or any(not 0 <= group < 10_000 for group in groups) or not 0 <= scale <= _MOST_DIGITS:
        raise ValueError(sign)
    if abs(weight) > _MOST_DIGITS // 4 or count > _MOST_DIGITS // 4:
        raise ValueError(weight)
    digits = "".join(f"{group:04}" for group in groups)
    exponent = 4 * (weight - count + 1) if count else 0
    if exponent < -scale:
        digits, exponent = digits[: exponent + scale], -scale
    # Not by arithmetic: that rounds to the digits of a context.
    return Decimal((sign >> 14, tuple(map(int, digits or "0")), exponent))


def _moment(text: str) -> datetime:
    """A timestamp in ISO's form, with or without an offset."""
    text = text.strip()
    found = _ZONE.search(text, 11) if len(text) > 11 else None
    if found is None:
        return datetime.fromisoformat(text)
    offset = found[1].upper()
    if offset != "Z" and len(offset) <= 3:
        offset = f"{offset[0]}{offset[1:].rjust(2, '0')}:00"
    return datetime.fromisoformat(text[: found.start()] + offset)


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """As the clock of a session shows it, without a zone."""
    return (moment.astimezone(zone) if moment.tzinfo is not None else moment).replace(tzinfo=None)


def _array_items(oid: int, text: str, zone: tzinfo) -> Iterator[Any]:
    if not re.fullmatch(rf"\{{\s*(?:{_ITEM}\s*(?:,\s*{_ITEM}\s*)*)?\}}", text, re.DOTALL):
        raise ValueError(oid)
    for found in re.finditer(_ITEM, text[1:-1], re.DOTALL):
        item = found[0]
        if item.lower() == "null":
            yield None
        else:
            yield _read_text(oid, re.sub(r"\\(.)", r"\1", item[1:-1]) if item[0] == '"' else item, zone)


def _binary_items(oid: int, raw: bytes, zone: tzinfo) -> Iterator[Any]:
    dimensions, _, element = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return
    if dimensions != 1 or element != oid:
        raise ValueError(dimensions)
    count, _ = struct.unpack_from("!ii", raw, 12)
    at = 20
    for _ in range(count):
        (length,) = struct.unpack_from("!i", raw, at)
        at += 4
        if length < 0:
            yield None
            continue
        if at + length > len(raw):
            raise ValueError(length)
        yield _read_binary(oid, raw[at : at + length], zone)
        at += length


def _never() -> Any:
    raise ValueError


_INTEGERS = {INT2.oid: 15, INT4.oid: 31, INT8.oid: 63, OID.oid: 32}
_FIXED = {INT2.oid: "!h", INT4.oid: "!i", INT8.oid: "!q", OID.oid: "!I", FLOAT4.oid: "!f", FLOAT8.oid: "!d"}
TRUTH = {
    **dict.fromkeys(("t", "true", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("f", "false", "no", "n", "off", "0"), False),
}
_TEXTS = frozenset({0, CHAR.oid, 19, STRING.oid, 705, 1042, VARCHAR.oid})
"""Types whose binary form is their text."""
ELEMENTS = {
    **{1000: 16, 1005: 21, 1007: 23, 1009: 25, 1015: 1043, 1016: 20, 1022: 701, 1028: 26, 1002: 18, 1003: 19},
    **{1014: 1042, 1021: 700, 1115: 1114, 1182: 1082, 1185: 1184, 1231: 1700},
}
"""Array type -> type of its elements."""

ARRAY_OF = {element: array for array, element in ELEMENTS.items()}
