"""What is wrong with a policy, in sentences: the file, the line, the entry, what it has to be, and what was found.

What was found is quoted only where a word or a number is expected: a text that stands in a wrong place may be anything.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Any

from kgather._errors import InputError, quoted

Where = tuple[str | int, ...]
"""The path of an entry: names of entries, and places in lists, counted from 0."""

_QUOTED = 40  # characters of a value that are told
_NEAR = 3  # names that are told of those that are like another one
_NAMES = 20  # names that are told where none is like another one


@dataclass(frozen=True)
class Written:
    """Where a policy is written, for errors that are found after it was read. It is no part of what a policy says, so
    all are equal.

    name: of the file; empty for a policy that is in no file. lines: of each entry, counted from 1.
    """

    name: str = field(default="", compare=False)
    lines: Mapping[Where, int] = field(default_factory=dict, compare=False)

    def sentence(self, where: Where, what: str) -> str:
        """What is wrong with an entry, with file and line. what: without a full stop at the end."""
        at = where
        while at and at not in self.lines:
            at = at[:-1]
        place = [self.name] if self.name else []
        if self.name and self.lines:
            place[0] += f":{self.lines.get(at, 1)}"
        entry = ".".join(str(part) for part in where)
        ended = what if what.endswith((".", "?")) else f"{what}."
        return ": ".join([*place, *([entry] if entry else []), ended])

    def error(self, where: Where, what: str) -> InputError:
        """The same as an error."""
        return InputError(self.sentence(where, what))


class AtError(ValueError):
    """What is wrong, and at which entry."""

    def __init__(self, where: Where, what: str) -> None:
        super().__init__(what)
        self.where = where


def near(name: str, known: Iterable[str], what: str) -> str:
    """What to try instead of a name that is not known: names like it, or else all there are, as far as they are few.
    what: what the names are of, as in "its columns"."""
    names = sorted(known)
    folded = {one.lower(): one for one in reversed(names)}
    like = [folded[one] for one in get_close_matches(name.lower(), folded, _NEAR)]
    if like:
        return f"Did you mean {' or '.join(quoted([one]) for one in like)}?"
    if not names:
        return "There are none."
    shown = quoted(names[:_NAMES])
    return f"{what} are {shown}{f' and {len(names) - _NAMES} more' if len(names) > _NAMES else ''}."


def sentences(
    problems: Sequence[Mapping[str, Any]], written: Written, entries: Callable[[Where], Iterable[str]]
) -> str:
    """All that was found when a policy was read, a line for each problem. problems: as pydantic lists them. entries:
    the entries that there are in a place."""
    told: dict[str, None] = {}
    for problem in problems:
        where, what = _told(problem, entries)
        told.setdefault(written.sentence(where, what))
    return "\n".join(told)


def _told(problem: Mapping[str, Any], entries: Callable[[Where], Iterable[str]]) -> tuple[Where, str]:
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, AtError):
        return inner.where, str(inner)
    where, kind = tuple(problem["loc"]), str(problem["type"])
    if kind == "value_error":
        return where, str(inner)
    if kind == "extra_forbidden":
        return where, _no_entry(where, entries)
    if kind == "invalid_key" or ("[key]" in where and "names" not in where):
        at = where.index("[key]") if "[key]" in where else len(where)
        return where[:at], "this name has to be a text: put it into quotation marks"
    for pattern, what in _FORMS:
        if len(where) >= len(pattern) and all(part in ("*", at) for part, at in zip(pattern, where, strict=False)):
            return where[: len(pattern)], what
    if kind == "missing":
        return where, "is missing: add it"
    if kind in ("string_type", "string_pattern_mismatch") and where[-1] == "memory":
        return where, _but(_MEMORY, problem, where, scalar=True)
    if kind == "model_type" and (first := next(iter(entries(where)), None)) is not None:
        return where, _but(f"has to be a mapping of entries, as {{{first}: ...}}", problem, where)
    return where, _expected(kind, problem, where)


_MEMORY = "has to be a number with a unit, as 500MB or 2GB"
_FORMS: Sequence[tuple[tuple[str, ...], str]] = (
    (("joins", "*"), "has to be an equality of two columns, as ratings.item_id = items.item_id"),
    (("tables", "*", "bounds", "*"), "has to be a list of two numbers, the smaller one first, as [0, 100]"),
    (("tables", "*", "values", "*", "*"), "has to be a number, a text, a date, or true or false"),
    (("tables", "*", "values", "*"), "has to be a list of values, as [Graz, Linz, Wien]"),
    (
        ("tables", "*", "pivot_of", "names", "*"),
        "has to be the name of a wide column, and before it stands a value of the key",
    ),
)
"""Entries that are told as a whole, whichever part of them is wrong. `*` stands for any name or place."""


def _no_entry(where: Where, entries: Callable[[Where], Iterable[str]]) -> str:
    if where[0] == "principals" and where[-1] == "mode":
        return "the mode is the ledger's, not a principal's: what one is told all may know; remove it here"
    hint = near(str(where[-1]), entries(where[:-1]), "The entries here")
    return f"is no entry of a policy here; remove it or correct its name. {hint}"


def _expected(kind: str, problem: Mapping[str, Any], where: Where) -> str:
    """What an entry has to be, and what it is."""
    ctx, what = problem.get("ctx", {}), _WANTED.get(kind)
    if kind == "too_short":
        return "is empty: name one at least"
    if kind == "literal_error":
        what = f"has to be {_without_quotes(str(ctx['expected']))}"
    elif kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = f"{ctx[name]:,}" if isinstance(ctx[name], int) else f"{ctx[name]:g}"
        what = f"has to be a number, {words.format(limit)}"
    if what is None:
        return "cannot be read as it is written; docs/guard.md says what this entry takes"
    return _but(what, problem, where, scalar=kind in _SCALARS)


def _but(what: str, problem: Mapping[str, Any], where: Where, *, scalar: bool = False) -> str:
    """What an entry has to be, with what it is. scalar: whether it has to be a word of a few, or a number."""
    found = problem.get("input")
    if found is None:
        return f"{what}, and nothing stands here"
    return f"{what}, not {_found(found, told=scalar and where[0] != 'principals')}"


_WANTED = {
    "bool_type": "has to be true or false",
    "bool_parsing": "has to be true or false",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_parsing_size": "has to be a whole number of fewer digits",
    "int_from_float": "has to be a whole number",
    "float_type": "has to be a number",
    "float_parsing": "has to be a number",
    "finite_number": "has to be a finite number",
    "string_type": "has to be a name or a text",
    "string_unicode": "has to be a text of readable characters",
    "path_type": "has to be the name of a file",
    "tuple_type": "has to be a list, as [one, other]",
    "list_type": "has to be a list, as [one, other]",
    "dict_type": "has to be a mapping, as {name: ...}",
    "model_type": "has to be a mapping of entries, as {name: ...}",
    "model_attributes_type": "has to be a mapping of entries, as {name: ...}",
}
_LIMITS = {
    "greater_than": ("gt", "more than {}"),
    "greater_than_equal": ("ge", "{} or more"),
    "less_than": ("lt", "less than {}"),
    "less_than_equal": ("le", "{} or less"),
}
_SCALARS = frozenset(
    {"literal_error", "finite_number", *_LIMITS}
    | {f"{type_}_{of}" for type_ in ("bool", "int", "float") for of in ("type", "parsing", "from_float")}
)
"""Problems of entries that have to be a word of a few, or a number."""


def _without_quotes(expected: str) -> str:
    """Words of which an entry is one, without quotation marks."""
    return re.sub(r"'([^']*)'", r"\1", expected)


def _found(value: object, *, told: bool) -> str:
    """A value that does not fit, as it may be told."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int | float):
        text = str(value)
        return f"the number {text if len(text) <= _QUOTED else f'{text[:_QUOTED]}...'}"
    if isinstance(value, date):
        return f"the date {value}"
    text = str(value)
    if not told:
        return "a text"
    return f"the text {text if len(text) <= _QUOTED else f'{text[:_QUOTED]}...'!r}"
