"""What a question means for each row, put together from the meanings of its simplest conditions, which are kept.

False, unknown and true are 0, 1 and 2: then AND is the least, OR the greatest, and NOT the distance from 2 (Kleene).
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from kgather.errors import InputError
from kgather.guard.plan import TRUE, Expr, Op, Question, Universe
from kgather.guard.render import expression, relation

_FALSE, _UNKNOWN, _TRUE = 0, 1, 2
_KEPT_BYTES = 512 << 20


@dataclass(frozen=True)
class Outcome:
    """What a question means for each row: 0 not asked for, 1 unknown, 2 and more the group keys[outcome - 2]."""

    outcome: np.ndarray
    keys: tuple[tuple[Any, ...], ...]
    key_types: tuple[pa.DataType, ...]

    @property
    def group(self) -> np.ndarray:
        """The same without a difference of false and unknown: 0, or 1 + the number of the group, int32[n]."""
        return np.maximum(self.outcome - 1, 0)


@dataclass(frozen=True)
class _Coded:
    """A key of each row as a code, int32[n], and what the codes stand for."""

    codes: np.ndarray
    values: pa.Array


@dataclass
class Outcomes:
    """con: holds the tables. unit: the privacy unit's column of a table. row: how a universe's row number is written.
    size: how many rows a universe has."""

    con: duckdb.DuckDBPyConnection
    unit: Callable[[str], str]
    row: Callable[[Universe], str]
    size: Callable[[Universe], int]
    kept: "OrderedDict[tuple[Universe, Expr, str], np.ndarray | _Coded]" = field(default_factory=OrderedDict)

    def of(self, question: Question) -> Outcome:
        """Ask what a question means. Raises InputError where a table looked up has a key twice.

        O(n) for each condition in it that was not asked about before, and for the question itself.
        """
        universe = question.universe
        # Rows without a partner in a joined table are not asked for, whatever the condition.
        truth = np.minimum(self._truth(universe, question.condition), self._truth(universe, TRUE))
        if not question.keys:
            return Outcome(truth.astype(np.int32), ((),), ())
        coded = [self._coded(universe, key) for key in question.keys]
        types = tuple(key.values.type for key in coded)
        rows = np.flatnonzero(truth == _TRUE)
        outcome = np.where(truth == _TRUE, _FALSE, truth).astype(np.int32)
        if not len(rows):
            return Outcome(outcome, (), types)
        group, first = _grouped([key.codes[rows] for key in coded])
        outcome[rows] = group + 2
        columns = [key.values.take(pa.array(key.codes[rows[first]])).to_pylist() for key in coded]
        return Outcome(outcome, tuple(zip(*columns, strict=True)), types)

    def _truth(self, universe: Universe, expr: Expr) -> np.ndarray:
        """0, 1 or 2 for each row, int8[n]; rows that the universe's joins leave out are 0 in simple conditions."""
        if isinstance(expr, Op) and expr.name in ("and", "or"):
            parts = [self._truth(universe, arg) for arg in expr.args]
            return np.minimum.reduce(parts) if expr.name == "and" else np.maximum.reduce(parts)
        if isinstance(expr, Op) and expr.name == "not":
            return 2 - self._truth(universe, expr.args[0])
        found = self._recalled((universe, expr, "truth"))
        if found is None:
            asked = f"cast(coalesce(cast({expression(expr, self.unit)} as tinyint) * 2, 1) as tinyint)"
            at, table = self._asked(universe, asked)
            found = np.zeros(self.size(universe), dtype=np.int8)
            found[at] = table["kg_value"].to_numpy()
            self._keep((universe, expr, "truth"), found, found.nbytes)
        assert isinstance(found, np.ndarray)
        return found

    def _coded(self, universe: Universe, key: Expr) -> _Coded:
        found = self._recalled((universe, key, "key"))
        if found is None:
            at, table = self._asked(universe, expression(key, self.unit))
            encoded = table["kg_value"].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = np.zeros(self.size(universe), dtype=np.int32)
            codes[at] = encoded.indices.to_numpy(zero_copy_only=False)
            found = _Coded(codes, encoded.dictionary)
            self._keep((universe, key, "key"), found, codes.nbytes + encoded.dictionary.nbytes)
        assert isinstance(found, _Coded)
        return found

    def _asked(self, universe: Universe, value: str) -> tuple[np.ndarray, pa.Table]:
        """The numbers of the rows that a universe's joins leave, and a value of each."""
        table = self.con.sql(
            f"select cast({self.row(universe)} as integer) as kg_at, {value} as kg_value "
            f"{relation(universe, self.unit)}"
        ).to_arrow_table()
        at = table["kg_at"].to_numpy()
        n = self.size(universe)
        if len(at) > n or (len(at) and np.bincount(at, minlength=n).max() > 1):
            msg = "a table that the policy joins N:1 has a key more than once. Correct joins in the policy."
            raise InputError(msg)
        return at, table

    def _recalled(self, name: tuple[Universe, Expr, str]) -> np.ndarray | _Coded | None:
        if name in self.kept:
            self.kept.move_to_end(name)
        return self.kept.get(name)

    def _keep(self, name: tuple[Universe, Expr, str], found: np.ndarray | _Coded, size: int) -> None:
        """Keep what was asked, as long as there is room; what was not asked for the longest time goes first."""
        self.kept[name] = found
        used = sum(each.nbytes if isinstance(each, np.ndarray) else each.codes.nbytes for each in self.kept.values())
        while used > _KEPT_BYTES and len(self.kept) > 1 and size:
            _, gone = self.kept.popitem(last=False)
            used -= gone.nbytes if isinstance(gone, np.ndarray) else gone.codes.nbytes


def _grouped(keys: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of distinct rows of keys, int32, in the order of their first rows; and these."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        codes = codes * (int(key.max(initial=0)) + 1) + key
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order]
