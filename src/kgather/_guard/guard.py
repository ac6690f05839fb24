"""The guard: answers an analyst's SQL from atoms of at least k people, or refuses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from kgather._errors import InputError
from kgather._guard.answers import Answering, Terms
from kgather._guard.apart import Apart
from kgather._guard.audit_log import AuditLog, Entry
from kgather._guard.base import UNITS, Base
from kgather._guard.catalog import Catalog
from kgather._guard.deadline import Deadline
from kgather._guard.describe import Shapes
from kgather._guard.generalized import classes_of
from kgather._guard.history import Present, present
from kgather._guard.ledger import Change, Kept, Ledger, secret_key
from kgather._guard.partition import Column, Partition
from kgather._guard.plan import Block, Bound, Local, Plan, Universe, Value
from kgather._guard.planner import plan
from kgather._guard.policy import Limits, Mode, Policy, load_policy
from kgather._guard.refused import SYNTAX, Refused, Rule
from kgather._guard.render import explain, identifier
from kgather._guard.warm import compile_kernels

Parameters = Sequence[Value] | Mapping[str, Value]

_REMEMBERED = 1024  # statements whose answers are kept in memory


@dataclass(frozen=True)
class Answer:
    """A protected result. uncertain, where it was asked for: of each GROUP BY over protected rows, by the name that
    `explain` gives it, the groups and the share of what each covers that may belong elsewhere or be missing, with
    noise, rounded up to hundredths."""

    table: pa.Table
    uncertain: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True)
class _Remembered:
    """Blocks' relations, the partitions they were made of, and how many atoms that were."""

    tables: dict[str, pa.Table]
    partitions: Mapping[str, Partition]
    touched: int
    uncertain: dict[str, pa.Table] | None

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
    answers: "dict[tuple[tuple[Block, ...], Mode], _Remembered]" = field(default_factory=dict)


class _Stamps(NamedTuple):
    """What tells whether a file was changed since it was read."""

    database: tuple[int, ...]
    ledger: tuple[int, ...]


