"""From a statement as clients of PostgreSQL write it to the text that the guard reads.

Only spelling changes, word by word, and only what has the same meaning in both: `= ANY($1)` becomes IN with as many
parameters as the array has values, FETCH FIRST becomes LIMIT, VALUES and TABLE become SELECT, TO_DATE of a constant
becomes a date, the name of the database before a table goes. What the guard answers is decided by the guard, which
reads the new text like any other.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import hexdigits
from typing import Any, Literal

from kgather._server.postgres.errors import NOT_SUPPORTED, SYNTAX, PgError, no_parameter
from kgather._server.postgres.lexer import Token, tokens

_SCHEMA = "main"
_ROW = ("ROW", "ROWS")
_SOME = ("ANY", "SOME")
_INTEGERS = frozenset({"int", "int2", "int4", "int8", "integer", "smallint", "bigint", "oid"})
_NUMBERS = _INTEGERS | {"float4", "float8", "real", "numeric", "decimal"}
_EMPTY = "An array without values is compared with."


_MADE_MOMENTS = {"TO_TIMESTAMP": "TIMESTAMP", "TO_DATE": "DATE"}
"""Functions that read a text by a format, and the types of what they read."""
_FORMAT = re.compile(r'YYYY-MM-DD(?:(?: |"?T"?)HH24:MI:SS(?:\.(?P<fraction>MS|US))?)?', re.IGNORECASE)

Way = Literal["value", "array", "limit", "offset"]

_WITHOUT: dict[str, str] = {"limit": "999999999", "offset": "0"}
"""The number of rows where it is NULL, which means all, and none to leave out."""


@dataclass(frozen=True)
class _Use:
    """A parameter. way: as a value, as the values of an array, or as a number of rows; start: where it stands in the
    client's text."""

    number: int
    way: Way
    start: int


@dataclass(frozen=True)
class _Part:
    """Text and parameters, in the place of the client's characters from start on. copied: as they were."""

    start: int
    content: tuple[str | _Use, ...]
    copied: bool = False


@dataclass(frozen=True)
class Said:
    """A statement for the guard, with its values. place: of a character of it in the client's text."""

    text: str
    values: tuple[Any, ...]
    starts: tuple[int, ...] = ()
    olds: tuple[tuple[int, bool], ...] = ()

    def place(self, position: int) -> int:
        """The client's character, from 1, for one of the guard's text."""
        at = bisect_right(self.starts, position - 1) - 1
        if at < 0:
            return position
        old, copied = self.olds[at]
        return old + (position - 1 - self.starts[at] if copied else 0) + 1


@dataclass(frozen=True)
class Template:
    """A statement whose values are not known yet. arrays: the numbers of the parameters that are arrays."""

    parts: tuple[_Part, ...]
    count: int
    arrays: frozenset[int] = field(default_factory=frozenset)

    def sketch(self) -> str:
        """The statement with its parameters as they are numbered, an array as one value."""
        return "".join(
            each if isinstance(each, str) else f"${each.number} " for part in self.parts for each in part.content
        )

    def said(self, values: Sequence[Any]) -> Said:
        """The statement with values; a list for each array. Raises PgError for a list without values, and for a
        parameter that has no value."""
        made: list[str] = []
        given: list[Any] = []
        known: dict[int, int] = {}
        starts: list[int] = []
        olds: list[tuple[int, bool]] = []
        length = 0
        for part in self.parts:
            starts.append(length)
            olds.append((part.start, part.copied))
            for each in part.content:
                text = each if isinstance(each, str) else _spelt(each, values, given, known)
                made.append(text)
                length += len(text)
        return Said("".join(made), tuple(given), tuple(starts), tuple(olds))


def template(text: str, database: str = "") -> Template:
    """Read a statement. database: the name that may stand before the schema. Raises PgError where it ends inside a
    quotation."""
    return _Reader(text, list(tokens(text)), database).read()


def _spelt(use: _Use, values: Sequence[Any], given: list[Any], known: dict[int, int]) -> str:
    if use.number > len(values):
        raise no_parameter(use.number, use.start + 1)
    value = values[use.number - 1]
    if value is None and use.way in _WITHOUT:
        return _WITHOUT[use.way]
    if use.way == "array" and isinstance(value, list):
        if not value:
            raise PgError(NOT_SUPPORTED, _EMPTY, hint="Leave the condition out, or give the array a value.")
        first = len(given) + 1
        given.extend(value)
        return ", ".join(f"${at} " for at in range(first, first + len(value)))
    if use.number not in known:
        given.append(value)
        known[use.number] = len(given)
    return f"${known[use.number]} "


