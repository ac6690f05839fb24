"""Messages of Flight SQL: as protobuf encodes them, and whatever else comes."""

import pytest
from google.protobuf.any_pb2 import Any as PackedAny
from hypothesis import given, settings
from hypothesis import strategies as st

from kgather._server.flight import wire
from kgather._server.flight.wire import Malformed

NAME = "type.googleapis.com/arrow.flight.protocol.sql."


def test_a_statement_by_hand() -> None:
    """Field 1 of wire type 2 is 0x0a; the outer message has the name of the inner one."""
    inner = b"\x0a\x08SELECT 1"
    name = (NAME + "CommandStatementQuery").encode()
    outer = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(inner)]) + inner
    assert wire.read(outer) == wire.StatementQuery("SELECT 1", b"")
    assert wire.packed("CommandStatementQuery", {1: b"SELECT 1"}) == outer


def test_tables_by_hand() -> None:
    inner = b"\x0a\x07kgather\x12\x00\x1a\x02%s\x22\x05TABLE\x22\x04VIEW\x28\x01"
    found = wire.read(wire.written({1: (NAME + "CommandGetTables").encode(), 2: inner}))
    assert found == wire.GetTables("kgather", "", "%s", ("TABLE", "VIEW"), True)
    assert wire.read(wire.packed("CommandGetTables", {})) == wire.GetTables(None, None, None, (), False)


@pytest.mark.parametrize(
    "inner", [b"\x08\x00\x08\x03\x08\xf8\x03", b"\x0a\x04\x00\x03\xf8\x03"], ids=["one by one", "packed"]
)
def test_numbers_by_hand(inner: bytes) -> None:
    assert wire.read(wire.written({1: (NAME + "CommandGetSqlInfo").encode(), 2: inner})) == wire.GetSqlInfo((0, 3, 504))


def test_fields_that_nobody_knows_are_skipped() -> None:
    inner = b"\xa0\x06\x96\x01" + b"\xa9\x06" + b"8 bytes!" + b"\x0a\x01x" + b"\xad\x06four" + b"\xb2\x06\x02yz"
    assert wire.read(wire.written({1: (NAME + "CommandStatementQuery").encode(), 2: inner})) == wire.StatementQuery(
        "x", b""
    )


@given(st.text(max_size=300))
@settings(deadline=None)
def test_any_text_is_read_as_protobuf_writes_it(text: str) -> None:
    """The envelope is written by the reference implementation."""
    text = text.encode("utf-8", "replace").decode()
    data = PackedAny(type_url=NAME + "CommandStatementQuery", value=wire.written({1: text.encode()}))
    assert wire.read(data.SerializeToString()) == wire.StatementQuery(text, b"")
    parsed = PackedAny.FromString(wire.packed("CommandStatementQuery", {1: text.encode()}))
    assert parsed == data


def test_options_by_hand() -> None:
    text = b"\x0a\x0f" + b"\x0a\x07catalog" + b"\x12\x04\x0a\x02ab"
    number = b"\x0a\x0e" + b"\x0a\x01x" + b"\x12\x09\x19" + b"8 bytes!"
    assert wire.options(text + number) == {"catalog": "ab", "x": None}
    assert wire.options(b"") == {}


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x00\x00",
        b"\x0b\x0c",
        b"\xff" * 11,
        b"\x09short",
        b"\x08\x01",
        b"\x0a\x02\xff\xfe",
        b"\x0a\x01x" * 10_001,
    ],
    ids=["no length", "short", "huge", "field 0", "group", "number", "fixed", "type", "text", "many"],
)
def test_what_does_not_fit_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        wire.read(data)
    with pytest.raises(Malformed):
        wire.read(wire.written({1: (NAME + "CommandStatementQuery").encode(), 2: data}))


@given(st.binary(max_size=200), st.sampled_from(sorted(wire._MESSAGES)))
@settings(deadline=None, max_examples=500)
def test_no_bytes_break_it(data: bytes, name: str) -> None:
    for message in (data, wire.written({1: (NAME + name).encode(), 2: data})):
        try:
            found = wire.read(message)
        except Malformed:
            continue
        assert found is None or type(found) in wire.Message.__args__


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_one_changed_byte_breaks_nothing(data: st.DataObject) -> None:
    message = bytearray(wire.packed("CommandGetTables", {1: b"kgather", 3: b"%", 4: b"TABLE"}))
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = wire.read(bytes(message[: data.draw(st.integers(0, len(message)))]))
    except Malformed:
        return
    assert found is None or type(found) in wire.Message.__args__
