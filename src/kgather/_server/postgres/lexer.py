"""The words of a text as PostgreSQL's lexer cuts it: where statements end, and what is in quotes.

Nothing is decided here about what a statement may ask: each goes to the guard or to the catalog, which read it anew.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kgather._server.postgres.errors import SYNTAX, PgError

Kind = Literal["text", "name", "parameter", "word", "number", "sign"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<text>[eE]'(?:[^'\\]|''|\\.)*'|(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<name>(?:[uU]&)?"(?:[^"]|"")*")
    |(?P<parameter>\$\d+)
    |(?P<open>[eEbBxXnN]?'|(?:[uU]&)?")
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<sign>::|<>|!=|<=|>=|:=|.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]+", re.DOTALL)
"""A backslash of E'...' with what is behind it, or a text without."""
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Token:
    """A word. start, end: its characters in the text."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word or sign in upper case; nothing for what is in quotes."""
        return self.text.upper() if self.kind in ("word", "sign", "number") else ""

    @property
    def value(self) -> str:
        """What it stands for: a text or a name without its quotes, a word in lower case."""
        if self.kind == "text":
            if self.text[0] in "eE":
                return self._escaped()
            return self.unescaped() if self.text[:2].upper() == "U&" else _unquoted(self.text)
        if self.kind == "name":
            name = self.text[self.text.index('"') + 1 : -1].replace('""', '"')
            return self.unescaped() if self.text[0] != '"' else name
        return self.text.lower() if self.kind == "word" else self.text

    def unescaped(self, escape: str = "\\") -> str:
        """What U&'...' or U&"..." stands for, by the character that UESCAPE names. Raises PgError."""
        quote = self.text[2]
        inside = self.text[3:-1].replace(quote * 2, quote)
        mark = re.escape(escape)
        found = re.split(rf"({mark}{mark}|{mark}[0-9a-fA-F]{{4}}|{mark}\+[0-9a-fA-F]{{6}}|{mark})", inside)
        codes: list[int] = []
        for at, part in enumerate(found):
            if at % 2 == 0:
                codes += map(ord, part)
            elif part == escape * 2:
                codes.append(ord(escape))
            else:
                codes.append(int(part.lstrip(escape).lstrip("+") or "0", 16))
        try:
            return _whole("".join(map(chr, codes)))
        except (ValueError, OverflowError):
            told, hint = "This Unicode escape is none.", "Write \\XXXX or \\+XXXXXX."
            raise PgError(SYNTAX, told, self.start + 1, hint) from None

    def _escaped(self) -> str:
        """What E'...' stands for. Raises PgError."""
        try:
            parts = (_bytes_of(found[1], found[0]) for found in _ESCAPE.finditer(_unquoted(self.text)))
            return _whole(b"".join(parts).decode("utf-8", "surrogatepass"))
        except (ValueError, OverflowError):
            told = "An escape of this text is none, or stands for no character."
            raise PgError(SYNTAX, told, self.start + 1, "Write two backslashes for one.") from None


@dataclass(frozen=True)
class Piece:
    """A statement of a text. start: where it begins in the text, in characters; whole: the text."""

    text: str
    start: int
    tokens: tuple[Token, ...]
    whole: str


def tokens(text: str) -> Iterator[Token]:
    """Cut a text into words, without spaces and comments. Linear. Raises PgError where a quotation does not end."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "a sign is any character"
        kind, start, at = found.lastgroup, at, found.end()
        if kind == "space":
            continue
        if kind == "comment":
            at = _behind_comment(text, at)
        elif kind == "open":
            raise PgError(SYNTAX, "The text ends inside a quotation.", start + 1)
        elif kind == "dollar":
            end = text.find(found[0], at)
            if end < 0:
                raise PgError(SYNTAX, "The text ends inside a quotation.", start + 1)
            at = end + len(found[0])
            yield Token("text", text[start:at], start, at)
        else:
            yield Token(kind, found[0], start, at)  # type: ignore[arg-type]


def split(text: str) -> list[Piece]:
    """The statements of a text, with ; between them; empty ones are none. Raises as `tokens`."""
    pieces: list[Piece] = []
    part: list[Token] = []
    for token in tokens(text):
        if token.kind == "sign" and token.text == ";":
            if part:
                pieces.append(_piece(text, part))
            part = []
        else:
            part.append(token)
    if part:
        pieces.append(_piece(text, part))
    return pieces


def _piece(text: str, part: Sequence[Token]) -> Piece:
    start, end = part[0].start, part[-1].end
    own = tuple(Token(each.kind, each.text, each.start - start, each.end - start) for each in part)
    return Piece(text[start:end], start, own, text)


def _behind_comment(text: str, at: int) -> int:
    """Where a comment ends; comments may hold others."""
    depth, begun = 1, at
    while depth:
        found = _EDGE.search(text, at)
        if found is None:
            raise PgError(SYNTAX, "The text ends inside a comment.", begun - 1)
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


def _whole(text: str) -> str:
    """A text where two halves of a character are one. Raises ValueError for one half, and for a zero."""
    if "\0" in text:
        raise ValueError(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _bytes_of(escape: str | None, text: str) -> bytes:
    """What is behind a backslash, or a text without one, as UTF-8; octal and hexadecimal numbers are bytes of it.
    Raises ValueError."""
    if escape is None:
        return text.encode("utf-8")
    kind, digits = escape[0], escape[1:]
    if kind in "01234567":
        return bytes([int(escape, 8) & 0xFF])
    if kind == "x" and digits:
        return bytes([int(digits, 16)])
    if kind in "uU":
        return chr(int(digits, 16)).encode("utf-8", "surrogatepass")
    return _LETTERS.get(kind, kind).encode("utf-8")


def _unquoted(text: str) -> str:
    if text.startswith("$"):
        tag = text[: text.index("$", 1) + 1]
        return text[len(tag) : -len(tag)]
    return text[text.index("'") + 1 : -1].replace("''", "'")
