"""SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL puts it into its protocol: scramp makes the exchange.

Over TLS the variant with channel binding is offered, too: then somebody in between, with another certificate, cannot
pass on what client and server say to each other.
"""

import asyncio
from typing import Any

from pygwire.messages import (
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    SASLInitialResponse,
    SASLResponse,
)
from scramp import ScramException, ScramMechanism

from kgather._server.logins import FailedLogins, TooManyLoginsError
from kgather._server.postgres.errors import TOO_MANY_CONNECTIONS, WRONG_PASSWORD, FatalError
from kgather._server.postgres.frames import FIRST_ANSWER, NEXT_ANSWER, PASSWORD, decoded, read_frame
from kgather._server.postgres.stream import Stream
from kgather._server.users import Users

WIRE = "postgres"

_PLAIN, _BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_AFTER_FAILURE = 0.5  # seconds; guessing is slow
_ONLY = frozenset({PASSWORD})
_NOBODY = "nobody"


def _failed() -> FatalError:
    """The same for a wrong password, a name that nobody has, and an exchange that is none."""
    return FatalError(WRONG_PASSWORD, "The name or the password is wrong.")


async def log_in(
    stream: Stream, name: str, users: Users, certificate: str | None, most: int, failed: FailedLogins
) -> None:
    """Have a client prove that it knows a user's password. certificate: of the server in PEM, over TLS. failed: says
    when it is its turn to be judged.

    Raises FatalError, after a while, where it does not; GoneError.
    """
    mechanisms = [_BOUND, _PLAIN] if certificate is not None else [_PLAIN]
    stream.write(AuthenticationSASL(mechanisms=mechanisms).to_wire())
    await stream.drain()
    _, content = await read_frame(stream, _ONLY, most)
    first = decoded(FIRST_ANSWER[PASSWORD], content)
    assert isinstance(first, SASLInitialResponse)
    judged = False
    try:
        if first.mechanism not in mechanisms:
            raise _failed()
        server = _server(first.mechanism, name, users, certificate)
        _begin(server, first.data.decode("utf-8"))
        stream.write(AuthenticationSASLContinue(data=server.get_server_first().encode()).to_wire())
        await stream.drain()
        _, content = await read_frame(stream, _ONLY, most)
        last = decoded(NEXT_ANSWER[PASSWORD], content)
        assert isinstance(last, SASLResponse)
        with failed.queue(stream.address, name) as turn:
            while seconds := turn.wait():
                await asyncio.sleep(seconds)
            judged = True
            try:
                server.set_client_final(last.data.decode("utf-8"))
                proof = server.get_server_final()
                if name not in users.names:
                    raise _failed()
            except (ScramException, UnicodeDecodeError, FatalError):
                failed.failed(WIRE, stream.address, name)
                raise
            failed.succeeded(stream.address, name)
    except TooManyLoginsError as error:
        raise FatalError(TOO_MANY_CONNECTIONS, str(error)) from None
    except (ScramException, UnicodeDecodeError, FatalError):
        if not judged:
            failed.failed(WIRE, stream.address, name)
        await asyncio.sleep(_AFTER_FAILURE)
        raise _failed() from None
    stream.write(AuthenticationSASLFinal(data=proof.encode()).to_wire())
    stream.write(AuthenticationOk().to_wire())


def _server(mechanism: str, name: str, users: Users, certificate: str | None) -> Any:
    known = users.verifier(name)

    def verifier(_: str) -> tuple[bytes, bytes, bytes, int]:
        return known.salt, known.stored_key, known.server_key, known.iterations

    # A client that could bind to the channel and thinks that the server cannot has been lied to: scramp refuses it.
    binding = ("tls-server-end-point", certificate) if certificate is not None else None
    return ScramMechanism(mechanism).make_server(verifier, channel_binding=binding)


def _begin(server: Any, first: str) -> None:
    """Hand over the client's first message. Clients of PostgreSQL name the user in the startup message and leave it
    empty here, which the RFC does not allow; both sides sign the message as it was."""
    flag, identity, user, rest = (*first.split(",", 3), "", "", "", "")[:4]
    if user != "n=":
        server.set_client_first(first)
        return
    server.set_client_first(f"{flag},{identity},n={_NOBODY},{rest}")
    server.client_first_bare = f"{user},{rest}"
