"""A normal form for what a condition means, so that the same question in other words is the same question.

Found: the order of AND and OR, NOT, the direction of comparisons, the spelling of numbers, constants and what they
make dead, things said twice. Not found: what only the data or arithmetic could tell.
"""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from kgather._guard.plan import NUMERIC, Bound, Exists, Expr, Literal, Lookup, Op, PerUnit, Value
from kgather._guard.render import identifier, text

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED = {">": "<", ">=": "<="}
_TWO_VALUED = {"is null", "is true", "is false", "is not distinct"}
_ARITHMETIC = {"+", "-", "*", "/"}


def canonical(expr: Expr) -> str:
    """The normal form of an expression, as text. Equal texts mean the same on any data."""
    return _text(normal(expr))


def normal(expr: Expr) -> Expr:
    """The normal form of an expression."""
    if isinstance(expr, Exists):
        return replace(expr, condition=_holds(normal(expr.condition)))
    if isinstance(expr, PerUnit):
        condition = _holds(normal(expr.condition))
        argument = expr.argument
        if isinstance(argument, Op):
            argument = Op(argument.name, tuple(normal(arg) for arg in argument.args), argument.kind)
        return PerUnit(expr.function, expr.table, argument, condition, expr.kind, expr.lookups)
    if not isinstance(expr, Op):
        return expr
    if expr.name == "not":
        return _negated(expr.args[0])
    args = tuple(normal(arg) for arg in expr.args)
    if expr.name in ("and", "or"):
        return _connected(expr.name, args)
    if expr.name in _OPPOSITE or expr.name == "is not distinct":
        return _compared(expr.name, args[0], args[1])
    if expr.name in _TWO_VALUED:
        return _tested(expr.name, args[0])
    if expr.name in _ARITHMETIC or expr.name == "neg":
        return _computed(Op(expr.name, args, expr.kind))
    if expr.name == "case":
        return _case(args, expr)
    if expr.name == "coalesce" and isinstance(args[0], Literal) and args[0].value is not None:
        return args[0]
    if expr.name in ("greatest", "least"):
        args = tuple(sorted(set(args), key=_text))
    return Op(expr.name, args, expr.kind)


def _negated(expr: Expr) -> Expr:
    if isinstance(expr, Literal):
        return expr if expr.value is None else Literal(not expr.value, "boolean")
    if isinstance(expr, Op):
        if expr.name == "not":
            return normal(expr.args[0])
        if expr.name in ("and", "or"):
            other = "or" if expr.name == "and" else "and"
            return _connected(other, tuple(_negated(arg) for arg in expr.args))
        if expr.name in _OPPOSITE:
            return normal(Op(_OPPOSITE[expr.name], expr.args))
    inner = normal(expr)
    if isinstance(inner, Literal) or (
        isinstance(inner, Op) and (inner.name in _OPPOSITE or inner.name in ("and", "or"))
    ):
        return _negated(inner)
    return Op("not", (inner,))


def _connected(name: str, args: tuple[Expr, ...]) -> Expr:
    ends = name == "or"  # the value that decides alone
    parts: dict[str, Expr] = {}
    for arg in args:
        for part in arg.args if isinstance(arg, Op) and arg.name == name else (arg,):
            if isinstance(part, Literal) and part.value is not None:
                if part.value is ends:
                    return part
                continue
            parts[_text(part)] = part
    other = "and" if ends else "or"
    for key, part in list(parts.items()):  # a OR (a AND b) is a
        if isinstance(part, Op) and part.name == other and any(_text(arg) in parts for arg in part.args):
            del parts[key]
    if not parts:
        return Literal(not ends, "boolean")
    if len(parts) == 1:
        return next(iter(parts.values()))
    return Op(name, tuple(parts[key] for key in sorted(parts)))


def _compared(name: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Literal) and isinstance(right, Literal):
        folded = _constant(name, left.value, right.value)
        if folded is not None:
            return folded
    if name in _TURNED:
        name, left, right = _TURNED[name], right, left
    if name in ("=", "<>", "is not distinct") and _text(right) < _text(left):
        left, right = right, left
    return Op(name, (left, right))


