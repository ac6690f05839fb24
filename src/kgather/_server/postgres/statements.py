"""What the statements of a text are: questions, or what concerns the connection alone.

The latter are read by their words, all of them: a statement is only taken for one of these if nothing else is in it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kgather._server.postgres.copying import Form, read_copy
from kgather._server.postgres.cursors import Direction, read_direction
from kgather._server.postgres.errors import (
    NOT_SUPPORTED,
    SYNTAX,
    UNDEFINED_FUNCTION,
    UNKNOWN_SETTING,
    WRONG_VALUE,
    PgError,
)
from kgather._server.postgres.lexer import Piece, Token, split
from kgather._server.postgres.session_settings import NAMES


@dataclass(frozen=True)
class Nothing:
    """No statement at all."""


@dataclass(frozen=True)
class Ask:
    """A question, about data or about the catalog. text: its SQL; start: where that begins in the client's text;
    whole: that text."""

    text: str
    start: int = 0
    whole: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True)
class Declare:
    """Ask, and keep the answer under a name. scrolls: whether it may be gone back in; hold: also behind the
    transaction."""

    name: str
    ask: Ask
    scrolls: bool = True
    hold: bool = False
    binary: bool = False


@dataclass(frozen=True)
class Fetch:
    """Take rows from where a cursor stands, or move it only."""

    name: str
    direction: Direction
    moves: bool = False


@dataclass(frozen=True)
class CloseCursor:
    """Give up a cursor; all where name is None."""

    name: str | None


@dataclass(frozen=True)
class Copy:
    """Ask, and get the answer by COPY."""

    ask: Ask
    form: Form


@dataclass(frozen=True)
class Begin:
    """Begin a transaction: nothing changes but what the client is told of it."""

    tag: str = "BEGIN"


@dataclass(frozen=True)
class End:
    """End a transaction. chain: and begin the next."""

    commit: bool
    chain: bool = False


@dataclass(frozen=True)
class Savepoint:
    """Mark a place in a transaction, give it up, or go back to it."""

    action: str
    name: str


@dataclass(frozen=True)
class Set:
    """Make a setting; to its default where value is None. local: until the end of the transaction."""

    name: str
    value: str | None
    tag: str = "SET"
    local: bool = False


@dataclass(frozen=True)
class Show:
    """Show a setting, or all."""

    name: str


@dataclass(frozen=True)
class Forget:
    """Give up what the connection keeps: settings, prepared statements, portals with cursors, or (with a name) one
    prepared statement."""

    tag: str
    settings: bool = False
    statements: bool = False
    portals: bool = False
    statement: str | None = None


Command = Nothing | Ask | Declare | Fetch | CloseCursor | Copy | Begin | End | Savepoint | Set | Show | Forget

_LONGEST = 10_000
"""Characters of a statement about the connection."""

_MODES = frozenset(
    {"ISOLATION", "LEVEL", "SERIALIZABLE", "REPEATABLE", "READ", "COMMITTED", "UNCOMMITTED", "ONLY", "WRITE", "NOT"}
    | {"DEFERRABLE", ",", "TRANSACTION", "WORK"}
)
_REFUSED = {
    **dict.fromkeys(
        ("PREPARE", "EXECUTE"),
        (
            "PREPARE and EXECUTE are not answered.",
            "Prepare statements by the protocol, as client libraries do.",
        ),
    ),
    "LISTEN": ("There is nothing to listen to.", None),
    "NOTIFY": ("There is nobody to notify.", None),
}
_NO_LOCKS = "Leave the call out: nobody writes here, so there is nothing to lock."
_ADVISORY = re.compile(r"pg_(?:try_)?advisory_(?:xact_)?(?:un)?lock(?:_shared)?")
_QUESTIONS = frozenset(
    {"(", "SELECT", "WITH", "VALUES", "TABLE", "FROM", "DESCRIBE", "DESC", "SUMMARIZE", "PIVOT", "UNPIVOT"}
    | {"EXPLAIN", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT"}
    | {"REVOKE", "COMMENT", "VACUUM", "ANALYZE", "ANALYSE", "REINDEX", "CLUSTER", "LOCK", "CALL", "DO"}
    | {"CHECKPOINT", "LOAD", "REFRESH", "IMPORT", "EXPORT", "SECURITY", "REASSIGN", "ATTACH", "DETACH", "USE"}
    | {"PRAGMA", "INSTALL"}
)
"""What statements begin with that go on to the guard, which says of most of them that it does not answer them."""
_OTHERWISE = "This statement about the connection is not accepted in this form."


def read(text: str) -> list[Command]:
    """The statements of a text, at least one. Raises PgError where one of them is none, with its place in the text."""
    pieces = split(text)
    if not pieces:
        return [Nothing()]
    return [_read(piece) for piece in pieces]


def parameters_of(command: Command) -> Ask | None:
    """The question whose parameters are a statement's."""
    return command if isinstance(command, Ask) else command.ask if isinstance(command, Declare) else None


