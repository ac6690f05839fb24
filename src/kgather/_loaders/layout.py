"""Working out the layout of a text file (separator, header, columns) from its first lines."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kgather._errors import InputError
from kgather._loaders import columns, fields, ratings_written, shapes, standard, values
from kgather._loaders.columns import Columns, RolesUnknownError
from kgather._loaders.options import MISSING, LoadOptions
from kgather._loaders.ratings_written import NUMBERS, Written

# In the order of preference where several separators explain the lines equally well.
DELIMITERS = ("::", "\t", ";", ",", "|", " ")

# A quoted field may span so many lines.
LONGEST_RECORD = 1000

FIXED_DELIMITER = {"tsv": "\t", **standard.DELIMITERS}

Line = tuple[int, str]


@dataclass(frozen=True)
class Layout:
    """How the lines of a file are to be read.

    `header_line` is the number of the line that names the columns, 0 where there is none; `names` are the
    names it gives. `count` is the number of fields a line must have. `known_by` says how it is known which column
    holds what: the header, what was said, or a format that fixes it. `appended` are values that every line has besides
    its fields, from the names of folders; positions go on after the last field, and ratings past those are 1. `written`
    says how ratings are written.
    """

    format: str
    delimiter: str
    count: int
    columns: Columns
    header_line: int = 0
    names: tuple[str, ...] = ()
    decimal_comma: bool = False
    warnings: tuple[str, ...] = ()
    known_by: str = "the header"
    missing: tuple[str, ...] = MISSING
    appended: tuple[str, ...] = ()
    written: Written = NUMBERS

    def as_fields(self) -> list[str]:
        """The order of the columns as `fields` would say it."""
        order = ["-"] * (self.count + len(self.appended))
        for role in columns.ROLES:
            position = self.columns.position(role)
            if position is not None and position < len(order):
                order[position] = role
        return order

    def column_names(self) -> dict[str, str | None]:
        """For each role its column: the name in the header, or the position counted from 1."""
        chosen: dict[str, str | None] = {}
        for role in columns.ROLES:
            position = self.columns.position(role)
            if position is None or position >= self.count + len(self.appended):
                chosen[role] = None
            else:
                chosen[role] = self.names[position].strip() if self.names else str(position + 1)
        return chosen


def detect(
    where: str, sample: Sequence[Line], options: LoadOptions, partitions: Mapping[str, str] | None = None
) -> Layout:
    """Work out the layout of a text file.

    Args:
        where: The input, for messages.
        sample: Its first lines that are not blank, at least one, with their numbers.
        options: What was said about it.
        partitions: Columns that the names of its folders give.

    Raises:
        InputError: No layout with users, items and ratings explains the lines.
    """
    sample, said = without_separator_line(sample)
    delimiter = options.separator or FIXED_DELIMITER.get(options.format) or said
    candidates = (delimiter,) if delimiter else DELIMITERS
    best: tuple[float, Layout] | None = None
    complaints: list[tuple[bool, int, InputError]] = []
    for candidate in candidates:
        records = records_of(sample, candidate)
        count = _usual_count(records)
        try:
            layout = _explain(where, candidate, count, records, options, partitions or {})
        except InputError as error:
            complaints.append((isinstance(error, RolesUnknownError), count, error))
            continue
        score = _share_good(layout, records)
        if best is None or score > best[0]:
            best = (score, layout)
    if best is None or (best[0] == 0 and complaints and max(count for _, count, _ in complaints) > best[1].count):
        raise max(complaints, key=lambda complaint: complaint[:2])[2]
    return replace(best[1], format=_format_name(best[1], options), missing=options.missing)


def without_separator_line(sample: Sequence[Line]) -> tuple[Sequence[Line], str | None]:
    """Leave out a first line `sep=;`, by which spreadsheets say the separator, and give what it says."""
    said = re.fullmatch(r"sep=(.)", sample[0][1].strip(" \r"), re.IGNORECASE)
    return (sample[1:], said[1]) if said and len(sample) > 1 and said[1] in sample[1][1] else (sample, None)


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


def _explain(
    where: str,
    delimiter: str,
    count: int,
    records: Sequence[Record],
    options: LoadOptions,
    partitions: Mapping[str, str],
) -> Layout:
    comma = delimiter != ","
    header = _header(count, records, options, decimal_comma=comma)
    below = [split for _, split in records[1 if header else 0 :] if split is not None and len(split) == count]
    if header is not None:
        line, names = header
        further = {key: value for key, value in partitions.items() if key not in names}
        chosen = columns.choose_by_name(where, [*names, *further], options, below)
        every = (*names, *further)
        layout = Layout("csv", delimiter, len(names), chosen, line, every, comma, appended=(*further.values(),))
        layout = replace(layout, written=_written(below, chosen.rating, options, comma))
        return _with_usable_time(where, layout, records, options)
    if count < (2 if options.no_rating else 3):
        message = (
            f"{where}: the lines have {count} field{'s' if count != 1 else ''}, "
            f"and user, item and rating need 3. {_json_or_separator(records)}"
        )
        raise InputError(message)
    known_by = "what was said"
    found = columns.choose_by_position(where, count, options)
    if found is None:
        found = standard.columns_of(where, delimiter, below, options)
        known_by = "the format"
    if found is None:
        raise _unknown(where, records, below, comma)
    ratings = column_of(records, found.rating, count)
    told = _written(below, found.rating, options, comma)
    if 2 * sum(told.reads(text, decimal_comma=comma) for text in ratings) < len(ratings):
        message = (
            f"{where}: field {found.rating + 1} of {count} does not hold numbers, so it cannot be the ratings. Its "
            f"first lines, with letters as A or a and digits as #:\n{shapes.table_of(below)}\n"
            "Say which field they are with --fields or --rating-column, what words stand for with --map, or use "
            "--header if the first line names the columns."
        )
        raise InputError(message)
    return Layout("csv", delimiter, count, found, 0, (), comma, (), known_by, written=told)


def _written(below: Sequence[Sequence[str]], rating: int, options: LoadOptions, comma: bool) -> Written:
    texts = [record[rating] for record in below if rating < len(record)]
    return ratings_written.written(texts, options.words, decimal_comma=comma)


def _json_or_separator(records: Sequence[Record]) -> str:
    first = next((split[0].lstrip() for _, split in records if split), "")
    if first.startswith(("{", "[")):
        return "It looks like JSON: if it is, say --format json."
    return "Say what separates the fields with --delimiter."


def _unknown(where: str, records: Sequence[Record], below: Sequence[Sequence[str]], comma: bool) -> RolesUnknownError:
    """What to say where nothing names the columns, with a reading to confirm or to correct."""
    first = (records[0][1] or [""])[0].lstrip()
    marks = [mark for mark in ("#", "%", "//") if first.startswith(mark)]
    if marks and len(records) > 1:
        why = f"line {records[0][0]} begins with '{marks[0]}', and no line is known to name the columns."
        return RolesUnknownError(where, why, shapes.table_of(below), f"--comment '{marks[0]}'")
    why = "no line names the columns, so which of them holds the people is not known."
    proposed = proposed_fields(below, comma)
    proposal = f"--fields {','.join(proposed)}" + ("" if "rating" in proposed else " --no-rating")
    why += " (If the first line does, use --header.)"
    return RolesUnknownError(where, why, shapes.table_of(below), proposal, len(below[0]) if below else 0)


def proposed_fields(below: Sequence[Sequence[str]], comma: bool) -> list[str]:
    """What the fields of these records may be, in their order: a proposal, for somebody to confirm."""
    count = len(below[0]) if below else 3
    # The first line may name the columns after all.
    rows = below[1:] or below
    by_field = [[record[at] for record in rows] for at in range(count)]
    proposed = ["-"] * count
    times = [at for at in range(count) if _holds_times(by_field[at], named=False) and (at or _recent(by_field[at]))]
    numbers = [
        at
        for at in range(count)
        if at not in times[-1:] and all(values.is_number(text, decimal_comma=comma) for text in by_field[at])
    ]
    if times and count > 3:
        proposed[times[-1]] = "time"
    # Of columns of numbers the ratings are those with the fewest values; of two alike, the later.
    varied = [at for at in numbers if len({*by_field[at]}) > 1] or numbers
    if numbers:
        proposed[min(varied, key=lambda at: (len({*by_field[at]}), -at))] = "rating"
    for role in ("user", "item", "rating") if numbers else ("user", "item"):
        if role not in proposed and "-" in proposed:
            proposed[proposed.index("-")] = role
    return proposed


def _recent(texts: Sequence[str]) -> bool:
    """Whether these are seconds of about our time: what stands first in a line is rather an id."""
    return all(text.strip().isdecimal() and 7 * 10**8 <= int(text) < 22 * 10**8 for text in texts)


def _header(
    count: int, records: Sequence[Record], options: LoadOptions, *, decimal_comma: bool
) -> tuple[int, list[str]] | None:
    """The line number and the names of the header, if the first record is one."""
    line, first = records[0]
    if options.header is False or (options.header is None and options.format in standard.DELIMITERS):
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
    # A row of data is told in no message, and names are: so words are only taken for names if some are usual ones.
    absent = any(text.strip().lower() in (*MISSING, "") for text in first)
    if len(first) != count or any(numbers) or absent or not (named or columns.may_name(first)):
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
    if time is None or options.time_column is not None or time >= layout.count:
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
    if layout.columns.rating >= layout.count:
        return sum(split is not None and len(split) == layout.count for _, split in data) / max(len(data), 1)
    ratings = column_of(data, layout.columns.rating, layout.count)
    good = sum(layout.written.reads(text, decimal_comma=layout.decimal_comma) for text in ratings)
    return good / len(data) if data else 1.0


def _format_name(layout: Layout, options: LoadOptions) -> str:
    if options.format != "auto":
        return options.format
    if layout.known_by == "the format":
        return standard.BY_DELIMITER[layout.delimiter]
    return "tsv" if layout.delimiter == "\t" else "csv"
