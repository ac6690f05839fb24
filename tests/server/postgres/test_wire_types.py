"""Values in text and in binary, beside what psycopg and PostgreSQL's documents say of them; and guessed types."""

import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format
from psycopg.types.numeric import Int2, Int4, Int8
from wire_files import guard

from kgather._guard.describe import neutral
from kgather._guard.refused import Refused
from kgather._server.postgres import parameters, types
from kgather._server.postgres.errors import PgError
from kgather._server.postgres.types import BINARY, TEXT, PgType, UnreadableError, read_parameter

VALUES: dict[PgType, st.SearchStrategy[Any]] = {
    types.BOOL: st.booleans(),
    types.INT2: st.integers(-(1 << 15), (1 << 15) - 1),
    types.INT4: st.integers(-(1 << 31), (1 << 31) - 1),
    types.INT8: st.integers(-(1 << 63), (1 << 63) - 1),
    types.FLOAT8: st.floats(),
    types.FLOAT4: st.floats(width=32),
    types.NUMERIC: st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.decimals("-1e30", "1e30"),
    types.STRING: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    types.DATE: st.dates(),
    types.TIME: st.times(),
    types.TIMESTAMP: st.datetimes(),
    types.TIMESTAMPTZ: st.datetimes(min_value=datetime(2, 1, 1), timezones=st.just(UTC)),
    types.INTERVAL: st.timedeltas(timedelta(-10_000), timedelta(10_000)),
}


def same(type_: PgType, one: Any, other: Any) -> bool:
    """Whether two values are one value of a type."""
    if type_ is types.FLOAT4:
        return struct.pack("!f", one) == struct.pack("!f", other) or (one != one and other != other)
    return one == other or (one != one and other != other)


EVERY = st.sampled_from(list(VALUES)).flatmap(lambda type_: st.tuples(st.just(type_), VALUES[type_]))


@given(EVERY, st.sampled_from([TEXT, BINARY]))
def test_psycopg_reads_what_is_written(pair: tuple[PgType, Any], form: int) -> None:
    type_, value = pair
    written = type_.binary(value) if form == BINARY else type_.text(value).encode()
    read = Transformer().get_loader(type_.oid, Format(form)).load(written)
    assert same(type_, read, value)


@given(EVERY.filter(lambda pair: pair[0] not in (types.TIME, types.INTERVAL)), st.sampled_from([TEXT, BINARY]))
def test_what_is_written_is_read(pair: tuple[PgType, Any], form: int) -> None:
    type_, value = pair
    written = type_.binary(value) if form == BINARY else type_.text(value).encode()
    read = read_parameter(type_.oid, written, form, UTC)
    expected = value.replace(tzinfo=None) if type_ is types.TIMESTAMPTZ else value
    assert same(type_, read, expected)


@given(
    st.one_of(
        st.integers(-(1 << 15), (1 << 15) - 1).map(Int2),
        st.integers(-(1 << 31), (1 << 31) - 1).map(Int4),
        st.integers(-(1 << 63), (1 << 63) - 1).map(Int8),
        *(VALUES[each] for each in (types.BOOL, types.FLOAT8, types.NUMERIC, types.DATE, types.TIMESTAMP)),
    ),
    st.sampled_from([PyFormat.TEXT, PyFormat.BINARY]),
)
def test_what_psycopg_writes_is_read(value: Any, form: PyFormat) -> None:
    dumper = Transformer().get_dumper(value, form)
    written = dumper.dump(value)
    read = read_parameter(dumper.oid, bytes(written or b""), int(dumper.format), UTC)
    assert read == value or (value != value and read != read)


