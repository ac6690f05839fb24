"""Where a cursor stands in its answer, and what FETCH and MOVE make of that, as PostgreSQL's DoPortalRunFetch has it.

The answer is there as a whole, so every cursor can go both ways, but for those that were declared NO SCROLL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kgather._server.postgres.errors import OBJECT_STATE, SYNTAX, PgError
from kgather._server.postgres.lexer import Token

ALL = 1 << 62
"""As many rows as there are."""

_LONGEST = 18  # digits of a number of rows


@dataclass(frozen=True)
class Direction:
    """FORWARD and BACKWARD by a number of rows; ABSOLUTE and RELATIVE to one row."""

    word: Literal["FORWARD", "BACKWARD", "ABSOLUTE", "RELATIVE"] = "FORWARD"
    count: int = 1


@dataclass(frozen=True)
class Step:
    """What a direction comes to: the numbers of the rows, from 0, in their order, and where the cursor is then."""

    rows: range
    at: int


def step(direction: Direction, at: int, count: int, *, scrolls: bool = True) -> Step:
    """Go from a place: 0 before the first of `count` rows, 1 on it, count + 1 behind the last. Raises PgError where it
    would go back and may not."""
    if direction.word == "ABSOLUTE":
        wanted = direction.count if direction.count >= 0 else max(count + 1 + direction.count, 0)
        _check(scrolls, back=direction.count < 0 or wanted < at)
        return _to(wanted, count)
    if direction.word == "RELATIVE":
        _check(scrolls, back=direction.count < 0)
        return _to(max(at + direction.count, 0), count)
    ahead = direction.count if direction.word == "FORWARD" else -direction.count
    if ahead == 0:
        _check(scrolls, back=True)
        return Step(range(at - 1, at) if 1 <= at <= count else range(0), at)
    if ahead > 0:
        end = min(at + ahead, count)
        return Step(range(min(at, count), end), end if end == at + ahead else count + 1)
    _check(scrolls, back=True)
    last = min(at - 1, count)
    first = max(at + ahead, 1)
    return Step(range(last - 1, first - 2, -1), first if first == at + ahead else 0)


def read_direction(tokens: Sequence[Token]) -> tuple[Direction, str]:
    """The words behind FETCH or MOVE: where to go, and the cursor's name. Raises PgError."""
    if not tokens or tokens[-1].kind not in ("word", "name"):
        raise _unreadable()
    name, words = tokens[-1].value, [token.upper for token in tokens[:-1]]
    if words and words[-1] in ("FROM", "IN"):
        words.pop()
    return _direction(words), name


def _direction(words: list[str]) -> Direction:
    if words in ([], ["NEXT"], ["FORWARD"]):
        return Direction()
    if words in (["PRIOR"], ["BACKWARD"]):
        return Direction("BACKWARD")
    if words in (["FIRST"], ["LAST"]):
        return Direction("ABSOLUTE", 1 if words == ["FIRST"] else -1)
    if words in (["ALL"], ["FORWARD", "ALL"]):
        return Direction("FORWARD", ALL)
    if words == ["BACKWARD", "ALL"]:
        return Direction("BACKWARD", ALL)
    first = words[0]
    if first == "ABSOLUTE":
        return Direction("ABSOLUTE", _number(words[1:]))
    if first == "RELATIVE":
        return Direction("RELATIVE", _number(words[1:]))
    if first == "BACKWARD":
        number = _number(words[1:])
        return Direction("BACKWARD" if number >= 0 else "FORWARD", abs(number))
    number = _number(words[1:] if first == "FORWARD" else words)
    return Direction("FORWARD" if number >= 0 else "BACKWARD", abs(number))


def _number(words: list[str]) -> int:
    sign, digits = (words[0], words[1:]) if words[:1] in (["-"], ["+"]) else ("", words)
    if len(digits) != 1 or not digits[0].isdecimal() or len(digits[0]) > _LONGEST:
        raise _unreadable()
    return -int(digits[0]) if sign == "-" else int(digits[0])


def _to(wanted: int, count: int) -> Step:
    """On one row, or before or behind them all."""
    return Step(range(wanted - 1, wanted) if 1 <= wanted <= count else range(0), min(wanted, count + 1))


def _check(scrolls: bool, *, back: bool) -> None:
    if back and not scrolls:
        raise PgError(OBJECT_STATE, "The cursor goes forward only.", hint="Declare it with SCROLL to go back.")


def _unreadable() -> PgError:
    return PgError(
        SYNTAX,
        "This is no FETCH or MOVE that the server can read.",
        hint="Write FETCH, a direction or a number of rows, FROM and the name of the cursor.",
    )
