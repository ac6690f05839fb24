"""Formats without a header whose order of fields is fixed: known by their content, never by a guess.

MovieLens wrote `user::item::rating::time` (ratings.dat) and the same with tabs (u.data and its splits). The first looks
like nothing else. The second looks like any table of four integers, so its files must also have the name that
MovieLens gave them.
"""

import re
from collections.abc import Sequence
from pathlib import PurePath

from kgather._loaders import values
from kgather._loaders.columns import Columns
from kgather._loaders.options import LoadOptions

DELIMITERS = {"movielens-dat": "::", "u.data": "\t"}
BY_DELIMITER = {delimiter: name for name, delimiter in DELIMITERS.items()}

_U_DATA = re.compile(r"u(\.data|[1-5ab]\.(base|test))(\.(gz|zst|bz2|xz))?", re.IGNORECASE)
_STARS = frozenset({"0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5", "1.0", "2.0", "3.0", "4.0", "5.0"})
_EARLIEST, _LATEST = 789_000_000, 4_102_444_800  # 1995 to 2100, in seconds


def columns_of(where: str, delimiter: str, records: Sequence[Sequence[str]], options: LoadOptions) -> Columns | None:
    """The columns, where these are lines of such a format; None otherwise.

    Args:
        where: The input.
        delimiter: What separates its fields.
        records: Its first lines, split.
        options: What was said about it; a format that was said need not be recognized.
    """
    said = options.format if options.format in DELIMITERS else None
    if delimiter not in BY_DELIMITER or (said is None and options.format != "auto"):
        return None
    if said is None and not _recognized(where, delimiter, records):
        return None
    has_time = bool(records) and len(records[0]) > 3 and (options.time_column or "").strip().lower() != "none"
    return Columns(0, 1, 2, 3 if has_time else None)


def _recognized(where: str, delimiter: str, records: Sequence[Sequence[str]]) -> bool:
    if delimiter == "\t" and not _U_DATA.fullmatch(PurePath(where).name):
        return False
    good = sum(
        len(fields) == 4
        and values.is_integer_text(fields[0])
        and values.is_integer_text(fields[1])
        and fields[2].strip() in _STARS
        and values.is_integer_text(fields[3])
        and _EARLIEST <= int(fields[3]) < _LATEST
        for fields in records
    )
    return bool(records) and 10 * good >= 9 * len(records)
