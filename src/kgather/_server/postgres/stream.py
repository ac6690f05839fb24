"""The bytes of one connection: read by exact numbers, written with back pressure, and encrypted on the way.

Unlike asyncio's own streams this one knows what it holds, so that bytes which came before encryption are never taken
for bytes that came after it, and a client that sends without end is not read from.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

_HELD = 1 << 16  # bytes that are read ahead of what is asked for


_PATIENCE = 60.0  # seconds for a client to take what was sent
_LAST_WORDS = 2.0  # the same, before the connection is closed


class GoneError(Exception):
    """The client has left."""


class Stream(asyncio.Protocol):
    """One connection. accepted: called with it when it is made; lost: called when the client has left."""

    def __init__(self, accepted: "Callable[[Stream], None]") -> None:
        self._accepted = accepted
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._wanted = 0
        self._paused = False
        self._ended = False
        self._lost = False
        self._encrypting = False
        self._reader: asyncio.Future[None] | None = None
        self._peeking: asyncio.Event | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost: Callable[[], None] = lambda: None

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        first, self._transport = self._transport is None, transport
        if first:
            self._accepted(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._paused and len(self._buffer) >= max(_HELD, self._wanted):
            self._paused = True
            self._open().pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, _: Exception | None) -> None:
        self._lost = True
        self._writable.set()
        if self._peeking is not None:
            self._peeking.set()
        self._end()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # What the server calls

    @property
    def buffered(self) -> int:
        """How many bytes came that nobody has read."""
        return len(self._buffer)

    @property
    def encryption(self) -> ssl.SSLObject | None:
        """Of an encrypted connection."""
        return self._transport.get_extra_info("ssl_object") if self._transport is not None else None

    @property
    def encrypting(self) -> bool:
        """Whether it is being agreed how to encrypt: nothing can be said meanwhile."""
        return self._encrypting

    @property
    def address(self) -> str | None:
        """Where the client is, without its port."""
        peer = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(peer[0]) if isinstance(peer, tuple) and peer else None

    async def first_byte(self) -> bytes:
        """The first byte that comes, left where it is: TLS has to find it there. Call it once, as the first thing that
        is done with a new connection, so that nothing was read yet. Raises GoneError."""
        transport = self._open()
        transport.pause_reading()
        with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as peeked:
            peeked.setblocking(False)
            first = None
            while first is None:
                if self._lost:  # the socket stays open as long as it is peeked at
                    raise GoneError
                try:
                    first = peeked.recv(1, socket.MSG_PEEK)
                except BlockingIOError:
                    self._peeking = asyncio.Event()
                    await _readable(peeked, self._peeking)
                except OSError:
                    raise GoneError from None
        if not first:
            raise GoneError
        transport.resume_reading()
        return first

    async def read(self, count: int) -> bytes:
        """The next bytes, as many as that. Raises GoneError where fewer come."""
        while len(self._buffer) < count:
            if self._ended:
                raise GoneError
            self._wanted = count
            if self._paused:
                self._paused = False
                self._open().resume_reading()
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        self._wanted = 0
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        if self._paused and len(self._buffer) < _HELD and not self._ended:
            self._paused = False
            self._open().resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """Send bytes; what a client that has left does not get is dropped."""
        if not self._lost:
            self._open().write(data)

    async def drain(self) -> None:
        """Wait until the client takes what was sent. Raises GoneError."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._writable.wait()
        except TimeoutError:
            self.abort()
        if self._lost or not self._writable.is_set():
            raise GoneError

    async def encrypt(self, context: ssl.SSLContext, answer: bytes, seconds: float) -> None:
        """Answer, and go on encrypted. There must be nothing in the buffer. Raises GoneError."""
        assert not self._buffer, "what came before encryption is not read after it"
        transport = self._open()
        transport.write(answer)
        self._encrypting = True
        try:
            made = await asyncio.get_running_loop().start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError):
            raise GoneError from None
        finally:
            self._encrypting = False
        if made is None:
            raise GoneError
        self._transport = made

    def close(self) -> None:
        """Send what is left to send, and hang up; at once where the client does not take it."""
        if self._transport is not None and not self._lost:
            self._transport.close()
            asyncio.get_running_loop().call_later(_LAST_WORDS, self.abort)

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None and not self._lost:
            self._transport.abort()

    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise GoneError
        return self._transport

    def _end(self) -> None:
        ended, self._ended = self._ended, True
        self._wake()
        if not ended:
            self.lost()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def _readable(sock: socket.socket, event: asyncio.Event) -> None:
    """Wait until something can be read, or somebody sets the event."""
    loop = asyncio.get_running_loop()
    loop.add_reader(sock.fileno(), event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(sock.fileno())
