"""What a person may say about an input; everything not said is detected from the content."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

Format = Literal["auto", "csv", "tsv", "movielens-dat", "u.data", "netflix", "parquet", "duckdb"]
Encoding = Literal["utf-8", "latin-1"]

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
        format: The format of every input; "auto" looks at the content.
        delimiter: What separates the fields: 1 to 4 characters, or "tab" (also `\\t`), "space", "comma",
            "semicolon", "pipe".
        encoding: How text files are encoded.
        header: Whether the first line names the columns; None looks at the content.
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
    artifact_columns: tuple[str, ...] | None = None

    @field_validator("delimiter")
    @classmethod
    def _readable_delimiter(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = _NAMED_DELIMITERS.get(value.lower(), value)
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
