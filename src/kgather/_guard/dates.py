"""Dates that are shown by a grain only, such as by month: what may be asked of them, and what that means."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

from kgather._guard.plan import Literal, Op
from kgather._guard.policy import TRUNCATIONS

PARTS: Mapping[str, tuple[str, ...]] = {
    "century": (),
    "decade": ("decade",),
    "year": ("year", "decade", "century"),
    "quarter": ("quarter", "year", "decade", "century"),
    "month": ("month", "quarter", "year", "decade", "century"),
    "week": (),
    "day": (
        *("day", "dayofmonth", "dayofweek", "dow", "isodow", "weekday", "dayofyear", "doy", "week", "weekofyear"),
        *("isoyear", "yearweek", "month", "quarter", "year", "decade", "century"),
    ),
}
"""The parts of a date that each grain tells. A century is cut off at its year 0, and counted from its year 1: so
neither it nor a decade tells the part."""
_DIRECTIVES: Mapping[str, str] = {
    "year": "Yy%",
    "quarter": "Yy%",
    "month": "YymbhB%",
    "day": "YymbhBdjaAuUWwGVx%",
}
"""The letters that may stand behind % in a format, by grain."""


UNITS = ("day", "week", "month", "quarter", "year", "decade", "century")
"""The units that DATE_DIFF counts, and that a constant date is cut to."""


def beginning(moment: date, unit: str) -> date:
    """The first day of the unit of UNITS that a day is in."""
    day = date(moment.year, moment.month, moment.day)
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3}.get(unit, 1)
    year = day.year - day.year % {"decade": 10, "century": 100}.get(unit, 1)
    return date(max(year, 1), month, 1)


def part(moment: date, name: str) -> int | None:
    """A part of a day, as DuckDB's EXTRACT gives it; None of other parts."""
    week = moment.isocalendar()
    found = {
        "year": moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "day": moment.day,
        "dayofmonth": moment.day,
        "dow": moment.isoweekday() % 7,
        "dayofweek": moment.isoweekday() % 7,
        "weekday": moment.isoweekday() % 7,
        "isodow": moment.isoweekday(),
        "doy": moment.timetuple().tm_yday,
        "dayofyear": moment.timetuple().tm_yday,
        "week": week.week,
        "weekofyear": week.week,
        "isoyear": week.year,
        "decade": moment.year // 10,
        "century": (moment.year - 1) // 100 + 1,
    }
    return found.get(name)


def is_coarse(unit: str, grain: str) -> bool:
    """Whether a unit of DATE_TRUNC is the grain, or made of whole parts of it."""
    at, least = (TRUNCATIONS.index(one) for one in (unit, grain))
    return at == least or (at > least and grain != "week")


def tells(fmt: str, grain: str) -> bool:
    """Whether a format of STRFTIME says no more of a date than its grain."""
    directives = fmt.replace("%-", "%").split("%")[1:]
    return all(part[:1] in _DIRECTIVES.get(grain, "%") for part in directives if part)


def begins(moment: date | datetime, grain: str) -> bool:
    """Whether a day, or a moment, is the first of its part of the calendar."""
    if isinstance(moment, datetime) and moment.time() != time():
        return False
    firsts: Mapping[str, bool] = {
        "day": True,
        "week": moment.weekday() == 0,
        "month": moment.day == 1,
        "quarter": moment.day == 1 and moment.month in (1, 4, 7, 10),
        "year": (moment.month, moment.day) == (1, 1),
        "decade": (moment.month, moment.day) == (1, 1) and moment.year % 10 == 0,
        "century": (moment.month, moment.day) == (1, 1) and moment.year % 100 == 0,
    }
    return firsts[grain]


def compared(name: str, grained: Op, with_: Literal) -> Op | None:
    """What a comparison of a date means that is shown by a grain: of its beginnings, where the constant lies between
    two of them. None where it lies within one. grained: the date cut to the grain."""
    grain, moment = str(grained.args[0].value), with_.value  # type: ignore[union-attr]
    if moment is None:
        return Op(name, (grained, with_))
    assert isinstance(moment, date)
    whole = not isinstance(moment, datetime)
    if name in ("<=", ">") and whole:  # d <= the last day is d < the next one
        if moment == date.max:
            return None
        moment, name = moment + timedelta(days=1), {"<=": "<", ">": ">="}[name]
    possible = name in ("<", ">=") or (whole and grain == "day" and name in ("=", "<>", "is not distinct"))
    if not possible or not begins(moment, grain):
        return None
    at = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    return Op(name, (grained, Literal(at, "timestamp")))


def moved(moment: date | datetime, number: int, unit: str) -> date | datetime | None:
    """A moment so many units later, as DuckDB has it: of a month that is too short, its last day. None for units that
    are no whole days."""
    days = {"day": 1, "week": 7}.get(unit)
    if days is not None:
        return moment + timedelta(days=days * number)
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if months is None:
        return None
    year, month = divmod(moment.year * 12 + moment.month - 1 + months * number, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
