"""A client that says exactly what it is told to, in order or not."""

import socket
import struct
from collections.abc import Sequence
from typing import Any

from pygwire.messages import (
    Bind,
    Close,
    Describe,
    Execute,
    Flush,
    Parse,
    Query,
    SASLInitialResponse,
    SASLResponse,
    StartupMessage,
    Sync,
)
from scramp import ScramClient
from wire_files import PASSWORD, USER, Running

SSL = struct.pack("!ii", 8, 80877103)
GSS = struct.pack("!ii", 8, 80877104)

__all__ = ["GSS", "SSL", "Bind", "Close", "Describe", "Execute", "Flush", "Parse", "Query", "RawClient", "Sync"]


class ClosedError(Exception):
    """The server hung up."""


class RawClient:
    """One connection. parameters, keys: what the server said when it was made."""

    def __init__(self, running: Running, *, log_in: bool = True, **startup: Any) -> None:
        self.socket = socket.create_connection(("127.0.0.1", running.port), timeout=15)
        self.port = running.port
        self.parameters: dict[str, str] = {}
        self.keys = (0, b"")
        self.negotiated: list[bytes] = []
        if log_in:
            self.log_in(**startup)

    def log_in(self, *, user: str = USER, password: str = PASSWORD, version: int = 0x30000, **more: str) -> None:
        self.startup(user=user, version=version, **more)
        kind, content = self.next()
        while kind == b"v":
            self.negotiated.append(content)
            kind, content = self.next()
        assert (kind, content[:4]) == (b"R", struct.pack("!i", 10)), (kind, content)
        scram = ScramClient(["SCRAM-SHA-256"], user, password)
        first = scram.get_client_first().replace(f"n={user},", "n=,", 1)
        scram.client_first_bare = scram.client_first_bare.replace(f"n={user},", "n=,", 1)
        self.send(SASLInitialResponse(mechanism="SCRAM-SHA-256", data=first.encode()))
        kind, content = self.next()
        if kind == b"E":
            raise ClosedError(error_of(content))
        scram.set_server_first(content[4:].decode())
        self.send(SASLResponse(data=scram.get_client_final().encode()))
        kind, content = self.next()
        if kind == b"E":
            raise ClosedError(error_of(content))
        scram.set_server_final(content[4:].decode())
        while kind != b"Z":
            kind, content = self.next()
            if kind == b"S":
                name, value = content[:-1].split(b"\0")
                self.parameters[name.decode()] = value.decode()
            if kind == b"K":
                self.keys = (struct.unpack("!i", content[:4])[0], content[4:])
            if kind == b"E":
                raise ClosedError(error_of(content))

    def startup(self, *, user: str = USER, version: int = 0x30000, **more: str) -> None:
        message = StartupMessage(params={"user": user, "database": "kgather", **more}, protocol_version=version)
        self.socket.sendall(message.to_wire())

    def send(self, *messages: Any) -> None:
        self.socket.sendall(b"".join(each if isinstance(each, bytes) else each.to_wire() for each in messages))

    def next(self) -> tuple[bytes, bytes]:
        head = self.exactly(5)
        return head[:1], self.exactly(struct.unpack("!i", head[1:])[0] - 4)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionError:
                more = b""
            if not more:
                raise ClosedError(data)
            data += more
        return data

    def until(self, *kinds: bytes) -> list[tuple[bytes, bytes]]:
        """Messages, to the first of these kinds."""
        found = [self.next()]
        while found[-1][0] not in kinds:
            found.append(self.next())
        return found

    def ask(self, *messages: Any) -> list[tuple[bytes, bytes]]:
        """Send, and read until the server is ready again."""
        self.send(*messages)
        return self.until(b"Z")

    def query(self, text: str) -> list[tuple[bytes, bytes]]:
        return self.ask(Query(query_string=text))

    def to_the_end(self) -> list[tuple[bytes, bytes]]:
        """Messages until the server hangs up."""
        found = []
        try:
            while True:
                found.append(self.next())
        except ClosedError:
            return found

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def error_of(content: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in content.split(b"\0") if part}


def errors(messages: Sequence[tuple[bytes, bytes]]) -> list[dict[str, str]]:
    return [error_of(content) for kind, content in messages if kind == b"E"]


def kinds(messages: Sequence[tuple[bytes, bytes]]) -> str:
    return b"".join(kind for kind, _ in messages).decode()


def rows(messages: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes | None, ...]]:
    found = []
    for kind, content in messages:
        if kind != b"D":
            continue
        (count,), at, row = struct.unpack("!h", content[:2]), 2, []
        for _ in range(count):
            (length,) = struct.unpack_from("!i", content, at)
            at += 4
            row.append(None if length < 0 else content[at : at + length])
            at += max(length, 0)
        found.append(tuple(row))
    return found


def columns(messages: Sequence[tuple[bytes, bytes]]) -> list[tuple[str, int, int]]:
    """Name, type and format of each column."""
    content = next(content for kind, content in messages if kind == b"T")
    found, at = [], 2
    for _ in range(struct.unpack("!h", content[:2])[0]):
        end = content.index(b"\0", at)
        oid, form = (
            struct.unpack("!I", content[end + 7 : end + 11])[0],
            struct.unpack("!h", content[end + 17 : end + 19]),
        )
        found.append((content[at:end].decode(), oid, form[0]))
        at = end + 19
    return found
