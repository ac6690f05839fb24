"""Puts plain data into words: numbers, shares and text of unknown origin, each as a page shows it."""

import json
import math
import unicodedata
from typing import Any

NOT_MEASURED = "not measured"
_JOINERS = "\u200c\u200d"  # scripts and emoji need them


def plain(value: object) -> str:
    """Text on one line, without characters that hide or reorder others: those are shown by their number.

    None is told as none, and what cannot be part of a file in UTF-8 (half of a surrogate pair) cannot come out.
    """
    return "".join(_visible(character) for character in " ".join(str(value).split()))


def _visible(character: str) -> str:
    if unicodedata.category(character)[0] != "C" or character in _JOINERS:
        return character
    return f"\\u{ord(character):04x}"


def number(value: object, none: str = NOT_MEASURED) -> str:
    """A number for reading: whole ones with commas, others with four significant digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float) or math.isnan(value):
        return none if value is None or isinstance(value, float) else plain(value)
    if math.isinf(value):
        return "no bound" if value > 0 else "-no bound"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def share(value: object, none: str = NOT_MEASURED) -> str:
    """A share of one as a percentage; what is small but not nothing never reads as nothing."""
    told = finite(value)
    if told is None:
        return none
    if 0 < told < 0.0005:
        return "< 0.1%"
    return "100%" if told == 1 else f"{min(100 * told, 99.9):.1f}%" if told < 1 else f"{100 * told:.1f}%"


def finite(value: object) -> float | None:
    """The value as a float, or None where it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def setting(value: Any) -> str:
    """A parameter's value as it would be given: text as it is, all else as JSON."""
    if value is None:
        return "not set"
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