def _constant(name: str, left: Value, right: Value) -> Literal | None:
    if name == "is not distinct" and (left is None or right is None):
        return Literal(left is right, "boolean")
    if left is None or right is None:
        return Literal(None, "null")
    if isinstance(left, float | Decimal) or isinstance(right, float | Decimal):
        left, right = float(left), float(right)  # type: ignore[arg-type]
    if type(left) is not type(right):
        return None
    holds = {
        "=": left == right,
        "is not distinct": left == right,
        "<>": left != right,
        "<": left < right,  # type: ignore[operator]
        "<=": left <= right,  # type: ignore[operator]
        ">": left > right,  # type: ignore[operator]
        ">=": left >= right,  # type: ignore[operator]
    }
    return Literal(holds[name], "boolean")


def _tested(name: str, arg: Expr) -> Expr:
    if isinstance(arg, Literal):
        wanted = {"is null": None, "is true": True, "is false": False}[name]
        return Literal(arg.value is wanted, "boolean")
    two_valued = isinstance(arg, Exists) or (
        isinstance(arg, Op)
        and (arg.name in _TWO_VALUED or (arg.name == "not" and _tested("is null", arg.args[0]) == _FALSE))
    )
    if two_valued:
        return {"is null": _FALSE, "is true": arg, "is false": _negated(arg)}[name]
    return Op(name, (arg,))


_FALSE = Literal(False, "boolean")


def _computed(expr: Op) -> Expr:
    args = expr.args
    if all(isinstance(arg, Literal) for arg in args):
        values = [arg.value for arg in args if isinstance(arg, Literal)]
        if any(value is None for value in values):
            return Literal(None, "null")
        a, *rest = [float(value) for value in values]  # type: ignore[arg-type]
        if expr.name == "/" and rest[0] == 0:
            return expr
        try:
            result = -a if expr.name == "neg" else _ARITHMETIC_OF[expr.name](a, rest[0])
        except OverflowError:
            return expr
        return Literal(result, "number")
    if expr.name in ("+", "*"):
        return Op(expr.name, tuple(sorted(args, key=_text)), expr.kind)
    return expr


_ARITHMETIC_OF = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _case(args: tuple[Expr, ...], expr: Op) -> Expr:
    whens: list[Expr] = []
    default = args[-1]
    for at in range(0, len(args) - 1, 2):
        condition = _holds(args[at])
        if condition == _FALSE:
            continue
        if condition == Literal(True, "boolean"):
            default = args[at + 1]
            break
        whens += [condition, args[at + 1]]
    return Op("case", (*whens, default), expr.kind) if whens else default


def _holds(expr: Expr) -> Expr:
    """A condition of which only matters where it is true: NULL is as good as FALSE."""
    return _FALSE if isinstance(expr, Literal) and expr.value is None else expr


def _text(expr: Expr) -> str:
    if isinstance(expr, Bound):
        return f"{identifier(expr.table)}.{identifier(expr.column)}"
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Exists):
        return f"exists({identifier(expr.table)}, {_text(expr.condition)}{_lookups(expr)})"
    if isinstance(expr, PerUnit):
        argument = "*" if expr.argument is None else _text(expr.argument)
        return f"{expr.function}({argument}, {identifier(expr.table)}, {_text(expr.condition)}{_lookups(expr)})"
    return f"({expr.name} {' '.join(_text(arg) for arg in expr.args)})"


def _lookups(expr: Exists | PerUnit) -> str:
    by = f", {_equal(expr.by)} True" if isinstance(expr, Exists) and expr.by else ""
    return by + "".join(f", {lookup_text(entry)} {entry.required}" for entry in expr.lookups)


def lookup_text(entry: Lookup) -> str:
    """What names a lookup: the columns that it goes by."""
    return _equal(entry.pairs)


def _equal(pairs: tuple[tuple[Bound, Bound], ...]) -> str:
    return " & ".join(f"{_text(left)}={_text(right)}" for left, right in pairs)


def _literal(expr: Literal) -> str:
    value = expr.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, datetime) and (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0):
        return f"date {value.date().isoformat()}"
    if isinstance(value, date):
        return f"date {value.isoformat()}"
    if expr.kind in NUMERIC and isinstance(value, int):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
