"""Sums over all blocks, of which no single machine has all: the same to the last digit however the blocks lie.

Each block gives arrays of numbers under keys, and rows of a table of whole numbers (one for each item). Whole numbers
are added in any order, so those of all blocks of a task are added before anything is sent. Other numbers are added in
the order of the blocks, on an executor. Only what is made of a sum goes to the driver.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgather._spark.blocks import batch_of, numbers, rows_of, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rows:
    """Some rows of a table. places int64[i] ascending, each once; numbers int64[i, width]."""

    places: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def cut(self, stretch: int) -> "Iterator[tuple[int, Rows]]":
        """Those of each stretch of the table, with the number of the stretch."""
        if not len(self.places):
            return
        of_row = self.places // stretch
        edges = np.flatnonzero(np.diff(of_row)) + 1
        for lo, hi in pairwise([0, *edges, len(self.places)]):
            yield int(of_row[lo]), Rows(self.places[lo:hi], self.numbers[lo:hi])

    @classmethod
    def added(cls, some: "Sequence[Rows]") -> "Rows":
        """The sum of several."""
        if len(some) == 1:
            return some[0]
        places = np.unique(np.concatenate([each.places for each in some]))
        total = np.zeros((len(places), some[0].numbers.shape[1]), dtype=np.int64)
        for each in some:
            total[np.searchsorted(places, each.places)] += each.numbers
        return cls(places, total)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.places.nbytes + self.numbers.nbytes)


Term = tuple[int, NDArray[Any]] | Rows
Terms = Callable[[dict[str, Any]], Iterable[Term]]
Finish = Callable[[Rows], NDArray[Any]]

_TERMS = "table boolean, key int, block int, whole boolean, places binary, numbers binary"
_SUMS = "table boolean, key int, places binary, numbers binary"
_HELD_BYTES = 64 << 20  # of sums that a task holds before it sends them


def summed(blocks: "DataFrame", terms: Terms) -> dict[int, bytes]:
    """The sum of each key, as bytes of the type of its terms.

    terms: of one block, given as a row, its keys and what it adds to each, flat: float64, or int64 for whole numbers.
    """
    return _summed(blocks, terms, 1, None)[0]


def summed_with_table(
    blocks: "DataFrame", terms: Terms, stretch: int, finish: Finish
) -> tuple[dict[int, bytes], list[tuple[NDArray[np.int64], bytes]]]:
    """As `summed`, and of a table what `finish` makes of the sums of its rows, with their places int64[i].

    terms: gives `Rows` of the table, too. stretch: rows of the table that are summed together. Rows to which no block
    adds anything are left out.
    """
    return _summed(blocks, terms, stretch, finish)


def _summed(
    blocks: "DataFrame", terms: Terms, stretch: int, finish: Finish | None
) -> tuple[dict[int, bytes], list[tuple[NDArray[np.int64], bytes]]]:
    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = _Held()
        for block in rows_of(batches):
            for term in terms(block):
                if isinstance(term, Rows):
                    for key, rows in term.cut(stretch):
                        held.put_rows(key, rows)
                elif term[1].dtype == np.int64:
                    held.put(*term)
                else:
                    yield _term(term[0], term[1], block["block"])
            if held.nbytes > _HELD_BYTES:
                yield from held.sent()
        yield from held.sent()

    def add(terms: pa.Table) -> pa.Table:
        terms = terms.sort_by("block")
        row = {"table": terms["table"][0].as_py(), "key": terms["key"][0].as_py(), "places": b""}
        if row["table"]:
            assert finish is not None
            total = Rows.added([_rows(each) for each in terms.select(["places", "numbers"]).to_pylist()])
            row |= {"places": total.places.tobytes(), "numbers": finish(total).tobytes()}
        else:
            kind = np.int64 if terms["whole"][0].as_py() else np.float64
            flat = numbers(terms["numbers"][0].as_py(), kind)
            for at in range(1, len(terms)):
                flat += np.frombuffer(terms["numbers"][at].as_py(), dtype=kind)
            row |= {"numbers": flat.tobytes()}
        settle()
        return pa.Table.from_batches([batch_of([row], _SUMS)])

    found = blocks.mapInArrow(give, _TERMS).groupBy("table", "key").applyInArrow(add, _SUMS).collect()
    flat = {row["key"]: bytes(row["numbers"]) for row in found if not row["table"]}
    table = [(numbers(bytes(row["places"]), np.int64), bytes(row["numbers"])) for row in found if row["table"]]
    return flat, table


@dataclass
class _Held:
    """Sums of whole numbers that a task has not sent yet."""

    nbytes: int = 0
    flat: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    rows: dict[int, list[Rows]] = field(default_factory=dict)

    def put(self, key: int, added: NDArray[np.int64]) -> None:
        if key in self.flat:
            self.flat[key] += added
        else:
            self.flat[key] = added
            self.nbytes += added.nbytes

    def put_rows(self, key: int, rows: Rows) -> None:
        self.rows.setdefault(key, []).append(rows)
        self.nbytes += rows.nbytes

    def sent(self) -> Iterator[pa.RecordBatch]:
        """All of it, which is then no longer held."""
        for key, each in self.flat.items():
            yield _term(key, each)
        for key, some in self.rows.items():
            total = Rows.added(some)
            yield _term(key, total.numbers, places=total.places)
        self.flat, self.rows, self.nbytes = {}, {}, 0


def _term(key: int, added: NDArray[Any], block: int = -1, places: NDArray[np.int64] | None = None) -> pa.RecordBatch:
    row = {
        "table": places is not None,
        "key": key,
        "block": block,
        "whole": added.dtype == np.int64,
        "places": b"" if places is None else places.tobytes(),
        "numbers": added.tobytes(),
    }
    return batch_of([row], _TERMS)


def _rows(term: dict[str, Any]) -> Rows:
    places = numbers(term["places"], np.int64)
    return Rows(places, numbers(term["numbers"], np.int64).reshape(len(places), -1))
