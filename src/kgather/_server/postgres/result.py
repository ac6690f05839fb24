"""A result in the types of PostgreSQL, and its rows as they are sent."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pygwire.messages import DataRow, FieldDescription, RowDescription

from kgather._server.postgres.errors import NOT_SUPPORTED, PgError
from kgather._server.postgres.types import TEXT, PgType, of_arrow


@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    type: PgType


@dataclass(frozen=True)
class Result:
    """A whole result, as it was found. portion: the rows from one number to another."""

    columns: tuple[Column, ...]
    count: int
    portion: Callable[[int, int], Sequence[tuple[Any, ...]]]

    @classmethod
    def of_rows(cls, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> "Result":
        """From rows that are all there."""
        return cls(tuple(columns), len(rows), lambda start, end: rows[start:end])

    @classmethod
    def of_table(cls, table: pa.Table) -> "Result":
        """From what the guard answers; rows are made of it as they are sent."""

        def portion(start: int, end: int) -> list[tuple[Any, ...]]:
            values = [column.to_pylist() for column in table.slice(start, end - start).columns]
            return list(zip(*values, strict=True))

        return cls(tuple(columns_of(table.schema)), table.num_rows, portion)


def columns_of(schema: pa.Schema) -> list[Column]:
    """The columns that an answer of the guard has."""
    return [Column(field.name, of_arrow(field.type)) for field in schema]


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """What comes, as a message. formats: of all columns, one for each, or none for text."""
    fields = [
        FieldDescription(
            name=column.name.replace("\0", " "),
            type_oid=column.type.oid,
            type_size=column.type.size,
            type_modifier=-1,
            format_code=form,
        )
        for column, form in zip(columns, spread(formats, len(columns)), strict=True)
    ]
    return RowDescription(fields=fields).to_wire()


def spread(formats: Sequence[int], count: int) -> list[int]:
    """A format for each of so many: as given, one for all, or none for text."""
    if len(formats) == count:
        return list(formats)
    return [formats[0] if formats else TEXT] * count


def data_rows(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], formats: Sequence[int]) -> Iterator[bytes]:
    """Rows as messages. Raises PgError for a value that is none of its column's type."""
    writers = [
        _text_of(column.type) if form == TEXT else column.type.binary
        for column, form in zip(columns, spread(formats, len(columns)), strict=True)
    ]
    for row in rows:
        try:
            fields = [None if value is None else write(value) for write, value in zip(writers, row, strict=True)]
        except (ArithmeticError, ValueError, TypeError, AttributeError, struct.error):
            told = "A value of the result does not fit the type that its column has."
            raise PgError(NOT_SUPPORTED, told) from None
        yield DataRow(columns=fields).to_wire()


def _text_of(type_: PgType) -> Callable[[Any], bytes]:
    return lambda value: type_.text(value).encode("utf-8", "replace")
