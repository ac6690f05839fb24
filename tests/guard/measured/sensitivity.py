"""How far each measurement moves when all records of one person are taken out of the database."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import duckdb
import numpy as np
from numpy.typing import NDArray
from worlds_of_people import engine_of, silent

from kgather._guard.guard import Guard
from kgather._guard.measured.database import Database
from kgather._guard.measured.ledger import Measurement, Writing
from kgather._guard.measured.measuring import Session, Wanted, counted_beside
from kgather._guard.measured.reading import CELLS_A_PERSON, GRANULES, Found, Reading


@contextmanager
def recorded() -> Iterator[list[Wanted]]:
    """All that is measured meanwhile."""
    wanted: list[Wanted] = []
    taken = Session._taken

    def noted(self: Session, one: Wanted, reading: Reading, writing: Writing) -> Measurement:
        wanted.append(one)
        return taken(self, one, reading, writing)

    with patch.object(Session, "_taken", noted):
        yield wanted


@dataclass
class _Nowhere:
    """A ledger that keeps nothing."""

    known: tuple[Measurement, ...] = ()

    def add(self, measurement: Measurement) -> Measurement:
        return measurement


def without(source: Path, target: Path, person: object, units: dict[str, str]) -> Path:
    """A copy of a database without the records of one person. units: the privacy unit's column of each table."""
    target.write_bytes(source.read_bytes())
    with duckdb.connect(target) as con:
        for table, unit in units.items():
            con.execute(f"delete from {table} where {unit} = ?", [person])
    return target


def elsewhere(database: Database, path: Path) -> Database:
    """The same tables in another file."""
    return replace(database, warehouse=replace(database.warehouse, path=path), _repeated={})


def moves(guard: Guard, wanted: list[Wanted], other: Path) -> Iterator[tuple[Wanted, float, float]]:
    """Of each measurement: how far it is off in the other database, root of the sum of squares over all numbers, and
    the reach that its noise is for. Values that are found in one of the databases only are those of two people."""
    engine = engine_of(guard)
    for kind, people in engine.kinds.items():
        session = engine.session()
        session.noise = silent
        own = [each for each in wanted if each.whom == kind]
        yield from _moves(session.of(kind), own, people.database, elsewhere(people.database, other))


def _moves(
    session: Session, wanted: list[Wanted], here: Database, there: Database
) -> Iterator[tuple[Wanted, float, float]]:
    with here.reading() as one, there.reading() as two:
        for each in wanted:
            if each.kind in ("keys", "keyed"):
                reach = _reach(_measured(session, each, one))
                yield each, _between(_found(each, one), _found(each, two), each), reach
                continue
            first, second = (_measured(session, each, reading) for reading in (one, two))
            assert first.numbers.shape == second.numbers.shape, each.name
            assert first.domains == second.domains, each.name
            yield each, _length(first.numbers - second.numbers), _reach(first)


def _measured(session: Session, wanted: Wanted, reading: Reading) -> Measurement:
    return session._taken(wanted, reading, _Nowhere())  # type: ignore[arg-type]


def _reach(measurement: Measurement) -> float:
    """For what the charge pays: the noise of the ledger's own statement, not of the code's."""
    return measurement.sd * math.sqrt(2 * measurement.rho)


def _found(wanted: Wanted, reading: Reading) -> Found:
    (feature,) = wanted.features
    if wanted.kind == "keys":
        return reading.values(wanted.rows or None, feature, wanted.reach)
    assert wanted.argument is not None
    assert wanted.bounds is not None
    counted = 1 << 20
    return reading.keyed(wanted.rows, feature, wanted.argument, wanted.bounds, wanted.reach, counted)


def _between(first: Found, second: Found, wanted: Wanted) -> float:
    assert first.type == second.type, wanted.name
    assert len(set(first.values)) == len(first.values), wanted.name
    rows = {text: np.atleast_1d(counts) for text, counts in zip(first.values, first.counts, strict=True)}
    others = {text: np.atleast_1d(counts) for text, counts in zip(second.values, second.counts, strict=True)}
    alone = [text for text in (*rows, *others) if (text in rows) != (text in others)]
    assert len(alone) <= (CELLS_A_PERSON if wanted.rows else 1), wanted.name
    unit = (1 << 20) if wanted.kind == "keyed" else GRANULES if wanted.rows else 1
    for text in alone:  # by noise alone they pass the threshold, which is for two people
        assert (rows.get(text, others.get(text)))[-1] <= 2 * unit, wanted.name  # type: ignore[index]
    both = [rows[text] - others[text] for text in rows if text in others]
    found = _length(np.concatenate(both)) if both else 0.0
    # The counted part of `keyed` is one here, where the measurement's own share may be another.
    return found * (_share() if wanted.kind == "keyed" else 1.0)


def _share() -> float:
    """What the measurement's own reach is of that of a sum and a count of equal weight."""
    return math.hypot(1 << 20, counted_beside("keyed")) / math.hypot(1 << 20, 1 << 20)


def _length(numbers: NDArray[np.int64]) -> float:
    return math.sqrt(sum(int(number) ** 2 for number in np.asarray(numbers).ravel()))
