"""Options of a solver: keyword arguments checked against a frozen dataclass."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from kgather._errors import InputError

Options = TypeVar("Options")


def make_options(kind: type[Options], given: Mapping[str, Any], owner: str) -> Options:
    """An instance of the dataclass `kind` from keyword arguments.

    Raises InputError for a name that `kind` does not have, naming it and the names that exist; the dataclass
    checks the values itself (in `__post_init__`, with the helpers below).
    """
    allowed = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in allowed:
            told = f"its options are: {', '.join(allowed)}" if allowed else "it has none"
            msg = f"{owner} has no option '{name}'; {told}."
            raise InputError(msg)
    return kind(**given)


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """The value as int if it is a whole number in low..high (both included); raises InputError otherwise."""
    # numpy's integers are welcome, booleans are not meant as numbers
    if isinstance(value, bool) or not hasattr(value, "__index__") or getattr(value, "ndim", 0) != 0:
        msg = f"{name} must be a whole number, not {value!r}."
        raise InputError(msg)
    number = int(value.__index__())
    if number < low or (high is not None and number > high):
        bound = f"at least {low}" if high is None else f"between {low} and {high}"
        msg = f"{name} must be {bound}, not {number}."
        raise InputError(msg)
    return number


def seed_number(value: object) -> int:
    """A seed: any whole number of 64 bits, with or without sign; raises InputError otherwise."""
    return whole("seed", value, -(1 << 63), (1 << 64) - 1)


def real(name: str, value: object, low: float, high: float = float("inf"), *, above: bool = False) -> float:
    """The value as float if low <= value <= high and it is finite (low < value if `above`); else
    InputError.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, (bool, str)) or number != number or abs(number) == float("inf"):
        msg = f"{name} must be a finite number, not {value!r}."
        raise InputError(msg)
    if number < low or number > high or (above and number == low):
        bound = f"more than {low:g}" if above else f"at least {low:g}"
        if high != float("inf"):
            bound += f" and at most {high:g}"
        msg = f"{name} must be {bound}, not {number:g}."
        raise InputError(msg)
    return number


def flag(name: str, value: object) -> bool:
    """The value if it is True or False; raises InputError otherwise."""
    if not isinstance(value, bool):
        msg = f"{name} must be true or false, not {value!r}."
        raise InputError(msg)
    return value
