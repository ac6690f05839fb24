"""From bytes to messages. pygwire knows their parts; here is what a server must not leave to a decoder.

A message is taken only if its type is one that a client sends, its length is within bounds, and it is written again as
the same bytes: then nothing in it was cut short, left over, or counted backwards.
"""

import struct
from collections.abc import Mapping

from pygwire.constants import StartupRequestCode
from pygwire.exceptions import PygwireError
from pygwire.messages import (
    Bind,
    CancelRequest,
    Close,
    Describe,
    Execute,
    Flush,
    Parse,
    PGMessage,
    Query,
    SASLInitialResponse,
    SASLResponse,
    StartupMessage,
    Sync,
    Terminate,
)

from kgather._server.postgres.errors import NOT_SUPPORTED, PROTOCOL, WRONG_ENCODING, FatalError, PgError, violate
from kgather._server.postgres.stream import Stream

STATEMENTS: Mapping[bytes, type[PGMessage]] = {
    b"Q": Query,
    b"P": Parse,
    b"B": Bind,
    b"D": Describe,
    b"E": Execute,
    b"C": Close,
    b"S": Sync,
    b"H": Flush,
    b"X": Terminate,
}
"""Messages of a client that has logged in."""

_TEXTS = (b"Q", b"P")
"""Messages that are mostly a statement."""

FUNCTION_CALL = b"F"
OUT_OF_COPY = frozenset({b"d", b"c", b"f"})
"""Data of a COPY; a client may go on sending them after the COPY was refused, and nobody answers."""

PASSWORD = b"p"
FIRST_ANSWER: Mapping[bytes, type[PGMessage]] = {PASSWORD: SASLInitialResponse}
NEXT_ANSWER: Mapping[bytes, type[PGMessage]] = {PASSWORD: SASLResponse}

_HEAD = 4
_REQUESTS = (StartupRequestCode.SSL_REQUEST, StartupRequestCode.GSSENC_REQUEST)
_LONGEST_KEY = 256
_MAJOR = 3


async def read_frame(stream: Stream, known: frozenset[bytes], most: int) -> tuple[bytes, bytes]:
    """The type of the next message and its content. Raises GoneError, or FatalError where it is none."""
    head = await stream.read(1 + _HEAD)
    kind, (length,) = head[:1], struct.unpack("!i", head[1:])
    if kind not in known:
        violate("a message of a type that is not expected here")
    if not _HEAD <= length <= most:
        violate("the length of a message is out of bounds")
    return kind, await stream.read(length - _HEAD)


def statement(kind: bytes, content: bytes) -> PGMessage:
    """A message of a client that has logged in. Where its content is wrong its end is known all the same: PgError is
    raised, and the conversation goes on."""
    try:
        return decoded(STATEMENTS[kind], content)
    except FatalError as error:
        if kind in _TEXTS and not _is_utf8(content):
            raise PgError(WRONG_ENCODING, "The statement is no text in UTF-8.", hint="Send texts in UTF-8.") from None
        if kind in _TEXTS and b"\0" in content[:-1].strip(b"\0"):
            raise PgError(PROTOCOL, "The statement holds a zero byte, or its message has another length.") from None
        raise PgError(error.code, error.message) from None


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decoded(kind: type[PGMessage], content: bytes) -> PGMessage:
    """A message from its content. Raises FatalError."""
    try:
        message = kind.decode(memoryview(content))
        same = message.encode() == content
    except (PygwireError, struct.error, ValueError, IndexError, OverflowError):
        same = False
    if not same:
        violate("the content of a message cannot be read")
    return message


async def read_startup(stream: Stream, most: int) -> StartupMessage | CancelRequest | StartupRequestCode:
    """The first message of a connection; of a request to encrypt its code. Raises GoneError or FatalError."""
    (length,) = struct.unpack("!i", await stream.read(_HEAD))
    if not 2 * _HEAD <= length <= most:
        violate("the length of the first message is out of bounds")
    content = await stream.read(length - _HEAD)
    (code,) = struct.unpack_from("!I", content)
    if code in _REQUESTS:
        if length != 2 * _HEAD:
            violate("the first message is too long")
        return StartupRequestCode(code)
    if code == StartupRequestCode.CANCEL_REQUEST:
        if not _HEAD <= length - 3 * _HEAD <= _LONGEST_KEY:
            violate("a key to cancel with is too short or too long")
        cancel = decoded(CancelRequest, content)
        assert isinstance(cancel, CancelRequest)
        return cancel
    if code >> 16 != _MAJOR:
        raise FatalError(NOT_SUPPORTED, "The server speaks version 3 of the protocol.")
    startup = decoded(StartupMessage, content)
    assert isinstance(startup, StartupMessage)
    return startup