class Guard:
    """Answers queries under a policy. Safe to share among threads; processes share the ledger."""

    def __init__(self, policy: Policy, folder: Path) -> None:
        """Open the database and the ledger that the policy names, relative to `folder`.

        Raises InputError where one of them is not as the policy says.
        """
        self.policy = policy
        self.database = folder / policy.database
        self.ledger = Ledger(folder / policy.ledger)
        self._log = AuditLog(folder / policy.audit_log) if policy.audit_log is not None else None
        self._apart = Apart()
        self._secret = secret_key(self.ledger.path.with_name(self.ledger.path.name + ".key"))
        with self.ledger.deciding():
            self._state = self._read()
        self._shapes, self._shapes_of = Shapes.of(self._state.base.con), self._state.base

    @classmethod
    def from_policy(cls, path: str | Path) -> "Guard":
        """Open the guard of a policy file. Raises InputError naming file and line where it is wrong."""
        return cls(load_policy(Path(path)), Path(path).resolve().parent)

    @property
    def catalog(self) -> Catalog:
        """What names mean."""
        return self._state.base.catalog

    @property
    def atoms(self) -> dict[str, int]:
        """How many atoms there are, by universe."""
        return {name: here.partition.n_atoms for name, here in list(self._state.presents.items())}

    def explain(self, sql: str, *, principal: str | None = None, parameters: Parameters = ()) -> str:
        """What would be asked, as SQL to read. Touches no data. Raises Refused where the text is refused."""
        made = self._plan(sql, self._principal(principal), parameters)
        return f"-- answered without the database: {made.tag}" if isinstance(made, Local) else self._explained(made)

    def describe(self, sql: str, parameters: Parameters = (), *, principal: str | None = None) -> pa.Schema:
        """The columns that the answer to a statement has. Touches no data. parameters: values, or what stands for them
        (`describe.neutral`). Raises Refused where the text is refused.
        """
        made = self._plan(sql, self._principal(principal), parameters)
        base = self._state.base
        if base is not self._shapes_of:
            self._shapes, self._shapes_of = Shapes.of(base.con), base
        return self._shapes.schema(made, base.catalog.unit)

    def query(self, sql: str, *, principal: str | None = None, parameters: Parameters = ()) -> pa.Table:
        """Answer a query.

        Raises Refused: static where the text is refused, otherwise with the one message for too few people.
        """
        return self.answer(sql, principal=principal, parameters=parameters).table

    def answer(
        self, sql: str, *, principal: str | None = None, parameters: Parameters = (), bounds: bool = False
    ) -> "Answer":
        """Answer a query and say, with `bounds`, how far off it may be. Errors as of `query`."""
        who = self._principal(principal)
        entry = Entry(who, sql, parameters)
        try:
            answer = self._answer(entry, bounds)
        except Refused as refusal:
            self._logged(entry, refusal)
            raise
        self._logged(entry)
        return answer

    def _answer(self, entry: Entry, bounds: bool) -> "Answer":
        made = self._plan(entry.text, entry.principal, entry.parameters)
        limits = self.policy.limits_of(entry.principal)
        if isinstance(made, Local):
            return Answer(self._local(made, limits))
        compile_kernels()
        with self.ledger.deciding():
            state = self._state = self._current()
            with Deadline(limits.time_ms) as deadline:
                decided = self._decide(state, made, self.policy.mode_of(entry.principal), entry, deadline, bounds)
        with Deadline(limits.time_ms) as deadline:
            relations = {**_public(state.base, made, deadline), **decided.tables}
            table = self._apart.run(made.sql, relations, limits.memory, deadline)
        return Answer(table, decided.uncertain or {})

    def _local(self, made: Local, limits: Limits) -> pa.Table:
        if made.sql is None:
            return pa.table({name: [row[at] for row in made.rows] for at, name in enumerate(made.names)})
        try:
            with Deadline(limits.time_ms) as deadline:
                return self._apart.run(made.sql, {}, limits.memory, deadline)
        except Refused as refusal:
            if refusal.rule is not Rule.TOO_FEW:
                raise
            # There is nobody in it: it is the statement itself that cannot be computed.
            told = "The statement's values cannot be computed."
            raise Refused(told, code=SYNTAX, rule=Rule.STATEMENT) from None

    def _logged(self, entry: Entry, refusal: Refused | None = None) -> None:
        if self._log is not None:
            self._log.record(entry, refusal)

    def _principal(self, name: str | None) -> str:
        """The principal of that name, or the only one there is."""
        if name is None and len(self.policy.principals) == 1:
            return next(iter(self.policy.principals))
        self.policy.principal(name or "")
        return name or ""

    def _plan(self, sql: str, principal: str, parameters: Parameters) -> Plan | Local:
        limits = self.policy.limits_of(principal)
        try:
            return plan(sql, self.catalog, parameters, limits)
        except (ArithmeticError, ValueError, duckdb.Error):
            # A number or text that nothing can hold; what it is called inside is not for the analyst.
            told = "The statement holds a value that is out of range, or a text that cannot be read."
            raise Refused(told, code=SYNTAX, rule=Rule.STATEMENT) from None

    def _explained(self, made: Plan) -> str:
        return explain(made, self.catalog.unit)

    def _decide(
        self, state: _State, made: Plan, mode: Mode, entry: Entry, deadline: Deadline, bounds: bool
    ) -> "_Remembered":
        """Cut atoms, record them, and compute the blocks: all before anything leaves."""
        remembered = state.answers.get((made.blocks, mode))
        if remembered is not None and remembered.holds(state.presents) and (remembered.uncertain or not bounds):
            # Asked before, and nothing was cut since: the same answer.
            entry.atoms_touched = remembered.touched
            return remembered
        match = (self.policy.match or "any") if mode == "generalized" else None
        diversity = self.policy.diversity
        terms = Terms(
            self.policy.k,
            self._secret,
            exact=mode == "exact",
            match=match,
            digits=self.policy.round,
            diverse=diversity.columns if diversity else (),
            l=diversity.l if diversity else 1,
        )
        answering = Answering(state.base, dict(state.presents), terms)
        with deadline.watching(state.base.con):
            answering.cut_for(made, self._columns(state))
        used = {asked.universe for asked in answering.asked.values()} - state.recorded | answering.cut
        if self._log is not None:
            entry.atoms_touched, entry.atoms_cut = _touched(answering), _more_atoms(state, answering)
        if used:
            self._record(state, {name: answering.presents[name] for name in used})
        with deadline.watching(state.base.con):
            tables = answering.tables(made)
            uncertain = answering.uncertain(made) if bounds else None
        partitions = {asked.universe: state.presents[asked.universe].partition for asked in answering.asked.values()}
        if len(state.answers) >= _REMEMBERED:
            state.answers.clear()
        decided = _Remembered(tables, partitions, entry.atoms_touched, uncertain)
        state.answers[made.blocks, mode] = decided
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
        base = base or _loaded(self.policy, self.database)
        kept = self.ledger.read(self.policy.k)
        presents = {}
        for universe, (unit, keys) in base.rows.items():
            columns = _kept_columns(base, universe, kept.get(universe))
            presents[universe] = present(
                keys, unit, kept.get(universe), columns, self.policy.k, one_row_a_unit=universe == UNITS
            )
        state = _State(base, presents, kept, of_database, self.ledger.stamp())
        modes = {self.policy.mode, *(principal.mode for principal in self.policy.principals.values())}
        if "generalized" in modes and UNITS not in kept:
            # Classes are fixed for ever, or cut further where others ask in another mode.
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


def _public(base: Base, made: Plan, deadline: Deadline) -> dict[str, pa.Table]:
    """The public tables that are read beside the blocks."""
    with base.con.cursor() as con, deadline.watching(con):
        return {name: con.sql(f"from {identifier(name)}").to_arrow_table() for name in made.public}


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
