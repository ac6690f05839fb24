"""What a client's text is: a question, or one of the few statements that concern the connection alone.

The latter are read by their words, all of them: a statement is only taken for one of these if nothing else is in it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgather._server.postgres.errors import NOT_SUPPORTED, SYNTAX, UNKNOWN_SETTING, WRONG_VALUE, PgError
from kgather._server.postgres.session_settings import NAMES


@dataclass(frozen=True)
class Nothing:
    """No statement at all."""


@dataclass(frozen=True)
class Ask:
    """A question, about data or about the catalog."""


@dataclass(frozen=True)
class Begin:
    """Begin a transaction: nothing changes but what the client is told of it."""

    tag: str = "BEGIN"


@dataclass(frozen=True)
class End:
    """End a transaction."""

    commit: bool


@dataclass(frozen=True)
class Savepoint:
    """Mark a place in a transaction, give it up, or go back to it."""

    action: str
    name: str


@dataclass(frozen=True)
class Set:
    """Make a setting; to its default where value is None."""

    name: str
    value: str | None
    tag: str = "SET"


@dataclass(frozen=True)
class Show:
    """Show a setting, or all."""

    name: str


@dataclass(frozen=True)
class Forget:
    """Give up what the connection keeps: settings, prepared statements, or (with a name) one of these."""

    tag: str
    settings: bool = False
    statements: bool = False
    statement: str | None = None


Command = Nothing | Ask | Begin | End | Savepoint | Set | Show | Forget

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*(?:(?!/\*|\*/).)*\*/)
    |(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")|(?P<word>[^\W\d][\w$]*|[+-]?\d[\w.]*)|(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_LONGEST = 10_000
_WORDS = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "RESET", "SHOW", "DISCARD"}
    | {"DEALLOCATE", "CLOSE", "UNLISTEN"}
)
_MODES = frozenset(
    {"ISOLATION", "LEVEL", "SERIALIZABLE", "REPEATABLE", "READ", "COMMITTED", "UNCOMMITTED", "ONLY", "WRITE", "NOT"}
    | {"DEFERRABLE", ",", "TRANSACTION", "WORK"}
)
_REFUSED = {
    "COPY": "COPY is not answered. Ask with SELECT.",
    **dict.fromkeys(
        ("PREPARE", "EXECUTE", "DECLARE", "FETCH", "MOVE"),
        "PREPARE, EXECUTE and cursors of SQL are not answered. Prepare statements and fetch rows by the protocol, as"
        " client libraries do.",
    ),
    "LISTEN": "There is nothing to listen to.",
    "NOTIFY": "There is nobody to notify.",
}
_SEVERAL = "These are several statements. Send one at a time."
_OTHERWISE = "This statement about the connection is not accepted in this form."


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def value(self) -> str:
        """What it stands for: a text or a name without its quotes."""
        if self.kind in ("text", "name"):
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text.lower() if self.kind == "word" else self.text


def read(text: str) -> list[Command]:
    """Read a text: one command, or several where all of them only forget. Raises PgError."""
    found = _leading(text)
    if not found:
        return [Nothing()]
    first = found[0].upper
    if first in _REFUSED:
        raise PgError(NOT_SUPPORTED, _REFUSED[first])
    if first not in _WORDS and not _unlocks(text):
        return [Ask()]
    parts: list[list[_Token]] = [[]]
    for token in _tokens(text):
        if token.text == ";" and token.kind == "sign":
            parts.append([])
        else:
            parts[-1].append(token)
    parts = [part for part in parts if part]
    if len(parts) > 1 and not all(_forgets(part) for part in parts):
        raise PgError(NOT_SUPPORTED, _SEVERAL)
    return [_command(part) for part in parts]


def _forgets(tokens: Sequence[_Token]) -> bool:
    """Whether a statement only gives up what the connection keeps."""
    try:
        return isinstance(_command(tokens), Forget)
    except PgError:
        return False


def _leading(text: str) -> list[_Token]:
    """The first word of a text that is no semicolon."""
    at = 0
    while found := _TOKEN.match(text, at):
        at = found.end()
        kind = found.lastgroup or "sign"
        if kind != "space" and found[0] != ";":
            return [_Token(kind, found[0])]
    return []


def _unlocks(text: str) -> bool:
    """Whether it begins as what asyncpg sends to give a connection back."""
    return bool(re.match(r"\s*SELECT\s+pg_advisory_unlock_all\s*\(\s*\)\s*(;|$)", text, re.IGNORECASE))


def _tokens(text: str) -> list[_Token]:
    if len(text) > _LONGEST:
        raise PgError(NOT_SUPPORTED, _OTHERWISE)
    found = [_Token(each.lastgroup or "sign", each[0]) for each in _TOKEN.finditer(text)]
    return [token for token in found if token.kind != "space"]


def _command(tokens: Sequence[_Token]) -> Command:
    words = [token.upper for token in tokens]
    first, rest = words[0], words[1:]
    if first in ("BEGIN", "START"):
        if not set(rest) <= _MODES or (first == "START" and rest[:1] != ["TRANSACTION"]):
            raise PgError(NOT_SUPPORTED, _OTHERWISE)
        return Begin("BEGIN" if first == "BEGIN" else "START TRANSACTION")
    if first in ("COMMIT", "END", "ROLLBACK", "ABORT"):
        return _end(first, tokens)
    if first in ("SAVEPOINT", "RELEASE"):
        names = tokens[2:] if rest[:1] == ["SAVEPOINT"] and first == "RELEASE" else tokens[1:]
        return Savepoint(first, _one_name(names))
    if first == "SET":
        return _set(tokens)
    if first in ("RESET", "SHOW"):
        name = _joined(tokens[1:])
        if first == "SHOW":
            return Ask() if name == "tables" else Show(name)
        return Forget("RESET", settings=True) if name == "all" else Set(name, None, "RESET")
    return _forget(tokens)


def _end(first: str, tokens: Sequence[_Token]) -> Command:
    words = [token.upper for token in tokens[1:]]
    if words[:1] in (["TRANSACTION"], ["WORK"]):
        words, tokens = words[1:], tokens[1:]
    if first == "ROLLBACK" and words[:1] == ["TO"]:
        return Savepoint("ROLLBACK", _one_name(tokens[3:] if words[1:2] == ["SAVEPOINT"] else tokens[2:]))
    if words and words != ["AND", "NO", "CHAIN"]:
        raise PgError(NOT_SUPPORTED, _OTHERWISE)
    return End(commit=first in ("COMMIT", "END"))


def _set(tokens: Sequence[_Token]) -> Command:
    words = [token.upper for token in tokens]
    at = 2 if words[1:2] in (["SESSION"], ["LOCAL"]) and words[2:3] not in (["="], ["TO"]) else 1
    rest = words[at:]
    if rest[:1] == ["TRANSACTION"] or rest[:3] == ["CHARACTERISTICS", "AS", "TRANSACTION"]:
        if not set(rest[1:]) - {"AS"} <= _MODES:
            raise PgError(NOT_SUPPORTED, _OTHERWISE)
        return Set("transaction_read_only", "on")
    if rest[:2] == ["TIME", "ZONE"]:
        value = tokens[at + 2 :]
        return _to("TimeZone", value)
    if rest[:1] == ["NAMES"]:
        return _to("client_encoding", tokens[at + 1 :])
    if len(rest) < 3 or rest[1] not in ("=", "TO") or tokens[at].kind not in ("word", "name"):
        name = tokens[at].value[:60] if len(tokens) > at else ""
        told = "".join(c if " " <= c <= "~" else "?" for c in name)
        listed = ", ".join(NAMES)
        raise PgError(UNKNOWN_SETTING, f"SET {told} is not accepted. Settings: {listed}.")
    return _to(tokens[at].value, tokens[at + 2 :])


def _to(name: str, tokens: Sequence[_Token]) -> Set:
    if [token.upper for token in tokens] in (["DEFAULT"], ["LOCAL"]):
        return Set(name, None)
    values, commas = tokens[::2], tokens[1::2]
    if not values or any(token.kind == "sign" for token in values) or any(token.text != "," for token in commas):
        raise PgError(WRONG_VALUE, _OTHERWISE)
    if len(values) == len(commas):
        raise PgError(SYNTAX, _OTHERWISE)
    # Words keep their case: names of time zones have one.
    return Set(name, ", ".join(token.text if token.kind == "word" else token.value for token in values))


def _forget(tokens: Sequence[_Token]) -> Command:
    words = [token.upper for token in tokens]
    first, rest = words[0], words[1:]
    if first == "DISCARD" and rest in (["ALL"], ["PLANS"], ["SEQUENCES"], ["TEMP"], ["TEMPORARY"]):
        return Forget(f"DISCARD {rest[0]}", settings=rest == ["ALL"], statements=rest == ["ALL"])
    if first == "DEALLOCATE":
        names = tokens[2:] if rest[:1] == ["PREPARE"] and len(rest) > 1 else tokens[1:]
        if [token.upper for token in names] == ["ALL"]:
            return Forget("DEALLOCATE ALL", statements=True)
        return Forget("DEALLOCATE", statement=_one_name(names))
    if first == "CLOSE" and rest == ["ALL"]:
        return Forget("CLOSE CURSOR ALL")
    if first == "UNLISTEN" and len(rest) == 1:
        return Forget("UNLISTEN")
    if first == "SELECT" and [token.text.lower() for token in tokens[1:]] == ["pg_advisory_unlock_all", "(", ")"]:
        return Forget("SELECT 0")
    raise PgError(NOT_SUPPORTED, _OTHERWISE)


def _one_name(tokens: Sequence[_Token]) -> str:
    if len(tokens) != 1 or tokens[0].kind not in ("word", "name"):
        raise PgError(NOT_SUPPORTED, _OTHERWISE)
    return tokens[0].value


def _joined(tokens: Sequence[_Token]) -> str:
    if not tokens or any(token.kind not in ("word", "name") for token in tokens):
        raise PgError(NOT_SUPPORTED, _OTHERWISE)
    return " ".join(token.value for token in tokens).lower()
