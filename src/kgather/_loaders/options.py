"""What a person may say about an input; everything not said is detected from the content."""

import math
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Format = Literal[
    "auto", "csv", "tsv", "movielens-dat", "u.data", "netflix", "matrix-market", "json", "parquet", "duckdb"
]
Encoding = Literal["utf-8", "latin-1"]

FIELDS = ("user", "item", "rating", "time", "-")
"""What a field may be in `fields`; "-" is one that is not read."""

# Texts that stand for "no id", whatever their case, unless others are declared.
MISSING = ("null", "none", "na", "n/a", "nan", "<na>", "#n/a", "\\n")

BLANKS = "blanks"
_PATTERN = "re:"
_NAMED_DELIMITERS = {
    "\\t": "\t",
    "tab": "\t",
    "space": " ",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
}


class LoadOptions(BaseModel):
    """How to read the inputs.

    Args:
        user_column: Name of the column of users (upper and lower case are the same), or its position,
            counted from 1, in a file without a header.
        item_column: Likewise for the items.
        rating_column: Likewise for the ratings.
        time_column: Likewise for the times; "none" ignores them.
        fields: What the fields of a line are, in their order ("user", "item", "rating", "time", "-"), in files
            whose first line does not name them.
        format: The format of every input; "auto" looks at the content.
        delimiter: What separates the fields: 1 to 4 characters, or "tab" (also `\\t`), "space", "comma",
            "semicolon", "pipe"; "blanks" for runs of blanks and tabs, "re:..." for a regular expression (RE2).
        encoding: How text files are encoded.
        header: Whether the first line names the columns; None looks at the content.
        skip_lines: So many lines at the beginning of a text file are not read.
        comment: Lines that begin with this are not read.
        missing: Texts that stand for "no id", whatever their case.
        words: What texts in the column of ratings stand for, as {"like": 1, "dislike": 0}, whatever their case.
        no_rating: There are no ratings: every row counts as 1.
        items: A file that lists all items, or `FILE.duckdb:TABLE`: one a line or a row.
        artifact_columns: Names of the columns that are items, in a table of one row a user (upper and lower case
            are the same); ("*",) takes all columns of numbers. None: a table of one row a rating.

    Raises:
        pydantic.ValidationError: A value is not allowed, or an option is not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_column: str | None = None
    item_column: str | None = None
    rating_column: str | None = None
    time_column: str | None = None
    format: Format = "auto"
    delimiter: str | None = None
    encoding: Encoding = "utf-8"
    header: bool | None = None
    fields: tuple[str, ...] | None = None
    skip_lines: int = Field(default=0, ge=0)
    comment: str | None = Field(default=None, min_length=1, max_length=20)
    missing: tuple[str, ...] = MISSING
    words: Mapping[str, float] = Field(default_factory=dict)
    no_rating: bool = False
    items: str | None = None
    artifact_columns: tuple[str, ...] | None = None

    @property
    def separator(self) -> str | None:
        """What separates the fields of a line as `LineReader` gives it."""
        if self.separator_pattern is None:
            return self.delimiter
        return "\t" if self.delimiter == BLANKS else "\x1f"

    @property
    def separator_pattern(self) -> str | None:
        """The regular expression that `LineReader` replaces by `separator`; None: nothing is replaced."""
        if self.delimiter == BLANKS:
            return "[ \t]+"
        return self.delimiter.removeprefix(_PATTERN) if self.delimiter and self.delimiter.startswith(_PATTERN) else None

    @field_validator("delimiter")
    @classmethod
    def _readable_delimiter(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = _NAMED_DELIMITERS.get(value.lower(), value)
        if value.lower() == BLANKS:
            return BLANKS
        if value.startswith(_PATTERN):
            return _checked_pattern(value)
        if not 1 <= len(value) <= 4:
            message = "a delimiter has 1 to 4 characters"
            raise ValueError(message)
        if any(character in '"\r\n\0' for character in value):
            message = "a delimiter cannot hold a double quote, a line end or a NUL"
            raise ValueError(message)
        return value

    @field_validator("user_column", "item_column", "rating_column", "time_column")
    @classmethod
    def _named_column(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            message = "a column needs a name or a position"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _ratings_or_none(self) -> "LoadOptions":
        if self.no_rating and (self.rating_column is not None or self.words or "rating" in (self.fields or ())):
            message = "--no-rating says that there are no ratings, and another option says where they are"
            raise ValueError(message)
        if self.fields is not None and not self.no_rating and "rating" not in self.fields:
            message = "user, item and rating are each named once, time at most once; rating is named not"
            raise ValueError(message)
        return self

    @field_validator("words")
    @classmethod
    def _folded_words(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        folded = {word.strip().lower(): float(number) for word, number in value.items()}
        if len(folded) < len(value) or "" in folded or not all(map(math.isfinite, folded.values())):
            message = "words are texts, no two the same but for upper and lower case, with finite numbers"
            raise ValueError(message)
        return folded

    @field_validator("fields")
    @classmethod
    def _known_fields(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = tuple(name.strip().lower() for name in value)
        unknown = [name for name in names if name not in FIELDS]
        if unknown:
            message = f"a field is user, item, rating, time or - (not read), not {', '.join(unknown)}"
            raise ValueError(message)
        for role in FIELDS[:4]:
            if names.count(role) > 1 or (role in FIELDS[:2] and role not in names):
                found = "twice" if role in names else "not"
                message = f"user, item and rating are each named once, time at most once; {role} is named {found}"
                raise ValueError(message)
        return names

    @field_validator("missing")
    @classmethod
    def _folded_missing(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word.strip().lower() for word in value if word.strip()))

    @field_validator("artifact_columns")
    @classmethod
    def _named_artifacts(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not value or not all(name.strip() for name in value):
            message = "artifact columns need names, or * for all columns of numbers"
            raise ValueError(message)
        if len(value) > 1 and "*" in value:
            message = "* means all columns of numbers and stands alone"
            raise ValueError(message)
        return value


def _checked_pattern(value: str) -> str:
    pattern = value.removeprefix(_PATTERN)
    try:
        empty = re.fullmatch(pattern, "") is not None
    except re.error as error:
        message = f"the regular expression of a delimiter cannot be read ({error})"
        raise ValueError(message) from None
    if not pattern or empty:
        message = "the regular expression of a delimiter must match at least one character"
        raise ValueError(message)
    return value
