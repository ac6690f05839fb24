"""Whatever bytes come: the server does not fall over, answers nobody who did not log in, and serves the next client."""

import contextlib
import logging
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pygwire.messages import SASLInitialResponse, StartupMessage
from raw_client import Bind, Close, Describe, Execute, Flush, Parse, Query, RawClient, Sync, errors, kinds
from wire_files import USER, Running

from kgather._server.logins import FailedLogins
from kgather._server.postgres.errors import PgError
from kgather._server.postgres.parameters import casts
from kgather._server.postgres.startup import options
from kgather._server.postgres.statements import read
from kgather._server.postgres.types import UnreadableError, read_parameter

pytestmark = pytest.mark.long

CITIES = "select city from cities order by city"
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

STARTUP = StartupMessage(params={"user": USER, "database": "kgather"}).to_wire()
ANSWER = SASLInitialResponse(mechanism="SCRAM-SHA-256", data=b"n,,n=,r=abcdefghijkl").to_wire()
GOOD = [
    Query(query_string=CITIES).to_wire(),
    Parse(statement="s", query="select count(*) from people where film_a >= $1", param_types=[20]).to_wire(),
    Bind(portal="p", statement="s", param_values=[b"2"], param_formats=[0], result_formats=[1]).to_wire(),
    Describe(kind="S", name="s").to_wire(),
    Describe(kind="P", name="p").to_wire(),
    Execute(portal="p", max_rows=1).to_wire(),
    Close(kind="P", name="p").to_wire(),
    Flush().to_wire(),
    Sync().to_wire(),
]
FRAMES = st.builds(
    lambda kind, content, off: (
        kind + struct.pack("!i", max(min(len(content) + 4 + off, (1 << 31) - 1), -(1 << 31))) + content
    ),
    st.one_of(st.sampled_from([bytes([c]) for c in b"QPBDECSHXFdcfp"]), st.binary(min_size=1, max_size=1)),
    st.one_of(st.binary(max_size=60), st.text(max_size=40).map(lambda text: text.encode() + b"\0")),
    st.sampled_from([0, 0, 0, 0, 1, -1, -5, 5, 1000, 1 << 30, -(1 << 31)]),
)


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with some of them changed, left out, or put in twice."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        what = draw(st.sampled_from(["change", "leave out", "twice", "cut"]))
        if what == "change" and data:
            data[at] = draw(st.integers(0, 255))
        elif what == "leave out":
            del data[at : at + draw(st.integers(1, 4))]
        elif what == "twice":
            data[at:at] = data[at : at + draw(st.integers(1, 8))]
        else:
            del data[at:]
    return bytes(data)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many logins fail here, from one address."""
    monkeypatch.setattr(FailedLogins, "delay", lambda *_: 0.0)


@pytest.fixture(autouse=True)
def no_incidents(caplog: pytest.LogCaptureFixture, running: Running) -> Iterator[None]:
    """Nothing unforeseen happens, and the server serves afterwards."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    with RawClient(running) as client:
        assert kinds(client.query(CITIES)) == "TDDDCZ"


def said(connection: socket.socket, data: bytes) -> bytes:
    """All that the server says until it hangs up; it is told that nothing more comes."""
    connection.settimeout(10)
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    found = b""
    with contextlib.suppress(ConnectionError):
        while more := connection.recv(65536):
            found += more
    return found


def messages(data: bytes) -> list[tuple[bytes, bytes]]:
    found = []
    while len(data) >= 5:
        (length,) = struct.unpack("!i", data[1:5])
        assert length >= 4, "the server frames what it says"
        found.append((data[:1], data[5 : 1 + length]))
        data = data[1 + length :]
    return found


@FEW
@given(
    st.one_of(st.binary(max_size=200), mutated(STARTUP), mutated(STARTUP + ANSWER), mutated(STARTUP + ANSWER + GOOD[0]))
)
def test_before_a_login_nothing_is_answered(running: Running, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        found = said(connection, data).removeprefix(b"N").removeprefix(b"N")
    # Questions for a password and errors: never that it was right, a key, a row, or that the server is ready.
    assert all(kind in b"REv" for kind, _ in messages(found))
    assert not any(kind == b"R" and content[:4] in (bytes(4), b"\0\0\0\x0c") for kind, content in messages(found))


@FEW
@given(st.lists(FRAMES, max_size=6), st.integers(0, 8))
def test_random_frames_after_a_login(running: Running, frames: list[bytes], cut: int) -> None:
    data = b"".join(frames)
    with RawClient(running) as client:
        check(said(client.socket, data[: len(data) - cut] if cut else data))


@FEW
@given(st.lists(st.sampled_from(GOOD), min_size=1, max_size=8).flatmap(lambda parts: mutated(b"".join(parts))))
def test_mutated_messages_after_a_login(running: Running, data: bytes) -> None:
    with RawClient(running) as client:
        check(said(client.socket, data))


@FEW
@given(st.lists(st.sampled_from(GOOD), max_size=12), st.lists(st.integers(1, 40), max_size=12))
def test_messages_in_any_order_and_in_any_pieces(running: Running, parts: list[bytes], sizes: list[int]) -> None:
    """Well-formed messages never end a connection, whatever their order."""
    data = b"".join(parts)
    with RawClient(running) as client:
        for size in sizes:
            client.send(data[:size])
            data = data[size:]
        client.send(data, Sync(), Query(query_string=""))
        found = client.until(b"I") + client.until(b"Z")
        assert all(error["S"] == "ERROR" for error in errors(found))


def check(data: bytes) -> None:
    """Errors have the fixed fields only."""
    for error in errors(messages(data)):
        assert set(error) <= set("SVCMPH")
        assert "Error:" not in error["M"]
        assert error["C"] != "XX000"


@given(
    st.sampled_from([16, 17, 18, 20, 21, 23, 25, 26, 700, 701, 1043, 1082, 1114, 1184, 1700, 1007, 1009, 0]),
    st.binary(max_size=40),
    st.integers(0, 1),
)
def test_parameters_of_any_bytes(oid: int, raw: bytes, form: int) -> None:
    from datetime import UTC

    with contextlib.suppress(UnreadableError):
        read_parameter(oid, raw, form, UTC)


WORDS = st.sampled_from(
    [
        "set",
        "show",
        "begin",
        "commit",
        "rollback",
        "to",
        "=",
        ",",
        ";",
        "timezone",
        "'UTC'",
        '"x"',
        "savepoint",
        "all",
        "1",
        "local",
        "session",
        "time",
        "zone",
        "deallocate",
        "discard",
        "--\n",
        "/**/",
        "transaction",
        "read",
        "only",
        "select",
    ]
)


@given(st.one_of(st.lists(WORDS, max_size=8).map(" ".join), st.text(max_size=30)))
def test_statements_of_any_words(text: str) -> None:
    with contextlib.suppress(PgError):
        assert read(text)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3), st.text(max_size=30))
def test_options_of_any_text(parameters: dict[str, str], text: str) -> None:
    with contextlib.suppress(PgError):
        list(options({**parameters, "options": text}))


def test_casts_are_found() -> None:
    from sqlglot import Dialect

    tokens: Any = Dialect.get_or_raise("postgres").tokenize("select $2::int4, $1::pg_catalog.oid[], $3, $4::text")
    assert casts(tokens) == (1028, 23, 0, 25)
