"""The types in which aggregates are told: as far as may be those that DuckDB gives them."""

import re
from collections.abc import Sequence
from decimal import Decimal, localcontext

import pyarrow as pa

from kgather._guard.catalog import Catalog
from kgather._guard.plan import Aggregate, Bound, Expr, Literal, Op, PerUnit, children
from kgather._guard.ranked import QUANTILES

_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_LONG = 2**63
_WIDE = 38


def is_whole(function: str) -> bool:
    """Whether an aggregate is a whole number, whatever it is of."""
    return function.startswith("COUNT") or function == "COMBINED_WHOLE"


Known = dict[int, tuple[Expr, int | None]]
"""What is known of expressions, by their ids; it keeps them, so that no other has the id of one."""


def digits_of(expr: Expr, catalog: Catalog, known: Known | None = None) -> int | None:
    """How many digits after the point the values of an expression have, as DuckDB computes with DECIMAL; 0 of whole
    numbers, None of DOUBLE and of what is no number. known: of parts of it; all that is found is added."""
    known = {} if known is None else known
    if id(expr) not in known:
        known[id(expr)] = (expr, _digits_of(expr, catalog, known))
    return known[id(expr)][1]


def _digits_of(expr: Expr, catalog: Catalog, known: Known) -> int | None:
    if expr.kind == "integer" and not isinstance(expr, Literal):
        return 0
    if isinstance(expr, Literal):
        return _of_number(expr.value)
    if isinstance(expr, Bound):
        return _of_column(expr, catalog)
    if isinstance(expr, PerUnit):
        return 0 if expr.argument is None else digits_of(expr.argument, catalog, known)
    if not isinstance(expr, Op):
        return None
    args = expr.args
    if expr.name in ("case", "coalesce"):
        args = args if expr.name == "coalesce" else (*args[1:-1:2], args[-1])
        args = tuple(arg for arg in args if not (isinstance(arg, Literal) and arg.value is None))
    if expr.name not in _EXACT or not args:
        return None
    if expr.name == "round":
        own, wanted = digits_of(args[0], catalog, known), args[1]
        return None if own is None or not isinstance(wanted, Literal) else min(own, max(int(str(wanted.value)), 0))
    found = [digits_of(arg, catalog, known) for arg in args]
    many = [one for one in found if one is not None]
    if len(many) < len(found):
        return None
    made = 0 if expr.name in ("floor", "ceil") else sum(many) if expr.name == "*" else max(many)
    return made if made <= _DIGITS else None


_EXACT = ("+", "-", "*", "neg", "abs", "round", "floor", "ceil", "case", "coalesce", "greatest", "least", "measure")
"""Operations that give a DECIMAL of those."""
_DIGITS = 18


def _of_number(value: object) -> int | None:
    if not isinstance(value, int | float | Decimal):
        return None
    exponent = Decimal(repr(value) if isinstance(value, float) else value).normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) and -exponent <= _DIGITS else None


def _of_column(bound: Bound, catalog: Catalog) -> int | None:
    type_ = _column_type(bound, catalog)
    decimal = _DECIMAL.fullmatch(type_)
    if decimal is not None:
        return int(decimal[2])
    return 0 if bound.kind == "integer" else None


def _column_type(bound: Bound, catalog: Catalog) -> str:
    table = catalog.table(bound.table)
    column = table.column(bound.column) if table is not None else None
    return column.type.upper() if column is not None else ""


def type_of(aggregate: Aggregate, catalog: Catalog) -> pa.DataType:
    """The type of an aggregate that is a number: a sum of DECIMAL is DECIMAL(38), one of whole numbers BIGINT, or of
    HUGEINT and the like as wide as those; a quantile of DECIMAL is of its type; all else is DOUBLE."""
    if is_whole(aggregate.function):
        return pa.int64()
    (argument,) = aggregate.arguments if len(aggregate.arguments) == 1 else (None,)
    if aggregate.function in QUANTILES and isinstance(argument, Bound) and tuple(aggregate.scale[0]) == (1, 0):
        decimal = _DECIMAL.fullmatch(_column_type(argument, catalog))
        return pa.float64() if decimal is None else pa.decimal128(int(decimal[1]), int(decimal[2]))
    digits = _of_sum(aggregate, catalog)
    if digits is None:
        return pa.float64()
    if digits:
        return pa.decimal128(_WIDE, digits)
    return pa.decimal128(_WIDE, 0) if _is_wide(argument, catalog) else pa.int64()


def _of_sum(aggregate: Aggregate, catalog: Catalog) -> int | None:
    """How many digits after the point a sum has; None of what is no sum, or one of DOUBLE."""
    if is_whole(aggregate.function):
        return 0
    if aggregate.parts:
        found = [(_of_number(factor), _of_sum(part, catalog)) for factor, part in aggregate.parts]
        known = [one + other for one, other in found if one is not None and other is not None]
        return max(known) if len(known) == len(found) else None
    if aggregate.function != "SUM" or len(aggregate.arguments) != 1:
        return None
    factor, offset = (_of_number(part) for part in aggregate.scale[0])
    own = digits_of(aggregate.arguments[0], catalog)
    if own is None or factor is None or offset is None:
        return None
    return max(own + factor, offset) if max(own + factor, offset) <= _DIGITS else None


def _is_wide(expr: Expr | None, catalog: Catalog) -> bool:
    """Whether whole numbers are wider than BIGINT."""
    if isinstance(expr, Bound):
        return _column_type(expr, catalog) in ("HUGEINT", "UBIGINT", "UHUGEINT")
    return expr is not None and any(_is_wide(one, catalog) for one in children(expr))


def typed(numbers: Sequence[float | None], type_: pa.DataType) -> pa.Array:
    """Numbers in a type; NULL where it is too small for one."""
    if pa.types.is_floating(type_):
        return pa.array(numbers, type_)
    if pa.types.is_int64(type_):
        return pa.array([None if one is None or abs(one) >= _LONG else round(one) for one in numbers], type_)
    least = Decimal(1).scaleb(-type_.scale)
    most = Decimal(10) ** (type_.precision - type_.scale - (type_.precision == _WIDE))
    exact = [None if one is None else Decimal(repr(one)) for one in numbers]
    with localcontext() as context:
        context.prec = 2 * _WIDE
        rounded = [None if one is None or abs(one) >= most else one.quantize(least) for one in exact]
    return pa.array(rounded, type_)
