"""Modes exact and generalized as an engine of the guard: answers from atoms of at least k people, or refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._guard import exact
from kgather._guard.answers import Answering, Terms
from kgather._guard.base import UNITS, Base
from kgather._guard.catalog import Catalog
from kgather._guard.deadline import Deadline
from kgather._guard.engine import Decided, Trace
from kgather._guard.generalized import classes_of
from kgather._guard.history import Present, present
from kgather._guard.ledger import Change, Kept, Ledger
from kgather._guard.partition import Column, Partition
from kgather._guard.plan import Block, Bound, Plan, Universe
from kgather._guard.policy import Policy
from kgather._guard.render import identifier

_REMEMBERED = 1024  # statements whose answers are kept in memory


@dataclass(frozen=True)
class _Remembered:
    """Blocks' relations, the partitions they were made of, and how many atoms that were."""

    tables: dict[str, pa.Table]
    partitions: Mapping[str, Partition]
    touched: int
    uncertain: dict[str, pa.Table] | None
    atoms_cut: int = 0

    def holds(self, presents: Mapping[str, Present]) -> bool:
        """Whether the partitions are still the same."""
        return all(presents[name].partition is partition for name, partition in self.partitions.items())


@dataclass
class _State:
    """What was read of database and ledger, and the stamps they had. recorded: universes whose partition of today is
    in the ledger: rows that came or went have to be recorded, too, before they are answered about. answers: what was
    asked before, as long as nothing it was made of is cut."""

    base: Base
    presents: dict[str, Present]
    kept: dict[str, Kept]
    of_database: tuple[int, ...]
    of_ledger: tuple[int, ...]
    recorded: set[str] = field(default_factory=set)
    answers: "dict[tuple[Block, ...], _Remembered]" = field(default_factory=dict)


class _Stamps(NamedTuple):
    """What tells whether a file was changed since it was read."""

    database: tuple[int, ...]
    ledger: tuple[int, ...]


