"""The classes that the values of a feature fall into: fixed before anything is counted in them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import duckdb

from kgather._guard.catalog import Catalog
from kgather._guard.measured.features import SPAN, Feature
from kgather._guard.measured.source import Source, source_of
from kgather._guard.plan import MEASURE, Bound, Exists, Expr, Kind, Literal, Op, PerUnit
from kgather._sql_text import literal

TYPES: Mapping[Kind, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""DuckDB's types of values, by kind; others are texts."""
_PARTS: Mapping[str, tuple[int, int]] = {
    "month": (1, 12),
    "quarter": (1, 4),
    **dict.fromkeys(("day", "dayofmonth"), (1, 31)),
    **dict.fromkeys(("dayofweek", "dow", "weekday"), (0, 6)),
    "isodow": (1, 7),
    **dict.fromkeys(("week", "weekofyear"), (1, 53)),
}
"""The first and the last number of the parts of a date that everybody knows."""
PUBLIC = 10_000
"""How many values a column of a public table may have, so that all of them are told apart."""


@dataclass(frozen=True)
class Domain:
    """Classes of a feature: one for each value, then one for NULL, one for all other values, and one for records
    without a row to read it from, as far as there may be such.

    values: as DuckDB writes them as text. type: DuckDB's name of their type.
    """

    values: tuple[str, ...]
    type: str
    null: bool
    other: bool
    absent: bool

    @property
    def size(self) -> int:
        """How many classes there are."""
        return len(self.values) + self.null + self.other + self.absent

    @property
    def null_code(self) -> int | None:
        return len(self.values) if self.null else None

    @property
    def other_code(self) -> int | None:
        return len(self.values) + self.null if self.other else None

    @property
    def absent_code(self) -> int | None:
        return len(self.values) + self.null + self.other if self.absent else None

    def as_json(self) -> dict[str, Any]:
        """What the ledger keeps of it."""
        return {
            "values": list(self.values),
            "type": self.type,
            "null": self.null,
            "other": self.other,
            "absent": self.absent,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Domain":
        """What the ledger kept."""
        return cls(tuple(kept["values"]), kept["type"], kept["null"], kept["other"], kept["absent"])


def declared(feature: Feature, catalog: Catalog) -> Domain | None:
    """The classes that types and policy give a feature, None where its values have to be found."""
    expr = feature.expr
    if feature.needs or isinstance(expr, Exists):
        return Domain(("true", "false"), "BOOLEAN", null=False, other=False, absent=False)
    absent = feature.may_be_absent
    if feature.kind == "boolean":
        return Domain(
            ("true", "false"),
            "BOOLEAN",
            null=feature.table is None or isinstance(expr, Bound),
            other=False,
            absent=absent,
        )
    if isinstance(expr, Op) and expr.name == "case":
        results = [*expr.args[1:-1:2], expr.args[-1]]
        if not all(isinstance(result, Literal) for result in results):
            return None
        known = dict.fromkeys(result.value for result in results if isinstance(result, Literal))
        texts = tuple(_text(value) for value in known if value is not None)
        return Domain(texts, TYPES.get(feature.kind, "VARCHAR"), null=True, other=False, absent=absent)
    if isinstance(expr, PerUnit) and expr.function in ("COUNT", "COUNT_DISTINCT"):
        table = catalog.table(expr.table)
        most = table.policy.rows_per_person if table is not None else None
        if most is not None and most < SPAN:
            return Domain(_numbers(0, most), "BIGINT", null=False, other=True, absent=False)
        return None
    if isinstance(expr, Op) and expr.name == "date_part":
        ends = _PARTS.get(str(expr.args[0].value))  # type: ignore[union-attr]
        return None if ends is None else Domain(_numbers(*ends), "BIGINT", null=True, other=False, absent=absent)
    source = source_of(expr, catalog)
    if source is None:
        return None
    if source.values is not None:
        return Domain(tuple(_text(value) for value in source.values), source.type, null=True, other=True, absent=absent)
    if source.bounds is not None and feature.kind == "integer":
        low, high = math.ceil(source.bounds[0]), math.floor(source.bounds[1])
        if low <= high and high - low < SPAN:
            return Domain(_numbers(low, high), "BIGINT", null=True, other=True, absent=absent)
    return None


def check_values(con: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
    """Raise InputError where the policy lists a value that a column cannot have, by its type."""
    for info in catalog.tables.values():
        for name, listed in info.policy.values.items():
            column = info.column(name)
            for value in listed if column is not None else ():
                assert column is not None
                cast = f"select try_cast({literal(_text(value))} as {column.type}) is not null"
                if not con.execute(cast).fetchall()[0][0]:
                    told = f"{value!r} is no value of {name}, whose type is {column.type}"
                    raise catalog.policy.error(("tables", info.name, "values", name), told)


def is_public(feature: Feature, catalog: Catalog) -> bool:
    """Whether the values of a feature are those of a public table, so that all of them may be known."""
    source = source_of(feature.expr, catalog)
    return source is not None and not source.table.protected


def is_computed(feature: Feature) -> bool:
    """Whether values are computed from several columns, to be added up."""
    return isinstance(feature.expr, Op) and feature.expr.name == MEASURE


class OfPublic(Protocol):
    """What may be known of the columns of public tables."""

    def domain(self, feature: Feature) -> "Domain | None":
        """The classes of a column: all of its values. None of other features, and where there are too many."""

    def ends(self, source: Source) -> tuple[float, float] | None:
        """The smallest and the largest number in a column; None where there is none."""


def _root(number: float) -> float:
    return math.sqrt(max(number, 0.0))


def _exponential(number: float) -> float:
    return math.exp(number) if number < _EXPONENT else math.inf


_EXPONENT = 100.0
_RISING: Mapping[str, Callable[[float], float]] = {
    "sqrt": _root,
    "exp": _exponential,
    "trunc": lambda number: float(math.trunc(number)),
    "ln": lambda number: math.log(number) if number > 0 else -math.inf,
    "log2": lambda number: math.log2(number) if number > 0 else -math.inf,
    "log10": lambda number: math.log10(number) if number > 0 else -math.inf,
}
"""Functions that are greater where their argument is."""


def _power(low: float, high: float, by: float) -> tuple[float, float] | None:
    """Between what a power lies; None where it is not known to be defined, or too large."""
    if (by != int(by) and low < 0) or (by < 0 and low <= 0):
        return None
    try:
        ends = [math.pow(low, by), math.pow(high, by)]
    except OverflowError:
        return None
    even = low < 0 < high and by % 2 == 0
    return (0.0 if even else min(ends)), max(ends)


def limits_of(expr: Expr, catalog: Catalog, public: OfPublic | None = None) -> tuple[float, float] | None:
    """Between what an expression lies, as the bounds of its columns in the policy tell, or public tables; None where
    they do not."""
    if isinstance(expr, Literal):
        number = expr.value
        if isinstance(number, int | float | Decimal) and not isinstance(number, bool):
            return float(number), float(number)
        return None
    source = source_of(expr, catalog)
    if source is not None:
        if not source.table.protected:
            return None if public is None else public.ends(source)
        return None if source.bounds is None else (float(source.bounds[0]), float(source.bounds[1]))
    if isinstance(expr, PerUnit) and expr.function in ("MIN", "MAX") and expr.argument is not None:
        return limits_of(expr.argument, catalog)
    if not isinstance(expr, Op):
        return None
    args = expr.args
    if expr.name == "case":
        args = tuple(arg for arg in (*args[1:-1:2], args[-1]) if arg != Literal(None, "null"))
    found = [limits_of(arg, catalog, public) for arg in args]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    (low, high), *rest = known
    if expr.name in (MEASURE, "neg", "abs", "floor", "ceil"):
        return {
            "neg": (-high, -low),
            "abs": (0.0 if low < 0 < high else min(abs(low), abs(high)), max(abs(low), abs(high))),
            "floor": (math.floor(low), math.floor(high)),
            "ceil": (math.ceil(low), math.ceil(high)),
        }.get(expr.name, (low, high))
    if expr.name in _RISING:
        least, most = (_RISING[expr.name](end) for end in (low, high))
        return (least, most) if math.isfinite(least) and math.isfinite(most) else None
    if expr.name == "round" and isinstance(expr.args[1], Literal):
        return round(low, int(str(expr.args[1].value))), round(high, int(str(expr.args[1].value)))
    if expr.name == "pow":
        return _power(low, high, rest[0][0])
    if expr.name in ("case", "coalesce", "greatest", "least"):
        return min(one for one, _ in known), max(one for _, one in known)
    if expr.name in ("+", "-", "*"):
        ((a, b),) = rest
        ends = {
            "+": (low + a, high + b),
            "-": (low - b, high - a),
            "*": (min(low * a, low * b, high * a, high * b), max(low * a, low * b, high * a, high * b)),
        }[expr.name]
        return ends if all(math.isfinite(end) for end in ends) else None
    if expr.name == "/" and rest[0][0] == rest[0][1] != 0:
        ends = low / rest[0][0], high / rest[0][0]
        return min(ends), max(ends)
    return None


def is_measure_of_numbers(feature: Feature, catalog: Catalog) -> bool:
    """Whether values are numbers so fine that single ones are not worth telling apart in conditions."""
    expr = feature.expr
    if isinstance(expr, Op) or feature.kind not in ("number", "timestamp", "date"):
        return False
    source = source_of(expr, catalog)
    return source is None or source.values is None


def _numbers(low: int, high: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(low, high + 1))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
