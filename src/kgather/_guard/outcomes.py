"""What a question means for each row, put together from the meanings of its simplest conditions.

False, unknown and true are 0, 1 and 2: then AND is the least, OR the greatest, and NOT the distance from 2 (Kleene).

Columns are held as codes of their distinct values. A condition or key on one column is asked of the distinct values
only, whatever the number of rows; one on several columns, or on other rows of the unit, is asked of every row once and
kept as codes, too.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from kgather._errors import InputError
from kgather._guard.plan import TRUE, Bound, Exists, Expr, Op, PerUnit, Question, Universe
from kgather._guard.render import expression, relation

_FALSE, _UNKNOWN, _TRUE = 0, 1, 2
_AS_IT_IS = np.array([_FALSE, _UNKNOWN, _TRUE], dtype=np.int8)
_KEPT_BYTES = 1 << 30
_BLOCK = 1 << 16  # rows at a time: what is in between stays in the processor's cache
_FEW = 100  # groups that fit into a byte, with what else an outcome can be
_AT_ONCE = 200  # conditions on one column asked of its values in one statement
_TABLE = 1 << 24  # combinations of keys that are told apart by a table instead of by sorting
_VALUE = "kg_value"
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Outcome:
    """What a question means for each row: 0 not asked for, 1 unknown, 2 and more the group keys[outcome - 2].

    outcome int8[n], or int32[n] of many groups.
    """

    outcome: NDArray[np.int8 | np.int32]
    keys: tuple[tuple[Any, ...], ...]
    key_types: tuple[pa.DataType, ...]

    @property
    def nbytes(self) -> int:
        return int(self.outcome.nbytes)


@dataclass(frozen=True)
class _Coded:
    """An expression of each row as a code, uint8[n], uint16[n] or int32[n]. values: the relation that has the distinct
    values by their codes, or None where codes are truth values."""

    codes: NDArray[np.uint8 | np.uint16 | np.int32]
    values: str | None
    count: int

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes)


class _Leaf(NamedTuple):
    """A simple condition: a code of each row, and the truth of each code, int8[c]."""

    codes: NDArray[np.uint8 | np.uint16 | np.int32]
    truth: NDArray[np.int8]


class _KeyValues(NamedTuple):
    """A key: a code of each row, and what the codes stand for."""

    codes: NDArray[np.uint8 | np.uint16 | np.int32]
    values: pa.Array


@dataclass
class Outcomes:
    """con: holds the tables. unit: the privacy unit's column of a table. row: how a universe's row number is written.
    size: how many rows a universe has."""

    con: duckdb.DuckDBPyConnection
    unit: Callable[[str], str]
    row: Callable[[Universe], str]
    size: Callable[[Universe], int]
    kept: "OrderedDict[tuple[Universe, object], _Coded | Outcome]" = field(default_factory=OrderedDict)
    used: int = 0
    relations: int = 0

    def of(self, question: Question) -> Outcome:
        """Ask what a question means. Raises InputError where a table looked up has a key twice.

        O(n) for the question, and for each column, or condition on several of them, not asked about before.
        """
        name = (question.universe, (question.condition, question.keys))
        found = self._recalled(name)
        if found is None:
            found = self._found(question)
            self._keep(name, found)
        assert isinstance(found, Outcome)
        return found

    def _found(self, question: Question) -> Outcome:
        universe = question.universe
        # Rows without a partner in a joined table are not asked for, whatever the condition.
        truth = self._truth(universe, Op("and", (question.condition, TRUE)))
        if not question.keys:
            return Outcome(truth, ((),), ())
        rows = np.flatnonzero(truth == _TRUE)
        keys = [self._key(universe, key) for key in question.keys]
        types = tuple(key.values.type for key in keys)
        own = [np.ascontiguousarray(key.codes[rows]) for key in keys]
        if not len(rows):
            return Outcome(np.where(truth == _TRUE, np.int8(_FALSE), truth), (), types)
        group, first = _grouped(own)
        outcome = truth if len(first) <= _FEW else truth.astype(np.int32)
        outcome[rows] = group + 2
        columns = [key.values.take(pa.array(codes[first])).to_pylist() for codes, key in zip(own, keys, strict=True)]
        return Outcome(outcome, tuple(zip(*columns, strict=True)), types)

    def _truth(self, universe: Universe, condition: Expr) -> NDArray[np.int8]:
        """0, 1 or 2 for each row, int8[n]."""
        leaves = self._leaves(universe, condition)
        n = self.size(universe)
        found = np.empty(n, dtype=np.int8)

        def fill(start: int) -> None:
            part = slice(start, min(start + _BLOCK, n))
            found[part] = _kleene(condition, {leaf: look_up(of.truth, of.codes[part]) for leaf, of in leaves.items()})

        if n <= _BLOCK:
            fill(0)
        else:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(fill, range(0, n, _BLOCK)))
        return found

    def _leaves(self, universe: Universe, condition: Expr) -> dict[Expr, _Leaf]:
        """The simple conditions in one."""
        found: dict[Expr, _Leaf] = {}
        of_column: dict[Bound, list[Expr]] = {}
        for leaf in _simple(condition):
            column = _only_column(leaf)
            if column is None:
                found[leaf] = _Leaf(self._asked_of_rows(universe, leaf).codes, _AS_IT_IS)
            else:
                of_column.setdefault(column, []).append(leaf)
        for column, leaves in of_column.items():
            coded = self._coded(universe, column)
            for some in (leaves[at : at + _AT_ONCE] for at in range(0, len(leaves), _AT_ONCE)):
                asked = [_three_valued(expression(leaf, self.unit, lambda _: _VALUE)) for leaf in some]
                truth = self._asked_of_values(coded, asked)
                found |= {leaf: _Leaf(coded.codes, _table(of, np.int8)) for leaf, of in zip(some, truth, strict=True)}
        return found

    def _key(self, universe: Universe, key: Expr) -> _KeyValues:
        """What a key is for each row."""
        column = _only_column(key)
        coded = self._coded(universe, key if column is None else column)
        asked = _VALUE if column is None else expression(key, self.unit, lambda _: _VALUE)
        encoded = self._asked_of_values(coded, [asked])[0].dictionary_encode(null_encoding="encode")
        indices = _table(encoded.indices, np.int32)
        as_they_are = np.array_equal(indices, np.arange(len(indices)))
        codes = coded.codes if as_they_are else look_up(indices, coded.codes)
        return _KeyValues(codes, encoded.dictionary)

    def _asked_of_values(self, coded: _Coded, values: Sequence[str]) -> list[pa.Array]:
        asked = ", ".join(f"{value} as kg_{at}" for at, value in enumerate(values))
        table = self.con.sql(f"select {asked} from {coded.values} order by kg_code").to_arrow_table()
        return [column.combine_chunks() for column in table.columns]

    def _coded(self, universe: Universe, expr: Expr) -> _Coded:
        """The codes of an expression's values, in the order of these, which stay in a relation of their own."""
        found = self._recalled((universe, expr))
        if found is None:
            self.relations += 1
            values = f"kg_values_{self.relations}"
            value = expression(expr, self.unit)
            self.con.execute(
                f"create or replace table {values} as "
                f"select row_number() over (order by {_VALUE}) - 1 as kg_code, {_VALUE} "
                f"from (select distinct {value} as {_VALUE} {relation(universe, self.unit)})"
            )
            count = self.con.sql(f"select count(*) from {values}").fetchall()[0][0]
            kind: type[np.uint8 | np.uint16 | np.int32]
            kind = np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.int32
            codes = np.zeros(self.size(universe), dtype=kind)
            at, table = self._asked(universe, value, values)
            codes[at] = table[_VALUE].to_numpy()
            found = _Coded(codes, values, count)
            self._keep((universe, expr), found)
        assert isinstance(found, _Coded)
        return found

    def _asked_of_rows(self, universe: Universe, expr: Expr) -> _Coded:
        """The truth of a condition as codes; rows that the universe's joins leave out are 0."""
        name = (universe, (expr, "truth"))
        found = self._recalled(name)
        if found is None:
            at, table = self._asked(universe, _three_valued(expression(expr, self.unit)))
            codes = np.zeros(self.size(universe), dtype=np.uint8)
            codes[at] = table[_VALUE].to_numpy()
            found = _Coded(codes, None, _TRUE + 1)
            self._keep(name, found)
        assert isinstance(found, _Coded)
        return found

    def _asked(self, universe: Universe, value: str, values: str | None = None) -> tuple[NDArray[np.int32], pa.Table]:
        """The numbers of the rows that a universe's joins leave, and a value of each, or its code among `values`."""
        asked = (
            f"select cast({self.row(universe)} as integer) as kg_at, {value} as {_VALUE} "
            f"{relation(universe, self.unit)}"
        )
        if values is not None:
            asked = (
                f"select kg_at, cast(kg_code as integer) as {_VALUE} from ({asked}) as asked "
                f"join {values} as known on asked.{_VALUE} is not distinct from known.{_VALUE}"
            )
        table = self.con.sql(asked).to_arrow_table()
        at = table["kg_at"].to_numpy()
        n = self.size(universe)
        if len(at) > n or (len(at) and np.bincount(at, minlength=n).max() > 1):
            msg = "a table that the policy joins N:1 has a key more than once. Correct joins in the policy."
            raise InputError(msg)
        return at, table

    def _recalled(self, name: tuple[Universe, object]) -> _Coded | Outcome | None:
        if name in self.kept:
            self.kept.move_to_end(name)
        return self.kept.get(name)

    def _keep(self, name: tuple[Universe, object], found: _Coded | Outcome) -> None:
        """Keep what was asked, as long as there is room; what was not asked for the longest time goes first."""
        self.kept[name] = found
        self.used += found.nbytes
        while self.used > _KEPT_BYTES and len(self.kept) > 1:
            _, gone = self.kept.popitem(last=False)
            self.used -= gone.nbytes
            if isinstance(gone, _Coded) and gone.values is not None:
                self.con.execute(f"drop table {gone.values}")


