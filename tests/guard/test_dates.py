"""Dates that are shown by a grain: what is told of them is the same for all dates of one part of the calendar."""

from datetime import date, datetime, time, timedelta

import duckdb
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sqlglot import exp

from kgather._guard import dates
from kgather._guard.conditions import coerced
from kgather._guard.plan import Bound, Literal, Op
from kgather._guard.policy import TRUNCATIONS
from kgather.guard import Refused

GRAINS = [grain for grain in TRUNCATIONS if grain in dates.PARTS]
CON = duckdb.connect()
FIRST, LAST = date(1600, 1, 1), date(2300, 12, 31)
days = st.dates(FIRST, LAST)
moments = st.datetimes(datetime.combine(FIRST, time()), datetime.combine(LAST, time()))
midnights = days.map(lambda day: datetime.combine(day, time()))
names = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is not distinct"])
grains = st.sampled_from(GRAINS)


def begin(moment: date | datetime, grain: str) -> datetime:
    """What DATE_TRUNC makes of a moment."""
    (row,) = CON.execute("select date_trunc(?, ?::timestamp)", [grain, moment]).fetchall()
    found = row[0]
    assert isinstance(found, datetime)
    return found


def holds(name: str, one: date | datetime, other: date | datetime) -> bool:
    return {
        "=": one == other,
        "is not distinct": one == other,
        "<>": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[name]


def around(moment: date | datetime) -> list[date | datetime]:
    """A moment, and others of which some are of the same part of the calendar."""
    small = timedelta(days=1) if not isinstance(moment, datetime) else timedelta(microseconds=1)
    return [moment + step * sign for step in (small, timedelta(days=7), timedelta(days=40)) for sign in (-1, 0, 1)]


def grained(grain: str) -> Op:
    return Op("date_trunc", (Literal(grain, "text"), Bound("t", "d", "date")), "timestamp")


def test_every_grain_has_its_parts() -> None:
    assert set(GRAINS) == set(dates.PARTS)
    assert {"year", "quarter", "month", "week", "day"} <= set(GRAINS)


@given(days, names, grains, days)
@example(date(2024, 3, 1), "<=", "month", date(2024, 3, 31))
@example(date(2024, 3, 1), ">", "month", date(2024, 2, 29))
@example(date(2024, 1, 1), ">=", "year", date(2024, 1, 1))
@example(date(2000, 1, 1), "<", "century", date(2000, 1, 1))
@example(date(2024, 1, 1), "=", "day", date(2024, 1, 1))
def test_a_comparison_of_the_grain_is_that_of_the_day(day: date, name: str, grain: str, constant: date) -> None:
    for with_ in (constant, begin(constant, grain).date(), begin(constant, grain).date() - timedelta(days=1)):
        found = dates.compared(name, grained(grain), Literal(with_, "date"))
        if found is None:
            continue
        shown = found.args[1]
        assert isinstance(shown, Literal)
        assert isinstance(shown.value, datetime)
        for one in (day, *around(with_)):
            assert holds(found.name, begin(one, grain), shown.value) == holds(name, one, with_)


@given(moments, names, grains, st.one_of(moments, midnights))
def test_a_comparison_of_the_grain_is_that_of_the_moment(
    moment: datetime, name: str, grain: str, constant: datetime
) -> None:
    for with_ in (constant, begin(constant, grain)):
        found = dates.compared(name, grained(grain), Literal(with_, "timestamp"))
        if found is None:
            continue
        shown = found.args[1]
        assert isinstance(shown, Literal)
        assert isinstance(shown.value, datetime)
        for one in (moment, *around(with_)):
            assert isinstance(one, datetime)
            assert holds(found.name, begin(one, grain), shown.value) == holds(name, one, with_)


@pytest.mark.parametrize("grain", GRAINS)
def test_the_first_days_can_be_compared_with(grain: str) -> None:
    first = begin(date(2024, 5, 17), grain)
    for name in ("<", ">="):
        assert dates.compared(name, grained(grain), Literal(first, "timestamp")) is not None
        assert dates.compared(name, grained(grain), Literal(first.date(), "date")) is not None
    for name in ("<=", ">"):
        day_before = first.date() - timedelta(days=1)
        assert dates.compared(name, grained(grain), Literal(day_before, "date")) is not None
    within = first + timedelta(hours=1)
    assert all(dates.compared(name, grained(grain), Literal(within, "timestamp")) is None for name in ("<", ">=", "="))


def test_the_last_day_of_all_and_nothing() -> None:
    assert dates.compared("<=", grained("month"), Literal(date.max, "date")) is None
    missing = dates.compared("<=", grained("month"), Literal(None, "null"))
    assert missing == Op("<=", (grained("month"), Literal(None, "null")))


@given(st.one_of(days, moments, midnights), grains)
@example(date(2000, 1, 1), "century")
@example(date(1901, 1, 1), "century")
@example(date(1900, 1, 1), "century")
@example(date(2020, 1, 1), "decade")
def test_what_begins(moment: date | datetime, grain: str) -> None:
    for one in (moment, begin(moment, grain), begin(moment, grain).date()):
        whole = one if isinstance(one, datetime) else datetime.combine(one, time())
        assert dates.begins(one, grain) == (begin(one, grain) == whole)


@given(
    st.one_of(days, moments), st.integers(-2_000, 2_000), st.sampled_from(["day", "week", "month", "quarter", "year"])
)
@example(date(2024, 1, 31), 1, "month")
@example(date(2024, 2, 29), 1, "year")
@example(date(2024, 12, 31), -1, "quarter")
@example(date(2024, 11, 30), 1, "month")
def test_moved_as_duckdb_moves(moment: date | datetime, number: int, unit: str) -> None:
    number = number if unit in ("day", "week") else number // 12
    found = dates.moved(moment, number, unit)
    (row,) = CON.execute(f"select ?::timestamp + interval ({number}) {unit}", [moment]).fetchall()
    assert found is not None
    assert type(found) is type(moment)
    assert row[0] == (found if isinstance(found, datetime) else datetime.combine(found, time()))


def test_what_is_no_number_of_days_moves_nothing() -> None:
    assert dates.moved(date(2024, 1, 1), 5, "hour") is None
    assert dates.moved(date(2024, 1, 1), 5, "decade") is None


@given(moments, moments, grains)
def test_parts_are_those_of_the_grain(one: datetime, other: datetime, grain: str) -> None:
    for part in dates.PARTS[grain]:
        for moment in (one, other):
            sql = f"select date_part('{part}', ?::timestamp), date_part('{part}', ?::timestamp)"
            (row,) = CON.execute(sql, [moment, begin(moment, grain)]).fetchall()
            assert row[0] == row[1]


pieces = st.sampled_from([f"%{minus}{letter}" for letter in "YymbhBdjaAuUWwGVxXHIMSfpgnzZc%" for minus in ("", "-")])
formats = st.lists(st.one_of(pieces, st.text("Yma-/% .d", max_size=2)), max_size=5).map("".join)


@given(moments, formats, grains, st.timedeltas(timedelta(0), timedelta(days=400)))
@example(datetime(2024, 3, 1), "%Y-%m", "month", timedelta(days=30))
@example(datetime(2024, 3, 1), "%G-%V %x", "day", timedelta(hours=13))
@example(datetime(2024, 3, 1), "%%d", "month", timedelta(days=3))
@example(datetime(2024, 3, 1), "%-d", "month", timedelta(days=3))
def test_formats_that_pass_tell_the_grain_alone(one: datetime, fmt: str, grain: str, later: timedelta) -> None:
    assume(dates.tells(fmt, grain))
    first = begin(one, grain)
    for other in (one, first + later):
        if begin(other, grain) != first:
            continue
        try:
            (row,) = CON.execute(
                "select strftime(?::timestamp, ?), strftime(?::timestamp, ?)", [first, fmt, other, fmt]
            ).fetchall()
        except duckdb.Error:
            return
        assert row[0] == row[1]


def test_formats_that_tell_more_do_not_pass() -> None:
    for fmt in ("%d", "%Y-%m-%d", "%-d", "%H", "%c", "%x", "%j", "%W", "%s"):
        assert not dates.tells(fmt, "month")
    for fmt in ("%H", "%c", "%M", "%f", "%X", "%I%p", "%s"):
        assert not dates.tells(fmt, "day")
    for fmt in ("%Y", "%Y-%m", "%b %y", "100%%", ""):
        assert dates.tells(fmt, "month")


@pytest.mark.parametrize("zone", ["Z", "+00", "+00:00", "-00:00"])
def test_a_moment_of_utc_is_one(zone: str) -> None:
    text = Literal(f"2024-02-01T10:30:00{zone}", "text")
    assert coerced(text, "timestamp", exp.null()).value == datetime(2024, 2, 1, 10, 30)
    assert coerced(Literal(f"2024-02-01 00:00:00{zone}", "text"), "date", exp.null()).value == date(2024, 2, 1)


def test_a_moment_of_another_zone_is_refused() -> None:
    """PostgreSQL leaves the zone out, others count with it: which is meant is not known."""
    with pytest.raises(Refused):
        coerced(Literal("2024-02-01T10:30:00+02:00", "text"), "timestamp", exp.null())
