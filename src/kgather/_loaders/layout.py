"""Working out the layout of a text file (separator, header, columns) from its first lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kgather._errors import InputError
from kgather._loaders import columns, fields, values
from kgather._loaders.columns import Columns
from kgather._loaders.options import LoadOptions

# In the order of preference where several separators explain the lines equally well.
DELIMITERS = ("::", "\t", ";", ",", "|", " ")

# A quoted field may span so many lines.
LONGEST_RECORD = 1000

FIXED_DELIMITER = {"tsv": "\t", "movielens-dat": "::", "u.data": "\t"}
_NEVER_HEADER = ("movielens-dat", "u.data")

Line = tuple[int, str]


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are to be read.

    `header_line` is the number of the line that names the columns, 0 where there is none; `names` are the
    names it gives. `count` is the number of fields a line must have.
    """

    format: str
    delimiter: str
    count: int
    columns: Columns
    header_line: int = 0
    names: tuple[str, ...] = ()
    decimal_comma: bool = False
    warnings: tuple[str, ...] = ()

    def column_names(self) -> dict[str, str | None]:
        """For each role its column: the name in the header, or the position counted from 1."""
        chosen: dict[str, str | None] = {}
        for role in columns.ROLES:
            position = self.columns.position(role)
            if position is None:
                chosen[role] = None
            else:
                chosen[role] = self.names[position].strip() if self.names else str(position + 1)
        return chosen


def detect(where: str, sample: Sequence[Line], options: LoadOptions) -> Layout:
    """Work out the layout of a text file.

    Args:
        where: The input, for messages.
        sample: Its first lines that are not blank, at least one, with their numbers.
        options: What was said about it.

    Raises:
        InputError: No layout with users, items and ratings explains the lines.
    """
    delimiter = options.delimiter or FIXED_DELIMITER.get(options.format)
    candidates = (delimiter,) if delimiter else DELIMITERS
    best: tuple[float, Layout] | None = None
    complaints: list[tuple[int, InputError]] = []
    for candidate in candidates:
        records = records_of(sample, candidate)
        count = _usual_count(records)
        try:
            layout = _explain(where, candidate, count, records, options)
        except InputError as error:
            complaints.append((count, error))
            continue
        score = _share_good(layout, records)
        if best is None or score > best[0]:
            best = (score, layout)
    if best is None or (best[0] == 0 and complaints and max(c for c, _ in complaints) > best[1].count):
        raise max(complaints, key=lambda complaint: complaint[0])[1]
    return replace(best[1], format=_format_name(best[1], options))


Record = tuple[int, list[str] | None]


def records_of(sample: Sequence[Line], delimiter: str) -> list[Record]:
    """The fields of each record of the sample; a quoted field may span lines."""
    records: list[Record] = []
    expected = len(fields.split(sample[0][1], delimiter) or ()) or None
    index = 0
    while index < len(sample):
        number, text = sample[index]
        split = fields.split(text, delimiter)
        index += 1
        if split is None and fields.is_open(text, delimiter):
            joined = text
            for ahead in range(index, min(index + 50, len(sample))):
                joined += "\n" + sample[ahead][1]
                whole = fields.split(joined, delimiter)
                if whole is not None:
                    if expected in (None, len(whole)):
                        split, index = whole, ahead + 1
                    break
        records.append((number, split))
    return records


def _usual_count(records: Sequence[Record]) -> int:
    """The most frequent number of fields, of those that are enough for a rating if there are any."""
    counts = Counter(len(split) for _, split in records if split is not None)
    return max(counts, key=lambda count: (count >= 3, counts[count])) if counts else 0