class _Reader:
    def __init__(self, text: str, words: list[Token], database: str) -> None:
        self.text = text
        self.words = words
        self.database = database
        self.parts: list[_Part] = []
        self.arrays: set[int] = set()
        self.count = 0
        self.done = 0

    def read(self) -> Template:
        at = self._begun()
        while at < len(self.words):
            at = self._next(at)
        self._copy(len(self.text))
        return Template(tuple(self.parts), self.count, frozenset(self.arrays))

    def _next(self, at: int) -> int:
        """Read from a word on; the number of the next."""
        token = self.words[at]
        if token.kind == "sign" and token.text in ("=", "<>", "!="):
            return self._compared(at)
        if token.kind == "word" and token.upper in ("LIMIT", "OFFSET", "FETCH"):
            return self._rows(at)
        if token.upper in _MADE_MOMENTS and self._is_moment(at):
            self._replace(
                token.start, self.words[at + 5].end, (f"{_MADE_MOMENTS[token.upper]} {self.words[at + 2].text}",)
            )
            return at + 6
        if token.kind in ("word", "name") and self._is_database(at):
            self._replace(token.start, self.words[at + 4].start, ())
            return at + 4
        if token.kind == "parameter":
            self._replace(token.start, token.end, (self._use(token, "value"),))
        elif token.kind == "text" and token.text[0] in "eE$":
            self._replace(token.start, token.end, (_literal(token.value),))
        elif token.kind in ("text", "name") and token.text[0] in "uU":
            return self._unicode(at)
        return at + 1

    def _unicode(self, at: int) -> int:
        """U&'...' and U&"...", with UESCAPE or without."""
        token, end = self.words[at], at + 1
        escape = "\\"
        if self._upper(end) == "UESCAPE":
            given = self.words[end + 1] if end + 1 < len(self.words) else None
            escape = given.value if given is not None and given.kind == "text" else ""
            if len(escape) != 1 or escape in "+'\" \t\n" or escape in hexdigits:
                raise PgError(SYNTAX, "UESCAPE is followed by no character for escapes.", self.words[end].start + 1)
            end += 2
        text = token.unescaped(escape)
        quoted = text.replace('"', '""')
        self._replace(
            token.start, self.words[end - 1].end, (_literal(text) if token.kind == "text" else f'"{quoted}"',)
        )
        return end

    # VALUES and TABLE

    def _begun(self) -> int:
        """Read what a statement begins with, as a SELECT; the number of the word behind it."""
        first = self._upper(0)
        if first == "TABLE" and len(self.words) > 1:
            self._replace(self.words[0].start, self.words[0].end, ("SELECT * FROM",))
            return 1
        if first != "VALUES" or self._text(1) != "(":
            return 0
        width, at = 0, 0
        while at == 0 or (self._text(at) == "," and self._text(at + 1) == "("):
            self._replace(
                self.words[at].start, self.words[at + 1].end, ("SELECT " if at == 0 else " UNION ALL SELECT ",)
            )
            start = at
            count, at = self._row_of_values(at + 2, named=at == 0)
            if width not in (0, count):
                raise PgError(
                    SYNTAX, "The rows of VALUES have different numbers of values.", self.words[start + 1].start + 1
                )
            width = count
        return at

    def _row_of_values(self, at: int, *, named: bool) -> tuple[int, int]:
        """Read a row's values. named: with the names that PostgreSQL gives. Returns how many there are, and the number
        of the word behind the bracket."""
        depth, count = 0, 1
        while at < len(self.words):
            sign = self._text(at)
            if depth == 0 and sign in (",", ")"):
                name = f" AS column{count}" if named else ""
                self._replace(self.words[at].start, self.words[at].end, (name + (", " if sign == "," else ""),))
                if sign == ")":
                    return count, at + 1
                count += 1
                at += 1
                continue
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign or "", 0)
            at = self._next(at)
        raise PgError(SYNTAX, "The text ends inside a row of VALUES.", self.words[-1].start + 1)

    # = ANY and <> ALL

    def _compared(self, at: int) -> int:
        word = self._upper(at + 1)
        same = self.words[at].text == "="
        if self._text(at + 2) != "(" or not (word in _SOME if same else word == "ALL"):
            return at + 1
        found = self._list(at + 3)
        if found is None or self._text(found[1]) != ")":
            return at + 1
        content, end = found
        self._replace(self.words[at].start, self.words[end].end, (" IN (" if same else " NOT IN (", *content, ")"))
        return end + 1

    def _list(self, at: int) -> tuple[tuple[str | _Use, ...], int] | None:
        """The values of an array, and the word behind it; None for what is none, as a subquery."""
        if self._upper(at) == "CAST" and self._text(at + 1) == "(":
            inner = self._list(at + 2)
            if inner is None or self._upper(inner[1]) != "AS":
                return None
            end = inner[1] + 1
            while end < len(self.words) and self._text(end) != ")":
                end += 1
            return inner[0], end + 1
        token = self.words[at] if at < len(self.words) else None
        if token is None:
            return None
        if token.kind == "parameter":
            return (self._use(token, "array"),), self._behind_cast(at + 1)[0]
        if token.kind == "text" and re.fullmatch(r"\s*\{.*\}\s*", token.value, re.DOTALL):
            end, kind = self._behind_cast(at + 1)
            return self._constants(token, kind), end
        if token.upper == "ARRAY" and self._text(at + 1) == "[":
            return self._written(at + 2)
        return None

    def _written(self, at: int) -> tuple[tuple[str | _Use, ...], int] | None:
        content: list[str | _Use] = []
        first = at
        while at < len(self.words) and self._text(at) != "]":
            token = self.words[at]
            if token.text in ("[", "("):
                return None
            content.append(self._use(token, "value") if token.kind == "parameter" else token.text + " ")
            at += 1
        if at == first:
            raise PgError(NOT_SUPPORTED, _EMPTY, self.words[at - 1].start + 1, "Leave the condition out.")
        return tuple(content), self._behind_cast(at + 1)[0]

    def _constants(self, token: Token, kind: str) -> tuple[str, ...]:
        items = re.findall(r'"(?:[^"\\]|\\.)*"|[^,{}\s][^,{}]*', token.value.strip()[1:-1], re.DOTALL)
        if not items:
            raise PgError(NOT_SUPPORTED, _EMPTY, token.start + 1, "Leave the condition out.")
        return (", ".join(_constant(item, kind) for item in items),)

    def _behind_cast(self, at: int) -> tuple[int, str]:
        """The word behind ::type[] and the type's name, if there is one."""
        if self._text(at) != "::":
            return at, ""
        at += 1
        if self._upper(at) == "PG_CATALOG" and self._text(at + 1) == ".":
            at += 2
        kind = self.words[at].value if at < len(self.words) else ""
        at += 1
        if self._text(at) == "(":
            while at < len(self.words) and self._text(at) != ")":
                at += 1
            at += 1
        while self._text(at) == "[" and self._text(at + 1) == "]":
            at += 2
        return at, kind

    # LIMIT, OFFSET and FETCH FIRST

    def _rows(self, at: int) -> int:
        word = self._upper(at)
        if word == "FETCH":
            return self._fetched(at)
        if word == "LIMIT" and self._upper(at + 1) in ("NULL", "ALL"):
            self._replace(self.words[at].start, self.words[at + 1].end, ())
            return at + 2
        found = self._number(at + 1, "limit" if word == "LIMIT" else "offset")
        if found is None:
            return at + 1
        content, end = found
        last = end + 1 if word == "OFFSET" and self._upper(end) in _ROW else end
        self._replace(self.words[at + 1].start, self.words[last - 1].end, content)
        return last

    def _fetched(self, at: int) -> int:
        if self._upper(at + 1) not in ("FIRST", "NEXT"):
            return at + 1
        content: tuple[str | _Use, ...] = ("1",)
        end = at + 2
        if self._upper(end) not in _ROW:
            found = self._number(end, "limit")
            if found is None:
                return at + 1
            content, end = found
        if self._upper(end) not in _ROW or self._upper(end + 1) != "ONLY":
            return at + 1
        self._replace(self.words[at].start, self.words[end + 1].end, ("LIMIT ", *content))
        return end + 2

    def _number(self, at: int, way: Way) -> tuple[tuple[str | _Use, ...], int] | None:
        """A number of rows: a constant or a parameter, in brackets and under a cast or not."""
        token = self.words[at] if at < len(self.words) else None
        if token is None:
            return None
        if token.text == "(" or (token.upper == "CAST" and self._text(at + 1) == "("):
            inner = self._number(at + (1 if token.text == "(" else 2), way)
            if inner is None:
                return None
            end = inner[1]
            if token.upper == "CAST":
                if self._upper(end) != "AS" or (self._text(end + 1) or "").lower() not in _INTEGERS:
                    return None
                end += 2
            return (inner[0], self._behind_number(end + 1)) if self._text(end) == ")" else None
        if token.kind == "parameter":
            return (self._use(token, way),), self._behind_number(at + 1)
        if token.kind == "number":
            return (token.text,), self._behind_number(at + 1)
        if token.kind == "text" and token.value.isdecimal():
            return (token.value,), self._behind_number(at + 1)
        return None

    def _behind_number(self, at: int) -> int:
        return at + 2 if self._text(at) == "::" and (self._text(at + 1) or "").lower() in _INTEGERS else at

    # Words

    def _is_moment(self, at: int) -> bool:
        """Whether TO_TIMESTAMP or TO_DATE reads a constant that is written as dates are, by a format that says so."""
        signs = tuple(self._text(at + one) for one in (1, 3, 5))
        if signs != ("(", ",", ")") or not all(self._is_plain_text(at + one) for one in (2, 4)):
            return False
        form = _FORMAT.fullmatch(self.words[at + 4].value)
        if form is None:
            return False
        day, clock, digits = (
            r"\d{4}-\d\d-\d\d",
            r"[ T]\d\d:\d\d:\d\d",
            {"MS": 3, "US": 6}.get((form["fraction"] or "").upper()),
        )
        with_clock = "HH24" in form[0].upper() and self.words[at].upper == "TO_TIMESTAMP"
        pattern = day + (clock if with_clock else "") + (rf"(\.\d{{1,{digits}}})?" if with_clock and digits else "")
        return re.fullmatch(pattern, self.words[at + 2].value, re.ASCII) is not None

    def _is_plain_text(self, at: int) -> bool:
        return self.words[at].kind == "text" and self.words[at].text.startswith("'")

    def _is_database(self, at: int) -> bool:
        """Whether a word is the name of the database in database.main.something."""
        return (
            at + 4 < len(self.words)
            and self._text(at + 1) == "."
            and self.words[at + 2].value.lower() == _SCHEMA
            and self._text(at + 3) == "."
            and (at == 0 or self._text(at - 1) != ".")
            and self.words[at].value.lower() in (self.database.lower(), "kgather")
        )

    def _use(self, token: Token, way: Way) -> _Use:
        digits = token.text[1:]
        number = int(digits) if len(digits) < 6 else 0
        if not number:
            raise no_parameter(digits[:20], token.start + 1)
        self.count = max(self.count, number)
        if way == "array":
            self.arrays.add(number)
        return _Use(number, way, token.start)

    def _text(self, at: int) -> str | None:
        """A sign or word as it is written; None for what is in quotes."""
        if not 0 <= at < len(self.words) or self.words[at].kind in ("text", "name"):
            return None
        return self.words[at].text

    def _upper(self, at: int) -> str:
        return self.words[at].upper if 0 <= at < len(self.words) else ""

    def _copy(self, end: int) -> None:
        if end > self.done:
            self.parts.append(_Part(self.done, (self.text[self.done : end],), copied=True))

    def _replace(self, start: int, end: int, content: tuple[str | _Use, ...]) -> None:
        self._copy(start)
        self.parts.append(_Part(start, content))
        self.done = end


def _literal(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def _constant(item: str, kind: str) -> str:
    if item.upper() == "NULL":
        return "NULL"
    if item[0] == '"':
        return _literal(re.sub(r"\\(.)", r"\1", item[1:-1]))
    item = item.strip()
    number = r"-?\d+" if kind.lower() in _INTEGERS else r"-?\d+(\.\d+)?"
    return item if kind.lower() in _NUMBERS and re.fullmatch(number, item) else _literal(item)
