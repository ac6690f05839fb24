"""What clients are told when something does not work: a code, a sentence, and nothing of the database engine."""

import logging
import re
import secrets
from typing import NoReturn

from pygwire.messages import ErrorResponse, NoticeResponse

from kgather._guard.refused import Refused
from kgather._server.service import Internal, Unavailable

_log = logging.getLogger("kgather._server.postgres")

SUCCESS = "00000"
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
IN_TRANSACTION = "25001"
READ_ONLY = "25006"
OBJECT_STATE = "55000"
WRONG_ENCODING = "22021"
NO_SUCH_CURSOR = NO_SUCH_PORTAL
NOT_SUPPORTED = "0A000"
UNDEFINED_FUNCTION = "42883"
UNDEFINED_PARAMETER = "42P02"
SYNTAX = "42601"
UNDEFINED_TABLE = "42P01"
UNDEFINED_COLUMN = "42703"
UNDEFINED_OBJECT = "42704"
UNDEFINED_SCHEMA = "3F000"
AMBIGUOUS_COLUMN = "42702"
GROUPING = "42803"
DIVISION_BY_ZERO = "22012"
CANCELLED = "57014"
SHUTTING_DOWN = "57P01"
IDLE = "57P05"
INTERNAL = "XX000"

TOLD = "This question about the catalog is not answered here."
"""The one text for all questions about the catalog that cannot be answered."""


_PLACE = re.compile(r"\(line \d+, column \d+\)")


class PgError(Exception):
    """A statement that is not answered. position: in the client's text, in characters from 1. hint: what to do."""

    severity = "ERROR"

    def __init__(self, code: str, message: str, position: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.position = position
        self.hint = hint

    def moved(self, by: int) -> "PgError":
        """The same error, of a statement that begins so many characters further on in the text."""
        if self.position is not None:
            self.position = max(self.position + by, 1)
        return self

    def placed(self, text: str) -> "PgError":
        """The same error, whose sentence counts lines and columns in the client's whole text, as its position does."""
        if self.position is not None and text:
            before = text[: self.position - 1]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            self.message = _PLACE.sub(f"(line {line}, column {column})", self.message, count=1)
        return self

    def response(self) -> ErrorResponse:
        """As a message of the protocol. Severity, code, text, hint and position are all that it ever says."""
        fields = {"S": self.severity, "V": self.severity, "C": self.code, "M": self.message.replace("\0", " ")}
        if self.hint is not None:
            fields["H"] = self.hint.replace("\0", " ")
        if self.position is not None:
            fields["P"] = str(self.position)
        return ErrorResponse(fields=fields)


class FatalError(PgError):
    """What ends the connection."""

    severity = "FATAL"


def no_parameter(number: str | int, position: int) -> PgError:
    """A statement names a parameter that it is not given."""
    return PgError(UNDEFINED_PARAMETER, f"There is no parameter ${number}.", position)


def violate(what: str) -> NoReturn:
    """Raise FatalError for bytes that are none of the protocol's."""
    raise FatalError(PROTOCOL, f"Protocol violation: {what}.")


def unforeseen(error: Exception) -> str:
    """Log an error that nobody foresaw; what a client is told of it."""
    incident = secrets.token_hex(4)
    # The kind and the place of it: texts of errors may hold values.
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    at = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else ""
    _log.error("a connection failed", extra={"incident": incident, "error": type(error).__name__, "at": at})
    return f"The server failed. Its log knows more, by {incident}."


def told(error: Refused | Unavailable | Internal) -> PgError:
    """What a client is told when there is no answer."""
    kind = FatalError if isinstance(error, Unavailable) and error.kind in ("shutting_down", "revoked") else PgError
    if not isinstance(error, Refused):
        return kind(error.code, error.reason)
    return kind(error.code, error.sentence, error.position if error.static else None, error.hint)


def notice(message: str, code: str = SUCCESS, severity: str = "NOTICE") -> NoticeResponse:
    """Something to tell beside an answer."""
    return NoticeResponse(fields={"S": severity, "V": severity, "C": code, "M": message})
