"""COPY (SELECT ...) TO STDOUT: what is asked for, and rows in PostgreSQL's three forms of it: text, CSV and binary.

What is copied is an answer like any other; this is only another way to write it.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgather._server.postgres.errors import NOT_SUPPORTED, READ_ONLY, SYNTAX, WRONG_VALUE, PgError
from kgather._server.postgres.lexer import Token
from kgather._server.postgres.result import Column, written
from kgather._server.postgres.types import BINARY, TEXT, field

_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)
_FORMATS = ("text", "csv", "binary")
_ON = ("", "true", "on", "1", "match")
_OFF = ("false", "off", "0")
_UNREADABLE = "This COPY cannot be read."
_HINT = "Write COPY (SELECT ...) TO STDOUT, with FORMAT text, csv or binary."


@dataclass(frozen=True)
class Form:
    """How rows are written. null, delimiter, quote, escape: None for what the format has; forced: columns that CSV
    quotes in any case, None for all."""

    format: str = "text"
    header: bool = False
    delimiter: str | None = None
    null: str | None = None
    quote: str | None = None
    escape: str | None = None
    forced: frozenset[str] | None = frozenset()

    @property
    def code(self) -> int:
        """The format code of the protocol."""
        return BINARY if self.format == "binary" else TEXT


def read_copy(text: str, tokens: Sequence[Token]) -> tuple[str, int, Form]:
    """Read the words of a COPY: the SELECT that it is, where that begins in the text, and the form. Raises PgError."""
    if len(tokens) < 2:
        raise PgError(SYNTAX, _UNREADABLE, hint=_HINT)
    if tokens[1].text == "(":
        end = _closing(tokens, 1)
        query, start = text[tokens[1].end : tokens[end].start], tokens[1].end
        rest = tokens[end + 1 :]
    else:
        query, start, rest = _of_table(text, tokens)
    words = [token.upper for token in rest]
    if words[:1] == ["FROM"]:
        raise PgError(READ_ONLY, "Clients cannot write.", hint="COPY (SELECT ...) TO STDOUT reads.")
    if words[:2] != ["TO", "STDOUT"]:
        raise PgError(NOT_SUPPORTED, "COPY goes to STDOUT only.", hint=_HINT)
    return query, start, _checked(_options(rest[2:]))


def messages(
    form: Form, columns: Sequence[Column], portions: Iterable[Sequence[tuple[Any, ...]]]
) -> Iterator[list[bytes]]:
    """What each message holds, in a list for each portion of the rows, and the ends. As PostgreSQL has it, the head of
    the binary format is in one message with the first row: some clients cannot read it otherwise.

    Raises PgError for a value that is none of its column's type.
    """
    head = _SIGNATURE if form.format == "binary" else b""
    if form.header:
        write = _line(replace(form, forced=frozenset()), columns)
        yield [write([column.name for column in columns])]
    for portion in portions:
        lines = list(_rows(form, columns, portion))
        if lines:
            lines[0], head = head + lines[0], b""
        yield lines
    if form.format == "binary":
        yield [head + _END] if head else [_END]


def _rows(form: Form, columns: Sequence[Column], portion: Sequence[tuple[Any, ...]]) -> Iterator[bytes]:
    if form.format == "binary":
        count = struct.pack("!h", len(columns))
        for fields in written(columns, portion, [BINARY] * len(columns)):
            yield count + b"".join(field(value) for value in fields)
        return
    write = _line(form, columns)
    for fields in written(columns, portion, [TEXT] * len(columns)):
        yield write([None if value is None else value.decode() for value in fields])


def _line(form: Form, columns: Sequence[Column]) -> Callable[[Sequence[str | None]], bytes]:
    csv = form.format == "csv"
    delimiter = form.delimiter or ("," if csv else "\t")
    null = form.null if form.null is not None else ("" if csv else "\\N")
    if not csv:

        def plain(value: str | None) -> str:
            if value is None:
                return null
            escaped = value.translate(_ESCAPES)
            return escaped if delimiter == "\t" else escaped.replace(delimiter, "\\" + delimiter)

        return lambda values: (delimiter.join(map(plain, values)) + "\n").encode()
    quote = form.quote or '"'
    escape = form.escape or quote
    always = [form.forced is None or column.name in form.forced for column in columns]

    def quoted(value: str | None, forced: bool) -> str:
        if value is None:
            return null
        needs = forced or value == null or any(sign in value for sign in (delimiter, quote, "\n", "\r"))
        if not needs and not (len(columns) == 1 and value == "\\."):
            return value
        inner = value.replace(escape, escape * 2) if escape != quote else value
        return quote + inner.replace(quote, escape + quote) + quote

    return lambda values: (delimiter.join(map(quoted, values, always)) + "\n").encode()


def _closing(tokens: Sequence[Token], opened: int) -> int:
    depth = 0
    for at in range(opened, len(tokens)):
        if tokens[at].kind == "sign":
            depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if depth == 0:
            return at
    raise PgError(SYNTAX, "A bracket of this COPY is not closed.", tokens[opened].start + 1, _HINT)


def _of_table(text: str, tokens: Sequence[Token]) -> tuple[str, int, Sequence[Token]]:
    """COPY of a table is a SELECT of its columns: rows of people are refused as in that."""
    at = 1
    while at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
    if tokens[at].kind not in ("word", "name"):
        raise PgError(SYNTAX, _UNREADABLE, tokens[at].start + 1, _HINT)
    table = text[tokens[1].start : tokens[at].end]
    rest, columns = tokens[at + 1 :], "*"
    if rest[:1] and rest[0].text == "(":
        end = _closing(tokens, at + 1)
        columns, rest = text[rest[0].end : tokens[end].start], tokens[end + 1 :]
    before = f"SELECT {columns} FROM "
    # What stands before the table is not the client's own; its position is that of the table.
    return before + table, tokens[1].start - len(before), rest


def _options(tokens: Sequence[Token]) -> Form:
    """Options in brackets, or as PostgreSQL had them before version 9."""
    rest = list(tokens[1:] if tokens and tokens[0].upper == "WITH" else tokens)
    if rest and rest[0].text == "(":
        if _closing(rest, 0) != len(rest) - 1:
            raise PgError(SYNTAX, _UNREADABLE, rest[-1].start + 1, _HINT)
        return _listed(rest[1:-1])
    return _old(rest)


def _listed(tokens: Sequence[Token]) -> Form:
    form, part, depth = Form(), list[Token](), 0
    for token in [*tokens, None]:
        if token is not None and token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token is None or (token.text == "," and token.kind == "sign" and depth == 0):
            if not part:
                raise PgError(SYNTAX, _UNREADABLE, hint=_HINT)
            form = _with(form, part[0].value, part[1:])
            part = []
        else:
            part.append(token)
    return form


def _old(tokens: list[Token]) -> Form:
    form = Form()
    while tokens:
        word = tokens.pop(0).upper
        if word in ("BINARY", "CSV"):
            form = _with(form, "format", [], word.lower())
        elif word == "HEADER":
            form = _with(form, "header", [])
        elif word in ("DELIMITER", "DELIMITERS", "NULL", "QUOTE", "ESCAPE"):
            if tokens and tokens[0].upper == "AS":
                tokens.pop(0)
            form = _with(form, word.lower().rstrip("s"), [tokens.pop(0)] if tokens else [])
        elif word == "FORCE" and [token.upper for token in tokens[:2]] == ["QUOTE", "*"]:
            form, tokens = replace(form, forced=None), tokens[2:]
        else:
            raise PgError(SYNTAX, _UNREADABLE, hint=_HINT)
    return form


def _with(form: Form, name: str, tokens: Sequence[Token], given: str | None = None) -> Form:
    value = given if given is not None else "".join(token.value for token in tokens)
    if name == "format" and value.lower() in _FORMATS:
        return replace(form, format=value.lower())
    if name == "header" and value.lower() in (*_ON, *_OFF):
        return replace(form, header=value.lower() in _ON)
    if name in ("delimiter", "quote", "escape") and len(value) == 1 and value.isascii() and value not in "\n\r\0":
        changes: dict[str, Any] = {name: value}
        return replace(form, **changes)
    if name == "null" and not set(value) & {"\n", "\r"}:
        return replace(form, null=value)
    if name == "force_quote":
        named = frozenset(token.value for token in tokens if token.kind in ("word", "name"))
        return replace(form, forced=None if value == "*" else named)
    if name == "encoding" and value.lower().replace("-", "") in ("utf8", "unicode"):
        return form
    if name in ("freeze", "on_error", "log_verbosity") and value.lower() in (*_OFF, "stop", "default"):
        return form
    raise PgError(WRONG_VALUE, f"COPY does not take the option {name[:30].upper()} with this value.", hint=_HINT)


def _checked(form: Form) -> Form:
    csv_only = form.quote is not None or form.escape is not None or form.forced != frozenset()
    if csv_only and form.format != "csv":
        raise PgError(NOT_SUPPORTED, "QUOTE, ESCAPE and FORCE_QUOTE are for the format csv.", hint=_HINT)
    if form.format == "binary" and (form.header or form.delimiter is not None or form.null is not None):
        raise PgError(SYNTAX, "The format binary takes no HEADER, DELIMITER or NULL.", hint=_HINT)
    return form
