"""Telling how data look without telling the data: letters become A or a, digits #."""

import re
from collections.abc import Sequence

_LONGEST = 24


def shape(text: str) -> str:
    """The shape of a text: `A######` for an id, `#.#` for a number; punctuation that is common stays.

    Longer ones are cut, for a long shape tells a lot.
    """
    shaped = re.sub(r"[0-9]", "#", text.strip())
    shaped = "".join(
        each if each in "#@._-:/+ " else ("A" if each.isupper() else "a") if each.isalpha() else "?" for each in shaped
    )
    return f"{shaped[:_LONGEST]}…" if len(shaped) > _LONGEST else shaped


def table_of(records: Sequence[Sequence[str]], most: int = 3, columns: int = 12) -> str:
    """The first records as lines of shapes, for messages."""
    lines = []
    for record in records[:most]:
        shown = [shape(text) or "(blank)" for text in record[:columns]]
        lines.append("  " + " | ".join(shown) + (" | …" if len(record) > columns else ""))
    return "\n".join(lines)
