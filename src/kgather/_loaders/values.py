"""Reading ids, ratings and times from texts, in SQL for all rows and in Python for a sample."""

import math
import re
from collections.abc import Sequence
from typing import Literal

from kgather._loaders.expressions import is_blank, trimmed
from kgather._loaders.report import IdType
from kgather._sql_text import literal

USER_EMPTY = "user id is empty"
ITEM_EMPTY = "item id is empty"
ID_TOO_LONG = "an id is longer than 1,000 characters"
_LONGEST_ID = 1000
RATING_NOT_NUMBER = "rating is not a number"
RATING_NOT_FINITE = "rating is not a finite number"
TIME_NOT_READABLE = "time is not readable"

# Raised inside a query by an id that is not an integer; the load is then done again with ids as texts.
TEXT_ID_MARK = {"user": "kgather: a user id is text", "item": "kgather: an item id is text"}

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA_NUMBER = r"[+-]?[0-9]+,([0-9]{1,2}|[0-9]{4,})"  # three digits could be thousands
_WHOLE_NUMBER = "(0|-?[1-9][0-9]*|-0)[.]0+"
_ISO_TIME = (
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?"
)
_ZONE = r"[0-9] ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$"
_NO_TIME = ("null", "none", "nan", "nat", "\\n", "na", "n/a")
_EARLIEST_SENSIBLE = 10_000_000  # seconds; smaller numbers in an unnamed column are no times


def id_sql(expression: str, target: IdType, role: Literal["user", "item"], *, is_integer: bool = False) -> str:
    """SQL: an id in its final type. An id that is not an integer stops a query that wants integers.

    Args:
        expression: The id, a text (or an integer).
        target: The type wanted.
        role: Whose id it is.
        is_integer: The expression is a BIGINT already.
    """
    if is_integer:
        return expression if target == "BIGINT" else f"cast({expression} as varchar)"
    if target == "VARCHAR":
        return folded(expression)
    number = f"try_cast({expression} as bigint)"
    bare = folded(expression)
    bare_number = f"try_cast({bare} as bigint)"
    return (
        f"case when cast({number} as varchar) = {expression} then {number} "
        f"when cast({bare_number} as varchar) = {bare} then {bare_number} "
        f"else error('{TEXT_ID_MARK[role]}') end"
    )


def folded(expression: str) -> str:
    """SQL: the one form of an id, however it was written.

    Surrounding white space goes, texts are in Unicode's normal form NFC (as é, which may be one sign or two), and a
    whole number is one: 7.0 is 7. Otherwise one person would be two, each with half of the ratings. Only such numbers
    are the same: 007 stays a text of its own.

    Args:
        expression: The id, a text.
    """
    bare = trimmed(expression)
    whole = f"contains({bare}, '.') and regexp_full_match({bare}, '{_WHOLE_NUMBER}')"
    # As programs write large numbers, 1.234567e+06.
    large = f"contains({bare}, 'e+') and regexp_full_match({bare}, '-?[0-9]([.][0-9]+)?e[+][0-9]{{2}}')"
    number = f"try_cast({bare} as double)"
    exact = f"{large} and {number} = floor({number}) and abs({number}) <= {2**53}"
    return (
        f"(case when {whole} then replace(split_part({bare}, '.', 1), '-0', '0') "
        f"when {exact} then cast(cast({number} as bigint) as varchar) else nfc_normalize({bare}) end)"
    )


def other_spelling(expression: str) -> str:
    """SQL: an id, a text, as it is written where `folded` writes it otherwise; null where it does not."""
    # Numbers are the quick case: they begin with a digit, end with one and have no point.
    plain = f"{expression} >= '-' and {expression} < ':' and not contains({expression}, '.')"
    ends = f"right({expression}, 1) between '0' and '9'"
    return f"case when {plain} and {ends} then null else nullif({expression}, {folded(expression)}) end"


def is_too_long(*ids: str) -> str:
    """SQL: whether one of these ids is a text, and not an id: each is repeated for every group or rating."""
    return " or ".join(f"length({each}) > {_LONGEST_ID}" for each in ids)


def is_missing(expression: str, words: Sequence[str]) -> str:
    """SQL: whether an id (a text, not null) is empty or one of the words that stand for "no id".

    Args:
        expression: The id.
        words: The words, in lower case.
    """
    blank = is_blank(expression)
    if not words:
        return blank
    # Most ids are longer than all words, or begin otherwise: then nothing is made lower case.
    firsts = literal("".join(sorted({letter for word in words for letter in (word[0], word[0].upper())})))
    listed = ", ".join(literal(word) for word in words)
    return (
        f"({blank} or ((contains({firsts}, left({expression}, 1)) or left({expression}, 1) <= ' ') "
        f"and lower({trimmed(expression)}) in ({listed})))"
    )


def is_integer_sql(expression: str) -> str:
    """SQL: whether a text is an integer that BIGINT holds and writes the same way."""
    return f"coalesce(cast(try_cast({expression} as bigint) as varchar) = {expression}, false)"


