"""A question over the classes of its features: which cells it asks for, and into which group each falls.

Conditions and keys are evaluated on the values of the domains, in an engine that holds nothing else.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._guard.measured.domain import Domain
from kgather._guard.measured.features import PRESENT, SYMBOLS, Asked, symbols
from kgather._guard.measured.model import Axis
from kgather._guard.plan import TRUE, Bound, Expr, Literal, Op, Value
from kgather._guard.render import expression
from kgather._sql_text import literal

_FALSE, _UNKNOWN, _TRUE = 0, 1, 2
_CELLS = 1 << 18
"""How many combinations of values a condition is evaluated on at most."""
_KEPT = 4_096


class TooWide(Exception):  # noqa: N818 - it is handled by another way, not told
    """The features have too many combinations of values."""


class Values(NamedTuple):
    """What an expression is in each cell: codes int64 of `known`, -1 where it cannot be known."""

    codes: NDArray[np.int64]
    known: tuple[Any, ...]
    type: pa.DataType


@dataclass(frozen=True)
class Grid:
    """The cells of a question. wanted bool[*shape]: cells that it asks for. group int64[*shape]: of each cell, its
    place in `keys`, -1 where a key cannot be known."""

    axes: tuple[Axis, ...]
    wanted: NDArray[np.bool_]
    group: NDArray[np.int64]
    keys: tuple[tuple[Any, ...], ...]
    types: tuple[pa.DataType, ...]
    numbers: tuple[NDArray[np.float64], ...] = ()
    """Of each argument, its number in each cell; NaN where it is missing."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.wanted.shape

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The group of each cell, -1 for cells that are in none."""
        return np.where(self.wanted, self.group, -1).ravel()

    def summed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the cells of each group, float64[groups]."""
        places = self.places
        flat = np.broadcast_to(values, self.shape).ravel()
        found = np.bincount(places[places >= 0], weights=flat[places >= 0], minlength=len(self.keys))
        return found.astype(np.float64)

    def summed_each(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same of several values of each cell, float64[*shape, values] to float64[groups, values]."""
        many = values.shape[-1]
        places = self.places
        flat = np.broadcast_to(values, (*self.shape, many)).reshape(-1, many)
        found = np.zeros((len(self.keys), many))
        np.add.at(found, places[places >= 0], flat[places >= 0])
        return found


class Scratch:
    """An engine without any data, in which expressions are evaluated on values of domains."""

    def __init__(self) -> None:
        pa.array([0])  # whatever Arrow loads for its first array is loaded now, not while somebody waits for an answer
        con = duckdb.connect(config={"python_enable_replacements": False, "threads": 1, "temp_directory": ""})
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            con.execute(f"set global {setting}")
        self._con = con
        self._lock = threading.Lock()
        self._known: dict[tuple[Expr, bool, tuple[Domain, ...]], Any] = {}

    def truth(self, condition: Expr, domains: Mapping[int, Domain]) -> NDArray[np.int8]:
        """Of each combination of classes, 0, 1 or 2 for false, unknown and true; int8[*sizes]."""
        found = self._of(condition, domains, condition=True)
        assert isinstance(found, np.ndarray)
        return found

    def values(self, expr: Expr, domains: Mapping[int, Domain]) -> Values:
        """Of each combination of classes, the value."""
        found = self._of(expr, domains, condition=False)
        assert isinstance(found, Values)
        return found

    def _of(self, expr: Expr, domains: Mapping[int, Domain], *, condition: bool) -> Any:
        places = tuple(sorted(symbols(expr)))
        of = tuple(domains[place] for place in places)
        if int(np.prod([domain.size for domain in of], initial=1)) > _CELLS:
            raise TooWide
        known = (expr, condition, of)
        with self._lock:
            if known not in self._known:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                self._known[known] = self._evaluated(expr, places, of, condition=condition)
            return self._known[known]

    def _evaluated(self, expr: Expr, places: tuple[int, ...], of: tuple[Domain, ...], *, condition: bool) -> Any:
        shape = tuple(domain.size for domain in of)
        if condition and isinstance(expr, Op) and expr.name == PRESENT:
            codes = np.arange(shape[0])
            return np.where(codes == of[0].absent_code, _FALSE, _TRUE).astype(np.int8)
        names = {str(place): f"d{at}.kg_value" for at, place in enumerate(places)}
        others = [(at, place) for at, place in enumerate(places) if of[at].other_code is not None]

        def write(one: Expr, left: Sequence[tuple[int, int]]) -> str:
            if condition or not left:
                return expression(one, lambda _: "", lambda bound: names[bound.column])
            (at, place), *rest = left
            if place in symbols(for_others(expr, place, of[at])):
                return write(one, rest)
            other = write(for_others(one, place, of[at]), rest)
            return f"case when d{at}.kg_code = {of[at].other_code} then {other} else {write(one, rest)} end"

        written = write(expr, others)
        if condition:
            written = f"cast(coalesce(cast({written} as tinyint) * 2, 1) as tinyint)"
        from_ = ", ".join(f"({_listed(domain)}) as d{at}" for at, domain in enumerate(of))
        order = ", ".join(f"d{at}.kg_code" for at in range(len(of)))
        sql = f"select {written} as kg_found" + (f" from {from_} order by {order}" if of else "")
        found = self._con.sql(sql).to_arrow_table()["kg_found"].combine_chunks()
        other = np.zeros(shape, dtype=bool)
        for at, domain in enumerate(of):
            if domain.other_code is not None and (
                condition or places[at] in symbols(for_others(expr, places[at], domain))
            ):
                other[(slice(None),) * at + (domain.other_code,)] = True
        if condition:
            truth = found.to_numpy(zero_copy_only=False).astype(np.int8).reshape(shape)
            return np.where(other, _of_others(expr), truth).astype(np.int8) if other.any() else truth
        encoded = found.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64).reshape(shape)
        return Values(np.where(other, -1, codes), tuple(encoded.dictionary.to_pylist()), found.type)


def _listed(domain: Domain) -> str:
    """A relation of all classes of a domain; those without a value are NULL."""
    rows = [f"({literal(value)}, {code})" for code, value in enumerate(domain.values)]
    rows += [f"(null, {code})" for code in range(len(domain.values), domain.size)]
    return (
        f"select cast(t as {domain.type}) as kg_value, c as kg_code from (values {', '.join(rows)}) as kg_listed(t, c)"
    )


def _of_others(condition: Expr) -> int:
    """What a simple condition is for values that are none of the domain's: unequal to any constant but NULL, of which
    nothing is known."""
    if not isinstance(condition, Op):
        return _FALSE
    if condition.name in ("=", "<>") and any(isinstance(arg, Literal) and arg.value is None for arg in condition.args):
        return _UNKNOWN
    if condition.name == "<>":
        return _TRUE
    return _FALSE


def is_guessed(condition: Expr) -> bool:
    """Whether a simple condition cannot be known for values that are none of the domain's."""
    if not isinstance(condition, Op):
        return True
    equal = condition.name in ("=", "<>", "is not distinct")
    plain = all(isinstance(arg, Bound | Literal) for arg in condition.args)
    return not ((equal and plain) or condition.name in ("is null", PRESENT))


def names_another(condition: Expr, domain: Domain) -> bool:
    """Whether a simple condition names a constant that is none of the domain's values: who has it is among the others,
    and cannot be told from them."""
    if not isinstance(condition, Op) or condition.name not in ("=", "<>", "is not distinct"):
        return False
    named = [arg.value for arg in condition.args if isinstance(arg, Literal) and arg.value is not None]
    return any(not _is_among(value, domain) for value in named)


def for_others(expr: Expr, place: int, domain: Domain) -> Expr:
    """An expression over features as it is for a value of one of them that is none of the domain's: unequal to those,
    and not missing. What tells more of it, or names a constant that may be it, is left as it is."""
    if not isinstance(expr, Op):
        return expr
    if symbols(expr) == {place} and expr.name in ("=", "<>", "is null", "is not distinct"):
        of, *constants = sorted(expr.args, key=lambda arg: isinstance(arg, Literal))
        if isinstance(of, Bound) and all(
            isinstance(one, Literal) and one.value is not None and _is_among(one.value, domain) for one in constants
        ):
            return Literal(value=expr.name == "<>", kind="boolean")
    return Op(expr.name, tuple(for_others(arg, place, domain) for arg in expr.args), expr.kind)


def _is_among(value: Value, domain: Domain) -> bool:
    if isinstance(value, int | float | Decimal) and domain.type != "VARCHAR":
        return any(float(text) == float(value) for text in domain.values)
    return str(value) in domain.values


def leaves(expr: Expr) -> Iterator[Expr]:
    """The conditions that AND, OR and NOT put together."""
    if isinstance(expr, Op) and expr.name in ("and", "or", "not"):
        for arg in expr.args:
            yield from leaves(arg)
    else:
        yield expr


def grid(asked: Asked, domains: Sequence[Domain], scratch: Scratch, arguments: Sequence[Expr] = ()) -> Grid:
    """The cells of a question. arguments: whose numbers are wanted in each cell. Raises TooWide."""
    of = dict(enumerate(domains))
    simple = list(dict.fromkeys(leaf for leaf in leaves(asked.condition) if leaf != TRUE))
    truths = {leaf: scratch.truth(leaf, of) for leaf in simple}
    keys = [scratch.values(key, of) for key in asked.keys]
    numbers = [scratch.values(argument, of) for argument in arguments]
    axes = tuple(
        _axis(at, asked, domains[at], simple, truths, [*zip((*asked.keys, *arguments), [*keys, *numbers], strict=True)])
        for at in range(len(asked.features))
    )
    shape = tuple(axis.n for axis in axes)
    if int(np.prod(shape, initial=1)) > _CELLS:
        raise TooWide
    first = [_first(axis) for axis in axes]

    def on_cells(values: NDArray[Any], expr: Expr) -> NDArray[Any]:
        places = sorted(symbols(expr))
        own = values[np.ix_(*(first[place] for place in places))] if places else values
        return own.reshape([axis.n if at in places else 1 for at, axis in enumerate(axes)])

    found = {leaf: on_cells(truths[leaf], leaf) for leaf in simple}
    wanted = np.broadcast_to(_kleene(asked.condition, found) == _TRUE, shape)
    for at in asked.present:
        absent = domains[at].absent_code
        if absent is not None:
            there = np.arange(axes[at].n) != axes[at].classes[absent]
            wanted = wanted & there.reshape([-1 if axis == at else 1 for axis in range(len(axes))])
    group = np.zeros(shape, dtype=np.int64)
    for key, expr in zip(keys, asked.keys, strict=True):
        own = np.broadcast_to(on_cells(key.codes, expr), shape)
        group = np.where((group < 0) | (own < 0), -1, group * len(key.known) + own)
    used, places = np.unique(group[wanted & (group >= 0)], return_inverse=True)
    whole = np.full(shape, -1, dtype=np.int64)
    whole[wanted & (group >= 0)] = places
    listed = [_keys_of(int(code), keys) for code in used]
    if not asked.keys:
        whole, listed = np.zeros(shape, dtype=np.int64), [()]
    of_arguments = tuple(
        np.broadcast_to(on_cells(_as_numbers(value), expr), shape)
        for value, expr in zip(numbers, arguments, strict=True)
    )
    return Grid(axes, wanted, whole, tuple(listed), tuple(key.type for key in keys), of_arguments)


def _axis(
    at: int,
    asked: Asked,
    domain: Domain,
    simple: Sequence[Expr],
    truths: Mapping[Expr, NDArray[np.int8]],
    valued: Sequence[tuple[Expr, Values]],
) -> Axis:
    """The classes of a feature that a question tells apart."""
    told: list[NDArray[np.int64]] = []
    every = np.arange(domain.size)
    known: list[tuple[Expr, NDArray[np.int64]]] = [(leaf, truths[leaf].astype(np.int64)) for leaf in simple]
    for expr, values in [*known, *((expr, value.codes) for expr, value in valued)]:
        places = symbols(expr)
        if places == {at}:
            told.append(values)
        elif at in places:
            told.append(every)
    if at in asked.present and domain.absent_code is not None:
        told.append((every == domain.absent_code).astype(np.int64))
    if domain.other_code is not None:
        told.append((every == domain.other_code).astype(np.int64))
    if not told:
        return Axis(asked.features[at].name, domain, np.zeros(domain.size, dtype=np.int64))
    _, classes = np.unique(np.stack(told), axis=1, return_inverse=True)
    return Axis(asked.features[at].name, domain, classes.ravel().astype(np.int64))


def _first(axis: Axis) -> NDArray[np.int64]:
    """A class of the domain for each of an axis."""
    return np.unique(axis.classes, return_index=True)[1]


def _keys_of(code: int, keys: Sequence[Values]) -> tuple[Any, ...]:
    found = []
    for key in reversed(keys):
        code, place = divmod(code, len(key.known))
        found.append(key.known[place])
    return tuple(reversed(found))


def _as_numbers(values: Values) -> NDArray[np.float64]:
    known = np.array([np.nan if value is None else float(value) for value in values.known] or [np.nan])
    return np.where(values.codes < 0, np.nan, known[values.codes])


def _kleene(expr: Expr, truth: Mapping[Expr, NDArray[np.int8]]) -> NDArray[np.int8]:
    if expr == TRUE:
        return np.asarray(np.int8(_TRUE))
    if isinstance(expr, Op) and expr.name in ("and", "or"):
        return reduce(np.minimum if expr.name == "and" else np.maximum, [_kleene(arg, truth) for arg in expr.args])
    if isinstance(expr, Op) and expr.name == "not":
        return np.int8(_TRUE) - _kleene(expr.args[0], truth)
    return truth[expr]


def symbol_of(place: int, like: Asked) -> Bound:
    """The column that stands for a feature."""
    return Bound(SYMBOLS, str(place), like.features[place].kind)