@pytest.mark.parametrize(
    ("type_", "value", "text", "binary"),
    [
        (types.NUMERIC, Decimal("12345.678"), "12345.678", struct.pack("!hhHh3h", 3, 1, 0, 3, 1, 2345, 6780)),
        (types.NUMERIC, Decimal("-0.0001"), "-0.0001", struct.pack("!hhHhh", 1, -1, 0x4000, 4, 1)),
        (types.NUMERIC, Decimal("10000"), "10000", struct.pack("!hhHhh", 1, 1, 0, 0, 1)),
        (types.NUMERIC, Decimal("0.00"), "0.00", struct.pack("!hhHh", 0, 0, 0, 2)),
        (types.NUMERIC, 2**100, str(2**100), None),
        (types.FLOAT8, 0.1, "0.1", struct.pack("!d", 0.1)),
        (types.FLOAT8, 3.0, "3", None),
        (types.FLOAT8, float("-inf"), "-Infinity", None),
        (types.FLOAT4, struct.unpack("!f", struct.pack("!f", 0.1))[0], "0.1", struct.pack("!f", 0.1)),
        (types.BOOL, True, "t", b"\1"),
        (types.DATE, date(1999, 12, 31), "1999-12-31", struct.pack("!i", -1)),
        (types.TIMESTAMP, datetime(2000, 1, 1, 0, 0, 0, 1), "2000-01-01 00:00:00.000001", struct.pack("!q", 1)),
        (types.TIMESTAMP, datetime(2000, 1, 1, 10, 20, 30, 500_000), "2000-01-01 10:20:30.5", None),
        (types.TIME, time(1, 2, 3), "01:02:03", struct.pack("!q", 3_723_000_000)),
        (types.INTERVAL, timedelta(days=-1, seconds=3661), "-1 days 01:01:01", None),
        (types.INTERVAL, (14, 3, 0), "1 year 2 mons 3 days", struct.pack("!qii", 0, 3, 14)),
        (types.BYTEA, b"\0\xff", "\\x00ff", b"\0\xff"),
        (types.array_of(types.INT4), [1, None], "{1,NULL}", struct.pack("!iiIiiiii", 1, 1, 23, 2, 1, 4, 1, -1)),
        (types.array_of(types.STRING), ["a b", "", "null", 'q"'], '{"a b","","null","q\\""}', None),
        (types.array_of(types.STRING), [], "{}", struct.pack("!iiI", 0, 0, 25)),
    ],
    ids=lambda value: value.name if isinstance(value, PgType) else value if isinstance(value, str) else "",
)
def test_known_values(type_: PgType, value: Any, text: str, binary: bytes | None) -> None:
    assert type_.text(value) == text
    assert binary is None or type_.binary(value) == binary


@pytest.mark.parametrize(
    ("oid", "text", "value"),
    [
        (1184, "2024-07-01 12:00:00+02", datetime(2024, 7, 1, 6)),
        (1184, "2024-07-01 12:00:00", datetime(2024, 7, 1, 12)),
        (1114, "2024-07-01T12:00:00.25+02:00", datetime(2024, 7, 1, 12, 0, 0, 250_000)),
        (1082, "2024-07-01 +02", date(2024, 7, 1)),
        (1082, "2024-07-01", date(2024, 7, 1)),
        (16, "yes", True),
        (1009, '{a,"b,c",NULL,"d\\"e"}', ["a", "b,c", None, 'd"e']),
        (1007, "{}", []),
        (0, "42", "42"),
    ],
)
def test_texts_of_parameters(oid: int, text: str, value: object) -> None:
    assert read_parameter(oid, text.encode(), TEXT, ZoneInfo("America/New_York")) == value


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        (20, "1_0"),
        (20, ""),
        (20, "9" * 19),
        (21, "40000"),
        (23, "1.0"),
        (1700, "1_0"),
        (1700, "x"),
        (701, "1_0"),
        (16, "maybe"),
        (1082, "2024-13-01"),
        (1114, "now"),
        (1007, "{1"),
        (1007, "{1,,2}"),
        (1007, "{{1}}"),
        (25, "a\x00b"),
        (1700, "1" * 2000),
    ],
)
def test_texts_that_are_no_value(oid: int, text: str) -> None:
    with pytest.raises(UnreadableError):
        read_parameter(oid, text.encode(), TEXT, UTC)


