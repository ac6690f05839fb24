"""Dates of a question, cut to no more than it tells of them.

A date that the policy shows by the day is a feature of many days, few of which may have people enough to be shown. A
question that only asks for years, or for what lies before the first day of a month, is answered from years, or months.
"""

from collections.abc import Iterator, Sequence
from datetime import date

from kgather._guard.dates import PARTS, begins, is_coarse, tells
from kgather._guard.plan import Expr, Literal, Op
from kgather._guard.policy import TRUNCATIONS

_CUTS = ("year", "month")
"""What dates are cut to instead of their grain, the coarsest first. They are few, so that questions share them."""
_TURNED = {"<": ">", ">=": "<=", ">": "<", "<=": ">="}
_NULL = ("is null", "is not null")


def coarser(condition: Expr, keys: Sequence[Expr]) -> tuple[Expr, tuple[Expr, ...]]:
    """The condition and the keys of a question, that mean the same, with each date cut as far as they allow."""
    exprs = (condition, *keys)
    found = dict.fromkeys(base for expr in exprs for base in _dates(expr))
    changed = {}
    for base in found:
        needed = {cut for expr in exprs for cut in _needed(expr, base)}
        finest = max((_place(cut) for cut in needed), default=0)
        grain = str(base.args[0].value)  # type: ignore[union-attr]
        if finest < len(_CUTS) and is_coarse(_CUTS[finest], grain) and _CUTS[finest] != grain:
            changed[base] = Op(base.name, (Literal(_CUTS[finest], "text"), *base.args[1:]), base.kind)
    if not changed:
        return condition, tuple(keys)
    return _replaced(condition, changed), tuple(_replaced(key, changed) for key in keys)


def _place(cut: str | None) -> int:
    return _CUTS.index(cut) if cut is not None else len(_CUTS)


def _dates(expr: Expr) -> Iterator[Op]:
    if isinstance(expr, Op):
        if expr.name == "date_trunc" and isinstance(expr.args[0], Literal) and expr.args[0].value in TRUNCATIONS:
            yield expr
        for arg in expr.args:
            yield from _dates(arg)


def _needed(expr: Expr, base: Op) -> Iterator[str | None]:
    """What the uses of a date in an expression need: a cut, or None for its grain."""
    if expr == base:
        yield None
        return
    if not isinstance(expr, Op):
        return
    if base in expr.args:
        yield from _of_use(expr, base)
    for arg in expr.args:
        if arg != base:
            yield from _needed(arg, base)


def _of_use(use: Op, base: Op) -> Iterator[str | None]:
    if use.name in _NULL and len(use.args) == 1:
        return
    with_ = next((arg for arg in use.args if isinstance(arg, Literal)), None)
    if with_ is None or len(use.args) != 2:
        yield None
        return
    name = use.name if use.args[0] == base else _TURNED.get(use.name, use.name)
    value = with_.value
    yield next((cut for cut in _CUTS if _is_enough(use.name, name, value, cut)), None)


def _is_enough(use: str, compared: str, value: object, cut: str) -> bool:
    """Whether a use of a date with a constant tells no more of it than a cut. compared: the comparison, with the date
    first."""
    if use == "date_part":
        return str(value) in (cut, *PARTS[cut])
    if use == "strftime":
        return tells(str(value), cut)
    return compared in ("<", ">=") and isinstance(value, date) and begins(value, cut)


def _replaced(expr: Expr, changed: dict[Op, Op]) -> Expr:
    if not isinstance(expr, Op):
        return expr
    if expr in changed:
        return changed[expr]
    return Op(expr.name, tuple(_replaced(arg, changed) for arg in expr.args), expr.kind)
