"""SQL of the class that a value falls into, and of a value's distance from the middle of its bounds.

Classes are found row by row, before anything is grouped: how many different values a column has makes no difference.
"""

from typing import NamedTuple

from kgather._guard.measured.domain import Domain
from kgather._guard.plan import Kind
from kgather._sql_text import literal

FINE = 1 << 20
"""Into how many granules half the span between the bounds of a value is cut."""
INTEGERS = frozenset(f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
_ENDS = -(2**62), 2**62


class Bounds(NamedTuple):
    """Between what a value is cut off."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


class Value(NamedTuple):
    """SQL of a feature's value, and of whether there is no row to read it from. kind: of the value."""

    sql: str
    absent: str
    kind: Kind


class Code(NamedTuple):
    """SQL of the class of a value, a whole number, and of the join that finds it."""

    sql: str
    join: str


def code_of(value: Value, domain: Domain, place: int) -> Code:
    """The class of a value. place: names what is joined."""
    unlisted = len(domain.values) if domain.other_code is None else domain.other_code
    cases = [] if domain.absent_code is None else [f"when {value.absent} then {domain.absent_code}"]
    null = [] if domain.null_code is None else [f"when {value.sql} is null then {domain.null_code}"]
    numbers = _consecutive(domain) if value.kind == "integer" else None
    rest, join = str(unlisted), ""
    if domain.type == "BOOLEAN":
        cases += [*null, f"when {value.sql} then 0"]
        rest = "1"
    elif numbers is not None:  # no subtraction leaves the type: it is of numbers between the ends only
        inside = f"{value.sql} between {numbers[0]} and {numbers[-1]}"
        cases += [f"when {inside} then cast({value.sql} as bigint) - ({numbers[0]})", *null]
    elif domain.type == "VARCHAR" and value.kind == "text" and len({*domain.values}) == len(domain.values) > 0:
        listed = ", ".join(literal(text) for text in domain.values)
        rest = f"coalesce(cast(enum_code(try_cast({value.sql} as enum({listed}))) as bigint), {unlisted})"
        cases += null
    elif domain.values:
        join = f" left join {_listed(domain)} as kg_d{place} on {value.sql} = kg_d{place}.kg_value"
        rest = f"coalesce(kg_d{place}.kg_code, {unlisted})"
        cases += null
    else:
        cases += null
    type_ = "usmallint" if domain.size < 1 << 16 else "uinteger"
    chosen = f"case {' '.join(cases)} else {rest} end" if cases else rest
    return Code(f"cast({chosen} as {type_})", join)


def _consecutive(domain: Domain) -> range | None:
    """The values of a domain that are all whole numbers from one to another."""
    if domain.type not in INTEGERS or not domain.values:
        return None
    low = int(domain.values[0])
    numbers = range(low, low + len(domain.values))
    same = all(text == str(number) for text, number in zip(domain.values, numbers, strict=True))
    return numbers if same and _ENDS[0] < low and numbers[-1] < _ENDS[1] else None


def _listed(domain: Domain) -> str:
    """A relation of the values of a domain and their codes."""
    listed = ", ".join(f"({literal(value)}, {code})" for code, value in enumerate(domain.values))
    cast = f"select cast(t as {domain.type}) as kg_value, c as kg_code from (values {listed}) as kg_listed(t, c)"
    # Two texts may be one value; joined twice, a person would count twice.
    return f"(select kg_value, min(kg_code) as kg_code from ({cast}) group by kg_value)"


def there(value: Value) -> str:
    """SQL of whether there is a number."""
    return f"not {value.absent} and {value.sql} is not null and isfinite(cast({value.sql} as double))"


def fine(value: Value, bounds: Bounds) -> str:
    """SQL of how far a value is from the middle of its bounds, in granules, at most FINE either way."""
    number = f"cast({value.sql} as double)"
    clipped = (
        f"case when {number} > {bounds.high!r} then {bounds.high!r} "
        f"when {number} < {bounds.low!r} then {bounds.low!r} else {number} end"
    )
    scale = FINE / bounds.half if bounds.half > 0 else 0.0
    distance = f"round(({clipped} - {bounds.middle!r}) * {scale!r})"
    # The middle of two bounds that are near each other is rounded.
    cut = f"case when {distance} > {FINE} then {FINE} when {distance} < -{FINE} then -{FINE} else {distance} end"
    return f"cast({cut} as bigint)"