def test_arrow_types() -> None:
    for arrow, oid in (
        *((pa.bool_(), 16), (pa.int8(), 21), (pa.int16(), 21), (pa.int32(), 23), (pa.uint32(), 20), (pa.int64(), 20)),
        *(
            (pa.uint64(), 1700),
            (pa.decimal128(38, 2), 1700),
            (pa.float32(), 700),
            (pa.float64(), 701),
            (pa.string(), 25),
        ),
        *((pa.date32(), 1082), (pa.timestamp("us"), 1114), (pa.timestamp("us", "UTC"), 1184), (pa.time64("us"), 1083)),
        *((pa.month_day_nano_interval(), 1186), (pa.list_(pa.int32()), 1007), (pa.struct([("a", pa.int8())]), 25)),
        *((pa.null(), 25), (pa.binary(), 17), (pa.list_(pa.date32()), 1182)),
    ):
        assert types.of_arrow(arrow).oid == oid, arrow


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select count(*) from people where film_a >= $1", [20]),
        ("select count(*) from people as p where p.score > $1 and $2 = film_b", [701, 20]),
        ("select count(*) from people where seen = $1", [16]),
        ("select count(*) from people where film_a between $1 and $2", [20, 20]),
        ("select count(*) from people where film_a in ($1, $2)", [20, 20]),
        ("select city from cities where city like $1 and founded < $2 and updated = $3", [25, 1082, 1114]),
        ("select city from cities limit $1 offset $2", [20, 20]),
        ("select count(*) as n from people group by city having count(*) > $1 and avg(age) > $2", [20, 701]),
        ("select * from (select city, count(*) as n from people group by city) where n > $1", [20]),
        ("select $1::int, $2::date, $3", [23, 1082, 25]),
        ("select city from cities where area * 2 > $1", [701]),
        ("select city from cities where nothing = $1", [25]),
        ("select $2", [25, 25]),
        ("this is no sql $1", []),
    ],
)
def test_guessed_types(text: str, expected: list[int]) -> None:
    assert list(parameters.guessed(text, (), guard().catalog)) == expected


def test_declared_types_come_first() -> None:
    assert parameters.guessed("select count(*) from people where film_a >= $1", (1700,), guard().catalog) == (1700,)
    with pytest.raises(PgError, match="at most"):
        parameters.guessed("select $99999", (), guard().catalog)


DESCRIBED = [
    "select city, count(*) as n, avg(salary), sum(film_a) as s from people where film_b > 1 group by city",
    "select film_a, film_b, seen, year(born) from people group by all",
    "select film_a, film_b, seen, count(*) from people group by all",
    "select date_trunc('year', born) as y, count(*) * 2 as n, 1.5 as x, 'a' as t, true as b, null as z"
    " from people group by 1",
    "select * from cities",
    "select c.city, c.area, p.n from cities c join (select city, count(*) as n from people group by"
    " city) p on p.city = c.city",
    "select 1 as a, date '2020-01-01' as b, 1::double as c",
    "show tables",
    "select city, rank() over (order by count(*)) as r from people group by city",
    "select upper(city) as u, case when count(*) > 9 then 1 else 2.5 end as v from people group by city",
]


@pytest.mark.parametrize("text", DESCRIBED)
def test_describe_says_what_query_answers(text: str) -> None:
    """Names and types without data are those of the answer; what is refused by its text is refused here, too."""

    def of(ask: Any) -> object:
        try:
            found = ask(text, principal="ana")
        except Refused as refusal:
            return refusal.static, refusal.reason
        return found.schema if isinstance(found, pa.Table) else found

    assert of(guard().describe) == of(guard().query)


def test_describe_with_values_that_are_not_known() -> None:
    text = "select city, count(*) as n from people where score > $1 and film_a = $2 group by city limit $3"
    found = guard().describe(text, neutral(("number", "integer", "integer")), principal="ana")
    assert found == pa.schema([("city", pa.string()), ("n", pa.int64())])


def test_describe_touches_no_data() -> None:
    """Nothing is measured for it."""
    before = guard().spending
    assert before is not None
    guard().describe("select count(*) from people where film_a = 12345 and score < -1", principal="ana")
    assert guard().spending == before


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('{"p", "f", r}', ["p", "f", "r"]),
        ("{ New York , Wien}", ["New York", "Wien"]),
        ("{ }", []),
        ('{"a, b" ,NULL}', ["a, b", None]),
    ],
)
def test_blanks_between_the_elements_of_an_array_are_none_of_it(text: str, items: list[str | None]) -> None:
    assert list(types.read_parameter(types.ARRAY_OF[types.STRING.oid], text.encode(), 0, UTC)) == items