def is_integer_text(text: str) -> bool:
    """Whether a text, as `folded` writes it, is an integer that BIGINT holds and writes the same way."""
    given = text
    text = re.sub(r"\.0+$", "", text.strip()) if re.fullmatch(_WHOLE_NUMBER, text.strip()) else text.strip()
    text = "0" if text == "-0" and "." in given else text
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None and -(2**63) <= int(text) < 2**63


def rating_sql(expression: str, *, decimal_comma: bool = False) -> str:
    """SQL: a text as a number, null when it is none; NaN and infinity are kept to be told apart.

    Args:
        expression: The text.
        decimal_comma: "3,5" is three and a half. "3,500" stays unread, for it could be thousands.
    """
    # DuckDB takes "1_0" for ten and "+-1" for minus one.
    odd = f"contains({expression}, '_') or contains({expression}, '+-')"
    number = f"case when not ({odd}) then try_cast({expression} as double) end"
    if not decimal_comma:
        return number
    text = trimmed(expression)
    comma = (
        f"case when regexp_full_match({text}, '{_COMMA_NUMBER}') then try_cast(replace({text}, ',', '.') as double) end"
    )
    return f"coalesce({number}, {comma})"


def is_number(text: str, *, decimal_comma: bool = False) -> bool:
    """Whether a text is a finite number, as `rating_sql` reads it."""
    text = text.strip()
    if not (_NUMBER.fullmatch(text) or (decimal_comma and re.fullmatch(_COMMA_NUMBER, text))):
        return False
    return math.isfinite(float(text.replace(",", ".")))  # 1e400 is not


def rating_problem_sql(number: str) -> str:
    """SQL: the two branches of a CASE that tell what is wrong with a rating."""
    return f"when {number} is null then '{RATING_NOT_NUMBER}' when not isfinite({number}) then '{RATING_NOT_FINITE}'"


def epoch_sql(number: str) -> str:
    """SQL: seconds (by size also milli-, micro-, nanoseconds) since 1970 as a TIMESTAMP, null if negative."""
    return (
        f"case when {number} < 0 then null "
        f"when {number} <= 100000000000 then make_timestamp({number} * 1000000) "
        f"when {number} <= 100000000000000 then make_timestamp({number} * 1000) "
        f"when {number} <= 100000000000000000 then make_timestamp({number}) "
        f"else make_timestamp({number} // 1000) end"
    )


def time_sql(expression: str, number: str) -> str:
    """SQL: a text as a TIMESTAMP (in UTC where a zone is given), null when it is no time.

    Args:
        expression: The text.
        number: The text as BIGINT, null where it is no number.
    """
    text = trimmed(expression)
    # DuckDB reads a zone as +02 or +02:00, right after the time.
    plus = f"regexp_replace({text}, ' ?(Z|UTC)$', '+00')"
    colon = f"regexp_replace({plus}, ' ?([+-][0-9]{{2}})(:?([0-9]{{2}}))$', '\\1:\\3')"
    joined = f"regexp_replace({colon}, ' ([+-][0-9]{{2}})$', '\\1')"
    zoned = f"make_timestamp(epoch_us(try_cast({joined} as timestamptz)))"
    plain = f"try_cast({text} as timestamp)"
    return (
        f"case when {number} is not null then {epoch_sql(number)} "
        f"when {_common_time_sql(expression)} then try_cast({expression} as timestamp) "
        f"when regexp_full_match({text}, '{_ISO_TIME}') "
        f"then case when length({text}) > 10 and regexp_matches({text}, '{_ZONE}') "
        f"then {zoned} else {plain} end end"
    )


def _common_time_sql(expression: str) -> str:
    """SQL: whether a text has the shape of a date, or of a date and a time without zone; quicker than a pattern."""
    date = f"{expression}[5] = '-' and {expression}[8] = '-'"
    clock = f"{expression}[11] in (' ', 'T') and {expression}[14] = ':' and {expression}[17] = ':'"
    return f"({date} and (length({expression}) = 10 or (length({expression}) = 19 and {clock})))"


def no_time_sql(expression: str) -> str:
    """SQL: whether a text stands for "no time"."""
    words = ", ".join(f"'{word}'" for word in _NO_TIME)
    return f"({is_blank(expression)} or lower({trimmed(expression)}) in ({words}))"


def stands_for_no_time(text: str) -> bool:
    """Whether a text stands for "no time", as `no_time_sql` tells it."""
    return text.strip().lower() in ("", *_NO_TIME)


def is_time(text: str, *, named: bool) -> bool:
    """Whether a text is a time.

    Args:
        text: The text.
        named: The column's name says that it holds times; otherwise small numbers are taken for no times.
    """
    text = text.strip()
    if re.fullmatch(_ISO_TIME, text):
        return True
    if not _NUMBER.fullmatch(text):
        return False
    return float(text) >= (0 if named else _EARLIEST_SENSIBLE)
