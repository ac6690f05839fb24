"""How ratings are written that are not plain numbers: words, `4/5`, `80%`, stars."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kgather._loaders import values
from kgather._loaders.expressions import trimmed
from kgather._sql_text import literal

Kind = Literal["numbers", "parts", "percent", "stars"]

_PARTS = r"([0-9]+(?:[.,][0-9]+)?) *(?:/|out of|of) *([1-9][0-9]*)(?: *[Ss]tars?)?"
_PERCENT = r"([0-9]+(?:[.,][0-9]+)?) *%"
_STARS = "[★⭐]*½?[☆✩]*"
_NUMBER_OF_STARS = r"([0-9]+(?:[.,][0-9]+)?) *[Ss]tars?"


@dataclass(frozen=True)
class Written:
    """How the ratings of an input are written.

    Attributes:
        kind: Numbers; parts of a whole (`4/5`, `4.5 out of 5 stars`), of which the part is the rating; percent; stars.
        whole: Of how many the parts are. Parts of another whole are no ratings.
        words: What texts stand for, whatever their case.
    """

    kind: Kind = "numbers"
    whole: str | None = None
    words: Mapping[str, float] = field(default_factory=dict)

    def sql(self, expression: str, *, decimal_comma: bool = False) -> str:
        """SQL: a text as a number, null where it is none."""
        number = self._number_sql(expression, decimal_comma=decimal_comma)
        if not self.words:
            return number
        cases = " ".join(f"when {literal(word)} then {value!r}::double" for word, value in self.words.items())
        return f"case lower({trimmed(expression)}) {cases} else {number} end"

    def reads(self, text: str, *, decimal_comma: bool = False) -> bool:
        """Whether a text is a rating, as `sql` reads it."""
        if text.strip().lower() in self.words:
            return True
        if self.kind == "numbers":
            return values.is_number(text, decimal_comma=decimal_comma)
        if self.kind == "parts":
            found = re.fullmatch(_PARTS, text.strip())
            return found is not None and found[2] == self.whole
        if self.kind == "percent":
            return re.fullmatch(_PERCENT, text.strip()) is not None
        return _in_stars(text.strip())

    def _number_sql(self, expression: str, *, decimal_comma: bool) -> str:
        text = trimmed(expression)
        if self.kind == "numbers":
            return values.rating_sql(expression, decimal_comma=decimal_comma)
        if self.kind == "parts":
            part = _first_group(text, _PARTS)
            return f"case when regexp_extract({text}, '^{_PARTS}$', 2) = {literal(self.whole or '')} then {part} end"
        if self.kind == "percent":
            return _first_group(text, _PERCENT)
        stars = (
            f"length(regexp_replace({text}, '[^★⭐]', '', 'g')) + case when contains({text}, '½') then 0.5 else 0 end"
        )
        signs = f"{text} <> '' and regexp_full_match({text}, '{_STARS}')"
        return f"case when {signs} then ({stars})::double else {_first_group(text, _NUMBER_OF_STARS)} end"


NUMBERS = Written()
"""Plain numbers."""


def written(texts: Sequence[str], words: Mapping[str, float], *, decimal_comma: bool = False) -> Written:
    """How these ratings are written, told from a sample: as what most of them can be read."""
    present = [text.strip() for text in texts if text.strip()]
    wholes = Counter(found[2] for text in present if (found := re.fullmatch(_PARTS, text)))
    whole = max(wholes, key=lambda each: (wholes[each], each), default=None)
    candidates = (Written(words=words), Written("parts", whole, words), Written("percent", None, words),
                  Written("stars", None, words))  # fmt: skip
    return max(candidates, key=lambda each: sum(each.reads(text, decimal_comma=decimal_comma) for text in present))


def _first_group(text: str, pattern: str) -> str:
    return f"try_cast(replace(regexp_extract({text}, '^{pattern}$', 1), ',', '.') as double)"


def _in_stars(text: str) -> bool:
    signs = text != "" and re.fullmatch(_STARS, text) is not None
    return signs or re.fullmatch(_NUMBER_OF_STARS, text) is not None
