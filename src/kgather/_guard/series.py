"""Series of numbers and dates, as of GENERATE_SERIES: how many elements one has is known before it is made."""

import math
from collections.abc import Mapping
from datetime import date, datetime, time

from sqlglot import exp

from kgather._guard.conditions import constant
from kgather._guard.plan import Literal

LONGEST = 10_000
"""Elements of a series, at most."""
_SECONDS: Mapping[str, float] = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "month": 28 * 86_400,
    "quarter": 90 * 86_400,
    "year": 365 * 86_400,
}
"""How long a step by a unit is at least."""


def is_short(node: exp.GenerateSeries) -> bool:
    """Whether a series is known to have no more elements than one may have."""
    many = length(node)
    return many is not None and many <= LONGEST


def length(node: exp.GenerateSeries) -> int | None:
    """How many elements a series has at most; None where that is not known from its text."""
    ends = [constant(node.args[part]) if node.args.get(part) is not None else None for part in ("start", "end")]
    if ends[0] is None or ends[1] is None:
        return None
    start, end = (_number(one) for one in ends if one is not None)
    step = _step(node.args.get("step"), of_dates=ends[0].kind in ("date", "timestamp"))
    if start is None or end is None or not step:
        return None
    steps = (end - start) / step
    many = math.ceil(steps) if node.args.get("is_end_exclusive") else math.floor(steps) + 1
    return max(many, 0)


def _number(end: Literal) -> float | None:
    """An end as a number: of a date, its seconds."""
    value = end.value
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, time())
        return (moment - datetime(1970, 1, 1)).total_seconds()
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _step(node: exp.Expr | None, *, of_dates: bool) -> float | None:
    """How far it is at least from one element to the next."""
    if node is None:
        return None if of_dates else 1
    node = node.unnest()
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this.unnest(), -1
    if isinstance(node, exp.Interval) == of_dates and isinstance(node, exp.Interval):
        many = constant(node.this) if node.this is not None else None
        unit = node.args.get("unit")
        seconds = _SECONDS.get(unit.name.lower().removesuffix("s")) if unit is not None else None
        try:
            return None if many is None or seconds is None else sign * int(str(many.value)) * seconds
        except ValueError:
            return None
    found = constant(node)
    if of_dates or found is None or not isinstance(found.value, int) or isinstance(found.value, bool):
        return None
    return sign * found.value
