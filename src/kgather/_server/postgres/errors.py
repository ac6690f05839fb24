"""What clients are told when something does not work: a code, a sentence, and nothing of the database engine."""

from typing import NoReturn

from pygwire.messages import ErrorResponse

from kgather._guard.refused import Refused
from kgather._server.service import Internal, Unavailable

PROTOCOL = "08P01"
TOO_MANY_CONNECTIONS = "53300"
TOO_MUCH_KEPT = "54000"
WRONG_PASSWORD = "28P01"
NOT_PERMITTED = "28000"
NO_SUCH_STATEMENT = "26000"
NO_SUCH_PORTAL = "34000"
STATEMENT_EXISTS = "42P05"
PORTAL_EXISTS = "42P03"
UNKNOWN_SETTING = "42704"
WRONG_VALUE = "22023"
WRONG_TEXT = "22P02"
WRONG_BINARY = "22P03"
IN_FAILED_TRANSACTION = "25P02"
NO_TRANSACTION = "25P01"
NO_SUCH_SAVEPOINT = "3B001"
NOT_SUPPORTED = "0A000"
SYNTAX = "42601"
CANCELLED = "57014"
SHUTTING_DOWN = "57P01"
IDLE = "57P05"
INTERNAL = "XX000"


class PgError(Exception):
    """A statement that is not answered. position: in the text of the statement, in characters from 1."""

    severity = "ERROR"

    def __init__(self, code: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.position = position

    def response(self) -> ErrorResponse:
        """As a message of the protocol. Severity, code, text and position are all that it ever says."""
        fields = {"S": self.severity, "V": self.severity, "C": self.code, "M": self.message.replace("\0", " ")}
        if self.position is not None:
            fields["P"] = str(self.position)
        return ErrorResponse(fields=fields)


class FatalError(PgError):
    """What ends the connection."""

    severity = "FATAL"


def violate(what: str) -> NoReturn:
    """Raise FatalError for bytes that are none of the protocol's."""
    raise FatalError(PROTOCOL, f"Protocol violation: {what}.")


def told(error: Refused | Unavailable | Internal) -> PgError:
    """What a client is told when there is no answer."""
    kind = FatalError if isinstance(error, Unavailable) and error.kind in ("shutting_down", "revoked") else PgError
    position = error.position if isinstance(error, Refused) and error.static else None
    return kind(error.code, error.reason, position)
