"""Dates, timestamps and times of the day as codes, in days: since 1970, or since midnight."""

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._recoding.lines import Coded, binned
from kgather._settings.table import QuasiIdentifier

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (float((day - _EPOCH.date()).days) for day in (date.min, date.max))
_WANTED = 20  # bins of a date whose cuts nobody said
_TAIL = 0.01  # share of rows beyond the ranks whose distance decides
_MINUTES = 24 * 60  # of a day
_WITHIN_A_DAY = {"minute": 1, "hour": 60}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")


def moment(
    name: str, asked: QuasiIdentifier, kind: str, values: Sequence[str | None], rows: NDArray[np.int64], k: int
) -> Coded:
    """A column of dates or timestamps; arguments and errors as in `columns.coded`."""
    days = np.array([math.nan if value is None else _days(name, value) for value in values])
    present, weight = days[~np.isnan(days)], rows[~np.isnan(days)]
    if isinstance(asked.step, float | int):
        msg = f"step of column '{name}' is minute, hour, day, week, month, quarter, year or decade, not {asked.step:g}."
        raise InputError(msg)
    step = (
        str(asked.step)
        if asked.step
        else _sensible_step(present, weight, k, has_time=kind != "DATE", widest=asked.widest)
    )
    said = f"date with cuts every {step}" + ("" if asked.step else ", found by the spread of the values")
    minutes = _WITHIN_A_DAY.get(step)
    if minutes is not None:
        cuts = _every(present, minutes)
        return binned(name, days, weight, cuts, asked, said, _moment_text, unit=None, shown_as=_floored(days, 1))
    cuts = _calendar(present, step)
    unit = 1.0 if step == "day" else None
    return binned(name, days, weight, cuts, asked, said, _day_text, unit=unit, shown_as=np.floor(days))


def time_of_day(
    name: str, asked: QuasiIdentifier, values: Sequence[str | None], rows: NDArray[np.int64], k: int
) -> Coded:
    """A column of times of the day; those with a time zone are taken as the clock there showed them."""
    days = np.array([math.nan if value is None else _clock(name, value) for value in values])
    present, weight = days[~np.isnan(days)], rows[~np.isnan(days)]
    if isinstance(asked.step, str) and asked.step not in _WITHIN_A_DAY:
        msg = f"step of column '{name}' is hour, minute or a number of minutes, not {asked.step}."
        raise InputError(msg)
    if isinstance(asked.step, float | int):
        if asked.step != int(asked.step) or asked.step > _MINUTES:
            msg = f"step of column '{name}' is a whole number of minutes up to {_MINUTES}, not {asked.step:g}."
            raise InputError(msg)
        minutes = int(asked.step)
    elif asked.step:
        minutes = _WITHIN_A_DAY[asked.step]
    else:
        wanted = _spread(present, weight, k) * _MINUTES / _WANTED
        minutes = next((each for each in (1, 5, 15, 30) if each >= wanted), 60)
    said = f"time with cuts every {minutes} minutes" + ("" if asked.step else ", found by the spread of the values")
    cuts = np.arange(0, _MINUTES + minutes, minutes) / _MINUTES
    # 24:00, the end of a day, is in a range of its own.
    cuts = np.append(cuts[cuts <= 1.0], 1.0 + 1 / _MINUTES)
    if asked.widest is not None:
        asked = asked.model_copy(update={"widest": asked.widest / _MINUTES})
    return binned(name, days, weight, np.unique(cuts), asked, said, _clock_text, unit=None, shown_as=_floored(days, 1))


def _days(name: str, value: str) -> float:
    try:
        found = datetime.fromisoformat(value.replace(" (BC)", ""))
    except ValueError:
        msg = f"column '{name}' has dates that no calendar from the year 1 to 9999 has. Make them null."
        raise InputError(msg) from None
    if value.endswith("(BC)"):
        msg = f"column '{name}' has dates before the year 1. Make them null."
        raise InputError(msg)
    offset = found.utcoffset()
    # Whole seconds: as a share of a day they are still told apart at the ends of the calendar.
    found = found.replace(tzinfo=None, microsecond=0) - (offset or timedelta())
    return (found - _EPOCH) / timedelta(days=1)