def _read(piece: Piece) -> Command:
    try:
        return _command(piece)
    except PgError as error:
        raise error.moved(piece.start) from None


def _command(piece: Piece) -> Command:
    tokens = piece.tokens
    first = tokens[0].upper
    if first in _REFUSED:
        told, hint = _REFUSED[first]
        raise PgError(NOT_SUPPORTED, told, 1, hint)
    if first == "COPY":
        query, start, form = read_copy(piece.text, tokens)
        return Copy(Ask(query, piece.start + start, piece.whole), form)
    if first == "DECLARE":
        return _declare(piece)
    reader = _READERS.get(first)
    if reader is None and first not in _QUESTIONS:
        raise PgError(SYNTAX, "No statement begins like this.", 1, "Write a SELECT.")
    if reader is None:
        _check_calls(tokens)
        return Ask(piece.text, piece.start, piece.whole)
    if len(piece.text) > _LONGEST:
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    if first == "SHOW" and [token.upper for token in tokens[1:]] == ["TABLES"]:
        return Ask(piece.text, piece.start, piece.whole)
    return reader(tokens)


def _check_calls(tokens: Sequence[Token]) -> None:
    """Raises PgError for a call that is never answered, with what to write instead."""
    for at, (token, behind) in enumerate(pairwise(tokens)):
        if token.kind != "word" or behind.text != "(":
            continue
        if _ADVISORY.fullmatch(token.value):
            raise PgError(NOT_SUPPORTED, "There are no advisory locks here.", token.start + 1, _NO_LOCKS)
        if token.value == "database" and tokens[at + 2 :] and tokens[at + 2].text == ")":
            told, hint = "There is no function database().", "Write current_database()."
            raise PgError(UNDEFINED_FUNCTION, told, token.start + 1, hint)


def _declare(piece: Piece) -> Command:
    tokens = piece.tokens
    words = [token.upper for token in tokens]
    if len(tokens) < 2 or tokens[1].kind not in ("word", "name") or "FOR" not in words or "CURSOR" not in words:
        raise PgError(SYNTAX, "This DECLARE cannot be read.", 1, "Write DECLARE name CURSOR FOR SELECT ...")
    at = words.index("FOR")
    options = words[2:at]
    kinds = options[: options.index("CURSOR")] if "CURSOR" in options else ["?"]
    holds = options[len(kinds) + 1 :]
    scrolls = "NO SCROLL" not in " ".join(kinds)
    if not {*kinds} <= {"BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"} or holds not in (
        [],
        ["WITH", "HOLD"],
        ["WITHOUT", "HOLD"],
    ):
        raise PgError(SYNTAX, "This DECLARE cannot be read.", 1, "Write DECLARE name CURSOR FOR SELECT ...")
    if at + 1 >= len(tokens):
        raise PgError(SYNTAX, "The cursor is for no SELECT.", tokens[at].start + 1)
    start = tokens[at + 1].start
    ask = Ask(piece.text[start:], piece.start + start, piece.whole)
    return Declare(tokens[1].value, ask, scrolls, holds[:1] == ["WITH"], "BINARY" in kinds)


def _fetch(tokens: Sequence[Token]) -> Command:
    direction, name = read_direction(tokens[1:])
    return Fetch(name, direction, tokens[0].upper == "MOVE")