def _three_valued(condition: str) -> str:
    """SQL that gives 0, 1 or 2 where a condition is false, unknown or true."""
    return f"cast(coalesce(cast({condition} as tinyint) * 2, 1) as tinyint)"


def _simple(expr: Expr) -> Iterator[Expr]:
    """The conditions that AND, OR and NOT put together."""
    if isinstance(expr, Op) and expr.name in ("and", "or", "not"):
        for arg in expr.args:
            yield from _simple(arg)
    else:
        yield expr


def _kleene(expr: Expr, truth: Mapping[Expr, NDArray[np.int8]]) -> NDArray[np.int8]:
    if isinstance(expr, Op) and expr.name in ("and", "or"):
        parts = [_kleene(arg, truth) for arg in expr.args]
        return reduce(np.minimum if expr.name == "and" else np.maximum, parts)
    if isinstance(expr, Op) and expr.name == "not":
        return np.int8(_TRUE) - _kleene(expr.args[0], truth)
    return truth[expr]


def _table(entries: pa.Array, kind: type[Scalar]) -> NDArray[Scalar]:
    """What codes stand for; where the joins leave no row, no code does, but rows have one."""
    return np.resize(entries.to_numpy(zero_copy_only=False).astype(kind), max(len(entries), 1))


@njit(nogil=True, cache=True)
def look_up(table: NDArray[np.int8 | np.int32], codes: NDArray[np.uint8 | np.uint16 | np.int32]) -> NDArray[Any]:
    """The entry of each code, as table[codes], without codes as wide as addresses."""
    found = np.empty(len(codes), dtype=table.dtype)
    for row in range(len(codes)):
        found[row] = table[codes[row]]
    return found


def _only_column(expr: Expr) -> Bound | None:
    """The column that an expression is a function of, if it is one of the row's own or unit's own only."""
    found: set[Bound] = set()
    todo = [expr]
    while todo:
        one = todo.pop()
        if isinstance(one, Exists | PerUnit):
            return None
        if isinstance(one, Bound):
            found.add(one)
        elif isinstance(one, Op):
            todo += one.args
    return found.pop() if len(found) == 1 else None


def _grouped(keys: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers of distinct rows of keys, int32, in the order of their first rows; and these."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    span = 1
    for key in keys:
        size = int(key.max(initial=0)) + 1
        codes = codes * size + key
        span *= size
        if span > _TABLE:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            span = int(codes.max(initial=0)) + 1
    first = np.full(span, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = np.flatnonzero(first < len(codes))
    order = used[np.argsort(first[used])]
    rank = np.zeros(span, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[codes], first[order]
