"""What the cells of a column may show, from what was asked of it and how it was read: ends on cuts, labels of its
order or hierarchy. Of other texts (categories, prefixes, masks) anything may be a value, so they are not looked at.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import duckdb

from kgather._recoding.hierarchies import EVERYTHING, lines, members
from kgather._settings.table import QuasiIdentifier, TableSettings
from kgather._sql_text import identifier

Fits = Callable[[str], bool]
_FOUND = r"(?P<found>, found by the spread of the values)?"
_NUMBER = re.compile(rf"number with cuts every (?P<step>\S+?){_FOUND}")
_CUTS = "number with cuts of its own"
_DATE = re.compile(rf"date with cuts every (?P<step>minute|hour|day|week|month|quarter|year|decade){_FOUND}")
_TIME = re.compile(rf"time with cuts every (?P<step>[1-9]\d{{0,3}}) minutes{_FOUND}")
_PREFIX = re.compile(r"text, shown by its beginning")
_MASK = re.compile(r"text, shown through (?P<count>\d{1,6}) masks")
_TREE = re.compile(r"category with a hierarchy of (?P<count>\d{1,6}) levels")
_GROUPED = re.compile(r"category, grouped by frequency")
_FLAT = re.compile(r"category without a hierarchy: a value or nothing")
_ORDER = re.compile(r"ordered category of (?P<count>\d{1,9}) values")
_NULLS = re.compile(r"nothing but nulls")
_READ: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "number": (_NUMBER, re.compile(_CUTS)),
    "date": (_DATE,),
    "time": (_TIME,),
    "category": (_TREE, _GROUPED, _FLAT, _NULLS),
    "ordered": (_ORDER, _TREE, _NULLS),
    "prefix": (_PREFIX, _NULLS),
    "mask": (_MASK, _NULLS),
}
_RANGE = re.compile(r"\[(?P<low>[^,\[\]()]+), (?P<high>[^,\[\]()]+)(?P<close>[)\]])")
_SIDE = re.compile(r"(?P<sign><|<=|>=) (?P<end>.+)")
_CLOCK = re.compile(r"([01]\d|2[0-4]):([0-5]\d)")
_OF_A_DAY = {"minute": 1, "hour": 60}
_MINUTES = 24 * 60


@dataclass(frozen=True)
class _Line:
    """A line of values. cut, own: where a cut, and a value that may be shown itself, lies; None of other texts. single:
    whether a text is a range of one value."""

    cut: Callable[[str], float | None]
    own: Callable[[str], float | None]
    single: Fits


def read_otherwise(settings: TableSettings, said: Mapping[str, str]) -> list[str]:
    """The columns that were read in another way than they were asked for. said: of each column how it was read."""
    return [name for name, asked in settings.quasi_identifiers.items() if not _goes_with(asked, said.get(name) or "")]


def false_cells(
    con: duckdb.DuckDBPyConnection, relation: str, settings: TableSettings, said: Mapping[str, str]
) -> tuple[int, list[str]]:
    """How many rows have a cell that its column cannot show, and the columns. said: of each how it was read.

    Raises InputError where a hierarchy among the settings is none.
    """
    rows, columns = 0, []
    for name, asked in settings.quasi_identifiers.items():
        fits = _form(name, asked, said.get(name) or "")
        if fits is None:
            continue
        shown = con.execute(
            f"select cast({identifier(name)} as varchar) as cell, count(*) from {relation} "
            f"where {identifier(name)} is not null group by cell"
        ).fetchall()
        found = sum(times for cell, times in shown if cell != EVERYTHING and not fits(cell))
        rows += found
        columns += [name] if found else []
    return rows, columns


def _goes_with(asked: QuasiIdentifier, said: str) -> bool:
    """Whether a column may be read so for what was asked of it."""
    kinds = [kind for kind, forms in _READ.items() if any(form.fullmatch(said) for form in forms)]
    if not kinds or (asked.kind is not None and asked.kind not in kinds):
        return False
    if _NULLS.fullmatch(said):
        return asked.kind in ("category", "ordered", "prefix", "mask", None) and (asked.cuts, asked.step) == (
            None,
            None,
        )
    if asked.cuts is not None or said == _CUTS:
        return asked.cuts is not None and said == _CUTS
    if asked.hierarchy is not None or _TREE.fullmatch(said):
        return asked.hierarchy is not None and _TREE.fullmatch(said) is not None
    if asked.grouping is not None or _GROUPED.fullmatch(said):
        return asked.grouping is not None and _GROUPED.fullmatch(said) is not None
    for counted, listed in ((_ORDER, asked.order), (_MASK, asked.mask)):
        found = counted.fullmatch(said)
        if listed is not None or found:
            return found is not None and listed is not None and int(found["count"]) == len(listed)
    line = _NUMBER.fullmatch(said) or _DATE.fullmatch(said) or _TIME.fullmatch(said)
    if line is None:
        return asked.step is None and (not asked.keep or _PREFIX.fullmatch(said) is not None)
    if asked.step is None or line["found"]:
        return asked.step is None and line["found"] is not None and _finite(line["step"])
    if isinstance(asked.step, str):
        return line["step"] in (asked.step, str(_OF_A_DAY.get(asked.step)))
    return line["step"] == f"{asked.step:g}"


def _finite(step: str) -> bool:
    try:
        return float(step) > 0
    except ValueError:
        return True  # a part of the calendar


def _form(name: str, asked: QuasiIdentifier, said: str) -> Fits | None:
    """Whether a text may be a cell of a column; None where any text may be."""
    if said == _CUTS and asked.cuts is not None:
        return _on_line(_numbers(asked, None), asked)
    if (found := _NUMBER.fullmatch(said)) and asked.cuts is None:
        step = float(asked.step) if isinstance(asked.step, float | int) else _as_number(found["step"])
        return _on_line(_numbers(asked, step), asked)
    if found := _DATE.fullmatch(said):
        return _on_line(_dates(found["step"]), asked)
    if found := _TIME.fullmatch(said):
        return _on_line(_times(int(found["step"])), asked)
    if _ORDER.fullmatch(said) and asked.order is not None:
        return _of_order(asked.order, sets=asked.show == "set")
    if _TREE.fullmatch(said) and asked.hierarchy is not None and not isinstance(asked.hierarchy, str):
        paths = lines(name, asked.hierarchy)
        labels, leaves = {label for path in paths for label in path}, {path[0] for path in paths}
        return lambda text: text in labels or (asked.show == "set" and (members(text) or {""}) <= leaves)
    return (lambda _: False) if _NULLS.fullmatch(said) else None


def _on_line(line: _Line, asked: QuasiIdentifier) -> Fits:
    def tight(text: str) -> float | None:
        own = line.own(text)
        return line.cut(text) if own is None else own

    def fits(text: str) -> bool:
        if asked.show in ("mean", "median") and line.own(text) is not None:
            return True
        is_tight = asked.show == "tight"
        if line.single(text) or (is_tight and line.own(text) is not None):
            return True
        end = tight if is_tight else line.cut
        if side := _SIDE.fullmatch(text):
            return (side["sign"] != "<=" or is_tight) and end(side["end"]) is not None
        found = _RANGE.fullmatch(text)
        if found is None or (found["close"] == "]" and not is_tight):
            return False
        low, high = end(found["low"]), end(found["high"])
        return low is not None and high is not None and low < high

    return fits


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(asked: QuasiIdentifier, step: float | None) -> _Line:
    from kgather._recoding.numbers import written  # kernels take seconds to load

    def own(text: str) -> float | None:
        value = _as_number(text)
        return value if value is not None and math.isfinite(value) and written(value) == text else None

    def cut(text: str) -> float | None:
        value = own(text)
        if value is None or step is None:
            return value if value is not None and value in (asked.cuts or ()) else None
        if math.isinf(step):
            return value if value == 0 else None
        if not math.isfinite(value / step):
            return None
        multiple = round(value / step) * step
        # With the digits that people write, as cuts are shown.
        shown = multiple if multiple == math.floor(multiple) else float(f"{multiple:.15g}")
        return value if value == shown else None

    def single(text: str) -> bool:
        value = cut(text)
        return value is not None and value == math.floor(value) and cut(written(value + 1)) is not None

    return _Line(cut, own, single)


def _dates(step: str) -> _Line:
    minutes = _OF_A_DAY.get(step)

    def own(text: str) -> float | None:
        try:
            found = datetime.strptime(text, "%Y-%m-%d %H:%M" if minutes else "%Y-%m-%d")
        except ValueError:
            return None
        as_shown = found.isoformat(" ", "minutes") if minutes else str(found.date())
        return (found - datetime.min).total_seconds() if as_shown == text else None

    def cut(text: str) -> float | None:
        value = own(text)
        return (
            value
            if value is not None
            and (minutes or _begins(date.fromisoformat(text), step))
            and (not minutes or value % (60 * minutes) == 0)
            else None
        )

    return _Line(cut, own, lambda text: step == "day" and own(text) is not None)


def _begins(day: date, step: str) -> bool:
    """Whether a part of the calendar begins with a day."""
    if step in ("day", "week"):
        return step == "day" or day.weekday() == 0
    if day == date.min:
        return True
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[step]
    return day.day == 1 and (day.year * 12 + day.month - 1) % months == 0


def _times(minutes: int) -> _Line:
    def own(text: str) -> float | None:
        found = _CLOCK.fullmatch(text)
        return None if found is None else int(found[1]) * 60.0 + int(found[2])

    def cut(text: str) -> float | None:
        value = own(text)
        # 24:00, the end of a day, is in a range of its own.
        on_cut = value is not None and ((value % minutes == 0 and value <= _MINUTES) or value == _MINUTES + 1)
        return value if on_cut else None

    return _Line(cut, own, lambda _: False)


def _of_order(order: Sequence[str], *, sets: bool) -> Fits:
    place = {value: at for at, value in enumerate(order)}

    def fits(text: str) -> bool:
        if text in place or (sets and (members(text) or {""}) <= place.keys()):
            return True
        for found in re.finditer(" to ", text):
            low, high = place.get(text[: found.start()]), place.get(text[found.end() :])
            if low is not None and high is not None and low < high:
                return True
        return False

    return fits