def _begin(tokens: Sequence[Token]) -> Command:
    first, *rest = [token.upper for token in tokens]
    if not set(rest) <= _MODES or (first == "START" and rest[:1] != ["TRANSACTION"]):
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    return Begin("BEGIN" if first == "BEGIN" else "START TRANSACTION")


def _savepoint(tokens: Sequence[Token]) -> Command:
    first, *rest = [token.upper for token in tokens]
    names = tokens[2:] if rest[:1] == ["SAVEPOINT"] and first == "RELEASE" else tokens[1:]
    return Savepoint(first, _one_name(names))


def _end(tokens: Sequence[Token]) -> Command:
    first, *words = [token.upper for token in tokens]
    if words[:1] in (["TRANSACTION"], ["WORK"]):
        words, tokens = words[1:], tokens[1:]
    if first == "ROLLBACK" and words[:1] == ["TO"]:
        return Savepoint("ROLLBACK", _one_name(tokens[3:] if words[1:2] == ["SAVEPOINT"] else tokens[2:]))
    if words not in ([], ["AND", "NO", "CHAIN"], ["AND", "CHAIN"]):
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    return End(commit=first in ("COMMIT", "END"), chain=words == ["AND", "CHAIN"])


def _show(tokens: Sequence[Token]) -> Command:
    return Show(_joined(tokens[1:]))


def _reset(tokens: Sequence[Token]) -> Command:
    name = _joined(tokens[1:])
    return Forget("RESET", settings=True) if name == "all" else Set(name, None, "RESET")


def _set(tokens: Sequence[Token]) -> Command:
    words = [token.upper for token in tokens]
    at = 2 if words[1:2] in (["SESSION"], ["LOCAL"]) and words[2:3] not in (["="], ["TO"]) else 1
    local = at == 2 and words[1] == "LOCAL"
    rest = words[at:]
    if rest[:1] == ["TRANSACTION"] or rest[:3] == ["CHARACTERISTICS", "AS", "TRANSACTION"]:
        if not set(rest[1:]) - {"AS"} <= _MODES:
            raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
        return Set("transaction_read_only", "on")
    if rest[:2] == ["TIME", "ZONE"]:
        return _zone(tokens[at + 2 :], local)
    if rest[:1] == ["NAMES"]:
        return _to("client_encoding", tokens[at + 1 :], local)
    if rest[:1] == ["ROLE"] and rest[1:2] != ["="]:
        return _to("role", tokens[at + 1 :], local)
    if rest[:1] == ["AUTHORIZATION"] or rest[:2] == ["SESSION", "AUTHORIZATION"]:
        return _to("session_authorization", tokens[at + rest.index("AUTHORIZATION") + 1 :], local)
    if rest[:1] == ["SCHEMA"]:
        return _to("search_path", tokens[at + 1 :], local)
    name, behind = _setting(tokens[at:])
    if not name or behind >= len(rest) or rest[behind] not in ("=", "TO"):
        told = "".join(c if " " <= c <= "~" else "?" for c in tokens[at].value[:60]) if len(tokens) > at else ""
        listed = ", ".join(NAMES)
        raise PgError(UNKNOWN_SETTING, f"SET {told} is not accepted.", 1, f"Settings: {listed}.")
    return _to(name, tokens[at + behind + 1 :], local)


def _zone(tokens: Sequence[Token], local: bool) -> Set:
    """A name, a number of hours, or INTERVAL '+02:00' HOUR TO MINUTE: both count east of Greenwich."""
    words = [token.upper for token in tokens]
    if words[:1] != ["INTERVAL"]:
        return _to("TimeZone", tokens, local)
    found = re.fullmatch(r"([+-]?)(\d{1,2}):?(\d{2})?", tokens[1].value) if len(tokens) > 1 else None
    if found is None or words[2:] not in ([], ["HOUR", "TO", "MINUTE"]):
        raise PgError(WRONG_VALUE, _OTHERWISE, tokens[0].start + 1)
    east, hours, minutes = found[1] != "-", found[2].rjust(2, "0"), found[3] or "00"
    return Set(
        "TimeZone", f"<{'+' if east else '-'}{hours}:{minutes}>{'-' if east else '+'}{hours}:{minutes}", local=local
    )