def _clock(name: str, value: str) -> float:
    found = _TIME.match(value)
    if found is None:
        msg = f"column '{name}' has times that no clock shows. Make them null."
        raise InputError(msg)
    hours, minutes, seconds = map(int, found.groups())
    return (hours * 3600 + minutes * 60 + seconds) / 86400


def _floored(days: NDArray[np.float64], minutes: int) -> NDArray[np.float64]:
    """The begin of the minutes that moments lie in. They are whole seconds, which a rounding of 0.01 does not reach."""
    return np.asarray(np.floor(days * (_MINUTES / minutes) + 0.01 / 60) / (_MINUTES / minutes))


def _day_text(value: float) -> str:
    return str((_EPOCH + timedelta(days=math.floor(value))).date())


def _moment_text(value: float) -> str:
    return (_EPOCH + timedelta(minutes=round(value * _MINUTES))).isoformat(" ", "minutes")


def _clock_text(value: float) -> str:
    hours, minutes = divmod(round(value * _MINUTES), 60)
    return f"{hours:02}:{minutes:02}"


def _spread(present: NDArray[np.float64], weight: NDArray[np.int64], k: int) -> float:
    """The distance between the ranks that k rows or more, and one in a hundred, lie beyond."""
    if len(present) == 0:
        return 0.0
    order = np.argsort(present, kind="stable")
    upto = np.cumsum(weight[order])
    beyond = max(k, int(_TAIL * upto[-1]))
    low = present[order][min(int(np.searchsorted(upto, beyond)), len(present) - 1)]
    high = present[order][max(int(np.searchsorted(upto, upto[-1] - beyond)), 0)]
    return float(max(high - low, 0))


def _sensible_step(
    present: NDArray[np.float64], weight: NDArray[np.int64], k: int, *, has_time: bool, widest: float | None
) -> str:
    """The step that is nearest to a twentieth of the spread, and no wider than a range may be."""
    if len(present) == 0:
        return "year"
    wanted = _spread(present, weight, k) / _WANTED
    lengths = [("day", 1.0), ("week", 7.0), ("month", 31.0), ("quarter", 92.0), ("year", 366.0)]
    if has_time:
        lengths = [("minute", 1 / _MINUTES), ("hour", 1 / 24), *lengths]
    lengths.append(("decade", 3653.0))
    fit = [(step, length) for step, length in lengths if widest is None or length <= widest] or lengths[:1]
    return next((step for step, length in fit if length >= wanted), fit[-1][0])


def _every(present: NDArray[np.float64], minutes: int) -> NDArray[np.float64]:
    """The cuts at multiples of so many minutes on both sides of every moment, in days since 1970."""
    if len(present) == 0:
        return np.array([0.0, 1.0])
    per_day = _MINUTES / minutes
    occupied = np.unique(np.floor(present * per_day))
    # One more on both sides, where a product was rounded over its cut.
    cuts = np.unique(np.concatenate([occupied - 1, occupied, occupied + 1, occupied + 2])) / per_day
    return np.asarray(cuts[(cuts >= _FIRST_DAY) & (cuts <= _LAST_DAY)])


def _calendar(present: NDArray[np.float64], step: str) -> NDArray[np.float64]:
    """The cuts around all days, in days since 1970. Steps of months are counted by the calendar."""
    if len(present) == 0:
        return np.array([0.0, 1.0])
    first, last = math.floor(present.min()), math.floor(present.max()) + 1
    if step in ("day", "week"):
        width = 1 if step == "day" else 7
        shift = 0 if step == "day" else 3  # weeks begin on Mondays, and 1970 began on a Thursday
        occupied = np.unique(np.floor((present + shift) / width))
        found = np.unique(np.concatenate([occupied, occupied + 1])) * width - shift
        return np.asarray(found[(found >= _FIRST_DAY) & (found <= _LAST_DAY)])
    months = _MONTHS[step]
    begin = _EPOCH + timedelta(days=first)
    number = ((begin.year * 12 + begin.month - 1) // months) * months
    cuts = []
    while True:
        year, month = divmod(number, 12)
        if year > date.max.year:  # what comes then is open at its end
            break
        cuts.append(float((date(max(year, 1), month + 1, 1) - _EPOCH.date()).days))
        if cuts[-1] >= last:
            break
        number += months
    return np.array(cuts)
