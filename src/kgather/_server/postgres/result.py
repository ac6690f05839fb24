"""A result in the types of PostgreSQL, and its rows as they are sent."""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pygwire.messages import DataRow, FieldDescription, RowDescription

from kgather._guard.json_calls import is_marked
from kgather._server.postgres.errors import NOT_SUPPORTED, WRONG_ENCODING, PgError
from kgather._server.postgres.types import JSON, TEXT, PgType, ZeroByteError, of_arrow, values_of


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
    def of_table(cls, table: pa.Table, labels: Sequence[str] = ()) -> "Result":
        """From what the guard answers; rows are made of it as they are sent. labels: the columns' names."""

        def portion(start: int, end: int) -> list[tuple[Any, ...]]:
            values = [values_of(column) for column in table.slice(start, end - start).columns]
            return list(zip(*values, strict=True))

        return cls(tuple(columns_of(table.schema, labels)), table.num_rows, portion)

    def picked(self, numbers: range) -> "Result":
        """Some of the rows, in an order of their own."""
        if numbers.step == 1:
            return Result(self.columns, len(numbers), lambda start, end: self.portion(*_ends(numbers[start:end])))
        rows = self.portion(*_ends(numbers[::-1]))[::-1]
        return Result.of_rows(self.columns, rows)


def columns_of(schema: pa.Schema, labels: Sequence[str] = ()) -> list[Column]:
    """The columns that an answer of the guard has. labels: their names, if not those of the schema."""
    names = labels or schema.names
    return [
        Column(name, JSON if is_marked(field) else of_arrow(field.type))
        for name, field in zip(names, schema, strict=True)
    ]


def _ends(numbers: range) -> tuple[int, int]:
    return (numbers.start, numbers.start + len(numbers))


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
    """Rows as messages. Raises as `written`."""
    for fields in written(columns, rows, formats):
        yield DataRow(columns=fields).to_wire()


def written(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], formats: Sequence[int]
) -> Iterator[list[bytes | None]]:
    """The values of rows as bytes, None for NULL. Raises PgError for a value that is none of its column's type."""
    writers = [
        _text_of(column.type) if form == TEXT else column.type.binary
        for column, form in zip(columns, spread(formats, len(columns)), strict=True)
    ]
    for row in rows:
        try:
            yield [None if value is None else write(value) for write, value in zip(writers, row, strict=True)]
        except ZeroByteError:
            told, hint = "A text of the result has a zero byte, which PostgreSQL has not.", "Take it out with replace."
            raise PgError(WRONG_ENCODING, told, hint=hint) from None
        except (ArithmeticError, ValueError, TypeError, AttributeError, struct.error):
            told = "A value of the result does not fit the type that its column has."
            raise PgError(NOT_SUPPORTED, told) from None


def _text_of(type_: PgType) -> Callable[[Any], bytes]:
    return lambda value: type_.text(value).encode("utf-8", "replace")