def _setting(tokens: Sequence[Token]) -> tuple[str, int]:
    """The name of a setting, which may have dots in it, and how many words that is."""
    parts, at = [], 0
    while at < len(tokens) and tokens[at].kind in ("word", "name"):
        parts.append(tokens[at].value)
        at += 1
        if at >= len(tokens) or tokens[at].text != ".":
            break
        at += 1
    return ".".join(parts), at


def _to(name: str, tokens: Sequence[Token], local: bool = False) -> Set:
    if [token.upper for token in tokens] in (["DEFAULT"], ["LOCAL"]):
        return Set(name, None, local=local)
    values: list[str] = []
    sign = ""
    for token in tokens:
        if token.kind == "sign" and token.text == "," and len(values) and not sign:
            sign = ","
        elif token.kind == "sign" and token.text in ("-", "+") and sign in ("", ",") and (not values or sign):
            sign = token.text
        elif token.kind in ("word", "number", "text", "name") and (sign or not values):
            # Words keep their case: names of time zones have one.
            text = token.text if token.kind == "word" else token.value
            values.append(("-" if sign == "-" else "") + text)
            sign = ""
        else:
            raise PgError(WRONG_VALUE, _OTHERWISE, token.start + 1)
    if not values or sign:
        raise PgError(SYNTAX, _OTHERWISE, 1)
    return Set(name, ", ".join(values), local=local)


def _discard(tokens: Sequence[Token]) -> Command:
    rest = [token.upper for token in tokens[1:]]
    if rest in (["ALL"], ["PLANS"], ["SEQUENCES"], ["TEMP"], ["TEMPORARY"]):
        return Forget(
            f"DISCARD {rest[0]}", settings=rest == ["ALL"], statements=rest == ["ALL"], portals=rest == ["ALL"]
        )
    raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)


def _deallocate(tokens: Sequence[Token]) -> Command:
    rest = [token.upper for token in tokens[1:]]
    names = tokens[2:] if rest[:1] == ["PREPARE"] and len(rest) > 1 else tokens[1:]
    if [token.upper for token in names] == ["ALL"]:
        return Forget("DEALLOCATE ALL", statements=True)
    return Forget("DEALLOCATE", statement=_one_name(names))


def _close(tokens: Sequence[Token]) -> Command:
    return CloseCursor(None if [token.upper for token in tokens[1:]] == ["ALL"] else _one_name(tokens[1:]))


def _unlisten(tokens: Sequence[Token]) -> Command:
    if len(tokens) != 2:
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    return Forget("UNLISTEN")


def _one_name(tokens: Sequence[Token]) -> str:
    if len(tokens) != 1 or tokens[0].kind not in ("word", "name"):
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    return tokens[0].value


def _joined(tokens: Sequence[Token]) -> str:
    """A setting's name: words, or parts with dots between them."""
    name, count = _setting(tokens)
    if name and count == len(tokens):
        return name.lower()
    if not tokens or any(token.kind not in ("word", "name") for token in tokens):
        raise PgError(NOT_SUPPORTED, _OTHERWISE, 1)
    return " ".join(token.value for token in tokens).lower()


_READERS = {
    **dict.fromkeys(("BEGIN", "START"), _begin),
    **dict.fromkeys(("COMMIT", "END", "ROLLBACK", "ABORT"), _end),
    **dict.fromkeys(("SAVEPOINT", "RELEASE"), _savepoint),
    **dict.fromkeys(("FETCH", "MOVE"), _fetch),
    "SET": _set,
    "RESET": _reset,
    "SHOW": _show,
    "DISCARD": _discard,
    "DEALLOCATE": _deallocate,
    "CLOSE": _close,
    "UNLISTEN": _unlisten,
}


def reads_relations(text: str) -> bool:
    """Whether a question reads anything but values: it has the word FROM, or is one of DuckDB's that begin with a
    table. What has not cannot reach data."""
    return re.search(r"\b(?:from|table|show|describe|summarize)\b", text, re.IGNORECASE) is not None