def _explain(where: str, delimiter: str, count: int, records: Sequence[Record], options: LoadOptions) -> Layout:
    comma = delimiter != ","
    header = _header(count, records, options, decimal_comma=comma)
    if header is not None:
        line, names = header
        chosen = columns.choose_by_name(where, names, options)
        layout = Layout("csv", delimiter, len(names), chosen, line, tuple(names), comma)
        return _with_usable_time(where, layout, records, options)
    if count < 3:
        message = (
            f"{where}: the lines have {count} field{'s' if count != 1 else ''}, "
            "and user, item and rating need 3. Say what separates the fields with --delimiter."
        )
        raise InputError(message)
    has_time = options.time_column is None and _holds_times(column_of(records, 3, count), named=False)
    chosen = columns.choose_by_position(where, count, options, has_time=has_time)
    ratings = column_of(records, chosen.rating, count)
    if 2 * sum(values.is_number(text, decimal_comma=comma) for text in ratings) < len(ratings):
        message = (
            f"{where}: no header was recognised and field {chosen.rating + 1} of {count} does not hold "
            "numbers, so the ratings were not found. Say which field they are with --rating-column, "
            "or use --header."
        )
        raise InputError(message)
    warnings: tuple[str, ...] = ()
    if count > 3 and chosen.time is None and options.time_column is None:
        warnings = (f"{where}: field 4 does not look like a time; the ratings have no times.",)
    return Layout("csv", delimiter, count, chosen, 0, (), comma, warnings)


def _header(
    count: int, records: Sequence[Record], options: LoadOptions, *, decimal_comma: bool
) -> tuple[int, list[str]] | None:
    """The line number and the names of the header, if the first record is one."""
    line, first = records[0]
    if options.header is False or (options.header is None and options.format in _NEVER_HEADER):
        return None
    if first is None:
        return None
    if options.header:
        return line, first
    if len(first) < 2:
        return None
    numbers = [values.is_number(text, decimal_comma=decimal_comma) for text in first]
    named = columns.roles_named(first, options)
    if named >= 2:
        return line, first
    said = (options.rating_column or "").strip()
    position = int(said) - 1 if said.isdecimal() and said.isascii() else 2
    if len(first) != count or any(numbers) or (not named and recurs(first, records[1:])):
        return None
    # Words above numbers: above the ratings, or above any column if one of the words is a known name.
    for each in range(count) if named else (position,):
        below = column_of(records[1:], each, count)
        good = sum(values.is_number(text, decimal_comma=decimal_comma) for text in below)
        if 2 * good > len(below) > 0:
            return line, first
    return None


def recurs(first: Sequence[str], below: Sequence[Record]) -> bool:
    """Whether a field of the first line is found again below it, as a name of a column would not be."""
    texts = [text.strip() for text in first]
    return any(
        text and text == split[position].strip()
        for _, split in below
        if split is not None and len(split) == len(first)
        for position, text in enumerate(texts)
    )


def _with_usable_time(where: str, layout: Layout, records: Sequence[Record], options: LoadOptions) -> Layout:
    """Leave out a column that is called like a time but holds none, unless it was asked for."""
    time = layout.columns.time
    if time is None or options.time_column is not None:
        return layout
    texts = column_of(records[1:], time, layout.count)
    if _holds_times(texts, named=True) or all(values.stands_for_no_time(text) for text in texts):
        return layout
    warning = f"{where}: column '{layout.names[time].strip()}' holds no readable times and is ignored."
    return replace(layout, columns=layout.columns.without_time(), warnings=(warning,))


def column_of(records: Sequence[Record], position: int, count: int) -> list[str]:
    """The texts of one column, of the records that have `count` fields."""
    return [split[position] for _, split in records if split is not None and len(split) == count > position]


def _holds_times(texts: Sequence[str], *, named: bool) -> bool:
    present = [text for text in texts if not values.stands_for_no_time(text)]
    good = sum(values.is_time(text, named=named) for text in present)
    return good > 0 if named else 10 * good >= 9 * len(present) > 0


def _share_good(layout: Layout, records: Sequence[Record]) -> float:
    data = records[1:] if layout.header_line else records
    ratings = column_of(data, layout.columns.rating, layout.count)
    good = sum(values.is_number(text, decimal_comma=layout.decimal_comma) for text in ratings)
    return good / len(data) if data else 1.0


def _format_name(layout: Layout, options: LoadOptions) -> str:
    if options.format != "auto":
        return options.format
    if layout.delimiter == "::" and not layout.header_line:
        return "movielens-dat"
    if layout.delimiter == "\t":
        bare = not layout.header_line and layout.count == 4 and layout.columns.time == 3
        return "u.data" if bare else "tsv"
    return "csv"