class AtomsEngine:
    """Answers from atoms. Safe to share among threads; processes share the ledger."""

    def __init__(self, policy: Policy, folder: Path) -> None:
        self.policy = policy
        self.database = folder / policy.database
        self.ledger = Ledger(folder / policy.ledger)
        with self.ledger.deciding():
            self._state = self._read()

    @property
    def catalog(self) -> Catalog:
        """What names mean."""
        return self._state.base.catalog

    @property
    def atoms(self) -> dict[str, int]:
        """How many atoms there are, by universe."""
        return {name: here.partition.n_atoms for name, here in list(self._state.presents.items())}

    def decide(self, made: Plan, deadline: Deadline, trace: Trace, *, errors: bool) -> Decided:
        """Cut atoms, record them, and compute the blocks. Raises Refused."""
        with self.ledger.deciding():
            state = self._state = self._current()
            found = self._decide(state, made, deadline, errors)
        trace.touched, trace.cut = found.touched, found.atoms_cut
        said = exact.warning(made, self.policy) if self.policy.mode == "exact" else None
        return Decided(found.tables, found.uncertain or {}, said)

    def public(self, made: Plan, deadline: Deadline) -> dict[str, pa.Table]:
        """The public tables that are read beside the blocks."""
        con_of = self._state.base.con
        with con_of.cursor() as con, deadline.watching(con):
            return {name: con.sql(f"from {identifier(name)}").to_arrow_table() for name in made.public}

    def _decide(self, state: _State, made: Plan, deadline: Deadline, bounds: bool) -> _Remembered:
        """Cut atoms, record them, and compute the blocks: all before anything leaves."""
        remembered = state.answers.get(made.blocks)
        if remembered is not None and remembered.holds(state.presents) and (remembered.uncertain or not bounds):
            # Asked before, and nothing was cut since: the same answer.
            return replace(remembered, atoms_cut=0)
        match = (self.policy.match or "any") if self.policy.mode == "generalized" else None
        diversity = self.policy.diversity
        terms = Terms(
            self.policy.k,
            exact.ranges(self.policy),
            match,
            digits=self.policy.round,
            diverse=diversity.columns if diversity else (),
            l=diversity.l if diversity else 1,
        )
        answering = Answering(state.base, dict(state.presents), terms)
        with deadline.watching(state.base.con):
            answering.cut_for(made, self._columns(state))
        used = {asked.universe for asked in answering.asked.values()} - state.recorded | answering.cut
        touched, more = _touched(answering), _more_atoms(state, answering)
        if used:
            self._record(state, {name: answering.presents[name] for name in used})
        with deadline.watching(state.base.con):
            tables = answering.tables(made)
            uncertain = answering.uncertain(made) if bounds else None
        partitions = {asked.universe: state.presents[asked.universe].partition for asked in answering.asked.values()}
        if len(state.answers) >= _REMEMBERED:
            state.answers.clear()
        decided = _Remembered(tables, partitions, touched, uncertain, more)
        state.answers[made.blocks] = decided
        return decided

    def _record(self, state: _State, changed: Mapping[str, Present]) -> None:
        """Write what was cut, and only then take it for granted."""
        kept = {name: here.kept(state.kept.get(name)) for name, here in changed.items()}
        self.ledger.write(
            self.policy.k,
            {name: Change(state.kept.get(name), kept[name], here.partition.n_atoms) for name, here in changed.items()},
        )
        state.presents.update(changed)
        state.kept.update(kept)
        state.recorded.update(changed)
        state.of_ledger = self.ledger.stamp()

    def _current(self) -> _State:
        """What is in database and ledger now, read again as far as they were changed."""
        stamps = self._stamps()
        if stamps.database != self._state.of_database:
            return self._read()
        return self._state if stamps.ledger == self._state.of_ledger else self._read(self._state.base)

    def _stamps(self) -> _Stamps:
        try:
            stat = self.database.stat()
        except OSError as error:
            msg = f"{self.database}, which the policy names under database, cannot be read: {error.strerror}."
            raise InputError(msg) from None
        return _Stamps((stat.st_ino, stat.st_mtime_ns, stat.st_size), self.ledger.stamp())

    def _read(self, base: Base | None = None) -> _State:
        of_database = self._stamps().database
        if base is None:
            base = _loaded(self.policy, self.database)
            if self.policy.mode == "exact":
                exact.check_tables(base.catalog)
        kept = self.ledger.read(self.policy.k)
        presents = {}
        for universe, (unit, keys) in base.rows.items():
            columns = _kept_columns(base, universe, kept.get(universe))
            presents[universe] = present(
                keys, unit, kept.get(universe), columns, self.policy.k, one_row_a_unit=universe == UNITS
            )
        state = _State(base, presents, kept, of_database, self.ledger.stamp())
        if self.policy.mode == "generalized" and UNITS not in kept:
            # Classes are fixed for ever.
            here = replace(presents[UNITS], partition=classes_of(base, self.policy.k))
            self._record(state, {UNITS: here})
        return state

    def _columns(self, state: _State) -> dict[str, dict[str, Column]]:
        return {
            name: {column: state.base.columns[name, column] for column in here.partition.clusters}
            for name, here in state.presents.items()
        }


def _kept_columns(base: Base, universe: str, kept: Kept | None) -> dict[str, Column]:
    """The columns that clusters are kept of, read again."""
    found = {}
    for name in kept.clusters if kept is not None else ():
        of = Universe("unit") if universe == UNITS else Universe("rows", universe)
        pairs = [part.split(".", 1) for part in name.split(" * ")]
        bounds = [Bound(table, column) for table, column in pairs]
        found[name] = base.column(of, bounds).column
    return found


def _loaded(policy: Policy, database: Path) -> Base:
    try:
        return Base.load(policy, str(database), memory=policy.limits.memory)
    except duckdb.OutOfMemoryException:
        msg = f"What the policy shows of {database} does not fit into {policy.limits.memory}. Raise limits.memory."
    except duckdb.Error:
        msg = f"{database} cannot be read. Its tables have to be tables of DuckDB that are read without other files."
    raise InputError(msg)


def _touched(answering: Answering) -> int:
    """How many atoms hold rows that were asked for."""
    touched = {name: np.zeros(here.partition.n_atoms, dtype=bool) for name, here in answering.presents.items()}
    for asked in answering.asked.values():
        touched[asked.universe] |= answering.spread(asked).high > 1
    return sum(int(of.sum()) for of in touched.values())


def _more_atoms(state: _State, answering: Answering) -> int:
    return sum(
        answering.presents[name].partition.n_atoms - state.presents[name].partition.n_atoms for name in answering.cut
    )
